/* A conditional whose branch is known is that branch. */
#include "passes_priv.h"

static int known_branch(const hlo_inst *in)
{
    int64_t v;

    for (int i = 1; i < in->ncomp; i++)
        if (!pass_same_comp(in->comp[0], in->comp[i]) ||
            in->arg[1] != in->arg[1 + i])
            goto differ;
    return 0;
differ:
    if (!pass_int_const(in->arg[0], &v))
        return -1;
    if (pass_dtype(in->arg[0]) == SD_PRED)
        return v ? 0 : 1; /* the true computation comes first */
    return v < 0 || v >= in->ncomp ? in->ncomp - 1 : (int)v;
}

bool hlo_opt_conditional(hlo_module *m, const device_desc *dev)
{
    bool changed = false;

    (void)dev;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            int i = in->op == HLO_CONDITIONAL ? known_branch(in) : -1;

            if (i < 0)
                continue;
            pass_replace(
                in, pass_splice(pass_at(in), in->comp[i], &in->arg[1 + i]));
            changed = true;
        }
    return changed;
}
