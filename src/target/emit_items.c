/* Products of a group by its items, each of which multiplies and adds for its
 * own rows and columns of a tile. */
#include "emit_group.h"

enum { UNROLL = 4 };

static emit_value get(emit *e, LLVMTypeRef t, LLVMValueRef p)
{
    return (emit_value){LLVMBuildLoad2(e->b, t, p, ""), NULL};
}

/* The item's rows or columns at position k of the step, from their area. */
static void load_side(emit_tile *g, const emit_operand *o, LLVMValueRef turn,
                      LLVMValueRef k, LLVMValueRef item, int items, int n,
                      LLVMValueRef *out)
{
    emit *e = g->e;
    int near = g->b->near;
    size_t bytes = sd_dtype_bytes(g->b->part);

    for (int i = 0; i < n; i += near) {
        LLVMValueRef at = emit_add(e, emit_times(e, item, near),
                                   emit_si(e, (int64_t)i * items));
        LLVMValueRef p =
            emit_tile_area(g, o->at, turn, g->type,
                           emit_add(e, at, emit_times(e, k, o->deep)));
        LLVMValueRef v = LLVMBuildLoad2(e->b, emit_widen(g->type, near), p, "");

        LLVMSetAlignment(v, (unsigned)(bytes * (size_t)near));
        for (int c = 0; c < near; c++)
            out[i + c] = emit_extract(e, v, c, 1);
    }
}

void emit_multiply_items(emit_tile *g, LLVMValueRef turn)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    LLVMValueRef x[PLAN_AXIS_COPIES], y[PLAN_AXIS_COPIES];
    emit_loop k;

    emit_loop_open(e, &k, emit_si(e, 0), emit_si(e, b->step), UNROLL);
    for (int u = 0; u < UNROLL; u++) {
        LLVMValueRef at = emit_add(e, k.at, emit_si(e, u));

        load_side(g, &g->x, turn, at, g->im, b->along_m, b->rows, x);
        load_side(g, &g->y, turn, at, g->in, b->along_n, b->vectors, y);
        for (int i = 0; i < b->rows * b->vectors; i++) {
            emit_value v = emit_multiply_add(
                e, b->node->dtype, (emit_value){x[i / b->vectors], NULL},
                (emit_value){y[i % b->vectors], NULL},
                get(e, g->type, g->acc[i]));

            LLVMBuildStore(e->b, v.re, g->acc[i]);
        }
    }
    emit_loop_close(e, &k);
}
