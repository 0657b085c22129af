/* Simplification of scatters.
 *
 * One that gives each line of a repeated scalar one update, as the gradient of
 * take_along_axis does, and so of a loss that picks the logit of a word,
 * compares places instead:
 *
 *   select(iota == index, f(scalar, update), scalar)
 *
 * The repeated scalar need not be written to be changed in a few places, and
 * what reads the result computes it by itself. */
#include "simplify.h"

/* The dimension along which each line has one update; -1: there is none. */
static int64_t line_of(const hlo_inst *in)
{
    const hlo_gather *g = in->u.gather;
    const sd_shape *s = in->shape;
    const hlo_inst *x = in->arg[0];
    int64_t d;

    if (x->op != HLO_BROADCAST || x->arg[0]->shape->rank ||
        !pass_can_vectorize(in->comp[0]) || g->offset_dims.n ||
        g->index_map.n != 1 || g->operand_batch.n + 1 != s->rank ||
        !hlo_dims_rise(g->operand_batch) || !hlo_dims_rise(g->indices_batch))
        return -1;
    d = g->index_map.at[0];
    if (s->dim[d] >= INT32_MAX ||
        sd_shape_count(in->arg[2]->shape) != sd_shape_count(s) / s->dim[d])
        return -1;
    return d;
}

/* Of 32 bits; what is no place of so many still is none. */
static hlo_inst *as_s32(hlo_at p, hlo_inst *x, int64_t extent)
{
    sd_dtype t = pass_dtype(x);

    if (t == SD_S64 || t == SD_U64 || t == SD_U32)
        x = hlo_make_binary(p, HLO_MINIMUM, x,
                            hlo_make_fill_s64(p, x->shape, t, extent));
    if (t == SD_S64)
        x = hlo_make_binary(p, HLO_MAXIMUM, x,
                            hlo_make_fill_s64(p, x->shape, t, -1));
    return t == SD_S32 ? x : hlo_make_convert(p, SD_S32, x);
}

/* x, which has a number for each line, under the result's dimensions. */
static hlo_inst *spread(hlo_inst *in, hlo_inst *x)
{
    const hlo_dims d = in->u.gather->operand_batch;
    sd_arena *a = in->parent->module->arena;
    int64_t dim[SD_MAX_RANK];

    for (int i = 0; i < d.n; i++)
        dim[i] = in->shape->dim[d.at[i]];
    return hlo_make_broadcast(
        pass_at(in), hlo_make_reshape(pass_at(in), x, d.n, dim),
        sd_shape_make(a, pass_dtype(x), in->shape->rank, in->shape->dim), d.at,
        d.n);
}

static hlo_inst *compare_places(hlo_inst *in, int64_t d)
{
    hlo_at p = pass_at(in);
    hlo_inst *to = spread(in, as_s32(p, in->arg[1], in->shape->dim[d]));
    hlo_inst *arg[] = {in->arg[0], spread(in, in->arg[2])};
    hlo_inst *here =
        hlo_make_compare(p, HLO_EQ, hlo_make_iota(p, to->shape, d), to);

    return hlo_make_select(
        p, here, pass_vectorize(p, in->comp[0], arg, in->shape), arg[0]);
}

hlo_inst *simplify_scatter(hlo_inst *in)
{
    int64_t d;

    if (hlo_ninput(in) != 1)
        return NULL;
    if (sd_shape_count(in->arg[2]->shape) == 0)
        return in->arg[0];
    d = line_of(in);
    return d < 0 ? NULL : compare_places(in, d);
}
