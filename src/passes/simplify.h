/* The rules of hlo_opt_simplify for ops that move data, in simplify_shape.c, for
 * scatters, in simplify_scatter.c, for conversions, in simplify_convert.c, and
 * for products, in simplify_product.c, and by what operands can be, in
 * simplify_range.c: each gives what an instruction of that op may be replaced
 * by, or NULL. */
#ifndef SIMPLIFY_H
#define SIMPLIFY_H

#include "passes_priv.h"

hlo_inst *simplify_constant(hlo_inst *in);
hlo_inst *simplify_broadcast(hlo_inst *in);
hlo_inst *simplify_reshape(hlo_inst *in);
hlo_inst *simplify_bitcast(hlo_inst *in);
hlo_inst *simplify_transpose(hlo_inst *in);
hlo_inst *simplify_reverse(hlo_inst *in);
hlo_inst *simplify_slice(hlo_inst *in);
hlo_inst *simplify_pad(hlo_inst *in);
hlo_inst *simplify_concatenate(hlo_inst *in);
hlo_inst *simplify_copy(hlo_inst *in);
hlo_inst *simplify_dynamic_slice(hlo_inst *in);
hlo_inst *simplify_dynamic_update_slice(hlo_inst *in);
hlo_inst *simplify_scatter(hlo_inst *in);
hlo_inst *simplify_convert(hlo_inst *in);
hlo_inst *simplify_bitcast_convert(hlo_inst *in);
hlo_inst *simplify_part_of_complex(hlo_inst *in); /* real, imag */
hlo_inst *simplify_complex(hlo_inst *in);
hlo_inst *simplify_dot(hlo_inst *in);
hlo_inst *simplify_convolution(hlo_inst *in);
hlo_inst *simplify_known_compare(hlo_inst *in);
hlo_inst *simplify_floor_division(hlo_inst *in); /* and */
hlo_inst *simplify_small_quotient(hlo_inst *in); /* divide, remainder */
hlo_inst *simplify_known_sign(hlo_inst *in);     /* sign, abs */
hlo_inst *simplify_known_extreme(hlo_inst *in);  /* maximum, minimum */
hlo_inst *simplify_small_power(hlo_inst *in);

#endif
