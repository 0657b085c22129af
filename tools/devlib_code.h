/* devlib_code: a function of the device library as machine code in one piece.
 */
#ifndef DEVLIB_CODE_H
#define DEVLIB_CODE_H

#include <llvm-c/TargetMachine.h>
#include <stdint.h>

enum { DEVLIB_CODE_ALIGN = 64 };

/* The code of a function of m, the first, and of those that it calls; behind it
 * its constants, all references resolved: it runs at any address of that
 * alignment.  malloc'ed; ends the process where m needs more than that. */
uint8_t *devlib_code(LLVMTargetMachineRef tm, LLVMModuleRef m, const char *name,
                     size_t *bytes);

#endif
