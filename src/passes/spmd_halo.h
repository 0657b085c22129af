/* spmd_halo: operations that read elements of neighbours' parts, as slices,
 * pads and windows do; see spmd_halo.c. */
#ifndef SPMD_HALO_H
#define SPMD_HALO_H

#include "spmd.h"

/* May in read other parts of operand 0 in dimension d at all?  And when that
 * is in n parts: does it then read few of them? */
bool spmd_goes_across(const hlo_inst *in, int d);
bool spmd_reaches(const hlo_inst *in, int d, int64_t n);
/* Where an update's first element goes; false: that is not known. */
bool spmd_update_places(const hlo_inst *in, int64_t *start);
/* The array that x is a slice of along d, from *from on; x itself, if it is no
 * such slice. */
const hlo_inst *spmd_piece(const hlo_inst *x, int d, int64_t *from);
/* The interval of operand 0 that this participant reads in the dimensions of
 * `across`, made of arg[0], which is its part by s, and of others' parts. */
hlo_inst *spmd_intervals(const hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                         const hlo_sharding *s, uint32_t across);
/* Changes the attributes of x, which are the whole operation's, to those of
 * one on intervals. */
void spmd_on_intervals(hlo_inst *x, uint32_t across);

#endif
