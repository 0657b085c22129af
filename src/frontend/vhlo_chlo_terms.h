/* Short names for building arithmetic of chlo_fn *f, for the two files that
 * write CHLO's functions as formulas; they are nobody else's to include. */
#ifndef VHLO_CHLO_TERMS_H
#define VHLO_CHLO_TERMS_H

#include "vhlo_chlo.h"

#define PI 3.14159265358979323846

#define add(x, y)     chlo_f2(f, HLO_ADD, x, y)
#define sub(x, y)     chlo_f2(f, HLO_SUBTRACT, x, y)
#define mul(x, y)     chlo_f2(f, HLO_MULTIPLY, x, y)
#define quo(x, y)     chlo_f2(f, HLO_DIVIDE, x, y)
#define fn(op, x)     chlo_f1(f, HLO_##op, x)
#define num(v)        chlo_num(f, v)
#define is(dir, x, y) chlo_is(f, HLO_##dir, x, y)
#define pick(p, x, y) chlo_pick(f, p, x, y)

#endif
