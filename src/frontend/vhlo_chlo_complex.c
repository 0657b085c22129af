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
    hlo_inst *zero = num(0);

    return pick(is(EQ, y, zero), zero, mul(y, quo(y, d)));
}

typedef struct {
    hlo_inst *asin, *acos; /* the real parts */
    hlo_inst *imag;        /* the imaginary one's size */
} inverse;

/* Of x, y >= 0. */
static inverse first_quadrant(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *one = num(1), *half = num(0.5);
    hlo_inst *more = add(x, one), *less = sub(x, one), *inside = sub(one, x);
    hlo_inst *r = hypotenuse(f, more, y), *s = hypotenuse(f, less, y);
    hlo_inst *a = mul(half, add(r, s)), *t, *u;
    hlo_inst *left = is(LE, x, one), *p = square_by(f, y, add(r, more));
    hlo_inst *ax = add(a, x), *ratio = quo(ax, add(r, more)), *e;
    inverse v;

    t = fn(SQRT, mul(half, mul(ax, add(p, add(s, inside)))));
    u = mul(y, fn(SQRT, mul(half, add(ratio, quo(ax, add(s, less))))));
    t = pick(left, t, u);
    v.asin = chlo_f2(f, HLO_ATAN2, x, t);
    v.acos = chlo_f2(f, HLO_ATAN2, t, x);
    e = pick(is(LT, x, one), square_by(f, y, add(s, inside)), add(s, less));
    e = mul(half, add(p, e)); /* a - 1 */
    t = fn(LOG1P, add(e, fn(SQRT, mul(e, add(a, one)))));
    u = fn(LOG, add(a, fn(SQRT, sub(mul(a, a), one))));
    v.imag = pick(is(LE, a, num(1.5)), t, u);
    /* close to the real axis e would be too small, and is 0 where x < 1 */
    t = quo(y, fn(SQRT, mul(inside, more)));
    u = pick(is(LT, x, one), t, v.imag);
    e = num(f->s->dtype == SD_F64 ? DBL_EPSILON : FLT_EPSILON);
    v.imag = pick(is(LT, y, mul(e, fn(ABS, less))), u, v.imag);
    return v;
}

/* Where squares would overflow: log 2|z|, and the angle. */
static inverse far_out(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *most = chlo_f2(f, HLO_MAXIMUM, x, y);
    hlo_inst *ratio = quo(chlo_f2(f, HLO_MINIMUM, x, y), most);
    inverse v = {.asin = chlo_f2(f, HLO_ATAN2, x, y),
                 .acos = chlo_f2(f, HLO_ATAN2, y, x)};

    ratio = pick(is(EQ, most, num(INFINITY)), num(0), ratio);
    v.imag = add(num(log(2)), fn(LOG, most));
    v.imag = add(v.imag, mul(num(0.5), fn(LOG1P, mul(ratio, ratio))));
    return v;
}

static inverse invert(const chlo_fn *f, hlo_inst *const z[2])
{
    double most = f->s->dtype == SD_F64 ? DBL_MAX : FLT_MAX;
    hlo_inst *x = fn(ABS, z[0]), *y = fn(ABS, z[1]);
    inverse near = first_quadrant(f, x, y), far = far_out(f, x, y);
    hlo_inst *is_far =
        is(GT, chlo_f2(f, HLO_MAXIMUM, x, y), num(sqrt(most) / 8));

    return (inverse){pick(is_far, far.asin, near.asin),
                     pick(is_far, far.acos, near.acos),
                     pick(is_far, far.imag, near.imag)};
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

    z[0] = pick(is(LT, z[0], num(0)), sub(num(PI), v.acos), v.acos);
    z[1] = fn(NEGATE, chlo_copysign(f, v.imag, z[1]));
}

void chlo_acosh(const chlo_fn *f, hlo_inst *z[2])
{
    inverse v = invert(f, z);
    hlo_inst *angle = pick(is(LT, z[0], num(0)), sub(num(PI), v.acos), v.acos);

    z[0] = v.imag;
    z[1] = chlo_copysign(f, angle, z[1]);
}

/* -i g(i z) */
static void turned(const chlo_fn *f, hlo_inst *z[2], chlo_complex_fn *g)
{
    hlo_inst *w[2] = {fn(NEGATE, z[1]), z[0]};

    g(f, w);
    z[0] = w[1];
    z[1] = fn(NEGATE, w[0]);
}

void chlo_asinh(const chlo_fn *f, hlo_inst *z[2])
{
    turned(f, z, chlo_asin);
}

/* log((1 + z) / (1 - z)) / 2; 1/z far out. */
void chlo_atanh(const chlo_fn *f, hlo_inst *z[2])
{
    double most = f->s->dtype == SD_F64 ? DBL_MAX : FLT_MAX;
    hlo_inst *x = fn(ABS, z[0]), *y = fn(ABS, z[1]), *one = num(1);
    hlo_inst *less = sub(one, x), *y2 = mul(y, y), *far, *re, *im, *h;

    far = is(GT, chlo_f2(f, HLO_MAXIMUM, x, y), num(sqrt(most) / 8));
    re = quo(mul(num(4), x), add(mul(less, less), y2));
    re = mul(num(0.25), fn(LOG1P, re));
    im = chlo_f2(f, HLO_ATAN2, mul(num(2), y), sub(mul(less, add(one, x)), y2));
    h = hypotenuse(f, x, y);
    h = pick(is(EQ, h, num(INFINITY)), num(0), quo(quo(x, h), h));
    re = pick(far, h, re);
    im = pick(far, num(PI / 2), mul(num(0.5), im));
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
    return pick(is(EQ, y, num(0)), y, mul(x, fn(SIN, y)));
}

void chlo_sinh(const chlo_fn *f, hlo_inst *z[2])
{
    hlo_inst *x = z[0], *y = z[1];

    z[0] = mul(chlo_real_sinh(f, x), fn(COS, y));
    z[1] = times_sine(f, chlo_real_cosh(f, x), y);
}

void chlo_cosh(const chlo_fn *f, hlo_inst *z[2])
{
    hlo_inst *x = z[0], *y = z[1];

    z[0] = mul(chlo_real_cosh(f, x), fn(COS, y));
    z[1] = times_sine(f, chlo_real_sinh(f, x), y);
}
