/* LLVM in a child process: see target_child.c. */
#ifndef TARGET_CHILD_H
#define TARGET_CHILD_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "base.h"

/* LLVMTargetMachineEmitToMemoryBuffer for SPIR-V, in a child. */
sd_status target_code_in_child(LLVMModuleRef m, LLVMCodeGenFileType type,
                               LLVMMemoryBufferRef *out);

#endif
