/* Are two instructions the same but for their operands?  Attributes that share
 * their memory, as those of clones do, are the same at once. */
#include "passes_priv.h"

static bool same_i64(const int64_t *x, const int64_t *y, int n)
{
    return x == y || n == 0 || memcmp(x, y, sizeof *x * (size_t)n) == 0;
}

static bool same_dims(hlo_dims x, hlo_dims y)
{
    return x.n == y.n && same_i64(x.at, y.at, x.n);
}

static bool same_window(const hlo_window_dim *x, const hlo_window_dim *y, int n)
{
    for (int i = 0; i < n; i++)
        if (x[i].size != y[i].size || x[i].stride != y[i].stride ||
            x[i].pad_low != y[i].pad_low || x[i].pad_high != y[i].pad_high ||
            x[i].base_dilation != y[i].base_dilation ||
            x[i].window_dilation != y[i].window_dilation ||
            x[i].reversal != y[i].reversal)
            return false;
    return true;
}

static bool same_dot(const hlo_dot *x, const hlo_dot *y)
{
    return x == y || (same_dims(x->lhs_batch, y->lhs_batch) &&
                      same_dims(x->rhs_batch, y->rhs_batch) &&
                      same_dims(x->lhs_contract, y->lhs_contract) &&
                      same_dims(x->rhs_contract, y->rhs_contract) &&
                      x->prec[0] == y->prec[0] && x->prec[1] == y->prec[1] &&
                      (x->algorithm == y->algorithm ||
                       (x->algorithm && y->algorithm &&
                        strcmp(x->algorithm, y->algorithm) == 0)));
}

static bool same_conv(const hlo_conv *x, const hlo_conv *y)
{
    return x == y ||
           (x->nspatial == y->nspatial && x->in_batch == y->in_batch &&
            x->in_feature == y->in_feature && x->out_batch == y->out_batch &&
            x->out_feature == y->out_feature && x->k_in == y->k_in &&
            x->k_out == y->k_out && same_dims(x->in_spatial, y->in_spatial) &&
            same_dims(x->k_spatial, y->k_spatial) &&
            same_dims(x->out_spatial, y->out_spatial) &&
            same_window(x->win, y->win, x->nspatial) &&
            x->feature_groups == y->feature_groups &&
            x->batch_groups == y->batch_groups && x->prec[0] == y->prec[0] &&
            x->prec[1] == y->prec[1]);
}

static bool same_gather(const hlo_gather *x, const hlo_gather *y)
{
    return x == y || (same_dims(x->offset_dims, y->offset_dims) &&
                      same_dims(x->collapsed, y->collapsed) &&
                      same_dims(x->operand_batch, y->operand_batch) &&
                      same_dims(x->indices_batch, y->indices_batch) &&
                      same_dims(x->index_map, y->index_map) &&
                      x->index_vector_dim == y->index_vector_dim &&
                      same_dims(x->slice_sizes, y->slice_sizes) &&
                      x->sorted == y->sorted && x->unique == y->unique);
}

bool pass_same_attributes(const hlo_inst *x, const hlo_inst *y)
{
    int rank = x->narg && sd_shape_is_array(x->arg[0]->shape)
                   ? x->arg[0]->shape->rank
                   : 0;

    if (x->op != y->op || !same_dims(x->dims, y->dims))
        return false;
    switch (x->op) {
    case HLO_SLICE:
        return same_i64(x->u.slice.start, y->u.slice.start, rank) &&
               same_i64(x->u.slice.limit, y->u.slice.limit, rank) &&
               same_i64(x->u.slice.stride, y->u.slice.stride, rank);
    case HLO_PAD:
        return same_i64(x->u.pad.low, y->u.pad.low, rank) &&
               same_i64(x->u.pad.high, y->u.pad.high, rank) &&
               same_i64(x->u.pad.interior, y->u.pad.interior, rank);
    case HLO_REDUCE_WINDOW:
    case HLO_SELECT_AND_SCATTER:
        return x->u.window.n == y->u.window.n &&
               same_window(x->u.window.dim, y->u.window.dim, x->u.window.n);
    case HLO_SCAN:
        return x->u.scan.dim == y->u.scan.dim &&
               x->u.scan.exclusive == y->u.scan.exclusive &&
               x->u.scan.reverse == y->u.scan.reverse;
    case HLO_DOT:
        return same_dot(x->u.dot, y->u.dot);
    case HLO_CONVOLUTION:
        return same_conv(x->u.conv, y->u.conv);
    case HLO_GATHER:
    case HLO_SCATTER:
        return same_gather(x->u.gather, y->u.gather);
    case HLO_COMPARE:
        return x->u.compare.dir == y->u.compare.dir &&
               x->u.compare.type == y->u.compare.type;
    case HLO_CONSTANT:
        return x->u.literal.bytes == y->u.literal.bytes &&
               (x->u.literal.data == y->u.literal.data ||
                memcmp(x->u.literal.data, y->u.literal.data,
                       x->u.literal.bytes) == 0);
    case HLO_PARAMETER:
        return x->u.param.index == y->u.param.index;
    case HLO_GET_TUPLE_ELEMENT:
        return x->u.tuple.index == y->u.tuple.index;
    case HLO_REDUCE_PRECISION:
        return x->u.precision.exponent == y->u.precision.exponent &&
               x->u.precision.mantissa == y->u.precision.mantissa;
    case HLO_SORT:
    case HLO_TOPK:
        return x->u.sort.stable == y->u.sort.stable;
    default: /* either none, or nothing we make equal */
        return hlo_info(x)->cls <= HLO_C_INDEXED || x->op == HLO_REDUCE ||
               x->op == HLO_TUPLE || x->op == HLO_OPT_BARRIER;
    }
}

uint64_t pass_hash_attributes(const hlo_inst *in, uint64_t h)
{
    h = sd_hash(in->dims.at, sizeof(int64_t) * (size_t)in->dims.n, h);
    if (in->op == HLO_CONSTANT) /* large ones by their ends */
        return sd_hash(in->u.literal.data, SD_MIN(in->u.literal.bytes, 256),
                       h + in->u.literal.bytes);
    if (in->op == HLO_GET_TUPLE_ELEMENT)
        return sd_hash(&in->u.tuple.index, sizeof in->u.tuple.index, h);
    if (in->op == HLO_SLICE && in->shape->rank)
        return sd_hash(in->u.slice.start,
                       sizeof(int64_t) * (size_t)in->shape->rank, h);
    if (in->op == HLO_PAD && in->shape->rank)
        return sd_hash(in->u.pad.low, sizeof(int64_t) * (size_t)in->shape->rank,
                       h);
    return h;
}

/* In step: equal computations have equal instructions in equal order; mark is
 * the place in it. */
bool pass_same_comp(const hlo_comp *x, const hlo_comp *y)
{
    hlo_inst *a = x->first, *b = y->first;
    int64_t n = 0;

    if (x == y)
        return true;
    if (x->nparam != y->nparam)
        return false;
    for (; a && b; a = a->next, b = b->next, n++) {
        if (a->narg != b->narg || a->ncomp || b->ncomp ||
            !sd_shape_equal(a->shape, b->shape) || !pass_same_attributes(a, b))
            return false;
        for (int i = 0; i < a->narg; i++)
            if (a->arg[i]->mark != b->arg[i]->mark)
                return false;
        a->mark = b->mark = n;
    }
    return !a && !b && x->root->mark == y->root->mark;
}
