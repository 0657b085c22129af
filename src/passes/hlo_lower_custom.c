/* Custom-calls that are identities on one device or HLO ops under another
 * name; collectives of one participant; sizes that are static. */
#include "hlo_sharding.h"
#include "passes_priv.h"

bool pass_is_identity_target(const char *t)
{
    static const char *const names[] = {"Sharding",
                                        "SPMDFullToShardShape",
                                        "SPMDShardToFullShape",
                                        "annotate_device_placement",
                                        "LayoutConstraint",
                                        "MoveToHost",
                                        "MoveToDevice",
                                        "xla.sdy.GlobalToLocalShape",
                                        "xla.sdy.LocalToGlobalShape",
                                        "xla.sdy.FuncResultSharding",
                                        HLO_GROUP_TARGET,
                                        "xla.sdy.PropagationBarrier"};

    for (size_t i = 0; i < SD_COUNTOF(names); i++)
        if (strcmp(t, names[i]) == 0)
            return true;
    return false;
}

/* Effects without a result and without a meaning here. */
static bool is_nothing_target(const char *t)
{
    return strcmp(t, "xla.sdy.ShardingGroup") == 0 ||
           strcmp(t, "shape_assertion") == 0;
}

static const struct {
    const char *target;
    hlo_op op;
} unary_targets[] = {
    {"mhlo.erf", HLO_ERF},
    {"chlo.erf", HLO_ERF},
    {"mhlo.tan", HLO_TAN},
};

/* What several operands are as one value: a tuple of the same types. */
static hlo_inst *as_one(hlo_inst *in)
{
    if (in->narg == 1 && sd_shape_equal(in->shape, in->arg[0]->shape))
        return in->arg[0];
    if (in->shape->dtype != SD_TUPLE || in->shape->nelem != in->narg)
        return NULL;
    for (int i = 0; i < in->narg; i++)
        if (!sd_shape_equal(in->shape->elem[i], in->arg[i]->shape))
            return NULL;
    return hlo_make_tuple(pass_at(in), in->narg, in->arg);
}

/* No reader checks what a custom-call's name promises: what it becomes is kept
 * where it obeys its own op's rules. */
static hlo_inst *if_right(hlo_inst *made)
{
    sd_status st = hlo_verify_inst(made->parent->module, made);

    if (!st)
        return made;
    sd_status_free(st);
    hlo_remove(made);
    return NULL;
}

static hlo_inst *lower_topk_call(hlo_inst *in)
{
    const sd_shape *s = in->shape->dtype == SD_TUPLE && in->shape->nelem == 2
                            ? in->shape->elem[0]
                            : NULL;
    hlo_inst *x;

    if (in->narg != 1 || !s || !sd_shape_is_array(s) || s->rank == 0 ||
        (in->u.custom->config &&
         strstr(in->u.custom->config, "largest = false")))
        return NULL;
    x = hlo_inst_create(in->parent, in, HLO_TOPK, in->shape, 1, in->arg);
    x->dims = hlo_dims_copy(in->parent->module->arena, &s->dim[s->rank - 1], 1);
    x->u.sort.stable = true;
    return if_right(x);
}

/* Is s the tuple of in's first n operands, cut along dim to one length? */
static bool is_cut(const sd_shape *s, const hlo_inst *in, int n, int64_t dim)
{
    bool is = s->dtype == SD_TUPLE && s->nelem == n;

    for (int i = 0; is && i < n; i++) {
        const sd_shape *from = in->arg[i]->shape, *to = s->elem[i];

        is = sd_shape_is_array(from) && sd_shape_is_array(to) &&
             from->dtype == to->dtype && from->rank == to->rank &&
             dim < from->rank && to->dim[dim] <= from->dim[dim] &&
             to->dim[dim] == s->elem[0]->dim[dim];
        for (int d = 0; is && d < to->rank; d++)
            is = d == dim || to->dim[d] == from->dim[d];
    }
    return is;
}

/* x with 0 for -0, whose total order is that of comparing floats where there
 * is no NaN. */
static hlo_inst *one_zero(hlo_at p, hlo_inst *x)
{
    hlo_inst *zero = hlo_make_scalar(p, pass_dtype(x), 0);

    return hlo_make_select(p, hlo_make_compare(p, HLO_EQ, x, zero), zero, x);
}

/* A call's comparator compares floats, which orders no NaN; in total order all
 * devices put them in the same place, and the order is one by numbers. */
static hlo_comp *in_total_order(hlo_comp *c)
{
    hlo_comp *f;
    hlo_inst *r = c->root, *less;
    hlo_at p;

    if (r->op != HLO_COMPARE || r->u.compare.type != HLO_CMP_FLOAT ||
        !sd_is_float(pass_dtype(r->arg[0])) || r->arg[0]->op != HLO_PARAMETER ||
        r->arg[1]->op != HLO_PARAMETER)
        return c;
    f = hlo_comp_clone(c->module, c, c->name);
    r = f->root;
    p = (hlo_at){f, r, NULL};
    less = hlo_make_compare(p, r->u.compare.dir, one_zero(p, r->arg[0]),
                            one_zero(p, r->arg[1]));
    less->u.compare.type = HLO_CMP_TOTAL;
    hlo_replace(r, less);
    hlo_remove(r);
    return f;
}

/* ApproxTopK: operands x.., init..; an exact answer is a right one.  With the
 * comparator that the call carries: sort, then as many of the first as the
 * result has: top_k, or more where aggregate_to_topk is false. */
static hlo_inst *lower_approx_topk(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    sd_arena *a = p.c->module->arena;
    int n = in->narg / 2;
    int64_t dim;
    const sd_shape **e;
    hlo_inst *sort, **part;
    hlo_comp *less;

    if (in->narg < 2 || in->narg % 2 || in->ncomp != 1 ||
        !hlo_custom_int(in->u.custom, "reduction_dim", &dim) || dim < 0 ||
        !is_cut(in->shape, in, n, dim))
        return NULL;
    e = sd_arena_array(a, const sd_shape *, n);
    for (int i = 0; i < n; i++)
        e[i] = in->arg[i]->shape;
    sort = hlo_inst_create(in->parent, in, HLO_SORT,
                           n == 1 ? e[0] : sd_shape_tuple(a, n, e), n, in->arg);
    sort->dims = hlo_dims_copy(a, &dim, 1);
    sort->u.sort.stable = true;
    hlo_set_comps(sort, 1, in->comp);
    if (!(sort = if_right(sort)))
        return NULL;
    less = in_total_order(in->comp[0]);
    hlo_set_comps(sort, 1, &less);
    part = sd_arena_array(a, hlo_inst *, n);
    for (int i = 0; i < n; i++)
        part[i] = hlo_make_cut(p, n == 1 ? sort : hlo_make_gte(p, sort, i), dim,
                               0, in->shape->elem[i]->dim[dim]);
    return hlo_make_tuple(p, n, part);
}

static hlo_inst *lower_custom_call(hlo_inst *in)
{
    const char *t = in->u.custom->target;

    if (pass_is_identity_target(t))
        return as_one(in);
    if (strcmp(t, "ApproxTopK") == 0)
        return lower_approx_topk(in);
    if (strcmp(t, "mhlo.topk") == 0 || strcmp(t, "TopK") == 0)
        return lower_topk_call(in);
    for (size_t i = 0; i < SD_COUNTOF(unary_targets); i++)
        if (strcmp(t, unary_targets[i].target) == 0 && in->narg == 1 &&
            sd_shape_equal(in->shape, in->arg[0]->shape) &&
            sd_is_float(pass_dtype(in)))
            return hlo_make_unary(pass_at(in), unary_targets[i].op, in->arg[0]);
    return pass_foreign_row_major(in);
}

/* ---- collectives ---- */

/* One participant: every group that is given has one member, and without
 * groups everybody is one group, which is one in a module for one device. */
static bool is_alone(const hlo_inst *in)
{
    const hlo_module *m = in->parent->module;

    if (hlo_participants(m) > 1)
        return false;
    return !in->u.coll || in->u.coll->ngroup == 0 ||
           (in->u.coll->ngroup == 1 && in->u.coll->group_size <= 1);
}

/* A permute's pairs: {0, 0} keeps the value, no pair leaves zero. */
static hlo_inst *lower_permute(hlo_inst *in)
{
    const hlo_collective *c = in->u.coll;
    bool itself = false;

    if (in->narg != 1 || in->parent->module->nreplica > 1 ||
        in->parent->module->npartition > 1)
        return NULL;
    for (int64_t i = 0; c && i < c->ngroup; i++) {
        if (c->groups[2 * i] || c->groups[2 * i + 1])
            return NULL;
        itself = true;
    }
    return itself ? in->arg[0] : hlo_make_fill(pass_at(in), in->shape, 0);
}

static hlo_inst *lower_collective(hlo_inst *in)
{
    if (in->op == HLO_COLLECTIVE_PERMUTE)
        return lower_permute(in);
    if (!is_alone(in))
        return NULL;
    if (in->op == HLO_PARTITION_ID || in->op == HLO_REPLICA_ID)
        return hlo_make_scalar_s64(pass_at(in), pass_dtype(in), 0);
    if (in->op == HLO_ALL_REDUCE && in->narg == 1 &&
        pass_dtype(in) != pass_dtype(in->arg[0]) &&
        sd_shape_is_array(in->shape))
        return hlo_make_convert(pass_at(in), pass_dtype(in), in->arg[0]);
    return as_one(in);
}

/* ---- dimension sizes ---- */

static hlo_inst *lower_size(hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;
    int64_t v;

    if (in->dims.n != 1 || in->dims.at[0] >= s->rank)
        return NULL;
    if (in->op == HLO_GET_DIMENSION_SIZE)
        return hlo_make_scalar_s64(pass_at(in), pass_dtype(in),
                                   s->dim[in->dims.at[0]]);
    return pass_int_const(in->arg[1], &v) && v == s->dim[in->dims.at[0]]
               ? in->arg[0]
               : NULL;
}

static hlo_inst *lower_custom(hlo_inst *in)
{
    switch (hlo_info(in)->cls) {
    case HLO_C_CUSTOM:
        return lower_custom_call(in);
    case HLO_C_COLLECTIVE:
        return lower_collective(in);
    case HLO_C_DYNAMIC:
        return lower_size(in);
    default:
        return NULL;
    }
}

bool hlo_lower_custom(hlo_module *m)
{
    bool changed = false;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            hlo_inst *to;

            if (in->op == HLO_CUSTOM_CALL && in->nuse == 0 && in != c->root &&
                is_nothing_target(in->u.custom->target)) {
                hlo_remove(in);
                changed = true;
            } else if ((to = lower_custom(in))) {
                pass_replace(in, to);
                changed = true;
            }
        }
    return changed;
}
