/* emit: what the emitters of all node kinds share.  One emit is one kernel on
 * its way into an LLVM module.
 *
 * Levels.  The loops that are open form levels: 0 is the kernel's start, each
 * loop one more.  A value is made at the level of the innermost axis that it
 * depends on: code for a level below the current one goes into the block from
 * which the next loop is entered (its `pre`), so hoisting costs no pass.
 * Values are remembered until their level closes.
 *
 * Copies.  A node may be wanted several times at once: vectors of a widened
 * LANE step, positions of an UNROLL axis, strided lanes of a reduction.  Copy
 * numbers are mixed-radix: an axis that is copied has a stride in them.  A
 * node that does not vary on an axis has that digit 0 (emit_canon). */
#ifndef EMIT_H
#define EMIT_H

#include <assert.h>
#include <llvm-c/Core.h>

#include "base.h"
#include "devlib.h"
#include "emit_abi.h"
#include "plan.h"

enum {
    EMIT_MAX_LANES = PLAN_LANES, /* elements of a vector that is computed with */
    EMIT_WIDEST = 64, /* and of one that is only copied, which may be bytes */
    EMIT_WORD = 4,    /* bytes */
    EMIT_AXES = 64,   /* of a kernel; masks of axes have 64 bits */
    EMIT_MAX_LEVELS = 70 /* of loops, one in another */
};

/* One element or a vector of them: complex numbers are two values. */
typedef struct { LLVMValueRef re, im; } emit_value;

typedef struct { /* a remembered value */
    emit_value v;
    int level;
    bool set;
} emit_slot;

typedef struct {
    int level;        /* of the loop that runs it */
    LLVMValueRef at;  /* position of copy 0 (of the first element) */
    int n;            /* copies now */
    int stride;       /* in copy numbers; 0: never copied */
    int radix;        /* most copies there may be */
    int near;         /* so many copies are neighbours; */
    int64_t step;     /* positions from one such run of them to the next */
    LLVMValueRef mask[PLAN_AXIS_COPIES]; /* NULL: all positions are valid */
    int opening;        /* how often its loops were begun, main and rest as one */
    LLVMValueRef first; /* i1: the first position a reduction takes; NULL */
} emit_axis;

typedef struct {
    LLVMBasicBlockRef pre; /* where the level's loop is entered from */
    sd_vec(emit_slot *) made;
} emit_level;

typedef struct {
    LLVMBasicBlockRef body, exit;
    LLVMValueRef at, to;
    int64_t step;
    bool once;
    bool rolled; /* no later compiler may unroll it */
} emit_loop;

typedef struct { LLVMBasicBlockRef block; int standing; } emit_mark;

typedef struct emit_reduction emit_reduction;
typedef struct emit_picked emit_picked;

/* Where loads are known to go: node number i reads element at[i] + by[i] of its
 * slot.  at is made once, before a loop, and by, which is the same for all items,
 * in each of its turns.  NULL: it is not known. */
typedef struct { LLVMValueRef *at, *by; } emit_known;

struct emit {
    sd_arena *a;
    LLVMContextRef cx;
    LLVMModuleRef m;
    LLVMBuilderRef b;
    const char *device;   /* its name, for messages */
    devlib_target devlib; /* whose device functions are called */
    const emit_abi *abi;  /* of a GPU; NULL: the host */
    unsigned vector_bits; /* host: of a register */
    const plan_kernel *k;
    sd_status st;       /* the first thing that could not be done */
    bool gpu;
    int w;              /* elements of a LANE vector; GPUs: 1 */
    int lane;           /* the LANE axis, or -1 */
    uint64_t outer;     /* mask of the outer axes */
    unsigned global_as, local_as;
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr;
    LLVMTypeRef si, vi; /* of scalar positions; of an element of vectors */
    LLVMValueRef fn, lid;
    LLVMValueRef tile_lane, tile_crowd; /* GPU: where the tile begins that is in
                                           local memory, along these axes */
    bool stages_loads;      /* GPU: such a tile is being read */
    LLVMValueRef team; /* GPU: which of a row's teams, if it has such */
    LLVMValueRef item, row; /* GPU: of lid, the number along LANE and that along
                               the axis of place CROWD */
    LLVMValueRef item_valid; /* GPU: this work item may write; NULL: all */
    LLVMValueRef first, last; /* tiles; GPUs: the group and the next */
    LLVMValueRef *slot; /* pointers */
    LLVMBasicBlockRef entry;
    emit_axis axis[EMIT_AXES];
    emit_level level[EMIT_MAX_LEVELS];
    int depth;          /* levels that are open */
    int standing;       /* the level that code is being written at */
    int outer_depth;    /* depth when all outer loops are open */
    int ncopy;          /* copy numbers there are */
    emit_slot *value;   /* [node * ncopy + copy] */
    emit_value **several; /* results of REDUCEs: [node][out * ncopy + copy] */
    sd_map *expr;       /* plan_expr -> emit_slot[2 * ncopy] */
    void **running;     /* [node]: accumulators of a SCAN */
    int pass;           /* that is being emitted: its number */
    LLVMValueRef local; /* what areas lie in: the group's local memory, or on
                           the host the thread's scratch */
    bool calls_devlib;
    bool loops;         /* a kernel is a loop of inlined ones */
    bool quick;         /* device functions stay calls */
    bool keeps_memory;  /* a function that a loop inlines: no access has a mask,
                           with which memory would not become registers */
    int loop_items;     /* GPU: the kernel is a function of a loop that so many
                           items run; 0: it is launched */
    emit_reduction **sum; /* of a kernel with `rows` */
    int nsum;
    LLVMValueRef row_from; /* the tile's first position of LANE */
    LLVMValueRef block_m, block_n; /* where the tile of blocks begins; GPU: the
                                      open row and column of its sums */
    emit_picked *picked; /* what is put aside of a scatter by ranges */
    int ahead_axis;     /* loads are also prefetched this many positions of */
    int64_t ahead;      /* it ahead; 0: they are not */
    const plan_within *within; /* the stretches that loops are in, or NULL */
    plan_answer *answer; /* [node]: what is known there, */
    bool *wanted;        /* and whether it is needed there */
    const plan_end *end; /* the loop that is open ends there; NULL */
    const emit_known *known; /* while operands of blocks are read; NULL */
};

/* ---- emit_value.c: types, constants, small arithmetic ---- */

LLVMTypeRef emit_type(emit *e, sd_dtype t);     /* in registers; of a part */
LLVMTypeRef emit_mem_type(emit *e, sd_dtype t); /* in memory; of a part */
LLVMTypeRef emit_widen(LLVMTypeRef t, int w);   /* vector of w, or t for 1 */
int emit_width(LLVMValueRef v);
LLVMValueRef emit_splat(emit *e, LLVMValueRef v, int w); /* vectors stay */
LLVMValueRef emit_i64(emit *e, int64_t v);
LLVMValueRef emit_si(emit *e, int64_t v);       /* of type si */
/* x * by + y */
LLVMValueRef emit_mad(emit *e, LLVMValueRef x, int64_t by, LLVMValueRef y);
LLVMValueRef emit_plus(emit *e, LLVMValueRef x, int64_t c);
LLVMValueRef emit_add(emit *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_times(emit *e, LLVMValueRef x, int64_t by);
LLVMValueRef emit_over(emit *e, LLVMValueRef x, int64_t by); /* of what is not */
LLVMValueRef emit_rest(emit *e, LLVMValueRef x, int64_t by); /* negative */
LLVMValueRef emit_below(emit *e, LLVMValueRef x, LLVMValueRef y); /* signed */
LLVMValueRef emit_smaller(emit *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_at_most(emit *e, LLVMValueRef x, int64_t limit);
LLVMValueRef emit_larger(emit *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_int_like(LLVMValueRef like, int64_t v);
LLVMValueRef emit_fp_like(LLVMValueRef like, double v);
LLVMValueRef emit_bool(emit *e, bool v);
LLVMValueRef emit_iota(emit *e, LLVMTypeRef elem, int w);
LLVMValueRef emit_and(emit *e, LLVMValueRef x, LLVMValueRef y); /* NULL: true */
/* LLVM's instructions as they are: x and y are of one type, and sums, unlike
 * emit_add's, may wrap. */
#define EMIT_TWO(name, op) \
    static inline LLVMValueRef emit_##name(emit *e, LLVMValueRef x, \
                                           LLVMValueRef y) \
    { \
        return LLVMBuild##op(e->b, x, y, ""); \
    }
#define EMIT_ASK(name, is) \
    static inline LLVMValueRef emit_##name(emit *e, LLVMValueRef x, \
                                           LLVMValueRef y) \
    { \
        return LLVMBuildICmp(e->b, LLVMInt##is, x, y, ""); \
    }
#define EMIT_TO(name, op) \
    static inline LLVMValueRef emit_##name(emit *e, LLVMValueRef x, \
                                           LLVMTypeRef t) \
    { \
        return LLVMBuild##op(e->b, x, t, ""); \
    }
EMIT_TWO(sum, Add)
EMIT_TWO(minus, Sub)
EMIT_TWO(product, Mul)
EMIT_TWO(udiv, UDiv)
EMIT_TWO(urem, URem)
EMIT_TWO(or, Or)
EMIT_TWO(xor, Xor)
EMIT_TWO(shl, Shl)
EMIT_TWO(shr, LShr)
EMIT_ASK(equal, EQ)
EMIT_ASK(unequal, NE)
EMIT_ASK(ult, ULT)
EMIT_ASK(uge, UGE)
EMIT_ASK(not_below, SGE)
EMIT_TO(as, BitCast)
EMIT_TO(zext, ZExt)
EMIT_TO(trunc, Trunc)
static inline LLVMValueRef emit_not(emit *e, LLVMValueRef x)
{
    return LLVMBuildNot(e->b, x, "");
}
static inline void emit_put(emit *e, LLVMValueRef v, LLVMValueRef p)
{
    LLVMBuildStore(e->b, v, p);
}
/* The overload is the type of x (and of nothing else). */
LLVMValueRef emit_intrinsic(emit *e, const char *name, LLVMTypeRef over,
                            LLVMValueRef *arg, int narg);
LLVMValueRef emit_intrinsic2(emit *e, const char *name, LLVMTypeRef *over,
                             int nover, LLVMValueRef *arg, int narg);
LLVMValueRef emit_extract(emit *e, LLVMValueRef v, int first, int w);
LLVMValueRef emit_insert(emit *e, LLVMValueRef v, LLVMValueRef x, int at);
/* Element number `at`, of type t, behind the pointer p. */
LLVMValueRef emit_behind(emit *e, LLVMTypeRef t, LLVMValueRef p,
                         LLVMValueRef at);
/* Below 0: any. */
LLVMValueRef emit_shuffle(emit *e, LLVMValueRef x, LLVMValueRef y,
                          const int *lane, int n);
void emit_return_to(emit *e, LLVMBasicBlockRef b); /* before a terminator */
LLVMValueRef emit_alloca(emit *e, LLVMTypeRef t);
/* Of fn, its parameter number `at` - 1, or its result. */
void emit_attribute(emit *e, LLVMValueRef fn, unsigned at, const char *name);
LLVMValueRef emit_select(emit *e, LLVMValueRef c, LLVMValueRef x,
                         LLVMValueRef y); /* widths are made equal */
emit_value emit_select_value(emit *e, LLVMValueRef c, emit_value x,
                             emit_value y);
emit_value emit_splat_value(emit *e, emit_value v, int w);
emit_value emit_extract_value(emit *e, emit_value v, int first, int w);
/* v, of which code generation does not see how it came about. */
emit_value emit_hide_value(emit *e, emit_value v);
emit_value *emit_values(emit *e, int n); /* an array, to be filled */
/* Variables of a value's parts, of type t: the addresses, as an emit_value. */
emit_value emit_value_alloca(emit *e, LLVMTypeRef t, bool is_complex);
emit_value emit_value_variable(emit *e, emit_value v); /* which begin as v */
/* Number i of those that lie one after the other there; NULL: the first. */
emit_value emit_value_get(emit *e, LLVMTypeRef t, emit_value at,
                          LLVMValueRef i);
void emit_value_set(emit *e, emit_value at, LLVMValueRef i, emit_value v);
emit_value emit_constant(emit *e, sd_dtype t, const void *bits);
bool emit_is_narrow_float(sd_dtype t);
/* Keeps the first.  Emitters go on with poison: the kernel is thrown away, but
 * all that others ask for must be there. */
void emit_fail(emit *e, sd_status st);
emit_value emit_poison(emit *e, sd_dtype t, int w);

/* ---- emit_level.c: levels, loops, copies ---- */

emit_mark emit_go_to(emit *e, int level);  /* go to where that level's code goes */
void emit_back(emit *e, emit_mark m);
void emit_remember(emit *e, emit_slot *s, emit_value v, int level);
void emit_loop_open(emit *e, emit_loop *l, LLVMValueRef from, LLVMValueRef to,
                    int64_t step);
void emit_loop_close(emit *e, emit_loop *l);
/* Metadata of a branch back, of a loop that no later compiler may unroll: a
 * list whose first element is the list itself. */
LLVMValueRef emit_rolled(LLVMContextRef cx);
/* What follows runs while c holds, which is asked before each turn. */
typedef struct { LLVMBasicBlockRef test, body, done; } emit_while;
emit_while emit_while_begin(emit *e);
void emit_while_test(emit *e, const emit_while *l, LLVMValueRef c);
void emit_while_end(emit *e, const emit_while *l);
/* What follows runs where c holds (NULL: always), until emit_when_end of what
 * this returns. */
LLVMBasicBlockRef emit_when(emit *e, LLVMValueRef c);
void emit_when_end(emit *e, LLVMBasicBlockRef no);
/* A number that changes, in memory; what a position of type si is now. */
LLVMValueRef emit_variable(emit *e, LLVMValueRef v);
LLVMValueRef emit_get(emit *e, LLVMValueRef p);
/* A level whose loop was entered from pre. */
void emit_level_open(emit *e, LLVMBasicBlockRef pre);
void emit_level_close(emit *e);
/* Loops whose turns are a level; once_open: one that has one turn. */
void emit_level_loop_open(emit *e, emit_loop *l, LLVMValueRef from,
                          LLVMValueRef to, int64_t step);
void emit_level_loop_close(emit *e, emit_loop *l);
/* A loop of long turns that a later compiler would unroll: Intel's, if it knew
 * how many there are, NVIDIA's unless it is told not to.  Its turns are a level
 * (emit_level_loop_close). */
void emit_open_turns(emit *e, emit_loop *l, int64_t from, int64_t to,
                     int64_t step);
void emit_once_open(emit *e, emit_loop *l);
LLVMBasicBlockRef emit_block(emit *e, const char *name);
int emit_digit(const emit *e, int copy, int axis);
int emit_canon(const emit *e, int copy, uint64_t varies);
bool emit_is_copy(const emit *e, int copy, uint64_t varies); /* wanted now */
LLVMValueRef emit_mask(emit *e, uint64_t axes, int copy); /* NULL: all */

/* ---- emit_node.c: the value of a node at its level ---- */

emit_value emit_node_value(emit *e, const plan_node *n, int copy);
int emit_node_level(emit *e, const plan_node *n);

/* ---- emit_quotient.c: divisions of several copies by the same number ---- */

/* n, a value at `level`, divides several copies by one number: some of them are
 * made and remembered, *out is `copy`'s.  false: it does something else, or code
 * that branches may not be written here. */
bool emit_quotients(emit *e, const plan_node *n, int copy, int level,
                    emit_value *out);
/* n divides bytes by a constant, by which they are multiplied; false: it does
 * something else, or one of them would be rounded in another way. */
bool emit_divides_bytes(emit *e, const plan_node *n, const emit_value *x,
                        emit_value *out);

/* ---- emit_kernel.c, emit_stage.c ---- */

/* Adds the kernel to the module; e holds module, builder and device. */
sd_status emit_kernel(emit *e, const plan_kernel *k);
/* emit_loop.c; of kernels of so many nodes, all together so many, functions are
 * inlined. */
enum { EMIT_INLINE_NODES = 80, EMIT_MOST_INLINED = 600 };
sd_status emit_whole_loop(emit *e, const plan_kernel *k);
void emit_stages(emit *e);
/* Stage 0 of a kernel with `rows`, over a range of LANE. */
void emit_rows(emit *e, LLVMValueRef from, LLVMValueRef to);
typedef void (*emit_lane_body)(emit *e, void *ctx);
/* Host: LANE over a range, so many vectors a step, then a masked rest. */
void emit_lane_loops(emit *e, LLVMValueRef from, LLVMValueRef to, int copies,
                     emit_lane_body body, void *ctx);
/* The loop over an outer axis, or over positions of an inner one. */
void emit_axis_open(emit *e, int a, emit_loop *l, LLVMValueRef from,
                    LLVMValueRef to, int64_t step);
void emit_axis_close(emit *e, int a, emit_loop *l);
/* GPU: the first of this item's positions in a group's of LANE. */
LLVMValueRef emit_item_start(emit *e);
void emit_start_function(emit *e); /* the blocks that e->fn begins with */

/* ---- emit_gpu.c ---- */

void emit_begin_gpu(emit *e); /* the kernel's function, ids and slots */
void emit_barrier(emit *e);   /* for local memory */
void emit_fence(emit *e, unsigned memory); /* a barrier for such memory */
/* v of the item whose number among `together` is `from`. */
emit_value emit_from_item(emit *e, emit_value v, LLVMValueRef from);
/* The target's own function of that name: declared where it is not yet, with
 * an attribute more than nounwind, and called. */
LLVMValueRef emit_builtin(emit *e, const char *name, const char *attribute,
                          LLVMTypeRef result, LLVMValueRef *arg, int narg);
void emit_size_metadata(emit *e, const char *name, const int *size, int n);

/* ---- emit_contract.c ---- */

/* All sums of a tile of positions of M and N, into their area. */
void emit_blocks(emit *e, LLVMValueRef m0, LLVMValueRef m1, LLVMValueRef n0,
                 LLVMValueRef n1);
/* Vector of them at the open position. */
emit_value emit_block_sum(emit *e, const plan_node *n, int copy);

/* v[i][j] = v[j][i], of w vectors. */
void emit_turn(emit *e, LLVMValueRef *v, int w);

/* ---- emit_group.c, emit_panel.c, emit_square.c ---- */

/* GPU: the tile that begins at m0 and n0, and what uses its sums. */
void emit_group_blocks(emit *e, LLVMValueRef m0, LLVMValueRef n0);
emit_value emit_group_sum(emit *e, const plan_node *n, int copy);

/* ---- emit_engine.c: what blocks have instead of multiply_add ---- */

/* Where row k of column n is in panels of `wide` columns: a panel lies `panel`
 * behind the one before it, a row `row`. */
LLVMValueRef emit_panel_place(emit *e, int64_t wide, int64_t panel, int64_t row,
                              LLVMValueRef k, LLVMValueRef n);
typedef struct { /* from parts, whose rows are `row` parts, to words: word k of
                    column n at n / wide * panel + k * `k` + n % wide */
    LLVMValueRef from, to, words, columns;
    int64_t row, wide, panel, k;
} emit_words;
/* acc and the words x and y of vectors: acc + the sum of products of parts. */
LLVMValueRef emit_engine_add(emit *e, LLVMValueRef acc, LLVMValueRef x,
                             LLVMValueRef y);
void emit_engine_weave(emit *e, const emit_words *w); /* from [k][n] */
void emit_engine_turn(emit *e, const emit_words *w);  /* from [n][k] */
/* From [k][m]: word k of row m at m * row + k. */
void emit_engine_weave_rows(emit *e, const emit_words *w, int64_t row);

/* ---- emit_registers.c, emit_tiles.c: blocks are multiplied ---- */

typedef struct { /* a chain of a tile, as plan_contract.h lays it out */
    LLVMValueRef x, y, sum; /* where the areas begin */
    LLVMValueRef rows, columns, words; /* of all that is multiplied */
    LLVMValueRef first; /* i1: sum has nothing yet */
} emit_chain;
/* Sums are in vectors, or in an engine's own registers, tiles of sums. */
void emit_chain_by_registers(emit *e, const emit_chain *t);
void emit_chain_by_tiles(emit *e, const emit_chain *t);

/* ---- emit_index.c ---- */

void emit_index_init(emit *e);
/* The value of x: for all elements of a LANE vector when vec and it varies on
 * LANE, else for the first. */
LLVMValueRef emit_expr(emit *e, const plan_expr *x, int copy, bool vec);
LLVMValueRef emit_position(emit *e, int axis, int copy, bool vec);
/* From the axis's first copy to `copy`. */
int64_t emit_distance(const emit *e, int axis, int copy);
/* Host: a place in memory as a sum of terms, each made at its level, and `plus`.
 * emit_go: the element there of *p is element *at of another *p.  What does not
 * change in the innermost loop has moved the pointer before it, so that an
 * address in it is a pointer, a position and a number, as processors have it. */
enum { EMIT_TERMS = EMIT_AXES + 8 }; /* axes, and where two of them begin */
typedef struct { LLVMValueRef v; int level; } emit_term;
typedef struct { emit_term at[EMIT_TERMS]; int n; int64_t plus; } emit_terms;
void emit_add_term(emit_terms *s, LLVMValueRef v, int level);
void emit_go(emit *e, const emit_terms *s, sd_dtype part, LLVMValueRef *p,
             LLVMValueRef *at);
/* Of copy 0 of the axes along which x moves by known steps, and those steps. */
LLVMValueRef emit_expr_apart(emit *e, const plan_expr *x, int copy);
void emit_address(emit *e, const plan_expr *x, int copy, sd_dtype part,
                  LLVMValueRef *p, LLVMValueRef *at); /* of expression x */
LLVMValueRef emit_guards(emit *e, const plan_guard *g, int n, int copy,
                         bool vec); /* i1 or a vector; NULL: hold always */
typedef enum { EMIT_UNIFORM, EMIT_CONTIGUOUS, EMIT_REVERSED, EMIT_STRIDED,
               EMIT_ORDERED, /* of one vector, in another order */
               EMIT_GATHERED } emit_access;
emit_access emit_classify(emit *e, const plan_expr *off, int64_t *stride);
uint64_t emit_guards_vary(const plan_guard *g, int n);

/* ---- emit_turn.c ---- */

/* GPU: reads the tiles of staged loads, if there are any, to their areas. */
void emit_stage_loads(emit *e);
emit_value emit_staged(emit *e, const plan_node *n, int copy);

/* ---- emit_runs.c ---- */

/* All that is done at an open position of a list of runs: where the updates lie
 * elsewhere; where they are in the list. */
void emit_run_rows(emit *e);
void emit_run_listed(emit *e);

/* ---- emit_atomic.c ---- */

/* At p, of 32 bits: body(what is there, v), though other items do the same. */
void emit_atomic(emit *e, const plan_node *n, LLVMValueRef p, emit_value v);

/* ---- emit_scatter.c ---- */

/* The updates of n are LANE's. */
bool emit_takes_turns(const emit *e, const plan_node *n);
void emit_scatter_in_turns(emit *e, const plan_node *n, int copy);
/* Places from .. are set to what n begins with. */
void emit_fill(emit *e, const plan_node *n, LLVMValueRef from, LLVMValueRef to);
/* Around the loop over updates, for kernels by ranges. */
void emit_pick_begin(emit *e);
void emit_pick_end(emit *e);

/* ---- emit_strided.c ---- */

/* Of w * stride elements from p on the first of each `stride`. */
LLVMValueRef emit_read_strided(emit *e, sd_dtype part, LLVMValueRef p,
                               LLVMValueRef mask, int stride, int w);
/* Of those the w that are `stride` apart, one by one; it may be negative. */
LLVMValueRef emit_read_steps(emit *e, sd_dtype part, LLVMValueRef p,
                             int64_t stride, int w);
/* x0[0] x1[0] .. x0[1] x1[1] ..; n is a power of two. */
LLVMValueRef emit_weave(emit *e, LLVMValueRef const *x, int n);
/* The same as n vectors, which lie side by side. */
void emit_weave_apart(emit *e, LLVMValueRef const *x, int n, LLVMValueRef *out);
/* n's vector, and those beside it, which are remembered; false: n is read by
 * itself. */
bool emit_strands_load(emit *e, const plan_node *n, int copy, int level,
                       emit_value *out);
/* What w moves, from `to` on. */
void emit_move(emit *e, const plan_woven *w, LLVMValueRef to, int copy);

/* ---- emit_vector.c: memory to and from registers ---- */

typedef struct { /* a vector of memory at an offset */
    sd_dtype t, part;
    LLVMValueRef p;
    emit_access access;
    LLVMValueRef at;    /* scalar offset; GATHERED: vector */
    LLVMValueRef mask;  /* NULL: all */
    int64_t stride;     /* STRIDED, CONTIGUOUS */
    plan_ordered order; /* ORDERED */
    int w;
} emit_span;
/* What is read where the mask fails is unspecified. */
emit_value emit_span_read(emit *e, const emit_span *a);
void emit_span_write(emit *e, const emit_span *a, emit_value v);
/* A vector of memory at p; mask NULL: all of it. */
LLVMValueRef emit_vector_read(emit *e, sd_dtype part, LLVMValueRef p,
                              LLVMValueRef mask, int w);
void emit_vector_write(emit *e, sd_dtype part, LLVMValueRef v, LLVMValueRef p,
                       LLVMValueRef mask);
/* One element (or w) of type t at element `index` behind p. */
emit_value emit_mem_read(emit *e, sd_dtype t, LLVMValueRef p,
                         LLVMValueRef index, int w);
void emit_mem_write(emit *e, sd_dtype t, LLVMValueRef p, LLVMValueRef index,
                    emit_value v);
/* Its address; where among parts that of a complex number is; and what a part
 * is in registers and in memory. */
LLVMValueRef emit_element(emit *e, sd_dtype part, LLVMValueRef p,
                          LLVMValueRef index);
LLVMValueRef emit_pair_index(emit *e, LLVMValueRef index, int part);
LLVMValueRef emit_of_memory(emit *e, sd_dtype t, LLVMValueRef v);
LLVMValueRef emit_to_memory(emit *e, sd_dtype t, LLVMValueRef v);

/* ---- one file a node class ---- */

emit_value emit_load(emit *e, const plan_node *n, int copy);
/* n->wide copies in one access, all remembered; that of `copy`. */
emit_value emit_wide_load(emit *e, const plan_node *n, int copy, int level);

/* ---- emit_across.c ---- */

/* Those that the pass takes in squares; false: n is none of them.  A load
 * remembers its values, of all copies, at `level`. */
bool emit_across_load(emit *e, const plan_node *n, int copy, int level);
bool emit_across_store(emit *e, const plan_node *n, int copy);

/* ---- emit_shifted.c ---- */

/* All of a sum whose pass is SHIFTED, at position 0 of the axis that it is
 * over. */
void emit_shifted(emit *e, const plan_node *n);

void emit_store(emit *e, const plan_node *n, int copy);
void emit_scatter(emit *e, const plan_node *n, int copy);
void emit_park_write(emit *e, const plan_node *n, int copy);
emit_value emit_park_read(emit *e, const plan_node *n, int copy);
/* A byte of e->local. */
LLVMValueRef emit_local(emit *e, LLVMValueRef byte);
LLVMValueRef emit_local_at(emit *e, size_t byte);
/* Byte `plus` of area number `area`. */
LLVMValueRef emit_area(emit *e, int area, size_t plus);
emit_value emit_elt(emit *e, int op, const hlo_inst *in, sd_dtype t,
                    int narg, const emit_value *arg, const sd_dtype *arg_t);
emit_value emit_convert(emit *e, emit_value x, sd_dtype from, sd_dtype to);
/* f32 v from memory has the bits of a bf16 in its upper half and no others. */
void emit_note_widened(emit *e, LLVMValueRef v);
LLVMValueRef emit_to_f32(emit *e, LLVMValueRef x, sd_dtype from);
/* The integers that are as wide as x, of f32 or f64. */
LLVMTypeRef emit_int_type_like(emit *e, LLVMValueRef x, sd_dtype t);
LLVMValueRef emit_compare(emit *e, int dir, int type, emit_value x,
                          emit_value y, sd_dtype t);
/* An unsigned integer, as wide as t in memory, that orders as t does: integers
 * by value, floats in their total order. */
LLVMValueRef emit_order_code(emit *e, LLVMValueRef x, sd_dtype t);
LLVMValueRef emit_power_function(emit *e, LLVMTypeRef t, sd_dtype dtype);
/* Of floats, without a loop (emit_remainder.c); NULL: `by` is no constant power
 * of two. */
LLVMValueRef emit_float_rest(emit *e, LLVMValueRef x, LLVMValueRef by);
LLVMValueRef emit_wrap(emit *e, LLVMValueRef x, sd_dtype t);
/* stem: "dl_exp_f32"; elem: the type of one element of the result. */
LLVMValueRef emit_devlib(emit *e, const char *stem, LLVMTypeRef elem,
                         LLVMValueRef *arg, int narg);
/* x[0] becomes the function n of it, a bf16, near enough for what is rounded to
 * bf16; false: the device has no such function. */
bool emit_devlib_of_bf16(emit *e, const plan_node *n, emit_value *x);
/* Host: calls the machine code of a device function that works on memory. */
LLVMValueRef emit_devlib_code(emit *e, const char *name, LLVMTypeRef result,
                              LLVMValueRef *arg, int narg);
/* A device function that reads and writes memory; NULL after emit_fail. */
LLVMValueRef emit_devlib_kernel(emit *e, const char *name, LLVMTypeRef t);
void emit_body(emit *e, const plan_body *body, const emit_value *arg,
               emit_value *root);

/* ---- emit_multiply.c ---- */

/* Subnormal operands and results of what comes next count as 0
 * (docs/numerics.md), until the mode from before, which is returned, is
 * restored.  Host only. */
LLVMValueRef emit_drop_subnormals(emit *e);
void emit_restore_mode(emit *e, LLVMValueRef mode);
/* acc + x * y as CONTRACT n has it; as wide as acc. */
emit_value emit_multiply_add(emit *e, const plan_node *n, emit_value x,
                             emit_value y, emit_value acc);

/* ---- emit_reduce.c: the accumulators of a stage's loops ---- */

emit_reduction *emit_reduce_begin(emit *e, const plan_node *n, plan_lanes how);
void emit_reduce_step(emit *e, emit_reduction *r, int copy);
/* emit_identity.c; false: n has none. */
bool emit_identity(emit *e, const plan_node *n, emit_value *out);
/* A sum that was made without: but for its initial value it is x. */
void emit_reduce_give(emit *e, const plan_node *n, int copy, emit_value x);
void emit_reduce_hand_on(emit *e, emit_reduction *r, bool put);
void emit_team_sum(emit *e, emit_reduction *r, uint64_t varies);
/* The end of a CONTRACT's chain. */
void emit_reduce_chain(emit *e, emit_reduction *r);
/* MAJOR: before each strided lane; then the accumulators hold lane `lane`. */
void emit_reduce_restart(emit *e, emit_reduction *r);
void emit_reduce_lane(emit *e, emit_reduction *r, LLVMValueRef lane);
/* Rows: the accumulators of the open position of LANE to and from memory. */
void emit_reduce_put(emit *e, emit_reduction *r);
void emit_reduce_get(emit *e, emit_reduction *r);
void emit_reduce_end(emit *e, emit_reduction *r);
const plan_node *emit_reduction_node(const emit_reduction *r);

emit_value emit_scan(emit *e, const plan_node *n, int copy, int out);

/* ---- emit_join.c ---- */

/* A value of each result of the sum n, in its areas. */
void emit_to_area(emit *e, const plan_node *n, LLVMValueRef at,
                  const emit_value *x);
void emit_of_area(emit *e, const plan_node *n, LLVMValueRef at, emit_value *x);
/* x becomes body(x, y), where `valid` holds or (NULL) everywhere. */
void emit_join_body(emit *e, const plan_node *n, emit_value *x,
                    const emit_value *y, LLVMValueRef valid);
/* Strided lanes 0 .. lanes of which `have` hold something; v[i] is lane i, and
 * v[0] becomes the result. */
void emit_join_lanes(emit *e, const plan_node *n, emit_value **v, int lanes,
                     int64_t have);
/* The same where lanes lie in work items, `vector` of them in each. */
void emit_join_items(emit *e, const plan_node *n, int lanes, emit_value **v,
                     int64_t have);
/* The same where a row of the group has a lane, x of neighbour number `at` of the
 * item's: all rows have the result. */
void emit_join_rows(emit *e, const plan_node *n, emit_value *x, int at,
                    int64_t have);
/* Host: the same where lanes lie in vectors of `width`: whole vectors first, then
 * halves of one. */
void emit_join_vectors(emit *e, const plan_node *n, int lanes, int width,
                       emit_value **v, int64_t have);

/* ---- emit_sort.c, emit_sort_keys.c ---- */

void emit_sort(emit *e);
void emit_sort_row_by_keys(emit *e, LLVMValueRef r); /* host */
LLVMValueRef emit_sort_base(emit *e, LLVMValueRef r, int64_t n);
/* The codes of w elements, of type `type`; arg: what s->keys takes. */
LLVMValueRef emit_sort_code(emit *e, const plan_sort *s, const emit_value *arg,
                            LLVMTypeRef type, int w);
emit_value emit_place(emit *e, sd_dtype t, LLVMValueRef i); /* as an iota */
void emit_device_call(emit *e);
void emit_attend(emit *e);
void emit_places(emit *e); /* emit_places.c */
void emit_buckets(emit *e);

#endif
