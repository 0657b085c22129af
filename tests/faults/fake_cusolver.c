/* A libcusolver.so.12 for tests, with cuBLAS's functions in it: transposes and
 * row exchanges are made, in the stream's order, nothing else is computed;
 * calls and objects are counted, and a call fails on demand. */
#include "fake_calls.h"
#include "xpu_cusolver.h"

#include <dlfcn.h>

#define API __attribute__((visibility("default")))
enum { FAILED = 6, WORK = 96 };

/* Counts begin anew.  fails: the call that fails; -1: none, and syevd says that
 * it has no result. */
API void fake_cusolver_begin(void *driver, long fails);
API long fake_cusolver_calls(void);
API long fake_cusolver_live(void);

static cu_stream stream, blas_stream;
static int (*launch)(cu_stream s, void (*fn)(void *), void *ctx);

void fake_cusolver_begin(void *driver, long fails)
{
    fail_at(fails, FAILED);
    *(void **)&launch = dlsym(driver, "cuLaunchHostFunc");
}

long fake_cusolver_calls(void)
{
    return ncall;
}

long fake_cusolver_live(void)
{
    return nlive;
}

/* A piece of work in a stream: of a transpose rows and columns of `from`, of
 * exchanges none. */
typedef struct {
    void *to;
    const void *from;
    int rows, cols;
} work;

static void do_work(void *ctx)
{
    work *w = ctx;
    float *to = w->to;
    const float *from = w->from;

    for (int r = 0; from && r < w->rows; r++)
        for (int c = 0; c < w->cols; c++)
            to[c * w->rows + r] = from[r * w->cols + c];
    for (int i = 0; !from && i < w->rows; i++)
        ((int64_t *)w->to)[i] = w->rows - i;
    free(w);
}

static int put(cu_stream s, work is)
{
    work *w = malloc(sizeof *w);

    *w = is;
    if (!launch(s, do_work, w))
        return 0;
    free(w);
    return FAILED;
}

static int sizes(size_t *device, size_t *host)
{
    *device = *host = WORK;
    return answer();
}

/* ---- cuSOLVER ---- */

#define X(name, args) API int cusolverDn##name args;
CUSOLVER_PLAIN(X)
#undef X
API int cusolverGetVersion(int *out);

int cusolverGetVersion(int *out)
{
    *out = 12004;
    return 0;
}

int cusolverDnCreate(void **out)
{
    return make(out);
}

int cusolverDnDestroy(void *h)
{
    return drop(h);
}

int cusolverDnCreateParams(void **out)
{
    return make(out);
}

int cusolverDnDestroyParams(void *p)
{
    return drop(p);
}

int cusolverDnSetStream(void *h, cu_stream s)
{
    (void)h;
    stream = s;
    return answer();
}

#define UNUSED(...) \
    (void)(const void *[]) \
    { \
        __VA_ARGS__ \
    }

int cusolverDnXpotrf_bufferSize(void *h, void *p, int half, int64_t n, int t,
                                const void *a, int64_t lda, int with,
                                size_t *device, size_t *host)
{
    UNUSED(h, p, a);
    return half || lda != n || t != with ? FAILED : sizes(device, host);
}

int cusolverDnXpotrf(void *h, void *p, int half, int64_t n, int t, void *a,
                     int64_t lda, int with, void *device, size_t ndevice,
                     void *host, size_t nhost, void *info)
{
    UNUSED(h, p, a, device, host, info);
    return half || lda != n || t != with || ndevice != WORK || nhost != WORK
               ? FAILED
               : answer();
}

int cusolverDnXgetrf_bufferSize(void *h, void *p, int64_t m, int64_t n, int t,
                                const void *a, int64_t lda, int with,
                                size_t *device, size_t *host)
{
    UNUSED(h, p, a);
    return lda != m || n < 1 || t != with ? FAILED : sizes(device, host);
}

int cusolverDnXgetrf(void *h, void *p, int64_t m, int64_t n, int t, void *a,
                     int64_t lda, void *pivots, int with, void *device,
                     size_t ndevice, void *host, size_t nhost, void *info)
{
    int bad = lda != m || t != with || ndevice != WORK || nhost != WORK;

    UNUSED(h, p, a, device, host, info);
    bad = bad ? FAILED : answer();
    return bad ? bad : put(stream, (work){pivots, NULL, (int)SD_MIN(m, n), 0});
}

int cusolverDnXgeqrf_bufferSize(void *h, void *p, int64_t m, int64_t n, int t,
                                const void *a, int64_t lda, int t_tau,
                                const void *tau, int with, size_t *device,
                                size_t *host)
{
    UNUSED(h, p, a, tau);
    return lda != m || n < 1 || t != with || t != t_tau ? FAILED
                                                        : sizes(device, host);
}

int cusolverDnXgeqrf(void *h, void *p, int64_t m, int64_t n, int t, void *a,
                     int64_t lda, int t_tau, void *tau, int with, void *device,
                     size_t ndevice, void *host, size_t nhost, void *info)
{
    UNUSED(h, p, a, tau, device, host, info);
    return lda != m || n < 1 || t != with || t != t_tau || ndevice != WORK ||
                   nhost != WORK
               ? FAILED
               : answer();
}

int cusolverDnXsyevd_bufferSize(void *h, void *p, int job, int half, int64_t n,
                                int t, const void *a, int64_t lda, int t_w,
                                const void *w, int with, size_t *device,
                                size_t *host)
{
    UNUSED(h, p, a, w);
    return job != 1 || half > 1 || lda != n || t != with || t_w > 1
               ? FAILED
               : sizes(device, host);
}

int cusolverDnXsyevd(void *h, void *p, int job, int half, int64_t n, int t,
                     void *a, int64_t lda, int t_w, void *w, int with,
                     void *device, size_t ndevice, void *host, size_t nhost,
                     void *info)
{
    int bad = job != 1 || half > 1 || lda != n || t != with || t_w > 1 ||
              ndevice != WORK || nhost != WORK;

    UNUSED(h, p, a, w, device, host);
    bad = bad ? FAILED : answer();
    return bad || bad_call >= 0 ? bad : put(stream, (work){info, NULL, 1, 0});
}

int cusolverDnXgesvd_bufferSize(void *h, void *p, signed char job_u,
                                signed char job_v, int64_t m, int64_t n, int t,
                                const void *a, int64_t lda, int t_s,
                                const void *s, int t_u, const void *u,
                                int64_t ldu, int t_v, const void *v,
                                int64_t ldv, int with, size_t *device,
                                size_t *host)
{
    UNUSED(h, p, a, s, u, v);
    return job_u != job_v || m < n || lda != m || ldu != m || ldv != n ||
                   t_s > 1 || t_u != t || t_v != t || with != t
               ? FAILED
               : sizes(device, host);
}

int cusolverDnXgesvd(void *h, void *p, signed char job_u, signed char job_v,
                     int64_t m, int64_t n, int t, void *a, int64_t lda, int t_s,
                     void *s, int t_u, void *u, int64_t ldu, int t_v, void *v,
                     int64_t ldv, int with, void *device, size_t ndevice,
                     void *host, size_t nhost, void *info)
{
    UNUSED(h, p, a, s, u, v, device, host, info);
    return job_u != job_v || m < n || lda != m || ldu != m || ldv != n ||
                   t_s > 1 || t_u != t || t_v != t || with != t ||
                   ndevice != WORK || nhost != WORK
               ? FAILED
               : answer();
}

/* ---- of one type each ---- */

#define TYPED(letter, gqr) \
    API cusolver_orgqr_size cusolverDn##letter##gqr##_bufferSize; \
    API cusolver_orgqr cusolverDn##letter##gqr; \
    API cublas_geam cublas##letter##geam; \
    API cublas_gemm cublas##letter##gemm_v2; \
    API cublas_trsm cublas##letter##trsm_v2; \
    int cusolverDn##letter##gqr##_bufferSize(void *h, int m, int n, int k, \
                                             const void *a, int lda, \
                                             const void *tau, int *size) \
    { \
        UNUSED(h, a, tau); \
        *size = WORK; \
        return n > m || k > n || lda != m ? FAILED : answer(); \
    } \
    int cusolverDn##letter##gqr(void *h, int m, int n, int k, void *a, \
                                int lda, const void *tau, void *at, int nwork, \
                                void *info) \
    { \
        UNUSED(h, a, tau, at, info); \
        return n > m || k > n || lda != m || nwork != WORK ? FAILED \
                                                           : answer(); \
    } \
    int cublas##letter##geam(void *h, int how_a, int how_b, int m, int n, \
                             const void *alpha, const void *a, int lda, \
                             const void *beta, const void *b, int ldb, \
                             void *c, int ldc) \
    { \
        int bad = \
            lda != n || ldb != m || ldc != m || b != c || !how_a || how_b; \
\
        UNUSED(h, alpha, beta); \
        bad = bad ? FAILED : answer(); \
        return bad ? bad : put(blas_stream, (work){c, a, m, n}); \
    } \
    int cublas##letter##gemm_v2(void *h, int how_a, int how_b, int m, int n, \
                                int k, const void *alpha, const void *a, \
                                int lda, const void *b, int ldb, \
                                const void *beta, void *c, int ldc) \
    { \
        int bad = how_a != 2 || how_b || lda != k || ldb != k || ldc != m; \
\
        UNUSED(h, alpha, beta, b); \
        bad = bad ? FAILED : answer(); \
        return bad ? bad : put(blas_stream, (work){c, a, m, n}); \
    } \
    int cublas##letter##trsm_v2(void *h, int side, int half, int how, \
                                int diagonal, int m, int n, const void *alpha, \
                                const void *a, int lda, void *b, int ldb) \
    { \
        UNUSED(h, alpha, a, b); \
        return half > 1 || how > 2 || diagonal > 1 || lda != (side ? n : m) || \
                       ldb != m \
                   ? FAILED \
                   : answer(); \
    }
TYPED(S, orgqr)
TYPED(D, orgqr)
TYPED(C, ungqr)
TYPED(Z, ungqr)

API int cublasCreate_v2(void **out);
API int cublasDestroy_v2(void *h);
API int cublasSetStream_v2(void *h, cu_stream s);

int cublasCreate_v2(void **out)
{
    return make(out);
}

int cublasDestroy_v2(void *h)
{
    return drop(h);
}

int cublasSetStream_v2(void *h, cu_stream s)
{
    (void)h;
    blas_stream = s;
    return answer();
}
