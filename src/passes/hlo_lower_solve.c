/* triangular-solve into loops and products.  Every form of it becomes
 * a X = b with a lower triangular: transposed, conjugated, and turned by 180
 * degrees where a is upper.  From MATRIX_BLOCK rows on by blocks, whose
 * inverses a call (hlo_linalg.def) computes all at once:
 *
 *   X[i] = inverse(a[i, i]) * (b[i] - a[i, 0..i] * X[0..i])
 *
 * Du Croz and Higham, "Stability of methods for matrix inversion", 1992. */
#include "matrix.h"

/* The blocks on the diagonal, [n * blocks, size, size]: the others are masked
 * out of a sum, which nothing is added to. */
static hlo_inst *diagonal_blocks(hlo_at p, hlo_inst *a, int64_t size)
{
    int64_t n = a->shape->dim[0], blocks = a->shape->dim[1] / size, over = 3;
    int64_t dim[] = {n, blocks, size, blocks, size};
    int64_t stack[] = {n * blocks, size, size};
    hlo_inst *x = hlo_make_reshape(p, a, 5, dim), *same;
    const sd_shape *at = sd_shape_with(p.c->module->arena, x->shape, SD_S32);

    same = hlo_make_compare(p, HLO_EQ, hlo_make_iota(p, at, 1),
                            hlo_make_iota(p, at, 3));
    x = hlo_make_select(p, same, x, hlo_make_fill(p, x->shape, 0));
    x = hlo_make_sum(p, x, &over, 1);
    return hlo_make_reshape(p, x, 3, stack);
}

static hlo_inst *solve_blocks(hlo_at p, hlo_inst *a, hlo_inst *b, bool unit,
                              int64_t size)
{
    int64_t n = a->shape->dim[0], rows = a->shape->dim[1];
    int64_t cols = b->shape->dim[2], dim[] = {n, rows, size};
    hlo_inst *d = diagonal_blocks(p, a, size), *row, *y;
    hlo_inst *inv = matrix_solve(p, d, matrix_identity(p, d, size), unit);
    hlo_inst *init[] = {a, hlo_make_reshape(p, inv, 3, dim), b,
                        hlo_make_fill(p, b->shape, 0)};
    matrix_loop l;

    matrix_loop_open(&l, p, "solve_block", 4, init);
    row = hlo_make_binary(l.at, HLO_MULTIPLY, l.i,
                          hlo_make_scalar_s64(l.at, SD_S32, size));
    y = matrix_part(l.at, l.x[0], row, NULL, size, rows);
    y = matrix_product(l.at, y, l.x[3]);
    y = hlo_make_binary(l.at, HLO_SUBTRACT,
                        matrix_part(l.at, l.x[2], row, NULL, size, cols), y);
    y = matrix_product(l.at, matrix_part(l.at, l.x[1], row, NULL, size, size),
                       y);
    l.x[3] = matrix_put(l.at, l.x[3], y, row, NULL);
    matrix_loop_close(&l, rows / size);
    return l.x[3];
}

hlo_inst *matrix_solve_lower(hlo_at p, hlo_inst *a, hlo_inst *b, bool unit)
{
    int64_t n = a->shape->dim[1], cols = b->shape->dim[2];
    int64_t size = SD_MIN(n, MATRIX_BLOCK);
    int64_t rows = (n + size - 1) / size * size;
    hlo_inst *x;

    /* with many columns an inverse and a product are quicker */
    if (n <= size && cols <= 4 * size)
        return matrix_solve(p, a, b, unit);
    a = hlo_make_select(p, matrix_where_column(p, a->shape, HLO_GE), a,
                        hlo_make_fill(p, a->shape, 0));
    x = solve_blocks(p, matrix_pad_identity(p, a, rows),
                     matrix_pad(p, b, rows, cols), unit, size);
    return matrix_cut(p, x, n, cols);
}

hlo_inst *hlo_lower_solve(hlo_inst *in)
{
    static const int64_t turned[] = {1, 2};
    hlo_at p = pass_at(in);
    hlo_transpose_kind kind = in->u.linalg.trans;
    bool left = in->u.linalg.left;
    bool transposed = (kind != HLO_TRANSPOSE_NONE) == left;
    bool down = in->u.linalg.lower != transposed;
    hlo_inst *a, *b, *x;

    if (sd_shape_count(in->shape) == 0)
        return hlo_make_fill(p, in->shape, 0);
    a = matrix_stack(p, pass_widened(p, in->arg[0]));
    b = matrix_stack(p, pass_widened(p, in->arg[1]));
    if (kind == HLO_TRANSPOSE_ADJOINT)
        a = matrix_conj(p, a);
    if (transposed)
        a = matrix_transpose(p, a);
    if (!left) /* x a = b is the same with rows for columns */
        b = matrix_transpose(p, b);
    if (!down) {
        a = hlo_make_reverse(p, a, turned, 2);
        b = hlo_make_reverse(p, b, turned, 1);
    }
    x = matrix_solve_lower(p, a, b, in->u.linalg.unit);
    if (!down)
        x = hlo_make_reverse(p, x, turned, 1);
    if (!left)
        x = matrix_transpose(p, x);
    return matrix_result(p, x, in->shape);
}
