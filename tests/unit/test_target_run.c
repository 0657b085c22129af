/* target: programs as HLO text through passes, plan and target onto a device,
 * held against the evaluator's values of the program as it was written.
 * Argument: the device of the client to run on ("host", "cl"). */
#include "hlo.h"
#include "passes.h"
#include "plan.h"
#include "target.h"
#include "xpu.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "skip.h"

typedef struct {
    const char *name;
    double tolerance; /* relative to the largest value; 0: exact */
    const char *text;
} program;

#define ADD(t) \
    "add { a = " t "[] parameter(0) b = " t "[] parameter(1) " \
    "ROOT c = " t "[] add(a, b) }\n"
#define MAX(t) \
    "max { a = " t "[] parameter(0) b = " t "[] parameter(1) " \
    "ROOT c = " t "[] maximum(a, b) }\n"

static const program programs[] = {
#include "test_target_run.def"
};

typedef struct {
    xpu_client *client;
    xpu_device *device;
    sd_shelf *shelf; /* as in a client: machines are used again */
} world;

/* ---- values ---- */

static uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

static void fill(hlo_value *v, uint64_t seed)
{
    sd_dtype t = sd_dtype_part(v->shape->dtype);
    int64_t n = sd_shape_count(v->shape) * (t == v->shape->dtype ? 1 : 2);

    for (int64_t i = 0; i < n; i++) {
        uint64_t r = next_random(&seed);
        uint8_t *at = (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t);

        if (t == SD_PRED)
            *at = r & 1;
        else if (sd_dtype_kind(t) == SD_K_FLOAT)
            sd_scalar_of_f64(t, (double)r / 0x1p30 - 1, at);
        else
            sd_scalar_of_s64(t, (int64_t)(r % 11) - 2, at);
    }
}

static double part_at(const hlo_value *v, int64_t i)
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
        if (isfinite(part_at(want, i)))
            size = fmax(size, fabs(part_at(want, i)));
    for (int64_t i = 0; i < n; i++) {
        double x = part_at(got, i), y = part_at(want, i);

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

static hlo_module *parse(sd_arena *a, const program *p)
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
    hlo_module *m = parse(a, p);
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

static bool one_program(const program *p, world *w, bool careful)
{
    sd_arena *a = sd_arena_create();
    hlo_module *m = parse(a, p);
    hlo_value arg[8], want, *outs = &want;
    int n = m->entry->nparam, nout = 1, bad = 1;
    sd_options opt;
    thunk_program *t;

    sd_options_from_env(&opt);
    for (int i = 0; i < n; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        fill(&arg[i], (uint64_t)i + 3);
    }
    check(hlo_eval(a, m->entry, arg, n, &want), p->name);
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

/* ---- the order of a product's sum ---- */

/* Own products of floats are chains of fused multiply-adds over rising k, of
 * 256 terms where there are more than 320, whatever blocks they are computed
 * in, on every device and x86 level. */
enum { M, N, K };
typedef struct {
    int64_t dim[3];
    bool x_turned, y_turned;
} product;

static const product products[] = {
    {{6, 8, 100}, false, false},    {{37, 45, 300}, false, true},
    {{300, 290, 20}, true, false},  {{70, 33, 700}, true, true},
    {{200, 17, 330}, false, false}, {{13, 600, 65}, false, true},
    {{5, 9, 1000}, false, false},   {{3, 70, 400}, true, false},
};

static float element(const hlo_value *v, bool turned, const int64_t *dim,
                     int64_t row, int64_t column)
{
    const float *at = v->data;

    return turned ? at[column * dim[0] + row] : at[row * dim[1] + column];
}

static bool product_is_chain(const product *p, world *w)
{
    sd_arena *a = sd_arena_create();
    const int64_t *d = p->dim, x_dim[2] = {d[M], d[K]}, y_dim[2] = {d[K], d[N]};
    const char *text = sd_arena_fmt(
        a,
        "HloModule m\nENTRY e { a = f32[%d,%d] parameter(0) b = f32[%d,%d] "
        "parameter(1) ROOT r = f32[%d,%d] dot(a, b), "
        "lhs_contracting_dims={%d}, "
        "rhs_contracting_dims={%d} }",
        (int)x_dim[p->x_turned], (int)x_dim[!p->x_turned],
        (int)y_dim[p->y_turned], (int)y_dim[!p->y_turned], (int)d[M], (int)d[N],
        !p->x_turned, p->y_turned);
    program prog = {sd_arena_fmt(a, "product of %d, %d and %d", (int)d[M],
                                 (int)d[N], (int)d[K]),
                    0, text};
    hlo_module *m = parse(a, &prog);
    hlo_value arg[2], want = hlo_value_make(a, m->entry->root->shape);
    thunk_program *t;
    sd_options opt;
    int bad = 1;

    sd_options_from_env(&opt);
    for (int i = 0; i < 2; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        fill(&arg[i], (uint64_t)i + 3);
    }
    for (int64_t i = 0; i < d[M]; i++)
        for (int64_t j = 0; j < d[N]; j++) {
            float sum = 0, chain = 0;

            for (int64_t k = 0; k < d[K]; k++) {
                if (d[K] > 320 && k % 256 == 0) {
                    sum += chain;
                    chain = 0;
                }
                chain =
                    fmaf(element(&arg[0], p->x_turned, x_dim, i, k),
                         element(&arg[1], p->y_turned, y_dim, k, j), chain);
            }
            sum += chain;
            ((float *)want.data)[i * d[N] + j] = sum;
        }
    t = compile(a, &prog, w, &opt, false);
    if (t)
        bad = run(a, &prog, w, t, arg, 2, &want, 1);
    thunk_program_release(t);
    sd_arena_destroy(a);
    return bad == 0;
}

/* So are convolutions, over the kernel in the order of memory: here channels,
 * then the window, where a chain ends with a channel.  Images are small, so
 * that columns of a block are rows of an image, or whole images. */
typedef struct {
    int images, channels, features, size, window, groups;
} convolution;

static const convolution convolutions[] = {
    {3, 40, 20, 14, 3, 1}, {7, 20, 33, 7, 3, 1}, {2, 12, 7, 21, 5, 1},
    {5, 9, 40, 3, 3, 1},   {2, 6, 8, 40, 1, 1},  {1, 300, 30, 13, 3, 1},
    {3, 32, 48, 11, 3, 2}, {2, 48, 24, 9, 3, 3}, {2, 20, 40, 10, 3, 20},
};

static float window_sum(const convolution *c, const float *x, const float *w)
{
    int k = c->window, n = c->size, depth = c->channels / c->groups;
    int chunk = depth * k * k > 320 ? 256 / (k * k) : depth;
    float sum = 0, chain = 0;

    for (int i = 0; i < depth; i++) {
        if (i && i % chunk == 0) {
            sum += chain;
            chain = 0;
        }
        for (int j = 0; j < k * k; j++)
            chain =
                fmaf(x[(i * n + j / k) * n + j % k], w[i * k * k + j], chain);
    }
    return sum + chain;
}

static bool convolution_is_chain(const convolution *c, world *w)
{
    sd_arena *a = sd_arena_create();
    int to = c->size - c->window + 1, depth = c->channels / c->groups;
    const char *text = sd_arena_fmt(
        a,
        "HloModule m\nENTRY e { a = f32[%d,%d,%d,%d] parameter(0) b = "
        "f32[%d,%d,%d,%d] parameter(1) ROOT r = f32[%d,%d,%d,%d] "
        "convolution(a, b), window={size=%dx%d}, dim_labels=bf01_oi01->bf01, "
        "feature_group_count=%d }",
        c->images, c->channels, c->size, c->size, c->features, depth, c->window,
        c->window, c->images, c->features, to, to, c->window, c->window,
        c->groups);
    program prog = {sd_arena_fmt(a, "convolution of %d x %d x %d", c->images,
                                 c->channels, c->size),
                    0, text};
    hlo_module *m = parse(a, &prog);
    hlo_value arg[2], want = hlo_value_make(a, m->entry->root->shape);
    float *out = want.data;
    thunk_program *t;
    sd_options opt;
    int bad = 1;

    sd_options_from_env(&opt);
    for (int i = 0; i < 2; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        fill(&arg[i], (uint64_t)i + 5);
    }
    for (int i = 0; i < c->images * c->features * to * to; i++) {
        int image = i / (to * to * c->features);
        int f = i / (to * to) % c->features,
            group = f * c->groups / c->features;

        out[i] = window_sum(
            c,
            (float *)arg[0].data +
                ((image * c->channels + group * depth) * c->size +
                 i / to % to) *
                    c->size +
                i % to,
            (float *)arg[1].data + f * depth * c->window * c->window);
    }
    t = compile(a, &prog, w, &opt, false);
    if (t)
        bad = run(a, &prog, w, t, arg, 2, &want, 1);
    thunk_program_release(t);
    sd_arena_destroy(a);
    return bad == 0;
}

/* Products of narrow integers wrap as those of wide ones do, also of the least
 * and the largest, and where a word of an engine is not full. */
typedef struct {
    sd_dtype x, y;
    int64_t dim[3];
    bool x_turned, y_turned;
} integers;

static const integers integer_products[] = {
    {SD_S8, SD_S8, {30, 40, 100}, false, false},
    {SD_S8, SD_S8, {37, 45, 301}, false, true},
    {SD_S8, SD_S8, {70, 33, 702}, true, true},
    {SD_U8, SD_U8, {65, 70, 339}, false, false},
    {SD_U8, SD_U8, {20, 50, 63}, true, true},
    {SD_S8, SD_U8, {70, 290, 22}, true, false},
    {SD_U8, SD_S8, {13, 600, 65}, false, true},
    {SD_S16, SD_S8, {50, 60, 77}, true, false},
    {SD_S16, SD_S16, {33, 40, 603}, false, true},
    {SD_U16, SD_S8, {33, 40, 60}, false, true},
};

static void fill_ends(hlo_value *v, uint64_t seed)
{
    sd_dtype t = v->shape->dtype;
    int64_t most = (1ll << (sd_dtype_table[t].bits - 1)) - 1;

    for (int64_t i = 0; i < sd_shape_count(v->shape); i++) {
        uint64_t r = next_random(&seed);

        sd_scalar_of_s64(t,
                         r % 5 == 0   ? most
                         : r % 5 == 1 ? -most - 1
                                      : (int64_t)(r >> 8),
                         (uint8_t *)v->data + (size_t)i * sd_dtype_bytes(t));
    }
}

/* Element (row, column) of a matrix, or of one that lies turned. */
static double matrix_at(const hlo_value *v, bool turned, int64_t row,
                        int64_t column)
{
    return part_at(v, turned ? column * v->shape->dim[1] + row
                             : row * v->shape->dim[1] + column);
}

/* Integers are multiplied as s32, floats as they are, into f32. */
static const char *text_of(sd_arena *a, const integers *p)
{
    const int64_t *d = p->dim, x[2] = {d[M], d[K]}, y[2] = {d[K], d[N]};
    bool whole = sd_is_float(p->x);
    const char *t = whole ? "f32" : "s32";
    int xr = (int)x[p->x_turned], xc = (int)x[!p->x_turned];
    int yr = (int)y[p->y_turned], yc = (int)y[!p->y_turned];
    const char *wide =
        sd_arena_fmt(a, "x = s32[%d,%d] convert(a) y = s32[%d,%d] convert(b)",
                     xr, xc, yr, yc);

    return sd_arena_fmt(
        a,
        "HloModule m\nENTRY e { a = %s[%d,%d] parameter(0) b = %s[%d,%d] "
        "parameter(1) %s ROOT r = %s[%d,%d] dot(%s), "
        "lhs_contracting_dims={%d}, rhs_contracting_dims={%d} }",
        sd_dtype_name(p->x), xr, xc, sd_dtype_name(p->y), yr, yc,
        whole ? "" : wide, t, (int)d[M], (int)d[N], whole ? "a, b" : "x, y",
        !p->x_turned, p->y_turned);
}

/* Is the product of matrices that fill_with makes as a loop gives it? */
static bool is_exact(const integers *p, world *w,
                     void (*fill_with)(hlo_value *v, uint64_t seed))
{
    sd_arena *a = sd_arena_create();
    const int64_t *d = p->dim;
    program prog = {sd_arena_fmt(a, "%s by %s of %d, %d and %d",
                                 sd_dtype_name(p->x), sd_dtype_name(p->y),
                                 (int)d[M], (int)d[N], (int)d[K]),
                    0, text_of(a, p)};
    hlo_module *m = parse(a, &prog);
    hlo_value arg[2], want = hlo_value_make(a, m->entry->root->shape);
    thunk_program *t;
    sd_options opt;
    int bad = 1;

    sd_options_from_env(&opt);
    for (int i = 0; i < 2; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        fill_with(&arg[i], (uint64_t)i + 7);
    }
    for (int64_t i = 0; i < d[M]; i++)
        for (int64_t j = 0; j < d[N]; j++) {
            double sum = 0;

            for (int64_t k = 0; k < d[K]; k++)
                sum += matrix_at(&arg[0], p->x_turned, i, k) *
                       matrix_at(&arg[1], p->y_turned, k, j);
            if (sd_is_float(p->x))
                ((float *)want.data)[i * d[N] + j] = (float)sum;
            else
                ((int32_t *)want.data)[i * d[N] + j] = (int32_t)(int64_t)sum;
        }
    t = compile(a, &prog, w, &opt, false);
    if (t)
        bad = run(a, &prog, w, t, arg, 2, &want, 1);
    thunk_program_release(t);
    sd_arena_destroy(a);
    return bad == 0;
}

static void test_products_of_integers_wrap(void **state)
{
    int bad = 0;

    for (size_t i = 0; i < SD_COUNTOF(integer_products); i++)
        bad += !is_exact(&integer_products[i], *state, fill_ends);
    assert_int_equal(bad, 0);
}

/* Sums of products of small whole numbers of bf16 are exact in f32 in any
 * order, so an engine has no excuse: rows, columns and positions that fill its
 * tiles, and such as do not, of operands that lie either way. */
static const integers whole_products[] = {
    {SD_BF16, SD_BF16, {64, 64, 64}, false, false},
    {SD_BF16, SD_BF16, {70, 33, 702}, true, true},
    {SD_BF16, SD_BF16, {37, 45, 301}, false, true},
    {SD_BF16, SD_BF16, {290, 300, 22}, true, false},
    {SD_BF16, SD_BF16, {9, 16, 600}, false, false},
    {SD_BF16, SD_BF16, {600, 20, 33}, true, false},
    {SD_BF16, SD_BF16, {17, 515, 65}, false, true},
};

static void fill_whole(hlo_value *v, uint64_t seed)
{
    for (int64_t i = 0; i < sd_shape_count(v->shape); i++)
        sd_scalar_of_f64(SD_BF16, (double)(next_random(&seed) % 31) - 15,
                         (uint8_t *)v->data + 2 * i);
}

static void fill_nan(hlo_value *v, uint64_t seed)
{
    (void)seed;
    for (int64_t i = 0; i < sd_shape_count(v->shape); i++)
        sd_scalar_of_f64(SD_BF16, NAN, (uint8_t *)v->data + 2 * i);
}

static void test_products_of_whole_numbers_are_exact(void **state)
{
    int bad = 0;

    for (size_t i = 0; i < SD_COUNTOF(whole_products); i++) {
        static const integers before = {
            SD_BF16, SD_BF16, {256, 256, 600}, false, false};

        /* NaN stays where the next product has what fills its words */
        bad += !is_exact(&before, *state, fill_nan) +
               !is_exact(&whole_products[i], *state, fill_whole);
    }
    assert_int_equal(bad, 0);
}

static void test_products_are_chains(void **state)
{
    int bad = 0;

    for (size_t i = 0; i < SD_COUNTOF(products); i++)
        bad += !product_is_chain(&products[i], *state);
    for (size_t i = 0; i < SD_COUNTOF(convolutions); i++)
        bad += !convolution_is_chain(&convolutions[i], *state);
    assert_int_equal(bad, 0);
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

static plan *plan_of(sd_arena *a, const char *name, const device_desc *dev)
{
    hlo_module *m;
    sd_options opt;
    plan *pl;
    size_t i = 0;

    while (strcmp(programs[i].name, name))
        i++;
    sd_options_from_env(&opt);
    m = parse(a, &programs[i]);
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
    sd_buf_finish(&t.before);
    sd_buf_finish(&t.after);
    sd_buf_finish(&t.code);
    sd_buf_finish(&t.binary);
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

/* A processor's tiles are configured before they multiply and released at the
 * end, also in code for a processor that is not this one. */
static void test_tiles_are_configured(void **state)
{
    static const char *const types[][2] = {
        {"bf16", "tdpbf16ps"}, {"s8", "tdpbssd"}, {"u8", "tdpbuud"}};
    device_desc dev;

    (void)state;
    assert_true(device_desc_of_name("host:v4", &dev));
    dev.features |= DEVICE_HAS_AMX;
    dev.libs = 0;
    for (size_t i = 0; i < 2 * SD_COUNTOF(types); i++) {
        sd_arena *a = sd_arena_create();
        const char *type = types[i / 2][0];
        const program p = {
            "tiles", 0,
            sd_arena_fmt(a,
                         "HloModule m\nENTRY e { a = %s[64,96] parameter(0) "
                         "b = %s[96,64] parameter(1) ROOT r = %s[64,64] "
                         "dot(a, b), lhs_contracting_dims={1}, "
                         "rhs_contracting_dims={0} }",
                         type, type, *type == 'b' ? "f32" : "s32")};
        hlo_module *m = parse(a, &p);
        sd_options opt;
        texts t = {0};
        const char *at;
        plan *pl;

        sd_options_from_env(&opt);
        opt.value[SD_OPT_ENGINES] = "1";
        check(hlo_optimize(m, &dev, &opt, NULL, NULL), "passes");
        check(plan_make(a, m, &dev, &opt, &pl), "plan");
        pl->kernel[0]->flops = i % 2 ? 1e9 : 0; /* with care, and quickly */
        check(target_build(pl, &opt, NULL, NULL, keep, &t), "target");
        sd_buf_u8(&t.code, 0);
        assert_non_null(at = strstr((char *)t.code.at, "ldtilecfg"));
        for (int n = 0; n < 4; n++)
            assert_non_null(at = strstr(at + 1, types[i / 2][1]));
        assert_null(strstr(at + 1, types[i / 2][1]));
        assert_non_null(strstr((char *)t.code.at, "tilerelease"));
        sd_buf_finish(&t.before);
        sd_buf_finish(&t.after);
        sd_buf_finish(&t.code);
        sd_buf_finish(&t.binary);
        plan_destroy(pl);
        sd_arena_destroy(a);
    }
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
    m = parse(a, &mixed);
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
