/* The mapping on the host: a tile is what a thread takes at a time, LANE is the
 * element of a vector. */
#include "plan_blocks.h"
#include "plan_mapping.h"
#include "plan_whole.h"

/* A tile that transposes is BLOCK positions of LANE, which is a line of memory,
 * by LONG of the axis that is crossed: the best of the blocks tried where
 * strides are powers of two. */
enum { BLOCK = 16, LONG = 256 };

/* ---- points ---- */

/* Cuts outer axes into tiles of about `want` points: the last axis is taken
 * whole first, then the one before it. */
static void cut_points(plan_kernel *k, int lane, int64_t want, int64_t width)
{
    int64_t have = 1;

    for (int i = k->nouter - 1; i >= 0; i--) {
        plan_axis *x = &k->axis[i];
        int64_t tile = have >= want ? 1 : (want + have - 1) / have;

        if (i == lane)
            tile = plan_round_up(tile, width);
        plan_cut_axis(x, tile);
        have *= x->tile;
    }
}

/* Tiles of equal work.  There are 16 for each thread at most, so that a thread
 * that comes late leaves little to wait for. */
static void tile_points(plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1);
    double work = k->flops + k->bytes / 4;
    double ntile = SD_MIN(work / PLAN_TILE_WORK, (double)dev->units * 16);
    int cross = plan_crossing_axis(k, lane);
    int64_t want;

    if (ntile < 2)
        return; /* one tile */
    if (cross >= 0 && k->axis[lane].outer) {
        for (int i = 0; i < k->nouter; i++)
            plan_cut_axis(&k->axis[i], i == lane    ? BLOCK
                                       : i == cross ? LONG
                                                    : 1);
        return;
    }
    want = (int64_t)(all / ntile);
    cut_points(k, lane, SD_MAX(want, 1), 4 * (int64_t)dev->lanes);
}

enum { BYTES_SHUFFLED = 16 }; /* at once, by one instruction */

/* Is all that a loop does about bytes? */
static bool is_of_bytes(const plan_kernel *k)
{
    if (k->cls != PLAN_LOOP || k->naxis != k->nouter)
        return false;
    plan_for_each_node(n, k)
        if ((n->kind != PN_LOAD && n->kind != PN_STORE && n->kind != PN_ELT &&
             n->kind != PN_CONST) ||
            n->nguard || sd_dtype_bytes(n->dtype) != 1 || sd_is_float(n->dtype))
            return false;
    return true;
}

static bool is_in_order(const plan_kernel *k, int lane)
{
    int64_t step;

    plan_for_each_node(n, k)
        if (n->off &&
            (!plan_expr_stride(n->off, lane, &step) || step < 0 || step > 1))
            return false;
    return true;
}

/* Four times as many bytes as words fill a register; where they are shuffled
 * twice as many, which are half of one, if that is within what is shuffled at
 * once. */
static int lanes_of_bytes(const plan_kernel *k, int lane,
                          const device_desc *dev)
{
    return is_in_order(k, lane)
               ? 4 * dev->lanes
               : SD_MAX(dev->lanes, SD_MIN(2 * dev->lanes, BYTES_SHUFFLED));
}

/* ---- scatters on the host ---- */

enum {
    BATCHES = 4, /* tables that are filled in turns; 2 if they are not small: */
    SMALL_TABLE = 64, /* places */
    LEAST_TURNS = 64, /* fewer updates are not worth vectors of places, */
    LEAST_COMPUTED = 2, /* nor are places and values of fewer operations; */
    GATHERED = 12, /* elements are gathered one by one, and put together */
    MOST_RANGES = 16, /* of places: each looks at all updates, */
    MOST_COMPUTED = 12, /* of which each does so many operations; */
    HEAVY = 16, /* one such counts for */
    LEAST_RANGE = 8192, /* elements of updates for each range */
    LEAST_WINDOW = 256, /* bytes: that smaller ones are left out by turns costs
                           more than they do */
    LONG_WINDOW = 128, /* elements */
    LEAST_FINDERS = 4 /* threads */
};

/* The axis along which the places of `scatter` lie closest.  The axis of a
 * batch is none of them, since its places follow from indices of its own, but
 * where it is the only one: a window of 13 rows that each batch has is one axis
 * with the batches where rows of both lie evenly. */
static int window_axis(const plan_kernel *k, const plan_node *scatter,
                       int64_t *stride)
{
    int best = k->ranges;
    int64_t s;

    *stride = INT64_MAX;
    for (int i = k->ranges; i < k->nouter; i++)
        if (plan_expr_stride(scatter->off, i, &s) && s < *stride) {
            *stride = s;
            best = i;
        }
    return best;
}

/* By how many operations vectors along axis are better for n than one after the
 * other. */
static int gain_by_vectors(const plan_node *n, int axis)
{
    int64_t s;

    if (n->kind == PN_ELT && n->varies >> axis & 1)
        return hlo_op_table[n->op].props & HLO_P_HEAVY ? HEAVY : 1;
    return n->kind == PN_LOAD && n->off->varies >> axis & 1 &&
                   !plan_expr_stride(n->off, axis, &s)
               ? -GATHERED
               : 0;
}

/* The axis of the updates where a window is one element and much is computed
 * for it, or where those of a range are picked: vectors of places and values
 * are computed side by side, and then applied in order.  -1: there is nothing
 * to compute, or what is written is read. */
static int turns_axis(const plan_kernel *k, const plan_node *scatter)
{
    uint64_t over = scatter->over;
    int axis = over ? __builtin_ctzll(over) : 0, computed = 0;

    if (!over || over & (over - 1) || k->nstage != 1 ||
        k->axis[axis].extent < LEAST_TURNS)
        return -1;
    plan_for_each_node(n, k)
        if (n->kind == PN_LOAD && k->slot[n->slot].access & PLAN_WRITE)
            return -1;
    plan_for_each_node(x, k)
        computed += gain_by_vectors(x, axis);
    return computed >= LEAST_COMPUTED || k->ranges ? axis : -1;
}

/* ---- scatters by ranges ---- */

/* What is computed for an update before it is seen whether its range wants it:
 * for windows little, since their loop comes after that. */
static int computed_for(const plan_kernel *k, uint64_t over)
{
    int all = 0;

    plan_for_each_node(n, k)
        if (n->kind == PN_ELT && n->varies & over)
            all += hlo_op_table[n->op].props & HLO_P_HEAVY ? HEAVY : 1;
    return all;
}

/* A window lies in one range, and updates can be looked at in any order: none
 * reads what another writes. */
static bool has_ranges(const plan_kernel *k, const plan_node *scatter,
                       int64_t window)
{
    const hlo_gather *g = scatter->in->u.gather;
    const sd_shape *u = scatter->in->arg[2]->shape;
    uint64_t over = scatter->over;

    if (!over || over & (over - 1) || k->nstage != 1 || g->operand_batch.n)
        return false;
    if (window == 1
            ? computed_for(k, over) > MOST_COMPUTED
            : window * (int64_t)sd_dtype_bytes(scatter->dtype) < LEAST_WINDOW)
        return false;
    for (int i = 0; i < g->index_map.n; i++)
        if (u->dim[g->index_map.at[i] + 1] != 1)
            return false;
    plan_for_each_node(x, k)
        if (x->kind == PN_LOAD && !k->slot[x->slot].noalias)
            return false;
    return true;
}

/* Two for each thread, so that one that comes late leaves less to wait for, if
 * windows are long. */
static int64_t count_ranges(int64_t updates, int64_t window, int units)
{
    int64_t each = window >= LONG_WINDOW ? 2 : 1;
    int64_t most = updates * window / LEAST_RANGE;

    return SD_MIN(SD_MIN(units * each, MOST_RANGES), most);
}

/* Places of elements that one core's cache holds are written as fast as two or
 * three threads find theirs. */
static bool is_quick(const plan_kernel *k, const plan_node *scatter,
                     int64_t window, const device_desc *dev)
{
    size_t places = (size_t)k->slot[scatter->slot].count;

    return window == 1 && dev->units < LEAST_FINDERS &&
           places * sd_dtype_bytes(scatter->dtype) <= dev->cache_bytes;
}

/* Threads share a scatter's places: each has its ranges, which no other writes
 * to, and goes through all updates for them.  So none waits for another's
 * memory, and each place has its updates in their order. */
static void share_places(plan_kernel *k, plan_node *scatter,
                         const device_desc *dev)
{
    int64_t stride, window, ranges;
    int lane = window_axis(k, scatter, &stride), which = -1;

    window = k->axis[lane].extent;
    if (dev->units == 1 || is_quick(k, scatter, window, dev) ||
        !has_ranges(k, scatter, window))
        return;
    for (int i = scatter->nguard - 1; i >= 0; i--)
        if (scatter->guard[i].lo == 0 &&
            scatter->guard[i].e->varies & scatter->over)
            which = i;
    ranges = count_ranges(k->axis[__builtin_ctzll(scatter->over)].extent,
                          window, dev->units);
    if (which >= 0 && ranges > 1 && scatter->guard[which].hi >= 2 * ranges)
        plan_split_places(k, scatter, which, ranges);
}

/* ---- scatters of batches ---- */

/* So many tables side by side, that an update need not wait for the one before
 * it at the same place.  Updates to many places seldom meet, and what is read
 * of the tables lies alike in its pages more often than not: a cache of 8 ways
 * has no room for four lines of indices, values and places each. */
static int64_t side_by_side(const plan_kernel *k, const plan_node *scatter,
                            int axis, int units)
{
    int64_t n = k->axis[axis].extent;
    int64_t places = k->slot[scatter->slot].count / n;

    return SD_MIN(places <= SMALL_TABLE ? BATCHES : BATCHES / 2, n / units / 2);
}

/* Chooses LANE of a scatter, and how wide its vectors are; true when an axis of
 * batches is UNROLLed.  A window of 12 elements is three vectors of 4 instead
 * of a part of 16, since a load cannot take over what a masked store wrote. */
static bool tile_batches(plan_kernel *k, const plan_node *scatter, int units)
{
    int64_t stride;
    int lane = window_axis(k, scatter, &stride);
    int64_t n = k->axis[lane].extent;
    int turns = n == 1 ? turns_axis(k, scatter) : -1;
    bool any = false;

    if (turns >= 0)
        lane = turns;
    else if (stride != 1)
        k->lanes = 1;
    else if (n / (n & -n) <= BATCHES)
        k->lanes = (int)SD_MIN(n & -n, k->lanes);
    while (turns < 0 && k->lanes / 2 >= n)
        k->lanes /= 2;
    k->axis[lane].place = PLAN_LANE;
    for (int i = 0; i < k->nouter; i++)
        if (i != lane && !plan_expr_stride(scatter->off, i, &stride)) {
            plan_cut_axis(&k->axis[i],
                          n <= 2 ? side_by_side(k, scatter, i, units) : 1);
            k->axis[i].place = PLAN_UNROLL;
            any = true;
        }
    return any;
}

/* ---- rows ---- */

/* Summing rows as they lie in memory pays from LEAST_ROWS rows on, when a tile
 * has at least LEAST_LANE positions of the LANE axis. */
enum { LEAST_ROWS = 32, LEAST_LANE = 256, PAGE = 4096 };

/* Can n be summed by rows: over the rows alone, 8 strided lanes, one result of
 * which each vector of LANE has its own? */
static bool adds_up(const plan_kernel *k, const plan_node *n, int lane)
{
    return n->stage == 0 && n->over == k->stage[0].axes && n->nout == 1 &&
           n->order.lanes == 8 && (n->varies >> lane & 1) &&
           !sd_is_complex(n->dtype) &&
           (plan_any_order(n) ||
            (n->body->nroot == 1 &&
             (n->body->op == HLO_ADD || n->body->op == HLO_MULTIPLY)));
}

/* Does the kernel sum over rows in stage 0, and make something of the sums in
 * stages without loops? */
static bool has_rows(const plan_kernel *k, int lane)
{
    uint64_t rows = k->nstage ? k->stage[0].axes : 0;
    bool reads = false;
    int64_t s;

    if (!rows || (rows & (rows - 1)) || !k->axis[lane].outer ||
        k->axis[__builtin_ctzll(rows)].extent < LEAST_ROWS)
        return false;
    for (int i = 1; i < k->nstage; i++)
        if (k->stage[i].axes)
            return false;
    plan_for_each_node(n, k) {
        if (n->kind == PN_SCAN || n->kind == PN_SCATTER ||
            n->kind == PN_CONTRACT || (n->kind == PN_STORE && n->stage == 0) ||
            (n->kind == PN_REDUCE && !adds_up(k, n, lane)))
            return false;
        reads = reads || (n->kind == PN_LOAD && (n->varies & rows) &&
                          plan_expr_stride(n->off, lane, &s) && s == 1);
    }
    return reads;
}

bool plan_rows_compete(const plan_kernel *k)
{
    int rows = __builtin_ctzll(k->stage[0].axes);
    int64_t s;

    plan_for_each_node(n, k)
        if (n->kind == PN_LOAD && plan_expr_stride(n->off, rows, &s) && s &&
            s * (int64_t)sd_dtype_bytes(n->dtype) % PAGE == 0)
            return true;
    return false;
}

/* A kernel by rows: a tile has so much of LANE that its accumulators stay in
 * the first level of cache while all rows pass.  What is too large for the
 * second level is then read once, in the order it has in memory.  Rows that
 * compete for that level are read as far as it goes, not a piece of each. */
static bool tile_rows(plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1);
    double ntile = dev->units;
    size_t each = 0, room = dev->local_bytes;
    int64_t tile, want;

    if (k->bytes < 4 * (double)dev->cache_bytes || !has_rows(k, lane))
        return false;
    if (!plan_rows_compete(k)) {
        room /= 2;
        ntile *= 4;
    }
    plan_for_each_node(n, k)
        if (n->kind == PN_REDUCE)
            each += (size_t)plan_row_lanes(n) * sd_dtype_bytes(n->dtype);
    tile = (int64_t)(room / each) & -64;
    tile = SD_MIN(tile, SD_MAX((int64_t)(all / ntile) & -64, LEAST_LANE));
    tile = SD_MIN(tile, k->axis[lane].extent);
    if (tile < LEAST_LANE || all / (double)tile < dev->units)
        return false;
    want = SD_MAX((int64_t)(all / (double)dev->units / 16), 1);
    for (int i = k->nouter - 1; i >= 0; i--) {
        plan_cut_axis(&k->axis[i], i == lane ? tile : SD_MAX(want / tile, 1));
        want = i == lane ? want : want / k->axis[i].tile;
    }
    k->rows = true;
    return true;
}

/* Vectors of no more than a row: of seven numbers four and four.  A heavy
 * function takes as long for four as for eight, so its rows take one vector. */
static void narrow_lanes(plan_kernel *k, int64_t row)
{
    bool heavy = false;

    plan_for_each_node(n, k)
        heavy |= n->kind == PN_ELT && hlo_op_table[n->op].props & HLO_P_HEAVY;
    while (k->lanes > row && !(heavy && k->lanes / 2 < row))
        k->lanes /= 2;
}

/* Sums along other axes take vectors that a row fills half of at least: two of
 * them for a row would read all that is the same for both twice. */
static void narrow_sums(plan_kernel *k, int64_t row)
{
    while (k->lanes / 2 >= row && k->lanes > 1)
        k->lanes /= 2;
}

/* ---- products of matrices ---- */

/* What an element costs that does not lie along LANE, in half nanoseconds (with
 * AVX-512): one that is copied across it into a block, once for each tile of
 * the other side, and one that is read or written beside the product, where
 * each number of a vector has a line of memory of its own. */
enum { COPIED_ACROSS = 1, ACROSS = 5 };

static double cost_across(const plan_kernel *k, uint64_t over, int lane,
                          int other)
{
    int64_t tiles =
        (k->axis[other].extent + PLAN_BLOCK_SIDE - 1) / PLAN_BLOCK_SIDE;
    double cost = 0;

    plan_for_each_node(n, k) {
        int64_t s;

        if ((n->kind == PN_LOAD || n->kind == PN_STORE) &&
            n->varies >> lane & 1 &&
            !(plan_expr_stride(n->off, lane, &s) && (s == 0 || s == 1)))
            cost += plan_points(k, n->varies) *
                    (n->varies & over ? COPIED_ACROSS * (double)tiles : ACROSS);
    }
    return cost;
}

/* LANE of a product of two matrices, or of a batch of such: the rows of the
 * result or its columns, both long enough; or -1.  Columns are as good as rows
 * where neither is better. */
static int lane_of_matrices(const plan_kernel *k, const device_desc *dev)
{
    const plan_node *c = plan_only_contract(k);
    uint64_t x, y;
    int m, n;

    if (!c)
        return -1;
    x = c->arg[0]->varies & ~c->arg[1]->varies & ~c->over;
    y = c->arg[1]->varies & ~c->arg[0]->varies & ~c->over;
    if (!x || !y || x & (x - 1) || y & (y - 1))
        return -1;
    m = plan_last_axis(SD_MIN(x, y));
    n = plan_last_axis(SD_MAX(x, y));
    if (k->axis[m].extent < dev->lanes || k->axis[n].extent < dev->lanes)
        return -1;
    return cost_across(k, c->over, m, n) < cost_across(k, c->over, n, m) ? m
                                                                         : n;
}

/* Elements that take turns come out of a vector and go into one by pieces of
 * four: of 16 that costs more than twice what it does of eight (maxima along
 * 2,048 lines of 1,000 1.9 ms and 1.2, with AVX-512). */
enum { SCAN_LANES = 8 };

/* The axis along which all that a kernel joins is maxima and the like, each of
 * them one chain, or -1. */
static int axis_in_any_order(const plan_kernel *k)
{
    uint64_t over = 0;

    plan_for_each_node(n, k) {
        if (n->over == 0)
            continue;
        if (n->kind != PN_REDUCE || n->order.lanes != 1 || !plan_any_order(n) ||
            (over && n->over != over))
            return -1;
        over = n->over;
    }
    return over && (over & (over - 1)) == 0 ? __builtin_ctzll(over) : -1;
}

/* Rows that are too short for a sum in strided lanes are joined in such lanes
 * nevertheless where no order shows in the result.  Many rows are if they fill
 * their vectors: maxima of 1,000 rows of 48 f32 take 10 us so and 22 as a chain
 * each; of 24 bytes or of 16 f16 chains are sooner.  Rows too few for a vector
 * of chains are if they fill half of one.  A sum beside them keeps its chain,
 * so they keep theirs: they share its loops. */
static void join_short_rows(plan_kernel *k, const device_desc *dev)
{
    int axis = axis_in_any_order(k), most = dev->lanes;
    int64_t row, all = 1; /* rows along the longest axis of such */
    double across = 0;

    if (axis < 0)
        return;
    row = k->axis[axis].extent;
    for (int i = 0; i < k->nouter; i++) {
        across = SD_MAX(across, plan_lane_score(k, i, most));
        all = SD_MAX(all, k->axis[i].extent);
    }
    if (plan_lane_score(k, axis, most) < across ||
        (all < most
             ? row * 2 <= most
             : row < 2 * most || 10 * row < 9 * plan_round_up(row, most)))
        return;
    plan_for_each_node(n, k)
        if (n->over)
            n->order.lanes = PLAN_ROW_LANES;
}

static void take_whole(plan_kernel *k)
{
    for (int a = 0; a < k->nouter; a++)
        plan_cut_axis(&k->axis[a], k->axis[a].extent);
}

void plan_tile_host(plan_kernel *k, const device_desc *dev)
{
    const plan_node *scatter = plan_scatter_of(k);
    int lane;

    k->lanes = dev->lanes;
    join_short_rows(k, dev);
    if (scatter)
        share_places(k, k->node[scatter->id], dev);
    if (scatter && tile_batches(k, scatter, dev->units))
        return;
    lane = scatter ? plan_lane_of(k) : lane_of_matrices(k, dev);
    if (lane < 0)
        lane = plan_lane_axis(k, dev);
    k->axis[lane].place = PLAN_LANE;
    if (is_of_bytes(k))
        k->lanes = lanes_of_bytes(k, lane, dev);
    if (plan_scan_along(k, lane))
        k->lanes = SD_MIN(k->lanes, SCAN_LANES);
    if (k->cls == PLAN_LOOP && k->naxis == k->nouter)
        narrow_lanes(k, k->axis[lane].extent);
    if (tile_rows(k, lane, dev) || plan_find_blocks(k, lane, dev))
        return;
    if (!scatter && k->axis[lane].outer && k->naxis > k->nouter)
        narrow_sums(k, k->axis[lane].extent);
    if (k->ranges)
        plan_cut_axis(&k->axis[0], 1);
    else
        tile_points(k, lane, dev);
    if (scatter && scatter->narg > 1 && !plan_tiles_own_places(k))
        take_whole(k); /* none has places that it could fill alone */
    plan_unroll_rows(k, lane, dev);
    if (k->axis[lane].outer)
        plan_park_across(k, lane, dev->cache_bytes / 4);
    else
        plan_park(k, lane, dev->cache_bytes / 4, true);
}
