/* Where the members of a gang meet.  A meet is a collective under way in one
 * group: members come, and the last to come lets all go on; they read from each
 * other, and the last that has read lets all go on again.
 *
 * All that counts is under one lock.  Who waits sleeps on a word of its own,
 * which is raised by 2 to let it go on, and whose lowest bit says that the gang
 * has failed.  Groups of different collectives overlap, and a member may be a
 * turn of a loop ahead of members of other groups; but it is in one meet at a
 * time, so there are never more meets than members. */
#include "xpu_gang.h"
#include "xpu_interrupt.h"

#include <stdlib.h>

/* Where each member has a core: less than to sleep; and while all put work into
 * queues, which they do at about the same time.  Who sleeps then takes so long
 * to wake that the others, who wait for him next, sleep too: with 50 us a turn
 * of a small sum over four H200s took 57 us in some processes, 200 in others.
 */
#define SPIN_NS        2000u
#define SPIN_QUEUED_NS 500000u
#define LOOK_NS 50000000L /* a member that waits looks for an interrupt */
enum { FAILED = 1, GO = 2 };
enum { READY_MARK, READ_MARK, MARKS };

typedef struct {
    const thunk *t; /* NULL: free */
    int64_t group;
    int expected, come, read;
    int inside; /* members that have not gone yet */
    uint64_t number; /* on devices */
    xpu_far_message *in; /* of other processes */
} meet;

/* A member's, of a meet.  Its operand: it may be at the next meet when the
 * others of this one begin to read. */
typedef struct {
    xpu_mark *mark[MARKS]; /* references */
    void *operand;
    xpu_device *dev;
} seat;

typedef struct {
    _Atomic uint32_t word;
    _Atomic bool sleeps; /* or is about to: a change of word is to wake it */
    meet *at; /* where it is, or NULL */
    bool waits; /* for others to come, */
    bool gone; /* or has ended its run */
    xpu_device *dev; /* borrowed */
    void *operand;
    xpu_flight *flight; /* that is to be let go, or NULL */
} member;

struct xpu_gang {
    _Atomic uint32_t refs;
    int n; /* participants, and so places for members, */
    int here; /* that are members: of this process */
    xpu_far_run *far;
    const char *name; /* borrowed from the program, which members hold */
    bool queued;
    xpu_device *dev; /* that has pinned: */
    _Atomic uint32_t *stop; /* NULL: marks order what is read */
    int stop_cls;
    uint64_t spin_ns;
    pthread_mutex_t lock;
    pthread_cond_t still; /* nreading is 0 */
    int nreading, nwait, ngone, nlanded;
    sd_status failed; /* owned: the first thing that went wrong */
    meet *meet; /* n of them */
    seat *seat; /* queued: of each member, of each meet */
    member member[];
};

xpu_gang *xpu_gang_create(int n, int here, xpu_far_run *far, bool queued,
                          const char *name)
{
    size_t count = (size_t)n, seats = queued ? count * count : 0;
    xpu_gang *g = calloc(1, sizeof *g + count * sizeof(member));

    if (!g || !(g->meet = calloc(1, count * sizeof *g->meet +
                                        seats * sizeof *g->seat))) {
        free(g);
        return NULL;
    }
    atomic_init(&g->refs, 1);
    g->n = n;
    g->here = here;
    g->far = far;
    g->name = name;
    g->queued = queued;
    g->seat = (seat *)(g->meet + n);
    if (here <= sd_cpu_count())
        g->spin_ns = queued ? SPIN_QUEUED_NS : SPIN_NS;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->still, NULL);
    return g;
}

xpu_gang *xpu_gang_retain(xpu_gang *g)
{
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

static void free_stop(xpu_gang *g)
{
    if (g->stop)
        xpu_memory_free(g->dev, XPU_MEM_PINNED_HOST, (void *)g->stop,
                        g->stop_cls);
    g->stop = NULL;
}

void xpu_gang_release(xpu_gang *g)
{
    if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_cond_destroy(&g->still);
    pthread_mutex_destroy(&g->lock);
    sd_status_free(g->failed);
    xpu_far_end(g->far);
    free_stop(g); /* of a gang that never ran */
    free(g->meet);
    free(g);
}

void xpu_gang_let_meet(xpu_gang *g, xpu_device *dev, void *stop, int cls)
{
    g->dev = dev;
    g->stop = stop;
    g->stop_cls = cls;
    atomic_init(g->stop, 0);
}

uint32_t *xpu_gang_stop(const xpu_gang *g)
{
    return (uint32_t *)g->stop;
}

int xpu_gang_size(const xpu_gang *g)
{
    return g->here;
}

bool xpu_gang_is_queued(const xpu_gang *g)
{
    return g->queued;
}

xpu_far_run *xpu_gang_far(const xpu_gang *g)
{
    return g->far;
}

/* ---- words ---- */

static void spin(const _Atomic uint32_t *word, uint32_t old, uint64_t ns)
{
    uint64_t end = sd_now_ns() + ns;

    while (atomic_load(word) == old && sd_now_ns() < end)
        __builtin_ia32_pause();
}

/* Until the word is not that any more, or the run is interrupted where cancel
 * (NULL: it is not asked) says so. */
static void await(const xpu_run *r, uint32_t old, const _Atomic bool *cancel)
{
    _Atomic uint32_t *word = &r->gang->member[r->me].word;
    struct timespec look = {.tv_nsec = LOOK_NS};

    if (r->gang->spin_ns)
        spin(word, old, r->gang->spin_ns);
    while (atomic_load(word) == old) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            return;
        atomic_store(&r->gang->member[r->me].sleeps, true);
        sd_word_sleep(word, old, &look);
        atomic_store(&r->gang->member[r->me].sleeps, false);
    }
}

/* Its word has changed.  Most members spin, and need no call of the system. */
static void wake(member *x)
{
    if (atomic_load(&x->sleeps))
        sd_word_wake(&x->word, 1);
}

/* ---- under the lock ---- */

static void let_go(xpu_gang *g, const meet *m, int me)
{
    for (int i = 0; i < g->n; i++)
        if (g->member[i].at == m && i != me) {
            g->member[i].waits = false;
            atomic_fetch_add(&g->member[i].word, GO);
            wake(&g->member[i]);
        }
}

static void fail(xpu_gang *g, sd_status st)
{
    if (g->failed) {
        sd_status_free(st);
        return;
    }
    g->failed = st;
    if (g->stop)
        atomic_store(g->stop, 1);
    for (int i = 0; i < g->n; i++) {
        atomic_fetch_or(&g->member[i].word, FAILED);
        wake(&g->member[i]);
    }
}

static const char *name_of(const thunk *t)
{
    return t->name ? t->name : thunk_kind_name[t->kind];
}

/* All others wait or have ended: who waits, waits for ever. */
static void look_for_deadlock(xpu_gang *g)
{
    int a = -1, b = -1;

    if (!g->nwait || g->nwait + g->ngone < g->here)
        return;
    for (int i = 0; i < g->n; i++)
        if (g->member[i].waits) {
            b = a >= 0 && b < 0 && g->member[i].at != g->member[a].at ? i : b;
            a = a < 0 ? i : a;
        }
    if (b < 0)
        fail(g, sd_error(SD_PRECONDITION,
                         "%s: participant %d waits in %s for one that has "
                         "ended without it: all of a group must come to a "
                         "collective",
                         g->name, a, name_of(g->member[a].at->t)));
    else
        fail(g, sd_error(SD_PRECONDITION,
                         "%s: participant %d waits in %s, participant %d in "
                         "%s, and neither can go on: all of a group must come "
                         "to a collective",
                         g->name, a, name_of(g->member[a].at->t), b,
                         name_of(g->member[b].at->t)));
}

static meet *find_meet(xpu_gang *g, const thunk *t, int64_t group)
{
    meet *empty = NULL;

    for (int i = 0; i < g->n; i++) {
        meet *m = &g->meet[i];

        if (m->t == t && m->group == group && m->come < m->expected)
            return m;
        if (!m->t)
            empty = m;
    }
    return empty;
}

static seat *seat_at(const xpu_gang *g, const meet *m, int64_t i)
{
    return &g->seat[(m - g->meet) * g->n + i];
}

/* What is left of the meet: to be freed, without the lock. */
static xpu_far_message *go_from(xpu_gang *g, int me)
{
    meet *m = g->member[me].at;
    xpu_far_message *in = NULL;

    g->member[me].at = NULL;
    if (--m->inside)
        return NULL;
    for (int i = 0; i < g->n && g->queued; i++) {
        seat *s = seat_at(g, m, i);

        for (int k = 0; k < MARKS; k++)
            xpu_mark_release(s->mark[k]);
        *s = (seat){0};
    }
    in = m->in;
    *m = (meet){0};
    return in;
}

static sd_status failure(const xpu_gang *g)
{
    return sd_status_copy(g->failed);
}

/* ---- meeting ---- */

/* True: r is the last to come, and lets all go, or leads. */
static bool come(const xpu_run *r, const thunk *t, int64_t group, int expected,
                 void *operand, xpu_mark *ready, bool *leads)
{
    xpu_gang *g = r->gang;
    member *x = &g->member[r->me];
    meet *m = find_meet(g, t, group);

    if (!m->t)
        *m = (meet){.t = t, .group = group, .expected = expected};
    x->at = m;
    if (g->queued) {
        *seat_at(g, m, r->me) = (seat){{ready}, operand, r->dev};
    } else {
        x->dev = r->dev;
        x->operand = operand;
    }
    m->inside++;
    if (++m->come == m->expected && leads) {
        *leads = true;
        g->nreading++;
        return true;
    }
    if (m->come == m->expected) {
        g->nwait -= expected - 1;
        g->nreading += expected;
        m->number = atomic_fetch_add(&r->dev->client->nmeet, 2) + 1;
        let_go(g, m, r->me);
        return true;
    }
    x->waits = true;
    g->nwait++;
    look_for_deadlock(g);
    return false;
}

/* After a wait: nobody has let it go, so the gang has failed, or does now since
 * its run was interrupted. */
static sd_status give_up(xpu_gang *g, int me)
{
    if (!g->failed)
        fail(g, xpu_interrupted(g->name));
    g->member[me].waits = false;
    g->nwait--;
    go_from(g, me); /* nothing has come: it was not let go */
    return failure(g);
}

sd_status xpu_gang_meet(const xpu_run *r, const thunk *t, int64_t group,
                        int expected, void *operand, xpu_mark *ready,
                        bool *leads)
{
    xpu_gang *g = r->gang;
    member *x = &g->member[r->me];
    sd_status st;
    uint32_t old;
    bool on;

    pthread_mutex_lock(&g->lock);
    old = atomic_load(&x->word);
    st = failure(g);
    on = st || come(r, t, group, expected, operand, ready, leads);
    pthread_mutex_unlock(&g->lock);
    if (st)
        xpu_mark_release(ready);
    if (on)
        return st;
    await(r, old, r->cancel);
    pthread_mutex_lock(&g->lock);
    if (x->waits)
        st = give_up(g, r->me);
    pthread_mutex_unlock(&g->lock);
    return st;
}

bool xpu_gang_goes_on(const void *run)
{
    const xpu_run *r = run;

    return !(atomic_load(&r->gang->member[r->me].word) & FAILED) &&
           !(r->cancel &&
             atomic_load_explicit(r->cancel, memory_order_relaxed));
}

static void stop_reading(xpu_gang *g)
{
    if (!--g->nreading)
        pthread_cond_broadcast(&g->still);
}

sd_status xpu_gang_open(const xpu_run *r, sd_status st, xpu_far_message *in)
{
    xpu_gang *g = r->gang;
    meet *m = g->member[r->me].at;

    if (!st && !xpu_gang_goes_on(r))
        st = xpu_interrupted(g->name); /* where nothing else has failed it */
    pthread_mutex_lock(&g->lock);
    if (st)
        fail(g, st);
    if ((st = failure(g))) {
        stop_reading(g);
        go_from(g, r->me);
    } else {
        m->in = in;
        in = NULL;
        g->nwait -= m->expected - 1;
        g->nreading += m->expected - 1;
        let_go(g, m, r->me);
    }
    pthread_mutex_unlock(&g->lock);
    xpu_far_message_free(in);
    return st;
}

const xpu_far_message *xpu_gang_sent(const xpu_run *r, int process)
{
    const xpu_far_message *in = r->gang->member[r->me].at->in;

    while (in->from != process)
        in = in->next;
    return in;
}

void *xpu_gang_peer(const xpu_run *r, int64_t i, xpu_device **dev)
{
    const xpu_gang *g = r->gang;
    const seat *s;

    if (!g->queued) {
        *dev = g->member[i].dev;
        return g->member[i].operand;
    }
    s = seat_at(g, g->member[r->me].at, i);
    *dev = s->dev;
    return s->operand;
}

uint64_t xpu_gang_number(const xpu_run *r)
{
    return r->gang->member[r->me].at->number;
}

sd_status xpu_gang_follow(const xpu_run *r, int64_t i, bool has_read)
{
    const xpu_gang *g = r->gang;
    xpu_mark *m = seat_at(g, g->member[r->me].at, i)
                      ->mark[has_read ? READ_MARK : READY_MARK];

    return r->dev->ops->wait(r->dev, r->dev->queue, m);
}

sd_status xpu_gang_part(const xpu_run *r, sd_status st, xpu_mark *read)
{
    xpu_gang *g = r->gang;
    member *x = &g->member[r->me];
    uint32_t old;
    bool on;

    pthread_mutex_lock(&g->lock);
    stop_reading(g);
    if (st)
        fail(g, st);
    if (read)
        seat_at(g, x->at, r->me)->mark[READ_MARK] = read;
    old = atomic_load(&x->word);
    on = ++x->at->read == x->at->expected;
    if (on)
        let_go(g, x->at, r->me);
    on |= g->failed != NULL;
    pthread_mutex_unlock(&g->lock);
    if (!on) /* who still reads does so for a moment, interrupted or not */
        await(r, old, NULL);
    pthread_mutex_lock(&g->lock);
    st = failure(g);
    pthread_mutex_unlock(&g->lock);
    return st;
}

void xpu_gang_go(const xpu_run *r)
{
    xpu_gang *g = r->gang;
    xpu_far_message *in;

    pthread_mutex_lock(&g->lock);
    in = go_from(g, r->me);
    pthread_mutex_unlock(&g->lock);
    xpu_far_message_free(in);
}

sd_status xpu_gang_pass(const xpu_run *r, sd_status st)
{
    xpu_gang *g = r->gang;

    pthread_mutex_lock(&g->lock);
    stop_reading(g);
    if (st)
        fail(g, st);
    go_from(g, r->me);
    st = failure(g);
    pthread_mutex_unlock(&g->lock);
    return st;
}

/* ---- the end ---- */

/* All have landed: who still waits in a queue ends.  The last of them may end
 * the gang. */
static void let_all_go(xpu_gang *g)
{
    xpu_gang_retain(g);
    free_stop(g); /* while its device is there for sure */
    for (int i = 0; i < g->n; i++)
        if (g->member[i].flight)
            xpu_flight_let_go(g->member[i].flight, failure(g));
    xpu_gang_release(g);
}

/* Under the lock. */
static bool is_last_to_land(xpu_gang *g)
{
    return ++g->nlanded == g->here;
}

void xpu_gang_land(xpu_gang *g, int me, sd_status st)
{
    bool last;

    pthread_mutex_lock(&g->lock);
    if (st)
        fail(g, sd_note(st, "participant %d of %d", me, g->n));
    last = is_last_to_land(g);
    st = failure(g);
    pthread_mutex_unlock(&g->lock);
    if (st && g->far)
        xpu_far_fail(g->far, st);
    sd_status_free(st);
    if (last)
        let_all_go(g);
}

sd_status xpu_gang_leave(xpu_gang *g, int me, sd_status st, xpu_flight *f)
{
    bool last;

    pthread_mutex_lock(&g->lock);
    g->member[me].gone = true;
    g->member[me].flight = f;
    g->ngone++;
    if (st)
        fail(g, sd_note(st, "participant %d of %d", me, g->n));
    else
        look_for_deadlock(g);
    while (g->failed && g->nreading)
        pthread_cond_wait(&g->still, &g->lock);
    st = failure(g);
    last = !f && is_last_to_land(g);
    pthread_mutex_unlock(&g->lock);
    if (st && g->far)
        xpu_far_fail(g->far, st);
    if (last)
        let_all_go(g);
    return st;
}
