/* A reduce that picks the least or the greatest value and its index, as JAX's
 * argmin and argmax do, must not depend on the order in which it is joined: the
 * lanes of a row hold every 64th element.  JAX's combiner takes the lower index
 * of two equal values, but of two NaNs the one on the left; here it takes the
 * lower index of these, too, which is what an order by index would give.
 *
 *   pick   = a < b | a is NaN                  chooses the value
 *   pick_i = pick | (a == b & i < j)           chooses the index; becomes
 *            a < b | (a is NaN & (b is no NaN | i < j)) | (a == b & i < j) */
#include "terms.h"

typedef struct {
    hlo_inst *a, *i, *b, *j;
    hlo_inst *pick, *pick_i, *less, *nan, *earlier;
} picker;

static bool compares(const hlo_inst *x, hlo_cmp_dir dir, const hlo_inst *y,
                     const hlo_inst *z)
{
    return x->op == HLO_COMPARE && x->u.compare.dir == dir && x->arg[0] == y &&
           x->arg[1] == z;
}

static bool selects(const hlo_inst *x, const hlo_inst *y, const hlo_inst *z)
{
    return x->op == HLO_SELECT && x->arg[1] == y && x->arg[2] == z;
}

static bool read_picker(const hlo_comp *c, picker *p)
{
    const hlo_inst *root = c->root, *tie;

    if (c->nparam != 4 || root->op != HLO_TUPLE || root->narg != 2)
        return false;
    *p = (picker){c->param[0], c->param[1], c->param[2], c->param[3], NULL,
                  NULL,        NULL,        NULL,        NULL};
    if (!sd_is_float(pass_dtype(p->a)) || !sd_is_int(pass_dtype(p->i)) ||
        !selects(root->arg[0], p->a, p->b) ||
        !selects(root->arg[1], p->i, p->j))
        return false;
    p->pick = root->arg[0]->arg[0];
    p->pick_i = root->arg[1]->arg[0];
    if (p->pick->op != HLO_OR || p->pick_i->op != HLO_OR ||
        p->pick_i->arg[0] != p->pick)
        return false;
    p->less = p->pick->arg[0];
    p->nan = p->pick->arg[1];
    tie = p->pick_i->arg[1];
    if (!compares(p->nan, HLO_NE, p->a, p->a) || tie->op != HLO_AND ||
        !compares(tie->arg[0], HLO_EQ, p->a, p->b) ||
        !compares(tie->arg[1], HLO_LT, p->i, p->j))
        return false;
    p->earlier = tie->arg[1];
    return compares(p->less, HLO_LT, p->a, p->b) ||
           compares(p->less, HLO_GT, p->a, p->b);
}

static void settle_nans(hlo_comp *c, const picker *p)
{
    hlo_at at = {c, p->pick_i, p->pick_i};
    hlo_inst *x = t_is(at, HLO_EQ, p->b, p->b);

    x = t_or(at, x, p->earlier);
    x = t_and(at, p->nan, x);
    hlo_set_arg(p->pick_i, 0, t_or(at, p->less, x));
}

bool hlo_lower_pick(hlo_module *m)
{
    bool changed = false;

    if (!m->made[HLO_REDUCE])
        return false;
    hlo_for_each_comp(c, m) {
        picker p;

        if (!read_picker(c, &p))
            continue;
        settle_nans(c, &p);
        changed = true;
    }
    return changed;
}
