/* The value that a reduction may begin with, since combining it with x gives x,
 * bit by bit: -0 for sums of floats. */
#include "emit.h"

static bool real_identity(emit *e, int op, sd_dtype t, LLVMValueRef *out)
{
    LLVMTypeRef type = emit_type(e, t);
    bool f = sd_is_float(t), s = sd_is_signed(t);
    int bits = sd_dtype_table[t].bits;
    uint64_t top = (uint64_t)1 << (bits - 1);
    uint64_t all = top | (top - 1), bytes;
    double inf = __builtin_inf();

    bytes = s && bits < 8 ? ~(top - 1) & 0xff : top; /* the least, in i8 */
    switch (op) {
    case HLO_ADD:
        *out = f ? LLVMConstReal(type, -0.0) : LLVMConstInt(type, 0, 0);
        return true;
    case HLO_MULTIPLY:
        *out = f ? LLVMConstReal(type, 1.0) : LLVMConstInt(type, 1, 0);
        return true;
    case HLO_MAXIMUM:
        *out = f ? LLVMConstReal(type, -inf)
                 : LLVMConstInt(type, s ? bytes : 0, 0);
        return true;
    case HLO_MINIMUM:
        *out = f ? LLVMConstReal(type, inf)
                 : LLVMConstInt(type, s ? top - 1 : all, 0);
        return true;
    case HLO_OR:
    case HLO_XOR:
        *out = LLVMConstInt(type, 0, 0);
        return !f;
    case HLO_AND:
        *out = LLVMConstInt(type, s && bits < 8 ? 0xff : all, 0);
        return !f;
    default:
        return false;
    }
}

static bool body_identity(emit *e, const plan_body *body, sd_dtype t,
                          emit_value *out)
{
    out->im = NULL;
    if (body->op < 0 || body->nroot != 1 || emit_is_narrow_float(t))
        return false;
    if (!sd_is_complex(t))
        return real_identity(e, body->op, t, &out->re);
    if (body->op != HLO_ADD)
        return false;
    real_identity(e, HLO_ADD, sd_dtype_part(t), &out->re);
    out->im = out->re;
    return true;
}

bool emit_identity(emit *e, const plan_node *n, emit_value *out)
{
    return n->kind == PN_REDUCE && n->nout == 1 &&
           body_identity(e, n->body, n->arg[0]->dtype, out);
}
