/* Typed foreign calls at the surface: handlers and types are registered with
 * the library, user data with the context of one Execute. */
#include "pjrt.h"

/* ---- registration ---- */

PJRT_Error *pjrt_ffi_register_handler(PJRT_FFI_Register_Handler_Args *a)
{
    xpu_ffi_bundle b = {.stage = {NULL, NULL, NULL, a->handler}};
    device_kind kind;
    sd_status st =
        xpu_ffi_platform(a->platform_name, a->platform_name_size, &kind);

    if (!st)
        st = xpu_ffi_register(a->target_name, a->target_name_size, kind, &b);
    return pjrt_return(st);
}

/* All stages of one, for a kind of device. */
PJRT_Error *pjrt_sundog_register_handler(pjrt_sundog_handler *a)
{
    xpu_ffi_bundle b;
    device_kind kind;
    sd_status st = xpu_ffi_platform(a->platform, a->platform_size, &kind);

    memcpy(b.stage, a->stage, sizeof b.stage);
    if (!st)
        st = xpu_ffi_register(a->name, a->name_size, kind, &b);
    return pjrt_return(st);
}

/* All stages of a handler; the name is upstream's. */
PJRT_Error *pjrt_gpu_register_custom_call(PJRT_Gpu_Register_Custom_Call_Args *a)
{
    xpu_ffi_bundle b = {.stage = {a->handler_instantiate, a->handler_prepare,
                                  a->handler_initialize, a->handler_execute}};

    if (a->api_version != 1)
        return pjrt_return(sd_error(
            SD_UNIMPLEMENTED,
            "custom-call target %.*s has API version %d: handlers are "
            "called by typed FFI only (api_version=1)",
            (int)a->function_name_size, a->function_name, a->api_version));
    return pjrt_return(xpu_ffi_register(a->function_name, a->function_name_size,
                                        DEVICE_HOST, &b));
}

PJRT_Error *pjrt_ffi_type_register(PJRT_FFI_Type_Register_Args *a)
{
    return pjrt_return(
        xpu_ffi_register_type(a->type_name, a->type_name_size, &a->type_id,
                              a->type_info ? a->type_info->deleter : NULL));
}

/* ---- contexts ---- */

struct PJRT_ExecuteContext {
    pthread_mutex_t lock;
    xpu_user_data *at;
    int n;
};

PJRT_Error *pjrt_execute_context_create(PJRT_ExecuteContext_Create_Args *a)
{
    PJRT_ExecuteContext *c = PJRT_NEW(PJRT_ExecuteContext);

    if (!c)
        return pjrt_no_memory();
    pthread_mutex_init(&c->lock, NULL);
    a->context = c;
    return NULL;
}

PJRT_Error *pjrt_execute_context_destroy(PJRT_ExecuteContext_Destroy_Args *a)
{
    PJRT_ExecuteContext *c = a->context;

    if (!c)
        return NULL;
    pthread_mutex_destroy(&c->lock);
    free(c->at);
    free(c);
    return NULL;
}

static sd_status add(PJRT_ExecuteContext *c, const PJRT_FFI_UserData *d)
{
    xpu_user_data *grown;

    for (int i = 0; i < c->n; i++)
        if (c->at[i].type_id == d->type_id)
            return sd_error(SD_ALREADY_EXISTS,
                            "the context has data of type id %" PRId64
                            " already",
                            d->type_id);
    grown = realloc(c->at, ((size_t)c->n + 1) * sizeof *grown);
    if (!grown)
        return sd_no_memory(sizeof *grown);
    c->at = grown;
    c->at[c->n++] = (xpu_user_data){d->type_id, d->data};
    return NULL;
}

PJRT_Error *pjrt_ffi_user_data_add(PJRT_FFI_UserData_Add_Args *a)
{
    sd_status st;

    pthread_mutex_lock(&a->context->lock);
    st = add(a->context, &a->user_data);
    pthread_mutex_unlock(&a->context->lock);
    return pjrt_return(st);
}

sd_status pjrt_context_copy(PJRT_ExecuteContext *c, xpu_user_data **out, int *n)
{
    sd_status st = NULL;

    *out = NULL;
    pthread_mutex_lock(&c->lock);
    *n = c->n;
    if (c->n && !(*out = malloc((size_t)c->n * sizeof **out)))
        st = sd_no_memory((size_t)c->n * sizeof **out);
    else if (c->n)
        memcpy(*out, c->at, (size_t)c->n * sizeof **out);
    pthread_mutex_unlock(&c->lock);
    return st;
}
