/* The evaluator's functions of one element against MPFR.
 *
 *   test_hlo_scalar               a sample of each function and type in bounds
 *   test_hlo_scalar table [NAME]  all of it, or of one op or type:
 * docs/numerics.md test_hlo_scalar rows FILE     that table has a row for each
 * function
 *
 * Rows are made from the op table: an op with a float or complex element and
 * without an exact function is a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>

#include "exact.h"
#include "hlo_scalar.h"

/* What the op table says of an element, as text: E(int, float, complex). */
static const char *const element_text[HLO_OP_COUNT] = {
#define OP(id, name, cls, types, props, ulp, fn, element) [HLO_##id] = #element,
#include "hlo_ops.def"
#undef OP
};

/* The element for one kind: 0 integers, 1 floats, 2 complex. */
static bool has_element(hlo_op op, int kind)
{
    const char *p = element_text[op], *end;
    int depth = 0;

    if (*p != 'E')
        return false;
    for (p += 2; kind > 0; p++) {
        depth += (*p == '(') - (*p == ')');
        kind -= *p == ',' && depth == 0;
    }
    while (*p == ' ')
        p++;
    end = p + strlen("NONE");
    return strncmp(p, "NONE", 4) != 0 || (*end != ',' && *end != ')');
}

static bool is_unary(hlo_op op)
{
    return hlo_op_table[op].cls == HLO_C_UNARY;
}

/* is-finite gives a pred: it has a test of its own */
static bool is_measured(hlo_op op, bool cplx)
{
    return has_element(op, cplx ? 2 : 1) && op != HLO_IS_FINITE;
}

/* ---- samples ---- */

static uint64_t next_bits(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *seed ^ *seed >> 29 ^ *seed << 35;
}

typedef struct {
    int sign_and_exp, man;
} layout; /* bits */

static layout layout_of(sd_dtype t)
{
    int bits = sd_dtype_table[t].bits;
    int man = t == SD_F64 ? 52 : t == SD_F32 ? 23 : t == SD_F16 ? 10 : 7;

    return bits <= 8 ? (layout){bits, 0} : (layout){bits - man, man};
}

/* Number i of a walk over signs and exponents: first those with no fraction
 * and with all of it, then any. */
static void stratum(sd_dtype t, uint64_t i, uint64_t *seed, void *p)
{
    layout l = layout_of(t);
    uint64_t strata = UINT64_C(1) << l.sign_and_exp;
    uint64_t all = (UINT64_C(1) << l.man) - 1, r = next_bits(seed) & all;
    uint64_t v = i % strata << l.man;

    v |= i < strata ? 0 : i < 2 * strata ? all : r;
    memcpy(p, &v, sd_dtype_bytes(t));
}

/* Of ordinary size; a fourth of them whole or half. */
static void ordinary(sd_dtype t, uint64_t *seed, void *p)
{
    uint64_t r = next_bits(seed);
    double v = ((double)(r >> 11) * 0x1p-53 - 0.5) * 40;

    sd_scalar_of_f64(t, r & 3 ? v : rint(2 * v) / 2, p);
}

/* A second operand: any, of ordinary size, or near the first. */
static void partner(sd_dtype t, const void *a, uint64_t *seed, void *p)
{
    uint64_t r = next_bits(seed);
    double near = ((double)(r >> 11) * 0x1p-53 + 0.5) * (r & 4 ? 1 : -1);

    if ((r & 3) == 0)
        stratum(t, next_bits(seed), seed, p);
    else if ((r & 3) == 1)
        ordinary(t, seed, p);
    else
        sd_scalar_of_f64(t, near * sd_scalar_to_f64(t, a), p);
}

/* Operands number i of n; true when they are all there are. */
static bool take_all(hlo_op op, sd_dtype t)
{
    return sd_dtype_table[t].bits <= (is_unary(op) ? 16 : 8);
}

static void real_operands(hlo_op op, sd_dtype t, uint64_t i, uint64_t *seed,
                          void *a, void *b)
{
    int bits = sd_dtype_table[t].bits;

    if (take_all(op, t)) {
        uint64_t low = i & ((UINT64_C(1) << bits) - 1), high = i >> bits;

        memcpy(a, &low, sd_dtype_bytes(t));
        memcpy(b, &high, sd_dtype_bytes(t));
        return;
    }
    stratum(t, i, seed, a);
    if (i % 8 == 7)
        ordinary(t, seed, a);
    partner(t, a, seed, b);
}

/* A complex operand: parts of any exponents, of ordinary size, on the unit
 * circle or on it moved to -1, or where e^x cos y is near 1. */
static void cplx_operand(sd_dtype part, uint64_t i, uint64_t *seed, char *p)
{
    char *q = p + sd_dtype_bytes(part);
    double y, angle;

    ordinary(part, seed, p);
    ordinary(part, seed, q);
    y = sd_scalar_to_f64(part, q);
    angle = y / 5;
    if (i % 8 < 2) {
        stratum(part, next_bits(seed), seed, p);
        stratum(part, next_bits(seed), seed, q);
    } else if (i % 8 == 2) {
        sd_scalar_of_f64(part, cos(angle), p);
        sd_scalar_of_f64(part, sin(angle), q);
    } else if (i % 8 == 3) {
        sd_scalar_of_f64(part, cos(angle) - 1, p);
        sd_scalar_of_f64(part, sin(angle), q);
    } else if (i % 8 == 4 && cos(y) > 0) {
        sd_scalar_of_f64(part, -log(cos(y)), p);
    } else if (i % 8 == 5) {
        partner(part, p, seed, q);
    }
}

static void cplx_operands(sd_dtype t, uint64_t i, uint64_t *seed, char *a,
                          char *b)
{
    sd_dtype part = sd_dtype_part(t);
    size_t n = sd_dtype_bytes(part);

    cplx_operand(part, i, seed, a);
    if (i & 8) {
        cplx_operand(part, i >> 4, seed, b);
    } else {
        partner(part, a, seed, b);
        partner(part, a + n, seed, b + n);
    }
}

/* ---- measuring ---- */

typedef struct {
    hlo_op op;
    sd_dtype type;
    uint64_t points;
    double worst;
    char a[16], b[16]; /* where */
} cell;

static bool is_finite(sd_dtype t, const void *p)
{
    sd_dtype part = sd_dtype_part(t);
    const char *q = (const char *)p + sd_dtype_bytes(part);

    return isfinite(sd_scalar_to_f64(part, p)) &&
           (part == t || isfinite(sd_scalar_to_f64(part, q)));
}

/* Parts of sizes so different that their sum, squared, hides one of them, or
 * zeros, whose sign would say the side of the cut. */
static bool is_lopsided(sd_dtype t, const cell *c)
{
    double complex a = (double complex)hlo_wide_load(t, c->a);
    double complex b = (double complex)hlo_wide_load(t, c->b);
    double part[] = {fabs(creal(a)), fabs(cimag(a)), fabs(creal(b)),
                     fabs(cimag(b))};
    double most = 0, least = INFINITY;

    for (size_t i = 0; i < SD_COUNTOF(part); i++) {
        most = fmax(most, part[i]);
        least = fmin(least, part[i]);
    }
    return !(most < 0x1p40 * least);
}

/* Operands of a complex function that have no number to be compared with:
 * infinities and NaNs, poles; a power that is past the largest number or whose
 * angle is beyond 2^40, of which nobody computes a digit; an arc tangent on no
 * certain side of its cut. */
static bool is_singular(hlo_op op, sd_dtype t, const cell *c, const exact *want)
{
    double x, y, most = t == SD_C64 ? FLT_MAX : DBL_MAX;

    if (!is_finite(t, c->a) || (!is_unary(op) && !is_finite(t, c->b)) ||
        !mpfr_number_p(want->re) || !mpfr_number_p(want->im))
        return true;
    if (op == HLO_ATAN2)
        return is_lopsided(t, c);
    if (op != HLO_POWER)
        return false;
    x = cabs((double complex)hlo_wide_load(t, c->a));
    y = cabs((double complex)hlo_wide_load(t, c->b));
    return x == 0 || !(y * (fabs(log(x)) + 4) < 0x1p40) ||
           fabs(mpfr_get_d(want->re, MPFR_RNDN)) > most ||
           fabs(mpfr_get_d(want->im, MPFR_RNDN)) > most;
}

/* A power and an arc tangent of complex numbers are measured in last places
 * of the whole: a small part of theirs is the difference of large angles. */
static bool is_by_part(hlo_op op)
{
    return op != HLO_POWER && op != HLO_ATAN2;
}

static double measure_cplx(const cell *c, const exact *want, const char *got)
{
    sd_dtype part = sd_dtype_part(c->type);
    bool less = mpfr_cmpabs(want->re, want->im) < 0, own = is_by_part(c->op);
    double re =
        exact_ulps(part, want->re, less && !own ? want->im : want->re, got);
    double im;

    /* the sign of a zero part, and what is no part: not compared */
    if (mpfr_zero_p(want->re))
        re = sd_scalar_to_f64(part, got) == 0 ? 0 : re;
    if (mpfr_zero_p(want->im))
        return re;
    im = exact_ulps(part, want->im, less || own ? want->im : want->re,
                    got + sd_dtype_bytes(part));
    return fmax(re, im);
}

static double measure_one(const cell *c, exact *v)
{
    bool cplx = sd_dtype_kind(c->type) == SD_K_COMPLEX;
    char got[16] = {0};

    exact_load(c->type, c->a, &v[0]);
    exact_load(c->type, c->b, &v[1]);
    exact_apply(c->op, cplx, &v[2], &v[0], &v[1]);
    if (cplx && is_singular(c->op, c->type, c, &v[2]))
        return 0;
    hlo_scalar_op(c->op, c->type, c->a, c->b, got);
    return cplx ? measure_cplx(c, &v[2], got)
                : exact_ulps(c->type, v[2].re, v[2].re, got);
}

static cell measure(hlo_op op, sd_dtype t, uint64_t points)
{
    bool cplx = sd_dtype_kind(t) == SD_K_COMPLEX;
    cell now = {.op = op, .type = t}, worst;
    uint64_t seed = 99;
    exact v[3];

    for (int i = 0; i < 3; i++)
        exact_init(&v[i], cplx ? 640 : 160);
    if (!cplx && take_all(op, t))
        points = UINT64_C(1) << sd_dtype_table[t].bits * (is_unary(op) ? 1 : 2);
    worst = now;
    for (uint64_t i = 0; i < points; i++) {
        if (cplx)
            cplx_operands(t, i, &seed, now.a, now.b);
        else
            real_operands(op, t, i, &seed, now.a, now.b);
        now.worst = measure_one(&now, v);
        if (now.worst > worst.worst || i == 0)
            worst = now;
    }
    for (int i = 0; i < 3; i++)
        exact_finish(&v[i]);
    worst.points = points;
    return worst;
}

/* What docs/numerics.md promises.  e^x cos y - 1 has no more than a quad's
 * digits of two terms that may cancel by those of a double. */
static double bound(hlo_op op, sd_dtype t)
{
    if (op == HLO_EXPM1 && t == SD_C128)
        return 64;
    return t == SD_F64 || t == SD_C128 ? 1 : 0.501;
}

static void print_operand(sd_dtype t, const char *p)
{
    sd_dtype part = sd_dtype_part(t);

    printf("%a", sd_scalar_to_f64(part, p));
    if (part != t)
        printf("%+ai", sd_scalar_to_f64(part, p + sd_dtype_bytes(part)));
}

static void print_cell(const cell *c)
{
    printf("| %s | %s | %" PRIu64 " | %.4f | ", hlo_op_table[c->op].name,
           sd_dtype_name(c->type), c->points, c->worst);
    print_operand(c->type, c->a);
    if (!is_unary(c->op)) {
        printf(", ");
        print_operand(c->type, c->b);
    }
    printf(" |\n");
    fflush(stdout);
}

/* ---- the table ---- */

typedef void (*cell_fn)(void *ctx, hlo_op op, sd_dtype t);

/* Every function on every float and complex type. */
static void each_cell(cell_fn fn, void *ctx)
{
    for (int op = 0; op < HLO_OP_COUNT; op++)
        for (int t = 0; t < SD_DTYPE_COUNT; t++) {
            sd_kind k = sd_dtype_kind((sd_dtype)t);
            bool cplx = k == SD_K_COMPLEX;

            if ((cplx || k == SD_K_FLOAT) && is_measured((hlo_op)op, cplx))
                fn(ctx, (hlo_op)op, (sd_dtype)t);
        }
}

static void print_row(void *ctx, hlo_op op, sd_dtype t)
{
    bool cplx = sd_dtype_kind(t) == SD_K_COMPLEX;
    uint64_t n = cplx ? 1 << 15 : t == SD_F64 ? 250000 : 1000000;
    const char *only = ctx;
    cell c;

    if (only && strcmp(only, hlo_op_table[op].name) != 0 &&
        strcmp(only, sd_dtype_name(t)) != 0)
        return;
    c = measure(op, t, n);
    print_cell(&c);
}

static void want_row(void *ctx, hlo_op op, sd_dtype t)
{
    char row[128];

    snprintf(row, sizeof row, "\n| %s | %s | ", hlo_op_table[op].name,
             sd_dtype_name(t));
    if (!strstr(ctx, row)) {
        fprintf(stderr, "no row%s: run `make numerics`\n", row + 1);
        exit(1);
    }
}

static int check_rows(const char *path)
{
    sd_buf file = {0};
    sd_status st = sd_file_read(path, &file);

    if (st) {
        fprintf(stderr, "%s\n", st->message);
        return 1;
    }
    sd_buf_fmt(&file, "%c", 0);
    each_cell(want_row, file.at);
    sd_buf_finish(&file);
    return 0;
}

/* ---- tests ---- */

static void sampled(void *ctx, hlo_op op, sd_dtype t)
{
    bool cplx = sd_dtype_kind(t) == SD_K_COMPLEX;
    uint64_t n = cplx ? 100 : 2000;
    int *bad = ctx;
    cell c;

    if (!exact_has(op, cplx)) {
        print_error("%s has no exact function\n", hlo_op_table[op].name);
        ++*bad;
        return;
    }
    c = measure(op, t, n);
    if (!(c.worst <= bound(op, t))) {
        print_cell(&c);
        ++*bad;
    }
}

static void functions_are_in_bounds(void **state)
{
    int bad = 0;

    (void)state;
    each_cell(sampled, &bad);
    assert_int_equal(bad, 0);
}

/* The element column has what the types column takes, and no more. */
static void columns_agree(void **state)
{
    static const int of_kind[] = {HLO_T_LOGIC, HLO_T_FLOAT, HLO_T_CPLX};

    (void)state;
    for (int op = 0; op < HLO_OP_COUNT; op++)
        for (int k = 0; k < 3 && *element_text[op] == 'E'; k++)
            if (has_element((hlo_op)op, k) !=
                ((hlo_op_table[op].types & of_kind[k]) != 0))
                fail_msg("%s: %s", hlo_op_table[op].name, element_text[op]);
}

static void finite_is_finite(void **state)
{
    (void)state;
    for (int t = SD_F4E2M1FN; t <= SD_F16; t++)
        for (uint32_t v = 0; v < 1u << sd_dtype_table[t].bits; v++) {
            char r = 2;

            hlo_scalar_op(HLO_IS_FINITE, (sd_dtype)t, &v, NULL, &r);
            assert_int_equal(r, is_finite((sd_dtype)t, &v));
        }
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_agree),
        cmocka_unit_test(functions_are_in_bounds),
        cmocka_unit_test(finite_is_finite),
        cmocka_unit_test(shifts_take_any_amount),
    };

    if (argc >= 2 && strcmp(argv[1], "table") == 0) {
        printf("| function | type | points | worst | where |\n"
               "|---|---|---|---|---|\n");
        each_cell(print_row, argc > 2 ? argv[2] : NULL);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "rows") == 0)
        return check_rows(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
