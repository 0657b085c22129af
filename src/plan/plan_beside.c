/* Collectives beside kernels.  Where a device has a queue for them and engines
 * that move blocks without its kernels, a collective whose result is not wanted
 * at once runs while the steps that follow it do: the gradients of a layer meet
 * while those of the layer before are computed.  A sum in shares is three steps
 * (all-to-all, a kernel, all-gather) that go together.
 *
 * This is done to the steps, whose slices say what touches what, read or
 * written: before a step that touches what is beside all that is beside is
 * waited for, but for the last that was begun if it touches nothing of that.
 * So memory may be shared as if steps ran one after the other. The
 * schedule and the places of values help: sums are begun early and read late,
 * and what one is made in is nobody else's until the next is made. */
#include "plan_mem.h"

/* ---- sums in shares ---- */

bool plan_is_in_place(const hlo_inst *f)
{
    hlo_op root = f->comp[0]->root->op;

    return root == HLO_SCATTER || root == HLO_DYNAMIC_UPDATE_SLICE;
}

/* It gathers what a kernel makes of the shares that an all-to-all brings. */
static bool is_sum(const hlo_inst *in)
{
    const hlo_inst *f = in->op == HLO_ALL_GATHER ? in->arg[0] : NULL;

    if (!f || f->op != HLO_FUSION || f->nuse != 1 || plan_is_in_place(f))
        return false;
    for (int k = 0; k < f->narg; k++)
        if (f->arg[k]->op == HLO_ALL_TO_ALL && f->arg[k]->nuse == 1)
            return true;
    return false;
}

const hlo_inst *plan_sum_of(const hlo_inst *in, const device_desc *dev)
{
    if (device_kind_table[dev->kind].beside == 0)
        return NULL;
    for (int i = 0; i < 2 && in->nuse == 1; i++)
        if (in->op == (i ? HLO_FUSION : HLO_ALL_TO_ALL))
            in = in->user[0];
    return is_sum(in) ? in : NULL;
}

/* ---- the steps ---- */

typedef sd_vec(thunk_slice) slices;

typedef struct {
    const thunk_program *pr;
    const thunk_seq *all;
    const device_kind_info *kind;
    slices beside;   /* what may still be read or written there, */
    int last;        /* from here on by the last that was begun */
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

/* How long it runs, as bytes that it might move in that time: products are as
 * long by what they compute. */
static double work_of(const weaver *w, const thunk *t)
{
    double sum = SD_MAX(t->bytes, t->flops / w->kind->beside);

    for (int i = 0; i < t->nseq; i++)
        for (int k = 0; k < t->seq[i].n; k++)
            sum += work_of(w, &t->seq[i].at[k]) *
                   (double)SD_MAX(t->trip, INT64_C(1));
    return sum;
}

/* Whether the steps after a chain run for long before one touches it.  Other
 * chains may: they come after it. */
static bool is_worth_it(weaver *w, int i, int n, const slices *s)
{
    const thunk *t = w->all->at;
    double needs = w->kind->meet, work = 0;

    for (int k = i; k < i + n; k++)
        needs += t[k].bytes;
    for (int k = i + n, more; k < w->all->n; k += SD_MAX(more, 1)) {
        slices its = {0};

        if ((more = chain_at(w, k, &its)))
            continue;
        if (touches(&t[k], s))
            break;
        work += work_of(w, &t[k]);
    }
    return work >= needs;
}

static void join(weaver *w, const char *name, bool all)
{
    int n = w->beside.n - w->last;

    if (w->beside.n == 0)
        return;
    *sd_push(w->pr->arena, &w->out) = (thunk){
        .kind = THUNK_JOIN, .name = name, .kernel = -1, .trip = all ? -1 : 1};
    memmove(w->beside.at, w->beside.at + w->last,
            (size_t)n * sizeof *w->beside.at);
    w->beside.n = all ? 0 : n;
    w->last = 0;
}

/* Before t, if it touches what is beside. */
static void join_for(weaver *w, const thunk *t)
{
    slices last = w->beside;

    last.at += w->last;
    last.n -= w->last;
    if (touches(t, &w->beside))
        join(w, t->name, touches(t, &last));
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
    w->last = w->beside.n;
    for (int k = 0; k < s->n; k++)
        *sd_push(w->pr->arena, &w->beside) = s->at[k];
}

void plan_beside(const thunk_program *pr, thunk_seq *seq)
{
    weaver w = {
        .pr = pr, .all = seq, .kind = &device_kind_table[pr->device.kind]};

    if (w.kind->beside == 0 || thunk_participants(pr) < 2)
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
        join_for(&w, t);
        *sd_push(pr->arena, &w.out) = *t;
    }
    join(&w, "end", true);
    *seq = (thunk_seq){w.out.at, w.out.n};
}
