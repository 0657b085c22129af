/* Remainders of divisions by a power of two, of which every step is exact:
 * a - floor(a / by) * by, where a is |x|, with x's sign.  A quotient that is
 * subnormal has the floor 0, rounded or not.  The device function takes a
 * quotient's bits 22 at a time in a loop, with a division each time. */
#include "emit.h"

#include <math.h>

/* 1 / |x|, if x is the same power of two everywhere, 1 or more, and the inverse
 * a normal number; else 0. */
static double inverse_of_power(LLVMValueRef x)
{
    int w = emit_width(x), exponent;
    LLVMBool rounded;
    LLVMValueRef one = x;
    double v;

    if (!LLVMIsConstant(x))
        return 0;
    if (w > 1)
        one = LLVMGetAggregateElement(x, 0);
    if (!one || !LLVMIsAConstantFP(one))
        return 0;
    for (int i = 1; i < w; i++)
        if (LLVMGetAggregateElement(x, (unsigned)i) != one)
            return 0;
    v = fabs(LLVMConstRealGetDouble(one, &rounded));
    if (frexp(v, &exponent) != 0.5 || exponent < 1 || exponent > 120)
        return 0;
    return 1 / v;
}

LLVMValueRef emit_float_rest(emit *e, LLVMValueRef x, LLVMValueRef by)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    double inverse = inverse_of_power(by);
    LLVMValueRef a, q, finite, sign[2];

    if (inverse == 0)
        return NULL;
    a = emit_intrinsic(e, "llvm.fabs", t, &x, 1);
    finite = LLVMBuildFCmp(e->b, LLVMRealOLT, a,
                           emit_fp_like(a, __builtin_inf()), "");
    q = LLVMBuildFMul(e->b, a, emit_fp_like(a, inverse), "");
    q = emit_intrinsic(e, "llvm.floor", t, &q, 1);
    q = LLVMBuildFMul(e->b, q, emit_fp_like(q, 1 / inverse), "");
    sign[0] = LLVMBuildFSub(e->b, a, q, "");
    sign[1] = x;
    return emit_select(e, finite,
                       emit_intrinsic(e, "llvm.copysign", t, sign, 2),
                       emit_fp_like(a, __builtin_nan("")));
}
