/* Short names for building a function's arithmetic, for the files that write
 * CHLO's functions as formulas; they are nobody else's to include. */
#ifndef VHLO_CHLO_TERMS_H
#define VHLO_CHLO_TERMS_H

#include "vhlo_chlo.h"

#define PI 3.14159265358979323846

static inline hlo_at fn_at(const chlo_fn *f)
{
    return (hlo_at){f->im->c, NULL, NULL};
}
static inline hlo_inst *fn1(const chlo_fn *f, hlo_op op, hlo_inst *x)
{
    return vhlo_emit(f->im, op, f->s, 1, &x);
}
static inline hlo_inst *fn2(const chlo_fn *f, hlo_op op, hlo_inst *x,
                            hlo_inst *y)
{
    return vhlo_emit(f->im, op, f->s, 2, (hlo_inst *[2]){x, y});
}
static inline hlo_inst *num(const chlo_fn *f, double v)
{
    return hlo_make_fill(fn_at(f), f->s, v);
}
static inline hlo_inst *is(const chlo_fn *f, hlo_cmp_dir dir, hlo_inst *x,
                           hlo_inst *y)
{
    return hlo_make_compare(fn_at(f), dir, x, y);
}
/* x where `test` is true, else y. */
static inline hlo_inst *pick(const chlo_fn *f, hlo_inst *test, hlo_inst *x,
                             hlo_inst *y)
{
    return hlo_make_select(fn_at(f), test, x, y);
}
static inline hlo_inst *add(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    return fn2(f, HLO_ADD, x, y);
}
static inline hlo_inst *sub(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    return fn2(f, HLO_SUBTRACT, x, y);
}
static inline hlo_inst *mul(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    return fn2(f, HLO_MULTIPLY, x, y);
}
static inline hlo_inst *quo(const chlo_fn *f, hlo_inst *x, hlo_inst *y)
{
    return fn2(f, HLO_DIVIDE, x, y);
}

#endif
