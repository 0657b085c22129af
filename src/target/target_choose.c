/* Instructions of AVX2 that are chosen here, before code generation.
 *
 * LLVM's selection of instructions asks of each operation on vectors of
 * integers which bits its operands may have, again after each step of its work,
 * and what follows from each number among them.  Where narrow floats are
 * rounded after each operation those questions took half of the time in which a
 * kernel is compiled, and found what the emitters had meant.  So a number is
 * read from memory at the start of a function, as it would be in the end, and
 * what rounding is made of is said in the processor's words.  LLVM asks as
 * before where an answer might matter: see `is_plain`. */
#include "target_room.h"

enum { MOST_NUMBERS = 16 }; /* the others stay in their instructions */

typedef struct {
    LLVMValueRef number, place; /* a vector, and where it lies in memory */
    LLVMValueRef value; /* as the function at hand has read it; NULL */
} known;

typedef struct {
    LLVMModuleRef m;
    LLVMBuilderRef b;
    LLVMTypeRef i8, i32, f32x8, i32x8, i16x8;
    LLVMBasicBlockRef start; /* of the function at hand */
    known at[MOST_NUMBERS];
    int n;
} chooser;

static bool is_op(LLVMValueRef v, LLVMOpcode op)
{
    return LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == op;
}

/* Who uses v asks nothing of its bits: an unsigned number that is known to have
 * no sign, say, or the factors of a product that are known to be short, are
 * other instructions. */
static bool is_plain(LLVMValueRef v)
{
    for (LLVMUseRef u = LLVMGetFirstUse(v); u; u = LLVMGetNextUse(u))
        switch (LLVMGetInstructionOpcode(LLVMGetUser(u))) {
        case LLVMAdd:
        case LLVMSub:
        case LLVMAnd:
        case LLVMOr:
        case LLVMXor:
        case LLVMBitCast:
        case LLVMPHI:
        case LLVMSelect:
            break;
        default:
            return false;
        }
    return true;
}

static LLVMValueRef call(chooser *c, const char *name, LLVMValueRef *arg, int n)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(c->m, id, NULL, 0);

    return LLVMBuildCall2(c->b, LLVMGlobalGetValueType(f), f, arg, (unsigned)n,
                          "");
}

static void drop_if_unused(LLVMValueRef in)
{
    if (!LLVMGetFirstUse(in))
        LLVMInstructionEraseFromParent(in);
}

/* v takes the place of `in`. */
static void take_place(LLVMValueRef in, LLVMValueRef v)
{
    LLVMReplaceAllUsesWith(in, v);
    LLVMInstructionEraseFromParent(in);
}

/* ---- numbers ---- */

/* Of a vector with the same number in all lanes that number; else NULL. */
static LLVMValueRef number_of(LLVMValueRef v)
{
    LLVMValueRef one;
    unsigned n;

    if (!LLVMIsAConstantDataVector(v))
        return NULL;
    n = LLVMGetVectorSize(LLVMTypeOf(v));
    one = LLVMGetAggregateElement(v, 0);
    for (unsigned i = 1; i < n; i++)
        if (LLVMGetAggregateElement(v, i) != one)
            return NULL;
    return one;
}

/* 0 and -1 need no memory. */
static known *find(chooser *c, LLVMValueRef v)
{
    LLVMValueRef g, one;

    for (int i = 0; i < c->n; i++)
        if (c->at[i].number == v)
            return &c->at[i];
    if (c->n == MOST_NUMBERS || !(one = number_of(v)) || LLVMIsNull(one) ||
        one == LLVMConstAllOnes(c->i32))
        return NULL;
    g = LLVMAddGlobal(c->m, c->i32x8, "");
    LLVMSetInitializer(g, v);
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    c->at[c->n] = (known){v, g, NULL};
    return &c->at[c->n++];
}

static void read_number(chooser *c, LLVMValueRef in, unsigned operand)
{
    known *k = find(c, LLVMGetOperand(in, operand));

    if (!k)
        return;
    if (!k->value) {
        LLVMPositionBuilder(c->b, c->start, LLVMGetFirstInstruction(c->start));
        k->value = LLVMBuildLoad2(c->b, c->i32x8, k->place, "");
    }
    LLVMSetOperand(in, operand, k->value);
}

static void read_numbers(chooser *c, LLVMValueRef in)
{
    switch (LLVMGetInstructionOpcode(in)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMAnd:
    case LLVMOr:
        for (unsigned i = 0; is_plain(in) && i < 2; i++)
            read_number(c, in, i);
        break;
    default: /* a shift by a number is an instruction of its own */
        break;
    }
}

/* ---- instructions ---- */

static LLVMValueRef shift(chooser *c, const char *name, LLVMValueRef x,
                          LLVMValueRef by)
{
    LLVMValueRef arg[2] = {x, by};

    return call(c, name, arg, 2);
}

static bool choose_shift(chooser *c, LLVMValueRef in)
{
    static const struct {
        LLVMOpcode op;
        const char *name;
    } all[] = {{LLVMLShr, "llvm.x86.avx2.psrli.d"},
               {LLVMShl, "llvm.x86.avx2.pslli.d"},
               {LLVMAShr, "llvm.x86.avx2.psrai.d"}};
    LLVMValueRef by;

    for (size_t i = 0; i < SD_COUNTOF(all); i++) {
        if (!is_op(in, all[i].op) || !is_plain(in) ||
            !(by = number_of(LLVMGetOperand(in, 1))))
            continue;
        LLVMPositionBuilderBefore(c->b, in);
        take_place(in, shift(c, all[i].name, LLVMGetOperand(in, 0), by));
        return true;
    }
    return false;
}

/* The upper halves of words, as they are stored. */
static void choose_halves(chooser *c, LLVMValueRef in)
{
    LLVMValueRef x = LLVMGetOperand(in, 0), by, v, half[2], lane[4];

    if (LLVMTypeOf(in) != c->i16x8 || LLVMTypeOf(x) != c->i32x8 ||
        !is_op(x, LLVMLShr) || !(by = number_of(LLVMGetOperand(x, 1))) ||
        LLVMConstIntGetZExtValue(by) != 16)
        return;
    LLVMPositionBuilderBefore(c->b, in);
    v = shift(c, "llvm.x86.avx2.psrli.d", LLVMGetOperand(x, 0), by);
    for (unsigned h = 0; h < 2; h++) {
        for (unsigned i = 0; i < 4; i++)
            lane[i] = LLVMConstInt(c->i32, 4 * h + i, 0);
        half[h] = LLVMBuildShuffleVector(c->b, v, LLVMGetPoison(c->i32x8),
                                         LLVMConstVector(lane, 4), "");
    }
    take_place(in, call(c, "llvm.x86.sse41.packusdw", half, 2));
    drop_if_unused(x);
}

/* One value or another, by whether an f32 is a number. */
static void choose_by_nan(chooser *c, LLVMValueRef in)
{
    enum { UNORDERED = 3 }; /* of cmpps */
    LLVMValueRef is = LLVMGetOperand(in, 0), arg[3], v;
    LLVMTypeRef t = LLVMTypeOf(in);

    if ((t != c->f32x8 && t != c->i32x8) || !is_op(is, LLVMFCmp) ||
        LLVMGetFCmpPredicate(is) != LLVMRealUNO ||
        LLVMTypeOf(LLVMGetOperand(is, 0)) != c->f32x8)
        return;
    LLVMPositionBuilderBefore(c->b, in);
    arg[0] = LLVMGetOperand(is, 0);
    arg[1] = LLVMGetOperand(is, 1);
    if (LLVMIsNull(arg[1]))
        arg[1] = arg[0];
    arg[2] = LLVMConstInt(c->i8, UNORDERED, 0);
    arg[2] = call(c, "llvm.x86.avx.cmp.ps.256", arg, 3);
    arg[0] = LLVMBuildBitCast(c->b, LLVMGetOperand(in, 2), c->f32x8, "");
    arg[1] = LLVMBuildBitCast(c->b, LLVMGetOperand(in, 1), c->f32x8, "");
    v = call(c, "llvm.x86.avx.blendv.ps.256", arg, 3);
    take_place(in, LLVMBuildBitCast(c->b, v, t, ""));
    drop_if_unused(is);
}

static void choose(chooser *c, LLVMValueRef in)
{
    if (is_op(in, LLVMTrunc))
        choose_halves(c, in);
    else if (is_op(in, LLVMSelect))
        choose_by_nan(c, in);
    else if (LLVMTypeOf(in) == c->i32x8 && !choose_shift(c, in))
        read_numbers(c, in);
}

static void choose_in(chooser *c, LLVMValueRef f)
{
    LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f);
    LLVMValueRef next;

    c->start = b;
    for (int i = 0; i < c->n; i++)
        c->at[i].value = NULL;
    for (; b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef in = LLVMGetFirstInstruction(b); in; in = next) {
            next = LLVMGetNextInstruction(in);
            choose(c, in);
        }
}

void target_choose(LLVMModuleRef m, LLVMContextRef cx)
{
    chooser c = {.m = m,
                 .b = LLVMCreateBuilderInContext(cx),
                 .i8 = LLVMInt8TypeInContext(cx),
                 .i32 = LLVMInt32TypeInContext(cx)};

    c.f32x8 = LLVMVectorType(LLVMFloatTypeInContext(cx), 8);
    c.i32x8 = LLVMVectorType(c.i32, 8);
    c.i16x8 = LLVMVectorType(LLVMInt16TypeInContext(cx), 8);
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            choose_in(&c, f);
    LLVMDisposeBuilder(c.b);
}
