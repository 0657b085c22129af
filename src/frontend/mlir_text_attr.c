/* Attributes and locations in text. */
#include "mlir_text.h"

#include <stdlib.h>

static uint32_t new_attr(mlir_parser *t, mlir_attr at)
{
    return t->r->st ? 0 : mlir_new_attr(t->r, at);
}

static uint32_t new_text(mlir_parser *t, mlir_attr_kind kind, sd_bytes s)
{
    return new_attr(
        t, (mlir_attr){.kind = kind,
                       .str = mlir_new_str(t->r, (const char *)s.at, s.len)});
}

uint32_t tx_number(mlir_parser *t, mlir_attr_kind kind, const char *type,
                   uint64_t bits)
{
    return new_attr(t, (mlir_attr){.kind = kind,
                                   .type = tx_scalar_type(t, type),
                                   .bits = bits});
}

uint32_t tx_bool(mlir_parser *t, bool v)
{
    return new_attr(
        t, (mlir_attr){.kind = MLIR_A_ENUM, .code = MLIR_E_BOOL, .bits = v});
}

uint32_t tx_new_ints(mlir_parser *t, const int64_t *v, int n)
{
    size_t bytes = sizeof *v * (size_t)n;

    return new_attr(
        t, (mlir_attr){.kind = MLIR_A_DENSE_ARRAY,
                       .type = tx_scalar_type(t, "i64"),
                       .bits = (uint64_t)n,
                       .blob = {sd_arena_copy(t->r->a, v, bytes), bytes}});
}

uint32_t tx_array_of(mlir_parser *t, const uint32_t *v, int n)
{
    return new_attr(
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

/* ---- numbers ---- */

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

/* f6E2M3FN and f6E3M2FN have 64 values each: the nearest is looked for. */
static double f6_value(const char *name, unsigned code)
{
    int mbits = strcmp(name, "f6E2M3FN") == 0 ? 3 : 2,
        bias = mbits == 3 ? 1 : 3;
    int e = (int)(code & 31) >> mbits, m = (int)code & ((1 << mbits) - 1);
    double v = (e ? m + (1 << mbits) : m);

    for (int k = (e ? e : 1) - bias - mbits; k > 0; k--)
        v *= 2;
    for (int k = (e ? e : 1) - bias - mbits; k < 0; k++)
        v /= 2;
    return code & 32 ? -v : v;
}

static double distance(const char *name, double v, unsigned code)
{
    double d = f6_value(name, code) - v;

    return d < 0 ? -d : d;
}

static uint64_t f6_of(const char *name, double v)
{
    unsigned best = v < 0 || (v == 0 && __builtin_signbit(v)) ? 32 : 0;
    unsigned sign = best;

    for (unsigned c = sign; c < sign + 32; c++) {
        double d = distance(name, v, c), b = distance(name, v, best);

        if (d < b || (d == b && !(c & 1)))
            best = c;
    }
    return best;
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
    else if (type->width == 6)
        *(uint8_t *)out = (uint8_t)f6_of(type->text, minus ? -v : v);
    else
        tx_fail_at(t, at, "a number of type %s is written as its bits",
                   type->what ? type->what : "unknown");
}

static bool is_float(const mlir_type *x)
{
    return x->kind == MLIR_T_ELEM
               ? sd_dtype_kind(x->dtype) == SD_K_FLOAT
               : x->kind == MLIR_T_OTHER && x->text && x->text[0] != 'i' &&
                     x->text[0] != 's' && x->text[0] != 'u' && x->width > 0;
}

static uint32_t number(mlir_parser *t)
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
        tx_fail_at(t, start, "a number of a type without, or of over 64 bits");
        return 0;
    }
    tx_seek(t, start); /* the type is known now */
    if (is_float(x))
        float_value(t, x, &bits);
    else
        int_value(t, x, &bits);
    tx_seek(t, end);
    return new_attr(t,
                    (mlir_attr){.kind = is_float(x) ? MLIR_A_FLOAT : MLIR_A_INT,
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
    bool paired = d->elem->kind == MLIR_T_ELEM &&
                  sd_dtype_kind(d->elem->dtype) == SD_K_COMPLEX;
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
            if (n++ >= d->shape->dim[dim] || d->next >= d->n)
                tx_fail_at(t, start, "more than %" PRId64 " of dimension %d",
                           d->shape->dim[dim], dim);
            elements(t, d, dim + 1);
        } while (!t->r->st && tx_accept(t, ','));
    if (n != d->shape->dim[dim] && !t->r->st)
        tx_fail_at(t, start, "%" PRId64 " where dimension %d has %" PRId64, n,
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
        int c = s.at[i] | 0x20, v;

        if ((c < '0' || c > '9' || s.at[i] > '9') && (c < 'a' || c > 'f')) {
            tx_fail_at(t, where, "'%c' is no hex digit", s.at[i]);
            break;
        }
        v = c <= '9' ? c - '0' : c - 'a' + 10;
        out[i / 2 - 1] = (uint8_t)(out[i / 2 - 1] * 16 + v);
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
            tx_fail_at(t, where, "no elements for %" PRId64, d.n);
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
        tx_fail_at(t, where, "an element for a constant without");
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
    return new_attr(t, (mlir_attr){.kind = MLIR_A_DENSE_STRINGS,
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
        at = new_attr(
            t, (mlir_attr){.kind = MLIR_A_DENSE, .type = type, .blob = body});
    }
    tx_expect(t, '>');
    tx_seek(t, end);
    return at;
}

/* array<i64: 1, 2> */
static uint32_t dense_array(mlir_parser *t)
{
    mlir_attr at = {.kind = MLIR_A_DENSE_ARRAY};
    sd_buf b = {0};
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
    at.blob =
        (sd_bytes){sd_arena_copy(t->r->a, b.at ? b.at : "", b.len), b.len};
    sd_buf_finish(&b);
    return new_attr(t, at);
}

/* dense_resource<key> : type, filled from the end of the file */
static uint32_t resource(mlir_parser *t)
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
    at = new_attr(t, (mlir_attr){.kind = MLIR_A_DENSE, .type = tx_type(t)});
    if (t->r->st)
        return 0;
    p.at = t->r->attr.at[at].memo;
    *sd_push(t->r->a, &t->resource) = p;
    return at;
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

/* ---- StableHLO's ---- */

uint32_t tx_enum(mlir_parser *t, int code)
{
    const mlir_enum_row *e = &mlir_enums[code];

    for (uint64_t i = 0; i < SD_COUNTOF(e->value); i++)
        if (e->value[i] && tx_is_word(t, e->value[i])) {
            tx_next(t);
            return new_attr(t, (mlir_attr){.kind = MLIR_A_ENUM,
                                           .code = (uint8_t)code,
                                           .bits = i});
        }
    tx_expected(t, e->name);
    return 0;
}

/* #stablehlo<precision HIGH>, #stablehlo<precision<HIGH>> */
static uint32_t enumeration(mlir_parser *t)
{
    uint32_t at = 0;

    tx_expect(t, '<');
    for (int code = 0; code < MLIR_E_COUNT; code++)
        if (mlir_enums[code].name && tx_is_word(t, mlir_enums[code].name)) {
            tx_next(t);
            bool inner = tx_accept(t, '<');

            at = tx_enum(t, code);
            if (inner)
                tx_expect(t, '>');
            tx_expect(t, '>');
            return at;
        }
    tx_expected(t, "one of StableHLO's enumerations");
    return 0;
}

static uint32_t new_struct(mlir_parser *t, mlir_struct_id id, const uint32_t *v,
                           int n)
{
    return new_attr(t, (mlir_attr){.kind = MLIR_A_STRUCT,
                                   .code = (uint8_t)id,
                                   .list = v,
                                   .nlist = n});
}

/* What a field is that is not there: no dimensions, or 0. */
static uint32_t field_default(mlir_parser *t, mlir_struct_id id, int k)
{
    const char *name = mlir_structs[id].field[k];

    switch (id) {
    case MLIR_S_GATHER:
    case MLIR_S_SCATTER:
    case MLIR_S_DOT:
        return strcmp(name, "index_vector_dim") == 0
                   ? tx_number(t, MLIR_A_INT, "i64", 0)
                   : tx_new_ints(t, NULL, 0);
    case MLIR_S_ACCURACY:
        return k < 2    ? tx_number(t, MLIR_A_FLOAT, "f64", 0)
               : k == 2 ? tx_number(t, MLIR_A_INT, "i64", 0)
                        : new_attr(t, (mlir_attr){.kind = MLIR_A_ENUM,
                                                  .code = MLIR_E_ACCURACY});
    default:
        tx_fail_at(t, t->tok.at, "#stablehlo.%s without %s",
                   mlir_structs[id].name, mlir_field_text(name));
        return 0;
    }
}

static uint32_t field_value(mlir_parser *t)
{
    if (tx_is(t, '['))
        return tx_int_list(t);
    if (tx_is_integer(t))
        return tx_number(t, MLIR_A_INT, "i64", (uint64_t)tx_integer(t));
    return tx_attr(t);
}

uint32_t tx_struct(mlir_parser *t, mlir_struct_id id)
{
    const char *const *f = mlir_structs[id].field;
    uint32_t value[SD_COUNTOF(mlir_structs[id].field)], *list;
    int n = 0, k;

    while (f[n])
        value[n++] = MLIR_ABSENT;
    list = sd_arena_array(t->r->a, uint32_t, 2 * n);
    tx_expect(t, '<');
    while (t->tok.kind == TK_ID) {
        for (k = 0; k < n && !tx_is_word(t, mlir_field_text(f[k])); k++)
            ;
        if (k == n || value[k] != MLIR_ABSENT) {
            tx_expected(t, k == n ? "a field of this attribute"
                                  : "a field that is not there yet");
            return 0;
        }
        tx_next(t);
        tx_expect(t, '=');
        value[k] = field_value(t);
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, '>');
    for (k = 0; k < n && !t->r->st; k++) {
        list[2 * k] = mlir_new_string(t->r, f[k], strlen(f[k]));
        list[2 * k + 1] =
            value[k] == MLIR_ABSENT ? field_default(t, id, k) : value[k];
    }
    return new_struct(t, id, list, 2 * n);
}

/* One of the three parts: batch and feature by letter, the rest by number. */
static void conv_part(mlir_parser *t, const char *letters, uint32_t out[3])
{
    int64_t special[2] = {-1, -1}, spatial[SD_MAX_RANK];
    const char *where = t->tok.at;
    int n = 0, m = 0;

    memset(spatial, 0xff, sizeof spatial);
    tx_expect(t, '[');
    do {
        bool letter = t->tok.kind == TK_ID && t->tok.len == 1;
        int64_t k = letter ? -1 : -2;

        if (letter)
            for (int i = 0; i < 2; i++)
                if (t->tok.at[0] == letters[i] && special[i] < 0)
                    special[i] = n, k = i;
        if (letter && k >= 0) {
            tx_next(t);
        } else if (letter || (k = tx_integer(t)) < 0 || k >= SD_MAX_RANK ||
                   spatial[k] >= 0) {
            tx_fail_at(t, where, "dimension %d is none of a convolution", n);
            return;
        } else {
            spatial[k] = n;
            m++;
        }
    } while (++n < SD_MAX_RANK && tx_accept(t, ','));
    tx_expect(t, ']');
    for (int i = 0; i < m; i++)
        if (spatial[i] < 0 && !t->r->st)
            tx_fail_at(t, where, "spatial dimension %d is missing", i);
    if ((special[0] < 0 || special[1] < 0) && !t->r->st)
        tx_fail_at(t, where, "dimension %c or %c is missing", letters[0],
                   letters[1]);
    out[0] = tx_number(t, MLIR_A_INT, "i64", (uint64_t)special[0]);
    out[1] = tx_number(t, MLIR_A_INT, "i64", (uint64_t)special[1]);
    out[2] = tx_new_ints(t, spatial, m);
}

uint32_t tx_conv(mlir_parser *t)
{
    static const char *const letters[] = {"bf", "io", "bf"};
    uint32_t v[9] = {0}, *list = sd_arena_array(t->r->a, uint32_t, 18);

    for (int i = 0; i < 3; i++) {
        if (i == 1) { /* x, glued to nothing but the bracket */
            if (!tx_is_word(t, "x"))
                tx_expected(t, "'x'");
            tx_next(t);
        } else if (i == 2) {
            tx_expect(t, TK_ARROW);
        }
        conv_part(t, letters[i], v + (size_t)3 * i);
    }
    for (int i = 0; i < 9 && !t->r->st; i++) {
        const char *f = mlir_structs[MLIR_S_CONV].field[i];

        list[2 * i] = mlir_new_string(t->r, f, strlen(f));
        list[2 * i + 1] = v[i];
    }
    return new_struct(t, MLIR_S_CONV, list, 18);
}

static void push_ints(mlir_parser *t, uint32_t list, int64_t *v, int *n)
{
    hlo_dims d = mlir_ints(t->r, mlir_attr_at(t->r, list), SD_MAX_RANK);

    for (int i = 0; i < d.n; i++)
        v[(*n)++] = d.at[i];
}

static uint32_t alias(mlir_parser *t)
{
    int64_t *v = sd_arena_array(t->r->a, int64_t, 2 * SD_MAX_RANK + 2);
    uint32_t out, in;
    int n = 2;

    tx_expect(t, '<');
    tx_expect_word(t, "output_tuple_indices");
    tx_expect(t, '=');
    out = tx_int_list(t);
    tx_expect(t, ',');
    tx_expect_word(t, "operand_index");
    tx_expect(t, '=');
    v[0] = tx_integer(t);
    tx_expect(t, ',');
    tx_expect_word(t, "operand_tuple_indices");
    tx_expect(t, '=');
    in = tx_int_list(t);
    tx_expect(t, '>');
    if (t->r->st)
        return 0;
    push_ints(t, out, v, &n);
    v[1] = n - 2;
    push_ints(t, in, v, &n);
    return new_attr(t, (mlir_attr){.kind = MLIR_A_ALIAS, .num = v, .nnum = n});
}

/* #stablehlo.NAME<...>; false: another dialect's or an alias */
static bool stablehlo_attr(mlir_parser *t, const char *name, uint32_t *out)
{
    static const char prefix[] = "#stablehlo.";
    const char *s = name + sizeof prefix - 1;

    if (strcmp(name, "#stablehlo") == 0 || strcmp(name, "#chlo") == 0) {
        *out = enumeration(t);
        return true;
    }
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    for (int id = 0; id < MLIR_S_COUNT; id++)
        if (strcmp(s, mlir_structs[id].name) == 0) {
            if (id == MLIR_S_CONV) { /* tx_conv has no brackets of its own */
                tx_expect(t, '<');
                *out = tx_conv(t);
                tx_expect(t, '>');
            } else {
                *out = tx_struct(t, (mlir_struct_id)id);
            }
            return true;
        }
    if (strcmp(s, "output_operand_alias") == 0) {
        *out = alias(t);
        return true;
    }
    for (int code = 0; code < MLIR_E_COUNT; code++)
        if (mlir_enums[code].name && strcmp(s, mlir_enums[code].name) == 0) {
            tx_expect(t, '<');
            *out = tx_enum(t, code);
            tx_expect(t, '>');
            return true;
        }
    return false;
}

static uint32_t hashed(mlir_parser *t)
{
    const char *start = t->tok.at;
    sd_bytes s = {(const uint8_t *)start, t->tok.len};
    uint32_t known = (uint32_t)sd_key(sd_map_get(t->attr_alias, tx_key(s)));
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
    if (stablehlo_attr(t, name, &at))
        return at;
    if (!tx_is(t, '<')) {
        tx_fail_at(t, start, "%s is not defined", name);
        return 0;
    }
    tx_balanced(t);
    return new_text(t, mesh ? MLIR_A_MESH_AXES : MLIR_A_OPAQUE,
                    tx_from(t, start));
}

/* ---- locations ---- */

static uint32_t location(mlir_parser *t);

/* #loc3, perhaps defined further down: then the entry is filled there. */
static uint32_t loc_alias(mlir_parser *t)
{
    sd_bytes s = {(const uint8_t *)t->tok.at, t->tok.len};
    uint64_t key = tx_key(s);
    uint32_t known = (uint32_t)sd_key(sd_map_get(t->attr_alias, key));

    if (!known && !t->r->st) {
        known = mlir_new_attr(t->r, (mlir_attr){.kind = MLIR_A_NONE}) + 1;
        sd_map_set(t->attr_alias, key, (void *)(uintptr_t)known);
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
            list[1] = new_attr(t, (mlir_attr){.kind = MLIR_A_LOC_UNKNOWN});
        }
        return new_attr(
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
    return new_attr(t, at);
}

static uint32_t call_loc(mlir_parser *t)
{
    uint32_t *list = sd_arena_array(t->r->a, uint32_t, 2);

    tx_expect(t, '(');
    list[0] = location(t);
    tx_expect_word(t, "at");
    list[1] = location(t);
    tx_expect(t, ')');
    return new_attr(
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
    return new_attr(t, at);
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
        at = new_attr(t, (mlir_attr){.kind = MLIR_A_LOC_UNKNOWN});
    else if (tx_accept_word(t, "callsite"))
        at = call_loc(t);
    else if (tx_accept_word(t, "fused"))
        at = fused_loc(t);
    else
        tx_expected(t, "a location");
    tx_leave(t);
    return at;
}

static uint32_t loc_attr(mlir_parser *t)
{
    uint32_t at;

    tx_expect(t, '(');
    at = location(t);
    tx_expect(t, ')');
    return at;
}

/* Line and column of a place; asked in the order of the file, mostly. */
static void count_lines(mlir_parser *t, const char *where, int64_t out[2])
{
    const char *p = t->line_at ? t->line_at : t->begin;

    if (!t->line_at || where < p) {
        p = t->line_at = t->begin;
        t->line = 1;
    }
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
    return new_attr(t, (mlir_attr){.kind = MLIR_A_LOC_FILE,
                                   .list = list,
                                   .nlist = 1,
                                   .num = v,
                                   .nnum = 2});
}

uint32_t tx_trailing_loc(mlir_parser *t, const char *where)
{
    return tx_accept_word(t, "loc") ? loc_attr(t) : tx_place(t, where);
}

uint32_t tx_peek_loc(mlir_parser *t, const char *where)
{
    const char *here = t->tok.kind == TK_END ? t->end : t->tok.at;
    uint32_t loc = tx_trailing_loc(t, where);

    tx_seek(t, here);
    return loc;
}

/* ---- all ---- */

static uint32_t symbol(mlir_parser *t)
{
    mlir_attr at = {.kind = MLIR_A_SYMBOL};
    sd_vec(uint32_t) v = {0};

    do {
        sd_bytes s = {(const uint8_t *)t->tok.at + 1, t->tok.len - 1};

        if (t->tok.kind != TK_SYMBOL) {
            tx_expected(t, "a symbol");
            return 0;
        }
        if (s.len && s.at[0] == '"')
            s = tx_string(t);
        else
            tx_next(t);
        *sd_push(t->r->a, &v) =
            mlir_new_string(t->r, (const char *)s.at, s.len);
    } while (tx_accept(t, TK_COLONS));
    at.list = v.at;
    at.nlist = v.n;
    return new_attr(t, at);
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
    return new_attr(
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
                         : new_attr(t, (mlir_attr){.kind = MLIR_A_UNIT});

        *sd_push(t->r->a, &v) = x;
        if (!tx_accept(t, ','))
            break;
    }
    tx_expect(t, '}');
    return new_attr(
        t, (mlir_attr){.kind = MLIR_A_DICT, .list = v.at, .nlist = v.n});
}

static uint32_t string_attr(mlir_parser *t)
{
    sd_bytes s = tx_string(t);
    mlir_attr at = {.kind = MLIR_A_STRING,
                    .str = mlir_new_str(t->r, (const char *)s.at, s.len)};

    if (tx_accept(t, ':'))
        at.type = tx_type(t) + 1;
    return new_attr(t, at);
}

static uint32_t type_attr(mlir_parser *t)
{
    uint32_t type = tx_type(t);

    return new_attr(t, (mlir_attr){.kind = MLIR_A_TYPE, .type = type});
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
        return new_attr(t, (mlir_attr){.kind = MLIR_A_UNIT});
    if (tx_accept_word(t, "dense"))
        return tx_dense(t);
    if (tx_accept_word(t, "dense_resource"))
        return resource(t);
    if (tx_accept_word(t, "sparse"))
        return sparse(t, start);
    if (tx_accept_word(t, "array"))
        return dense_array(t);
    if (tx_accept_word(t, "loc"))
        return loc_attr(t);
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
        at = number(t);
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
            at = number(t);
        else if (tx_is_type(t))
            at = type_attr(t);
        else
            tx_expected(t, "an attribute");
    }
    tx_leave(t);
    return at;
}
