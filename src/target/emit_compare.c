/* Comparisons, the total order of floats among them. */
#include "emit.h"

LLVMTypeRef emit_int_type_like(emit *e, LLVMValueRef x, sd_dtype t)
{
    return emit_widen(t == SD_F64 ? e->i64 : e->i32, emit_width(x));
}

static bool nan_for_minus_zero(sd_dtype t)
{
    return t == SD_F8E4M3FNUZ || t == SD_F8E5M2FNUZ || t == SD_F8E4M3B11FNUZ;
}

/* Bits as integers that compare, signed, in the total order. */
static LLVMValueRef total_key(emit *e, LLVMValueRef x, sd_dtype t)
{
    int bits = sd_dtype_table[t].bits;
    LLVMValueRef sign, key, nan;

    if (!emit_is_narrow_float(t))
        x = emit_as(e, x, emit_int_type_like(e, x, t));
    if (bits < 8) {
        x = emit_shl(e, x, emit_int_like(x, 8 - bits));
        bits = 8;
    }
    sign = LLVMBuildAShr(e->b, x, emit_int_like(x, bits - 1), "");
    key = emit_shr(e, sign, emit_int_like(x, 1));
    key = emit_xor(e, x, key);
    if (!nan_for_minus_zero(t))
        return key;
    /* what would be -0 is the least, and those above it move up by one */
    nan = emit_equal(e, x, emit_int_like(x, -128));
    return emit_select(e, nan, x, emit_minus(e, key, sign));
}

LLVMValueRef emit_order_code(emit *e, LLVMValueRef x, sd_dtype t)
{
    int bits = SD_MAX(sd_dtype_table[t].bits, 8);
    LLVMTypeRef type =
        emit_widen(LLVMIntTypeInContext(e->cx, (unsigned)bits), emit_width(x));
    bool is_signed = sd_is_signed(t);

    if (sd_is_float(t) && t != SD_F8E8M0FNU) {
        x = total_key(e, x, t);
        is_signed = true;
    }
    x = LLVMBuildIntCast2(e->b, x, type, is_signed, "");
    if (!is_signed)
        return x;
    return emit_xor(e, x,
                    emit_int_like(x, (int64_t)(~UINT64_C(0) << (bits - 1))));
}

static LLVMValueRef compare_int(emit *e, int dir, bool s, LLVMValueRef x,
                                LLVMValueRef y)
{
    static const LLVMIntPredicate how[2][6] = {
        {LLVMIntEQ, LLVMIntNE, LLVMIntUGE, LLVMIntUGT, LLVMIntULE, LLVMIntULT},
        {LLVMIntEQ, LLVMIntNE, LLVMIntSGE, LLVMIntSGT, LLVMIntSLE, LLVMIntSLT}};

    return LLVMBuildICmp(e->b, how[s][dir], x, y, "");
}

static LLVMValueRef compare_float(emit *e, int dir, LLVMValueRef x,
                                  LLVMValueRef y)
{
    static const LLVMRealPredicate how[6] = {LLVMRealOEQ, LLVMRealUNE,
                                             LLVMRealOGE, LLVMRealOGT,
                                             LLVMRealOLE, LLVMRealOLT};

    return LLVMBuildFCmp(e->b, how[dir], x, y, "");
}

LLVMValueRef emit_compare(emit *e, int dir, int type, emit_value x,
                          emit_value y, sd_dtype t)
{
    LLVMValueRef re, im;

    if (sd_is_complex(t)) { /* EQ and NE only */
        re = compare_float(e, dir, x.re, y.re);
        im = compare_float(e, dir, x.im, y.im);
        return dir == HLO_NE ? emit_or(e, re, im) : emit_and(e, re, im);
    }
    if (!sd_is_float(t))
        return compare_int(e, dir, sd_is_signed(t), x.re, y.re);
    if (type == HLO_CMP_TOTAL)
        return compare_int(e, dir, t != SD_F8E8M0FNU,
                           t == SD_F8E8M0FNU ? x.re : total_key(e, x.re, t),
                           t == SD_F8E8M0FNU ? y.re : total_key(e, y.re, t));
    if (emit_is_narrow_float(t)) {
        x.re = emit_to_f32(e, x.re, t);
        y.re = emit_to_f32(e, y.re, t);
    }
    return compare_float(e, dir, x.re, y.re);
}
