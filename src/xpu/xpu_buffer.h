/* xpu_buffer: buffers and events from the inside.
 *
 * One word of a buffer, `hold`, says who needs its memory, so that whoever goes
 * last sees that he is the last:
 *
 *   bits  0 to 19  pending uses           XPU_USE
 *   bits 20 to 39  pins                   XPU_PIN
 *   bits 40 to 59  foreign uses: outside  XPU_FOREIGN
 *                  the compute stream
 *   bit  62        deleted                XPU_DELETED
 *   bit  63        taken                  XPU_TAKEN */
#ifndef XPU_BUFFER_H
#define XPU_BUFFER_H

#include "xpu_ops.h"

/* ---- events ---- */

/* Waits until e is ready; the error stays the event's. */
const sd_error *xpu_event_await(xpu_event *e);
/* Notes that the work which will set e is in a device's queue, before the mark
 * m (retained). */
void xpu_event_queued(xpu_event *e, xpu_mark *m);
/* A reference to that mark; NULL: e is ready, or its work is in no queue
 * yet. */
xpu_mark *xpu_event_mark(xpu_event *e);
/* Is its work in a queue, or e ready?  await_queued waits until it is. */
bool xpu_event_is_queued(const xpu_event *e);
void xpu_event_await_queued(xpu_event *e);

/* ---- buffers ---- */

#define XPU_USE 1ull
#define XPU_PIN (1ull << 20)
#define XPU_FOREIGN (1ull << 40)
#define XPU_FIELD 0xfffffull
#define XPU_DELETED (1ull << 62)
#define XPU_TAKEN (1ull << 63) /* another buffer has its memory now */

struct xpu_buffer {
    _Atomic uint64_t hold;
    _Atomic uint32_t refs;
    sd_dtype dtype;
    int rank, cls;         /* cls -1: a view */
    xpu_memory mem;
    xpu_device *dev;       /* borrowed */
    void *ptr;
    size_t bytes;
    bool later;            /* the work that makes it ready may be queued after
                              work that uses it */
    bool hollow;           /* made without memory, which it gets, if at all, when
                              it becomes ready */
    xpu_event *ready;      /* owned reference */
    void (*on_delete)(void *pointer, void *ctx);
    void *ctx;
    int64_t dim[];
};
/* A buffer without memory (ptr NULL); ready is retained.  NULL: no host
 * memory. */
xpu_buffer *xpu_buffer_make(xpu_device *d, xpu_memory mem, sd_dtype t,
                            int rank, const int64_t *dim, size_t bytes,
                            xpu_event *ready);
/* A buffer with memory; it is ready when `ready` (retained) is, NULL: at
 * once. */
sd_status xpu_buffer_alloc_with(xpu_device *d, xpu_memory mem, sd_dtype t,
                                int rank, const int64_t *dim, xpu_event *ready,
                                xpu_buffer **out);
sd_status xpu_shape_bytes(sd_dtype t, int rank, const int64_t *dim,
                          size_t *out); /* checks them */
/* Begins a use, which keeps the object and its memory until unuse.  foreign: by
 * something else than the compute stream.  False: it is deleted. */
bool xpu_buffer_use(xpu_buffer *b, bool foreign);
void xpu_buffer_unuse(xpu_buffer *b, bool foreign);
/* Begins a foreign use of a buffer even if it is deleted, as long as somebody
 * still needs its memory; false: nobody does. */
bool xpu_buffer_hold(xpu_buffer *b);
/* Marks it deleted, and its memory as another buffer's.  False, and nothing
 * happens, when it is deleted, pinned, a view, or has a foreign use. */
bool xpu_buffer_take(xpu_buffer *b);
void xpu_buffer_untake(xpu_buffer *b); /* as if never taken */

#endif
