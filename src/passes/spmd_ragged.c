/* A ragged all-to-all: members of a group send each other rows, so many as
 * each says, in one piece or in as many pieces to each.  Here everybody gets
 * all the rows and all the numbers, and reads for each row of the result the
 * one that was sent there, if any was. */
#include "spmd.h"
#include "terms.h"

enum { OPERAND, OUTPUT, FROM, COUNT, TO, NARG = 6 };

static bool fits(const hlo_inst *in, const hlo_collective *c)
{
    bool ok = in->narg == NARG && sd_shape_is_array(in->shape) &&
              in->shape->rank > 0 && in->shape->rank < SD_MAX_RANK &&
              sd_shape_equal(in->shape, in->arg[OUTPUT]->shape) &&
              in->arg[OPERAND]->shape->rank == in->shape->rank;

    for (int i = FROM; ok && i < NARG; i++)
        ok = in->arg[i]->shape->rank == 1 &&
             in->arg[i]->shape->dim[0] == in->arg[FROM]->shape->dim[0];
    return ok && in->arg[FROM]->shape->dim[0] >= c->group_size &&
           in->arg[FROM]->shape->dim[0] % c->group_size == 0;
}

/* What each member says of this participant, a number a piece, spread over
 * the rows of the result: [n * pieces, rows]. */
static hlo_inst *said(hlo_at p, hlo_inst *x, const hlo_collective *c,
                      hlo_inst *place, const sd_shape *grid)
{
    hlo_inst *all = spmd_stack(p, pass_convert(p, grid->dtype, x), c);
    int64_t first = 0, pieces = grid->dim[0] / c->group_size;

    place = t_mul(p, place, hlo_make_scalar_s64(p, SD_S32, pieces));
    all = hlo_make_reshape(p, pass_slice_at(p, all, 1, place, pieces), 1,
                           grid->dim);
    return hlo_make_broadcast(p, all, grid, &first, 1);
}

/* Row flat[i] of x, an array of rows, for each i. */
static hlo_inst *take_rows(hlo_at p, hlo_inst *x, hlo_inst *flat,
                           const sd_shape *to)
{
    sd_arena *a = p.c->module->arena;
    hlo_gather *g = sd_arena_new(a, hlo_gather);
    int64_t size[SD_MAX_RANK], rest[SD_MAX_RANK], zero = 0;
    hlo_inst *two[2] = {x, flat}, *in;

    for (int i = 0; i < to->rank; i++) {
        size[i] = i ? to->dim[i] : 1;
        rest[i] = i + 1;
    }
    g->offset_dims = hlo_dims_copy(a, rest, to->rank - 1);
    g->collapsed = g->index_map = hlo_dims_copy(a, &zero, 1);
    g->index_vector_dim = 1;
    g->slice_sizes = hlo_dims_copy(a, size, to->rank);
    in = hlo_inst_create(p.c, p.before, HLO_GATHER, to, 2, two);
    in->u.gather = g;
    hlo_take_source(in, p.like);
    return in;
}

/* For each row of the result the number of the row of all rows that is sent
 * there; -1: none is. */
static hlo_inst *senders(hlo_at p, const hlo_inst *in, const hlo_collective *c)
{
    hlo_module *m = p.c->module;
    int64_t dim[2] = {in->arg[FROM]->shape->dim[0], in->shape->dim[0]};
    int64_t first = 0, pieces = dim[0] / c->group_size;
    int64_t rows = in->arg[OPERAND]->shape->dim[0];
    /* the rows of all; the result's, from where somebody says */
    sd_dtype t = spmd_count(SD_MAX(rows * c->group_size, dim[1]));
    const sd_shape *grid = sd_shape_make(m->arena, t, 2, dim);
    hlo_inst *place = spmd_place(p, c), *row, *at, *ok;

    row = t_sub(p, hlo_make_iota(p, grid, 1),
                said(p, in->arg[TO], c, place, grid));
    ok = t_and(p, t_is(p, HLO_GE, row, hlo_make_fill(p, grid, 0)),
               t_is(p, HLO_LT, row, said(p, in->arg[COUNT], c, place, grid)));
    at = t_div(p, hlo_make_iota(p, grid, 0),
               hlo_make_fill_s64(p, grid, t, pieces));
    at = t_mul(p, at, hlo_make_fill_s64(p, grid, t, rows));
    at = t_add(p, at, said(p, in->arg[FROM], c, place, grid));
    at = t_pick(p, ok, t_add(p, at, row), hlo_make_fill(p, grid, -1));
    return hlo_make_reduce(p, at, hlo_make_scalar_s64(p, t, -1), &first, 1,
                           hlo_scalar_comp(m, HLO_MAXIMUM, t));
}

sd_status spmd_ragged(hlo_inst *in)
{
    hlo_module *m = in->parent->module;
    hlo_at p = pass_at(in);
    hlo_collective c;
    hlo_inst *all, *flat, *sent;
    int64_t dim[SD_MAX_RANK], first = 0;
    const sd_shape *rows;

    if (!hlo_config_groups(m, in->u.custom, &c) || !fits(in, &c))
        return sd_error(SD_UNIMPLEMENTED,
                        "%s: groups or operands of another form than as many "
                        "numbers for each member",
                        hlo_describe(m, in));
    flat = senders(p, in, &c);
    rows = flat->shape;
    all = spmd_stack(p, in->arg[OPERAND], &c);
    memcpy(dim, all->shape->dim + 1, sizeof *dim * (size_t)in->shape->rank);
    dim[0] *= c.group_size;
    all = hlo_make_reshape(p, all, in->shape->rank, dim);
    sent = t_is(p, HLO_GE, flat, hlo_make_fill(p, rows, 0));
    sent = hlo_make_broadcast(
        p, sent, sd_shape_with(m->arena, in->shape, SD_PRED), &first, 1);
    flat = t_binary(p, HLO_MAXIMUM, flat, hlo_make_fill(p, rows, 0));
    all = take_rows(p, all, flat, in->shape);
    hlo_replace(in, t_pick(p, sent, all, in->arg[OUTPUT]));
    hlo_remove(in);
    return NULL;
}
