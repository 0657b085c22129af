/* Numbers and constants in text: integers that must fit their type, floats by
 * value or by their bits, lists that follow a shape, bytes in hex. */
#include "mlir_text.h"

#include <stdlib.h>

static double decimal(mlir_parser *t)
{
    const char *s = sd_arena_str(t->r->a, t->tok.at, t->tok.len);

    tx_next(t);
    return strtod(s, NULL);
}

/* A number of a type, as an element of a constant and as an attribute lie in
 * memory.  Integers must fit; floats are decimal, or hex for their bits. */
static void int_value(mlir_parser *t, const mlir_type *type, uint64_t *out)
{
    const char *at = t->tok.at;
    bool minus = tx_is(t, '-'), one = type->width == 1;
    int w = SD_MIN(type->width, 64);
    uint64_t v, mask = w == 64 ? UINT64_MAX : (UINT64_C(1) << w) - 1;

    *out = 0;
    if (one && (tx_is_word(t, "true") || tx_is_word(t, "false"))) {
        *out = tx_is_word(t, "true");
        tx_next(t);
        return;
    }
    v = (uint64_t)tx_integer(t);
    bool fits = minus ? (int64_t)v >= -(int64_t)(mask / 2) - 1 &&
                            (type->is_signed || one)
                      : v <= mask;

    if (!fits)
        tx_fail_at(t, at, "an integer that does not fit %d bits", type->width);
    *out = v & mask;
}

static void float_value(mlir_parser *t, const mlir_type *type, void *out)
{
    const char *at = t->tok.at;
    bool minus, known = type->kind == MLIR_T_ELEM;
    uint64_t bits;
    double v;

    if (t->tok.kind == TK_INT && t->tok.len > 2 && at[1] == 'x') {
        bits = (uint64_t)tx_integer(t);
        if (type->width < 64 && bits >> type->width)
            tx_fail_at(t, at, "more than the %d bits of a float", type->width);
        memcpy(out, &bits, known ? sd_dtype_bytes(type->dtype) : 1);
        return;
    }
    minus = tx_accept(t, '-');
    if (t->tok.kind != TK_FLOAT) {
        tx_expected(t, "a floating-point number");
        return;
    }
    v = decimal(t);
    if (known)
        sd_scalar_of_f64(type->dtype, minus ? -v : v, out);
    else
        tx_fail_at(t, at, "a number of type %s is written as its bits",
                   type->what ? type->what : "unknown");
}

static bool is_float(const mlir_type *x)
{
    return x->kind == MLIR_T_ELEM
               ? sd_is_float(x->dtype)
               : x->kind == MLIR_T_OTHER && x->text && x->text[0] != 'i' &&
                     x->text[0] != 's' && x->text[0] != 'u' && x->width > 0;
}

uint32_t tx_number_attr(mlir_parser *t)
{
    const char *start = t->tok.at, *end;
    bool real;
    uint32_t type;
    const mlir_type *x;
    uint64_t bits = 0;

    tx_accept(t, '-');
    real = t->tok.kind == TK_FLOAT;
    if (!real && t->tok.kind != TK_INT) {
        tx_expected(t, "a number");
        return 0;
    }
    tx_next(t);
    type = tx_accept(t, ':') ? tx_type(t)
                             : tx_scalar_type(t, real ? "f64" : "i64");
    end = t->tok.kind == TK_END ? t->end : t->tok.at;
    x = mlir_type_at(t->r, type);
    if (t->r->st)
        return 0;
    if (x->width < 1 || x->width > 64 || x->kind == MLIR_T_TENSOR) {
        tx_fail_at(t, start,
                   "a number of a type that has none, or of over 64 bits");
        return 0;
    }
    tx_seek(t, start); /* the type is known now */
    if (is_float(x))
        float_value(t, x, &bits);
    else
        int_value(t, x, &bits);
    tx_seek(t, end);
    return tx_new_attr(
        t, (mlir_attr){.kind = is_float(x) ? MLIR_A_FLOAT : MLIR_A_INT,
                       .type = type,
                       .bits = bits});
}

/* ---- dense elements ---- */

typedef struct {
    const mlir_type *shape, *elem;
    uint8_t *at;
    size_t width; /* bytes of an element */
    int64_t n, next;
} dense_list;

static void element(mlir_parser *t, dense_list *d, uint8_t *out)
{
    mlir_type part = {0};
    bool paired = d->elem->kind == MLIR_T_ELEM && sd_is_complex(d->elem->dtype);
    uint64_t v = 0;

    if (paired) {
        mlir_set_elem(&part, sd_dtype_part(d->elem->dtype));
        tx_expect(t, '(');
        float_value(t, &part, out);
        tx_expect(t, ',');
        float_value(t, &part, out + d->width / 2);
        tx_expect(t, ')');
    } else if (is_float(d->elem)) {
        float_value(t, d->elem, out);
    } else {
        int_value(t, d->elem, &v);
        memcpy(out, &v, d->width);
    }
}

/* Brackets follow the shape. */
static void elements(mlir_parser *t, dense_list *d, int dim)
{
    const char *start = t->tok.at;
    int64_t n = 0;

    if (t->r->st)
        return;
    if (dim == d->shape->rank) {
        element(t, d, d->at + (size_t)d->next++ * d->width);
        return;
    }
    tx_expect(t, '[');
    if (!tx_is(t, ']'))
        do {
            if (n++ >= d->shape->dim[dim])
                tx_fail_at(t, start, "more than %" PRId64 " of dimension %d",
                           d->shape->dim[dim], dim);
            elements(t, d, dim + 1);
        } while (!t->r->st && tx_accept(t, ','));
    if (n != d->shape->dim[dim] && !t->r->st)
        tx_fail_at(t, start,
                   "%" PRId64 " elements where dimension %d has %" PRId64, n,
                   dim, d->shape->dim[dim]);
    tx_expect(t, ']');
}

/* "0x0102": the bytes themselves */
static sd_bytes hex_bytes(mlir_parser *t)
{
    const char *where = t->tok.at;
    sd_bytes s = tx_string(t);
    uint8_t *out = sd_arena_alloc(t->r->a, s.len / 2 + 1);

    if (s.len < 2 || s.len % 2 || s.at[0] != '0' || s.at[1] != 'x') {
        tx_fail_at(t, where, "expected \"0x\" and two digits a byte");
        return (sd_bytes){out, 0};
    }
    for (size_t i = 2; i < s.len; i++) {
        if (!tx_is_hex((char)s.at[i])) {
            tx_fail_at(t, where, "'%c' is no hex digit", s.at[i]);
            break;
        }
        out[i / 2 - 1] =
            (uint8_t)(out[i / 2 - 1] * 16 + tx_hex_value((char)s.at[i]));
    }
    return (sd_bytes){out, s.len / 2 - 1};
}

/* Bytes of an element of a constant; 0: none that we read. */
static size_t element_width(mlir_parser *t, const mlir_type **elem)
{
    const mlir_type *x = *elem;

    if (x->kind == MLIR_T_OTHER && x->what &&
        strcmp(x->what, "quantized type") == 0)
        *elem = x = mlir_type_at(t->r, x->elem);
    if (x->kind == MLIR_T_ELEM)
        return sd_dtype_bytes(x->dtype);
    return x->width > 0 && x->width <= 8 ? 1 : 0;
}

static bool count_elements(mlir_parser *t, const char *where,
                           const mlir_type *x, int64_t *n)
{
    *n = 1;
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] < 0 || !sd_mul_i64(*n, x->dim[i], n)) {
            tx_fail_at(t, where, "a constant of a shape that is not fixed");
            return false;
        }
    return true;
}

static sd_bytes dense_body(mlir_parser *t, const char *where,
                           const mlir_type *x)
{
    dense_list d = {.shape = x, .elem = mlir_type_at(t->r, x->elem)};
    bool splat;

    d.width = element_width(t, &d.elem);
    if (t->r->st || !count_elements(t, where, x, &d.n))
        return (sd_bytes){0};
    if (tx_is(t, '>')) {
        if (d.n)
            tx_fail_at(t, where, "no elements in a constant of %" PRId64, d.n);
        return (sd_bytes){0};
    }
    if (t->tok.kind == TK_STRING)
        return hex_bytes(t);
    if (!d.width) {
        tx_fail_at(t, where, "a constant of %s is written as its bytes",
                   d.elem->what ? d.elem->what : "this type");
        return (sd_bytes){0};
    }
    splat = !tx_is(t, '[');
    if (!splat && (size_t)d.n > (size_t)(t->end - t->tok.at)) {
        tx_fail_at(t, where, "%" PRId64 " elements in fewer bytes", d.n);
        return (sd_bytes){0};
    }
    d.at = sd_arena_alloc(t->r->a, splat ? 16 : (size_t)d.n * d.width + 16);
    if (splat && d.n == 0)
        tx_fail_at(t, where, "an element in a constant of none");
    if (splat)
        element(t, &d, d.at);
    else
        elements(t, &d, 0);
    if (splat && d.n != 1 && d.elem->kind == MLIR_T_ELEM &&
        d.elem->dtype == SD_PRED && d.at[0])
        d.at[0] = 0xff; /* bytecode's splat of i1 */
    return (sd_bytes){d.at, splat ? d.width : (size_t)d.n * d.width};
}

static uint32_t dense_strings(mlir_parser *t, uint32_t type)
{
    sd_vec(uint32_t) v = {0};
    bool splat = !tx_accept(t, '[');

    do {
        sd_bytes s = tx_string(t);

        *sd_push(t->r->a, &v) = mlir_new_str(t->r, (const char *)s.at, s.len);
    } while (!splat && tx_accept(t, ','));
    if (!splat)
        tx_expect(t, ']');
    return tx_new_attr(t, (mlir_attr){.kind = MLIR_A_DENSE_STRINGS,
                                      .type = type,
                                      .bits = splat,
                                      .list = v.at,
                                      .nlist = v.n});
}

static bool holds_strings(const mlir_parser *t, const mlir_type *x)
{
    const mlir_type *e = mlir_type_at(t->r, x->elem);

    return e->kind != MLIR_T_ELEM && e->kind != MLIR_T_OTHER;
}

/* <elements> : type.  The type says what the elements are, so they are passed
 * over first and read when it is known. */
uint32_t tx_dense(mlir_parser *t)
{
    const char *open = t->tok.at, *end;
    const mlir_type *x;
    sd_bytes body;
    uint32_t type, at;

    if (!tx_is(t, '<')) {
        tx_expected(t, "'<'");
        return 0;
    }
    tx_balanced(t);
    tx_expect(t, ':');
    type = tx_type(t);
    end = t->tok.kind == TK_END ? t->end : t->tok.at;
    x = mlir_type_at(t->r, type);
    if (t->r->st)
        return 0;
    if (x->kind != MLIR_T_TENSOR) {
        tx_fail_at(t, open, "a constant of a type that is no tensor");
        return 0;
    }
    tx_seek(t, open + 1);
    if (t->tok.kind == TK_STRING && holds_strings(t, x)) {
        at = dense_strings(t, type);
    } else {
        body = dense_body(t, open, x);
        at = tx_new_attr(
            t, (mlir_attr){.kind = MLIR_A_DENSE, .type = type, .blob = body});
    }
    tx_expect(t, '>');
    tx_seek(t, end);
    return at;
}

/* array<i64: 1, 2> */
uint32_t tx_dense_array(mlir_parser *t)
{
    mlir_attr at = {.kind = MLIR_A_DENSE_ARRAY};
    sd_buf b = {.arena = t->r->a};
    dense_list d = {0};
    uint8_t v[16];

    tx_expect(t, '<');
    at.type = tx_type(t);
    d.elem = mlir_type_at(t->r, at.type);
    if (d.elem->kind != MLIR_T_ELEM) {
        tx_expected(t, "an array of numbers");
        return 0;
    }
    d.width = sd_dtype_bytes(d.elem->dtype);
    if (tx_accept(t, ':'))
        do {
            memset(v, 0, sizeof v);
            element(t, &d, v);
            sd_buf_add(&b, v, d.width);
            at.bits++;
        } while (tx_accept(t, ','));
    tx_expect(t, '>');
    at.blob.len = b.len;
    at.blob.at = (const uint8_t *)sd_buf_take(&b);
    return tx_new_attr(t, at);
}

/* dense_resource<key> : type, filled from the end of the file */
uint32_t tx_resource(mlir_parser *t)
{
    mlir_pending p = {.where = t->tok.at};
    uint32_t at;
    bool quoted;

    tx_expect(t, '<');
    quoted = t->tok.kind == TK_STRING;
    p.key = quoted ? tx_string(t)
                   : (sd_bytes){(const uint8_t *)t->tok.at, t->tok.len};
    if (!quoted)
        tx_next(t);
    tx_expect(t, '>');
    tx_expect(t, ':');
    at = tx_new_attr(t, (mlir_attr){.kind = MLIR_A_DENSE, .type = tx_type(t)});
    if (t->r->st)
        return 0;
    p.at = t->r->attr.at[at].memo;
    *sd_push(t->r->a, &t->resource) = p;
    return at;
}
