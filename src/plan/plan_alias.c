/* What must lie in the same memory, said with copies.  Every value that has to
 * end in a fixed place (an output, a loop's state, a branch's result) or that
 * is updated in place goes through a `copy`; plan_buffers.c then gives source
 * and copy one place wherever their lives allow, and the copy is no step.
 * So nothing here has to know lives, and what is wrong to share is copied. */
#include "plan_mem.h"

static hlo_inst *copy_of(hlo_comp *c, hlo_inst *before, hlo_inst *x)
{
    hlo_inst *p = hlo_inst_create(c, before, HLO_COPY, x->shape, 1, &x);

    hlo_take_source(p, x);
    return p;
}

/* The array leaves of x, tuples taken apart; nested tuples rebuilt. */
static hlo_inst *copy_leaves(hlo_comp *c, hlo_inst *before, hlo_inst *x)
{
    hlo_inst **e;
    int n = x->shape->nelem;

    if (x->shape->dtype == SD_TOKEN) /* a value of its own, as a copy is */
        return hlo_inst_create(c, before, HLO_AFTER_ALL, x->shape, 1, &x);
    if (x->shape->dtype != SD_TUPLE)
        return copy_of(c, before, x);
    e = sd_arena_array(c->module->arena, hlo_inst *, n + 1);
    for (int i = 0; i < n; i++) {
        hlo_inst *el = x->op == HLO_TUPLE
                           ? x->arg[i]
                           : hlo_make_gte((hlo_at){c, before, x}, x, i);

        e[i] = copy_leaves(c, before, el);
    }
    return hlo_make_tuple((hlo_at){c, before, x}, n, e);
}

/* ---- loops ---- */

/* The element of the body's parameter that x is, or -1. */
int64_t plan_state_of(const hlo_comp *body, const hlo_inst *x)
{
    while (x->op == HLO_RESHAPE || x->op == HLO_BITCAST)
        x = x->arg[0];
    if (x->op == HLO_GET_TUPLE_ELEMENT && x->arg[0] == body->param[0])
        return x->u.tuple.index;
    return x == body->param[0] ? 0 : -1;
}

/* The body's results go to the places its parameter had.  What stays where it
 * was needs no copy; what moves to another place is first put aside, since
 * all moves happen at once. */
static void copy_body(hlo_comp *c)
{
    hlo_inst *r = c->root, **e;
    int n = r->shape->nelem;

    if (r->shape->dtype != SD_TUPLE) {
        if (r != c->param[0])
            hlo_set_root(c, copy_of(c, NULL, r));
        return;
    }
    e = sd_arena_array(c->module->arena, hlo_inst *, n + 1);
    for (int i = 0; i < n; i++)
        e[i] = r->op == HLO_TUPLE ? r->arg[i]
                                  : hlo_make_gte((hlo_at){c, NULL, r}, r, i);
    for (int i = 0; i < n; i++) {
        int64_t s = plan_state_of(c, e[i]);

        if (s >= 0 && s != i && e[i]->shape->dtype != SD_TUPLE)
            e[i] = copy_of(c, NULL, e[i]);
    }
    for (int i = 0; i < n; i++)
        if (plan_state_of(c, e[i]) != i)
            e[i] = copy_leaves(c, NULL, e[i]);
    hlo_set_root(c, hlo_make_tuple((hlo_at){c, NULL, r}, n, e));
}

/* What no iteration changes is read where it is: its memory is not written. */
static void copy_init(hlo_comp *c, hlo_inst *in)
{
    const hlo_comp *body = in->comp[1];
    hlo_inst *x = in->arg[0], **e;
    int n = x->shape->nelem;

    if (x->shape->dtype != SD_TUPLE || body->root->op != HLO_TUPLE) {
        hlo_set_arg(in, 0, copy_leaves(c, in, x));
        return;
    }
    e = sd_arena_array(c->module->arena, hlo_inst *, n + 1);
    for (int i = 0; i < n; i++) {
        e[i] = x->op == HLO_TUPLE ? x->arg[i]
                                  : hlo_make_gte((hlo_at){c, in, x}, x, i);
        if (plan_state_of(body, body->root->arg[i]) != i)
            e[i] = copy_leaves(c, in, e[i]);
    }
    hlo_set_arg(in, 0, hlo_make_tuple((hlo_at){c, in, x}, n, e));
}

/* ---- one computation ---- */

static void own_computations(hlo_inst *in)
{
    hlo_module *m = in->parent->module;

    for (int i = 0; i < in->ncomp; i++)
        if (in->comp[i]->mark) {
            hlo_comp *own = hlo_comp_clone(m, in->comp[i], in->comp[i]->name);
            hlo_comp **all = sd_arena_copy(
                m->arena, in->comp, sizeof *in->comp * (size_t)in->ncomp);

            all[i] = own;
            own->mark = 1;
            hlo_set_comps(in, in->ncomp, all);
        } else {
            in->comp[i]->mark = 1;
        }
}

static void alias_comp(hlo_comp *c);

static void alias_inst(hlo_comp *c, hlo_inst *in)
{
    switch (in->op) {
    case HLO_DYNAMIC_UPDATE_SLICE:
        hlo_set_arg(in, 0, copy_of(c, in, in->arg[0]));
        return;
    case HLO_SCATTER:
        for (int i = 0; i < hlo_ninput(in); i++)
            hlo_set_arg(in, i, copy_of(c, in, in->arg[i]));
        return;
    case HLO_CUSTOM_CALL:
        for (int i = 0; i < in->u.custom->nalias; i++) {
            int k = (int)in->u.custom->alias[i].operand;

            hlo_set_arg(in, k, copy_of(c, in, in->arg[k]));
        }
        return;
    case HLO_WHILE:
        own_computations(in);
        copy_init(c, in);
        copy_body(in->comp[1]);
        alias_comp(in->comp[0]);
        alias_comp(in->comp[1]);
        return;
    case HLO_CONDITIONAL:
        own_computations(in);
        for (int i = 0; i < in->ncomp; i++) {
            hlo_comp *b = in->comp[i];

            hlo_set_root(b, copy_leaves(b, NULL, b->root));
            alias_comp(b);
        }
        return;
    default:
        return;
    }
}

static void alias_comp(hlo_comp *c)
{
    hlo_for_each_inst(in, c)
        alias_inst(c, in);
}

/* ---- what no kernel is made for ---- */

/* A reduction of nothing is its initial value. */
static void replace_empty(hlo_comp *c, hlo_inst *in)
{
    hlo_at at = {c, in, in};
    hlo_inst *x = NULL;
    int64_t extent[SD_MAX_RANK];
    int n = plan_inner_extents(in, extent);
    bool empty = false;

    for (int i = 0; i < n; i++)
        empty |= extent[i] == 0;
    if (!empty || in->shape->dtype == SD_TUPLE)
        return;
    x = in->op == HLO_REDUCE ? in->arg[1]
                             : hlo_make_scalar(at, in->shape->dtype, 0);
    hlo_replace(in, hlo_make_broadcast(at, x, in->shape, NULL, 0));
    hlo_remove(in);
}

sd_status plan_alias(hlo_module *m)
{
    hlo_for_each_comp(c, m) {
        c->mark = 0;
        hlo_for_each_inst(in, c)
            if (in->op == HLO_REDUCE || in->op == HLO_DOT ||
                in->op == HLO_CONVOLUTION)
                replace_empty(c, in);
    }
    alias_comp(m->entry);
    hlo_set_root(m->entry, copy_leaves(m->entry, NULL, m->entry->root));
    hlo_for_each_comp(c, m)
        hlo_comp_sweep(c); /* the tuples that were rebuilt */
    return NULL;
}
