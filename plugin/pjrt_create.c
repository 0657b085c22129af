/* Buffers that no transfer makes: empty ones, views, errors, aliases of what
 * comes later, and buffers made of other buffers. */
#include "pjrt.h"

/* A handle for x (taken), unless st says that there is none. */
static PJRT_Error *hand_out(sd_status st, PJRT_Memory *m, xpu_buffer *x,
                            const int64_t *order, PJRT_Buffer **out)
{
    PJRT_Buffer *b;

    if (st)
        return pjrt_return(st);
    if (!(b = pjrt_buffer_wrap(m, x, order)))
        return pjrt_no_memory();
    *out = b;
    return NULL;
}

/* Where a call takes something of the caller's, the handle comes first: when
 * there is none, nothing has changed hands. */
static sd_status make_handle(PJRT_Memory *m, const pjrt_array *t,
                             PJRT_Buffer **out)
{
    *out = pjrt_buffer_handle(m, t->rank, t->order);
    return *out ? NULL : sd_no_memory(sizeof **out);
}

/* The handle b, unless st says that nothing is in it. */
static PJRT_Error *hand_out_filled(sd_status st, PJRT_Buffer *b,
                                   PJRT_Buffer **out)
{
    if (st)
        pjrt_buffer_free(b);
    else
        *out = b;
    return pjrt_return(st);
}

PJRT_Error *pjrt_client_create_uninitialized_buffer(
    PJRT_Client_CreateUninitializedBuffer_Args *a)
{
    PJRT_Memory *m = NULL;
    xpu_buffer *x = NULL;
    pjrt_array t;
    sd_status st;

    if (!(st = pjrt_place(a->device, a->memory, &m)) &&
        !(st = pjrt_array_read(a->shape_element_type, a->shape_dims,
                               a->shape_num_dims, a->shape_layout, &t)))
        st =
            xpu_buffer_alloc(m->device->x, m->kind, t.dtype, t.rank, t.dim, &x);
    return hand_out(st, m, x, st ? NULL : t.order, &a->buffer);
}

/* After an error the memory is still the caller's. */
static sd_status follow_stream(PJRT_Buffer *b, void *stream)
{
    sd_status st = xpu_buffer_follow(b->x, stream);

    if (st)
        xpu_buffer_disown(b->x);
    return st;
}

/* The stream that fills the memory is waited for, where the device has such
 * streams. */
PJRT_Error *pjrt_client_create_view_of_device_buffer(
    PJRT_Client_CreateViewOfDeviceBuffer_Args *a)
{
    PJRT_Memory *m = NULL;
    PJRT_Buffer *b = NULL;
    pjrt_array t;
    sd_status st;

    if (!(st = pjrt_place(a->device, PJRT_HAS(a, memory) ? a->memory : NULL,
                          &m)) &&
        !(st = pjrt_array_read(a->element_type, a->dims, a->num_dims, a->layout,
                               &t)) &&
        !(st = make_handle(m, &t, &b)))
        st = xpu_buffer_view(m->device->x, m->kind, t.dtype, t.rank, t.dim,
                             a->device_buffer_ptr, a->on_delete_callback,
                             a->on_delete_callback_arg, &b->x);
    if (!st && a->stream)
        st = follow_stream(b, (void *)a->stream);
    return hand_out_filled(st, b, &a->buffer);
}

/* ---- what fails, what comes later ---- */

/* A buffer without memory, and the event that ends its wait. */
static sd_status make_hollow(PJRT_Memory *m, const pjrt_array *t,
                             xpu_event **ready, xpu_buffer **out)
{
    xpu_event *e = xpu_event_create();
    sd_status st;

    if (!e)
        return sd_no_memory(0);
    st = xpu_buffer_hollow(m->device->x, m->kind, t->dtype, t->rank, t->dim, e,
                           out);
    if (st)
        xpu_event_release(e);
    else
        *ready = e;
    return st;
}

PJRT_Error *
pjrt_client_create_error_buffer(PJRT_Client_CreateErrorBuffer_Args *a)
{
    xpu_buffer *x = NULL;
    xpu_event *ready;
    pjrt_array t;
    sd_status st;

    if (a->error_code == PJRT_Error_Code_OK)
        return pjrt_return(sd_error(
            SD_INVALID, "PJRT_Client_CreateErrorBuffer: the code is OK"));
    if ((st = pjrt_array_read(a->shape_element_type, a->shape_dims,
                              a->shape_num_dims, a->shape_layout, &t)) ||
        (st = make_hollow(a->memory, &t, &ready, &x)))
        return pjrt_return(st);
    xpu_event_set(ready, pjrt_foreign(a->error_code, a->error_message,
                                      a->error_message_size));
    xpu_event_release(ready);
    return hand_out(NULL, a->memory, x, t.order, &a->buffer);
}

/* The promise to fulfil an alias; keeping or breaking it ends the handle. */
struct PJRT_FulfillAliasBufferCallback {
    xpu_buffer *x;    /* a reference */
    xpu_event *ready; /* a reference */
    int64_t order[SD_MAX_RANK];
};

static void free_promise(PJRT_FulfillAliasBufferCallback *f)
{
    xpu_buffer_release(f->x);
    xpu_event_release(f->ready);
    free(f);
}

PJRT_Error *
pjrt_client_create_alias_buffer(PJRT_Client_CreateAliasBuffer_Args *a)
{
    PJRT_FulfillAliasBufferCallback *f;
    PJRT_Error *error;
    pjrt_array t;
    sd_status st;

    if ((st = pjrt_array_read(a->shape_element_type, a->shape_dims,
                              a->shape_num_dims, a->shape_layout, &t)))
        return pjrt_return(st);
    if (!(f = PJRT_NEW(PJRT_FulfillAliasBufferCallback)))
        return pjrt_no_memory();
    if ((st = make_hollow(a->memory, &t, &f->ready, &f->x))) {
        free(f);
        return pjrt_return(st);
    }
    memcpy(f->order, t.order ? t.order : pjrt_row_major(t.rank),
           (size_t)t.rank * sizeof *f->order);
    error = hand_out(NULL, a->memory, xpu_buffer_retain(f->x), t.order,
                     &a->alias_buffer);
    if (error)
        free_promise(f);
    else
        a->fulfill_alias_buffer_cb = f;
    return error;
}

static sd_status check_twin(const PJRT_FulfillAliasBufferCallback *f,
                            const PJRT_Buffer *b)
{
    int rank = xpu_buffer_rank(f->x);

    if (rank == xpu_buffer_rank(b->x) &&
        xpu_buffer_dtype(f->x) == xpu_buffer_dtype(b->x) &&
        !memcmp(xpu_buffer_dims(f->x), xpu_buffer_dims(b->x),
                (size_t)rank * sizeof(int64_t)) &&
        pjrt_layout_same(f->order, b->order, rank))
        return NULL;
    return sd_error(SD_INVALID, "an alias buffer is fulfilled with an array of "
                                "another type, shape or layout");
}

/* An error is the alias's and, as in XLA, the call's; what cannot stand for
 * the alias is both too: nobody else will fulfil it. */
PJRT_Error *
pjrt_client_fulfill_alias_buffer(PJRT_Client_FulfillAliasBuffer_Args *a)
{
    PJRT_FulfillAliasBufferCallback *f = a->fulfill_alias_buffer_cb;
    sd_status st;

    if (a->status_code != PJRT_Error_Code_OK)
        st = pjrt_foreign(a->status_code, a->error_message,
                          a->error_message_size);
    else if (!a->buffer)
        st = sd_error(SD_INVALID, "PJRT_Client_FulfillAliasBuffer: neither a "
                                  "buffer nor an error is given");
    else if (!(st = check_twin(f, a->buffer)))
        st = xpu_buffer_fulfil(f->x, a->buffer->x);
    if (st)
        xpu_event_set(f->ready, sd_status_copy(st));
    free_promise(f);
    return pjrt_return(st);
}

/* ---- of other buffers ---- */

/* Layouts travel along. */
static PJRT_Error *copy(PJRT_Buffer *b, PJRT_Memory *to, PJRT_Buffer **out)
{
    xpu_buffer *x = NULL;
    sd_status st = xpu_buffer_copy(b->x, to->device->x, to->kind, &x);

    return hand_out(st, to, x, b->order, out);
}

PJRT_Error *pjrt_buffer_copy_to_device(PJRT_Buffer_CopyToDevice_Args *a)
{
    if (!a->dst_device->x)
        return pjrt_return(pjrt_device_is_here(a->dst_device));
    return copy(a->buffer, &a->dst_device->memory[XPU_MEM_DEVICE],
                &a->dst_buffer);
}

PJRT_Error *pjrt_buffer_copy_to_memory(PJRT_Buffer_CopyToMemory_Args *a)
{
    return copy(a->buffer, a->dst_memory, &a->dst_buffer);
}

/* The same memory under another type and shape; the argument is donated. */
PJRT_Error *pjrt_buffer_bitcast(PJRT_Buffer_Bitcast_Args *a)
{
    PJRT_Buffer *b = NULL;
    pjrt_array t;
    sd_status st;

    if (!(st = pjrt_array_read(a->element_type, a->dims, a->num_dims,
                               a->device_layout, &t)) &&
        !(st = make_handle(a->buffer->memory, &t, &b)))
        st = xpu_buffer_bitcast(a->buffer->x, t.dtype, t.rank, t.dim, &b->x);
    return hand_out_filled(st, b, &a->out_buffer);
}

static void
dependency_ready(PJRT_Buffer_DonateWithControlDependency_Callback_Args *a)
{
    xpu_event *dependency = a->callback_data;

    xpu_event_set(dependency,
                  a->error_code == PJRT_Error_Code_OK
                      ? NULL
                      : pjrt_foreign(a->error_code, a->error_message,
                                     a->error_message_size));
    xpu_event_release(dependency);
}

PJRT_Error *pjrt_buffer_donate_with_control_dependency(
    PJRT_Buffer_DonateWithControlDependency_Args *a)
{
    PJRT_Buffer *b = pjrt_buffer_handle(
        a->buffer->memory, xpu_buffer_rank(a->buffer->x), a->buffer->order);
    xpu_event *dependency = xpu_event_create();
    sd_status st;

    if (!b || !dependency)
        st = sd_no_memory(sizeof *b);
    else
        st = xpu_buffer_donate(a->buffer->x, dependency, &b->x);
    if (st) {
        xpu_event_release(dependency);
    } else {
        a->callback_data = dependency;
        a->dependency_ready_callback = dependency_ready;
    }
    return hand_out_filled(st, b, &a->out_buffer);
}
