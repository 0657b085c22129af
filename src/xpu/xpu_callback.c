/* Values on their way between a running program and the host.  The callback
 * may run Python for as long as it likes: no lock is held, and the device has
 * nothing queued, so that host and device never work on one value at once.
 * Memory that the host sees is given as it is; other memory goes through a
 * copy. */
#include "xpu_device.h"

#include <stdlib.h>

static sd_status find(const xpu_callback *list, int n, const thunk *t,
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

static bool host_sees_memory(const xpu_device *d)
{
    return !d->ops->peek;
}

static sd_status stage(size_t bytes, void **out)
{
    *out = malloc(SD_MAX(bytes, (size_t)1));
    return *out ? NULL : sd_no_memory(bytes);
}

static sd_status call(xpu_device *d, const xpu_callback *c, void *at,
                      size_t bytes)
{
    bool was = d->in_callback; /* callbacks nest */
    sd_status st;

    d->in_callback = true;
    st = c->call(c->ctx, at, bytes);
    d->in_callback = was;
    return st;
}

sd_status xpu_run_send(const xpu_run *r, const thunk *t)
{
    uint8_t *at = r->base[t->arg[0].buffer] + t->arg[0].offset;
    size_t bytes = t->arg[0].bytes;
    const xpu_callback *c;
    sd_status st = find(r->send, r->nsend, t, &c);
    void *copy;

    if (st)
        return st;
    if (host_sees_memory(r->dev))
        return call(r->dev, c, at, bytes);
    if ((st = stage(bytes, &copy)))
        return st;
    if (!(st = r->dev->ops->peek(r->dev, copy, at, bytes)))
        st = call(r->dev, c, copy, bytes);
    free(copy);
    return st;
}

sd_status xpu_run_recv(const xpu_run *r, const thunk *t)
{
    uint8_t *at = r->base[t->arg[0].buffer] + t->arg[0].offset;
    size_t bytes = t->arg[0].bytes;
    const xpu_callback *c;
    sd_status st = find(r->recv, r->nrecv, t, &c);
    void *copy;

    if (st)
        return st;
    if (host_sees_memory(r->dev))
        return call(r->dev, c, at, bytes);
    if ((st = stage(bytes, &copy)))
        return st;
    /* The copy must have been read before it goes. */
    if (!(st = call(r->dev, c, copy, bytes)) &&
        !(st = r->dev->ops->copy(r->dev, at, copy, bytes)))
        st = r->dev->ops->sync(r->dev);
    free(copy);
    return st;
}
