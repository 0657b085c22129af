/* Between host memory and buffers. */
#include "pjrt.h"

/* ---- from the host ---- */

/* Where the data lie: dimensions and strides in bytes in the order that the
 * buffer is to have, the slowest first. */
typedef struct {
    int64_t dim[SD_MAX_RANK], stride[SD_MAX_RANK];
    bool dense; /* as in the buffer: one block */
} source;

static sd_status read_strides(const PJRT_Client_BufferFromHostBuffer_Args *a,
                              const pjrt_array *t, source *out)
{
    int64_t dense[SD_MAX_RANK], step = (int64_t)sd_dtype_bytes(t->dtype);
    const int64_t *given = a->byte_strides;
    bool empty = false;

    if (!given || !a->num_byte_strides)
        given = dense;
    else if (a->num_byte_strides != a->num_dims)
        return sd_error(SD_INVALID, "%zu strides for %zu dimensions",
                        a->num_byte_strides, a->num_dims);
    for (int i = t->rank - 1; i >= 0; i--) {
        dense[i] = step;
        step *= t->dim[i];
        empty |= !t->dim[i];
    }
    pjrt_layout_permute(t->order, t->rank, t->dim, out->dim);
    pjrt_layout_permute(t->order, t->rank, given, out->stride);
    out->dense = true;
    step = (int64_t)sd_dtype_bytes(t->dtype);
    for (int i = t->rank - 1; i >= 0; i--) {
        out->dense &= out->dim[i] <= 1 || out->stride[i] == step;
        step *= out->dim[i];
    }
    out->dense |= empty;
    return NULL;
}

/* Zero copy is not tried: memory that a user may change later must not be
 * seen through an array.  The promises beyond the call only mean that the copy
 * may take its time. */
PJRT_Error *
pjrt_client_buffer_from_host_buffer(PJRT_Client_BufferFromHostBuffer_Args *a)
{
    bool during_call = a->host_buffer_semantics ==
                       PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    source from;
    xpu_event *done = NULL;
    PJRT_Memory *m;
    PJRT_Buffer *b;
    xpu_buffer *x;
    pjrt_array t;
    sd_status st;

    if ((st = pjrt_place(a->device, a->memory, &m)) ||
        (st = pjrt_array_read(a->type, a->dims, a->num_dims, a->device_layout,
                              &t)) ||
        (st = read_strides(a, &t, &from)) ||
        (st = xpu_buffer_from_host(
             m->device->x, m->kind, t.dtype, t.rank, from.dim, a->data,
             from.dense ? NULL : from.stride, during_call, &x, &done)))
        return pjrt_return(st);
    xpu_buffer_set_dims(x, t.dim);
    if (!done && !(done = pjrt_ready_event(NULL))) {
        xpu_buffer_release(x);
        return pjrt_no_memory();
    }
    if (!(b = pjrt_buffer_wrap(m, x, t.order))) {
        if (!during_call) /* their memory may still be read */
            sd_status_free(xpu_event_wait(done));
        xpu_event_release(done);
        return pjrt_no_memory();
    }
    a->done_with_host_buffer = pjrt_event(done);
    a->buffer = b;
    return NULL;
}

/* ---- to the host ---- */

/* Into another order of dimensions than the buffer's: through a dense copy. */
typedef struct {
    uint8_t *dense, *dst;
    xpu_event *done;
    size_t size; /* of an element */
    int rank;
    int64_t dim[SD_MAX_RANK], from[SD_MAX_RANK], to[SD_MAX_RANK];
} reorder;

static void free_reorder(reorder *r)
{
    if (!r)
        return;
    xpu_event_release(r->done);
    free(r->dense);
    free(r);
}

static void run_reorder(void *ctx, sd_status st)
{
    reorder *r = ctx;

    if (!st)
        pjrt_layout_convert(r->dst, r->to, r->dense, r->from, r->size, r->rank,
                            r->dim);
    xpu_event_set(r->done, st);
    free_reorder(r);
}

static reorder *make_reorder(const PJRT_Buffer *b, const int64_t *to, void *dst)
{
    int rank = xpu_buffer_rank(b->x);
    size_t bytes = (size_t)rank * sizeof(int64_t);
    const int64_t *from = b->order;
    reorder *r = PJRT_NEW(reorder);

    if (!r)
        return NULL;
    r->rank = rank;
    r->dst = dst;
    r->size = sd_dtype_bytes(xpu_buffer_dtype(b->x));
    memcpy(r->dim, xpu_buffer_dims(b->x), bytes);
    memcpy(r->from, from ? from : pjrt_row_major(rank), bytes);
    memcpy(r->to, to, bytes);
    r->dense = malloc(SD_MAX(xpu_buffer_bytes(b->x), (size_t)1));
    r->done = xpu_event_create();
    if (r->dense && r->done)
        return r;
    free_reorder(r);
    return NULL;
}

sd_status pjrt_to_host_reordered(const PJRT_Buffer *b, const int64_t *to,
                                 void *dst, xpu_event **out)
{
    size_t bytes = xpu_buffer_bytes(b->x);
    reorder *r = make_reorder(b, to, dst);
    xpu_event *copied, *done;
    sd_status st;

    if (!r)
        return sd_no_memory(bytes);
    if ((st = xpu_buffer_to_host(b->x, 0, r->dense, bytes, &copied))) {
        free_reorder(r);
        return st;
    }
    done = xpu_event_retain(r->done);
    if ((st = xpu_event_then(copied, run_reorder, r)))
        run_reorder(r, xpu_event_wait(copied)); /* no memory to be called */
    sd_status_free(st);
    xpu_event_release(copied);
    *out = done;
    return NULL;
}

/* Where the caller's order is not the buffer's: *to says it, else it is NULL.
 * No layout asks for the buffer's own. */
static sd_status host_order(const PJRT_Buffer *b,
                            const PJRT_Buffer_MemoryLayout *l,
                            const int64_t **to)
{
    int rank = xpu_buffer_rank(b->x);
    const int64_t *order;
    sd_status st = pjrt_layout_read(l, (size_t)rank, "host", &order);

    *to = NULL;
    if (!st && l && !pjrt_layout_same(b->order, order, rank))
        *to = order ? order : pjrt_row_major(rank);
    return st;
}

PJRT_Error *pjrt_buffer_to_host_buffer(PJRT_Buffer_ToHostBuffer_Args *a)
{
    size_t bytes = xpu_buffer_bytes(a->src->x);
    const int64_t *to;
    xpu_event *done;
    sd_status st = host_order(a->src, a->host_layout, &to);

    if (st)
        return pjrt_return(st);
    if (!a->dst) {
        a->dst_size = bytes;
        a->event = NULL;
        return NULL;
    }
    if (a->dst_size < bytes)
        return pjrt_return(
            sd_error(SD_INVALID,
                     "PJRT_Buffer_ToHostBuffer: dst_size is %zu, the array "
                     "has %zu bytes",
                     a->dst_size, bytes));
    if (to)
        st = pjrt_to_host_reordered(a->src, to, a->dst, &done);
    else
        st = xpu_buffer_to_host(a->src->x, 0, a->dst, bytes, &done);
    if (!st)
        a->event = pjrt_event(done);
    return pjrt_return(st);
}

sd_status pjrt_check_range(const xpu_buffer *x, int64_t offset, int64_t size)
{
    size_t bytes = xpu_buffer_bytes(x);

    if (offset >= 0 && size >= 0 && (uint64_t)offset <= bytes &&
        (uint64_t)size <= bytes - (uint64_t)offset)
        return NULL;
    return sd_error(SD_INVALID,
                    "a copy of %" PRId64 " bytes at offset %" PRId64
                    " of a buffer of %zu bytes",
                    size, offset, bytes);
}

/* A range outside the buffer is the event's error, not the call's. */
PJRT_Error *pjrt_buffer_copy_raw_to_host(PJRT_Buffer_CopyRawToHost_Args *a)
{
    xpu_buffer *x = a->buffer->x;
    sd_status st = pjrt_check_range(x, a->offset, a->transfer_size);
    xpu_event *done = NULL;

    if (st) {
        if (!(done = pjrt_ready_event(st)))
            return pjrt_no_memory();
    } else if ((st = xpu_buffer_to_host(x, (size_t)a->offset, a->dst,
                                        (size_t)a->transfer_size, &done))) {
        return pjrt_return(st);
    }
    a->event = pjrt_event(done);
    return NULL;
}

/* The destination is promised: it comes with the callback, once. */
typedef struct {
    xpu_buffer *x; /* a share: deleting the buffer does not break it */
    int64_t offset, size;
    xpu_event *done;
} promise;

static void keep_promise(PJRT_Buffer_CopyRawToHostFuture_Callback_Args *a)
{
    promise *p = a->callback_data;
    xpu_event *copied;
    sd_status st;

    if (a->error_code != PJRT_Error_Code_OK)
        st = pjrt_foreign(a->error_code, a->error_message,
                          a->error_message_size);
    else
        st = xpu_buffer_to_host(p->x, (size_t)p->offset, a->dst,
                                (size_t)p->size, &copied);
    if (st || a->error_code != PJRT_Error_Code_OK) {
        xpu_event_set(p->done, st);
        xpu_event_release(p->done);
    } else {
        if ((st = xpu_event_chain(copied, p->done)))
            xpu_event_set(p->done, st);
        xpu_event_release(p->done);
        xpu_event_release(copied);
    }
    xpu_buffer_release(p->x);
    free(p);
}

PJRT_Error *
pjrt_buffer_copy_raw_to_host_future(PJRT_Buffer_CopyRawToHostFuture_Args *a)
{
    xpu_buffer *x = a->buffer->x;
    sd_status st = pjrt_check_range(x, a->offset, a->transfer_size);
    promise *p;

    if (st)
        return pjrt_return(st);
    if (!(p = PJRT_NEW(promise)))
        return pjrt_no_memory();
    if (!(p->done = xpu_event_create()))
        st = sd_no_memory(0);
    else
        st = xpu_buffer_share(x, xpu_buffer_dtype(x), xpu_buffer_rank(x),
                              xpu_buffer_dims(x), &p->x);
    if (st) {
        xpu_event_release(p->done);
        free(p);
        return pjrt_return(st);
    }
    p->offset = a->offset;
    p->size = a->transfer_size;
    a->event = pjrt_event(xpu_event_retain(p->done));
    a->callback_data = p;
    a->future_ready_callback = keep_promise;
    return NULL;
}
