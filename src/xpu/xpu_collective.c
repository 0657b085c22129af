/* A collective step: the members of a group meet, each copies what it wants
 * from the others' operands, and they part when all have. */
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

static sd_status read_pair(const moving *m)
{
    const thunk_collective *c = &m->c;

    for (int64_t i = 0; i < c->ngroup; i++)
        if (c->member[2 * i + 1] == m->r->me)
            return copy(m, 0, c->member[2 * i], 0, m->bytes);
    return zero(m, 0, m->bytes);
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

/* ---- the step ---- */

sd_status xpu_run_collective(const xpu_run *r, const thunk *t)
{
    moving m = {.r = r,
                .c = thunk_collective_of(t),
                .to = r->base[t->arg[1].buffer] + t->arg[1].offset,
                .bytes = t->arg[1].bytes};
    void *operand = r->base[t->arg[0].buffer] + t->arg[0].offset;
    int64_t place = thunk_collective_find(&m.c, r->me);
    bool leads = false, far;
    sd_status st;
    int here;

    if (place < 0)
        return zero(&m, 0, m.bytes);
    m.group = m.c.kind == THUNK_COLL_PERMUTE ? 0 : place / m.c.size;
    m.at = place % m.c.size;
    here = count_members(&m, &far);
    if ((st = r->dev->ops->sync(r->dev, XPU_COMPUTE)) ||
        (st = xpu_gang_meet(r, t, m.group, here, operand,
                            far ? &leads : NULL)) ||
        (leads && (st = xpu_swap(r, t, m.group))))
        return st;
    return xpu_gang_part(r, read_all(&m));
}
