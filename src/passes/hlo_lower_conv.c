/* Convolutions that no emitter and no library takes as they are:
 *   - of an operand without elements, which are sums of nothing;
 *   - of preds, where a product is an `and` and a sum an `or`: an f32 sum of
 *     products of 0 and 1 is above 0 exactly where one product is 1, however
 *     large it grows. */
#include "passes_priv.h"

static hlo_inst *lower_preds(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    sd_arena *a = in->parent->module->arena;
    hlo_inst *arg[2], *sum;

    for (int i = 0; i < 2; i++)
        arg[i] = pass_convert(p, SD_F32, pass_convert(p, SD_PRED, in->arg[i]));
    sum = hlo_inst_clone(in->parent, in, in, arg);
    sum->shape = sd_shape_make(a, SD_F32, in->shape->rank, in->shape->dim);
    return pass_compare_num(p, HLO_GT, sum, 0);
}

hlo_inst *hlo_lower_conv(hlo_inst *in)
{
    for (int i = 0; i < 2; i++)
        if (sd_shape_count(in->arg[i]->shape) == 0)
            return hlo_make_fill(pass_at(in), in->shape, 0);
    return pass_dtype(in) == SD_PRED ? lower_preds(in) : NULL;
}
