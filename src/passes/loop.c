#include "loop.h"

bool loop_read(hlo_inst *in, loop *l)
{
    if (in->op != HLO_WHILE || in->ncomp != 2 || in->shape->dtype != SD_TUPLE ||
        in->arg[0]->op != HLO_TUPLE)
        return false;
    *l = (loop){in,   in->arg[0], in->comp[0],     in->comp[1],
                NULL, NULL,       in->shape->nelem};
    if (l->cond->nparam != 1 || l->body->nparam != 1 ||
        l->body->root->op != HLO_TUPLE || l->cond->ncaller != 1 ||
        l->body->ncaller != 1)
        return false;
    l->cp = l->cond->param[0];
    l->bp = l->body->param[0];
    return true;
}

bool loop_only_elements(const hlo_inst *x)
{
    hlo_for_each_user(u, x)
        if (u->op != HLO_GET_TUPLE_ELEMENT)
            return false;
    return true;
}

bool loop_is_element(const hlo_inst *x, const hlo_inst *of, int64_t i)
{
    return x->op == HLO_GET_TUPLE_ELEMENT && x->arg[0] == of &&
           x->u.tuple.index == i;
}
