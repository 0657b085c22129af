/* The road to the compiler: libsundog-compiler.so, beside this library, opened
 * at the first compile.  It is never closed: LLVM does not survive that.  The
 * two share structs, so both must come from one build. */
#include "interface.h"
#include "pjrt.h"

#include <dlfcn.h>
#include <stdio.h>

static sd_status beside_us(char *path, size_t size)
{
    const char *slash;
    Dl_info info;

    if (!dladdr((void *)(uintptr_t)beside_us, &info) || !info.dli_fname)
        return sd_error(SD_INTERNAL, "the place of libsundog.so is not known");
    slash = strrchr(info.dli_fname, '/');
    if (snprintf(path, size, "%.*slibsundog-compiler.so",
                 slash ? (int)(slash - info.dli_fname) + 1 : 0,
                 info.dli_fname) >= (int)size)
        return sd_error(SD_INVALID, "the path of libsundog.so is too long");
    return NULL;
}

sd_status pjrt_compiler_open(compile_fn *out)
{
    char path[4096];
    const char *interface;
    sd_status st = beside_us(path, sizeof path);
    void *lib;

    if (st)
        return st;
    if (!(lib = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        return sd_error(SD_NOT_FOUND,
                        "the compiler cannot be opened: %s; "
                        "libsundog-compiler.so belongs beside libsundog.so and "
                        "needs LLVM 22 (Debian's package libllvm22); programs "
                        "that are compiled already still run",
                        dlerror());
    interface = dlsym(lib, "sundog_interface");
    *out = (compile_fn)(uintptr_t)dlsym(lib, "sundog_compile");
    if (!*out || !interface || strcmp(interface, SUNDOG_INTERFACE))
        return sd_error(SD_PRECONDITION,
                        "%s is of build %s, libsundog.so of build %s: install "
                        "both from one build",
                        path, interface ? interface : "unknown",
                        SUNDOG_INTERFACE);
    return NULL;
}
