/* A library that exports another LLVM to the whole process, as TensorFlow's
 * framework does: who calls into it has been captured. */
#include <stdio.h>
#include <stdlib.h>

#define CAPTURED(name) \
    __attribute__((visibility("default"))) void name(void); \
    void name(void) \
    { \
        fputs(#name " of another LLVM was called\n", stderr); \
        abort(); \
    }
CAPTURED(LLVMContextCreate)
CAPTURED(LLVMModuleCreateWithNameInContext)
CAPTURED(LLVMCreateBuilderInContext)
CAPTURED(LLVMGetTargetFromTriple)
CAPTURED(LLVMCreateTargetMachineWithOptions)
CAPTURED(LLVMRunPasses)
CAPTURED(LLVMParseBitcodeInContext2)
CAPTURED(LLVMTargetMachineEmitToMemoryBuffer)
