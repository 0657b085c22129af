/* The queues of the OpenCL library for tests: each has a thread that runs its
 * commands, and events say how they ended. */
#include "fake_cl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The lock is held. */
static void drop_event(cl_event e)
{
    if (e && !--e->refs)
        fake_cl_drop(e);
}

static cl_int await_event(cl_event e)
{
    while (e && e->status > 0)
        pthread_cond_wait(&fake_cl_changed, &fake_cl_lock);
    return e && e->status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                              : CL_SUCCESS;
}

static void complete(cl_event e, cl_int status)
{
    if (!e)
        return;
    e->status = status;
    pthread_cond_broadcast(&fake_cl_changed);
    if (!e->fn)
        return;
    pthread_mutex_unlock(&fake_cl_lock);
    e->fn(e, status, e->ctx);
    pthread_mutex_lock(&fake_cl_lock);
}

static cl_int run(const command *c)
{
    float scratch[4096];

    if (++fake_cl_nrun == fake_cl_is.exec)
        return fake_cl_is.error;
    if (c->fn)
        c->fn((void **)c->arg, 0, c->tiles, scratch);
    else if (c->to)
        memmove(c->to, c->from, c->bytes);
    return CL_SUCCESS;
}

/* A marker ends as what came before it since the last one did. */
static void serve_one(cl_command_queue q, command *c)
{
    cl_int err = await_event(c->wait);
    useconds_t lag = (useconds_t)fake_cl_is.lag;

    while (c->fn && fake_cl_is_held)
        pthread_cond_wait(&fake_cl_changed, &fake_cl_lock);
    pthread_mutex_unlock(&fake_cl_lock);
    if (lag)
        usleep(lag);
    if (!err)
        err = run(c);
    pthread_mutex_lock(&fake_cl_lock);
    if (err)
        q->error = err;
    if (c->marks) {
        err = q->error;
        q->error = CL_SUCCESS;
    }
    complete(c->event, err);
    drop_event(c->event);
    drop_event(c->wait);
    free(c);
}

static void *serve(void *arg)
{
    cl_command_queue q = arg;
    command *c;

    pthread_mutex_lock(&fake_cl_lock);
    for (;;) {
        while (!q->head && !q->stop)
            pthread_cond_wait(&fake_cl_changed, &fake_cl_lock);
        if (!(c = q->head))
            break;
        if (!(q->head = c->next))
            q->tail = &q->head;
        q->busy = true;
        serve_one(q, c);
        q->busy = false;
        pthread_cond_broadcast(&fake_cl_changed);
    }
    pthread_mutex_unlock(&fake_cl_lock);
    return NULL;
}

API cl_command_queue clCreateCommandQueueWithProperties(
    cl_context c, cl_device_id d, const cl_queue_properties *p, cl_int *err)
{
    cl_command_queue q = fake_cl_make(sizeof *q, err);

    (void)c, (void)d, (void)p;
    if (!q)
        return NULL;
    q->tail = &q->head;
    if (pthread_create(&q->thread, NULL, serve, q)) {
        *err = CL_OUT_OF_HOST_MEMORY;
        fake_cl_drop(q);
        return NULL;
    }
    return q;
}

static void wait_idle(cl_command_queue q)
{
    while (q->busy || q->head)
        pthread_cond_wait(&fake_cl_changed, &fake_cl_lock);
}

API cl_int clReleaseCommandQueue(cl_command_queue q)
{
    pthread_mutex_lock(&fake_cl_lock);
    q->stop = true;
    pthread_cond_broadcast(&fake_cl_changed);
    pthread_mutex_unlock(&fake_cl_lock);
    pthread_join(q->thread, NULL);
    return fake_cl_drop(q);
}

/* In trouble, too: what is lost writes nothing any more. */
API cl_int clFinish(cl_command_queue q)
{
    pthread_mutex_lock(&fake_cl_lock);
    wait_idle(q);
    pthread_mutex_unlock(&fake_cl_lock);
    fake_cl_nfinish++;
    return fake_cl_trouble();
}

API cl_int clFlush(cl_command_queue q)
{
    (void)q;
    return fake_cl_trouble();
}

/* what is copied; *event where asked for is the caller's. */
cl_int fake_cl_put(cl_command_queue q, const command *what, cl_event wait,
                   cl_event *event)
{
    command *c = malloc(sizeof *c);
    cl_int err = fake_cl_trouble();
    cl_event e = NULL;

    if (!err && !c)
        err = CL_OUT_OF_HOST_MEMORY;
    if (!err && event && !(e = calloc(1, sizeof *e)))
        err = CL_OUT_OF_HOST_MEMORY;
    if (err) {
        free(c);
        return err;
    }
    *c = *what;
    pthread_mutex_lock(&fake_cl_lock);
    if (e) {
        *e = (struct _cl_event){&fake_table, 2, CL_QUEUED, NULL, NULL};
        fake_cl_nlive++;
        *event = e;
    }
    c->event = e;
    if ((c->wait = wait))
        wait->refs++;
    c->next = NULL;
    *q->tail = c;
    q->tail = &c->next;
    pthread_cond_broadcast(&fake_cl_changed);
    pthread_mutex_unlock(&fake_cl_lock);
    return CL_SUCCESS;
}

API cl_int clEnqueueMarkerWithWaitList(cl_command_queue q, cl_uint n,
                                       const cl_event *wait, cl_event *event)
{
    return fake_cl_put(q, &(command){.marks = true}, n ? *wait : NULL, event);
}

API cl_int clEnqueueBarrierWithWaitList(cl_command_queue q, cl_uint n,
                                        const cl_event *wait, cl_event *event)
{
    return fake_cl_put(q, &(command){.marks = false}, n ? *wait : NULL, event);
}

API cl_int clSetEventCallback(cl_event e, cl_int type,
                              void(CL_CALLBACK *fn)(cl_event, cl_int, void *),
                              void *ctx)
{
    cl_int bad = fake_cl_trouble(), status;

    (void)type;
    if (bad)
        return bad;
    pthread_mutex_lock(&fake_cl_lock);
    if ((status = e->status) > 0) {
        e->fn = fn;
        e->ctx = ctx;
    }
    pthread_mutex_unlock(&fake_cl_lock);
    if (status <= 0)
        fn(e, status, ctx);
    return CL_SUCCESS;
}

API cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t room, void *to,
                          size_t *size)
{
    cl_int status;

    (void)what;
    pthread_mutex_lock(&fake_cl_lock);
    status = e->status;
    pthread_mutex_unlock(&fake_cl_lock);
    return fake_cl_answer(&status, sizeof status, room, to, size);
}

API cl_int clWaitForEvents(cl_uint n, const cl_event *e)
{
    cl_int err;

    (void)n;
    pthread_mutex_lock(&fake_cl_lock);
    err = await_event(*e);
    pthread_mutex_unlock(&fake_cl_lock);
    return err ? err : fake_cl_trouble();
}

API cl_int clReleaseEvent(cl_event e)
{
    pthread_mutex_lock(&fake_cl_lock);
    drop_event(e);
    pthread_mutex_unlock(&fake_cl_lock);
    return CL_SUCCESS;
}

static cl_int copy(cl_command_queue q, bool blocking, void *to,
                   const void *from, size_t n)
{
    command c = {.to = to, .from = from, .bytes = n};
    cl_event e;
    cl_int err = fake_cl_put(q, &c, NULL, blocking ? &e : NULL);

    if (err || !blocking)
        return err;
    pthread_mutex_lock(&fake_cl_lock);
    await_event(e);
    err = e->status;
    drop_event(e);
    pthread_mutex_unlock(&fake_cl_lock);
    return err;
}

API cl_int clEnqueueSVMMemcpy(cl_command_queue q, cl_bool blocking, void *to,
                              const void *from, size_t bytes, cl_uint n,
                              const cl_event *wait, cl_event *event)
{
    (void)n, (void)wait, (void)event;
    return copy(q, blocking, to, from, bytes);
}

cl_int fake_cl_copy_usm(cl_command_queue q, cl_bool blocking, void *to,
                        const void *from, size_t bytes, cl_uint n,
                        const cl_event *wait, cl_event *event)
{
    (void)n, (void)wait, (void)event;
    return copy(q, blocking, to, from, bytes);
}
