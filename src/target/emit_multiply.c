/* A term of a product: how it is added, and the host's mode in which subnormal
 * numbers count as 0 meanwhile. */
#include "emit.h"

void emit_restore_mode(emit *e, LLVMValueRef mode)
{
    emit_intrinsic2(e, "llvm.x86.sse.ldmxcsr", NULL, 0, &mode, 1);
}

LLVMValueRef emit_drop_subnormals(emit *e)
{
    LLVMValueRef was = emit_alloca(e, e->i32);
    LLVMValueRef g = LLVMAddGlobal(e->m, e->i32, "mode");

    emit_intrinsic2(e, "llvm.x86.sse.stmxcsr", NULL, 0, &was, 1);
    LLVMSetInitializer(g, LLVMConstInt(e->i32, SD_SUBNORMALS_ARE_0, 0));
    LLVMSetGlobalConstant(g, true);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    emit_restore_mode(e, g);
    return was;
}

emit_value emit_multiply_add(emit *e, const plan_node *n, emit_value x,
                             emit_value y, emit_value acc)
{
    emit_value arg[2] = {x, y}, sum[2] = {acc};
    sd_dtype t = n->dtype, type[2] = {t, t};

    if (sd_is_float(t))
        for (int i = 0; i < 2; i++)
            arg[i].re = emit_splat(e, arg[i].re, emit_width(acc.re));
    if (sd_is_float(t) && !n->apart) {
        LLVMValueRef v[3] = {arg[0].re, arg[1].re, acc.re};

        return (emit_value){
            emit_intrinsic(e, "llvm.fma", LLVMTypeOf(acc.re), v, 3), NULL};
    }
    sum[1] = emit_elt(e, HLO_MULTIPLY, NULL, t, 2, arg, type);
    return emit_elt(e, HLO_ADD, NULL, t, 2, sum, type);
}
