/* xpu_lib's linear algebra: what was factored comes back, in four types, of
 * several sizes, in batches.  Skips where no LAPACK is found. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "xpu_lib.h"

/* As in test_xpu_lib.c: what oneDNN brings with it, the leak checker does not
 * like to look at. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

typedef double complex number;
typedef number *matrix; /* row-major, whatever the type of the call */

static const sd_dtype types[] = {SD_F32, SD_F64, SD_C64, SD_C128};
static xpu_lib *lib;

/* ---- arrays of a type, as numbers ---- */

static double precision(sd_dtype t)
{
    return sd_dtype_part(t) == SD_F32 ? 0x1p-24 : 0x1p-53;
}

static number load(sd_dtype t, const void *p, int64_t i)
{
    switch (t) {
    case SD_F32:
        return ((const float *)p)[i];
    case SD_F64:
        return ((const double *)p)[i];
    case SD_C64:
        return CMPLX(((const float *)p)[2 * i], ((const float *)p)[2 * i + 1]);
    default:
        return CMPLX(((const double *)p)[2 * i],
                     ((const double *)p)[2 * i + 1]);
    }
}

static void store(sd_dtype t, void *p, int64_t i, number v)
{
    switch (t) {
    case SD_F32:
        ((float *)p)[i] = (float)creal(v);
        break;
    case SD_F64:
        ((double *)p)[i] = creal(v);
        break;
    case SD_C64:
        ((float *)p)[2 * i] = (float)creal(v);
        ((float *)p)[2 * i + 1] = (float)cimag(v);
        break;
    default:
        ((double *)p)[2 * i] = creal(v);
        ((double *)p)[2 * i + 1] = cimag(v);
    }
}

static matrix loaded(sd_dtype t, const void *p, int64_t n)
{
    matrix m = malloc((size_t)(n + 1) * sizeof *m);

    for (int64_t i = 0; i < n; i++)
        m[i] = load(t, p, i);
    return m;
}

/* x[m, k] y[k, n], or with the conjugate transpose of y[n, k]. */
static matrix times(const number *x, const number *y, int64_t m, int64_t k,
                    int64_t n, bool adjoint)
{
    matrix r = calloc((size_t)(m * n + 1), sizeof *r);

    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++)
                r[i * n + j] += x[i * k + l] *
                                (adjoint ? conj(y[j * k + l]) : y[l * n + j]);
    return r;
}

static double distance(const number *x, const number *y, int64_t n)
{
    double d = 0;

    for (int64_t i = 0; i < n; i++)
        d = fmax(d, cabs(x[i] - y[i]));
    return d;
}

static void free_all(int n, matrix *m)
{
    for (int i = 0; i < n; i++)
        free(m[i]);
}

/* ---- a call with memory ---- */

typedef struct {
    libcall c;
    libcall_args a;
    void *p[8];
} request;

static double draw(uint64_t *s)
{
    *s = *s * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(int32_t)(*s >> 32) * 0x1p-31;
}

/* Operands of random numbers. */
static request request_of(libcall c)
{
    request r = {.c = c, .a = libcall_args_of(&c)};
    uint64_t s = 3;

    for (int i = 0; i < r.a.n; i++) {
        r.p[i] =
            calloc((size_t)r.a.at[i].n + 1, sd_dtype_bytes(r.a.at[i].type));
        for (int64_t k = 0; k < r.a.at[i].n && i < r.a.noperand; k++)
            if (r.a.at[i].type != SD_S32)
                store(r.a.at[i].type, r.p[i], k, CMPLX(draw(&s), draw(&s)));
    }
    return r;
}

static void run(request *r)
{
    thunk t = {
        .kind = THUNK_LIBCALL, .name = "t", .narg = r->a.n, .call = &r->c};
    sd_status st = xpu_lib_run(lib, &t, r->p);

    if (st)
        fail_msg("%s", st->message);
}

static void finish(request *r)
{
    for (int i = 0; i < r->a.n; i++)
        free(r->p[i]);
}

static matrix slice(const request *r, int i, int64_t batch, int64_t n)
{
    size_t each = (size_t)n * sd_dtype_bytes(r->a.at[i].type);

    return loaded(r->a.at[i].type, (char *)r->p[i] + (size_t)batch * each, n);
}

/* Operand 0 of n by n becomes Hermitian, plus `diagonal`. */
static void make_hermitian(request *r, sd_dtype t, int64_t batch, int64_t n,
                           double diagonal)
{
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k <= i; k++) {
                number v = load(t, r->p[0], (b * n + i) * n + k);

                if (k == i)
                    v = creal(v) + diagonal;
                store(t, r->p[0], (b * n + i) * n + k, v);
                store(t, r->p[0], (b * n + k) * n + i, conj(v));
            }
}

static void close_enough(const char *what, sd_dtype t, int64_t n, double error)
{
    if (!(error <= 40 * (double)n * precision(t)))
        fail_msg("%s of %s, %d: %g", what, sd_dtype_name(t), (int)n, error);
}

/* ---- the operations ---- */

static const int64_t sides[] = {1, 2, 7, 33};
enum { BATCH = 3 };

static void one_cholesky(sd_dtype t, int64_t n, bool lower)
{
    request r = request_of((libcall){
        .op = LIBCALL_CHOLESKY,
        .cholesky = {.type = t, .batch = BATCH, .n = n, .lower = lower}});

    make_hermitian(&r, t, BATCH, n, 2 * (double)n);
    run(&r);
    for (int64_t b = 0; b < BATCH; b++) {
        matrix m[4] = {slice(&r, 0, b, n * n), slice(&r, 1, b, n * n)};

        m[2] = calloc((size_t)(n * n), sizeof *m[2]);
        for (int64_t i = 0; i < n * n; i++) /* lower from either */
            m[2][i] = lower ? m[1][i] : conj(m[1][i % n * n + i / n]);
        m[3] = times(m[2], m[2], n, n, n, true);
        close_enough("cholesky", t, n, distance(m[0], m[3], n * n) / (double)n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = i + 1; k < n; k++)
                assert_true(m[2][i * n + k] == 0);
        free_all(4, m);
    }
    finish(&r);
}

static void one_solve(sd_dtype t, int64_t n, int form)
{
    int64_t p = form & 1 ? n : 5, q = form & 1 ? 5 : n;
    request r = request_of((libcall){.op = LIBCALL_SOLVE,
                                     .solve = {.type = t,
                                               .batch = BATCH,
                                               .p = p,
                                               .q = q,
                                               .left = form & 1,
                                               .lower = form >> 1 & 1,
                                               .unit = form >> 2 & 1,
                                               .transpose = form >> 3}});

    make_hermitian(&r, t, BATCH, n, 2 * (double)n);
    run(&r);
    for (int64_t b = 0; b < BATCH; b++) {
        matrix m[4] = {slice(&r, 0, b, n * n), slice(&r, 1, b, p * q),
                       slice(&r, 2, b, p * q)};
        matrix op = calloc((size_t)(n * n), sizeof *op);

        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < n; k++) {
                bool kept = r.c.solve.lower ? k <= i : k >= i;
                number v = i == k && r.c.solve.unit ? 1 : m[0][i * n + k];

                v = kept ? v : 0;
                if (r.c.solve.transpose)
                    op[k * n + i] =
                        r.c.solve.transpose == LIBCALL_ADJOINT ? conj(v) : v;
                else
                    op[i * n + k] = v;
            }
        m[3] = form & 1 ? times(op, m[2], n, n, q, false)
                        : times(m[2], op, p, n, n, false);
        /* without its diagonal it may be far from well conditioned */
        if (!r.c.solve.unit || n < 8)
            close_enough("solve", t, n * n, distance(m[1], m[3], p * q));
        free(op);
        free_all(4, m);
    }
    finish(&r);
}

static void one_lu(sd_dtype t, int64_t m, int64_t n)
{
    int64_t k = SD_MIN(m, n);
    request r = request_of((libcall){
        .op = LIBCALL_LU, .lu = {.type = t, .batch = BATCH, .m = m, .n = n}});

    run(&r);
    for (int64_t b = 0; b < BATCH; b++) {
        const int32_t *order = (const int32_t *)r.p[3] + b * m;
        matrix a[5] = {slice(&r, 0, b, m * n), slice(&r, 1, b, m * n)};

        a[2] = calloc((size_t)(m * k), sizeof *a[2]);
        a[3] = calloc((size_t)(k * n), sizeof *a[3]);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                if (j < i && j < k)
                    a[2][i * k + j] = a[1][i * n + j];
                else if (i < k)
                    a[3][i * n + j] = a[1][i * n + j];
        for (int64_t i = 0; i < k; i++)
            a[2][i * k + i] = 1;
        a[4] = times(a[2], a[3], m, k, n, false);
        for (int64_t i = 0; i < m; i++)
            close_enough("lu", t, m + n,
                         distance(a[0] + order[i] * n, a[4] + i * n, n));
        free_all(5, a);
    }
    finish(&r);
}

/* Factors, then the product of the reflections, then that applied. */
static void one_qr(sd_dtype t, int64_t m, int64_t n)
{
    int64_t k = SD_MIN(m, n);
    request r = request_of((libcall){
        .op = LIBCALL_QR, .qr = {.type = t, .batch = 1, .m = m, .n = n}});
    request q = request_of((libcall){
        .op = LIBCALL_REFLECTIONS,
        .reflections = {.type = t, .batch = 1, .m = m, .n = k, .t = k}});
    request c = request_of((libcall){.op = LIBCALL_REFLECT,
                                     .reflect = {.type = t,
                                                 .batch = 1,
                                                 .m = m,
                                                 .n = k,
                                                 .t = k,
                                                 .p = m,
                                                 .q = n,
                                                 .left = true,
                                                 .adjoint = true}});
    matrix a[6];

    run(&r);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < k; j++)
            store(t, q.p[0], i * k + j, load(t, r.p[1], i * n + j));
    memcpy(q.p[1], r.p[2], (size_t)k * sd_dtype_bytes(t));
    run(&q);
    memcpy(c.p[0], q.p[0], (size_t)(m * k) * sd_dtype_bytes(t));
    memcpy(c.p[1], r.p[2], (size_t)k * sd_dtype_bytes(t));
    memcpy(c.p[2], r.p[0], (size_t)(m * n) * sd_dtype_bytes(t));
    run(&c);
    a[0] = slice(&r, 0, 0, m * n);
    a[1] = slice(&q, 2, 0, m * k);
    a[2] = slice(&r, 1, 0, m * n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < SD_MIN(i, n); j++)
            a[2][i * n + j] = 0;
    a[3] = times(a[1], a[2], m, k, n, false);
    a[4] = slice(&c, 3, 0, m * n);
    close_enough("qr", t, m + n, distance(a[0], a[3], m * n));
    close_enough("reflect", t, m + n, distance(a[2], a[4], m * n));
    a[5] = NULL;
    free_all(6, a);
    finish(&r), finish(&q), finish(&c);
}

static void one_eigh(sd_dtype t, int64_t n, bool lower)
{
    request r = request_of(
        (libcall){.op = LIBCALL_EIGH,
                  .eigh = {.type = t, .batch = BATCH, .n = n, .lower = lower}});

    make_hermitian(&r, t, BATCH, n, 0);
    run(&r);
    for (int64_t b = 0; b < BATCH; b++) {
        matrix m[4] = {slice(&r, 0, b, n * n), slice(&r, 1, b, n * n),
                       slice(&r, 2, b, n)};

        m[3] = times(m[0], m[1], n, n, n, false);
        for (int64_t i = 0; i < n * n; i++)
            m[1][i] *= m[2][i % n];
        close_enough("eigh", t, 4 * n, distance(m[1], m[3], n * n));
        for (int64_t i = 1; i < n; i++)
            assert_true(creal(m[2][i - 1]) <= creal(m[2][i]));
        free_all(4, m);
    }
    finish(&r);
}

static void one_svd(sd_dtype t, int64_t m, int64_t n, bool full)
{
    int64_t k = SD_MIN(m, n), mc = full ? m : k, nr = full ? n : k;
    request r = request_of((libcall){.op = LIBCALL_SVD,
                                     .svd = {.type = t,
                                             .batch = BATCH,
                                             .m = m,
                                             .n = n,
                                             .full = full,
                                             .vectors = true}});
    request s = request_of((libcall){
        .op = LIBCALL_SVD,
        .svd = {.type = t, .batch = BATCH, .m = m, .n = n, .full = full}});

    run(&r);
    run(&s);
    for (int64_t b = 0; b < BATCH; b++) {
        matrix a[6] = {slice(&r, 0, b, m * n), slice(&r, 1, b, k),
                       slice(&r, 2, b, m * mc), slice(&r, 3, b, nr * n)};
        matrix alone = slice(&s, 1, b, k);

        close_enough("singular values", t, 4 * (m + n),
                     distance(alone, a[1], k));
        a[4] = calloc((size_t)(m * k), sizeof *a[4]);
        for (int64_t i = 0; i < m * k; i++)
            a[4][i] = a[2][i / k * mc + i % k] * a[1][i % k];
        a[5] = times(a[4], a[3], m, k, n, false);
        close_enough("svd", t, 4 * (m + n), distance(a[0], a[5], m * n));
        free(alone);
        free_all(6, a);
    }
    finish(&r), finish(&s);
}

static void one_eig(sd_dtype t, int64_t n)
{
    request r = request_of((libcall){
        .op = LIBCALL_EIG,
        .eig = {
            .type = t, .batch = BATCH, .n = n, .left = true, .right = true}});

    run(&r);
    for (int64_t b = 0; b < BATCH; b++) {
        matrix m[6] = {slice(&r, 0, b, n * n), slice(&r, 1, b, n),
                       slice(&r, 2, b, n * n), slice(&r, 3, b, n * n)};

        m[4] = times(m[0], m[3], n, n, n, false); /* A V = V W */
        for (int64_t i = 0; i < n * n; i++)
            m[3][i] *= m[1][i % n];
        close_enough("right vectors", t, 8 * n, distance(m[4], m[3], n * n));
        for (int64_t i = 0; i < n * n; i++) /* L^H A = W L^H */
            m[3][i] = conj(m[2][i % n * n + i / n]);
        m[5] = times(m[3], m[0], n, n, n, false);
        for (int64_t i = 0; i < n * n; i++)
            m[3][i] *= m[1][i / n];
        close_enough("left vectors", t, 8 * n, distance(m[5], m[3], n * n));
        free_all(6, m);
    }
    finish(&r);
}

static void one_schur(sd_dtype t, int64_t n)
{
    request r = request_of((libcall){
        .op = LIBCALL_SCHUR,
        .schur = {.type = t, .batch = BATCH, .n = n, .vectors = true}});

    run(&r);
    for (int64_t b = 0; b < BATCH; b++) {
        matrix m[5] = {slice(&r, 0, b, n * n), slice(&r, 1, b, n * n),
                       slice(&r, 2, b, n * n)};

        m[3] = times(m[2], m[1], n, n, n, false);
        m[4] = times(m[3], m[2], n, n, n, true);
        close_enough("schur", t, 4 * n, distance(m[0], m[4], n * n));
        free_all(5, m);
    }
    finish(&r);
}

/* The diagonals and the reflections give the matrix again. */
static void one_tridiagonal(sd_dtype t, int64_t n, bool lower)
{
    request r = request_of((libcall){
        .op = LIBCALL_TRIDIAGONAL,
        .tridiagonal = {.type = t, .batch = 1, .n = n, .lower = lower}});
    request e = request_of(
        (libcall){.op = LIBCALL_EIGH,
                  .eigh = {.type = t, .batch = 1, .n = n, .lower = lower}});
    matrix m[3];
    number trace = 0, norm = 0;

    make_hermitian(&r, t, 1, n, 0);
    memcpy(e.p[0], r.p[0], (size_t)(n * n) * sd_dtype_bytes(t));
    run(&r);
    run(&e);
    m[0] = slice(&r, 2, 0, n);
    m[1] = slice(&r, 3, 0, n - 1);
    m[2] = slice(&e, 2, 0, n);
    for (int64_t i = 0; i < n; i++) { /* the same eigenvalues: two sums */
        trace += m[0][i] - m[2][i];
        norm += m[0][i] * m[0][i] - m[2][i] * m[2][i] +
                (i + 1 < n ? 2 * m[1][i] * m[1][i] : 0);
    }
    close_enough("tridiagonal", t, 8 * n * n, cabs(trace) + cabs(norm));
    free_all(3, m);
    finish(&r), finish(&e);
}

static void one_hessenberg(sd_dtype t, int64_t n)
{
    request r =
        request_of((libcall){.op = LIBCALL_HESSENBERG,
                             .hessenberg = {.type = t, .batch = 1, .n = n}});
    number trace = 0;
    matrix m[2];

    run(&r);
    m[0] = slice(&r, 0, 0, n * n);
    m[1] = slice(&r, 1, 0, n * n);
    for (int64_t i = 0; i < n; i++)
        trace += m[0][i * n + i] - m[1][i * n + i];
    close_enough("hessenberg", t, 8 * n, cabs(trace));
    free_all(2, m);
    finish(&r);
}

static void one_geqp3(sd_dtype t, int64_t m, int64_t n)
{
    request r = request_of((libcall){
        .op = LIBCALL_GEQP3, .geqp3 = {.type = t, .batch = 1, .m = m, .n = n}});
    const int32_t *order;
    matrix a[2];

    run(&r);
    order = r.p[3];
    a[0] = slice(&r, 0, 0, m * n);
    a[1] = slice(&r, 2, 0, m * n);
    for (int64_t j = 0; j < n; j++) { /* columns keep their lengths */
        double was = 0, is = 0;

        for (int64_t i = 0; i < m; i++) {
            number v = a[0][i * n + order[j] - 1];

            was += creal(v * conj(v));
            v = i <= j ? a[1][i * n + j] : 0;
            is += creal(v * conj(v));
        }
        close_enough("geqp3", t, 4 * (m + n), fabs(was - is));
    }
    free_all(2, a);
    finish(&r);
}

static void one_tridiagonal_solve(sd_dtype t, int64_t n, int64_t columns)
{
    request r = request_of(
        (libcall){.op = LIBCALL_TRIDIAGONAL_SOLVE,
                  .tridiagonal_solve = {
                      .type = t, .batch = BATCH, .n = n, .p = columns}});

    for (int64_t i = 0; i < BATCH * n; i++)
        store(t, r.p[1], i, load(t, r.p[1], i) + 4);
    run(&r);
    for (int64_t b = 0; b < BATCH; b++) {
        matrix m[5] = {slice(&r, 0, b, n), slice(&r, 1, b, n),
                       slice(&r, 2, b, n), slice(&r, 3, b, n * columns),
                       slice(&r, 4, b, n * columns)};

        for (int64_t i = 0; i < n * columns; i++) {
            int64_t row = i / columns;
            number v = m[1][row] * m[4][i];

            if (row)
                v += m[0][row] * m[4][i - columns];
            if (row + 1 < n)
                v += m[2][row] * m[4][i + columns];
            close_enough("tridiagonal solve", t, 4 * n, cabs(v - m[3][i]));
        }
        free_all(5, m);
    }
    finish(&r);
}

/* ---- tests ---- */

static sd_pool *pool;

static int open_lib(void **state)
{
    (void)state;
    return sd_pool_create(2, &pool) || xpu_lib_open(pool, &lib);
}

static int close_lib(void **state)
{
    (void)state;
    xpu_lib_close(lib);
    sd_pool_destroy(pool);
    return 0;
}

static void need_lapack(void)
{
    if (!(xpu_lib_present(lib) & DEVICE_LIB_LAPACK)) {
        print_message("%s\n", xpu_lib_version(lib));
        skip();
    }
}

static void factors_give_the_matrix_again(void **state)
{
    (void)state;
    need_lapack();
    for (size_t i = 0; i < SD_COUNTOF(types); i++)
        for (size_t k = 0; k < SD_COUNTOF(sides); k++) {
            sd_dtype t = types[i];
            int64_t n = sides[k];

            one_cholesky(t, n, false);
            one_cholesky(t, n, true);
            for (int form = 0; form < 24; form++)
                one_solve(t, n, form);
            for (int64_t m = 1; m < 60; m += 13) {
                one_lu(t, m, n);
                one_qr(t, m, n);
                one_geqp3(t, m, n);
            }
            one_tridiagonal_solve(t, n, 1);
            one_tridiagonal_solve(t, n, 2);
        }
}

static void values_and_vectors_fit_the_matrix(void **state)
{
    (void)state;
    need_lapack();
    for (size_t i = 0; i < SD_COUNTOF(types); i++)
        for (size_t k = 0; k < SD_COUNTOF(sides); k++) {
            sd_dtype t = types[i];
            int64_t n = sides[k];

            one_eigh(t, n, false);
            one_eigh(t, n, true);
            for (int64_t m = 1; m < 60; m += 13) {
                one_svd(t, m, n, false);
                one_svd(t, m, n, true);
            }
            one_eig(t, n);
            one_schur(t, n);
            one_tridiagonal(t, n, false);
            one_tridiagonal(t, n, true);
            one_hessenberg(t, n);
        }
}

static void what_is_not_finite_gives_nan(void **state)
{
    static const libcall_op op[] = {LIBCALL_EIGH, LIBCALL_EIG, LIBCALL_SCHUR,
                                    LIBCALL_SVD, LIBCALL_CHOLESKY};

    (void)state;
    need_lapack();
    for (size_t i = 0; i < SD_COUNTOF(op); i++)
        for (size_t k = 0; k < SD_COUNTOF(types); k++) {
            libcall c = {.op = op[i]};
            request r;

            if (op[i] == LIBCALL_SVD)
                c.svd = (libcall_svd){types[k], BATCH, 4, 4, true, true};
            else if (op[i] == LIBCALL_EIG)
                c.eig = (libcall_eig){types[k], BATCH, 4, true, true};
            else /* the others begin alike */
                c.eigh = (libcall_eigh){types[k], BATCH, 4, true};
            r = request_of(c);
            make_hermitian(&r, types[k], BATCH, 4, 8);
            store(types[k], r.p[0], 16, NAN); /* of the second matrix */
            run(&r);
            for (int a = r.a.noperand; a < r.a.n; a++) {
                int64_t each = r.a.at[a].n / BATCH;

                for (int64_t e = 0; e < r.a.at[a].n; e++) {
                    number v = load(r.a.at[a].type, r.p[a], e);
                    bool beside = op[i] == LIBCALL_CHOLESKY &&
                                  e % each % 4 > e % each / 4;

                    assert_int_equal(e / each == 1 && !beside,
                                     isnan(creal(v)) != 0);
                }
            }
            finish(&r);
        }
}

static void integers_have_no_factors(void **state)
{
    request r = request_of((libcall){
        .op = LIBCALL_LU, .lu = {.type = SD_S32, .batch = 1, .m = 4, .n = 4}});
    thunk t = {.kind = THUNK_LIBCALL, .name = "t", .narg = 4, .call = &r.c};
    sd_status st;

    (void)state;
    need_lapack();
    st = xpu_lib_run(lib, &t, r.p);
    assert_non_null(st);
    assert_string_equal(st->message, "t: LAPACK's lu of s32");
    assert_int_equal(st->code, SD_UNIMPLEMENTED);
    sd_status_free(st);
    finish(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_give_the_matrix_again),
        cmocka_unit_test(values_and_vectors_fit_the_matrix),
        cmocka_unit_test(what_is_not_finite_gives_nan),
        cmocka_unit_test(integers_have_no_factors),
    };

    return cmocka_run_group_tests(tests, open_lib, close_lib);
}
