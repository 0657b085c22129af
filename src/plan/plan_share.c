/* Who shares memory: copies with what they copy, outputs with the parameters
 * that are given away, wherever no value is overwritten that is still to be
 * read. */
#include "plan_mem.h"

#include <assert.h>
#include <stdlib.h>

static int by_begin(const void *a, const void *b)
{
    const plan_life *x = a, *y = b;

    return x->from != y->from ? (x->from < y->from ? -1 : 1)
                              : (x->to > y->to) - (x->to < y->to);
}

static const plan_lives *all_lives(plan_mem *pm, storage *s)
{
    if (s->all.n)
        return &s->all;
    for (int i = 0; i < s->life.n; i++)
        *sd_push(pm->a, &s->all) = s->life.at[i];
    if (s->all.n > 1)
        qsort(s->all.at, (size_t)s->all.n, sizeof *s->all.at, by_begin);
    return &s->all;
}

/* The fewer into the more: in most programs they come last. */
static plan_lives merged(plan_mem *pm, plan_lives more, plan_lives fewer)
{
    if (more.n < fewer.n)
        return merged(pm, fewer, more);
    for (int i = 0; i < fewer.n; i++) {
        int k = more.n;

        sd_push(pm->a, &more);
        for (; k > 0 && by_begin(&more.at[k - 1], &fewer.at[i]) > 0; k--)
            more.at[k] = more.at[k - 1];
        more.at[k] = fewer.at[i];
    }
    return more;
}

void plan_unite(plan_mem *pm, storage *x, storage *y)
{
    x = storage_of(x);
    y = storage_of(y);
    if (x == y)
        return;
    assert(x->bytes == y->bytes);
    x->all = merged(pm, *all_lives(pm, x), *all_lives(pm, y));
    if (y->param >= 0)
        x->param = y->param;
    if (y->output >= 0)
        x->output = y->output;
    if (y->constant)
        x->constant = y->constant;
    x->fixed |= y->fixed;
    y->into = x;
}

storage *plan_output_at(const plan_mem *pm, int64_t i)
{
    return storage_of(home_of(pm->m->entry->root)->at[i]);
}

static bool place_needs(const plan_expr *e, const bool *needs)
{
    if (!e)
        return false;
    if (e->kind == PX_NODE && needs[e->node->id])
        return true;
    return place_needs(e->a, needs) || place_needs(e->b, needs);
}

/* Is nothing computed of what a LOAD read after the store, or has it been read
 * for the store by then?  needs: room for a mark a node. */
static bool is_read_before(const plan_kernel *k, const plan_node *load,
                           const plan_node *store, bool *needs)
{
    memset(needs, 0, (size_t)k->nnode * sizeof *needs);
    plan_for_each_node(n, k) {
        needs[n->id] = n == load || place_needs(n->off, needs);
        for (int j = 0; j < n->nguard; j++)
            needs[n->id] |= place_needs(n->guard[j].e, needs);
        for (int j = 0; j < n->narg; j++) /* a REDUCE has been done before */
            needs[n->id] |= !plan_is_sum(n->arg[j]) && needs[n->arg[j]->id];
        if (needs[n->id] && n != store && plan_is_sink(n) &&
            (n->stage > store->stage ||
             (n->stage == store->stage && n->id > store->id &&
              !needs[store->id])))
            return false;
    }
    return true;
}

/* May out's memory be in's in this kernel?  Every element is read, if at all,
 * in the same place of the loops that writes it, and not after. */
static bool can_overwrite(const plan_kernel *k, int in, int out, bool *needs)
{
    const plan_node *store = NULL;
    uint64_t lane = 0; /* an inner LANE axis: all work items of a group read
                          what does not vary on it, and one writes it, at no
                          agreed time */

    if (k->call)
        return k->call->in_place && in == 0;
    if (k->sort ||
        sd_dtype_bytes(k->slot[in].dtype) != sd_dtype_bytes(k->slot[out].dtype))
        return false;
    for (int i = k->nouter; i < k->naxis; i++)
        if (k->axis[i].place == PLAN_LANE)
            lane = 1ull << i;
    plan_for_each_node(x, k)
        if (x->slot == out && plan_is_write(x)) {
            if (store || x->kind == PN_SCATTER || x->nguard)
                return false;
            store = x;
        }
    if (!store)
        return false;
    plan_for_each_node(n, k)
        if (n->kind == PN_LOAD && n->slot == in &&
            (n->off != store->off || (n->varies & lane) != lane ||
             !is_read_before(k, n, store, needs)))
            return false;
    return true;
}

typedef struct {
    plan_mem *pm;
    hlo_inst **step; /* by time */
    bool *needs;     /* a mark for each node of the largest kernel */
} sharing;

int plan_addend_of(const hlo_inst *in)
{
    const libcall *c = in->op == HLO_CUSTOM_CALL ? in->u.custom->lib : NULL;
    bool adds = c && ((c->op == LIBCALL_MATMUL && c->matmul.add) ||
                      (c->op == LIBCALL_CONV && c->conv.add));

    return adds ? in->narg - 1 : -1;
}

/* At time t the step reads x and writes y: may they be one place? */
static bool may_touch(const sharing *sh, int t, const storage *x,
                      const storage *y)
{
    hlo_inst *in = sh->step[t];
    plan_home *p;

    if (!in)
        return false;
    p = home_of(in);
    if (in->op == HLO_COPY)
        return storage_of(home_of(in->arg[0])->at[0]) == x &&
               storage_of(p->at[0]) == y;
    if (plan_addend_of(in) >= 0) {
        for (int k = 0; k < in->narg; k++)
            if (k != plan_addend_of(in) &&
                storage_of(home_of(in->arg[k])->at[0]) == x)
                return false;
        return storage_of(p->at[0]) == y;
    }
    if (in->op != HLO_FUSION || !p->kernel)
        return false;
    for (int o = 0; o < p->n; o++) {
        if (storage_of(p->at[o]) != y)
            continue;
        for (int k = 0; k < in->narg; k++)
            if (storage_of(home_of(in->arg[k])->at[0]) == x &&
                (plan_is_peers(in->arg[k]) || /* others read it, too */
                 !can_overwrite(p->kernel, k, in->narg + o, sh->needs)))
                return false;
    }
    return true;
}

static bool life_ends_before(const sharing *sh, const plan_life *a,
                             const plan_life *b, const storage *x,
                             const storage *y)
{
    if (a->to < b->from)
        return true;
    return a->to == b->from && a->from < b->from &&
           may_touch(sh, b->from, x, y);
}

/* The first of lives, which do not overlap, that does not end before t. */
static int first_until(const plan_lives *l, int t)
{
    int lo = 0, hi = l->n;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (l->at[mid].to < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Can no life of x, and none of y, lie in one of the other? */
static bool are_apart(const sharing *sh, storage *x, storage *y)
{
    const plan_lives *all = all_lives(sh->pm, x);
    const plan_lives *few = all_lives(sh->pm, y);

    if (few->n > all->n)
        return are_apart(sh, y, x);
    for (int j = 0; j < few->n; j++) {
        const plan_life *b = &few->at[j];

        for (int i = first_until(all, b->from);
             i < all->n && all->at[i].from <= b->to; i++)
            if (!life_ends_before(sh, &all->at[i], b, x, y) &&
                !life_ends_before(sh, b, &all->at[i], y, x))
                return false;
    }
    return true;
}

static bool can_share(const sharing *sh, storage *x, storage *y)
{
    return x->bytes == y->bytes && !x->fixed && !y->fixed &&
           (x->output < 0 || y->output < 0) && (x->param < 0 || y->param < 0) &&
           are_apart(sh, x, y);
}

static bool try_share(const sharing *sh, storage *x, storage *y)
{
    x = storage_of(x);
    y = storage_of(y);
    if (x == y)
        return true;
    if (!can_share(sh, x, y))
        return false;
    plan_unite(sh->pm, x, y);
    return true;
}

static void share_copies(const sharing *sh)
{
    plan_mem *pm = sh->pm;

    /* inner loops come first in no order that time gives: twice does it */
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < pm->copies.n; i++) {
            hlo_inst *in = pm->copies.at[i];

            if (home_of(in)->at[0]->bytes)
                try_share(sh, home_of(in->arg[0])->at[0], home_of(in)->at[0]);
        }
}

/* A kernel that is the last to read a value may write a result of the same size
 * over it, if it reads every element where it writes it. */
static void share_dying(const sharing *sh, hlo_inst *in)
{
    const plan_home *p = home_of(in);

    for (int o = 0; o < p->n; o++)
        for (int k = 0; k < in->narg; k++) {
            const plan_home *x = home_of(in->arg[k]);

            if (x->at[0]->life.at[x->life[0]].to == p->time &&
                p->at[o]->bytes && try_share(sh, x->at[0], p->at[o]))
                break;
        }
}

/* A parameter that is given away may be an output's memory. */
static void give(const sharing *sh, int64_t param, storage *out)
{
    hlo_inst *in = sh->pm->m->entry->param[param];
    storage *p = storage_of(home_of(in)->at[0]);

    p->fixed = false;
    if (!try_share(sh, out, p))
        p->fixed = true;
}

static void donate(const sharing *sh)
{
    const hlo_module *m = sh->pm->m;
    int nout = home_of(m->entry->root)->n;

    for (int i = 0; i < m->nalias; i++)
        if (m->alias[i].output_index < nout)
            give(sh, m->alias[i].param,
                 plan_output_at(sh->pm, m->alias[i].output_index));
    for (int p = 0; m->donor && p < m->entry->nparam; p++)
        for (int o = 0; m->donor[p] && o < nout; o++) {
            storage *s = storage_of(home_of(m->entry->param[p])->at[0]);
            const sd_shape *x = m->entry->param[p]->shape;

            if (s->output >= 0)
                break;
            if (plan_output_at(sh->pm, o)->param < 0 &&
                plan_output_at(sh->pm, o)->bytes == sd_shape_bytes(x))
                give(sh, p, plan_output_at(sh->pm, o));
        }
}

/* Values that share memory must not live at the same time; what had to share
 * was put there without asking, so this is asked of all. */
static sd_status check_lives(plan_mem *pm)
{
    for (int i = 0; i < pm->all.n; i++) {
        storage *s = pm->all.at[i];
        const plan_lives *l;
        int to = -2;

        if (s->into)
            continue;
        l = all_lives(pm, s);
        for (int j = 0; j < l->n && !s->fixed; j++) {
            if (l->at[j].from < to)
                return sd_error(SD_INTERNAL,
                                "%s: two values at once in one "
                                "place, at step %d",
                                pm->m->name, l->at[j].from);
            to = SD_MAX(to, l->at[j].to);
        }
    }
    return NULL;
}

static void note_steps(const hlo_comp *c, hlo_inst **step)
{
    hlo_for_each_inst(in, c) {
        const plan_home *p = home_of(in);

        if (in->op == HLO_WHILE || in->op == HLO_CONDITIONAL)
            for (int i = 0; i < in->ncomp; i++)
                note_steps(in->comp[i], step);
        else if (p && (in->op == HLO_FUSION || in->op == HLO_COPY ||
                       plan_addend_of(in) >= 0))
            step[p->time] = in;
    }
}

static int largest_kernel(const sharing *sh)
{
    int n = 0;

    for (int i = 0; i <= sh->pm->time; i++)
        if (sh->step[i] && home_of(sh->step[i])->kernel)
            n = SD_MAX(n, home_of(sh->step[i])->kernel->nnode);
    return n;
}

/* ---- all ---- */

sd_status plan_share(plan_mem *pm)
{
    sharing sh = {.pm = pm};

    sh.step = sd_arena_array(pm->a, hlo_inst *, pm->time + 1);
    note_steps(pm->m->entry, sh.step);
    sh.needs = sd_arena_array(pm->a, bool, largest_kernel(&sh) + 1);
    share_copies(&sh);
    donate(&sh);
    for (int t = 0; t <= pm->time; t++)
        if (sh.step[t] && sh.step[t]->op != HLO_COPY)
            share_dying(&sh, sh.step[t]);
    return check_lives(pm);
}
