/* Foreign calls on OpenCL devices: handlers get the compute queue, which is in
 * order, and kernels of the user's, OpenCL C or SPIR-V, are built and launched
 * into it.  Parameters: a pointer for each operand and result, the numbers by
 * value, and local memory where the call asks for it. */
#include "xpu_cl_api.h"

#include <stdlib.h>

sd_status xpu_cl_lend(xpu_device *d, void **stream)
{
    *stream = ((xpu_cl *)d->impl)->queue[XPU_COMPUTE];
    return NULL;
}

sd_status xpu_cl_reclaim(xpu_device *d)
{
    return xpu_cl_status(xpu_cl_keep_pace(d->impl), "waiting");
}

/* ---- kernels ---- */

struct xpu_kernel {
    xpu_task task; /* first; its release */
    const xpu_kernel_source *source; /* borrowed: it stays */
    xpu_cl *dev; /* borrowed from the device */
    const xpu_cl_api *api; /* borrowed */
    cl_program program;
    cl_kernel kernel;
};

static sd_status build(xpu_kernel *k)
{
    const xpu_kernel_source *s = k->source;
    const xpu_cl_api *a = k->api;
    cl_context c = k->dev->driver->context;
    sd_status st;
    cl_int err;

    k->program =
        s->form == XPU_SPIRV
            ? a->CreateProgramWithIL(c, s->code, s->bytes, &err)
            : a->CreateProgramWithSource(
                  c, 1, (const char **)(uintptr_t)&s->code, &s->bytes, &err);
    if (err) {
        k->program = NULL;
        return xpu_cl_status(err, "reading its source");
    }
    err = a->BuildProgram(k->program, 1, &k->dev->id, s->options, NULL, NULL);
    if (!err)
        return NULL;
    st = xpu_cl_build_failed(k->dev->driver, k->dev->id, k->program, err,
                             "its source");
    st->code = SD_INVALID; /* the source is the caller's */
    return st;
}

static int parameters(const xpu_kernel_source *s)
{
    return s->npointer + s->nscalar + (s->local > 0);
}

static sd_status check_parameters(const xpu_kernel *k)
{
    const xpu_kernel_source *s = k->source;
    cl_uint n = 0;
    cl_int err = k->api->GetKernelInfo(k->kernel, CL_KERNEL_NUM_ARGS, sizeof n,
                                       &n, NULL);

    if (err)
        return xpu_cl_status(err, "counting parameters");
    if ((int64_t)n == parameters(s))
        return NULL;
    return sd_error(SD_INVALID,
                    "%s has %u parameters, and the call gives %d: %d operands "
                    "and results, %d numbers, local memory %d times",
                    s->entry, n, parameters(s), s->npointer, s->nscalar,
                    s->local > 0);
}

static sd_status make(void *ctx)
{
    xpu_kernel *k = ctx;
    sd_status st = build(k);
    cl_int err;

    if (st)
        return st;
    k->kernel = k->api->CreateKernel(k->program, k->source->entry, &err);
    if (err) {
        k->kernel = NULL;
        return sd_note(xpu_cl_status(err, "finding a kernel"), "%s",
                       k->source->entry);
    }
    return check_parameters(k);
}

static void release(xpu_task *t)
{
    xpu_kernel *k = (xpu_kernel *)t;

    if (k->kernel)
        k->api->ReleaseKernel(k->kernel);
    if (k->program)
        k->api->ReleaseProgram(k->program);
    free(k);
}

void xpu_cl_kernel_drop(xpu_device *d, xpu_kernel *k)
{
    k->task.run = release;
    xpu_cl_leave_to_builder(((xpu_cl *)d->impl)->driver, &k->task);
}

sd_status xpu_cl_kernel_make(xpu_device *d, const xpu_kernel_source *s,
                             xpu_kernel **out)
{
    xpu_kernel *k;
    xpu_cl *v = d->impl;
    sd_status st;

    if (!(k = calloc(1, sizeof *k)))
        return sd_no_memory(sizeof *k);
    k->source = s;
    k->dev = v;
    k->api = &v->driver->api;
    if ((st = xpu_cl_on_builder(v->driver, make, k)))
        xpu_cl_kernel_drop(d, k);
    else
        *out = k;
    return st;
}

static cl_int set_parameters(const xpu_kernel *k, void *const *ptr)
{
    const xpu_kernel_source *s = k->source;
    const xpu_cl_api *a = k->api;
    cl_uint at = 0;
    cl_int err = CL_SUCCESS;

    for (int i = 0; i < s->npointer && !err; i++, at++)
        err = k->dev->driver->usm
                  ? a->SetKernelArgMemPointer(k->kernel, at, ptr[i])
                  : a->SetKernelArgSVMPointer(k->kernel, at, ptr[i]);
    for (int i = 0; i < s->nscalar && !err; i++, at++)
        err =
            a->SetKernelArg(k->kernel, at, s->scalar[i].bytes, s->scalar[i].at);
    if (!err && s->local)
        err = a->SetKernelArg(k->kernel, at, s->local, NULL);
    return err;
}

sd_status xpu_cl_kernel_launch(xpu_device *d, xpu_kernel *k, void *const *ptr)
{
    const xpu_kernel_source *s = k->source;
    size_t all[3], group[3];
    cl_int err;

    (void)d;
    for (int i = 0; i < 3; i++) {
        group[i] = s->block[i];
        all[i] = (size_t)s->grid[i] * s->block[i];
        if (!all[i])
            return NULL;
    }
    err = set_parameters(k, ptr);
    if (!err)
        err =
            k->api->EnqueueNDRangeKernel(k->dev->queue[XPU_COMPUTE], k->kernel,
                                         3, NULL, all, group, 0, NULL, NULL);
    if (!err)
        err = xpu_cl_keep_pace(k->dev);
    return sd_note(xpu_cl_status(err, "launching"),
                   "%u x %u x %u groups of %u x %u x %u", s->grid[0],
                   s->grid[1], s->grid[2], s->block[0], s->block[1],
                   s->block[2]);
}
