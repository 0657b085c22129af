/* LAPACK as the linear algebra of libcall.def needs it.  Its routines are
 * Fortran's: every argument a pointer, matrices by columns; ours are by rows.
 * A row-major matrix read by columns is its transpose, and where that will do
 * (products of it, its eigenvalues) nothing is moved; elsewhere it is
 * transposed into a workspace and back.
 *
 * Integers have 32 or 64 bits as the library was built.  Single ones are passed
 * as int64_t set to 0 before: a routine of 32 bits reads and writes their low
 * half, which comes first on x86. */
#ifndef XPU_LAPACK_H
#define XPU_LAPACK_H

#include <pthread.h>

#include "xpu_engine.h"

/* Columns: ours, the name for real and for complex types. */
#define LAPACK_ROUTINES(X) \
    X(POTRF, "potrf", "potrf") \
    X(TRSM, "trsm", "trsm") \
    X(GETRF, "getrf", "getrf") \
    X(GEQRF, "geqrf", "geqrf") \
    X(ORGQR, "orgqr", "ungqr") \
    X(ORMQR, "ormqr", "unmqr") \
    X(GEQP3, "geqp3", "geqp3") \
    X(GTSV, "gtsv", "gtsv") \
    X(GESDD, "gesdd", "gesdd") \
    X(SYEVD, "syevd", "heevd") \
    X(GEEV, "geev", "geev") \
    X(GEES, "gees", "gees") \
    X(GEHRD, "gehrd", "gehrd") \
    X(SYTRD, "sytrd", "hetrd")

typedef enum {
#define X(id, real, complex) LAPACK_##id,
    LAPACK_ROUTINES(X)
#undef X
    LAPACK_COUNT
} lapack_routine;

/* What the routines are handed, of each thread that calls them.  It lives as
 * long as the engine's lock is held. */
enum { LAPACK_A, LAPACK_B, LAPACK_C, LAPACK_INTS, LAPACK_REALS, LAPACK_WORK,
       LAPACK_AREAS };

typedef struct {
    struct {
        void *at;
        size_t bytes;
    } area[LAPACK_AREAS];
    sd_status st; /* of a part of a batch */
} lapack_room;

typedef void lapack_fn(void);
typedef struct {
    lapack_fn *fn[4][LAPACK_COUNT]; /* of s, d, c, z */
    void *handle;
    sd_pool *pool; /* borrowed; or NULL */
    int nthread;
    void (*set_threads)(int);
    int (*get_threads)(void);
    size_t int_bytes;
    pthread_mutex_t lock;
    lapack_room *room; /* [nthread] */
} lapack;

typedef struct {
    lapack *l;
    lapack_room *room;
    sd_dtype type;
    int letter;        /* of s, d, c, z */
    bool complex;
    size_t size, part; /* bytes of an element and of its real part */
    int64_t info;      /* of the routine; above 0: it has no result */
    void *work;        /* of the routine, once it was asked how long */
    int64_t nwork;     /* 0: it was not */
    double asked[2];   /* its answer; complex: the real part */
} lapack_job;

/* At least that many bytes, kept for later calls; what is in it is not. */
sd_status lapack_area(const lapack_job *j, int area, size_t n, size_t size,
                      void **out);
/* to[c, r] = from[r, c]; conjugated too. */
void lapack_turn(const lapack_job *j, void *to, const void *from, int64_t rows,
                 int64_t cols, bool conjugate);
/* Not every routine sees a NaN. */
bool lapack_is_finite(const lapack_job *j, const void *p, int64_t n);
/* Of a matrix of which one triangle and the diagonal are read. */
bool lapack_half_is_finite(const lapack_job *j, const char *a, int64_t n,
                           bool lower);
void lapack_fill_nan(sd_dtype t, void *p, int64_t n);
int64_t lapack_int(const lapack_job *j, const void *ints, int64_t i);
void lapack_put_int(const lapack_job *j, void *ints, int64_t i, int64_t v);
/* One operation each, on one matrix; p: its slices. */
#define LAPACK_OPERATIONS(X) \
    X(EIGH, eigh) X(SVD, svd) X(EIG, eig) X(SCHUR, schur) \
    X(HESSENBERG, hessenberg) X(TRIDIAGONAL, tridiagonal) X(GEQP3, geqp3) \
    X(LU, lu) X(QR, qr) X(REFLECTIONS, reflections) X(REFLECT, reflect) \
    X(CHOLESKY, cholesky) X(SOLVE, solve) \
    X(TRIDIAGONAL_SOLVE, tridiagonal_solve)
#define X(id, name) \
    sd_status lapack_##name(lapack_job *j, const libcall_##name *c, \
                            char *const *p);
LAPACK_OPERATIONS(X)
#undef X

/* Calls a routine with n pointers, of which the one to info is &j->info.
 * Fortran's compilers hand on the length of each text behind the last argument:
 * ours have one character. */
sd_status lapack_call(lapack_job *j, lapack_routine r, const void *const *arg,
                      int n);
/* The same of a routine with a work array of `least` elements or more, for
 * which LAPACK_ITS_WORK stands.  A job's first call asks how many. */
sd_status lapack_call_with_work(lapack_job *j, lapack_routine r, int64_t least,
                                const void *const *arg, int n);
extern const char lapack_work_place;
#define LAPACK_ITS_WORK(j) &lapack_work_place, &(j)->nwork
#define LAPACK(j, id, ...) \
    lapack_call((j), LAPACK_##id, (const void *const[]){__VA_ARGS__}, \
                (int)SD_COUNTOF(((const void *const[]){__VA_ARGS__})))
#define LAPACK_WITH_WORK(j, id, least, ...) \
    lapack_call_with_work( \
        (j), LAPACK_##id, least, (const void *const[]){__VA_ARGS__}, \
        (int)SD_COUNTOF(((const void *const[]){__VA_ARGS__})))

#endif
