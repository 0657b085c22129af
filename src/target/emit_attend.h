/* What kernels of attention share (emit_attend.c, and emit_attend_group.c for
 * what lies where and is copied), and what they have beside products: a
 * target's, as target_ptx_attend.c and target_spirv_attend.c have it. */
#ifndef EMIT_ATTEND_H
#define EMIT_ATTEND_H

#include "emit_message.h"

typedef struct {
    const char *sums; /* the name of the registers that have them */
    LLVMValueRef x, y; /* where operands begin in local memory; x NULL: */
    LLVMValueRef *word; /* x is in these, EMIT_PIECES an instruction */
    int64_t x_rows, y_rows; /* of their blocks */
    int columns, times; /* of the product; instructions, one after the other */
} emit_turn_product;
typedef struct { LLVMValueRef slot; int number; } emit_own_sum;
/* What of it engines have that copy to local memory, and what those whose
 * operands messages bring. */
struct emit_attend_abi {
    LLVMValueRef (*exp2)(emit *e, LLVMValueRef x); /* of an f32, to 2 ulp */
    /* A barrier, if there is one: of all items that have rows together. */
    LLVMValueRef (*any)(emit *e, LLVMValueRef c);

    /* ---- copied ---- */

    /* n sums of an item are the engine's own, by that name, until they are
     * taken; zero: they begin as 0. */
    void (*open)(emit *e, const char *sums, int n, bool zero);
    void (*take)(emit *e, const char *sums, LLVMValueRef *out, int n);
    /* Begin: sums = x * y, both along K; sums + x * y, y across it. */
    void (*multiply)(emit *e, const emit_turn_product *p);
    void (*add)(emit *e, const emit_turn_product *p);
    /* Waits for all products, not before v is known, of which the item's word
     * of local memory at p is told. */
    void (*wait_behind)(emit *e, LLVMValueRef p, LLVMValueRef v);
    /* An item's n sums times by[0], of its first row, or by[1]. */
    void (*scale)(emit *e, const char *sums, LLVMValueRef *by, int n);
    LLVMValueRef (*pack)(emit *e, sd_dtype t, LLVMValueRef lo, LLVMValueRef hi);

    /* ---- read by blocks ---- */

    /* acc + x * y, of as many rows as the engine has: a column an item. */
    LLVMValueRef (*product)(emit *e, LLVMValueRef x, LLVMValueRef y,
                            LLVMValueRef acc);
    /* Sums that are the engine's own (emit_abi.begin_sum): s + x * y; each row
     * times what item number `of` and those that follow have in `by`; that and
     * v's row. */
    void (*sum_product)(emit *e, const emit_own_sum *s, LLVMValueRef x,
                        LLVMValueRef y);
    void (*sum_scale)(emit *e, const emit_own_sum *s, LLVMValueRef by, int of);
    void (*sum_fold)(emit *e, const emit_own_sum *s, LLVMValueRef v,
                     LLVMValueRef by, int of);
    /* So many rows of f32 as x, rounded; where x has twice as many columns as
     * there are items, two of these side by side. */
    LLVMValueRef (*narrow)(emit *e, LLVMValueRef v);
    LLVMValueRef (*join)(emit *e, LLVMValueRef v, LLVMValueRef w);
    /* x, which lies in local memory row by row. */
    LLVMValueRef (*local_rows)(emit *e, LLVMValueRef p);
    /* Of the vector's rows, as many as items, item i gets row i's largest
     * number, or its sum; and what item i has, the same for all. */
    LLVMValueRef (*of_rows)(emit *e, LLVMValueRef v, bool is_sum);
    LLVMValueRef (*of_item)(emit *e, LLVMValueRef v, int i);
};

enum {
    HALVES = 2, /* rows of an item, */
    APART = 8,  /* so far apart */
    EIGHT = 8,  /* columns of which an item has two */
    QUAD = 4,   /* items that have one row */
    OF_Q = 0,   /* arrays that are copied */
    OF_K,
    OF_V,
    OF_O,
    OF_M, /* arrays of rows: see hlo.h */
    OF_R,
    OF_C
};
enum { ATTEND_FAR = 120 }; /* exp(-ATTEND_FAR) is less than any number of f32 */

typedef struct { /* an operand, of which blocks of rows are copied */
    int array, axis;    /* its slot; along which its rows lie */
    int64_t rows, depth, limit; /* of a block; columns; rows that there are */
    int64_t parts;      /* of a row, those of zeros counted */
    size_t at, bytes;   /* the areas, and one of them */
    int n;              /* parts that an item copies */
    LLVMValueRef *row, *from, *to, *zero, *has; /* has: NULL: it is there */
} attend_copied;

typedef struct {
    emit *e;
    const plan_attend *a;
    LLVMValueRef point[HLO_ATTEND_BATCH]; /* of the batch */
    LLVMValueRef base[HLO_ATTEND_ARRAYS]; /* of it */
    LLVMValueRef first; /* row of those that go through the keys together, */
    int rows, keys;     /* so many: the group's or the sub-group's, or of a
                           block, and keys likewise */
    LLVMValueRef mate;  /* of sub-groups that go by themselves: the item's
                           number, and what their messages are told by */
    emit_words_told words;
    LLVMValueRef team, row, column; /* the item's: team; its first row; where in
                                       eight columns its two are */
    attend_copied in[PLAN_ATTEND_COPIED];
    int nscore, nsum;
    LLVMValueRef most[HALVES], sum[HALVES]; /* variables */
    LLVMValueRef *word; /* variables: weights of a block */
    LLVMValueRef from, to; /* variables: blocks */
    bool is_seen; /* of a block: its rows see all of its keys, and functions of
                     scores ask for nothing else of row and key */
} attending;

static inline LLVMValueRef attend_f32(emit *e, double v)
{
    return LLVMConstReal(e->f32, v);
}
static inline LLVMValueRef attend_get(emit *e, LLVMValueRef p)
{
    return LLVMBuildLoad2(e->b, e->f32, p, "");
}

/* ---- emit_attend_group.c ---- */

/* The point of the batch and the first row of the group; what the item has. */
void attend_find_point(attending *t);
void attend_find_item(attending *t);
/* deep: the engine sums over its columns, of which it takes whole steps. */
void attend_open(attending *t, int array, bool deep);
/* Rows first, first + 1, .. of it begin to go to its area number `turn`. */
void attend_copy(attending *t, const attend_copied *c, LLVMValueRef first,
                 LLVMValueRef turn);
/* A block of t->from to t->to; those beyond the last are the last one again. */
void attend_copy_block(attending *t, const attend_copied *c,
                       LLVMValueRef block);
/* All copies have come but those of the last `left` turns. */
void attend_meet(attending *t, int left);
/* Begin: sums = x's rows of the team times that block of y; sums + words, of
 * x, times the block. */
void attend_multiply(attending *t, const char *sums, const attend_copied *x,
                     const attend_copied *y, LLVMValueRef block);
void attend_add(attending *t, const char *sums, LLVMValueRef *word,
                const attend_copied *y, LLVMValueRef block);
LLVMValueRef attend_row(attending *t, int half);
/* v, or `other` where there is no such row or key. */
LLVMValueRef attend_where(attending *t, int axis, LLVMValueRef at,
                          LLVMValueRef v, double other);
/* A score of that product, as f32, -inf where there is no such key; and of ds
 * the product's gradient. */
LLVMValueRef attend_score(attending *t, LLVMValueRef product, LLVMValueRef row,
                          LLVMValueRef key);
LLVMValueRef attend_slope(attending *t, LLVMValueRef product, LLVMValueRef ds,
                          LLVMValueRef row, LLVMValueRef key);
/* One of them that is a number, if any is. */
LLVMValueRef attend_larger(emit *e, LLVMValueRef x, LLVMValueRef y);
/* e to the power of x - most. */
LLVMValueRef attend_exp(emit *e, LLVMValueRef x, LLVMValueRef most);
/* The item's n sums, as part of its rows of a result. */
void attend_write(attending *t, int array, LLVMValueRef *v, int n);

/* How many blocks have a key that some row sees. */
LLVMValueRef attend_seen_blocks(attending *t, int64_t all);
/* Runs blocks of keys, which `run` does from t->from to t->to: those that some
 * row sees, and then the others if there is a row for which they count, which
 * `near` asks; all where no mask is told by row and key. */
void attend_run_all(attending *t, void (*run)(attending *t),
                    LLVMValueRef (*near)(attending *t));
/* A loop of `run` over blocks of keys; seen: rows see all of these. */
typedef void attend_block_fn(attending *t, LLVMValueRef block);
void attend_run_some(attending *t, attend_block_fn *run, LLVMValueRef from,
                     LLVMValueRef to, bool seen);
/* Blocks that are seen whole come first for rows, last for keys: the first block
 * behind those, or of those. */
LLVMValueRef attend_first_other(attending *t);
/* Is m, an f32, so near to what masked scores are, or no number, that these add
 * to sums? */
LLVMValueRef attend_is_near(attending *t, LLVMValueRef m);

/* ---- emit_attend_read.c: engines whose operands messages bring ---- */

void emit_attend_read(emit *e);

/* ---- emit_attend_gather.c: those whose operands items bring ---- */

void emit_attend_gather(emit *e);

/* ---- emit_attend_slope.c: gradients of those that messages bring ---- */

void emit_attend_slope(emit *e);

/* ---- emit_attend_gradient.c ---- */

void emit_attend_gradient(attending *t);

#endif
