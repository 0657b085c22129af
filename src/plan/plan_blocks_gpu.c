/* Products in blocks on a GPU (ADR 25): whether a kernel's CONTRACT is done so
 * by groups, how large a group's tile is, and what lies where in its memory.
 *
 * An element of x that lies in local memory is used for all columns of a tile,
 * and one that is in registers for all columns of an item: of 128 x 128
 * positions an item of 256 has 8 x 8, which are 64 multiplications for 16
 * elements read. */
#include "plan_blocks.h"
#include "plan_mapping.h"

/* Which products are worth it. */
enum {
    LEAST_WORK = 1 << 15, /* multiplications */
    /* Rows or columns for matrix instructions, which read the other operand as
     * one alone would: 8 x 16,384 x 4,096 in bf16 took items 870 us, these 62.
     */
    LEAST_ROWS = 2
};
/* Positions of axes of M and N that a tile does not cut, at most. */
enum {
    WHOLE_SIDE = 64, /* twice those where items keep places (choose_sides), and
                        four times for a wide engine that they fill */
    LONG_ROWS = 512 /* of an image that is copied once for all of a window */
};
/* A step: positions of K in a pair of areas. */
enum {
    STEP_BYTES = 64, /* of a row or column, for items that multiply, and */
    LEAST_STEP = 16, /* positions at least; */
    MATRIX_STEP = 128, /* bytes, for matrix instructions: four of them; */
    PANEL_STEPS = 8 /* panels, if registers hold what is on its way */
};
/* Areas. */
enum {
    ACCESS = 16, /* bytes of an access: of a row's alignment, and of its
                    padding, which keeps banks apart */
    ROUND_BYTES = 32 << 10 /* for sums on their way out: as large as areas may
                              get for their sake */
};
/* Registers. */
enum {
    LARGE_FILE = 1024, /* bytes of an item that keeps places or reads early */
    EARLY_SUMS = 32, /* of an item that reads early, at least */
    MATRIX_MOST = 64, /* rows and columns of a sub-group's squares */
    FEW_SUMS = 16 * 32, /* of a sub-group: beside them a direct step is twice as
                           deep */
    MOST_BAND = 16 /* tiles (band_of) */
};

int64_t plan_tile_extent(const plan_kernel *k, const plan_blocks *b, int a)
{
    int64_t n = k->axis[a].extent;

    if (b->window)
        return n + plan_window_halo(k, b, a);
    if (plan_slides_in_area(b) && a == plan_last_axis(plan_block_rows(b)))
        return n + plan_slide_halo(k, b);
    return b->m_whole && a == plan_last_axis(b->m_in)
               ? plan_round_up(n, b->m_whole)
               : n;
}

int64_t plan_tile_points(const plan_kernel *k, const plan_blocks *b,
                         uint64_t in)
{
    int64_t n = 1;

    for (int a = 0; a < k->naxis; a++)
        if (in >> a & 1)
            n *= plan_tile_extent(k, b, a);
    return n;
}

/* ---- engines ---- */

/* A wide engine's tiles are large: of a product that has none for half of all
 * units, smaller ones are done sooner. */
static bool has_wide_tiles(const plan_kernel *k, const plan_blocks *b,
                           const device_desc *dev)
{
    double m = (double)plan_extent(k, plan_block_rows(b)),
           n = (double)plan_extent(k, plan_block_columns(b));

    return m >= DEVICE_WIDE_ROWS && n >= DEVICE_WIDE_COLUMNS &&
           device_fills_wide(dev, m * n * plan_points(k, b->rest));
}

static void choose_engine(const plan_kernel *k, plan_blocks *b,
                          const device_desc *dev)
{
    const plan_node *c = b->node;

    b->engine = PLAN_ENGINE_FMA;
    b->part = c->dtype;
    for (int i = 0; i < PLAN_ENGINE_COUNT; i++) {
        const plan_engine_info *e = &plan_engine_table[i];
        const plan_node *x = plan_narrow(b->x, e->part),
                        *y = plan_narrow(b->y, e->part);

        if (!e->m || e->needs & ~dev->features || e->sum != c->dtype || !x ||
            !y || !plan_may_multiply(c, e->part) ||
            (e->several && !has_wide_tiles(k, b, dev)))
            continue;
        b->engine = (plan_engine)i;
        b->part = e->part;
        b->x_trimmed = plan_is_trimmed(c, b->x);
        b->y_trimmed = plan_is_trimmed(c, b->y);
        b->x = x;
        b->y = y;
        return;
    }
}

/* ---- the tile of a group ---- */

/* An item's rows and columns: two sets of accumulators take half of its
 * registers at most. */
static int most_of_item(const device_desc *dev, int bytes)
{
    return 2 * 8 * 8 * bytes * 2 <= dev->registers   ? 8
           : 2 * 4 * 4 * bytes * 2 <= dev->registers ? 4
                                                     : 2;
}

/* Bytes of a row's padding keep the banks apart and the alignment. */
static int64_t padded(int64_t n, int64_t bytes)
{
    return n + ACCESS / bytes;
}

/* An area has the axis innermost along which it is read at once: for fma M or
 * N.  Matrices of 16 bits may be turned as they are read, others lie along K.
 */
static int64_t lay_out_side(const plan_blocks *b, int along, int64_t n,
                            int64_t *side, int64_t *deep, int64_t *panel)
{
    int64_t each = (int64_t)sd_dtype_bytes(b->part);
    bool rows =
        plan_has_matrices(b) && (b->node->over >> along & 1 || each != 2);
    const plan_engine_info *e = &plan_engine_table[b->engine];

    *panel = 0;
    if (b->direct)
        return 0;
    if (e->panels) {
        bool y = along == b->y_along && side == &b->y_n;

        *side = y ? plan_word(b) : e->depth;
        *deep = y ? e->items * plan_word(b) : 1;
        *panel = n * e->depth;
        return b->step * n * each;
    }
    if (plan_is_wide(b)) {
        *side = rows ? b->step : 1;
        *deep = rows ? 1 : PLAN_LINE / each;
        return n * PLAN_LINE;
    }
    *side = rows ? padded(b->step, each) : 1;
    *deep = rows ? 1 : padded(n, each);
    return (rows ? n * *side : b->step * *deep) * each;
}

/* Lays out areas; false: local memory does not hold them. */
static bool lay_out(plan_kernel *k, plan_blocks *b, const device_desc *dev)
{
    int64_t sum = (int64_t)sd_dtype_bytes(b->node->dtype), run;
    size_t most = plan_has_matrices(b)
                      ? SD_MAX(dev->local_bytes, dev->local_most)
                      : dev->local_bytes;
    bool slides = plan_slides_in_area(b);
    int64_t rows = b->window ? plan_window_rows(k, b)
                   : slides  ? plan_round_up(plan_slide_rows(k, b), PLAN_LINES)
                             : b->mt;
    size_t room, all;

    b->x_at = 0;
    b->y_at = plan_whole_lines((size_t)lay_out_side(
        b, b->x_along, rows, &b->x_m, &b->x_k, &b->x_panel));
    b->buffer = plan_whole_lines((size_t)lay_out_side(
        b, b->y_along, b->nt, &b->y_n, &b->y_k, &b->y_panel));
    if (slides)
        b->y_at *= 2;
    else if (!b->window)
        b->buffer += b->y_at;
    b->sum_at = 0;
    /* squares put neighbours of a row there, for which banks need no padding */
    b->sum_m = plan_engine_table[b->engine].panels ? b->nt : padded(b->nt, sum);
    run = (int64_t)b->along_m * b->near;
    b->pairs = slides ? 4
               : plan_is_wide(b) && 3 * b->buffer <= most
                   ? 3
                   : plan_areas_of_y(k, b);
    all = plan_areas_bytes(b);
    room = SD_MAX(all, (size_t)ROUND_BYTES);
    room = SD_MIN(room, most);
    b->round = b->mt;
    while (b->round > run && (size_t)(b->round * b->sum_m * sum) > room)
        b->round /= 2;
    k->local_bytes = SD_MAX(all, (size_t)(b->round * b->sum_m * sum));
    return k->local_bytes <= most;
}

/* Rows and columns that an item, or a sub-group, has at most and at least. */
typedef struct {
    int m, n, least_m, least_n;
} tile_limits;

/* Groups of `items`: their items, or sub-groups, along M and N, about as many
 * along each. */
static tile_limits share_out(plan_blocks *b, int items, const device_desc *dev)
{
    int bytes = (int)sd_dtype_bytes(b->node->dtype), most;

    b->along_m = b->along_n = 1;
    if (plan_is_wide(b)) {
        b->along_m = items / plan_engine_table[b->engine].items;
        most = plan_engine_table[b->engine].n;
        if (sd_dtype_bytes(b->part) == 1 &&
            plan_woven_rows(b, b->x_along) * plan_woven_rows(b, b->y_along) > 1)
            most /= 2; /* words are woven in registers */
        return (tile_limits){PLAN_SQUARE, most, PLAN_SQUARE,
                             DEVICE_WIDE_COLUMNS};
    }
    if (plan_has_matrices(b)) {
        int all = items / plan_engine_table[b->engine].items;

        while (2 * b->along_m * b->along_n <= all)
            *(b->along_m < b->along_n ? &b->along_m : &b->along_n) *= 2;
        /* bytes that are turned on their way need registers for that */
        most =
            sd_dtype_bytes(b->part) == 1 && !plan_engine_table[b->engine].panels
                ? MATRIX_MOST / 2
                : MATRIX_MOST;
        return (tile_limits){MATRIX_MOST, most, PLAN_SQUARE, PLAN_SQUARE};
    }
    while (4 * b->along_m * b->along_n <= items) {
        b->along_m *= 2;
        b->along_n *= 2;
    }
    most = most_of_item(dev, bytes);
    return (tile_limits){most, most, 2, 2};
}

/* Of small tiles a step is twice as deep, so that the loop has as many products
 * as one of larger tiles: where nothing slides, since a sliding one has whole
 * steps. */
static int direct_step(const plan_blocks *b)
{
    int step = PLAN_DIRECT_STEPS * plan_engine_table[b->engine].depth;

    return !b->slides && b->rows * b->vectors <= FEW_SUMS && b->kt > step
               ? 2 * step
               : step;
}

/* Positions of k in a pair of areas.  Where panels divide the last axis of K,
 * steps do. */
static int step_of(const plan_kernel *k, const plan_blocks *b,
                   const device_desc *dev)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];
    int64_t bytes = (int64_t)sd_dtype_bytes(b->part), last;
    int step;

    if (!e->m)
        return (int)SD_MAX(STEP_BYTES / bytes, LEAST_STEP);
    if (!e->panels)
        return (int)(MATRIX_STEP / bytes);
    if (b->direct)
        return direct_step(b);
    last = k->axis[plan_last_axis(b->node->over)].extent;
    for (step = PANEL_STEPS * e->depth; step > e->depth; step /= 2)
        if (plan_holds_step(k, b, step, dev) && b->kt > step / 2 &&
            (last % step == 0 || last % e->depth))
            break;
    return step;
}

/* Every item copies something of both operands, and the items of a group have
 * rows of the sums between them, whatever of a vector's length they copy and
 * use. */
static bool is_shared(const plan_kernel *k, const plan_blocks *b)
{
    return (b->direct ||
            ((b->window ||
              b->mt * b->step >= k->group * plan_woven_rows(b, b->x_along)) &&
             b->nt * b->step >= k->group * plan_woven_rows(b, b->y_along))) &&
           b->nt <= k->group;
}

/* Tiles of m rows and n columns an item; false: that is no tile, or local
 * memory or registers do not hold it. */
static bool set_tile(plan_kernel *k, plan_blocks *b, int m, int n,
                     const device_desc *dev)
{
    int bytes = (int)sd_dtype_bytes(b->node->dtype);
    bool panels = plan_engine_table[b->engine].panels;
    int most = b->window ? 8 : panels ? 4 : 2; /* times as long as wide */

    b->rows = m;
    b->vectors = n;
    b->mt = (int64_t)b->along_m * m;
    b->nt = (int64_t)b->along_n * n;
    b->near = plan_has_matrices(b) ? PLAN_SQUARE
                                   : SD_MIN(SD_MIN(m, n), ACCESS / bytes);
    k->large = panels;
    if (plan_has_matrices(b) && !plan_holds_squares(k, b, m, n, dev))
        return false;
    if (b->mt < plan_tile_points(k, b, b->m_in) ||
        b->nt < plan_tile_points(k, b, b->n_in) || b->mt > most * b->nt ||
        b->nt > most * b->mt)
        return false;
    b->step = step_of(k, b, dev);
    b->deep = b->direct && plan_reads_squares(k, b) &&
              plan_holds_squares(k, b, m, 2 * n, dev);
    while (!lay_out(k, b, dev) ||
           (panels && !b->direct && !plan_holds_step(k, b, b->step, dev))) {
        if (!panels || b->step == plan_engine_table[b->engine].depth)
            return false;
        b->step /= 2;
    }
    if (panels && !is_shared(k, b))
        return false;
    b->lead =
        panels && !b->direct ? (int)(plan_round_up(b->kt, b->step) - b->kt) : 0;
    return true;
}

static void set_group(plan_kernel *k, const plan_blocks *b)
{
    k->group =
        b->along_m * b->along_n * (plan_has_matrices(b) ? k->subgroup : 1);
}

/* The tile of least cost of groups of so many items, if it costs less than
 * *least; sub-groups whose operands lie in panels may also stand in fewer
 * columns. */
static void try_group(plan_kernel *k, plan_blocks *b, int items,
                      const device_desc *dev, plan_blocks *best, double *least)
{
    tile_limits of = share_out(b, items, dev);

    if (plan_has_matrices(b))
        k->subgroup = plan_engine_table[b->engine].items;
    set_group(k, b);
    do {
        for (int m = of.m; m >= of.least_m; m /= 2)
            for (int n = of.n; n >= of.least_n; n /= 2)
                if (set_tile(k, b, m, n, dev) &&
                    plan_tile_cost(k, b, dev) < *least) {
                    *least = plan_tile_cost(k, b, dev);
                    *best = *b;
                }
        b->along_m *= 2;
        b->along_n /= 2;
    } while (plan_engine_table[b->engine].panels && b->along_n);
}

/* The tile of least cost.  Large kernels leave a unit half its threads, which
 * one group of twice a crowd's items may have, and so may one of a wide engine:
 * then few columns, as features of an image, have twice as many rows to read
 * them.  may_slide: where x can. */
static bool choose_tile(plan_kernel *k, plan_blocks *b, bool may_slide,
                        const device_desc *dev)
{
    bool panels = plan_engine_table[b->engine].panels;
    bool window = !b->direct && plan_find_window(k, b);
    bool slide = may_slide && plan_find_slide(k, b);
    int largest = panels || plan_is_wide(b) ? 2 * dev->crowd : dev->crowd,
        smallest = panels ? dev->crowd / 2 : dev->crowd;
    plan_blocks best = {0};
    double least = 1e300;

    for (int w = window || slide; w >= 0; w--) {
        b->window = w && window;
        if (plan_is_wide(b))
            b->slides = w;
        for (int i = largest; i >= smallest; i /= 2)
            try_group(k, b, i, dev, &best, &least);
    }
    if (!best.rows)
        return false;
    *b = best;
    set_group(k, b);
    return set_tile(k, b, best.rows, best.vectors, dev);
}

/* ---- blocks ---- */

/* Matrix instructions are worth it for few rows, or columns, which read the
 * other operand as one does. */
static bool is_worth(const plan_kernel *k, const plan_blocks *b)
{
    int64_t m = plan_extent(k, plan_block_rows(b)),
            n = plan_extent(k, plan_block_columns(b)),
            depth = plan_extent(k, b->node->over);
    int least = plan_has_matrices(b) ? LEAST_ROWS : PLAN_LEAST_BLOCK;

    return SD_MIN(m, n) >= least && SD_MAX(m, n) >= PLAN_LEAST_BLOCK &&
           depth >= PLAN_LEAST_BLOCK &&
           (double)m * (double)n * (double)depth >= LEAST_WORK;
}

/* One chain of all that is summed. */
static void find_whole_depth(const plan_kernel *k, plan_blocks *b)
{
    b->k = __builtin_ctzll(b->node->over);
    b->k_in = b->node->over & (b->node->over - 1);
    b->kt = plan_extent(k, b->node->over);
}

/* Has an item registers for the places of what it copies?  Of those that
 * multiply by themselves not all chips' have. */
static bool keeps_places(const plan_blocks *b, const device_desc *dev)
{
    return plan_has_matrices(b) || dev->registers >= LARGE_FILE;
}

/* Of a wide engine a row of an image that nearly fills a tile is one, with what
 * a window reaches beyond it: cut, it would be too short for its engine. */
static bool fills_tile(const plan_kernel *k, const plan_blocks *b)
{
    return plan_is_wide(b) && !(b->m_in & (b->m_in - 1)) &&
           plan_extent(k, b->m_in) <= DEVICE_WIDE_ROWS - 2;
}

/* M and N, and what multiplies: where places are found before the loop, longer
 * rows of an image are taken whole, so that a tile has several. */
static bool choose_sides(const plan_kernel *k, int lane, const plan_node *c,
                         plan_blocks *b, const device_desc *dev)
{
    bool found = false;

    for (int64_t most = 4 * WHOLE_SIDE; most >= WHOLE_SIDE && !found;
         most /= 2) {
        *b = (plan_blocks){.node = c};
        if (!plan_find_sides(k, lane, most, b))
            return false;
        choose_engine(k, b, dev);
        found = most > 2 * WHOLE_SIDE
                    ? fills_tile(k, b)
                    : keeps_places(b, dev) || most == WHOLE_SIDE;
    }
    return found;
}

/* K, along which axis each operand lies, and whether blocks read both. */
static void find_ways(const plan_kernel *k, int lane, plan_blocks *b,
                      const device_desc *dev)
{
    int last_m = plan_last_axis(plan_block_rows(b)),
        last_k = plan_last_axis(b->node->over);

    if (plan_has_matrices(b))
        find_whole_depth(k, b);
    b->x_along = plan_lies_along(k, b->x, last_m, last_k) ? last_m : last_k;
    b->y_along = plan_lies_along(k, b->y, last_k, lane) ? last_k : lane;
    b->direct = dev->features & DEVICE_HAS_BLOCK2D && plan_find_reads(k, b);
}

/* Rows of a large image are taken whole, too, where x is then copied once for
 * all of a window. */
static void take_long_rows(const plan_kernel *k, int lane, plan_blocks *b,
                           const device_desc *dev)
{
    plan_blocks of = {.node = b->node};

    if (!plan_engine_table[b->engine].panels || b->direct ||
        plan_find_window(k, b) || !plan_find_sides(k, lane, LONG_ROWS, &of))
        return;
    choose_engine(k, &of, dev);
    find_ways(k, lane, &of, dev);
    if (!of.direct && plan_find_window(k, &of))
        *b = of;
}

/* Is what kernel k writes side by side along that axis? */
static bool writes_along(const plan_kernel *k, int axis)
{
    int64_t s;

    plan_for_each_node(n, k)
        if (n->kind == PN_STORE &&
            (!plan_expr_stride(n->off, axis, &s) || s != 1))
            return false;
    return true;
}

int plan_lane_of_wide(const plan_kernel *k, int lane, const device_desc *dev)
{
    const plan_node *c = plan_only_contract(k);
    plan_blocks b;
    int other;

    if (!(dev->features & DEVICE_HAS_WGMMA) || !c || !k->axis[lane].outer ||
        !choose_sides(k, lane, c, &b, dev) || writes_along(k, lane))
        return lane;
    other = plan_last_axis(plan_block_rows(&b));
    return writes_along(k, other) && choose_sides(k, other, c, &b, dev) &&
                   plan_is_wide(&b)
               ? other
               : lane;
}

static void cut_tiles(plan_kernel *k, const plan_blocks *b)
{
    for (int a = 0; a < k->nouter; a++)
        if (b->rest >> a & 1)
            plan_cut_axis(&k->axis[a], 1);
    plan_cut_axis(&k->axis[b->m], b->mt / plan_tile_points(k, b, b->m_in));
    plan_cut_axis(&k->axis[b->n], b->nt / plan_tile_points(k, b, b->n_in));
}

/* Where no tile is read by blocks one may be copied. */
static bool find_tile(plan_kernel *k, plan_blocks *b, bool may_slide,
                      const device_desc *dev)
{
    if (choose_tile(k, b, may_slide, dev))
        return true;
    if (!b->direct)
        return false;
    plan_give_up_reads(b);
    return choose_tile(k, b, may_slide, dev);
}

bool plan_stands_in_squares(const plan_kernel *k, const plan_blocks *b)
{
    int rows = k->subgroup / PLAN_ABREAST;

    return !plan_has_matrices(b) && rows && k->subgroup % PLAN_ABREAST == 0 &&
           b->along_n % PLAN_ABREAST == 0 && b->along_m % rows == 0 &&
           b->step % PLAN_EARLY == 0;
}

/* Items of large tiles are too few to do something else while one waits for
 * local memory, which a square of them asks for the fewest lines.  Smaller
 * tiles have more of them, whose loops are unrolled as they are. */
static bool reads_early(const plan_kernel *k, const plan_blocks *b,
                        const device_desc *dev)
{
    return dev->registers >= LARGE_FILE && b->node->dtype == SD_F32 &&
           b->rows * b->vectors >= EARLY_SUMS && plan_stands_in_squares(k, b);
}

/* Large products whose tiles run row by row read all of the columns' operand
 * for each few rows of tiles that the units have at once.  In bands these are
 * about as many rows as columns. */
static int band_of(const plan_kernel *k, const plan_blocks *b,
                   const device_desc *dev)
{
    int64_t rows = plan_axis_tiles(&k->axis[b->m]),
            columns = plan_axis_tiles(&k->axis[b->n]);
    int band = MOST_BAND;

    if (!plan_is_wide(b) || b->n < b->m || b->n != k->nouter - 1 ||
        columns * columns < dev->units || rows * columns < 2 * dev->units)
        return 1;
    for (int a = b->m + 1; a < b->n; a++)
        if (k->axis[a].grid)
            return 1;
    while (rows % band)
        band /= 2;
    return band;
}

/* An x slides where it is copied by itself, which is known at last. */
static bool find_blocks(plan_kernel *k, int lane, bool may_slide,
                        const device_desc *dev)
{
    const plan_node *c = plan_only_contract(k);
    plan_blocks *b = sd_arena_new(k->arena, plan_blocks);
    const plan_kernel was = *k;

    if (!dev->access || !c || !plan_has_blocks_of(c->dtype) ||
        !k->axis[lane].outer)
        return false;
    if (!choose_sides(k, lane, c, b, dev) || !is_worth(k, b))
        return false;
    find_ways(k, lane, b, dev);
    take_long_rows(k, lane, b, dev);
    if (!find_tile(k, b, may_slide, dev)) {
        *k = was;
        return false;
    }
    cut_tiles(k, b);
    plan_choose_block_copies(k, b, lane, dev);
    if (!b->direct && keeps_places(b, dev)) {
        plan_find_plain(k, b);
        plan_find_loose(k, b, dev);
    }
    plan_copy_by_itself(k, b, dev);
    if (plan_slides_in_area(b) && !b->by_itself) {
        *k = was;
        return find_blocks(k, lane, false, dev);
    }
    b->early = reads_early(k, b, dev);
    b->band = band_of(k, b, dev);
    return true;
}

bool plan_find_group_blocks(plan_kernel *k, int lane, const device_desc *dev)
{
    return find_blocks(k, lane, true, dev);
}
