/* thunk: the program that compiling hands to running: the steps in launch
 * order, kernels' binaries, constants, the table of buffers, and sections that
 * nothing here reads and PJRT's callers ask for later.  It knows neither HLO
 * nor LLVM nor a driver, and can be printed, verified, saved and loaded.  Once
 * built it is immutable, shared by threads, and reference counted. */
#ifndef THUNK_H
#define THUNK_H

#include <math.h>

#include "base.h"
#include "device_desc.h"
#include "libcall.h"

typedef enum { THUNK_B_PARAM, THUNK_B_OUTPUT, THUNK_B_TEMP, THUNK_B_CONST,
               THUNK_B_IDS, /* who runs it: replica and partition, two u32 */
               THUNK_B_COUNT } thunk_buffer_kind;
enum { THUNK_IDS_BYTES = 8, THUNK_PARTICIPANTS = 1 << 20 /* at most */ };
typedef struct {
    thunk_buffer_kind kind;
    int index;       /* PARAM, OUTPUT: number */
    uint64_t bytes;
    int alias;       /* OUTPUT: parameter whose memory it takes when that one
                        is donated (copied into it first when not), or -1 */
    bool alias_must; /* the framework paired them */
    uint64_t at;     /* CONST: offset in the constants; TEMP: 0, one slab */
} thunk_buffer;

typedef struct { int buffer; uint64_t offset, bytes; } thunk_slice;
static inline bool thunk_slices_overlap(thunk_slice x, thunk_slice y)
{
    return x.buffer == y.buffer && x.offset < y.offset + y.bytes &&
           y.offset < x.offset + x.bytes;
}

typedef enum {
#define THUNK(id, name) THUNK_##id,
#include "thunk.def"
#undef THUNK
    THUNK_KIND_COUNT
} thunk_kind;
extern const char *const thunk_kind_name[THUNK_KIND_COUNT];

typedef struct thunk thunk;
typedef struct { thunk *at; int n; } thunk_seq;

struct thunk {
    thunk_kind kind;
    const char *name;     /* the HLO instruction's */
    const char *op_name;  /* JAX's; may be NULL */
    thunk_slice *arg;     /* KERNEL: the slots in order; LIBCALL: operands then
                             results; COPY, COLLECTIVE: from, to; of one
                             with a kernel: from, then slots;
                             WHILE: predicate;
                             COND: index (s32) or predicate (pred) */
    int narg;
    int kernel;           /* KERNEL, COLLECTIVE; -1: it has none */
    const libcall *call;  /* LIBCALL */
    const int64_t *attr;  /* SEND, RECV: the channel; CUSTOM: how many of arg are
                             operands, then of each arg its XLA element type,
                             rank and dimensions; COLLECTIVE: a
                             thunk_collective */
    int nattr;
    thunk_seq *seq;       /* WHILE: cond, body; COND: branches; BESIDE: its
                             steps, collectives and kernels */
    int nseq;
    int64_t trip;         /* WHILE: how often it turns, whatever its condition
                             says, or -1; KERNEL that is a loop: -1 where its
                             flops and bytes say nothing, or it is told to end;
                             JOIN: 1: the last BESIDE before it may go on */
    const char *target;   /* CUSTOM: name; config: its attributes, as MLIR
                             prints a dictionary */
    const char *config;
    double flops, bytes;  /* estimate, for threading and profiles */
};

/* How often the inside of a loop of so many trips turns, whose outside turns
 * `outside` times in one run: one that does not say does it without end. */
static inline double thunk_turns_inside(int64_t trip, double outside)
{
    return trip < 0 ? INFINITY : outside * (double)SD_MAX(trip, 1);
}

/* A COLLECTIVE fills its result r with blocks of the operands x[j] of the
 * members j of its group (thunk_collective.c).  All members run the same step.
 * For the member whose number in the group is `me`:
 *   GATHER      r[o][j] = x[j][o]
 *   ALL_TO_ALL  r[o][j] = x[j][o][me]
 *   BROADCAST   r = x[0]
 *   PERMUTE     groups are pairs: r of the second is x of the first
 * o runs from 0 to outer - 1, and an element is a block of bytes.  Where there
 * is no member j, zeros are written. A COLLECTIVE with a kernel has no r: the
 * kernel's first slots are the blocks, one of each member, in the memory where
 * they lie. */
typedef enum { THUNK_COLL_GATHER, THUNK_COLL_ALL_TO_ALL, THUNK_COLL_PERMUTE,
               THUNK_COLL_BROADCAST, THUNK_COLL_COUNT } thunk_collective_kind;
extern const char *const thunk_collective_name[THUNK_COLL_COUNT];
typedef struct {
    thunk_collective_kind kind;
    int64_t outer, block;
    int64_t ngroup, size;  /* groups, and places in each */
    const int64_t *member; /* participants; -1 fills smaller groups */
} thunk_collective;

/* The steps of a BESIDE begin behind those that stand before it.  They run in
 * their order, and in that of other BESIDEs, while the steps that follow it run:
 * up to the next JOIN of the same sequence, which there must be, or to the next
 * but one, if it lets the last BESIDE go on.  A device that has no queue for
 * that runs them where they stand. */

typedef enum {
    THUNK_BIN_X86, THUNK_BIN_SPIRV, THUNK_BIN_PTX,
    THUNK_BIN_SPIRV_LARGE /* to be built for twice the registers an item */
} thunk_bin_kind;
typedef struct { thunk_bin_kind kind; const uint8_t *data; size_t bytes; }
    thunk_binary;
typedef struct { /* one entry point */
    const char *symbol;
    int binary;
    int nslot;
    int64_t tiles;
    int group;            /* work items of a group; host: 1 */
    uint64_t local_bytes; /* host: scratch a worker needs */
    double flops, bytes;
    bool loop;            /* host: a loop, which ends when the bool that its
                             scratch points to is set; cuda: one that takes long
                             or has no known end, which ends when the word at its
                             last parameter is not 0.  The runtime adds that
                             parameter to the slots */
} thunk_kernel;

typedef struct { sd_dtype dtype; int rank; const int64_t *dim;
                 uint64_t bytes; const char *memory; } thunk_type;
typedef struct { const char *name; const uint8_t *data; size_t bytes; }
    thunk_section; /* "hlo" text, "cost", "options", "shardings", ... */

typedef struct thunk_program thunk_program;
struct thunk_program {
    sd_arena *arena;      /* owned; holds all below */
    int refs;             /* atomic */
    const char *name;
    device_desc device;   /* built for */
    thunk_type *param, *output;
    int nparam, noutput;
    bool *donatable;      /* per parameter */
    int nreplica, npartition;
    thunk_buffer *buffer;
    int nbuffer;
    uint8_t *constants;
    size_t constant_bytes;
    uint64_t temp_bytes;
    thunk_kernel *kernel;
    int nkernel;
    thunk_binary *binary;
    int nbinary;
    thunk_section *section;
    int nsection;
    thunk_seq seq;
    uint64_t fingerprint;
};

thunk_program *thunk_program_create(const char *name, const device_desc *d);
thunk_program *thunk_program_retain(thunk_program *p);
void thunk_program_release(thunk_program *p); /* takes NULL */
/* Builders, which copy strings and arrays into the program.  They are for
 * programs from thunk_program_create: one that was loaded cannot grow. */
int thunk_add_buffer(thunk_program *p, thunk_buffer b);
uint64_t thunk_add_constant(thunk_program *p, const void *data, size_t bytes);
int thunk_add_binary(thunk_program *p, thunk_bin_kind k, const void *data,
                     size_t bytes);
void thunk_add_section(thunk_program *p, const char *name, const void *data,
                       size_t bytes);
void thunk_set_collective(thunk_program *p, thunk *t,
                          const thunk_collective *c);
thunk_collective thunk_collective_of(const thunk *t); /* of a COLLECTIVE */
/* The first place among c->member where that participant stands, or -1. */
int64_t thunk_collective_find(const thunk_collective *c, int64_t participant);
int thunk_participants(const thunk_program *p); /* replicas x partitions */
const thunk_section *thunk_find_section(const thunk_program *p, const char *n);
void thunk_print(sd_buf *b, const thunk_program *p); /* thunk_sequence.txt */
/* An error unless every index is in range, every slice inside its buffer, and
 * every kernel's binary there.  Called for each program that is built or
 * loaded. */
sd_status thunk_verify(const thunk_program *p);
#define THUNK_VERSION 10u /* of the bytes */
sd_status thunk_save(const thunk_program *p, sd_buf *out);
sd_status thunk_load(sd_bytes b, thunk_program **out);

#endif
