/* xpu_run: loaded programs and one run of one, from the inside. */
#ifndef XPU_RUN_H
#define XPU_RUN_H

#include "xpu.h"

#include <stdatomic.h>

typedef struct xpu_gang xpu_gang;
typedef struct xpu_ffi xpu_ffi;
typedef struct xpu_ffi_tasks xpu_ffi_tasks;
typedef struct xpu_module xpu_module; /* the device's own: loaded kernels */
typedef struct xpu_run xpu_run;
typedef struct xpu_mark xpu_mark;

struct xpu_program {
    _Atomic uint32_t refs;
    xpu_device *dev;       /* borrowed */
    thunk_program *thunks; /* a reference */
    xpu_module *module;
    uint8_t *constants;    /* on the device */
    int constants_cls;
    double cost_ns;        /* guess of what one run takes */
    _Atomic int64_t took_ns; /* what a run took lately; -1: not known */
    int nlaunch;           /* xpu_run_launches */
    int max_arg;           /* of any thunk */
    xpu_ffi *ffi;          /* its custom-calls; NULL: none */
    int participant;
    uint8_t *ids;          /* on the device, behind the constants */
    bool meets;            /* it has collectives: it runs in a gang, */
    bool beside;           /* some beside other steps */
    const thunk **collective; /* its collectives; messages say which one they
                                 belong to by the number in this list */
    int ncollective;
    uint64_t meeting;      /* hash of what must be the same in all processes
                              whose participants meet */
    bool aliases;          /* some output may take an argument's memory */
};

/* One run, which the owner of the compute stream makes.  base[buffer] are the
 * buffers' addresses on the device; slot is room for max_arg pointers. */
struct xpu_run {
    xpu_device *dev;
    const xpu_program *program;
    uint8_t **base;
    void **slot;
    const xpu_callback *send, *recv;
    int nsend, nrecv;
    const xpu_user_data *user;
    int nuser;
    xpu_listener listener;
    int64_t id; /* for handlers: different for each run of the client */
    xpu_gang *gang; /* borrowed; NULL: it runs alone */
    int me;         /* its number there */
    const _Atomic bool *cancel; /* true: the run is to end */
    xpu_mark **beside; /* in the queue BESIDE: before what it was given last */
};
sd_status xpu_run_program(xpu_run *r);
double xpu_run_cost(const thunk_program *p, const thunk_seq *seq);
/* How many steps a run puts into the queue at most; -1: unknown, since the host
 * looks at results while the program runs, as at a loop's predicate. */
int xpu_run_launches(const xpu_device *d, const thunk_seq *seq);

/* xpu_collective.c: of a run in a gang */
sd_status xpu_run_collective(const xpu_run *r, const thunk *t);
/* xpu_callback.c */
sd_status xpu_run_send(const xpu_run *r, const thunk *t);
sd_status xpu_run_recv(const xpu_run *r, const thunk *t);
/* xpu_ffi.c: makes and frees p->ffi, a program's custom-calls; begin and end
 * are called around each run. */
sd_status xpu_ffi_load(xpu_program *p);
void xpu_ffi_unload(xpu_ffi *x); /* takes NULL */
sd_status xpu_ffi_begin(const xpu_run *r);
void xpu_ffi_end(const xpu_run *r);
sd_status xpu_run_custom(const xpu_run *r, const thunk *t);
/* xpu_ffi_task.c: stop ends handlers' tasks when no program runs any more;
 * finish frees them when no handler can ask. */
void xpu_ffi_stop(xpu_client *c);
void xpu_ffi_finish(xpu_client *c);

#endif
