/* map of a scalar computation becomes its instructions on whole arrays. */
#include "passes_priv.h"

static hlo_inst *rewrite_map(hlo_inst *in)
{
    return pass_can_vectorize(in->comp[0])
               ? pass_vectorize(pass_at(in), in->comp[0], in->arg, in->shape)
               : NULL;
}

bool hlo_lower_map(hlo_module *m, const device_desc *dev)
{
    (void)dev;
    return pass_rewrite(m, HLO_MAP, rewrite_map);
}
