/* Complex functions into real arithmetic on the parts.  Magnitudes scale by
 * the larger part (no overflow on the way); square roots, tangents and
 * quotients after Kahan, "Branch cuts for complex elementary functions", 1987,
 * and C's Annex G for what is infinite. */
#include "terms.h"

#include <math.h>

typedef struct {
    hlo_inst *re, *im;
} cplx;

#define scaled(x, v) with_number(p, HLO_MULTIPLY, x, v)
#define plus(x, v)   with_number(p, HLO_ADD, x, v)
#define is_inf(x)    t_is_num(p, HLO_EQ, t_abs(p, x), INFINITY)

static hlo_inst *with_number(hlo_at p, hlo_op op, hlo_inst *x, double v)
{
    return t_binary(p, op, x, t_fill(p, x, v));
}

/* Magnitude of x under the sign of y, zeros' too. */
static hlo_inst *copysign_of(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    sd_dtype t = pass_dtype(x) == SD_F64 ? SD_U64 : SD_U32;
    int64_t sign = t == SD_U64 ? INT64_MIN : INT64_C(1) << 31;
    hlo_inst *a = t_bitcast(p, t, x);
    hlo_inst *b = t_bitcast(p, t, y);

    a = t_binary(p, HLO_AND, a, hlo_make_fill_s64(p, a->shape, t, ~sign));
    b = t_binary(p, HLO_AND, b, hlo_make_fill_s64(p, b->shape, t, sign));
    return t_bitcast(p, pass_dtype(x), t_binary(p, HLO_OR, a, b));
}

static cplx parts(hlo_at p, hlo_inst *z)
{
    return (cplx){t_unary(p, HLO_REAL, z), t_unary(p, HLO_IMAG, z)};
}

static hlo_inst *join(hlo_at p, cplx z)
{
    return t_binary(p, HLO_COMPLEX, z.re, z.im);
}

/* ---- magnitude, logarithm ---- */

/* max * sqrt(1 + (min / max)^2); zero and infinity by their own */
static hlo_inst *hypot_of(hlo_at p, cplx z)
{
    hlo_inst *a = t_abs(p, z.re), *b = t_abs(p, z.im);
    hlo_inst *hi = t_binary(p, HLO_MAXIMUM, a, b),
             *lo = t_binary(p, HLO_MINIMUM, a, b);
    hlo_inst *r = t_div(p, lo, hi), *h;

    h = t_mul(p, hi, t_unary(p, HLO_SQRT, plus(t_mul(p, r, r), 1)));
    h = t_pick(p, t_is_num(p, HLO_EQ, hi, 0), hi, h);
    return t_pick(p,
                  t_or(p, t_is_num(p, HLO_EQ, a, INFINITY),
                       t_is_num(p, HLO_EQ, b, INFINITY)),
                  t_fill(p, hi, INFINITY), h);
}

/* log|z| = log(max) + log1p((min / max)^2) / 2 */
static hlo_inst *log_hypot(hlo_at p, cplx z)
{
    hlo_inst *a = t_abs(p, z.re), *b = t_abs(p, z.im);
    hlo_inst *hi = t_binary(p, HLO_MAXIMUM, a, b),
             *lo = t_binary(p, HLO_MINIMUM, a, b);
    hlo_inst *r = t_div(p, lo, hi), *l;

    l = scaled(t_unary(p, HLO_LOG1P, t_mul(p, r, r)), 0.5);
    l = t_pick(p,
               t_or(p, t_is_num(p, HLO_EQ, hi, 0), t_is_num(p, HLO_EQ, lo, 0)),
               t_fill(p, l, 0), l);
    l = t_add(p, t_unary(p, HLO_LOG, hi), l);
    return t_pick(p,
                  t_or(p, t_is_num(p, HLO_EQ, a, INFINITY),
                       t_is_num(p, HLO_EQ, b, INFINITY)),
                  t_fill(p, l, INFINITY), l);
}

static cplx log_of(hlo_at p, cplx z)
{
    return (cplx){log_hypot(p, z), t_binary(p, HLO_ATAN2, z.im, z.re)};
}

/* Near 0, |1 + z|^2 - 1 = a (2 + a) + b^2 loses nothing. */
static cplx log1p_of(hlo_at p, cplx z)
{
    hlo_inst *one_a = plus(z.re, 1);
    hlo_inst *near_zero =
        t_unary(p, HLO_LOG1P,
                t_add(p, t_mul(p, z.re, plus(z.re, 2)), t_mul(p, z.im, z.im)));
    hlo_inst *small = t_and(p, t_is_num(p, HLO_LT, t_abs(p, z.re), 0.5),
                            t_is_num(p, HLO_LT, t_abs(p, z.im), 0.5));
    hlo_inst *re = t_pick(p, small, scaled(near_zero, 0.5),
                          log_hypot(p, (cplx){one_a, z.im}));

    return (cplx){re, t_binary(p, HLO_ATAN2, z.im, one_a)};
}

/* ---- exponentials ---- */

/* e^a * f, where f is 0 only if b is: 0 times infinity must stay 0 */
static hlo_inst *times_exp(hlo_at p, hlo_inst *e, hlo_inst *f, hlo_inst *b)
{
    return t_pick(p, t_is_num(p, HLO_EQ, b, 0), b, t_mul(p, e, f));
}

/* Where `far` is infinite and an angle, which has no sine or cosine, is not
 * finite: Annex G keeps the size. */
static hlo_inst *has_no_angle(hlo_at p, hlo_inst *far, hlo_inst *angle)
{
    return t_and(p, is_inf(far),
                 t_unary(p, HLO_NOT, t_unary(p, HLO_IS_FINITE, angle)));
}

/* An infinite a without an angle keeps its size, and e^-inf has no imaginary
 * part. */
static cplx exp_of(hlo_at p, cplx z)
{
    hlo_inst *e = t_unary(p, HLO_EXP, z.re);
    hlo_inst *none = has_no_angle(p, z.re, z.im);
    hlo_inst *low = t_and(p, none, t_is_num(p, HLO_LT, z.re, 0));
    hlo_inst *im = times_exp(p, e, t_unary(p, HLO_SIN, z.im), z.im);

    return (cplx){t_pick(p, none, e, t_mul(p, e, t_unary(p, HLO_COS, z.im))),
                  t_pick(p, low, t_fill(p, e, 0), im)};
}

/* e^a cos b - 1 = expm1(a) cos b - 2 sin(b/2)^2.  C does not say what an
 * infinite a without an angle gives; NumPy and XLA say NaN. */
static cplx expm1_of(hlo_at p, cplx z)
{
    hlo_inst *s = t_unary(p, HLO_SIN, scaled(z.im, 0.5));
    hlo_inst *e = t_unary(p, HLO_EXPM1, z.re);
    hlo_inst *re = t_sub(p, t_mul(p, e, t_unary(p, HLO_COS, z.im)),
                         scaled(t_mul(p, s, s), 2));

    return (cplx){re, times_exp(p, t_unary(p, HLO_EXP, z.re),
                                t_unary(p, HLO_SIN, z.im), z.im)};
}

/* sinh and cosh with one more bit of range: e^(|x| - ln 2) */
static void hyperbolic(hlo_at p, hlo_inst *x, hlo_inst **sinh_x,
                       hlo_inst **cosh_x)
{
    const double ln2 = 0.693147180559945309417;
    hlo_inst *a = t_abs(p, x), *m = t_unary(p, HLO_EXPM1, a), *s, *up, *down;

    up = t_unary(p, HLO_EXP, plus(a, -ln2));
    down = t_unary(p, HLO_EXP, plus(t_neg(p, a), -ln2));
    *cosh_x = t_add(p, up, down);
    /* below 1, (m + m / (m + 1)) / 2 keeps the digits */
    s = scaled(t_add(p, m, t_div(p, m, plus(m, 1))), 0.5);
    s = t_pick(p, t_is_num(p, HLO_LT, a, 1), s, t_sub(p, up, down));
    *sinh_x = copysign_of(p, s, x);
}

static cplx sin_of(hlo_at p, cplx z)
{
    hlo_inst *sh, *ch;

    hyperbolic(p, z.im, &sh, &ch);
    return (cplx){times_exp(p, ch, t_unary(p, HLO_SIN, z.re), z.re),
                  t_pick(p, has_no_angle(p, z.im, z.re), sh,
                         times_exp(p, sh, t_unary(p, HLO_COS, z.re), z.im))};
}

static cplx cos_of(hlo_at p, cplx z)
{
    hlo_inst *sh, *ch, *zero;

    hyperbolic(p, z.im, &sh, &ch);
    zero = t_or(p, t_is_num(p, HLO_EQ, z.re, 0), t_is_num(p, HLO_EQ, z.im, 0));
    sh = t_neg(p, t_mul(p, sh, t_unary(p, HLO_SIN, z.re)));
    return (cplx){
        t_pick(p, has_no_angle(p, z.im, z.re), ch,
               t_mul(p, ch, t_unary(p, HLO_COS, z.re))),
        t_pick(
            p, zero,
            t_neg(p, t_mul(p, z.re, copysign_of(p, t_fill(p, z.im, 0), z.im))),
            sh)};
}

/* Kahan: t = tan b, s = sinh a, c = 1 + t^2:
 *   tanh z = (c s sqrt(1 + s^2) + i t) / (1 + c s^2) */
static cplx tanh_of(hlo_at p, cplx z)
{
    double far = pass_dtype(z.re) == SD_F64 ? 20 : 10;
    hlo_inst *t = t_unary(p, HLO_TAN, z.im), *s, *ch, *c, *d, *is_far, *re, *im;

    hyperbolic(p, z.re, &s, &ch);
    c = plus(t_mul(p, t, t), 1);
    d = plus(t_mul(p, c, t_mul(p, s, s)), 1);
    re = t_div(p, t_mul(p, c, t_mul(p, s, ch)), d);
    im = t_div(p, t, d);
    /* far out: 1 and 4 sin b cos b e^(-2|a|); at infinity 1 and 0 for any b */
    is_far = t_is_num(p, HLO_GT, t_abs(p, z.re), far);
    ch = scaled(t_mul(p, t_unary(p, HLO_SIN, z.im), t_unary(p, HLO_COS, z.im)),
                4);
    d = t_mul(p, ch, t_unary(p, HLO_EXP, scaled(t_abs(p, z.re), -2)));
    d = t_pick(p, is_inf(z.re), copysign_of(p, t_fill(p, ch, 0), ch), d);
    s = copysign_of(p, plus(scaled(d, 0), 1), z.re); /* or NaN */
    return (cplx){t_pick(p, is_far, s, re),
                  t_pick(p, t_is_num(p, HLO_EQ, z.im, 0), z.im,
                         t_pick(p, is_far, d, im))};
}

static cplx tan_of(hlo_at p, cplx z) /* -i tanh(iz) */
{
    cplx w = tanh_of(p, (cplx){t_neg(p, z.im), z.re});

    return (cplx){w.im, t_neg(p, w.re)};
}

/* ---- quotients ---- */

static hlo_inst *is_finite(hlo_at p, cplx z)
{
    return t_and(p, t_unary(p, HLO_IS_FINITE, z.re),
                 t_unary(p, HLO_IS_FINITE, z.im));
}

/* 1 or 0 with x's sign: infinities made comparable */
static hlo_inst *boxed(hlo_at p, hlo_inst *x)
{
    return copysign_of(p, t_convert(p, pass_dtype(x), is_inf(x)), x);
}

/* Smith's quotient, by the larger part of the divisor. */
static cplx smith(hlo_at p, cplx x, cplx y)
{
    hlo_inst *wide = t_is(p, HLO_GE, t_abs(p, y.re), t_abs(p, y.im));
    hlo_inst *hi = t_pick(p, wide, y.re, y.im),
             *lo = t_pick(p, wide, y.im, y.re);
    hlo_inst *r = t_div(p, lo, hi), *d = t_add(p, hi, t_mul(p, lo, r));
    hlo_inst *re = t_pick(p, wide, t_add(p, x.re, t_mul(p, x.im, r)),
                          t_add(p, t_mul(p, x.re, r), x.im));
    hlo_inst *im = t_pick(p, wide, t_sub(p, x.im, t_mul(p, x.re, r)),
                          t_sub(p, t_mul(p, x.im, r), x.re));

    return (cplx){t_div(p, re, d), t_div(p, im, d)};
}

static cplx divide(hlo_at p, cplx x, cplx y)
{
    cplx q = smith(p, x, y), r;
    hlo_inst *zero =
        t_and(p, t_is_num(p, HLO_EQ, y.re, 0), t_is_num(p, HLO_EQ, y.im, 0));
    hlo_inst *inf = copysign_of(p, t_fill(p, y.re, INFINITY), y.re);
    hlo_inst *x_inf = t_or(p, is_inf(x.re), is_inf(x.im));
    hlo_inst *y_inf = t_or(p, is_inf(y.re), is_inf(y.im));
    cplx b;

    /* infinite over finite, finite over infinite: Annex G */
    x_inf = t_and(p, x_inf, is_finite(p, y));
    y_inf = t_and(p, y_inf, is_finite(p, x));
    b = (cplx){boxed(p, x.re), boxed(p, x.im)};
    r.re = t_add(p, t_mul(p, b.re, y.re), t_mul(p, b.im, y.im));
    r.im = t_sub(p, t_mul(p, b.im, y.re), t_mul(p, b.re, y.im));
    q.re = t_pick(p, x_inf, scaled(r.re, INFINITY), q.re);
    q.im = t_pick(p, x_inf, scaled(r.im, INFINITY), q.im);
    b = (cplx){boxed(p, y.re), boxed(p, y.im)};
    r.re = t_add(p, t_mul(p, x.re, b.re), t_mul(p, x.im, b.im));
    r.im = t_sub(p, t_mul(p, x.im, b.re), t_mul(p, x.re, b.im));
    q.re = t_pick(p, y_inf, scaled(r.re, 0), q.re);
    q.im = t_pick(p, y_inf, scaled(r.im, 0), q.im);
    q.re = t_pick(p, zero, t_mul(p, inf, x.re), q.re);
    q.im = t_pick(p, zero, t_mul(p, inf, x.im), q.im);
    return q;
}

static cplx logistic_of(hlo_at p, cplx z)
{
    cplx e = exp_of(p, (cplx){t_neg(p, z.re), t_neg(p, z.im)});
    cplx one = {t_fill(p, z.re, 1), t_fill(p, z.re, 0)};

    e.re = plus(e.re, 1);
    return divide(p, one, e);
}

/* ---- roots ---- */

/* t = sqrt((|a| + |z|) / 2); scaled by 1/4 and back, so |a| + |z| stays
 * finite; a tiny z is scaled up instead. */
static cplx sqrt_of(hlo_at p, cplx z)
{
    bool f64 = pass_dtype(z.re) == SD_F64;
    double tiny = f64 ? 0x1p-1000 : 0x1p-100, up = f64 ? 0x1p108 : 0x1p54;
    hlo_inst *hi = t_binary(p, HLO_MAXIMUM, t_abs(p, z.re), t_abs(p, z.im));
    hlo_inst *low = t_is_num(p, HLO_LT, hi, tiny);
    hlo_inst *k = t_pick(p, low, t_fill(p, hi, up), t_fill(p, hi, 0.25));
    hlo_inst *back =
        t_pick(p, low, t_fill(p, hi, 1 / sqrt(up)), t_fill(p, hi, 2));
    cplx s = {t_mul(p, z.re, k), t_mul(p, z.im, k)};
    hlo_inst *t, *other, *right, *re, *im;

    t = t_add(p, t_abs(p, s.re), hypot_of(p, s));
    t = t_unary(p, HLO_SQRT, scaled(t, 0.5));
    other = t_div(p, t_abs(p, s.im), scaled(t, 2));
    t = t_mul(p, t, back);
    other = t_mul(p, other, back);
    right = t_is_num(p, HLO_GE, z.re, 0);
    re = t_pick(p, right, t, other);
    im = copysign_of(p, t_pick(p, right, other, t), z.im);
    /* 0, and an infinite imaginary or real part */
    other = t_is_num(p, HLO_EQ, hi, 0);
    re = t_pick(p, other, t_fill(p, re, 0), re);
    im = t_pick(p, other, z.im, im);
    other = t_and(p, t_is_num(p, HLO_EQ, z.re, -INFINITY),
                  t_unary(p, HLO_IS_FINITE, z.im));
    re = t_pick(p, other, t_fill(p, re, 0), re);
    im = t_pick(p, other, copysign_of(p, t_fill(p, im, INFINITY), z.im), im);
    other = t_and(p, t_is_num(p, HLO_EQ, z.re, INFINITY),
                  t_unary(p, HLO_IS_FINITE, z.im));
    im = t_pick(p, other, copysign_of(p, t_fill(p, im, 0), z.im), im);
    other = is_inf(z.im);
    return (cplx){t_pick(p, other, t_fill(p, re, INFINITY), re),
                  t_pick(p, other, z.im, im)};
}

static cplx rsqrt_of(hlo_at p, cplx z) /* conj(sqrt z) / |z| */
{
    cplx s = sqrt_of(p, z);
    hlo_inst *h = hypot_of(p, z);
    hlo_inst *zero = t_is_num(p, HLO_EQ, h, 0),
             *inf = t_is_num(p, HLO_EQ, h, INFINITY);
    hlo_inst *re = t_div(p, s.re, h), *im = t_neg(p, t_div(p, s.im, h));

    re = t_pick(p, inf, t_fill(p, re, 0), re);
    im = t_pick(p, inf, copysign_of(p, t_fill(p, im, 0), t_neg(p, z.im)), im);
    return (cplx){t_pick(p, zero, t_fill(p, re, INFINITY), re),
                  t_pick(p, zero, t_fill(p, im, 0), im)};
}

/* By magnitude and angle, which is at most a third of a half turn: the real
 * part is never small.  Scaled as for the square root. */
static cplx cbrt_of(hlo_at p, cplx z)
{
    bool f64 = pass_dtype(z.re) == SD_F64;
    double tiny = f64 ? 0x1p-900 : 0x1p-90, up = f64 ? 0x1p108 : 0x1p54;
    hlo_inst *hi = t_binary(p, HLO_MAXIMUM, t_abs(p, z.re), t_abs(p, z.im));
    hlo_inst *low = t_is_num(p, HLO_LT, hi, tiny);
    hlo_inst *k = t_pick(p, low, t_fill(p, hi, up), t_fill(p, hi, 0.125));
    hlo_inst *back =
        t_pick(p, low, t_fill(p, hi, 1 / cbrt(up)), t_fill(p, hi, 2));
    hlo_inst *angle = t_binary(p, HLO_ATAN2, z.im, z.re);
    hlo_inst *third = t_div(p, angle, t_fill(p, angle, 3)), *r, *zero;

    r = hypot_of(p, (cplx){t_mul(p, z.re, k), t_mul(p, z.im, k)});
    r = t_mul(p, t_unary(p, HLO_CBRT, r), back);
    zero = t_is_num(p, HLO_EQ, hi, 0);
    return (cplx){
        t_pick(p, zero, z.re, t_mul(p, r, t_unary(p, HLO_COS, third))),
        t_pick(p, zero, z.im,
               times_exp(p, r, t_unary(p, HLO_SIN, third), angle))};
}

static cplx sign_of(hlo_at p, cplx z)
{
    hlo_inst *h = hypot_of(p, z), *zero = t_is_num(p, HLO_EQ, h, 0);

    return (cplx){t_pick(p, zero, z.re, t_div(p, z.re, h)),
                  t_pick(p, zero, z.im, t_div(p, z.im, h))};
}

/* x^y = e^(y log x); 0^0 is 1, 0^y is 0 where y's real part is positive */
static cplx pow_of(hlo_at p, cplx x, cplx y)
{
    cplx l = log_of(p, x), e;
    hlo_inst *zero =
        t_and(p, t_is_num(p, HLO_EQ, x.re, 0), t_is_num(p, HLO_EQ, x.im, 0));
    hlo_inst *none =
        t_and(p, t_is_num(p, HLO_EQ, y.re, 0), t_is_num(p, HLO_EQ, y.im, 0));
    hlo_inst *to_zero = t_and(p, zero, t_is_num(p, HLO_GT, y.re, 0));

    e.re = t_sub(p, t_mul(p, l.re, y.re), t_mul(p, l.im, y.im));
    e.im = t_add(p, t_mul(p, l.re, y.im), t_mul(p, l.im, y.re));
    e = exp_of(p, e);
    e.re = t_pick(p, to_zero, t_fill(p, e.re, 0), e.re);
    e.im = t_pick(p, to_zero, t_fill(p, e.im, 0), e.im);
    return (cplx){t_pick(p, none, t_fill(p, e.re, 1), e.re),
                  t_pick(p, none, t_fill(p, e.im, 0), e.im)};
}

/* atan2(y, x) = -i log((x + i y) / sqrt(x^2 + y^2)) */
static cplx atan2_of(hlo_at p, cplx y, cplx x)
{
    cplx n = {t_sub(p, x.re, y.im), t_add(p, x.im, y.re)}, d;

    d.re = t_add(p, t_sub(p, t_mul(p, x.re, x.re), t_mul(p, x.im, x.im)),
                 t_sub(p, t_mul(p, y.re, y.re), t_mul(p, y.im, y.im)));
    d.im = scaled(t_add(p, t_mul(p, x.re, x.im), t_mul(p, y.re, y.im)), 2);
    n = log_of(p, divide(p, n, sqrt_of(p, d)));
    return (cplx){n.im, t_neg(p, n.re)};
}

/* ---- order ---- */

static hlo_inst *is_nan(hlo_at p, cplx z)
{
    return t_or(p, t_is(p, HLO_NE, z.re, z.re), t_is(p, HLO_NE, z.im, z.im));
}

/* By real part, then imaginary; dir: HLO_LT, the lesser of the two.  The first
 * one that has a NaN wins. */
static hlo_inst *first_of(hlo_at p, hlo_cmp_dir dir, hlo_inst *x, hlo_inst *y)
{
    cplx a = parts(p, x), b = parts(p, y);
    hlo_inst *tie = t_is(p, HLO_EQ, a.re, b.re);
    hlo_inst *swap =
        t_pick(p, tie, t_is(p, dir, b.im, a.im), t_is(p, dir, b.re, a.re));

    swap = t_or(p, swap, is_nan(p, b));
    swap = t_and(p, swap, t_unary(p, HLO_NOT, is_nan(p, a)));
    return t_pick(p, swap, y, x);
}

static hlo_inst *clamp_of(hlo_at p, hlo_inst *in)
{
    const sd_shape *s = in->shape;
    hlo_inst *low = in->arg[0], *high = in->arg[2];

    low = low->shape->rank ? low : hlo_make_spread(p, low, s);
    high = high->shape->rank ? high : hlo_make_spread(p, high, s);
    return first_of(p, HLO_LT, first_of(p, HLO_GT, low, in->arg[1]), high);
}

/* ---- the pass ---- */

static hlo_inst *lower_convert(hlo_at p, hlo_inst *in)
{
    sd_dtype to = pass_dtype(in), part = sd_dtype_part(to);
    hlo_inst *x = in->arg[0];
    cplx z;

    if (!sd_is_complex(pass_dtype(x))) {
        z.re = pass_convert(p, part, x);
        z.im = t_fill(p, z.re, 0);
        return join(p, z);
    }
    z = parts(p, x);
    if (to == SD_PRED) /* what is not zero is true, whichever part it is */
        return t_binary(p, HLO_OR, t_is_num(p, HLO_NE, z.re, 0),
                        t_is_num(p, HLO_NE, z.im, 0));
    if (!sd_is_complex(to))
        return pass_convert(p, to, z.re);
    z.re = t_convert(p, part, z.re);
    z.im = t_convert(p, part, z.im);
    return join(p, z);
}

static hlo_inst *lower_iota(hlo_at p, hlo_inst *in)
{
    const sd_shape *s = sd_shape_with(p.c->module->arena, in->shape,
                                      sd_dtype_part(pass_dtype(in)));
    cplx z = {hlo_make_iota(p, s, in->dims.at[0]), NULL};

    z.im = t_fill(p, z.re, 0);
    return join(p, z);
}

typedef cplx (*unary)(hlo_at p, cplx z);
static const unary unaries[HLO_OP_COUNT] = {
    [HLO_EXP] = exp_of,   [HLO_EXPM1] = expm1_of,
    [HLO_LOG] = log_of,   [HLO_LOG1P] = log1p_of,
    [HLO_SIN] = sin_of,   [HLO_COS] = cos_of,
    [HLO_TAN] = tan_of,   [HLO_TANH] = tanh_of,
    [HLO_SQRT] = sqrt_of, [HLO_RSQRT] = rsqrt_of,
    [HLO_SIGN] = sign_of, [HLO_LOGISTIC] = logistic_of,
    [HLO_CBRT] = cbrt_of,
};
typedef cplx (*binary)(hlo_at p, cplx x, cplx y);
static const binary binaries[HLO_OP_COUNT] = {
    [HLO_DIVIDE] = divide, [HLO_POWER] = pow_of, [HLO_ATAN2] = atan2_of};

static hlo_inst *lower_complex(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = in->narg ? in->arg[0] : NULL;

    if (!sd_shape_is_array(in->shape))
        return NULL;
    if (in->op == HLO_IOTA && sd_is_complex(pass_dtype(in)))
        return lower_iota(p, in);
    if (!x ||
        (in->op == HLO_CONVERT
             ? !sd_is_complex(pass_dtype(x)) && !sd_is_complex(pass_dtype(in))
             : !sd_shape_is_array(x->shape) || !sd_is_complex(pass_dtype(x))))
        return NULL;
    if (in->op == HLO_CONVERT)
        return lower_convert(p, in);
    if (in->op == HLO_ABS)
        return hypot_of(p, parts(p, x));
    if (in->op == HLO_MAXIMUM || in->op == HLO_MINIMUM)
        return first_of(p, in->op == HLO_MAXIMUM ? HLO_GT : HLO_LT, x,
                        in->arg[1]);
    if (in->op == HLO_CLAMP)
        return clamp_of(p, in);
    if (unaries[in->op])
        return join(p, unaries[in->op](p, parts(p, x)));
    if (binaries[in->op])
        return join(p, binaries[in->op](p, parts(p, x), parts(p, in->arg[1])));
    return NULL;
}

/* The rounding of log x, times y, is the error of e^(y log x): in doubles,
 * where there are any, none of it is left. */
static hlo_inst *widen_power(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *y;

    if (pass_dtype(in) != SD_C64)
        return NULL;
    y = t_binary(p, HLO_POWER, t_convert(p, SD_C128, in->arg[0]),
                 t_convert(p, SD_C128, in->arg[1]));
    return t_convert(p, SD_C64, y);
}

bool hlo_lower_complex(hlo_module *m, const device_desc *dev)
{
    bool changed = dev->features & DEVICE_HAS_F64 &&
                   pass_rewrite(m, HLO_POWER, widen_power);

    return pass_rewrite(m, HLO_OP_COUNT, lower_complex) || changed;
}
