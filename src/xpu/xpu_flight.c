/* Work that is in a device's queues.  The driver says when a mark is reached,
 * on a thread of its own where nothing may be done that blocks or takes long:
 * there a piece of work is only handed to the device's `done` stream, which
 * ends it: memory goes back, events are set, what waits for them is called.
 *
 * Work ends in the order of its queue, whatever order the driver's threads
 * tell in, so what was ready by a former one of the queue has been set by then.
 * docs/adr/0020 has the rules. */
#include "xpu_buffer.h"
#include "xpu_device.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

/* What is in a queue cannot be taken back when an interrupt comes, and a queue
 * that lasts this long hides what launching costs. */
#define MOST_NS 100000000
/* To sleep and to be woken takes 10 to 40 microseconds, which a run that was
 * told of by a sleeping thread seems to have taken, too: with a lower limit
 * small programs that were slow once would stay so. */
#define SOON_NS 60000

#define MOST_QUEUED 4096
#define LOOK_EVERY  16

void xpu_flights_init(xpu_flights *f)
{
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->fewer, NULL);
    for (int q = 0; q < XPU_QUEUE_COUNT; q++)
        f->tail[q] = &f->head[q];
}

void xpu_flights_finish(xpu_flights *f)
{
    pthread_cond_destroy(&f->fewer);
    pthread_mutex_destroy(&f->lock);
}

bool xpu_pace_is_due(xpu_pace *p, int n)
{
    int before = p->n;

    if (!p->n)
        p->since = sd_now_ns();
    p->n += n;
    if (p->n / LOOK_EVERY == before / LOOK_EVERY ||
        (p->n < MOST_QUEUED && sd_now_ns() - p->since < MOST_NS))
        return false;
    *p = (xpu_pace){0};
    return true;
}

/* ---- marks ---- */

xpu_mark *xpu_mark_retain(xpu_mark *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

void xpu_mark_release(xpu_mark *m)
{
    if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1)
        m->dev->ops->forget(m);
}

/* ---- the end ---- */

static int64_t guess(const xpu_flight *f)
{
    return f->queue != XPU_COMPUTE ? 0 : f->ns < 0 ? MOST_NS : f->ns;
}

/* No longer in the device's queue, though its end is still to come. */
static void leave_queue(xpu_flight *f)
{
    xpu_flights *all = &f->dev->flights;
    uint64_t now = sd_now_ns(), from = SD_MAX(f->since, all->last);

    if (f->queue != XPU_COMPUTE)
        return;
    pthread_mutex_lock(&all->lock);
    all->ncompute--;
    all->ns -= guess(f);
    all->last = now;
    pthread_cond_broadcast(&all->fewer);
    pthread_mutex_unlock(&all->lock);
    f->ns = (int64_t)(now - from);
}

static void end(xpu_task *task)
{
    xpu_flight *f = (xpu_flight *)task;
    xpu_flights *all = &f->dev->flights;
    xpu_queue q = f->queue;

    leave_queue(f);
    f->end(f, f->st);
    pthread_mutex_lock(&all->lock);
    all->n[q]--;
    pthread_cond_broadcast(&all->fewer);
    pthread_mutex_unlock(&all->lock);
}

static void call_arrive(xpu_task *task)
{
    xpu_flight *f =
        (xpu_flight *)((char *)task - offsetof(xpu_flight, arrival));

    f->arrive(f);
}

/* Under the lock. */
static void hand_over(xpu_flight *f, xpu_task *task, bool here)
{
    xpu_stream *done = &f->dev->done;
    sd_status st =
        here ? xpu_stream_leave(done, task) : xpu_stream_push(done, task);

    assert(!st); /* it was started, and stops when nothing is in flight */
    (void)st;
}

/* It waits for one thing less; st (taken) is what that thing came to.  here:
 * this thread may end work. */
static void drop(xpu_flight *f, sd_status st, bool here)
{
    xpu_flights *all = &f->dev->flights;
    xpu_stream *done = &f->dev->done;
    xpu_flight **head = &all->head[f->queue], **tail;
    bool any = false;

    pthread_mutex_lock(&all->lock);
    f->st = sd_first(f->st, st);
    f->waits--;
    tail = all->tail[f->queue];
    while ((f = *head) && !f->waits) {
        if (tail == &f->next)
            all->tail[f->queue] = head;
        *head = f->next;
        hand_over(f, &f->task, here);
        any = here;
    }
    if (f && f->waits == 1 && f->arrive && !f->arrived) {
        f->arrived = true;
        hand_over(f, &f->arrival, here);
        any = here;
    }
    pthread_mutex_unlock(&all->lock);
    if (any)
        xpu_stream_serve(done);
}

void xpu_flight_let_go(xpu_flight *f, sd_status st)
{
    drop(f, st, false);
}

/* To hand over to a sleeping thread takes as long as a small program: where
 * this one is ours it ends the work itself. */
static void reach(void *ctx, sd_status st)
{
    xpu_flight *f = ctx;

    drop(f, st, f->dev->ops->own_threads);
}

/* Its error is its users' to tell. */
static void come_ready(void *ctx, sd_status st)
{
    sd_status_free(st);
    drop(ctx, NULL, false);
}

/* ---- lending a thread ----
 * A driver for the host's own cores counts on a thread that waits for it: it
 * keeps one thread less than there are cores, and more only wake slowly. */

typedef struct {
    xpu_task task; /* first */
    xpu_mark *mark; /* a reference */
} loan;

static void help(xpu_task *task)
{
    loan *l = (loan *)task;

    l->mark->dev->ops->help(l->mark);
    xpu_mark_release(l->mark);
    free(l);
}

/* Without one it takes longer, and that is all. */
static void lend(xpu_flight *f, xpu_mark *m)
{
    xpu_device *d = f->dev;
    xpu_stream *s = f->queue == XPU_COMPUTE ? &d->lender : &d->transfer;
    loan *l;
    sd_status st;

    if (!d->lends || f->helped || !(l = malloc(sizeof *l)))
        return;
    *l = (loan){{NULL, help}, xpu_mark_retain(m)};
    if ((st = xpu_stream_push(s, &l->task))) {
        sd_status_free(st);
        xpu_mark_release(m);
        free(l);
    }
}

/* ---- on the way ---- */

sd_status xpu_flight_begin(xpu_flight *f, xpu_device *d, xpu_queue q)
{
    sd_status st = xpu_stream_start(&d->done);

    if (st)
        return st;
    f->task.run = end;
    f->next = NULL;
    f->dev = d;
    f->queue = q;
    f->st = NULL;
    f->waits = 1; /* for who begins, until all is launched */
    f->arrive = NULL;
    f->since = sd_now_ns();
    pthread_mutex_lock(&d->flights.lock);
    d->flights.n[q]++;
    d->flights.ncompute += q == XPU_COMPUTE;
    d->flights.ns += guess(f);
    pthread_mutex_unlock(&d->flights.lock);
    return NULL;
}

void xpu_flight_join(xpu_flight *f, void (*arrive)(xpu_flight *f))
{
    f->arrive = arrive;
    f->arrival.run = call_arrive;
    f->arrived = false;
    f->waits++;
}

/* In another queue: the device waits for the mark, and f's end for the event.
 */
static sd_status follow(xpu_flight *f, xpu_event *ready, xpu_mark *m)
{
    const xpu_device_ops *ops = f->dev->ops;
    sd_status st = NULL;

    if (!ops->query(m) && (st = ops->wait(f->dev, f->queue, m)))
        return st;
    pthread_mutex_lock(&f->dev->flights.lock);
    f->waits++;
    pthread_mutex_unlock(&f->dev->flights.lock);
    if ((st = xpu_event_then(ready, come_ready, f)))
        drop(f, NULL, false);
    return st;
}

sd_status xpu_flight_after(xpu_flight *f, xpu_event *ready)
{
    xpu_mark *m;
    sd_status st = NULL;

    while (!(m = xpu_event_mark(ready))) {
        if (xpu_event_is_ready(ready))
            return xpu_event_error(ready);
        xpu_event_await_queued(ready);
    }
    if (!xpu_device_is_like(m->dev, f->dev))
        st = xpu_event_wait(ready);
    else if (m->dev != f->dev || m->queue != f->queue)
        st = follow(f, ready, m);
    xpu_mark_release(m);
    return st;
}

/* Who helps sends it off by that.  What cannot be sent is waited for. */
static void send_off(xpu_flight *f)
{
    const xpu_device_ops *ops = f->dev->ops;
    sd_status st;

    if (f->helped || !(st = ops->send(f->dev, f->queue)))
        return;
    sd_status_free(st);
    sd_status_free(ops->sync(f->dev, f->queue));
}

void xpu_flight_launched(xpu_flight *f, sd_status st, xpu_event *done)
{
    xpu_device *d = f->dev;
    xpu_flights *all = &d->flights;
    xpu_mark *m;
    sd_status bad;

    pthread_mutex_lock(&all->lock);
    *all->tail[f->queue] = f;
    all->tail[f->queue] = &f->next;
    f->waits++; /* for the mark */
    pthread_mutex_unlock(&all->lock);
    if ((bad = d->ops->record(d, f->queue, reach, f, &m))) {
        /* What was launched may still write. */
        sd_status_free(d->ops->sync(d, f->queue));
        drop(f, NULL, false);
    } else {
        send_off(f);
        if (done)
            xpu_event_queued(done, m);
        lend(f, m);
        xpu_mark_release(m);
    }
    drop(f, sd_first(st, bad), false);
}

/* ---- how many ---- */

static bool fits(const xpu_flights *all, int64_t ns)
{
    return !all->ncompute || (ns >= 0 && ns <= MOST_NS - all->ns);
}

bool xpu_flight_fits(xpu_device *d, int64_t ns)
{
    bool ok;

    pthread_mutex_lock(&d->flights.lock);
    ok = fits(&d->flights, ns);
    pthread_mutex_unlock(&d->flights.lock);
    return ok;
}

bool xpu_flight_ends_soon(xpu_device *d)
{
    bool soon;

    pthread_mutex_lock(&d->flights.lock);
    soon = d->ops->own_threads && d->flights.ns <= SOON_NS;
    pthread_mutex_unlock(&d->flights.lock);
    return soon;
}

void xpu_flight_await_fit(xpu_device *d, int64_t ns)
{
    pthread_mutex_lock(&d->flights.lock);
    while (!fits(&d->flights, ns))
        pthread_cond_wait(&d->flights.fewer, &d->flights.lock);
    pthread_mutex_unlock(&d->flights.lock);
}

void xpu_flight_await_others(xpu_flight *f)
{
    xpu_flights *all = &f->dev->flights;

    pthread_mutex_lock(&all->lock);
    while (all->n[f->queue] > 1)
        pthread_cond_wait(&all->fewer, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

static int count(const xpu_flights *all)
{
    int n = 0;

    for (int q = 0; q < XPU_QUEUE_COUNT; q++)
        n += all->n[q];
    return n;
}

/* A forked child does not wait: the threads that end flights are its parent's.
 */
void xpu_flight_drain(xpu_device *d)
{
    bool left = xpu_stream_is_left_behind(&d->done);

    pthread_mutex_lock(&d->flights.lock);
    while (count(&d->flights) && !left)
        pthread_cond_wait(&d->flights.fewer, &d->flights.lock);
    pthread_mutex_unlock(&d->flights.lock);
}

/* ---- scratch memory ---- */

static xpu_work *share(xpu_flights *all, size_t bytes)
{
    xpu_work *w;

    pthread_mutex_lock(&all->lock);
    if ((w = all->work) && w->bytes >= bytes)
        w->refs++;
    else
        w = NULL;
    pthread_mutex_unlock(&all->lock);
    return w;
}

/* alone: of a run inside another's, whose work is not done. */
sd_status xpu_work_take(xpu_device *d, size_t bytes, bool alone, xpu_work **out)
{
    xpu_flights *all = &d->flights;
    xpu_work *w = alone ? NULL : share(all, bytes);
    sd_status st;

    if (!w) {
        if (!(w = malloc(sizeof *w)))
            return sd_no_memory(sizeof *w);
        *w = (xpu_work){.refs = 1, .bytes = bytes};
        st = xpu_memory_try(
            d, XPU_MEM_DEVICE,
            (xpu_purpose){"temporaries of programs in a row", ""}, bytes,
            &w->at, &w->cls);
        if (st) {
            free(w);
            return st;
        }
        if (!alone) {
            pthread_mutex_lock(&all->lock);
            all->work = w; /* a smaller one stays with those who have it */
            pthread_mutex_unlock(&all->lock);
        }
    }
    *out = w;
    return NULL;
}

void xpu_work_release(xpu_device *d, xpu_work *w)
{
    xpu_flights *all = &d->flights;
    bool last;

    if (!w)
        return;
    pthread_mutex_lock(&all->lock);
    if ((last = !--w->refs) && all->work == w)
        all->work = NULL;
    pthread_mutex_unlock(&all->lock);
    if (!last)
        return;
    xpu_memory_free(d, XPU_MEM_DEVICE, w->at, w->cls);
    free(w);
}
