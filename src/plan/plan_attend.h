/* Attention by groups of work items: which rows and keys a group has at a time,
 * and where they lie in local memory. */
#ifndef PLAN_ATTEND_H
#define PLAN_ATTEND_H

#include "plan_contract.h"

enum { PLAN_ATTEND_COPIED = 4 /* q, k, v, of gradients the cotangent */ };

/* A group takes `rows` rows of one point of the batch, and goes through the keys
 * in blocks of `keys`:
 *
 *   q              all its rows, read once
 *   k, v           `pairs` blocks, which take turns: one is multiplied while
 *                  the next ones arrive
 *   in registers   an item's part of the block's scores, of rows' largest score
 *                  and sum so far, of the result so far
 *
 * Each array lies in lines of PLAN_LINE bytes, as wide engines read it: columns
 * of PLAN_LINE bytes of all its rows one behind the other.  Of q and k there are
 * zeros up to the next whole `depth` of the engine, and in place of rows and
 * keys that are not there.
 *
 * A mask that is told by row and key alone leaves whole blocks without a score
 * of their own: where `is_cut`, those of keys above row + beyond are `masked`.
 * Such blocks add nothing where the row's largest score is far larger, and
 * are left out; rows of which that is not so go through them afterwards.
 *
 * An engine of panels (Intel's) takes operands from registers, to which messages
 * bring them as blocks of matrices: there are no areas, and `pairs` is 0.  Each
 * sub-group of a group has PLAN_SQUARE of its rows and goes through the keys by
 * itself; they are a group for the cache, of which they read the same k and v.
 *
 * Where there are no such messages a sub-group of 8 items has 8 or 16 rows, q in
 * local memory, and its items read k, and v with keys last, for themselves.
 *
 * A gradient of q is done the same way, with the cotangent beside q.  Of k and v
 * a group has `keys` keys, and goes through the rows: k and v are read once, and
 * blocks of q and the cotangent take turns.  `pairs` are three there: sums go on
 * while the next block is begun, so one more is read.  Where messages bring
 * operands, sums of wide k and v leave no registers for each other: `apart`, a
 * sub-group goes through the rows for k's, and again for v's. */
typedef struct {
    hlo_attend of;
    plan_body *score, *slope; /* parameters are as hlo_attend has them */
    plan_engine engine;
    int rows, keys, pairs;
    bool apart; /* the gradients of k and v are made one after the other */
    int64_t blocks;   /* of what a group has, a point of the batch */
    /* Of local memory: where the areas of these begin, and what one of each
     * has; behind them a word an item, which nobody reads: see wait_behind. */
    size_t at[PLAN_ATTEND_COPIED], bytes[PLAN_ATTEND_COPIED], marks;
    bool is_cut, cut_alone; /* nothing else asks for row and key */
    int64_t beyond;
    double masked;
} plan_attend;

/* The axis along which a group has one block, and the other one. */
static inline int plan_attend_axis(const plan_attend *a, bool other)
{
    return (a->of.kind == HLO_ATTEND_OF_KEYS) != other ? HLO_ATTEND_K
                                                       : HLO_ATTEND_Q;
}
static inline int plan_attend_block(const plan_attend *a, int axis)
{
    return axis == HLO_ATTEND_K ? a->keys : a->rows;
}
/* Does each sub-group bring operands to registers? */
static inline bool plan_attend_reads(const plan_attend *a)
{
    return plan_engine_table[a->engine].panels;
}
/* Are there no such messages, and items bring k and v, turned, and q from local
 * memory? */
static inline bool plan_attend_gathers(const plan_attend *a)
{
    return plan_attend_reads(a) && plan_engine_table[a->engine].items <
                                       PLAN_SQUARE;
}
static inline int plan_attend_copied(const plan_attend *a)
{
    return a->slope ? 4 : 3;
}

#endif
