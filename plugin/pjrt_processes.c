/* A client that is one process of several: a framework says which one by
 * options, and lends the store in which they find each other. */
#include "pjrt.h"

static bool is(const char *name, size_t len, const char *want)
{
    return len == strlen(want) && !memcmp(name, want, len);
}

bool pjrt_processes_option(PJRT_Client *c, const char *name, size_t len,
                           const char *text)
{
    bool count = is(name, len, "num_nodes");

    if (!text || !(count || is(name, len, "node_id")))
        return false;
    *(count ? &c->nprocess : &c->process) = strtoll(text, NULL, 10);
    return true;
}

/* ---- the store ---- */

static sd_status get(void *ctx, const char *key, int timeout_ms, sd_buf *out)
{
    const PJRT_Client_Create_Args *a = ctx;
    PJRT_CallbackError make = pjrt_make_error;
    PJRT_KeyValueGetCallback_Args g = {
        .struct_size = PJRT_KeyValueGetCallback_Args_STRUCT_SIZE,
        .key = key,
        .key_size = strlen(key),
        .timeout_in_ms = timeout_ms,
        .callback_error = &make,
        .user_arg = a->kv_get_user_arg};
    sd_status st = pjrt_status(a->kv_get_callback(&g));

    if (st)
        return st;
    sd_buf_add(out, g.value, g.value_size);
    if (g.value_deleter_callback)
        g.value_deleter_callback(g.value);
    return NULL;
}

static sd_status put(void *ctx, const char *key, sd_bytes value)
{
    const PJRT_Client_Create_Args *a = ctx;
    PJRT_CallbackError make = pjrt_make_error;
    PJRT_KeyValuePutCallback_Args p = {
        .struct_size = PJRT_KeyValuePutCallback_Args_STRUCT_SIZE,
        .key = key,
        .key_size = strlen(key),
        .value = (const char *)value.at,
        .value_size = value.len,
        .callback_error = &make,
        .user_arg = a->kv_put_user_arg};

    return pjrt_status(a->kv_put_callback(&p));
}

/* ---- joining ---- */

static sd_status alone(const PJRT_Client *c, xpu_place **world, int *n)
{
    *n = xpu_client_count(c->x);
    if (!(*world = calloc((size_t)*n, sizeof **world)))
        return sd_no_memory((size_t)*n * sizeof **world);
    for (int i = 0; i < *n; i++)
        (*world)[i].desc = *xpu_device_desc(xpu_client_device(c->x, i));
    return NULL;
}

/* The callbacks are the caller's to look at only where there are several
 * processes: elsewhere they may be anything. */
sd_status pjrt_processes_join(PJRT_Client *c, const PJRT_Client_Create_Args *a,
                              xpu_place **world, int *n)
{
    xpu_store store = {.get = get, .put = put, .ctx = (void *)(uintptr_t)a};

    if (c->nprocess <= 1 && !c->process)
        return alone(c, world, n);
    if (c->nprocess > INT32_MAX || c->process < 0 || c->process >= c->nprocess)
        return sd_error(SD_INVALID, "node_id %" PRId64 " of num_nodes %" PRId64,
                        c->process, c->nprocess);
    if (!PJRT_HAS(a, kv_put_user_arg) || !a->kv_get_callback ||
        !a->kv_put_callback)
        return sd_error(SD_INVALID,
                        "%" PRId64 " processes, and no key-value store in "
                        "which they find each other",
                        c->nprocess);
    return xpu_client_join(c->x, &c->options, (int)c->process, (int)c->nprocess,
                           &store, world, n);
}
