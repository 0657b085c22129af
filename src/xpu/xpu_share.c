/* Buffers that are shared with other libraries: their streams wait for ours,
 * and ours for theirs.  A view is ready by a flight in the queue of what comes
 * from elsewhere, XPU_PEER, so that whoever uses it waits for it as for a copy.
 */
#include "xpu_buffer.h"
#include "xpu_device.h"

#include <stdlib.h>

typedef struct {
    xpu_flight flight; /* first */
    xpu_buffer *view; /* a use */
    xpu_event *ready; /* a reference */
} arrival;

static void arrive(xpu_flight *f, sd_status st)
{
    arrival *a = (arrival *)f;
    xpu_event *ready = a->ready;

    xpu_buffer_unuse(a->view, true);
    free(a);
    xpu_event_set(ready, st);
    xpu_event_release(ready);
}

sd_status xpu_buffer_follow(xpu_buffer *b, void *stream)
{
    xpu_device *d = b->dev;
    arrival *a;
    sd_status st;

    if (!d->ops->follow)
        return NULL;
    if (!(a = calloc(1, sizeof *a)) || !(a->ready = xpu_event_create())) {
        free(a);
        return sd_no_memory(sizeof *a);
    }
    a->flight.end = arrive;
    if ((st = xpu_flight_begin(&a->flight, d, XPU_PEER))) {
        xpu_event_release(a->ready);
        free(a);
        return st;
    }
    a->view = b;
    xpu_buffer_use(b, true); /* it was just made, so it is not deleted */
    xpu_event_release(b->ready);
    b->ready = xpu_event_retain(a->ready);
    st = d->ops->follow(d, XPU_PEER, stream);
    xpu_flight_launched(&a->flight, st, a->ready);
    return NULL;
}

sd_status xpu_buffer_lead(xpu_buffer *b, void *stream)
{
    xpu_device *d = b->dev;
    xpu_event *ready = b->ready;
    xpu_mark *m;
    sd_status st;

    if (!d->ops->lead)
        return xpu_event_wait(ready);
    while (!(m = xpu_event_mark(ready))) {
        if (xpu_event_is_ready(ready))
            return xpu_event_error(ready);
        xpu_event_await_queued(ready);
    }
    st = xpu_device_is_like(m->dev, d) ? d->ops->lead(d, stream, m)
                                       : xpu_event_wait(ready);
    xpu_mark_release(m);
    return st;
}
