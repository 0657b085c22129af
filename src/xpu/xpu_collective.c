/* A collective step: the members of a group meet, each copies what it wants
 * from the others' operands, and they part when all have.  Where devices have
 * queues that wait for each other's marks, members meet and part as soon as all
 * that is put in, and the queues do the waiting. */
#include "xpu_gang.h"

#include <emmintrin.h>
#include <stdlib.h>

/* Bytes of a result that no cache has room for, of all members', and of its
 * pieces: psum of 16 MiB over 8 members of 2 cores 22 ms, and 13 past caches.
 */
enum { LARGE = 4 << 20, PIECE = 4 << 10 };
enum { COLUMNS = 16 }; /* at a time */

typedef struct {
    const xpu_run *r;
    thunk_collective c;
    int64_t group, at; /* this participant's place */
    uint8_t *to;
    size_t bytes;
    bool direct; /* all that is read lies on devices, and queues bring it */
} moving;

/* ---- who meets ---- */

/* The pairs of a permute are one group: chains of them are common.  The i-th
 * place of the group, or -1 where nobody is. */
static int64_t member_at(const moving *m, int64_t i)
{
    const thunk_collective *c = &m->c;

    if (c->kind != THUNK_COLL_PERMUTE)
        return c->member[m->group * c->size + i];
    return thunk_collective_find(c, i) >= 0 ? i : -1;
}

static int64_t count_places(const moving *m)
{
    return m->c.kind == THUNK_COLL_PERMUTE
               ? thunk_participants(m->r->program->thunks)
               : m->c.size;
}

static bool is_here(const moving *m, int64_t participant)
{
    const xpu_far_run *far = xpu_gang_far(m->r->gang);

    return !far || xpu_far_is_here(far, participant);
}

/* In this process; *far: there are others. */
static int count_members(const moving *m, bool *far)
{
    int sum = 0;

    *far = false;
    for (int64_t i = 0; i < count_places(m); i++) {
        int64_t who = member_at(m, i);

        sum += who >= 0 && is_here(m, who);
        *far |= who >= 0 && !is_here(m, who);
    }
    return sum;
}

/* ---- what is read ---- */

/* All that the member has; where there is none, zeros. */
static xpu_column column(const moving *m, int64_t member)
{
    xpu_column c = {.to = m->to, .dev = m->r->dev};

    if (member < 0)
        return c;
    c.far = !is_here(m, member);
    if (c.far)
        c.from = xpu_swapped(m->r, &m->c, m->group, member, &c.dev);
    else
        c.from = xpu_gang_peer(m->r, member, &c.dev);
    return c;
}

/* Block j of each row of the result, from the member at place j: the first of
 * its row in a gather, that of this participant in an all-to-all, which is all
 * that another process has sent. */
static xpu_column column_at(const moving *m, int64_t j)
{
    const thunk_collective *c = &m->c;
    xpu_column to = column(m, member_at(m, j));

    to.to += j * c->block;
    if (c->kind == THUNK_COLL_ALL_TO_ALL && to.from && !to.far)
        to.from += m->at * c->block;
    return to;
}

static sd_status zero(xpu_device *d, uint8_t *to, size_t bytes)
{
    void *none;
    sd_status st;

    if (d->ops->shared_memory) {
        memset(to, 0, bytes);
        return NULL;
    }
    if (!(none = calloc(1, bytes ? bytes : 1)))
        return sd_no_memory(bytes);
    st = d->ops->copy_in(d, to, none, bytes);
    free(none);
    return st;
}

/* Past the caches, where each line would be read before it is written. */
static void stream(uint8_t *to, const uint8_t *from, size_t bytes)
{
    size_t head = SD_MIN(bytes, -(uintptr_t)to % sizeof(__m128i)), i;

    memcpy(to, from, head);
    for (i = head; i + 4 * sizeof(__m128i) <= bytes; i += 4 * sizeof(__m128i))
        for (size_t k = 0; k < 4; k++)
            _mm_stream_si128((__m128i *)(to + i) + k,
                             _mm_loadu_si128((const __m128i *)(from + i) + k));
    memcpy(to + i, from + i, bytes - i);
    _mm_sfence();
}

static sd_status copy(const moving *m, const xpu_column *c, uint8_t *to,
                      const uint8_t *from, size_t bytes)
{
    xpu_device *d = m->r->dev;

    if (!c->from)
        return zero(d, to, bytes);
    if (!c->dev)
        return d->ops->copy_in(d, to, from, bytes);
    if (!xpu_device_is_like(d, c->dev))
        return xpu_copy_through_host(d, to, c->dev, from, bytes);
    if (m->bytes < LARGE || bytes < PIECE || !d->ops->shared_memory)
        return d->ops->copy_between(d, to, c->dev, from, bytes);
    stream(to, from, bytes);
    return NULL;
}

/* Of these those that another process has sent, row by row, or the others. */
static sd_status gather_some(const moving *m, const xpu_blocks *b, bool far)
{
    xpu_device *d = m->r->dev;
    xpu_column column[COLUMNS];
    xpu_blocks some = *b;

    some.column = column;
    some.n = 0;
    if (far)
        some.from_step = b->bytes;
    for (int i = 0; i < b->n; i++)
        if (b->column[i].far == far)
            column[some.n++] = b->column[i];
    return some.n ? d->ops->gather(d, &some) : NULL;
}

/* In the order of queues, or done on return. */
static sd_status bring(const moving *m, const xpu_blocks *b)
{
    xpu_device *d = m->r->dev;
    sd_status st = NULL;

    if (xpu_gang_is_queued(m->r->gang))
        return d->ops->gather(d, b);
    if (m->direct) {
        st = gather_some(m, b, false);
        return st ? st : gather_some(m, b, true);
    }
    for (int i = 0; i < b->n; i++) {
        const xpu_column *c = &b->column[i];
        size_t step = c->far ? b->bytes : b->from_step;

        for (size_t o = 0; o < (size_t)b->rows && !st; o++)
            st = copy(m, c, c->to + o * b->to_step,
                      c->from ? c->from + o * step : NULL, b->bytes);
    }
    return st;
}

static sd_status bring_one(const moving *m, int64_t member)
{
    xpu_column c = column(m, member);

    return bring(
        m, &(xpu_blocks){.rows = 1, .bytes = m->bytes, .column = &c, .n = 1});
}

/* Each begins with another member, so that not all read from one at a time. */
static sd_status bring_columns(const moving *m)
{
    const thunk_collective *c = &m->c;
    bool all = c->kind == THUNK_COLL_ALL_TO_ALL;
    size_t block = (size_t)c->block, row = (size_t)c->size * block;
    xpu_column to[COLUMNS];
    xpu_blocks b = {.rows = c->outer,
                    .bytes = block,
                    .to_step = row,
                    .from_step = all ? row : block,
                    .column = to};
    sd_status st = NULL;

    for (int64_t i = 0; i < c->size && !st; i++) {
        to[b.n++] = column_at(m, (m->at + i) % c->size);
        if (b.n < COLUMNS && i + 1 < c->size)
            continue;
        st = bring(m, &b);
        b.n = 0;
    }
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

/* The kernel reads each member's block where it is: in its memory or, of
 * another process, in what that has sent. */
static sd_status run_kernel(const moving *m, const thunk *t)
{
    const xpu_run *r = m->r;
    int64_t n = m->c.size;

    for (int64_t j = 0; j < n; j++)
        r->slot[j] = column_at(m, j).from;
    for (int i = 1; i < t->narg; i++)
        r->slot[n - 1 + i] = r->base[t->arg[i].buffer] + t->arg[i].offset;
    return r->dev->ops->launch(r->dev, r->program->module, t->kernel, r->slot);
}

static sd_status read_all(const moving *m, const thunk *t)
{
    if (t->kernel >= 0)
        return run_kernel(m, t);
    switch (m->c.kind) {
    case THUNK_COLL_PERMUTE:
        return bring_one(m, source_of(m));
    case THUNK_COLL_BROADCAST:
        return bring_one(m, member_at(m, 0));
    default:
        return bring_columns(m);
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
    int64_t me = m->r->me;
    sd_status st = NULL;

    for (int64_t i = 0; i < count_places(m) && !st; i++) {
        int64_t who = member_at(m, i);

        if (who >= 0 && (has_read ? reads(m, who, me) : reads(m, me, who)))
            st = xpu_gang_follow(m->r, who, has_read);
    }
    return st;
}

static sd_status record(const xpu_run *r, xpu_mark **out)
{
    const xpu_device_ops *ops = r->dev->ops;

    return ops->record(r->dev, r->dev->queue, NULL, NULL, out);
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
    if (!(st = follow(m, false)) && !(st = read_all(m, t)))
        st = record(r, &read);
    if (!(st = xpu_gang_part(r, st, read)))
        st = follow(m, true);
    xpu_gang_go(r);
    return st;
}

/* ---- on devices ---- */

/* What is read lies ready when those who are read have come, and may go when
 * its readers have. */
static sd_status meet(const moving *m, bool has_read)
{
    const xpu_run *r = m->r;
    xpu_device *dev[XPU_MOST_PEERS];
    bool tell[XPU_MOST_PEERS], await[XPU_MOST_PEERS];
    xpu_meeting at = {.number = xpu_gang_number(r) + has_read,
                      .stop = xpu_gang_stop(r->gang),
                      .dev = dev,
                      .tell = tell,
                      .await = await};

    for (int64_t i = 0; i < count_places(m); i++) {
        int64_t who = member_at(m, i);
        bool ours, theirs;

        if (who < 0)
            continue;
        ours = reads(m, r->me, who);
        theirs = reads(m, who, r->me);
        xpu_gang_peer(r, who, &dev[at.n]);
        tell[at.n] = has_read ? ours : theirs;
        await[at.n] = has_read ? theirs : ours;
        at.n += ours || theirs;
    }
    return at.n ? r->dev->ops->meet(r->dev, &at) : NULL;
}

/* The host waits until all have come, so that nobody waits on a device for one
 * who never will, and not again. */
static sd_status run_meeting(const moving *m, const thunk *t, int here,
                             void *operand)
{
    sd_status st;

    if ((st = xpu_gang_meet(m->r, t, m->group, here, operand, NULL, NULL)))
        return st;
    if (!(st = meet(m, false)) && !(st = read_all(m, t)))
        st = meet(m, true);
    return xpu_gang_pass(m->r, st);
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
    st = read_all(m, t);
    if (!st && m->direct)
        st = r->dev->ops->sync(r->dev, XPU_COMPUTE);
    st = xpu_gang_part(r, st, NULL);
    xpu_gang_go(r);
    return st;
}

static sd_status run_alone(const moving *m)
{
    xpu_device *d = m->r->dev;
    sd_status st = NULL;

    if (!xpu_gang_is_queued(m->r->gang))
        st = d->ops->sync(d, XPU_COMPUTE);
    return st ? st : bring_one(m, -1);
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
    m.direct = far && r->dev->ops->gather && xpu_swaps_direct(r, &m.c);
    if (xpu_gang_stop(r->gang))
        return run_meeting(&m, t, here, operand);
    return xpu_gang_is_queued(r->gang) ? run_queued(&m, t, here, operand)
                                       : run_waiting(&m, t, here, far, operand);
}
