/* Formulas with digits to spare: WORK bits where terms cancel by the digits of
 * two doubles, EXACT bits where sums of squares of doubles must be exact. */
#include "exact.h"

#include <math.h>

enum { WORK = 640, EXACT = 6600 };

void exact_init(exact *v, int bits)
{
    mpfr_init2(v->re, bits);
    mpfr_init2(v->im, bits);
}

void exact_finish(exact *v)
{
    mpfr_clear(v->re);
    mpfr_clear(v->im);
}

void exact_load(sd_dtype t, const void *p, exact *v)
{
    sd_dtype part = sd_dtype_part(t);
    const char *second = (const char *)p + sd_dtype_bytes(part);

    mpfr_set_d(v->re, sd_scalar_to_f64(part, p), MPFR_RNDN);
    mpfr_set_d(v->im, part == t ? 0 : sd_scalar_to_f64(part, second),
               MPFR_RNDN);
}

/* ---- real functions ---- */

typedef void (*real_fn)(mpfr_t r, const mpfr_t a, const mpfr_t b);

#define UNARY_FN(name, call) \
    static void name(mpfr_t r, const mpfr_t a, const mpfr_t b) \
    { \
        (void)b; \
        call; \
    }
#define BINARY_FN(name, call) \
    static void name(mpfr_t r, const mpfr_t a, const mpfr_t b) \
    { \
        call; \
    }
UNARY_FN(r_abs, mpfr_abs(r, a, MPFR_RNDN))
UNARY_FN(r_negate, mpfr_neg(r, a, MPFR_RNDN))
UNARY_FN(r_ceil, mpfr_ceil(r, a))
UNARY_FN(r_floor, mpfr_floor(r, a))
UNARY_FN(r_round_afz, mpfr_round(r, a))
UNARY_FN(r_round_even, mpfr_roundeven(r, a))
UNARY_FN(r_real, mpfr_set(r, a, MPFR_RNDN))
UNARY_FN(r_imag, ((void)a, mpfr_set_zero(r, 1)))
UNARY_FN(r_sqrt, mpfr_sqrt(r, a, MPFR_RNDN))
UNARY_FN(r_cbrt, mpfr_cbrt(r, a, MPFR_RNDN))
UNARY_FN(r_exp, mpfr_exp(r, a, MPFR_RNDN))
UNARY_FN(r_expm1, mpfr_expm1(r, a, MPFR_RNDN))
UNARY_FN(r_log, mpfr_log(r, a, MPFR_RNDN))
UNARY_FN(r_log1p, mpfr_log1p(r, a, MPFR_RNDN))
UNARY_FN(r_sin, mpfr_sin(r, a, MPFR_RNDN))
UNARY_FN(r_cos, mpfr_cos(r, a, MPFR_RNDN))
UNARY_FN(r_tan, mpfr_tan(r, a, MPFR_RNDN))
UNARY_FN(r_tanh, mpfr_tanh(r, a, MPFR_RNDN))
UNARY_FN(r_erf, mpfr_erf(r, a, MPFR_RNDN))
BINARY_FN(r_add, mpfr_add(r, a, b, MPFR_RNDN))
BINARY_FN(r_subtract, mpfr_sub(r, a, b, MPFR_RNDN))
BINARY_FN(r_multiply, mpfr_mul(r, a, b, MPFR_RNDN))
BINARY_FN(r_divide, mpfr_div(r, a, b, MPFR_RNDN))
BINARY_FN(r_remainder, mpfr_fmod(r, a, b, MPFR_RNDN))
BINARY_FN(r_power, mpfr_pow(r, a, b, MPFR_RNDN))
BINARY_FN(r_atan2, mpfr_atan2(r, a, b, MPFR_RNDN))

static void r_sign(mpfr_t r, const mpfr_t a, const mpfr_t b)
{
    (void)b;
    if (mpfr_nan_p(a) || mpfr_zero_p(a))
        mpfr_set(r, a, MPFR_RNDN);
    else
        mpfr_set_si(r, mpfr_signbit(a) ? -1 : 1, MPFR_RNDN);
}

static void r_rsqrt(mpfr_t r, const mpfr_t a, const mpfr_t b)
{
    (void)b;
    mpfr_sqrt(r, a, MPFR_RNDN); /* keeps the sign of zero */
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

static void r_logistic(mpfr_t r, const mpfr_t a, const mpfr_t b)
{
    (void)b;
    mpfr_neg(r, a, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

/* a NaN is the result, which MPFR's own functions do not say */
static void r_maximum(mpfr_t r, const mpfr_t a, const mpfr_t b)
{
    if (mpfr_nan_p(a) || mpfr_nan_p(b))
        mpfr_set_nan(r);
    else
        mpfr_max(r, a, b, MPFR_RNDN);
    if (mpfr_zero_p(a) && mpfr_zero_p(b))
        mpfr_set_zero(r, mpfr_signbit(a) && mpfr_signbit(b) ? -1 : 1);
}

static void r_minimum(mpfr_t r, const mpfr_t a, const mpfr_t b)
{
    if (mpfr_nan_p(a) || mpfr_nan_p(b))
        mpfr_set_nan(r);
    else
        mpfr_min(r, a, b, MPFR_RNDN);
    if (mpfr_zero_p(a) && mpfr_zero_p(b))
        mpfr_set_zero(r, mpfr_signbit(a) || mpfr_signbit(b) ? -1 : 1);
}

/* ---- complex functions ---- */

typedef void (*cplx_fn)(exact *r, const exact *a, const exact *b);

/* r = exp(x) (cos y + i sin y) */
static void polar(exact *r, const mpfr_t x, const mpfr_t y)
{
    mpfr_t e;

    mpfr_init2(e, WORK);
    mpfr_exp(e, x, MPFR_RNDN);
    mpfr_sin_cos(r->im, r->re, y, MPFR_RNDN);
    mpfr_mul(r->re, r->re, e, MPFR_RNDN);
    mpfr_mul(r->im, r->im, e, MPFR_RNDN);
    mpfr_clear(e);
}

/* r = log((1 + x) + i y): of its size, or near 1 of x (2 + x) + y^2, which is
 * the square of its size less 1, without error */
static void log_of_one_and(exact *r, const mpfr_t x, const mpfr_t y)
{
    mpfr_t s, q;

    mpfr_inits2(EXACT, s, q, (mpfr_ptr)NULL);
    mpfr_add_ui(q, x, 1, MPFR_RNDN);
    mpfr_atan2(r->im, y, q, MPFR_RNDN);
    mpfr_hypot(r->re, q, y, MPFR_RNDN);
    if (mpfr_cmp_d(r->re, 0.5) > 0 && mpfr_cmp_d(r->re, 2) < 0) {
        mpfr_add_ui(s, x, 2, MPFR_RNDN);
        mpfr_mul(s, s, x, MPFR_RNDN);
        mpfr_sqr(q, y, MPFR_RNDN);
        mpfr_add(s, s, q, MPFR_RNDN);
        mpfr_set(r->re, s, MPFR_RNDN);
        mpfr_log1p(r->re, r->re, MPFR_RNDN);
        mpfr_div_ui(r->re, r->re, 2, MPFR_RNDN);
    } else {
        mpfr_log(r->re, r->re, MPFR_RNDN);
    }
    mpfr_clears(s, q, (mpfr_ptr)NULL);
}

static void c_log1p(exact *r, const exact *a, const exact *b)
{
    (void)b;
    log_of_one_and(r, a->re, a->im);
}

static void c_log(exact *r, const exact *a, const exact *b)
{
    mpfr_t less;

    (void)b;
    mpfr_init2(less, EXACT);
    mpfr_sub_ui(less, a->re, 1, MPFR_RNDN);
    log_of_one_and(r, less, a->im);
    mpfr_clear(less);
    if (mpfr_zero_p(a->re)) /* of -0 too */
        mpfr_atan2(r->im, a->im, a->re, MPFR_RNDN);
}

static void c_exp(exact *r, const exact *a, const exact *b)
{
    (void)b;
    polar(r, a->re, a->im);
}

static void c_expm1(exact *r, const exact *a, const exact *b)
{
    mpfr_t wide;

    (void)b;
    polar(r, a->re, a->im);
    mpfr_init2(wide, EXACT); /* e^x cos y is near 1 where the part is small */
    mpfr_exp(wide, a->re, MPFR_RNDN);
    if (mpfr_cmp_d(wide, 0.25) > 0 && mpfr_cmp_d(wide, 4) < 0) {
        mpfr_t c;

        mpfr_init2(c, EXACT);
        mpfr_cos(c, a->im, MPFR_RNDN);
        mpfr_mul(wide, wide, c, MPFR_RNDN);
        mpfr_sub_ui(wide, wide, 1, MPFR_RNDN);
        mpfr_set(r->re, wide, MPFR_RNDN);
        mpfr_clear(c);
    } else {
        mpfr_sub_ui(r->re, r->re, 1, MPFR_RNDN);
    }
    mpfr_clear(wide);
}

static void c_multiply(exact *r, const exact *a, const exact *b)
{
    mpfr_fmms(r->re, a->re, b->re, a->im, b->im, MPFR_RNDN);
    mpfr_fmma(r->im, a->re, b->im, a->im, b->re, MPFR_RNDN);
}

static void c_divide(exact *r, const exact *a, const exact *b)
{
    mpfr_t size;

    mpfr_init2(size, WORK);
    mpfr_fmma(size, b->re, b->re, b->im, b->im, MPFR_RNDN);
    mpfr_fmma(r->re, a->re, b->re, a->im, b->im, MPFR_RNDN);
    mpfr_fmms(r->im, a->im, b->re, a->re, b->im, MPFR_RNDN);
    mpfr_div(r->re, r->re, size, MPFR_RNDN);
    mpfr_div(r->im, r->im, size, MPFR_RNDN);
    mpfr_clear(size);
}

static void invert(exact *r)
{
    mpfr_t size;

    mpfr_init2(size, WORK);
    mpfr_fmma(size, r->re, r->re, r->im, r->im, MPFR_RNDN);
    mpfr_div(r->re, r->re, size, MPFR_RNDN);
    mpfr_div(r->im, r->im, size, MPFR_RNDN);
    mpfr_neg(r->im, r->im, MPFR_RNDN);
    mpfr_clear(size);
}

static void c_sqrt(exact *r, const exact *a, const exact *b)
{
    mpfr_t big, other;

    (void)b;
    mpfr_inits2(WORK, big, other, (mpfr_ptr)NULL);
    mpfr_hypot(big, a->re, a->im, MPFR_RNDN);
    mpfr_abs(other, a->re, MPFR_RNDN);
    mpfr_add(big, big, other, MPFR_RNDN);
    mpfr_div_ui(big, big, 2, MPFR_RNDN);
    mpfr_sqrt(big, big, MPFR_RNDN);
    mpfr_div(other, a->im, big, MPFR_RNDN);
    mpfr_div_ui(other, other, 2, MPFR_RNDN);
    if (mpfr_zero_p(big)) {
        mpfr_set_zero(r->re, 1);
        mpfr_set(r->im, a->im, MPFR_RNDN);
    } else if (mpfr_signbit(a->re)) {
        mpfr_abs(r->re, other, MPFR_RNDN);
        mpfr_copysign(r->im, big, a->im, MPFR_RNDN);
    } else {
        mpfr_set(r->re, big, MPFR_RNDN);
        mpfr_set(r->im, other, MPFR_RNDN);
    }
    mpfr_clears(big, other, (mpfr_ptr)NULL);
}

static void c_rsqrt(exact *r, const exact *a, const exact *b)
{
    c_sqrt(r, a, b);
    invert(r);
}

static void c_cbrt(exact *r, const exact *a, const exact *b)
{
    exact l;

    exact_init(&l, WORK);
    c_log(&l, a, b);
    mpfr_div_ui(l.re, l.re, 3, MPFR_RNDN);
    mpfr_div_ui(l.im, l.im, 3, MPFR_RNDN);
    polar(r, l.re, l.im);
    exact_finish(&l);
}

static void c_power(exact *r, const exact *a, const exact *b)
{
    exact l, p;

    exact_init(&l, WORK);
    exact_init(&p, WORK);
    c_log(&l, a, b);
    c_multiply(&p, b, &l);
    polar(r, p.re, p.im);
    exact_finish(&l);
    exact_finish(&p);
}

static void c_logistic(exact *r, const exact *a, const exact *b)
{
    exact n;

    (void)b;
    exact_init(&n, WORK);
    mpfr_neg(n.re, a->re, MPFR_RNDN);
    mpfr_neg(n.im, a->im, MPFR_RNDN);
    polar(r, n.re, n.im);
    mpfr_add_ui(r->re, r->re, 1, MPFR_RNDN);
    invert(r);
    exact_finish(&n);
}

/* sin x cosh y + i cos x sinh y */
static void c_sin(exact *r, const exact *a, const exact *b)
{
    mpfr_t s, c;

    (void)b;
    mpfr_inits2(WORK, s, c, (mpfr_ptr)NULL);
    mpfr_sin_cos(s, c, a->re, MPFR_RNDN);
    mpfr_sinh_cosh(r->im, r->re, a->im, MPFR_RNDN);
    mpfr_mul(r->re, r->re, s, MPFR_RNDN);
    mpfr_mul(r->im, r->im, c, MPFR_RNDN);
    mpfr_clears(s, c, (mpfr_ptr)NULL);
}

/* cos x cosh y - i sin x sinh y */
static void c_cos(exact *r, const exact *a, const exact *b)
{
    mpfr_t s, c;

    (void)b;
    mpfr_inits2(WORK, s, c, (mpfr_ptr)NULL);
    mpfr_sin_cos(s, c, a->re, MPFR_RNDN);
    mpfr_sinh_cosh(r->im, r->re, a->im, MPFR_RNDN);
    mpfr_mul(r->re, r->re, c, MPFR_RNDN);
    mpfr_mul(r->im, r->im, s, MPFR_RNDN);
    mpfr_neg(r->im, r->im, MPFR_RNDN);
    mpfr_clears(s, c, (mpfr_ptr)NULL);
}

/* (sin 2x + i sinh 2y) / (cos 2x + cosh 2y) */
static void c_tan(exact *r, const exact *a, const exact *b)
{
    mpfr_t s, c, size;

    (void)b;
    mpfr_inits2(WORK, s, c, size, (mpfr_ptr)NULL);
    mpfr_mul_ui(s, a->re, 2, MPFR_RNDN);
    mpfr_mul_ui(c, a->im, 2, MPFR_RNDN);
    mpfr_sin_cos(r->re, size, s, MPFR_RNDN);
    mpfr_sinh_cosh(r->im, s, c, MPFR_RNDN);
    mpfr_add(size, size, s, MPFR_RNDN);
    mpfr_div(r->re, r->re, size, MPFR_RNDN);
    mpfr_div(r->im, r->im, size, MPFR_RNDN);
    mpfr_clears(s, c, size, (mpfr_ptr)NULL);
}

/* -i tan(i a) */
static void c_tanh(exact *r, const exact *a, const exact *b)
{
    exact turned;

    exact_init(&turned, WORK);
    mpfr_neg(turned.re, a->im, MPFR_RNDN);
    mpfr_set(turned.im, a->re, MPFR_RNDN);
    c_tan(r, &turned, b);
    mpfr_swap(r->re, r->im);
    mpfr_neg(r->im, r->im, MPFR_RNDN);
    exact_finish(&turned);
}

/* -i log((b + i a) / sqrt(a^2 + b^2)) */
static void c_atan2(exact *r, const exact *a, const exact *b)
{
    exact p, q;

    exact_init(&p, EXACT);
    exact_init(&q, EXACT);
    c_multiply(&p, a, a);
    c_multiply(&q, b, b);
    mpfr_add(p.re, p.re, q.re, MPFR_RNDN);
    mpfr_add(p.im, p.im, q.im, MPFR_RNDN);
    c_sqrt(&q, &p, NULL);
    mpfr_sub(p.re, b->re, a->im, MPFR_RNDN);
    mpfr_add(p.im, b->im, a->re, MPFR_RNDN);
    c_divide(r, &p, &q);
    mpfr_set(p.re, r->re, MPFR_RNDN);
    mpfr_set(p.im, r->im, MPFR_RNDN);
    c_log(r, &p, NULL);
    mpfr_swap(r->re, r->im);
    mpfr_neg(r->im, r->im, MPFR_RNDN);
    exact_finish(&p);
    exact_finish(&q);
}

static void c_abs(exact *r, const exact *a, const exact *b)
{
    (void)b;
    mpfr_hypot(r->re, a->re, a->im, MPFR_RNDN);
    mpfr_set_zero(r->im, 1);
}

static void c_real(exact *r, const exact *a, const exact *b)
{
    (void)b;
    mpfr_set(r->re, a->re, MPFR_RNDN);
    mpfr_set_zero(r->im, 1);
}

static void c_imag(exact *r, const exact *a, const exact *b)
{
    (void)b;
    mpfr_set(r->re, a->im, MPFR_RNDN);
    mpfr_set_zero(r->im, 1);
}

static void c_negate(exact *r, const exact *a, const exact *b)
{
    (void)b;
    mpfr_neg(r->re, a->re, MPFR_RNDN);
    mpfr_neg(r->im, a->im, MPFR_RNDN);
}

static void c_sign(exact *r, const exact *a, const exact *b)
{
    mpfr_t size;

    (void)b;
    mpfr_init2(size, WORK);
    mpfr_hypot(size, a->re, a->im, MPFR_RNDN);
    if (mpfr_zero_p(size))
        mpfr_set_ui(size, 1, MPFR_RNDN);
    mpfr_div(r->re, a->re, size, MPFR_RNDN);
    mpfr_div(r->im, a->im, size, MPFR_RNDN);
    mpfr_clear(size);
}

static void c_add(exact *r, const exact *a, const exact *b)
{
    mpfr_add(r->re, a->re, b->re, MPFR_RNDN);
    mpfr_add(r->im, a->im, b->im, MPFR_RNDN);
}

static void c_subtract(exact *r, const exact *a, const exact *b)
{
    mpfr_sub(r->re, a->re, b->re, MPFR_RNDN);
    mpfr_sub(r->im, a->im, b->im, MPFR_RNDN);
}

static bool less_cplx(const exact *a, const exact *b)
{
    return mpfr_equal_p(a->re, b->re) ? mpfr_less_p(a->im, b->im)
                                      : mpfr_less_p(a->re, b->re);
}

static void c_maximum(exact *r, const exact *a, const exact *b)
{
    const exact *v = less_cplx(a, b) ? b : a;

    mpfr_set(r->re, v->re, MPFR_RNDN);
    mpfr_set(r->im, v->im, MPFR_RNDN);
}

static void c_minimum(exact *r, const exact *a, const exact *b)
{
    const exact *v = less_cplx(a, b) ? a : b;

    mpfr_set(r->re, v->re, MPFR_RNDN);
    mpfr_set(r->im, v->im, MPFR_RNDN);
}

/* ---- the functions by op ---- */

static const struct {
    real_fn real;
    cplx_fn cplx;
} function[HLO_OP_COUNT] = {
    [HLO_ABS] = {r_abs, c_abs},
    [HLO_NEGATE] = {r_negate, c_negate},
    [HLO_SIGN] = {r_sign, c_sign},
    [HLO_CEIL] = {r_ceil, NULL},
    [HLO_FLOOR] = {r_floor, NULL},
    [HLO_ROUND_AFZ] = {r_round_afz, NULL},
    [HLO_ROUND_EVEN] = {r_round_even, NULL},
    [HLO_REAL] = {r_real, c_real},
    [HLO_IMAG] = {r_imag, c_imag},
    [HLO_SQRT] = {r_sqrt, c_sqrt},
    [HLO_RSQRT] = {r_rsqrt, c_rsqrt},
    [HLO_CBRT] = {r_cbrt, c_cbrt},
    [HLO_EXP] = {r_exp, c_exp},
    [HLO_EXPM1] = {r_expm1, c_expm1},
    [HLO_LOG] = {r_log, c_log},
    [HLO_LOG1P] = {r_log1p, c_log1p},
    [HLO_LOGISTIC] = {r_logistic, c_logistic},
    [HLO_SIN] = {r_sin, c_sin},
    [HLO_COS] = {r_cos, c_cos},
    [HLO_TAN] = {r_tan, c_tan},
    [HLO_TANH] = {r_tanh, c_tanh},
    [HLO_ERF] = {r_erf, NULL},
    [HLO_ADD] = {r_add, c_add},
    [HLO_SUBTRACT] = {r_subtract, c_subtract},
    [HLO_MULTIPLY] = {r_multiply, c_multiply},
    [HLO_DIVIDE] = {r_divide, c_divide},
    [HLO_REMAINDER] = {r_remainder, NULL},
    [HLO_MAXIMUM] = {r_maximum, c_maximum},
    [HLO_MINIMUM] = {r_minimum, c_minimum},
    [HLO_POWER] = {r_power, c_power},
    [HLO_ATAN2] = {r_atan2, c_atan2},
};

bool exact_has(hlo_op op, bool cplx)
{
    return cplx ? function[op].cplx != NULL : function[op].real != NULL;
}

void exact_apply(hlo_op op, bool cplx, exact *out, const exact *a,
                 const exact *b)
{
    if (cplx)
        function[op].cplx(out, a, b);
    else
        function[op].real(out->re, a->re, b->re);
}

/* ---- distance ---- */

/* What a type gives past its largest number, and whether it has -0. */
typedef enum { TO_INF, TO_NAN, TO_MAX } past;

static const struct {
    int man, emin;
    double max;
    past past;
    bool minus_zero;
} format[SD_DTYPE_COUNT] = {
    [SD_F4E2M1FN] = {1, 0, 6, TO_MAX, true},
    [SD_F8E3M4] = {4, -2, 15.5, TO_INF, true},
    [SD_F8E4M3] = {3, -6, 240, TO_INF, true},
    [SD_F8E4M3FN] = {3, -6, 448, TO_NAN, true},
    [SD_F8E4M3B11FNUZ] = {3, -10, 30, TO_NAN, false},
    [SD_F8E4M3FNUZ] = {3, -7, 240, TO_NAN, false},
    [SD_F8E5M2] = {2, -14, 57344, TO_INF, true},
    [SD_F8E5M2FNUZ] = {2, -15, 57344, TO_NAN, false},
    [SD_F8E8M0FNU] = {0, -127, 0x1p127, TO_NAN, false},
    [SD_BF16] = {7, -126, 0x1.fep127, TO_INF, true},
    [SD_F16] = {10, -14, 65504, TO_INF, true},
    [SD_F32] = {23, -126, 0x1.fffffep127, TO_INF, true},
    [SD_F64] = {52, -1022, 0x1.fffffffffffffp1023, TO_INF, true},
};

/* log2 of the last place of a number of want's size */
static long last_place(sd_dtype t, const mpfr_t want)
{
    long e = mpfr_get_exp(want) - 1;

    return SD_MAX(e, (long)format[t].emin) - format[t].man;
}

/* What the type has for numbers past its largest. */
static bool is_past(sd_dtype t, double g, bool negative)
{
    double max = negative ? -format[t].max : format[t].max;

    switch (format[t].past) {
    case TO_INF:
        return isinf(g) && (signbit(g) != 0) == negative;
    case TO_NAN:
        return isnan(g);
    default:
        return g == max;
    }
}

/* The distance when g is what stands past the largest number: none beyond the
 * middle between that and where the next one would be. */
static double past_ulps(sd_dtype t, const mpfr_t want)
{
    double ulps = 0;
    mpfr_t v, max;

    if (mpfr_inf_p(want))
        return 0;
    mpfr_inits2(128, v, max, (mpfr_ptr)NULL);
    mpfr_set_d(max, format[t].max, MPFR_RNDN);
    mpfr_abs(v, want, MPFR_RNDN);
    mpfr_sub(v, v, max, MPFR_RNDN);
    mpfr_div_2si(v, v, last_place(t, max), MPFR_RNDN);
    if (format[t].past == TO_MAX ? mpfr_sgn(v) < 0 : mpfr_cmp_d(v, 0.5) < 0)
        ulps = fabs(1 - mpfr_get_d(v, MPFR_RNDN));
    mpfr_clears(v, max, (mpfr_ptr)NULL);
    return ulps;
}

/* Powers of two alone: what is not positive is a NaN, the least is 2^-127;
 * below it stands that, or a NaN where a zero was what remained. */
static bool has_no_sign_or_zero(sd_dtype t, const mpfr_t want, double g,
                                double *ulps)
{
    if (t != SD_F8E8M0FNU)
        return false;
    if (mpfr_nan_p(want) || mpfr_sgn(want) <= 0)
        *ulps = isnan(g) ? 0 : INFINITY;
    else if (mpfr_cmp_d(want, 0x1p-127) < 0)
        *ulps = g == 0x1p-127 || isnan(g) ? 0 : INFINITY;
    else
        return false;
    return true;
}

double exact_ulps(sd_dtype t, const mpfr_t want, const mpfr_t scale,
                  const void *got)
{
    double g = sd_scalar_to_f64(t, got), ulps;
    bool negative = mpfr_signbit(want);
    mpfr_t d;

    if (has_no_sign_or_zero(t, want, g, &ulps))
        return ulps;
    if (mpfr_nan_p(want)) /* f4 has none */
        return isnan(g) || t == SD_F4E2M1FN ? 0 : INFINITY;
    if (mpfr_zero_p(want) && mpfr_zero_p(scale))
        return g != 0 || (format[t].minus_zero && (signbit(g) != 0) != negative)
                   ? INFINITY
                   : 0;
    if (is_past(t, g, negative) && format[t].past != TO_MAX)
        return past_ulps(t, want);
    if (is_past(t, g, negative) && past_ulps(t, want) == 0)
        return 0;
    if (mpfr_inf_p(want) || isnan(g) || isinf(g))
        return INFINITY;
    mpfr_init2(d, 128);
    mpfr_d_sub(d, g, want, MPFR_RNDN);
    mpfr_div_2si(d, d, last_place(t, scale), MPFR_RNDN);
    ulps = fabs(mpfr_get_d(d, MPFR_RNDN));
    mpfr_clear(d);
    return ulps;
}
