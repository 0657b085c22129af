/* Library calls go to the engine of their library: the first of the table
 * that is there. */
#include "xpu_device.h"
#include "xpu_engine.h"
#include "xpu_python.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const xpu_engine_row rows[] = {
    {DEVICE_LIB_ONEDNN, &xpu_onednn, "onednn", "libdnnl.so.3", .version = 3},
    {DEVICE_LIB_ONEDNN, &xpu_onednn, "onednn", "libdnnl.so.2", .version = 2},
    /* JAX brings SciPy, and its wheel OpenBLAS under names of its own */
    {DEVICE_LIB_LAPACK, &xpu_lapack, "SciPy's LAPACK",
     "scipy.libs/libscipy_openblas*.so", .prefix = "scipy_",
     .threads = "scipy_openblas_set_num_threads"},
    {DEVICE_LIB_LAPACK, &xpu_lapack, "OpenBLAS", "libopenblas.so.0",
     .prefix = "", .threads = "openblas_set_num_threads"},
    {DEVICE_LIB_LAPACK, &xpu_lapack, "MKL", "libmkl_rt.so.2", .prefix = "",
     .threads = "MKL_Set_Num_Threads"},
    {DEVICE_LIB_LAPACK, &xpu_lapack, "reference LAPACK", "liblapack.so.3",
     .prefix = ""},
};

enum { LIBRARIES = 2 }; /* device_lib bits */

typedef struct {
    const xpu_engine_kind *kind;
    void *at; /* NULL: none of its rows opened */
    char said[XPU_ENGINE_SAID];
} engine;

struct xpu_lib {
    engine engine[LIBRARIES];
    char version[LIBRARIES * (XPU_ENGINE_SAID + 2)];
};

void *xpu_engine_find(const xpu_engine_row *row)
{
    bool package = strchr(row->file, '*') != NULL;
    void *h = package ? NULL : dlopen(row->file, RTLD_NOW | RTLD_LOCAL);

    return h ? h : xpu_python_open(package, row->file);
}

static sd_status open_row(xpu_lib *l, const xpu_engine_row *row, sd_pool *pool)
{
    engine *e = &l->engine[__builtin_ctzll(row->lib)];
    sd_status st;

    if (e->at)
        return NULL;
    if ((st = row->kind->open(row, pool, &e->at, e->said)))
        return st;
    if (e->at)
        e->kind = row->kind;
    return NULL;
}

static sd_status open_rows(xpu_lib *l, sd_pool *pool)
{
    xpu_engine_env env = xpu_engine_env_lend();
    sd_status st = NULL;

    for (size_t i = 0; !st && i < SD_COUNTOF(rows); i++)
        st = open_row(l, &rows[i], pool);
    xpu_engine_env_take_back(env);
    return st;
}

sd_status xpu_lib_open(sd_pool *pool, xpu_lib **out)
{
    xpu_lib *l = calloc(1, sizeof *l);
    sd_status st;

    if (!l)
        return sd_no_memory(sizeof *l);
    if ((st = open_rows(l, pool))) {
        xpu_lib_close(l);
        return st;
    }
    snprintf(l->version, sizeof l->version, "%s, %s", l->engine[0].said,
             l->engine[1].said);
    *out = l;
    return NULL;
}

void xpu_lib_close(xpu_lib *l)
{
    if (!l)
        return;
    for (int i = 0; i < LIBRARIES; i++)
        if (l->engine[i].at)
            l->engine[i].kind->close(l->engine[i].at);
    free(l);
}

uint64_t xpu_lib_present(const xpu_lib *l)
{
    uint64_t libs = 0;

    for (int i = 0; i < LIBRARIES; i++)
        if (l->engine[i].at)
            libs |= (uint64_t)1 << i | l->engine[i].kind->can(l->engine[i].at);
    return libs;
}

const char *xpu_lib_version(const xpu_lib *l)
{
    return l->version;
}

sd_status xpu_lib_run(xpu_lib *l, const thunk *t, void *const *ptr)
{
    const libcall_info *info = &libcall_table[t->call->op];
    engine *e = l ? &l->engine[__builtin_ctzll(info->lib)] : NULL;

    if (!e || !e->at)
        return sd_error(SD_UNIMPLEMENTED, "%s: %s cannot be called: %s",
                        t->name, info->name, e ? e->said : "no libraries");
    return sd_note(e->kind->run(e->at, t, ptr), "%s", t->name);
}
