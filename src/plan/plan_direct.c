/* Products whose operands go from memory to registers by messages that read
 * blocks of a matrix, 2-D (ADR 25): Intel's, where there are such.  A message
 * knows where a matrix begins, how many rows and columns it has and how far
 * rows are apart, and what lies outside is 0.  So nothing is copied to local
 * memory, edges need no guards, and the padding of an image is what lies above
 * its first row and below its last. */
#include "plan_blocks.h"

enum {
    PITCH_OF = 8,        /* rows are a multiple of so many bytes apart, */
    LEAST_BYTES = 64,    /* and so many at least, as each is long at least; */
    WORD = 4,            /* rows begin and end with whole words */
    MOST = 1 << 24       /* rows of a matrix, bytes of a row */
};

/* Axes whose positions, the last axis fastest, are `stride` apart, each from
 * the one before it. */
static bool lies_flat(const plan_kernel *k, const plan_expr *off, uint64_t axes,
                      int64_t stride)
{
    int64_t s;

    for (int a = k->naxis - 1; a >= 0; a--) {
        if (!(axes >> a & 1))
            continue;
        if (!plan_expr_stride(off, a, &s) || s != stride)
            return false;
        stride *= k->axis[a].extent;
    }
    return true;
}

static uint64_t asked(const plan_node *n)
{
    uint64_t axes = 0;

    for (int i = 0; i < n->nguard; i++)
        axes |= n->guard[i].e->varies;
    return axes;
}

/* The one guard that asks for positions of axis `row`, by numbers that grow
 * there: those that fail are rows before the first or behind the last. */
static bool find_guard(const plan_node *n, int row, plan_reads *r)
{
    int64_t s;

    r->guard = -1;
    for (int i = 0; i < n->nguard; i++) {
        if (!(n->guard[i].e->varies >> row & 1))
            continue;
        if (r->guard >= 0 || !plan_expr_stride(n->guard[i].e, row, &s) ||
            s <= 0)
            return false;
        r->guard = i;
    }
    return true;
}

/* Rows are positions along the operand's side, a message has `each` of them;
 * columns are those of the last axis of K.  *whole: where rows of several
 * messages share a tile each has whole ones, those of x also where its last one
 * has rows beyond its end; of these there may be as many as a third of the
 * others. */
static bool find_deep(const plan_kernel *k, const plan_blocks *b,
                      const plan_node *n, uint64_t side, int each,
                      plan_reads *r, int *whole)
{
    int last = plan_last_axis(b->node->over), row = plan_last_axis(side);
    int64_t one, extent = k->axis[row].extent;
    bool x = side == plan_block_rows(b);

    r->columns = k->axis[last].extent;
    r->across = false;
    if (!plan_expr_stride(n->off, last, &one) || one != 1 ||
        !plan_expr_stride(n->off, row, &r->pitch) || r->pitch <= 0)
        return false;
    r->flat = !(asked(n) & side) && lies_flat(k, n->off, side, r->pitch);
    r->rows = r->flat ? plan_extent(k, side) : extent;
    r->slide = 0;
    if (x && r->columns > r->pitch) {
        r->slide = 1;
        r->rows += r->columns / r->pitch - 1;
        r->columns = r->pitch;
    }
    *whole = !r->flat && b->m_in >> row & 1 && extent % each ? each : 0;
    return find_guard(n, row, r) &&
           (r->flat || !(b->n_in >> row & 1) || extent % each == 0) &&
           (!*whole || 3 * plan_round_up(extent, each) <= 4 * extent);
}

/* Rows are positions of the last axis of K, columns those of y. */
static bool find_across(const plan_kernel *k, const plan_blocks *b,
                        const plan_node *n, uint64_t side, plan_reads *r)
{
    int last = plan_last_axis(b->node->over);

    *r = (plan_reads){.across = true,
                      .flat = true,
                      .guard = -1,
                      .rows = k->axis[last].extent,
                      .columns = plan_extent(k, side)};
    return plan_expr_stride(n->off, last, &r->pitch) && r->pitch > 0 &&
           !n->nguard && lies_flat(k, n->off, side, 1);
}

/* What e is a multiple of where these axes are at position 0; 0: it is 0. */
static int64_t multiple_of(const plan_expr *e, uint64_t zero)
{
    int64_t m;

    switch (e->kind) {
    case PX_CONST:
        return e->c < 0 ? -e->c : e->c;
    case PX_AXIS:
        return !(zero >> e->axis & 1);
    case PX_NODE:
        return 1;
    case PX_ADD:
        return sd_gcd(multiple_of(e->a, zero), multiple_of(e->b, zero));
    case PX_MUL:
        return multiple_of(e->a, zero) * (e->c < 0 ? -e->c : e->c);
    case PX_DIV:
        m = multiple_of(e->a, zero);
        return m % e->c ? 1 : m / e->c;
    case PX_MOD:
        return sd_gcd(multiple_of(e->a, zero), e->c) % e->c;
    }
    return 1;
}

/* Wherever a matrix begins that is a word's place: positions of its columns
 * and, if it is the only one, of its rows are none of that. */
static bool begins_with_words(const plan_node *n, uint64_t side, uint64_t over,
                              bool flat, int64_t bytes)
{
    uint64_t zero = 1ull << plan_last_axis(over) |
                    (flat ? side : 1ull << plan_last_axis(side));

    return multiple_of(n->off, zero) * bytes % WORD == 0;
}

static bool fits_message(const plan_reads *r, int64_t bytes)
{
    int64_t wide = r->columns * bytes, pitch = r->pitch * bytes;

    return wide >= LEAST_BYTES && wide % WORD == 0 && wide < MOST &&
           pitch >= LEAST_BYTES && pitch % PITCH_OF == 0 && pitch < MOST &&
           wide <= pitch && r->rows < MOST;
}

static bool find_reads(const plan_kernel *k, const plan_blocks *b,
                       const plan_node *n, uint64_t side, int each, bool y,
                       plan_reads *r, int *whole)
{
    uint64_t over = b->node->over;
    int64_t bytes = (int64_t)sd_dtype_bytes(b->part);

    return n->kind == PN_LOAD && plan_fills_zeros(n) &&
           !(asked(n) >> plan_last_axis(over) & 1) && (!y || !n->nguard) &&
           (find_deep(k, b, n, side, each, r, whole) ||
            (y && find_across(k, b, n, side, r))) &&
           begins_with_words(n, side, over, r->flat, bytes) &&
           fits_message(r, bytes);
}

/* ---- the last axis but one of K ---- */

/* How many rows further x begins at the next position of that axis, and no
 * guard but that of the rows asks for it.  Where a guard cuts rows off, what is
 * left begins where it did; where none does, there are so many rows more. */
static bool find_slide(const plan_kernel *k, const plan_node *n, int row,
                       int axis, plan_reads *r)
{
    int64_t step, all, one;

    for (int i = 0; i < n->nguard; i++)
        if (i != r->guard && n->guard[i].e->varies >> axis & 1)
            return false;
    if (!plan_expr_stride(n->off, axis, &step) || step % r->pitch)
        return false;
    r->slide = step / r->pitch;
    if (r->guard < 0) {
        r->rows += r->slide * (k->axis[axis].extent - 1);
        return r->slide >= 0;
    }
    return plan_expr_stride(n->guard[r->guard].e, axis, &all) &&
           plan_expr_stride(n->guard[r->guard].e, row, &one) &&
           all == r->slide * one;
}

/* All steps along a row are full: what lies behind is not 0. */
static bool has_full_rows(const plan_blocks *b)
{
    int depth = plan_engine_table[b->engine].depth;

    return b->x_reads.columns % (PLAN_DIRECT_STEPS * depth) == 0;
}

/* y goes on along that axis as it does along the last one. */
static bool find_slides(const plan_kernel *k, plan_blocks *b)
{
    uint64_t over = b->node->over;
    int last = plan_last_axis(over), before;
    int64_t extent = k->axis[last].extent, one, step;
    plan_reads x = b->x_reads, y = b->y_reads;

    over &= ~(1ull << last);
    if (!over || !has_full_rows(b))
        return false;
    before = plan_last_axis(over);
    if (!find_slide(k, b->x, plan_last_axis(plan_block_rows(b)), before, &x) ||
        !plan_expr_stride(b->y->off, last, &one) ||
        !plan_expr_stride(b->y->off, before, &step) || step != one * extent)
        return false;
    *(y.across ? &y.rows : &y.columns) *= k->axis[before].extent;
    if (!fits_message(&x, (int64_t)sd_dtype_bytes(b->part)) ||
        !fits_message(&y, (int64_t)sd_dtype_bytes(b->part)))
        return false;
    b->x_reads = x;
    b->y_reads = y;
    return true;
}

bool plan_reads_squares(const plan_kernel *k, const plan_blocks *b)
{
    int row = plan_last_axis(plan_block_rows(b));

    return b->x_reads.flat || !(b->m_in >> row & 1) ||
           plan_tile_extent(k, b, row) % PLAN_SQUARE == 0;
}

void plan_give_up_reads(plan_blocks *b)
{
    b->direct = b->slides = b->deep = false;
    b->m_whole = 0;
}

bool plan_slides_within(const plan_kernel *k, const plan_blocks *b)
{
    return b->x_reads.columns < k->axis[plan_last_axis(b->node->over)].extent;
}

/* Whole rows make the last axis, and no guard cuts rows off. */
static bool slides_evenly(const plan_kernel *k, const plan_blocks *b)
{
    int64_t extent = k->axis[plan_last_axis(b->node->over)].extent;

    return has_full_rows(b) && extent % b->x_reads.columns == 0 &&
           b->x_reads.guard < 0;
}

bool plan_find_reads(const plan_kernel *k, plan_blocks *b)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    int none;

    if (!e->panels ||
        !find_reads(k, b, b->x, plan_block_rows(b), e->m, false, &b->x_reads,
                    &b->m_whole) ||
        !find_reads(k, b, b->y, plan_block_columns(b), e->n, true, &b->y_reads,
                    &none) ||
        (plan_slides_within(k, b) && !slides_evenly(k, b))) {
        plan_give_up_reads(b);
        return false;
    }
    b->slides = plan_slides_within(k, b) || find_slides(k, b);
    return true;
}
