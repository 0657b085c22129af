/* Finding CUDA: the driver's library, its devices, what they are, and what its
 * errors mean.  The library is opened when a client asks for it, and never
 * closed: its threads may outlive us.  CUDA_VISIBLE_DEVICES is the driver's
 * own. */
#include "xpu_cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#define LEAST_VERSION 12000 /* it takes the PTX that the compiler writes */
#define LEAST_CHIP    80
#define MOST_DEVICES  1024
#define MOST_UNITS    (1 << 20)
#define MOST_BYTES    ((int64_t)1 << 48)

/* ---- errors ---- */

static const char *name_of(const xpu_cuda_driver *d, cu_result err)
{
    const char *name = NULL;

    if (d->api.GetErrorName(err, &name) || !name)
        return "an error without a name";
    return name;
}

/* After these the context takes no call any more. */
static bool is_fatal(cu_result err)
{
    switch (err) {
    case 214: /* CUDA_ERROR_ECC_UNCORRECTABLE */
    case 220: /* CUDA_ERROR_NVLINK_UNCORRECTABLE */
    case 226: /* CUDA_ERROR_CONTAINED */
    case 700: /* CUDA_ERROR_ILLEGAL_ADDRESS */
    case 702: /* CUDA_ERROR_LAUNCH_TIMEOUT */
    case 709: /* CUDA_ERROR_CONTEXT_IS_DESTROYED */
    case 710: /* CUDA_ERROR_ASSERT */
    case 714: /* CUDA_ERROR_HARDWARE_STACK_ERROR */
    case 715: /* CUDA_ERROR_ILLEGAL_INSTRUCTION */
    case 716: /* CUDA_ERROR_MISALIGNED_ADDRESS */
    case 717: /* CUDA_ERROR_INVALID_ADDRESS_SPACE */
    case 718: /* CUDA_ERROR_INVALID_PC */
    case 719: /* CUDA_ERROR_LAUNCH_FAILED */
        return true;
    default:
        return false;
    }
}

/* Who comes first says it; the others only hear of it. */
static void turn_off(xpu_cuda *v, cu_result err, const char *call)
{
    cu_result none = CU_OK;

    if (!v || !v->context || !is_fatal(err) ||
        !atomic_compare_exchange_strong(&v->fault, &none, err))
        return;
    atomic_store(&v->culprit, call);
    sd_log(SD_LOG_ERROR,
           "device %d (%s, %s) is turned off: %s (%d), told by %s; what ran "
           "there is lost, and it takes a new process to use it again",
           v->dev->id, v->dev->desc.name, v->dev->desc.driver,
           name_of(v->driver, err), err, call);
}

sd_status xpu_cuda_status(const xpu_cuda_driver *d, xpu_cuda *v, cu_result err,
                          const char *call)
{
    if (err == CU_OK)
        return NULL;
    turn_off(v, err, call);
    return sd_error(err == CU_OUT_OF_MEMORY ? SD_EXHAUSTED : SD_INTERNAL,
                    "CUDA, %s: %s (%d)", call, name_of(d, err), err);
}

static sd_status refuse(xpu_cuda *v)
{
    cu_result fault = atomic_load(&v->fault);
    const char *call = atomic_load(&v->culprit);

    if (fault)
        return sd_error(SD_UNAVAILABLE,
                        "device %d (%s) was turned off by %s (%d), told by "
                        "%s: start a new process to use it again",
                        v->dev->id, v->dev->desc.name,
                        name_of(v->driver, fault), fault,
                        call ? call : "the driver");
    return sd_error(SD_PRECONDITION,
                    "device %d (%s) belongs to process %d, from which this one "
                    "was forked: CUDA does not come along; start processes "
                    "with the spawn method, or fork before the device is used",
                    v->dev->id, v->dev->desc.name, (int)v->driver->process);
}

sd_status xpu_cuda_enter(xpu_cuda *v)
{
    if (atomic_load_explicit(&v->fault, memory_order_relaxed) ||
        v->driver->process != getpid())
        return refuse(v);
    return xpu_cuda_status(v->driver, v,
                           v->driver->api.CtxPushCurrent(v->context),
                           "cuCtxPushCurrent");
}

void xpu_cuda_leave(const xpu_cuda *v)
{
    cu_context c;

    v->driver->api.CtxPopCurrent(&c);
}

/* ---- what a device is ---- */

typedef struct {
    int major, minor, unified, units, cache, shared;
    size_t bytes;
    char name[97];
} facts;

static sd_status ask(const xpu_cuda *v, int what, int most, int *out)
{
    cu_result err = v->driver->api.DeviceGetAttribute(out, what, v->id);

    if (err)
        return xpu_cuda_status(v->driver, NULL, err, "cuDeviceGetAttribute");
    *out = *out < 0 ? 0 : SD_MIN(*out, most);
    return NULL;
}

static sd_status ask_all(const xpu_cuda *v, facts *f)
{
    const xpu_cuda_driver *d = v->driver;
    sd_status st;

    memset(f, 0, sizeof *f);
    if ((st = ask(v, CU_DEV_MAJOR, 1000, &f->major)) ||
        (st = ask(v, CU_DEV_MINOR, 9, &f->minor)) ||
        (st = ask(v, CU_DEV_UNIFIED, 1, &f->unified)) ||
        (st = ask(v, CU_DEV_UNITS, MOST_UNITS, &f->units)) ||
        (st = ask(v, CU_DEV_L2_BYTES, INT32_MAX, &f->cache)) ||
        (st = ask(v, CU_DEV_SHARED, INT32_MAX, &f->shared)) ||
        (st = xpu_cuda_status(
             d, NULL,
             d->api.DeviceGetName(f->name, (int)sizeof f->name - 1, v->id),
             "cuDeviceGetName")))
        return st;
    return xpu_cuda_status(d, NULL, d->api.DeviceTotalMem(&f->bytes, v->id),
                           "cuDeviceTotalMem");
}

/* Code for a chip runs on all that came after it. */
static bool describe_chip(int chip, device_desc *out)
{
    int best = -1, found = 0, n;

    for (int i = 0; i < device_desc_count(); i++)
        if (sscanf(device_desc_at(i)->name, "cuda:sm_%d", &n) == 1 &&
            n <= chip && n > found) {
            best = i;
            found = n;
        }
    if (best >= 0)
        *out = *device_desc_at(best);
    return best >= 0;
}

static void clean(char *s)
{
    for (; *s; s++)
        if (*s < ' ' || *s > '~')
            *s = '?';
}

sd_status xpu_cuda_describe(xpu_cuda *v, device_desc *out, int64_t *memory)
{
    facts f;
    sd_status st = ask_all(v, &f);

    if (st)
        return st;
    clean(f.name);
    v->chip = f.major * 10 + f.minor;
    if (v->chip < LEAST_CHIP || !f.unified || !describe_chip(v->chip, out))
        return sd_error(SD_UNIMPLEMENTED,
                        "%s is of compute capability %d.%d: 8.0 is the least "
                        "that code is made for",
                        f.name, f.major, f.minor);
    out->units = SD_MAX(f.units, 1);
    out->cache_bytes = (size_t)f.cache;
    out->local_most = SD_MIN(out->local_most, (size_t)f.shared);
    out->libs = v->driver->solver ? DEVICE_LIB_LAPACK : 0;
    snprintf(out->driver, sizeof out->driver, "CUDA %d.%d, %s%s%s",
             v->driver->version / 1000 % 1000, v->driver->version % 1000 / 10,
             f.name, out->libs ? ", " : "",
             out->libs ? xpu_cusolver_version(v->driver->solver) : "");
    *memory = (int64_t)SD_MIN(f.bytes, (size_t)MOST_BYTES);
    return NULL;
}

/* ---- the library ---- */

/* A driver that lacks some goes on without. */
static void find_graphs(xpu_cuda_api *a, void *lib)
{
    a->has_graphs = a->has_loops = true;
#define X(name, symbol, args) \
    if (!(a->name = (cu_result(*) args)(uintptr_t)dlsym(lib, #symbol))) \
        a->has_graphs = false;
    XPU_CUDA_GRAPH_SYMBOLS(X)
#undef X
#define X(name, symbol, args) \
    if (!(a->name = (cu_result(*) args)(uintptr_t)dlsym(lib, #symbol))) \
        a->has_loops = false;
    XPU_CUDA_LOOP_SYMBOLS(X)
#undef X
}

static sd_status open_library(xpu_cuda_driver *d, const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL, *why;

    if (!lib) {
        why = dlerror();
        return sd_error(SD_NOT_FOUND,
                        "no CUDA driver: %s; NVIDIA's driver brings one, and "
                        "SUNDOG_DEVICE=host needs none",
                        why ? why : path);
    }
#define X(name, symbol, args) \
    if (!(d->api.name = (cu_result(*) args)(uintptr_t)dlsym(lib, #symbol))) \
        missing = missing ? missing : #symbol;
    XPU_CUDA_SYMBOLS(X)
#undef X
#define X(name, symbol, args) \
    d->api.name = (cu_result(*) args)(uintptr_t)dlsym(lib, #symbol);
    XPU_CUDA_OPTIONAL(X)
#undef X
    snprintf(d->library, sizeof d->library, "%s", path);
    find_graphs(&d->api, lib);
    if (missing)
        return sd_error(SD_UNIMPLEMENTED,
                        "%s has no %s: it is older than CUDA 12.0, or no "
                        "driver of CUDA",
                        path, missing);
    return NULL;
}

static sd_status no_driver(const xpu_cuda_driver *d, cu_result err)
{
    sd_status st = NULL;

    if (err == CU_NO_DEVICE)
        return sd_error(SD_NOT_FOUND,
                        "%s: no CUDA device (CUDA_VISIBLE_DEVICES may hide "
                        "them)",
                        d->library);
    if (err == CU_STUB_LIBRARY)
        return sd_error(SD_NOT_FOUND,
                        "%s is the toolkit's stub, no driver of CUDA",
                        d->library);
    if ((st = xpu_cuda_status(d, NULL, err, "cuInit")))
        st->code = SD_UNAVAILABLE;
    return st;
}

static sd_status start(xpu_cuda_driver *d)
{
    cu_result err;

    if ((err = d->api.Init(0)))
        return no_driver(d, err);
    if ((err = d->api.DriverGetVersion(&d->version)))
        return xpu_cuda_status(d, NULL, err, "cuDriverGetVersion");
    if (d->version < LEAST_VERSION)
        return sd_error(SD_UNAVAILABLE,
                        "%s is the driver of CUDA %d.%d: 12.0 is the least; "
                        "install a newer one",
                        d->library, d->version / 1000, d->version % 1000 / 10);
    if ((err = d->api.DeviceGetCount(&d->ndev)))
        return xpu_cuda_status(d, NULL, err, "cuDeviceGetCount");
    d->ndev = SD_MIN(d->ndev, MOST_DEVICES);
    return d->ndev > 0 ? NULL : no_driver(d, CU_NO_DEVICE);
}

sd_status xpu_cuda_find(xpu_cuda_driver *d, const sd_options *opt)
{
    const char *given = sd_opt_str(opt, SD_OPT_CUDA_LIBRARY);
    sd_status st = open_library(d, given ? given : "libcuda.so.1");

    d->process = getpid();
    if (!st)
        st = start(d);
    return given ? sd_note(st, "SUNDOG_CUDA_LIBRARY") : st;
}
