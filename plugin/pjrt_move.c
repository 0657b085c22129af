/* Arrays that go to devices of other processes, and come from them.  Both
 * processes number a move alike; in what order they call does not matter. */
#include "pjrt.h"

/* A device of another process; `which` array it is about. */
static sd_status find_there(const PJRT_Client *c, int32_t id, size_t which,
                            PJRT_Device **out)
{
    PJRT_Device *d = *out = pjrt_client_find(c, id);

    if (d && !d->x)
        return NULL;
    if (!d)
        return sd_error(SD_INVALID,
                        "array %zu: there is no device %" PRId32
                        ", there are 0 to %d",
                        which, id, c->n - 1);
    return sd_error(SD_INVALID,
                    "array %zu: device %" PRId32
                    " is this process's own: between processes go arrays of "
                    "one and devices of another",
                    which, id);
}

/* ---- sending ---- */

/* A copy whose dimensions lie row-major, as the receiver's will. */
static sd_status straighten(const PJRT_Buffer *b, xpu_buffer **out)
{
    size_t bytes = xpu_buffer_bytes(b->x);
    int rank = xpu_buffer_rank(b->x);
    xpu_event *done = NULL;
    void *dense;
    sd_status st;

    if (!(dense = malloc(SD_MAX(bytes, (size_t)1))))
        return sd_no_memory(bytes);
    st = pjrt_to_host_reordered(b, pjrt_row_major(rank), dense, &done);
    if (!st)
        st = xpu_event_wait(done);
    if (!st)
        st = xpu_buffer_from_host(
            b->memory->device->x, b->memory->kind, xpu_buffer_dtype(b->x), rank,
            xpu_buffer_dims(b->x), dense, NULL, true, out, NULL);
    xpu_event_release(done);
    free(dense);
    return st;
}

static sd_status send_one(const PJRT_Buffer *b, const PJRT_Device *to,
                          int64_t key, PJRT_Event **out)
{
    bool lies = pjrt_layout_same(b->order, NULL, xpu_buffer_rank(b->x));
    xpu_buffer *x = NULL;
    xpu_event *sent;
    sd_status st = NULL;

    if (lies)
        x = xpu_buffer_retain(b->x);
    else
        st = straighten(b, &x);
    if (!st)
        st = xpu_buffer_send(x, to->desc->process, to->desc->id, key, &sent);
    if (!st)
        *out = pjrt_event(sent);
    xpu_buffer_release(x);
    return st;
}

PJRT_Error *pjrt_transfers_pjrt_client_cross_host_send_buffers(
    PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args *a)
{
    PJRT_Device *to;
    sd_status st = NULL;
    size_t n = 0;

    for (size_t i = 0; i < a->num_buffers && !st; i++)
        st = find_there(a->client, a->dst_global_device_ids[i], i, &to);
    for (; n < a->num_buffers && !st; n++) {
        to = pjrt_client_find(a->client, a->dst_global_device_ids[n]);
        st = send_one(a->buffers[n], to, a->transfer_keys[n],
                      &a->send_events[n]);
    }
    for (size_t i = 0; st && i + 1 < n; i++)
        xpu_event_release(pjrt_xpu_event(a->send_events[i]));
    return pjrt_return(st);
}

/* ---- receiving ---- */

static sd_status
receive_one(const PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args *a,
            size_t i)
{
    PJRT_Memory *m = &a->device->memory[XPU_MEM_DEVICE];
    PJRT_Device *from;
    PJRT_Buffer *b;
    pjrt_array t;
    sd_status st;

    if ((st = find_there(a->client, a->src_global_device_ids[i], i, &from)) ||
        (st = pjrt_array_read(a->element_types[i], a->num_dims[i],
                              a->shape_num_dims[i],
                              a->layouts ? a->layouts[i] : NULL, &t)))
        return st;
    if (!pjrt_layout_same(t.order, NULL, t.rank))
        return sd_error(SD_INVALID,
                        "array %zu: what comes from another process lies "
                        "row-major",
                        i);
    if (!(b = pjrt_buffer_handle(m, t.rank, NULL)))
        return sd_no_memory(sizeof *b);
    st = xpu_buffer_receive(a->device->x, XPU_MEM_DEVICE, t.dtype, t.rank,
                            t.dim, from->desc->process, a->device->desc->id,
                            a->transfer_keys[i], &b->x);
    if (st)
        pjrt_buffer_free(b);
    else
        a->buffers[i] = b;
    return st;
}

PJRT_Error *pjrt_transfers_pjrt_client_cross_host_receive_buffers(
    PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args *a)
{
    sd_status st = pjrt_device_is_here(a->device);
    size_t n = 0;

    for (; n < a->num_shapes && !st; n++)
        st = receive_one(a, n);
    for (size_t i = 0; st && i + 1 < n; i++)
        pjrt_buffer_free(a->buffers[i]);
    return pjrt_return(st);
}

/* ---- the older way, by descriptors ---- */

/* Refused: who sends and who receives agree on a number instead. */
PJRT_Error *pjrt_transfers_pjrt_client_make_cross_host_receive_buffers(
    PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args *a)
{
    (void)a;
    return pjrt_unimplemented(
        "PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers");
}

typedef struct {
    PJRT_Transfers_DescriptorDestructor destroy;
    char **at;
    size_t *size;
} descriptor;

static void destroy_descriptor(void *ctx, sd_status st)
{
    descriptor d = *(descriptor *)ctx;

    free(ctx);
    sd_status_free(st);
    d.destroy(d.at, d.size);
}

/* Refused, by its callback.  The descriptor is written until its event, and
 * ours to destroy. */
void pjrt_transfers_pjrt_buffer_copy_to_remote_device(
    PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args *a)
{
    PJRT_Error *e =
        pjrt_unimplemented("PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice");
    xpu_event *written = pjrt_xpu_event(a->event);
    descriptor *d = NULL;

    if (PJRT_HAS(a, descriptor_destructor) && a->descriptor_destructor)
        d = PJRT_NEW(descriptor);
    if (d)
        *d = (descriptor){a->descriptor_destructor, a->serialized_descriptor,
                          a->serialized_descriptor_size};
    if (d && !written)
        destroy_descriptor(d, NULL);
    else if (d)
        sd_status_free(xpu_event_then(written, destroy_descriptor, d));
    xpu_event_release(written);
    a->on_done.on_done(e, false, a->on_done.user_arg);
    sd_status_free(pjrt_status(e));
}
