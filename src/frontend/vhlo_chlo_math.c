/* CHLO's functions of one and two numbers in operations of HLO, each in f32 or
 * f64; narrower floats are computed in f32.  Sources of the series:
 * Lanczos' sum as P. Godfrey fitted it (g = 7, 9 terms) for lgamma, digamma;
 * Cephes (S. Moshier) for erfc, bessel_i1e and zeta's Bernoulli numbers;
 * M. Giles, "Approximating the erfinv function", 2011. */
#include "vhlo_chlo_terms.h"

#include <float.h>
#include <math.h>

/* ---- building ---- */

hlo_inst *chlo_f1(const chlo_fn *f, hlo_op op, hlo_inst *x)
{
    return vhlo_emit(f->im, op, f->s, 1, &x);
}

hlo_inst *chlo_f2(const chlo_fn *f, hlo_op op, hlo_inst *x, hlo_inst *y)
{
    hlo_inst *two[2] = {x, y};

    return vhlo_emit(f->im, op, f->s, 2, two);
}

hlo_inst *chlo_num(const chlo_fn *f, double v)
{
    return hlo_make_fill((hlo_at){f->im->c, NULL, NULL}, f->s, v);
}

hlo_inst *chlo_is(const chlo_fn *f, hlo_cmp_dir dir, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_compare((hlo_at){f->im->c, NULL, NULL}, dir, x, y);
}

hlo_inst *chlo_pick(const chlo_fn *f, hlo_inst *p, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_select((hlo_at){f->im->c, NULL, NULL}, p, x, y);
}

static bool is_wide(const chlo_fn *f)
{
    return f->s->dtype == SD_F64;
}

/* c: the highest power's first */
static hlo_inst *poly(const chlo_fn *f, hlo_inst *x, const double *c, int n)
{
    hlo_inst *y = num(c[0]);

    for (int i = 1; i < n; i++)
        y = add(mul(y, x), num(c[i]));
    return y;
}

#define POLY(x, c) poly(f, x, c, (int)SD_COUNTOF(c))

static hlo_inst *size_of(const chlo_fn *f, hlo_inst *x)
{
    return fn(ABS, x);
}

/* |x| with the sign of y, zeros' and NaN's too. */
hlo_inst *chlo_copysign(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    hlo_at p = {f->im->c, NULL, NULL};
    sd_dtype t = is_wide(f) ? SD_U64 : SD_U32;
    const sd_shape *s = sd_shape_with(f->im->a, f->s, t);
    uint64_t sign = UINT64_C(1) << (is_wide(f) ? 63 : 31);
    hlo_inst *mask = hlo_make_scalar_s64(p, t, (int64_t)sign);

    mask = vhlo_fill(f->im, mask, s);
    y = hlo_make_binary(p, HLO_AND, hlo_make_bitcast_convert(p, t, y), mask);
    x = hlo_make_bitcast_convert(p, t, size_of(f, x));
    return hlo_make_bitcast_convert(p, f->s->dtype,
                                    hlo_make_binary(p, HLO_OR, x, y));
}

/* ---- inverse and hyperbolic functions ---- */

static hlo_inst *root_of_product(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    return fn(SQRT, mul(x, y));
}

static hlo_inst *do_acos(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *one = num(1);

    return chlo_f2(f, HLO_ATAN2, root_of_product(f, sub(one, x), add(one, x)),
                   x);
}

static hlo_inst *do_asin(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *one = num(1);
    hlo_inst *r = root_of_product(f, sub(one, x), add(one, x));

    return mul(num(2), chlo_f2(f, HLO_ATAN2, x, add(one, r)));
}

static hlo_inst *do_atan(const chlo_fn *f, hlo_inst *x)
{
    return chlo_f2(f, HLO_ATAN2, x, num(1));
}

static hlo_inst *do_acosh(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *less = sub(x, num(1)), *more = add(x, num(1));
    hlo_inst *large = num(is_wide(f) ? DBL_MAX / 2 : FLT_MAX / 2), *y;

    y = add(fn(SQRT, more), fn(SQRT, less));
    y = fn(LOG1P, mul(fn(SQRT, less), y));
    return pick(is(GE, x, large), add(fn(LOG, x), num(log(2))), y);
}

static hlo_inst *do_asinh(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *a = size_of(f, x), *square = mul(a, a), *y;
    hlo_inst *large = num(sqrt(is_wide(f) ? DBL_MAX : FLT_MAX));

    y = add(num(1), fn(SQRT, add(square, num(1))));
    y = fn(LOG1P, add(a, quo(square, y)));
    y = pick(is(GE, a, large), add(fn(LOG, a), num(log(2))), y);
    return chlo_copysign(f, y, x);
}

static hlo_inst *do_atanh(const chlo_fn *f, hlo_inst *x)
{
    return mul(num(0.5), sub(fn(LOG1P, x), fn(LOG1P, fn(NEGATE, x))));
}

/* e^x / 2, which has room where e^x has none. */
static hlo_inst *half_exp(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *root = fn(EXP, mul(num(0.5), x));

    return mul(mul(num(0.5), root), root);
}

hlo_inst *chlo_real_cosh(const chlo_fn *f, hlo_inst *x)
{
    return add(half_exp(f, x), half_exp(f, fn(NEGATE, x)));
}

hlo_inst *chlo_real_sinh(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *one = num(1), *e = fn(EXPM1, x), *y;

    y = sub(half_exp(f, x), half_exp(f, fn(NEGATE, x)));
    return pick(is(LT, size_of(f, x), one),
                mul(num(0.5), add(e, quo(e, add(e, one)))), y);
}

/* ---- error functions ---- */

/* Cephes: a quotient of polynomials times e^(-x^2) from 1 on. */
static hlo_inst *do_erfc(const chlo_fn *f, hlo_inst *x)
{
    static const double p[] = {
        2.46196981473530512524e-10, 5.64189564831068821977e-1,
        7.46321056442269912687e0,   4.86371970985681366614e1,
        1.96520832956077098242e2,   5.26445194995477358631e2,
        9.34528527171957607540e2,   1.02755188689515710272e3,
        5.57535335369399327526e2};
    static const double q[] = {1,
                               1.32281951154744992508e1,
                               8.67072140885989742329e1,
                               3.54937778887819891062e2,
                               9.75708501743205489753e2,
                               1.82390916687909736289e3,
                               2.24633760818710981792e3,
                               1.65666309194161350182e3,
                               5.57535340817727675546e2};
    static const double r[] = {
        5.64189583547755073984e-1, 1.27536670759978104416e0,
        5.01905042251180477414e0,  6.16021097993053585195e0,
        7.40974269950448939160e0,  2.97886665372100240670e0};
    static const double t[] = {1,
                               2.26052863220117276590e0,
                               9.39603524938001434673e0,
                               1.20489539808096656605e1,
                               1.70814450747565897222e1,
                               9.60896809063285878198e0,
                               3.36907645100081516050e0};
    hlo_inst *a = size_of(f, x), *e = fn(EXP, fn(NEGATE, mul(x, x))), *y;
    hlo_inst *zero = num(0), *one = num(1);

    y = pick(is(LT, a, num(8)), quo(POLY(a, p), POLY(a, q)),
             quo(POLY(a, r), POLY(a, t)));
    y = pick(is(EQ, e, zero), zero, mul(e, y));
    y = pick(is(LT, x, zero), sub(num(2), y), y);
    return pick(is(LT, a, one), sub(one, fn(ERF, x)), y);
}

static hlo_inst *erf_inv_f32(const chlo_fn *f, hlo_inst *w)
{
    static const double near[] = {
        2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
        -4.39150654e-06, 0.00021858087,  -0.00125372503,
        -0.00417768164,  0.246640727,    1.50140941};
    static const double far[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                                 -0.00367342844,  0.00573950773,  -0.0076224613,
                                 0.00943887047,   1.00167406,     2.83297682};

    return pick(is(LT, w, num(5)), POLY(sub(w, num(2.5)), near),
                POLY(sub(fn(SQRT, w), num(3)), far));
}

static hlo_inst *erf_inv_f64(const chlo_fn *f, hlo_inst *w)
{
    static const double near[] = {
        -3.6444120640178196996e-21, -1.685059138182016589e-19,
        1.2858480715256400167e-18,  1.115787767802518096e-17,
        -1.333171662854620906e-16,  2.0972767875968561637e-17,
        6.6376381343583238325e-15,  -4.0545662729752068639e-14,
        -8.1519341976054721522e-14, 2.6335093153082322977e-12,
        -1.2975133253453532498e-11, -5.4154120542946279317e-11,
        1.051212273321532285e-09,   -4.1126339803469836976e-09,
        -2.9070369957882005086e-08, 4.2347877827932403518e-07,
        -1.3654692000834678645e-06, -1.3882523362786468719e-05,
        0.0001867342080340571352,   -0.00074070253416626697512,
        -0.0060336708714301490533,  0.24015818242558961693,
        1.6536545626831027356};
    static const double middle[] = {
        2.2137376921775787049e-09,  9.0756561938885390979e-08,
        -2.7517406297064545428e-07, 1.8239629214389227755e-08,
        1.5027403968909827627e-06,  -4.013867526981545969e-06,
        2.9234449089955446044e-06,  1.2475304481671778723e-05,
        -4.7318229009055733981e-05, 6.8284851459573175448e-05,
        2.4031110387097893999e-05,  -0.0003550375203628474796,
        0.00095328937973738049703,  -0.0016882755560235047313,
        0.0024914420961078508066,   -0.0037512085075692412107,
        0.005370914553590063617,    1.0052589676941592334,
        3.0838856104922207635};
    static const double far[] = {
        -2.7109920616438573243e-11, -2.5556418169965252055e-10,
        1.5076572693500548083e-09,  -3.7894654401267369937e-09,
        7.6157012080783393804e-09,  -1.4960026627149240478e-08,
        2.9147953450901080826e-08,  -6.7711997758452339498e-08,
        2.2900482228026654717e-07,  -9.9298272942317002539e-07,
        4.5260625972231537039e-06,  -1.9681778105531670567e-05,
        7.5995277030017761139e-05,  -0.00021503011930044477347,
        -0.00013871931833623122026, 1.0103004648645343977,
        4.8499064014085844221};
    hlo_inst *r = fn(SQRT, w), *y;

    y = pick(is(LT, w, num(16)), POLY(sub(r, num(3.25)), middle),
             POLY(sub(r, num(5)), far));
    return pick(is(LT, w, num(6.25)), POLY(sub(w, num(3.125)), near), y);
}

static hlo_inst *do_erf_inv(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *w = fn(NEGATE, fn(LOG1P, fn(NEGATE, mul(x, x))));
    hlo_inst *y = is_wide(f) ? erf_inv_f64(f, w) : erf_inv_f32(f, w);
    hlo_inst *end = is(EQ, size_of(f, x), num(1));

    return pick(end, mul(x, num(INFINITY)), mul(x, y));
}

/* ---- the gamma function's ---- */

enum { TERMS = 8 };
static const double lanczos[TERMS] = {
    676.520368121885098567009190444019, -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,   -176.61502916214059906584551354,
    12.507343278686904814458936853,     -0.13857109526572011689554707,
    9.984369578019570859563e-6,         1.50563273514931155834e-7};
static const double lanczos_base = 0.99999999999980993227684700473478;

typedef struct {
    hlo_inst *mirrored; /* x < 1/2: by reflection */
    hlo_inst *z;        /* of gamma(z + 1) */
    hlo_inst *t, *log_t;
} halves;

static halves to_right_half(const chlo_fn *f, hlo_inst *x)
{
    halves h;

    h.mirrored = is(LT, x, num(0.5));
    h.z = pick(h.mirrored, fn(NEGATE, x), sub(x, num(1)));
    h.t = add(h.z, num(7.5));
    h.log_t = add(fn(LOG1P, quo(h.z, num(7.5))), num(log(7.5)));
    return h;
}

static hlo_inst *do_lgamma(const chlo_fn *f, hlo_inst *x)
{
    halves h = to_right_half(f, x);
    hlo_inst *sum = num(lanczos_base), *y, *part, *sine;

    for (int i = 0; i < TERMS; i++)
        sum = add(sum, quo(num(lanczos[i]), add(h.z, num(i + 1))));
    y = mul(sub(add(h.z, num(0.5)), quo(h.t, h.log_t)), h.log_t);
    y = add(y, add(num(0.5 * log(2 * PI)), fn(LOG, sum)));
    /* pi / sin(pi x) = gamma(x) gamma(1 - x) */
    part = size_of(f, x);
    part = sub(part, fn(FLOOR, part));
    part = pick(is(GT, part, num(0.5)), sub(num(1), part), part);
    sine = fn(LOG, fn(SIN, mul(num(PI), part)));
    part = pick(is(NE, size_of(f, sine), num(INFINITY)),
                sub(sub(num(log(PI)), sine), y), fn(NEGATE, sine));
    y = pick(h.mirrored, part, y);
    return pick(is(EQ, size_of(f, x), num(INFINITY)), num(INFINITY), y);
}

static hlo_inst *do_digamma(const chlo_fn *f, hlo_inst *x)
{
    halves h = to_right_half(f, x);
    hlo_inst *up = num(0), *down = num(lanczos_base), *y, *part, *pole;

    for (int i = 0; i < TERMS; i++) {
        hlo_inst *c = num(lanczos[i]), *z = add(h.z, num(i + 1));

        up = sub(up, quo(c, mul(z, z)));
        down = add(down, quo(c, z));
    }
    y = sub(add(h.log_t, quo(up, down)), quo(num(7), h.t));
    part = add(x, size_of(f, fn(FLOOR, add(x, num(0.5)))));
    part = mul(num(PI), part);
    part = quo(mul(num(PI), fn(COS, part)), fn(SIN, part));
    y = pick(h.mirrored, sub(y, part), y);
    pole = chlo_f1(&(chlo_fn){f->im, h.mirrored->shape}, HLO_NOT,
                   is(GT, x, num(0)));
    pole = chlo_f2(&(chlo_fn){f->im, pole->shape}, HLO_AND, pole,
                   is(EQ, x, fn(FLOOR, x)));
    return pick(pole, num(NAN), y);
}

/* Hurwitz: Euler's and Maclaurin's sum with its first ten terms as they are. */
static hlo_inst *do_zeta(const chlo_fn *f, hlo_inst *x, hlo_inst *q)
{
    /* (2k)! / B(2k) */
    static const double c[] = {12.0,
                               -720.0,
                               30240.0,
                               -1209600.0,
                               47900160.0,
                               -1.8924375803183791606e9,
                               7.47242496e10,
                               -2.950130727918164224e12,
                               1.1646782814350067249e14,
                               -4.5979787224074726105e15,
                               1.8152105401943546773e17,
                               -7.1661652561756670113e18};
    hlo_inst *power = NULL, *sum = num(0), *a = q, *one = num(1), *down, *rest;
    hlo_inst *minus = fn(NEGATE, x), *none = num(NAN), *most = num(INFINITY);
    hlo_inst *whole = is(EQ, q, fn(FLOOR, q)), *even, *odd_x;

    for (int i = 0; i < 10; i++) {
        a = i ? add(a, one) : q;
        power = chlo_f2(f, HLO_POWER, a, minus);
        sum = add(sum, power);
    }
    sum = add(sum, mul(power, sub(quo(a, sub(x, one)), num(0.5))));
    down = power;
    rest = one;
    for (int k = 0; k < (int)SD_COUNTOF(c); k++) {
        rest = mul(rest, add(x, num(2 * k)));
        down = quo(down, a);
        sum = add(sum, quo(mul(rest, down), num(c[k])));
        rest = mul(rest, add(x, num(2 * k + 1)));
        down = quo(down, a);
    }
    /* where q is not positive: poles, and powers that are not real */
    odd_x = is(NE, x, fn(FLOOR, x));
    even = is(EQ, chlo_f2(f, HLO_REMAINDER, x, num(2)), num(0));
    rest = pick(whole, pick(even, most, none), pick(odd_x, none, sum));
    sum = pick(is(LE, q, num(0)), rest, sum);
    sum = pick(is(EQ, x, one), most, sum);
    return pick(is(LT, x, one), none, sum);
}

static hlo_inst *do_polygamma(const chlo_fn *f, hlo_inst *n, hlo_inst *x)
{
    hlo_inst *more = add(n, num(1)), *y, *sign;

    y = mul(fn(EXP, do_lgamma(f, more)), do_zeta(f, more, x));
    sign = sub(mul(num(2), chlo_f2(f, HLO_REMAINDER, n, num(2))), num(1));
    y = pick(is(EQ, n, num(0)), do_digamma(f, x), mul(sign, y));
    y = pick(is(EQ, n, fn(FLOOR, n)), y, num(NAN));
    return pick(is(LT, n, num(0)), num(NAN), y);
}

/* ---- Bessel's ---- */

static hlo_inst *chebyshev(const chlo_fn *f, hlo_inst *x, const double *c,
                           int n)
{
    hlo_inst *b0 = num(c[0]), *b1 = num(0), *b2 = b1;

    for (int i = 1; i < n; i++) {
        b2 = b1;
        b1 = b0;
        b0 = add(sub(mul(x, b1), b2), num(c[i]));
    }
    return mul(num(0.5), sub(b0, b2));
}

/* Of f32 the terms that it can tell from nothing. */
static hlo_inst *do_bessel_i1e(const chlo_fn *f, hlo_inst *x)
{
    static const double near[] = {
        2.77791411276104639959e-18, -2.11142121435816608115e-17,
        1.55363195773620046921e-16, -1.10559694773538630805e-15,
        7.60068429473540693410e-15, -5.04218550472791168711e-14,
        3.22379336594557470981e-13, -1.98397439776494371520e-12,
        1.17361862988909016308e-11, -6.66348972350202774223e-11,
        3.62559028155211703701e-10, -1.88724975172282928790e-9,
        9.38153738649577178388e-9,  -4.44505912879632808065e-8,
        2.00329475355213526229e-7,  -8.56872026469545474066e-7,
        3.47025130813767847674e-6,  -1.32731636560394358279e-5,
        4.78156510755005422638e-5,  -1.61760815825896745588e-4,
        5.12285956168575772895e-4,  -1.51357245063125314899e-3,
        4.15642294431288815669e-3,  -1.05640848946261981558e-2,
        2.47264490306265168283e-2,  -5.29459812080949914269e-2,
        1.02643658689847095384e-1,  -1.76416518357834055153e-1,
        2.52587186443633654823e-1};
    static const double far[] = {
        7.51729631084210481353e-18,  4.41434832307170791151e-18,
        -4.65030536848935832153e-17, -3.20952592199342395980e-17,
        2.96262899764595013876e-16,  3.30820231092092828324e-16,
        -1.88035477551078244854e-15, -3.81440307243700780478e-15,
        1.04202769841288027642e-14,  4.27244001671195135429e-14,
        -2.10154184277266431302e-14, -4.08355111109219731823e-13,
        -7.19855177624590851209e-13, 2.03562854414708950722e-12,
        1.41258074366137813316e-11,  3.25260358301548823856e-11,
        -1.89749581235054123450e-11, -5.58974346219658380687e-10,
        -3.83538038596423702205e-9,  -2.63146884688951950684e-8,
        -2.51223623787020892529e-7,  -3.88256480887769039346e-6,
        -1.10588938762623716291e-4,  -9.76109749136146840777e-3,
        7.78576235018280120474e-1};
    int skip_near = is_wide(f) ? 0 : 12, skip_far = is_wide(f) ? 0 : 18;
    hlo_inst *a = size_of(f, x), *y, *z;

    y = chebyshev(f, sub(mul(num(0.5), a), num(2)), near + skip_near,
                  (int)SD_COUNTOF(near) - skip_near);
    z = chebyshev(f, sub(quo(num(32), a), num(2)), far + skip_far,
                  (int)SD_COUNTOF(far) - skip_far);
    y = pick(is(LE, a, num(8)), mul(a, y), quo(z, fn(SQRT, a)));
    return chlo_copysign(f, y, x);
}

/* ---- operations ---- */

static const struct {
    const char *name;
    hlo_inst *(*real)(const chlo_fn *f, hlo_inst *x);
    chlo_complex_fn *complex;
} unary[] = {
    {"chlo.acos", do_acos, chlo_acos},
    {"chlo.acosh", do_acosh, chlo_acosh},
    {"chlo.asin", do_asin, chlo_asin},
    {"chlo.asinh", do_asinh, chlo_asinh},
    {"chlo.atan", do_atan, chlo_atan},
    {"chlo.atanh", do_atanh, chlo_atanh},
    {"chlo.bessel_i1e", do_bessel_i1e, NULL},
    {"chlo.cosh", chlo_real_cosh, chlo_cosh},
    {"chlo.digamma", do_digamma, NULL},
    {"chlo.erf_inv", do_erf_inv, NULL},
    {"chlo.erfc", do_erfc, NULL},
    {"chlo.lgamma", do_lgamma, NULL},
    {"chlo.sinh", chlo_real_sinh, chlo_sinh},
};

bool chlo_is_float(vhlo_import *im, mlir_op *op, const hlo_inst *x)
{
    if (sd_shape_is_array(x->shape) && sd_is_float(x->shape->dtype))
        return true;
    vhlo_fail(im, op, SD_INVALID, "of %s, which should be a float",
              sd_dtype_name(x->shape->dtype));
    return false;
}

hlo_inst *chlo_worked(vhlo_import *im, hlo_inst *x)
{
    return vhlo_convert(im, x, x->shape->dtype == SD_F64 ? SD_F64 : SD_F32);
}

static hlo_inst *of_complex(vhlo_import *im, hlo_inst *x,
                            chlo_complex_fn *do_it)
{
    const sd_shape *s =
        sd_shape_with(im->a, x->shape, sd_dtype_part(x->shape->dtype));
    chlo_fn f = {im, s};
    hlo_inst *part[2] = {chlo_f1(&f, HLO_REAL, x), chlo_f1(&f, HLO_IMAG, x)};

    do_it(&f, part);
    return vhlo_emit(im, HLO_COMPLEX, x->shape, 2, part);
}

void op_chlo_unary(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const char *name = im->r->name.at[op->name].row->name;
    hlo_inst *x = arg[0], *y;
    size_t i = 0;

    while (strcmp(unary[i].name, name) != 0)
        i++;
    if (unary[i].complex && sd_shape_is_array(x->shape) &&
        sd_is_complex(x->shape->dtype)) {
        chlo_bind(im, op, of_complex(im, x, unary[i].complex));
        return;
    }
    if (!chlo_is_float(im, op, x))
        return;
    y = chlo_worked(im, x);
    y = unary[i].real(&(chlo_fn){im, y->shape}, y);
    chlo_bind(im, op, vhlo_convert(im, y, x->shape->dtype));
}

/* polygamma, zeta */
void op_chlo_binary(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const char *name = im->r->name.at[op->name].row->name;
    sd_dtype t = arg[0]->shape->dtype;
    hlo_inst *x, *y, *z;
    chlo_fn f;

    if (!chlo_spread(im, op, arg) || !chlo_is_float(im, op, arg[0]) ||
        !chlo_is_float(im, op, arg[1]))
        return;
    x = chlo_worked(im, arg[0]);
    y = vhlo_convert(im, arg[1], x->shape->dtype);
    f = (chlo_fn){im, x->shape};
    z = strstr(name, "zeta") ? do_zeta(&f, x, y) : do_polygamma(&f, x, y);
    chlo_bind(im, op, vhlo_convert(im, z, t));
}
