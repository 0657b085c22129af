/* Send and receive: how a running program calls the host.  A send hands its
 * value over as one chunk; the framework may run Python inside that call, so
 * no lock is held.  A receive hands out a stream and waits until it is full;
 * xpu calls both from the thread that runs the program. */
#include "pjrt.h"

#include <pthread.h>

struct PJRT_CopyToDeviceStream {
    _Atomic int refs;
    pthread_mutex_t lock;
    pthread_cond_t full;
    uint8_t *data; /* the program's memory; NULL once it has gone on */
    size_t size, at;
    bool destroyed;
    xpu_event *spare; /* ready: for chunks when memory is gone */
};

struct pjrt_callbacks {
    int nsend, nrecv;
    xpu_callback *send, *recv;
    PJRT_SendCallbackInfo *send_info;
    PJRT_RecvCallbackInfo *recv_info;
    xpu_user_data *user;
};

/* ---- send ---- */

static void free_chunk(void *data, void *arg)
{
    (void)arg;
    free(data);
}

static sd_status send(void *ctx, void *data, size_t bytes)
{
    const PJRT_SendCallbackInfo *info = ctx;
    PJRT_CallbackError make = pjrt_make_error;
    PJRT_Chunk chunk = {.size = bytes, .deleter = free_chunk};

    chunk.data = malloc(SD_MAX(bytes, (size_t)1));
    if (!chunk.data)
        return sd_no_memory(bytes);
    memcpy(chunk.data, data, bytes);
    return sd_note(pjrt_status(info->send_callback(&chunk, &make, bytes, true,
                                                   info->user_arg)),
                   "host callback of channel %" PRId64, info->channel_id);
}

/* ---- receive ---- */

static void release(PJRT_CopyToDeviceStream *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->full);
    xpu_event_release(s->spare);
    free(s);
}

static sd_status receive(void *ctx, void *data, size_t bytes)
{
    const PJRT_RecvCallbackInfo *info = ctx;
    PJRT_CopyToDeviceStream *s = PJRT_NEW(PJRT_CopyToDeviceStream);
    sd_status st = NULL;

    if (!s || !(s->spare = pjrt_ready_event(NULL))) {
        free(s);
        return sd_no_memory(sizeof *s);
    }
    s->refs = 2; /* ours, and the framework's until it destroys it */
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->full, NULL);
    s->data = data;
    s->size = bytes;
    info->recv_callback(s, info->user_arg);
    pthread_mutex_lock(&s->lock);
    while (s->at < s->size && !s->destroyed)
        pthread_cond_wait(&s->full, &s->lock);
    if (s->at < s->size)
        st = sd_error(SD_INTERNAL,
                      "host callback of channel %" PRId64 " gave "
                      "%zu of %zu bytes",
                      info->channel_id, s->at, s->size);
    s->data = NULL;
    pthread_mutex_unlock(&s->lock);
    release(s);
    return st;
}

PJRT_Error *
pjrt_copy_to_device_stream_destroy(PJRT_CopyToDeviceStream_Destroy_Args *a)
{
    PJRT_CopyToDeviceStream *s = a->stream;

    if (!s)
        return NULL;
    pthread_mutex_lock(&s->lock);
    s->destroyed = true;
    pthread_cond_signal(&s->full);
    pthread_mutex_unlock(&s->lock);
    release(s);
    return NULL;
}

/* What does not fit is the event's error: an error of the call would end the
 * framework's process, so there is always an event.  Who waits for the data
 * sees what is missing. */
PJRT_Error *
pjrt_copy_to_device_stream_add_chunk(PJRT_CopyToDeviceStream_AddChunk_Args *a)
{
    PJRT_CopyToDeviceStream *s = a->stream;
    PJRT_Chunk *c = a->chunk;
    sd_status st = NULL;
    xpu_event *e;

    pthread_mutex_lock(&s->lock);
    if (!s->data || c->size > s->size - s->at) {
        st = sd_error(SD_INVALID,
                      "a chunk of %zu bytes at offset %zu of a value of %zu",
                      c->size, s->at, s->size);
    } else {
        memcpy(s->data + s->at, c->data, c->size);
        s->at += c->size;
        if (s->at == s->size)
            pthread_cond_signal(&s->full);
    }
    pthread_mutex_unlock(&s->lock);
    if (c->deleter)
        c->deleter(c->data, c->deleter_arg);
    if (!(e = pjrt_ready_event(st)))
        e = xpu_event_retain(s->spare);
    a->transfer_complete = pjrt_event(e);
    return NULL;
}

PJRT_Error *pjrt_copy_to_device_stream_total_bytes(
    PJRT_CopyToDeviceStream_TotalBytes_Args *a)
{
    a->total_bytes = (int64_t)a->stream->size;
    return NULL;
}

PJRT_Error *pjrt_copy_to_device_stream_granule_size(
    PJRT_CopyToDeviceStream_GranuleSize_Args *a)
{
    a->granule_size_in_bytes = 1;
    return NULL;
}

PJRT_Error *pjrt_copy_to_device_stream_current_bytes(
    PJRT_CopyToDeviceStream_CurrentBytes_Args *a)
{
    PJRT_CopyToDeviceStream *s = a->stream;

    pthread_mutex_lock(&s->lock);
    a->current_bytes = (int64_t)s->at;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- of one run ---- */

void pjrt_callbacks_free(pjrt_callbacks *c)
{
    if (!c)
        return;
    free(c->send);
    free(c->recv);
    free(c->send_info);
    free(c->recv_info);
    free(c->user);
    free(c);
}

static void fill(pjrt_callbacks *c, const PJRT_ExecuteOptions *o, int device)
{
    for (int i = 0; i < c->nsend; i++) {
        c->send_info[i] = o->send_callbacks[device][i];
        c->send[i] =
            (xpu_callback){c->send_info[i].channel_id, send, &c->send_info[i]};
    }
    for (int i = 0; i < c->nrecv; i++) {
        c->recv_info[i] = o->recv_callbacks[device][i];
        c->recv[i] = (xpu_callback){c->recv_info[i].channel_id, receive,
                                    &c->recv_info[i]};
    }
}

static bool make_lists(pjrt_callbacks *c, size_t ns, size_t nr)
{
    c->send = calloc(ns + 1, sizeof *c->send);
    c->recv = calloc(nr + 1, sizeof *c->recv);
    c->send_info = calloc(ns + 1, sizeof *c->send_info);
    c->recv_info = calloc(nr + 1, sizeof *c->recv_info);
    c->nsend = (int)ns;
    c->nrecv = (int)nr;
    return c->send && c->recv && c->send_info && c->recv_info;
}

sd_status pjrt_callbacks_make(const PJRT_ExecuteOptions *o, int device,
                              xpu_call *call, pjrt_callbacks **out)
{
    size_t ns = o->num_send_ops, nr = o->num_recv_ops;
    PJRT_ExecuteContext *context = PJRT_HAS(o, context) ? o->context : NULL;
    pjrt_callbacks *c;
    sd_status st = NULL;

    *out = NULL;
    if (!ns && !nr && !context)
        return NULL;
    if (!(c = PJRT_NEW(pjrt_callbacks)))
        return sd_no_memory(sizeof *c);
    if (!make_lists(c, ns, nr))
        st = sd_no_memory((ns + nr) * sizeof *c->send);
    else if (context)
        st = pjrt_context_copy(context, &c->user, &call->nuser);
    if (st) {
        pjrt_callbacks_free(c);
        return st;
    }
    fill(c, o, device);
    call->send = c->send;
    call->recv = c->recv;
    call->nsend = c->nsend;
    call->nrecv = c->nrecv;
    call->user = c->user;
    *out = c;
    return NULL;
}
