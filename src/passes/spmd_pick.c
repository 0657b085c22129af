/* Places in a dimension that is cut which are known only when the program runs:
 * rows of a table by their numbers, slices and updates at a variable.  Each
 * participant does its own part of it.  What is read has -0, which adds
 * nothing, where it lies elsewhere, and is still to be summed; what is written
 * elsewhere falls out of range, or is not chosen. */
#include "spmd_pick.h"
#include "terms.h"

bool spmd_picks(const hlo_inst *in, int d)
{
    int64_t start[SD_MAX_RANK];

    switch (in->op) {
    case HLO_GATHER:
    case HLO_SCATTER:
        return hlo_dims_hold(in->u.gather->collapsed, d) &&
               hlo_dims_hold(in->u.gather->index_map, d);
    case HLO_DYNAMIC_SLICE:
        return in->shape->dim[d] < in->arg[0]->shape->dim[d];
    case HLO_DYNAMIC_UPDATE_SLICE:
        return in->arg[1]->shape->dim[d] < in->shape->dim[d] &&
               !spmd_update_places(in, start);
    default:
        return false;
    }
}

/* A slice has to fit into a part, and a type that is summed needs a zero. */
bool spmd_can_pick(const hlo_inst *in, int d, int64_t n)
{
    int64_t part = spmd_each(in->arg[0]->shape->dim[d], n);

    if (pass_dtype(in->arg[0]) == SD_F8E8M0FNU)
        return false;
    if (!sd_shape_count(in->arg[0]->shape) || !sd_shape_count(in->shape))
        return false;
    if (in->op == HLO_DYNAMIC_SLICE)
        return in->shape->dim[d] <= part;
    return in->op != HLO_DYNAMIC_UPDATE_SLICE ||
           in->arg[1]->shape->dim[d] <= part;
}

/* ---- numbers ---- */

/* Indices of fewer bits than t, which counts places, cannot hold what they are
 * compared with. */
static hlo_inst *widened(hlo_at p, sd_dtype t, hlo_inst *x)
{
    return sd_dtype_bytes(pass_dtype(x)) < sd_dtype_bytes(t)
               ? t_convert(p, t, x)
               : x;
}

/* x, or the nearest one of 0 to `most`. */
static hlo_inst *clamped(hlo_at p, hlo_inst *x, int64_t most)
{
    sd_dtype t = pass_dtype(x);

    x = t_binary(p, HLO_MAXIMUM, x, hlo_make_fill_s64(p, x->shape, t, 0));
    return t_binary(p, HLO_MINIMUM, x, hlo_make_fill_s64(p, x->shape, t, most));
}

static hlo_inst *nothing(hlo_at p, sd_dtype t)
{
    hlo_inst *x = sd_is_complex(t) ? NULL : pass_identity(p, HLO_ADD, t);

    return x ? x : hlo_make_scalar(p, t, 0);
}

/* ---- slices ---- */

/* Of a part: a window of it that holds all that is meant, and how much further
 * on that begins; NULL: 0. */
typedef struct {
    hlo_inst *start[SD_MAX_RANK], *off[SD_MAX_RANK];
} window;

static window window_of(const hlo_inst *in, hlo_at p, hlo_inst *const *at,
                        const hlo_inst *part, const int64_t *size,
                        const hlo_sharding *s, uint32_t dims)
{
    const sd_shape *whole = in->arg[0]->shape;
    sd_dtype t = spmd_counts(whole);
    window w = {0};

    for (int d = 0; d < whole->rank; d++) {
        bool picked = dims >> d & 1;
        int64_t all = picked ? whole->dim[d] : part->shape->dim[d];
        hlo_inst *x = clamped(p, widened(p, t, at[d]), all - size[d]);

        x = pass_convert(p, t, x);
        if (picked) {
            x = t_sub(
                p, x,
                spmd_begin(p, s->grid, &s->dim[d].cut, part->shape->dim[d], t));
            w.start[d] = clamped(p, x, part->shape->dim[d] - size[d]);
            w.off[d] = t_sub(p, x, w.start[d]);
        } else {
            w.start[d] = x;
        }
    }
    return w;
}

/* What x has `by` further on in dimension d; fill where that is outside. */
static hlo_inst *moved(hlo_at p, hlo_inst *x, int d, hlo_inst *by,
                       hlo_inst *fill)
{
    int64_t size[SD_MAX_RANK];
    sd_dtype t = pass_dtype(by);
    hlo_inst *start[SD_MAX_RANK], *zero = hlo_make_scalar_s64(p, t, 0);
    int64_t n = x->shape->dim[d];

    for (int i = 0; i < x->shape->rank; i++) {
        size[i] = x->shape->dim[i];
        start[i] = zero;
    }
    start[d] = t_add(p, by, hlo_make_scalar_s64(p, t, n));
    x = hlo_make_pad_dim(p, x, fill, d, n, n);
    return hlo_make_dynamic_slice(p, x, start, size);
}

static hlo_inst *slice(const hlo_inst *in, hlo_at p, const sd_shape *local,
                       hlo_inst *const *arg, const hlo_sharding *s,
                       uint32_t dims)
{
    window w = window_of(in, p, arg + 1, arg[0], local->dim, s, dims);
    hlo_inst *x = hlo_make_dynamic_slice(p, arg[0], w.start, local->dim);

    for (int d = 0; d < local->rank; d++)
        if (w.off[d])
            x = moved(p, x, d, w.off[d], nothing(p, pass_dtype(x)));
    return x;
}

/* Of the window what is updated, and else what was there. */
static hlo_inst *update(const hlo_inst *in, hlo_at p, hlo_inst *const *arg,
                        const hlo_sharding *s, uint32_t dims)
{
    hlo_inst *x = arg[1], *inside = NULL;
    const int64_t *size = x->shape->dim;
    window w = window_of(in, p, arg + 2, arg[0], size, s, dims);
    sd_dtype t = spmd_counts(in->shape);
    const sd_shape *ints =
        sd_shape_make(p.c->module->arena, t, x->shape->rank, size);
    hlo_inst *old = hlo_make_dynamic_slice(p, arg[0], w.start, size);

    for (int d = 0; d < ints->rank; d++) {
        hlo_inst *at, *here;

        if (!w.off[d])
            continue;
        at = t_sub(p, hlo_make_iota(p, ints, d),
                   hlo_make_spread(p, w.off[d], ints));
        here =
            t_and(p, t_is(p, HLO_GE, at, hlo_make_fill_s64(p, ints, t, 0)),
                  t_is(p, HLO_LT, at, hlo_make_fill_s64(p, ints, t, size[d])));
        inside = inside ? t_and(p, inside, here) : here;
        x = moved(p, x, d, t_neg(p, w.off[d]),
                  hlo_make_scalar(p, pass_dtype(x), 0));
    }
    return hlo_make_dynamic_update(p, arg[0], t_pick(p, inside, x, old),
                                   w.start);
}

/* ---- gathers and scatters ---- */

/* A number for each component of the indices, spread over all of them. */
static hlo_inst *components(hlo_at p, const hlo_gather *g, const hlo_inst *at,
                            hlo_inst *const *v)
{
    hlo_inst **x = sd_arena_array(p.c->module->arena, hlo_inst *, SD_MAX_RANK);
    const sd_shape *to = sd_shape_make(p.c->module->arena, pass_dtype(v[0]),
                                       at->shape->rank, at->shape->dim);
    int64_t one = 1;

    if (g->index_vector_dim == at->shape->rank)
        return hlo_make_spread(p, v[0], to);
    for (int i = 0; i < g->index_map.n; i++)
        x[i] = hlo_make_reshape(p, v[i], 1, &one);
    if (g->index_map.n > 1)
        x[0] = hlo_make_concatenate(p, g->index_map.n, x, 0);
    return hlo_make_broadcast(p, x[0], to, &g->index_vector_dim, 1);
}

/* The indices less where this participant's part begins. */
static hlo_inst *own_indices(hlo_at p, const hlo_gather *g, hlo_inst *at,
                             const hlo_inst *part, const hlo_sharding *s,
                             uint32_t dims)
{
    hlo_inst *v[SD_MAX_RANK];
    sd_dtype t = pass_dtype(at);

    for (int i = 0; i < g->index_map.n; i++) {
        int d = (int)g->index_map.at[i];

        v[i] = dims >> d & 1 ? spmd_begin(p, s->grid, &s->dim[d].cut,
                                          part->shape->dim[d], t)
                             : hlo_make_scalar_s64(p, t, 0);
    }
    return t_sub(p, at, components(p, g, at, v));
}

/* As a gather does it, of the whole. */
static hlo_inst *inside_whole(const hlo_inst *in, hlo_at p, hlo_inst *at)
{
    const hlo_gather *g = in->u.gather;
    sd_dtype t = pass_dtype(at);
    hlo_inst *v[SD_MAX_RANK];

    for (int i = 0; i < g->index_map.n; i++) {
        int64_t d = g->index_map.at[i];

        v[i] = hlo_make_scalar_s64(
            p, t, in->arg[0]->shape->dim[d] - g->slice_sizes.at[d]);
    }
    at = t_binary(p, HLO_MAXIMUM, at, hlo_make_fill_s64(p, at->shape, t, 0));
    return t_binary(p, HLO_MINIMUM, at, components(p, g, at, v));
}

static hlo_inst *component(hlo_at p, const hlo_gather *g, hlo_inst *at, int i)
{
    int64_t dim[SD_MAX_RANK];
    int v = (int)g->index_vector_dim, rank = at->shape->rank, n = 0;

    if (v == rank)
        return at;
    for (int d = 0; d < rank; d++)
        if (d != v)
            dim[n++] = at->shape->dim[d];
    return hlo_make_reshape(p, hlo_make_cut(p, at, v, i, i + 1), rank - 1, dim);
}

/* Which of the places are in this participant's part, as an array like the
 * result. */
static hlo_inst *are_here(hlo_at p, const hlo_gather *g, hlo_inst *at,
                          const hlo_inst *part, const sd_shape *result,
                          uint32_t dims)
{
    hlo_inst *here = NULL;
    int64_t to[SD_MAX_RANK];
    int n = 0;

    for (int i = 0; i < g->index_map.n; i++) {
        int d = (int)g->index_map.at[i];
        sd_dtype t = pass_dtype(at);
        hlo_inst *x, *inside;

        if (!(dims >> d & 1))
            continue;
        x = component(p, g, at, i);
        inside =
            t_and(p, t_is(p, HLO_GE, x, hlo_make_fill_s64(p, x->shape, t, 0)),
                  t_is(p, HLO_LT, x,
                       hlo_make_fill_s64(p, x->shape, t, part->shape->dim[d])));
        here = here ? t_and(p, here, inside) : inside;
    }
    for (int d = 0; d < result->rank; d++)
        if (!hlo_dims_hold(g->offset_dims, d))
            to[n++] = d;
    return hlo_make_broadcast(
        p, here,
        sd_shape_make(p.c->module->arena, SD_PRED, result->rank, result->dim),
        to, n);
}

/* What is near is not known of parts. */
static void unsorted(hlo_inst *x)
{
    hlo_gather g = *x->u.gather;

    g.sorted = false;
    x->u.gather = sd_arena_copy(x->parent->module->arena, &g, sizeof g);
}

static hlo_inst *gather(hlo_inst *in, hlo_at p, const sd_shape *local,
                        hlo_inst *const *arg, const hlo_sharding *s,
                        uint32_t dims)
{
    const hlo_gather *g = in->u.gather;
    sd_dtype t = spmd_counts(in->arg[0]->shape);
    hlo_inst *at = inside_whole(in, p, widened(p, t, arg[1])), *x;

    at = own_indices(p, g, pass_convert(p, t, at), arg[0], s, dims);
    x = spmd_on_parts(in, local, (hlo_inst *[]){arg[0], at}, 0);
    if (!x)
        return NULL;
    unsorted(x);
    return t_pick(p, are_here(p, g, at, arg[0], local, dims), x,
                  hlo_make_spread(p, nothing(p, pass_dtype(x)), local));
}

static hlo_inst *scatter(hlo_inst *in, hlo_at p, const sd_shape *local,
                         hlo_inst *const *arg, const hlo_sharding *s,
                         uint32_t dims)
{
    sd_dtype t = spmd_counts(in->shape);
    hlo_inst *at =
        own_indices(p, in->u.gather, widened(p, t, arg[1]), arg[0], s, dims);
    hlo_inst *x =
        spmd_on_parts(in, local, (hlo_inst *[]){arg[0], at, arg[2]}, 0);

    if (x)
        unsorted(x);
    return x;
}

hlo_inst *spmd_pick(hlo_inst *in, hlo_at p, const sd_shape *local,
                    hlo_inst *const *arg, const hlo_sharding *s, uint32_t dims)
{
    switch (in->op) {
    case HLO_DYNAMIC_SLICE:
        return slice(in, p, local, arg, s, dims);
    case HLO_DYNAMIC_UPDATE_SLICE:
        return update(in, p, arg, s, dims);
    case HLO_GATHER:
        return gather(in, p, local, arg, s, dims);
    default:
        return scatter(in, p, local, arg, s, dims);
    }
}
