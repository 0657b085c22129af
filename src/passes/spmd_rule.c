/* Which dimensions of an operation's operands and result go together.  A rule
 * names factors: a dimension that is cut cuts every dimension of its factor,
 * and an operation whose operands are all cut alike is the same operation on
 * the parts.  A factor of operands alone leaves partial results. */
#include "spmd_rule.h"

#include "hlo_linalg.h"
#include "spmd_flow.h"
#include "spmd_halo.h"
#include "spmd_lines.h"
#include "spmd_pick.h"

enum { NONE = -1 };

static int new_factor(spmd_rule *r, int64_t size, bool partial)
{
    r->factor[r->n] = (spmd_factor){.size = size, .partial = partial};
    return r->n++;
}

/* Nothing of it minds what lies behind the end. */
static int loosely(spmd_rule *r, int f)
{
    r->factor[f].any = r->factor[f].size;
    return f;
}

bool spmd_fits(const spmd_factor *f, int64_t n)
{
    return f->size % n == 0 || (f->any && spmd_is_worth(f->any, n));
}

static void pass(spmd_rule *r, int f, int arg, int dim)
{
    r->arg[arg][dim] = (int8_t)f;
}

static int of_result(spmd_rule *r, const hlo_inst *in, int dim)
{
    int f = new_factor(r, hlo_result_shape(in, 0)->dim[dim], false);

    r->result[dim] = (int8_t)f;
    return f;
}

/* ---- one function a class ---- */

/* Of arrays that are alike, and scalars that choose between them. */
static bool elementwise(const hlo_inst *in, spmd_rule *r)
{
    for (int k = 0; k < in->narg; k++)
        if (in->arg[k]->shape->rank &&
            !sd_shape_same_dims(in->arg[k]->shape, in->shape))
            return false;
    for (int d = 0; d < in->shape->rank; d++) {
        int f = of_result(r, in, d);

        if (!in->ncomp)
            loosely(r, f);
        for (int k = 0; k < in->narg; k++)
            if (in->arg[k]->shape->rank == in->shape->rank)
                pass(r, f, k, d);
    }
    return true;
}

static bool broadcast(const hlo_inst *in, spmd_rule *r)
{
    for (int d = 0; d < in->dims.n; d++)
        pass(r, loosely(r, of_result(r, in, (int)in->dims.at[d])), 0, d);
    return true;
}

static bool transpose(const hlo_inst *in, spmd_rule *r)
{
    for (int d = 0; d < in->shape->rank; d++)
        pass(r, loosely(r, of_result(r, in, d)), 0, (int)in->dims.at[d]);
    return true;
}

/* Dimensions of equal products are the same elements: the outermost of each
 * side go together as far as both divide. */
static bool reshape(const hlo_inst *in, spmd_rule *r)
{
    const sd_shape *x = in->arg[0]->shape, *y = in->shape;
    int i = 0, k = 0;

    if (!sd_shape_count(x))
        return false;
    while (i < x->rank && k < y->rank) {
        int64_t nx, ny;
        int f;

        while (i < x->rank && x->dim[i] == 1)
            i++;
        while (k < y->rank && y->dim[k] == 1)
            k++;
        if (i == x->rank || k == y->rank)
            break;
        f = new_factor(r, sd_gcd(x->dim[i], y->dim[k]), false);
        pass(r, f, 0, i);
        r->result[k] = (int8_t)f;
        nx = x->dim[i++];
        ny = y->dim[k++];
        if (nx == ny)
            loosely(r, f);
        while (nx != ny)
            if (nx < ny)
                nx *= x->dim[i++];
            else
                ny *= y->dim[k++];
    }
    return true;
}

/* How partial results become one; false: they do not. */
static bool combines(const hlo_comp *body, const hlo_inst *init, sd_dtype t,
                     hlo_op *op)
{
    double v;

    if (!hlo_comp_is_binary(body, op))
        return false;
    switch (*op) {
    case HLO_MAXIMUM:
    case HLO_MINIMUM:
    case HLO_AND:
    case HLO_OR: /* whatever it begins with may come in twice */
        return !sd_is_complex(t);
    case HLO_ADD:
        return hlo_is_scalar_const(init, &v) && v == 0;
    case HLO_MULTIPLY:
        return hlo_is_scalar_const(init, &v) && v == 1;
    default:
        return false;
    }
}

/* Are the elements of each part of dimension d one after the other in the order
 * of the reduction? */
static bool is_outermost(const hlo_inst *in, int d)
{
    for (int i = 0; i < in->dims.n; i++)
        if (in->dims.at[i] < d && in->arg[0]->shape->dim[in->dims.at[i]] > 1)
            return false;
    return true;
}

static bool reduce(const hlo_inst *in, spmd_rule *r)
{
    const sd_shape *x = in->arg[0]->shape;
    int n = in->narg / 2, k = 0; /* arrays, and what each begins with */
    bool sums =
        n == 1 && combines(in->comp[0], in->arg[1], x->dtype, &r->combine);
    bool picks = n > 1 && spmd_is_pick(in->comp[0], n);

    for (int d = 0; d < x->rank; d++)
        if (!hlo_dims_hold(in->dims, d)) {
            int f = loosely(r, of_result(r, in, k++));

            for (int i = 0; i < n; i++)
                pass(r, f, i, d);
        } else if (sums) {
            pass(r, loosely(r, new_factor(r, x->dim[d], true)), 0, d);
        } else if (picks &&
                   (is_outermost(in, d) || pass_commutes(in->comp[0]))) {
            int f = new_factor(r, x->dim[d], true);

            r->factor[f].again = true;
            for (int i = 0; i < n; i++)
                pass(r, f, i, d);
        }
    return true;
}

static bool dot(const hlo_inst *in, spmd_rule *r)
{
    const hlo_dot *u = in->u.dot;
    int k = 0;

    r->combine = HLO_ADD;
    for (int i = 0; i < u->lhs_batch.n; i++) {
        int f = loosely(r, of_result(r, in, k++));

        pass(r, f, 0, (int)u->lhs_batch.at[i]);
        pass(r, f, 1, (int)u->rhs_batch.at[i]);
    }
    for (int a = 0; a < 2; a++)
        for (int d = 0; d < in->arg[a]->shape->rank; d++)
            if (!hlo_dims_hold(a ? u->rhs_batch : u->lhs_batch, d) &&
                !hlo_dims_hold(a ? u->rhs_contract : u->lhs_contract, d))
                pass(r, loosely(r, of_result(r, in, k++)), a, d);
    for (int i = 0; i < u->lhs_contract.n; i++) {
        int d = (int)u->lhs_contract.at[i];
        int f = loosely(r, new_factor(r, in->arg[0]->shape->dim[d], true));

        pass(r, f, 0, d);
        pass(r, f, 1, (int)u->rhs_contract.at[i]);
    }
    return true;
}

/* Dimension d of operand 0 is read in intervals for dimension `to`.  A window
 * does not see what it is padded with, so that has to be nothing to it. */
static void goes_across(spmd_rule *r, const hlo_inst *in, int d, int to)
{
    int f = new_factor(r, sd_gcd(in->arg[0]->shape->dim[d], in->shape->dim[to]),
                       false);

    r->factor[f].across = true;
    r->factor[f].any = SD_MIN(in->arg[0]->shape->dim[d], in->shape->dim[to]);
    pass(r, f, 0, d);
    r->result[to] = (int8_t)f;
}

/* What is put together along d; what is put into another is moved there. */
static void placed(spmd_rule *r, const hlo_inst *in, int d)
{
    int f = loosely(r, of_result(r, in, d));

    r->factor[f].across = true;
    for (int k = 0; k < in->narg; k++)
        if (k == 0 || in->op == HLO_CONCATENATE)
            pass(r, f, k, d);
}

/* Dimension d is read or written at places that are known when it runs; what is
 * read is still to be summed. */
static void picked(spmd_rule *r, const hlo_inst *in, int d)
{
    bool reads = in->op == HLO_DYNAMIC_SLICE || in->op == HLO_GATHER;
    int f = loosely(r, new_factor(r, in->arg[0]->shape->dim[d], reads));

    r->factor[f].picked = true;
    pass(r, f, 0, d);
    if (reads)
        r->combine = HLO_ADD;
    else
        r->result[d] = (int8_t)f;
}

/* A running sum, or the like, along dimension d: false: it is none. */
static bool runs(spmd_rule *r, const hlo_inst *in, int d)
{
    bool reverse;
    int64_t dim;
    hlo_op op;

    if (in->op != HLO_REDUCE_WINDOW || in->narg != 2 ||
        !hlo_is_cumulative(in, &dim, &reverse) || dim != d ||
        !combines(in->comp[0], in->arg[1], pass_dtype(in), &op))
        return false;
    r->factor[loosely(r, of_result(r, in, d))].running = true;
    pass(r, r->n - 1, 0, d);
    return true;
}

/* Dimensions that stay as they are, of slices, pads and the like. */
static bool stays(const hlo_inst *in, int d)
{
    switch (in->op) {
    case HLO_REVERSE:
        return true; /* parts change places where it is d (spmd_apply.c) */
    case HLO_ALL_GATHER:
    case HLO_REDUCE_SCATTER:
    case HLO_ALL_TO_ALL:
        return d != hlo_collective_dim(in);
    case HLO_CONCATENATE:
    case HLO_SORT:
        return !hlo_dims_hold(in->dims, d);
    case HLO_PAD:
        return !in->u.pad.low[d] && !in->u.pad.high[d] &&
               !in->u.pad.interior[d];
    case HLO_DYNAMIC_UPDATE_SLICE:
        return in->arg[1]->shape->dim[d] == in->shape->dim[d];
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
        return in->arg[0]->shape->dim[d] == in->shape->dim[d] &&
               (in->op != HLO_SLICE || in->u.slice.stride[d] == 1);
    case HLO_REDUCE_WINDOW:
        return in->u.window.dim[d].size == 1 &&
               in->u.window.dim[d].stride == 1 &&
               in->u.window.dim[d].base_dilation == 1 &&
               !in->u.window.dim[d].pad_low && !in->u.window.dim[d].pad_high;
    default:
        return false;
    }
}

static bool same_dims(const hlo_inst *in, spmd_rule *r)
{
    int rank = hlo_result_shape(in, 0)->rank;

    if (in->op != HLO_SORT && !sd_shape_is_array(in->shape))
        return false;
    for (int d = 0; d < rank; d++) {
        int f = stays(in, d) ? of_result(r, in, d) : NONE;

        if (f >= 0 && in->op != HLO_REVERSE)
            loosely(r, f);
        for (int k = 0; f >= 0 && k < in->narg; k++)
            if (in->arg[k]->shape->rank == rank)
                pass(r, f, k, d);
        if (f < 0 && runs(r, in, d))
            continue;
        if (f < 0 && spmd_picks(in, d))
            picked(r, in, d);
        else if (f < 0 && spmd_is_placed(in) && spmd_goes_across(in, d))
            placed(r, in, d);
        else if (f < 0 && spmd_goes_across(in, d) &&
                 (in->op != HLO_REDUCE_WINDOW ||
                  combines(in->comp[0], in->arg[1], pass_dtype(in),
                           &r->combine)))
            goes_across(r, in, d, d);
    }
    return true;
}

/* The k-th of dimensions 0 to n - 1 that are not in the list. */
static int nth_other(int n, hlo_dims list, int k)
{
    for (int d = 0; d < n; d++)
        if (!hlo_dims_hold(list, d) && !k--)
            return d;
    return NONE;
}

/* Of a gather's result or a scatter's updates: windows, dimension w, and what
 * they are of, which is a scatter's result too. */
static void tie_window(const hlo_inst *in, spmd_rule *r, int f, int w, int dim)
{
    bool gather = in->op == HLO_GATHER;

    if (dim >= 0)
        pass(r, f, 0, dim);
    if (!gather)
        pass(r, f, 2, w);
    r->result[gather ? w : dim] = (int8_t)f;
}

static int batch_of_index(const hlo_gather *g, int d)
{
    int i = hlo_dims_find(g->indices_batch, d);

    return i < 0 ? NONE : (int)g->operand_batch.at[i];
}

/* Can updates that several participants have meet after all of them? */
static bool meets(const hlo_comp *body, sd_dtype t, hlo_op *op)
{
    if (!hlo_comp_is_binary(body, op))
        return false;
    return *op == HLO_ADD ? t != SD_PRED
                          : (*op == HLO_MAXIMUM || *op == HLO_MINIMUM) &&
                                !sd_is_complex(t);
}

/* Dimensions that windows have whole go with the windows', and those of the
 * batch with the indices'.  Each place of a gather's indices is alone with its
 * own window; a scatter's meet. */
static bool indexed(const hlo_inst *in, spmd_rule *r)
{
    const hlo_gather *g = in->u.gather;
    bool gather = in->op == HLO_GATHER;
    const sd_shape *x = in->arg[0]->shape, *at = in->arg[1]->shape;
    const sd_shape *y = gather ? in->shape : in->arg[2]->shape;
    hlo_dims vector = {&g->index_vector_dim, 1};
    bool sums =
        !gather && in->ncomp == 1 && meets(in->comp[0], x->dtype, &r->combine);

    if (in->narg != (gather ? 2 : 3))
        return false;
    for (int d = 0, k = 0; d < x->rank; d++) {
        int w;

        if (spmd_picks(in, d))
            picked(r, in, d);
        if (hlo_dims_hold(g->collapsed, d) ||
            hlo_dims_hold(g->operand_batch, d))
            continue;
        w = (int)g->offset_dims.at[k++];
        if (y->dim[w] == x->dim[d])
            tie_window(in, r, new_factor(r, x->dim[d], false), w, d);
    }
    for (int k = 0; k < y->rank - g->offset_dims.n; k++) {
        int d = nth_other(at->rank, vector, k), same = batch_of_index(g, d), f;

        if (same < 0 && !gather) {
            if (sums) { /* each adds its own updates */
                f = new_factor(r, at->dim[d], true);
                pass(r, f, 1, d);
                pass(r, f, 2, nth_other(y->rank, g->offset_dims, k));
            }
            continue;
        }
        f = new_factor(r, at->dim[d], false);
        pass(r, f, 1, d);
        tie_window(in, r, f, nth_other(y->rank, g->offset_dims, k), same);
    }
    return true;
}

static bool begins_with(const sd_shape *s, const sd_shape *like, int n)
{
    for (int d = 0; d < n; d++)
        if (d >= s->rank || s->dim[d] != like->dim[d])
            return false;
    return true;
}

/* Matrices, rows and lines: each is by itself, in the first n dimensions.  Not
 * every custom call's shapes have been checked. */
static bool batch(const hlo_inst *in, int n, spmd_rule *r)
{
    for (int k = 0; k < in->narg; k++)
        if (!begins_with(in->arg[k]->shape, in->arg[0]->shape, n))
            return false;
    for (int i = 0; i < hlo_nresult(in); i++)
        if (!begins_with(hlo_result_shape(in, i), in->arg[0]->shape, n))
            return false;
    for (int d = 0; d < n; d++) {
        int f = of_result(r, in, d);

        for (int k = 0; k < in->narg; k++)
            pass(r, f, k, d);
    }
    return n > 0;
}

/* Each is solved for by itself. */
static void right_sides(const hlo_inst *in, spmd_rule *r)
{
    int d = in->shape->rank - (in->u.linalg.left ? 1 : 2);

    pass(r, of_result(r, in, d), 1, d);
}

static int call_batch(const hlo_inst *in)
{
    const char *target = in->u.custom->target;

    if (strcmp(target, "Qr") == 0 ||
        strcmp(target, "ProductOfElementaryHouseholderReflectors") == 0)
        return in->arg[0]->shape->rank - 2;
    return hlo_linalg_batch(in);
}

/* Features are summed, and so is a batch in the gradient of a kernel, which has
 * it there. */
static bool conv(const hlo_inst *in, spmd_rule *r)
{
    const hlo_conv *u = in->u.conv;
    int f;

    for (int i = 0; i < u->nspatial; i++)
        goes_across(r, in, (int)u->in_spatial.at[i], (int)u->out_spatial.at[i]);
    if (u->batch_groups == 1)
        pass(r, of_result(r, in, (int)u->out_batch), 0, (int)u->in_batch);
    if (u->feature_groups != 1)
        return true;
    if (u->batch_groups == 1)
        pass(r, of_result(r, in, (int)u->out_feature), 1, (int)u->k_out);
    r->combine = HLO_ADD;
    f = new_factor(r, in->arg[0]->shape->dim[u->in_feature], true);
    pass(r, f, 0, (int)u->in_feature);
    pass(r, f, 1, (int)u->k_in);
    return true;
}

bool spmd_rule_of(const hlo_inst *in, spmd_rule *r)
{
    bool tuples = in->op == HLO_SORT || in->op == HLO_TOPK ||
                  in->op == HLO_REDUCE || in->op == HLO_CUSTOM_CALL;

    *r = (spmd_rule){0};
    if (in->narg > SPMD_MOST_ARGS || !hlo_nresult(in) ||
        (!tuples && !sd_shape_is_array(in->shape)))
        return false;
    for (int i = 0; i < hlo_nresult(in); i++)
        if (!sd_shape_is_array(hlo_result_shape(in, i)))
            return false;
    memset(r->arg, NONE, sizeof r->arg);
    memset(r->result, NONE, sizeof r->result);
    for (int i = 0; i < in->narg; i++)
        if (!sd_shape_is_array(in->arg[i]->shape))
            return false;
    switch (in->op) {
    case HLO_BROADCAST:
        return broadcast(in, r);
    case HLO_TRANSPOSE:
        return transpose(in, r);
    case HLO_RESHAPE:
        return reshape(in, r);
    case HLO_REDUCE:
        return reduce(in, r);
    case HLO_DOT:
        return dot(in, r);
    case HLO_CONVOLUTION:
        return conv(in, r);
    case HLO_COPY:
        return elementwise(in, r);
    case HLO_ALL_REDUCE: /* a manual computation's, of automatic parts */
    case HLO_COLLECTIVE_PERMUTE:
    case HLO_COLLECTIVE_BROADCAST:
        return in->narg == 1 && sd_shape_is_array(in->shape) &&
               elementwise(in, r);
    case HLO_ALL_GATHER: /* so are these */
    case HLO_REDUCE_SCATTER:
    case HLO_ALL_TO_ALL:
        return in->narg == 1 && same_dims(in, r);
    case HLO_CONCATENATE:
    case HLO_REVERSE:
    case HLO_SORT:
    case HLO_PAD:
    case HLO_SLICE:
    case HLO_DYNAMIC_SLICE:
    case HLO_DYNAMIC_UPDATE_SLICE:
    case HLO_REDUCE_WINDOW:
        return same_dims(in, r);
    case HLO_GATHER:
    case HLO_SCATTER:
        return indexed(in, r);
    case HLO_CHOLESKY:
    case HLO_TRIANGULAR_SOLVE:
        batch(in, in->arg[0]->shape->rank - 2, r);
        if (in->op == HLO_TRIANGULAR_SOLVE)
            right_sides(in, r);
        return r->n > 0;
    case HLO_FFT:
        return batch(in, in->arg[0]->shape->rank - in->u.fft.length.n, r);
    case HLO_TOPK:
        return batch(in, in->arg[0]->shape->rank - 1, r);
    case HLO_CUSTOM_CALL:
        return in->narg && batch(in, call_batch(in), r);
    default:
        return hlo_info(in)->cls <= HLO_C_CONVERT && elementwise(in, r);
    }
}

/* ---- the operation on parts ---- */

static const int64_t *scaled(sd_arena *a, const int64_t *v, const sd_shape *was,
                             const sd_shape *is)
{
    int64_t *to = sd_arena_array(a, int64_t, was->rank + 1);

    for (int d = 0; d < was->rank; d++)
        to[d] = is->dim[d] == was->dim[d] ? v[d] : is->dim[d];
    return to;
}

/* Windows that have a dimension whole have the part's whole. */
static void cut_windows(hlo_inst *x, const hlo_inst *in)
{
    sd_arena *a = in->parent->module->arena;
    hlo_gather g = *in->u.gather;

    g.slice_sizes.at =
        scaled(a, g.slice_sizes.at, in->arg[0]->shape, x->arg[0]->shape);
    for (int i = 0; i < g.operand_batch.n; i++)
        ((int64_t *)g.slice_sizes.at)[g.operand_batch.at[i]] =
            in->u.gather->slice_sizes.at[g.operand_batch.at[i]];
    for (int i = 0; i < g.collapsed.n; i++)
        ((int64_t *)g.slice_sizes.at)[g.collapsed.at[i]] =
            in->u.gather->slice_sizes.at[g.collapsed.at[i]];
    x->u.gather = sd_arena_copy(a, &g, sizeof g);
}

hlo_inst *spmd_on_parts(hlo_inst *in, const sd_shape *s, hlo_inst *const *arg,
                        uint32_t across)
{
    hlo_module *m = in->parent->module;
    hlo_inst *x = hlo_inst_create(in->parent, in, in->op, s, in->narg, arg);
    sd_status st;

    x->dims = in->dims;
    x->u = in->u;
    hlo_take_source(x, in);
    if (in->ncomp)
        hlo_set_comps(x, in->ncomp, in->comp);
    if (in->op == HLO_SLICE)
        x->u.slice.limit =
            (int64_t *)scaled(m->arena, in->u.slice.limit, in->shape, s);
    if (in->op == HLO_DYNAMIC_SLICE)
        x->dims = hlo_dims_copy(m->arena, s->dim, s->rank);
    if (in->op == HLO_GATHER)
        cut_windows(x, in);
    if (across)
        spmd_on_intervals(x, across);
    st = hlo_verify_inst(m, x);
    if (!st)
        return x;
    sd_status_free(st);
    hlo_remove(x);
    return NULL;
}
