/* The mapping on a GPU: a tile is what a group of work items takes, LANE is the
 * item in its group. */
#include "plan_blocks.h"
#include "plan_mapping.h"

enum {
    BLOCK = 16, /* positions of an axis that is crossed, in a tile */
    GPU_STEPS = 4, /* positions of LANE that an item takes at most */
    LIST_STEPS = 16, /* of a list of updates */
    LIST_GROUPS = 64, /* of a unit, before they take more positions */
    LESS_IDLE = 8 /* a group is smaller than the device's where that spares
                     one item in so many */
};

/* Items of a group along the LANE axis x.  Where x is 32 or 96 channels, groups
 * of 64 would leave a half or a quarter of the items without work.  In a group
 * larger than the axis some items also take the last position instead of their
 * own, which would make gathers of neighbouring reads. */
static int group_of(const plan_axis *x, const device_desc *dev)
{
    int best = dev->group;

    if (!x->outer)
        return best;
    for (int g = best / 2; g >= plan_least_group(dev); g /= 2) {
        int64_t all = plan_round_up(x->extent, best),
                less = plan_round_up(x->extent, g);

        if (all - less >= all / LESS_IDLE || best > x->extent)
            best = g;
    }
    return best;
}

/* ---- groups that stream memory ---- */

/* An item takes `vector` neighbouring positions of LANE, so that its loads and
 * stores are as wide as the device has them; a group has several rows where one
 * does not fill it. */
enum {
    LEAST_ITEMS = 64, /* a unit, before vectors become wider */
    MOST_VECTOR = 16,
    MOST_SUMS = 64, /* accumulators of an item, in registers */
    MOST_MADE = 800, /* nodes of an item */
    SHORT_ROW = 1024, /* bytes of a row of which many fit the cache */
    FEW_GROUPS = 8,
    LEAST_GROUP = 16,
    /* Items of a longer row that several stages read; of one of more bytes
     * than LONGEST_ROW, all that it may have. */
    LONG_ITEMS = 32,
    LONGEST_ROW = 16 << 10
};

/* Is the mapping one that knows vectors?  Rows are: all sums over LANE keep 64
 * strided lanes, and LANE is the only inner axis. */
static bool streams(const plan_kernel *k, int lane)
{
    const plan_axis *x = &k->axis[lane];

    plan_for_each_node(n, k)
        if (n->kind == PN_SCAN || n->kind == PN_SCATTER ||
            (n->over >> lane & 1 &&
             (n->kind != PN_REDUCE || n->over != 1ull << lane ||
              n->order.lanes != PLAN_ROW_LANES)))
            return false;
    for (int i = 0; i < k->nstage && !x->outer; i++)
        if (k->stage[i].axes & ~(1ull << lane))
            return false;
    return true;
}

int plan_wide_run(const plan_kernel *k, const plan_node *n, int lane, int v,
                  int64_t most)
{
    int64_t bytes = (int64_t)sd_dtype_bytes(n->dtype), s, m;
    bool load = n->kind == PN_LOAD, stays;

    if ((!load && n->kind != PN_STORE) || sd_is_complex(n->dtype) ||
        !plan_expr_run(n->off, lane, v, &s, &m) || s > 1 || s < 0 ||
        (s == 0 && (!load || !(n->varies >> lane & 1))))
        return 1;
    most = SD_MIN(most, (int64_t)k->slot[n->slot].align);
    for (; v > 1; v /= 2) {
        stays = true;
        for (int i = 0; i < n->nguard && stays; i++)
            stays = plan_guard_is_even(&n->guard[i], lane, v);
        if (stays && (s == 0 || (v * bytes <= most && m % v == 0 &&
                                 k->slot[n->slot].count >= v)))
            break;
    }
    return v;
}

/* Bytes of the narrowest element that is read or written along LANE, and in
 * *share how much of all that is moved along it would be so in wide accesses.
 */
static int64_t narrowest(const plan_kernel *k, int lane, int v, int64_t most,
                         double *share)
{
    int64_t least = most;
    double all = 1e-9, moved = 0;

    plan_for_each_node(n, k) {
        int64_t bytes = (int64_t)sd_dtype_bytes(n->dtype);
        uint64_t varies = n->off ? n->varies | n->off->varies : 0;
        double w = (double)bytes * plan_points(k, varies);

        if ((n->kind != PN_LOAD && n->kind != PN_STORE) ||
            !(varies >> lane & 1))
            continue;
        all += w;
        if (plan_wide_run(k, n, lane, v, most) == 1)
            continue;
        moved += w;
        least = SD_MIN(least, bytes);
    }
    *share = moved / all;
    return least;
}

/* Accumulators that an item has for a position of an outer LANE. */
static int64_t accumulators(const plan_kernel *k, int lane)
{
    int64_t n = 0;

    plan_for_each_node(x, k)
        if (plan_is_sum(x) && !(x->over >> lane & 1))
            n += (int64_t)x->nout * SD_MAX(x->order.lanes, 1);
    return n;
}

/* Neighbouring positions that an item takes. */
static int vector_of(const plan_kernel *k, int lane, const device_desc *dev)
{
    const plan_axis *x = &k->axis[lane];
    double all = plan_points(k, (1ull << k->nouter) - 1), share;
    int64_t nodes = plan_made(k, lane), sums = accumulators(k, lane);
    int v = MOST_VECTOR;

    for (; v > 1; v /= 2) {
        int64_t least = narrowest(k, lane, v, dev->access, &share);

        if (x->extent % v || v * least > dev->access || share < 0.5 ||
            v * nodes > MOST_MADE || v * sums > MOST_SUMS)
            continue;
        if (x->outer && all / (double)v < (double)dev->units * LEAST_ITEMS)
            continue;
        break;
    }
    return v;
}

/* Fewer items for a short row, more for one that several stages read: what all
 * groups of a unit have in hand shall stay in its cache.  And all of them where
 * rows are fewer than units, since each is then waited for. */
static int row_vector(const plan_kernel *k, int lane, int v,
                      const device_desc *dev)
{
    double rows = plan_points(k, (1ull << k->nouter) - 1);
    int stages = plan_stages_along(k, lane);
    int64_t row = 0;

    plan_for_each_node(n, k)
        if (plan_is_of_row(k, n, lane))
            row += k->axis[lane].extent * (int64_t)sd_dtype_bytes(n->dtype);
    if (rows < dev->units || (stages > 1 && row > LONGEST_ROW))
        return 1;
    return stages > 1 && row > SHORT_ROW
               ? SD_MIN(v, PLAN_ROW_LANES / LONG_ITEMS)
               : v;
}

/* The outer axis of most positions, beside LANE: the last of several. */
static int crowd_axis(const plan_kernel *k, int lane)
{
    int best = -1;

    for (int i = 0; i < k->nouter; i++)
        if (i != lane && k->axis[i].place == PLAN_SEQ &&
            k->axis[i].extent > 1 &&
            (best < 0 || k->axis[i].extent >= k->axis[best].extent))
            best = i;
    return best;
}

/* The other items of a group of `most` take further positions of an outer axis,
 * as long as there are groups for all units.  The axis, or -1. */
static int fill_group(plan_kernel *k, int lane, int most,
                      const device_desc *dev)
{
    int a = crowd_axis(k, lane);
    double all = plan_points(k, (1ull << k->nouter) - 1);
    int64_t n = most / k->items;

    if (k->axis[lane].outer)
        all /= (double)k->items * k->vector;
    while (n > 1 &&
           (a < 0 || n > k->axis[a].extent ||
            (k->items * n > dev->group && all / (double)n < 2.0 * dev->units)))
        n /= 2;
    if (n > 1) {
        k->axis[a].place = PLAN_CROWD;
        plan_cut_axis(&k->axis[a], n);
        k->group = k->items * (int)n;
    }
    return a;
}

static int parked(const plan_kernel *k)
{
    int n = 0;

    plan_for_each_node(x, k)
        n += x->parked;
    return n;
}

/* Rows: 64 strided lanes of a sum are items by vectors.  A group has as many
 * rows as local memory can hold what is parked of. */
static void stream_rows(plan_kernel *k, int lane, const device_desc *dev)
{
    plan_axis *x;
    int a, want, v = vector_of(k, lane, dev);

    if (!plan_keep_row(k, lane, v, dev))
        k->vector = row_vector(k, lane, v, dev);
    k->items = PLAN_ROW_LANES / k->vector;
    k->group = k->items * SD_MAX(k->teams, 1);
    if (k->keeps) { /* rows that join in local memory wait for their own alone
                     */
        if (!k->teams)
            fill_group(k, lane,
                       k->items > dev->subgroup ? k->items : dev->crowd, dev);
        plan_share_unit(k, lane, dev);
        return;
    }
    plan_park(k, lane, SIZE_MAX / 2, false);
    want = parked(k);
    a = fill_group(k, lane, dev->crowd, dev);
    for (;;) {
        plan_for_each_node(n, k)
            n->parked = false;
        plan_park(k, lane, dev->local_bytes, false);
        if (parked(k) == want || k->group == k->items)
            return;
        x = &k->axis[a];
        plan_cut_axis(x, x->tile / 2);
        k->group = k->items * (int)x->tile;
        if (x->tile == 1)
            x->place = PLAN_SEQ;
    }
}

/* Items of a group, as few as give all units one. */
static int crowd_of(const plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1) / k->vector;
    int n = dev->crowd;

    for (int i = 0; i < k->nouter; i++)
        if (i != lane && k->axis[i].place == PLAN_UNROLL)
            all /= (double)k->axis[i].tile;
    while (n > plan_least_group(dev) && all / n < 2.0 * dev->units)
        n /= 2;
    return n;
}

/* ---- columns of which there are few ---- */

enum {
    STRIDED = 8, /* lanes of a sum over another axis than LANE */
    STRIDED_ROWS = 64, /* of a sum that is worth joining */
    FULL_UNIT = 1024 /* items with which a unit is busy anyhow */
};

/* Does all that is done for a column go over the same axis, and are its sums of
 * so many lanes, so that a group's rows may have a lane each? */
static bool is_strided(const plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1) / k->vector;
    uint64_t axis = 1ull << k->nouter;
    int sums = 0;

    if (dev->kind != DEVICE_CUDA || !k->axis[lane].outer ||
        k->naxis != k->nouter + 1 || all / dev->units >= FULL_UNIT ||
        k->axis[k->nouter].extent < STRIDED_ROWS)
        return false;
    for (int i = 0; i < k->nouter; i++)
        if (k->axis[i].place == PLAN_UNROLL)
            return false;
    plan_for_each_node(n, k) {
        bool sum = n->kind == PN_REDUCE;

        sums += sum;
        if (sum && (n->over != axis || n->order.lanes != STRIDED))
            return false;
        if (plan_is_sink(n) && !sum && n->kind != PN_STORE)
            return false;
    }
    return sums > 0;
}

/* Is all that is read along LANE of half a word, are pairs of neighbours in one
 * access, and has a unit more than one group?  Half as many items that read
 * pairs have as much on its way by half as many accesses; of one group's a unit
 * has too few items then. */
static bool reads_pairs(const plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1);
    int n = 0;

    plan_for_each_node(x, k) {
        if (x->kind != PN_LOAD || !((x->varies | x->off->varies) >> lane & 1))
            continue;
        if (sd_dtype_bytes(x->dtype) != 2 ||
            plan_wide_run(k, x, lane, 2, dev->access) != 2)
            return false;
        n++;
    }
    return n && k->axis[lane].extent % 2 == 0 &&
           all / plan_least_group(dev) > dev->units;
}

/* An outer LANE: an axis of few groups is cut into equal ones. */
static void stream_points(plan_kernel *k, int lane, const device_desc *dev)
{
    int64_t n, groups;
    int most, least = plan_least_group(dev);
    bool pairs;

    k->vector = vector_of(k, lane, dev);
    k->strided = is_strided(k, lane, dev);
    if (k->strided) {
        pairs = k->vector == 1 && reads_pairs(k, lane, dev);
        k->vector *= pairs ? 2 : 1;
        k->items = pairs ? least / 2 : least;
        k->group = k->items * STRIDED;
        return;
    }
    most = crowd_of(k, lane, dev);
    n = k->axis[lane].extent / k->vector;
    groups = (n + most - 1) / most;
    k->items = groups > FEW_GROUPS ? most : (int)((n + groups - 1) / groups);
    if (k->items > LEAST_GROUP)
        k->items = (int)plan_round_up(k->items, LEAST_GROUP);
    k->group = k->items;
    if (fill_group(k, lane, most, dev) >= 0 && k->group >= least)
        return;
    for (int i = 0; i < k->nouter && k->group < least; i++)
        if (k->axis[i].place == PLAN_CROWD) {
            k->axis[i].place = PLAN_SEQ;
            plan_cut_axis(&k->axis[i], 1);
        }
    if (k->group < least)
        k->group = k->items = least;
}

/* ---- tiles that are turned in local memory ---- */

enum { TURN_ITEMS = 32, TURN_BYTES = 4 };

/* Is n read across LANE and along axis `cross`, all of it? */
static bool crosses(const plan_node *n, int lane, int cross)
{
    int64_t s;

    return n->kind == PN_LOAD && plan_fills_zeros(n) &&
           !plan_px_names_node(n->off) &&
           (!plan_expr_stride(n->off, lane, &s) || (s & ~1 && s != -1)) &&
           plan_expr_stride(n->off, cross, &s) && s == 1;
}

/* Marks what crosses; in *bytes the widest element of it and of what is
 * written, in *all the bytes of a position of all tiles.  False: nothing does.
 */
static bool mark_staged(plan_kernel *k, int lane, int cross, int64_t *bytes,
                        int64_t *all)
{
    *bytes = *all = 0;
    plan_for_each_node(n, k) {
        int64_t each = (int64_t)sd_dtype_bytes(n->dtype);

        if (n->kind == PN_SCAN || n->kind == PN_SCATTER || plan_is_sum(n))
            return false;
        if (crosses(n, lane, cross))
            *all += each;
        if (crosses(n, lane, cross) || n->kind == PN_STORE)
            *bytes = SD_MAX(*bytes, each);
    }
    for (int i = 0; *all && i < k->nnode; i++)
        k->node[i]->staged = crosses(k->node[i], lane, cross);
    return *all > 0;
}

/* A square of LANE and the crossed axis: 32 items by so many elements as make 4
 * bytes, which neighbouring items read and write side by side. */
static bool turn(plan_kernel *k, int lane, const device_desc *dev)
{
    int cross = plan_crossing_axis(k, lane);
    int64_t bytes, all, nodes = plan_made(k, lane), v, tile, rows;

    if (!dev->access || dev->crowd < TURN_ITEMS || cross < 0 ||
        !k->axis[lane].outer || k->nstage != 1 || k->stage[0].axes ||
        !mark_staged(k, lane, cross, &bytes, &all))
        return false;
    rows = dev->crowd / TURN_ITEMS;
    for (v = SD_MAX(TURN_BYTES / bytes, 1); v > 0; v /= 2) {
        tile = TURN_ITEMS * v;
        if (k->axis[lane].extent >= tile && k->axis[cross].extent >= tile &&
            k->axis[lane].extent % v == 0 && k->axis[cross].extent % v == 0 &&
            (size_t)(tile * (tile + 2) * all) <= dev->local_bytes &&
            nodes * v * tile / rows <= MOST_MADE)
            break;
    }
    plan_for_each_node(n, k)
        n->staged = n->staged && v > 0;
    if (v == 0)
        return false;
    k->vector = (int)v;
    k->items = TURN_ITEMS;
    k->group = TURN_ITEMS * (int)rows;
    for (int i = 0; i < k->nouter; i++)
        plan_cut_axis(&k->axis[i], i == lane || i == cross ? tile : 1);
    k->axis[cross].place = PLAN_CROWD;
    return true;
}

static bool stream(plan_kernel *k, int lane, const device_desc *dev)
{
    if (!dev->access || plan_crossing_axis(k, lane) >= 0 || !streams(k, lane))
        return false;
    for (int i = 0; i < k->nouter; i++)
        if (i != lane)
            plan_cut_axis(&k->axis[i], 1);
    if (k->axis[lane].outer) {
        plan_unroll_rows(k, lane, dev);
        stream_points(k, lane, dev);
        plan_cut_axis(&k->axis[lane], (int64_t)k->items * k->vector);
    } else {
        stream_rows(k, lane, dev);
    }
    return true;
}

/* Positions of a list that items look at, one after the other, since at most of
 * them no run may begin: as many as leave each unit some groups. */
static int64_t list_steps(double groups, const device_desc *dev)
{
    int64_t n = (int64_t)(groups / ((double)dev->units * LIST_GROUPS));

    return SD_MIN(SD_MAX(n, 1), LIST_STEPS);
}

bool plan_places_are_wide(const plan_kernel *k, const plan_node *n, int lane,
                          int v)
{
    int64_t bytes = v * (int64_t)sd_dtype_bytes(n->dtype), s, m;

    return !sd_is_complex(n->dtype) && k->slot[n->slot].align % bytes == 0 &&
           plan_expr_run(n->off, lane, v, &s, &m) && s == 1 && m % v == 0;
}

/* Are v neighbours along LANE in one access, of all that a scatter reads and
 * writes there? */
static bool rows_are_wide(const plan_kernel *k, int lane, int v,
                          const device_desc *dev)
{
    const plan_node *n = plan_scatter_of(k);

    if (k->axis[lane].extent % v ||
        v * (int64_t)sd_dtype_bytes(n->dtype) > dev->access ||
        !plan_places_are_wide(k, n, lane, v))
        return false;
    plan_for_each_node(x, k)
        if (x->kind == PN_LOAD && (x->varies | x->off->varies) >> lane & 1 &&
            plan_wide_run(k, x, lane, v, dev->access) != v)
            return false;
    return true;
}

/* Neighbours of a row that an item of a scatter by runs takes, as long as items
 * of a sub-group all have some: it asks for each update where it is, and so
 * less often. */
static int rows_vector(const plan_kernel *k, int lane, const device_desc *dev)
{
    int v = MOST_VECTOR;

    if (!k->runs || k->runs->axis == lane)
        return 1;
    while (v > 1 && (k->axis[lane].extent < (int64_t)v * dev->subgroup ||
                     !rows_are_wide(k, lane, v, dev)))
        v /= 2;
    return v;
}

/* Positions of an axis that is crossed, in a tile: fewer where LANE is a row's
 * and its tiles would leave units without work. */
static int64_t crossed(const plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1);
    int64_t n = BLOCK;

    while (!k->axis[lane].outer && n > 1 && all / (double)n < 2.0 * dev->units)
        n /= 2;
    return n;
}

/* What has no rule of its own above. */
static void tile_plainly(plan_kernel *k, int lane, const device_desc *dev)
{
    double all = plan_points(k, (1ull << k->nouter) - 1);
    int cross = plan_crossing_axis(k, lane);
    plan_axis items = k->axis[lane];
    int64_t steps;

    k->vector = rows_vector(k, lane, dev);
    items.extent /= k->vector;
    k->group = k->items = group_of(&items, dev);
    steps = (int64_t)(all / ((double)k->group * dev->units * 8));
    steps = SD_MIN(SD_MAX(steps, 1), GPU_STEPS);
    /* an item's positions, those of a vector among them */
    steps = plan_round_up(steps, k->vector);
    if (k->nstage == 0 || k->stage[0].axes)
        steps = 1; /* an item has a loop of its own */
    for (int i = 0; i < k->nouter; i++)
        plan_cut_axis(&k->axis[i], i == lane    ? k->group * steps
                                   : i == cross ? crossed(k, lane, dev)
                                                : 1);
    if (k->runs && k->runs->axis != lane)
        plan_cut_axis(&k->axis[k->runs->axis],
                      list_steps(all / (double)(k->group * steps), dev));
    plan_unroll_rows(k, lane, dev);
    if (!k->axis[lane].outer)
        plan_park(k, lane, dev->local_bytes, false);
}

/* ---- what is rounded to bf16 ---- */

static bool converts(const plan_node *n, sd_dtype from, sd_dtype to)
{
    return n->kind == PN_ELT && n->op == HLO_CONVERT && n->dtype == to &&
           n->arg[0]->dtype == from;
}

/* Marks what all users round to bf16. */
static void mark_rounded(plan_kernel *k)
{
    plan_for_each_node(n, k)
        n->rounded = n->kind == PN_ELT && n->dtype == SD_F32;
    plan_for_each_node(x, k)
        for (int j = 0; j < x->narg; j++)
            if (!converts(x, SD_F32, SD_BF16))
                x->arg[j]->rounded = false;
}

/* Marks the functions of a bf16 among these. */
static void mark_of_bf16(plan_kernel *k)
{
    plan_for_each_node(n, k)
        n->of_bf16 = n->rounded && n->narg == 1 && hlo_op_table[n->op].fn &&
                     converts(n->arg[0], SD_BF16, SD_F32);
}

void plan_tile_gpu(plan_kernel *k, const device_desc *dev)
{
    int lane = plan_lane_of_wide(k, plan_lane_axis(k, dev), dev);

    k->axis[lane].place = PLAN_LANE;
    k->masks_steps = device_has_quirk(dev, DEVICE_QUIRK_ONE_STEP);
    mark_rounded(k);
    if (dev->features & DEVICE_HAS_NARROW)
        mark_of_bf16(k);
    if (plan_find_group_blocks(k, lane, dev))
        return;
    if (!turn(k, lane, dev) && !stream(k, lane, dev))
        tile_plainly(k, lane, dev);
    plan_for_each_node(n, k)
        n->wide =
            plan_wide_run(k, n, plan_wide_axis(k, n), k->vector, dev->access);
}
