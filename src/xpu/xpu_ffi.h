/* xpu_ffi: what the files of typed foreign calls share.  A handler is a
 * function of somebody else's, called by XLA's foreign function interface
 * (abi/ffi.tsv).  A site is one custom-call of a loaded program; only the
 * owner of its device's compute stream uses it. */
#ifndef XPU_FFI_H
#define XPU_FFI_H

#include "xpu_device.h"

#include "ffi_abi.h"

/* Our errors are theirs, by cast. */
static inline XLA_FFI_Error *xpu_ffi_error(sd_status st)
{
    return (XLA_FFI_Error *)st;
}
static inline sd_status xpu_ffi_status(XLA_FFI_Error *e)
{
    return (sd_status)e;
}

extern const XLA_FFI_Api xpu_ffi_api; /* xpu_ffi_api.c */

/* ---- registry: xpu_ffi_registry.c ---- */

typedef struct xpu_ffi_handler xpu_ffi_handler;
struct xpu_ffi_handler { /* never goes once registered */
    xpu_ffi_handler *next;
    char *name;
    device_kind kind; /* that it was registered for */
    XLA_FFI_Handler *stage[XPU_FFI_STAGES]; /* by XLA_FFI_ExecutionStage */
};
const xpu_ffi_handler *xpu_ffi_find(const char *name,
                                    device_kind kind); /* NULL: none */
void xpu_ffi_names(sd_buf *b, device_kind kind); /* of all, for messages */
bool xpu_ffi_has_type(int64_t type_id);
/* The function that destroys a state of that type; NULL: none, or an unknown
 * type. */
void (*xpu_ffi_deleter(int64_t type_id))(void *);
XLA_FFI_Handler *xpu_ffi_builtin(const char *name); /* xpu_ffi_builtin.c */

/* ---- kernels that come as source: xpu_ffi_kernel.c ---- */

/* Reads a kernel from the attributes of a call of "sundog_kernel" on such a
 * device; it lives in the arena. */
sd_status xpu_ffi_read_kernel(sd_arena *a, const XLA_FFI_Attrs *attrs,
                              const device_desc *dev, int npointer,
                              const char **name, xpu_kernel_source **out);

/* ---- attributes: xpu_ffi_attr.c ---- */

/* Reads attributes from a dictionary as MLIR prints it, into the arena. */
sd_status xpu_ffi_read_attrs(sd_arena *a, const char *text,
                             XLA_FFI_Attrs *out);

/* ---- call sites: xpu_ffi.c ---- */

typedef struct {
    int64_t type;
    void *data;
} xpu_ffi_state;

typedef struct {
    const thunk *t; /* borrowed from the program */
    XLA_FFI_Handler *const *stage;
    int narg, nret;
    XLA_FFI_Buffer *buffer; /* arguments, then results */
    void **pointer;         /* to each */
    XLA_FFI_ArgType *arg_type;
    XLA_FFI_RetType *ret_type;
    XLA_FFI_Attrs attrs;
    xpu_ffi_state state[XPU_FFI_STAGES]; /* by stage: what it left behind */
    xpu_kernel *kernel; /* of a kernel that came as source; the rest is unused */
    const char *kernel_name;
    void **kernel_ptr; /* what it is launched with */
} xpu_ffi_site;

/* Device memory that a handler asked for. */
typedef struct xpu_ffi_memory xpu_ffi_memory;
struct xpu_ffi_memory {
    xpu_flight flight; /* at whose end it is freed; the first member */
    xpu_ffi_memory *next;
    void *at, *aligned;
    int cls;
};

struct xpu_ffi {
    sd_arena *arena; /* owned; holds all */
    xpu_device *dev; /* borrowed */
    xpu_ffi_site *site; /* by address of their thunks */
    int n;
    bool prepares; /* some site has a stage before execute */
    xpu_ffi_memory *memory; /* not freed yet */
};

struct XLA_FFI_InvokeContext {
    xpu_device *dev;
    xpu_ffi *ffi;
    void *stream; /* NULL: there is none */
    xpu_ffi_site *site;
    XLA_FFI_ExecutionStage stage;
    const xpu_run *run; /* NULL: instantiating */
};

/* ---- tasks of handlers: xpu_ffi_task.c ---- */

int xpu_ffi_nthread(const xpu_client *c);
sd_status xpu_ffi_schedule(xpu_client *c, XLA_FFI_Task *task, void *data);

/* ---- results that come later, device memory: xpu_ffi_api.c ---- */

void xpu_ffi_drop_memory(xpu_ffi *x); /* frees what no handler has freed */

sd_status xpu_ffi_await(XLA_FFI_Future *f); /* takes f */

#endif
