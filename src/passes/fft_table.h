/* Tables for "sundog.fft": see hlo_fft.h. */
#ifndef FFT_TABLE_H
#define FFT_TABLE_H

#include "hlo_fft.h"
#include "passes_priv.h"

/* The table of roots that a call "sundog.fft" on such lines has as operand
 * 1. */
hlo_inst *fft_table(hlo_at p, const hlo_fft_lines *f);
/* exp(pi i e / n), 0 <= e < 2 n, as real and imaginary part.  The angle is
 * first reduced by whole eighths of a turn, which is exact. */
void fft_half_root(int64_t e, int64_t n, long double v[2]);

#endif
