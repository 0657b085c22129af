/* Scatters of several operands.  Where each result comes from its own operand
 * alone they are as many scatters; else a loop, in which each turn changes one
 * window of all operands.  Comes after lower_index: see there for the form. */
#include "matrix.h"

/* ---- one scatter an operand ---- */

/* The function's result k as a function of parameters k and n + k; NULL: it
 * takes others as well. */
static hlo_comp *own_function(hlo_comp *c, int k, int n)
{
    hlo_comp *f = hlo_comp_clone(c->module, c, c->name);
    hlo_inst *tuple = f->root;

    hlo_set_root(f, tuple->arg[k]);
    hlo_comp_sweep(f);
    for (int i = 2 * n - 1; i >= 0; i--) {
        hlo_inst *p = f->param[i];

        if (i == k || i == n + k)
            continue;
        if (p->nuse || p == f->root) {
            hlo_comp_remove(f);
            return NULL;
        }
        hlo_remove(p);
    }
    return f;
}

static hlo_inst *split(hlo_inst *in, int n)
{
    sd_arena *a = in->parent->module->arena;
    hlo_comp **f = sd_arena_array(a, hlo_comp *, n);
    hlo_inst **out = sd_arena_array(a, hlo_inst *, n);

    if (in->comp[0]->root->op != HLO_TUPLE)
        return NULL;
    for (int k = 0; k < n; k++)
        if (!(f[k] = own_function(in->comp[0], k, n)))
            return NULL; /* the functions so far are nobody's: dce */
    for (int k = 0; k < n; k++) {
        hlo_inst *arg[] = {in->arg[k], in->arg[n], in->arg[n + 1 + k]};

        out[k] = hlo_inst_create(in->parent, in, HLO_SCATTER, in->arg[k]->shape,
                                 3, arg);
        out[k]->u = in->u;
        out[k]->op_name = in->op_name;
        hlo_set_comps(out[k], 1, &f[k]);
    }
    return hlo_make_tuple(pass_at(in), n, out);
}

/* ---- a loop over the windows ---- */

typedef struct {
    hlo_at p;             /* in the body */
    const hlo_gather *g;
    const sd_shape *x, *u; /* of an operand, of updates: [count, window..] */
    hlo_inst *turn, *at;  /* at: [count, k] */
} turn;

static hlo_inst *update_of(const turn *t, hlo_inst *updates)
{
    hlo_inst *y = pass_slice_at(t->p, updates, 0, t->turn, 1);

    return hlo_make_reshape(t->p, y, t->x->rank, t->u->dim + 1);
}

/* Where the window starts, a scalar a dimension; *inside: it is all inside. */
static void find_place(const turn *t, hlo_inst **start, hlo_inst **inside)
{
    sd_dtype type = pass_dtype(t->at);
    int64_t one[] = {1, 1};

    *inside = hlo_make_scalar_s64(t->p, SD_PRED, 1);
    for (int d = 0; d < t->x->rank; d++)
        start[d] = hlo_make_scalar_s64(t->p, type, 0);
    for (int k = 0; k < t->g->index_map.n; k++) {
        int64_t d = t->g->index_map.at[k];
        int64_t room = t->x->dim[d] - t->u->dim[d + 1];
        hlo_inst *at[] = {t->turn,
                          hlo_make_scalar_s64(t->p, pass_dtype(t->turn), k)};
        hlo_inst *v = hlo_make_dynamic_slice(t->p, t->at, at, one);

        start[d] = v = hlo_make_reshape(t->p, v, 0, NULL);
        *inside = hlo_make_binary(
            t->p, HLO_AND, *inside,
            hlo_make_compare(t->p, HLO_GE, v,
                             hlo_make_scalar_s64(t->p, type, 0)));
        *inside = hlo_make_binary(
            t->p, HLO_AND, *inside,
            hlo_make_compare(t->p, HLO_LE, v,
                             hlo_make_scalar_s64(t->p, type, room)));
    }
}

static void take_turn(const turn *t, hlo_comp *f, int n, hlo_inst **x)
{
    sd_arena *a = f->module->arena;
    hlo_inst **arg = sd_arena_array(a, hlo_inst *, 2 * n);
    hlo_inst *start[SD_MAX_RANK], *inside, *r;

    find_place(t, start, &inside);
    for (int k = 0; k < n; k++) {
        arg[k] = hlo_make_dynamic_slice(t->p, x[k], start, t->u->dim + 1);
        arg[n + k] = update_of(t, x[n + k]);
    }
    r = pass_vectorize(t->p, f, arg, arg[0]->shape);
    for (int k = 0; k < n; k++) {
        hlo_inst *y =
            hlo_make_select(t->p, hlo_make_spread(t->p, inside, arg[k]->shape),
                            r->arg[k], arg[k]);

        x[k] = hlo_make_dynamic_update(t->p, x[k], y, start);
    }
}

static hlo_inst *loop(hlo_inst *in, int n)
{
    hlo_at p = pass_at(in);
    hlo_inst **init =
        sd_arena_array(in->parent->module->arena, hlo_inst *, 2 * n + 1);
    turn t = {
        .g = in->u.gather, .x = in->arg[0]->shape, .u = in->arg[n + 1]->shape};
    matrix_loop l;

    if (in->comp[0]->root->op != HLO_TUPLE ||
        !pass_can_vectorize(in->comp[0]) || t.u->dim[0] > INT32_MAX)
        return NULL;
    memcpy(init, in->arg, sizeof *init * (size_t)n);
    memcpy(init + n, in->arg + n + 1, sizeof *init * (size_t)n);
    init[2 * n] = in->arg[n];
    matrix_loop_open(&l, p, "windows", 2 * n + 1, init);
    t.p = l.at;
    t.turn = l.i;
    t.at = l.x[2 * n];
    take_turn(&t, in->comp[0], n, l.x);
    matrix_loop_close(&l, t.u->dim[0]);
    return hlo_make_tuple(p, n, l.x);
}

hlo_inst *hlo_lower_scatter(hlo_inst *in)
{
    int n = hlo_ninput(in);
    hlo_inst *to;

    if (n == 1 || !pass_is_canonical_scatter(in))
        return NULL;
    if (sd_shape_count(in->arg[n + 1]->shape) == 0)
        return hlo_make_tuple(pass_at(in), n, in->arg);
    to = split(in, n);
    return to ? to : loop(in, n);
}
