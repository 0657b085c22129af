/* Stacks of matrices, and loops that count; see matrix.h. */
#include "matrix.h"
#include "hlo_linalg.h"
#include "terms.h"

/* ---- matrices ---- */

hlo_inst *matrix_stack(hlo_at p, hlo_inst *x)
{
    const sd_shape *s = x->shape;
    int64_t dim[3] = {1, s->dim[s->rank - 2], s->dim[s->rank - 1]};

    for (int i = 0; i < s->rank - 2; i++)
        dim[0] *= s->dim[i];
    return pass_reshape(p, x, 3, dim);
}

static const sd_shape *shape_like(hlo_at p, const hlo_inst *like, int64_t rows,
                                  int64_t cols)
{
    int64_t dim[3] = {like->shape->dim[0], rows, cols};

    return sd_shape_make(p.c->module->arena, pass_dtype(like), 3, dim);
}

hlo_inst *matrix_result(hlo_at p, hlo_inst *x, const sd_shape *s)
{
    return pass_reshape(p, pass_convert(p, s->dtype, x), s->rank, s->dim);
}

hlo_inst *matrix_conj(hlo_at p, hlo_inst *x)
{
    hlo_inst *im;

    if (!sd_is_complex(pass_dtype(x)))
        return x;
    im = t_unary(p, HLO_IMAG, x);
    return t_binary(p, HLO_COMPLEX, t_unary(p, HLO_REAL, x), t_neg(p, im));
}

hlo_inst *matrix_transpose(hlo_at p, hlo_inst *x)
{
    static const int64_t perm[] = {0, 2, 1};

    return hlo_make_transpose(p, x, perm);
}

hlo_inst *matrix_adjoint(hlo_at p, hlo_inst *x)
{
    return matrix_transpose(p, matrix_conj(p, x));
}

hlo_inst *matrix_product(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    static const int64_t dim[] = {0, 1, 2};
    hlo_dot d = {.lhs_batch = {dim, 1},
                 .rhs_batch = {dim, 1},
                 .lhs_contract = {dim + 2, 1},
                 .rhs_contract = {dim + 1, 1},
                 .prec = {HLO_PREC_HIGHEST, HLO_PREC_HIGHEST}};

    return hlo_make_dot(p, x, y, pass_dtype(x), &d);
}

/* The products of SHORT rows each, [n, blocks, .., ..], are summed. */
hlo_inst *matrix_inner(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    enum { SHORT = 16 };
    static const int64_t over[] = {1};
    int64_t n = x->shape->dim[0], rows = x->shape->dim[1];
    int64_t xcols = x->shape->dim[2], ycols = y->shape->dim[2];
    int64_t blocks = (rows + SHORT - 1) / SHORT;
    int64_t xdim[] = {n * blocks, SHORT, xcols};
    int64_t ydim[] = {n * blocks, SHORT, ycols};
    int64_t dim[] = {n, blocks, xcols, ycols};

    if (blocks == 1)
        return matrix_product(p, matrix_adjoint(p, x), y);
    x = pass_reshape(p, matrix_pad(p, x, blocks * SHORT, xcols), 3, xdim);
    y = pass_reshape(p, matrix_pad(p, y, blocks * SHORT, ycols), 3, ydim);
    x = matrix_product(p, matrix_adjoint(p, x), y);
    return hlo_make_sum(p, hlo_make_reshape(p, x, 4, dim), over, 1);
}

hlo_inst *matrix_zero_rows(hlo_at p, const hlo_inst *like, int64_t cols)
{
    return hlo_make_fill(p, shape_like(p, like, 1, cols), 0);
}

hlo_inst *matrix_identity(hlo_at p, const hlo_inst *like, int64_t size)
{
    const sd_shape *s = shape_like(p, like, size, size);

    return t_convert(p, s->dtype, matrix_where_column(p, s, HLO_EQ));
}

hlo_inst *matrix_spread(hlo_at p, hlo_inst *x, const sd_shape *to)
{
    int64_t from[3], dims[3];
    int n = 0;

    if (sd_shape_same_dims(x->shape, to))
        return x;
    for (int i = 0; i < 3; i++)
        if (x->shape->dim[i] == to->dim[i]) {
            from[n] = to->dim[i];
            dims[n++] = i;
        }
    return hlo_make_broadcast(p, pass_reshape(p, x, n, from), to, dims, n);
}

static hlo_inst *places(hlo_at p, const sd_shape *s, int dim)
{
    return hlo_make_iota(p, sd_shape_with(p.c->module->arena, s, SD_S32), dim);
}

hlo_inst *matrix_where(hlo_at p, const sd_shape *s, int dim, hlo_cmp_dir dir,
                       hlo_inst *with)
{
    hlo_inst *at = places(p, s, dim);

    return hlo_make_compare(p, dir, at, hlo_make_spread(p, with, at->shape));
}

hlo_inst *matrix_where_column(hlo_at p, const sd_shape *s, hlo_cmp_dir dir)
{
    hlo_inst *col = places(p, s, 2);

    return hlo_make_compare(p, dir, places(p, s, 1), col);
}

hlo_inst *matrix_pad(hlo_at p, hlo_inst *x, int64_t rows, int64_t cols)
{
    const int64_t low[3] = {0}, high[3] = {0, rows - x->shape->dim[1],
                                           cols - x->shape->dim[2]};

    if (high[1] == 0 && high[2] == 0)
        return x;
    return hlo_make_pad(p, x, hlo_make_scalar(p, pass_dtype(x), 0), low, high,
                        NULL);
}

hlo_inst *matrix_pad_identity(hlo_at p, hlo_inst *x, int64_t size)
{
    int64_t n = x->shape->dim[1];
    hlo_inst *y = matrix_pad(p, x, size, size), *added;

    if (n == size)
        return x;
    added =
        matrix_where(p, y->shape, 1, HLO_GE, hlo_make_scalar_s64(p, SD_S32, n));
    added = t_and(p, added, matrix_where_column(p, y->shape, HLO_EQ));
    return t_pick(p, added, t_fill(p, y, 1), y);
}

hlo_inst *matrix_cut(hlo_at p, hlo_inst *x, int64_t rows, int64_t cols)
{
    const int64_t zero[3] = {0}, limit[] = {x->shape->dim[0], rows, cols};

    if (x->shape->dim[1] == rows && x->shape->dim[2] == cols)
        return x;
    return hlo_make_slice(p, x, zero, limit, NULL);
}

static void start_at(hlo_at p, hlo_inst *row, hlo_inst *col, hlo_inst **at)
{
    hlo_inst *zero = hlo_make_scalar_s64(p, SD_S32, 0);

    at[0] = zero;
    at[1] = row ? row : zero;
    at[2] = col ? col : zero;
}

hlo_inst *matrix_part(hlo_at p, hlo_inst *x, hlo_inst *row, hlo_inst *col,
                      int64_t rows, int64_t cols)
{
    int64_t size[] = {x->shape->dim[0], rows, cols};
    hlo_inst *start[3];

    start_at(p, row, col, start);
    return hlo_make_dynamic_slice(p, x, start, size);
}

hlo_inst *matrix_put(hlo_at p, hlo_inst *x, hlo_inst *part, hlo_inst *row,
                     hlo_inst *col)
{
    hlo_inst *start[3];

    start_at(p, row, col, start);
    return hlo_make_dynamic_update(p, x, part, start);
}

/* ---- calls ---- */

hlo_inst *matrix_factor(hlo_at p, hlo_inst *x)
{
    static const int64_t attr[] = {0, 0}; /* lower, mean */

    return hlo_make_linalg(p, HLO_LA_CHOLESKY, attr, 1, &x);
}

hlo_inst *matrix_invert_adjoint(hlo_at p, hlo_inst *u)
{
    static const int64_t attr[] = {1, 0, 0, HLO_TRANSPOSE_ADJOINT};
    hlo_inst *x[] = {u, matrix_identity(p, u, u->shape->dim[1])};

    return hlo_make_linalg(p, HLO_LA_TRIANGULAR_SOLVE, attr, 2, x);
}

hlo_inst *matrix_solve(hlo_at p, hlo_inst *a, hlo_inst *b, bool unit)
{
    const int64_t attr[] = {1, 1, unit, HLO_TRANSPOSE_NONE}; /* left, lower */
    hlo_inst *x[] = {a, b};

    return hlo_make_linalg(p, HLO_LA_TRIANGULAR_SOLVE, attr, 2, x);
}

/* ---- loops ---- */

void matrix_loop_open(matrix_loop *l, hlo_at p, const char *name, int n,
                      hlo_inst *const *init)
{
    hlo_inst **all = sd_arena_array(p.c->module->arena, hlo_inst *, n + 1);
    hlo_comp *body = hlo_comp_create(p.c->module, name);
    hlo_inst *state;

    *l = (matrix_loop){.at = {body, NULL, p.like}, .outside = p, .n = n};
    all[0] = hlo_make_scalar_s64(p, SD_S32, 0);
    memcpy(all + 1, init, sizeof *init * (size_t)n);
    l->init = hlo_make_tuple(p, n + 1, all);
    state = hlo_make_param(body, l->init->shape, "state");
    l->i = hlo_make_gte(l->at, state, 0);
    l->x = sd_arena_array(p.c->module->arena, hlo_inst *, n);
    for (int k = 0; k < n; k++)
        l->x[k] = hlo_make_gte(l->at, state, k + 1);
}

static hlo_comp *condition(const matrix_loop *l, int64_t trips)
{
    hlo_comp *c = hlo_comp_create(l->at.c->module, "turns_left");
    hlo_at p = {c, NULL, l->at.like};
    hlo_inst *i = hlo_make_param(c, l->init->shape, "state");

    i = hlo_make_gte(p, i, 0);
    hlo_set_root(c, t_is(p, HLO_LT, i, hlo_make_scalar_s64(p, SD_S32, trips)));
    return c;
}

void matrix_loop_close(matrix_loop *l, int64_t trips)
{
    hlo_inst **all =
        sd_arena_array(l->at.c->module->arena, hlo_inst *, l->n + 1);
    hlo_inst *loop;
    hlo_comp *comps[] = {condition(l, trips), l->at.c};

    all[0] = hlo_make_binary(l->at, HLO_ADD, l->i,
                             hlo_make_scalar_s64(l->at, SD_S32, 1));
    memcpy(all + 1, l->x, sizeof *all * (size_t)l->n);
    hlo_set_root(l->at.c, hlo_make_tuple(l->at, l->n + 1, all));
    loop = hlo_inst_create(l->outside.c, l->outside.before, HLO_WHILE,
                           l->init->shape, 1, &l->init);
    loop->op_name = l->at.like ? l->at.like->op_name : NULL;
    hlo_set_comps(loop, 2, comps);
    for (int k = 0; k < l->n; k++)
        l->x[k] = hlo_make_gte(l->outside, loop, k + 1);
}
