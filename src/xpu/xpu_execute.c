/* The execution of programs: an execution is made (xpu_execution.c), and done
 * or launched at once, or queued. */
#include "xpu_execution.h"

#include <math.h>
#include <stdlib.h>

/* Without queues: a run that is thought to take no more is the caller's.  To
 * wake another thread and to be woken by it costs more than is lost while the
 * caller prepares no other run; and runs that wait in a queue have their
 * outputs' memory, so that none of them writes where the caches still hold what
 * the run before it wrote.  The first run goes by device_guess_ns, which is
 * five times too high for vectors and 25 times for products; then all go by
 * what runs took lately. */
#define INLINE_NS 1000000
/* With queues: where runs take that long the guess was too low, and callers do
 * not lend themselves to them. */
#define SLOW_NS 1000000

/* With queues: so many launches take less time than to wake another thread. */
#define INLINE_LAUNCHES 32
/* On a device that lends (the host's own cores) so few launches of so little
 * work have run before one of the driver's threads is awake. */
#define BRIEF_NS       1e5
#define BRIEF_LAUNCHES 4

/* So far ahead may callers run before they wait: each run that is queued or in
 * flight already holds the memory of its outputs, and large arrays would fill
 * what there is with those that are to come.  A card's own memory, of which a
 * sixteenth may be ahead, serves programs alone: outputs of 1 GB, written in
 * half a millisecond, need several runs ahead.  Transfers never wait: a caller
 * may hold a lock that the callbacks of an earlier one need. */
#define MOST_QUEUED 256
#define MOST_AHEAD  ((int64_t)128 << 20)
#define OWN_AHEAD   16

typedef xpu_execution execution;

/* ---- not too far ahead ---- */

static bool is_too_far(const xpu_device *d)
{
    const xpu_flights *f = &d->flights;
    int64_t own = d->own_memory ? d->limit / OWN_AHEAD : 0;

    return f->nahead >= MOST_QUEUED || f->ahead > SD_MAX(MOST_AHEAD, own);
}

/* A thread that serves one of the client's devices waits for none of them,
 * since what it waits for may wait for it.  In a forked child no run ever ends.
 */
static bool may_wait(const xpu_device *d)
{
    const xpu_client *c = d->client;

    for (int i = 0; i < c->ndev; i++)
        if (xpu_device_is_mine(c->dev[i]))
            return false;
    return !xpu_stream_is_left_behind((xpu_stream *)&d->compute) &&
           !xpu_stream_is_left_behind((xpu_stream *)&d->done);
}

void xpu_execute_not_too_far(xpu_device *d)
{
    xpu_flights *f = &d->flights;
    bool far;

    pthread_mutex_lock(&f->lock);
    far = is_too_far(d);
    pthread_mutex_unlock(&f->lock);
    if (!far || !may_wait(d))
        return;
    pthread_mutex_lock(&f->lock);
    while (is_too_far(d))
        pthread_cond_wait(&f->fewer, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

/* ---- when it runs ---- */

/* Of several devices no program stands between the members of a gang: it would
 * be behind the one and ahead of the other, and what comes of it may not be. */
static sd_status push(execution *e)
{
    xpu_device *d = e->program->dev;
    xpu_client *c = d->client;
    sd_status st;

    if (c->ndev == 1)
        return xpu_stream_push(&d->compute, &e->task);
    pthread_mutex_lock(&c->gang_lock);
    st = xpu_stream_push(&d->compute, &e->task);
    pthread_mutex_unlock(&c->gang_lock);
    return st;
}

/* One more argument is there, or in error. */
static void arrive(void *ctx, sd_status st)
{
    execution *e = ctx;

    sd_status_free(st);
    if (atomic_fetch_sub(&e->waits, 1) != 1)
        return;
    xpu_execution_count(e);
    if ((st = push(e)))
        xpu_execution_end(e, st);
}

/* Where there is no memory left to be told of an argument, the stream waits for
 * that one. */
void xpu_execution_await(const execution *e, _Atomic int *waits,
                         xpu_event_fn fn, void *ctx)
{
    for (int i = 0; i < e->nused; i++) {
        xpu_event *ready = e->arg[i]->ready;
        sd_status st;

        if (xpu_event_is_ready(ready))
            continue;
        atomic_fetch_add(waits, 1);
        if ((st = xpu_event_then(ready, fn, ctx)))
            fn(ctx, st);
    }
}

/* Keeps e off the stream until its arguments are ready. */
static void park(execution *e)
{
    atomic_init(&e->waits, 1);
    xpu_execution_await(e, &e->waits, arrive, e);
    arrive(e, NULL);
}

static bool all(const execution *e, bool (*is)(const xpu_event *ready))
{
    for (int i = 0; i < e->nused; i++)
        if (!is(e->arg[i]->ready))
            return false;
    return true;
}

static int64_t took_lately(const xpu_program *x)
{
    return atomic_load_explicit(&x->took_ns, memory_order_relaxed);
}

/* What callbacks and handlers wait for may be the caller's to do. */
static bool is_short(const execution *e)
{
    const xpu_program *x = e->program;
    int64_t took = took_lately(x);

    if (took < 0 || x->ffi || e->nsend || e->nrecv)
        return x->cost_ns <= INLINE_NS && took <= INLINE_NS;
    return took <= INLINE_NS;
}

/* On a device with queues it is launched, else run, while the caller waits. */
static bool is_small(const execution *e)
{
    const xpu_program *x = e->program;

    if (e->parked)
        return false;
    if (!x->dev->ops->record)
        return is_short(e) && all(e, xpu_event_is_ready);
    return x->nlaunch >= 0 && x->nlaunch <= INLINE_LAUNCHES &&
           all(e, xpu_event_is_queued) &&
           xpu_flight_fits(x->dev, took_lately(x));
}

/* Nothing keeps the run from starting, and it has ended before one of the
 * driver's threads would be awake. */
static bool is_brief(const execution *e)
{
    const xpu_program *x = e->program;

    return x->dev->lends && x->nlaunch <= BRIEF_LAUNCHES &&
           x->cost_ns <= BRIEF_NS && xpu_flight_fits(x->dev, INT64_MAX) &&
           took_lately(x) <= SLOW_NS && all(e, xpu_event_is_ready);
}

/* The caller's thread is lent to the driver until the run is done, and then
 * ends this run itself, but no other. */
static void launch_with_help(execution *e)
{
    xpu_device *d = e->program->dev;
    xpu_event *done = xpu_event_retain(e->done);
    const xpu_task *end = &e->flight.task;
    xpu_mark *m;

    e->flight.helped = true;
    xpu_execution_run(e);
    if ((m = xpu_event_mark(done))) {
        d->ops->help(m);
        xpu_mark_release(m);
    }
    xpu_stream_run_first(&d->done, end);
    xpu_stream_disown(&d->done);
    xpu_event_release(done);
}

static void launch_now(execution *e)
{
    xpu_device *d = e->program->dev;

    xpu_execution_count(e);
    if (is_brief(e) && xpu_stream_try_own(&d->done)) {
        launch_with_help(e); /* gone before an interrupt could be due */
    } else {
        xpu_live_add(e);
        xpu_execution_run(e);
    }
    xpu_stream_disown(&d->compute);
}

/* How long a loop turns this time nobody knows: only what is listed can be
 * interrupted. */
static void compute_now(execution *e)
{
    xpu_device *d = e->program->dev;
    xpu_event *done = e->done, *ended = e->ended;
    sd_status st;

    if (e->program->cost_ns == INFINITY) {
        xpu_live_add(e);
        xpu_execution_run(e);
        xpu_stream_disown(&d->compute);
        return;
    }
    st = xpu_execution_compute(e);
    xpu_execution_free(e);
    xpu_stream_disown(&d->compute);
    xpu_execution_tell(done, ended, st);
}

/* Runs or launches e on this thread when it is small and nothing comes before
 * it; e is taken then. */
static bool run_now(execution *e)
{
    if (!is_small(e) || !xpu_stream_try_own(&e->program->dev->compute))
        return false;
    if (e->program->dev->ops->record)
        launch_now(e);
    else
        compute_now(e);
    return true;
}

/* A host callback runs programs on its own device, and may wait for them: they
 * cannot queue behind the run that it is part of.  What takes an argument's
 * memory must, since others may be queued that are to read it before. */
static bool is_nested(const execution *e)
{
    xpu_device *d = e->program->dev;

    return !e->program->aliases && xpu_stream_is_mine(&d->compute) &&
           d->in_callback;
}

/* Takes e, unless it returns an error. */
static sd_status start_execution(execution *e)
{
    sd_status st;

    if (run_now(e))
        return NULL;
    xpu_live_add(e);
    if (e->parked) {
        park(e);
        return NULL;
    }
    xpu_execution_count(e);
    if (is_nested(e)) {
        xpu_execution_run(e);
        return NULL;
    }
    if ((st = push(e))) {
        xpu_execution_uncount(e);
        xpu_live_remove(e);
    }
    return st;
}

/* ---- all ---- */

sd_status xpu_execute(xpu_program *x, const xpu_call *call, xpu_buffer **out,
                      xpu_event **done)
{
    execution *e;
    xpu_event *ready;
    sd_status st;

    if (x->meets)
        return sd_error(SD_INVALID,
                        "%s is a program of %d participants, who run it "
                        "together or not at all",
                        x->thunks->name, thunk_participants(x->thunks));
    xpu_execute_not_too_far(x->dev);
    if ((st = xpu_execution_make(x, call, xpu_call_must_park(call), &e)))
        return st;
    ready = xpu_execution_give(e, out);
    if ((st = start_execution(e))) {
        xpu_execution_undo(e);
        xpu_event_release(ready);
        return st;
    }
    xpu_call_delete_donated(x, call);
    if (done)
        *done = ready;
    else
        xpu_event_release(ready);
    return NULL;
}
