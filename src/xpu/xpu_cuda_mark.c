/* Marks of CUDA devices are events of a pool.  What follows one is told by a
 * thread of ours that waits for it, one a queue: the driver's host functions
 * are not called any more after a fault, and hold their stream up while they
 * run. */
#include "xpu_cuda_api.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* Ends what enter began. */
static sd_status leave_with(xpu_cuda *v, cu_result err, const char *call)
{
    xpu_cuda_leave(v);
    return xpu_cuda_status(v->driver, v, err, call);
}

/* ---- the pool ---- */

struct xpu_cuda_event {
    xpu_cuda_event *next; /* among the free ones */
    xpu_mark mark;
    xpu_task task; /* of the queue's watch */
    cu_event event;
    xpu_mark_fn fn;
    void *ctx;
};

static xpu_cuda_event *of_mark(const xpu_mark *m)
{
    return (xpu_cuda_event *)((char *)(uintptr_t)m -
                              offsetof(xpu_cuda_event, mark));
}

void xpu_cuda_forget(xpu_mark *mark)
{
    xpu_cuda *v = mark->dev->impl;
    xpu_cuda_event *e = of_mark(mark);

    pthread_mutex_lock(&v->lock);
    e->next = v->events;
    v->events = e;
    pthread_mutex_unlock(&v->lock);
}

static xpu_cuda_event *take_event(xpu_cuda *v)
{
    xpu_cuda_event *e;

    pthread_mutex_lock(&v->lock);
    if ((e = v->events))
        v->events = e->next;
    pthread_mutex_unlock(&v->lock);
    return e;
}

static sd_status get_event(xpu_cuda *v, xpu_cuda_event **out)
{
    xpu_cuda_event *e = take_event(v);
    cu_result err;

    if (!e) {
        if (!(e = calloc(1, sizeof *e)))
            return sd_no_memory(sizeof *e);
        err = v->driver->api.EventCreate(&e->event,
                                         CU_EVENT_SLEEPS | CU_EVENT_NO_TIMES);
        if (err) {
            free(e);
            return xpu_cuda_status(v->driver, v, err, "cuEventCreate");
        }
    }
    *out = e;
    return NULL;
}

void xpu_cuda_free_events(xpu_cuda *v, bool ours)
{
    xpu_cuda_event *e;

    while ((e = take_event(v))) {
        if (ours)
            v->driver->api.EventDestroy(e->event);
        free(e);
    }
    pthread_mutex_destroy(&v->lock);
}

/* ---- marks ---- */

/* Short work ends before this thread would be awake again.  The event is waited
 * for by name also when a query says that it is reached: compute-sanitizer's
 * memcheck sees no order in a query, and takes the free after it for a race. */
static sd_status await_event(xpu_cuda *v, cu_event event)
{
    const xpu_cuda_api *a = &v->driver->api;
    sd_status st = xpu_cuda_enter(v);
    uint64_t from = sd_now_ns();
    cu_result err;

    if (st)
        return st;
    while ((err = a->EventQuery(event)) == CU_NOT_READY &&
           sd_now_ns() - from < XPU_CUDA_LOOK_NS)
        __builtin_ia32_pause();
    if (err && err != CU_NOT_READY)
        return leave_with(v, err, "cuEventQuery");
    return leave_with(v, a->EventSynchronize(event), "cuEventSynchronize");
}

/* Whoever hears that it failed gives memory back: nothing may run then. */
static sd_status await(xpu_cuda *v, const xpu_cuda_event *e)
{
    sd_status st = await_event(v, e->event);

    if (st)
        v->driver->api.StreamSynchronize(v->queue[e->mark.queue]);
    return st;
}

/* What is handed over may be the last thing in flight: then the device may go,
 * and we need no more of it. */
static void watch(xpu_task *task)
{
    xpu_cuda_event *e =
        (xpu_cuda_event *)((char *)task - offsetof(xpu_cuda_event, task));
    sd_status st = await(e->mark.dev->impl, e);
    xpu_mark_fn fn = e->fn;
    void *ctx = e->ctx;

    xpu_mark_release(&e->mark);
    fn(ctx, st);
}

static sd_status tell_when_reached(xpu_cuda *v, xpu_cuda_event *e)
{
    sd_status st;

    if (!e->fn)
        return NULL;
    xpu_mark_retain(&e->mark);
    e->task.run = watch;
    if ((st = xpu_stream_push(&v->watch[e->mark.queue], &e->task)))
        xpu_mark_release(&e->mark);
    return st;
}

sd_status xpu_cuda_record(xpu_device *d, xpu_queue q, xpu_mark_fn fn, void *ctx,
                          xpu_mark **out)
{
    xpu_cuda *v = d->impl;
    xpu_cuda_event *e = NULL;
    sd_status st;

    if ((st = xpu_cuda_enter(v)))
        return st;
    if ((st = get_event(v, &e))) {
        xpu_cuda_leave(v);
        return st;
    }
    e->mark.dev = d;
    e->mark.queue = q;
    e->fn = fn;
    e->ctx = ctx;
    atomic_init(&e->mark.refs, 1);
    st = leave_with(v, v->driver->api.EventRecord(e->event, v->queue[q]),
                    "cuEventRecord");
    if (st || (st = tell_when_reached(v, e))) {
        xpu_mark_release(&e->mark);
        return st;
    }
    *out = &e->mark;
    return NULL;
}

sd_status xpu_cuda_wait(xpu_device *d, xpu_queue q, xpu_mark *m)
{
    xpu_cuda *v = d->impl;
    sd_status st = xpu_cuda_enter(v);

    if (st)
        return st;
    return leave_with(
        v, v->driver->api.StreamWaitEvent(v->queue[q], of_mark(m)->event, 0),
        "cuStreamWaitEvent");
}

/* After a fault, which it may be the first to hear of, it never will be; when
 * the driver does not say, it was not. */
bool xpu_cuda_query(const xpu_mark *m)
{
    xpu_cuda *v = m->dev->impl;
    sd_status st = xpu_cuda_enter(v);
    cu_result err = CU_NOT_READY;

    if (!st) {
        err = v->driver->api.EventQuery(of_mark(m)->event);
        st = leave_with(v, err == CU_NOT_READY ? CU_OK : err, "cuEventQuery");
    }
    sd_status_free(st);
    return err == CU_OK || atomic_load(&v->fault);
}

/* Asked for where something failed: the driver is, too, when it may not know
 * what a fault has ended. */
sd_status xpu_cuda_sync(xpu_device *d, xpu_queue q)
{
    xpu_cuda *v = d->impl;
    sd_status st = xpu_cuda_enter(v);

    if (!st)
        return leave_with(v, v->driver->api.StreamSynchronize(v->queue[q]),
                          "cuStreamSynchronize");
    if (v->driver->process == getpid())
        v->driver->api.StreamSynchronize(v->queue[q]);
    return st;
}

/* ---- streams of others ---- */

/* The driver keeps what an event stood for, and the event until it is reached.
 */
sd_status xpu_cuda_follow(xpu_device *d, xpu_queue q, void *stream)
{
    xpu_cuda *v = d->impl;
    const char *call = "cuEventCreate";
    sd_status st = xpu_cuda_enter(v);
    cu_event e = NULL;
    cu_result err;

    if (st)
        return st;
    err = v->driver->api.EventCreate(&e, CU_EVENT_NO_TIMES);
    if (!err) {
        call = "cuEventRecord";
        err = v->driver->api.EventRecord(e, stream);
    }
    if (!err) {
        call = "cuStreamWaitEvent";
        err = v->driver->api.StreamWaitEvent(v->queue[q], e, 0);
    }
    if (e)
        v->driver->api.EventDestroy(e);
    xpu_cuda_leave(v);
    return xpu_cuda_status(v->driver, v, err, call);
}

sd_status xpu_cuda_lead(xpu_device *d, void *stream, xpu_mark *m)
{
    xpu_cuda *v = d->impl;
    sd_status st = xpu_cuda_enter(v);

    if (st)
        return st;
    return leave_with(
        v, v->driver->api.StreamWaitEvent(stream, of_mark(m)->event, 0),
        "cuStreamWaitEvent");
}
