/* Operations across dimensions that are cut; see spmd_halo.c. */
#ifndef SPMD_HALO_H
#define SPMD_HALO_H

#include "spmd.h"

/* May in read across parts of operand 0 in dimension d at all?  Across n parts,
 * of a few of them? */
bool spmd_goes_across(const hlo_inst *in, int d);
bool spmd_reaches(const hlo_inst *in, int d, int64_t n);
/* Where an update's first element goes; false: that is not known. */
bool spmd_update_places(const hlo_inst *in, int64_t *start);
/* What x is, along d, the elements of from `from` on: x itself, if no slice. */
const hlo_inst *spmd_piece(const hlo_inst *x, int d, int64_t *from);
/* Operand 0, whose part by s is arg[0], as what this participant reads of the whole in
 * the dimensions of `across`. */
hlo_inst *spmd_intervals(const hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                         const hlo_sharding *s, uint32_t across);
/* x, of attributes of the whole, is done on these. */
void spmd_on_intervals(hlo_inst *x, uint32_t across);

#endif
