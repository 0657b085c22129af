/* The mapping of a kernel: which axis is LANE, which axes are cut into tiles,
 * what is copied, parked and kept where.  plan_tile and the files beside it are
 * the only ones that look at the device, plan_tile_host.c and plan_tile_gpu.c
 * each at one kind; plan_copies.c and plan_areas.c then finish what either
 * began.  What they decide moves work around and never changes a result. */
#include "plan_blocks.h"
#include "plan_mapping.h"
#include "plan_whole.h"

enum {
    LEAST_GROUP = 16, /* a GPU's group has so many items at least */
    FEW_ITEMS = 2,    /* of a call, for each unit of a GPU */
    WORDS = 16        /* of a register of 512 bits */
};

/* ---- the LANE axis ---- */

/* The inner axis of a REDUCE that keeps 64 strided lanes, as of the elements of
 * a row; or -1. */
static int row_axis(const plan_kernel *k)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_REDUCE && n->order.lanes == 64)
            return __builtin_ctzll(n->over);
    return -1;
}

/* How well `off` is read along `axis`, from 0 to 1: 1 for neighbours, 0.05 for
 * places of which nothing is known. */
static double access_score(const plan_expr *off, int axis)
{
    int64_t s;

    if (!plan_expr_stride(off, axis, &s))
        return 0.05;
    return s == 1 ? 1 : s == 0 ? 0.9 : s == -1 ? 0.7 : 0.1;
}

/* How good a LANE `axis` is: each load and store counts as often as it is made,
 * and an axis of 4 positions is a quarter as good for vectors of 16.  One
 * position fills nothing. */
double plan_lane_score(const plan_kernel *k, int axis, int width)
{
    double score = 0;
    int64_t extent = k->axis[axis].extent;
    double fill = extent == 1 ? 0 : (double)extent / width;

    plan_for_each_node(n, k) {
        double w = plan_points(k, n->varies);

        if (n->kind == PN_LOAD)
            score += w * access_score(n->off, axis);
        else if (n->kind == PN_STORE)
            score += 2 * w * access_score(n->off, axis);
    }
    return score * SD_MIN(fill, 1.0);
}

/* Does a scan compute exp or its kin for each element, and of a vector of lines
 * at once, if there are so many? */
static bool is_heavy(const plan_kernel *k, const plan_node *scan, int width)
{
    plan_for_each_node(n, scan->body)
        if (n->kind == PN_ELT && hlo_op_table[n->op].props & HLO_P_HEAVY)
            return plan_points(k, (1ull << k->nouter) - 1) >= width;
    return false;
}

/* The axis of a SCAN along which its elements lie side by side, or -1.  As LANE
 * its elements are read in vectors and added one by one, which costs less than
 * to read a line of memory for each lane, but not less than a function for each
 * element.  Only the host does so: work items cannot take turns. */
static int lane_of_scan(const plan_kernel *k, const device_desc *dev)
{
    int64_t s;

    plan_for_each_node(n, k) {
        int axis = n->over ? __builtin_ctzll(n->over) : 0;

        if (n->kind != PN_SCAN)
            continue;
        if (is_heavy(k, n, dev->lanes))
            return -1;
        plan_for_each_node(x, k)
            if (x->kind == PN_STORE &&
                (!plan_expr_stride(x->off, axis, &s) || (s != 1 && s != -1)))
                return -1;
        return dev->kind == DEVICE_HOST ? axis : -1;
    }
    return -1;
}

int plan_least_group(const device_desc *dev)
{
    return SD_MAX(SD_MIN(LEAST_GROUP, dev->group), dev->subgroup);
}

int plan_lane_axis(const plan_kernel *k, const device_desc *dev)
{
    int width = dev->kind == DEVICE_HOST ? dev->lanes : plan_least_group(dev);
    int best = row_axis(k);
    double most = -1;

    if (best < 0)
        best = lane_of_scan(k, dev);
    if (best >= 0)
        return best;
    for (int i = k->nouter - 1; i >= 0; i--) {
        double s = plan_lane_score(k, i, width);

        if (k->runs && i == k->runs->batch) /* its loop is outside of runs */
            continue;
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
int plan_crossing_axis(const plan_kernel *k, int lane)
{
    plan_for_each_node(n, k) {
        int64_t s;

        if ((n->kind != PN_LOAD && n->kind != PN_STORE) ||
            !plan_expr_stride(n->off, lane, &s) || s == 0 || s == 1 ||
            s == -1 || plan_points(k, n->varies) < PLAN_TILE_WORK)
            continue;
        for (int a = 0; a < k->nouter; a++)
            if (a != lane && k->axis[a].extent > 1 &&
                plan_expr_stride(n->off, a, &s) && (s == 1 || s == -1))
                return a;
    }
    return -1;
}

int64_t plan_round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

const plan_node *plan_scan_along(const plan_kernel *k, int lane)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_SCAN && n->over == 1ull << lane)
            return n;
    return NULL;
}

static void count_tiles(plan_kernel *k)
{
    k->tiles = 1;
    for (int i = 0; i < k->naxis; i++)
        k->tiles *= plan_axis_tiles(&k->axis[i]);
}

void plan_add_work_slot(plan_kernel *k, int64_t bytes)
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

/* A tile is a row that is sorted. */
static void tile_sort(plan_kernel *k, const device_desc *dev)
{
    plan_sort *s = k->sort;

    k->tiles = s->rows;
    s->lanes = s->inner == 1 && s->n >= dev->lanes ? dev->lanes : 1;
    s->scratch = plan_sort_bytes(s, dev->kind == DEVICE_HOST);
    if (dev->kind != DEVICE_HOST) {
        if (plan_sort_in_items(k, s->n, dev) || plan_sort_in_parts(k, dev))
            return;
        k->group = k->items = plan_sort_group(s->n, dev);
    }
    if (dev->kind == DEVICE_HOST || s->scratch <= dev->local_bytes)
        plan_add_work(k, s->scratch);
    else
        plan_add_work_slot(k, s->rows * (int64_t)s->scratch);
}

/* One work item each is quicker for very many small ones; a group of CUDA's may
 * have more items than one that memory keeps waiting. */
enum {
    LEAST_WIDE = 256,
    GROUPS_A_UNIT = 32,
    PLACES_AN_ITEM = 32,
    MOST_ITEMS_CUDA = 1024,
    SHARING = 6, /* groups with planes in a unit's local memory */
    BYTES_AN_ITEM = 256 /* of these planes */
};
static bool wants_group(const hlo_call *c, const device_desc *dev)
{
    return c->group && (c->wide >= LEAST_WIDE ||
                        c->items <= GROUPS_A_UNIT * (int64_t)dev->units);
}

/* What its items write they also read: no pointer is the only one. */
static void take_group(plan_kernel *k, const device_desc *dev)
{
    hlo_call *c = k->call;
    int most = dev->kind == DEVICE_CUDA ? MOST_ITEMS_CUDA : dev->crowd;

    c->fn = c->group;
    c->work = c->group_work;
    c->grouped = true;
    while (k->group < most && k->group * PLACES_AN_ITEM < c->wide)
        k->group *= 2;
    k->items = k->group;
}

/* Fourier transforms of lines, a block of them an item.  Where several lines
 * are a block, six groups share a unit's memory. */
static void tile_lines(plan_kernel *k, const device_desc *dev)
{
    hlo_call *c = k->call;
    size_t most = SD_MAX(dev->local_bytes, dev->local_most);
    int64_t few = dev->access ? FEW_ITEMS * (int64_t)dev->units : 1;

    hlo_call_share_out(c, few, most / SHARING, most);
    if (!c->in_local) {
        if (c->items < few)
            k->group = k->items = dev->crowd;
        return;
    }
    while (k->group < dev->crowd && (size_t)k->group * BYTES_AN_ITEM < c->work)
        k->group *= 2;
    k->items = k->group;
}

/* An item of a call, such as a matrix to factor, is the work of a whole group
 * or of one work item on a GPU.  On the host HLO_CALL_LANES items go side by
 * side through vectors where the call has a function for that.  Groups that are
 * few are large. */
static void tile_call(plan_kernel *k, const device_desc *dev)
{
    hlo_call *c = k->call;
    bool host = dev->kind == DEVICE_HOST;

    if (host && c->lanes) {
        c->fn = c->lanes;
        c->work = c->lanes_work;
        c->each = HLO_CALL_LANES;
    }
    if (!host && c->whole)
        tile_lines(k, dev);
    if (!host && wants_group(c, dev))
        take_group(k, dev);
    k->tiles = host || c->whole || c->grouped
                   ? (c->items + c->each - 1) / c->each
                   : (c->items + dev->group - 1) / dev->group;
    if (host || c->in_local)
        plan_add_work(k, c->work);
    else if (c->work)
        plan_add_work_slot(k, c->items * (int64_t)c->work);
    for (int i = 0; c->grouped && i < k->nslot; i++)
        k->slot[i].noalias &= k->slot[i].access == PLAN_READ;
}

int plan_axis_at(const plan_kernel *k, plan_place place)
{
    for (int i = 0; i < k->naxis; i++)
        if (k->axis[i].place == place)
            return i;
    return -1;
}

int plan_lane_of(const plan_kernel *k)
{
    return plan_axis_at(k, PLAN_LANE);
}

int plan_copied_along(const plan_kernel *k, const plan_node *n)
{
    const plan_blocks *b = k->blocks;
    uint64_t m = b ? plan_block_rows(b) : 0;

    if (!b || k->group <= 1 || n->kind != PN_LOAD ||
        !(n->varies & b->node->over))
        return -1;
    return n->varies & m ? b->x_along : b->y_along;
}

int plan_running_axis(const plan_kernel *k)
{
    bool runs = false;

    plan_for_each_node(n, k) {
        if (plan_is_sum(n) || n->kind == PN_SCATTER)
            return -1;
        runs = runs || n->kind == PN_SCAN;
    }
    return runs && k->naxis == k->nouter + 1 ? k->nouter : -1;
}

int plan_wide_axis(const plan_kernel *k, const plan_node *n)
{
    int along = plan_copied_along(k, n);

    if (along < 0)
        along = plan_running_axis(k);
    if (along >= 0)
        return along;
    if (n->staged)
        along = plan_axis_at(k, PLAN_CROWD);
    return along >= 0 ? along : plan_lane_of(k);
}

/* ---- sub-groups ---- */

/* How many values of n an item has side by side. */
static int64_t side_by_side(const plan_kernel *k, const plan_node *n)
{
    int64_t all = SD_MAX(n->nout, 1);

    for (int a = 0; a < k->naxis; a++)
        if (n->varies >> a & 1)
            all *= SD_MAX(k->axis[a].copies, 1);
    return all;
}

/* Bytes of registers that a pass takes of an item: of sums, in *sums, and in
 * all if no value made room for the next one. */
static int64_t registers_of(const plan_kernel *k, const plan_pass *p,
                            int64_t *sums)
{
    int64_t all = 0;

    *sums = 0;
    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];
        int64_t each = (int64_t)SD_MAX(sd_dtype_bytes(n->dtype), 4);

        if (!p->needs[i] || n->kind == PN_CONST || n->kind == PN_STORE)
            continue;
        if (plan_is_sum(n))
            *sums += each * side_by_side(k, n) *
                     (p->how == PLAN_LANES_COPIES ? p->lanes : 1);
        else
            all += each * side_by_side(k, n);
    }
    all += *sums;
    return all;
}

/* Registers are a sub-group's: where an item's sums take half of its share, or
 * what stages over a row make side by side takes all, sub-groups have half as
 * many items; and those of them twice the registers whose sums alone would take
 * half of that again.  Items that hand each other values count on how many they
 * are, and engines on their own number. */
static void narrow_groups(plan_kernel *k, const device_desc *dev)
{
    const plan_blocks *b = k->blocks;
    int64_t have = dev->registers, sums = 0, all = 0;

    if (dev->kind != DEVICE_CL || !dev->subgroup || !have ||
        (b && plan_has_matrices(b)))
        return;
    if (b) /* the open chain's and the sum's */
        sums = 2ll * b->rows * b->vectors *
               (int64_t)sd_dtype_bytes(b->node->dtype);
    for (int i = 0; !b && i < k->npass; i++) {
        int64_t of, most = registers_of(k, &k->pass[i], &of);

        sums = SD_MAX(sums, of);
        all = SD_MAX(all, most);
    }
    if (2 * sums < have && (all < have || !k->narea))
        return;
    k->subgroup /= 2;
    k->large = sums >= have;
}

/* ---- functions that need less of some operands ---- */

enum { MOST_ASKED = 100 /* nodes looked at for one exp */ };

/* Is m the greatest of x and others, or a NaN? */
static bool is_bound(const plan_node *m, const plan_node *x, int *asked)
{
    if (++*asked > MOST_ASKED)
        return false;
    if (m->kind == PN_ELT && m->op == HLO_MAXIMUM)
        return is_bound(m->arg[0], x, asked) || is_bound(m->arg[1], x, asked);
    return m == x || (m->kind == PN_REDUCE && m->nout == 1 &&
                      m->body->op == HLO_MAXIMUM && m->arg[0] == x);
}

/* x less such a number, as a softmax has it: no more than 0, or a NaN.  So it
 * is when both are converted, but to integers, of which none is a NaN. */
static bool is_below_zero(const plan_node *n)
{
    const plan_node *x, *m;
    int asked = 0;

    if (n->kind != PN_ELT || n->op != HLO_SUBTRACT)
        return false;
    for (x = n->arg[0], m = n->arg[1];
         x->kind == PN_ELT && m->kind == PN_ELT && x->op == HLO_CONVERT &&
         m->op == HLO_CONVERT && x->arg[0]->dtype == m->arg[0]->dtype &&
         sd_dtype_kind(x->dtype) == SD_K_FLOAT;
         x = x->arg[0], m = m->arg[0])
        ;
    return is_bound(m, x, &asked);
}

static void mark_down(plan_kernel *k)
{
    plan_for_each_node(n, k)
        n->down = n->kind == PN_ELT && n->op == HLO_EXP && n->dtype == SD_F32 &&
                  is_below_zero(n->arg[0]);
}

/* Bytes that come apart as words are numbers of 32 bits at once.  What goes on
 * as bytes is put together of registers of 16 bytes, with as many shuffles of a
 * fourth of the width. */
static void mark_words(plan_kernel *k)
{
    plan_for_each_node(n, k)
        n->words = n->kind == PN_LOAD && sd_is_int(n->dtype) &&
                   sd_dtype_table[n->dtype].bits == 8;
    plan_for_each_node(n, k)
        for (int i = 0; i < n->narg; i++)
            n->arg[i]->words &= n->kind == PN_ELT && n->op == HLO_CONVERT &&
                                sd_dtype_bytes(n->dtype) == 4;
}

void plan_tile_begin(plan_kernel *k, const device_desc *dev)
{
    k->tiles = k->lanes = k->vector = 1;
    k->group = k->items = dev->group;
    k->subgroup = dev->subgroup;
}

void plan_tile(plan_kernel *k, const device_desc *dev)
{
    int lane;

    plan_tile_begin(k, dev);
    if (k->sort) {
        tile_sort(k, dev);
        return;
    }
    if (k->call) {
        tile_call(k, dev);
        return;
    }
    if (k->attend) {
        plan_tile_attend(k, dev);
        return;
    }
    if (k->places) {
        plan_tile_places(k, dev);
        return;
    }
    plan_split_groups(k, dev->kind == DEVICE_HOST ? PLAN_LEAST_GROUP
                                                  : PLAN_LEAST_BLOCK);
    if (!k->runs) /* names an axis */
        plan_collapse(k);
    if (dev->kind == DEVICE_HOST)
        plan_part_short(k, dev);
    plan_cut_chains(k);
    if (dev->kind == DEVICE_HOST)
        plan_tile_host(k, dev);
    else
        plan_tile_gpu(k, dev);
    count_tiles(k);
    mark_down(k);
    if (dev->kind == DEVICE_HOST && dev->lanes == WORDS && k->lanes == WORDS)
        mark_words(k);
    if (dev->kind == DEVICE_HOST)
        plan_find_woven(k);
    lane = plan_lane_of(k);
    plan_choose_copies(k, lane, dev);
    plan_lay_out(k, lane);
    narrow_groups(k, dev);
}
