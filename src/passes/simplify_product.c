/* Simplification of products and convolutions: a free dimension along which an
 * operand is repeated repeats the result, of which KEPT positions are computed.
 * The gradient of a sum has such operands, as dot(ones[256,128], w[512,128]) of
 * the weights before: 256 equal rows.  One row would be a product with a
 * vector, whose sums have another order and so other bits.
 *
 * Of a convolution an operand that is one number c throughout multiplies all
 * features alike, so their products with c are summed before, and c is 1: of
 * the gradient of 64 images of 56 x 56 all windows of one image are left.  The
 * sum of the products is finite wherever the convolution's is. */
#include "simplify.h"

enum { KEPT = 2, LEAST_SUMMED = 8 /* features */ };

/* Of operand `side`, which is a broadcast, the dimensions that are new there
 * become KEPT where to[d] says which dimension of the result they are (-1:
 * none); NULL where there are none. */
static hlo_inst *repeat_result(hlo_inst *in, int side, const int64_t *to)
{
    hlo_inst *x = in->arg[side], *arg[2] = {in->arg[0], in->arg[1]}, *once;
    sd_arena *a = in->parent->module->arena;
    int64_t of[SD_MAX_RANK], result[SD_MAX_RANK], at[SD_MAX_RANK];
    int64_t start[SD_MAX_RANK], stride[SD_MAX_RANK];
    int rank = in->shape->rank, n = 0;
    bool some = false, equal[SD_MAX_RANK] = {false};

    if (x->op != HLO_BROADCAST)
        return NULL;
    for (int d = 0; d < rank; d++)
        result[d] = in->shape->dim[d];
    for (int d = 0; d < x->shape->rank; d++) {
        of[d] = x->shape->dim[d];
        if (to[d] < 0 || of[d] <= KEPT || hlo_dims_hold(x->dims, d))
            continue;
        of[d] = result[to[d]] = KEPT;
        some = equal[to[d]] = true;
    }
    if (!some)
        return NULL;
    arg[side] =
        hlo_make_broadcast(pass_at(in), x->arg[0],
                           sd_shape_make(a, pass_dtype(x), x->shape->rank, of),
                           x->dims.at, x->dims.n);
    once = hlo_inst_clone(in->parent, in, in, arg);
    once->shape = sd_shape_make(a, pass_dtype(in), rank, result);
    for (int d = 0; d < rank; d++) {
        start[d] = 0;
        stride[d] = 1;
        if (equal[d])
            result[d] = 1;
    }
    once = hlo_make_slice(pass_at(in), once, start, result, stride);
    for (int d = 0; d < rank; d++)
        if (!equal[d]) {
            result[n] = result[d];
            at[n++] = d;
        }
    once = pass_reshape(pass_at(in), once, n, result);
    return hlo_make_broadcast(pass_at(in), once, in->shape, at, n);
}

hlo_inst *simplify_dot(hlo_inst *in)
{
    const hlo_dot *d = in->u.dot;
    int64_t next = d->lhs_batch.n; /* dimension of the result */
    hlo_inst *r = NULL;

    for (int s = 0; s < 2 && !r; s++) {
        hlo_dims batch = s ? d->rhs_batch : d->lhs_batch;
        hlo_dims contract = s ? d->rhs_contract : d->lhs_contract;
        int64_t to[SD_MAX_RANK];

        for (int i = 0; i < in->arg[s]->shape->rank; i++)
            to[i] = hlo_dims_hold(batch, i) || hlo_dims_hold(contract, i)
                        ? -1
                        : next++;
        r = repeat_result(in, s, to);
    }
    return r;
}

/* x with one position along d, the sum of what it has there. */
static hlo_inst *sum_along(hlo_inst *in, hlo_inst *x, int64_t d)
{
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < x->shape->rank; i++)
        dim[i] = i == d ? 1 : x->shape->dim[i];
    return pass_reshape(pass_at(in), hlo_make_sum(pass_at(in), x, &d, 1),
                        x->shape->rank, dim);
}

/* Operand `side` is one number; feature[s]: the dimension of operand s that is
 * summed over. */
static hlo_inst *sum_features(hlo_inst *in, int side, const int64_t *feature)
{
    hlo_inst *same = in->arg[side], *x = in->arg[1 - side], *arg[2];
    int64_t dim[SD_MAX_RANK];

    if (same->op != HLO_BROADCAST || same->dims.n || pass_dtype(in) != SD_F32 ||
        pass_dtype(x) != SD_F32 || pass_dtype(same) != SD_F32 ||
        x->shape->dim[feature[1 - side]] < LEAST_SUMMED)
        return NULL;
    for (int i = 0; i < same->shape->rank; i++)
        dim[i] = i == feature[side] ? 1 : same->shape->dim[i];
    x = hlo_make_binary(pass_at(in), HLO_MULTIPLY, x,
                        hlo_make_spread(pass_at(in), same->arg[0], x->shape));
    arg[1 - side] = sum_along(in, x, feature[1 - side]);
    arg[side] =
        hlo_make_spread(pass_at(in), hlo_make_scalar(pass_at(in), SD_F32, 1),
                        sd_shape_make(in->parent->module->arena, SD_F32,
                                      same->shape->rank, dim));
    return hlo_inst_clone(in->parent, in, in, arg);
}

/* Images, and features where there are no groups. */
hlo_inst *simplify_convolution(hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;
    int64_t image[SD_MAX_RANK], feature[SD_MAX_RANK];
    hlo_inst *r;

    if (c->batch_groups > 1 || c->feature_groups > 1)
        return NULL;
    for (int i = 0; i < in->shape->rank; i++)
        image[i] = feature[i] = -1;
    image[c->in_batch] = c->out_batch;
    feature[c->k_out] = c->out_feature;
    r = repeat_result(in, 0, image);
    if (!r)
        r = repeat_result(in, 1, feature);
    for (int side = 0; side < 2 && !r; side++)
        r = sum_features(in, side, (int64_t[]){c->in_feature, c->k_in});
    return r;
}
