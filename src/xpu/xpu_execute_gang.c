/* The execution of a gang: all members are made first, so that a call that
 * fails leaves everything as it was; then, once the arguments of all are there
 * or ahead of them in their streams, a task goes to each member's stream.
 *
 * Gangs are pushed under one lock, so two of them stand in the same order in
 * every stream, and no member of the one waits for a member of the other that
 * stands behind it.  For the same reason a member is never run by the caller,
 * and programs of one device are pushed under that lock, too: one that stands
 * behind a member may have results that another, ahead of a member, waits for.
 */
#include "xpu_gang.h"

#include <stdlib.h>

typedef struct {
    xpu_gang *gang;   /* a reference */
    xpu_client *client;
    _Atomic int waits; /* arguments that are still to come, and one */
    int n;
    xpu_execution *e[];
} crew;

/* ---- what a call must be ---- */

static sd_status check_devices(int n, xpu_program *const *x)
{
    for (int i = 0; i < n; i++) {
        if (xpu_stream_is_mine(&x[i]->dev->compute))
            return sd_error(SD_PRECONDITION,
                            "%s: a callback on device %d starts a program that "
                            "is to run there, too: it would wait for itself",
                            x[i]->thunks->name, x[i]->dev->id);
        for (int k = 0; k < i; k++)
            if (x[k]->dev == x[i]->dev)
                return sd_error(SD_INVALID,
                                "%s: participants %d and %d are both on device "
                                "%d",
                                x[i]->thunks->name, k, i, x[i]->dev->id);
    }
    return NULL;
}

static sd_status check_gang(int n, xpu_program *const *x)
{
    const thunk_program *p = x[0]->thunks;

    if (n != thunk_participants(p))
        return sd_error(SD_INVALID, "%s: %d participants of %d", p->name, n,
                        thunk_participants(p));
    for (int i = 0; i < n; i++)
        if (x[i]->thunks != p || x[i]->participant != i)
            return sd_error(SD_INVALID,
                            "%s: what stands as participant %d is %s's %d",
                            p->name, i, x[i]->thunks->name, x[i]->participant);
    return check_devices(n, x);
}

/* ---- on its way ---- */

/* A task that a stream did not take ends here, and the others by it. */
static void push_all(crew *c)
{
    pthread_mutex_lock(&c->client->gang_lock);
    for (int i = 0; i < c->n; i++) {
        xpu_execution *e = c->e[i];
        sd_status st;

        xpu_execution_count(e);
        if ((st = xpu_stream_push(&e->program->dev->compute, &e->task)))
            e->refused = st;
        else
            c->e[i] = NULL;
    }
    pthread_mutex_unlock(&c->client->gang_lock);
    for (int i = 0; i < c->n; i++)
        if (c->e[i])
            c->e[i]->refused = xpu_gang_leave(c->gang, i, c->e[i]->refused);
    for (int i = 0; i < c->n; i++)
        if (c->e[i])
            xpu_execution_end(c->e[i], c->e[i]->refused);
    xpu_gang_release(c->gang);
    free(c);
}

static void arrive(void *ctx, sd_status st)
{
    crew *c = ctx;

    sd_status_free(st);
    if (atomic_fetch_sub(&c->waits, 1) == 1)
        push_all(c);
}

static void park(crew *c)
{
    for (int i = 0; i < c->n; i++)
        xpu_execution_await(c->e[i], &c->waits, arrive, c);
    arrive(c, NULL);
}

/* ---- the call ---- */

static void undo(crew *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->e[i])
            xpu_execution_undo(c->e[i]);
    xpu_gang_release(c->gang);
    free(c);
}

static sd_status make_crew(int n, xpu_program *const *x, const xpu_call *call,
                           bool parked, crew **out)
{
    size_t bytes = sizeof(crew) + (size_t)n * sizeof(xpu_execution *);
    crew *c = calloc(1, bytes);
    sd_status st = NULL;

    if (!c || !(c->gang = xpu_gang_create(n, x[0]->thunks->name))) {
        free(c);
        return sd_no_memory(bytes);
    }
    c->client = x[0]->dev->client;
    c->n = n;
    atomic_init(&c->waits, 1);
    for (int i = 0; i < n && !st; i++)
        st = xpu_stream_start(&x[i]->dev->compute);
    for (int i = 0; i < n && !st; i++)
        if (!(st = xpu_execution_make(x[i], &call[i], parked, &c->e[i]))) {
            c->e[i]->gang = xpu_gang_retain(c->gang);
            c->e[i]->me = i;
        }
    if (st) {
        undo(c);
        return st;
    }
    *out = c;
    return NULL;
}

sd_status xpu_execute_gang(int n, xpu_program *const *x, const xpu_call *call,
                           xpu_buffer **const *out, xpu_event **done)
{
    bool parked = false;
    sd_status st;
    crew *c;

    if ((st = check_gang(n, x)))
        return st;
    for (int i = 0; i < n; i++) {
        xpu_execute_not_too_far(x[i]->dev);
        parked |= xpu_call_must_park(&call[i]);
    }
    if ((st = make_crew(n, x, call, parked, &c)))
        return st;
    for (int i = 0; i < n; i++) {
        done[i] = xpu_execution_give(c->e[i], out[i]);
        xpu_live_add(c->e[i]);
    }
    if (parked)
        park(c);
    else
        push_all(c);
    for (int i = 0; i < n; i++)
        xpu_call_delete_donated(x[i], &call[i]);
    return NULL;
}
