/* The profiler's interface, by which frameworks ask for traces. */
#include "pjrt_trace.h"

#include <stdlib.h>

struct PLUGIN_Profiler {
    pjrt_trace trace;
    sd_buf bytes; /* what was handed out last */
};

typedef PLUGIN_Profiler_Error error;

static error *give(sd_status st)
{
    return (error *)st;
}

static error *error_destroy(PLUGIN_Profiler_Error_Destroy_Args *a)
{
    sd_status_free((sd_error *)a->error);
    return NULL;
}

static error *error_message(PLUGIN_Profiler_Error_Message_Args *a)
{
    a->message = ((const sd_error *)a->error)->message;
    a->message_size = strlen(a->message);
    return NULL;
}

static error *error_code(PLUGIN_Profiler_Error_GetCode_Args *a)
{
    a->code = (int)((const sd_error *)a->error)->code;
    return NULL;
}

static error *create(PLUGIN_Profiler_Create_Args *a)
{
    PLUGIN_Profiler *p = PJRT_NEW(PLUGIN_Profiler);
    sd_options o = {0};

    if (!p)
        return give(sd_no_memory(sizeof *p));
    sd_options_from_env(&o);
    p->trace.steps = sd_opt_bool(&o, SD_OPT_TRACE_STEPS);
    a->profiler = p;
    return NULL;
}

static error *start(PLUGIN_Profiler_Start_Args *a)
{
    pjrt_trace_record(&a->profiler->trace, true);
    return NULL;
}

static error *stop(PLUGIN_Profiler_Stop_Args *a)
{
    pjrt_trace_record(&a->profiler->trace, false);
    return NULL;
}

static error *destroy(PLUGIN_Profiler_Destroy_Args *a)
{
    PLUGIN_Profiler *p = a->profiler;

    if (!p)
        return NULL;
    pjrt_trace_record(&p->trace, false);
    pjrt_trace_finish(&p->trace);
    sd_buf_finish(&p->bytes);
    free(p);
    return NULL;
}

static sd_status collect(PLUGIN_Profiler *p)
{
    sd_buf b = {0};
    sd_status st;

    if (p->trace.on)
        return sd_error(SD_PRECONDITION, "the profiler records: stop it first");
    if ((st = pjrt_trace_write(&p->trace, &b))) {
        sd_buf_finish(&b);
        return st;
    }
    sd_buf_finish(&p->bytes);
    p->bytes = b;
    return NULL;
}

/* Into the caller's buffer, or without one from ours, which lives on. */
static error *collect_data(PLUGIN_Profiler_CollectData_Args *a)
{
    PLUGIN_Profiler *p = a->profiler;
    sd_status st = collect(p);

    if (st)
        return give(st);
    a->buffer_size_in_bytes = p->bytes.len;
    if (a->buffer)
        memcpy(a->buffer, p->bytes.at, p->bytes.len);
    else
        a->buffer = (uint8_t *)p->bytes.at;
    return NULL;
}

/* What is consumed is the profiler itself: its spans stay until it goes. */
static error *consume(PLUGIN_Profiler_Consume_Args *a)
{
    sd_status st = collect(a->profiler);

    if (!st)
        a->result = (PLUGIN_Profiler_ConsumeResult *)a->profiler;
    return give(st);
}

static error *keep_result(PLUGIN_Profiler_ConsumeResult_Destroy_Args *a)
{
    (void)a;
    return NULL;
}

static error *serialize(PLUGIN_Profiler_Serialize_Args *a)
{
    const PLUGIN_Profiler *p = (const PLUGIN_Profiler *)a->consume_result;

    a->serialized_bytes = (const uint8_t *)p->bytes.at;
    a->serialized_size = p->bytes.len;
    return NULL;
}

/* Frameworks ask for their own size exactly: jaxlib 0.10.2 for the one that
 * ends before `consume`.  Others say one line and trace without us. */
const PLUGIN_Profiler_Api plugin_profiler_api = {
    .struct_size = offsetof(PLUGIN_Profiler_Api, consume),
    .error_destroy = error_destroy,
    .error_message = error_message,
    .error_get_code = error_code,
    .create = create,
    .destroy = destroy,
    .start = start,
    .stop = stop,
    .collect_data = collect_data,
    .consume = consume,
    .consume_result_destroy = keep_result,
    .serialize = serialize,
};
