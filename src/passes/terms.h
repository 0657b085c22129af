/* Arithmetic as formulas: short names for what the passes build most, at p.
 *
 *   t_pick(p, t_is(p, HLO_LT, x, y), t_add(p, x, t_fill(p, x, 1)), t_neg(p, y))
 */
#ifndef TERMS_H
#define TERMS_H

#include "passes_priv.h"

static inline hlo_inst *t_unary(hlo_at p, hlo_op op, hlo_inst *x)
{
    return hlo_make_unary(p, op, x);
}
static inline hlo_inst *t_binary(hlo_at p, hlo_op op, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(p, op, x, y);
}
static inline hlo_inst *t_add(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(p, HLO_ADD, x, y);
}
static inline hlo_inst *t_sub(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(p, HLO_SUBTRACT, x, y);
}
static inline hlo_inst *t_mul(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(p, HLO_MULTIPLY, x, y);
}
static inline hlo_inst *t_div(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(p, HLO_DIVIDE, x, y);
}
static inline hlo_inst *t_and(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(p, HLO_AND, x, y);
}
static inline hlo_inst *t_or(hlo_at p, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(p, HLO_OR, x, y);
}
static inline hlo_inst *t_neg(hlo_at p, hlo_inst *x)
{
    return hlo_make_unary(p, HLO_NEGATE, x);
}
static inline hlo_inst *t_abs(hlo_at p, hlo_inst *x)
{
    return hlo_make_unary(p, HLO_ABS, x);
}
static inline hlo_inst *t_convert(hlo_at p, sd_dtype t, hlo_inst *x)
{
    return hlo_make_convert(p, t, x);
}
static inline hlo_inst *t_bitcast(hlo_at p, sd_dtype t, hlo_inst *x)
{
    return hlo_make_bitcast_convert(p, t, x);
}
/* x where `test` is true, else y. */
static inline hlo_inst *t_pick(hlo_at p, hlo_inst *test, hlo_inst *x,
                               hlo_inst *y)
{
    return hlo_make_select(p, test, x, y);
}
/* Is x less than y (HLO_LT), equal, ...?  The same of the number v. */
static inline hlo_inst *t_is(hlo_at p, hlo_cmp_dir dir, hlo_inst *x,
                             hlo_inst *y)
{
    return hlo_make_compare(p, dir, x, y);
}
static inline hlo_inst *t_is_num(hlo_at p, hlo_cmp_dir dir, hlo_inst *x,
                                 double v)
{
    return pass_compare_num(p, dir, x, v);
}
/* An array like x, of the number v. */
static inline hlo_inst *t_fill(hlo_at p, const hlo_inst *like, double v)
{
    return hlo_make_fill(p, like->shape, v);
}

#endif
