/* Windows:
 *   - a reduce-window that runs over all that came before is a scan;
 *   - where a reduce-window reaches past its operand, or into the holes of a
 *     dilation, there is nothing to combine.  Plan fills such places with the
 *     initial value, so that one becomes the combiner's identity and the
 *     program's own joins the result; a combiner without one gets a flag
 *     beside its values that says whether there is any;
 *   - select-and-scatter is first a reduce-window that finds, for each window,
 *     the flat position of what select chooses (-1: nothing but padding), then
 *     either, for windows of few positions, one step a position k: where the
 *     source spread by the stride and moved by k says that its window chose
 *     this very element, the scatter function takes it in; or a scatter by
 *     flat position.  Both in the order of the windows, so sums have one
 *     order. */
#include "terms.h"

enum { MAX_POSITIONS = 128 };

/* A window goes forward, a scan in reverse comes from the other end. */
static hlo_comp *function_of(hlo_inst *in, bool reverse)
{
    hlo_comp *c = in->comp[0];

    return reverse && !pass_commutes(c) ? pass_swapped(c) : c;
}

static hlo_inst *lower_cumulative(hlo_inst *in)
{
    int64_t dim;
    bool reverse;
    hlo_comp *c;
    hlo_inst *x;

    if (!hlo_is_cumulative(in, &dim, &reverse))
        return NULL;
    x = hlo_inst_create(in->parent, in, HLO_SCAN, in->shape, in->narg, in->arg);
    hlo_take_source(x, in);
    x->u.scan.dim = dim;
    x->u.scan.reverse = reverse;
    c = function_of(in, reverse);
    hlo_set_comps(x, 1, &c);
    return x;
}

/* ---- nothing under a part of the window ---- */

static bool reaches_outside(const hlo_inst *in)
{
    for (int i = 0; i < in->u.window.n; i++) {
        const hlo_window_dim *w = &in->u.window.dim[i];

        if (w->pad_low > 0 || w->pad_high > 0 || w->base_dilation > 1)
            return true;
    }
    return false;
}

/* 0 serves as -0 does: it is what a sum starts from. */
static bool is_identity(hlo_inst *init, hlo_op op)
{
    double v;

    if (op == HLO_ADD && hlo_is_scalar_const(init, &v) && v == 0)
        return true;
    if (init->op != HLO_CONSTANT || !pass_has_identity(op, pass_dtype(init)))
        return false;
    hlo_inst *id = pass_identity(pass_at(init), op, pass_dtype(init));
    bool same = !memcmp(id->u.literal.data, init->u.literal.data,
                        init->u.literal.bytes);

    hlo_remove(id);
    return same;
}

static hlo_inst *window_like(hlo_inst *in, const sd_shape *s, int narg,
                             hlo_inst *const *arg, hlo_comp *c)
{
    hlo_inst *y =
        hlo_inst_create(in->parent, in, HLO_REDUCE_WINDOW, s, narg, arg);

    y->u.window = in->u.window;
    hlo_take_source(y, in);
    hlo_set_comps(y, 1, &c);
    return y;
}

static const sd_shape *flag_shape(hlo_inst *like)
{
    return sd_shape_make(like->parent->module->arena, SD_PRED,
                         like->shape->rank, like->shape->dim);
}

/* Result i of a computation of n; a lone one is no tuple. */
static hlo_inst *part(hlo_at p, hlo_inst *x, int n, int i)
{
    return n > 1 ? hlo_make_gte(p, x, i) : x;
}

/* (acc.., any, x.., is): f of both where both are there */
static hlo_comp *flagged(hlo_inst *in, int n)
{
    hlo_module *m = in->parent->module;
    hlo_comp *c = hlo_comp_create(m, "flagged");
    hlo_at p = {c, NULL, NULL};
    hlo_inst **arg = sd_arena_array(m->arena, hlo_inst *, 2 * n);
    hlo_inst **out = sd_arena_array(m->arena, hlo_inst *, n + 1);
    const sd_shape *pred = sd_shape_make(m->arena, SD_PRED, 0, NULL);
    hlo_inst *flag[2], *both;

    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < n; i++)
            arg[side * n + i] =
                hlo_make_param(c, in->arg[n + i]->shape, side ? "x" : "acc");
        flag[side] = hlo_make_param(c, pred, side ? "is" : "any");
    }
    both = pass_splice(p, in->comp[0], arg);
    for (int i = 0; i < n; i++) {
        hlo_inst *y = t_pick(p, flag[0], part(p, both, n, i), arg[n + i]);

        out[i] = t_pick(p, flag[1], y, arg[i]);
    }
    out[n] = t_or(p, flag[0], flag[1]);
    hlo_set_root(c, hlo_make_tuple(p, n + 1, out));
    return c;
}

/* The initial values are joined to what a window gives, if it gives any. */
static hlo_inst *join_start(hlo_inst *in, int n, hlo_inst *y)
{
    hlo_at p = pass_at(in);
    sd_arena *a = in->parent->module->arena;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, 2 * n), *both;
    hlo_inst **out = sd_arena_array(a, hlo_inst *, n), *any;

    any = hlo_make_gte(p, y, n);
    for (int i = 0; i < n; i++) {
        arg[n + i] = hlo_make_gte(p, y, i);
        arg[i] = hlo_make_spread(p, in->arg[n + i], arg[n + i]->shape);
    }
    both = pass_vectorize(p, in->comp[0], arg, arg[0]->shape);
    for (int i = 0; i < n; i++)
        out[i] = t_pick(p, any, part(p, both, n, i), arg[i]);
    return n > 1 ? hlo_make_tuple(p, n, out) : out[0];
}

static hlo_inst *lower_flagged(hlo_inst *in)
{
    int n = in->narg / 2;
    sd_arena *a = in->parent->module->arena;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, in->narg + 2);
    const sd_shape **s = sd_arena_array(a, const sd_shape *, n + 1);
    hlo_at p = pass_at(in);

    for (int i = 0; i < n; i++) {
        arg[i] = in->arg[i];
        arg[n + 1 + i] = in->arg[n + i];
        s[i] = n > 1 ? in->shape->elem[i] : in->shape;
    }
    s[n] = sd_shape_make(a, SD_PRED, s[0]->rank, s[0]->dim);
    arg[n] = hlo_make_fill_s64(p, flag_shape(in->arg[0]), SD_PRED, 1);
    arg[2 * n + 1] = hlo_make_scalar_s64(p, SD_PRED, 0);
    return join_start(in, n,
                      window_like(in, sd_shape_tuple(a, n + 1, s), 2 * n + 2,
                                  arg, flagged(in, n)));
}

/* Windows over an operand without elements. */
static hlo_inst *only_start(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    int n = in->narg / 2;
    hlo_inst **out = sd_arena_array(in->parent->module->arena, hlo_inst *, n);

    for (int i = 0; i < n; i++)
        out[i] = hlo_make_spread(p, in->arg[n + i],
                                 n > 1 ? in->shape->elem[i] : in->shape);
    return n > 1 ? hlo_make_tuple(p, n, out) : out[0];
}

static hlo_inst *lower_outside(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *arg[2], *y;
    hlo_op op;

    if (sd_shape_count(in->arg[0]->shape) == 0)
        return only_start(in);
    if (!reaches_outside(in))
        return NULL;
    if (in->narg == 2 && hlo_comp_is_binary(in->comp[0], &op)) {
        if (is_identity(in->arg[1], op))
            return NULL;
        if (pass_has_identity(op, pass_dtype(in))) {
            arg[0] = in->arg[0];
            arg[1] = pass_identity(p, op, pass_dtype(in));
            y = window_like(in, in->shape, 2, arg, in->comp[0]);
            return hlo_make_binary(
                p, op, hlo_make_spread(p, in->arg[1], in->shape), y);
        }
    }
    if (!pass_can_vectorize(in->comp[0]))
        return NULL;
    return lower_flagged(in);
}

static hlo_inst *lower_reduce_window(hlo_inst *in)
{
    hlo_inst *to = lower_cumulative(in);

    return to ? to : lower_outside(in);
}

/* ---- select-and-scatter ---- */

/* (value, at, new value, new at): keep what select says, never padding */
static hlo_comp *choose(hlo_module *m, hlo_comp *select, sd_dtype t,
                        sd_dtype index)
{
    hlo_comp *c = hlo_comp_create(m, "choose");
    const sd_shape *s = sd_shape_make(m->arena, t, 0, NULL);
    const sd_shape *i = sd_shape_make(m->arena, index, 0, NULL);
    hlo_inst *x = hlo_make_param(c, s, "x"), *at = hlo_make_param(c, i, "at");
    hlo_inst *y = hlo_make_param(c, s, "y"), *by = hlo_make_param(c, i, "by");
    hlo_at p = {c, NULL, NULL};
    hlo_inst *none = hlo_make_scalar_s64(p, index, 0);
    hlo_inst *is_new = t_is(p, HLO_GE, by, none);
    hlo_inst *is_first = t_is(p, HLO_LT, at, none);
    hlo_inst *arg[] = {x, y}, *out[2];
    hlo_inst *stay = pass_splice(p, select, arg);
    hlo_inst *take = t_unary(p, HLO_NOT, stay);

    take = t_or(p, is_first, take);
    take = t_and(p, is_new, take);
    out[0] = t_pick(p, take, y, x);
    out[1] = t_pick(p, take, by, at);
    hlo_set_root(c, hlo_make_tuple(p, 2, out));
    return c;
}

/* For each window the flat position of what it chose. */
static hlo_inst *chosen(hlo_inst *in, hlo_inst *flat, sd_dtype index)
{
    hlo_at p = pass_at(in);
    hlo_module *m = in->parent->module;
    hlo_inst *x = in->arg[0], *w;
    hlo_inst *arg[] = {x, flat, hlo_make_scalar(p, pass_dtype(x), 0),
                       hlo_make_scalar_s64(p, index, -1)};
    const sd_shape *e[] = {
        sd_shape_with(m->arena, in->arg[1]->shape, pass_dtype(x)),
        sd_shape_with(m->arena, in->arg[1]->shape, index)};
    hlo_comp *body = choose(m, in->comp[0], pass_dtype(x), index);

    w = hlo_inst_create(in->parent, in, HLO_REDUCE_WINDOW,
                        sd_shape_tuple(m->arena, 2, e), 4, arg);
    hlo_take_source(w, in);
    w->u.window.dim = in->u.window.dim;
    w->u.window.n = in->u.window.n;
    hlo_set_comps(w, 1, &body);
    return hlo_make_gte(p, w, 1);
}

/* x (one element a window) where window position k of each falls. */
static hlo_inst *place(hlo_inst *in, hlo_inst *x, hlo_inst *fill,
                       const int64_t *k)
{
    int64_t low[SD_MAX_RANK], high[SD_MAX_RANK], inner[SD_MAX_RANK];

    for (int i = 0; i < in->u.window.n; i++) {
        const hlo_window_dim *w = &in->u.window.dim[i];
        int64_t n = x->shape->dim[i];

        low[i] = k[i] * w->window_dilation - w->pad_low;
        inner[i] = w->stride - 1;
        high[i] = in->shape->dim[i] - low[i] - ((n - 1) * w->stride + 1);
    }
    return hlo_make_pad(pass_at(in), x, fill, low, high, inner);
}

static hlo_inst *gather_form(hlo_inst *in, hlo_inst *flat, hlo_inst *at,
                             int64_t positions)
{
    hlo_at p = pass_at(in);
    int rank = in->shape->rank;
    hlo_inst *acc = hlo_make_spread(p, in->arg[2], in->shape);
    hlo_inst *zero = hlo_make_scalar(p, pass_dtype(in->arg[1]), 0);
    hlo_inst *none = hlo_make_scalar_s64(p, pass_dtype(at), -1);

    /* an element's windows in rising order: its position in them falls */
    for (int64_t n = positions; n-- > 0;) {
        int64_t k[SD_MAX_RANK], rest = n;

        for (int i = rank - 1; i >= 0; i--) {
            k[i] = rest % in->u.window.dim[i].size;
            rest /= in->u.window.dim[i].size;
        }
        hlo_inst *hit = t_is(p, HLO_EQ, place(in, at, none, k), flat);
        hlo_inst *arg[] = {acc, place(in, in->arg[1], zero, k)};
        hlo_inst *sum = pass_vectorize(p, in->comp[1], arg, in->shape);

        acc = t_pick(p, hit, sum, acc);
    }
    return acc;
}

static hlo_inst *scatter_form(hlo_inst *in, hlo_inst *at)
{
    hlo_at p = pass_at(in);
    sd_arena *a = in->parent->module->arena;
    int64_t n = sd_shape_count(in->shape), zero = 0;
    int64_t dim[] = {sd_shape_count(at->shape), 1};
    const sd_shape *s = sd_shape_make(a, pass_dtype(in), 1, &n);
    hlo_gather *g = sd_arena_new(a, hlo_gather);
    hlo_inst *arg[] = {hlo_make_spread(p, in->arg[2], s),
                       hlo_make_reshape(p, at, 2, dim),
                       hlo_make_reshape(p, in->arg[1], 1, dim)};
    hlo_inst *x = hlo_inst_create(in->parent, in, HLO_SCATTER, s, 3, arg);

    g->collapsed = g->index_map = hlo_dims_copy(a, &zero, 1);
    g->index_vector_dim = 1;
    x->u.gather = g;
    hlo_set_comps(x, 1, &in->comp[1]);
    return hlo_make_reshape(p, x, in->shape->rank, in->shape->dim);
}

static hlo_inst *lower_select_and_scatter(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    sd_arena *a = in->parent->module->arena;
    int64_t n = sd_shape_count(in->shape), positions = 1;
    sd_dtype index = n < INT32_MAX ? SD_S32 : SD_S64;
    hlo_inst *flat, *at;
    bool padded_base = false;

    if (n == 0 || sd_shape_count(in->arg[1]->shape) == 0)
        return hlo_make_spread(p, in->arg[2], in->shape);
    for (int i = 0; i < in->u.window.n; i++) {
        padded_base |= in->u.window.dim[i].base_dilation != 1;
        if (positions <= MAX_POSITIONS)
            positions *= in->u.window.dim[i].size;
    }
    if (padded_base)
        return NULL;
    flat = hlo_make_iota(p, sd_shape_make(a, index, 1, &n), 0);
    flat = pass_reshape(p, flat, in->shape->rank, in->shape->dim);
    at = chosen(in, flat, index);
    if (positions <= MAX_POSITIONS && pass_can_vectorize(in->comp[1]))
        return gather_form(in, flat, at, positions);
    return scatter_form(in, at);
}

bool hlo_lower_window(hlo_module *m)
{
    bool changed = pass_rewrite(m, HLO_REDUCE_WINDOW, lower_reduce_window);

    return pass_rewrite(m, HLO_SELECT_AND_SCATTER, lower_select_and_scatter) ||
           changed;
}
