/* Arithmetic on one complex element, which the last column of hlo_ops.def
 * calls. Real and imaginary parts are quads (__float128): the product of two
 * doubles is exact in a quad, and when two such products cancel enough digits
 * are left for a double.  Finite operands give parts that are right to well
 * below a double's last place (docs/numerics.md says where not); operands with
 * infinities and NaNs give what Annex G of the C standard says. */
#ifndef HLO_COMPLEX_H
#define HLO_COMPLEX_H

#include "hlo_scalar.h"

typedef __float128 hlo_quad;
typedef struct { hlo_quad re, im; } hlo_cplx;

/* t: c64 or c128 */
hlo_cplx hlo_cplx_load(sd_dtype t, const void *p);
void hlo_cplx_store(sd_dtype t, hlo_cplx v, void *p);
void hlo_quad_store(sd_dtype part, hlo_quad v, void *p); /* f32 or f64 */

hlo_cplx c_abs(hlo_cplx a); /* this and the next two: in the real part */
hlo_cplx c_real(hlo_cplx a);
hlo_cplx c_imag(hlo_cplx a);
hlo_cplx c_negate(hlo_cplx a);
hlo_cplx c_sign(hlo_cplx a);
hlo_cplx c_sqrt(hlo_cplx a);
hlo_cplx c_rsqrt(hlo_cplx a);
hlo_cplx c_cbrt(hlo_cplx a);
hlo_cplx c_exp(hlo_cplx a);
hlo_cplx c_expm1(hlo_cplx a);
hlo_cplx c_log(hlo_cplx a);
hlo_cplx c_log1p(hlo_cplx a);
hlo_cplx c_logistic(hlo_cplx a);
hlo_cplx c_sin(hlo_cplx a);
hlo_cplx c_cos(hlo_cplx a);
hlo_cplx c_tan(hlo_cplx a);
hlo_cplx c_tanh(hlo_cplx a);
hlo_cplx c_add(hlo_cplx a, hlo_cplx b);
hlo_cplx c_subtract(hlo_cplx a, hlo_cplx b);
hlo_cplx c_multiply(hlo_cplx a, hlo_cplx b);
hlo_cplx c_divide(hlo_cplx a, hlo_cplx b);
hlo_cplx c_maximum(hlo_cplx a, hlo_cplx b); /* by real part, then imaginary */
hlo_cplx c_minimum(hlo_cplx a, hlo_cplx b);
hlo_cplx c_power(hlo_cplx a, hlo_cplx b);
hlo_cplx c_atan2(hlo_cplx a, hlo_cplx b);

#endif
