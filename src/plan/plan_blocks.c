/* Products in blocks (ADR 19): whether a kernel's CONTRACT is done so on the
 * host, and how large the blocks are.
 *
 * An operand's element is used N (or M) times.  Read where it lies, a column of
 * a large matrix meets a page and a set of the cache anew at every step;
 * written once into a block, in the order of the innermost loop, it comes from
 * the second level of cache, and y's panel from the first.  A block of K
 * positions is so long that accumulators are seldom reloaded, and so short that
 * a panel of y and one of x fit the first level together. */
#include "plan_room.h"

enum {
    LEAST_EXTENT = 6,   /* of M and K: below, copies cost what they save */
    LEAST_WORK = 4096,  /* multiplications */
    TILE = 256,         /* positions of M and of N in a tile, at most */
    LEAST_TILE = 48,    /* nor are tiles made smaller than this for threads */
    TILE_WORK = 1 << 19 /* multiplications that are worth a tile of their own */
};

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static size_t round_bytes(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

/* ---- the order of the sum ---- */

/* One chain of up to LONGEST terms, else of CHAIN: sums round less than in one
 * chain, blocks of K end where chains end, and a device may share a long sum
 * among groups by its chains. */
enum { CHAIN = 256, LONGEST = 384 };

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
    for (int i = 0; i < k->nnode; i++)
        if (k->node[i]->kind == PN_CONTRACT)
            cut_chain(k, k->node[i]);
}

/* ---- blocks ---- */

/* The one sum of the kernel, where it is a CONTRACT over a single axis in a
 * stage of its own; or NULL. */
static const plan_node *only_contract(const plan_kernel *k)
{
    const plan_node *c = NULL;

    for (int i = 0; i < k->nnode; i++) {
        const plan_node *n = k->node[i];

        if (n->kind == PN_SCAN || n->kind == PN_SCATTER ||
            n->kind == PN_REDUCE || (n->kind == PN_CONTRACT && c))
            return NULL;
        if (n->kind == PN_CONTRACT)
            c = n;
    }
    if (!c || c->over & (c->over - 1))
        return NULL;
    for (int i = 0; i < k->nstage; i++)
        if (k->stage[i].axes != (i == c->stage ? c->over : 0))
            return NULL;
    return c;
}

static bool is_type(sd_dtype t)
{
    sd_kind kind = sd_dtype_kind(t);

    return (kind == SD_K_FLOAT || kind == SD_K_SINT || kind == SD_K_UINT) &&
           sd_dtype_table[t].bits >= 32;
}

/* The longest outer axis on which x varies and y does not, or -1. */
static int row_axis_of(const plan_kernel *k, const plan_node *x,
                       const plan_node *y)
{
    int best = -1;

    for (int a = 0; a < k->nouter; a++)
        if ((x->varies >> a & 1) && !(y->varies >> a & 1) &&
            (best < 0 || k->axis[a].extent > k->axis[best].extent))
            best = a;
    return best;
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

/* Are vectors of n better read along axis a than along b? */
static bool lies_along(const plan_node *n, int a, int b)
{
    enum { DEPTH = 8 };
    int loads = 0, on_a = 0, on_b = 0;

    count_along(n, a, DEPTH, &loads, &on_a);
    count_along(n, b, DEPTH, &loads, &on_b);
    return on_a > on_b;
}

/* Rows of a register tile: as many accumulators as there are registers beside
 * a row of y and an element of x, and few rows that are computed in vain. */
static int tile_rows(int64_t m, int vectors, int lanes, int per_vector)
{
    int most = ((lanes == 16 ? 28 : 14) / per_vector - vectors) / vectors;
    int best = most;
    int64_t least = INT64_MAX;

    most = SD_MIN(SD_MAX(most, 1), 12);
    for (int r = most; r >= SD_MAX(most / 2, 1); r--) {
        /* a row of y is read once a tile: small tiles read it more often */
        int64_t cost = (m + r - 1) / r * (2 * r + vectors);

        if (cost < least) {
            least = cost;
            best = r;
        }
    }
    return best;
}

/* Tiles: large ones copy less, but all threads should have some. */
static void cut_tiles(plan_kernel *k, const plan_blocks *b, int units)
{
    plan_axis *m = &k->axis[b->m], *n = &k->axis[b->n];
    int64_t wide = b->vectors * k->lanes, depth = k->axis[b->k].extent;
    int64_t mt = SD_MIN(m->extent, TILE), nt = SD_MIN(n->extent, TILE);
    int64_t rest = 1;

    for (int a = 0; a < k->nouter; a++)
        if (b->rest >> a & 1) {
            rest *= k->axis[a].extent;
            plan_cut_axis(&k->axis[a], 1);
        }
    for (;;) {
        int64_t all =
            rest * ((m->extent + mt - 1) / mt) * ((n->extent + nt - 1) / nt);

        if (all >= 2 * (int64_t)units || mt * nt * depth < 2 * TILE_WORK)
            break;
        if (mt >= nt && mt >= 2 * LEAST_TILE)
            mt = (mt + 1) / 2;
        else if (nt >= 2 * SD_MAX(wide, LEAST_TILE))
            nt = (nt + 1) / 2;
        else if (mt >= 2 * LEAST_TILE)
            mt = (mt + 1) / 2;
        else
            break;
    }
    /* equal tiles, whole register tiles each */
    mt = (m->extent + mt - 1) / mt;
    nt = (n->extent + nt - 1) / nt;
    plan_cut_axis(m, round_up((m->extent + mt - 1) / mt, b->rows));
    plan_cut_axis(n, round_up((n->extent + nt - 1) / nt, wide));
}

/* Rows of x and of the sums do not lie powers of two apart: a register tile
 * reads many of them at once, and the cache has few places for such. */
static void lay_out(plan_kernel *k, plan_blocks *b)
{
    size_t each = sd_dtype_bytes(b->node->dtype);
    int64_t w = k->lanes, wide = b->vectors * w;
    int64_t mt = round_up(k->axis[b->m].tile, b->rows);
    int64_t nt = round_up(k->axis[b->n].tile, wide);
    int64_t kt = round_up(b->kt, w);
    bool by_rows = b->x_along == b->k;

    b->x_m = by_rows ? kt + w : 1;
    b->x_k = by_rows ? 1 : round_up(mt, w) + w;
    b->y_panel = kt * wide + w;
    b->sum_m = nt + w;
    b->x_at = 0;
    b->y_at = round_bytes((size_t)(by_rows ? mt * b->x_m : kt * b->x_k) * each);
    b->sum_at = b->y_at + round_bytes((size_t)(nt / wide * b->y_panel) * each);
    k->local_bytes = b->sum_at + round_bytes((size_t)(mt * b->sum_m) * each);
}

bool plan_find_blocks(plan_kernel *k, int lane, const device_desc *dev)
{
    const plan_node *c = only_contract(k);
    plan_blocks *b = sd_arena_new(k->arena, plan_blocks);
    int64_t m, n, depth;
    int per_vector;

    if (!c || !is_type(c->dtype) || !k->axis[lane].outer)
        return false;
    b->node = c;
    b->y = c->arg[c->arg[1]->varies >> lane & 1];
    b->x = c->arg[b->y == c->arg[0]];
    b->n = lane;
    b->k = __builtin_ctzll(c->over);
    b->m = row_axis_of(k, b->x, b->y);
    if (b->m < 0 || (b->x->varies >> lane & 1) || !(b->y->varies >> lane & 1))
        return false;
    m = k->axis[b->m].extent;
    n = k->axis[lane].extent;
    depth = k->axis[b->k].extent;
    if (m < LEAST_EXTENT || depth < LEAST_EXTENT || n < dev->lanes / 2 ||
        (double)m * (double)n * (double)depth < LEAST_WORK)
        return false;
    b->rest = ((1ull << k->nouter) - 1) & ~(1ull << b->m) & ~(1ull << lane);
    per_vector = (int)sd_dtype_bytes(c->dtype) / 4;
    b->vectors = per_vector == 1 && n > dev->lanes ? 2 : 1;
    b->rows = tile_rows(m, b->vectors, dev->lanes, per_vector);
    b->kt = c->order.chunk ? c->order.chunk : depth;
    b->x_along = lies_along(b->x, b->m, b->k) ? b->m : b->k;
    b->y_along = lies_along(b->y, b->k, lane) ? b->k : lane;
    cut_tiles(k, b, dev->units);
    lay_out(k, b);
    k->blocks = b;
    return true;
}
