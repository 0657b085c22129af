/* Products by wgmma, 64 x n sums of four warps, and what items multiply by
 * themselves, as instructions of PTX; copies that go by themselves.
 *
 * An item's sums are registers of the text's own, sum0, sum1, ..: what LLVM
 * knows it moves between a loop's turns, and ptxas lets no product follow
 * another whose sums are moved. */
#include <stdio.h>

#include "target_ptx.h"

/* effects: it does more than compute its result. */
static LLVMValueRef call_text(emit *e, const char *text, const char *how,
                              bool effects, LLVMTypeRef out, LLVMValueRef *arg,
                              unsigned narg)
{
    LLVMTypeRef in[PTX_ARGS], t;

    assert(narg <= PTX_ARGS);
    for (unsigned i = 0; i < narg; i++)
        in[i] = LLVMTypeOf(arg[i]);
    t = LLVMFunctionType(out, in, narg, false);
    return LLVMBuildCall2(e->b, t,
                          LLVMGetInlineAsm(t, text, strlen(text), how,
                                           strlen(how), effects, false,
                                           LLVMInlineAsmDialectATT, false),
                          arg, narg, "");
}

LLVMValueRef target_ptx_compute(emit *e, const char *text, const char *how,
                                LLVMTypeRef out, LLVMValueRef *arg,
                                unsigned narg)
{
    return call_text(e, text, how, false, out, arg, narg);
}

LLVMValueRef target_ptx_text(emit *e, const char *text, const char *how,
                             LLVMTypeRef out, LLVMValueRef *arg, unsigned narg)
{
    LLVMValueRef v = call_text(e, text, how, true, out, arg, narg);

    LLVMAddCallSiteAttribute(
        v, LLVMAttributeFunctionIndex,
        LLVMCreateEnumAttribute(
            e->cx, LLVMGetEnumAttributeKindForName("convergent", 10), 0));
    return v;
}

static void put_plain(emit *e, const char *text)
{
    target_ptx_text(e, text, "~{memory}", LLVMVoidTypeInContext(e->cx), NULL,
                    0);
}

static const char *kind_of(const emit *e, LLVMTypeRef t)
{
    return t == e->f32 ? "f32" : "s32";
}

void target_ptx_clear_sums(emit *e, LLVMTypeRef t, int n)
{
    sd_buf text = {0};

    for (int i = 0; i < n; i++)
        sd_buf_fmt(&text, "mov.%s sum%d, %s; ", kind_of(e, t), i,
                   t == e->f32 ? "0f00000000" : "0");
    sd_buf_u8(&text, 0);
    put_plain(e, text.at);
    sd_buf_finish(&text);
}

void target_ptx_open_sums(emit *e, LLVMTypeRef t, int n)
{
    sd_buf text = {0};

    sd_buf_fmt(&text, ".reg .%s sum<%d>;%c", kind_of(e, t), n, 0);
    put_plain(e, text.at);
    target_ptx_clear_sums(e, t, n);
    sd_buf_finish(&text);
}

void target_ptx_take(emit *e, const char *name, LLVMTypeRef t,
                     LLVMValueRef *out, int n)
{
    LLVMTypeRef *all = sd_arena_array(e->a, LLVMTypeRef, n);
    sd_buf text = {0}, how = {0};
    LLVMValueRef v;

    for (int i = 0; i < n; i++) {
        all[i] = t;
        sd_buf_fmt(&text, "mov.%s $%d, %s%d; ", kind_of(e, t), i, name, i);
        sd_buf_fmt(&how, "=%c,", t == e->f32 ? 'f' : 'r');
    }
    sd_buf_u8(&text, 0);
    sd_buf_fmt(&how, "~{memory}%c", 0);
    v = target_ptx_text(e, text.at, how.at,
                        LLVMStructTypeInContext(e->cx, all, (unsigned)n, false),
                        NULL, 0);
    for (int i = 0; i < n; i++)
        out[i] = LLVMBuildExtractValue(e->b, v, (unsigned)i, "");
    sd_buf_finish(&text);
    sd_buf_finish(&how);
}

void target_ptx_take_sums(emit *e, LLVMTypeRef t, LLVMValueRef *out, int n)
{
    target_ptx_take(e, "sum", t, out, n);
}

void target_ptx_open_factors(emit *e, int n)
{
    sd_buf text = {0};

    sd_buf_fmt(&text, ".reg .f32 factor<%d>;%c", n, 0);
    put_plain(e, text.at);
    sd_buf_finish(&text);
}

void target_ptx_keep_factors(emit *e, LLVMValueRef *v, int n)
{
    sd_buf text = {0}, how = {0};

    for (int i = 0; i < n; i++) {
        sd_buf_fmt(&text, "mov.f32 factor%d, $%d; ", i, i);
        sd_buf_fmt(&how, i ? ",f" : "f");
    }
    sd_buf_u8(&text, 0);
    sd_buf_u8(&how, 0);
    target_ptx_text(e, text.at, how.at, LLVMVoidTypeInContext(e->cx), v,
                    (unsigned)n);
    sd_buf_finish(&text);
    sd_buf_finish(&how);
}

void target_ptx_add_products(emit *e, int nx, int ny)
{
    sd_buf text = {0};

    for (int i = 0; i < nx * ny; i++)
        sd_buf_fmt(&text, "fma.rn.f32 sum%d, factor%d, factor%d, sum%d; ", i,
                   i / ny, nx + i % ny, i);
    sd_buf_u8(&text, 0);
    target_ptx_text(e, text.at, "", LLVMVoidTypeInContext(e->cx), NULL, 0);
    sd_buf_finish(&text);
}

LLVMValueRef target_ptx_describe(emit *e, LLVMValueRef p, int64_t apart)
{
    enum { EIGHT_LINES = PLAN_LINES * PLAN_LINE / PTX_UNIT };
    uint64_t rest =
        (uint64_t)apart << 16 | (uint64_t)EIGHT_LINES << 32 | (uint64_t)1 << 62;
    LLVMValueRef at = LLVMBuildPtrToInt(e->b, p, e->i64, "");

    at = LLVMBuildAnd(e->b, at, LLVMConstInt(e->i64, 0x3ffff, 0), "");
    at = LLVMBuildLShr(e->b, at, LLVMConstInt(e->i64, 4, 0), "");
    return LLVMBuildOr(e->b, at, LLVMConstInt(e->i64, rest, 0), "");
}

const char *target_ptx_types(plan_engine engine)
{
    static const char *const type[PLAN_ENGINE_COUNT] = {
        [PLAN_ENGINE_WGMMA_BF16] = "f32.bf16.bf16",
        [PLAN_ENGINE_WGMMA_F16] = "f32.f16.f16",
        [PLAN_ENGINE_WGMMA_TF32] = "f32.tf32.tf32",
        [PLAN_ENGINE_WGMMA_S8] = "s32.s8.s8",
        [PLAN_ENGINE_WGMMA_U8] = "s32.u8.u8"};

    return type[engine];
}

/* Where K's positions are lines, 64 neighbours are a step's lines from the next
 * 64. */
static LLVMValueRef describe(emit *e, LLVMValueRef p, bool deep)
{
    return target_ptx_describe(
        e, p, deep ? 1 : e->k->blocks->step * PLAN_LINE / PTX_UNIT);
}

/* x of product i: what describes it, or the item's words $0, $1, .. */
static void put_x(sd_buf *text, const emit_wide *w, int i)
{
    int at = i * EMIT_PIECES;

    if (w->held)
        sd_buf_fmt(text, "{$%d, $%d, $%d, $%d}", at, at + 1, at + 2, at + 3);
    else
        sd_buf_fmt(text, "x");
}

/* One after the other along K: 32 bytes of a line, or as many lines. */
void target_ptx_begin(emit *e, const emit_wide *w)
{
    plan_engine engine = e->k->blocks->engine;
    int n = w->columns / 2, depth = plan_engine_table[engine].depth;
    sd_dtype part = plan_engine_table[engine].part;
    int nx = w->held ? EMIT_PIECES * w->times : 1;
    LLVMValueRef from[PTX_ARGS];
    sd_buf text = {0}, how = {0};

    for (int i = 0; i < nx; i++) {
        from[i] = w->held ? w->held[i] : describe(e, w->x, w->x_deep);
        sd_buf_fmt(&how, w->held ? "r," : "l,");
    }
    from[nx] = describe(e, w->y, w->y_deep);
    sd_buf_fmt(&how, "l,~{memory}%c", 0);
    sd_buf_fmt(&text,
               "{.reg .pred p; .reg .b64 x, y; setp.eq.b32 p, 0, 0; "
               "mov.b64 y, $%d; ",
               nx);
    if (!w->held)
        sd_buf_fmt(&text, "mov.b64 x, $0; ");
    sd_buf_fmt(&text, "wgmma.fence.sync.aligned;");
    for (int i = 0; i < w->times; i++) {
        sd_buf_fmt(&text, " wgmma.mma_async.sync.aligned.m64n%dk%d.%s {",
                   w->columns, depth, target_ptx_types(engine));
        for (int s = 0; s < n; s++)
            sd_buf_fmt(&text, "sum%d%s", s, s + 1 < n ? ", " : "}, ");
        put_x(&text, w, i);
        sd_buf_fmt(&text, ", y, p");
        if (sd_is_float(part)) /* neither has its sign changed */
            sd_buf_fmt(&text, ", 1, 1");
        if (sd_dtype_bytes(part) == 2)
            sd_buf_fmt(&text, ", %d, %d", !w->x_deep, !w->y_deep);
        if (!w->held)
            sd_buf_fmt(&text, "; add.s64 x, x, %d",
                       w->x_deep ? 2 : depth * PLAN_LINE / 16);
        sd_buf_fmt(&text, "; add.s64 y, y, %d;",
                   w->y_deep ? 2 : depth * PLAN_LINE / 16);
    }
    sd_buf_fmt(&text, " wgmma.commit_group.sync.aligned;}%c", 0);
    target_ptx_text(e, text.at, how.at, LLVMVoidTypeInContext(e->cx), from,
                    (unsigned)nx + 1);
    sd_buf_finish(&text);
    sd_buf_finish(&how);
}

void target_ptx_wait(emit *e, int left)
{
    char text[40];

    snprintf(text, sizeof text, "wgmma.wait_group.sync.aligned %d;", left);
    put_plain(e, text);
}

/* Zeros are not read: all items would ask the second level of cache for one
 * line (three to five times the time of a convolution). */
void target_ptx_copy(emit *e, LLVMValueRef to, LLVMValueRef from,
                     LLVMValueRef not)
{
    LLVMValueRef arg[3] = {to, from};

    if (not)
        arg[2] = LLVMBuildSelect(e->b, not, LLVMConstInt(e->i32, 0, 0),
                                 LLVMConstInt(e->i32, PLAN_LINE_PART, 0), "");
    emit_intrinsic2(e,
                    not ? "llvm.nvvm.cp.async.cg.shared.global.16.s"
                        : "llvm.nvvm.cp.async.cg.shared.global.16",
                    NULL, 0, arg, not ? 3 : 2);
}

void target_ptx_close_copies(emit *e)
{
    put_plain(e, "cp.async.commit_group;");
}

void target_ptx_await_copies(emit *e, int left)
{
    static const char *const text[] = {"cp.async.wait_group 0;",
                                       "cp.async.wait_group 1;",
                                       "cp.async.wait_group 2;"};

    put_plain(e, text[left]);
}

/* wgmma reads by another way than ordinary accesses. */
void target_ptx_settle(emit *e)
{
    put_plain(e, "fence.proxy.async.shared::cta;");
}
