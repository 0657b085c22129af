/* What the lowerings of linear algebra and transforms are built from: stacks
 * of matrices [n, rows, columns], and loops that count. */
#ifndef MATRIX_H
#define MATRIX_H

#include "passes_priv.h"

/* Rows or columns that are solved one by one before products take over. */
enum { MATRIX_BLOCK = 64 };

/* The same matrices with all dimensions before the last two as one. */
hlo_inst *matrix_stack(hlo_at p, hlo_inst *x);
/* What was computed as a stack, and widened, in the type and the dimensions
 * of s. */
hlo_inst *matrix_result(hlo_at p, hlo_inst *x, const sd_shape *s);
hlo_inst *matrix_conj(hlo_at p, hlo_inst *x);
hlo_inst *matrix_transpose(hlo_at p, hlo_inst *x);
hlo_inst *matrix_adjoint(hlo_at p, hlo_inst *x);
hlo_inst *matrix_product(hlo_at p, hlo_inst *x, hlo_inst *y);
/* x^H y as sums of short sums: rounding errors of one sign, as those of equal
 * numbers, do not add up along a whole column. */
hlo_inst *matrix_inner(hlo_at p, hlo_inst *x, hlo_inst *y);
/* v as the type of x in all of a [n, rows, cols]. */
hlo_inst *matrix_fill(hlo_at p, const hlo_inst *like, int64_t rows,
                      int64_t cols, double v);
hlo_inst *matrix_identity(hlo_at p, const hlo_inst *like, int64_t size);
/* [n, rows, 1], [n, 1, cols] or [n, 1, 1] over all of a larger shape. */
hlo_inst *matrix_spread(hlo_at p, hlo_inst *x, const sd_shape *to);
/* The row (dim 1) or column (dim 2) of each element, compared with the scalar
 * `with` or with its column plus `by`. */
hlo_inst *matrix_where(hlo_at p, const sd_shape *s, int dim, hlo_cmp_dir dir,
                       hlo_inst *with);
hlo_inst *matrix_where_column(hlo_at p, const sd_shape *s, hlo_cmp_dir dir,
                              int64_t by);
/* Zeros below and right of x, and in a square one 1 on their diagonal. */
hlo_inst *matrix_pad(hlo_at p, hlo_inst *x, int64_t rows, int64_t cols);
hlo_inst *matrix_pad_identity(hlo_at p, hlo_inst *x, int64_t size);
/* The first rows and columns of each matrix. */
hlo_inst *matrix_cut(hlo_at p, hlo_inst *x, int64_t rows, int64_t cols);
/* rows x cols of each matrix from (row, col) on; NULL: from 0. */
hlo_inst *matrix_part(hlo_at p, hlo_inst *x, hlo_inst *row, hlo_inst *col,
                      int64_t rows, int64_t cols);
hlo_inst *matrix_put(hlo_at p, hlo_inst *x, hlo_inst *part, hlo_inst *row,
                     hlo_inst *col);
/* x with `row` as row i, and col times row taken from the rows after it. */
hlo_inst *matrix_eliminate(hlo_at p, hlo_inst *x, hlo_inst *i, hlo_inst *row,
                           hlo_inst *col);

/* A loop over i = 0, 1, .. trips - 1 with values that each turn replaces.
 * open makes the body, whose instructions go to `at`; close takes what the
 * next turn has in x, and leaves the results there. */
typedef struct {
    hlo_at at, outside;
    hlo_inst *i, **x, *init;
    int n;
} matrix_loop;

void matrix_loop_open(matrix_loop *l, hlo_at p, const char *name, int n,
                      hlo_inst *const *init);
void matrix_loop_close(matrix_loop *l, int64_t trips);

/* hlo_lower_solve.c: X of op(a) X = b, a lower triangular, both stacks; the
 * other triangle is not read. */
hlo_inst *matrix_solve_lower(hlo_at p, hlo_inst *a, hlo_inst *b, bool unit);

#endif
