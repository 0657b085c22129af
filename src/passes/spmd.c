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

/* ---- what marks ask for, and one instruction ---- */

/* A call that is one participant's alone (a host callback). */
static sd_status single(hlo_inst *in)
{
    const hlo_sharding *s = NULL;
    bool has;
    sd_status st = spmd_read_list(in, "xla.sdy.sharding", 1, &s, &has);

    if (!st && !has && in->sharding &&
        strncmp(in->sharding, "{maximal", 8) == 0)
        st = spmd_named(hlo_sharding_read(in->parent->module, in->sharding,
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
        st = spmd_named(hlo_sharding_read(m, text, rank, out), in);
    return st;
}

static sd_status io_sharding(const hlo_inst *in, const hlo_sharding **out)
{
    sd_status st = own_sharding(in, out);

    if (!st && (*out)->single >= 0)
        st = spmd_named(sd_error(SD_UNIMPLEMENTED,
                                 "an array of one participant alone among the "
                                 "program's arguments or results"),
                        in);
    return st;
}

/* In programs without Shardy a constraint in front of a manual computation is
 * what its border reads. */
static bool is_operand_of_border(const hlo_inst *in)
{
    hlo_for_each_user(u, in)
        if (spmd_mark_of(u) == SPMD_INTO_TILES)
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

/* The part that a constraint asks for; what it leaves open stays as it is.
 * False: nothing is asked for. */
static sd_status asked_for(const hlo_inst *in, const hlo_sharding *now,
                           const hlo_sharding **out, bool *asks)
{
    hlo_module *m = in->parent->module;
    const hlo_sharding *s;
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
    *asks = !(open && now);
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
    switch (spmd_mark_of(in)) {
    case SPMD_INTO:
    case SPMD_OUT:
    case SPMD_INTO_TILES:
    case SPMD_OUT_TILES:
        return spmd_border(t->flow, in);
    case SPMD_CONSTRAINT:
        if (!is_operand_of_border(in))
            return constraint(t, in);
        break;
    case SPMD_RESULT:
        return NULL;
    case SPMD_SAME:
        pass_replace(in, in->arg[0]);
        return NULL;
    case SPMD_NO_MARK:
        break;
    }
    if (spmd_apply(t->flow, in))
        return NULL;
    for (int i = 0; i < in->narg; i++)
        hlo_set_arg(in, i, spmd_whole(t->flow, in->arg[i]));
    return strcmp(in->u.custom->target, HLO_RAGGED_TARGET) == 0
               ? spmd_ragged(in)
               : single(in);
}

/* What a mark will be had by, for guesses: errors are found when it is cut. */
static bool guess_mark(const hlo_inst *in, int i, const hlo_sharding *now,
                       const hlo_sharding **out)
{
    const hlo_sharding *s;
    bool has;
    sd_status st;

    *out = now;
    switch (spmd_mark_of(in)) {
    case SPMD_INTO:
    case SPMD_OUT:
        *out = spmd_guess_border(in, i, now);
        return true;
    case SPMD_CONSTRAINT:
        st = asked_for(in, now, &s, &has);
        if (st || (has && hlo_sharding_is_whole(s)))
            *out = NULL;
        else if (has)
            *out = s;
        sd_status_free(st);
        return true;
    case SPMD_SAME:
        return true;
    default:
        return false;
    }
}

static bool says(const hlo_inst *in)
{
    spmd_mark mark = spmd_mark_of(in);

    return mark && mark != SPMD_INTO_TILES && mark != SPMD_OUT_TILES;
}

/* What a mark wants its operand in. */
static bool asks(const hlo_inst *in, int k, const hlo_sharding *now,
                 const hlo_sharding **out)
{
    const hlo_sharding *s;
    bool has = true;
    sd_status st;

    *out = NULL;
    switch (spmd_mark_of(in)) {
    case SPMD_INTO:
    case SPMD_OUT:
        return spmd_border_asks(in, k, out);
    case SPMD_RESULT:
        st = own_sharding(in, &s);
        break;
    case SPMD_CONSTRAINT:
        st = asked_for(in, now, &s, &has);
        break;
    default:
        return false;
    }
    if (!st && has && sd_shape_is_array(in->arg[k]->shape))
        *out = spmd_cuts(in->parent->module, s, in->arg[k]->shape->rank,
                         HLO_ALL_ATOMS);
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
            if (in->op == HLO_CUSTOM_CALL &&
                strcmp(in->u.custom->target, "Sharding") == 0 &&
                in->narg == 1 && sd_shape_equal(in->shape, in->arg[0]->shape))
                pass_replace(in, in->arg[0]);
        }
}

/* ---- the entry ---- */

static const char *tiles_text(sd_arena *a, const hlo_sharding *s)
{
    sd_buf b = {.arena = a};

    hlo_sharding_tiles(&b, s);
    return sd_buf_take(&b);
}

/* After all parameters, so that they stay in front. */
static hlo_inst *behind_params(const hlo_comp *c)
{
    hlo_inst *in = c->first;

    while (in && in->op == HLO_PARAMETER)
        in = in->next;
    return in;
}

/* Is the i-th left open, where there is no list as they are without one? */
static bool is_open(hlo_dims list, int i, bool without)
{
    if (list.n <= 1)
        return list.n ? list.at[0] : without;
    return i < list.n && list.at[i];
}

static bool has_sharding(const hlo_module *m, const hlo_inst *in)
{
    return in->sharding ||
           hlo_attribute(m->arena, in->frontend_attrs, "xla.sdy.sharding");
}

static sd_status cut_param(cutter *t, int i, const hlo_sharding *s)
{
    hlo_module *m = t->m;
    hlo_comp *c = m->entry;
    hlo_inst *p = c->param[i], *x;
    const sd_shape *local;
    hlo_at at = {c, behind_params(c), p};
    sd_status st =
        spmd_named(spmd_local_shape(m, p->shape, s, HLO_ALL_ATOMS, &local), p);

    if (st)
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

/* What a result that was left open is had in, but where that is for the sake of
 * the operation that gives it alone. */
static const hlo_sharding *open_sharding(const spmd_flow *f, const hlo_inst *in)
{
    const spmd_part *x = spmd_part_of(f, in);

    return x && x->by_itself ? x->by_itself : spmd_part_sharding(f, in);
}

static sd_status cut_result(cutter *t, int i, hlo_inst **x)
{
    hlo_module *m = t->m;
    hlo_inst *in = *x;
    bool asked = spmd_mark_of(in) == SPMD_RESULT && in->narg == 1;
    bool open = is_open(m->open_output, i, true);
    const hlo_sharding *s;
    const sd_shape *local;
    hlo_at at = {m->entry, NULL, in};
    int rank = in->shape->rank;
    sd_status st = NULL;

    if (asked) {
        st = io_sharding(in, &s);
        in = in->arg[0];
    } else if (open && (s = open_sharding(t->flow, in))) {
        s = spmd_evenly(m, in->shape,
                        hlo_sharding_unreduced(m, s, 0, HLO_SUM_OF));
    } else {
        s = hlo_sharding_replicated(m, rank);
    }
    if (st ||
        (st = spmd_named(
             spmd_local_shape(m, in->shape, s, HLO_ALL_ATOMS, &local), in)))
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
    int n = hlo_nresult(root);
    hlo_at end = {m->entry, NULL, NULL};
    sd_status st;

    x = sd_arena_array(m->arena, hlo_inst *, n + 1);
    m->output_sharding = sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    for (int i = 0; i < n; i++) {
        x[i] = spmd_element(t->flow, end, root, i);
        if ((st = cut_result(t, i, &x[i])))
            return st;
    }
    to = pass_results(end, root->shape, x);
    hlo_set_root(m->entry, to);
    hlo_for_each_inst_backward(in, m->entry) /* the marks, and the old tuple */
        if (in->nuse == 0 && in != to &&
            ((in == root && in->shape->dtype == SD_TUPLE) ||
             spmd_mark_of(in) == SPMD_RESULT))
            hlo_remove(in);
    return NULL;
}

/* A result takes a parameter's memory where both are still of one size.  One
 * that is given for any result, and that none of them can take, stays its
 * owner's. */
static void keep_aliases(hlo_module *m)
{
    const hlo_inst *root = m->entry->root;
    int n = 0, nout = hlo_nresult(root);
    bool *taken = sd_arena_array(m->arena, bool, nout + 1);

    for (int i = 0; i < m->nalias; i++) {
        hlo_alias x = m->alias[i];

        if (sd_shape_bytes(hlo_result_shape(root, (int)x.output_index)) ==
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
               (taken[o] || sd_shape_bytes(hlo_result_shape(root, o)) != bytes))
            o++;
        if (m->donor[i] && o < nout)
            taken[o] = true;
        m->donor[i] &= o < nout;
    }
}

/* ---- all of it ---- */

static sd_status cut_params(cutter *t)
{
    hlo_module *m = t->m;
    int n = m->entry->nparam;
    const hlo_sharding *s;
    sd_status st = NULL;

    m->param_sharding = sd_arena_array(m->arena, const hlo_sharding *, n + 1);
    for (int i = 0; i < n && !st; i++)
        if (!(st = io_sharding(m->entry->param[i], &s)))
            st = cut_param(t, i, s);
    return st;
}

/* Parameters that are left open come as all who read them want them. */
static sd_status cut_open_params(cutter *t, const bool *open)
{
    hlo_module *m = t->m;
    bool any = false;
    sd_status st = NULL;

    for (int i = 0; i < m->entry->nparam && !st; i++) {
        const hlo_inst *p = m->entry->param[i];
        const hlo_sharding *s = open[i] ? spmd_wanted(t->flow, p) : NULL;
        const sd_shape *local;
        sd_status odd =
            s ? spmd_local_shape(m, p->shape, s, HLO_ALL_ATOMS, &local) : NULL;

        if (s && !odd) {
            st = cut_param(t, i, s);
            any = true;
        }
        sd_status_free(odd);
    }
    if (any && !st)
        spmd_want(t->flow, m->entry, NULL);
    return st;
}

static const bool *open_params(const hlo_module *m)
{
    int n = m->entry->nparam;
    bool *open = sd_arena_array(m->arena, bool, n + 1);

    for (int i = 0; i < n; i++)
        open[i] = is_open(m->open_param, i, false) &&
                  !has_sharding(m, m->entry->param[i]);
    return open;
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

static const spmd_owner owner = {
    .cut = cut_comp, .is_mark = says, .guess_mark = guess_mark, .asks = asks};

static sd_status cut(hlo_module *m, sd_arena *a)
{
    cutter t = {m, spmd_flow_create(a, m), sd_map_create(a)};
    const bool *open;
    sd_status st;

    t.flow->owner = &owner;
    t.flow->ctx = &t;
    open = open_params(m);
    if ((st = cut_params(&t)))
        return st;
    spmd_want(t.flow, m->entry, NULL);
    if ((st = cut_open_params(&t, open)))
        return st;
    if ((st = cut_comp(&t, m->entry)))
        return st;
    hlo_for_each_comp(c, m)
        if ((st = cut_comp(&t, c)))
            return st;
    if ((st = cut_results(&t)))
        return st;
    spmd_settle(t.flow);
    drop_marks(m);
    hlo_opt_dce(m); /* slices whose source was taken in their place */
    hlo_opt_cse(m); /* two who want the same of others ask once */
    spmd_combine(m);
    keep_aliases(m);
    m->open_param = m->open_output = (hlo_dims){0};
    return NULL;
}

/* Calls hide from each other what their values are cut by. */
static void inline_calls(hlo_module *m)
{
    hlo_opt_inline(m);
    pass_rewrite(m, HLO_OP_COUNT, hlo_opt_tuple);
    hlo_opt_dce(m);
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
    spmd_updates(m);
    if (hook)
        hook(ctx, "spmd-import", m);
    a = sd_arena_create();
    st = cut(m, a);
    sd_arena_destroy(a);
    if (!st && hook)
        hook(ctx, "spmd-local", m);
    return st;
}
