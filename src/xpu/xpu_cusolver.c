/* The library is looked for when the driver is opened.  A device's first call
 * makes its handles; its scratch grows with the largest matrix so far. */
#include "xpu_cusolver.h"
#include "xpu_python.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the library ---- */

/* Which CUDA brings which library. */
static const struct {
    int cuda;
    const char *file, *wheel;
} places[] = {
    {13, "libcusolver.so.12", "nvidia/cu13/lib/libcusolver.so.12"},
    {12, "libcusolver.so.11", "nvidia/cusolver/lib/libcusolver.so.11"},
};

/* What it is linked to comes with it; RTLD_LAZY, since it has ten thousands of
 * names of which we call thirty. */
static void *open_one(size_t i)
{
    void *lib = dlopen(places[i].file, RTLD_LAZY | RTLD_LOCAL);

    return lib ? lib : xpu_python_open(true, places[i].wheel);
}

/* cuBLAS's names are found through it, too.  "*" stands for the letter of the
 * type. */
static void *find(void *lib, const char *pattern, char letter)
{
    const char *star = strchr(pattern, '*');
    char name[64];

    snprintf(name, sizeof name, "%.*s%c%s", (int)(star - pattern), pattern,
             letter, star + 1);
    return dlsym(lib, name);
}

static bool find_typed(xpu_cusolver *l, void *lib, int i)
{
    char letter = "SDCZ"[i];
    bool real = i < 2;

    *(void **)&l->orgqr_size[i] = find(lib,
                                       real ? "cusolverDn*orgqr_bufferSize"
                                            : "cusolverDn*ungqr_bufferSize",
                                       letter);
    *(void **)&l->orgqr[i] =
        find(lib, real ? "cusolverDn*orgqr" : "cusolverDn*ungqr", letter);
    *(void **)&l->geam[i] = find(lib, "cublas*geam", letter);
    *(void **)&l->gemm[i] = find(lib, "cublas*gemm_v2", letter);
    *(void **)&l->trsm[i] = find(lib, "cublas*trsm_v2", letter);
    return l->orgqr_size[i] && l->orgqr[i] && l->geam[i] && l->gemm[i] &&
           l->trsm[i];
}

static bool find_all(xpu_cusolver *l, void *lib)
{
#define X(name, args) \
    if (!(*(void **)&l->name = dlsym(lib, "cusolverDn" #name))) \
        return false;
    CUSOLVER_PLAIN(X)
#undef X
    *(void **)&l->BlasCreate = dlsym(lib, "cublasCreate_v2");
    *(void **)&l->BlasDestroy = dlsym(lib, "cublasDestroy_v2");
    *(void **)&l->BlasSetStream = dlsym(lib, "cublasSetStream_v2");
    for (int i = 0; i < CUSOLVER_TYPES; i++)
        if (!find_typed(l, lib, i))
            return false;
    return l->BlasCreate && l->BlasDestroy && l->BlasSetStream;
}

static void name_it(xpu_cusolver *l, void *lib)
{
    int (*ask)(int *out), version = 0;

    *(void **)&ask = dlsym(lib, "cusolverGetVersion");
    if (ask && !ask(&version))
        snprintf(l->said, sizeof l->said, "cuSOLVER %d.%d.%d", version / 1000,
                 version % 1000 / 100, version % 100);
    else
        snprintf(l->said, sizeof l->said, "cuSOLVER");
}

/* One for a newer CUDA than the driver's does not run there. */
sd_status xpu_cusolver_find(xpu_cuda_driver *d)
{
    xpu_cusolver *l = calloc(1, sizeof *l);
    void *lib;

    if (!l)
        return sd_no_memory(sizeof *l);
    for (size_t i = 0; i < SD_COUNTOF(places); i++) {
        if (places[i].cuda > d->version / 1000 || !(lib = open_one(i)))
            continue;
        if (find_all(l, lib)) {
            name_it(l, lib);
            d->solver = l;
            return NULL;
        }
        sd_log(SD_LOG_DEBUG, "%s lacks functions of CUDA 12", places[i].file);
    }
    free(l);
    return NULL;
}

const char *xpu_cusolver_version(const xpu_cusolver *l)
{
    return l->said;
}

sd_status cusolver_said(int status, const char *call)
{
    return status
               ? sd_error(SD_INTERNAL, "cuSOLVER, %s: status %d", call, status)
               : NULL;
}

sd_status cublas_said(int status, const char *call)
{
    return status ? sd_error(SD_INTERNAL, "cuBLAS, %s: status %d", call, status)
                  : NULL;
}

/* ---- a device's ---- */

static sd_status make_handles(const xpu_cusolver *l, xpu_cusolver_room *r)
{
    sd_status st;

    if (!r->handle &&
        (st = cusolver_said(l->Create(&r->handle), "cusolverDnCreate")))
        return st;
    if (!r->params && (st = cusolver_said(l->CreateParams(&r->params),
                                          "cusolverDnCreateParams")))
        return st;
    if (!r->blas &&
        (st = cublas_said(l->BlasCreate(&r->blas), "cublasCreate_v2")))
        return st;
    return NULL;
}

/* What a call that failed has made is there for the next one. */
static sd_status get_room(xpu_cuda *v)
{
    const xpu_cusolver *l = v->driver->solver;
    cu_stream queue = v->queue[v->dev->queue];
    xpu_cusolver_room *r = v->solver;
    sd_status st;

    if (!r && !(v->solver = r = calloc(1, sizeof *r)))
        return sd_no_memory(sizeof *r);
    if ((st = make_handles(l, r)) || (st = cusolver_load_kernels(v, r)) ||
        (st = cusolver_said(l->SetStream(r->handle, queue),
                            "cusolverDnSetStream")))
        return st;
    return cublas_said(l->BlasSetStream(r->blas, queue), "cublasSetStream_v2");
}

void xpu_cusolver_close(xpu_cuda *v, bool ours)
{
    xpu_cusolver_room *r = v->solver;

    if (!r)
        return;
    if (ours && r->blas)
        v->driver->solver->BlasDestroy(r->blas);
    if (ours && r->params)
        v->driver->solver->DestroyParams(r->params);
    if (ours && r->handle)
        v->driver->solver->Destroy(r->handle);
    if (ours && r->module)
        v->driver->api.ModuleUnload(r->module);
    for (int i = 0; i < CUSOLVER_AREAS; i++)
        if (r->area[i].at)
            v->dev->ops->free(v->dev, XPU_MEM_DEVICE, r->area[i].at,
                              r->area[i].bytes);
    free(r->host);
    free(r);
    v->solver = NULL;
}

static sd_status out_of_memory(const xpu_device *d, size_t bytes)
{
    return sd_error(SD_EXHAUSTED,
                    "out of memory on device %d (%s): cuSOLVER asks for %zu "
                    "bytes of scratch; SUNDOG_LIBRARIES=0 does without it",
                    d->id, d->desc.name, bytes);
}

/* What is queued may still use scratch that is to go. */
static sd_status await_queue(xpu_cuda *v)
{
    return xpu_cuda_status(
        v->driver, v, v->driver->api.StreamSynchronize(v->queue[v->dev->queue]),
        "cuStreamSynchronize");
}

static sd_status drop_area(xpu_cuda *v, void **at, size_t bytes)
{
    sd_status st = await_queue(v);

    if (st)
        return st;
    v->dev->ops->free(v->dev, XPU_MEM_DEVICE, *at, bytes);
    *at = NULL;
    return NULL;
}

sd_status cusolver_area(const cusolver_job *j, int area, size_t bytes,
                        void **out)
{
    xpu_device *d = j->v->dev;
    void **at = &j->r->area[area].at;
    size_t *has = &j->r->area[area].bytes;
    sd_status st = NULL;

    bytes = SD_MAX(bytes, 1);
    if (*at && bytes > *has)
        st = drop_area(j->v, at, *has);
    if (!st && !*at)
        st = d->ops->alloc(d, XPU_MEM_DEVICE, *has = bytes, at);
    if (!st && !*at) {
        xpu_memory_give_back(d);
        st = d->ops->alloc(d, XPU_MEM_DEVICE, bytes, at);
    }
    *out = *at;
    return st || *at ? st : out_of_memory(d, bytes);
}

sd_status cusolver_get_work(const cusolver_job *j, cusolver_work *w)
{
    xpu_cusolver_room *r = j->r;
    sd_status st;

    if (w->nhost > r->nhost) {
        if (r->host && (st = await_queue(j->v)))
            return st;
        free(r->host);
        r->nhost = 0;
        if (!(r->host = malloc(w->nhost)))
            return sd_no_memory(w->nhost);
        r->nhost = w->nhost;
    }
    w->host = r->host;
    return cusolver_area(j, CUSOLVER_WORK, w->ndevice, &w->device);
}

/* By columns it is from rows x cols to cols x rows. */
sd_status cusolver_turn(const cusolver_job *j, void *to, const void *from,
                        int64_t rows, int64_t cols, bool conjugate)
{
    enum { AS_IT_IS, TURNED, ADJOINT };
    int r = (int)rows, c = (int)cols;

    return cublas_said(j->l->geam[j->letter](
                           j->r->blas, conjugate ? ADJOINT : TURNED, AS_IT_IS,
                           r, c, j->one, from, c, j->zero, to, r, to, r),
                       "cublas*geam");
}

sd_status cusolver_is_fine(const cusolver_job *j, bool *out)
{
    uint64_t info = 0;
    sd_status st = j->v->dev->ops->peek(j->v->dev, &info, j->info, sizeof info);

    *out = !info;
    return st;
}

sd_status cusolver_copy(const cusolver_job *j, void *to, const void *from,
                        size_t bytes)
{
    xpu_cuda *v = j->v;

    if (to == from)
        return NULL;
    return xpu_cuda_status(v->driver, v,
                           v->driver->api.MemcpyAsync((uintptr_t)to,
                                                      (uintptr_t)from, bytes,
                                                      v->queue[v->dev->queue]),
                           "cuMemcpyAsync");
}

/* ---- calls ---- */

static cusolver_job job_of(xpu_cuda *v, sd_dtype type)
{
    enum { F32, F64, C64 = 4, C128 }; /* as CUDA numbers types */
    static const double one[2] = {1, 0}, zero[2] = {0, 0};
    static const float one_f32[2] = {1, 0};
    bool complex = type == SD_C64 || type == SD_C128;
    bool wide = type == SD_F64 || type == SD_C128;

    return (cusolver_job){.v = v,
                          .l = v->driver->solver,
                          .r = v->solver,
                          .letter = 2 * complex + wide,
                          .code = (complex ? C64 : F32) + wide,
                          .part = wide ? F64 : F32,
                          .size = sd_dtype_bytes(type),
                          .wide = wide,
                          .one = wide ? (const void *)one : one_f32,
                          .zero = zero};
}

static sd_status run_one(const cusolver_job *j, const libcall *c,
                         char *const *p)
{
    sd_status st = cusolver_clear(j);

    if (st)
        return st;
    switch (c->op) {
#define X(id, name) \
    case LIBCALL_##id: \
        return cusolver_##name(j, &c->name, p);
        CUSOLVER_OPERATIONS(X)
#undef X
    default:
        return sd_error(SD_UNIMPLEMENTED, "cuSOLVER's %s",
                        libcall_table[c->op].name);
    }
}

/* One matrix after the other: plan has calls of few. */
static sd_status run_batch(cusolver_job *j, const libcall *c, void *const *ptr)
{
    libcall_args args = libcall_args_of(c);
    int64_t batch = libcall_field(c, "batch", 5);
    sd_status st;

    if ((st = cusolver_area(j, CUSOLVER_INFO, 8, &j->info)))
        return st;
    for (int64_t i = 0; i < batch && !st; i++) {
        char *p[SD_COUNTOF(args.at)];

        for (int k = 0; k < args.n; k++)
            p[k] =
                (char *)ptr[k] + i * (args.at[k].n / batch) *
                                     (int64_t)sd_dtype_bytes(args.at[k].type);
        st = run_one(j, c, p);
    }
    return st;
}

sd_status xpu_cusolver_run(xpu_device *d, const thunk *t, void *const *ptr)
{
    sd_dtype type = (sd_dtype)libcall_field(t->call, "type", 4);
    xpu_cuda *v = d->impl;
    cusolver_job j;
    sd_status st;

    if (type != SD_F32 && type != SD_F64 && type != SD_C64 && type != SD_C128)
        return sd_error(SD_UNIMPLEMENTED, "cuSOLVER's %s of %s",
                        libcall_table[t->call->op].name, sd_dtype_name(type));
    if ((st = xpu_cuda_enter(v)))
        return st;
    if (!(st = get_room(v))) {
        j = job_of(v, type);
        st = run_batch(&j, t->call, ptr);
    }
    if (!st)
        st = xpu_cuda_keep_pace(v, 1);
    xpu_cuda_leave(v);
    return st;
}
