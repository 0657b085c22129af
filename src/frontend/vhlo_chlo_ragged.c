/* chlo.ragged_dot: a product in which one dimension of lhs holds groups, one
 * behind the other, of as many entries as the third operand says.  With g
 * groups, and r the dimension that is cut:
 *
 *   r is free in lhs    rhs has a dimension of g, and each group its own rhs
 *   r is contracted     the result has a dimension of g in front, a product
 *                       each
 *   r is a batch        the groups change nothing
 *
 * In HLO it is a product of arrays with a dimension of g in front, zero where
 * an entry is of another group or of none. */
#include "vhlo_chlo.h"

enum { LHS, RHS };

typedef struct {
    vhlo_import *im;
    mlir_op *op;
    hlo_inst **arg; /* lhs, rhs, sizes */
    hlo_dims batch[2], contract[2], group;
    int64_t cut;          /* the dimension of lhs */
    hlo_dims prefix;      /* of lhs, what the sizes may differ along */
    int64_t g;
    hlo_inst *start, *end; /* s64, of the sizes' shape */
} ragged;

static bool refuse(const ragged *d, const char *what)
{
    vhlo_fail(d->im, d->op, SD_INVALID, "%s", what);
    return false;
}

/* Each is a dimension of the operand, and none is there twice. */
static bool are_dims(const ragged *d, int k)
{
    const sd_shape *s = d->arg[k]->shape;
    hlo_dims part[3] = {d->batch[k], d->contract[k],
                        k == RHS ? d->group : (hlo_dims){0}};
    bool seen[SD_MAX_RANK] = {false};

    for (int p = 0; p < 3; p++)
        for (int i = 0; i < part[p].n; i++) {
            int64_t x = part[p].at[i];

            if (x < 0 || x >= s->rank || seen[x])
                return refuse(d, "ragged_dot_dimension_numbers name a "
                                 "dimension that there is not, or one twice");
            seen[x] = true;
        }
    return true;
}

static bool are_pairs(const ragged *d, const hlo_dims of[2])
{
    const sd_shape *x = d->arg[LHS]->shape, *y = d->arg[RHS]->shape;
    bool fits = of[LHS].n == of[RHS].n;

    for (int i = 0; fits && i < of[LHS].n; i++)
        fits = x->dim[of[LHS].at[i]] == y->dim[of[RHS].at[i]];
    return fits || refuse(d, "dimensions of lhs and rhs that belong together "
                             "differ in number or in size");
}

/* What stands before the cut in its kind, batches first. */
static hlo_dims prefix_of(const ragged *d)
{
    hlo_dims kind = d->contract[LHS];
    int64_t *at = sd_arena_array(d->im->a, int64_t, SD_MAX_RANK), other = 0;
    int n = 0;

    for (int i = 0; i < d->batch[LHS].n; i++)
        at[n++] = d->batch[LHS].at[i];
    if (hlo_dims_hold(kind, d->cut)) {
        for (int i = 0; kind.at[i] != d->cut; i++)
            at[n++] = kind.at[i];
    } else {
        for (; other < d->cut; other++)
            if (!hlo_dims_hold(d->batch[LHS], other) &&
                !hlo_dims_hold(kind, other))
                at[n++] = other;
    }
    return (hlo_dims){at, n};
}

static bool sizes_fit(ragged *d)
{
    const sd_shape *s = d->arg[2]->shape, *x = d->arg[LHS]->shape;
    sd_kind k = sd_dtype_kind(s->dtype);
    bool fits = (k == SD_K_SINT || k == SD_K_UINT) && s->rank >= 1 &&
                (s->rank == 1 || s->rank == d->prefix.n + 1);

    for (int i = 0; fits && i + 1 < s->rank; i++)
        fits = s->dim[i] == x->dim[d->prefix.at[i]];
    if (!fits)
        return refuse(d, "the groups' sizes should be integers, for all alike "
                         "or for each of what stands before the dimension");
    d->g = s->dim[s->rank - 1];
    return true;
}

static bool read(ragged *d)
{
    hlo_dims cut;

    for (int k = 0; k < 3; k++)
        if (!sd_shape_is_array(d->arg[k]->shape) ||
            d->arg[k]->shape->rank >= SD_MAX_RANK)
            return refuse(d, "operands should be arrays, with a dimension "
                             "less than the most");
    cut = vhlo_ints(d->im, d->op, "lhs_ragged_dimensions", SD_MAX_RANK);
    d->group = vhlo_ints(d->im, d->op, "rhs_group_dimensions", SD_MAX_RANK);
    d->batch[LHS] =
        vhlo_ints(d->im, d->op, "lhs_batching_dimensions", SD_MAX_RANK);
    d->batch[RHS] =
        vhlo_ints(d->im, d->op, "rhs_batching_dimensions", SD_MAX_RANK);
    d->contract[LHS] =
        vhlo_ints(d->im, d->op, "lhs_contracting_dimensions", SD_MAX_RANK);
    d->contract[RHS] =
        vhlo_ints(d->im, d->op, "rhs_contracting_dimensions", SD_MAX_RANK);
    if (d->im->r->st || !are_dims(d, LHS) || !are_dims(d, RHS) ||
        !are_pairs(d, d->batch) || !are_pairs(d, d->contract))
        return false;
    if (cut.n != 1 || cut.at[0] < 0 || cut.at[0] >= d->arg[LHS]->shape->rank)
        return refuse(d, "one dimension of lhs should be ragged");
    d->cut = cut.at[0];
    if (hlo_dims_hold(d->batch[LHS], d->cut))
        return d->group.n == 0 ||
               refuse(d, "rhs has groups only where lhs's are not contracted "
                         "and no batch");
    d->prefix = prefix_of(d);
    if (!sizes_fit(d))
        return false;
    if (hlo_dims_hold(d->contract[LHS], d->cut) ? d->group.n != 0
                                                : d->group.n != 1)
        return refuse(d, "rhs has groups only where lhs's are not contracted "
                         "and no batch");
    return !d->group.n || d->arg[RHS]->shape->dim[d->group.at[0]] == d->g ||
           refuse(d, "rhs should have as many groups as there are sizes");
}

/* ---- in HLO ---- */

/* Where each group starts and ends along the cut. */
static void find_groups(ragged *d)
{
    hlo_at p = {d->im->c, NULL, NULL};
    hlo_inst *n = vhlo_convert(d->im, d->arg[2], SD_S64);
    hlo_inst *arg[2] = {n, hlo_make_scalar_s64(p, SD_S64, 0)};
    hlo_comp *add = hlo_scalar_comp(d->im->m, HLO_ADD, SD_S64);
    int rank = n->shape->rank;
    hlo_window_dim *w = sd_arena_array(d->im->a, hlo_window_dim, rank);

    for (int i = 0; i < rank; i++) {
        int64_t size = i + 1 < rank ? 1 : SD_MAX(d->g, 1);

        w[i] = (hlo_window_dim){.size = size,
                                .stride = 1,
                                .pad_low = size - 1,
                                .base_dilation = 1,
                                .window_dilation = 1};
    }
    d->end = vhlo_emit(d->im, HLO_REDUCE_WINDOW, n->shape, 2, arg);
    d->end->u.window.dim = w;
    d->end->u.window.n = rank;
    hlo_set_comps(d->end, 1, &add);
    d->start = hlo_make_binary(p, HLO_SUBTRACT, d->end, n);
}

/* [prefix, g] or [g] over [g, dimensions of an operand]: at says where the
 * operand has the prefix. */
static hlo_inst *spread(const ragged *d, hlo_inst *x, hlo_dims at,
                        const sd_shape *to)
{
    int64_t bd[SD_MAX_RANK];
    int n = x->shape->rank;

    for (int i = 0; i + 1 < n; i++)
        bd[i] = at.at[i] + 1;
    bd[n - 1] = 0;
    return hlo_make_broadcast((hlo_at){d->im->c, NULL, NULL}, x, to, bd, n);
}

/* Operand k with a dimension of groups in front, zero outside of the group. */
static hlo_inst *by_groups(const ragged *d, int k, int64_t cut, hlo_dims prefix)
{
    hlo_at p = {d->im->c, NULL, NULL};
    hlo_inst *x = d->arg[k], *i, *in;
    int64_t dim[SD_MAX_RANK], at[SD_MAX_RANK];
    int rank = x->shape->rank;
    const sd_shape *s, *of_x;

    dim[0] = d->g;
    for (int j = 0; j < rank; j++) {
        dim[j + 1] = x->shape->dim[j];
        at[j] = j + 1;
    }
    s = sd_shape_make(d->im->a, SD_S64, rank + 1, dim);
    of_x = sd_shape_with(d->im->a, s, x->shape->dtype);
    i = hlo_make_iota(p, s, cut + 1);
    in = hlo_make_binary(
        p, HLO_AND,
        hlo_make_compare(p, HLO_LE, spread(d, d->start, prefix, s), i),
        hlo_make_compare(p, HLO_LT, i, spread(d, d->end, prefix, s)));
    return hlo_make_select(p, in, hlo_make_broadcast(p, x, of_x, at, rank),
                           hlo_make_fill(p, of_x, 0));
}

/* first, unless it is -1, and the dimensions, each further back by `by`. */
static hlo_dims behind(const ragged *d, int64_t first, hlo_dims x, int by)
{
    int64_t *at = sd_arena_array(d->im->a, int64_t, SD_MAX_RANK + 1);
    int n = 0;

    if (first >= 0)
        at[n++] = first;
    for (int i = 0; i < x.n; i++)
        at[n++] = x.at[i] + by;
    return (hlo_dims){at, n};
}

static void free_is_cut(const ragged *d, hlo_dot *dot, hlo_inst *arg[2])
{
    arg[LHS] = by_groups(d, LHS, d->cut, d->prefix);
    dot->lhs_batch = behind(d, -1, d->batch[LHS], 1);
    dot->lhs_contract = behind(d, 0, d->contract[LHS], 1);
    dot->rhs_contract = behind(d, d->group.at[0], d->contract[RHS], 0);
}

static void contracted_is_cut(const ragged *d, hlo_dot *dot, hlo_inst *arg[2])
{
    int64_t *before = sd_arena_array(d->im->a, int64_t, SD_MAX_RANK);
    int n = 0, k = 0;

    for (; n < d->batch[RHS].n; n++)
        before[n] = d->batch[RHS].at[n];
    for (; d->contract[LHS].at[k] != d->cut; k++)
        before[n++] = d->contract[RHS].at[k];
    arg[LHS] = by_groups(d, LHS, d->cut, d->prefix);
    arg[RHS] = by_groups(d, RHS, d->contract[RHS].at[k], (hlo_dims){before, n});
    dot->lhs_batch = behind(d, 0, d->batch[LHS], 1);
    dot->rhs_batch = behind(d, 0, d->batch[RHS], 1);
    dot->lhs_contract = behind(d, -1, d->contract[LHS], 1);
    dot->rhs_contract = behind(d, -1, d->contract[RHS], 1);
}

void op_ragged_dot(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_dot *dot = sd_arena_new(im->a, hlo_dot);
    const sd_shape *s = vhlo_shape(im, op);
    ragged d = {.im = im, .op = op, .arg = arg};
    hlo_inst *x[2] = {arg[LHS], arg[RHS]}, *in;

    vhlo_precision(im, op, dot->prec);
    if (!s || im->r->st || !read(&d))
        return;
    dot->lhs_batch = d.batch[LHS];
    dot->rhs_batch = d.batch[RHS];
    dot->lhs_contract = d.contract[LHS];
    dot->rhs_contract = d.contract[RHS];
    if (!hlo_dims_hold(d.batch[LHS], d.cut))
        find_groups(&d);
    if (hlo_dims_hold(d.contract[LHS], d.cut))
        contracted_is_cut(&d, dot, x);
    else if (!hlo_dims_hold(d.batch[LHS], d.cut))
        free_is_cut(&d, dot, x);
    in = vhlo_product(im, s, x);
    in->u.dot = dot;
    vhlo_bind_product(im, op, s, in);
}
