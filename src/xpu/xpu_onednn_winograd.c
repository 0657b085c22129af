/* 3 x 3 convolutions of f32 by Winograd's F(2 x 2, 3 x 3).
 *
 * A tile of 2 x 2 results needs 4 x 4 inputs.  With three constant matrices it
 * is  A' (sum over channels of (G w G') * (B' x B)) A,  where * is element by
 * element: 16 multiplications a channel instead of 36.  So there are 16
 * products of matrices, tiles x channels by channels x features, which the
 * library does, and turns before and after it, which are additions and are done
 * here.  B' and A' hold 0, 1 and -1, G halves too, and a sum over the channels
 * is a ninth as long as the direct one: results are nearer to the true ones
 * than the library's own.
 *
 * Where an input is infinite or not a number, or a turn overflows, a whole tile
 * would be not a number, of which the direct convolution gives parts.  Each
 * result is looked at, and the caller does such a convolution directly.
 *
 * Blocks of tiles are done by the threads of the pool, each from the first turn
 * to the last in an area of its own, with a product on that one thread. */
#include "xpu_onednn.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Every processor that is taken as `host` has it. */
#pragma GCC target("avx2")

enum {
    KERNEL = 3,            /* positions of the kernel, of one dimension */
    STEP = 2,              /* results of a tile */
    SIDE = 4,              /* inputs of a tile */
    POINTS = SIDE * SIDE,  /* products */
    LANES = 8,             /* channels at a time */
    MOST_TILES = 128,      /* of a block: its areas lie in caches */
    LEAST_CHANNELS = 32,   /* with fewer the turns take what products gain */
    LEAST_POSITIONS = 128 /* and so does the kernel's turn with fewer results */
};

typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(32)));

typedef struct {
    onednn_call product; /* of a block: POINTS x tiles x channels */
    void *stream;
} strand;

struct onednn_winograd {
    libcall_conv c;
    bool turned; /* the kernel's channels lie side by side, not its features */
    int64_t high, wide; /* tiles of an image */
    int64_t tiles, block; /* of all images; of a block */
    /* floats from one of POINTS matrices to the next */
    int64_t x_apart, kernel_apart, sums_apart;
    /* places in the workspace: the turned kernel, `ci` zeros, a copy of what is
     * added, and an area a strand */
    size_t kernel_at, zeros_at, kept_at, area_at, work;
    size_t area, sums_at, scratch_at; /* its bytes; places in it */
    int n;
    strand strand[]; /* n, one a thread of the pool */
};

bool onednn_winograd_fits(const onednn *l, const libcall_conv *c)
{
    bool fits = l->set_threads && c->direction == LIBCALL_FORWARD &&
                c->nspatial == 2 && c->groups == 1 && c->in_type == SD_F32 &&
                c->kernel_type == SD_F32 && c->out_type == SD_F32 &&
                SD_MIN(c->ci, c->co) >= LEAST_CHANNELS && c->ci % LANES == 0 &&
                c->co % LANES == 0 && c->in_step[1] == 1 &&
                c->out_step[1] == 1 &&
                (c->kernel_step[0] == 1 || c->kernel_step[1] == 1) &&
                c->batch * c->out[0] * c->out[1] >= LEAST_POSITIONS;

    for (int i = 0; i < 2; i++)
        fits = fits && c->kernel[i] == KERNEL && c->stride[i] == 1 &&
               c->dilation[i] == 1;
    return fits;
}

/* ---- turns ---- */

static inline lanes get(const float *p)
{
    return *(const lanes *)p;
}

static inline void put(float *p, lanes v)
{
    *(lanes *)p = v;
}

/* B' times a column whose elements are `step` apart. */
static inline void turn_input(lanes *x, int step)
{
    lanes a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];

    x[0] = a - c;
    x[step] = b + c;
    x[2 * step] = c - b;
    x[3 * step] = b - d;
}

/* G times one: three elements become four. */
static inline void turn_kernel(lanes *w, int step)
{
    lanes a = w[0], b = w[step], c = w[2 * step];

    w[step] = (a + b + c) * 0.5f;
    w[2 * step] = (a - b + c) * 0.5f;
    w[3 * step] = c;
}

/* A' times one: four become two. */
static inline void turn_sums(lanes *m, int step)
{
    lanes a = m[0], b = m[step], c = m[2 * step], d = m[3 * step];

    m[0] = a + b + c;
    m[step] = b - c - d;
}

typedef struct {
    onednn *l;
    const onednn_winograd *w;
    const float *x, *kernel, *bias, *add;
    float *y;
    atomic_int error; /* the library's first */
    atomic_bool odd; /* a sum is infinite or not a number */
} run;

/* Row `row` of the kernel, of a channel, or of a feature where it is turned. */
static void turn_kernels(void *ctx, int64_t row, int worker)
{
    const run *r = ctx;
    const libcall_conv *c = &r->w->c;
    int64_t each = r->w->kernel_apart;
    int64_t columns = r->w->turned ? c->ci : c->co;
    float *to = (float *)(r->l->work + r->w->kernel_at) + row * columns;
    const float *from = r->kernel + row * c->kernel_step[!r->w->turned];

    (void)worker;
    for (int64_t k = 0; k < columns; k += LANES) {
        lanes w[POINTS];

        for (int i = 0; i < KERNEL; i++)
            for (int j = 0; j < KERNEL; j++)
                w[i * SIDE + j] = get(from + k + i * c->kernel_step[2] +
                                      j * c->kernel_step[3]);
        for (int j = 0; j < KERNEL; j++)
            turn_kernel(w + j, SIDE);
        for (int i = 0; i < SIDE; i++)
            turn_kernel(w + i * SIDE, 1);
        for (int p = 0; p < POINTS; p++)
            put(to + p * each + k, w[p]);
    }
}

/* Of a tile's first result. */
typedef struct {
    int64_t image, y, x;
} place;

static place place_of(const onednn_winograd *w, int64_t tile)
{
    return (place){tile / w->wide / w->high, tile / w->wide % w->high * STEP,
                   tile % w->wide * STEP};
}

static void turn_tile(const run *r, int64_t tile, float *to)
{
    const libcall_conv *c = &r->w->c;
    const float *zeros = (const float *)(r->l->work + r->w->zeros_at);
    const float *from[POINTS];
    int64_t each = r->w->x_apart;
    place at = place_of(r->w, tile);

    for (int p = 0; p < POINTS; p++) {
        int64_t y = at.y - c->low[0] + p / SIDE,
                x = at.x - c->low[1] + p % SIDE;
        bool in = y >= 0 && y < c->in[0] && x >= 0 && x < c->in[1];

        from[p] = in ? r->x + at.image * c->in_step[0] + y * c->in_step[2] +
                           x * c->in_step[3]
                     : zeros;
    }
    for (int64_t k = 0; k < c->ci; k += LANES) {
        lanes x[POINTS];

        for (int p = 0; p < POINTS; p++)
            x[p] = get(from[p] + k);
        for (int j = 0; j < SIDE; j++)
            turn_input(x + j, SIDE);
        for (int i = 0; i < SIDE; i++)
            turn_input(x + i * SIDE, 1);
        for (int p = 0; p < POINTS; p++)
            put(to + p * each + k, x[p]);
    }
}

/* sum: of the convolution; what comes after it. */
static inline lanes finish(const run *r, lanes sum, int64_t feature, int64_t at)
{
    lanes none = {0};

    if (r->bias)
        sum += get(r->bias + feature);
    if (r->add)
        sum += get(r->add + at);
    if (r->w->c.activation == LIBCALL_RELU)
        sum = (lanes)((bits)sum & (bits)(sum > none));
    return sum;
}

/* Whether every sum is finite. */
static bool turn_result(const run *r, int64_t tile, const float *from)
{
    const libcall_conv *c = &r->w->c;
    int64_t each = r->w->sums_apart;
    place at = place_of(r->w, tile);
    lanes none = {0}, seen = {0};
    bits odd;

    for (int64_t k = 0; k < c->co; k += LANES) {
        lanes m[POINTS];

        for (int p = 0; p < POINTS; p++)
            m[p] = get(from + p * each + k);
        for (int j = 0; j < SIDE; j++)
            turn_sums(m + j, SIDE);
        for (int i = 0; i < STEP; i++)
            turn_sums(m + i * SIDE, 1);
        for (int i = 0; i < STEP; i++)
            for (int j = 0; j < STEP; j++) {
                int64_t to = at.image * c->out_step[0] +
                             (at.y + i) * c->out_step[2] +
                             (at.x + j) * c->out_step[3] + k;

                seen += m[i * SIDE + j] * none; /* 0, or not a number */
                if (at.y + i < c->out[0] && at.x + j < c->out[1])
                    put(r->y + to, finish(r, m[i * SIDE + j], k, to));
            }
    }
    odd = seen != none;
    for (int i = 1; i < LANES; i++)
        odd[0] |= odd[i];
    return !odd[0];
}

/* ---- products ---- */

/* Writing a turn goes along POINTS matrices at once.  Where they were whole
 * pages apart, all of them would want the same few lines of a cache. */
static int64_t apart(int64_t rows, int64_t columns)
{
    enum { PAGE = 4096 / sizeof(float), LINE = 64 / sizeof(float) };

    return (rows * columns + PAGE - 1) / PAGE * PAGE + LINE;
}

/* The product of a block, made for one thread. */
static sd_status make_product(onednn *l, const onednn_winograd *w,
                              onednn_call *call)
{
    int64_t k = w->c.ci, n = w->c.co;
    int64_t dim[ROLES][3] = {{POINTS, w->block, k},
                             {POINTS, k, n},
                             {1, 1, n},
                             {POINTS, w->block, n}};
    int64_t step[ROLES][3] = {
        {w->x_apart, k, 1},
        {w->kernel_apart, w->turned ? 1 : n, w->turned ? k : 1},
        {n, n, 1},
        {w->sums_apart, n, 1}};
    onednn_recipe r = {.bias = -1, .add = -1, .result = 2, .alpha = 1};
    sd_status st;
    int e = 0;

    for (int i = 0; i < ROLES && !e; i++)
        e = l->way->md_of_strides(l, &r.user[i], 3, dim[i], onednn_type(SD_F32),
                                  step[i]);
    st = e ? onednn_refused(e, "matmul") : onednn_build(l, call, &r, "matmul");
    onednn_recipe_finish(l, &r);
    return st;
}

/* The product of the tiles that strand s has turned into its area. */
static int multiply(const run *r, const strand *s, char *area)
{
    onednn *l = r->l;
    const onednn_call *p = &s->product;
    char *data[] = {area, l->work + r->w->kernel_at, area + r->w->sums_at};
    onednn_arg a[ONEDNN_OPERANDS];
    int e = 0;

    for (int i = 0; i < 3 && !e; i++) {
        a[i] = (onednn_arg){p->op[i].arg, p->op[i].user};
        e = l->memory_set_data_handle(a[i].memory, data[i]);
    }
    if (p->scratch) {
        a[3] = (onednn_arg){DNNL_ARG_SCRATCH, p->scratch};
        if (!e)
            e = l->memory_set_data_handle(p->scratch, area + r->w->scratch_at);
    }
    l->set_threads(1); /* a number of the calling thread's */
    if (!e)
        e = l->primitive_execute(p->prim, s->stream, p->scratch ? 4 : 3, a);
    return e ? e : l->stream_wait(s->stream);
}

static void do_block(void *ctx, int64_t i, int worker)
{
    run *r = ctx;
    const onednn_winograd *w = r->w;
    char *area = r->l->work + w->area_at + (size_t)worker * w->area;
    float *x = (float *)area, *sums = (float *)(area + w->sums_at);
    int64_t first = i * w->block, many = SD_MIN(w->block, w->tiles - first);
    int e;

    if (atomic_load(&r->error) || atomic_load(&r->odd))
        return;
    for (int64_t t = 0; t < many; t++)
        turn_tile(r, first + t, x + t * w->c.ci);
    if ((e = multiply(r, &w->strand[worker], area))) {
        atomic_store(&r->error, e);
        return;
    }
    for (int64_t t = 0; t < many; t++)
        if (!turn_result(r, first + t, sums + t * w->c.co))
            atomic_store(&r->odd, true);
}

/* ---- a call ---- */

/* Where `bytes` begin that are the next of an area; *end moves on. */
static size_t take(size_t *end, int64_t bytes)
{
    size_t at = *end;

    *end += ((size_t)bytes + 63) & ~(size_t)63;
    return at;
}

static int64_t result_of(const onednn_winograd *w)
{
    const libcall_conv *c = &w->c;

    return c->batch * c->out[0] * c->out[1] * c->co;
}

static void lay_out(onednn_winograd *w)
{
    const onednn_call *p = &w->strand[0].product;
    int64_t each = sizeof(float);

    take(&w->area, POINTS * w->x_apart * each);
    w->sums_at = take(&w->area, POINTS * w->sums_apart * each);
    w->scratch_at =
        take(&w->area, p->scratch ? (int64_t)(p->work - p->scratch_at) : 0);
    w->kernel_at = take(&w->work, POINTS * w->kernel_apart * each);
    w->zeros_at = take(&w->work, w->c.ci * each);
    w->kept_at = take(&w->work, w->c.add ? result_of(w) * each : 0);
    w->area_at = take(&w->work, (int64_t)w->area * w->n);
}

/* Blocks of much the same size, as many as there are strands or a multiple. */
static int64_t block_of(int64_t tiles, int strands)
{
    int64_t turns = (tiles + MOST_TILES * strands - 1) / (MOST_TILES * strands);

    return (tiles + turns * strands - 1) / (turns * strands);
}

void onednn_winograd_drop(onednn *l, onednn_winograd *w)
{
    for (int i = 0; w && i < w->n; i++) {
        onednn_drop(l, &w->strand[i].product);
        if (w->strand[i].stream)
            l->stream_destroy(w->strand[i].stream);
    }
    free(w);
}

sd_status onednn_winograd_make(onednn *l, const libcall_conv *c,
                               onednn_winograd **out)
{
    onednn_winograd *w =
        calloc(1, sizeof *w + (size_t)l->nthread * sizeof *w->strand);
    sd_status st = NULL;
    int e = 0;

    if (!w)
        return sd_no_memory(sizeof *w);
    w->c = *c;
    w->turned = c->kernel_step[0] != 1;
    w->high = (c->out[0] + STEP - 1) / STEP;
    w->wide = (c->out[1] + STEP - 1) / STEP;
    w->tiles = c->batch * w->high * w->wide;
    w->block = block_of(w->tiles, l->nthread);
    w->x_apart = apart(w->block, w->c.ci);
    w->kernel_apart = apart(c->ci, c->co);
    w->sums_apart = apart(w->block, w->c.co);
    l->set_threads(1);
    for (; w->n < l->nthread && !st && !e; w->n++) {
        st = make_product(l, w, &w->strand[w->n].product);
        if (!st)
            e = l->stream_create(&w->strand[w->n].stream, l->engine,
                                 DNNL_STREAM_DEFAULT);
    }
    if (e)
        st = onednn_refused(e, "matmul");
    if (st) {
        onednn_winograd_drop(l, w);
        return st;
    }
    lay_out(w);
    *out = w;
    return NULL;
}

sd_status onednn_winograd_run(onednn *l, const onednn_winograd *w,
                              void *const *ptr, bool *done)
{
    const libcall_conv *c = &w->c;
    int bias = c->bias != LIBCALL_BIAS_NONE;
    void *y = ptr[2 + bias + c->add];
    size_t bytes = (size_t)result_of(w) * sizeof(float);
    run r = {.l = l,
             .w = w,
             .x = ptr[0],
             .kernel = ptr[1],
             .y = y,
             .bias = c->bias == LIBCALL_BIAS_VECTOR ? ptr[2] : NULL,
             .add = c->add ? ptr[2 + bias] : NULL};
    sd_status st = onednn_work(l, w->work);
    bool inside = c->add && r.add == y;
    int e;

    if (st)
        return st;
    memset(l->work + w->zeros_at, 0, (size_t)w->c.ci * sizeof(float));
    if (inside) { /* the direct way would need it again */
        memcpy(l->work + w->kept_at, y, bytes);
        r.add = (const float *)(l->work + w->kept_at);
    }
    sd_pool_run(l->pool, w->turned ? c->co : c->ci, turn_kernels, &r);
    sd_pool_run(l->pool, (w->tiles + w->block - 1) / w->block, do_block, &r);
    e = atomic_load(&r.error);
    *done = !atomic_load(&r.odd);
    if (inside && !*done)
        memcpy(y, l->work + w->kept_at, bytes);
    return e ? onednn_refused(e, "execution") : NULL;
}
