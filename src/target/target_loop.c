/* Loops of small steps become one kernel each: a turn of a loop of scalars
 * takes as long as its arithmetic, not as the launches of its steps.  On GPUs
 * branches become kernels, too, also outside of loops.
 *
 * A step fits when all that it runs are kernels that one thread of the host, or
 * one group of a GPU, runs anyhow, small copies, and loops and branches of
 * such; libraries and the host are called from outside.  The memory that the
 * steps name becomes the kernel's slots: parts of a buffer that overlap are one
 * slot. emit_loop.c writes the code; kernels that only loops use are not built
 * for themselves. */
#include "emit.h"
#include "target_module.h"
#include "target_room.h"

enum { MOST_STEPS = 48, MOST_SLOTS = 96, MOST_COPY = 1 << 16 };
#define TURN_NS 200e3 /* by the same guess */
/* A group of a GPU: its items, and for kernels of several groups, which others
 * would share, how many groups one does for them, and the operations and bytes.
 * Its local memory holds all kernels'. */
enum { MOST_ITEMS = 512, MOST_ROUNDS = 2, MOST_LOCAL = 32 << 10 };
#define SHARED_WORK 2e5
#define STEP_NS     500.0 /* of each step, beside its operations and bytes */
/* A loop that is thought to take longer than QUEUED_NS, or has no known end, is
 * told to end, and the host waits for it.  Where none can be told, one that is
 * thought to take longer than HELD_NS, or has no known end, keeps its steps. */
#define QUEUED_NS 1e6
#define HELD_NS   20e6
/* A loop that can be told asks after so many turns, a power of two, and after
 * less than so long. */
enum { MOST_UNASKED = 64 };
#define UNASKED_NS 200e3

typedef struct {
    const plan *p;
    bool gpu;
    bool tells; /* GPU: a kernel can be told to end */
    int nstep;
    double ns;
    bool sorts;
    int subgroup; /* GPU: of all kernels; below 0: none yet */
    int64_t most; /* GPU: items at most, */
    int64_t items; /* of its group, */
    int64_t meet; /* and of the least whose items wait for each other */
    int nodes;
    uint64_t local; /* GPU: bytes */
    plan_loop *loop;
} look;

double target_guess_ns(const plan_kernel *k)
{
    return device_guess_ns(DEVICE_HOST, k->flops, k->bytes);
}

/* ---- does it fit? ---- */

static bool fits(look *l, const thunk *t);

static bool all_fit(look *l, const thunk_seq *seq, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < seq[i].n; j++)
            if (!fits(l, &seq[i].at[j]))
                return false;
    return true;
}

/* Wide engines want a group of their own.  Calls, sorts and attention ask for
 * the number of their group or count groups, which a loop has one of. */
static bool is_plain(const plan_kernel *k)
{
    return !k->attend && !k->places && !k->call && !k->sort && !k->buckets &&
           !k->large && !(k->blocks && plan_is_wide(k->blocks));
}

/* Groups that need no local memory are done side by side. */
static bool group_fits(look *l, const plan_kernel *k)
{
    int64_t side = 1, all = SD_MAX(k->tiles, 1);
    bool meets = k->local_bytes;
    int together = target_ops_of(l->p->program->device.kind)->abi->together;

    if (!is_plain(k) || k->group > l->most || k->group & (k->group - 1) ||
        (l->subgroup >= 0 && l->subgroup != k->subgroup) ||
        (meets && together && k->group % together))
        return false; /* a part of a sub-group has no barrier */
    l->subgroup = k->subgroup;
    while (!meets && side < all && 2 * side * k->group <= l->most)
        side *= 2;
    l->items = SD_MAX(l->items, side * k->group);
    l->meet = meets ? SD_MIN(l->meet, k->group) : l->meet;
    l->nodes += k->nnode <= EMIT_INLINE_NODES ? k->nnode : EMIT_MOST_INLINED;
    l->local += k->local_bytes;
    return l->local <= MOST_LOCAL &&
           (all == 1 ||
            (all <= MOST_ROUNDS * side && k->flops + k->bytes <= SHARED_WORK));
}

/* A word of 8 bytes an item; what is read and written there must not overlap.
 */
static bool copy_fits(look *l, const thunk *t)
{
    int64_t words = (int64_t)(t->arg[1].bytes + 7) / 8;

    while (l->items < words && l->items < l->most)
        l->items *= 2;
    return words <= MOST_ROUNDS * l->most &&
           !thunk_slices_overlap(t->arg[0], t->arg[1]);
}

static bool thread_fits(look *l, const plan_kernel *k)
{
    double ns = target_guess_ns(k);

    l->ns += ns;
    l->sorts |= k->sort && !k->sort->keys;
    return ns <= DEVICE_ALONE_NS && l->ns <= TURN_NS;
}

static bool fits(look *l, const thunk *t)
{
    if (l->nstep++ == MOST_STEPS)
        return false;
    switch (t->kind) {
    case THUNK_KERNEL:
        return (l->gpu ? group_fits : thread_fits)(l, l->p->kernel[t->kernel]);
    case THUNK_COPY:
        return l->gpu ? copy_fits(l, t) : t->arg[1].bytes <= MOST_COPY;
    case THUNK_WHILE:
    case THUNK_COND:
        return all_fit(l, t->seq, t->nseq);
    default:
        return false;
    }
}

static bool group_of_most_fits(look *l, const thunk *t, int64_t most)
{
    *l = (look){.p = l->p,
                .gpu = l->gpu,
                .tells = l->tells,
                .most = most,
                .items = 1,
                .meet = INT64_MAX,
                .subgroup = -1};
    return fits(l, t);
}

/* Where no barrier is for some of the items alone, the group is as small as the
 * least kernel whose items meet; and functions that meet are inlined. */
static bool step_fits(look *l, const thunk *t)
{
    bool ok = group_of_most_fits(l, t, MOST_ITEMS);

    if (ok && l->gpu && !l->tells && l->meet < l->items)
        ok = group_of_most_fits(l, t, l->meet) && l->meet == l->items;
    return ok && (l->tells || !l->gpu || l->nodes <= EMIT_MOST_INLINED);
}

/* ---- its memory ---- */

/* Takes in what overlaps; the cells that it swallows go. */
static void add_cell(sd_arena *a, plan_loop *l, thunk_slice s, bool written)
{
    plan_cell c = {s, written};
    bool more = true;

    while (more) {
        more = false;
        for (int i = 0; i < l->cell.n; i++) {
            plan_cell o = l->cell.at[i];
            uint64_t end;

            if (!thunk_slices_overlap(o.slice, c.slice))
                continue;
            end = SD_MAX(o.slice.offset + o.slice.bytes,
                         c.slice.offset + c.slice.bytes);
            c.slice.offset = SD_MIN(o.slice.offset, c.slice.offset);
            c.slice.bytes = end - c.slice.offset;
            c.written |= o.written;
            l->cell.at[i] = l->cell.at[--l->cell.n];
            more = true;
            break;
        }
    }
    *sd_push(a, &l->cell) = c;
}

static void add_cells(look *l, const thunk *t)
{
    const plan_kernel *k =
        t->kind == THUNK_KERNEL ? l->p->kernel[t->kernel] : NULL;

    for (int i = 0; i < t->narg; i++)
        if (t->arg[i].bytes)
            add_cell(l->p->arena, l->loop, t->arg[i],
                     k ? k->slot[i].access & PLAN_WRITE
                       : t->kind == THUNK_COPY && i == 1);
    for (int i = 0; i < t->nseq; i++)
        for (int j = 0; j < t->seq[i].n; j++)
            add_cells(l, &t->seq[i].at[j]);
}

static uint64_t most_local(const look *l, const thunk_seq *seq, int n)
{
    uint64_t most = 0, inner;

    for (int i = 0; i < n; i++)
        for (int j = 0; j < seq[i].n; j++) {
            const thunk *t = &seq[i].at[j];

            inner = t->kind == THUNK_KERNEL
                        ? l->p->program->kernel[t->kernel].local_bytes
                        : most_local(l, t->seq, t->nseq);
            most = SD_MAX(most, inner);
        }
    return most;
}

/* ---- how long it takes, for who decides where it runs ---- */

typedef struct {
    double flops, bytes, steps;
    bool unknown;
} work;

static void add_work(work *w, const thunk *t, double times)
{
    int64_t n = t->kind == THUNK_WHILE ? t->trip : 1;

    w->flops += times * t->flops;
    w->bytes += times * t->bytes;
    w->steps += times;
    w->unknown = w->unknown || n < 0;
    for (int i = 0; i < t->nseq && n >= 0; i++)
        for (int j = 0; j < t->seq[i].n; j++)
            add_work(w, &t->seq[i].at[j], times * (double)n);
}

static double group_ns(const look *l, const work *w)
{
    return w->steps * STEP_NS +
           device_guess_ns(l->p->program->device.kind, w->flops, w->bytes);
}

static bool is_longer(const look *l, const work *w, double ns)
{
    return w->unknown || group_ns(l, w) > ns;
}

/* All that may stand between two heads of loops. */
static void add_turn(work *w, const thunk *t)
{
    w->flops += t->flops;
    w->bytes += t->bytes;
    w->steps++;
    for (int i = 0; i < t->nseq; i++)
        for (int j = 0; j < t->seq[i].n; j++)
            add_turn(w, &t->seq[i].at[j]);
}

static int turns_unasked(const look *l, const thunk *t)
{
    int n = MOST_UNASKED;
    work turn = {0};

    add_turn(&turn, t);
    while (n > 1 && n * group_ns(l, &turn) > UNASKED_NS)
        n /= 2;
    return n;
}

/* ---- the kernel that takes its place ---- */

typedef struct {
    plan *p;
    sd_vec(plan_kernel *) made;
    plan_kernel **all; /* as the steps number them */
    bool gpu, tells;
} collapser;

static void collapse(collapser *c, thunk *t, const look *l, work w)
{
    thunk_program *pr = c->p->program;
    plan_kernel *k = sd_arena_new(c->p->arena, plan_kernel);
    int n = l->loop->cell.n;

    k->name = sd_arena_fmt(pr->arena, "loop$%d", c->made.n);
    k->arena = c->p->arena;
    k->loop = l->loop;
    k->tiles = 1;
    k->nslot = n;
    k->flops = w.flops;
    k->bytes = w.bytes;
    k->group = l->gpu ? (int)l->items : 1;
    k->subgroup = SD_MAX(l->subgroup, 0);
    k->local_bytes =
        l->gpu ? 0 : PLAN_LOOP_HEAD + most_local(l, t->seq, t->nseq);
    l->loop->step = sd_arena_copy(c->p->arena, t, sizeof *t);
    l->loop->kernel = c->all;
    l->loop->counted = !w.unknown;
    l->loop->told = l->tells && is_longer(l, &w, QUEUED_NS);
    l->loop->unasked = l->loop->told ? turns_unasked(l, t) : 0;
    l->loop->sorts = l->sorts;
    t->kind = THUNK_KERNEL;
    t->kernel = c->p->nkernel + c->made.n;
    t->narg = n;
    t->arg = sd_arena_array(pr->arena, thunk_slice, n + 1);
    for (int i = 0; i < n; i++)
        t->arg[i] = l->loop->cell.at[i].slice;
    t->nseq = 0;
    t->seq = NULL;
    t->trip = w.unknown || l->loop->told ? -1 : 1;
    t->flops = k->flops;
    t->bytes = k->bytes;
    *sd_push(c->p->arena, &c->made) = k;
}

/* A loop; on a GPU a branch, too, whose predicate the host or the driver would
 * read. */
static bool may_collapse(const collapser *c, const thunk *t)
{
    return t->kind == THUNK_WHILE || (c->gpu && t->kind == THUNK_COND);
}

static void visit(collapser *c, thunk_seq *seq)
{
    for (int i = 0; i < seq->n; i++) {
        thunk *t = &seq->at[i];
        look l = {.p = c->p, .gpu = c->gpu, .tells = c->tells};
        work w = {0};

        add_work(&w, t, 1);
        if (may_collapse(c, t) && step_fits(&l, t) &&
            (!l.gpu || l.tells || !is_longer(&l, &w, HELD_NS))) {
            l.loop = sd_arena_new(c->p->arena, plan_loop);
            add_cells(&l, t);
            if (l.loop->cell.n <= MOST_SLOTS) {
                collapse(c, t, &l, w);
                continue;
            }
        }
        for (int j = 0; j < t->nseq; j++)
            visit(c, &t->seq[j]);
    }
}

/* ---- kernels that nobody launches any more ---- */

static void renumber(thunk_seq *seq, int *to)
{
    for (int i = 0; i < seq->n; i++) {
        thunk *t = &seq->at[i];

        if (t->kernel >= 0)
            t->kernel = to[t->kernel];
        for (int j = 0; j < t->nseq; j++)
            renumber(&t->seq[j], to);
    }
}

static void mark(const thunk_seq *seq, int *to)
{
    for (int i = 0; i < seq->n; i++) {
        const thunk *t = &seq->at[i];

        if (t->kernel >= 0)
            to[t->kernel] = 1;
        for (int j = 0; j < t->nseq; j++)
            mark(&t->seq[j], to);
    }
}

static thunk_kernel entry_of(const collapser *c, const plan_kernel *k)
{
    return (thunk_kernel){.symbol = k->name,
                          .binary = -1,
                          .nslot = k->nslot,
                          .tiles = 1,
                          .group = k->group,
                          .local_bytes = k->local_bytes,
                          .flops = k->flops,
                          .bytes = k->bytes,
                          .loop = !c->gpu || k->loop->told};
}

static void keep_launched(collapser *c)
{
    plan *p = c->p;
    thunk_program *pr = p->program;
    int n = p->nkernel + c->made.n, kept = 0;
    int *to = sd_arena_array(p->arena, int, n);
    plan_kernel **kernel = sd_arena_array(p->arena, plan_kernel *, n);
    thunk_kernel *entry = sd_arena_array(pr->arena, thunk_kernel, n);

    mark(&pr->seq, to);
    for (int i = 0; i < n; i++) {
        bool is_loop = i >= p->nkernel;
        plan_kernel *k = is_loop ? c->made.at[i - p->nkernel] : p->kernel[i];

        if (!to[i])
            continue;
        kernel[kept] = k;
        entry[kept] = is_loop ? entry_of(c, k) : pr->kernel[i];
        to[i] = kept++;
    }
    renumber(&pr->seq, to);
    p->kernel = kernel;
    pr->kernel = entry;
    p->nkernel = pr->nkernel = kept;
}

void target_loops(plan *p)
{
    const emit_abi *abi = target_ops_of(p->program->device.kind)->abi;
    collapser c = {
        .p = p, .all = p->kernel, .gpu = abi, .tells = abi && abi->any};

    visit(&c, &p->program->seq);
    if (c.made.n)
        keep_launched(&c);
}
