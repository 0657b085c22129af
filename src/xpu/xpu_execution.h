/* xpu_execution: one execution of a program.  xpu_execution.c makes it,
 * xpu_execute.c says when it runs, and xpu_launch.c runs it; from before it is
 * queued until it has ended xpu_live.c lists it, so that somebody else can end
 * it. */
#ifndef XPU_EXECUTION_H
#define XPU_EXECUTION_H

#include "xpu_buffer.h"
#include "xpu_device.h"

typedef struct xpu_execution xpu_execution;
struct xpu_execution {
    xpu_task task;
    xpu_flight flight; /* in the queue of a device that has marks */
    xpu_work *work; /* its scratch memory then */
    xpu_program *program; /* a reference */
    xpu_event *done; /* a reference: what its outputs are ready by */
    xpu_event *ended; /* a reference, where callbacks must outlive the run */
    const xpu_callback *send, *recv; /* borrowed: stay until it has ended */
    const xpu_user_data *user; /* likewise */
    int nsend, nrecv, nuser;
    xpu_listener listener;
    xpu_buffer **arg; /* uses */
    xpu_buffer **out; /* uses */
    int *alias; /* per output: argument to copy in first, or -1 */
    uint8_t **base;
    void **slot;
    _Atomic int waits; /* arguments that are not ready, and one more until all
                          were counted */
    int launch;
    uint32_t born; /* how many interrupts came before it was listed */
    _Atomic bool cancel; /* it is to end */
    uint64_t tell_at; /* of a cancelled run: when `done` may be set */
    bool told; /* `done` was set then */
    bool begun; /* it runs */
    bool poisoned; /* it failed before it began, and `done` is set */
    bool parked; /* it waits for arguments that may be queued behind it, which
                    it uses as foreign uses */
    xpu_execution *next, **link; /* the device's list */
    bool listed; /* in it */
    int64_t ahead; /* bytes of outputs that have memory of their own */
    bool counted; /* they are counted in the device's flights.ahead */
    xpu_gang *gang; /* a reference; NULL: it runs alone */
    int me; /* its number there */
    sd_status refused; /* why its stream did not take it */
    int nused; /* arguments that are in use so far */
    int nout; /* outputs made so far */
    bool held; /* outputs are in use too */
};

/* ---- xpu_execution.c ---- */

/* Begins uses of the arguments and makes the outputs.  parked: see there.
 * After an error all is as it was. */
sd_status xpu_execution_make(xpu_program *x, const xpu_call *call, bool parked,
                             xpu_execution **out);
void xpu_execution_undo(xpu_execution *e); /* made, but not to be run */
/* Puts the outputs into out, for the caller, and gives a reference to
 * `done`. */
xpu_event *xpu_execution_give(const xpu_execution *e, xpu_buffer **out);
/* Is there an argument whose data may be queued behind the run? */
bool xpu_call_must_park(const xpu_call *call);
void xpu_call_delete_donated(const xpu_program *x, const xpu_call *call);

/* ---- xpu_execute.c ---- */

/* For each argument that is not ready: adds one to *waits, and calls fn(ctx,
 * st) when it is ready or in error.  The caller has one of its own in *waits,
 * which keeps e alive meanwhile. */
void xpu_execution_await(const xpu_execution *e, _Atomic int *waits,
                         xpu_event_fn fn, void *ctx);
/* Waits until d has not too many runs, or too many bytes of outputs, in flight.
 * Not on a thread that serves d. */
void xpu_execute_not_too_far(xpu_device *d);

/* ---- xpu_launch.c ---- */

/* Runs e, which is listed, and frees it.  By the owner of the compute
 * stream. */
void xpu_execution_run(xpu_execution *e);
/* Runs e to its end, on a device without marks, before its caller was given an
 * event to wait for. */
sd_status xpu_execution_compute(xpu_execution *e);
/* e has ended with st (taken): ends its uses, sets its events, frees it. */
void xpu_execution_end(xpu_execution *e, sd_status st);
void xpu_execution_free(xpu_execution *e); /* ends its uses, sets no event */
void xpu_execution_tell(xpu_event *done, xpu_event *ended, sd_status st);
void xpu_execution_count(xpu_execution *e); /* as queued or in flight */
void xpu_execution_uncount(xpu_execution *e);

/* ---- xpu_live.c ---- */

/* Listed from before it is queued until it has ended: it can be poisoned until
 * it begins, and interrupted until it ends. */
void xpu_live_add(xpu_execution *e);
bool xpu_live_begin(xpu_execution *e); /* false: it is not to run */
/* The error that e's end is to be told with, made of st (taken), which it
 * ended with.  A cancelled run is interrupted, even if it never began or had
 * run to its end; this waits until tell_at. */
sd_status xpu_live_end(const xpu_execution *e, sd_status st);
void xpu_live_remove(xpu_execution *e);

#endif
