/* A module of LLVM's, of one thread: from its context to a binary of a target's.
 * What was made of it is its owner's to end by target_module_finish, after an
 * error, too. */
#ifndef TARGET_MODULE_H
#define TARGET_MODULE_H

#include "target_room.h"

/* What a batch does, one after the other: IR, LLVM's passes over it, and
 * LLVM's code generation. */
typedef enum { T_EMIT, T_CLEAN, T_CODE, T_COUNT } target_part;

typedef struct {
    const target_ops *ops;
    const device_desc *dev;
    uint64_t since, ns[T_COUNT]; /* processor time */
    LLVMContextRef cx;
    LLVMModuleRef m;
    LLVMBuilderRef b;
    LLVMTargetMachineRef tm;
    sd_shelf *shelf; /* borrowed; may be NULL */
    bool quick;
    target_clean clean;
    bool want_text;
    char *no_opt, *with_opt;
    LLVMMemoryBufferRef asm_text, binary;
    char *diagnostic;
} target_module;

const target_ops *target_ops_of(device_kind kind);
void target_module_init(target_module *mod, const device_desc *dev);
void target_part_ends(target_module *mod, target_part t); /* the clock's */
/* These two once there is mod->m, which then says itself that it wants quick
 * code. */
sd_status target_module_machine(target_module *mod, bool quick);
void target_module_flag_quick(target_module *mod);
/* The machine, for the next module. */
void target_module_put_machine(target_module *mod);
sd_status target_module_verify(target_module *mod);
sd_status target_module_compile(target_module *mod); /* to mod->binary */
void target_module_finish(target_module *mod);

#endif
