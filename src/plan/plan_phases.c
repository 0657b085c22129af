/* Convolutions of an input that is spread by zeros (transposed ones, and the
 * gradients of those with strides), which no library took.  Of d neighbours in
 * the result each meets the elements with other positions of the kernel, every
 * d-th: so d convolutions of the input as it is, with a part of the kernel
 * each, take turns in the result.  What they leave out are products with the
 * zeros between elements: three quarters in two dimensions spread by two. */
#include "plan_room.h"

enum {
    LEAST_WORK = 1 << 17, /* products: fewer are not worth d + 1 kernels */
    MOST_PHASES = 4
};

/* The spatial dimension to be split, or -1. */
static int spread_dim(const hlo_inst *in)
{
    const hlo_conv *c = in->u.conv;
    double work = (double)sd_shape_count(in->shape) *
                  (double)sd_shape_count(in->arg[1]->shape) /
                  (double)SD_MAX(in->arg[1]->shape->dim[c->k_out], 1);

    if (work < LEAST_WORK || in->shape->rank == SD_MAX_RANK)
        return -1;
    for (int i = 0; i < c->nspatial; i++)
        if (c->win[i].base_dilation > 1 &&
            c->win[i].base_dilation <= MOST_PHASES && c->win[i].stride == 1 &&
            c->win[i].window_dilation == 1)
            return i;
    return -1;
}

/* Positions first, first + d, ... of dimension `dim` of the kernel. */
static hlo_inst *part_of_kernel(hlo_at p, hlo_inst *w, int64_t dim,
                                int64_t first, int64_t taps, int64_t d)
{
    int64_t start[SD_MAX_RANK] = {0}, limit[SD_MAX_RANK], step[SD_MAX_RANK];

    for (int i = 0; i < w->shape->rank; i++) {
        limit[i] = w->shape->dim[i];
        step[i] = 1;
    }
    start[dim] = first;
    limit[dim] = first + d * (taps - 1) + 1;
    step[dim] = d;
    return hlo_make_slice(p, w, start, limit, step);
}

/* Positions r, r + d, ... of spatial dimension i of the result: position
 * d * q + r meets the input at (d * q + r + k - low) / d, where that is whole.
 */
static hlo_inst *phase(hlo_inst *in, int i, int64_t r)
{
    sd_arena *a = in->parent->module->arena;
    hlo_at p = {in->parent, in, in};
    hlo_conv *c = sd_arena_copy(a, in->u.conv, sizeof *c);
    hlo_window_dim *w;
    int64_t at = c->out_spatial.at[i], d, first, taps;
    hlo_inst *arg[2] = {in->arg[0], NULL}, *x;
    const sd_shape *s;

    c->win = sd_arena_copy(a, c->win, (size_t)c->nspatial * sizeof *c->win);
    w = &c->win[i];
    d = w->base_dilation;
    first = ((w->pad_low - r) % d + d) % d;
    taps = (w->size - first + d - 1) / d;
    s = sd_shape_with_dim(a, in->shape, at, (in->shape->dim[at] + d - 1) / d);
    if (taps < 1)
        return hlo_make_fill(p, s, 0);
    arg[1] = part_of_kernel(
        p, in->arg[1], c->k_spatial.at[i],
        w->reversal ? w->size - 1 - first - d * (taps - 1) : first, taps, d);
    w->pad_low = (w->pad_low - r - first) / d;
    w->pad_high = s->dim[at] - in->arg[0]->shape->dim[c->in_spatial.at[i]] -
                  w->pad_low + taps - 1;
    w->size = taps;
    w->base_dilation = 1;
    x = hlo_inst_clone(in->parent, in, in, arg);
    x->u.conv = c;
    x->shape = s;
    return x;
}

/* The phases in turns along dimension `at`, as many as in has. */
static hlo_inst *in_turns(hlo_inst *in, hlo_inst **x, int64_t d, int64_t at)
{
    hlo_at p = {in->parent, in, in};
    hlo_inst *all;

    for (int r = 0; r < d; r++)
        x[r] = hlo_make_split(p, x[r], at, x[r]->shape->dim[at], 1);
    all = hlo_make_concatenate(p, (int)d, x, at + 1);
    all = hlo_make_join(p, all, at);
    return hlo_make_cut(p, all, at, 0, in->shape->dim[at]);
}

static void split(hlo_inst *in)
{
    int i = spread_dim(in);
    hlo_inst *x[MOST_PHASES], *turn[MOST_PHASES];
    int64_t d;

    if (i < 0)
        return;
    d = in->u.conv->win[i].base_dilation;
    for (int r = 0; r < d; r++)
        turn[r] = x[r] = phase(in, i, r);
    hlo_replace(in, in_turns(in, turn, d, in->u.conv->out_spatial.at[i]));
    for (int r = 0; r < d; r++)
        if (x[r]->op == HLO_CONVOLUTION)
            split(x[r]);
    hlo_remove(in);
}

void plan_split_phases(hlo_module *m)
{
    hlo_for_each_comp(c, m)
        hlo_for_each_inst_backward(in, c)
            if (in->op == HLO_CONVOLUTION)
                split(in);
}
