/* devlib_split: the device library for one target, as one bitcode blob a
 * function, and one of machine code where the target names a processor.
 *
 *   devlib_split OUT.c OUT.bin NAME TRIPLE CPU a.bc b.bc -w c.bc
 *
 * Every function of the bitcode files is cut out, given TRIPLE, the C calling
 * convention and only those attributes that do not bind it to a machine, and
 * appended to OUT.bin; OUT.c holds that file and a sorted table, devlib_NAME.
 * A function that calls another, or needs data of the module, stops the build:
 * what is linked into a kernel must vanish when inlined.  One that takes no
 * pointer touches no memory.
 *
 * Files after -w hold whole algorithms: they may use memory and call functions
 * of their own.  Where there is machine code it is all that is kept. */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devlib_code.h"

typedef struct {
    char *name;
    size_t at, bytes;
    size_t code_at, code_bytes;
} blob;
typedef struct {
    char *name, *layout;
    const char *triple, *cpu; /* cpu: empty where there is no code */
    LLVMTargetMachineRef tm;
    blob *blob;
    int n, cap;
} target;

_Noreturn static void die(const char *what, const char *name)
{
    fprintf(stderr, "devlib_split: %s: %s\n", name, what);
    exit(1);
}

/* As the emitters see it: vectors of the full width of the processor. */
static void open_target(target *t)
{
    LLVMTargetRef of;
    LLVMTargetDataRef data;
    char *message = NULL;

    if (LLVMGetTargetFromTriple(t->triple, &of, &message))
        die(message, t->triple);
    t->tm = LLVMCreateTargetMachine(
        of, t->triple, t->cpu, *t->cpu ? "-prefer-256-bit" : "",
        LLVMCodeGenLevelAggressive, LLVMRelocPIC, LLVMCodeModelSmall);
    data = LLVMCreateTargetDataLayout(t->tm);
    t->layout = LLVMCopyStringRepOfTargetData(data);
    LLVMDisposeTargetData(data);
}

static void drop_metadata(LLVMValueRef i)
{
    size_t n;
    LLVMValueMetadataEntry *md =
        LLVMInstructionGetAllMetadataOtherThanDebugLoc(i, &n);

    for (size_t k = 0; k < n; k++)
        LLVMSetMetadata(i, LLVMValueMetadataEntriesGetKind(md, (unsigned)k),
                        NULL);
    LLVMDisposeValueMetadataEntries(md);
}

/* What inlining leaves of a pointer's `restrict`: nothing but metadata. */
static bool is_scope(LLVMValueRef i)
{
    static const char name[] = "llvm.experimental.noalias.scope.decl";
    LLVMValueRef fn = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;

    return fn && !strcmp(LLVMGetValueName(fn), name);
}

/* Without its metadata, which names the compiler and its options: printed,
 * cut where that begins, and read again. */
static LLVMModuleRef read_module(const char *path)
{
    LLVMContextRef cx = LLVMContextCreate(); /* kept until the end */
    LLVMMemoryBufferRef mem;
    LLVMModuleRef m;
    char *message = NULL, *text, *end;

    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &mem, &message))
        die(message, path);
    if (LLVMParseBitcodeInContext2(cx, mem, &m))
        die("no bitcode", path);
    LLVMDisposeMemoryBuffer(mem);
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b;
             b = LLVMGetNextBasicBlock(b))
            for (LLVMValueRef i = LLVMGetFirstInstruction(b), next; i;
                 i = next) {
                next = LLVMGetNextInstruction(i);
                if (is_scope(i))
                    LLVMInstructionEraseFromParent(i);
                else
                    drop_metadata(i);
            }
    text = LLVMPrintModuleToString(m);
    LLVMDisposeModule(m);
    end = strstr(text, "\n!llvm.");
    if (end)
        end[1] = 0;
    mem = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), path);
    LLVMDisposeMessage(text);
    if (LLVMParseIRInContext(cx, mem, &m, &message)) /* takes mem */
        die(message, path);
    return m;
}

static int has_pointer(LLVMValueRef fn)
{
    for (LLVMValueRef p = LLVMGetFirstParam(fn); p; p = LLVMGetNextParam(p))
        if (LLVMGetTypeKind(LLVMTypeOf(p)) == LLVMPointerTypeKind)
            return 1;
    return 0;
}

/* The compiler's strings name its processor, and a kernel has its own; all: the
 * other attributes, too. */
static void drop_attributes(LLVMValueRef fn, int all)
{
    const LLVMAttributeIndex at = LLVMAttributeFunctionIndex;
    unsigned n = LLVMGetAttributeCountAtIndex(fn, at), len;
    LLVMAttributeRef old[64];

    if (n > 64)
        die("too many attributes", LLVMGetValueName(fn));
    LLVMGetAttributesAtIndex(fn, at, old);
    for (unsigned i = 0; i < n; i++)
        if (LLVMIsStringAttribute(old[i])) {
            const char *k = LLVMGetStringAttributeKind(old[i], &len);

            LLVMRemoveStringAttributeAtIndex(fn, at, k, len);
        } else if (all) {
            LLVMRemoveEnumAttributeAtIndex(fn, at,
                                           LLVMGetEnumAttributeKind(old[i]));
        }
}

static void set_attributes(LLVMValueRef fn)
{
    static const char *const keep[] = {"alwaysinline", "nounwind", "willreturn",
                                       "nofree", "nosync"};
    LLVMContextRef cx = LLVMGetModuleContext(LLVMGetGlobalParent(fn));
    const LLVMAttributeIndex at = LLVMAttributeFunctionIndex;
    unsigned kind;

    drop_attributes(fn, 1);
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        kind = LLVMGetEnumAttributeKindForName(keep[i], strlen(keep[i]));
        LLVMAddAttributeAtIndex(fn, at, LLVMCreateEnumAttribute(cx, kind, 0));
    }
    kind = LLVMGetEnumAttributeKindForName("memory", 6);
    if (!has_pointer(fn))
        LLVMAddAttributeAtIndex(fn, at, LLVMCreateEnumAttribute(cx, kind, 0));
}

/* Only intrinsics and instructions written as such may be called, and no memory
 * touched but a pointer's. */
static void check_body(LLVMValueRef fn)
{
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(fn); b;
         b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i;
             i = LLVMGetNextInstruction(i)) {
            LLVMOpcode op = LLVMGetInstructionOpcode(i);

            if (op == LLVMCall && !LLVMIsAInlineAsm(LLVMGetCalledValue(i)) &&
                !LLVMGetIntrinsicID(LLVMGetCalledValue(i)))
                die("calls a function that was not inlined",
                    LLVMGetValueName(fn));
            if ((op == LLVMLoad || op == LLVMStore || op == LLVMAlloca) &&
                !has_pointer(fn))
                die("keeps something in memory", LLVMGetValueName(fn));
        }
}

/* Intrinsics that nobody calls any more. */
static void drop_declarations(LLVMModuleRef m, const char *name)
{
    LLVMValueRef next, g = LLVMGetFirstGlobal(m);

    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn; fn = next) {
        next = LLVMGetNextFunction(fn);
        if (LLVMIsDeclaration(fn) && !LLVMGetFirstUse(fn))
            LLVMDeleteFunction(fn);
    }
    if (g)
        die("needs data of its module", name);
}

static size_t append(FILE *bin, const void *p, size_t bytes)
{
    size_t at;

    while (ftell(bin) % DEVLIB_CODE_ALIGN)
        fputc(0, bin);
    at = (size_t)ftell(bin);
    if (fwrite(p, 1, bytes, bin) != bytes)
        die("cannot write", "output");
    return at;
}

static blob *new_blob(target *t, const char *name)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->blob = realloc(t->blob, (size_t)t->cap * sizeof *t->blob);
        if (!t->blob)
            die("out of memory", name);
    }
    t->blob[t->n] = (blob){.name = strdup(name)};
    return &t->blob[t->n++];
}

static void set_target(const target *t, LLVMModuleRef m, const char *name)
{
    LLVMSetTarget(m, t->triple);
    LLVMSetDataLayout(m, t->layout);
    LLVMSetSourceFileName(m, name, strlen(name));
    LLVMSetModuleIdentifier(m, name, strlen(name));
}

static void put_bitcode(blob *b, LLVMModuleRef m, FILE *bin)
{
    LLVMMemoryBufferRef mem = LLVMWriteBitcodeToMemoryBuffer(m);

    b->bytes = LLVMGetBufferSize(mem);
    b->at = append(bin, LLVMGetBufferStart(mem), b->bytes);
    LLVMDisposeMemoryBuffer(mem);
}

static void put_code(const target *t, blob *b, LLVMModuleRef m,
                     const char *name, FILE *bin)
{
    uint8_t *code = devlib_code(t->tm, m, name, &b->code_bytes);

    b->code_at = append(bin, code, b->code_bytes);
    free(code);
}

static void add_blob(target *t, LLVMModuleRef m, const char *name, FILE *bin)
{
    LLVMValueRef fn = LLVMGetNamedFunction(m, name);
    char *message = NULL;
    blob *b = new_blob(t, name);

    set_target(t, m, name);
    drop_declarations(m, name);
    LLVMSetFunctionCallConv(fn, LLVMCCallConv);
    LLVMSetUnnamedAddress(fn, LLVMGlobalUnnamedAddr);
    set_attributes(fn);
    check_body(fn);
    if (LLVMVerifyModule(m, LLVMReturnStatusAction, &message))
        die(message, name);
    LLVMDisposeMessage(message);
    put_bitcode(b, m, bin);
    if (*t->cpu)
        put_code(t, b, m, name, bin);
}

static void add_whole(target *t, LLVMModuleRef m, const char *name, FILE *bin)
{
    blob *b = new_blob(t, name);

    set_target(t, m, name);
    if (*t->cpu) {
        put_code(t, b, m, name, bin);
        return;
    }
    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn;
         fn = LLVMGetNextFunction(fn))
        drop_attributes(fn, 0);
    if (LLVMGetFirstGlobal(m))
        die("needs data of its module", name);
    put_bitcode(b, m, bin);
}

/* ---- cutting: a module in two, and those in two, down to one function ---- */

static bool is_among(const char *name, char *const *of, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(of[i], name))
            return true;
    return false;
}

/* The functions of these names alone. */
static void keep_only(LLVMModuleRef m, char *const *name, int n)
{
    LLVMValueRef next;

    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn; fn = next) {
        next = LLVMGetNextFunction(fn);
        if (!LLVMIsDeclaration(fn) && !is_among(LLVMGetValueName(fn), name, n))
            LLVMDeleteFunction(fn);
    }
}

/* They and those that they call, which nobody else sees. */
static void keep_reachable(LLVMModuleRef m, char *const *name, int n)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    LLVMErrorRef err;

    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn;
         fn = LLVMGetNextFunction(fn))
        if (!LLVMIsDeclaration(fn) && !is_among(LLVMGetValueName(fn), name, n))
            LLVMSetLinkage(fn, LLVMInternalLinkage);
    err = LLVMRunPasses(m, "globaldce", NULL, o);
    if (err)
        die(LLVMGetErrorMessage(err), *name);
    LLVMDisposePassBuilderOptions(o);
}

/* A copy of the whole module for each of its n functions would take n times as
 * long as one; this way it is log n times.  Takes m. */
static void cut(target *t, LLVMModuleRef m, char *const *name, int n,
                bool whole, FILE *bin)
{
    (whole ? keep_reachable : keep_only)(m, name, n);
    if (n > 1) {
        cut(t, LLVMCloneModule(m), name, n / 2, whole, bin);
        cut(t, m, name + n / 2, n - n / 2, whole, bin);
        return;
    }
    (whole ? add_whole : add_blob)(t, m, *name, bin);
    LLVMDisposeModule(m);
}

static void add_file(target *t, const char *path, bool whole, FILE *bin)
{
    enum { MOST = 4096 };
    LLVMModuleRef m = read_module(path);
    char *name[MOST];
    int n = 0;

    for (LLVMValueRef fn = LLVMGetFirstFunction(m); fn;
         fn = LLVMGetNextFunction(fn)) {
        if (LLVMIsDeclaration(fn) || LLVMGetLinkage(fn) != LLVMExternalLinkage)
            continue;
        if (n == MOST)
            die("too many functions", path);
        name[n++] = strdup(LLVMGetValueName(fn));
    }
    if (n == 0)
        die("no function", path);
    cut(t, m, name, n, whole, bin);
    for (int i = 0; i < n; i++)
        free(name[i]);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const blob *)a)->name, ((const blob *)b)->name);
}

static void write_c(const char *path, const char *bin, const target *t)
{
    FILE *c = fopen(path, "w");

    if (!c)
        die("cannot write", path);
    fprintf(c,
            "/* made by devlib_split */\n#include \"devlib_table.h\"\n"
            "__asm__(\".pushsection .rodata\\n.balign 64\\n"
            ".local devlib_blobs\\n"
            "devlib_blobs: .incbin \\\"%s\\\"\\n.popsection\");\n"
            "extern const uint8_t devlib_blobs[]"
            " __attribute__((visibility(\"hidden\")));\n"
            "static const devlib_function table[] = {\n",
            bin);
    for (int i = 0; i < t->n; i++)
        fprintf(c,
                "    { \"%s\", devlib_blobs + %zu, %zu, "
                "devlib_blobs + %zu, %zu },\n",
                t->blob[i].name, t->blob[i].at, t->blob[i].bytes,
                t->blob[i].code_at, t->blob[i].code_bytes);
    fprintf(c, "};\nconst devlib_table devlib_%s = { table, %d };\n", t->name,
            t->n);
    if (fclose(c))
        die("cannot write", path);
}

int main(int argc, char **argv)
{
    target t = {0};
    char *full;
    FILE *bin;
    bool whole = false;

    if (argc < 7)
        die("usage: OUT.c OUT.bin NAME TRIPLE CPU FILES...", argv[0]);
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeX86AsmPrinter();
    bin = fopen(argv[2], "wb");
    if (!bin)
        die("cannot write", argv[2]);
    t.name = argv[3];
    t.triple = argv[4];
    t.cpu = argv[5];
    open_target(&t);
    for (int i = 6; i < argc; i++)
        if (!strcmp(argv[i], "-w"))
            whole = true;
        else
            add_file(&t, argv[i], whole, bin);
    if (fclose(bin) || !(full = realpath(argv[2], NULL)))
        die("cannot write", argv[2]);
    qsort(t.blob, (size_t)t.n, sizeof *t.blob, by_name);
    write_c(argv[1], full, &t);
    return 0;
}
