/* Arrays that are put beside or into others along a dimension that is cut:
 * concatenations, updates at places that are known.  Each is moved to its place
 * by a pad, which goes across parts (spmd_halo.c), and a choice by position
 * takes what is to be seen.  Rolled and shifted arrays are so, and stencils. */
#include "spmd_flow.h"
#include "spmd_halo.h"
#include "terms.h"

/* ---- updates ---- */

bool spmd_update_places(const hlo_inst *in, int64_t *start)
{
    for (int d = 0; d < in->shape->rank; d++) {
        if (!pass_int_const(in->arg[2 + d], &start[d]))
            return false;
        start[d] = SD_MAX(
            0, SD_MIN(start[d], in->shape->dim[d] - in->arg[1]->shape->dim[d]));
    }
    return true;
}

/* The i-th number of a vector of n that are known. */
static bool known_at(const hlo_inst *x, int i, int64_t *v)
{
    return x->op == HLO_CONCATENATE ? pass_int_const(x->arg[i], v)
                                    : pass_int_const(x, v);
}

/* Where a scatter of one window puts it: the window's first element in every
 * dimension of operand 0.  False: not known, or not all of it lies inside. */
static bool scatter_places(const hlo_inst *in, int64_t *start)
{
    const hlo_gather *g = in->u.gather;
    const sd_shape *x = in->arg[0]->shape, *at = in->arg[1]->shape;
    const sd_shape *y = in->arg[2]->shape;
    int n = g->index_map.n;

    if (at->rank != 1 || g->index_vector_dim != 0 || g->operand_batch.n ||
        g->offset_dims.n != y->rank ||
        (in->arg[1]->op == HLO_CONCATENATE && in->arg[1]->narg != n))
        return false;
    memset(start, 0, sizeof *start * (size_t)x->rank);
    for (int i = 0; i < n; i++)
        if (!known_at(in->arg[1], i, &start[g->index_map.at[i]]))
            return false;
    for (int d = 0, k = 0; d < x->rank; d++) {
        int64_t size =
            hlo_dims_hold(g->collapsed, d) ? 1 : y->dim[g->offset_dims.at[k++]];

        if (start[d] < 0 || start[d] + size > x->dim[d])
            return false;
    }
    return true;
}

/* The window with the dimensions that it lacks. */
static hlo_inst *window_of(hlo_at p, const hlo_inst *in)
{
    const hlo_gather *g = in->u.gather;
    int64_t dim[SD_MAX_RANK];

    for (int d = 0, k = 0; d < in->shape->rank; d++)
        dim[d] = hlo_dims_hold(g->collapsed, d)
                     ? 1
                     : in->arg[2]->shape->dim[g->offset_dims.at[k++]];
    return pass_reshape(p, in->arg[2], in->shape->rank, dim);
}

/* A scatter of one window at a known place as an update of a slice. */
static hlo_inst *update_of(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    int64_t start[SD_MAX_RANK], limit[SD_MAX_RANK], stride[SD_MAX_RANK];
    hlo_inst *at[SD_MAX_RANK], *w;
    int rank = in->shape->rank;
    hlo_op op;

    if (in->narg != 3 || !sd_shape_is_array(in->shape) || in->ncomp != 1 ||
        !sd_shape_count(in->arg[2]->shape))
        return NULL;
    if (in->comp[0]->root == in->comp[0]->param[1])
        op = HLO_COPY;
    else if (!hlo_comp_is_binary(in->comp[0], &op) || op != HLO_ADD)
        return NULL;
    if (!scatter_places(in, start))
        return NULL;
    w = window_of(p, in);
    for (int d = 0; d < rank; d++) {
        limit[d] = start[d] + w->shape->dim[d];
        stride[d] = 1;
        at[d] = hlo_make_scalar_s64(p, spmd_counts(in->shape), start[d]);
    }
    if (op == HLO_ADD)
        w = hlo_make_binary(
            p, op, hlo_make_slice(p, in->arg[0], start, limit, stride), w);
    return hlo_make_dynamic_update(p, in->arg[0], w, at);
}

void spmd_updates(hlo_module *m)
{
    pass_rewrite(m, HLO_SCATTER, update_of);
}

/* ---- concatenations ---- */

const hlo_inst *spmd_piece(const hlo_inst *x, int d, int64_t *from)
{
    *from = 0;
    if (x->op != HLO_SLICE)
        return x;
    for (int i = 0; i < x->shape->rank; i++)
        if (x->u.slice.stride[i] != 1 ||
            (i != d && x->shape->dim[i] != x->arg[0]->shape->dim[i]))
            return x;
    *from = x->u.slice.start[d];
    return x->arg[0];
}

/* ---- both as pads and choices ---- */

static const sd_shape *ints_like(hlo_at p, const sd_shape *s)
{
    return sd_shape_make(p.c->module->arena, spmd_counts(s), s->rank, s->dim);
}

/* x from `low` on in dimension d, of so many elements. */
static hlo_inst *placed(hlo_at p, hlo_inst *x, int d, int64_t low, int64_t size)
{
    return hlo_make_pad_dim(p, x, NULL, d, low, size - low - x->shape->dim[d]);
}

/* Is a place of dimension d before `end`? */
static hlo_inst *before(hlo_at p, const sd_shape *s, int d, int64_t end)
{
    const sd_shape *ints = ints_like(p, s);

    return t_is(p, HLO_LT, hlo_make_iota(p, ints, d),
                hlo_make_fill_s64(p, ints, ints->dtype, end));
}

/* An operand that is cut in d itself stays; a slice is of what it is of, which
 * is moved once. */
static hlo_inst *source(const spmd_flow *f, hlo_inst *x, int d, int64_t *from)
{
    const hlo_inst *of = spmd_piece(x, d, from);
    const hlo_sharding *s = spmd_part_sharding(f, of);

    if (of != x && s && s->dim[d].cut.n)
        return x->arg[0];
    *from = 0;
    return x;
}

static hlo_inst *joined(const spmd_flow *f, hlo_inst *in)
{
    hlo_at p = pass_at(in);
    int d = (int)in->dims.at[0];
    int64_t size = in->shape->dim[d], at = size, from;
    hlo_inst *all = NULL, *x;

    for (int k = in->narg - 1; k >= 0; k--) {
        int64_t end = at;

        at -= in->arg[k]->shape->dim[d];
        x = source(f, in->arg[k], d, &from);
        x = placed(p, x, d, at - from, size);
        all = all ? t_pick(p, before(p, in->shape, d, end), x, all) : x;
    }
    return all;
}

static hlo_inst *updated(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = in->arg[1], *inside = NULL;
    int64_t start[SD_MAX_RANK];

    spmd_update_places(in, start);
    for (int d = 0; d < in->shape->rank; d++) {
        int64_t end = start[d] + x->shape->dim[d];
        hlo_inst *now;

        if (in->arg[1]->shape->dim[d] == in->shape->dim[d])
            continue;
        x = placed(p, x, d, start[d], in->shape->dim[d]);
        now = before(p, in->shape, d, end);
        now = t_and(p, now,
                    t_unary(p, HLO_NOT, before(p, in->shape, d, start[d])));
        inside = inside ? t_and(p, inside, now) : now;
    }
    return t_pick(p, inside, x, in->arg[0]);
}

bool spmd_is_placed(const hlo_inst *in)
{
    return in->op == HLO_CONCATENATE || in->op == HLO_DYNAMIC_UPDATE_SLICE;
}

void spmd_put(spmd_flow *f, hlo_inst *in)
{
    hlo_inst *was = in->prev, *x;
    hlo_inst *to = in->op == HLO_CONCATENATE ? joined(f, in) : updated(in);

    for (x = was ? was->next : in->parent->first; x != in; x = x->next)
        spmd_apply(f, x);
    pass_replace(in, to);
}

/* ---- a few elements ---- */

/* A concatenation moves what it is a slice of. */
static bool is_joined(const hlo_inst *in, int d)
{
    hlo_for_each_user(u, in)
        if (u->op == HLO_CONCATENATE && u->dims.at[0] == d)
            return true;
    return false;
}

int spmd_few_of(const hlo_inst *in, const hlo_sharding *s)
{
    int at = -1;

    if (in->op != HLO_SLICE || !s || s->unreduced || !sd_shape_count(in->shape))
        return -1;
    for (int d = 0; d < in->shape->rank; d++) {
        int64_t size = in->arg[0]->shape->dim[d], n, each;
        int64_t from = in->u.slice.start[d], to = in->u.slice.limit[d];

        n = hlo_atoms_size(s->grid, &s->dim[d].cut);
        each = spmd_each(size, n);
        if (n == 1 || (to - from) * 2 > each)
            continue;
        if (at >= 0 || (to - 1) / each > from / each + 1 || is_joined(in, d))
            return -1;
        at = d;
    }
    return at;
}

/* Of the part at `place`, what lies in [from, to) of the whole, from there. */
static hlo_inst *sent(hlo_at p, hlo_inst *x, const hlo_sharding *s, int d,
                      int64_t place, int64_t from, int64_t to)
{
    int64_t each = x->shape->dim[d];

    x = hlo_make_cut(p, x, d, SD_MAX(from - place * each, 0),
                     SD_MIN(to - place * each, each));
    return spmd_of_place(p, x, s->grid, &s->dim[d].cut, place);
}

/* in as a slice of its elements in dimension d, which all have. */
hlo_inst *spmd_send_few(spmd_flow *f, hlo_inst *in, int d)
{
    hlo_at p = pass_at(in);
    const spmd_part *had = spmd_part_of(f, in->arg[0]);
    int rank = in->shape->rank;
    int64_t start[SD_MAX_RANK], limit[SD_MAX_RANK];
    int64_t first = in->u.slice.start[d], end = in->u.slice.limit[d];
    int64_t each = had->local->shape->dim[d];
    hlo_inst *piece[2], *x, *few, *to;
    const hlo_sharding *rest;
    int n = 0;

    for (int64_t k = first / each; k <= (end - 1) / each; k++)
        piece[n++] = sent(p, had->local, had->s, d, k, first, end);
    x = n > 1 ? hlo_make_concatenate(p, n, piece, d) : piece[0];
    few = hlo_make_cut(p, in->arg[0], d, first, end);
    rest = hlo_sharding_with(f->m, had->s, d, (hlo_atoms){0});
    if (hlo_sharding_used(rest))
        spmd_set_part(f, few, x, rest);
    else
        few = x;
    memcpy(start, in->u.slice.start, sizeof *start * (size_t)rank);
    memcpy(limit, in->u.slice.limit, sizeof *limit * (size_t)rank);
    start[d] = 0;
    limit[d] = end - first;
    to = hlo_make_slice(p, few, start, limit, in->u.slice.stride);
    pass_replace(in, to);
    return to;
}
