/* The custom-calls Qr and ProductOfElementaryHouseholderReflectors into loops
 * and products.  A reflector is 1 - tau v v^H, v packed below the diagonal
 * and 1 on it, as LAPACK packs them.  A panel of PANEL columns is reduced by a
 * call (hlo_linalg.def), or one column a turn where it has many rows; what
 * stands right of it, and the product, by all reflectors of the panel at once:
 *
 *   1 - V T V^H     T = D (1 + S D)^-1     D = diag(tau), S = V^H V above the
 *                                          diagonal
 *
 * which holds for tau = 0 too.  Joffrain et al., "Accumulating Householder
 * transformations, revisited", 2006. */
#include "hlo_linalg.h"
#include "matrix.h"
#include "terms.h"

#include <math.h>

enum { PANEL = 32, MOST_CALL_ROWS = 1024 };

/* x * v with v spread over x */
static hlo_inst *scaled(hlo_at p, hlo_inst *x, hlo_inst *v)
{
    return t_mul(p, x, matrix_spread(p, v, x->shape));
}

static hlo_inst *zeros_like(hlo_at p, const hlo_inst *x)
{
    return t_fill(p, x, 0);
}

/* The rows of each matrix under op, [n, 1, cols], where ndim is 1; where it is
 * 2 all its elements, [n, 1, 1]. */
static hlo_inst *reduced(hlo_at p, hlo_inst *x, hlo_op op, int ndim)
{
    static const int64_t dims[] = {1, 2};
    const sd_shape *s = x->shape;
    int64_t dim[] = {s->dim[0], 1, ndim == 1 ? s->dim[2] : 1};

    x = hlo_make_reduce(p, x, hlo_make_scalar(p, s->dtype, 0), dims, ndim,
                        hlo_scalar_comp(p.c->module, op, s->dtype));
    return hlo_make_reshape(p, x, 3, dim);
}

/* Columns as rows: [n, k, 1] of [n, 1, k]. */
static hlo_inst *upright(hlo_at p, hlo_inst *x)
{
    int64_t dim[] = {x->shape->dim[0], x->shape->dim[2], 1};

    return pass_reshape(p, x, 3, dim);
}

/* ---- one column ---- */

typedef struct {
    hlo_inst *tau, *beta;   /* [n, 1, 1] */
    hlo_inst *over; /* v is the column over this, below the diagonal */
} reflector;

/* LAPACK's larfg: alpha stands on the diagonal, square is the squares' sum of
 * what is below.  Nothing to do where that is zero and alpha real. */
static void make_reflector(hlo_at p, hlo_inst *alpha, hlo_inst *square,
                           reflector *r)
{
    sd_dtype t = pass_dtype(alpha);
    bool is_complex = sd_is_complex(t);
    hlo_inst *re = alpha, *all = square, *none, *beta, *zero, *one;

    zero = zeros_like(p, square);
    none = t_is(p, HLO_EQ, square, zero);
    if (is_complex) {
        hlo_inst *im = t_unary(p, HLO_IMAG, alpha);

        re = t_unary(p, HLO_REAL, alpha);
        all = t_add(p, all, t_mul(p, im, im));
        none = t_and(p, none, t_is(p, HLO_EQ, im, zero));
    }
    all = t_add(p, all, t_mul(p, re, re));
    beta = t_unary(p, HLO_SQRT, all);
    beta = t_pick(p, t_is(p, HLO_LT, re, zero), beta, t_neg(p, beta));
    if (is_complex)
        beta = t_binary(p, HLO_COMPLEX, beta, zero);
    one = t_fill(p, alpha, 1);
    zero = zeros_like(p, alpha);
    r->tau = t_div(p, t_sub(p, beta, alpha), beta);
    r->tau = t_pick(p, none, zero, r->tau);
    r->over = t_pick(p, none, one, t_sub(p, alpha, beta));
    r->beta = t_pick(p, none, alpha, beta);
}

/* Column t of the panel a, whose diagonal stands in row t.  One sum over rows
 * gives all: s = x^H a with x the column below the diagonal has x's norm in
 * place t, and v^H a = a[t] + s / conj(over). */
static hlo_inst *reflect_column(hlo_at p, hlo_inst *a, hlo_inst *t,
                                hlo_inst **tau)
{
    const sd_shape *s = a->shape;
    int64_t rows = s->dim[1], cols = s->dim[2];
    hlo_inst *x = matrix_part(p, a, NULL, t, rows, 1), *v, *w, *y;
    hlo_inst *diagonal = matrix_part(p, a, t, NULL, 1, cols), *square;
    hlo_inst *below = matrix_where(p, x->shape, 1, HLO_GT, t);
    reflector r;

    x = t_pick(p, below, x, zeros_like(p, x));
    w = scaled(p, a, matrix_conj(p, x));
    w = reduced(p, w, HLO_ADD, 1);
    square = matrix_part(p, w, NULL, t, 1, 1);
    if (sd_is_complex(s->dtype))
        square = t_unary(p, HLO_REAL, square);
    make_reflector(p, matrix_part(p, a, t, t, 1, 1), square, &r);
    *tau = r.tau;
    w = t_div(p, w, matrix_spread(p, matrix_conj(p, r.over), w->shape));
    w = scaled(p, t_add(p, diagonal, w), matrix_conj(p, r.tau));
    /* columns up to t stay as they are */
    w = t_pick(p, matrix_where(p, w->shape, 2, HLO_GT, t), w, zeros_like(p, w));
    v = t_div(p, x, matrix_spread(p, r.over, x->shape));
    y = t_pick(p, matrix_where(p, x->shape, 1, HLO_EQ, t), t_fill(p, x, 1), v);
    y = t_mul(p, matrix_spread(p, y, s), matrix_spread(p, w, s));
    y = t_sub(p, a, y);
    /* beta on the diagonal, v below */
    x = matrix_part(p, a, NULL, t, rows, 1);
    v = t_pick(p, below, v, x);
    v = t_pick(p, matrix_where(p, x->shape, 1, HLO_EQ, t),
               matrix_spread(p, r.beta, x->shape), v);
    return t_pick(p, matrix_where(p, s, 2, HLO_EQ, t), matrix_spread(p, v, s),
                  y);
}

/* ---- panels ---- */

/* The vectors of packed columns. */
static hlo_inst *vectors(hlo_at p, hlo_inst *packed)
{
    const sd_shape *s = packed->shape;
    hlo_inst *v;

    v = t_pick(p, matrix_where_column(p, s, HLO_EQ), t_fill(p, packed, 1),
               zeros_like(p, packed));
    return t_pick(p, matrix_where_column(p, s, HLO_GT), packed, v);
}

/* Reduces the columns of a panel, one a turn; *tau, [n, 1, columns], their
 * factors. */
static hlo_inst *reduce_columns(hlo_at p, hlo_inst *a, hlo_inst **tau)
{
    int64_t cols = a->shape->dim[2];
    hlo_inst *init[] = {a, matrix_zero_rows(p, a, cols)}, *one;
    matrix_loop l;

    matrix_loop_open(&l, p, "reflect_column", 2, init);
    l.x[0] = reflect_column(l.at, l.x[0], l.i, &one);
    l.x[1] = matrix_put(l.at, l.x[1], one, NULL, l.i);
    matrix_loop_close(&l, cols);
    *tau = l.x[1];
    return l.x[0];
}

/* The same by a call, where that is quicker: it is one group's work. */
static hlo_inst *reduce_panel(hlo_at p, hlo_inst *a, hlo_inst **tau)
{
    const sd_shape *s = a->shape;
    int64_t dim[] = {s->dim[0], 1, SD_MIN(s->dim[1], s->dim[2])};
    hlo_inst *call;

    if (s->dim[1] > MOST_CALL_ROWS)
        return reduce_columns(p, a, tau);
    call = hlo_make_linalg(p, HLO_LA_QR, NULL, 1, &a);
    *tau = pass_reshape(p, pass_result(p, call, 1), 3, dim);
    return pass_result(p, call, 0);
}

/* V^H V.  A product of reflectors is as orthogonal as this is right, many times
 * over where they are nearly parallel, as those of a matrix of equal numbers
 * are.  Reflectors' vectors are no longer than the root of 2: leading bits so
 * few that no sum of their products rounds, and what is left, make a sum in
 * which only the small terms round. */
static hlo_inst *gram(hlo_at p, hlo_inst *v)
{
    sd_dtype part = sd_dtype_part(pass_dtype(v));
    const sd_shape *of = sd_shape_with(p.c->module->arena, v->shape, part);
    hlo_inst *unit = hlo_make_fill(p, of, 1.5 * exp2(part == SD_F64 ? 27 : 12));
    hlo_inst *high, *low, *rest;

    if (sd_is_complex(pass_dtype(v)))
        unit = t_binary(p, HLO_COMPLEX, unit, unit);
    high = t_sub(p, t_add(p, v, unit), unit);
    low = t_sub(p, v, high);
    rest = t_add(p, matrix_product(p, matrix_adjoint(p, high), low),
                 matrix_product(p, matrix_adjoint(p, low), v));
    high = matrix_product(p, matrix_adjoint(p, high), high);
    return t_add(p, high, rest);
}

/* (1 - V T V^H)^H a */
static hlo_inst *apply_panel(hlo_at p, hlo_inst *v, hlo_inst *tau, hlo_inst *a)
{
    hlo_inst *d = upright(p, matrix_conj(p, tau)), *y;

    /* T^H = (1 + (S D)^H)^-1 D^H; the solver reads below the diagonal only */
    y = scaled(p, matrix_inner(p, v, a), d);
    y = matrix_solve_lower(p, scaled(p, gram(p, v), d), y, true);
    return t_sub(p, a, matrix_product(p, v, y));
}

/* The rows of a panel, of which those above the diagonal's first are not there
 * and as many zeros are below. */
static hlo_inst *reduce_rows(hlo_at p, hlo_inst *a, hlo_inst *from,
                             int64_t size, hlo_inst **tau)
{
    hlo_inst *panel = matrix_part(p, a, NULL, from, a->shape->dim[1], size), *y;
    hlo_inst *end = t_add(p, from, hlo_make_scalar_s64(p, SD_S32, size));

    panel = reduce_panel(p, panel, tau);
    y = apply_panel(p, vectors(p, panel), *tau, a);
    y = t_pick(p, matrix_where(p, a->shape, 2, HLO_GE, end), y, a);
    return matrix_put(p, y, panel, NULL, from);
}

/* All columns, a whole number of panels of `size`; *tau as above. */
static hlo_inst *reduce_all(hlo_at p, hlo_inst *a, int64_t panels, int64_t size,
                            hlo_inst **tau)
{
    int64_t rows = a->shape->dim[1], cols = a->shape->dim[2];
    hlo_inst *init[] = {matrix_pad(p, a, rows + (panels - 1) * size, cols),
                        matrix_zero_rows(p, a, panels * size)};
    hlo_inst *from, *part, *x;
    matrix_loop l;

    if (cols == size)
        return reduce_panel(p, a, tau);
    matrix_loop_open(&l, p, "reduce_panel", 2, init);
    from = hlo_make_binary(l.at, HLO_MULTIPLY, l.i,
                           hlo_make_scalar_s64(l.at, SD_S32, size));
    x = matrix_part(l.at, l.x[0], from, NULL, rows, cols);
    x = reduce_rows(l.at, x, from, size, &part);
    l.x[0] = matrix_put(l.at, l.x[0], x, from, NULL);
    l.x[1] = matrix_put(l.at, l.x[1], part, NULL, from);
    matrix_loop_close(&l, panels);
    *tau = l.x[1];
    return matrix_cut(p, l.x[0], rows, cols);
}

/* ---- the calls ---- */

/* A power of two for each matrix that brings its largest element to where its
 * square is neither infinite nor zero; 1 where it is there already. */
static hlo_inst *safe_scale(hlo_at p, hlo_inst *a)
{
    bool wide = sd_dtype_part(pass_dtype(a)) == SD_F64;
    double by = exp2(wide ? 600 : 80), edge = exp2(wide ? 480 : 48);
    const sd_shape *s;
    hlo_inst *most, *y;

    if (sd_is_complex(pass_dtype(a))) {
        most = t_abs(p, t_unary(p, HLO_REAL, a));
        y = t_abs(p, t_unary(p, HLO_IMAG, a));
        most = t_binary(p, HLO_MAXIMUM, most, y);
    } else {
        most = t_abs(p, a);
    }
    most = reduced(p, most, HLO_MAXIMUM, 2);
    s = most->shape;
    y = t_pick(p, t_is(p, HLO_LT, most, hlo_make_fill(p, s, 1 / edge)),
               hlo_make_fill(p, s, by), hlo_make_fill(p, s, 1));
    y = t_pick(p, t_is(p, HLO_GT, most, hlo_make_fill(p, s, edge)),
               hlo_make_fill(p, s, 1 / by), y);
    return y;
}

/* x * v, v real, [n, 1, 1] */
static hlo_inst *scaled_by_real(hlo_at p, hlo_inst *x, hlo_inst *v)
{
    if (sd_is_complex(pass_dtype(x)))
        v = t_binary(p, HLO_COMPLEX, v, zeros_like(p, v));
    return scaled(p, x, v);
}

static bool is_stack(const sd_shape *s)
{
    return sd_shape_is_array(s) && s->rank >= 2 &&
           (sd_is_float(s->dtype) || sd_is_complex(s->dtype));
}

/* Is s one vector of n for each matrix of a stack? */
static bool is_factors(const sd_shape *s, const sd_shape *stack, int64_t n)
{
    bool fits = sd_shape_is_array(s) && s->dtype == stack->dtype &&
                s->rank == stack->rank - 1 && s->dim[s->rank - 1] == n;

    for (int i = 0; fits && i < s->rank - 1; i++)
        fits = s->dim[i] == stack->dim[i];
    return fits;
}

/* Matrices -> (R above, vectors below; their factors) */
static hlo_inst *lower_qr(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    const sd_shape *s = in->narg == 1 ? in->arg[0]->shape : NULL, *to;
    hlo_inst *a, *scale, *tau, *x, *out[2];
    int64_t m, n, nv, size, panels;

    if (!s || !is_stack(s) || in->shape->dtype != SD_TUPLE ||
        in->shape->nelem != 2 || !sd_shape_equal(s, in->shape->elem[0]))
        return NULL;
    m = s->dim[s->rank - 2];
    n = s->dim[s->rank - 1];
    nv = SD_MIN(m, n);
    to = in->shape->elem[1];
    if (!is_factors(to, s, nv))
        return NULL;
    if (sd_shape_count(s) == 0) {
        out[0] = in->arg[0];
        out[1] = hlo_make_fill(p, to, 0);
        return hlo_make_tuple(p, 2, out);
    }
    a = matrix_stack(p, pass_widened(p, in->arg[0]));
    scale = safe_scale(p, a);
    size = SD_MIN(nv, PANEL);
    panels = (nv + size - 1) / size;
    x = matrix_pad(p, scaled_by_real(p, a, scale), SD_MAX(m, panels * size),
                   SD_MAX(n, panels * size));
    x = matrix_cut(p, reduce_all(p, x, panels, size, &tau), m, n);
    scale = t_div(p, t_fill(p, scale, 1), scale);
    x = t_pick(p, matrix_where_column(p, x->shape, HLO_LE),
               scaled_by_real(p, x, scale), x);
    out[0] = matrix_result(p, x, s);
    out[1] = matrix_result(p, matrix_cut(p, tau, 1, nv), to);
    return hlo_make_tuple(p, 2, out);
}

/* T x, for the vectors v: the solver takes what is lower, so all is turned. */
static hlo_inst *apply_t(hlo_at p, hlo_inst *v, hlo_inst *tau, hlo_inst *x)
{
    static const int64_t dims[] = {1, 2};
    hlo_inst *sd = scaled(p, gram(p, v), tau);

    sd = hlo_make_reverse(p, sd, dims, 2);
    x = hlo_make_reverse(p, x, dims, 1);
    x = hlo_make_reverse(p, matrix_solve_lower(p, sd, x, true), dims, 1);
    return scaled(p, x, upright(p, tau));
}

/* Packed matrices and factors -> the product's first columns */
static hlo_inst *lower_product(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    const sd_shape *s = in->narg == 2 ? in->arg[0]->shape : NULL;
    hlo_inst *v, *tau, *x, *one;
    int64_t m, n, k, dim[3];

    if (!s || !is_stack(s) || !sd_shape_equal(s, in->shape) ||
        in->arg[1]->shape->rank != s->rank - 1)
        return NULL;
    m = s->dim[s->rank - 2];
    n = s->dim[s->rank - 1];
    k = in->arg[1]->shape->dim[s->rank - 2];
    if (k > SD_MIN(m, n) || !is_factors(in->arg[1]->shape, s, k))
        return NULL;
    if (sd_shape_count(s) == 0)
        return in->arg[0];
    x = matrix_stack(p, pass_widened(p, in->arg[0]));
    one = t_convert(p, pass_dtype(x), matrix_where_column(p, x->shape, HLO_EQ));
    if (k == 0)
        return matrix_result(p, one, s);
    v = vectors(p, matrix_cut(p, x, m, k));
    dim[0] = x->shape->dim[0];
    dim[1] = 1;
    dim[2] = k;
    tau = pass_reshape(p, pass_widened(p, in->arg[1]), 3, dim);
    /* 1 - V T (V^H 1) */
    x = matrix_adjoint(p, matrix_cut(p, v, SD_MIN(m, n), k));
    x = apply_t(p, v, tau, matrix_pad(p, x, k, n));
    x = t_sub(p, one, matrix_product(p, v, x));
    return matrix_result(p, x, s);
}

hlo_inst *hlo_lower_qr(hlo_inst *in)
{
    const char *target = in->u.custom->target;

    if (strcmp(target, "Qr") == 0)
        return lower_qr(in);
    if (strcmp(target, "ProductOfElementaryHouseholderReflectors") == 0)
        return lower_product(in);
    return NULL;
}
