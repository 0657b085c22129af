/* The road to the compiler: libsundog-compiler.so, beside this library, opened
 * at the first compile.  It is never closed: LLVM does not survive that.  The
 * two share structs, so both must come from one build. */
#include "pjrt_compiler.h"

#include "interface.h"
#include "pjrt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Our own address is in some file, so dladdr finds it. */
static char *beside_us(void)
{
    Dl_info us = {.dli_fname = ""};
    const char *slash;
    char *path;

    dladdr((void *)(uintptr_t)beside_us, &us);
    slash = strrchr(us.dli_fname, '/');
    if (asprintf(&path, "%.*slibsundog-compiler.so",
                 slash ? (int)(slash - us.dli_fname) + 1 : 0, us.dli_fname) < 0)
        return NULL;
    return path;
}

static sd_status bind(void *lib, const char *path, const char *who,
                      compile_fn *out)
{
    const char *interface = dlsym(lib, "sundog_interface");
    compile_fn fn = (compile_fn)(uintptr_t)dlsym(lib, "sundog_compile");

    if (!fn || !interface || strcmp(interface, SUNDOG_INTERFACE))
        return sd_error(SD_PRECONDITION,
                        "%s is of build %s, %s of build %s: install "
                        "both from one build",
                        path, interface ? interface : "unknown", who,
                        SUNDOG_INTERFACE);
    *out = fn;
    return NULL;
}

/* Where LLVM is a library of its own, its symbols are to be looked for there
 * before what the process has: TensorFlow's framework exports another LLVM to
 * everybody.  The address sanitizer ends a process that asks for that. */
#if defined(__SANITIZE_ADDRESS__)
#define FIRST_OWN 0
#else
#define FIRST_OWN RTLD_DEEPBIND
#endif

sd_status pjrt_compiler_open_at(const char *path, const char *who,
                                compile_fn *out)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL | FIRST_OWN);

    if (lib)
        return bind(lib, path, who, out);
    return sd_error(SD_NOT_FOUND,
                    "the compiler cannot be opened: %s; "
                    "libsundog-compiler.so belongs beside libsundog.so; "
                    "only a developers' build needs LLVM 22 (Debian's "
                    "package libllvm22); programs that are compiled already "
                    "still run",
                    dlerror());
}

sd_status pjrt_compiler_open(compile_fn *out)
{
    char *path = beside_us();
    sd_status st = path ? pjrt_compiler_open_at(path, "libsundog.so", out)
                        : sd_no_memory(0);

    free(path);
    return st;
}
