/* The IR section: operations, blocks and regions as a tree.  Values are
 * numbered within an isolated scope; `scope` is the list of those visible. */
#include "mlir.h"

enum {
    OP_DICT = 0x01,
    OP_RESULTS = 0x02,
    OP_OPERANDS = 0x04,
    OP_SUCCESSORS = 0x08,
    OP_REGIONS = 0x10,
    OP_USES = 0x20,
    OP_PROPS = 0x40
};
enum { S_IR = 4 };

typedef sd_vec(mlir_value *) scope;

static void read_region(mlir_reader *r, sd_cursor *c, scope *sc, mlir_region *g,
                        int depth);

/* A count of things of a byte at least. */
static int read_count(sd_cursor *c, uint64_t n)
{
    if (n > sd_cursor_left(c) || n > INT32_MAX) {
        sd_cursor_fail(c, "as many things as there are bytes");
        return 0;
    }
    return (int)n;
}

/* Orders of use chains: no meaning for a compiler. */
static void skip_uses(sd_cursor *c, int n)
{
    uint64_t k = n == 1 ? 1 : mlir_varint(c);

    for (uint64_t i = 0; i < k && !c->bad; i++) {
        bool pairs;

        if (n > 1)
            mlir_varint(c);
        uint64_t m = mlir_varint_flag(c, &pairs);

        for (uint64_t j = 0; j < m && !c->bad; j++)
            mlir_varint(c);
    }
}

/* The next value that the region announced. */
static mlir_value *define(mlir_reader *r, sd_cursor *c, scope *sc, int *next)
{
    if (*next >= sc->n) {
        sd_cursor_fail(c, "no more values than announced");
        return NULL;
    }
    r->promised--;
    return sc->at[(*next)++];
}

static void read_results(mlir_reader *r, sd_cursor *c, scope *sc, int *next,
                         mlir_op *op)
{
    int n = read_count(c, mlir_varint(c));

    for (int i = 0; i < n && !c->bad; i++) {
        mlir_value *v = define(r, c, sc, next);

        if (!v)
            return;
        v->type = mlir_index(c);
        v->def = op;
        if (!i)
            op->result = v; /* the rest follows it in the region's array */
        op->nresult++;
    }
}

static void read_operands(mlir_reader *r, sd_cursor *c, scope *sc, mlir_op *op)
{
    int n = read_count(c, mlir_varint(c));

    op->operand = sd_arena_array(r->a, mlir_value *, n + 1);
    for (int i = 0; i < n && !c->bad; i++) {
        uint64_t v = mlir_varint(c);

        if (v >= (uint64_t)sc->n) {
            sd_cursor_fail(c, "a value of the scope");
            return;
        }
        op->operand[op->noperand++] = sc->at[v];
    }
}

static void read_op_regions(mlir_reader *r, sd_cursor *c, scope *sc,
                            mlir_op *op, int depth)
{
    bool isolated;
    int n = read_count(c, mlir_varint_flag(c, &isolated));
    bool nested = isolated && r->version >= 2;
    sd_vec(mlir_region *) list = {0};
    sd_cursor inner = *c;
    scope fresh = {0};
    unsigned id;

    if (depth >= MLIR_MAX_DEPTH) {
        mlir_fail(r, SD_INVALID, "regions are nested deeper than %d",
                  MLIR_MAX_DEPTH);
        return;
    }
    if (nested) {
        sd_bytes body = mlir_section(r, c, &id);

        if (c->bad || id != S_IR) {
            sd_cursor_fail(c, "a nested IR section");
            return;
        }
        inner = mlir_cursor(r, body);
    }
    sd_cursor *in = nested ? &inner : c;

    for (int i = 0; i < n && !in->bad && !r->st; i++) {
        mlir_region *g = sd_arena_new(r->a, mlir_region);

        *sd_push(r->a, &list) = g;
        read_region(r, in, isolated ? &fresh : sc, g, depth + 1);
    }
    if (nested && !in->bad && sd_cursor_left(in))
        sd_cursor_fail(in, "the end of the nested IR");
    if (nested)
        mlir_check(r, in, "the IR section");
    op->region = list.at;
    op->nregion = list.n;
}

/* A property entry lists attributes in the row's order; before version 5 they
 * are in the dictionary, by name. */
static void read_props(mlir_reader *r, mlir_op *op, uint64_t entry)
{
    const vhlo_row *row = r->name.at[op->name].row;
    const char *s = row ? row->props : "";
    sd_cursor c = {0};
    vhlo_prop p;
    int n = 0;

    if (!row || r->st)
        return;
    op->prop = sd_arena_array(r->a, uint32_t, vhlo_nprop(row) + 1);
    if (r->version >= 5 && *s && entry >= r->nprop) {
        mlir_fail(r, SD_INVALID, "%s without its property entry", row->name);
        return;
    }
    if (r->version >= 5 && entry < r->nprop)
        c = mlir_cursor(r, r->prop[entry]);
    while (vhlo_next_prop(&s, &p)) {
        uint64_t v;

        if (r->version < 5) {
            v = mlir_dict_find(r, op, p.name, (size_t)p.len);
        } else {
            v = mlir_varint(&c);
            if (p.optional)
                v = v & 1 ? v >> 1 : MLIR_ABSENT;
        }
        op->prop[n++] = v == MLIR_ABSENT ? MLIR_ABSENT : mlir_as_index(&c, v);
    }
    if (!c.bad && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the properties");
    if (c.bad)
        r->st =
            sd_note(sd_cursor_status(&c, "a property entry"), "%s", row->name);
}

static mlir_op *read_op(mlir_reader *r, sd_cursor *c, scope *sc, int *next,
                        int depth)
{
    mlir_op *op = sd_arena_new(r->a, mlir_op);
    uint64_t name = mlir_varint(c);
    unsigned mask = sd_read_u8(c);
    uint64_t props = UINT64_MAX;

    op->dict = -1;
    if (name >= (uint64_t)r->name.n) {
        sd_cursor_fail(c, "an operation name of the table");
        return op;
    }
    op->name = (uint32_t)name;
    op->loc = mlir_index(c);
    if (mask & OP_DICT)
        op->dict = (int64_t)(mlir_varint(c) & INT64_MAX);
    if (mask & OP_PROPS)
        props = mlir_varint(c);
    read_props(r, op, props);
    if (mask & OP_RESULTS)
        read_results(r, c, sc, next, op);
    if (mask & OP_OPERANDS)
        read_operands(r, c, sc, op);
    if (mask & OP_SUCCESSORS) {
        uint64_t n = mlir_varint(c);

        mlir_fail(r, SD_UNIMPLEMENTED,
                  "%.*s branches to %" PRIu64 " blocks: control flow between "
                  "blocks is not StableHLO",
                  (int)r->name.at[name].name.len,
                  (const char *)r->name.at[name].name.at, n);
        return op;
    }
    if (mask & OP_USES)
        skip_uses(c, op->nresult);
    if (mask & OP_REGIONS)
        read_op_regions(r, c, sc, op, depth);
    return op;
}

static void read_args(mlir_reader *r, sd_cursor *c, scope *sc, int *next,
                      mlir_block *b)
{
    int n = read_count(c, mlir_varint(c));

    b->arg_loc = sd_arena_array(r->a, uint32_t, n + 1);
    for (int i = 0; i < n && !c->bad; i++) {
        mlir_value *v = define(r, c, sc, next);
        bool has_loc = true;

        if (!v)
            return;
        v->type =
            mlir_as_index(c, r->version >= 4 ? mlir_varint_flag(c, &has_loc)
                                             : mlir_varint(c));
        b->arg_loc[i] = has_loc ? mlir_index(c) : MLIR_ABSENT;
        if (!i)
            b->arg = v;
        b->narg++;
    }
    if (r->version >= 3 && sd_read_u8(c))
        skip_uses(c, n);
}

static void read_block(mlir_reader *r, sd_cursor *c, scope *sc, int *next,
                       mlir_block *b, int depth)
{
    bool has_args;
    uint64_t n = mlir_varint_flag(c, &has_args);

    if (has_args)
        read_args(r, c, sc, next, b);
    for (uint64_t i = 0; i < n && !c->bad && !r->st; i++) {
        mlir_op *op = read_op(r, c, sc, next, depth);

        if (b->last)
            b->last->next = op;
        else
            b->first = op;
        b->last = op;
    }
}

/* Every value takes a byte at least where it is defined, so what all open
 * regions still owe can never exceed the bytes left. */
static void announce(mlir_reader *r, sd_cursor *c, scope *sc, mlir_region *g,
                     uint64_t n)
{
    mlir_value *v;

    if (n > INT32_MAX || n + r->promised > r->file.len) {
        sd_cursor_fail(c, "fewer values than there are bytes");
        return;
    }
    r->promised += n;
    v = sd_arena_array(r->a, mlir_value, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        v[i].region = g->id;
        *sd_push(r->a, sc) = &v[i];
    }
}

static void read_region(mlir_reader *r, sd_cursor *c, scope *sc, mlir_region *g,
                        int depth)
{
    int nblock = read_count(c, mlir_varint(c)), base = sc->n, next = base;
    sd_vec(mlir_block *) list = {0};

    g->id = g->last = r->next_region++;
    if (!nblock)
        return;
    announce(r, c, sc, g, mlir_varint(c));
    for (int i = 0; i < nblock && !c->bad && !r->st; i++) {
        mlir_block *b = sd_arena_new(r->a, mlir_block);

        *sd_push(r->a, &list) = b;
        read_block(r, c, sc, &next, b, depth);
    }
    if (!c->bad && next != sc->n)
        sd_cursor_fail(c, "as many values as announced");
    sc->n = base;
    g->block = list.at;
    g->nblock = list.n;
    g->last = r->next_region - 1;
}

void mlir_read_ir(mlir_reader *r)
{
    sd_cursor c = mlir_cursor(r, r->section[S_IR]);
    mlir_block top = {0};
    scope none = {0};
    int next = 0;

    read_block(r, &c, &none, &next, &top, 0);
    if (!c.bad && !r->st && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the IR");
    mlir_check(r, &c, "the IR section");
    if (!r->st && (!top.first || top.first != top.last))
        mlir_fail(r, SD_INVALID, "the IR must hold one module");
    r->module = top.first;
}
