/* Operands of groups that are read as they lie (ADR 25): one load,
 * whose place a step changes by the same number for all items.  Where its
 * guards ask for positions of K, they are a window's: which of them fail for a
 * row is found once, as bits, and what fails is read from a slot of zeros, so
 * the loop over steps computes no guard and no address but one addition. */
#include "plan_blocks.h"
#include "plan_mapping.h"

enum { BITS = 31 }; /* of a word without its sign */

/* Does e grow by a number with each position of these axes? */
static bool is_affine(const plan_expr *e, uint64_t axes)
{
    int64_t s;

    plan_for_each_axis(a, axes)
        if (!plan_expr_stride(e, a, &s))
            return false;
    return true;
}

/* What is read where a guard fails is 0, or nobody asks what it is. */
bool plan_fills_zeros(const plan_node *n)
{
    const plan_node *fill = n->narg ? n->arg[0] : NULL;

    if (!fill)
        return true;
    if (fill->kind != PN_CONST)
        return false;
    for (size_t i = 0; i < sd_dtype_bytes(fill->dtype); i++)
        if (fill->value[i])
            return false;
    return true;
}

int64_t plan_guard_places(const plan_kernel *k, const plan_guard *g)
{
    return plan_extent(k, g->e->varies & k->blocks->node->over);
}

static bool has_few_places(const plan_kernel *k, const plan_node *n)
{
    uint64_t over = k->blocks->node->over;
    int64_t all = 0;

    for (int i = 0; i < n->nguard && all <= BITS; i++) {
        const plan_expr *e = n->guard[i].e;

        if (!is_affine(e, over) || e->varies >> plan_last_axis(over) & 1)
            return false;
        all += plan_guard_places(k, &n->guard[i]);
    }
    return all <= BITS;
}

bool plan_lies_in_row(const plan_kernel *k, const plan_expr *off, uint64_t axes)
{
    int64_t s, next = 0;

    for (int a = k->naxis - 1; a >= 0; a--) {
        if (!(axes >> a & 1))
            continue;
        if (!plan_expr_stride(off, a, &s) || (next && s != next))
            return false;
        next = s * k->axis[a].extent;
    }
    return true;
}

/* Is where a step begins one number, and do no guards ask for the positions
 * that steps of several axes leave uncertain? */
static bool steps_alike(const plan_kernel *k, const plan_node *n)
{
    const plan_blocks *b = k->blocks;
    uint64_t asked = 0;

    for (int i = 0; i < n->nguard; i++)
        asked |= n->guard[i].e->varies;
    return !(b->node->over & (b->node->over - 1)) ||
           k->axis[plan_last_axis(b->node->over)].extent % b->step == 0 ||
           (plan_lies_in_row(k, n->off, b->node->over) &&
            !(asked & b->node->over));
}

/* Where the last step of a chain is cut, each must ask for its end, but panels
 * have zeros before the first one instead. */
static bool has_full_steps(const plan_kernel *k)
{
    const plan_blocks *b = k->blocks;
    const plan_engine_info *e = &plan_engine_table[b->engine];
    int64_t chunk = e->m ? 0 : b->node->order.chunk;
    int64_t left = chunk ? k->axis[b->k].extent % chunk : 0;

    return e->panels || (b->kt % b->step == 0 &&
                         left * plan_extent(k, b->k_in) % b->step == 0);
}

bool plan_is_plain(const plan_kernel *k, const plan_node *n, int along,
                   int wide)
{
    const plan_blocks *b = k->blocks;
    uint64_t over = b->node->over;
    int last = plan_last_axis(over);

    return has_full_steps(k) && n->kind == PN_LOAD &&
           n->off->varies >> along & 1 && n->wide <= wide &&
           (!(over >> along & 1) || along == last) && steps_alike(k, n) &&
           is_affine(n->off, over | 1ull << along) && plan_fills_zeros(n) &&
           has_few_places(k, n);
}

static void add_zeros(plan_kernel *k, plan_blocks *b)
{
    plan_add_work_slot(k, PLAN_ZEROS);
    b->zeros = k->nslot - 1;
    k->slot[b->zeros].access = PLAN_READ;
}

void plan_find_plain(plan_kernel *k, plan_blocks *b)
{
    b->x_plain = b->window || plan_is_plain(k, b->x, b->x_along, b->x_wide);
    b->y_plain = plan_is_plain(k, b->y, b->y_along, b->y_wide);
    if ((b->x_plain && b->x->nguard) || (b->y_plain && b->y->nguard))
        add_zeros(k, b);
}
