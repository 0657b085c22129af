/* How often a loop turns, where its HLO tells: a counter that starts at a
 * number, goes up or down by a second and is compared with a third. */
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

/* Without a sign a step down is one up, by what is missing to the whole. */
static int64_t as_step(sd_dtype t, int64_t v, bool down)
{
    int64_t all;

    if (sd_is_signed(t) || sd_dtype_table[t].bits >= 64)
        return v;
    all = INT64_C(1) << sd_dtype_table[t].bits;
    v &= all - 1;
    return down && v ? v - all : v;
}

/* What the root does to the counter. */
static bool read_step(const hlo_inst *next, const hlo_comp *body, int64_t i,
                      int64_t *out)
{
    int64_t of;

    if (!next || (next->op != HLO_ADD && next->op != HLO_SUBTRACT) ||
        !is_element(next->arg[0], body, &of) || of != i ||
        !is_number(next->arg[1], out))
        return false;
    return next->op == HLO_ADD || !__builtin_sub_overflow(0, *out, out);
}

/* ---- how far, and in which direction ---- */

typedef struct {
    int64_t start, limit, step;
    int64_t top; /* the last number of the type on the way */
} count;

static int64_t type_end(sd_dtype t, bool top)
{
    bool is_signed = sd_is_signed(t);
    int bits = sd_dtype_table[t].bits - is_signed;
    int64_t most = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;

    return top ? most : is_signed ? -most - 1 : 0;
}

/* Down is up with all signs turned. */
static bool turn_round(count *k)
{
    return !__builtin_sub_overflow(0, k->start, &k->start) &&
           !__builtin_sub_overflow(0, k->limit, &k->limit) &&
           !__builtin_sub_overflow(0, k->step, &k->step);
}

/* While it is below the limit: to the first number that is not, which must be
 * one of the type, since the counter wraps there. */
static int64_t turns_below(const count *k)
{
    int64_t way, turns, end;

    if (k->start >= k->limit)
        return 0;
    if (k->step <= 0 || __builtin_sub_overflow(k->limit, k->start, &way))
        return -1;
    turns = (way - 1) / k->step + 1;
    if (__builtin_mul_overflow(turns, k->step, &way) ||
        __builtin_add_overflow(k->start, way, &end) || end > k->top)
        return -1;
    return turns;
}

static int64_t turns_until(const count *k)
{
    int64_t way;

    if (k->start == k->limit)
        return 0;
    if (!k->step || __builtin_sub_overflow(k->limit, k->start, &way) ||
        (way < 0) != (k->step < 0) || way % k->step)
        return -1;
    return way / k->step;
}

/* Its own type's order; dir: "counter dir limit". */
static int64_t turns_of(sd_dtype t, hlo_cmp_dir dir, count *k)
{
    bool down = dir == HLO_GT || dir == HLO_GE ||
                (dir == HLO_NE && k->limit < k->start);

    k->step = as_step(t, k->step, down);
    if (dir == HLO_NE)
        return turns_until(k);
    k->top = type_end(t, !down);
    if (down && __builtin_sub_overflow(0, k->top, &k->top))
        k->top = INT64_MAX; /* all but s64's last */
    if (down && !turn_round(k))
        return -1;
    if ((dir == HLO_LE || dir == HLO_GE) &&
        __builtin_add_overflow(k->limit, 1, &k->limit))
        return -1;
    return turns_below(k);
}

static bool is_in_order(const hlo_inst *c)
{
    if (c->op != HLO_COMPARE || c->u.compare.dir == HLO_EQ)
        return false;
    return c->u.compare.type == (sd_is_signed(c->arg[0]->shape->dtype)
                                     ? HLO_CMP_SIGNED
                                     : HLO_CMP_UNSIGNED);
}

/* "limit dir counter" read from the other side. */
static hlo_cmp_dir mirrored(hlo_cmp_dir dir)
{
    return dir == HLO_LT   ? HLO_GT
           : dir == HLO_GT ? HLO_LT
           : dir == HLO_LE ? HLO_GE
           : dir == HLO_GE ? HLO_LE
                           : dir;
}

int64_t hlo_turns(const hlo_inst *loop)
{
    const hlo_comp *cond = loop->comp[0], *body = loop->comp[1];
    const hlo_inst *c = cond->root, *first;
    count k = {0};
    int64_t i;
    int side;

    if (!is_in_order(c))
        return -1;
    side = !is_element(c->arg[0], cond, &i);
    if ((side && !is_element(c->arg[1], cond, &i)) ||
        !is_number(c->arg[1 - side], &k.limit))
        return -1;
    first = element(loop->arg[0], i);
    if (!first || !is_number(first, &k.start))
        return -1;
    /* without a step that is known some loops are known not to turn */
    if (!read_step(element(body->root, i), body, i, &k.step))
        k.step = 0;
    return turns_of(first->shape->dtype,
                    side ? mirrored(c->u.compare.dir) : c->u.compare.dir, &k);
}
