/* Eigenvalues and singular values, and the forms that they start from.  A
 * matrix that no routine can do (its iteration does not converge), or that has
 * a number that is not finite, gives NaN; of a symmetric one the triangle that
 * is not read may have anything. */
#include "xpu_lapack.h"

/* LAPACK() takes pointers to const, through which the routine writes.
 * NOLINTBEGIN(readability-non-const-parameter) */

/* ---- symmetric and Hermitian ---- */

static void syevd(const lapack_job *j, const libcall_eigh *c, void *a, char *w,
                  void *work, int64_t *nwork, void *reals, int64_t *nreal,
                  void *ints, int64_t *nint, int64_t *info)
{
    const char *half = c->lower ? "U" : "L"; /* of the transpose */

    *info = 0;
    if (j->complex)
        LAPACK(j, SYEVD, "V", half, &c->n, a, &c->n, w, work, nwork, reals,
               nreal, ints, nint, info);
    else
        LAPACK(j, SYEVD, "V", half, &c->n, a, &c->n, w, work, nwork, ints, nint,
               info);
    *info = lapack_info(*info);
}

/* Read by columns the matrix is its conjugate, whose vectors are those of the
 * matrix conjugated. */
sd_status lapack_eigh(const lapack_job *j, const libcall_eigh *c,
                      char *const *p)
{
    size_t n = (size_t)c->n, count = n * n, each = count * j->size;
    int64_t nwork = -1, nreal = -1, nint = -1, info;
    double ask[2], ask_real, ask_int[1];
    void *a, *work, *reals, *ints;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)))
        return st;
    syevd(j, c, a, p[2], ask, &nwork, &ask_real, &nreal, ask_int, &nint, &info);
    if (info < 0)
        return lapack_refused("syevd", info);
    nreal = 2 * c->n * c->n + 5 * c->n + 1;
    nint = 5 * c->n + 3;
    if ((st = lapack_work(j, ask, 2, &work, &nwork)) ||
        (st = lapack_area(j, LAPACK_REALS, j->complex ? (size_t)nreal : 1,
                          j->part, &reals)) ||
        (st = lapack_area(j, LAPACK_INTS, (size_t)nint, 8, &ints)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        const char *from = p[0] + (size_t)b * each;
        char *v = p[1] + (size_t)b * each, *w = p[2] + (size_t)b * n * j->part;

        info = 1;
        memcpy(a, from, each);
        if (lapack_half_is_finite(j, from, c->n, c->lower))
            syevd(j, c, a, w, work, &nwork, reals, &nreal, ints, &nint, &info);
        if (info < 0)
            return lapack_refused("syevd", info);
        if (info) {
            lapack_fill_nan(j->type, v, c->n * c->n);
            lapack_fill_nan(sd_dtype_part(j->type), w, c->n);
        } else {
            lapack_turn(j, v, a, c->n, c->n, true);
        }
    }
    return NULL;
}

/* ---- singular values ---- */

typedef struct { /* of one gesdd */
    const char *job;
    int64_t m, n, k, mcol, nrow; /* U is m by mcol, V^H nrow by n */
} svd_form;

static svd_form svd_form_of(const libcall_svd *c)
{
    int64_t k = SD_MIN(c->m, c->n);

    if (!c->vectors)
        return (svd_form){"N", c->m, c->n, k, 1, 1};
    if (c->full)
        return (svd_form){"A", c->m, c->n, k, c->m, c->n};
    return (svd_form){"S", c->m, c->n, k, k, k};
}

/* Of the matrix itself, though its transpose has the same values and would need
 * no turning: which small residual comes out of a badly conditioned matrix
 * depends on it, and people compare the vectors with SciPy's. */
static void gesdd(const lapack_job *j, const svd_form *f, void *a, char *s,
                  void *u, void *vh, void *work, int64_t *nwork, void *reals,
                  void *ints, int64_t *info)
{
    *info = 0;
    if (j->complex)
        LAPACK(j, GESDD, f->job, &f->m, &f->n, a, &f->m, s, u, &f->m, vh,
               &f->nrow, work, nwork, reals, ints, info);
    else
        LAPACK(j, GESDD, f->job, &f->m, &f->n, a, &f->m, s, u, &f->m, vh,
               &f->nrow, work, nwork, ints, info);
    *info = lapack_info(*info);
}

static size_t gesdd_reals(const lapack_job *j, const svd_form *f)
{
    size_t k = (size_t)f->k, most = (size_t)SD_MAX(f->m, f->n);

    return !j->complex ? 1 : 5 * k * k + 7 * k + 2 * most * k + 2 * k * k;
}

/* Where vectors are wanted, those of matrix b. */
static void put_svd_vectors(const lapack_job *j, const svd_form *f, bool failed,
                            const void *u, const void *vh, int64_t b,
                            char *const *p)
{
    int64_t u_each = f->m * f->mcol, vh_each = f->nrow * f->n;
    char *to_u = p[2] + (size_t)(b * u_each) * j->size;
    char *to_vh = p[3] + (size_t)(b * vh_each) * j->size;

    if (failed) {
        lapack_fill_nan(j->type, to_u, u_each);
        lapack_fill_nan(j->type, to_vh, vh_each);
        return;
    }
    lapack_turn(j, to_u, u, f->mcol, f->m, false);
    lapack_turn(j, to_vh, vh, f->n, f->nrow, false);
}

sd_status lapack_svd(const lapack_job *j, const libcall_svd *c, char *const *p)
{
    svd_form f = svd_form_of(c);
    size_t count = (size_t)c->m * (size_t)c->n, each = count * j->size;
    int64_t nwork = -1, info;
    size_t vectors = c->vectors ? 1 : 0; /* of none the areas have one number */
    double ask[2];
    void *a, *u, *vh, *work, *reals, *ints;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_B, vectors * (size_t)(f.m * f.mcol),
                          j->size, &u)) ||
        (st = lapack_area(j, LAPACK_C, vectors * (size_t)(f.nrow * f.n),
                          j->size, &vh)) ||
        (st = lapack_area(j, LAPACK_REALS, gesdd_reals(j, &f), j->part,
                          &reals)) ||
        (st = lapack_area(j, LAPACK_INTS, 8 * (size_t)f.k, 8, &ints)))
        return st;
    gesdd(j, &f, a, p[1], u, vh, ask, &nwork, reals, ints, &info);
    if (info < 0)
        return lapack_refused("gesdd", info);
    if ((st = lapack_work(j, ask, 1, &work, &nwork)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        const char *from = p[0] + (size_t)b * each;
        char *s = p[1] + (size_t)(b * f.k) * j->part;

        info = 1;
        lapack_turn(j, a, from, c->m, c->n, false);
        if (lapack_is_finite(j, from, (int64_t)count))
            gesdd(j, &f, a, s, u, vh, work, &nwork, reals, ints, &info);
        if (info < 0)
            return lapack_refused("gesdd", info);
        if (info)
            lapack_fill_nan(sd_dtype_part(j->type), s, f.k);
        if (c->vectors)
            put_svd_vectors(j, &f, info != 0, u, vh, b, p);
    }
    return NULL;
}

/* ---- general eigenvalues ---- */

typedef struct { /* of one geev */
    void *a, *left, *right, *work, *reals;
    int64_t nwork;
    char *w; /* complex: the result; real: real parts, then imaginary ones */
} eig_areas;

static int64_t geev(const lapack_job *j, const libcall_eig *c,
                    const eig_areas *e)
{
    const char *left = c->left ? "V" : "N", *right = c->right ? "V" : "N";
    int64_t info = 0;

    if (j->complex)
        LAPACK(j, GEEV, left, right, &c->n, e->a, &c->n, e->w, e->left, &c->n,
               e->right, &c->n, e->work, &e->nwork, e->reals, &info);
    else
        LAPACK(j, GEEV, left, right, &c->n, e->a, &c->n, e->w,
               e->w + (size_t)c->n * j->part, e->left, &c->n, e->right, &c->n,
               e->work, &e->nwork, &info);
    return lapack_info(info);
}

static double real_at(const lapack_job *j, const void *p, int64_t i)
{
    return j->part == 4 ? (double)((const float *)p)[i]
                        : ((const double *)p)[i];
}

static void put_complex(const lapack_job *j, void *p, int64_t i, double re,
                        double im)
{
    if (j->part == 4) {
        ((float *)p)[2 * i] = (float)re;
        ((float *)p)[2 * i + 1] = (float)im;
    } else {
        ((double *)p)[2 * i] = re;
        ((double *)p)[2 * i + 1] = im;
    }
}

/* Vectors of real matrices: of a pair of conjugate values the first column has
 * the real parts, the second the imaginary ones. */
static void unpack_vectors(const lapack_job *j, int64_t n, const char *w,
                           const void *v, char *to)
{
    const char *imaginary = w + (size_t)n * j->part;

    for (int64_t c = 0; c < n; c++) {
        bool pair = real_at(j, imaginary, c) != 0 && c + 1 < n;

        for (int64_t r = 0; r < n; r++) {
            double re = real_at(j, v, c * n + r);
            double im = pair ? real_at(j, v, (c + 1) * n + r) : 0;

            put_complex(j, to, r * n + c, re, im);
            if (pair)
                put_complex(j, to, r * n + c + 1, re, -im);
        }
        c += pair;
    }
}

static void put_vectors(const lapack_job *j, int64_t n, const char *w,
                        const void *v, char *to)
{
    if (j->complex)
        lapack_turn(j, to, v, n, n, false);
    else
        unpack_vectors(j, n, w, v, to);
}

static sd_status eig_get_areas(const lapack_job *j, const libcall_eig *c,
                               eig_areas *e)
{
    size_t n = (size_t)c->n, count = n * n;
    double ask[2];
    int64_t info;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &e->a)) ||
        (st = lapack_area(j, LAPACK_B, c->left ? count : 1, j->size,
                          &e->left)) ||
        (st = lapack_area(j, LAPACK_C, c->right ? count : 1, j->size,
                          &e->right)) ||
        (st = lapack_area(j, LAPACK_REALS, 4 * n, j->part, &e->reals)))
        return st;
    e->w = (char *)e->reals + 2 * n * j->part;
    e->work = ask;
    e->nwork = -1;
    if ((info = geev(j, c, e)) < 0)
        return lapack_refused("geev", info);
    return lapack_work(j, ask, 4 * c->n, &e->work, &e->nwork);
}

sd_status lapack_eig(const lapack_job *j, const libcall_eig *c, char *const *p)
{
    sd_dtype type = sd_dtype_complex(sd_dtype_part(j->type));
    size_t n = (size_t)c->n, each = n * n * j->size, csize = 2 * j->part;
    eig_areas e = {0};
    sd_status st = eig_get_areas(j, c, &e);

    for (int64_t b = 0; b < c->batch && !st; b++) {
        const char *from = p[0] + (size_t)b * each;
        char *w = p[1] + (size_t)b * n * csize;
        const bool want[2] = {c->left, c->right};
        const void *got[2] = {e.left, e.right};
        int64_t info = 1;

        lapack_turn(j, e.a, from, c->n, c->n, false);
        if (lapack_is_finite(j, from, c->n * c->n))
            info = geev(j, c, &e);
        if (info < 0)
            return lapack_refused("geev", info);
        for (int64_t i = 0; i < c->n && !j->complex; i++)
            put_complex(j, w, i, real_at(j, e.w, i), real_at(j, e.w, c->n + i));
        if (j->complex)
            memcpy(w, e.w, n * csize);
        if (info)
            lapack_fill_nan(type, w, c->n);
        for (int k = 0, slot = 2; k < 2; k++) {
            char *v = want[k] ? p[slot++] + (size_t)b * n * n * csize : NULL;

            if (v && info)
                lapack_fill_nan(type, v, c->n * c->n);
            else if (v)
                put_vectors(j, c->n, e.w, got[k], v);
        }
    }
    return st;
}

/* ---- Schur's form ---- */

static int64_t gees(const lapack_job *j, const libcall_schur *c, void *a,
                    void *v, char *w, void *work, const int64_t *nwork,
                    void *reals)
{
    const char *vectors = c->vectors ? "V" : "N";
    int64_t info = 0, sorted = 0;
    void *bools = &sorted; /* not looked at without sorting */

    if (j->complex)
        LAPACK(j, GEES, vectors, "N", NULL, &c->n, a, &c->n, &sorted, w, v,
               &c->n, work, nwork, reals, bools, &info);
    else
        LAPACK(j, GEES, vectors, "N", NULL, &c->n, a, &c->n, &sorted, w,
               w + (size_t)c->n * j->part, v, &c->n, work, nwork, bools, &info);
    return lapack_info(info);
}

sd_status lapack_schur(const lapack_job *j, const libcall_schur *c,
                       char *const *p)
{
    size_t n = (size_t)c->n, count = n * n, each = count * j->size;
    int64_t nwork = -1, info;
    double ask[2];
    void *a, *v, *reals, *work;
    char *w;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_B, c->vectors ? count : 1, j->size, &v)) ||
        (st = lapack_area(j, LAPACK_REALS, 4 * n, j->part, &reals)))
        return st;
    w = (char *)reals + 2 * n * j->part;
    if ((info = gees(j, c, a, v, w, ask, &nwork, reals)) < 0)
        return lapack_refused("gees", info);
    if ((st = lapack_work(j, ask, 3 * c->n, &work, &nwork)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        const char *from = p[0] + (size_t)b * each;
        char *t = p[1] + (size_t)b * each;

        info = 1;
        lapack_turn(j, a, from, c->n, c->n, false);
        if (lapack_is_finite(j, from, c->n * c->n))
            info = gees(j, c, a, v, w, work, &nwork, reals);
        if (info < 0)
            return lapack_refused("gees", info);
        if (info) {
            lapack_fill_nan(j->type, a, c->n * c->n);
            lapack_fill_nan(j->type, v, c->vectors ? c->n * c->n : 0);
        }
        lapack_turn(j, t, a, c->n, c->n, false);
        if (c->vectors)
            lapack_turn(j, p[2] + (size_t)b * each, v, c->n, c->n, false);
    }
    return NULL;
}

/* ---- forms on the way ---- */

sd_status lapack_hessenberg(const lapack_job *j, const libcall_hessenberg *c,
                            char *const *p)
{
    size_t n = (size_t)c->n, count = n * n, each = count * j->size;
    int64_t nwork = -1, info = 0, one = 1;
    double ask[2];
    void *a, *work;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)))
        return st;
    LAPACK(j, GEHRD, &c->n, &one, &c->n, a, &c->n, p[2], ask, &nwork, &info);
    if ((info = lapack_info(info)) < 0)
        return lapack_refused("gehrd", info);
    if ((st = lapack_work(j, ask, c->n, &work, &nwork)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        lapack_turn(j, a, p[0] + (size_t)b * each, c->n, c->n, false);
        LAPACK(j, GEHRD, &c->n, &one, &c->n, a, &c->n,
               p[2] + (size_t)b * (n - 1) * j->size, work, &nwork, &info);
        lapack_turn(j, p[1] + (size_t)b * each, a, c->n, c->n, false);
    }
    return NULL;
}

sd_status lapack_tridiagonal(const lapack_job *j, const libcall_tridiagonal *c,
                             char *const *p)
{
    const char *half = c->lower ? "L" : "U";
    size_t n = (size_t)c->n, count = n * n, each = count * j->size;
    int64_t nwork = -1, info = 0;
    double ask[2];
    void *a, *work;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)))
        return st;
    LAPACK(j, SYTRD, half, &c->n, a, &c->n, p[2], p[3], p[4], ask, &nwork,
           &info);
    if ((info = lapack_info(info)) < 0)
        return lapack_refused("sytrd", info);
    if ((st = lapack_work(j, ask, 1, &work, &nwork)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        lapack_turn(j, a, p[0] + (size_t)b * each, c->n, c->n, false);
        LAPACK(j, SYTRD, half, &c->n, a, &c->n, p[2] + (size_t)b * n * j->part,
               p[3] + (size_t)b * (n - 1) * j->part,
               p[4] + (size_t)b * (n - 1) * j->size, work, &nwork, &info);
        lapack_turn(j, p[1] + (size_t)b * each, a, c->n, c->n, false);
    }
    return NULL;
}

/* NOLINTEND(readability-non-const-parameter) */
