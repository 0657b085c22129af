/* xpu_stream: a thread of ours that runs tasks in the order in which they were
 * pushed.  Any thread may push.  While a stream is idle any other thread may
 * own it and run work itself, which spares handing it over. */
#ifndef XPU_STREAM_H
#define XPU_STREAM_H

#include "base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

typedef struct xpu_task xpu_task;
struct xpu_task {
    xpu_task *next;
    void (*run)(xpu_task *t); /* frees t */
};
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    xpu_task *head, **tail;
    bool busy;                /* a task runs, or a caller owns the stream */
    bool served;              /* `server`, another thread, runs the tasks */
    pthread_t server;
    uint64_t look_ns;         /* how long the idle thread looks for work before
                                 it sleeps */
    _Atomic uint32_t pushed;  /* how many tasks were pushed so far */
    bool started, stop;
    pthread_t thread;         /* started by the first push */
    pid_t process;            /* the process that started it: a forked child
                                 does not have the thread */
    char name[16];
} xpu_stream;
void xpu_stream_init(xpu_stream *s, const char *name);
/* Starts the thread now, and not at the first push: pushes cannot fail for want
 * of it later.  An error if it does not start, or is another process's. */
sd_status xpu_stream_start(xpu_stream *s);
/* Waits until all that was pushed has run, and joins the thread; later pushes
 * are refused. */
void xpu_stream_stop(xpu_stream *s);
void xpu_stream_finish(xpu_stream *s); /* stops, then frees */
/* True when no task runs or waits: the caller owns the stream, does its work,
 * and calls disown. */
bool xpu_stream_try_own(xpu_stream *s);
void xpu_stream_disown(xpu_stream *s);
/* For the stream's owner: runs t here if it is the first task that waits. */
void xpu_stream_run_first(xpu_stream *s, const xpu_task *t);
/* After an error the task is still the caller's. */
sd_status xpu_stream_push(xpu_stream *s, xpu_task *t);
/* A push that wakes no thread: the caller calls xpu_stream_serve next. */
sd_status xpu_stream_leave(xpu_stream *s, xpu_task *t);
/* Runs all waiting tasks on this thread, unless another one runs them
 * already. */
void xpu_stream_serve(xpu_stream *s);
void xpu_stream_drain(xpu_stream *s); /* waits; not from a task of s */
/* Is this thread the stream's, or the one that serves it? */
bool xpu_stream_is_mine(xpu_stream *s);
/* Was this process forked after the thread was started?  Then nobody runs the
 * tasks. */
bool xpu_stream_is_left_behind(xpu_stream *s);

#endif
