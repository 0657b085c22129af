/* PTX by LLVM's NVPTX, for ptxas or NVIDIA's driver, which make machine code of
 * it.  A binary is its text, without a NUL.
 *
 * The bits are the host's: LLVM fuses no multiplication with an addition unless
 * flags of the instructions allow it, and writes `.rn` behind each, so that
 * ptxas does not either; division and square root are rounded exactly and small
 * numbers kept, since no attribute asks for less. */
#include <llvm-c/Target.h>
#include <stdio.h>

#include "target_ptx.h"

/* Chips for which the code differs.  Another one gets the code of the next
 * lower number, which every later chip runs too.  What has wgmma runs on its
 * chip alone. */
static const struct {
    int number; /* compute capability: 90 is 9.0 */
    const char *cpu, *features;
} chips[] = {{80, "sm_80", "+ptx80"},
             {90, "sm_90", "+ptx80"},
             {100, "sm_100", "+ptx86"},
             {90, "sm_90a", "+ptx80"}};
enum { ALONE = SD_COUNTOF(chips) - 1 };

static int chip_of(const device_desc *dev)
{
    int number = 0, i = ALONE - 1;

    if (dev->features & DEVICE_HAS_WGMMA)
        return ALONE;
    sscanf(dev->name, "cuda:sm_%d", &number);
    while (i > 0 && chips[i].number > number)
        i--;
    return i;
}

static LLVMTargetMachineRef machine(const device_desc *dev, bool quick)
{
    LLVMTargetMachineOptionsRef o = LLVMCreateTargetMachineOptions();
    int chip = chip_of(dev);

    (void)quick;
    LLVMTargetMachineOptionsSetCPU(o, chips[chip].cpu);
    LLVMTargetMachineOptionsSetFeatures(o, chips[chip].features);
    /* Above None the loop passes of code generation run; they turn indices into
     * pointers that step, with which ptxas unrolls less and needs a sixth more
     * registers, and take half of the time. */
    LLVMTargetMachineOptionsSetCodeGenOptLevel(o, LLVMCodeGenLevelNone);
    return target_machine(target_ptx.triple, o);
}

static void start_ptx(void)
{
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

static devlib_target library(const device_desc *dev)
{
    (void)dev;
    return DEVLIB_PTX;
}

/* ---- the ABI ---- */

static void mark_slot(emit *e, int i)
{
    static const char align[] = "align";
    const plan_slot *s = &e->k->slot[i];
    unsigned at = (unsigned)i + 1;

    LLVMAddAttributeAtIndex(
        e->fn, at,
        LLVMCreateEnumAttribute(
            e->cx, LLVMGetEnumAttributeKindForName(align, sizeof align - 1),
            s->align));
    if (!s->noalias)
        return;
    emit_attribute(e, e->fn, at, "noalias");
    if (s->access == PLAN_READ)
        emit_attribute(e, e->fn, at, "readonly");
}

static void mark_number(emit *e, const char *name, int number)
{
    char text[16];
    int n = snprintf(text, sizeof text, "%d", number);

    LLVMAddAttributeAtIndex(e->fn, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(e->cx, name,
                                                      (unsigned)strlen(name),
                                                      text, (unsigned)n));
}

static void mark(emit *e)
{
    mark_number(e, "nvvm.reqntid", e->k->group);
    if (e->k->loop) /* memory of a loop is read and written by turns */
        return;
    if (e->k->unit_groups)
        mark_number(e, "nvvm.minctasm", e->k->unit_groups);
    for (int i = 0; i < e->k->nslot; i++)
        mark_slot(e, i);
}

static LLVMValueRef id(emit *e, emit_id which)
{
    static const char *const name[] = {
        [EMIT_ITEM] = "llvm.nvvm.read.ptx.sreg.tid.x",
        [EMIT_GROUP] = "llvm.nvvm.read.ptx.sreg.ctaid.x"};

    return emit_builtin(e, name[which], "willreturn", e->i32, NULL, 0);
}

/* It is for all memory that the group shares.  The first items of a loop's
 * group meet by a barrier of their own. */
static void barrier(emit *e, unsigned memory)
{
    bool some = e->loop_items > e->k->group;
    LLVMValueRef arg[] = {LLVMConstInt(e->i32, some, 0),
                          LLVMConstInt(e->i32, (unsigned)e->k->group, 0)};

    (void)memory;
    emit_builtin(e,
                 some ? "llvm.nvvm.barrier.cta.sync.aligned.count"
                      : "llvm.nvvm.barrier.cta.sync.aligned.all",
                 "convergent", LLVMVoidTypeInContext(e->cx), arg, 1 + some);
}

static LLVMValueRef any(emit *e, LLVMValueRef c)
{
    LLVMValueRef arg[] = {LLVMConstInt(e->i32, 0, 0), c};

    return emit_builtin(e, "llvm.nvvm.barrier.cta.red.or.aligned.all",
                        "convergent", e->i1, arg, 2);
}

enum { WARP = 32 };

static LLVMValueRef shuffle(emit *e, LLVMValueRef v, LLVMValueRef from)
{
    LLVMValueRef x[4] = {LLVMConstAllOnes(e->i32), v, from,
                         LLVMConstInt(e->i32, WARP - 1, 0)};

    return emit_builtin(e, "llvm.nvvm.shfl.sync.idx.i32", "convergent", e->i32,
                        x, 4);
}

static LLVMValueRef vote(emit *e, LLVMValueRef c)
{
    LLVMValueRef x[2] = {LLVMConstAllOnes(e->i32), c};

    return emit_builtin(e, "llvm.nvvm.vote.ballot.sync", "convergent", e->i32,
                        x, 2);
}

static LLVMValueRef same(emit *e, LLVMValueRef v)
{
    LLVMValueRef x[2] = {LLVMConstAllOnes(e->i32), v};

    return emit_builtin(e, "llvm.nvvm.match.any.sync.i32", "convergent", e->i32,
                        x, 2);
}

static void meet(emit *e)
{
    LLVMValueRef all = LLVMConstAllOnes(e->i32);

    emit_builtin(e, "llvm.nvvm.bar.warp.sync", "convergent",
                 LLVMVoidTypeInContext(e->cx), &all, 1);
}

/* Of an instruction that gives n values. */
static void call_several(emit *e, const char *name, LLVMTypeRef over,
                         LLVMValueRef *arg, int narg, LLVMValueRef *v, int n)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef param[10];
    LLVMValueRef all;

    LLVMGetParamTypes(LLVMIntrinsicGetType(e->cx, id, &over, over != NULL),
                      param);
    for (int i = 0; i < narg; i++)
        if (LLVMTypeOf(arg[i]) != param[i])
            arg[i] = LLVMBuildBitCast(e->b, arg[i], param[i], "");
    all = emit_intrinsic2(e, name, &over, over != NULL, arg, narg);
    for (int i = 0; i < n; i++)
        v[i] = LLVMBuildExtractValue(e->b, all, (unsigned)i, "");
}

/* ---- squares of 16 x 16 sums ---- */

enum { HALF = PLAN_SQUARE / 2, ROW_BYTES = 16 };

/* ldmatrix reads four squares of 8 rows of 16 bytes, and item i names row i % 8
 * of square i / 8.  Of x the squares are rows 0 and 8 of the first of K, then
 * of the second; of y they are the first of K and the second of columns 0, then
 * of columns 8. */
static LLVMValueRef own(emit *e, const emit_side *s, LLVMValueRef from,
                        LLVMValueRef i)
{
    int64_t each = (int64_t)sd_dtype_bytes(e->k->blocks->part);
    LLVMValueRef low = emit_rest(e, i, HALF),
                 which = emit_rest(e, emit_over(e, i, HALF), 2);
    LLVMValueRef high = emit_over(e, i, PLAN_SQUARE), side, deep;
    bool turned = s->side == 1;

    if (s->y) {
        side = turned ? emit_times(e, high, HALF)
                      : emit_add(e, emit_times(e, high, HALF), low);
        deep = turned ? emit_rest(e, i, PLAN_SQUARE)
                      : emit_times(e, which, ROW_BYTES / each);
    } else {
        side =
            turned ? emit_times(e, which, HALF) : emit_rest(e, i, PLAN_SQUARE);
        deep = turned ? emit_add(e, emit_times(e, high, HALF), low)
                      : emit_times(e, high, ROW_BYTES / each);
    }
    side = emit_add(e, from, side);
    return emit_add(e, emit_times(e, side, s->side * each),
                    emit_times(e, deep, s->deep * each));
}

/* Turned: of elements of two bytes, row and column exchanged. */
static void square(emit *e, const emit_side *s, LLVMValueRef p, LLVMValueRef *v)
{
    call_several(e,
                 s->side == 1
                     ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16"
                     : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16",
                 LLVMTypeOf(p), &p, 1, v, 4);
}

/* Two halves of 8 columns. */
static void multiply(emit *e, LLVMValueRef *acc, const LLVMValueRef *x,
                     const LLVMValueRef *y)
{
    static const char *const name[PLAN_ENGINE_COUNT] = {
        [PLAN_ENGINE_MMA_BF16] = "llvm.nvvm.mma.m16n8k16.row.col.bf16",
        [PLAN_ENGINE_MMA_F16] = "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
        [PLAN_ENGINE_MMA_TF32] = "llvm.nvvm.mma.m16n8k8.row.col.tf32",
        [PLAN_ENGINE_MMA_S8] = "llvm.nvvm.mma.m16n8k32.row.col.s8",
        [PLAN_ENGINE_MMA_U8] = "llvm.nvvm.mma.m16n8k32.row.col.u8"};

    for (int half = 0; half < 2; half++, acc += 4, y += 2) {
        LLVMValueRef arg[10] = {x[0], x[1],   x[2],   x[3],   y[0],
                                y[1], acc[0], acc[1], acc[2], acc[3]};

        call_several(e, name[e->k->blocks->engine], NULL, arg, 10, acc, 4);
    }
}

/* To tf32, ties away from 0: what an engine does to other digits nobody says.
 */
static LLVMValueRef trim(emit *e, LLVMValueRef v)
{
    LLVMValueRef t = emit_intrinsic2(e, "llvm.nvvm.f2tf32.rna", NULL, 0, &v, 1);

    return LLVMBuildBitCast(e->b, t, e->f32, "");
}

/* Of a half an item has rows i / 4 and 8 more, of each columns i % 4 * 2 and
 * the next. */
static void place(emit *e, LLVMValueRef i, LLVMValueRef *m, LLVMValueRef *n)
{
    *m = emit_over(e, i, 4);
    *n = emit_times(e, emit_rest(e, i, 4), 2);
}

static void beside(const emit *e, int sum, int *m, int *n)
{
    (void)e;
    *m = sum / 2 % 2 * HALF;
    *n = sum / 4 * HALF + sum % 2;
}

static const emit_abi abi = {.kernel_cc = LLVMPTXKernelCallConv,
                             .function_cc = LLVMCCallConv,
                             .static_local = 48 << 10, /* ptxas takes no more */
                             .mark = mark,
                             .id = id,
                             .barrier = barrier,
                             .any = any,
                             .together = WARP,
                             .shuffle = shuffle,
                             .vote = vote,
                             .meet = meet,
                             .same = same,
                             .own = own,
                             .square = square,
                             .multiply = multiply,
                             .trim = trim,
                             .place = place,
                             .beside = beside,
                             .open_sums = target_ptx_open_sums,
                             .take_sums = target_ptx_take_sums,
                             .clear_sums = target_ptx_clear_sums,
                             .open_factors = target_ptx_open_factors,
                             .keep_factors = target_ptx_keep_factors,
                             .add_products = target_ptx_add_products,
                             .begin = target_ptx_begin,
                             .wait = target_ptx_wait,
                             .settle = target_ptx_settle,
                             .copy = target_ptx_copy,
                             .close_copies = target_ptx_close_copies,
                             .await_copies = target_ptx_await_copies,
                             .attend = &target_ptx_attend,
                             .begin_places = target_ptx_places,
                             .add_unit = target_ptx_unit,
                             .run = 2,
                             .pack = 1,
                             .bf16 = true,
                             .dear_division = true,
                             .f32_maximum = true};

/* ---- the module ---- */

/* What lies side by side, of an item that has several results, is read and
 * written at once, once neighbouring addresses are one and constants beside it.
 */
#define CLEAN \
    "sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg," \
    "separate-const-offset-from-gep,early-cse," \
    "nvptx-tag-invariant-loads,infer-alignment,load-store-vectorizer)"

static const char *passes(target_clean what)
{
    return what > TARGET_PLAIN ? "always-inline,globaldce,function(" CLEAN
                               : "function(" CLEAN;
}

/* x > c ? c : x with a constant c that is not 0, and the other way round, is
 * the minimum: x where it is NaN. */
static void take_limit(LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef select)
{
    LLVMValueRef cmp = LLVMGetOperand(select, 0), x, c, arg[2];
    LLVMValueRef yes = LLVMGetOperand(select, 1),
                 no = LLVMGetOperand(select, 2);
    LLVMTypeRef t = LLVMTypeOf(select);
    LLVMRealPredicate p;
    const char *name;
    unsigned id;

    if (LLVMGetTypeKind(t) != LLVMFloatTypeKind || !LLVMIsAFCmpInst(cmp))
        return;
    p = LLVMGetFCmpPredicate(cmp);
    x = LLVMGetOperand(cmp, 0);
    c = LLVMGetOperand(cmp, 1);
    if ((p != LLVMRealOGT && p != LLVMRealOLT) || !LLVMIsAConstantFP(c) ||
        LLVMIsNull(c) || yes != c || no != x)
        return;
    name = p == LLVMRealOGT ? "llvm.minimum" : "llvm.maximum";
    id = LLVMLookupIntrinsicID(name, strlen(name));
    arg[0] = x;
    arg[1] = c;
    LLVMPositionBuilderBefore(b, select);
    LLVMReplaceAllUsesWith(
        select, LLVMBuildCall2(
                    b, LLVMIntrinsicGetType(LLVMGetModuleContext(m), id, &t, 1),
                    LLVMGetIntrinsicDeclaration(m, id, &t, 1), arg, 2, ""));
    LLVMInstructionEraseFromParent(select);
}

/* PTX's shifts of 64 bits take the lower half of an amount, and give 0 from 64
 * on.  The test of the whole amount that stands behind one had no effect in the
 * machine code of CUDA 13.0's driver (2^62 << 2^62 was 2^62), so the amount is
 * limited before. */
static void limit_amount(LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef shift)
{
    static const char name[] = "llvm.umin";
    unsigned id = LLVMLookupIntrinsicID(name, sizeof name - 1);
    LLVMTypeRef t = LLVMTypeOf(shift);
    LLVMValueRef arg[2] = {LLVMGetOperand(shift, 1), LLVMConstInt(t, 63, 0)};

    if (LLVMGetTypeKind(t) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(t) != 64 || LLVMIsConstant(arg[0]))
        return;
    LLVMPositionBuilderBefore(b, shift);
    LLVMSetOperand(
        shift, 1,
        LLVMBuildCall2(b,
                       LLVMIntrinsicGetType(LLVMGetModuleContext(m), id, &t, 1),
                       LLVMGetIntrinsicDeclaration(m, id, &t, 1), arg, 2, ""));
}

/* What the device library says in steps and is one instruction here, and what
 * code generation gets wrong. */
static void repair_one(LLVMModuleRef m, LLVMBuilderRef b, LLVMValueRef in,
                       const device_desc *dev)
{
    (void)dev;
    if (LLVMIsASelectInst(in))
        take_limit(m, b, in);
    else if (LLVMGetInstructionOpcode(in) == LLVMShl ||
             LLVMGetInstructionOpcode(in) == LLVMLShr)
        limit_amount(m, b, in);
}

static void repair(LLVMModuleRef m, LLVMContextRef cx, const device_desc *dev)
{
    target_each(m, cx, dev, repair_one);
    if (chip_of(dev) != ALONE) /* wgmma's sums leave no registers to change */
        target_ptx_roll(m, cx);
}

/* Drivers read it up to a NUL, and link nothing to it. */
static sd_status check_text(const char *data, size_t bytes)
{
    static const char import[] = ".extern .func ";
    const char *nul = memchr(data, 0, bytes), *at = data;

    if (nul)
        return sd_error(SD_INTERNAL, "byte %td of generated PTX is 0",
                        nul - data);
    at = memmem(data, bytes, import, sizeof import - 1);
    if (at)
        return sd_error(SD_INTERNAL, "generated code imports %.*s",
                        (int)SD_MIN(data + bytes - at, 80), at);
    return NULL;
}

const target_ops target_ptx = {.kind = THUNK_BIN_PTX,
                               .file = LLVMAssemblyFile,
                               .dump = "ptx",
                               .triple = "nvptx64-nvidia-cuda",
                               .global_as = 1,
                               .local_as = 3,
                               .reuse = true,
                               .start = start_ptx,
                               .devlib = library,
                               .abi = &abi,
                               .variant = chip_of,
                               .machine = machine,
                               .near = target_near,
                               .passes = passes,
                               .repair = repair,
                               .mend = target_ptx_part_logic,
                               .check = check_text};
