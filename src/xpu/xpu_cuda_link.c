/* PTX to machine code by nvJitLink, where CUDA's toolkit or a package of it is
 * installed.  The driver's own compiler takes one module after the other,
 * whoever calls it; this one works on as many threads as call it: the 152
 * kernels of a UNet take the driver 3 s, and this one 0.24 s on 16 threads.
 * What it does not take is left to the driver, whose words users hear. */
#include "xpu_cuda_api.h"
#include "xpu_python.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { FROM_PTX = 2 };
#define OLDEST 12

/* ---- the library ---- */

/* Where the loader finds it, among Python's packages, in the toolkit. */
static void *open_version(int version)
{
    char name[64], path[4096];
    void *lib;

    snprintf(name, sizeof name, "libnvJitLink.so.%d", version);
    if ((lib = dlopen(name, RTLD_NOW | RTLD_LOCAL)))
        return lib;
    snprintf(path, sizeof path, "nvidia/cu%d/lib/%s", version, name);
    if ((lib = xpu_python_open(true, path)))
        return lib;
    snprintf(path, sizeof path, "nvidia/nvjitlink/lib/%s", name);
    if ((lib = xpu_python_open(true, path)))
        return lib;
    snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Some builds have the names alone, some with a version behind. */
static void *find(void *lib, const char *name, int version)
{
    void *at = dlsym(lib, name);
    char other[96];

    if (at)
        return at;
    snprintf(other, sizeof other, "__%s_%d_0", name, version);
    return dlsym(lib, other);
}

static bool take(xpu_cuda_linker *l, int version)
{
    void *lib = open_version(version);

    if (!lib)
        return false;
#define X(field, args) \
    if (!(l->field = \
              (int(*) args)(uintptr_t)find(lib, "nvJitLink" #field, version))) \
        return false;
    XPU_CUDA_LINKER(X)
#undef X
    return true;
}

/* Of the driver's generation at most: it takes no newer one's code. */
static bool is_there(xpu_cuda_driver *d)
{
    xpu_cuda_linker *l = &d->linker;
    bool found;

    pthread_mutex_lock(&l->lock);
    for (int v = d->version / 1000; !l->looked && v >= OLDEST; v--)
        if ((l->found = take(l, v)))
            break;
    if (!l->looked)
        sd_log(SD_LOG_DEBUG, "PTX is compiled by %s",
               l->found ? "nvJitLink" : "the driver");
    l->looked = true;
    found = l->found;
    pthread_mutex_unlock(&l->lock);
    return found;
}

/* ---- a module ---- */

/* The chip that the text names, where it is the card's: its last letter tells
 * of instructions that no other has. */
static void option_of(const char *text, int chip, char *out, size_t size)
{
    const char *at = strstr(text, ".target sm_");
    int named, n = 0;

    snprintf(out, size, "-arch=sm_%d", chip);
    if (at && sscanf(at, ".target sm_%d%n", &named, &n) == 1 && named == chip &&
        at[n] == 'a')
        snprintf(out, size, "-arch=sm_%da", chip);
}

static char *link_one(const xpu_cuda_linker *l, const char *option,
                      const char *text, size_t bytes)
{
    void *handle = NULL;
    char *out = NULL;
    size_t size = 0;

    if (l->Create(&handle, 1, &option))
        return NULL;
    if (!l->AddData(handle, FROM_PTX, text, bytes + 1, "kernels") &&
        !l->Complete(handle) && !l->GetLinkedCubinSize(handle, &size) && size &&
        (out = malloc(size)) && l->GetLinkedCubin(handle, out)) {
        free(out);
        out = NULL;
    }
    l->Destroy(&handle);
    return out;
}

/* ---- all of them ---- */

typedef struct {
    const xpu_cuda *v;
    char *const *text;
    const thunk_binary *binary;
    const thunk_binary **order;
    char **out;
} linking;

/* The longest text first: threads end together. */
static int by_length(const void *x, const void *y)
{
    const thunk_binary *a = *(const thunk_binary *const *)x;
    const thunk_binary *b = *(const thunk_binary *const *)y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (a > b) - (a < b);
}

static void link_module(void *ctx, int64_t at, int worker)
{
    const linking *k = ctx;
    int64_t i = k->order ? k->order[at] - k->binary : at;
    char option[32];

    (void)worker;
    if (!k->text[i])
        return;
    option_of(k->text[i], k->v->chip, option, sizeof option);
    k->out[i] =
        link_one(&k->v->driver->linker, option, k->text[i], k->binary[i].bytes);
}

/* NULL without memory: then they come as they lie. */
static const thunk_binary **longest_first(const thunk_program *p)
{
    size_t n = (size_t)p->nbinary;
    const thunk_binary **order = calloc(n ? n : 1, sizeof *order);

    if (!order)
        return NULL;
    for (size_t i = 0; i < n; i++)
        order[i] = &p->binary[i];
    qsort(order, n, sizeof *order, by_length);
    return order;
}

void xpu_cuda_link(xpu_cuda *v, const thunk_program *p, char *const *text,
                   char **out)
{
    linking k = {v, text, p->binary, NULL, out};
    sd_pool *pool;

    if (!is_there(v->driver))
        return;
    k.order = longest_first(p);
    if ((pool = xpu_client_pool(v->dev->client)))
        sd_pool_run(pool, p->nbinary, link_module, &k);
    else
        for (int i = 0; i < p->nbinary; i++)
            link_module(&k, i, 0);
    free(k.order);
}
