/* Where libraries are: the loader's own places, and those of Python's wheels,
 * which no loader knows. */
#include "xpu_engine.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

bool xpu_above_us(char *out, size_t size, int n)
{
    Dl_info us;

    if (!dladdr((void *)(uintptr_t)xpu_engine_find, &us) || !us.dli_fname ||
        snprintf(out, size, "%s", us.dli_fname) >= (int)size)
        return false;
    for (int i = 0; i < n; i++) {
        char *slash = strrchr(out, '/');

        if (!slash)
            return false;
        *slash = 0;
    }
    return true;
}

/* The first file of that pattern that opens. */
static void *open_pattern(const char *pattern)
{
    void *h = NULL;
    glob_t found;

    if (!glob(pattern, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc && !h; i++)
            h = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    return h;
}

void *xpu_engine_find(const xpu_engine_row *row)
{
    bool package = strchr(row->file, '*') != NULL;
    const char *env = getenv("VIRTUAL_ENV");
    char place[4096], path[8192];
    void *h = package ? NULL : dlopen(row->file, RTLD_NOW | RTLD_LOCAL);

    if (!h && xpu_above_us(place, sizeof place, package ? 2 : 4)) {
        snprintf(path, sizeof path, "%s/%s", place, row->file);
        h = open_pattern(path);
    }
    if (!h && env && *env) {
        snprintf(path, sizeof path, "%s/lib/%s%s", env,
                 package ? "python3*/site-packages/" : "", row->file);
        h = open_pattern(path);
    }
    return h;
}
