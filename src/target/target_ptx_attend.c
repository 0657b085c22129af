/* PTX of attention: products by wgmma whose sums are registers of the text's
 * own (target_ptx.c says why), and what lies between them. */
#include <stdio.h>

#include "emit_attend.h"
#include "target_ptx.h"

static void put(emit *e, sd_buf *text, const char *how, LLVMValueRef *arg,
                unsigned narg)
{
    sd_buf_u8(text, 0);
    target_ptx_text(e, text->at, how, LLVMVoidTypeInContext(e->cx), arg, narg);
    sd_buf_finish(text);
}

static void open_sums(emit *e, const char *sums, int n, bool zero)
{
    sd_buf text = {0};

    sd_buf_fmt(&text, ".reg .f32 %s<%d>;", sums, n);
    for (int i = 0; i < n && zero; i++)
        sd_buf_fmt(&text, " mov.f32 %s%d, 0f00000000;", sums, i);
    put(e, &text, "~{memory}", NULL, 0);
}

static void take_sums(emit *e, const char *sums, LLVMValueRef *out, int n)
{
    target_ptx_take(e, sums, e->f32, out, n);
}

enum {
    STEP = 32 / PTX_UNIT, /* of a line: an instruction's positions of K */
    STEPS = PLAN_LINE / PTX_UNIT / STEP
};

static void put_sums(sd_buf *text, const emit *e, const char *name, int columns)
{
    sd_buf_fmt(text, " wgmma.mma_async.sync.aligned.m64n%dk%d.%s {", columns,
               plan_engine_table[e->k->attend->engine].depth,
               target_ptx_types(e->k->attend->engine));
    for (int i = 0; i < columns / 2; i++)
        sd_buf_fmt(text, "%s%d%s", name, i, i + 1 < columns / 2 ? ", " : "}, ");
}

/* From one instruction's positions of K to the next one's, in units: in the
 * same lines, or in the next column of them. */
static int64_t next_step(int i, int64_t rows)
{
    return (i + 1) % STEPS ? STEP
                           : rows * PLAN_LINE / PTX_UNIT - (STEPS - 1) * STEP;
}

/* The first instruction does not add. */
static void multiply(emit *e, const emit_turn_product *p)
{
    LLVMValueRef from[2] = {target_ptx_describe(e, p->x, 1),
                            target_ptx_describe(e, p->y, 1)};
    sd_buf text = {0};

    sd_buf_str(&text, "{.reg .pred p, first; .reg .b64 x, y; "
                      "setp.ne.b32 first, 0, 0; setp.eq.b32 p, 0, 0; "
                      "mov.b64 x, $0; mov.b64 y, $1; "
                      "wgmma.fence.sync.aligned;");
    for (int i = 0; i < p->times; i++) {
        put_sums(&text, e, p->sums, p->columns);
        sd_buf_fmt(&text,
                   "x, y, %s, 1, 1, 0, 0; add.s64 x, x, %" PRId64
                   "; add.s64 y, y, %" PRId64 ";",
                   i ? "p" : "first", next_step(i, p->x_rows),
                   next_step(i, p->y_rows));
    }
    sd_buf_str(&text, " wgmma.commit_group.sync.aligned;}");
    put(e, &text, "l,l,~{memory}", from, 2);
}

static void add(emit *e, const emit_turn_product *p)
{
    int n = EMIT_PIECES * p->times;
    int64_t step =
        plan_engine_table[e->k->attend->engine].depth * PLAN_LINE / PTX_UNIT;
    LLVMValueRef from[PTX_ARGS];
    sd_buf text = {0}, how = {0};

    for (int i = 0; i < n; i++) {
        from[i] = p->word[i];
        sd_buf_str(&how, "r,");
    }
    from[n] = target_ptx_describe(e, p->y, p->y_rows * PLAN_LINE / PTX_UNIT);
    sd_buf_fmt(&how, "l,~{memory}%c", 0);
    sd_buf_fmt(&text,
               "{.reg .pred p; .reg .b64 y; setp.eq.b32 p, 0, 0; "
               "mov.b64 y, $%d; wgmma.fence.sync.aligned;",
               n);
    for (int i = 0; i < p->times; i++) {
        int at = i * EMIT_PIECES;

        put_sums(&text, e, p->sums, p->columns);
        sd_buf_fmt(&text,
                   "{$%d, $%d, $%d, $%d}, y, p, 1, 1, 1; "
                   "add.s64 y, y, %" PRId64 ";",
                   at, at + 1, at + 2, at + 3, step);
    }
    sd_buf_str(&text, " wgmma.commit_group.sync.aligned;}");
    put(e, &text, how.at, from, (unsigned)n + 1);
    sd_buf_finish(&how);
}

/* The store is there for ptxas, which moves a wait in front of all that it does
 * not order, here the exponentials that are to be made meanwhile. */
static void wait_behind(emit *e, LLVMValueRef p, LLVMValueRef v)
{
    LLVMValueRef arg[2] = {LLVMBuildPtrToInt(e->b, p, e->i32, ""), v};

    target_ptx_text(e,
                    "st.volatile.shared.f32 [$0], $1; "
                    "wgmma.wait_group.sync.aligned 0;",
                    "r,f,~{memory}", LLVMVoidTypeInContext(e->cx), arg, 2);
}

static void scale(emit *e, const char *sums, LLVMValueRef *by, int n)
{
    sd_buf text = {0};

    for (int i = 0; i < n; i++)
        sd_buf_fmt(&text, "mul.rn.f32 %s%d, %s%d, $%d; ", sums, i, sums, i,
                   i / 2 % 2);
    put(e, &text, "f,f,~{memory}", by, 2);
}

static LLVMValueRef exp2_of(emit *e, LLVMValueRef x)
{
    return target_ptx_compute(e, "ex2.approx.ftz.f32 $0, $1;", "=f,f", e->f32,
                              &x, 1);
}

static LLVMValueRef pack(emit *e, sd_dtype t, LLVMValueRef lo, LLVMValueRef hi)
{
    LLVMValueRef arg[2] = {hi, lo};

    return target_ptx_compute(e,
                              t == SD_BF16 ? "cvt.rn.bf16x2.f32 $0, $1, $2;"
                                           : "cvt.rn.f16x2.f32 $0, $1, $2;",
                              "=r,f,f", e->i32, arg, 2);
}

static LLVMValueRef any(emit *e, LLVMValueRef c)
{
    LLVMValueRef v = LLVMBuildZExt(e->b, c, e->i32, "");

    v = target_ptx_text(e,
                        "{.reg .pred p, q; setp.ne.u32 p, $1, 0; "
                        "bar.red.or.pred q, 0, p; selp.u32 $0, 1, 0, q;}",
                        "=r,r,~{memory}", e->i32, &v, 1);
    return LLVMBuildICmp(e->b, LLVMIntNE, v, LLVMConstInt(e->i32, 0, 0), "");
}

const emit_attend_abi target_ptx_attend = {.open = open_sums,
                                           .take = take_sums,
                                           .multiply = multiply,
                                           .add = add,
                                           .wait_behind = wait_behind,
                                           .scale = scale,
                                           .exp2 = exp2_of,
                                           .pack = pack,
                                           .any = any};
