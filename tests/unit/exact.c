/* Functions of real numbers, and the distance from a result in last places. */
#include "exact.h"

#include <math.h>

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

static const real_fn real[HLO_OP_COUNT] = {
    [HLO_ABS] = r_abs,
    [HLO_NEGATE] = r_negate,
    [HLO_SIGN] = r_sign,
    [HLO_CEIL] = r_ceil,
    [HLO_FLOOR] = r_floor,
    [HLO_ROUND_AFZ] = r_round_afz,
    [HLO_ROUND_EVEN] = r_round_even,
    [HLO_REAL] = r_real,
    [HLO_IMAG] = r_imag,
    [HLO_SQRT] = r_sqrt,
    [HLO_RSQRT] = r_rsqrt,
    [HLO_CBRT] = r_cbrt,
    [HLO_EXP] = r_exp,
    [HLO_EXPM1] = r_expm1,
    [HLO_LOG] = r_log,
    [HLO_LOG1P] = r_log1p,
    [HLO_LOGISTIC] = r_logistic,
    [HLO_SIN] = r_sin,
    [HLO_COS] = r_cos,
    [HLO_TAN] = r_tan,
    [HLO_TANH] = r_tanh,
    [HLO_ERF] = r_erf,
    [HLO_ADD] = r_add,
    [HLO_SUBTRACT] = r_subtract,
    [HLO_MULTIPLY] = r_multiply,
    [HLO_DIVIDE] = r_divide,
    [HLO_REMAINDER] = r_remainder,
    [HLO_MAXIMUM] = r_maximum,
    [HLO_MINIMUM] = r_minimum,
    [HLO_POWER] = r_power,
    [HLO_ATAN2] = r_atan2,
};

bool exact_has(hlo_op op, bool cplx)
{
    return cplx ? exact_complex[op] != NULL : real[op] != NULL;
}

void exact_apply(hlo_op op, bool cplx, exact *out, const exact *a,
                 const exact *b)
{
    if (cplx)
        exact_complex[op](out, a, b);
    else
        real[op](out->re, a->re, b->re);
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
    [SD_F6E2M3FN] = {3, 0, 7.5, TO_MAX, true},
    [SD_F6E3M2FN] = {2, -2, 28, TO_MAX, true},
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
    if (mpfr_nan_p(want)) /* f4 and f6 have none */
        return isnan(g) || format[t].past == TO_MAX ? 0 : INFINITY;
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
