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
        LLVMValueAsMetadata(LLVMConstInt(i32, (unsigned)minor, 0))
    };

    LLVMAddNamedMetadataOperand(
        m, name, LLVMMetadataAsValue(cx, LLVMMDNodeInContext2(cx, v, 2)));
}

static void prepare(LLVMModuleRef m, LLVMContextRef cx)
{
    add_version(m, cx, "opencl.ocl.version", 2, 0);
    add_version(m, cx, "opencl.spir.version", 1, 2);
}

static const char *passes(bool calls_devlib)
{
    return calls_devlib
               ? "always-inline,globaldce,function(sroa,early-cse,"
                 "instsimplify,simplifycfg)"
               : "function(sroa,early-cse,instsimplify,simplifycfg)";
}

const target_ops target_spirv = {
    .kind = THUNK_BIN_SPIRV, .triple = "spirv64-unknown-unknown",
    .global_as = 1, .local_as = 3, .one_module = true, .in_child = true,
    .machine = machine,
    .prepare = prepare, .passes = passes
};
