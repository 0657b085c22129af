/* Values in parts; see spmd_flow.c. */
#ifndef SPMD_FLOW_H
#define SPMD_FLOW_H

#include "spmd.h"

typedef struct spmd_flow spmd_flow;
spmd_flow *spmd_flow_create(sd_arena *a, hlo_module *m);
/* in, which stays until spmd_settle, can be had as the part local. */
void spmd_set_part(spmd_flow *f, const hlo_inst *in, hlo_inst *local,
                   const hlo_sharding *s);
/* NULL: it is whole. */
const hlo_sharding *spmd_part_sharding(const spmd_flow *f, const hlo_inst *in);
/* What s says of dimensions, along atoms in mask and no more. */
const hlo_sharding *spmd_cuts(hlo_module *m, const hlo_sharding *s, int rank,
                              uint32_t mask);
hlo_inst *spmd_whole(spmd_flow *f, hlo_inst *in);
hlo_inst *spmd_as(spmd_flow *f, hlo_at p, hlo_inst *in, const hlo_sharding *s);
/* Does the operation on parts, if it has a rule and an operand in parts. */
bool spmd_apply(spmd_flow *f, hlo_inst *in);
void spmd_settle(spmd_flow *f);
/* What the module's partitioner knows becomes what that says (spmd_custom.c). */
bool spmd_is_custom(const hlo_inst *in);
sd_status spmd_custom(spmd_flow *f, hlo_inst *in);

#endif
