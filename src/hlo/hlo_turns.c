/* How often a loop turns, as far as its HLO tells: a guess of its time and
 * nothing else, since the loop still asks its condition. */
#include "hlo.h"

static bool is_number(const hlo_inst *x, int64_t *v)
{
    sd_kind k = sd_dtype_kind(x->shape->dtype);

    if (x->op != HLO_CONSTANT || x->shape->rank ||
        (k != SD_K_SINT && k != SD_K_UINT))
        return false;
    *v = sd_scalar_to_s64(x->shape->dtype, x->u.literal.data);
    return true;
}

/* Element i of what a loop carries from turn to turn; -1: all of it. */
static const hlo_inst *element(const hlo_inst *x, int64_t i)
{
    if (i < 0)
        return x;
    return x->op == HLO_TUPLE ? x->arg[i] : NULL;
}

static bool is_element(const hlo_inst *x, const hlo_comp *c, int64_t *i)
{
    *i = x->op == HLO_GET_TUPLE_ELEMENT ? x->u.tuple.index : -1;
    return (*i < 0 ? x : x->arg[0]) == c->param[0];
}

/* "counter < limit", and one step that adds a number to it. */
int64_t hlo_turns(const hlo_inst *loop)
{
    const hlo_comp *cond = loop->comp[0], *body = loop->comp[1];
    const hlo_inst *c = cond->root, *next, *first;
    int64_t limit, start, step, way, i, of;

    if (c->op != HLO_COMPARE || c->u.compare.dir != HLO_LT ||
        !is_element(c->arg[0], cond, &i) || !is_number(c->arg[1], &limit))
        return -1;
    next = element(body->root, i);
    first = element(loop->arg[0], i);
    if (!next || next->op != HLO_ADD || !is_element(next->arg[0], body, &of) ||
        of != i || !is_number(next->arg[1], &step) || step <= 0 || !first ||
        !is_number(first, &start) || __builtin_sub_overflow(limit, start, &way))
        return -1;
    return way <= 0 ? 0 : (way - 1) / step + 1;
}
