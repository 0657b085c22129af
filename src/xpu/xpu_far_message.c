/* Messages from other processes, as a wire reads them: a head, then as many
 * bytes as that says.  What a head says is not trusted. */
#include "xpu_far.h"

#include <stdlib.h>

void xpu_far_message_free(xpu_far_message *m)
{
    for (xpu_far_message *next; m; m = next) {
        next = m->next;
        for (int i = 0; i < m->npiece; i++)
            xpu_memory_free(m->piece[i].dev, XPU_MEM_DEVICE, m->piece[i].at,
                            m->piece[i].cls);
        free(m->piece);
        free(m);
    }
}

/* It may be what it says. */
static bool is_head(const xpu_far_head *h)
{
    if (h->magic != XPU_FAR_MAGIC)
        return false;
    if (h->kind == XPU_FAR_FAILED || h->kind == XPU_FAR_NO_ARRAY)
        return h->bytes <= XPU_FAR_TEXT && h->step >= SD_CANCELLED &&
               h->step <= SD_DATA_LOSS;
    return (h->kind == XPU_FAR_DATA || h->kind == XPU_FAR_ARRAY) &&
           h->bytes <= XPU_FAR_MOST;
}

uint8_t *xpu_far_inlet_room(xpu_far_inlet *in, size_t *bytes)
{
    uint8_t *to = in->m ? in->m->data : (uint8_t *)&in->head;

    *bytes = (in->m ? in->head.bytes : sizeof in->head) - in->got;
    return to + in->got;
}

xpu_far_message *xpu_far_message_make(int from, const xpu_far_head *h)
{
    xpu_far_message *m = malloc(sizeof *m + h->bytes);

    if (!m)
        return NULL;
    *m = (xpu_far_message){.from = from, .head = *h};
    return m;
}

/* All of a head is there. */
static const char *begin_message(xpu_far_inlet *in, int from)
{
    if (!is_head(&in->head))
        return "it sends what is no message";
    if (!(in->m = xpu_far_message_make(from, &in->head)))
        return "there is no memory for what it sends";
    in->got = 0;
    return NULL;
}

const char *xpu_far_inlet_take(xpu_far_inlet *in, xpu_far *f, int from,
                               size_t bytes)
{
    const char *why = NULL;

    in->got += bytes;
    if (!in->m && in->got == sizeof in->head)
        why = begin_message(in, from);
    if (why || !in->m || in->got < in->head.bytes)
        return why;
    xpu_far_deliver(f, in->m);
    *in = (xpu_far_inlet){0};
    return NULL;
}

void xpu_far_inlet_finish(xpu_far_inlet *in)
{
    xpu_far_message_free(in->m);
    in->m = NULL;
}
