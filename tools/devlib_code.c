/* Links one relocatable object into one block of bytes. */
#include "devlib_code.h"

#include <elf.h>
#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name; /* of the module, for messages */
    const uint8_t *data;
    const Elf64_Ehdr *h;
    const Elf64_Shdr *section;
    size_t at[64];    /* where a section lies in out */
    uint8_t *out;
    size_t bytes;
} link;

_Noreturn static void die(const link *l, const char *what)
{
    fprintf(stderr, "devlib_code: %s: %s\n", l->name, what);
    exit(1);
}

static bool is_loaded(const Elf64_Shdr *s)
{
    return (s->sh_flags & SHF_ALLOC) && s->sh_type == SHT_PROGBITS;
}

/* Code first: the function begins where the block begins. */
static void place(link *l, bool code)
{
    for (int i = 0; i < l->h->e_shnum; i++) {
        const Elf64_Shdr *s = &l->section[i];
        bool is_code = s->sh_flags & SHF_EXECINSTR;

        if (!is_loaded(s) || is_code != code || !s->sh_size)
            continue;
        if ((s->sh_flags & SHF_WRITE) || s->sh_addralign > DEVLIB_CODE_ALIGN)
            die(l, "data that is no constant");
        if (code && l->bytes)
            die(l, "more than one function");
        l->at[i] = (l->bytes + s->sh_addralign - 1) & -s->sh_addralign;
        l->bytes = l->at[i] + s->sh_size;
        l->out = realloc(l->out, l->bytes);
        if (!l->out)
            die(l, "out of memory");
        memcpy(l->out + l->at[i], l->data + s->sh_offset, s->sh_size);
    }
}

static void relocate(link *l, const Elf64_Shdr *rela)
{
    const Elf64_Rela *r = (const void *)(l->data + rela->sh_offset);
    const Elf64_Sym *table =
        (const void *)(l->data + l->section[rela->sh_link].sh_offset);
    size_t base = l->at[rela->sh_info];

    for (size_t i = 0; i < rela->sh_size / sizeof *r; i++) {
        const Elf64_Sym *s = &table[ELF64_R_SYM(r[i].r_info)];
        size_t where = base + r[i].r_offset;
        int32_t v;

        if (ELF64_R_TYPE(r[i].r_info) != R_X86_64_PC32 ||
            s->st_shndx == SHN_UNDEF || s->st_shndx >= l->h->e_shnum ||
            !is_loaded(&l->section[s->st_shndx]))
            die(l, "a reference that is not to its own constants");
        v = (int32_t)((int64_t)(l->at[s->st_shndx] + s->st_value) +
                      r[i].r_addend - (int64_t)where);
        memcpy(l->out + where, &v, sizeof v);
    }
}

uint8_t *devlib_code(LLVMTargetMachineRef tm, LLVMModuleRef m, size_t *bytes)
{
    size_t len;
    link l = {.name = LLVMGetModuleIdentifier(m, &len)};
    LLVMMemoryBufferRef mem;
    char *message = NULL;

    if (LLVMTargetMachineEmitToMemoryBuffer(tm, m, LLVMObjectFile, &message,
                                            &mem))
        die(&l, message);
    l.data = (const uint8_t *)LLVMGetBufferStart(mem);
    l.h = (const void *)l.data;
    l.section = (const void *)(l.data + l.h->e_shoff);
    if (l.h->e_shnum > sizeof l.at / sizeof *l.at)
        die(&l, "too many sections");
    place(&l, true);
    place(&l, false);
    for (int i = 0; i < l.h->e_shnum; i++)
        if (l.section[i].sh_type == SHT_RELA &&
            is_loaded(&l.section[l.section[i].sh_info]))
            relocate(&l, &l.section[i]);
    LLVMDisposeMemoryBuffer(mem);
    *bytes = l.bytes;
    return l.out;
}
