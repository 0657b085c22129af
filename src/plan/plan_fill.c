/* What a scatter on the host adds to is most often an array of one number.  It
 * needs no kernel before it: whoever has a tile of the scatter writes the
 * number to the tile's places, and then finds them in its cache.  So it is
 * where the places of a tile lie one after the other, as a range of places or
 * the table of a batch does. */
#include "plan_whole.h"

int64_t plan_places_of_position(const plan_kernel *k, int axis)
{
    const plan_node *n = plan_scatter_of(k);
    const hlo_gather *g = n->in->u.gather;
    const sd_shape *s = n->in->shape;
    int64_t count = k->slot[n->slot].count, extent = k->axis[axis].extent, own;
    int batch = g->operand_batch.n;

    if (k->ranges && axis == 0)
        return g->index_map.n == 1 && g->index_map.at[0] == 0
                   ? count / s->dim[0] * n->guard[n->nguard - 1].hi
                   : 0;
    if (!plan_expr_stride(n->off, axis, &own)) /* indices differ there */
        own = batch && extent == s->dim[0] ? count / extent : 0;
    return own * extent == count ? own : 0;
}

bool plan_tiles_own_places(const plan_kernel *k)
{
    int cut = 0;

    for (int a = 0; a < k->nouter; a++)
        if (k->axis[a].grid && (cut++ || !plan_places_of_position(k, a)))
            return false;
    return true;
}

/* Are enough threads there to fill them, or are they few? */
static bool is_quick(const plan_kernel *k, const device_desc *dev)
{
    const plan_slot *s = &k->slot[plan_scatter_of(k)->slot];

    return k->tiles >= dev->units ||
           (size_t)s->count * sd_dtype_bytes(s->dtype) <= dev->cache_bytes;
}

/* The number that fusion's scatter begins with, if nobody else reads the array
 * of it. */
static const hlo_inst *number_of(const hlo_inst *fusion)
{
    const hlo_inst *x = fusion->comp[0]->root->arg[0], *fill;

    if (x->op != HLO_PARAMETER || x->nuse != 1)
        return NULL;
    x = fusion->arg[x->u.param.index];
    if (x->op == HLO_COPY && x->nuse == 1) /* for the update in place */
        x = x->arg[0];
    if (x->op != HLO_FUSION || x->nuse != 1 || x == x->parent->root)
        return NULL;
    fill = x->comp[0]->root;
    return fill->op == HLO_BROADCAST && fill->arg[0]->op == HLO_CONSTANT &&
                   fill->arg[0]->shape->rank == 0
               ? fill
               : NULL;
}

/* fusion without the operand that its scatter begins with, which it makes. */
static hlo_inst *fill_inside(hlo_inst *fusion, const hlo_inst *fill)
{
    hlo_comp *c = fusion->comp[0];
    hlo_inst *old = c->root->arg[0], *x, *to;
    hlo_inst **arg = sd_arena_array(c->module->arena, hlo_inst *, fusion->narg);
    int64_t at = old->u.param.index;
    hlo_inst *was = fusion->arg[at], *copied;
    int n = 0;

    x = hlo_inst_clone(c, c->root, fill->arg[0], NULL);
    x = hlo_inst_clone(c, c->root, fill, &x);
    hlo_replace(old, x);
    hlo_remove(old);
    for (int i = 0; i < fusion->narg; i++)
        if (i != at)
            arg[n++] = fusion->arg[i];
    to = hlo_inst_create(fusion->parent, fusion, HLO_FUSION, fusion->shape, n,
                         arg);
    to->u.fusion = fusion->u.fusion;
    hlo_set_comps(to, 1, fusion->comp);
    hlo_take_source(to, fusion);
    hlo_replace(fusion, to);
    hlo_remove(fusion);
    if (was->op == HLO_COPY) {
        copied = was->arg[0];
        hlo_remove(was);
        was = copied;
    }
    c = was->comp[0];
    hlo_remove(was);
    if (!c->ncaller)
        hlo_comp_remove(c);
    return to;
}

sd_status plan_tile_filled(plan_kernel **k, hlo_inst **fusion,
                           const device_desc *dev)
{
    const hlo_inst *fill = number_of(*fusion);
    sd_status st;

    plan_tile(*k, dev);
    if (!fill || !plan_tiles_own_places(*k) || !is_quick(*k, dev))
        return NULL;
    *fusion = fill_inside(*fusion, fill);
    if ((st = plan_lower((*k)->arena, *fusion, k)))
        return st;
    plan_tile(*k, dev);
    return NULL;
}
