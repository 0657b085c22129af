/* The compiler is the one that the plugin uses, libsundog-compiler.so: so the
 * tool needs no LLVM of its own, and is small enough for the wheel. */
#include "sundog.h"

#include "pjrt_compiler.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char library[] = "libsundog-compiler.so";

/* Beside the tool, as in the wheel; else in the folder above, as in a build. */
sd_status tool_compiler(compile_fn *out)
{
    char path[PATH_MAX + sizeof library + 8];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

    while (n > 0 && path[n - 1] != '/')
        n--;
    snprintf(path + SD_MAX(n, 0), sizeof library + 8, "%s", library);
    if (access(path, F_OK) != 0)
        snprintf(path + SD_MAX(n, 0), sizeof library + 8, "../%s", library);
    return pjrt_compiler_open_at(path, "sundog", out);
}
