/* Products of a group by its items, each of which multiplies and adds for its
 * own rows and columns of a tile. */
#include "emit_group.h"

enum { UNROLL = 4 };

/* Its row and column among the items, or sub-groups, of a tile. */
void emit_find_items(emit_tile *g)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    int near = e->k->subgroup, row = b->along_n;
    LLVMValueRef item = e->lid, in;

    if (g->matrix || b->early)
        item = emit_over(e, item, near);
    if (b->early)
        row /= PLAN_ABREAST;
    g->im = emit_over(e, item, row);
    g->in = emit_rest(e, item, row);
    if (!b->early)
        return;
    in = emit_rest(e, e->lid, near);
    g->im =
        emit_mad(e, g->im, near / PLAN_ABREAST, emit_over(e, in, PLAN_ABREAST));
    g->in = emit_mad(e, g->in, PLAN_ABREAST, emit_rest(e, in, PLAN_ABREAST));
}

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

/* Of position k of the areas of `turn`. */
static void load_sides(emit_tile *g, LLVMValueRef turn, LLVMValueRef k,
                       LLVMValueRef *x, LLVMValueRef *y)
{
    load_side(g, &g->x, turn, k, g->im, g->b->along_m, g->b->rows, x);
    load_side(g, &g->y, turn, k, g->in, g->b->along_n, g->b->vectors, y);
}

void emit_multiply_items(emit_tile *g, LLVMValueRef turn)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    LLVMValueRef x[PLAN_AXIS_COPIES], y[PLAN_AXIS_COPIES];
    emit_loop k;

    emit_loop_open(e, &k, emit_si(e, 0), emit_si(e, b->step), UNROLL);
    for (int u = 0; u < UNROLL; u++) {
        load_sides(g, turn, emit_add(e, k.at, emit_si(e, u)), x, y);
        for (int i = 0; i < b->rows * b->vectors; i++) {
            emit_value v = emit_multiply_add(
                e, b->node, (emit_value){x[i / b->vectors], NULL},
                (emit_value){y[i % b->vectors], NULL},
                get(e, g->type, g->acc[i]));

            emit_put(e, v.re, g->acc[i]);
        }
    }
    emit_loop_close(e, &k);
}

/* ---- reading early ---- */

/* Sums and factors are the target's own registers: what LLVM knows it moves
 * between a loop's turns, an eighth of all instructions. */

static void keep(emit_tile *g, LLVMValueRef *v)
{
    g->e->abi->keep_factors(g->e, v, g->b->rows + g->b->vectors);
}

void emit_begin_early(emit_tile *g)
{
    LLVMValueRef v[2 * PLAN_AXIS_COPIES];
    int rows = g->b->rows;

    assert(g->type == g->e->f32);
    g->e->abi->open_sums(g->e, g->type, g->nacc);
    g->e->abi->open_factors(g->e, rows + g->b->vectors);
    load_sides(g, emit_si(g->e, 0), emit_si(g->e, 0), v, v + rows);
    keep(g, v);
}

void emit_take_early(emit_tile *g)
{
    emit *e = g->e;
    LLVMValueRef *v = sd_arena_array(e->a, LLVMValueRef, g->nacc);

    e->abi->take_sums(e, g->type, v, g->nacc);
    for (int i = 0; i < g->nacc; i++)
        LLVMBuildStore(e->b, v[i], g->acc[i]);
    e->abi->clear_sums(e, g->type, g->nacc);
}

/* Reads position k of the areas of `turn`, and multiplies what was read before.
 */
static void advance(emit_tile *g, LLVMValueRef turn, LLVMValueRef k)
{
    LLVMValueRef v[2 * PLAN_AXIS_COPIES];
    int rows = g->b->rows;

    load_sides(g, turn, k, v, v + rows);
    g->e->abi->add_products(g->e, rows, g->b->vectors);
    keep(g, v);
}

/* The last positions stand behind the loop, since before the last of them all
 * write and wait. */
void emit_multiply_early(emit_tile *g, LLVMValueRef turn, LLVMValueRef then)
{
    emit *e = g->e;
    int rest = g->b->step - PLAN_EARLY;
    emit_loop k;

    if (rest) {
        emit_loop_open(e, &k, emit_si(e, 0), emit_si(e, rest), PLAN_EARLY);
        for (int u = 1; u <= PLAN_EARLY; u++)
            advance(g, turn, emit_add(e, k.at, emit_si(e, u)));
        emit_loop_close(e, &k);
    }
    for (int u = 1; u < PLAN_EARLY; u++)
        advance(g, turn, emit_si(e, rest + u));
    emit_write_step(g, then);
    advance(g, then, emit_si(e, 0));
}
