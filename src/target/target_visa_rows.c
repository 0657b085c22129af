/* What attention does with 16 rows of 16 items, as Intel's assembly: the
 * compiler's own functions of a sub-group ask for a row at a time. */
#include "target_visa.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 16, HALF = 8, TEXT = 8192 };

/* Registers of two rows each, by 16-bit numbers: as a left operand lies. */
static void write_narrow(const char *type, char *text)
{
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

/* Two registers become one: a register's rows become half as long, by op of
 * their two halves, and those of the next register stand behind them.  Four
 * times of that leave one register, in which row i is at i. */
static void write_rows(const char *op, char *text)
{
    int from = 0, to = 0, n;

    n = snprintf(text, TEXT,
                 "{\n.decl ROWS v_type=G type=f num_elts=%d align=GRF\n",
                 ROWS * ROWS);

    for (int half = HALF; half; half /= 2) {
        for (int i = 0; i < 2 * half; i++) {
            char in[16], out[16];

            snprintf(in, sizeof in, "%s(%d", half == HALF ? "$1" : "ROWS",
                     from + i);
            snprintf(out, sizeof out, "%s(%d", half > 1 ? "ROWS" : "$0",
                     half > 1 ? to + i / 2 : 0);
            n += snprintf(text + n, (size_t)(TEXT - n),
                          "%s (M1_NM, 8) %s,%d)<1> %s,0)<%d;%d,1> "
                          "%s,%d)<%d;%d,1>\n",
                          op, out, i % 2 * HALF, in, 2 * half, half, in, half,
                          2 * half, half);
        }
        from = to;
        to += half;
    }
    snprintf(text + n, (size_t)(TEXT - n), "}\n");
}

static void write_body(LLVMModuleRef m, LLVMContextRef cx, const char *name,
                       void (*write)(const char *how, char *text),
                       const char *how)
{
    LLVMValueRef f = LLVMGetNamedFunction(m, name);
    char text[TEXT];

    if (!f || !LLVMIsDeclaration(f))
        return;
    write(how, text);
    target_write_body(cx, f, text);
}

void target_write_rows(LLVMModuleRef m, LLVMContextRef cx)
{
    write_body(m, cx, TARGET_NARROW_BF16, write_narrow, "bf");
    write_body(m, cx, TARGET_NARROW_F16, write_narrow, "hf");
    write_body(m, cx, TARGET_ROWS_MOST, write_rows, "max");
    write_body(m, cx, TARGET_ROWS_SUM, write_rows, "add");
}
