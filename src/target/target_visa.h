/* Intel's assembly in kernels: see target_visa.c. */
#ifndef TARGET_VISA_H
#define TARGET_VISA_H

#include <llvm-c/Core.h>

#include "base.h"
#include "device_desc.h"

/* Bodies of the functions of messages that the module calls, for a device that
 * takes assembly. */
void target_write_assembly(LLVMModuleRef m, LLVMContextRef cx,
                           const device_desc *dev);
/* Makes of what LLVM made of these, in SPIR-V's words, what is meant. */
void target_widen_assembly(void *code, size_t bytes);

#endif
