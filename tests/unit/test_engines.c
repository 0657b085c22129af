/* target: products by Intel's matrix engine, run where there is none.  Kernels
 * that call the engine's functions are linked to dpas.c, which has the same
 * functions over broadcasts, and held against the evaluator: sums of bytes
 * exactly, sums of floats within what an order of additions may change.
 * Arguments: spirv-link, dpas.c as SPIR-V. */
#include "hlo.h"
#include "passes.h"
#include "plan.h"
#include "target.h"
#include "xpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static const char *linker, *engine;

typedef struct {
    xpu_client *client;
    xpu_device *device;
    sd_shelf *shelf;
} world;

static void check(sd_status st, const char *what)
{
    if (st)
        fail_msg("%s: %s", what, st->message);
}

/* ---- programs ---- */

typedef struct {
    const char *of, *sum;
    int m, n, k, x_turned, y_turned;
} product;

/* What uses the sums reads a row of its own, too, if they are floats. */
static const char *write_product(sd_arena *a, const product *p)
{
    const char *dims[2], *x = p->of, *s = p->sum;

    dims[0] = p->x_turned ? sd_arena_fmt(a, "%d,%d", p->k, p->m)
                          : sd_arena_fmt(a, "%d,%d", p->m, p->k);
    dims[1] = p->y_turned ? sd_arena_fmt(a, "%d,%d", p->n, p->k)
                          : sd_arena_fmt(a, "%d,%d", p->k, p->n);
    return sd_arena_fmt(a,
                        "HloModule m\nENTRY e {\n x = %s[%s] parameter(0)\n"
                        " y = %s[%s] parameter(1)\n b = %s[%d] parameter(2)\n"
                        " d = %s[%d,%d] dot(x, y), lhs_contracting_dims={%d}, "
                        "rhs_contracting_dims={%d}\n"
                        " w = %s[%d,%d] broadcast(b), dimensions={1}\n"
                        " ROOT r = %s[%d,%d] add(d, w)\n}\n",
                        x, dims[0], x, dims[1], s, p->n, s, p->m, p->n,
                        !p->x_turned, p->y_turned, s, p->m, p->n, s, p->m,
                        p->n);
}

static hlo_module *parse(sd_arena *a, const char *text)
{
    hlo_module *m;

    check(hlo_parse(a, text, strlen(text), &m), text);
    return m;
}

static void fill(hlo_value *v, uint64_t seed)
{
    sd_dtype t = v->shape->dtype;

    for (int64_t i = 0; i < sd_shape_count(v->shape); i++) {
        uint8_t *at = (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t);

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (sd_dtype_kind(t) == SD_K_FLOAT)
            sd_scalar_of_f64(t, (double)(seed >> 33) / 0x1p30 - 1, at);
        else
            sd_scalar_of_s64(t, (int64_t)(seed >> 56), at);
    }
}

static double at(const hlo_value *v, int64_t i)
{
    sd_dtype t = v->shape->dtype;

    return sd_scalar_to_f64(t,
                            (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t));
}

static void take_signs(hlo_value *v)
{
    sd_dtype t = v->shape->dtype;

    for (int64_t i = 0; i < sd_shape_count(v->shape); i++)
        sd_scalar_of_f64(t, fabs(at(v, i)),
                         (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t));
}

/* ---- linking ---- */

static sd_bytes read_file(sd_arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data;
    long n;

    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    n = ftell(f);
    rewind(f);
    data = sd_arena_alloc(a, (size_t)n);
    assert_int_equal(fread(data, 1, (size_t)n, f), n);
    fclose(f);
    return (sd_bytes){data, (size_t)n};
}

static void link_engine(sd_arena *a, thunk_program *t)
{
    char dir[] = "/tmp/sundog-engine-XXXXXX";
    const char *from, *to;

    assert_non_null(mkdtemp(dir));
    from = sd_arena_fmt(a, "%s/from.spv", dir);
    to = sd_arena_fmt(a, "%s/to.spv", dir);
    for (int i = 0; i < t->nbinary; i++) {
        FILE *f = fopen(from, "wb");
        sd_bytes linked;

        assert_non_null(f);
        fwrite(t->binary[i].data, 1, t->binary[i].bytes, f);
        fclose(f);
        assert_int_equal(
            system(sd_arena_fmt(a, "%s %s %s -o %s", linker, from, engine, to)),
            0);
        linked = read_file(a, to);
        t->binary[i].data = linked.at;
        t->binary[i].bytes = linked.len;
    }
    unlink(from);
    unlink(to);
    rmdir(dir);
}

/* ---- running ---- */

/* The device, with the groups and the engine of `like`. */
static device_desc device_with(const world *w, const char *like)
{
    device_desc dev = *xpu_device_desc(w->device), of;

    assert_true(device_desc_of_name(like, &of));
    dev.crowd = of.crowd;
    dev.access = of.access;
    dev.registers = of.registers;
    dev.subgroup = of.subgroup;
    dev.local_bytes = of.local_bytes;
    dev.units = 1;
    dev.features |= of.features & (DEVICE_HAS_DPAS16 | DEVICE_HAS_DPAS8);
    return dev;
}

static thunk_program *compile(sd_arena *a, const char *text, world *w,
                              const device_desc *dev)
{
    hlo_module *m = parse(a, text);
    thunk_program *t;
    bool found = false;
    sd_options opt;
    plan *p;

    sd_options_from_env(&opt);
    check(hlo_optimize(m, dev, &opt, NULL, NULL), text);
    check(plan_make(a, m, dev, &opt, &p), text);
    for (int i = 0; i < p->nkernel; i++)
        found = found || (p->kernel[i]->blocks &&
                          plan_engine_table[p->kernel[i]->blocks->engine].m);
    if (!found)
        fail_msg("no engine in %s", text);
    check(
        target_build(p, &opt, w->shelf, xpu_client_pool(w->client), NULL, NULL),
        text);
    t = thunk_program_retain(p->program);
    plan_destroy(p);
    link_engine(a, t);
    return t;
}

static hlo_value run(sd_arena *a, world *w, thunk_program *t,
                     const hlo_value *arg, const sd_shape *shape)
{
    hlo_value got = hlo_value_make(a, shape);
    xpu_call call = {.narg = 3};
    xpu_buffer *in[3], *out;
    xpu_program *x;
    xpu_event *done;

    call.arg = in;
    check(xpu_program_load(w->device, t, &x), "loading");
    for (int i = 0; i < 3; i++)
        check(xpu_buffer_from_host(w->device, XPU_MEM_DEVICE,
                                   arg[i].shape->dtype, arg[i].shape->rank,
                                   arg[i].shape->dim, arg[i].data, NULL, true,
                                   &in[i], NULL),
              "an argument");
    check(xpu_execute(x, &call, &out, &done), "running");
    check(xpu_event_wait(done), "waiting");
    xpu_event_release(done);
    check(xpu_buffer_to_host(out, 0, got.data, sd_shape_bytes(shape), &done),
          "the result");
    check(xpu_event_wait(done), "the result");
    xpu_event_release(done);
    xpu_buffer_release(out);
    for (int i = 0; i < 3; i++)
        xpu_buffer_release(in[i]);
    xpu_program_release(x);
    return got;
}

/* Sums of K + 1 floats in two orders differ by no more than so many roundings
 * of the sum of their sizes. */
static int compare(const product *p, const char *like, const hlo_value *got,
                   const hlo_value *want, const hlo_value *sizes)
{
    bool exact = sd_dtype_kind(want->shape->dtype) != SD_K_FLOAT;
    int bad = 0;

    for (int64_t i = 0; i < sd_shape_count(want->shape); i++) {
        double most = exact ? 0 : (p->k + 1) * 0x1p-23 * at(sizes, i);

        if (fabs(at(got, i) - at(want, i)) <= most || bad++)
            continue;
        print_message("%s %d x %d x %d of %s, turned %d %d: element %" PRId64
                      " is %.9g, not %.9g\n",
                      like, p->m, p->n, p->k, p->of, p->x_turned, p->y_turned,
                      i, at(got, i), at(want, i));
    }
    return bad;
}

static int one_product(world *w, const char *like, const product *p)
{
    sd_arena *a = sd_arena_create();
    const char *text = write_product(a, p);
    hlo_module *m = parse(a, text);
    device_desc dev = device_with(w, like);
    hlo_value arg[3], got, want, sizes;
    thunk_program *t;
    int bad;

    for (int i = 0; i < 3; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        fill(&arg[i], (uint64_t)i + 3);
    }
    check(hlo_eval(a, m->entry, arg, 3, &want), text);
    t = compile(a, text, w, &dev);
    got = run(a, w, t, arg, want.shape);
    for (int i = 0; i < 3; i++)
        take_signs(&arg[i]);
    check(hlo_eval(a, m->entry, arg, 3, &sizes), text);
    bad = compare(p, like, &got, &want, &sizes);
    thunk_program_release(t);
    sd_arena_destroy(a);
    return bad > 0;
}

static void test_products(void **state)
{
    static const char *const like[] = {"cl:pvc", "cl:dg2-g10"};
    static const char *const type[][2] = {
        {"bf16", "f32"}, {"f16", "f32"}, {"s8", "s32"}, {"u8", "s32"}};
    /* M, N, K; each side: does K come first in x, last in y */
    static const int form[][5] = {{33, 47, 41, 0, 0},
                                  {33, 47, 41, 1, 1},
                                  {64, 96, 128, 1, 0},
                                  {131, 150, 83, 0, 1}};
    int bad = 0;

    for (size_t d = 0; d < SD_COUNTOF(like); d++)
        for (size_t t = 0; t < SD_COUNTOF(type); t++)
            for (size_t f = 0; f < SD_COUNTOF(form); f++) {
                product p = {type[t][0], type[t][1], form[f][0], form[f][1],
                             form[f][2], form[f][3], form[f][4]};

                bad += one_product(*state, like[d], &p);
            }
    assert_int_equal(bad, 0);
}

int main(int argc, char **argv)
{
    world w = {0};
    sd_options opt;
    sd_status st;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_products, &w)};

    if (argc < 3)
        return 77; /* skipped, says Meson: there is no spirv-link */
    linker = argv[1];
    engine = argv[2];
    sd_log_init();
    sd_options_from_env(&opt);
    opt.value[SD_OPT_DEVICE] = "cl";
    if ((st = xpu_client_create(&opt, &w.client))) {
        print_message("no such device: %s\n", st->message);
        sd_status_free(st);
        return 77;
    }
    w.device = xpu_client_device(w.client, 0);
    w.shelf = sd_shelf_create();
    argc = cmocka_run_group_tests(tests, NULL, NULL);
    sd_shelf_destroy(w.shelf);
    xpu_client_destroy(w.client);
    return argc;
}
