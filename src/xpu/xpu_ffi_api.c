/* What a handler may call: XLA_FFI_Api.  A field that callers of 0.3 do not
 * have is written only when their struct holds it. */
#include "xpu_ffi.h"

#include <stdlib.h>

#define HAS(args, field) \
    ((args)->struct_size >= \
     offsetof(__typeof__(*(args)), field) + sizeof((args)->field))
#define ERROR(...) xpu_ffi_error(sd_error(__VA_ARGS__))

/* ---- errors ---- */

static XLA_FFI_Error *error_create(XLA_FFI_Error_Create_Args *a)
{
    sd_code code = (sd_code)a->errc;

    if (code <= SD_OK || code > SD_DATA_LOSS)
        code = SD_UNKNOWN;
    return ERROR(code, "%s", a->message ? a->message : "");
}

static void error_get_details(XLA_FFI_Error_GetDetails_Args *a)
{
    sd_status st = xpu_ffi_status(a->error);

    a->message = st->message;
    if (HAS(a, errc))
        a->errc = (XLA_FFI_Error_Code)st->code;
}

static void error_destroy(XLA_FFI_Error_Destroy_Args *a)
{
    sd_status_free(xpu_ffi_status(a->error));
}

/* ---- registration ---- */

/* Callers of 0.3 have no stage `record`, so that their traits lie where that
 * is; nothing here depends on traits. */
static XLA_FFI_Error *handler_register(XLA_FFI_Handler_Register_Args *a)
{
    device_kind kind;
    sd_status st = xpu_ffi_platform(a->platform.ptr, a->platform.len, &kind);
    xpu_ffi_bundle b = {
        .stage = {(void *)a->bundle.instantiate, (void *)a->bundle.prepare,
                  (void *)a->bundle.initialize, (void *)a->bundle.execute}};

    if (!st)
        st = xpu_ffi_register(a->name.ptr, a->name.len, kind, &b);
    return xpu_ffi_error(st);
}

static XLA_FFI_Error *type_register(XLA_FFI_Type_Register_Args *a)
{
    void (*deleter)(void *) = NULL;

    if (HAS(a, type_info) && a->type_info)
        deleter = a->type_info->deleter;
    return xpu_ffi_error(xpu_ffi_register_type(a->name.ptr, a->name.len,
                                               &a->type_id->type_id, deleter));
}

/* ---- context ---- */

static XLA_FFI_Error *stream_get(XLA_FFI_Stream_Get_Args *a)
{
    if (!a->ctx->stream)
        return ERROR(SD_UNIMPLEMENTED,
                     "device %d (%s) has no stream that a "
                     "handler could use",
                     a->ctx->dev->id, a->ctx->dev->desc.name);
    a->stream = a->ctx->stream;
    return NULL;
}

static XLA_FFI_Error *context_get(XLA_FFI_InvokeContext_Get_Args *a)
{
    const xpu_run *r = a->ctx->run;
    int64_t id = a->type_id->type_id;

    for (int i = 0; r && i < r->nuser; i++)
        if (r->user[i].type_id == id) {
            a->data = r->user[i].data;
            return NULL;
        }
    return ERROR(SD_NOT_FOUND,
                 "the execution context has no data of type id %" PRId64, id);
}

static XLA_FFI_Error *
find_extension(XLA_FFI_InvokeContext_FindExtension_Args *a)
{
    a->extension = NULL; /* there are none */
    return NULL;
}

static XLA_FFI_Error *bad_stage(int stage)
{
    return ERROR(SD_INVALID, "stage %d keeps no state", stage);
}

static XLA_FFI_Error *state_set(XLA_FFI_State_Set_Args *a)
{
    xpu_ffi_state *s;

    if ((unsigned)a->stage >= XLA_FFI_ExecutionStage_EXECUTE)
        return bad_stage((int)a->stage);
    s = &a->ctx->site->state[a->stage];
    if (s->data)
        return ERROR(SD_PRECONDITION, "the state of stage %d is set already",
                     (int)a->stage);
    if (!xpu_ffi_has_type(a->type_id->type_id))
        return ERROR(SD_INVALID,
                     "no type of id %" PRId64 " is registered: a state needs "
                     "one, which says how it is destroyed",
                     a->type_id->type_id);
    *s = (xpu_ffi_state){a->type_id->type_id, a->state};
    return NULL;
}

static XLA_FFI_Error *state_get(XLA_FFI_State_Get_Args *a)
{
    const xpu_ffi_state *s;

    if ((unsigned)a->stage >= XLA_FFI_ExecutionStage_EXECUTE)
        return bad_stage((int)a->stage);
    s = &a->ctx->site->state[a->stage];
    if (!s->data)
        return ERROR(SD_NOT_FOUND, "stage %d has set no state", (int)a->stage);
    if (s->type != a->type_id->type_id)
        return ERROR(SD_INVALID,
                     "the state of stage %d has type id %" PRId64
                     ", not %" PRId64,
                     (int)a->stage, s->type, a->type_id->type_id);
    a->state = s->data;
    return NULL;
}

static XLA_FFI_Error *run_id_get(XLA_FFI_RunId_Get_Args *a)
{
    a->run_id = a->ctx->run ? a->ctx->run->id : 0;
    return NULL;
}

static XLA_FFI_Error *device_ordinal_get(XLA_FFI_DeviceOrdinal_Get_Args *a)
{
    a->device_ordinal = a->ctx->dev->id;
    return NULL;
}

/* ---- memory: where the buffers are; it stays until freed ---- */

static void release(xpu_device *d, xpu_ffi_memory *m)
{
    xpu_memory_free(d, XPU_MEM_DEVICE, m->at, m->cls);
    free(m);
}

static void reached(xpu_flight *f, sd_status st)
{
    sd_status_free(st); /* told by the run that it is of */
    release(f->dev, (xpu_ffi_memory *)f);
}

/* A handler frees what the work that it queued still uses: the memory goes when
 * that has run. */
static void release_behind(xpu_device *d, xpu_ffi_memory *m)
{
    sd_status st;

    m->flight.end = reached;
    if (!(st = xpu_flight_begin(&m->flight, d, XPU_COMPUTE))) {
        xpu_flight_launched(&m->flight, NULL, NULL);
        return;
    }
    sd_status_free(st);
    sd_status_free(d->ops->sync(d, XPU_COMPUTE));
    release(d, m);
}

void xpu_ffi_drop_memory(xpu_ffi *x)
{
    for (xpu_ffi_memory *m; (m = x->memory);) {
        x->memory = m->next;
        release(x->dev, m);
    }
}

static sd_status allocate(XLA_FFI_InvokeContext *c, size_t bytes, size_t align,
                          void **out)
{
    size_t spare = align > XPU_ALIGN ? align : 0, all;
    xpu_ffi_memory *m;
    sd_status st;

    if (!sd_add_size(bytes, spare, &all) || !(m = calloc(1, sizeof *m)))
        return sd_no_memory(bytes);
    if ((st = xpu_memory_try(c->dev, XPU_MEM_DEVICE,
                             (xpu_purpose){"scratch of foreign calls", ""}, all,
                             &m->at, &m->cls))) {
        free(m);
        return st;
    }
    m->aligned = (void *)(((uintptr_t)m->at + align - 1) & ~(align - 1));
    m->next = c->ffi->memory;
    c->ffi->memory = m;
    *out = m->aligned;
    return NULL;
}

static XLA_FFI_Error *memory_allocate(XLA_FFI_DeviceMemory_Allocate_Args *a)
{
    size_t align = SD_MAX(a->alignment, (size_t)XPU_ALIGN);

    if (align & (align - 1))
        return ERROR(SD_INVALID, "alignment %zu is no power of two",
                     a->alignment);
    if (!a->ctx->dev->ops->shared_memory)
        return xpu_ffi_error(allocate(a->ctx, a->size, align, &a->data));
    if (posix_memalign(&a->data, align, SD_MAX(a->size, (size_t)1)))
        return xpu_ffi_error(sd_no_memory(a->size));
    return NULL;
}

static XLA_FFI_Error *memory_free(XLA_FFI_DeviceMemory_Free_Args *a)
{
    xpu_device *d = a->ctx->dev;

    if (d->ops->shared_memory) {
        free(a->data);
        return NULL;
    }
    for (xpu_ffi_memory **at = &a->ctx->ffi->memory, *m; (m = *at);
         at = &m->next)
        if (m->aligned == a->data) {
            *at = m->next;
            release_behind(d, m);
            return NULL;
        }
    return a->data ? ERROR(SD_INVALID, "memory that no handler of this program "
                                       "allocated is freed")
                   : NULL;
}

/* ---- threads ---- */

static XLA_FFI_Error *schedule(XLA_FFI_ThreadPool_Schedule_Args *a)
{
    return xpu_ffi_error(
        xpu_ffi_schedule(a->ctx->dev->client, a->task, a->data));
}

static XLA_FFI_Error *num_threads(XLA_FFI_ThreadPool_NumThreads_Args *a)
{
    *a->num_threads = xpu_ffi_nthread(a->ctx->dev->client);
    return NULL;
}

/* ---- futures: events, by cast ---- */

static XLA_FFI_Error *future_create(XLA_FFI_Future_Create_Args *a)
{
    xpu_event *e = xpu_event_create();

    a->future = (XLA_FFI_Future *)e;
    return e ? NULL : xpu_ffi_error(sd_no_memory(sizeof a->future));
}

/* Who waits may let go while it is being set. */
static void set(XLA_FFI_Future *f, sd_status st)
{
    xpu_event *e = xpu_event_retain((xpu_event *)f);

    xpu_event_set(e, st);
    xpu_event_release(e);
}

static XLA_FFI_Error *future_set_available(XLA_FFI_Future_SetAvailable_Args *a)
{
    set(a->future, NULL);
    return NULL;
}

static XLA_FFI_Error *future_set_error(XLA_FFI_Future_SetError_Args *a)
{
    set(a->future, xpu_ffi_status(a->error));
    return NULL;
}

sd_status xpu_ffi_await(XLA_FFI_Future *f)
{
    xpu_event *e = (xpu_event *)f;
    sd_status st = xpu_event_wait(e);

    xpu_event_release(e);
    return st;
}

const XLA_FFI_Api xpu_ffi_api = {
    .struct_size = XLA_FFI_Api_STRUCT_SIZE,
    .api_version = {.struct_size = XLA_FFI_Api_Version_STRUCT_SIZE,
                    .major_version = XLA_FFI_API_MAJOR,
                    .minor_version = XLA_FFI_API_MINOR},
    .XLA_FFI_Error_Create = error_create,
    .XLA_FFI_Error_GetDetails = error_get_details,
    .XLA_FFI_Error_Destroy = error_destroy,
    .XLA_FFI_Handler_Register = handler_register,
    .XLA_FFI_Stream_Get = stream_get,
    .XLA_FFI_Type_Register = type_register,
    .XLA_FFI_InvokeContext_Get = context_get,
    .XLA_FFI_State_Set = state_set,
    .XLA_FFI_State_Get = state_get,
    .XLA_FFI_DeviceMemory_Allocate = memory_allocate,
    .XLA_FFI_DeviceMemory_Free = memory_free,
    .XLA_FFI_ThreadPool_Schedule = schedule,
    .XLA_FFI_ThreadPool_NumThreads = num_threads,
    .XLA_FFI_Future_Create = future_create,
    .XLA_FFI_Future_SetAvailable = future_set_available,
    .XLA_FFI_Future_SetError = future_set_error,
    .XLA_FFI_RunId_Get = run_id_get,
    .XLA_FFI_DeviceOrdinal_Get = device_ordinal_get,
    .XLA_FFI_InvokeContext_FindExtension = find_extension,
};
