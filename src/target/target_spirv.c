/* SPIR-V in OpenCL's flavour, by LLVM's own target.  Without FP_CONTRACT
 * metadata every kernel is marked ContractionOff, which is what we want. */
#include "target_room.h"

static LLVMTargetMachineRef machine(const device_desc *dev, bool quick)
{
    LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineRef tm = NULL;
    LLVMTargetRef t;
    char *message = NULL;

    (void)dev;
    (void)quick;
    /* Above None the loop passes of code generation run; they turn indices
     * into pointers that step, which the devices' compilers undo badly. */
    LLVMTargetMachineOptionsSetCodeGenOptLevel(o, LLVMCodeGenLevelNone);
    if (!LLVMGetTargetFromTriple(target_spirv.triple, &t, &message))
        tm = LLVMCreateTargetMachineWithOptions(t, target_spirv.triple, o);
    LLVMDisposeMessage(message);
    LLVMDisposeTargetMachineOptions(o);
    return tm;
}

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

static void repair(LLVMModuleRef m, LLVMContextRef cx)
{
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
            }
    LLVMDisposeBuilder(b);
}

static const char *passes(bool calls_devlib)
{
    return calls_devlib ? "always-inline,globaldce,function(sroa,early-cse,"
                          "instsimplify,simplifycfg)"
                        : "function(sroa,early-cse,instsimplify,simplifycfg)";
}

const target_ops target_spirv = {.kind = THUNK_BIN_SPIRV,
                                 .triple = "spirv64-unknown-unknown",
                                 .global_as = 1,
                                 .local_as = 3,
                                 .one_module = true,
                                 .in_child = true,
                                 .machine = machine,
                                 .prepare = prepare,
                                 .passes = passes,
                                 .repair = repair};
