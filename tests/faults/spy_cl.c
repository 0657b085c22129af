/* Between us and a real OpenCL driver, to see when its commands ran: queues get
 * CL_QUEUE_PROFILING_ENABLE, kernels and copies an event, and when a queue goes
 * the driver's own times of these are written to the file that SPY_CL_OUT
 * names, a line each: queue, kernel or copy, start and end in nanoseconds.
 * Found by SUNDOG_CL_LIBRARY; SPY_CL_DRIVER names the driver's library. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

/* What is not looked at goes straight on. */
#define THROUGH(X) \
    X(GetPlatformIDs) \
    X(GetPlatformInfo) \
    X(GetDeviceIDs) \
    X(GetDeviceInfo) \
    X(CreateSubDevices) \
    X(ReleaseDevice) \
    X(CreateContext) \
    X(ReleaseContext) \
    X(Finish) \
    X(Flush) \
    X(EnqueueMarkerWithWaitList) \
    X(EnqueueBarrierWithWaitList) \
    X(SetEventCallback) \
    X(GetEventInfo) \
    X(WaitForEvents) \
    X(BuildProgram) \
    X(GetProgramBuildInfo) \
    X(ReleaseProgram) \
    X(CreateKernel) \
    X(ReleaseKernel) \
    X(SVMAlloc) \
    X(SVMFree) \
    X(EnqueueSVMMemcpy) \
    X(SetKernelArgSVMPointer) \
    X(CreateProgramWithSource) \
    X(GetKernelInfo) X(SetKernelArg) X(CreateProgramWithIL) X(ReleaseEvent)
#define LOOKED_AT(X) \
    X(CreateCommandQueueWithProperties) \
    X(ReleaseCommandQueue) \
    X(EnqueueNDRangeKernel) \
    X(GetExtensionFunctionAddressForPlatform) X(GetEventProfilingInfo)

#define X(name) \
    __attribute__((used)) static __typeof__(cl##name) *real_##name; \
    __asm__(".text\n.globl cl" #name "\n.type cl" #name ", @function\n" \
            "cl" #name ": jmp *real_" #name "(%rip)\n");
THROUGH(X)
#undef X
#define X(name) static __typeof__(cl##name) *real_##name;
LOOKED_AT(X)
#undef X
static clEnqueueMemcpyINTEL_fn real_memcpy;

enum { MOST = 100000 };
static struct {
    cl_command_queue queue;
    cl_event event;
    bool is_copy;
} seen[MOST];
static int nseen;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void open_driver(void)
{
    const char *name = getenv("SPY_CL_DRIVER");
    void *lib = dlopen(name ? name : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        fprintf(stderr, "spy_cl: %s\n", dlerror());
        _Exit(77);
    }
#define X(name) real_##name = (__typeof__(real_##name))dlsym(lib, "cl" #name);
    THROUGH(X)
    LOOKED_AT(X)
#undef X
}

API cl_command_queue clCreateCommandQueueWithProperties(
    cl_context c, cl_device_id d, const cl_queue_properties *p, cl_int *err)
{
    static const cl_queue_properties timed[] = {CL_QUEUE_PROPERTIES,
                                                CL_QUEUE_PROFILING_ENABLE, 0};

    (void)p;
    return real_CreateCommandQueueWithProperties(c, d, timed, err);
}

static void remember(cl_command_queue q, cl_event e, bool is_copy)
{
    pthread_mutex_lock(&lock);
    if (nseen < MOST) {
        seen[nseen].queue = q;
        seen[nseen].event = e;
        seen[nseen++].is_copy = is_copy;
    }
    pthread_mutex_unlock(&lock);
}

API cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dims,
                                  const size_t *offset, const size_t *all,
                                  const size_t *group, cl_uint n,
                                  const cl_event *wait, cl_event *event)
{
    cl_event e;
    cl_int err =
        real_EnqueueNDRangeKernel(q, k, dims, offset, all, group, n, wait, &e);

    (void)event;
    if (!err)
        remember(q, e, false);
    return err;
}

static cl_int copy(cl_command_queue q, cl_bool blocking, void *to,
                   const void *from, size_t bytes, cl_uint n,
                   const cl_event *wait, cl_event *event)
{
    cl_event e;
    cl_int err = real_memcpy(q, blocking, to, from, bytes, n, wait, &e);

    (void)event;
    if (!err)
        remember(q, e, true);
    return err;
}

API void *clGetExtensionFunctionAddressForPlatform(cl_platform_id p,
                                                   const char *name)
{
    void *fn = real_GetExtensionFunctionAddressForPlatform(p, name);

    if (strcmp(name, "clEnqueueMemcpyINTEL") != 0)
        return fn;
    real_memcpy = (clEnqueueMemcpyINTEL_fn)fn;
    return (void *)copy;
}

static cl_ulong when(cl_event e, cl_profiling_info what)
{
    cl_ulong ns = 0;

    real_GetEventProfilingInfo(e, what, sizeof ns, &ns, NULL);
    return ns;
}

API cl_int clReleaseCommandQueue(cl_command_queue q)
{
    const char *name = getenv("SPY_CL_OUT");
    FILE *f = name ? fopen(name, "a") : NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < nseen; i++) {
        if (seen[i].queue != q)
            continue;
        if (f)
            fprintf(f, "%p %s %llu %llu\n", (void *)q,
                    seen[i].is_copy ? "copy" : "kernel",
                    (unsigned long long)when(seen[i].event,
                                             CL_PROFILING_COMMAND_START),
                    (unsigned long long)when(seen[i].event,
                                             CL_PROFILING_COMMAND_END));
        real_ReleaseEvent(seen[i].event);
        seen[i].queue = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (f)
        fclose(f);
    return real_ReleaseCommandQueue(q);
}
