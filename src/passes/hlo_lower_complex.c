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
#define is_inf(x)    is_num(EQ, mag(x), INFINITY)

static hlo_inst *with_number(hlo_at p, hlo_op op, hlo_inst *x, double v)
{
    return hlo_make_binary(p, op, x, fill(x, v));
}

/* Magnitude of x under the sign of y, zeros' too. */
static hlo_inst *copysign_of(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    sd_dtype t = pass_dtype(x) == SD_F64 ? SD_U64 : SD_U32;
    int64_t sign = t == SD_U64 ? INT64_MIN : INT64_C(1) << 31;
    hlo_inst *a = as_bits(t, x);
    hlo_inst *b = as_bits(t, y);

    a = bin(AND, a, pass_fill_s64(p, a->shape, t, ~sign));
    b = bin(AND, b, pass_fill_s64(p, b->shape, t, sign));
    return as_bits(pass_dtype(x), bin(OR, a, b));
}

static cplx parts(hlo_at p, hlo_inst *z)
{
    return (cplx){fn(REAL, z), fn(IMAG, z)};
}

static hlo_inst *join(hlo_at p, cplx z)
{
    return bin(COMPLEX, z.re, z.im);
}

/* ---- magnitude, logarithm ---- */

/* max * sqrt(1 + (min / max)^2); zero and infinity by their own */
static hlo_inst *hypot_of(hlo_at p, cplx z)
{
    hlo_inst *a = mag(z.re), *b = mag(z.im);
    hlo_inst *hi = bin(MAXIMUM, a, b), *lo = bin(MINIMUM, a, b);
    hlo_inst *r = quo(lo, hi), *h;

    h = mul(hi, fn(SQRT, plus(mul(r, r), 1)));
    h = pick(is_num(EQ, hi, 0), hi, h);
    return pick(either(is_num(EQ, a, INFINITY), is_num(EQ, b, INFINITY)),
                fill(hi, INFINITY), h);
}

/* log|z| = log(max) + log1p((min / max)^2) / 2 */
static hlo_inst *log_hypot(hlo_at p, cplx z)
{
    hlo_inst *a = mag(z.re), *b = mag(z.im);
    hlo_inst *hi = bin(MAXIMUM, a, b), *lo = bin(MINIMUM, a, b);
    hlo_inst *r = quo(lo, hi), *l;

    l = scaled(fn(LOG1P, mul(r, r)), 0.5);
    l = pick(either(is_num(EQ, hi, 0), is_num(EQ, lo, 0)), fill(l, 0), l);
    l = add(fn(LOG, hi), l);
    return pick(either(is_num(EQ, a, INFINITY), is_num(EQ, b, INFINITY)),
                fill(l, INFINITY), l);
}

static cplx log_of(hlo_at p, cplx z)
{
    return (cplx){log_hypot(p, z), bin(ATAN2, z.im, z.re)};
}

/* Near 0, |1 + z|^2 - 1 = a (2 + a) + b^2 loses nothing. */
static cplx log1p_of(hlo_at p, cplx z)
{
    hlo_inst *one_a = plus(z.re, 1);
    hlo_inst *near_zero =
        fn(LOG1P, add(mul(z.re, plus(z.re, 2)), mul(z.im, z.im)));
    hlo_inst *small =
        both(is_num(LT, mag(z.re), 0.5), is_num(LT, mag(z.im), 0.5));
    hlo_inst *re =
        pick(small, scaled(near_zero, 0.5), log_hypot(p, (cplx){one_a, z.im}));

    return (cplx){re, bin(ATAN2, z.im, one_a)};
}

/* ---- exponentials ---- */

/* e^a * f, where f is 0 only if b is: 0 times infinity must stay 0 */
static hlo_inst *times_exp(hlo_at p, hlo_inst *e, hlo_inst *f, hlo_inst *b)
{
    return pick(is_num(EQ, b, 0), b, mul(e, f));
}

/* Where `far` is infinite and an angle, which has no sine or cosine, is not
 * finite: Annex G keeps the size. */
static hlo_inst *has_no_angle(hlo_at p, hlo_inst *far, hlo_inst *angle)
{
    return both(is_inf(far), fn(NOT, fn(IS_FINITE, angle)));
}

/* An infinite a without an angle keeps its size, and e^-inf has no imaginary
 * part. */
static cplx exp_of(hlo_at p, cplx z)
{
    hlo_inst *e = fn(EXP, z.re);
    hlo_inst *none = has_no_angle(p, z.re, z.im);
    hlo_inst *low = both(none, is_num(LT, z.re, 0));
    hlo_inst *im = times_exp(p, e, fn(SIN, z.im), z.im);

    return (cplx){pick(none, e, mul(e, fn(COS, z.im))),
                  pick(low, fill(e, 0), im)};
}

/* e^a cos b - 1 = expm1(a) cos b - 2 sin(b/2)^2.  C does not say what an
 * infinite a without an angle gives; NumPy and XLA say NaN. */
static cplx expm1_of(hlo_at p, cplx z)
{
    hlo_inst *s = fn(SIN, scaled(z.im, 0.5));
    hlo_inst *e = fn(EXPM1, z.re);
    hlo_inst *re = sub(mul(e, fn(COS, z.im)), scaled(mul(s, s), 2));

    return (cplx){re, times_exp(p, fn(EXP, z.re), fn(SIN, z.im), z.im)};
}

/* sinh and cosh with one more bit of range: e^(|x| - ln 2) */
static void hyperbolic(hlo_at p, hlo_inst *x, hlo_inst **sinh_x,
                       hlo_inst **cosh_x)
{
    const double ln2 = 0.693147180559945309417;
    hlo_inst *a = mag(x), *m = fn(EXPM1, a), *s, *up, *down;

    up = fn(EXP, plus(a, -ln2));
    down = fn(EXP, plus(neg(a), -ln2));
    *cosh_x = add(up, down);
    /* below 1, (m + m / (m + 1)) / 2 keeps the digits */
    s = scaled(add(m, quo(m, plus(m, 1))), 0.5);
    s = pick(is_num(LT, a, 1), s, sub(up, down));
    *sinh_x = copysign_of(p, s, x);
}

static cplx sin_of(hlo_at p, cplx z)
{
    hlo_inst *sh, *ch;

    hyperbolic(p, z.im, &sh, &ch);
    return (cplx){times_exp(p, ch, fn(SIN, z.re), z.re),
                  pick(has_no_angle(p, z.im, z.re), sh,
                       times_exp(p, sh, fn(COS, z.re), z.im))};
}

static cplx cos_of(hlo_at p, cplx z)
{
    hlo_inst *sh, *ch, *zero;

    hyperbolic(p, z.im, &sh, &ch);
    zero = either(is_num(EQ, z.re, 0), is_num(EQ, z.im, 0));
    sh = neg(mul(sh, fn(SIN, z.re)));
    return (cplx){
        pick(has_no_angle(p, z.im, z.re), ch, mul(ch, fn(COS, z.re))),
        pick(zero, neg(mul(z.re, copysign_of(p, fill(z.im, 0), z.im))), sh)};
}

/* Kahan: t = tan b, s = sinh a, c = 1 + t^2:
 *   tanh z = (c s sqrt(1 + s^2) + i t) / (1 + c s^2) */
static cplx tanh_of(hlo_at p, cplx z)
{
    double far = pass_dtype(z.re) == SD_F64 ? 20 : 10;
    hlo_inst *t = fn(TAN, z.im), *s, *ch, *c, *d, *is_far, *re, *im;

    hyperbolic(p, z.re, &s, &ch);
    c = plus(mul(t, t), 1);
    d = plus(mul(c, mul(s, s)), 1);
    re = quo(mul(c, mul(s, ch)), d);
    im = quo(t, d);
    /* far out: 1 and 4 sin b cos b e^(-2|a|); at infinity 1 and 0 for any b */
    is_far = is_num(GT, mag(z.re), far);
    ch = scaled(mul(fn(SIN, z.im), fn(COS, z.im)), 4);
    d = mul(ch, fn(EXP, scaled(mag(z.re), -2)));
    d = pick(is_inf(z.re), copysign_of(p, fill(ch, 0), ch), d);
    s = copysign_of(p, plus(scaled(d, 0), 1), z.re); /* or NaN */
    return (cplx){pick(is_far, s, re),
                  pick(is_num(EQ, z.im, 0), z.im, pick(is_far, d, im))};
}

static cplx tan_of(hlo_at p, cplx z) /* -i tanh(iz) */
{
    cplx w = tanh_of(p, (cplx){neg(z.im), z.re});

    return (cplx){w.im, neg(w.re)};
}

/* ---- quotients ---- */

static hlo_inst *is_finite(hlo_at p, cplx z)
{
    return both(fn(IS_FINITE, z.re), fn(IS_FINITE, z.im));
}

/* 1 or 0 with x's sign: infinities made comparable */
static hlo_inst *boxed(hlo_at p, hlo_inst *x)
{
    return copysign_of(p, hlo_make_convert(p, pass_dtype(x), is_inf(x)), x);
}

/* Smith's quotient, by the larger part of the divisor. */
static cplx smith(hlo_at p, cplx x, cplx y)
{
    hlo_inst *wide = is(GE, mag(y.re), mag(y.im));
    hlo_inst *hi = pick(wide, y.re, y.im), *lo = pick(wide, y.im, y.re);
    hlo_inst *r = quo(lo, hi), *d = add(hi, mul(lo, r));
    hlo_inst *re = pick(wide, add(x.re, mul(x.im, r)), add(mul(x.re, r), x.im));
    hlo_inst *im = pick(wide, sub(x.im, mul(x.re, r)), sub(mul(x.im, r), x.re));

    return (cplx){quo(re, d), quo(im, d)};
}

static cplx divide(hlo_at p, cplx x, cplx y)
{
    cplx q = smith(p, x, y), r;
    hlo_inst *zero = both(is_num(EQ, y.re, 0), is_num(EQ, y.im, 0));
    hlo_inst *inf = copysign_of(p, fill(y.re, INFINITY), y.re);
    hlo_inst *x_inf = either(is_inf(x.re), is_inf(x.im));
    hlo_inst *y_inf = either(is_inf(y.re), is_inf(y.im));
    cplx b;

    /* infinite over finite, finite over infinite: Annex G */
    x_inf = both(x_inf, is_finite(p, y));
    y_inf = both(y_inf, is_finite(p, x));
    b = (cplx){boxed(p, x.re), boxed(p, x.im)};
    r.re = add(mul(b.re, y.re), mul(b.im, y.im));
    r.im = sub(mul(b.im, y.re), mul(b.re, y.im));
    q.re = pick(x_inf, scaled(r.re, INFINITY), q.re);
    q.im = pick(x_inf, scaled(r.im, INFINITY), q.im);
    b = (cplx){boxed(p, y.re), boxed(p, y.im)};
    r.re = add(mul(x.re, b.re), mul(x.im, b.im));
    r.im = sub(mul(x.im, b.re), mul(x.re, b.im));
    q.re = pick(y_inf, scaled(r.re, 0), q.re);
    q.im = pick(y_inf, scaled(r.im, 0), q.im);
    q.re = pick(zero, mul(inf, x.re), q.re);
    q.im = pick(zero, mul(inf, x.im), q.im);
    return q;
}

static cplx logistic_of(hlo_at p, cplx z)
{
    cplx e = exp_of(p, (cplx){neg(z.re), neg(z.im)});
    cplx one = {fill(z.re, 1), fill(z.re, 0)};

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
    hlo_inst *hi = bin(MAXIMUM, mag(z.re), mag(z.im));
    hlo_inst *low = is_num(LT, hi, tiny);
    hlo_inst *k = pick(low, fill(hi, up), fill(hi, 0.25));
    hlo_inst *back = pick(low, fill(hi, 1 / sqrt(up)), fill(hi, 2));
    cplx s = {mul(z.re, k), mul(z.im, k)};
    hlo_inst *t, *other, *right, *re, *im;

    t = add(mag(s.re), hypot_of(p, s));
    t = fn(SQRT, scaled(t, 0.5));
    other = quo(mag(s.im), scaled(t, 2));
    t = mul(t, back);
    other = mul(other, back);
    right = is_num(GE, z.re, 0);
    re = pick(right, t, other);
    im = copysign_of(p, pick(right, other, t), z.im);
    /* 0, and an infinite imaginary or real part */
    other = is_num(EQ, hi, 0);
    re = pick(other, fill(re, 0), re);
    im = pick(other, z.im, im);
    other = both(is_num(EQ, z.re, -INFINITY), fn(IS_FINITE, z.im));
    re = pick(other, fill(re, 0), re);
    im = pick(other, copysign_of(p, fill(im, INFINITY), z.im), im);
    other = both(is_num(EQ, z.re, INFINITY), fn(IS_FINITE, z.im));
    im = pick(other, copysign_of(p, fill(im, 0), z.im), im);
    other = is_inf(z.im);
    return (cplx){pick(other, fill(re, INFINITY), re), pick(other, z.im, im)};
}

static cplx rsqrt_of(hlo_at p, cplx z) /* conj(sqrt z) / |z| */
{
    cplx s = sqrt_of(p, z);
    hlo_inst *h = hypot_of(p, z);
    hlo_inst *zero = is_num(EQ, h, 0), *inf = is_num(EQ, h, INFINITY);
    hlo_inst *re = quo(s.re, h), *im = neg(quo(s.im, h));

    re = pick(inf, fill(re, 0), re);
    im = pick(inf, copysign_of(p, fill(im, 0), neg(z.im)), im);
    return (cplx){pick(zero, fill(re, INFINITY), re),
                  pick(zero, fill(im, 0), im)};
}

/* By magnitude and angle, which is at most a third of a half turn: the real
 * part is never small.  Scaled as for the square root. */
static cplx cbrt_of(hlo_at p, cplx z)
{
    bool f64 = pass_dtype(z.re) == SD_F64;
    double tiny = f64 ? 0x1p-900 : 0x1p-90, up = f64 ? 0x1p108 : 0x1p54;
    hlo_inst *hi = bin(MAXIMUM, mag(z.re), mag(z.im));
    hlo_inst *low = is_num(LT, hi, tiny);
    hlo_inst *k = pick(low, fill(hi, up), fill(hi, 0.125));
    hlo_inst *back = pick(low, fill(hi, 1 / cbrt(up)), fill(hi, 2));
    hlo_inst *angle = bin(ATAN2, z.im, z.re);
    hlo_inst *third = quo(angle, fill(angle, 3)), *r, *zero;

    r = hypot_of(p, (cplx){mul(z.re, k), mul(z.im, k)});
    r = mul(fn(CBRT, r), back);
    zero = is_num(EQ, hi, 0);
    return (cplx){pick(zero, z.re, mul(r, fn(COS, third))),
                  pick(zero, z.im, times_exp(p, r, fn(SIN, third), angle))};
}

static cplx sign_of(hlo_at p, cplx z)
{
    hlo_inst *h = hypot_of(p, z), *zero = is_num(EQ, h, 0);

    return (cplx){pick(zero, z.re, quo(z.re, h)),
                  pick(zero, z.im, quo(z.im, h))};
}

/* x^y = e^(y log x); 0^0 is 1, 0^y is 0 where y's real part is positive */
static cplx pow_of(hlo_at p, cplx x, cplx y)
{
    cplx l = log_of(p, x), e;
    hlo_inst *zero = both(is_num(EQ, x.re, 0), is_num(EQ, x.im, 0));
    hlo_inst *none = both(is_num(EQ, y.re, 0), is_num(EQ, y.im, 0));
    hlo_inst *to_zero = both(zero, is_num(GT, y.re, 0));

    e.re = sub(mul(l.re, y.re), mul(l.im, y.im));
    e.im = add(mul(l.re, y.im), mul(l.im, y.re));
    e = exp_of(p, e);
    e.re = pick(to_zero, fill(e.re, 0), e.re);
    e.im = pick(to_zero, fill(e.im, 0), e.im);
    return (cplx){pick(none, fill(e.re, 1), e.re),
                  pick(none, fill(e.im, 0), e.im)};
}

/* atan2(y, x) = -i log((x + i y) / sqrt(x^2 + y^2)) */
static cplx atan2_of(hlo_at p, cplx y, cplx x)
{
    cplx n = {sub(x.re, y.im), add(x.im, y.re)}, d;

    d.re = add(sub(mul(x.re, x.re), mul(x.im, x.im)),
               sub(mul(y.re, y.re), mul(y.im, y.im)));
    d.im = scaled(add(mul(x.re, x.im), mul(y.re, y.im)), 2);
    n = log_of(p, divide(p, n, sqrt_of(p, d)));
    return (cplx){n.im, neg(n.re)};
}

/* ---- order ---- */

static hlo_inst *is_nan(hlo_at p, cplx z)
{
    return either(is(NE, z.re, z.re), is(NE, z.im, z.im));
}

/* By real part, then imaginary; dir: HLO_LT, the lesser of the two.  The first
 * one that has a NaN wins. */
static hlo_inst *first_of(hlo_at p, hlo_cmp_dir dir, hlo_inst *x, hlo_inst *y)
{
    cplx a = parts(p, x), b = parts(p, y);
    hlo_inst *tie = is(EQ, a.re, b.re);
    hlo_inst *swap = pick(tie, hlo_make_compare(p, dir, b.im, a.im),
                          hlo_make_compare(p, dir, b.re, a.re));

    swap = either(swap, is_nan(p, b));
    swap = both(swap, fn(NOT, is_nan(p, a)));
    return pick(swap, y, x);
}

static hlo_inst *clamp_of(hlo_at p, hlo_inst *in)
{
    const sd_shape *s = in->shape;
    hlo_inst *low = in->arg[0], *high = in->arg[2];

    low = low->shape->rank ? low : pass_spread(p, low, s);
    high = high->shape->rank ? high : pass_spread(p, high, s);
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
        z.im = fill(z.re, 0);
        return join(p, z);
    }
    z = parts(p, x);
    if (to == SD_PRED) /* what is not zero is true, whichever part it is */
        return bin(OR, is_num(NE, z.re, 0), is_num(NE, z.im, 0));
    if (!sd_is_complex(to))
        return pass_convert(p, to, z.re);
    z.re = hlo_make_convert(p, part, z.re);
    z.im = hlo_make_convert(p, part, z.im);
    return join(p, z);
}

static hlo_inst *lower_iota(hlo_at p, hlo_inst *in)
{
    const sd_shape *s = sd_shape_with(p.c->module->arena, in->shape,
                                      sd_dtype_part(pass_dtype(in)));
    cplx z = {hlo_make_iota(p, s, in->dims.at[0]), NULL};

    z.im = fill(z.re, 0);
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
    y = hlo_make_binary(p, HLO_POWER, hlo_make_convert(p, SD_C128, in->arg[0]),
                        hlo_make_convert(p, SD_C128, in->arg[1]));
    return hlo_make_convert(p, SD_C64, y);
}

bool hlo_lower_complex(hlo_module *m, const device_desc *dev)
{
    bool changed = dev->features & DEVICE_HAS_F64 &&
                   pass_rewrite(m, HLO_POWER, widen_power);

    return pass_rewrite(m, HLO_OP_COUNT, lower_complex) || changed;
}
