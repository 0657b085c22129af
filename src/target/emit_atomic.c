/* GPU: what several items change at once, where the order does not matter.
 * Integers by one instruction; what has none is computed from what is there,
 * and put there if nobody else was quicker. */
#include "emit.h"

static bool instruction_of(const plan_node *n, LLVMAtomicRMWBinOp *op)
{
    bool sign = sd_is_signed(n->dtype);

    if (!sd_is_int(n->dtype))
        return false;
    switch (n->body->op) {
    case HLO_ADD:
        *op = LLVMAtomicRMWBinOpAdd;
        return true;
    case HLO_AND:
        *op = LLVMAtomicRMWBinOpAnd;
        return true;
    case HLO_OR:
        *op = LLVMAtomicRMWBinOpOr;
        return true;
    case HLO_XOR:
        *op = LLVMAtomicRMWBinOpXor;
        return true;
    case HLO_MAXIMUM:
        *op = sign ? LLVMAtomicRMWBinOpMax : LLVMAtomicRMWBinOpUMax;
        return true;
    case HLO_MINIMUM:
        *op = sign ? LLVMAtomicRMWBinOpMin : LLVMAtomicRMWBinOpUMin;
        return true;
    default:
        return false;
    }
}

static unsigned all_groups(emit *e)
{
    return LLVMGetSyncScopeID(e->cx, "device", strlen("device"));
}

/* Most updates of a maximum change nothing, and then write nothing. */
static void compare_and_swap(emit *e, const plan_node *n, LLVMValueRef p,
                             emit_value v)
{
    LLVMBasicBlockRef enter, again = emit_block(e, "again"),
                             swap = emit_block(e, "swap"),
                             done = emit_block(e, "done");
    LLVMValueRef old, first, word, got;
    emit_value arg[2] = {{NULL, NULL}, v}, root[1];

    first = LLVMBuildLoad2(e->b, e->i32, p, "");
    LLVMSetVolatile(first, true); /* others write there: it is read once */
    enter = LLVMGetInsertBlock(e->b);
    LLVMBuildBr(e->b, again);
    LLVMPositionBuilderAtEnd(e->b, again);
    old = LLVMBuildPhi(e->b, e->i32, "");
    LLVMAddIncoming(old, &first, &enter, 1);
    arg[0].re = emit_as(e, old, emit_type(e, n->dtype));
    emit_body(e, n->body, arg, root);
    word = emit_as(e, root[0].re, e->i32);
    LLVMBuildCondBr(e->b, emit_equal(e, word, old), done, swap);
    LLVMPositionBuilderAtEnd(e->b, swap);
    got = LLVMBuildAtomicCmpXchgSyncScope(
        e->b, p, old, word, LLVMAtomicOrderingMonotonic,
        LLVMAtomicOrderingMonotonic, all_groups(e));
    word = LLVMBuildExtractValue(e->b, got, 0, "");
    LLVMAddIncoming(old, &word, &swap, 1);
    LLVMBuildCondBr(e->b, LLVMBuildExtractValue(e->b, got, 1, ""), done, again);
    LLVMPositionBuilderAtEnd(e->b, done);
}

void emit_atomic(emit *e, const plan_node *n, LLVMValueRef p, emit_value v)
{
    LLVMAtomicRMWBinOp op;

    if (instruction_of(n, &op))
        LLVMBuildAtomicRMWSyncScope(e->b, op, p, v.re,
                                    LLVMAtomicOrderingMonotonic, all_groups(e));
    else
        compare_and_swap(e, n, p, v);
}
