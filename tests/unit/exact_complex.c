/* Functions of complex numbers.  Formulas with digits to spare: WORK bits where
 * terms cancel by the digits of two doubles, EXACT bits where sums of squares
 * of doubles must be exact. */
#include "exact.h"

enum { WORK = 640, EXACT = 6600 };

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

const exact_fn exact_complex[HLO_OP_COUNT] = {
    [HLO_ABS] = c_abs,           [HLO_NEGATE] = c_negate,
    [HLO_SIGN] = c_sign,         [HLO_REAL] = c_real,
    [HLO_IMAG] = c_imag,         [HLO_SQRT] = c_sqrt,
    [HLO_RSQRT] = c_rsqrt,       [HLO_CBRT] = c_cbrt,
    [HLO_EXP] = c_exp,           [HLO_EXPM1] = c_expm1,
    [HLO_LOG] = c_log,           [HLO_LOG1P] = c_log1p,
    [HLO_LOGISTIC] = c_logistic, [HLO_SIN] = c_sin,
    [HLO_COS] = c_cos,           [HLO_TAN] = c_tan,
    [HLO_TANH] = c_tanh,         [HLO_ADD] = c_add,
    [HLO_SUBTRACT] = c_subtract, [HLO_MULTIPLY] = c_multiply,
    [HLO_DIVIDE] = c_divide,     [HLO_MAXIMUM] = c_maximum,
    [HLO_MINIMUM] = c_minimum,   [HLO_POWER] = c_power,
    [HLO_ATAN2] = c_atan2,
};
