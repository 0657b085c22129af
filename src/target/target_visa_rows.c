/* What attention does with 16 rows of 16 items, or 8 of 8, as Intel's assembly:
 * the compiler's own functions of a sub-group ask for a row at a time. */
#include "target_visa.h"

#include <stdio.h>
#include <string.h>

enum { HALF = 8, TEXT = 8192 };

/* Registers of two rows each, by 16-bit numbers: as a left operand lies. */
static void write_narrow(const char *type, int items, char *text)
{
    (void)items;
    int n = snprintf(text, TEXT,
                     "{\n.decl TO v_type=G type=%s num_elts=128 align=GRF "
                     "alias=<$0,0>\n",
                     type);

    for (int i = 0; i < HALF; i++)
        n += snprintf(text + n, (size_t)(TEXT - n),
                      "mov (M1, 16) TO(%d,%d)<1> $1(%d,0)<1;1,0>\n", i / 2,
                      i % 2 * 16, i);
    snprintf(text + n, (size_t)(TEXT - n), "}\n");
}

/* The same of 8 items: a register a row, of which $1 has the first 8 numbers
 * and $2 the others. */
static void write_join(const char *type, int items, char *text)
{
    int n = snprintf(text, TEXT,
                     "{\n.decl TO v_type=G type=%s num_elts=128 align=GRF "
                     "alias=<$0,0>\n",
                     type);

    for (int i = 0; i < 2 * HALF; i++)
        n += snprintf(text + n, (size_t)(TEXT - n),
                      "mov (M1, 8) TO(%d,%d)<1> $%d(%d,0)<1;1,0>\n", i / 2,
                      i % 2 * items, i % 2 + 1, i / 2);
    snprintf(text + n, (size_t)(TEXT - n), "}\n");
}

/* Two registers become one: a register's rows become half as long, by op of
 * their two halves, and those of the next register stand behind them.  Four
 * times of that leave one register, in which row i is at i; of 8 rows of 8
 * items three times.  Floats are read and written at the same place of a
 * register, or are moved there: so the lower halves of both are put side by
 * side first, and the upper ones, as words. */
static void write_rows(const char *op, int items, char *text)
{
    int from = 0, to = 0, n;

    n = snprintf(text, TEXT,
                 "{\n.decl ROWS v_type=G type=f num_elts=%d align=GRF\n"
                 ".decl WORDS v_type=G type=ud num_elts=%d align=GRF "
                 "alias=<ROWS,0>\n"
                 ".decl GIVEN v_type=G type=ud num_elts=%d align=GRF "
                 "alias=<$1,0>\n",
                 items * (items + 2), items * (items + 2), items * items);

    for (int half = items / 2, beside = items; half; half /= 2) {
        const char *in = half == items / 2 ? "GIVEN" : "WORDS";

        for (int i = 0; i < half; i++) {
            for (int upper = 0; upper < 2; upper++)
                n += snprintf(text + n, (size_t)(TEXT - n),
                              "mov (M1_NM, %d) WORDS(%d,0)<1> "
                              "%s(%d,%d)<%d;%d,1>\n",
                              items, beside + upper, in, from + 2 * i,
                              upper * half, 2 * half, half);
            n += snprintf(text + n, (size_t)(TEXT - n),
                          "%s (M1_NM, %d) %s(%d,0)<1> ROWS(%d,0)<1;1,0> "
                          "ROWS(%d,0)<1;1,0>\n",
                          op, items, half > 1 ? "ROWS" : "$0",
                          half > 1 ? to + i : 0, beside, beside + 1);
        }
        from = to;
        to += half;
    }
    snprintf(text + n, (size_t)(TEXT - n), "}\n");
}

static void write_body(LLVMModuleRef m, LLVMContextRef cx, const char *name,
                       void (*write)(const char *how, int items, char *text),
                       const char *how, int items)
{
    LLVMValueRef f = LLVMGetNamedFunction(m, name);
    char text[TEXT];

    if (!f || !LLVMIsDeclaration(f))
        return;
    write(how, items, text);
    target_write_body(cx, f, text);
}

void target_write_rows(LLVMModuleRef m, LLVMContextRef cx)
{
    write_body(m, cx, TARGET_NARROW_BF16, write_narrow, "bf", 2 * HALF);
    write_body(m, cx, TARGET_NARROW_F16, write_narrow, "hf", 2 * HALF);
    write_body(m, cx, TARGET_ROWS_MOST, write_rows, "max", 2 * HALF);
    write_body(m, cx, TARGET_ROWS_SUM, write_rows, "add", 2 * HALF);
    write_body(m, cx, TARGET_JOIN_BF16, write_join, "bf", HALF);
    write_body(m, cx, TARGET_JOIN_F16, write_join, "hf", HALF);
    write_body(m, cx, TARGET_EIGHTS_MOST, write_rows, "max", HALF);
    write_body(m, cx, TARGET_EIGHTS_SUM, write_rows, "add", HALF);
}
