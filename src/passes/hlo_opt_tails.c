/* Small exponentials divided by large sums, or multiplied by small numbers.
 * The results of `exp` and `logistic` are 0 or normal (ADR 37), but such a
 * quotient can be subnormal, and a core takes some 150 cycles for it.  What
 * would give one is made 0 before: e / s becomes
 *
 *   select(e < max(|s|, 1) * least, 0, e) / s     least: 2^-126, f64: 2^-1022
 *
 * and e * c, where c is less than 1, select(e < least / |c|, 0, e) * c.  Where
 * s or c is no number, so is the result.  Only where s and c are the same for
 * many elements, so that this takes a comparison each.  On CUDA subnormal
 * numbers take no longer than others, and stay. */
#include "terms.h"

#include <math.h>

enum { LEAST_ELEMENTS = 1024 /* of fewer they take no time */ };

static double least_normal(sd_dtype t)
{
    return t == SD_F64 ? 0x1p-1022 : 0x1p-126;
}

/* An exponential, or one rounded to bf16, which has the exponents of f32.  One
 * of f64 has more: what is subnormal in bf16 can have a normal quotient. */
static bool is_tail(const hlo_inst *in)
{
    const hlo_inst *e = in;

    while (e->op == HLO_CONVERT &&
           (pass_dtype(e) == SD_BF16 || pass_dtype(e->arg[0]) == SD_BF16))
        e = e->arg[0];
    return (e->op == HLO_EXP || e->op == HLO_LOGISTIC) &&
           (e == in || pass_dtype(e) != SD_F64);
}

/* What e may not be below if e / s is to be normal. */
static hlo_inst *bound_of_quotient(hlo_at p, hlo_inst *s)
{
    hlo_inst *large = t_binary(p, HLO_MAXIMUM, t_abs(p, s), t_fill(p, s, 1));

    return t_mul(p, large, t_fill(p, s, least_normal(pass_dtype(s))));
}

static hlo_inst *bound_of_product(hlo_at p, hlo_inst *c)
{
    return t_div(p, t_fill(p, c, least_normal(pass_dtype(c))), t_abs(p, c));
}

/* What is the same for many elements of x: a broadcast, or one converted. */
static const hlo_inst *spread_of(const hlo_inst *x)
{
    if (x->op == HLO_CONVERT)
        x = x->arg[0];
    return x->op == HLO_BROADCAST ? x : NULL;
}

static bool varies_along_rows(const hlo_inst *b)
{
    return b->dims.n && b->dims.at[b->dims.n - 1] == b->shape->rank - 1;
}

/* The bound of e in in's results; NULL where none is wanted. */
static hlo_inst *bound_of(hlo_at p, const hlo_inst *in)
{
    const hlo_inst *b = spread_of(in->arg[1]);
    hlo_inst *by;
    double v;

    if (!b || (in->op == HLO_MULTIPLY && varies_along_rows(b)) ||
        (hlo_is_scalar_const(b, &v) &&
         (in->op == HLO_MULTIPLY) == (fabs(v) >= 1)))
        return NULL;
    by = pass_convert(p, pass_dtype(in), b->arg[0]);
    by = in->op == HLO_DIVIDE ? bound_of_quotient(p, by)
                              : bound_of_product(p, by);
    return hlo_make_broadcast(p, by, in->shape, b->dims.at, b->dims.n);
}

static hlo_inst *drop_tail(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    sd_dtype t = pass_dtype(in);
    hlo_inst *e = in->arg[0], *bound;

    if ((in->op != HLO_DIVIDE && in->op != HLO_MULTIPLY) ||
        (t != SD_F32 && t != SD_F64) || !is_tail(e) ||
        sd_shape_count(in->shape) < LEAST_ELEMENTS ||
        !(bound = bound_of(p, in)))
        return NULL;
    e = t_pick(p, t_is(p, HLO_LT, e, bound), t_fill(p, e, 0), e);
    return t_binary(p, in->op, e, in->arg[1]);
}

bool hlo_opt_tails(hlo_module *m, const device_desc *dev)
{
    return dev->kind != DEVICE_CUDA && pass_rewrite(m, HLO_OP_COUNT, drop_tail);
}
