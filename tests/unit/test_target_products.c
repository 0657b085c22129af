/* Our own products and convolutions on a device, against loops: the order of
 * their sums, integers that wrap, whole numbers that are exact. */
#include "test_target_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

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
    hlo_module *m = run_parse(a, &prog);
    hlo_value arg[2], want = hlo_value_make(a, m->entry->root->shape);
    bool is;

    for (int i = 0; i < 2; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        run_fill(&arg[i], (uint64_t)i + 3);
    }
    for (int64_t i = 0; i < d[M]; i++)
        for (int64_t j = 0; j < d[N]; j++) {
            float sum = 0, chain = 0;

            for (int64_t k = 0; k < d[K]; k++) {
                if (d[K] > 320 && k % 256 == 0) {
                    sum += chain;
                    chain = 0;
                }
                chain = fmaf(element(&arg[0], p->x_turned, x_dim, i, k),
                             element(&arg[1], p->y_turned, y_dim, k, j), chain);
            }
            sum += chain;
            ((float *)want.data)[i * d[N] + j] = sum;
        }
    is = run_gives(a, &prog, w, arg, 2, &want);
    sd_arena_destroy(a);
    return is;
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
    hlo_module *m = run_parse(a, &prog);
    hlo_value arg[2], want = hlo_value_make(a, m->entry->root->shape);
    float *out = want.data;
    bool is;

    for (int i = 0; i < 2; i++) {
        arg[i] = hlo_value_make(a, m->entry->param[i]->shape);
        run_fill(&arg[i], (uint64_t)i + 5);
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
    is = run_gives(a, &prog, w, arg, 2, &want);
    sd_arena_destroy(a);
    return is;
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
        uint64_t r = run_random(&seed);

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
    return run_part_at(v, turned ? column * v->shape->dim[1] + row
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
    hlo_module *m = run_parse(a, &prog);
    hlo_value arg[2], want = hlo_value_make(a, m->entry->root->shape);
    bool is;

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
    is = run_gives(a, &prog, w, arg, 2, &want);
    sd_arena_destroy(a);
    return is;
}

void test_products_of_integers_wrap(void **state)
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
        sd_scalar_of_f64(SD_BF16, (double)(run_random(&seed) % 31) - 15,
                         (uint8_t *)v->data + 2 * i);
}

static void fill_nan(hlo_value *v, uint64_t seed)
{
    (void)seed;
    for (int64_t i = 0; i < sd_shape_count(v->shape); i++)
        sd_scalar_of_f64(SD_BF16, NAN, (uint8_t *)v->data + 2 * i);
}

void test_products_of_whole_numbers_are_exact(void **state)
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

void test_products_are_chains(void **state)
{
    int bad = 0;

    for (size_t i = 0; i < SD_COUNTOF(products); i++)
        bad += !product_is_chain(&products[i], *state);
    for (size_t i = 0; i < SD_COUNTOF(convolutions); i++)
        bad += !convolution_is_chain(&convolutions[i], *state);
    assert_int_equal(bad, 0);
}
