/* Complex functions of infinities, NaNs and zeros: what hlo_lower_complex makes
 * of them against the evaluator, which follows C99's Annex G.  A number must
 * be that number, an infinity and a zero theirs with the sign; where Annex G
 * leaves a sign open, or a part is NaN, the kind of the value is held: a value
 * with an infinite part is infinite whatever the other part is. */
#include "passes.h"
#include "ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PARTS = 9, VALUES = PARTS * PARTS, PAIRS = VALUES * VALUES };
static const double part[PARTS] = {0,         -0.0, 1,    -2, INFINITY,
                                   -INFINITY, NAN,  0.25, -40};

typedef struct {
    sd_arena *a;
    hlo_module *m;
    hlo_value arg[2];
    int narg;
} program;

static void fill(const program *p, int k, hlo_value *v)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);
    size_t size = sd_dtype_bytes(t);
    int64_t n = sd_shape_count(v->shape);

    for (int64_t i = 0; i < n; i++) {
        int64_t z = k == 0 && p->narg == 2 ? i / VALUES : i % VALUES;
        uint8_t *at = (uint8_t *)v->data + (size_t)i * 2 * size;

        sd_scalar_of_f64(t, part[z / PARTS], at);
        sd_scalar_of_f64(t, part[z % PARTS], at + size);
    }
}

static program program_of(hlo_op op, sd_dtype t)
{
    bool two = hlo_op_table[op].cls == HLO_C_BINARY;
    int64_t n = two ? PAIRS : VALUES;
    program p = {.a = sd_arena_create(), .narg = two ? 2 : 1};
    hlo_inst *x[2] = {NULL};
    hlo_comp *c;

    p.m = hlo_module_create(p.a, "special");
    p.m->entry = c = hlo_comp_create(p.m, "main");
    for (int i = 0; i < p.narg; i++) {
        x[i] = hlo_make_param(c, sd_shape_make(p.a, t, 1, &n), "z");
        p.arg[i] = hlo_value_make(p.a, x[i]->shape);
        fill(&p, i, &p.arg[i]);
    }
    hlo_set_root(c, two ? hlo_make_binary((hlo_at){.c = c}, op, x[0], x[1])
                        : hlo_make_unary((hlo_at){.c = c}, op, x[0]));
    return p;
}

typedef enum { FINITE, ZERO, INFINITE, NOT_A_NUMBER } kind;

static kind kind_of(const double *z)
{
    if (isinf(z[0]) || isinf(z[1]))
        return INFINITE;
    if (isnan(z[0]) || isnan(z[1]))
        return NOT_A_NUMBER;
    return z[0] == 0 && z[1] == 0 ? ZERO : FINITE;
}

static void read(const hlo_value *v, int64_t i, double *z)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);
    int n = t == v->shape->dtype ? 1 : 2;

    z[1] = 0;
    for (int k = 0; k < n; k++)
        z[k] = sd_scalar_to_f64(t, (uint8_t *)v->data +
                                       (size_t)(i * n + k) * sd_dtype_bytes(t));
}

static bool close_to(double x, double y)
{
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    return x == y || fabs(x - y) <= 1e-5 * (fabs(x) + fabs(y)) + 1e-5;
}

static bool agree(const double *x, const double *y)
{
    kind k = kind_of(y);

    if (kind_of(x) != k)
        return k == FINITE || k == ZERO
                   ? close_to(x[0], y[0]) && close_to(x[1], y[1])
                   : false;
    return k != FINITE || (close_to(x[0], y[0]) && close_to(x[1], y[1]));
}

static int wrong(hlo_op op, sd_dtype t)
{
    program p = program_of(op, t);
    const device_desc dev = {.kind = DEVICE_HOST, .features = DEVICE_HAS_F64};
    hlo_value want, got;
    int n = 0;

    assert_null(ref_eval(p.a, p.m->entry, p.arg, p.narg, &want));
    assert_true(hlo_pass_of_name("lower-complex")->run(p.m, &dev));
    assert_null(hlo_verify(p.m));
    assert_null(ref_eval(p.a, p.m->entry, p.arg, p.narg, &got));
    for (int64_t i = 0; i < sd_shape_count(want.shape); i++) {
        double x[2], y[2], a[2], b[2] = {0, 0};

        read(&got, i, x);
        read(&want, i, y);
        read(&p.arg[0], i, a);
        if (p.narg > 1)
            read(&p.arg[1], i, b);
        if (!agree(x, y) && n++ < 6)
            print_error("%s of %s (%g, %g) (%g, %g): (%g, %g), not (%g, %g)\n",
                        hlo_op_table[op].name, sd_dtype_name(t), a[0], a[1],
                        b[0], b[1], x[0], x[1], y[0], y[1]);
    }
    sd_arena_destroy(p.a);
    return n;
}

static void special_values_are_those_of_annex_g(void **state)
{
    static const hlo_op ops[] = {HLO_ABS,   HLO_EXP,  HLO_EXPM1, HLO_LOG,
                                 HLO_LOG1P, HLO_SIN,  HLO_COS,   HLO_TAN,
                                 HLO_TANH,  HLO_SQRT, HLO_RSQRT, HLO_DIVIDE};
    int n = 0;

    (void)state;
    for (size_t i = 0; i < SD_COUNTOF(ops); i++)
        n += wrong(ops[i], SD_C64) + wrong(ops[i], SD_C128);
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(special_values_are_those_of_annex_g),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
