/* What uses the sums of a CONTRACT in blocks on a GPU: rows of them go from
 * registers to local memory, `round` at a time, and from there items take them
 * along LANE. */
#include "emit_group.h"

/* Rows [row, + near) of what an item has, to the area that begins with row
 * `from` of the tile. */
static void put_run(emit_tile *g, int row, int64_t from)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    int near = b->near;

    for (int r = row; r < row + near; r++)
        for (int c = 0; c < b->vectors; c++) {
            LLVMValueRef m = emit_add(
                e, emit_times(e, g->im, near),
                emit_si(e, (int64_t)row * b->along_m - from + r % near));
            LLVMValueRef n = emit_add(
                e, emit_times(e, g->in, near),
                emit_si(e, (int64_t)(c / near * near) * b->along_n + c % near));
            LLVMValueRef p =
                emit_tile_area(g, b->sum_at, emit_si(e, 0), g->type,
                               emit_mad(e, m, b->sum_m, n));
            LLVMValueRef v =
                LLVMBuildLoad2(e->b, g->type, g->sum[r * b->vectors + c], "");

            emit_tile_put(p, v, e, sd_dtype_bytes(b->node->dtype));
        }
}

static void put_rows(emit_tile *g, int row, int64_t from)
{
    if (g->matrix)
        emit_put_squares(g, row, from);
    else
        put_run(g, row, from);
}

/* Rows [at, + b->round) of the sums, to their area. */
static void put_sums(emit_tile *g, LLVMValueRef at)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;

    for (int64_t from = 0; from < b->mt; from += b->round) {
        LLVMValueRef now = NULL;
        LLVMBasicBlockRef no;

        if (b->round < b->mt)
            now = emit_equal(e, at, emit_si(e, from));
        no = emit_when(e, now);
        for (int row = 0; row < b->rows; row += b->near)
            if (row * b->along_m >= from && row * b->along_m < from + b->round)
                put_rows(g, row, from);
        emit_when_end(e, no);
    }
}

/* Where a tile has fewer rows or columns than its items have. */
static LLVMValueRef inside(emit *e, const emit_operand *o, LLVMValueRef flat)
{
    int64_t n =
        e->k->axis[o->axis].tile * plan_tile_points(e->k, e->k->blocks, o->in);

    return n < o->extent - o->halo ? emit_below(e, flat, emit_si(e, n)) : NULL;
}

/* Nor are there positions that the tile counts beyond an inner axis's end. */
static void limit_inner(emit *e, uint64_t in)
{
    for (int a = 0; a < e->k->naxis; a++) {
        int64_t n = e->k->axis[a].extent;

        if (in >> a & 1 && plan_tile_extent(e->k, e->k->blocks, a) > n)
            emit_limit_axis(e, a, emit_below(e, e->axis[a].at, emit_si(e, n)));
    }
}

static void use_row(emit_tile *g, LLVMValueRef round, LLVMValueRef row)
{
    emit *e = g->e;
    emit_operand *x = &g->x, *y = &g->y;
    LLVMValueRef m = emit_add(e, round, row), n = emit_item_start(e);
    uint64_t axes =
        x->in | y->in | (uint64_t)1 << x->axis | (uint64_t)1 << y->axis;

    e->block_m = row;
    e->block_n = n;
    emit_open_axes(e, x->axis, x->in, x->from, m, -1, 1);
    emit_limit_axis(e, x->axis, inside(e, x, m));
    limit_inner(e, x->in);
    emit_open_axes(e, y->axis, y->in, y->from, n, e->lane, e->k->vector);
    emit_limit_axis(e, y->axis, inside(e, y, n));
    e->outer_depth = e->depth;
    emit_stages(e);
    emit_close_axes(e, axes);
}

void emit_use_sums(emit_tile *g)
{
    emit *e = g->e;
    emit_loop round, row;

    emit_level_loop_open(e, &round, emit_si(e, 0), emit_si(e, g->b->mt),
                         g->b->round);
    emit_barrier(e);
    put_sums(g, round.at);
    emit_barrier(e);
    emit_level_loop_open(e, &row, e->row, emit_si(e, g->b->round),
                         e->k->group / e->k->items);
    use_row(g, round.at, row.at);
    emit_level_loop_close(e, &row);
    emit_level_loop_close(e, &round);
}

emit_value emit_group_sum(emit *e, const plan_node *n, int copy)
{
    const plan_blocks *b = e->k->blocks;
    LLVMValueRef at =
        emit_add(e, e->block_n, emit_si(e, emit_digit(e, copy, e->lane)));
    LLVMValueRef area = emit_si(e, (int64_t)b->sum_at);

    area = emit_local(e, area);
    return emit_mem_read(e, n->dtype, area,
                         emit_mad(e, e->block_m, b->sum_m, at), 1);
}
