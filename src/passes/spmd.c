/* A module of whole arrays, one for all participants, becomes what each of
 * them runs.
 *
 * Every program is right before it is fast: an operation without a rule is
 * computed whole on each participant.  Parameters arrive in parts, and so do
 * the results of manual computations and of constraints; parts go on through
 * the operations that have a rule, forward, and are gathered where one has
 * none (spmd_flow.c).  What an open result is had in is what it is reported as.
 * Inside of manual computations the program says itself what moves.
 * Afterwards no mark of the import is left, and m->param_sharding and
 * m->output_sharding say what the entry's arrays are parts of. */
#include "spmd_flow.h"

typedef struct {
    hlo_module *m;
    spmd_flow *flow;
    sd_map *done; /* computations */
} cutter;

static bool is_mark(const hlo_inst *in, const char *target)
{
    return in->op == HLO_CUSTOM_CALL &&
           strcmp(in->u.custom->target, target) == 0;
}

static sd_status named(sd_status st, const hlo_inst *in)
{
    return sd_note(st, "%s", hlo_describe(in->parent->module, in));
}

/* The n shardings that a frontend attribute of in has; false: none. */
static sd_status read_list(const hlo_inst *in, const char *key, int n,
                           const hlo_sharding **out, bool *has)
{
    hlo_module *m = in->parent->module;
    const char *text = hlo_attribute(m->arena, in->frontend_attrs, key);
    int *rank = sd_arena_array(m->arena, int, n + 1);

    *has = text != NULL;
    for (int i = 0; i < n; i++)
        rank[i] = SD_MAX_RANK;
    return text ? named(hlo_shardings_read(m, text, n, rank, out), in) : NULL;
}

/* ---- the borders of manual computations ---- */

static sd_status misfit(const hlo_inst *in, int i)
{
    return named(sd_error(SD_INVALID,
                          "value %d of a manual computation does not have the "
                          "shape that its sharding gives",
                          i),
                 in);
}

static sd_status manual_atoms(const hlo_inst *in, const hlo_sharding *s,
                              uint32_t *mask)
{
    hlo_module *m = in->parent->module;
    const char *text =
        hlo_attribute(m->arena, in->frontend_attrs, "xla.sdy.manual_axes");

    *mask = 0;
    if (!text || !s->mesh || !s->mesh->naxis)
        return NULL;
    return named(hlo_axes_read(s->mesh, text, mask), in);
}

/* Stands for the whole of which x is a part by s, until all is settled. */
static hlo_inst *stand_in(cutter *t, hlo_inst *in, const sd_shape *whole,
                          hlo_inst *x, const hlo_sharding *s)
{
    hlo_inst *to = hlo_inst_create(in->parent, in, HLO_COPY, whole, 1, &x);

    hlo_take_source(to, in);
    spmd_set_part(t->flow, to, x, s);
    return to;
}

/* What now says along axes that the computation leaves automatic; NULL: there
 * is nothing. */
static const hlo_sharding *automatic(hlo_module *m, const hlo_sharding *now,
                                     const hlo_sharding *s, uint32_t mask)
{
    const hlo_sharding *to;

    if (!now || now->grid != s->grid)
        return NULL;
    to = hlo_sharding_unreduced(m, spmd_cuts(m, now, now->rank, ~mask), 0,
                                HLO_SUM_OF);
    return hlo_sharding_is_whole(to) ? NULL : to;
}

/* An array cut by s along the manual axes, each part by `in` again; NULL: they
 * do not go together. */
static const hlo_sharding *both(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s, const hlo_sharding *in)
{
    const hlo_sharding *to = s;
    const sd_shape *local;
    sd_status st;

    if (!in || in->rank != s->rank ||
        hlo_sharding_used(in) & (hlo_sharding_used(s) | s->unreduced))
        return NULL;
    for (int d = 0; d < s->rank; d++) {
        hlo_atoms cut = s->dim[d].cut;

        for (int i = 0; i < in->dim[d].cut.n; i++)
            cut.at[cut.n++] = in->dim[d].cut.at[i];
        to = hlo_sharding_with(m, to, d, cut);
    }
    st = spmd_local_shape(m, whole, to, HLO_ALL_ATOMS, &local);
    sd_status_free(st);
    return st ? NULL : to;
}

static sd_status enter(cutter *t, hlo_inst *in, const hlo_sharding *s, int i,
                       uint32_t mask, hlo_inst **out)
{
    hlo_inst *x = in->arg[i];
    const sd_shape *local;
    const hlo_sharding *rest, *to;
    hlo_at p = pass_at(in);
    sd_status st = named(spmd_local_shape(t->m, x->shape, s, mask, &local), in);

    if (st)
        return st;
    if (!sd_shape_equal(local, spmd_result(in, i)))
        return misfit(in, i);
    *out = x;
    if (!sd_shape_is_array(x->shape))
        return NULL;
    rest = automatic(t->m, spmd_part_sharding(t->flow, x), s, mask);
    s = spmd_cuts(t->m, s, x->shape->rank, mask);
    if ((to = both(t->m, x->shape, s, rest)))
        *out = stand_in(t, in, local, spmd_as(t->flow, p, x, to), rest);
    else
        *out = spmd_as(t->flow, p, x, s);
    return NULL;
}

static sd_status leave(cutter *t, hlo_inst *in, const hlo_sharding *s, int i,
                       uint32_t mask, hlo_inst **out)
{
    const sd_shape *whole = spmd_result(in, i), *local;
    const hlo_sharding *rest, *to = NULL;
    hlo_inst *x = in->arg[i];
    sd_status st = named(spmd_local_shape(t->m, whole, s, mask, &local), in);

    if (st)
        return st;
    if (!sd_shape_equal(local, x->shape))
        return misfit(in, i);
    if (sd_shape_is_array(whole)) {
        rest = automatic(t->m, spmd_part_sharding(t->flow, x), s, mask);
        s = spmd_cuts(t->m, s, whole->rank, mask);
        to = both(t->m, whole, s, rest);
    }
    if (to)
        x = spmd_as(t->flow, pass_at(in), x, rest);
    else
        x = spmd_whole(t->flow, x);
    *out = to || !sd_shape_equal(local, whole) || s->unreduced & mask
               ? stand_in(t, in, whole, x, to ? to : s)
               : x;
    return NULL;
}

static sd_status border(cutter *t, hlo_inst *in, bool into)
{
    hlo_module *m = t->m;
    int n = in->narg;
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    hlo_inst **x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    uint32_t mask;
    sd_status st;
    bool has;

    if (n != spmd_nresult(in))
        return named(sd_error(SD_INVALID,
                              "%d operands and %d results of a border", n,
                              spmd_nresult(in)),
                     in);
    if ((st = read_list(in,
                        into ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings",
                        n, s, &has)))
        return st;
    for (int i = 0; i < n; i++) {
        if (!has)
            s[i] = hlo_sharding_replicated(m, 0);
        if ((st = manual_atoms(in, s[i], &mask)) ||
            (st = (into ? enter : leave)(t, in, s[i], i, mask, &x[i])))
            return st;
    }
    pass_replace(in, in->shape->dtype == SD_TUPLE
                         ? hlo_make_tuple(pass_at(in), n, x)
                         : x[0]);
    return NULL;
}

/* The same in programs without Shardy: the sharding stands on the operand that
 * goes in, and on the call that comes out. */
static sd_status tiles_border(cutter *t, hlo_inst *in, bool into)
{
    hlo_module *m = t->m;
    const hlo_inst *from = into ? in->arg[0] : in;
    const sd_shape *whole = into ? in->arg[0]->shape : in->shape, *local;
    const hlo_sharding *s;
    hlo_inst *x;
    sd_status st;

    if (!from->sharding || in->narg != 1)
        return named(sd_error(SD_UNIMPLEMENTED,
                              "a manual computation's border without its "
                              "sharding"),
                     in);
    if ((st = named(hlo_sharding_read(m, from->sharding, whole->rank, &s),
                    in)) ||
        (st = named(spmd_local_shape(m, whole, s, HLO_ALL_ATOMS, &local), in)))
        return st;
    if (!sd_shape_equal(local, into ? in->shape : in->arg[0]->shape))
        return named(sd_error(SD_UNIMPLEMENTED,
                              "a manual computation with automatic axes, in a "
                              "program without Shardy"),
                     in);
    x = spmd_whole(t->flow, in->arg[0]);
    x = into ? spmd_cut(pass_at(in), x, s, HLO_ALL_ATOMS)
             : stand_in(t, in, whole, x,
                        spmd_cuts(m, s, whole->rank, HLO_ALL_ATOMS));
    pass_replace(in, x);
    return NULL;
}

/* A call that is one participant's alone (a host callback). */
static sd_status single(hlo_inst *in)
{
    const hlo_sharding *s = NULL;
    bool has;
    sd_status st = read_list(in, "xla.sdy.sharding", 1, &s, &has);

    if (!st && !has && in->sharding &&
        strncmp(in->sharding, "{maximal", 8) == 0)
        st = named(hlo_sharding_read(in->parent->module, in->sharding,
                                     SD_MAX_RANK, &s),
                   in);
    return !st && s && s->single >= 0 ? spmd_single(in, s->single) : st;
}

static sd_status own_sharding(const hlo_inst *in, const hlo_sharding **out)
{
    hlo_module *m = in->parent->module;
    int rank = in->shape->rank;
    const char *text =
        hlo_attribute(m->arena, in->frontend_attrs, "xla.sdy.sharding");
    sd_status st = NULL;

    *out = hlo_sharding_replicated(m, rank);
    if (!text)
        text = in->sharding;
    if (text)
        st = named(hlo_sharding_read(m, text, rank, out), in);
    return st;
}

static sd_status io_sharding(const hlo_inst *in, const hlo_sharding **out)
{
    sd_status st = own_sharding(in, out);

    if (!st && (*out)->single >= 0)
        st = named(sd_error(SD_UNIMPLEMENTED,
                            "an array of one participant alone among the "
                            "program's arguments or results"),
                   in);
    return st;
}

/* In programs without Shardy a constraint in front of a manual computation is
 * what its border reads. */
static bool is_operand_of_border(const hlo_inst *in)
{
    for (int i = 0; i < in->nuse; i++)
        if (is_mark(in->user[i], "SPMDFullToShardShape"))
            return true;
    return false;
}

/* What s leaves open, as it is now. */
static const hlo_sharding *filled(hlo_module *m, const hlo_sharding *s,
                                  const hlo_sharding *asked,
                                  const hlo_sharding *now)
{
    for (int d = 0; d < s->rank; d++) {
        uint32_t mask = hlo_atoms_mask(&now->dim[d].cut);

        if (asked->dim[d].open && !s->dim[d].cut.n &&
            !(mask & (hlo_sharding_used(s) | s->unreduced)))
            s = hlo_sharding_with(m, s, d, now->dim[d].cut);
    }
    return s;
}

/* The part that a constraint asks for, where that is the same everywhere; what
 * it leaves open stays as it is.  False: uneven parts are not made. */
static sd_status asked_for(const hlo_inst *in, const hlo_sharding *now,
                           const hlo_sharding **out, bool *asks)
{
    hlo_module *m = in->parent->module;
    const hlo_sharding *s;
    const sd_shape *local;
    bool open = false;
    sd_status st = own_sharding(in, &s);

    if (st)
        return st;
    for (int d = 0; d < s->rank; d++)
        open |= s->dim[d].open && !s->dim[d].cut.n;
    *out = spmd_cuts(m, s, in->shape->rank, HLO_ALL_ATOMS);
    if (open && now && now->grid == (*out)->grid) {
        *out = filled(m, *out, s, now);
        open = false;
    }
    st = spmd_local_shape(m, in->shape, *out, HLO_ALL_ATOMS, &local);
    *asks = !st && !(open && now);
    sd_status_free(st);
    return NULL;
}

static sd_status constraint(cutter *t, hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    const hlo_sharding *s;
    bool asks;
    sd_status st = asked_for(in, spmd_part_sharding(t->flow, x), &s, &asks);

    if (st)
        return st;
    if (!asks)
        pass_replace(in, x);
    else if (hlo_sharding_is_whole(s))
        pass_replace(in, spmd_whole(t->flow, x));
    else
        spmd_set_part(t->flow, in, spmd_as(t->flow, pass_at(in), x, s), s);
    return NULL;
}

static bool is_constraint(const hlo_inst *in)
{
    return is_mark(in, "Sharding") && in->narg == 1 &&
           sd_shape_is_array(in->shape) &&
           sd_shape_equal(in->shape, in->arg[0]->shape) &&
           (in->frontend_attrs || in->sharding);
}

/* What says of its operand where it lies, or how: of each part as of all.  A
 * sharding that is left is read by the border behind it. */
static bool is_same(const hlo_inst *in)
{
    return !is_mark(in, "Sharding") &&
           pass_is_identity_target(in->u.custom->target) && in->narg == 1 &&
           sd_shape_is_array(in->shape) &&
           sd_shape_equal(in->shape, in->arg[0]->shape);
}

/* An element of a tuple that was just made is what it was made of. */
static bool is_taken_apart(const hlo_inst *in)
{
    return in->op == HLO_GET_TUPLE_ELEMENT && in->arg[0]->op == HLO_TUPLE;
}

static sd_status cut_inst(cutter *t, hlo_inst *in)
{
    if (is_taken_apart(in)) {
        pass_replace(in, in->arg[0]->arg[in->u.tuple.index]);
        return NULL;
    }
    if (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL)
        return spmd_cut_flow(t->flow, in);
    if (in->op != HLO_CUSTOM_CALL) {
        spmd_apply(t->flow, in);
        return NULL;
    }
    if (spmd_is_custom(in))
        return spmd_custom(t->flow, in);
    if (spmd_is_group(in)) {
        spmd_group(t->flow, in);
        return NULL;
    }
    if (is_mark(in, "xla.sdy.GlobalToLocalShape"))
        return border(t, in, true);
    if (is_mark(in, "xla.sdy.LocalToGlobalShape"))
        return border(t, in, false);
    if (is_mark(in, "SPMDFullToShardShape"))
        return tiles_border(t, in, true);
    if (is_mark(in, "SPMDShardToFullShape"))
        return tiles_border(t, in, false);
    if (is_constraint(in) && !is_operand_of_border(in))
        return constraint(t, in);
    if (is_mark(in, "xla.sdy.FuncResultSharding"))
        return NULL;
    if (is_same(in)) {
        pass_replace(in, in->arg[0]);
        return NULL;
    }
    if (spmd_apply(t->flow, in))
        return NULL;
    for (int i = 0; i < in->narg; i++)
        hlo_set_arg(in, i, spmd_whole(t->flow, in->arg[i]));
    return is_mark(in, HLO_RAGGED_TARGET) ? spmd_ragged(in) : single(in);
}

static const hlo_sharding *guess_border(hlo_module *m, const sd_shape *whole,
                                        const hlo_sharding *s,
                                        const hlo_sharding *now, uint32_t mask,
                                        bool into)
{
    const hlo_sharding *rest = automatic(m, now, s, mask), *to;

    s = spmd_cuts(m, s, whole->rank, mask);
    to = both(m, whole, s, rest);
    return into ? to ? rest : NULL : to ? to : s;
}

/* What a mark will be had by, for guesses: errors are found when it is cut. */
static bool guess_mark(const hlo_inst *in, int i, const hlo_sharding *now,
                       const hlo_sharding **out)
{
    hlo_module *m = in->parent->module;
    int n = spmd_nresult(in);
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    sd_status st = NULL;
    uint32_t mask;
    bool has = false;

    *out = now;
    if (is_mark(in, "xla.sdy.LocalToGlobalShape") ||
        is_mark(in, "xla.sdy.GlobalToLocalShape")) {
        bool into = is_mark(in, "xla.sdy.GlobalToLocalShape");
        const sd_shape *whole = spmd_result(in, i);

        *out = NULL;
        if (n != in->narg)
            return true;
        if (into)
            whole = in->arg[i]->shape;
        st = read_list(in,
                       into ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings",
                       n, s, &has);
        if (!st && has && !(st = manual_atoms(in, s[i], &mask)) &&
            sd_shape_is_array(whole))
            *out = guess_border(m, whole, s[i], now, mask, into);
    } else if (is_constraint(in)) {
        st = asked_for(in, now, &s[0], &has);
        if (!st && has)
            *out = hlo_sharding_is_whole(s[0]) ? NULL : s[0];
    } else if (!is_same(in)) {
        return false;
    }
    if (st)
        *out = NULL;
    sd_status_free(st);
    return true;
}

static bool says(const hlo_inst *in)
{
    return is_mark(in, "xla.sdy.FuncResultSharding") ||
           is_mark(in, "xla.sdy.LocalToGlobalShape") ||
           is_mark(in, "xla.sdy.GlobalToLocalShape") || is_constraint(in) ||
           is_same(in);
}

/* What a mark wants its operand in. */
static bool asks(const hlo_inst *in, int k, const hlo_sharding *now,
                 const hlo_sharding **out)
{
    hlo_module *m = in->parent->module;
    int rank = in->arg[k]->shape->rank;
    const hlo_sharding **s =
        sd_arena_array(m->arena, const hlo_sharding *, in->narg + 1);
    uint32_t mask = HLO_ALL_ATOMS;
    bool has = true;
    sd_status st = NULL;

    *out = NULL;
    if (is_mark(in, "xla.sdy.FuncResultSharding")) {
        st = own_sharding(in, &s[k]);
    } else if (is_mark(in, "xla.sdy.GlobalToLocalShape")) {
        st = read_list(in, "xla.sdy.in_shardings", in->narg, s, &has);
        if (!st && has)
            st = manual_atoms(in, s[k], &mask);
    } else if (is_mark(in, "xla.sdy.LocalToGlobalShape")) {
        return true;
    } else if (is_constraint(in)) {
        st = asked_for(in, now, &s[k], &has);
    } else {
        return false;
    }
    if (!st && has && sd_shape_is_array(in->arg[k]->shape))
        *out = spmd_cuts(m, s[k], rank, mask);
    has &= !st;
    sd_status_free(st);
    return has;
}

/* Of the import nothing is left. */
static void drop_marks(hlo_module *m)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            if (in->op != HLO_PARAMETER)
                in->sharding = NULL;
            if (is_mark(in, "Sharding") && in->narg == 1 &&
                sd_shape_equal(in->shape, in->arg[0]->shape))
                pass_replace(in, in->arg[0]);
        }
}

/* ---- the entry ---- */

static const char *tiles_text(sd_arena *a, const hlo_sharding *s)
{
    sd_buf b = {0};
    const char *text;

    hlo_sharding_tiles(&b, s);
    if (b.oom)
        sd_oom(0);
    text = sd_arena_str(a, b.at, b.len);
    sd_buf_finish(&b);
    return text;
}

/* After all parameters, so that they stay in front. */
static hlo_inst *behind_params(const hlo_comp *c)
{
    hlo_inst *in = c->first;

    while (in && in->op == HLO_PARAMETER)
        in = in->next;
    return in;
}

static sd_status cut_param(cutter *t, int i)
{
    hlo_module *m = t->m;
    hlo_comp *c = m->entry;
    hlo_inst *p = c->param[i], *x;
    const hlo_sharding *s;
    const sd_shape *local;
    hlo_at at = {c, behind_params(c), p};
    sd_status st;

    if ((st = io_sharding(p, &s)) ||
        (st =
             named(spmd_local_shape(m, p->shape, s, HLO_ALL_ATOMS, &local), p)))
        return st;
    m->param_sharding[i] = s;
    p->sharding = tiles_text(m->arena, s);
    if (hlo_sharding_is_whole(s))
        return NULL;
    x = hlo_inst_create(c, at.before, HLO_COPY, p->shape, 1, &p);
    for (int k = 0; k < p->nuse;) /* what it is summed by may use p itself */
        if (p->user[k] != x)
            hlo_replace_use(p->user[k], p, x);
        else
            k++;
    if (c->root == p)
        hlo_set_root(c, x);
    p->shape = local;
    spmd_set_part(t->flow, x, p,
                  spmd_cuts(m, s, x->shape->rank, HLO_ALL_ATOMS));
    return NULL;
}

static sd_status cut_result(cutter *t, int i, hlo_inst **x)
{
    hlo_module *m = t->m;
    hlo_inst *in = *x;
    bool asked = is_mark(in, "xla.sdy.FuncResultSharding") && in->narg == 1;
    const hlo_sharding *s;
    const sd_shape *local;
    hlo_at at = {m->entry, NULL, in};
    int rank = in->shape->rank;
    sd_status st = NULL;

    if (asked) {
        st = io_sharding(in, &s);
        in = in->arg[0];
    } else if ((s = spmd_part_sharding(t->flow, in))) {
        s = hlo_sharding_unreduced(m, s, 0, HLO_SUM_OF);
    } else {
        s = hlo_sharding_replicated(m, rank);
    }
    if (st ||
        (st = named(spmd_local_shape(m, in->shape, s, HLO_ALL_ATOMS, &local),
                    in)))
        return st;
    m->output_sharding[i] = s;
    if (sd_shape_is_array(in->shape)) {
        in = spmd_as(t->flow, at, in, spmd_cuts(m, s, rank, HLO_ALL_ATOMS));
    }
    *x = in;
    return NULL;
}

static sd_status cut_results(cutter *t)
{
    hlo_module *m = t->m;
    hlo_inst *root = m->entry->root, **x, *to;
    bool tuple = root->shape->dtype == SD_TUPLE;
    int n = tuple ? root->shape->nelem : 1;
    hlo_at end = {m->entry, NULL, NULL};
    sd_status st;

    x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    m->output_sharding = sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    for (int i = 0; i < n; i++) {
        x[i] = spmd_element(t->flow, end, root, i);
        if ((st = cut_result(t, i, &x[i])))
            return st;
    }
    to = tuple ? hlo_make_tuple(end, n, x) : x[0];
    hlo_set_root(m->entry, to);
    hlo_for_each_inst_backward(in, m->entry) /* the marks, and the old tuple */
        if (in->nuse == 0 && in != to &&
            ((in == root && tuple) ||
             is_mark(in, "xla.sdy.FuncResultSharding")))
            hlo_remove(in);
    return NULL;
}

/* A result takes a parameter's memory where both are still of one size.  One
 * that is given for any result, and that none of them can take, stays its
 * owner's. */
static void keep_aliases(hlo_module *m)
{
    const hlo_inst *root = m->entry->root;
    int n = 0, nout = spmd_nresult(root);
    bool *taken = sd_arena_array(m->arena, bool, nout + 1);

    for (int i = 0; i < m->nalias; i++) {
        hlo_alias x = m->alias[i];

        if (sd_shape_bytes(spmd_result(root, (int)x.output_index)) ==
            sd_shape_bytes(m->entry->param[x.param]->shape)) {
            m->alias[n++] = x;
            taken[x.output_index] = true;
        }
    }
    m->nalias = n;
    for (int i = 0; m->donor && i < m->entry->nparam; i++) {
        size_t bytes = sd_shape_bytes(m->entry->param[i]->shape);
        int o = 0;

        while (o < nout &&
               (taken[o] || sd_shape_bytes(spmd_result(root, o)) != bytes))
            o++;
        if (m->donor[i] && o < nout)
            taken[o] = true;
        m->donor[i] &= o < nout;
    }
}

/* ---- all of it ---- */

static sd_status cut_params(cutter *t)
{
    int n = t->m->entry->nparam;
    sd_status st = NULL;

    t->m->param_sharding =
        sd_arena_array(t->m->arena, const hlo_sharding *, n + 1);
    for (int i = 0; i < n && !st; i++)
        st = cut_param(t, i);
    return st;
}

/* Each once: loops and branches cut what they call, for what they give it. */
static sd_status cut_comp(void *ctx, hlo_comp *c)
{
    cutter *t = ctx;
    sd_status st;

    if (sd_map_has(t->done, sd_key(c)))
        return NULL;
    sd_map_set(t->done, sd_key(c), c);
    hlo_for_each_inst(in, c)
        if (in->op != HLO_PARAMETER && !spmd_is_part(t->flow, in) &&
            (st = cut_inst(t, in)))
            return st;
    return NULL;
}

static sd_status cut(hlo_module *m, sd_arena *a)
{
    cutter t = {m, spmd_flow_create(a, m), sd_map_create(a)};
    sd_status st;

    t.flow->ctx = &t;
    t.flow->cut = cut_comp;
    t.flow->mark = guess_mark;
    t.flow->is_mark = says;
    t.flow->asks = asks;
    if ((st = cut_params(&t)))
        return st;
    spmd_want(t.flow, m->entry, NULL);
    if ((st = cut_comp(&t, m->entry)))
        return st;
    hlo_for_each_comp(c, m)
        if ((st = cut_comp(&t, c)))
            return st;
    if ((st = cut_results(&t)))
        return st;
    spmd_settle(t.flow);
    drop_marks(m);
    spmd_combine(m);
    keep_aliases(m);
    return NULL;
}

/* Calls hide from each other what their values are cut by. */
static void inline_calls(hlo_module *m)
{
    hlo_opt_inline(m, NULL);
    hlo_opt_tuple(m, NULL);
    hlo_opt_dce(m, NULL);
}

sd_status hlo_spmd(hlo_module *m, hlo_pass_hook hook, void *ctx)
{
    sd_arena *a;
    sd_status st;

    if (hlo_participants(m) == 1 || m->param_sharding)
        return NULL;
    if (m->nreplica > 1 && m->npartition > 1)
        return sd_error(SD_UNIMPLEMENTED,
                        "%d replicas of %d partitions: a program has one or "
                        "the other",
                        m->nreplica, m->npartition);
    if (!m->mesh && (st = hlo_meshes_read(m)))
        return st;
    inline_calls(m);
    spmd_groups(m);
    if (hook)
        hook(ctx, "spmd-import", m);
    a = sd_arena_create();
    st = cut(m, a);
    sd_arena_destroy(a);
    if (!st && hook)
        hook(ctx, "spmd-local", m);
    return st;
}
