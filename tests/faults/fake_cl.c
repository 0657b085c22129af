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
 *   gpu=1       calls itself one           tiles=N  which has N of them
 *   kernels=any every kernel name exists and computes nothing
 *   garbage     texts without end or sense, numbers of all ones
 *   exec=N      the command that runs as the Nth of all ends with `error`
 *   lag=N       each command takes N microseconds more
 * Each queue has a thread of its own, so that what is put in runs later, beside
 * others, and callbacks of events come from there.
 * fake_cl_calls and fake_cl_live say how many calls there were and how many
 * objects are alive; fake_cl_runs how many commands have run; fake_cl_finishes
 * how often somebody waited for a whole queue.  fake_cl_hold(1) keeps kernels
 * from running until fake_cl_hold(0). */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/xpu_kernels.c"

#define API       __attribute__((visibility("default")))
#define UNITS     4u
#define MOST_ARGS 16u
#define HEAD      64u /* before each block of memory: its size */

API long fake_cl_calls(void);
API long fake_cl_live(void);
API long fake_cl_runs(void);
API long fake_cl_finishes(void);
API void fake_cl_hold(int on);

static struct {
    long fail, lose, crash, platforms, devices, tiles, exec, lag;
    int error;
    size_t memory;
    bool il, usm, gpu, any_kernel, garbage;
} is;
static _Atomic long ncall, nlive, nrun, nfinish;
static _Atomic size_t held;

/* Of queues and events, and of what is read above. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_held;

/* Objects begin with the loader's table, as it demands. */
extern const cl_icd_dispatch fake_table;
struct _cl_platform_id {
    const cl_icd_dispatch *table;
};
struct _cl_device_id {
    const cl_icd_dispatch *table;
    bool is_sub;
};
struct _cl_context {
    const cl_icd_dispatch *table;
};
typedef struct command command;
struct _cl_command_queue {
    const cl_icd_dispatch *table;
    pthread_t thread;
    command *head, **tail;
    bool busy, stop;
    cl_int error; /* of a command since the last marker */
};
struct _cl_event {
    const cl_icd_dispatch *table;
    int refs;
    cl_int status;
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *); /* one is enough */
    void *ctx;
};
struct _cl_program {
    const cl_icd_dispatch *table;
    bool is_built, is_wrong;
};
struct _cl_kernel {
    const cl_icd_dispatch *table;
    void (*fn)(void **, long, long, void *);
    void *arg[MOST_ARGS];
    char number[MOST_ARGS][16]; /* by value */
};
static struct _cl_platform_id the_platform[2];
static struct _cl_device_id the_device[8];

long fake_cl_calls(void)
{
    return ncall;
}

long fake_cl_live(void)
{
    return nlive;
}

long fake_cl_runs(void)
{
    return nrun;
}

long fake_cl_finishes(void)
{
    return nfinish;
}

void fake_cl_hold(int on)
{
    pthread_mutex_lock(&lock);
    is_held = on;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- trouble ---- */

static long word(const char *name, long otherwise)
{
    const char *all = getenv("FAKE_CL"), *at;
    size_t n = strlen(name);

    for (at = all; at && (at = strstr(at, name)); at += n)
        if ((at == all || at[-1] == ',') && at[n] == '=')
            return strtol(at + n + 1, NULL, 10);
    return otherwise;
}

static void read_words(void)
{
    const char *all = getenv("FAKE_CL");

    pthread_mutex_lock(&lock);
    is.exec = word("exec", 0);
    is.lag = word("lag", 0);
    is.fail = word("fail", 0);
    is.lose = word("lose", 0);
    is.crash = word("crash", 0);
    is.error = (int)word("error", CL_OUT_OF_RESOURCES);
    is.memory = (size_t)word("memory", 1l << 30);
    is.platforms = word("platforms", 1);
    is.devices = word("devices", 1);
    is.tiles = word("tiles", 0);
    is.il = word("il", 1);
    is.usm = word("usm", 1);
    is.gpu = word("gpu", 0);
    is.any_kernel = all && strstr(all, "kernels=any");
    is.garbage = all && strstr(all, "garbage");
    ncall = nrun = nfinish = 0;
    pthread_mutex_unlock(&lock);
}

/* Each call that may fail asks. */
static cl_int trouble(void)
{
    long n = ++ncall;

    if (n == is.crash)
        raise(SIGSEGV);
    if (n == is.fail || (is.lose && n >= is.lose))
        return is.error;
    return CL_SUCCESS;
}

static void *make(size_t size, cl_int *err)
{
    cl_int bad = trouble();
    void *p = bad ? NULL : calloc(1, size);

    if (err)
        *err = bad ? bad : p ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
    if (p) {
        *(const cl_icd_dispatch **)p = &fake_table;
        nlive++;
    }
    return p;
}

static cl_int drop(void *p)
{
    free(p);
    nlive--;
    return CL_SUCCESS;
}

/* ---- answers ---- */

static cl_int answer(const void *p, size_t n, size_t room, void *to,
                     size_t *size)
{
    cl_int bad = trouble();

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
    if (!is.garbage)
        return answer(s, strlen(s) + 1, room, to, size);
    if (size)
        *size = SIZE_MAX;
    if (to)
        memset(to, 0xe9, room); /* all of it, no end, no UTF-8 */
    if (to && room > 8)
        memcpy(to, "\033[2J SPIR-V", 8 + (room > 11 ? 3 : 0));
    return trouble();
}

static cl_int number(cl_ulong v, size_t n, size_t room, void *to, size_t *size)
{
    if (is.garbage)
        v = ~0ull;
    return answer(&v, n, room, to, size);
}

static cl_int list(long have, cl_uint room, cl_uint *n)
{
    cl_int bad = trouble();

    if (bad)
        return bad;
    if (n)
        *n = is.garbage ? 0x7fffffff : (cl_uint)have;
    (void)room;
    return CL_SUCCESS;
}

API cl_int clGetPlatformIDs(cl_uint room, cl_platform_id *out, cl_uint *n)
{
    cl_int bad;

    read_words();
    if ((bad = list(is.platforms, room, n)))
        return bad;
    for (cl_uint i = 0; out && i < room && i < is.platforms && i < 2; i++) {
        the_platform[i].table = &fake_table;
        out[i] = &the_platform[i];
    }
    return is.platforms ? CL_SUCCESS : CL_PLATFORM_NOT_FOUND_KHR;
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
    return is.gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
}

API cl_int clGetDeviceIDs(cl_platform_id p, cl_device_type type, cl_uint room,
                          cl_device_id *out, cl_uint *n)
{
    cl_int bad;

    (void)p;
    if (!(type & device_type()) || !is.devices)
        return CL_DEVICE_NOT_FOUND;
    if ((bad = list(is.devices, room, n)))
        return bad;
    for (cl_uint i = 0; out && i < room && i < is.devices && i < 8; i++) {
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
        return number(is.memory, 8, room, to, size);
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
        return text(is.il ? "SPIR-V_1.2" : "", room, to, size);
    case CL_DEVICE_EXTENSIONS:
        return text(is.usm ? "cl_khr_fp16 cl_intel_unified_shared_memory"
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
    cl_int bad = trouble();

    (void)d;
    if (bad)
        return bad;
    if (how[0] == CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN && is.tiles)
        parts = (cl_uint)is.tiles;
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
        nlive++;
        out[i] = sub;
    }
    return CL_SUCCESS;
}

API cl_int clReleaseDevice(cl_device_id d)
{
    return d->is_sub ? drop(d) : CL_SUCCESS;
}

API cl_context clCreateContext(const cl_context_properties *p, cl_uint n,
                               const cl_device_id *d,
                               void(CL_CALLBACK *fn)(const char *, const void *,
                                                     size_t, void *),
                               void *ctx, cl_int *err)
{
    (void)p, (void)n, (void)d, (void)fn, (void)ctx;
    return make(sizeof(struct _cl_context), err);
}

API cl_int clReleaseContext(cl_context c)
{
    return drop(c);
}

/* ---- queues and events ---- */

struct command {
    command *next;
    cl_event event, wait; /* references; may be NULL */
    bool marks;
    void (*fn)(void **, long, long, void *);
    void *arg[MOST_ARGS];
    long tiles;
    void *to;
    const void *from;
    size_t bytes;
};

/* The lock is held. */
static void drop_event(cl_event e)
{
    if (e && !--e->refs)
        drop(e);
}

static cl_int await_event(cl_event e)
{
    while (e && e->status > 0)
        pthread_cond_wait(&changed, &lock);
    return e && e->status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                              : CL_SUCCESS;
}

static void complete(cl_event e, cl_int status)
{
    if (!e)
        return;
    e->status = status;
    pthread_cond_broadcast(&changed);
    if (!e->fn)
        return;
    pthread_mutex_unlock(&lock);
    e->fn(e, status, e->ctx);
    pthread_mutex_lock(&lock);
}

static cl_int run(const command *c)
{
    float scratch[4096];

    if (++nrun == is.exec)
        return is.error;
    if (c->fn)
        c->fn((void **)c->arg, 0, c->tiles, scratch);
    else if (c->to)
        memmove(c->to, c->from, c->bytes);
    return CL_SUCCESS;
}

/* A marker ends as what came before it since the last one did. */
static void serve_one(cl_command_queue q, command *c)
{
    cl_int err = await_event(c->wait);
    useconds_t lag = (useconds_t)is.lag;

    while (c->fn && is_held)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (lag)
        usleep(lag);
    if (!err)
        err = run(c);
    pthread_mutex_lock(&lock);
    if (err)
        q->error = err;
    if (c->marks) {
        err = q->error;
        q->error = CL_SUCCESS;
    }
    complete(c->event, err);
    drop_event(c->event);
    drop_event(c->wait);
    free(c);
}

static void *serve(void *arg)
{
    cl_command_queue q = arg;
    command *c;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (!q->head && !q->stop)
            pthread_cond_wait(&changed, &lock);
        if (!(c = q->head))
            break;
        if (!(q->head = c->next))
            q->tail = &q->head;
        q->busy = true;
        serve_one(q, c);
        q->busy = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

API cl_command_queue clCreateCommandQueueWithProperties(
    cl_context c, cl_device_id d, const cl_queue_properties *p, cl_int *err)
{
    cl_command_queue q = make(sizeof *q, err);

    (void)c, (void)d, (void)p;
    if (!q)
        return NULL;
    q->tail = &q->head;
    if (pthread_create(&q->thread, NULL, serve, q)) {
        *err = CL_OUT_OF_HOST_MEMORY;
        drop(q);
        return NULL;
    }
    return q;
}

static void wait_idle(cl_command_queue q)
{
    while (q->busy || q->head)
        pthread_cond_wait(&changed, &lock);
}

API cl_int clReleaseCommandQueue(cl_command_queue q)
{
    pthread_mutex_lock(&lock);
    q->stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(q->thread, NULL);
    return drop(q);
}

/* In trouble, too: what is lost writes nothing any more. */
API cl_int clFinish(cl_command_queue q)
{
    pthread_mutex_lock(&lock);
    wait_idle(q);
    pthread_mutex_unlock(&lock);
    nfinish++;
    return trouble();
}

API cl_int clFlush(cl_command_queue q)
{
    (void)q;
    return trouble();
}

/* what is copied; *event where asked for is the caller's. */
static cl_int put(cl_command_queue q, const command *what, cl_event wait,
                  cl_event *event)
{
    command *c = malloc(sizeof *c);
    cl_int err = trouble();
    cl_event e = NULL;

    if (!err && !c)
        err = CL_OUT_OF_HOST_MEMORY;
    if (!err && event && !(e = calloc(1, sizeof *e)))
        err = CL_OUT_OF_HOST_MEMORY;
    if (err) {
        free(c);
        return err;
    }
    *c = *what;
    pthread_mutex_lock(&lock);
    if (e) {
        *e = (struct _cl_event){&fake_table, 2, CL_QUEUED, NULL, NULL};
        nlive++;
        *event = e;
    }
    c->event = e;
    if ((c->wait = wait))
        wait->refs++;
    c->next = NULL;
    *q->tail = c;
    q->tail = &c->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CL_SUCCESS;
}

API cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n,
                                       const cl_event *wait, cl_event *event)
{
    return put(q, &(command){.marks = true}, n ? *wait : NULL, event);
}

API cl_int clEnqueueBarrierWithWaitList(cl_command_queue q, cl_uint n,
                                        const cl_event *wait, cl_event *event)
{
    return put(q, &(command){.marks = false}, n ? *wait : NULL, event);
}

API cl_int clSetEventCallback(cl_event e, cl_int type,
                              void(CL_CALLBACK *fn)(cl_event, cl_int, void *),
                              void *ctx)
{
    cl_int bad = trouble(), status;

    (void)type;
    if (bad)
        return bad;
    pthread_mutex_lock(&lock);
    if ((status = e->status) > 0) {
        e->fn = fn;
        e->ctx = ctx;
    }
    pthread_mutex_unlock(&lock);
    if (status <= 0)
        fn(e, status, ctx);
    return CL_SUCCESS;
}

API cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t room, void *to,
                          size_t *size)
{
    cl_int status;

    (void)what;
    pthread_mutex_lock(&lock);
    status = e->status;
    pthread_mutex_unlock(&lock);
    return answer(&status, sizeof status, room, to, size);
}

API cl_int clWaitForEvents(cl_uint n, const cl_event *e)
{
    cl_int err;

    (void)n;
    pthread_mutex_lock(&lock);
    err = await_event(*e);
    pthread_mutex_unlock(&lock);
    return err ? err : trouble();
}

API cl_int clReleaseEvent(cl_event e)
{
    pthread_mutex_lock(&lock);
    drop_event(e);
    pthread_mutex_unlock(&lock);
    return CL_SUCCESS;
}

/* ---- programs ---- */

API cl_program clCreateProgramWithIL(cl_context c, const void *il, size_t n,
                                     cl_int *err)
{
    static const uint32_t magic = 0x07230203;

    (void)c;
    if (n < 20 || memcmp(il, &magic, 4)) {
        *err = CL_INVALID_VALUE;
        return NULL;
    }
    return make(sizeof(struct _cl_program), err);
}

/* A text that has `oops` in it does not build. */
API cl_program clCreateProgramWithSource(cl_context c, cl_uint n,
                                         const char **text, const size_t *size,
                                         cl_int *err)
{
    cl_program p = make(sizeof *p, err);

    (void)c;
    if (p)
        p->is_wrong =
            n != 1 || strstr(*text, "oops") || size[0] != strlen(*text);
    return p;
}

API cl_int clBuildProgram(cl_program p, cl_uint n, const cl_device_id *d,
                          const char *options,
                          void(CL_CALLBACK *fn)(cl_program, void *), void *ctx)
{
    cl_int bad = trouble();

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
    return drop(p);
}

static void nothing(void **slot, long first, long last, void *scratch)
{
    (void)slot, (void)first, (void)last, (void)scratch;
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
    static const struct {
        const char *name;
        void (*fn)(void **, long, long, void *);
    } known[] = {{"square", square}, {"accumulate", accumulate},
                 {"below", below},   {"step", step},
                 {"slow", slow},     {"imports", imports},
                 {"scale", scale}};
    void (*fn)(void **, long, long, void *) = is.any_kernel ? nothing : NULL;
    cl_kernel k;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            fn = known[i].fn;
    if (!fn || !p->is_built) {
        *err = fn ? CL_INVALID_PROGRAM_EXECUTABLE : CL_INVALID_KERNEL_NAME;
        return NULL;
    }
    if ((k = make(sizeof *k, err)))
        k->fn = fn;
    return k;
}

API cl_int clReleaseKernel(cl_kernel k)
{
    return drop(k);
}

static cl_int set_arg(cl_kernel k, cl_uint i, const void *p)
{
    if (i >= MOST_ARGS && !is.any_kernel)
        return CL_INVALID_ARG_INDEX;
    if (i < MOST_ARGS)
        k->arg[i] = (void *)(uintptr_t)p;
    return trouble();
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
    command c = {.fn = k->fn, .tiles = (long)(*all / *group)};

    (void)dims, (void)offset;
    memcpy(c.arg, k->arg, sizeof c.arg);
    return put(q, &c, n ? *wait : NULL, event);
}

/* ---- memory ---- */

static void *get_memory(size_t bytes, size_t align, cl_int *err)
{
    size_t whole = (bytes + HEAD + align - 1) / align * align;
    cl_int bad = trouble();
    char *p = NULL;

    if (!bad && (held += whole) > is.memory) {
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
    nlive++;
    return p + HEAD;
}

static void put_memory(void *p)
{
    if (!p)
        return;
    held -= *(size_t *)(void *)((char *)p - HEAD);
    drop((char *)p - HEAD);
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

static cl_int copy(cl_command_queue q, bool blocking, void *to,
                   const void *from, size_t n)
{
    command c = {.to = to, .from = from, .bytes = n};
    cl_event e;
    cl_int err = put(q, &c, NULL, blocking ? &e : NULL);

    if (err || !blocking)
        return err;
    pthread_mutex_lock(&lock);
    await_event(e);
    err = e->status;
    drop_event(e);
    pthread_mutex_unlock(&lock);
    return err;
}

API cl_int clEnqueueSVMMemcpy(cl_command_queue q, cl_bool blocking, void *to,
                              const void *from, size_t bytes, cl_uint n,
                              const cl_event *wait, cl_event *event)
{
    (void)n, (void)wait, (void)event;
    return copy(q, blocking, to, from, bytes);
}

static cl_int copy_usm(cl_command_queue q, cl_bool blocking, void *to,
                       const void *from, size_t bytes, cl_uint n,
                       const cl_event *wait, cl_event *event)
{
    (void)n, (void)wait, (void)event;
    return copy(q, blocking, to, from, bytes);
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
        {"clEnqueueMemcpyINTEL", (void *)copy_usm},
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
    return trouble() ? NULL : clGetExtensionFunctionAddress(name);
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
