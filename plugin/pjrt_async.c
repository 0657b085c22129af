/* Transfers in pieces: buffers are made first, handed out at once, and filled
 * by the framework bit by bit, each ready when its last piece has arrived. */
#include "pjrt.h"

#include <pthread.h>

typedef struct {
    PJRT_AsyncHostToDeviceTransferManager *manager;
    xpu_buffer *x;    /* a reference */
    xpu_event *ready; /* a reference; an error set first stays */
    int npending;     /* pieces under way */
    bool last;        /* no more pieces */
    bool retrieved;
    int64_t *order; /* NULL: row-major */
} slot;

struct PJRT_AsyncHostToDeviceTransferManager {
    _Atomic int refs; /* the handle, and pieces under way */
    pthread_mutex_t lock; /* of npending, last, retrieved */
    PJRT_Memory *memory;
    size_t n;
    slot at[];
};

static void release(PJRT_AsyncHostToDeviceTransferManager *m)
{
    if (atomic_fetch_sub(&m->refs, 1) != 1)
        return;
    for (size_t i = 0; i < m->n; i++) {
        xpu_buffer_release(m->at[i].x);
        xpu_event_release(m->at[i].ready);
        free(m->at[i].order);
    }
    pthread_mutex_destroy(&m->lock);
    pjrt_client_release(m->memory->device->client);
    free(m);
}

/* ---- making them ---- */

static sd_status fill_slot(slot *s, PJRT_Memory *m, const PJRT_ShapeSpec *spec,
                           const PJRT_Buffer_MemoryLayout *layout)
{
    pjrt_array t;
    sd_status st = pjrt_array_read(spec->element_type, spec->dims,
                                   spec->num_dims, layout, &t);
    size_t bytes = spec->num_dims * sizeof(int64_t);

    if (st)
        return st;
    if (t.order && !(s->order = malloc(bytes)))
        return sd_no_memory(bytes);
    if (t.order)
        memcpy(s->order, t.order, bytes);
    if (!(s->ready = xpu_event_create()))
        return sd_no_memory(0);
    return xpu_buffer_promise(m->device->x, m->kind, t.dtype, t.rank, t.dim,
                              s->ready, &s->x);
}

PJRT_Error *pjrt_client_create_buffers_for_async_host_to_device(
    PJRT_Client_CreateBuffersForAsyncHostToDevice_Args *a)
{
    size_t n = a->num_shape_specs, bytes;
    PJRT_AsyncHostToDeviceTransferManager *m;
    sd_status st = NULL;

    if (a->num_device_layouts && a->num_device_layouts != n)
        return pjrt_return(sd_error(SD_INVALID, "%zu layouts for %zu shapes",
                                    a->num_device_layouts, n));
    if (!sd_mul_size(n, sizeof *m->at, &bytes) ||
        !sd_add_size(bytes, sizeof *m, &bytes) || !(m = calloc(1, bytes)))
        return pjrt_no_memory();
    m->refs = 1;
    m->n = n;
    m->memory = a->memory;
    pjrt_client_retain(m->memory->device->client);
    pthread_mutex_init(&m->lock, NULL);
    for (size_t i = 0; i < n && !st; i++) {
        m->at[i].manager = m;
        st = fill_slot(&m->at[i], m->memory, &a->shape_specs[i],
                       a->num_device_layouts ? a->device_layouts[i] : NULL);
        st = sd_note(st, "buffer %zu", i);
    }
    if (st)
        release(m);
    else
        a->transfer_manager = m;
    return pjrt_return(st);
}

/* What was not filled never will be. */
PJRT_Error *pjrt_async_host_to_device_transfer_manager_destroy(
    PJRT_AsyncHostToDeviceTransferManager_Destroy_Args *a)
{
    PJRT_AsyncHostToDeviceTransferManager *m = a->transfer_manager;

    for (size_t i = 0; m && i < m->n; i++) {
        bool open;

        pthread_mutex_lock(&m->lock);
        open = !m->at[i].last;
        m->at[i].last = true;
        pthread_mutex_unlock(&m->lock);
        if (open)
            xpu_event_set(m->at[i].ready,
                          sd_error(SD_CANCELLED, "the transfer manager was "
                                                 "destroyed before the last "
                                                 "piece of the buffer came"));
    }
    if (m)
        release(m);
    return NULL;
}

static sd_status find(PJRT_AsyncHostToDeviceTransferManager *m, int i,
                      slot **out)
{
    if (i < 0 || (size_t)i >= m->n)
        return sd_error(SD_INVALID,
                        "buffer %d of a transfer manager of %zu buffers", i,
                        m->n);
    *out = &m->at[i];
    return NULL;
}

/* ---- filling them ---- */

/* A piece begins: the last one closes the buffer for more. */
static sd_status begin(slot *s, bool last)
{
    sd_status st = NULL;

    pthread_mutex_lock(&s->manager->lock);
    if (s->last) {
        st = sd_error(SD_PRECONDITION,
                      "a transfer to a buffer that had its last one");
    } else {
        s->last = last;
        s->npending++;
        atomic_fetch_add(&s->manager->refs, 1);
    }
    pthread_mutex_unlock(&s->manager->lock);
    return st;
}

static void end(void *ctx, sd_status st)
{
    slot *s = ctx;
    bool complete;

    pthread_mutex_lock(&s->manager->lock);
    complete = --s->npending == 0 && s->last;
    pthread_mutex_unlock(&s->manager->lock);
    if (st || complete)
        xpu_event_set(s->ready, st);
    release(s->manager);
}

/* The caller has begun the piece; from here on it ends by itself. */
static sd_status move(slot *s, const void *data, size_t offset, size_t bytes,
                      xpu_event **done)
{
    sd_status st = xpu_buffer_write(s->x, offset, data, bytes, done), told;

    if (st) {
        end(s, sd_status_copy(st));
        return st;
    }
    if ((told = xpu_event_then(*done, end, s))) { /* no memory to be told */
        sd_status_free(told);
        end(s, xpu_event_wait(*done));
    }
    return NULL;
}

PJRT_Error *pjrt_async_host_to_device_transfer_manager_transfer_data(
    PJRT_AsyncHostToDeviceTransferManager_TransferData_Args *a)
{
    xpu_event *done;
    sd_status st;
    slot *s;

    if ((st = find(a->transfer_manager, a->buffer_index, &s)) ||
        (st = pjrt_check_range(s->x, a->offset, a->transfer_size)) ||
        (st = begin(s, a->is_last_transfer)) ||
        (st = move(s, a->data, (size_t)a->offset, (size_t)a->transfer_size,
                   &done)))
        return pjrt_return(st);
    a->done_with_h2d_transfer = pjrt_event(done);
    return NULL;
}

static sd_status same_array(const slot *s, const pjrt_array *t)
{
    if (t->rank == xpu_buffer_rank(s->x) &&
        t->dtype == xpu_buffer_dtype(s->x) &&
        (!t->rank || !memcmp(t->dim, xpu_buffer_dims(s->x),
                             (size_t)t->rank * sizeof *t->dim)))
        return NULL;
    return sd_error(SD_INVALID, "a literal of another type or shape than its "
                                "buffer's");
}

static void free_copy(void *ctx, sd_status st)
{
    sd_status_free(st);
    free(ctx);
}

/* The literal is brought into the buffer's order first where that differs. */
static sd_status move_literal(slot *s, const void *data, const int64_t *order,
                              xpu_event **done)
{
    int rank = xpu_buffer_rank(s->x);
    size_t bytes = xpu_buffer_bytes(s->x);
    sd_status st;
    void *copy;

    if (pjrt_layout_same(order, s->order, rank))
        return move(s, data, 0, bytes, done);
    if (!(copy = malloc(SD_MAX(bytes, (size_t)1)))) {
        end(s, sd_no_memory(bytes));
        return sd_no_memory(bytes);
    }
    pjrt_layout_convert(copy, s->order, data, order,
                        sd_dtype_bytes(xpu_buffer_dtype(s->x)), rank,
                        xpu_buffer_dims(s->x));
    if ((st = move(s, copy, 0, bytes, done))) {
        free(copy);
        return st;
    }
    if ((st = xpu_event_then(*done, free_copy, copy)))
        free_copy(copy, xpu_event_wait(*done));
    sd_status_free(st);
    return NULL;
}

PJRT_Error *pjrt_async_host_to_device_transfer_manager_transfer_literal(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args *a)
{
    xpu_event *done;
    pjrt_array t;
    sd_status st;
    slot *s;

    if ((st = find(a->transfer_manager, a->buffer_index, &s)) ||
        (st = pjrt_array_read(a->shape_element_type, a->shape_dims,
                              a->shape_num_dims, a->shape_layout, &t)) ||
        (st = same_array(s, &t)) || (st = begin(s, true)) ||
        (st = move_literal(s, a->data, t.order, &done)))
        return pjrt_return(st);
    a->done_with_h2d_transfer = pjrt_event(done);
    return NULL;
}

PJRT_Error *pjrt_async_host_to_device_transfer_manager_set_buffer_error(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args *a)
{
    sd_status st;
    slot *s;

    if ((st = find(a->transfer_manager, a->buffer_index, &s)) ||
        (st = begin(s, true)))
        return pjrt_return(st);
    end(s,
        pjrt_foreign(a->error_code, a->error_message, a->error_message_size));
    return NULL;
}

/* ---- questions ---- */

PJRT_Error *pjrt_async_host_to_device_transfer_manager_retrieve_buffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args *a)
{
    PJRT_AsyncHostToDeviceTransferManager *m = a->transfer_manager;
    PJRT_Buffer *b;
    bool before;
    sd_status st;
    slot *s;

    if ((st = find(m, a->buffer_index, &s)))
        return pjrt_return(st);
    pthread_mutex_lock(&m->lock);
    before = s->retrieved;
    s->retrieved = true;
    pthread_mutex_unlock(&m->lock);
    if (before)
        return pjrt_return(sd_error(SD_PRECONDITION,
                                    "buffer %d was retrieved already",
                                    a->buffer_index));
    if (!(b = pjrt_buffer_wrap(m->memory, xpu_buffer_retain(s->x), s->order)))
        return pjrt_no_memory();
    a->buffer_out = b;
    return NULL;
}

PJRT_Error *pjrt_async_host_to_device_transfer_manager_device(
    PJRT_AsyncHostToDeviceTransferManager_Device_Args *a)
{
    a->device_out = a->transfer_manager->memory->device;
    return NULL;
}

PJRT_Error *pjrt_async_host_to_device_transfer_manager_buffer_count(
    PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args *a)
{
    a->buffer_count = a->transfer_manager->n;
    return NULL;
}

PJRT_Error *pjrt_async_host_to_device_transfer_manager_buffer_size(
    PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args *a)
{
    sd_status st;
    slot *s;

    if ((st = find(a->transfer_manager, a->buffer_index, &s)))
        return pjrt_return(st);
    a->buffer_size = xpu_buffer_bytes(s->x);
    return NULL;
}
