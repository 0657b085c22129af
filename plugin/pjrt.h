/* plugin: the PJRT C API on top of xpu.  GetPjrtApi is the only symbol that
 * the shared object exports.  Every function here may be called from any
 * thread.
 *
 * PJRT_Buffer_Delete is PJRT's, pjrt_buffer_delete is ours.  The table that
 * joins them, pjrt_table.c, is generated.  Before each call it checks that the
 * caller's struct has the fields that all versions have, and that its handles
 * are not NULL.  Newer fields are read and written only under PJRT_HAS.
 *
 * PJRT_Error is an sd_error and PJRT_Event an xpu_event, both by cast; the
 * other handles are below.  Devices, memories and the topology belong to their
 * client. Buffers, loaded executables and transfer managers hold a reference
 * to it: when the caller destroys the client before them, all runs end, and
 * the client's memory is freed with the last of them. */
#ifndef PJRT_H
#define PJRT_H

#include "base.h"
#include "compile.h"
#include "pjrt_slots.h"
#include "pjrt_sundog.h"
#include "xpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PJRT_PLATFORM "xpu"
#define PJRT_HAS(args, field)                                                  \
    ((args)->struct_size >=                                                    \
     offsetof(__typeof__(*(args)), field) + sizeof((args)->field))
#define PJRT_NEW(type) ((type *)calloc(1, sizeof(type)))

extern const compile_partitioner pjrt_partitioner; /* pjrt_partition.c */

/* ---- errors, events: pjrt_error.c, pjrt_event.c ---- */

PJRT_Error *pjrt_return(sd_status st); /* takes st; NULL stays NULL */
PJRT_Error *pjrt_no_memory(void);
PJRT_Error *pjrt_unimplemented(const char *function);
PJRT_Error *pjrt_short(const char *function, size_t has, size_t needs);
PJRT_Error *pjrt_null(const char *function, const char *field);
/* pjrt_short for a struct that the arguments point to. */
sd_status pjrt_short_struct(const char *name, size_t has, size_t needs);
sd_status pjrt_status(PJRT_Error *e); /* takes e */
/* An error of a code and a message that the caller gives; a code of success
 * becomes UNKNOWN. */
sd_status pjrt_foreign(PJRT_Error_Code code, const char *message, size_t len);
PJRT_Error *pjrt_make_error(PJRT_Error_Code code, const char *message,
                            size_t len); /* a PJRT_CallbackError */
static inline PJRT_Event *pjrt_event(xpu_event *e)
{
    return (PJRT_Event *)e;
}
static inline xpu_event *pjrt_xpu_event(PJRT_Event *e)
{
    return (xpu_event *)e;
}
/* Hands bytes out to a caller, who frees them through *holder.  Takes b and
 * st; if st is an error it is returned, and b freed. */
typedef struct { sd_buf bytes; } pjrt_bytes;
PJRT_Error *pjrt_bytes_hand(sd_status st, sd_buf *b, const char **at,
                            size_t *len, pjrt_bytes **holder);
void pjrt_bytes_free(pjrt_bytes *b);
/* An event that is ready with st (taken); NULL: out of memory. */
xpu_event *pjrt_ready_event(sd_status st);

extern const PJRT_Api pjrt_api; /* pjrt_table.c, generated */
PJRT_NamedValue pjrt_named_int(const char *name, int64_t v);
PJRT_NamedValue pjrt_named_float(const char *name, double v);
PJRT_NamedValue pjrt_named_str(const char *name, const char *v); /* borrowed */

/* ---- what there is: pjrt_topology.c, pjrt_device.c, pjrt_memory.c ---- */

#define PJRT_NATTR 4

struct PJRT_DeviceDescription {
    int id;
    int process;
    device_desc desc;
    char name[32];
    char debug[128];
    PJRT_NamedValue attr[PJRT_NATTR];
};

struct PJRT_TopologyDescription {
    int n;
    PJRT_DeviceDescription *at;
    PJRT_DeviceDescription **list;
    char version[512]; /* the platform version */
    PJRT_NamedValue attr[2];
};

/* A topology of n devices, device i like *desc[i]; owned by the caller. */
sd_status pjrt_topology_make(int n, const device_desc *const *desc,
                             PJRT_TopologyDescription **out);
void pjrt_topology_free(PJRT_TopologyDescription *t); /* takes NULL */

typedef struct pjrt_user_data pjrt_user_data;
struct PJRT_Memory {
    const PJRT_Memory_FunctionTable *vtable; /* first: the caller reads it */
    xpu_memory kind;
    int id;
    PJRT_Device *device;
    char debug[64];
    _Atomic(pjrt_user_data *) user; /* a list to which entries are only added */
};
void pjrt_memory_init(PJRT_Memory *m, int id, xpu_memory kind, PJRT_Device *d);
void pjrt_memory_finish(PJRT_Memory *m);
static inline int pjrt_memory_kind_number(xpu_memory kind)
{
    return (int)kind + 1; /* never 0 */
}

struct PJRT_Device {
    xpu_device *x; /* NULL: it is another process's, and has no memories */
    PJRT_Client *client;
    PJRT_DeviceDescription *desc;
    PJRT_Memory memory[XPU_MEM_COUNT];
    PJRT_Memory *list[XPU_MEM_COUNT];
    PJRT_Device *self; /* the list, of one, of devices that reach its memories */
};

typedef struct pjrt_mapping pjrt_mapping;
struct PJRT_Client {
    _Atomic uint32_t refs; /* the caller's, and those of handles */
    xpu_client *x;
    sd_arena *arena; /* holds the options' strings */
    sd_options options;
    PJRT_TopologyDescription *topology;
    int64_t process, nprocess; /* this process's number, of how many */
    int n;                     /* devices of all processes */
    int first, nhere;          /* this process's: at[first] and so on */
    PJRT_Device *at;
    PJRT_Device **devices;
    PJRT_Memory **memories; /* of those that are here */
    _Atomic(compile_fn) compile;
    sd_shelf *shelf; /* what one compile leaves for the next; may be NULL */
    int64_t memory;  /* bytes of the machine, when the client was made */
    pthread_mutex_t lock; /* guards `mapped` */
    pjrt_mapping *mapped;
};
PJRT_Client *pjrt_client_retain(PJRT_Client *c);
void pjrt_client_release(PJRT_Client *c);
PJRT_Device *pjrt_client_find(const PJRT_Client *c, int64_t id);
/* Opens libsundog-compiler.so, beside us: pjrt_compiler.c. */
sd_status pjrt_compiler_open(compile_fn *out);

/* ---- layouts: pjrt_layout.c ---- */

/* Orders of dimensions are from minor to major; NULL: row-major.  *order is
 * borrowed from l; `whose` is its name in errors. */
sd_status pjrt_layout_read(const PJRT_Buffer_MemoryLayout *l, size_t rank,
                           const char *whose, const int64_t **order);
bool pjrt_layout_same(const int64_t *x, const int64_t *y, int rank);
/* to[0] = from[the slowest dimension], and so on to the fastest. */
void pjrt_layout_permute(const int64_t *order, int rank, const int64_t *from,
                         int64_t *to);
/* A dense array from one order into another; elements have `size` bytes. */
void pjrt_layout_convert(void *to, const int64_t *to_order, const void *from,
                         const int64_t *from_order, size_t size, int rank,
                         const int64_t *dim);
const int64_t *pjrt_row_major(int rank); /* its order; lives for ever */
struct PJRT_Layouts_MemoryLayout {
    char text[SD_MAX_RANK * 3 + 3]; /* "{1,0}" */
};
void pjrt_layout_write(PJRT_Layouts_MemoryLayout *l, int rank,
                       const int64_t *order);

/* An error if it is a device of another process. */
sd_status pjrt_device_is_here(const PJRT_Device *d);

/* ---- other processes: pjrt_processes.c ---- */

/* Reads an option about the job's processes; false: it is another option. */
bool pjrt_processes_option(PJRT_Client *c, const char *name, size_t len,
                           const char *text);
/* *world (malloc'ed): the devices of all. */
sd_status pjrt_processes_join(PJRT_Client *c, const PJRT_Client_Create_Args *a,
                              xpu_place **world, int *n);

/* ---- buffers: pjrt_buffer.c, pjrt_create.c, pjrt_transfer.c,
 *      pjrt_async.c ---- */

struct PJRT_Buffer {
    xpu_buffer *x; /* a reference */
    PJRT_Memory *memory;
    int64_t *order; /* how its dimensions lie; NULL: row-major */
    /* In pjrt_sundog.c's list of buffers whose pointer was asked for. */
    bool was_shown;
    PJRT_Buffer *shown, **shown_at; /* the next; what points to this one */
};
/* What a caller says of an array, read and checked. */
typedef struct {
    sd_dtype dtype;
    int rank;
    const int64_t *dim, *order; /* borrowed; order NULL: row-major */
} pjrt_array;
sd_status pjrt_array_read(PJRT_Buffer_Type type, const int64_t *dim,
                          size_t ndim, const PJRT_Buffer_MemoryLayout *layout,
                          pjrt_array *out);
/* A handle without x, which the caller sets; order is copied. */
PJRT_Buffer *pjrt_buffer_handle(PJRT_Memory *m, int rank, const int64_t *order);
/* A handle of x, which is taken in any case; NULL: no memory for the handle. */
PJRT_Buffer *pjrt_buffer_wrap(PJRT_Memory *m, xpu_buffer *x,
                              const int64_t *order);
void pjrt_buffer_free(PJRT_Buffer *b); /* takes NULL */
sd_status pjrt_shape(PJRT_Buffer_Type type, const int64_t *dim, size_t ndim,
                     sd_dtype *out);
sd_status pjrt_place(PJRT_Device *d, PJRT_Memory *m, PJRT_Memory **out);
/* Copies b to dense host memory whose dimensions lie in the order `to`. */
sd_status pjrt_to_host_reordered(const PJRT_Buffer *b, const int64_t *to,
                                 void *dst, xpu_event **out);
sd_status pjrt_check_range(const xpu_buffer *x, int64_t offset, int64_t size);

/* ---- executables: pjrt_options.c, pjrt_executable.c, pjrt_loaded.c,
 *      pjrt_execute.c ---- */

typedef struct {
    int nreplica, npartition;
    bool portable;
    int *device; /* [partition * nreplica + replica]; NULL: not given */
} pjrt_compile_options;
sd_status pjrt_options_read(sd_bytes b, pjrt_compile_options *out);
void pjrt_options_finish(pjrt_compile_options *o);
void pjrt_options_assignment(sd_buf *b, int nreplica, int npartition,
                             const int *device);

struct PJRT_Executable {
    _Atomic int refs;
    thunk_program *p; /* a reference */
    sd_buf options;   /* CompileOptionsProto as it came */
    char fingerprint[32];
    int64_t code_bytes;
    PJRT_NamedValue *cost;
    int ncost;
    PJRT_Buffer_Type *types; /* of each output, as its */
    int64_t *dims;           /* dimensions, */
    size_t *dim_sizes;       /* and how many it has */
    /* Of each output, then of each parameter: */
    const char **kinds; /* memory kind */
    size_t *kind_sizes;
    PJRT_Layouts_MemoryLayout *layout, **layouts;
    const int64_t **order; /* of its dimensions; NULL: all are row-major */
    int64_t *orders;       /* the numbers that these point to */
    const char **shardings; /* OpSharding; all empty: replicated */
    size_t *sharding_sizes;
    bool is_cut;           /* the program has a section with shardings */
};
sd_status pjrt_executable_make(thunk_program *p, sd_bytes options,
                               PJRT_Executable **out); /* takes p */
void pjrt_executable_release(PJRT_Executable *e);
sd_status pjrt_executable_save(const PJRT_Executable *e, sd_buf *out);
sd_status pjrt_executable_restore(sd_bytes b, PJRT_Executable **out);

struct PJRT_LoadedExecutable {
    PJRT_Client *client;
    PJRT_Executable *exe; /* a reference */
    _Atomic bool deleted;
    int n; /* devices of this process that run it */
    PJRT_Device **devices;
    PJRT_LogicalDeviceIds *logical;
    int *participant;
    xpu_places places; /* of all participants; process NULL: all are here */
    /* By the device's id.  A portable executable is loaded on a device when it
     * first runs there. */
    _Atomic(xpu_program *) *programs;
    sd_buf assignment; /* DeviceAssignmentProto; empty: portable */
    bool portable;
    bool meets; /* its devices run as one gang */
};
sd_status pjrt_load(PJRT_Client *c, PJRT_Executable *e, sd_bytes options,
                    PJRT_LoadedExecutable **out); /* retains e */
sd_status pjrt_loaded_program(PJRT_LoadedExecutable *l, PJRT_Device *d,
                              int participant, xpu_program **out); /* borrowed */

/* ---- traces: pjrt_trace.c, and what asks for them: pjrt_profiler.c ---- */

extern const PLUGIN_Profiler_Api plugin_profiler_api;
uint64_t pjrt_trace_now(void); /* 0: no trace is being made */
/* Adds a run to the traces, from that time until `done` is ready. */
void pjrt_trace_run(thunk_program *p, int device, uint64_t from,
                    xpu_event *done);
/* What adds a run's steps; without a function where no trace wants them. */
xpu_listener pjrt_trace_listener(void);

/* ---- callbacks of a run: pjrt_callback.c ---- */

typedef struct pjrt_callbacks pjrt_callbacks;
/* Fills call's send, recv and user data; *out goes with pjrt_callbacks_free
 * once the run has ended.  NULL when the run has none. */
sd_status pjrt_callbacks_make(const PJRT_ExecuteOptions *o, int device,
                              xpu_call *call, pjrt_callbacks **out);
void pjrt_callbacks_free(pjrt_callbacks *c);
/* The user data in an execute context, for handlers of custom-calls; *out is
 * malloc'ed.  pjrt_ffi.c */
sd_status pjrt_context_copy(PJRT_ExecuteContext *c, xpu_user_data **out,
                            int *n);

#endif
