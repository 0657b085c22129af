/* spmd_pick: gathers, scatters, dynamic slices and updates, whose places are
 * known only when the program runs; see spmd_pick.c. */
#ifndef SPMD_PICK_H
#define SPMD_PICK_H

#include "spmd_halo.h"
#include "spmd_rule.h"

/* Is dimension d of operand 0 read or written at such places?  Can it be done
 * with n parts of it? */
bool spmd_picks(const hlo_inst *in, int d);
bool spmd_can_pick(const hlo_inst *in, int d, int64_t n);
/* The operation on arg[], where arg[0] is the part by s, also in the
 * dimensions of `dims`.  Gives a part of shape `local`, which is still to be
 * summed if in reads; NULL: it cannot. */
hlo_inst *spmd_pick(hlo_inst *in, hlo_at p, const sd_shape *local,
                    hlo_inst *const *arg, const hlo_sharding *s, uint32_t dims);

#endif
