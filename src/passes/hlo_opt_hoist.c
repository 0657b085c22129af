/* What a loop would compute anew in each turn goes before it.
 *
 *   invariant   made of constants and of elements of the carry that the body
 *               returns as they came: the same in every turn.  What is dear of
 *               it (a product, a sort, an exponential) is computed once;
 *   in slices   dot(x[t], w), where x and w are invariant and t is whatever
 *               the turn says: all slices of x are multiplied at once, and the
 *               turn takes a slice of the result.  Of an LSTM over 128 steps
 *               128 products of 16 x 256 by 256 x 1024 become one of 2,048
 *               rows, which reads the weights once.
 *
 * The loop then carries the result as an element that no turn changes.  Needs
 * and keeps: conditions and bodies of one tuple parameter each. */
#include "loop.h"

enum { MOST_BYTES = 64 << 20, FEWEST_SLICES = 8, MOST_ROWS = 256 };

/* ---- what the loop carries ---- */

/* The loop carries one more element, of which `start` is the value in every
 * turn; returns what the body reads it by. */
static hlo_inst *carry(loop *l, hlo_inst *start)
{
    sd_arena *a = l->in->parent->module->arena;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, l->n + 1), *root, *element;
    hlo_inst *old = l->body->root;

    for (int i = 0; i < l->n; i++)
        arg[i] = l->init->arg[i];
    arg[l->n] = start;
    l->init = hlo_make_tuple(pass_at(l->in), l->n + 1, arg);
    hlo_set_arg(l->in, 0, l->init);
    l->in->shape = l->cp->shape = l->bp->shape = l->init->shape;
    element = hlo_make_gte((hlo_at){l->body, l->bp->next, start}, l->bp, l->n);
    for (int i = 0; i < l->n; i++)
        arg[i] = old->arg[i];
    arg[l->n++] = element;
    root = hlo_make_tuple((hlo_at){l->body, NULL, old}, l->n, arg);
    hlo_set_root(l->body, root);
    hlo_remove(old);
    return element;
}

/* The tuples are only taken apart, so that they may get another element. */
static bool can_carry(const loop *l)
{
    const hlo_inst *root = l->body->root;

    return loop_only_elements(l->in) && loop_only_elements(l->cp) &&
           loop_only_elements(l->bp) && l->in != l->in->parent->root &&
           !root->nuse && l->bp != root;
}

/* ---- what is the same in every turn (mark: 1) ---- */

static bool is_invariant(const loop *l, const hlo_inst *x)
{
    if (!sd_shape_is_array(x->shape))
        return false;
    if (x->op == HLO_GET_TUPLE_ELEMENT && x->arg[0] == l->bp)
        return loop_is_element(l->body->root->arg[x->u.tuple.index], l->bp,
                               x->u.tuple.index);
    if (x->op == HLO_CONSTANT || x->op == HLO_IOTA)
        return true;
    if (!x->narg || x->op == HLO_CUSTOM_CALL || x->op == HLO_RNG ||
        x->op == HLO_OPT_BARRIER || hlo_has_effect(x))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (!x->arg[i]->mark)
            return false;
    return true;
}

static void mark_invariants(const loop *l)
{
    hlo_for_each_inst(x, l->body)
        x->mark = is_invariant(l, x);
}

/* x, invariant, as it is before the loop.  tag: what was made of it. */
static hlo_inst *outside(const loop *l, hlo_inst *x)
{
    hlo_inst *arg[SD_MAX_RANK + 1], **at = arg;

    if (x->tag)
        return x->tag;
    if (x->op == HLO_GET_TUPLE_ELEMENT)
        return x->tag = l->init->arg[x->u.tuple.index];
    if (x->narg > (int)SD_COUNTOF(arg))
        at = sd_arena_array(l->body->module->arena, hlo_inst *, x->narg);
    for (int i = 0; i < x->narg; i++)
        at[i] = outside(l, x->arg[i]);
    return x->tag = hlo_inst_clone(l->in->parent, l->in, x, at);
}

/* ---- invariant and dear ---- */

/* Costs more than reading the result does. */
static bool is_dear(const hlo_inst *x)
{
    switch (hlo_info(x)->cls) {
    case HLO_C_DOT:
    case HLO_C_CONV:
    case HLO_C_REDUCE:
    case HLO_C_WINDOW:
    case HLO_C_SCAN:
    case HLO_C_SORT:
    case HLO_C_SCATTER:
        return true;
    default:
        return x->op == HLO_GATHER || (hlo_info(x)->props & HLO_P_HEAVY);
    }
}

static bool hoist_dear(sd_arena *a, loop *l)
{
    sd_vec(hlo_inst *) dear = {0};
    size_t bytes = 0;

    hlo_for_each_inst(x, l->body) {
        size_t now = sd_shape_bytes(x->shape);

        if (!x->mark || !is_dear(x) || !x->nuse || bytes + now > MOST_BYTES)
            continue;
        bytes += now;
        *sd_push(a, &dear) = x;
    }
    for (int i = 0; i < dear.n; i++)
        hlo_replace(dear.at[i], carry(l, outside(l, dear.at[i])));
    return dear.n > 0;
}

/* ---- products of slices ---- */

typedef struct {
    hlo_inst *dot, *slice;
    int side;  /* the operand that is the slice */
    int where; /* the dimension of the result that numbers the slices */
} sliced;

/* slice [1, d..] of x [n, d..], without its 1. */
static hlo_inst *slice_under(hlo_inst *x)
{
    hlo_inst *s = x->op == HLO_RESHAPE ? x->arg[0] : NULL;

    if (!s || s->op != HLO_DYNAMIC_SLICE || s->dims.at[0] != 1 ||
        s->shape->rank != x->shape->rank + 1)
        return NULL;
    for (int i = 0; i < x->shape->rank; i++)
        if (s->dims.at[i + 1] != x->shape->dim[i] ||
            s->dims.at[i + 1] != s->arg[0]->shape->dim[i + 1])
            return NULL;
    return s;
}

/* What all products together are worth: the loop uses about as many as there
 * are, and one alone has too few rows to be fast. */
static bool is_worth(const sliced *s, int64_t turns)
{
    const hlo_dot *d = s->dot->u.dot;
    const sd_shape *x = s->dot->arg[s->side]->shape;
    const hlo_dims *k = s->side ? &d->rhs_contract : &d->lhs_contract;
    int64_t n = s->slice->arg[0]->shape->dim[0], rows = sd_shape_count(x);

    for (int i = 0; i < k->n; i++)
        rows /= SD_MAX(x->dim[k->at[i]], (int64_t)1);
    return n >= FEWEST_SLICES && turns >= n && rows <= MOST_ROWS &&
           sd_shape_bytes(s->dot->shape) <= (size_t)(MOST_BYTES / n);
}

static bool read_sliced(hlo_inst *dot, int64_t turns, sliced *s)
{
    const hlo_dot *d = dot->u.dot;

    if (dot->op != HLO_DOT || dot->mark || !dot->nuse)
        return false;
    for (int side = 0; side < 2; side++) {
        hlo_inst *slice = slice_under(dot->arg[side]);

        if (!slice || !slice->arg[0]->mark || !dot->arg[1 - side]->mark)
            continue;
        *s = (sliced){dot, slice, side, d->lhs_batch.n};
        if (side)
            s->where = dot->arg[0]->shape->rank - d->lhs_contract.n;
        return is_worth(s, turns);
    }
    return false;
}

static hlo_dims moved_up(sd_arena *a, hlo_dims d)
{
    int64_t at[SD_MAX_RANK];

    for (int i = 0; i < d.n; i++)
        at[i] = d.at[i] + 1;
    return hlo_dims_copy(a, at, d.n);
}

/* All products, before the loop. */
static hlo_inst *whole_product(const loop *l, const sliced *s)
{
    sd_arena *a = l->body->module->arena;
    hlo_dot *d = sd_arena_copy(a, s->dot->u.dot, sizeof *d);
    hlo_inst *arg[2];

    arg[s->side] = outside(l, s->slice->arg[0]);
    arg[1 - s->side] = outside(l, s->dot->arg[1 - s->side]);
    if (s->side) {
        d->rhs_batch = moved_up(a, d->rhs_batch);
        d->rhs_contract = moved_up(a, d->rhs_contract);
    } else {
        d->lhs_batch = moved_up(a, d->lhs_batch);
        d->lhs_contract = moved_up(a, d->lhs_contract);
    }
    return hlo_make_dot((hlo_at){l->in->parent, l->in, s->dot}, arg[0], arg[1],
                        pass_dtype(s->dot), d);
}

static void hoist_sliced(loop *l, const sliced *s)
{
    sd_arena *a = l->body->module->arena;
    hlo_at p = pass_at(s->dot);
    hlo_inst *all = carry(l, whole_product(l, s)), *y;
    hlo_inst *arg[SD_MAX_RANK + 1] = {all}, *index = s->slice->arg[1];
    int64_t size[SD_MAX_RANK];
    int rank = all->shape->rank;

    for (int i = 0; i < rank; i++) {
        size[i] = i == s->where ? 1 : all->shape->dim[i];
        arg[1 + i] = i == s->where
                         ? index
                         : hlo_make_scalar_s64(p, pass_dtype(index), 0);
    }
    y = hlo_inst_create(p.c, p.before, HLO_DYNAMIC_SLICE,
                        sd_shape_make(a, pass_dtype(all), rank, size), 1 + rank,
                        arg);
    y->dims = hlo_dims_copy(a, size, rank);
    hlo_replace(s->dot, hlo_make_reshape(p, y, s->dot->shape->rank,
                                         s->dot->shape->dim));
}

static bool hoist_slices(sd_arena *a, loop *l)
{
    sd_vec(sliced) all = {0};
    int64_t turns = hlo_turns(l->in);
    sliced s;

    hlo_for_each_inst(x, l->body)
        if (read_sliced(x, turns, &s))
            *sd_push(a, &all) = s;
    for (int i = 0; i < all.n; i++)
        hoist_sliced(l, &all.at[i]);
    return all.n > 0;
}

bool hlo_opt_hoist(hlo_module *m, const device_desc *dev)
{
    sd_arena *a = sd_arena_create();
    bool changed = false;

    (void)dev;
    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            loop l;

            if (!loop_read(in, &l) || !can_carry(&l))
                continue;
            hlo_for_each_inst(x, l.body)
                x->tag = NULL;
            mark_invariants(&l);
            changed |= hoist_dear(a, &l);
            changed |= hoist_slices(a, &l);
        }
    sd_arena_destroy(a);
    return changed;
}
