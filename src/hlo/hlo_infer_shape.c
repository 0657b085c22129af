/* Inference of leaves, of what moves data, and of what is indexed at run
 * time. */
#include "hlo_infer.h"

/* ---- leaves ---- */

sd_status hlo_infer_leaf(hlo_module *m, const hlo_inst *in,
                         const sd_shape **out)
{
    sd_status st;

    if ((st = hlo_want_args(m, in, 0)) || (st = hlo_want_declared(m, in)))
        return st;
    *out = in->shape;
    if (in->op == HLO_PARAMETER) {
        if (in->u.param.index < 0)
            return hlo_bad(m, in, "no parameter %" PRId64, in->u.param.index);
        return NULL;
    }
    if (!sd_shape_is_array(in->shape))
        return hlo_bad(m, in, "must be an array");
    if (in->op == HLO_CONSTANT) {
        if (in->u.literal.bytes != sd_shape_bytes(in->shape))
            return hlo_bad(m, in, "holds %zu bytes, its shape %zu",
                           in->u.literal.bytes, sd_shape_bytes(in->shape));
        return NULL;
    }
    if (in->dims.n != 1 || in->dims.at[0] < 0 ||
        in->dims.at[0] >= in->shape->rank)
        return hlo_bad(m, in, "iota needs one of its dimensions");
    if (in->shape->dtype == SD_PRED)
        return hlo_bad(m, in, "counts in numbers, not in pred");
    return NULL;
}

/* ---- what moves data ---- */

static sd_status infer_broadcast(hlo_module *m, const hlo_inst *in,
                                 const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape, *to = in->shape;
    sd_status st;

    if ((st = hlo_want_declared_array(m, in)))
        return st;
    if (in->dims.n != x->rank)
        return hlo_bad(m, in, "%d dimensions for an operand of rank %d",
                       in->dims.n, x->rank);
    if ((st = hlo_want_dims(m, in, "dimensions", in->dims, to->rank)))
        return st;
    for (int i = 0; i < x->rank; i++)
        if (x->dim[i] != to->dim[in->dims.at[i]])
            return hlo_bad(m, in,
                           "operand dimension %d of %" PRId64
                           " does not fit %s's dimension %" PRId64,
                           i, x->dim[i], hlo_shape_str(m, to), in->dims.at[i]);
    return hlo_result(m, in, x->dtype, to->rank, to->dim, out);
}

static sd_status infer_reshape(hlo_module *m, const hlo_inst *in,
                               const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape, *to = in->shape;
    sd_status st;

    if ((st = hlo_want_declared_array(m, in)))
        return st;
    if (in->op == HLO_BITCAST) {
        if (sd_shape_bytes(x) != sd_shape_bytes(to))
            return hlo_bad(m, in, "%s has other bytes", hlo_shape_str(m, to));
        *out = to;
        return NULL;
    }
    if (sd_shape_count(x) != sd_shape_count(to))
        return hlo_bad(m, in, "%" PRId64 " elements do not make %s",
                       sd_shape_count(x), hlo_shape_str(m, to));
    return hlo_result(m, in, x->dtype, to->rank, to->dim, out);
}

static sd_status infer_transpose(hlo_module *m, const hlo_inst *in,
                                 const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape;
    int64_t dim[SD_MAX_RANK];
    sd_status st;

    if (in->dims.n != x->rank)
        return hlo_bad(m, in, "%d dimensions for an operand of rank %d",
                       in->dims.n, x->rank);
    if ((st = hlo_want_dims(m, in, "dimensions", in->dims, x->rank)))
        return st;
    for (int i = 0; i < x->rank; i++)
        dim[i] = x->dim[in->dims.at[i]];
    return hlo_result(m, in, x->dtype, x->rank, dim, out);
}

static sd_status infer_slice(hlo_module *m, const hlo_inst *in,
                             const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape;
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < x->rank; i++) {
        int64_t a = in->u.slice.start[i], b = in->u.slice.limit[i];
        int64_t by = in->u.slice.stride[i];

        if (a < 0 || a > b || b > x->dim[i] || by < 1)
            return hlo_bad(m, in,
                           "slice [%" PRId64 ":%" PRId64 ":%" PRId64
                           "] of dimension %d",
                           a, b, by, i);
        dim[i] = (b - a) / by + ((b - a) % by != 0);
    }
    return hlo_result(m, in, x->dtype, x->rank, dim, out);
}

static sd_status infer_pad(hlo_module *m, const hlo_inst *in,
                           const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape;
    int64_t dim[SD_MAX_RANK];
    sd_status st;

    if ((st = hlo_want_scalar(m, in, 1, x->dtype)))
        return st;
    for (int i = 0; i < x->rank; i++) {
        const int64_t limit = INT64_C(1) << 46; /* index arithmetic fits */
        int64_t gap = in->u.pad.interior[i];
        int64_t low = in->u.pad.low[i], high = in->u.pad.high[i];
        __int128 n = x->dim[i];

        n += (__int128)low + high +
             (x->dim[i] > 0 ? (__int128)(x->dim[i] - 1) * gap : 0);
        if (gap < 0 || gap > limit || low < -limit || low > limit ||
            high < -limit || high > limit || n < 0 || n > limit)
            return hlo_bad(m, in,
                           "padding %" PRId64 "_%" PRId64 "_%" PRId64
                           " of dimension %d",
                           low, high, gap, i);
        dim[i] = (int64_t)n;
    }
    return hlo_result(m, in, x->dtype, x->rank, dim, out);
}

static sd_status infer_concatenate(hlo_module *m, const hlo_inst *in,
                                   const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape;
    int64_t dim[SD_MAX_RANK];
    sd_status st;

    if (in->dims.n != 1)
        return hlo_bad(m, in, "concatenate needs one dimension");
    if ((st = hlo_want_dims(m, in, "dimensions", in->dims, x->rank)))
        return st;
    int64_t d = in->dims.at[0];

    memcpy(dim, x->dim, sizeof *dim * (size_t)x->rank);
    for (int i = 1; i < in->narg; i++) {
        const sd_shape *y = in->arg[i]->shape;
        bool fits =
            sd_shape_is_array(y) && y->rank == x->rank && y->dtype == x->dtype;

        for (int k = 0; fits && k < x->rank; k++)
            fits = k == d || y->dim[k] == x->dim[k];
        if (!fits)
            return hlo_bad(m, in, "operand %d does not fit operand 0", i);
        if (__builtin_add_overflow(dim[d], y->dim[d], &dim[d]))
            dim[d] = INT64_MAX; /* which no array has */
    }
    return hlo_result(m, in, x->dtype, x->rank, dim, out);
}

sd_status hlo_infer_shape(hlo_module *m, const hlo_inst *in,
                          const sd_shape **out)
{
    const sd_shape *x;
    sd_status st;

    if (in->op == HLO_COPY && in->narg == 1) {
        *out = in->arg[0]->shape;
        return NULL;
    }
    if ((in->op != HLO_CONCATENATE &&
         (st = hlo_want_args(m, in, in->op == HLO_PAD ? 2 : 1))) ||
        (st = hlo_want_array(m, in, 0)))
        return st;
    x = in->arg[0]->shape;
    switch (in->op) {
    case HLO_BROADCAST:
        return infer_broadcast(m, in, out);
    case HLO_RESHAPE:
    case HLO_BITCAST:
        return infer_reshape(m, in, out);
    case HLO_TRANSPOSE:
        return infer_transpose(m, in, out);
    case HLO_REVERSE:
        if ((st = hlo_want_dims(m, in, "dimensions", in->dims, x->rank)))
            return st;
        return hlo_result(m, in, x->dtype, x->rank, x->dim, out);
    case HLO_SLICE:
        return infer_slice(m, in, out);
    case HLO_PAD:
        return infer_pad(m, in, out);
    default:
        return infer_concatenate(m, in, out);
    }
}

/* ---- dynamic slices ---- */

/* One integer scalar a dimension, all of one type, from operand `from`. */
static sd_status want_starts(hlo_module *m, const hlo_inst *in, int from,
                             int rank)
{
    sd_status st;

    if ((st = hlo_want_args(m, in, from + rank)))
        return st;
    for (int i = from; i < in->narg; i++) {
        if ((st = hlo_want_array(m, in, i)))
            return st;
        if (!sd_is_int(in->arg[i]->shape->dtype))
            return hlo_bad(m, in, "start %d must be an integer", i - from);
        if ((st = hlo_want_scalar(m, in, i, in->arg[from]->shape->dtype)))
            return st;
    }
    return NULL;
}

static sd_status infer_dynamic_slice(hlo_module *m, const hlo_inst *in,
                                     const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape;
    sd_status st;

    if ((st = want_starts(m, in, 1, x->rank)))
        return st;
    if (in->dims.n != x->rank)
        return hlo_bad(m, in, "%d slice sizes for rank %d", in->dims.n,
                       x->rank);
    for (int i = 0; i < x->rank; i++)
        if (in->dims.at[i] < 0 || in->dims.at[i] > x->dim[i])
            return hlo_bad(m, in, "slice size %" PRId64 " of dimension %d",
                           in->dims.at[i], i);
    return hlo_result(m, in, x->dtype, x->rank, in->dims.at, out);
}

static sd_status infer_dynamic_update(hlo_module *m, const hlo_inst *in,
                                      const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape, *u;
    sd_status st;

    if ((st = hlo_want_array(m, in, 1)) ||
        (st = want_starts(m, in, 2, x->rank)))
        return st;
    u = in->arg[1]->shape;
    if (u->rank != x->rank || u->dtype != x->dtype)
        return hlo_bad(m, in,
                       "the update must have rank and type of operand 0");
    for (int i = 0; i < x->rank; i++)
        if (u->dim[i] > x->dim[i])
            return hlo_bad(m, in, "the update is longer in dimension %d", i);
    return hlo_result(m, in, x->dtype, x->rank, x->dim, out);
}

/* ---- gather ---- */

sd_status hlo_check_index_map(hlo_module *m, const hlo_inst *in,
                              const sd_shape *x, const sd_shape *ix)
{
    const hlo_gather *g = in->u.gather;
    sd_status st;

    if (!sd_is_int(ix->dtype))
        return hlo_bad(m, in, "indices must be integers");
    if (g->index_vector_dim < 0 || g->index_vector_dim > ix->rank)
        return hlo_bad(m, in, "index_vector_dim %" PRId64 " of rank %d",
                       g->index_vector_dim, ix->rank);
    if ((st = hlo_want_dims(m, in, "collapsed dimensions", g->collapsed,
                            x->rank)) ||
        (st = hlo_want_dims(m, in, "batch dimensions of the operand",
                            g->operand_batch, x->rank)) ||
        (st = hlo_want_dims(m, in, "batch dimensions of the indices",
                            g->indices_batch, ix->rank)) ||
        (st = hlo_want_dims(m, in, "index map", g->index_map, x->rank)))
        return st;
    if (!hlo_dims_rise(g->collapsed) || !hlo_dims_rise(g->operand_batch))
        return hlo_bad(m, in, "collapsed and batch dimensions must rise");
    for (int i = 0; i < g->operand_batch.n; i++)
        if (hlo_dims_hold(g->collapsed, g->operand_batch.at[i]) ||
            hlo_dims_hold(g->index_map, g->operand_batch.at[i]))
            return hlo_bad(m, in, "dimension %" PRId64 " has two roles",
                           g->operand_batch.at[i]);
    int64_t width =
        g->index_vector_dim < ix->rank ? ix->dim[g->index_vector_dim] : 1;

    if (g->index_map.n != width)
        return hlo_bad(m, in, "%" PRId64 " indices for a map of %d", width,
                       g->index_map.n);
    if (g->operand_batch.n != g->indices_batch.n)
        return hlo_bad(m, in,
                       "%d batch dimensions of the operand, %d of the "
                       "indices",
                       g->operand_batch.n, g->indices_batch.n);
    for (int i = 0; i < g->operand_batch.n; i++) {
        if (g->indices_batch.at[i] == g->index_vector_dim)
            return hlo_bad(m, in, "the index vector is no batch dimension");
        if ((st = hlo_want_pair(m, in, "batch", x, g->operand_batch.at[i], ix,
                                g->indices_batch.at[i])))
            return st;
    }
    return NULL;
}

static sd_status infer_gather(hlo_module *m, const hlo_inst *in,
                              const sd_shape **out)
{
    const hlo_gather *g = in->u.gather;
    const sd_shape *x = in->arg[0]->shape, *ix;
    int64_t dim[2 * SD_MAX_RANK], window[SD_MAX_RANK], batch[SD_MAX_RANK];
    int nwindow = 0, nbatch = 0, rank;
    bool nothing = false;
    sd_status st;

    if ((st = hlo_want_args(m, in, 2)) || (st = hlo_want_array(m, in, 1)))
        return st;
    ix = in->arg[1]->shape;
    if ((st = hlo_check_index_map(m, in, x, ix)))
        return st;
    if (g->slice_sizes.n != x->rank)
        return hlo_bad(m, in, "%d slice sizes for rank %d", g->slice_sizes.n,
                       x->rank);
    for (int i = 0; i < x->rank; i++) {
        int64_t size = g->slice_sizes.at[i];
        bool gone = hlo_dims_hold(g->collapsed, i) ||
                    hlo_dims_hold(g->operand_batch, i);

        if (size < 0 || size > x->dim[i] || (gone && size > 1))
            return hlo_bad(m, in, "slice size %" PRId64 " of dimension %d",
                           size, i);
        if (!gone)
            window[nwindow++] = size;
    }
    for (int i = 0; i < ix->rank; i++)
        if (i != g->index_vector_dim)
            batch[nbatch++] = ix->dim[i];
    rank = nbatch + nwindow;
    for (int i = 0; i < x->rank; i++)
        nothing = nothing || (g->slice_sizes.at[i] == 0 &&
                              (hlo_dims_hold(g->collapsed, i) ||
                               hlo_dims_hold(g->operand_batch, i)));
    if (g->offset_dims.n != nwindow)
        return hlo_bad(m, in, "%d offset_dims for %d window dimensions",
                       g->offset_dims.n, nwindow);
    if ((st = hlo_want_dims(m, in, "offset_dims", g->offset_dims, rank)))
        return st;
    if (!hlo_dims_rise(g->offset_dims))
        return hlo_bad(m, in, "offset_dims must rise");
    for (int i = 0, b = 0, w = 0; i < rank; i++)
        dim[i] = hlo_dims_hold(g->offset_dims, i) ? window[w++] : batch[b++];
    if ((st = hlo_result(m, in, x->dtype, rank, dim, out)))
        return st;
    if (nothing && sd_shape_count(*out))
        return hlo_bad(m, in,
                       "slices without elements for a result of %" PRId64,
                       sd_shape_count(*out));
    return NULL;
}

sd_status hlo_infer_indexed(hlo_module *m, const hlo_inst *in,
                            const sd_shape **out)
{
    sd_status st = hlo_want_array(m, in, 0);

    if (st)
        return st;
    if (in->op == HLO_GATHER)
        return infer_gather(m, in, out);
    return in->op == HLO_DYNAMIC_SLICE ? infer_dynamic_slice(m, in, out)
                                       : infer_dynamic_update(m, in, out);
}
