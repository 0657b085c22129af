/* Collectives beside kernels.  Where a device has a queue for them and engines
 * that move blocks without its kernels, a collective whose result is not wanted
 * at once runs while the steps that follow it do: the gradients of a layer meet
 * while those of the layer before are computed.  A sum in shares is three steps
 * (all-to-all, a kernel, all-gather) that go together.
 *
 * This is done to the steps, whose slices say what touches what, read or
 * written: before a step that touches what is beside all that is beside is
 * waited for.  So memory may be shared as if steps ran one after the other. */
#include "plan_mem.h"

typedef sd_vec(thunk_slice) slices;

typedef struct {
    const thunk_program *pr;
    const thunk_seq *all;
    double meet;     /* device_kinds.def */
    slices beside;   /* what may still be read or written there */
    sd_vec(thunk) out;
} weaver;

static bool touches(const thunk *t, const slices *s)
{
    for (int i = 0; i < t->narg; i++)
        for (int k = 0; k < s->n; k++)
            if (thunk_slices_overlap(t->arg[i], s->at[k]))
                return true;
    for (int i = 0; i < t->nseq; i++)
        for (int k = 0; k < t->seq[i].n; k++)
            if (touches(&t->seq[i].at[k], s))
                return true;
    return false;
}

/* A constant or a number of the participant is nobody's to write. */
static void add_slices(weaver *w, const thunk *t, slices *to)
{
    for (int i = 0; i < t->narg; i++) {
        thunk_buffer_kind k = w->pr->buffer[t->arg[i].buffer].kind;

        if (k != THUNK_B_CONST && k != THUNK_B_IDS)
            *sd_push(w->pr->arena, to) = t->arg[i];
    }
}

/* Of the steps from i on those that go together, and their slices: collectives
 * of each other's results, and what little is computed between two. */
static int chain_at(weaver *w, int i, slices *to)
{
    const thunk *t = w->all->at;
    int n = w->all->n, k = i;

    while (k < n && t[k].kind == THUNK_COLLECTIVE &&
           (k == i || touches(&t[k], to))) {
        add_slices(w, &t[k++], to);
        if (k + 1 < n && t[k].kind == THUNK_KERNEL &&
            t[k].flops <= t[k].bytes && touches(&t[k], to) &&
            t[k + 1].kind == THUNK_COLLECTIVE) {
            slices made = {0};

            add_slices(w, &t[k], &made);
            if (touches(&t[k + 1], &made))
                add_slices(w, &t[k++], to);
        }
    }
    return k - i;
}

static double bytes_of(const thunk *t)
{
    double sum = t->bytes;

    for (int i = 0; i < t->nseq; i++)
        for (int k = 0; k < t->seq[i].n; k++)
            sum += bytes_of(&t->seq[i].at[k]) *
                   (double)SD_MAX(t->trip, INT64_C(1));
    return sum;
}

/* Whether the steps after a chain run for long before one touches it. */
static bool is_worth_it(const weaver *w, int i, int n, const slices *s)
{
    const thunk *t = w->all->at;
    double needs = w->meet, work = 0;

    for (int k = i; k < i + n; k++)
        needs += t[k].bytes;
    for (int k = i + n; k < w->all->n && !touches(&t[k], s); k++)
        if (t[k].kind != THUNK_COLLECTIVE)
            work += bytes_of(&t[k]);
    return work >= needs;
}

static void join(weaver *w, const char *name)
{
    if (w->beside.n)
        *sd_push(w->pr->arena, &w->out) =
            (thunk){.kind = THUNK_JOIN, .name = name, .kernel = -1, .trip = -1};
    w->beside.n = 0;
}

static void put_beside(weaver *w, int i, int n, const slices *s)
{
    thunk t = {.kind = THUNK_BESIDE,
               .name = w->all->at[i].name,
               .kernel = -1,
               .trip = -1,
               .nseq = 1};

    t.seq = sd_arena_new(w->pr->arena, thunk_seq);
    *t.seq = (thunk_seq){&w->all->at[i], n};
    *sd_push(w->pr->arena, &w->out) = t;
    for (int k = 0; k < s->n; k++)
        *sd_push(w->pr->arena, &w->beside) = s->at[k];
}

void plan_beside(const thunk_program *pr, thunk_seq *seq)
{
    weaver w = {
        .pr = pr, .all = seq, .meet = device_kind_table[pr->device.kind].meet};

    if (!device_kind_table[pr->device.kind].beside ||
        thunk_participants(pr) < 2)
        return;
    for (int i = 0, n; i < seq->n; i += SD_MAX(n, 1)) {
        const thunk *t = &seq->at[i];
        slices s = {0};

        n = chain_at(&w, i, &s);
        if (n && is_worth_it(&w, i, n, &s)) {
            put_beside(&w, i, n, &s);
            continue;
        }
        n = 1;
        if (touches(t, &w.beside))
            join(&w, t->name);
        *sd_push(pr->arena, &w.out) = *t;
    }
    join(&w, "end");
    *seq = (thunk_seq){w.out.at, w.out.n};
}
