/* CHLO's functions of one and two numbers in operations of HLO, each in f32 or
 * f64; narrower floats are computed in f32.  Sources of the series:
 * Lanczos' sum as P. Godfrey fitted it (g = 7, 9 terms) for lgamma, digamma;
 * Cephes (S. Moshier) for erfc, bessel_i1e and zeta's Bernoulli numbers;
 * M. Giles, "Approximating the erfinv function", 2011. */
#include "vhlo_chlo_terms.h"

#include <float.h>
#include <math.h>

/* ---- building ---- */

static bool is_wide(const chlo_fn *f)
{
    return f->s->dtype == SD_F64;
}

/* c: the highest power's first */
static hlo_inst *poly(const chlo_fn *f, hlo_inst *x, const double *c, int n)
{
    hlo_inst *y = num(f, c[0]);

    for (int i = 1; i < n; i++)
        y = add(f, mul(f, y, x), num(f, c[i]));
    return y;
}

#define POLY(f, x, c) poly(f, x, c, (int)SD_COUNTOF(c))

static hlo_inst *size_of(const chlo_fn *f, hlo_inst *x)
{
    return fn1(f, HLO_ABS, x);
}

/* |x| with the sign of y, zeros' and NaN's too. */
hlo_inst *chlo_copysign(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    hlo_at p = fn_at(f);
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
    return fn1(f, HLO_SQRT, mul(f, x, y));
}

static hlo_inst *do_acos(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *one = num(f, 1);

    return fn2(f, HLO_ATAN2, root_of_product(f, sub(f, one, x), add(f, one, x)),
               x);
}

static hlo_inst *do_asin(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *one = num(f, 1);
    hlo_inst *r = root_of_product(f, sub(f, one, x), add(f, one, x));

    return mul(f, num(f, 2), fn2(f, HLO_ATAN2, x, add(f, one, r)));
}

static hlo_inst *do_atan(const chlo_fn *f, hlo_inst *x)
{
    return fn2(f, HLO_ATAN2, x, num(f, 1));
}

static hlo_inst *do_acosh(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *less = sub(f, x, num(f, 1)), *more = add(f, x, num(f, 1));
    hlo_inst *large = num(f, is_wide(f) ? DBL_MAX / 2 : FLT_MAX / 2), *y;

    y = add(f, fn1(f, HLO_SQRT, more), fn1(f, HLO_SQRT, less));
    y = fn1(f, HLO_LOG1P, mul(f, fn1(f, HLO_SQRT, less), y));
    return pick(f, is(f, HLO_GE, x, large),
                add(f, fn1(f, HLO_LOG, x), num(f, log(2))), y);
}

static hlo_inst *do_asinh(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *a = size_of(f, x), *square = mul(f, a, a), *y;
    hlo_inst *large = num(f, sqrt(is_wide(f) ? DBL_MAX : FLT_MAX));

    y = add(f, num(f, 1), fn1(f, HLO_SQRT, add(f, square, num(f, 1))));
    y = fn1(f, HLO_LOG1P, add(f, a, quo(f, square, y)));
    y = pick(f, is(f, HLO_GE, a, large),
             add(f, fn1(f, HLO_LOG, a), num(f, log(2))), y);
    return chlo_copysign(f, y, x);
}

static hlo_inst *do_atanh(const chlo_fn *f, hlo_inst *x)
{
    return mul(
        f, num(f, 0.5),
        sub(f, fn1(f, HLO_LOG1P, x), fn1(f, HLO_LOG1P, fn1(f, HLO_NEGATE, x))));
}

/* e^x / 2, which has room where e^x has none. */
static hlo_inst *half_exp(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *root = fn1(f, HLO_EXP, mul(f, num(f, 0.5), x));

    return mul(f, mul(f, num(f, 0.5), root), root);
}

hlo_inst *chlo_real_cosh(const chlo_fn *f, hlo_inst *x)
{
    return add(f, half_exp(f, x), half_exp(f, fn1(f, HLO_NEGATE, x)));
}

hlo_inst *chlo_real_sinh(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *one = num(f, 1), *e = fn1(f, HLO_EXPM1, x), *y;

    y = sub(f, half_exp(f, x), half_exp(f, fn1(f, HLO_NEGATE, x)));
    return pick(f, is(f, HLO_LT, size_of(f, x), one),
                mul(f, num(f, 0.5), add(f, e, quo(f, e, add(f, e, one)))), y);
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
    hlo_inst *a = size_of(f, x),
             *e = fn1(f, HLO_EXP, fn1(f, HLO_NEGATE, mul(f, x, x))), *y;
    hlo_inst *zero = num(f, 0), *one = num(f, 1);

    y = pick(f, is(f, HLO_LT, a, num(f, 8)),
             quo(f, POLY(f, a, p), POLY(f, a, q)),
             quo(f, POLY(f, a, r), POLY(f, a, t)));
    y = pick(f, is(f, HLO_EQ, e, zero), zero, mul(f, e, y));
    y = pick(f, is(f, HLO_LT, x, zero), sub(f, num(f, 2), y), y);
    return pick(f, is(f, HLO_LT, a, one), sub(f, one, fn1(f, HLO_ERF, x)), y);
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

    return pick(f, is(f, HLO_LT, w, num(f, 5)),
                POLY(f, sub(f, w, num(f, 2.5)), near),
                POLY(f, sub(f, fn1(f, HLO_SQRT, w), num(f, 3)), far));
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
    hlo_inst *r = fn1(f, HLO_SQRT, w), *y;

    y = pick(f, is(f, HLO_LT, w, num(f, 16)),
             POLY(f, sub(f, r, num(f, 3.25)), middle),
             POLY(f, sub(f, r, num(f, 5)), far));
    return pick(f, is(f, HLO_LT, w, num(f, 6.25)),
                POLY(f, sub(f, w, num(f, 3.125)), near), y);
}

static hlo_inst *do_erf_inv(const chlo_fn *f, hlo_inst *x)
{
    hlo_inst *w =
        fn1(f, HLO_NEGATE, fn1(f, HLO_LOG1P, fn1(f, HLO_NEGATE, mul(f, x, x))));
    hlo_inst *y = is_wide(f) ? erf_inv_f64(f, w) : erf_inv_f32(f, w);
    hlo_inst *end = is(f, HLO_EQ, size_of(f, x), num(f, 1));

    return pick(f, end, mul(f, x, num(f, INFINITY)), mul(f, x, y));
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

    h.mirrored = is(f, HLO_LT, x, num(f, 0.5));
    h.z = pick(f, h.mirrored, fn1(f, HLO_NEGATE, x), sub(f, x, num(f, 1)));
    h.t = add(f, h.z, num(f, 7.5));
    h.log_t =
        add(f, fn1(f, HLO_LOG1P, quo(f, h.z, num(f, 7.5))), num(f, log(7.5)));
    return h;
}

static hlo_inst *do_lgamma(const chlo_fn *f, hlo_inst *x)
{
    halves h = to_right_half(f, x);
    hlo_inst *sum = num(f, lanczos_base), *y, *part, *sine;

    for (int i = 0; i < TERMS; i++)
        sum =
            add(f, sum, quo(f, num(f, lanczos[i]), add(f, h.z, num(f, i + 1))));
    y = mul(f, sub(f, add(f, h.z, num(f, 0.5)), quo(f, h.t, h.log_t)), h.log_t);
    y = add(f, y, add(f, num(f, 0.5 * log(2 * PI)), fn1(f, HLO_LOG, sum)));
    /* pi / sin(pi x) = gamma(x) gamma(1 - x) */
    part = size_of(f, x);
    part = sub(f, part, fn1(f, HLO_FLOOR, part));
    part = pick(f, is(f, HLO_GT, part, num(f, 0.5)), sub(f, num(f, 1), part),
                part);
    sine = fn1(f, HLO_LOG, fn1(f, HLO_SIN, mul(f, num(f, PI), part)));
    part = pick(f, is(f, HLO_NE, size_of(f, sine), num(f, INFINITY)),
                sub(f, sub(f, num(f, log(PI)), sine), y),
                fn1(f, HLO_NEGATE, sine));
    y = pick(f, h.mirrored, part, y);
    return pick(f, is(f, HLO_EQ, size_of(f, x), num(f, INFINITY)),
                num(f, INFINITY), y);
}

static hlo_inst *do_digamma(const chlo_fn *f, hlo_inst *x)
{
    halves h = to_right_half(f, x);
    hlo_inst *up = num(f, 0), *down = num(f, lanczos_base), *y, *part, *pole;

    for (int i = 0; i < TERMS; i++) {
        hlo_inst *c = num(f, lanczos[i]), *z = add(f, h.z, num(f, i + 1));

        up = sub(f, up, quo(f, c, mul(f, z, z)));
        down = add(f, down, quo(f, c, z));
    }
    y = sub(f, add(f, h.log_t, quo(f, up, down)), quo(f, num(f, 7), h.t));
    part = add(f, x, size_of(f, fn1(f, HLO_FLOOR, add(f, x, num(f, 0.5)))));
    part = mul(f, num(f, PI), part);
    part = quo(f, mul(f, num(f, PI), fn1(f, HLO_COS, part)),
               fn1(f, HLO_SIN, part));
    y = pick(f, h.mirrored, sub(f, y, part), y);
    pole = fn1(&(chlo_fn){f->im, h.mirrored->shape}, HLO_NOT,
               is(f, HLO_GT, x, num(f, 0)));
    pole = fn2(&(chlo_fn){f->im, pole->shape}, HLO_AND, pole,
               is(f, HLO_EQ, x, fn1(f, HLO_FLOOR, x)));
    return pick(f, pole, num(f, NAN), y);
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
    hlo_inst *power = NULL, *sum = num(f, 0), *a = q, *one = num(f, 1), *down,
             *rest;
    hlo_inst *minus = fn1(f, HLO_NEGATE, x), *none = num(f, NAN),
             *most = num(f, INFINITY);
    hlo_inst *whole = is(f, HLO_EQ, q, fn1(f, HLO_FLOOR, q)), *even, *odd_x;

    for (int i = 0; i < 10; i++) {
        a = i ? add(f, a, one) : q;
        power = fn2(f, HLO_POWER, a, minus);
        sum = add(f, sum, power);
    }
    sum = add(f, sum,
              mul(f, power, sub(f, quo(f, a, sub(f, x, one)), num(f, 0.5))));
    down = power;
    rest = one;
    for (int k = 0; k < (int)SD_COUNTOF(c); k++) {
        rest = mul(f, rest, add(f, x, num(f, 2 * k)));
        down = quo(f, down, a);
        sum = add(f, sum, quo(f, mul(f, rest, down), num(f, c[k])));
        rest = mul(f, rest, add(f, x, num(f, 2 * k + 1)));
        down = quo(f, down, a);
    }
    /* where q is not positive: poles, and powers that are not real */
    odd_x = is(f, HLO_NE, x, fn1(f, HLO_FLOOR, x));
    even = is(f, HLO_EQ, fn2(f, HLO_REMAINDER, x, num(f, 2)), num(f, 0));
    rest = pick(f, whole, pick(f, even, most, none), pick(f, odd_x, none, sum));
    sum = pick(f, is(f, HLO_LE, q, num(f, 0)), rest, sum);
    sum = pick(f, is(f, HLO_EQ, x, one), most, sum);
    return pick(f, is(f, HLO_LT, x, one), none, sum);
}

static hlo_inst *do_polygamma(const chlo_fn *f, hlo_inst *n, hlo_inst *x)
{
    hlo_inst *more = add(f, n, num(f, 1)), *y, *sign;

    y = mul(f, fn1(f, HLO_EXP, do_lgamma(f, more)), do_zeta(f, more, x));
    sign = sub(f, mul(f, num(f, 2), fn2(f, HLO_REMAINDER, n, num(f, 2))),
               num(f, 1));
    y = pick(f, is(f, HLO_EQ, n, num(f, 0)), do_digamma(f, x), mul(f, sign, y));
    y = pick(f, is(f, HLO_EQ, n, fn1(f, HLO_FLOOR, n)), y, num(f, NAN));
    return pick(f, is(f, HLO_LT, n, num(f, 0)), num(f, NAN), y);
}

/* ---- Bessel's ---- */

static hlo_inst *chebyshev(const chlo_fn *f, hlo_inst *x, const double *c,
                           int n)
{
    hlo_inst *b0 = num(f, c[0]), *b1 = num(f, 0), *b2 = b1;

    for (int i = 1; i < n; i++) {
        b2 = b1;
        b1 = b0;
        b0 = add(f, sub(f, mul(f, x, b1), b2), num(f, c[i]));
    }
    return mul(f, num(f, 0.5), sub(f, b0, b2));
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

    y = chebyshev(f, sub(f, mul(f, num(f, 0.5), a), num(f, 2)),
                  near + skip_near, (int)SD_COUNTOF(near) - skip_near);
    z = chebyshev(f, sub(f, quo(f, num(f, 32), a), num(f, 2)), far + skip_far,
                  (int)SD_COUNTOF(far) - skip_far);
    y = pick(f, is(f, HLO_LE, a, num(f, 8)), mul(f, a, y),
             quo(f, z, fn1(f, HLO_SQRT, a)));
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
    hlo_inst *part[2] = {fn1(&f, HLO_REAL, x), fn1(&f, HLO_IMAG, x)};

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
