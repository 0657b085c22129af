/* Attributes of builtin and vhlo, decoded when asked for. */
#include "mlir.h"

static void read_list(mlir_reader *r, sd_cursor *c, mlir_attr *at, int each)
{
    uint64_t n = mlir_varint(c);
    uint32_t *list;

    if (n > sd_cursor_left(c)) {
        sd_cursor_fail(c, "as many attributes as there are bytes");
        return;
    }
    list = sd_arena_array(r->a, uint32_t, n *(uint64_t)each + 1);
    for (uint64_t i = 0; i < n * (uint64_t)each; i++)
        list[at->nlist++] = (uint32_t)mlir_varint(c);
    at->list = list;
}

/* k attributes in a row */
static void read_children(mlir_reader *r, sd_cursor *c, mlir_attr *at, int k)
{
    uint32_t *list = sd_arena_array(r->a, uint32_t, k);

    for (int i = 0; i < k; i++)
        list[i] = (uint32_t)mlir_varint(c);
    at->list = list;
    at->nlist = k;
}

/* An integer of w bits as the format keeps it, cut to its width. */
static uint64_t read_bits(sd_cursor *c, int w)
{
    uint64_t v = w <= 8 ? sd_read_u8(c) : (uint64_t)mlir_svarint(c);

    return w >= 64 ? v : v & ((UINT64_C(1) << w) - 1);
}

/* Its words, least significant first, as many as are not zero. */
static void read_words(mlir_reader *r, sd_cursor *c, int w, mlir_attr *at)
{
    uint64_t n = mlir_varint(c);
    int64_t *v;

    if (n > (uint64_t)(w + 63) / 64) {
        sd_cursor_fail(c, "as many words as the number is wide");
        return;
    }
    v = sd_arena_array(r->a, int64_t, n + 1);
    for (uint64_t i = 0; i < n; i++)
        v[i] = mlir_svarint(c);
    at->num = v;
    at->nnum = (int)n;
    at->bits = (uint64_t)v[0];
}

static void read_number(mlir_reader *r, sd_cursor *c, mlir_attr *at,
                        mlir_attr_kind kind)
{
    at->kind = kind;
    at->type = (uint32_t)mlir_varint(c);
    int w = mlir_type_at(r, at->type)->width;

    if (w <= 0)
        mlir_fail(r, SD_INVALID, "a number of a type that is no number's");
    else if (w > 64)
        read_words(r, c, w, at);
    else
        at->bits = read_bits(c, w);
}

static void read_blob(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    (void)r;
    at->kind = MLIR_A_DENSE;
    at->type = (uint32_t)mlir_varint(c);
    at->blob = sd_read_bytes(c, mlir_varint(c));
}

/* A resource of kind 0: alignment, size, padding, bytes. */
static void read_resource(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t h;
    sd_cursor x;

    at->kind = MLIR_A_DENSE;
    at->type = (uint32_t)mlir_varint(c);
    h = mlir_varint(c);
    if (h >= r->nresource || r->resource[h].kind != 0) {
        sd_cursor_fail(c, "a resource of bytes");
        return;
    }
    x = mlir_cursor(r, r->resource[h].data);
    uint64_t align = mlir_varint(&x), size = mlir_varint(&x);

    if (align > 1 && align <= 4096)
        while (!x.bad && (uint64_t)(x.at - r->file.at) % align)
            sd_read_u8(&x);
    at->blob = sd_read_bytes(&x, size);
    mlir_check(r, &x, "a resource");
}

static void read_file_loc(mlir_reader *r, sd_cursor *c, mlir_attr *at,
                          bool range)
{
    int64_t *v = sd_arena_array(r->a, int64_t, 4);

    read_children(r, c, at, 1);
    at->kind = MLIR_A_LOC_FILE;
    uint64_t n = range ? mlir_varint(c) : 2;

    if (n > 4) {
        sd_cursor_fail(c, "at most four numbers of a place");
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        v[i] = (int64_t)(mlir_varint(c) & INT32_MAX);
    at->num = v;
    at->nnum = (int)n;
}

/* The metadata goes behind the locations. */
static void read_fused(mlir_reader *r, sd_cursor *c, mlir_attr *at, bool meta)
{
    uint32_t *list;

    at->kind = MLIR_A_LOC_FUSED;
    read_list(r, c, at, 1);
    at->code = meta;
    if (!meta)
        return;
    list = sd_arena_array(r->a, uint32_t, at->nlist + 1);
    if (at->nlist)
        memcpy(list, at->list, sizeof *list * (size_t)at->nlist);
    list[at->nlist++] = (uint32_t)mlir_varint(c);
    at->list = list;
}

/* root, then what is nested in it */
static void read_nested_symbol(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint32_t root = (uint32_t)mlir_varint(c), *list;

    read_list(r, c, at, 1);
    list = sd_arena_array(r->a, uint32_t, at->nlist + 1);
    list[0] = root;
    if (at->nlist)
        memcpy(list + 1, at->list, sizeof *list * (size_t)at->nlist);
    at->list = list;
    at->nlist++;
    at->kind = MLIR_A_SYMBOL;
}

/* One string for all, or one each: numbers of strings. */
static void read_strings(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    sd_vec(uint32_t) v = {0};

    at->kind = MLIR_A_DENSE_STRINGS;
    at->type = (uint32_t)mlir_varint(c);
    at->bits = mlir_varint(c); /* 1: splat */
    while (sd_cursor_left(c) && !c->bad)
        *sd_push(r->a, &v) = (uint32_t)mlir_varint(c);
    at->list = v.at;
    at->nlist = v.n;
}

static void read_sparse(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    at->kind = MLIR_A_SPARSE;
    at->type = (uint32_t)mlir_varint(c);
    read_children(r, c, at, 2);
}

/* builtin: what is a plain list of children, by code */
static bool read_builtin_children(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    switch (at->code) {
    case 0:
        at->kind = MLIR_A_ARRAY;
        read_list(r, c, at, 1);
        return true;
    case 1:
        at->kind = MLIR_A_DICT;
        read_list(r, c, at, 2);
        return true;
    case 10:
        at->kind = MLIR_A_LOC_CALL;
        read_children(r, c, at, 2);
        return true;
    case 4:
        at->kind = MLIR_A_SYMBOL;
        read_children(r, c, at, 1);
        return true;
    case 5:
        read_nested_symbol(r, c, at);
        return true;
    case 12:
    case 13:
        read_fused(r, c, at, at->code == 13);
        return true;
    case 19:
        read_strings(r, c, at);
        return true;
    case 20:
        read_sparse(r, c, at);
        return true;
    case 14:
        at->kind = MLIR_A_LOC_NAME;
        read_children(r, c, at, 2);
        return true;
    default:
        return false;
    }
}

static void read_builtin(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t code = mlir_varint(c);

    at->code = (uint8_t)SD_MIN(code, 255);
    if (read_builtin_children(r, c, at))
        return;
    switch (code) {
    case 2:
    case 3:
        at->kind = MLIR_A_STRING;
        at->str = (uint32_t)mlir_varint(c);
        if (code == 3)
            at->type = (uint32_t)mlir_varint(c) + 1;
        break;
    case 6:
        at->kind = MLIR_A_TYPE;
        at->type = (uint32_t)mlir_varint(c);
        break;
    case 7:
        at->kind = MLIR_A_UNIT;
        break;
    case 8:
        read_number(r, c, at, MLIR_A_INT);
        break;
    case 9:
        read_number(r, c, at, MLIR_A_FLOAT);
        break;
    case 11:
        read_file_loc(r, c, at, false);
        break;
    case 15:
        at->kind = MLIR_A_LOC_UNKNOWN;
        break;
    case 16:
        read_resource(r, c, at);
        break;
    case 17:
        at->kind = MLIR_A_DENSE_ARRAY;
        at->type = (uint32_t)mlir_varint(c);
        at->bits = mlir_varint(c);
        at->blob = sd_read_bytes(c, mlir_varint(c));
        break;
    case 18:
        read_blob(r, c, at);
        break;
    case 22:
        read_file_loc(r, c, at, true);
        break;
    default:
        mlir_not_known(r, "builtin attribute", code);
    }
}

/* result indices, operand, operand's indices -> operand, n, then both */
static void read_alias(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    sd_vec(int64_t) v = {0};
    uint64_t n = mlir_varint(c);

    at->kind = MLIR_A_ALIAS;
    *sd_push(r->a, &v) = 0;
    *sd_push(r->a, &v) = (int64_t)SD_MIN(n, SD_MAX_RANK);
    for (uint64_t i = 0; i < n && !c->bad; i++)
        *sd_push(r->a, &v) = mlir_svarint(c);
    v.at[0] = mlir_svarint(c);
    if (n > SD_MAX_RANK)
        sd_cursor_fail(c, "at most " SD_STR(SD_MAX_RANK) " tuple indices");
    n = mlir_varint(c);
    for (uint64_t i = 0; i < n && !c->bad; i++)
        *sd_push(r->a, &v) = mlir_svarint(c);
    at->num = v.at;
    at->nnum = v.n;
}

static uint32_t new_number(mlir_reader *r, mlir_attr_kind kind,
                           const char *type, uint64_t bits)
{
    mlir_type t;

    mlir_type_of_name((sd_bytes){(const uint8_t *)type, strlen(type)}, &t);
    return mlir_new_attr(
        r,
        (mlir_attr){.kind = kind, .type = mlir_new_type(r, t), .bits = bits});
}

/* absolute and relative tolerance, ulps, mode */
static void read_accuracy(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint32_t *list = sd_arena_array(r->a, uint32_t, 8);

    at->kind = MLIR_A_STRUCT;
    at->code = MLIR_S_ACCURACY;
    for (int i = 0; i < 4; i++) {
        const char *name = mlir_structs[MLIR_S_ACCURACY].field[i];

        list[2 * i] = mlir_new_string(r, name, strlen(name));
        list[2 * i + 1] =
            i < 2 ? new_number(r, MLIR_A_FLOAT, "f64", read_bits(c, 64))
            : i == 2
                ? new_number(r, MLIR_A_INT, "i64", (uint64_t)mlir_svarint(c))
                : (uint32_t)mlir_varint(c);
    }
    at->list = list;
    at->nlist = 8;
}

/* #stablehlo.bounds<4, ?>: an encoding of dynamic dimensions */
static void read_bounds(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t n = mlir_varint(c);
    sd_buf b = {0};
    size_t len;

    sd_buf_str(&b, "#stablehlo.bounds<");
    for (uint64_t i = 0; i < n && !c->bad; i++) {
        int64_t v = mlir_svarint(c);

        sd_buf_str(&b, i ? ", " : "");
        if (v == INT64_MIN)
            sd_buf_str(&b, "?");
        else
            sd_buf_fmt(&b, "%" PRId64, v);
    }
    sd_buf_str(&b, ">");
    len = b.len;
    at->kind = MLIR_A_OPAQUE;
    at->str = mlir_new_str(r, sd_buf_take(r->a, &b), len);
}

static void read_vhlo(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t code = mlir_varint(c);

    at->code = (uint8_t)SD_MIN(code, 255);
    switch (code) {
    case 1:
        at->kind = MLIR_A_ARRAY;
        read_list(r, c, at, 1);
        break;
    case 2: /* bool */
    case 3:
    case 4:
    case 5:
    case 7:
    case 11:
    case 12:
    case 13:
    case 16:
    case 19: /* enums */
        at->kind = MLIR_A_ENUM;
        at->bits = mlir_varint(c);
        break;
    case 6:
        at->kind = MLIR_A_DICT;
        read_list(r, c, at, 2);
        break;
    case 8:
        read_number(r, c, at, MLIR_A_FLOAT);
        break;
    case 9:
        read_number(r, c, at, MLIR_A_INT);
        break;
    case 10:
        read_alias(r, c, at);
        break;
    case 14:
        at->kind = MLIR_A_STRING;
        at->str = (uint32_t)mlir_varint(c);
        break;
    case 15:
        read_blob(r, c, at);
        break;
    case 17:
        at->kind = MLIR_A_TYPE;
        at->type = (uint32_t)mlir_varint(c);
        break;
    case 18:
        read_bounds(r, c, at);
        break;
    case 20:
        read_accuracy(r, c, at);
        break;
    case 21:
    case 22:
    case 23:
    case 24:
    case 25:
        mlir_read_mesh(r, c, code, at);
        break;
    default:
        mlir_not_known(r, "vhlo attribute", code);
    }
}

static void decode(mlir_reader *r, const mlir_entry *e, sd_cursor *c,
                   mlir_attr *at)
{
    if (!e->coded)
        mlir_fail(r, SD_UNIMPLEMENTED, "an attribute that is kept as text");
    else if (e->dialect == MLIR_D_VHLO)
        read_vhlo(r, c, at);
    else if (e->dialect == MLIR_D_BUILTIN)
        read_builtin(r, c, at);
    else if (e->dialect == MLIR_D_SDY)
        mlir_read_sdy(r, c, at);
    else
        mlir_fail(r, SD_UNIMPLEMENTED,
                  "an attribute of a dialect that is not known");
}

const mlir_attr *mlir_attr_at(mlir_reader *r, uint64_t index)
{
    mlir_entry e;
    mlir_attr *at;
    sd_cursor c;

    if (index >= (uint64_t)r->attr.n) {
        mlir_fail(r, SD_INVALID, "attribute %" PRIu64 ", where there are %d",
                  index, r->attr.n);
        return &mlir_no_attr;
    }
    if (r->attr_depth > MLIR_ATTR_DEPTH) {
        mlir_too_deep(r, "an attribute", MLIR_ATTR_DEPTH);
        return &mlir_no_attr;
    }
    e = r->attr.at[index];
    if (e.memo)
        return e.memo;
    at = sd_arena_new(r->a, mlir_attr);
    c = mlir_cursor(r, e.data);
    r->attr_depth++;
    decode(r, &e, &c, at);
    r->attr_depth--;
    if (!c.bad && !r->st && sd_cursor_left(&c))
        sd_cursor_fail(&c, "the end of the attribute");
    mlir_check(r, &c, "an attribute");
    if (r->st)
        return &mlir_no_attr;
    r->attr.at[index].memo = at; /* the table may have moved */
    return at;
}
