/* Constants as MLIR spells them: numbers, and dense elements of numbers and of
 * strings. */
#include "mlir.h"

enum { LONG_LIST = 64 }; /* longer constants are written as hex bytes */

/* ---- numbers ---- */

/* Seventeen digits give a double back, nine a float. */
static void print_float(sd_dtype t, const void *p, sd_buf *b)
{
    double v = sd_scalar_to_f64(t, p);

    if (v != v || v - v != 0) { /* MLIR writes these as bits */
        uint64_t bits = 0;

        memcpy(&bits, p, sd_dtype_bytes(t));
        sd_buf_fmt(b, "0x%0*" PRIX64, 2 * (int)sd_dtype_bytes(t), bits);
        return;
    }
    sd_buf_fmt(b, t == SD_F64 ? "%.16e" : "%.8e", v);
}

void mlir_print_scalar(sd_dtype t, const void *p, sd_buf *b)
{
    size_t half = sd_dtype_bytes(t) / 2;

    switch (sd_dtype_kind(t)) {
    case SD_K_PRED:
        sd_buf_str(b, *(const uint8_t *)p ? "true" : "false");
        break;
    case SD_K_FLOAT:
        print_float(t, p, b);
        break;
    case SD_K_UINT:
        sd_buf_fmt(b, "%" PRIu64, (uint64_t)sd_scalar_to_s64(t, p));
        break;
    case SD_K_COMPLEX:
        sd_buf_str(b, "(");
        print_float(sd_dtype_part(t), p, b);
        sd_buf_str(b, ",");
        print_float(sd_dtype_part(t), (const char *)p + half, b);
        sd_buf_str(b, ")");
        break;
    default:
        sd_buf_fmt(b, "%" PRId64, sd_scalar_to_s64(t, p));
    }
}

/* Types that no HLO has: their bits. */
static void print_odd_number(const mlir_attr *at, sd_buf *b)
{
    sd_buf_str(b, "0x");
    for (int i = at->nnum; i-- > 0;)
        sd_buf_fmt(b, "%016" PRIX64, (uint64_t)at->num[i]);
    if (!at->nnum)
        sd_buf_fmt(b, "%" PRIX64, at->bits);
}

void mlir_print_number(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    sd_dtype t;
    bool known = mlir_dtype(r, at->type, &t);

    if (known && sd_dtype_bytes(t) <= sizeof at->bits)
        mlir_print_scalar(t, &at->bits, b);
    else
        print_odd_number(at, b);
    if (known && t == SD_PRED)
        return;
    sd_buf_str(b, " : ");
    mlir_print_type(r, at->type, b);
}

/* ---- dense elements ---- */

/* Brackets open before element i and close behind it where it is the first or
 * last of a row. */
static int row_ends(const mlir_type *t, int64_t i)
{
    int n = 0;

    for (int d = t->rank; d-- > 0 && t->dim[d] > 0 && i % t->dim[d] == 0;) {
        i /= t->dim[d];
        n++;
    }
    return n;
}

static void print_list(const mlir_dense *d, const mlir_type *shape, sd_dtype t,
                       sd_buf *b)
{
    for (int64_t i = 0; i < d->n; i++) {
        uint64_t v[2] = {0};

        mlir_dense_elem(d, i, v);
        sd_buf_str(b, i ? ", " : "");
        for (int k = shape ? row_ends(shape, i) : 0; k > 0; k--)
            sd_buf_str(b, "[");
        mlir_print_scalar(t, v, b);
        for (int k = shape ? row_ends(shape, i + 1) : 0; k > 0; k--)
            sd_buf_str(b, "]");
    }
}

static void print_hex(sd_bytes s, sd_buf *b)
{
    sd_buf_str(b, "\"0x");
    for (size_t i = 0; i < s.len; i++)
        sd_buf_fmt(b, "%02X", s.at[i]);
    sd_buf_str(b, "\"");
}

/* One value for all, a list, or bytes where the list would be long or its
 * type has no numbers of ours. */
static void print_elements(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    const mlir_type *t = mlir_type_at(r, at->type);
    const sd_shape *s;
    uint64_t v[2] = {0};
    mlir_dense d;

    if (t->kind == MLIR_T_TENSOR &&
        mlir_type_at(r, t->elem)->kind != MLIR_T_ELEM) {
        if (at->blob.len)
            print_hex(at->blob, b);
        return;
    }
    if (!(s = mlir_shape(r, at->type)) ||
        !mlir_dense_of(r, at, s->dtype, sd_shape_count(s), &d) || !d.n)
        return;
    if (d.splat || t->rank == 0) {
        mlir_dense_elem(&d, 0, v);
        mlir_print_scalar(s->dtype, v, b);
    } else if (d.n > LONG_LIST && s->dtype != SD_PRED) {
        print_hex(at->blob, b);
    } else {
        print_list(&d, t, s->dtype, b);
    }
}

static void print_tensor(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    sd_buf_str(b, "dense<");
    print_elements(r, at, b);
    sd_buf_str(b, "> : ");
    mlir_print_type(r, at->type, b);
}

static void print_dense_array(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    mlir_dense d;
    sd_dtype t;
    int64_t n = (int64_t)(at->bits & INT64_MAX);

    if (!mlir_dtype(r, at->type, &t) || !mlir_dense_of(r, at, t, n, &d))
        return;
    sd_buf_str(b, "array<");
    mlir_print_type(r, at->type, b);
    sd_buf_str(b, n ? ": " : "");
    print_list(&d, NULL, t, b);
    sd_buf_str(b, ">");
}

static void print_strings(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    sd_buf_str(b, at->bits || !at->nlist ? "dense<" : "dense<[");
    for (int i = 0; i < at->nlist; i++) {
        sd_buf_str(b, i ? ", " : "");
        mlir_print_quoted(mlir_str(r, at->list[i]), b);
    }
    sd_buf_str(b, at->bits || !at->nlist ? "> : " : "]> : ");
    mlir_print_type(r, at->type, b);
}

static void print_sparse(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    sd_buf_str(b, "sparse<");
    for (int i = 0; i < 2; i++) {
        const mlir_attr *x = mlir_attr_at(r, at->list[i]);

        sd_buf_str(b, i ? ", " : "");
        if (x->kind == MLIR_A_DENSE)
            print_elements(r, x, b);
    }
    sd_buf_str(b, "> : ");
    mlir_print_type(r, at->type, b);
}

void mlir_print_dense(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    if (at->kind == MLIR_A_DENSE_ARRAY)
        print_dense_array(r, at, b);
    else if (at->kind == MLIR_A_DENSE_STRINGS)
        print_strings(r, at, b);
    else if (at->kind == MLIR_A_SPARSE)
        print_sparse(r, at, b);
    else
        print_tensor(r, at, b);
}
