/* Sums of Intel's matrix engine that are registers of the assembly's own (ADR
 * 25).  An instruction can name a part of what a message has read, and so a
 * message may read what several instructions take; the compiler's own functions
 * take whole values, and a part of one it copies.  Sums in such a text the
 * compiler would copy from turn to turn, too, so it does not know of them.
 *
 * In the kernel these are calls of functions that are told a stack slot, which
 * hold the sum where there is no such text.  Here each call gets a text:
 *
 *   begin  declares the register of the sum's number and makes it 0
 *   add    multiplies parts of x and y and adds that to it
 *   scale  multiplies its rows, each by one number
 *   fold   the same, and adds rows
 *   take   copies it to the result */
#include "target_visa.h"

#include <stdio.h>
#include <string.h>

enum {
    ROWS = 8,             /* of a sum: a register of 16 items each, or of 8 */
    PART_OF_X = 4,        /* registers of ROWS rows */
    PART_OF_Y = 8 * 64,   /* bytes of a column's words */
    PARTS_OF_X = 4,
    SLOT = 0,
    NUMBER = 1,
    X = 1,
    Y = 2,
    SUM = 3,
    PART = 4 /* arguments */
};

/* ---- in the kernel ---- */

/* bf16 as the assembly calls it. */
static const char *text_type(sd_dtype t)
{
    return t == SD_BF16  ? "bf"
           : t == SD_F16 ? "hf"
           : t == SD_S8  ? "s8"
           : t == SD_U8  ? "u8"
           : t == SD_F32 ? "f"
                         : "d";
}

static LLVMValueRef number(emit *e, int n)
{
    return LLVMConstInt(e->i32, (unsigned)n, 0);
}

/* A pointer as a number, which says nothing of what is there. */
static LLVMValueRef place(emit *e, LLVMValueRef slot)
{
    return LLVMBuildPtrToInt(e->b, slot, e->i64, "");
}

static LLVMValueRef call(emit *e, const char *what, sd_dtype t, const char *how,
                         LLVMTypeRef result, LLVMValueRef *arg, int n)
{
    char name[32];

    snprintf(name, sizeof name, "sundog_%s_%s%s", what, text_type(t), how);
    return emit_builtin(e, name, "convergent", result, arg, n);
}

static sd_dtype sum_type(const emit *e)
{
    return e->k->attend ? SD_F32 : e->k->blocks->node->dtype;
}

void target_begin_sum(emit *e, LLVMValueRef slot, int sum)
{
    LLVMValueRef arg[2] = {place(e, slot), number(e, sum)};

    call(e, "begin", sum_type(e), "", LLVMVoidTypeInContext(e->cx), arg, 2);
}

void target_add_parts(emit *e, const emit_parts *p)
{
    int part =
        p->lower + 2 * p->second + (p->deep_y && p->second ? PARTS_OF_X : 0);
    LLVMValueRef arg[5] = {place(e, p->slot), p->x, p->y, number(e, p->sum),
                           number(e, part)};

    call(e, "add", e->k->blocks->part, p->deep_y ? "_deep" : "",
         LLVMVoidTypeInContext(e->cx), arg, 5);
}

void target_add_rows(emit *e, const emit_own_sum *s, LLVMValueRef x,
                     LLVMValueRef y)
{
    LLVMValueRef arg[5] = {place(e, s->slot), x, y, number(e, s->number),
                           number(e, 0)};
    const plan_engine_info *of = &plan_engine_table[e->k->attend->engine];

    call(e, "add", of->part, of->items == ROWS ? "_words" : "_rows",
         LLVMVoidTypeInContext(e->cx), arg, 5);
}

void target_scale_rows(emit *e, const emit_own_sum *s, LLVMValueRef by, int of)
{
    LLVMValueRef arg[4] = {place(e, s->slot), by, number(e, s->number),
                           number(e, of)};

    call(e, "scale", SD_F32, "", LLVMVoidTypeInContext(e->cx), arg, 4);
}

void target_fold_rows(emit *e, const emit_own_sum *s, LLVMValueRef v,
                      LLVMValueRef by, int of)
{
    LLVMValueRef arg[5] = {place(e, s->slot), v, by, number(e, s->number),
                           number(e, of)};

    call(e, "fold", SD_F32, "", LLVMVoidTypeInContext(e->cx), arg, 5);
}

void target_take_sum(emit *e, LLVMValueRef slot, int sum)
{
    LLVMValueRef arg[2] = {place(e, slot), number(e, sum)};
    LLVMTypeRef one =
        sum_type(e) == SD_F32 ? LLVMFloatTypeInContext(e->cx) : e->i32;

    LLVMBuildStore(
        e->b,
        call(e, "take", sum_type(e), "", LLVMVectorType(one, ROWS), arg, 2),
        slot);
}

/* ---- texts ---- */

enum { TEXT = 1024 };

static unsigned number_of(LLVMValueRef call, unsigned i)
{
    return (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(call, i));
}

static void write_begin(LLVMValueRef call, const char *type, int items,
                        char *text)
{
    unsigned sum = number_of(call, NUMBER);
    int n = snprintf(text, TEXT,
                     ".decl SUM%u v_type=G type=%s num_elts=%d align=GRF\n",
                     sum, type, ROWS * items);

    for (int i = 0; i < ROWS; i++)
        n += snprintf(text + n, (size_t)(TEXT - n),
                      "mov (M1, %d) SUM%u(%d,0)<1> 0x0:%s\n", items, sum, i,
                      type);
}

static void write_add(LLVMValueRef call, const char *type, int items,
                      char *text)
{
    unsigned sum = number_of(call, SUM), part = number_of(call, PART);

    snprintf(text, TEXT,
             "dpas.%s.%s.8.8 (M1, %d) SUM%u.0 SUM%u.0 $1.%u $0(%u,0)", type,
             type, items, sum, sum, part / PARTS_OF_X * PART_OF_Y,
             part % PARTS_OF_X * PART_OF_X);
}

/* Rows of numbers of 16 bits, which it knows as words. */
static void write_add_rows(LLVMValueRef call, const char *type, int items,
                           char *text)
{
    unsigned sum = number_of(call, SUM);

    snprintf(text, TEXT,
             "{\n.decl ROWS v_type=G type=ud num_elts=64 align=GRF "
             "alias=<$0,0>\ndpas.%s.%s.8.8 (M1, %d) SUM%u.0 SUM%u.0 $1.0 "
             "ROWS(0,0)\n}\n",
             type, type, items, sum, sum);
}

static void write_take(LLVMValueRef call, const char *type, int items,
                       char *text)
{
    int n = 0;

    (void)type;
    for (int i = 0; i < ROWS; i++)
        n += snprintf(text + n, (size_t)(TEXT - n),
                      "mov (M1, %d) $0(%d,0)<1> SUM%u(%d,0)<1;1,0>\n", items, i,
                      number_of(call, NUMBER), i);
}

static void write_scale(LLVMValueRef call, const char *type, int items,
                        char *text)
{
    unsigned sum = number_of(call, SUM - 1), of = number_of(call, PART - 1);
    int n = 0;

    (void)type;
    for (unsigned i = 0; i < ROWS; i += 2) /* an instruction has two rows */
        n += snprintf(text + n, (size_t)(TEXT - n),
                      "mul (M1_NM, %d) SUM%u(%u,0)<1> SUM%u(%u,0)<1;1,0> "
                      "$0(0,%u)<1;%d,0>\n",
                      2 * items, sum, i, sum, i, of + i, items);
}

static void write_fold(LLVMValueRef call, const char *type, int items,
                       char *text)
{
    unsigned sum = number_of(call, SUM), of = number_of(call, PART);
    int n = 0;

    (void)type;
    for (unsigned i = 0; i < ROWS; i++)
        n += snprintf(text + n, (size_t)(TEXT - n),
                      "mad (M1, %d) SUM%u(%u,0)<1> SUM%u(%u,0)<1;1,0> "
                      "$1(0,%u)<0;1,0> $0(%u,0)<1;1,0>\n",
                      items, sum, i, sum, i, of + i, i);
}

typedef struct {
    const char *name, *type;
    void (*write)(LLVMValueRef call, const char *type, int items, char *text);
    unsigned nkept; /* arguments from X on that the text is given */
} texts;

static const texts of[] = {{"sundog_begin_f", "f", write_begin, 0},
                           {"sundog_begin_d", "d", write_begin, 0},
                           {"sundog_add_bf", "bf", write_add, 2},
                           {"sundog_add_hf", "hf", write_add, 2},
                           {"sundog_add_s8", "s8", write_add, 2},
                           {"sundog_add_u8", "u8", write_add, 2},
                           {"sundog_add_bf_deep", "bf", write_add, 2},
                           {"sundog_add_hf_deep", "hf", write_add, 2},
                           {"sundog_add_bf_rows", "bf", write_add_rows, 2},
                           {"sundog_add_hf_rows", "hf", write_add_rows, 2},
                           {"sundog_add_bf_words", "bf", write_add_rows, 2},
                           {"sundog_add_hf_words", "hf", write_add_rows, 2},
                           {"sundog_scale_f", "f", write_scale, 1},
                           {"sundog_fold_f", "f", write_fold, 2},
                           {"sundog_take_f", "f", write_take, 0},
                           {"sundog_take_d", "d", write_take, 0}};

/* A function whose body is the text, of what the call gives. */
static LLVMValueRef write_text(LLVMModuleRef m, LLVMContextRef cx,
                               LLVMValueRef call, const texts *t, int items,
                               LLVMValueRef *arg)
{
    LLVMTypeRef kind[TARGET_BODY_ARGS];
    char text[TEXT];
    LLVMValueRef f;

    for (unsigned i = 0; i < t->nkept; i++) {
        arg[i] = LLVMGetOperand(call, X + i);
        kind[i] = LLVMTypeOf(arg[i]);
    }
    t->write(call, t->type, items, text);
    f = LLVMAddFunction(
        m, "sundog.sum",
        LLVMFunctionType(LLVMTypeOf(call), kind, t->nkept, false));
    LLVMSetFunctionCallConv(f, LLVMGetInstructionCallConv(call));
    target_write_body(cx, f, text);
    return f;
}

static void write_calls(LLVMModuleRef m, LLVMContextRef cx, const texts *t,
                        int items)
{
    LLVMValueRef f = LLVMGetNamedFunction(m, t->name);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(cx);
    LLVMUseRef use;

    while (f && (use = LLVMGetFirstUse(f))) {
        LLVMValueRef call = LLVMGetUser(use), arg[TARGET_BODY_ARGS], to;

        to = write_text(m, cx, call, t, items, arg);
        LLVMPositionBuilderBefore(b, call);
        to = LLVMBuildCall2(b, LLVMGlobalGetValueType(to), to, arg, t->nkept,
                            "");
        LLVMSetInstructionCallConv(to, LLVMGetInstructionCallConv(call));
        if (LLVMGetFirstUse(call))
            LLVMReplaceAllUsesWith(call, to);
        LLVMInstructionEraseFromParent(call);
    }
    if (f)
        LLVMDeleteFunction(f);
    LLVMDisposeBuilder(b);
}

void target_write_sums(LLVMModuleRef m, LLVMContextRef cx, int items)
{
    for (size_t i = 0; i < SD_COUNTOF(of); i++)
        write_calls(m, cx, &of[i], items);
}
