/* Inference of what runs a computation on scalars: scatter, reduce, windows,
 * scan, map, sort. */
#include "hlo_infer.h"

/* n operands of one dimensionality from `from` on */
static sd_status want_same_dims(hlo_module *m, const hlo_inst *in, int from,
                                int n)
{
    sd_status st;

    for (int i = from; i < from + n; i++) {
        if ((st = hlo_want_array(m, in, i)))
            return st;
        if (!sd_shape_same_dims(in->arg[i]->shape, in->arg[from]->shape))
            return hlo_bad(m, in, "operands %d and %d differ in dimensions",
                           from, i);
    }
    return NULL;
}

/* x.., init..: counts, types, and a region of (acc.., x..) -> acc.. */
static sd_status want_reducer(hlo_module *m, const hlo_inst *in)
{
    int n = in->narg / 2;
    sd_dtype *t;
    sd_status st;

    if (n == 0 || in->narg % 2)
        return hlo_bad(m, in, "needs as many start values as operands");
    if ((st = hlo_want_comps(m, in, 1)) || (st = want_same_dims(m, in, 0, n)))
        return st;
    t = sd_arena_array(m->arena, sd_dtype, 2 * n);
    for (int i = 0; i < n; i++) {
        t[i] = t[n + i] = in->arg[i]->shape->dtype;
        if ((st = hlo_want_scalar(m, in, n + i, t[i])))
            return st;
    }
    return hlo_want_region(m, in, 0, 2 * n, t, n, t);
}

/* The shape of each operand's result, all of these dimensions. */
static sd_status results(hlo_module *m, const hlo_inst *in, int n, int rank,
                         const int64_t *dim, const sd_shape **out)
{
    const sd_shape **s = sd_arena_array(m->arena, const sd_shape *, n);
    sd_status st;

    for (int i = 0; i < n; i++)
        if ((st =
                 hlo_result(m, in, in->arg[i]->shape->dtype, rank, dim, &s[i])))
            return st;
    *out = hlo_one_or_tuple(m, n, s);
    return NULL;
}

sd_status hlo_infer_reduce(hlo_module *m, const hlo_inst *in,
                           const sd_shape **out)
{
    int64_t dim[SD_MAX_RANK];
    int rank = 0;
    sd_status st;

    if ((st = want_reducer(m, in)))
        return st;
    const sd_shape *x = in->arg[0]->shape;

    if ((st = hlo_want_dims(m, in, "dimensions", in->dims, x->rank)))
        return st;
    for (int i = 0; i < x->rank; i++)
        if (!hlo_dims_hold(in->dims, i))
            dim[rank++] = x->dim[i];
    return results(m, in, in->narg / 2, rank, dim, out);
}

sd_status hlo_infer_scan(hlo_module *m, const hlo_inst *in,
                         const sd_shape **out)
{
    sd_status st;

    if ((st = want_reducer(m, in)))
        return st;
    const sd_shape *x = in->arg[0]->shape;

    if (in->u.scan.dim < 0 || in->u.scan.dim >= x->rank)
        return hlo_bad(m, in, "no dimension %" PRId64, in->u.scan.dim);
    return results(m, in, in->narg / 2, x->rank, x->dim, out);
}

/* ---- windows ---- */

enum { LIMIT_BITS = 46 }; /* as of an array's bytes: index arithmetic fits */
#define LIMIT (INT64_C(1) << LIMIT_BITS)

static bool in_range(int64_t v, int64_t least)
{
    return v >= least && v <= LIMIT;
}

bool hlo_window_count(const hlo_window_dim *w, int64_t n, int64_t *padded,
                      int64_t *out)
{
    if (!in_range(w->size, 1) || !in_range(w->stride, 1) ||
        !in_range(w->base_dilation, 1) || !in_range(w->window_dilation, 1) ||
        !in_range(w->pad_low, -LIMIT) || !in_range(w->pad_high, -LIMIT))
        return false;
    __int128 dilated = n ? (__int128)(n - 1) * w->base_dilation + 1 : 0;
    __int128 all = dilated + w->pad_low + w->pad_high;
    __int128 reach = (__int128)(w->size - 1) * w->window_dilation + 1;

    if (all > LIMIT || reach > 2 * (__int128)LIMIT)
        return false;
    *padded = (int64_t)SD_MAX(all, 0);
    *out = all >= reach ? (int64_t)((all - reach) / w->stride) + 1 : 0;
    return true;
}

sd_status hlo_want_volume(hlo_module *m, const hlo_inst *in, const char *what,
                          const int64_t *n, int rank)
{
    __int128 all = 1;

    for (int i = 0; i < rank; i++) {
        all *= SD_MAX(n[i], 1);
        if (all > LIMIT)
            return hlo_bad(m, in, "%s more than 2^%d elements", what,
                           LIMIT_BITS);
    }
    return NULL;
}

static sd_status window_dims(hlo_module *m, const hlo_inst *in,
                             const sd_shape *x, int64_t *dim)
{
    int64_t padded[SD_MAX_RANK], size[SD_MAX_RANK];
    sd_status st;

    if (in->u.window.n != x->rank)
        return hlo_bad(m, in, "a window of %d dimensions for rank %d",
                       in->u.window.n, x->rank);
    for (int i = 0; i < x->rank; i++) {
        if (!hlo_window_count(&in->u.window.dim[i], x->dim[i], &padded[i],
                              &dim[i]))
            return hlo_bad(m, in, "window's dimension %d is out of range", i);
        size[i] = in->u.window.dim[i].size;
    }
    if ((st = hlo_want_volume(m, in, "the window has", size, x->rank)))
        return st;
    return hlo_want_volume(m, in, "padded, the operand has", padded, x->rank);
}

static sd_status infer_select_and_scatter(hlo_module *m, const hlo_inst *in,
                                          const sd_shape **out)
{
    int64_t dim[SD_MAX_RANK];
    sd_status st;

    if ((st = hlo_want_args(m, in, 3)) || (st = hlo_want_comps(m, in, 2)) ||
        (st = hlo_want_array(m, in, 0)) || (st = hlo_want_array(m, in, 1)))
        return st;
    const sd_shape *x = in->arg[0]->shape, *src = in->arg[1]->shape;
    sd_dtype t[2] = {x->dtype, x->dtype}, pred = SD_PRED;

    if ((st = hlo_want_scalar(m, in, 2, x->dtype)) ||
        (st = window_dims(m, in, x, dim)) ||
        (st = hlo_want_region(m, in, 0, 2, t, 1, &pred)) ||
        (st = hlo_want_region(m, in, 1, 2, t, 1, t)))
        return st;
    for (int i = 0; i < x->rank; i++)
        if (in->u.window.dim[i].base_dilation != 1 ||
            in->u.window.dim[i].window_dilation != 1)
            return hlo_bad(m, in, "takes no dilation");
    if (src->rank != x->rank || src->dtype != x->dtype ||
        (x->rank && memcmp(src->dim, dim, sizeof *dim * (size_t)x->rank)))
        return hlo_bad(
            m, in, "the source must have one element a window: %s",
            hlo_shape_str(m, sd_shape_make(m->arena, x->dtype, x->rank, dim)));
    return hlo_result(m, in, x->dtype, x->rank, x->dim, out);
}

sd_status hlo_infer_window(hlo_module *m, const hlo_inst *in,
                           const sd_shape **out)
{
    int64_t dim[SD_MAX_RANK];
    sd_status st;

    if (in->op == HLO_SELECT_AND_SCATTER)
        return infer_select_and_scatter(m, in, out);
    if ((st = want_reducer(m, in)) ||
        (st = window_dims(m, in, in->arg[0]->shape, dim)))
        return st;
    return results(m, in, in->narg / 2, in->arg[0]->shape->rank, dim, out);
}

/* ---- scatter ---- */

static sd_status check_updates(hlo_module *m, const hlo_inst *in,
                               const sd_shape *x, const sd_shape *ix,
                               const sd_shape *u)
{
    const hlo_gather *g = in->u.gather;
    int nwindow = x->rank - g->collapsed.n - g->operand_batch.n;
    int nbatch = ix->rank - (g->index_vector_dim < ix->rank);
    int w = 0, b = 0;
    sd_status st;

    if (u->rank != nbatch + nwindow || g->offset_dims.n != nwindow)
        return hlo_bad(m, in,
                       "updates of rank %d with %d window dimensions, not %d "
                       "with %d",
                       u->rank, g->offset_dims.n, nbatch + nwindow, nwindow);
    if ((st = hlo_want_dims(m, in, "update_window_dims", g->offset_dims,
                            u->rank)))
        return st;
    if (!hlo_dims_rise(g->offset_dims))
        return hlo_bad(m, in, "update_window_dims must rise");
    for (int i = 0; i < u->rank; i++) {
        if (hlo_dims_hold(g->offset_dims, i)) {
            while (hlo_dims_hold(g->collapsed, w) ||
                   hlo_dims_hold(g->operand_batch, w))
                w++;
            if (u->dim[i] > x->dim[w++])
                return hlo_bad(m, in,
                               "update dimension %d is longer than the "
                               "operand's",
                               i);
        } else {
            if (b == g->index_vector_dim)
                b++;
            if (u->dim[i] != ix->dim[b++])
                return hlo_bad(
                    m, in, "update dimension %d differs from the indices'", i);
        }
    }
    return NULL;
}

sd_status hlo_infer_scatter(hlo_module *m, const hlo_inst *in,
                            const sd_shape **out)
{
    int n = (in->narg - 1) / 2;
    sd_dtype *t;
    sd_status st;

    if (n < 1 || in->narg != 2 * n + 1)
        return hlo_bad(m, in, "needs as many updates as operands, and indices");
    if ((st = hlo_want_comps(m, in, 1)) || (st = want_same_dims(m, in, 0, n)) ||
        (st = want_same_dims(m, in, n + 1, n)) ||
        (st = hlo_want_array(m, in, n)))
        return st;
    const sd_shape *x = in->arg[0]->shape, *ix = in->arg[n]->shape;

    if ((st = hlo_check_index_map(m, in, x, ix)) ||
        (st = check_updates(m, in, x, ix, in->arg[n + 1]->shape)))
        return st;
    t = sd_arena_array(m->arena, sd_dtype, 2 * n);
    for (int i = 0; i < n; i++) {
        t[i] = t[n + i] = in->arg[i]->shape->dtype;
        if (in->arg[n + 1 + i]->shape->dtype != t[i])
            return hlo_bad(m, in, "update %d must be of %s", i,
                           sd_dtype_name(t[i]));
    }
    if ((st = hlo_want_region(m, in, 0, 2 * n, t, n, t)))
        return st;
    return results(m, in, n, x->rank, x->dim, out);
}

/* ---- map, sort, topk ---- */

sd_status hlo_infer_map(hlo_module *m, const hlo_inst *in, const sd_shape **out)
{
    sd_dtype *t, to;
    sd_status st;

    if ((st = hlo_want_array(m, in, 0)) || (st = hlo_want_comps(m, in, 1)) ||
        (st = want_same_dims(m, in, 0, in->narg)))
        return st;
    const sd_shape *x = in->arg[0]->shape;

    if (in->dims.n != x->rank)
        return hlo_bad(m, in, "must map all %d dimensions", x->rank);
    for (int i = 0; i < x->rank; i++)
        if (in->dims.at[i] != i)
            return hlo_bad(m, in, "must map dimensions in their order");
    t = sd_arena_array(m->arena, sd_dtype, in->narg);
    for (int i = 0; i < in->narg; i++)
        t[i] = in->arg[i]->shape->dtype;
    to = in->comp[0]->root->shape->dtype;
    if ((st = hlo_want_region(m, in, 0, in->narg, t, 1, &to)))
        return st;
    return hlo_result(m, in, to, x->rank, x->dim, out);
}

static sd_status infer_topk(hlo_module *m, const hlo_inst *in,
                            const sd_shape **out)
{
    const sd_shape *x = in->arg[0]->shape, *part[2];
    int64_t dim[SD_MAX_RANK];
    sd_status st;

    if ((st = hlo_want_args(m, in, 1)))
        return st;
    if (x->rank < 1 || in->dims.n != 1 || in->dims.at[0] < 0 ||
        in->dims.at[0] > x->dim[x->rank - 1])
        return hlo_bad(m, in, "k must fit the last dimension");
    if (sd_is_complex(x->dtype))
        return hlo_bad(m, in, "complex numbers have no order");
    memcpy(dim, x->dim, sizeof *dim * (size_t)x->rank);
    dim[x->rank - 1] = in->dims.at[0];
    if ((st = hlo_result(m, in, x->dtype, x->rank, dim, &part[0])) ||
        (st = hlo_result(m, in, SD_S32, x->rank, dim, &part[1])))
        return st;
    *out = sd_shape_tuple(m->arena, 2, part);
    return NULL;
}

sd_status hlo_infer_sort(hlo_module *m, const hlo_inst *in,
                         const sd_shape **out)
{
    sd_dtype *t, pred = SD_PRED;
    sd_status st;

    if ((st = hlo_want_array(m, in, 0)))
        return st;
    if (in->op == HLO_TOPK)
        return infer_topk(m, in, out);
    if ((st = hlo_want_comps(m, in, 1)) ||
        (st = want_same_dims(m, in, 0, in->narg)))
        return st;
    const sd_shape *x = in->arg[0]->shape;

    if (in->dims.n != 1 || in->dims.at[0] < 0 || in->dims.at[0] >= x->rank)
        return hlo_bad(m, in, "sort needs one of its dimensions");
    t = sd_arena_array(m->arena, sd_dtype, 2 * in->narg);
    for (int i = 0; i < in->narg; i++)
        t[2 * i] = t[2 * i + 1] = in->arg[i]->shape->dtype;
    if ((st = hlo_want_region(m, in, 0, 2 * in->narg, t, 1, &pred)))
        return st;
    return results(m, in, in->narg, x->rank, x->dim, out);
}
