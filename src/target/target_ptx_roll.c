/* Which loops ptxas may unroll; not asked where there is wgmma.
 *
 * It unrolls most loops by four, whatever their bodies are.  What an item does
 * in one turn is the plan's choice, and four times as many instructions take
 * three times as long to assemble, and registers that the plan has counted on:
 * the gradient of layer norm f32, 32,768 x 8,192, takes 2,055 us on an H200
 * with the loops of its rows unrolled and 1,469 without.  So loops stay as they
 * are, but for those that read less than a vector or two of memory in a turn:
 * what waits for it is not to wait for one word after the other (running sums
 * of 16 M f32 131 us, 156 without). */
#include <llvm-c/Target.h>

#include "target_ptx.h"

enum { FEW_BYTES = 32 };

/* Bytes of the device's memory that an item reads in a block. */
static uint64_t bytes_read(LLVMBasicBlockRef bb, LLVMTargetDataRef data)
{
    uint64_t all = 0;

    for (LLVMValueRef in = LLVMGetFirstInstruction(bb); in;
         in = LLVMGetNextInstruction(in))
        if (LLVMIsALoadInst(in) &&
            LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(in, 0))) ==
                (unsigned)target_ptx.global_as)
            all += LLVMStoreSizeOfType(data, LLVMTypeOf(in));
    return all;
}

/* Blocks from a loop's first to that which ends with `end` stand in a row. */
static void keep_rolled(LLVMBasicBlockRef first, LLVMValueRef end,
                        LLVMTargetDataRef data, LLVMContextRef cx)
{
    static const char loop[] = "llvm.loop";
    LLVMBasicBlockRef last = LLVMGetInstructionParent(end), bb = first;
    uint64_t read = bytes_read(bb, data);

    while (bb != last && (bb = LLVMGetNextBasicBlock(bb)))
        read += bytes_read(bb, data);
    if (bb && (read == 0 || read >= FEW_BYTES))
        LLVMSetMetadata(end,
                        LLVMGetMDKindIDInContext(cx, loop, sizeof loop - 1),
                        emit_rolled(cx));
}

/* Is there a way on from `bb` to `to`, in the order in which they stand? */
static bool stands_before(LLVMBasicBlockRef bb, LLVMBasicBlockRef to)
{
    while (bb && bb != to)
        bb = LLVMGetNextBasicBlock(bb);
    return bb;
}

void target_ptx_roll(LLVMModuleRef m, LLVMContextRef cx)
{
    LLVMTargetDataRef data = LLVMGetModuleDataLayout(m);

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb;
             bb = LLVMGetNextBasicBlock(bb)) {
            LLVMValueRef end = LLVMGetBasicBlockTerminator(bb);
            unsigned n = LLVMGetNumSuccessors(end);

            for (unsigned i = 0;
                 i < n && LLVMGetInstructionOpcode(end) == LLVMBr; i++)
                if (stands_before(LLVMGetSuccessor(end, i), bb))
                    keep_rolled(LLVMGetSuccessor(end, i), end, data, cx);
        }
}
