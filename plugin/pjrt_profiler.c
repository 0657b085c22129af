/* The profiler: when which program ran on which device, as an XSpace.  A run
 * lasts from Execute until its results are there, so runs that wait overlap.
 *
 * The interface names no client, so who records is known to the process: the
 * one list at file scope, empty unless somebody traces. */
#include "pjrt.h"

#include "pb.h"

#include <stdio.h>
#include <time.h>

typedef struct {
    char name[64];
    int device;
    uint64_t from, until; /* wall clock, ns */
} span;

struct PLUGIN_Profiler {
    PLUGIN_Profiler *next; /* of those that record */
    bool on;
    span *at;
    int n, cap, nlost; /* lost: for want of memory */
    sd_buf bytes;      /* what was handed out last */
};

static struct {
    pthread_mutex_t lock;
    PLUGIN_Profiler *first;
    _Atomic int n;
} recording = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- recording ---- */

uint64_t pjrt_profile_now(void)
{
    struct timespec t;

    if (!atomic_load_explicit(&recording.n, memory_order_relaxed))
        return 0;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void append(PLUGIN_Profiler *p, const span *s)
{
    if (p->n == p->cap) {
        int cap = p->cap ? 2 * p->cap : 256;
        span *at = realloc(p->at, (size_t)cap * sizeof *at);

        if (!at) {
            p->nlost++;
            return;
        }
        p->at = at;
        p->cap = cap;
    }
    p->at[p->n++] = *s;
}

static void end_span(void *ctx, sd_status st)
{
    span *s = ctx;

    sd_status_free(st);
    s->until = pjrt_profile_now();
    pthread_mutex_lock(&recording.lock);
    for (PLUGIN_Profiler *p = recording.first; p; p = p->next)
        append(p, s);
    pthread_mutex_unlock(&recording.lock);
    free(s);
}

void pjrt_profile_run(const char *name, int device, uint64_t from,
                      xpu_event *done)
{
    span *s = PJRT_NEW(span);
    sd_status st;

    if (!s)
        return;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->device = device;
    s->from = from;
    if ((st = xpu_event_then(done, end_span, s))) {
        sd_status_free(st);
        free(s);
    }
}

/* ---- XSpace ---- */

/* Programs are numbered by the first span of their name, from 1. */
static int64_t number_of(const PLUGIN_Profiler *p, int i)
{
    int k = 0;

    while (strcmp(p->at[k].name, p->at[i].name))
        k++;
    return k + 1;
}

static void put_line(sd_buf *b, const PLUGIN_Profiler *p, int device,
                     uint64_t base)
{
    size_t at = pb_open(b, PB_TAG_trace_plane_line);
    pb_trace_line line = {.id = device + 1, .ns = (int64_t)base};
    char name[32];

    snprintf(name, sizeof name, PJRT_PLATFORM "(id=%d)", device);
    line.name = pb_str(name);
    pb_write(b, &pb_trace_line_table, &line);
    for (int i = 0; i < p->n; i++) {
        const span *s = &p->at[i];
        pb_trace_event e = {.name = number_of(p, i),
                            .ps = (int64_t)(s->from - base) * 1000};
        size_t event;

        if (s->device != device)
            continue;
        if (s->until > s->from)
            e.lasts_ps = (int64_t)(s->until - s->from) * 1000;
        event = pb_open(b, PB_TAG_trace_line_event);
        pb_write(b, &pb_trace_event_table, &e);
        pb_close(b, event);
    }
    pb_close(b, at);
}

static void put_name(sd_buf *b, const span *s, int64_t number)
{
    size_t at = pb_open(b, PB_TAG_trace_plane_names);
    pb_trace_name name = {.id = number, .text = pb_str(s->name)};
    pb_trace_named named = {.id = number, .name = &name};

    pb_write(b, &pb_trace_named_table, &named);
    pb_close(b, at);
}

static void put_space(sd_buf *b, const PLUGIN_Profiler *p)
{
    size_t at = pb_open(b, PB_TAG_trace_plane);
    pb_trace_plane plane = {.id = 1,
                            .name = pb_str("/device:CUSTOM:" PJRT_PLATFORM)};
    uint64_t base = UINT64_MAX;
    int most = -1;

    pb_write(b, &pb_trace_plane_table, &plane);
    for (int i = 0; i < p->n; i++) { /* in the order of their ends */
        most = SD_MAX(most, p->at[i].device);
        /* a place of 0 would be left out, and stand for none */
        base = SD_MIN(base, p->at[i].from - 1);
        if (number_of(p, i) == i + 1)
            put_name(b, &p->at[i], i + 1);
    }
    for (int d = 0; d <= most; d++)
        put_line(b, p, d, base);
    pb_close(b, at);
}

/* ---- the interface ---- */

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

    if (!p)
        return give(sd_no_memory(sizeof *p));
    a->profiler = p;
    return NULL;
}

/* Whether it was as asked for is nobody's concern. */
static void record(PLUGIN_Profiler *p, bool on)
{
    PLUGIN_Profiler **at = &recording.first;

    pthread_mutex_lock(&recording.lock);
    if (p->on != on) {
        while (*at && *at != p)
            at = &(*at)->next;
        *at = on ? p : p->next;
        p->next = on ? NULL : p->next;
        p->on = on;
        atomic_fetch_add(&recording.n, on ? 1 : -1);
    }
    pthread_mutex_unlock(&recording.lock);
}

static error *start(PLUGIN_Profiler_Start_Args *a)
{
    record(a->profiler, true);
    return NULL;
}

static error *stop(PLUGIN_Profiler_Stop_Args *a)
{
    record(a->profiler, false);
    return NULL;
}

static error *destroy(PLUGIN_Profiler_Destroy_Args *a)
{
    PLUGIN_Profiler *p = a->profiler;

    if (!p)
        return NULL;
    record(p, false);
    sd_buf_finish(&p->bytes);
    free(p->at);
    free(p);
    return NULL;
}

static sd_status collect(PLUGIN_Profiler *p)
{
    sd_buf b = {0};

    if (p->on)
        return sd_error(SD_PRECONDITION, "the profiler records: stop it first");
    if (p->nlost)
        sd_log(SD_LOG_WARN, "the trace lacks %d runs: no memory", p->nlost);
    put_space(&b, p);
    if (b.oom) {
        sd_buf_finish(&b);
        return sd_no_memory(b.len);
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
