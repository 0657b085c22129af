/* Finding oneDNN: libdnnl.so.2, opened at run time, its functions bound by
 * name.  It brings OpenMP with it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "xpu_onednn.h"

static bool bind(xpu_lib *l)
{
    bool ok = true;

#define X(name, params) \
    *(void **)&l->name = dlsym(l->handle, "dnnl_" #name); \
    ok &= l->name != NULL;
    DNNL_FUNCTIONS(X)
#undef X
    *(void **)&l->get_version = dlsym(l->handle, "dnnl_version");
    *(void **)&l->desc_size = dlsym(l->handle, "dnnl_memory_desc_get_size");
    *(void **)&l->query_md = dlsym(l->handle, "dnnl_primitive_desc_query_md");
    *(void **)&l->set_threads = dlsym(l->handle, "omp_set_num_threads");
    return ok && l->get_version && l->desc_size && l->query_md;
}

/* ---- an environment for the time of a call ----
 * setenv moves and frees the array that another thread's getenv may be reading.
 * Here readers meet either the old array or a new one, both whole and never
 * freed; another writer meanwhile wins. */

static char **lend(char *entry, size_t *at)
{
    char **old = environ, **all;
    size_t n = 0;

    while (old && old[n])
        n++;
    if (!(all = malloc((n + 2) * sizeof *all)))
        return NULL;
    if (n)
        memcpy(all, old, n * sizeof *all);
    all[n] = entry;
    all[n + 1] = NULL;
    *at = n;
    if (__atomic_compare_exchange_n(&environ, &old, all, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return all;
    free(all);
    return NULL;
}

/* The array stays: somebody may be in it. */
static void take_back(char **all, size_t at)
{
    if (all && __atomic_load_n(&environ, __ATOMIC_SEQ_CST) == all)
        __atomic_store_n(&all[at], NULL, __ATOMIC_SEQ_CST);
}

/* OpenMP's threads spin for a while after each call, on cores that our kernels
 * want; gcc's runtime reads how long when it is loaded. */
static void *open_library(const char *name)
{
    static char spin[] = "GOMP_SPINCOUNT=2000";
    void *loaded = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD), *h;
    char **lent = NULL;
    size_t at = 0;

    if (loaded)
        dlclose(loaded);
    else if (!getenv("GOMP_SPINCOUNT") && !getenv("OMP_WAIT_POLICY"))
        lent = lend(spin, &at);
    h = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    take_back(lent, at);
    return h;
}

void xpu_onednn_open(xpu_lib *l)
{
    const onednn_version *v;

    if (!(l->handle = open_library("libdnnl.so.2"))) {
        snprintf(l->version, sizeof l->version, "no libdnnl.so.2");
        return;
    }
    if (!bind(l)) {
        snprintf(l->version, sizeof l->version,
                 "a libdnnl.so.2 without its API");
    } else {
        bool ready =
            !l->engine_create(&l->engine, DNNL_IS_CPU, 0) &&
            !l->stream_create(&l->stream, l->engine, DNNL_STREAM_DEFAULT);

        v = l->get_version();
        snprintf(l->version, sizeof l->version, "onednn %d.%d.%d%s", v->major,
                 v->minor, v->patch, ready ? "" : " without an engine");
        if (ready)
            return;
        if (l->engine)
            l->engine_destroy(l->engine);
        l->engine = NULL;
    }
    dlclose(l->handle);
    l->handle = NULL;
}
