/* How often a loop turns, where its HLO tells: a counter that starts at a
 * number, goes up by one and is compared with a third. */
#include "hlo.h"

static bool is_number(const hlo_inst *x, int64_t *v)
{
    sd_kind k = sd_dtype_kind(x->shape->dtype);

    if (x->op != HLO_CONSTANT || x->shape->rank ||
        (k != SD_K_SINT && k != SD_K_UINT))
        return false;
    *v = sd_scalar_to_s64(x->shape->dtype, x->u.literal.data);
    return k == SD_K_SINT || *v >= 0; /* not beyond s64 */
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

/* Does the counter get from start to the first number that is not below limit
 * without wrapping? */
static bool stays_in_range(sd_dtype t, int64_t start, int64_t step,
                           int64_t turns)
{
    int bits = sd_dtype_table[t].bits - sd_is_signed(t);
    int64_t top = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1, way, end;

    return !__builtin_mul_overflow(turns, step, &way) &&
           !__builtin_add_overflow(start, way, &end) && end <= top;
}

/* "counter < limit", in the order of its type. */
static bool is_below(const hlo_inst *c)
{
    return c->op == HLO_COMPARE && c->u.compare.dir == HLO_LT &&
           c->u.compare.type == (sd_is_signed(c->arg[0]->shape->dtype)
                                     ? HLO_CMP_SIGNED
                                     : HLO_CMP_UNSIGNED);
}

int64_t hlo_turns(const hlo_inst *loop)
{
    const hlo_comp *cond = loop->comp[0], *body = loop->comp[1];
    const hlo_inst *c = cond->root, *next, *first;
    int64_t limit, start, step, way, turns, i, of;

    if (!is_below(c) || !is_element(c->arg[0], cond, &i) ||
        !is_number(c->arg[1], &limit))
        return -1;
    first = element(loop->arg[0], i);
    if (!first || !is_number(first, &start) ||
        __builtin_sub_overflow(limit, start, &way))
        return -1;
    if (way <= 0)
        return 0;
    next = element(body->root, i); /* and one step that adds a number to it */
    if (!next || next->op != HLO_ADD || !is_element(next->arg[0], body, &of) ||
        of != i || !is_number(next->arg[1], &step) || step <= 0)
        return -1;
    turns = (way - 1) / step + 1;
    return stays_in_range(next->shape->dtype, start, step, turns) ? turns : -1;
}
