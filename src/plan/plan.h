/* plan: what is computed where, in which order, in which memory.
 *
 * In: an optimised module and a device_desc.  Out: the module with fusions,
 * one plan_kernel per distinct fusion, and a thunk_program that lacks only its
 * binaries.  All of it lives in the compile's arena except the thunk_program,
 * which is the caller's.  One thread.
 *
 * A kernel computes something at each point of a box.  An *axis* is one side of
 * the box.  A *node* is one value at a point: a load, an operation on other
 * nodes, a sum over some axes, a store.  An *index expression* (plan_expr) says
 * where a load or store goes, given the position on each axis.  Softmax of 1000
 * rows of 300 f32, as plan_print.c prints it for host:v4, with notes:
 *
 *   a0: 1000 outer map seq tile 31      33 tiles, of up to 31 rows each
 *   a1: 300 inner reduce lane copies 4  a row; up to 4 vectors side by side
 *   area 0: park n4, 1216 bytes at 0, stages 1 to 2
 *   loops a0                            outside of all stages: the *nest*
 *   stage 0 {a1}: 64 lanes vector x4    one *pass* over the row, for n2
 *   stage 1 {a1}: 64 lanes rotate       one more, for n4 and n6
 *   stage 2 {a1}: vector                one more, for n8
 *   n0:f32 load s0[a1 + a0*300] @0
 *   n2:f32 reduce maximum n0, n1 over {a1} lanes 64 @0
 *   n3:f32 subtract n0, n2 @1           @1: no stage before 1 can know it
 *   n4:f32 exponential n3 parked @1     stage 1 writes it, stage 2 reads it
 *   n6:f32 reduce add n4, n5 over {a1} lanes 64 @1
 *   n7:f32 divide n4, n6 @2
 *   n8:f32 store n7 -> s1[a1 + a0*300] @2
 *
 * which runs like this:
 *
 *   a tile: 31 rows                     a thread's; on a GPU a work group's
 *   | loop a0
 *   | | stage 0, loop a1: n0 -> n2            after the loop n2 has its value
 *   | | stage 1, loop a1: n0, n3, n4 -> n6    n4 also goes to area 0
 *   | | stage 2, loop a1: n4, n7 -> n8        n4 comes from area 0
 *
 * One axis has place LANE.  Its positions are the elements of a vector on the
 * host and the work items of a group on a GPU.  An inner LANE, as above, means
 * that sums over it join their lanes.  With an outer one all inner loops run
 * inside of a vector: sums of columns, elementwise kernels, windows, products.
 *
 * On a GPU an item takes one position of LANE, or `vector` neighbouring ones,
 * which are copies: `load s0[..] by 4` is one access for four of them.  Where
 * LANE does not fill a group, its items also lie along an outer axis of place
 * CROWD: of a group of 256 items, 16 are along rows of 64 lanes by 4, and 16
 * rows are the crowd.
 *
 * What is read across LANE may be staged there: see PLAN_AREA_STAGE.
 *
 * plan_node.h has index expressions, axes and nodes, plan_sort.h kernels that
 * sort, plan_contract.h products in blocks; the rest is here.
 *
 * plan_lower makes axes and nodes.  plan_tile adds all that depends on the
 * device: places, tiles, copies, nest, passes, areas.  Emitters write it down.
 * docs/adr/0001-kernel-form.md is the contract in full,
 * docs/adr/0019-mapping-and-contractions.md says what comes next. */
#ifndef PLAN_H
#define PLAN_H

#include "plan_attend.h"
#include "plan_places.h"
#include "plan_contract.h"
#include "plan_sort.h"
#include "thunk.h"

/* ---- what a kernel is given, and its stages ---- */

typedef enum { PLAN_READ = 1, PLAN_WRITE = 2 } plan_access;
typedef struct { /* one pointer argument */
    sd_dtype dtype;
    int64_t count;      /* elements behind the pointer */
    uint8_t access;
    uint32_t align;
    bool noalias;       /* no other slot of the kernel may overlap it */
} plan_slot;

typedef struct { uint64_t axes; } plan_stage; /* inner axes it loops over */

/* ---- how a stage runs ---- */

/* A pass goes once round the loops of a stage, for the stage's sinks: its
 * stores, scatters and sums.  A sum over 64 lanes and one over 1 cannot share a
 * loop, so sums that keep unlike numbers of lanes have a pass each; what else
 * the stage writes is the first one's.
 *
 * plan_lanes says what becomes of the strided lanes of its sums (plan_order): */
typedef enum {
    PLAN_LANES_ONE,    /* There is one: elements are added in order. */
    PLAN_LANES_COPIES, /* Each lane is a copy of the loop's axis: 8 rows a step,
                          row i into accumulator i. */
    PLAN_LANES_MAJOR,  /* The loop runs once for each lane, rows 0, 8, 16 ..
                          first; an array keeps what each has. */
    PLAN_LANES_VECTOR, /* The loop is over LANE, and a lane is an element of
                          some vector or a work item.  Passes over LANE without
                          sums are of this kind too. */
    PLAN_LANES_ROTATE, /* The same, but a step takes one vector, and the vectors
                          of an array take turns as its accumulator. */
    PLAN_LANES_CHUNK,  /* The loop is over LANE, and a vector or a group has more
                          elements than the sum has lanes: it adds pieces. */
    PLAN_LANES_ITEMS,  /* Each lane is a row of a GPU's group (`strided`), which
                          join them in local memory. */
    PLAN_LANES_ACROSS, /* As ONE, so many positions of the loop's last axis at a
                          time as a vector has elements: squares of it and LANE
                          are turned in registers (plan_across.c). */
    PLAN_LANES_SHIFTED, /* As ONE, all positions of the loop at once: its rows
                           lie one after the other (plan_shifted.c). */
    PLAN_LANES_ROWS    /* By rows: as COPIES, with a loop over LANE innermost
                          and the accumulators in areas. */
} plan_lanes;
/* Where the loop over `axis` ends: from where the guard fails on, the pass takes
 * nothing that changes a sum.  Before that it holds, and so do these nodes. */
typedef struct {
    int axis;
    plan_guard guard;
    bool *holds;    /* [node] */
} plan_end;
typedef struct {
    int stage;
    int lanes;      /* strided lanes that it keeps of each sum; 0: no sums */
    plan_lanes how;
    int vectors;    /* of LANE in a step, if the pass runs over LANE */
    int ahead;      /* a load is also prefetched so many positions of the
                       innermost loop before it is needed; 0: it is not */
    bool *needs;    /* [node]: the pass computes it, or reads it from its area */
    const plan_end *end; /* host; NULL: all positions count */
    bool one_by_one;   /* host: copies are computed one after the other, not node
                       by node, so that few of their values live at a time */
    bool drops;     /* host: subnormal operands and sums of its CONTRACTs count
                       as 0 (docs/numerics.md) */
} plan_pass;

/* An area is a piece of local memory, or on the host of a thread's scratch. */
typedef enum {
    PLAN_AREA_PARK, /* The elements of a parked value, row-major over its inner
                       axes. */
    PLAN_AREA_JOIN, /* An element for each work item of a group, which join a sum
                       here.  A sum of several results has as many areas. */
    PLAN_AREA_STAGE, /* A tile of a staged LOAD: a row for each position of LANE,
                        an element for each of CROWD, and one of padding. */
    PLAN_AREA_SUMS, /* The accumulators of a kernel by rows: a row for each
                       strided lane, an element for each position of LANE in a
                       tile, and some padding. */
    PLAN_AREA_WORK  /* The work space of a sort or a call. */
} plan_area_what;
typedef struct {
    plan_area_what what;
    int owner;            /* the number of a node; -1: the kernel, for WORK */
    size_t offset, bytes;
    size_t row;           /* SUMS, STAGE: bytes from one row to the next */
    int first, last;      /* it is alive from stage `first` to stage `last` */
} plan_area;

/* A while step as one kernel, made by a target: what it runs, and the memory
 * that its steps name, overlapping parts as one.  The scratch of such a kernel
 * begins with the address of the run's mark, and its kernels' follows. */
enum { PLAN_LOOP_HEAD = 64 };
typedef struct { thunk_slice slice; bool written; } plan_cell;
typedef struct {
    const thunk *step;
    plan_kernel **kernel; /* as the steps number them */
    sd_vec(plan_cell) cell; /* the slots */
    bool counted; /* flops and bytes of the kernel are those of all turns */
    bool told;    /* cuda: it takes long or has no known end, and a word, whose
                     address is its last parameter, ends it */
    int unasked;  /* so many turns pass between two looks at that, a power of
                     two */
    bool sorts;   /* a step compares and swaps by code of its own */
} plan_loop;

/* GPUs: a scatter whose updates have been sorted by their places.  A position of
 * `axis`, which counts the updates of a batch, is one of the sorted list; where
 * a run of equal places begins, it takes the updates of the whole run in their
 * order, which are the positions that nodes see; elsewhere it takes none.
 * Slots `key` and `update` hold, for each batch, the places (in units that all
 * windows begin apart; all ones: such an update is left out) and the numbers of
 * the updates, s32; or, where those are sorted themselves, these: then nodes
 * see positions of the list. */
typedef struct {
    int axis, batch;  /* batch: its axis; -1: there is one */
    int key, update;
    bool last;        /* only the last update of a run counts */
    bool moved;       /* the updates are in the list */
} plan_runs;

/* GPUs: a scatter of updates of one word, into places of which a group's local
 * memory holds a bucket.  Place p is in bucket (p >> near) mod (1 << bits), so
 * that neither neighbours nor the first few of many places are all in one.  The
 * updates of a batch come by buckets, those of a bucket in their order, in which
 * its group, of one sub-group, takes them.  Slots: the places of the updates,
 * u32 (all ones: such an update is left out); the updates; the array, [batches]
 * [places]; the numbers with which a MOVE put the updates in order (plan_sort.h),
 * whose digits are buckets. */
typedef struct {
    int64_t batches, n, places; /* n: updates of a batch */
    int bits, near;
    int64_t pieces;             /* of the numbers */
    plan_body *body;
} plan_buckets;
enum {
    PLAN_BUCKET_MARKS = 2,  /* bytes that a position has beside its word */
    PLAN_BUCKET_AT_ONCE = 8 /* positions that an item reads before it writes */
};
/* Positions of a bucket in local memory: a group of that many items copies all
 * of them in whole steps, so some may be of no place. */
int64_t plan_bucket_room(const plan_buckets *b, int group);

/* GPUs: a kernel may be done by several, one after the other.  Their slots are
 * pieces of its own, or numbers. */
typedef struct {
    int slot;       /* of the whole; -1: an s64 in the program's constants */
    size_t at, bytes;
    int64_t number;
} plan_part_arg;
typedef struct {
    plan_kernel *kernel;
    plan_part_arg *arg; /* one a slot of it */
} plan_part;

/* Where an axis of the nest is cut, and how those inside of it are in each part.
 * A stretch is the positions up to where the next one begins.  Known: each
 * question (plan_asks) about the axis alone has one answer there, and one about
 * others too holds there or is asked. */
typedef struct plan_cut plan_cut;
typedef struct {
    int64_t from;
    bool known;
    const plan_cut *inside; /* NULL: no axis is cut */
} plan_stretch;
struct plan_cut {
    int axis, n;
    const plan_stretch *stretch; /* n of them, the first at 0 */
};

/* LOOP, ROW and COLUMN differ in dumps only. */
typedef enum { PLAN_LOOP, PLAN_ROW, PLAN_COLUMN, PLAN_SCATTERING, PLAN_SORTING,
               PLAN_CALLING, PLAN_ATTENDING, PLAN_PLACING,
               PLAN_BUCKETS } plan_kernel_class;
struct plan_kernel {
    const char *name;      /* as in HLO: "fusion", "wrapped_multiply" */
    int number;            /* among the plan's distinct kernels */
    plan_kernel *same_hash; /* the one before it of the same hash */
    plan_kernel_class cls;
    plan_axis *axis;
    plan_node **node;      /* operands before users */
    plan_slot *slot;
    plan_stage *stage;
    int naxis, nouter, nnode, nslot, nstage;
    int *nest;             /* axes whose loops are outside of the stages, the
                              outermost first; LANE is the last if it is one.
                              They are the outer axes, and on the host those
                              over which a scatter runs */
    plan_pass *pass;       /* in their order; a CONTRACT in blocks has none */
    plan_area *area;
    int nnest, npass, narea;
    int lanes;             /* host: of a vector along LANE; GPUs: 1 */
    int group;             /* GPUs: work items of a group */
    int items;             /* GPUs: of these along LANE, the others are along
                              the axis of place CROWD */
    int vector;            /* GPUs: neighbouring positions of LANE that an item
                              takes: its copies */
    bool keeps;            /* GPUs: each pass takes a row in one step, and what an
                              item makes of it stays in registers for the passes
                              that follow */
    int teams;             /* GPUs: so many times `items` have a part each of a row
                              that is kept, one after the other; 0: one has all */
    bool strided;          /* GPUs: the rows of a group are the strided lanes of its
                              sums over an inner axis: no axis is their crowd */
    int subgroup;          /* GPUs: items of a sub-group; 0: left open */
    int unit_groups;       /* GPUs: so many groups share a unit at least, and its
                              registers; 0: left open */
    bool large;            /* GPUs: its items have twice the registers, and half as
                              many of them run at once: Intel's, if asked */
    bool masks_steps;      /* GPUs: whether an item has a position is asked at each
                              step, also where all have one (DEVICE_QUIRK_ONE_STEP) */
    plan_sort *sort;
    hlo_call *call;        /* a kernel that is calls of a device function: slots
                              are its operands, its results, and work space of
                              all items where the device has no scratch */
    plan_attend *attend;   /* a kernel that is attention, by groups */
    plan_places *places;   /* one that is a window's gradient, by groups */
    const plan_loop *loop; /* host: a kernel that is a whole loop */
    const plan_runs *runs; /* GPUs, or NULL */
    const plan_buckets *buckets; /* likewise */
    plan_part *part;       /* GPUs: what it is done by instead, if npart > 0 */
    int npart;
    const plan_blocks *blocks; /* how its CONTRACT is done, or NULL: by itself */
    const plan_cut *cut;   /* host: where axes are cut; NULL: nowhere */
    bool rows;             /* host, "by rows": stage 0 takes rows as they lie,
                              with LANE inside its loop: PLAN_LANES_ROWS */
    bool ranges;           /* host: axis 0 cuts the places of a scatter into
                              ranges, and a position of it takes those of the
                              updates, in order, that go to its range */
    size_t local_bytes;    /* of all areas, and of those of blocks */
    int64_t tiles;         /* product over grid axes of ceil(extent/tile) */
    double flops, bytes;
    double turns;          /* of the loops around it, in one run; INFINITY: of
                              those that do not say.  For tiling */
    sd_arena *arena;       /* that all of it is in */
};
/* The axis of a set that comes next after a; -1: none does. */
static inline int plan_axis_after(uint64_t axes, int a)
{
    axes = a < 63 ? axes >> (a + 1) << (a + 1) : 0;
    return axes ? __builtin_ctzll(axes) : -1;
}
#define plan_for_each_axis(a, axes) \
    for (int a = plan_axis_after(axes, -1); a >= 0; \
         a = plan_axis_after(axes, a))
/* None may be added meanwhile: the array moves. */
#define plan_for_each_node(n, k) \
    for (plan_node **n##_at = (k)->node, *n; \
         n##_at < (k)->node + (k)->nnode && ((n) = *n##_at); n##_at++)

typedef struct {
    sd_arena *arena;
    hlo_module *m;
    const device_desc *dev;
    plan_kernel **kernel;  /* distinct ones; thunks name them by number */
    int nkernel;
    thunk_program *program; /* steps, buffers, constants; no binaries yet */
} plan;

/* ---- the stages of planning, in order ---- */

/* Instructions that share a kernel become one fusion; what stays alone is
 * wrapped ("wrapped_multiply").  Library calls become custom-calls first. */
sd_status plan_library(hlo_module *m, const device_desc *dev,
                       const sd_options *opt);
void plan_split_phases(hlo_module *m); /* the same for every device */
/* Of products for a matrix engine that reads them badly as they lie; all: whether
 * it pays or not. */
void plan_copy_operands(hlo_module *m, const device_desc *dev, bool all);
sd_status plan_alias(hlo_module *m);
sd_status plan_fuse(hlo_module *m, /* the same for every device */
                    const sd_options *opt);
sd_status plan_lower(sd_arena *a, hlo_inst *fusion, plan_kernel **out);
void plan_tile(plan_kernel *k, const device_desc *dev);
/* How often the loops over these axes go round together. */
double plan_points(const plan_kernel *k, uint64_t axes);
int64_t plan_extent(const plan_kernel *k, uint64_t axes); /* where it fits */
/* f32 -> narrow float -> f32: the second convert of the two. */
bool plan_is_rounding(const plan_node *n);
/* The result of REDUCE n does not depend on the order of its elements. */
bool plan_any_order(const plan_node *n);
/* Nor does what body makes of numbers of that type. */
bool plan_body_any_order(const plan_body *body, sd_dtype t);
/* The scatter of a kernel that is one, or NULL. */
const plan_node *plan_scatter_of(const plan_kernel *k);
/* How many places of a scatter a position of an outer axis has for itself, one
 * after the other: 0 where they lie apart. */
int64_t plan_places_of_position(const plan_kernel *k, int axis);
/* The first axis of that place, or -1: none has it; LANE is nowhere in a kernel
 * that sorts or calls. */
int plan_axis_at(const plan_kernel *k, plan_place place);
int plan_lane_of(const plan_kernel *k);
/* The axis that a kernel's scans run over, if that is its only loop and nothing
 * else is summed there; or -1. */
int plan_running_axis(const plan_kernel *k);
/* The axis along which the copies are that a LOAD or STORE takes at once. */
int plan_wide_axis(const plan_kernel *k, const plan_node *n);
/* Elements side by side for each position at which a value is parked: those of
 * a vector, where rows lie across LANE. */
int plan_parked_lanes(const plan_kernel *k);
int plan_across_axis(const plan_kernel *k, const plan_pass *p); /* of ACROSS */
/* The axes of the nest, as a mask. */
uint64_t plan_nest_axes(const plan_kernel *k);
sd_status plan_make(sd_arena *a, hlo_module *m, const device_desc *dev,
                    const sd_options *opt, plan **out);
void plan_destroy(plan *p); /* the program, when nobody took it; takes NULL */

void plan_print(sd_buf *b, const plan *p);
sd_status plan_verify(const plan *p);

/* Nodes that run over all of some axes and have a value after their stage. */
static inline bool plan_is_sum(const plan_node *n)
{
    return n->kind == PN_REDUCE || n->kind == PN_CONTRACT;
}
static inline bool plan_is_write(const plan_node *n) /* to memory */
{
    return n->kind == PN_STORE || n->kind == PN_SCATTER;
}
/* Nodes for whose sake a stage's loops run. */
static inline bool plan_is_sink(const plan_node *n)
{
    return plan_is_write(n) || plan_is_sum(n);
}

/* ---- ask about expressions (plan_expr_ask.c): for emitters ---- */

/* The coefficient of axis in e where e is c*axis + rest with rest free of
 * axis; false when e depends on it in another way. */
bool plan_expr_stride(const plan_expr *e, int axis, int64_t *stride);
/* to - from, where that is a constant; of expressions of one kernel. */
bool plan_expr_distance(const plan_expr *from, const plan_expr *to,
                        int64_t *distance);
/* How e changes along n neighbouring positions of an axis, of which the first is
 * a multiple of n: by *stride from one to the next, and at the first it is a
 * multiple of *multiple (0: it is 0).  False when it jumps in between. */
bool plan_expr_run(const plan_expr *e, int axis, int64_t n, int64_t *stride,
                   int64_t *multiple);
/* Of elements that neighbours along an axis read: from the first of these the
 * vector of n, a power of two, begins at `first`, and each has its lane. */
enum { PLAN_LANES = 64 };
typedef struct { int64_t first, n; int lane[PLAN_LANES]; } plan_ordered;
/* Do w neighbours, of which the first is a multiple of `multiple`, read one
 * vector of at most w elements, each time in the same order? */
bool plan_expr_ordered(const plan_expr *e, int axis, int64_t multiple, int w,
                       plan_ordered *s);
/* Does the guard hold at all of n such neighbours, or at none? */
bool plan_guard_is_even(const plan_guard *g, int axis, int64_t n);
/* Is n the question whether an expression is below a number, or not?  Then *g
 * holds where it is true. */
bool plan_asks(const plan_node *n, plan_guard *g);
/* A stretch that is known, and those of the axes outside. */
typedef struct plan_within {
    const struct plan_within *outside;
    int axis;
    int64_t from, end, extent; /* of the axis's positions, which are `extent` */
} plan_within;
/* What is known in a stretch of a node: of a question its answer, of a LOAD
 * whether its guards let it. */
typedef enum { PLAN_OPEN, PLAN_NO, PLAN_YES } plan_answer;
bool plan_knows(const plan_within *w, const plan_guard *g, bool *holds);
/* Is argument number `arg` of n used, where these are the answers? */
bool plan_takes(const plan_node *n, int arg, const plan_answer *answer);
/* [node]: the answers, and which nodes are needed at all. */
void plan_look(const plan_kernel *k, const plan_within *w, plan_answer *answer,
               bool *wanted);
/* May positions be computed twice?  Not where a result may lie in an operand,
 * or is added to. */
bool plan_may_repeat(const plan_kernel *k);
/* On the host: does the last vector of LANE write again what the one before
 * wrote, and not under a mask?  Such a store takes some processors as long as
 * five vectors, which in rows of ten numbers is most of the time. */
bool plan_repeats_end(const plan_kernel *k);

#endif
