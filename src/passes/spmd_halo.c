/* Operations that go across a dimension that is cut: slices, pads, windows,
 * convolutions in space.  Each participant reads one interval of the operand,
 * which lies in its own part and in those of a few others: what it lacks comes
 * by collective-permute, and the operation is done on the interval, without a
 * pad of its own. */
#include "spmd_halo.h"
#include "terms.h"

#include <math.h>

enum { MOST_PIECES = 5, MOST_JOINED = 8 };

/* Of one dimension of the operand, in n parts of `each` elements: participant i
 * reads `size` of them from i * per + from on, those outside of the array,
 * which has `all`, being `fill` (NULL: there are none).  gap: elements are so
 * far apart, as `each` and the rest count. */
typedef struct {
    int64_t n, each, all, per, from, size, gap;
    hlo_inst *fill;
} span;

static const hlo_window_dim *window_of(const hlo_inst *in, int d)
{
    const hlo_conv *u = in->u.conv;
    int i;

    if (in->op == HLO_REDUCE_WINDOW)
        return &in->u.window.dim[d];
    i = hlo_dims_find(u->in_spatial, d);
    return i < 0 ? NULL : &u->win[i];
}

static int result_dim(const hlo_inst *in, int d)
{
    if (in->op != HLO_CONVOLUTION)
        return d;
    return (int)
        in->u.conv->out_spatial.at[hlo_dims_find(in->u.conv->in_spatial, d)];
}

static void span_of_window(const hlo_window_dim *w, int64_t out, span *x)
{
    x->per = out * w->stride;
    x->from = -w->pad_low;
    x->size = (out - 1) * w->stride + (w->size - 1) * w->window_dilation + 1;
    x->gap = w->base_dilation;
}

static span span_of(const hlo_inst *in, int d, int64_t n)
{
    int64_t out = spmd_each(in->shape->dim[result_dim(in, d)], n);
    span x = {.n = n, .per = out, .size = out, .gap = 1};

    switch (in->op) {
    case HLO_SLICE:
        x.per = out * in->u.slice.stride[d];
        x.from = in->u.slice.start[d];
        x.size = x.per - in->u.slice.stride[d] + 1;
        break;
    case HLO_PAD:
        x.from = -in->u.pad.low[d];
        x.gap = in->u.pad.interior[d] + 1;
        x.fill = in->arg[1];
        break;
    case HLO_REDUCE_WINDOW:
        x.fill = in->arg[1];
        span_of_window(window_of(in, d), out, &x);
        break;
    default:
        span_of_window(window_of(in, d), out, &x);
    }
    x.each = spmd_each(in->arg[0]->shape->dim[d], n) * x.gap;
    x.all = in->arg[0]->shape->dim[d] * x.gap;
    return x;
}

/* Whose parts participant i reads: those of i + first to i + last. */
static bool reads(const span *x, int64_t i, int64_t *first, int64_t *last)
{
    int64_t from = i * x->per + x->from, to = from + x->size;

    from = SD_MAX(from, 0);
    to = SD_MIN(to, x->all);
    if (from >= to)
        return false;
    *first = from / x->each - i;
    *last = (to - 1) / x->each - i;
    return true;
}

static bool pieces(const span *x, int64_t *first, int64_t *last)
{
    bool any = false;

    for (int64_t i = 0; i < x->n; i++) {
        int64_t a, b;

        if (!reads(x, i, &a, &b))
            continue;
        *first = any ? SD_MIN(*first, a) : a;
        *last = any ? SD_MAX(*last, b) : b;
        any = true;
    }
    return any && *last - *first < MOST_PIECES;
}

bool spmd_goes_across(const hlo_inst *in, int d)
{
    int64_t start[SD_MAX_RANK];

    switch (in->op) {
    case HLO_SLICE:
    case HLO_PAD:
        return true;
    case HLO_REDUCE_WINDOW:
        return in->narg == 2;
    case HLO_CONVOLUTION:
        return hlo_dims_find(in->u.conv->in_spatial, d) >= 0;
    case HLO_CONCATENATE:
        return true;
    case HLO_DYNAMIC_UPDATE_SLICE:
        return spmd_update_places(in, start);
    default:
        return false;
    }
}

/* An array of `size` elements that is read from `from` on, as an array of
 * `all`. */
static bool reaches_place(int64_t all, int64_t size, int64_t from, int64_t n)
{
    int64_t first, last, per = spmd_each(all, n);
    span x = {.n = n,
              .each = spmd_each(size, n),
              .all = size,
              .per = per,
              .from = from,
              .size = per,
              .gap = 1};

    return !spmd_is_worth(size, n) || pieces(&x, &first, &last);
}

static bool reaches_all(const hlo_inst *in, int d, int64_t n)
{
    int64_t all = in->shape->dim[d], at = 0, start[SD_MAX_RANK];

    if (in->op == HLO_DYNAMIC_UPDATE_SLICE)
        return spmd_update_places(in, start) &&
               reaches_place(all, in->arg[1]->shape->dim[d], -start[d], n);
    for (int k = 0; k < in->narg; k++) {
        int64_t from;
        const hlo_inst *x = spmd_piece(in->arg[k], d, &from);

        if (!reaches_place(all, x->shape->dim[d], from - at, n))
            return false;
        at += in->arg[k]->shape->dim[d];
    }
    return in->narg <= MOST_JOINED;
}

bool spmd_reaches(const hlo_inst *in, int d, int64_t n)
{
    int64_t first, last;
    span x;

    if (!sd_shape_count(in->arg[0]->shape) || !sd_shape_count(in->shape))
        return false;
    if (in->op == HLO_CONCATENATE || in->op == HLO_DYNAMIC_UPDATE_SLICE)
        return reaches_all(in, d, n);
    x = span_of(in, d, n);
    return pieces(&x, &first, &last);
}

/* ---- pieces ---- */

static hlo_inst *padded(hlo_at p, hlo_inst *x, hlo_inst *fill, int d,
                        int64_t low, int64_t high, int64_t interior)
{
    int64_t pad[3][SD_MAX_RANK] = {0};

    if (!low && !high && !interior)
        return x;
    pad[0][d] = low;
    pad[1][d] = high;
    pad[2][d] = interior;
    return hlo_make_pad(p, x, fill, pad[0], pad[1], pad[2]);
}

/* What participant i reads of the part of i + h, which is x's [from, to). */
static hlo_inst *piece(hlo_at p, hlo_inst *x, int d, const span *w,
                       const hlo_sharding *s, int64_t h, int64_t from,
                       int64_t to)
{
    bool *who = sd_arena_array(p.c->module->arena, bool, w->n);

    x = hlo_make_cut(p, x, d, from, to);
    for (int64_t i = 0; i < w->n; i++) {
        int64_t a, b;

        who[i] = reads(w, i, &a, &b) && a <= h && h <= b;
    }
    return h ? spmd_shift(p, x, s->grid, &s->dim[d].cut, h, who) : x;
}

/* Nothing comes from outside of the array but zeros. */
static hlo_inst *filled(hlo_at p, hlo_inst *x, int d, const span *w,
                        hlo_inst *place)
{
    hlo_module *m = p.c->module;
    int64_t end = w->n * w->per + w->size; /* ... of what the last one reads */
    sd_dtype t = spmd_count(SD_MAX(w->all, end) + SD_MAX(w->from, -w->from));
    const sd_shape *ints =
        sd_shape_make(m->arena, t, x->shape->rank, x->shape->dim);
    bool rests = w->n * w->each != w->all; /* anything behind the end */
    hlo_inst *at, *in;
    double v;

    if (!w->fill ||
        (!rests && hlo_is_scalar_const(w->fill, &v) && v == 0 && !signbit(v)))
        return x;
    at = t_mul(p, pass_convert(p, t, place), hlo_make_scalar_s64(p, t, w->per));
    at = t_add(p, at, hlo_make_scalar_s64(p, t, w->from));
    at = t_add(p, hlo_make_iota(p, ints, d), hlo_make_spread(p, at, ints));
    in = t_and(p, t_is(p, HLO_GE, at, hlo_make_fill(p, ints, 0)),
               t_is(p, HLO_LT, at, hlo_make_fill(p, ints, (double)w->all)));
    return t_pick(p, in, x, hlo_make_spread(p, w->fill, x->shape));
}

/* The interval that this participant reads of the array that x is the part of,
 * by s, in dimension d. */
static hlo_inst *interval(hlo_at p, hlo_inst *x, int d, span *w,
                          const hlo_sharding *s)
{
    sd_dtype t = x->shape->dtype, count;
    hlo_inst *fill = w->fill ? w->fill : hlo_make_scalar(p, t, 0);
    hlo_inst *part[MOST_PIECES], *start[SD_MAX_RANK], *place;
    int64_t first = 0, last = 0, low = 0, high, off, end, size[SD_MAX_RANK];
    int64_t step = w->per - w->each;

    pieces(w, &first, &last);
    x = padded(p, x, fill, d, 0, w->gap - 1, w->gap - 1);
    high = w->each;
    if (!step) { /* all read the same of their neighbours */
        low = SD_MAX(w->from - first * w->each, 0);
        high = SD_MIN(w->from + w->size - last * w->each, w->each);
    }
    for (int64_t h = first; h <= last; h++)
        part[h - first] = piece(p, x, d, w, s, h, h == first ? low : 0,
                                h == last ? high : w->each);
    if (last > first)
        x = hlo_make_concatenate(p, (int)(last - first + 1), part, d);
    else
        x = part[0];
    /* participant i's first element is this far in: off + i * step */
    off = w->from - first * w->each - low;
    end = off + (w->n - 1) * step;
    low = SD_MAX(-SD_MIN(off, end), 0);
    high = SD_MAX(SD_MAX(off, end) + w->size - x->shape->dim[d], 0);
    x = padded(p, x, fill, d, low, high, 0);
    place = spmd_index(p, s->grid, &s->dim[d].cut);
    if (!step)
        return filled(p, hlo_make_cut(p, x, d, off + low, off + low + w->size),
                      d, w, place);
    count = spmd_counts(x->shape);
    for (int i = 0; i < x->shape->rank; i++) {
        size[i] = i == d ? w->size : x->shape->dim[i];
        start[i] = hlo_make_scalar_s64(p, count, i == d ? off + low : 0);
    }
    start[d] = t_add(p, start[d],
                     t_mul(p, pass_convert(p, count, place),
                           hlo_make_scalar_s64(p, count, step)));
    return filled(p, hlo_make_dynamic_slice(p, x, start, size), d, w, place);
}

hlo_inst *spmd_intervals(const hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                         const hlo_sharding *s, uint32_t across)
{
    hlo_inst *x = arg[0];

    for (int d = 0; d < s->rank; d++) {
        span w;

        if (!(across >> d & 1))
            continue;
        w = span_of(in, d, hlo_atoms_size(s->grid, &s->dim[d].cut));
        if (w.fill)
            w.fill = arg[1];
        else if (in->op == HLO_CONVOLUTION)
            w.fill = hlo_make_scalar(p, pass_dtype(x), 0);
        x = interval(p, x, d, &w, s);
    }
    return x;
}

/* ---- the operation on intervals ---- */

static void tighten(hlo_window_dim *w)
{
    w->pad_low = w->pad_high = 0;
    w->base_dilation = 1;
}

void spmd_on_intervals(hlo_inst *x, uint32_t across)
{
    sd_arena *a = x->parent->module->arena;
    int rank = x->arg[0]->shape->rank;
    size_t list = sizeof(int64_t) * (size_t)rank;
    hlo_conv u;

    switch (x->op) {
    case HLO_SLICE:
        x->u.slice.start = sd_arena_copy(a, x->u.slice.start, list);
        x->u.slice.limit = sd_arena_copy(a, x->u.slice.limit, list);
        break;
    case HLO_PAD:
        x->u.pad.low = sd_arena_copy(a, x->u.pad.low, list);
        x->u.pad.high = sd_arena_copy(a, x->u.pad.high, list);
        x->u.pad.interior = sd_arena_copy(a, x->u.pad.interior, list);
        break;
    case HLO_REDUCE_WINDOW:
        x->u.window.dim = sd_arena_copy(a, x->u.window.dim,
                                        sizeof(hlo_window_dim) * (size_t)rank);
        break;
    default:
        u = *x->u.conv;
        u.win = sd_arena_copy(a, u.win,
                              sizeof(hlo_window_dim) * (size_t)u.nspatial);
        x->u.conv = sd_arena_copy(a, &u, sizeof u);
    }
    for (int d = 0; d < rank; d++) {
        if (!(across >> d & 1))
            continue;
        if (x->op == HLO_SLICE) {
            x->u.slice.start[d] = 0;
            x->u.slice.limit[d] = x->arg[0]->shape->dim[d];
        } else if (x->op == HLO_PAD) {
            x->u.pad.low[d] = x->u.pad.high[d] = x->u.pad.interior[d] = 0;
        } else if (x->op == HLO_REDUCE_WINDOW) {
            tighten(&x->u.window.dim[d]);
        } else {
            tighten(&x->u.conv->win[hlo_dims_find(x->u.conv->in_spatial, d)]);
        }
    }
}
