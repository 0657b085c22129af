/* Winograd's F(2 x 2, 3 x 3): what the turns of the input and the results
 * (xpu_onednn_winograd.c) and the products between them (xpu_winograd_product.c)
 * share.  Both are compiled for AVX2 and FMA, which every processor has that is
 * taken as `host`. */
#ifndef XPU_WINOGRAD_H
#define XPU_WINOGRAD_H

#include "base.h"

#pragma GCC target("avx2,fma")

enum {
    KERNEL = 3,            /* positions of the kernel, of one dimension */
    STEP = 2,              /* results of a tile */
    SIDE = 4,              /* inputs of a tile */
    POINTS = SIDE * SIDE,  /* products */
    LANES = 8,             /* channels at a time */
    PANEL = 16,            /* features of a product's inner loop */
    MOST_CHANNELS = 64,    /* of a piece; elements of a row of turned tiles */
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

/* The kernel's turn and the products of some tiles by some features, over some
 * channels: one thread's. */
typedef struct {
    const void *kernel;
    bool narrow; /* it is of bf16 */
    bool turned; /* its channels lie side by side, not its features */
    int64_t row, y, x; /* elements from one row (a channel, or a feature where it
                          is turned) to the next, and between positions */
    int64_t channel, channels, feature, features; /* first and how many */
    int64_t tiles;
    const float *from; /* POINTS matrices of tiles x MOST_CHANNELS */
    int64_t from_apart;
    float *panels; /* of winograd_panels floats */
    float *sums;   /* POINTS matrices of tiles x whole panels of features */
    int64_t sums_apart;
    bool first; /* the sums so far are nothing, whatever is there */
} winograd_piece;

int64_t winograd_panels(int64_t channels, int64_t features);
void winograd_turn(const winograd_piece *p); /* the kernel, into the panels */
void winograd_multiply(const winograd_piece *p); /* by them, into the sums */

#endif
