/* Opening oneDNN: its functions are bound by name.  It brings OpenMP with it.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "xpu_onednn.h"

void *onednn_symbol(const onednn *l, const char *name)
{
    return dlsym(l->handle, name);
}

static bool bind(onednn *l)
{
    bool ok = true;

#define X(name, params) \
    *(void **)&l->name = onednn_symbol(l, "dnnl_" #name); \
    ok &= l->name != NULL;
    DNNL_FUNCTIONS(X)
#undef X
    *(void **)&l->get_version = onednn_symbol(l, "dnnl_version");
    *(void **)&l->get_isa = onednn_symbol(l, "dnnl_get_effective_cpu_isa");
    *(void **)&l->desc_size = onednn_symbol(l, "dnnl_memory_desc_get_size");
    *(void **)&l->query_md = onednn_symbol(l, "dnnl_primitive_desc_query_md");
    *(void **)&l->set_threads = onednn_symbol(l, "omp_set_num_threads");
    *(void **)&l->parallel = onednn_symbol(l, "GOMP_parallel");
    *(void **)&l->is_bound = onednn_symbol(l, "omp_get_proc_bind");
    return ok && l->get_version && l->get_isa && l->desc_size && l->query_md &&
           l->way->bind(l);
}

/* Threads that are not OpenMP's we could not tell how many to be. */
static bool start_library(onednn *l, char *said)
{
    const onednn_version *v = l->get_version();
    const char *but = "";

    if (v->cpu_runtime != DNNL_RUNTIME_OMP)
        but = ", whose threads are not OpenMP's";
    else if (l->engine_create(&l->engine, DNNL_IS_CPU, 0) ||
             l->stream_create(&l->stream, l->engine, DNNL_STREAM_DEFAULT))
        but = " without an engine";
    snprintf(said, XPU_ENGINE_SAID, "onednn %d.%d.%d%s", v->major, v->minor,
             v->patch, but);
    l->sums_bytes = l->get_isa() & DNNL_ISA_VNNI;
    if (!*but)
        return true;
    if (l->engine)
        l->engine_destroy(l->engine);
    l->engine = NULL;
    return false;
}

bool onednn_open(onednn *l, const xpu_engine_row *row, char *said)
{
    l->way = row->version == 3 ? &onednn_v3 : &onednn_v2;
    if (!(l->handle = xpu_engine_find(row))) {
        snprintf(said, XPU_ENGINE_SAID, "no %s", row->file);
        return false;
    }
    if (!bind(l))
        snprintf(said, XPU_ENGINE_SAID, "a %s without its API", row->file);
    else if (start_library(l, said))
        return true;
    dlclose(l->handle);
    l->handle = NULL;
    return false;
}
