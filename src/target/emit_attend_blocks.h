/* What kernels of attention share whose operands messages bring as blocks of
 * matrices (emit_attend_read.c and emit_attend_slope.c), or items themselves
 * (emit_attend_gather.c). */
#ifndef EMIT_ATTEND_BLOCKS_H
#define EMIT_ATTEND_BLOCKS_H

#include "emit_attend.h"

enum {
    ATTEND_HALF = PLAN_SQUARE / HALVES, /* rows that an instruction has */
    ATTEND_TOGETHER = 4 /* blocks that are on their way at a time */
};

/* How messages read an operand. */
typedef struct {
    int array;
    emit_reads what;
    LLVMValueRef told; /* of the first block */
    LLVMValueRef down, along; /* adds rows of a block, adds columns */
} attend_reading;

/* The sub-group's own rows of an operand, a part of PLAN_SQUARE columns at a
 * time. */
typedef struct {
    attend_reading of;
    LLVMValueRef at; /* variable: what is told of the next part.  As numbers
                        that are the same in each block the compiler would keep
                        all of them in registers */
    LLVMValueRef back; /* from the last part to the first */
    int parts;
} attend_own;

static inline LLVMTypeRef attend_rows_type(emit *e)
{
    return LLVMVectorType(e->f32, ATTEND_HALF);
}
static inline LLVMValueRef attend_of_vector(emit *e, LLVMValueRef v, int i)
{
    return LLVMBuildExtractElement(e->b, v,
                                   LLVMConstInt(e->i32, (unsigned)i, 0), "");
}
static inline LLVMValueRef attend_in_vector(emit *e, LLVMValueRef all,
                                            LLVMValueRef v, int i)
{
    return LLVMBuildInsertElement(e->b, all, v,
                                  LLVMConstInt(e->i32, (unsigned)i, 0), "");
}
/* What is told of the rows or columns behind: by r->down or r->along. */
static inline LLVMValueRef attend_moved(emit *e, LLVMValueRef told,
                                        LLVMValueRef by)
{
    return LLVMBuildAdd(e->b, told, by, "");
}
/* n columns as squares, the last of which need not be full. */
static inline int attend_squares(int64_t n)
{
    return (int)((n + PLAN_SQUARE - 1) / PLAN_SQUARE);
}

/* Which PLAN_SQUARE rows are the sub-group's, and the item's number in it. */
void attend_find_rows(attending *t);
/* Of an array whose rows are positions of one axis, and columns of another;
 * rows and columns beyond those of the point are 0. */
attend_reading attend_find_reading(attending *t, int array, int axis, int along,
                                   emit_reads what);
attend_own attend_find_own(attending *t, int array, int axis, int along);
/* What is told of rows from `row` on. */
LLVMValueRef attend_told_of(attending *t, const attend_reading *r,
                            LLVMValueRef row);
/* Products of x's rows and y's from `row` on, n squares of these: of square i
 * s[HALVES * i + half]. */
void attend_multiply_own(attending *t, const attend_own *x,
                         const attend_reading *y, LLVMValueRef row, int n,
                         LLVMValueRef *s);
/* Calls `run` in a loop over the blocks of keys from t->from to t->to; those of
 * which the rows see all are a loop of their own where the plan has them so. */
void attend_run_blocks(attending *t, attend_block_fn *run);
/* Sums number `from` and so on begin as 0: halves of n squares of columns. */
emit_own_sum *attend_open_sums(attending *t, int from, int n);
/* Adds to n squares of columns products of `w`, two halves as left operands,
 * and y, from what is told of it on. */
void attend_add_columns(attending *t, const emit_own_sum *sum, int n,
                        const LLVMValueRef *w, const attend_reading *y,
                        LLVMValueRef told);
LLVMValueRef attend_take_sum(attending *t, const emit_own_sum *s);
/* A square of columns of a result, half h of it, of rows that there are. */
void attend_write_columns(attending *t, int array, int square, int h,
                          LLVMValueRef v);

#endif
