/* devlib: how far from the truth, and the same bits in every build.
 *
 * f32 functions are held against the C library's f64 ones, f64 functions
 * against MPFR; the worst error of a row must stay below its limit.  With the
 * argument "table" the errors are printed as docs/numerics.md holds them. */
#include <fenv.h>
#include <math.h>
#include <mpfr.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "devlib.h"
#include "skip.h"

#define FN1(f) \
    float dl_##f##_f32(float); \
    double dl_##f##_f64(double);
#define FN2(f) \
    float dl_##f##_f32(float, float); \
    double dl_##f##_f64(double, double);
#include "hlo_functions.def"

#define N32 400000
#define N64 20000

static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s * 0x2545f4914f6cdd1dull;
}

/* A quarter any bits, the rest even over ranges of some size. */
static float draw32(uint64_t *s, int i)
{
    static const float range[4] = {0, 120, 4, 70000};
    uint32_t b = (uint32_t)(next(s) >> 32);
    float x;

    if (i % 4)
        return ((float)b * 0x1p-31f - 1) * range[i % 4];
    memcpy(&x, &b, sizeof x);
    return x;
}

static double draw64(uint64_t *s, int i)
{
    static const double range[4] = {0, 800, 4, 1e6};
    uint64_t b = next(s);
    double x;

    if (i % 4)
        return ((double)b * 0x1p-63 - 1) * range[i % 4];
    memcpy(&x, &b, sizeof x);
    return x;
}

/* Error in units of the last place of want; 1e9 where the kinds differ. */
static double error32(float got, double want)
{
    float w = (float)want;
    int e;

    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : 1e9;
    if (got == w && (isinf(w) || w == 0))
        return signbit(got) == signbit(w) ? 0 : 1e9;
    if (isinf(got))
        return 1e9;
    frexp(want, &e);
    return fabs(got - want) / ldexp(1, SD_MAX(e, -125) - 24);
}

static double error64(double got, mpfr_t want)
{
    double w = mpfr_get_d(want, MPFR_RNDN), err;
    mpfr_t d;
    int e;

    if (isnan(w) || isnan(got))
        return isnan(w) && isnan(got) ? 0 : 1e9;
    if (got == w && (isinf(w) || w == 0))
        return signbit(got) == signbit(w) ? 0 : 1e9;
    if (isinf(got))
        return 1e9;
    e = mpfr_zero_p(want) ? -1021 : (int)SD_MAX(mpfr_get_exp(want), -1021);
    mpfr_init2(d, 200);
    mpfr_sub_d(d, want, got, MPFR_RNDN);
    mpfr_mul_2si(d, d, 53 - e, MPFR_RNDN);
    err = fabs(mpfr_get_d(d, MPFR_RNDN));
    mpfr_clear(d);
    return err;
}

/* exp and logistic have no subnormal results: those are 0. */
static double ref_exp(double x)
{
    double y = exp(x);

    return y < 0x1p-126 ? 0 : y;
}
static double ref_logistic(double x)
{
    double y = 1 / (1 + exp(-x));

    return y < 0x1p-126 ? 0 : y;
}
static double ref_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static int zero_if_subnormal(mpfr_t r, int rounded)
{
    if (mpfr_cmp_ui_2exp(r, 1, -1022) >= 0)
        return rounded;
    mpfr_set_zero(r, 1);
    return 0;
}

static int big_exp(mpfr_t r, const mpfr_t x, mpfr_rnd_t m)
{
    return zero_if_subnormal(r, mpfr_exp(r, x, m));
}

static int big_logistic(mpfr_t r, const mpfr_t x, mpfr_rnd_t m)
{
    mpfr_neg(r, x, m);
    mpfr_exp(r, r, m);
    mpfr_add_ui(r, r, 1, m);
    return zero_if_subnormal(r, mpfr_ui_div(r, 1, r, m));
}

static int big_rsqrt(mpfr_t r, const mpfr_t x, mpfr_rnd_t m)
{
    int z = mpfr_rec_sqrt(r, x, m);

    if (mpfr_zero_p(x)) /* theirs forgets the sign */
        mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1);
    return z;
}

typedef struct {
    const char *name;
    float (*f)(float);
    double (*ref)(double), (*d)(double);
    int (*big)(mpfr_t, const mpfr_t, mpfr_rnd_t);
    double limit32, limit64; /* ulp */
} unary;

static const unary unary_table[] = {
#define ROW(n, ref, big, a, b) {#n, dl_##n##_f32, ref, dl_##n##_f64, big, a, b}
    ROW(exp, ref_exp, big_exp, 1.1, 1.1),
    ROW(expm1, expm1, mpfr_expm1, 1.5, 1.8),
    ROW(log, log, mpfr_log, 1, 1),
    ROW(log1p, log1p, mpfr_log1p, 1.8, 1.8),
    ROW(sin, sin, mpfr_sin, 1, 1),
    ROW(cos, cos, mpfr_cos, 1, 1),
    ROW(tan, tan, mpfr_tan, 2.4, 2.4),
    ROW(tanh, tanh, mpfr_tanh, 1.5, 2.5),
    ROW(logistic, ref_logistic, big_logistic, 2.5, 2.6),
    ROW(cbrt, cbrt, mpfr_cbrt, 0.51, 0.51),
    ROW(erf, erf, mpfr_erf, 1.2, 1.3),
    ROW(rsqrt, ref_rsqrt, big_rsqrt, 1.5, 1.5),
#undef ROW
};

typedef struct {
    const char *name;
    float (*f)(float, float);
    double (*ref)(double, double), (*d)(double, double);
    int (*big)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
    double limit32, limit64;
} binary;

static const binary binary_table[] = {
    {"pow", dl_pow_f32, pow, dl_pow_f64, mpfr_pow, 1.1, 1.3},
    {"atan2", dl_atan2_f32, atan2, dl_atan2_f64, mpfr_atan2, 2.2, 2.3},
    {"rem", dl_rem_f32, fmod, dl_rem_f64, mpfr_fmod, 0, 0},
};

static const float special[] = {0.0f,
                                -0.0f,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                1,
                                -1,
                                2,
                                -2,
                                3,
                                -3,
                                0.5f,
                                -0.5f,
                                2.5f,
                                0x1p-149f,
                                -0x1p-149f,
                                0x1p-126f,
                                0x1.fffffep127f,
                                -0x1.fffffep127f,
                                16777216,
                                -16777215,
                                88.8f,
                                -104.5f,
                                0x1p-24f,
                                -0x1p-25f};

static double worst_unary32(const unary *t)
{
    uint64_t s = 88172645463325252ull;
    double worst = 0, e;
    float x;

    for (int i = 0; i < N32 + (int)SD_COUNTOF(special); i++) {
        x = i < N32 ? draw32(&s, i) : special[i - N32];
        e = error32(t->f(x), t->ref(x));
        if (e > 3)
            print_message("%s_f32(%a) = %a, not %a\n", t->name, x, t->f(x),
                          t->ref(x));
        worst = SD_MAX(worst, e);
    }
    return worst;
}

static double worst_unary64(const unary *t)
{
    uint64_t s = 88172645463325252ull;
    double worst = 0, e, x;
    mpfr_t a, r;

    mpfr_inits2(160, a, r, (mpfr_ptr)0);
    for (int i = 0; i < N64 + (int)SD_COUNTOF(special); i++) {
        x = i < N64 ? draw64(&s, i) : special[i - N64];
        mpfr_set_d(a, x, MPFR_RNDN);
        t->big(r, a, MPFR_RNDN);
        e = error64(t->d(x), r);
        if (e > 3)
            print_message("%s_f64(%a) = %a, not %a\n", t->name, x, t->d(x),
                          mpfr_get_d(r, MPFR_RNDN));
        worst = SD_MAX(worst, e);
    }
    mpfr_clears(a, r, (mpfr_ptr)0);
    return worst;
}

/* Pairs: unrelated; moderate, positive first; nearly equal. */
static void draw_pair(uint64_t *s, int i, double *x, double *y)
{
    *x = draw64(s, i);
    *y = draw64(s, i / 4);
    if (i % 4 == 1) {
        *x = ldexp(fabs(*x), -4);
        *y = ldexp(*y, -5);
    } else if (i % 4 == 3) {
        *y = *x * (1 + ldexp(*y, -30));
    }
}

static double worst_binary32(const binary *t)
{
    const int k = SD_COUNTOF(special);
    uint64_t s = 88172645463325252ull;
    double worst = 0, e, dx, dy;
    float x, y;

    for (int i = 0; i < N32 + k * k; i++) {
        draw_pair(&s, i, &dx, &dy);
        x = i < N32 ? (float)dx : special[(i - N32) / k];
        y = i < N32 ? (float)dy : special[(i - N32) % k];
        if (i < N32 && i % 4 == 0) {
            x = draw32(&s, 0);
            y = draw32(&s, i / 4);
        }
        e = error32(t->f(x, y), t->ref(x, y));
        if (e > 3)
            print_message("%s_f32(%a, %a) = %a, not %a\n", t->name, x, y,
                          t->f(x, y), t->ref(x, y));
        worst = SD_MAX(worst, e);
    }
    return worst;
}

static double worst_binary64(const binary *t)
{
    const int k = SD_COUNTOF(special);
    uint64_t s = 88172645463325252ull;
    double worst = 0, e, x, y;
    mpfr_t a, b, r;

    mpfr_inits2(160, a, b, r, (mpfr_ptr)0);
    for (int i = 0; i < N64 + k * k; i++) {
        draw_pair(&s, i, &x, &y);
        if (i >= N64) {
            x = special[(i - N64) / k];
            y = special[(i - N64) % k];
        }
        mpfr_set_d(a, x, MPFR_RNDN);
        mpfr_set_d(b, y, MPFR_RNDN);
        t->big(r, a, b, MPFR_RNDN);
        e = error64(t->d(x, y), r);
        if (e > 3)
            print_message("%s_f64(%a, %a) = %a, not %a\n", t->name, x, y,
                          t->d(x, y), mpfr_get_d(r, MPFR_RNDN));
        worst = SD_MAX(worst, e);
    }
    mpfr_clears(a, b, r, (mpfr_ptr)0);
    return worst;
}

static bool good(const char *name, const char *type, double e, double limit)
{
    if (e <= limit)
        return true;
    print_message("%s_%s: %.3f ulp, more than %.2f\n", name, type, e, limit);
    return false;
}

static bool measure(bool table)
{
    bool ok = true;

    for (size_t i = 0; i < SD_COUNTOF(unary_table); i++) {
        const unary *t = &unary_table[i];
        double a = worst_unary32(t), b = worst_unary64(t);

        if (table)
            printf("| %s | %.2f | %.2f |\n", t->name, a, b);
        ok &= good(t->name, "f32", a, t->limit32);
        ok &= good(t->name, "f64", b, t->limit64);
    }
    for (size_t i = 0; i < SD_COUNTOF(binary_table); i++) {
        const binary *t = &binary_table[i];
        double a = worst_binary32(t), b = worst_binary64(t);

        if (table)
            printf("| %s | %.2f | %.2f |\n", t->name, a, b);
        ok &= good(t->name, "f32", a, t->limit32);
        ok &= good(t->name, "f64", b, t->limit64);
    }
    return ok;
}

static void errors_stay_below_their_limits(void **state)
{
    (void)state;
    assert_true(measure(false));
}

/* ---- narrow floats: against base, which was written apart ---- */

static void narrow_floats_agree_with_base(void **state)
{
    uint64_t s = 12345;
    int bad = 0;

    (void)state;
#define BASE_f16           SD_F16
#define BASE_bf16          SD_BF16
#define BASE_f4e2m1fn      SD_F4E2M1FN
#define BASE_f6e2m3fn      SD_F6E2M3FN
#define BASE_f6e3m2fn      SD_F6E3M2FN
#define BASE_f8e3m4        SD_F8E3M4
#define BASE_f8e4m3        SD_F8E4M3
#define BASE_f8e4m3fn      SD_F8E4M3FN
#define BASE_f8e4m3b11fnuz SD_F8E4M3B11FNUZ
#define BASE_f8e4m3fnuz    SD_F8E4M3FNUZ
#define BASE_f8e5m2        SD_F8E5M2
#define BASE_f8e5m2fnuz    SD_F8E5M2FNUZ
#define BASE_f8e8m0fnu     SD_F8E8M0FNU
#define X(t, u) \
    for (uint32_t c = 0; c <= (u) - 1; c++) { \
        const sd_dtype type = BASE_##t; \
        u bits = (u)c, back, mid, want; \
        float f = dl_##t##_to_f32(bits); \
        double d = sd_scalar_to_f64(type, &bits), x; \
        if (c >> sd_dtype_table[type].bits) \
            break; \
        back = dl_f32_to_##t(f); \
        if (isnan(d) ? !isnan(f) : (f != d || !signbit(f) != !signbit(d))) \
            print_message(#t " %x to %a, not %a\n", c, f, d), bad++; \
        if (!isnan(f) && back != bits) \
            print_message(#t " %x comes back %x\n", c, back), bad++; \
        /* around this value, and half way to others: once from f64 */ \
        x = d * (1 + ldexp((double)(int64_t)next(&s), -63 - (int)(c % 9))); \
        sd_scalar_of_f64(type, x, &want); \
        mid = dl_f64_to_##t(x); \
        if (!isnan(x) && mid != want) \
            print_message(#t " of %a: %x, not %x\n", x, mid, want), bad++; \
        x = d * (1 + 0x1p-4) * (1 + (c & 1 ? 0x1p-40 : -0x1p-40)); \
        sd_scalar_of_f64(type, x, &want); \
        mid = dl_f64_to_##t(x); \
        if (!isnan(x) && mid != want) \
            print_message(#t " of %a: %x, not %x\n", x, mid, want), bad++; \
    }
    DEVLIB_NARROW(X)
#undef X
    assert_int_equal(bad, 0);
}

/* ---- the same bits in 8 lanes by clang ---- */

#define FN1(f) \
    void lanes_##f##_f32(const float *, float *); \
    void lanes_##f##_f64(const double *, double *);
#define FN2(f)
#include "hlo_functions.def"
#define FN1(f)
#define FN2(f) \
    void lanes_##f##_f32(const float *, const float *, float *); \
    void lanes_##f##_f64(const double *, const double *, double *);
#include "hlo_functions.def"
#define X(t, u) void lanes_##t(const float *, u *, float *);
DEVLIB_NARROW(X)
#undef X

#define SAME(a, b) \
    (!memcmp(&(a), &(b), sizeof(a)) || ((a) != (a) && (b) != (b)))

static void lanes_give_the_same_bits(void **state)
{
    uint64_t s = 4711;
    float x[8], y[8], r[8], q;
    double dx[8], dy[8], dr[8], dq;
    int bad = 0;

    (void)state;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        skip_because("a processor without AVX2 and FMA");
    for (int i = 0; i < 3000; i++) {
        for (int j = 0; j < 8; j++) {
            x[j] = draw32(&s, i + j);
            dx[j] = draw64(&s, i + j);
            draw_pair(&s, i + j, &dx[j], &dy[j]);
            y[j] = (float)dy[j];
        }
#define CHECK(name, a, b) \
    if (!SAME(a, b)) { \
        print_message(name ": %a and %a\n", (double)(a), (double)(b)); \
        bad++; \
    }
#define FN1(f) \
    lanes_##f##_f32(x, r); \
    lanes_##f##_f64(dx, dr); \
    for (int j = 0; j < 8; j++) { \
        q = dl_##f##_f32(x[j]); \
        dq = dl_##f##_f64(dx[j]); \
        CHECK(#f "_f32", q, r[j]) \
        CHECK(#f "_f64", dq, dr[j]) \
    }
#define FN2(f)
#include "hlo_functions.def"
#define FN1(f)
#define FN2(f) \
    lanes_##f##_f32(x, y, r); \
    lanes_##f##_f64(dx, dy, dr); \
    for (int j = 0; j < 8; j++) { \
        q = dl_##f##_f32(x[j], y[j]); \
        dq = dl_##f##_f64(dx[j], dy[j]); \
        CHECK(#f "_f32", q, r[j]) \
        CHECK(#f "_f64", dq, dr[j]) \
    }
#include "hlo_functions.def"
#define X(t, u) \
    { \
        u c[8], one; \
        lanes_##t(x, c, r); \
        for (int j = 0; j < 8; j++) { \
            one = dl_f32_to_##t(x[j]); \
            q = dl_##t##_to_f32(one); \
            CHECK("to " #t, one, c[j]) \
            CHECK("from " #t, q, r[j]) \
        } \
    }
        DEVLIB_NARROW(X)
#undef X
        if (bad > 20)
            break;
    }
    assert_int_equal(bad, 0);
}

float dl_exp_down_f32(float x);
void lanes_exp_down_f32(const float *, float *);

/* Of one number of 1,013 of those below zero. */
static void exp_below_zero_is_exp(void **state)
{
    bool lanes =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    int bad = 0;

    (void)state;
    for (uint32_t i = 0x80000000; i < 0xff900000 && bad < 20; i += 8 * 1013) {
        float x[8], r[8], one, want;

        for (uint32_t j = 0; j < 8; j++) {
            uint32_t bits = i + j * 1013;

            memcpy(&x[j], &bits, sizeof bits);
        }
        if (lanes)
            lanes_exp_down_f32(x, r);
        for (int j = 0; j < 8; j++) {
            want = dl_exp_f32(x[j]);
            one = dl_exp_down_f32(x[j]);
            CHECK("exp_down", one, want)
            if (lanes)
                CHECK("exp_down in lanes", r[j], want)
        }
    }
    assert_int_equal(bad, 0);
}

static void expect_no_underflow(const char *what)
{
    if (fetestexcept(FE_UNDERFLOW))
        fail_msg("%s: a product underflows, which takes tens of cycles", what);
}

static void expect_zero(float x, double y, bool in_lanes)
{
    float lanes[8], got[8];

    feclearexcept(FE_ALL_EXCEPT);
    assert_true(dl_exp_f32(x) == 0 && dl_exp_down_f32(x) == 0);
    assert_true(dl_logistic_f32(x) == 0 && dl_logistic_f64(y) == 0);
    assert_true(dl_exp_f64(y) == 0);
    expect_no_underflow("exp");
    if (!in_lanes)
        return;
    for (int j = 0; j < 8; j++)
        lanes[j] = x;
    lanes_exp_down_f32(lanes, got);
    expect_no_underflow("exp in lanes");
    assert_true(got[0] == 0);
}

/* What a softmax masks is 0, and so is what would be subnormal; no product on
 * the way is either.  Around the least x whose e^x is normal, each number. */
static void exp_has_no_subnormal_results(void **state)
{
    static const double masked[] = {-104.5, -127, -176, -1e4, -1e30, -INFINITY};
    bool lanes =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(masked); i++)
        expect_zero((float)masked[i], 8 * masked[i], lanes);
    for (int i = 0; i < 17500; i++)
        expect_zero(-87.3366f - (float)i * 1e-3f, -708.3965 - i * 2e-3, lanes);
    expect_zero(-0x1.5d58ap+6f, -0x1.6232bdd7abcd3p+9, lanes);
    assert_true(dl_exp_f32(-0x1.5d589ep+6f) >= 0x1p-126f);
    assert_true(dl_exp_f64(-0x1.6232bdd7abcd2p+9) >= 0x1p-1022);
}

static void every_function_is_found(void **state)
{
    (void)state;
#define HAS(name) \
    assert_non_null(devlib_find(DEVLIB_X86_V3, name)); \
    assert_non_null(devlib_find(DEVLIB_X86_V3, name "_x8")); \
    assert_non_null(devlib_find(DEVLIB_X86_V4, name "_x16")); \
    assert_non_null(devlib_find(DEVLIB_SPIRV, name)); \
    assert_null(devlib_find(DEVLIB_SPIRV, name "_x8"));
#define FN1(f) HAS("dl_" #f "_f32") HAS("dl_" #f "_f64")
#define FN2(f) FN1(f)
#include "hlo_functions.def"
#define X(t, u) \
    HAS("dl_" #t "_to_f32") HAS("dl_f32_to_" #t) HAS("dl_f64_to_" #t)
    DEVLIB_NARROW(X)
#undef X
    assert_null(devlib_find(DEVLIB_X86_V3, "dl_no_such"));
}

/* Emitters round an f32 to bf16 by adding to its bits, which takes a NaN with
 * all of the upper half set to zero.  Of bf16 values no function makes one. */
static void holds_when_rounded(const char *name, float y)
{
    uint32_t u;

    memcpy(&u, &y, sizeof u);
    if (isnan(y) && ((u + 0x7fff + (u >> 16 & 1)) & 0x7fffffff) < 0x7f810000)
        fail_msg("%s gives the NaN %08x", name, u);
}

static float of_bf16(uint32_t bits)
{
    uint32_t u = bits << 16;
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

static void nans_of_bf16_values_round_like_numbers(void **state)
{
    static const uint32_t other[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80,
                                     0xff80, 0x7fc0, 0xffc0, 0x7fff, 0xffff,
                                     0x7f81, 0x4040, 0x0001, 0x7f7f};

    (void)state;
    for (uint32_t i = 0; i <= 0xffff; i++) {
        float x = of_bf16(i);

#define FN1(f) holds_when_rounded(#f, dl_##f##_f32(x));
#define FN2(f)
#include "hlo_functions.def"
        for (size_t k = 0; k < SD_COUNTOF(other); k++) {
            float y = of_bf16(other[k]);

#define FN1(f)
#define FN2(f) \
    holds_when_rounded(#f, dl_##f##_f32(x, y)); \
    holds_when_rounded(#f, dl_##f##_f32(y, x));
#include "hlo_functions.def"
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_stay_below_their_limits),
        cmocka_unit_test(narrow_floats_agree_with_base),
        cmocka_unit_test(lanes_give_the_same_bits),
        cmocka_unit_test(exp_below_zero_is_exp),
        cmocka_unit_test(exp_has_no_subnormal_results),
        cmocka_unit_test(every_function_is_found),
        cmocka_unit_test(nans_of_bf16_values_round_like_numbers),
    };

    if (argc > 1 && !strcmp(argv[1], "table"))
        return measure(true) ? 0 : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
