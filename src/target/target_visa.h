/* Intel's assembly in kernels: see target_visa.c. */
#ifndef TARGET_VISA_H
#define TARGET_VISA_H

#include <llvm-c/Core.h>

#include "emit_attend.h"

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
/* The same sums, of attention: emit_attend_abi's. */
void target_add_rows(emit *e, const emit_own_sum *s, LLVMValueRef x,
                     LLVMValueRef y);
void target_scale_rows(emit *e, const emit_own_sum *s, LLVMValueRef by, int of);
void target_fold_rows(emit *e, const emit_own_sum *s, LLVMValueRef v,
                      LLVMValueRef by, int of);
void target_write_sums(LLVMModuleRef m, LLVMContextRef cx, int items);
/* acc + x * y, of 8 rows (target_spirv.c). */
LLVMValueRef target_dpas(emit *e, plan_engine engine, LLVMValueRef x,
                         LLVMValueRef y, LLVMValueRef acc);
/* 8 words of each item, which lie in local memory item by item (the same). */
LLVMValueRef target_local_rows(emit *e, LLVMValueRef p);
/* Functions that attention calls (target_visa_rows.c): 8 rows of f32 as an engine
 * takes them on its left; of 16 rows item i gets row i's largest number, or its
 * sum. */
#define TARGET_NARROW_BF16 "sundog_narrow_bf"
#define TARGET_NARROW_F16  "sundog_narrow_hf"
#define TARGET_ROWS_MOST   "sundog_rows_most"
#define TARGET_ROWS_SUM    "sundog_rows_sum"
/* The same of 8 items, whose left operand has two times 8 columns. */
#define TARGET_JOIN_BF16   "sundog_join_bf"
#define TARGET_JOIN_F16    "sundog_join_hf"
#define TARGET_EIGHTS_MOST "sundog_eights_most"
#define TARGET_EIGHTS_SUM  "sundog_eights_sum"
extern const emit_attend_abi target_spirv_attend; /* target_spirv_attend.c */
void target_write_rows(LLVMModuleRef m, LLVMContextRef cx);
/* Bodies of the functions of messages that the module calls, for a device that
 * takes assembly. */
void target_write_assembly(LLVMModuleRef m, LLVMContextRef cx,
                           const device_desc *dev);
/* Makes of what LLVM made of these, in SPIR-V's words, what is meant. */
void target_widen_assembly(void *code, size_t bytes);

#endif
