/* map of a scalar computation becomes its instructions on whole arrays. */
#include "passes_priv.h"

hlo_inst *hlo_lower_map(hlo_inst *in)
{
    return pass_can_vectorize(in->comp[0])
               ? pass_vectorize(pass_at(in), in->comp[0], in->arg, in->shape)
               : NULL;
}
