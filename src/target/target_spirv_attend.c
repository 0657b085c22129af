/* Attention for Intel's GPUs: what lies between products by the matrix engine.
 * A sub-group has 16 rows of 16 items, or of 8 items one or two times 8. */
#include "target_visa.h"

enum { ROWS = 8 };

static LLVMValueRef exp2_of(emit *e, LLVMValueRef x)
{
    return emit_builtin(e, "_Z11native_exp2f", "willreturn", e->f32, &x, 1);
}

static LLVMValueRef any(emit *e, LLVMValueRef c)
{
    LLVMValueRef v = LLVMBuildZExt(e->b, c, e->i32, "");

    v = emit_builtin(e, "_Z13sub_group_anyi", "convergent", e->i32, &v, 1);
    return LLVMBuildICmp(e->b, LLVMIntNE, v, LLVMConstInt(e->i32, 0, 0), "");
}

static LLVMValueRef product(emit *e, LLVMValueRef x, LLVMValueRef y,
                            LLVMValueRef acc)
{
    return target_dpas(e, e->k->attend->engine, x, y, acc);
}

static LLVMValueRef narrow(emit *e, LLVMValueRef v)
{
    bool bf16 = e->k->slot[0].dtype == SD_BF16;

    return emit_builtin(
        e, bf16 ? TARGET_NARROW_BF16 : TARGET_NARROW_F16, "willreturn",
        LLVMVectorType(LLVMInt16TypeInContext(e->cx), ROWS), &v, 1);
}

/* Of 8 items: 16 columns, two a word. */
static LLVMValueRef join(emit *e, LLVMValueRef v, LLVMValueRef w)
{
    bool bf16 = e->k->slot[0].dtype == SD_BF16;
    LLVMValueRef arg[2] = {v, w};

    return emit_builtin(e, bf16 ? TARGET_JOIN_BF16 : TARGET_JOIN_F16,
                        "convergent", LLVMVectorType(e->i32, ROWS), arg, 2);
}

static LLVMValueRef of_rows(emit *e, LLVMValueRef v, bool is_sum)
{
    static const char *const name[2][2] = {
        {TARGET_ROWS_MOST, TARGET_ROWS_SUM},
        {TARGET_EIGHTS_MOST, TARGET_EIGHTS_SUM}};
    bool eights = LLVMGetVectorSize(LLVMTypeOf(v)) == ROWS;

    return emit_builtin(e, name[eights][is_sum], "convergent", e->f32, &v, 1);
}

static LLVMValueRef of_item(emit *e, LLVMValueRef v, int i)
{
    LLVMValueRef arg[2] = {v, LLVMConstInt(e->i32, (unsigned)i, 0)};

    return emit_builtin(e, "_Z19sub_group_broadcastfj", "convergent", e->f32,
                        arg, 2);
}

const emit_attend_abi target_spirv_attend = {.exp2 = exp2_of,
                                             .any = any,
                                             .product = product,
                                             .sum_product = target_add_rows,
                                             .sum_scale = target_scale_rows,
                                             .sum_fold = target_fold_rows,
                                             .narrow = narrow,
                                             .join = join,
                                             .local_rows = target_local_rows,
                                             .of_rows = of_rows,
                                             .of_item = of_item};
