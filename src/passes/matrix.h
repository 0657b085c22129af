/* What the lowerings of linear algebra and transforms are built from: stacks
 * of matrices [n, rows, columns], and loops that count. */
#ifndef MATRIX_H
#define MATRIX_H

#include "passes_priv.h"

/* Factorizations and solves work on blocks of so many rows or columns one by
 * one, and on all that is outside of a block by products of matrices. */
enum { MATRIX_BLOCK = 64 };

/* The same matrices with all dimensions before the last two as one. */
hlo_inst *matrix_stack(hlo_at p, hlo_inst *x);
/* The way back: a stack, which may have been widened, in the dimensions and the
 * type of s. */
hlo_inst *matrix_result(hlo_at p, hlo_inst *x, const sd_shape *s);
hlo_inst *matrix_conj(hlo_at p, hlo_inst *x);
hlo_inst *matrix_transpose(hlo_at p, hlo_inst *x);
hlo_inst *matrix_adjoint(hlo_at p, hlo_inst *x);
hlo_inst *matrix_product(hlo_at p, hlo_inst *x, hlo_inst *y);
/* x^H y, each element as a sum of short sums.  In one long sum of equal numbers
 * all rounding errors have one sign and add up; in short ones they do not. */
hlo_inst *matrix_inner(hlo_at p, hlo_inst *x, hlo_inst *y);
/* A stack [n, 1, cols] of zeros, n and the type being those of `like`. */
hlo_inst *matrix_zero_rows(hlo_at p, const hlo_inst *like, int64_t cols);
hlo_inst *matrix_identity(hlo_at p, const hlo_inst *like, int64_t size);
/* x, which is [n, rows, 1], [n, 1, cols] or [n, 1, 1], broadcast to the shape
 * `to` of whole matrices. */
hlo_inst *matrix_spread(hlo_at p, hlo_inst *x, const sd_shape *to);
/* Masks of the shape s.  where: is the row (dim 1) or the column (dim 2) of an
 * element LT, EQ, ... the scalar `with`?  where_column: is its row LT, EQ, ...
 * its column? */
hlo_inst *matrix_where(hlo_at p, const sd_shape *s, int dim, hlo_cmp_dir dir,
                       hlo_inst *with);
hlo_inst *matrix_where_column(hlo_at p, const sd_shape *s, hlo_cmp_dir dir);
/* x with zeros below and to the right, up to rows x cols; pad_identity makes
 * it a square of that size, and puts ones on the diagonal of what it adds. */
hlo_inst *matrix_pad(hlo_at p, hlo_inst *x, int64_t rows, int64_t cols);
hlo_inst *matrix_pad_identity(hlo_at p, hlo_inst *x, int64_t size);
/* The first rows and columns of each matrix. */
hlo_inst *matrix_cut(hlo_at p, hlo_inst *x, int64_t rows, int64_t cols);
/* rows x cols of each matrix, from (row, col) on (NULL: 0); and x with such a
 * part at that place. */
hlo_inst *matrix_part(hlo_at p, hlo_inst *x, hlo_inst *row, hlo_inst *col,
                      int64_t rows, int64_t cols);
hlo_inst *matrix_put(hlo_at p, hlo_inst *x, hlo_inst *part, hlo_inst *row,
                     hlo_inst *col);
/* Calls for stacks of small matrices: the upper triangle u of u^H u = x, with
 * zeros below; the inverse of u^H; the solution X of a X = b with a lower
 * triangle.  unit: with ones on its diagonal, which is not read then. */
hlo_inst *matrix_factor(hlo_at p, hlo_inst *x);
hlo_inst *matrix_invert_adjoint(hlo_at p, hlo_inst *u);
hlo_inst *matrix_solve(hlo_at p, hlo_inst *a, hlo_inst *b, bool unit);

/* A loop over i = 0, 1, ... trips - 1 that carries n values.  After open, make
 * the body at l.at from l.i and l.x[], and put the values of the next turn into
 * l.x[]; after close, l.x[] are the results. */
typedef struct {
    hlo_at at, outside;
    hlo_inst *i, **x, *init;
    int n;
} matrix_loop;

void matrix_loop_open(matrix_loop *l, hlo_at p, const char *name, int n,
                      hlo_inst *const *init);
void matrix_loop_close(matrix_loop *l, int64_t trips);

/* The solution X of a X = b, for stacks of lower triangular matrices; what is
 * above the diagonal is not read.  unit: nor the diagonal, it is ones.
 * hlo_lower_solve.c */
hlo_inst *matrix_solve_lower(hlo_at p, hlo_inst *a, hlo_inst *b, bool unit);

/* What a call of LU gives, by a loop over columns.  matrix_lu.c */
hlo_inst *matrix_lu(hlo_inst *in);

#endif
