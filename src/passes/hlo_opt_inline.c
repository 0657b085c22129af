/* Calls and fusions become what they call.  Callees come first in a module, so
 * one walk does nested calls too; the bound keeps a program of calls of calls
 * from growing without end, what is left over is refused by name. */
#include "passes_priv.h"

enum { MAX_INSTS = 1 << 20 };

static bool inline_calls(hlo_comp *c, int *total)
{
    bool changed = false;

    hlo_for_each_inst(in, c) {
        if ((in->op != HLO_CALL && in->op != HLO_FUSION) || in->ncomp != 1)
            continue;
        int n = (int)in->comp[0]->mark;

        if (*total + n > MAX_INSTS)
            continue;
        *total += n;
        c->mark += n;
        pass_replace(in, pass_splice(pass_at(in), in->comp[0], in->arg));
        changed = true;
    }
    return changed;
}

bool hlo_opt_inline(hlo_module *m, const device_desc *dev)
{
    bool changed = false;
    int total = 0;

    (void)dev;
    hlo_for_each_comp(c, m)
        total += (int)(c->mark = hlo_comp_count(c));
    hlo_for_each_comp(c, m)
        changed |= inline_calls(c, &total);
    return changed;
}
