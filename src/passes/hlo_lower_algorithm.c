/* The algorithm of a dot, said in operations: its operands are rounded to the
 * algorithm's type, the products are summed in its accumulator's type, and the
 * sum is converted to the result's.  Nothing after this pass reads it.  An
 * accumulator of f16 or bf16 is one of f32 that is rounded once, as for every
 * product of such a type.
 *
 * A product of mixed types without an algorithm is summed in the widest. */
#include "passes_priv.h"

static hlo_inst *rounded(hlo_at p, const hlo_algorithm *a, hlo_inst *x)
{
    hlo_inst *y;

    if (a->operand == HLO_AS_IS)
        return x;
    x = pass_convert(p, (sd_dtype)a->operand, x);
    if (!a->tf32)
        return x;
    y = hlo_inst_create(p.c, p.before, HLO_REDUCE_PRECISION, x->shape, 1, &x);
    y->u.precision.exponent = 8;
    y->u.precision.mantissa = 10;
    return y;
}

static hlo_inst *product(hlo_inst *in, const hlo_algorithm *a)
{
    hlo_at p = pass_at(in);
    sd_dtype t = a->sum == HLO_AS_IS ? pass_dtype(in) : (sd_dtype)a->sum;
    hlo_dot d = *in->u.dot;
    hlo_inst *x;

    d.algorithm = NULL;
    d.prec[0] = d.prec[1] = a->tf32 ? HLO_PREC_DEFAULT : HLO_PREC_HIGHEST;
    x = hlo_make_dot(p, rounded(p, a, in->arg[0]), rounded(p, a, in->arg[1]), t,
                     &d);
    return pass_convert(p, pass_dtype(in), x);
}

static hlo_inst *lower_algorithm(hlo_inst *in)
{
    const char *name = in->u.dot->algorithm;

    return name ? product(in, hlo_algorithm_of(name)) : NULL;
}

/* f64 operands, and a result that is narrower. */
static hlo_inst *widen(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    sd_dtype t = pass_dtype(in);
    hlo_inst *x;

    if (!sd_is_float(t) || t == SD_F64 ||
        (pass_dtype(in->arg[0]) != SD_F64 && pass_dtype(in->arg[1]) != SD_F64))
        return NULL;
    x = hlo_inst_clone(in->parent, in, in, in->arg);
    x->shape = sd_shape_with(p.c->module->arena, in->shape, SD_F64);
    return pass_convert(p, t, x);
}

bool hlo_lower_algorithm(hlo_module *m)
{
    bool changed = pass_rewrite(m, HLO_DOT, lower_algorithm);

    changed |= pass_rewrite(m, HLO_DOT, widen);
    return pass_rewrite(m, HLO_CONVOLUTION, widen) || changed;
}
