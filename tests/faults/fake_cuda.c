/* A libcuda for tests: memory is the host's, kernels are those of xpu_kernels.c
 * by name, and trouble comes on demand.  Opened by SUNDOG_CUDA_LIBRARY.  Unlike
 * a driver it runs under every sanitizer, and it is strict: a call without a
 * current context, by a host function or in a forked child is an error, copies
 * end where their memory does, and what is pageable is copied as the driver
 * does it, at once or when all before has run.
 *
 * FAKE_CUDA, words with commas, is read by cuInit, so that each client meets
 * the trouble anew:
 *   fail=N      call N fails with `error`; releases and frees never do
 *   lose=N      call N and all after it do
 *   error=CODE  CUDA_ERROR_UNKNOWN (999) when not given
 *   exec=N      the Nth command of all that run is a fault: `error`, or
 *               CUDA_ERROR_ILLEGAL_ADDRESS (700), is what the context says from
 *               then on, nothing runs and no host function is called
 *   init=CODE   cuInit fails              version=N  13000 when not given
 *   devices=N   1 when not given          chip=N     90 when not given
 *   memory=N    bytes of a device; 2^30 when not given
 *   pinned=N    bytes of the host's that can be pinned; as many as are there
 *               when not given
 *   pools=0     plain allocations only    peers=0    no way between devices
 *   alone=1     no other process has these cards
 *   kernels=any every kernel name exists and computes nothing
 *   garbage     texts without sense, numbers of all ones
 *   lag=N       each command takes N microseconds more
 * Each stream has a thread, so that what is put in runs later, beside others.
 * Kernels are in fake_cuda_kernel.c, streams and events in
 * fake_cuda_stream.c, graphs in fake_cuda_graph.c; with FAKE_OLD it is a driver
 * that has none. fake_cuda_calls and fake_cuda_live say how many calls there
 * were and how many objects are alive, fake_cuda_graphs how many of these are
 * graphs to launch; fake_cuda_runs how many commands have run,
 * fake_cuda_replays how many graphs; fake_cuda_hold(1) keeps kernels from
 * running until fake_cuda_hold(0). */
#include "fake_cuda.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_DEV 8
#define ALIGN    256 /* of what is allocated */

API long fake_cuda_calls(void);
API long fake_cuda_live(void);
API long fake_cuda_graphs(void);
API long fake_cuda_runs(void);
API long fake_cuda_replays(void);
API void fake_cuda_hold(int on);

struct fake_words fake_is;
_Atomic long fake_ngraph, fake_nrun, fake_nreplay;
static _Atomic long ncall, nlive;
static pid_t process;

static struct cu_context_st context[MOST_DEV];
static _Thread_local cu_context stack[8];
static _Thread_local int depth;
_Thread_local bool fake_in_host_function;

struct cu_pool_st {
    int device;
};
typedef struct block block;
struct block {
    block *next;
    char *at;
    void *whole; /* at begins in it, at a multiple of ALIGN */
    size_t bytes;
    int device; /* -1: pinned */
};
static block *blocks;
static size_t held[MOST_DEV + 1]; /* the last: pinned */

long fake_cuda_calls(void)
{
    return ncall;
}

long fake_cuda_live(void)
{
    return nlive;
}

long fake_cuda_graphs(void)
{
    return fake_ngraph;
}

long fake_cuda_runs(void)
{
    return fake_nrun;
}

long fake_cuda_replays(void)
{
    return fake_nreplay;
}

void fake_cuda_hold(int on)
{
    fake_hold(on);
}

/* ---- trouble ---- */

static long word(const char *name, long otherwise)
{
    return fake_word("FAKE_CUDA", name, otherwise);
}

static void read_words(void)
{
    const char *all = getenv("FAKE_CUDA");

    pthread_mutex_lock(&fake_lock);
    fake_is.fail = word("fail", 0);
    fake_is.lose = word("lose", 0);
    fake_is.exec = word("exec", 0);
    fake_is.lag = word("lag", 0);
    fake_is.error = (int)word("error", 999);
    fake_is.fault = (int)word("error", 700);
    fake_is.init = (int)word("init", 0);
    fake_is.version = (int)word("version", 13000);
    fake_is.devices = (int)word("devices", 1);
    fake_is.chip = (int)word("chip", 90);
    fake_is.memory = (size_t)word("memory", 1l << 30);
    fake_is.pinned = (size_t)word("pinned", LONG_MAX);
    fake_is.pools = word("pools", 1);
    fake_is.peers = word("peers", 1);
    fake_is.alone = word("alone", 0);
    fake_is.any_kernel = all && strstr(all, "kernels=any");
    fake_is.garbage = all && strstr(all, "garbage");
    ncall = fake_nrun = fake_nreplay = 0;
    process = getpid();
    pthread_mutex_unlock(&fake_lock);
}

/* Each call that may fail asks. */
cu_result fake_trouble(void)
{
    long n = ++ncall;

    if (fake_in_host_function)
        abort(); /* the driver deadlocks, or worse */
    if (process != getpid())
        return 3; /* CUDA_ERROR_NOT_INITIALIZED */
    if (n == fake_is.fail || (fake_is.lose && n >= fake_is.lose))
        return fake_is.error;
    return CU_OK;
}

/* And those that want a context: the fault of it is theirs, too. */
cu_result fake_trouble_in(cu_context c)
{
    cu_result err = fake_trouble();

    if (err)
        return err;
    if (!depth || stack[depth - 1]->refs <= 0)
        return 201; /* CUDA_ERROR_INVALID_CONTEXT */
    pthread_mutex_lock(&fake_lock);
    err = (c ? c : stack[depth - 1])->fault;
    pthread_mutex_unlock(&fake_lock);
    return err;
}

cu_context fake_context(void)
{
    return depth ? stack[depth - 1] : NULL;
}

static int here(void)
{
    return (int)(stack[depth - 1] - context);
}

void *fake_make(size_t size)
{
    void *p = calloc(1, size);

    nlive += p != NULL;
    return p;
}

cu_result fake_drop(void *p)
{
    free(p);
    nlive--;
    return CU_OK;
}

/* ---- the driver and its devices ---- */

cu_result cuInit(unsigned flags)
{
    cu_result err;

    (void)flags;
    read_words();
    err = fake_trouble();
    return err ? err : fake_is.init;
}

cu_result cuDriverGetVersion(int *out)
{
    *out = fake_is.version;
    return fake_trouble();
}

cu_result cuGetErrorName(cu_result err, const char **out)
{
    static const struct {
        cu_result code;
        const char *name;
    } known[] = {{1, "CUDA_ERROR_INVALID_VALUE"},
                 {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {3, "CUDA_ERROR_NOT_INITIALIZED"},
                 {201, "CUDA_ERROR_INVALID_CONTEXT"},
                 {214, "CUDA_ERROR_ECC_UNCORRECTABLE"},
                 {218, "CUDA_ERROR_INVALID_PTX"},
                 {500, "CUDA_ERROR_NOT_FOUND"},
                 {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {716, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                 {719, "CUDA_ERROR_LAUNCH_FAILED"},
                 {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
                 {999, "CUDA_ERROR_UNKNOWN"}};

    for (size_t i = 0; i < SD_COUNTOF(known); i++)
        if (known[i].code == err) {
            *out = known[i].name;
            return CU_OK;
        }
    *out = NULL;
    return CU_INVALID_VALUE;
}

cu_result cuDeviceGetCount(int *out)
{
    *out = fake_is.garbage ? -1 : fake_is.devices;
    return fake_trouble();
}

cu_result cuDeviceGet(cu_device *out, int i)
{
    *out = i;
    return i < MOST_DEV ? fake_trouble() : CU_INVALID_VALUE;
}

cu_result cuDeviceGetName(char *out, int size, cu_device d)
{
    (void)d;
    if (fake_is.garbage)
        memset(out, 0xe9, (size_t)size);
    else
        snprintf(out, (size_t)size, "Fake GPU");
    return fake_trouble();
}

cu_result cuDeviceGetAttribute(int *out, int what, cu_device d)
{
    (void)d;
    switch (what) {
    case CU_DEV_UNITS:
        *out = fake_is.garbage ? -1 : 4;
        break;
    case CU_DEV_L2_BYTES:
        *out = fake_is.garbage ? -1 : 1 << 20;
        break;
    case CU_DEV_SHARED:
        *out = fake_is.garbage ? -1 : 99 << 10;
        break;
    case CU_DEV_MAJOR:
        *out = fake_is.chip / 10;
        break;
    case CU_DEV_MINOR:
        *out = fake_is.chip % 10;
        break;
    case CU_DEV_POOLS:
        *out = fake_is.pools;
        break;
    case CU_DEV_UNIFIED:
        *out = 1;
        break;
    default:
        return CU_INVALID_VALUE;
    }
    return fake_trouble();
}

cu_result cuDeviceGetUuid(void *out, cu_device d)
{
    static _Atomic int ncard; /* "alone": nobody else has it */

    memset(out, 1 + (fake_is.alone ? ncard++ : d), 16);
    return fake_trouble();
}

cu_result cuDeviceTotalMem_v2(size_t *out, cu_device d)
{
    (void)d;
    *out = fake_is.garbage ? SIZE_MAX : fake_is.memory;
    return fake_trouble();
}

cu_result cuDeviceCanAccessPeer(int *out, cu_device d, cu_device peer)
{
    (void)d, (void)peer;
    *out = fake_is.peers;
    return fake_trouble();
}

cu_result cuDevicePrimaryCtxRetain(cu_context *out, cu_device d)
{
    cu_result err = fake_trouble();

    if (err)
        return err;
    if (!context[d].refs++)
        context[d].fault = CU_OK;
    nlive++;
    *out = &context[d];
    return CU_OK;
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device d)
{
    context[d].refs--;
    nlive--;
    return CU_OK;
}

/* Entering fails as any call does; those that only free go on all the same. */
cu_result cuCtxPushCurrent_v2(cu_context c)
{
    cu_result err = fake_trouble();

    if (err || depth == (int)SD_COUNTOF(stack))
        return err ? err : CU_INVALID_VALUE;
    stack[depth++] = c;
    return CU_OK;
}

cu_result cuCtxPopCurrent_v2(cu_context *out)
{
    if (!depth)
        return 201;
    *out = stack[--depth];
    return CU_OK;
}

cu_result cuCtxEnablePeerAccess(cu_context peer, unsigned flags)
{
    (void)peer, (void)flags;
    return fake_trouble_in(NULL);
}

/* ---- memory ---- */

static size_t *held_by(int device)
{
    return &held[device < 0 ? MOST_DEV : device];
}

static cu_result add_block(size_t bytes, int device, void **out)
{
    block *b = malloc(sizeof *b);
    /* zeros, for which large areas are not written: a loop that no kernel ends
     * does not begin */
    void *p = calloc(1, bytes + ALIGN - 1);
    size_t *mine = held_by(device);
    size_t most = device < 0 ? fake_is.pinned : fake_is.memory;

    if (!b || !p) {
        free(b);
        free(p);
        return CU_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&fake_lock);
    if (bytes > most - SD_MIN(*mine, most)) {
        pthread_mutex_unlock(&fake_lock);
        free(b);
        free(p);
        return CU_OUT_OF_MEMORY;
    }
    *mine += bytes;
    *b = (block){blocks, (char *)(((uintptr_t)p + ALIGN - 1) / ALIGN * ALIGN),
                 p, bytes, device};
    blocks = b;
    pthread_mutex_unlock(&fake_lock);
    nlive++;
    *out = b->at;
    return CU_OK;
}

static cu_result take_block(const void *p)
{
    block *b = NULL;

    pthread_mutex_lock(&fake_lock);
    for (block **at = &blocks; *at; at = &(*at)->next)
        if ((*at)->at == p) {
            b = *at;
            *at = b->next;
            *held_by(b->device) -= b->bytes;
            break;
        }
    pthread_mutex_unlock(&fake_lock);
    if (!b)
        abort(); /* freed twice, or never ours */
    free(b->whole);
    return fake_drop(b);
}

/* The lock is held. */
static const block *block_of(const void *p)
{
    for (const block *b = blocks; b; b = b->next)
        if ((const char *)p >= b->at && (const char *)p < b->at + b->bytes)
            return b;
    return NULL;
}

bool fake_is_inside(const void *p, size_t n, bool *pageable)
{
    const block *b;
    bool ok;

    pthread_mutex_lock(&fake_lock);
    b = block_of(p);
    ok = !b || (size_t)(b->at + b->bytes - (const char *)p) >= n;
    pthread_mutex_unlock(&fake_lock);
    *pageable = !b;
    return ok;
}

bool fake_is_reached(const void *to, const void *from)
{
    const block *x, *y;
    bool way;

    pthread_mutex_lock(&fake_lock);
    x = block_of(to);
    y = block_of(from);
    way = x && y && (x->device == y->device || fake_is.peers);
    pthread_mutex_unlock(&fake_lock);
    return way;
}

static cu_result alloc_device(cu_pointer *out, size_t bytes, int device)
{
    cu_result err = fake_trouble_in(NULL);
    void *p;

    if (err || (err = add_block(bytes, device, &p)))
        return err;
    *out = (cu_pointer)(uintptr_t)p;
    return CU_OK;
}

cu_result cuMemAlloc_v2(cu_pointer *out, size_t bytes)
{
    return alloc_device(out, bytes, depth ? here() : 0);
}

cu_result cuMemFree_v2(cu_pointer p)
{
    return take_block((void *)(uintptr_t)p);
}

cu_result cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    cu_result err = fake_trouble_in(NULL);

    (void)flags;
    return err ? err : add_block(bytes, -1, out);
}

cu_result cuMemFreeHost(void *p)
{
    return take_block(p);
}

cu_result cuMemPoolCreate(cu_pool *out, const cu_pool_props *props)
{
    cu_result err = fake_trouble_in(NULL);
    cu_pool p;

    if (err)
        return err;
    if (props->alloc_type != CU_ALLOC_PINNED ||
        props->location.type != CU_AT_DEVICE)
        return CU_INVALID_VALUE;
    if (!(p = fake_make(sizeof *p)))
        return CU_OUT_OF_MEMORY;
    p->device = props->location.id;
    *out = p;
    return CU_OK;
}

cu_result cuMemPoolDestroy(cu_pool p)
{
    return fake_drop(p);
}

cu_result cuMemPoolSetAccess(cu_pool p, const cu_access *who, size_t n)
{
    (void)p, (void)who, (void)n;
    return fake_trouble();
}

cu_result cuMemAllocFromPoolAsync(cu_pointer *out, size_t bytes, cu_pool p,
                                  cu_stream s)
{
    (void)s;
    return alloc_device(out, bytes, p->device);
}

cu_result cuMemFreeAsync(cu_pointer p, cu_stream s)
{
    (void)s;
    return take_block((void *)(uintptr_t)p);
}

cu_result cuPointerGetAttributes(unsigned n, int *what, void **out,
                                 cu_pointer p)
{
    unsigned *type = out[0];
    const block *b;

    if (n != 1 || what[0] != CU_PTR_MEMORY_TYPE)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&fake_lock);
    b = block_of((void *)(uintptr_t)p);
    pthread_mutex_unlock(&fake_lock);
    *type = !b ? 0 : b->device < 0 ? 1 : 2;
    return CU_OK;
}
