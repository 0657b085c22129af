/* One execution of a program: made by xpu_execute.c, run by xpu_launch.c,
 * listed while it waits or runs by xpu_live.c, so that somebody else can end
 * it. */
#ifndef XPU_EXECUTION_H
#define XPU_EXECUTION_H

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
    xpu_buffer **arg; /* uses */
    xpu_buffer **out; /* uses */
    int *alias; /* per output: argument to copy in first, or -1 */
    uint8_t **base;
    void **slot;
    _Atomic int waits; /* arguments that are still to come, and one */
    int launch;
    uint32_t born; /* interrupts before it was listed */
    _Atomic bool cancel; /* what runs is to end */
    uint64_t tell_at; /* cancel: who waits is told then, not before, */
    bool told; /* and was: done is set */
    bool begun; /* it runs */
    bool poisoned; /* done is set: nothing is to run */
    bool parked; /* arguments are used as by another stream */
    xpu_execution *next, **link; /* the device's list */
    bool listed; /* in it */
    int64_t ahead; /* bytes of outputs that have memory of their own, */
    bool counted; /* and they are among the device's */
    xpu_gang *gang; /* a reference; NULL: it runs alone */
    int me; /* its number there */
    sd_status refused; /* its stream did not take it */
    int nused; /* arguments that are in use so far */
    int nout; /* outputs made so far */
    bool held; /* outputs are in use too */
};

/* ---- xpu_execute.c ---- */

/* Takes what the call brings and makes outputs; parked: it is to wait for
 * arguments that may be queued behind it.  After an error all is as it was. */
sd_status xpu_execution_make(xpu_program *x, const xpu_call *call, bool parked,
                             xpu_execution **out);
void xpu_execution_undo(xpu_execution *e); /* made, but not to be run */
/* What its caller gets: its outputs, and a reference. */
xpu_event *xpu_execution_give(const xpu_execution *e, xpu_buffer **out);
/* Some argument's data may be queued behind the run. */
bool xpu_call_must_park(const xpu_call *call);
void xpu_call_delete_donated(const xpu_program *x, const xpu_call *call);
/* fn with ctx when each argument that is not ready yet is, or in error; each is
 * counted in *waits before, where one of the caller's own keeps e alive. */
void xpu_execution_await(const xpu_execution *e, _Atomic int *waits,
                         xpu_event_fn fn, void *ctx);
/* Until no more is ahead on d than may be; not from a thread that serves it. */
void xpu_execute_not_too_far(xpu_device *d);

/* ---- xpu_launch.c ---- */

/* By the owner of the compute stream; e is listed, and gone afterwards. */
void xpu_execution_run(xpu_execution *e);
/* To the end, on a device without marks: a run that nobody waits for yet. */
sd_status xpu_execution_compute(xpu_execution *e);
/* It ended with st (taken): all uses end, who waits is told, e goes. */
void xpu_execution_end(xpu_execution *e, sd_status st);
void xpu_execution_free(xpu_execution *e); /* its uses; no event */
void xpu_execution_tell(xpu_event *done, xpu_event *ended, sd_status st);
void xpu_execution_count(xpu_execution *e); /* as queued or in flight */
void xpu_execution_uncount(xpu_execution *e);

/* ---- xpu_live.c ---- */

/* Listed from before it is queued until it has ended: it can be poisoned until
 * it begins, and interrupted until it ends. */
void xpu_live_add(xpu_execution *e);
bool xpu_live_begin(xpu_execution *e); /* false: it is not to run */
/* What it ended with: takes st.  An interrupted one waits until it may be told,
 * and it is that, also where the mark was seen too late or it never began. */
sd_status xpu_live_end(const xpu_execution *e, sd_status st);
void xpu_live_remove(xpu_execution *e);

#endif
