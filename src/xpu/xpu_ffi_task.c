/* Tasks that handlers schedule: they go in turn to threads of the client, which
 * the first task starts. */
#include "xpu_ffi.h"

#include <stdlib.h>

struct xpu_ffi_tasks {
    int n;
    _Atomic unsigned next;
    xpu_stream stream[];
};

typedef struct {
    xpu_task task;
    XLA_FFI_Task *run;
    void *data;
} ffi_task;

int xpu_ffi_nthread(const xpu_client *c)
{
    return SD_MAX(c->nthread, 1);
}

static xpu_ffi_tasks *start_tasks(const xpu_client *c)
{
    int n = xpu_ffi_nthread(c);
    xpu_ffi_tasks *t = calloc(1, sizeof *t + (size_t)n * sizeof *t->stream);

    if (!t)
        return NULL;
    t->n = n;
    for (int i = 0; i < n; i++)
        xpu_stream_init(&t->stream[i], "sundog-ffi");
    return t;
}

void xpu_ffi_stop(xpu_client *c)
{
    for (int i = 0; c->tasks && i < c->tasks->n; i++)
        xpu_stream_stop(&c->tasks->stream[i]);
}

void xpu_ffi_finish(xpu_client *c)
{
    if (!c->tasks)
        return;
    for (int i = 0; i < c->tasks->n; i++)
        xpu_stream_finish(&c->tasks->stream[i]);
    free(c->tasks);
    c->tasks = NULL;
}

static void run_task(xpu_task *task)
{
    ffi_task *t = (ffi_task *)task;

    t->run(t->data);
    free(t);
}

sd_status xpu_ffi_schedule(xpu_client *c, XLA_FFI_Task *task, void *data)
{
    ffi_task *t = malloc(sizeof *t);
    xpu_ffi_tasks *all;
    sd_status st;

    pthread_mutex_lock(&c->lock);
    if (!c->tasks)
        c->tasks = start_tasks(c);
    all = c->tasks;
    pthread_mutex_unlock(&c->lock);
    if (!t || !all) {
        free(t);
        return sd_no_memory(sizeof *t);
    }
    *t = (ffi_task){{NULL, run_task}, task, data};
    st = xpu_stream_push(
        &all->stream[atomic_fetch_add(&all->next, 1) % (unsigned)all->n],
        &t->task);
    if (st)
        free(t);
    return st;
}
