/* What values are wanted in.  Parts go forward by themselves; what is whole, or
 * still to be summed, may be made in the parts that all its users want: results
 * that are asked for, constraints, and operations that other operands cut.  A
 * user that needs the whole stands against that.
 *
 * Of each computation once, before it is cut: what would be had is guessed
 * forward, what is wanted is collected backward, and once more, as what is made
 * in parts goes forward, too. */
#include "spmd_flow.h"

#include "spmd_rule.h"

enum { ROUNDS = 2 };

typedef const hlo_sharding *const *shardings;

typedef struct {
    const hlo_sharding *s;
    bool whole; /* somebody needs all of it */
} want;

static want *want_of(spmd_flow *f, const hlo_inst *x)
{
    want *w = sd_map_get(f->wants, sd_key(x));

    if (!w) {
        w = sd_arena_new(f->a, want);
        sd_map_set(f->wants, sd_key(x), w);
    }
    return w;
}

const hlo_sharding *spmd_wanted(const spmd_flow *f, const hlo_inst *in)
{
    const want *w = sd_map_get(f->wants, sd_key(in));

    return w && !w->whole ? w->s : NULL;
}

/* ---- one use ---- */

/* NULL: the whole. */
static void ask(spmd_flow *f, const hlo_inst *x, const hlo_sharding *s)
{
    want *w;

    if (!sd_shape_is_array(x->shape) || !x->shape->rank ||
        (s && s->unreduced)) /* a sum that waits asks for nothing */
        return;
    w = want_of(f, x);
    if (s && !spmd_is_even(x->shape, s)) {
        s = spmd_evenly(f->m, x->shape, s);
        if (!hlo_sharding_used(s))
            return; /* unequal parts go forward alone */
    }
    if (s && w->s && w->s != s)
        s = spmd_common(f->m, w->s, s);
    if (s && hlo_sharding_used(s))
        w->s = hlo_sharding_unreduced(f->m, s, 0, HLO_SUM_OF);
    else
        w->whole = true;
}

/* Element i of a tuple, where that is just being made. */
static void ask_element(spmd_flow *f, const hlo_inst *x, int i,
                        const hlo_sharding *s)
{
    if (x->shape->dtype != SD_TUPLE)
        ask(f, x, s);
    else if (x->op == HLO_TUPLE)
        ask(f, x->arg[i], s);
}

static void ask_elements(spmd_flow *f, const hlo_inst *x, shardings s)
{
    int n = hlo_nresult(x);

    for (int i = 0; i < n; i++)
        ask_element(f, x, i, s[i]);
}

static bool is_whole_wanted(const spmd_flow *f, const hlo_inst *in)
{
    const want *w = sd_map_get(f->wants, sd_key(in));

    return w && w->whole;
}

/* By what operands would be taken.  Of an operation that nothing cuts only
 * somebody who needs its result whole needs its operands so. */
static void ask_operands(spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding *arg[SPMD_MOST_ARGS];
    spmd_need need = spmd_needs(f, in, arg);

    for (int k = 0; k < in->narg; k++) {
        if (need == SPMD_CUT && (!arg[k] || !arg[k]->unreduced))
            ask(f, in->arg[k], arg[k]);
        else if (need != SPMD_CUT &&
                 (need == SPMD_WHOLE || is_whole_wanted(f, in)))
            ask(f, in->arg[k], NULL);
    }
}

static void ask_mark(spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding *s;

    for (int k = 0; k < in->narg; k++)
        if (f->owner->asks(in, k, spmd_now(f, in->arg[k]), &s))
            ask(f, in->arg[k], s);
        else if (spmd_wanted(f, in) || is_whole_wanted(f, in))
            ask(f, in->arg[k], spmd_wanted(f, in)); /* it says nothing */
}

/* What a loop carries or a branch takes it has been seen to be had by. */
static void ask_of(spmd_flow *f, const hlo_inst *in)
{
    switch (in->op) {
    case HLO_PARAMETER:
    case HLO_TUPLE:
    case HLO_CONDITIONAL:
        break;
    case HLO_WHILE:
        for (int i = 0; i < hlo_nresult(in); i++)
            ask_element(f, in->arg[0], i, spmd_now_at(f, in, i));
        break;
    case HLO_GET_TUPLE_ELEMENT:
        if (in->arg[0]->op == HLO_TUPLE || in->arg[0]->op == HLO_OPT_BARRIER) {
            const hlo_inst *x = in->arg[0];

            x = x->op == HLO_OPT_BARRIER ? x->arg[0] : x;
            if (spmd_wanted(f, in) || is_whole_wanted(f, in))
                ask_element(f, x, (int)in->u.tuple.index, spmd_wanted(f, in));
        }
        break;
    case HLO_OPT_BARRIER:
        if (spmd_wanted(f, in) || is_whole_wanted(f, in))
            ask(f, in->arg[0], spmd_wanted(f, in));
        break;
    case HLO_CUSTOM_CALL:
        if (f->owner->is_mark(in))
            ask_mark(f, in);
        else
            ask_operands(f, in);
        break;
    default:
        ask_operands(f, in);
    }
}

/* ---- all ---- */

static void forget(spmd_flow *f, const hlo_comp *c)
{
    hlo_for_each_inst(in, c)
        *want_of(f, in) = (want){0};
}

static void look(spmd_flow *f, const hlo_comp *c)
{
    hlo_for_each_inst(in, c)
        if (in->op == HLO_PARAMETER)
            spmd_see(f, in, NULL, NULL);
        else if (!spmd_see_part(f, in))
            spmd_guess(f, in);
}

void spmd_want(spmd_flow *f, const hlo_comp *c, shardings result)
{
    f->guessing = true;
    for (int k = 0; k < ROUNDS; k++) {
        look(f, c);
        forget(f, c);
        if (result)
            ask_elements(f, c->root, result);
        hlo_for_each_inst_backward(in, c)
            ask_of(f, in);
    }
    f->guessing = false;
}
