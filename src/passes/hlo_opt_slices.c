/* Large arrays that stand between small ones are computed in slices, in a
 * loop: the scores of attention [B, H, T, T] between q, k, v and the result,
 * the logits of a large vocabulary between activations and a loss.
 *
 * The group.  A large product of small operands, or a large operand of a
 * product, is the seed.  One of its dimensions, the axis, is followed through
 * elementwise operations, broadcasts, transposes, reshapes that keep it,
 * reductions over others, and products of which it is a batch or free
 * dimension: all large values that it reaches are members, and the small ones
 * that are reduced from them, and the short chains of small ones that lead
 * back into the group, as a row's maximum does.  Other operands are the loop's
 * inputs: a turn reads a slice of those that have the axis, the others whole.
 * What is cheap to make from nothing (a causal mask of iotas) is made in the
 * turn.
 *
 * The loops.  A turn computes the members for R positions of the axis, writes
 * what leaves the group in its place, and adds what sums over the axis to what
 * is there: sums of narrow floats in f32, rounded once at the end.  What goes
 * through an instruction outside and comes back is for a second loop, which
 * makes large members again, instead of reading them, if that takes short
 * products: so a gradient has q, k and the numbers of a row where it kept
 * probabilities.
 *
 * The axis.  The outermost that needs no sums and makes nothing again, else
 * that which needs the least.  In the new body the same pass looks again:
 * batch, then head, then rows, until the largest member of a turn is small
 * enough for a cache.  R divides the extent, or the last slice begins earlier:
 * what it repeats is written again, and does not count in sums.
 *
 * All is decided by shapes, so the bits do not depend on the device, unless it
 * is a GPU whose matrix engine gives products bits of their own: there slices
 * are larger.  A row is computed as before, so only sums over the axis round
 * otherwise.
 * Needs: dots as the program wrote them (lower-dot merges dimensions). */
#include "slices.h"

enum {
    LEAST_SAVED = 2,   /* in slices, and times what goes in and out */
    MOST_CACHED = 8,   /* larger turns, in slices ... */
    MANY_SLICES = 256, /* ... are worth it if so many are saved */
    MOST_TRIED = 256   /* seeds of a computation */
};

/* In elements. */
typedef struct {
    int64_t large; /* a matrix of so many is cut */
    int64_t turn;  /* of a turn's largest member */
    bool is_told; /* tests say a size, and want all that can be cut to be cut */
} sizes;

/* A turn on the host has more than a cache's worth, since threads meet after
 * each of its steps: several whole matrices of 512 x 512, one of 1,024 x 1,024,
 * rows of larger ones.  A turn on a GPU is five to eight kernels, each of which
 * is to fill it: 16 products of 2,048 x 2,048 by 128 do, one of 256 x 4,096 is
 * done before the next one is launched. */
static sizes sizes_of(const hlo_module *m, const device_desc *dev)
{
    bool large = dev->kind != DEVICE_HOST && dev->features & DEVICE_HAS_ENGINES;

    if (m->slice_size)
        return (sizes){m->slice_size, m->slice_size, true};
    return large ? (sizes){1 << 24, 1 << 26, false}
                 : (sizes){1 << 18, 1 << 20, false};
}

/* ---- is it worth it? ---- */

typedef struct {
    int axis;
    double remade; /* multiplications that are made again */
    size_t sums, whole; /* of the loop that has the most */
    size_t saved, passed; /* bytes that are not kept; that go in and out */
    int64_t row; /* elements of the largest member, a position */
    int64_t rows, nlevel;
} choice;

static double work_of(const hlo_inst *in)
{
    return in->op == HLO_DOT
               ? (double)sd_shape_count(in->shape) * (double)slice_depth(in)
               : 0;
}

/* Operands and results of products are in memory, whatever shares kernels. */
static bool is_kept(const slice_group *g, const slice_node *x)
{
    if (x->in->op == HLO_DOT)
        return true;
    hlo_for_each_user(u, x->in)
        if (u->op == HLO_DOT && slice_node_of(g, u)->member)
            return true;
    return false;
}

/* Levels from the last: what they want of earlier ones leaves those. */
static void weigh_levels(slice_group *g, choice *c)
{
    sd_map *seen = sd_map_create(g->a);
    slice_loop l;

    for (int level = g->nlevel - 1; level >= 0; level--) {
        slice_loop_read(&l, g, level);
        c->nlevel += l.out.n > 0;
        c->sums = SD_MAX(c->sums, l.sums);
        c->whole = SD_MAX(c->whole, l.whole);
        for (int i = 0; i < g->member.n; i++)
            if (g->member.at[i]->is_computed && g->member.at[i]->level < level)
                c->remade += work_of(g->member.at[i]->in);
        for (int i = 0; i < l.out.n; i++)
            c->passed += slice_bytes(l.out.at[i]->in);
        for (int i = 0; i < l.value.n; i++) {
            hlo_inst *in = l.value.at[i]->in;

            if (!l.value.at[i]->is_remade && !sd_map_has(seen, sd_key(in))) {
                sd_map_set(seen, sd_key(in), in);
                c->passed += slice_bytes(in);
            }
        }
    }
}

/* Not so few positions that reading the whole arrays again in each turn takes
 * more than is saved. */
static double least_rows(const choice *c, int64_t extent)
{
    double again = (double)c->whole + 2.0 * (double)c->sums;
    double saved = (double)c->saved / (double)SD_MAX(c->nlevel, 1);

    return saved > 0 ? (double)extent * again / saved : (double)extent;
}

static void weigh(slice_group *g, int axis, const sizes *s, choice *c)
{
    double rows;

    *c = (choice){.axis = axis};
    weigh_levels(g, c);
    for (int i = 0; i < g->member.n; i++) {
        const slice_node *x = g->member.at[i];

        if (!slice_is_large(g, x) || x->dim < 0)
            continue;
        c->row = SD_MAX(c->row, x->count / g->extent);
        if (is_kept(g, x) && !slice_leaves(g, x))
            c->saved += slice_bytes(x->in);
    }
    rows = (double)s->turn / (double)SD_MAX(c->row, 1);
    rows = SD_MAX(rows, least_rows(c, g->extent));
    c->rows = SD_MIN((int64_t)SD_MIN(rows, 1e9), g->extent / 2);
    c->rows = SD_MAX(c->rows, 1);
}

static bool is_worth(const choice *c, const slice_group *g, const sizes *s,
                     bool inside)
{
    size_t most = sizeof(float) * (size_t)s->large;

    if (s->is_told)
        return c->nlevel > 0;
    if ((double)c->rows < least_rows(c, g->extent) || c->nlevel == 0)
        return false;
    if (c->row * c->rows > MOST_CACHED * s->large &&
        c->saved < MANY_SLICES * most)
        return false;
    return inside || (c->saved >= LEAST_SAVED * most &&
                      c->saved >= LEAST_SAVED * c->passed);
}

static bool is_better(const choice *x, const choice *y)
{
    if (x->remade != y->remade)
        return x->remade < y->remade;
    return x->sums < y->sums;
}

/* A divisor near `want`, or slices that repeat as little as can be. */
static int64_t even_rows(int64_t extent, int64_t want)
{
    int64_t turns;

    for (int64_t r = want; 2 * r > want; r--)
        if (extent % r == 0)
            return r;
    turns = (extent + want - 1) / want;
    return (extent + turns - 1) / turns;
}

typedef sd_vec(hlo_comp *) work_list;

static void write_loops(slice_group *g, const choice *c, sd_arena *a,
                        work_list *work)
{
    int64_t rows = even_rows(g->extent, c->rows);

    for (int level = 0; level < g->nlevel; level++) {
        hlo_comp *body = slice_loop_write(g, level, rows);

        if (body && rows == 1) /* else a turn is as small as it should be */
            *sd_push(a, work) = body;
    }
    for (int i = 0; i < g->member.n; i++)
        if (g->member.at[i]->result)
            hlo_replace(g->member.at[i]->in, g->member.at[i]->result);
    for (int i = g->member.n - 1; i >= 0; i--) {
        hlo_inst *in = g->member.at[i]->in;

        if (in->nuse == 0 && in != g->c->root)
            hlo_remove(in);
    }
    hlo_comp_sort(g->c);
}

/* ---- looking for groups ---- */

/* What is only moved or repeated, as the keys of a group of heads are, a
 * product may read where it is. */
static bool is_computed(const hlo_inst *in)
{
    if (in->op == HLO_CONVERT)
        in = in->arg[0];
    return hlo_info(in)->cls <= HLO_C_COMPARE;
}

/* A large product of small arrays, or a large operand of a product. */
static bool is_seed(const hlo_inst *in, const sizes *s, bool inside)
{
    int64_t n, around = 0;

    if (!sd_shape_is_array(in->shape))
        return false;
    n = sd_shape_count(in->shape);
    if (n < s->large || (inside && n <= s->turn))
        return false;
    if (in->op == HLO_DOT)
        return s->is_told || n > sd_shape_count(in->arg[0]->shape) +
                                     sd_shape_count(in->arg[1]->shape);
    if (!is_computed(in))
        return false;
    hlo_for_each_user(u, in) {
        if (u->op != HLO_DOT)
            continue;
        around = sd_shape_count(u->shape) +
                 sd_shape_count(u->arg[u->arg[0] == in]->shape);
        if (n > around || s->is_told)
            return true;
    }
    return false;
}

static bool slice_seed(sd_arena *all, hlo_inst *seed, const sizes *s,
                       bool inside, work_list *work)
{
    sd_arena *a = sd_arena_create();
    choice best = {.axis = -1}, c;
    slice_group g;

    slice_group_open(&g, a, seed);
    for (int axis = 0; axis < seed->shape->rank; axis++) {
        if (!slice_group_grow(&g, axis))
            continue;
        weigh(&g, axis, s, &c);
        if (is_worth(&c, &g, s, inside) &&
            (best.axis < 0 || is_better(&c, &best)))
            best = c;
    }
    if (best.axis >= 0 && slice_group_grow(&g, best.axis)) {
        weigh(&g, best.axis, s, &c); /* what leaves which loop */
        write_loops(&g, &best, all, work);
    }
    sd_arena_destroy(a);
    return best.axis >= 0;
}

static bool slice_comp(sd_arena *a, hlo_comp *c, const sizes *s, bool inside,
                       work_list *work)
{
    sd_map *tried = sd_map_create(a);
    bool changed = false, more = true;
    int ntried = 0;

    while (more) {
        more = false;
        hlo_for_each_inst(in, c) {
            if (ntried > MOST_TRIED || !is_seed(in, s, inside) ||
                sd_map_has(tried, (uint64_t)in->id))
                continue;
            ntried++;
            sd_map_set(tried, (uint64_t)in->id, in);
            more = slice_seed(a, in, s, inside, work);
            if (more)
                break; /* the list has changed */
        }
        changed |= more;
    }
    return changed;
}

bool hlo_opt_slices(hlo_module *m, const device_desc *dev)
{
    const sizes s = sizes_of(m, dev);
    sd_arena *a = sd_arena_create();
    work_list work = {0};
    bool changed = false;

    if (!m->made[HLO_DOT]) {
        sd_arena_destroy(a);
        return false;
    }
    hlo_for_each_comp(c, m)
        *sd_push(a, &work) = c;
    int outside = work.n;

    for (int i = 0; i < work.n; i++)
        changed |= slice_comp(a, work.at[i], &s, i >= outside, &work);
    sd_arena_destroy(a);
    return changed;
}
