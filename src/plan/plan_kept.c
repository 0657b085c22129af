/* Rows that several stages of a GPU's kernel go over, in registers from the
 * first of them to the last.
 *
 * A row's 64 strided lanes are items by vectors, so an item has all positions
 * of some lanes: of a long row too many.  Then teams of items share the row, a
 * part of it each, one after the other.  A lane's sum is added in order all the
 * same: each team goes on where the one before has ended, while the others
 * wait. */
#include "plan_mapping.h"

enum {
    HEAVY_NODES = 40,
    /* Words of a row that an item keeps: where its loads are wide only half as
     * many, so that a row has twice as many items instead, unless there are
     * elements of less than a word, which alone make poor loads.  KEPT is a
     * quarter of the 255 registers that an item has on NVIDIA's chips; the rest
     * is for what is made of them. */
    KEPT = 64,
    KEPT_WIDE = 32,
    /* Nodes of an item that keeps a row: they stand there for every position,
     * so this bounds the code and the time that compiling it takes. */
    KEPT_NODES = 4000,
    /* Bytes that an item of a team keeps of each value that is read of a row.
     * More teams take turns for longer, fewer have more registers each. */
    TEAM_BYTES = 128,
    WORD = 4, /* bytes of its accesses */
    MOST_NEAR = 2, /* neighbours: a team is whole warps */
    MOST_TEAMS = 16,
    MOST_ITEMS = 1024,
    HALF_FILE = 32768, /* registers of a unit */
    /* Registers of an item beside those in which it keeps a row: the least; of
     * rows of words; of rows beside which it reads others along LANE. */
    BESIDE_NARROW = 32,
    BESIDE_WORDS = 48,
    BESIDE_OTHERS = 64,
    FEW_STAGES = 3 /* of more, an item keeps more than what it reads */
};

bool plan_is_of_row(const plan_kernel *k, const plan_node *n, int lane)
{
    uint64_t outer = (1ull << k->nouter) - 1;

    return n->kind == PN_LOAD && n->varies >> lane & 1 && n->varies & outer;
}

int64_t plan_made(const plan_kernel *k, int lane)
{
    int64_t n = 0;

    plan_for_each_node(x, k)
        if (x->varies >> lane & 1)
            n += x->kind == PN_ELT && (hlo_op_table[x->op].props & HLO_P_HEAVY)
                     ? HEAVY_NODES
                     : 1;
    return SD_MAX(n, 1);
}

int plan_stages_along(const plan_kernel *k, int lane)
{
    int n = 0;

    for (int i = 0; i < k->nstage; i++)
        n += (k->stage[i].axes >> lane & 1) != 0;
    return n;
}

/* Values that an item reads of a row, and in *bytes an element of the widest.
 */
static int read_of_row(const plan_kernel *k, int lane, int64_t *bytes)
{
    int n = 0;

    *bytes = 1;
    plan_for_each_node(x, k)
        if (plan_is_of_row(k, x, lane)) {
            n++;
            *bytes = SD_MAX(*bytes, (int64_t)sd_dtype_bytes(x->dtype));
        }
    return n;
}

/* Is an element that is read of a row less than a word? */
static bool reads_narrow(const plan_kernel *k, int lane)
{
    plan_for_each_node(x, k)
        if (plan_is_of_row(k, x, lane) && sd_dtype_bytes(x->dtype) < WORD)
            return true;
    return false;
}

/* Stages after the first find a row in registers, if they hold what items have
 * of it in one step.  So many neighbours are an item's then; 0: they do not. */
static int kept_vector(const plan_kernel *k, int lane, int v)
{
    int64_t extent = k->axis[lane].extent, bytes, copies;
    int n = read_of_row(k, lane, &bytes);
    bool narrow = reads_narrow(k, lane), may_fill;

    for (; v > 0; v /= 2) {
        copies = extent / PLAN_ROW_LANES * v;
        may_fill = v == 1 || (narrow && copies <= KEPT_WIDE);
        if (copies * n <= (may_fill ? KEPT : KEPT_WIDE) &&
            copies * plan_made(k, lane) <= KEPT_NODES)
            return v;
    }
    return 0;
}

/* Are the sums along rows such as teams can share? */
static bool can_share(const plan_kernel *k, int lane)
{
    plan_for_each_node(n, k) {
        int op = n->body ? n->body->op : -1;
        bool sum = n->nout == 1 && (op == HLO_ADD || op == HLO_MULTIPLY) &&
                   (n->dtype == SD_F32 || n->dtype == SD_F64);

        if (n->kind == PN_REDUCE && n->over >> lane & 1 && !sum &&
            !plan_any_order(n))
            return false;
    }
    return true;
}

/* The least number of teams whose items have few enough positions, of v
 * neighbours each; 0: none. */
static int teams_of(const plan_kernel *k, int lane, int v)
{
    int64_t extent = k->axis[lane].extent, bytes, copies;
    int n = read_of_row(k, lane, &bytes);
    int64_t most = SD_MIN(TEAM_BYTES / bytes, (int64_t)PLAN_AXIS_COPIES);

    if (extent * n > HALF_FILE || !can_share(k, lane))
        return 0;
    for (int t = 2; t <= MOST_TEAMS; t *= 2) {
        copies = extent / PLAN_ROW_LANES * v / t;
        if (extent % (PLAN_ROW_LANES * t) == 0 && copies <= most &&
            t * PLAN_ROW_LANES / v <= MOST_ITEMS &&
            copies * plan_made(k, lane) <= KEPT_NODES)
            return t;
    }
    return 0;
}

bool plan_keep_row(plan_kernel *k, int lane, int v, const device_desc *dev)
{
    int64_t extent = k->axis[lane].extent, bytes;
    int n = read_of_row(k, lane, &bytes), kept, word;

    if (dev->registers < 4 * 4 * KEPT || /* four times KEPT words of 4 bytes */
        plan_stages_along(k, lane) < 2 || extent % PLAN_ROW_LANES || n == 0)
        return false;
    kept = kept_vector(k, lane, v);
    word = (int)SD_MIN(SD_MIN(v, MOST_NEAR), SD_MAX(WORD / bytes, 1));
    if (dev->kind == DEVICE_CUDA &&
        (kept == 0 || extent / PLAN_ROW_LANES * kept > KEPT_WIDE))
        k->teams = teams_of(k, lane, word);
    k->keeps = kept || k->teams;
    if (k->keeps)
        k->vector = k->teams ? word : kept;
    return k->keeps;
}

/* Is more read along LANE than the row, such as what it is multiplied by? */
static bool reads_others(const plan_kernel *k, int lane)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_LOAD && n->varies >> lane & 1 &&
            !plan_is_of_row(k, n, lane))
            return true;
    return false;
}

/* nvJitLink takes registers as if a unit had one group: a softmax of bf16 rows
 * of 4,096 has 167 an item, and all that the unit's few groups do is wait for
 * each other's loads (381 us of 2^28 numbers; 304 with 96).  So the plan says
 * how many groups share a unit.  What does not fit an item's registers then
 * lies in its memory, which norms have no time for, nor rows of words. */
void plan_share_unit(plan_kernel *k, int lane, const device_desc *dev)
{
    int64_t bytes, n = read_of_row(k, lane, &bytes), kept, room;
    int rest = reads_others(k, lane)   ? BESIDE_OTHERS
               : reads_narrow(k, lane) ? BESIDE_NARROW
                                       : BESIDE_WORDS;

    if (dev->kind != DEVICE_CUDA || plan_stages_along(k, lane) > FEW_STAGES)
        return;
    kept = k->axis[lane].extent * n * SD_MAX(bytes / WORD, 1) /
           (k->items * SD_MAX(k->teams, 1));
    room = 2 * HALF_FILE / k->group;
    k->unit_groups = (int)(room / (kept + rest));
    if (k->unit_groups <= 1)
        k->unit_groups = room / 2 >= kept + BESIDE_NARROW ? 2 : 0;
}
