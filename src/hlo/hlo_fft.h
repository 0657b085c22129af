/* What the custom-call "sundog.fft" computes, and the plan by which its device
 * function computes it.  Read by the pass that makes the function's table of
 * roots, and by the evaluator. */
#ifndef HLO_FFT_H
#define HLO_FFT_H

#include "hlo.h"

enum {
    HLO_FFT_MOST = 1 << 15,   /* numbers of a line at most, */
    HLO_FFT_SMOOTH = 1 << 16, /* or of one whose length is smooth: without
                                 prime factors that want a chirp */
    HLO_FFT_DIRECT = 1 << 14 /* a few lines longer than this had better be
                                done as columns of a matrix */
};

typedef struct { /* see hlo_fft.c */
    hlo_fft_type type;
    sd_dtype part; /* F32 or F64 */
    int64_t n, outer, moved, inner, turn, each, count, whole;
} hlo_fft_lines;

typedef struct {
    int64_t length; /* numbers of a transform, half of an even real line's */
    int64_t n;      /* numbers of the transform that is computed for it */
    int64_t width;  /* lines in a block */
    int64_t across; /* columns of a long line; 0: none */
    int real;       /* radix of a real line's stage on reals; 0: none */
    int radix[64], nradix; /* of n, n / across or n / real */
    bool chirp;     /* n is the length of a convolution with one */
    bool halves;    /* length is half of a real line's */
    int64_t extra;  /* where the table of chirp, halves or turn begins */
    int64_t table;  /* parts in all */
} hlo_fft_plan;

bool hlo_fft_is_smooth(int64_t n); /* is done without a chirp */
/* Is a line of n short enough for a call?  An even real one is half as many
 * pairs. */
bool hlo_fft_is_short(hlo_fft_type type, int64_t n);
bool hlo_fft_has_roots(int64_t r); /* its stage reads them */
int hlo_fft_shift(int64_t turn);   /* how its roots are two tables */
void hlo_fft_plan_of(const hlo_fft_lines *f, hlo_fft_plan *p);
/* False: not such a call, or a wrong one. */
bool hlo_fft_read(const hlo_inst *in, hlo_fft_lines *f, hlo_fft_plan *p);

#endif
