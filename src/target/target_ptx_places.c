/* PTX of windows' gradients: products by wgmma of what lies in local memory as
 * plan_places.h says. */
#include "target_ptx.h"

enum {
    UNIT = HLO_PLACES_LINES / PTX_UNIT, /* as descriptors count */
    TWO = 2 * UNIT               /* an instruction's positions */
};

/* y's features are the rows of the product; x's, of which those of the next
 * place of the window begin a unit further on, its columns. */
void target_ptx_places(emit *e, const emit_positions *p)
{
    plan_engine engine = e->k->places->engine;
    int columns = p->places * HLO_PLACES_FEATURES;
    LLVMValueRef from[2] = {target_ptx_describe(e, p->y, UNIT),
                            target_ptx_describe(e, p->x, UNIT)};
    sd_buf text = {0};

    sd_buf_str(&text, "{.reg .pred p; .reg .b64 x, y; setp.eq.b32 p, 0, 0; "
                      "mov.b64 y, $0; mov.b64 x, $1; "
                      "wgmma.fence.sync.aligned;");
    for (int64_t i = 0; i < p->rows * p->columns; i += 2) {
        bool ends = (i + 2) % p->columns == 0;

        sd_buf_fmt(&text, " wgmma.mma_async.sync.aligned.m64n%dk%d.%s {",
                   columns, plan_engine_table[engine].depth,
                   target_ptx_types(engine));
        for (int s = 0; s < columns / 2; s++)
            sd_buf_fmt(&text, "sum%d%s", s, s + 1 < columns / 2 ? ", " : "}, ");
        sd_buf_fmt(&text,
                   "y, x, p, 1, 1, 1, 1; add.s64 y, y, %d; add.s64 x, x, %d;",
                   TWO, TWO + (ends ? (p->places - 1) * UNIT : 0));
    }
    sd_buf_fmt(&text, " wgmma.commit_group.sync.aligned;}%c", 0);
    target_ptx_text(e, text.at, "l,l,~{memory}", LLVMVoidTypeInContext(e->cx),
                    from, 2);
    sd_buf_finish(&text);
}

/* Products of 16 rows, two of them, by 8 columns, four of each place: y has
 * what they take of its rows, of each 8 two positions, x of its columns.  Sums
 * are in the order places, rows, columns. */
void target_ptx_unit(emit *e, LLVMValueRef *y, LLVMValueRef *const *x,
                     int places)
{
    enum {
        ROWS = 2,
        COLUMNS = 4,
        OF_ROWS = EMIT_OF_UNIT / ROWS,
        OF_COLUMNS = 2
    };
    LLVMValueRef from[PTX_ARGS];
    sd_buf text = {0}, how = {0};
    int n = EMIT_OF_UNIT * (places + 1);

    for (int i = 0; i < n; i++) {
        from[i] =
            i < EMIT_OF_UNIT ? y[i] : x[i / EMIT_OF_UNIT - 1][i % EMIT_OF_UNIT];
        sd_buf_str(&how, i ? ",r" : "r");
    }
    for (int i = 0; i < places * ROWS * COLUMNS; i++) {
        int at = i / COLUMNS % ROWS * OF_ROWS,
            of = EMIT_OF_UNIT * (1 + i / (ROWS * COLUMNS)) +
                 i % COLUMNS * OF_COLUMNS;
        int s = 4 * i;

        sd_buf_fmt(&text,
                   "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                   "{sum%d, sum%d, sum%d, sum%d}, {$%d, $%d, $%d, $%d}, "
                   "{$%d, $%d}, {sum%d, sum%d, sum%d, sum%d}; ",
                   s, s + 1, s + 2, s + 3, at, at + 1, at + 2, at + 3, of,
                   of + 1, s, s + 1, s + 2, s + 3);
    }
    sd_buf_u8(&text, 0);
    sd_buf_u8(&how, 0);
    target_ptx_text(e, text.at, how.at, LLVMVoidTypeInContext(e->cx), from,
                    (unsigned)n);
    sd_buf_finish(&text);
    sd_buf_finish(&how);
}
