/* x86-64: relocatable ELF objects for our own loader.  Vectors come from the
 * emitters, so no vectoriser runs; what is left for passes is cleaning up. */
#include <elf.h>
#include <llvm-c/Target.h>
#include <stdio.h>

#include "target_room.h"

/* What code for a device with AVX-512 may have besides, a bit of its variant
 * each, from the second on. */
static const struct {
    uint64_t feature;
    const char *named;
} more[] = {{DEVICE_HAS_VNNI, ",+avx512vnni"},
            {DEVICE_HAS_AMX, ",+amx-tile,+amx-int8,+amx-bf16"},
            {DEVICE_HAS_BF16, ",+avx512bf16"}};

static int variant(const device_desc *dev)
{
    int v4 = dev->lanes == 16, v = v4;

    for (size_t i = 0; i < SD_COUNTOF(more); i++)
        if (v4 && dev->features & more[i].feature)
            v |= 2 << i;
    return v;
}

/* Quick code keeps values of a block in registers only within the block: as
 * fast where loops are short (measured on rows of 96), in half the time. */
static LLVMTargetMachineRef machine(const device_desc *dev, bool quick)
{
    bool v4 = dev->lanes == 16;
    LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();
    char features[128];
    int n =
        snprintf(features, sizeof features, "%s", v4 ? "-prefer-256-bit" : "");

    for (size_t i = 0; i < SD_COUNTOF(more); i++)
        if (variant(dev) & 2 << i)
            n += snprintf(features + n, sizeof features - (size_t)n, "%s",
                          more[i].named);
    LLVMTargetMachineOptionsSetCPU(o, v4 ? "x86-64-v4" : "x86-64-v3");
    LLVMTargetMachineOptionsSetFeatures(o, features);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(
        o, quick ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault);
    LLVMTargetMachineOptionsSetRelocMode(o, LLVMRelocPIC);
    LLVMTargetMachineOptionsSetCodeModel(o, LLVMCodeModelSmall);
    return target_machine(target_x86.triple, o);
}

static void start_x86(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
}

static devlib_target library(const device_desc *dev)
{
    return dev->lanes == 16 ? DEVLIB_X86_V4 : DEVLIB_X86_V3;
}

#define INLINED  "always-inline,globaldce,function(sroa,early-cse,"
#define UNROLLED "loop(loop-rotate,indvars,loop-unroll-full),sroa,early-cse,"
#define CLEAN    "instcombine<no-verify-fixpoint>,simplifycfg)"

static const char *passes(target_clean what)
{
    static const char *const list[] = {
        [TARGET_PLAIN] = "function(sroa,early-cse,simplifycfg)",
        [TARGET_CALLS] = INLINED CLEAN,
        [TARGET_LOOPS] = INLINED UNROLLED CLEAN,
    };

    return list[what];
}

/* ---- counters ----
 *
 * LLVM's loop strength reduction took a quarter of the time in which kernels of
 * narrow floats are compiled, a seventh in f32, to find what the emitters
 * write: an address is a pointer, a position and a number (emit_go). */

/* Is v a number that each turn of a loop adds to? */
static bool is_counter(LLVMValueRef v)
{
    if (LLVMGetTypeKind(LLVMTypeOf(v)) != LLVMIntegerTypeKind)
        return false;
    for (unsigned i = 0; i < LLVMCountIncoming(v); i++) {
        LLVMValueRef next = LLVMGetIncomingValue(v, i);

        if (LLVMIsAInstruction(next) &&
            LLVMGetInstructionOpcode(next) == LLVMAdd &&
            LLVMGetOperand(next, 0) == v)
            return true;
    }
    return false;
}

/* Read through llvm.expect it is the same value, but until instructions are
 * selected LLVM does not see that it counts.  (Its option against that pass
 * would be the whole process's, and other targets want it.) */
static void hide(LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef counter,
                 LLVMValueRef before)
{
    static const char name[] = "llvm.expect";
    LLVMTypeRef t = LLVMTypeOf(counter);
    unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m, id, &t, 1), v;
    LLVMValueRef arg[2] = {LLVMGetPoison(t), LLVMGetPoison(t)};

    LLVMPositionBuilderBefore(b, before);
    v = LLVMBuildCall2(b, LLVMGlobalGetValueType(f), f, arg, 2, "");
    LLVMReplaceAllUsesWith(counter, v);
    LLVMSetOperand(v, 0, counter);
    LLVMSetOperand(v, 1, counter);
}

static void hide_in(LLVMModuleRef m, LLVMBuilderRef b, LLVMBasicBlockRef block)
{
    LLVMValueRef i = LLVMGetFirstInstruction(block), first = i;

    while (LLVMIsAPHINode(first))
        first = LLVMGetNextInstruction(first);
    for (; LLVMIsAPHINode(i); i = LLVMGetNextInstruction(i))
        if (is_counter(i))
            hide(m, b, i, first);
}

static void hide_counters(LLVMModuleRef m, LLVMContextRef cx)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef k = LLVMGetFirstBasicBlock(f); k;
             k = LLVMGetNextBasicBlock(k))
            hide_in(m, b, k);
    LLVMDisposeBuilder(b);
}

static void repair(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev)
{
    if (dev->lanes == 8) {
        target_choose(m, cx);
        target_cut_reads(m, cx);
    }
    target_cut_writes(m, cx);
    hide_counters(m, cx);
}

static bool may_import(const char *name)
{
    static const char *const known[] = {"", "memcpy", "memmove", "memset",
                                        "_GLOBAL_OFFSET_TABLE_"};

    for (size_t i = 0; i < SD_COUNTOF(known); i++)
        if (!strcmp(name, known[i]))
            return true;
    return false;
}

/* The loader has no others to give; a math call left over shows here. */
static sd_status check_imports(const char *data, size_t bytes)
{
    const Elf64_Ehdr *h = (const void *)data;
    const Elf64_Shdr *s = (const void *)(data + h->e_shoff);

    (void)bytes;
    for (int i = 0; i < h->e_shnum; i++) {
        const Elf64_Sym *sym = (const void *)(data + s[i].sh_offset);
        const char *names;

        if (s[i].sh_type != SHT_SYMTAB)
            continue;
        names = data + s[s[i].sh_link].sh_offset;
        for (size_t j = 1; j < s[i].sh_size / sizeof *sym; j++)
            if (sym[j].st_shndx == SHN_UNDEF &&
                !may_import(names + sym[j].st_name))
                return sd_error(SD_INTERNAL, "generated code imports %s",
                                names + sym[j].st_name);
    }
    return NULL;
}

const target_ops target_x86 = {.kind = THUNK_BIN_X86,
                               .file = LLVMObjectFile,
                               .triple = "x86_64-unknown-linux-gnu",
                               .start = start_x86,
                               .devlib = library,
                               .on_host = true,
                               .variant = variant,
                               .machine = machine,
                               .passes = passes,
                               .repair = repair,
                               .reuse = true,
                               .check = check_imports};
