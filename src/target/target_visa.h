/* Intel's assembly in kernels: see target_visa.c. */
#ifndef TARGET_VISA_H
#define TARGET_VISA_H

#include <llvm-c/Core.h>

#include "emit.h"

/* Messages that read blocks of a matrix, 2-D (ADR 25).  What one is told lies in
 * a register of 64 bytes, a word an item. */
typedef struct {
    const char *name; /* of the function, which is given that register */
    unsigned shape;   /* columns, rows << 8, less one each */
    int unit;         /* bytes of a row that columns are numbered by */
    int registers;    /* of what it reads */
    unsigned message;
} target_block_info;
extern const target_block_info target_block[EMIT_BLOCK_COUNT];

/* Bodies of the functions of messages that the module calls, for a device that
 * takes assembly. */
void target_write_assembly(LLVMModuleRef m, LLVMContextRef cx,
                           const device_desc *dev);
/* Makes of what LLVM made of these, in SPIR-V's words, what is meant. */
void target_widen_assembly(void *code, size_t bytes);

#endif
