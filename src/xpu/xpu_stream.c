/* Streams: a queue of tasks in order, run by one thread of ours, or by a
 * caller while nothing else runs or waits.  Whoever runs has `busy`. */
#include "xpu_device.h"

#include <stdio.h>
#include <unistd.h>

void xpu_stream_init(xpu_stream *s, const char *name)
{
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->idle, NULL);
    s->head = NULL;
    s->tail = &s->head;
    snprintf(s->name, sizeof s->name, "%s", name);
}

static xpu_task *take_first(xpu_stream *s)
{
    xpu_task *t = s->head;

    if (!(s->head = t->next))
        s->tail = &s->head;
    return t;
}

/* A thread that sleeps costs whoever pushes a system call, and the work the
 * time until it is awake. */
static void look(xpu_stream *s)
{
    uint32_t seen = atomic_load(&s->pushed);
    uint64_t from = sd_now_ns();

    pthread_mutex_unlock(&s->lock);
    while (atomic_load_explicit(&s->pushed, memory_order_relaxed) == seen &&
           sd_now_ns() - from < s->look_ns)
        __builtin_ia32_pause();
    pthread_mutex_lock(&s->lock);
}

static void await_work(xpu_stream *s)
{
    bool looked = !s->look_ns;

    while (s->busy || (!s->head && !s->stop)) {
        if (looked || s->busy)
            pthread_cond_wait(&s->work, &s->lock);
        else
            look(s);
        looked = true;
    }
}

static void *serve(void *arg)
{
    xpu_stream *s = arg;
    xpu_task *t;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        await_work(s);
        if (!s->head)
            break;
        t = take_first(s);
        s->busy = true;
        pthread_mutex_unlock(&s->lock);
        t->run(t);
        pthread_mutex_lock(&s->lock);
        s->busy = false;
        pthread_cond_broadcast(&s->idle);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* In a child that was forked after the thread was started: nobody serves. */
static bool is_left_behind(const xpu_stream *s)
{
    return s->started && s->process != getpid();
}

static sd_status start_thread(xpu_stream *s)
{
    int err = sd_thread_start(&s->thread, s->name, serve, s);

    if (err)
        return sd_error(
            SD_EXHAUSTED,
            "no thread for stream %s: %s (the limits: ulimit -u, and "
            "pids.max of the control group)",
            s->name, strerror(err));
    s->process = getpid();
    s->started = true;
    return NULL;
}

bool xpu_stream_is_mine(xpu_stream *s)
{
    bool mine;

    pthread_mutex_lock(&s->lock);
    mine = (s->started && pthread_equal(pthread_self(), s->thread)) ||
           (s->served && pthread_equal(pthread_self(), s->server));
    pthread_mutex_unlock(&s->lock);
    return mine;
}

static sd_status refuse(const xpu_stream *s)
{
    if (s->stop)
        return sd_error(SD_PRECONDITION,
                        "stream %s has ended: its client was destroyed",
                        s->name);
    return sd_error(
        SD_PRECONDITION,
        "stream %s belongs to process %d, from which this one was forked: "
        "threads do not come along; start processes with the spawn method, or "
        "fork before the device is used",
        s->name, (int)s->process);
}

static sd_status be_served(xpu_stream *s)
{
    if (s->stop || is_left_behind(s))
        return refuse(s);
    return s->started ? NULL : start_thread(s);
}

sd_status xpu_stream_start(xpu_stream *s)
{
    sd_status st;

    pthread_mutex_lock(&s->lock);
    st = be_served(s);
    pthread_mutex_unlock(&s->lock);
    return st;
}

bool xpu_stream_is_left_behind(xpu_stream *s)
{
    bool left;

    pthread_mutex_lock(&s->lock);
    left = is_left_behind(s);
    pthread_mutex_unlock(&s->lock);
    return left;
}

static sd_status push(xpu_stream *s, xpu_task *t, bool wake)
{
    sd_status st;

    pthread_mutex_lock(&s->lock);
    if (!(st = be_served(s))) {
        t->next = NULL;
        *s->tail = t;
        s->tail = &t->next;
        atomic_fetch_add(&s->pushed, 1);
        if (wake && !s->busy)
            pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

sd_status xpu_stream_push(xpu_stream *s, xpu_task *t)
{
    return push(s, t, true);
}

sd_status xpu_stream_leave(xpu_stream *s, xpu_task *t)
{
    return push(s, t, false);
}

/* What is pushed meanwhile is run here, too, as it would be by the thread. */
void xpu_stream_serve(xpu_stream *s)
{
    xpu_task *t;

    pthread_mutex_lock(&s->lock);
    if (s->busy) {
        pthread_mutex_unlock(&s->lock);
        return;
    }
    s->busy = s->served = true;
    s->server = pthread_self();
    while (s->head) {
        t = take_first(s);
        pthread_mutex_unlock(&s->lock);
        t->run(t);
        pthread_mutex_lock(&s->lock);
    }
    s->busy = s->served = false;
    if (s->stop)
        pthread_cond_signal(&s->work);
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

bool xpu_stream_try_own(xpu_stream *s)
{
    bool mine;

    pthread_mutex_lock(&s->lock);
    mine = !s->busy && !s->head && !s->stop;
    if (mine)
        s->busy = true;
    pthread_mutex_unlock(&s->lock);
    return mine;
}

void xpu_stream_disown(xpu_stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    if (s->head || s->stop)
        pthread_cond_signal(&s->work);
    pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
}

void xpu_stream_run_first(xpu_stream *s, const xpu_task *t)
{
    xpu_task *first = NULL;

    pthread_mutex_lock(&s->lock);
    if (s->head == t)
        first = take_first(s);
    pthread_mutex_unlock(&s->lock);
    if (first)
        first->run(first);
}

void xpu_stream_drain(xpu_stream *s)
{
    pthread_mutex_lock(&s->lock);
    while ((s->busy || s->head) && !is_left_behind(s))
        pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void xpu_stream_stop(xpu_stream *s)
{
    bool join;

    if (is_left_behind(s))
        return;
    xpu_stream_drain(s);
    pthread_mutex_lock(&s->lock);
    join = s->started && !s->stop;
    s->stop = true;
    atomic_fetch_add(&s->pushed, 1);
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    if (join)
        pthread_join(s->thread, NULL);
}

void xpu_stream_finish(xpu_stream *s)
{
    if (is_left_behind(s))
        return; /* a condition with waiters cannot be destroyed */
    xpu_stream_stop(s);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
}
