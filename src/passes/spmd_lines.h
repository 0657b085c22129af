/* Reductions and transforms along lines of a dimension that is cut; see
 * spmd_lines.c. */
#ifndef SPMD_LINES_H
#define SPMD_LINES_H

#include "spmd.h"

/* in, a running reduction along dimension d, of the part arg[0] by s. */
hlo_inst *spmd_run(hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                   const hlo_sharding *s, int d);
/* Is that a body of reductions of n arrays which are picked from? */
bool spmd_is_pick(const hlo_comp *c, int n);
/* in, such a reduction, of the tuple x of what each participant along these
 * atoms has picked. */
hlo_inst *spmd_pick_again(const hlo_inst *in, hlo_at p, hlo_inst *x,
                          const hlo_grid *g, const hlo_atoms *along);
/* A Fourier transform of several dimensions as one of each, in front of it. */
hlo_inst *spmd_by_lines(hlo_inst *in);

#endif
