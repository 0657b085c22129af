/* One element of each elementwise op, or a vector of them, as StableHLO
 * defines it.  A table by op: a function that makes the value of one part.
 * Nothing here branches, so that code can be put at any level. */
#include "emit.h"

typedef struct {
    emit *e;
    LLVMBuilderRef b;
    int op;
    const hlo_inst *in;
    sd_dtype t; /* of operand 0; of a complex one: of its parts */
    LLVMTypeRef type;
} elt;
typedef LLVMValueRef (*elt_fn)(elt *p, LLVMValueRef *x);

static bool is_float(const elt *p)
{
    return p->t == SD_F32 || p->t == SD_F64;
}

static int bits_of(const elt *p)
{
    return sd_dtype_table[p->t].bits;
}

/* The passes leave no such op: hlo_optimize refuses what it cannot lower. */
static void has_no_code(emit *e, int op, sd_dtype t)
{
    emit_fail(e, sd_error(SD_INTERNAL, "no code for %s of %s",
                          hlo_op_table[op].name, sd_dtype_name(t)));
}

static LLVMValueRef wrapped(elt *p, LLVMValueRef v)
{
    return emit_wrap(p->e, v, p->t);
}

/* ---- arithmetic ---- */

/* What is one instruction, an LLVMOpcode (0: is not): of floats, of integers,
 * of truths. */
static const struct {
    uint8_t f, i, pred;
} plain[HLO_OP_COUNT] = {
    [HLO_ADD] = {LLVMFAdd, LLVMAdd, LLVMOr},
    [HLO_SUBTRACT] = {LLVMFSub, LLVMSub, LLVMSub},
    [HLO_MULTIPLY] = {LLVMFMul, LLVMMul, LLVMAnd},
    [HLO_DIVIDE] = {.f = LLVMFDiv},
    [HLO_AND] = {.i = LLVMAnd, .pred = LLVMAnd},
    [HLO_OR] = {.i = LLVMOr, .pred = LLVMOr},
    [HLO_XOR] = {.i = LLVMXor, .pred = LLVMXor},
};

static LLVMValueRef do_plain(elt *p, LLVMValueRef *x)
{
    LLVMOpcode op = is_float(p)       ? plain[p->op].f
                    : p->t == SD_PRED ? plain[p->op].pred
                                      : plain[p->op].i;
    LLVMValueRef v = LLVMBuildBinOp(p->b, op, x[0], x[1], "");

    return plain[p->op].f ? wrapped(p, v) : v; /* bits stay within the width */
}

/* x / 0 is all ones and x % 0 is x; the least by -1 is itself, rest 0. */
static LLVMValueRef int_divide(elt *p, LLVMValueRef *x, bool rest)
{
    emit *e = p->e;
    LLVMValueRef zero =
        LLVMBuildICmp(p->b, LLVMIntEQ, x[1], emit_int_like(x[1], 0), "");
    LLVMValueRef one = emit_int_like(x[1], 1), bad = zero, by, q;
    bool s = sd_is_signed(p->t);
    LLVMOpcode op = s ? LLVMSDiv : LLVMUDiv;

    if (s) {
        int64_t least = (int64_t)(UINT64_MAX << (bits_of(p) - 1));
        LLVMValueRef a = LLVMBuildICmp(p->b, LLVMIntEQ, x[0],
                                       emit_int_like(x[0], least), "");
        LLVMValueRef b =
            LLVMBuildICmp(p->b, LLVMIntEQ, x[1], emit_int_like(x[1], -1), "");

        bad = LLVMBuildOr(p->b, zero, LLVMBuildAnd(p->b, a, b, ""), "");
    }
    by = emit_select(e, bad, one, x[1]);
    if (rest)
        op = s ? LLVMSRem : LLVMURem;
    q = LLVMBuildBinOp(p->b, op, x[0], by, "");
    q = emit_select(e, zero, rest ? x[0] : emit_int_like(q, -1), q);
    return wrapped(p, q);
}

static LLVMValueRef do_div(elt *p, LLVMValueRef *x)
{
    return is_float(p) ? do_plain(p, x) : int_divide(p, x, false);
}

/* By the device function that the op's row names. */
static LLVMValueRef from_devlib(elt *p, LLVMValueRef *x)
{
    const hlo_op_info *op = &hlo_op_table[p->op];
    emit *e = p->e;

    if (!is_float(p)) {
        has_no_code(e, p->op, p->t);
        return x[0];
    }
    return emit_devlib(
        e, sd_arena_fmt(e->a, "dl_%s_%s", op->fn, sd_dtype_name(p->t)),
        emit_type(e, p->t), x, op->cls == HLO_C_BINARY ? 2 : 1);
}

static LLVMValueRef do_rem(elt *p, LLVMValueRef *x)
{
    LLVMValueRef v;

    if (!is_float(p))
        return int_divide(p, x, true);
    v = emit_float_rest(p->e, x[0], x[1]);
    return v ? v : from_devlib(p, x);
}

/* r, or a NaN where x or y is one. */
static LLVMValueRef or_nan(emit *e, LLVMValueRef x, LLVMValueRef y,
                           LLVMValueRef r)
{
    return emit_select(e, LLVMBuildFCmp(e->b, LLVMRealUNO, x, y, ""),
                       LLVMBuildFAdd(e->b, x, y, ""), r);
}

static LLVMValueRef call_range(emit *e, bool max, LLVMValueRef x,
                               LLVMValueRef y)
{
    int w = emit_width(x), n = w == 16 ? 6 : 5;
    LLVMTypeRef v = LLVMTypeOf(x), m = w == 16 ? e->i16 : e->i8;
    LLVMTypeRef t[6] = {v, v, e->i32, v, m, e->i32};
    LLVMTypeRef ft = LLVMFunctionType(v, t, (unsigned)n, 0);
    LLVMValueRef a[6] = {x,
                         y,
                         LLVMConstInt(e->i32, max ? 5 : 4, 0),
                         LLVMGetPoison(v),
                         LLVMConstAllOnes(m),
                         LLVMConstInt(e->i32, 4, 0)};
    const char *name =
        sd_arena_fmt(e->a, "llvm.x86.avx512.mask.range.ps.%d", 32 * w);
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name);

    if (!fn)
        fn = LLVMAddFunction(e->m, name, ft);
    return LLVMBuildCall2(e->b, ft, fn, a, (unsigned)n, "");
}

/* Up to four elements, the rest whatever is there: zeros would be put there,
 * by an instruction for each operand. */
static LLVMValueRef of_four(emit *e, LLVMValueRef x)
{
    int w = emit_width(x), lane[4] = {0, 1, 2, 2};

    if (w == 4)
        return x;
    if (w == 1)
        return emit_insert(e, LLVMGetPoison(emit_widen(LLVMTypeOf(x), 4)), x,
                           0);
    return emit_shuffle(e, x, NULL, lane, 4);
}

/* AVX-512 has an instruction that orders zeros and drops NaNs: with the NaNs
 * put back it is three, where llvm.maximum takes seven. */
static LLVMValueRef range_max_min(emit *e, bool max, LLVMValueRef x,
                                  LLVMValueRef y)
{
    int w = emit_width(x);
    LLVMValueRef r;

    if (w <= 4)
        r = emit_extract(e, call_range(e, max, of_four(e, x), of_four(e, y)), 0,
                         w);
    else
        r = call_range(e, max, x, y);
    return or_nan(e, x, y, r);
}

/* Of one element LLVM branches by the sign, which of few numbers is any.  Of
 * two zeros each order of operands gives the second, and bits that both have
 * are those of +0. */
static LLVMValueRef max_min_of_one(emit *e, bool max, LLVMValueRef x,
                                   LLVMValueRef y, sd_dtype t)
{
    LLVMRealPredicate p = max ? LLVMRealOGT : LLVMRealOLT;
    LLVMTypeRef it = emit_int_type_like(e, x, t);
    LLVMValueRef r[2];

    for (int i = 0; i < 2; i++) {
        LLVMValueRef u = i ? y : x, v = i ? x : y;

        r[i] = emit_select(e, LLVMBuildFCmp(e->b, p, u, v, ""), u, v);
        r[i] = emit_as(e, r[i], it);
    }
    r[0] = max ? emit_and(e, r[0], r[1]) : emit_or(e, r[0], r[1]);
    return or_nan(e, x, y, emit_as(e, r[0], LLVMTypeOf(x)));
}

static LLVMValueRef max_min(emit *e, bool max, LLVMValueRef x, LLVMValueRef y,
                            sd_dtype t)
{
    LLVMTypeRef it, ft = LLVMTypeOf(x);
    LLVMValueRef a[2] = {x, y}, r, same, z;

    if (t == SD_PRED)
        return max ? emit_or(e, x, y) : emit_and(e, x, y);
    if (sd_is_int(t))
        return emit_intrinsic(e,
                              sd_is_signed(t)
                                  ? (max ? "llvm.smax" : "llvm.smin")
                                  : (max ? "llvm.umax" : "llvm.umin"),
                              ft, a, 2);
    if (!e->gpu && e->vector_bits == 512 && t == SD_F32)
        return range_max_min(e, max, x, y);
    if (!e->gpu && emit_width(x) == 1)
        return max_min_of_one(e, max, x, y, t);
    if (!e->gpu || (e->abi->f32_maximum && ft == e->f32))
        return emit_intrinsic(e, max ? "llvm.maximum" : "llvm.minimum", ft, a,
                              2);
    /* OpenCL's fmax drops NaNs and does not order zeros. */
    it = emit_int_type_like(e, x, t);
    r = emit_select(
        e, LLVMBuildFCmp(e->b, max ? LLVMRealOGT : LLVMRealOLT, x, y, ""), x,
        y);
    a[0] = emit_as(e, x, it);
    a[1] = emit_as(e, y, it);
    z = max ? emit_and(e, a[0], a[1]) : emit_or(e, a[0], a[1]);
    same = LLVMBuildFCmp(e->b, LLVMRealOEQ, x, y, "");
    r = emit_select(e, same, emit_as(e, z, ft), r);
    return or_nan(e, x, y, r);
}

static LLVMValueRef do_max(elt *p, LLVMValueRef *x)
{
    return max_min(p->e, true, x[0], x[1], p->t);
}

static LLVMValueRef do_min(elt *p, LLVMValueRef *x)
{
    return max_min(p->e, false, x[0], x[1], p->t);
}

static LLVMValueRef do_clamp(elt *p, LLVMValueRef *x) /* low, value, high */
{
    LLVMValueRef v = max_min(p->e, true, x[0], x[1], p->t);

    return max_min(p->e, false, v, x[2], p->t);
}

static LLVMValueRef do_power(elt *p, LLVMValueRef *x)
{
    LLVMTypeRef t = LLVMTypeOf(x[0]), arg[2] = {t, t};
    LLVMValueRef fn, v;

    if (is_float(p))
        return from_devlib(p, x);
    fn = emit_power_function(p->e, t, p->t);
    v = LLVMBuildCall2(p->b, LLVMFunctionType(t, arg, 2, 0), fn, x, 2, "");
    LLVMSetInstructionCallConv(v, LLVMGetFunctionCallConv(fn));
    return wrapped(p, v);
}

/* ---- bits ---- */

static LLVMValueRef do_not(elt *p, LLVMValueRef *x)
{
    return wrapped(p, LLVMBuildNot(p->b, x[0], ""));
}

/* Amounts are unsigned; by the width or more all bits leave.  A negative amount
 * of less than 8 bits is sign-extended in its i8, so it is large too. */
static LLVMValueRef amount_fits(elt *p, LLVMValueRef n)
{
    return LLVMBuildICmp(p->b, LLVMIntULT, n, emit_int_like(n, bits_of(p)), "");
}

static LLVMValueRef low_bits(elt *p, LLVMValueRef x)
{
    int bits = bits_of(p);

    return bits < 8
               ? LLVMBuildAnd(p->b, x, emit_int_like(x, (1 << bits) - 1), "")
               : x;
}

static LLVMValueRef do_shl(elt *p, LLVMValueRef *x)
{
    LLVMValueRef ok = amount_fits(p, x[1]), zero = emit_int_like(x[0], 0);
    LLVMValueRef n = emit_select(p->e, ok, x[1], zero);

    return wrapped(
        p, emit_select(p->e, ok, LLVMBuildShl(p->b, x[0], n, ""), zero));
}

static LLVMValueRef do_shr_logic(elt *p, LLVMValueRef *x)
{
    LLVMValueRef ok = amount_fits(p, x[1]), zero = emit_int_like(x[0], 0);
    LLVMValueRef n = emit_select(p->e, ok, x[1], zero);
    LLVMValueRef v = LLVMBuildLShr(p->b, low_bits(p, x[0]), n, "");

    return wrapped(p, emit_select(p->e, ok, v, zero));
}

static LLVMValueRef do_shr_arith(elt *p, LLVMValueRef *x)
{
    LLVMValueRef ok = amount_fits(p, x[1]), v = x[0], n;

    if (bits_of(p) < 8 && !sd_is_signed(p->t)) { /* its top bit is a sign */
        v = LLVMBuildShl(p->b, v, emit_int_like(v, 8 - bits_of(p)), "");
        v = LLVMBuildAShr(p->b, v, emit_int_like(v, 8 - bits_of(p)), "");
    }
    n = emit_select(p->e, ok, x[1], emit_int_like(v, bits_of(p) - 1));
    return wrapped(p, LLVMBuildAShr(p->b, v, n, ""));
}

static LLVMValueRef do_popcnt(elt *p, LLVMValueRef *x)
{
    LLVMValueRef v = low_bits(p, x[0]);

    return wrapped(p, emit_intrinsic(p->e, "llvm.ctpop", p->type, &v, 1));
}

static LLVMValueRef do_clz(elt *p, LLVMValueRef *x)
{
    LLVMValueRef a[2] = {low_bits(p, x[0]), emit_bool(p->e, false)}, v;

    v = emit_intrinsic(p->e, "llvm.ctlz", p->type, a, 2);
    if (bits_of(p) < 8)
        v = LLVMBuildSub(p->b, v, emit_int_like(v, 8 - bits_of(p)), "");
    return wrapped(p, v);
}

/* ---- one operand ---- */

static LLVMValueRef do_abs(elt *p, LLVMValueRef *x)
{
    LLVMValueRef a[2] = {x[0], emit_bool(p->e, false)};

    if (is_float(p))
        return emit_intrinsic(p->e, "llvm.fabs", p->type, x, 1);
    if (!sd_is_signed(p->t))
        return x[0];
    return wrapped(p, emit_intrinsic(p->e, "llvm.abs", p->type, a, 2));
}

static LLVMValueRef do_neg(elt *p, LLVMValueRef *x)
{
    if (is_float(p))
        return LLVMBuildFNeg(p->b, x[0], "");
    return wrapped(p, LLVMBuildNeg(p->b, x[0], ""));
}

static LLVMValueRef do_sign(elt *p, LLVMValueRef *x)
{
    LLVMValueRef a[2], v, zero;

    if (is_float(p)) { /* zeros and NaNs are their own */
        a[0] = emit_fp_like(x[0], 1.0);
        a[1] = x[0];
        v = emit_intrinsic(p->e, "llvm.copysign", p->type, a, 2);
        return emit_select(
            p->e,
            LLVMBuildFCmp(p->b, LLVMRealUEQ, x[0], emit_fp_like(x[0], 0.0), ""),
            x[0], v);
    }
    zero = emit_int_like(x[0], 0);
    v = LLVMBuildICmp(p->b, sd_is_signed(p->t) ? LLVMIntSGT : LLVMIntUGT, x[0],
                      zero, "");
    v = LLVMBuildZExt(p->b, v, p->type, "");
    if (!sd_is_signed(p->t))
        return v;
    return LLVMBuildOr(
        p->b, v,
        LLVMBuildSExt(p->b, LLVMBuildICmp(p->b, LLVMIntSLT, x[0], zero, ""),
                      p->type, ""),
        "");
}

static LLVMValueRef do_round(elt *p, LLVMValueRef *x)
{
    const char *name = p->op == HLO_CEIL        ? "llvm.ceil"
                       : p->op == HLO_FLOOR     ? "llvm.floor"
                       : p->op == HLO_ROUND_AFZ ? "llvm.round"
                                                : "llvm.roundeven";

    return emit_intrinsic(p->e, name, p->type, x, 1);
}

static LLVMValueRef do_is_finite(elt *p, LLVMValueRef *x)
{
    LLVMValueRef a = emit_intrinsic(p->e, "llvm.fabs", p->type, x, 1);

    return LLVMBuildFCmp(p->b, LLVMRealOLT, a, emit_fp_like(a, __builtin_inf()),
                         "");
}

static LLVMValueRef do_sqrt(elt *p, LLVMValueRef *x)
{
    return emit_intrinsic(p->e, "llvm.sqrt", p->type, x, 1);
}

/* What has instructions, for some types at least; the rest is the device
 * library's, by the op table. */
static const elt_fn table[HLO_OP_COUNT] = {[HLO_ABS] = do_abs,
                                           [HLO_NEGATE] = do_neg,
                                           [HLO_SIGN] = do_sign,
                                           [HLO_CEIL] = do_round,
                                           [HLO_FLOOR] = do_round,
                                           [HLO_ROUND_AFZ] = do_round,
                                           [HLO_ROUND_EVEN] = do_round,
                                           [HLO_IS_FINITE] = do_is_finite,
                                           [HLO_NOT] = do_not,
                                           [HLO_POPCNT] = do_popcnt,
                                           [HLO_CLZ] = do_clz,
                                           [HLO_SQRT] = do_sqrt,
                                           [HLO_ADD] = do_plain,
                                           [HLO_SUBTRACT] = do_plain,
                                           [HLO_MULTIPLY] = do_plain,
                                           [HLO_DIVIDE] = do_div,
                                           [HLO_REMAINDER] = do_rem,
                                           [HLO_MAXIMUM] = do_max,
                                           [HLO_MINIMUM] = do_min,
                                           [HLO_POWER] = do_power,
                                           [HLO_AND] = do_plain,
                                           [HLO_OR] = do_plain,
                                           [HLO_XOR] = do_plain,
                                           [HLO_SHL] = do_shl,
                                           [HLO_SHR_ARITH] = do_shr_arith,
                                           [HLO_SHR_LOGIC] = do_shr_logic,
                                           [HLO_CLAMP] = do_clamp};

/* ---- complex ---- */

static emit_value complex_op(elt *p, const emit_value *x)
{
    emit_value v = {NULL, NULL};
    LLVMBuilderRef b = p->b;

    switch (p->op) {
    case HLO_ADD:
    case HLO_SUBTRACT:
        v.re = LLVMBuildBinOp(b, plain[p->op].f, x[0].re, x[1].re, "");
        v.im = LLVMBuildBinOp(b, plain[p->op].f, x[0].im, x[1].im, "");
        return v;
    case HLO_MULTIPLY:
        v.re = LLVMBuildFSub(b, LLVMBuildFMul(b, x[0].re, x[1].re, ""),
                             LLVMBuildFMul(b, x[0].im, x[1].im, ""), "");
        v.im = LLVMBuildFAdd(b, LLVMBuildFMul(b, x[0].re, x[1].im, ""),
                             LLVMBuildFMul(b, x[0].im, x[1].re, ""), "");
        return v;
    case HLO_NEGATE:
        v.re = LLVMBuildFNeg(b, x[0].re, "");
        v.im = LLVMBuildFNeg(b, x[0].im, "");
        return v;
    default:
        break;
    }
    has_no_code(p->e, p->op, sd_dtype_complex(p->t));
    return x[0];
}

static emit_value bitcast_value(emit *e, emit_value x, sd_dtype from,
                                sd_dtype to)
{
    emit_value v = {NULL, NULL};
    LLVMTypeRef t = emit_widen(emit_type(e, to), emit_width(x.re));

    assert(sd_dtype_bytes(from) == sd_dtype_bytes(to));
    if (from == to)
        return x;
    v.re = emit_as(e, x.re, t);
    /* f4 and u4 are plain bits, s4 is kept extended */
    v.re = emit_wrap(e, v.re, to);
    if (sd_dtype_table[to].bits < 8 && !sd_is_int(to))
        v.re = emit_and(
            e, v.re, emit_int_like(v.re, (1 << sd_dtype_table[to].bits) - 1));
    return v;
}

/* ---- all ---- */

/* Of a complex value, or of a real one, whose imaginary part is 0. */
static emit_value part_of(emit_value x, int op)
{
    emit_value v = {op == HLO_IMAG ? x.im : x.re, NULL};

    if (!v.re)
        v.re = emit_fp_like(x.re, 0.0);
    return v;
}

static emit_value one_op(elt *p, sd_dtype t, int narg, emit_value *arg)
{
    elt_fn fn = table[p->op];
    emit_value v = {NULL, NULL};
    LLVMValueRef x[8];

    if (sd_is_complex(t))
        return complex_op(p, arg);
    if (!fn && hlo_op_table[p->op].fn)
        fn = from_devlib;
    if (!fn || emit_is_narrow_float(t)) {
        has_no_code(p->e, p->op, t);
        return arg[0];
    }
    for (int i = 0; i < narg; i++)
        x[i] = arg[i].re;
    v.re = fn(p, x);
    return v;
}

static emit_value any_op(emit *e, int op, const hlo_inst *in, sd_dtype t,
                         int narg, const emit_value *given,
                         const sd_dtype *arg_t)
{
    emit_value arg[8], v = {NULL, NULL};
    int w = 1;
    elt p = {e, e->b, op, in, sd_dtype_part(arg_t[0]), NULL};

    if (op == HLO_SELECT) /* a scalar condition stays one */
        return emit_select_value(e, given[0].re, given[1], given[2]);
    for (int i = 0; i < narg; i++)
        w = SD_MAX(w, emit_width(given[i].re));
    for (int i = 0; i < narg; i++)
        arg[i] = emit_splat_value(e, given[i], w);
    p.type = LLVMTypeOf(arg[0].re);
    switch (op) {
    case HLO_CONVERT:
        return emit_convert(e, arg[0], arg_t[0], t);
    case HLO_BITCAST_CONVERT:
        return bitcast_value(e, arg[0], arg_t[0], t);
    case HLO_COPY:
        return arg[0];
    case HLO_COMPARE:
        v.re = emit_compare(e, in->u.compare.dir, in->u.compare.type, arg[0],
                            arg[1], arg_t[0]);
        return v;
    case HLO_REAL:
    case HLO_IMAG:
        return part_of(arg[0], op);
    case HLO_COMPLEX:
        return (emit_value){arg[0].re, arg[1].re};
    default:
        return one_op(&p, arg_t[0], narg, arg);
    }
}

emit_value emit_elt(emit *e, int op, const hlo_inst *in, sd_dtype t, int narg,
                    const emit_value *arg, const sd_dtype *arg_t)
{
    emit_value v = any_op(e, op, in, t, narg, arg, arg_t);

    /* after a failure the types of what came back say nothing */
    return e->st ? emit_poison(e, t, emit_width(v.re)) : v;
}

void emit_body(emit *e, const plan_body *body, const emit_value *arg,
               emit_value *root)
{
    emit_value *v = sd_arena_array(e->a, emit_value, body->nnode + 1);

    for (int i = 0; i < body->nnode; i++) {
        const plan_node *n = body->node[i];
        emit_value x[8];
        sd_dtype t[8];

        assert(n->id == i && n->narg <= 8);
        for (int j = 0; j < n->narg; j++) {
            x[j] = v[n->arg[j]->id];
            t[j] = n->arg[j]->dtype;
        }
        if (n->kind == PN_PARAM)
            v[i] = arg[n->out];
        else if (n->kind == PN_CONST)
            v[i] = emit_constant(e, n->dtype, n->value);
        else
            v[i] = emit_elt(e, n->op, n->in, n->dtype, n->narg, x, t);
    }
    for (int i = 0; i < body->nroot; i++)
        root[i] = v[body->root[i]->id];
}
