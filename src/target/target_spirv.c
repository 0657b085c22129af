/* SPIR-V in OpenCL's flavour, by LLVM's own target.  Without FP_CONTRACT
 * metadata every kernel is marked ContractionOff, which is what we want. */
#include <llvm-c/Target.h>

#include "target_room.h"

static LLVMTargetMachineRef machine(const device_desc *dev, bool quick)
{
    LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();

    (void)dev;
    (void)quick;
    /* Above None the loop passes of code generation run; they turn indices
     * into pointers that step, which the devices' compilers undo badly. */
    LLVMTargetMachineOptionsSetCodeGenOptLevel(o, LLVMCodeGenLevelNone);
    return target_machine(target_spirv.triple, o);
}

static void start_spirv(void)
{
    LLVMInitializeSPIRVTargetInfo();
    LLVMInitializeSPIRVTarget();
    LLVMInitializeSPIRVTargetMC();
    LLVMInitializeSPIRVAsmPrinter();
}

static devlib_target library(const device_desc *dev)
{
    (void)dev;
    return DEVLIB_SPIRV;
}

/* ---- the ABI: OpenCL's functions, by their C++ names ---- */

static void mark(emit *e)
{
    int size[3] = {e->k->group, 1, 1};

    emit_size_metadata(e, "reqd_work_group_size", size, 3);
    if (e->k->subgroup)
        emit_size_metadata(e, "intel_reqd_sub_group_size", &e->k->subgroup, 1);
}

static LLVMValueRef id(emit *e, emit_id which)
{
    static const char *const name[] = {[EMIT_ITEM] = "_Z12get_local_idj",
                                       [EMIT_GROUP] = "_Z12get_group_idj"};
    LLVMValueRef dimension = LLVMConstInt(e->i32, 0, 0);

    return emit_builtin(e, name[which], "willreturn", e->i64, &dimension, 1);
}

static void barrier(emit *e, unsigned memory)
{
    LLVMValueRef flags = LLVMConstInt(e->i32, memory, 0); /* the same bits */

    emit_builtin(e, "_Z7barrierj", "convergent", LLVMVoidTypeInContext(e->cx),
                 &flags, 1);
}

/* ---- Intel's matrix engine: 8 rows, a column an item, 32 bytes of k ---- */

enum { ROWS = 8, PANEL_BYTES = 32 };

/* Item i has the same bytes of each row of x, and all of column i of y. */
static LLVMValueRef own(emit *e, const emit_side *s, LLVMValueRef from,
                        LLVMValueRef i)
{
    int bytes = s->y ? PANEL_BYTES : PANEL_BYTES / e->k->subgroup;

    assert(s->side * (int64_t)sd_dtype_bytes(e->k->blocks->part) ==
               PANEL_BYTES &&
           s->deep == 1);
    return emit_mad(e, from, PANEL_BYTES,
                    LLVMBuildNSWMul(e->b, i, emit_si(e, bytes), ""));
}

static LLVMValueRef bytes_behind(emit *e, LLVMValueRef p, int64_t n)
{
    LLVMValueRef at = emit_si(e, n);

    return LLVMBuildGEP2(e->b, e->i8, p, &at, 1, "");
}

/* 8 rows of x: a number of each. */
static LLVMValueRef rows_at(emit *e, LLVMValueRef p)
{
    unsigned bytes = PANEL_BYTES / (unsigned)e->k->subgroup;
    LLVMTypeRef t = LLVMIntTypeInContext(e->cx, 8 * bytes);
    LLVMValueRef v = LLVMGetPoison(LLVMVectorType(t, ROWS)), one;

    for (unsigned r = 0; r < ROWS; r++) {
        one = LLVMBuildLoad2(e->b, t, bytes_behind(e, p, r * PANEL_BYTES), "");
        LLVMSetAlignment(one, bytes);
        v = LLVMBuildInsertElement(e->b, v, one, LLVMConstInt(e->i32, r, 0),
                                   "");
    }
    return v;
}

/* A column of y, in two reads of as many bytes as one takes. */
static LLVMValueRef column_at(emit *e, LLVMValueRef p)
{
    static const int whole[ROWS] = {0, 1, 2, 3, 4, 5, 6, 7};
    LLVMTypeRef t = LLVMVectorType(e->i32, ROWS / 2);
    LLVMValueRef part[2];

    for (int i = 0; i < 2; i++) {
        part[i] = LLVMBuildLoad2(e->b, t,
                                 bytes_behind(e, p, i * PANEL_BYTES / 2), "");
        LLVMSetAlignment(part[i], PANEL_BYTES / 2);
    }
    return emit_shuffle(e, part[0], part[1], whole, ROWS);
}

static void square(emit *e, const emit_side *s, LLVMValueRef p, LLVMValueRef *v)
{
    int each = s->y ? e->k->subgroup : ROWS;

    for (int i = 0; i < PLAN_SQUARE / each; i++) {
        LLVMValueRef at = bytes_behind(e, p, i * each * PANEL_BYTES);

        v[i] = s->y ? column_at(e, at) : rows_at(e, at);
    }
}

/* Columns by columns, of each the upper rows and the lower ones. */
static void multiply(emit *e, LLVMValueRef *acc, const LLVMValueRef *x,
                     const LLVMValueRef *y)
{
    static const char *const name[PLAN_ENGINE_COUNT] = {
#define NAME(n, type) "_Z" #n "intel_sub_group_" type
        [PLAN_ENGINE_DPAS16_BF16] =
            NAME(40, "bf16_bf16_matrix_mad_k16Dv8_sDv8_iDv8_f"),
        [PLAN_ENGINE_DPAS16_F16] =
            NAME(38, "f16_f16_matrix_mad_k16Dv8_sDv8_iDv8_f"),
        [PLAN_ENGINE_DPAS16_S8] = NAME(36, "i8_i8_matrix_mad_k32Dv8_sDv8_iS0_"),
        [PLAN_ENGINE_DPAS16_U8] =
            NAME(36, "u8_u8_matrix_mad_k32Dv8_tDv8_jDv8_i"),
        [PLAN_ENGINE_DPAS8_BF16] =
            NAME(40, "bf16_bf16_matrix_mad_k16Dv8_iS_Dv8_f"),
        [PLAN_ENGINE_DPAS8_F16] =
            NAME(38, "f16_f16_matrix_mad_k16Dv8_iS_Dv8_f"),
        [PLAN_ENGINE_DPAS8_S8] = NAME(36, "i8_i8_matrix_mad_k32Dv8_iS_S_"),
        [PLAN_ENGINE_DPAS8_U8] = NAME(36, "u8_u8_matrix_mad_k32Dv8_jS_Dv8_i")
#undef NAME
    };

    for (int i = 0; i < PLAN_SQUARE / e->k->subgroup * 2; i++) {
        LLVMValueRef arg[3] = {x[i % 2], y[i / 2], acc[i]};

        acc[i] = emit_builtin(e, name[e->k->blocks->engine], "convergent",
                              LLVMTypeOf(acc[i]), arg, 3);
    }
}

static void place(emit *e, LLVMValueRef i, LLVMValueRef *m, LLVMValueRef *n)
{
    *m = emit_si(e, 0);
    *n = i;
}

static void beside(const emit *e, int sum, int *m, int *n)
{
    *m = sum % PLAN_SQUARE;
    *n = sum / PLAN_SQUARE * e->k->subgroup;
}

static const emit_abi abi = {.kernel_cc = LLVMSPIRKERNELCallConv,
                             .function_cc = LLVMSPIRFUNCCallConv,
                             .mark = mark,
                             .id = id,
                             .barrier = barrier,
                             .own = own,
                             .square = square,
                             .multiply = multiply,
                             .place = place,
                             .beside = beside,
                             .run = 1,
                             .pack = ROWS};

/* ---- the module ---- */

static void add_version(LLVMModuleRef m, LLVMContextRef cx, const char *name,
                        int major, int minor)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(cx);
    LLVMMetadataRef v[2] = {
        LLVMValueAsMetadata(LLVMConstInt(i32, (unsigned)major, 0)),
        LLVMValueAsMetadata(LLVMConstInt(i32, (unsigned)minor, 0))};

    LLVMAddNamedMetadataOperand(
        m, name, LLVMMetadataAsValue(cx, LLVMMDNodeInContext2(cx, v, 2)));
}

static void prepare(LLVMModuleRef m, LLVMContextRef cx)
{
    add_version(m, cx, "opencl.ocl.version", 2, 0);
    add_version(m, cx, "opencl.spir.version", 1, 2);
}

/* LLVM 22 makes an AND of zext(trunc x) and forgets that x was wider than the
 * result, which is no valid SPIR-V: here the AND comes first. */
static void mask_first(LLVMBuilderRef b, LLVMValueRef zext)
{
    LLVMValueRef trunc = LLVMGetOperand(zext, 0), x;
    LLVMTypeRef to = LLVMTypeOf(zext), from;

    if (!LLVMIsATruncInst(trunc) || LLVMGetTypeKind(to) != LLVMIntegerTypeKind)
        return;
    x = LLVMGetOperand(trunc, 0);
    from = LLVMTypeOf(x);
    if (LLVMGetIntTypeWidth(from) <= LLVMGetIntTypeWidth(to))
        return;
    LLVMPositionBuilderBefore(b, zext);
    x = LLVMBuildAnd(
        b, x, LLVMBuildZExt(b, LLVMConstAllOnes(LLVMTypeOf(trunc)), from, ""),
        "");
    LLVMReplaceAllUsesWith(zext, LLVMBuildTrunc(b, x, to, ""));
    LLVMInstructionEraseFromParent(zext);
}

/* -1 that no compiler knows: our launches have one dimension. */
static LLVMValueRef ones(LLVMBuilderRef b, LLVMTypeRef t, LLVMModuleRef m)
{
    static const char name[] = "_Z12get_work_dimv";
    LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetModuleContext(m));
    LLVMTypeRef type = LLVMFunctionType(i32, NULL, 0, false);
    LLVMValueRef f = LLVMGetNamedFunction(m, name), v;

    if (!f) {
        f = LLVMAddFunction(m, name, type);
        LLVMSetFunctionCallConv(f, LLVMSPIRFUNCCallConv);
    }
    v = LLVMBuildCall2(b, type, f, NULL, 0, "");
    LLVMSetInstructionCallConv(v, LLVMSPIRFUNCCallConv);
    v = LLVMBuildIntCast2(b, v, t, false, "");
    return LLVMBuildSub(b, v, LLVMConstInt(t, 2, false), "");
}

/* DEVICE_QUIRK_ONES_IN_MASK: -1 under ~ and before a minus. */
static void hide_ones(LLVMBuilderRef b, LLVMModuleRef m, LLVMValueRef in)
{
    unsigned at = LLVMGetInstructionOpcode(in) == LLVMXor ? 1 : 0;
    LLVMTypeRef t = LLVMTypeOf(in);

    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(t) < 32 ||
        LLVMGetOperand(in, at) != LLVMConstAllOnes(t))
        return;
    LLVMPositionBuilderBefore(b, in);
    LLVMSetOperand(in, at, ones(b, t, m));
}

static void repair(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev)
{
    bool hide = device_has_quirk(dev, DEVICE_QUIRK_ONES_IN_MASK);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);
    LLVMValueRef next;

    for (LLVMValueRef f = LLVMGetFirstFunction(m); f;
         f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef bb = LLVMGetFirstBasicBlock(f); bb;
             bb = LLVMGetNextBasicBlock(bb))
            for (LLVMValueRef in = LLVMGetFirstInstruction(bb); in; in = next) {
                next = LLVMGetNextInstruction(in);
                if (LLVMIsAZExtInst(in))
                    mask_first(b, in);
                else if (hide && (LLVMGetInstructionOpcode(in) == LLVMXor ||
                                  LLVMGetInstructionOpcode(in) == LLVMSub))
                    hide_ones(b, m, in);
            }
    LLVMDisposeBuilder(b);
}

static const char *passes(target_clean what)
{
    /* a whole algorithm gets numbers, which decide what of it is left */
    return what > TARGET_PLAIN
               ? "always-inline,globaldce,function(sroa,early-cse,"
                 "instsimplify,sccp,simplifycfg,early-cse)"
               : "function(sroa,early-cse,instsimplify,simplifycfg)";
}

const target_ops target_spirv = {.kind = THUNK_BIN_SPIRV,
                                 .file = LLVMObjectFile,
                                 .dump = "spv",
                                 .triple = "spirv64-unknown-unknown",
                                 .global_as = 1,
                                 .local_as = 3,
                                 .one_module = true,
                                 .in_child = true,
                                 .start = start_spirv,
                                 .devlib = library,
                                 .abi = &abi,
                                 .machine = machine,
                                 .prepare = prepare,
                                 .passes = passes,
                                 .repair = repair};
