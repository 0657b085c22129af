/* Conditionals in functions of elements (of reductions, scatters, sorts, maps)
 * become all their branches and a select: kernels have no other control flow.
 * Branches that loop stay, and the function is refused. */
#include "passes_priv.h"

static bool is_pure(const hlo_comp *c)
{
    hlo_for_each_inst(in, c) {
        if (in->op == HLO_WHILE ||
            (in->op != HLO_PARAMETER && hlo_has_effect(in)))
            return false;
        for (int i = 0; i < in->ncomp; i++)
            if (!is_pure(in->comp[i]))
                return false;
    }
    return true;
}

/* Is branch i of n taken?  All others before it are not. */
static hlo_inst *is_taken(hlo_at p, hlo_inst *which, int i)
{
    if (pass_dtype(which) == SD_PRED) /* the true computation comes first */
        return which;
    return hlo_make_compare(p, HLO_EQ, which,
                            hlo_make_scalar_s64(p, pass_dtype(which), i));
}

static hlo_inst *choose(hlo_at p, hlo_inst *pred, hlo_inst *x, hlo_inst *y)
{
    hlo_inst **e;
    int n = x->shape->nelem;

    if (x->shape->dtype != SD_TUPLE)
        return hlo_make_select(p, hlo_make_spread(p, pred, x->shape), x, y);
    e = sd_arena_array(p.c->module->arena, hlo_inst *, n);
    for (int i = 0; i < n; i++)
        e[i] = choose(p, pred, hlo_make_gte(p, x, i), hlo_make_gte(p, y, i));
    return hlo_make_tuple(p, n, e);
}

static hlo_inst *select_branch(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *r;
    int last = in->ncomp - 1;

    r = pass_splice(p, in->comp[last], &in->arg[1 + last]);
    for (int i = last - 1; i >= 0; i--)
        r = choose(p, is_taken(p, in->arg[0], i),
                   pass_splice(p, in->comp[i], &in->arg[1 + i]), r);
    return r;
}

/* Marks 1 what is a function of elements, and what such a one calls. */
static void mark_functions(hlo_module *m)
{
    hlo_for_each_comp(c, m)
        c->mark = 0;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            for (int i = 0; i < in->ncomp; i++)
                if (hlo_info(in)->cls != HLO_C_CONTROL)
                    in->comp[i]->mark = 1;
}

bool hlo_lower_branch(hlo_module *m)
{
    bool changed = false;

    mark_functions(m);
    hlo_for_each_comp(c, m)
        for (hlo_inst *in = c->mark ? c->first : NULL, *next; in; in = next) {
            hlo_inst *before = in->prev;
            bool pure = in->op == HLO_CONDITIONAL;

            next = in->next;
            for (int i = 0; pure && i < in->ncomp; i++)
                pure = is_pure(in->comp[i]);
            if (!pure)
                continue;
            pass_replace(in, select_branch(in));
            next = before ? before->next : c->first; /* nested ones */
            changed = true;
        }
    return changed;
}
