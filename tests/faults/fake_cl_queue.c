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
        pthread_cond_wait(&fake_changed, &fake_lock);
    return e && e->status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
                              : CL_SUCCESS;
}

static void complete(cl_event e, cl_int status)
{
    if (!e)
        return;
    e->status = status;
    pthread_cond_broadcast(&fake_changed);
    if (!e->fn)
        return;
    pthread_mutex_unlock(&fake_lock);
    e->fn(e, status, e->ctx);
    pthread_mutex_lock(&fake_lock);
}

static cl_int run(const fake_command *c)
{
    if (++fake_cl_nrun == fake_cl_is.exec)
        return fake_cl_is.error;
    if (c->fn)
        fake_run_kernel(c);
    else if (c->to)
        memmove(c->to, c->from, c->bytes);
    return CL_SUCCESS;
}

/* A marker ends as what came before it since the last one did. */
static void serve(void *owner, fake_command *one)
{
    cl_command_queue q = owner;
    command *c = (command *)one;
    cl_int err = await_event(c->wait);
    useconds_t lag = (useconds_t)fake_cl_is.lag;

    while (one->fn && fake_is_held)
        pthread_cond_wait(&fake_changed, &fake_lock);
    pthread_mutex_unlock(&fake_lock);
    if (lag)
        usleep(lag);
    if (!err)
        err = run(one);
    pthread_mutex_lock(&fake_lock);
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

API cl_command_queue clCreateCommandQueueWithProperties(
    cl_context c, cl_device_id d, const cl_queue_properties *p, cl_int *err)
{
    cl_command_queue q = fake_cl_make(sizeof *q, err);

    (void)c, (void)d, (void)p;
    if (!q)
        return NULL;
    fake_start(&q->worker, serve, q);
    return q;
}

API cl_int clReleaseCommandQueue(cl_command_queue q)
{
    fake_stop(&q->worker);
    return fake_cl_drop(q);
}

/* In trouble, too: what is lost writes nothing any more. */
API cl_int clFinish(cl_command_queue q)
{
    pthread_mutex_lock(&fake_lock);
    fake_wait_idle(&q->worker);
    pthread_mutex_unlock(&fake_lock);
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
    pthread_mutex_lock(&fake_lock);
    if (e) {
        *e = (struct _cl_event){&fake_table, 2, CL_QUEUED, NULL, NULL};
        fake_cl_nlive++;
        *event = e;
    }
    c->event = e;
    if ((c->wait = wait))
        wait->refs++;
    fake_append(&q->worker, &c->is);
    pthread_mutex_unlock(&fake_lock);
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
    pthread_mutex_lock(&fake_lock);
    if ((status = e->status) > 0) {
        e->fn = fn;
        e->ctx = ctx;
    }
    pthread_mutex_unlock(&fake_lock);
    if (status <= 0)
        fn(e, status, ctx);
    return CL_SUCCESS;
}

API cl_int clGetEventInfo(cl_event e, cl_event_info what, size_t room, void *to,
                          size_t *size)
{
    cl_int status;

    (void)what;
    pthread_mutex_lock(&fake_lock);
    status = e->status;
    pthread_mutex_unlock(&fake_lock);
    return fake_cl_answer(&status, sizeof status, room, to, size);
}

API cl_int clWaitForEvents(cl_uint n, const cl_event *e)
{
    cl_int err;

    (void)n;
    pthread_mutex_lock(&fake_lock);
    err = await_event(*e);
    pthread_mutex_unlock(&fake_lock);
    return err ? err : fake_cl_trouble();
}

API cl_int clReleaseEvent(cl_event e)
{
    pthread_mutex_lock(&fake_lock);
    drop_event(e);
    pthread_mutex_unlock(&fake_lock);
    return CL_SUCCESS;
}

static cl_int copy(cl_command_queue q, bool blocking, void *to,
                   const void *from, size_t n)
{
    command c = {.is = {.to = to, .from = from, .bytes = n}};
    cl_event e;
    cl_int err = fake_cl_put(q, &c, NULL, blocking ? &e : NULL);

    if (err || !blocking)
        return err;
    pthread_mutex_lock(&fake_lock);
    await_event(e);
    err = e->status;
    drop_event(e);
    pthread_mutex_unlock(&fake_lock);
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
