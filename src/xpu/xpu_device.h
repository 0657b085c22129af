/* xpu_device: what the files of this room share.  A device is a table of
 * functions.  A slot left out has the meaning written beside it: xpu_default.c
 * fills it in when the device is added, so who calls a slot need not ask.
 *
 * Unless said otherwise a slot is called by the thread that owns the device's
 * compute stream at that moment, so never by two threads at once. */
#ifndef XPU_DEVICE_H
#define XPU_DEVICE_H

#include "xpu.h"

#include <pthread.h>
#include <stdatomic.h>

#define XPU_ALIGN 64u
enum { XPU_CARD = 16 }; /* bytes that tell a card */

typedef struct xpu_gang xpu_gang;
typedef struct xpu_ffi xpu_ffi;
typedef struct xpu_ffi_tasks xpu_ffi_tasks;
typedef struct xpu_module xpu_module; /* the device's own: loaded kernels */
typedef struct xpu_run xpu_run;

/* A kernel of the user's: what its driver is to compile, and how to start it. */
typedef struct xpu_kernel xpu_kernel; /* the device's own: compiled */
typedef enum { XPU_OPENCL_C, XPU_SPIRV, XPU_PTX, XPU_CUBIN,
               XPU_SOURCE_COUNT } xpu_source_form;
typedef struct { const void *at; size_t bytes; } xpu_scalar;
typedef struct {
    xpu_source_form form;
    const char *code; /* a NUL behind it */
    size_t bytes;
    const char *entry, *options; /* options: of OpenCL's compiler */
    uint32_t grid[3], block[3]; /* groups, items of one */
    uint32_t local; /* bytes of a group that the launch asks for */
    int npointer; /* parameters: the operands and results, */
    int nscalar;  /* then these by value */
    const xpu_scalar *scalar;
} xpu_kernel_source;

/* A device's queues.  What is put into one runs in that order; two run side by
 * side, but where one is told to wait for a mark in another. */
typedef enum {
    XPU_COMPUTE, /* launches, and the copies between them */
    XPU_IN,      /* copies from host memory, */
    XPU_OUT,     /* to it, */
    XPU_PEER,    /* and between devices or memories, put in by the target */
    XPU_BESIDE,  /* collectives beside launches; of devices that gather */
    XPU_QUEUE_COUNT
} xpu_queue;

/* A place in a queue, reached when all that was put in before it has run.
 * Counted references; the last one gives the driver its event back. */
typedef struct {
    _Atomic uint32_t refs;
    xpu_device *dev; /* borrowed: whoever has a mark has work in flight there */
    xpu_queue queue;
} xpu_mark;
/* The mark was reached, or (an error, taken) what is before it failed. */
typedef void (*xpu_mark_fn)(void *ctx, sd_status st);

/* Blocks of a collective: in each of n columns `rows` blocks of so many bytes,
 * the first at to and from, the others each a step behind.  from is in memory
 * of `dev`, which may be another device; NULL: zeros.  far: another process has
 * sent it, row by row; in host memory where dev is NULL. */
typedef struct {
    uint8_t *to, *from;
    xpu_device *dev;
    bool far;
} xpu_column;
typedef struct {
    int64_t rows;
    size_t bytes, to_step, from_step;
    const xpu_column *column;
    int n;
} xpu_blocks;

typedef struct {
    const char *name;
    /* Memory from the system, 64-aligned; any thread.  The cache above it asks
     * rarely.  NULL pointer without a status: there is none left. */
    sd_status (*alloc)(xpu_device *d, xpu_memory mem, size_t bytes,
                       void **out);
    void (*free)(xpu_device *d, xpu_memory mem, void *p, size_t bytes);
    /* Put into a queue; may return before it is done, so what is of the host's
     * memory stays until a mark.  COMPUTE by its owner, the others by any
     * thread.  Left out: memmove, which suits memory that the host sees. */
    sd_status (*copy)(xpu_device *d, xpu_queue q, void *to, const void *from,
                      size_t bytes);
    /* Host to device and back, done on return, beside all queues; any thread.
     * Left out: memcpy. */
    sd_status (*copy_in)(xpu_device *d, void *to, const void *from,
                         size_t bytes);
    sd_status (*copy_out)(xpu_device *d, void *to, const void *from,
                          size_t bytes);
    /* Between two devices of the client, done on return; any thread.  Left
     * out: through host memory by copy_out and copy_in. */
    sd_status (*copy_between)(xpu_device *to_dev, void *to,
                              xpu_device *from_dev, const void *from,
                              size_t bytes);
    /* Puts blocks into d->queue, from devices with these ops.  Left out: members
     * of a gang wait for their queues before they read from each other. */
    sd_status (*gather)(xpu_device *d, const xpu_blocks *b);
    /* Kernels of a verified program; any thread. */
    sd_status (*load)(xpu_device *d, const thunk_program *p, xpu_module **out);
    void (*unload)(xpu_device *d, xpu_module *m);
    /* Before the first launch of a run; left out: nothing to do. */
    sd_status (*begin)(xpu_device *d, xpu_module *m);
    sd_status (*launch)(xpu_device *d, xpu_module *m, int kernel,
                        void **slot); /* into d->queue */
    /* Puts in some of the steps that begin with `first` as one: *n of them; 0
     * or left out: they are taken one by one. */
    sd_status (*replay)(const xpu_run *r, const thunk *first, int *n);
    /* Left out: the device has no libraries (desc.libs is 0), and no program
     * that calls one is loaded. */
    sd_status (*libcall)(xpu_device *d, const thunk *t, void *const *ptr);
    /* For a step of the host between launches: between its memory and the
     * device's, in the order of launches, done on return.  Left out: memcpy. */
    sd_status (*peek)(xpu_device *d, void *to, const void *from, size_t bytes);
    /* For a foreign call, by the owner of COMPUTE: what is put into *stream (a
     * CUstream, a cl_command_queue) lies in COMPUTE, and until reclaim this
     * thread may call the driver.  Both or none; left out: there is no stream,
     * which lend tells (NULL). */
    sd_status (*lend)(xpu_device *d, void **stream);
    sd_status (*reclaim)(xpu_device *d);
    /* Which card it is, alike in all processes and machines; any thread.  Left
     * out: nobody else has it. */
    sd_status (*card)(xpu_device *d, uint8_t out[XPU_CARD]);
    /* Streams of other libraries (a CUstream); any thread.  follow: what is put
     * into q from now on begins when all that is in theirs now has run.  lead:
     * what is put into theirs begins when m is reached.  Both or none; left
     * out: there are none. */
    sd_status (*follow)(xpu_device *d, xpu_queue q, void *stream);
    sd_status (*lead)(xpu_device *d, void *stream, xpu_mark *m);
    /* Kernels that come as source; make and drop by any thread, s stays until
     * drop.  ptr: the operands, then the results.  All or none; left out: the
     * device takes none (custom_call.def). */
    sd_status (*kernel_make)(xpu_device *d, const xpu_kernel_source *s,
                             xpu_kernel **out);
    void (*kernel_drop)(xpu_device *d, xpu_kernel *k);
    sd_status (*kernel_launch)(xpu_device *d, xpu_kernel *k, void *const *ptr);
    /* Marks: docs/adr/0020.  All or none, but send and help; none, which record
     * tells (NULL): what is put into a queue has run when the call returns.
     * COMPUTE by its owner, the rest, query and forget by any thread.
     * record: *out, a reference, is where q stands now.  fn(ctx, st) is called
     * once when it is reached, perhaps before record returns, on a thread of the
     * driver's: it may hand over, and nothing else, where these are not ours
     * (own_threads).  Never after an error.
     * send: what the driver still holds back of q goes; left out: it does not.
     * wait: what is put into q from now on begins when m is reached, which may
     * be of another device with these ops.
     * query: m was reached, or never will be.  forget: the last reference. */
    sd_status (*record)(xpu_device *d, xpu_queue q, xpu_mark_fn fn, void *ctx,
                        xpu_mark **out);
    sd_status (*send)(xpu_device *d, xpu_queue q);
    sd_status (*wait)(xpu_device *d, xpu_queue q, xpu_mark *m);
    bool (*query)(const xpu_mark *m);
    void (*forget)(xpu_mark *m);
    /* Lends the driver this thread until m is reached, where the device is the
     * host's own cores: a device that lends.  It needs no send before. */
    void (*help)(xpu_mark *m);
    /* Until q has run, where no mark is to be had.  Left out: it has. */
    sd_status (*sync)(xpu_device *d, xpu_queue q);
    void (*close)(xpu_device *d); /* frees d->impl; left out: there is none */
    /* The host reads and writes the device's memory as its own, and pinned host
     * memory is device memory.  Without it no copy or peek is left out. */
    bool shared_memory;
    /* fn of record is called on threads of ours, which may end work. */
    bool own_threads;
    /* A program's code is only for the driver that it was built for. */
    bool code_is_drivers;
} xpu_device_ops;
/* The table with no slot left out that has a meaning then: xpu_default.c. */
xpu_device_ops xpu_ops_filled(const xpu_device_ops *ops);
/* What copy_between means where it is left out, and between two kinds. */
sd_status xpu_copy_through_host(xpu_device *to_dev, void *to,
                                xpu_device *from_dev, const void *from,
                                size_t bytes);

/* ---- streams: xpu_stream.c ---- */

typedef struct xpu_task xpu_task;
struct xpu_task {
    xpu_task *next;
    void (*run)(xpu_task *t); /* frees t */
};
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    xpu_task *head, **tail;
    bool busy;                /* somebody runs: the thread, or a caller */
    bool served;              /* by server, which is another thread */
    pthread_t server;
    uint64_t look_ns;         /* its thread looks for work so long, then sleeps */
    _Atomic uint32_t pushed;  /* so often */
    bool started, stop;
    pthread_t thread;         /* started by the first push */
    pid_t process;            /* that has the thread: no fork takes it along */
    char name[16];
} xpu_stream;
void xpu_stream_init(xpu_stream *s, const char *name);
/* The thread, so that from now on a push before the stop takes its task.  An
 * error: there is none, or it is another process's. */
sd_status xpu_stream_start(xpu_stream *s);
/* Runs what is queued, then joins; from then on nothing is taken. */
void xpu_stream_stop(xpu_stream *s);
void xpu_stream_finish(xpu_stream *s); /* stops, then frees */
/* True when nothing runs or waits: the caller may run, then disowns. */
bool xpu_stream_try_own(xpu_stream *s);
void xpu_stream_disown(xpu_stream *s);
/* By its owner: runs t if it was pushed meanwhile and is the first. */
void xpu_stream_run_first(xpu_stream *s, const xpu_task *t);
/* An error: the task was not taken. */
sd_status xpu_stream_push(xpu_stream *s, xpu_task *t);
/* The same, but nobody is woken for it: serve follows. */
sd_status xpu_stream_leave(xpu_stream *s, xpu_task *t);
/* Runs here what is queued, unless somebody runs it already. */
void xpu_stream_serve(xpu_stream *s);
void xpu_stream_drain(xpu_stream *s); /* not from a task of s */
/* This is the stream's thread, or the one that serves it. */
bool xpu_stream_is_mine(xpu_stream *s);
/* This process was forked after the thread was started: nobody serves. */
bool xpu_stream_is_left_behind(xpu_stream *s);

/* ---- work in a device's queues: xpu_flight.c ----
 * Of a device with marks.  From begin to its end a piece of work is in flight:
 * its memory stays, and the device is not idle. */

typedef struct xpu_flight xpu_flight;
struct xpu_flight {
    xpu_task task;    /* first: that which ends it */
    xpu_flight *next; /* in its queue, in the order of marks */
    xpu_device *dev;
    xpu_queue queue;
    /* Called once on the thread that ends the device's work, in the order of
     * the queue.  Owns f and st, the first thing that went wrong. */
    void (*end)(xpu_flight *f, sd_status st);
    sd_status st;
    int waits;        /* for a mark and events, under the device's lock */
    void (*arrive)(xpu_flight *f); /* NULL: it ends by itself */
    xpu_task arrival;
    bool arrived;     /* that was pushed */
    int64_t ns;       /* what it is thought to take */
    uint64_t since;   /* when it was put in */
    bool helped;      /* by who launches it: no other thread is lent */
};
/* Scratch memory of the compute queue: its runs use one after the other what
 * one of them has, since they run in order. */
typedef struct {
    int refs, cls;
    size_t bytes;
    void *at;
} xpu_work;
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t fewer; /* whatever is counted here */
    xpu_flight *head[XPU_QUEUE_COUNT], **tail[XPU_QUEUE_COUNT];
    int n[XPU_QUEUE_COUNT]; /* until they have ended */
    int ncompute;         /* in COMPUTE, and */
    int64_t ns;           /* what these are thought to take */
    uint64_t last;        /* when one of them ended last */
    xpu_work *work;       /* the one to share; borrowed from its users */
    int nahead;           /* runs that are queued or in flight, */
    int64_t ahead;        /* and the bytes of their outputs */
} xpu_flights;
void xpu_flights_init(xpu_flights *f);
void xpu_flights_finish(xpu_flights *f);
/* Nothing was put into the queue yet.  After an error f is the caller's, as it
 * is until launched takes it. */
sd_status xpu_flight_begin(xpu_flight *f, xpu_device *d, xpu_queue q);
/* f ends together with others: when all is over that it waits for otherwise,
 * arrive is called on the thread that ends work, in the order of the queue, and
 * f goes on waiting until let_go, whose st (taken) is the others'.  Before
 * anything is put in. */
void xpu_flight_join(xpu_flight *f, void (*arrive)(xpu_flight *f));
void xpu_flight_let_go(xpu_flight *f, sd_status st);
/* What is put in from now on comes after that which sets `ready`, and f ends
 * after it.  An error is ready's own, or there is no way to wait.  Where the
 * work is in no queue yet the caller waits until it is. */
sd_status xpu_flight_after(xpu_flight *f, xpu_event *ready);
/* All of it was put in, or (st, taken) not all.  `done` gets the mark, but when
 * it is NULL, since more has to be done. */
void xpu_flight_launched(xpu_flight *f, sd_status st, xpu_event *done);
/* Whether one more of COMPUTE, of so many ns (or < 0: nobody knows), leaves a
 * queue that ends soon; await: waits for it. */
bool xpu_flight_fits(xpu_device *d, int64_t ns);
/* Whether all that is in COMPUTE takes no longer than a sleep and a waking. */
bool xpu_flight_ends_soon(xpu_device *d);
void xpu_flight_await_fit(xpu_device *d, int64_t ns);
void xpu_flight_drain(xpu_device *d); /* not by a thread that ends work */
void xpu_flight_await_others(xpu_flight *f); /* of its queue; likewise */
sd_status xpu_work_take(xpu_device *d, size_t bytes, bool alone,
                        xpu_work **out);
void xpu_work_release(xpu_device *d, xpu_work *w); /* takes NULL */

xpu_mark *xpu_mark_retain(xpu_mark *m);
void xpu_mark_release(xpu_mark *m); /* takes NULL */

/* A long loop is not queued whole: drivers keep memory for each launch, and
 * what is queued cannot be taken back when an interrupt comes.  A run sets its
 * pace to {0} when it begins, and after each wait. */
typedef struct {
    int n;          /* launches since then */
    uint64_t since; /* when the first of them was launched */
} xpu_pace;
/* So many more were launched: is it time to wait for all of them?  Every so
 * many launches it is, when these are too many or took too long. */
bool xpu_pace_is_due(xpu_pace *p, int n);

/* ---- memory: xpu_memory.c ---- */

#define XPU_CLASSES 168 /* to 2^49 bytes */
typedef struct {
    pthread_mutex_t lock;
    xpu_device *dev; /* borrowed */
    xpu_memory mem;
    struct xpu_free_list {
        void **at;
        int n, cap;
        int gone; /* given back to the system, and not asked for since */
    } list[XPU_CLASSES];
    struct xpu_slab { struct xpu_slab *next; void *at; size_t bytes; } *slab;
    uint8_t *bump, *bump_end; /* rest of the newest slab */
    xpu_memory_stats stat;
    int64_t window_peak, last_peak; /* of in_use, by windows of frees */
    int64_t missed; /* this window's fetches of what was given back, in part */
    int window;
    struct xpu_holder { char name[64]; int64_t bytes; } *holder; /* from 1 on */
    int nholder;
} xpu_cache;
void xpu_cache_init(xpu_cache *c, xpu_device *d, xpu_memory mem,
                    int64_t limit);
void xpu_cache_finish(xpu_cache *c);
/* What memory is for, as an error names who holds it: "results of jit_step". */
typedef struct { const char *what, *of; } xpu_purpose;
/* From the device's cache of that memory; *cls goes back to free, zero bytes
 * give a pointer too.  Alloc waits for queued work when memory is short, so
 * the caller must own no stream; try does not. */
sd_status xpu_memory_try(xpu_device *d, xpu_memory mem, xpu_purpose use,
                         size_t bytes, void **out, int *cls);
sd_status xpu_memory_alloc(xpu_device *d, xpu_memory mem, xpu_purpose use,
                           size_t bytes, void **out, int *cls);
void xpu_memory_free(xpu_device *d, xpu_memory mem, void *p, int cls);

/* ---- device and client ---- */

struct xpu_device {
    const xpu_device_ops *ops; /* &filled */
    xpu_device_ops filled;
    xpu_client *client; /* borrowed */
    int id;
    device_desc desc;
    void *impl;         /* the ops' own */
    bool lends;         /* threads, to help: set by open */
    xpu_stream compute, transfer;
    xpu_stream done;    /* ends what is in flight */
    xpu_stream lender;  /* its thread helps runs, and transfer's copies */
    xpu_flights flights;
    bool in_callback;   /* of the host, on the compute stream's thread */
    int others;         /* members of the gang that runs */
    xpu_queue queue;    /* COMPUTE, or BESIDE while its steps are put in */
    const _Atomic bool *cancel; /* of what runs: long launches look at it */
    xpu_cache cache[XPU_MEM_COUNT];
    int64_t limit;      /* bytes; set by open */
    pthread_mutex_t launch_lock; /* of launches, and their marks */
    struct xpu_execution *launches; /* that wait or run: xpu_live.c */
};

struct xpu_client {
    _Atomic uint32_t refs; /* the handle, buffers and programs */
    xpu_device **dev;
    int ndev;
    sd_pool *pool;       /* for running: shared by host devices */
    sd_pool *compile;    /* made at the first question */
    pthread_mutex_t lock; /* of compile */
    pthread_mutex_t gang_lock; /* whole gangs and single runs are pushed */
    struct xpu_far *far;       /* other processes; NULL: there are none */
    struct crew *crews, **last_crew; /* of runs with them, as they began */
    int nthread;
    bool perf_map;       /* name loaded kernels for the profiler */
    xpu_event *ready;    /* for buffers that are born ready */
    void *driver;        /* what devices of one driver share */
    void (*driver_close)(void *driver);
    xpu_ffi_tasks *tasks; /* of handlers; made by the first */
    _Atomic int64_t nrun; /* numbers runs */
    bool interrupts;      /* end what runs */
    _Atomic bool watched, watch_stop; /* watched: the thread was asked for */
    bool watching;        /* and is there */
    pthread_t watcher;
    pid_t process;        /* that has it */
};

/* This thread serves a stream of the device's: it waits for none of them. */
bool xpu_device_is_mine(xpu_device *d);
xpu_client *xpu_client_retain(xpu_client *c);
void xpu_client_release(xpu_client *c);
/* A device of the client, whose desc the caller sets afterwards. */
sd_status xpu_client_add(xpu_client *c, const xpu_device_ops *ops,
                         xpu_device **out);
/* Of the same kind: marks and copies go from one to the other. */
bool xpu_device_is_like(const xpu_device *x, const xpu_device *y);
/* One a kind (device_kinds.def).  NOT_FOUND: no library or no device that fits;
 * chosen: the user asked for this kind, so an OpenCL CPU is good enough. */
sd_status xpu_host_open(xpu_client *c, const sd_options *opt, bool chosen);
sd_status xpu_cl_open(xpu_client *c, const sd_options *opt, bool chosen);
sd_status xpu_cuda_open(xpu_client *c, const sd_options *opt, bool chosen);

/* ---- interrupts: xpu_interrupt.c counts them, xpu_live.c ends runs ---- */

void xpu_interrupt_ring(void); /* wakes all who sleep */
uint32_t xpu_interrupt_bell(void);
/* Until the bell is not that any more; for a moment only, when asked to and
 * while the last interrupt is not due yet. */
void xpu_interrupt_sleep(uint32_t bell, bool shortly);
/* The handler is put back where the one before it took itself out, as LLVM's in
 * an OpenCL driver does at its first interrupt, and ours with it. */
void xpu_interrupt_keep(void);
sd_status xpu_interrupted(const char *what);
void xpu_live_watch(xpu_client *c); /* a thread does, from now on */
void xpu_live_stop(xpu_client *c);

/* ---- events ---- */

/* Waits; the error stays the event's. */
const sd_error *xpu_event_await(xpu_event *e);
/* The work that sets it is in a device's queue, as far as m (retained). */
void xpu_event_queued(xpu_event *e, xpu_mark *m);
/* A reference; NULL: it is ready, or its work is in no queue yet. */
xpu_mark *xpu_event_mark(xpu_event *e);
bool xpu_event_is_queued(const xpu_event *e); /* or ready */
void xpu_event_await_queued(xpu_event *e);    /* likewise */

/* ---- buffers: hold word ----
 * One word says who needs the memory, so that the last one to go sees that it
 * is the last: pending uses, pins, uses outside the compute stream, and two
 * bits of state. */
#define XPU_USE 1ull
#define XPU_PIN (1ull << 20)
#define XPU_FOREIGN (1ull << 40)
#define XPU_FIELD 0xfffffull
#define XPU_DELETED (1ull << 62)
#define XPU_TAKEN (1ull << 63) /* its memory is another buffer's now */

struct xpu_buffer {
    _Atomic uint64_t hold;
    _Atomic uint32_t refs;
    sd_dtype dtype;
    int rank, cls;         /* cls -1: a view */
    xpu_memory mem;
    xpu_device *dev;       /* borrowed */
    void *ptr;
    size_t bytes;
    bool later;            /* ready by work that may be queued after uses */
    bool hollow;           /* made without memory: it is there when ready, if */
    xpu_event *ready;      /* owned reference */
    void (*on_delete)(void *pointer, void *ctx);
    void *ctx;
    int64_t dim[];
};
/* Without memory (ptr NULL); ready is retained.  NULL: no host memory. */
xpu_buffer *xpu_buffer_make(xpu_device *d, xpu_memory mem, sd_dtype t,
                            int rank, const int64_t *dim, size_t bytes,
                            xpu_event *ready);
/* With memory, and `ready` (retained) or, when NULL, born ready. */
sd_status xpu_buffer_alloc_with(xpu_device *d, xpu_memory mem, sd_dtype t,
                                int rank, const int64_t *dim, xpu_event *ready,
                                xpu_buffer **out);
sd_status xpu_shape_bytes(sd_dtype t, int rank, const int64_t *dim,
                          size_t *out); /* checks them */
/* A use keeps object and memory until it ends; false: deleted. */
bool xpu_buffer_use(xpu_buffer *b, bool foreign);
/* A foreign use of memory that somebody still needs, deleted or not. */
bool xpu_buffer_hold(xpu_buffer *b);
void xpu_buffer_unuse(xpu_buffer *b, bool foreign);
/* Marks it deleted and its memory somebody else's; false when it is deleted,
 * pinned, a view or used outside the compute stream. */
bool xpu_buffer_take(xpu_buffer *b);
void xpu_buffer_untake(xpu_buffer *b); /* as if never taken */

/* ---- programs ---- */

struct xpu_program {
    _Atomic uint32_t refs;
    xpu_device *dev;       /* borrowed */
    thunk_program *thunks; /* a reference */
    xpu_module *module;
    uint8_t *constants;    /* on the device */
    int constants_cls;
    double cost_ns;        /* estimate of one run */
    _Atomic int64_t took_ns; /* a run, lately; -1: not known */
    int nlaunch;           /* xpu_run_launches */
    int max_arg;           /* of any thunk */
    xpu_ffi *ffi;          /* its custom-calls; NULL: none */
    int participant;
    uint8_t *ids;          /* on the device, behind the constants */
    bool meets;            /* it has collectives: it runs in a gang */
    const thunk **collective; /* its collectives: their numbers, */
    int ncollective;
    uint64_t meeting;      /* and what all processes must have alike */
    bool aliases;          /* some output may take an argument's memory */
};

/* One run: base[buffer] are addresses on the device, slot has max_arg
 * pointers of room.  The compute stream's owner calls. */
struct xpu_run {
    xpu_device *dev;
    const xpu_program *program;
    uint8_t **base;
    void **slot;
    const xpu_callback *send, *recv;
    int nsend, nrecv;
    const xpu_user_data *user;
    int nuser;
    int64_t id; /* that no other run of the client has; set for handlers */
    xpu_gang *gang; /* borrowed; NULL: it runs alone */
    int me;         /* its number there */
    const _Atomic bool *cancel; /* true: the run is to end */
};
sd_status xpu_run_program(xpu_run *r);
double xpu_run_cost(const thunk_program *p, const thunk_seq *seq);
/* How many steps a run puts into the queue at most; -1: it cannot be told, since
 * the host takes some steps itself while the program runs. */
int xpu_run_launches(const xpu_device *d, const thunk_seq *seq);

/* xpu_collective.c: of a run in a gang */
sd_status xpu_run_collective(const xpu_run *r, const thunk *t);
/* xpu_callback.c */
sd_status xpu_run_send(const xpu_run *r, const thunk *t);
sd_status xpu_run_recv(const xpu_run *r, const thunk *t);
/* xpu_ffi.c: a program's custom-calls, p->ffi; begin and end of each run. */
sd_status xpu_ffi_load(xpu_program *p);
void xpu_ffi_unload(xpu_ffi *x); /* takes NULL */
sd_status xpu_ffi_begin(const xpu_run *r);
void xpu_ffi_end(const xpu_run *r);
sd_status xpu_run_custom(const xpu_run *r, const thunk *t);
/* xpu_ffi_task.c: when nothing runs any more, and when nobody asks. */
void xpu_ffi_stop(xpu_client *c);
void xpu_ffi_finish(xpu_client *c);

/* ---- libraries of Python's environments: xpu_python.c ---- */

/* The nth file of that pattern, from 0: in the environment that we lie in,
 * those that loaded libraries such as jaxlib's lie in, the active one
 * (VIRTUAL_ENV).  beside: beside their packages ("scipy.libs/lib*.so"),
 * otherwise in their lib. */
bool xpu_python_file(bool beside, const char *pattern, int n, char *out,
                     size_t size);
/* The first of them that opens; NULL: none. */
void *xpu_python_open(bool beside, const char *pattern);

/* ---- ELF objects: xpu_elf.c ---- */

typedef struct xpu_code xpu_code;
/* Loads the objects of a verified program into one mapping; fn[kernel] are the
 * entry points.  The objects' bytes are not trusted. */
sd_status xpu_elf_load(const thunk_program *p, bool perf_map, xpu_code **out,
                       void **fn);
void xpu_elf_unload(xpu_code *c); /* takes NULL */

#endif
