/* A collective whose group has members in other processes.  Whoever leads sends
 * to each of these processes one message with all that its members read here,
 * and gets one; none is left out where nothing is to be read, so that no
 * process is ahead of another by more than a collective.
 *
 * A message is a row of pieces, each a member's operand: in an all-to-all, the
 * blocks of an operand that one receiver reads, sender by sender and within it
 * receiver by receiver; in a permute, pair by pair. */
#include "xpu_swap.h"

#include <stdlib.h>

enum {
    DIRECT = 1024
}; /* bytes that are sent from where they lie, not copied */

typedef xpu_swapping swapping;

typedef struct { /* what one process gets */
    xpu_far_peer *peer;
    int cap;
    uint8_t *room; /* for copies */
    size_t used, bytes;
} parcel;

/* ---- who is where ---- */

static bool is_pairs(const swapping *s)
{
    return s->c.kind == THUNK_COLL_PERMUTE;
}

const int64_t *xpu_swap_members(const swapping *s, int64_t *n)
{
    *n = is_pairs(s) ? 2 * s->c.ngroup : s->c.size;
    return s->c.member + s->group * s->c.size;
}

static bool is_in(const swapping *s, int64_t member, int process)
{
    return member >= 0 && xpu_far_process(s->far, member) == process;
}

/* How many of the group are in that process, before `end` where it is one. */
static size_t count(const swapping *s, int process, int64_t end)
{
    int64_t n;
    const int64_t *m = xpu_swap_members(s, &n);
    size_t sum = 0;

    for (int64_t i = 0; i < n && (end < 0 || m[i] != end); i++)
        sum += is_in(s, m[i], process);
    return sum;
}

/* The pairs from one to another process, before the one of receiver `end`. */
static size_t count_pairs(const swapping *s, int from, int to, int64_t end)
{
    const int64_t *m = s->c.member;
    size_t sum = 0;

    for (int64_t i = 0; i < s->c.ngroup && m[2 * i + 1] != end; i++)
        sum += is_in(s, m[2 * i], from) && is_in(s, m[2 * i + 1], to);
    return sum;
}

size_t xpu_swap_piece_bytes(const swapping *s)
{
    return (size_t)s->c.outer * (size_t)s->c.block;
}

size_t xpu_swap_pieces(const swapping *s, int from, int to)
{
    switch (s->c.kind) {
    case THUNK_COLL_GATHER:
        return count(s, from, -1);
    case THUNK_COLL_ALL_TO_ALL:
        return count(s, from, -1) * count(s, to, -1);
    case THUNK_COLL_PERMUTE:
        return count_pairs(s, from, to, -1);
    default:
        return is_in(s, s->c.member[s->group * s->c.size], from);
    }
}

/* The k-th of the group that is in that process. */
static int64_t member_of(const swapping *s, int process, size_t k)
{
    int64_t n;
    const int64_t *m = xpu_swap_members(s, &n);

    while (!is_in(s, *m, process) || k--)
        m++;
    return *m;
}

void xpu_swap_piece(const swapping *s, int from, int to, size_t k,
                    int64_t *sender, int64_t *receiver)
{
    size_t there = count(s, to, -1);
    const int64_t *m = s->c.member;

    if (s->c.kind == THUNK_COLL_ALL_TO_ALL) {
        *sender = member_of(s, from, k / there);
        *receiver = member_of(s, to, k % there);
    } else if (!is_pairs(s)) { /* all read it: it goes to one of them */
        *sender = s->c.kind == THUNK_COLL_GATHER ? member_of(s, from, k)
                                                 : m[s->group * s->c.size];
        *receiver = member_of(s, to, k % there);
    } else {
        while (!is_in(s, m[0], from) || !is_in(s, m[1], to) || k--)
            m += 2;
        *sender = m[0];
        *receiver = m[1];
    }
}

static size_t message_bytes(const swapping *s, int from, int to)
{
    return xpu_swap_pieces(s, from, to) * xpu_swap_piece_bytes(s);
}

uint8_t *xpu_swapped(const xpu_run *r, const thunk_collective *c, int64_t group,
                     int64_t member, xpu_device **dev)
{
    swapping s = {r, xpu_gang_far(r->gang), *c, group};
    int from = xpu_far_process(s.far, member);
    int me = xpu_far_process(s.far, r->me);
    const xpu_far_message *in = xpu_gang_sent(r, from);
    size_t piece = 0;

    if (c->kind == THUNK_COLL_GATHER)
        piece = count(&s, from, member);
    else if (c->kind == THUNK_COLL_ALL_TO_ALL)
        piece =
            count(&s, from, member) * count(&s, me, -1) + count(&s, me, r->me);
    else if (is_pairs(&s))
        piece = count_pairs(&s, from, me, r->me);
    if (in->piece) {
        *dev = in->piece[piece].dev;
        return in->piece[piece].at;
    }
    *dev = NULL;
    return (uint8_t *)(uintptr_t)in->data + piece * xpu_swap_piece_bytes(&s);
}

bool xpu_swaps_direct(const xpu_run *r, const thunk_collective *c)
{
    const xpu_ccl *l = xpu_far_ccl(xpu_gang_far(r->gang));
    swapping s = {.c = *c};

    return l && xpu_swap_piece_bytes(&s) >= xpu_ccl_least(l);
}

/* ---- what is sent ---- */

static sd_status add_part(parcel *p, void *at, size_t bytes)
{
    xpu_far_peer *to = p->peer;
    struct iovec *more;

    if (to->npart == p->cap) {
        p->cap = p->cap ? 2 * p->cap : 8;
        more = realloc(to->part, (size_t)p->cap * sizeof *more);
        if (!more)
            return sd_no_memory((size_t)p->cap * sizeof *more);
        to->part = more;
    }
    to->part[to->npart++] = (struct iovec){at, bytes};
    return NULL;
}

static sd_status add(const swapping *s, parcel *p, int64_t member, size_t from,
                     size_t bytes)
{
    struct iovec *last =
        p->peer->npart ? p->peer->part + p->peer->npart - 1 : NULL;
    xpu_device *d;
    uint8_t *operand = xpu_gang_peer(s->r, member, &d), *to;
    sd_status st;

    operand += from;
    if (d->ops->shared_memory && bytes >= DIRECT)
        return add_part(p, operand, bytes);
    if (!p->room && !(p->room = malloc(p->bytes)))
        return sd_no_memory(p->bytes);
    to = p->room + p->used;
    p->used += bytes;
    if ((st = d->ops->copy_out(d, to, operand, bytes)))
        return st;
    if (!last || (uint8_t *)last->iov_base + last->iov_len != to)
        return add_part(p, to, bytes);
    last->iov_len += bytes;
    return NULL;
}

/* The blocks of the receiver at place j, of each row. */
static sd_status add_column(const swapping *s, parcel *p, int64_t member,
                            int64_t j)
{
    size_t block = (size_t)s->c.block;
    sd_status st = NULL;

    for (int64_t o = 0; o < s->c.outer && !st && block; o++)
        st = add(s, p, member, (size_t)(o * s->c.size + j) * block, block);
    return st;
}

static sd_status add_from(const swapping *s, parcel *p, int64_t i)
{
    int64_t n;
    const int64_t *m = xpu_swap_members(s, &n);
    sd_status st = NULL;

    switch (s->c.kind) {
    case THUNK_COLL_ALL_TO_ALL:
        for (int64_t j = 0; j < n && !st; j++)
            if (is_in(s, m[j], p->peer->process))
                st = add_column(s, p, m[i], j);
        return st;
    case THUNK_COLL_PERMUTE:
        if (i % 2 || !is_in(s, m[i + 1], p->peer->process))
            return NULL;
        break;
    case THUNK_COLL_BROADCAST:
        if (i)
            return NULL;
        break;
    default:
        break;
    }
    return xpu_swap_piece_bytes(s) ? add(s, p, m[i], 0, xpu_swap_piece_bytes(s))
                                   : NULL;
}

static sd_status fill(const swapping *s, parcel *p)
{
    int me = xpu_far_process(s->far, s->r->me);
    int64_t n;
    const int64_t *m = xpu_swap_members(s, &n);
    sd_status st = NULL;

    p->bytes = message_bytes(s, me, p->peer->process);
    p->peer->want = message_bytes(s, p->peer->process, me);
    for (int64_t i = 0; i < n && !st; i++)
        if (is_in(s, m[i], me))
            st = add_from(s, p, i);
    return st;
}

/* ---- to and from all ---- */

static int step_of(const xpu_run *r, const thunk *t)
{
    int i = 0;

    while (r->program->collective[i] != t)
        i++;
    return i;
}

/* Each begins with the one after it, so that not all send to one at a time. */
static int find_peers(const swapping *s, parcel *p, xpu_far_peer *peer)
{
    int all = xpu_far_count(s->far), me = xpu_far_process(s->far, s->r->me);
    int n = 0;

    for (int i = 1; i < all; i++) {
        int process = (me + i) % all;

        if (!count(s, process, -1))
            continue;
        peer[n] = (xpu_far_peer){.process = process};
        p[n] = (parcel){.peer = &peer[n]};
        n++;
    }
    return n;
}

static xpu_far_message *drop(parcel *p, int n)
{
    xpu_far_message *in = NULL;

    for (int i = 0; i < n; i++) {
        xpu_far_message *m = p[i].peer->in;

        if (m) {
            m->next = in;
            in = m;
        }
        free(p[i].peer->part);
        free(p[i].room);
    }
    return in;
}

static sd_status swap_messages(const swapping *s, int step, parcel *p,
                               xpu_far_peer *peer, int npeer,
                               xpu_far_message **in)
{
    sd_status st = NULL;

    for (int i = 0; i < npeer && !st; i++)
        st = fill(s, &p[i]);
    if (!st)
        st = xpu_far_exchange(s->far, step, s->group, peer, npeer,
                              xpu_gang_goes_on, s->r, s->r->cancel);
    *in = drop(p, npeer);
    return st;
}

sd_status xpu_swap(const xpu_run *r, const thunk *t, int64_t group)
{
    swapping s = {r, xpu_gang_far(r->gang), thunk_collective_of(t), group};
    size_t n = (size_t)xpu_far_count(s.far);
    parcel *p = malloc(n * (sizeof *p + sizeof(xpu_far_peer)));
    xpu_far_peer *peer = (xpu_far_peer *)(p + n);
    xpu_far_message *in = NULL;
    int npeer, step = step_of(r, t);
    sd_status st;

    if (!p)
        return xpu_gang_open(r, sd_no_memory(n * sizeof *p), NULL);
    npeer = find_peers(&s, p, peer);
    st = xpu_swaps_direct(r, &s.c)
             ? xpu_swap_direct(&s, step, peer, npeer, &in)
             : swap_messages(&s, step, p, peer, npeer, &in);
    free(p);
    if (st) {
        xpu_far_message_free(in);
        in = NULL;
    }
    return xpu_gang_open(r, st, in);
}
