/* The order of steps.  Operands first; among what is ready, the module's own
 * order, but copies for updates in place as late as may be: then the old value
 * has been read by all who want it, and the copy needs no memory.  For the same
 * reason what becomes the next value of a loop's state, or of a parameter that
 * is given away, waits for the readers of the old one while others can go. */
#include "plan_mem.h"

typedef struct {
    int waits; /* operands that are not placed yet */
    int order, rank;
    bool done;
    sd_vec(hlo_inst *) old; /* values whose memory its results will take */
} ready_info;

enum { RANK_NORMAL, RANK_UPDATE, RANK_LAST };

static int rank_of(const hlo_inst *in)
{
    if (in->op != HLO_COPY)
        return RANK_NORMAL;
    for (int i = 0; i < in->nuse; i++)
        if (in->user[i]->op == HLO_TUPLE && in->user[i] == in->parent->root)
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

/* ---- values that take the memory of others ---- */

static void replaces(sd_arena *a, hlo_inst *value, hlo_inst *old)
{
    ready_info *f;

    while (value->op == HLO_COPY || value->op == HLO_GET_TUPLE_ELEMENT ||
           value->op == HLO_RESHAPE || value->op == HLO_BITCAST)
        value = value->arg[0];
    f = value->tag;
    if (value->narg && value->parent == old->parent)
        *sd_push(a, &f->old) = old;
}

static void pair_body(sd_arena *a, hlo_comp *c)
{
    hlo_inst *p = c->param[0], *r = c->root;

    if (!sd_shape_equal(p->shape, r->shape) || r->op != HLO_TUPLE)
        return;
    for (int i = 0; i < p->nuse; i++) {
        hlo_inst *g = p->user[i];

        if (g->op == HLO_GET_TUPLE_ELEMENT)
            replaces(a, r->arg[g->u.tuple.index], g);
    }
}

static void pair_entry(sd_arena *a, hlo_comp *c)
{
    const hlo_module *m = c->module;

    for (int i = 0; i < m->nalias; i++) {
        int64_t o = m->alias[i].output_index;

        if (c->root->op != HLO_TUPLE && o == 0)
            replaces(a, c->root, c->param[m->alias[i].param]);
        else if (c->root->op == HLO_TUPLE && o < c->root->narg)
            replaces(a, c->root->arg[o], c->param[m->alias[i].param]);
    }
}

/* Others that are still to read what in would overwrite. */
static bool should_wait(const hlo_inst *in)
{
    const ready_info *f = in->tag;

    for (int i = 0; i < f->old.n; i++)
        for (int j = 0; j < f->old.at[i]->nuse; j++) {
            const hlo_inst *u = f->old.at[i]->user[j];
            const ready_info *g = u->tag;

            if (u != in && !g->done)
                return true;
        }
    return false;
}

/* What waiting no longer costs: bytes that have to be copied. */
static uint64_t price(const hlo_inst *in)
{
    const ready_info *f = in->tag;
    uint64_t all = 0;

    for (int i = 0; i < f->old.n; i++)
        all += sd_shape_bytes(f->old.at[i]->shape);
    return all;
}

/* The first that has nothing to wait for; if all have, the cheapest. */
static hlo_inst *next_ready(heap *h, hlo_inst **aside)
{
    hlo_inst *got = NULL;
    int n = 0, from = 0;

    while (h->n && !got) {
        hlo_inst *in;

        /* the last copies overwrite what anything else may read */
        if (n && ((ready_info *)h->at[0]->tag)->rank == RANK_LAST)
            break;
        in = pop(h);

        if (should_wait(in))
            aside[n++] = in;
        else
            got = in;
    }
    if (!got) {
        for (int i = 1; i < n; i++)
            if (price(aside[i]) < price(aside[0])) {
                hlo_inst *t = aside[0];

                aside[0] = aside[i];
                aside[i] = t;
            }
        got = aside[from++];
    }
    while (from < n)
        push(h, aside[from++]);
    return got;
}

sd_status plan_schedule(hlo_comp *c)
{
    sd_status st = NULL;
    sd_arena *a = sd_arena_create();
    int n = hlo_comp_count(c), order = 0, done = 0;
    heap h = {sd_arena_array(a, hlo_inst *, n + 1), 0};
    hlo_inst **list = sd_arena_array(a, hlo_inst *, n + 1);
    hlo_inst **aside = sd_arena_array(a, hlo_inst *, n + 1);

    hlo_for_each_inst(in, c) {
        ready_info *f = sd_arena_new(a, ready_info);

        f->waits = in->narg;
        f->order = order++;
        f->rank = rank_of(in);
        in->tag = f;
        if (f->rank == RANK_UPDATE)
            *sd_push(a, &f->old) = in->arg[0];
    }
    if (c == c->module->entry)
        pair_entry(a, c);
    else if (c->nparam == 1)
        pair_body(a, c);
    hlo_for_each_inst(in, c)
        if (in->narg == 0)
            push(&h, in);
    while (h.n) {
        hlo_inst *in = next_ready(&h, aside);

        list[done++] = in;
        ((ready_info *)in->tag)->done = true;
        for (int i = 0; i < in->nuse; i++) {
            hlo_inst *u = in->user[i];
            ready_info *f = u->tag;

            if (u->parent == c && --f->waits == 0)
                push(&h, u);
        }
    }
    if (done != n)
        st = sd_error(SD_INTERNAL, "%s: %d of %d instructions are in a cycle",
                      c->name, n - done, n);
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
    return st;
}
