/* By what values would be had, without anything being made: of the body of a
 * loop, before it is known what the loop carries (spmd_loop.c). */
#include "spmd_choice.h"

typedef struct {
    const hlo_sharding *s;
    const hlo_sharding *const *each;
    bool anew;
} seen;

void spmd_see(spmd_flow *f, const hlo_inst *in, const hlo_sharding *s,
              const hlo_sharding *const *each)
{
    seen *x = sd_map_get(f->guess, sd_key(in));

    if (!x) {
        x = sd_arena_new(f->a, seen);
        sd_map_set(f->guess, sd_key(in), x);
    }
    *x = (seen){s, each, false};
}

const hlo_sharding *spmd_now(const spmd_flow *f, const hlo_inst *x)
{
    const seen *g;

    if (!f->guessing)
        return spmd_part_sharding(f, x);
    g = sd_map_get(f->guess, sd_key(x));
    return g ? g->s : NULL;
}

const hlo_sharding *spmd_now_at(const spmd_flow *f, const hlo_inst *x, int i)
{
    const hlo_sharding *const *each;

    if (x->shape->dtype != SD_TUPLE)
        return spmd_now(f, x);
    if (x->op == HLO_TUPLE)
        return spmd_now(f, x->arg[i]);
    if (f->guessing) {
        const seen *g = sd_map_get(f->guess, sd_key(x));

        each = g ? g->each : NULL;
    } else {
        const spmd_part *had = spmd_part_of(f, x);

        each = had && had->is_tuple ? had->each : NULL;
    }
    return each ? each[i] : NULL;
}

bool spmd_see_part(spmd_flow *f, const hlo_inst *in)
{
    const spmd_part *x = spmd_part_of(f, in);

    if (x)
        spmd_see(f, in, x->is_tuple ? NULL : x->s,
                 x->is_tuple ? x->each : NULL);
    return x != NULL;
}

bool spmd_was_anew(const spmd_flow *f, const hlo_inst *in)
{
    const seen *g;

    if (!f->guessing)
        return sd_map_has(f->anew, sd_key(in));
    g = sd_map_get(f->guess, sd_key(in));
    return g && g->anew;
}

spmd_need spmd_needs(spmd_flow *f, const hlo_inst *in, const hlo_sharding **arg)
{
    const hlo_sharding **s =
        sd_arena_array(f->a, const hlo_sharding *, hlo_nresult(in) + 1);
    spmd_rule r;
    spmd_choice c;

    if (!spmd_rule_of(in, &r))
        return SPMD_WHOLE;
    if (!spmd_choose(f, in, &r, &c))
        return SPMD_ANY;
    if (!spmd_results_of(f, in, &r, &c, s))
        return SPMD_WHOLE;
    for (int k = 0; k < in->narg; k++) {
        arg[k] = spmd_operand_by(f, in, &r, &c, k);
        if (hlo_sharding_is_whole(arg[k]))
            arg[k] = NULL;
    }
    return SPMD_CUT;
}

static void guess_result(spmd_flow *f, const hlo_inst *in,
                         const hlo_sharding *s, const hlo_sharding *to)
{
    if (s != to)
        f->cost += spmd_move_bytes(in->shape, s, to);
    spmd_see(f, in, to, NULL);
}

static void guess_rule(spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding **s =
        sd_arena_array(f->a, const hlo_sharding *, hlo_nresult(in) + 1);
    spmd_rule r;
    spmd_choice c;
    bool ok = spmd_rule_of(in, &r) && spmd_choose(f, in, &r, &c) &&
              spmd_results_of(f, in, &r, &c, s);

    for (int k = 0; k < in->narg; k++) {
        const hlo_sharding *now = spmd_now(f, in->arg[k]);
        bool few = spmd_few_of(in, now) >= 0;
        const sd_shape *whole = few ? in->shape : in->arg[k]->shape;

        f->cost +=
            spmd_move_bytes(whole, spmd_now(f, in->arg[k]),
                            ok ? spmd_operand_by(f, in, &r, &c, k) : NULL);
    }
    if (!ok)
        spmd_see(f, in, NULL, NULL);
    else if (in->shape->dtype == SD_TUPLE)
        spmd_see(f, in, NULL, s);
    else
        guess_result(f, in, spmd_waiting(f, &r, &c, s[0]),
                     spmd_result_by(f, in, &r, &c, s[0]));
}

static bool guess_mark(spmd_flow *f, const hlo_inst *in)
{
    int n = hlo_nresult(in);
    const hlo_sharding **s = sd_arena_array(f->a, const hlo_sharding *, n + 1);
    const hlo_sharding *now = NULL;

    for (int i = 0; i < n; i++) {
        now = i < in->narg ? spmd_now(f, in->arg[i]) : NULL;
        if (!f->owner->guess_mark(in, i, now, &s[i]))
            return false;
    }
    if (in->shape->dtype == SD_TUPLE) {
        spmd_see(f, in, NULL, s);
    } else {
        f->cost += spmd_move_bytes(in->shape, now, s[0]);
        spmd_see(f, in, s[0], NULL);
    }
    return true;
}

static void guess_barrier(spmd_flow *f, const hlo_inst *in)
{
    const hlo_inst *x = in->arg[0];
    int n = x->shape->dtype == SD_TUPLE ? x->shape->nelem : 0;
    const hlo_sharding **s = sd_arena_array(f->a, const hlo_sharding *, n + 1);

    for (int i = 0; i < n; i++)
        s[i] = spmd_now_at(f, x, i);
    spmd_see(f, in, n ? NULL : spmd_now(f, x), n ? s : NULL);
}

void spmd_guess(spmd_flow *f, const hlo_inst *in)
{
    switch (in->op) {
    case HLO_GET_TUPLE_ELEMENT:
        spmd_see(f, in, spmd_now_at(f, in->arg[0], (int)in->u.tuple.index),
                 NULL);
        break;
    case HLO_OPT_BARRIER:
        guess_barrier(f, in);
        break;
    case HLO_TUPLE: /* its elements are asked for themselves */
        break;
    case HLO_WHILE:
    case HLO_CONDITIONAL:
        spmd_guess_flow(f, in);
        break;
    default:
        if (in->op == HLO_CUSTOM_CALL && guess_mark(f, in))
            break;
        if (!spmd_is_anew(f, in)) {
            guess_rule(f, in);
        } else {
            spmd_see(f, in, NULL, NULL);
            ((seen *)sd_map_get(f->guess, sd_key(in)))->anew = true;
        }
    }
}
