/* Executions that wait or run, by device, and the two who end them from
 * outside: a framework that poisons a launch, and an interrupt. */
#include "xpu_execution.h"
#include "xpu_interrupt.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

void xpu_live_add(xpu_execution *e)
{
    xpu_device *d = e->program->dev;

    if (d->client->interrupts) {
        xpu_live_watch(d->client);
        e->born = xpu_interrupt_watch();
    }
    pthread_mutex_lock(&d->launch_lock);
    if ((e->next = d->launches))
        e->next->link = &e->next;
    e->link = &d->launches;
    d->launches = e;
    e->listed = true;
    pthread_mutex_unlock(&d->launch_lock);
}

bool xpu_live_begin(xpu_execution *e)
{
    xpu_device *d = e->program->dev;
    bool ok;

    pthread_mutex_lock(&d->launch_lock);
    ok = !e->poisoned;
    e->begun = true;
    pthread_mutex_unlock(&d->launch_lock);
    return ok;
}

void xpu_live_remove(xpu_execution *e)
{
    xpu_device *d = e->program->dev;

    if (!e->listed)
        return;
    pthread_mutex_lock(&d->launch_lock);
    if ((*e->link = e->next))
        e->next->link = e->link;
    pthread_mutex_unlock(&d->launch_lock);
    e->listed = false;
    if (d->client->interrupts)
        xpu_interrupt_unwatch();
}

/* ---- poison ---- */

bool xpu_device_poison(xpu_device *d, int launch, sd_status st)
{
    xpu_event *done = NULL;

    pthread_mutex_lock(&d->launch_lock);
    for (xpu_execution *e = d->launches; e && !done; e = e->next)
        if (launch && e->launch == launch && !e->begun && !e->poisoned) {
            e->poisoned = true;
            done = xpu_event_retain(e->done);
        }
    pthread_mutex_unlock(&d->launch_lock);
    if (!done) {
        sd_status_free(st);
        return false;
    }
    xpu_event_set(done, st);
    xpu_event_release(done);
    return true;
}

/* ---- interrupts ---- */

/* A framework looks for its own interrupt now and then: jaxlib every 200 ms,
 * and for as long as callbacks run it has to wait for Python's lock.  So the
 * run is ended first, and who waits for it is told later: Python raises
 * KeyboardInterrupt, and not our error. */
#define TELL_NS 300000000u

static void mark_due(xpu_device *d)
{
    pthread_mutex_lock(&d->launch_lock);
    for (xpu_execution *e = d->launches; e; e = e->next)
        if (!atomic_load(&e->cancel) && xpu_interrupt_due(e->born)) {
            e->poisoned = !e->begun;
            e->tell_at = sd_now_ns() + TELL_NS;
            atomic_store(&e->cancel, true);
        }
    pthread_mutex_unlock(&d->launch_lock);
}

/* The event of one to tell; NULL: there is none, or (*later) not yet. */
static xpu_event *tell_one(xpu_device *d, sd_status *st, bool *later)
{
    xpu_event *done = NULL;
    uint64_t now = sd_now_ns();

    pthread_mutex_lock(&d->launch_lock);
    for (xpu_execution *e = d->launches; e && !done; e = e->next) {
        if (!atomic_load(&e->cancel) || e->told)
            continue;
        if (now < e->tell_at) {
            *later = true;
            continue;
        }
        e->told = true;
        *st = xpu_interrupted(e->program->thunks->name);
        done = xpu_event_retain(e->done);
    }
    pthread_mutex_unlock(&d->launch_lock);
    return done;
}

/* What waits for a result gets the error, whatever the run is in: a kernel that
 * takes long, a library, a callback.  The run ends when it can.  True: there is
 * somebody to tell later. */
static bool cancel_all(const xpu_client *c)
{
    bool later = false;
    xpu_event *done;
    sd_status st;

    for (int i = 0; i < c->ndev; i++) {
        mark_due(c->dev[i]);
        while ((done = tell_one(c->dev[i], &st, &later))) {
            xpu_event_set(done, st);
            xpu_event_release(done);
        }
    }
    return later;
}

sd_status xpu_live_end(const xpu_execution *e, sd_status st)
{
    struct timespec t;

    if (!atomic_load(&e->cancel))
        return st;
    t.tv_sec = (time_t)(e->tell_at / 1000000000u);
    t.tv_nsec = (long)(e->tell_at % 1000000000u);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
    sd_status_free(st);
    return xpu_interrupted(e->program->thunks->name);
}

static void *watch(void *arg)
{
    xpu_client *c = arg;

    for (;;) {
        uint32_t bell = xpu_interrupt_bell();

        if (atomic_load(&c->watch_stop))
            return NULL;
        xpu_interrupt_keep();
        xpu_interrupt_sleep(bell, cancel_all(c));
    }
}

/* Once a client.  Without the thread nothing is interrupted, and all else goes
 * on. */
void xpu_live_watch(xpu_client *c)
{
    int err;

    if (atomic_load_explicit(&c->watched, memory_order_acquire))
        return;
    pthread_mutex_lock(&c->lock);
    if (!c->watched) {
        err = sd_thread_start(&c->watcher, "xpu-interrupts", watch, c);
        c->watching = !err;
        if (err)
            sd_log(SD_LOG_WARN, "no thread to watch for interrupts: %s",
                   strerror(err));
        c->process = getpid();
        atomic_store_explicit(&c->watched, true, memory_order_release);
    }
    pthread_mutex_unlock(&c->lock);
}

/* In a forked child the thread is not there.  None is made afterwards, for runs
 * that are refused. */
void xpu_live_stop(xpu_client *c)
{
    pthread_mutex_lock(&c->lock);
    atomic_store(&c->watched, true);
    pthread_mutex_unlock(&c->lock);
    if (!c->watching || c->process != getpid())
        return;
    atomic_store(&c->watch_stop, true);
    xpu_interrupt_ring();
    pthread_join(c->watcher, NULL);
    c->watching = false;
}
