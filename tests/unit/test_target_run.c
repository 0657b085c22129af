/* target: programs as HLO text through passes, plan and target onto a device,
 * held against the evaluator's values of the program as it was written.
 * Argument: the device of the client to run on ("host", "cl"). */
#include "passes.h"
#include "plan.h"
#include "ref.h"
#include "target.h"
#include "test_target_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "skip.h"

#define ADD(t) \
    "add { a = " t "[] parameter(0) b = " t "[] parameter(1) " \
    "ROOT c = " t "[] add(a, b) }\n"
#define MAX(t) \
    "max { a = " t "[] parameter(0) b = " t "[] parameter(1) " \
    "ROOT c = " t "[] maximum(a, b) }\n"

static const program programs[] = {
#include "test_target_run.def"
};

/* ---- values ---- */

uint64_t run_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

void run_fill(hlo_value *v, uint64_t seed)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);
    int64_t n = sd_shape_count(v->shape) * (t == v->shape->dtype ? 1 : 2);

    for (int64_t i = 0; i < n; i++) {
        uint64_t r = run_random(&seed);
        uint8_t *at = (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t);

        if (t == SD_PRED)
            *at = r & 1;
        else if (sd_dtype_kind(t) == SD_K_FLOAT)
            sd_scalar_of_f64(t, (double)r / 0x1p30 - 1, at);
        else
            sd_scalar_of_s64(t, (int64_t)(r % 11) - 2, at);
    }
}

double run_part_at(const hlo_value *v, int64_t i)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);

    return sd_scalar_to_f64(t,
                            (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t));
}

static int compare(const char *name, int out, const hlo_value *got,
                   const hlo_value *want, double tolerance)
{
    sd_dtype t = want->shape->dtype;
    int64_t n = sd_shape_count(want->shape) * (sd_dtype_part(t) == t ? 1 : 2);
    double size = 0;
    int bad = 0;

    for (int64_t i = 0; i < n; i++)
        if (isfinite(run_part_at(want, i)))
            size = fmax(size, fabs(run_part_at(want, i)));
    for (int64_t i = 0; i < n; i++) {
        double x = run_part_at(got, i), y = run_part_at(want, i);

        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * size)
            continue;
        if (!bad++)
            print_message("%s: result %d, element %" PRId64
                          " is %.9g, not %.9g\n",
                          name, out, i, x, y);
    }
    return bad;
}

/* ---- a program ---- */

hlo_module *run_parse(sd_arena *a, const program *p)
{
    hlo_module *m;
    sd_status st = hlo_parse(a, p->text, strlen(p->text), &m);

    if (st)
        fail_msg("%s: %s", p->name, st->message);
    return m;
}

/* careful: as kernels that run for long are compiled. */
static thunk_program *compile(sd_arena *a, const program *p, world *w,
                              const sd_options *opt, bool careful)
{
    hlo_module *m = run_parse(a, p);
    const device_desc *dev = xpu_device_desc(w->device);
    thunk_program *t;
    plan *pl;
    sd_status st = hlo_optimize(m, dev, opt, NULL, NULL);

    if (!st)
        st = plan_make(a, m, dev, opt, &pl);
    if (!st) {
        for (int i = 0; careful && i < pl->nkernel; i++)
            pl->kernel[i]->flops = 1e9;
        st = target_build(pl, opt, w->shelf, xpu_client_pool(w->client), NULL,
                          NULL);
        t = thunk_program_retain(pl->program);
        plan_destroy(pl);
    }
    if (!st)
        st = thunk_verify(t);
    if (st) {
        print_message("%s: %s\n", p->name, st->message);
        sd_status_free(st);
        return NULL;
    }
    return t;
}

static void check(sd_status st, const char *what)
{
    if (st)
        fail_msg("%s: %s", what, st->message);
}

static int run(sd_arena *a, const program *p, world *w, thunk_program *t,
               const hlo_value *arg, int narg, const hlo_value *want, int nout)
{
    xpu_program *x;
    xpu_buffer *in[8], *out[32];
    xpu_event *done;
    xpu_call call = {.arg = in, .narg = narg};
    int bad = 0;

    check(xpu_program_load(w->device, t, &x), p->name);
    for (int i = 0; i < narg; i++)
        check(xpu_buffer_from_host(w->device, XPU_MEM_DEVICE,
                                   arg[i].shape->dtype, arg[i].shape->rank,
                                   arg[i].shape->dim, arg[i].data, NULL, true,
                                   &in[i], NULL),
              p->name);
    check(xpu_execute(x, &call, out, &done), p->name);
    check(xpu_event_wait(done), p->name);
    xpu_event_release(done);
    for (int i = 0; i < nout; i++) {
        hlo_value got = hlo_value_make(a, want[i].shape);

        check(xpu_buffer_to_host(out[i], 0, got.data, sd_shape_bytes(got.shape),
                                 &done),
              p->name);
        check(xpu_event_wait(done), p->name);
        xpu_event_release(done);
        xpu_buffer_release(out[i]);
        bad += compare(p->name, i, &got, &want[i], p->tolerance);
    }
    for (int i = 0; i < narg; i++)
        xpu_buffer_release(in[i]);
    xpu_program_release(x);
    return bad;
}

bool run_gives(sd_arena *a, const program *p, world *w, const hlo_value *arg,
               int narg, const hlo_value *want)
{
    sd_options opt;
    thunk_program *t;
    int bad = 1;

    sd_options_from_env(&opt);
    t = compile(a, p, w, &opt, false);
    if (t)
        bad = run(a, p, w, t, arg, narg, want, 1);
    thunk_program_release(t);
    return bad == 0;
}

static bool one_program(const program *p, world *w, bool careful)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = run_parse(a, p);
    hlo_value arg[8], want, *outs = &want;
    int n = m->entry->nparam, nout = 1, bad = 1;
    sd_options opt;
    thunk_program *t;

    sd_options_from_env(&opt);
    for (int i = 0; i < n; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        run_fill(&arg[i], (uint64_t)i + 3);
    }
    check(ref_eval(a, m->entry, arg, n, &want), p->name);
    if (want.shape->dtype == SD_TUPLE) {
        outs = want.elem;
        nout = want.shape->nelem;
    }
    t = compile(a, p, w, &opt, careful);
    if (t)
        bad = run(a, p, w, t, arg, n, outs, nout);
    thunk_program_release(t);
    sd_arena_destroy(a);
    return bad == 0;
}

static void run_all(world *w, bool careful)
{
    const char *only = getenv("ONLY");
    int bad = 0;

    for (size_t i = 0; i < SD_COUNTOF(programs); i++)
        if ((!only || strstr(programs[i].name, only)) &&
            !one_program(&programs[i], w, careful)) {
            print_message("FAILED %s\n", programs[i].name);
            bad++;
        }
    assert_int_equal(bad, 0);
}

static void test_programs(void **state)
{
    run_all(*state, false);
}

static void test_programs_with_care(void **state)
{
    world *w = *state;

    if (xpu_device_desc(w->device)->kind != DEVICE_HOST)
        skip_because("only the host compiles with more care");
    run_all(w, true);
}

typedef struct {
    sd_buf before, after, code, binary;
} texts;

static void keep(void *ctx, const char *kind, const void *data, size_t bytes)
{
    texts *t = ctx;

    sd_buf_add(!strcmp(kind, "ir-no-opt.ll")     ? &t->before
               : !strcmp(kind, "ir-with-opt.ll") ? &t->after
               : !strcmp(kind, "s")              ? &t->code
                                                 : &t->binary,
               data, bytes);
}

static void texts_finish(texts *t)
{
    sd_buf_finish(&t->before);
    sd_buf_finish(&t->after);
    sd_buf_finish(&t->code);
    sd_buf_finish(&t->binary);
}

static plan *plan_of(sd_arena *a, const char *name, const device_desc *dev)
{
    hlo_module *m;
    sd_options opt;
    plan *pl;
    size_t i = 0;

    while (strcmp(programs[i].name, name))
        i++;
    sd_options_from_env(&opt);
    m = run_parse(a, &programs[i]);
    check(hlo_optimize(m, dev, &opt, NULL, NULL), "passes");
    check(plan_make(a, m, dev, &opt, &pl), "plan");
    return pl;
}

/* What is dumped is whole: compiled again, alone, it is the same binary. */
static void test_dumped_ir_compiles(void **state)
{
    world *w = *state;
    const device_desc *dev = xpu_device_desc(w->device);
    sd_arena *a = sd_arena_create();
    sd_buf again = {0};
    texts t = {0};
    plan *pl = plan_of(a, "softmax", dev);

    check(target_build(pl, NULL, NULL, NULL, keep, &t), "target");
    check(target_compile_ir(dev, t.before.at, t.before.len, &again), "again");
    assert_int_equal(again.len, pl->program->binary[0].bytes);
    assert_memory_equal(again.at, pl->program->binary[0].data, again.len);
    assert_true(t.after.len > 0);
    assert_true(t.code.len > 0);
    plan_destroy(pl);
    texts_finish(&t);
    sd_buf_finish(&again);
    sd_arena_destroy(a);
}

/* A machine of LLVM's that has made other code makes the same code. */
static void test_used_machines_make_the_same_code(void **state)
{
    world *w = *state;
    const device_desc *dev = xpu_device_desc(w->device);
    sd_arena *a = sd_arena_create();
    sd_shelf *shelf = sd_shelf_create();
    plan *fresh = plan_of(a, "softmax", dev),
         *used = plan_of(a, "softmax", dev);

    check(target_build(fresh, NULL, NULL, NULL, NULL, NULL), "fresh");
    for (int i = 0; i < 2; i++) {
        plan *other = plan_of(a, programs[i].name, dev);

        check(target_build(other, NULL, shelf, NULL, NULL, NULL), "other");
        plan_destroy(other);
    }
    check(target_build(used, NULL, shelf, NULL, NULL, NULL), "used");
    assert_int_equal(used->program->nbinary, fresh->program->nbinary);
    for (int i = 0; i < used->program->nbinary; i++) {
        const thunk_binary *x = &used->program->binary[i];
        const thunk_binary *y = &fresh->program->binary[i];

        assert_int_equal(x->bytes, y->bytes);
        assert_memory_equal(x->data, y->data, x->bytes);
    }
    plan_destroy(used);
    plan_destroy(fresh);
    sd_shelf_destroy(shelf);
    sd_arena_destroy(a);
}

/* The code of a product for a processor that has `feature`; made with care, or
 * quickly. */
static texts product_for(sd_arena *a, uint64_t feature, const char *type,
                         bool careful)
{
    const program p = {
        "tiles", 0,
        sd_arena_fmt(a,
                     "HloModule m\nENTRY e { a = %s[64,96] parameter(0) "
                     "b = %s[96,64] parameter(1) ROOT r = %s[64,64] "
                     "dot(a, b), lhs_contracting_dims={1}, "
                     "rhs_contracting_dims={0} }",
                     type, type, *type == 'b' ? "f32" : "s32")};
    hlo_module *m = run_parse(a, &p);
    device_desc dev;
    sd_options opt;
    texts t = {0};
    plan *pl;

    assert_true(device_desc_of_name("host:v4", &dev));
    dev.features |= feature;
    dev.libs = 0;
    sd_options_from_env(&opt);
    opt.value[SD_OPT_ENGINES] = "1";
    check(hlo_optimize(m, &dev, &opt, NULL, NULL), "passes");
    check(plan_make(a, m, &dev, &opt, &pl), "plan");
    pl->kernel[0]->flops = careful ? 1e9 : 0;
    check(target_build(pl, &opt, NULL, NULL, keep, &t), "target");
    sd_buf_u8(&t.code, 0);
    plan_destroy(pl);
    return t;
}

/* A processor's tiles are configured before they multiply and released at the
 * end, also in code for a processor that is not this one. */
static void test_tiles_are_configured(void **state)
{
    static const char *const types[][2] = {
        {"bf16", "tdpbf16ps"}, {"s8", "tdpbssd"}, {"u8", "tdpbuud"}};

    (void)state;
    for (size_t i = 0; i < 2 * SD_COUNTOF(types); i++) {
        sd_arena *a = sd_arena_create();
        texts t = product_for(a, DEVICE_HAS_AMX, types[i / 2][0], i % 2);
        const char *at = strstr((char *)t.code.at, "ldtilecfg");

        assert_non_null(at);
        for (int n = 0; n < 4; n++)
            assert_non_null(at = strstr(at + 1, types[i / 2][1]));
        assert_null(strstr(at + 1, types[i / 2][1]));
        assert_non_null(strstr((char *)t.code.at, "tilerelease"));
        texts_finish(&t);
        sd_arena_destroy(a);
    }
}

static void test_bf16_has_an_instruction(void **state)
{
    (void)state;
    for (int careful = 0; careful < 2; careful++) {
        sd_arena *a = sd_arena_create();
        texts t = product_for(a, DEVICE_HAS_BF16, "bf16", careful);

        assert_non_null(strstr((char *)t.code.at, "vdpbf16ps"));
        texts_finish(&t);
        sd_arena_destroy(a);
    }
}

/* A remainder by a power of two is exact without a division. */
static void test_remainders_of_powers_divide_nothing(void **state)
{
    world *w = *state;
    const device_desc *dev = xpu_device_desc(w->device);
    sd_arena *a = sd_arena_create();
    texts t = {0};
    plan *pl = plan_of(a, "remainder_of_4", dev);

    check(target_build(pl, NULL, NULL, NULL, keep, &t), "target");
    sd_buf_u8(&t.before, 0);
    assert_non_null(strstr((char *)t.before.at, "llvm.floor"));
    assert_null(strstr((char *)t.before.at, "fdiv"));
    texts_finish(&t);
    plan_destroy(pl);
    sd_arena_destroy(a);
}

/* What runs for long is compiled with care, and apart from what does not. */
static void test_long_kernels_have_their_own_batch(void **state)
{
    static const program mixed = {
        "mixed", 0,
        "HloModule m\n"
        "ENTRY e { x = f32[4000000] parameter(0) y = f32[30] parameter(1) "
        "z = f32[7,3] parameter(2) a = f32[4000000] negate(x) "
        "b = f32[30] negate(y) c = f32[7,3] abs(z) "
        "ROOT t = (f32[4000000], f32[30], f32[7,3]) tuple(a, b, c) }"};
    world *w = *state;
    const device_desc *dev = xpu_device_desc(w->device);
    sd_arena *a;
    sd_options opt;
    hlo_module *m;
    plan *p;
    int last = 0;

    if (dev->kind != DEVICE_HOST)
        skip_because("only the host compiles kernels in two modules");
    a = sd_arena_create();
    sd_options_from_env(&opt);
    m = run_parse(a, &mixed);
    check(hlo_optimize(m, dev, &opt, NULL, NULL), "passes");
    check(plan_make(a, m, dev, &opt, &p), "plan");
    check(target_build(p, &opt, w->shelf, NULL, NULL, NULL), "target");
    assert_int_equal(p->nkernel, 3);
    for (int i = 0; i < p->nkernel; i++) {
        bool is_long = p->kernel[i]->slot[0].count == 4000000;

        last = SD_MAX(last, p->program->kernel[i].binary);
        assert_int_equal(p->program->kernel[i].binary, !is_long);
    }
    assert_int_equal(last + 1, p->program->nbinary);
    plan_destroy(p);
    sd_arena_destroy(a);
}

int main(int argc, char **argv)
{
    world w = {0};
    sd_options opt;
    sd_status st;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_programs, &w),
        cmocka_unit_test_prestate(test_programs_with_care, &w),
        cmocka_unit_test_prestate(test_products_are_chains, &w),
        cmocka_unit_test_prestate(test_products_of_integers_wrap, &w),
        cmocka_unit_test_prestate(test_products_of_whole_numbers_are_exact, &w),
        cmocka_unit_test_prestate(test_used_machines_make_the_same_code, &w),
        cmocka_unit_test_prestate(test_tiles_are_configured, &w),
        cmocka_unit_test_prestate(test_bf16_has_an_instruction, &w),
        cmocka_unit_test_prestate(test_remainders_of_powers_divide_nothing, &w),
        cmocka_unit_test_prestate(test_long_kernels_have_their_own_batch, &w),
        cmocka_unit_test_prestate(test_dumped_ir_compiles, &w)};

    sd_log_init();
    sd_options_from_env(&opt);
    opt.value[SD_OPT_DEVICE] = argc > 1 ? argv[1] : "host";
    if (!opt.value[SD_OPT_LIBRARIES]) /* our own kernels are what is tested */
        opt.value[SD_OPT_LIBRARIES] = "0";
    if ((st = xpu_client_create(&opt, &w.client))) {
        print_message("no such device: %s\n", st->message);
        sd_status_free(st);
        return 77; /* skipped, says Meson */
    }
    w.device = xpu_client_device(w.client, 0);
    w.shelf = sd_shelf_create();
    argc = cmocka_run_group_tests(tests, NULL, NULL);
    sd_shelf_destroy(w.shelf);
    xpu_client_destroy(w.client);
    return argc;
}
