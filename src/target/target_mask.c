/* Masked reads and writes, before code generation.  Which lanes a mask allows
 * often shows only after loops have been unrolled.
 *
 * Writes: where a mask is known to allow one lane alone, and what is written
 * was narrowed from wider integers, LLVM 22 for AVX-512 writes that lane at its
 * wide size, over its neighbours.  So one lane is written as an element.
 *
 * Reads of AVX2: LLVM 22 reads without a mask what it cuts off a masked read
 * whose mask it finds to be false there: of eight numbers of 64 bits the upper
 * four, where a row has no more than four.  That gives numbers that nobody
 * asked for, and reads behind the end of memory.  So a read of which a half, or
 * a register of several, is in vain becomes those of its halves; what is never
 * allowed is what the read passes on.  Others LLVM cuts by itself, and rightly.
 */
#include "target_room.h"

enum {
    REGISTER = 256,  /* bits */
    LEAST = 2,       /* lanes: of one LLVM makes no masked instruction */
    MOST_LANES = 64, /* of a read; ours have sixteen */
    MOST_DEPTH = 8   /* of operations that make a mask */
};

typedef struct {
    LLVMBuilderRef b;
    LLVMTypeRef i32, part; /* of a lane */
    LLVMValueRef call, from, mask, pass;
    int lanes, bits;
} reading;

/* Is lane i of a mask false whatever the program does, as behind the end of a
 * short row? */
static bool is_never(LLVMValueRef mask, int i, int depth)
{
    LLVMValueRef lane;
    int w;

    if (LLVMIsConstant(mask)) {
        lane = LLVMGetAggregateElement(mask, (unsigned)i);
        return lane && LLVMIsNull(lane);
    }
    if (!LLVMIsAInstruction(mask) || depth == MOST_DEPTH)
        return false;
    depth++;
    switch (LLVMGetInstructionOpcode(mask)) {
    case LLVMAnd:
        return is_never(LLVMGetOperand(mask, 0), i, depth) ||
               is_never(LLVMGetOperand(mask, 1), i, depth);
    case LLVMOr:
        return is_never(LLVMGetOperand(mask, 0), i, depth) &&
               is_never(LLVMGetOperand(mask, 1), i, depth);
    case LLVMSelect:
        return is_never(LLVMGetOperand(mask, 1), i, depth) &&
               is_never(LLVMGetOperand(mask, 2), i, depth);
    case LLVMShuffleVector:
        if ((i = LLVMGetMaskValue(mask, (unsigned)i)) < 0)
            return false;
        w = (int)LLVMGetVectorSize(LLVMTypeOf(LLVMGetOperand(mask, 0)));
        return is_never(LLVMGetOperand(mask, i >= w), i % w, depth);
    default:
        return false;
    }
}

static bool are_never(const reading *r, int first, int n)
{
    for (int i = first; i < first + n; i++)
        if (!is_never(r->mask, i, 0))
            return false;
    return true;
}

/* Is a half in vain, or one of the registers that it takes? */
static bool wants_halves(const reading *r, int first, int n)
{
    int half = n / 2, next = first + half;

    return half >= LEAST && n % 2 == 0 &&
           (are_never(r, first, half) || are_never(r, next, half) ||
            (half * r->bits > REGISTER &&
             (wants_halves(r, first, half) || wants_halves(r, next, half))));
}

/* n lanes of v, and of `more` behind it, from the first on. */
static LLVMValueRef lanes_of(const reading *r, LLVMValueRef v,
                             LLVMValueRef more, int first, int n)
{
    LLVMValueRef lane[MOST_LANES];

    for (int i = 0; i < n; i++)
        lane[i] = LLVMConstInt(r->i32, (unsigned)(first + i), 0);
    return LLVMBuildShuffleVector(r->b, v,
                                  more ? more : LLVMGetPoison(LLVMTypeOf(v)),
                                  LLVMConstVector(lane, (unsigned)n), "");
}

static LLVMValueRef read_lanes(const reading *r, int first, int n)
{
    LLVMValueRef at = LLVMConstInt(r->i32, (unsigned)first, 0), arg[3], v, low;
    LLVMTypeRef over[2] = {LLVMVectorType(r->part, (unsigned)n),
                           LLVMTypeOf(r->from)};
    unsigned id = LLVMGetIntrinsicID(LLVMGetCalledValue(r->call));
    LLVMModuleRef m = LLVMGetGlobalParent(LLVMGetCalledValue(r->call));

    if (are_never(r, first, n))
        return lanes_of(r, r->pass, NULL, first, n);
    if (wants_halves(r, first, n)) {
        low = read_lanes(r, first, n / 2);
        v = read_lanes(r, first + n / 2, n / 2);
        return lanes_of(r, low, v, 0, n);
    }
    arg[0] = LLVMBuildGEP2(r->b, r->part, r->from, &at, 1, "");
    arg[1] = lanes_of(r, r->mask, NULL, first, n);
    arg[2] = lanes_of(r, r->pass, NULL, first, n);
    v = LLVMGetIntrinsicDeclaration(m, id, over, 2);
    v = LLVMBuildCall2(r->b, LLVMGlobalGetValueType(v), v, arg, 3, "");
    LLVMSetInstrParamAlignment(v, 1, (unsigned)r->bits / 8);
    return v;
}

static int bits_of(LLVMTypeRef t)
{
    switch (LLVMGetTypeKind(t)) {
    case LLVMIntegerTypeKind:
        return (int)LLVMGetIntTypeWidth(t);
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return 16;
    case LLVMDoubleTypeKind:
        return 64;
    default:
        return 32;
    }
}

static void cut(reading *r, LLVMValueRef call)
{
    LLVMTypeRef t = LLVMTypeOf(call);

    r->call = call;
    r->from = LLVMGetOperand(call, 0);
    r->mask = LLVMGetOperand(call, 1);
    r->pass = LLVMGetOperand(call, 2);
    r->part = LLVMGetElementType(t);
    r->lanes = (int)LLVMGetVectorSize(t);
    r->bits = bits_of(r->part);
    if (LLVMIsConstant(r->mask) || r->lanes > MOST_LANES ||
        !wants_halves(r, 0, r->lanes))
        return;
    LLVMPositionBuilderBefore(r->b, call);
    LLVMReplaceAllUsesWith(call, read_lanes(r, 0, r->lanes));
    LLVMInstructionEraseFromParent(call);
}

/* The only lane that a mask known by now allows; -1: there is none such. */
static int only_lane(LLVMValueRef mask)
{
    int n = (int)LLVMGetVectorSize(LLVMTypeOf(mask)), only = -1;

    for (int i = 0; LLVMIsConstant(mask) && i < n; i++) {
        LLVMValueRef on = LLVMGetAggregateElement(mask, (unsigned)i);

        if (!on || !LLVMIsAConstantInt(on))
            return -1;
        if (!LLVMConstIntGetZExtValue(on))
            continue;
        if (only >= 0)
            return -1;
        only = i;
    }
    return only;
}

static void write_element(reading *r, LLVMValueRef call)
{
    LLVMValueRef v = LLVMGetOperand(call, 0), at;
    int lane = only_lane(LLVMGetOperand(call, 2));

    if (lane < 0)
        return;
    r->part = LLVMGetElementType(LLVMTypeOf(v));
    LLVMPositionBuilderBefore(r->b, call);
    at = LLVMConstInt(r->i32, (unsigned)lane, 0);
    v = LLVMBuildStore(
        r->b, LLVMBuildExtractElement(r->b, v, at, ""),
        LLVMBuildGEP2(r->b, r->part, LLVMGetOperand(call, 1), &at, 1, ""));
    LLVMSetAlignment(v, (unsigned)bits_of(r->part) / 8);
    LLVMInstructionEraseFromParent(call);
}

/* The next use is asked for first: a call that is cut goes. */
static void for_each_call(LLVMModuleRef m, LLVMContextRef cx, const char *name,
                          void (*cut_one)(reading *r, LLVMValueRef call))
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    reading r = {.b = LLVMCreateBuilderInContext(cx),
                 .i32 = LLVMInt32TypeInContext(cx)};
    LLVMUseRef next;

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        for (LLVMUseRef u = LLVMGetIntrinsicID(f) == id ? LLVMGetFirstUse(f)
                                                        : NULL;
             u; u = next) {
            next = LLVMGetNextUse(u);
            cut_one(&r, LLVMGetUser(u));
        }
    LLVMDisposeBuilder(r.b);
}

void target_cut_reads(LLVMModuleRef m, LLVMContextRef cx)
{
    for_each_call(m, cx, "llvm.masked.load", cut);
}

void target_cut_writes(LLVMModuleRef m, LLVMContextRef cx)
{
    for_each_call(m, cx, "llvm.masked.store", write_element);
}
