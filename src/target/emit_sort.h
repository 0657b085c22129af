/* What kernels that sort by a comparator share: emit_sort.c, emit_merge.c. */
#ifndef EMIT_SORT_H
#define EMIT_SORT_H

#include "emit.h"

typedef struct { /* one row in one buffer */
    LLVMValueRef *p;    /* an operand; NULL: it is the place in the row */
    LLVMValueRef base;  /* element; NULL: 0 */
    int64_t stride;
    LLVMValueRef first; /* the place in the row of the first; NULL: 0 */
} emit_sort_row;

typedef struct {
    emit *e;
    const plan_sort *s;
    int64_t n;          /* elements of a row, or of a piece of one, at most */
    LLVMValueRef count; /* so many there are */
    sd_dtype *type;
    emit_sort_row in, other, work; /* other: the second of the two */
    bool full;                     /* other is the result */
} emit_sorter;

typedef emit_value *emit_item; /* a value an operand */

emit_item emit_sort_read(emit_sorter *s, const emit_sort_row *r,
                         LLVMValueRef i);
emit_item emit_sort_choose(emit_sorter *s, LLVMValueRef c, emit_item x,
                           emit_item y);
LLVMValueRef emit_sort_less(emit_sorter *s, emit_item x, emit_item y);

/* Two runs of a row, one after the other, each in order. */
typedef struct { LLVMValueRef start, mid, end; } emit_runs;
/* How many of the left run are among the first `before` of both; is_behind: does
 * element i of the left one come after element j of the right one? */
typedef LLVMValueRef (*emit_is_behind)(void *ctx, LLVMValueRef i,
                                       LLVMValueRef j);
LLVMValueRef emit_count_left(emit *e, const emit_runs *r, LLVMValueRef before,
                             emit_is_behind is_behind, void *ctx);

void emit_merge(emit *e); /* emit_merge.c */
void emit_sort_items(emit *e); /* emit_sort_items.c */
void emit_digits(emit *e); /* emit_digits.c: to count, sum or move */

#endif
