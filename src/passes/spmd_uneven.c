/* Parts that are not equal.  A dimension that its participants do not divide is
 * had in parts of as many elements as the first has: behind the end of the
 * array lies anything.  Operations that mix positions put there what changes
 * nothing; whole arrays are joined and sliced.  Arguments, results and what
 * goes in and out of manual computations are never in such parts. */
#include "spmd.h"
#include "terms.h"

static int64_t nparts(const hlo_sharding *s, int d)
{
    return d < s->rank ? hlo_atoms_size(s->grid, &s->dim[d].cut) : 1;
}

int64_t spmd_each(int64_t size, int64_t n)
{
    return (size + n - 1) / n;
}

bool spmd_is_worth(int64_t size, int64_t n)
{
    return 2 * size >= n * spmd_each(size, n);
}

bool spmd_is_even(const sd_shape *whole, const hlo_sharding *s)
{
    for (int d = 0; s && sd_shape_is_array(whole) && d < whole->rank; d++)
        if (whole->dim[d] % nparts(s, d))
            return false;
    return true;
}

const hlo_sharding *spmd_evenly(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s)
{
    for (int d = 0; s && sd_shape_is_array(whole) && d < whole->rank; d++)
        if (whole->dim[d] % nparts(s, d))
            s = hlo_sharding_with(m, s, d, (hlo_atoms){0});
    return s;
}

bool spmd_moves_evenly(const sd_shape *whole, const hlo_sharding *s,
                       const hlo_sharding *to)
{
    for (int d = 0; d < whole->rank; d++) {
        const hlo_atoms *a = &s->dim[d].cut, *b = &to->dim[d].cut;
        bool same = a->n == b->n && !memcmp(a->at, b->at, a->n);

        if (!same &&
            (whole->dim[d] % nparts(s, d) || whole->dim[d] % nparts(to, d)))
            return false;
    }
    return true;
}

const sd_shape *spmd_part_shape(hlo_module *m, const sd_shape *whole,
                                const hlo_sharding *s)
{
    int64_t dim[SD_MAX_RANK];

    if (!sd_shape_is_array(whole) || s->single >= 0)
        return whole;
    for (int d = 0; d < whole->rank; d++)
        dim[d] = spmd_each(whole->dim[d], nparts(s, d));
    return sd_shape_make(m->arena, whole->dtype, whole->rank, dim);
}

hlo_inst *spmd_lengthened(hlo_at p, hlo_inst *x, const hlo_sharding *s)
{
    int64_t pad[3][SD_MAX_RANK] = {0};
    bool any = false;

    for (int d = 0; d < SD_MIN(s->rank, x->shape->rank); d++) {
        int64_t n = hlo_atoms_size(s->grid, &s->dim[d].cut);

        pad[1][d] = spmd_each(x->shape->dim[d], n) * n - x->shape->dim[d];
        any |= pad[1][d] > 0;
    }
    return any ? hlo_make_pad(p, x, hlo_make_scalar(p, pass_dtype(x), 0),
                              pad[0], pad[1], pad[2])
               : x;
}

hlo_inst *spmd_shortened(hlo_at p, hlo_inst *x, const sd_shape *whole)
{
    int64_t start[SD_MAX_RANK] = {0}, stride[SD_MAX_RANK];

    if (!sd_shape_is_array(whole) || sd_shape_same_dims(x->shape, whole))
        return x;
    for (int d = 0; d < whole->rank; d++)
        stride[d] = 1;
    return hlo_make_slice(p, x, start, whole->dim, stride);
}

hlo_inst *spmd_inside(hlo_at p, hlo_inst *x, const hlo_sharding *s, int d,
                      int64_t size, hlo_inst *fill)
{
    const hlo_atoms *a = &s->dim[d].cut;
    int64_t each = x->shape->dim[d];
    sd_dtype t = spmd_count(each * hlo_atoms_size(s->grid, a));
    const sd_shape *ints =
        sd_shape_make(p.c->module->arena, t, x->shape->rank, x->shape->dim);
    hlo_inst *at = spmd_begin(p, s->grid, a, each, t);

    at = t_add(p, hlo_make_iota(p, ints, d), hlo_make_spread(p, at, ints));
    at = t_is(p, HLO_LT, at, hlo_make_fill(p, ints, (double)size));
    return t_pick(p, at, x, hlo_make_spread(p, fill, x->shape));
}
