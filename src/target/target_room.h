/* Between target_build.c and the targets. */
#ifndef TARGET_ROOM_H
#define TARGET_ROOM_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "devlib.h"
#include "emit.h"
#include "target.h"

/* What LLVM has to clean up in a module: what the emitters wrote; functions
 * that are to be inlined; loops of inlined functions, whose variables become
 * registers once loops of few turns inside them (a 3 x 3 product's) are gone. */
typedef enum { TARGET_PLAIN, TARGET_CALLS, TARGET_LOOPS } target_clean;

/* A target: the columns and functions of one kind of code.  device_kinds.def
 * says which kind of device has which. */
typedef struct {
    thunk_bin_kind kind;
    thunk_bin_kind large_kind; /* of kernels that are plan_kernel's large */
    LLVMCodeGenFileType file; /* what a binary is */
    const char *dump;         /* what a dumped binary is called; NULL: none is */
    const char *triple;
    void (*start)(void); /* LLVM's registry, once a process */
    devlib_target (*devlib)(const device_desc *dev); /* its device library */
    const emit_abi *abi;          /* of its kernels; NULL: the host's */
    unsigned global_as, local_as; /* address spaces */
    bool one_module;              /* all kernels of a program together */
    bool in_child;                /* code generation: see target_child.c */
    bool reuse;                   /* a machine serves one module after another */
    bool on_host;                 /* kernels are functions that a thread calls:
                                     loops and quick code make sense */
    /* Which of its machines a device wants; NULL: there is one. */
    int (*variant)(const device_desc *dev);
    /* quick: code is wanted soon more than it is wanted fast */
    LLVMTargetMachineRef (*machine)(const device_desc *dev, bool quick);
    void (*prepare)(LLVMModuleRef m, LLVMContextRef cx); /* may be NULL */
    /* Before the passes: what only the emitters' own words tell.  May be NULL. */
    void (*near)(LLVMModuleRef m, LLVMContextRef cx);
    const char *(*passes)(target_clean what);
    /* After the passes: what code generation would get wrong.  May be NULL. */
    void (*repair)(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev);
    /* Of what code generation wrote: the same, or another in its place, for what
     * reads it next would get wrong.  May be NULL. */
    LLVMMemoryBufferRef (*mend)(LLVMMemoryBufferRef text);
    sd_status (*check)(const char *data, size_t bytes); /* of a binary */
} target_ops;

/* Calls f with each instruction, which it may erase, and a builder. */
typedef void target_each_fn(LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef in,
                            const device_desc *dev);
void target_each(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev,
                 target_each_fn *f);

/* A machine with these options, which it takes; NULL: LLVM has none. */
LLVMTargetMachineRef target_machine(const char *triple,
                                    LLVMTargetMachineOptionsRef o);

/* What a kernel takes on one thread of the host, by device_guess_ns. */
double target_guess_ns(const plan_kernel *k);

/* Loops of small steps become kernels of their own, which take the places of
 * their steps in the plan and its program: target_loop.c. */
void target_loops(plan *p);

/* x86-64 with AVX2, after LLVM's passes: instructions that code generation would
 * only find after asking for long.  target_choose.c. */
void target_choose(LLVMModuleRef m, LLVMContextRef cx);

/* Before LLVM's passes: accesses a constant distance apart share an address.
 * target_near.c. */
void target_near(LLVMModuleRef m, LLVMContextRef cx);

/* x86-64 again: masked reads without the registers and halves of which no lane is
 * ever allowed; and, with AVX-512 too, masked writes of one lane as writes of an
 * element.  target_mask.c. */
void target_cut_reads(LLVMModuleRef m, LLVMContextRef cx);
void target_cut_writes(LLVMModuleRef m, LLVMContextRef cx);

extern const target_ops target_x86, target_spirv, target_ptx;

#endif
