/* What the slots mean that a device leaves out of its table: xpu_ops.h has
 * each meaning beside its slot.  They are filled in once, when the device is
 * added. */
#include "xpu_device.h"

#include <assert.h>
#include <stdlib.h>

/* ---- of memory that the host sees ---- */

enum { LARGE_COPY = 1 << 20, COPY_PART = 1 << 18 }; /* bytes */

typedef struct {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
} copying;

static void copy_part(void *ctx, int64_t i, int worker)
{
    const copying *c = ctx;
    size_t at = (size_t)i * COPY_PART;

    (void)worker;
    memcpy(c->to + at, c->from + at, SD_MIN(c->bytes - at, (size_t)COPY_PART));
}

/* One thread gets half of the bandwidth of two cores, and a tenth of a
 * server's, so what is large is shared out. */
void xpu_copy_shared(xpu_device *d, void *to, const void *from, size_t bytes)
{
    copying c = {.to = to, .from = from, .bytes = bytes};

    if (bytes < LARGE_COPY)
        memcpy(to, from, bytes);
    else
        sd_pool_run(d->client->pool,
                    (int64_t)((bytes + COPY_PART - 1) / COPY_PART), copy_part,
                    &c);
}

static sd_status copy_now(xpu_device *d, xpu_queue q, void *to,
                          const void *from, size_t bytes)
{
    const uint8_t *t = to, *f = from;

    (void)q;
    if (t + bytes <= f || f + bytes <= t)
        xpu_copy_shared(d, to, from, bytes);
    else
        memmove(to, from, bytes);
    return NULL;
}

/* Not shared out: the pool is for whoever computes, who meets it busy
 * otherwise. */
static sd_status transfer_now(xpu_device *d, void *to, const void *from,
                              size_t bytes)
{
    (void)d;
    memcpy(to, from, bytes);
    return NULL;
}

/* ---- where there is nothing to do ---- */

static sd_status begin_nothing(xpu_device *d, xpu_module *m)
{
    (void)d;
    (void)m;
    return NULL;
}

static sd_status replay_nothing(const xpu_run *r, const thunk *first, int *n)
{
    (void)r;
    (void)first;
    *n = 0;
    return NULL;
}

static sd_status nothing_waits(xpu_device *d, xpu_queue q)
{
    (void)d;
    (void)q;
    return NULL;
}

static sd_status lend_nothing(xpu_device *d, void **stream)
{
    (void)d;
    *stream = NULL;
    return NULL;
}

static sd_status reclaim_nothing(xpu_device *d)
{
    (void)d;
    return NULL;
}

static sd_status card_of_nobody(xpu_device *d, uint8_t out[XPU_CARD])
{
    (void)d;
    memset(out, 0, XPU_CARD);
    return NULL;
}

static void close_nothing(xpu_device *d)
{
    (void)d;
}

/* ---- all ---- */

sd_status xpu_copy_through_host(xpu_device *to_dev, void *to,
                                xpu_device *from_dev, const void *from,
                                size_t bytes)
{
    void *stage;
    sd_status st;

    if (from_dev->ops->shared_memory)
        return to_dev->ops->copy_in(to_dev, to, from, bytes);
    if (to_dev->ops->shared_memory)
        return from_dev->ops->copy_out(from_dev, to, from, bytes);
    if (!(stage = malloc(bytes)))
        return sd_no_memory(bytes);
    if (!(st = from_dev->ops->copy_out(from_dev, stage, from, bytes)))
        st = to_dev->ops->copy_in(to_dev, to, stage, bytes);
    free(stage);
    return st;
}

xpu_device_ops xpu_ops_filled(const xpu_device_ops *ops)
{
    xpu_device_ops f = *ops;

    assert(f.shared_memory || (f.copy && f.copy_in && f.copy_out && f.peek));
#define FILL(slot, with) f.slot = f.slot ? f.slot : (with)
    FILL(copy, copy_now);
    FILL(copy_in, transfer_now);
    FILL(copy_out, transfer_now);
    FILL(copy_between, xpu_copy_through_host);
    FILL(peek, transfer_now);
    FILL(lend, lend_nothing);
    FILL(reclaim, reclaim_nothing);
    FILL(card, card_of_nobody);
    FILL(begin, begin_nothing);
    FILL(replay, replay_nothing);
    FILL(send, nothing_waits);
    FILL(sync, nothing_waits);
    FILL(close, close_nothing);
#undef FILL
    return f;
}
