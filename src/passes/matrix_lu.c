/* LU with partial pivots of a few large matrices, for devices on which one
 * function a matrix would be one group's: a loop over panels of PANEL columns,
 * which a call (hlo_linalg.def) factors.  With p the order of rows that this
 * brings, and the panel's l over what is left below:
 *
 *   u = inverse(l[0]) p a[0]      a = p a - l[1..] u
 *
 * The rows of a panel are those from its diagonal on, and as many zeros below
 * as are missing, of which none becomes a pivot. */
#include "hlo_linalg.h"
#include "matrix.h"
#include "terms.h"

enum { PANEL = 32 };

/* Rows order[n, rows, 1] of x. */
static hlo_inst *rows_in_order(hlo_at p, hlo_inst *x, hlo_inst *order)
{
    static const int64_t matrix = 0, row = 1, column = 2;
    sd_arena *a = p.c->module->arena;
    hlo_gather *g = sd_arena_new(a, hlo_gather);
    int64_t size[] = {1, 1, x->shape->dim[2]};
    hlo_inst *two[] = {x, order}, *in;

    g->offset_dims = hlo_dims_copy(a, &column, 1);
    g->collapsed = g->index_map = hlo_dims_copy(a, &row, 1);
    g->operand_batch = g->indices_batch = hlo_dims_copy(a, &matrix, 1);
    g->index_vector_dim = 2;
    g->slice_sizes = hlo_dims_copy(a, size, 3);
    in = hlo_inst_create(p.c, p.before, HLO_GATHER, x->shape, 2, two);
    in->u.gather = g;
    hlo_take_source(in, p.like);
    return in;
}

/* What a panel's call gives: factors, the exchanges [n, columns, 1] and the
 * order [n, rows, 1]. */
typedef struct {
    hlo_inst *lu, *pivot, *order;
} factors;

static factors factor_panel(hlo_at p, hlo_inst *panel)
{
    const sd_shape *s = panel->shape;
    hlo_inst *call = hlo_make_linalg(p, HLO_LA_LU, NULL, 1, &panel);
    int64_t pivot[] = {s->dim[0], SD_MIN(s->dim[1], s->dim[2]), 1};
    int64_t order[] = {s->dim[0], s->dim[1], 1};

    return (factors){pass_result(p, call, 0),
                     pass_reshape(p, pass_result(p, call, 1), 3, pivot),
                     pass_reshape(p, pass_result(p, call, 2), 3, order)};
}

/* a, whose rows are in order, with the panel at column `from`. */
static hlo_inst *take_panel(hlo_at p, hlo_inst *a, hlo_inst *lu, hlo_inst *from)
{
    int64_t rows = a->shape->dim[1], size = lu->shape->dim[2];
    hlo_inst *width = hlo_make_scalar_s64(p, SD_S32, size), *l, *u, *y, *right;
    hlo_inst *end = hlo_make_binary(p, HLO_ADD, from, width);

    l = matrix_part(p, lu, NULL, NULL, size, size);
    y = matrix_part(p, a, NULL, NULL, size, a->shape->dim[2]);
    u = matrix_solve_lower(p, l, y, true);
    l = t_pick(p, matrix_where(p, lu->shape, 1, HLO_GE, width), lu,
               t_fill(p, lu, 0));
    right = matrix_where(p, a->shape, 2, HLO_GE, end);
    if (rows > size) {
        l = t_sub(p, a, matrix_product(p, l, u));
        a = t_pick(p, right, l, a);
    }
    u = t_pick(p, matrix_where(p, u->shape, 2, HLO_GE, end), u, y);
    a = matrix_put(p, a, u, NULL, NULL);
    return matrix_put(p, a, lu, NULL, from);
}

/* One turn: the matrix, the exchanges and the order of all rows. */
static void lu_turn(matrix_loop *l, int64_t rows, int64_t size)
{
    hlo_at p = l->at;
    int64_t cols = l->x[0]->shape->dim[2];
    hlo_inst *from = hlo_make_binary(p, HLO_MULTIPLY, l->i,
                                     hlo_make_scalar_s64(p, SD_S32, size));
    hlo_inst *a = matrix_part(p, l->x[0], from, NULL, rows, cols);
    hlo_inst *order = matrix_part(p, l->x[2], from, NULL, rows, 1);
    factors f = factor_panel(p, matrix_part(p, a, NULL, from, rows, size));

    a = take_panel(p, rows_in_order(p, a, f.order), f.lu, from);
    l->x[0] = matrix_put(p, l->x[0], a, from, NULL);
    f.pivot = t_add(p, f.pivot, hlo_make_spread(p, from, f.pivot->shape));
    l->x[1] = matrix_put(p, l->x[1], f.pivot, from, NULL);
    order = rows_in_order(p, order, f.order);
    l->x[2] = matrix_put(p, l->x[2], order, from, NULL);
}

hlo_inst *matrix_lu(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = matrix_stack(p, in->arg[0]), *out[3];
    const sd_shape *s = x->shape, *of[3];
    int64_t rows = s->dim[1], k = SD_MIN(rows, s->dim[2]);
    int64_t size = SD_MIN(k, PANEL), panels = (k + size - 1) / size;
    int64_t pivots[] = {s->dim[0], panels * size, 1};
    int64_t order[] = {s->dim[0], rows + (panels - 1) * size, 1};
    matrix_loop l;

    of[1] = sd_shape_make(p.c->module->arena, SD_S32, 3, pivots);
    of[2] = sd_shape_make(p.c->module->arena, SD_S32, 3, order);
    out[0] = matrix_pad(p, x, order[1], SD_MAX(s->dim[2], pivots[1]));
    out[1] = hlo_make_fill_s64(p, of[1], SD_S32, 0);
    out[2] = hlo_make_iota(p, of[2], 1);
    matrix_loop_open(&l, p, "lu_panel", 3, out);
    lu_turn(&l, rows, size);
    matrix_loop_close(&l, panels);
    l.x[0] = matrix_cut(p, l.x[0], rows, s->dim[2]);
    l.x[1] = matrix_cut(p, l.x[1], k, 1);
    l.x[2] = matrix_cut(p, l.x[2], rows, 1);
    for (int i = 0; i < 3; i++) {
        const sd_shape *r = hlo_result_shape(in, i);

        out[i] = pass_reshape(p, l.x[i], r->rank, r->dim);
    }
    return pass_results(p, in->shape, out);
}
