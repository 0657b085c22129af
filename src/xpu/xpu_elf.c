/* Our loader of relocatable x86-64 objects, as LLVM writes them.  All objects
 * of a program share one mapping of three parts: code and stubs (executable),
 * read-only data with the address table, writable data (zeroed, if any).  It
 * is filled writable, then protected: no page is ever both writable and
 * executable.
 *
 * An object may import memcpy, memmove and memset, nothing else.  Objects come
 * from our compiler or from a file that claims so: everything is checked
 * before it is used, and what is odd ends in a status. */
#include "xpu_elf.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_BYTES ((size_t)1 << 30)
#define MOST_ALIGN 4096u
#define STUB_BYTES 16u

enum { CODE, RODATA, DATA, NPART };
static const char *const import_name[] = {"memcpy", "memmove", "memset"};
#define NIMPORT SD_COUNTOF(import_name)

typedef struct {
    int part;    /* -1: not loaded */
    size_t at;   /* offset in the mapping */
} place;

typedef struct {
    const uint8_t *data;
    size_t bytes;
    int number;
    const Elf64_Shdr *section; /* aligned copy */
    int nsection;
    const Elf64_Sym *symbol;   /* aligned copy */
    size_t nsymbol;
    const char *names;         /* string table of the symbols; ends in NUL */
    size_t names_bytes;
    place *place;              /* per section */
    size_t *got;               /* per symbol: offset in the mapping, or 0 */
} object;

struct xpu_code {
    uint8_t *base;
    size_t bytes;
    size_t part_at[NPART + 1];
};

typedef struct {
    const thunk_program *program;
    object *obj;
    int nobj;
    size_t end[NPART];  /* grows while sections are placed */
    size_t stubs;       /* offset in the mapping */
    xpu_code *code;
} loader;

static sd_status bad(const object *o, const char *what)
{
    return sd_error(SD_DATA_LOSS, "object %d (%zu bytes): %s", o->number,
                    o->bytes, what);
}

static bool is_inside(const object *o, uint64_t at, uint64_t n)
{
    return at <= o->bytes && n <= o->bytes - at;
}

/* ---- reading ---- */

/* The bytes need not be aligned: tables are copied. */
static sd_status copy_table(const object *o, uint64_t at, uint64_t n,
                            size_t each, const void **out)
{
    void *p;

    if (n > o->bytes / each || !is_inside(o, at, n * each))
        return bad(o, "a table beyond the end");
    if (!(p = malloc(n * each + 1)))
        return sd_no_memory(n * each);
    memcpy(p, o->data + at, n * each);
    *out = p;
    return NULL;
}

static sd_status read_symbols(object *o, const Elf64_Shdr *s)
{
    const Elf64_Shdr *names;
    const void *table;
    sd_status st;

    if (o->symbol)
        return bad(o, "two symbol tables");
    if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_size % sizeof(Elf64_Sym) ||
        s->sh_link >= (uint64_t)o->nsection)
        return bad(o, "a strange symbol table");
    names = &o->section[s->sh_link];
    if (names->sh_type != SHT_STRTAB || !names->sh_size ||
        !is_inside(o, names->sh_offset, names->sh_size) ||
        o->data[names->sh_offset + names->sh_size - 1])
        return bad(o, "a strange string table");
    o->nsymbol = s->sh_size / sizeof(Elf64_Sym);
    if ((st = copy_table(o, s->sh_offset, o->nsymbol, sizeof(Elf64_Sym),
                         &table)))
        return st;
    o->symbol = table;
    o->names = (const char *)o->data + names->sh_offset;
    o->names_bytes = names->sh_size;
    return NULL;
}

static sd_status read_object(object *o)
{
    Elf64_Ehdr h;
    const void *table;
    sd_status st;

    if (o->bytes < sizeof h)
        return bad(o, "too short for an ELF header");
    memcpy(&h, o->data, sizeof h);
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) ||
        h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_type != ET_REL ||
        h.e_machine != EM_X86_64)
        return bad(o, "no relocatable ELF object for x86-64");
    if (h.e_shentsize != sizeof(Elf64_Shdr) || !h.e_shnum)
        return bad(o, "no section table");
    if ((st = copy_table(o, h.e_shoff, h.e_shnum, sizeof(Elf64_Shdr), &table)))
        return st;
    o->section = table;
    o->nsection = h.e_shnum;
    if (!(o->place = calloc((size_t)o->nsection, sizeof *o->place)))
        return sd_no_memory((size_t)o->nsection * sizeof *o->place);
    for (int i = 0; i < o->nsection; i++)
        if (o->section[i].sh_type == SHT_SYMTAB &&
            (st = read_symbols(o, &o->section[i])))
            return st;
    if (o->nsymbol && !(o->got = calloc(o->nsymbol, sizeof *o->got)))
        return sd_no_memory(o->nsymbol * sizeof *o->got);
    return NULL;
}

/* ---- placing ---- */

static size_t place_bytes(loader *l, int part, size_t bytes, size_t align)
{
    size_t at = (l->end[part] + align - 1) & ~(align - 1);

    l->end[part] = at + bytes;
    return at;
}

/* What a section is for: -1 leaves it out. */
static int part_of(const Elf64_Shdr *s)
{
    if (!(s->sh_flags & SHF_ALLOC) || s->sh_type == SHT_X86_64_UNWIND)
        return -1;
    if (s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOBITS)
        return -1;
    if (s->sh_flags & SHF_EXECINSTR)
        return CODE;
    return s->sh_flags & SHF_WRITE ? DATA : RODATA;
}

static bool is_named(const object *o, const Elf64_Shdr *s, const char *want)
{
    Elf64_Ehdr h;
    const Elf64_Shdr *names;
    size_t n = strlen(want);

    memcpy(&h, o->data, sizeof h);
    if (h.e_shstrndx >= o->nsection)
        return false;
    names = &o->section[h.e_shstrndx];
    return is_inside(o, names->sh_offset, names->sh_size) &&
           s->sh_name < names->sh_size && n <= names->sh_size - s->sh_name &&
           !memcmp(o->data + names->sh_offset + s->sh_name, want, n);
}

static sd_status place_sections(loader *l, object *o)
{
    for (int i = 0; i < o->nsection; i++) {
        const Elf64_Shdr *s = &o->section[i];
        size_t align = s->sh_addralign ? s->sh_addralign : 1;
        int part = part_of(s);

        /* .eh_frame may also be plain data: nothing here unwinds. */
        if (part >= 0 && is_named(o, s, ".eh_frame"))
            part = -1;
        o->place[i].part = part;
        if (part < 0)
            continue;
        if (s->sh_flags & SHF_TLS)
            return bad(o, "thread-local data");
        if (align & (align - 1) || align > MOST_ALIGN)
            return bad(o, "a strange alignment");
        if (s->sh_size > MOST_BYTES || l->end[part] > MOST_BYTES)
            return bad(o, "sections too large");
        if (s->sh_type == SHT_PROGBITS &&
            !is_inside(o, s->sh_offset, s->sh_size))
            return bad(o, "a section beyond the end");
        /* Written by relocation only: read-only once that is done. */
        if (part == DATA && is_named(o, s, ".data.rel.ro"))
            o->place[i].part = part = RODATA;
        o->place[i].at = place_bytes(l, part, s->sh_size, align);
    }
    return NULL;
}

/* An address table entry for each symbol that some relocation reads so. */
static void place_got(loader *l, object *o, const Elf64_Rela *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t sym = ELF64_R_SYM(r[i].r_info);

        switch (ELF64_R_TYPE(r[i].r_info)) {
        case R_X86_64_GOTPCREL:
        case R_X86_64_GOTPCRELX:
        case R_X86_64_REX_GOTPCRELX:
            if (sym < o->nsymbol && !o->got[sym])
                o->got[sym] = place_bytes(l, RODATA, 8, 8) + 1;
        }
    }
}

/* ---- relocating ---- */

static sd_status import(const loader *l, const object *o, const Elf64_Sym *s,
                        uint64_t *out)
{
    const char *name;

    if (s->st_name >= o->names_bytes)
        return bad(o, "a symbol's name beyond the string table");
    name = o->names + s->st_name;
    for (size_t i = 0; i < NIMPORT; i++)
        if (!strcmp(name, import_name[i])) {
            *out =
                (uint64_t)(uintptr_t)l->code->base + l->stubs + i * STUB_BYTES;
            return NULL;
        }
    return sd_error(SD_DATA_LOSS,
                    "object %d wants the symbol \"%.200s\": only memcpy, "
                    "memmove and memset are given",
                    o->number, name);
}

static sd_status symbol_address(const loader *l, const object *o, uint64_t sym,
                                uint64_t *out)
{
    const Elf64_Sym *s;

    if (sym >= o->nsymbol)
        return bad(o, "a relocation of a symbol that is not there");
    s = &o->symbol[sym];
    if (s->st_shndx == SHN_UNDEF)
        return import(l, o, s, out);
    if (s->st_shndx >= o->nsection || o->place[s->st_shndx].part < 0)
        return bad(o, "a symbol in a section that is not loaded");
    if (s->st_value > o->section[s->st_shndx].sh_size)
        return bad(o, "a symbol beyond its section");
    *out = (uint64_t)(uintptr_t)l->code->base + o->place[s->st_shndx].at +
           s->st_value;
    return NULL;
}

/* Writes value at `at`, which has `room` bytes left in its section. */
static sd_status patch(const object *o, uint8_t *at, uint64_t room,
                       uint32_t type, int64_t value)
{
    uint32_t low = (uint32_t)value;
    bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
    bool fits = type == R_X86_64_32 ? value >= 0 && value <= UINT32_MAX
                                    : value >= INT32_MIN && value <= INT32_MAX;

    if (room < (wide ? 8 : 4))
        return bad(o, "a relocation beyond its section");
    if (wide) {
        memcpy(at, &value, 8);
        return NULL;
    }
    if (!fits)
        return sd_error(SD_DATA_LOSS,
                        "object %d: relocation of type %u does not fit in 32 "
                        "bits",
                        o->number, type);
    memcpy(at, &low, 4);
    return NULL;
}

static sd_status relocate_one(const loader *l, const object *o, int section,
                              const Elf64_Rela *r)
{
    uint64_t size = o->section[section].sh_size, s;
    uint64_t sym = ELF64_R_SYM(r->r_info);
    uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info);
    uint8_t *at;
    sd_status st;

    if (type == R_X86_64_NONE)
        return NULL;
    if (r->r_offset >= size)
        return bad(o, "a relocation beyond its section");
    if ((st = symbol_address(l, o, sym, &s)))
        return st;
    at = l->code->base + o->place[section].at + r->r_offset;
    switch (type) {
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        memcpy(l->code->base + o->got[sym], &s, 8);
        s = (uint64_t)(uintptr_t)l->code->base + o->got[sym];
        s -= (uint64_t)(uintptr_t)at;
        break;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_PC64:
        s -= (uint64_t)(uintptr_t)at;
        break;
    case R_X86_64_64:
    case R_X86_64_32:
    case R_X86_64_32S:
        break;
    default:
        return sd_error(SD_UNIMPLEMENTED, "object %d: relocation of type %u",
                        o->number, type);
    }
    return patch(o, at, size - r->r_offset, type,
                 (int64_t)(s + (uint64_t)r->r_addend));
}

typedef sd_status (*rela_fn)(loader *l, object *o, int section,
                             const Elf64_Rela *r, size_t n);

static sd_status want_got(loader *l, object *o, int section,
                          const Elf64_Rela *r, size_t n)
{
    (void)section;
    place_got(l, o, r, n);
    return NULL;
}

static sd_status relocate(loader *l, object *o, int section,
                          const Elf64_Rela *r, size_t n)
{
    sd_status st = NULL;

    for (size_t i = 0; i < n && !st; i++)
        st = relocate_one(l, o, section, &r[i]);
    return st;
}

/* Calls fn for the relocations of each section that is loaded. */
static sd_status each_rela(loader *l, object *o, rela_fn fn)
{
    for (int i = 0; i < o->nsection; i++) {
        const Elf64_Shdr *s = &o->section[i];
        const void *table;
        sd_status st;

        if (s->sh_type == SHT_REL)
            return bad(o, "relocations without addends");
        if (s->sh_type != SHT_RELA)
            continue;
        if (s->sh_info >= (uint64_t)o->nsection)
            return bad(o, "relocations of no section");
        if (o->place[s->sh_info].part < 0)
            continue;
        if (s->sh_entsize != sizeof(Elf64_Rela) ||
            o->section[s->sh_info].sh_type == SHT_NOBITS)
            return bad(o, "a strange relocation table");
        if ((st = copy_table(o, s->sh_offset, s->sh_size / sizeof(Elf64_Rela),
                             sizeof(Elf64_Rela), &table)))
            return st;
        st = fn(l, o, (int)s->sh_info, table, s->sh_size / sizeof(Elf64_Rela));
        free((void *)table);
        if (st)
            return st;
    }
    return NULL;
}

/* ---- the whole ---- */

static void write_stubs(const loader *l)
{
    void *const target[NIMPORT] = {(void *)memcpy, (void *)memmove,
                                   (void *)memset};
    uint8_t *at = l->code->base + l->stubs;

    for (size_t i = 0; i < NIMPORT; i++, at += STUB_BYTES) {
        static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0};

        memcpy(at, jump, sizeof jump); /* jmp *0(%rip) */
        memcpy(at + sizeof jump, &target[i], 8);
    }
}

/* Sections were placed within their part; now parts get their pages. */
static sd_status map(loader *l)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), at = 0;
    xpu_code *c = l->code;

    for (int i = 0; i < NPART; i++) {
        c->part_at[i] = at;
        at += (l->end[i] + page - 1) & ~(page - 1);
    }
    c->part_at[NPART] = at;
    c->bytes = at;
    c->base = mmap(NULL, at, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c->base == MAP_FAILED) {
        c->base = NULL;
        return sd_error(SD_EXHAUSTED, "mapping %zu bytes of code: %s", at,
                        strerror(errno));
    }
    l->stubs += c->part_at[CODE];
    for (int k = 0; k < l->nobj; k++) {
        object *o = &l->obj[k];

        for (int i = 0; i < o->nsection; i++) {
            const Elf64_Shdr *s = &o->section[i];

            if (o->place[i].part < 0)
                continue;
            o->place[i].at += c->part_at[o->place[i].part];
            if (s->sh_type == SHT_PROGBITS && s->sh_size)
                memcpy(c->base + o->place[i].at, o->data + s->sh_offset,
                       s->sh_size);
        }
        for (size_t i = 0; i < o->nsymbol; i++)
            if (o->got[i]) /* was offset + 1, so that 0 says none */
                o->got[i] += c->part_at[RODATA] - 1;
    }
    return NULL;
}

static sd_status protect(const xpu_code *c)
{
    static const int prot[NPART] = {PROT_READ | PROT_EXEC, PROT_READ,
                                    PROT_READ | PROT_WRITE};

    for (int i = 0; i < NPART; i++) {
        size_t bytes = c->part_at[i + 1] - c->part_at[i];

        if (!bytes || !mprotect(c->base + c->part_at[i], bytes, prot[i]))
            continue;
        return sd_error(errno == ENOMEM ? SD_EXHAUSTED : SD_PERMISSION,
                        "mprotect of %zu bytes of code: %s; code that was just "
                        "made must be allowed to run (SELinux: execmem)",
                        bytes, strerror(errno));
    }
    return NULL;
}

static sd_status find_entry(const loader *l, const thunk_kernel *k, void **out)
{
    const object *o = &l->obj[k->binary];
    uint64_t at;
    sd_status st;

    for (size_t i = 0; i < o->nsymbol; i++) {
        const Elf64_Sym *s = &o->symbol[i];

        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
            s->st_name >= o->names_bytes ||
            strcmp(o->names + s->st_name, k->symbol))
            continue;
        if ((st = symbol_address(l, o, i, &at)))
            return st;
        if (o->place[s->st_shndx].part != CODE ||
            s->st_value >= o->section[s->st_shndx].sh_size)
            return bad(o, "an entry point outside the code");
        *out = (void *)(uintptr_t)at;
        return NULL;
    }
    return sd_error(SD_DATA_LOSS, "object %d has no function %s", o->number,
                    k->symbol);
}

static FILE *open_perf_map(char *path, size_t size)
{
    snprintf(path, size, "/tmp/perf-%d.map", (int)getpid());
    return fopen(path, "ae");
}

bool xpu_perf_map_opens(void)
{
    char path[64];
    FILE *f = open_perf_map(path, sizeof path);

    if (f)
        fclose(f);
    else
        sd_log(SD_LOG_WARN, "SUNDOG_PERF_MAP: no map is written: %s: %s", path,
               strerror(errno));
    return f != NULL;
}

/* The format of perf's map: start, size, name, in hexadecimal. */
static void write_perf_map(const loader *l)
{
    char path[64];
    FILE *f = open_perf_map(path, sizeof path);

    if (!f)
        return;
    for (int k = 0; k < l->nobj; k++) {
        const object *o = &l->obj[k];

        for (size_t i = 0; i < o->nsymbol; i++) {
            const Elf64_Sym *s = &o->symbol[i];
            uint64_t at;
            sd_status st;

            if (ELF64_ST_TYPE(s->st_info) != STT_FUNC ||
                s->st_name >= o->names_bytes)
                continue;
            if (!(st = symbol_address(l, o, i, &at)))
                fprintf(f, "%" PRIx64 " %" PRIx64 " %s\n", at,
                        (uint64_t)s->st_size, o->names + s->st_name);
            sd_status_free(st);
        }
    }
    fclose(f);
}

static sd_status read_all(loader *l)
{
    sd_status st;

    for (int i = 0; i < l->nobj; i++) {
        object *o = &l->obj[i];
        const thunk_binary *b = &l->program->binary[i];

        if (b->kind != THUNK_BIN_X86)
            return sd_error(SD_PRECONDITION, "binary %d is not for x86-64", i);
        o->data = b->data;
        o->bytes = b->bytes;
        o->number = i;
        if ((st = read_object(o)) || (st = place_sections(l, o)))
            return st;
    }
    for (int i = 0; i < l->nobj; i++)
        if ((st = each_rela(l, &l->obj[i], want_got)))
            return st;
    return NULL;
}

static sd_status link_all(loader *l, void **fn)
{
    sd_status st;

    l->stubs = place_bytes(l, CODE, NIMPORT * STUB_BYTES, STUB_BYTES);
    if ((st = map(l)))
        return st;
    write_stubs(l);
    for (int i = 0; i < l->nobj; i++)
        if ((st = each_rela(l, &l->obj[i], relocate)))
            return st;
    for (int i = 0; i < l->program->nkernel; i++)
        if ((st = find_entry(l, &l->program->kernel[i], &fn[i])))
            return st;
    return protect(l->code);
}

static void loader_finish(loader *l)
{
    for (int i = 0; i < l->nobj; i++) {
        object *o = &l->obj[i];

        free((void *)o->section);
        free((void *)o->symbol);
        free(o->place);
        free(o->got);
    }
    free(l->obj);
}

sd_status xpu_elf_load(const thunk_program *p, bool perf_map, xpu_code **out,
                       void **fn)
{
    size_t nobj = (size_t)p->nbinary;
    loader l = {.program = p,
                .nobj = p->nbinary,
                .obj = calloc(nobj + 1, sizeof *l.obj),
                .code = calloc(1, sizeof *l.code)};
    sd_status st = NULL;

    if (!l.obj || !l.code) {
        l.nobj = 0;
        st = sd_no_memory(nobj * sizeof *l.obj);
    }
    if (!st && !(st = read_all(&l)) && !(st = link_all(&l, fn))) {
        if (perf_map)
            write_perf_map(&l);
        *out = l.code;
    } else {
        xpu_elf_unload(l.code);
    }
    loader_finish(&l);
    return st;
}

void xpu_elf_unload(xpu_code *c)
{
    if (!c)
        return;
    if (c->base)
        munmap(c->base, c->bytes);
    free(c);
}
