/* Products of a group by matrix instructions: a sub-group has squares of 16 x
 * 16 sums, of which an item has some, as the target's ABI says. */
#include "emit_group.h"

/* Values of an item in a square. */
static int values(const emit *e)
{
    return PLAN_SQUARE * PLAN_SQUARE / e->k->subgroup / e->abi->pack;
}

static int place_of(const emit_tile *g, int row, int column)
{
    return (row * (g->b->vectors / PLAN_SQUARE) + column) * values(g->e);
}

static emit_side side_of(const emit_operand *o, bool y)
{
    return (emit_side){y, o->side, o->deep};
}

void emit_own_squares(emit_tile *g)
{
    emit *e = g->e;
    emit_side x = side_of(&g->x, false), y = side_of(&g->y, true);

    g->mate = emit_rest(e, e->lid, e->k->subgroup);
    if (g->wide)
        return;
    g->x_own = e->abi->own(e, &x, emit_times(e, g->im, PLAN_SQUARE), g->mate);
    g->y_own = e->abi->own(e, &y, emit_times(e, g->in, PLAN_SQUARE), g->mate);
}

/* Of the square that begins with row or column `from`, positions k on. */
static void load_square(emit_tile *g, const emit_operand *o, LLVMValueRef turn,
                        int64_t from, int k, LLVMValueRef *v)
{
    emit *e = g->e;
    bool y = o == &g->y;
    emit_side side = side_of(o, y);
    int depth = plan_engine_table[g->b->engine].depth;
    int64_t at = o->panel ? k / depth * o->panel : k * o->deep;
    LLVMValueRef p =
        emit_tile_area(g, o->at, g->b->window && !y ? emit_si(e, 0) : turn,
                       e->i8, y ? g->y_own : g->x_own);
    int64_t side_of_one = o->panel ? depth : o->side;
    LLVMValueRef more =
        emit_si(e, o->shift + (from * side_of_one + at) *
                                  (int64_t)sd_dtype_bytes(g->b->part));

    p = emit_behind(e, e->i8, p, more);
    e->abi->square(e, &side, p, v);
}

void emit_multiply_square(emit_tile *g, int row, int column,
                          const LLVMValueRef *x, const LLVMValueRef *y)
{
    emit *e = g->e;
    LLVMValueRef *slot = &g->acc[place_of(g, row, column)], acc[PLAN_SQUARE];
    int n = values(e);

    assert(n <= PLAN_SQUARE);
    for (int i = 0; i < n; i++)
        acc[i] = LLVMBuildLoad2(e->b, g->slot, slot[i], "");
    e->abi->multiply(e, acc, x, y);
    for (int i = 0; i < n; i++)
        LLVMBuildStore(e->b, acc[i], slot[i]);
}

/* Of panels, those of the operand stay in registers that has fewer squares. */
static void multiply_tall(emit_tile *g, LLVMValueRef turn, int k)
{
    const plan_blocks *b = g->b;
    LLVMValueRef x[EMIT_PIECES], y[PLAN_AXIS_COPIES / PLAN_SQUARE][EMIT_PIECES];

    for (int c = 0; c < b->vectors / PLAN_SQUARE; c++)
        load_square(g, &g->y, turn, (int64_t)c * b->along_n * PLAN_SQUARE, k,
                    y[c]);
    for (int r = 0; r < b->rows / PLAN_SQUARE; r++) {
        load_square(g, &g->x, turn, (int64_t)r * b->along_m * PLAN_SQUARE, k,
                    x);
        for (int c = 0; c < b->vectors / PLAN_SQUARE; c++)
            emit_multiply_square(g, r, c, x, y[c]);
    }
}

void emit_multiply_squares(emit_tile *g, LLVMValueRef turn, int from, int to)
{
    const plan_blocks *b = g->b;
    int depth = plan_engine_table[b->engine].depth;
    LLVMValueRef x[PLAN_AXIS_COPIES / PLAN_SQUARE][EMIT_PIECES], y[EMIT_PIECES];

    for (int k = from; k < to; k += depth) {
        if (g->x.panel && b->rows > b->vectors) {
            multiply_tall(g, turn, k);
            continue;
        }
        for (int r = 0; r < b->rows / PLAN_SQUARE; r++)
            load_square(g, &g->x, turn, (int64_t)r * b->along_m * PLAN_SQUARE,
                        k, x[r]);
        for (int c = 0; c < b->vectors / PLAN_SQUARE; c++) {
            load_square(g, &g->y, turn, (int64_t)c * b->along_n * PLAN_SQUARE,
                        k, y);
            for (int r = 0; r < b->rows / PLAN_SQUARE; r++)
                emit_multiply_square(g, r, c, x[r], y);
        }
    }
}

/* Sum number i of the square whose values begin at `slot`. */
static LLVMValueRef sum_in(emit_tile *g, const LLVMValueRef *slot, int i)
{
    emit *e = g->e;
    int pack = e->abi->pack;

    return emit_extract(e, LLVMBuildLoad2(e->b, g->slot, slot[i / pack], ""),
                        i % pack, 1);
}

/* Sums `i` of that square and those that follow along N, to row m from column n
 * on. */
static void put_few(emit_tile *g, LLVMValueRef m, LLVMValueRef n,
                    const LLVMValueRef *slot, int i)
{
    emit *e = g->e;
    int run = e->abi->run;
    LLVMValueRef p = emit_tile_area(g, g->b->sum_at, emit_si(e, 0), g->type,
                                    emit_mad(e, m, g->b->sum_m, n));
    LLVMValueRef v = LLVMGetPoison(emit_widen(g->type, run));

    for (int c = 0; run > 1 && c < run; c++)
        v = emit_insert(e, v, sum_in(g, slot, i + c), c);
    emit_tile_put(p, run > 1 ? v : sum_in(g, slot, i), e,
                  (size_t)run * sd_dtype_bytes(g->b->node->dtype));
}

void emit_put_squares(emit_tile *g, int row, int64_t from)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    LLVMValueRef m, n;
    int below, right;

    e->abi->place(e, g->mate, &m, &n);
    m = emit_add(e, emit_times(e, g->im, PLAN_SQUARE), m);
    n = emit_add(e, emit_times(e, g->in, PLAN_SQUARE), n);
    m = emit_add(e, m, emit_si(e, (int64_t)row * b->along_m - from));
    for (int c = 0; c < b->vectors / PLAN_SQUARE; c++)
        for (int i = 0; i < values(e) * e->abi->pack; i += e->abi->run) {
            e->abi->beside(e, i, &below, &right);
            put_few(g, emit_add(e, m, emit_si(e, below)),
                    emit_add(e, n,
                             emit_si(e, (int64_t)c * b->along_n * PLAN_SQUARE +
                                            right)),
                    &g->sum[place_of(g, row / PLAN_SQUARE, c)], i);
        }
}
