/* Tuples that are built and taken apart at once:
 *   get-tuple-element(tuple(a, b), 0)  ->  a
 *   tuple(get-tuple-element(x, 0), get-tuple-element(x, 1))  ->  x */
#include "passes_priv.h"

static hlo_inst *whole_again(const hlo_inst *in)
{
    hlo_inst *x;

    if (in->narg == 0 || in->arg[0]->op != HLO_GET_TUPLE_ELEMENT)
        return NULL;
    x = in->arg[0]->arg[0];
    if (x->shape->nelem != in->narg)
        return NULL;
    for (int i = 0; i < in->narg; i++)
        if (in->arg[i]->op != HLO_GET_TUPLE_ELEMENT ||
            in->arg[i]->arg[0] != x || in->arg[i]->u.tuple.index != i)
            return NULL;
    return x;
}

hlo_inst *hlo_opt_tuple(hlo_inst *in)
{
    if (in->op == HLO_GET_TUPLE_ELEMENT && in->arg[0]->op == HLO_TUPLE)
        return in->arg[0]->arg[in->u.tuple.index];
    /* a root tuple stays: it says what a loop's body changes */
    if (in->op == HLO_TUPLE && in != in->parent->root)
        return whole_again(in);
    return NULL;
}
