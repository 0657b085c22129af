/* target: products by Intel's matrix engine, run where there is none.  Kernels
 * that call the engine's functions are linked to dpas.c, which has the same
 * functions over broadcasts, and held against the evaluator: sums of bytes
 * exactly, sums of floats within what an order of additions may change.
 * Arguments: dpas.c as SPIR-V, the device described; then what runs alone, the
 * first of the random programs and how many, or programs in files: without
 * these a few random ones do, after written ones. */
#include "hlo.h"
#include "passes.h"
#include "plan.h"
#include "target.h"
#include "xpu_cl_api.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine_programs.h"
#include "hlo_written.h"
#include "ref.h"

static const char *engine, *like;
static uint64_t first_drawn = 1;
static int direct; /* kernels whose operands are read by 2-D blocks, */
static int once;   /* and whose image is copied once for all of a window */
static int attending; /* that are attention */
static int drawn = 2;
static char **file; /* programs that run alone */
static int nfile;
static __typeof__(clBuildProgram) *build_well;

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

enum { MOST_ARGS = 8 };

/* A complex number is two. */
static int64_t numbers(const hlo_value *v)
{
    return sd_shape_count(v->shape) << sd_is_complex(v->shape->dtype);
}

static uint8_t *place(const hlo_value *v, int64_t i)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);

    return (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t);
}

static void fill(hlo_value *v, uint64_t seed)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);

    for (int64_t i = 0; i < numbers(v); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (sd_is_float(t))
            sd_scalar_of_f64(t, (double)(seed >> 33) / 0x1p30 - 1, place(v, i));
        else
            sd_scalar_of_s64(t, (int64_t)(seed >> 56), place(v, i));
    }
}

static double at(const hlo_value *v, int64_t i)
{
    return sd_scalar_to_f64(sd_dtype_part(v->shape->dtype), place(v, i));
}

/* Of a complex number the sum of both sizes, which no part of a product of
 * such sums is larger than. */
static void take_signs(hlo_value *v)
{
    int parts = 1 + sd_is_complex(v->shape->dtype);
    sd_dtype t = sd_dtype_part(v->shape->dtype);

    for (int64_t i = 0; i < numbers(v); i += parts) {
        double size = fabs(at(v, i));

        if (parts == 2) {
            size += fabs(at(v, i + 1));
            sd_scalar_of_f64(t, 0, place(v, i + 1));
        }
        sd_scalar_of_f64(t, size, place(v, i));
    }
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
            system(sd_arena_fmt(a, "spirv-link %s %s -o %s", from, engine, to)),
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
static device_desc device_with(const world *w, bool large)
{
    device_desc dev = *xpu_device_desc(w->device), of;

    assert_true(device_desc_of_name(like, &of));
    dev.crowd = of.crowd;
    dev.access = of.access;
    dev.registers = of.registers;
    dev.subgroup = of.subgroup;
    dev.local_bytes = of.local_bytes;
    dev.local_most = of.local_most;
    dev.units = large ? 1 : 64;
    dev.features |= of.features &
                    (DEVICE_HAS_DPAS16 | DEVICE_HAS_DPAS8 | DEVICE_HAS_BLOCK2D);
    return dev;
}

/* NULL: it has no engine, and then need not run. */
static thunk_program *compile(sd_arena *a, const engine_program *of, world *w,
                              const device_desc *dev, bool *found)
{
    const char *text = of->text;
    hlo_module *m = parse_text(a, text);
    thunk_program *t;
    sd_options opt;
    plan *p;

    *found = false;
    sd_options_from_env(&opt);
    check(hlo_optimize(m, dev, &opt, NULL, NULL), text);
    if (of->copied) {
        plan_split_phases(m);
        plan_copy_operands(m, dev, true);
    }
    check(plan_make(a, m, dev, &opt, &p), text);
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i]->attend) {
            *found = true;
            attending++;
        } else if (p->kernel[i]->blocks &&
                   plan_engine_table[p->kernel[i]->blocks->engine].m) {
            *found = true;
            direct += p->kernel[i]->blocks->direct;
            once += p->kernel[i]->blocks->window;
        }
    if (!*found && of->any) {
        plan_destroy(p);
        return NULL;
    }
    if (!*found && !of->plain)
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
                     const hlo_value *arg, int narg, const sd_shape *shape)
{
    hlo_value got = hlo_value_make(a, shape);
    xpu_call call = {.narg = narg};
    xpu_buffer *in[MOST_ARGS], *out;
    xpu_program *x;
    xpu_event *done;

    call.arg = in;
    check(xpu_program_load(w->device, t, &x), "loading");
    for (int i = 0; i < narg; i++)
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
    for (int i = 0; i < narg; i++)
        xpu_buffer_release(in[i]);
    xpu_program_release(x);
    return got;
}

/* Sums of K + 1 floats in two orders differ by no more than so many roundings
 * of the sum of their sizes.  Where one of them is rounded to a narrow type and
 * multiplied again, the rounding may go the other way. */
static int compare(const engine_program *p, const hlo_value *got,
                   const hlo_value *want, const hlo_value *sizes)
{
    bool exact = !sd_is_float(sd_dtype_part(want->shape->dtype));
    int64_t whole = ~(int64_t)sd_is_complex(want->shape->dtype);
    int bad = 0;

    for (int64_t i = 0; i < numbers(want); i++) {
        double most = exact ? 0
                            : ((double)(p->terms + 1) * 0x1p-23 + p->slack) *
                                  at(sizes, i & whole);

        if (at(got, i) == at(want, i) || /* both may be infinite, or none */
            (isnan(at(got, i)) && isnan(at(want, i))) ||
            fabs(at(got, i) - at(want, i)) <= most || bad++)
            continue;
        print_message("%s %s: element %" PRId64 " is %.9g, not %.9g\n", like,
                      p->name, i, at(got, i), at(want, i));
    }
    return bad;
}

/* Each part of the result may be off by some of its largest element. */
static int compare_parts(const engine_program *p, const hlo_value *got,
                         const hlo_value *want)
{
    int64_t from = 0;
    int bad = 0;

    for (int part = 0; part < p->npart; part++) {
        int64_t to = from + p->part[part];
        double most = 0, off = 0;

        for (int64_t i = from; i < to; i++) {
            most = fmax(most, fabs(at(want, i)));
            off = fmax(off, fabs(at(got, i) - at(want, i)));
            bad += isnan(at(got, i)) != isnan(at(want, i));
        }
        if (off > most * p->off[part] && ++bad)
            print_message("%s %s: part %d is %.3g off, of %.3g\n", like,
                          p->name, part, off, most);
        from = to;
    }
    return bad;
}

/* 1: right, 0: wrong, -1: not run; in *found whether it has an engine. */
static int one_program(sd_arena *a, world *w, const engine_program *p,
                       bool *found)
{
    const char *text = p->text;
    hlo_module *m = parse_text(a, text);
    device_desc dev = device_with(w, p->large);
    int narg = m->entry->nparam, bad;
    hlo_value arg[MOST_ARGS], got, want, sizes;
    thunk_program *t;

    assert_in_range(narg, 0, MOST_ARGS);
    for (int i = 0; i < narg; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        fill(&arg[i], p->seed + (uint64_t)i + 3);
    }
    if (!(t = compile(a, p, w, &dev, found)))
        return -1;
    check(ref_eval(a, m->entry, arg, narg, &want), text);
    got = run(a, w, t, arg, narg, want.shape);
    if (p->npart) {
        thunk_program_release(t);
        return compare_parts(p, &got, &want) == 0;
    }
    for (int i = p->unsigned_from; i < narg; i++)
        take_signs(&arg[i]);
    check(ref_eval(a, m->entry, arg, narg, &sizes), text);
    bad = compare(p, &got, &want, &sizes);
    thunk_program_release(t);
    return bad == 0;
}

static int one_product(world *w, const engine_product *p, bool large,
                       bool copied)
{
    sd_arena *a = sd_arena_create();
    engine_program of = {.text = engine_product_text(a, p),
                         .terms = p->k,
                         .large = large,
                         .copied = copied};
    bool found;
    int right;

    of.name = sd_arena_fmt(a, "%d x %d x %d of %s, turned %d %d", p->m, p->n,
                           p->k, p->of, p->x_turned, p->y_turned);
    right = one_program(a, w, &of, &found);
    sd_arena_destroy(a);
    return right != 1;
}

static void test_products(void **state)
{
    static const char *const type[][2] = {
        {"bf16", "f32"}, {"f16", "f32"}, {"s8", "s32"}, {"u8", "s32"}};
    /* M, N, K; each side: does K come first in x, last in y */
    static const int form[][5] = {{33, 47, 41, 0, 0},  {33, 47, 41, 1, 1},
                                  {64, 96, 128, 1, 0}, {131, 150, 83, 0, 1},
                                  {70, 88, 104, 0, 0}, {41, 56, 72, 0, 1},
                                  {50, 45, 172, 0, 1}};
    int bad = 0;

    for (size_t t = 0; t < SD_COUNTOF(type); t++)
        for (size_t f = 0; f < SD_COUNTOF(form); f++) {
            engine_product p = {type[t][0], type[t][1], form[f][0], form[f][1],
                                form[f][2], form[f][3], form[f][4]};

            bad += one_product(*state, &p, t == 0 && f > 1 && f < 4,
                               t % 2 == f % 2);
        }
    assert_int_equal(bad, 0);
}

/* ---- windows ---- */

/* Of features that whole panels have: guards are bits found before the loop,
 * and what is outside of an image is read from a slot of zeros. */
static void test_windows(void **state)
{
    static const struct {
        const char *of, *sum, *x, *y, *bias, *result, *window, *labels;
        int64_t terms;
        int last; /* dimension of the result that counts features */
        bool copied;
    } form[] = {
        {"bf16", "f32", "2,9,13,32", "3,3,32,40", "40", "2,9,13,40",
         "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", 288, 3, false},
        {"f16", "f32", "2,15,14,16", "3,2,16,24", "24", "2,7,7,24",
         "size=3x2 stride=2x2 pad=2_1x0_1 rhs_dilate=2x2", "b01f_01io->b01f",
         96, 3, false},
        {"s8", "s32", "1,32,10,19", "2,3,32,48", "48", "1,48,10,19",
         "size=2x3 pad=0_1x1_1", "bf01_01io->bf01", 192, 1, false},
        {"bf16", "f32", "2,9,16,32", "3,3,32,40", "40", "2,9,16,40",
         "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", 288, 3, false},
        {"s8", "s32", "1,17,33,72", "3,2,72,80", "80", "1,9,16,80",
         "size=3x2 stride=2x2 pad=1_1x0_0", "b01f_01io->b01f", 432, 3, false},
        {"f16", "f32", "2,7,8,40", "3,3,40,32", "32", "2,9,16,32",
         "size=3x3 pad=3_3x6_6 rhs_dilate=2x2", "b01f_01io->b01f", 360, 3,
         false},
        {"f16", "f32", "2,7,8,64", "3,3,64,32", "32", "2,9,16,32",
         "size=3x3 pad=3_3x6_6 rhs_dilate=2x2", "b01f_01io->b01f", 576, 3,
         false},
        {"s8", "s32", "2,9,18,64", "3,3,64,48", "48", "2,7,16,48", "size=3x3",
         "b01f_01io->b01f", 576, 3, false},
        {"bf16", "f32", "2,9,17,64", "32,3,2,64", "32", "2,8,16,32",
         "size=3x2 pad=1_0x0_0", "b01f_o01i->b01f", 384, 3, false},
        {"bf16", "f32", "2,9,14,64", "3,3,64,48", "48", "2,9,14,48",
         "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", 576, 3, false},
        {"f16", "f32", "2,13,27,32", "3,3,32,48", "48", "2,7,14,48",
         "size=3x3 stride=2x2 pad=1_1x1_1", "b01f_01io->b01f", 288, 3, false},
        {"bf16", "f32", "2,17,29,32", "3,3,32,48", "48", "2,8,14,48",
         "size=3x3 stride=2x2", "b01f_01io->b01f", 288, 3, false},
        {"s8", "s32", "2,14,14,64", "4,4,64,64", "64", "2,13,13,64",
         "size=4x4 pad=1_1x1_1", "b01f_01io->b01f", 1024, 3, false},
        {"f16", "f32", "1,9,150,32", "3,3,32,40", "40", "1,5,75,40",
         "size=3x3 stride=2x2 pad=1_1x1_1", "b01f_01io->b01f", 288, 3, false},
        {"bf16", "f32", "2,9,14,64", "3,3,32,48", "48", "2,9,14,48",
         "size=3x3 pad=1_1x1_1", "b01f_01io->b01f, feature_group_count=2", 288,
         3, false},
        {"bf16", "f32", "2,64,9,14", "48,64,3,3", "48", "2,48,9,14",
         "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01", 576, 1, true},
        {"s8", "s32", "2,64,9,14", "64,32,3,3", "64", "2,64,5,7",
         "size=3x3 stride=2x2 pad=1_1x1_1",
         "bf01_oi01->bf01, feature_group_count=2", 288, 1, true},
        {"f16", "f32", "9,32,7,5", "32,48,3,3", "48", "9,48,7,5",
         "size=3x3 pad=1_1x1_1", "bf01_io01->bf01", 288, 1, true},
        {"bf16", "f32", "1,20,19,3", "7,7,3,32", "32", "1,10,10,32",
         "size=7x7 stride=2x2 pad=3_3x3_3", "b01f_01io->b01f", 147, 3, true},
        {"bf16", "f32", "4,9,12,24", "4,9,12,32", "32", "3,3,24,32",
         "size=9x12 pad=1_1x1_1", "f01b_i01o->01bf", 432, 3, true},
        {"f16", "f32", "16,24,9,13", "16,32,5,7", "32", "24,32,3,3",
         "size=5x7 pad=1_1x1_1 rhs_dilate=2x2", "fb01_io01->bf01", 560, 1,
         true},
        {"s8", "s32", "8,6,8,48", "8,6,8,32", "32", "3,3,48,32",
         "size=6x8 pad=1_1x1_1", "f01b_i01o->01bf", 384, 3, true},
        {"s8", "s32", "2,3,12,33", "40,3,3,4", "40", "2,40,12,32",
         "size=3x4 pad=2_2x2_3 rhs_dilate=2x2 rhs_reversal=1x1",
         "bf01_oi01->bf01", 36, 1, true},
    };
    int bad = 0;

    for (size_t i = 0; i < SD_COUNTOF(form); i++) {
        sd_arena *a = sd_arena_create();
        engine_program p = {.terms = form[i].terms,
                            .name = form[i].window,
                            .copied = form[i].copied};
        bool found;

        p.text = sd_arena_fmt(
            a,
            "HloModule m\nENTRY e {\n x = %s[%s] parameter(0)\n"
            " y = %s[%s] parameter(1)\n b = %s[%s] parameter(2)\n"
            " d = %s[%s] convolution(x, y), window={%s}, dim_labels=%s\n"
            " w = %s[%s] broadcast(b), dimensions={%d}\n"
            " ROOT r = %s[%s] add(d, w)\n}\n",
            form[i].of, form[i].x, form[i].of, form[i].y, form[i].sum,
            form[i].bias, form[i].sum, form[i].result, form[i].window,
            form[i].labels, form[i].sum, form[i].result, form[i].last,
            form[i].sum, form[i].result);
        bad += one_program(a, *state, &p, &found) != 1;
        sd_arena_destroy(a);
    }
    assert_int_equal(bad, 0);
    assert_int_equal(direct > 0, strstr(like, "pvc") != NULL);
}

static void test_attention(void **state)
{
    int bad = 0;

    for (int i = 0; i < ENGINE_ATTENTIONS; i++) {
        sd_arena *a = sd_arena_create();
        engine_program p = engine_program_attention(a, i);
        int before = attending;
        bool found;

        bad += one_program(a, *state, &p, &found) != 1;
        assert_int_equal(attending, before + 1);
        sd_arena_destroy(a);
    }
    assert_int_equal(bad, 0);
}

static void test_gradients(void **state)
{
    int bad = 0;

    if (!strstr(like, "pvc"))
        skip(); /* no such kernel */
    for (int i = 0; i < ENGINE_GRADIENTS; i++) {
        sd_arena *a = sd_arena_create();
        engine_program p = engine_program_gradient(a, i);
        int before = attending;
        bool found;

        bad += one_program(a, *state, &p, &found) != 1;
        assert_int_equal(attending, before + 3);
        sd_arena_destroy(a);
    }
    assert_int_equal(bad, 0);
}

/* ---- drawn programs ---- */

static int one_drawn(world *w, uint64_t seed, engine_kind *kind)
{
    sd_arena *a = sd_arena_create();
    engine_program p = engine_program_drawn(a, seed);
    bool found;
    int right = one_program(a, w, &p, &found);

    *kind = p.kind;
    sd_arena_destroy(a);
    return right;
}

static void test_drawn(void **state)
{
    int count[3] = {0}, of[3] = {0};

    for (int i = 0; i < drawn; i++) {
        engine_kind kind;
        int right = one_drawn(*state, first_drawn + (uint64_t)i, &kind);

        count[1 + right]++;
        of[kind] += right == 1;
    }
    print_message("%d right (%d products, %d convolutions, %d of attention), "
                  "%d wrong, %d without an engine; %d kernels read blocks, %d "
                  "have an image whole, %d are attention\n",
                  count[2], of[ENGINE_PRODUCT], of[ENGINE_CONVOLUTION],
                  of[ENGINE_ATTENTION], count[1], count[0], direct, once,
                  attending);
    assert_int_equal(count[1], 0);
    assert_true(count[2] > drawn / 2);
}

/* ---- programs in files ---- */

/* Terms of the longest sum of a product. */
static int64_t longest_sum(const hlo_module *m)
{
    int64_t most = 1;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            int64_t n = 1;

            if (in->op == HLO_DOT)
                for (int i = 0; i < in->u.dot->lhs_contract.n; i++)
                    n *= in->arg[0]->shape->dim[in->u.dot->lhs_contract.at[i]];
            else if (in->op == HLO_CONVOLUTION)
                n = sd_shape_count(in->arg[1]->shape) /
                    SD_MAX(in->arg[1]->shape->dim[in->u.conv->k_out], 1);
            most = SD_MAX(most, n);
        }
    return most;
}

static double rounding_to(sd_dtype t)
{
    return t == SD_BF16 ? 0x1p-8 : t == SD_F16 ? 0x1p-11 : 0;
}

static void test_files(void **state)
{
    int wrong = 0;

    for (int i = 0; i < nfile; i++) {
        sd_arena *a = sd_arena_create();
        sd_bytes text = read_file(a, file[i]);
        engine_program p = {.name = file[i], .plain = true};
        const hlo_module *m;
        bool found;

        p.text = sd_arena_str(a, (const char *)text.at, text.len);
        m = parse_text(a, p.text);
        p.terms = longest_sum(m) << sd_is_complex(m->entry->root->shape->dtype);
        p.slack = rounding_to(m->entry->root->shape->dtype);
        if (one_program(a, *state, &p, &found) != 1 && ++wrong)
            print_message("%s: wrong\n", file[i]);
        else
            print_message("%s: %s\n", file[i], found ? "engine" : "plain");
        sd_arena_destroy(a);
    }
    assert_int_equal(wrong, 0);
}

/* ---- the driver ---- */

static cl_int build_soon(cl_program p, cl_uint n, const cl_device_id *id,
                         const char *options,
                         void(CL_CALLBACK *done)(cl_program, void *), void *of)
{
    char all[256];

    snprintf(all, sizeof all, "%s -cl-opt-disable", options);
    return build_well(p, n, id, all, done, of);
}

/* A kernel of dozens of matrix instructions takes Intel's compiler for CPUs
 * seconds, without optimization one; sub-groups are wrong without its
 * vectorizer, which it then has to be asked for. */
static void hurry(const world *w)
{
    xpu_cl *cl = w->device->impl;

    build_well = cl->driver->api.BuildProgram;
    cl->driver->api.BuildProgram = build_soon;
}

int main(int argc, char **argv)
{
    world w = {0};
    sd_options opt;
    sd_status st;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_products, &w),
        cmocka_unit_test_prestate(test_windows, &w),
        cmocka_unit_test_prestate(test_attention, &w),
        cmocka_unit_test_prestate(test_gradients, &w),
        cmocka_unit_test_prestate(test_drawn, &w)};
    const struct CMUnitTest alone[] = {
        cmocka_unit_test_prestate(test_drawn, &w)};
    const struct CMUnitTest files[] = {
        cmocka_unit_test_prestate(test_files, &w)};
    bool counts = argc == 5 && strspn(argv[3], "0123456789") == strlen(argv[3]);

    if (argc < 3) {
        print_message(
            "usage: test_engines dpas.spv DEVICE [FIRST COUNT | FILE...]\n");
        return 2;
    }
    engine = argv[1];
    like = argv[2];
    file = argv + 3;
    nfile = argc - 3;
    if (counts) {
        first_drawn = strtoull(argv[3], NULL, 10);
        drawn = atoi(argv[4]);
    }
    setenv("CL_CONFIG_CPU_O0_VECTORIZATION", "1", 1);
    sd_log_init();
    sd_options_from_env(&opt);
    opt.value[SD_OPT_DEVICE] = "cl";
    if ((st = xpu_client_create(&opt, &w.client))) {
        print_message("no such device: %s\n", st->message);
        sd_status_free(st);
        return 77;
    }
    w.device = xpu_client_device(w.client, 0);
    hurry(&w);
    w.shelf = sd_shelf_create();
    argc = counts  ? cmocka_run_group_tests(alone, NULL, NULL)
           : nfile ? cmocka_run_group_tests(files, NULL, NULL)
                   : cmocka_run_group_tests(tests, NULL, NULL);
    sd_shelf_destroy(w.shelf);
    xpu_client_destroy(w.client);
    return argc;
}
