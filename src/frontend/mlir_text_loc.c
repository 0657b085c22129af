/* Locations in text: those that are written, and where there is none the
 * place in the text itself. */
#include "mlir_text.h"

static uint32_t location(mlir_parser *t);

/* #loc3, perhaps defined further down: then the entry is filled there. */
static uint32_t loc_alias(mlir_parser *t)
{
    sd_bytes s = {(const uint8_t *)t->tok.at, t->tok.len};
    uint32_t known = tx_known(t->attr_alias, s);

    if (!known && !t->r->st) {
        known = mlir_new_attr(t->r, (mlir_attr){.kind = MLIR_A_NONE}) + 1;
        tx_make_known(t->attr_alias, s, known);
        if (!t->nopen++)
            t->open = t->tok;
    }
    tx_next(t);
    return known - 1;
}

static uint32_t named_loc(mlir_parser *t)
{
    sd_bytes s = tx_string(t);
    uint32_t *list = sd_arena_array(t->r->a, uint32_t, 2);
    int64_t *v;

    list[0] = mlir_new_string(t->r, (const char *)s.at, s.len);
    if (!tx_is(t, ':')) {
        list[1] = 0;
        if (tx_accept(t, '(')) {
            list[1] = location(t);
            tx_expect(t, ')');
        } else {
            list[1] = tx_new_attr(t, (mlir_attr){.kind = MLIR_A_LOC_UNKNOWN});
        }
        return tx_new_attr(
            t, (mlir_attr){.kind = MLIR_A_LOC_NAME, .list = list, .nlist = 2});
    }
    mlir_attr at = {.kind = MLIR_A_LOC_FILE, .list = list, .nlist = 1};

    v = sd_arena_array(t->r->a, int64_t, 4);
    for (int i = 0; i < 2; i++) {
        tx_expect(t, ':');
        v[at.nnum++] = tx_integer(t) & INT32_MAX;
    }
    if (tx_accept_word(t, "to")) { /* :column or line:column */
        if (!tx_is(t, ':'))
            v[at.nnum++] = tx_integer(t) & INT32_MAX;
        tx_expect(t, ':');
        v[at.nnum++] = tx_integer(t) & INT32_MAX;
    }
    at.num = v;
    return tx_new_attr(t, at);
}

static uint32_t call_loc(mlir_parser *t)
{
    uint32_t *list = sd_arena_array(t->r->a, uint32_t, 2);

    tx_expect(t, '(');
    list[0] = location(t);
    tx_expect_word(t, "at");
    list[1] = location(t);
    tx_expect(t, ')');
    return tx_new_attr(
        t, (mlir_attr){.kind = MLIR_A_LOC_CALL, .list = list, .nlist = 2});
}

static uint32_t fused_loc(mlir_parser *t)
{
    mlir_attr at = {.kind = MLIR_A_LOC_FUSED};
    sd_vec(uint32_t) v = {0};
    uint32_t meta = 0;

    if (tx_accept(t, '<')) {
        meta = tx_attr(t);
        at.code = 1;
        tx_expect(t, '>');
    }
    tx_expect(t, '[');
    if (!tx_is(t, ']'))
        do
            *sd_push(t->r->a, &v) = location(t);
        while (tx_accept(t, ','));
    tx_expect(t, ']');
    if (at.code)
        *sd_push(t->r->a, &v) = meta;
    at.list = v.at;
    at.nlist = v.n;
    return tx_new_attr(t, at);
}

static uint32_t location(mlir_parser *t)
{
    uint32_t at = 0;

    if (!tx_enter(t))
        return 0;
    if (t->tok.kind == TK_HASH)
        at = loc_alias(t);
    else if (t->tok.kind == TK_STRING)
        at = named_loc(t);
    else if (tx_accept_word(t, "unknown"))
        at = tx_new_attr(t, (mlir_attr){.kind = MLIR_A_LOC_UNKNOWN});
    else if (tx_accept_word(t, "callsite"))
        at = call_loc(t);
    else if (tx_accept_word(t, "fused"))
        at = fused_loc(t);
    else
        tx_expected(t, "a location");
    tx_leave(t);
    return at;
}

uint32_t tx_loc_attr(mlir_parser *t)
{
    uint32_t at;

    tx_expect(t, '(');
    at = location(t);
    tx_expect(t, ')');
    return at;
}

/* Line and column of a place, counted from the last one asked for: back over
 * an operation's regions, or on. */
static void count_lines(mlir_parser *t, const char *where, int64_t out[2])
{
    const char *p;

    if (!t->line_at) {
        t->line_at = t->begin;
        t->line = 1;
    }
    for (; t->line_at > where; t->line_at--)
        t->line -= t->line_at[-1] == '\n';
    while (t->line_at > t->begin && t->line_at[-1] != '\n')
        t->line_at--;
    p = t->line_at;
    while ((p = memchr(p, '\n', (size_t)(where - p)))) {
        t->line_at = ++p;
        t->line++;
    }
    out[0] = t->line;
    out[1] = where - t->line_at + 1;
}

uint32_t tx_place(mlir_parser *t, const char *where)
{
    uint32_t *list;
    int64_t *v;

    if (t->r->st)
        return MLIR_ABSENT;
    if (!t->text_name)
        t->text_name = mlir_new_string(t->r, "-", 1) + 1;
    list = sd_arena_array(t->r->a, uint32_t, 1);
    v = sd_arena_array(t->r->a, int64_t, 2);
    list[0] = t->text_name - 1;
    if (where)
        count_lines(t, where, v);
    return tx_new_attr(t, (mlir_attr){.kind = MLIR_A_LOC_FILE,
                                      .list = list,
                                      .nlist = 1,
                                      .num = v,
                                      .nnum = 2});
}

uint32_t tx_trailing_loc(mlir_parser *t, const char *where)
{
    return tx_accept_word(t, "loc") ? tx_loc_attr(t) : tx_place(t, where);
}

uint32_t tx_peek_loc(mlir_parser *t, const char *where)
{
    const char *here = t->tok.kind == TK_END ? t->end : t->tok.at;
    uint32_t loc = tx_trailing_loc(t, where);

    tx_seek(t, here);
    return loc;
}
