/* Large arrays that stand between small ones are computed in slices, in a
 * loop: the scores of attention [B, H, T, T] between q, k, v and the result,
 * the logits of a large vocabulary between activations and a loss.
 *
 * The group.  A large product of small operands, or a large operand of a
 * product, is the seed.  One of its dimensions, the axis, is followed through
 * elementwise operations, broadcasts, transposes, reshapes that keep it,
 * reductions over others, and products of which it is a batch or free
 * dimension: all large values that it reaches are members, and the small ones
 * that are reduced from them, and the short chains of small ones that lead
 * back into the group, as a row's maximum does.  Other operands are the loop's
 * inputs: a turn reads a slice of those that have the axis, the others whole.
 * What is cheap to make from nothing (a causal mask of iotas) is made in the
 * turn.
 *
 * The loops.  A turn computes the members for R positions of the axis, writes
 * what leaves the group in its place, and adds what sums over the axis to what
 * is there: sums of narrow floats in f32, rounded once at the end.  What goes
 * through an instruction outside and comes back is for a second loop, which
 * makes large members again, instead of reading them, if that takes short
 * products: so a gradient has q, k and the numbers of a row where it kept
 * probabilities.
 *
 * The axis.  The outermost that needs no sums and makes nothing again, else
 * that which needs the least.  In the new body the same pass looks again:
 * batch, then head, then rows, until the largest member of a turn is small
 * enough for a cache.  R divides the extent, or the last slice begins earlier:
 * what it repeats is written again, and does not count in sums.
 *
 * All is decided by shapes, so the bits do not depend on the device; and a row
 * is computed as before, so only sums over the axis round otherwise.
 * Needs: dots as the program wrote them (lower-dot merges dimensions). */
#include "matrix.h"
#include "slices.h"

#include <assert.h>

enum {
    LARGE = 1 << 18,   /* elements: a matrix of so many is cut */
    TURN = 1 << 20,    /* of a turn's largest member */
    MOST_DEPTH = 256,  /* of a sum that is made again: a head's size */
    LEAST_SAVED = 2,   /* in slices, and times what goes in and out */
    MOST_CACHED = 8,   /* larger turns, in slices ... */
    MANY_SLICES = 256, /* ... are worth it if so many are saved */
    MOST_TRIED = 256   /* seeds of a computation */
};

typedef struct { /* what a turn has that is no member of its loop */
    hlo_inst *in;
    int dim;
    bool again;     /* made in the turn, else an input */
    int at;         /* inputs: element of the state */
    hlo_inst *copy; /* in the body */
} value;

typedef struct {
    slice_group *g;
    int level;
    sd_map *seen;
    sd_vec(value *) value;
    sd_vec(slice_node *) out;
    size_t whole, sums; /* bytes that every turn reads, or reads and writes */
    int64_t rows, turns;
    matrix_loop loop;
    hlo_inst *start;   /* of the slice */
    hlo_inst *repeats; /* positions that the turn before had; NULL: none */
} slice_loop;

/* Tests say a size, and want all that can be cut to be cut. */
static bool is_told(const hlo_comp *c)
{
    return c->module->slice_size != 0;
}

static int64_t large_size(const hlo_comp *c)
{
    return is_told(c) ? c->module->slice_size : LARGE;
}

/* Elements of a turn's largest member.  More than a cache's worth, since
 * threads meet after each step of a turn; but of a matrix that is large itself,
 * by its two longest dimensions, not more than half. */
static int64_t turn_size(const hlo_inst *seed)
{
    int64_t longest = 1, next = 1;

    if (is_told(seed->parent))
        return large_size(seed->parent);
    for (int i = 0; i < seed->shape->rank; i++) {
        int64_t d = seed->shape->dim[i];

        next = SD_MAX(next, SD_MIN(longest, d));
        longest = SD_MAX(longest, d);
    }
    if (longest * next < LARGE)
        return TURN;
    return SD_MIN(TURN, longest * next / 2);
}

static size_t bytes_of(const hlo_inst *in)
{
    return sd_shape_bytes(slice_shape(in));
}

/* ---- what a loop needs ---- */

static uint64_t key_of(const hlo_inst *in, int dim)
{
    return (uint64_t)in->id * (SD_MAX_RANK + 1) + (uint64_t)(dim + 1);
}

static void note_value(slice_loop *l, hlo_inst *in, int dim)
{
    const slice_node *x = slice_node_of(l->g, in);
    uint64_t key = key_of(in, dim);
    value *v;

    if (slice_is_scalar_constant(in) || sd_map_has(l->seen, key))
        return;
    v = sd_arena_new(l->g->a, value);
    *v = (value){.in = in, .dim = dim};
    v->again = x->again && (dim < 0 || slice_can_cut(in, dim));
    sd_map_set(l->seen, key, v);
    for (int k = 0; k < in->narg && v->again; k++)
        note_value(l, in->arg[k],
                   dim < 0 ? dim : slice_operand_dim(in, k, dim));
    if (!v->again && dim < 0)
        l->whole += bytes_of(in);
    *sd_push(l->g->a, &l->value) = v; /* after what it is made from */
}

static int64_t depth_of(const hlo_inst *dot)
{
    hlo_dims d = dot->u.dot->lhs_contract;
    int64_t n = 1;

    for (int i = 0; i < d.n; i++)
        n *= dot->arg[0]->shape->dim[d.at[i]];
    return n;
}

static bool may_make_again(const slice_group *g, const slice_node *x)
{
    return slice_is_large(g, x) && x->dim >= 0 && !x->wanted &&
           x->in->shape->dtype != SD_TUPLE &&
           (x->in->op != HLO_DOT || depth_of(x->in) <= MOST_DEPTH);
}

/* Operand k of a member that the loop computes. */
static void need_operand(slice_loop *l, const slice_node *x, int k)
{
    hlo_inst *in = x->in->arg[k];
    slice_node *y = slice_node_of(l->g, in);
    int dim = slice_edge(x, k);
    bool inside = y->member && y->dim >= 0 && y->dim == dim;

    if (inside && (y->level == l->level || may_make_again(l->g, y))) {
        y->needed = true;
        return;
    }
    y->wanted |= y->member;
    note_value(l, in, dim);
}

static bool is_used_outside(const slice_group *g, const slice_node *x)
{
    if (x->in == g->c->root)
        return true;
    for (int i = 0; i < x->in->nuse; i++)
        if (!slice_node_of(g, x->in->user[i])->member)
            return true;
    return false;
}

static bool leaves(const slice_group *g, const slice_node *x)
{
    return sd_shape_is_array(x->in->shape) &&
           (x->wanted || is_used_outside(g, x));
}

/* From what leaves the loop back to what it takes. */
static void read_level(slice_loop *l, slice_group *g, int level)
{
    *l = (slice_loop){.g = g, .level = level, .seen = sd_map_create(g->a)};
    for (int i = 0; i < g->member.n; i++) {
        slice_node *x = g->member.at[i];

        x->needed = x->level == level && leaves(g, x);
        if (!x->needed)
            continue;
        *sd_push(g->a, &l->out) = x;
        if (x->dim == SLICE_SUM)
            l->sums += bytes_of(x->in);
    }
    for (int i = g->member.n - 1; i >= 0; i--) {
        slice_node *x = g->member.at[i];

        for (int k = 0; k < x->in->narg && x->needed; k++)
            need_operand(l, x, k);
    }
}

/* ---- is it worth it? ---- */

typedef struct {
    int axis;
    double again;            /* multiplications that are made again */
    size_t sums, whole;      /* of the loop that has the most */
    size_t saved, passed;    /* bytes that are not kept; that go in and out */
    int64_t row;             /* elements of the largest member, a position */
    int64_t rows, nlevel;
} choice;

static double work_of(const hlo_inst *in)
{
    return in->op == HLO_DOT
               ? (double)sd_shape_count(in->shape) * (double)depth_of(in)
               : 0;
}

/* Operands and results of products are in memory, whatever shares kernels. */
static bool is_kept(const slice_group *g, const slice_node *x)
{
    if (x->in->op == HLO_DOT)
        return true;
    for (int i = 0; i < x->in->nuse; i++)
        if (x->in->user[i]->op == HLO_DOT &&
            slice_node_of(g, x->in->user[i])->member)
            return true;
    return false;
}

/* Levels from the last: what they want of earlier ones leaves those. */
static void weigh_levels(slice_group *g, choice *c)
{
    sd_map *seen = sd_map_create(g->a);
    slice_loop l;

    for (int level = g->nlevel - 1; level >= 0; level--) {
        read_level(&l, g, level);
        c->nlevel += l.out.n > 0;
        c->sums = SD_MAX(c->sums, l.sums);
        c->whole = SD_MAX(c->whole, l.whole);
        for (int i = 0; i < g->member.n; i++)
            if (g->member.at[i]->needed && g->member.at[i]->level < level)
                c->again += work_of(g->member.at[i]->in);
        for (int i = 0; i < l.out.n; i++)
            c->passed += bytes_of(l.out.at[i]->in);
        for (int i = 0; i < l.value.n; i++) {
            hlo_inst *in = l.value.at[i]->in;

            if (!l.value.at[i]->again && !sd_map_has(seen, sd_key(in))) {
                sd_map_set(seen, sd_key(in), in);
                c->passed += bytes_of(in);
            }
        }
    }
}

/* Not so few positions that reading the whole arrays again in each turn takes
 * more than is saved. */
static double least_rows(const choice *c, int64_t extent)
{
    double again = (double)c->whole + 2.0 * (double)c->sums;
    double saved = (double)c->saved / (double)SD_MAX(c->nlevel, 1);

    return saved > 0 ? (double)extent * again / saved : (double)extent;
}

static void weigh(slice_group *g, int axis, choice *c)
{
    double rows;

    *c = (choice){.axis = axis};
    weigh_levels(g, c);
    for (int i = 0; i < g->member.n; i++) {
        const slice_node *x = g->member.at[i];

        if (!slice_is_large(g, x) || x->dim < 0)
            continue;
        c->row = SD_MAX(c->row, x->count / g->extent);
        if (is_kept(g, x) && !leaves(g, x))
            c->saved += bytes_of(x->in);
    }
    rows = (double)turn_size(g->seed) / (double)SD_MAX(c->row, 1);
    rows = SD_MAX(rows, least_rows(c, g->extent));
    c->rows = SD_MIN((int64_t)SD_MIN(rows, 1e9), g->extent / 2);
    c->rows = SD_MAX(c->rows, 1);
}

static bool is_worth(const choice *c, const slice_group *g, bool inside)
{
    int64_t turn = c->row * c->rows, slice = large_size(g->c);
    size_t most = sizeof(float) * (size_t)slice;

    if (is_told(g->c))
        return c->nlevel > 0;
    if ((double)c->rows < least_rows(c, g->extent) || c->nlevel == 0)
        return false;
    if (turn > MOST_CACHED * slice && c->saved < MANY_SLICES * most)
        return false;
    return inside || (c->saved >= LEAST_SAVED * most &&
                      c->saved >= LEAST_SAVED * c->passed);
}

static bool is_better(const choice *x, const choice *y)
{
    if (x->again != y->again)
        return x->again < y->again;
    return x->sums < y->sums;
}

/* ---- writing ---- */

static const sd_shape *cut_shape(sd_arena *a, const sd_shape *s, int dim,
                                 int64_t rows)
{
    int64_t d[SD_MAX_RANK];
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
    memcpy(d, s->dim, sizeof *d * (size_t)s->rank);
    d[dim] = rows;
    return sd_shape_make(a, s->dtype, s->rank, d);
}

static sd_arena *arena_of(const slice_loop *l)
{
    return l->g->c->module->arena;
}

static hlo_inst *value_of(slice_loop *l, hlo_inst *in, int dim)
{
    const slice_node *x = slice_node_of(l->g, in);
    value *v;

    if (slice_is_scalar_constant(in))
        return hlo_inst_clone(l->loop.at.c, NULL, in, NULL);
    if (x->member && x->needed && x->dim == dim)
        return x->copy;
    v = sd_map_get(l->seen, key_of(in, dim));
    assert(v && v->copy);
    return v->copy;
}

/* Positions of the slice, of an iota along the axis. */
static hlo_inst *cut_iota(slice_loop *l, const sd_shape *s, int dim, sd_dtype t)
{
    hlo_at p = l->loop.at;
    const sd_shape *places = sd_shape_with(arena_of(l), s, SD_S32);
    hlo_inst *x = hlo_make_iota(p, places, dim);

    x = hlo_make_binary(p, HLO_ADD, x, pass_spread(p, l->start, places));
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

static void make_value(slice_loop *l, value *v)
{
    hlo_inst *arg[3] = {0}, *in = v->in;

    if (!v->again) {
        v->copy = l->loop.x[v->at];
        if (v->dim >= 0)
            v->copy =
                pass_slice_at(l->loop.at, v->copy, v->dim, l->start, l->rows);
        return;
    }
    for (int k = 0; k < in->narg; k++)
        arg[k] =
            value_of(l, in->arg[k],
                     v->dim < 0 ? v->dim : slice_operand_dim(in, k, v->dim));
    v->copy = v->dim < 0 ? hlo_inst_clone(l->loop.at.c, NULL, in, arg)
                         : cut_clone(l, in, v->dim, arg);
}

/* ---- sums over the axis ---- */

static sd_dtype sum_type(const hlo_inst *in)
{
    sd_dtype t = pass_dtype(in);

    return pass_is_narrow(t) ? SD_F32 : t;
}

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
    at = hlo_make_iota(p, sd_shape_with(arena_of(l), x->shape, SD_S32), dim);
    at = hlo_make_compare(p, HLO_GE, at, pass_spread(p, l->repeats, at->shape));
    return hlo_make_select(p, at, x, pass_spread(p, none, x->shape));
}

static hlo_inst *part_of_sum(slice_loop *l, const slice_node *x,
                             hlo_inst *const *arg)
{
    hlo_at p = l->loop.at;
    sd_dtype t = sum_type(x->in);
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
                     ? slice_node_of(l->g, in->arg[k])->copy
                     : value_of(l, in->arg[k], slice_edge(x, k));
    x->copy = x->dim == SLICE_SUM ? part_of_sum(l, x, arg)
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
                          x->dim == SLICE_SUM ? sum_type(x->in) : s->dtype),
            0);
    init = pass_convert(p, sum_type(x->in), x->in->arg[1]);
    return pass_spread(p, init, s);
}

static void open_loop(slice_loop *l, hlo_at p)
{
    slice_group *g = l->g;
    hlo_inst **init =
        sd_arena_array(g->a, hlo_inst *, l->value.n + l->out.n + 1);
    int n = 0;

    for (int i = 0; i < l->value.n; i++) {
        value *v = l->value.at[i];
        hlo_inst *made = slice_node_of(g, v->in)->out;

        if (v->again)
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
    hlo_inst *at = l->loop.i;

    if (l->rows > 1)
        at = hlo_make_binary(p, HLO_MULTIPLY, at,
                             hlo_make_scalar_s64(p, SD_S32, l->rows));
    l->start = at;
    if (l->g->extent % l->rows == 0)
        return;
    l->start = hlo_make_binary(p, HLO_MINIMUM, at,
                               hlo_make_scalar_s64(p, SD_S32, last));
    l->repeats = hlo_make_binary(p, HLO_SUBTRACT, at, l->start);
}

static void write_results(slice_loop *l)
{
    for (int i = 0; i < l->out.n; i++) {
        const slice_node *x = l->out.at[i];
        hlo_inst **to = &l->loop.x[l->loop.n - l->out.n + i];

        *to = x->dim == SLICE_SUM
                  ? hlo_make_binary(l->loop.at, sum_op(x->in), *to, x->copy)
                  : pass_put_at(l->loop.at, *to, x->copy, x->dim, l->start);
    }
}

static hlo_comp *write_loop(slice_group *g, int level, int64_t rows)
{
    hlo_at p = {g->c, NULL, g->seed};
    slice_loop l;

    read_level(&l, g, level);
    if (l.out.n == 0)
        return NULL;
    l.rows = rows;
    l.turns = (g->extent + rows - 1) / rows;
    open_loop(&l, p);
    find_start(&l);
    for (int i = 0; i < l.value.n; i++)
        make_value(&l, l.value.at[i]);
    for (int i = 0; i < g->member.n; i++)
        if (g->member.at[i]->needed)
            make_member(&l, g->member.at[i]);
    write_results(&l);
    matrix_loop_close(&l.loop, l.turns);
    for (int i = 0; i < l.out.n; i++) {
        slice_node *x = l.out.at[i];

        x->out = pass_convert(p, pass_dtype(x->in),
                              l.loop.x[l.loop.n - l.out.n + i]);
    }
    return l.loop.at.c;
}

/* A divisor near `want`, or slices that repeat as little as can be. */
static int64_t even_rows(int64_t extent, int64_t want)
{
    int64_t turns;

    for (int64_t r = want; 2 * r > want; r--)
        if (extent % r == 0)
            return r;
    turns = (extent + want - 1) / want;
    return (extent + turns - 1) / turns;
}

typedef sd_vec(hlo_comp *) work_list;

static void write_loops(slice_group *g, const choice *c, sd_arena *a,
                        work_list *work)
{
    int64_t rows = even_rows(g->extent, c->rows);

    for (int level = 0; level < g->nlevel; level++) {
        hlo_comp *body = write_loop(g, level, rows);

        if (body && rows == 1) /* else a turn is as small as it should be */
            *sd_push(a, work) = body;
    }
    for (int i = 0; i < g->member.n; i++)
        if (g->member.at[i]->out)
            hlo_replace(g->member.at[i]->in, g->member.at[i]->out);
    for (int i = g->member.n - 1; i >= 0; i--) {
        hlo_inst *in = g->member.at[i]->in;

        if (in->nuse == 0 && in != g->c->root)
            hlo_remove(in);
    }
    hlo_comp_sort(g->c);
}

/* ---- looking for groups ---- */

/* What is only moved or repeated, as the keys of a group of heads are, a
 * product may read where it is. */
static bool is_computed(const hlo_inst *in)
{
    if (in->op == HLO_CONVERT)
        in = in->arg[0];
    return hlo_info(in)->cls <= HLO_C_COMPARE;
}

/* A large product of small arrays, or a large operand of a product. */
static bool is_seed(const hlo_inst *in, bool inside)
{
    int64_t n, around = 0;

    if (!sd_shape_is_array(in->shape))
        return false;
    n = sd_shape_count(in->shape);
    if (n < large_size(in->parent) || (inside && n <= turn_size(in)))
        return false;
    if (in->op == HLO_DOT)
        return is_told(in->parent) || n > sd_shape_count(in->arg[0]->shape) +
                                              sd_shape_count(in->arg[1]->shape);
    if (!is_computed(in))
        return false;
    for (int i = 0; i < in->nuse; i++) {
        const hlo_inst *u = in->user[i];

        if (u->op != HLO_DOT)
            continue;
        around = sd_shape_count(u->shape) +
                 sd_shape_count(u->arg[u->arg[0] == in]->shape);
        if (n > around || is_told(in->parent))
            return true;
    }
    return false;
}

static bool slice_seed(sd_arena *all, hlo_inst *seed, bool inside,
                       work_list *work)
{
    sd_arena *a = sd_arena_create();
    choice best = {.axis = -1}, c;
    slice_group g;

    slice_group_open(&g, a, seed);
    for (int axis = 0; axis < seed->shape->rank; axis++) {
        if (!slice_group_grow(&g, axis))
            continue;
        weigh(&g, axis, &c);
        if (is_worth(&c, &g, inside) && (best.axis < 0 || is_better(&c, &best)))
            best = c;
    }
    if (best.axis >= 0 && slice_group_grow(&g, best.axis)) {
        weigh(&g, best.axis, &c); /* what leaves which loop */
        write_loops(&g, &best, all, work);
    }
    sd_arena_destroy(a);
    return best.axis >= 0;
}

static bool slice_comp(sd_arena *a, hlo_comp *c, bool inside, work_list *work)
{
    sd_map *tried = sd_map_create(a);
    bool changed = false, more = true;
    int ntried = 0;

    while (more) {
        more = false;
        hlo_for_each_inst(in, c) {
            if (ntried > MOST_TRIED || !is_seed(in, inside) ||
                sd_map_has(tried, (uint64_t)in->id))
                continue;
            ntried++;
            sd_map_set(tried, (uint64_t)in->id, in);
            more = slice_seed(a, in, inside, work);
            if (more)
                break; /* the list has changed */
        }
        changed |= more;
    }
    return changed;
}

bool hlo_opt_slices(hlo_module *m, const device_desc *dev)
{
    sd_arena *a = sd_arena_create();
    work_list work = {0};
    bool changed = false;

    (void)dev;
    if (!m->made[HLO_DOT]) {
        sd_arena_destroy(a);
        return false;
    }
    hlo_for_each_comp(c, m)
        *sd_push(a, &work) = c;
    int outside = work.n;

    for (int i = 0; i < work.n; i++)
        changed |= slice_comp(a, work.at[i], i >= outside, &work);
    sd_arena_destroy(a);
    return changed;
}
