/* Loops.  An element of the carry is
 *   dead       when neither the condition, nor the result, nor another live
 *              element needs it: it goes;
 *   constant   when the body returns it as it came and it starts as a scalar
 *              constant, or as a large array that is cheaply made from nothing
 *              (JAX takes masks out of scans): uses inside become that;
 *   returned   as it came: uses of the result become the start value;
 *   the same   as one before it, when neither changes and both start as one
 *              value, as what hoist takes out twice: it becomes that.
 * A loop that runs not at all is its start value, one that runs once its
 * body.  Needs: conditions and bodies of one tuple parameter. */
#include "loop.h"

/* ---- elements that do not change ---- */

enum { MOST_MADE = 6, LARGE = 1 << 16 };

/* Cheap operations on iotas and numbers, not deeper than `most`. */
static bool is_from_nothing(const hlo_inst *x, int most)
{
    if (!sd_shape_is_array(x->shape) || most < 0)
        return false;
    if (x->op == HLO_CONSTANT)
        return x->shape->rank == 0;
    if (!(hlo_info(x)->props & HLO_P_CHEAP) ||
        (hlo_info(x)->cls > HLO_C_CONVERT && x->op != HLO_IOTA &&
         x->op != HLO_BROADCAST && x->op != HLO_RESHAPE))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (!is_from_nothing(x->arg[i], most - 1))
            return false;
    return true;
}

static bool is_constant(const hlo_inst *start)
{
    if (start->op == HLO_CONSTANT)
        return start->shape->rank == 0;
    return sd_shape_is_array(start->shape) &&
           sd_shape_count(start->shape) >= LARGE &&
           is_from_nothing(start, MOST_MADE);
}

static hlo_inst *made_again(hlo_comp *c, hlo_inst *before, const hlo_inst *x)
{
    hlo_inst *arg[3] = {0};

    for (int i = 0; i < x->narg; i++)
        arg[i] = made_again(c, before, x->arg[i]);
    return hlo_inst_clone(c, before, x, arg);
}

static bool put_constant(hlo_comp *c, hlo_inst *param, int64_t i,
                         const hlo_inst *value)
{
    bool changed = false;

    for (int k = param->nuse - 1; k >= 0; k--) {
        hlo_inst *u = param->user[k];

        if (!loop_is_element(u, param, i) || u->nuse == 0)
            continue;
        /* the root tuple keeps the element: it stays unchanging */
        bool root_only =
            c->root->op == HLO_TUPLE && u->nuse == 1 && u->user[0] == c->root;

        if (root_only)
            continue;
        hlo_inst *x = made_again(c, u->next, value);

        hlo_replace(u, x);
        if (c->root->op == HLO_TUPLE && i < c->root->narg &&
            c->root->arg[i] == x && c->root != x)
            hlo_set_arg(c->root, (int)i, u);
        changed = true;
    }
    return changed;
}

static bool settle_unchanged(loop *l)
{
    bool changed = false;

    for (int i = 0; i < l->n; i++) {
        hlo_inst *start = l->init->arg[i];

        if (!loop_is_element(l->body->root->arg[i], l->bp, i))
            continue;
        if (is_constant(start)) {
            changed |= put_constant(l->cond, l->cp, i, start);
            changed |= put_constant(l->body, l->bp, i, start);
        }
        for (int k = l->in->nuse - 1; k >= 0; k--) {
            hlo_inst *u = l->in->user[k];

            if (loop_is_element(u, l->in, i) && u->nuse) {
                hlo_replace(u, start);
                changed = true;
            }
        }
    }
    return changed;
}

static bool put_element(hlo_inst *param, int64_t i, int64_t from)
{
    bool changed = false;

    for (int k = param->nuse - 1; k >= 0; k--) {
        hlo_inst *u = param->user[k];
        hlo_at p = {u->parent, u, u};

        if (!loop_is_element(u, param, i) || u->nuse == 0)
            continue;
        hlo_replace(u, hlo_make_gte(p, param, from));
        changed = true;
    }
    return changed;
}

static bool join_unchanged(loop *l)
{
    bool changed = false;

    for (int i = 1; i < l->n; i++)
        for (int k = 0; k < i; k++) {
            hlo_inst **root = l->body->root->arg;

            if (l->init->arg[k] != l->init->arg[i] ||
                !loop_is_element(root[k], l->bp, k) ||
                !loop_is_element(root[i], l->bp, i))
                continue;
            changed |= put_element(l->cp, i, k);
            changed |= put_element(l->bp, i, k);
            break;
        }
    return changed;
}

/* ---- dead elements ---- */

static void mark_elements(const hlo_inst *x, bool *live)
{
    for (int i = 0; i < x->nuse; i++)
        if (x->user[i]->nuse || x->user[i] == x->parent->root)
            live[x->user[i]->u.tuple.index] = true;
}

/* Was it seen in this search? */
static int64_t *is_seen(hlo_inst *x)
{
    return &x->mark;
}

/* What x is made from. */
static void mark_needs(sd_arena *a, hlo_inst *x, const hlo_inst *param,
                       bool *live, bool *more)
{
    sd_vec(hlo_inst *) stack = {0};

    *sd_push(a, &stack) = x;
    while (stack.n) {
        hlo_inst *y = stack.at[--stack.n];

        if (*is_seen(y))
            continue;
        *is_seen(y) = true;
        if (y->op == HLO_GET_TUPLE_ELEMENT && y->arg[0] == param &&
            !live[y->u.tuple.index]) {
            live[y->u.tuple.index] = true;
            *more = true;
        }
        for (int i = 0; i < y->narg; i++)
            *sd_push(a, &stack) = y->arg[i];
    }
}

static void find_live(sd_arena *a, const loop *l, bool *live)
{
    bool *done = sd_arena_array(a, bool, l->n ? l->n : 1);
    bool more = true;

    mark_elements(l->in, live);
    mark_elements(l->cp, live);
    hlo_for_each_inst(x, l->body)
        *is_seen(x) = false;
    hlo_for_each_inst(x, l->body)
        if (x->op != HLO_PARAMETER && hlo_has_effect(x))
            mark_needs(a, x, l->bp, live, &more);
    while (more) {
        more = false;
        for (int i = 0; i < l->n; i++)
            if (live[i] && !done[i]) {
                done[i] = true;
                mark_needs(a, l->body->root->arg[i], l->bp, live, &more);
            }
    }
}

static void renumber(hlo_inst *x, const int *to)
{
    hlo_for_each_user(u, x) {
        int k = to[u->u.tuple.index];

        u->u.tuple.index = k < 0 ? 0 : k; /* dead ones have no user left */
        u->shape = x->shape->elem[u->u.tuple.index];
    }
}

static hlo_inst *keep_elements(hlo_inst *tuple, hlo_inst *before, const int *to,
                               int n)
{
    hlo_inst **arg =
        sd_arena_array(tuple->parent->module->arena, hlo_inst *, n ? n : 1);
    hlo_at p = {tuple->parent, before, tuple};

    for (int i = 0; i < tuple->narg; i++)
        if (to[i] >= 0)
            arg[to[i]] = tuple->arg[i];
    return hlo_make_tuple(p, n, arg);
}

static void drop_elements(loop *l, const int *to, int n)
{
    hlo_inst *root = l->body->root, *r = keep_elements(root, NULL, to, n);
    hlo_inst *init = keep_elements(l->init, l->in, to, n);

    hlo_set_root(l->body, r);
    hlo_remove(root);
    /* what only dead elements were made from must not read the old tuple */
    l->bp->shape = l->cp->shape = r->shape;
    hlo_set_arg(l->in, 0, init);
    l->in->shape = init->shape;
    renumber(l->bp, to);
    renumber(l->cp, to);
    renumber(l->in, to);
}

static bool drop_dead(sd_arena *a, loop *l)
{
    bool *live = sd_arena_array(a, bool, l->n ? l->n : 1);
    int *to = sd_arena_array(a, int, l->n ? l->n : 1), n = 0;
    hlo_inst *root = l->body->root;

    if (!loop_only_elements(l->in) || !loop_only_elements(l->cp) ||
        !loop_only_elements(l->bp) || l->in == l->in->parent->root ||
        root->nuse || l->bp == root)
        return false;
    find_live(a, l, live);
    for (int i = 0; i < l->n; i++)
        to[i] = live[i] ? n++ : -1;
    if (n == l->n || n == 0)
        return false;
    /* cut the dead chains first, so that no dead element is read any more */
    for (int i = 0; i < l->n; i++)
        if (!live[i] && !loop_is_element(root->arg[i], l->bp, i)) {
            hlo_at p = {l->body, root, root};

            hlo_set_arg(root, i, hlo_make_gte(p, l->bp, i));
        }
    hlo_comp_sweep(l->body); /* chains that end in elements that go */
    hlo_comp_sweep(l->cond);
    drop_elements(l, to, n);
    hlo_comp_sweep(l->body);
    hlo_comp_sweep(l->cond);
    return true;
}

/* ---- trip count 0 and 1 ---- */

static hlo_inst *unrolled(const loop *l)
{
    int64_t v, turns = hlo_turns(l->in);

    if (pass_int_const(l->cond->root, &v) && v == 0)
        return l->in->arg[0];
    if (turns != 0 && turns != 1)
        return NULL;
    hlo_for_each_inst(x, l->cond)
        if (x->op != HLO_PARAMETER && hlo_has_effect(x))
            return NULL;
    return turns ? pass_splice(pass_at(l->in), l->body, l->in->arg)
                 : l->in->arg[0];
}

bool hlo_opt_while(hlo_module *m)
{
    sd_arena *a = sd_arena_create();
    bool changed = false;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            hlo_inst *to;
            loop l;

            if (!loop_read(in, &l))
                continue;
            if ((to = unrolled(&l))) {
                pass_replace(in, to);
                changed = true;
                continue;
            }
            changed |= settle_unchanged(&l);
            changed |= join_unchanged(&l);
            changed |= drop_dead(a, &l);
        }
    sd_arena_destroy(a);
    return changed;
}
