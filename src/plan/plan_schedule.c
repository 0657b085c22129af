/* The order of steps.  Operands first; among what is ready, the module's own
 * order, or, where that saves much memory, first what makes no more than it is
 * the last to read, such as an update of weights by a gradient, and late what
 * needs no memory: of two orders the better is taken.  But but copies for
 * updates in place as late as may be: then the old value has been read by all
 * who want it, and the copy needs no memory.  For the same reason what becomes
 * the next value of a loop's state, or of a parameter that is given away, waits
 * for the readers of the old one while others can go. */
#include "plan_mem.h"

typedef struct {
    plan_pressed pressed; /* first: the instruction's tag */
    int waits;            /* operands that are not placed yet */
    int order, rank;
    int at; /* place in the heap, or -1 */
    int late_waits; /* of them, late ones */
    bool eases, late, wanted, done;
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
    hlo_inst **at; /* a heap by rank, then what eases, then order */
    int n;
} heap;

static bool before(const hlo_inst *x, const hlo_inst *y)
{
    const ready_info *a = x->tag, *b = y->tag;

    if (a->rank != b->rank)
        return a->rank < b->rank;
    return a->eases != b->eases ? a->eases : a->order < b->order;
}

static void swap_at(heap *h, int i, int j)
{
    hlo_inst *t = h->at[i];

    h->at[i] = h->at[j];
    h->at[j] = t;
    ((ready_info *)h->at[i]->tag)->at = i;
    ((ready_info *)t->tag)->at = j;
}

static void rise(heap *h, int i)
{
    for (; i > 0 && before(h->at[i], h->at[(i - 1) / 2]); i = (i - 1) / 2)
        swap_at(h, i, (i - 1) / 2);
}

static void push(heap *h, hlo_inst *in)
{
    int i = h->n++;

    h->at[i] = in;
    ((ready_info *)in->tag)->at = i;
    rise(h, i);
}

static hlo_inst *pop(heap *h)
{
    hlo_inst *top = h->at[0];
    int i = 0;

    ((ready_info *)top->tag)->at = -1;
    h->at[0] = h->at[--h->n];
    if (h->n)
        ((ready_info *)h->at[0]->tag)->at = 0;
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

/* ---- an order ---- */

typedef struct {
    plan_pressure pressure;
    heap ready;
    hlo_inst **list; /* the order */
    int n;
    bool thrifty; /* what eases memory comes first, what needs none last */
} order;

static void eased(void *ctx, hlo_inst *in)
{
    order *o = ctx;
    ready_info *f = in->tag;

    if (!o->thrifty || f->done || f->at < 0 || f->eases)
        return;
    f->eases = plan_pressure_eases(&o->pressure, in);
    rise(&o->ready, f->at);
}

static void make_ready(order *o, hlo_inst *in)
{
    ready_info *f = in->tag;

    if (f->late && !f->wanted)
        return;
    f->eases =
        f->wanted || (o->thrifty && plan_pressure_eases(&o->pressure, in));
    push(&o->ready, in);
}

static void start(sd_arena *a, hlo_comp *c)
{
    int n = 0;

    hlo_for_each_inst(in, c) {
        ready_info *f = sd_arena_new(a, ready_info);

        f->waits = in->narg;
        f->order = n++;
        f->rank = rank_of(in);
        f->at = -1;
        in->tag = f;
        if (f->rank == RANK_UPDATE)
            *sd_push(a, &f->old) = in->arg[0];
    }
    if (c == c->module->entry)
        pair_entry(a, c);
    else if (c->nparam == 1)
        pair_body(a, c);
}

/* What is made of arguments alone, such as zeros to add to, is late: made when
 * somebody who has all else wants it. */
static void find_late(hlo_comp *c)
{
    hlo_for_each_inst(in, c) {
        ready_info *f = in->tag;

        bool of_late = in->op == HLO_COPY || in->op == HLO_BITCAST ||
                       in->op == HLO_RESHAPE;

        of_late = of_late && ((ready_info *)in->arg[0]->tag)->late;
        f->late = in->op != HLO_PARAMETER && in->nuse && in != c->root &&
                  !hlo_has_effect(in) &&
                  (of_late || plan_pressure_needs_none(in));
        for (int k = 0; k < in->narg && !f->late; k++)
            f->late_waits += ((ready_info *)in->arg[k]->tag)->late;
    }
}

static void want(order *o, const hlo_inst *in)
{
    for (int k = 0; k < in->narg; k++) {
        ready_info *f = in->arg[k]->tag;

        if (f->done || f->wanted || !f->late)
            continue;
        f->wanted = true;
        if (f->waits == 0)
            make_ready(o, in->arg[k]);
        else
            want(o, in->arg[k]);
    }
}

static void tell_user(order *o, const hlo_inst *in, hlo_inst *user)
{
    ready_info *f = user->tag;

    f->waits--;
    if (!f->late)
        f->late_waits -= ((ready_info *)in->tag)->late;
    if (f->waits == 0)
        make_ready(o, user);
    else if (!f->late && f->waits == f->late_waits)
        want(o, user);
}

static void make_order(sd_arena *a, hlo_comp *c, int n, order *o)
{
    hlo_inst **aside = sd_arena_array(a, hlo_inst *, n + 1);

    o->list = sd_arena_array(a, hlo_inst *, n + 1);
    o->ready.at = sd_arena_array(a, hlo_inst *, n + 1);
    o->pressure.eased = eased;
    o->pressure.ctx = o;
    start(a, c);
    plan_pressure_begin(&o->pressure, a, c);
    if (o->thrifty)
        find_late(c);
    hlo_for_each_inst(in, c) {
        ready_info *f = in->tag;

        if (in->narg == 0)
            make_ready(o, in);
        else if (!f->late && f->waits == f->late_waits)
            want(o, in);
    }
    while (o->ready.n) {
        hlo_inst *in = next_ready(&o->ready, aside);

        o->list[o->n++] = in;
        ((ready_info *)in->tag)->done = true;
        plan_pressure_step(&o->pressure, in);
        for (int i = 0; i < in->nuse; i++)
            if (in->user[i]->parent == c)
                tell_user(o, in, in->user[i]);
    }
}

/* Another order than the module's own has to be worth it. */
static bool saves_much(const order *o, const order *than)
{
    enum { LITTLE = 1 << 16 };

    return o->pressure.most + o->pressure.most / 8 + LITTLE <
           than->pressure.most;
}

sd_status plan_schedule(hlo_comp *c)
{
    sd_status st = NULL;
    sd_arena *a = sd_arena_create();
    int n = hlo_comp_count(c);
    order own = {0}, thrifty = {.thrifty = true}, *o = &own;

    make_order(a, c, n, &own);
    if (saves_much(&thrifty, &own)) { /* which takes nothing yet */
        make_order(a, c, n, &thrifty);
        o = saves_much(&thrifty, &own) ? &thrifty : &own;
    }
    if (o->n != n)
        st = sd_error(SD_INTERNAL, "%s: %d of %d instructions are in a cycle",
                      c->name, n - o->n, n);
    for (int i = 0; i < o->n; i++) {
        o->list[i]->tag = NULL;
        o->list[i]->prev = i ? o->list[i - 1] : NULL;
        o->list[i]->next = i + 1 < o->n ? o->list[i + 1] : NULL;
    }
    if (o->n) {
        c->first = o->list[0];
        c->last = o->list[o->n - 1];
    }
    sd_arena_destroy(a);
    return st;
}
