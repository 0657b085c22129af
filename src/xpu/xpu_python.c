/* Libraries that wheels bring lie in Python's environments, where no loader
 * looks. */
#include "xpu_python.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bool beside; /* packages, or in the environment's lib */
    const char *pattern;
    int left; /* of the files that are passed over */
    char *out;
    size_t size;
    char last[4096]; /* folder of packages that was looked at last */
} search;

/* `packages` ends in .../lib/python3.11/site-packages. */
static bool look(search *s, const char *packages)
{
    char path[8192];
    glob_t found;
    bool hit = false;

    if (!strcmp(s->last, packages))
        return false;
    snprintf(s->last, sizeof s->last, "%s", packages);
    snprintf(path, sizeof path, "%s/%s%s", packages, s->beside ? "" : "../../",
             s->pattern);
    if (!glob(path, 0, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc && !hit; i++)
            if (s->left-- == 0)
                hit = snprintf(s->out, s->size, "%s", found.gl_pathv[i]) <
                      (int)s->size;
    globfree(&found);
    return hit;
}

/* Of .../sundog/libsundog.so: the folder that the package is in. */
static bool look_beside_us(search *s)
{
    char path[4096];
    Dl_info us;

    if (!dladdr((void *)(uintptr_t)xpu_python_file, &us) || !us.dli_fname ||
        snprintf(path, sizeof path, "%s", us.dli_fname) >= (int)sizeof path)
        return false;
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(path, '/');

        if (!slash)
            return false;
        *slash = 0;
    }
    return look(s, path);
}

static int look_beside_loaded(struct dl_phdr_info *object, size_t size,
                              void *ctx)
{
    const char *name = object->dlpi_name, *end;
    char path[4096];

    (void)size;
    if (!name || !(end = strstr(name, "-packages/")) ||
        snprintf(path, sizeof path, "%.*s-packages", (int)(end - name), name) >=
            (int)sizeof path)
        return 0;
    return look(ctx, path);
}

static bool look_in_active(search *s)
{
    const char *env = getenv("VIRTUAL_ENV");
    char path[4096];

    return env && *env &&
           snprintf(path, sizeof path, "%s/lib/python3*/site-packages", env) <
               (int)sizeof path &&
           look(s, path);
}

bool xpu_python_file(bool beside, const char *pattern, int n, char *out,
                     size_t size)
{
    search s = {beside, pattern, n, out, size, ""};

    return look_beside_us(&s) || dl_iterate_phdr(look_beside_loaded, &s) ||
           look_in_active(&s);
}

void *xpu_python_open(bool beside, const char *pattern)
{
    char path[8192];
    void *h = NULL;

    for (int i = 0;
         !h && xpu_python_file(beside, pattern, i, path, sizeof path); i++)
        h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return h;
}
