/* Kernels of one instruction: updates in place, scatters, scans, sorts. */
#include "plan_room.h"

typedef const plan_expr *const *index_in;

static plan_node **one(plan_lowering *lw, plan_node *n)
{
    return sd_arena_copy(lw->a, &n, sizeof n);
}

static int out_slot(const plan_lowering *lw, int i)
{
    return lw->fusion->comp[0]->nparam + i;
}

/* The clamped start of a dynamic update: the viewer's own rule. */
static const plan_expr *start_of(plan_lowering *lw, const hlo_inst *in, int d)
{
    int64_t room = in->shape->dim[d] - in->arg[1]->shape->dim[d];

    lw->guards = (plan_guards){ 0 };
    return lw->viewer.dynamic(&lw->viewer, in, 2 + d, NULL, room);
}

/* Only the update is written; the rest of the result is the operand, whose
 * buffer it has. */
sd_status plan_lower_update(plan_lowering *lw, const hlo_inst *in)
{
    const sd_shape *s = in->shape, *u = in->arg[1]->shape;
    const plan_expr *index[SD_MAX_RANK], *at[SD_MAX_RANK];
    plan_node n = { .kind = PN_STORE, .in = in, .dtype = s->dtype,
                    .slot = out_slot(lw, 0), .narg = 1 };

    for (int d = 0; d < u->rank; d++)
        index[d] = plan_axis_add(lw, u->dim[d], PLAN_MAP, true);
    for (int d = 0; d < u->rank; d++)
        at[d] = plan_px_add(lw->px, index[d], start_of(lw, in, d));
    n.arg = one(lw, plan_value(lw, in->arg[1], 0, index, (plan_guards){ 0 }));
    n.off = plan_px_linear(lw->px, s->rank, s->dim, at);
    plan_node_new(lw, n);
    return lw->st;
}

sd_status plan_lower_scatter(plan_lowering *lw, const hlo_inst *in)
{
    (void)lw;
    return sd_error(SD_UNIMPLEMENTED, "%s", hlo_info(in)->name);
}

sd_status plan_lower_scan(plan_lowering *lw, const hlo_inst *in)
{
    (void)lw;
    return sd_error(SD_UNIMPLEMENTED, "%s", hlo_info(in)->name);
}

sd_status plan_lower_sort(plan_lowering *lw, const hlo_inst *in)
{
    (void)lw;
    return sd_error(SD_UNIMPLEMENTED, "%s", hlo_info(in)->name);
}
