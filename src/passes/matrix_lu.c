/* LU with partial pivots of a few large matrices, into a loop over columns, for
 * devices on which one function a matrix would be one work item's: a turn
 * brings the row of column i's largest number to row i, and subtracts it from
 * the rows below.  All matrices of a stack take a turn at once. */
#include "matrix.h"
#include "terms.h"

/* What is true in one row of each matrix, [n, rows, 1], picks that row of x,
 * [n, 1, cols]: a sum of which the others are 0. */
static hlo_inst *row_where(hlo_at p, hlo_inst *x, hlo_inst *is)
{
    static const int64_t rows = 1;
    const sd_shape *s = x->shape;
    int64_t dim[] = {s->dim[0], 1, s->dim[2]};

    x = t_pick(p, matrix_spread(p, is, s), x, t_fill(p, x, 0));
    x = hlo_make_reduce(p, x, hlo_make_scalar(p, s->dtype, 0), &rows, 1,
                        hlo_scalar_comp(p.c->module, HLO_ADD, s->dtype));
    return pass_reshape(p, x, 3, dim);
}

/* The least or largest number of each matrix of [n, rows, 1], as [n, 1, 1]. */
static hlo_inst *extreme_of_rows(hlo_at p, hlo_inst *x, hlo_op op,
                                 hlo_inst *first)
{
    static const int64_t rows = 1;
    int64_t dim[] = {x->shape->dim[0], 1, 1};

    x = hlo_make_reduce(p, x, first, &rows, 1,
                        hlo_scalar_comp(p.c->module, op, x->shape->dtype));
    return pass_reshape(p, x, 3, dim);
}

/* As LAPACK compares numbers: of complex ones both parts' sizes added. */
static hlo_inst *size_of(hlo_at p, hlo_inst *x)
{
    if (!sd_is_complex(pass_dtype(x)))
        return t_abs(p, x);
    return t_add(p, t_abs(p, t_unary(p, HLO_REAL, x)),
                 t_abs(p, t_unary(p, HLO_IMAG, x)));
}

/* The row of the first of the largest numbers from row i on of a column, [n, 1,
 * 1]; i where none is a number. */
static hlo_inst *pivot_row(hlo_at p, hlo_inst *column, hlo_inst *i)
{
    hlo_inst *size = size_of(p, column), *most, *row, *end, *found;
    const sd_shape *at = sd_shape_with(p.c->module->arena, size->shape, SD_S32);
    int64_t rows = at->dim[1];

    size = t_pick(p, matrix_where(p, size->shape, 1, HLO_GE, i), size,
                  t_fill(p, size, -1));
    most = extreme_of_rows(p, size, HLO_MAXIMUM,
                           hlo_make_scalar(p, size->shape->dtype, -1));
    row = hlo_make_iota(p, at, 1);
    end = pass_fill_s64(p, at, SD_S32, rows);
    row = t_pick(p, t_is(p, HLO_EQ, size, matrix_spread(p, most, size->shape)),
                 row, end);
    found = extreme_of_rows(p, row, HLO_MINIMUM,
                            hlo_make_scalar_s64(p, SD_S32, rows));
    return t_pick(p, t_is_num(p, HLO_EQ, found, (double)rows),
                  pass_spread(p, i, found->shape), found);
}

/* x with its row i and the one that `is` names exchanged; *row is the new row
 * i. */
static hlo_inst *exchange_rows(hlo_at p, hlo_inst *x, hlo_inst *i, hlo_inst *is,
                               hlo_inst **row)
{
    hlo_inst *old = matrix_part(p, x, i, NULL, 1, x->shape->dim[2]);

    *row = row_where(p, x, is);
    x = t_pick(p, matrix_spread(p, is, x->shape),
               matrix_spread(p, old, x->shape), x);
    return matrix_put(p, x, *row, i, NULL);
}

/* Rows below row i less their multiple of it, which stays in column i. */
static hlo_inst *subtract_pivot_row(hlo_at p, hlo_inst *x, hlo_inst *i,
                                    hlo_inst *row)
{
    const sd_shape *s = x->shape;
    hlo_inst *column = matrix_part(p, x, NULL, i, s->dim[1], 1);
    hlo_inst *pivot = matrix_part(p, row, NULL, i, 1, 1), *over, *less;
    hlo_inst *below = matrix_where(p, column->shape, 1, HLO_GT, i);
    hlo_inst *right = matrix_where(p, row->shape, 2, HLO_GT, i);

    over = t_div(p, column, matrix_spread(p, pivot, column->shape));
    over = t_pick(p,
                  matrix_spread(p, t_is(p, HLO_EQ, pivot, t_fill(p, pivot, 0)),
                                column->shape),
                  column, over);
    less = t_sub(p, x,
                 t_mul(p, matrix_spread(p, over, s), matrix_spread(p, row, s)));
    less = t_pick(p, matrix_spread(p, right, s), less, x);
    x = t_pick(p, matrix_spread(p, below, s), less, x);
    return matrix_put(p, x, t_pick(p, below, over, column), NULL, i);
}

/* One turn: x, the pivots' rows and the order of all rows. */
static void lu_turn(matrix_loop *l)
{
    hlo_at p = l->at;
    hlo_inst *x = l->x[0], *pivot, *is, *row, *at;
    const sd_shape *s;

    pivot =
        pivot_row(p, matrix_part(p, x, NULL, l->i, x->shape->dim[1], 1), l->i);
    s = l->x[2]->shape;
    at = hlo_make_iota(p, s, 1);
    is = t_is(p, HLO_EQ, at, matrix_spread(p, pivot, s));
    x = exchange_rows(p, x, l->i, is, &row);
    l->x[0] = subtract_pivot_row(p, x, l->i, row);
    l->x[1] = matrix_put(p, l->x[1], pivot, l->i, NULL);
    l->x[2] = exchange_rows(p, l->x[2], l->i, is, &row);
}

hlo_inst *matrix_lu(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = matrix_stack(p, in->arg[0]), *out[3];
    const sd_shape *s = x->shape, *of[3];
    sd_arena *a = p.c->module->arena;
    int64_t k = SD_MIN(s->dim[1], s->dim[2]);
    int64_t pivots[] = {s->dim[0], k, 1}, order[] = {s->dim[0], s->dim[1], 1};
    matrix_loop l;

    of[1] = sd_shape_make(a, SD_S32, 3, pivots);
    of[2] = sd_shape_make(a, SD_S32, 3, order);
    out[0] = x;
    out[1] = pass_fill_s64(p, of[1], SD_S32, 0);
    out[2] = hlo_make_iota(p, of[2], 1);
    matrix_loop_open(&l, p, "lu_column", 3, out);
    lu_turn(&l);
    matrix_loop_close(&l, k);
    for (int i = 0; i < 3; i++) {
        const sd_shape *r = hlo_result_shape(in, i);

        out[i] = pass_reshape(p, l.x[i], r->rank, r->dim);
    }
    return pass_results(p, in->shape, out);
}
