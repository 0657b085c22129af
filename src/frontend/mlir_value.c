/* What attributes say: strings, dictionaries, numbers, constants, places. */
#include "mlir.h"

const mlir_attr mlir_no_attr = {.kind = MLIR_A_NONE};

/* ---- kinds ---- */

const char *mlir_kind_name(const mlir_attr *at)
{
    static const char *const name[] = {
        [MLIR_A_NONE] = "nothing",
        [MLIR_A_STRING] = "a string",
        [MLIR_A_INT] = "an integer",
        [MLIR_A_FLOAT] = "a float",
        [MLIR_A_ARRAY] = "a list",
        [MLIR_A_DICT] = "a dictionary",
        [MLIR_A_TYPE] = "a type",
        [MLIR_A_UNIT] = "a unit",
        [MLIR_A_ENUM] = "an enumeration's value",
        [MLIR_A_DENSE] = "dense elements",
        [MLIR_A_DENSE_ARRAY] = "an array of numbers",
        [MLIR_A_DENSE_STRINGS] = "dense strings",
        [MLIR_A_SPARSE] = "sparse elements",
        [MLIR_A_SYMBOL] = "a symbol",
        [MLIR_A_ALIAS] = "an alias",
        [MLIR_A_STRUCT] = "a structure",
        [MLIR_A_MESH_AXES] = "axes of a mesh",
        [MLIR_A_LOC_NAME] = "a location",
        [MLIR_A_LOC_CALL] = "a location",
        [MLIR_A_LOC_FILE] = "a location",
        [MLIR_A_LOC_FUSED] = "a location",
        [MLIR_A_LOC_UNKNOWN] = "a location",
        [MLIR_A_OPAQUE] = "an attribute that is kept as text"};

    return name[at->kind];
}

void mlir_want(mlir_reader *r, const mlir_attr *at, const char *what)
{
    mlir_fail(r, SD_INVALID, "%s where %s should be", mlir_kind_name(at), what);
}

/* ---- strings and dictionaries ---- */

/* A symbol's name is one step down. */
static const mlir_attr *string_of(mlir_reader *r, const mlir_attr *at)
{
    if (at->kind == MLIR_A_SYMBOL && at->nlist == 1)
        at = mlir_attr_at(r, at->list[0]);
    return at->kind == MLIR_A_STRING ? at : &mlir_no_attr;
}

bool mlir_is_string(mlir_reader *r, const mlir_attr *at, const char *s)
{
    sd_bytes b;

    at = string_of(r, at);
    if (at->kind != MLIR_A_STRING)
        return false;
    b = mlir_str(r, at->str);
    return b.len == strlen(s) && memcmp(b.at, s, b.len) == 0;
}

const char *mlir_text(mlir_reader *r, const mlir_attr *at)
{
    at = string_of(r, at);
    return at->kind == MLIR_A_STRING ? mlir_cstr(r, at->str) : NULL;
}

sd_bytes mlir_key(mlir_reader *r, const mlir_attr *at)
{
    if (at->kind == MLIR_A_STRING)
        return mlir_str(r, at->str);
    mlir_want(r, at, "the key of a dictionary");
    return (sd_bytes){(const uint8_t *)"", 0};
}

uint32_t mlir_dict_find(mlir_reader *r, const mlir_op *op, const char *key,
                        size_t len)
{
    const mlir_attr *d;

    if (op->dict < 0)
        return MLIR_ABSENT;
    d = mlir_attr_at(r, (uint64_t)op->dict);
    for (int i = 0; d->kind == MLIR_A_DICT && i + 1 < d->nlist; i += 2) {
        const mlir_attr *k = mlir_attr_at(r, d->list[i]);
        sd_bytes s;

        if (k->kind != MLIR_A_STRING)
            continue;
        s = mlir_str(r, k->str);
        if (s.len == len && memcmp(s.at, key, len) == 0)
            return d->list[i + 1];
    }
    return MLIR_ABSENT;
}

const mlir_attr *mlir_dict_get(mlir_reader *r, const mlir_attr *d,
                               const char *key)
{
    if (d->kind != MLIR_A_DICT)
        return &mlir_no_attr;
    for (int i = 0; i + 1 < d->nlist; i += 2)
        if (mlir_is_string(r, mlir_attr_at(r, d->list[i]), key))
            return mlir_attr_at(r, d->list[i + 1]);
    return &mlir_no_attr;
}

const mlir_attr *mlir_discardable(mlir_reader *r, const mlir_op *op,
                                  const char *name)
{
    uint32_t k = mlir_dict_find(r, op, name, strlen(name));

    return k == MLIR_ABSENT ? &mlir_no_attr : mlir_attr_at(r, k);
}

const mlir_attr *mlir_inherent(mlir_reader *r, const mlir_op *op,
                               const char *name)
{
    const vhlo_row *row = r->name.at[op->name].row;
    vhlo_prop p;
    int k = row ? vhlo_prop_index(row, name, strlen(name), &p) : -1;

    if (k < 0 || op->prop[k] == MLIR_ABSENT)
        return &mlir_no_attr;
    return mlir_attr_at(r, op->prop[k]);
}

/* ---- numbers ---- */

static int64_t extend(uint64_t bits, int width, bool is_signed)
{
    if (is_signed && width < 64 && width > 0 && (bits >> (width - 1)) & 1)
        return (int64_t)(bits | ~UINT64_C(0) << width);
    return (int64_t)bits;
}

int64_t mlir_int(mlir_reader *r, const mlir_attr *at)
{
    const mlir_type *t;

    if (at->kind == MLIR_A_ENUM)
        return (int64_t)(at->bits & INT64_MAX);
    if (at->kind == MLIR_A_UNIT)
        return 1;
    if (at->kind != MLIR_A_INT || at->nnum) {
        mlir_want(r, at, "an integer of at most 64 bits");
        return 0;
    }
    t = mlir_type_at(r, at->type);
    return extend(at->bits, t->width, t->is_signed);
}

double mlir_float(mlir_reader *r, const mlir_attr *at)
{
    sd_dtype t;

    if (at->kind != MLIR_A_FLOAT || !mlir_dtype(r, at->type, &t) ||
        sd_dtype_bytes(t) > sizeof at->bits) {
        mlir_want(r, at, "a float of at most 64 bits");
        return 0;
    }
    return sd_scalar_to_f64(t, &at->bits); /* little-endian, as the format */
}

/* bytecode.md 6: four ways for i1, two for the rest */
bool mlir_dense_of(mlir_reader *r, const mlir_attr *at, sd_dtype t, int64_t n,
                   mlir_dense *out)
{
    size_t w = sd_dtype_bytes(t), len = at->blob.len, need;

    *out = (mlir_dense){at->blob.at, n, w, false, false};
    if (at->kind != MLIR_A_DENSE && at->kind != MLIR_A_DENSE_ARRAY) {
        mlir_want(r, at, "dense elements");
        return false;
    }
    if (n == 0 && len == 0)
        return true;
    if (t == SD_PRED && at->kind == MLIR_A_DENSE) {
        out->splat = len == 1 && at->blob.at[0] == 0xff;
        out->bits = !out->splat && len == (size_t)((n + 7) / 8);
        if (out->splat || out->bits || len == (size_t)n)
            return true;
    }
    if (len == w && n != 1 && at->kind == MLIR_A_DENSE) {
        out->splat = true;
        return true;
    }
    if (sd_mul_size((size_t)n, w, &need) && len == need)
        return true;
    mlir_fail(r, SD_INVALID,
              "%zu bytes for a constant of %" PRId64 " elements of %s", len, n,
              sd_dtype_name(t));
    return false;
}

void mlir_dense_elem(const mlir_dense *d, int64_t i, void *out)
{
    if (d->splat)
        i = 0;
    if (d->bits)
        *(uint8_t *)out =
            d->n == 1 ? d->at[0] != 0 : (d->at[i / 8] >> (i % 8)) & 1;
    else
        memcpy(out, d->at + (size_t)i * d->width, d->width);
}

static bool is_short(mlir_reader *r, int64_t n, int max)
{
    if (n > max)
        mlir_fail(r, SD_INVALID,
                  "%" PRId64 " integers where at most %d should be", n, max);
    return n <= max;
}

static hlo_dims ints_of_list(mlir_reader *r, const mlir_attr *at, int max)
{
    int64_t *v;

    if (!is_short(r, at->nlist, max))
        return (hlo_dims){0};
    v = sd_arena_array(r->out, int64_t, at->nlist + 1);
    for (int i = 0; i < at->nlist; i++)
        v[i] = mlir_int(r, mlir_attr_at(r, at->list[i]));
    return (hlo_dims){v, at->nlist};
}

static bool dense_count(mlir_reader *r, const mlir_attr *at, sd_dtype *t,
                        int64_t *n)
{
    const mlir_type *type = mlir_type_at(r, at->type);
    const sd_shape *s;

    if (at->kind == MLIR_A_DENSE_ARRAY) {
        *n = (int64_t)SD_MIN(at->bits, (uint64_t)INT64_MAX);
        *t = type->dtype;
        return type->kind == MLIR_T_ELEM;
    }
    if (type->kind != MLIR_T_TENSOR || !(s = mlir_shape(r, at->type)))
        return false;
    *t = s->dtype;
    *n = sd_shape_count(s);
    return true;
}

hlo_dims mlir_ints(mlir_reader *r, const mlir_attr *at, int max)
{
    mlir_dense d;
    sd_dtype t = SD_S64;
    int64_t n = 0, *v;
    uint64_t bits;

    if (at->kind == MLIR_A_ARRAY)
        return ints_of_list(r, at, max);
    if ((at->kind != MLIR_A_DENSE && at->kind != MLIR_A_DENSE_ARRAY) ||
        !dense_count(r, at, &t, &n) ||
        (!sd_is_int(t) && sd_dtype_kind(t) != SD_K_PRED)) {
        mlir_want(r, at, "integers");
        return (hlo_dims){0};
    }
    if (!is_short(r, n, max))
        return (hlo_dims){0};
    if (!mlir_dense_of(r, at, t, n, &d))
        return (hlo_dims){0};
    v = sd_arena_array(r->out, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++) {
        bits = 0;
        mlir_dense_elem(&d, i, &bits);
        v[i] = t == SD_PRED
                   ? bits != 0
                   : extend(bits, sd_dtype_table[t].bits, sd_is_signed(t));
    }
    return (hlo_dims){v, (int)n};
}

/* ---- defaults ---- */

static bool zero_bytes(sd_bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.at[i])
            return false;
    return true;
}

static bool is_zero(mlir_reader *r, const mlir_attr *at, int depth)
{
    int step = at->kind == MLIR_A_DICT || at->kind == MLIR_A_STRUCT ? 2 : 1;

    switch (at->kind) {
    case MLIR_A_INT:
    case MLIR_A_FLOAT:
    case MLIR_A_ENUM:
        return !at->bits && !at->nnum;
    case MLIR_A_STRING:
        return mlir_str(r, at->str).len == 0;
    case MLIR_A_DENSE:
    case MLIR_A_DENSE_ARRAY:
        return zero_bytes(at->blob);
    case MLIR_A_ARRAY:
    case MLIR_A_DICT:
    case MLIR_A_STRUCT:
        if (at->kind == MLIR_A_DICT)
            return at->nlist == 0;
        for (int i = step - 1; i < at->nlist; i += step)
            if (depth > MLIR_ATTR_DEPTH ||
                !is_zero(r, mlir_attr_at(r, at->list[i]), depth + 1))
                return false;
        return true;
    default:
        return false;
    }
}

bool mlir_is_zero(mlir_reader *r, const mlir_attr *at)
{
    return is_zero(r, at, 0);
}

/* ---- locations ---- */

/* An operation's name may end in a colon and its type, which is mostly empty.
 */
static const char *op_name(mlir_reader *r, const mlir_attr *at)
{
    const char *s = mlir_text(r, at);
    size_t n = s ? strlen(s) : 0;

    if (n < 2 || s[n - 1] != ':')
        return s;
    return sd_arena_str(r->out, s, n - 1);
}

/* The name that is outermost, and the place in a file that is nearest to the
 * operation: JAX nests name(op) -> call(name(function)(file), caller...). */
mlir_where mlir_locate(mlir_reader *r, uint64_t loc)
{
    mlir_where w = {0};

    for (int i = 0; i < 32 && loc < (uint64_t)r->attr.n; i++) {
        const mlir_attr *at = mlir_attr_at(r, loc);

        switch (at->kind) {
        case MLIR_A_LOC_NAME:
            if (!w.op_name)
                w.op_name = op_name(r, mlir_attr_at(r, at->list[0]));
            loc = at->list[1];
            break;
        case MLIR_A_LOC_CALL:
        case MLIR_A_LOC_FUSED:
            if (!at->nlist)
                return w;
            loc = at->list[0];
            break;
        case MLIR_A_LOC_FILE:
            w.file = mlir_text(r, mlir_attr_at(r, at->list[0]));
            w.line = at->nnum ? (int)at->num[0] : 0;
            return w;
        default:
            return w;
        }
    }
    return w;
}
