/* Foreign calls on CUDA devices: handlers get the compute stream, in the
 * device's primary context, and kernels of the user's, PTX or cubins, are
 * loaded and launched into it.  Parameters: a pointer for each operand and
 * result, then the numbers by value, each on its own alignment. */
#include "xpu_cuda_api.h"

#include <stdlib.h>

sd_status xpu_cuda_lend(xpu_device *d, void **stream)
{
    xpu_cuda *v = d->impl;
    sd_status st = xpu_cuda_enter(v);

    if (!st)
        *stream = v->queue[XPU_COMPUTE];
    return st;
}

sd_status xpu_cuda_reclaim(xpu_device *d)
{
    /* who knows what it put in */
    sd_status st = xpu_cuda_keep_pace(d->impl, 1);

    xpu_cuda_leave(d->impl);
    return st;
}

/* ---- kernels ---- */

struct xpu_kernel {
    const xpu_kernel_source *source; /* borrowed: it stays */
    cu_module module;
    cu_function fn;
    size_t bytes; /* of the parameters */
    uint8_t parameter[];
};

static size_t aligned(size_t at, size_t size)
{
    return (at + size - 1) / size * size;
}

/* Where the parameters end; written where there is somewhere to. */
static size_t lay_out(const xpu_kernel_source *s, uint8_t *to)
{
    size_t at = (size_t)s->npointer * sizeof(void *);

    for (int i = 0; i < s->nscalar; i++) {
        at = aligned(at, s->scalar[i].bytes);
        if (to)
            memcpy(to + at, s->scalar[i].at, s->scalar[i].bytes);
        at += s->scalar[i].bytes;
    }
    return at;
}

/* The driver reads as many parameters as the kernel has, so one that has others
 * would compute with what lies behind them. */
static sd_status check_parameters(const xpu_cuda *v, const xpu_kernel *k)
{
    const xpu_kernel_source *s = k->source;
    size_t want = (size_t)s->npointer + (size_t)s->nscalar, n = 0, at, size,
           end = 0;

    if (!v->driver->api.FuncGetParamInfo)
        return NULL;
    while (n <= want &&
           !v->driver->api.FuncGetParamInfo(k->fn, n, &at, &size)) {
        end = at + size;
        n++;
    }
    if (n == want && end == k->bytes)
        return NULL;
    return sd_error(SD_INVALID,
                    "%s has %s%zu parameters in %zu bytes, and the call gives "
                    "%zu in %zu: %d operands and results, %d numbers",
                    s->entry, n > want ? "at least " : "", n, end, want,
                    k->bytes, s->npointer, s->nscalar);
}

static sd_status find_function(xpu_cuda *v, xpu_kernel *k)
{
    const xpu_kernel_source *s = k->source;
    cu_result err =
        v->driver->api.ModuleGetFunction(&k->fn, k->module, s->entry);
    const char *call = "cuModuleGetFunction";

    if (!err && s->local > XPU_CUDA_STATIC_SHARED) {
        call = "cuFuncSetAttribute";
        err = v->driver->api.FuncSetAttribute(k->fn, CU_FN_DYNAMIC_SHARED,
                                              (int)s->local);
    }
    if (err)
        return sd_note(xpu_cuda_status(v->driver, v, err, call),
                       "%s, %u bytes of local memory", s->entry, s->local);
    return check_parameters(v, k);
}

void xpu_cuda_kernel_drop(xpu_device *d, xpu_kernel *k)
{
    xpu_cuda *v = d->impl;
    bool entered = false;

    if (k->module && xpu_cuda_enter_to_free(v, &entered)) {
        v->driver->api.ModuleUnload(k->module);
        if (entered)
            xpu_cuda_leave(v);
    }
    free(k);
}

sd_status xpu_cuda_kernel_make(xpu_device *d, const xpu_kernel_source *s,
                               xpu_kernel **out)
{
    size_t bytes = lay_out(s, NULL);
    xpu_kernel *k = calloc(1, sizeof *k + bytes);
    xpu_cuda *v = d->impl;
    sd_status st;

    if (!k)
        return sd_no_memory(sizeof *k + bytes);
    k->source = s;
    k->bytes = lay_out(s, k->parameter);
    if (!(st = xpu_cuda_enter(v))) {
        if (!(st = xpu_cuda_load_image(v, s->code, &k->module)))
            st = find_function(v, k);
        xpu_cuda_leave(v);
    }
    if (st)
        xpu_cuda_kernel_drop(d, k);
    else
        *out = k;
    return st;
}

static sd_status launch(xpu_cuda *v, xpu_kernel *k)
{
    const xpu_kernel_source *s = k->source;
    void *extra[] = {CU_PARAM_BUFFER, k->parameter, CU_PARAM_BYTES, &k->bytes,
                     CU_PARAM_END};
    const uint32_t *g = s->grid, *b = s->block;
    sd_status st =
        xpu_cuda_status(v->driver, v,
                        v->driver->api.LaunchKernel(
                            k->fn, g[0], g[1], g[2], b[0], b[1], b[2], s->local,
                            v->queue[XPU_COMPUTE], NULL, extra),
                        "cuLaunchKernel");

    if (st)
        return sd_note(st, "%u x %u x %u groups of %u x %u x %u", g[0], g[1],
                       g[2], b[0], b[1], b[2]);
    return xpu_cuda_keep_pace(v, 1);
}

sd_status xpu_cuda_kernel_launch(xpu_device *d, xpu_kernel *k, void *const *ptr)
{
    const uint32_t *g = k->source->grid;
    xpu_cuda *v = d->impl;
    sd_status st;

    if (!g[0] || !g[1] || !g[2])
        return NULL;
    memcpy(k->parameter, ptr, (size_t)k->source->npointer * sizeof *ptr);
    if ((st = xpu_cuda_enter(v)))
        return st;
    st = launch(v, k);
    xpu_cuda_leave(v);
    return st;
}
