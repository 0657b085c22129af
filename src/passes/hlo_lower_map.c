/* map of a scalar computation becomes its instructions on whole arrays. */
#include "passes_priv.h"

bool hlo_lower_map(hlo_module *m, const device_desc *dev)
{
    bool changed = false;

    (void)dev;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            if (in->op == HLO_MAP && pass_can_vectorize(in->comp[0])) {
                pass_replace(in, pass_vectorize(pass_at(in), in->comp[0],
                                                in->arg, in->shape));
                changed = true;
            }
    return changed;
}
