/* The execution of programs: arguments are checked and held, outputs made,
 * and the run is done or launched at once, or queued.  Everything that can fail
 * for want of memory comes before anything is taken from the caller, so that a
 * failed call leaves its arguments as they were. */
#include "xpu_execution.h"
#include "xpu_interrupt.h"

#include <math.h>
#include <stdlib.h>

/* Without queues: a run that is thought to take no more is the caller's.  To
 * wake another thread and to be woken by it costs more than is lost while the
 * caller prepares no other run; and runs that wait in a queue have their
 * outputs' memory, so that none of them writes where the caches still hold what
 * the run before it wrote.  The first run goes by device_guess_ns, which is
 * five times too high for vectors and 25 times for products; then all go by
 * what runs took lately. */
#define INLINE_NS 1000000
/* With queues: where runs take that long the guess was too low, and callers do
 * not lend themselves to them. */
#define SLOW_NS 1000000

/* With queues: so many launches take less time than to wake another thread. */
#define INLINE_LAUNCHES 32
/* On a device that lends (the host's own cores) so few launches of so little
 * work have run before one of the driver's threads is awake. */
#define BRIEF_NS       1e5
#define BRIEF_LAUNCHES 4

/* So far ahead may callers run before they wait: each run that is queued or in
 * flight already holds the memory of its outputs, and large arrays would fill
 * what there is with those that are to come.  A card's own memory, of which a
 * sixteenth may be ahead, serves programs alone: outputs of 1 GB, written in
 * half a millisecond, need several runs ahead.  Transfers never wait: a caller
 * may hold a lock that the callbacks of an earlier one need. */
#define MOST_QUEUED 256
#define MOST_AHEAD  ((int64_t)128 << 20)
#define OWN_AHEAD   16

/* ---- one execution ---- */

typedef xpu_execution execution;

static execution *execution_alloc(xpu_program *x)
{
    const thunk_program *p = x->thunks;
    size_t narg = (size_t)p->nparam, nout = (size_t)p->noutput;
    size_t words = narg + nout + (size_t)p->nbuffer + (size_t)x->max_arg;
    execution *e =
        malloc(sizeof *e + words * sizeof(void *) + nout * sizeof(int));

    if (!e)
        return NULL;
    memset(e, 0, sizeof *e);
    e->arg = (xpu_buffer **)(e + 1);
    e->out = e->arg + narg;
    e->base = (uint8_t **)(e->out + nout);
    e->slot = (void **)(e->base + p->nbuffer);
    e->alias = (int *)(e->slot + x->max_arg);
    if (!(e->done = xpu_event_create())) {
        free(e);
        return NULL;
    }
    e->program = xpu_program_retain(x);
    return e;
}

/* What callbacks and handlers use must stay until the run has ended, though
 * nobody may wait for its results any more. */
static sd_status take_callbacks(execution *e, const xpu_call *call)
{
    e->send = call->send;
    e->recv = call->recv;
    e->nsend = call->nsend;
    e->nrecv = call->nrecv;
    e->user = call->user;
    e->nuser = call->nuser;
    if (!call->nsend && !call->nrecv && !call->nuser)
        return NULL;
    return (e->ended = xpu_event_create()) ? NULL : sd_no_memory(0);
}

/* Dimensions of extent 1 are passed over: some clients hand over u8[1] as u8[].
 */
static bool same_type(const thunk_type *t, const xpu_buffer *b)
{
    int i = 0, k = 0;

    if (t->dtype == SD_TOKEN) /* frameworks give any array without elements */
        return b->bytes == 0;
    if (t->dtype != b->dtype)
        return false;
    for (;;) {
        while (i < t->rank && t->dim[i] == 1)
            i++;
        while (k < b->rank && b->dim[k] == 1)
            k++;
        if (i == t->rank || k == b->rank)
            return i == t->rank && k == b->rank;
        if (t->dim[i++] != b->dim[k++])
            return false;
    }
}

static sd_status wrong_type(int i, const thunk_type *t, const xpu_buffer *b)
{
    sd_buf s = {0};
    sd_status st;

    sd_buf_fmt(&s, "argument %d is %s[", i, sd_dtype_name(b->dtype));
    for (int k = 0; k < b->rank; k++)
        sd_buf_fmt(&s, "%s%" PRId64, k ? "," : "", b->dim[k]);
    sd_buf_fmt(&s, "], the program wants %s[", sd_dtype_name(t->dtype));
    for (int k = 0; k < t->rank; k++)
        sd_buf_fmt(&s, "%s%" PRId64, k ? "," : "", t->dim[k]);
    sd_buf_str(&s, "]");
    sd_buf_u8(&s, 0);
    st = s.oom ? sd_no_memory(s.len) : sd_error(SD_INVALID, "%s", s.at);
    sd_buf_finish(&s);
    return st;
}

static bool is_donated(const xpu_program *x, const xpu_call *call, int i)
{
    return x->thunks->donatable && x->thunks->donatable[i] &&
           !(call->keep && call->keep[i]);
}

/* The work that makes b ready may be queued behind the run that wants b. */
static bool is_to_come(const xpu_buffer *b)
{
    return b->later && !xpu_event_is_queued(b->ready);
}

bool xpu_call_must_park(const xpu_call *call)
{
    for (int i = 0; i < call->narg; i++)
        if (is_to_come(call->arg[i]))
            return true;
    return false;
}

static sd_status use_arguments(execution *e, const xpu_call *call)
{
    const xpu_program *x = e->program;
    const thunk_program *p = x->thunks;

    if (call->narg != p->nparam)
        return sd_error(SD_INVALID, "%d arguments, the program wants %d",
                        call->narg, p->nparam);
    for (int i = 0; i < call->narg; i++) {
        xpu_buffer *b = call->arg[i];

        if (b->dev != x->dev)
            return sd_error(SD_INVALID,
                            "argument %d is on device %d, the program on %d", i,
                            b->dev->id, x->dev->id);
        if (!same_type(&p->param[i], b))
            return wrong_type(i, &p->param[i], b);
        if (!xpu_buffer_use(b, e->parked))
            return sd_error(SD_INVALID,
                            "argument %d has been deleted or donated", i);
        e->arg[e->nused++] = b;
    }
    return NULL;
}

/* A donated buffer may occur once among the arguments. */
static sd_status check_donations(const execution *e, const xpu_call *call)
{
    int n = call->narg, ndonated = 0, *seen;
    size_t size = 4;
    sd_status st = NULL;

    for (int i = 0; i < n; i++)
        ndonated += is_donated(e->program, call, i);
    if (!ndonated || n < 2)
        return NULL;
    while (size < (size_t)n * 2)
        size *= 2;
    if (!(seen = calloc(size, sizeof *seen)))
        return sd_no_memory(size * sizeof *seen);
    for (int i = 0; i < n && !st; i++) {
        size_t h = (uintptr_t)call->arg[i] / 16 * 0x9e3779b97f4a7c15ull >> 32;

        for (h &= size - 1; seen[h]; h = (h + 1) & (size - 1)) {
            int k = seen[h] - 1;

            if (call->arg[k] == call->arg[i] &&
                (is_donated(e->program, call, i) ||
                 is_donated(e->program, call, k))) {
                st = sd_error(SD_INVALID,
                              "arguments %d and %d are one buffer, and it is "
                              "donated: f(donate(a), a) has no meaning",
                              k, i);
                break;
            }
        }
        seen[h] = seen[h] ? seen[h] : i + 1;
    }
    free(seen);
    return st;
}

static xpu_memory memory_of(const thunk_type *t)
{
    xpu_memory m = XPU_MEM_DEVICE;

    if (t->memory)
        (void)xpu_memory_of_name(t->memory, &m); /* checked when loaded */
    return m;
}

static sd_status give_memory(execution *e, xpu_buffer *b)
{
    void *at;
    xpu_purpose use = {"results of ", e->program->thunks->name};
    sd_status st =
        xpu_memory_alloc(b->dev, b->mem, use, b->bytes, &at, &b->cls);

    if (st) {
        b->cls = -1;
        return st;
    }
    b->ptr = at;
    e->ahead += (int64_t)b->bytes;
    return NULL;
}

/* Output o takes the memory of its donated argument, or has its own. */
static sd_status place_output(execution *e, const xpu_call *call, int o,
                              int alias)
{
    xpu_buffer *b = e->out[o];

    e->alias[o] = -1;
    if (alias >= 0 && is_donated(e->program, call, alias)) {
        xpu_buffer *a = e->arg[alias];

        if (a->bytes == b->bytes && a->mem == b->mem && xpu_buffer_take(a)) {
            b->ptr = a->ptr;
            b->cls = a->cls;
            return NULL;
        }
    }
    e->alias[o] = alias;
    return give_memory(e, b);
}

static sd_status make_outputs(execution *e, const xpu_call *call)
{
    const thunk_program *p = e->program->thunks;
    sd_status st;

    for (int i = 0; i < p->noutput; i++) {
        const thunk_type *t = &p->output[i];
        xpu_buffer *b = xpu_buffer_make(e->program->dev, memory_of(t), t->dtype,
                                        t->rank, t->dim, t->bytes, e->done);

        if (!b)
            return sd_no_memory(sizeof *b);
        b->later = e->parked;
        e->out[e->nout++] = b;
        if (!e->program->aliases && (e->alias[i] = -1, st = give_memory(e, b)))
            return st;
    }
    if (!e->program->aliases)
        return NULL;
    for (int i = 0; i < p->nbuffer; i++) {
        const thunk_buffer *tb = &p->buffer[i];

        if (tb->kind == THUNK_B_OUTPUT &&
            (st = place_output(e, call, tb->index, tb->alias)))
            return st;
    }
    return NULL;
}

/* The call failed: what was taken goes back, what was made goes away. */
void xpu_execution_undo(execution *e)
{
    xpu_event *done = e->done, *ended = e->ended;

    for (int i = 0; i < e->nout && e->held; i++)
        xpu_buffer_unuse(e->out[i], false);
    e->held = false;
    for (int i = 0; i < e->nout; i++) {
        xpu_buffer *b = e->out[i];

        for (int k = 0; k < e->nused && b->ptr; k++)
            if (e->arg[k]->ptr == b->ptr &&
                (atomic_load(&e->arg[k]->hold) & XPU_TAKEN)) {
                b->ptr = NULL;
                b->cls = -1;
                xpu_buffer_untake(e->arg[k]);
            }
        xpu_buffer_release(b);
    }
    e->nout = 0;
    xpu_execution_free(e);
    xpu_event_release(done);
    xpu_event_release(ended);
}

/* ---- not too far ahead ---- */

static bool is_too_far(const xpu_device *d)
{
    const xpu_flights *f = &d->flights;
    int64_t own = d->ops->shared_memory ? 0 : d->limit / OWN_AHEAD;

    return f->nahead >= MOST_QUEUED || f->ahead > SD_MAX(MOST_AHEAD, own);
}

/* A thread that serves one of the client's devices waits for none of them,
 * since what it waits for may wait for it.  In a forked child no run ever ends.
 */
static bool may_wait(const xpu_device *d)
{
    const xpu_client *c = d->client;

    for (int i = 0; i < c->ndev; i++)
        if (xpu_device_is_mine(c->dev[i]))
            return false;
    return !xpu_stream_is_left_behind((xpu_stream *)&d->compute) &&
           !xpu_stream_is_left_behind((xpu_stream *)&d->done);
}

void xpu_execute_not_too_far(xpu_device *d)
{
    xpu_flights *f = &d->flights;
    bool far;

    pthread_mutex_lock(&f->lock);
    far = is_too_far(d);
    pthread_mutex_unlock(&f->lock);
    if (!far || !may_wait(d))
        return;
    pthread_mutex_lock(&f->lock);
    while (is_too_far(d))
        pthread_cond_wait(&f->fewer, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

/* ---- when it runs ---- */

static void run_queued(xpu_task *task)
{
    xpu_execution_run((execution *)task);
}

/* Of several devices no program stands between the members of a gang: it would
 * be behind the one and ahead of the other, and what comes of it may not be. */
static sd_status push(execution *e)
{
    xpu_device *d = e->program->dev;
    xpu_client *c = d->client;
    sd_status st;

    if (c->ndev == 1)
        return xpu_stream_push(&d->compute, &e->task);
    pthread_mutex_lock(&c->gang_lock);
    st = xpu_stream_push(&d->compute, &e->task);
    pthread_mutex_unlock(&c->gang_lock);
    return st;
}

/* One more argument is there, or in error. */
static void arrive(void *ctx, sd_status st)
{
    execution *e = ctx;

    sd_status_free(st);
    if (atomic_fetch_sub(&e->waits, 1) != 1)
        return;
    xpu_execution_count(e);
    if ((st = push(e)))
        xpu_execution_end(e, st);
}

/* Where there is no memory left to be told of an argument, the stream waits for
 * that one. */
void xpu_execution_await(const execution *e, _Atomic int *waits,
                         xpu_event_fn fn, void *ctx)
{
    for (int i = 0; i < e->nused; i++) {
        xpu_event *ready = e->arg[i]->ready;
        sd_status st;

        if (xpu_event_is_ready(ready))
            continue;
        atomic_fetch_add(waits, 1);
        if ((st = xpu_event_then(ready, fn, ctx)))
            fn(ctx, st);
    }
}

/* Keeps e off the stream until its arguments are ready. */
static void park(execution *e)
{
    atomic_init(&e->waits, 1);
    xpu_execution_await(e, &e->waits, arrive, e);
    arrive(e, NULL);
}

static bool all(const execution *e, bool (*is)(const xpu_event *ready))
{
    for (int i = 0; i < e->nused; i++)
        if (!is(e->arg[i]->ready))
            return false;
    return true;
}

static int64_t took_lately(const xpu_program *x)
{
    return atomic_load_explicit(&x->took_ns, memory_order_relaxed);
}

/* What callbacks and handlers wait for may be the caller's to do. */
static bool is_short(const execution *e)
{
    const xpu_program *x = e->program;
    int64_t took = took_lately(x);

    if (took < 0 || x->ffi || e->nsend || e->nrecv)
        return x->cost_ns <= INLINE_NS && took <= INLINE_NS;
    return took <= INLINE_NS;
}

/* On a device with queues it is launched, else run, while the caller waits. */
static bool is_small(const execution *e)
{
    const xpu_program *x = e->program;

    if (e->parked)
        return false;
    if (!x->dev->ops->record)
        return is_short(e) && all(e, xpu_event_is_ready);
    return x->nlaunch >= 0 && x->nlaunch <= INLINE_LAUNCHES &&
           all(e, xpu_event_is_queued) &&
           xpu_flight_fits(x->dev, took_lately(x));
}

/* Nothing keeps the run from starting, and it has ended before one of the
 * driver's threads would be awake. */
static bool is_brief(const execution *e)
{
    const xpu_program *x = e->program;

    return x->dev->lends && x->nlaunch <= BRIEF_LAUNCHES &&
           x->cost_ns <= BRIEF_NS && xpu_flight_fits(x->dev, INT64_MAX) &&
           took_lately(x) <= SLOW_NS && all(e, xpu_event_is_ready);
}

/* The caller's thread is lent to the driver until the run is done, and then
 * ends this run itself, but no other. */
static void launch_with_help(execution *e)
{
    xpu_device *d = e->program->dev;
    xpu_event *done = xpu_event_retain(e->done);
    const xpu_task *end = &e->flight.task;
    xpu_mark *m;

    e->flight.helped = true;
    xpu_execution_run(e);
    if ((m = xpu_event_mark(done))) {
        d->ops->help(m);
        xpu_mark_release(m);
    }
    xpu_stream_run_first(&d->done, end);
    xpu_stream_disown(&d->done);
    xpu_event_release(done);
}

static void launch_now(execution *e)
{
    xpu_device *d = e->program->dev;

    xpu_execution_count(e);
    if (is_brief(e) && xpu_stream_try_own(&d->done)) {
        launch_with_help(e); /* gone before an interrupt could be due */
    } else {
        xpu_live_add(e);
        xpu_execution_run(e);
    }
    xpu_stream_disown(&d->compute);
}

/* How long a loop turns this time nobody knows: only what is listed can be
 * interrupted. */
static void compute_now(execution *e)
{
    xpu_device *d = e->program->dev;
    xpu_event *done = e->done, *ended = e->ended;
    sd_status st;

    if (e->program->cost_ns == INFINITY) {
        xpu_live_add(e);
        xpu_execution_run(e);
        xpu_stream_disown(&d->compute);
        return;
    }
    st = xpu_execution_compute(e);
    xpu_execution_free(e);
    xpu_stream_disown(&d->compute);
    xpu_execution_tell(done, ended, st);
}

/* Runs or launches e on this thread when it is small and nothing comes before
 * it; e is taken then. */
static bool run_now(execution *e)
{
    if (!is_small(e) || !xpu_stream_try_own(&e->program->dev->compute))
        return false;
    if (e->program->dev->ops->record)
        launch_now(e);
    else
        compute_now(e);
    return true;
}

/* A host callback runs programs on its own device, and may wait for them: they
 * cannot queue behind the run that it is part of.  What takes an argument's
 * memory must, since others may be queued that are to read it before. */
static bool is_nested(const execution *e)
{
    xpu_device *d = e->program->dev;

    return !e->program->aliases && xpu_stream_is_mine(&d->compute) &&
           d->in_callback;
}

/* Takes e, unless it returns an error. */
static sd_status start_execution(execution *e)
{
    sd_status st;

    if (run_now(e))
        return NULL;
    xpu_live_add(e);
    if (e->parked) {
        park(e);
        return NULL;
    }
    xpu_execution_count(e);
    if (is_nested(e)) {
        xpu_execution_run(e);
        return NULL;
    }
    if ((st = push(e))) {
        xpu_execution_uncount(e);
        xpu_live_remove(e);
    }
    return st;
}

/* ---- all ---- */

sd_status xpu_execution_make(xpu_program *x, const xpu_call *call, bool parked,
                             xpu_execution **out)
{
    execution *e = execution_alloc(x);
    sd_status st;

    if (!e)
        return sd_no_memory(sizeof *e);
    e->parked = parked;
    if ((st = use_arguments(e, call)) || (st = check_donations(e, call)) ||
        (st = take_callbacks(e, call)) || (st = make_outputs(e, call))) {
        xpu_execution_undo(e);
        return sd_note(st, "executing %s", x->thunks->name);
    }
    for (int i = 0; i < e->nout; i++)
        xpu_buffer_use(e->out[i], false);
    e->held = true;
    e->task.run = run_queued;
    e->launch = call->launch;
    *out = e;
    return NULL;
}

xpu_event *xpu_execution_give(const execution *e, xpu_buffer **out)
{
    if (e->nout)
        memcpy(out, e->out, (size_t)e->nout * sizeof *out);
    return xpu_event_retain(e->ended ? e->ended : e->done);
}

void xpu_call_delete_donated(const xpu_program *x, const xpu_call *call)
{
    for (int i = 0; i < call->narg; i++)
        if (is_donated(x, call, i))
            xpu_buffer_delete(call->arg[i]);
}

sd_status xpu_execute(xpu_program *x, const xpu_call *call, xpu_buffer **out,
                      xpu_event **done)
{
    execution *e;
    xpu_event *ready;
    sd_status st;

    if (x->meets)
        return sd_error(SD_INVALID,
                        "%s is a program of %d participants, who run it "
                        "together or not at all",
                        x->thunks->name, thunk_participants(x->thunks));
    xpu_execute_not_too_far(x->dev);
    if ((st = xpu_execution_make(x, call, xpu_call_must_park(call), &e)))
        return st;
    ready = xpu_execution_give(e, out);
    if ((st = start_execution(e))) {
        xpu_execution_undo(e);
        xpu_event_release(ready);
        return st;
    }
    xpu_call_delete_donated(x, call);
    if (done)
        *done = ready;
    else
        xpu_event_release(ready);
    return NULL;
}
