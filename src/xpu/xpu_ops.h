/* xpu_ops: what a device is to the rest of xpu: queues, marks in them, and a
 * table of functions.  A slot that is left out has the meaning written beside
 * it: xpu_default.c fills it in when the device is added, so callers need not
 * ask.
 *
 * Unless said otherwise a slot is called by the thread that owns the device's
 * compute stream at that moment, so never by two threads at once. */
#ifndef XPU_OPS_H
#define XPU_OPS_H

#include "xpu_run.h"

#define XPU_ALIGN 64u
enum { XPU_CARD = 16 }; /* bytes of a card's identity: see ops->card */

/* A kernel that the program brings as source: what the driver is to compile,
 * and how to launch it. */
typedef struct xpu_kernel xpu_kernel; /* the device's own: compiled */
typedef enum { XPU_OPENCL_C, XPU_SPIRV, XPU_PTX, XPU_CUBIN,
               XPU_SOURCE_COUNT } xpu_source_form;
typedef struct { const void *at; size_t bytes; } xpu_scalar;
typedef struct {
    xpu_source_form form;
    const char *code; /* a NUL behind it */
    size_t bytes;
    const char *entry, *options; /* options: of OpenCL's compiler */
    uint32_t grid[3], block[3]; /* groups of a launch, items of a group */
    uint32_t local; /* bytes of local memory of a group, set at launch */
    int npointer; /* its parameters: pointers to operands, then results; */
    int nscalar;  /* behind them, these by value */
    const xpu_scalar *scalar;
} xpu_kernel_source;

/* A device's queues.  Work in one queue runs in the order in which it was put
 * in. Two queues run side by side, unless one is told to wait for a mark in
 * the other (ops->wait). */
typedef enum {
    XPU_COMPUTE, /* launches, and the copies between them */
    XPU_IN,      /* copies from host memory */
    XPU_OUT,     /* copies to host memory */
    XPU_PEER,    /* copies between devices or memories: a queue of the device
                    that they go to */
    XPU_BESIDE,  /* collectives beside launches; of devices that gather */
    XPU_QUEUE_COUNT
} xpu_queue;

/* A place in a queue.  It is reached when all work that was put in before it
 * has run.  References are counted; the last one gives the driver its event
 * back. */
struct xpu_mark {
    _Atomic uint32_t refs;
    xpu_device *dev; /* borrowed: whoever has a mark has work in flight there */
    xpu_queue queue;
};
/* The mark was reached, or (an error, taken) what is before it failed. */
typedef void (*xpu_mark_fn)(void *ctx, sd_status st);

/* The blocks that a collective copies, in n columns, one of each member.  Row i
 * of a column is copied from `from + i * from_step` to `to + i * to_step`. */
typedef struct {
    uint8_t *to, *from; /* from NULL: zeros are written */
    xpu_device *dev;    /* whose memory `from` is in; NULL: host memory */
    bool far;           /* another process sent it, with its rows without gaps */
} xpu_column;
typedef struct {
    int64_t rows;
    size_t bytes, to_step, from_step;
    const xpu_column *column;
    int n;
} xpu_blocks;

/* Devices of a client whose kernels may read each other's memory, at most. */
enum { XPU_MOST_PEERS = 64 };

/* A meeting of a gang's members on their devices.  Its number is larger than
 * that of any meeting before it of two of these devices. */
typedef struct {
    uint64_t number;
    uint32_t *stop; /* pinned memory; not 0: nobody waits any more */
    xpu_device *const *dev; /* n of them, */
    const bool *tell, *await; /* which of these are told, and waited for */
    int n;
} xpu_meeting;

typedef struct {
    const char *name;
    /* Memory from the system, 64-aligned; any thread.  xpu_memory.c, which
     * caches it, asks rarely.  *out NULL without an error: there is none
     * left. */
    sd_status (*alloc)(xpu_device *d, xpu_memory mem, size_t bytes,
                       void **out);
    void (*free)(xpu_device *d, xpu_memory mem, void *p, size_t bytes);
    /* Puts a copy into a queue.  It may return before the copy is done, so host
     * memory must stay until a mark behind it is reached.  COMPUTE by the owner
     * of the compute stream, other queues by any thread.  Left out: memmove,
     * which suits memory that the host sees. */
    sd_status (*copy)(xpu_device *d, xpu_queue q, void *to, const void *from,
                      size_t bytes);
    /* Copies from host to device and back, which are done on return and wait
     * for no queue; any thread.  Left out: memcpy. */
    sd_status (*copy_in)(xpu_device *d, void *to, const void *from,
                         size_t bytes);
    sd_status (*copy_out)(xpu_device *d, void *to, const void *from,
                          size_t bytes);
    /* A copy between two devices of the client, done on return; any thread.
     * Left out: copy_out, then copy_in. */
    sd_status (*copy_between)(xpu_device *to_dev, void *to,
                              xpu_device *from_dev, const void *from,
                              size_t bytes);
    /* Puts the copies of blocks into d->queue, from devices with these ops.
     * Left out: members of a gang wait for their queues before they read from
     * each other. */
    sd_status (*gather)(xpu_device *d, const xpu_blocks *b);
    /* Of devices that d->meets says: in COMPUTE, tells the others that it has
     * come here, and waits until they have. */
    sd_status (*meet)(xpu_device *d, const xpu_meeting *m);
    /* Loads the kernels of a verified program; any thread. */
    sd_status (*load)(xpu_device *d, const thunk_program *p, xpu_module **out);
    void (*unload)(xpu_device *d, xpu_module *m);
    /* Called before the first launch of a run.  Left out: nothing to do. */
    sd_status (*begin)(xpu_device *d, xpu_module *m);
    sd_status (*launch)(xpu_device *d, xpu_module *m, int kernel,
                        void **slot); /* into d->queue */
    /* Puts the next *n steps, beginning with `first`, in as one (CUDA: as a
     * graph).  *n 0, or left out: the caller takes the step by itself. */
    sd_status (*replay)(const xpu_run *r, const thunk *first, int *n);
    /* Left out: the device has no libraries (desc.libs is 0), and no program
     * that calls one is loaded. */
    sd_status (*libcall)(xpu_device *d, const thunk *t, void *const *ptr);
    /* A copy for a step that the host does between launches, as it reads a
     * loop's predicate: after all launches so far, done on return.  Left out:
     * memcpy. */
    sd_status (*peek)(xpu_device *d, void *to, const void *from, size_t bytes);
    /* Lends COMPUTE to a foreign call, as *stream (a CUstream, a
     * cl_command_queue): until reclaim this thread may call the driver and put
     * work into it.  By the owner of the compute stream.  Both or none; left
     * out: *stream is NULL. */
    sd_status (*lend)(xpu_device *d, void **stream);
    sd_status (*reclaim)(xpu_device *d);
    /* The identity of the card, the same in every process: so two processes
     * see that they use one card.  Any thread.  Left out: no other process has
     * it. */
    sd_status (*card)(xpu_device *d, uint8_t out[XPU_CARD]);
    /* Order against a stream of another library (a CUstream); any thread.
     * follow: later work of q begins when all that is now in `stream` has run.
     * lead: later work of `stream` begins when m is reached.  Both or none;
     * left out: other libraries have no streams. */
    sd_status (*follow)(xpu_device *d, xpu_queue q, void *stream);
    sd_status (*lead)(xpu_device *d, void *stream, xpu_mark *m);
    /* Kernels that come as source; make and drop by any thread, and s must stay
     * until drop.  ptr: operands, then results.  All or none; left out: the
     * device takes no such kernels (custom_call.def). */
    sd_status (*kernel_make)(xpu_device *d, const xpu_kernel_source *s,
                             xpu_kernel **out);
    void (*kernel_drop)(xpu_device *d, xpu_kernel *k);
    sd_status (*kernel_launch)(xpu_device *d, xpu_kernel *k, void *const *ptr);
    /* Marks: docs/adr/0020.  A device has all of record, wait, query and
     * forget, or none; without them *out of record is NULL, and whatever is
     * put into a queue has run when the call returns.  COMPUTE by the owner of
     * the compute stream, other queues, query and forget by any thread.
     *
     * record: *out is a reference to a mark at the end of q.  fn(ctx, st) is
     * called once when it is reached, perhaps before record returns, and never
     * if record gives an error.  Unless own_threads is set it runs on a thread
     * of the driver's, where it may hand over to one of ours and do no more.
     * send: makes the driver begin what it has collected of q and not begun
     * yet. Left out: drivers of this kind collect nothing. wait: later work of
     * q begins when m is reached, which may be a mark of another device with
     * these ops. query: true when m was reached, or never will be. forget: the
     * last reference is gone. */
    sd_status (*record)(xpu_device *d, xpu_queue q, xpu_mark_fn fn, void *ctx,
                        xpu_mark **out);
    sd_status (*send)(xpu_device *d, xpu_queue q);
    sd_status (*wait)(xpu_device *d, xpu_queue q, xpu_mark *m);
    bool (*query)(const xpu_mark *m);
    void (*forget)(xpu_mark *m);
    /* Of a device whose driver runs kernels on the host's own cores (d->lends):
     * lets the driver use this thread until m is reached.  It includes send. */
    void (*help)(xpu_mark *m);
    /* Waits until q has run: for when no mark can be made.  Left out: all work
     * has run when it was put in. */
    sd_status (*sync)(xpu_device *d, xpu_queue q);
    void (*close)(xpu_device *d); /* frees d->impl; left out: there is none */
    /* The host reads and writes the device's memory as its own, and pinned host
     * memory is device memory.  Only such a device may leave out copies and
     * peek. */
    bool shared_memory;
    /* record calls fn on threads of ours, where it may end work. */
    bool own_threads;
    /* A program's code runs with the driver that it was built for, and with no
     * other. */
    bool code_is_drivers;
} xpu_device_ops;
/* The same table with the slots filled in that were left out: xpu_default.c. */
xpu_device_ops xpu_ops_filled(const xpu_device_ops *ops);
/* copy_between where it is left out, and between devices of two kinds. */
sd_status xpu_copy_through_host(xpu_device *to_dev, void *to,
                                xpu_device *from_dev, const void *from,
                                size_t bytes);
/* memcpy between two places of host memory; what is large is shared out to the
 * client's pool.  Any thread. */
void xpu_copy_shared(xpu_device *d, void *to, const void *from, size_t bytes);

#endif
