/* Calls into the device library, linked in function by function: math on
 * vectors, which is inlined, and algorithms on memory, which stay calls and are
 * machine code of the build where the target has any. */
#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>

#include "emit.h"

/* Its attributes name the build's machine and would stop inlining. */
static void make_ours(emit *e, LLVMValueRef fn)
{
    unsigned inl = LLVMGetEnumAttributeKindForName("alwaysinline", 12);
    unsigned no = LLVMGetEnumAttributeKindForName("noinline", 8);
    static const char *const drop[] = {"target-cpu",
                                       "target-features",
                                       "tune-cpu",
                                       "min-legal-vector-width",
                                       "frame-pointer",
                                       "no-builtins",
                                       "stack-protector-buffer-size"};

    for (size_t i = 0; i < SD_COUNTOF(drop); i++)
        LLVMRemoveStringAttributeAtIndex(fn, LLVMAttributeFunctionIndex,
                                         drop[i], (unsigned)strlen(drop[i]));
    LLVMRemoveEnumAttributeAtIndex(fn, LLVMAttributeFunctionIndex,
                                   e->quick ? inl : no);
    LLVMAddAttributeAtIndex(
        fn, LLVMAttributeFunctionIndex,
        LLVMCreateEnumAttribute(e->cx, e->quick ? no : inl, 0));
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    LLVMSetVisibility(fn, LLVMDefaultVisibility);
}

/* The function as the build made it: its machine code is the prologue of a
 * function without a body.  pure: it sees no memory. */
static LLVMValueRef add_code(emit *e, const devlib_function *f, LLVMTypeRef t,
                             bool pure)
{
    static const char *const is[] = {"naked", "noinline", "nounwind",
                                     "willreturn", "memory"};
    LLVMValueRef fn = LLVMAddFunction(e->m, f->name, t);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(e->cx);

    for (size_t i = 0; i < SD_COUNTOF(is) - !pure; i++)
        LLVMAddAttributeAtIndex(
            fn, LLVMAttributeFunctionIndex,
            LLVMCreateEnumAttribute(
                e->cx, LLVMGetEnumAttributeKindForName(is[i], strlen(is[i])),
                0));
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    LLVMSetAlignment(fn, 64);
    LLVMSetPrologueData(fn,
                        LLVMConstStringInContext2(e->cx, (const char *)f->code,
                                                  f->code_bytes, true));
    LLVMPositionBuilderAtEnd(b,
                             LLVMAppendBasicBlockInContext(e->cx, fn, "code"));
    LLVMBuildUnreachable(b);
    LLVMDisposeBuilder(b);
    return fn;
}

/* Has machine code instead of a body, which must not be inlined. */
static bool is_code(LLVMValueRef fn)
{
    return LLVMGetEnumAttributeAtIndex(
        fn, LLVMAttributeFunctionIndex,
        LLVMGetEnumAttributeKindForName("naked", 5));
}

static LLVMValueRef link_bitcode(emit *e, const devlib_function *f)
{
    LLVMMemoryBufferRef mem;
    LLVMModuleRef from;
    LLVMValueRef fn;

    mem = LLVMCreateMemoryBufferWithMemoryRange((const char *)f->bitcode,
                                                f->bytes, f->name, 0);
    if (LLVMParseBitcodeInContext2(e->cx, mem, &from)) {
        LLVMDisposeMemoryBuffer(mem);
        return NULL;
    }
    LLVMDisposeMemoryBuffer(mem);
    LLVMSetTarget(from, LLVMGetTarget(e->m));
    LLVMSetDataLayout(from, LLVMGetDataLayoutStr(e->m));
    for (fn = LLVMGetFirstFunction(from); fn; fn = LLVMGetNextFunction(fn))
        if (!LLVMIsDeclaration(fn) && strcmp(f->name, LLVMGetValueName(fn)))
            LLVMSetLinkage(fn, LLVMInternalLinkage);
    if (LLVMLinkModules2(e->m, from)) /* takes the module in any case */
        return NULL;
    for (fn = LLVMGetFirstFunction(e->m); fn; fn = LLVMGetNextFunction(fn))
        if (!LLVMIsDeclaration(fn) && !is_code(fn) &&
            !strncmp(LLVMGetValueName(fn), "dl_", 3))
            make_ours(e, fn);
    e->calls_devlib = true;
    return LLVMGetNamedFunction(e->m, f->name);
}

static LLVMValueRef find_or_link(emit *e, const char *name, LLVMTypeRef t)
{
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name);
    const devlib_function *f;

    if (fn)
        return fn;
    f = devlib_find(e->devlib, name);
    if (!f)
        return NULL;
    return e->quick && f->code_bytes ? add_code(e, f, t, true)
                                     : link_bitcode(e, f);
}

LLVMValueRef emit_devlib_kernel(emit *e, const char *name, LLVMTypeRef t)
{
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name);
    const devlib_function *f = devlib_find(e->devlib, name);

    if (!fn && f)
        fn = f->code_bytes ? add_code(e, f, t, false) : link_bitcode(e, f);
    if (!fn)
        emit_fail(e, sd_error(SD_INTERNAL, "no device function %s for %s", name,
                              e->device));
    else if (LLVMGlobalGetValueType(fn) != t) {
        emit_fail(e, sd_error(SD_INTERNAL,
                              "the device function %s takes other arguments "
                              "than a call hands it",
                              name));
        fn = NULL;
    }
    return fn;
}

/* C's calling convention passes some vectors as others of their size, or in
 * memory; inlining undoes both. */
static LLVMValueRef pass_argument(emit *e, LLVMValueRef v, LLVMTypeRef want)
{
    LLVMValueRef p;

    if (LLVMTypeOf(v) == want)
        return v;
    if (LLVMGetTypeKind(want) == LLVMPointerTypeKind) {
        p = emit_alloca(e, LLVMTypeOf(v));
        emit_put(e, v, p);
        return p;
    }
    return emit_as(e, v, want);
}

/* Machine code trusts its caller to have widened a narrow float's bits. */
static void extend_arguments(emit *e, LLVMValueRef call, const LLVMTypeRef *t,
                             int n)
{
    static const char name[] = "zeroext";
    unsigned kind = LLVMGetEnumAttributeKindForName(name, sizeof name - 1);

    for (int i = 0; i < n && !e->gpu; i++)
        if (t[i] == e->i8 || t[i] == e->i16)
            LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)(i + 1),
                                     LLVMCreateEnumAttribute(e->cx, kind, 0));
}

static LLVMValueRef call_one(emit *e, LLVMValueRef fn, LLVMTypeRef result,
                             LLVMValueRef *arg, int narg)
{
    LLVMTypeRef ft = LLVMGlobalGetValueType(fn), pt[8];
    LLVMTypeRef rt = LLVMGetReturnType(ft);
    bool in_memory = LLVMGetTypeKind(rt) == LLVMVoidTypeKind;
    LLVMValueRef x[8], v, out = NULL;
    int n = 0;

    assert(LLVMCountParamTypes(ft) == (unsigned)(narg + in_memory));
    LLVMGetParamTypes(ft, pt);
    if (in_memory)
        out = x[n++] = emit_alloca(e, result);
    for (int i = 0; i < narg; i++, n++)
        x[n] = pass_argument(e, arg[i], pt[n]);
    v = LLVMBuildCall2(e->b, ft, fn, x, (unsigned)n, "");
    LLVMSetInstructionCallConv(v, LLVMGetFunctionCallConv(fn));
    extend_arguments(e, v, pt, n);
    if (in_memory)
        return LLVMBuildLoad2(e->b, result, out, "");
    return rt == result ? v : emit_as(e, v, result);
}

static LLVMValueRef piecewise(emit *e, const char *stem, LLVMTypeRef elem,
                              LLVMValueRef *arg, int narg, int w, int piece)
{
    LLVMValueRef v = LLVMGetPoison(emit_widen(elem, w));

    for (int i = 0; i < w; i += piece) {
        LLVMValueRef x[8], y;

        for (int j = 0; j < narg; j++)
            x[j] = emit_extract(e, arg[j], i, piece);
        y = emit_devlib(e, stem, elem, x, narg);
        for (int j = 0; j < piece; j++)
            v = emit_insert(e, v, emit_extract(e, y, j, 1), i + j);
    }
    return v;
}

/* Fewer than 8 lanes take those of 8, the others their numbers once more: as
 * many calls as there are lanes would each take as long as one of 8. */
static LLVMValueRef padded(emit *e, const char *stem, LLVMTypeRef elem,
                           LLVMValueRef *arg, int narg, int w)
{
    LLVMValueRef x[8], lane[8];

    for (int i = 0; i < 8; i++)
        lane[i] = LLVMConstInt(e->i32, (unsigned)(i % w), 0);
    for (int j = 0; j < narg; j++)
        x[j] = LLVMBuildShuffleVector(e->b, arg[j],
                                      LLVMGetPoison(LLVMTypeOf(arg[j])),
                                      LLVMConstVector(lane, 8), "");
    return emit_extract(e, emit_devlib(e, stem, elem, x, narg), 0, w);
}

LLVMValueRef emit_devlib(emit *e, const char *stem, LLVMTypeRef elem,
                         LLVMValueRef *arg, int narg)
{
    int w = emit_width(arg[0]);
    const char *name = w == 1 ? stem : sd_arena_fmt(e->a, "%s_x%d", stem, w);
    LLVMTypeRef result = emit_widen(elem, w), pt[8];
    LLVMValueRef fn;

    for (int i = 0; i < narg; i++)
        pt[i] = LLVMTypeOf(arg[i]);
    fn = find_or_link(e, name, LLVMFunctionType(result, pt, (unsigned)narg, 0));
    if (fn)
        return call_one(e, fn, result, arg, narg);
    if (w > 8)
        return piecewise(e, stem, elem, arg, narg, w, 8);
    if (w > 1 && devlib_find(e->devlib, sd_arena_fmt(e->a, "%s_x8", stem)))
        return padded(e, stem, elem, arg, narg, w);
    if (w > 1)
        return piecewise(e, stem, elem, arg, narg, w, 1);
    emit_fail(e, sd_error(SD_INTERNAL, "no device function %s for %s", stem,
                          e->device));
    return LLVMGetPoison(elem);
}

bool emit_devlib_of_bf16(emit *e, const plan_node *n, emit_value *x)
{
    const char *name = sd_arena_fmt(e->a, "dl_%s_bf16", hlo_op_table[n->op].fn);

    if (!devlib_find(e->devlib, name))
        return false;
    x[0].re = emit_devlib(e, name, e->f32, &x[0].re, 1);
    return true;
}

LLVMValueRef emit_devlib_code(emit *e, const char *name, LLVMTypeRef result,
                              LLVMValueRef *arg, int narg)
{
    const devlib_function *f = devlib_find(e->devlib, name);
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name);
    LLVMTypeRef pt[8], t;

    assert(narg <= 8);
    for (int i = 0; i < narg; i++)
        pt[i] = LLVMTypeOf(arg[i]);
    t = LLVMFunctionType(result, pt, (unsigned)narg, 0);
    if (!fn && f && f->code_bytes)
        fn = add_code(e, f, t, false);
    if (fn)
        return LLVMBuildCall2(e->b, t, fn, arg, (unsigned)narg, "");
    emit_fail(e, sd_error(SD_INTERNAL, "no device function %s for %s", name,
                          e->device));
    return LLVMGetPoison(result);
}
