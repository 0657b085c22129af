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
 * operands and all of a row, side by side. */
#include "plan_room.h"

enum {
    MOST_PIECE = 2048,
    LEAST_PIECE = 64, /* elements so large that fewer fit are not worth it */
    GROUP_SHARE = 8,  /* elements of a piece that an item has */
    MERGE_EACH = 8
};
enum { WORK_0, WORK_1, RESULTS };

typedef struct {
    plan_kernel *k;
    const device_desc *dev;
    size_t *at;     /* of an operand, in a buffer of the work space */
    size_t bytes;   /* of such a buffer */
    int64_t piece;
    bool direct;    /* the results are a buffer */
} parts;

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

static size_t operand_bytes(const plan_sort *s, int o)
{
    return (size_t)s->rows * (size_t)s->n * sd_dtype_bytes(s->type[o]);
}

/* A kernel for a part of p, with a sort of its own and no slots. */
static plan_kernel *part_kernel(const parts *p, const char *what, int nslot)
{
    sd_arena *a = p->k->arena;
    plan_kernel *k = sd_arena_copy(a, p->k, sizeof *k);

    k->name = sd_arena_fmt(a, "%s_%s", p->k->name, what);
    k->sort = sd_arena_copy(a, p->k->sort, sizeof *k->sort);
    k->slot = sd_arena_array(a, plan_slot, nslot);
    k->nslot = nslot;
    return k;
}

static void add_slot(plan_kernel *k, plan_part_arg *arg, int i,
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

/* Operand o in a buffer. */
static plan_part_arg in_buffer(const parts *p, int buffer, int o)
{
    const plan_sort *s = p->k->sort;
    plan_part_arg a = {.slot = s->first_out + o, .bytes = operand_bytes(s, o)};

    if (buffer != RESULTS) {
        a.slot = s->first_out + s->nout;
        a.at = p->at[o] + (buffer == WORK_1 ? p->bytes : 0);
    }
    return a;
}

/* All operands are wanted. */
static void want_all(const parts *p, plan_sort *s)
{
    s->nout = s->nop;
    s->out = sd_arena_array(p->k->arena, int, s->nop);
    for (int o = 0; o < s->nop; o++)
        s->out[o] = o;
    s->keep = s->n;
}

static plan_part sort_pieces(const parts *p, int to)
{
    const plan_sort *s = p->k->sort;
    int nslot = s->first_out + s->nop;
    plan_kernel *k = part_kernel(p, "tiles", nslot);
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, nslot);

    for (int i = 0; i < s->first_out; i++) {
        const plan_slot *from = &p->k->slot[i];
        size_t bytes = (size_t)from->count * sd_dtype_bytes(from->dtype);

        add_slot(k, arg, i, (plan_part_arg){.slot = i, .bytes = bytes},
                 from->dtype, PLAN_READ);
    }
    for (int o = 0; o < s->nop; o++)
        add_slot(k, arg, s->first_out + o, in_buffer(p, to, o), s->type[o],
                 PLAN_WRITE);
    want_all(p, k->sort);
    k->sort->step = PLAN_SORT_TILES;
    k->sort->piece = p->piece;
    k->sort->scratch = plan_sort_bytes(k->sort, false);
    k->tiles = s->rows * ((s->n + p->piece - 1) / p->piece);
    k->group = k->items = plan_sort_group(p->piece, p->dev);
    plan_add_work(k, k->sort->scratch);
    k->local_bytes = k->sort->scratch;
    return (plan_part){k, arg};
}

/* last: into the results, as they are wanted. */
static plan_part merge_runs(const parts *p, int from, int to, int64_t width,
                            bool last)
{
    const plan_sort *s = p->k->sort;
    int nout = last ? s->nout : s->nop, n = s->nop + nout;
    plan_kernel *k = part_kernel(p, "merge", n + 1);
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, n + 1);
    plan_sort *m = k->sort;
    int64_t each;

    m->in = sd_arena_array(k->arena, int, s->nop);
    m->first_out = s->nop;
    for (int o = 0; o < s->nop; o++) {
        m->in[o] = o;
        add_slot(k, arg, o, in_buffer(p, from, o), s->type[o], PLAN_READ);
    }
    if (!last) {
        want_all(p, m);
        m->inner = 1;
    }
    for (int i = 0; i < nout; i++) {
        plan_part_arg a = in_buffer(p, last ? RESULTS : to, i);

        if (last)
            a.bytes = (size_t)(s->rows * s->keep) *
                      sd_dtype_bytes(s->type[s->out[i]]);
        add_slot(k, arg, s->nop + i, a, s->type[m->out[i]], PLAN_WRITE);
    }
    add_slot(k, arg, n,
             (plan_part_arg){.slot = -1, .bytes = 8, .number = width}, SD_S64,
             PLAN_READ);
    m->step = PLAN_SORT_MERGE;
    m->each = MERGE_EACH;
    m->scratch = 0;
    k->group = k->items = SD_MAX(p->dev->group, p->dev->crowd);
    each = (int64_t)k->group * m->each;
    k->tiles = s->rows * ((m->keep + each - 1) / each);
    k->flops = (double)(s->rows * m->keep) * s->nop;
    return (plan_part){k, arg};
}

static void place_work(parts *p, int merges)
{
    const plan_sort *s = p->k->sort;

    p->at = sd_arena_array(p->k->arena, size_t, s->nop);
    for (int o = 0; o < s->nop; o++) {
        p->at[o] = p->bytes;
        p->bytes += plan_whole_lines(operand_bytes(s, o));
    }
    p->direct = s->inner == 1 && plan_sort_is_full(s);
    plan_add_work_slot(p->k,
                       (int64_t)p->bytes * (p->direct || merges == 1 ? 1 : 2));
}

bool plan_sort_in_parts(plan_kernel *k, const device_desc *dev)
{
    const plan_sort *s = k->sort;
    parts p = {.k = k, .dev = dev, .piece = piece_of(s, dev)};
    int merges = 0, buffer, other;

    if (p.piece < LEAST_PIECE || s->n <= p.piece ||
        (s->scratch <= dev->local_bytes && s->rows >= dev->units))
        return false;
    while (p.piece << merges < s->n)
        merges++;
    place_work(&p, merges);
    other = p.direct ? RESULTS : WORK_1;
    buffer = merges % 2 ? WORK_0 : other;
    k->part = sd_arena_array(k->arena, plan_part, merges + 1);
    k->part[k->npart++] = sort_pieces(&p, buffer);
    for (int i = 0; i < merges; i++) {
        int to = buffer == WORK_0 ? other : WORK_0;

        k->part[k->npart++] = merge_runs(&p, buffer, to, p.piece << i,
                                         i == merges - 1 && !p.direct);
        buffer = to;
    }
    return true;
}
