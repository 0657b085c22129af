/* Attributes as MLIR prints them: the configuration of a typed custom call is
 * a dictionary, and travels as this text. */
#include "mlir.h"

enum { LONG_SPLAT = 4096 };

static void print(mlir_reader *r, const mlir_attr *at, sd_buf *b, int depth);

static void print_quoted(sd_bytes s, sd_buf *b)
{
    sd_buf_str(b, "\"");
    for (size_t i = 0; i < s.len; i++) {
        uint8_t ch = s.at[i];

        if (ch == '"' || ch == '\\')
            sd_buf_fmt(b, "\\%c", ch);
        else if (ch < 0x20 || ch >= 0x7f)
            sd_buf_fmt(b, "\\%02X", ch);
        else
            sd_buf_u8(b, ch);
    }
    sd_buf_str(b, "\"");
}

static bool is_bare(sd_bytes s)
{
    for (size_t i = 0; i < s.len; i++) {
        uint8_t ch = s.at[i];
        bool letter =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
        bool later = (ch >= '0' && ch <= '9') || ch == '$' || ch == '.';

        if (!letter && !(i && later))
            return false;
    }
    return s.len > 0;
}

static void print_dict(mlir_reader *r, const mlir_attr *at, sd_buf *b,
                       int depth)
{
    sd_buf_str(b, "{");
    for (int i = 0; i + 1 < at->nlist; i += 2) {
        const mlir_attr *k = mlir_attr_at(r, at->list[i]);
        const mlir_attr *v = mlir_attr_at(r, at->list[i + 1]);

        if (i)
            sd_buf_str(b, ", ");
        if (k->kind == MLIR_A_STRING) {
            sd_bytes s = mlir_str(r, k->str);

            if (is_bare(s))
                sd_buf_add(b, s.at, s.len);
            else
                print_quoted(s, b);
        }
        if (v->kind == MLIR_A_UNIT)
            continue;
        sd_buf_str(b, " = ");
        print(r, v, b, depth + 1);
    }
    sd_buf_str(b, "}");
}

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

static void print_scalar(sd_dtype t, const void *p, sd_buf *b)
{
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
        print_float(sd_dtype_part(t),
                    (const char *)p + sd_dtype_bytes(sd_dtype_part(t)), b);
        sd_buf_str(b, ")");
        break;
    default:
        sd_buf_fmt(b, "%" PRId64, sd_scalar_to_s64(t, p));
    }
}

static void print_number(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    sd_dtype t;

    if (!mlir_dtype(r, at->type, &t)) {
        mlir_fail(r, SD_UNIMPLEMENTED, "a number of an unusual type");
        return;
    }
    print_scalar(t, &at->bits, b);
    if (t == SD_PRED)
        return;
    sd_buf_str(b, " : ");
    mlir_type_print(r, at->type, b);
}

static void print_list(const mlir_dense *d, sd_dtype t, sd_buf *b)
{
    int64_t n = d->splat && d->n > LONG_SPLAT ? 1 : d->n;

    for (int64_t i = 0; i < n; i++) {
        uint64_t v[2] = {0};

        mlir_dense_elem(d, i, v);
        if (i)
            sd_buf_str(b, ", ");
        print_scalar(t, v, b);
    }
}

/* Rank above one is printed flat, and short splats in full: what reads the
 * text counts elements. */
static void print_dense(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    bool array = at->kind == MLIR_A_DENSE_ARRAY;
    const sd_shape *s = NULL;
    mlir_dense d;
    sd_dtype t = SD_S64;
    int64_t n = (int64_t)(at->bits & INT64_MAX);

    if (array) {
        if (!mlir_dtype(r, at->type, &t))
            return;
    } else {
        if (!(s = mlir_shape(r, at->type)))
            return;
        t = s->dtype;
        n = sd_shape_count(s);
    }
    if (!mlir_dense_of(r, at, t, n, &d))
        return;
    if (array) {
        sd_buf_str(b, "array<");
        mlir_type_print(r, at->type, b);
        sd_buf_str(b, n ? ": " : "");
        print_list(&d, t, b);
        sd_buf_str(b, ">");
        return;
    }
    bool one = s->rank == 0 || (d.splat && n > LONG_SPLAT);

    sd_buf_str(b, one ? "dense<" : "dense<[");
    print_list(&d, t, b);
    sd_buf_str(b, one ? "> : " : "]> : ");
    mlir_type_print(r, at->type, b);
}

static void print(mlir_reader *r, const mlir_attr *at, sd_buf *b, int depth)
{
    if (depth > 16 || b->len > (1u << 24)) {
        mlir_fail(r, SD_INVALID, "an attribute that is nested too deep");
        return;
    }
    if (r->st)
        return;
    switch (at->kind) {
    case MLIR_A_STRING:
        print_quoted(mlir_str(r, at->str), b);
        break;
    case MLIR_A_INT:
    case MLIR_A_FLOAT:
        print_number(r, at, b);
        break;
    case MLIR_A_ENUM: /* only vhlo's bool stands in dictionaries */
        sd_buf_str(b, at->bits ? "true" : "false");
        break;
    case MLIR_A_ARRAY:
        if (at->code == 4) {
            const char *s = mlir_text(r, at);

            sd_buf_fmt(b, "@%s", s ? s : "");
            break;
        }
        sd_buf_str(b, "[");
        for (int i = 0; i < at->nlist; i++) {
            sd_buf_str(b, i ? ", " : "");
            print(r, mlir_attr_at(r, at->list[i]), b, depth + 1);
        }
        sd_buf_str(b, "]");
        break;
    case MLIR_A_DICT:
        print_dict(r, at, b, depth);
        break;
    case MLIR_A_TYPE:
        mlir_type_print(r, at->type, b);
        break;
    case MLIR_A_UNIT:
        sd_buf_str(b, "unit");
        break;
    case MLIR_A_DENSE:
    case MLIR_A_DENSE_ARRAY:
        print_dense(r, at, b);
        break;
    default:
        mlir_fail(r, SD_UNIMPLEMENTED,
                  "an attribute of code %d in a configuration", at->code);
    }
}

void mlir_attr_print(mlir_reader *r, const mlir_attr *at, sd_buf *b)
{
    print(r, at, b, 0);
}
