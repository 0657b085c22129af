/* Handlers for `cl`: they get its queue and the device's pointers.  Of OpenCL
 * they call what the queue's own library has, by the table that each of its
 * objects begins with. */
#include "handlers.c"

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>

static XLA_FFI_Error *queue_of(XLA_FFI_CallFrame *f, cl_command_queue *out)
{
    XLA_FFI_Stream_Get_Args a = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, NULL,
                                 f->ctx, NULL};
    XLA_FFI_Error *e = f->api->XLA_FFI_Stream_Get(&a);

    *out = a.stream;
    return e;
}

static const cl_icd_dispatch *table_of(cl_command_queue q)
{
    return *(const cl_icd_dispatch **)q;
}

/* Put into the queue: nobody waits for it here. */
static XLA_FFI_Error *copy(XLA_FFI_CallFrame *f, cl_command_queue q,
                           cl_bool blocking, void *to, const void *from,
                           size_t n)
{
    const cl_icd_dispatch *t = table_of(q);
    clEnqueueMemcpyINTEL_fn memcpy_usm;
    cl_device_id device = NULL;
    cl_platform_id platform = NULL;
    cl_int err;

    t->clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    t->clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform,
                       NULL);
    memcpy_usm =
        (clEnqueueMemcpyINTEL_fn)t->clGetExtensionFunctionAddressForPlatform(
            platform, "clEnqueueMemcpyINTEL");
    err = memcpy_usm
              ? memcpy_usm(q, blocking, to, from, n, 0, NULL, NULL)
              : t->clEnqueueSVMMemcpy(q, blocking, to, from, n, 0, NULL, NULL);
    return err ? error(f, XLA_FFI_Error_Code_INTERNAL, "the copy") : NULL;
}

XLA_FFI_Error *queue_copy(XLA_FFI_CallFrame *f)
{
    cl_command_queue q;
    XLA_FFI_Error *e;

    if (told(f))
        return NULL;
    if ((e = queue_of(f, &q)))
        return e;
    if (ret(f, 0)->data == arg(f, 0)->data) /* one over the other */
        return NULL;
    return copy(f, q, CL_FALSE, ret(f, 0)->data, arg(f, 0)->data,
                (size_t)count(arg(f, 0)) * sizeof(float));
}

/* By way of memory that is freed while the copies wait. */
XLA_FFI_Error *scratch_copy(XLA_FFI_CallFrame *f)
{
    XLA_FFI_DeviceMemory_Allocate_Args a = {
        XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE,
        NULL,
        f->ctx,
        0,
        4096,
        NULL};
    XLA_FFI_DeviceMemory_Free_Args d = {
        XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE, NULL, f->ctx, 0, NULL};
    cl_command_queue q;
    XLA_FFI_Error *e;

    if (told(f))
        return NULL;
    a.size = d.size = (size_t)count(arg(f, 0)) * sizeof(float);
    if ((e = queue_of(f, &q)) ||
        (e = f->api->XLA_FFI_DeviceMemory_Allocate(&a)))
        return e;
    if ((uintptr_t)a.data % 4096)
        return error(f, XLA_FFI_Error_Code_INTERNAL, "the alignment");
    d.data = a.data;
    if (!(e = copy(f, q, CL_FALSE, a.data, arg(f, 0)->data, a.size)))
        e = copy(f, q, CL_FALSE, ret(f, 0)->data, a.data, a.size);
    if (!e)
        e = f->api->XLA_FFI_DeviceMemory_Free(&d);
    return e;
}

/* stages, whose numbers go to the device. */
XLA_FFI_Error *staged_fill(XLA_FFI_CallFrame *f)
{
    int64_t number[4];
    cl_command_queue q;
    XLA_FFI_Error *e;
    void *to;

    if (told(f))
        return NULL;
    to = ret(f, 0)->data;
    ret(f, 0)->data = number;
    e = stages(f);
    ret(f, 0)->data = to;
    if (!e && !(e = queue_of(f, &q)))
        e = copy(f, q, CL_TRUE, to, number, sizeof number);
    return e;
}
