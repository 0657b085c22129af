/* Where a participant stands on a grid, and which part of a whole array is its
 * own: numbers that are computed when the program runs. */
#include "spmd.h"

hlo_inst *spmd_number(hlo_at p)
{
    return hlo_make_convert(p, SD_S32, pass_participant(p));
}

/* A table has every order that there is. */
static hlo_inst *index_of(hlo_at p, const hlo_grid *g, const hlo_atoms *along)
{
    int64_t n = hlo_participants(p.c->module);
    int32_t *at = sd_arena_array(p.c->module->arena, int32_t, n);

    for (int64_t i = 0; i < n; i++)
        at[i] = (int32_t)SD_MAX(hlo_grid_index(g, along, i), 0);
    return pass_own_entry(p, at);
}

hlo_inst *spmd_place(hlo_at p, const hlo_collective *c)
{
    int64_t n = hlo_participants(p.c->module);
    int32_t *at = sd_arena_array(p.c->module->arena, int32_t, n);

    for (int64_t i = 0; i < c->ngroup * c->group_size; i++)
        if (c->groups[i] >= 0)
            at[c->groups[i]] = (int32_t)(i % c->group_size);
    return pass_own_entry(p, at);
}

static hlo_inst *scaled(hlo_at p, hlo_op op, hlo_inst *x, int64_t by)
{
    return by == 1 ? x
                   : hlo_make_binary(p, op, x,
                                     hlo_make_scalar_s64(p, pass_dtype(x), by));
}

hlo_inst *spmd_index(hlo_at p, const hlo_grid *g, const hlo_atoms *along)
{
    hlo_inst *id, *sum = NULL;

    if (g->at)
        return index_of(p, g, along);
    id = spmd_number(p);
    for (int i = 0, n; i < along->n; i += n) { /* atoms in a row are one */
        int first = along->at[i], last = first;
        int64_t size = g->size[first];
        hlo_inst *x;

        for (n = 1; i + n < along->n && along->at[i + n] == last + 1; n++)
            size *= g->size[++last];
        x = scaled(p, HLO_DIVIDE, id, g->stride[last]);
        if (g->stride[last] * size != g->n)
            x = scaled(p, HLO_REMAINDER, x, size);
        sum = sum ? hlo_make_binary(p, HLO_ADD,
                                    scaled(p, HLO_MULTIPLY, sum, size), x)
                  : x;
    }
    return sum;
}

sd_dtype spmd_count(int64_t n)
{
    return n <= INT32_MAX / 2 ? SD_S32 : SD_S64;
}

sd_dtype spmd_counts(const sd_shape *s)
{
    int64_t most = 0;

    for (int d = 0; d < s->rank; d++)
        most = SD_MAX(most, s->dim[d]);
    return spmd_count(most);
}

hlo_inst *spmd_begin(hlo_at p, const hlo_grid *g, const hlo_atoms *along,
                     int64_t each, sd_dtype t)
{
    return scaled(p, HLO_MULTIPLY, pass_convert(p, t, spmd_index(p, g, along)),
                  each);
}

sd_status spmd_local_shape(hlo_module *m, const sd_shape *whole,
                           const hlo_sharding *s, uint32_t mask,
                           const sd_shape **out)
{
    int64_t dim[SD_MAX_RANK];

    *out = whole;
    if (!sd_shape_is_array(whole) || s->single >= 0)
        return NULL;
    for (int i = 0; i < whole->rank; i++) {
        hlo_atoms a = {0};
        int64_t n;

        if (i < s->rank)
            a = hlo_atoms_in(&s->dim[i].cut, mask);
        n = hlo_atoms_size(s->grid, &a);
        if (whole->dim[i] % n)
            return sd_error(SD_INVALID,
                            "dimension %d of %" PRId64 " is to be cut in "
                            "%" PRId64 " equal parts",
                            i, whole->dim[i], n);
        dim[i] = whole->dim[i] / n;
    }
    *out = sd_shape_make(m->arena, whole->dtype, whole->rank, dim);
    return NULL;
}

hlo_inst *spmd_cut(hlo_at p, hlo_inst *x, const hlo_sharding *s)
{
    const hlo_atoms none = {0};
    hlo_inst *start[SD_MAX_RANK], *zero = NULL;
    int64_t size[SD_MAX_RANK];
    bool any = false;
    sd_dtype t;

    if (!sd_shape_is_array(x->shape))
        return x;
    for (int i = 0; i < SD_MIN(s->rank, x->shape->rank); i++)
        any |= s->dim[i].cut.n > 0;
    if (!any)
        return x;
    x = spmd_lengthened(p, x, s);
    t = spmd_counts(x->shape);
    for (int i = 0; i < x->shape->rank; i++) {
        const hlo_atoms *a = i < s->rank ? &s->dim[i].cut : &none;

        size[i] = x->shape->dim[i] / hlo_atoms_size(s->grid, a);
        if (a->n)
            start[i] = spmd_begin(p, s->grid, a, size[i], t);
        else
            start[i] = zero = zero ? zero : hlo_make_scalar_s64(p, t, 0);
    }
    return hlo_make_dynamic_slice(p, x, start, size);
}
