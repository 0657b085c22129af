/* The order of steps.  Operands first; among what is ready, the module's own
 * order, but copies for updates in place as late as may be: then the old value
 * has been read by all who want it, and the copy needs no memory. */
#include "plan_mem.h"

typedef struct {
    int waits;  /* operands that are not placed yet */
    int order, rank;
} ready_info;

enum { RANK_NORMAL, RANK_UPDATE, RANK_LAST };

static int rank_of(const hlo_inst *in)
{
    if (in->op != HLO_COPY)
        return RANK_NORMAL;
    for (int i = 0; i < in->nuse; i++)
        if (in->user[i]->op == HLO_TUPLE &&
            in->user[i] == in->parent->root)
            return RANK_LAST;
    return in == in->parent->root ? RANK_LAST : RANK_UPDATE;
}

typedef struct {
    hlo_inst **at; /* a heap by rank, then order */
    int n;
} heap;

static bool before(const hlo_inst *x, const hlo_inst *y)
{
    const ready_info *a = x->tag, *b = y->tag;

    return a->rank != b->rank ? a->rank < b->rank : a->order < b->order;
}

static void swap_at(heap *h, int i, int j)
{
    hlo_inst *t = h->at[i];

    h->at[i] = h->at[j];
    h->at[j] = t;
}

static void push(heap *h, hlo_inst *in)
{
    int i = h->n++;

    h->at[i] = in;
    for (; i > 0 && before(h->at[i], h->at[(i - 1) / 2]); i = (i - 1) / 2)
        swap_at(h, i, (i - 1) / 2);
}

static hlo_inst *pop(heap *h)
{
    hlo_inst *top = h->at[0];
    int i = 0;

    h->at[0] = h->at[--h->n];
    for (;;) {
        int l = 2 * i + 1, best = i;

        if (l < h->n && before(h->at[l], h->at[best]))
            best = l;
        if (l + 1 < h->n && before(h->at[l + 1], h->at[best]))
            best = l + 1;
        if (best == i)
            return top;
        swap_at(h, i, best);
        i = best;
    }
}

void plan_schedule(hlo_comp *c)
{
    sd_arena *a = sd_arena_create();
    int n = hlo_comp_count(c), order = 0, done = 0;
    heap h = { sd_arena_array(a, hlo_inst *, n + 1), 0 };
    hlo_inst **list = sd_arena_array(a, hlo_inst *, n + 1);

    hlo_for_each_inst(in, c) {
        ready_info *f = sd_arena_new(a, ready_info);

        f->waits = in->narg;
        f->order = order++;
        f->rank = rank_of(in);
        in->tag = f;
    }
    hlo_for_each_inst(in, c)
        if (in->narg == 0)
            push(&h, in);
    while (h.n) {
        hlo_inst *in = pop(&h);

        list[done++] = in;
        for (int i = 0; i < in->nuse; i++) {
            hlo_inst *u = in->user[i];
            ready_info *f = u->tag;

            if (u->parent == c && --f->waits == 0)
                push(&h, u);
        }
    }
    for (int i = 0; i < done; i++) {
        list[i]->tag = NULL;
        list[i]->prev = i ? list[i - 1] : NULL;
        list[i]->next = i + 1 < done ? list[i + 1] : NULL;
    }
    if (done) {
        c->first = list[0];
        c->last = list[done - 1];
    }
    sd_arena_destroy(a);
}
