/* Running an execution.  On a device without marks its owner walks the steps
 * and it has run.  On one with queues the steps are put into its compute queue
 * and the owner goes on to the next execution; a mark behind the last step ends
 * this one (xpu_flight.c).  Only a step that the host has in it, such as a
 * predicate that it reads, waits for what is in the queue. */
#include "xpu_gang.h"
#include "xpu_interrupt.h"

#include <stddef.h>
#include <stdlib.h>

typedef xpu_execution execution;

/* ---- its end ---- */

void xpu_execution_count(execution *e)
{
    xpu_flights *f = &e->program->dev->flights;

    pthread_mutex_lock(&f->lock);
    f->nahead++;
    f->ahead += e->ahead;
    pthread_mutex_unlock(&f->lock);
    e->counted = true;
}

void xpu_execution_uncount(execution *e)
{
    xpu_flights *f = &e->program->dev->flights;

    if (!e->counted)
        return;
    pthread_mutex_lock(&f->lock);
    f->nahead--;
    f->ahead -= e->ahead;
    pthread_cond_broadcast(&f->fewer);
    pthread_mutex_unlock(&f->lock);
    e->counted = false;
}

/* Ends all uses and frees e; its done event is the caller's now. */
void xpu_execution_free(execution *e)
{
    for (int i = 0; i < e->nused; i++)
        xpu_buffer_unuse(e->arg[i], e->parked);
    for (int i = 0; i < e->nout && e->held; i++)
        xpu_buffer_unuse(e->out[i], false);
    xpu_program_release(e->program);
    xpu_gang_release(e->gang);
    free(e);
}

/* References, taken; done may be set: somebody gave up waiting. */
void xpu_execution_tell(xpu_event *done, xpu_event *ended, sd_status st)
{
    sd_status copy = ended ? sd_status_copy(st) : NULL;

    xpu_event_set(done, st);
    xpu_event_release(done);
    if (ended)
        xpu_event_set(ended, copy);
    xpu_event_release(ended);
}

void xpu_execution_end(execution *e, sd_status st)
{
    xpu_event *done = e->done, *ended = e->ended;

    st = xpu_live_end(e, st);
    xpu_execution_uncount(e);
    xpu_live_remove(e);
    xpu_execution_free(e);
    xpu_execution_tell(done, ended, st);
}

/* ---- its steps ---- */

static void set_bases(execution *e, uint8_t *temp)
{
    const xpu_program *x = e->program;
    const thunk_program *p = x->thunks;

    for (int i = 0; i < p->nbuffer; i++) {
        const thunk_buffer *b = &p->buffer[i];

        switch (b->kind) {
        case THUNK_B_PARAM:
            e->base[i] = e->arg[b->index]->ptr;
            break;
        case THUNK_B_OUTPUT:
            e->base[i] = e->out[b->index]->ptr;
            break;
        case THUNK_B_TEMP:
            e->base[i] = temp + b->at;
            break;
        case THUNK_B_IDS:
            e->base[i] = x->ids;
            break;
        default:
            e->base[i] = x->constants + b->at;
            break;
        }
    }
}

static sd_status copy_aliases(const execution *e)
{
    xpu_device *d = e->program->dev;
    sd_status st = NULL;

    for (int i = 0; i < e->nout && !st; i++) {
        const xpu_buffer *from;

        if (e->alias[i] < 0)
            continue;
        from = e->arg[e->alias[i]];
        st = d->ops->copy(d, XPU_COMPUTE, e->out[i]->ptr, from->ptr,
                          from->bytes);
    }
    return st;
}

static sd_status walk(execution *e, void *temp)
{
    xpu_program *x = e->program;
    xpu_device *d = x->dev;
    xpu_run r = {.dev = d,
                 .program = x,
                 .base = e->base,
                 .slot = e->slot,
                 .send = e->send,
                 .recv = e->recv,
                 .nsend = e->nsend,
                 .nrecv = e->nrecv,
                 .user = e->user,
                 .nuser = e->nuser,
                 .listener = e->listener,
                 .cancel = &e->cancel,
                 .gang = e->gang,
                 .me = e->me};
    const _Atomic bool *outer = d->cancel; /* callbacks' runs nest */
    int others = d->others;
    sd_status st;

    set_bases(e, temp);
    d->others = e->gang ? xpu_gang_size(e->gang) - 1 : 0;
    d->cancel = &e->cancel;
    if (!(st = d->ops->begin(d, x->module)) && !(st = copy_aliases(e)))
        st = xpu_run_program(&r);
    d->cancel = outer;
    d->others = others;
    return st;
}

/* The first error of its arguments, which it waits for. */
static sd_status poison(const execution *e)
{
    for (int i = 0; i < e->nused; i++) {
        const sd_error *st = xpu_event_await(e->arg[i]->ready);

        if (st)
            return sd_status_copy(st);
    }
    return NULL;
}

static sd_status no_work_space(const execution *e, sd_status st)
{
    return sd_note(st, "work space of %s", e->program->thunks->name);
}

/* ---- as a member ---- */

/* f: what it has in a queue, or NULL. */
static sd_status leave_gang(const execution *e, sd_status st, xpu_flight *f)
{
    return e->gang ? xpu_gang_leave(e->gang, e->me, st, f) : st;
}

/* Poisoned, or interrupted, before it began: the others must not wait. */
static sd_status never_began(const execution *e, sd_status st)
{
    if (!e->gang)
        return st;
    sd_status_free(st);
    if (!(st = xpu_event_error(e->done)))
        st = xpu_interrupted(e->program->thunks->name);
    return leave_gang(e, st, NULL);
}

/* The time that the next run is thought to take: half of what the last one took
 * and half of what was thought before it. */
static void learn(xpu_program *x, int64_t ns)
{
    int64_t old = atomic_load_explicit(&x->took_ns, memory_order_relaxed);

    atomic_store_explicit(&x->took_ns, old < 0 ? ns : (old + ns) / 2,
                          memory_order_relaxed);
}

/* ---- without marks: to the end ---- */

sd_status xpu_execution_compute(execution *e)
{
    xpu_program *x = e->program;
    size_t bytes = x->thunks->temp_bytes;
    void *temp = NULL;
    uint64_t from;
    sd_status st;
    int cls;

    if ((st = poison(e)))
        return st;
    from = sd_now_ns();
    if (bytes &&
        (st = xpu_memory_try(x->dev, XPU_MEM_DEVICE,
                             (xpu_purpose){"temporaries of ", x->thunks->name},
                             bytes, &temp, &cls)))
        return no_work_space(e, st);
    st = walk(e, temp);
    if (temp)
        xpu_memory_free(x->dev, XPU_MEM_DEVICE, temp, cls);
    learn(x, (int64_t)(sd_now_ns() - from));
    return sd_note(st, "running %s", x->thunks->name);
}

/* ---- with marks: into the queue ---- */

static execution *of_flight(xpu_flight *f)
{
    return (execution *)((char *)f - offsetof(execution, flight));
}

/* The error of an argument is told before st (taken), which may have come of
 * it. */
static sd_status first_error(const execution *e, sd_status st)
{
    sd_status bad = NULL;

    for (int i = 0; i < e->nused && !bad; i++)
        bad = xpu_event_error(e->arg[i]->ready);
    return sd_first(bad, st);
}

/* Others read its memory, and what they read came of its arguments and steps:
 * so all members end when all of them have run, with one error. */
static void arrive(xpu_flight *f)
{
    const execution *e = of_flight(f);

    xpu_gang_land(e->gang, e->me, first_error(e, sd_status_copy(f->st)));
}

/* All that the run waited for is ready. */
static void land(xpu_flight *f, sd_status st)
{
    execution *e = of_flight(f);

    if (!e->gang) /* of a gang they were asked for when it arrived */
        st = first_error(e, st);
    if (!st)
        learn(e->program, f->ns);
    xpu_work_release(f->dev, e->work);
    xpu_execution_end(e, st);
}

/* Steps that the host takes within a run must not read arguments in error, so
 * such a run waits for its arguments. */
static sd_status follow_arguments(execution *e)
{
    sd_status st = NULL;

    if (e->program->nlaunch < 0 || (e->gang && !xpu_gang_is_queued(e->gang)))
        return poison(e);
    for (int i = 0; i < e->nused && !st; i++)
        st = xpu_flight_after(&e->flight, e->arg[i]->ready);
    return st;
}

/* When there is no memory left, the runs in flight are waited for: they give
 * theirs back. */
static sd_status take_work(execution *e)
{
    xpu_device *d = e->program->dev;
    size_t bytes = e->program->thunks->temp_bytes;
    sd_status st;

    if (!bytes)
        return NULL;
    st = xpu_work_take(d, bytes, d->in_callback, &e->work);
    if (st && st->code == SD_EXHAUSTED && !d->in_callback &&
        !xpu_stream_is_mine(&d->done)) {
        sd_status_free(st);
        xpu_flight_await_others(&e->flight);
        st = xpu_work_take(d, bytes, false, &e->work);
    }
    return st ? no_work_space(e, st) : NULL;
}

static void launch(execution *e)
{
    xpu_program *x = e->program;
    sd_status st;

    e->flight.ns = atomic_load_explicit(&x->took_ns, memory_order_relaxed);
    e->flight.end = land;
    if ((st = xpu_flight_begin(&e->flight, x->dev, XPU_COMPUTE))) {
        xpu_execution_end(e, leave_gang(e, st, NULL));
        return;
    }
    if (e->gang)
        xpu_flight_join(&e->flight, arrive);
    if (!(st = follow_arguments(e)) && !(st = take_work(e)))
        st = sd_note(walk(e, e->work ? e->work->at : NULL), "running %s",
                     x->thunks->name);
    xpu_flight_launched(&e->flight, leave_gang(e, st, &e->flight), e->done);
}

/* ---- its turn ---- */

/* Only the compute stream's thread waits.  A caller has asked before whether
 * the run fits; a callback's run is part of one that is in flight, and would
 * wait for itself. */
static void wait_for_room(const execution *e)
{
    xpu_device *d = e->program->dev;

    if (xpu_stream_is_mine(&d->compute) && !d->in_callback)
        xpu_flight_await_fit(d, atomic_load_explicit(&e->program->took_ns,
                                                     memory_order_relaxed));
}

void xpu_execution_run(execution *e)
{
    sd_status st = NULL;

    if (e->program->dev->ops->record) {
        wait_for_room(e);
        if (xpu_live_begin(e))
            launch(e);
        else
            xpu_execution_end(e, never_began(e, NULL));
        return;
    }
    st = poison(e); /* waits for the arguments */
    if (!xpu_live_begin(e))
        st = never_began(e, st);
    else
        st = leave_gang(e, st ? st : xpu_execution_compute(e), NULL);
    xpu_execution_end(e, st);
}
