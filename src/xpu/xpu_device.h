/* xpu_device: a device and a client from the inside.  What they are made of has
 * headers of its own: the table of functions (xpu_ops.h), streams, flights and
 * memory. */
#ifndef XPU_DEVICE_H
#define XPU_DEVICE_H

#include "xpu_flight.h"
#include "xpu_memory.h"

struct xpu_device {
    const xpu_device_ops *ops; /* &filled */
    xpu_device_ops filled;
    xpu_client *client; /* borrowed */
    int id;
    device_desc desc;
    void *impl;         /* the ops' own */
    bool meets;         /* members wait for each other on it (ops->meet); set
                           by open */
    bool lends;         /* its driver wants threads (ops->help); set by open */
    bool own_memory;    /* none of the host's; set by open */
    xpu_stream compute; /* runs programs in order */
    xpu_stream transfer; /* copies that the device does not put into queues */
    xpu_stream done;    /* ends flights */
    xpu_stream lender;  /* its thread is lent to the driver (ops->help) */
    xpu_flights flights;
    bool in_callback;   /* a host callback runs on the compute stream's thread */
    int others;         /* how many other members of a gang run at the moment */
    xpu_queue queue;    /* where launches and gathers go: COMPUTE, or BESIDE
                           while its steps are put in */
    const _Atomic bool *cancel; /* becomes true when the run is to end: long
                                   launches look at it */
    xpu_cache cache[XPU_MEM_COUNT];
    int64_t limit;      /* bytes; set by open */
    pthread_mutex_t launch_lock; /* guards `launches` and their `link`s */
    struct xpu_execution *launches; /* runs that wait or run: xpu_live.c */
};

struct xpu_client {
    _Atomic uint32_t refs; /* of the handle, of buffers and of programs */
    xpu_device **dev;
    int ndev;
    sd_pool *pool;       /* for running: shared by host devices */
    sd_pool *compile;    /* made when it is first asked for */
    pthread_mutex_t lock; /* guards `compile` */
    pthread_mutex_t gang_lock; /* held while a gang, or a single run, is pushed:
                                  members of two gangs come in one order */
    struct xpu_far *far;       /* other processes; NULL: there are none */
    struct crew *crews, **last_crew; /* runs with them, in the order in which
                                        they began */
    int nthread;
    bool perf_map;       /* name loaded kernels for the profiler */
    xpu_event *ready;    /* ready, for buffers that are ready at once */
    void *driver;        /* what the devices of one driver share */
    void (*driver_close)(void *driver);
    xpu_ffi_tasks *tasks; /* of handlers; made by the first that has one */
    _Atomic int64_t nrun; /* runs with handlers so far */
    _Atomic uint64_t nmeet; /* the last number of a meeting */
    bool interrupts;      /* an interrupt ends runs */
    _Atomic bool watched; /* the thread `watcher` was asked for */
    _Atomic bool watch_stop;
    bool watching;        /* it was started */
    pthread_t watcher;
    pid_t process;        /* the process that started it */
};

/* Does this thread serve a stream of the device?  Then it must not wait for
 * one. */
bool xpu_device_is_mine(xpu_device *d);
xpu_client *xpu_client_retain(xpu_client *c);
void xpu_client_release(xpu_client *c);
/* A device of the client, whose desc the caller sets afterwards. */
sd_status xpu_client_add(xpu_client *c, const xpu_device_ops *ops,
                         xpu_device **out);
/* Are they of the same kind, so that marks and copies of one go to the
 * other? */
bool xpu_device_is_like(const xpu_device *x, const xpu_device *y);
/* Adds the devices of one kind to the client.  NOT_FOUND: there is no library,
 * or no device that fits.  chosen: the user asked for this kind by name, so
 * that an OpenCL device that is a CPU is taken, too. */
sd_status xpu_host_open(xpu_client *c, const sd_options *opt, bool chosen);
sd_status xpu_cl_open(xpu_client *c, const sd_options *opt, bool chosen);
sd_status xpu_cuda_open(xpu_client *c, const sd_options *opt, bool chosen);

#endif
