/* Copies between the device and pageable memory, in the order of a queue and
 * without the caller's waiting.  The driver's own way through pinned memory
 * keeps the caller: here the data go through pinned slots, and the host's part
 * of each piece is a host function in a stream beside the queue, so that one
 * piece crosses the bus while another is copied by the host.  That part is
 * shared out to the pool of threads: one copies 10 GB/s, the bus 55.
 *
 * Host functions may call nothing of the driver's, and after a fault they are
 * not called any more: their jobs are freed when the device is closed. */
#include "xpu_cuda_api.h"

#include <stdlib.h>

/* 256 MB took 13.8 ms through two slots of 4 MB on an H200's machine, 10.7
 * through two of 8 and 6.0 through four.  To make pinned memory takes 0.7 ms a
 * MB, so only long copies have all slots. */
#define SLOT_BYTES ((size_t)8 << 20)
#define FEW_SLOTS  2u

struct xpu_cuda_job {
    xpu_cuda_job *next, **link; /* in the stage's list */
    xpu_cuda_stage *stage;
    xpu_device *dev;
    void *to;
    const void *from;
    size_t bytes;
};

void xpu_cuda_stage_init(xpu_cuda_stage *g, bool is_out)
{
    pthread_mutex_init(&g->lock, NULL);
    pthread_mutex_init(&g->jobs_lock, NULL);
    g->is_out = is_out;
}

/* ---- the host's part ---- */

static void list_job(xpu_cuda_job *j)
{
    xpu_cuda_stage *g = j->stage;

    pthread_mutex_lock(&g->jobs_lock);
    j->link = &g->jobs;
    if ((j->next = g->jobs))
        j->next->link = &j->next;
    g->jobs = j;
    pthread_mutex_unlock(&g->jobs_lock);
}

static void drop_job(xpu_cuda_job *j)
{
    xpu_cuda_stage *g = j->stage;

    pthread_mutex_lock(&g->jobs_lock);
    if ((*j->link = j->next))
        j->next->link = j->link;
    pthread_mutex_unlock(&g->jobs_lock);
    free(j);
}

/* A thread of the driver's. */
static void run_job(void *ctx)
{
    xpu_cuda_job *j = ctx;

    xpu_copy_shared(j->dev, j->to, j->from, j->bytes);
    drop_job(j);
}

static sd_status host_part(xpu_cuda *v, xpu_cuda_stage *g, void *to,
                           const void *from, size_t bytes)
{
    xpu_cuda_job *j = malloc(sizeof *j);
    cu_result err;

    if (!j)
        return sd_no_memory(sizeof *j);
    *j = (xpu_cuda_job){
        .stage = g, .dev = v->dev, .to = to, .from = from, .bytes = bytes};
    list_job(j);
    if ((err = v->driver->api.LaunchHostFunc(g->aside, run_job, j)))
        drop_job(j);
    return xpu_cuda_status(v->driver, v, err, "cuLaunchHostFunc");
}

/* ---- a piece ---- */

static sd_status device_part(xpu_cuda *v, cu_stream s, void *to,
                             const void *from, size_t bytes)
{
    return xpu_cuda_status(
        v->driver, v,
        v->driver->api.MemcpyAsync((cu_pointer)(uintptr_t)to,
                                   (cu_pointer)(uintptr_t)from, bytes, s),
        "cuMemcpyAsync");
}

/* What is put into `after` from now on follows all that is in `first`. */
static sd_status follow(xpu_cuda *v, cu_stream first, cu_event e,
                        cu_stream after)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_result err = a->EventRecord(e, first);

    if (err)
        return xpu_cuda_status(v->driver, v, err, "cuEventRecord");
    return xpu_cuda_status(v->driver, v, a->StreamWaitEvent(after, e, 0),
                           "cuStreamWaitEvent");
}

/* Into the slot by the first stream and out of it by the second; the slot is
 * the first one's again when the second is done with it. */
static sd_status copy_piece(xpu_cuda *v, xpu_cuda_stage *g, cu_stream s,
                            uint8_t *to, const uint8_t *from, size_t bytes)
{
    const xpu_cuda_api *a = &v->driver->api;
    unsigned i = (g->last + 1) % g->nslot;
    cu_stream first = g->is_out ? s : g->aside;
    cu_stream second = g->is_out ? g->aside : s;
    sd_status st;

    g->last = i;
    if ((st = xpu_cuda_status(v->driver, v,
                              a->StreamWaitEvent(first, g->empty[i], 0),
                              "cuStreamWaitEvent")))
        return st;
    st = g->is_out ? device_part(v, s, g->slot[i], from, bytes)
                   : host_part(v, g, g->slot[i], from, bytes);
    if (st || (st = follow(v, first, g->full[i], second)))
        return st;
    st = g->is_out ? host_part(v, g, to, g->slot[i], bytes)
                   : device_part(v, s, to, g->slot[i], bytes);
    if (st)
        return st;
    return xpu_cuda_status(v->driver, v, a->EventRecord(g->empty[i], second),
                           "cuEventRecord");
}

/* ---- all of it ---- */

static sd_status make_slot(xpu_cuda *v, xpu_cuda_stage *g, unsigned i)
{
    const xpu_cuda_api *a = &v->driver->api;
    unsigned flags = CU_EVENT_NO_TIMES;
    const char *call = "cuEventCreate";
    cu_result err = CU_OK;

    if (!g->full[i])
        err = a->EventCreate(&g->full[i], flags);
    if (!err && !g->empty[i])
        err = a->EventCreate(&g->empty[i], flags);
    if (!err && !g->slot[i]) {
        call = "cuMemHostAlloc";
        err = a->MemHostAlloc(&g->slot[i], SLOT_BYTES, CU_HOST_PORTABLE);
    }
    return xpu_cuda_status(v->driver, v, err, call);
}

/* As many slots as n pieces fill; two let copies in a row overlap. */
static sd_status make(xpu_cuda *v, xpu_cuda_stage *g, size_t n)
{
    unsigned want = (unsigned)SD_MIN(n, (size_t)XPU_CUDA_SLOTS);
    sd_status st = NULL;

    want = SD_MAX(want, FEW_SLOTS);
    if (!g->aside)
        st = xpu_cuda_status(
            v->driver, v,
            v->driver->api.StreamCreate(&g->aside, CU_NON_BLOCKING),
            "cuStreamCreate");
    for (; !st && g->nslot < want; g->nslot += !st)
        st = make_slot(v, g, g->nslot);
    if (st && st->code == SD_EXHAUSTED && g->nslot >= FEW_SLOTS) {
        sd_status_free(st); /* fewer are slower, and enough */
        st = NULL;
    }
    return st;
}

static sd_status copy_pieces(xpu_cuda *v, xpu_cuda_stage *g, cu_stream s,
                             uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t piece = bytes < 2 * SLOT_BYTES ? SLOT_BYTES / 2 : SLOT_BYTES;
    sd_status st = make(v, g, (bytes + piece - 1) / piece);

    if (st)
        return st;
    for (size_t at = 0; at < bytes && !st; at += piece)
        st = copy_piece(v, g, s, to + at, from + at, SD_MIN(bytes - at, piece));
    if (!st && g->is_out)
        st = xpu_cuda_status(
            v->driver, v,
            v->driver->api.StreamWaitEvent(s, g->empty[g->last], 0),
            "cuStreamWaitEvent");
    if (st) /* what is on its way ends before the caller's memory goes */
        v->driver->api.StreamSynchronize(g->aside);
    return st;
}

sd_status xpu_cuda_stage_copy(xpu_cuda *v, xpu_cuda_stage *g, cu_stream s,
                              void *to, const void *from, size_t bytes)
{
    sd_status st;

    pthread_mutex_lock(&g->lock);
    st = copy_pieces(v, g, s, to, from, bytes);
    pthread_mutex_unlock(&g->lock);
    return st;
}

/* ---- short copies to the host that the caller waits for ---- */

static cu_result make_short(xpu_cuda *v, xpu_cuda_short *s)
{
    const xpu_cuda_api *a = &v->driver->api;
    cu_result err = CU_OK;

    if (!s->half)
        err = a->EventCreate(&s->half, CU_EVENT_NO_TIMES);
    if (!err && !s->slot)
        err = a->MemHostAlloc(&s->slot, XPU_CUDA_SHORT_MOST, CU_HOST_PORTABLE);
    return err;
}

/* Two halves, so that the second crosses the bus while the host copies the
 * first. */
static sd_status copy_halves(xpu_cuda *v, xpu_cuda_short *s, uint8_t *to,
                             const uint8_t *from, size_t bytes)
{
    const xpu_cuda_api *a = &v->driver->api;
    uint8_t *slot = s->slot;
    size_t half = bytes / 2 & ~(size_t)63;
    sd_status st = device_part(v, v->now, slot, from, half);

    if (!st)
        st = xpu_cuda_status(v->driver, v, a->EventRecord(s->half, v->now),
                             "cuEventRecord");
    if (!st)
        st = device_part(v, v->now, slot + half, from + half, bytes - half);
    if (!st &&
        !(st = xpu_cuda_status(v->driver, v, a->EventSynchronize(s->half),
                               "cuEventSynchronize")))
        memcpy(to, slot, half);
    if (st) { /* the slot is the next copy's */
        a->StreamSynchronize(v->now);
        return st;
    }
    if (!(st = xpu_cuda_status(v->driver, v, a->StreamSynchronize(v->now),
                               "cuStreamSynchronize")))
        memcpy(to + half, slot + half, bytes - half);
    return st;
}

bool xpu_cuda_copy_short(xpu_cuda *v, void *to, const void *from, size_t bytes,
                         sd_status *st)
{
    xpu_cuda_short *s = &v->brief;
    bool can;

    if (pthread_mutex_trylock(&s->lock))
        return false;
    if ((can = !make_short(v, s)))
        *st = copy_halves(v, s, to, from, bytes);
    pthread_mutex_unlock(&s->lock);
    return can;
}

/* ---- the end ---- */

void xpu_cuda_short_finish(xpu_cuda *v, bool ours)
{
    const xpu_cuda_api *a = &v->driver->api;
    xpu_cuda_short *s = &v->brief;

    if (s->half && ours)
        a->EventDestroy(s->half);
    if (s->slot && ours)
        a->MemFreeHost(s->slot);
    pthread_mutex_destroy(&s->lock);
}

void xpu_cuda_stage_finish(xpu_cuda *v, xpu_cuda_stage *g, bool ours)
{
    const xpu_cuda_api *a = &v->driver->api;

    if (g->aside && ours) {
        a->StreamSynchronize(g->aside);
        a->StreamDestroy(g->aside);
    }
    for (int i = 0; i < XPU_CUDA_SLOTS && ours; i++) {
        if (g->full[i])
            a->EventDestroy(g->full[i]);
        if (g->empty[i])
            a->EventDestroy(g->empty[i]);
        if (g->slot[i])
            a->MemFreeHost(g->slot[i]);
    }
    while (g->jobs)
        drop_job(g->jobs);
    pthread_mutex_destroy(&g->lock);
    pthread_mutex_destroy(&g->jobs_lock);
}
