/* cholesky into a loop of products over blocks of MATRIX_BLOCK rows, of which a
 * call (hlo_linalg.def) factors the one on the diagonal, u^H u = a, and another
 * inverts the factor's adjoint:
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

static hlo_inst *upper_part(hlo_at p, hlo_inst *x)
{
    return t_pick(p, matrix_where_column(p, x->shape, HLO_LE), x,
                  t_fill(p, x, 0));
}

/* The factor's rows from i on, of the rows r that remain there. */
static hlo_inst *factor_block(hlo_at p, hlo_inst *r, hlo_inst *i)
{
    int64_t size = r->shape->dim[1];
    hlo_inst *end = hlo_make_scalar_s64(p, SD_S32, size), *d, *inverse, *y;

    d = matrix_factor(p, matrix_part(p, r, NULL, i, size, size));
    inverse = matrix_invert_adjoint(p, d);
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
        return nan_if_last(p, matrix_factor(p, a));
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
