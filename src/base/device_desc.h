/* What a device is, as facts: all that compiling knows of one.  Plain data,
 * copied freely; made by xpu from a driver, or by name from devices.def for a
 * device that is not there. */
#ifndef SD_DEVICE_DESC_H
#define SD_DEVICE_DESC_H

#include "base.h"

typedef enum {
#define DEVICE_KIND(id, name, title, open, code, flops, bytes, launch, meet) DEVICE_##id,
#include "device_kinds.def"
#undef DEVICE_KIND
    DEVICE_KIND_COUNT
} device_kind;
typedef struct {
    const char *name, *title;
    double flops, bytes, launch; /* a ns, a ns, ns: of device_guess_ns */
    double meet; /* bytes that a member of a gang reads while all meet */
} device_kind_info;
extern const device_kind_info device_kind_table[DEVICE_KIND_COUNT];
/* THE cost model: a guess of the nanoseconds that such work takes on one thread,
 * too high rather than too low, to tell small from large only. */
static inline double device_guess_ns(device_kind k, double flops, double bytes)
{
    return flops / device_kind_table[k].flops +
           bytes / device_kind_table[k].bytes;
}
/* By that guess: work on the host of no more is one thread's. */
#define DEVICE_ALONE_NS 20e3
#define DEVICE_ANY ((1u << DEVICE_KIND_COUNT) - 1)
/* Whose drivers compile kernels of others. */
#define DEVICE_COMPILES (1u << DEVICE_CL | 1u << DEVICE_CUDA)
typedef enum { DEVICE_HAS_F64 = 1, DEVICE_HAS_F16 = 2, DEVICE_HAS_AVX512 = 4,
               DEVICE_HAS_SUBGROUPS = 8,
               DEVICE_HAS_VNNI = 16, /* of AVX-512 */
               DEVICE_HAS_MMA = 32 /* warps multiply matrices: mma.sync of
                                      bf16, f16 and bytes */,
               DEVICE_HAS_DPAS16 = 64, /* Intel's engine, of the same, for 16 */
               DEVICE_HAS_DPAS8 = 128 /* items, or for 8 */,
               DEVICE_HAS_WGMMA = 256 /* four warps multiply what lies in local
                                         memory: of Hopper alone */,
               DEVICE_HAS_VOTES = 512, /* items of a sub-group tell each other a
                                          bit each, as a word */
               DEVICE_HAS_NARROW = 1024, /* functions of bf16 by instructions
                                            that approximate are right for each
                                            bf16: tried on such a chip */
               DEVICE_HAS_BLOCK2D = 2048, /* messages of a sub-group of 16 read
                                             blocks of a matrix, 2-D, */
               DEVICE_HAS_VISA = 4096, /* which Intel's assembly in a kernel asks
                                          for; without it functions of these
                                          names are linked */
               DEVICE_HAS_PEERS = 8192, /* kernels read the memory of all devices
                                           of the process */
               DEVICE_HAS_TF32 = 16384 /* its matrix instructions take f32, of
                                          which they read 10 bits of mantissa */
} device_feature;
typedef enum { DEVICE_LIB_ONEDNN = 1, DEVICE_LIB_LAPACK = 2,
               DEVICE_LIB_BYTES = 4 /* oneDNN's products of s8 are exact here */
} device_lib;

typedef struct {
    device_kind kind;
    char name[64];       /* "host:v4", "cl:pvc": also what --target takes */
    char driver[128];    /* driver and its version; empty: described only */
    int lanes;           /* f32 lanes of a vector (8, 16); GPUs: 1 */
    int units;           /* threads or compute units */
    int group;           /* work items of a group we ask for; host: 1 */
    int subgroup;        /* required sub-group size; 0: leave it open */
    int crowd;           /* GPUs: items of a group that streams memory */
    int access;          /* GPUs: bytes that an item may read or write at once;
                            0: an element */
    int registers;       /* GPUs: bytes of them that an item has; 0: unknown */
    size_t local_bytes;  /* memory of a group (SLM); host: scratch in L1 */
    size_t local_most;   /* GPUs: what a group may have that leaves its unit to
                            no other; 0: no more than that */
    size_t cache_bytes;  /* L2 of a unit */
    uint64_t features;   /* device_feature bits */
    uint64_t libs;       /* device_lib bits: calls that the plan may use */
} device_desc;

/* The described device of that name (rows of devices.def: host:v3, host:v4,
 * cl:pvc, cuda:sm_90 ..), false when there is none. */
bool device_desc_of_name(const char *name, device_desc *out);
/* The described device that a driver calls so, NULL when there is none. */
const char *device_name_of_product(const char *product);
/* Mistakes of drivers: quirks.def. */
typedef enum {
#define QUIRK(id, what) DEVICE_QUIRK_##id,
#include "quirks.def"
    DEVICE_QUIRK_COUNT
} device_quirk;
bool device_has_quirk(const device_desc *d, device_quirk q);
/* As a row DRIVER there says it. */
bool device_has_driver(const device_desc *d, const char *devices, int first,
                       int last);

/* Custom-call targets of our own: custom_call.def. */
typedef enum {
#define CUSTOM_CALL(id, name, devices, launches) DEVICE_CUSTOM_##id,
#include "custom_call.def"
#undef CUSTOM_CALL
    DEVICE_CUSTOM_COUNT
} device_custom;
typedef struct {
    const char *name;
    unsigned devices;
    int launches;
} device_custom_info;
extern const device_custom_info device_custom_table[DEVICE_CUSTOM_COUNT];
/* The row of that target, NULL when there is none. */
const device_custom_info *device_custom_of_name(const char *name);
bool device_has_custom(device_kind kind, const char *name);

int device_desc_count(void);
const device_desc *device_desc_at(int i);

#endif
