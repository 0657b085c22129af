/* The profiler: when which program ran on which device, as an XSpace.  A run
 * lasts from Execute until its results are there, so runs that wait overlap.
 *
 * The interface names no client, so who records is known to the process: the
 * one list at file scope, empty unless somebody traces. */
#include "pjrt.h"

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

enum {
    SPACE_PLANE = 1,
    PLANE_ID = 1,
    PLANE_NAME = 2,
    PLANE_LINE = 3,
    PLANE_NAMES = 4,
    LINE_ID = 1,
    LINE_NAME = 2,
    LINE_NS = 3,
    LINE_EVENT = 4,
    EVENT_NAME = 1,
    EVENT_PS = 2,
    EVENT_LASTS_PS = 3,
    KEY = 1,
    VALUE = 2,
    NAME_ID = 1,
    NAME_TEXT = 2
};

static void put_int(sd_buf *b, int field, uint64_t v)
{
    sd_buf_leb(b, (uint64_t)field << 3);
    sd_buf_leb(b, v);
}

static void put_bytes(sd_buf *b, int field, const void *at, size_t n)
{
    sd_buf_leb(b, (uint64_t)field << 3 | 2);
    sd_buf_leb(b, n);
    sd_buf_add(b, at, n);
}

/* Takes part. */
static void put_part(sd_buf *b, int field, sd_buf *part)
{
    put_bytes(b, field, part->at, part->len);
    b->oom |= part->oom;
    sd_buf_finish(part);
}

/* Programs are numbered by the first span of their name, from 1. */
static uint64_t number_of(const PLUGIN_Profiler *p, int i)
{
    int k = 0;

    while (strcmp(p->at[k].name, p->at[i].name))
        k++;
    return (uint64_t)k + 1;
}

static void put_line(sd_buf *b, const PLUGIN_Profiler *p, int device,
                     uint64_t base)
{
    sd_buf line = {0};
    char name[32];

    snprintf(name, sizeof name, PJRT_PLATFORM "(id=%d)", device);
    put_int(&line, LINE_ID, (uint64_t)device + 1);
    put_bytes(&line, LINE_NAME, name, strlen(name));
    put_int(&line, LINE_NS, base);
    for (int i = 0; i < p->n; i++) {
        const span *s = &p->at[i];
        sd_buf event = {0};

        if (s->device != device)
            continue;
        put_int(&event, EVENT_NAME, number_of(p, i));
        put_int(&event, EVENT_PS, (s->from - base) * 1000);
        put_int(&event, EVENT_LASTS_PS,
                s->until > s->from ? (s->until - s->from) * 1000 : 0);
        put_part(&line, LINE_EVENT, &event);
    }
    put_part(b, PLANE_LINE, &line);
}

static void put_name(sd_buf *b, const span *s, uint64_t number)
{
    sd_buf entry = {0}, name = {0};

    put_int(&name, NAME_ID, number);
    put_bytes(&name, NAME_TEXT, s->name, strlen(s->name));
    put_int(&entry, KEY, number);
    put_part(&entry, VALUE, &name);
    put_part(b, PLANE_NAMES, &entry);
}

static void put_space(sd_buf *b, const PLUGIN_Profiler *p)
{
    static const char name[] = "/device:CUSTOM:" PJRT_PLATFORM;
    uint64_t base = UINT64_MAX; /* spans are in the order of their ends */
    sd_buf plane = {0};
    int most = -1;

    put_int(&plane, PLANE_ID, 1);
    put_bytes(&plane, PLANE_NAME, name, sizeof name - 1);
    for (int i = 0; i < p->n; i++) {
        most = SD_MAX(most, p->at[i].device);
        base = SD_MIN(base, p->at[i].from);
        if (number_of(p, i) == (uint64_t)i + 1)
            put_name(&plane, &p->at[i], (uint64_t)i + 1);
    }
    for (int d = 0; d <= most; d++)
        put_line(&plane, p, d, base);
    put_part(b, SPACE_PLANE, &plane);
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
