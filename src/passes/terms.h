/* Arithmetic as formulas: short names for building it, for the passes that
 * compute much.  What they build stands at `p`, an hlo_at in scope.
 *
 *   pick(is(LT, x, y), add(x, fill(x, 1)), neg(y)) */
#ifndef TERMS_H
#define TERMS_H

#include "passes_priv.h"

#define fn(op, x)         hlo_make_unary(p, HLO_##op, x)
#define bin(op, x, y)     hlo_make_binary(p, HLO_##op, x, y)
#define add(x, y)         bin(ADD, x, y)
#define sub(x, y)         bin(SUBTRACT, x, y)
#define mul(x, y)         bin(MULTIPLY, x, y)
#define quo(x, y)         bin(DIVIDE, x, y)
#define both(x, y)        bin(AND, x, y)
#define either(x, y)      bin(OR, x, y)
#define neg(x)            fn(NEGATE, x)
#define mag(x)            fn(ABS, x)
#define to_type(t, x)     hlo_make_convert(p, t, x)
#define as_bits(t, x)     hlo_make_bitcast_convert(p, t, x)
#define pick(test, x, y)  hlo_make_select(p, test, x, y)
#define is(dir, x, y)     hlo_make_compare(p, HLO_##dir, x, y)
/* Of a number v: an array like x, and a comparison with it. */
#define fill(x, v)        hlo_make_fill(p, (x)->shape, v)
#define is_num(dir, x, v) pass_compare_num(p, HLO_##dir, x, v)

#endif
