/* Simplification of ops that only move data: what composes becomes one, what
 * moves nothing goes, and what moves copies of one scalar is a broadcast. */
#include "simplify.h"

static bool is_scalar_broadcast(const hlo_inst *in)
{
    return in->op == HLO_BROADCAST && in->arg[0]->shape->rank == 0;
}

/* The same scalar under the result's dimensions. */
static hlo_inst *spread_again(hlo_inst *in, const hlo_inst *x)
{
    return hlo_make_spread(pass_at(in), x->arg[0], in->shape);
}

/* A dense splat would be memory to load; a broadcast is an immediate. */
hlo_inst *simplify_constant(hlo_inst *in)
{
    const sd_shape *s;
    hlo_inst *x;

    if (!in->shape->rank || !hlo_is_splat(in))
        return NULL;
    s = sd_shape_make(in->parent->module->arena, pass_dtype(in), 0, NULL);
    x = hlo_make_constant(pass_at(in), s, in->u.literal.data);
    return hlo_make_spread(pass_at(in), x, in->shape);
}

hlo_inst *simplify_broadcast(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int64_t dims[SD_MAX_RANK];

    if (sd_shape_count(x->shape) == sd_shape_count(in->shape) &&
        hlo_dims_rise(in->dims) && (x->shape->rank || !in->shape->rank))
        return pass_reshape(pass_at(in), x, in->shape->rank, in->shape->dim);
    if (x->op != HLO_BROADCAST)
        return NULL;
    for (int i = 0; i < x->dims.n; i++)
        dims[i] = in->dims.at[x->dims.at[i]];
    return hlo_make_broadcast(pass_at(in), x->arg[0], in->shape, dims,
                              x->dims.n);
}

/* Is each dimension of x cut in pieces by the reshape in, and no more?  Those
 * of dimension i are in->shape's from `first[i]` to first[i + 1]. */
static bool only_cuts(const hlo_inst *in, const hlo_inst *x, int *first)
{
    int at = 0;

    for (int i = 0; i < x->shape->rank; i++) {
        int64_t n = 1;

        first[i] = at;
        while (at < in->shape->rank && n < x->shape->dim[i])
            n *= in->shape->dim[at++];
        if (n != x->shape->dim[i])
            return false;
    }
    first[x->shape->rank] = at;
    return at == in->shape->rank;
}

/* Of a transpose whose dimensions are cut: a transpose of what is cut.  It may
 * pass elementwise operations then, and meet another one. */
static hlo_inst *cut_before_transpose(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int64_t dim[SD_MAX_RANK], perm[SD_MAX_RANK];
    int first[SD_MAX_RANK + 1], n = 0;

    if (x->op != HLO_TRANSPOSE || !only_cuts(in, x, first))
        return NULL;
    for (int k = 0; k < x->dims.n; k++) /* dimensions of what is transposed */
        for (int i = 0; i < x->dims.n; i++)
            for (int j = first[i]; x->dims.at[i] == k && j < first[i + 1];
                 j++) {
                dim[n] = in->shape->dim[j];
                perm[j] = n++;
            }
    return hlo_make_transpose(
        pass_at(in), pass_reshape(pass_at(in), x->arg[0], n, dim), perm);
}

hlo_inst *simplify_reshape(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];

    if (sd_shape_same_dims(x->shape, in->shape))
        return x;
    if (x->op == HLO_RESHAPE)
        return pass_reshape(pass_at(in), x->arg[0], in->shape->rank,
                            in->shape->dim);
    if (is_scalar_broadcast(x))
        return spread_again(in, x);
    return cut_before_transpose(in);
}

hlo_inst *simplify_bitcast(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];

    if (pass_dtype(x) != pass_dtype(in) ||
        sd_shape_count(x->shape) != sd_shape_count(in->shape))
        return NULL;
    return pass_reshape(pass_at(in), x, in->shape->rank, in->shape->dim);
}

/* Dimensions of more than one element keep their order? */
static bool moves_nothing(const hlo_inst *in)
{
    int64_t last = -1;

    for (int i = 0; i < in->dims.n; i++) {
        if (in->shape->dim[i] == 1)
            continue;
        if (in->dims.at[i] < last)
            return false;
        last = in->dims.at[i];
    }
    return true;
}

hlo_inst *simplify_transpose(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int64_t dims[SD_MAX_RANK], at[SD_MAX_RANK];

    if (moves_nothing(in))
        return pass_reshape(pass_at(in), x, in->shape->rank, in->shape->dim);
    if (x->op == HLO_TRANSPOSE) {
        for (int i = 0; i < in->dims.n; i++)
            dims[i] = x->dims.at[in->dims.at[i]];
        return hlo_make_transpose(pass_at(in), x->arg[0], dims);
    }
    if (x->op == HLO_BROADCAST) {
        for (int i = 0; i < in->dims.n; i++)
            at[in->dims.at[i]] = i;
        for (int i = 0; i < x->dims.n; i++)
            dims[i] = at[x->dims.at[i]];
        return hlo_make_broadcast(pass_at(in), x->arg[0], in->shape, dims,
                                  x->dims.n);
    }
    return NULL;
}

hlo_inst *simplify_reverse(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int64_t dims[SD_MAX_RANK];
    int n = 0;

    if (is_scalar_broadcast(x))
        return x;
    for (int i = 0; i < in->dims.n; i++)
        if (in->shape->dim[in->dims.at[i]] > 1)
            dims[n++] = in->dims.at[i];
    if (n == 0)
        return x;
    if (x->op == HLO_REVERSE && hlo_dims_equal(x->dims, in->dims))
        return x->arg[0];
    return n < in->dims.n ? hlo_make_reverse(pass_at(in), x, dims, n) : NULL;
}

/* A slice inside one operand of a concatenate is a slice of that operand. */
static hlo_inst *slice_of_concatenate(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int64_t d = x->dims.at[0], at = 0, start[SD_MAX_RANK], limit[SD_MAX_RANK];
    int rank = in->shape->rank;

    for (int i = 0; i < x->narg; i++) {
        int64_t n = x->arg[i]->shape->dim[d];

        if (in->u.slice.start[d] >= at && in->u.slice.limit[d] <= at + n) {
            memcpy(start, in->u.slice.start, sizeof *start * (size_t)rank);
            memcpy(limit, in->u.slice.limit, sizeof *limit * (size_t)rank);
            start[d] -= at;
            limit[d] -= at;
            return hlo_make_slice(pass_at(in), x->arg[i], start, limit,
                                  in->u.slice.stride);
        }
        at += n;
    }
    return NULL;
}

hlo_inst *simplify_slice(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int64_t start[SD_MAX_RANK], limit[SD_MAX_RANK], stride[SD_MAX_RANK];

    if (sd_shape_same_dims(x->shape, in->shape))
        return x;
    if (is_scalar_broadcast(x))
        return spread_again(in, x);
    if (x->op == HLO_CONCATENATE)
        return slice_of_concatenate(in);
    if (x->op != HLO_SLICE)
        return NULL;
    for (int i = 0; i < in->shape->rank; i++) {
        int64_t by = x->u.slice.stride[i];

        start[i] = x->u.slice.start[i] + in->u.slice.start[i] * by;
        stride[i] = by * in->u.slice.stride[i];
        /* one past the last element that is read */
        limit[i] = start[i] + (in->shape->dim[i] - 1) * stride[i] + 1;
    }
    return hlo_make_slice(pass_at(in), x->arg[0], start, limit, stride);
}

hlo_inst *simplify_pad(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int rank = in->shape->rank;
    int64_t start[SD_MAX_RANK], limit[SD_MAX_RANK];
    bool none = true, cuts = true;

    for (int i = 0; i < rank; i++) {
        int64_t low = in->u.pad.low[i], high = in->u.pad.high[i];
        bool spaced = in->u.pad.interior[i] > 0 && x->shape->dim[i] > 1;

        none &= low == 0 && high == 0 && !spaced;
        cuts &= low <= 0 && high <= 0 && !spaced;
        start[i] = -low;
        limit[i] = x->shape->dim[i] + high;
    }
    if (none)
        return x;
    if (cuts)
        return hlo_make_slice(pass_at(in), x, start, limit, NULL);
    if (sd_shape_count(x->shape) == 0)
        return hlo_make_spread(pass_at(in), in->arg[1], in->shape);
    return is_scalar_broadcast(x) && x->arg[0] == in->arg[1]
               ? spread_again(in, x)
               : NULL;
}

hlo_inst *simplify_concatenate(hlo_inst *in)
{
    int64_t d = in->dims.at[0];
    hlo_inst **keep;
    int n = 0;

    if (in->narg == 1)
        return in->arg[0];
    keep = sd_arena_array(in->parent->module->arena, hlo_inst *, in->narg);
    for (int i = 0; i < in->narg; i++)
        if (in->arg[i]->shape->dim[d] > 0)
            keep[n++] = in->arg[i];
    if (n == in->narg || n == 0)
        return NULL;
    return n == 1 ? keep[0] : hlo_make_concatenate(pass_at(in), n, keep, d);
}

/* Where a copy is needed plan says. */
hlo_inst *simplify_copy(hlo_inst *in)
{
    return in->arg[0];
}

hlo_inst *simplify_dynamic_slice(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    int64_t start[SD_MAX_RANK], limit[SD_MAX_RANK];

    if (sd_shape_same_dims(x->shape, in->shape))
        return x;
    if (is_scalar_broadcast(x))
        return spread_again(in, x);
    for (int i = 0; i < in->shape->rank; i++) {
        int64_t most = x->shape->dim[i] - in->shape->dim[i];

        if (!pass_int_const(in->arg[1 + i], &start[i])) {
            if (most)
                return NULL;
            start[i] = 0;
        }
        if (start[i] < 0 &&
            sd_dtype_kind(pass_dtype(in->arg[1 + i])) == SD_K_UINT)
            start[i] = most; /* a u64 beyond what is signed */
        start[i] = SD_MAX(SD_MIN(start[i], most), 0);
        limit[i] = start[i] + in->shape->dim[i];
    }
    return hlo_make_slice(pass_at(in), x, start, limit, NULL);
}

hlo_inst *simplify_dynamic_update_slice(hlo_inst *in)
{
    if (sd_shape_same_dims(in->arg[1]->shape, in->shape))
        return in->arg[1];
    return sd_shape_count(in->arg[1]->shape) == 0 ? in->arg[0] : NULL;
}
