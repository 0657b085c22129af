/* The op table's functions of one element by MPFR, and how far a stored
 * element is from them, in units of its type's last place. */
#ifndef EXACT_H
#define EXACT_H

#include <mpfr.h>

#include "hlo.h"

typedef struct { mpfr_t re, im; } exact;

void exact_init(exact *v, int bits);
void exact_finish(exact *v);
void exact_load(sd_dtype t, const void *p, exact *v);

/* false: not stated here for this kind of element */
bool exact_has(hlo_op op, bool cplx);
/* Of real parts alone, or of complex numbers. */
void exact_apply(hlo_op op, bool cplx, exact *out, const exact *a,
                 const exact *b);

typedef void (*exact_fn)(exact *r, const exact *a, const exact *b);
extern const exact_fn exact_complex[HLO_OP_COUNT]; /* exact_complex.c */

/* Distance of the float at got from want in last places of scale (want
 * itself, or more): 0.5 at most when rounded to nearest; infinity where want
 * is a NaN, a signed zero or past the largest number and got is not what the
 * type has for that. */
double exact_ulps(sd_dtype t, const mpfr_t want, const mpfr_t scale,
                  const void *got);

#endif
