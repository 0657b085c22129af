/* What kernels of all GPUs have: a function with a pointer for each slot, run
 * by groups of work items; the numbers of item and group; the group's local
 * memory; barriers.  How a target says these things is its emit_abi. */
#include "emit.h"

/* A kernel that is launched asks for it, a function of a loop is told. */
static LLVMValueRef number(emit *e, emit_id which)
{
    unsigned told = (unsigned)(e->k->nslot + (which == EMIT_GROUP));
    LLVMValueRef v =
        e->loop_items ? LLVMGetParam(e->fn, told) : e->abi->id(e, which);

    return LLVMTypeOf(v) == e->si ? v
           : e->si == e->i64      ? emit_zext(e, v, e->i64)
                                  : emit_trunc(e, v, e->si);
}

/* Its operands begin where eight lines do. */
static bool is_wide(const plan_kernel *k)
{
    return k->attend || k->places || (k->blocks && plan_is_wide(k->blocks));
}

/* The array of a size that only the launch knows has no elements here. */
static LLVMValueRef local_array(emit *e, size_t bytes)
{
    bool launch = e->abi->static_local && bytes > e->abi->static_local;
    LLVMTypeRef t = LLVMArrayType2(e->i8, launch ? 0 : bytes);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(
        e->m, t, sd_arena_fmt(e->a, "%s_$_local", e->k->name), e->local_as);

    LLVMSetAlignment(v, is_wide(e->k) ? PLAN_LINES * PLAN_LINE : 64);
    if (launch)
        return v;
    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetInitializer(v, LLVMGetUndef(t));
    return v;
}

void emit_begin_gpu(emit *e)
{
    unsigned n = (unsigned)e->k->nslot;
    LLVMTypeRef *t = sd_arena_array(e->a, LLVMTypeRef, n + 2);
    bool launched = !e->loop_items;

    for (unsigned i = 0; i < n; i++)
        t[i] = e->ptr;
    t[n] = t[n + 1] = e->i32;
    e->fn = LLVMAddFunction(e->m, e->k->name,
                            LLVMFunctionType(LLVMVoidTypeInContext(e->cx), t,
                                             launched ? n : n + 2, 0));
    emit_attribute(e, e->fn, LLVMAttributeFunctionIndex, "nounwind");
    LLVMSetFunctionCallConv(e->fn,
                            launched ? e->abi->kernel_cc : e->abi->function_cc);
    if (launched)
        e->abi->mark(e);
    emit_start_function(e);
    e->lid = number(e, EMIT_ITEM);
    e->first = number(e, EMIT_GROUP);
    e->last = emit_plus(e, e->first, 1);
    for (int i = 0; i < e->k->nslot; i++)
        e->slot[i] = LLVMGetParam(e->fn, (unsigned)i);
    if (e->k->local_bytes)
        e->local = local_array(e, e->k->local_bytes);
}

void emit_barrier(emit *e)
{
    emit_fence(e, EMIT_LOCAL);
}

void emit_fence(emit *e, unsigned memory)
{
    assert(!e->loop_items || e->k->local_bytes); /* target_loop.c goes by it */
    e->abi->barrier(e, memory);
}

/* ---- values of other items ---- */

/* In words of 32 bits. */
static LLVMValueRef from_item(emit *e, LLVMValueRef v, LLVMValueRef from)
{
    LLVMTypeRef t = LLVMTypeOf(v), it, words;
    unsigned bits = LLVMGetTypeKind(t) == LLVMIntegerTypeKind
                        ? LLVMGetIntTypeWidth(t)
                    : t == e->f64 ? 64
                                  : 32;
    LLVMValueRef x, got;

    it = LLVMIntTypeInContext(e->cx, bits);
    x = emit_as(e, v, it);
    if (bits <= 32) {
        x = LLVMBuildZExtOrBitCast(e->b, x, e->i32, "");
        x = e->abi->shuffle(e, x, from);
        x = LLVMBuildTruncOrBitCast(e->b, x, it, "");
        return emit_as(e, x, t);
    }
    words = LLVMVectorType(e->i32, bits / 32);
    x = emit_as(e, x, words);
    got = LLVMGetPoison(words);
    for (unsigned i = 0; i < bits / 32; i++) {
        LLVMValueRef at = LLVMConstInt(e->i32, i, 0);

        got = LLVMBuildInsertElement(
            e->b, got,
            e->abi->shuffle(e, LLVMBuildExtractElement(e->b, x, at, ""), from),
            at, "");
    }
    return emit_as(e, emit_as(e, got, it), t);
}

emit_value emit_from_item(emit *e, emit_value v, LLVMValueRef from)
{
    v.re = from_item(e, v.re, from);
    if (v.im)
        v.im = from_item(e, v.im, from);
    return v;
}

/* ---- what targets build their ABI from ---- */

LLVMValueRef emit_builtin(emit *e, const char *name, const char *attribute,
                          LLVMTypeRef result, LLVMValueRef *arg, int narg)
{
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name), v;
    LLVMTypeRef at[5], t;

    assert(narg <= 5);
    for (int i = 0; i < narg; i++)
        at[i] = LLVMTypeOf(arg[i]);
    t = LLVMFunctionType(result, at, (unsigned)narg, 0);
    if (!fn) {
        fn = LLVMAddFunction(e->m, name, t);
        LLVMSetFunctionCallConv(fn, e->abi->function_cc);
        emit_attribute(e, fn, LLVMAttributeFunctionIndex, "nounwind");
        emit_attribute(e, fn, LLVMAttributeFunctionIndex, attribute);
    }
    v = LLVMBuildCall2(e->b, t, fn, arg, (unsigned)narg, "");
    LLVMSetInstructionCallConv(v, e->abi->function_cc);
    return v;
}

void emit_size_metadata(emit *e, const char *name, const int *size, int n)
{
    LLVMMetadataRef at[3];

    for (int i = 0; i < n; i++)
        at[i] = LLVMValueAsMetadata(LLVMConstInt(e->i32, (unsigned)size[i], 0));
    LLVMGlobalSetMetadata(
        e->fn, LLVMGetMDKindIDInContext(e->cx, name, (unsigned)strlen(name)),
        LLVMMDNodeInContext2(e->cx, at, (size_t)n));
}
