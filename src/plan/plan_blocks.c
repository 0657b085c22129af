/* Products in blocks (ADR 19): whether a kernel's CONTRACT is done so on the
 * host, and how large the blocks are.
 *
 * An operand's element is used N (or M) times.  Read where it lies, a column of
 * a large matrix meets a page and a set of the cache anew at every step;
 * written once into a block, in the order of the innermost loop, it comes from
 * the second level of cache, and y's panel from the first.  A block of K
 * positions is so long that accumulators are seldom reloaded, and so short that
 * a panel of y and one of x fit the first level together. */
#include "plan_blocks.h"
#include "plan_mapping.h"

enum {
    LEAST_EXTENT = 6,   /* of M and K: below, copies cost what they save */
    LEAST_WORK = 4096,  /* multiplications */
    LEAST_TILE = 48,    /* nor are tiles made smaller than this for threads */
    FEW_ROWS = 6, /* of a register tile, where more would be in vain */
    COPIES = 28, /* rows of a tile whose products take as long as its copies of
                  * y, where there are no engines */
    MOST_ODD = 13, /* vectors of N, of which one in vain is much */
    /* multiplications that are worth a tile of their own */
    TILE_WORK = 1 << 19,
    LEAST_TILED = 6 << 10, /* words times rows times columns */
    TILES_WORK = 1 << 21, /* of an engine with tiles, */
    LARGE_TILE = 512, /* which multiplies so fast that copies of 512 rows and
                       * columns are better where the second level of cache */
    LARGE_CACHE = 2 << 20, /* holds them and their sums; */
    CHAIN_WORDS = 128, /* of K in its chains, and beside smaller tiles */
    LONG_CHAIN_WORDS = 256,
    AHEAD = 16 /* rows of an operand: one is a kilobyte in a page of its own,
                * too short for what the processor foresees */
};

/* ---- the order of the sum ---- */

/* One chain of up to LONGEST terms, else of CHAIN: sums round less than in one
 * chain, blocks of K end where chains end, and a device may share a long sum
 * among groups by its chains. */
enum { CHAIN = 256, LONGEST = 320 };

static void cut_chain(const plan_kernel *k, plan_node *n)
{
    int64_t inner = 1;

    for (int a = k->naxis - 1; a >= 0; a--) {
        if (!(n->over >> a & 1))
            continue;
        if (inner * k->axis[a].extent > LONGEST) {
            n->order.cut = a;
            n->order.chunk = SD_MAX(CHAIN / inner, 1);
            return;
        }
        inner *= k->axis[a].extent;
    }
}

void plan_cut_chains(plan_kernel *k)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_CONTRACT)
            cut_chain(k, n);
}

/* ---- engines ---- */

/* Of an engine with tiles: as many rows as two tiles of sums have, or one, and
 * few in vain, as its time is that of a tile's rows. */
static int rows_of_tiles(int64_t m)
{
    const int64_t most = 2 * PLAN_SQUARE, n = (m + most - 1) / most;
    int64_t rows = (m + n - 1) / n;

    return (int)(rows > PLAN_SQUARE ? plan_round_up(rows, 2) : rows);
}

/* Words of y are put together as they are read, where they lie in rows of which
 * a word has some, and vectors begin where those of panels do. */
static bool weaves_at_once(const plan_kernel *k, const plan_blocks *b)
{
    int depth = plan_engine_table[b->engine].depth;
    int last = plan_last_axis(plan_block_chain(b));

    return b->y_along == b->n && !b->n_in &&
           k->axis[last].extent % depth == 0 &&
           (last != b->k || b->chunk % depth == 0);
}

/* Elements of narrow x that are copied at once: as many as are 64 bytes, where
 * it is one load along K, whose guards are the same for all of them, and
 * nothing is left over. */
static int copied_at_once(const plan_kernel *k, const plan_blocks *b)
{
    enum { BYTES = 64 };
    const plan_axis *x = &k->axis[b->x_along];
    int wide = BYTES / (int)sd_dtype_bytes(b->x->dtype);
    int64_t stride, chunk = b->x_along == b->k ? b->chunk : 0;

    if (!(b->node->over >> b->x_along & 1) || b->x->kind != PN_LOAD ||
        !plan_expr_stride(b->x->off, b->x_along, &stride) || stride != 1)
        return k->lanes;
    for (int i = 0; i < b->x->nguard; i++)
        if (b->x->guard[i].e->varies >> b->x_along & 1)
            return k->lanes;
    while (wide > k->lanes && (x->extent % wide || chunk % wide))
        wide /= 2;
    return wide;
}

/* Tiles want K to fill half of their rows, and more work than it takes to
 * configure them. */
static bool fills_tiles(const plan_kernel *k, const plan_blocks *b,
                        const plan_engine_info *e)
{
    int64_t words = plan_extent(k, b->node->over) / e->depth;

    return words >= PLAN_SQUARE / 2 &&
           words * plan_extent(k, plan_block_rows(b)) *
                   plan_extent(k, plan_block_columns(b)) >=
               LEAST_TILED;
}

static void choose_engine(const plan_kernel *k, plan_blocks *b,
                          const device_desc *dev)
{
    const plan_node *c = b->node;

    b->part = c->dtype;
    b->engine = PLAN_ENGINE_FMA;
    for (int i = 0; i < PLAN_ENGINE_FMA; i++) {
        const plan_engine_info *e = &plan_engine_table[i];
        const plan_node *x = plan_taken_by(e, b->x),
                        *y = plan_taken_by(e, b->y);

        if (e->needs & ~dev->features || !x || !y ||
            sd_dtype_table[c->dtype].bits != 32 ||
            (e->sum &&
             (e->sum != c->dtype || !plan_may_multiply(c, e->part))) ||
            (e->tiles && !fills_tiles(k, b, e)))
            continue;
        b->engine = (plan_engine)i;
        b->x = x;
        b->y = y;
        b->part = e->sum ? e->part : e->bits == 8 ? SD_S8 : SD_S16;
        b->flip = !e->tiles && b->part == SD_S8 && x->dtype == y->dtype;
        return;
    }
}

/* ---- blocks ---- */

static uint64_t outer_axes(const plan_kernel *k)
{
    return (1ull << k->nouter) - 1;
}

/* The one sum of the kernel, where it is a CONTRACT in a stage of its own; or
 * NULL. */
const plan_node *plan_only_contract(const plan_kernel *k)
{
    const plan_node *c = NULL;

    plan_for_each_node(n, k) {
        if (n->kind == PN_SCAN || n->kind == PN_SCATTER ||
            n->kind == PN_REDUCE || (n->kind == PN_CONTRACT && c))
            return NULL;
        if (n->kind == PN_CONTRACT)
            c = n;
    }
    if (!c)
        return NULL;
    for (int i = 0; i < k->nstage; i++)
        if (k->stage[i].axes != (i == c->stage ? c->over : 0))
            return NULL;
    return c;
}

bool plan_has_blocks_of(sd_dtype t)
{
    sd_kind kind = sd_dtype_kind(t);

    return (kind == SD_K_FLOAT || kind == SD_K_SINT || kind == SD_K_UINT) &&
           sd_dtype_table[t].bits >= 32;
}

/* Of the axes in `left` the last ones, while they fit a tile of `most` twice:
 * the first of them is cut, the others, *in, are whole. */
static int axes_of_tile(const plan_kernel *k, uint64_t left, int64_t most,
                        uint64_t *in)
{
    for (;;) {
        int a = plan_last_axis(left);

        left &= ~(1ull << a);
        if (!left || plan_extent(k, *in | 1ull << a) > most / 2)
            return a;
        *in |= 1ull << a;
    }
}

/* M: the axes on which x varies and y does not. */
static bool find_rows(const plan_kernel *k, int64_t most, plan_blocks *b)
{
    uint64_t alone = b->x->varies & ~b->y->varies & outer_axes(k);

    if (alone)
        b->m = axes_of_tile(k, alone, most, &b->m_in);
    return alone != 0;
}

/* N: LANE, and the axes before it on which y varies and x does not.  The rows
 * of a small image fill few vectors each; and what is copied of x is used for
 * the columns of a tile only. */
static void find_columns(const plan_kernel *k, int lane, int64_t most,
                         plan_blocks *b)
{
    uint64_t alone = b->y->varies & ~b->x->varies & outer_axes(k);

    b->n = lane;
    if (plan_last_axis(alone) == lane)
        b->n = axes_of_tile(k, alone, most, &b->n_in);
}

/* A chain, of which k is the axis that is cut, or the first. */
static void find_depth(const plan_kernel *k, plan_blocks *b)
{
    const plan_node *c = b->node;

    b->k = c->order.chunk ? c->order.cut : __builtin_ctzll(c->over);
    b->k_in = c->over >> b->k >> 1 << 1 << b->k;
    b->chunk = c->order.chunk ? c->order.chunk : k->axis[b->k].extent;
    b->kt = b->chunk * plan_extent(k, b->k_in);
}

/* Loads that n is made of, and how many of them lie along axis. */
static void count_along(const plan_node *n, int axis, int depth, int *loads,
                        int *along)
{
    int64_t s;

    if (n->kind == PN_LOAD && (n->varies >> axis & 1)) {
        ++*loads;
        *along += plan_expr_stride(n->off, axis, &s) && (s == 1 || s == -1);
    }
    for (int i = 0; i < n->narg && depth; i++)
        count_along(n->arg[i], axis, depth - 1, loads, along);
}

/* Are vectors of n better read along axis a than along b?  Where both lie so,
 * the longer one fills more of them. */
bool plan_lies_along(const plan_kernel *k, const plan_node *n, int a, int b)
{
    enum { DEPTH = 8 };
    int loads = 0, on_a = 0, on_b = 0;

    count_along(n, a, DEPTH, &loads, &on_a);
    count_along(n, b, DEPTH, &loads, &on_b);
    return on_a == on_b ? k->axis[a].extent > k->axis[b].extent : on_a > on_b;
}

/* Rows of a register tile whose accumulators fill the registers that a row of y
 * and an element of x leave. */
static int most_rows(const plan_blocks *b, int lanes, int vectors)
{
    int sums = lanes == 16 ? 24 : 12;

    return sums * 4 / (int)sd_dtype_bytes(b->node->dtype) / vectors;
}

/* Do a panel of y and one of x fit the first level of cache together, with so
 * many vectors? */
static bool fits_first(const plan_blocks *b, int vectors,
                       const device_desc *dev)
{
    int64_t side = vectors * dev->lanes + most_rows(b, dev->lanes, vectors);

    return (size_t)(plan_chain_words(b, b->kt) * side) *
               sd_dtype_bytes(b->node->dtype) <=
           dev->local_bytes;
}

/* Vectors of a register tile.  Two need less of x than one, but the last of an
 * odd number is then computed in vain; and a panel of y that does not fit comes
 * from the second level for each tile of rows, where there are several: 1,024
 * cubed in f32 runs at 101 GFLOP/s on a Zen 4, which has 32 KB, with 12 rows of
 * two vectors, and at 108 with 24 rows of one. */
static int tile_vectors(const plan_blocks *b, int64_t m, int64_t n,
                        const device_desc *dev)
{
    int64_t all = (n + dev->lanes - 1) / dev->lanes;

    if (sd_dtype_bytes(b->node->dtype) > 4 || (all % 2 && all <= MOST_ODD))
        return 1;
    return m <= most_rows(b, dev->lanes, 1) || fits_first(b, 2, dev) ? 2 : 1;
}

/* Rows of a register tile, few of which are computed in vain. */
static int tile_rows(const plan_blocks *b, int64_t m, int lanes)
{
    int vectors = b->vectors, most = most_rows(b, lanes, vectors), best = most;
    int64_t least = INT64_MAX;

    for (int r = most; r >= SD_MAX(SD_MIN(most / 2, FEW_ROWS), 1); r--) {
        /* a row of y is read once a tile: small tiles read it more often */
        int64_t cost = (m + r - 1) / r * (2 * r + vectors);

        if (cost < least) {
            least = cost;
            best = r;
        }
    }
    return best;
}

/* Equal tiles of an axis whose positions are `each` rows or columns, at most
 * `most` positions; whole register tiles of `unit`, or as few in vain as may
 * be.
 */
static void cut_evenly(plan_axis *x, int64_t most, int64_t each, int64_t unit)
{
    int64_t n = (x->extent + most - 1) / most, best = most, least = INT64_MAX;

    if (each == 1) {
        plan_cut_axis(x, plan_round_up((x->extent + n - 1) / n, unit));
        return;
    }
    for (int64_t t = most; t >= (x->extent + n - 1) / n; t--) {
        int64_t left = x->extent % t * each;
        int64_t cost = x->extent / t * (plan_round_up(t * each, unit) + COPIES);

        if (left)
            cost += plan_round_up(left, unit) + COPIES;

        if (cost < least) {
            least = cost;
            best = t;
        }
    }
    plan_cut_axis(x, best);
}

/* A tile's rows and columns, at most.  Of x the second level of cache holds
 * what a chain has, twice; panels of y come from any level, one after the
 * other, and x is copied once for all columns. */
static void limit_tile(const plan_blocks *b, const device_desc *dev,
                       int64_t *rows, int64_t *columns)
{
    size_t row =
        (size_t)plan_chain_words(b, b->kt) * sd_dtype_bytes(b->node->dtype);

    *rows = *columns = PLAN_BLOCK_SIDE;
    if (plan_engine_table[b->engine].tiles) {
        if (dev->cache_bytes >= LARGE_CACHE)
            *rows = *columns = LARGE_TILE;
        return;
    }
    if (2 * LARGE_TILE * row <= dev->cache_bytes)
        *rows = LARGE_TILE;
    if (!b->n_in)
        *columns = 2 * LARGE_TILE;
}

/* Are all threads busy while tiles are left, but for a tenth of the time? */
static bool keeps_busy(int64_t tiles, int64_t threads)
{
    int64_t turns = (tiles + threads - 1) / threads;

    return 10 * (turns * threads - tiles) <= turns * threads;
}

/* Tiles: large ones copy less, but all threads should have some. */
static void cut_tiles(plan_kernel *k, const plan_blocks *b,
                      const device_desc *dev)
{
    bool tiles = plan_engine_table[b->engine].tiles;
    int64_t least = tiles ? TILES_WORK : TILE_WORK, most_m, most_n;
    plan_axis *m = &k->axis[b->m], *n = &k->axis[b->n];
    int64_t wide = b->vectors * k->lanes, depth = plan_extent(k, b->node->over);
    int64_t each_m = plan_extent(k, b->m_in), each_n = plan_extent(k, b->n_in);
    int64_t mt, nt;

    limit_tile(b, dev, &most_m, &most_n);
    mt = SD_MIN(m->extent, SD_MAX(most_m / each_m, 1));
    nt = SD_MIN(n->extent, SD_MAX(most_n / each_n, 1));
    for (;;) {
        int64_t rows = mt * each_m, columns = nt * each_n;
        bool usual = SD_MAX(rows, columns) <= PLAN_BLOCK_SIDE;
        int64_t all = plan_extent(k, b->rest) * ((m->extent + mt - 1) / mt) *
                      ((n->extent + nt - 1) / nt);
        bool by_rows = mt > 1 && rows >= 2 * LEAST_TILE;
        bool by_columns = nt > 1 && columns >= 2 * SD_MAX(wide, LEAST_TILE);

        if ((all >= 2 * (int64_t)dev->units &&
             (tiles || usual || keeps_busy(all, dev->units))) ||
            rows * columns * depth < 2 * least || (!by_rows && !by_columns))
            break;
        if (by_rows &&
            (rows > PLAN_BLOCK_SIDE || rows >= columns || !by_columns))
            mt = (mt + 1) / 2;
        else
            nt = (nt + 1) / 2;
    }
    cut_evenly(m, mt, each_m, b->rows);
    cut_evenly(n, nt, each_n, wide);
    for (int a = 0; a < k->nouter; a++)
        if (b->rest >> a & 1)
            plan_cut_axis(&k->axis[a], 1);
}

/* An engine with tiles has its sums in few of them, so they go to memory and
 * come back at each chain: seldom, where the tile leaves room for long ones. */
static void lengthen_chain(const plan_kernel *k, plan_blocks *b)
{
    int64_t each = plan_extent(k, b->k_in), all = k->axis[b->k].extent;
    int64_t m = k->axis[b->m].tile * plan_extent(k, b->m_in);
    int64_t n = k->axis[b->n].tile * plan_extent(k, b->n_in);
    int64_t words = m * n > 2 * PLAN_BLOCK_SIDE * PLAN_BLOCK_SIDE
                        ? CHAIN_WORDS
                        : LONG_CHAIN_WORDS;
    int64_t most = words * plan_engine_table[b->engine].depth;

    if (b->chunk < all)
        b->chunk = SD_MIN(SD_MAX(most / each, b->chunk), all);
    b->kt = b->chunk * each;
}

int64_t plan_chain_words(const plan_blocks *b, int64_t depth)
{
    const plan_engine_info *e = &plan_engine_table[b->engine];

    return plan_round_up((depth + e->depth - 1) / e->depth,
                         e->tiles ? PLAN_SQUARE : 1);
}

/* Rows of both operands as they are copied, before they are woven; the one
 * along k has its words' place to itself.  Returns the bytes of the stage. */
static size_t lay_out_stage(const plan_kernel *k, plan_blocks *b, int64_t mt,
                            int64_t nt)
{
    int64_t w = k->lanes, depth = plan_engine_table[b->engine].depth;
    int64_t words = plan_chain_words(b, b->kt),
            along = plan_round_up(words, w) + w;
    int64_t x = 0, y;

    b->x_row = along * depth;
    b->y_row = along * depth;
    y = b->weaves ? 0 : nt * b->y_row;
    if (!(b->node->over >> b->x_along & 1)) {
        b->x_row = plan_round_up(mt, w) + w;
        x = words * depth * b->x_row;
    }
    if (!b->weaves && !(b->node->over >> b->y_along & 1)) {
        b->y_row = nt + w;
        y = (words + 1) * depth * b->y_row; /* zeros after the last of k */
    }
    return plan_whole_lines((size_t)(SD_MAX(x, y) + w) *
                            sd_dtype_bytes(b->part));
}

/* Rows of x and of the sums do not lie powers of two apart: a register tile
 * reads many of them at once, and the cache has few places for such.  A vector
 * may be written beyond the end of what it is part of, by less than its length.
 */
static void lay_out(plan_kernel *k, plan_blocks *b)
{
    int64_t kt = plan_chain_words(b, b->kt);
    bool tiles = plan_engine_table[b->engine].tiles;
    bool rows = b->n_in && b->engine == PLAN_ENGINE_FMA;
    size_t each = sd_dtype_bytes(b->node->dtype);
    int64_t w = k->lanes, wide = b->vectors * w;
    int64_t mt =
        plan_round_up(k->axis[b->m].tile * plan_extent(k, b->m_in), b->rows);
    int64_t nt = plan_round_up(k->axis[b->n].tile * plan_extent(k, b->n_in),
                               wide),
            x, y;
    bool by_rows = tiles || b->node->over >> b->x_along & 1;

    b->x_m = by_rows ? plan_round_up(kt, w) + w : 1;
    b->x_k = by_rows ? 1 : plan_round_up(mt, w) + w;
    b->y_k = rows ? nt + w : wide;
    b->y_panel = rows ? wide : kt * wide + w;
    b->sum_m = nt + w;
    x = by_rows ? plan_round_up(mt, tiles ? w : 1) * b->x_m : kt * b->x_k;
    b->x_at = 0;
    b->y_at = plan_whole_lines((size_t)x * each);
    y = rows ? kt * b->y_k : nt / wide * b->y_panel;
    b->sum_at = b->y_at + plan_whole_lines((size_t)(y + w * b->y_k) * each);
    b->stage_at = b->sum_at + plan_whole_lines((size_t)(mt * b->sum_m) * each);
    k->local_bytes = b->stage_at;
    if (b->engine != PLAN_ENGINE_FMA)
        k->local_bytes += lay_out_stage(k, b, mt, nt);
}

bool plan_find_sides(const plan_kernel *k, int lane, int64_t most,
                     plan_blocks *b)
{
    const plan_node *c = b->node;

    b->y = c->arg[c->arg[1]->varies >> lane & 1];
    b->x = c->arg[b->y == c->arg[0]];
    if ((b->x->varies >> lane & 1) || !(b->y->varies >> lane & 1) ||
        !find_rows(k, most, b))
        return false;
    find_columns(k, lane, most, b);
    find_depth(k, b);
    b->rest = outer_axes(k) & ~(plan_block_rows(b) | plan_block_columns(b));
    return true;
}

bool plan_find_blocks(plan_kernel *k, int lane, const device_desc *dev)
{
    const plan_node *c = plan_only_contract(k);
    plan_blocks *b = sd_arena_new(k->arena, plan_blocks);
    int64_t m, n, depth;
    int last_m, last_k;

    if (!c || !plan_has_blocks_of(c->dtype) || !k->axis[lane].outer)
        return false;
    b->node = c;
    if (!plan_find_sides(k, lane, PLAN_BLOCK_SIDE, b))
        return false;
    m = plan_extent(k, plan_block_rows(b));
    n = plan_extent(k, plan_block_columns(b));
    depth = plan_extent(k, c->over);
    if (m < LEAST_EXTENT || depth < LEAST_EXTENT || n < dev->lanes / 2 ||
        (double)m * (double)n * (double)depth < LEAST_WORK)
        return false;
    last_m = plan_last_axis(plan_block_rows(b));
    last_k = plan_last_axis(c->over);
    b->x_along = plan_lies_along(k, b->x, last_m, last_k) ? last_m : last_k;
    b->y_along = plan_lies_along(k, b->y, last_k, lane) ? last_k : lane;
    choose_engine(k, b, dev);
    b->vectors = tile_vectors(b, m, n, dev);
    b->rows = plan_engine_table[b->engine].tiles ? rows_of_tiles(m)
                                                 : tile_rows(b, m, dev->lanes);
    b->ahead = dev->lanes == 8 ? AHEAD : 0; /* elsewhere not measured */
    cut_tiles(k, b, dev);
    if (plan_engine_table[b->engine].tiles) {
        lengthen_chain(k, b);
        b->weaves = weaves_at_once(k, b);
        b->x_wide = copied_at_once(k, b);
    }
    lay_out(k, b);
    k->blocks = b;
    return true;
}
