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

/* Code first. */
static void place(link *l, bool code)
{
    bool placed = false;

    for (int i = 0; i < l->h->e_shnum; i++) {
        const Elf64_Shdr *s = &l->section[i];
        bool is_code = s->sh_flags & SHF_EXECINSTR;
        size_t end = l->bytes;

        if (!is_loaded(s) || is_code != code || !s->sh_size)
            continue;
        if ((s->sh_flags & SHF_WRITE) || s->sh_addralign > DEVLIB_CODE_ALIGN)
            die(l, "data that is no constant");
        if (code && placed)
            die(l, "more than one section of code");
        placed = true;
        l->at[i] = (l->bytes + s->sh_addralign - 1) & -s->sh_addralign;
        l->bytes = l->at[i] + s->sh_size;
        l->out = realloc(l->out, l->bytes);
        if (!l->out)
            die(l, "out of memory");
        memset(l->out + end, 0, l->at[i] - end); /* builds are alike */
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

/* Where the function of that name begins in its section. */
static size_t find_entry(const link *l)
{
    for (int i = 0; i < l->h->e_shnum; i++) {
        const Elf64_Shdr *t = &l->section[i];
        const Elf64_Sym *s = (const void *)(l->data + t->sh_offset);
        const char *names;

        if (t->sh_type != SHT_SYMTAB)
            continue;
        names = (const char *)l->data + l->section[t->sh_link].sh_offset;
        for (size_t j = 0; j < t->sh_size / sizeof *s; j++)
            if (ELF64_ST_TYPE(s[j].st_info) == STT_FUNC &&
                !strcmp(names + s[j].st_name, l->name))
                return s[j].st_value;
    }
    die(l, "has no function of its name");
}

/* Who calls the block wants the function: a jump to it stands before others
 * that are in front of it. */
static void place_jump(link *l)
{
    size_t entry = find_entry(l);
    int32_t by = (int32_t)(DEVLIB_CODE_ALIGN + entry - 5);

    if (!entry)
        return;
    l->bytes = DEVLIB_CODE_ALIGN;
    l->out = calloc(1, l->bytes);
    if (!l->out)
        die(l, "out of memory");
    l->out[0] = 0xe9;
    memcpy(l->out + 1, &by, sizeof by);
}

uint8_t *devlib_code(LLVMTargetMachineRef tm, LLVMModuleRef m, const char *name,
                     size_t *bytes)
{
    link l = {.name = name};
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
    place_jump(&l);
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
