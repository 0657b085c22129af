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

/* f gets a body: text, which gives $0, or nothing, and is given arguments as $1
 * and $2. */
enum { TARGET_BODY_ARGS = 2 };
void target_write_body(LLVMContextRef cx, LLVMValueRef f, const char *text);
/* Sums of deep blocks: the functions of the ABI, and what becomes of them
 * (target_visa_sums.c). */
void target_begin_sum(emit *e, LLVMValueRef slot, int sum);
void target_add_parts(emit *e, const emit_parts *p);
void target_take_sum(emit *e, LLVMValueRef slot, int sum);
void target_write_sums(LLVMModuleRef m, LLVMContextRef cx);
/* Bodies of the functions of messages that the module calls, for a device that
 * takes assembly. */
void target_write_assembly(LLVMModuleRef m, LLVMContextRef cx,
                           const device_desc *dev);
/* Makes of what LLVM made of these, in SPIR-V's words, what is meant. */
void target_widen_assembly(void *code, size_t bytes);

#endif
