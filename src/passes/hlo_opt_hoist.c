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

enum {
    MOST_BYTES = 64 << 20,
    MOST_SLICES = 512 << 20, /* bytes of all products on GPUs, whose memory is
                                not the host's caches */
    FEWEST_SLICES = 8,
    MOST_ROWS = 256
};

/* ---- what the loop carries ---- */

/* The loop carries n more elements, of which start[k] are the values in every
 * turn; get[k] is what the body reads them by. */
static void carry(loop *l, int n, hlo_inst *const *start, hlo_inst **get)
{
    sd_arena *a = l->in->parent->module->arena;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, l->n + n);
    hlo_inst *old = l->body->root, *first = l->bp->next;

    memcpy(arg, l->init->arg, sizeof *arg * (size_t)l->n);
    memcpy(arg + l->n, start, sizeof *arg * (size_t)n);
    l->init = hlo_make_tuple(pass_at(l->in), l->n + n, arg);
    hlo_set_arg(l->in, 0, l->init);
    l->in->shape = l->cp->shape = l->bp->shape = l->init->shape;
    memcpy(arg, old->arg, sizeof *arg * (size_t)l->n);
    for (int k = 0; k < n; k++)
        arg[l->n + k] = get[k] =
            hlo_make_gte((hlo_at){l->body, first, start[k]}, l->bp, l->n + k);
    l->n += n;
    hlo_set_root(l->body,
                 hlo_make_tuple((hlo_at){l->body, NULL, old}, l->n, arg));
    hlo_remove(old);
}

/* The tuples are only taken apart, so that they may get another element. */
static bool can_carry(const loop *l)
{
    const hlo_inst *root = l->body->root;

    return loop_only_elements(l->in) && loop_only_elements(l->cp) &&
           loop_only_elements(l->bp) && l->in != l->in->parent->root &&
           !root->nuse && l->bp != root;
}

/* ---- what is the same in every turn ---- */

enum {              /* what is known of an instruction of the body */
       SAME = 1,    /* it has the same value in every turn */
       INSIDE = 2,  /* it is needed in the body */
       TAKEN = 4,   /* an element of the carry takes its place */
       OUTSIDE = 8, /* it is needed before the loop, where `outside` is it */
};

static int64_t *flags(hlo_inst *x)
{
    return &x->mark;
}

static hlo_inst *outside(const hlo_inst *x)
{
    return x->tag;
}

static void set_outside(hlo_inst *x, hlo_inst *copy)
{
    x->tag = copy;
}

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
        if (!(*flags(x->arg[i]) & SAME))
            return false;
    return true;
}

/* A chain of them may be as long as the body, so nothing here recurses. */
static void copy_outside(const loop *l)
{
    sd_arena *a = l->body->module->arena;

    hlo_for_each_inst_backward(x, l->body)
        for (int i = 0; i < x->narg; i++)
            if (*flags(x) & OUTSIDE && x->op != HLO_GET_TUPLE_ELEMENT)
                *flags(x->arg[i]) |= OUTSIDE;
    hlo_for_each_inst(x, l->body) {
        hlo_inst *few[SD_MAX_RANK + 1], **arg = few;

        if (!(*flags(x) & OUTSIDE))
            continue;
        if (x->op == HLO_GET_TUPLE_ELEMENT) {
            set_outside(x, l->init->arg[x->u.tuple.index]);
            continue;
        }
        if (x->narg > (int)SD_COUNTOF(few))
            arg = sd_arena_array(a, hlo_inst *, x->narg);
        for (int i = 0; i < x->narg; i++)
            arg[i] = outside(x->arg[i]);
        set_outside(x, hlo_inst_clone(l->in->parent, l->in, x, arg));
        if (hlo_info(x)->cls == HLO_C_CONTROL)
            pass_own_comps(outside(x));
    }
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
static bool is_worth(const sliced *s, int64_t turns, const device_desc *dev)
{
    const hlo_dot *d = s->dot->u.dot;
    const sd_shape *x = s->dot->arg[s->side]->shape;
    const hlo_dims *k = s->side ? &d->rhs_contract : &d->lhs_contract;
    int64_t n = s->slice->arg[0]->shape->dim[0], rows = sd_shape_count(x);
    int64_t most = dev->kind == DEVICE_HOST ? MOST_BYTES : MOST_SLICES;

    for (int i = 0; i < k->n; i++)
        rows /= SD_MAX(x->dim[k->at[i]], (int64_t)1);
    return n >= FEWEST_SLICES && turns >= n && rows <= MOST_ROWS &&
           sd_shape_bytes(s->dot->shape) <= (size_t)(most / n);
}

static bool read_sliced(hlo_inst *dot, int64_t turns, const device_desc *dev,
                        sliced *s)
{
    const hlo_dot *d = dot->u.dot;

    if (dot->op != HLO_DOT || *flags(dot) & SAME)
        return false;
    for (int side = 0; side < 2; side++) {
        hlo_inst *slice = slice_under(dot->arg[side]);

        if (!slice ||
            !(*flags(slice->arg[0]) & *flags(dot->arg[1 - side]) & SAME))
            continue;
        *s = (sliced){dot, slice, side, d->lhs_batch.n};
        if (side)
            s->where = dot->arg[0]->shape->rank - d->lhs_contract.n;
        return is_worth(s, turns, dev);
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

    arg[s->side] = outside(s->slice->arg[0]);
    arg[1 - s->side] = outside(s->dot->arg[1 - s->side]);
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

/* The turn's product, of all that the loop carries. */
static hlo_inst *own_product(const sliced *s, hlo_inst *all)
{
    hlo_at p = pass_at(s->dot);
    hlo_inst *y = pass_slice_at(p, all, s->where, s->slice->arg[1], 1);

    return hlo_make_reshape(p, y, s->dot->shape->rank, s->dot->shape->dim);
}

/* ---- the pass ---- */

typedef struct {
    hlo_inst *in;  /* what is the same, or a product of a slice */
    sliced slices; /* dot: NULL if it is not */
} taken;
typedef sd_vec(taken) taken_list;

/* From the end: what only such things need that are taken is not. */
static void choose(sd_arena *a, const loop *l, const device_desc *dev,
                   taken_list *list)
{
    int64_t turns = hlo_turns(l->in);
    size_t bytes = 0;

    hlo_for_each_inst_backward(x, l->body) {
        taken t = {.in = x};

        if (x != l->body->root && !(*flags(x) & INSIDE) && !hlo_has_effect(x))
            continue;
        if (*flags(x) & SAME && is_dear(x) &&
            bytes + sd_shape_bytes(x->shape) <= MOST_BYTES) {
            bytes += sd_shape_bytes(x->shape);
            *flags(x) |= TAKEN | OUTSIDE;
        } else if (read_sliced(x, turns, dev, &t.slices)) {
            *flags(x) |= TAKEN;
            *flags(t.slices.slice->arg[0]) |= OUTSIDE;
            *flags(x->arg[1 - t.slices.side]) |= OUTSIDE;
            *flags(t.slices.slice->arg[1]) |= INSIDE;
        }
        if (*flags(x) & TAKEN)
            *sd_push(a, list) = t;
        for (int i = 0; i < x->narg && !(*flags(x) & TAKEN); i++)
            *flags(x->arg[i]) |= INSIDE;
    }
}

static bool hoist(sd_arena *a, loop *l, const device_desc *dev)
{
    taken_list list = {0};
    hlo_inst **start, **get;
    int n;

    hlo_for_each_inst(x, l->body) {
        set_outside(x, NULL);
        *flags(x) = is_invariant(l, x) ? SAME : 0;
    }
    choose(a, l, dev, &list);
    if (!(n = list.n))
        return false;
    copy_outside(l);
    start = sd_arena_array(a, hlo_inst *, n);
    get = sd_arena_array(a, hlo_inst *, n);
    for (int k = 0; k < n; k++) { /* in the order of the body */
        const taken *t = &list.at[n - 1 - k];

        start[k] =
            t->slices.dot ? whole_product(l, &t->slices) : outside(t->in);
    }
    carry(l, n, start, get);
    for (int k = 0; k < n; k++) {
        const taken *t = &list.at[n - 1 - k];

        hlo_replace(t->in,
                    t->slices.dot ? own_product(&t->slices, get[k]) : get[k]);
    }
    return true;
}

bool hlo_opt_hoist(hlo_module *m, const device_desc *dev)
{
    sd_arena *a = sd_arena_create();
    bool changed = false;

    hlo_for_each_comp(c, m)
        hlo_for_each_inst(in, c) {
            loop l;

            if (loop_read(in, &l) && can_carry(&l))
                changed |= hoist(a, &l, dev);
        }
    sd_arena_destroy(a);
    return changed;
}
