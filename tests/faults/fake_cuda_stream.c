/* Streams and events of the libcuda for tests: each stream has a thread that
 * runs its commands, and launches graphs of them. */
#include "fake_cuda.h"

#include <stdlib.h>
#include <unistd.h>

/* Who waits does so for what the event was when he asked: it may be recorded
 * again, in a stream that is further on. */
struct fake_record {
    int refs; /* the event's, and of commands */
    bool done;
};
struct cu_event_st {
    fake_record *last; /* NULL: it was never recorded */
};

/* The lock is held. */
static void drop_record(fake_record *r)
{
    if (r && !--r->refs)
        free(r);
}

/* A word goes over whole, as on a card: a kernel may look at it meanwhile. */
static void copy(const fake_command *c)
{
    uint32_t word;

    if (c->bytes != sizeof word || (uintptr_t)c->to % sizeof word) {
        memmove(c->to, c->from, c->bytes);
        return;
    }
    memcpy(&word, c->from, sizeof word);
    atomic_store((_Atomic uint32_t *)c->to, word);
}

static void run(const command *c)
{
    if (c->kind == LAUNCH && c->is.fn)
        fake_run_kernel(&c->is);
    else if (c->kind == COPY)
        copy(&c->is);
    else if (c->kind == HOST) {
        fake_in_host_function = true;
        c->host(c->ctx);
        fake_in_host_function = false;
    }
}

/* The lock is held.  In a dead context only marks go on being reached. */
static void work(cu_stream s, const command *c)
{
    bool fault;

    while (c->kind == LAUNCH && fake_is_held)
        pthread_cond_wait(&fake_changed, &fake_lock);
    if (s->context->fault)
        return;
    if (++fake_nrun == fake_is.exec) {
        s->context->fault = fake_is.fault;
        pthread_cond_broadcast(&fake_changed);
    }
    fault = s->context->fault;
    pthread_mutex_unlock(&fake_lock);
    if (fake_is.lag)
        usleep((useconds_t)fake_is.lag);
    if (!fault)
        run(c);
    pthread_mutex_lock(&fake_lock);
}

static void work_graph(cu_stream s, const struct cu_graph_st *g)
{
    for (cu_graph_node n = g->first; n && !s->context->fault; n = n->next)
        if (n->what.kind != GRAPH) {
            work(s, &n->what);
        } else {
            while (*n->condition && !s->context->fault) {
                work_graph(s, n->body);
                if (!n->repeats)
                    break;
            }
        }
}

/* Likewise. */
static void serve(void *owner, fake_command *one)
{
    cu_stream s = owner;
    command *c = (command *)one;

    while (c->kind == WAIT && c->record && !c->record->done)
        pthread_cond_wait(&fake_changed, &fake_lock);
    if (c->kind < GRAPH)
        work(s, c);
    if (c->kind == GRAPH)
        work_graph(s, c->graph);
    fake_nreplay += c->kind == GRAPH;
    if (c->kind == RECORD) {
        c->record->done = true;
        pthread_cond_broadcast(&fake_changed);
    }
    drop_record(c->record);
    fake_drop_graph(c->graph);
    free(c->own);
    free(c);
}

cu_result cuStreamCreate(cu_stream *out, unsigned flags)
{
    cu_result err = fake_trouble_in(NULL);
    cu_stream s;

    if (err || flags != CU_NON_BLOCKING)
        return err ? err : CU_INVALID_VALUE;
    if (!(s = fake_make(sizeof *s)))
        return CU_OUT_OF_MEMORY;
    s->context = fake_context();
    fake_start(&s->worker, serve, s);
    *out = s;
    return CU_OK;
}

cu_result cuStreamDestroy_v2(cu_stream s)
{
    fake_stop(&s->worker);
    return fake_drop(s);
}

static cu_result wait_idle(cu_stream s)
{
    cu_result err;

    pthread_mutex_lock(&fake_lock);
    fake_wait_idle(&s->worker);
    err = s->context->fault;
    pthread_mutex_unlock(&fake_lock);
    return err;
}

/* In trouble, too: what is lost writes nothing any more. */
cu_result cuStreamSynchronize(cu_stream s)
{
    cu_result bad = wait_idle(s), err = fake_trouble_in(s->context);

    return err ? err : bad;
}

/* The lock is held.  False: there is no memory. */
static bool take_record(command *c)
{
    cu_event e = c->event;

    if (c->kind == RECORD) {
        drop_record(e->last);
        if (!(e->last = calloc(1, sizeof *e->last)))
            return false;
        e->last->refs = 1;
    }
    if ((c->record = e->last))
        c->record->refs++;
    return true;
}

/* The lock is not held. */
cu_result fake_put(cu_stream s, const command *what)
{
    cu_result err = fake_trouble_in(s->context);
    command *c = err ? NULL : malloc(sizeof *c);

    if (!c) {
        free(what->own);
        fake_drop_graph(what->graph);
        return err ? err : CU_OUT_OF_MEMORY;
    }
    *c = *what;
    pthread_mutex_lock(&fake_lock);
    if (!c->event || take_record(c)) {
        fake_append(&s->worker, &c->is);
    } else {
        free(c);
        err = CU_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&fake_lock);
    return err;
}

cu_result cuStreamWaitEvent(cu_stream s, cu_event e, unsigned flags)
{
    (void)flags;
    return fake_put(s, &(command){.kind = WAIT, .event = e});
}

cu_result cuLaunchHostFunc(cu_stream s, cu_host_fn fn, void *ctx)
{
    return fake_put(s, &(command){.kind = HOST, .host = fn, .ctx = ctx});
}

/* From pageable memory: it has been read when the call returns.  To it: all has
 * run by then. */
cu_result cuMemcpyAsync(cu_pointer to, cu_pointer from, size_t bytes,
                        cu_stream s)
{
    command c = {.is = {.to = (void *)(uintptr_t)to,
                        .from = (const void *)(uintptr_t)from,
                        .bytes = bytes},
                 .kind = COPY};
    bool host_to, host_from;
    cu_result err;

    if (!fake_is_inside(c.is.to, bytes, &host_to) ||
        !fake_is_inside(c.is.from, bytes, &host_from))
        return CU_INVALID_VALUE;
    if (host_from && bytes) {
        if (!(c.own = malloc(bytes)))
            return CU_OUT_OF_MEMORY;
        c.is.from = memcpy(c.own, c.is.from, bytes);
    }
    err = fake_put(s, &c);
    return err || !host_to ? err : wait_idle(s);
}

/* ---- events ---- */

cu_result cuEventCreate(cu_event *out, unsigned flags)
{
    cu_result err = fake_trouble_in(NULL);
    cu_event e;

    if (err || !(flags & CU_EVENT_NO_TIMES))
        return err ? err : CU_INVALID_VALUE;
    if (!(e = fake_make(sizeof *e)))
        return CU_OUT_OF_MEMORY;
    *out = e;
    return CU_OK;
}

cu_result cuEventDestroy_v2(cu_event e)
{
    pthread_mutex_lock(&fake_lock);
    drop_record(e->last);
    pthread_mutex_unlock(&fake_lock);
    return fake_drop(e);
}

cu_result cuEventRecord(cu_event e, cu_stream s)
{
    return fake_put(s, &(command){.kind = RECORD, .event = e});
}

cu_result cuEventQuery(cu_event e)
{
    cu_result err = fake_trouble_in(NULL);

    if (err)
        return err;
    pthread_mutex_lock(&fake_lock);
    err = e->last && !e->last->done ? CU_NOT_READY : CU_OK;
    pthread_mutex_unlock(&fake_lock);
    return err;
}

cu_result cuEventSynchronize(cu_event e)
{
    cu_result err = fake_trouble_in(NULL);
    fake_record *r;

    if (err)
        return err;
    pthread_mutex_lock(&fake_lock);
    if ((r = e->last))
        r->refs++;
    while (r && !r->done && !fake_context()->fault)
        pthread_cond_wait(&fake_changed, &fake_lock);
    drop_record(r);
    err = fake_context()->fault;
    pthread_mutex_unlock(&fake_lock);
    return err;
}
