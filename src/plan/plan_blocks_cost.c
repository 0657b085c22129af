/* What a tile of plan_blocks_gpu.c asks of a device: registers of an item or a
 * sub-group, and their instructions. */
#include "plan_blocks.h"
#include "plan_mapping.h"

#include <math.h>

enum {
    EDGE = 64, /* a tile of m x n costs m * n + EDGE * (m + n) */
    PAIR = 128 * 128, /* sums of a tile of which a unit holds two */
    LONG_SUM = 48,    /* steps, of which the units do whole turns of tiles */
    FEW_COLUMNS = 128,
    FULL_TURNS = 4,   /* tiles of each unit */
    SLIDES = 12,      /* steps of which two small groups are better */
    TURN = 45, /* instructions of a step but for copies and products, */
    WINDOW_TURN = 20, /* and where steps are a window's */
    READ = 2,  /* of a message that a sub-group reads, with its place */
    SHARED = 1, /* what an item of a group waits for a row or column of the
                   tile, which sub-groups read that stand side by side */
    ON_WAY = 88, /* 256ths of an item's registers for what it copies, */
    WINDOW_ON_WAY = 56 /* and where all of a window is multiplied beside it */
};

/* ---- registers ---- */

/* Bytes of registers that an item of kernel k has; devices say it of their own
 * sub-groups.  Of more items than a crowd each has fewer. */
static int64_t registers_of(const plan_kernel *k, const device_desc *dev)
{
    int64_t all = (int64_t)dev->registers * SD_MAX(dev->subgroup, 1);

    all = all / SD_MAX(k->subgroup, 1) * (k->large ? 2 : 1);
    return k->large || k->group <= dev->crowd ? all
                                              : all * dev->crowd / k->group;
}

bool plan_holds_squares(const plan_kernel *k, const plan_blocks *b, int m,
                        int n, const device_desc *dev)
{
    int64_t sums = (int64_t)m * n * (int64_t)sd_dtype_bytes(b->node->dtype);

    return 2 * sums <= registers_of(k, dev) * k->subgroup;
}

/* Neighbours that are read at once of an operand, if nothing cuts them; what is
 * computed has reads of its own. */
static int read_at_once(const plan_kernel *k, const plan_blocks *b,
                        const plan_node *n, int along, const device_desc *dev)
{
    const int most = (int)(dev->access / (int64_t)sd_dtype_bytes(n->dtype));
    int v = most;

    while (v > 1 && n->kind == PN_LOAD &&
           (plan_wide_run(k, n, along, v, dev->access) < v ||
            k->axis[along].extent % v))
        v /= 2;
    if (v < most && plan_may_be_loose(k, b, n, along))
        v = SD_MAX(v, plan_loose_run(k, b, n, along, most));
    return v;
}

static bool is_guarded(const plan_node *n)
{
    return n->kind == PN_LOAD && n->nguard;
}

/* Bytes of registers of an item that has `all` elements of an operand on their
 * way in a step: of each vector there is the address, of 8 bytes, the place in
 * the area, what guards made of it, and its address again while it is chosen,
 * which a chip without numbers of 64 bits does in parts. */
static double registers_for(const plan_kernel *k, const plan_blocks *b,
                            const plan_node *n, int along, double all,
                            const device_desc *dev)
{
    double more = !is_guarded(n)                   ? 12
                  : dev->features & DEVICE_HAS_F64 ? 20
                                                   : 28;

    return all * ((double)sd_dtype_bytes(n->dtype) +
                  more / read_at_once(k, b, n, along, dev));
}

bool plan_holds_step(const plan_kernel *k, const plan_blocks *b, int step,
                     const device_desc *dev)
{
    double each = (double)step / k->group, y = (double)b->nt * each;
    double all = registers_for(k, b, b->y, b->y_along, y, dev);

    all += b->window ? plan_window_registers(k, b, step)
                     : registers_for(k, b, b->x, b->x_along,
                                     (double)b->mt * each, dev);
    /* along K each word of y has a place in each area */
    if (b->node->over >> b->y_along & 1)
        all += plan_areas_of_y(k, b) * 4 * y / plan_word(b);
    return 256 * all <=
           (b->window ? WINDOW_ON_WAY : ON_WAY) * (double)registers_of(k, dev);
}

/* ---- instructions ---- */

/* Instructions of an item that copies `all` elements: a read, a write, their
 * addresses, and what waits for them; a test and two selects; one for an
 * element that is woven. */
static double copying(const plan_kernel *k, const plan_blocks *b,
                      const plan_node *n, int along, double all,
                      const device_desc *dev)
{
    double each = is_guarded(n) ? 10 : 6;

    return all * (each / read_at_once(k, b, n, along, dev) +
                  (plan_woven_rows(b, along) > 1));
}

/* Instructions of a sub-group for a panel of its tile. */
static double panel_cost(const plan_kernel *k, const plan_blocks *b,
                         const device_desc *dev)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    double each = (double)e->depth / k->group, x = (double)b->mt * each,
           y = (double)b->nt * each;
    int messages = b->rows / e->m + b->vectors / e->n,
        turn = b->window ? WINDOW_TURN : TURN;
    double own = (double)b->rows * b->vectors / (e->m * e->n) + READ * messages;

    if (b->direct)
        return own + (double)SHARED * (double)(b->mt + b->nt) / k->group;
    if (b->window) /* once for all positions of the window */
        x = (double)plan_window_rows(k, b) * each *
            (double)k->axis[plan_last_axis(b->node->over)].extent /
            (double)b->kt;
    return own + copying(k, b, b->x, b->x_along, x, dev) +
           copying(k, b, b->y, b->y_along, y, dev) +
           (double)turn * e->depth / b->step;
}

/* Where there are tiles for few units, those of which less than two thirds are
 * used cost more than smaller ones. */
static double in_vain(int64_t tile, int64_t used)
{
    return SD_MAX((double)tile / (1.5 * (double)used), 1);
}

static int64_t tiles_of(const plan_kernel *k, const plan_blocks *b, int axis,
                        uint64_t in, int64_t t)
{
    int64_t each = t / plan_tile_points(k, b, in);

    return (k->axis[axis].extent + each - 1) / each;
}

/* Of few steps a group waits for its operands and then for its results, while a
 * second one of the same unit goes on. */
static double alone(const plan_blocks *b)
{
    return plan_is_short(b) && b->mt * b->nt > PAIR ? 1.25 : 1;
}

/* How often the units do a tile.  A unit with two tiles of a long sum takes
 * twice as long as one with one, whether it does both at once or not. */
static double turns_of(const plan_blocks *b, double tiles,
                       const device_desc *dev)
{
    double turns = SD_MAX(tiles / dev->units, 1);

    return plan_is_wide(b) && b->kt > (int64_t)LONG_SUM * b->step ? ceil(turns)
                                                                  : turns;
}

/* An x that slides is copied once where it is else for each position of kx. */
static double sliding(const plan_blocks *b)
{
    return plan_slides_in_area(b) ? 0.8 : 1;
}

/* Sub-groups of a large group have fewer columns each: products of 4,096 and
 * 8,192 take 2 to 5 % longer.  Of few steps or columns a unit has two smaller
 * groups, which hide each other's waiting; of few tiles some units wait for the
 * last ones.  Where x slides a unit has room for two, too: a convolution of 18
 * steps takes 138 us so and 144 in large groups, one of 9, whose weights are
 * read more often for it, 166 and 157. */
static double crowded(const plan_kernel *k, const plan_blocks *b, double tiles,
                      const device_desc *dev)
{
    if (k->group <= dev->crowd)
        return 1;
    return plan_is_short(b) || b->nt < FEW_COLUMNS ||
                   (plan_slides_in_area(b) && b->kt > SLIDES * b->step) ||
                   tiles < FULL_TURNS * dev->units
               ? 1.25
               : 1.05;
}

double plan_tile_cost(const plan_kernel *k, const plan_blocks *b,
                      const device_desc *dev)
{
    double tiles = plan_points(k, b->rest) *
                   (double)tiles_of(k, b, b->m, b->m_in, b->mt) *
                   (double)tiles_of(k, b, b->n, b->n_in, b->nt);

    if (plan_engine_table[b->engine].panels)
        return panel_cost(k, b, dev) *
               in_vain(b->mt, plan_extent(k, plan_block_rows(b))) *
               in_vain(b->nt, plan_extent(k, plan_block_columns(b))) *
               SD_MAX(tiles * b->along_m * b->along_n / dev->units, 1);
    return (double)(b->mt * b->nt + EDGE * (b->mt + b->nt)) * alone(b) *
           crowded(k, b, tiles, dev) * sliding(b) * turns_of(b, tiles, dev);
}
