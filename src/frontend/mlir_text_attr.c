/* Attributes and locations in text. */
#include "mlir_text.h"

uint32_t tx_new_attr(mlir_parser *t, mlir_attr at)
{
    return t->r->st ? 0 : mlir_new_attr(t->r, at);
}

static uint32_t new_text(mlir_parser *t, mlir_attr_kind kind, sd_bytes s)
{
    return tx_new_attr(
        t, (mlir_attr){.kind = kind,
                       .str = mlir_new_str(t->r, (const char *)s.at, s.len)});
}

uint32_t tx_number(mlir_parser *t, mlir_attr_kind kind, const char *type,
                   uint64_t bits)
{
    return tx_new_attr(t, (mlir_attr){.kind = kind,
                                      .type = tx_scalar_type(t, type),
                                      .bits = bits});
}

uint32_t tx_bool(mlir_parser *t, bool v)
{
    return tx_new_attr(
        t, (mlir_attr){.kind = MLIR_A_ENUM, .code = MLIR_E_BOOL, .bits = v});
}

uint32_t tx_new_ints(mlir_parser *t, const int64_t *v, int n)
{
    size_t bytes = sizeof *v * (size_t)n;

    return tx_new_attr(
        t, (mlir_attr){.kind = MLIR_A_DENSE_ARRAY,
                       .type = tx_scalar_type(t, "i64"),
                       .bits = (uint64_t)n,
                       .blob = {sd_arena_copy(t->r->a, v, bytes), bytes}});
}

uint32_t tx_array_of(mlir_parser *t, const uint32_t *v, int n)
{
    return tx_new_attr(
        t, (mlir_attr){.kind = MLIR_A_ARRAY,
                       .list = sd_arena_copy(t->r->a, v, sizeof *v * (size_t)n),
                       .nlist = n});
}

uint32_t tx_int_list(mlir_parser *t)
{
    sd_vec(int64_t) v = {0};

    tx_expect(t, '[');
    if (!tx_is(t, ']'))
        do
            *sd_push(t->r->a, &v) = tx_integer(t);
        while (tx_accept(t, ','));
    tx_expect(t, ']');
    return tx_new_ints(t, v.at, v.n);
}

/* sparse<indices, values> : type */
static uint32_t sparse(mlir_parser *t, const char *start)
{
    if (!tx_is(t, '<')) {
        tx_expected(t, "'<'");
        return 0;
    }
    tx_balanced(t);
    tx_expect(t, ':');
    tx_type(t);
    return new_text(t, MLIR_A_OPAQUE, tx_from(t, start));
}

static uint32_t opaque(mlir_parser *t, const char *start)
{
    if (tx_is(t, '<') || tx_is(t, '['))
        tx_balanced(t);
    if (tx_is(t, '<')) /* distinct[0]<...> */
        tx_balanced(t);
    return new_text(t, MLIR_A_OPAQUE, tx_from(t, start));
}

static uint32_t hashed(mlir_parser *t)
{
    const char *start = t->tok.at;
    sd_bytes s = {(const uint8_t *)start, t->tok.len};
    uint32_t known = tx_known(t->attr_alias, s);
    uint32_t at = 0;
    bool mesh = s.len == 34 &&
                memcmp(start, "#stablehlo.replica_group_mesh_axes", 34) == 0;
    const char *name;

    if (known) {
        tx_next(t);
        return known - 1;
    }
    name = sd_arena_str(t->r->a, start, s.len);
    tx_next(t);
    if (tx_stablehlo_attr(t, name, &at))
        return at;
    if (!tx_is(t, '<')) {
        tx_fail_at(t, start, "%s is not defined", name);
        return 0;
    }
    tx_balanced(t);
    return new_text(t, mesh ? MLIR_A_MESH_AXES : MLIR_A_OPAQUE,
                    tx_from(t, start));
}

/* ---- all ---- */

static uint32_t symbol(mlir_parser *t)
{
    mlir_attr at = {.kind = MLIR_A_SYMBOL};
    sd_vec(uint32_t) v = {0};

    do {
        uint32_t name = tx_symbol_name(t, "a symbol");

        if (t->r->st)
            return 0;
        *sd_push(t->r->a, &v) = name;
    } while (tx_accept(t, TK_COLONS));
    at.list = v.at;
    at.nlist = v.n;
    return tx_new_attr(t, at);
}

static uint32_t array(mlir_parser *t)
{
    sd_vec(uint32_t) v = {0};

    tx_expect(t, '[');
    if (!tx_is(t, ']'))
        do
            *sd_push(t->r->a, &v) = tx_attr(t);
        while (tx_accept(t, ','));
    tx_expect(t, ']');
    return tx_new_attr(
        t, (mlir_attr){.kind = MLIR_A_ARRAY, .list = v.at, .nlist = v.n});
}

uint32_t tx_dict(mlir_parser *t)
{
    sd_vec(uint32_t) v = {0};

    tx_expect(t, '{');
    while (t->tok.kind == TK_ID || t->tok.kind == TK_STRING) {
        bool quoted = t->tok.kind == TK_STRING;
        sd_bytes s = {(const uint8_t *)t->tok.at, t->tok.len};

        if (quoted)
            s = tx_string(t);
        else
            tx_next(t);
        *sd_push(t->r->a, &v) =
            mlir_new_string(t->r, (const char *)s.at, s.len);
        uint32_t x = tx_accept(t, '=')
                         ? tx_attr(t)
                         : tx_new_attr(t, (mlir_attr){.kind = MLIR_A_UNIT});

        *sd_push(t->r->a, &v) = x;
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, '}');
    return tx_new_attr(
        t, (mlir_attr){.kind = MLIR_A_DICT, .list = v.at, .nlist = v.n});
}

static uint32_t string_attr(mlir_parser *t)
{
    sd_bytes s = tx_string(t);
    mlir_attr at = {.kind = MLIR_A_STRING,
                    .str = mlir_new_str(t->r, (const char *)s.at, s.len)};

    if (tx_accept(t, ':'))
        at.type = tx_type(t) + 1;
    return tx_new_attr(t, at);
}

static uint32_t type_attr(mlir_parser *t)
{
    uint32_t type = tx_type(t);

    return tx_new_attr(t, (mlir_attr){.kind = MLIR_A_TYPE, .type = type});
}

/* What begins with a word. */
static uint32_t word_attr(mlir_parser *t)
{
    const char *start = t->tok.at;

    if (tx_is_word(t, "true") || tx_is_word(t, "false")) {
        bool v = tx_is_word(t, "true");

        tx_next(t);
        return tx_bool(t, v);
    }
    if (tx_accept_word(t, "unit"))
        return tx_new_attr(t, (mlir_attr){.kind = MLIR_A_UNIT});
    if (tx_accept_word(t, "dense"))
        return tx_dense(t);
    if (tx_accept_word(t, "dense_resource"))
        return tx_resource(t);
    if (tx_accept_word(t, "sparse"))
        return sparse(t, start);
    if (tx_accept_word(t, "array"))
        return tx_dense_array(t);
    if (tx_accept_word(t, "loc"))
        return tx_loc_attr(t);
    if (tx_is_word(t, "affine_map") || tx_is_word(t, "affine_set") ||
        tx_is_word(t, "distinct")) {
        tx_next(t);
        return opaque(t, start);
    }
    if (tx_is_type(t))
        return type_attr(t);
    tx_expected(t, "an attribute");
    return 0;
}

uint32_t tx_attr(mlir_parser *t)
{
    uint32_t at = 0;

    if (!tx_enter(t))
        return 0;
    switch (t->tok.kind) {
    case TK_STRING:
        at = string_attr(t);
        break;
    case TK_INT:
    case TK_FLOAT:
        at = tx_number_attr(t);
        break;
    case TK_SYMBOL:
        at = symbol(t);
        break;
    case TK_HASH:
        at = hashed(t);
        break;
    case TK_ID:
        at = word_attr(t);
        break;
    default:
        if (tx_is(t, '['))
            at = array(t);
        else if (tx_is(t, '{'))
            at = tx_dict(t);
        else if (tx_is(t, '-'))
            at = tx_number_attr(t);
        else if (tx_is_type(t))
            at = type_attr(t);
        else
            tx_expected(t, "an attribute");
    }
    tx_leave(t);
    return at;
}
