/* Values on their way between a running program and the host.  The callback
 * may run Python for as long as it likes: no lock is held, and the device has
 * nothing queued, so that host and device never work on one value at once.
 * Memory that the host sees is given as it is; other memory goes through a
 * copy. */
#include "xpu_device.h"

#include <stdlib.h>

static sd_status find_channel(const xpu_callback *list, int n, const thunk *t,
                              const xpu_callback **out)
{
    for (int i = 0; i < n; i++)
        if (list[i].channel == t->attr[0]) {
            *out = &list[i];
            return NULL;
        }
    return sd_error(SD_PRECONDITION,
                    "the run was given no callback for channel %" PRId64
                    ": the framework passes its host callbacks to Execute",
                    t->attr[0]);
}

static sd_status call_host(xpu_device *d, const xpu_callback *c, void *at,
                           size_t bytes)
{
    bool was = d->in_callback; /* callbacks nest */
    sd_status st;

    d->in_callback = true;
    st = c->call(c->ctx, at, bytes);
    d->in_callback = was;
    return st;
}

static sd_status call_on_copy(const xpu_run *r, const xpu_callback *c, void *at,
                              size_t bytes, bool is_send)
{
    const xpu_device_ops *ops = r->dev->ops;
    void *copy = malloc(SD_MAX(bytes, (size_t)1));
    sd_status st = NULL;

    if (!copy)
        return sd_no_memory(bytes);
    if (is_send)
        st = ops->peek(r->dev, copy, at, bytes);
    if (!st)
        st = call_host(r->dev, c, copy, bytes);
    if (!st && !is_send)
        st = ops->peek(r->dev, at, copy, bytes);
    free(copy);
    return st;
}

static sd_status exchange(const xpu_run *r, const thunk *t,
                          const xpu_callback *list, int n, bool is_send)
{
    uint8_t *at = r->base[t->arg[0].buffer] + t->arg[0].offset;
    size_t bytes = t->arg[0].bytes;
    const xpu_callback *c;
    sd_status st = find_channel(list, n, t, &c);

    if (st)
        return st;
    return r->dev->ops->shared_memory ? call_host(r->dev, c, at, bytes)
                                      : call_on_copy(r, c, at, bytes, is_send);
}

sd_status xpu_run_send(const xpu_run *r, const thunk *t)
{
    return exchange(r, t, r->send, r->nsend, true);
}

sd_status xpu_run_recv(const xpu_run *r, const thunk *t)
{
    return exchange(r, t, r->recv, r->nrecv, false);
}
