/* What is left of the mapping when axes have places and tiles: the order of the
 * loops outside of the stages, the copies that stand side by side in registers,
 * and the passes over a stage's loops (plan_passes.c). */
#include "plan_mapping.h"

/* ---- the loops outside of the stages ---- */

/* On the host a scatter's updates are loops outside too, though the plan has
 * them as inner axes: updates go window by window, not element by element of
 * the window.  Their order at one place is the same. */
static bool is_outside(const plan_kernel *k, int axis, bool host)
{
    return k->axis[axis].outer ||
           (host && k->cls == PLAN_SCATTERING && k->nstage == 1);
}

/* The batches or ranges of a scatter come first, then its updates, then its
 * window.  With blocks, their M comes last: what is outside of a block is
 * outside of it. */
static int rank_of(const plan_kernel *k, int axis)
{
    const plan_axis *x = &k->axis[axis];

    if (!x->outer)
        return 1;
    if (k->blocks)
        return k->blocks->rest >> axis & 1 ? 1 : 2;
    if (k->ranges && axis == 0)
        return 0;
    return k->cls == PLAN_SCATTERING && x->place == PLAN_UNROLL ? 0 : 2;
}

static void order_nest(plan_kernel *k, int lane, bool host)
{
    k->nest = sd_arena_array(k->arena, int, k->naxis + 1);
    k->nnest = 0;
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < k->naxis; i++)
            if (i != lane && is_outside(k, i, host) && rank_of(k, i) == r)
                k->nest[k->nnest++] = i;
    if (is_outside(k, lane, host))
        k->nest[k->nnest++] = lane;
}

uint64_t plan_nest_axes(const plan_kernel *k)
{
    uint64_t axes = 0;

    for (int i = 0; i < k->nnest; i++)
        axes |= 1ull << k->nest[i];
    return axes;
}

/* ---- copies of an axis ---- */

enum {
    BLOCK_COPIES = 2, /* vectors of a block's sums that are used at a time */
    ROW_ELEMENTS = 64, /* elements of a row that a step takes */
    WINDOW_COPIES = 4 /* vectors of a scatter's window */
};

/* Vectors side by side while inner axes run: whole lines and neighbouring ones
 * are read of each row (a column sum of 2048 x 4096 f32 takes 0.4 ms with 8,
 * 5 ms with one), as long as the code stays small. */
static int column_copies(const plan_kernel *k)
{
    uint64_t nest = plan_nest_axes(k);
    int body = 0;

    plan_for_each_node(n, k) {
        if (n->kind == PN_SCAN)
            return 1;
        if (n->kind == PN_SCATTER)
            return WINDOW_COPIES;
        if (plan_is_sum(n)) /* a product's two, as multiply and add */
            body += n->narg;
        else if (n->varies & ~nest)
            body += plan_is_rounding(n) ? 6 : 1;
        if (n->kind == PN_ELT && (hlo_op_table[n->op].props & HLO_P_HEAVY))
            body += 8;
    }
    return body <= 5 ? 8 : body <= 12 ? 4 : body <= 24 ? 2 : 1;
}

/* Narrow floats are rounded after each operation, which makes an element's
 * chain of instructions longer than a core looks ahead: vectors side by side
 * keep it busy (gelu of 512 x 1024 bf16 takes 0.84 ms with one, 0.73 with two,
 * 0.59 with four, f16 0.60 with four, 0.53 with eight; silu of bf16 0.32 with
 * four, 0.29 with eight: Zen 4).  AVX2 has half the registers. */
static int chain_copies(const plan_kernel *k)
{
    int n = 0;

    plan_for_each_node(y, k)
        n += plan_is_rounding(y);
    if (n < 2 || k->nnode > 160)
        return 1;
    return k->nnode > 80 ? 2 : k->nnode > 24 || k->lanes < 16 ? 4 : 8;
}

/* Is there a scan along LANE of several lines at once?  Each element of a
 * vector is a step of its own, and the lines keep a core busy. */
static bool scans_lines(const plan_kernel *k, int lane)
{
    bool lines = false;

    for (int a = 0; a < k->nouter; a++)
        lines |= k->axis[a].place == PLAN_UNROLL;
    return lines && plan_scan_along(k, lane);
}

static bool calls_any(const plan_kernel *k)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_ELT && (hlo_op_table[n->op].props & HLO_P_HEAVY))
            return true;
    return false;
}

/* Two vectors keep a core busy where an element takes a few instructions.  A
 * function takes 20 to 200, and a core begins with the next vector by itself:
 * half the code takes two thirds of the time to compile, and as long to run
 * (sin in f32 7 % longer with AVX-512, exp in f64 5 % with AVX2). */
static int short_copies(const plan_kernel *k)
{
    return k->nnode <= 6 && !calls_any(k) ? 2 : chain_copies(k);
}

static bool parks_any(const plan_kernel *k)
{
    plan_for_each_node(n, k)
        if (n->parked)
            return true;
    return false;
}

/* Vectors in a step of LANE, on the host. */
static int lane_copies(const plan_kernel *k, int lane, const device_desc *dev)
{
    const plan_axis *x = &k->axis[lane];
    int n = short_copies(k);
    int64_t reach = x->extent;

    if (k->rows || (x->outer && parks_any(k)))
        return 1;
    if (k->blocks)
        return BLOCK_COPIES;
    if (!x->outer) /* a scatter applies a vector at a time */
        return k->cls == PLAN_SCATTERING || scans_lines(k, lane)
                   ? 1
                   : ROW_ELEMENTS / k->lanes;
    if (k->lanes < dev->lanes) /* a scatter's narrow window as a whole */
        return (int)SD_MIN((x->extent + k->lanes - 1) / k->lanes,
                           WINDOW_COPIES);
    for (int i = 0; i < k->nstage; i++)
        if (k->stage[i].axes) {
            n = column_copies(k);
            reach = x->grid ? x->tile : x->extent;
        }
    while (n > 1 && reach < (int64_t)n * k->lanes)
        n /= 2;
    return n;
}

/* On a GPU what an item takes at a time of an axis: as many copies as keep
 * memory busy while items wait.  FLIGHT bytes are on their way to a unit then,
 * which has at most RESIDENT items.  What is on its way to an item takes a
 * quarter of its registers at most, in words: the other stages' values and
 * addresses need the rest (a softmax of odd rows spilled 2 KB on pvc).  A copy
 * counts `each` times, in a strided group's registers as it is read; `parts`
 * items share out the axis. */
enum {
    FLIGHT = 48 << 10,
    RESIDENT = 1024,
    ITEM_NODES = 400,
    STRIDED_NODES = 800,
    MOST_TAPS = 8
};

static int flight_copies(const plan_kernel *k, int axis, int least, int each,
                         int parts, const device_desc *dev)
{
    double items = (double)k->tiles * k->group / dev->units, bytes = 1, held;
    int nodes = 1, n = least, most = k->strided ? STRIDED_NODES : ITEM_NODES;

    plan_for_each_node(x, k) {
        if (!(x->varies >> axis & 1))
            continue;
        nodes += x->kind == PN_ELT && (hlo_op_table[x->op].props & HLO_P_HEAVY)
                     ? 16
                     : 1;
        if (x->kind == PN_LOAD)
            bytes = SD_MAX(bytes, (double)sd_dtype_bytes(x->dtype));
    }
    items = SD_MIN(SD_MAX(items, 1), RESIDENT);
    held = k->strided ? SD_MAX(each * bytes, 4) : each * SD_MAX(bytes, 4);
    while (2 * n <= PLAN_AXIS_COPIES && n * each * bytes * items < FLIGHT &&
           2 * n * held * 4 <= dev->registers &&
           2 * n * each * nodes <= SD_MIN(most, dev->registers) &&
           (int64_t)2 * n * parts <= k->axis[axis].extent)
        n *= 2;
    return n;
}

/* Of an inner LANE: whole vectors, if all its sums have items for lanes, and so
 * that steps are alike. */
static int item_copies(const plan_kernel *k, int lane, const device_desc *dev)
{
    int64_t each = (int64_t)k->items * k->vector, steps, n;
    int64_t all = SD_MAX(k->axis[lane].extent / each, 1);

    plan_for_each_node(x, k)
        if (x->kind == PN_REDUCE && x->over >> lane & 1 && x->order.lanes != 64)
            return 1;
    if (!dev->access)
        return 1;
    if (k->keeps)
        return (int)(k->axis[lane].extent / k->items / SD_MAX(k->teams, 1));
    n = flight_copies(k, lane, k->vector, 1, k->items, dev) / k->vector;
    steps = (all + n - 1) / n;
    return (int)((all + steps - 1) / steps) * k->vector;
}

/* Is there a sum over this axis alone that keeps 8 strided lanes? */
static bool has_strided(const plan_kernel *k, int axis)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_REDUCE && n->order.lanes == 8 &&
            n->over == 1ull << axis)
            return true;
    return false;
}

/* How many nodes are made again for copies of the nest: one that varies on an
 * axis with 4 copies counts 3. */
static int64_t made_again(const plan_kernel *k)
{
    int64_t more = 0;

    plan_for_each_node(x, k) {
        int64_t n = 1;

        for (int j = 0; j < k->nnest; j++)
            if (x->varies >> k->nest[j] & 1)
                n *= k->axis[k->nest[j]].copies;
        more += n - 1;
    }
    return more;
}

/* Running sums wait for memory once for so many elements, which an item adds in
 * order; those side by side are as wide an access as they divide into. */
static void take_several(plan_kernel *k, int axis, const device_desc *dev)
{
    plan_axis *x = &k->axis[axis];
    int64_t most;

    x->copies = flight_copies(k, axis, 1, 1, 1, dev);
    most = SD_MIN(x->copies, x->extent & -x->extent);
    plan_for_each_node(n, k)
        n->wide = plan_wide_run(k, n, axis, (int)most, dev->access);
}

/* Are there sums over this axis, all of them added in order, so that it is the
 * innermost of their loops? */
static bool is_added_in_order(const plan_kernel *k, int axis)
{
    uint64_t over = 0;

    plan_for_each_node(n, k) {
        if (n->kind == PN_SCATTER || n->kind == PN_SCAN)
            return false;
        if (plan_is_sum(n) && n->over >> axis & 1) {
            if (n->order.lanes > 1 || plan_last_axis(n->over) != axis)
                return false;
            over |= n->over;
        }
    }
    return over != 0;
}

/* Instances of what an item makes anew for a position of an inner axis: nodes,
 * and in *bytes what of them is read. */
static int64_t made_for(const plan_kernel *k, int axis, int64_t *bytes)
{
    int64_t nodes = 0;

    *bytes = 0;
    plan_for_each_node(x, k) {
        int64_t n = 1;

        if (!((x->varies | x->over) >> axis & 1))
            continue;
        for (int j = 0; j < k->nnest; j++)
            if (x->varies >> k->nest[j] & 1)
                n *= k->axis[k->nest[j]].copies;
        nodes += x->kind == PN_ELT && (hlo_op_table[x->op].props & HLO_P_HEAVY)
                     ? 16 * n
                     : n;
        if (x->kind == PN_LOAD)
            *bytes += n * SD_MAX((int64_t)sd_dtype_bytes(x->dtype), 4);
    }
    return nodes;
}

/* Does a step along inner axis `axis` lead a read to where a step along axis
 * `outer` does, as a window's does? */
static bool slides(const plan_kernel *k, int axis, int outer)
{
    plan_for_each_node(n, k) {
        int64_t s, t;

        if (n->kind == PN_LOAD && plan_expr_stride(n->off, axis, &s) &&
            plan_expr_stride(n->off, outer, &t) && s && s == t)
            return true;
    }
    return false;
}

/* Do copies of an outer axis read what copies of this one do? */
static bool shares_reads(const plan_kernel *k, int axis)
{
    for (int a = 0; a < k->nouter; a++)
        if (k->axis[a].place == PLAN_UNROLL && k->axis[a].copies > 1 &&
            slides(k, axis, a))
            return true;
    return false;
}

/* Terms that are added in order wait for memory once for so many of them.  All
 * of a window's row are taken at once, where an item has neighbouring results:
 * they read most of it together (a depthwise 3 x 3 by four 6 elements, not 12).
 */
static int ordered_copies(const plan_kernel *k, int axis,
                          const device_desc *dev)
{
    double items = (double)k->tiles * k->group / dev->units;
    int64_t bytes, nodes = made_for(k, axis, &bytes), n = 1;

    items = SD_MIN(SD_MAX(items, 1), RESIDENT);
    if (dev->kind == DEVICE_CUDA && k->axis[axis].extent <= MOST_TAPS &&
        k->axis[axis].extent * nodes <= ITEM_NODES && shares_reads(k, axis))
        return (int)k->axis[axis].extent;
    while (bytes && 2 * n <= PLAN_AXIS_COPIES &&
           (double)(n * bytes) * items < FLIGHT &&
           2 * n * bytes * 4 <= dev->registers &&
           2 * n * nodes <= SD_MIN(ITEM_NODES, dev->registers) &&
           2 * n <= k->axis[axis].extent)
        n *= 2;
    return (int)n;
}

/* An inner axis has a copy for each strided lane of a sum over it.  Where a
 * step of the host takes four vectors of LANE or more it has none, because 8
 * times as many accumulators would not fit the registers: such lanes go one
 * after the other. */
static void choose_copies(plan_kernel *k, int lane, const device_desc *dev)
{
    bool host = dev->kind == DEVICE_HOST, wide;
    plan_axis *l = &k->axis[lane];

    for (int a = 0; a < k->naxis; a++) {
        plan_axis *x = &k->axis[a];

        x->copies =
            x->place == PLAN_UNROLL ? (int)SD_MIN(x->grid ? x->tile : x->extent,
                                                  (int64_t)PLAN_AXIS_COPIES)
            : x->place == PLAN_CROWD ? (int)x->tile / (k->group / k->items)
                                     : 1;
    }
    l->copies = host       ? lane_copies(k, lane, dev)
                : l->outer ? k->vector
                           : item_copies(k, lane, dev);
    wide = host && l->outer && l->copies >= 4;
    while (host && l->copies > 1 && made_again(k) > PLAN_MOST_COPIES)
        l->copies /= 2;
    if (dev->access && plan_running_axis(k) >= 0)
        take_several(k, plan_running_axis(k), dev);
    for (int a = k->nouter; a < k->naxis; a++)
        if (k->strided && has_strided(k, a))
            k->axis[a].copies =
                flight_copies(k, a, 1, l->copies, k->group / k->items, dev);
        else if (a != lane && has_strided(k, a) && (k->rows || !wide))
            k->axis[a].copies = host || !dev->access
                                    ? 8
                                    : flight_copies(k, a, 8, l->copies, 1, dev);
        else if (dev->access && !k->blocks && a != lane &&
                 is_added_in_order(k, a))
            k->axis[a].copies = ordered_copies(k, a, dev);
}

void plan_choose_copies(plan_kernel *k, int lane, const device_desc *dev)
{
    bool host = dev->kind == DEVICE_HOST;

    order_nest(k, lane, host);
    choose_copies(k, lane, dev);
    plan_choose_passes(k, lane, dev);
    if (host)
        plan_find_cuts(k, lane);
}
