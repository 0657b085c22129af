/* Events are xpu's own.  The state behind a handle is reference counted, so a
 * caller may destroy it with callbacks still to come, even inside one. */
#include "pjrt.h"

xpu_event *pjrt_ready_event(sd_status st)
{
    xpu_event *e = xpu_event_create();

    if (e)
        xpu_event_set(e, st);
    else
        sd_status_free(st);
    return e;
}

PJRT_Error *pjrt_event_destroy(PJRT_Event_Destroy_Args *a)
{
    if (a->event)
        xpu_event_release(pjrt_xpu_event(a->event));
    return NULL;
}

PJRT_Error *pjrt_event_error(PJRT_Event_Error_Args *a)
{
    return pjrt_return(xpu_event_error(pjrt_xpu_event(a->event)));
}

PJRT_Error *pjrt_event_await(PJRT_Event_Await_Args *a)
{
    return pjrt_return(xpu_event_wait(pjrt_xpu_event(a->event)));
}

typedef struct {
    PJRT_Event_OnReadyCallback call;
    void *arg;
} on_ready;

static void call_on_ready(void *ctx, sd_status st)
{
    on_ready r = *(on_ready *)ctx;

    free(ctx);
    r.call(pjrt_return(st), r.arg);
}

PJRT_Error *pjrt_event_on_ready(PJRT_Event_OnReady_Args *a)
{
    xpu_event *e = pjrt_xpu_event(a->event);
    on_ready *r;
    sd_status st;

    /* whoever wants to be told most often sleeps until he is */
    xpu_event_look(e);
    if (xpu_event_is_ready(e)) {
        a->callback(pjrt_return(xpu_event_error(e)), a->user_arg);
        return NULL;
    }
    if (!(r = PJRT_NEW(on_ready)))
        return pjrt_no_memory();
    r->call = a->callback;
    r->arg = a->user_arg;
    if ((st = xpu_event_then(e, call_on_ready, r)))
        free(r);
    return pjrt_return(st);
}

PJRT_Error *pjrt_event_create(PJRT_Event_Create_Args *a)
{
    xpu_event *e = xpu_event_create();

    if (!e)
        return pjrt_no_memory();
    a->event = pjrt_event(e);
    return NULL;
}

PJRT_Error *pjrt_event_set(PJRT_Event_Set_Args *a)
{
    sd_status st = a->error_code == PJRT_Error_Code_OK
                       ? NULL
                       : pjrt_foreign(a->error_code, a->error_message,
                                      a->error_message_size);

    if (xpu_event_set(pjrt_xpu_event(a->event), st))
        return NULL;
    return pjrt_return(
        sd_error(SD_PRECONDITION, "PJRT_Event_Set: the event is set already"));
}
