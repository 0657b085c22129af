/* Finding OpenCL: which library, which platform, which devices, what they are.
 *
 * Libraries in order: the one that SUNDOG_CL_LIBRARY names, and then no other;
 * the ICD loader; Intel's runtime for CPUs itself, which exports the whole API
 * (the icd file that it installs names no existing path), from the library
 * path or a Python environment's lib folder.  A library whose devices do not
 * fit is passed over, and the last reason is what the caller hears.  Libraries
 * are never closed: their threads may outlive us. */
#include "xpu_cl_api.h"
#include "xpu_python.h"

#include <ctype.h>
#include <limits.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_TEXT  ((size_t)1 << 20)  /* what a driver may say of itself */
#define MOST_UNITS (1 << 20)
#define MOST_BYTES ((int64_t)1 << 48)

/* ---- errors ---- */

const char *xpu_cl_error(cl_int err)
{
    static const struct {
        cl_int code;
        const char *name;
    } table[] = {
#define ROW(name) {name, #name}
        ROW(CL_DEVICE_NOT_FOUND),
        ROW(CL_DEVICE_NOT_AVAILABLE),
        ROW(CL_COMPILER_NOT_AVAILABLE),
        ROW(CL_MEM_OBJECT_ALLOCATION_FAILURE),
        ROW(CL_OUT_OF_RESOURCES),
        ROW(CL_OUT_OF_HOST_MEMORY),
        ROW(CL_BUILD_PROGRAM_FAILURE),
        ROW(CL_INVALID_VALUE),
        ROW(CL_INVALID_DEVICE),
        ROW(CL_INVALID_CONTEXT),
        ROW(CL_INVALID_QUEUE_PROPERTIES),
        ROW(CL_INVALID_COMMAND_QUEUE),
        ROW(CL_INVALID_BINARY),
        ROW(CL_INVALID_BUILD_OPTIONS),
        ROW(CL_INVALID_PROGRAM),
        ROW(CL_INVALID_PROGRAM_EXECUTABLE),
        ROW(CL_INVALID_KERNEL_NAME),
        ROW(CL_INVALID_KERNEL),
        ROW(CL_INVALID_ARG_INDEX),
        ROW(CL_INVALID_ARG_VALUE),
        ROW(CL_INVALID_KERNEL_ARGS),
        ROW(CL_INVALID_WORK_GROUP_SIZE),
        ROW(CL_INVALID_WORK_ITEM_SIZE),
        ROW(CL_INVALID_OPERATION),
        ROW(CL_INVALID_BUFFER_SIZE),
        ROW(CL_INVALID_GLOBAL_WORK_SIZE),
        ROW(CL_DEVICE_PARTITION_FAILED),
        ROW(CL_INVALID_DEVICE_PARTITION_COUNT),
#undef ROW
        {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    };

    for (size_t i = 0; i < SD_COUNTOF(table); i++)
        if (table[i].code == err)
            return table[i].name;
    return "an error without a name";
}

sd_status xpu_cl_status(cl_int err, const char *what)
{
    sd_code code = SD_INTERNAL;

    if (err == CL_SUCCESS)
        return NULL;
    if (err == CL_OUT_OF_RESOURCES || err == CL_OUT_OF_HOST_MEMORY ||
        err == CL_MEM_OBJECT_ALLOCATION_FAILURE)
        code = SD_EXHAUSTED;
    else if (err == CL_DEVICE_NOT_AVAILABLE)
        code = SD_UNAVAILABLE;
    return sd_error(code, "OpenCL, %s: %s (%d)", what, xpu_cl_error(err),
                    (int)err);
}

/* ---- questions ---- */

static cl_ulong ask_number(const xpu_cl_driver *d, cl_device_id id,
                           cl_device_info what)
{
    cl_ulong v = 0; /* narrower answers fill the low bytes */

    if (d->api.GetDeviceInfo(id, what, sizeof v, &v, NULL) != CL_SUCCESS)
        return 0;
    return v;
}

/* A count or a size: no driver's answer makes it negative. */
static cl_int ask_size(const xpu_cl_driver *d, cl_device_id id,
                       cl_device_info what, int64_t most, int64_t *out)
{
    cl_ulong v = 0;
    cl_int err = d->api.GetDeviceInfo(id, what, sizeof v, &v, NULL);

    *out = err ? 0 : v < (cl_ulong)most ? (int64_t)v : most;
    return err;
}

void xpu_cl_clean(char *s)
{
    for (; *s; s++)
        if (*s != '\n' && (*s < ' ' || *s > '~'))
            *s = '?';
}

/* An answer that is too long for the space counts as empty. */
static void ask_text(const xpu_cl_driver *d, cl_device_id id,
                     cl_device_info what, char *out, size_t size)
{
    memset(out, 0, size);
    if (d->api.GetDeviceInfo(id, what, size - 1, out, NULL) != CL_SUCCESS)
        *out = 0;
    xpu_cl_clean(out);
}

static bool has_extension(const xpu_cl_driver *d, cl_device_id id,
                          const char *name)
{
    size_t size = 0, n = strlen(name);
    bool found = false;
    char *list;

    if (d->api.GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, NULL, &size) ||
        size > MOST_TEXT || !(list = calloc(1, size + 1)))
        return false;
    if (!d->api.GetDeviceInfo(id, CL_DEVICE_EXTENSIONS, size, list, NULL))
        for (const char *at = list; (at = strstr(at, name)) && !found; at += n)
            found = (at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ');
    free(list);
    return found;
}

static bool takes_spirv(const xpu_cl_driver *d, cl_device_id id)
{
    char il[256];

    ask_text(d, id, CL_DEVICE_IL_VERSION, il, sizeof il);
    return d->api.CreateProgramWithIL && strstr(il, "SPIR-V");
}

static bool is_gpu(const xpu_cl_driver *d, cl_device_id id)
{
    return ask_number(d, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU;
}

bool xpu_cl_has_own_memory(const xpu_cl_driver *d, cl_device_id id)
{
    return is_gpu(d, id) && !ask_number(d, id, CL_DEVICE_HOST_UNIFIED_MEMORY);
}

/* Intel's compiler names, where the product's name tells. */
static const char *chip(const char *name, bool gpu)
{
    const char *described = device_name_of_product(name);

    if (!gpu)
        return "cl:cpu";
    return described ? described : "cl:gpu";
}

static void name_device(const xpu_cl_driver *d, cl_device_id id,
                        device_desc *out)
{
    char name[128], version[64];

    ask_text(d, id, CL_DEVICE_NAME, name, sizeof name);
    ask_text(d, id, CL_DRIVER_VERSION, version, sizeof version);
    device_desc_of_name(chip(name, is_gpu(d, id)), out);
    snprintf(out->name, sizeof out->name, "%s", chip(name, is_gpu(d, id)));
    snprintf(out->driver, sizeof out->driver, "OpenCL %.40s, %.72s", version,
             name);
}

sd_status xpu_cl_describe(const xpu_cl_driver *d, cl_device_id id,
                          device_desc *out, int64_t *memory)
{
    int64_t units, local, cache;
    cl_int err;

    memset(out, 0, sizeof *out);
    name_device(d, id, out);
    if ((err = ask_size(d, id, CL_DEVICE_MAX_COMPUTE_UNITS, MOST_UNITS,
                        &units)) ||
        (err = ask_size(d, id, CL_DEVICE_LOCAL_MEM_SIZE, MOST_BYTES, &local)) ||
        (err = ask_size(d, id, CL_DEVICE_GLOBAL_MEM_SIZE, MOST_BYTES, memory)))
        return xpu_cl_status(err, "asking what the device has");
    ask_size(d, id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, MOST_BYTES, &cache);
    out->kind = DEVICE_CL;
    out->lanes = 1;
    out->group = 64;
    if (!out->crowd && is_gpu(d, id)) { /* one that devices.def has not */
        out->crowd = 256;
        out->access = 16;
        out->registers = 256;
    }
    out->units = (int)units;
    out->local_bytes = (size_t)local;
    out->cache_bytes = (size_t)cache;
    out->libs = 0;
    out->features &=
        has_extension(d, id, "cl_intel_subgroup_matrix_multiply_accumulate") &&
                has_extension(d, id, "cl_intel_subgroup_local_block_io")
            ? DEVICE_HAS_DPAS16 | DEVICE_HAS_DPAS8 | DEVICE_HAS_VISA |
                  (has_extension(d, id, "cl_intel_subgroup_2d_block_io")
                       ? DEVICE_HAS_BLOCK2D
                       : 0)
            : 0;
    if (ask_number(d, id, CL_DEVICE_DOUBLE_FP_CONFIG))
        out->features |= DEVICE_HAS_F64;
    if (has_extension(d, id, "cl_khr_fp16"))
        out->features |= DEVICE_HAS_F16;
    if (ask_number(d, id, CL_DEVICE_MAX_NUM_SUB_GROUPS))
        out->features |= DEVICE_HAS_SUBGROUPS;
    return NULL;
}

/* ---- masks and tiles ---- */

typedef struct {
    int root, tile;
} mask_entry; /* tile -1: all of it */

static int mask_number(const char *s, char **end)
{
    return (int)SD_MIN(strtol(s, end, 10), (long)INT_MAX);
}

/* "0,2.1": false on anything else. */
static bool parse_mask(const char *s, mask_entry *e, int *n)
{
    *n = 0;
    while (*s) {
        char *end;

        if (*n == XPU_CL_MOST_DEVICES || !isdigit((unsigned char)*s))
            return false;
        e[*n] = (mask_entry){mask_number(s, &end), -1};
        if (*end == '.' && isdigit((unsigned char)end[1]))
            e[*n].tile = mask_number(end + 1, &end);
        if (*end == ',')
            end++;
        else if (*end)
            return false;
        ++*n;
        s = end;
    }
    return *n > 0;
}

/* Intel's driver applies ZE_AFFINITY_MASK itself.  Then it shows as many
 * devices as the mask names, and there is nothing left to do; other drivers
 * show all. */
static bool is_masked(const mask_entry *e, int n, int ndev)
{
    uint64_t roots = 0;

    for (int i = 0; i < n; i++) {
        if (e[i].root >= ndev)
            return true;
        roots |= 1ull << e[i].root;
    }
    return __builtin_popcountll(roots) >= ndev;
}

static cl_int split(const xpu_cl_driver *d, cl_device_id id,
                    const cl_device_partition_property *how, cl_device_id *out,
                    cl_uint *n)
{
    cl_int err = d->api.CreateSubDevices(id, how, 0, NULL, n);

    if (err || *n > XPU_CL_MOST_DEVICES)
        return err ? err : CL_INVALID_DEVICE_PARTITION_COUNT;
    return d->api.CreateSubDevices(id, how, *n, out, NULL);
}

static void add(xpu_cl_driver *d, cl_device_id id, bool is_sub)
{
    if (d->ndev < XPU_CL_MOST_DEVICES) {
        d->is_sub[d->ndev] = is_sub;
        d->dev[d->ndev++] = id;
    } else if (is_sub) {
        d->api.ReleaseDevice(id);
    }
}

/* Tiles of a GPU are devices of their own; keep -1: all, else that one. */
static void add_tiles(xpu_cl_driver *d, cl_device_id id, int keep)
{
    static const cl_device_partition_property by_tile[] = {
        CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, CL_DEVICE_AFFINITY_DOMAIN_NUMA,
        0};
    cl_device_id tile[XPU_CL_MOST_DEVICES];
    cl_uint n = 0;

    if (!is_gpu(d, id) || split(d, id, by_tile, tile, &n) || !n) {
        add(d, id, false);
        return;
    }
    for (cl_uint i = 0; i < n; i++)
        if (keep < 0 || keep == (int)i)
            add(d, tile[i], true);
        else
            d->api.ReleaseDevice(tile[i]);
}

static sd_status add_equal(xpu_cl_driver *d, cl_device_id id, int64_t parts)
{
    cl_device_partition_property equally[] = {CL_DEVICE_PARTITION_EQUALLY, 0,
                                              0};
    cl_device_id part[XPU_CL_MOST_DEVICES];
    int64_t units;
    cl_uint n = 0;
    cl_int err;

    if ((err =
             ask_size(d, id, CL_DEVICE_MAX_COMPUTE_UNITS, MOST_UNITS, &units)))
        return xpu_cl_status(err, "asking for compute units");
    if (parts > units || parts > XPU_CL_MOST_DEVICES)
        return sd_error(SD_INVALID,
                        "SUNDOG_CL_SPLIT=%" PRId64 ": %" PRId64
                        " is the most for a device of %" PRId64
                        " compute units",
                        parts, SD_MIN(units, XPU_CL_MOST_DEVICES), units);
    equally[1] = units / parts;
    if ((err = split(d, id, equally, part, &n)))
        return sd_note(xpu_cl_status(err, "clCreateSubDevices"),
                       "SUNDOG_CL_SPLIT=%" PRId64, parts);
    for (cl_uint i = 0; i < n; i++)
        if ((int64_t)i < parts)
            add(d, part[i], true);
        else
            d->api.ReleaseDevice(part[i]);
    return NULL;
}

static sd_status add_roots(xpu_cl_driver *d, const cl_device_id *root, int n,
                           const sd_options *opt)
{
    const char *text = getenv("ZE_AFFINITY_MASK");
    int64_t parts = sd_opt_int(opt, SD_OPT_CL_SPLIT);
    mask_entry mask[XPU_CL_MOST_DEVICES];
    bool masked = false;
    sd_status st;
    int nmask = 0;

    if (text && *text && is_gpu(d, root[0])) {
        if (!parse_mask(text, mask, &nmask))
            return sd_error(SD_INVALID,
                            "ZE_AFFINITY_MASK=%s: a list such as "
                            "0,1.0 is wanted",
                            text);
        masked = is_masked(mask, nmask, n);
    }
    if (!nmask || masked)
        for (nmask = 0; nmask < n; nmask++)
            mask[nmask] = (mask_entry){nmask, -1};
    for (int i = 0; i < nmask; i++) {
        cl_device_id id = root[mask[i].root];

        if (parts > 1) {
            if ((st = add_equal(d, id, parts)))
                return st;
        } else if (parts < 0 || mask[i].tile >= 0) {
            add_tiles(d, id, mask[i].tile);
        } else {
            add(d, id, false);
        }
    }
    if (!d->ndev)
        return sd_error(SD_INVALID,
                        "no OpenCL device has a part of that name "
                        "(ZE_AFFINITY_MASK=%s, SUNDOG_CL_SPLIT=%" PRId64 ")",
                        text ? text : "", parts);
    return NULL;
}

/* ---- platforms ---- */

/* Devices of a type that take SPIR-V; *seen tells of one that does not. */
static int usable(const xpu_cl_driver *d, cl_platform_id p, cl_device_type type,
                  cl_device_id *out, char *seen, size_t size)
{
    cl_device_id all[XPU_CL_MOST_DEVICES];
    cl_uint n = 0;
    int good = 0;

    if (d->api.GetDeviceIDs(p, type, XPU_CL_MOST_DEVICES, all, &n))
        return 0;
    for (cl_uint i = 0; i < SD_MIN(n, (cl_uint)XPU_CL_MOST_DEVICES); i++)
        if (takes_spirv(d, all[i]))
            out[good++] = all[i];
        else
            ask_text(d, all[i], CL_DEVICE_NAME, seen, size);
    return good;
}

static sd_status choose_devices(xpu_cl_driver *d, const sd_options *opt,
                                bool cpu_too)
{
    static const cl_device_type type[] = {CL_DEVICE_TYPE_GPU,
                                          CL_DEVICE_TYPE_CPU};
    cl_device_id root[XPU_CL_MOST_DEVICES];
    cl_platform_id platform[16];
    char seen[128] = "";
    cl_uint n = 0;

    if (d->api.GetPlatformIDs(SD_COUNTOF(platform), platform, &n))
        n = 0;
    n = SD_MIN(n, (cl_uint)SD_COUNTOF(platform));
    for (int t = 0; t < (cpu_too ? 2 : 1); t++)
        for (cl_uint i = 0; i < n; i++) {
            int found =
                usable(d, platform[i], type[t], root, seen, sizeof seen);

            if (found) {
                d->platform = platform[i];
                d->is_cpu = type[t] == CL_DEVICE_TYPE_CPU;
                return add_roots(d, root, found, opt);
            }
        }
    if (*seen)
        return sd_error(SD_NOT_FOUND,
                        "%s: the OpenCL device \"%s\" takes no IL (SPIR-V), "
                        "and no other does",
                        d->library, seen);
    if (!n)
        return sd_error(SD_NOT_FOUND,
                        "%s: no OpenCL driver (the loader opens those that "
                        "*.icd files in /etc/OpenCL/vendors or OCL_ICD_VENDORS "
                        "name)",
                        d->library);
    return sd_error(SD_NOT_FOUND, "%s: %u OpenCL drivers, no %s", d->library, n,
                    cpu_too ? "GPU or CPU device" : "GPU device");
}

/* Unified shared memory when every device has it. */
static void find_usm(xpu_cl_driver *d)
{
    xpu_cl_api *a = &d->api;

    for (int i = 0; i < d->ndev; i++)
        if (!has_extension(d, d->dev[i], "cl_intel_unified_shared_memory"))
            return;
#define FIND(field, type) \
    a->field = (cl##type##INTEL_fn)a->GetExtensionFunctionAddressForPlatform( \
        d->platform, "cl" #type "INTEL")
    FIND(HostMemAlloc, HostMemAlloc);
    FIND(DeviceMemAlloc, DeviceMemAlloc);
    FIND(MemFree, MemFree);
    FIND(SetKernelArgMemPointer, SetKernelArgMemPointer);
    FIND(EnqueueMemcpy, EnqueueMemcpy);
#undef FIND
    d->usm = a->HostMemAlloc && a->DeviceMemAlloc && a->MemFree &&
             a->SetKernelArgMemPointer && a->EnqueueMemcpy;
}

/* ---- libraries ---- */

static sd_status open_library(xpu_cl_driver *d, const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const char *missing = NULL, *why;

    if (!lib) {
        why = dlerror();
        return sd_error(SD_NOT_FOUND, "%s", why ? why : path);
    }
#define X(name) \
    if (!(d->api.name = (__typeof__(d->api.name))dlsym(lib, "cl" #name))) \
        missing = "cl" #name;
    XPU_CL_OPTIONAL(X)
    missing = NULL;
    XPU_CL_SYMBOLS(X)
#undef X
    if (missing)
        return sd_error(SD_NOT_FOUND, "%s is no OpenCL library: it has no %s",
                        path, missing);
    snprintf(d->library, sizeof d->library, "%s", path);
    return NULL;
}

static sd_status try_library(xpu_cl_driver *d, const char *path,
                             const sd_options *opt, bool cpu_too)
{
    sd_status st;

    memset(d, 0, sizeof *d);
    if ((st = open_library(d, path)) ||
        (st = choose_devices(d, opt, cpu_too))) {
        for (int i = 0; i < d->ndev; i++)
            if (d->is_sub[i])
                d->api.ReleaseDevice(d->dev[i]);
        d->ndev = 0;
        return st;
    }
    find_usm(d);
    return NULL;
}

sd_status xpu_cl_find(xpu_cl_driver *d, const sd_options *opt, bool cpu_too)
{
    const char *given = sd_opt_str(opt, SD_OPT_CL_LIBRARY);
    const char *intel = "libintelocl.so";
    char path[4096];
    sd_status first, st;

    if (given)
        return sd_note(try_library(d, given, opt, cpu_too),
                       "SUNDOG_CL_LIBRARY");
    if (!(first = try_library(d, "libOpenCL.so.1", opt, cpu_too)) || !cpu_too ||
        first->code != SD_NOT_FOUND)
        return first;
    st = try_library(d, intel, opt, true);
    for (int i = 0; st && xpu_python_file(false, intel, i, path, sizeof path);
         i++) {
        sd_status_free(st);
        st = try_library(d, path, opt, true);
    }
    if (!st) {
        sd_status_free(first);
        return NULL;
    }
    if (st->code == SD_NOT_FOUND) {
        st = sd_note(st, "%s; Intel's runtime for CPUs", first->message);
        sd_status_free(first);
        return sd_note(st, "no OpenCL device; a driver that takes SPIR-V is "
                           "wanted, and SUNDOG_DEVICE=host needs none");
    }
    sd_status_free(first);
    return st;
}
