/* The loops of a group: what each takes, makes and gives, and its HLO.  See
 * hlo_opt_slices.c for the idea, and for whether it is worth it. */
#include "slices.h"

#include <assert.h>

enum { MOST_DEPTH = 256 }; /* of a sum that is made again: a head's size */

/* ---- what a loop needs ---- */

static uint64_t key_of(const hlo_inst *in, int dim)
{
    return (uint64_t)in->id * (SD_MAX_RANK + 1) + (uint64_t)(dim + 1);
}

static void note_value(slice_loop *l, hlo_inst *in, int dim)
{
    const slice_node *x = slice_node_of(l->g, in);
    uint64_t key = key_of(in, dim);
    slice_value *v;

    if (slice_is_scalar_constant(in) || sd_map_has(l->seen, key))
        return;
    v = sd_arena_new(l->g->a, slice_value);
    *v = (slice_value){.in = in, .dim = dim};
    v->is_remade = x->remake_depth && (dim < 0 || slice_can_cut(in, dim));
    sd_map_set(l->seen, key, v);
    for (int k = 0; k < in->narg && v->is_remade; k++)
        note_value(l, in->arg[k],
                   dim < 0 ? dim : slice_operand_dim(in, k, dim));
    if (!v->is_remade && dim < 0)
        l->whole += slice_bytes(in);
    *sd_push(l->g->a, &l->value) = v; /* after what it is made from */
}

int64_t slice_depth(const hlo_inst *dot)
{
    hlo_dims d = dot->u.dot->lhs_contract;
    int64_t n = 1;

    for (int i = 0; i < d.n; i++)
        n *= dot->arg[0]->shape->dim[d.at[i]];
    return n;
}

static bool may_make_again(const slice_group *g, const slice_node *x)
{
    return slice_is_large(g, x) && x->dim >= 0 && !x->leaves_loop &&
           x->in->shape->dtype != SD_TUPLE &&
           (x->in->op != HLO_DOT || slice_depth(x->in) <= MOST_DEPTH);
}

/* Operand k of a member that the loop computes. */
static void need_operand(slice_loop *l, const slice_node *x, int k)
{
    hlo_inst *in = x->in->arg[k];
    slice_node *y = slice_node_of(l->g, in);
    int dim = slice_edge(x, k);
    bool inside = y->member && y->dim >= 0 && y->dim == dim;

    if (inside && (y->level == l->level || may_make_again(l->g, y))) {
        y->is_computed = true;
        return;
    }
    y->leaves_loop |= y->member;
    note_value(l, in, dim);
}

static bool is_used_outside(const slice_group *g, const slice_node *x)
{
    if (x->in == g->c->root)
        return true;
    hlo_for_each_user(u, x->in)
        if (!slice_node_of(g, u)->member)
            return true;
    return false;
}

bool slice_leaves(const slice_group *g, const slice_node *x)
{
    return sd_shape_is_array(x->in->shape) &&
           (x->leaves_loop || is_used_outside(g, x));
}

void slice_loop_read(slice_loop *l, slice_group *g, int level)
{
    *l = (slice_loop){.g = g, .level = level, .seen = sd_map_create(g->a)};
    for (int i = 0; i < g->member.n; i++) {
        slice_node *x = g->member.at[i];

        x->is_computed = x->level == level && slice_leaves(g, x);
        if (!x->is_computed)
            continue;
        *sd_push(g->a, &l->out) = x;
        if (x->dim == SLICE_SUM)
            l->sums += slice_bytes(x->in);
    }
    for (int i = g->member.n - 1; i >= 0; i--) {
        slice_node *x = g->member.at[i];

        for (int k = 0; k < x->in->narg && x->is_computed; k++)
            need_operand(l, x, k);
    }
}

/* ---- writing ---- */

static const sd_shape *cut_shape(sd_arena *a, const sd_shape *s, int dim,
                                 int64_t rows)
{
    const sd_shape *e[SD_MAX_RANK];

    if (s->dtype == SD_TUPLE) {
        const sd_shape **to =
            s->nelem <= SD_MAX_RANK
                ? e
                : sd_arena_array(a, const sd_shape *, s->nelem);

        for (int i = 0; i < s->nelem; i++)
            to[i] = cut_shape(a, s->elem[i], dim, rows);
        return sd_shape_tuple(a, s->nelem, to);
    }
    return sd_shape_with_dim(a, s, dim, rows);
}

static sd_arena *arena_of(const slice_loop *l)
{
    return l->g->c->module->arena;
}

static hlo_inst *value_of(slice_loop *l, hlo_inst *in, int dim)
{
    const slice_node *x = slice_node_of(l->g, in);
    slice_value *v;

    if (slice_is_scalar_constant(in))
        return hlo_inst_clone(l->loop.at.c, NULL, in, NULL);
    if (x->member && x->is_computed && x->dim == dim)
        return x->in_turn;
    v = sd_map_get(l->seen, key_of(in, dim));
    assert(v && v->in_turn);
    return v->in_turn;
}

/* Positions of the slice, of an iota along the axis. */
static hlo_inst *cut_iota(slice_loop *l, const sd_shape *s, int dim, sd_dtype t)
{
    hlo_at p = l->loop.at;
    const sd_shape *places =
        sd_shape_with(arena_of(l), s, pass_dtype(l->start));
    hlo_inst *x = hlo_make_iota(p, places, dim);

    x = hlo_make_binary(p, HLO_ADD, x, hlo_make_spread(p, l->start, places));
    return pass_convert(p, t, x);
}

/* in for the slice: dim is the axis in its result. */
static hlo_inst *cut_clone(slice_loop *l, hlo_inst *in, int dim,
                           hlo_inst *const *arg)
{
    const sd_shape *s = cut_shape(arena_of(l), in->shape, dim, l->rows);
    hlo_inst *y;

    if (in->op == HLO_IOTA && in->dims.at[0] == dim)
        return cut_iota(l, s, dim, in->shape->dtype);
    y = hlo_inst_clone(l->loop.at.c, NULL, in, arg);
    y->shape = s;
    if (in->op == HLO_SLICE) {
        y->u.slice.limit =
            sd_arena_copy(arena_of(l), in->u.slice.limit,
                          sizeof(int64_t) * (size_t)in->shape->rank);
        y->u.slice.limit[dim] = l->rows;
    }
    return y;
}

static void make_value(slice_loop *l, slice_value *v)
{
    hlo_inst *arg[3] = {0}, *in = v->in;

    if (!v->is_remade) {
        v->in_turn = l->loop.x[v->at];
        if (v->dim >= 0)
            v->in_turn = pass_slice_at(l->loop.at, v->in_turn, v->dim, l->start,
                                       l->rows);
        return;
    }
    for (int k = 0; k < in->narg; k++)
        arg[k] =
            value_of(l, in->arg[k],
                     v->dim < 0 ? v->dim : slice_operand_dim(in, k, v->dim));
    v->in_turn = v->dim < 0 ? hlo_inst_clone(l->loop.at.c, NULL, in, arg)
                            : cut_clone(l, in, v->dim, arg);
}

/* ---- sums over the axis ---- */

static hlo_op sum_op(const hlo_inst *in)
{
    hlo_op op = HLO_ADD;

    if (in->op == HLO_REDUCE)
        hlo_comp_is_binary(in->comp[0], &op);
    return op;
}

/* x with `none` where the turn before has been. */
static hlo_inst *without_repeats(slice_loop *l, hlo_inst *x, int dim,
                                 hlo_inst *none)
{
    hlo_at p = l->loop.at;
    hlo_inst *at;

    if (!l->repeats)
        return x;
    at = hlo_make_iota(
        p, sd_shape_with(arena_of(l), x->shape, pass_dtype(l->repeats)), dim);
    at = hlo_make_compare(p, HLO_GE, at,
                          hlo_make_spread(p, l->repeats, at->shape));
    return hlo_make_select(p, at, x, hlo_make_spread(p, none, x->shape));
}

static hlo_inst *part_of_sum(slice_loop *l, const slice_node *x,
                             hlo_inst *const *arg)
{
    hlo_at p = l->loop.at;
    sd_dtype t = pass_sum_type(pass_dtype(x->in));
    hlo_op op = sum_op(x->in);
    hlo_inst *y[2];

    if (x->in->op == HLO_REDUCE) {
        y[0] = pass_convert(p, t, arg[0]);
        y[0] = without_repeats(l, y[0], x->over, pass_identity(p, op, t));
        return hlo_make_reduce(p, y[0], pass_identity(p, op, t), x->in->dims.at,
                               x->in->dims.n,
                               hlo_scalar_comp(p.c->module, op, t));
    }
    for (int k = 0; k < 2; k++) /* both: 0 times NaN is NaN */
        y[k] = without_repeats(l, arg[k], slice_edge(x, k),
                               hlo_make_scalar(p, pass_dtype(arg[k]), 0));
    return hlo_make_dot(p, y[0], y[1], t, x->in->u.dot);
}

/* ---- the loop ---- */

static void make_member(slice_loop *l, slice_node *x)
{
    hlo_inst *in = x->in,
             **arg = sd_arena_array(l->g->a, hlo_inst *, in->narg + 1);

    for (int k = 0; k < in->narg; k++)
        arg[k] = in->op == HLO_GET_TUPLE_ELEMENT
                     ? slice_node_of(l->g, in->arg[k])->in_turn
                     : value_of(l, in->arg[k], slice_edge(x, k));
    x->in_turn = x->dim == SLICE_SUM ? part_of_sum(l, x, arg)
                                     : cut_clone(l, in, x->dim, arg);
}

/* Of what the loop starts with: inputs, and where results go. */
static hlo_inst *start_of(hlo_at p, const slice_group *g, const slice_node *x)
{
    const sd_shape *s = x->in->shape;
    hlo_inst *init;

    if (x->dim != SLICE_SUM || x->in->op == HLO_DOT)
        return hlo_make_fill(
            p,
            sd_shape_with(g->c->module->arena, s,
                          x->dim == SLICE_SUM ? pass_sum_type(pass_dtype(x->in))
                                              : s->dtype),
            0);
    init = pass_convert(p, pass_sum_type(pass_dtype(x->in)), x->in->arg[1]);
    return hlo_make_spread(p, init, s);
}

static void open_loop(slice_loop *l, hlo_at p)
{
    slice_group *g = l->g;
    hlo_inst **init =
        sd_arena_array(g->a, hlo_inst *, l->value.n + l->out.n + 1);
    int n = 0;

    for (int i = 0; i < l->value.n; i++) {
        slice_value *v = l->value.at[i];
        hlo_inst *made = slice_node_of(g, v->in)->result;

        if (v->is_remade)
            continue;
        v->at = n;
        init[n++] = made ? made : v->in;
    }
    for (int i = 0; i < l->out.n; i++)
        init[n++] = start_of(p, g, l->out.at[i]);
    matrix_loop_open(&l->loop, p, "slice", n, init);
}

/* Where the turn's slice begins; the last one begins earlier if it has to. */
static void find_start(slice_loop *l)
{
    hlo_at p = l->loop.at;
    int64_t last = l->g->extent - l->rows;
    sd_dtype t = l->turns * l->rows > INT32_MAX ? SD_S64 : SD_S32;
    hlo_inst *at = pass_convert(p, t, l->loop.i);

    if (l->rows > 1)
        at = hlo_make_binary(p, HLO_MULTIPLY, at,
                             hlo_make_scalar_s64(p, t, l->rows));
    l->start = at;
    if (l->g->extent % l->rows == 0)
        return;
    l->start =
        hlo_make_binary(p, HLO_MINIMUM, at, hlo_make_scalar_s64(p, t, last));
    l->repeats = hlo_make_binary(p, HLO_SUBTRACT, at, l->start);
}

static void write_results(slice_loop *l)
{
    for (int i = 0; i < l->out.n; i++) {
        const slice_node *x = l->out.at[i];
        hlo_inst **to = &l->loop.x[l->loop.n - l->out.n + i];

        *to = x->dim == SLICE_SUM
                  ? hlo_make_binary(l->loop.at, sum_op(x->in), *to, x->in_turn)
                  : pass_put_at(l->loop.at, *to, x->in_turn, x->dim, l->start);
    }
}

hlo_comp *slice_loop_write(slice_group *g, int level, int64_t rows)
{
    hlo_at p = {g->c, NULL, g->seed};
    slice_loop l;

    slice_loop_read(&l, g, level);
    if (l.out.n == 0)
        return NULL;
    l.rows = rows;
    l.turns = (g->extent + rows - 1) / rows;
    open_loop(&l, p);
    find_start(&l);
    for (int i = 0; i < l.value.n; i++)
        make_value(&l, l.value.at[i]);
    for (int i = 0; i < g->member.n; i++)
        if (g->member.at[i]->is_computed)
            make_member(&l, g->member.at[i]);
    write_results(&l);
    matrix_loop_close(&l.loop, l.turns);
    for (int i = 0; i < l.out.n; i++) {
        slice_node *x = l.out.at[i];

        x->result = pass_convert(p, pass_dtype(x->in),
                                 l.loop.x[l.loop.n - l.out.n + i]);
    }
    return l.loop.at.c;
}
