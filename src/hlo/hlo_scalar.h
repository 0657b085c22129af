/* Arithmetic on one element, as the evaluator does it: written apart from the
 * device library's, so that one can judge the other.  Operands and results are
 * stored elements; in between a value is wide, and is rounded once. */
#ifndef HLO_SCALAR_H
#define HLO_SCALAR_H

#include <complex.h>

#include "hlo.h"

typedef long double complex hlo_wide;

#ifndef CMPLXL /* glibc defines it for gcc alone */
#define CMPLXL(re, im) \
    __builtin_complex((long double)(re), (long double)(im))
#endif

/* out is of the op's result type for operands of type t; b as op needs. */
void hlo_scalar_op(hlo_op op, sd_dtype t, const void *a, const void *b,
                   void *out);
bool hlo_scalar_compare(hlo_cmp_dir dir, hlo_cmp_type type, sd_dtype t,
                        const void *a, const void *b);
void hlo_scalar_convert(sd_dtype from, const void *a, sd_dtype to, void *out);
/* false: this type's bits are not described here */
bool hlo_scalar_precision(sd_dtype t, int exponent, int mantissa, const void *a,
                          void *out);

/* Any number but an integer of 64 bits and a pred. */
hlo_wide hlo_wide_load(sd_dtype t, const void *p);
void hlo_wide_store(sd_dtype t, hlo_wide v, void *p);
/* An index: saturated when unsigned and beyond int64. */
int64_t hlo_index_load(sd_dtype t, const void *p);

#endif
