/* Operations across dimensions that are cut; see spmd_halo.c. */
#ifndef SPMD_HALO_H
#define SPMD_HALO_H

#include "spmd.h"

/* May in read across parts of operand 0 in dimension d at all?  Across n parts,
 * of a few of them? */
bool spmd_goes_across(const hlo_inst *in, int d);
bool spmd_reaches(const hlo_inst *in, int d, int64_t n);
/* Operand 0, whose part by s is arg[0], as what this participant reads of the whole in
 * the dimensions of `across`. */
hlo_inst *spmd_intervals(const hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                         const hlo_sharding *s, uint32_t across);
/* x, of attributes of the whole, is done on these. */
void spmd_on_intervals(hlo_inst *x, uint32_t across);

#endif
