/* Eigenvalues and singular values, and the forms that they start from.  A
 * matrix that no routine can do (its iteration does not converge), or that has
 * a number that is not finite, gives NaN; of a symmetric one the triangle that
 * is not read may have anything. */
#include "xpu_lapack.h"

/* LAPACK() takes pointers to const, through which the routine writes.
 * NOLINTBEGIN(readability-non-const-parameter) */

/* ---- symmetric and Hermitian ---- */

/* Read by columns the matrix is its conjugate, whose vectors are those of the
 * matrix conjugated. */
sd_status lapack_eigh(lapack_job *j, const libcall_eigh *c, char *const *p)
{
    const char *half = c->lower ? "U" : "L"; /* of the transpose */
    int64_t count = c->n * c->n, nreal = 2 * count + 5 * c->n + 1;
    int64_t nint = 5 * c->n + 3;
    void *a, *reals, *ints;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, (size_t)count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_REALS, j->complex ? (size_t)nreal : 1,
                          j->part, &reals)) ||
        (st = lapack_area(j, LAPACK_INTS, (size_t)nint, 8, &ints)))
        return st;
    memcpy(a, p[0], (size_t)count * j->size);
    if (!lapack_half_is_finite(j, p[0], c->n, c->lower))
        j->info = 1;
    else if (j->complex)
        st = LAPACK_WITH_WORK(j, SYEVD, 2, "V", half, &c->n, a, &c->n, p[2],
                              LAPACK_ITS_WORK(j), reals, &nreal, ints, &nint,
                              &j->info);
    else
        st = LAPACK_WITH_WORK(j, SYEVD, 2, "V", half, &c->n, a, &c->n, p[2],
                              LAPACK_ITS_WORK(j), ints, &nint, &j->info);
    if (st)
        return st;
    if (j->info) {
        lapack_fill_nan(j->type, p[1], count);
        lapack_fill_nan(sd_dtype_part(j->type), p[2], c->n);
    } else {
        lapack_turn(j, p[1], a, c->n, c->n, true);
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

typedef struct {
    void *a, *u, *vh, *reals, *ints;
} svd_areas;

static sd_status svd_get_areas(const lapack_job *j, const libcall_svd *c,
                               const svd_form *f, svd_areas *w)
{
    size_t k = (size_t)f->k, most = (size_t)SD_MAX(f->m, f->n);
    size_t reals =
        !j->complex ? 1 : 5 * k * k + 7 * k + 2 * most * k + 2 * k * k;
    size_t vectors = c->vectors ? 1 : 0; /* of none the areas have one number */
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, (size_t)c->m * (size_t)c->n, j->size,
                          &w->a)) ||
        (st = lapack_area(j, LAPACK_B, vectors * (size_t)(f->m * f->mcol),
                          j->size, &w->u)) ||
        (st = lapack_area(j, LAPACK_C, vectors * (size_t)(f->nrow * f->n),
                          j->size, &w->vh)) ||
        (st = lapack_area(j, LAPACK_REALS, reals, j->part, &w->reals)))
        return st;
    return lapack_area(j, LAPACK_INTS, 8 * k, 8, &w->ints);
}

/* Of the matrix itself, though its transpose has the same values and would need
 * no turning: which small residual comes out of a badly conditioned matrix
 * depends on it, and people compare the vectors with SciPy's. */
static sd_status gesdd(lapack_job *j, const svd_form *f, const svd_areas *w,
                       char *s)
{
    if (j->complex)
        return LAPACK_WITH_WORK(
            j, GESDD, 1, f->job, &f->m, &f->n, w->a, &f->m, s, w->u, &f->m,
            w->vh, &f->nrow, LAPACK_ITS_WORK(j), w->reals, w->ints, &j->info);
    return LAPACK_WITH_WORK(j, GESDD, 1, f->job, &f->m, &f->n, w->a, &f->m, s,
                            w->u, &f->m, w->vh, &f->nrow, LAPACK_ITS_WORK(j),
                            w->ints, &j->info);
}

sd_status lapack_svd(lapack_job *j, const libcall_svd *c, char *const *p)
{
    svd_form f = svd_form_of(c);
    svd_areas w;
    sd_status st;

    if ((st = svd_get_areas(j, c, &f, &w)))
        return st;
    lapack_turn(j, w.a, p[0], c->m, c->n, false);
    if (!lapack_is_finite(j, p[0], c->m * c->n))
        j->info = 1;
    else if ((st = gesdd(j, &f, &w, p[1])))
        return st;
    if (j->info)
        lapack_fill_nan(sd_dtype_part(j->type), p[1], f.k);
    if (c->vectors && j->info) {
        lapack_fill_nan(j->type, p[2], f.m * f.mcol);
        lapack_fill_nan(j->type, p[3], f.nrow * f.n);
    } else if (c->vectors) {
        lapack_turn(j, p[2], w.u, f.mcol, f.m, false);
        lapack_turn(j, p[3], w.vh, f.n, f.nrow, false);
    }
    return NULL;
}

/* ---- general eigenvalues ---- */

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

typedef struct { /* of one geev */
    void *a, *left, *right, *reals;
    char *w; /* complex: the result; real: real parts, then imaginary ones */
} eig_areas;

static sd_status eig_get_areas(const lapack_job *j, const libcall_eig *c,
                               eig_areas *e)
{
    size_t n = (size_t)c->n, count = n * n;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &e->a)) ||
        (st = lapack_area(j, LAPACK_B, c->left ? count : 1, j->size,
                          &e->left)) ||
        (st = lapack_area(j, LAPACK_C, c->right ? count : 1, j->size,
                          &e->right)) ||
        (st = lapack_area(j, LAPACK_REALS, 4 * n, j->part, &e->reals)))
        return st;
    e->w = (char *)e->reals + 2 * n * j->part;
    return NULL;
}

static sd_status geev(lapack_job *j, const libcall_eig *c, const eig_areas *e)
{
    const char *left = c->left ? "V" : "N", *right = c->right ? "V" : "N";
    int64_t least = 4 * c->n;

    if (j->complex)
        return LAPACK_WITH_WORK(j, GEEV, least, left, right, &c->n, e->a, &c->n,
                                e->w, e->left, &c->n, e->right, &c->n,
                                LAPACK_ITS_WORK(j), e->reals, &j->info);
    return LAPACK_WITH_WORK(j, GEEV, least, left, right, &c->n, e->a, &c->n,
                            e->w, e->w + (size_t)c->n * j->part, e->left, &c->n,
                            e->right, &c->n, LAPACK_ITS_WORK(j), &j->info);
}

sd_status lapack_eig(lapack_job *j, const libcall_eig *c, char *const *p)
{
    sd_dtype type = sd_dtype_complex(sd_dtype_part(j->type));
    eig_areas e = {0};
    sd_status st = eig_get_areas(j, c, &e);
    const void *got[2] = {c->left ? e.left : NULL, c->right ? e.right : NULL};

    if (st)
        return st;
    lapack_turn(j, e.a, p[0], c->n, c->n, false);
    if (!lapack_is_finite(j, p[0], c->n * c->n))
        j->info = 1;
    else if ((st = geev(j, c, &e)))
        return st;
    for (int64_t i = 0; i < c->n && !j->complex; i++)
        put_complex(j, p[1], i, real_at(j, e.w, i), real_at(j, e.w, c->n + i));
    if (j->complex)
        memcpy(p[1], e.w, (size_t)c->n * j->size);
    if (j->info)
        lapack_fill_nan(type, p[1], c->n);
    for (int k = 0, slot = 2; k < 2; k++) {
        char *v = got[k] ? p[slot++] : NULL;

        if (v && j->info)
            lapack_fill_nan(type, v, c->n * c->n);
        else if (v)
            put_vectors(j, c->n, e.w, got[k], v);
    }
    return NULL;
}

/* ---- Schur's form ---- */

static sd_status gees(lapack_job *j, const libcall_schur *c, void *a, void *v,
                      char *w, void *reals)
{
    const char *vectors = c->vectors ? "V" : "N";
    int64_t sorted = 0, least = 3 * c->n;
    void *bools = &sorted; /* not looked at without sorting */

    if (j->complex)
        return LAPACK_WITH_WORK(j, GEES, least, vectors, "N", NULL, &c->n, a,
                                &c->n, &sorted, w, v, &c->n, LAPACK_ITS_WORK(j),
                                reals, bools, &j->info);
    return LAPACK_WITH_WORK(j, GEES, least, vectors, "N", NULL, &c->n, a, &c->n,
                            &sorted, w, w + (size_t)c->n * j->part, v, &c->n,
                            LAPACK_ITS_WORK(j), bools, &j->info);
}

sd_status lapack_schur(lapack_job *j, const libcall_schur *c, char *const *p)
{
    size_t n = (size_t)c->n, count = n * n;
    void *a, *v, *reals;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_B, c->vectors ? count : 1, j->size, &v)) ||
        (st = lapack_area(j, LAPACK_REALS, 4 * n, j->part, &reals)))
        return st;
    lapack_turn(j, a, p[0], c->n, c->n, false);
    if (!lapack_is_finite(j, p[0], c->n * c->n))
        j->info = 1;
    else if ((st = gees(j, c, a, v, (char *)reals + 2 * n * j->part, reals)))
        return st;
    if (j->info) {
        lapack_fill_nan(j->type, a, c->n * c->n);
        lapack_fill_nan(j->type, v, c->vectors ? c->n * c->n : 0);
    }
    lapack_turn(j, p[1], a, c->n, c->n, false);
    if (c->vectors)
        lapack_turn(j, p[2], v, c->n, c->n, false);
    return NULL;
}

/* ---- forms on the way ---- */

sd_status lapack_hessenberg(lapack_job *j, const libcall_hessenberg *c,
                            char *const *p)
{
    int64_t one = 1;
    void *a;
    sd_status st = lapack_area(j, LAPACK_A, (size_t)(c->n * c->n), j->size, &a);

    if (st)
        return st;
    lapack_turn(j, a, p[0], c->n, c->n, false);
    st = LAPACK_WITH_WORK(j, GEHRD, c->n, &c->n, &one, &c->n, a, &c->n, p[2],
                          LAPACK_ITS_WORK(j), &j->info);
    if (!st)
        lapack_turn(j, p[1], a, c->n, c->n, false);
    return st;
}

sd_status lapack_tridiagonal(lapack_job *j, const libcall_tridiagonal *c,
                             char *const *p)
{
    void *a;
    sd_status st = lapack_area(j, LAPACK_A, (size_t)(c->n * c->n), j->size, &a);

    if (st)
        return st;
    lapack_turn(j, a, p[0], c->n, c->n, false);
    st = LAPACK_WITH_WORK(j, SYTRD, 1, c->lower ? "L" : "U", &c->n, a, &c->n,
                          p[2], p[3], p[4], LAPACK_ITS_WORK(j), &j->info);
    if (!st)
        lapack_turn(j, p[1], a, c->n, c->n, false);
    return st;
}

/* NOLINTEND(readability-non-const-parameter) */
