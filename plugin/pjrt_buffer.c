/* Buffers: a handle over xpu's, with the memory it lies in and the order
 * of its dimensions.  Here are the questions; they come
 * to life in pjrt_create.c, pjrt_transfer.c, pjrt_async.c. */
#include "pjrt.h"

PJRT_Buffer *pjrt_buffer_handle(PJRT_Memory *m, int rank, const int64_t *order)
{
    size_t bytes = (size_t)rank * sizeof *order;
    PJRT_Buffer *b = malloc(sizeof *b);

    if (!b)
        return NULL;
    *b = (PJRT_Buffer){.memory = m};
    if (order && !(b->order = malloc(bytes))) {
        free(b);
        return NULL;
    }
    if (order)
        memcpy(b->order, order, bytes);
    pjrt_client_retain(m->device->client);
    return b;
}

PJRT_Buffer *pjrt_buffer_wrap(PJRT_Memory *m, xpu_buffer *x,
                              const int64_t *order)
{
    PJRT_Buffer *b = pjrt_buffer_handle(m, xpu_buffer_rank(x), order);

    if (b)
        b->x = x;
    else
        xpu_buffer_release(x);
    return b;
}

void pjrt_buffer_free(PJRT_Buffer *b)
{
    PJRT_Client *c;

    if (!b)
        return;
    c = b->memory->device->client;
    pjrt_sundog_hide(b);
    if (b->x)
        xpu_buffer_release(b->x);
    free(b->order);
    free(b);
    pjrt_client_release(c);
}

sd_status pjrt_shape(PJRT_Buffer_Type type, const int64_t *dim, size_t ndim,
                     sd_dtype *out)
{
    sd_dtype t;

    if (!sd_dtype_of_pjrt((int)type, &t) || t == SD_TOKEN)
        return sd_error(SD_UNIMPLEMENTED, "arrays of PJRT's element type %d",
                        (int)type);
    *out = t;
    return sd_shape_check(t, (int)SD_MIN(ndim, (size_t)1 << 20), dim);
}

sd_status pjrt_array_read(PJRT_Buffer_Type type, const int64_t *dim,
                          size_t ndim, const PJRT_Buffer_MemoryLayout *layout,
                          pjrt_array *out)
{
    sd_status st = pjrt_shape(type, dim, ndim, &out->dtype);

    if (st || (st = pjrt_layout_read(layout, ndim, "device", &out->order)))
        return st;
    out->rank = (int)ndim;
    out->dim = dim;
    return NULL;
}

/* A memory, or a device's default one. */
sd_status pjrt_place(PJRT_Device *d, PJRT_Memory *m, PJRT_Memory **out)
{
    if (!m && !d)
        return sd_error(SD_INVALID, "neither a device nor a memory is given");
    *out = m ? m : &d->memory[XPU_MEM_DEVICE];
    return m ? NULL : pjrt_device_is_here(d);
}

PJRT_Error *pjrt_buffer_get_memory_layout(PJRT_Buffer_GetMemoryLayout_Args *a)
{
    int rank = xpu_buffer_rank(a->buffer->x);
    const int64_t *order = a->buffer->order;

    a->layout = (PJRT_Buffer_MemoryLayout){
        .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
        .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
        .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                  .minor_to_major = order ? order : pjrt_row_major(rank),
                  .minor_to_major_size = (size_t)rank}};
    return NULL;
}

/* A framework that hears yes reads the memory in place: its view pins the
 * buffer, so that a donation copies as long as there is one.  One that hears no
 * asks for a copy, which waits for memory that comes later and brings the error
 * of a buffer that has none. */
PJRT_Error *pjrt_buffer_is_on_cpu(PJRT_Buffer_IsOnCpu_Args *a)
{
    const PJRT_Buffer *b = a->buffer;
    bool is_hosts = b->memory->kind != XPU_MEM_DEVICE ||
                    xpu_device_desc(b->memory->device->x)->kind == DEVICE_HOST;

    a->is_on_cpu = is_hosts && xpu_buffer_is_placed(b->x);
    return NULL;
}

PJRT_Error *pjrt_buffer_ready_event(PJRT_Buffer_ReadyEvent_Args *a)
{
    xpu_buffer *x = a->buffer->x;
    xpu_event *e;

    if (xpu_buffer_is_deleted(x))
        e = pjrt_ready_event(sd_error(SD_INVALID, "the buffer was deleted or "
                                                  "donated"));
    else
        e = xpu_event_retain(xpu_buffer_ready(x));
    if (!e)
        return pjrt_no_memory();
    a->event = pjrt_event(e);
    return NULL;
}

/* An alias has none until it is fulfilled, an error never. */
static sd_status find_pointer(const PJRT_Buffer *b, void **out)
{
    if (xpu_buffer_is_deleted(b->x))
        return sd_error(SD_INVALID, "the buffer was deleted or donated");
    *out = xpu_buffer_pointer(b->x);
    if (*out || !xpu_buffer_bytes(b->x))
        return NULL;
    return sd_error(SD_PRECONDITION,
                    "the buffer has no memory: it is an error, or an alias "
                    "that nothing fulfilled yet");
}

PJRT_Error *pjrt_buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args *a)
{
    void *p = NULL;
    sd_status st = find_pointer(a->buffer, &p);

    if (!st)
        pjrt_sundog_show(a->buffer);
    a->buffer_pointer = (uintptr_t)p;
    return pjrt_return(st);
}

PJRT_Error *pjrt_buffer_opaque_device_memory_data_pointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *a)
{
    return pjrt_return(find_pointer(a->buffer, &a->device_memory_ptr));
}

PJRT_Error *pjrt_buffer_increase_external_reference_count(
    PJRT_Buffer_IncreaseExternalReferenceCount_Args *a)
{
    return pjrt_return(xpu_buffer_pin(a->buffer->x));
}

PJRT_Error *pjrt_buffer_decrease_external_reference_count(
    PJRT_Buffer_DecreaseExternalReferenceCount_Args *a)
{
    sd_status st = xpu_buffer_unpin(a->buffer->x);

    return pjrt_return(sd_note(st, "Attempting to decrease reference on a "
                                   "buffer with zero reference count"));
}
