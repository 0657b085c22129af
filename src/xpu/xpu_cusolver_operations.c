/* The operations that cuSOLVER does, each on one matrix; p: its slices,
 * operands first.  What has no result is NaN, as LAPACK's is on the host. */
#include "xpu_cusolver.h"

#include <math.h>

enum { LOWER, UPPER, NO_VECTORS = 0, VECTORS }; /* as the library counts them */

static size_t bytes_of(const cusolver_job *j, int64_t rows, int64_t cols)
{
    return (size_t)rows * (size_t)cols * j->size;
}

/* How many real numbers they are. */
static int64_t reals(const cusolver_job *j, int64_t n)
{
    return n * (int64_t)(j->size / (j->wide ? 8 : 4));
}

/* A lower factor of what is below the diagonal by columns takes half the time
 * of an upper one, or less.  An upper one by rows is that as it lies; a lower
 * one by rows is turned before and after. */
static sd_status potrf(const cusolver_job *j, int64_t n, void *a)
{
    cusolver_work w;

    return CUSOLVER_WITH_WORK(j, &w, Xpotrf, LOWER, n, j->code, a, n, j->code);
}

static sd_status factor(const cusolver_job *j, const libcall_cholesky *c,
                        char *const *p)
{
    size_t bytes = bytes_of(j, c->n, c->n);
    void *a = p[1];
    sd_status st;

    if (!c->lower) {
        st = cusolver_copy(j, a, p[0], bytes);
        return st ? st : potrf(j, c->n, a);
    }
    if ((st = cusolver_area(j, CUSOLVER_A, bytes, &a)) ||
        (st = cusolver_turn(j, a, p[0], c->n, c->n, false)) ||
        (st = potrf(j, c->n, a)))
        return st;
    return cusolver_turn(j, p[1], a, c->n, c->n, false);
}

/* A matrix with an infinity has a factor with a NaN, which the library does not
 * report. */
sd_status cusolver_cholesky(const cusolver_job *j, const libcall_cholesky *c,
                            char *const *p)
{
    int64_t count = reals(j, c->n * c->n);
    sd_status st;

    if ((st = factor(j, c, p)) ||
        (st = cusolver_halve(j, p[1], c->n, c->lower)) ||
        (st = cusolver_check(j, p[1], count)) ||
        (st = cusolver_spoil(j, p[1], count, true)))
        return st;
    return cusolver_halve(j, p[1], c->n, c->lower);
}

/* A X = B is X^T A^T = B^T: from the other side. */
sd_status cusolver_solve(const cusolver_job *j, const libcall_solve *c,
                         char *const *p)
{
    enum { LEFT, RIGHT };
    int rows = (int)c->q, cols = (int)c->p, n = (int)(c->left ? c->p : c->q);
    sd_status st = cusolver_copy(j, p[2], p[1], bytes_of(j, c->p, c->q));

    if (st)
        return st;
    return cublas_said(j->l->trsm[j->letter](j->r->blas, c->left ? RIGHT : LEFT,
                                             c->lower ? UPPER : LOWER,
                                             (int)c->transpose, c->unit, rows,
                                             cols, j->one, p[0], n, p[2], rows),
                       "cublas*trsm_v2");
}

/* A NaN is not seen by the library's search for pivots. */
sd_status cusolver_lu(const cusolver_job *j, const libcall_lu *c,
                      char *const *p)
{
    int64_t k = SD_MIN(c->m, c->n), count = reals(j, c->m * c->n);
    cusolver_work w;
    void *a, *pivots;
    sd_status st;

    if ((st = cusolver_area(j, CUSOLVER_A, bytes_of(j, c->m, c->n), &a)) ||
        (st = cusolver_area(j, CUSOLVER_B, (size_t)k * 8, &pivots)) ||
        (st = cusolver_check(j, p[0], count)) ||
        (st = cusolver_turn(j, a, p[0], c->m, c->n, false)) ||
        (st = CUSOLVER(j, Xgetrf_bufferSize, j->r->params, c->m, c->n, j->code,
                       a, c->m, j->code, &w.ndevice, &w.nhost)) ||
        (st = cusolver_get_work(j, &w)) ||
        (st = CUSOLVER(j, Xgetrf, j->r->params, c->m, c->n, j->code, a, c->m,
                       pivots, j->code, w.device, w.ndevice, w.host, w.nhost,
                       j->info)) ||
        (st = cusolver_turn(j, p[1], a, c->n, c->m, false)) ||
        (st = cusolver_spoil(j, p[1], count, false)))
        return st;
    return cusolver_exchange(j, pivots, k, c->m, p[2], p[3]);
}

/* a, m x n by columns, becomes reflections and what they leave of it. */
static sd_status geqrf(const cusolver_job *j, int64_t m, int64_t n, void *a,
                       void *tau)
{
    cusolver_work w;

    return CUSOLVER_WITH_WORK(j, &w, Xgeqrf, m, n, j->code, a, m, j->code, tau,
                              j->code);
}

/* And these their product's first n columns.  The library's sizes have 32 bits
 * here: hlo_linalg_has_library keeps to that. */
static sd_status orgqr(const cusolver_job *j, int m, int n, int t, void *a,
                       const void *tau)
{
    cusolver_work w = {0};
    int size = 0;
    sd_status st = cusolver_said(
        j->l->orgqr_size[j->letter](j->r->handle, m, n, t, a, m, tau, &size),
        "cusolverDn*orgqr_bufferSize");

    if (st)
        return st;
    w.ndevice = (size_t)SD_MAX(size, 0) * j->size;
    if ((st = cusolver_get_work(j, &w)))
        return st;
    return cusolver_said(j->l->orgqr[j->letter](j->r->handle, m, n, t, a, m,
                                                tau, w.device, size, j->info),
                         "cusolverDn*orgqr");
}

sd_status cusolver_qr(const cusolver_job *j, const libcall_qr *c,
                      char *const *p)
{
    void *a;
    sd_status st;

    if ((st = cusolver_area(j, CUSOLVER_A, bytes_of(j, c->m, c->n), &a)) ||
        (st = cusolver_turn(j, a, p[0], c->m, c->n, false)) ||
        (st = geqrf(j, c->m, c->n, a, p[2])))
        return st;
    return cusolver_turn(j, p[1], a, c->n, c->m, false);
}

sd_status cusolver_reflections(const cusolver_job *j,
                               const libcall_reflections *c, char *const *p)
{
    void *a;
    sd_status st;

    if ((st = cusolver_area(j, CUSOLVER_A, bytes_of(j, c->m, c->n), &a)) ||
        (st = cusolver_turn(j, a, p[0], c->m, c->n, false)) ||
        (st = orgqr(j, (int)c->m, (int)c->n, (int)c->t, a, p[1])))
        return st;
    return cusolver_turn(j, p[2], a, c->n, c->m, false);
}

/* ---- eigenvalues ---- */

/* Version 12.0.4 gives vectors of equal eigenvalues that are not orthogonal now
 * and then: of 99 rows of ones in f64 two whose product is 0.23.  Each is right
 * by itself, so an orthogonal basis of the same columns, in order, is the
 * answer. */
static sd_status mend_vectors(const cusolver_job *j, int64_t n, void *v)
{
    enum { AS_IT_IS, ADJOINT = 2, ROUNDINGS = 32 };
    double eps = j->wide ? 0x1p-52 : 0x1p-23;
    int size = (int)n;
    bool fine;
    void *g;
    sd_status st;

    if ((st = cusolver_area(j, CUSOLVER_B, bytes_of(j, n, n), &g)) ||
        (st = cublas_said(j->l->gemm[j->letter](
                              j->r->blas, ADJOINT, AS_IT_IS, size, size, size,
                              j->one, v, size, v, size, j->zero, g, size),
                          "cublas*gemm_v2")) ||
        (st = cusolver_compare(j, g, n, ROUNDINGS * eps * sqrt((double)n))) ||
        (st = cusolver_is_fine(j, &fine)) || fine)
        return st;
    st = geqrf(j, n, n, v, g);
    return st ? st : orgqr(j, size, size, size, v, g);
}

static sd_status syevd(const cusolver_job *j, const libcall_eigh *c, void *a,
                       void *w)
{
    int half = c->lower ? UPPER : LOWER;
    cusolver_work work;

    return CUSOLVER_WITH_WORK(j, &work, Xsyevd, VECTORS, half, c->n, j->code, a,
                              c->n, j->part, w, j->code);
}

/* Read by columns the matrix is its conjugate, whose vectors are those of the
 * matrix conjugated. */
sd_status cusolver_eigh(const cusolver_job *j, const libcall_eigh *c,
                        char *const *p)
{
    size_t bytes = bytes_of(j, c->n, c->n);
    bool fine;
    void *a;
    sd_status st;

    if ((st = cusolver_area(j, CUSOLVER_A, bytes, &a)) ||
        (st = cusolver_copy(j, a, p[0], bytes)) ||
        (st = syevd(j, c, a, p[2])) || (st = cusolver_check(j, p[2], c->n)) ||
        (st = cusolver_spoil(j, p[2], c->n, true)) ||
        (st = cusolver_is_fine(j, &fine)) ||
        (fine && (st = mend_vectors(j, c->n, a))) ||
        (st = cusolver_turn(j, p[1], a, c->n, c->n, true)) || fine)
        return st;
    return cusolver_spoil(j, p[1], reals(j, c->n * c->n), true);
}

/* ---- singular values ---- */

typedef struct { /* of B, m x n by columns with m >= n: B = U S V^H */
    int64_t m, n;
    void *a, *u, *vh;
} svd_form;

/* Of a tall matrix B is that, and U and V^H are turned; of a wide one B is the
 * transpose, which it is as it lies, A = conj(V) S U^T, and both lie as they
 * should. */
static sd_status svd_form_of(const cusolver_job *j, const libcall_svd *c,
                             char *const *p, svd_form *f)
{
    bool tall = c->m >= c->n;
    sd_status st;

    f->m = SD_MAX(c->m, c->n);
    f->n = SD_MIN(c->m, c->n);
    if ((st = cusolver_area(j, CUSOLVER_A, bytes_of(j, f->m, f->n), &f->a)))
        return st;
    f->u = f->vh = f->a; /* of no vectors, which are not written then */
    if (c->vectors && !tall) {
        f->u = p[3];
        f->vh = p[2];
    } else if (c->vectors &&
               ((st = cusolver_area(j, CUSOLVER_B,
                                    bytes_of(j, f->m, c->full ? f->m : f->n),
                                    &f->u)) ||
                (st = cusolver_area(j, CUSOLVER_C, bytes_of(j, f->n, f->n),
                                    &f->vh)))) {
        return st;
    }
    return tall ? cusolver_turn(j, f->a, p[0], c->m, c->n, false)
                : cusolver_copy(j, f->a, p[0], bytes_of(j, c->m, c->n));
}

/* By QR steps.  What goes by Jacobi's turns is faster, and loses a decimal of
 * orthogonality at 64 columns and two at 400; what goes by the polar form moves
 * a singular matrix by a tenth, in f32. */
static sd_status gesvd(const cusolver_job *j, const libcall_svd *c,
                       const svd_form *f, void *s)
{
    signed char job = !c->vectors ? 'N' : c->full ? 'A' : 'S';
    cusolver_work w;

    return CUSOLVER_WITH_WORK(j, &w, Xgesvd, job, job, f->m, f->n, j->code,
                              f->a, f->m, j->part, s, j->code, f->u, f->m,
                              j->code, f->vh, f->n, j->code);
}

static sd_status spoil_svd(const cusolver_job *j, const libcall_svd *c,
                           char *const *p)
{
    int64_t k = SD_MIN(c->m, c->n);
    sd_status st = cusolver_spoil(j, p[1], k, true);

    if (st || !c->vectors)
        return st;
    st = cusolver_spoil(j, p[2], reals(j, c->m * (c->full ? c->m : k)), true);
    return st ? st
              : cusolver_spoil(j, p[3], reals(j, c->n * (c->full ? c->n : k)),
                               true);
}

/* A NaN would keep the library busy for seconds. */
sd_status cusolver_svd(const cusolver_job *j, const libcall_svd *c,
                       char *const *p)
{
    svd_form f;
    bool fine;
    sd_status st;

    if ((st = cusolver_check(j, p[0], reals(j, c->m * c->n))) ||
        (st = cusolver_is_fine(j, &fine)))
        return st;
    if (fine &&
        ((st = svd_form_of(j, c, p, &f)) || (st = gesvd(j, c, &f, p[1]))))
        return st;
    if (fine && c->vectors && c->m >= c->n &&
        ((st = cusolver_turn(j, p[2], f.u, c->full ? f.m : f.n, f.m, false)) ||
         (st = cusolver_turn(j, p[3], f.vh, f.n, f.n, false))))
        return st;
    return spoil_svd(j, c, p);
}
