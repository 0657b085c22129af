/* Attributes of builtin and vhlo, decoded when asked for. */
#include "mlir.h"

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

static void read_number(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    int w = mlir_type_at(r, at->type)->width;

    if (w <= 0)
        mlir_fail(r, SD_INVALID, "a number of a type that is no number's");
    else if (w > 64)
        read_words(r, c, w, at);
    else
        at->bits = read_bits(c, w);
}

/* A resource of kind 0: alignment, size, padding, bytes. */
static void read_resource(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    uint64_t h = mlir_varint(c);
    sd_cursor x;

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

static void read_places(mlir_reader *r, sd_cursor *c, mlir_attr *at, uint64_t n)
{
    int64_t *v = sd_arena_array(r->a, int64_t, 4);

    if (n > 4) {
        sd_cursor_fail(c, "at most four numbers of a place");
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        v[i] = (int64_t)(mlir_varint(c) & INT32_MAX);
    at->num = v;
    at->nnum = (int)n;
}

static void read_place(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    read_places(r, c, at, 2);
}

static void read_range(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    read_places(r, c, at, mlir_varint(c));
}

/* result indices, operand, operand's indices -> operand, n, then both */
static void read_alias(mlir_reader *r, sd_cursor *c, mlir_attr *at)
{
    sd_vec(int64_t) v = {0};
    uint64_t n = mlir_varint(c);

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

    at->code = MLIR_S_ACCURACY;
    for (int i = 0; i < 4; i++) {
        const char *name = mlir_structs[MLIR_S_ACCURACY].field[i];

        list[2 * i] = mlir_new_string(r, name, strlen(name));
        list[2 * i + 1] =
            i < 2 ? new_number(r, MLIR_A_FLOAT, "f64", read_bits(c, 64))
            : i == 2
                ? new_number(r, MLIR_A_INT, "i64", (uint64_t)mlir_svarint(c))
                : mlir_index(c);
    }
    at->list = list;
    at->nlist = 8;
}

/* How an attribute lies in the file: its code in either dialect (-1: it has
 * none there), its parts by a letter each, and a reader of what letters do not
 * say, which goes on behind them.
 *   T its type   t its type + 1, or 0   S a string   V a number   B bytes
 *   E a number, that of an enumeration, whose code is the attribute's
 * and into its list
 *   A an attribute   L attributes, counted   P pairs of them, counted
 *   R numbers of strings or attributes, to the end
 *   M an attribute that tells of those before it */
typedef struct {
    int8_t vhlo, builtin;
    uint8_t kind;
    const char *parts;
    void (*read)(mlir_reader *r, sd_cursor *c, mlir_attr *at);
} attr_row;
static const attr_row rows[] = {
    {1, 0, MLIR_A_ARRAY, "L", NULL},
    {6, 1, MLIR_A_DICT, "P", NULL},
    {14, 2, MLIR_A_STRING, "S", NULL},
    {-1, 3, MLIR_A_STRING, "St", NULL},
    {-1, 4, MLIR_A_SYMBOL, "A", NULL},
    {-1, 5, MLIR_A_SYMBOL, "AL", NULL},
    {17, 6, MLIR_A_TYPE, "T", NULL},
    {-1, 7, MLIR_A_UNIT, "", NULL},
    {9, 8, MLIR_A_INT, "T", read_number},
    {8, 9, MLIR_A_FLOAT, "T", read_number},
    {-1, 10, MLIR_A_LOC_CALL, "AA", NULL},
    {-1, 11, MLIR_A_LOC_FILE, "A", read_place},
    {-1, 12, MLIR_A_LOC_FUSED, "L", NULL},
    {-1, 13, MLIR_A_LOC_FUSED, "LM", NULL},
    {-1, 14, MLIR_A_LOC_NAME, "AA", NULL},
    {-1, 15, MLIR_A_LOC_UNKNOWN, "", NULL},
    {-1, 16, MLIR_A_DENSE, "T", read_resource},
    {-1, 17, MLIR_A_DENSE_ARRAY, "TVB", NULL},
    {15, 18, MLIR_A_DENSE, "TB", NULL},
    {-1, 19, MLIR_A_DENSE_STRINGS, "TVR", NULL}, /* V: 1 string for all */
    {-1, 20, MLIR_A_SPARSE, "TAA", NULL},
    {-1, 22, MLIR_A_LOC_FILE, "A", read_range},
    {MLIR_E_BOOL, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_DIRECTION, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_COMPARE, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_API, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_FFT, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_PRECISION, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_RNG_ALGORITHM, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_RNG_DISTRIBUTION, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_TRANSPOSE, -1, MLIR_A_ENUM, "E", NULL},
    {MLIR_E_ACCURACY, -1, MLIR_A_ENUM, "E", NULL},
    {10, -1, MLIR_A_ALIAS, "", read_alias},
    {20, -1, MLIR_A_STRUCT, "", read_accuracy},
};

static const attr_row *find_row(mlir_dialect_id dialect, uint64_t code)
{
    for (size_t i = 0; i < SD_COUNTOF(rows); i++) {
        int k = dialect == MLIR_D_VHLO      ? rows[i].vhlo
                : dialect == MLIR_D_BUILTIN ? rows[i].builtin
                                            : -1;

        if (k >= 0 && (uint64_t)k == code)
            return &rows[i];
    }
    return NULL;
}

typedef sd_vec(uint32_t) numbers;

static void read_list(mlir_reader *r, sd_cursor *c, numbers *v, int each)
{
    uint64_t n = mlir_varint(c);

    if (n > sd_cursor_left(c)) {
        sd_cursor_fail(c, "as many attributes as there are bytes");
        return;
    }
    for (uint64_t i = 0; i < n * (uint64_t)each; i++)
        *sd_push(r->a, v) = mlir_index(c);
}

static void read_part(mlir_reader *r, sd_cursor *c, char part, mlir_attr *at,
                      numbers *v)
{
    switch (part) {
    case 'T':
        at->type = mlir_index(c);
        break;
    case 't':
        at->type = mlir_index(c) + 1;
        break;
    case 'S':
        at->str = mlir_index(c);
        break;
    case 'V':
    case 'E':
        at->bits = mlir_varint(c);
        break;
    case 'B':
        at->blob = sd_read_bytes(c, mlir_varint(c));
        break;
    case 'M':
        at->code = 1;
        *sd_push(r->a, v) = mlir_index(c);
        break;
    case 'A':
        *sd_push(r->a, v) = mlir_index(c);
        break;
    case 'R':
        while (sd_cursor_left(c) && !c->bad)
            *sd_push(r->a, v) = mlir_index(c);
        break;
    default:
        read_list(r, c, v, part == 'P' ? 2 : 1);
    }
}

static void decode(mlir_reader *r, const mlir_entry *e, sd_cursor *c,
                   mlir_attr *at)
{
    static const char *const thing[] = {[MLIR_D_BUILTIN] = "builtin attribute",
                                        [MLIR_D_VHLO] = "vhlo attribute",
                                        [MLIR_D_SDY] = "sdy attribute",
                                        [MLIR_D_STABLEHLO] = NULL};
    uint64_t code = e->coded ? mlir_varint(c) : 0;
    const attr_row *row;
    numbers v = {0};

    if (!e->coded) {
        mlir_fail(r, SD_UNIMPLEMENTED, "an attribute that is kept as text");
    } else if (!thing[e->dialect]) {
        mlir_fail(r, SD_UNIMPLEMENTED,
                  "an attribute of a dialect that is not known");
    } else if ((row = find_row(e->dialect, code))) {
        at->kind = row->kind;
        at->code = row->parts[0] == 'E' ? (uint8_t)code : 0;
        for (const char *p = row->parts; *p; p++)
            read_part(r, c, *p, at, &v);
        at->list = v.at;
        at->nlist = v.n;
        if (row->read)
            row->read(r, c, at);
    } else if (!mlir_read_as_text(r, e->dialect, code, c, at)) {
        mlir_not_known(r, thing[e->dialect], code);
    }
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
