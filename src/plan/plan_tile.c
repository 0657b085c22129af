/* Places and tiles: the only file that looks at the device.  What it decides
 * moves work around and never changes a result. */
#include "plan_room.h"

enum {
    TILE_WORK = 32768, /* operations that make a tile worth its call */
    /* a transposing tile: a line's worth of LANE, long in the other axis;
     * of the blocks tried the best where strides are powers of two */
    BLOCK = 16,
    LONG = 256,
    GPU_STEPS = 4, /* positions an item takes at most, by itself */
    LEAST_GROUP = 16, /* items of a group at least, */
    LESS_IDLE = 8 /* and fewer than the device's where that spares one item
                     of so many */
};

/* ---- the LANE axis ---- */

/* The inner axis whose reductions keep 64 strided lanes, or -1. */
static int row_axis(const plan_kernel *k)
{
    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];

        if (n->kind == PN_REDUCE && n->order.lanes == 64)
            return __builtin_ctzll(n->over);
    }
    return -1;
}

static double access_score(const plan_expr *off, int axis)
{
    int64_t s;

    if (!plan_expr_stride(off, axis, &s))
        return 0.05;
    return s == 1 ? 1 : s == 0 ? 0.9 : s == -1 ? 0.7 : 0.1;
}

static double axis_score(const plan_kernel *k, int axis, int width)
{
    double score = 0;
    double fill = (double)k->axis[axis].extent / width;

    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];
        double w = plan_points(k, n->varies);

        if (n->kind == PN_LOAD)
            score += w * access_score(n->off, axis);
        else if (n->kind == PN_STORE)
            score += 2 * w * access_score(n->off, axis);
    }
    return score * SD_MIN(fill, 1.0);
}

/* A running axis along which elements lie side by side: read as vectors, and
 * added one by one, it costs less than a lane a line.  Host only: work items
 * cannot take turns. */
static int running_axis(const plan_kernel *k, const device_desc *dev)
{
    int64_t s;

    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];
        int axis = n->over ? __builtin_ctzll(n->over) : 0;

        if (n->kind != PN_SCAN)
            continue;
        for (int j = 0; j < k->nnode; j++)
            if (k->node[j]->kind == PN_STORE &&
                (!plan_expr_stride(k->node[j]->off, axis, &s) ||
                 (s != 1 && s != -1)))
                return -1;
        return dev->kind == DEVICE_HOST ? axis : -1;
    }
    return -1;
}

static int least_group(const device_desc *dev)
{
    return SD_MAX(SD_MIN(LEAST_GROUP, dev->group), dev->subgroup);
}

static int lane_axis(const plan_kernel *k, const device_desc *dev)
{
    int width = dev->kind == DEVICE_HOST ? dev->lanes : least_group(dev);
    int best = row_axis(k);
    double most = -1;

    if (best < 0)
        best = running_axis(k, dev);
    if (best >= 0)
        return best;
    for (int i = k->nouter - 1; i >= 0; i--) {
        double s = axis_score(k, i, width);

        if (s > most) {
            most = s;
            best = i;
        }
    }
    return best;
}

/* ---- tiles ---- */

void plan_cut_axis(plan_axis *x, int64_t tile)
{
    x->tile = SD_MIN(SD_MAX(tile, 1), x->extent);
    x->grid = x->tile < x->extent;
    if (!x->grid)
        x->tile = x->extent;
}

/* The outer axis along which a large operand lies that is read (or written)
 * across the LANE axis, or -1. */
static int crossing_axis(const plan_kernel *k, int lane)
{
    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];
        int64_t s;

        if ((n->kind != PN_LOAD && n->kind != PN_STORE) ||
            !plan_expr_stride(n->off, lane, &s) || s == 0 || s == 1 ||
            s == -1 || plan_points(k, n->varies) < TILE_WORK)
            continue;
        for (int a = 0; a < k->nouter; a++)
            if (a != lane && k->axis[a].extent > 1 &&
                plan_expr_stride(n->off, a, &s) && (s == 1 || s == -1))
                return a;
    }
    return -1;
}

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* So many points a tile, taken from the fastest outer axis up. */
static void cut_points(plan_kernel *k, int lane, int64_t want, int64_t width)
{
    int64_t have = 1;

    for (int i = k->nouter - 1; i >= 0; i--) {
        plan_axis *x = &k->axis[i];
        int64_t tile = have >= want ? 1 : (want + have - 1) / have;

        if (i == lane)
            tile = round_up(tile, width);
        plan_cut_axis(x, tile);
        have *= x->tile;
    }
}

/* ---- scatters on the host ---- */

enum {
    BATCHES = 4,      /* tables that are filled in turns */
    LEAST_TURNS = 64, /* fewer updates are not worth vectors of places, */
    LEAST_COMPUTED = 2 /* nor are places and values of fewer operations */
};

/* The axis along which places lie closest, not one of a batch, whose places
 * follow from indices of its own. */
static int window_axis(const plan_kernel *k, const plan_node *scatter,
                       int64_t *stride)
{
    int best = 0;
    int64_t s;

    *stride = INT64_MAX;
    for (int i = 0; i < k->nouter; i++)
        if (plan_expr_stride(scatter->off, i, &s) && s < *stride) {
            *stride = s;
            best = i;
        }
    return best;
}

/* The axis of the updates where a window is one element and much is computed
 * for it: vectors of places and values are computed side by side, and then
 * applied in order.  -1: there is nothing to compute, or what is written is
 * read. */
static int turns_axis(const plan_kernel *k, const plan_node *scatter)
{
    uint64_t over = scatter->over;
    int axis = over ? __builtin_ctzll(over) : 0, computed = 0;

    if (!over || over & (over - 1) || k->nstage != 1 ||
        k->axis[axis].extent < LEAST_TURNS)
        return -1;
    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->kind == PN_LOAD &&
            k->slot[k->node[i]->slot].access & PLAN_WRITE)
            return -1;
    for (int i = 0; i < k->nnode; i++)
        computed +=
            k->node[i]->kind == PN_ELT && k->node[i]->varies >> axis & 1;
    return computed >= LEAST_COMPUTED ? axis : -1;
}

/* Narrow windows are whole vectors if these are few, since what a masked store
 * wrote no load can take over.  A few batches side by side, so that an update
 * need not wait for the one before it at the same place. */
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
        if (!plan_expr_stride(scatter->off, i, &stride)) {
            plan_cut_axis(
                &k->axis[i],
                n <= 2 ? SD_MIN(BATCHES, k->axis[i].extent / units / 2) : 1);
            k->axis[i].place = PLAN_UNROLL;
            any = true;
        }
    return any;
}

/* ---- rows ---- */

/* Summing rows as they lie in memory pays from LEAST_ROWS rows on, when a tile
 * has at least LEAST_LANE positions of the LANE axis. */
enum { LEAST_ROWS = 32, LEAST_LANE = 256 };

static int row_lanes(const plan_node *n)
{
    return plan_any_order(n) ? 1 : n->order.lanes;
}

static int the_lane(const plan_kernel *k)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axis[i].place == PLAN_LANE)
            return i;
    return -1;
}

/* A vector may reach beyond the tile's end; and lanes whose places are powers
 * of two apart would share a few lines of cache. */
size_t plan_rows_bytes(const plan_kernel *k, const plan_node *n)
{
    size_t tile = (((size_t)k->axis[the_lane(k)].tile + 63) & ~(size_t)63) + 16;

    return tile * (size_t)row_lanes(n) * sd_dtype_bytes(n->dtype);
}

static bool adds_up(const plan_kernel *k, const plan_node *n, int lane)
{
    return n->stage == 0 && n->over == k->stage[0].axes && n->nout == 1 &&
           n->order.lanes == 8 && (n->varies >> lane & 1) &&
           sd_dtype_kind(n->dtype) != SD_K_COMPLEX &&
           (plan_any_order(n) ||
            (n->body->nroot == 1 &&
             (n->body->op == HLO_ADD || n->body->op == HLO_MULTIPLY)));
}

/* Sums over rows, and then what is made of them. */
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
    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];

        if (n->kind == PN_SCAN || n->kind == PN_SCATTER ||
            n->kind == PN_CONTRACT || (n->kind == PN_STORE && n->stage == 0) ||
            (n->kind == PN_REDUCE && !adds_up(k, n, lane)))
            return false;
        reads = reads || (n->kind == PN_LOAD && (n->varies & rows) &&
                          plan_expr_stride(n->off, lane, &s) && s == 1);
    }
    return reads;
}

/* So much of LANE that a tile's accumulators stay in the first level of cache:
 * what is too large for the second is then read once, in the order it has. */
static bool tile_rows(plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1);
    double ntile = dev->units * 4.0;
    size_t each = 0;
    int64_t tile, want;

    if (k->bytes < 4 * (double)dev->cache_bytes || !has_rows(k, lane))
        return false;
    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->kind == PN_REDUCE)
            each += (size_t)row_lanes(k->node[i]) *
                    sd_dtype_bytes(k->node[i]->dtype);
    tile = (int64_t)(dev->local_bytes / 2 / each) & -64;
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
    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->kind == PN_REDUCE)
            k->local_bytes += plan_rows_bytes(k, k->node[i]);
    return true;
}

/* ---- register tiles ---- */

enum { REGISTER_ROWS = 4, MOST_UNROLLED_NODES = 40 };

/* An outer axis along which what the inner loops read along LANE is the same:
 * a few positions of it at once read it once.  Contractions have one. */
static int reuse_axis(const plan_kernel *k, int lane)
{
    uint64_t inner = 0, l = 1ull << lane;
    int best = -1;

    for (int i = 0; i < k->nstage; i++)
        inner |= k->stage[i].axes;
    if (!inner || k->nnode > MOST_UNROLLED_NODES || !k->axis[lane].outer)
        return -1;
    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->kind == PN_SCATTER || k->node[i]->kind == PN_SCAN ||
            (k->node[i]->kind == PN_REDUCE && k->node[i]->order.lanes > 1))
            return -1;
    for (int a = 0; a < k->nouter; a++) {
        bool reused = false, varied = false;

        if (a == lane || k->axis[a].extent < REGISTER_ROWS)
            continue;
        for (int i = 0; i < k->nnode; i++) {
            const plan_node *n = k->node[i];

            if (n->kind != PN_LOAD || !(n->varies & inner))
                continue;
            reused |= (n->varies & l) && !(n->varies >> a & 1);
            varied |= n->varies >> a & 1;
        }
        if (reused && varied)
            best = a;
    }
    return best;
}

static void unroll_rows(plan_kernel *k, int lane)
{
    int a = reuse_axis(k, lane);

    if (a < 0)
        return;
    k->axis[a].place = PLAN_UNROLL;
    plan_cut_axis(&k->axis[a], REGISTER_ROWS);
}

static void tile_points(plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1);
    double work = k->flops + k->bytes / 4;
    double ntile = SD_MIN(work / TILE_WORK, (double)dev->units * 16);
    int cross = crossing_axis(k, lane);
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

static void count_tiles(plan_kernel *k)
{
    k->tiles = 1;
    for (int i = 0; i < k->naxis; i++)
        if (k->axis[i].grid)
            k->tiles *=
                (k->axis[i].extent + k->axis[i].tile - 1) / k->axis[i].tile;
}

/* ---- parking ---- */

/* Stages whose loops compute n: for sinks their own, for others those of all
 * that use it there. */
static void find_needs(const plan_kernel *k, uint64_t lane, uint64_t *need)
{
    for (int i = 0; i < k->nnode; i++)
        need[i] = 0;
    for (int i = k->nnode - 1; i >= 0; i--) {
        const plan_node *n = k->node[i];

        if (plan_is_sum(n) || n->kind == PN_STORE)
            need[i] = 1ull << n->stage;
        if (n->parked) /* later stages read it instead */
            need[i] &= -need[i];
        for (int j = 0; j < n->narg; j++)
            if (n->arg[j]->varies & lane)
                need[n->arg[j]->id] |= need[i];
    }
}

static size_t area(const plan_kernel *k, int lane, sd_dtype t)
{
    size_t n = (size_t)k->axis[lane].extent * sd_dtype_bytes(t);

    return (n + 63) & ~(size_t)63;
}

bool plan_is_rounding(const plan_node *n)
{
    const plan_node *x = n->narg == 1 ? n->arg[0] : NULL;

    return n->kind == PN_ELT && n->op == HLO_CONVERT && n->dtype == SD_F32 &&
           x->kind == PN_ELT && x->op == HLO_CONVERT &&
           sd_dtype_kind(x->dtype) == SD_K_FLOAT && x->arg[0]->dtype == SD_F32;
}

/* What takes longer to compute again than to read; rounding is five
 * instructions. */
static bool is_dear(const plan_node *n, bool host)
{
    return hlo_op_table[n->op].props & HLO_P_HEAVY ||
           (host && plan_is_rounding(n));
}

static size_t park_rows(plan_kernel *k, int lane, size_t limit, bool host)
{
    uint64_t *need = sd_arena_array(k->arena, uint64_t, k->nnode);
    size_t used = 0;

    if (k->nstage > 60)
        return 0;
    find_needs(k, 1ull << lane, need);
    for (int i = k->nnode - 1; i >= 0; i--) {
        plan_node *n = k->node[i];

        if (n->kind != PN_ELT || !(n->varies >> lane & 1) ||
            !is_dear(n, host) || (need[i] & (need[i] - 1)) == 0 ||
            used + area(k, lane, n->dtype) > limit)
            continue;
        n->parked = true;
        used += area(k, lane, n->dtype);
        find_needs(k, 1ull << lane, need);
    }
    return used;
}

static size_t join_bytes(const plan_kernel *k, int lane)
{
    size_t all = 0;

    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];

        if (n->kind != PN_REDUCE || !(n->over >> lane & 1))
            continue;
        for (int j = 0; j < n->nout; j++)
            all += 64 * sd_dtype_bytes(n->arg[j]->dtype);
    }
    return all;
}

static void find_local(plan_kernel *k, int lane, const device_desc *dev)
{
    bool host = dev->kind == DEVICE_HOST;
    size_t joins = host ? 0 : join_bytes(k, lane);
    size_t limit = host ? dev->cache_bytes / 4 : dev->local_bytes;
    uint64_t inner = 0;

    for (int i = 0; i < k->nstage; i++)
        inner |= k->stage[i].axes;
    k->local_bytes = joins;
    /* one element a position of the LANE axis: other inner axes have none */
    if (inner == 1ull << lane && limit > joins)
        k->local_bytes += park_rows(k, lane, limit - joins, host);
}

/* Work space that is in no group's memory is one slot more, after the results.
 */
static void add_work_slot(plan_kernel *k, int64_t bytes)
{
    plan_slot *slot = sd_arena_array(k->arena, plan_slot, k->nslot + 1);

    memcpy(slot, k->slot, (size_t)k->nslot * sizeof *slot);
    slot[k->nslot] = (plan_slot){.dtype = SD_U8,
                                 .align = 16,
                                 .count = bytes,
                                 .access = PLAN_READ | PLAN_WRITE,
                                 .noalias = true};
    k->slot = slot;
    k->nslot++;
}

/* A row is a tile. */
static void tile_sort(plan_kernel *k, const device_desc *dev)
{
    plan_sort *s = k->sort;

    k->tiles = s->rows;
    s->scratch = plan_sort_bytes(s, dev->kind == DEVICE_HOST);
    if (dev->kind == DEVICE_HOST || s->scratch <= dev->local_bytes)
        k->local_bytes = s->scratch;
    else
        add_work_slot(k, s->rows * (int64_t)s->scratch);
}

/* On GPUs an item that is no group's work is a work item's; on the host many
 * items go side by side through vectors. */
static void tile_call(plan_kernel *k, const device_desc *dev)
{
    hlo_call *c = k->call;
    bool host = dev->kind == DEVICE_HOST;

    if (host && c->lanes) {
        c->fn = c->lanes;
        c->work = c->lanes_work;
        c->each = HLO_CALL_LANES;
    }
    k->tiles = host || c->whole ? (c->items + c->each - 1) / c->each
                                : (c->items + dev->group - 1) / dev->group;
    if (host)
        k->local_bytes = c->work;
    else if (c->work)
        add_work_slot(k, c->items * (int64_t)c->work);
}

/* Of 32 or 96 channels groups of 64 would leave a half or a quarter of the
 * items without work.  A group that is not larger than the axis also needs no
 * items that take the last position instead of their own, which would make
 * gathers of neighbouring reads. */
static int group_of(const plan_axis *x, const device_desc *dev)
{
    int best = dev->group;

    if (!x->outer)
        return best;
    for (int g = best / 2; g >= least_group(dev); g /= 2) {
        int64_t all = round_up(x->extent, best), less = round_up(x->extent, g);

        if (all - less >= all / LESS_IDLE || best > x->extent)
            best = g;
    }
    return best;
}

static void tile_gpu(plan_kernel *k, const device_desc *dev)
{
    int lane = lane_axis(k, dev);
    double all = plan_points(k, (1ull << k->nouter) - 1);
    int cross = crossing_axis(k, lane);
    int64_t steps;

    k->axis[lane].place = PLAN_LANE;
    k->group = group_of(&k->axis[lane], dev);
    steps = (int64_t)(all / ((double)k->group * dev->units * 8));
    steps = SD_MIN(SD_MAX(steps, 1), GPU_STEPS);
    if (k->nstage == 0 || k->stage[0].axes)
        steps = 1; /* an item has a loop of its own */
    for (int i = 0; i < k->nouter; i++)
        plan_cut_axis(&k->axis[i], i == lane    ? k->group * steps
                                   : i == cross ? BLOCK
                                                : 1);
    unroll_rows(k, lane);
    if (!k->axis[lane].outer)
        find_local(k, lane, dev);
}

static void tile_host(plan_kernel *k, const device_desc *dev)
{
    const plan_node *scatter = plan_scatter_of(k);
    int lane;

    if (scatter && tile_batches(k, scatter, dev->units))
        return;
    lane = scatter ? the_lane(k) : lane_axis(k, dev);
    k->axis[lane].place = PLAN_LANE;
    if (tile_rows(k, lane, dev) || plan_find_blocks(k, lane, dev))
        return;
    tile_points(k, lane, dev);
    unroll_rows(k, lane);
    if (!k->axis[lane].outer)
        find_local(k, lane, dev);
}

void plan_tile(plan_kernel *k, const device_desc *dev)
{
    k->tiles = k->lanes = 1;
    k->group = dev->group;
    if (k->sort) {
        tile_sort(k, dev);
        return;
    }
    if (k->call) {
        tile_call(k, dev);
        return;
    }
    if (dev->kind == DEVICE_HOST)
        plan_split_groups(k);
    plan_collapse(k);
    plan_cut_chains(k);
    if (dev->kind == DEVICE_HOST) {
        k->lanes = dev->lanes;
        tile_host(k, dev);
    } else {
        tile_gpu(k, dev);
    }
    count_tiles(k);
}
