/* What emitters count on. */
#include "plan.h"

static sd_status bad(const plan_kernel *k, const plan_node *n, const char *what)
{
    return sd_error(SD_INTERNAL, "%s: n%d: %s", k->name, n ? n->id : -1, what);
}

static sd_status check_expr(const plan_kernel *k, const plan_node *n,
                            const plan_expr *e)
{
    sd_status st;

    if (e->kind == PX_AXIS &&
        (e->axis >= k->naxis || e->hi != k->axis[e->axis].extent - 1))
        return bad(k, n, "an expression of an axis that is not there");
    if (e->kind == PX_NODE &&
        (e->node->id >= n->id || k->node[e->node->id] != e->node))
        return bad(k, n, "an expression of a later node");
    if ((e->kind == PX_DIV || e->kind == PX_MOD) && e->c < 1)
        return bad(k, n, "division by less than one");
    if (e->a && (st = check_expr(k, n, e->a)))
        return st;
    return e->b ? check_expr(k, n, e->b) : NULL;
}

static sd_status check_node(const plan_kernel *k, const plan_node *n)
{
    uint64_t outer = (1ull << k->nouter) - 1;
    bool sink = n->kind == PN_STORE || n->kind == PN_SCATTER;
    sd_status st;

    for (int i = 0; i < n->narg; i++)
        if (n->arg[i]->id >= n->id || k->node[n->arg[i]->id] != n->arg[i])
            return bad(k, n, "an operand that is not before it");
    for (int i = 0; i < n->nguard; i++)
        if ((st = check_expr(k, n, n->guard[i].e)))
            return st;
    if (n->off && (st = check_expr(k, n, n->off)))
        return st;
    if ((n->kind == PN_LOAD || sink) &&
        (n->slot < 0 || n->slot >= k->nslot || !n->off))
        return bad(k, n, "no such slot, or no place in it");
    if (n->kind == PN_LOAD && n->nguard == 0 &&
        (n->off->lo < 0 || n->off->hi >= k->slot[n->slot].count))
        return bad(k, n, "reads outside its slot");
    if (n->kind == PN_CONTRACT &&
        (n->narg != 2 || !n->over || n->arg[0]->dtype != n->dtype ||
         n->arg[1]->dtype != n->dtype))
        return bad(k, n, "a product of other types, or over nothing");
    if (n->stage < 0 || n->stage > k->nstage)
        return bad(k, n, "no such stage");
    if (plan_is_sum(n) || sink) {
        if (n->stage >= k->nstage ||
            k->stage[n->stage].axes != ((n->varies | n->over) & ~outer))
            return bad(k, n, "not the axes of its stage");
    }
    if (plan_is_sum(n) && n->varies & ~outer)
        return bad(k, n, "a reduction that varies on an inner axis");
    return NULL;
}

/* The parts that items get are equal and together the whole. */
static sd_status check_call(const plan_kernel *k, const hlo_call *c)
{
    if (c->items < 1 || c->nint < 0 || c->nint > HLO_CALL_INTS)
        return bad(k, NULL, "a call of no items, or of too many numbers");
    for (int i = 0; !c->whole && i < k->nslot; i++)
        if (k->slot[i].count % c->items)
            return bad(k, NULL, "a call's items do not divide a slot");
    return NULL;
}

static sd_status check_kernel(const plan_kernel *k)
{
    bool whole = k->sort || k->call;
    int lanes = 0;
    int64_t tiles = 1;
    sd_status st;

    if (k->call && (st = check_call(k, k->call)))
        return st;
    for (int i = 0; i < k->naxis; i++) {
        const plan_axis *x = &k->axis[i];

        lanes += x->place == PLAN_LANE;
        if (x->outer != (i < k->nouter))
            return bad(k, NULL, "outer axes do not come first");
        if (x->extent < 1 || x->tile < 1 || (x->grid && !x->outer))
            return bad(k, NULL, "an axis without extent or tile");
        if (x->grid)
            tiles *= (x->extent + x->tile - 1) / x->tile;
    }
    if (!whole && lanes != 1)
        return bad(k, NULL, "not one LANE axis");
    if (!whole && tiles != k->tiles)
        return bad(k, NULL, "tiles are miscounted");
    for (int i = 0; i < k->nnode; i++) {
        if (k->node[i]->id != i)
            return bad(k, k->node[i], "not its own number");
        if ((st = check_node(k, k->node[i])))
            return st;
    }
    return NULL;
}

sd_status plan_verify(const plan *p)
{
    sd_status st;

    for (int i = 0; i < p->nkernel; i++)
        if ((st = check_kernel(p->kernel[i])))
            return st;
    if (p->program->nkernel != p->nkernel)
        return sd_error(SD_INTERNAL, "%d kernels, %d of them in the program",
                        p->nkernel, p->program->nkernel);
    return NULL;
}
