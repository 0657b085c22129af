/* Loops and branches that share a computation (calls that were inlined twice)
 * get one each: memory is planned for each place it runs at. */
#include "passes_priv.h"

bool hlo_opt_flatten(hlo_module *m)
{
    bool changed = false;

    /* clones come to the end of the list and are visited too */
    for (hlo_comp *c = m->first; c; c = c->next)
        hlo_for_each_inst(in, c)
            if (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL)
                changed |= pass_own_comps(in);
    return changed;
}
