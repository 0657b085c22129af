/* Which loops ptxas may unroll; not asked where there is wgmma.
 *
 * It unrolls most loops by four, whatever their bodies are.  What an item does
 * in one turn is the plan's choice, and four times as many instructions take
 * three times as long to assemble, and registers that the plan has counted on:
 * the gradient of layer norm f32, 32,768 x 8,192, takes 2,055 us on an H200
 * with the loops of its rows unrolled and 1,469 without.  So loops stay as they
 * are, but for those whose turns read little memory that nobody writes: it is
 * read ahead for several turns, which in one that writes is before that of the
 * turn at hand (running sums of 16 M f32 131 us, 156 without). */
#include "target_ptx.h"

#include <llvm-c/Target.h>

/* Bytes of an item's turn: fewer are little, and of a turn that writes. */
enum { LITTLE = 32, LITTLE_COPIED = 128 };

typedef struct {
    LLVMContextRef cx;
    LLVMTargetDataRef data; /* borrowed */
    unsigned loop, constant; /* kinds of metadata */
    uint64_t read; /* of a loop's turn, of what nobody writes */
    bool writes;
} roller;

static bool is_global(LLVMValueRef pointer)
{
    return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) ==
           (unsigned)target_ptx.global_as;
}

static void look_at(roller *r, LLVMBasicBlockRef bb)
{
    for (LLVMValueRef in = LLVMGetFirstInstruction(bb); in;
         in = LLVMGetNextInstruction(in))
        if (LLVMIsALoadInst(in) && LLVMGetMetadata(in, r->constant))
            r->read += LLVMStoreSizeOfType(r->data, LLVMTypeOf(in));
        else if (LLVMIsAStoreInst(in))
            r->writes |= is_global(LLVMGetOperand(in, 1));
}

/* Blocks from a loop's first to that which ends with `end` stand in a row. */
static void keep_rolled(roller *r, LLVMBasicBlockRef first, LLVMValueRef end)
{
    LLVMBasicBlockRef last = LLVMGetInstructionParent(end), bb = first;

    r->read = 0;
    r->writes = false;
    for (; bb != last; bb = LLVMGetNextBasicBlock(bb))
        look_at(r, bb);
    look_at(r, last);
    if (!r->read || r->read >= (r->writes ? LITTLE_COPIED : LITTLE))
        LLVMSetMetadata(end, r->loop, emit_rolled(r->cx));
}

/* As far is looked from both as they stand from each other: functions may have
 * many blocks. */
static bool stands_before(LLVMBasicBlockRef bb, LLVMBasicBlockRef to)
{
    LLVMBasicBlockRef x = bb, y = to;

    while (x != to) {
        y = y ? LLVMGetNextBasicBlock(y) : NULL;
        if (y == bb)
            return false;
        x = x ? LLVMGetNextBasicBlock(x) : NULL;
    }
    return true;
}

static void roll_block(roller *r, LLVMBasicBlockRef bb)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(bb);
    unsigned n = LLVMIsABranchInst(end) ? LLVMGetNumSuccessors(end) : 0;

    for (unsigned i = 0; i < n; i++)
        if (stands_before(LLVMGetSuccessor(end, i), bb))
            keep_rolled(r, LLVMGetSuccessor(end, i), end);
}

static unsigned kind_of(LLVMContextRef cx, const char *name)
{
    return LLVMGetMDKindIDInContext(cx, name, (unsigned)strlen(name));
}

void target_ptx_roll(LLVMModuleRef m, LLVMContextRef cx)
{
    roller r = {.cx = cx,
                .data = LLVMGetModuleDataLayout(m),
                .loop = kind_of(cx, "llvm.loop"),
                .constant = kind_of(cx, "invariant.load")};

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb;
             bb = LLVMGetNextBasicBlock(bb))
            roll_block(&r, bb);
}
