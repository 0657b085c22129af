/* Evaluating factorizations and triangular solves: the textbook's loops, in
 * long double.  Householder's vectors are packed as LAPACK packs them. */
#include "hlo_eval.h"

#include <math.h>

/* ---- factorizations ---- */

/* The lower triangle; the other one is zero.  Not positive: all NaN. */
static void cholesky(hlo_wide *a, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        long double d = creall(a[j * n + j]);

        for (int64_t k = 0; k < j; k++)
            d -= creall(a[j * n + k] * conjl(a[j * n + k]));
        if (!(d > 0)) {
            for (int64_t k = 0; k < n * n; k++)
                a[k] = NAN;
            return;
        }
        d = sqrtl(d);
        a[j * n + j] = d;
        for (int64_t i = j + 1; i < n; i++) {
            hlo_wide v = a[i * n + j];

            for (int64_t k = 0; k < j; k++)
                v -= a[i * n + k] * conjl(a[j * n + k]);
            a[i * n + j] = v / d;
        }
        for (int64_t i = 0; i < j; i++)
            a[i * n + j] = 0;
    }
}

static void eval_cholesky(hlo_ev *e, const hlo_inst *in, const hlo_value *x,
                          hlo_value *out)
{
    const sd_shape *s = x->shape;
    int64_t n = s->dim[s->rank - 1], count = sd_shape_count(s);
    hlo_wide *a = sd_arena_array(e->arena, hlo_wide, n * n + 1);
    bool lower = in->u.linalg.lower;

    for (int64_t at = 0; at < count; at += n * n) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                /* an upper factor is the lower one of the conjugate */
                int64_t k = lower ? i * n + j : j * n + i;
                hlo_wide v = hlo_wide_load(s->dtype, hlo_at_elem(x, at + k));

                a[i * n + j] = lower ? v : conjl(v);
            }
        cholesky(a, n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                hlo_wide v = lower ? a[i * n + j] : conjl(a[j * n + i]);

                hlo_wide_store(s->dtype, v, hlo_at_elem(out, at + i * n + j));
            }
    }
}

typedef struct { /* op(a) of one triangular matrix */
    const hlo_inst *in;
    const hlo_value *a;
    int64_t at, n;
} triangle;

static bool is_lower(const triangle *t)
{
    /* transposed, the lower triangle is the upper one */
    return t->in->u.linalg.lower ==
           (t->in->u.linalg.trans == HLO_TRANSPOSE_NONE);
}

static hlo_wide triangle_at(const triangle *t, int64_t i, int64_t j)
{
    hlo_transpose_kind k = t->in->u.linalg.trans;
    int64_t p = k == HLO_TRANSPOSE_NONE ? i * t->n + j : j * t->n + i;
    hlo_wide v;

    if (i == j && t->in->u.linalg.unit)
        return 1;
    v = hlo_wide_load(t->a->shape->dtype, hlo_at_elem(t->a, t->at + p));
    return k == HLO_TRANSPOSE_ADJOINT ? conjl(v) : v;
}

/* Solves for one vector x, in place: op(a) x = b, or x op(a) = b, which is
 * the same with rows for columns. */
static void solve_one(const triangle *t, bool left, hlo_wide *x)
{
    bool down = is_lower(t) == left;

    for (int64_t k = 0; k < t->n; k++) {
        int64_t i = down ? k : t->n - 1 - k;

        for (int64_t q = 0; q < k; q++) {
            int64_t j = down ? q : t->n - 1 - q;

            x[i] -= (left ? triangle_at(t, i, j) : triangle_at(t, j, i)) * x[j];
        }
        x[i] /= triangle_at(t, i, i);
    }
}

static void eval_solve(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                       hlo_value *out)
{
    const sd_shape *b = arg[1].shape;
    int64_t rows = b->dim[b->rank - 2], cols = b->dim[b->rank - 1];
    bool left = in->u.linalg.left;
    int64_t n = left ? rows : cols, count = sd_shape_count(b);
    hlo_wide *x = sd_arena_array(e->arena, hlo_wide, n + 1);
    triangle t = {in, &arg[0], 0, n};

    for (int64_t at = 0; at < count; at += rows * cols, t.at += n * n)
        for (int64_t v = 0; v < (left ? cols : rows); v++) {
            for (int64_t i = 0; i < n; i++)
                x[i] = hlo_wide_load(
                    b->dtype, hlo_at_elem(&arg[1], at + (left ? i * cols + v
                                                              : v * cols + i)));
            solve_one(&t, left, x);
            for (int64_t i = 0; i < n; i++)
                hlo_wide_store(b->dtype, x[i],
                               hlo_at_elem(out, at + (left ? i * cols + v
                                                           : v * cols + i)));
        }
}

sd_status hlo_eval_linalg(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                          hlo_value *out)
{
    if (sd_shape_count(out->shape) == 0)
        return NULL;
    if (in->op == HLO_CHOLESKY)
        eval_cholesky(e, in, arg, out);
    else
        eval_solve(e, in, arg, out);
    return NULL;
}

/* ---- orthogonal factorizations ---- */

typedef struct {
    int64_t rows, cols, nv; /* nv: vectors, one a column from the left */
    hlo_wide *a, *tau; /* of one matrix */
} packed;

static packed packed_of(hlo_ev *e, const sd_shape *a, int64_t nv)
{
    packed p = {a->dim[a->rank - 2], a->dim[a->rank - 1], nv, NULL, NULL};

    p.a = sd_arena_array(e->arena, hlo_wide, p.rows * p.cols + 1);
    p.tau = sd_arena_array(e->arena, hlo_wide, nv + 1);
    return p;
}

/* The reflector that makes column j real above zeros; LAPACK's signs. */
static void reflect_column(packed *p, int64_t j)
{
    hlo_wide *x = p->a + j * p->cols + j, alpha = *x;
    long double below = 0, beta;

    for (int64_t i = j + 1; i < p->rows; i++) {
        hlo_wide v = p->a[i * p->cols + j];

        below += creall(v) * creall(v) + cimagl(v) * cimagl(v);
    }
    p->tau[j] = 0;
    if (below == 0 && cimagl(alpha) == 0)
        return;
    beta = -copysignl(hypotl(cabsl(alpha), sqrtl(below)), creall(alpha));
    p->tau[j] = (beta - alpha) / beta;
    for (int64_t i = j + 1; i < p->rows; i++)
        p->a[i * p->cols + j] /= alpha - beta;
    *x = beta;
}

/* Column k of `to` becomes (1 - tau v v^H) of itself, v being the packed
 * vector j. */
static void apply_reflector(const packed *p, int64_t j, hlo_wide tau,
                            hlo_wide *to, int64_t cols, int64_t k)
{
    hlo_wide dot = to[j * cols + k];

    for (int64_t i = j + 1; i < p->rows; i++)
        dot += conjl(p->a[i * p->cols + j]) * to[i * cols + k];
    dot *= tau;
    to[j * cols + k] -= dot;
    for (int64_t i = j + 1; i < p->rows; i++)
        to[i * cols + k] -= p->a[i * p->cols + j] * dot;
}

static void load_all(const hlo_value *v, int64_t at, hlo_wide *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = hlo_wide_load(v->shape->dtype, hlo_at_elem(v, at + i));
}

static void store_all(const hlo_wide *from, hlo_value *v, int64_t at, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        hlo_wide_store(v->shape->dtype, from[i], hlo_at_elem(v, at + i));
}

/* custom-call "Qr": matrices to (R above, the vectors below; their factors) */
sd_status hlo_eval_qr(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                      hlo_value *out)
{
    const sd_shape *s = in->narg == 1 ? arg[0].shape : NULL;
    packed p;

    if (!s || s->rank < 2 || out->shape->dtype != SD_TUPLE ||
        out->shape->nelem != 2 || !sd_shape_equal(s, out->elem[0].shape) ||
        out->elem[1].shape->dtype != s->dtype ||
        sd_shape_count(out->elem[1].shape) *
                SD_MAX(s->dim[s->rank - 2], s->dim[s->rank - 1]) !=
            sd_shape_count(s))
        return hlo_misfit(in);
    p = packed_of(e, s, SD_MIN(s->dim[s->rank - 2], s->dim[s->rank - 1]));
    int64_t size = p.rows * p.cols, n = size ? sd_shape_count(s) / size : 0;

    for (int64_t m = 0; m < n; m++) {
        load_all(&arg[0], m * size, p.a, size);
        for (int64_t j = 0; j < p.nv; j++) {
            reflect_column(&p, j);
            for (int64_t k = j + 1; k < p.cols; k++)
                apply_reflector(&p, j, conjl(p.tau[j]), p.a, p.cols, k);
        }
        store_all(p.a, &out->elem[0], m * size, size);
        store_all(p.tau, &out->elem[1], m * p.nv, p.nv);
    }
    return NULL;
}

/* custom-call "ProductOfElementaryHouseholderReflectors": the first columns of
 * the product of (1 - tau v v^H), as many as the packed matrix has. */
sd_status hlo_eval_householder(hlo_ev *e, const hlo_inst *in,
                               const hlo_value *arg, hlo_value *out)
{
    const sd_shape *s = in->narg == 2 ? arg[0].shape : NULL;
    packed p;

    if (!s || s->rank < 2 || arg[1].shape->rank != s->rank - 1 ||
        !sd_shape_equal(s, out->shape) || s->dtype != arg[1].shape->dtype)
        return hlo_misfit(in);
    p = packed_of(e, s, arg[1].shape->dim[s->rank - 2]);
    int64_t size = p.rows * p.cols, n = size ? sd_shape_count(s) / size : 0;
    hlo_wide *q = sd_arena_array(e->arena, hlo_wide, size + 1);

    if (p.nv > SD_MIN(p.rows, p.cols) ||
        sd_shape_count(arg[1].shape) != n * p.nv)
        return hlo_misfit(in);
    for (int64_t m = 0; m < n; m++) {
        load_all(&arg[0], m * size, p.a, size);
        load_all(&arg[1], m * p.nv, p.tau, p.nv);
        for (int64_t i = 0; i < size; i++)
            q[i] = i / p.cols == i % p.cols;
        for (int64_t j = p.nv - 1; j >= 0; j--)
            for (int64_t k = 0; k < p.cols; k++)
                apply_reflector(&p, j, p.tau[j], q, p.cols, k);
        store_all(q, out, m * size, size);
    }
    return NULL;
}
