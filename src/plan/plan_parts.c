/* Sorts of long rows on GPUs, where a group's local memory holds a piece of a
 * row.  One kernel sorts the pieces, each in a group; then kernels merge runs
 * two by two until a row is one run, 8,192 elements in pieces of 2,048 so:
 *
 *   sort tiles   operands -> b0     4 runs of 2,048
 *   merge 2048   b0 -> b1           2 runs of 4,096
 *   merge 4096   b1 -> results      1 run
 *
 * The length of a run is an operand of the merging kernel, so that all mergings
 * between two buffers are one kernel.  Buffers are parts of the work space,
 * after the results; the results are one of the two where they have all of the
 * operands and all of a row, side by side.
 *
 * Where few of a row are wanted, only so many of each piece are kept, and those
 * of all pieces are the next row to be sorted so, until it is a piece. */
#include "plan_mapping.h"
#include "plan_parts.h"
#include "plan_whole.h"

enum {
    MOST_PIECE = 2048,
    LEAST_PIECE = 64, /* elements so large that fewer fit are not worth it */
    GROUP_SHARE = 8,  /* elements of a piece that an item has */
    MERGE_EACH = 8,
    FEW = 4 /* a piece has so many times as many elements as are kept of it */
};

int plan_sort_group(int64_t n, const device_desc *dev)
{
    int g = dev->group;

    while (g < dev->crowd && (int64_t)g * GROUP_SHARE < n)
        g *= 2;
    return g;
}

static int64_t piece_of(const plan_sort *s, const device_desc *dev)
{
    int64_t piece = MOST_PIECE;
    size_t each = 0;

    for (int i = 0; i < s->nop; i++)
        each += sd_dtype_bytes(s->type[i]);
    while (piece &&
           2 * plan_whole_lines((size_t)piece * each) > dev->local_bytes)
        piece /= 2;
    return piece;
}

size_t plan_part_bytes(const plan_sort *s, int o, int64_t n)
{
    return (size_t)s->rows * (size_t)n * sd_dtype_bytes(s->type[o]);
}

plan_kernel *plan_part_kernel(const plan_parts *p, const char *what, int nslot)
{
    sd_arena *a = p->k->arena;
    plan_kernel *k = sd_arena_copy(a, p->k, sizeof *k);

    k->name = sd_arena_fmt(a, "%s_%s", p->k->name, what);
    k->sort = sd_arena_copy(a, p->k->sort, sizeof *k->sort);
    k->slot = sd_arena_array(a, plan_slot, nslot);
    k->nslot = nslot;
    k->part = NULL;
    k->npart = 0;
    return k;
}

void plan_part_slot(plan_kernel *k, plan_part_arg *arg, int i,
                    plan_part_arg from, sd_dtype t, plan_access access)
{
    size_t each = sd_dtype_bytes(t);

    arg[i] = from;
    k->slot[i] = (plan_slot){.dtype = t,
                             .count = (int64_t)(from.bytes / each),
                             .access = (uint8_t)access,
                             .align = (uint32_t)each,
                             .noalias = true};
}

plan_part_arg plan_part_in(const plan_parts *p, int buffer, int o, int64_t n)
{
    const plan_sort *s = p->k->sort;
    plan_part_arg a = {.slot = s->first_out + o,
                       .bytes = plan_part_bytes(s, o, n)};

    if (buffer != PLAN_RESULTS) {
        a.slot = s->first_out + s->nout;
        a.at = p->at[o] + (buffer == PLAN_WORK_1 ? p->bytes : 0);
    }
    return a;
}

void plan_part_want_all(const plan_parts *p, plan_sort *s)
{
    s->nout = s->nop;
    s->out = sd_arena_array(p->k->arena, int, s->nop);
    for (int o = 0; o < s->nop; o++)
        s->out[o] = o;
    s->keep = s->n;
}

void plan_part_operands(const plan_parts *p, plan_kernel *k, plan_part_arg *arg)
{
    for (int i = 0; i < p->k->sort->first_out; i++) {
        const plan_slot *from = &p->k->slot[i];
        size_t bytes = (size_t)from->count * sd_dtype_bytes(from->dtype);

        plan_part_slot(k, arg, i, (plan_part_arg){.slot = i, .bytes = bytes},
                       from->dtype, PLAN_READ);
    }
}

void plan_part_buffer(const plan_parts *p, plan_kernel *k, plan_part_arg *arg,
                      int buffer, int64_t n)
{
    plan_sort *s = k->sort;

    s->in = sd_arena_array(k->arena, int, s->nop);
    s->first_out = s->nop;
    s->inner = 1;
    s->n = n;
    for (int o = 0; o < s->nop; o++) {
        s->in[o] = o;
        plan_part_slot(k, arg, o, plan_part_in(p, buffer, o, n), s->type[o],
                       PLAN_READ);
    }
}

static int64_t count_pieces(const plan_parts *p, int64_t n)
{
    return (n + p->piece - 1) / p->piece;
}

int64_t plan_sort_kept(int64_t n, int64_t piece, int64_t keep)
{
    int64_t whole = (n - 1) / piece;

    return whole * SD_MIN(keep, piece) + SD_MIN(keep, n - whole * piece);
}

static plan_part sort_pieces(const plan_parts *p, int from, int64_t n,
                             int64_t keep, int to)
{
    const plan_sort *s = p->k->sort;
    int nin = from == PLAN_OPERANDS ? s->first_out : s->nop;
    plan_kernel *k = plan_part_kernel(p, "tiles", nin + s->nop);
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, nin + s->nop);

    if (from == PLAN_OPERANDS)
        plan_part_operands(p, k, arg);
    else
        plan_part_buffer(p, k, arg, from, n);
    for (int o = 0; o < s->nop; o++)
        plan_part_slot(
            k, arg, nin + o,
            plan_part_in(p, to, o, plan_sort_kept(n, p->piece, keep)),
            s->type[o], PLAN_WRITE);
    plan_part_want_all(p, k->sort);
    k->sort->keep = keep;
    k->sort->step = PLAN_SORT_TILES;
    k->sort->piece = p->piece;
    k->flops = (double)(s->rows * n) * s->nop;
    if (plan_sort_in_items(k, p->piece, p->dev))
        return (plan_part){k, arg};
    k->sort->scratch = plan_sort_bytes(k->sort, false);
    k->tiles = s->rows * count_pieces(p, n);
    k->group = k->items = plan_sort_group(p->piece, p->dev);
    plan_add_work(k, k->sort->scratch);
    return (plan_part){k, arg};
}

/* The end of choosing a few: rows of n elements, no more than a piece. */
static plan_part sort_rest(const plan_parts *p, int from, int64_t n)
{
    const plan_sort *s = p->k->sort;
    plan_kernel *k = plan_part_kernel(p, "rest", s->nop + s->nout);
    plan_part_arg *arg =
        sd_arena_array(k->arena, plan_part_arg, s->nop + s->nout);

    plan_part_buffer(p, k, arg, from, n);
    for (int i = 0; i < s->nout; i++) {
        plan_part_arg a = plan_part_in(p, PLAN_RESULTS, i, 0);

        a.bytes = plan_part_bytes(s, s->out[i], s->keep);
        plan_part_slot(k, arg, s->nop + i, a, s->type[s->out[i]], PLAN_WRITE);
    }
    k->flops = (double)(s->rows * n) * s->nop;
    if (plan_sort_in_items(k, n, p->dev))
        return (plan_part){k, arg};
    k->sort->scratch = plan_sort_bytes(k->sort, false);
    k->tiles = s->rows;
    k->group = k->items = plan_sort_group(n, p->dev);
    plan_add_work(k, k->sort->scratch);
    return (plan_part){k, arg};
}

/* last: into the results, as they are wanted. */
static plan_part merge_runs(const plan_parts *p, int from, int to,
                            int64_t width, bool last)
{
    const plan_sort *s = p->k->sort;
    int nout = last ? s->nout : s->nop, n = s->nop + nout;
    plan_kernel *k = plan_part_kernel(p, "merge", n + 1);
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, n + 1);
    plan_sort *m = k->sort;
    int64_t each;

    plan_part_buffer(p, k, arg, from, s->n);
    if (last)
        m->inner = s->inner;
    else
        plan_part_want_all(p, m);
    for (int i = 0; i < nout; i++) {
        plan_part_arg a = plan_part_in(p, last ? PLAN_RESULTS : to, i, s->n);

        if (last)
            a.bytes = plan_part_bytes(s, s->out[i], s->keep);
        plan_part_slot(k, arg, s->nop + i, a, s->type[m->out[i]], PLAN_WRITE);
    }
    plan_part_slot(k, arg, n,
                   (plan_part_arg){.slot = -1, .bytes = 8, .number = width},
                   SD_S64, PLAN_READ);
    m->step = PLAN_SORT_MERGE;
    m->each = MERGE_EACH;
    m->scratch = 0;
    k->group = k->items = SD_MAX(p->dev->group, p->dev->crowd);
    each = (int64_t)k->group * m->each;
    k->tiles = s->rows * ((m->keep + each - 1) / each);
    k->flops = (double)(s->rows * m->keep) * s->nop;
    return (plan_part){k, arg};
}

void plan_part_work(plan_parts *p, int64_t n, int buffers, size_t more)
{
    const plan_sort *s = p->k->sort;

    p->at = sd_arena_array(p->k->arena, size_t, s->nop);
    for (int o = 0; o < s->nop; o++) {
        p->at[o] = p->bytes;
        p->bytes += plan_whole_lines(plan_part_bytes(s, o, n));
    }
    plan_add_work_slot(p->k, (int64_t)(p->bytes * (size_t)buffers + more));
}

void plan_part_add(plan_kernel *k, plan_part part)
{
    k->part[k->npart++] = part;
}

static void sort_all(plan_parts *p)
{
    plan_kernel *k = p->k;
    const plan_sort *s = k->sort;
    bool direct = s->inner == 1 && plan_sort_is_full(s);
    int merges = 0, buffer, other = direct ? PLAN_RESULTS : PLAN_WORK_1;

    while (p->piece << merges < s->n)
        merges++;
    plan_part_work(p, s->n, direct || merges == 1 ? 1 : 2, 0);
    buffer = merges % 2 ? PLAN_WORK_0 : other;
    k->part = sd_arena_array(k->arena, plan_part, merges + 1);
    plan_part_add(k, sort_pieces(p, PLAN_OPERANDS, s->n, s->n, buffer));
    for (int i = 0; i < merges; i++) {
        int to = buffer == PLAN_WORK_0 ? other : PLAN_WORK_0;

        plan_part_add(k, merge_runs(p, buffer, to, p->piece << i,
                                    i == merges - 1 && !direct));
        buffer = to;
    }
}

static void choose_few(plan_parts *p)
{
    plan_kernel *k = p->k;
    int64_t keep = k->sort->keep,
            n = plan_sort_kept(k->sort->n, p->piece, keep);
    int buffer = PLAN_WORK_0, steps = 2;

    for (int64_t rest = n; rest > p->piece;
         rest = plan_sort_kept(rest, p->piece, keep))
        steps++;
    plan_part_work(p, n, steps > 2 ? 2 : 1, 0);
    k->part = sd_arena_array(k->arena, plan_part, steps);
    plan_part_add(k, sort_pieces(p, PLAN_OPERANDS, k->sort->n, keep, buffer));
    for (; n > p->piece; n = plan_sort_kept(n, p->piece, keep)) {
        int to = buffer == PLAN_WORK_0 ? PLAN_WORK_1 : PLAN_WORK_0;

        plan_part_add(k, sort_pieces(p, buffer, n, keep, to));
        buffer = to;
    }
    plan_part_add(k, sort_rest(p, buffer, n));
}

bool plan_sort_in_parts(plan_kernel *k, const device_desc *dev)
{
    const plan_sort *s = k->sort;
    plan_parts p = {.k = k, .dev = dev, .piece = piece_of(s, dev)};

    if (p.piece < LEAST_PIECE || s->n <= p.piece ||
        (s->scratch <= dev->local_bytes && s->rows >= dev->units))
        return false;
    if (s->inner == 1 && s->keep <= p.piece / FEW)
        choose_few(&p);
    else if (!plan_sort_by_digits(&p))
        sort_all(&p);
    return true;
}
