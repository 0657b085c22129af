/* Which elements of its operands one element of a value needs: the index maps
 * of all ops that a kernel can hold, in one place, for plan_fuse (which weighs
 * them) and plan_lower (which builds on them). */
#include "plan_room.h"

#include <assert.h>

typedef const plan_expr *const *index_in;

/* e must be one of n positions. */
static void add_guard(plan_view *o, const plan_expr *e, int64_t n)
{
    if (e->lo >= 0 && e->hi < n)
        return;
    o->guard[o->nguard++] = (plan_guard){e, 0, n};
}

/* ---- data movement ---- */

/* Position e of a dimension of n elements that were spread by `step` (interior
 * padding, base dilation): where it holds an element, and which. */
static const plan_expr *spread(plan_viewer *v, plan_view *o, const plan_expr *e,
                               int64_t n, int64_t step)
{
    add_guard(o, e, SD_MAX(0, (n - 1) * step + 1));
    if (step == 1)
        return e;
    add_guard(o, plan_px_mod(v->px, e, step), 1);
    return plan_px_div(v->px, e, step);
}

static void view_pad(plan_viewer *v, const hlo_inst *in, index_in index,
                     plan_view *o)
{
    const sd_shape *s = in->arg[0]->shape;

    for (int d = 0; d < s->rank; d++) {
        int64_t low = in->u.pad.low[d];
        int64_t step = in->u.pad.interior[d] + 1;
        const plan_expr *e =
            plan_px_add(v->px, index[d], plan_px_const(v->px, -low));

        o->index[d] = spread(v, o, e, s->dim[d], step);
    }
}

static void view_concatenate(plan_viewer *v, const hlo_inst *in, int k,
                             index_in index, plan_view *o)
{
    int64_t dim = in->dims.at[0], at = 0;

    for (int i = 0; i < k; i++)
        at += in->arg[i]->shape->dim[dim];
    for (int d = 0; d < in->shape->rank; d++)
        o->index[d] = index[d];
    o->index[dim] = plan_px_add(v->px, index[dim], plan_px_const(v->px, -at));
    add_guard(o, o->index[dim], in->arg[k]->shape->dim[dim]);
}

static void view_shape(plan_viewer *v, const hlo_inst *in, index_in index,
                       plan_view *o)
{
    const sd_shape *s = in->arg[0]->shape;
    plan_px *px = v->px;

    switch (in->op) {
    case HLO_BROADCAST:
        for (int d = 0; d < s->rank; d++)
            o->index[d] =
                s->dim[d] == 1 ? plan_px_const(px, 0) : index[in->dims.at[d]];
        return;
    case HLO_RESHAPE:
    case HLO_BITCAST:
        plan_px_reshape(px, in->shape, index, s, o->index);
        return;
    case HLO_TRANSPOSE:
        for (int d = 0; d < s->rank; d++)
            o->index[in->dims.at[d]] = index[d];
        return;
    case HLO_SLICE:
        for (int d = 0; d < s->rank; d++)
            o->index[d] =
                plan_px_mad(px, plan_px_const(px, in->u.slice.start[d]),
                            in->u.slice.stride[d], index[d]);
        return;
    default: /* REVERSE */
        for (int d = 0; d < s->rank; d++)
            o->index[d] = index[d];
        for (int i = 0; i < in->dims.n; i++) {
            int64_t d = in->dims.at[i];

            o->index[d] =
                plan_px_mad(px, plan_px_const(px, s->dim[d] - 1), -1, index[d]);
        }
    }
}

/* ---- places that depend on data ---- */

static void view_dynamic_slice(plan_viewer *v, const hlo_inst *in,
                               index_in index, plan_view *o)
{
    const sd_shape *s = in->arg[0]->shape;

    for (int d = 0; d < s->rank; d++)
        o->index[d] =
            plan_px_add(v->px, index[d],
                        v->dynamic(v, in, 1 + d, NULL,
                                   SD_MAX(0, s->dim[d] - in->shape->dim[d])));
}

/* The place in the indices array of component c for result index. */
static void gather_place(plan_viewer *v, const hlo_inst *in, index_in index,
                         int c, const plan_expr **out)
{
    const hlo_gather *g = in->u.gather;
    int rank = in->arg[1]->shape->rank, b = 0;

    for (int d = 0; d < rank; d++) {
        if (d == g->index_vector_dim) {
            out[d] = plan_px_const(v->px, c);
            continue;
        }
        while (hlo_dims_find(g->offset_dims, b) >= 0)
            b++;
        out[d] = index[b++];
    }
}

static void view_gather(plan_viewer *v, const hlo_inst *in, index_in index,
                        plan_view *o)
{
    const hlo_gather *g = in->u.gather;
    const sd_shape *s = in->arg[0]->shape;
    const plan_expr *at[SD_MAX_RANK];
    int window = 0;

    for (int d = 0; d < s->rank; d++) {
        const plan_expr *e = plan_px_const(v->px, 0);
        int c = hlo_dims_find(g->index_map, d),
            b = hlo_dims_find(g->operand_batch, d);

        gather_place(v, in, index, SD_MAX(c, 0), at);
        if (c >= 0)
            e = v->dynamic(v, in, 1, at,
                           SD_MAX(0, s->dim[d] - g->slice_sizes.at[d]));
        else if (b >= 0)
            e = at[g->indices_batch.at[b]];
        if (b < 0 && hlo_dims_find(g->collapsed, d) < 0)
            e = plan_px_add(v->px, e, index[g->offset_dims.at[window++]]);
        o->index[d] = e;
    }
}

/* ---- reductions ---- */

static void view_reduce(plan_viewer *v, const hlo_inst *in, index_in index,
                        plan_view *o)
{
    int rank = in->arg[0]->shape->rank, at = 0;

    for (int d = 0; d < rank; d++) {
        int i = hlo_dims_find(in->dims, d);

        o->index[d] = i >= 0 ? v->axis[i] : index[at++];
    }
}

static const plan_expr *window_place(plan_viewer *v, plan_view *o,
                                     const hlo_window_dim *w,
                                     const plan_expr *out, const plan_expr *k,
                                     int64_t n)
{
    const plan_expr *e =
        plan_px_mad(v->px, plan_px_const(v->px, -w->pad_low), w->stride, out);

    e = plan_px_mad(v->px, e, w->window_dilation, k);
    return spread(v, o, e, n, w->base_dilation);
}

static void view_window(plan_viewer *v, const hlo_inst *in, index_in index,
                        plan_view *o)
{
    for (int d = 0; d < in->arg[0]->shape->rank; d++)
        o->index[d] = window_place(v, o, &in->u.window.dim[d], index[d],
                                   v->axis[d], in->arg[0]->shape->dim[d]);
}

static void view_dot(plan_viewer *v, const hlo_inst *in, int k, index_in index,
                     plan_view *o)
{
    const hlo_dot *dot = in->u.dot;
    hlo_dims batch = k ? dot->rhs_batch : dot->lhs_batch;
    hlo_dims con = k ? dot->rhs_contract : dot->lhs_contract;
    int rank = in->arg[k]->shape->rank;
    int at = batch.n; /* of the result's free dimensions of this side */

    if (k)
        at = in->shape->rank - (rank - batch.n - con.n);
    for (int d = 0; d < rank; d++) {
        int b = hlo_dims_find(batch, d), c = hlo_dims_find(con, d);

        o->index[d] = b >= 0 ? index[b] : c >= 0 ? v->axis[c] : index[at++];
    }
}

/* The sum of a convolution runs over the kernel's dimensions but the output's,
 * in the order that they have in memory: which of them dimension dim is. */
static int conv_axis(const hlo_conv *c, int64_t dim)
{
    int n = c->k_in < dim;

    for (int i = 0; i < c->nspatial; i++)
        n += c->k_spatial.at[i] < dim;
    return n;
}

static void view_conv(plan_viewer *v, const hlo_inst *in, int k, index_in index,
                      plan_view *o)
{
    const hlo_conv *c = in->u.conv;
    const sd_shape *x = in->arg[0]->shape, *w = in->arg[1]->shape;
    const plan_expr *f = index[c->out_feature], *b = index[c->out_batch];
    int64_t nf = in->shape->dim[c->out_feature], ci = w->dim[c->k_in];
    const plan_expr *channel = v->axis[conv_axis(c, c->k_in)];
    plan_px *px = v->px;

    for (int i = 0; i < c->nspatial; i++) {
        const hlo_window_dim *win = &c->win[i];
        const plan_expr *kk = v->axis[conv_axis(c, c->k_spatial.at[i])];

        if (k == 0)
            o->index[c->in_spatial.at[i]] =
                window_place(v, o, win, index[c->out_spatial.at[i]], kk,
                             x->dim[c->in_spatial.at[i]]);
        else
            o->index[c->k_spatial.at[i]] =
                win->reversal
                    ? plan_px_mad(px, plan_px_const(px, win->size - 1), -1, kk)
                    : kk;
    }
    if (k == 1) {
        o->index[c->k_in] = channel;
        o->index[c->k_out] = f;
        return;
    }
    o->index[c->in_feature] = channel;
    o->index[c->in_batch] = b;
    if (c->feature_groups > 1)
        o->index[c->in_feature] = plan_px_mad(
            px, channel, ci, plan_px_div(px, f, nf / c->feature_groups));
    if (c->batch_groups > 1)
        o->index[c->in_batch] =
            plan_px_mad(px, b, in->shape->dim[c->out_batch],
                        plan_px_div(px, f, nf / c->batch_groups));
}

int plan_inner_extents(const hlo_inst *in, int64_t *out)
{
    const sd_shape *s = in->narg ? in->arg[0]->shape : NULL;
    const hlo_conv *c;
    int n = 0;

    switch (in->op) {
    case HLO_REDUCE:
        for (int i = 0; i < in->dims.n; i++)
            out[n++] = s->dim[in->dims.at[i]];
        return n;
    case HLO_REDUCE_WINDOW:
        for (int d = 0; d < in->u.window.n; d++)
            out[n++] = in->u.window.dim[d].size;
        return n;
    case HLO_DOT:
        for (int i = 0; i < in->u.dot->lhs_contract.n; i++)
            out[n++] = s->dim[in->u.dot->lhs_contract.at[i]];
        return n;
    case HLO_CONVOLUTION:
        c = in->u.conv;
        out[conv_axis(c, c->k_in)] = in->arg[1]->shape->dim[c->k_in];
        for (int i = 0; i < c->nspatial; i++)
            out[conv_axis(c, c->k_spatial.at[i])] = c->win[i].size;
        return c->nspatial + 1;
    default:
        return 0;
    }
}

/* ---- all ---- */

static int bits_ratio(const hlo_inst *in) /* of a widening bitcast, else 1 */
{
    if (in->op != HLO_BITCAST_CONVERT ||
        in->arg[0]->shape->rank <= in->shape->rank)
        return 1;
    return (int)in->arg[0]->shape->dim[in->shape->rank];
}

int plan_view_count(const hlo_inst *in, int k)
{
    if (in->op == HLO_GATHER && k == 1)
        return in->u.gather->index_map.n;
    return bits_ratio(in);
}

static void view_same(plan_viewer *v, const hlo_inst *in, int k, int which,
                      index_in index, plan_view *o)
{
    int rank = in->arg[k]->shape->rank;

    for (int d = 0; d < rank; d++)
        o->index[d] = d < in->shape->rank
                          ? index[d]
                          : plan_px_const(v->px, which); /* narrow bits */
}

void plan_view_of(plan_viewer *v, const hlo_inst *in, int k, int which,
                  const plan_expr *const *index, plan_view *o)
{
    o->nguard = 0;
    if (in->arg[k]->shape->rank == 0)
        return;
    switch (in->op) {
    case HLO_BROADCAST:
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_TRANSPOSE:
    case HLO_SLICE:
    case HLO_REVERSE:
        view_shape(v, in, index, o);
        return;
    case HLO_PAD:
        view_pad(v, in, index, o);
        return;
    case HLO_CONCATENATE:
        view_concatenate(v, in, k, index, o);
        return;
    case HLO_DYNAMIC_SLICE:
        view_dynamic_slice(v, in, index, o);
        return;
    case HLO_GATHER:
        if (k == 0)
            view_gather(v, in, index, o);
        else
            gather_place(v, in, index, which, o->index);
        return;
    case HLO_REDUCE:
        view_reduce(v, in, index, o);
        return;
    case HLO_REDUCE_WINDOW:
        view_window(v, in, index, o);
        return;
    case HLO_DOT:
        view_dot(v, in, k, index, o);
        return;
    case HLO_CONVOLUTION:
        view_conv(v, in, k, index, o);
        return;
    default:
        view_same(v, in, k, which, index, o);
    }
}
