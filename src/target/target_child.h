/* LLVM in a child process: see target_child.c. */
#ifndef TARGET_CHILD_H
#define TARGET_CHILD_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "base.h"

/* Around all use of LLVM but the next function, which wants to be called
 * outside. */
void target_llvm_enter(void);
void target_llvm_leave(void);
/* LLVMTargetMachineEmitToMemoryBuffer, in a child. */
sd_status target_code_in_child(LLVMTargetMachineRef tm, LLVMModuleRef m,
                               LLVMCodeGenFileType type,
                               LLVMMemoryBufferRef *out);

#endif
