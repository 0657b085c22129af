/* spmd_lines: running reductions, argmax and the like, and Fourier transforms
 * along a dimension that is cut; see spmd_lines.c. */
#ifndef SPMD_LINES_H
#define SPMD_LINES_H

#include "spmd.h"

/* in, a running reduction along dimension d, of the part arg[0] by s. */
hlo_inst *spmd_run(hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                   const hlo_sharding *s, int d);
/* Does c keep one of its two n-tuples of operands, as argmax does? */
bool spmd_is_pick(const hlo_comp *c, int n);
/* Such a reduction done again on x, the tuple of what each participant along
 * these atoms has kept. */
hlo_inst *spmd_pick_again(const hlo_inst *in, hlo_at p, hlo_inst *x,
                          const hlo_grid *g, const hlo_atoms *along);
/* A Fourier transform of several dimensions as transforms of one each, in
 * front of in. */
hlo_inst *spmd_by_lines(hlo_inst *in);

#endif
