/* Loops that write their state beside it.  A kernel that reads its neighbours
 * cannot write over them, so that a turn ends with a copy, from where it wrote
 * to where the next turn reads.  Where the number of turns is known and even,
 * two turns stand in the body instead, and no copy: the second has both places
 * exchanged, reads where the first wrote and writes where it read.
 *
 * Both places are those values' alone while the loop runs, so that exchanging
 * them moves nothing else.  Kernels are the same in both turns and are built
 * once; a step more is a thunk, or a call in a loop that is one kernel. */
#include "plan_mem.h"

enum {
    LEAST_BYTES = 4096, /* of a copy: less is copied faster than two turns are
                           compiled */
    MOST_STEPS = 20 /* of a turn; target_loop.c takes 48 of a loop */
};

static bool is_step(const hlo_inst *in)
{
    return in->op == HLO_FUSION || in->op == HLO_COPY ||
           in->op == HLO_CUSTOM_CALL;
}

/* Only what reads and writes the slices of its own step. */
static bool is_plain(const hlo_inst *in)
{
    switch (in->op) {
    case HLO_FUSION:
        return !in->narg || !plan_is_peers(in->arg[0]);
    case HLO_CUSTOM_CALL:
        return in->u.custom->lib != NULL;
    default:
        return in->op == HLO_COPY || plan_is_no_step(in->op);
    }
}

static bool can_stand_twice(const plan_mem *pm, const hlo_inst *in)
{
    const int64_t *trip = sd_map_get(pm->trip, sd_key(in));
    const hlo_comp *body = in->comp[1];
    int steps = 0;

    if (!trip || *trip < 2 || *trip % 2 || body->root->op != HLO_TUPLE)
        return false;
    hlo_for_each_inst(x, body) {
        steps += is_step(x);
        if (!is_plain(x))
            return false;
    }
    return steps <= MOST_STEPS;
}

/* Is s memory that only the body uses, for what `copy` copies and what was
 * there before? */
static bool is_of_body(const storage *s, const hlo_comp *body,
                       const hlo_inst *copy)
{
    int begin = home_of(body->param[0])->time, end = home_of(copy)->time;

    if (s->param >= 0 || s->output >= 0 || s->constant || s->fixed)
        return false;
    for (int i = 0; i < s->all.n; i++)
        if (s->all.at[i].from <= begin || s->all.at[i].from > end)
            return false;
    return true;
}

/* s lives all of `all`: with it those that touch it, and those that touch
 * them, become one life. */
static void live(plan_mem *pm, storage *s, plan_life all)
{
    plan_lives was = s->all, out = {0};
    int i = 0, end;

    while (i < was.n && was.at[i].to < all.from)
        i++;
    for (end = i; end < was.n && was.at[end].from <= all.to; end++) {
        all.from = SD_MIN(all.from, was.at[end].from);
        all.to = SD_MAX(all.to, was.at[end].to);
    }
    for (; i > 0 && was.at[i - 1].to == all.from; i--)
        all.from = was.at[i - 1].from;
    for (int k = 0; k < i; k++)
        *sd_push(pm->a, &out) = was.at[k];
    *sd_push(pm->a, &out) = all;
    for (int k = end; k < was.n; k++)
        *sd_push(pm->a, &out) = was.at[k];
    s->all = out;
}

static void spare_copies(plan_mem *pm, const hlo_inst *in)
{
    const hlo_comp *body = in->comp[1];
    plan_life loop = {home_of(in)->time, home_of(in)->until};

    for (int i = 0; i < body->root->narg; i++) {
        hlo_inst *x = body->root->arg[i];
        storage *from, *to;

        if (x->op != HLO_COPY || x->nuse != 1)
            continue;
        from = storage_of(home_of(x->arg[0])->at[0]);
        to = storage_of(home_of(x)->at[0]);
        if (from == to || from->bytes < LEAST_BYTES ||
            !is_of_body(from, body, x))
            continue;
        live(pm, from, loop);
        live(pm, to, loop);
        sd_map_set(pm->spared, sd_key(x), x);
    }
}

void plan_spare_copies(plan_mem *pm, const hlo_comp *c)
{
    hlo_for_each_inst(in, c) {
        if (in->op != HLO_WHILE && in->op != HLO_CONDITIONAL)
            continue;
        for (int i = 0; i < in->ncomp; i++)
            plan_spare_copies(pm, in->comp[i]);
        if (in->op == HLO_WHILE && can_stand_twice(pm, in))
            spare_copies(pm, in);
    }
}

/* ---- the steps ---- */

static bool lies_in(thunk_slice s, thunk_slice in)
{
    return s.bytes && s.buffer == in.buffer && s.offset >= in.offset &&
           s.offset + s.bytes <= in.offset + in.bytes;
}

static thunk_slice moved(thunk_slice s, thunk_slice from, thunk_slice to)
{
    return (thunk_slice){to.buffer, to.offset + (s.offset - from.offset),
                         s.bytes};
}

/* The copy's two places are exchanged. */
static void exchange(const hlo_inst *copy, thunk *t)
{
    thunk_slice x = storage_of(home_of(copy->arg[0])->at[0])->slice;
    thunk_slice y = storage_of(home_of(copy)->at[0])->slice;

    for (int i = 0; i < t->narg; i++)
        if (lies_in(t->arg[i], x))
            t->arg[i] = moved(t->arg[i], x, y);
        else if (lies_in(t->arg[i], y))
            t->arg[i] = moved(t->arg[i], y, x);
}

void plan_turn_twice(const plan_mem *pm, const hlo_inst *in, thunk *loop)
{
    sd_arena *a = pm->p->program->arena;
    const hlo_inst *root = in->comp[1]->root;
    thunk_seq *body = &loop->seq[1];
    int n = body->n;
    thunk *both = sd_arena_array(a, thunk, 2 * n + 1);
    bool any = false;

    memcpy(both, body->at, (size_t)n * sizeof *both);
    memcpy(both + n, body->at, (size_t)n * sizeof *both);
    for (int j = n; j < 2 * n; j++)
        both[j].arg = sd_arena_copy(a, both[j].arg,
                                    (size_t)both[j].narg * sizeof *both[j].arg);
    for (int i = 0; root->op == HLO_TUPLE && i < root->narg; i++)
        if (sd_map_has(pm->spared, sd_key(root->arg[i]))) {
            any = true;
            for (int j = n; j < 2 * n; j++)
                exchange(root->arg[i], &both[j]);
        }
    if (!any)
        return;
    *body = (thunk_seq){both, 2 * n};
    loop->trip /= 2;
}
