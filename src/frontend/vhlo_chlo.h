/* What the files of CHLO share.  CHLO's functions (erf_inv, sinh, ...) become
 * formulas in HLO: arithmetic on arrays that all have one shape. */
#ifndef VHLO_CHLO_H
#define VHLO_CHLO_H

#include "vhlo_import.h"

typedef struct {
    vhlo_import *im;
    const sd_shape *s; /* of operands and results */
} chlo_fn;

hlo_inst *chlo_real_cosh(const chlo_fn *f, hlo_inst *x);
hlo_inst *chlo_real_sinh(const chlo_fn *f, hlo_inst *x);
hlo_inst *chlo_copysign(const chlo_fn *f, hlo_inst *x, hlo_inst *y);

/* True if x is of floats, which most of CHLO's functions want; else false,
 * after an error. */
bool chlo_is_float(vhlo_import *im, mlir_op *op, const hlo_inst *x);
/* x in the type in which the function computes: f16 and narrower become f32. */
hlo_inst *chlo_worked(vhlo_import *im, hlo_inst *x);

/* z: real and imaginary part, in and out.  vhlo_chlo_complex.c */
typedef void chlo_complex_fn(const chlo_fn *f, hlo_inst *z[2]);
chlo_complex_fn chlo_acos, chlo_acosh, chlo_asin, chlo_asinh, chlo_atan,
    chlo_atanh, chlo_cosh, chlo_sinh;

/* ---- vhlo_chlo.c ---- */

/* vhlo_bind, with an error if in's shape is not the declared one. */
void chlo_bind(vhlo_import *im, mlir_op *op, hlo_inst *in);
/* Broadcasts both operands to the result's shape: by broadcast_dimensions or,
 * where there are none, with the last dimensions together as NumPy does.  False
 * after an error. */
bool chlo_spread(vhlo_import *im, mlir_op *op, hlo_inst **arg);

#endif
