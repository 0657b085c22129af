/* CHLO's operations, which only text brings: JAX prints them, and what sends
 * bytecode has them expanded.  Those that HLO has, or says in two words. */
#include "vhlo_import.h"

void op_square(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    hlo_inst *two[2] = {arg[0], arg[0]};
    const sd_shape *s = vhlo_shape(im, op);

    if (s)
        vhlo_bind(im, op, vhlo_emit(im, HLO_MULTIPLY, s, 2, two));
}

void op_conj(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op), *part;
    hlo_inst *two[2];

    if (!s)
        return;
    if (sd_dtype_kind(s->dtype) != SD_K_COMPLEX) {
        op->result[0].inst = arg[0];
        return;
    }
    part = sd_shape_with(im->a, s, sd_dtype_part(s->dtype));
    two[0] = vhlo_emit(im, HLO_REAL, part, 1, arg);
    two[1] = vhlo_emit(im, HLO_IMAG, part, 1, arg);
    two[1] = vhlo_emit(im, HLO_NEGATE, part, 1, &two[1]);
    vhlo_bind(im, op, vhlo_emit(im, HLO_COMPLEX, s, 2, two));
}

void op_top_k(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);
    int64_t k = vhlo_int(im, op, "k");
    hlo_inst *in;

    if (!s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_TOPK, s, 1, arg);
    in->dims = hlo_dims_copy(im->a, &k, 1);
    in->u.sort.stable = true;
    vhlo_bind(im, op, in);
}
