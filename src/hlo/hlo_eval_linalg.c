/* Evaluating the operations and calls of linear algebra, matrix by matrix. */
#include "hlo_eval_la.h"

#include <math.h>

/* ---- factorizations ---- */

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
        if (!hlo_la_cholesky(a, n))
            for (int64_t k = 0; k < n * n; k++)
                a[k] = NAN;
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

/* ---- calls ---- */

static void (*const call_table[HLO_LA_COUNT])(hlo_la *) = {
    [HLO_LA_EIGH] = hlo_la_eigh,
    [HLO_LA_SVD] = hlo_la_svd,
    [HLO_LA_EIG] = hlo_la_eig,
    [HLO_LA_SCHUR] = hlo_la_schur,
    [HLO_LA_HESSENBERG] = hlo_la_hessenberg,
    [HLO_LA_TRIDIAGONAL] = hlo_la_tridiagonal,
    [HLO_LA_TRIDIAGONAL_SOLVE] = hlo_la_tridiagonal_solve,
    [HLO_LA_GEQP3] = hlo_la_geqp3,
    [HLO_LA_LU] = hlo_la_lu,
    [HLO_LA_QR] = hlo_la_qr,
    [HLO_LA_HOUSEHOLDER_PRODUCT] = hlo_la_householder,
    [HLO_LA_ORMQR] = hlo_la_ormqr,
    [HLO_LA_CHOLESKY] = hlo_la_call_cholesky,
    [HLO_LA_TRIANGULAR_SOLVE] = hlo_la_triangular_solve,
    [HLO_LA_SPSOLVE] = hlo_la_spsolve,
};

static bool is_index(sd_dtype t)
{
    return t == SD_S32;
}

/* Elements of one matrix; false: one is a NaN or an infinity. */
static bool load_matrix(const hlo_value *v, int64_t at, int64_t n, hlo_wide *to)
{
    sd_dtype t = v->shape->dtype;
    bool finite = true;

    for (int64_t i = 0; i < n; i++) {
        const void *p = hlo_at_elem(v, at * n + i);

        to[i] =
            is_index(t) ? (hlo_wide)hlo_index_load(t, p) : hlo_wide_load(t, p);
        finite &= isfinite(creall(to[i])) && isfinite(cimagl(to[i]));
    }
    return finite;
}

static void store_matrix(const hlo_wide *from, int64_t n, bool failed,
                         hlo_value *v, int64_t at)
{
    sd_dtype t = v->shape->dtype;

    for (int64_t i = 0; i < n; i++) {
        void *p = hlo_at_elem(v, at * n + i);
        int32_t number;

        if (is_index(t)) {
            number = (int32_t)creall(from[i]);
            memcpy(p, &number, sizeof number);
        } else {
            hlo_wide_store(t, failed ? CMPLXL(NAN, NAN) : from[i], p);
        }
    }
}

/* One after the other: a matrix's numbers go when it is done. */
static void eval_matrix(const hlo_linalg *c, int64_t at, const hlo_value *arg,
                        int narg, hlo_value *out)
{
    sd_arena *a = sd_arena_create();
    int nout = sd_shape_nresult(out->shape);
    hlo_la l = {.c = c, .a = a};
    int64_t n;
    bool finite = true;

    for (int i = 0; i < narg; i++) {
        n = sd_shape_count(arg[i].shape) / c->batch;
        l.in[i] = sd_arena_array(a, hlo_wide, n + 1);
        finite &= load_matrix(&arg[i], at, n, l.in[i]);
    }
    for (int i = 0; i < nout; i++) {
        n = sd_shape_count(hlo_result_at(out, i)->shape) / c->batch;
        l.out[i] = sd_arena_array(a, hlo_wide, n + 1);
    }
    if (finite || !hlo_linalg_table[c->id].strict)
        call_table[c->id](&l);
    else
        l.failed = true;
    for (int i = 0; i < nout; i++) {
        n = sd_shape_count(hlo_result_at(out, i)->shape) / c->batch;
        store_matrix(l.out[i], n, l.failed, hlo_result_at(out, i), at);
    }
    sd_arena_destroy(a);
}

static sd_status eval_read(const hlo_linalg *c, int narg, const hlo_value *arg,
                           hlo_value *out)
{
    for (int64_t i = 0; i < c->batch; i++)
        eval_matrix(c, i, arg, narg, out);
    return NULL;
}

sd_status hlo_eval_linalg_call(hlo_ev *e, const hlo_inst *in,
                               const hlo_value *arg, hlo_value *out)
{
    hlo_linalg c;

    (void)e;
    return hlo_linalg_read(in, &c) ? eval_read(&c, in->narg, arg, out)
                                   : hlo_misfit(in);
}

/* ---- XLA's own names ---- */

static void extents(hlo_linalg *c, const sd_shape *s)
{
    c->type = s->dtype;
    c->m = s->dim[s->rank - 2];
    c->n = s->dim[s->rank - 1];
    c->batch = 1;
    for (int i = 0; i < s->rank - 2; i++)
        c->batch *= s->dim[i];
}

/* custom-call "Qr": matrices to (R above, the vectors below; their factors) */
sd_status hlo_eval_qr(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                      hlo_value *out)
{
    const sd_shape *s = in->narg == 1 ? arg[0].shape : NULL;
    hlo_linalg c = {.id = HLO_LA_QR};

    (void)e;
    if (!s || s->rank < 2 || out->shape->dtype != SD_TUPLE ||
        out->shape->nelem != 2 || !sd_shape_equal(s, out->elem[0].shape) ||
        out->elem[1].shape->dtype != s->dtype ||
        sd_shape_count(out->elem[1].shape) *
                SD_MAX(s->dim[s->rank - 2], s->dim[s->rank - 1]) !=
            sd_shape_count(s))
        return hlo_misfit(in);
    extents(&c, s);
    return eval_read(&c, 1, arg, out);
}

/* custom-call "ProductOfElementaryHouseholderReflectors": the first columns of
 * the product of (1 - tau v v^H), as many as the packed matrix has. */
sd_status hlo_eval_householder(hlo_ev *e, const hlo_inst *in,
                               const hlo_value *arg, hlo_value *out)
{
    const sd_shape *s = in->narg == 2 ? arg[0].shape : NULL;
    hlo_linalg c = {.id = HLO_LA_HOUSEHOLDER_PRODUCT};

    (void)e;
    if (!s || s->rank < 2 || arg[1].shape->rank != s->rank - 1 ||
        !sd_shape_equal(s, out->shape) || s->dtype != arg[1].shape->dtype)
        return hlo_misfit(in);
    extents(&c, s);
    c.t = arg[1].shape->dim[s->rank - 2];
    if (c.t > SD_MIN(c.m, c.n) || sd_shape_count(arg[1].shape) != c.batch * c.t)
        return hlo_misfit(in);
    return eval_read(&c, 2, arg, out);
}
