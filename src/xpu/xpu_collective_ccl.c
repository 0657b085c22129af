/* The large pieces of a collective between processes, which go from device to
 * device: docs/adr/0034.  The processes of a group first tell each other by the
 * wire that they have come, so that whatever one of them calls in the library
 * all others call too, in the same order for each device, unless one fails from
 * there on; and what they know of the circle of their devices, which they make
 * anew where one of them has none.
 *
 * What several members of a process read goes to one of them, another for each
 * sender. */
#include "xpu_swap.h"
#include "xpu_interrupt.h"

#include <stdlib.h>

typedef struct {
    const xpu_swapping *s;
    xpu_ccl *ccl;
    int step, me; /* me: this process */
    xpu_far_peer *peer;
    int npeer;
    int64_t *who; /* members, by their places in the circle */
    xpu_device **dev;
    xpu_circle circle;
    xpu_hop *hop;
    int nhop;
    xpu_piece *sent; /* what was put together to be sent */
    int nsent;
} trip;

/* ---- the circle ---- */

static sd_status stop(const void *ctx)
{
    const xpu_run *r = ctx;

    if (!xpu_gang_goes_on(r))
        return xpu_interrupted(r->program->thunks->name);
    return xpu_far_objection(xpu_gang_far(r->gang));
}

static int place_of(const trip *t, int64_t member)
{
    int i = 0;

    while (t->who[i] != member)
        i++;
    return i;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Members in the order of their numbers, each once. */
static int list_members(const trip *t)
{
    int64_t n;
    const int64_t *m = xpu_swap_members(t->s, &n);
    int all = 0, once = 0;

    for (int64_t i = 0; i < n; i++)
        if (m[i] >= 0)
            t->who[all++] = m[i];
    qsort(t->who, (size_t)all, sizeof *t->who, compare);
    for (int i = 0; i < all; i++)
        if (!i || t->who[i] != t->who[once - 1])
            t->who[once++] = t->who[i];
    return once;
}

static void find_circle(trip *t)
{
    const xpu_swapping *s = t->s;
    int n = list_members(t);

    for (int i = 0; i < n; i++) {
        t->dev[i] = NULL;
        if (xpu_far_is_here(s->far, t->who[i]))
            xpu_gang_peer(s->r, t->who[i], &t->dev[i]);
    }
    t->circle = (xpu_circle){
        .key =
            sd_hash(t->who, (size_t)n * sizeof *t->who, xpu_far_places(s->far)),
        .n = n,
        .dev = t->dev,
        .stop = stop,
        .ctx = s->r,
    };
}

/* ---- that all have come ---- */

/* To each so many bytes, and from each so many; what came is in peer[].in. */
static sd_status tell(const trip *t, void *at, size_t bytes, int from,
                      size_t want)
{
    const xpu_swapping *s = t->s;
    struct iovec part = {at, bytes};

    for (int i = 0; i < t->npeer; i++) {
        t->peer[i].part = &part;
        t->peer[i].npart = bytes != 0;
        t->peer[i].want = from < 0 || t->peer[i].process == from ? want : 0;
    }
    return xpu_far_exchange(s->far, t->step, s->group, t->peer, t->npeer,
                            xpu_gang_goes_on, s->r, s->r->cancel);
}

static void forget(const trip *t)
{
    for (int i = 0; i < t->npeer; i++) {
        xpu_far_message_free(t->peer[i].in);
        t->peer[i].in = NULL;
    }
}

/* False and no error: who waited for them waits no more. */
static bool all_came(const trip *t)
{
    bool came = true;

    for (int i = 0; i < t->npeer; i++)
        came &= t->peer[i].in != NULL;
    return came;
}

/* *made: all have made the circle, and the same one. */
static sd_status come(const trip *t, bool *made)
{
    uint64_t own = xpu_circle_made(t->ccl, t->circle.key), theirs;
    sd_status st = tell(t, &own, sizeof own, -1, sizeof own);

    if (!st && !all_came(t))
        st = stop(t->s->r);
    *made = own != 0;
    for (int i = 0; i < t->npeer && !st; i++) {
        memcpy(&theirs, t->peer[i].in->data, sizeof theirs);
        *made &= theirs == own;
    }
    forget(t);
    return st;
}

/* The first process names it. */
static sd_status make_circle(const trip *t)
{
    int first = t->me;
    xpu_ccl_id id = {{0}};
    sd_status st = NULL;

    for (int i = 0; i < t->npeer; i++)
        first = SD_MIN(first, t->peer[i].process);
    xpu_circle_drop(t->ccl, t->circle.key);
    if (first == t->me)
        st = xpu_circle_name(t->ccl, &id);
    if (!st)
        st = tell(t, &id, first == t->me ? sizeof id : 0, first, sizeof id);
    if (!st && !all_came(t))
        st = stop(t->s->r);
    for (int i = 0; i < t->npeer && !st; i++)
        if (t->peer[i].process == first)
            memcpy(&id, t->peer[i].in->data, sizeof id);
    forget(t);
    return st ? st : xpu_circle_make(t->ccl, &t->circle, id);
}

/* ---- what moves ---- */

static sd_status take(const trip *t, int64_t member, xpu_piece *out)
{
    static const xpu_purpose use = {"blocks of other processes", ""};

    xpu_gang_peer(t->s->r, member, &out->dev);
    return xpu_memory_try(out->dev, XPU_MEM_DEVICE, use,
                          xpu_swap_piece_bytes(t->s), &out->at, &out->cls);
}

/* The rows of an operand that one receiver gets, one behind the other. */
static sd_status pack(const trip *t, uint8_t *to, xpu_device *d, uint8_t *from)
{
    const thunk_collective *c = &t->s->c;
    size_t block = (size_t)c->block, row = (size_t)c->size * block;
    xpu_column column = {.to = to, .from = from, .dev = d};
    sd_status st = NULL;

    if (d->ops->gather)
        return d->ops->gather(d, &(xpu_blocks){.rows = c->outer,
                                               .bytes = block,
                                               .to_step = block,
                                               .from_step = row,
                                               .column = &column,
                                               .n = 1});
    for (size_t o = 0; o < (size_t)c->outer && !st; o++)
        st =
            d->ops->copy(d, XPU_COMPUTE, to + o * block, from + o * row, block);
    return st;
}

/* A receiver's place in the rows of an all-to-all. */
static int64_t column_of(const xpu_swapping *s, int64_t member)
{
    int64_t n, j = 0;
    const int64_t *m = xpu_swap_members(s, &n);

    while (m[j] != member)
        j++;
    return j;
}

static sd_status send(trip *t, int64_t sender, int64_t receiver)
{
    const xpu_swapping *s = t->s;
    xpu_hop *h = &t->hop[t->nhop];
    xpu_device *d;
    uint8_t *from = xpu_gang_peer(s->r, sender, &d);
    sd_status st = NULL;

    if (s->c.kind == THUNK_COLL_ALL_TO_ALL)
        from += column_of(s, receiver) * s->c.block;
    if (s->c.kind == THUNK_COLL_ALL_TO_ALL && s->c.outer > 1) {
        xpu_piece *p = &t->sent[t->nsent];

        if ((st = take(t, sender, p)))
            return st;
        t->nsent++;
        st = pack(t, p->at, d, from);
        from = p->at;
    }
    *h = (xpu_hop){.at = place_of(t, sender),
                   .peer = place_of(t, receiver),
                   .sends = true,
                   .block = from,
                   .bytes = xpu_swap_piece_bytes(s)};
    t->nhop++;
    return st;
}

static sd_status receive(trip *t, int64_t sender, int64_t receiver,
                         xpu_piece *p)
{
    sd_status st = take(t, receiver, p);

    t->hop[t->nhop] = (xpu_hop){.at = place_of(t, receiver),
                                .peer = place_of(t, sender),
                                .block = p->at,
                                .bytes = xpu_swap_piece_bytes(t->s)};
    t->nhop += !st;
    return st;
}

/* What comes from a process, as an empty message with pieces beside it. */
static sd_status expect(trip *t, int process, xpu_far_message **in)
{
    size_t n = xpu_swap_pieces(t->s, process, t->me);
    xpu_far_message *m = xpu_far_message_make(process, &(xpu_far_head){0});
    int64_t sender, receiver;
    sd_status st = NULL;

    if (!m)
        return sd_no_memory(sizeof *m);
    m->next = *in;
    *in = m;
    if (!(m->piece = calloc(n + 1, sizeof *m->piece)))
        return sd_no_memory(n * sizeof *m->piece);
    for (size_t k = 0; k < n && !st; k++) {
        xpu_swap_piece(t->s, process, t->me, k, &sender, &receiver);
        if (!(st = receive(t, sender, receiver, &m->piece[k])))
            m->npiece++;
    }
    return st;
}

static sd_status find_hops(trip *t, xpu_far_message **in)
{
    size_t n = 0, sent = 0;
    sd_status st = NULL;

    for (int i = 0; i < t->npeer; i++) {
        size_t to = xpu_swap_pieces(t->s, t->me, t->peer[i].process);

        n += to + xpu_swap_pieces(t->s, t->peer[i].process, t->me);
        sent += to;
    }
    t->hop = malloc((n + 1) * sizeof *t->hop);
    t->sent = malloc((sent + 1) * sizeof *t->sent);
    if (!t->hop || !t->sent)
        return sd_no_memory((n + 1) * sizeof *t->hop);
    for (int i = 0; i < t->npeer && !st; i++) {
        int process = t->peer[i].process;
        int64_t sender, receiver;

        n = xpu_swap_pieces(t->s, t->me, process);
        for (size_t k = 0; k < n && !st; k++) {
            xpu_swap_piece(t->s, t->me, process, k, &sender, &receiver);
            st = send(t, sender, receiver);
        }
        if (!st)
            st = expect(t, process, in);
    }
    return st;
}

/* Before it says that it has come a process has all that it needs: what fails
 * from there on costs all of them the circle. */
static sd_status travel(trip *t, xpu_far_message **in)
{
    bool made;
    sd_status st;

    if ((st = find_hops(t, in)) || (st = come(t, &made)) ||
        (!made && (st = make_circle(t))))
        return st;
    return xpu_circle_move(t->ccl, &t->circle, t->hop, t->nhop);
}

sd_status xpu_swap_direct(const xpu_swapping *s, int step, xpu_far_peer *peer,
                          int npeer, xpu_far_message **in)
{
    trip t = {.s = s,
              .ccl = xpu_far_ccl(s->far),
              .step = step,
              .me = xpu_far_process(s->far, s->r->me),
              .peer = peer,
              .npeer = npeer};
    int64_t n;
    sd_status st;

    xpu_swap_members(s, &n);
    t.who = malloc((size_t)n * (sizeof *t.who + sizeof *t.dev));
    if (!t.who)
        return sd_no_memory((size_t)n * sizeof *t.who);
    t.dev = (xpu_device **)(t.who + n);
    find_circle(&t);
    st = travel(&t, in);
    for (int i = 0; i < t.nsent; i++)
        xpu_memory_free(t.sent[i].dev, XPU_MEM_DEVICE, t.sent[i].at,
                        t.sent[i].cls);
    free(t.sent);
    free(t.hop);
    free(t.who);
    return st;
}
