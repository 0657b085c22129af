/* The evaluator's functions of one element against MPFR, correctly rounded:
 * f32 and narrower must agree in every bit, f64 within one ulp and nearly
 * always in every bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>
#include <mpfr.h>

#include "hlo_scalar.h"

typedef void (*exact_fn)(mpfr_t out, const mpfr_t a, const mpfr_t b);

#define UNARY_FN(name, call) \
    static void name(mpfr_t out, const mpfr_t a, const mpfr_t b) \
    { \
        (void)b; \
        call(out, a, MPFR_RNDN); \
    }
UNARY_FN(exact_exp, mpfr_exp)
UNARY_FN(exact_expm1, mpfr_expm1)
UNARY_FN(exact_log, mpfr_log)
UNARY_FN(exact_log1p, mpfr_log1p)
UNARY_FN(exact_sin, mpfr_sin)
UNARY_FN(exact_cos, mpfr_cos)
UNARY_FN(exact_tan, mpfr_tan)
UNARY_FN(exact_tanh, mpfr_tanh)
UNARY_FN(exact_erf, mpfr_erf)
UNARY_FN(exact_cbrt, mpfr_cbrt)
UNARY_FN(exact_sqrt, mpfr_sqrt)
UNARY_FN(exact_rsqrt, mpfr_rec_sqrt)

static void exact_logistic(mpfr_t out, const mpfr_t a, const mpfr_t b)
{
    (void)b;
    mpfr_neg(out, a, MPFR_RNDN);
    mpfr_exp(out, out, MPFR_RNDN);
    mpfr_add_ui(out, out, 1, MPFR_RNDN);
    mpfr_ui_div(out, 1, out, MPFR_RNDN);
}

static void exact_pow(mpfr_t out, const mpfr_t a, const mpfr_t b)
{
    mpfr_pow(out, a, b, MPFR_RNDN);
}

static void exact_atan2(mpfr_t out, const mpfr_t a, const mpfr_t b)
{
    mpfr_atan2(out, a, b, MPFR_RNDN);
}

static void exact_div(mpfr_t out, const mpfr_t a, const mpfr_t b)
{
    mpfr_div(out, a, b, MPFR_RNDN);
}

static void exact_fmod(mpfr_t out, const mpfr_t a, const mpfr_t b)
{
    mpfr_fmod(out, a, b, MPFR_RNDN);
}

static const struct {
    hlo_op op;
    exact_fn fn;
} functions[] = {
    {HLO_EXP, exact_exp},           {HLO_EXPM1, exact_expm1},
    {HLO_LOG, exact_log},           {HLO_LOG1P, exact_log1p},
    {HLO_SIN, exact_sin},           {HLO_COS, exact_cos},
    {HLO_TAN, exact_tan},           {HLO_TANH, exact_tanh},
    {HLO_ERF, exact_erf},           {HLO_CBRT, exact_cbrt},
    {HLO_SQRT, exact_sqrt},         {HLO_RSQRT, exact_rsqrt},
    {HLO_LOGISTIC, exact_logistic}, {HLO_POWER, exact_pow},
    {HLO_ATAN2, exact_atan2},       {HLO_DIVIDE, exact_div},
    {HLO_REMAINDER, exact_fmod},
};

static uint64_t next_bits(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed ^ *seed >> 29;
}

/* Half of them any bits, half of ordinary size. */
static double sample(sd_dtype t, uint64_t *seed)
{
    char p[16] = {0};
    uint64_t v = next_bits(seed);

    if (v & 1) {
        v = next_bits(seed);
        memcpy(p, &v, sd_dtype_bytes(t));
    } else {
        sd_scalar_of_f64(t, ((double)(v >> 11) * 0x1p-53 - 0.5) * 40, p);
    }
    return sd_scalar_to_f64(t, p);
}

static int64_t ordered(sd_dtype t, const void *p)
{
    uint64_t v = 0, sign = UINT64_C(1) << (sd_dtype_table[t].bits - 1);

    memcpy(&v, p, sd_dtype_bytes(t));
    return v & sign ? -(int64_t)(v & ~sign) : (int64_t)v;
}

/* Distance in representable values; NaN is near NaN only. */
static int64_t distance(sd_dtype t, const void *x, const void *y)
{
    bool nx = isnan(sd_scalar_to_f64(t, x)), ny = isnan(sd_scalar_to_f64(t, y));
    int64_t d;

    if (nx || ny)
        return nx && ny ? 0 : INT64_MAX;
    d = ordered(t, x) - ordered(t, y);
    return d < 0 ? -d : d;
}

static void check(sd_dtype t, int count, int64_t most, double most_off)
{
    mpfr_t a, b, r;
    uint64_t seed = 99;

    mpfr_inits2(200, a, b, r, (mpfr_ptr)NULL);
    for (size_t f = 0; f < SD_COUNTOF(functions); f++) {
        int off = 0;

        for (int i = 0; i < count; i++) {
            double x = sample(t, &seed), y = sample(t, &seed);
            char px[16] = {0}, py[16] = {0}, got[16] = {0}, want[16] = {0};
            int64_t d;

            sd_scalar_of_f64(t, x, px);
            sd_scalar_of_f64(t, y, py);
            hlo_scalar_op(functions[f].op, t, px, py, got);
            mpfr_set_d(a, x, MPFR_RNDN);
            mpfr_set_d(b, y, MPFR_RNDN);
            functions[f].fn(r, a, b);
            hlo_wide_store(t, mpfr_get_ld(r, MPFR_RNDN), want);
            d = distance(t, got, want);
            off += d != 0;
            if (d > most)
                fail_msg("%s of %s %a, %a gives %a, not %a",
                         hlo_op_table[functions[f].op].name, sd_dtype_name(t),
                         x, y, sd_scalar_to_f64(t, got),
                         sd_scalar_to_f64(t, want));
        }
        if (off > most_off * count)
            fail_msg("%s of %s: %d of %d are not correctly rounded",
                     hlo_op_table[functions[f].op].name, sd_dtype_name(t), off,
                     count);
    }
    mpfr_clears(a, b, r, (mpfr_ptr)NULL);
}

static void narrow_floats_are_exact(void **state)
{
    (void)state;
    check(SD_F32, 4000, 0, 0);
    check(SD_F16, 2000, 0, 0);
    check(SD_BF16, 2000, 0, 0);
}

static void doubles_are_near(void **state)
{
    (void)state;
    check(SD_F64, 4000, 1, 0.005);
}

/* Every byte by every amount, against the definition in wider integers. */
static void shifts_take_any_amount(void **state)
{
    (void)state;
    for (int v = -128; v < 128; v++)
        for (int n = 0; n < 256; n++) {
            int8_t a = (int8_t)v, b = (int8_t)n, r;

            hlo_scalar_op(HLO_SHR_ARITH, SD_S8, &a, &b, &r);
            assert_int_equal(r, v >> (n > 7 ? 7 : n));
            hlo_scalar_op(HLO_SHR_LOGIC, SD_S8, &a, &b, &r);
            assert_int_equal(r, (int8_t)(n > 7 ? 0 : (uint8_t)v >> n));
            hlo_scalar_op(HLO_SHL, SD_S8, &a, &b, &r);
            assert_int_equal(r, (int8_t)(n > 7 ? 0 : (unsigned)v << n));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrow_floats_are_exact),
        cmocka_unit_test(doubles_are_near),
        cmocka_unit_test(shifts_take_any_amount),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
