/* Traces: when which program ran on which device, and when each of its steps.
 * A run lasts from Execute until its results are there, so runs that wait
 * overlap; steps follow each other.
 *
 * The profiler's interface names no client, so who records is known to the
 * process: the one list at file scope, empty unless somebody traces. */
#include "pjrt_trace.h"

#include "pb.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 1 << 21 }; /* 80 MB here, as much again in the file */

static struct {
    pthread_mutex_t lock;
    pjrt_trace *first;
    _Atomic int n, nsteps; /* that record; that record steps */
} recording = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- recording ---- */

void pjrt_trace_record(pjrt_trace *t, bool on)
{
    pjrt_trace **at = &recording.first;

    pthread_mutex_lock(&recording.lock);
    if (t->on != on) {
        while (*at && *at != t)
            at = &(*at)->next;
        *at = on ? t : t->next;
        t->next = on ? NULL : t->next;
        t->on = on;
        atomic_fetch_add(&recording.n, on ? 1 : -1);
        if (t->steps)
            atomic_fetch_add(&recording.nsteps, on ? 1 : -1);
    }
    pthread_mutex_unlock(&recording.lock);
}

static bool make_room(pjrt_trace *t)
{
    int cap = t->cap ? 2 * t->cap : 256;
    xpu_step *at;

    if (t->n < t->cap)
        return true;
    if (t->n >= MOST || !(at = realloc(t->at, (size_t)cap * sizeof *at)))
        return false;
    t->at = at;
    t->cap = cap;
    return true;
}

/* A listener (xpu_listener), and of runs, too. */
static void append(void *ctx, const xpu_step *s)
{
    (void)ctx;
    pthread_mutex_lock(&recording.lock);
    for (pjrt_trace *t = recording.first; t; t = t->next) {
        if (s->step && !t->steps)
            continue;
        if (!make_room(t)) {
            t->nlost++;
            continue;
        }
        t->at[t->n++] = *s;
        thunk_program_retain(s->program);
    }
    pthread_mutex_unlock(&recording.lock);
}

static bool any(_Atomic int *n)
{
    return atomic_load_explicit(n, memory_order_relaxed) > 0;
}

uint64_t pjrt_trace_now(void)
{
    return any(&recording.n) ? sd_now_ns() : 0;
}

xpu_listener pjrt_trace_listener(void)
{
    return (xpu_listener){.fn = any(&recording.nsteps) ? append : NULL};
}

static void end_run(void *ctx, sd_status st)
{
    xpu_step *s = ctx;

    sd_status_free(st);
    s->until = sd_now_ns();
    append(NULL, s);
    thunk_program_release(s->program);
    free(s);
}

void pjrt_trace_run(thunk_program *p, int device, uint64_t from,
                    xpu_event *done)
{
    xpu_step *s = PJRT_NEW(xpu_step);
    sd_status st;

    if (!s)
        return;
    *s = (xpu_step){.device = device, .program = p, .from = from};
    thunk_program_retain(p);
    if ((st = xpu_event_then(done, end_run, s))) {
        sd_status_free(st);
        thunk_program_release(p);
        free(s);
    }
}

void pjrt_trace_finish(pjrt_trace *t)
{
    for (int i = 0; i < t->n; i++)
        thunk_program_release(t->at[i].program);
    free(t->at);
}

/* ---- XSpace ---- */

/* What is said of a step: names that the readers of traces know. */
typedef enum { HLO_OP, HLO_MODULE, TF_OP, FLOPS, BYTES, FACT_COUNT } fact;
static const char *const fact_name[FACT_COUNT] = {
    "hlo_op", "hlo_module", "tf_op", "flops", "bytes_accessed"};

/* Events are named by their step, or as a run by their program. */
typedef struct {
    const void *of;
    int first;
} named;

static const void *named_by(const xpu_step *s)
{
    return s->step ? (const void *)s->step : s->program;
}

static int by_step(const void *a, const void *b)
{
    const named *x = a, *y = b;

    if (x->of != y->of)
        return (uintptr_t)x->of < (uintptr_t)y->of ? -1 : 1;
    return x->first - y->first;
}

/* The different ones, in the order of their addresses; a name's number is 1 and
 * its place. */
static int find_names(const pjrt_trace *t, named *name)
{
    int n = 0;

    for (int i = 0; i < t->n; i++)
        name[i] = (named){named_by(&t->at[i]), i};
    qsort(name, (size_t)t->n, sizeof *name, by_step);
    for (int i = 0; i < t->n; i++)
        if (!n || name[n - 1].of != name[i].of)
            name[n++] = name[i];
    return n;
}

static int64_t number_of(const named *name, int n, const xpu_step *s)
{
    const void *of = named_by(s);
    int low = 0;

    while (n > 1) {
        int half = n / 2;

        if ((uintptr_t)name[low + half].of <= (uintptr_t)of)
            low += half;
        n -= half;
    }
    return low + 1;
}

static const char *step_name(const thunk *t)
{
    return t->name ? t->name : thunk_kind_name[t->kind];
}

static pb_trace_stat text_of(fact f, const char *s)
{
    return (pb_trace_stat){.id = f + 1, .text = pb_str(s)};
}

static void put_name(sd_buf *b, const xpu_step *s, int64_t number)
{
    size_t at = pb_open(b, PB_TAG_trace_plane_names);
    const thunk *t = s->step;
    pb_trace_stat stat[FACT_COUNT];
    pb_trace_name name = {.id = number,
                          .text = pb_str(t ? step_name(t) : s->program->name)};
    pb_trace_named entry = {.id = number, .name = &name};
    int n = 0;

    if (t) {
        stat[n++] = text_of(HLO_OP, step_name(t));
        stat[n++] = text_of(HLO_MODULE, s->program->name);
        if (t->op_name)
            stat[n++] = text_of(TF_OP, t->op_name);
        if (t->flops > 0)
            stat[n++] =
                (pb_trace_stat){.id = FLOPS + 1, .number = (int64_t)t->flops};
        if (t->bytes > 0)
            stat[n++] =
                (pb_trace_stat){.id = BYTES + 1, .number = (int64_t)t->bytes};
        name.stat.at = stat;
        name.stat.n = n;
    }
    pb_write(b, &pb_trace_named_table, &entry);
    pb_close(b, at);
}

static void put_facts(sd_buf *b)
{
    for (int f = 0; f < FACT_COUNT; f++) {
        size_t at = pb_open(b, PB_TAG_trace_plane_facts);
        pb_trace_name name = {.id = f + 1, .text = pb_str(fact_name[f])};
        pb_trace_named entry = {.id = f + 1, .name = &name};

        pb_write(b, &pb_trace_named_table, &entry);
        pb_close(b, at);
    }
}

typedef struct {
    const pjrt_trace *trace;
    const named *name;
    int nname;
    uint64_t first; /* the trace's, as all times here */
    int64_t ns; /* when that was, by the wall clock */
} writer;

static void put_event(sd_buf *b, const writer *w, const xpu_step *s)
{
    pb_trace_event e = {.name = number_of(w->name, w->nname, s),
                        .ps = (int64_t)(s->from - w->first) * 1000};
    size_t at = pb_open(b, PB_TAG_trace_line_event);

    if (s->until > s->from)
        e.lasts_ps = (int64_t)(s->until - s->from) * 1000;
    pb_write(b, &pb_trace_event_table, &e);
    pb_close(b, at);
}

/* Runs have a line of their own, as they overlap. */
static void put_line(sd_buf *b, const writer *w, int device, bool steps)
{
    const pjrt_trace *t = w->trace;
    size_t at = pb_open(b, PB_TAG_trace_plane_line);
    pb_trace_line line = {.id = 2 * device + 1 + steps, .ns = w->ns};
    char name[48];

    snprintf(name, sizeof name, PJRT_PLATFORM "(id=%d)%s", device,
             steps ? " steps" : "");
    line.name = pb_str(name);
    pb_write(b, &pb_trace_line_table, &line);
    for (int i = 0; i < t->n; i++)
        if (t->at[i].device == device && (t->at[i].step != NULL) == steps)
            put_event(b, w, &t->at[i]);
    pb_close(b, at);
}

static int64_t wall_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void put_plane(sd_buf *b, writer *w)
{
    const pjrt_trace *t = w->trace;
    size_t at = pb_open(b, PB_TAG_trace_plane);
    pb_trace_plane plane = {.id = 1,
                            .name = pb_str("/device:CUSTOM:" PJRT_PLATFORM)};
    int most = -1;

    pb_write(b, &pb_trace_plane_table, &plane);
    w->first = sd_now_ns();
    for (int i = 0; i < t->n; i++) {
        most = SD_MAX(most, t->at[i].device);
        /* a place of 0 would be left out, and stand for none */
        w->first = SD_MIN(w->first, t->at[i].from - 1);
    }
    w->ns = wall_ns() - (int64_t)(sd_now_ns() - w->first);
    put_facts(b);
    for (int i = 0; i < w->nname; i++)
        put_name(b, &t->at[w->name[i].first], i + 1);
    for (int d = 0; d <= most; d++) {
        put_line(b, w, d, false);
        if (t->steps)
            put_line(b, w, d, true);
    }
    pb_close(b, at);
}

sd_status pjrt_trace_write(const pjrt_trace *t, sd_buf *out)
{
    named *name = calloc((size_t)t->n + 1, sizeof *name);
    writer w = {.trace = t, .name = name};

    if (!name)
        return sd_no_memory((size_t)t->n * sizeof *name);
    if (t->nlost)
        sd_log(SD_LOG_WARN,
               "the trace lacks %" PRId64 " steps and runs: it has the first "
               "%d",
               t->nlost, t->n);
    w.nname = find_names(t, name);
    put_plane(out, &w);
    free(name);
    return out->oom ? sd_no_memory(out->len) : NULL;
}
