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

hlo_inst *hlo_opt_conditional(hlo_inst *in)
{
    int i = known_branch(in);

    return i < 0 ? NULL
                 : pass_splice(pass_at(in), in->comp[i], &in->arg[1 + i]);
}
