/* A collective step: the members of a group meet, each copies what it wants
 * from the others' operands, and they part when all have.  Where devices have
 * queues that wait for each other's marks, members meet and part as soon as all
 * that is put in, and the queues do the waiting. */
#include "xpu_gang.h"

#include <stdlib.h>

typedef struct {
    const xpu_run *r;
    thunk_collective c;
    int64_t group, at; /* this participant's place */
    uint8_t *to;
    size_t bytes;
} moving;

/* ---- who meets ---- */

/* The pairs of a permute are one group: chains of them are common. */
static bool takes_part(const thunk_collective *c, int64_t group, int64_t i)
{
    return c->kind == THUNK_COLL_PERMUTE ? thunk_collective_find(c, i) >= 0
                                         : c->member[group * c->size + i] >= 0;
}

static bool is_here(const moving *m, int64_t participant)
{
    const xpu_far_run *far = xpu_gang_far(m->r->gang);

    return !far || xpu_far_is_here(far, participant);
}

/* In this process; *far: there are others. */
static int count_members(const moving *m, bool *far)
{
    bool pairs = m->c.kind == THUNK_COLL_PERMUTE;
    int64_t n = pairs ? thunk_participants(m->r->program->thunks) : m->c.size;
    int sum = 0;

    *far = false;
    for (int64_t i = 0; i < n; i++) {
        int64_t who = pairs ? i : m->c.member[m->group * m->c.size + i];
        bool part = takes_part(&m->c, m->group, i);

        sum += part && is_here(m, who);
        *far |= part && !is_here(m, who);
    }
    return sum;
}

/* ---- what is read ---- */

static sd_status copy(const moving *m, size_t at, int64_t member, size_t from,
                      size_t bytes)
{
    xpu_device *d = m->r->dev, *peer;
    const uint8_t *p;

    if (!is_here(m, member))
        return d->ops->copy_in(
            d, m->to + at, xpu_swapped(m->r, &m->c, m->group, member) + from,
            bytes);
    p = xpu_gang_peer(m->r->gang, member, &peer);
    if (!xpu_device_is_like(d, peer))
        return xpu_copy_through_host(d, m->to + at, peer, p + from, bytes);
    return d->ops->copy_between(d, m->to + at, peer, p + from, bytes);
}

static sd_status zero(const moving *m, size_t at, size_t bytes)
{
    xpu_device *d = m->r->dev;
    void *none;
    sd_status st;

    if (d->ops->shared_memory) {
        memset(m->to + at, 0, bytes);
        return NULL;
    }
    if (!(none = calloc(1, bytes ? bytes : 1)))
        return sd_no_memory(bytes);
    st = d->ops->copy_in(d, m->to + at, none, bytes);
    free(none);
    return st;
}

/* Block j of each row of the result, from the member at place j: the first of
 * its row in a gather, that of this participant in an all-to-all, which is all
 * that another process has sent. */
static sd_status read_column(const moving *m, int64_t j)
{
    const thunk_collective *c = &m->c;
    int64_t member = c->member[m->group * c->size + j];
    bool all =
        c->kind == THUNK_COLL_ALL_TO_ALL && member >= 0 && is_here(m, member);
    size_t block = (size_t)c->block;
    sd_status st = NULL;

    for (int64_t o = 0; o < c->outer && !st; o++) {
        size_t to = (size_t)(o * c->size + j) * block;
        size_t from = (size_t)(all ? o * c->size + m->at : o) * block;

        st = member < 0 ? zero(m, to, block) : copy(m, to, member, from, block);
    }
    return st;
}

/* Each begins with another member, so that not all read from one at a time. */
static sd_status read_columns(const moving *m)
{
    sd_status st = NULL;

    for (int64_t i = 0; i < m->c.size && !st; i++)
        st = read_column(m, (m->at + i) % m->c.size);
    return st;
}

/* Of a permute, or -1. */
static int64_t source_of(const moving *m)
{
    const thunk_collective *c = &m->c;

    for (int64_t i = 0; i < c->ngroup; i++)
        if (c->member[2 * i + 1] == m->r->me)
            return c->member[2 * i];
    return -1;
}

static sd_status read_pair(const moving *m)
{
    int64_t from = source_of(m);

    return from < 0 ? zero(m, 0, m->bytes) : copy(m, 0, from, 0, m->bytes);
}

static sd_status read_all(const moving *m)
{
    switch (m->c.kind) {
    case THUNK_COLL_PERMUTE:
        return read_pair(m);
    case THUNK_COLL_BROADCAST:
        return copy(m, 0, m->c.member[m->group * m->c.size], 0, m->bytes);
    default:
        return read_columns(m);
    }
}

/* ---- in the order of queues ---- */

/* Whether one participant reads another's operand, both of the group. */
static bool reads(const moving *m, int64_t reader, int64_t from)
{
    const thunk_collective *c = &m->c;

    if (reader == from)
        return false;
    if (c->kind == THUNK_COLL_BROADCAST)
        return from == c->member[m->group * c->size];
    if (c->kind != THUNK_COLL_PERMUTE)
        return true;
    for (int64_t i = 0; i < c->ngroup; i++)
        if (c->member[2 * i] == from && c->member[2 * i + 1] == reader)
            return true;
    return false;
}

/* Behind the operands that it reads or, after part, behind those who have read
 * its own. */
static sd_status follow(const moving *m, bool has_read)
{
    bool pairs = m->c.kind == THUNK_COLL_PERMUTE;
    int64_t n = pairs ? thunk_participants(m->r->program->thunks) : m->c.size;
    sd_status st = NULL;

    for (int64_t i = 0; i < n && !st; i++) {
        int64_t who = pairs ? i : m->c.member[m->group * m->c.size + i];

        if (takes_part(&m->c, m->group, i) &&
            (has_read ? reads(m, who, m->r->me) : reads(m, m->r->me, who)))
            st = xpu_gang_follow(m->r, who, has_read);
    }
    return st;
}

static xpu_column column(const moving *m, size_t at, int64_t member,
                         size_t from)
{
    xpu_column c = {.to = m->to + at, .dev = m->r->dev};

    if (member >= 0)
        c.from = (uint8_t *)xpu_gang_peer(m->r->gang, member, &c.dev) + from;
    return c;
}

static sd_status put_one(const moving *m, int64_t member)
{
    xpu_device *d = m->r->dev;
    xpu_column c = column(m, 0, member, 0);

    return d->ops->gather(
        d, &(xpu_blocks){.rows = 1, .bytes = m->bytes, .column = &c, .n = 1});
}

/* Each begins with another member, so that not all read from one at a time. */
static sd_status put_columns(const moving *m)
{
    enum { MOST = 16 };
    const thunk_collective *c = &m->c;
    bool all = c->kind == THUNK_COLL_ALL_TO_ALL;
    size_t block = (size_t)c->block, row = (size_t)c->size * block;
    xpu_device *d = m->r->dev;
    xpu_column to[MOST];
    xpu_blocks b = {.rows = c->outer,
                    .bytes = block,
                    .to_step = row,
                    .from_step = all ? row : block,
                    .column = to};
    sd_status st = NULL;

    for (int64_t i = 0; i < c->size && !st; i++) {
        int64_t j = (m->at + i) % c->size;

        to[b.n++] =
            column(m, (size_t)j * block, c->member[m->group * c->size + j],
                   all ? (size_t)m->at * block : 0);
        if (b.n < MOST && i + 1 < c->size)
            continue;
        st = d->ops->gather(d, &b);
        b.n = 0;
    }
    return st;
}

static sd_status put_all(const moving *m)
{
    switch (m->c.kind) {
    case THUNK_COLL_PERMUTE:
        return put_one(m, source_of(m));
    case THUNK_COLL_BROADCAST:
        return put_one(m, m->c.member[m->group * m->c.size]);
    default:
        return put_columns(m);
    }
}

static sd_status record(const xpu_run *r, xpu_mark **out)
{
    const xpu_device_ops *ops = r->dev->ops;

    return ops->record(r->dev, XPU_COMPUTE, NULL, NULL, out);
}

static sd_status run_queued(const moving *m, const thunk *t, int here,
                            void *operand)
{
    const xpu_run *r = m->r;
    xpu_mark *ready, *read = NULL;
    sd_status st;

    if ((st = record(r, &ready)) ||
        (st = xpu_gang_meet(r, t, m->group, here, operand, ready, NULL)))
        return st;
    if (!(st = follow(m, false)) && !(st = put_all(m)))
        st = record(r, &read);
    if (!(st = xpu_gang_part(r, st, read)))
        st = follow(m, true);
    xpu_gang_go(r);
    return st;
}

/* ---- the step ---- */

static sd_status run_waiting(const moving *m, const thunk *t, int here,
                             bool far, void *operand)
{
    const xpu_run *r = m->r;
    bool leads = false;
    sd_status st;

    if ((st = r->dev->ops->sync(r->dev, XPU_COMPUTE)) ||
        (st = xpu_gang_meet(r, t, m->group, here, operand, NULL,
                            far ? &leads : NULL)) ||
        (leads && (st = xpu_swap(r, t, m->group))))
        return st;
    st = xpu_gang_part(r, read_all(m), NULL);
    xpu_gang_go(r);
    return st;
}

static sd_status run_alone(const moving *m)
{
    xpu_device *d = m->r->dev;
    sd_status st;

    if (xpu_gang_is_queued(m->r->gang))
        return put_one(m, -1);
    st = d->ops->sync(d, XPU_COMPUTE);
    return st ? st : zero(m, 0, m->bytes);
}

sd_status xpu_run_collective(const xpu_run *r, const thunk *t)
{
    moving m = {.r = r,
                .c = thunk_collective_of(t),
                .to = r->base[t->arg[1].buffer] + t->arg[1].offset,
                .bytes = t->arg[1].bytes};
    void *operand = r->base[t->arg[0].buffer] + t->arg[0].offset;
    int64_t place = thunk_collective_find(&m.c, r->me);
    bool far;
    int here;

    if (place < 0)
        return run_alone(&m);
    m.group = m.c.kind == THUNK_COLL_PERMUTE ? 0 : place / m.c.size;
    m.at = place % m.c.size;
    here = count_members(&m, &far);
    return xpu_gang_is_queued(r->gang) ? run_queued(&m, t, here, operand)
                                       : run_waiting(&m, t, here, far, operand);
}
