/* Conversions between element types.
 *
 * Narrow floats go through f32, whose values hold all of theirs.  On the way
 * in, what f32 cannot hold is first rounded to odd (the last bit is set when
 * anything was cut off): rounding that again gives what rounding once would
 * (Boldo and Melquiond, "When double rounding is odd"). */
#include "emit.h"

static LLVMTypeRef like_width(LLVMTypeRef t, LLVMValueRef v)
{
    return emit_widen(t, emit_width(v));
}

/* Sub-byte integers live in i8: made what their bits say. */
LLVMValueRef emit_wrap(emit *e, LLVMValueRef x, sd_dtype t)
{
    int bits = sd_dtype_table[t].bits;

    if (!sd_is_int(t) || bits >= 8)
        return x;
    if (!sd_is_signed(t))
        return emit_and(e, x, emit_int_like(x, (1 << bits) - 1));
    x = emit_shl(e, x, emit_int_like(x, 8 - bits));
    return LLVMBuildAShr(e->b, x, emit_int_like(x, 8 - bits), "");
}

/* ---- narrow floats ---- */

/* The f32 bits whose upper half x is, where x was just cut out of them; NULL
 * where it was not.  Constants are unique, so equal ones are one pointer. */
static LLVMValueRef upper_half_of(LLVMValueRef x)
{
    LLVMValueRef shift = LLVMIsATruncInst(x) ? LLVMGetOperand(x, 0) : NULL;

    if (!shift || !LLVMIsAInstruction(shift) ||
        LLVMGetInstructionOpcode(shift) != LLVMLShr ||
        LLVMGetOperand(shift, 1) != emit_int_like(shift, 16))
        return NULL;
    return LLVMGetOperand(shift, 0);
}

/* What is rounded in a register does not go through its 16 bits.  Where there
 * are instructions for bf16, LLVM makes one of both conversions and what is
 * between them, if the rounded result is the same. */
static LLVMValueRef bf16_to_f32(emit *e, LLVMValueRef x)
{
    LLVMValueRef r = upper_half_of(x);

    if (e->abi && e->abi->bf16)
        return LLVMBuildFPExt(
            e->b, emit_as(e, x, LLVMBFloatTypeInContext(e->cx)), e->f32, "");
    if (r) {
        x = emit_and(e, r, emit_int_like(r, 0xffff0000));
    } else {
        x = emit_zext(e, x, like_width(e->i32, x));
        x = emit_shl(e, x, emit_int_like(x, 16));
    }
    return emit_as(e, x, like_width(e->f32, x));
}

/* ---- NaNs that may be rounded like numbers ---- */

static unsigned widened_kind(emit *e)
{
    static const char name[] = "sundog.widened";

    return LLVMGetMDKindIDInContext(e->cx, name, sizeof name - 1);
}

/* What is read again was bf16 widened when it was put away. */
void emit_note_widened(emit *e, LLVMValueRef v)
{
    LLVMMetadataRef none = LLVMMDNodeInContext2(e->cx, NULL, 0);

    if (!e->gpu && LLVMIsAInstruction(v))
        LLVMSetMetadata(v, widened_kind(e), LLVMMetadataAsValue(e->cx, none));
}

/* Is v bf16 widened again, or an integer, so that no NaN has lower bits? */
static bool is_source(emit *e, LLVMValueRef v)
{
    LLVMValueRef x;

    if (LLVMGetMetadata(v, widened_kind(e)))
        return true;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMSIToFP:
    case LLVMUIToFP:
        return true;
    case LLVMBitCast:
        x = LLVMGetOperand(v, 0);
        if (!LLVMIsAInstruction(x))
            return false;
        return (LLVMGetInstructionOpcode(x) == LLVMShl &&
                LLVMGetOperand(x, 1) == emit_int_like(x, 16)) ||
               (LLVMGetInstructionOpcode(x) == LLVMAnd &&
                LLVMGetOperand(x, 1) == emit_int_like(x, 0xffff0000));
    default:
        return false;
    }
}

/* How many of v's first operands its NaNs come from; those after `*from`. */
static int nan_operands(LLVMValueRef v, int *from)
{
    static const char *const known[] = {"dl_", "llvm.fabs", "llvm.sqrt",
                                        "llvm.maximum", "llvm.minimum"};
    const char *name;
    size_t len;

    *from = 0;
    switch (LLVMGetInstructionOpcode(v)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv:
    case LLVMInsertElement:
    case LLVMShuffleVector:
        return 2;
    case LLVMFNeg:
    case LLVMExtractElement:
        return 1;
    case LLVMSelect:
        *from = 1;
        return 2;
    case LLVMCall:
        name = LLVMGetValueName2(LLVMGetCalledValue(v), &len);
        for (size_t i = 0; i < SD_COUNTOF(known); i++)
            if (!strncmp(name, known[i], strlen(known[i])))
                return (int)LLVMGetNumArgOperands(v);
        return 0;
    default:
        return 0;
    }
}

/* Adding just under half to the bits of a NaN gives no NaN where its upper
 * seven digits are all ones and the 17th is one too.  No NaN is like that which
 * x86's arithmetic and the device library make of bf16 values: they hand on an
 * operand's, whose lower half is zero, or make 0x7fc00000 (test_devlib asks
 * each function).  Looks at no more than `*left` values. */
static bool has_plain_nans(emit *e, LLVMValueRef v, int *left)
{
    int n, from;

    if (e->gpu || --*left < 0)
        return false;
    if (LLVMIsPoison(v)) /* the lanes before a splat */
        return true;
    if (LLVMIsNull(v)) /* of a narrow type as well: a short vector's rest */
        return true;
    if (LLVMIsConstant(v))
        return LLVMTypeOf(v) == like_width(e->f32, v) &&
               LLVMIsNull(LLVMBuildFCmp(e->b, LLVMRealUNO, v, v, ""));
    if (!LLVMIsAInstruction(v))
        return false;
    if (is_source(e, v))
        return true;
    n = nan_operands(v, &from);
    for (int i = from; i < from + n; i++)
        if (!has_plain_nans(e, LLVMGetOperand(v, (unsigned)i), left))
            return false;
    return n > 0;
}

/* Nearest even by adding just under half; NaNs are cut and made quiet. */
static LLVMValueRef bf16_of_f32(emit *e, LLVMValueRef x)
{
    LLVMValueRef u = emit_as(e, x, like_width(e->i32, x));
    LLVMValueRef odd = emit_shr(e, u, emit_int_like(u, 16));
    LLVMValueRef r = emit_sum(e, u, emit_int_like(u, 0x7fff)), nan;
    int left = 24;

    odd = emit_and(e, odd, emit_int_like(u, 1));
    r = emit_sum(e, r, odd);
    if (!has_plain_nans(e, x, &left)) {
        nan = emit_or(e, u, emit_int_like(u, 0x400000));
        r = emit_select(e, LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, ""), nan, r);
    }
    r = emit_shr(e, r, emit_int_like(u, 16));
    return emit_trunc(e, r, like_width(e->i16, r));
}

static LLVMTypeRef half(emit *e)
{
    return LLVMHalfTypeInContext(e->cx);
}

LLVMValueRef emit_to_f32(emit *e, LLVMValueRef x, sd_dtype from)
{
    if (from == SD_BF16)
        return bf16_to_f32(e, x);
    if (from == SD_F16 && e->gpu) /* every GPU has an instruction for it */
        return LLVMBuildFPExt(e->b, emit_as(e, x, half(e)), e->f32, "");
    return emit_devlib(e,
                       sd_arena_fmt(e->a, "dl_%s_to_f32", sd_dtype_name(from)),
                       e->f32, &x, 1);
}

static LLVMValueRef narrow_of_f32(emit *e, LLVMValueRef x, sd_dtype to)
{
    if (to == SD_BF16 && e->abi && e->abi->bf16)
        return emit_as(
            e, LLVMBuildFPTrunc(e->b, x, LLVMBFloatTypeInContext(e->cx), ""),
            e->i16);
    if (to == SD_BF16)
        return bf16_of_f32(e, x);
    if (to == SD_F16 && e->gpu)
        return emit_as(e, LLVMBuildFPTrunc(e->b, x, half(e), ""), e->i16);
    return emit_devlib(e, sd_arena_fmt(e->a, "dl_f32_to_%s", sd_dtype_name(to)),
                       emit_type(e, to), &x, 1);
}

/* f64 to f32 rounded to odd: where the nearest one is larger than x, one bit
 * less; where it is not x, the last bit set. */
static LLVMValueRef f32_odd_of_f64(emit *e, LLVMValueRef x)
{
    LLVMTypeRef f64 = like_width(e->f64, x), i32 = like_width(e->i32, x);
    LLVMValueRef f = LLVMBuildFPTrunc(e->b, x, like_width(e->f32, x), "");
    LLVMValueRef back = LLVMBuildFPExt(e->b, f, f64, "");
    LLVMValueRef u = emit_as(e, f, i32), a[2], more, odd;

    a[0] = emit_intrinsic(e, "llvm.fabs", f64, &back, 1);
    a[1] = emit_intrinsic(e, "llvm.fabs", f64, &x, 1);
    more = LLVMBuildFCmp(e->b, LLVMRealOGT, a[0], a[1], "");
    odd = emit_minus(e, u, emit_zext(e, more, i32));
    odd = emit_or(e, odd, emit_int_like(odd, 1));
    u = emit_select(e, LLVMBuildFCmp(e->b, LLVMRealONE, back, x, ""), odd, u);
    return emit_as(e, u, like_width(e->f32, x));
}

/* An integer as f32, rounded to odd: keep 24 bits below the highest, with all
 * that is cut off gathered in the last, and scale by a power of two. */
static LLVMValueRef f32_odd_of_int(emit *e, LLVMValueRef x, bool is_signed)
{
    LLVMTypeRef t = LLVMTypeOf(x), i32 = like_width(e->i32, x);
    int bits =
        (int)LLVMGetIntTypeWidth(emit_width(x) > 1 ? LLVMGetElementType(t) : t);
    LLVMValueRef zero = emit_int_like(x, 0), one = emit_int_like(x, 1);
    LLVMValueRef neg = NULL, mag = x, sh, y, rest, f, scale;
    LLVMValueRef arg[2];

    if (is_signed) {
        neg = emit_below(e, x, zero);
        mag = emit_select(e, neg, LLVMBuildNeg(e->b, x, ""), x);
    }
    arg[0] = mag;
    arg[1] = emit_bool(e, false);
    sh = emit_intrinsic(e, "llvm.ctlz", t, arg, 2);
    sh = emit_minus(e, emit_int_like(x, bits - 24), sh);
    arg[0] = sh;
    arg[1] = zero;
    sh = emit_intrinsic(e, "llvm.smax", t, arg, 2);
    y = emit_shr(e, mag, sh);
    rest = emit_minus(e, emit_shl(e, one, sh), one);
    rest = emit_and(e, mag, rest);
    rest = emit_unequal(e, rest, zero);
    y = emit_or(e, y, emit_zext(e, rest, t));
    if (bits != 32) {
        y = emit_trunc(e, y, i32);
        sh = emit_trunc(e, sh, i32);
    }
    f = LLVMBuildSIToFP(e->b, y, like_width(e->f32, x), "");
    scale = emit_sum(e, sh, emit_int_like(sh, 127));
    scale = emit_shl(e, scale, emit_int_like(scale, 23));
    f = LLVMBuildFMul(e->b, f, emit_as(e, scale, like_width(e->f32, x)), "");
    return neg ? emit_select(e, neg, LLVMBuildFNeg(e->b, f, ""), f) : f;
}

/* ---- between kinds ---- */

static LLVMValueRef resize_int(emit *e, LLVMValueRef x, sd_dtype from,
                               sd_dtype to)
{
    LLVMTypeRef t = like_width(emit_type(e, to), x);
    size_t fb = sd_dtype_bytes(from), tb = sd_dtype_bytes(to);

    if (fb > tb)
        x = emit_trunc(e, x, t);
    else if (fb < tb)
        x = sd_is_signed(from) ? LLVMBuildSExt(e->b, x, t, "")
                               : emit_zext(e, x, t);
    return emit_wrap(e, x, to);
}

/* Toward zero; out of range goes to the nearest end, NaN to 0. */
static LLVMValueRef int_of_float(emit *e, LLVMValueRef x, sd_dtype to)
{
    int bits = sd_dtype_table[to].bits;
    bool s = sd_is_signed(to);
    LLVMTypeRef t = like_width(emit_type(e, to), x);
    double top = __builtin_ldexp(1.0, s ? bits - 1 : bits);
    int64_t max = s ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                    : (int64_t)(~(uint64_t)0 >> (64 - bits));
    int64_t min = s ? -max - 1 : 0;
    LLVMValueRef high =
        LLVMBuildFCmp(e->b, LLVMRealOGE, x, emit_fp_like(x, top), "");
    LLVMValueRef low = LLVMBuildFCmp(e->b, LLVMRealOLT, x,
                                     emit_fp_like(x, s ? -top : 0.0), "");
    LLVMValueRef nan = LLVMBuildFCmp(e->b, LLVMRealUNO, x, x, ""), out, r;

    out = emit_or(e, emit_or(e, high, low), nan);
    x = emit_select(e, out, emit_fp_like(x, 0.0), x);
    r = s ? LLVMBuildFPToSI(e->b, x, t, "") : LLVMBuildFPToUI(e->b, x, t, "");
    r = emit_select(e, high, emit_int_like(r, max), r);
    return s ? emit_select(e, low, emit_int_like(r, min), r) : r;
}

static LLVMValueRef float_of(emit *e, LLVMValueRef x, sd_dtype from,
                             sd_dtype to)
{
    LLVMTypeRef t = like_width(emit_type(e, to), x);

    if (from == SD_PRED)
        return LLVMBuildUIToFP(e->b, x, t, "");
    if (sd_is_int(from))
        return sd_is_signed(from) ? LLVMBuildSIToFP(e->b, x, t, "")
                                  : LLVMBuildUIToFP(e->b, x, t, "");
    if (from == to)
        return x;
    return to == SD_F64 ? LLVMBuildFPExt(e->b, x, t, "")
                        : LLVMBuildFPTrunc(e->b, x, t, "");
}

static LLVMValueRef narrow_of(emit *e, LLVMValueRef x, sd_dtype from,
                              sd_dtype to)
{
    if (from == SD_F64)
        x = f32_odd_of_f64(e, x);
    else if (sd_is_int(from) && sd_dtype_table[from].bits > 24)
        x = f32_odd_of_int(e, x, sd_is_signed(from));
    else
        x = float_of(e, x, from, SD_F32);
    return narrow_of_f32(e, x, to);
}

static LLVMValueRef pred_of(emit *e, LLVMValueRef x, sd_dtype from)
{
    if (sd_is_int(from))
        return emit_unequal(e, x, emit_int_like(x, 0));
    return LLVMBuildFCmp(e->b, LLVMRealUNE, x, emit_fp_like(x, 0.0), "");
}

static LLVMValueRef convert_part(emit *e, LLVMValueRef x, sd_dtype from,
                                 sd_dtype to)
{
    if (from == to)
        return x;
    if (emit_is_narrow_float(from)) {
        x = emit_to_f32(e, x, from);
        from = SD_F32;
        if (to == SD_F32)
            return x;
    }
    if (to == SD_PRED)
        return pred_of(e, x, from);
    if (emit_is_narrow_float(to))
        return narrow_of(e, x, from, to);
    if (!sd_is_int(to))
        return float_of(e, x, from, to);
    if (from == SD_PRED)
        return emit_zext(e, x, like_width(emit_type(e, to), x));
    if (sd_is_int(from))
        return resize_int(e, x, from, to);
    return int_of_float(e, x, to);
}

emit_value emit_convert(emit *e, emit_value x, sd_dtype from, sd_dtype to)
{
    sd_dtype f = sd_dtype_part(from), t = sd_dtype_part(to);
    emit_value v = {NULL, NULL};

    if (to == SD_PRED && x.im) {
        v.re = emit_or(e, pred_of(e, x.re, f), pred_of(e, x.im, f));
        return v;
    }
    v.re = convert_part(e, x.re, f, t);
    if (sd_is_complex(to))
        v.im = x.im ? convert_part(e, x.im, f, t) : emit_fp_like(v.re, 0.0);
    return v;
}
