/* What we use of OpenCL: one list of symbols, looked up in whichever library
 * was opened.  Types come from Khronos's headers, at build time only. */
#ifndef XPU_CL_API_H
#define XPU_CL_API_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "xpu_device.h"

#define XPU_CL_SYMBOLS(X)                                                      \
    X(GetPlatformIDs) X(GetPlatformInfo) X(GetDeviceIDs) X(GetDeviceInfo)      \
    X(CreateSubDevices) X(ReleaseDevice) X(CreateContext) X(ReleaseContext)    \
    X(CreateCommandQueueWithProperties) X(ReleaseCommandQueue) X(Finish)       \
    X(Flush) X(EnqueueMarkerWithWaitList) X(EnqueueBarrierWithWaitList)        \
    X(SetEventCallback) X(GetEventInfo) X(WaitForEvents) X(ReleaseEvent)       \
    X(BuildProgram) X(GetProgramBuildInfo) X(ReleaseProgram) X(CreateKernel)   \
    X(ReleaseKernel) X(EnqueueNDRangeKernel) X(SVMAlloc) X(SVMFree)            \
    X(EnqueueSVMMemcpy) X(SetKernelArgSVMPointer)                              \
    X(CreateProgramWithSource) X(GetKernelInfo) X(SetKernelArg)                \
    X(GetExtensionFunctionAddressForPlatform)
/* A library of before OpenCL 2.1 lacks it: its devices take no SPIR-V. */
#define XPU_CL_OPTIONAL(X) X(CreateProgramWithIL)

typedef struct {
#define X(name) __typeof__(cl##name) *name;
    XPU_CL_SYMBOLS(X)
    XPU_CL_OPTIONAL(X)
#undef X
    /* cl_intel_unified_shared_memory: all or none */
    clHostMemAllocINTEL_fn HostMemAlloc;
    clDeviceMemAllocINTEL_fn DeviceMemAlloc;
    clMemFreeINTEL_fn MemFree;
    clSetKernelArgMemPointerINTEL_fn SetKernelArgMemPointer;
    clEnqueueMemcpyINTEL_fn EnqueueMemcpy;
} xpu_cl_api;

#define XPU_CL_MOST_DEVICES 64

/* The driver: what the devices of a client share. */
typedef struct {
    xpu_cl_api api;
    char library[256];   /* where the symbols came from */
    cl_platform_id platform;
    cl_context context;
    bool usm;            /* else coarse-grained SVM */
    bool is_cpu;         /* the devices are CPUs; else GPUs */
    xpu_stream build;    /* of CPUs' programs */
    cl_device_id dev[XPU_CL_MOST_DEVICES];
    bool is_sub[XPU_CL_MOST_DEVICES]; /* ours to release */
    int ndev;
} xpu_cl_driver;

/* A device: d->impl. */
typedef struct {
    xpu_cl_driver *driver; /* borrowed from the client */
    cl_device_id id;
    cl_command_queue queue[XPU_QUEUE_COUNT], now; /* now: what blocks */
    xpu_pace pace;
} xpu_cl;

/* To be called after each launch into COMPUTE: waits for all of them when the
 * pace (xpu_flight.h) says so. */
cl_int xpu_cl_keep_pace(xpu_cl *v);

/* Opens a library and settles on its devices; d is zeroed before. */
sd_status xpu_cl_find(xpu_cl_driver *d, const sd_options *opt, bool cpu_too);
sd_status xpu_cl_describe(const xpu_cl_driver *d, cl_device_id id,
                          device_desc *out, int64_t *memory);
/* No CPU has, nor a GPU that shares the host's. */
bool xpu_cl_has_own_memory(const xpu_cl_driver *d, cl_device_id id);
/* Builds p's binaries into built[] and finds its kernels, kernel[]; both are
 * all NULL before.  The caller releases what was made, after an error, too.
 * Any thread. */
sd_status xpu_cl_build(xpu_cl_driver *d, cl_device_id id,
                       const thunk_program *p, cl_program *built,
                       cl_kernel *kernel);
/* Runs fn(ctx) on the thread that builds programs, and returns its status. */
sd_status xpu_cl_on_builder(xpu_cl_driver *d, sd_status (*fn)(void *ctx),
                            void *ctx);
/* The same for what releases programs, and nobody waits.  Of the devices only
 * the driver is sure to be there when t runs. */
void xpu_cl_leave_to_builder(xpu_cl_driver *d, xpu_task *t);
/* The error of a BuildProgram that failed, with the compiler's log in it. */
sd_status xpu_cl_build_failed(const xpu_cl_driver *d, cl_device_id id,
                              cl_program p, cl_int err, const char *what);

/* Foreign calls: xpu_cl_foreign.c; slots of xpu_device_ops. */
sd_status xpu_cl_lend(xpu_device *d, void **stream);
sd_status xpu_cl_reclaim(xpu_device *d);
sd_status xpu_cl_kernel_make(xpu_device *d, const xpu_kernel_source *s,
                             xpu_kernel **out);
void xpu_cl_kernel_drop(xpu_device *d, xpu_kernel *k);
sd_status xpu_cl_kernel_launch(xpu_device *d, xpu_kernel *k, void *const *ptr);

/* Makes a driver's text fit for messages: what is no printable ASCII becomes
 * '?'. */
void xpu_cl_clean(char *s);
const char *xpu_cl_error(cl_int err); /* "CL_OUT_OF_RESOURCES" */
sd_status xpu_cl_status(cl_int err, const char *what); /* CL_SUCCESS: NULL */

#endif
