/* OpenCL devices: SPIR-V modules, memory by pointer (USM, else coarse-grained
 * SVM), in-order queues: those of xpu_ops.h, and one for copies that block,
 * which wait behind nothing.  Queues are thread-safe by the standard.
 * Nothing is computed on the host: it reads predicates, and that is all. */
#include "xpu_cl_api.h"

#include <stdlib.h>

typedef xpu_cl cl;

static cl_int wait_for_all(const cl *v)
{
    const xpu_cl_api *a = &v->driver->api;
    cl_event e;
    cl_int err =
        a->EnqueueMarkerWithWaitList(v->queue[XPU_COMPUTE], 0, NULL, &e);

    if (err)
        return err;
    err = a->WaitForEvents(1, &e);
    a->ReleaseEvent(e);
    return err;
}

cl_int xpu_cl_keep_pace(xpu_cl *v)
{
    return xpu_pace_is_due(&v->pace, 1) ? wait_for_all(v) : CL_SUCCESS;
}

struct xpu_module {
    xpu_task task; /* first; its release */
    const thunk_program *program; /* borrowed from the xpu_program */
    const xpu_cl_api *api;        /* borrowed */
    int nbuilt, nkernel;
    cl_program *built;            /* per binary */
    cl_kernel *kernel;            /* per kernel */
};

static const xpu_cl_api *api_of(const xpu_device *d)
{
    return &((const cl *)d->impl)->driver->api;
}

/* ---- memory ---- */

static bool is_exhausted(cl_int err)
{
    return err == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
           err == CL_OUT_OF_RESOURCES || err == CL_OUT_OF_HOST_MEMORY ||
           err == CL_INVALID_BUFFER_SIZE;
}

static sd_status cl_alloc(xpu_device *d, xpu_memory mem, size_t bytes,
                          void **out)
{
    const cl *v = d->impl;
    const xpu_cl_api *a = api_of(d);
    cl_context c = v->driver->context;
    cl_int err = CL_SUCCESS;

    if (!v->driver->usm)
        *out = a->SVMAlloc(c, CL_MEM_READ_WRITE, bytes, XPU_ALIGN);
    else if (mem == XPU_MEM_PINNED_HOST)
        *out = a->HostMemAlloc(c, NULL, bytes, XPU_ALIGN, &err);
    else
        *out = a->DeviceMemAlloc(c, v->id, NULL, bytes, XPU_ALIGN, &err);
    if (err == CL_SUCCESS)
        return NULL;
    *out = NULL;
    return is_exhausted(err) ? NULL : xpu_cl_status(err, "allocating memory");
}

static void cl_free(xpu_device *d, xpu_memory mem, void *p, size_t bytes)
{
    const cl *v = d->impl;
    const xpu_cl_api *a = api_of(d);

    (void)mem;
    (void)bytes;
    if (v->driver->usm)
        a->MemFree(v->driver->context, p);
    else
        a->SVMFree(v->driver->context, p);
}

static sd_status enqueue_copy(const xpu_device *d, cl_command_queue q,
                              bool blocking, void *to, const void *from,
                              size_t bytes)
{
    const cl *v = d->impl;
    const xpu_cl_api *a = api_of(d);
    cl_int err;

    if (!bytes)
        return NULL;
    if (v->driver->usm)
        err = a->EnqueueMemcpy(q, blocking, to, from, bytes, 0, NULL, NULL);
    else
        err = a->EnqueueSVMMemcpy(q, blocking, to, from, bytes, 0, NULL, NULL);
    return xpu_cl_status(err, "copying");
}

static sd_status cl_copy(xpu_device *d, xpu_queue q, void *to, const void *from,
                         size_t n)
{
    return enqueue_copy(d, ((cl *)d->impl)->queue[q], false, to, from, n);
}

static sd_status cl_transfer(xpu_device *d, void *to, const void *from,
                             size_t n)
{
    return enqueue_copy(d, ((cl *)d->impl)->now, true, to, from, n);
}

/* All devices of a client are in one context.  Where the driver cannot reach
 * from one to another the way is through the host. */
static sd_status cl_copy_between(xpu_device *to_dev, void *to,
                                 xpu_device *from_dev, const void *from,
                                 size_t bytes)
{
    sd_status st = cl_transfer(to_dev, to, from, bytes);

    if (!st || from_dev == to_dev || st->code == SD_EXHAUSTED)
        return st;
    sd_status_free(st);
    return xpu_copy_through_host(to_dev, to, from_dev, from, bytes);
}

static sd_status cl_peek(xpu_device *d, void *to, const void *from, size_t n)
{
    ((cl *)d->impl)->pace = (xpu_pace){0}; /* it waits for what is queued */
    return enqueue_copy(d, ((cl *)d->impl)->queue[XPU_COMPUTE], true, to, from,
                        n);
}

/* ---- marks ---- */

typedef struct {
    xpu_mark mark; /* first */
    const xpu_cl_api *api; /* borrowed */
    cl_event event;
    xpu_mark_fn fn;
    void *ctx;
} cl_mark;

static void cl_forget(xpu_mark *mark)
{
    cl_mark *m = (cl_mark *)mark;

    m->api->ReleaseEvent(m->event);
    free(m);
}

/* A thread of the driver's: nothing but handing over.  What is handed over may
 * be the last thing in flight: then the device may go, and we need no more. */
static void CL_CALLBACK on_mark(cl_event event, cl_int status, void *mark)
{
    cl_mark *m = mark;
    xpu_mark_fn fn = m->fn;
    void *ctx = m->ctx;

    (void)event;
    xpu_mark_release(&m->mark);
    fn(ctx, xpu_cl_status(status < 0 ? status : CL_SUCCESS, "running"));
}

static cl_int call_back(cl_mark *m)
{
    cl_int err;

    if (!m->fn)
        return CL_SUCCESS;
    xpu_mark_retain(&m->mark);
    if ((err = m->api->SetEventCallback(m->event, CL_COMPLETE, on_mark, m)))
        xpu_mark_release(&m->mark);
    return err;
}

static sd_status cl_record(xpu_device *d, xpu_queue q, xpu_mark_fn fn,
                           void *ctx, xpu_mark **out)
{
    const cl *v = d->impl;
    const xpu_cl_api *a = api_of(d);
    cl_mark *m = malloc(sizeof *m);
    cl_int err;

    if (!m)
        return sd_no_memory(sizeof *m);
    *m = (cl_mark){
        .mark = {.dev = d, .queue = q}, .api = a, .fn = fn, .ctx = ctx};
    atomic_init(&m->mark.refs, 1);
    err = a->EnqueueMarkerWithWaitList(v->queue[q], 0, NULL, &m->event);
    if (err) {
        free(m);
        return xpu_cl_status(err, "marking");
    }
    if ((err = call_back(m))) {
        xpu_mark_release(&m->mark);
        return xpu_cl_status(err, "marking");
    }
    *out = &m->mark;
    return NULL;
}

static sd_status cl_send(xpu_device *d, xpu_queue q)
{
    return xpu_cl_status(api_of(d)->Flush(((cl *)d->impl)->queue[q]),
                         "sending off");
}

/* The queue that m is in was sent off before anybody heard of m. */
static sd_status cl_wait(xpu_device *d, xpu_queue q, xpu_mark *m)
{
    const cl *v = d->impl;

    return xpu_cl_status(
        api_of(d)->EnqueueBarrierWithWaitList(
            v->queue[q], 1, &((const cl_mark *)m)->event, NULL),
        "waiting for a mark");
}

/* When the driver does not say, it was not. */
static bool cl_query(const xpu_mark *mark)
{
    const cl_mark *m = (const cl_mark *)mark;
    cl_int status = CL_QUEUED;

    m->api->GetEventInfo(m->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                         sizeof status, &status, NULL);
    return status <= CL_COMPLETE;
}

/* An error is told by the callback, too. */
static void cl_help(xpu_mark *mark)
{
    const cl_mark *m = (const cl_mark *)mark;

    m->api->WaitForEvents(1, &m->event);
}

/* ---- kernels ---- */

static void release(xpu_task *t)
{
    xpu_module *m = (xpu_module *)t;

    for (int i = 0; i < m->nkernel; i++)
        if (m->kernel[i])
            m->api->ReleaseKernel(m->kernel[i]);
    for (int i = 0; i < m->nbuilt; i++)
        if (m->built[i])
            m->api->ReleaseProgram(m->built[i]);
    free(m);
}

static void cl_unload(xpu_device *d, xpu_module *m)
{
    m->task.run = release;
    xpu_cl_leave_to_builder(((cl *)d->impl)->driver, &m->task);
}

static sd_status cl_load(xpu_device *d, const thunk_program *p,
                         xpu_module **out)
{
    const cl *v = d->impl;
    size_t n = (size_t)p->nbinary + (size_t)p->nkernel;
    xpu_module *m = calloc(1, sizeof *m + n * sizeof(void *));
    sd_status st;

    if (!m)
        return sd_no_memory(n * sizeof(void *));
    m->program = p;
    m->api = &v->driver->api;
    m->nbuilt = p->nbinary;
    m->nkernel = p->nkernel;
    m->built = (cl_program *)(m + 1);
    m->kernel = (cl_kernel *)(m->built + p->nbinary);
    if ((st = xpu_cl_build(v->driver, v->id, p, m->built, m->kernel)))
        cl_unload(d, m);
    else
        *out = m;
    return st;
}

static sd_status cl_launch(xpu_device *d, xpu_module *m, int kernel,
                           void **slot)
{
    const thunk_kernel *k = &m->program->kernel[kernel];
    const xpu_cl_api *a = api_of(d);
    cl *v = d->impl;
    size_t group = (size_t)k->group, all = (size_t)k->tiles * group;
    cl_int err = CL_SUCCESS;

    if (k->tiles <= 0)
        return NULL;
    for (int i = 0; i < k->nslot && !err; i++)
        err = v->driver->usm ? a->SetKernelArgMemPointer(m->kernel[kernel],
                                                         (cl_uint)i, slot[i])
                             : a->SetKernelArgSVMPointer(m->kernel[kernel],
                                                         (cl_uint)i, slot[i]);
    if (!err)
        err = a->EnqueueNDRangeKernel(v->queue[XPU_COMPUTE], m->kernel[kernel],
                                      1, NULL, &all, &group, 0, NULL, NULL);
    if (!err)
        err = xpu_cl_keep_pace(v);
    return sd_note(xpu_cl_status(err, "launching"),
                   "%s, %" PRId64 " groups of %d", k->symbol, k->tiles,
                   k->group);
}

/* What a former run queued is its own to wait for. */
static sd_status cl_begin(xpu_device *d, xpu_module *m)
{
    (void)m;
    ((cl *)d->impl)->pace = (xpu_pace){0};
    return NULL;
}

static sd_status cl_sync(xpu_device *d, xpu_queue q)
{
    return xpu_cl_status(api_of(d)->Finish(((cl *)d->impl)->queue[q]),
                         "waiting");
}

/* ---- opening ---- */

static void cl_close(xpu_device *d)
{
    const xpu_cl_api *a;
    cl *v = d->impl;

    if (!v)
        return;
    a = api_of(d);
    for (int q = 0; q < XPU_BESIDE; q++)
        if (v->queue[q])
            a->ReleaseCommandQueue(v->queue[q]);
    if (v->now)
        a->ReleaseCommandQueue(v->now);
    free(v);
}

static const xpu_device_ops cl_ops = {
    .name = "cl",
    .alloc = cl_alloc,
    .free = cl_free,
    .copy = cl_copy,
    .copy_in = cl_transfer,
    .copy_out = cl_transfer,
    .copy_between = cl_copy_between,
    .load = cl_load,
    .unload = cl_unload,
    .begin = cl_begin,
    .launch = cl_launch,
    .peek = cl_peek,
    .lend = xpu_cl_lend,
    .reclaim = xpu_cl_reclaim,
    .kernel_make = xpu_cl_kernel_make,
    .kernel_drop = xpu_cl_kernel_drop,
    .kernel_launch = xpu_cl_kernel_launch,
    .record = cl_record,
    .send = cl_send,
    .wait = cl_wait,
    .query = cl_query,
    .forget = cl_forget,
    .help = cl_help,
    .sync = cl_sync,
    .close = cl_close,
    .code_is_drivers = true,
};

static void driver_close(void *driver)
{
    xpu_cl_driver *d = driver;

    xpu_stream_finish(&d->build);
    if (d->context)
        d->api.ReleaseContext(d->context);
    for (int i = 0; i < d->ndev; i++)
        if (d->is_sub[i])
            d->api.ReleaseDevice(d->dev[i]);
    free(d);
}

static sd_status make_queue(const cl *v, cl_command_queue *out)
{
    cl_int err;
    cl_command_queue q = v->driver->api.CreateCommandQueueWithProperties(
        v->driver->context, v->id, NULL, &err);

    if (err)
        return xpu_cl_status(err, "making a queue");
    *out = q;
    return NULL;
}

/* Groups, accesses and registers as those of the described device `name`, in
 * small arrays too: as if it had one unit. */
static void lay_out_as(device_desc *desc, const char *name)
{
    device_desc like;

    if (!name || !device_desc_of_name(name, &like))
        return;
    desc->crowd = like.crowd;
    desc->access = like.access;
    desc->registers = like.registers;
    desc->units = 1;
}

static sd_status open_device(xpu_client *c, xpu_cl_driver *driver,
                             cl_device_id id, const sd_options *opt)
{
    xpu_device *d;
    sd_status st = xpu_client_add(c, &cl_ops, &d);
    cl *v;

    if (st)
        return st;
    if (!(d->impl = v = calloc(1, sizeof *v)))
        return sd_no_memory(sizeof *v);
    v->driver = driver;
    v->id = id;
    d->lends = driver->is_cpu;
    d->own_memory = xpu_cl_has_own_memory(driver, id);
    if ((st = xpu_cl_describe(driver, id, &d->desc, &d->limit)))
        return st;
    lay_out_as(&d->desc, sd_opt_str(opt, SD_OPT_CL_AS));
    for (int q = 0; q < XPU_BESIDE && !st; q++)
        st = make_queue(v, &v->queue[q]);
    return st ? st : make_queue(v, &v->now);
}

sd_status xpu_cl_open(xpu_client *c, const sd_options *opt, bool chosen)
{
    xpu_cl_driver *d = calloc(1, sizeof *d);
    sd_status st;
    cl_int err;

    if (!d)
        return sd_no_memory(sizeof *d);
    if ((st = xpu_cl_find(d, opt, chosen))) {
        free(d);
        return st;
    }
    xpu_stream_init(&d->build, "sundog-build");
    c->driver = d;
    c->driver_close = driver_close;
    d->context =
        d->api.CreateContext(NULL, (cl_uint)d->ndev, d->dev, NULL, NULL, &err);
    if (err) {
        d->context = NULL;
        return xpu_cl_status(err, "making a context");
    }
    for (int i = 0; i < d->ndev && !st; i++)
        st = open_device(c, d, d->dev[i], opt);
    return st;
}
