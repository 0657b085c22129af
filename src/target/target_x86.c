/* x86-64: relocatable ELF objects for our own loader.  Vectors come from the
 * emitters, so no vectoriser runs; what is left for passes is cleaning up. */
#include <elf.h>
#include <llvm-c/Target.h>

#include "target_room.h"

static int variant(const device_desc *dev)
{
    bool v4 = dev->lanes == 16;

    return v4 + (v4 && dev->features & DEVICE_HAS_VNNI);
}

/* Quick code keeps values of a block in registers only within the block: as
 * fast where loops are short (measured on rows of 96), in half the time. */
static LLVMTargetMachineRef machine(const device_desc *dev, bool quick)
{
    bool v4 = dev->lanes == 16;
    LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();

    LLVMTargetMachineOptionsSetCPU(o, v4 ? "x86-64-v4" : "x86-64-v3");
    LLVMTargetMachineOptionsSetFeatures(o, !v4 ? ""
                                           : dev->features & DEVICE_HAS_VNNI
                                               ? "-prefer-256-bit,+avx512vnni"
                                               : "-prefer-256-bit");
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
                               .reuse = true,
                               .check = check_imports};
