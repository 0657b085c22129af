/* Runs with other processes, whatever carries the messages.  What comes is kept
 * until the run that it is for asks: a process may be ahead by a collective.
 * It is never ahead by more, since each sends to and hears from all others in
 * each, so what is kept is bounded by what collectives move. */
#include "xpu_far.h"

#include <stdlib.h>
#include <time.h>

#define LOOK_NS 50000000L /* who waits looks whether it still should */

typedef struct places places;
struct places {
    places *next;
    uint64_t id;
    uint64_t nrun; /* begun so far */
};

struct xpu_far_run {
    xpu_far_run *next;
    xpu_far *far;
    uint64_t places, number, program;
    const char *name; /* borrowed from the program, which the gang holds */
    _Atomic bool told; /* the others know that it has failed */
    int n;
    int *process; /* [n] of each participant */
};

struct xpu_far {
    _Atomic uint32_t refs; /* the client's, and those of runs */
    int me, n;
    const xpu_wire_ops *ops;
    xpu_wire *wire;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t news;
    places *places;
    xpu_far_run *runs;
    xpu_far_message *inbox, **last;
    sd_status *lost; /* [n] owned: why a process is gone */
    xpu_moves *moves;
    xpu_ccl *ccl; /* NULL: there is none */
};

/* ---- messages ---- */

sd_status xpu_far_hear(pthread_t *t, void *(*hear)(void *), xpu_wire *w)
{
    int error = sd_thread_start(t, "xpu-far", hear, w);

    if (!error)
        return NULL;
    return sd_error(SD_EXHAUSTED, "a thread that hears the other processes: %s",
                    strerror(error));
}

static bool is_of(const xpu_far_run *r, const xpu_far_head *h)
{
    return h->places == r->places && h->run == r->number;
}

static void take_out(xpu_far *f, xpu_far_message **at)
{
    xpu_far_message *m = *at;

    if (!(*at = m->next))
        f->last = at;
    m->next = NULL;
}

/* Nobody will ask for what is of a run that has ended here. */
static bool is_late(const xpu_far *f, const xpu_far_head *h)
{
    for (const xpu_far_run *r = f->runs; r; r = r->next)
        if (is_of(r, h))
            return false;
    for (const places *p = f->places; p; p = p->next)
        if (p->id == h->places)
            return h->run < p->nrun;
    return false;
}

void xpu_far_deliver(xpu_far *f, xpu_far_message *m)
{
    if (m->head.kind == XPU_FAR_ARRAY || m->head.kind == XPU_FAR_NO_ARRAY) {
        xpu_moves_deliver(f->moves, m);
        return;
    }
    pthread_mutex_lock(&f->lock);
    if (!is_late(f, &m->head)) {
        *f->last = m;
        f->last = &m->next;
        m = NULL;
        pthread_cond_broadcast(&f->news);
    }
    pthread_mutex_unlock(&f->lock);
    xpu_far_message_free(m);
}

sd_status xpu_far_lost(xpu_far *f, int who)
{
    sd_status st;

    pthread_mutex_lock(&f->lock);
    st = sd_status_copy(f->lost[who]);
    pthread_mutex_unlock(&f->lock);
    return st;
}

void xpu_far_lose(xpu_far *f, int who, const char *why)
{
    sd_status st;

    pthread_mutex_lock(&f->lock);
    if (!f->lost[who])
        f->lost[who] = sd_error(SD_UNAVAILABLE, "process %d of %d is gone: %s",
                                who, f->n, why);
    pthread_cond_broadcast(&f->news);
    pthread_mutex_unlock(&f->lock);
    st = xpu_far_lost(f, who);
    xpu_moves_lose(f->moves, who, st);
    sd_status_free(st);
}

/* ---- this process ---- */

sd_status xpu_far_create(int me, int n, xpu_far **out)
{
    xpu_far *f = calloc(1, sizeof *f);
    pthread_condattr_t attr;

    if (!f || !(f->lost = calloc((size_t)n, sizeof *f->lost)) ||
        !(f->moves = xpu_moves_create())) {
        if (f)
            free(f->lost);
        free(f);
        return sd_no_memory(sizeof *f);
    }
    atomic_init(&f->refs, 1);
    f->me = me;
    f->n = n;
    f->last = &f->inbox;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->news, &attr);
    pthread_condattr_destroy(&attr);
    *out = f;
    return NULL;
}

xpu_far *xpu_far_retain(xpu_far *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void xpu_far_release(xpu_far *f)
{
    if (atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (places *p = f->places, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    for (int i = 0; i < f->n; i++)
        sd_status_free(f->lost[i]);
    xpu_far_message_free(f->inbox);
    xpu_moves_free(f->moves);
    pthread_cond_destroy(&f->news);
    pthread_mutex_destroy(&f->lock);
    free(f->lost);
    free(f);
}

/* Arrays that never came are errors: nobody reads the wire any more. */
void xpu_far_destroy(xpu_far *f)
{
    sd_status gone;

    if (!f)
        return;
    gone = sd_error(SD_CANCELLED, "the client was destroyed before the array "
                                  "came");
    xpu_moves_stop(f->moves);
    if (f->wire)
        f->ops->close(f->wire);
    f->wire = NULL;
    xpu_ccl_close(f->ccl);
    f->ccl = NULL;
    for (int i = 0; i < f->n; i++)
        xpu_moves_lose(f->moves, i, gone);
    sd_status_free(gone);
    xpu_far_release(f);
}

sd_status xpu_far_open(xpu_far *f, const xpu_wire_ops *ops, const char *address,
                       sd_buf *offer)
{
    f->ops = ops;
    return ops->open(f, f->me, f->n, address, offer, &f->wire);
}

sd_status xpu_far_join(xpu_far *f, const sd_bytes *offer, int seconds)
{
    return f->ops->join(f->wire, offer, seconds);
}

void xpu_far_take_ccl(xpu_far *f, xpu_ccl *l)
{
    f->ccl = l;
}

int xpu_far_me(const xpu_far *f)
{
    return f->me;
}

int xpu_far_size(const xpu_far *f)
{
    return f->n;
}

xpu_moves *xpu_far_moves(const xpu_far *f)
{
    return f->moves;
}

sd_status xpu_far_send(xpu_far *f, int to, const xpu_far_head *h,
                       const struct iovec *part, int npart,
                       const _Atomic bool *cancel)
{
    return f->ops->send(f->wire, to, h, part, npart, cancel);
}

/* ---- runs ---- */

static places *find_places(xpu_far *f, uint64_t id)
{
    places *p = f->places;

    while (p && p->id != id)
        p = p->next;
    if (p || !(p = calloc(1, sizeof *p)))
        return p;
    p->id = id;
    p->next = f->places;
    f->places = p;
    return p;
}

sd_status xpu_far_begin(xpu_far *f, const xpu_places *p,
                        const xpu_program *program, xpu_far_run **out)
{
    size_t bytes = (size_t)p->n * sizeof *p->process;
    xpu_far_run *r = calloc(1, sizeof *r);
    places *at;

    if (!r || !(r->process = malloc(bytes))) {
        free(r);
        return sd_no_memory(bytes);
    }
    r->far = f;
    r->places = p->id;
    r->program = program->meeting;
    r->name = program->thunks->name;
    r->n = p->n;
    memcpy(r->process, p->process, bytes);
    pthread_mutex_lock(&f->lock);
    if ((at = find_places(f, p->id))) {
        r->number = at->nrun++;
        r->next = f->runs;
        f->runs = r;
        xpu_far_retain(f);
    }
    pthread_mutex_unlock(&f->lock);
    if (!at) {
        free(r->process);
        free(r);
        return sd_no_memory(sizeof *at);
    }
    *out = r;
    return NULL;
}

/* Out of the inbox, as a list. */
static xpu_far_message *take_all(xpu_far *f, const xpu_far_run *r)
{
    xpu_far_message **at = &f->inbox, *all = NULL;

    while (*at) {
        xpu_far_message *m = *at;

        if (!is_of(r, &m->head)) {
            at = &m->next;
            continue;
        }
        take_out(f, at);
        m->next = all;
        all = m;
    }
    return all;
}

void xpu_far_end(xpu_far_run *r)
{
    xpu_far_message *left;
    xpu_far_run **at;

    if (!r)
        return;
    pthread_mutex_lock(&r->far->lock);
    for (at = &r->far->runs; *at != r; at = &(*at)->next)
        ;
    *at = r->next;
    left = take_all(r->far, r);
    pthread_mutex_unlock(&r->far->lock);
    xpu_far_message_free(left);
    xpu_far_release(r->far);
    free(r->process);
    free(r);
}

int xpu_far_process(const xpu_far_run *r, int64_t participant)
{
    return r->process[participant];
}

int xpu_far_count(const xpu_far_run *r)
{
    return r->far->n;
}

uint64_t xpu_far_places(const xpu_far_run *r)
{
    return r->places;
}

xpu_ccl *xpu_far_ccl(const xpu_far_run *r)
{
    return r->far->ccl;
}

bool xpu_far_is_here(const xpu_far_run *r, int64_t participant)
{
    return r->process[participant] == r->far->me;
}

static xpu_far_head head_of(const xpu_far_run *r, xpu_far_kind kind, int step)
{
    return (xpu_far_head){.magic = XPU_FAR_MAGIC,
                          .kind = kind,
                          .places = r->places,
                          .run = r->number,
                          .program = r->program,
                          .step = (uint32_t)step};
}

static bool takes_part(const xpu_far_run *r, int process)
{
    for (int i = 0; i < r->n; i++)
        if (r->process[i] == process)
            return true;
    return false;
}

void xpu_far_fail(xpu_far_run *r, const sd_error *st)
{
    xpu_far_head h = head_of(r, XPU_FAR_FAILED, (int)st->code);
    struct iovec words = {st->message, strlen(st->message)};
    xpu_far *f = r->far;

    words.iov_len = SD_MIN(words.iov_len, (size_t)XPU_FAR_TEXT);
    if (atomic_exchange(&r->told, true) || !f->wire)
        return;
    for (int i = 0; i < f->n; i++)
        if (i != f->me && takes_part(r, i))
            /* one that is gone knows better */
            sd_status_free(f->ops->send(f->wire, i, &h, &words, 1, NULL));
}

/* ---- a collective ---- */

/* What another process says against going on; under the lock. */
static sd_status objection(xpu_far_run *r)
{
    for (const xpu_far_message *m = r->far->inbox; m; m = m->next) {
        if (!is_of(r, &m->head))
            continue;
        if (m->head.kind == XPU_FAR_FAILED) {
            atomic_store(&r->told, true); /* all know by the same message */
            return sd_note(sd_error((sd_code)m->head.step, "%.*s",
                                    (int)m->head.bytes, (const char *)m->data),
                           "process %d of %d", m->from, r->far->n);
        }
        if (m->head.program != r->program)
            return sd_error(SD_PRECONDITION,
                            "%s: process %d of %d runs another program there, "
                            "as its run %" PRIu64 " over these devices: all "
                            "processes must run the same ones in one order",
                            r->name, m->from, r->far->n, r->number);
    }
    return NULL;
}

sd_status xpu_far_objection(xpu_far_run *r)
{
    xpu_far *f = r->far;
    sd_status st;

    pthread_mutex_lock(&f->lock);
    st = objection(r);
    for (int i = 0; i < r->n && !st; i++)
        if (f->lost[r->process[i]])
            st = sd_note(sd_status_copy(f->lost[r->process[i]]), "%s", r->name);
    pthread_mutex_unlock(&f->lock);
    return st;
}

static sd_status find(const xpu_far_run *r, int step, int64_t group,
                      xpu_far_peer *p)
{
    xpu_far *f = r->far;

    for (xpu_far_message **at = &f->inbox, *m; (m = *at); at = &m->next) {
        if (!is_of(r, &m->head) || m->from != p->process ||
            m->head.step != (uint32_t)step || m->head.group != group)
            continue;
        if (m->head.bytes != p->want)
            return sd_error(SD_PRECONDITION,
                            "%s: process %d of %d sends %" PRIu64
                            " bytes, not %zu",
                            r->name, m->from, f->n, m->head.bytes, p->want);
        take_out(f, at);
        p->in = m;
        return NULL;
    }
    if (f->lost[p->process])
        return sd_note(sd_status_copy(f->lost[p->process]), "%s", r->name);
    return NULL;
}

static void wait_for_news(xpu_far *f)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += LOOK_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&f->news, &f->lock, &t);
}

/* Until all have sent theirs, or go_on says no. */
static sd_status receive(xpu_far_run *r, int step, int64_t group,
                         xpu_far_peer *peer, int npeer,
                         bool (*go_on)(const void *ctx), const void *ctx)
{
    sd_status st = NULL;

    pthread_mutex_lock(&r->far->lock);
    for (int missing = npeer; missing && !(st = objection(r));) {
        missing = 0;
        for (int i = 0; i < npeer && !st; i++) {
            if (!peer[i].in)
                st = find(r, step, group, &peer[i]);
            missing += !peer[i].in;
        }
        if (st || (missing && !go_on(ctx)))
            break;
        if (missing)
            wait_for_news(r->far);
    }
    pthread_mutex_unlock(&r->far->lock);
    return st;
}

/* What was said before it could not be sent to, or why it is gone, is the
 * better reason. */
static sd_status cannot_send(xpu_far_run *r, int process, sd_status st)
{
    xpu_far *f = r->far;
    sd_status why;

    pthread_mutex_lock(&f->lock);
    if (!(why = objection(r)) && f->lost[process])
        why = sd_note(sd_status_copy(f->lost[process]), "%s", r->name);
    pthread_mutex_unlock(&f->lock);
    if (!why)
        return sd_note(st, "%s", r->name);
    sd_status_free(st);
    return why;
}

sd_status xpu_far_exchange(xpu_far_run *r, int step, int64_t group,
                           xpu_far_peer *peer, int npeer,
                           bool (*go_on)(const void *ctx), const void *ctx,
                           const _Atomic bool *cancel)
{
    xpu_far_head h = head_of(r, XPU_FAR_DATA, step);
    xpu_far *f = r->far;
    sd_status st = NULL;

    h.group = group;
    for (int i = 0; i < npeer && !st; i++) {
        h.bytes = 0;
        for (int k = 0; k < peer[i].npart; k++)
            h.bytes += peer[i].part[k].iov_len;
        st = f->ops->send(f->wire, peer[i].process, &h, peer[i].part,
                          peer[i].npart, cancel);
        if (st)
            st = cannot_send(r, peer[i].process, st);
    }
    if (!st && go_on(ctx))
        st = receive(r, step, group, peer, npeer, go_on, ctx);
    return st;
}
