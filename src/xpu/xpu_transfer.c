/* Transfers: host to device and back, device to device.  What is small and
 * ready is copied on the caller's thread.  The rest is put into the device's
 * queues for copies, where it waits for the mark of what makes its source
 * ready; on a device without marks it goes to the transfer stream.  Either way
 * copies overlap runs, and are another stream to donation: XPU_FOREIGN. */
#include "xpu_buffer.h"
#include "xpu_device.h"

#include <stdlib.h>

#define INLINE_BYTES ((size_t)1 << 20)

static sd_status copy_in(xpu_device *d, void *to, const void *from, size_t n)
{
    return n ? d->ops->copy_in(d, to, from, n) : NULL;
}

static sd_status copy_out(xpu_device *d, void *to, const void *from, size_t n)
{
    return n ? d->ops->copy_out(d, to, from, n) : NULL;
}

/* ---- strides ---- */

static void copy_elements(uint8_t *to, const uint8_t *from, int64_t n,
                          int64_t stride, size_t size)
{
#define COPY(type) \
    for (int64_t i = 0; i < n; i++) \
    memcpy(to + i * (int64_t)sizeof(type), from + i * stride, sizeof(type))
    switch (size) {
    case 1:
        COPY(uint8_t);
        break;
    case 2:
        COPY(uint16_t);
        break;
    case 4:
        COPY(uint32_t);
        break;
    case 8:
        COPY(uint64_t);
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            memcpy(to + (size_t)i * size, from + i * stride, size);
    }
#undef COPY
}

/* dim[0..rank) around pieces of `piece` dense bytes; returns the new end. */
static uint8_t *gather(uint8_t *to, const uint8_t *from, int rank,
                       const int64_t *dim, const int64_t *stride, size_t piece)
{
    if (!rank) {
        memcpy(to, from, piece);
        return to + piece;
    }
    if (rank == 1) {
        copy_elements(to, from, dim[0], stride[0], piece);
        return to + (size_t)dim[0] * piece;
    }
    for (int64_t i = 0; i < dim[0]; i++)
        to = gather(to, from + i * stride[0], rank - 1, dim + 1, stride + 1,
                    piece);
    return to;
}

/* Strips the inner dimensions that lie densely; *piece grows by them. */
static int outer_rank(int rank, const int64_t *dim, const int64_t *stride,
                      size_t *piece)
{
    while (rank &&
           (dim[rank - 1] == 1 || stride[rank - 1] == (int64_t)*piece)) {
        rank--;
        *piece *= (size_t)dim[rank];
    }
    return rank;
}

static sd_status copy_in_strided(xpu_buffer *b, const void *data, int rank,
                                 const int64_t *stride, size_t piece)
{
    uint8_t *dense;
    sd_status st;

    if (b->dev->ops->shared_memory) {
        gather(b->ptr, data, rank, b->dim, stride, piece);
        return NULL;
    }
    if (!(dense = malloc(b->bytes)))
        return sd_no_memory(b->bytes);
    gather(dense, data, rank, b->dim, stride, piece);
    st = copy_in(b->dev, b->ptr, dense, b->bytes);
    free(dense);
    return st;
}

/* ---- one transfer ---- */

typedef struct {
    xpu_flight flight; /* first; its task is that of the transfer stream, too */
    xpu_device *dev; /* whose queue or transfer stream it goes through */
    xpu_buffer *buffer; /* a foreign use */
    xpu_buffer *to; /* device to device: a foreign use */
    const void *from_host;
    void *to_host;
    size_t offset, bytes;
    xpu_event *done; /* a reference */
} transfer;

/* Between devices, or between memories of one. */
static sd_status copy_between(xpu_buffer *to, xpu_buffer *from)
{
    xpu_device *d = to->dev;

    if (!to->bytes)
        return NULL;
    if (xpu_device_is_like(d, from->dev))
        return d->ops->copy_between(d, to->ptr, from->dev, from->ptr,
                                    to->bytes);
    return xpu_copy_through_host(d, to->ptr, from->dev, from->ptr, to->bytes);
}

static void finish(transfer *t, sd_status st)
{
    xpu_event *done = t->done;

    xpu_buffer_unuse(t->buffer, true);
    if (t->to)
        xpu_buffer_unuse(t->to, true);
    free(t);
    xpu_event_set(done, st);
    xpu_event_release(done);
}

/* Done on return. */
static void run_transfer(xpu_task *task)
{
    transfer *t = (transfer *)task;
    xpu_buffer *b = t->buffer;
    sd_status st = NULL;

    if (t->from_host)
        st = copy_in(b->dev, (uint8_t *)b->ptr + t->offset, t->from_host,
                     t->bytes);
    else if ((st = xpu_event_wait(b->ready)))
        ;
    else if (t->to)
        st = copy_between(t->to, b);
    else
        st = copy_out(b->dev, t->to_host, (uint8_t *)b->ptr + t->offset,
                      t->bytes);
    finish(t, st);
}

/* ---- when it goes ---- */

static sd_status push(transfer *t)
{
    t->flight.task.run = run_transfer;
    return xpu_stream_push(&t->dev->transfer, &t->flight.task);
}

/* The source's error counts before what came of it. */
static void land(xpu_flight *f, sd_status st)
{
    transfer *t = (transfer *)f;
    sd_status bad = t->from_host ? NULL : xpu_event_error(t->buffer->ready);

    finish(t, sd_first(bad, st));
}

/* The source is ready now; st is of waiting for it. */
static void detour(xpu_flight *f, sd_status st)
{
    transfer *t = (transfer *)f;

    if (st || (st = push(t)))
        finish(t, st);
}

static sd_status put_in(const transfer *t, xpu_queue q)
{
    const xpu_device_ops *ops = t->dev->ops;
    uint8_t *at = (uint8_t *)t->buffer->ptr + t->offset;

    if (t->from_host)
        return ops->copy(t->dev, q, at, t->from_host, t->bytes);
    if (t->to)
        return ops->copy(t->dev, q, t->to->ptr, at, t->to->bytes);
    return ops->copy(t->dev, q, t->to_host, at, t->bytes);
}

/* Into the device's queue.  Where the driver cannot reach from one device to
 * another, the transfer stream goes through the host: then no mark tells when
 * the data are there. */
static sd_status launch(transfer *t)
{
    xpu_queue q = t->from_host ? XPU_IN : t->to ? XPU_PEER : XPU_OUT;
    xpu_event *done = t->done;
    sd_status st;

    t->flight.end = land;
    if ((st = xpu_flight_begin(&t->flight, t->dev, q)))
        return st;
    if (!t->from_host)
        st = xpu_flight_after(&t->flight, t->buffer->ready);
    if (!st && (st = put_in(t, q)) && t->to && st->code != SD_EXHAUSTED) {
        sd_status_free(st);
        t->flight.end = detour;
        done = NULL;
        st = NULL;
    }
    xpu_flight_launched(&t->flight, st, done);
    return NULL;
}

/* An error: it was not taken. */
static sd_status go(transfer *t)
{
    return t->dev->ops->record ? launch(t) : push(t);
}

/* The source is ready, or in error. */
static void queue(void *ctx, sd_status st)
{
    transfer *t = ctx;

    sd_status_free(st);
    if ((st = go(t)))
        finish(t, st);
}

/* Takes the uses that t names, in every outcome; done is t->done.  While it is
 * in no queue what makes the source ready, the stream is left free: it may be
 * another transfer. */
static sd_status start_transfer(xpu_device *d, const transfer *of, bool at_once)
{
    bool waits = !of->from_host && !xpu_event_is_queued(of->buffer->ready);
    transfer *t = malloc(sizeof *t);
    sd_status st;

    if (!t) {
        st = sd_no_memory(sizeof *t);
        goto fail;
    }
    *t = *of;
    t->dev = d;
    xpu_event_retain(t->done);
    if (at_once) {
        run_transfer(&t->flight.task);
        return NULL;
    }
    st = waits ? xpu_event_then(of->buffer->ready, queue, t) : go(t);
    if (!st)
        return NULL;
    xpu_event_release(t->done);
    free(t);
fail:
    xpu_buffer_unuse(of->buffer, true);
    if (of->to)
        xpu_buffer_unuse(of->to, true);
    return st;
}

/* ---- the calls ---- */

static sd_status fresh(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                       const int64_t *dim, xpu_buffer **out, xpu_event **ready)
{
    xpu_event *e = xpu_event_create();
    sd_status st;

    if (!e)
        return sd_no_memory(0);
    if ((st = xpu_buffer_alloc_with(d, mem, t, rank, dim, e, out))) {
        xpu_event_release(e);
        return st;
    }
    *ready = e;
    return NULL;
}

static sd_status from_host_later(xpu_device *d, xpu_memory mem, sd_dtype t,
                                 int rank, const int64_t *dim, const void *data,
                                 xpu_buffer **out, xpu_event **done)
{
    xpu_event *ready;
    sd_status st = fresh(d, mem, t, rank, dim, out, &ready);

    if (st)
        return st;
    xpu_buffer_use(*out, true);
    st = start_transfer(d,
                        &(transfer){.buffer = *out,
                                    .from_host = data,
                                    .bytes = (*out)->bytes,
                                    .done = ready},
                        false);
    if (st) {
        xpu_event_release(ready);
        xpu_buffer_release(*out);
        return st;
    }
    if (done)
        *done = ready;
    else
        xpu_event_release(ready);
    return NULL;
}

sd_status xpu_buffer_from_host(xpu_device *d, xpu_memory mem, sd_dtype t,
                               int rank, const int64_t *dim, const void *data,
                               const int64_t *strides, bool during_call,
                               xpu_buffer **out, xpu_event **done)
{
    xpu_buffer *b;
    size_t piece;
    int outer = 0;
    sd_status st;

    if ((st = sd_shape_check(t, rank, dim)))
        return st;
    piece = sd_dtype_bytes(t);
    for (int i = 0; i < rank; i++)
        if (!dim[i])
            strides = NULL; /* no element: nothing to stride over */
    if (strides)
        outer = outer_rank(rank, dim, strides, &piece);
    if (!outer && !during_call) {
        size_t bytes = sd_dtype_bytes(t);

        for (int i = 0; i < rank; i++)
            bytes *= (size_t)dim[i];
        if (bytes > INLINE_BYTES && data)
            return from_host_later(d, mem, t, rank, dim, data, out, done);
    }
    if ((st = xpu_buffer_alloc(d, mem, t, rank, dim, &b)))
        return st;
    if (b->bytes && !data)
        st =
            sd_error(SD_INVALID, "no data for a buffer of %zu bytes", b->bytes);
    else if (outer)
        st = copy_in_strided(b, data, outer, strides, piece);
    else
        st = copy_in(d, b->ptr, data, b->bytes);
    if (st) {
        xpu_buffer_release(b);
        return st;
    }
    *out = b;
    if (done)
        *done = xpu_event_retain(d->client->ready);
    return NULL;
}

static sd_status check_part(const xpu_buffer *b, size_t offset, size_t bytes)
{
    if (offset > b->bytes || bytes > b->bytes - offset)
        return sd_error(SD_INVALID,
                        "%zu bytes at offset %zu of a buffer of %zu bytes",
                        bytes, offset, b->bytes);
    return NULL;
}

/* t lacks its event, which *done gets; its buffer is held. */
static sd_status start_part(transfer *t, bool small, xpu_event **done)
{
    sd_status st;

    if (!(t->done = xpu_event_create())) {
        xpu_buffer_unuse(t->buffer, true);
        return sd_no_memory(0);
    }
    st = start_transfer(t->buffer->dev, t, small);
    if (st)
        xpu_event_release(t->done);
    else
        *done = t->done;
    return st;
}

sd_status xpu_buffer_write(xpu_buffer *b, size_t offset, const void *from,
                           size_t bytes, xpu_event **done)
{
    sd_status st = check_part(b, offset, bytes);

    if (st)
        return st;
    if (!bytes || !xpu_buffer_hold(b)) { /* deleted: nobody will read them */
        *done = xpu_event_retain(b->dev->client->ready);
        return NULL;
    }
    return start_part(
        &(transfer){
            .buffer = b, .from_host = from, .offset = offset, .bytes = bytes},
        bytes <= INLINE_BYTES, done);
}

sd_status xpu_buffer_to_host(xpu_buffer *b, size_t offset, void *dst,
                             size_t bytes, xpu_event **done)
{
    bool small = bytes <= INLINE_BYTES && xpu_event_is_ready(b->ready);
    sd_status st = check_part(b, offset, bytes);

    if (st)
        return st;
    if (!xpu_buffer_use(b, true))
        return sd_error(SD_INVALID, "reading a deleted buffer");
    return start_part(
        &(transfer){
            .buffer = b, .to_host = dst, .offset = offset, .bytes = bytes},
        small, done);
}

sd_status xpu_buffer_copy(xpu_buffer *b, xpu_device *d, xpu_memory mem,
                          xpu_buffer **out)
{
    bool small = b->bytes <= INLINE_BYTES && xpu_event_is_ready(b->ready);
    xpu_event *ready;
    xpu_buffer *to;
    sd_status st;

    if (!xpu_buffer_use(b, true))
        return sd_error(SD_INVALID, "copying a deleted buffer");
    if ((st = fresh(d, mem, b->dtype, b->rank, b->dim, &to, &ready))) {
        xpu_buffer_unuse(b, true);
        return st;
    }
    xpu_buffer_use(to, true);
    to->later = b->later; /* so is what comes of it: xpu_call_must_park */
    st = start_transfer(d, &(transfer){.buffer = b, .to = to, .done = ready},
                        small);
    xpu_event_release(ready);
    if (st)
        xpu_buffer_release(to);
    else
        *out = to;
    return st;
}
