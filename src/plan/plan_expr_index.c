/* Indices of arrays as expressions: from an offset, of a reshaped array, and
 * under other axes. */
#include "plan_room.h"

void plan_px_delinear(plan_px *p, const plan_expr *e, int rank,
                      const int64_t *dim, const plan_expr **index)
{
    int64_t stride = 1, all = 1;

    for (int i = 0; i < rank; i++)
        all *= SD_MAX(dim[i], 1);
    for (int i = rank - 1; i >= 0; i--) {
        const plan_expr *q;

        if (dim[i] <= 1) {
            index[i] = plan_px_const(p, 0);
            continue;
        }
        q = plan_px_div(p, e, stride);
        stride *= dim[i];
        /* The first dimension holds what is left: beyond it are only positions
         * that a guard refuses. */
        index[i] = stride == all || (q->lo >= 0 && q->hi < dim[i])
                       ? q
                       : plan_px_mod(p, q, dim[i]);
    }
}

void plan_px_reshape(plan_px *p, const sd_shape *from,
                     const plan_expr *const *index, const sd_shape *to,
                     const plan_expr **out)
{
    int i = 0, j = 0;

    if (sd_shape_count(from) == 0) {
        for (int k = 0; k < to->rank; k++)
            out[k] = plan_px_const(p, 0);
        return;
    }
    while (i < from->rank || j < to->rank) {
        int i0 = i, j0 = j;
        int64_t x = i < from->rank ? from->dim[i++] : 1;
        int64_t y = j < to->rank ? to->dim[j++] : 1;

        while (x != y)
            if (x < y)
                x *= from->dim[i++];
            else
                y *= to->dim[j++];
        plan_px_delinear(p,
                         plan_px_linear(p, i - i0, from->dim + i0, index + i0),
                         j - j0, to->dim + j0, out + j0);
    }
}

const plan_expr *plan_px_subst(plan_px *p, const plan_expr *e,
                               const plan_expr *const *with)
{
    switch (e->kind) {
    case PX_CONST:
        return plan_px_const(p, e->c);
    case PX_NODE:
        return plan_px_node(p, e->node, e->lo, e->hi);
    case PX_AXIS:
        return with[e->axis];
    case PX_ADD:
        return plan_px_add(p, plan_px_subst(p, e->a, with),
                           plan_px_subst(p, e->b, with));
    case PX_MUL:
        return plan_px_mul(p, plan_px_subst(p, e->a, with), e->c);
    case PX_DIV:
        return plan_px_div(p, plan_px_subst(p, e->a, with), e->c);
    case PX_MOD:
        return plan_px_mod(p, plan_px_subst(p, e->a, with), e->c);
    }
    return e;
}
