/* The order of steps.  Operands come first.  Of what is ready, either the
 * module's own order decides, or, where that saves much memory, what goes first
 * is what makes no more than it is the last to read, such as an update of
 * weights by a gradient, and last what needs no memory: the better of the two
 * orders is taken.  In both a copy for an update in place comes as late as may
 * be: by then all who want the old value have read it, and the copy needs no
 * memory.  For the same reason the next value of a loop's state, or of a
 * parameter that is given away, waits for the readers of the old one while
 * others can go.  Where collectives run beside kernels (plan_beside.c) a sum in
 * shares is begun as soon as may be, and who reads it waits while others can
 * go: an update of weights right behind its gradient would save the gradient's
 * memory and stand still until all members have sent theirs. */
#include "plan_mem.h"

typedef struct heap heap;
typedef struct {
    plan_pressed pressed; /* first: the instruction's tag */
    int waits;            /* operands that are not placed yet */
    int order, rank;
    int sum; /* of what reads sums: the order of the last */
    heap *in; /* which it is in, or NULL */
    int at;   /* its place there */
    int late_waits; /* of `waits`, late ones */
    bool eases, late, wanted, done;
    bool asked; /* for its late operands */
    sd_vec(hlo_inst *) old; /* values whose memory its results will take */
    int old_at;             /* those before it are read */
    int readers, stamp;     /* of this value: how many are not done */
    sd_vec(hlo_inst *) waiting; /* for them */
} ready_info;

enum { RANK_SUM, RANK_NORMAL, RANK_READS_SUM, RANK_UPDATE, RANK_LAST };

/* The last of the sums that it reads, as its order, or 0. */
static int last_sum(const hlo_inst *in, const device_desc *dev)
{
    int last = 0;

    for (int k = 0; k < in->narg; k++) {
        const hlo_inst *x = in->arg[k];

        while (x->op == HLO_RESHAPE || x->op == HLO_BITCAST)
            x = x->arg[0];
        if (plan_sum_of(x, dev) == x)
            last = SD_MAX(last, ((const ready_info *)x->tag)->order);
    }
    return last;
}

static int rank_of(const hlo_inst *in, const device_desc *dev)
{
    if (plan_sum_of(in, dev))
        return RANK_SUM;
    if (in->op != HLO_COPY)
        return ((const ready_info *)in->tag)->sum ? RANK_READS_SUM
                                                  : RANK_NORMAL;
    hlo_for_each_user(u, in)
        if (u->op == HLO_TUPLE && u == in->parent->root)
            return RANK_LAST;
    return in == in->parent->root ? RANK_LAST : RANK_UPDATE;
}

/* By price, or all for nothing; then rank, then what eases, then order. */
struct heap {
    hlo_inst **at;
    int n;
    uint64_t (*price)(const hlo_inst *in);
};

static bool before(const heap *h, const hlo_inst *x, const hlo_inst *y)
{
    const ready_info *a = x->tag, *b = y->tag;

    if (h->price && h->price(x) != h->price(y))
        return h->price(x) < h->price(y);
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->sum != b->sum)
        return a->sum < b->sum;
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
    for (; i > 0 && before(h, h->at[i], h->at[(i - 1) / 2]); i = (i - 1) / 2)
        swap_at(h, i, (i - 1) / 2);
}

static void sink(heap *h, int i)
{
    for (;;) {
        int l = 2 * i + 1, best = i;

        if (l < h->n && before(h, h->at[l], h->at[best]))
            best = l;
        if (l + 1 < h->n && before(h, h->at[l + 1], h->at[best]))
            best = l + 1;
        if (best == i)
            return;
        swap_at(h, i, best);
        i = best;
    }
}

static void push(heap *h, hlo_inst *in)
{
    ready_info *f = in->tag;

    f->in = h;
    f->at = h->n++;
    h->at[f->at] = in;
    rise(h, f->at);
}

static void take(hlo_inst *in)
{
    ready_info *f = in->tag;
    heap *h = f->in;
    int i = f->at;

    f->in = NULL;
    if (i == --h->n)
        return;
    h->at[i] = h->at[h->n];
    ((ready_info *)h->at[i]->tag)->at = i;
    rise(h, i);
    sink(h, i);
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
    hlo_for_each_user(g, p) {
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

/* An instruction may have one value as several operands: true of the first.
 * way: 1 or -1, and another one than in the search before. */
static bool is_first_of(const hlo_inst *in, int k, int way)
{
    ready_info *x = in->arg[k]->tag;
    int stamp = way * (((const ready_info *)in->tag)->order + 1);
    bool first = x->stamp != stamp;

    x->stamp = stamp;
    return first;
}

/* A value that in would overwrite and others are still to read, or NULL. */
static hlo_inst *waits_for(const hlo_inst *in)
{
    ready_info *f = in->tag;

    for (; f->old_at < f->old.n; f->old_at++) {
        hlo_inst *old = f->old.at[f->old_at];

        if (((const ready_info *)old->tag)->readers > hlo_reads(in, old))
            return old;
    }
    return NULL;
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

/* ---- an order ---- */

typedef struct {
    sd_arena *a;
    plan_pressure pressure;
    heap ready, aside; /* aside: ready, but waits for readers */
    hlo_inst **list;   /* the order */
    int n;
    bool thrifty; /* what eases memory comes first, what needs none last */
} order;

/* The first that has nothing to wait for; if all have, the cheapest. */
static hlo_inst *next_ready(order *o)
{
    hlo_inst *in, *old;

    while (o->ready.n) {
        in = o->ready.at[0];
        /* the last copies overwrite what anything else may read */
        if (o->aside.n && ((ready_info *)in->tag)->rank == RANK_LAST)
            break;
        take(in);
        if (!(old = waits_for(in)))
            return in;
        push(&o->aside, in);
        *sd_push(o->a, &((ready_info *)old->tag)->waiting) = in;
    }
    in = o->aside.at[0];
    take(in);
    return in;
}

/* in has read it.  The last reader need not wait for itself. */
static void finish_reading(order *o, hlo_inst *value)
{
    ready_info *f = value->tag;

    if (--f->readers > 1)
        return;
    for (int i = 0; i < f->waiting.n; i++) {
        hlo_inst *w = f->waiting.at[i];

        if (((ready_info *)w->tag)->in != &o->aside)
            continue;
        take(w);
        push(&o->ready, w);
    }
    f->waiting.n = 0;
}

static void finish(order *o, hlo_inst *in)
{
    ((ready_info *)in->tag)->done = true;
    for (int k = 0; k < in->narg; k++)
        if (is_first_of(in, k, -1))
            finish_reading(o, in->arg[k]);
}

static void eased(void *ctx, hlo_inst *in)
{
    order *o = ctx;
    ready_info *f = in->tag;

    if (!o->thrifty || f->done || !f->in || f->eases)
        return;
    f->eases = plan_pressure_eases(&o->pressure, in);
    rise(f->in, f->at);
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

static void start(sd_arena *a, hlo_comp *c, const device_desc *dev)
{
    int n = 0;

    hlo_for_each_inst(in, c) {
        ready_info *f = sd_arena_new(a, ready_info);

        f->waits = in->narg;
        f->order = n++;
        in->tag = f;
    }
    hlo_for_each_inst(in, c) { /* apart: the module may have a cycle */
        ready_info *f = in->tag;

        f->sum = last_sum(in, dev);
        f->rank = rank_of(in, dev);
        if (f->rank == RANK_UPDATE)
            *sd_push(a, &f->old) = in->arg[0];
        for (int k = 0; k < in->narg; k++)
            ((ready_info *)in->arg[k]->tag)->readers += is_first_of(in, k, 1);
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

static void want(order *o, hlo_inst *in)
{
    sd_vec(hlo_inst *) stack = {0};

    *sd_push(o->a, &stack) = in;
    while (stack.n) {
        hlo_inst *x = stack.at[--stack.n];

        if (((ready_info *)x->tag)->asked)
            continue;
        ((ready_info *)x->tag)->asked = true;
        for (int k = 0; k < x->narg; k++) {
            ready_info *f = x->arg[k]->tag;

            if (f->done || f->wanted || !f->late)
                continue;
            f->wanted = true;
            if (f->waits == 0)
                make_ready(o, x->arg[k]);
            else
                *sd_push(o->a, &stack) = x->arg[k];
        }
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

static void make_order(sd_arena *a, hlo_comp *c, int n, const device_desc *dev,
                       order *o)
{
    o->a = a;
    o->list = sd_arena_array(a, hlo_inst *, n + 1);
    o->ready.at = sd_arena_array(a, hlo_inst *, n + 1);
    o->aside.at = sd_arena_array(a, hlo_inst *, n + 1);
    o->aside.price = price;
    o->pressure.eased = eased;
    o->pressure.ctx = o;
    start(a, c, dev);
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
    while (o->ready.n || o->aside.n) {
        hlo_inst *in = next_ready(o);

        o->list[o->n++] = in;
        finish(o, in);
        plan_pressure_step(&o->pressure, in);
        hlo_for_each_user(u, in)
            if (u->parent == c)
                tell_user(o, in, u);
    }
}

/* Another order than the module's own has to be worth it. */
static bool saves_much(const order *o, const order *than)
{
    enum { LITTLE = 1 << 16 };

    return o->pressure.most + o->pressure.most / 8 + LITTLE <
           than->pressure.most;
}

sd_status plan_schedule(hlo_comp *c, const device_desc *dev)
{
    sd_status st = NULL;
    sd_arena *a = sd_arena_create();
    int n = hlo_comp_count(c);
    order own = {0}, thrifty = {.thrifty = true}, *o = &own;

    make_order(a, c, n, dev, &own);
    if (saves_much(&thrifty, &own)) { /* which takes nothing yet */
        make_order(a, c, n, dev, &thrifty);
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
