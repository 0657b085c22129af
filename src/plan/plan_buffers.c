/* Lives and sharing.  Time is the schedule flattened: a loop's condition and
 * body stand between its begin and its end.  A storage is memory; it has the
 * lives of the values that are kept there.  Storages that must be one are
 * united while walking; then every copy tries to be none, parameters that are
 * given away try to be outputs, and what dies in a step leaves its memory to
 * what the step makes.  What is left gets places (plan_pack.c). */
#include "plan_mem.h"

int plan_leaf_count(const sd_shape *s)
{
    int n = 0;

    if (s->dtype != SD_TUPLE)
        return 1;
    for (int i = 0; i < s->nelem; i++)
        n += plan_leaf_count(s->elem[i]);
    return n;
}

static int leaf_start(const sd_shape *s, int64_t index)
{
    int n = 0;

    for (int64_t i = 0; i < index; i++)
        n += plan_leaf_count(s->elem[i]);
    return n;
}

static int leaf_bytes(const sd_shape *s, uint64_t *out)
{
    int n = 0;

    if (s->dtype != SD_TUPLE) {
        *out = sd_shape_bytes(s);
        return 1;
    }
    for (int i = 0; i < s->nelem; i++)
        n += leaf_bytes(s->elem[i], out + n);
    return n;
}

/* ---- values and lives ---- */

static storage *storage_new(plan_mem *pm, uint64_t bytes)
{
    storage *s = sd_arena_new(pm->a, storage);

    s->bytes = bytes;
    s->param = s->output = -1;
    *sd_push(pm->a, &pm->all) = s;
    return s;
}

static plan_home *home_new(plan_mem *pm, hlo_inst *in)
{
    plan_home *p = sd_arena_new(pm->a, plan_home);

    p->n = plan_leaf_count(in->shape);
    p->at = sd_arena_array(pm->a, storage *, p->n + 1);
    p->life = sd_arena_array(pm->a, int, p->n + 1);
    p->time = p->until = pm->time;
    in->tag = p;
    return p;
}

/* While walking, a value is (its own storage, number of the life in it): own
 * storages are united only afterwards, so numbers stay. */
static void begin_life(plan_mem *pm, plan_home *p, int leaf, storage *s,
                       int from)
{
    p->at[leaf] = s;
    p->life[leaf] = s->life.n;
    *sd_push(pm->a, &s->life) = (plan_life){from, from};
}

static void extend(const plan_home *p, int leaf, int to)
{
    plan_life *l = &p->at[leaf]->life.at[p->life[leaf]];

    l->to = SD_MAX(l->to, to);
}

static void extend_all(const plan_home *p, int to)
{
    for (int i = 0; i < p->n; i++)
        extend(p, i, to);
}

static void fresh(plan_mem *pm, hlo_inst *in, plan_home *p, int from)
{
    uint64_t *bytes = sd_arena_array(pm->a, uint64_t, p->n + 1);

    leaf_bytes(in->shape, bytes);
    for (int i = 0; i < p->n; i++)
        begin_life(pm, p, i, storage_new(pm, bytes[i]), from);
}

/* ---- the walk ---- */

typedef struct {
    storage *x, *y;
} must_pair;
typedef sd_vec(must_pair) must_list;

static void walk(plan_mem *pm, hlo_comp *c, must_list *must);

static void must_share(plan_mem *pm, must_list *must, storage *x, storage *y)
{
    if (x->bytes) /* a token's place is nowhere */
        *sd_push(pm->a, must) = (must_pair){x, y};
}

/* Leaves of the state that no iteration changes: the same value all along. */
static bool *unchanged(plan_mem *pm, const hlo_inst *in, int n)
{
    bool *is = sd_arena_array(pm->a, bool, n + 1);
    const hlo_comp *body = in->comp[1];
    int at = 0;

    if (in->shape->dtype != SD_TUPLE || body->root->op != HLO_TUPLE)
        return is;
    for (int i = 0; i < in->shape->nelem; i++) {
        bool same = plan_state_of(body, body->root->arg[i]) == i;

        for (int j = plan_leaf_count(in->shape->elem[i]); j > 0; j--)
            is[at++] = same;
    }
    return is;
}

static void walk_while(plan_mem *pm, hlo_inst *in, must_list *must)
{
    plan_home *p = home_new(pm, in), *init = home_of(in->arg[0]);
    plan_home *cp, *bp, *root;
    bool *same = unchanged(pm, in, p->n);
    int begin = pm->time;

    extend_all(init, begin);
    cp = home_new(pm, in->comp[0]->param[0]);
    bp = home_new(pm, in->comp[1]->param[0]);
    for (int i = 0; i < p->n; i++) {
        if (same[i]) {
            bp->at[i] = init->at[i];
            bp->life[i] = init->life[i];
        } else {
            begin_life(pm, bp, i, init->at[i], begin);
        }
        cp->at[i] = bp->at[i];
        cp->life[i] = bp->life[i];
    }
    walk(pm, in->comp[0], must);
    pm->time++;
    extend_all(home_of(in->comp[0]->root), pm->time);
    extend_all(bp, pm->time); /* what the body does not read it may keep */
    bp->time = pm->time;
    walk(pm, in->comp[1], must);
    pm->time++;
    root = home_of(in->comp[1]->root);
    extend_all(root, pm->time);
    for (int i = 0; i < p->n; i++) {
        if (root->at[i] != init->at[i])
            must_share(pm, must, init->at[i], root->at[i]);
        if (same[i]) {
            p->at[i] = init->at[i];
            p->life[i] = init->life[i];
        } else {
            begin_life(pm, p, i, init->at[i], pm->time);
        }
    }
    p->until = pm->time;
}

static void walk_conditional(plan_mem *pm, hlo_inst *in, must_list *must)
{
    plan_home *p = home_new(pm, in);

    extend_all(home_of(in->arg[0]), pm->time);
    for (int b = 0; b < in->ncomp; b++) {
        hlo_comp *c = in->comp[b];

        pm->time++;
        if (c->nparam) { /* its operand's memory under its operand's life */
            plan_home *q = home_new(pm, c->param[0]);
            plan_home *arg = home_of(in->arg[1 + b]);

            memcpy(q->at, arg->at, (size_t)q->n * sizeof *q->at);
            memcpy(q->life, arg->life, (size_t)q->n * sizeof *q->life);
            extend_all(q, pm->time);
        }
        walk(pm, c, must);
        pm->time++;
        extend_all(home_of(c->root), pm->time);
    }
    pm->time++;
    fresh(pm, in, p, pm->time);
    for (int b = 0; b < in->ncomp; b++)
        for (int i = 0; i < p->n; i++)
            must_share(pm, must, p->at[i], home_of(in->comp[b]->root)->at[i]);
    p->until = pm->time;
}

/* Fusions whose result lies where an operand lay. */
static void walk_fusion(plan_mem *pm, hlo_inst *in, must_list *must)
{
    plan_home *p = home_new(pm, in);
    const hlo_inst *root = in->comp[0]->root;
    int n = root->op == HLO_SCATTER                ? hlo_ninput(root)
            : root->op == HLO_DYNAMIC_UPDATE_SLICE ? 1
                                                   : 0;

    p->kernel = sd_map_get(pm->kernels, sd_key(in));
    fresh(pm, in, p, pm->time);
    if (p->kernel && p->kernel->nslot > in->narg + p->n &&
        !(p->kernel->blocks && p->kernel->blocks->zeros)) {
        const plan_slot *s = &p->kernel->slot[in->narg + p->n];

        p->work = storage_new(pm, (uint64_t)s->count);
        *sd_push(pm->a, &p->work->life) = (plan_life){pm->time, pm->time};
    }
    for (int i = 0; i < n; i++) {
        const hlo_inst *x = root->arg[i];
        plan_home *old;

        if (x->op != HLO_PARAMETER)
            continue;
        old = home_of(in->arg[x->u.param.index]);
        must_share(pm, must, old->at[0], p->at[i]);
    }
}

/* Results that the call says it writes over an operand: see plan_alias. */
static void walk_custom(plan_mem *pm, hlo_inst *in, must_list *must)
{
    const hlo_custom *u = in->u.custom;
    plan_home *p = home_new(pm, in);

    fresh(pm, in, p, pm->time);
    for (int i = 0; i < u->nalias; i++) {
        int64_t out = u->alias[i].out_index.n ? u->alias[i].out_index.at[0] : 0;

        must_share(pm, must, home_of(in->arg[u->alias[i].operand])->at[0],
                   p->at[out]);
    }
}

static void same_place(plan_mem *pm, hlo_inst *in, int from_leaf)
{
    plan_home *p = home_new(pm, in), *x = home_of(in->arg[0]);

    memcpy(p->at, x->at + from_leaf, (size_t)p->n * sizeof *p->at);
    memcpy(p->life, x->life + from_leaf, (size_t)p->n * sizeof *p->life);
}

/* What is on its way to the host stays where it is; what came from there lies
 * where the receive put it.  Both tuples are (data, context, token). */
static void walk_send(plan_mem *pm, hlo_inst *in)
{
    plan_home *p = home_new(pm, in), *x = home_of(in->arg[0]);

    fresh(pm, in, p, pm->time);
    p->at[0] = x->at[0];
    p->life[0] = x->life[0];
}

static void walk_recv_done(plan_mem *pm, hlo_inst *in)
{
    plan_home *p = home_new(pm, in), *x = home_of(in->arg[0]);

    for (int i = 0; i < 2; i++) {
        p->at[i] = x->at[2 * i];
        p->life[i] = x->life[2 * i];
    }
}

static void walk_tuple(plan_mem *pm, hlo_inst *in)
{
    plan_home *p = home_new(pm, in);
    int n = 0;

    for (int k = 0; k < in->narg; k++) {
        plan_home *x = home_of(in->arg[k]);

        for (int i = 0; i < x->n; i++, n++) {
            p->at[n] = x->at[i];
            p->life[n] = x->life[i];
        }
    }
}

static void walk_inst(plan_mem *pm, hlo_inst *in, must_list *must)
{
    plan_home *p;

    if (plan_is_peers(in)) { /* each member has its own part */
        same_place(pm, in, 0);
        return;
    }
    switch (in->op) {
    case HLO_PARAMETER:
        return; /* placed by the caller */
    case HLO_TUPLE:
        walk_tuple(pm, in);
        return;
    case HLO_GET_TUPLE_ELEMENT:
        same_place(pm, in, leaf_start(in->arg[0]->shape, in->u.tuple.index));
        return;
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_OPT_BARRIER:
        same_place(pm, in, 0);
        return;
    case HLO_RECV_DONE:
        walk_recv_done(pm, in);
        return;
    case HLO_WHILE:
        walk_while(pm, in, must);
        return;
    case HLO_CONDITIONAL:
        walk_conditional(pm, in, must);
        return;
    default:
        break;
    }
    for (int k = 0; k < in->narg; k++)
        extend_all(home_of(in->arg[k]), pm->time);
    if (in->op == HLO_FUSION) {
        walk_fusion(pm, in, must);
        return;
    }
    if (in->op == HLO_SEND) {
        walk_send(pm, in);
        return;
    }
    if (in->op == HLO_CUSTOM_CALL) {
        walk_custom(pm, in, must);
        return;
    }
    p = home_new(pm, in);
    fresh(pm, in, p, pm->time);
    if (in->op == HLO_CONSTANT) {
        p->at[0]->constant = in;
        p->at[0]->fixed = true;
    }
    if (in->op == HLO_COPY)
        *sd_push(pm->a, &pm->copies) = in;
}

/* Until now what that sum was made in was nobody else's: others would wait for
 * it.  Its operand is, too, if nobody else reads it. */
static void keep_sum(const plan_mem *pm, const hlo_inst *sum)
{
    const hlo_inst *f = sum->arg[0];

    extend_all(home_of(f), pm->time - 1);
    for (int k = 0; k < f->narg; k++) {
        const hlo_inst *x = f->arg[k];

        if (plan_sum_of(x, pm->p->dev) != sum)
            continue;
        extend_all(home_of(x), pm->time - 1);
        for (x = x->arg[0]; x->nuse == 1 && x->op == HLO_RESHAPE;)
            x = x->arg[0];
        if (x->nuse == 1 && x->op == HLO_FUSION && !plan_is_in_place(x))
            extend_all(home_of(x), pm->time - 1);
    }
}

static void walk(plan_mem *pm, hlo_comp *c, must_list *must)
{
    const hlo_inst *last = NULL;

    hlo_for_each_inst(in, c) {
        pm->time++;
        if (in->op == HLO_ALL_TO_ALL && plan_sum_of(in, pm->p->dev)) {
            if (last)
                keep_sum(pm, last);
            last = plan_sum_of(in, pm->p->dev);
        }
        walk_inst(pm, in, must);
    }
}

/* ---- all ---- */

static void begin(plan_mem *pm)
{
    const hlo_comp *c = pm->m->entry;

    for (int i = 0; i < c->nparam; i++) {
        plan_home *p = home_new(pm, c->param[i]);

        fresh(pm, c->param[i], p, -1);
        p->at[0]->param = i;
        p->at[0]->fixed = true;
    }
}

sd_status plan_buffers(plan_mem *pm)
{
    must_list must = {0};
    plan_home *root;
    sd_status st;
    int nout;

    begin(pm);
    walk(pm, pm->m->entry, &must);
    pm->time++;
    root = home_of(pm->m->entry->root);
    nout = root->n;
    extend_all(root, PLAN_FOREVER);
    for (int i = 0; i < must.n; i++)
        plan_unite(pm, must.at[i].x, must.at[i].y);
    for (int i = 0; i < nout; i++)
        storage_of(root->at[i])->output = i;
    if ((st = plan_share(pm)))
        return st;
    pm->spared = sd_map_create(pm->a);
    plan_spare_copies(pm, pm->m->entry);
    plan_pack(pm);
    return NULL;
}
