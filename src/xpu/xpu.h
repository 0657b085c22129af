/* xpu: devices, memory, streams, running thunk programs.  Any thread may call
 * anything here unless said otherwise.  A client owns its devices; buffers,
 * events and programs are reference counted.  Destroying a client ends all
 * runs. Buffers and programs that somebody still holds keep their memory and
 * may be asked about and released, but cannot be copied or run any more.
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
/* Where a buffer lies.  Kernels can read buffers in either kind of host memory,
 * too. */
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
    int64_t held, held_peak; /* taken from the system, in use or cached */
    int64_t room; /* the largest allocation for which no buffer must go */
} xpu_memory_stats;
void xpu_device_stats(xpu_device *d, xpu_memory_stats *out);
void xpu_device_clear_stats(xpu_device *d); /* peaks and counts begin anew */
sd_status xpu_device_sync(xpu_device *d); /* waits for its stream */

/* ---- several processes: xpu_join.c, docs/adr/0031 ---- */

/* The key-value store through which the processes of a job find each other. */
typedef struct {
    /* Waits at most so long for the key, and appends its value to out. */
    sd_status (*get)(void *ctx, const char *key, int timeout_ms, sd_buf *out);
    sd_status (*put)(void *ctx, const char *key, sd_bytes value);
    void *ctx;
} xpu_store;
typedef struct { int process; device_desc desc; } xpu_place;
/* Makes c process `me` of the n of a job, and waits for the others; nothing may
 * run on c yet.  *world (malloc'ed): the devices of all processes, those of
 * process 0 first. */
sd_status xpu_client_join(xpu_client *c, const sd_options *opt, int me, int n,
                          const xpu_store *s, xpu_place **world, int *nworld);

/* ---- interrupts (SIGINT): xpu_interrupt.c ----
 * From watch to unwatch our handler is called before the process's own, if that
 * has one.  Watches may nest, and be on several threads. */

uint32_t xpu_interrupt_watch(void); /* how many interrupts came so far */
void xpu_interrupt_unwatch(void);
/* Are runs to end?  So they are when, since that many, an interrupt came a
 * second ago or two came: the process's own handler has a second to act
 * first. */
bool xpu_interrupt_due(uint32_t since);

/* ---- events: one-shot, ready with a status ---- */

xpu_event *xpu_event_create(void); /* NULL: out of memory */
xpu_event *xpu_event_retain(xpu_event *e);
void xpu_event_release(xpu_event *e);
/* Takes st.  False, and nothing happens, if e is set already. */
bool xpu_event_set(xpu_event *e, sd_status st);
bool xpu_event_is_ready(const xpu_event *e);
sd_status xpu_event_wait(xpu_event *e);  /* a copy of its error */
sd_status xpu_event_error(const xpu_event *e); /* ready: a copy; else NULL */
/* Calls fn(ctx, st) exactly once, st being fn's: now if e is ready, else on the
 * thread that sets it, where no lock of ours is held. */
typedef void (*xpu_event_fn)(void *ctx, sd_status st);
sd_status xpu_event_then(xpu_event *e, xpu_event_fn fn, void *ctx);
/* Spins for a moment if a device is thought to end soon the work that sets
 * e. */
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
/* Gives a buffer that was just made other dimensions, as many as it has, of the
 * same number of bytes. */
void xpu_buffer_set_dims(xpu_buffer *b, const int64_t *dim);
size_t xpu_buffer_bytes(const xpu_buffer *b);
void *xpu_buffer_pointer(const xpu_buffer *b); /* device pointer; may be NULL */
bool xpu_buffer_is_placed(const xpu_buffer *b); /* that pointer is known */
xpu_event *xpu_buffer_ready(const xpu_buffer *b); /* borrowed */
/* It is deleted at once; its memory goes when the last use ends. */
void xpu_buffer_delete(xpu_buffer *b);
bool xpu_buffer_is_deleted(const xpu_buffer *b); /* one load */
sd_status xpu_buffer_pin(xpu_buffer *b);   /* external reference: not donated */
sd_status xpu_buffer_unpin(xpu_buffer *b); /* at zero: INVALID */
/* A view of memory that somebody else owns; on_delete when the last use
 * ends. */
sd_status xpu_buffer_view(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                          const int64_t *dim, void *pointer,
                          void (*on_delete)(void *pointer, void *ctx),
                          void *ctx, xpu_buffer **out);

void xpu_buffer_disown(xpu_buffer *b); /* of a view: on_delete is not called */
/* Makes a view that was just made ready only when all that is now in a stream
 * of another library has run.  Does nothing on devices that know no such
 * streams. */
sd_status xpu_buffer_follow(xpu_buffer *b, void *stream);
/* Later work in another library's stream begins when b is ready.  On devices
 * that know no such streams, waits until b is. */
sd_status xpu_buffer_lead(xpu_buffer *b, void *stream);

/* A buffer of host data with these strides in bytes (NULL: dense row-major).
 * The data are read before *done is set or, if during_call, before this
 * returns; done may be NULL then. */
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
/* A buffer without memory.  fulfil gives it the memory of another buffer, and
 * it is ready when that is; if `ready` (retained) is set to an error it never
 * gets any. */
sd_status xpu_buffer_hollow(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                            const int64_t *dim, xpu_event *ready,
                            xpu_buffer **out);
sd_status xpu_buffer_fulfil(xpu_buffer *hollow, xpu_buffer *of);
/* A second buffer on b's memory, of another type and shape of as many bytes. */
sd_status xpu_buffer_share(xpu_buffer *b, sd_dtype t, int rank,
                           const int64_t *dim, xpu_buffer **out);
/* The same, and b is deleted. */
sd_status xpu_buffer_bitcast(xpu_buffer *b, sd_dtype t, int rank,
                             const int64_t *dim, xpu_buffer **out);
/* b is deleted, *out has its data once the dependency is ready too. */
sd_status xpu_buffer_donate(xpu_buffer *b, xpu_event *dependency,
                            xpu_buffer **out);

/* ---- to and from other processes: xpu_move.c ---- */

/* Sends b to a device of another process, which receives it under the same key.
 * If it cannot be sent, the error is the event's, and the receiver's, too. */
sd_status xpu_buffer_send(xpu_buffer *b, int process, int device, int64_t key,
                          xpu_event **sent);
/* Receives on d, which the sender calls `device`, what that process sends under
 * the key. */
sd_status xpu_buffer_receive(xpu_device *d, xpu_memory mem, sd_dtype t,
                             int rank, const int64_t *dim, int process,
                             int device, int64_t key, xpu_buffer **out);

/* ---- programs ---- */

sd_status xpu_program_load(xpu_device *d, thunk_program *p, xpu_program **out);
/* The same as participant number partition * replicas + replica of a program of
 * several; xpu_program_load is that of participant 0. */
sd_status xpu_program_load_as(xpu_device *d, thunk_program *p, int participant,
                              xpu_program **out);
/* Has it collectives, so that its participants must run as one gang? */
bool xpu_program_is_gang(const xpu_program *x);
xpu_program *xpu_program_retain(xpu_program *x);
void xpu_program_release(xpu_program *x);

typedef struct { /* a send or receive of the host, by channel */
    int64_t channel;
    sd_status (*call)(void *ctx, void *data, size_t bytes);
    void *ctx;
} xpu_callback;

typedef struct { int64_t type_id; void *data; } xpu_user_data; /* borrowed */

/* A step of a program that has run on a device, from when until when
 * (sd_now_ns).  The steps of a loop are told turn by turn, then the loop. */
typedef struct {
    int device;
    thunk_program *program; /* borrowed */
    const thunk *step;
    uint64_t from, until;
} xpu_step;
typedef struct {
    void (*fn)(void *ctx, const xpu_step *s); /* NULL: nobody listens */
    void *ctx;
} xpu_listener;

typedef struct {
    xpu_buffer *const *arg;
    int narg;
    const bool *keep;       /* per argument: do not donate; NULL: none */
    const xpu_callback *send, *recv; /* stay until *done is set */
    int nsend, nrecv;
    int launch;             /* number for xpu_device_poison; 0: none */
    const xpu_user_data *user; /* for handlers of custom-calls; likewise */
    int nuser;
    /* It hears of each step, on threads that run programs.  So that it is told
     * what the step took, the device is waited for behind each. */
    xpu_listener listener;
} xpu_call;
/* Runs x.  out[noutput] are new buffers, *done is set when all has run.
 * Donated arguments are deleted on return.  If the event of an argument is an
 * error, the program does not run, and outputs and *done get that error. */
sd_status xpu_execute(xpu_program *x, const xpu_call *call, xpu_buffer **out,
                      xpu_event **done);
/* Runs all participants of a program as one gang: x[i] and call[i] are
 * participant i's, each on a device of its own.  An error means that none
 * runs; if one fails later, all do.  out[i] and done[i] are as above. */
sd_status xpu_execute_gang(int n, xpu_program *const *x, const xpu_call *call,
                           xpu_buffer **const *out, xpu_event **done);
/* In which process each participant of a program is; every process has the same
 * table. */
typedef struct {
    int n;
    const int *process; /* [n] */
    uint64_t id; /* of the list of devices: runs on one list are numbered */
} xpu_places;
/* The same for a program with participants in other processes: x[i] are the n
 * of this process, in their order. */
sd_status xpu_execute_among(const xpu_places *at, int n, xpu_program *const *x,
                            const xpu_call *call, xpu_buffer **const *out,
                            xpu_event **done);
/* Makes the run with call.launch == launch fail with st (taken), if it waits
 * for its turn or for arguments; false: there is no such run. */
bool xpu_device_poison(xpu_device *d, int launch, sd_status st);

/* ---- typed foreign calls: xpu_ffi_registry.c ----
 * The registry is the process's, since handlers are registered before there is a
 * client. */

enum { XPU_FFI_STAGES = 4 };
typedef struct { /* XLA_FFI_Handlers of the stages instantiate, prepare,
                    initialize and execute; all but execute may be NULL */
    void *stage[XPU_FFI_STAGES];
} xpu_ffi_bundle;
/* The kind of device that a platform's name means: "xpu:cl" OpenCL's, "xpu"
 * alone the host. */
sd_status xpu_ffi_platform(const char *name, size_t len, device_kind *out);
/* Registers a handler for one kind of device, since it must know whose memory
 * it is given.  It is called once here, and asked which interface it was
 * compiled for. */
sd_status xpu_ffi_register(const char *name, size_t len, device_kind kind,
                           const xpu_ffi_bundle *b);
/* Registers a type of handlers' states; *id 0: gives it a new number. */
sd_status xpu_ffi_register_type(const char *name, size_t len, int64_t *id,
                                void (*deleter)(void *));


#endif
