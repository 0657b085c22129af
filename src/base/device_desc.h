/* device_desc: the facts about a device, and all that compiling knows of it.
 * Plain data, copied freely.  xpu fills one in from what a driver says;
 * devices.def has described ones, which are compiled for by name without the
 * device being there. */
#ifndef SD_DEVICE_DESC_H
#define SD_DEVICE_DESC_H

#include "base.h"

typedef enum {
#define DEVICE_KIND(id, name, title, open, code, flops, bytes, launch, meet, beside, library) DEVICE_##id,
#include "device_kinds.def"
#undef DEVICE_KIND
    DEVICE_KIND_COUNT
} device_kind;
typedef struct {
    const char *name, *title;
    double flops, bytes; /* of one thread, per nanosecond: device_guess_ns */
    double launch;       /* nanoseconds that one launch takes */
    double meet; /* bytes that a member of a gang could read in the time that
                    its members take to meet */
    double beside; /* 0: collectives do not run beside kernels; else operations
                      that a product does in the time of a byte */
    sd_option library; /* names what opens its devices; SD_OPT_COUNT: none */
} device_kind_info;
extern const device_kind_info device_kind_table[DEVICE_KIND_COUNT];
/* THE cost model: a guess of the nanoseconds that one thread takes for so many
 * operations on so many bytes.  It is too high rather than too low, and good
 * for telling small work from large, for nothing finer. */
static inline double device_guess_ns(device_kind k, double flops, double bytes)
{
    return flops / device_kind_table[k].flops +
           bytes / device_kind_table[k].bytes;
}
/* Work on the host of no more than this many guessed nanoseconds is left to one
 * thread: sharing it out would take longer. */
#define DEVICE_ALONE_NS 20e3
#define DEVICE_ANY ((1u << DEVICE_KIND_COUNT) - 1)
/* Kinds whose drivers compile kernels that a program brings as source. */
#define DEVICE_COMPILES (1u << DEVICE_CL | 1u << DEVICE_CUDA)
typedef enum {
    DEVICE_HAS_F64 = 1,
    DEVICE_HAS_F16 = 2,
    DEVICE_HAS_AVX512 = 4,
    DEVICE_HAS_SUBGROUPS = 8,
    DEVICE_HAS_VNNI = 16, /* AVX-512's sums of products of bytes */
    /* NVIDIA: mma.sync, with which a warp multiplies matrices of bf16, f16 and
     * bytes. */
    DEVICE_HAS_MMA = 32,
    /* Intel: dpas, the same for sub-groups of 16 items or of 8. */
    DEVICE_HAS_DPAS16 = 64,
    DEVICE_HAS_DPAS8 = 128,
    /* Hopper: wgmma, with which four warps multiply matrices that lie in local
     * memory. */
    DEVICE_HAS_WGMMA = 256,
    /* Items of a sub-group vote: each gives a bit, each gets the word of
     * all. */
    DEVICE_HAS_VOTES = 512,
    /* The chip's approximate instructions (tanh.approx, ...) give the correctly
     * rounded bf16 for every bf16: tried on such a chip. */
    DEVICE_HAS_NARROW = 1024,
    /* Intel: messages by which a sub-group of 16 reads a 2-D block of a
     * matrix. */
    DEVICE_HAS_BLOCK2D = 2048,
    /* Intel: dpas and these messages are written as Intel's assembly inside the
     * kernel.  Without it the kernel calls functions that are linked to it. */
    DEVICE_HAS_VISA = 4096,
    /* Kernels read the memory of all devices of the process. */
    DEVICE_HAS_PEERS = 8192,
    /* Matrix instructions take f32, and read 10 bits of its mantissa. */
    DEVICE_HAS_TF32 = 16384,
    /* Intel's Xeons: tiles of 16 x 16 sums, of products of bf16 and of bytes, in
     * registers of their own. */
    DEVICE_HAS_AMX = 32768,
    /* AVX-512's sums of products of bf16. */
    DEVICE_HAS_BF16 = 65536,
    /* All matrix instructions. */
    DEVICE_HAS_ENGINES = DEVICE_HAS_MMA | DEVICE_HAS_DPAS16 |
                         DEVICE_HAS_DPAS8 | DEVICE_HAS_WGMMA |
                         DEVICE_HAS_TF32 | DEVICE_HAS_AMX |
                         DEVICE_HAS_BF16
} device_feature;
typedef enum {
    DEVICE_LIB_ONEDNN = 1,
    DEVICE_LIB_LAPACK = 2, /* CUDA: cuSOLVER, of large matrices */
    DEVICE_LIB_BYTES = 4 /* oneDNN's sums of products of s8 are exact here */
} device_lib;

typedef struct {
    device_kind kind;
    char name[64];       /* "host:v4", "cl:pvc": also what --target takes */
    char driver[128];    /* driver and its version; empty: described only */
    int lanes;           /* f32 lanes of a vector (8, 16); GPUs: 1 */
    int units;           /* threads or compute units */
    int group;           /* work items of a usual group; host: 1 */
    int subgroup;        /* sub-group size that kernels ask for; 0: any */
    int crowd;           /* GPUs: work items of a group of a kernel that only
                            streams memory */
    int access;          /* GPUs: bytes that an item may read or write at once;
                            0: an element */
    int registers;       /* GPUs: bytes of registers of an item; 0: unknown */
    size_t local_bytes;  /* local memory of a usual group; host: scratch that
                            fits into L1 */
    size_t local_most;   /* GPUs: local memory of a group that has its unit for
                            itself; 0: local_bytes */
    size_t cache_bytes;  /* L2 of a unit */
    uint64_t features;   /* device_feature bits */
    uint64_t libs;       /* device_lib bits: calls that the plan may use */
} device_desc;

/* wgmma: results of a tile, at least. */
enum { DEVICE_WIDE_ROWS = 128, DEVICE_WIDE_COLUMNS = 64 };

/* Has a product of so many results large tiles for half of all units?  Then
 * wgmma takes it. */
static inline bool device_fills_wide(const device_desc *dev, double results)
{
    return results >= 128.0 * 128 * dev->units / 2;
}

/* A row of `row` times `each` numbers that is filled up to whole lines of so
 * many numbers, in units of `each`; 0: more of it would be filled than not. */
static inline int64_t device_wide_row(int64_t row, int64_t each, int64_t line)
{
    for (int64_t n = row; n < 2 * row; n++)
        if (n * each % line == 0)
            return n;
    return 0;
}

/* The described device of that name, a row of devices.def ("host:v4",
 * "cuda:sm_90"); false when there is none. */
bool device_desc_of_name(const char *name, device_desc *out);
/* dev without the matrix instructions that nobody wants, whose sums have bits of
 * their own. */
device_desc device_as_wanted(const device_desc *dev, const sd_options *opt);
/* The name of the described device that a driver calls `product`; NULL when
 * there is none. */
const char *device_name_of_product(const char *product);
/* Mistakes of drivers, which the code for them goes around: quirks.def. */
typedef enum {
#define QUIRK(id, what) DEVICE_QUIRK_##id,
#include "quirks.def"
    DEVICE_QUIRK_COUNT
} device_quirk;
bool device_has_quirk(const device_desc *d, device_quirk q);
/* Is it one of `devices` with a driver of version first to last?  The columns
 * of a DRIVER row of quirks.def. */
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
