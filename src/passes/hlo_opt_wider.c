/* Products of floats of 8 bits and fewer become those of bf16 where a GPU has
 * matrix instructions: bf16 holds each of their values, and products of two are
 * exact in f32, in which both are added.  The instructions that take f8 as it
 * is add in fewer digits than f32 has, so that they are not asked.
 *
 * f8e8m0fnu stays: it has no zero, and its least is subnormal in bf16. */
#include "passes_priv.h"

static bool is_least(sd_dtype t)
{
    return pass_is_narrow(t) && sd_dtype_table[t].bits <= 8 &&
           t != SD_F8E8M0FNU;
}

static hlo_inst *widen_product(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *arg[2];
    bool any = false;

    if (in->op != HLO_DOT && in->op != HLO_CONVOLUTION)
        return NULL;
    for (int i = 0; i < 2; i++) {
        sd_dtype t = pass_dtype(in->arg[i]);

        if (!is_least(t) && t != SD_BF16)
            return NULL;
        any |= is_least(t);
    }
    if (!any)
        return NULL;
    for (int i = 0; i < 2; i++)
        arg[i] = pass_convert(p, SD_BF16, in->arg[i]);
    return hlo_inst_clone(in->parent, in, in, arg);
}

bool hlo_opt_wider(hlo_module *m, const device_desc *dev)
{
    const uint64_t any = DEVICE_HAS_MMA | DEVICE_HAS_DPAS16 | DEVICE_HAS_DPAS8;

    return dev->features & any && pass_rewrite(m, HLO_OP_COUNT, widen_product);
}
