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
 * plan_lower makes axes and nodes.  plan_tile adds all that depends on the
 * device: places, tiles, copies, nest, passes, areas.  Emitters write it down.
 * docs/adr/0001-kernel-form.md is the contract in full,
 * docs/adr/0019-mapping-and-contractions.md says what comes next. */
#ifndef PLAN_H
#define PLAN_H

#include "base.h"
#include "device_desc.h"
#include "hlo.h"
#include "thunk.h"

typedef struct plan_node plan_node;
typedef struct plan_expr plan_expr;
typedef struct plan_kernel plan_kernel;

/* ---- index expressions: hash-consed, simplified when made ---- */

typedef enum { PX_CONST, PX_AXIS, PX_ADD, PX_MUL, PX_DIV, PX_MOD, PX_NODE }
    plan_expr_kind;
struct plan_expr {
    plan_expr_kind kind;
    uint32_t id;
    int axis;             /* PX_AXIS */
    int64_t c;            /* the constant; by what MUL, DIV, MOD work */
    const plan_expr *a, *b; /* ADD a b (operands sorted by id); others: a */
    plan_node *node;      /* PX_NODE: an integer node, sign-extended */
    int64_t lo, hi;       /* bounds of the value, inclusive */
    uint64_t varies;      /* axes: 1 << axis */
    int size;             /* nodes of it written as a tree, at most INT_MAX */
};
/* DIV and MOD by positive constants round down: a value may be negative where
 * a guard refuses it, and the bounds still say which reads stay inside. */

typedef struct { const plan_expr *e; int64_t lo, hi; } plan_guard; /* lo <= e < hi */

/* ---- axes ---- */

typedef enum { PLAN_MAP, PLAN_REDUCE, PLAN_SCAN } plan_role;
/* CROWD, on GPUs: an outer axis along which the items of a group lie that LANE
 * leaves: item i is item i % items of LANE at position i / items of this. */
typedef enum { PLAN_SEQ, PLAN_LANE, PLAN_UNROLL, PLAN_CROWD } plan_place;
typedef struct {
    int64_t extent;
    uint8_t role, place;
    bool outer;    /* common to all stages; outer axes come first */
    bool grid;     /* cut into tiles of `tile`; only outer axes */
    int64_t tile;  /* grid: extent of one tile; else extent */
    int copies;    /* so many positions stand side by side in registers; of
                      LANE so many vectors.  An inner axis with copies is the
                      only one that a pass has.  1: nothing is copied */
} plan_axis;
enum {
    PLAN_AXIS_COPIES = 64,  /* an axis has no more copies than that */
    PLAN_MOST_COPIES = 2000 /* nor does a pass make more nodes again for them */
};

/* ---- nodes ---- */

typedef enum {
    PN_LOAD,    /* slot at off; where a guard fails: arg[0] (fill) or unread */
    PN_CONST,   /* scalar */
    PN_INDEX,   /* the value of an index expression, converted to dtype */
    PN_ELT,     /* one element of an elementwise HLO op on arg[] */
    PN_REDUCE,  /* over axes; arg[0..nout) values, arg[nout..2nout) inits */
    PN_CONTRACT, /* sum of arg[0] * arg[1] over axes */
    PN_SCAN,    /* running reduction along the axis `over`; same args */
    PN_PICK,    /* result number `out` of a REDUCE or SCAN with several */
    PN_PARAM,   /* in a plan_body: parameter number `out` */
    PN_STORE,   /* arg[0] to slot at off where all guards hold */
    PN_SCATTER, /* slot[off] = body(slot[off], arg[0]) where guards hold; its
                   kernel runs the `over` axes in order on one lane; over
                   nothing: see `meets` and plan_runs */
} plan_node_kind;

typedef struct { /* a scalar function: reducer, comparator, combiner */
    plan_node **node; /* topological; PN_PARAM, PN_CONST, PN_ELT only */
    int nnode, nparam, nroot;
    plan_node **root;
    int op; /* hlo_op when it is that op on both parameters, else -1 */
} plan_body;

/* The fixed order of a reduction, from shape alone.  lanes strided partial
 * results (element i goes to lane i mod lanes, in rising i), each started by
 * its first element, joined by halving: for h = lanes/2 .. 1, lane i takes
 * body(lane i, lane i+h) for i < h where lane i+h has an element; then
 * body(init, result).  Lanes is 1, 8 or 64, never more than the next power of
 * two of the extent.  Over several axes: lanes is 1, rising lexicographic
 * order, last axis fastest. */
typedef struct {
    int lanes;
    int64_t chunk; /* CONTRACT: positions of axis `cut` in a chain; 0: all are */
    int cut;       /* one chain.  Axes after it are whole, of those before it */
} plan_order;      /* each position has chains of its own. */

/* The order of a CONTRACT: the positions of its axes, in rising lexicographic
 * order with the last axis fastest, are cut into chains of a few hundred (as
 * plan_order says, from the extents alone).  A chain is acc = 0, then
 * acc = fma(arg[0], arg[1], acc) for floats, acc + arg[0] * arg[1] for integers
 * and complex numbers; the sum is 0 plus the chains, in rising order.  All are
 * of the node's type. */
struct plan_node {
    plan_node_kind kind;
    int id;               /* place in the kernel's list */
    const hlo_inst *in;   /* what it computes; for ELT's attributes */
    int op;               /* ELT: hlo_op */
    sd_dtype dtype;
    int narg;
    plan_node **arg;
    uint64_t varies;      /* axes the value depends on */
    uint64_t over;        /* REDUCE, CONTRACT, SCAN, SCATTER: axes it runs over */
    int stage;            /* REDUCE, CONTRACT, STORE, SCATTER: where it sinks;
                             others: the first stage that can know it */
    int slot;             /* LOAD, STORE, SCATTER */
    const plan_expr *off; /* LOAD, STORE, SCATTER: element offset; INDEX */
    plan_guard *guard;
    int nguard;
    int nout, out;        /* REDUCE: results; PICK, PARAM: which */
    plan_body *body;
    plan_order order;
    uint8_t value[16];    /* CONST */
    bool parked;          /* an area keeps it for later passes, an element for
                             each position of its inner axes */
    bool staged;          /* LOAD on GPUs: the tile of LANE and CROWD is read to
                             an area along CROWD, and taken from there */
    bool exclusive;       /* SCAN */
    bool meets;           /* SCATTER over nothing: positions may come to one
                             place at once, in any order */
    int pass;             /* the number of the pass that writes it, if it is a
                             sink or parked; -1: none does, as of other nodes
                             and of a CONTRACT in blocks */
    int area;             /* the number of its first area, if it has any */
    bool down;            /* ELT: exp of an f32 that is 0 or less, or a NaN */
    bool rounded;         /* ELT on GPUs: an f32 that is only ever rounded to a
                             bf16 */
    bool narrow;          /* one of these: a function whose operand is a bf16 */
    int wide;             /* LOAD, STORE on GPUs: so many positions of LANE,
                             copies of an item, are one access: neighbours in
                             memory, or of a LOAD one element for all.  1: each
                             is an access of its own */
    plan_node **index;    /* the nodes that off and guards mention */
    int nindex;
};

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

/* What a kernel that sorts does.  GPUs sort rows that are too long for a group
 * in several kernels: see plan_part. */
typedef enum {
    PLAN_SORT_ROWS,  /* A tile is a row. */
    PLAN_SORT_TILES, /* A tile is a piece of a row: `piece` elements, the last
                        one of a row the rest.  Results are rows of the
                        first `keep` of each piece, side by side. */
    PLAN_SORT_MERGE, /* Operands are [rows][n], in which runs are in order; two
                        by two they are merged.  The slot after the results
                        holds the length of a run, an s64, and all of a row's
                        runs but the last are so long.  An item makes `each`
                        neighbouring results, which two runs have: `each`
                        divides a run. */
    PLAN_SORT_COUNT, /* These three sort by a digit, `bits` bits of the codes
                        from bit `shift` on, an s64 in the last slot.  A tile
                        is a piece, of which an item has `each` elements.  The
                        slot after the results has numbers, u32
                        [rows][1 << bits][pieces + 1].  This one writes how
                        many elements of a piece have a digit. */
    PLAN_SORT_SUM,   /* A tile is a digit of a row: each of its numbers but the
                        last becomes the sum of those before it, and the last
                        the sum of all.  That is the only slot. */
    PLAN_SORT_MOVE   /* An element goes behind those of smaller digits in the
                        row, those of its digit in pieces before its own, and
                        those of its digit before it in its piece. */
} plan_sort_step;
typedef struct { /* a kernel that sorts: rows x n, `inner` between elements */
    int64_t rows, n, inner; /* operands viewed as [rows/inner][n][inner] */
    int64_t keep;           /* so many of a row are wanted, the first ones */
    plan_body *less;        /* 2*nop parameters: x0 y0 x1 y1 ...; pred */
    int nop;                /* operands */
    int *in;                /* operand -> slot; -1: the place in the row */
    sd_dtype *type;         /* of an operand */
    int nout, *out;         /* result i, in slot first_out + i -> operand */
    int first_out;
    bool stable;
    plan_body *keys;        /* the comparator as an order: numbers made of
                               parameters 2*o, most significant first; or NULL */
    bool *down;             /* of a key: the largest comes first */
    int code_bits;          /* of all keys; at most 64.  Of the places of a
                               scatter, the lower ones that matter */
    size_t scratch;         /* bytes of a row's work space */
    int lanes;              /* host: codes of neighbours are made in vectors of
                               so many; 1: one by one */
    plan_sort_step step;
    int64_t piece;          /* TILES, COUNT, SUM, MOVE */
    int each;               /* MERGE, COUNT, SUM, MOVE */
    int64_t inner_out;      /* MOVE: between elements of the results */
    int bits;               /* of a digit */
    int team;               /* COUNT, MOVE: neighbouring items that have a
                               counter of each digit in common: they vote */
} plan_sort;

/* The work space of a row that the host sorts by keys: items, which are a code
 * and what moves with it, `half` bits each.  few: of the elements only those
 * that may be among the first `keep` are put into `a`. */
enum { PLAN_SORT_FEW = 48, PLAN_SORT_COUNTS = 6 << 11, PLAN_SORT_BLOCK = 1024 };
typedef struct {
    bool few;
    int half;
    int64_t room;        /* items in a */
    size_t a, b, count;  /* offsets of areas */
    size_t state, codes; /* few: the search; codes of a block */
    size_t bytes;
} plan_sort_areas;

/* The local memory of a group that sorts by a digit: offsets. */
typedef struct {
    size_t counters;     /* u32 [group / team][1 << bits]; MOVE: later operands of
                            the piece, one after the other */
    size_t first, apart; /* MOVE, u32 [1 << bits]: of a digit, where it begins in
                            the piece, and how far the result is from there */
    size_t digits;       /* MOVE, u8 [piece] */
    size_t sums;         /* MOVE, SUM, u64 [group] */
    size_t bytes;
} plan_digit_areas;

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
    bool sorts;   /* a step compares and swaps by code of its own */
} plan_loop;

typedef enum {
#define ENGINE(id, needs, depth, bits) PLAN_ENGINE_##id,
#define MATRIX(id, needs, part, sum, m, n, k, items, panels) PLAN_ENGINE_##id,
#include "engines.def"
#undef ENGINE
    PLAN_ENGINE_COUNT
} plan_engine;
typedef struct {
    uint64_t needs; /* device_feature bits */
    int depth;      /* positions of k that one instruction adds */
    int bits;       /* of an operand, at most */
    sd_dtype part, sum; /* of a matrix instruction: x and y, and their sums; */
    int m, n;       /* of how many rows and columns.  0: it is none */
    int items;      /* of the sub-group that it takes */
    bool panels;    /* x and y lie in panels of `depth` positions of k */
    int several;    /* sub-groups of a wide one, which reads x and y itself; 0 */
} plan_engine_info;
extern const plan_engine_info plan_engine_table[PLAN_ENGINE_COUNT];
/* Rows and columns of a square: what a sub-group has of matrix instructions at a
 * time; bytes of a line that a wide one reads, whose 16-byte parts it expects
 * exchanged: part i of line n lies at i ^ n % 8. */
enum { PLAN_SQUARE = 16, PLAN_LINE = 128, PLAN_LINES = 8, PLAN_LINE_PART = 16 };

/* A CONTRACT in blocks.  On the host: for each tile, for each chain of the sum,
 * the elements of both operands are computed once and written to areas
 * of the scratch, and `rows` x `vectors` accumulators at a time stay in
 * registers while k runs.  Between blocks, and for what uses the sum, the
 * accumulators of the tile lie in a third area.
 *
 *   x: element (m, k) at m * x_m + k * x_k
 *   y: panels of `vectors` vectors of n, y_panel elements from one to the next,
 *      in which k has its vectors side by side, y_k elements from one k to the
 *      next; where N is several axes, whole rows of the tile instead, of which
 *      a panel is a part: vectors do not end where panels do
 *   sum: element (m, n) at m * sum_m + n
 *
 * where m counts the positions of axes m and m_in, n those of n and n_in, and k
 * those of k and k_in, from the start of the tile or chain, the last axis
 * fastest.  The last of N's is LANE.  A tile cuts m and n; m_in, n_in and k_in
 * are whole.  Axes of the sum before k have a chain, or several, each position.
 *
 * An engine of some depth takes words of so many positions of k, which are what
 * k and elements count in x and y above.  Its operands are those of the
 * CONTRACT before they became wide.  One that does not lie along k is copied
 * row by row to a stage, and from there woven into words; y is copied to the
 * stage in any case, [k][n] or [n][k], and turned if need be.  What fills the
 * last word is 0 in y.  One operand of vpdpbusd has a sign and the other has
 * none: where x and y are of one kind, x is flipped, x ^ 0x80, which adds or
 * takes 128 times the sum of y.
 *
 * On a GPU a tile is a group's.  Its items copy `step` positions of a chain to
 * areas of local memory, x_wide and y_wide neighbours at a time, while they
 * multiply what lies in another such pair: element (m, k) of x at m * x_m +
 * k * x_k as above, (n, k) of y at n * y_n + k * y_k.  Where the engine wants
 * panels, (m, k) is at k / depth * x_panel + m * x_m + k % depth * x_k, so that
 * a row's part of a panel is 32 bytes; in y a panel has blocks of as many columns
 * as a sub-group has items, of which each has a word, 4 bytes of K, then the next:
 * (n, k) is at
 *
 *   k / depth * y_panel + n / items * items * depth +
 *   k % depth / word * y_k + n % items * y_n + k % word
 *
 * There the first step, which is read before the loop over the others, begins
 * with `lead` positions that K does not have and that are 0: then all others are
 * full, and nothing in the loop asks whether K has a position.  An operand that
 * is one load is *plain* where a step moves its place by the same number for all
 * items: places are found before the loop, and so is, as bits, at which
 * positions along K (a window's) its guards fail; then slot `zeros` is read.
 *
 * Where M's axes move along an image as a window's do, which are all of K's but
 * the last, x lies in one area once for all of the *window*: its rows are the
 * positions of the tile with what the window reaches beyond them, m is at a
 * position of the window in row m + the sum of plan_window_shift, and steps go
 * over the window before they go on along K's last axis.  Where M's axis goes
 * `of` times as fast each phase of the window's has rows of its own, a plane.  A tile counts as many positions of M's inner axes as rows have,
 * beyond an end, too.
 *
 * A wide engine has three pairs where local memory holds them, since it reads one
 * of them while another is written and the next lies ready, and four where
 * copies are made by themselves and two are under way.  It wants lines of
 * 128 bytes.  Where an operand lies along k, or its
 * elements are bytes, line m has the step's positions of k, x_k is 1.  Else x_m
 * is 1, and a line has the 64 neighbours of m at one k: (m, k) is in line
 * m / 64 * step + k.  y is laid out likewise.
 *
 * An item has its sums and
 * those of the open chain in registers: along_m x along_n items share a tile,
 * and each has `rows` x `vectors` positions of it, `near` neighbours of m and n
 * at a time: row i of item j is (i / near * along_m + j) * near + i % near.  At
 * last `round` rows of sums at a time are written to an area, which lies where
 * those of x and y were, and what uses them runs over these rows: items along
 * LANE, rows of a group at once.  Where the engine is a matrix instruction, a
 * sub-group stands for an item in all this; x and y are those of the CONTRACT
 * before they became wide, and a chain is the whole sum. */
/* A matrix in memory that messages read by blocks, 2-D, with zeros outside of
 * it.  Its rows are positions of the operand's side (M of x, N of y), its
 * columns those of the last axis of K, the other axes of K say where it begins;
 * or across: rows are those of the last axis of K, columns the side's.  Flat: the
 * side's axes are one after another, in one matrix; else rows are those of the
 * last one, and the others say where the matrix begins, too. */
typedef struct {
    bool across, flat;
    int guard;             /* of the LOAD, it fails above and below the matrix;
                              others, which no row changes, for all of it; -1 */
    int64_t pitch;         /* elements from one row to the next */
    int64_t rows, columns; /* where no guard says less */
    int64_t slide;         /* of x: see plan_blocks.slides */
} plan_reads;
typedef struct {
    const plan_node *node;   /* the CONTRACT */
    const plan_node *x, *y;  /* its operands: y is the one that varies on LANE */
    int m, n, k;             /* axes: of x alone, of y alone, the sum's */
    uint64_t m_in, n_in, k_in;
    uint64_t rest;           /* other outer axes: their loops are outside */
    int64_t kt;              /* positions of k and k_in in a chain */
    int rows, vectors;
    int x_along, y_along;    /* the axes along which vectors are read */
    int ahead;               /* host: rows of an operand that are prefetched
                                while it is copied */
    int64_t x_m, x_k, y_panel, y_k, sum_m; /* in elements */
    size_t x_at, y_at, sum_at;           /* bytes, in the scratch */
    plan_engine engine;
    bool flip;
    sd_dtype part;                       /* of which a word has several */
    int64_t x_row, y_row;                /* of the stage, in parts */
    size_t stage_at;
    int64_t y_n, x_panel;                /* GPUs, from here on; in elements */
    int step, x_wide, y_wide;            /* positions of k, elements */
    int lead;                            /* zeros of the first step */
    bool direct; /* operands go from memory to registers: no areas, and steps
                    that end beyond the last axis of K find zeros there */
    bool slides; /* direct: from one position of K's last axis but one (kx) to
                    the next x begins `slide` rows further in the same matrix,
                    and y, whose matrix goes on along that axis, where it is.
                    Or within the last axis: a row of x has the first of its
                    positions, the next row those that follow */
    plan_reads x_reads, y_reads;
    int m_whole; /* direct: the tile counts of M's last axis, where m_in has it, a
                    multiple of so many positions, the rows of a message; what is
                    beyond its end nobody has; 0: it is one */
    bool window; /* panels: x lies in one area, once for all of a window; y, from
                    y_at on, has an area for each position of K's last axis but
                    one, `buffer` bytes each */
    bool x_plain, y_plain;               /* read as they lie */
    int zeros;                           /* the slot for it; 0: it needs none */
    int along_m, along_n, near;
    int64_t mt, nt, round;               /* positions of M and N in a tile */
    size_t buffer;                       /* bytes from one pair to the next, */
    int pairs;                           /* of so many */
    bool by_itself; /* wide engines: what is copied goes from memory to areas by
                       instructions that nobody waits for at once */
} plan_blocks;
enum { PLAN_ZEROS = 16 }; /* bytes of that slot: an access of any device */
/* Panels of GPUs: elements of a word, 4 bytes. */
static inline int plan_word(const plan_blocks *b)
{
    return 4 / (int)sd_dtype_bytes(b->part);
}
/* An item copies so many positions of k at a time of an operand that lies along
 * `along`: where that is not k, those of one word, or of one access of numbers
 * of f32, whose lines lie along k too. */
static inline int plan_woven_rows(const plan_blocks *b, int along)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    size_t bytes = sd_dtype_bytes(b->part);

    if (b->node->over >> along & 1)
        return 1;
    return e->panels                       ? plan_word(b)
           : e->m && bytes == 4            ? PLAN_LINE_PART / 4
           : e->several && bytes == 1      ? plan_word(b)
                                           : 1;
}
/* Does x, read by blocks, slide within K's last axis? */
bool plan_slides_within(const plan_kernel *k, const plan_blocks *b);
/* Positions of axis a, one of m_in or n_in, as a tile counts them; of all. */
int64_t plan_tile_extent(const plan_kernel *k, const plan_blocks *b, int a);
int64_t plan_tile_points(const plan_kernel *k, const plan_blocks *b,
                         uint64_t in);
/* Of plan_blocks.window (plan_window.c).  Along which axis of M K's axis w moves
 * x: `of` of its positions as far as `by` of that one's, one of which is 1; -1:
 * along none. */
typedef struct { int axis; int64_t by, of; } plan_pace;
plan_pace plan_window_pace(const plan_kernel *k, const plan_blocks *b, int w);
/* How far the window reaches beyond the end of M's axis a, whose positions in a
 * tile are counted with that.  Rows of x's area of one phase of all axes of the
 * window; from w's position 0 to another; in all. */
int64_t plan_window_halo(const plan_kernel *k, const plan_blocks *b, int a);
int64_t plan_window_plane(const plan_kernel *k, const plan_blocks *b);
int64_t plan_window_shift(const plan_kernel *k, const plan_blocks *b, int w,
                          int64_t at);
int64_t plan_window_rows(const plan_kernel *k, const plan_blocks *b);
/* Positions along K at which guard g of a plain operand may fail or not. */
int64_t plan_guard_places(const plan_kernel *k, const plan_guard *g);
/* On a GPU: the axis along which `wide` of n goes, if n is read while operands
 * are copied; -1: it is not. */
int plan_copied_along(const plan_kernel *k, const plan_node *n);

/* GPUs: a scatter whose updates have been sorted by their places.  A position of
 * `axis`, which counts the updates of a batch, is one of the sorted list; where
 * a run of equal places begins, it takes the updates of the whole run in their
 * order, which are the positions that nodes see; elsewhere it takes none.
 * Slots `key` and `update` hold, for each batch, the places (all ones: such an
 * update is left out) and the numbers of the updates, s32; or, where those are
 * sorted themselves, these: then nodes see positions of the list. */
typedef struct {
    int axis, batch;  /* batch: its axis; -1: there is one */
    int key, update;
    bool last;        /* only the last update of a run counts */
    bool moved;       /* the updates are in the list */
} plan_runs;

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
               PLAN_CALLING } plan_kernel_class;
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
    bool strided;          /* GPUs: the rows of a group are the strided lanes of its
                              sums over an inner axis: no axis is their crowd */
    int subgroup;          /* GPUs: items of a sub-group; 0: left open */
    int beside;            /* GPUs: so many groups share a unit at least, and its
                              registers; 0: left open */
    bool large;            /* GPUs: its items have twice the registers, and half as
                              many of them run at once: Intel's, if asked */
    bool masks_steps;      /* GPUs: whether an item has a position is asked at each
                              step, also where all have one (DEVICE_QUIRK_ONE_STEP) */
    plan_sort *sort;
    hlo_call *call;        /* a kernel that is calls of a device function: slots
                              are its operands, its results, and work space of
                              all items where the device has no scratch */
    const plan_loop *loop; /* host: a kernel that is a whole loop */
    const plan_runs *runs; /* GPUs, or NULL */
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
    sd_arena *arena;       /* that all of it is in */
};
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
/* The axis of place LANE, or -1: none, in a kernel that sorts or calls. */
int plan_lane_of(const plan_kernel *k);
/* The axis along which the copies are that a LOAD or STORE takes at once. */
int plan_wide_axis(const plan_kernel *k, const plan_node *n);
/* The axes of the nest, as a mask. */
uint64_t plan_nest_axes(const plan_kernel *k);
void plan_sort_place(const plan_sort *s, plan_sort_areas *out);
void plan_digit_place(const plan_sort *s, plan_digit_areas *out);
static inline bool plan_sort_has_digits(const plan_sort *s)
{
    return s->step == PLAN_SORT_COUNT || s->step == PLAN_SORT_SUM ||
           s->step == PLAN_SORT_MOVE;
}
static inline int64_t plan_sort_pieces(const plan_sort *s) /* of a row */
{
    return (s->n + s->piece - 1) / s->piece;
}
/* Elements of a row of n when `keep` of each piece are kept. */
int64_t plan_sort_kept(int64_t n, int64_t piece, int64_t keep);
/* Of a row's work space. */
size_t plan_sort_bytes(const plan_sort *s, bool host);
/* All operands are results, in full, so a result can be a work space too. */
bool plan_sort_is_full(const plan_sort *s);
sd_status plan_make(sd_arena *a, hlo_module *m, const device_desc *dev,
                    const sd_options *opt, plan **out);
void plan_destroy(plan *p); /* the program, when nobody took it; takes NULL */

void plan_print(sd_buf *b, const plan *p);
void plan_print_kernel(sd_buf *b, const plan_kernel *k);
sd_status plan_verify(const plan *p);

/* Of a CONTRACT in blocks: the axes of its rows and of its columns. */
static inline uint64_t plan_block_rows(const plan_blocks *b)
{
    return b->m_in | 1ull << b->m;
}
static inline uint64_t plan_block_columns(const plan_blocks *b)
{
    return b->n_in | 1ull << b->n;
}

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
/* On the host: does the last vector of LANE begin early, where the one before
 * wrote, and not under a mask?  Such a store takes some processors as long as
 * five vectors, which in rows of ten numbers is most of the time. */
bool plan_ends_early(const plan_kernel *k);

#endif
