/* xpu_flight: work in the queues of a device that has marks.  A piece of work
 * is in flight from xpu_flight_begin until its mark was reached and its `end`
 * was called: so long its memory stays, and the device is not idle.
 *
 *   begin -> put work into the queue -> launched -> mark reached -> end
 *
 * Also scratch memory that runs in a queue share, and how far launches may run
 * ahead. */
#ifndef XPU_FLIGHT_H
#define XPU_FLIGHT_H

#include "xpu_ops.h"
#include "xpu_stream.h"

typedef struct xpu_flight xpu_flight;
struct xpu_flight {
    xpu_task task;    /* calls end; the first member, so that it is the flight */
    xpu_flight *next; /* of the same queue, in the order of marks */
    xpu_device *dev;
    xpu_queue queue;
    /* Called once, on the device's stream `done`, in the order of the queue.
     * Takes f and st, the first error of it. */
    void (*end)(xpu_flight *f, sd_status st);
    sd_status st;
    int waits;        /* marks and events to come; under the flights' lock */
    void (*arrive)(xpu_flight *f); /* see join; NULL: it ends by itself */
    xpu_task arrival; /* calls arrive */
    bool arrived;     /* arrival was pushed */
    int64_t ns;       /* guess of what it takes */
    uint64_t since;   /* when it was put in */
    bool helped;      /* its launcher lends the driver a thread (ops->help), so
                         no other thread need */
};
/* Scratch memory of runs in the compute queue.  Since these run one after the
 * other, all that are queued at one time use the same. */
typedef struct {
    int refs, cls;
    size_t bytes;
    void *at;
} xpu_work;
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t fewer; /* some count here became less */
    xpu_flight *head[XPU_QUEUE_COUNT], **tail[XPU_QUEUE_COUNT];
    int n[XPU_QUEUE_COUNT]; /* flights whose `end` has not returned */
    int ncompute;         /* flights of COMPUTE that did not come to their end */
    int64_t ns;           /* guess of what these take */
    uint64_t last;        /* when the last one did */
    xpu_work *work;       /* the scratch that is shared now; borrowed */
    int nahead;           /* runs that are queued or in flight */
    int64_t ahead;        /* bytes of their outputs */
} xpu_flights;
void xpu_flights_init(xpu_flights *f);
void xpu_flights_finish(xpu_flights *f);
/* To be called before anything is put into the queue.  f is the caller's until
 * launched takes it, and stays so if this gives an error. */
sd_status xpu_flight_begin(xpu_flight *f, xpu_device *d, xpu_queue q);
/* Of a flight that is to end together with others, as those of a gang are:
 * when all that it waits for has happened, arrive(f) is called on the stream
 * `done`, in the order of the queue, and f waits on until let_go, whose st
 * (taken) is the error of the others.  join is called before anything is put
 * in. */
void xpu_flight_join(xpu_flight *f, void (*arrive)(xpu_flight *f));
void xpu_flight_let_go(xpu_flight *f, sd_status st);
/* Orders what is put in from now on, and f's end, after the work that sets
 * `ready`; if that work is in no queue yet, waits here until it is.  An error
 * is the event's own, or says that there is no way to wait. */
sd_status xpu_flight_after(xpu_flight *f, xpu_event *ready);
/* All work of f is in the queue or, with an error st (taken), a part of it.
 * The event `done` learns the mark, so that others may wait for it in their
 * queues; NULL when the host has something left to do after the mark. */
void xpu_flight_launched(xpu_flight *f, sd_status st, xpu_event *done);
/* May a run of so many guessed nanoseconds (< 0: nobody knows) be put into
 * COMPUTE, without the queue becoming so long that an interrupt would have to
 * wait?  await_fit waits until it may. */
bool xpu_flight_fits(xpu_device *d, int64_t ns);
void xpu_flight_await_fit(xpu_device *d, int64_t ns);
/* Will COMPUTE be empty sooner than a thread falls asleep and wakes again? */
bool xpu_flight_ends_soon(xpu_device *d);
/* Wait until no flight is left, or none but f in its queue.  Not on the stream
 * `done`, which ends them. */
void xpu_flight_drain(xpu_device *d);
void xpu_flight_await_others(xpu_flight *f);
sd_status xpu_work_take(xpu_device *d, size_t bytes, bool alone,
                        xpu_work **out);
void xpu_work_release(xpu_device *d, xpu_work *w); /* takes NULL */

xpu_mark *xpu_mark_retain(xpu_mark *m);
void xpu_mark_release(xpu_mark *m); /* takes NULL */

/* A long loop is not put into the queue whole: drivers keep memory for each
 * launch, and no launch can be taken back when an interrupt comes.  So a run
 * waits now and then for what it has launched.  It sets its pace to {0} when it
 * begins, and after each wait. */
typedef struct {
    int n;          /* launches since then */
    uint64_t since; /* when the first of them was launched */
} xpu_pace;
/* n more were launched: is it time to wait, since they are too many or the
 * first was launched too long ago? */
bool xpu_pace_is_due(xpu_pace *p, int n);

#endif
