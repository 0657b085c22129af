/* Loops and branches that share a computation (calls that were inlined twice)
 * get one each: memory is planned for each place it runs at. */
#include "passes_priv.h"

static bool own_comps(hlo_inst *in)
{
    hlo_module *m = in->parent->module;
    hlo_comp **own = NULL;

    for (int i = 0; i < in->ncomp; i++) {
        if (in->comp[i]->ncaller <= 1)
            continue;
        if (!own) {
            own = sd_arena_array(m->arena, hlo_comp *, in->ncomp);
            memcpy(own, in->comp, sizeof *own * (size_t)in->ncomp);
        }
        own[i] = hlo_comp_clone(m, in->comp[i], in->comp[i]->name);
    }
    if (own)
        hlo_set_comps(in, in->ncomp, own);
    return own != NULL;
}

bool hlo_opt_flatten(hlo_module *m)
{
    bool changed = false;

    /* clones come to the end of the list and are visited too */
    for (hlo_comp *c = m->first; c; c = c->next)
        hlo_for_each_inst(in, c)
            if (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL)
                changed |= own_comps(in);
    return changed;
}
