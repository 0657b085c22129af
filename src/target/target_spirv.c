/* SPIR-V in OpenCL's flavour, by LLVM's own target.  Without FP_CONTRACT
 * metadata every kernel is marked ContractionOff, which is what we want. */
#include <llvm-c/Target.h>

#include "target_room.h"

static LLVMTargetMachineRef machine(const device_desc *dev, bool quick)
{
    LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();

    (void)dev;
    (void)quick;
    /* Above None the loop passes of code generation run; they turn indices
     * into pointers that step, which the devices' compilers undo badly. */
    LLVMTargetMachineOptionsSetCodeGenOptLevel(o, LLVMCodeGenLevelNone);
    return target_machine(target_spirv.triple, o);
}

static void start_spirv(void)
{
    LLVMInitializeSPIRVTargetInfo();
    LLVMInitializeSPIRVTarget();
    LLVMInitializeSPIRVTargetMC();
    LLVMInitializeSPIRVAsmPrinter();
}

static devlib_target library(const device_desc *dev)
{
    (void)dev;
    return DEVLIB_SPIRV;
}

/* ---- the ABI: OpenCL's functions, by their C++ names ---- */

static void mark(emit *e)
{
    int size[3] = {e->k->group, 1, 1};

    emit_size_metadata(e, "reqd_work_group_size", size, 3);
    if (e->k->subgroup)
        emit_size_metadata(e, "intel_reqd_sub_group_size", &e->k->subgroup, 1);
}

static LLVMValueRef id(emit *e, emit_id which)
{
    static const char *const name[] = {[EMIT_ITEM] = "_Z12get_local_idj",
                                       [EMIT_GROUP] = "_Z12get_group_idj"};
    LLVMValueRef dimension = LLVMConstInt(e->i32, 0, 0);

    return emit_builtin(e, name[which], "willreturn", e->i64, &dimension, 1);
}

static void barrier(emit *e, unsigned memory)
{
    LLVMValueRef flags = LLVMConstInt(e->i32, memory, 0); /* the same bits */

    emit_builtin(e, "_Z7barrierj", "convergent", LLVMVoidTypeInContext(e->cx),
                 &flags, 1);
}

static const emit_abi abi = {.kernel_cc = LLVMSPIRKERNELCallConv,
                             .function_cc = LLVMSPIRFUNCCallConv,
                             .mark = mark,
                             .id = id,
                             .barrier = barrier};

/* ---- the module ---- */

static void add_version(LLVMModuleRef m, LLVMContextRef cx, const char *name,
                        int major, int minor)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(cx);
    LLVMMetadataRef v[2] = {
        LLVMValueAsMetadata(LLVMConstInt(i32, (unsigned)major, 0)),
        LLVMValueAsMetadata(LLVMConstInt(i32, (unsigned)minor, 0))};

    LLVMAddNamedMetadataOperand(
        m, name, LLVMMetadataAsValue(cx, LLVMMDNodeInContext2(cx, v, 2)));
}

static void prepare(LLVMModuleRef m, LLVMContextRef cx)
{
    add_version(m, cx, "opencl.ocl.version", 2, 0);
    add_version(m, cx, "opencl.spir.version", 1, 2);
}

/* LLVM 22 makes an AND of zext(trunc x) and forgets that x was wider than the
 * result, which is no valid SPIR-V: here the AND comes first. */
static void mask_first(LLVMBuilderRef b, LLVMValueRef zext)
{
    LLVMValueRef trunc = LLVMGetOperand(zext, 0), x;
    LLVMTypeRef to = LLVMTypeOf(zext), from;

    if (!LLVMIsATruncInst(trunc) || LLVMGetTypeKind(to) != LLVMIntegerTypeKind)
        return;
    x = LLVMGetOperand(trunc, 0);
    from = LLVMTypeOf(x);
    if (LLVMGetIntTypeWidth(from) <= LLVMGetIntTypeWidth(to))
        return;
    LLVMPositionBuilderBefore(b, zext);
    x = LLVMBuildAnd(
        b, x, LLVMBuildZExt(b, LLVMConstAllOnes(LLVMTypeOf(trunc)), from, ""),
        "");
    LLVMReplaceAllUsesWith(zext, LLVMBuildTrunc(b, x, to, ""));
    LLVMInstructionEraseFromParent(zext);
}

/* -1 that no compiler knows: our launches have one dimension. */
static LLVMValueRef ones(LLVMBuilderRef b, LLVMTypeRef t, LLVMModuleRef m)
{
    static const char name[] = "_Z12get_work_dimv";
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetModuleContext(m));
    LLVMTypeRef type = LLVMFunctionType(i32, NULL, 0, false);
    LLVMValueRef f = LLVMGetNamedFunction(m, name), v;

    if (!f) {
        f = LLVMAddFunction(m, name, type);
        LLVMSetFunctionCallConv(f, LLVMSPIRFUNCCallConv);
    }
    v = LLVMBuildCall2(b, type, f, NULL, 0, "");
    LLVMSetInstructionCallConv(v, LLVMSPIRFUNCCallConv);
    v = LLVMBuildIntCast2(b, v, t, false, "");
    return LLVMBuildSub(b, v, LLVMConstInt(t, 2, false), "");
}

/* DEVICE_QUIRK_ONES_IN_MASK: -1 under ~ and before a minus. */
static void hide_ones(LLVMBuilderRef b, LLVMModuleRef m, LLVMValueRef in)
{
    unsigned at = LLVMGetInstructionOpcode(in) == LLVMXor ? 1 : 0;
    LLVMTypeRef t = LLVMTypeOf(in);

    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(t) < 32 ||
        LLVMGetOperand(in, at) != LLVMConstAllOnes(t))
        return;
    LLVMPositionBuilderBefore(b, in);
    LLVMSetOperand(in, at, ones(b, t, m));
}

static void repair(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev)
{
    bool hide = device_has_quirk(dev, DEVICE_QUIRK_ONES_IN_MASK);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);
    LLVMValueRef next;

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb;
             bb = LLVMGetNextBasicBlock(bb))
            for (LLVMValueRef in = LLVMGetFirstInstruction(bb); in; in = next) {
                next = LLVMGetNextInstruction(in);
                if (LLVMIsAZExtInst(in))
                    mask_first(b, in);
                else if (hide && (LLVMGetInstructionOpcode(in) == LLVMXor ||
                                  LLVMGetInstructionOpcode(in) == LLVMSub))
                    hide_ones(b, m, in);
            }
    LLVMDisposeBuilder(b);
}

static const char *passes(target_clean what)
{
    /* a whole algorithm gets numbers, which decide what of it is left */
    return what > TARGET_PLAIN
               ? "always-inline,globaldce,function(sroa,early-cse,"
                 "instsimplify,sccp,simplifycfg,early-cse)"
               : "function(sroa,early-cse,instsimplify,simplifycfg)";
}

const target_ops target_spirv = {.kind = THUNK_BIN_SPIRV,
                                 .file = LLVMObjectFile,
                                 .dump = "spv",
                                 .triple = "spirv64-unknown-unknown",
                                 .global_as = 1,
                                 .local_as = 3,
                                 .one_module = true,
                                 .in_child = true,
                                 .start = start_spirv,
                                 .devlib = library,
                                 .abi = &abi,
                                 .machine = machine,
                                 .prepare = prepare,
                                 .passes = passes,
                                 .repair = repair};
