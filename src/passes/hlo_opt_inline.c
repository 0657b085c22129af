/* Calls and fusions become what they call, callers first: a copy's own calls
 * are the next that the walk meets, so that each is copied to where it stays.
 * What only calls reach is left as it is, for dce.  How large a program may
 * become pipeline.c asks before. */
#include "passes_priv.h"

static bool is_call(const hlo_inst *in)
{
    return (in->op == HLO_CALL || in->op == HLO_FUSION) && in->ncomp == 1;
}

static bool inline_calls(hlo_comp *c)
{
    bool changed = false;

    for (hlo_inst *in = c->first, *next; in; in = next) {
        hlo_inst *before = in->prev;

        next = in->next;
        if (!is_call(in))
            continue;
        pass_replace(in, pass_splice(pass_at(in), in->comp[0], in->arg));
        next = before ? before->next : c->first;
        changed = true;
    }
    return changed;
}

bool hlo_opt_inline(hlo_module *m)
{
    bool changed = false;

    hlo_for_each_comp(c, m)
        c->mark = c == m->entry;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c)
            for (int i = 0; i < in->ncomp && !is_call(in); i++)
                in->comp[i]->mark = 1;
    hlo_for_each_comp(c, m)
        if (c->mark)
            changed |= inline_calls(c);
    return changed;
}
