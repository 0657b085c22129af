/* The compiler is the one that the plugin uses, libsundog-compiler.so: so the
 * tool needs no LLVM of its own, and is small enough for the wheel. */
#include "sundog.h"

#include "interface.h"
#include "pjrt_compiler.h"

#include <limits.h>
#include <llvm/Config/llvm-config.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char tool_build[] = SUNDOG_INTERFACE ", LLVM " LLVM_VERSION_STRING;

/* Beside the tool, as in the wheel; else in the folder above, as in a build. */
void tool_library(const char *name, char *path, size_t size)
{
    ssize_t got = readlink("/proc/self/exe", path, size - 1);
    size_t n = got > 0 ? (size_t)got : 0;

    while (n > 0 && path[n - 1] != '/')
        n--;
    snprintf(path + n, size - n, "%s", name);
    if (access(path, F_OK) != 0)
        snprintf(path + n, size - n, "../%s", name);
}

sd_status tool_compiler(compile_fn *out)
{
    char path[PATH_MAX];

    tool_library("libsundog-compiler.so", path, sizeof path);
    return pjrt_compiler_open_at(path, "sundog", out);
}
