/* target: every elementwise op that a plan may hold, on every element type,
 * compiled for the host and held against the evaluator.  Values are random
 * bits and the ends of each type. */
#include "hlo.h"
#include "plan.h"
#include "ref.h"
#include "target.h"
#include "xpu_device.h"
#include "xpu_elf.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "skip.h"

enum { N = 203 }; /* several vectors and a tail, for 8 and 16 lanes */

typedef void (*kernel_fn)(void **slot, int64_t first, int64_t last,
                          void *scratch);

static uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return (*s >> 29) ^ (*s >> 5);
}

/* ---- a kernel of one op: a load an operand, the op, a store ---- */

static plan_expr lane_axis = {.kind = PX_AXIS, .hi = N - 1, .varies = 1};

static plan_node *add_node(sd_arena *a, plan_kernel *k, plan_node n)
{
    plan_node *p = sd_arena_copy(a, &n, sizeof n);

    p->id = k->nnode;
    p->varies = 1;
    k->node[k->nnode++] = p;
    return p;
}

static plan_kernel *kernel_of(sd_arena *a, const hlo_inst *in,
                              const device_desc *d)
{
    plan_kernel *k = sd_arena_new(a, plan_kernel);
    plan_node *elt = sd_arena_new(a, plan_node), *root;

    k->name = "f";
    k->axis = sd_arena_new(a, plan_axis);
    k->axis[0] = (plan_axis){.extent = N,
                             .place = PLAN_LANE,
                             .outer = true,
                             .grid = true,
                             .tile = 4 * d->lanes,
                             .copies = 2};
    k->naxis = k->nouter = k->nstage = 1;
    k->tiles = (N + k->axis->tile - 1) / k->axis->tile;
    k->stage = sd_arena_new(a, plan_stage);
    k->nest = sd_arena_new(a, int);
    k->pass = sd_arena_new(a, plan_pass);
    k->pass->vectors = 1;
    k->pass->needs = sd_arena_array(a, bool, in->narg + 2);
    for (int i = 0; i < in->narg + 2; i++)
        k->pass->needs[i] = true;
    k->nnest = k->npass = 1;
    k->node = sd_arena_array(a, plan_node *, in->narg + 2);
    k->slot = sd_arena_array(a, plan_slot, in->narg + 1);
    *elt = (plan_node){.kind = PN_ELT,
                       .op = in->op,
                       .in = in,
                       .dtype = in->shape->dtype,
                       .narg = in->narg};
    elt->arg = sd_arena_array(a, plan_node *, in->narg);
    for (int i = 0; i < in->narg; i++) {
        sd_dtype t = in->arg[i]->shape->dtype;

        k->slot[k->nslot] = (plan_slot){t, N, PLAN_READ, 64, true};
        elt->arg[i] = add_node(a, k,
                               (plan_node){.kind = PN_LOAD,
                                           .dtype = t,
                                           .slot = k->nslot++,
                                           .off = &lane_axis});
    }
    root = add_node(a, k, *elt);
    k->slot[k->nslot] = (plan_slot){in->shape->dtype, N, PLAN_WRITE, 64, true};
    add_node(a, k,
             (plan_node){.kind = PN_STORE,
                         .dtype = in->shape->dtype,
                         .slot = k->nslot++,
                         .off = &lane_axis,
                         .narg = 1,
                         .arg = sd_arena_copy(a, &root, sizeof root)});
    return k;
}

static thunk_program *build(sd_arena *a, plan_kernel **k, int n,
                            const device_desc *d)
{
    plan p = {.arena = a, .dev = d, .kernel = k, .nkernel = n};
    sd_status st;

    p.program = thunk_program_create("test", d);
    p.program->kernel = sd_arena_array(p.program->arena, thunk_kernel, n);
    p.program->nkernel = n;
    for (int i = 0; i < n; i++)
        p.program->kernel[i].symbol =
            sd_arena_str(p.program->arena, k[i]->name, strlen(k[i]->name));
    st = target_build(&p, NULL, NULL, NULL, NULL, NULL);
    if (st)
        fail_msg("%s", st->message);
    return p.program;
}

/* ---- values ---- */

static void fill(sd_dtype t, uint8_t *p, uint64_t seed)
{
    static const double special[] = {0.0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.5,
                                     -0.5,
                                     1.5,
                                     2.5,
                                     -2.5,
                                     3,
                                     -7,
                                     31,
                                     32,
                                     63,
                                     64,
                                     127,
                                     -128,
                                     128,
                                     255,
                                     256,
                                     2147483647.0,
                                     -2147483648.0,
                                     4294967296.0,
                                     9.3e18,
                                     -9.3e18,
                                     1e30,
                                     -1e300,
                                     INFINITY,
                                     -INFINITY,
                                     NAN,
                                     1e-40,
                                     8388609.5,
                                     0.49999997};
    sd_dtype part = sd_dtype_part(t);
    int each = t == part ? 1 : 2;
    size_t b = sd_dtype_bytes(part);

    for (int i = 0; i < N * each; i++) {
        uint64_t r = next_random(&seed) ^ next_random(&seed) << 32;
        uint8_t *at = p + (size_t)i * b;

        if (sd_dtype_kind(part) == SD_K_PRED)
            *at = r & 1;
        else if (sd_dtype_kind(part) != SD_K_FLOAT)
            sd_scalar_of_s64(part,
                             r % 3 == 0 ? (int64_t)r
                             : r % 3 == 1
                                 ? (int64_t)(r >> 8) % 9 - 4
                                 : (int64_t)(UINT64_C(1) << (r >> 8) % 64),
                             at);
        else if (r % 3 == 0)
            sd_scalar_of_f64(part, special[(r >> 8) % SD_COUNTOF(special)], at);
        else if (r % 3 == 1)
            sd_scalar_of_f64(part, ((double)(int64_t)(r >> 8) / 0x1p50) - 16,
                             at);
        else if (sd_dtype_table[part].bits < 8)
            *at = (uint8_t)(r >> 8 & ((1 << sd_dtype_table[part].bits) - 1));
        else
            memcpy(at, &r, b);
    }
}

static bool near_enough(sd_dtype t, const uint8_t *x, const uint8_t *y,
                        double ulp)
{
    double a, b;

    if (sd_dtype_kind(t) == SD_K_COMPLEX) {
        size_t h = sd_dtype_bytes(t) / 2;

        return near_enough(sd_dtype_part(t), x, y, ulp) &&
               near_enough(sd_dtype_part(t), x + h, y + h, ulp);
    }
    if (!memcmp(x, y, sd_dtype_bytes(t)))
        return true;
    if (sd_dtype_table[t].bits < 8) /* the value is in the low bits */
        return ((*x ^ *y) & ((1 << sd_dtype_table[t].bits) - 1)) == 0;
    if (sd_dtype_kind(t) != SD_K_FLOAT)
        return false;
    a = sd_scalar_to_f64(t, x);
    b = sd_scalar_to_f64(t, y);
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (ulp == 0 || isinf(a) || isinf(b))
        return false;
    return fabs(a - b) <=
           ulp * fmax(fabs(b) * (t == SD_F64 ? 0x1p-52 : 0x1p-23),
                      t == SD_F64 ? 0x1p-1074 : 0x1p-149);
}

/* ---- the ops ---- */

static int operands(const hlo_op_info *o)
{
    switch (o->cls) {
    case HLO_C_UNARY:
    case HLO_C_CONVERT:
    case HLO_C_BITCAST:
        return 1;
    case HLO_C_BINARY:
    case HLO_C_COMPARE:
        return 2;
    case HLO_C_TERNARY:
        return 3;
    default:
        return 0;
    }
}

static bool takes(hlo_op op, sd_dtype t)
{
    sd_kind k = sd_dtype_kind(t);
    bool narrow = k == SD_K_FLOAT && sd_dtype_table[t].bits < 32;

    if (k == SD_K_NONE || op == HLO_REDUCE_PRECISION ||
        op == HLO_STOCHASTIC_CONVERT)
        return false;
    if (op == HLO_SELECT || op == HLO_CONVERT || op == HLO_BITCAST_CONVERT ||
        op == HLO_COMPARE)
        return true;
    if (!(hlo_op_table[op].types & hlo_type_bit(t)) || narrow)
        return false;
    if (k == SD_K_COMPLEX)
        return op == HLO_ADD || op == HLO_SUBTRACT || op == HLO_MULTIPLY ||
               op == HLO_NEGATE || op == HLO_REAL || op == HLO_IMAG;
    return true;
}

typedef struct {
    sd_arena *a;
    hlo_module *m;
    hlo_comp *c;
    const device_desc *d;
    double flops; /* many: code that is compiled with more care */
    sd_vec(hlo_inst *) inst;
    sd_vec(plan_kernel *) kernel;
} cases;

static hlo_inst *param(cases *s, sd_dtype t)
{
    int64_t dim = N;

    return hlo_make_param(s->c, sd_shape_make(s->a, t, 1, &dim), "p");
}

static void add_case(cases *s, hlo_inst *in)
{
    plan_kernel *k = kernel_of(s->a, in, s->d);

    k->name = sd_arena_fmt(s->a, "k%d", s->kernel.n);
    k->flops = s->flops;
    *sd_push(s->a, &s->inst) = in;
    *sd_push(s->a, &s->kernel) = k;
}

static void add_cases(cases *s, hlo_op op, sd_dtype t)
{
    hlo_at at = {s->c, NULL, NULL};
    hlo_inst *x[3];
    int n = operands(&hlo_op_table[op]);

    for (int i = 0; i < n; i++)
        x[i] = param(s, i == 0 && op == HLO_SELECT ? SD_PRED : t);
    if (op == HLO_CONVERT) {
        for (sd_dtype to = 0; to < SD_TUPLE; to++)
            if (to != t)
                add_case(s, hlo_make_convert(at, to, x[0]));
    } else if (op == HLO_BITCAST_CONVERT) {
        for (sd_dtype to = 0; to < SD_TUPLE; to++)
            if (sd_dtype_table[to].bits == sd_dtype_table[t].bits &&
                (sd_dtype_kind(to) == SD_K_COMPLEX) ==
                    (sd_dtype_kind(t) == SD_K_COMPLEX))
                add_case(s, hlo_make_bitcast_convert(at, to, x[0]));
    } else if (op == HLO_COMPARE) {
        bool cplx = sd_dtype_kind(t) == SD_K_COMPLEX;

        for (int dir = HLO_EQ; dir <= (cplx ? HLO_NE : HLO_LT); dir++) {
            hlo_inst *in = hlo_make_compare(at, (hlo_cmp_dir)dir, x[0], x[1]);

            add_case(s, in);
            if (sd_dtype_kind(t) != SD_K_FLOAT)
                continue;
            in = hlo_make_compare(at, (hlo_cmp_dir)dir, x[0], x[1]);
            in->u.compare.type = HLO_CMP_TOTAL;
            add_case(s, in);
        }
    } else {
        sd_dtype rt = op == HLO_IS_FINITE                ? SD_PRED
                      : op == HLO_COMPLEX                ? sd_dtype_complex(t)
                      : op == HLO_REAL || op == HLO_IMAG ? sd_dtype_part(t)
                      : op == HLO_ABS                    ? sd_dtype_part(t)
                                                         : t;

        add_case(s,
                 hlo_inst_create(s->c, NULL, op,
                                 sd_shape_with(s->a, x[0]->shape, rt), n, x));
    }
}

static double allowed(const hlo_inst *in)
{
    sd_dtype t = in->shape->dtype;

    if (sd_dtype_kind(t) == SD_K_COMPLEX && in->op == HLO_MULTIPLY)
        return -1; /* parts cancel: compared by the size of the product */
    return hlo_info(in)->ulp;
}

static double modulus(sd_dtype t, const uint8_t *p)
{
    size_t h = sd_dtype_bytes(t) / 2;

    return hypot(sd_scalar_to_f64(sd_dtype_part(t), p),
                 sd_scalar_to_f64(sd_dtype_part(t), p + h));
}

static bool product_near(sd_dtype t, const uint8_t *got, const uint8_t *want,
                         const uint8_t *x, const uint8_t *y)
{
    double size = modulus(t, x) * modulus(t, y);
    double eps = t == SD_C64 ? 0x1p-22 : 0x1p-51;
    sd_dtype part = sd_dtype_part(t);
    size_t h = sd_dtype_bytes(part);

    if (!(size < (t == SD_C64 ? 1e37 : 1e307)))
        return true; /* infinities: which parts are NaN is not fixed */
    for (int i = 0; i < 2; i++)
        if (!(fabs(sd_scalar_to_f64(part, got + (size_t)i * h) -
                   sd_scalar_to_f64(part, want + (size_t)i * h)) <=
              eps * size + (t == SD_C64 ? 0x1p-148 : 0x1p-1073)))
            return false;
    return true;
}

static void show(sd_buf *b, sd_dtype t, const uint8_t *p)
{
    for (size_t i = sd_dtype_bytes(t); i > 0; i--)
        sd_buf_fmt(b, "%02x", p[i - 1]);
    sd_buf_str(b, " ");
}

static bool has_no_nan(sd_dtype t)
{
    return t == SD_F4E2M1FN || t == SD_F6E2M3FN || t == SD_F6E3M2FN;
}

/* What a NaN becomes in a type without any is not fixed. */
static bool loses_nan(const hlo_inst *in, const uint8_t *x, int i)
{
    sd_dtype t = in->arg[0]->shape->dtype;

    return in->op == HLO_CONVERT && has_no_nan(in->shape->dtype) &&
           (sd_dtype_kind(t) == SD_K_FLOAT ||
            sd_dtype_kind(t) == SD_K_COMPLEX) &&
           isnan(sd_scalar_to_f64(sd_dtype_part(t),
                                  x + (size_t)i * sd_dtype_bytes(t)));
}

/* How many elements are not what the evaluator says; the first is shown. */
static int compare_case(sd_arena *a, const hlo_inst *in, kernel_fn fn,
                        int64_t tiles)
{
    hlo_value arg[3], want;
    void *slot[4];
    uint8_t *got;
    int bad = 0;
    double ulp = allowed(in);
    sd_dtype t = in->shape->dtype;
    size_t b = sd_dtype_bytes(t);
    sd_buf text = {0};
    sd_status st;

    for (int i = 0; i < in->narg; i++) {
        arg[i] = hlo_value_make(a, in->arg[i]->shape);
        fill(in->arg[i]->shape->dtype, arg[i].data, (uint64_t)i * 77 + 5);
        slot[i] = arg[i].data;
    }
    st = ref_eval_inst(a, in, arg, &want);
    if (st)
        fail_msg("%s", st->message);
    got = sd_arena_alloc(a, (N + 1) * b);
    memset(got + N * b, 0x5a, b);
    slot[in->narg] = got;
    fn(slot, 0, 1, NULL);
    fn(slot, 1, tiles, NULL);
    for (int i = 0; i < N; i++) {
        const uint8_t *x = got + (size_t)i * b;
        const uint8_t *y = (const uint8_t *)want.data + (size_t)i * b;
        bool ok =
            ulp < 0 ? product_near(t, x, y, (uint8_t *)slot[0] + (size_t)i * b,
                                   (uint8_t *)slot[1] + (size_t)i * b)
                    : near_enough(t, x, y, ulp);

        if (ok || loses_nan(in, slot[0], i) || bad++)
            continue;
        for (int j = 0; j < in->narg; j++) {
            sd_dtype at = in->arg[j]->shape->dtype;

            show(&text, at,
                 (uint8_t *)slot[j] + (size_t)i * sd_dtype_bytes(at));
        }
        sd_buf_str(&text, "gives ");
        show(&text, t, x);
        sd_buf_str(&text, "not ");
        show(&text, t, y);
        print_message("%s %s -> %s: %.*s\n", hlo_info(in)->name,
                      sd_dtype_name(in->arg[0]->shape->dtype), sd_dtype_name(t),
                      (int)text.len, text.at);
    }
    for (size_t i = 0; i < b; i++)
        bad += got[N * b + i] != 0x5a;
    sd_buf_finish(&text);
    return bad;
}

static void check_type(const device_desc *d, double flops, sd_dtype t, int *bad,
                       int *total)
{
    sd_arena *a = sd_arena_create();
    cases s = {.a = a, .d = d, .flops = flops};
    thunk_program *p;
    xpu_code *code;
    void **fn;
    sd_status st;

    s.m = hlo_module_create(a, "m");
    s.c = hlo_comp_create(s.m, "main");
    for (hlo_op op = 0; op < HLO_OP_COUNT; op++)
        if (operands(&hlo_op_table[op]) && takes(op, t))
            add_cases(&s, op, t);
    p = build(a, s.kernel.at, s.kernel.n, d);
    fn = sd_arena_array(a, void *, s.kernel.n);
    st = xpu_elf_load(p, false, &code, fn);
    if (st)
        fail_msg("%s", st->message);
    for (int i = 0; i < s.kernel.n; i++)
        *bad += compare_case(a, s.inst.at[i], (kernel_fn)fn[i],
                             s.kernel.at[i]->tiles) != 0;
    *total += s.kernel.n;
    xpu_elf_unload(code);
    thunk_program_release(p);
    sd_arena_destroy(a);
}

static void check_device(const char *name, double flops)
{
    device_desc d;
    int bad = 0, total = 0;

    assert_true(device_desc_of_name(name, &d));
    for (sd_dtype t = 0; t < SD_TUPLE; t++)
        check_type(&d, flops, t, &bad, &total);
    print_message("%s: %d kernels\n", name, total);
    assert_int_equal(bad, 0);
    assert_true(total > 500);
}

static void test_host_v3(void **state)
{
    (void)state;
    check_device("host:v3", 1e9);
}

static void test_host_v4(void **state)
{
    (void)state;
    if (!__builtin_cpu_supports("avx512bw"))
        skip_because("a processor without AVX-512");
    check_device("host:v4", 1e9);
}

/* Kernels that run for microseconds are compiled by another road. */
static void test_quick(void **state)
{
    (void)state;
    check_device(__builtin_cpu_supports("avx512bw") ? "host:v4" : "host:v3", 0);
}

/* Ops that the passes take apart, or refuse, before kernels are made. */
static void test_ops_without_code(void **state)
{
    static const struct {
        hlo_op op;
        sd_dtype t;
        const char *why;
    } none[] = {{HLO_ADD, SD_BF16, "no code for add of bf16"},
                {HLO_EXP, SD_S32, "no code for exponential of s32"},
                {HLO_ATAN2, SD_C64, "no code for atan2 of c64"}};
    device_desc d;

    (void)state;
    assert_true(device_desc_of_name("host:v3", &d));
    for (size_t i = 0; i < SD_COUNTOF(none); i++) {
        sd_arena *a = sd_arena_create();
        cases s = {.a = a, .d = &d};
        plan p = {.arena = a, .dev = &d, .nkernel = 1};
        sd_status st;

        s.m = hlo_module_create(a, "m");
        s.c = hlo_comp_create(s.m, "main");
        add_cases(&s, none[i].op, none[i].t);
        p.kernel = s.kernel.at;
        p.program = thunk_program_create("test", &d);
        st = target_check(&p);
        assert_non_null(st);
        assert_int_equal(st->code, SD_INTERNAL);
        assert_non_null(strstr(st->message, none[i].why));
        sd_status_free(st);
        plan_destroy(&p);
        sd_arena_destroy(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_v3), cmocka_unit_test(test_host_v4),
        cmocka_unit_test(test_quick), cmocka_unit_test(test_ops_without_code)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
