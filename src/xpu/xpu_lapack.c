/* LAPACK: finding its routines, workspaces, matrices turned, and the way from
 * a thunk to an operation. */
#include "xpu_lapack.h"

#include <dlfcn.h>
#include <emmintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A thread of OpenBLAS is worth THREAD_FLOPS, 5 ms of a core, where there are
 * few: less work gains nothing by a second one (eigh of 400 rows 7.3 and 7.0
 * ms, qr of 600 9.5 and 11.6), and where other programs have the cores its
 * threads wait for each other in slices of milliseconds: qr of 600 10 ms, and
 * 34 by two. Of many cores most are free: an inverse of 700 rows takes 16 ms by
 * two of 16, 9 by all. */
enum {
    MOST_POINTERS = 15,
    MOST_TEXTS = 4,
    THREAD_FLOPS = 1 << 28,
    MANY_THREADS = 8, /* from so many on a thread is worth less */
    MANY_THREADS_FLOPS = 1 << 25,
    BLOCK = 16
};

/* ---- opening ---- */

static const char *const names[2][LAPACK_COUNT] = {
#define X(id, real, complex) [LAPACK_##id] = real,
    {LAPACK_ROUTINES(X)},
#undef X
#define X(id, real, complex) [LAPACK_##id] = complex,
    {LAPACK_ROUTINES(X)},
#undef X
};

/* Every routine of every type, as prefix + letter + name + suffix. */
static bool bind(lapack *l, const char *prefix, const char *suffix)
{
    static const char letters[] = "sdcz";
    char symbol[40];

    for (int i = 0; i < 4; i++)
        for (int r = 0; r < LAPACK_COUNT; r++) {
            snprintf(symbol, sizeof symbol, "%s%c%s%s", prefix, letters[i],
                     names[i / 2][r], suffix);
            *(void **)&l->fn[i][r] = dlsym(l->handle, symbol);
            if (!l->fn[i][r])
                return false;
        }
    return true;
}

/* Builds with integers of 64 bits say so in the names. */
static bool find_routines(lapack *l, const char *prefix)
{
    l->int_bytes = 4;
    if (bind(l, prefix, "_"))
        return true;
    l->int_bytes = 8;
    return bind(l, prefix, "_64_");
}

/* How many threads the library takes; those that cannot be asked are set and
 * left so. */
static void find_threads(lapack *l, const xpu_engine_row *row)
{
    char name[64];

    if (!row->threads)
        return;
    *(void **)&l->set_threads = dlsym(l->handle, row->threads);
    snprintf(name, sizeof name, "%sopenblas_get_num_threads", row->prefix);
    *(void **)&l->get_threads = dlsym(l->handle, name);
}

static lapack *engine_create(sd_pool *pool)
{
    lapack *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->pool = pool;
    l->nthread = pool ? sd_pool_size(pool) : 1;
    if ((l->room = calloc((size_t)l->nthread, sizeof *l->room)))
        return l;
    free(l);
    return NULL;
}

static sd_status open_engine(const xpu_engine_row *row, sd_pool *pool,
                             void **out, char *said)
{
    lapack *l;
    void *h = xpu_engine_find(row);

    if (!h) { /* the last one says so */
        snprintf(said, XPU_ENGINE_SAID, "no LAPACK");
        return NULL;
    }
    if (!(l = engine_create(pool))) {
        dlclose(h);
        return sd_no_memory(sizeof *l);
    }
    l->handle = h;
    if (!find_routines(l, row->prefix)) {
        snprintf(said, XPU_ENGINE_SAID, "%s without its routines", row->name);
        dlclose(h);
        free(l->room);
        free(l);
        return NULL;
    }
    find_threads(l, row);
    pthread_mutex_init(&l->lock, NULL);
    snprintf(said, XPU_ENGINE_SAID, "%s", row->name);
    *out = l;
    return NULL;
}

static void close_engine(void *engine)
{
    lapack *l = engine;

    /* the library stays: its threads may still be in it */
    for (int w = 0; w < l->nthread; w++)
        for (int i = 0; i < LAPACK_AREAS; i++)
            free(l->room[w].area[i].at);
    free(l->room);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- what operations use ---- */

static lapack_job job_of(lapack *l, int worker, sd_dtype type)
{
    bool complex = type == SD_C64 || type == SD_C128;
    bool wide = type == SD_F64 || type == SD_C128;

    return (lapack_job){.l = l,
                        .room = &l->room[worker],
                        .type = type,
                        .letter = 2 * complex + wide,
                        .complex = complex,
                        .size = sd_dtype_bytes(type),
                        .part = wide ? 8 : 4};
}

sd_status lapack_area(const lapack_job *j, int area, size_t n, size_t size,
                      void **out)
{
    size_t bytes;
    void *p;

    if (!sd_mul_size(SD_MAX(n, 1), size, &bytes) || bytes > SIZE_MAX - 64)
        return sd_no_memory(SIZE_MAX);
    bytes = (bytes + 63) & ~(size_t)63;
    if (bytes > j->room->area[area].bytes) {
        if (!(p = aligned_alloc(64, bytes)))
            return sd_no_memory(bytes);
        free(j->room->area[area].at);
        j->room->area[area].at = p;
        j->room->area[area].bytes = bytes;
    }
    *out = j->room->area[area].at;
    return NULL;
}

/* 4 x 4 numbers, from rows `apart` numbers apart, to rows of a block. */
static void piece_f32(float *to, const float *from, int64_t apart)
{
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + apart);
    __m128 c = _mm_loadu_ps(from + 2 * apart);
    __m128 d = _mm_loadu_ps(from + 3 * apart);

    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + BLOCK, b);
    _mm_storeu_ps(to + 2 * BLOCK, c);
    _mm_storeu_ps(to + 3 * BLOCK, d);
}
#define PIECE(name, type, change) \
    static void name(type *to, const type *from, int64_t apart) \
    { \
        for (int c = 0; c < 4; c++) \
            for (int r = 0; r < 4; r++) { \
                type v = from[r * apart + c]; \
                to[c * BLOCK + r] = change; \
            } \
    }
typedef struct {
    float re, im;
} c64;
typedef struct {
    double re, im;
} c128;
PIECE(piece_f64, double, v)
PIECE(piece_c64, c64, v)
PIECE(piece_c128, c128, v)
PIECE(piece_conj_c64, c64, ((c64){v.re, -v.im}))
PIECE(piece_conj_c128, c128, ((c128){v.re, -v.im}))

/* By way of a block of its own: rows whose distance is a large power of two
 * push each other out of the cache, so each is read and written in one go; the
 * next block is asked for before.  A piece at the edge is copied to where it is
 * whole. */
#define TURN(name, type, piece) \
    static void name(type *to, const type *from, int64_t rows, int64_t cols) \
    { \
        type block[BLOCK * BLOCK], edge[16]; \
\
        for (int64_t r0 = 0; r0 < rows; r0 += BLOCK) \
            for (int64_t c0 = 0; c0 < cols; c0 += BLOCK) { \
                int64_t nr = SD_MIN(BLOCK, rows - r0); \
                int64_t nc = SD_MIN(BLOCK, cols - c0); \
                int64_t next = SD_MIN(c0 + BLOCK, cols - 1); \
\
                for (int64_t i = 0; i < nr; i++) \
                    __builtin_prefetch(from + (r0 + i) * cols + next); \
                for (int64_t i = next; i < SD_MIN(next + BLOCK, cols); i++) \
                    __builtin_prefetch(to + i * rows + r0, 1); \
                for (int64_t r = 0; r < nr; r += 4) \
                    for (int64_t c = 0; c < nc; c += 4) { \
                        const type *at = from + (r0 + r) * cols + c0 + c; \
                        bool whole = r + 4 <= nr && c + 4 <= nc; \
\
                        for (int64_t i = 0; !whole && i < 16; i++) \
                            edge[i] = at[SD_MIN(i / 4, nr - r - 1) * cols + \
                                         SD_MIN(i % 4, nc - c - 1)]; \
                        piece(block + c * BLOCK + r, whole ? at : edge, \
                              whole ? cols : 4); \
                    } \
                for (int64_t c = 0; c < nc; c++) \
                    memcpy(to + (c0 + c) * rows + r0, block + c * BLOCK, \
                           (size_t)nr * sizeof *to); \
            } \
    }
TURN(turn_f32, float, piece_f32)
TURN(turn_f64, double, piece_f64)
TURN(turn_c64, c64, piece_c64)
TURN(turn_c128, c128, piece_c128)
TURN(turn_conj_c64, c64, piece_conj_c64)
TURN(turn_conj_c128, c128, piece_conj_c128)

void lapack_turn(const lapack_job *j, void *to, const void *from, int64_t rows,
                 int64_t cols, bool conjugate)
{
    if (!conjugate && (rows == 1 || cols == 1)) /* lies alike both ways */
        memcpy(to, from, (size_t)rows * (size_t)cols * j->size);
    else if (j->type == SD_F32)
        turn_f32(to, from, rows, cols);
    else if (j->type == SD_F64)
        turn_f64(to, from, rows, cols);
    else if (j->type == SD_C64)
        (conjugate ? turn_conj_c64 : turn_c64)(to, from, rows, cols);
    else
        (conjugate ? turn_conj_c128 : turn_c128)(to, from, rows, cols);
}

/* x - x is 0 for what is finite and NaN for what is not.  In as many sums as
 * hide the time that one addition waits for another. */
#define IS_FINITE(name, type) \
    static bool name(const type *x, int64_t n) \
    { \
        type sum[16] = {0}; \
        int64_t i = 0; \
        for (; i + 16 <= n; i += 16) \
            for (int k = 0; k < 16; k++) \
                sum[k] += x[i + k] - x[i + k]; \
        for (; i < n; i++) \
            sum[0] += x[i] - x[i]; \
        for (int k = 1; k < 16; k++) \
            sum[0] += sum[k]; \
        return sum[0] == 0; \
    }
IS_FINITE(is_finite_f32, float)
IS_FINITE(is_finite_f64, double)

bool lapack_is_finite(const lapack_job *j, const void *p, int64_t n)
{
    n *= j->complex ? 2 : 1;
    return j->part == 4 ? is_finite_f32(p, n) : is_finite_f64(p, n);
}

bool lapack_half_is_finite(const lapack_job *j, const char *a, int64_t n,
                           bool lower)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t from = lower ? 0 : i, many = lower ? i + 1 : n - i;

        if (!lapack_is_finite(j, a + (size_t)(i * n + from) * j->size, many))
            return false;
    }
    return true;
}

void lapack_fill_nan(sd_dtype t, void *p, int64_t n)
{
    bool wide = t == SD_F64 || t == SD_C128;
    float *f = p;
    double *d = p;

    n *= t == SD_C64 || t == SD_C128 ? 2 : 1;
    for (int64_t i = 0; i < n; i++)
        if (wide)
            d[i] = NAN;
        else
            f[i] = NAN;
}

int64_t lapack_int(const lapack_job *j, const void *ints, int64_t i)
{
    return j->l->int_bytes == 4 ? ((const int32_t *)ints)[i]
                                : ((const int64_t *)ints)[i];
}

void lapack_put_int(const lapack_job *j, void *ints, int64_t i, int64_t v)
{
    if (j->l->int_bytes == 4)
        ((int32_t *)ints)[i] = (int32_t)v;
    else
        ((int64_t *)ints)[i] = v;
}

const char lapack_work_place;

sd_status lapack_call(lapack_job *j, lapack_routine r, const void *const *arg,
                      int n)
{
    typedef const void *p;
    typedef void with_all(p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p, p,
                          p);
    const void *a[MOST_POINTERS + MOST_TEXTS];

    for (int i = 0; i < MOST_POINTERS + MOST_TEXTS; i++)
        a[i] = i >= n                         ? (const void *)(uintptr_t)1
               : arg[i] == &lapack_work_place ? j->work
                                              : arg[i];
    j->info = 0;
    ((with_all *)j->l->fn[j->letter][r])(
        a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10],
        a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18]);
    j->info = (int32_t)j->info; /* an int of the library's */
    if (j->info < 0) /* we called it wrongly */
        return sd_error(SD_INTERNAL,
                        "LAPACK's %s refuses its argument %" PRId64,
                        names[0][r], -j->info);
    return NULL;
}

/* f32 rounds large lengths: a little more will do. */
static sd_status ask_for_work(lapack_job *j, lapack_routine r, int64_t least,
                              const void *const *arg, int n)
{
    double want;
    sd_status st;

    j->work = j->asked;
    j->nwork = -1;
    if ((st = lapack_call(j, r, arg, n)))
        return st;
    want = sd_scalar_to_f64(sd_dtype_part(j->type), j->asked);
    j->nwork =
        SD_MAX(least, (int64_t)(want * (j->part == 4 ? 1.000001 : 1)) + 1);
    return lapack_area(j, LAPACK_WORK, (size_t)j->nwork, j->size, &j->work);
}

sd_status lapack_call_with_work(lapack_job *j, lapack_routine r, int64_t least,
                                const void *const *arg, int n)
{
    sd_status st = j->nwork ? NULL : ask_for_work(j, r, least, arg, n);

    return st ? st : lapack_call(j, r, arg, n);
}

/* ---- running ---- */

typedef struct { /* a call of `batch` matrices, in so many parts */
    lapack *l;
    const libcall *call;
    sd_dtype type;
    int64_t batch, parts;
    libcall_args args;
    char *const *ptr;
} batch_run;

static sd_status operate(lapack_job *j, const libcall *c, char *const *p)
{
    switch (c->op) {
#define X(id, name) \
    case LIBCALL_##id: \
        return lapack_##name(j, &c->name, p);
        LAPACK_OPERATIONS(X)
#undef X
    default:
        return NULL;
    }
}

/* Matrices [from, to) of it, by one thread. */
static sd_status run_matrices(const batch_run *r, int worker, int64_t from,
                              int64_t to)
{
    lapack_job j = job_of(r->l, worker, r->type);
    char *p[SD_COUNTOF(r->args.at)];
    sd_status st = NULL;

    for (int64_t b = from; b < to && !st; b++) {
        for (int k = 0; k < r->args.n; k++)
            p[k] = r->ptr[k] + r->args.at[k].n / r->batch * b *
                                   (int64_t)sd_dtype_bytes(r->args.at[k].type);
        st = operate(&j, r->call, p);
    }
    return st;
}

/* ---- batches ---- */

enum { PARTS = 8 }; /* a thread */

static void run_part(void *ctx, int64_t i, int worker)
{
    batch_run *r = ctx;
    int64_t from = r->batch / r->parts * i + SD_MIN(i, r->batch % r->parts);
    int64_t many = r->batch / r->parts + (i < r->batch % r->parts);
    lapack_room *room = &r->l->room[worker];

    if (!room->st)
        room->st = run_matrices(r, worker, from, from + many);
}

static sd_status run_parts(lapack *l, batch_run *r)
{
    sd_status st = NULL;

    r->parts = SD_MIN(r->batch, (int64_t)l->nthread * PARTS);
    sd_pool_run(l->pool, r->parts, run_part, r);
    for (int w = 0; w < l->nthread; w++) {
        st = sd_first(st, l->room[w].st);
        l->room[w].st = NULL;
    }
    return st;
}

/* Of one matrix. */
static int worth_threads(const lapack *l, const batch_run *r)
{
    int each = l->nthread < MANY_THREADS ? THREAD_FLOPS : MANY_THREADS_FLOPS;
    double n = libcall_flops(r->call) / (double)r->batch / each;

    return n < 1 ? 1 : n < l->nthread ? (int)n : l->nthread;
}

/* Matrices are shared among our threads, each done by one, where that makes as
 * many busy as the library's would be on one of them.  How many threads that
 * has is for the whole process, and others may use it: it is as before when we
 * are done. */
static sd_status run_batch(lapack *l, batch_run *r)
{
    int worth = worth_threads(l, r), before, now;
    int abreast = (int)SD_MIN(r->batch, l->nthread);
    bool many = abreast > 1 && abreast >= worth;
    sd_status st;

    pthread_mutex_lock(&l->lock);
    now = many ? 1 : worth;
    before = l->get_threads ? l->get_threads() : 0;
    if (l->set_threads && before != now)
        l->set_threads(now);
    st = many ? run_parts(l, r) : run_matrices(r, 0, 0, r->batch);
    if (l->set_threads && before && before != now)
        l->set_threads(before);
    pthread_mutex_unlock(&l->lock);
    return st;
}

static sd_status run_lapack(void *engine, const thunk *t, void *const *ptr)
{
    sd_dtype type = (sd_dtype)libcall_field(t->call, "type", 4);
    batch_run r = {.l = engine,
                   .call = t->call,
                   .type = type,
                   .batch = libcall_field(t->call, "batch", 5),
                   .args = libcall_args_of(t->call),
                   .ptr = (char *const *)ptr};

    if (type != SD_F32 && type != SD_F64 && type != SD_C64 && type != SD_C128)
        return sd_error(SD_UNIMPLEMENTED, "LAPACK's %s of %s",
                        libcall_table[t->call->op].name, sd_dtype_name(type));
    return run_batch(engine, &r);
}

static uint64_t can(const void *engine)
{
    (void)engine;
    return 0;
}

const xpu_engine_kind xpu_lapack = {open_engine, close_engine, can, run_lapack};
