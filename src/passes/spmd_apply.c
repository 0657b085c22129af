/* Operations on parts. */
#include "spmd_choice.h"
#include "spmd_halo.h"
#include "spmd_lines.h"
#include "spmd_pick.h"

static bool take_element(spmd_flow *f, hlo_inst *in)
{
    const spmd_part *x = spmd_part_of(f, in->arg[0]);
    int i = (int)in->u.tuple.index;
    hlo_inst *to;

    if (!x)
        return false;
    to = hlo_make_gte(pass_at(in), x->local, i);
    if (x->each[i]) {
        spmd_set_part(f, in, to, x->each[i]);
        spmd_part_of(f, in)->by_itself = x->by_itself;
    } else {
        pass_replace(in, to);
    }
    return true;
}

/* What is passed through, in the parts that it is had in. */
static bool pass_barrier(spmd_flow *f, hlo_inst *in)
{
    hlo_inst *x = in->arg[0], *to;
    const spmd_part *had = spmd_part_of(f, x);
    const hlo_sharding **each;
    hlo_inst **e;
    bool any = false;

    if (x->op != HLO_TUPLE) {
        if (!had)
            return false;
        to = hlo_inst_create(in->parent, in, in->op, had->local->shape, 1,
                             (hlo_inst *[]){had->local});
        if (had->is_tuple)
            spmd_set_parts(f, in, to, had->each);
        else
            spmd_set_part(f, in, to, had->s);
        return true;
    }
    each = sd_arena_array(f->a, const hlo_sharding *, x->narg + 1);
    e = sd_arena_array(f->a, hlo_inst *, x->narg + 1);
    for (int i = 0; i < x->narg; i++) {
        each[i] = spmd_now(f, x->arg[i]);
        e[i] = each[i] ? spmd_as(f, pass_at(in), x->arg[i], each[i])
                       : spmd_whole(f, x->arg[i]);
        any |= each[i] != NULL;
    }
    if (!any)
        return false;
    to = hlo_make_tuple(pass_at(in), x->narg, e);
    to = hlo_inst_create(in->parent, in, in->op, to->shape, 1, &to);
    hlo_take_source(to, in);
    spmd_set_parts(f, in, to, each);
    hlo_set_arg(in, 0, to);
    if (!x->nuse && x != in->parent->root)
        hlo_remove(x);
    return true;
}

/* Each part is turned round, and then all of them are. */
static hlo_inst *turn_parts(hlo_at p, const hlo_inst *in, hlo_inst *x,
                            const hlo_sharding *s)
{
    for (int i = 0; i < in->dims.n; i++) {
        const hlo_atoms *cut = &s->dim[in->dims.at[i]].cut;

        if (cut->n)
            x = spmd_turn(p, x, s->grid, cut);
    }
    return x;
}

/* Operand k, without what lies behind the end of dimensions that are summed. */
static hlo_inst *without_rests(const hlo_inst *in, hlo_at p, int k, hlo_inst *x,
                               const spmd_rule *r, const spmd_choice *c,
                               const hlo_sharding *s)
{
    const sd_shape *whole = in->arg[k]->shape;

    for (int d = 0; d < whole->rank; d++) {
        int f = r->arg[k][d];

        if (f >= 0 && r->factor[f].partial &&
            whole->dim[d] % hlo_atoms_size(s->grid, &c->cut[f]))
            x = spmd_inside(p, x, s, d, whole->dim[d],
                            in->op == HLO_REDUCE
                                ? in->arg[1]
                                : hlo_make_scalar(p, pass_dtype(x), 0));
    }
    return x;
}

/* For whoever asks why a program is slow (SUNDOG_LOG): what gathers operands to
 * be done whole by everybody, or by some of them alike. */
static void note_gathered(const spmd_flow *f, const hlo_inst *in,
                          const spmd_choice *c)
{
    spmd_rule r;

    if (in->op == HLO_TUPLE)
        return;
    for (int k = 0; k < in->narg; k++) {
        const hlo_sharding *s = spmd_part_sharding(f, in->arg[k]);
        uint32_t left = s ? hlo_sharding_used(s) & ~c->used : 0;

        if (!left)
            continue;
        sd_log(SD_LOG_INFO, "spmd: %s is computed whole on %s: %s",
               hlo_describe(f->m, in), c->used ? "some devices" : "each device",
               spmd_rule_of(in, &r)
                   ? "its operands are cut where it goes across"
                   : "it has no rule");
        return;
    }
}

/* in of operands that are cut as c says. */
static hlo_inst *on_parts(const spmd_flow *f, hlo_inst *in, const spmd_rule *r,
                          const spmd_choice *c, const sd_shape *local,
                          hlo_inst **arg)
{
    hlo_at p = pass_at(in);
    spmd_special how =
        spmd_special_of(r, c, in->narg ? in->arg[0]->shape->rank : 0);
    const hlo_sharding *s = in->narg ? spmd_operand_by(f, in, r, c, 0) : NULL;

    if (how.running >= 0)
        return spmd_run(in, p, arg, s, how.running);
    if (how.picked)
        return spmd_pick(in, p, local, arg, s, how.picked);
    if (how.across)
        arg[0] = spmd_intervals(in, p, arg, s, how.across);
    return spmd_on_parts(in, local, arg, how.across);
}

static const hlo_sharding *sliced_by_itself(const spmd_flow *f,
                                            const hlo_inst *in)
{
    const spmd_part *x = spmd_part_of(f, in->arg[0]);
    const hlo_sharding *s = x ? x->by_itself : NULL;

    for (int d = 0; s && d < s->rank; d++)
        if (in->shape->dim[d] != in->arg[0]->shape->dim[d])
            s = hlo_sharding_with(f->m, s, d, (hlo_atoms){0});
    return s;
}

/* The sharding in which in, had by s, would go on if it did not have to be
 * whole along some dimension: what its operand has, or what is left of s; NULL:
 * that is s itself. */
static const hlo_sharding *by_itself(const spmd_flow *f, const hlo_inst *in,
                                     const spmd_choice *c,
                                     const hlo_sharding *s)
{
    if (in->op == HLO_SLICE) /* the first few of a sort */
        return sliced_by_itself(f, in);
    if (!c->moved)
        return NULL;
    return sd_shape_same_dims(in->arg[0]->shape, hlo_result_shape(in, 0))
               ? spmd_now(f, in->arg[0])
               : spmd_cuts(f->m, s, s->rank, ~c->moved);
}

static void set_tuple(spmd_flow *f, hlo_inst *in, hlo_inst *x,
                      const spmd_rule *r, const spmd_choice *c,
                      const hlo_sharding *const *s)
{
    hlo_atoms along = spmd_partial_along(r, c);

    if (along.n)
        x = spmd_pick_again(in, pass_at(in), x, c->like->grid, &along);
    spmd_set_parts(f, in, x, s);
    spmd_part_of(f, in)->by_itself = by_itself(f, in, c, s[0]);
}

static bool apply_rule(spmd_flow *f, hlo_inst *in)
{
    hlo_at p = pass_at(in);
    const hlo_sharding **s =
        sd_arena_array(f->a, const hlo_sharding *, hlo_nresult(in) + 1);
    const sd_shape *local;
    const hlo_sharding *to, *w;
    hlo_inst *arg[SPMD_MOST_ARGS], *x;
    hlo_atoms along;
    spmd_rule r;
    spmd_choice c;

    if (!spmd_rule_of(in, &r) || !spmd_choose(f, in, &r, &c) ||
        !(local = spmd_results_of(f, in, &r, &c, s)))
        return false;
    if (spmd_is_placed(in) && spmd_special_of(&r, &c, in->shape->rank).across) {
        spmd_put(f, in);
        return true;
    }
    for (int k = 0; k < in->narg; k++) {
        const hlo_sharding *by = spmd_operand_by(f, in, &r, &c, k);

        arg[k] =
            without_rests(in, p, k, spmd_as(f, p, in->arg[k], by), &r, &c, by);
    }
    if (!(x = on_parts(f, in, &r, &c, local, arg)))
        return false;
    if (local->dtype == SD_TUPLE) {
        set_tuple(f, in, x, &r, &c, s);
        return true;
    }
    if (in->op == HLO_REVERSE)
        x = turn_parts(p, in, x, s[0]);
    along = spmd_partial_along(&r, &c);
    to = spmd_waiting(f, &r, &c, s[0]);
    if (along.n && to == s[0])
        x = spmd_all_reduce(p, x, c.like->grid, &along, r.combine);
    w = spmd_result_by(f, in, &r, &c, s[0]);
    if (w != to)
        x = spmd_move(p, x, to, w);
    spmd_set_part(f, in, x, w);
    spmd_part_of(f, in)->by_itself = by_itself(f, in, &c, w);
    note_gathered(f, in, &c);
    return true;
}

/* A transform that is cut in one of the dimensions along which it goes. */
static bool goes_by_lines(const spmd_flow *f, const hlo_inst *in)
{
    const hlo_sharding *s =
        in->op == HLO_FFT ? spmd_part_sharding(f, in->arg[0]) : NULL;

    for (int i = 1; s && in->u.fft.length.n > 1 && i <= in->u.fft.length.n; i++)
        if (s->dim[s->rank - i].cut.n)
            return true;
    return false;
}

static void put_lines(spmd_flow *f, hlo_inst *in)
{
    hlo_inst *was = in->prev, *to = spmd_by_lines(in), *x;

    for (x = was ? was->next : in->parent->first; x != in; x = x->next)
        spmd_apply(f, x);
    pass_replace(in, to);
}

bool spmd_apply(spmd_flow *f, hlo_inst *in)
{
    int few =
        in->narg ? spmd_few_of(in, spmd_part_sharding(f, in->arg[0])) : -1;

    if (few >= 0)
        in = spmd_send_few(f, in, few);
    if (goes_by_lines(f, in)) {
        put_lines(f, in);
        return true;
    }
    if (in->op == HLO_GET_TUPLE_ELEMENT)
        return take_element(f, in);
    if (in->op == HLO_OPT_BARRIER)
        return pass_barrier(f, in);
    if (apply_rule(f, in))
        return true;
    note_gathered(f, in, &(spmd_choice){0});
    if (!spmd_is_anew(f, in))
        return false;
    sd_map_set(f->anew, sd_key(in), sd_map_create(f->a));
    return false;
}
