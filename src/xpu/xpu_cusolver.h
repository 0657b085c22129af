/* cuSOLVER, which does the linear algebra of large matrices on CUDA devices
 * (docs/adr/0038).  Its matrices are by columns, ours by rows: a row-major
 * matrix read by columns is its transpose, and where that will do nothing is
 * moved.  All work goes into the device's queue; what a routine cannot do, the
 * device finds out, and kernels of ours write NaN then. */
#ifndef XPU_CUSOLVER_H
#define XPU_CUSOLVER_H

#include "xpu_cuda_api.h"

/* Name without its prefix, arguments.  Those of SOLVER begin with cusolverDn,
 * a routine of any type with X; the others, of one type each, and BLAS's have
 * the letter of the type. */
#define CUSOLVER_PLAIN(X) \
    X(Create, (void **out)) \
    X(Destroy, (void *h)) \
    X(SetStream, (void *h, cu_stream s)) \
    X(CreateParams, (void **out)) \
    X(DestroyParams, (void *p)) \
    X(Xpotrf_bufferSize, \
      (void *h, void *p, int half, int64_t n, int t, const void *a, \
       int64_t lda, int with, size_t *device, size_t *host)) \
    X(Xpotrf, (void *h, void *p, int half, int64_t n, int t, void *a, \
               int64_t lda, int with, void *device, size_t ndevice, \
               void *host, size_t nhost, void *info)) \
    X(Xgetrf_bufferSize, \
      (void *h, void *p, int64_t m, int64_t n, int t, const void *a, \
       int64_t lda, int with, size_t *device, size_t *host)) \
    X(Xgetrf, (void *h, void *p, int64_t m, int64_t n, int t, void *a, \
               int64_t lda, void *pivots, int with, void *device, \
               size_t ndevice, void *host, size_t nhost, void *info)) \
    X(Xgeqrf_bufferSize, \
      (void *h, void *p, int64_t m, int64_t n, int t, const void *a, \
       int64_t lda, int t_tau, const void *tau, int with, size_t *device, \
       size_t *host)) \
    X(Xgeqrf, (void *h, void *p, int64_t m, int64_t n, int t, void *a, \
               int64_t lda, int t_tau, void *tau, int with, void *device, \
               size_t ndevice, void *host, size_t nhost, void *info)) \
    X(Xsyevd_bufferSize, \
      (void *h, void *p, int job, int half, int64_t n, int t, const void *a, \
       int64_t lda, int t_w, const void *w, int with, size_t *device, \
       size_t *host)) \
    X(Xsyevd, (void *h, void *p, int job, int half, int64_t n, int t, void *a, \
               int64_t lda, int t_w, void *w, int with, void *device, \
               size_t ndevice, void *host, size_t nhost, void *info)) \
    X(Xgesvd_bufferSize, \
      (void *h, void *p, signed char job_u, signed char job_v, int64_t m, \
       int64_t n, int t, const void *a, int64_t lda, int t_s, const void *s, \
       int t_u, const void *u, int64_t ldu, int t_v, const void *v, \
       int64_t ldv, int with, size_t *device, size_t *host)) \
    X(Xgesvd, (void *h, void *p, signed char job_u, signed char job_v, \
               int64_t m, int64_t n, int t, void *a, int64_t lda, int t_s, \
               void *s, int t_u, void *u, int64_t ldu, int t_v, void *v, \
               int64_t ldv, int with, void *device, size_t ndevice, \
               void *host, size_t nhost, void *info))
typedef int cusolver_orgqr_size(void *h, int m, int n, int k, const void *a,
                                int lda, const void *tau, int *size);
typedef int cusolver_orgqr(void *h, int m, int n, int k, void *a, int lda,
                           const void *tau, void *work, int nwork, void *info);
typedef int cublas_geam(void *h, int how_a, int how_b, int m, int n,
                        const void *alpha, const void *a, int lda,
                        const void *beta, const void *b, int ldb, void *c,
                        int ldc);
typedef int cublas_gemm(void *h, int how_a, int how_b, int m, int n, int k,
                        const void *alpha, const void *a, int lda,
                        const void *b, int ldb, const void *beta, void *c,
                        int ldc);
typedef int cublas_trsm(void *h, int side, int half, int how, int diagonal,
                        int m, int n, const void *alpha, const void *a, int lda,
                        void *b, int ldb);

enum { CUSOLVER_TYPES = 4 }; /* f32, f64, c64, c128 */

struct xpu_cusolver { /* the library: of a driver, NULL where there is none */
#define X(name, args) int(*name) args;
    CUSOLVER_PLAIN(X)
#undef X
    int (*BlasCreate)(void **out);
    int (*BlasDestroy)(void *h);
    int (*BlasSetStream)(void *h, cu_stream s);
    cusolver_orgqr_size *orgqr_size[CUSOLVER_TYPES];
    cusolver_orgqr *orgqr[CUSOLVER_TYPES];
    cublas_geam *geam[CUSOLVER_TYPES];
    cublas_gemm *gemm[CUSOLVER_TYPES];
    cublas_trsm *trsm[CUSOLVER_TYPES];
    char said[48]; /* "cuSOLVER 12.0.4" */
};

/* What one device's calls use, made by the first. */
enum { CUSOLVER_A, CUSOLVER_B, CUSOLVER_C, CUSOLVER_WORK, CUSOLVER_INFO,
       CUSOLVER_AREAS };
enum { CUSOLVER_CLEAR, CUSOLVER_CHECK, CUSOLVER_SPOIL, CUSOLVER_HALVE,
       CUSOLVER_COMPARE, CUSOLVER_EXCHANGE, CUSOLVER_KERNELS };
struct xpu_cusolver_room {
    void *handle, *params, *blas;
    cu_module module;
    cu_function kernel[CUSOLVER_KERNELS];
    struct {
        void *at; /* of the system: it stays until the device is closed */
        size_t bytes;
    } area[CUSOLVER_AREAS];
    void *host; /* of a routine's host part */
    size_t nhost;
};

typedef struct { /* a call */
    xpu_cuda *v;
    const xpu_cusolver *l;
    xpu_cusolver_room *r;
    int letter;     /* the type, of CUSOLVER_TYPES */
    int code, part; /* the library's numbers of the type and its real part's */
    size_t size;    /* bytes of an element, */
    bool wide;      /* of which a real one has 8 */
    const void *one, *zero; /* of the type */
    void *info;     /* on the device: a word of the library's, not 0 where it
                       has no result, and one of CHECK's */
} cusolver_job;

/* Memory of the device's, kept for later calls; what is in it is not. */
sd_status cusolver_area(const cusolver_job *j, int area, size_t bytes,
                        void **out);
/* A routine's work space on both sides. */
typedef struct {
    void *device, *host;
    size_t ndevice, nhost;
} cusolver_work;
sd_status cusolver_get_work(const cusolver_job *j, cusolver_work *w);
/* to[c, r] = from[r, c], conjugated too. */
sd_status cusolver_turn(const cusolver_job *j, void *to, const void *from,
                        int64_t rows, int64_t cols, bool conjugate);
sd_status cusolver_copy(const cusolver_job *j, void *to, const void *from,
                        size_t bytes);
/* What a function of the library's returned. */
sd_status cusolver_said(int status, const char *call);
sd_status cublas_said(int status, const char *call);
#define CUSOLVER(j, name, ...) \
    cusolver_said((j)->l->name((j)->r->handle, __VA_ARGS__), \
                  "cusolverDn" #name)
/* A routine whose work space is said for the same arguments: that, then it. */
#define CUSOLVER_WITH_WORK(j, w, name, ...) \
    (CUSOLVER(j, name##_bufferSize, (j)->r->params, __VA_ARGS__, \
              &(w)->ndevice, &(w)->nhost) \
         ?: cusolver_get_work(j, w) \
         ?: CUSOLVER(j, name, (j)->r->params, __VA_ARGS__, (w)->device, \
                     (w)->ndevice, (w)->host, (w)->nhost, (j)->info))

/* ---- kernels: xpu_cusolver_kernels.c ---- */

sd_status cusolver_load_kernels(xpu_cuda *v, xpu_cusolver_room *r);
/* Both words of info become 0. */
sd_status cusolver_clear(const cusolver_job *j);
/* CHECK's word is not 0 where one of n real numbers is not finite. */
sd_status cusolver_check(const cusolver_job *j, const void *p, int64_t n);
/* The same where an element of n x n is farther than `limit` from the
 * identity's. */
sd_status cusolver_compare(const cusolver_job *j, const void *p, int64_t n,
                           double limit);
/* Are both words 0?  It waits until the device has come there. */
sd_status cusolver_is_fine(const cusolver_job *j, bool *out);
/* n real numbers become NaN where CHECK's word is not 0, or, `any`, one of
 * both. */
sd_status cusolver_spoil(const cusolver_job *j, void *p, int64_t n, bool any);
/* The lower or the upper triangle of n x n stays, zeros stand beside it. */
sd_status cusolver_halve(const cusolver_job *j, void *p, int64_t n, bool lower);
/* k row exchanges, from 0 on, of the library's (64 bits, from 1 on), and the
 * order of m rows that they lead to. */
sd_status cusolver_exchange(const cusolver_job *j, const void *from, int64_t k,
                            int64_t m, void *pivot, void *order);

/* ---- operations, on one matrix: xpu_cusolver_operations.c ---- */

#define CUSOLVER_OPERATIONS(X) \
    X(EIGH, eigh) X(SVD, svd) X(LU, lu) X(QR, qr) \
    X(REFLECTIONS, reflections) X(CHOLESKY, cholesky) X(SOLVE, solve)
#define X(id, name) \
    sd_status cusolver_##name(const cusolver_job *j, const libcall_##name *c, \
                              char *const *p);
CUSOLVER_OPERATIONS(X)
#undef X

#endif
