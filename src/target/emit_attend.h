/* What kernels of attention (emit_attend.c) have beside products: a target's,
 * as target_ptx_attend.c has it. */
#ifndef EMIT_ATTEND_H
#define EMIT_ATTEND_H

#include "emit.h"

typedef struct {
    LLVMValueRef x, y; /* where operands begin in local memory; x NULL: */
    LLVMValueRef *word; /* x is in these, EMIT_PIECES an instruction */
    int columns, times; /* of the product; instructions, one after the other */
} emit_turn_product;
struct emit_attend_abi {
    /* n scores of an item are the engine's own, until they are taken. */
    void (*open)(emit *e, int n);
    void (*take)(emit *e, LLVMValueRef *out, int n);
    /* Begin: scores = x * y, both along K; sums + x * y, y across it. */
    void (*score)(emit *e, const emit_turn_product *p);
    void (*sum)(emit *e, const emit_turn_product *p);
    /* Waits for all products, not before v is known, of which the item's word
     * of local memory at p is told. */
    void (*wait_behind)(emit *e, LLVMValueRef p, LLVMValueRef v);
    /* An item's n sums times by[0], of its first row, or by[1]. */
    void (*scale)(emit *e, LLVMValueRef *by, int n);
    LLVMValueRef (*exp2)(emit *e, LLVMValueRef x); /* of an f32, to 2 ulp */
    LLVMValueRef (*pack)(emit *e, sd_dtype t, LLVMValueRef lo, LLVMValueRef hi);
    LLVMValueRef (*any)(emit *e, LLVMValueRef c); /* a barrier: of all items */
};

#endif
