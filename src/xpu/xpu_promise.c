/* Buffers whose data, memory or both come later, or belong to another buffer.
 * Whoever reads one waits for its ready event first, so a pointer written
 * before that event is set is seen.  They are marked `later`: work that waits
 * for one is kept off the streams, because what it waits for may be queued
 * after it. */
#include "xpu_buffer.h"
#include "xpu_device.h"

#include <stdlib.h>

sd_status xpu_buffer_promise(xpu_device *d, xpu_memory mem, sd_dtype t,
                             int rank, const int64_t *dim, xpu_event *ready,
                             xpu_buffer **out)
{
    sd_status st = xpu_buffer_alloc_with(d, mem, t, rank, dim, ready, out);

    if (!st)
        (*out)->later = true;
    return st;
}

sd_status xpu_buffer_hollow(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                            const int64_t *dim, xpu_event *ready,
                            xpu_buffer **out)
{
    size_t bytes;
    sd_status st = xpu_shape_bytes(t, rank, dim, &bytes);
    xpu_buffer *b;

    if (st)
        return st;
    if (!(b = xpu_buffer_make(d, mem, t, rank, dim, bytes, ready)))
        return sd_no_memory(sizeof *b);
    b->later = true;
    b->hollow = true;
    *out = b;
    return NULL;
}

/* What is ready has been written before; an error has no memory. */
bool xpu_buffer_is_placed(const xpu_buffer *b)
{
    return !b->hollow ||
           (xpu_event_is_ready(b->ready) && (b->ptr || !b->bytes));
}

/* ---- another buffer's memory ---- */

static void end_share(void *pointer, void *ctx)
{
    (void)pointer;
    xpu_buffer_unuse(ctx, true);
}

/* b's memory is that of `of`, whose use is b's now. */
static void adopt(xpu_buffer *b, xpu_buffer *of)
{
    b->ptr = of->ptr;
    b->on_delete = end_share;
    b->ctx = of;
}

typedef struct {
    xpu_buffer *hollow, *of; /* uses */
    xpu_event *placed;       /* a reference: set once hollow has its memory */
} fulfilment;

static void fulfil(void *ctx, sd_status st)
{
    fulfilment f = *(fulfilment *)ctx;

    free(ctx);
    if (st)
        xpu_buffer_unuse(f.of, true);
    else
        adopt(f.hollow, f.of);
    xpu_event_set(f.placed, st);
    xpu_event_release(f.placed);
    xpu_buffer_unuse(f.hollow, true);
}

static sd_status check_fit(const xpu_buffer *hollow, const xpu_buffer *of)
{
    if (hollow->bytes == of->bytes && hollow->dev == of->dev &&
        hollow->mem == of->mem)
        return NULL;
    return sd_error(SD_INVALID,
                    "a buffer of %zu bytes (device %d, %s) cannot stand for "
                    "one of %zu bytes (device %d, %s)",
                    of->bytes, of->dev->id, xpu_memory_name[of->mem],
                    hollow->bytes, hollow->dev->id,
                    xpu_memory_name[hollow->mem]);
}

/* The use of the hollow one keeps a share of a deleted one from being
 * forgotten. */
sd_status xpu_buffer_fulfil(xpu_buffer *hollow, xpu_buffer *of)
{
    fulfilment *f;
    sd_status st = check_fit(hollow, of);

    if (st)
        return st;
    if (!(f = malloc(sizeof *f)))
        return sd_no_memory(sizeof *f);
    if (!xpu_buffer_use(of, true)) {
        free(f);
        return sd_error(SD_INVALID, "the buffer was deleted or donated");
    }
    if (!xpu_buffer_hold(hollow)) { /* nobody can read it any more */
        xpu_buffer_unuse(of, true);
        free(f);
        xpu_event_set(hollow->ready, NULL);
        return NULL;
    }
    *f = (fulfilment){hollow, of, xpu_event_retain(hollow->ready)};
    if ((st = xpu_event_then(of->ready, fulfil, f))) {
        xpu_buffer_unuse(of, true);
        xpu_buffer_unuse(hollow, true);
        xpu_event_release(f->placed);
        free(f);
    }
    return st;
}

/* Of a hollow buffer that has no memory yet: a hollow one that follows it. */
static sd_status share_later(xpu_buffer *b, sd_dtype t, int rank,
                             const int64_t *dim, xpu_buffer **out)
{
    xpu_event *ready = xpu_event_create();
    xpu_buffer *s;
    sd_status st;

    if (!ready)
        return sd_no_memory(0);
    st = xpu_buffer_hollow(b->dev, b->mem, t, rank, dim, ready, &s);
    xpu_event_release(ready);
    if (st)
        return st;
    if ((st = xpu_buffer_fulfil(s, b))) {
        xpu_buffer_release(s);
        return st;
    }
    *out = s;
    return NULL;
}

sd_status xpu_buffer_share(xpu_buffer *b, sd_dtype t, int rank,
                           const int64_t *dim, xpu_buffer **out)
{
    size_t bytes;
    sd_status st = xpu_shape_bytes(t, rank, dim, &bytes);
    xpu_buffer *s;

    if (st)
        return st;
    if (bytes != b->bytes)
        return sd_error(SD_INVALID, "a buffer of %zu bytes seen as %zu bytes",
                        b->bytes, bytes);
    if (!xpu_event_is_ready(b->ready) && !b->ptr)
        return share_later(b, t, rank, dim, out);
    if (!xpu_buffer_use(b, true))
        return sd_error(SD_INVALID, "the buffer was deleted or donated");
    s = xpu_buffer_make(b->dev, b->mem, t, rank, dim, bytes, b->ready);
    if (!s) {
        xpu_buffer_unuse(b, true);
        return sd_no_memory(sizeof *s);
    }
    s->later = b->later;
    s->hollow = b->hollow;
    adopt(s, b);
    *out = s;
    return NULL;
}

/* ---- donation, and such as waits for something ---- */

typedef struct {
    xpu_event *data, *ready; /* references */
} dependent;

static void after_dependency(void *ctx, sd_status st)
{
    dependent d = *(dependent *)ctx;

    free(ctx);
    if (st)
        xpu_event_set(d.ready, st);
    else if ((st = xpu_event_chain(d.data, d.ready)))
        xpu_event_set(d.ready, st);
    xpu_event_release(d.data);
    xpu_event_release(d.ready);
}

/* b's memory under another type and shape: in place when nobody else looks at
 * it; else it stays b's and is not written again. */
static sd_status move(xpu_buffer *b, sd_dtype t, int rank, const int64_t *dim,
                      xpu_buffer **out)
{
    size_t bytes;
    sd_status st = xpu_shape_bytes(t, rank, dim, &bytes);
    xpu_buffer *s = NULL;

    if (!st && bytes == b->bytes && xpu_event_is_ready(b->ready)) {
        if (!(s = xpu_buffer_make(b->dev, b->mem, t, rank, dim, bytes,
                                  b->ready)))
            return sd_no_memory(sizeof *s);
        if (xpu_buffer_take(b)) {
            s->ptr = b->ptr;
            s->cls = b->cls;
            s->hollow = b->hollow;
            *out = s;
            return NULL;
        }
        xpu_buffer_release(s);
    }
    return st ? st : xpu_buffer_share(b, t, rank, dim, out);
}

/* ---- bitcasts ---- */

/* In an array packed as others hold it; here each element has its bytes.  What
 * does not fill a byte, pred and f6, has one there, too. */
static int packed_bits(sd_dtype t)
{
    int bits = sd_dtype_table[t].bits;

    return bits == 1 || bits == 6 ? 8 : bits;
}

static size_t packed_bytes(sd_dtype t, size_t n)
{
    return (n * (size_t)packed_bits(t) + 7) / 8;
}

/* Elements of less than a byte, the first in the low bits; back: from there. */
static void pack(sd_dtype t, size_t n, uint8_t *wide, uint8_t *packed,
                 bool back)
{
    int bits = packed_bits(t);
    uint8_t mask = (uint8_t)((1 << bits) - 1);

    for (size_t i = 0; i < n; i++) {
        uint8_t *p = &packed[i * (size_t)bits / 8];
        int at = (int)(i * (size_t)bits % 8);

        if (!back)
            *p = (uint8_t)(*p | (wide[i] & mask) << at);
        else if (sd_is_signed(t))
            sd_scalar_of_s64(t, *p >> at & mask, &wide[i]);
        else
            wide[i] = (uint8_t)(*p >> at & mask);
    }
}

/* By way of the host: the bytes are others. */
static sd_status repack(xpu_buffer *b, sd_dtype t, int rank, const int64_t *dim,
                        size_t bytes, xpu_buffer **out)
{
    size_t from = b->bytes / sd_dtype_bytes(b->dtype);
    size_t to = bytes / sd_dtype_bytes(t);
    size_t packed = packed_bytes(t, to);
    uint8_t *wide, *narrow, *x;
    xpu_event *done = NULL;
    sd_status st;

    if (packed_bytes(b->dtype, from) != packed)
        return sd_error(SD_INVALID, "a buffer of %zu bytes seen as %zu bytes",
                        packed_bytes(b->dtype, from), packed);
    wide = malloc(SD_MAX(b->bytes, bytes) + 1);
    narrow = calloc(1, packed + 1);
    if (!wide || !narrow) {
        st = sd_no_memory(bytes + packed);
        goto done;
    }
    x = packed_bits(b->dtype) < 8 ? wide : narrow;
    if ((st = xpu_buffer_to_host(b, 0, x, b->bytes, &done)) ||
        (st = xpu_event_wait(done)))
        goto done;
    if (x == wide)
        pack(b->dtype, from, wide, narrow, false);
    x = packed_bits(t) < 8 ? wide : narrow;
    if (x == wide)
        pack(t, to, wide, narrow, true);
    st = xpu_buffer_from_host(b->dev, b->mem, t, rank, dim, x, NULL, true, out,
                              NULL);
done:
    if (done)
        xpu_event_release(done);
    free(wide);
    free(narrow);
    return st;
}

sd_status xpu_buffer_bitcast(xpu_buffer *b, sd_dtype t, int rank,
                             const int64_t *dim, xpu_buffer **out)
{
    size_t bytes;
    sd_status st = xpu_shape_bytes(t, rank, dim, &bytes);
    int from = packed_bits(b->dtype), to = packed_bits(t);

    if (!st)
        st = t != b->dtype && (from < 8 || to < 8)
                 ? repack(b, t, rank, dim, bytes, out)
                 : move(b, t, rank, dim, out);
    if (!st)
        xpu_buffer_delete(b);
    return st;
}

static void move_back(xpu_buffer *b, xpu_buffer *s)
{
    if (s->cls >= 0) {
        s->cls = -1;
        xpu_buffer_untake(b);
    }
    xpu_buffer_release(s);
}

sd_status xpu_buffer_donate(xpu_buffer *b, xpu_event *dependency,
                            xpu_buffer **out)
{
    dependent *d = malloc(sizeof *d);
    xpu_event *ready = xpu_event_create();
    xpu_buffer *s;
    sd_status st;

    if (!d || !ready) {
        st = sd_no_memory(sizeof *d);
        goto fail;
    }
    if ((st = move(b, b->dtype, b->rank, b->dim, &s)))
        goto fail;
    *d = (dependent){s->ready, xpu_event_retain(ready)};
    s->ready = xpu_event_retain(ready);
    s->later = true;
    if ((st = xpu_event_then(dependency, after_dependency, d))) {
        xpu_event_release(d->data);
        xpu_event_release(d->ready);
        move_back(b, s);
        goto fail;
    }
    xpu_buffer_delete(b);
    xpu_event_release(ready);
    *out = s;
    return NULL;
fail:
    xpu_event_release(ready);
    free(d);
    return st;
}
