/* SPIR-V in OpenCL's flavour, by LLVM's own target.  Without FP_CONTRACT
 * metadata every kernel is marked ContractionOff, which is what we want. */
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>

#include "target_room.h"
#include "target_visa.h"

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
    static const char *const word[] = {
        "sundog", "--spirv-ext=+SPV_INTEL_inline_assembly"};

    LLVMParseCommandLineOptions(SD_COUNTOF(word), word, NULL);
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

/* The first item's: what the compiler knows to be the same for all of a
 * sub-group is one number. */
static LLVMValueRef uniform(emit *e, LLVMValueRef v)
{
    LLVMValueRef arg[2] = {LLVMBuildIntCast2(e->b, v, e->i32, true, ""),
                           LLVMConstInt(e->i32, 0, 0)};

    v = emit_builtin(e, "_Z19sub_group_broadcastjj", "convergent", e->i32, arg,
                     2);
    return LLVMBuildIntCast2(e->b, v, e->si, true, "");
}

/* Our launches begin at 0. */
static LLVMValueRef zero(emit *e)
{
    LLVMValueRef dimension = LLVMConstInt(e->i32, 0, 0);

    return LLVMBuildIntCast2(e->b,
                             emit_builtin(e, "_Z17get_global_offsetj",
                                          "willreturn", e->i64, &dimension, 1),
                             e->si, true, "");
}

/* 8 rows of x, and a column an item of y, are 32 bytes for each row or column,
 * one after the other. */
static LLVMValueRef own(emit *e, const emit_side *s, LLVMValueRef from,
                        LLVMValueRef i)
{
    (void)s;
    (void)i;
    return emit_times(e, from, PANEL_BYTES);
}

static LLVMValueRef bytes_behind(emit *e, LLVMValueRef p, int64_t n)
{
    return emit_behind(e, e->i8, p, emit_si(e, n));
}

/* 8 numbers of `bits` of each item, which lie in memory item by item, the
 * second ones behind all first ones. */
static LLVMValueRef block_at(emit *e, LLVMValueRef p, unsigned bits)
{
    return emit_builtin(e,
                        bits == 16 ? "__builtin_IB_simd_block_read_8_local_h"
                                   : "__builtin_IB_simd_block_read_8_local",
                        "convergent",
                        LLVMVectorType(LLVMIntTypeInContext(e->cx, bits), ROWS),
                        &p, 1);
}

LLVMValueRef target_local_rows(emit *e, LLVMValueRef p)
{
    return block_at(e, p, 32);
}

static void square(emit *e, const emit_side *s, LLVMValueRef p, LLVMValueRef *v)
{
    int each = s->y ? e->k->subgroup : ROWS;
    unsigned bits = s->y ? 32 : 8 * PANEL_BYTES / (unsigned)e->k->subgroup;

    for (int i = 0; i < PLAN_SQUARE / each; i++)
        v[i] = block_at(e, bytes_behind(e, p, i * each * PANEL_BYTES), bits);
}

/* ---- messages that read blocks of a matrix ---- */

static int block_unit(emit_reads what)
{
    return target_block[what].unit;
}

static unsigned block_shape(emit_reads what)
{
    return target_block[what].shape;
}

static LLVMValueRef read_block(emit *e, emit_reads what, LLVMValueRef told)
{
    unsigned bits = what == EMIT_BLOCK_ROWS ? 16 : 32,
             n = what < EMIT_BLOCK_DEEP_ROWS ? ROWS : 2 * ROWS;
    LLVMTypeRef part = LLVMIntTypeInContext(e->cx, bits);

    return emit_builtin(e, target_block[what].name, "convergent",
                        LLVMVectorType(part, n), &told, 1);
}

LLVMValueRef target_dpas(emit *e, plan_engine engine, LLVMValueRef x,
                         LLVMValueRef y, LLVMValueRef acc)
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
    LLVMValueRef arg[3] = {x, y, acc};

    return emit_builtin(e, name[engine], "convergent", LLVMTypeOf(acc), arg, 3);
}

/* Columns by columns, of each the upper rows and the lower ones. */
static void multiply(emit *e, LLVMValueRef *acc, const LLVMValueRef *x,
                     const LLVMValueRef *y)
{
    for (int i = 0; i < PLAN_SQUARE / e->k->subgroup * 2; i++)
        acc[i] =
            target_dpas(e, e->k->blocks->engine, x[i % 2], y[i / 2], acc[i]);
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
                             .uniform = uniform,
                             .zero = zero,
                             .square = square,
                             .read_block = read_block,
                             .block_unit = block_unit,
                             .block_shape = block_shape,
                             .begin_sum = target_begin_sum,
                             .add_parts = target_add_parts,
                             .take_sum = target_take_sum,
                             .multiply = multiply,
                             .place = place,
                             .beside = beside,
                             .attend = &target_spirv_attend,
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

/* A number that no compiler knows: our launches have one dimension. */
static LLVMValueRef hidden(LLVMBuilderRef b, LLVMModuleRef m, LLVMTypeRef t,
                           int64_t number)
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
    return LLVMBuildAdd(b, v, LLVMConstInt(t, (uint64_t)(number - 1), true),
                        "");
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
    LLVMSetOperand(in, at, hidden(b, m, t, -1));
}

/* DEVICE_QUIRK_CHOSEN_IN_LOOP: the turns of a loop that chooses what `phi` is
 * in the next turn. */
static void hide_turns(LLVMBuilderRef b, LLVMModuleRef m, LLVMValueRef phi)
{
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        LLVMValueRef end =
            LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(phi, i));
        LLVMValueRef test, last;

        if (!LLVMIsASelectInst(LLVMGetIncomingValue(phi, i)) ||
            !LLVMIsABranchInst(end) || !LLVMIsConditional(end))
            continue;
        test = LLVMGetCondition(end);
        if (!LLVMIsAICmpInst(test))
            continue;
        last = LLVMGetOperand(test, 1);
        if (!LLVMIsAConstantInt(last))
            continue;
        LLVMPositionBuilderBefore(b, test);
        LLVMSetOperand(
            test, 1,
            hidden(b, m, LLVMTypeOf(last), LLVMConstIntGetSExtValue(last)));
    }
}

static void repair_one(LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef in,
                       const device_desc *dev)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(in);

    if (LLVMIsAZExtInst(in))
        mask_first(b, in);
    else if ((op == LLVMXor || op == LLVMSub) &&
             device_has_quirk(dev, DEVICE_QUIRK_ONES_IN_MASK))
        hide_ones(b, m, in);
    else if (LLVMIsAPHINode(in) &&
             device_has_quirk(dev, DEVICE_QUIRK_CHOSEN_IN_LOOP))
        hide_turns(b, m, in);
}

static void repair(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev)
{
    target_each(m, cx, dev, repair_one);
    if (dev->features & DEVICE_HAS_VISA)
        target_write_assembly(m, cx, dev);
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
                                 .large_kind = THUNK_BIN_SPIRV_LARGE,
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
