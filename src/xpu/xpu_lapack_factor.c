/* Factorizations and solutions. */
#include "xpu_lapack.h"

/* LAPACK() takes pointers to const, through which the routine writes.
 * NOLINTBEGIN(readability-non-const-parameter) */

/* A row-major matrix is its transpose by columns: of A = L L^H the transpose
 * is U^H U with U the transpose of L, so rows and columns, lower and upper
 * change names and nothing moves. */
sd_status lapack_cholesky(const lapack_job *j, const libcall_cholesky *c,
                          char *const *p)
{
    size_t n = (size_t)c->n, each = n * n * j->size;

    for (int64_t b = 0; b < c->batch; b++) {
        char *a = p[1] + (size_t)b * each;
        int64_t info = 0;

        memmove(a, p[0] + (size_t)b * each, each);
        if (lapack_half_is_finite(j, a, c->n, c->lower))
            LAPACK(j, POTRF, c->lower ? "U" : "L", &c->n, a, &c->n, &info);
        else
            info = 1;
        info = lapack_info(info);
        if (info < 0)
            return lapack_refused("potrf", info);
        if (info)
            lapack_fill_nan(j->type, a, c->n * c->n);
        for (size_t i = 0; i < n; i++) /* the other triangle is zero */
            if (c->lower)
                memset(a + (i * n + i + 1) * j->size, 0, (n - i - 1) * j->size);
            else
                memset(a + i * n * j->size, 0, i * j->size);
    }
    return NULL;
}

/* A X = B is X^T A^T = B^T: from the other side. */
sd_status lapack_solve(const lapack_job *j, const libcall_solve *c,
                       char *const *p)
{
    static const char *const how[] = {"N", "T", "C"};
    const double one_f64[2] = {1, 0};
    const float one_f32[2] = {1, 0};
    int64_t n = c->left ? c->p : c->q;
    size_t a_each = (size_t)n * (size_t)n * j->size;
    size_t b_each = (size_t)c->p * (size_t)c->q * j->size;

    for (int64_t b = 0; b < c->batch; b++) {
        char *x = p[2] + (size_t)b * b_each;

        memmove(x, p[1] + (size_t)b * b_each, b_each);
        LAPACK(j, TRSM, c->left ? "R" : "L", c->lower ? "U" : "L",
               how[c->transpose], c->unit ? "U" : "N", &c->q, &c->p,
               j->part == 4 ? (const void *)one_f32 : one_f64,
               p[0] + (size_t)b * a_each, &n, x, &c->q);
    }
    return NULL;
}

/* Row exchanges as LAPACK lists them, from 0, and the order of rows that they
 * lead to. */
static void put_pivots(const lapack_job *j, const void *ints, int64_t k,
                       int64_t m, int32_t *pivot, int32_t *order)
{
    for (int64_t i = 0; i < m; i++)
        order[i] = (int32_t)i;
    for (int64_t i = 0; i < k; i++) {
        int32_t other = (int32_t)(lapack_int(j, ints, i) - 1), was = order[i];

        pivot[i] = other;
        order[i] = order[other];
        order[other] = was;
    }
}

sd_status lapack_lu(const lapack_job *j, const libcall_lu *c, char *const *p)
{
    int64_t k = SD_MIN(c->m, c->n);
    size_t count = (size_t)c->m * (size_t)c->n, each = count * j->size;
    void *pivots = p[2], *orders = p[3], *a, *ints;
    int32_t *pivot = pivots, *order = orders;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_INTS, (size_t)k, 8, &ints)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        int64_t info = 0;

        lapack_turn(j, a, p[0] + (size_t)b * each, c->m, c->n, false);
        LAPACK(j, GETRF, &c->m, &c->n, a, &c->m, ints, &info);
        info = lapack_info(info);
        if (info < 0)
            return lapack_refused("getrf", info);
        lapack_turn(j, p[1] + (size_t)b * each, a, c->n, c->m, false);
        put_pivots(j, ints, k, c->m, pivot + b * k, order + b * c->m);
    }
    return NULL;
}

typedef struct { /* reflectors in columns: found, or their product formed */
    int64_t batch, m, n, t;
    bool product;
} packed_columns;

static int64_t reduce_or_form(const lapack_job *j, const packed_columns *c,
                              void *a, char *tau, void *work, int64_t *nwork)
{
    int64_t info = 0;

    if (c->product)
        LAPACK(j, ORGQR, &c->m, &c->n, &c->t, a, &c->m, tau, work, nwork,
               &info);
    else
        LAPACK(j, GEQRF, &c->m, &c->n, a, &c->m, tau, work, nwork, &info);
    return lapack_info(info);
}

static sd_status each_packed(const lapack_job *j, const packed_columns *c,
                             const char *from, char *tau, char *to)
{
    size_t count = (size_t)c->m * (size_t)c->n, each = count * j->size;
    int64_t nwork = -1, info;
    double ask[2];
    void *a, *work;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)))
        return st;
    if ((info = reduce_or_form(j, c, a, tau, ask, &nwork)) < 0)
        return lapack_refused(c->product ? "orgqr" : "geqrf", info);
    if ((st = lapack_work(j, ask, c->n, &work, &nwork)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        lapack_turn(j, a, from + (size_t)b * each, c->m, c->n, false);
        reduce_or_form(j, c, a, tau + (size_t)(b * c->t) * j->size, work,
                       &nwork);
        lapack_turn(j, to + (size_t)b * each, a, c->n, c->m, false);
    }
    return NULL;
}

sd_status lapack_qr(const lapack_job *j, const libcall_qr *c, char *const *p)
{
    packed_columns form = {c->batch, c->m, c->n, SD_MIN(c->m, c->n), false};

    return each_packed(j, &form, p[0], p[2], p[1]);
}

sd_status lapack_reflections(const lapack_job *j, const libcall_reflections *c,
                             char *const *p)
{
    packed_columns form = {c->batch, c->m, c->n, c->t, true};

    return each_packed(j, &form, p[0], p[1], p[2]);
}

sd_status lapack_reflect(const lapack_job *j, const libcall_reflect *c,
                         char *const *p)
{
    const char *side = c->left ? "L" : "R";
    const char *how = !c->adjoint ? "N" : j->complex ? "C" : "T";
    int64_t nwork = -1, info = 0;
    size_t count = (size_t)c->m * (size_t)c->n, each = count * j->size;
    size_t x_count = (size_t)c->p * (size_t)c->q, x_each = x_count * j->size;
    double ask[2];
    void *a, *x, *work;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_B, x_count, j->size, &x)))
        return st;
    LAPACK(j, ORMQR, side, how, &c->p, &c->q, &c->t, a, &c->m, p[1], x, &c->p,
           ask, &nwork, &info);
    if ((info = lapack_info(info)) < 0)
        return lapack_refused("ormqr", info);
    if ((st = lapack_work(j, ask, SD_MAX(c->p, c->q), &work, &nwork)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        lapack_turn(j, a, p[0] + (size_t)b * each, c->m, c->n, false);
        lapack_turn(j, x, p[2] + (size_t)b * x_each, c->p, c->q, false);
        LAPACK(j, ORMQR, side, how, &c->p, &c->q, &c->t, a, &c->m,
               p[1] + (size_t)(b * c->t) * j->size, x, &c->p, work, &nwork,
               &info);
        lapack_turn(j, p[3] + (size_t)b * x_each, x, c->q, c->p, false);
    }
    return NULL;
}

/* Complex types have an array of reals before info. */
static void geqp3(const lapack_job *j, const libcall_geqp3 *c, void *a,
                  void *ints, char *tau, void *work, int64_t *nwork,
                  void *reals, int64_t *info)
{
    if (j->complex)
        LAPACK(j, GEQP3, &c->m, &c->n, a, &c->m, ints, tau, work, nwork, reals,
               info);
    else
        LAPACK(j, GEQP3, &c->m, &c->n, a, &c->m, ints, tau, work, nwork, info);
}

sd_status lapack_geqp3(const lapack_job *j, const libcall_geqp3 *c,
                       char *const *p)
{
    int64_t k = SD_MIN(c->m, c->n), nwork = -1, info = 0;
    size_t count = (size_t)c->m * (size_t)c->n, each = count * j->size;
    double ask[2];
    void *given = p[1], *orders = p[3], *a, *ints, *reals, *work;
    const int32_t *fixed = given;
    int32_t *order = orders;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_INTS, (size_t)c->n, 8, &ints)) ||
        (st = lapack_area(j, LAPACK_REALS, 2 * (size_t)c->n, j->part, &reals)))
        return st;
    geqp3(j, c, a, ints, p[4], ask, &nwork, reals, &info);
    if ((info = lapack_info(info)) < 0)
        return lapack_refused("geqp3", info);
    if ((st = lapack_work(j, ask, 3 * c->n + 1, &work, &nwork)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        const int32_t *from = fixed + b * c->n;
        int32_t *to = order + b * c->n;

        for (int64_t i = 0; i < c->n; i++)
            lapack_put_int(j, ints, i, from[i]);
        lapack_turn(j, a, p[0] + (size_t)b * each, c->m, c->n, false);
        geqp3(j, c, a, ints, p[4] + (size_t)(b * k) * j->size, work, &nwork,
              reals, &info);
        lapack_turn(j, p[2] + (size_t)b * each, a, c->n, c->m, false);
        for (int64_t i = 0; i < c->n; i++)
            to[i] = (int32_t)lapack_int(j, ints, i);
    }
    return NULL;
}

sd_status lapack_tridiagonal_solve(const lapack_job *j,
                                   const libcall_tridiagonal_solve *c,
                                   char *const *p)
{
    size_t n = (size_t)c->n, each = n * j->size;
    size_t x_count = n * (size_t)c->p, x_each = x_count * j->size;
    void *diagonals, *x;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, 3 * n, j->size, &diagonals)) ||
        (st = lapack_area(j, LAPACK_B, x_count, j->size, &x)))
        return st;
    for (int64_t b = 0; b < c->batch; b++) {
        char *low = diagonals, *main = low + each, *high = main + each;
        int64_t info = 0;

        /* ours of the lower diagonal begins with a place that is not used */
        memcpy(low, p[0] + (size_t)b * each + j->size, each - j->size);
        memcpy(main, p[1] + (size_t)b * each, each);
        memcpy(high, p[2] + (size_t)b * each, each);
        lapack_turn(j, x, p[3] + (size_t)b * x_each, c->n, c->p, false);
        LAPACK(j, GTSV, &c->n, &c->p, low, main, high, x, &c->n, &info);
        if ((info = lapack_info(info)) < 0)
            return lapack_refused("gtsv", info);
        if (info)
            lapack_fill_nan(j->type, x, c->n * c->p);
        lapack_turn(j, p[4] + (size_t)b * x_each, x, c->p, c->n, false);
    }
    return NULL;
}

/* NOLINTEND(readability-non-const-parameter) */
