/* Places that are known only when the program runs; see spmd_pick.c. */
#ifndef SPMD_PICK_H
#define SPMD_PICK_H

#include "spmd_halo.h"
#include "spmd_rule.h"

/* Is dimension d of operand 0 read or written at such places, a slice or row at a
 * time?  Can that be in n parts? */
bool spmd_picks(const hlo_inst *in, int d);
bool spmd_can_pick(const hlo_inst *in, int d, int64_t n);
/* in of operands of which operand 0 is the part by s, in the dimensions of `dims`,
 * too; a part of shape local, to be summed if it is read.  NULL: it cannot. */
hlo_inst *spmd_pick(hlo_inst *in, hlo_at p, const sd_shape *local,
                    hlo_inst *const *arg, const hlo_sharding *s, uint32_t dims);

#endif
