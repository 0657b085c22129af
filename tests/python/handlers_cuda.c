/* Handlers for `cuda`: they get its stream and the device's pointers.  Of the
 * driver they call what they find in the process, in the context that is
 * current: without one, or in another, a copy between such pointers fails. */
#include "handlers.c"

#include <dlfcn.h>

typedef int (*copy_fn)(uint64_t to, uint64_t from, size_t n, void *stream);

static XLA_FFI_Error *stream_of(XLA_FFI_CallFrame *f, void **out)
{
    XLA_FFI_Stream_Get_Args a = {XLA_FFI_Stream_Get_Args_STRUCT_SIZE, NULL,
                                 f->ctx, NULL};
    XLA_FFI_Error *e = f->api->XLA_FFI_Stream_Get(&a);

    *out = a.stream;
    return e;
}

/* Put into the stream: nobody waits for it here. */
static XLA_FFI_Error *copy(XLA_FFI_CallFrame *f, void *stream, void *to,
                           const void *from, size_t n)
{
    const char *name = getenv("SUNDOG_CUDA_LIBRARY");
    void *driver = dlopen(name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    copy_fn fn = driver ? (copy_fn)dlsym(driver, "cuMemcpyAsync") : NULL;

    if (!fn || fn((uintptr_t)to, (uintptr_t)from, n, stream))
        return error(f, XLA_FFI_Error_Code_INTERNAL, "the copy");
    return NULL;
}

XLA_FFI_Error *queue_copy(XLA_FFI_CallFrame *f)
{
    XLA_FFI_Error *e;
    void *s;

    if (told(f))
        return NULL;
    if ((e = stream_of(f, &s)) || ret(f, 0)->data == arg(f, 0)->data)
        return e;
    return copy(f, s, ret(f, 0)->data, arg(f, 0)->data,
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
    XLA_FFI_Error *e;
    void *s;

    if (told(f))
        return NULL;
    a.size = d.size = (size_t)count(arg(f, 0)) * sizeof(float);
    if ((e = stream_of(f, &s)) ||
        (e = f->api->XLA_FFI_DeviceMemory_Allocate(&a)))
        return e;
    if ((uintptr_t)a.data % 4096)
        return error(f, XLA_FFI_Error_Code_INTERNAL, "the alignment");
    d.data = a.data;
    if (!(e = copy(f, s, a.data, arg(f, 0)->data, a.size)))
        e = copy(f, s, ret(f, 0)->data, a.data, a.size);
    return e ? e : f->api->XLA_FFI_DeviceMemory_Free(&d);
}
