/* What lies across LANE goes through local memory: the items of a group read a
 * tile of it along the axis on which it has neighbours, and after a barrier
 * each takes its own elements out of the tile.
 *
 * For the reading, LANE and the axis of place CROWD exchange their parts: items
 * that are neighbours along LANE are neighbours along the crowd's axis, and the
 * copies of the one are those of the other.  A tile is a square. */
#include "emit.h"

static bool is_staged(const emit *e)
{
    for (int i = 0; i < e->k->narea; i++)
        if (e->k->area[i].what == PLAN_AREA_STAGE)
            return true;
    return false;
}

/* The element's place in its area: a row for each position of LANE. */
static LLVMValueRef place_of(emit *e, const plan_node *n, int copy, int lane,
                             int crowd)
{
    int64_t row = (int64_t)(e->k->area[n->area].row / sd_dtype_bytes(n->dtype));
    LLVMValueRef x = LLVMBuildNSWSub(e->b, emit_position(e, lane, copy, false),
                                     e->tile_lane, "");
    LLVMValueRef y = LLVMBuildNSWSub(e->b, emit_position(e, crowd, copy, false),
                                     e->tile_crowd, "");

    x = LLVMBuildNSWMul(e->b, x, emit_si(e, row), "");
    return emit_add(e, x, y);
}

emit_value emit_staged(emit *e, const plan_node *n, int copy)
{
    LLVMValueRef at =
        place_of(e, n, copy, e->lane, plan_axis_at(e->k, PLAN_CROWD));

    return emit_mem_read(e, n->dtype, emit_area(e, n->area, 0), at, 1);
}

static void fill(emit *e, int lane, int crowd)
{
    plan_for_each_node(n, e->k) {
        if (!n->staged)
            continue;
        for (int c = 0; c < e->ncopy; c++)
            if (emit_is_copy(e, c, n->varies))
                emit_node_value(e, n, c);
        for (int c = 0; c < e->ncopy; c++)
            if (emit_is_copy(e, c, n->varies))
                emit_mem_write(e, n->dtype, emit_area(e, n->area, 0),
                               place_of(e, n, c, lane, crowd),
                               emit_node_value(e, n, c));
    }
}

/* LANE's part for the crowd's axis and the other way round. */
static void exchange(emit *e, int lane, int crowd)
{
    emit_axis l = e->axis[lane], c = e->axis[crowd];

    e->axis[crowd] = l;
    e->axis[lane] = c;
    e->axis[crowd].at = emit_add(e, e->tile_crowd, emit_item_start(e));
    e->axis[lane].at = emit_add(e, e->tile_lane, e->row);
    e->axis[crowd].level = e->axis[lane].level = e->depth;
    memset(e->axis[crowd].mask, 0, sizeof e->axis[crowd].mask);
    memset(e->axis[lane].mask, 0, sizeof e->axis[lane].mask);
    e->lane = crowd;
    e->stages_loads = true;
}

void emit_stage_loads(emit *e)
{
    int lane = e->lane, crowd = plan_axis_at(e->k, PLAN_CROWD);
    emit_axis was[2];
    emit_loop once;

    if (!is_staged(e))
        return;
    e->tile_lane =
        LLVMBuildNSWSub(e->b, e->axis[lane].at, emit_item_start(e), "");
    e->tile_crowd = LLVMBuildNSWSub(e->b, e->axis[crowd].at, e->row, "");
    emit_once_open(e, &once);
    was[0] = e->axis[lane];
    was[1] = e->axis[crowd];
    exchange(e, lane, crowd);
    fill(e, lane, crowd);
    e->axis[lane] = was[0];
    e->axis[crowd] = was[1];
    e->lane = lane;
    e->stages_loads = false;
    emit_level_loop_close(e, &once);
    emit_barrier(e);
}
