/* The file of StableHLO text: one module or what stands in one, aliases,
 * resources at its end. */
#include "mlir_text.h"

#include <stdlib.h>

static void define(mlir_parser *t, sd_names *map, mlir_token name, uint32_t at)
{
    sd_bytes text = {(const uint8_t *)name.at, name.len};
    uint32_t known = tx_known(map, text);
    mlir_entry *e;

    if (t->r->st)
        return;
    if (!known) {
        tx_make_known(map, text, at + 1);
        return;
    }
    e = map == t->attr_alias ? &t->r->attr.at[known - 1] : NULL;
    if (!e || ((mlir_attr *)e->memo)->kind != MLIR_A_NONE) {
        tx_fail_at(t, name.at, "%.*s is defined already", (int)name.len,
                   name.at);
        return;
    }
    /* It was used before: the entry there gets what it stands for. */
    *(mlir_attr *)e->memo = *mlir_attr_at(t->r, at);
    if (((mlir_attr *)e->memo)->kind == MLIR_A_NONE)
        tx_fail_at(t, name.at, "%.*s stands for one that is not defined yet",
                   (int)name.len, name.at);
    t->nopen--;
}

/* #map = ..., !t = ... */
static void alias_line(mlir_parser *t)
{
    mlir_token name = t->tok;

    tx_next(t);
    tx_expect(t, '=');
    if (name.kind == TK_BANG)
        define(t, t->type_alias, name, tx_type(t));
    else
        define(t, t->attr_alias, name, tx_attr(t));
}

/* A resource's bytes: "0x", four bytes of alignment, data. */
static void fill_resource(mlir_parser *t, sd_bytes key, sd_bytes hex)
{
    uint8_t *out = sd_arena_alloc(t->r->a, hex.len / 2 + 1);
    size_t n = 0;

    for (size_t i = 10; i + 1 < hex.len; i += 2) {
        char two[3] = {(char)hex.at[i], (char)hex.at[i + 1], 0};

        out[n++] = (uint8_t)strtoul(two, NULL, 16);
    }
    for (int i = 0; i < t->resource.n; i++) {
        mlir_pending *p = &t->resource.at[i];

        if (p->key.len == key.len && memcmp(p->key.at, key.at, key.len) == 0 &&
            p->where) {
            p->at->blob = (sd_bytes){out, n};
            p->where = NULL;
        }
    }
}

/* key: "0x...", ... of one dialect */
static void resource_group(mlir_parser *t)
{
    tx_expect(t, '{');
    while (t->tok.kind == TK_ID || t->tok.kind == TK_STRING) {
        sd_bytes key = {(const uint8_t *)t->tok.at, t->tok.len};

        if (t->tok.kind == TK_STRING)
            key = tx_string(t);
        else
            tx_next(t);
        tx_expect(t, ':');
        if (t->tok.kind == TK_STRING)
            fill_resource(t, key, tx_string(t));
        else
            tx_next(t); /* a number or a bool, which nothing refers to */
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, '}');
}

/* {-# dialect_resources: { builtin: { ... } } #-} */
static void file_metadata(mlir_parser *t)
{
    tx_next(t);
    while (t->tok.kind == TK_ID) {
        bool keep = tx_is_word(t, "dialect_resources");

        tx_next(t);
        tx_expect(t, ':');
        if (!keep) {
            if (tx_is(t, '{'))
                tx_balanced(t);
        } else {
            tx_expect(t, '{');
            while (t->tok.kind == TK_ID) {
                tx_next(t);
                tx_expect(t, ':');
                resource_group(t);
                if (!tx_accept(t, ','))
                    break;
            }
            tx_expect(t, '}');
        }
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, TK_FILE_CLOSE);
}

static void check_promises(mlir_parser *t)
{
    if (t->nopen && !t->r->st)
        tx_fail_at(t, t->open.at, "%.*s is not defined", (int)t->open.len,
                   t->open.at);
    for (int i = 0; i < t->resource.n; i++)
        if (t->resource.at[i].where && !t->r->st)
            tx_fail_at(t, t->resource.at[i].where,
                       "resource %.*s is not in the file",
                       (int)t->resource.at[i].key.len,
                       (const char *)t->resource.at[i].key.at);
}

/* One module; functions without one are in one, as for MLIR's parser. */
static mlir_op *only_module(mlir_parser *t, mlir_block *top, mlir_region *g)
{
    mlir_op *op = top->first;
    const vhlo_row *row = op ? t->r->name.at[op->name].row : NULL;

    if (op && op == top->last && row &&
        strcmp(row->name, "builtin.module") == 0)
        return op;
    op = tx_make_op(t, "builtin.module", 0, NULL, 0, NULL, tx_place(t, NULL));
    op->region = sd_arena_new(t->r->a, mlir_region *);
    op->region[0] = g;
    op->nregion = 1;
    return op;
}

void mlir_read_text(mlir_reader *r, sd_bytes file)
{
    mlir_parser t = {.r = r,
                     .begin = (const char *)file.at,
                     .p = (const char *)file.at,
                     .latest = sd_map_create(r->a),
                     .attr_alias = sd_names_create(r->a),
                     .type_alias = sd_names_create(r->a),
                     .other_name = sd_names_create(r->a),
                     .name = sd_map_create(r->a)};
    mlir_region *g = tx_new_region(&t);
    mlir_block *top = tx_new_block(&t, g, NULL, 0);

    r->file = file;
    r->producer = "StableHLO text";
    r->version = 6;
    r->is_text = true;
    t.end = t.begin + file.len;
    tx_next(&t);
    while (t.tok.kind != TK_END && !r->st) {
        mlir_op *op;

        if (t.tok.kind == TK_HASH || t.tok.kind == TK_BANG)
            alias_line(&t);
        else if (tx_is(&t, TK_FILE_OPEN))
            file_metadata(&t);
        else if ((op = tx_read_op(&t)))
            tx_add_op(top, op);
    }
    check_promises(&t);
    if (!r->st)
        r->module = only_module(&t, top, g);
    g->last = r->next_region - 1;
}
