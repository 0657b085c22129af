/* Drop instructions nobody uses, then computations nobody calls.  Keeps: the
 * parameters, which are their computation's signature; what has an effect. */
#include "passes_priv.h"

bool hlo_opt_dce(hlo_module *m)
{
    bool changed = false;

    /* callers come after what they call */
    for (hlo_comp *c = m->last, *prev; c; c = prev) {
        prev = c->prev;
        if (c != m->entry && c->ncaller == 0) {
            hlo_comp_remove(c);
            changed = true;
        } else {
            changed |= hlo_comp_sweep(c);
        }
    }
    return changed;
}
