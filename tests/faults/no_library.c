/* Preloaded, it makes libraries be missing that the machine has: dlopen of a
 * name in NO_LIBRARY (names with colons) fails as if there were no such file.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) void *dlopen(const char *name, int mode)
{
    void *(*real)(const char *, int) =
        (void *(*)(const char *, int))(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
    const char *all = getenv("NO_LIBRARY"), *at = all;
    const char *slash = name ? strrchr(name, '/') : NULL;
    const char *file = slash ? slash + 1 : name;
    size_t n = file ? strlen(file) : 0;
    char nowhere[PATH_MAX];

    while (n && at && (at = strstr(at, file))) {
        if ((at == all || at[-1] == ':') && (!at[n] || at[n] == ':')) {
            snprintf(nowhere, sizeof nowhere, "/nowhere/%s", file);
            return real(nowhere, mode);
        }
        at += n;
    }
    return real(name, mode);
}
