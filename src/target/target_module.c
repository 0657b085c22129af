/* A module of LLVM's on its way from IR to a binary: its machine, the passes
 * over it, and code generation. */
#include "target_module.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <stdlib.h>

#include "target_child.h"

void target_part_ends(target_module *mod, target_part t)
{
    uint64_t now = sd_thread_ns();

    mod->ns[t] += now - mod->since;
    mod->since = now;
}

/* ---- LLVM, once a process ---- */

static const target_ops *const code_of[] = {
#define CODE(t) &target_##t
#define DEVICE_KIND(id, name, title, open, code, flops, bytes, launch, meet, \
                    beside, library) \
    [DEVICE_##id] = code,
#include "device_kinds.def"
#undef DEVICE_KIND
#undef CODE
};

const target_ops *target_ops_of(device_kind kind)
{
    return code_of[kind];
}

static void start_llvm(void)
{
    for (size_t i = 0; i < SD_COUNTOF(code_of); i++)
        code_of[i]->start();
}

static void need_llvm(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* LLVM's own registry */

    pthread_once(&once, start_llvm);
}

/* ---- a module ---- */

static void on_diagnostic(LLVMDiagnosticInfoRef d, void *ctx)
{
    target_module *mod = ctx;
    char *text;

    if (LLVMGetDiagInfoSeverity(d) != LLVMDSError || mod->diagnostic)
        return;
    text = LLVMGetDiagInfoDescription(d);
    mod->diagnostic = strdup(text);
    LLVMDisposeMessage(text);
}

void target_module_init(target_module *mod, const device_desc *dev)
{
    need_llvm();
    mod->dev = dev;
    mod->ops = code_of[dev->kind];
    mod->cx = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(mod->cx, on_diagnostic, mod);
}

void target_each(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev,
                 target_each_fn *f)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);

    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn;
         fn = LLVMGetNextFunction(fn))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(fn); bb;
             bb = LLVMGetNextBasicBlock(bb))
            for (LLVMValueRef in = LLVMGetFirstInstruction(bb), next; in;
                 in = next) {
                next = LLVMGetNextInstruction(in);
                f(m, b, in, dev);
            }
    LLVMDisposeBuilder(b);
}

LLVMTargetMachineRef target_machine(const char *triple,
                                    LLVMTargetMachineOptionsRef o)
{
    LLVMTargetMachineRef tm = NULL;
    char *message = NULL;
    LLVMTargetRef t;

    if (!LLVMGetTargetFromTriple(triple, &t, &message))
        tm = LLVMCreateTargetMachineWithOptions(t, triple, o);
    LLVMDisposeMessage(message);
    LLVMDisposeTargetMachineOptions(o);
    return tm;
}

/* A machine's tables of what the target can do take longer to fill than a
 * small kernel takes to compile, so machines are kept. */
static int64_t machine_variant(const target_module *mod)
{
    int variant = mod->ops->variant ? mod->ops->variant(mod->dev) : 0;

    return variant * 2 + mod->quick;
}

static void drop_machine(void *tm)
{
    LLVMDisposeTargetMachine(tm);
}

/* After an error it may hold anything. */
void target_module_put_machine(target_module *mod)
{
    if (mod->tm && mod->binary && mod->ops->reuse)
        sd_shelf_put(mod->shelf, mod->ops, machine_variant(mod), mod->tm,
                     drop_machine);
    else if (mod->tm)
        drop_machine(mod->tm);
    mod->tm = NULL;
}

sd_status target_module_machine(target_module *mod, bool quick)
{
    LLVMTargetDataRef data;

    mod->quick = quick;
    mod->tm = sd_shelf_take(mod->shelf, mod->ops, machine_variant(mod));
    if (!mod->tm)
        mod->tm = mod->ops->machine(mod->dev, quick);
    if (!mod->tm)
        return sd_error(SD_INTERNAL, "LLVM has no target %s", mod->ops->triple);
    data = LLVMCreateTargetDataLayout(mod->tm);
    LLVMSetTarget(mod->m, mod->ops->triple);
    LLVMSetModuleDataLayout(mod->m, data);
    LLVMDisposeTargetData(data);
    return NULL;
}

/* A module says itself that it wants quick code: its text gives the same
 * binary again. */
static const char quick_flag[] = "sundog.quick";

void target_module_flag_quick(target_module *mod)
{
    LLVMAddModuleFlag(mod->m, LLVMModuleFlagBehaviorWarning, quick_flag,
                      sizeof quick_flag - 1,
                      LLVMValueAsMetadata(
                          LLVMConstInt(LLVMInt32TypeInContext(mod->cx), 1, 0)));
}

static bool has_quick_flag(const target_module *mod)
{
    return LLVMGetModuleFlag(mod->m, quick_flag, sizeof quick_flag - 1);
}

void target_module_finish(target_module *mod)
{
    target_module_put_machine(mod);
    if (mod->binary)
        LLVMDisposeMemoryBuffer(mod->binary);
    if (mod->asm_text)
        LLVMDisposeMemoryBuffer(mod->asm_text);
    LLVMDisposeMessage(mod->no_opt);
    LLVMDisposeMessage(mod->with_opt);
    free(mod->diagnostic);
    if (mod->b)
        LLVMDisposeBuilder(mod->b);
    if (mod->m)
        LLVMDisposeModule(mod->m);
    if (mod->cx)
        LLVMContextDispose(mod->cx);
}

sd_status target_module_verify(target_module *mod)
{
    char *message = NULL;
    sd_status st = NULL;

    if (LLVMVerifyModule(mod->m, LLVMReturnStatusAction, &message))
        st = sd_error(SD_INTERNAL, "generated code is wrong: %s", message);
    LLVMDisposeMessage(message);
    return st;
}

static sd_status optimise(target_module *mod)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef err =
        LLVMRunPasses(mod->m, mod->ops->passes(mod->clean), mod->tm, o);
    sd_status st = NULL;

    LLVMDisposePassBuilderOptions(o);
    if (err) {
        char *message = LLVMGetErrorMessage(err);

        st = sd_error(SD_INTERNAL, "LLVM's passes: %s", message);
        LLVMDisposeErrorMessage(message);
    }
    return st;
}

static sd_status code(target_module *mod, LLVMModuleRef m,
                      LLVMCodeGenFileType type, LLVMMemoryBufferRef *out)
{
    char *message = NULL;
    sd_status st = NULL;

    if (mod->ops->in_child) {
        return target_code_in_child(m, type, out);
    }
    if (LLVMTargetMachineEmitToMemoryBuffer(mod->tm, m, type, &message, out)) {
        st = sd_error(SD_INTERNAL, "LLVM's code generation: %s", message);
        LLVMDisposeMessage(message);
        *out = NULL;
    } else if (mod->diagnostic) {
        st = sd_error(SD_INTERNAL, "LLVM's code generation: %s",
                      mod->diagnostic);
    }
    return st;
}

sd_status target_module_compile(target_module *mod)
{
    sd_status st = NULL;

#ifndef NDEBUG
    st = target_module_verify(mod);
    if (st)
        return st;
#endif
    if (mod->want_text)
        mod->no_opt = LLVMPrintModuleToString(mod->m);
    if (mod->ops->near)
        mod->ops->near(mod->m, mod->cx);
    st = optimise(mod);
    target_part_ends(mod, T_CLEAN);
    if (st)
        return st;
    if (mod->ops->repair)
        mod->ops->repair(mod->m, mod->cx, mod->dev);
    if (mod->want_text) { /* code generation changes the module */
        LLVMModuleRef copy = LLVMCloneModule(mod->m);

        mod->with_opt = LLVMPrintModuleToString(mod->m);
        if (mod->ops->file != LLVMAssemblyFile)
            st = code(mod, copy, LLVMAssemblyFile, &mod->asm_text);
        LLVMDisposeModule(copy);
        if (st)
            return st;
    }
    st = code(mod, mod->m, mod->ops->file, &mod->binary);
    if (!st && mod->ops->mend)
        mod->binary = mod->ops->mend(mod->binary);
    target_part_ends(mod, T_CODE);
    if (!st && mod->ops->check)
        st = mod->ops->check(LLVMGetBufferStart(mod->binary),
                             LLVMGetBufferSize(mod->binary));
    return st;
}

/* ---- from text ---- */

sd_status target_compile_ir(const device_desc *dev, const char *ir, size_t len,
                            sd_buf *out)
{
    target_module mod = {0};
    char *message = NULL;
    LLVMMemoryBufferRef mem;
    sd_status st;

    target_module_init(&mod, dev);
    mem = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, len, "ir");
    if (LLVMParseIRInContext(mod.cx, mem, &mod.m, &message)) {
        st = sd_error(SD_INVALID, "LLVM IR: %s", message);
        LLVMDisposeMessage(message);
        goto done;
    }
    /* it may have loops: the longest list does no harm */
    mod.clean = has_quick_flag(&mod) ? TARGET_PLAIN : TARGET_LOOPS;
    st = target_module_machine(&mod, has_quick_flag(&mod));
    if (!st)
        st = target_module_verify(&mod);
    if (!st)
        st = target_module_compile(&mod);
    if (!st)
        sd_buf_add(out, LLVMGetBufferStart(mod.binary),
                   LLVMGetBufferSize(mod.binary));
done:
    target_module_finish(&mod);
    return st;
}
