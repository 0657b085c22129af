/* Rows that a kernel takes at once: copies of an outer axis that share what
 * they read, that a core reads side by side, or whose sums need not wait for
 * each other. */
#include "plan_mapping.h"

enum {
    REGISTER_ROWS = 4,
    WHOLE_ROWS = 8, /* rows, if there are no more of them */
    UNIT_ITEMS = 64, /* that a GPU's unit has before one does several rows */
    MOST_UNROLLED_NODES = 40,
    MOST_ROW_NODES = 64, /* of a loop along LANE */
    WIDE = 16, /* words of a register */
    LONG_ROW = 2048, /* bytes, half a page */
    UNCACHED = 32 /* times a unit's second level of cache: beyond the third */
};

/* Can copies of an outer axis share the loops of this kernel?  With LANE
 * outside of them all sums are in order; along LANE there are 64 lanes of each,
 * in one loop, so that nothing is kept for another. */
static bool can_unroll(const plan_kernel *k, int lane)
{
    int loops = 0, lanes = k->axis[lane].outer ? 1 : 64;

    plan_for_each_node(n, k)
        if (n->kind == PN_SCATTER || n->kind == PN_SCAN ||
            (n->kind == PN_REDUCE && n->order.lanes != lanes) ||
            (n->kind == PN_CONTRACT && lanes > 1))
            return false;
    for (int i = 0; i < k->nstage; i++)
        loops += k->stage[i].axes != 0;
    return lanes == 1 ? loops && k->nnode <= MOST_UNROLLED_NODES
                      : loops == 1 && k->nnode <= MOST_ROW_NODES;
}

/* Along LANE what lies side by side is one instruction to read, once more or
 * not; the columns of points are shuffles. */
static bool is_worth_reuse(const plan_kernel *k, const plan_node *load,
                           int lane)
{
    int64_t s;

    return load->varies >> lane & 1 &&
           (k->axis[lane].outer || !plan_expr_stride(load->off, lane, &s) ||
            s != 1);
}

/* An outer axis on which some load of the inner loops does not vary that varies
 * on LANE, or -1.  A few positions of that axis at once read such a load once.
 * Contractions have one: the rows of x, while y is read. */
static int reuse_axis(const plan_kernel *k, int lane)
{
    uint64_t inner = 0;
    int best = -1;

    for (int i = 0; i < k->nstage; i++)
        inner |= k->stage[i].axes;
    if (!can_unroll(k, lane))
        return -1;
    for (int a = 0; a < k->nouter; a++) {
        bool reused = false, varied = false;

        if (a == lane || k->axis[a].extent < REGISTER_ROWS)
            continue;
        plan_for_each_node(n, k) {
            if (n->kind != PN_LOAD)
                continue;
            if (n->varies & inner)
                reused |= is_worth_reuse(k, n, lane) && !(n->varies >> a & 1);
            varied |= n->varies >> a & 1 &&
                      (n->varies & inner || !k->axis[lane].outer);
        }
        if (reused && varied)
            best = a;
    }
    return best;
}

/* Are there sums along LANE whose operands no cache holds?  A core reads
 * several rows at once faster than one after the other, since it begins anew to
 * look ahead at each page (sums of 4,096 x 4,096 f32 take 3.1 ms so and 2.6
 * with four, on Zen 3; of 1,024 x 2,048, which the third level of cache holds,
 * 0.16 and 0.20). */
static bool is_uncached(const plan_kernel *k, const device_desc *dev)
{
    return k->bytes >= UNCACHED * (double)dev->cache_bytes;
}

/* Bytes of a row along LANE of the widest operand. */
static int64_t row_bytes(const plan_kernel *k, int lane)
{
    int64_t most = 0;

    plan_for_each_node(n, k)
        if (n->kind == PN_LOAD && n->varies >> lane & 1)
            most = SD_MAX(most, (int64_t)sd_dtype_bytes(n->dtype));
    return most * k->axis[lane].extent;
}

/* Does the kernel make one sum along LANE, of one array that varies on `axis`?
 */
static bool sums_one(const plan_kernel *k, int lane, int axis)
{
    int sums = 0, loads = 0;

    plan_for_each_node(n, k) {
        sums += n->kind == PN_REDUCE ? n->nout : 0;
        loads += n->kind == PN_LOAD && (n->varies >> axis & 1) &&
                 (n->varies >> lane & 1);
    }
    return sums == 1 && loads == 1;
}

/* Is it a product with a vector, of an array that the second level of cache
 * holds, whose rows are so short that to join the lanes of a sum takes as long
 * as to fill them?  One row's are joined while others are added, as long as the
 * sums of four fit the registers, and the vector is read once for them (W @ h
 * of 200 x 200 in a loop takes 1.94 us by one row, 1.64 by four; by four
 * through memory 2.9: Zen 4). */
static bool joins_often(const plan_kernel *k, int lane, int axis,
                        const device_desc *dev)
{
    int body = 0;
    bool shared = false;

    if (dev->lanes < WIDE || row_bytes(k, lane) >= LONG_ROW ||
        k->bytes > (double)dev->cache_bytes || !sums_one(k, lane, axis))
        return false;
    plan_for_each_node(n, k) {
        if (!(n->varies >> lane & 1))
            continue;
        if (n->kind == PN_ELT && (hlo_op_table[n->op].props & HLO_P_HEAVY))
            return false;
        shared |= n->kind == PN_LOAD && !(n->varies >> axis & 1);
        body++;
    }
    return shared && body * REGISTER_ROWS <= PLAN_WIDE_ROWS;
}

/* The last outer axis of sums along LANE, where several rows at once are better
 * than one, or -1. */
static int stream_axis(const plan_kernel *k, int lane, const device_desc *dev)
{
    int a = k->nouter - 1;

    return dev->kind == DEVICE_HOST && !k->axis[lane].outer && a >= 0 &&
                   k->axis[a].extent >= REGISTER_ROWS &&
                   (is_uncached(k, dev) || joins_often(k, lane, a, dev)) &&
                   can_unroll(k, lane)
               ? a
               : -1;
}

/* The last outer axis beside a scan of floats along LANE, or -1: each number of
 * a running sum waits for the one before it, but not for those of other lines.
 * Integers wait no longer than their elements take to come and go. */
static int axis_beside_scan(const plan_kernel *k, int lane,
                            const device_desc *dev)
{
    const plan_node *scan = plan_scan_along(k, lane);
    int a = k->nouter - 1;

    return dev->kind == DEVICE_HOST && scan &&
                   sd_dtype_kind(scan->dtype) == SD_K_FLOAT && a >= 0 &&
                   k->axis[a].extent >= REGISTER_ROWS &&
                   k->nnode <= MOST_UNROLLED_NODES
               ? a
               : -1;
}

/* Would a GPU's units lack items if each had several rows? */
static bool has_few_points(const plan_kernel *k, const device_desc *dev)
{
    return dev->access && plan_points(k, (1ull << k->nouter) - 1) <
                              (double)REGISTER_ROWS * UNIT_ITEMS * dev->units;
}

/* Is there one sum along LANE, of an array that no cache holds, whose rows are
 * long?  Eight pages at once come faster than four (a @ x of 2,047 x 4,099 f32
 * 1.39 ms and 1.17, of 4,096 x 4,096 2.85 and 2.6, on Zen 4).  Eight short rows
 * are few pages (0.57 times as fast of 100,000 x 100), more sums or arrays than
 * one as many as a core follows with four. */
static bool streams_one(const plan_kernel *k, int lane, int axis,
                        const device_desc *dev)
{
    return k->axis[axis].extent >= WHOLE_ROWS && is_uncached(k, dev) &&
           row_bytes(k, lane) >= LONG_ROW &&
           stream_axis(k, lane, dev) == axis && sums_one(k, lane, axis);
}

/* Rows share what they read of the inner loops, and a sum need not wait for
 * itself while others are added to.  Where there are 32 registers all rows are
 * taken at once if there are no more than eight: of a product of 8 x 8 each sum
 * is in one.  16 are too few (6 x 9 x 20: 0.047 ms by four, 0.051 by six). */
void plan_unroll_rows(plan_kernel *k, int lane, const device_desc *dev)
{
    int a = reuse_axis(k, lane);
    bool all;

    if (a < 0)
        a = stream_axis(k, lane, dev);
    if (a < 0)
        a = axis_beside_scan(k, lane, dev);
    if (a < 0 || has_few_points(k, dev))
        return;
    all = dev->lanes >= WIDE && k->axis[a].extent <= WHOLE_ROWS;
    k->axis[a].place = PLAN_UNROLL;
    plan_cut_axis(&k->axis[a], all || streams_one(k, lane, a, dev)
                                   ? WHOLE_ROWS
                                   : REGISTER_ROWS);
}
