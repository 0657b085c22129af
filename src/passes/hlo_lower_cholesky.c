/* cholesky into loops and products.  The upper factor u, u^H u = a, is the
 * elimination of a's upper triangle, one row a turn, each divided by the root
 * of its pivot.  From MATRIX_BLOCK rows on by blocks of rows, of which only
 * the one on the diagonal is eliminated, together with an identity, which
 * becomes the inverse of its factor's adjoint:
 *
 *   r = a[i] - u[0..i, i]^H u[0..i]      u[i] = inverse(u[i, i])^H r
 *
 * A lower factor is the adjoint of the upper one of the adjoint. */
#include "matrix.h"
#include "terms.h"

#include <math.h>

static hlo_inst *real_part(hlo_at p, hlo_inst *x)
{
    return sd_is_complex(pass_dtype(x)) ? t_unary(p, HLO_REAL, x) : x;
}

/* The real x as a value of type t. */
static hlo_inst *of_real(hlo_at p, sd_dtype t, hlo_inst *x)
{
    if (!sd_is_complex(t))
        return x;
    return t_binary(p, HLO_COMPLEX, x, t_fill(p, x, 0));
}

static hlo_inst *divide_by_real(hlo_at p, hlo_inst *x, hlo_inst *by)
{
    hlo_inst *re, *im;

    if (!sd_is_complex(pass_dtype(x)))
        return t_div(p, x, by);
    re = t_unary(p, HLO_REAL, x);
    im = t_unary(p, HLO_IMAG, x);
    return t_binary(p, HLO_COMPLEX, t_div(p, re, by), t_div(p, im, by));
}

/* Row i of the factor from row i of what is left; a pivot that is not
 * positive makes it NaN, and with it all rows below. */
static hlo_inst *factor_row(hlo_at p, hlo_inst *t, hlo_inst *i)
{
    hlo_inst *row = matrix_part(p, t, i, NULL, 1, t->shape->dim[2]);
    hlo_inst *pivot = real_part(p, matrix_part(p, t, i, i, 1, 1)), *root, *is;

    is = t_is(p, HLO_GT, pivot, t_fill(p, pivot, 0));
    root = t_pick(p, is, t_unary(p, HLO_SQRT, pivot), t_fill(p, pivot, NAN));
    root = matrix_spread(p, root, row->shape);
    return t_pick(p, matrix_where(p, row->shape, 2, HLO_EQ, i),
                  of_real(p, pass_dtype(t), root),
                  divide_by_real(p, row, root));
}

/* t is [n, size, size + more]; the triangle below the diagonal is not read and
 * comes back as anything. */
static hlo_inst *eliminate(hlo_at p, hlo_inst *t)
{
    int64_t size = t->shape->dim[1], column[] = {t->shape->dim[0], size, 1};
    hlo_inst *row, *col;
    matrix_loop l;

    matrix_loop_open(&l, p, "factor", 1, &t);
    t = l.x[0];
    row = factor_row(l.at, t, l.i);
    col = matrix_part(l.at, row, NULL, NULL, 1, size);
    col = hlo_make_reshape(l.at, matrix_conj(l.at, col), 3, column);
    l.x[0] = matrix_eliminate(l.at, t, l.i, row, col);
    matrix_loop_close(&l, size);
    return l.x[0];
}

static hlo_inst *upper_part(hlo_at p, hlo_inst *x)
{
    return t_pick(p, matrix_where_column(p, x->shape, HLO_LE, 0), x,
                  t_fill(p, x, 0));
}

/* The factor's rows from i on, of the rows r that remain there. */
static hlo_inst *factor_block(hlo_at p, hlo_inst *r, hlo_inst *i)
{
    int64_t size = r->shape->dim[1];
    hlo_inst *d = matrix_part(p, r, NULL, i, size, size), *t, *inverse, *y;
    hlo_inst *both[] = {d, matrix_identity(p, d, size)}, *end;

    t = eliminate(p, hlo_make_concatenate(p, 2, both, 2));
    end = hlo_make_scalar_s64(p, SD_S32, size);
    d = upper_part(p, matrix_part(p, t, NULL, NULL, size, size));
    inverse = matrix_part(p, t, NULL, end, size, size);
    y = matrix_product(p, inverse, r);
    end = t_add(p, i, end);
    y = t_pick(p, matrix_where(p, y->shape, 2, HLO_GE, end), y,
               t_fill(p, y, 0));
    return matrix_put(p, y, d, NULL, i);
}

static hlo_inst *factor_blocks(hlo_at p, hlo_inst *a)
{
    int64_t n = a->shape->dim[1];
    hlo_inst *init[] = {a, t_fill(p, a, 0)}, *row, *u, *r;
    matrix_loop l;

    matrix_loop_open(&l, p, "factor_block", 2, init);
    row = hlo_make_binary(l.at, HLO_MULTIPLY, l.i,
                          hlo_make_scalar_s64(l.at, SD_S32, MATRIX_BLOCK));
    u = matrix_part(l.at, l.x[1], NULL, row, n, MATRIX_BLOCK);
    u = matrix_product(l.at, matrix_adjoint(l.at, u), l.x[1]);
    r = matrix_part(l.at, l.x[0], row, NULL, MATRIX_BLOCK, n);
    r = hlo_make_binary(l.at, HLO_SUBTRACT, r, u);
    l.x[1] = matrix_put(l.at, l.x[1], factor_block(l.at, r, row), row, NULL);
    matrix_loop_close(&l, n / MATRIX_BLOCK);
    return l.x[1];
}

/* Where a pivot was not positive, the last one is NaN, and all becomes it. */
static hlo_inst *nan_if_last(hlo_at p, hlo_inst *u)
{
    hlo_inst *last = hlo_make_scalar_s64(p, SD_S32, u->shape->dim[1] - 1);

    last = real_part(p, matrix_part(p, u, last, last, 1, 1));
    last = t_is(p, HLO_NE, last, last);
    return t_pick(p, matrix_spread(p, last, u->shape), t_fill(p, u, NAN), u);
}

static hlo_inst *factor(hlo_at p, hlo_inst *a)
{
    int64_t n = a->shape->dim[1];
    int64_t rows = (n + MATRIX_BLOCK - 1) / MATRIX_BLOCK * MATRIX_BLOCK;
    hlo_inst *u;

    if (n <= MATRIX_BLOCK)
        return nan_if_last(p, upper_part(p, eliminate(p, a)));
    u = factor_blocks(p, matrix_pad_identity(p, upper_part(p, a), rows));
    return nan_if_last(p, matrix_cut(p, u, n, n));
}

hlo_inst *hlo_lower_cholesky(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *a;

    if (sd_shape_count(in->shape) == 0)
        return t_fill(p, in, 0);
    a = matrix_stack(p, pass_widened(p, in->arg[0]));
    if (in->u.linalg.lower)
        a = matrix_adjoint(p, a);
    a = factor(p, a);
    if (in->u.linalg.lower)
        a = matrix_adjoint(p, a);
    return matrix_result(p, a, in->shape);
}
