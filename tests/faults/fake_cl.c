/* An OpenCL library for tests: memory is the host's, kernels are those of
 * xpu_kernels.c by name, and trouble comes on demand.  Found like a driver, by
 * SUNDOG_CL_LIBRARY or, through the ICD loader, by OCL_ICD_VENDORS.  Unlike a
 * driver it runs under every sanitizer.
 *
 * FAKE_CL, words with commas, is read whenever platforms are asked for, so
 * that each client meets the trouble anew:
 *   fail=N      call N fails with `error`; releases and frees never do
 *   lose=N      call N and all after it do: the device is lost
 *   error=CODE  CL_OUT_OF_RESOURCES (-5) when not given
 *   crash=N     call N ends the process
 *   memory=N    bytes of device memory; 2^30 when not given
 *   platforms=N devices=N    how many there are; 1 when not given
 *   il=0        takes no SPIR-V            usm=0  shared virtual memory only
 *   gpu=1       calls itself one           unified=1  of the host's memory
 *   tiles=N     it has N of them
 *   kernels=any every kernel name exists and computes nothing
 *   garbage     texts without end or sense, numbers of all ones
 *   exec=N      the command that runs as the Nth of all ends with `error`
 *   lag=N       each command takes N microseconds more
 * Each queue has a thread of its own (fake_cl_queue.c), so that what is put in
 * runs later, beside others, and callbacks of events come from there.
 * fake_cl_calls and fake_cl_live say how many calls there were and how many
 * objects are alive; fake_cl_runs how many commands have run; fake_cl_finishes
 * how often somebody waited for a whole queue.  fake_cl_hold(1) keeps kernels
 * from running until fake_cl_hold(0).  A CPU's program that another thread than
 * the one that made it releases stays alive: Intel's runtime must not be asked
 * to release beside a build. */
#include "fake_cl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNITS 4u
#define HEAD  64u /* before each block of memory: its size */

API long fake_cl_calls(void);
API long fake_cl_live(void);
API long fake_cl_runs(void);
API long fake_cl_finishes(void);
API void fake_cl_hold(int on);

struct fake_cl_words fake_cl_is;
_Atomic long fake_cl_ncall, fake_cl_nlive, fake_cl_nrun, fake_cl_nfinish;
static _Atomic size_t held;

static struct _cl_platform_id the_platform[2];
static struct _cl_device_id the_device[8];

long fake_cl_calls(void)
{
    return fake_cl_ncall;
}

long fake_cl_live(void)
{
    return fake_cl_nlive;
}

long fake_cl_runs(void)
{
    return fake_cl_nrun;
}

long fake_cl_finishes(void)
{
    return fake_cl_nfinish;
}

void fake_cl_hold(int on)
{
    fake_hold(on);
}

/* ---- trouble ---- */

static long word(const char *name, long otherwise)
{
    return fake_word("FAKE_CL", name, otherwise);
}

static void read_words(void)
{
    const char *all = getenv("FAKE_CL");

    pthread_mutex_lock(&fake_lock);
    fake_cl_is.exec = word("exec", 0);
    fake_cl_is.lag = word("lag", 0);
    fake_cl_is.fail = word("fail", 0);
    fake_cl_is.lose = word("lose", 0);
    fake_cl_is.crash = word("crash", 0);
    fake_cl_is.error = (int)word("error", CL_OUT_OF_RESOURCES);
    fake_cl_is.memory = (size_t)word("memory", 1l << 30);
    fake_cl_is.platforms = word("platforms", 1);
    fake_cl_is.devices = word("devices", 1);
    fake_cl_is.tiles = word("tiles", 0);
    fake_cl_is.il = word("il", 1);
    fake_cl_is.usm = word("usm", 1);
    fake_cl_is.gpu = word("gpu", 0);
    fake_cl_is.unified = word("unified", 0);
    fake_cl_is.any_kernel = all && strstr(all, "kernels=any");
    fake_cl_is.garbage = all && strstr(all, "garbage");
    fake_cl_ncall = fake_cl_nrun = fake_cl_nfinish = 0;
    pthread_mutex_unlock(&fake_lock);
}

/* Each call that may fail asks. */
cl_int fake_cl_trouble(void)
{
    long n = ++fake_cl_ncall;

    if (n == fake_cl_is.crash)
        raise(SIGSEGV);
    if (n == fake_cl_is.fail || (fake_cl_is.lose && n >= fake_cl_is.lose))
        return fake_cl_is.error;
    return CL_SUCCESS;
}

void *fake_cl_make(size_t size, cl_int *err)
{
    cl_int bad = fake_cl_trouble();
    void *p = bad ? NULL : calloc(1, size);

    if (err)
        *err = bad ? bad : p ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    if (p) {
        *(const cl_icd_dispatch **)p = &fake_table;
        fake_cl_nlive++;
    }
    return p;
}

cl_int fake_cl_drop(void *p)
{
    free(p);
    fake_cl_nlive--;
    return CL_SUCCESS;
}

/* ---- answers ---- */

cl_int fake_cl_answer(const void *p, size_t n, size_t room, void *to,
                      size_t *size)
{
    cl_int bad = fake_cl_trouble();

    if (bad)
        return bad;
    if (size)
        *size = n;
    if (!to)
        return CL_SUCCESS;
    if (room < n)
        return CL_INVALID_VALUE;
    memcpy(to, p, n);
    return CL_SUCCESS;
}

static cl_int text(const char *s, size_t room, void *to, size_t *size)
{
    if (!fake_cl_is.garbage)
        return fake_cl_answer(s, strlen(s) + 1, room, to, size);
    if (size)
        *size = SIZE_MAX;
    if (to)
        memset(to, 0xe9, room); /* all of it, no end, no UTF-8 */
    if (to && room > 8)
        memcpy(to, "\033[2J SPIR-V", 8 + (room > 11 ? 3 : 0));
    return fake_cl_trouble();
}

static cl_int number(cl_ulong v, size_t n, size_t room, void *to, size_t *size)
{
    if (fake_cl_is.garbage)
        v = ~0ull;
    return fake_cl_answer(&v, n, room, to, size);
}

static cl_int list(long have, cl_uint room, cl_uint *n)
{
    cl_int bad = fake_cl_trouble();

    if (bad)
        return bad;
    if (n)
        *n = fake_cl_is.garbage ? 0x7fffffff : (cl_uint)have;
    (void)room;
    return CL_SUCCESS;
}

API cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *out, cl_uint *n)
{
    cl_int bad;

    read_words();
    if ((bad = list(fake_cl_is.platforms, room, n)))
        return bad;
    for (cl_uint i = 0; out && i < room && i < fake_cl_is.platforms && i < 2;
         i++) {
        the_platform[i].table = &fake_table;
        out[i] = &the_platform[i];
    }
    return fake_cl_is.platforms ? CL_SUCCESS : CL_PLATFORM_NOT_FOUND_KHR;
}

API cl_int clIcdGetPlatformIDsKHR(cl_uint room, cl_platform_id *out, cl_uint *n)
{
    return clGetPlatformIDs(room, out, n);
}

API cl_int clGetPlatformInfo(cl_platform_id p, cl_platform_info what,
                             size_t room, void *to, size_t *size)
{
    (void)p;
    switch (what) {
    case CL_PLATFORM_ICD_SUFFIX_KHR:
        return text("FAKE", room, to, size);
    case CL_PLATFORM_EXTENSIONS:
        return text("cl_khr_icd", room, to, size);
    default:
        return text("OpenCL 3.0 fake", room, to, size);
    }
}

static cl_device_type device_type(void)
{
    return fake_cl_is.gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
}

API cl_int clGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint room,
                          cl_device_id *out, cl_uint *n)
{
    cl_int bad;

    (void)p;
    if (!(type & device_type()) || !fake_cl_is.devices)
        return CL_DEVICE_NOT_FOUND;
    if ((bad = list(fake_cl_is.devices, room, n)))
        return bad;
    for (cl_uint i = 0; out && i < room && i < fake_cl_is.devices && i < 8;
         i++) {
        the_device[i].table = &fake_table;
        out[i] = &the_device[i];
    }
    return CL_SUCCESS;
}

API cl_int clGetDeviceInfo(cl_device_id d, cl_device_info what, size_t room,
                           void *to, size_t *size)
{
    (void)d;
    switch (what) {
    case CL_DEVICE_TYPE:
        return number(device_type(), 8, room, to, size);
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        return number(UNITS, 4, room, to, size);
    case CL_DEVICE_LOCAL_MEM_SIZE:
        return number(32768, 8, room, to, size);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        return number(fake_cl_is.memory, 8, room, to, size);
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
        return number(fake_cl_is.unified, 4, room, to, size);
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
        return number(1 << 20, 8, room, to, size);
    case CL_DEVICE_SINGLE_FP_CONFIG:
    case CL_DEVICE_DOUBLE_FP_CONFIG:
        return number(CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, 8, room, to, size);
    case CL_DEVICE_MAX_NUM_SUB_GROUPS:
        return number(4, 4, room, to, size);
    case CL_DEVICE_NAME:
        return text("Fake device", room, to, size);
    case CL_DRIVER_VERSION:
        return text("1.0", room, to, size);
    case CL_DEVICE_IL_VERSION:
        return text(fake_cl_is.il ? "SPIR-V_1.2" : "", room, to, size);
    case CL_DEVICE_EXTENSIONS:
        return text(fake_cl_is.usm
                        ? "cl_khr_fp16 cl_intel_unified_shared_memory"
                        : "cl_khr_fp16",
                    room, to, size);
    default:
        return CL_INVALID_VALUE;
    }
}

/* ---- objects ---- */

API cl_int clCreateSubDevices(cl_device_id d,
                              const cl_device_partition_property *how,
                              cl_uint room, cl_device_id *out, cl_uint *n)
{
    cl_uint parts;
    cl_int bad = fake_cl_trouble();

    (void)d;
    if (bad)
        return bad;
    if (how[0] == CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN && fake_cl_is.tiles)
        parts = (cl_uint)fake_cl_is.tiles;
    else if (how[0] == CL_DEVICE_PARTITION_EQUALLY && how[1] >= 1 &&
             how[1] <= UNITS)
        parts = UNITS / (cl_uint)how[1];
    else
        return CL_INVALID_VALUE;
    if (n)
        *n = parts;
    for (cl_uint i = 0; out && i < parts && i < room; i++) {
        struct _cl_device_id *sub = calloc(1, sizeof *sub);

        if (!sub)
            return CL_OUT_OF_HOST_MEMORY;
        *sub = (struct _cl_device_id){&fake_table, true};
        fake_cl_nlive++;
        out[i] = sub;
    }
    return CL_SUCCESS;
}

API cl_int clReleaseDevice(cl_device_id d)
{
    return d->is_sub ? fake_cl_drop(d) : CL_SUCCESS;
}

API cl_context clCreateContext(const cl_context_properties *p, cl_uint n,
                               const cl_device_id *d,
                               void(CL_CALLBACK *fn)(const char *, const void *,
                                                     size_t, void *),
                               void *ctx, cl_int *err)
{
    (void)p, (void)n, (void)d, (void)fn, (void)ctx;
    return fake_cl_make(sizeof(struct _cl_context), err);
}

API cl_int clReleaseContext(cl_context c)
{
    return fake_cl_drop(c);
}

/* ---- programs ---- */

API cl_program clCreateProgramWithIL(cl_context c, const void *il, size_t n,
                                     cl_int *err)
{
    static const uint32_t magic = 0x07230203;
    cl_program p;

    (void)c;
    if (n < 20 || memcmp(il, &magic, 4)) {
        *err = CL_INVALID_VALUE;
        return NULL;
    }
    if ((p = fake_cl_make(sizeof *p, err))) {
        p->maker = pthread_self();
        p->is_wrong = memmem(il, n, "oops", 4);
    }
    return p;
}

/* What has `oops` in it does not build. */
API cl_program clCreateProgramWithSource(cl_context c, cl_uint n,
                                         const char **text, const size_t *size,
                                         cl_int *err)
{
    cl_program p = fake_cl_make(sizeof *p, err);

    (void)c;
    if (p) {
        p->maker = pthread_self();
        p->is_wrong =
            n != 1 || strstr(*text, "oops") || size[0] != strlen(*text);
    }
    return p;
}

API cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id *d,
                          const char *options,
                          void(CL_CALLBACK *fn)(cl_program, void *), void *ctx)
{
    cl_int bad = fake_cl_trouble();

    (void)n, (void)d, (void)options, (void)fn, (void)ctx;
    if (!bad && p->is_wrong)
        bad = CL_BUILD_PROGRAM_FAILURE;
    p->is_built = !bad;
    return bad;
}

API cl_int clGetProgramBuildInfo(cl_program p, cl_device_id d,
                                 cl_program_build_info what, size_t room,
                                 void *to, size_t *size)
{
    (void)p, (void)d, (void)what;
    return text("the fake did not want to", room, to, size);
}

API cl_int clReleaseProgram(cl_program p)
{
    if (!fake_cl_is.gpu && !pthread_equal(p->maker, pthread_self()))
        return CL_INVALID_PROGRAM;
    return fake_cl_drop(p);
}

/* x[n], y[n], a, n by value: y = a * x. */
static void scale(void **slot, long first, long last, void *scratch)
{
    float *x = slot[0], *y = slot[1], a = *(float *)slot[2];

    (void)first, (void)last, (void)scratch;
    for (int i = 0; i < *(int *)slot[3]; i++)
        y[i] = a * x[i];
}

API cl_kernel clCreateKernel(cl_program p, const char *name, cl_int *err)
{
    fake_kernel *fn =
        fake_find_kernel(name, fake_cl_is.any_kernel ? fake_nothing : NULL);
    cl_kernel k;

    if (!strcmp(name, "scale"))
        fn = scale;
    if (!fn || !p->is_built) {
        *err = fn ? CL_INVALID_PROGRAM_EXECUTABLE : CL_INVALID_KERNEL_NAME;
        return NULL;
    }
    if ((k = fake_cl_make(sizeof *k, err)))
        k->fn = fn;
    return k;
}

API cl_int clReleaseKernel(cl_kernel k)
{
    return fake_cl_drop(k);
}

static cl_int set_arg(cl_kernel k, cl_uint i, const void *p)
{
    if (i >= MOST_ARGS && !fake_cl_is.any_kernel)
        return CL_INVALID_ARG_INDEX;
    if (i < MOST_ARGS)
        k->arg[i] = (void *)(uintptr_t)p;
    return fake_cl_trouble();
}

API cl_int clGetKernelInfo(cl_kernel k, cl_kernel_info what, size_t room,
                           void *to, size_t *size)
{
    (void)what;
    return number(k->fn == scale ? 4 : 3, 4, room, to, size);
}

/* A number that a kernel reads through a pointer, as it has it from us. */
API cl_int clSetKernelArg(cl_kernel k, cl_uint i, size_t n, const void *p)
{
    if (i >= MOST_ARGS || n > sizeof k->number[0])
        return CL_INVALID_ARG_SIZE;
    if (p)
        memcpy(k->number[i], p, n);
    return set_arg(k, i, k->number[i]);
}

API cl_int clSetKernelArgSVMPointer(cl_kernel k, cl_uint i, const void *p)
{
    return set_arg(k, i, p);
}

static cl_int set_arg_usm(cl_kernel k, cl_uint i, const void *p)
{
    return set_arg(k, i, p);
}

API cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dims,
                                  const size_t *offset, const size_t *all,
                                  const size_t *group, cl_uint n,
                                  const cl_event *wait, cl_event *event)
{
    command c = {.is.fn = k->fn, .is.tiles = (long)(*all / *group)};

    (void)dims, (void)offset;
    memcpy(c.is.arg, k->arg, sizeof c.is.arg);
    return fake_cl_put(q, &c, n ? *wait : NULL, event);
}

/* ---- memory ---- */

static void *get_memory(size_t bytes, size_t align, cl_int *err)
{
    size_t whole = (bytes + HEAD + align - 1) / align * align;
    cl_int bad = fake_cl_trouble();
    char *p = NULL;

    if (!bad && (held += whole) > fake_cl_is.memory) {
        held -= whole;
        bad = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    }
    if (!bad && !(p = aligned_alloc(HEAD, (whole + HEAD - 1) / HEAD * HEAD)))
        bad = CL_OUT_OF_HOST_MEMORY;
    if (err)
        *err = bad;
    if (!p)
        return NULL;
    memset(p, 0, whole); /* a loop that no kernel ends does not begin */
    *(size_t *)(void *)p = whole;
    fake_cl_nlive++;
    return p + HEAD;
}

static void put_memory(void *p)
{
    if (!p)
        return;
    held -= *(size_t *)(void *)((char *)p - HEAD);
    fake_cl_drop((char *)p - HEAD);
}

API void *clSVMAlloc(cl_context c, cl_svm_mem_flags flags, size_t bytes,
                     cl_uint align)
{
    (void)c, (void)flags;
    return get_memory(bytes, align, NULL);
}

API void clSVMFree(cl_context c, void *p)
{
    (void)c;
    put_memory(p);
}

static void *alloc_host(cl_context c, const cl_mem_properties_intel *props,
                        size_t bytes, cl_uint align, cl_int *err)
{
    (void)c, (void)props;
    return get_memory(bytes, align, err);
}

static void *alloc_device(cl_context c, cl_device_id d,
                          const cl_mem_properties_intel *props, size_t bytes,
                          cl_uint align, cl_int *err)
{
    (void)c, (void)d, (void)props;
    return get_memory(bytes, align, err);
}

static cl_int free_usm(cl_context c, void *p)
{
    (void)c;
    put_memory(p);
    return CL_SUCCESS;
}

/* ---- the ways in ---- */

API void *clGetExtensionFunctionAddress(const char *name)
{
    static const struct {
        const char *name;
        void *fn;
    } extra[] = {
        {"clIcdGetPlatformIDsKHR", (void *)clIcdGetPlatformIDsKHR},
        {"clHostMemAllocINTEL", (void *)alloc_host},
        {"clDeviceMemAllocINTEL", (void *)alloc_device},
        {"clMemFreeINTEL", (void *)free_usm},
        {"clSetKernelArgMemPointerINTEL", (void *)set_arg_usm},
        {"clEnqueueMemcpyINTEL", (void *)fake_cl_copy_usm},
    };

    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++)
        if (!strcmp(extra[i].name, name))
            return extra[i].fn;
    return NULL;
}

API void *clGetExtensionFunctionAddressForPlatform(cl_platform_id p,
                                                   const char *name)
{
    (void)p;
    return fake_cl_trouble() ? NULL : clGetExtensionFunctionAddress(name);
}

const cl_icd_dispatch fake_table = {
    .clGetPlatformIDs = clGetPlatformIDs,
    .clGetPlatformInfo = clGetPlatformInfo,
    .clGetDeviceIDs = clGetDeviceIDs,
    .clGetDeviceInfo = clGetDeviceInfo,
    .clCreateContext = clCreateContext,
    .clReleaseContext = clReleaseContext,
    .clCreateSubDevices = clCreateSubDevices,
    .clReleaseDevice = clReleaseDevice,
    .clReleaseCommandQueue = clReleaseCommandQueue,
    .clCreateCommandQueueWithProperties = clCreateCommandQueueWithProperties,
    .clFinish = clFinish,
    .clFlush = clFlush,
    .clEnqueueMarkerWithWaitList = clEnqueueMarkerWithWaitList,
    .clEnqueueBarrierWithWaitList = clEnqueueBarrierWithWaitList,
    .clSetEventCallback = clSetEventCallback,
    .clGetEventInfo = clGetEventInfo,
    .clWaitForEvents = clWaitForEvents,
    .clReleaseEvent = clReleaseEvent,
    .clCreateProgramWithIL = clCreateProgramWithIL,
    .clBuildProgram = clBuildProgram,
    .clGetProgramBuildInfo = clGetProgramBuildInfo,
    .clReleaseProgram = clReleaseProgram,
    .clCreateKernel = clCreateKernel,
    .clReleaseKernel = clReleaseKernel,
    .clCreateProgramWithSource = clCreateProgramWithSource,
    .clGetKernelInfo = clGetKernelInfo,
    .clSetKernelArg = clSetKernelArg,
    .clSetKernelArgSVMPointer = clSetKernelArgSVMPointer,
    .clEnqueueNDRangeKernel = clEnqueueNDRangeKernel,
    .clSVMAlloc = clSVMAlloc,
    .clSVMFree = clSVMFree,
    .clEnqueueSVMMemcpy = clEnqueueSVMMemcpy,
    .clGetExtensionFunctionAddress = clGetExtensionFunctionAddress,
    .clGetExtensionFunctionAddressForPlatform =
        clGetExtensionFunctionAddressForPlatform,
};
