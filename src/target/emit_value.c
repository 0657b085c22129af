/* Types, constants and the small arithmetic that all emitters use.  Builder
 * calls fold constants, so nothing here looks for them.
 *
 * Registers: pred is i1; sub-byte integers are i8 and kept extended as their
 * sign says; narrow floats are their bits. */
#include "emit.h"

void emit_fail(emit *e, sd_status st)
{
    if (e->st)
        sd_status_free(st);
    else
        e->st = st;
}

emit_value emit_poison(emit *e, sd_dtype t, int w)
{
    emit_value v = {LLVMGetPoison(emit_widen(emit_type(e, t), w)), NULL};

    if (sd_is_complex(t))
        v.im = v.re;
    return v;
}

bool emit_is_narrow_float(sd_dtype t)
{
    return sd_is_float(t) && sd_dtype_table[t].bits < 32;
}

static LLVMTypeRef int_type(emit *e, size_t bytes)
{
    return bytes <= 1   ? e->i8
           : bytes == 2 ? e->i16
           : bytes == 4 ? e->i32
                        : e->i64;
}

LLVMTypeRef emit_type(emit *e, sd_dtype t)
{
    t = sd_dtype_part(t);
    if (t == SD_PRED)
        return e->i1;
    return emit_mem_type(e, t);
}

LLVMTypeRef emit_mem_type(emit *e, sd_dtype t)
{
    t = sd_dtype_part(t);
    if (t == SD_F32)
        return e->f32;
    if (t == SD_F64)
        return e->f64;
    return int_type(e, sd_dtype_bytes(t));
}

LLVMTypeRef emit_widen(LLVMTypeRef t, int w)
{
    return w == 1 ? t : LLVMVectorType(t, (unsigned)w);
}

int emit_width(LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(v);

    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t)
                                                    : 1;
}

LLVMValueRef emit_insert(emit *e, LLVMValueRef v, LLVMValueRef x, int at)
{
    return LLVMBuildInsertElement(e->b, v, x,
                                  LLVMConstInt(e->i32, (unsigned)at, 0), "");
}

LLVMValueRef emit_behind(emit *e, LLVMTypeRef t, LLVMValueRef p,
                         LLVMValueRef at)
{
    return LLVMBuildGEP2(e->b, t, p, &at, 1, "");
}

LLVMValueRef emit_shuffle(emit *e, LLVMValueRef x, LLVMValueRef y,
                          const int *lane, int n)
{
    LLVMValueRef index[PLAN_MOST_WOVEN * EMIT_MAX_LANES];

    for (int i = 0; i < n; i++)
        index[i] = lane[i] < 0 ? LLVMGetPoison(e->i32)
                               : LLVMConstInt(e->i32, (unsigned)lane[i], 0);
    if (!y)
        y = LLVMGetPoison(LLVMTypeOf(x));
    return LLVMBuildShuffleVector(e->b, x, y,
                                  LLVMConstVector(index, (unsigned)n), "");
}

LLVMValueRef emit_splat(emit *e, LLVMValueRef v, int w)
{
    static const int zero[EMIT_WIDEST];

    if (w == 1 || emit_width(v) > 1)
        return v;
    if (LLVMIsConstant(v)) {
        LLVMValueRef at[EMIT_WIDEST];

        for (int i = 0; i < w; i++)
            at[i] = v;
        return LLVMConstVector(at, (unsigned)w);
    }
    v = emit_insert(e, LLVMGetPoison(emit_widen(LLVMTypeOf(v), w)), v, 0);
    return emit_shuffle(e, v, NULL, zero, w);
}

LLVMValueRef emit_i64(emit *e, int64_t v)
{
    return LLVMConstInt(e->i64, (uint64_t)v, 1);
}

LLVMValueRef emit_si(emit *e, int64_t v)
{
    return LLVMConstInt(e->si, (uint64_t)v, 1);
}

LLVMValueRef emit_mad(emit *e, LLVMValueRef x, int64_t by, LLVMValueRef y)
{
    return emit_add(e, LLVMBuildNSWMul(e->b, x, emit_si(e, by), ""), y);
}

LLVMValueRef emit_plus(emit *e, LLVMValueRef x, int64_t c)
{
    return emit_sum(e, x, emit_si(e, c));
}

LLVMValueRef emit_add(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildNSWAdd(e->b, x, y, "");
}

LLVMValueRef emit_times(emit *e, LLVMValueRef x, int64_t by)
{
    return by == 1 ? x : LLVMBuildNSWMul(e->b, x, emit_si(e, by), "");
}

LLVMValueRef emit_over(emit *e, LLVMValueRef x, int64_t by)
{
    return by == 1 ? x : emit_udiv(e, x, emit_si(e, by));
}

LLVMValueRef emit_rest(emit *e, LLVMValueRef x, int64_t by)
{
    return by == 1 ? emit_si(e, 0) : emit_urem(e, x, emit_si(e, by));
}

LLVMValueRef emit_below(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildICmp(e->b, LLVMIntSLT, x, y, "");
}

LLVMValueRef emit_smaller(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    return emit_select(e, emit_below(e, x, y), x, y);
}

LLVMValueRef emit_at_most(emit *e, LLVMValueRef x, int64_t limit)
{
    return emit_smaller(e, x, emit_int_like(x, limit));
}

LLVMValueRef emit_larger(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    return emit_select(e, emit_below(e, x, y), y, x);
}

LLVMValueRef emit_bool(emit *e, bool v)
{
    return LLVMConstInt(e->i1, v, 0);
}

static LLVMValueRef splat_const(LLVMTypeRef t, LLVMValueRef c)
{
    LLVMValueRef at[EMIT_WIDEST];
    unsigned n;

    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return c;
    n = LLVMGetVectorSize(t);
    for (unsigned i = 0; i < n; i++)
        at[i] = c;
    return LLVMConstVector(at, n);
}

static LLVMTypeRef elem_type(LLVMTypeRef t)
{
    return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? LLVMGetElementType(t) : t;
}

LLVMValueRef emit_int_like(LLVMValueRef like, int64_t v)
{
    LLVMTypeRef t = LLVMTypeOf(like);
    LLVMTypeRef et = elem_type(t);
    unsigned bits = LLVMGetIntTypeWidth(et);

    if (bits < 64)
        v &= ((int64_t)1 << bits) - 1;
    return splat_const(t, LLVMConstInt(et, (uint64_t)v, 0));
}

LLVMValueRef emit_fp_like(LLVMValueRef like, double v)
{
    LLVMTypeRef t = LLVMTypeOf(like);

    return splat_const(t, LLVMConstReal(elem_type(t), v));
}

LLVMValueRef emit_iota(emit *e, LLVMTypeRef elem, int w)
{
    LLVMValueRef at[EMIT_WIDEST];

    (void)e;
    for (int i = 0; i < w; i++)
        at[i] = LLVMConstInt(elem, (unsigned)i, 0);
    return LLVMConstVector(at, (unsigned)w);
}

LLVMValueRef emit_and(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    int w;

    if (!x || !y)
        return x ? x : y;
    w = SD_MAX(emit_width(x), emit_width(y));
    return LLVMBuildAnd(e->b, emit_splat(e, x, w), emit_splat(e, y, w), "");
}

LLVMValueRef emit_intrinsic2(emit *e, const char *name, LLVMTypeRef *over,
                             int nover, LLVMValueRef *arg, int narg)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn =
        LLVMGetIntrinsicDeclaration(e->m, id, over, (size_t)nover);
    LLVMTypeRef t = LLVMIntrinsicGetType(e->cx, id, over, (size_t)nover);

    return LLVMBuildCall2(e->b, t, fn, arg, (unsigned)narg, "");
}

LLVMValueRef emit_intrinsic(emit *e, const char *name, LLVMTypeRef over,
                            LLVMValueRef *arg, int narg)
{
    return emit_intrinsic2(e, name, &over, 1, arg, narg);
}

LLVMValueRef emit_extract(emit *e, LLVMValueRef v, int first, int w)
{
    int lane[PLAN_MOST_WOVEN * EMIT_MAX_LANES];

    if (emit_width(v) == w)
        return v;
    if (w == 1)
        return LLVMBuildExtractElement(
            e->b, v, LLVMConstInt(e->i32, (unsigned)first, 0), "");
    for (int i = 0; i < w; i++)
        lane[i] = first + i;
    return emit_shuffle(e, v, NULL, lane, w);
}

void emit_return_to(emit *e, LLVMBasicBlockRef b)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(b);

    if (end)
        LLVMPositionBuilderBefore(e->b, end);
    else
        LLVMPositionBuilderAtEnd(e->b, b);
}

void emit_attribute(emit *e, LLVMValueRef fn, unsigned at, const char *name)
{
    unsigned id = LLVMGetEnumAttributeKindForName(name, strlen(name));

    LLVMAddAttributeAtIndex(fn, at, LLVMCreateEnumAttribute(e->cx, id, 0));
}

LLVMValueRef emit_alloca(emit *e, LLVMTypeRef t)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    LLVMValueRef v;

    emit_return_to(e, e->entry);
    v = LLVMBuildAlloca(e->b, t, "");
    emit_return_to(e, here);
    return v;
}

LLVMValueRef emit_select(emit *e, LLVMValueRef c, LLVMValueRef x,
                         LLVMValueRef y)
{
    int w = SD_MAX(emit_width(x), emit_width(y));

    if (!c)
        return x;
    w = SD_MAX(w, emit_width(c));
    x = emit_splat(e, x, w);
    y = emit_splat(e, y, w);
    /* A scalar condition may stay scalar; a vector one needs vectors. */
    return LLVMBuildSelect(e->b, c, x, y, "");
}

emit_value emit_select_value(emit *e, LLVMValueRef c, emit_value x,
                             emit_value y)
{
    emit_value v = {emit_select(e, c, x.re, y.re), NULL};

    if (x.im)
        v.im = emit_select(e, c, x.im, y.im);
    return v;
}

emit_value emit_splat_value(emit *e, emit_value v, int w)
{
    v.re = emit_splat(e, v.re, w);
    if (v.im)
        v.im = emit_splat(e, v.im, w);
    return v;
}

/* A register's worth, through an instruction of no length. */
static LLVMValueRef hide(emit *e, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x), elem = LLVMGetElementType(t);
    LLVMTypeKind kind = LLVMGetTypeKind(elem);
    unsigned bits = kind == LLVMFloatTypeKind     ? 32
                    : kind == LLVMDoubleTypeKind  ? 64
                    : kind == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(elem)
                                                  : 0;
    unsigned all = bits * LLVMGetVectorSize(t);
    LLVMTypeRef fn = LLVMFunctionType(t, &t, 1, false);

    if (bits < 8 || all < 128 || all > e->vector_bits)
        return x;
    return LLVMBuildCall2(e->b, fn,
                          LLVMGetInlineAsm(fn, "", 0, "=x,0", 4, false, false,
                                           LLVMInlineAsmDialectATT, false),
                          &x, 1, "");
}

emit_value emit_hide_value(emit *e, emit_value v)
{
    if (e->gpu || emit_width(v.re) == 1)
        return v;
    v.re = hide(e, v.re);
    if (v.im)
        v.im = hide(e, v.im);
    return v;
}

emit_value emit_extract_value(emit *e, emit_value v, int first, int w)
{
    v.re = emit_extract(e, v.re, first, w);
    if (v.im)
        v.im = emit_extract(e, v.im, first, w);
    return v;
}

static LLVMValueRef part_constant(emit *e, sd_dtype t, const void *p)
{
    uint64_t u = 0;

    if (t == SD_F32 || t == SD_F64) { /* by bits, so that NaNs stay */
        memcpy(&u, p, sd_dtype_bytes(t));
        return LLVMConstBitCast(
            LLVMConstInt(int_type(e, sd_dtype_bytes(t)), u, 0),
            emit_type(e, t));
    }
    if (t == SD_PRED)
        return emit_bool(e, *(const uint8_t *)p != 0);
    if (sd_is_int(t))
        u = (uint64_t)sd_scalar_to_s64(t, p);
    else
        memcpy(&u, p, sd_dtype_bytes(t));
    return LLVMConstInt(emit_type(e, t),
                        sd_dtype_bytes(t) == 8
                            ? u
                            : u & (((uint64_t)1 << 8 * sd_dtype_bytes(t)) - 1),
                        0);
}

emit_value *emit_values(emit *e, int n)
{
    return sd_arena_array(e->a, emit_value, n);
}

emit_value emit_value_alloca(emit *e, LLVMTypeRef t, bool is_complex)
{
    emit_value at = {emit_alloca(e, t), NULL};

    if (is_complex)
        at.im = emit_alloca(e, t);
    return at;
}

emit_value emit_value_variable(emit *e, emit_value v)
{
    emit_value at = {emit_variable(e, v.re), NULL};

    if (v.im)
        at.im = emit_variable(e, v.im);
    return at;
}

static LLVMValueRef number(emit *e, LLVMTypeRef t, LLVMValueRef p,
                           LLVMValueRef i)
{
    return i ? emit_behind(e, t, p, i) : p;
}

emit_value emit_value_get(emit *e, LLVMTypeRef t, emit_value at, LLVMValueRef i)
{
    emit_value v = {LLVMBuildLoad2(e->b, t, number(e, t, at.re, i), ""), NULL};

    if (at.im)
        v.im = LLVMBuildLoad2(e->b, t, number(e, t, at.im, i), "");
    return v;
}

void emit_value_set(emit *e, emit_value at, LLVMValueRef i, emit_value v)
{
    LLVMTypeRef t = LLVMTypeOf(v.re);

    emit_put(e, v.re, number(e, t, at.re, i));
    if (at.im)
        emit_put(e, v.im, number(e, t, at.im, i));
}

emit_value emit_constant(emit *e, sd_dtype t, const void *bits)
{
    sd_dtype part = sd_dtype_part(t);
    emit_value v = {part_constant(e, part, bits), NULL};

    if (sd_is_complex(t))
        v.im = part_constant(e, part,
                             (const uint8_t *)bits + sd_dtype_bytes(part));
    return v;
}
