/* The execution of a gang: all members are made first, so that a call that
 * fails leaves everything as it was; then, once the arguments of all are there
 * or ahead of them in their streams, a task goes to each member's stream.
 *
 * Gangs are pushed under one lock, so two of them stand in the same order in
 * every stream, and no member of the one waits for a member of the other that
 * stands behind it.  For the same reason a member is never run by the caller,
 * and programs of one device are pushed under that lock, too: one that stands
 * behind a member may have results that another, ahead of a member, waits for.
 *
 * Runs with other processes are begun by all of them in one order, and pushed
 * in that order, too: one whose arguments are there waits for those that were
 * begun before it, or two processes would each wait in another one's run. */
#include "xpu_gang.h"

#include <stdlib.h>

typedef struct crew crew;
struct crew {
    crew *next;
    xpu_gang *gang;   /* a reference */
    xpu_client *client;
    _Atomic int waits; /* arguments that are still to come, and one */
    bool queued; /* among the client's crews, until it is pushed */
    bool ready;  /* nothing is to come any more */
    int n;
    xpu_execution *e[];
};

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

/* at: where they are; NULL: all here. */
static sd_status check_gang(const xpu_places *at, int n, xpu_program *const *x)
{
    const thunk_program *p = x[0]->thunks;
    int all = thunk_participants(p),
        me = at ? xpu_far_me(x[0]->dev->client->far) : 0;
    int k = 0;

    for (int i = 0; i < all && (!at || at->n == all); i++) {
        if (at && at->process[i] != me)
            continue;
        if (k < n && (x[k]->thunks != p || x[k]->participant != i))
            return sd_error(SD_INVALID,
                            "%s: what stands as participant %d is %s's %d",
                            p->name, i, x[k]->thunks->name, x[k]->participant);
        k++;
    }
    if (k != n)
        return sd_error(SD_INVALID, "%s: %d participants of %d", p->name, n, k);
    return check_devices(n, x);
}

/* ---- on its way ---- */

/* Under the lock. */
static void push(crew *c)
{
    for (int i = 0; i < c->n; i++) {
        xpu_execution *e = c->e[i];
        sd_status st;

        xpu_execution_count(e);
        if ((st = xpu_stream_push(&e->program->dev->compute, &e->task)))
            e->refused = st;
        else
            c->e[i] = NULL;
    }
}

/* A task that a stream did not take ends here, and the others by it. */
static void finish(crew *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->e[i])
            c->e[i]->refused =
                xpu_gang_leave(c->gang, c->e[i]->me, c->e[i]->refused, NULL);
    for (int i = 0; i < c->n; i++)
        if (c->e[i])
            xpu_execution_end(c->e[i], c->e[i]->refused);
    xpu_gang_release(c->gang);
    free(c);
}

/* Of those that were begun with other processes, the first ones: as a list. */
static crew *push_in_order(xpu_client *client)
{
    crew *first = client->crews, *last = NULL;

    while (client->crews && client->crews->ready) {
        last = client->crews;
        push(last);
        client->crews = last->next;
    }
    if (!client->crews)
        client->last_crew = &client->crews;
    if (last)
        last->next = NULL;
    return last ? first : NULL;
}

static void push_all(crew *c)
{
    xpu_client *client = c->client;
    crew *pushed = c;

    pthread_mutex_lock(&client->gang_lock);
    c->ready = true;
    if (c->queued)
        pushed = push_in_order(client);
    else
        push(c);
    pthread_mutex_unlock(&client->gang_lock);
    for (crew *next; pushed; pushed = next) {
        next = pushed->next;
        finish(pushed);
    }
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

/* Nothing of it is pushed; others may have waited for that. */
static void undo(crew *c, const sd_error *st)
{
    for (int i = 0; i < c->n; i++) {
        if (c->e[i])
            xpu_execution_undo(c->e[i]);
        c->e[i] = NULL;
    }
    c->n = 0;
    if (c->queued)
        xpu_far_fail(xpu_gang_far(c->gang), st);
    push_all(c);
}

/* Whether members read from each other in the order of their queues. */
static bool is_queued(int n, xpu_program *const *x)
{
    for (int i = 0; i < n; i++)
        if (!x[i]->dev->ops->gather ||
            !xpu_device_is_like(x[0]->dev, x[i]->dev))
            return false;
    return true;
}

/* Where kernels reach each other's memory members wait on the devices; but not
 * where some collectives are beside kernels, which fill the device, so that one
 * more would wait for room.  A program has one way of waiting: a queue that
 * waited for marks of kernels that wait would keep a lost device's run from
 * telling that it has ended. */
static sd_status let_meet(int n, xpu_program *const *x, xpu_gang *g)
{
    xpu_purpose use = {"a word of", x[0]->thunks->name};
    xpu_device *d = x[0]->dev;
    void *stop;
    sd_status st;
    int cls;

    for (int i = 0; i < n; i++)
        if (!x[i]->dev->meets || x[i]->beside)
            return NULL;
    st = xpu_memory_try(d, XPU_MEM_PINNED_HOST, use, sizeof(uint32_t), &stop,
                        &cls);
    if (!st && stop)
        xpu_gang_let_meet(g, d, stop, cls);
    return st;
}

/* Numbers the run, where other processes take part in it.  All count alike, so
 * this comes before whatever can fail in one process and not in another, as
 * memory does. */
static sd_status begin(const xpu_places *at, int n, xpu_program *const *x,
                       crew *c)
{
    xpu_client *client = c->client;
    xpu_far_run *far = NULL;
    sd_status st = NULL;

    pthread_mutex_lock(&client->gang_lock);
    if (at)
        st = xpu_far_begin(client->far, at, x[0], &far);
    if (!st && !(c->gang = xpu_gang_create(thunk_participants(x[0]->thunks), n,
                                           far, !far && is_queued(n, x),
                                           x[0]->thunks->name)))
        st = sd_no_memory(0);
    if (!st && far) {
        c->queued = true;
        *client->last_crew = c;
        client->last_crew = &c->next;
    }
    pthread_mutex_unlock(&client->gang_lock);
    if (st && far) {
        xpu_far_fail(far, st);
        xpu_far_end(far);
    }
    return st;
}

static sd_status make_members(crew *c, xpu_program *const *x,
                              const xpu_call *call, bool parked)
{
    sd_status st =
        xpu_gang_is_queued(c->gang) ? let_meet(c->n, x, c->gang) : NULL;

    for (int i = 0; i < c->n && !st; i++)
        st = xpu_stream_start(&x[i]->dev->compute);
    for (int i = 0; i < c->n && !st; i++)
        if (!(st = xpu_execution_make(x[i], &call[i], parked, &c->e[i]))) {
            c->e[i]->gang = xpu_gang_retain(c->gang);
            c->e[i]->me = x[i]->participant;
        }
    return st;
}

static sd_status make_crew(const xpu_places *at, int n, xpu_program *const *x,
                           const xpu_call *call, bool parked, crew **out)
{
    size_t bytes = sizeof(crew) + (size_t)n * sizeof(xpu_execution *);
    crew *c = calloc(1, bytes);
    sd_status st;

    if (!c)
        return sd_no_memory(bytes);
    c->client = x[0]->dev->client;
    c->n = n;
    atomic_init(&c->waits, 1);
    if ((st = begin(at, n, x, c))) {
        free(c);
        return st;
    }
    if ((st = make_members(c, x, call, parked))) {
        undo(c, st);
        return st;
    }
    *out = c;
    return NULL;
}

sd_status xpu_execute_among(const xpu_places *at, int n, xpu_program *const *x,
                            const xpu_call *call, xpu_buffer **const *out,
                            xpu_event **done)
{
    bool parked = false;
    sd_status st;
    crew *c;

    if ((st = check_gang(at, n, x)))
        return st;
    for (int i = 0; i < n; i++) {
        xpu_execute_not_too_far(x[i]->dev);
        parked |= xpu_call_must_park(&call[i]);
    }
    if ((st = make_crew(at, n, x, call, parked, &c)))
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

sd_status xpu_execute_gang(int n, xpu_program *const *x, const xpu_call *call,
                           xpu_buffer **const *out, xpu_event **done)
{
    return xpu_execute_among(NULL, n, x, call, out, done);
}
