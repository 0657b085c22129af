/* CHLO's complex functions, of real and imaginary part.  Inverse sine and
 * cosine as Hull, Fairgrieve and Tang, "Implementing the complex arcsine and
 * arccosine functions using exception handling", 1997; the others by them. */
#include "vhlo_chlo_terms.h"

#include <float.h>
#include <math.h>

static hlo_inst *hypotenuse(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *two[2] = {x, y};
    const sd_shape *s =
        sd_shape_with(f->im->a, f->s, sd_dtype_complex(f->s->dtype));
    hlo_inst *z = vhlo_emit(f->im, HLO_COMPLEX, s, 2, two);

    return vhlo_emit(f->im, HLO_ABS, f->s, 1, &z);
}

/* y * (y / d), and 0 where both are: y * y may be too small. */
static hlo_inst *square_by(const chlo_fn *f, hlo_inst *y, hlo_inst *d)
{
    hlo_inst *zero = num(f, 0);

    return pick(f, is(f, HLO_EQ, y, zero), zero, mul(f, y, quo(f, y, d)));
}

typedef struct {
    hlo_inst *asin, *acos; /* the real parts */
    hlo_inst *imag;        /* the imaginary one's size */
} inverse;

/* Of x, y >= 0. */
static inverse first_quadrant(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *one = num(f, 1), *half = num(f, 0.5);
    hlo_inst *more = add(f, x, one), *less = sub(f, x, one),
             *inside = sub(f, one, x);
    hlo_inst *r = hypotenuse(f, more, y), *s = hypotenuse(f, less, y);
    hlo_inst *a = mul(f, half, add(f, r, s)), *t, *u;
    hlo_inst *left = is(f, HLO_LE, x, one),
             *p = square_by(f, y, add(f, r, more));
    hlo_inst *ax = add(f, a, x), *ratio = quo(f, ax, add(f, r, more)), *e;
    inverse v;

    t = fn1(f, HLO_SQRT,
            mul(f, half, mul(f, ax, add(f, p, add(f, s, inside)))));
    u = mul(f, y,
            fn1(f, HLO_SQRT,
                mul(f, half, add(f, ratio, quo(f, ax, add(f, s, less))))));
    t = pick(f, left, t, u);
    v.asin = fn2(f, HLO_ATAN2, x, t);
    v.acos = fn2(f, HLO_ATAN2, t, x);
    e = pick(f, is(f, HLO_LT, x, one), square_by(f, y, add(f, s, inside)),
             add(f, s, less));
    e = mul(f, half, add(f, p, e)); /* a - 1 */
    t = fn1(f, HLO_LOG1P,
            add(f, e, fn1(f, HLO_SQRT, mul(f, e, add(f, a, one)))));
    u = fn1(f, HLO_LOG, add(f, a, fn1(f, HLO_SQRT, sub(f, mul(f, a, a), one))));
    v.imag = pick(f, is(f, HLO_LE, a, num(f, 1.5)), t, u);
    /* close to the real axis e would be too small, and is 0 where x < 1 */
    t = quo(f, y, fn1(f, HLO_SQRT, mul(f, inside, more)));
    u = pick(f, is(f, HLO_LT, x, one), t, v.imag);
    e = num(f, f->s->dtype == SD_F64 ? DBL_EPSILON : FLT_EPSILON);
    v.imag =
        pick(f, is(f, HLO_LT, y, mul(f, e, fn1(f, HLO_ABS, less))), u, v.imag);
    return v;
}

/* Where squares would overflow: log 2|z|, and the angle. */
static inverse far_out(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *most = fn2(f, HLO_MAXIMUM, x, y);
    hlo_inst *ratio = quo(f, fn2(f, HLO_MINIMUM, x, y), most);
    inverse v = {.asin = fn2(f, HLO_ATAN2, x, y),
                 .acos = fn2(f, HLO_ATAN2, y, x)};

    ratio = pick(f, is(f, HLO_EQ, most, num(f, INFINITY)), num(f, 0), ratio);
    v.imag = add(f, num(f, log(2)), fn1(f, HLO_LOG, most));
    v.imag = add(f, v.imag,
                 mul(f, num(f, 0.5), fn1(f, HLO_LOG1P, mul(f, ratio, ratio))));
    return v;
}

static inverse invert(const chlo_fn *f, hlo_inst *const z[2])
{
    double most = f->s->dtype == SD_F64 ? DBL_MAX : FLT_MAX;
    hlo_inst *x = fn1(f, HLO_ABS, z[0]), *y = fn1(f, HLO_ABS, z[1]);
    inverse near = first_quadrant(f, x, y), far = far_out(f, x, y);
    hlo_inst *is_far =
        is(f, HLO_GT, fn2(f, HLO_MAXIMUM, x, y), num(f, sqrt(most) / 8));

    return (inverse){pick(f, is_far, far.asin, near.asin),
                     pick(f, is_far, far.acos, near.acos),
                     pick(f, is_far, far.imag, near.imag)};
}

void chlo_asin(const chlo_fn *f, hlo_inst *z[2])
{
    inverse v = invert(f, z);

    z[0] = chlo_copysign(f, v.asin, z[0]);
    z[1] = chlo_copysign(f, v.imag, z[1]);
}

void chlo_acos(const chlo_fn *f, hlo_inst *z[2])
{
    inverse v = invert(f, z);

    z[0] = pick(f, is(f, HLO_LT, z[0], num(f, 0)), sub(f, num(f, PI), v.acos),
                v.acos);
    z[1] = fn1(f, HLO_NEGATE, chlo_copysign(f, v.imag, z[1]));
}

void chlo_acosh(const chlo_fn *f, hlo_inst *z[2])
{
    inverse v = invert(f, z);
    hlo_inst *angle = pick(f, is(f, HLO_LT, z[0], num(f, 0)),
                           sub(f, num(f, PI), v.acos), v.acos);

    z[0] = v.imag;
    z[1] = chlo_copysign(f, angle, z[1]);
}

/* -i g(i z) */
static void turned(const chlo_fn *f, hlo_inst *z[2], chlo_complex_fn *g)
{
    hlo_inst *w[2] = {fn1(f, HLO_NEGATE, z[1]), z[0]};

    g(f, w);
    z[0] = w[1];
    z[1] = fn1(f, HLO_NEGATE, w[0]);
}

void chlo_asinh(const chlo_fn *f, hlo_inst *z[2])
{
    turned(f, z, chlo_asin);
}

/* log((1 + z) / (1 - z)) / 2; 1/z far out. */
void chlo_atanh(const chlo_fn *f, hlo_inst *z[2])
{
    double most = f->s->dtype == SD_F64 ? DBL_MAX : FLT_MAX;
    hlo_inst *x = fn1(f, HLO_ABS, z[0]), *y = fn1(f, HLO_ABS, z[1]),
             *one = num(f, 1);
    hlo_inst *less = sub(f, one, x), *y2 = mul(f, y, y), *far, *re, *im, *h;

    far = is(f, HLO_GT, fn2(f, HLO_MAXIMUM, x, y), num(f, sqrt(most) / 8));
    re = quo(f, mul(f, num(f, 4), x), add(f, mul(f, less, less), y2));
    re = mul(f, num(f, 0.25), fn1(f, HLO_LOG1P, re));
    im = fn2(f, HLO_ATAN2, mul(f, num(f, 2), y),
             sub(f, mul(f, less, add(f, one, x)), y2));
    h = hypotenuse(f, x, y);
    h = pick(f, is(f, HLO_EQ, h, num(f, INFINITY)), num(f, 0),
             quo(f, quo(f, x, h), h));
    re = pick(f, far, h, re);
    im = pick(f, far, num(f, PI / 2), mul(f, num(f, 0.5), im));
    z[0] = chlo_copysign(f, re, z[0]);
    z[1] = chlo_copysign(f, im, z[1]);
}

void chlo_atan(const chlo_fn *f, hlo_inst *z[2])
{
    turned(f, z, chlo_atanh);
}

/* A real argument has a real value, whatever the other factor is. */
static hlo_inst *times_sine(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    return pick(f, is(f, HLO_EQ, y, num(f, 0)), y,
                mul(f, x, fn1(f, HLO_SIN, y)));
}

void chlo_sinh(const chlo_fn *f, hlo_inst *z[2])
{
    hlo_inst *x = z[0], *y = z[1];

    z[0] = mul(f, chlo_real_sinh(f, x), fn1(f, HLO_COS, y));
    z[1] = times_sine(f, chlo_real_cosh(f, x), y);
}

void chlo_cosh(const chlo_fn *f, hlo_inst *z[2])
{
    hlo_inst *x = z[0], *y = z[1];

    z[0] = mul(f, chlo_real_cosh(f, x), fn1(f, HLO_COS, y));
    z[1] = times_sine(f, chlo_real_sinh(f, x), y);
}
