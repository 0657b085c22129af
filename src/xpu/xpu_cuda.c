/* CUDA devices by the driver's interface alone: PTX modules, memory from a pool
 * of ours in the driver, a stream for each queue of xpu_device.h, one for
 * copies that block and one for the pool.  Work is in the device's primary
 * context, as other libraries' is, so that pointers are theirs too; a thread
 * has it only within a call of ours.
 *
 * A fault (an address that is none, an instruction that is none) ends the
 * context: the device is turned off, and every later call says why. */
#include "xpu_cuda_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static cu_pointer at(const void *p)
{
    return (cu_pointer)(uintptr_t)p;
}

/* ---- memory ---- */

/* The pool's stream is idle but for this, so it is waited for at once, and the
 * memory is any stream's. */
static cu_result from_pool(const xpu_cuda *v, size_t bytes, cu_pointer *out)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_result err = a->MemAllocFromPoolAsync(out, bytes, v->pool, v->memory);

    if (err)
        return err;
    if ((err = a->StreamSynchronize(v->memory)))
        a->MemFreeAsync(*out, v->memory);
    return err;
}

static sd_status cuda_alloc(xpu_device *d, xpu_memory mem, size_t bytes,
                            void **out)
{
    xpu_cuda *v = d->impl;
    const xpu_cuda_api *a = &v->driver->api;
    const char *call = "cuMemAlloc";
    sd_status st = xpu_cuda_enter(v);
    cu_pointer p = 0;
    void *host = NULL;
    cu_result err;

    *out = NULL;
    if (st)
        return st;
    if (mem != XPU_MEM_DEVICE) {
        call = "cuMemHostAlloc";
        err = a->MemHostAlloc(&host, bytes, CU_HOST_PORTABLE | CU_HOST_MAPPED);
    } else if (v->pool) {
        call = "cuMemAllocFromPoolAsync";
        err = from_pool(v, bytes, &p);
    } else {
        err = a->MemAlloc(&p, bytes);
    }
    xpu_cuda_leave(v);
    if (!err)
        *out = host ? host : (void *)(uintptr_t)p;
    return err == CU_OUT_OF_MEMORY ? NULL
                                   : xpu_cuda_status(v->driver, v, err, call);
}

static sd_status cuda_card(xpu_device *d, uint8_t out[XPU_CARD])
{
    xpu_cuda *v = d->impl;

    return xpu_cuda_status(v->driver, v,
                           v->driver->api.DeviceGetUuid(out, v->id),
                           "cuDeviceGetUuid");
}

/* The handles say whose they are. */
bool xpu_cuda_enter_to_free(xpu_cuda *v, bool *entered)
{
    if (!v->context || v->driver->process != getpid())
        return false;
    *entered = !v->driver->api.CtxPushCurrent(v->context);
    return true;
}

static void leave_freed(const xpu_cuda *v, bool entered)
{
    if (entered)
        xpu_cuda_leave(v);
}

static void cuda_free(xpu_device *d, xpu_memory mem, void *p, size_t bytes)
{
    xpu_cuda *v = d->impl;
    bool entered;

    (void)bytes;
    if (!xpu_cuda_enter_to_free(v, &entered))
        return;
    if (mem != XPU_MEM_DEVICE)
        v->driver->api.MemFreeHost(p);
    else if (v->pool)
        v->driver->api.MemFreeAsync(at(p), v->memory);
    else
        v->driver->api.MemFree(at(p));
    leave_freed(v, entered);
}

/* ---- copies ---- */

/* Memory that the driver does not know has no type: no error, as asking for the
 * one attribute would be. */
static bool is_pageable(const xpu_cuda *v, const void *p)
{
    int what = CU_PTR_MEMORY_TYPE;
    unsigned type = 0;
    void *out = &type;

    return v->driver->api.PointerGetAttributes(1, &what, &out, at(p)) || !type;
}

static sd_status copy_async(xpu_cuda *v, cu_stream s, void *to,
                            const void *from, size_t n)
{
    return xpu_cuda_status(v->driver, v,
                           v->driver->api.MemcpyAsync(at(to), at(from), n, s),
                           "cuMemcpyAsync");
}

static sd_status cuda_copy(xpu_device *d, xpu_queue q, void *to,
                           const void *from, size_t n)
{
    xpu_cuda *v = d->impl;
    cu_stream s = v->queue[q];
    sd_status st;

    if (!n)
        return NULL;
    if ((st = xpu_cuda_enter(v)))
        return st;
    if (q == XPU_IN && is_pageable(v, from))
        st = xpu_cuda_stage_copy(v, &v->stage[0], s, to, from, n);
    else if (q == XPU_OUT && is_pageable(v, to))
        st = xpu_cuda_stage_copy(v, &v->stage[1], s, to, from, n);
    else
        st = copy_async(v, s, to, from, n);
    xpu_cuda_leave(v);
    return st;
}

/* The driver stages what is pageable, and keeps the caller meanwhile. */
static sd_status copy_and_wait(xpu_cuda *v, cu_stream s, void *to,
                               const void *from, size_t n)
{
    sd_status st;

    if (!n)
        return NULL;
    if ((st = xpu_cuda_enter(v)))
        return st;
    st = copy_async(v, s, to, from, n);
    if (!st)
        st = xpu_cuda_status(v->driver, v, v->driver->api.StreamSynchronize(s),
                             "cuStreamSynchronize");
    xpu_cuda_leave(v);
    return st;
}

static sd_status cuda_transfer(xpu_device *d, void *to, const void *from,
                               size_t n)
{
    xpu_cuda *v = d->impl;

    return copy_and_wait(v, v->now, to, from, n);
}

/* A get of 1 MB into pageable memory takes 363 us the driver's own way on an
 * H200's machine, through a pinned slot 190. */
static sd_status cuda_copy_out(xpu_device *d, void *to, const void *from,
                               size_t n)
{
    xpu_cuda *v = d->impl;
    sd_status st;
    bool done;

    if (n < XPU_CUDA_SHORT_LEAST || n > XPU_CUDA_SHORT_MOST)
        return cuda_transfer(d, to, from, n);
    if ((st = xpu_cuda_enter(v)))
        return st;
    done = is_pageable(v, to) && xpu_cuda_copy_short(v, to, from, n, &st);
    xpu_cuda_leave(v);
    return done ? st : cuda_transfer(d, to, from, n);
}

/* One address space holds all devices and pinned memory, so the driver sees
 * whose the pointers are. */
static sd_status cuda_copy_between(xpu_device *to_dev, void *to,
                                   xpu_device *from_dev, const void *from,
                                   size_t n)
{
    (void)from_dev;
    return cuda_transfer(to_dev, to, from, n);
}

/* A predicate that a loop waits for each turn: into pinned memory the device
 * writes it itself, and the driver has nothing to stage. */
static sd_status read_word(xpu_cuda *v, void *to, const void *from, size_t n)
{
    sd_status st = copy_and_wait(v, v->queue[XPU_COMPUTE], v->word, from, n);

    if (!st)
        memcpy(to, v->word, n);
    return st;
}

static sd_status cuda_peek(xpu_device *d, void *to, const void *from, size_t n)
{
    xpu_cuda *v = d->impl;
    bool word = n <= XPU_CUDA_WORD;
    sd_status st;

    v->pace = (xpu_pace){0}; /* it waits for what is queued */
    if (word) {
        if ((st = xpu_cuda_enter(v)))
            return st;
        word = is_pageable(v, to);
        xpu_cuda_leave(v);
    }
    if (word)
        return read_word(v, to, from, n);
    return copy_and_wait(v, v->queue[XPU_COMPUTE], to, from, n);
}

/* ---- kernels ---- */

sd_status xpu_cuda_keep_pace(xpu_cuda *v, int n)
{
    if (!xpu_pace_is_due(&v->pace, n))
        return NULL;
    return xpu_cuda_status(
        v->driver, v, v->driver->api.StreamSynchronize(v->queue[XPU_COMPUTE]),
        "cuStreamSynchronize");
}

static void cuda_unload(xpu_device *d, xpu_module *m)
{
    xpu_cuda *v = d->impl;
    bool entered = false, ours = xpu_cuda_enter_to_free(v, &entered);

    xpu_cuda_drop_pieces(v, m, ours);
    for (int i = 0; i < m->program->nbinary && ours; i++)
        if (m->built[i])
            v->driver->api.ModuleUnload(m->built[i]);
    leave_freed(v, entered);
    free(m);
}

static bool has_loop_kernels(const thunk_program *p)
{
    for (int i = 0; i < p->nkernel; i++)
        if (p->kernel[i].loop)
            return true;
    return false;
}

static sd_status cuda_load(xpu_device *d, const thunk_program *p,
                           xpu_module **out)
{
    xpu_cuda *v = d->impl;
    size_t n = (size_t)p->nbinary + (size_t)p->nkernel;
    xpu_module *m = calloc(1, sizeof *m + n * sizeof(void *));
    sd_status st;

    if (!m)
        return sd_no_memory(n * sizeof(void *));
    m->program = p;
    m->built = (cu_module *)(m + 1);
    m->kernel = (cu_function *)(m->built + p->nbinary);
    if (!(st = xpu_cuda_enter(v))) {
        st = xpu_cuda_build(v, p, m->built, m->kernel);
        if (!st && has_loop_kernels(p))
            st = xpu_cuda_need_stop(v);
        xpu_cuda_leave(v);
    }
    if (!st)
        xpu_cuda_find_pieces(v, m);
    if (st)
        cuda_unload(d, m);
    else
        *out = m;
    return st;
}

/* All parameters are pointers: the slots are the block that they make. */
static sd_status launch(xpu_cuda *v, const thunk_kernel *k, cu_function fn,
                        void **slot)
{
    size_t bytes = (size_t)xpu_cuda_words(v, k, slot) * sizeof *slot;
    void *extra[] = {CU_PARAM_BUFFER, slot, CU_PARAM_BYTES, &bytes,
                     CU_PARAM_END};
    cu_result err;

    if ((err = v->driver->api.LaunchKernel(
             fn, (unsigned)k->tiles, 1, 1, (unsigned)k->group, 1, 1,
             xpu_cuda_shared(k), v->queue[v->dev->queue], NULL, extra)))
        return xpu_cuda_status(v->driver, v, err, "cuLaunchKernel");
    return k->loop ? xpu_cuda_await_loops(v, v->dev->cancel)
                   : xpu_cuda_keep_pace(v, 1);
}

static sd_status cuda_launch(xpu_device *d, xpu_module *m, int kernel,
                             void **slot)
{
    const thunk_kernel *k = &m->program->kernel[kernel];
    xpu_cuda *v = d->impl;
    sd_status st;

    if (k->tiles <= 0)
        return NULL;
    if (k->tiles > INT32_MAX)
        return sd_error(SD_UNIMPLEMENTED,
                        "%s has %" PRId64 " groups: a grid of CUDA has up to "
                        "2147483647",
                        k->symbol, k->tiles);
    if ((st = xpu_cuda_enter(v)))
        return st;
    st = launch(v, k, m->kernel[kernel], slot);
    xpu_cuda_leave(v);
    return sd_note(st, "%s, %" PRId64 " groups of %d", k->symbol, k->tiles,
                   k->group);
}

/* What a former run queued is its own to wait for. */
static sd_status cuda_begin(xpu_device *d, xpu_module *m)
{
    (void)m;
    ((xpu_cuda *)d->impl)->pace = (xpu_pace){0};
    return NULL;
}

/* ---- opening ---- */

static void destroy_stream(const xpu_cuda *v, cu_stream s)
{
    if (s)
        v->driver->api.StreamDestroy(s);
}

static void cuda_close(xpu_device *d)
{
    xpu_cuda *v = d->impl;
    bool entered = false, ours;

    if (!v)
        return;
    for (int q = 0; q < XPU_QUEUE_COUNT; q++)
        xpu_stream_finish(&v->watch[q]);
    ours = xpu_cuda_enter_to_free(v, &entered);
    for (int i = 0; i < 2; i++)
        xpu_cuda_stage_finish(v, &v->stage[i], ours);
    xpu_cuda_short_finish(v, ours);
    xpu_cuda_free_events(v, ours);
    xpu_cusolver_close(v, ours);
    if (ours) {
        xpu_cuda_close_meeting(v);
        for (int q = 0; q < XPU_QUEUE_COUNT; q++)
            destroy_stream(v, v->queue[q]);
        destroy_stream(v, v->now);
        destroy_stream(v, v->memory);
        if (v->word)
            v->driver->api.MemFreeHost(v->word);
        xpu_cuda_drop_reader(v);
        if (v->loops.module)
            v->driver->api.ModuleUnload(v->loops.module);
        if (v->loops.stop)
            v->driver->api.MemFree(v->loops.stop);
        if (v->pool)
            v->driver->api.MemPoolDestroy(v->pool);
        leave_freed(v, entered);
        v->driver->api.PrimaryCtxRelease(v->id);
    }
    free(v);
}

static const xpu_device_ops cuda_ops = {
    .name = "cuda",
    .alloc = cuda_alloc,
    .free = cuda_free,
    .copy = cuda_copy,
    .copy_in = cuda_transfer,
    .copy_out = cuda_copy_out,
    .copy_between = cuda_copy_between,
    .gather = xpu_cuda_gather,
    .meet = xpu_cuda_meet,
    .load = cuda_load,
    .unload = cuda_unload,
    .begin = cuda_begin,
    .launch = cuda_launch,
    .replay = xpu_cuda_replay,
    .libcall = xpu_cusolver_run,
    .peek = cuda_peek,
    .card = cuda_card,
    .lend = xpu_cuda_lend,
    .reclaim = xpu_cuda_reclaim,
    .follow = xpu_cuda_follow,
    .lead = xpu_cuda_lead,
    .kernel_make = xpu_cuda_kernel_make,
    .kernel_drop = xpu_cuda_kernel_drop,
    .kernel_launch = xpu_cuda_kernel_launch,
    .record = xpu_cuda_record,
    .wait = xpu_cuda_wait,
    .query = xpu_cuda_query,
    .forget = xpu_cuda_forget,
    .sync = xpu_cuda_sync,
    .own_threads = true,
    .close = cuda_close,
};

/* Of its own, so that other libraries' settings of the default pool are not
 * ours.  It keeps nothing back from other processes. */
static sd_status make_pool(xpu_cuda *v)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_pool_props props = {.alloc_type = CU_ALLOC_PINNED,
                           .location = {CU_AT_DEVICE, v->id}};
    int has = 0;

    if (a->DeviceGetAttribute(&has, CU_DEV_POOLS, v->id) || !has)
        return NULL;
    return xpu_cuda_status(v->driver, v, a->MemPoolCreate(&v->pool, &props),
                           "cuMemPoolCreate");
}

static sd_status make_streams(xpu_cuda *v)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_result err = a->StreamCreate(&v->now, CU_NON_BLOCKING);

    if (!err)
        err = a->StreamCreate(&v->memory, CU_NON_BLOCKING);
    for (int q = 0; q < XPU_QUEUE_COUNT && !err; q++)
        err = a->StreamCreate(&v->queue[q], CU_NON_BLOCKING);
    return xpu_cuda_status(v->driver, v, err, "cuStreamCreate");
}

static sd_status make_word(xpu_cuda *v)
{
    return xpu_cuda_status(
        v->driver, v,
        v->driver->api.MemHostAlloc(&v->word, XPU_CUDA_WORD, CU_HOST_PORTABLE),
        "cuMemHostAlloc");
}

/* What close finishes, before anything can fail. */
static xpu_cuda *make_impl(xpu_device *d, xpu_cuda_driver *driver)
{
    xpu_cuda *v = calloc(1, sizeof *v);
    char name[32];

    if (!v)
        return NULL;
    v->driver = driver;
    v->dev = d;
    pthread_mutex_init(&v->lock, NULL);
    pthread_mutex_init(&v->brief.lock, NULL);
    for (int q = 0; q < XPU_QUEUE_COUNT; q++) {
        snprintf(name, sizeof name, "xpu%d-mark%d", d->id, q);
        xpu_stream_init(&v->watch[q], name);
        v->watch[q].look_ns = XPU_CUDA_LOOK_NS;
    }
    xpu_cuda_stage_init(&v->stage[0], false);
    xpu_cuda_stage_init(&v->stage[1], true);
    return v;
}

static sd_status open_device(xpu_client *c, xpu_cuda_driver *driver, int i)
{
    const xpu_cuda_api *a = &driver->api;
    xpu_device *d;
    sd_status st = xpu_client_add(c, &cuda_ops, &d);
    cu_result err;
    xpu_cuda *v;

    if (st)
        return st;
    if (!(d->impl = v = make_impl(d, driver)))
        return sd_no_memory(sizeof *v);
    if ((err = a->DeviceGet(&v->id, i)))
        return xpu_cuda_status(driver, NULL, err, "cuDeviceGet");
    v->index = i;
    d->own_memory = true;
    if ((st = xpu_cuda_describe(v, &d->desc, &d->limit)))
        return st;
    if ((err = a->PrimaryCtxRetain(&v->context, v->id))) {
        v->context = NULL;
        return xpu_cuda_status(driver, NULL, err, "cuDevicePrimaryCtxRetain");
    }
    if ((st = xpu_cuda_enter(v)))
        return st;
    if (!(st = make_streams(v)) && !(st = make_pool(v)))
        st = make_word(v);
    xpu_cuda_leave(v);
    return st;
}

static bool open_way(const xpu_cuda *v, const xpu_cuda *peer)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_access who = {{CU_AT_DEVICE, peer->id}, CU_READ_WRITE};
    cu_result err;
    int can = 0;

    if (a->DeviceCanAccessPeer(&can, peer->id, v->id) || !can)
        return false;
    if (v->pool)
        return !a->MemPoolSetAccess(v->pool, &who, 1);
    if (a->CtxPushCurrent(peer->context))
        return false;
    err = a->CtxEnablePeerAccess(v->context, 0);
    xpu_cuda_leave(peer);
    return !err || err == CU_PEER_ALREADY;
}

/* Between devices that can, copies go straight, and kernels read; else the
 * driver takes copies through the host's memory. */
static sd_status open_ways(xpu_client *c)
{
    int n = 0;
    sd_status st = NULL;

    for (int i = 0; i < c->ndev; i++)
        for (int k = 0; k < c->ndev; k++) {
            const xpu_cuda *v = c->dev[i]->impl;
            xpu_cuda *peer = c->dev[k]->impl;

            if (i != k && open_way(v, peer) && i < XPU_MOST_PEERS) {
                peer->reaches |= UINT64_C(1) << i;
                n++;
            }
        }
    if (!n || n < c->ndev * (c->ndev - 1))
        return NULL;
    for (int i = 0; i < c->ndev && !st; i++) {
        c->dev[i]->desc.features |= DEVICE_HAS_PEERS;
        st = xpu_cuda_open_meeting(c->dev[i]->impl);
    }
    for (int i = 0; i < c->ndev && !st; i++)
        c->dev[i]->meets = true;
    return st;
}

static void driver_close(void *driver)
{
    xpu_cuda_driver *d = driver;

    pthread_mutex_destroy(&d->linker.lock);
    free(d->solver);
    free(d);
}

sd_status xpu_cuda_open(xpu_client *c, const sd_options *opt, bool chosen)
{
    xpu_cuda_driver *d = calloc(1, sizeof *d);
    sd_status st;

    (void)chosen; /* all that the driver shows are GPUs */
    if (!d)
        return sd_no_memory(sizeof *d);
    if ((st = xpu_cuda_find(d, opt)) ||
        (sd_opt_bool(opt, SD_OPT_LIBRARIES) && (st = xpu_cusolver_find(d)))) {
        free(d);
        return st;
    }
    pthread_mutex_init(&d->linker.lock, NULL);
    c->driver = d;
    c->driver_close = driver_close;
    for (int i = 0; i < d->ndev && !st; i++)
        st = open_device(c, d, i);
    return st ? st : open_ways(c);
}
