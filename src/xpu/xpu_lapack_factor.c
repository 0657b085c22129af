/* Factorizations and solutions. */
#include "xpu_lapack.h"

/* LAPACK() takes pointers to const, through which the routine writes.
 * NOLINTBEGIN(readability-non-const-parameter) */

/* A row-major matrix is its transpose by columns: of A = L L^H the transpose
 * is U^H U with U the transpose of L, so rows and columns, lower and upper
 * change names and nothing moves. */
sd_status lapack_cholesky(lapack_job *j, const libcall_cholesky *c,
                          char *const *p)
{
    size_t n = (size_t)c->n;
    char *a = p[1];
    sd_status st = NULL;

    memmove(a, p[0], n * n * j->size);
    if (lapack_half_is_finite(j, a, c->n, c->lower))
        st = LAPACK(j, POTRF, c->lower ? "U" : "L", &c->n, a, &c->n, &j->info);
    else
        j->info = 1;
    if (st)
        return st;
    if (j->info)
        lapack_fill_nan(j->type, a, c->n * c->n);
    for (size_t i = 0; i < n; i++) /* the other triangle is zero */
        if (c->lower)
            memset(a + (i * n + i + 1) * j->size, 0, (n - i - 1) * j->size);
        else
            memset(a + i * n * j->size, 0, i * j->size);
    return NULL;
}

/* A X = B is X^T A^T = B^T: from the other side. */
sd_status lapack_solve(lapack_job *j, const libcall_solve *c, char *const *p)
{
    static const char *const how[] = {"N", "T", "C"};
    const double one_f64[2] = {1, 0};
    const float one_f32[2] = {1, 0};
    int64_t n = c->left ? c->p : c->q;

    memmove(p[2], p[1], (size_t)c->p * (size_t)c->q * j->size);
    return LAPACK(j, TRSM, c->left ? "R" : "L", c->lower ? "U" : "L",
                  how[c->transpose], c->unit ? "U" : "N", &c->q, &c->p,
                  j->part == 4 ? (const void *)one_f32 : one_f64, p[0], &n,
                  p[2], &c->q);
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

sd_status lapack_lu(lapack_job *j, const libcall_lu *c, char *const *p)
{
    int64_t k = SD_MIN(c->m, c->n);
    size_t count = (size_t)c->m * (size_t)c->n;
    void *pivot = p[2], *order = p[3], *a, *ints;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_INTS, (size_t)k, 8, &ints)))
        return st;
    lapack_turn(j, a, p[0], c->m, c->n, false);
    if ((st = LAPACK(j, GETRF, &c->m, &c->n, a, &c->m, ints, &j->info)))
        return st;
    lapack_turn(j, p[1], a, c->n, c->m, false);
    put_pivots(j, ints, k, c->m, pivot, order);
    return NULL;
}

sd_status lapack_qr(lapack_job *j, const libcall_qr *c, char *const *p)
{
    size_t count = (size_t)c->m * (size_t)c->n;
    void *a;
    sd_status st = lapack_area(j, LAPACK_A, count, j->size, &a);

    if (st)
        return st;
    lapack_turn(j, a, p[0], c->m, c->n, false);
    st = LAPACK_WITH_WORK(j, GEQRF, c->n, &c->m, &c->n, a, &c->m, p[2],
                          LAPACK_ITS_WORK(j), &j->info);
    if (!st)
        lapack_turn(j, p[1], a, c->n, c->m, false);
    return st;
}

sd_status lapack_reflections(lapack_job *j, const libcall_reflections *c,
                             char *const *p)
{
    size_t count = (size_t)c->m * (size_t)c->n;
    void *a;
    sd_status st = lapack_area(j, LAPACK_A, count, j->size, &a);

    if (st)
        return st;
    lapack_turn(j, a, p[0], c->m, c->n, false);
    st = LAPACK_WITH_WORK(j, ORGQR, c->n, &c->m, &c->n, &c->t, a, &c->m, p[1],
                          LAPACK_ITS_WORK(j), &j->info);
    if (!st)
        lapack_turn(j, p[2], a, c->n, c->m, false);
    return st;
}

sd_status lapack_reflect(lapack_job *j, const libcall_reflect *c,
                         char *const *p)
{
    const char *side = c->left ? "L" : "R";
    const char *how = !c->adjoint ? "N" : j->complex ? "C" : "T";
    size_t count = (size_t)c->m * (size_t)c->n;
    size_t x_count = (size_t)c->p * (size_t)c->q;
    void *a, *x;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_B, x_count, j->size, &x)))
        return st;
    lapack_turn(j, a, p[0], c->m, c->n, false);
    lapack_turn(j, x, p[2], c->p, c->q, false);
    st = LAPACK_WITH_WORK(j, ORMQR, SD_MAX(c->p, c->q), side, how, &c->p, &c->q,
                          &c->t, a, &c->m, p[1], x, &c->p, LAPACK_ITS_WORK(j),
                          &j->info);
    if (!st)
        lapack_turn(j, p[3], x, c->q, c->p, false);
    return st;
}

/* Complex types have an array of reals before info. */
static sd_status geqp3(lapack_job *j, const libcall_geqp3 *c, void *a,
                       void *ints, char *tau, void *reals)
{
    int64_t least = 3 * c->n + 1;

    if (j->complex)
        return LAPACK_WITH_WORK(j, GEQP3, least, &c->m, &c->n, a, &c->m, ints,
                                tau, LAPACK_ITS_WORK(j), reals, &j->info);
    return LAPACK_WITH_WORK(j, GEQP3, least, &c->m, &c->n, a, &c->m, ints, tau,
                            LAPACK_ITS_WORK(j), &j->info);
}

sd_status lapack_geqp3(lapack_job *j, const libcall_geqp3 *c, char *const *p)
{
    size_t count = (size_t)c->m * (size_t)c->n;
    void *given = p[1], *to = p[3], *a, *ints, *reals;
    const int32_t *fixed = given;
    int32_t *order = to;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, count, j->size, &a)) ||
        (st = lapack_area(j, LAPACK_INTS, (size_t)c->n, 8, &ints)) ||
        (st = lapack_area(j, LAPACK_REALS, 2 * (size_t)c->n, j->part, &reals)))
        return st;
    for (int64_t i = 0; i < c->n; i++)
        lapack_put_int(j, ints, i, fixed[i]);
    lapack_turn(j, a, p[0], c->m, c->n, false);
    if ((st = geqp3(j, c, a, ints, p[4], reals)))
        return st;
    lapack_turn(j, p[2], a, c->n, c->m, false);
    for (int64_t i = 0; i < c->n; i++)
        order[i] = (int32_t)lapack_int(j, ints, i);
    return NULL;
}

sd_status lapack_tridiagonal_solve(lapack_job *j,
                                   const libcall_tridiagonal_solve *c,
                                   char *const *p)
{
    size_t n = (size_t)c->n, each = n * j->size;
    void *diagonals, *x;
    char *low, *main, *high;
    sd_status st;

    if ((st = lapack_area(j, LAPACK_A, 3 * n, j->size, &diagonals)) ||
        (st = lapack_area(j, LAPACK_B, n * (size_t)c->p, j->size, &x)))
        return st;
    low = diagonals;
    main = low + each;
    high = main + each;
    /* ours of the lower diagonal begins with a place that is not used */
    memcpy(low, p[0] + j->size, each - j->size);
    memcpy(main, p[1], each);
    memcpy(high, p[2], each);
    lapack_turn(j, x, p[3], c->n, c->p, false);
    if ((st = LAPACK(j, GTSV, &c->n, &c->p, low, main, high, x, &c->n,
                     &j->info)))
        return st;
    if (j->info)
        lapack_fill_nan(j->type, x, c->n * c->p);
    lapack_turn(j, p[4], x, c->p, c->n, false);
    return NULL;
}

/* NOLINTEND(readability-non-const-parameter) */
