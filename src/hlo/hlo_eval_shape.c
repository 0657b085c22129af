/* Evaluating leaves, what moves data, and what is indexed at run time.  An
 * output element is found by walking its index and working out where it comes
 * from. */
#include "hlo_eval.h"

#include <assert.h>

static void copy_elem(const hlo_value *from, int64_t i, hlo_value *to,
                      int64_t k)
{
    memcpy(hlo_at_elem(to, k), hlo_at_elem(from, i),
           sd_dtype_bytes(to->shape->dtype));
}

/* ---- leaves ---- */

sd_status hlo_eval_leaf(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                        hlo_value *out)
{
    int64_t ix[SD_MAX_RANK] = {0}, i = 0;
    sd_dtype t = out->shape->dtype;

    (void)e;
    (void)arg;
    assert(in->op != HLO_PARAMETER);
    if (in->op == HLO_CONSTANT) {
        out->data = (void *)(uintptr_t)in->u.literal.data;
        return NULL;
    }
    if (sd_shape_count(out->shape) == 0)
        return NULL;
    do
        hlo_scalar_convert(SD_S64, &ix[in->dims.at[0]], t,
                           hlo_at_elem(out, i++));
    while (hlo_step(out->shape->rank, out->shape->dim, ix));
    return NULL;
}

/* ---- what moves data ---- */

/* Where output index ix comes from, for the ops that read one place. */
static int64_t source_of(const hlo_inst *in, const hlo_value *x,
                         const int64_t *stride, const int64_t *ix)
{
    const sd_shape *s = x->shape;
    int64_t at = 0;

    for (int i = 0; i < in->shape->rank; i++) {
        switch (in->op) {
        case HLO_TRANSPOSE:
            at += ix[i] * stride[in->dims.at[i]];
            break;
        case HLO_SLICE:
            at += (in->u.slice.start[i] + ix[i] * in->u.slice.stride[i]) *
                  stride[i];
            break;
        case HLO_REVERSE:
            at += (hlo_dims_hold(in->dims, i) ? s->dim[i] - 1 - ix[i] : ix[i]) *
                  stride[i];
            break;
        default:
            break;
        }
    }
    if (in->op == HLO_BROADCAST)
        for (int k = 0; k < in->dims.n; k++)
            at += ix[in->dims.at[k]] * stride[k];
    return at;
}

static void eval_concatenate(const hlo_inst *in, const hlo_value *arg,
                             hlo_value *out)
{
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], i = 0;
    int64_t d = in->dims.at[0];

    do {
        int64_t at = ix[d], from = 0;
        int k = 0;

        while (at >= arg[k].shape->dim[d])
            at -= arg[k++].shape->dim[d];
        sd_shape_strides(arg[k].shape, stride);
        for (int j = 0; j < out->shape->rank; j++)
            from += (j == d ? at : ix[j]) * stride[j];
        copy_elem(&arg[k], from, out, i++);
    } while (hlo_step(out->shape->rank, out->shape->dim, ix));
}

static void eval_pad(const hlo_inst *in, const hlo_value *arg, hlo_value *out)
{
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], i = 0;
    const sd_shape *s = arg[0].shape;

    sd_shape_strides(s, stride);
    do {
        int64_t from = 0;
        bool inside = true;

        for (int k = 0; k < s->rank && inside; k++) {
            int64_t at = ix[k] - in->u.pad.low[k];
            int64_t by = in->u.pad.interior[k] + 1;

            inside = at >= 0 && at % by == 0 && at / by < s->dim[k];
            from += at / by * stride[k];
        }
        copy_elem(inside ? &arg[0] : &arg[1], inside ? from : 0, out, i++);
    } while (hlo_step(s->rank, out->shape->dim, ix));
}

/* Which element of the dense row-major value lies at each place in memory. */
static int64_t *memory_order(sd_arena *a, const sd_shape *s)
{
    int64_t *at = sd_arena_array(a, int64_t, sd_shape_count(s) + 1), i = 0;
    int64_t ix[SD_MAX_RANK] = {0}, dim[SD_MAX_RANK], by[SD_MAX_RANK];
    int64_t stride[SD_MAX_RANK];

    sd_shape_strides(s, stride);
    for (int k = 0; k < s->rank; k++) {
        int64_t d = s->layout ? s->layout[s->rank - 1 - k] : k;

        dim[k] = s->dim[d];
        by[k] = stride[d];
    }
    if (sd_shape_count(s) > 0)
        do {
            for (int k = 0; k < s->rank; k++)
                at[i] += ix[k] * by[k];
            i++;
        } while (hlo_step(s->rank, dim, ix));
    return at;
}

/* The same memory under another shape: what moves follows from the layouts. */
static sd_status eval_bitcast(hlo_ev *e, const hlo_inst *in, const hlo_value *x,
                              hlo_value *out)
{
    const sd_shape *s = in->arg[0]->shape, *to = in->shape;

    if (!s->layout && !to->layout) {
        out->data = x->data;
        return NULL;
    }
    if (sd_dtype_bytes(s->dtype) != sd_dtype_bytes(to->dtype))
        return sd_error(SD_UNIMPLEMENTED,
                        "evaluating a bitcast between layouts, of %s to %s",
                        sd_dtype_name(s->dtype), sd_dtype_name(to->dtype));
    int64_t *from = memory_order(e->arena, s);
    int64_t *into = memory_order(e->arena, to);

    *out = hlo_value_make(e->arena, to);
    for (int64_t i = 0; i < sd_shape_count(to); i++)
        copy_elem(x, from[i], out, into[i]);
    return NULL;
}

sd_status hlo_eval_shape(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                         hlo_value *out)
{
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], i = 0;

    if (in->op == HLO_COPY) {
        *out = arg[0];
        return NULL;
    }
    if (in->op == HLO_BITCAST)
        return eval_bitcast(e, in, &arg[0], out);
    if (in->op == HLO_RESHAPE) {
        out->data = arg[0].data;
        return NULL;
    }
    if (sd_shape_count(out->shape) == 0)
        return NULL;
    if (in->op == HLO_CONCATENATE) {
        eval_concatenate(in, arg, out);
    } else if (in->op == HLO_PAD) {
        eval_pad(in, arg, out);
    } else {
        sd_shape_strides(arg[0].shape, stride);
        do
            copy_elem(&arg[0], source_of(in, &arg[0], stride, ix), out, i++);
        while (hlo_step(out->shape->rank, out->shape->dim, ix));
    }
    return NULL;
}

/* ---- dynamic slices ---- */

/* Starts clamped so that `size` elements lie inside. */
static void read_starts(const hlo_value *start, const sd_shape *s,
                        const int64_t *size, int64_t *at)
{
    for (int i = 0; i < s->rank; i++) {
        int64_t v = hlo_index_load(start[i].shape->dtype, start[i].data);

        at[i] = SD_MAX(0, SD_MIN(v, s->dim[i] - size[i]));
    }
}

/* Copies between a whole array and a part of it that starts at `at`. */
static void move_part(const hlo_value *whole, const hlo_value *part,
                      const int64_t *at, bool into_whole)
{
    const sd_shape *s = part->shape;
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], i = 0;
    hlo_value w = *whole, p = *part;

    if (sd_shape_count(s) == 0)
        return;
    sd_shape_strides(whole->shape, stride);
    do {
        int64_t k = 0;

        for (int d = 0; d < s->rank; d++)
            k += (at[d] + ix[d]) * stride[d];
        if (into_whole)
            copy_elem(&p, i++, &w, k);
        else
            copy_elem(&w, k, &p, i++);
    } while (hlo_step(s->rank, s->dim, ix));
}

/* ---- gather ---- */

void hlo_window_start(const hlo_gather *g, const hlo_value *ix,
                      const int64_t *b, int rank, int64_t *start)
{
    int64_t stride[SD_MAX_RANK], base = 0, step = 0, pos[SD_MAX_RANK];
    const sd_shape *s = ix->shape;

    sd_shape_strides(s, stride);
    for (int i = 0, k = 0; i < s->rank; i++) {
        if (i == g->index_vector_dim) {
            step = stride[i];
            continue;
        }
        pos[i] = b[k++];
        base += pos[i] * stride[i];
    }
    for (int i = 0; i < rank; i++)
        start[i] = 0;
    for (int i = 0; i < g->index_map.n; i++)
        start[g->index_map.at[i]] =
            hlo_index_load(s->dtype, hlo_at_elem(ix, base + i * step));
    for (int i = 0; i < g->operand_batch.n; i++)
        start[g->operand_batch.at[i]] = pos[g->indices_batch.at[i]];
}

void hlo_split_index(const hlo_gather *g, int rank_out, int rank_in,
                     const int64_t *ix, int64_t *batch, int64_t *offset)
{
    int nb = 0, k = 0;
    int64_t window[SD_MAX_RANK];

    for (int i = 0; i < rank_out; i++) {
        if (hlo_dims_hold(g->offset_dims, i))
            window[k++] = ix[i];
        else
            batch[nb++] = ix[i];
    }
    k = 0;
    for (int i = 0; i < rank_in; i++)
        offset[i] =
            hlo_dims_hold(g->collapsed, i) || hlo_dims_hold(g->operand_batch, i)
                ? 0
                : window[k++];
}

static void eval_gather(const hlo_inst *in, const hlo_value *arg,
                        hlo_value *out)
{
    const hlo_gather *g = in->u.gather;
    const sd_shape *s = arg[0].shape;
    int64_t ix[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK], batch[SD_MAX_RANK];
    int64_t offset[SD_MAX_RANK], start[SD_MAX_RANK], i = 0;

    sd_shape_strides(s, stride);
    do {
        int64_t from = 0;

        hlo_split_index(g, out->shape->rank, s->rank, ix, batch, offset);
        hlo_window_start(g, &arg[1], batch, s->rank, start);
        for (int d = 0; d < s->rank; d++) {
            int64_t room = s->dim[d] - g->slice_sizes.at[d];

            from += (SD_MAX(0, SD_MIN(start[d], room)) + offset[d]) * stride[d];
        }
        copy_elem(&arg[0], from, out, i++);
    } while (hlo_step(out->shape->rank, out->shape->dim, ix));
}

sd_status hlo_eval_indexed(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                           hlo_value *out)
{
    int64_t at[SD_MAX_RANK];

    (void)e;
    if (in->op == HLO_DYNAMIC_SLICE) {
        read_starts(arg + 1, arg[0].shape, out->shape->dim, at);
        move_part(&arg[0], out, at, false);
    } else if (in->op == HLO_DYNAMIC_UPDATE_SLICE) {
        memcpy(out->data, arg[0].data, sd_shape_bytes(out->shape));
        read_starts(arg + 2, arg[0].shape, arg[1].shape->dim, at);
        move_part(out, &arg[1], at, true);
    } else if (sd_shape_count(out->shape) > 0) {
        eval_gather(in, arg, out);
    }
    return NULL;
}
