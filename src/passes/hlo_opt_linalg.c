/* What JAX does around a factorization of Cholesky's: it takes the mean of the
 * matrix and its transpose, which the function that has many matrices side by
 * side does where they lie in registers, and clears what stands above the
 * factor, where it is zero. */
#include "hlo_linalg.h"
#include "passes_priv.h"

static bool is_cholesky(const hlo_inst *in, hlo_linalg *c)
{
    return in->op == HLO_CUSTOM_CALL && hlo_linalg_read(in, c) &&
           c->id == HLO_LA_CHOLESKY;
}

static bool counts(const hlo_inst *in, int64_t dim)
{
    return in->op == HLO_IOTA && in->dims.at[0] == dim;
}

/* Is in, for each matrix, row >= column? */
static bool is_lower_triangle(const hlo_inst *in)
{
    int64_t r = in->shape->rank;

    if (in->op == HLO_BROADCAST && in->arg[0]->shape->rank == 2 &&
        in->dims.at[0] == r - 2 && in->dims.at[1] == r - 1) {
        in = in->arg[0];
        r = 2;
    }
    if (in->op != HLO_COMPARE || r < 2)
        return false;
    return (in->u.compare.dir == HLO_GE && counts(in->arg[0], r - 2) &&
            counts(in->arg[1], r - 1)) ||
           (in->u.compare.dir == HLO_LE && counts(in->arg[0], r - 1) &&
            counts(in->arg[1], r - 2));
}

static hlo_inst *drop_select(hlo_inst *in)
{
    hlo_linalg c;
    double zero;

    if (!is_cholesky(in->arg[1], &c) || !c.attr[0] ||
        !hlo_is_scalar_const(in->arg[2], &zero) || zero != 0 ||
        !is_lower_triangle(in->arg[0]))
        return NULL;
    return in->arg[1];
}

/* Is t the matrices x transposed? */
static bool is_transpose_of(const hlo_inst *t, const hlo_inst *x)
{
    int r = x->shape->rank;

    if (t->op != HLO_TRANSPOSE || t->arg[0] != x)
        return false;
    for (int i = 0; i < r; i++)
        if (t->dims.at[i] != (i < r - 2 ? i : 2 * r - 3 - i))
            return false;
    return true;
}

/* x of (x + transpose(x)) / 2 */
static hlo_inst *mean_of(const hlo_inst *in)
{
    const hlo_inst *sum = in->arg[0];
    double half;

    if (in->op != HLO_MULTIPLY || !hlo_is_scalar_const(in->arg[1], &half) ||
        half != 0.5 || sum->op != HLO_ADD)
        return NULL;
    if (is_transpose_of(sum->arg[1], sum->arg[0]))
        return sum->arg[0];
    return is_transpose_of(sum->arg[0], sum->arg[1]) ? sum->arg[1] : NULL;
}

static hlo_inst *take_mean(hlo_inst *in)
{
    hlo_linalg c;
    hlo_call ours;
    hlo_inst *x;

    if (!is_cholesky(in, &c) || c.attr[1] || in->arg[0]->nuse > 1 ||
        !(x = mean_of(in->arg[0])) || !hlo_device_call(in, &ours) ||
        !ours.lanes)
        return NULL;
    c.attr[1] = 1;
    return hlo_make_linalg(pass_at(in), HLO_LA_CHOLESKY, c.attr, 1, &x);
}

bool hlo_opt_linalg(hlo_module *m, const device_desc *dev)
{
    bool changed = pass_rewrite(m, HLO_SELECT, drop_select);

    if (dev->kind == DEVICE_HOST)
        changed |= pass_rewrite(m, HLO_CUSTOM_CALL, take_mean);
    return changed;
}
