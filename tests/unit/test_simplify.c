/* The rules of `simplify` on one element, bit by bit: a program is evaluated,
 * simplified, and evaluated again.
 *
 * Chains of conversions: source x middle x target over all element types.
 * Arithmetic: every exact op of every type on operands that rules look for (a
 * constant, the same value twice, a value negated).  All values of the types
 * of 8 bits; of wider ones those about which types differ: powers of two and
 * their neighbours, what rounds to them, the ends, infinities, zeros, NaNs.
 * A NaN is a NaN: what is in it is not held. */
#include "passes.h"
#include "ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SCALARS = SD_TUPLE, MOST_VALUES = 20000, MOST_TEXT = 200 };

/* ---- values ---- */

typedef struct {
    sd_dtype part;
    uint8_t *at;
    int64_t n;
} values;

static void put(values *v, const void *x)
{
    size_t size = sd_dtype_bytes(v->part);

    assert_true(v->n < MOST_VALUES);
    memcpy(v->at + (size_t)v->n++ * size, x, size);
}

static void put_f64(values *v, double x)
{
    uint8_t at[8];

    sd_scalar_of_f64(v->part, x, at);
    put(v, at);
    sd_scalar_of_f64(v->part, -x, at);
    put(v, at);
}

/* Between 2^k and its neighbours in every type. */
static void float_values(values *v)
{
    static const int power[] = {
        -1074, -1022, -160, -150, -149, -134, -133, -128, -127, -126, -30, -25,
        -24,   -17,   -15,  -14,  -11,  -10,  -8,   -7,   -4,   -3,   -2,  -1,
        0,     1,     2,    3,    4,    5,    6,    7,    8,    9,    10,  11,
        14,    15,    16,   17,   23,   24,   25,   31,   32,   33,   52,  53,
        54,    62,    63,   64,   65,   119,  120,  126,  127,  128,  1023};
    static const int step[] = {1,  2,  3,  4,  5,  7,  8, 9,
                               10, 11, 12, 23, 24, 25, 52};

    put_f64(v, 0);
    put_f64(v, INFINITY);
    put_f64(v, NAN);
    for (size_t i = 0; i < SD_COUNTOF(power); i++) {
        double x = ldexp(1, power[i]);

        put_f64(v, x);
        for (size_t k = 0; k < SD_COUNTOF(step); k++) {
            put_f64(v, x + ldexp(x, -step[k]));
            put_f64(v, x - ldexp(x, -step[k] - 1));
            put_f64(v, x + ldexp(x, 1 - step[k]) + ldexp(x, -step[k]));
        }
    }
}

static void int_values(values *v)
{
    int bits = sd_dtype_table[v->part].bits;

    for (int k = 0; k <= bits; k++)
        for (int64_t d = -2; d <= 2; d++)
            for (int sign = -1; sign <= 1; sign += 2) {
                uint64_t p = k < 64 ? UINT64_C(1) << k : 0;
                uint8_t at[8];

                sd_scalar_of_s64(
                    v->part, (int64_t)((uint64_t)sign * (p + (uint64_t)d)), at);
                put(v, at);
            }
}

static values values_of(sd_arena *a, sd_dtype t)
{
    values v = {.part = sd_dtype_part(t)};
    int bits = sd_dtype_table[v.part].bits;

    v.at = sd_arena_alloc(a, (size_t)MOST_VALUES * sd_dtype_bytes(v.part));
    if (bits <= 8)
        for (int i = 0; i < 1 << bits; i++) {
            uint8_t b = (uint8_t)i;

            if (sd_dtype_kind(t) != SD_K_FLOAT)
                sd_scalar_of_s64(t, i, &b);
            put(&v, &b);
        }
    else if (sd_dtype_kind(v.part) == SD_K_FLOAT)
        float_values(&v);
    else
        int_values(&v);
    if (t != v.part)
        v.n /= 2;
    return v;
}

/* ---- one program, before and after ---- */

typedef struct {
    sd_arena *a;
    hlo_module *m;
    hlo_inst *x; /* the parameter */
    hlo_at at;
    values v;
} program;

static program program_of(sd_dtype t)
{
    program p = {.a = sd_arena_create()};
    hlo_comp *c;

    p.v = values_of(p.a, t);
    p.m = hlo_module_create(p.a, "rule");
    p.m->entry = c = hlo_comp_create(p.m, "main");
    p.x = hlo_make_param(c, sd_shape_make(p.a, t, 1, &p.v.n), "x");
    p.at = (hlo_at){.c = c};
    return p;
}

static bool same(sd_dtype t, const void *x, const void *y)
{
    if (!memcmp(x, y, sd_dtype_bytes(t)))
        return true;
    return sd_dtype_kind(t) == SD_K_FLOAT && isnan(sd_scalar_to_f64(t, x)) &&
           isnan(sd_scalar_to_f64(t, y));
}

static double number(sd_dtype t, const void *x)
{
    return sd_dtype_kind(t) == SD_K_FLOAT ? sd_scalar_to_f64(t, x)
                                          : (double)sd_scalar_to_s64(t, x);
}

static hlo_value evaluated(const program *p)
{
    hlo_value arg = {p->x->shape, p->v.at, NULL}, out;

    assert_null(ref_eval(p->a, p->m->entry, &arg, 1, &out));
    return out;
}

static void say(const program *p, const char *what, const hlo_value *want,
                const hlo_value *got)
{
    sd_dtype t = sd_dtype_part(want->shape->dtype);
    size_t size = sd_dtype_bytes(t);
    int64_t n = sd_shape_count(want->shape) * (t == want->shape->dtype ? 1 : 2);

    for (int64_t i = 0; i < n; i++) {
        uint8_t *x = (uint8_t *)want->data + (size_t)i * size;
        uint8_t *y = (uint8_t *)got->data + (size_t)i * size;

        if (same(t, x, y))
            continue;
        print_error(
            "%s: of %.17g it is %.17g, simplified %.17g\n", what,
            number(p->v.part, p->v.at + (size_t)i * sd_dtype_bytes(p->v.part)),
            number(t, x), number(t, y));
        return;
    }
}

static bool equal(const hlo_value *x, const hlo_value *y)
{
    sd_dtype t = sd_dtype_part(x->shape->dtype);
    size_t size = sd_dtype_bytes(t);
    int64_t n = sd_shape_count(x->shape) * (t == x->shape->dtype ? 1 : 2);

    for (int64_t i = 0; i < n; i++)
        if (!same(t, (uint8_t *)x->data + (size_t)i * size,
                  (uint8_t *)y->data + (size_t)i * size))
            return false;
    return true;
}

typedef struct {
    int changed, wrong;
} tally;

static void must(sd_status st, const char *what)
{
    if (st)
        fail_msg("%s: %s", what, st->message);
}

/* Root, simplified, has the values it had. */
static void hold(program *p, hlo_inst *root, const char *what, tally *t)
{
    hlo_value want, got;

    hlo_set_root(p->m->entry, root);
    must(hlo_verify(p->m), what);
    want = evaluated(p);
    if (hlo_pass_of_name("simplify")->run(p->m, NULL)) {
        t->changed++;
        must(hlo_verify(p->m), what);
        got = evaluated(p);
        if (!equal(&want, &got) && t->wrong++ < MOST_TEXT)
            say(p, what, &want, &got);
    }
}

/* ---- conversions ---- */

static void chains(void **state)
{
    tally t = {0};

    (void)state;
    for (int from = 0; from < SCALARS; from++)
        for (int middle = 0; middle < SCALARS; middle++)
            for (int to = 0; to < SCALARS; to++) {
                program p = program_of((sd_dtype)from);
                hlo_inst *y = hlo_make_convert(p.at, (sd_dtype)middle, p.x);
                char what[80];

                snprintf(what, sizeof what, "%s -> %s -> %s",
                         sd_dtype_name((sd_dtype)from),
                         sd_dtype_name((sd_dtype)middle),
                         sd_dtype_name((sd_dtype)to));
                hold(&p, hlo_make_convert(p.at, (sd_dtype)to, y), what, &t);
                sd_arena_destroy(p.a);
            }
    print_message("%d chains simplified\n", t.changed);
    assert_true(t.changed > 2000);
    assert_int_equal(t.wrong, 0);
}

/* ---- arithmetic ---- */

static const double numbers[] = {0,   -0.0, 1,    -1,       2,        -2, 0.5,
                                 3,   4,    -4,   0.25,     7,        8,  1e30,
                                 100, 255,  -128, INFINITY, -INFINITY};

static bool takes(hlo_op op, sd_dtype t)
{
    return hlo_op_table[op].types & hlo_type_bit(t);
}

static bool is_exact(hlo_op op, sd_dtype t)
{
    sd_kind k = sd_dtype_kind(t);

    return hlo_op_table[op].ulp == 0 || k == SD_K_SINT || k == SD_K_UINT;
}

static hlo_inst *number_like(program *p, hlo_inst *x, double v)
{
    sd_dtype t = x->shape->dtype;

    if (sd_dtype_kind(sd_dtype_part(t)) == SD_K_FLOAT)
        return hlo_make_fill(p->at, x->shape, v);
    return hlo_make_broadcast(
        p->at,
        hlo_make_scalar_s64(p->at, t,
                            (int64_t)fmax(fmin(v, INT32_MAX), INT32_MIN)),
        x->shape, NULL, 0);
}

/* The second operand, and the first, of form k; NULL: there are no more. */
static bool operands(program *p, int k, hlo_inst **x, hlo_inst **y)
{
    sd_dtype t = p->x->shape->dtype;
    int n = SD_COUNTOF(numbers);

    *x = *y = p->x;
    if (k < n) {
        *y = number_like(p, *x, numbers[k]);
        return true;
    }
    if (k < 2 * n) {
        *x = number_like(p, *y, numbers[k - n]);
        return true;
    }
    switch (k - 2 * n) {
    case 0:
        return true;
    case 1:
    case 2:
        if (takes(HLO_NEGATE, t))
            *(k - 2 * n == 1 ? x : y) = hlo_make_unary(p->at, HLO_NEGATE, p->x);
        return true;
    case 3:
    case 4:
        if (takes(HLO_ABS, t) && sd_dtype_kind(t) != SD_K_COMPLEX)
            *(k - 2 * n == 3 ? x : y) = hlo_make_unary(p->at, HLO_ABS, p->x);
        return true;
    default:
        return false;
    }
}

static hlo_inst *applied(program *p, hlo_op op, int dir, hlo_inst *x,
                         hlo_inst *y)
{
    sd_dtype t = p->x->shape->dtype;

    if (op != HLO_COMPARE)
        return hlo_make_binary(p->at, op, x, y);
    if (sd_dtype_kind(t) == SD_K_COMPLEX && dir > HLO_NE)
        return NULL;
    return hlo_make_compare(p->at, (hlo_cmp_dir)dir, x, y);
}

static void binary_forms(hlo_op op, int dir, sd_dtype type, tally *t)
{
    bool more = true;

    for (int k = 0; more; k++) {
        program p = program_of(type);
        hlo_inst *x, *y, *r;
        char what[80];

        more = operands(&p, k, &x, &y);
        r = more ? applied(&p, op, dir, x, y) : NULL;
        snprintf(what, sizeof what, "%s %d of %s, form %d",
                 hlo_op_table[op].name, dir, sd_dtype_name(type), k);
        if (r)
            hold(&p, r, what, t);
        sd_arena_destroy(p.a);
    }
}

static void binary_ops(void **state)
{
    tally t = {0};

    (void)state;
    for (int op = 0; op < HLO_OP_COUNT; op++)
        for (int type = 0; type < SCALARS; type++) {
            if (hlo_op_table[op].cls != HLO_C_BINARY || op == HLO_COMPLEX ||
                op == HLO_STOCHASTIC_CONVERT ||
                !takes((hlo_op)op, (sd_dtype)type) ||
                !is_exact((hlo_op)op, (sd_dtype)type))
                continue;
            binary_forms((hlo_op)op, 0, (sd_dtype)type, &t);
        }
    print_message("%d programs simplified\n", t.changed);
    assert_true(t.changed > 3000);
    assert_int_equal(t.wrong, 0);
}

static void compares(void **state)
{
    tally t = {0};

    (void)state;
    for (int dir = HLO_EQ; dir <= HLO_LT; dir++)
        for (int type = 0; type < SCALARS; type++)
            binary_forms(HLO_COMPARE, dir, (sd_dtype)type, &t);
    assert_true(t.changed > 100);
    assert_int_equal(t.wrong, 0);
}

/* not(x < y), and the same of an order of bits. */
static void negated_compares(void **state)
{
    tally t = {0};

    (void)state;
    for (int dir = HLO_EQ; dir <= HLO_LT; dir++)
        for (int type = 0; type < SCALARS; type++)
            for (int total = 0; total < 2; total++) {
                program p = program_of((sd_dtype)type);
                hlo_inst *y = number_like(&p, p.x, 1), *c;
                sd_kind k = sd_dtype_kind((sd_dtype)type);

                if ((total && k != SD_K_FLOAT) ||
                    (k == SD_K_COMPLEX && dir > HLO_NE)) {
                    sd_arena_destroy(p.a);
                    continue;
                }
                c = hlo_make_compare(p.at, (hlo_cmp_dir)dir, p.x, y);
                if (total)
                    c->u.compare.type = HLO_CMP_TOTAL;
                hold(&p, hlo_make_unary(p.at, HLO_NOT, c),
                     hlo_op_table[HLO_NOT].name, &t);
                sd_arena_destroy(p.a);
            }
    assert_true(t.changed > 100);
    assert_int_equal(t.wrong, 0);
}

static void unary_pairs(void **state)
{
    tally t = {0};

    (void)state;
    for (int outer = 0; outer < HLO_OP_COUNT; outer++)
        for (int inner = 0; inner < HLO_OP_COUNT; inner++)
            for (int type = 0; type < SCALARS; type++) {
                char what[80];
                program p;
                hlo_inst *y;

                if (hlo_op_table[outer].cls != HLO_C_UNARY ||
                    hlo_op_table[inner].cls != HLO_C_UNARY ||
                    outer == HLO_REDUCE_PRECISION ||
                    inner == HLO_REDUCE_PRECISION ||
                    !takes((hlo_op)inner, (sd_dtype)type) ||
                    hlo_op_table[inner].ulp || hlo_op_table[outer].ulp)
                    continue;
                p = program_of((sd_dtype)type);
                y = hlo_make_unary(p.at, (hlo_op)inner, p.x);
                snprintf(what, sizeof what, "%s of %s of %s",
                         hlo_op_table[outer].name, hlo_op_table[inner].name,
                         sd_dtype_name((sd_dtype)type));
                if (takes((hlo_op)outer, y->shape->dtype))
                    hold(&p, hlo_make_unary(p.at, (hlo_op)outer, y), what, &t);
                sd_arena_destroy(p.a);
            }
    print_message("%d pairs simplified\n", t.changed);
    assert_true(t.changed > 50);
    assert_int_equal(t.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains),      cmocka_unit_test(binary_ops),
        cmocka_unit_test(compares),    cmocka_unit_test(negated_compares),
        cmocka_unit_test(unary_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
