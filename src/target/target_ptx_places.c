/* PTX of windows' gradients: products by wgmma of what lies in local memory as
 * plan_places.h says. */
#include "target_ptx.h"

enum {
    UNIT = HLO_PLACES_UNIT / PTX_UNIT, /* as descriptors count */
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
