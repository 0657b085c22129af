/* Integer powers by squaring, in a function of its own: a loop has no place
 * in code that may be hoisted. */
#include "emit.h"

/* 1 / x ** -n: nothing is left but of 1 and -1. */
static LLVMValueRef negative_power(emit *e, LLVMValueRef x, LLVMValueRef n)
{
    LLVMValueRef zero = emit_int_like(x, 0), one = emit_int_like(x, 1);
    LLVMValueRef minus = emit_int_like(x, -1), even, r;

    even = emit_equal(e, emit_and(e, n, one), zero);
    r = emit_select(e, even, one, minus);
    r = emit_select(e, emit_equal(e, x, minus), r, zero);
    return emit_select(e, emit_equal(e, x, one), one, r);
}

/* One bit of the exponent: multiply where it is set, square, shift. */
static void one_bit(emit *e, LLVMTypeRef t, LLVMValueRef *state)
{
    LLVMValueRef acc = LLVMBuildLoad2(e->b, t, state[0], "");
    LLVMValueRef by = LLVMBuildLoad2(e->b, t, state[1], "");
    LLVMValueRef left = LLVMBuildLoad2(e->b, t, state[2], "");
    LLVMValueRef one = emit_int_like(left, 1), set;

    set = emit_unequal(e, emit_and(e, left, one), emit_int_like(left, 0));
    acc = emit_select(e, set, emit_product(e, acc, by), acc);
    emit_put(e, acc, state[0]);
    emit_put(e, emit_product(e, by, by), state[1]);
    emit_put(e, emit_shr(e, left, one), state[2]);
}

static void power_code(emit *e, LLVMTypeRef t, sd_dtype dtype, LLVMValueRef x,
                       LLVMValueRef n)
{
    LLVMValueRef state[3], acc, start[3] = {emit_int_like(x, 1), x, n};
    emit_loop l;

    for (int i = 0; i < 3; i++) {
        state[i] = LLVMBuildAlloca(e->b, t, "");
        emit_put(e, start[i], state[i]);
    }
    emit_loop_open(e, &l, emit_i64(e, 0),
                   emit_i64(e, SD_MAX(sd_dtype_table[dtype].bits, 8)), 1);
    one_bit(e, t, state);
    emit_loop_close(e, &l);
    acc = LLVMBuildLoad2(e->b, t, state[0], "");
    if (sd_is_signed(dtype))
        acc = emit_select(e, emit_below(e, n, emit_int_like(n, 0)),
                          negative_power(e, x, n), acc);
    LLVMBuildRet(e->b, acc);
}

LLVMValueRef emit_power_function(emit *e, LLVMTypeRef t, sd_dtype dtype)
{
    bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
    const char *name =
        sd_arena_fmt(e->a, "sundog.power.%s.x%d", sd_dtype_name(dtype),
                     vector ? (int)LLVMGetVectorSize(t) : 1);
    LLVMValueRef fn = LLVMGetNamedFunction(e->m, name), caller = e->fn;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(e->b);
    LLVMTypeRef arg[2] = {t, t};

    if (fn)
        return fn;
    fn = LLVMAddFunction(e->m, name, LLVMFunctionType(t, arg, 2, 0));
    LLVMSetLinkage(fn, LLVMInternalLinkage);
    if (e->abi)
        LLVMSetFunctionCallConv(fn, e->abi->function_cc);
    e->fn = fn; /* where blocks go */
    LLVMPositionBuilderAtEnd(e->b, emit_block(e, "entry"));
    power_code(e, t, dtype, LLVMGetParam(fn, 0), LLVMGetParam(fn, 1));
    e->fn = caller;
    emit_return_to(e, here);
    return fn;
}
