/* Drop instructions nobody uses, then computations nobody calls.  Keeps: the
 * parameters, which are their computation's signature; what has an effect. */
#include "passes_priv.h"

static bool drop_insts(hlo_comp *c)
{
    bool changed = false;

    hlo_for_each_inst_backward(in, c) /* users come before what they use */
        if (in->nuse == 0 && in != c->root && !hlo_has_effect(in)) {
            hlo_remove(in);
            changed = true;
        }
    return changed;
}

bool hlo_opt_dce(hlo_module *m, const device_desc *dev)
{
    bool changed = false;

    (void)dev;
    /* callers come after what they call */
    for (hlo_comp *c = m->last, *prev; c; c = prev) {
        prev = c->prev;
        if (c != m->entry && c->ncaller == 0) {
            hlo_comp_remove(c);
            changed = true;
        } else {
            changed |= drop_insts(c);
        }
    }
    return changed;
}
