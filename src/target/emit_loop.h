/* A loop as one kernel: between emit_loop.c, which writes its steps, and
 * emit_loop_group.c, which says what of that differs where a group of a GPU
 * runs it. */
#ifndef EMIT_LOOP_H
#define EMIT_LOOP_H

#include "emit.h"

typedef struct {
    emit *e;
    const plan_kernel *k;
    LLVMTypeRef type; /* host: of every kernel's function */
    LLVMValueRef *cell; /* addresses; small ones: of the variable */
    uint64_t *base; /* [cell]: the offset in the buffer that it is of */
    sd_map *made; /* plan_kernel -> function */
    int inlined; /* nodes so far */
    LLVMValueRef stop; /* address of the run's mark */
    LLVMValueRef inner; /* host: scratch of the kernels */
    LLVMValueRef item; /* GPU: the number of the work item */
    LLVMValueRef turns; /* GPU: a variable, how many all loops began */
    LLVMBasicBlockRef done;
    sd_status st;
} emit_looper;

/* The function; what is written next is its start. */
void emit_loop_begin_group(emit_looper *l);
/* All items wait for each other. */
void emit_loop_meet(emit_looper *l);
/* Kernel k; behind its slots there is room for the numbers that a function of a
 * loop is told. */
enum { EMIT_LOOP_NUMBERS = 2 };
void emit_loop_call_group(emit_looper *l, const plan_kernel *k,
                          LLVMValueRef *slot);
void emit_loop_copy_group(emit_looper *l, const thunk *t, LLVMValueRef to,
                          LLVMValueRef from);
/* Ends the loop when the run is to end. */
void emit_loop_look_group(emit_looper *l);

#endif
