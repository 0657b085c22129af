/* How the groups of plan_blocks_gpu.c copy the operands of their blocks, and
 * what else their items read and write at once. */
#include "plan_blocks.h"
#include "plan_mapping.h"

enum {
    ACCESS = 16, /* positions of LANE that an item takes, at most */
    MOST_MADE = 400 /* nodes of an item of what uses the sums */
};

static void mark(const plan_node *n, bool *of);

static void mark_named(const plan_expr *e, bool *of)
{
    if (!e)
        return;
    if (e->kind == PX_NODE)
        mark(e->node, of);
    mark_named(e->a, of);
    mark_named(e->b, of);
}

/* Marks what n is made of. */
static void mark(const plan_node *n, bool *of)
{
    if (of[n->id])
        return;
    of[n->id] = true;
    for (int i = 0; i < n->narg; i++)
        mark(n->arg[i], of);
    mark_named(n->off, of);
    for (int i = 0; i < n->nguard; i++)
        mark_named(n->guard[i].e, of);
}

/* Vectors of v neighbours along an axis neither end within a tile nor within
 * what a step takes of a chain, nor within a block of a panel's columns. */
static bool divides(const plan_kernel *k, const plan_blocks *b, int along,
                    int64_t v)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    const plan_axis *x = &k->axis[along];
    int64_t chunk = plan_has_matrices(b) ? 0 : b->node->order.chunk;

    if (e->panels && along == b->y_along && !(b->node->over >> along & 1) &&
        v > e->items)
        return false;
    return x->extent % v == 0 && x->tile % v == 0 && b->step % v == 0 &&
           (along != b->k || chunk % v == 0);
}

/* Neighbours that an item copies at once of one operand, of which a step has
 * `all` elements. */
static int copied_at_once(const plan_kernel *k, const plan_blocks *b,
                          const bool *of, int along, int64_t all,
                          const device_desc *dev)
{
    int64_t least = dev->access;
    int v;

    for (int i = 0; i < k->nnode; i++)
        if (of[i] && k->node[i]->kind == PN_LOAD &&
            k->node[i]->varies >> along & 1)
            least = SD_MIN(least, (int64_t)sd_dtype_bytes(k->node[i]->dtype));
    for (v = (int)(dev->access / least); v > 1; v /= 2) {
        bool any = false;

        for (int i = 0; i < k->nnode; i++)
            any = any ||
                  (of[i] && k->node[i]->kind == PN_LOAD &&
                   k->node[i]->varies >> along & 1 &&
                   plan_wide_run(k, k->node[i], along, v, dev->access) > 1);
        if (any && divides(k, b, along, v) &&
            all / v >= k->group * plan_woven_rows(b, along))
            break;
    }
    return v;
}

/* Positions of LANE that an item takes of what uses the sums. */
static int vector_of(const plan_kernel *k, const plan_blocks *b, int lane,
                     const bool *copied, const device_desc *dev)
{
    const plan_axis *x = &k->axis[lane];
    int64_t used = 0;
    int v = ACCESS;

    for (int i = 0; i < k->nnode; i++)
        used += !copied[i];
    for (; v > 1; v /= 2) {
        bool all = true;

        plan_for_each_node(n, k)
            if (n->kind == PN_STORE)
                all = all && plan_wide_run(k, n, lane, v, dev->access) == v;
        if (all && x->extent % v == 0 && x->tile % v == 0 && b->nt >= v &&
            v * used <= MOST_MADE)
            break;
    }
    return v;
}

/* What is read while operands are copied goes along their axes, all else along
 * LANE. */
static void choose_accesses(plan_kernel *k, const plan_blocks *b, int lane,
                            const bool *copied, const device_desc *dev)
{
    uint64_t sides = plan_block_rows(b) | plan_block_columns(b);

    for (int i = 0; i < k->nnode; i++) {
        plan_node *n = k->node[i];
        int along = plan_copied_along(k, n);

        if (!copied[i])
            n->wide = plan_wide_run(k, n, lane, k->vector, dev->access);
        else if (along >= 0 && n->varies & sides)
            n->wide = plan_wide_run(k, n, along,
                                    n->varies & plan_block_rows(b) ? b->x_wide
                                                                   : b->y_wide,
                                    dev->access);
        else
            n->wide = 1;
    }
}

void plan_choose_block_copies(plan_kernel *k, plan_blocks *b, int lane,
                              const device_desc *dev)
{
    bool *copied = sd_arena_array(k->arena, bool, k->nnode + 1);
    bool *of_x = sd_arena_array(k->arena, bool, k->nnode + 1);

    mark(b->x, of_x);
    mark(b->y, copied);
    b->x_wide = b->y_wide = 1;
    if (!b->direct) {
        b->x_wide =
            copied_at_once(k, b, of_x, b->x_along, b->mt * b->step, dev);
        b->y_wide =
            copied_at_once(k, b, copied, b->y_along, b->nt * b->step, dev);
    }
    for (int i = 0; i < k->nnode; i++)
        copied[i] = copied[i] || of_x[i];
    k->vector = vector_of(k, b, lane, copied, dev);
    k->items = (int)(b->nt / k->vector);
    k->blocks = b;
    choose_accesses(k, b, lane, copied, dev);
}

/* One access each, which no register has to see. */
static bool is_copied_whole(const plan_blocks *b, const plan_node *n, int along,
                            int wide)
{
    return plan_woven_rows(b, along) == 1 && n->wide == wide &&
           wide * (int)sd_dtype_bytes(n->dtype) == PLAN_LINE_PART;
}

void plan_copy_by_itself(plan_kernel *k, plan_blocks *b, const device_desc *dev)
{
    /* three leave room for a second group of the unit */
    const size_t pairs = plan_is_short(b) ? 3 : 4;
    size_t most;

    if (!plan_is_wide(b) || b->pairs < 3 ||
        (b->part == SD_F32 && !b->y_trimmed) || !b->x_plain || !b->y_plain ||
        !is_copied_whole(b, b->x, b->x_along, b->x_wide) ||
        !is_copied_whole(b, b->y, b->y_along, b->y_wide))
        return;
    b->by_itself = true;
    if (b->slides)
        return;
    most = SD_MAX(dev->local_bytes, dev->local_most) / b->buffer;
    b->pairs = (int)SD_MIN(most, pairs);
    k->local_bytes = SD_MAX(k->local_bytes, (size_t)b->pairs * b->buffer);
}
