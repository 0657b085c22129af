/* Operands of panels whose rows are no whole number of vectors, or begin at odd
 * places (ADR 25).  Intel's GPUs read words of 4 bytes wherever these lie, and
 * several words at once wherever a word may.  So a vector of a plain operand
 * may begin and end anywhere: it is *loose*, and read by words instead of by
 * elements.  Where a step or the tile ends within a vector, who reads it moves
 * its bits. */
#include "plan_blocks.h"
#include "plan_mapping.h"

/* Does a vector lie along the one axis that it goes on along, and is where it
 * begins a sum of positions? */
static bool is_sum(const plan_kernel *k, const plan_node *n, int along)
{
    int64_t s;

    for (int a = 0; a < k->naxis; a++)
        if (!plan_expr_stride(n->off, a, &s) || (a == along && s != 1))
            return false;
    return true;
}

bool plan_may_be_loose(const plan_kernel *k, const plan_blocks *b,
                       const plan_node *n, int along)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    uint64_t in = n == b->x ? b->m_in : b->n_in;

    return e->panels && !b->direct && !b->window && n->kind == PN_LOAD &&
           !n->nguard && !n->narg && n->dtype == b->part &&
           !(b->node->over & (b->node->over - 1)) &&
           (b->node->over >> along & 1 || !in) && is_sum(k, n, along) &&
           k->axis[along].extent >= plan_word(b);
}

/* Does each word of its vectors begin at a word's place? */
static bool has_whole_words(const plan_kernel *k, const plan_blocks *b,
                            const plan_node *n, int along)
{
    int word = plan_word(b);
    int64_t s, m;

    return plan_expr_run(n->off, along, word, &s, &m) && m % word == 0 &&
           k->axis[along].extent % word == 0 &&
           k->slot[n->slot].align % PLAN_BLOCK_WORD == 0;
}

int plan_loose_run(const plan_kernel *k, const plan_blocks *b,
                   const plan_node *n, int along, int most)
{
    int word = plan_word(b), v = word;

    if (!has_whole_words(k, b, n, along))
        return word;
    while (2 * v <= most &&
           (b->node->over >> along & 1 || k->axis[along].extent % (2 * v) == 0))
        v *= 2;
    return v;
}

/* Neighbours of a loose vector: across K it ends where its axis does, or is one
 * word; 0: items have no whole words. */
static int vector_of(const plan_kernel *k, const plan_blocks *b,
                     const plan_node *n, int along, int64_t tile,
                     const device_desc *dev)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    int most = (int)(dev->access / (int64_t)sd_dtype_bytes(b->part)), v = most;
    bool deep = b->node->over >> along & 1;

    if (!deep)
        v = plan_loose_run(k, b, n, along, n == b->y ? e->items : most);
    for (; v >= plan_word(b); v /= 2)
        if (b->step % v == 0 && tile % v == 0 &&
            tile * b->step / v % (k->group * plan_woven_rows(b, along)) == 0)
            return v;
    return 0;
}

/* Where words are wider than what is read now. */
static bool find_one(plan_kernel *k, const plan_blocks *b, const plan_node *n,
                     int along, int64_t tile, int *wide, const device_desc *dev)
{
    int v, at_once;

    if (!plan_may_be_loose(k, b, n, along))
        return false;
    v = vector_of(k, b, n, along, tile, dev);
    at_once = v ? SD_MIN(plan_loose_run(k, b, n, along, v), v) : 0;
    if (at_once <= n->wide)
        return false;
    *wide = v;
    k->node[n->id]->wide = at_once;
    return true;
}

void plan_find_loose(plan_kernel *k, plan_blocks *b, const device_desc *dev)
{
    b->x_loose =
        b->x_plain && find_one(k, b, b->x, b->x_along, b->mt, &b->x_wide, dev);
    b->y_loose =
        b->y_plain && find_one(k, b, b->y, b->y_along, b->nt, &b->y_wide, dev);
}
