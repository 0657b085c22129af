/* What we use of NVIDIA's driver (libcuda.so.1): our own declarations of the
 * functions, types and numbers of its interface, one list of symbols.  Nothing
 * of NVIDIA's is needed to build. */
#ifndef XPU_CUDA_API_H
#define XPU_CUDA_API_H

#include "xpu_device.h"

typedef int cu_result;
typedef int cu_device;
typedef uint64_t cu_pointer;
typedef struct cu_context_st *cu_context;
typedef struct cu_stream_st *cu_stream;
typedef struct cu_event_st *cu_event;
typedef struct cu_module_st *cu_module;
typedef struct cu_function_st *cu_function;
typedef struct cu_pool_st *cu_pool;
typedef struct cu_graph_st *cu_graph;
typedef struct cu_graph_node_st *cu_graph_node;
typedef struct cu_graph_exec_st *cu_graph_exec;
typedef uint64_t cu_condition;
typedef void (*cu_host_fn)(void *ctx);

typedef struct { int type, id; } cu_location; /* CU_AT_DEVICE */
typedef struct {
    int alloc_type, handle_types;
    cu_location location;
    void *security;
    size_t max_size;
    uint16_t usage;
    uint8_t reserved[54];
} cu_pool_props;
typedef struct { cu_location location; int flags; } cu_access;
_Static_assert(sizeof(cu_pool_props) == 88, "as the driver lays it out");
typedef struct { /* of a graph's node */
    cu_function fn;
    unsigned grid[3], group[3], shared;
    void **params, **extra, *kernel;
    cu_context context;
} cu_kernel_params;
_Static_assert(sizeof(cu_kernel_params) == 72, "as the driver lays it out");
typedef struct {
    size_t x, y, z, lod;
    int type; /* CU_MEMORY_DEVICE */
    void *host;
    cu_pointer at;
    void *array, *reserved;
    size_t pitch, height;
} cu_copy_side;
typedef struct {
    cu_copy_side from, to;
    size_t width, height, depth; /* bytes of a row, rows, slices */
} cu_copy_params;
_Static_assert(sizeof(cu_copy_params) == 200, "as the driver lays it out");
typedef struct {
    int type, reserved[3]; /* CU_NODE_CONDITION */
    cu_condition handle;
    int kind; /* CU_IF, CU_WHILE */
    unsigned size;
    cu_graph *body; /* the driver writes it */
    cu_context context;
    uint64_t unused[26];
} cu_node_params;
_Static_assert(sizeof(cu_node_params) == 256, "as the driver lays it out");

enum {
    CU_OK = 0, CU_INVALID_VALUE = 1, CU_OUT_OF_MEMORY = 2, CU_DEINITIALIZED = 4,
    CU_STUB_LIBRARY = 34, CU_NO_DEVICE = 100, CU_NOT_READY = 600,
    CU_PEER_ALREADY = 704,
    /* device attributes */
    CU_DEV_UNITS = 16, CU_DEV_L2_BYTES = 38, CU_DEV_UNIFIED = 41,
    CU_DEV_MAJOR = 75, CU_DEV_MINOR = 76, CU_DEV_SHARED = 97,
    CU_DEV_POOLS = 115,
    /* of a function, a pointer */
    CU_FN_DYNAMIC_SHARED = 8, CU_PTR_MEMORY_TYPE = 2,
    /* flags */
    CU_NON_BLOCKING = 1, CU_EVENT_SLEEPS = 1, CU_EVENT_NO_TIMES = 2,
    CU_HOST_PORTABLE = 1, CU_HOST_MAPPED = 2,
    CU_ALLOC_PINNED = 1, CU_AT_DEVICE = 1, CU_READ_WRITE = 3,
    CU_MEMORY_DEVICE = 2, CU_NODE_CONDITION = 13, CU_IF = 0, CU_WHILE = 1,
    CU_JIT_ERROR_LOG = 5, CU_JIT_ERROR_LOG_BYTES = 6,
};
/* The end of a list of a launch's extras, and its two words. */
#define CU_PARAM_END    ((void *)0)
#define CU_PARAM_BUFFER ((void *)1)
#define CU_PARAM_BYTES  ((void *)2)

/* Field, symbol, arguments. */
#define XPU_CUDA_SYMBOLS(X) \
    X(Init, cuInit, (unsigned flags)) \
    X(DriverGetVersion, cuDriverGetVersion, (int *out)) \
    X(GetErrorName, cuGetErrorName, (cu_result err, const char **out)) \
    X(DeviceGetCount, cuDeviceGetCount, (int *out)) \
    X(DeviceGet, cuDeviceGet, (cu_device *out, int i)) \
    X(DeviceGetName, cuDeviceGetName, (char *out, int size, cu_device d)) \
    X(DeviceGetAttribute, cuDeviceGetAttribute, \
      (int *out, int what, cu_device d)) \
    X(DeviceGetUuid, cuDeviceGetUuid, (void *out, cu_device d)) \
    X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t *out, cu_device d)) \
    X(DeviceCanAccessPeer, cuDeviceCanAccessPeer, \
      (int *out, cu_device d, cu_device peer)) \
    X(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, \
      (cu_context *out, cu_device d)) \
    X(PrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (cu_device d)) \
    X(CtxPushCurrent, cuCtxPushCurrent_v2, (cu_context c)) \
    X(CtxPopCurrent, cuCtxPopCurrent_v2, (cu_context *out)) \
    X(CtxEnablePeerAccess, cuCtxEnablePeerAccess, \
      (cu_context peer, unsigned flags)) \
    X(MemAlloc, cuMemAlloc_v2, (cu_pointer *out, size_t bytes)) \
    X(MemFree, cuMemFree_v2, (cu_pointer p)) \
    X(MemHostAlloc, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags)) \
    X(MemFreeHost, cuMemFreeHost, (void *p)) \
    X(MemPoolCreate, cuMemPoolCreate, \
      (cu_pool *out, const cu_pool_props *props)) \
    X(MemPoolDestroy, cuMemPoolDestroy, (cu_pool p)) \
    X(MemPoolSetAccess, cuMemPoolSetAccess, \
      (cu_pool p, const cu_access *who, size_t n)) \
    X(MemAllocFromPoolAsync, cuMemAllocFromPoolAsync, \
      (cu_pointer *out, size_t bytes, cu_pool p, cu_stream s)) \
    X(MemFreeAsync, cuMemFreeAsync, (cu_pointer p, cu_stream s)) \
    X(MemcpyAsync, cuMemcpyAsync, \
      (cu_pointer to, cu_pointer from, size_t bytes, cu_stream s)) \
    X(PointerGetAttributes, cuPointerGetAttributes, \
      (unsigned n, int *what, void **out, cu_pointer p)) \
    X(StreamCreate, cuStreamCreate, (cu_stream *out, unsigned flags)) \
    X(StreamDestroy, cuStreamDestroy_v2, (cu_stream s)) \
    X(StreamSynchronize, cuStreamSynchronize, (cu_stream s)) \
    X(StreamWaitEvent, cuStreamWaitEvent, \
      (cu_stream s, cu_event e, unsigned flags)) \
    X(EventCreate, cuEventCreate, (cu_event *out, unsigned flags)) \
    X(EventDestroy, cuEventDestroy_v2, (cu_event e)) \
    X(EventRecord, cuEventRecord, (cu_event e, cu_stream s)) \
    X(EventQuery, cuEventQuery, (cu_event e)) \
    X(EventSynchronize, cuEventSynchronize, (cu_event e)) \
    X(LaunchHostFunc, cuLaunchHostFunc, \
      (cu_stream s, cu_host_fn fn, void *ctx)) \
    X(ModuleLoadDataEx, cuModuleLoadDataEx, \
      (cu_module *out, const void *image, unsigned n, int *option, \
       void **value)) \
    X(ModuleUnload, cuModuleUnload, (cu_module m)) \
    X(ModuleGetFunction, cuModuleGetFunction, \
      (cu_function *out, cu_module m, const char *name)) \
    X(FuncSetAttribute, cuFuncSetAttribute, \
      (cu_function f, int what, int value)) \
    X(LaunchKernel, cuLaunchKernel, \
      (cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, \
       unsigned by, unsigned bz, unsigned shared, cu_stream s, void **params, \
       void **extra))

/* Since CUDA 12.4: NULL before. */
#define XPU_CUDA_OPTIONAL(X) \
    X(FuncGetParamInfo, cuFuncGetParamInfo, \
      (cu_function f, size_t i, size_t *offset, size_t *size))

/* Of graphs, and (CUDA 12.3) of those with loops and branches in them: where
 * one is not there, none of its list is used. */
#define XPU_CUDA_GRAPH_SYMBOLS(X) \
    X(StreamQuery, cuStreamQuery, (cu_stream s)) \
    X(GraphCreate, cuGraphCreate, (cu_graph *out, unsigned flags)) \
    X(GraphDestroy, cuGraphDestroy, (cu_graph g)) \
    X(GraphAddKernelNode, cuGraphAddKernelNode_v2, \
      (cu_graph_node *out, cu_graph g, const cu_graph_node *after, size_t n, \
       const cu_kernel_params *p)) \
    X(GraphAddMemcpyNode, cuGraphAddMemcpyNode, \
      (cu_graph_node *out, cu_graph g, const cu_graph_node *after, size_t n, \
       const cu_copy_params *p, cu_context c)) \
    X(GraphInstantiate, cuGraphInstantiateWithFlags, \
      (cu_graph_exec *out, cu_graph g, uint64_t flags)) \
    X(GraphExecDestroy, cuGraphExecDestroy, (cu_graph_exec x)) \
    X(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, \
      (cu_graph_exec x, cu_graph_node n, const cu_kernel_params *p)) \
    X(GraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, \
      (cu_graph_exec x, cu_graph_node n, const cu_copy_params *p, \
       cu_context c)) \
    X(GraphLaunch, cuGraphLaunch, (cu_graph_exec x, cu_stream s))
#define XPU_CUDA_LOOP_SYMBOLS(X) \
    X(GraphConditionalHandleCreate, cuGraphConditionalHandleCreate, \
      (cu_condition *out, cu_graph g, cu_context c, unsigned value, \
       unsigned flags)) \
    X(GraphAddNode, cuGraphAddNode, \
      (cu_graph_node *out, cu_graph g, const cu_graph_node *after, size_t n, \
       cu_node_params *p))

typedef struct {
#define X(name, symbol, args) cu_result(*name) args;
    XPU_CUDA_SYMBOLS(X)
    XPU_CUDA_OPTIONAL(X)
    XPU_CUDA_GRAPH_SYMBOLS(X)
    XPU_CUDA_LOOP_SYMBOLS(X)
#undef X
    bool has_graphs, has_loops;
} xpu_cuda_api;

/* nvJitLink: xpu_cuda_link.c. */
#define XPU_CUDA_LINKER(X) \
    X(Create, (void **out, uint32_t n, const char **option)) \
    X(AddData, (void *h, int type, const void *data, size_t bytes, \
                const char *name)) \
    X(Complete, (void *h)) \
    X(GetLinkedCubinSize, (void *h, size_t *out)) \
    X(GetLinkedCubin, (void *h, void *out)) \
    X(Destroy, (void **h))
typedef struct {
#define X(name, args) int(*name) args;
    XPU_CUDA_LINKER(X)
#undef X
    pthread_mutex_t lock; /* of the first look */
    bool looked, found;
} xpu_cuda_linker;

/* cuSOLVER: xpu_cusolver.h. */
typedef struct xpu_cusolver xpu_cusolver;
typedef struct xpu_cusolver_room xpu_cusolver_room;

/* The driver: what the devices of a client share. */
typedef struct {
    xpu_cuda_api api;
    char library[256]; /* where the symbols came from */
    int version;       /* 13000 */
    int ndev;          /* that it shows */
    pid_t process;     /* that opened it: no fork takes a context along */
    xpu_cuda_linker linker;
    xpu_cusolver *solver; /* NULL: it is not there, or not wanted */
} xpu_cuda_driver;

/* What a kernel takes at the least; to sleep costs about as much. */
#define XPU_CUDA_LOOK_NS 50000u
#define XPU_CUDA_SLOTS 4
#define XPU_CUDA_WORD  64u /* bytes */
/* Bytes of copies to the host for which a caller waits less through our slot
 * than through the driver's. */
#define XPU_CUDA_SHORT_LEAST ((size_t)64 << 10)
#define XPU_CUDA_SHORT_MOST  ((size_t)1 << 20)

/* Ways of pageable memory through pinned: xpu_cuda_stage.c. */
typedef struct xpu_cuda_job xpu_cuda_job;
typedef struct {
    pthread_mutex_t lock; /* of who puts copies in */
    pthread_mutex_t jobs_lock;
    xpu_cuda_job *jobs;   /* put in and not run: the driver's until they are */
    cu_stream aside;      /* of the host's part */
    void *slot[XPU_CUDA_SLOTS];
    cu_event full[XPU_CUDA_SLOTS], empty[XPU_CUDA_SLOTS];
    unsigned nslot, last; /* made; the one used last */
    bool is_out;
} xpu_cuda_stage;
typedef struct {
    pthread_mutex_t lock;
    void *slot;    /* made by the first copy */
    cu_event half; /* of it has arrived */
} xpu_cuda_short;

typedef struct xpu_cuda_event xpu_cuda_event; /* one that waits to be reused */

/* What graphs with loops in them need, made for the first: the kernels that
 * tell a node its condition, and a word of the device's that ends loops. */
typedef struct {
    enum { XPU_CUDA_NOT_LOOKED, XPU_CUDA_LOOPS, XPU_CUDA_NO_LOOPS } state;
    cu_module module;
    cu_function turn, branch; /* of a loop, of branches */
    cu_pointer stop;
} xpu_cuda_loops;

/* What reads other devices' memory, made by the first collective. */
#define XPU_CUDA_UNITS 3
typedef struct {
    bool made;
    cu_module module;
    cu_function fn[XPU_CUDA_UNITS];
    cu_stream aside;    /* copies beside COMPUTE, */
    cu_event turn[2];   /* to there and back */
} xpu_cuda_reader;

/* Where members wait for each other: xpu_cuda_meet.c. */
typedef struct {
    uint64_t *word; /* on the device; NULL: others do not reach it */
    cu_module module; /* made by the first collective */
    cu_function fn;
} xpu_cuda_meeting;

/* A device: d->impl. */
typedef struct {
    xpu_cuda_driver *driver; /* borrowed from the client */
    xpu_device *dev;         /* borrowed */
    cu_device id;
    int index;               /* among the client's devices, */
    uint64_t reaches;        /* and whose memory its kernels can read */
    int chip;                /* 90: of compute capability 9.0 */
    cu_context context;      /* the device's primary one, as other libraries' */
    cu_stream queue[XPU_QUEUE_COUNT];
    cu_stream now;           /* of copies that block: they wait behind nothing */
    cu_stream memory;        /* of the pool */
    cu_pool pool;            /* NULL: plain allocations */
    void *word;              /* pinned: what a peek reads */
    xpu_stream watch[XPU_QUEUE_COUNT]; /* wait for marks */
    xpu_cuda_stage stage[2]; /* in, out */
    xpu_cuda_short brief;    /* out, while the caller waits */
    pthread_mutex_t lock;    /* of events, and of making loops.stop */
    xpu_cuda_event *events;  /* free ones */
    xpu_pace pace;
    xpu_cuda_loops loops;
    xpu_cuda_reader reader;
    xpu_cuda_meeting meeting;
    xpu_cusolver_room *solver; /* NULL: no call so far */
    _Atomic int64_t nodes;   /* of all graphs */
    _Atomic cu_result fault; /* what turned the device off */
    const char *_Atomic culprit; /* the call that told */
} xpu_cuda;

sd_status xpu_cuda_find(xpu_cuda_driver *d, const sd_options *opt);
sd_status xpu_cuda_describe(xpu_cuda *v, device_desc *out,
                            int64_t *memory);
/* CU_OK: NULL.  A fault after which the context is dead turns v off; v may be
 * NULL, of calls that belong to no device. */
sd_status xpu_cuda_status(const xpu_cuda_driver *d, xpu_cuda *v, cu_result err,
                          const char *call);
/* The device's context becomes this thread's until leave; an error: it is off,
 * or this is a forked child, and nothing may be called. */
sd_status xpu_cuda_enter(xpu_cuda *v);
void xpu_cuda_leave(const xpu_cuda *v);

/* Between pageable memory and the device in the order of the stream s, without
 * the caller's waiting; entered before. */
sd_status xpu_cuda_stage_copy(xpu_cuda *v, xpu_cuda_stage *g, cu_stream s,
                              void *to, const void *from, size_t bytes);
/* To pageable memory through a pinned slot, by the stream `now`, done on return.
 * bytes: SHORT_LEAST to SHORT_MOST.  False: nothing was done, since the slot is
 * another thread's or there is none.  Entered before. */
bool xpu_cuda_copy_short(xpu_cuda *v, void *to, const void *from, size_t bytes,
                         sd_status *st);
void xpu_cuda_short_finish(xpu_cuda *v, bool ours);
void xpu_cuda_stage_init(xpu_cuda_stage *g, bool is_out);
void xpu_cuda_stage_finish(xpu_cuda *v, xpu_cuda_stage *g, bool ours);

/* module: per binary of p, fn: per kernel, NULL before; what was made is the
 * caller's, on an error too.  Entered before. */
sd_status xpu_cuda_build(xpu_cuda *v, const thunk_program *p, cu_module *module,
                         cu_function *fn);
/* out[i]: the cubin of text[i], to free, or NULL: the driver is to compile it;
 * text: per binary of p, ending with a NUL.  Any thread. */
void xpu_cuda_link(xpu_cuda *v, const thunk_program *p, char *const *text,
                   char **out);
/* PTX text, with its NUL, or a cubin; entered before. */
sd_status xpu_cuda_load_image(xpu_cuda *v, const void *image, cu_module *out);
/* False: a forked child, which has nothing to free.  What cannot be entered any
 * more (*entered false) is freed all the same. */
bool xpu_cuda_enter_to_free(xpu_cuda *v, bool *entered);

/* n more nodes are in the compute stream: waits for it when an interrupt could
 * be due.  Entered before. */
sd_status xpu_cuda_keep_pace(xpu_cuda *v, int n);

/* Marks: xpu_cuda_mark.c; slots of xpu_device_ops, and the pool's end. */
sd_status xpu_cuda_record(xpu_device *d, xpu_queue q, xpu_mark_fn fn, void *ctx,
                          xpu_mark **out);
sd_status xpu_cuda_wait(xpu_device *d, xpu_queue q, xpu_mark *m);
sd_status xpu_cuda_lead(xpu_device *d, void *stream, xpu_mark *m);
sd_status xpu_cuda_follow(xpu_device *d, xpu_queue q, void *stream);
bool xpu_cuda_query(const xpu_mark *m);
void xpu_cuda_forget(xpu_mark *mark);
sd_status xpu_cuda_sync(xpu_device *d, xpu_queue q);
void xpu_cuda_free_events(xpu_cuda *v, bool ours);

/* Foreign calls: xpu_cuda_foreign.c; slots of xpu_device_ops. */
sd_status xpu_cuda_lend(xpu_device *d, void **stream);
sd_status xpu_cuda_reclaim(xpu_device *d);
sd_status xpu_cuda_kernel_make(xpu_device *d, const xpu_kernel_source *s,
                               xpu_kernel **out);
void xpu_cuda_kernel_drop(xpu_device *d, xpu_kernel *k);
sd_status xpu_cuda_kernel_launch(xpu_device *d, xpu_kernel *k,
                                 void *const *ptr);

/* Collectives: xpu_cuda_gather.c; a slot of xpu_device_ops, and its end. */
sd_status xpu_cuda_gather(xpu_device *d, const xpu_blocks *b);
/* Likewise: xpu_cuda_meet.c.  Open: when all devices reach each other. */
sd_status xpu_cuda_meet(xpu_device *d, const xpu_meeting *m);
sd_status xpu_cuda_open_meeting(xpu_cuda *v);
void xpu_cuda_close_meeting(const xpu_cuda *v);
void xpu_cuda_drop_reader(const xpu_cuda *v);

/* cuSOLVER: xpu_cusolver.c; what find found is freed with free. */
sd_status xpu_cusolver_find(xpu_cuda_driver *d);
const char *xpu_cusolver_version(const xpu_cusolver *l);
sd_status xpu_cusolver_run(xpu_device *d, const thunk *t, void *const *ptr);
void xpu_cusolver_close(xpu_cuda *v, bool ours); /* entered, if ours */

/* Bytes of a group that need not be asked for in the launch. */
#define XPU_CUDA_STATIC_SHARED (48u << 10)
static inline unsigned xpu_cuda_shared(const thunk_kernel *k)
{
    return k->local_bytes > XPU_CUDA_STATIC_SHARED ? (unsigned)k->local_bytes
                                                   : 0;
}

/* The parameters of a kernel: its slots, and of a loop, behind them, the word
 * that ends it. */
static inline int xpu_cuda_words(const xpu_cuda *v, const thunk_kernel *k,
                                 void **slot)
{
    if (k->loop)
        slot[k->nslot] = (void *)(uintptr_t)v->loops.stop;
    return k->nslot + k->loop;
}

/* ---- loops and graphs ---- */

/* Makes the word that ends loops, which is 0, if there is none yet. */
sd_status xpu_cuda_need_stop(xpu_cuda *v);
/* Waits for what is queued, and has its loops end when *cancel is true. */
sd_status xpu_cuda_await_loops(xpu_cuda *v, const _Atomic bool *cancel);

/* A recorded piece of a program: xpu_cuda_record.c.  Its nodes stay, since they
 * name what changes; word has what each of them was given. */
typedef struct {
    cu_graph graph;
    cu_graph_exec exec;
    cu_graph_node *node;
    void **word;
    uint8_t **base; /* the addresses that it was recorded for */
    uint64_t used;  /* when, in replays of its piece */
    int nnode;
} xpu_cuda_graph;
/* Steps that follow each other and need nothing of the host: xpu_cuda_graph.c. */
#define XPU_CUDA_GRAPHS 4 /* of a piece, each for other addresses */
typedef struct {
    const thunk *first; /* borrowed from the program */
    int n;              /* steps, */
    int nnode, nword;   /* and what a graph of them has at most */
    bool branches, loops; /* on the device */
    bool repeats;       /* what it runs: it is recorded the first time */
    bool refused;       /* by the driver */
    uint64_t nrun;
    xpu_cuda_graph *graph[XPU_CUDA_GRAPHS];
} xpu_cuda_piece;

struct xpu_module {
    const thunk_program *program; /* borrowed from the xpu_program */
    cu_module *built;             /* per binary */
    cu_function *kernel;          /* per kernel */
    xpu_cuda_piece *piece;        /* by first; NULL: none */
    int npiece;
};

/* Entered before; an error leaves nothing (*call: which it is of). */
cu_result xpu_cuda_graph_record(xpu_cuda *v, const xpu_run *r,
                                const xpu_cuda_piece *p,
                                xpu_cuda_graph **out, const char **call);
/* The same steps at other addresses.  After an error g is to be destroyed. */
cu_result xpu_cuda_graph_update(xpu_cuda *v, const xpu_run *r,
                                const xpu_cuda_piece *p, xpu_cuda_graph *g,
                                const char **call);
void xpu_cuda_graph_destroy(xpu_cuda *v, xpu_cuda_graph *g, bool ours);

/* How a loop is recorded: turns before a node that turns for as long as its
 * predicate says, and turns of that between two looks at the predicate; 0: there
 * is no node. */
typedef struct {
    int before, each;
} xpu_cuda_turns;
xpu_cuda_turns xpu_cuda_turns_of(const xpu_module *m, const thunk *loop);

/* Finds a module's pieces; without host memory there are none. */
void xpu_cuda_find_pieces(xpu_cuda *v, xpu_module *m);
void xpu_cuda_drop_pieces(xpu_cuda *v, xpu_module *m, bool ours);
sd_status xpu_cuda_replay(const xpu_run *r, const thunk *first, int *n);

#endif
