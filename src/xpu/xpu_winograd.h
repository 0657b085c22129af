/* Winograd's F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3) for convolutions.  Shared by
 * xpu_onednn_winograd.c, which transforms ("turns") inputs and results, and
 * xpu_winograd_product.c, which multiplies between the two.  Both are compiled
 * for AVX2 and FMA, which every processor has that `host` accepts. */
#ifndef XPU_WINOGRAD_H
#define XPU_WINOGRAD_H

#include "base.h"

#ifndef __clang__ /* which the build tells */
#pragma GCC target("avx2,fma")
#endif
#include <immintrin.h>

enum {
    KERNEL = 3,         /* positions of the kernel, of one dimension */
    SMALL = 2,          /* results of a tile, its step: of one dimension */
    LARGE = 4,
    MOST_SIDE = LARGE + KERNEL - 1,
    MOST_POINTS = MOST_SIDE * MOST_SIDE,
    LANES = 8,          /* channels at a time */
    PANEL = 16,         /* features of a product's inner loop */
    MOST_CHANNELS = 64, /* of a piece; elements of a row of turned tiles */
    LINE = 64 / sizeof(float)
};

typedef float lanes __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint16_t halves __attribute__((vector_size(16), aligned(2), may_alias));

static inline lanes get(const float *p)
{
    return *(const lanes *)p;
}

static inline void put(float *p, lanes v)
{
    *(lanes *)p = v;
}

/* Eight elements from number i on; narrow: of bf16. */
static inline lanes get_of(const void *p, int64_t i, bool narrow)
{
    if (!narrow)
        return get((const float *)p + i);
    return (lanes)(__builtin_convertvector(
                       *(const halves *)((const uint16_t *)p + i), bits)
                   << 16);
}

/* Inputs of a tile of that step, of one dimension. */
static inline int winograd_side(int step)
{
    return step + KERNEL - 1;
}

/* Products. */
static inline int winograd_points(int step)
{
    return winograd_side(step) * winograd_side(step);
}

/* One thread's piece of the work: some tiles by some features, over some
 * channels. */
typedef struct {
    int step; /* SMALL or LARGE */
    const void *kernel;
    bool narrow; /* it is of bf16 */
    bool turned; /* its channels lie side by side, not its features */
    int64_t row, y, x; /* elements from one row (a channel, or a feature where it
                          is turned) to the next, and between positions */
    int64_t channel, channels, feature, features; /* first and how many */
    int64_t tiles;
    const float *from; /* a matrix of tiles x MOST_CHANNELS for each point */
    int64_t from_apart;
    float *panels; /* of winograd_panels floats */
    float *sums;   /* for each point one of tiles x whole panels of features */
    int64_t sums_apart;
    int64_t chain; /* channels that are summed in registers before the sum is
                      added to `sums` */
    bool first; /* `sums` is not initialized: counts as zero */
} winograd_piece;

int64_t winograd_panels(int step, int64_t channels, int64_t features);
void winograd_turn(const winograd_piece *p); /* the kernel, into the panels */
/* By the panels of one of the points, into its sums. */
void winograd_multiply(const winograd_piece *p, int point);

#endif
