/* Tables for "sundog.fft": see hlo_fft.h. */
#ifndef FFT_TABLE_H
#define FFT_TABLE_H

#include "hlo_fft.h"
#include "passes_priv.h"

/* Operand 1 of a call with f. */
hlo_inst *fft_table(hlo_at p, const hlo_fft_lines *f);
/* exp(pi i e / n), 0 <= e < 2 n, by what is exact of it: halves, quarters and
 * eighths of a turn. */
void fft_half_root(int64_t e, int64_t n, long double v[2]);

#endif
