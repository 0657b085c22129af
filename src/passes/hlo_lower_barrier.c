/* Optimization barriers are identities once no pass may move anything across
 * them any more. */
#include "passes_priv.h"

bool hlo_lower_barrier(hlo_module *m, const device_desc *dev)
{
    bool changed = false;

    (void)dev;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if (in->op == HLO_OPT_BARRIER) {
                pass_replace(
                    in, in->narg == 1
                            ? in->arg[0]
                            : hlo_make_tuple(pass_at(in), in->narg, in->arg));
                changed = true;
            }
    return changed;
}
