/* xpu: devices, memory, streams, running thunk programs.  Any thread may call
 * anything here unless said otherwise.  A client owns its devices; buffers,
 * events and programs are reference counted.  Destroying a client ends what
 * runs; buffers and programs that are still held keep their memory and may be
 * asked and released, but run and copy no more.
 *
 * A device runs programs in the order in which they were executed, and copies
 * beside them.  Execute returns once work is queued; small work on an idle
 * device is run (host) or put into the device's queue on the caller's thread
 * instead, in the same order: docs/adr/0020. */
#ifndef XPU_H
#define XPU_H

#include "base.h"
#include "device_desc.h"
#include "thunk.h"

typedef struct xpu_client xpu_client;
typedef struct xpu_device xpu_device;
typedef struct xpu_buffer xpu_buffer;
typedef struct xpu_event xpu_event;
typedef struct xpu_program xpu_program;
/* What a program has in either host memory its kernels can read. */
typedef enum { XPU_MEM_DEVICE, XPU_MEM_PINNED_HOST, XPU_MEM_UNPINNED_HOST,
               XPU_MEM_COUNT } xpu_memory;
extern const char *const xpu_memory_name[XPU_MEM_COUNT];
bool xpu_memory_of_name(const char *name, xpu_memory *out);

/* ---- client and devices ---- */

sd_status xpu_client_create(const sd_options *opt, xpu_client **out);
void xpu_client_destroy(xpu_client *c); /* drains streams, joins threads */
int xpu_client_count(const xpu_client *c);
xpu_device *xpu_client_device(const xpu_client *c, int i);
sd_pool *xpu_client_pool(const xpu_client *c); /* for compiling */
const device_desc *xpu_device_desc(const xpu_device *d);
typedef struct {
    int64_t in_use, peak, limit, allocs, largest;
    int64_t held, held_peak; /* from the system, in use or not */
    int64_t room; /* the largest allocation that needs nothing given back */
} xpu_memory_stats;
void xpu_device_stats(xpu_device *d, xpu_memory_stats *out);
void xpu_device_clear_stats(xpu_device *d); /* peaks and counts begin anew */
sd_status xpu_device_sync(xpu_device *d); /* waits for its stream */

/* ---- several processes: xpu_join.c, docs/adr/0031 ---- */

/* Where the processes of a job find what the others say. */
typedef struct {
    /* Waits for the key so long; appends. */
    sd_status (*get)(void *ctx, const char *key, int timeout_ms, sd_buf *out);
    sd_status (*put)(void *ctx, const char *key, sd_bytes value);
    void *ctx;
} xpu_store;
typedef struct { int process; device_desc desc; } xpu_place;
/* Makes c process `me` of n, before anything runs there; waits for the others.
 * *world (malloc'ed): the devices of all, those of process 0 first. */
sd_status xpu_client_join(xpu_client *c, const sd_options *opt, int me, int n,
                          const xpu_store *s, xpu_place **world, int *nworld);

/* ---- interrupts (SIGINT): xpu_interrupt.c ----
 * From watch to unwatch, which may be several and nest, a handler of ours stands
 * before the process's own, where there is one. */

uint32_t xpu_interrupt_watch(void); /* a mark: interrupts so far */
void xpu_interrupt_unwatch(void);
/* Since the mark there was one a second ago, or two. */
bool xpu_interrupt_due(uint32_t since);

/* ---- events: one-shot, ready with a status ---- */

xpu_event *xpu_event_create(void); /* NULL: out of memory */
xpu_event *xpu_event_retain(xpu_event *e);
void xpu_event_release(xpu_event *e);
/* Takes st; false, and nothing happens, when it is set already. */
bool xpu_event_set(xpu_event *e, sd_status st);
bool xpu_event_is_ready(const xpu_event *e);
sd_status xpu_event_wait(xpu_event *e);  /* a copy of its error */
sd_status xpu_event_error(const xpu_event *e); /* ready: a copy; else NULL */
/* fn(ctx, st) exactly once, st owned by fn: at once when ready, else on the
 * thread that sets it; no lock of ours is held. */
typedef void (*xpu_event_fn)(void *ctx, sd_status st);
sd_status xpu_event_then(xpu_event *e, xpu_event_fn fn, void *ctx);
/* Waits for a moment, where a device is thought to end soon what e is of. */
void xpu_event_look(xpu_event *e);
/* When `from` is ready, `to` is set alike. */
sd_status xpu_event_chain(xpu_event *from, xpu_event *to);

/* ---- buffers ---- */

/* shape is copied.  Element layout on the device is dense row-major. */
sd_status xpu_buffer_alloc(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                           const int64_t *dim, xpu_buffer **out);
xpu_buffer *xpu_buffer_retain(xpu_buffer *b);
void xpu_buffer_release(xpu_buffer *b); /* memory goes when pending uses end */
xpu_memory xpu_buffer_memory(const xpu_buffer *b);
sd_dtype xpu_buffer_dtype(const xpu_buffer *b);
int xpu_buffer_rank(const xpu_buffer *b);
const int64_t *xpu_buffer_dims(const xpu_buffer *b);
/* Of a fresh buffer: the same bytes under as many other dimensions. */
void xpu_buffer_set_dims(xpu_buffer *b, const int64_t *dim);
size_t xpu_buffer_bytes(const xpu_buffer *b);
void *xpu_buffer_pointer(const xpu_buffer *b); /* device pointer; may be NULL */
bool xpu_buffer_is_placed(const xpu_buffer *b); /* that pointer is known */
xpu_event *xpu_buffer_ready(const xpu_buffer *b); /* borrowed */
void xpu_buffer_delete(xpu_buffer *b);  /* state now, memory later */
bool xpu_buffer_is_deleted(const xpu_buffer *b); /* one load */
sd_status xpu_buffer_pin(xpu_buffer *b);   /* external reference: not donated */
sd_status xpu_buffer_unpin(xpu_buffer *b); /* at zero: INVALID */
/* A view of memory that somebody else owns; on_delete when the last use ends. */
sd_status xpu_buffer_view(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                          const int64_t *dim, void *pointer,
                          void (*on_delete)(void *pointer, void *ctx),
                          void *ctx, xpu_buffer **out);

void xpu_buffer_disown(xpu_buffer *b); /* of a view: on_delete is not called */
/* Of a view that was just made: it is ready when what is in that stream of
 * another library has run; where the device knows none it is as
 * it was. */
sd_status xpu_buffer_follow(xpu_buffer *b, void *stream);
/* What is put into that stream from now on begins when b is ready; without
 * streams of others b is waited for. */
sd_status xpu_buffer_lead(xpu_buffer *b, void *stream);

/* From host memory, strides in bytes (NULL: dense row-major).  The data are
 * read before the call returns when during_call; else before *done is set
 * (done may be NULL when during_call). */
sd_status xpu_buffer_from_host(xpu_device *d, xpu_memory mem, sd_dtype t,
                               int rank, const int64_t *dim, const void *data,
                               const int64_t *strides, bool during_call,
                               xpu_buffer **out, xpu_event **done);
/* To dense row-major host memory; *done when written. */
sd_status xpu_buffer_to_host(xpu_buffer *b, size_t offset, void *dst,
                             size_t bytes, xpu_event **done);
sd_status xpu_buffer_copy(xpu_buffer *b, xpu_device *d, xpu_memory mem,
                          xpu_buffer **out); /* async */

/* ---- buffers whose data or memory come later: xpu_promise.c ---- */

/* Memory now, data when the caller sets `ready` (retained). */
sd_status xpu_buffer_promise(xpu_device *d, xpu_memory mem, sd_dtype t,
                             int rank, const int64_t *dim, xpu_event *ready,
                             xpu_buffer **out);
/* Writes a part of a promised buffer, ready or not; *done when read. */
sd_status xpu_buffer_write(xpu_buffer *b, size_t offset, const void *from,
                           size_t bytes, xpu_event **done);
/* No memory: for ever when `ready` (retained) is set to an error, else until
 * fulfil gives it that of another, as which it is ready then. */
sd_status xpu_buffer_hollow(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                            const int64_t *dim, xpu_event *ready,
                            xpu_buffer **out);
sd_status xpu_buffer_fulfil(xpu_buffer *hollow, xpu_buffer *of);
/* b's memory under another type and shape of as many bytes. */
sd_status xpu_buffer_share(xpu_buffer *b, sd_dtype t, int rank,
                           const int64_t *dim, xpu_buffer **out);
/* The same, and b is deleted. */
sd_status xpu_buffer_bitcast(xpu_buffer *b, sd_dtype t, int rank,
                             const int64_t *dim, xpu_buffer **out);
/* b is deleted, *out has its data once the dependency is ready too. */
sd_status xpu_buffer_donate(xpu_buffer *b, xpu_event *dependency,
                            xpu_buffer **out);

/* ---- to and from other processes: xpu_move.c ---- */

/* Array number `key`, which is the same in both processes, goes to that device
 * of that process.  What is against it is the event's, and told to
 * who receives. */
sd_status xpu_buffer_send(xpu_buffer *b, int process, int device, int64_t key,
                          xpu_event **sent);
/* And comes from that process to d, which is `device` there. */
sd_status xpu_buffer_receive(xpu_device *d, xpu_memory mem, sd_dtype t,
                             int rank, const int64_t *dim, int process,
                             int device, int64_t key, xpu_buffer **out);

/* ---- programs ---- */

sd_status xpu_program_load(xpu_device *d, thunk_program *p, xpu_program **out);
/* One participant's (partition * replicas + replica) of several; the other is
 * participant 0. */
sd_status xpu_program_load_as(xpu_device *d, thunk_program *p, int participant,
                              xpu_program **out);
/* Its participants meet in collectives: they run as one gang. */
bool xpu_program_is_gang(const xpu_program *x);
xpu_program *xpu_program_retain(xpu_program *x);
void xpu_program_release(xpu_program *x);

typedef struct { /* a send or receive of the host, by channel */
    int64_t channel;
    sd_status (*call)(void *ctx, void *data, size_t bytes);
    void *ctx;
} xpu_callback;

typedef struct { int64_t type_id; void *data; } xpu_user_data; /* borrowed */

typedef struct {
    xpu_buffer *const *arg;
    int narg;
    const bool *keep;       /* per argument: do not donate; NULL: none */
    const xpu_callback *send, *recv; /* stay until *done is set */
    int nsend, nrecv;
    int launch;             /* a number to poison it by; 0: none */
    const xpu_user_data *user; /* for handlers of custom-calls; likewise */
    int nuser;
} xpu_call;
/* out[noutput] are fresh buffers; *done when all has run.  Donated arguments
 * are deleted on return.  Inputs in error poison outputs and *done. */
sd_status xpu_execute(xpu_program *x, const xpu_call *call, xpu_buffer **out,
                      xpu_event **done);
/* All participants of a program at once, x[i] and call[i] being participant i's,
 * each on a device of its own: done as one.  All are taken, or none; a member
 * that fails fails all.  out[i], done[i] as above. */
sd_status xpu_execute_gang(int n, xpu_program *const *x, const xpu_call *call,
                           xpu_buffer **const *out, xpu_event **done);
/* Where the participants of a program are, as all processes say alike. */
typedef struct {
    int n;
    const int *process; /* [n] */
    uint64_t id; /* of the devices in their order: runs are numbered by it */
} xpu_places;
/* The same of a program that has participants in other processes: x[i], n of
 * them, are those of this one in their order. */
sd_status xpu_execute_among(const xpu_places *at, int n, xpu_program *const *x,
                            const xpu_call *call, xpu_buffer **const *out,
                            xpu_event **done);
/* A run of that number that waits for its turn or its arguments fails with st
 * (taken) now; false: there is none. */
bool xpu_device_poison(xpu_device *d, int launch, sd_status st);

/* ---- typed foreign calls: xpu_ffi_registry.c ----
 * Of the process, not of a client: handlers come before clients do. */

enum { XPU_FFI_STAGES = 4 };
typedef struct { /* instantiate, prepare, initialize, execute: each a
                    XLA_FFI_Handler; NULL: nothing to do, but execute */
    void *stage[XPU_FFI_STAGES];
} xpu_ffi_bundle;
/* "xpu:cl": of that kind of device; "xpu" alone means the host. */
sd_status xpu_ffi_platform(const char *name, size_t len, device_kind *out);
/* Handlers are called once at once, for what they were compiled for; each kind
 * of device has its own of a name, since they know whose memory they get. */
sd_status xpu_ffi_register(const char *name, size_t len, device_kind kind,
                           const xpu_ffi_bundle *b);
/* *id 0: a new one is given. */
sd_status xpu_ffi_register_type(const char *name, size_t len, int64_t *id,
                                void (*deleter)(void *));

/* ---- a device's functions, for xpu_host.c, xpu_cl.c: xpu_device.h ---- */

#endif
