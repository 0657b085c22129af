/* 3 x 3 convolutions by Winograd's F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3).
 *
 * A tile of 2 x 2 results needs 4 x 4 inputs.  With three constant matrices it
 * is  A' (sum over channels of (G w G') * (B' x B)) A,  where * is element by
 * element: 16 multiplications a channel instead of 36.  So there are 16
 * products of matrices, tiles x channels by channels x features, and turns
 * before and after them.  A tile of 4 x 4 results takes 36 multiplications
 * instead of 144, and its turns (xpu_winograd_turns.h) make errors larger, so
 * it serves where a direct sum would have as large ones (step_of).
 *
 * Where an input is infinite or not a number, or a turn overflows, a whole tile
 * would be not a number, of which the direct convolution gives parts.  Each
 * result is looked at, and such a convolution is done directly: by the library,
 * or here where it has none of bf16.
 *
 * The tiles of a block are turned by all threads.  Then each takes a piece of
 * them and a group of features, turns that part of the kernel a few channels at
 * a time, multiplies, and turns the sums back, in an area that stays in the
 * caches of its core.  So the turned kernel, 16 / 9 of it, is whole only where
 * there are many tiles, which take less time to read it than to turn it anew.
 */
#include "xpu_onednn.h"
#include "xpu_subnormal.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "xpu_winograd_turns.h"

enum {
    MOST_TILES = 128, /* of a piece */
    MOST_FEATURES = 64, /* of a group; of large tiles half, which have twice as
                           many points */
    TURNED_BYTES = 4 << 20, /* of a block's turned tiles, a thread */
    EACH_TURN = 4, /* tiles that a thread turns at a time */
    SHORT_CHAIN = 16, /* channels, where errors count */
    MANY_PIECES = 3, /* from here on the kernel is turned once */
    WHOLE_BYTES = 32 << 20 /* if it is no larger */
};

struct onednn_winograd {
    libcall_conv c;
    bool narrow; /* bf16 */
    int step; /* results of a tile, of one dimension */
    int64_t high, wide; /* tiles of an image */
    int64_t tiles, block, piece; /* of all images; of a block; of a piece */
    int64_t group; /* features */
    int64_t chain; /* channels that are added up at a time */
    int64_t deep, chunks; /* channels at a time, and how often */
    bool whole; /* the kernel is turned before, for all */
    int64_t panels; /* bytes of a turned piece of it */
    /* floats from one point's matrix to the next */
    int64_t x_apart, sums_apart;
    /* places in the workspace: the turned tiles, `ci` zeros, a copy of what is
     * added, and an area a thread */
    size_t x_at, kernel_at, zeros_at, kept_at, area_at, work;
    size_t area, sums_at; /* its bytes; where in it the sums are */
};

bool onednn_winograd_fits(const libcall_conv *c)
{
    if (c->in_type == SD_BF16 && __builtin_cpu_supports("avx512bw"))
        return false; /* the library has instructions for it */
    return libcall_conv_is_winograd(c);
}

/* ---- turns ---- */

typedef struct {
    onednn *l;
    const onednn_winograd *w;
    const char *x;
    const void *kernel, *bias, *add;
    char *y;
    int64_t first, many; /* the block's tiles */
    int64_t parts; /* of the kernel that are turned with them */
    atomic_bool odd; /* a sum is infinite or not a number */
} run;

/* Of a tile's first result. */
typedef struct {
    int64_t image, y, x;
} place;

static place place_of(const onednn_winograd *w, int64_t tile)
{
    return (place){tile / w->wide / w->high, tile / w->wide % w->high * w->step,
                   tile % w->wide * w->step};
}

static int64_t bytes_of(const onednn_winograd *w)
{
    return w->narrow ? 2 : 4;
}

/* Where channels of tiles lie that have been turned: matrices of some channels
 * each, one a point for the first of them, then for the next. */
static float *turned_at(const run *r, int64_t channel, int64_t t)
{
    const onednn_winograd *w = r->w;
    float *x = (float *)(r->l->work + w->x_at);

    return x + channel / w->deep * winograd_points(w->step) * w->x_apart +
           t * MOST_CHANNELS + channel % w->deep;
}

static inline __attribute__((always_inline)) void
turn_channels(const run *r, const char *const *from, int64_t t, bool narrow,
              int step)
{
    int64_t each = r->w->x_apart;
    int side = winograd_side(step);

    for (int64_t k = 0; k < r->w->c.ci; k += LANES) {
        float *to = turned_at(r, k, t);
        lanes x[MOST_POINTS];

        for (int p = 0; p < side * side; p++)
            x[p] = get_of(from[p], k, narrow);
        for (int j = 0; j < side; j++)
            turn_input(x + j, side, step);
        for (int i = 0; i < side; i++)
            turn_input(x + i * side, 1, step);
        for (int p = 0; p < side * side; p++)
            put(to + p * each, x[p]);
    }
}

static void turn_tile(const run *r, int64_t t)
{
    const libcall_conv *c = &r->w->c;
    const char *from[MOST_POINTS];
    int step = r->w->step, side = winograd_side(step);
    place at = place_of(r->w, r->first + t);

    for (int p = 0; p < side * side; p++) {
        int64_t y = at.y - c->low[0] + p / side,
                x = at.x - c->low[1] + p % side;
        bool in = y >= 0 && y < c->in[0] && x >= 0 && x < c->in[1];

        from[p] = in ? r->x + (at.image * c->in_step[0] + y * c->in_step[2] +
                               x * c->in_step[3]) *
                                  bytes_of(r->w)
                     : r->l->work + r->w->zeros_at;
    }
    if (step == SMALL && r->w->narrow)
        turn_channels(r, from, t, true, SMALL);
    else if (step == SMALL)
        turn_channels(r, from, t, false, SMALL);
    else if (r->w->narrow)
        turn_channels(r, from, t, true, LARGE);
    else
        turn_channels(r, from, t, false, LARGE);
}

static void turn_tiles(const run *r, int64_t i)
{
    for (int64_t t = i * EACH_TURN; t < SD_MIN((i + 1) * EACH_TURN, r->many);
         t++)
        turn_tile(r, t);
}

/* To nearest even by adding just under half; what is not a number stays so. */
static inline void put_narrow(char *to, lanes v)
{
    bits u = (bits)v, odd = (bits)(v != v);
    bits even = u + 0x7fff + ((u >> 16) & 1);

    u = (odd & (u | 0x400000)) | (~odd & even);
    *(halves *)to = __builtin_convertvector((u >> 16) & 0xffff, halves);
}

/* sum: of the convolution; what comes after it, stored. */
static inline void finish(const run *r, lanes sum, int64_t feature, int64_t at)
{
    bool narrow = r->w->narrow;
    lanes none = {0};

    if (r->bias)
        sum += get_of(r->bias, feature, narrow);
    if (r->add)
        sum += get_of(r->add, at, narrow);
    if (r->w->c.activation == LIBCALL_RELU)
        sum = (lanes)((bits)sum & ~(bits)(sum <= none));
    if (narrow)
        put_narrow(r->y + at * 2, sum);
    else
        put((float *)r->y + at, sum);
}

static bool is_zero(lanes seen)
{
    bits odd = (bits)(seen != (lanes){0});

    for (int i = 1; i < LANES; i++)
        odd[0] |= odd[i];
    return !odd[0];
}

/* Whether every sum is finite.  from: of the tile's features from one on. */
static inline __attribute__((always_inline)) bool
turn_result(const run *r, int64_t tile, const float *from, int64_t feature,
            int64_t features, int step)
{
    const libcall_conv *c = &r->w->c;
    place at = place_of(r->w, tile);
    lanes none = {0}, seen = {0};
    int side = winograd_side(step);

    for (int64_t k = 0; k < features; k += LANES) {
        lanes m[MOST_POINTS];

        for (int p = 0; p < side * side; p++)
            m[p] = get(from + p * r->w->sums_apart + k);
        for (int j = 0; j < side; j++)
            turn_sums(m + j, side, step);
        for (int i = 0; i < step; i++)
            turn_sums(m + i * side, 1, step);
        for (int i = 0; i < step; i++)
            for (int j = 0; j < step; j++) {
                int64_t to = at.image * c->out_step[0] +
                             (at.y + i) * c->out_step[2] +
                             (at.x + j) * c->out_step[3] + feature + k;

                seen += m[i * side + j] * none; /* 0, or not a number */
                if (at.y + i < c->out[0] && at.x + j < c->out[1])
                    finish(r, m[i * side + j], feature + k, to);
            }
    }
    return is_zero(seen);
}

static bool turn_results(const run *r, const winograd_piece *p, int64_t first)
{
    int64_t row = (p->features + PANEL - 1) / PANEL * PANEL;
    bool fine = true;

    for (int64_t t = 0; t < p->tiles && fine; t++) {
        const float *from = p->sums + t * row;

        if (p->step == SMALL)
            fine =
                turn_result(r, first + t, from, p->feature, p->features, SMALL);
        else
            fine =
                turn_result(r, first + t, from, p->feature, p->features, LARGE);
    }
    return fine;
}

/* A group of features, of all or some tiles; own: a thread's room for the
 * turned kernel, where that is not whole. */
static winograd_piece piece_of(const run *r, int64_t group, char *own)
{
    const onednn_winograd *w = r->w;
    const libcall_conv *c = &w->c;
    bool turned = c->kernel_step[0] != 1;

    return (winograd_piece){.step = w->step,
                            .kernel = r->kernel,
                            .narrow = w->narrow,
                            .turned = turned,
                            .row = c->kernel_step[!turned],
                            .y = c->kernel_step[2],
                            .x = c->kernel_step[3],
                            .feature = group * w->group,
                            .features =
                                SD_MIN(w->group, c->co - group * w->group),
                            .from_apart = w->x_apart,
                            .panels = (float *)own,
                            .sums_apart = w->sums_apart,
                            .chain = w->chain};
}

/* The piece goes to chunk i of the channels. */
static void go_to(const run *r, winograd_piece *p, int64_t i)
{
    const onednn_winograd *w = r->w;
    int64_t group = p->feature / w->group;

    p->channel = i * w->deep;
    p->channels = SD_MIN(w->deep, w->c.ci - p->channel);
    p->first = i == 0;
    if (w->whole)
        p->panels = (float *)(r->l->work + w->kernel_at +
                              (group * w->chunks + i) * w->panels);
}

static void turn_part(const run *r, int64_t i)
{
    winograd_piece p = piece_of(r, i / r->w->chunks, NULL);

    go_to(r, &p, i % r->w->chunks);
    winograd_turn(&p);
}

/* What products need, in one run: parts of the kernel, which take longer and so
 * come first, and a few tiles at a time. */
static void turn(void *ctx, int64_t i, int worker)
{
    const run *r = ctx;

    (void)worker;
    if (i < r->parts)
        turn_part(r, i);
    else
        turn_tiles(r, i - r->parts);
}

/* A piece of the block's tiles, a group of features. */
static void do_piece(void *ctx, int64_t i, int worker)
{
    run *r = ctx;
    const onednn_winograd *w = r->w;
    char *area = r->l->work + w->area_at + (size_t)worker * w->area;
    int64_t pieces = (r->many + w->piece - 1) / w->piece;
    int64_t first = i % pieces * w->piece;
    winograd_piece p = piece_of(r, i / pieces, area);
    uint32_t mode;

    p.tiles = SD_MIN(w->piece, r->many - first);
    p.sums = (float *)(area + w->sums_at);
    if (atomic_load(&r->odd))
        return;
    mode = xpu_enter_mode(SD_SUBNORMALS_ARE_0);
    for (int64_t k = 0; k < w->chunks; k++) {
        go_to(r, &p, k);
        p.from = turned_at(r, p.channel, first);
        if (!w->whole)
            winograd_turn(&p);
        for (int n = 0; n < winograd_points(w->step); n++)
            winograd_multiply(&p, n);
    }
    xpu_leave_mode(mode);
    if (!turn_results(r, &p, r->first + first))
        atomic_store(&r->odd, true);
}

/* ---- directly ---- */

/* The kernel's element at a position (its number), of a channel and eight
 * features from one on. */
static lanes kernel_of(const run *r, int64_t position, int64_t k, int64_t f)
{
    const libcall_conv *c = &r->w->c;
    int64_t at = position / KERNEL * c->kernel_step[2] +
                 position % KERNEL * c->kernel_step[3] + k * c->kernel_step[1] +
                 f * c->kernel_step[0];
    const uint16_t *kernel = r->kernel;
    bits u;

    if (c->kernel_step[0] == 1)
        return get_of(kernel, at, true);
    for (int i = 0; i < LANES; i++)
        u[i] = kernel[at + i * c->kernel_step[0]] << 16;
    return (lanes)u;
}

/* Eight features of a result. */
static lanes direct_sum(const run *r, place at, int64_t f)
{
    const libcall_conv *c = &r->w->c;
    lanes sum = {0};

    for (int64_t i = 0; i < KERNEL * KERNEL; i++) {
        int64_t y = at.y - c->low[0] + i / KERNEL,
                x = at.x - c->low[1] + i % KERNEL;
        int64_t from =
            at.image * c->in_step[0] + y * c->in_step[2] + x * c->in_step[3];

        if (y < 0 || y >= c->in[0] || x < 0 || x >= c->in[1])
            continue;
        for (int64_t k = 0; k < c->ci; k++) {
            uint32_t u = (uint32_t)((const uint16_t *)r->x)[from + k] << 16;
            float one;

            memcpy(&one, &u, sizeof one);
            sum += one * kernel_of(r, i, k, f);
        }
    }
    return sum;
}

/* A row of results in bf16, where the library would have no way. */
static void direct_row(void *ctx, int64_t i, int worker)
{
    run *r = ctx;
    const libcall_conv *c = &r->w->c;
    place at = {i / c->out[0], i % c->out[0], 0};
    uint32_t mode = xpu_enter_mode(SD_SUBNORMALS_ARE_0);

    (void)worker;
    for (; at.x < c->out[1]; at.x++)
        for (int64_t f = 0; f < c->co; f += LANES)
            finish(r, direct_sum(r, at, f), f,
                   at.image * c->out_step[0] + at.y * c->out_step[2] +
                       at.x * c->out_step[3] + f);
    xpu_leave_mode(mode);
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

    return c->batch * c->out[0] * c->out[1] * c->co * bytes_of(w);
}

static int64_t pieces_of(int64_t n, int64_t most)
{
    return (n + most - 1) / most;
}

/* n in as many even pieces as have `most` at most. */
static int64_t even(int64_t n, int64_t most)
{
    int64_t pieces = pieces_of(n, most);

    return (n + pieces - 1) / pieces;
}

static int64_t groups_of(const onednn_winograd *w)
{
    return pieces_of(w->c.co, w->group);
}

/* Bytes of all of the turned kernel. */
static int64_t whole_of(const onednn_winograd *w)
{
    return groups_of(w) * w->chunks * w->panels;
}

/* Cycles that a call takes about on a core of Zen 3: products, 16 a cycle, and
 * turns of all points of 8 elements. */
static int64_t cycles_of(const libcall_conv *c, int step)
{
    bool small = step == SMALL;
    int64_t tiles =
        c->batch * pieces_of(c->out[0], step) * pieces_of(c->out[1], step);
    int64_t turn = small ? 24 : 100, kernel = small ? 300 : 450;

    return tiles * winograd_points(step) * c->ci * c->co / 16 +
           tiles * (c->ci + c->co) / LANES * turn +
           c->ci * c->co / LANES * kernel;
}

/* With fewer channels errors of large tiles would be larger than a direct sum's
 * in f32 (ADR 30); bf16 is rounded much more than that. */
static int step_of(const libcall_conv *c)
{
    enum { LEAST_OF_LARGE = 128 };

    if (c->in_type == SD_F32 && c->ci < LEAST_OF_LARGE)
        return SMALL;
    return cycles_of(c, LARGE) < cycles_of(c, SMALL) ? LARGE : SMALL;
}

/* Whether all threads have work nearly to the end of a block. */
static bool is_shared(const onednn_winograd *w, int threads)
{
    int64_t parts = pieces_of(w->block, w->piece) * groups_of(w);

    return parts * 10 >= pieces_of(parts, threads) * threads * 9;
}

/* What threads share out does not change a bit of a result; how the channels
 * are cut does, and follows from their number alone. */
static void cut(onednn_winograd *w, int threads)
{
    int64_t most = (int64_t)TURNED_BYTES * threads / (int64_t)sizeof(float) /
                   winograd_points(w->step) / w->c.ci;

    w->high = pieces_of(w->c.out[0], w->step);
    w->wide = pieces_of(w->c.out[1], w->step);
    w->tiles = w->c.batch * w->high * w->wide;
    w->block = even(w->tiles, SD_MAX(most, MOST_TILES));
    w->piece = even(w->block, MOST_TILES);
    w->group = w->step == SMALL ? MOST_FEATURES : MOST_FEATURES / 2;
    while (w->group > PANEL && !is_shared(w, threads))
        w->group /= 2;
    w->deep = (even(w->c.ci, MOST_CHANNELS) + LANES - 1) / LANES * LANES;
    w->chunks = pieces_of(w->c.ci, w->deep);
    w->panels =
        (winograd_panels(w->step, w->deep, w->group) * (int64_t)sizeof(float) +
         63) /
        64 * 64;
    w->whole = pieces_of(w->tiles, w->piece) >= MANY_PIECES &&
               whole_of(w) <= WHOLE_BYTES;
    w->x_apart = w->block * MOST_CHANNELS + LINE;
    w->sums_apart = w->piece * w->group + LINE;
}

static void lay_out(onednn_winograd *w, int threads)
{
    int64_t each = sizeof(float), points = winograd_points(w->step);

    take(&w->area, w->panels);
    w->sums_at = take(&w->area, points * w->sums_apart * each);
    w->x_at = take(&w->work, w->chunks * points * w->x_apart * each);
    w->kernel_at = take(&w->work, w->whole ? whole_of(w) : 0);
    w->zeros_at = take(&w->work, w->c.ci * each);
    w->kept_at = take(&w->work, w->c.add ? result_of(w) : 0);
    w->area_at = take(&w->work, (int64_t)w->area * threads);
}

void onednn_winograd_drop(onednn_winograd *w)
{
    free(w);
}

sd_status onednn_winograd_make(const onednn *l, const libcall_conv *c,
                               onednn_winograd **out)
{
    onednn_winograd *w = calloc(1, sizeof *w);

    if (!w)
        return sd_no_memory(sizeof *w);
    w->c = *c;
    w->narrow = c->in_type == SD_BF16;
    w->step = step_of(c);
    w->chain = w->step == LARGE && !w->narrow ? SHORT_CHAIN : MOST_CHANNELS;
    cut(w, l->nthread);
    lay_out(w, l->nthread);
    *out = w;
    return NULL;
}

static void do_blocks(run *r)
{
    const onednn_winograd *w = r->w;
    int64_t groups = groups_of(w);

    for (r->first = 0; r->first < w->tiles; r->first += w->block) {
        r->many = SD_MIN(w->block, w->tiles - r->first);
        r->parts = w->whole && r->first == 0 ? groups * w->chunks : 0;
        sd_pool_run(r->l->pool, r->parts + pieces_of(r->many, EACH_TURN), turn,
                    r);
        sd_pool_run(r->l->pool, pieces_of(r->many, w->piece) * groups, do_piece,
                    r);
    }
}

sd_status onednn_winograd_run(onednn *l, const onednn_winograd *w,
                              void *const *ptr, bool *done)
{
    const libcall_conv *c = &w->c;
    int bias = c->bias != LIBCALL_BIAS_NONE;
    void *y = ptr[2 + bias + c->add];
    run r = {.l = l,
             .w = w,
             .x = ptr[0],
             .kernel = ptr[1],
             .y = y,
             .bias = c->bias == LIBCALL_BIAS_VECTOR ? ptr[2] : NULL,
             .add = c->add ? ptr[2 + bias] : NULL};
    sd_status st = onednn_work(l, w->work);
    bool inside = c->add && r.add == y;

    if (st)
        return st;
    memset(l->work + w->zeros_at, 0, (size_t)w->c.ci * sizeof(float));
    if (inside) { /* the direct way would need it again */
        memcpy(l->work + w->kept_at, y, (size_t)result_of(w));
        r.add = l->work + w->kept_at;
    }
    do_blocks(&r);
    *done = !atomic_load(&r.odd);
    if (!*done && w->narrow) {
        sd_pool_run(l->pool, c->batch * c->out[0], direct_row, &r);
        *done = true;
    } else if (!*done && inside) {
        memcpy(y, l->work + w->kept_at, (size_t)result_of(w));
    }
    return NULL;
}
