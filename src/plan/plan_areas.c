/* Areas: what a group of work items keeps in local memory, and on the host a
 * thread in its scratch.  A kernel has few of them, and each place is said here
 * alone: emitters read it, plan_verify holds the areas against one another. */
#include "plan_mapping.h"

/* ---- which values are parked ---- */

enum { MOST_STAGES = 64 }; /* bits of a need */

/* need[n]: a bit for each stage whose loops compute n.  A sink has its own
 * stage, any other node those of all nodes that use it. */
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

static bool is_needed_once(uint64_t need)
{
    return (need & (need - 1)) == 0;
}

size_t plan_whole_lines(size_t bytes)
{
    return (size_t)plan_round_up((int64_t)bytes, 64);
}

/* Rows of a GPU's group, each of which has areas of its own, side by side. */
static size_t group_rows(const plan_kernel *k)
{
    return (size_t)(k->group / SD_MAX(k->items, 1));
}

static size_t park_bytes(const plan_kernel *k, const plan_node *n)
{
    uint64_t inner = n->varies >> k->nouter << k->nouter;

    return plan_whole_lines((size_t)plan_points(k, inner) * group_rows(k) *
                            (size_t)plan_parked_lanes(k) *
                            sd_dtype_bytes(n->dtype));
}

bool plan_is_rounding(const plan_node *n)
{
    const plan_node *x = n->narg == 1 ? n->arg[0] : NULL;

    return n->kind == PN_ELT && n->op == HLO_CONVERT && n->dtype == SD_F32 &&
           x->kind == PN_ELT && x->op == HLO_CONVERT && sd_is_float(x->dtype) &&
           x->arg[0]->dtype == SD_F32;
}

/* A dear value takes longer to compute again than to read: that of a device
 * function, and on the host a rounded one, which is five instructions. */
static bool is_dear(const plan_node *n, bool host)
{
    return hlo_op_table[n->op].props & HLO_P_HEAVY ||
           (host && plan_is_rounding(n));
}

/* Those that several stages use of the values on `axis`; bytes that they take.
 */
static size_t park_dear(plan_kernel *k, int axis, size_t limit, bool host)
{
    uint64_t *need = sd_arena_array(k->arena, uint64_t, k->nnode);
    size_t used = 0;

    find_needs(k, 1ull << axis, need);
    for (int i = k->nnode - 1; i >= 0; i--) {
        plan_node *n = k->node[i];

        if (n->kind != PN_ELT || !(n->varies >> axis & 1) ||
            !is_dear(n, host) || is_needed_once(need[i]) ||
            used + park_bytes(k, n) > limit)
            continue;
        n->parked = true;
        used += park_bytes(k, n);
        find_needs(k, 1ull << axis, need);
    }
    return used;
}

/* What several stages read on `axis` of rows of `least` bytes and more. */
static void park_reads(plan_kernel *k, int axis, size_t limit, size_t least)
{
    uint64_t *need = sd_arena_array(k->arena, uint64_t, k->nnode);
    size_t used = 0;

    find_needs(k, 1ull << axis, need);
    for (int i = 0; i < k->nnode; i++) {
        plan_node *n = k->node[i];
        size_t bytes = park_bytes(k, n);

        if (n->kind != PN_LOAD || !(n->varies >> axis & 1) ||
            is_needed_once(need[i]) || used + bytes > limit ||
            k->slot[n->slot].access & PLAN_WRITE ||
            (size_t)k->axis[axis].extent * sd_dtype_bytes(n->dtype) < least)
            continue;
        n->parked = true;
        used += bytes;
    }
}

/* A GPU reads a long row once, if several stages use it: what all its units
 * have in hand of such rows is more than the caches hold. */
static void park_loads(plan_kernel *k, int lane, size_t limit)
{
    enum { LONG_ROW = 4096 }; /* bytes */

    plan_for_each_node(x, k)
        if (x->parked)
            return;
    park_reads(k, lane, limit, LONG_ROW);
}

/* Rows across LANE on the host (plan_across.c): dear values of their elements,
 * and what is read of them by several stages, which is turned once. */
void plan_park_across(plan_kernel *k, int lane, size_t limit)
{
    uint64_t inner = 0;
    size_t used = 0;

    for (int i = 0; i < k->nstage; i++)
        inner |= k->stage[i].axes;
    if (!inner || inner & (inner - 1) || k->nstage > MOST_STAGES ||
        !plan_has_rows_across(k, lane, plan_last_axis(inner)))
        return;
    used = park_dear(k, plan_last_axis(inner), limit, true);
    park_reads(k, plan_last_axis(inner), limit - used, 0);
}

/* Does a GPU join the lanes of n in local memory? */
static bool joins(const plan_kernel *k, const plan_node *n, int lane)
{
    return k->group > 1 && n->kind == PN_REDUCE && lane >= 0 &&
           (n->over >> lane & 1 || k->strided);
}

static size_t join_bytes(const plan_kernel *k, const plan_node *n, int out)
{
    return (size_t)(k->group * k->vector) * sd_dtype_bytes(n->arg[out]->dtype);
}

void plan_park(plan_kernel *k, int lane, size_t limit, bool host)
{
    uint64_t inner = 0;
    size_t taken = 0;

    for (int i = 0; i < k->nstage; i++)
        inner |= k->stage[i].axes;
    plan_for_each_node(n, k)
        for (int o = 0; joins(k, n, lane) && o < n->nout; o++)
            taken += join_bytes(k, n, o);
    /* a parked value has one element a position of LANE: none where there are
     * other inner axes */
    if (inner != 1ull << lane || limit <= taken || k->nstage > MOST_STAGES)
        return;
    park_dear(k, lane, limit - taken, host);
    if (k->vector > 1)
        park_loads(k, lane, limit - taken);
}

/* ---- where they lie ---- */

typedef sd_vec(plan_area) areas;

static void add(plan_kernel *k, areas *all, plan_area x)
{
    x.offset = k->local_bytes;
    k->local_bytes += x.bytes;
    *sd_push(k->arena, all) = x;
}

/* The last stage that reads the parked value n. */
static int last_stage(const plan_kernel *k, const plan_node *n)
{
    int last = n->stage;

    for (int i = 0; i < k->npass; i++)
        if (k->pass[i].needs[n->id])
            last = SD_MAX(last, k->pass[i].stage);
    return last;
}

static void add_parked(plan_kernel *k, areas *all)
{
    for (int i = 0; i < k->nnode; i++) {
        plan_node *n = k->node[i];

        if (!n->parked)
            continue;
        n->area = all->n;
        add(k, all,
            (plan_area){.what = PLAN_AREA_PARK,
                        .owner = i,
                        .bytes = park_bytes(k, n),
                        .first = k->pass[n->pass].stage,
                        .last = last_stage(k, n)});
    }
}

int plan_row_lanes(const plan_node *n)
{
    return plan_any_order(n) ? 1 : n->order.lanes;
}

/* Rows of accumulators: a vector may reach beyond the tile's end, and lanes
 * whose places are powers of two apart would share a few lines of cache. */
static void add_rows(plan_kernel *k, areas *all, int lane)
{
    size_t tile = (size_t)plan_round_up(k->axis[lane].tile, 64) + 16;

    for (int i = 0; i < k->nnode; i++) {
        plan_node *n = k->node[i];
        size_t row = tile * sd_dtype_bytes(n->dtype);

        if (n->kind != PN_REDUCE)
            continue;
        n->area = all->n;
        add(k, all,
            (plan_area){.what = PLAN_AREA_SUMS,
                        .owner = i,
                        .bytes = row * (size_t)plan_row_lanes(n),
                        .row = row,
                        .first = n->stage,
                        .last = n->stage});
    }
}

/* Neighbours along LANE lie a row apart: padding keeps them in unlike banks. */
static void add_stages(plan_kernel *k, areas *all, int lane)
{
    for (int i = 0; i < k->nnode; i++) {
        plan_node *n = k->node[i];
        size_t row;

        if (!n->staged)
            continue;
        row = (size_t)(k->axis[plan_wide_axis(k, n)].tile + 1) *
              sd_dtype_bytes(n->dtype);
        n->area = all->n;
        add(k, all,
            (plan_area){.what = PLAN_AREA_STAGE,
                        .owner = i,
                        .bytes =
                            plan_whole_lines(row * (size_t)k->axis[lane].tile),
                        .row = row,
                        .first = n->stage,
                        .last = k->nstage - 1});
    }
}

/* One behind the other, one a result. */
static void add_joins(plan_kernel *k, areas *all, int lane)
{
    for (int i = 0; i < k->nnode; i++) {
        plan_node *n = k->node[i];

        if (!joins(k, n, lane))
            continue;
        n->area = all->n;
        for (int o = 0; o < n->nout; o++)
            add(k, all,
                (plan_area){.what = PLAN_AREA_JOIN,
                            .owner = i,
                            .bytes = join_bytes(k, n, o),
                            .first = n->stage,
                            .last = n->stage});
    }
}

/* Areas lie one behind the other.  Some are never alive together, but on a GPU
 * an item may still read the one while another already writes the other. */
void plan_lay_out(plan_kernel *k, int lane)
{
    areas all = {0};

    add_parked(k, &all);
    if (k->rows)
        add_rows(k, &all, lane);
    add_stages(k, &all, lane);
    add_joins(k, &all, lane);
    k->area = all.at;
    k->narea = all.n;
}

void plan_add_work(plan_kernel *k, size_t bytes)
{
    areas all = {0};

    if (!bytes)
        return;
    add(k, &all,
        (plan_area){.what = PLAN_AREA_WORK, .owner = -1, .bytes = bytes});
    k->area = all.at;
    k->narea = all.n;
}
