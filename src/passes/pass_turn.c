/* Transposes behind the elementwise operations that use them: 0.1 * X^T is
 * (0.1 * X)^T, and a reduction, which a product with a vector is, reads X as it
 * lies in memory, where it would read the former across.  All arrays that are
 * not made of one number or of fewer dimensions must be transposed alike. */
#include "passes_priv.h"

static bool is_one_of(const pass_turn *t, const hlo_inst *x)
{
    for (int i = 0; i < t->n; i++)
        if (t->from[i] == x)
            return true;
    return false;
}

/* Takes x, which is `deep` operations before the reduction, and what it is made
 * of, operands before users. */
static bool take(pass_turn *t, hlo_inst *x, int deep)
{
    if (is_one_of(t, x))
        return true;
    if (deep == PASS_TURN_MOST)
        return false;
    if (x->op == HLO_TRANSPOSE) {
        if (t->perm.n == 0)
            t->perm = x->dims;
        if (!hlo_dims_equal(t->perm, x->dims))
            return false;
    } else if (x->op != HLO_BROADCAST && x->op != HLO_IOTA) {
        if (!hlo_is_elementwise(x) || x->shape->rank == 0)
            return false;
        for (int i = 0; i < x->narg; i++)
            if (!take(t, x->arg[i], deep + 1))
                return false;
    }
    if (t->n == PASS_TURN_MOST)
        return false;
    t->from[t->n++] = x;
    return true;
}

/* Does nobody else need the values of elementwise operations as they are?  They
 * would be computed twice, once each way. */
static bool is_needed_here_alone(const pass_turn *t)
{
    for (int i = 0; i < t->n; i++) {
        const hlo_inst *x = t->from[i];

        if (!hlo_is_elementwise(x))
            continue;
        if (x == x->parent->root)
            return false;
        hlo_for_each_user(u, x)
            if (u->op != HLO_REDUCE && !is_one_of(t, u))
                return false;
    }
    return true;
}

bool pass_turn_find(pass_turn *t, hlo_inst *in, int n)
{
    *t = (pass_turn){.p = pass_at(in)};
    for (int i = 0; i < n; i++)
        if (!take(t, in->arg[i], 0))
            return false;
    return t->perm.n && is_needed_here_alone(t);
}

static hlo_inst *made_of(const pass_turn *t, const hlo_inst *x)
{
    for (int i = 0; i < t->n; i++)
        if (t->from[i] == x)
            return t->to[i];
    return NULL;
}

static hlo_inst *turned(const pass_turn *t, hlo_inst *x)
{
    sd_arena *a = x->parent->module->arena;
    int64_t dim[SD_MAX_RANK], to[SD_MAX_RANK];
    hlo_inst *arg[3] = {NULL}, *y;

    if (x->op == HLO_TRANSPOSE)
        return x->arg[0];
    for (int i = 0; i < t->perm.n; i++)
        dim[t->perm.at[i]] = x->shape->dim[i];
    for (int i = 0; i < x->dims.n; i++)
        to[i] = t->perm.at[x->dims.at[i]];
    for (int i = 0; i < x->narg; i++)
        arg[i] = x->op == HLO_BROADCAST ? x->arg[i] : made_of(t, x->arg[i]);
    y = hlo_inst_clone(t->p.c, t->p.before, x, arg);
    y->shape = sd_shape_make(a, pass_dtype(x), t->perm.n, dim);
    y->dims = hlo_dims_copy(a, to, x->dims.n);
    return y;
}

hlo_inst *pass_turn_make(pass_turn *t, const hlo_inst *x)
{
    for (int i = 0; i < t->n; i++)
        if (!t->to[i])
            t->to[i] = turned(t, t->from[i]);
    return made_of(t, x);
}
