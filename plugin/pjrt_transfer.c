/* Between host memory and buffers. */
#include "pjrt.h"

/* ---- from the host ---- */

/* Strides in bytes, one a dimension; none: dense row-major.  Those of a dense
 * row-major array are left out too, so that it is copied as a block. */
static sd_status read_strides(const PJRT_Client_BufferFromHostBuffer_Args *a,
                              sd_dtype t, const int64_t **out)
{
    int64_t dense = (int64_t)sd_dtype_bytes(t);
    bool same = true;

    *out = NULL;
    if (!a->byte_strides || !a->num_byte_strides)
        return NULL;
    if (a->num_byte_strides != a->num_dims)
        return sd_error(SD_INVALID, "%zu strides for %zu dimensions",
                        a->num_byte_strides, a->num_dims);
    for (size_t i = a->num_dims; i-- > 0;) {
        same &= a->dims[i] <= 1 || a->byte_strides[i] == dense;
        dense *= a->dims[i];
    }
    if (!same && dense)
        *out = a->byte_strides;
    return NULL;
}

/* Zero copy is not tried: memory that a user may change later must not be
 * seen through an array.  Both promises beyond the call only mean that the
 * copy may take its time. */
PJRT_Error *
pjrt_client_buffer_from_host_buffer(PJRT_Client_BufferFromHostBuffer_Args *a)
{
    bool during_call = a->host_buffer_semantics ==
                       PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    const int64_t *strides;
    xpu_event *done = NULL;
    PJRT_Memory *m;
    PJRT_Buffer *b;
    xpu_buffer *x;
    sd_dtype t;
    sd_status st;

    if ((st = pjrt_place(a->device, a->memory, &m)) ||
        (st = pjrt_shape(a->type, a->dims, a->num_dims, &t)) ||
        (st = pjrt_device_layout(a->device_layout, a->num_dims)) ||
        (st = read_strides(a, t, &strides)) ||
        (st = xpu_buffer_from_host(m->device->x, m->kind, t, (int)a->num_dims,
                                   a->dims, a->data, strides, during_call, &x,
                                   &done)))
        return pjrt_return(st);
    if (!done && !(done = pjrt_ready_event(NULL))) {
        xpu_buffer_release(x);
        return pjrt_no_memory();
    }
    if (!(b = pjrt_buffer_wrap(m, x))) {
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

/* Into another order of dimensions than ours: through a dense copy. */
typedef struct {
    uint8_t *dense, *dst;
    xpu_event *done;
    size_t size; /* of an element */
    int rank;
    int64_t dim[SD_MAX_RANK], stride[SD_MAX_RANK]; /* of dst, in elements */
} reorder;

static void run_reorder(void *ctx, sd_status st)
{
    reorder *r = ctx;
    int64_t at[SD_MAX_RANK] = {0}, to = 0, n = 1;
    const uint8_t *from = r->dense;

    for (int i = 0; i < r->rank; i++)
        n *= r->dim[i];
    for (int64_t k = 0; !st && k < n; k++, from += r->size) {
        memcpy(r->dst + (size_t)to * r->size, from, r->size);
        for (int i = r->rank - 1; i >= 0; i--) {
            to += r->stride[i];
            if (++at[i] < r->dim[i])
                break;
            to -= r->stride[i] * r->dim[i];
            at[i] = 0;
        }
    }
    xpu_event_set(r->done, st);
    xpu_event_release(r->done);
    free(r->dense);
    free(r);
}

static sd_status make_reorder(xpu_buffer *x, const int64_t *minor_to_major,
                              void *dst, reorder **out)
{
    reorder *r = PJRT_NEW(reorder);
    int64_t stride = 1;

    if (!r)
        return sd_no_memory(sizeof *r);
    r->rank = xpu_buffer_rank(x);
    r->dst = dst;
    r->size = sd_dtype_bytes(xpu_buffer_dtype(x));
    memcpy(r->dim, xpu_buffer_dims(x), (size_t)r->rank * sizeof *r->dim);
    for (int i = 0; i < r->rank; i++) {
        int64_t d = minor_to_major[i];

        if (d < 0 || d >= r->rank || r->stride[d]) {
            free(r);
            return sd_error(SD_INVALID,
                            "the host layout is no permutation: "
                            "dimension %" PRId64 " in place %d",
                            d, i);
        }
        r->stride[d] = stride;
        stride *= SD_MAX(r->dim[d], (int64_t)1);
    }
    r->dense = malloc(SD_MAX(xpu_buffer_bytes(x), (size_t)1));
    r->done = xpu_event_create();
    if (!r->dense || !r->done) {
        free(r->dense);
        xpu_event_release(r->done);
        free(r);
        return sd_no_memory(xpu_buffer_bytes(x));
    }
    *out = r;
    return NULL;
}

static sd_status to_host_reordered(xpu_buffer *x, const int64_t *order,
                                   void *dst, xpu_event **out)
{
    xpu_event *copied, *done;
    reorder *r = NULL;
    sd_status st = make_reorder(x, order, dst, &r);

    if (st)
        return st;
    st = xpu_buffer_to_host(x, 0, r->dense, xpu_buffer_bytes(x), &copied);
    if (st) {
        xpu_event_release(r->done);
        free(r->dense);
        free(r);
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

/* *order: NULL for row-major. */
static sd_status host_order(const PJRT_Buffer_MemoryLayout *l, size_t rank,
                            const int64_t **order)
{
    *order = NULL;
    if (!l)
        return NULL;
    if (l->type != PJRT_Buffer_MemoryLayout_Type_Tiled || l->tiled.num_tiles)
        return sd_error(SD_INVALID, "a host layout with strides or tiles");
    if (l->tiled.minor_to_major_size != rank)
        return sd_error(SD_INVALID,
                        "a host layout of %zu dimensions for rank "
                        "%zu",
                        l->tiled.minor_to_major_size, rank);
    for (size_t i = 0; i < rank; i++)
        if (l->tiled.minor_to_major[i] != (int64_t)(rank - 1 - i))
            *order = l->tiled.minor_to_major;
    return NULL;
}

PJRT_Error *pjrt_buffer_to_host_buffer(PJRT_Buffer_ToHostBuffer_Args *a)
{
    xpu_buffer *x = a->src->x;
    size_t bytes = xpu_buffer_bytes(x);
    const int64_t *order;
    xpu_event *done;
    sd_status st =
        host_order(a->host_layout, (size_t)xpu_buffer_rank(x), &order);

    if (st)
        return pjrt_return(st);
    if (!a->dst) {
        a->dst_size = bytes;
        a->event = NULL;
        return NULL;
    }
    if (a->dst_size < bytes)
        return pjrt_return(sd_error(SD_INVALID, "%zu bytes of room for %zu",
                                    a->dst_size, bytes));
    if (order)
        st = to_host_reordered(x, order, a->dst, &done);
    else
        st = xpu_buffer_to_host(x, 0, a->dst, bytes, &done);
    if (!st)
        a->event = pjrt_event(done);
    return pjrt_return(st);
}

static sd_status check_range(xpu_buffer *x, int64_t offset, int64_t size)
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
    sd_status st = check_range(x, a->offset, a->transfer_size);
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
    xpu_buffer *x; /* a reference */
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
        if ((st = pjrt_event_chain(copied, xpu_event_retain(p->done))))
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
    sd_status st = check_range(a->buffer->x, a->offset, a->transfer_size);
    promise *p;

    if (st)
        return pjrt_return(st);
    if (!(p = PJRT_NEW(promise)))
        return pjrt_no_memory();
    if (!(p->done = xpu_event_create())) {
        free(p);
        return pjrt_no_memory();
    }
    p->x = xpu_buffer_retain(a->buffer->x);
    p->offset = a->offset;
    p->size = a->transfer_size;
    a->event = pjrt_event(xpu_event_retain(p->done));
    a->callback_data = p;
    a->future_ready_callback = keep_promise;
    return NULL;
}
