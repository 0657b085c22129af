/* Buffers: the object and the life of its memory.  Delete changes the state
 * at once; the memory goes with the last use, pin or reference. */
#include "xpu_buffer.h"
#include "xpu_device.h"

#include <stdlib.h>

xpu_buffer *xpu_buffer_make(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                            const int64_t *dim, size_t bytes, xpu_event *ready)
{
    size_t dims = (size_t)rank * sizeof *dim;
    xpu_buffer *b = malloc(sizeof *b + dims);

    if (!b)
        return NULL;
    *b = (xpu_buffer){.dtype = t,
                      .rank = rank,
                      .cls = -1,
                      .mem = mem,
                      .dev = d,
                      .bytes = bytes,
                      .ready = xpu_event_retain(ready)};
    atomic_init(&b->refs, 1);
    xpu_client_retain(d->client);
    if (dims)
        memcpy(b->dim, dim, dims);
    return b;
}

static void free_memory(xpu_buffer *b)
{
    if (b->cls >= 0)
        xpu_memory_free(b->dev, b->mem, b->ptr, b->cls);
    else if (b->on_delete)
        b->on_delete(b->ptr, b->ctx);
}

static bool is_unheld(uint64_t hold)
{
    return hold == XPU_DELETED; /* and not taken, used or pinned */
}

xpu_buffer *xpu_buffer_retain(xpu_buffer *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void xpu_buffer_release(xpu_buffer *b)
{
    xpu_client *c;
    uint64_t hold;

    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    c = b->dev->client;
    hold = atomic_load(&b->hold);
    if (!(hold & XPU_TAKEN) && !is_unheld(hold))
        free_memory(b);
    xpu_event_release(b->ready);
    free(b);
    xpu_client_release(c);
}

void xpu_buffer_delete(xpu_buffer *b)
{
    uint64_t old = atomic_fetch_or(&b->hold, XPU_DELETED);

    if (!(old & XPU_DELETED) && is_unheld(old | XPU_DELETED))
        free_memory(b);
}

bool xpu_buffer_is_deleted(const xpu_buffer *b)
{
    return atomic_load_explicit(&b->hold, memory_order_acquire) &
           (XPU_DELETED | XPU_TAKEN);
}

/* Adds to the hold word unless the buffer is deleted or taken. */
static bool hold_more(xpu_buffer *b, uint64_t what)
{
    uint64_t old = atomic_load(&b->hold);

    do {
        if (old & (XPU_DELETED | XPU_TAKEN))
            return false;
    } while (!atomic_compare_exchange_weak(&b->hold, &old, old + what));
    return true;
}

static void hold_less(xpu_buffer *b, uint64_t what)
{
    if (is_unheld(atomic_fetch_sub(&b->hold, what) - what))
        free_memory(b);
}

bool xpu_buffer_use(xpu_buffer *b, bool foreign)
{
    if (!hold_more(b, foreign ? XPU_USE + XPU_FOREIGN : XPU_USE))
        return false;
    xpu_buffer_retain(b);
    return true;
}

bool xpu_buffer_hold(xpu_buffer *b)
{
    uint64_t old = atomic_load(&b->hold);

    do {
        if (is_unheld(old) || (old & XPU_TAKEN))
            return false;
    } while (!atomic_compare_exchange_weak(&b->hold, &old,
                                           old + XPU_USE + XPU_FOREIGN));
    xpu_buffer_retain(b);
    return true;
}

void xpu_buffer_unuse(xpu_buffer *b, bool foreign)
{
    hold_less(b, foreign ? XPU_USE + XPU_FOREIGN : XPU_USE);
    xpu_buffer_release(b);
}

bool xpu_buffer_take(xpu_buffer *b)
{
    uint64_t old = atomic_load(&b->hold);

    if (b->cls < 0)
        return false;
    do {
        if (old / XPU_PIN) /* the foreign uses and the states are above */
            return false;
    } while (!atomic_compare_exchange_weak(&b->hold, &old, old | XPU_TAKEN));
    return true;
}

void xpu_buffer_untake(xpu_buffer *b)
{
    uint64_t old = atomic_fetch_and(&b->hold, ~XPU_TAKEN);

    if (is_unheld(old & ~XPU_TAKEN)) /* deleted meanwhile */
        free_memory(b);
}

sd_status xpu_buffer_pin(xpu_buffer *b)
{
    if (!hold_more(b, XPU_PIN))
        return sd_error(SD_INVALID, "external reference to a deleted buffer");
    return NULL;
}

sd_status xpu_buffer_unpin(xpu_buffer *b)
{
    uint64_t old = atomic_load(&b->hold);

    do {
        if (!(old / XPU_PIN & XPU_FIELD))
            return sd_error(SD_INVALID, "the buffer has no external reference "
                                        "to give back");
    } while (!atomic_compare_exchange_weak(&b->hold, &old, old - XPU_PIN));
    if (is_unheld(old - XPU_PIN))
        free_memory(b);
    return NULL;
}

sd_status xpu_shape_bytes(sd_dtype t, int rank, const int64_t *dim, size_t *out)
{
    sd_status st = sd_shape_check(t, rank, dim);
    size_t n = sd_dtype_bytes(t);

    if (st)
        return st;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dim[i]; /* checked above */
    *out = n;
    return NULL;
}

sd_status xpu_buffer_alloc_with(xpu_device *d, xpu_memory mem, sd_dtype t,
                                int rank, const int64_t *dim, xpu_event *ready,
                                xpu_buffer **out)
{
    size_t bytes;
    sd_status st = xpu_shape_bytes(t, rank, dim, &bytes);
    xpu_buffer *b;
    void *p;
    int cls;

    if (st ||
        (st = xpu_memory_alloc(d, mem, (xpu_purpose){"arrays put there", ""},
                               bytes, &p, &cls)))
        return st;
    b = xpu_buffer_make(d, mem, t, rank, dim, bytes,
                        ready ? ready : d->client->ready);
    if (!b) {
        xpu_memory_free(d, mem, p, cls);
        return sd_no_memory(sizeof *b);
    }
    b->ptr = p;
    b->cls = cls;
    *out = b;
    return NULL;
}

sd_status xpu_buffer_alloc(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                           const int64_t *dim, xpu_buffer **out)
{
    return xpu_buffer_alloc_with(d, mem, t, rank, dim, NULL, out);
}

sd_status xpu_buffer_view(xpu_device *d, xpu_memory mem, sd_dtype t, int rank,
                          const int64_t *dim, void *pointer,
                          void (*on_delete)(void *pointer, void *ctx),
                          void *ctx, xpu_buffer **out)
{
    size_t bytes;
    sd_status st = xpu_shape_bytes(t, rank, dim, &bytes);
    xpu_buffer *b;

    if (st)
        return st;
    if (!pointer && bytes)
        return sd_error(SD_INVALID, "a view of %zu bytes at NULL", bytes);
    if ((uintptr_t)pointer % XPU_ALIGN)
        return sd_error(SD_INVALID,
                        "a view of memory at %p: not aligned to %u bytes",
                        pointer, XPU_ALIGN);
    b = xpu_buffer_make(d, mem, t, rank, dim, bytes, d->client->ready);
    if (!b)
        return sd_no_memory(sizeof *b);
    b->ptr = pointer;
    b->on_delete = on_delete;
    b->ctx = ctx;
    *out = b;
    return NULL;
}

void xpu_buffer_disown(xpu_buffer *b)
{
    b->on_delete = NULL;
}

const char *const xpu_memory_name[XPU_MEM_COUNT] = {
    [XPU_MEM_DEVICE] = "device",
    [XPU_MEM_PINNED_HOST] = "pinned_host",
    [XPU_MEM_UNPINNED_HOST] = "unpinned_host"};

bool xpu_memory_of_name(const char *name, xpu_memory *out)
{
    for (int i = 0; i < XPU_MEM_COUNT; i++)
        if (!strcmp(name, xpu_memory_name[i])) {
            *out = (xpu_memory)i;
            return true;
        }
    return false;
}

void xpu_buffer_set_dims(xpu_buffer *b, const int64_t *dim)
{
    for (int i = 0; i < b->rank; i++)
        b->dim[i] = dim[i];
}

xpu_memory xpu_buffer_memory(const xpu_buffer *b)
{
    return b->mem;
}

sd_dtype xpu_buffer_dtype(const xpu_buffer *b)
{
    return b->dtype;
}

int xpu_buffer_rank(const xpu_buffer *b)
{
    return b->rank;
}

const int64_t *xpu_buffer_dims(const xpu_buffer *b)
{
    return b->dim;
}

size_t xpu_buffer_bytes(const xpu_buffer *b)
{
    return b->bytes;
}

void *xpu_buffer_pointer(const xpu_buffer *b)
{
    return b->ptr;
}

xpu_event *xpu_buffer_ready(const xpu_buffer *b)
{
    return b->ready;
}
