/* Messages to memory that kernels for Intel's GPUs ask for in the assembly of
 * Intel's compiler (vISA), where its own functions cost more: what a message is
 * told they write anew each time, and blocks of local memory they cut in two.
 * A function's body is one piece of assembly, which gives $0, if anything, and
 * is given its arguments as those that follow.
 *
 * Where a block is read the first register that it comes to says where, so the
 * message waits for nothing that the addition before it has not waited for, and
 * addresses take no registers.  How far it is from a place that many blocks
 * have in common is a number in the text: of these there are as many functions
 * as distances. */
#include "target_visa.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BITS = 128, WIDTH = 16 /* numbers of an item */ };

const target_block_info target_block[EMIT_BLOCK_COUNT] = {
    [EMIT_BLOCK_ROWS] = {"sundog_block_rows", 0x070f, 2, 4, 0x02400203},
    [EMIT_BLOCK_TURNED] = {"sundog_block_turned", 0x0f07, 4, 8, 0x02808403},
    [EMIT_BLOCK_PAIRS] = {"sundog_block_pairs", 0x0f0f, 2, 8, 0x02800283},
    [EMIT_BLOCK_FOURS] = {"sundog_block_fours", 0x1f0f, 1, 8, 0x02800083},
    [EMIT_BLOCK_DEEP_ROWS] = {"sundog_block_deep_rows", 0x10f0f, 2, 16,
                              0x03000203},
    [EMIT_BLOCK_DEEP_PAIRS] = {"sundog_block_deep_pairs", 0x1f0f, 2, 16,
                               0x03000283}};

static LLVMValueRef numbers(LLVMTypeRef i32, unsigned n)
{
    LLVMValueRef v[WIDTH];

    for (unsigned i = 0; i < n; i++)
        v[i] = LLVMConstInt(i32, i, 0);
    return LLVMConstVector(v, n);
}

/* As many of a vector's elements as assembly gives. */
static LLVMTypeRef narrow(LLVMTypeRef all)
{
    LLVMTypeRef one;
    unsigned n, bits;

    if (LLVMGetTypeKind(all) != LLVMVectorTypeKind)
        return all;
    one = LLVMGetElementType(all);
    n = LLVMGetVectorSize(all);
    bits = LLVMGetTypeKind(one) == LLVMFloatTypeKind ? 32
                                                     : LLVMGetIntTypeWidth(one);
    while (n * bits > MOST_BITS)
        n /= 2;
    return LLVMVectorType(one, n);
}

/* As assembly is given it: a place as a number, of what is wide the first 16
 * bytes. */
static LLVMValueRef given(LLVMBuilderRef b, LLVMTypeRef i32, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v), to;

    if (LLVMGetTypeKind(t) == LLVMPointerTypeKind)
        return LLVMBuildPtrToInt(b, v, i32, "");
    to = narrow(t);
    return to == t ? v
                   : LLVMBuildShuffleVector(
                         b, v, v, numbers(i32, LLVMGetVectorSize(to)), "");
}

static void return_wide(LLVMBuilderRef b, LLVMTypeRef i32, LLVMValueRef v,
                        LLVMTypeRef all)
{
    bool wide = LLVMGetTypeKind(all) == LLVMVectorTypeKind;

    for (unsigned n = wide ? LLVMGetVectorSize(LLVMTypeOf(v)) : 0;
         wide && n < LLVMGetVectorSize(all); n *= 2)
        v = LLVMBuildShuffleVector(b, v, v, numbers(i32, 2 * n), "");
    LLVMBuildRet(b, v);
}

/* LLVM gives assembly no more than 16 bytes an item and takes no more from it:
 * of a wide argument it gives the first 16, and of what it takes it makes as
 * many copies as the result has room for, until target_widen_assembly says what
 * is meant. */
void target_write_body(LLVMContextRef cx, LLVMValueRef f, const char *text)
{
    static const char *const constraints[2][TARGET_BODY_ARGS + 1] = {
        {"", "rw", "rw,rw"}, {"=rw", "=rw,rw", "=rw,rw,rw"}};
    LLVMTypeRef i32 = LLVMInt32TypeInContext(cx), type, of[TARGET_BODY_ARGS];
    LLVMTypeRef all = LLVMGetReturnType(LLVMGlobalGetValueType(f));
    LLVMValueRef arg[TARGET_BODY_ARGS], v;
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);
    bool gives = LLVMGetTypeKind(all) != LLVMVoidTypeKind;
    unsigned n = LLVMCountParams(f);
    const char *like = constraints[gives][n];

    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(cx, f, ""));
    for (unsigned i = 0; i < n; i++) {
        arg[i] = given(b, i32, LLVMGetParam(f, i));
        of[i] = LLVMTypeOf(arg[i]);
    }
    type = LLVMFunctionType(gives ? narrow(all) : all, of, n, false);
    v = LLVMGetInlineAsm(type, text, strlen(text), like, strlen(like), true,
                         false, LLVMInlineAsmDialectATT, false);
    v = LLVMBuildCall2(b, type, v, arg, n, "");
    if (gives)
        return_wide(b, i32, v, all);
    else
        LLVMBuildRetVoid(b);
    LLVMDisposeBuilder(b);
}

/* p less the numbers that were added to it last. */
static LLVMValueRef base_of(LLVMValueRef p, int64_t *bytes)
{
    *bytes = 0;
    while (LLVMIsAGetElementPtrInst(p) && LLVMGetNumOperands(p) == 2 &&
           LLVMGetTypeKind(LLVMGetGEPSourceElementType(p)) ==
               LLVMIntegerTypeKind &&
           LLVMGetIntTypeWidth(LLVMGetGEPSourceElementType(p)) == 8 &&
           LLVMIsAConstantInt(LLVMGetOperand(p, 1))) {
        *bytes += LLVMConstIntGetSExtValue(LLVMGetOperand(p, 1));
        p = LLVMGetOperand(p, 0);
    }
    return p;
}

/* The function that reads such a block so many bytes further on. */
static LLVMValueRef block_behind(LLVMModuleRef m, LLVMContextRef cx,
                                 LLVMValueRef f, int64_t bytes,
                                 const char *width)
{
    char name[64], text[256];
    LLVMValueRef to;

    snprintf(name, sizeof name, "sundog.block.%u.%" PRId64,
             LLVMGetIntTypeWidth(LLVMGetElementType(
                 LLVMGetReturnType(LLVMGlobalGetValueType(f)))),
             bytes);
    to = LLVMGetNamedFunction(m, name);
    if (to)
        return to;
    to = LLVMAddFunction(m, name, LLVMGlobalGetValueType(f));
    LLVMSetFunctionCallConv(to, LLVMGetFunctionCallConv(f));
    snprintf(text, sizeof text,
             "{\n.decl WHERE v_type=G type=d num_elts=8 align=GRF "
             "alias=<$0,0>\n"
             "add (M1_NM, 1) WHERE(0,0)<1> $1(0,0)<0;1,0> 0x%x:d\n"
             "lsc_load.slm (M1_NM, 1) $0:d%sx64t flat[WHERE]:a32\n}\n",
             (unsigned)bytes, width);
    target_write_body(cx, to, text);
    return to;
}

/* Instead of f, which is called with places in local memory. */
static void write_blocks(LLVMModuleRef m, LLVMContextRef cx, const char *called,
                         const char *width)
{
    LLVMValueRef f = LLVMGetNamedFunction(m, called);
    LLVMBuilderRef b;
    LLVMUseRef use;

    if (!f || !LLVMIsDeclaration(f))
        return;
    b = LLVMCreateBuilderInContext(cx);
    while ((use = LLVMGetFirstUse(f))) {
        LLVMValueRef call = LLVMGetUser(use), p, to;
        int64_t bytes;

        p = base_of(LLVMGetOperand(call, 0), &bytes);
        to = block_behind(m, cx, f, bytes, width);
        LLVMPositionBuilderBefore(b, call);
        to = LLVMBuildCall2(b, LLVMGlobalGetValueType(f), to, &p, 1, "");
        LLVMSetInstructionCallConv(to, LLVMGetInstructionCallConv(call));
        LLVMReplaceAllUsesWith(call, to);
        LLVMInstructionEraseFromParent(call);
    }
    LLVMDeleteFunction(f);
    LLVMDisposeBuilder(b);
}

/* A message to the memory that all share (15), of one register. */
static void write_block(LLVMModuleRef m, LLVMContextRef cx,
                        const target_block_info *of)
{
    LLVMValueRef f = LLVMGetNamedFunction(m, of->name);
    char text[128];

    if (!f || !LLVMIsDeclaration(f))
        return;
    snprintf(text, sizeof text,
             "raw_sends.15.1.0.%d (M1_NM, 1) 0x0:ud 0x%08x:ud $1.0 %%null.0 "
             "$0.0",
             of->registers, of->message);
    target_write_body(cx, f, text);
}

void target_write_assembly(LLVMModuleRef m, LLVMContextRef cx,
                           const device_desc *dev)
{
    for (int i = 0; i < EMIT_BLOCK_COUNT; i++)
        write_block(m, cx, &target_block[i]);
    target_write_sums(m, cx, dev->features & DEVICE_HAS_DPAS16 ? 16 : 8);
    target_write_rows(m, cx);
    write_blocks(m, cx, "__builtin_IB_simd_block_read_8_local",
                 dev->features & DEVICE_HAS_DPAS16 ? "64" : "32");
    write_blocks(m, cx, "__builtin_IB_simd_block_read_8_local_h", "32");
}

enum {
    HEADER = 5,
    OP = 0xffff,
    FUNCTION = 54,
    SHUFFLE = 79,
    ASM = 5610,
    CALL = 5611
};

/* What v was made of, between `from` and `to`, if it is what of something wide
 * assembly is given; else v. */
static uint32_t wide_one(const uint32_t *from, const uint32_t *to, uint32_t v)
{
    for (; from < to; from += *from >> 16)
        if ((*from & OP) == SHUFFLE && from[2] == v)
            return from[3];
    return v;
}

/* Assembly is given what the function is that it is the body of, and gives what
 * that does: of so wide a value copies are the value itself. */
void target_widen_assembly(void *code, size_t bytes)
{
    uint32_t *word = code, gave = 0;
    const uint32_t *f = NULL;
    size_t n = bytes / sizeof *word;

    for (size_t i = HEADER; i < n && word[i] >> 16; i += word[i] >> 16) {
        size_t end = i + (word[i] >> 16);

        if ((word[i] & OP) == FUNCTION) {
            f = &word[i];
            gave = 0;
        }
        if ((word[i] & OP) == SHUFFLE && gave && word[i + 1] == f[1])
            word[i + 3] = word[i + 4] = gave;
        if ((word[i] & OP) != CALL || !f)
            continue;
        for (size_t j = HEADER; j < i; j += word[j] >> 16)
            if ((word[j] & OP) == ASM && word[j + 2] == word[i + 3]) {
                word[j + 1] = f[1]; /* the type that it gives, */
                word[j + 3] = f[4]; /* and its own */
            }
        for (size_t j = i + 4; j < end; j++)
            word[j] = wide_one(f, &word[i], word[j]);
        word[i + 1] = f[1];
        gave = word[i + 2];
    }
}
