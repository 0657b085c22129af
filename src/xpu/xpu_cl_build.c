/* Building a program's kernels from SPIR-V.
 *
 * Intel's runtime for CPUs keeps a compiler for each thread that has ever
 * built a program, some 40 MB until the process ends, and lets one thread
 * build at a time.  So for CPUs one thread of ours builds for all callers,
 * which wait.  A program's modules stay in the LLVMContext of the thread that
 * built it, and its release, which takes no lock, deletes them there: beside a
 * build it spoils that one's table of names, and the process ends, if seldom.
 * So that thread releases programs, too.
 * GPUs' drivers build and release on the caller's thread. */
#include "xpu_cl_api.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_LOG ((size_t)1 << 20) /* of a failed build, in bytes */

typedef struct {
    xpu_cl_driver *driver;
    cl_device_id id;
    const thunk_program *program;
    cl_program *built;
    cl_kernel *kernel;
} job;

sd_status xpu_cl_build_failed(const xpu_cl_driver *d, cl_device_id id,
                              cl_program p, cl_int err, const char *what)
{
    const xpu_cl_api *a = &d->api;
    size_t n = 0;
    char *log = NULL;
    sd_status st;

    if (!a->GetProgramBuildInfo(p, id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) &&
        n && n <= MOST_LOG && (log = calloc(1, n + 1))) {
        a->GetProgramBuildInfo(p, id, CL_PROGRAM_BUILD_LOG, n, log, NULL);
        xpu_cl_clean(log);
    }
    st = sd_error(SD_INTERNAL, "OpenCL, building %s: %s (%d): %s", what,
                  xpu_cl_error(err), (int)err,
                  log && *log ? log : "the driver gives no log");
    free(log);
    return st;
}

/* Division and square root are IEEE's where the device can.  Of Intel's GPUs
 * an item may have twice the registers, which is a word of the whole module;
 * other devices do not know it. */
static void write_options(const job *j, thunk_bin_kind kind, char *out,
                          size_t bytes)
{
    cl_device_fp_config fp = 0;
    cl_device_type type = 0;

    j->driver->api.GetDeviceInfo(j->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof fp,
                                 &fp, NULL);
    j->driver->api.GetDeviceInfo(j->id, CL_DEVICE_TYPE, sizeof type, &type,
                                 NULL);
    snprintf(out, bytes, "%s%s",
             fp & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
                 ? "-cl-fp32-correctly-rounded-divide-sqrt"
                 : "",
             kind == THUNK_BIN_SPIRV_LARGE && type & CL_DEVICE_TYPE_GPU
                 ? " -cl-intel-256-GRF-per-thread"
                 : "");
}

/* What asks for Intel's matrix engine has pieces of assembly, which an older or
 * newer driver may not take. */
static bool has_assembly(const thunk_binary *b)
{
    static const char name[] = "SPV_INTEL_inline_assembly";

    return memmem(b->data, b->bytes, name, sizeof name - 1);
}

static sd_status build(const job *j, const thunk_binary *b, cl_program *out)
{
    const xpu_cl_api *a = &j->driver->api;
    char options[96];
    sd_status st;
    cl_program p;
    cl_int err;

    if (b->kind != THUNK_BIN_SPIRV && b->kind != THUNK_BIN_SPIRV_LARGE)
        return sd_error(SD_PRECONDITION, "a binary that is not SPIR-V");
    p = a->CreateProgramWithIL(j->driver->context, b->data, b->bytes, &err);
    if (err)
        return xpu_cl_status(err, "reading a SPIR-V module");
    *out = p;
    write_options(j, b->kind, options, sizeof options);
    err = a->BuildProgram(p, 1, &j->id, options, NULL, NULL);
    if (!err)
        return NULL;
    st = xpu_cl_build_failed(j->driver, j->id, p, err, "a SPIR-V module");
    return has_assembly(b) ? sd_note(st, "code for the matrix engine, which "
                                         "SUNDOG_ENGINES=0 leaves out")
                           : st;
}

static sd_status build_all(void *ctx)
{
    const job *j = ctx;
    const thunk_program *p = j->program;
    sd_status st;
    cl_int err;

    for (int i = 0; i < p->nbinary; i++)
        if ((st = build(j, &p->binary[i], &j->built[i])))
            return st;
    for (int i = 0; i < p->nkernel; i++) {
        const thunk_kernel *k = &p->kernel[i];

        j->kernel[i] =
            j->driver->api.CreateKernel(j->built[k->binary], k->symbol, &err);
        if (err) {
            j->kernel[i] = NULL;
            return sd_note(xpu_cl_status(err, "finding a kernel"), "%s",
                           k->symbol);
        }
    }
    return NULL;
}

/* ---- the thread that builds ---- */

typedef struct {
    xpu_task task; /* first */
    sd_status (*fn)(void *ctx);
    void *ctx;
    xpu_event *done;
} order;

static void run_order(xpu_task *t)
{
    order *o = (order *)t;
    xpu_event *done = o->done; /* the order is gone once it is set */

    xpu_event_set(done, o->fn(o->ctx));
    xpu_event_release(done);
}

sd_status xpu_cl_on_builder(xpu_cl_driver *d, sd_status (*fn)(void *ctx),
                            void *ctx)
{
    order o = {{.run = run_order}, fn, ctx, NULL};
    xpu_event *done;
    sd_status st;

    if (!d->is_cpu)
        return fn(ctx);
    if (!(done = xpu_event_create()))
        return sd_no_memory(0);
    o.done = xpu_event_retain(done);
    if ((st = xpu_stream_push(&d->build, &o.task)))
        xpu_event_release(o.done);
    else
        st = xpu_event_wait(done);
    xpu_event_release(done);
    return st;
}

/* A push is refused in a forked child, where no thread builds, and where the
 * thread could not be started, and so has built nothing. */
void xpu_cl_leave_to_builder(xpu_cl_driver *d, xpu_task *t)
{
    sd_status st = NULL;

    if (!d->is_cpu || (st = xpu_stream_push(&d->build, t)))
        t->run(t);
    sd_status_free(st);
}

sd_status xpu_cl_build(xpu_cl_driver *d, cl_device_id id,
                       const thunk_program *p, cl_program *built,
                       cl_kernel *kernel)
{
    job j = {d, id, p, built, kernel};

    return xpu_cl_on_builder(d, build_all, &j);
}
