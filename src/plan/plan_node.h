/* What a kernel computes: index expressions, the axes of its box, and nodes,
 * which are values at a point of the box.  plan.h says how they run. */
#ifndef PLAN_NODE_H
#define PLAN_NODE_H

#include "base.h"
#include "hlo.h"

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
    PLAN_MOST_COPIES = 2000, /* nor does a pass make more nodes again for them */
    PLAN_WIDE_ROWS = 16 /* nodes along LANE, of all rows that are taken at once,
                           whose sums 32 registers hold */
};

static inline int64_t plan_axis_tiles(const plan_axis *x)
{
    return x->grid ? (x->extent + x->tile - 1) / x->tile : 1;
}
static inline int plan_last_axis(uint64_t axes) /* of a set that has one */
{
    return 63 - __builtin_clzll(axes);
}

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
                   nothing: see `meets` and plan_runs.  On the host a tile may
                   set its places to arg[1] first (plan_places_of_position) */
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
 * order, last axis fastest.  Of a maximum or another result that shows no order
 * the mapping may choose 64 lanes itself (join_short_rows). */
typedef struct {
    int lanes;
    int64_t chunk; /* CONTRACT: positions of axis `cut` in a chain; 0: all are */
    int cut;       /* one chain.  Axes after it are whole, of those before it */
} plan_order;      /* each position has chains of its own. */

/* Hosts: LOADs that together read all numbers between two neighbouring positions
 * of LANE, which are `step` apart, or STOREs that write them (plan_woven.c).  The
 * first is the lowest; one is NULL that nobody reads. */
enum { PLAN_MOST_WOVEN = 8 };
typedef struct plan_woven {
    plan_node *at[PLAN_MOST_WOVEN];
    int n;
    int64_t step;
    int last; /* STOREs: the place of the last of them, which writes all */
    const struct plan_woven *moved; /* STOREs: the LOADs of which they write the
                                       numbers as they are, or NULL */
} plan_woven;

/* The order of a CONTRACT: the positions of its axes, in rising lexicographic
 * order with the last axis fastest, are cut into chains of a few hundred (as
 * plan_order says, from the extents alone).  A chain is acc = 0, then
 * acc = fma(arg[0], arg[1], acc) for floats, acc + arg[0] * arg[1] for integers
 * and complex numbers, and for floats where `apart`; the sum is 0 plus the
 * chains, in rising order.  All are of the node's type. */
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
    bool across;          /* LOAD, STORE on hosts: a row of it lies along the
                             axis of its pass, which is ACROSS */
    bool exclusive;       /* SCAN */
    bool apart;           /* CONTRACT of floats: a product is rounded before it
                             is added, as where a REDUCE adds a dot's few terms
                             (HLO_FEW_TERMS) */
    bool meets;           /* SCATTER over nothing: positions may come to one
                             place at once, in any order */
    int pass;             /* the number of the pass that writes it, if it is a
                             sink or parked; -1: none does, as of other nodes
                             and of a CONTRACT in blocks */
    int area;             /* the number of its first area, if it has any */
    bool down;            /* ELT: exp of an f32 that is 0 or less, or a NaN */
    bool words;           /* LOAD on hosts: a byte of which 32-bit numbers are made
                             and nothing else, a register of them at a time */
    bool rounded;         /* ELT on GPUs: an f32 that is only ever rounded to a
                             bf16 */
    bool of_bf16;         /* one of these: a function whose operand is a bf16 */
    int wide;             /* LOAD, STORE on GPUs: so many positions of LANE,
                             copies of an item, are one access: neighbours in
                             memory, or of a LOAD one element for all.  1: each
                             is an access of its own */
    const plan_woven *woven; /* LOAD, STORE on hosts: whose row it is of; NULL:
                             it goes to memory by itself */
    plan_node **index;    /* the nodes that off and guards mention */
    int nindex;
};

#endif
