/* What the files of PTX share: target_ptx.c has the target and its ABI. */
#ifndef TARGET_PTX_H
#define TARGET_PTX_H

#include "target_room.h"

/* ---- target_ptx_wide.c ---- */

/* A volatile instruction, which memory is not moved across. */
enum { PTX_ARGS = 34 };
LLVMValueRef target_ptx_text(emit *e, const char *text, const char *how,
                             LLVMTypeRef out, LLVMValueRef *arg, unsigned narg);
/* An instruction that depends on its operands alone. */
LLVMValueRef target_ptx_compute(emit *e, const char *text, const char *how,
                                LLVMTypeRef out, LLVMValueRef *arg,
                                unsigned narg);
/* What tells wgmma of an operand (PTX, "matrix descriptor"): its address,
 * distances in units of 16 bytes, and lines whose parts are exchanged.  Along K
 * eight lines are 1,024 bytes from the next eight.  Else these are positions of
 * K, and 64 neighbours are `apart` units from the next 64. */
enum { PTX_UNIT = 16 };
LLVMValueRef target_ptx_describe(emit *e, LLVMValueRef p, int64_t apart);
/* What registers name0, name1, .. of the text's own, of type t, have. */
void target_ptx_take(emit *e, const char *name, LLVMTypeRef t,
                     LLVMValueRef *out, int n);
/* wgmma's types of an engine: of sums and both operands. */
const char *target_ptx_types(plan_engine engine);
/* Slots of the ABI (emit_abi.h). */
void target_ptx_open_sums(emit *e, LLVMTypeRef t, int n);
void target_ptx_take_sums(emit *e, LLVMTypeRef t, LLVMValueRef *out, int n);
void target_ptx_clear_sums(emit *e, LLVMTypeRef t, int n);
void target_ptx_open_factors(emit *e, int n);
void target_ptx_keep_factors(emit *e, LLVMValueRef *v, int n);
void target_ptx_add_products(emit *e, int nx, int ny);
void target_ptx_begin(emit *e, const emit_wide *w);
void target_ptx_wait(emit *e, int left);
void target_ptx_settle(emit *e);
void target_ptx_copy(emit *e, LLVMValueRef to, LLVMValueRef from,
                     LLVMValueRef not);
void target_ptx_close_copies(emit *e);
void target_ptx_await_copies(emit *e, int left);

/* ---- target_ptx_roll.c ---- */

void target_ptx_roll(LLVMModuleRef m, LLVMContextRef cx);

/* ---- target_ptx_logic.c ---- */

/* The same text, or another in its place. */
LLVMMemoryBufferRef target_ptx_part_logic(LLVMMemoryBufferRef text);

/* ---- target_ptx_attend.c, target_ptx_places.c ---- */

extern const emit_attend_abi target_ptx_attend;
void target_ptx_places(emit *e, const emit_positions *p);
void target_ptx_unit(emit *e, LLVMValueRef *y, LLVMValueRef *const *x,
                     int places);

#endif
