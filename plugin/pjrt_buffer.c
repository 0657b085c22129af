/* Buffers: a handle over xpu's, with the memory it lies in. */
#include "pjrt.h"

PJRT_Buffer *pjrt_buffer_wrap(PJRT_Memory *m, xpu_buffer *x)
{
    PJRT_Buffer *b = malloc(sizeof *b);

    if (!b) {
        xpu_buffer_release(x);
        return NULL;
    }
    b->x = x;
    b->memory = m;
    return b;
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

sd_status pjrt_device_layout(const PJRT_Buffer_MemoryLayout *l, size_t rank)
{
    if (!l)
        return NULL;
    if (l->type != PJRT_Buffer_MemoryLayout_Type_Tiled)
        return sd_error(SD_INVALID, "a device layout given by strides");
    if (l->tiled.num_tiles)
        return sd_error(SD_INVALID, "a device layout with %zu tiles",
                        l->tiled.num_tiles);
    if (l->tiled.minor_to_major_size != rank)
        return sd_error(SD_INVALID, "a layout of %zu dimensions for rank %zu",
                        l->tiled.minor_to_major_size, rank);
    for (size_t i = 0; i < rank; i++)
        if (l->tiled.minor_to_major[i] != (int64_t)(rank - 1 - i))
            return sd_error(SD_UNIMPLEMENTED,
                            "a device layout that is not "
                            "row-major: dimension %" PRId64 " in place %zu",
                            l->tiled.minor_to_major[i], i);
    return NULL;
}

/* A memory, or a device's default one. */
sd_status pjrt_place(PJRT_Device *d, PJRT_Memory *m, PJRT_Memory **out)
{
    if (!m && !d)
        return sd_error(SD_INVALID, "neither a device nor a memory is given");
    *out = m ? m : &d->memory[XPU_MEM_DEVICE];
    return NULL;
}

PJRT_Error *pjrt_buffer_destroy(PJRT_Buffer_Destroy_Args *a)
{
    if (a->buffer) {
        xpu_buffer_release(a->buffer->x);
        free(a->buffer);
    }
    return NULL;
}

PJRT_Error *pjrt_buffer_delete(PJRT_Buffer_Delete_Args *a)
{
    xpu_buffer_delete(a->buffer->x);
    return NULL;
}

PJRT_Error *pjrt_buffer_is_deleted(PJRT_Buffer_IsDeleted_Args *a)
{
    a->is_deleted = xpu_buffer_is_deleted(a->buffer->x);
    return NULL;
}

PJRT_Error *pjrt_buffer_element_type(PJRT_Buffer_ElementType_Args *a)
{
    a->type =
        (PJRT_Buffer_Type)sd_dtype_table[xpu_buffer_dtype(a->buffer->x)].pjrt;
    return NULL;
}

PJRT_Error *pjrt_buffer_dimensions(PJRT_Buffer_Dimensions_Args *a)
{
    a->dims = xpu_buffer_dims(a->buffer->x);
    a->num_dims = (size_t)xpu_buffer_rank(a->buffer->x);
    return NULL;
}

PJRT_Error *
pjrt_buffer_unpadded_dimensions(PJRT_Buffer_UnpaddedDimensions_Args *a)
{
    a->unpadded_dims = xpu_buffer_dims(a->buffer->x);
    a->num_dims = (size_t)xpu_buffer_rank(a->buffer->x);
    return NULL;
}

/* Sizes are known when a program is compiled: none is dynamic. */
PJRT_Error *pjrt_buffer_dynamic_dimension_indices(
    PJRT_Buffer_DynamicDimensionIndices_Args *a)
{
    a->dynamic_dim_indices = NULL;
    a->num_dynamic_dims = 0;
    return NULL;
}

PJRT_Error *pjrt_buffer_get_memory_layout(PJRT_Buffer_GetMemoryLayout_Args *a)
{
    static const int64_t down[SD_MAX_RANK] = {
        31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
        15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0};
    size_t rank = (size_t)xpu_buffer_rank(a->buffer->x);

    a->layout = (PJRT_Buffer_MemoryLayout){
        .struct_size = PJRT_Buffer_MemoryLayout_STRUCT_SIZE,
        .type = PJRT_Buffer_MemoryLayout_Type_Tiled,
        .tiled = {.struct_size = PJRT_Buffer_MemoryLayout_Tiled_STRUCT_SIZE,
                  .minor_to_major = down + SD_MAX_RANK - rank,
                  .minor_to_major_size = rank}};
    return NULL;
}

PJRT_Error *
pjrt_buffer_on_device_size_in_bytes(PJRT_Buffer_OnDeviceSizeInBytes_Args *a)
{
    a->on_device_size_in_bytes = xpu_buffer_bytes(a->buffer->x);
    return NULL;
}

PJRT_Error *pjrt_buffer_device(PJRT_Buffer_Device_Args *a)
{
    a->device = a->buffer->memory->device;
    return NULL;
}

PJRT_Error *pjrt_buffer_memory(PJRT_Buffer_Memory_Args *a)
{
    a->memory = a->buffer->memory;
    return NULL;
}

/* Yes makes frameworks read the memory in place and hold it meanwhile, which
 * stops donation; and the guard that watches for transfers to the host looks
 * away.  So only memory that is the host's by name. */
PJRT_Error *pjrt_buffer_is_on_cpu(PJRT_Buffer_IsOnCpu_Args *a)
{
    a->is_on_cpu = a->buffer->memory->kind == XPU_MEM_PINNED_HOST;
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

PJRT_Error *pjrt_buffer_unsafe_pointer(PJRT_Buffer_UnsafePointer_Args *a)
{
    a->buffer_pointer = (uintptr_t)xpu_buffer_pointer(a->buffer->x);
    return NULL;
}

PJRT_Error *pjrt_buffer_opaque_device_memory_data_pointer(
    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args *a)
{
    if (xpu_buffer_is_deleted(a->buffer->x))
        return pjrt_return(sd_error(SD_INVALID, "the buffer was deleted or "
                                                "donated"));
    a->device_memory_ptr = xpu_buffer_pointer(a->buffer->x);
    return NULL;
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

/* ---- new ones ---- */

static PJRT_Error *finish(sd_status st, PJRT_Memory *m, xpu_buffer *x,
                          PJRT_Buffer **out)
{
    PJRT_Buffer *b;

    if (st)
        return pjrt_return(st);
    if (!(b = pjrt_buffer_wrap(m, x)))
        return pjrt_no_memory();
    *out = b;
    return NULL;
}

PJRT_Error *pjrt_client_create_uninitialized_buffer(
    PJRT_Client_CreateUninitializedBuffer_Args *a)
{
    PJRT_Memory *m = NULL;
    xpu_buffer *x = NULL;
    sd_dtype t;
    sd_status st;

    if (!(st = pjrt_place(a->device, a->memory, &m)) &&
        !(st = pjrt_shape(a->shape_element_type, a->shape_dims,
                          a->shape_num_dims, &t)) &&
        !(st = pjrt_device_layout(a->shape_layout, a->shape_num_dims)))
        st = xpu_buffer_alloc(m->device->x, m->kind, t, (int)a->shape_num_dims,
                              a->shape_dims, &x);
    return finish(st, m, x, &a->buffer);
}

PJRT_Error *pjrt_client_create_view_of_device_buffer(
    PJRT_Client_CreateViewOfDeviceBuffer_Args *a)
{
    PJRT_Memory *m = NULL;
    xpu_buffer *x = NULL;
    sd_dtype t;
    sd_status st;

    if (!(st = pjrt_place(a->device, PJRT_HAS(a, memory) ? a->memory : NULL,
                          &m)) &&
        !(st = pjrt_shape(a->element_type, a->dims, a->num_dims, &t)) &&
        !(st = pjrt_device_layout(a->layout, a->num_dims)))
        st =
            xpu_buffer_view(m->device->x, m->kind, t, (int)a->num_dims, a->dims,
                            a->device_buffer_ptr, a->on_delete_callback,
                            a->on_delete_callback_arg, &x);
    return finish(st, m, x, &a->buffer);
}

static PJRT_Error *copy(PJRT_Buffer *b, PJRT_Memory *to, PJRT_Buffer **out)
{
    xpu_buffer *x = NULL;
    sd_status st = xpu_buffer_copy(b->x, to->device->x, to->kind, &x);

    return finish(st, to, x, out);
}

PJRT_Error *pjrt_buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args *a)
{
    return copy(a->buffer, &a->dst_device->memory[XPU_MEM_DEVICE],
                &a->dst_buffer);
}

PJRT_Error *pjrt_buffer_copy_to_memory(PJRT_Buffer_CopyToMemory_Args *a)
{
    return copy(a->buffer, a->dst_memory, &a->dst_buffer);
}
