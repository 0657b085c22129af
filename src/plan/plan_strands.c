/* Strands.  What is woven of several values element by element (pads with
 * holes, stacked and flattened lists, the levels of a scan) asks for each
 * element whose turn it is: gathers, guards, and work for elements that are
 * another's.  Taking as many elements at once as there are turns answers that
 * while planning: each strand reads its own operands side by side, and the
 * host writes strands that are neighbours as one wide vector. */
#include "plan_lower.h"

enum {
    FEW = 4,         /* positions that are a strand each */
    MOST_WOVEN = 1024 /* nodes of the kernel that comes out */
};

/* After how many positions of axis the choices of e begin anew: what stands
 * under its remainders and quotients, multiplied.  0: it has no such period. */
static int64_t period(const plan_expr *e, int axis)
{
    int64_t a, b;

    if (!(e->varies >> axis & 1))
        return 1;
    switch (e->kind) {
    case PX_AXIS:
        return 1;
    case PX_MUL:
        return period(e->a, axis);
    case PX_ADD:
        a = period(e->a, axis);
        b = period(e->b, axis);
        return a && b ? SD_MAX(a, b) : 0; /* powers of two */
    case PX_DIV:
    case PX_MOD:
        return plan_is_turn(e->c) ? period(e->a, axis) * e->c : 0;
    default:
        return 0;
    }
}

/* The strands of an axis of that extent that e, which a choice is made by, asks
 * for. */
static int asked_for(const plan_expr *e, int axis, int64_t extent)
{
    int64_t n = 1, stride;

    if (!(e->varies >> axis & 1))
        return 1;
    if (extent > 1 && extent <= FEW && plan_expr_stride(e, axis, &stride))
        return (int)extent;
    if (e->kind == PX_MOD)
        n = period(e, axis);
    return plan_is_turn(n) ? (int)n : 1;
}

static bool chooses(const plan_node *n)
{
    return n->kind == PN_ELT && n->op == HLO_COMPARE &&
           n->arg[0]->kind == PN_INDEX && n->arg[1]->kind == PN_CONST;
}

static int strands_of(const plan_kernel *k, int axis)
{
    int64_t extent = k->axis[axis].extent;
    int all = 1;

    plan_for_each_node(n, k) {
        if (chooses(n))
            all = SD_MAX(all, asked_for(n->arg[0]->off, axis, extent));
        for (int g = 0; g < n->nguard; g++)
            all = SD_MAX(all, asked_for(n->guard[g].e, axis, extent));
    }
    while (all / 2 >= extent)
        all /= 2; /* the choices of another axis, seen from this one */
    return all;
}

bool plan_find_strands(const plan_kernel *k, plan_strands *out)
{
    int most = PLAN_MOST_STRANDS;

    *out = (plan_strands){.all = 1};
    if (k->naxis != k->nouter)
        return false;
    while (most > 1 && most * k->nnode > MOST_WOVEN)
        most /= 2;
    for (int a = k->nouter - 1; a >= 0; a--) {
        out->extent[a] = k->axis[a].extent;
        out->n[a] = SD_MIN(strands_of(k, a), most / out->all);
        out->all *= out->n[a];
    }
    return out->all > 1;
}

bool plan_row_strands(const hlo_comp *c, plan_strands *out)
{
    const hlo_inst *root = plan_first_root(c);
    int n = 0;

    *out = (plan_strands){.all = (int)plan_whole_rows(c)};
    for (int d = 0; d < root->shape->rank && out->all > 1; d++)
        if (root->shape->dim[d] != 1) {
            out->n[n] = 1;
            out->extent[n++] = root->shape->dim[d];
        }
    if (n)
        out->n[n - 1] = out->all;
    return n > 0;
}

plan_guards plan_strand(plan_lowering *lw, int which, int rank,
                        const plan_expr *const *index, const plan_expr **out)
{
    const plan_strands *s = &lw->strands;
    const plan_expr *with[64];
    plan_guards g = {0};

    for (int i = lw->axis.n - 1; i >= 0; i--) {
        plan_guard inside = {.lo = 0, .hi = s->extent[i]};

        with[i] = plan_px_axis(lw->px, i, lw->axis.at[i].extent);
        if (s->all == 1 || !lw->axis.at[i].outer || s->n[i] == 1)
            continue;
        inside.e = with[i] = plan_px_mad(
            lw->px, plan_px_const(lw->px, which % s->n[i]), s->n[i], with[i]);
        which /= s->n[i];
        if (inside.e->hi >= inside.hi)
            g = plan_guards_join(lw->a, g, &inside, 1);
    }
    for (int i = 0; i < rank; i++)
        out[i] = s->all == 1 ? index[i] : plan_px_subst(lw->px, index[i], with);
    return g;
}
