/* Sorts of long rows on GPUs where the comparator is an order by numbers: digit
 * by digit of the codes, from the least on, each time stably.  A digit takes
 * three kernels,
 *
 *   count   operands -> how many elements of a piece have each digit
 *   sum     these numbers -> how many there are in pieces before
 *   move    operands, numbers -> the elements in the order of the digit
 *
 * between the same buffers as mergings (plan_parts.c).  Which digit it is, is
 * an operand, so kernels between the same buffers are one. */
#include "plan_mapping.h"
#include "plan_parts.h"
#include "plan_whole.h"

enum {
    /* elements of an item: where they are in registers, of which two groups of
     * a unit have enough so, and elsewhere (ADR 24) */
    MOST_EACH_VOTING = 10,
    MOST_EACH = 16,
    LEAST_EACH = 4,
    MOST_BITS = 8,
    LEAST_BITS = 4,
    /* what a launch costs, as bytes that a kernel would move meanwhile: where
     * there are units by the hundred, and where a processor runs the items */
    LAUNCH_BYTES = 8 << 20,
    LAUNCH_BYTES_CPU = 256 << 10
};

typedef struct {
    plan_parts *p;
    int bits, team, each, group;
    int digits, from; /* of a code; its lowest bit that counts */
    int64_t pieces;
    size_t numbers, bytes; /* where they lie in the work space */
} digits;

static plan_sort shape_of(const digits *d, plan_sort_step step)
{
    plan_sort s = *d->p->k->sort;

    s.step = step;
    s.bits = d->bits;
    s.team = d->team;
    s.each = d->each;
    s.piece = (int64_t)d->group * d->each;
    return s;
}

/* As many digits as there must be, with as few bits as they can have. */
static void share_bits(digits *d)
{
    int bits = d->p->k->sort->code_bits;

    d->digits = (bits + d->bits - 1) / d->bits;
    d->bits =
        SD_MIN(d->bits, SD_MAX((bits + d->digits - 1) / d->digits, LEAST_BITS));
}

/* As many bits as the group's memory has counters for. */
static void choose_bits(digits *d)
{
    const device_desc *dev = d->p->dev;
    bool votes = (dev->features & DEVICE_HAS_VOTES) != 0;

    d->team = votes ? dev->subgroup : 1;
    d->group = votes ? 2 * dev->crowd : dev->group;
    while (d->bits >= LEAST_BITS &&
           (d->group < 1 << d->bits ||
            ((size_t)(d->group / d->team) << d->bits) * sizeof(uint32_t) >
                dev->local_bytes / 2))
        d->bits--;
}

/* As many elements as it has room for. */
static bool choose_shape(digits *d)
{
    const device_desc *dev = d->p->dev;
    plan_sort move;

    d->each = d->team > 1 ? MOST_EACH_VOTING : MOST_EACH;
    for (;; d->each /= 2) {
        if (d->each < LEAST_EACH)
            return false;
        move = shape_of(d, PLAN_SORT_MOVE);
        if (plan_sort_bytes(&move, false) <= dev->local_bytes)
            break;
    }
    d->pieces = plan_sort_pieces(&move);
    d->bytes =
        ((size_t)(move.rows * (d->pieces + 1)) << d->bits) * sizeof(uint32_t);
    return true;
}

/* A digit reads what it sorts twice, but each merging waits for more. */
static bool is_quicker(const digits *d)
{
    const plan_sort *s = d->p->k->sort;
    double bytes = 0, radix, merge;
    double launch = d->p->dev->access ? LAUNCH_BYTES : LAUNCH_BYTES_CPU;
    int merges = 0;

    for (int o = 0; o < s->nop; o++)
        bytes += 2 * (double)plan_part_bytes(s, o, s->n);
    while (d->p->piece << merges < s->n)
        merges++;
    radix = d->digits * (3 * launch + bytes);
    merge = (merges + 1) * (launch + bytes);
    return radix < merge;
}

static plan_part_arg numbers_of(const digits *d)
{
    return (plan_part_arg){
        .slot = d->p->k->nslot - 1, .at = d->numbers, .bytes = d->bytes};
}

static plan_kernel *digit_kernel(const digits *d, plan_sort_step step,
                                 const char *what, int nslot)
{
    plan_kernel *k = plan_part_kernel(d->p, what, nslot);
    const plan_sort *s = k->sort;

    *k->sort = shape_of(d, step);
    k->sort->scratch = plan_sort_bytes(k->sort, false);
    plan_add_work(k, k->sort->scratch);
    k->group = k->items = d->group;
    k->tiles = s->rows * (step == PLAN_SORT_SUM ? 1 << d->bits : d->pieces);
    k->flops = (double)(s->rows * s->n) * s->nop;
    return k;
}

/* The first slots; which digit it is in the last one. */
static void add_source(const digits *d, plan_kernel *k, plan_part_arg *arg,
                       int from, int digit)
{
    if (from == PLAN_OPERANDS)
        plan_part_operands(d->p, k, arg);
    else
        plan_part_buffer(d->p, k, arg, from, k->sort->n);
    plan_part_slot(
        k, arg, k->nslot - 1,
        (plan_part_arg){.slot = -1,
                        .bytes = 8,
                        .number = d->from + (int64_t)digit * d->bits},
        SD_S64, PLAN_READ);
}

static plan_part count_digits(const digits *d, int from, int digit)
{
    const plan_sort *s = d->p->k->sort;
    int nin = from == PLAN_OPERANDS ? s->first_out : s->nop;
    plan_kernel *k = digit_kernel(d, PLAN_SORT_COUNT, "count", nin + 2);
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, nin + 2);

    add_source(d, k, arg, from, digit);
    plan_part_slot(k, arg, nin, numbers_of(d), SD_U32, PLAN_WRITE);
    k->sort->nout = 0;
    return (plan_part){k, arg};
}

static plan_part sum_digits(const digits *d)
{
    plan_kernel *k = digit_kernel(d, PLAN_SORT_SUM, "sum", 1);
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, 1);

    plan_part_slot(k, arg, 0, numbers_of(d), SD_U32, PLAN_READ | PLAN_WRITE);
    k->sort->nop = k->sort->nout = k->sort->first_out = 0;
    return (plan_part){k, arg};
}

/* last: into the results, as they are wanted. */
static plan_part move_elements(const digits *d, int from, int to, int digit,
                               bool last)
{
    const plan_sort *s = d->p->k->sort;
    int nin = from == PLAN_OPERANDS ? s->first_out : s->nop;
    int nout = last ? s->nout : s->nop, n = nin + nout;
    plan_kernel *k = digit_kernel(d, PLAN_SORT_MOVE, "move", n + 2);
    plan_part_arg *arg = sd_arena_array(k->arena, plan_part_arg, n + 2);

    add_source(d, k, arg, from, digit);
    if (!last)
        plan_part_want_all(d->p, k->sort);
    for (int i = 0; i < nout; i++) {
        plan_part_arg a = plan_part_in(d->p, last ? PLAN_RESULTS : to, i, s->n);
        sd_dtype t = s->type[k->sort->out[i]];

        if (last)
            a.bytes = plan_part_bytes(s, s->out[i], s->keep);
        plan_part_slot(k, arg, nin + i, a, t, PLAN_WRITE);
    }
    plan_part_slot(k, arg, n, numbers_of(d), SD_U32, PLAN_READ);
    k->sort->inner_out = last ? s->inner : 1;
    k->unit_groups = d->team > 1 ? 2 : 0;
    plan_sort_narrow(k, d->p->dev);
    return (plan_part){k, arg};
}

/* Results that hold all are a buffer. */
static void add_parts(digits *d)
{
    plan_parts *p = d->p;
    plan_kernel *k = p->k;
    bool direct = k->sort->inner == 1 && plan_sort_is_full(k->sort);
    int other = direct ? PLAN_RESULTS : PLAN_WORK_1, from = PLAN_OPERANDS, to;
    int buffers = SD_MIN(d->digits - 1, direct ? 1 : 2);

    plan_part_work(p, k->sort->n, buffers, d->bytes);
    d->numbers = p->bytes * (size_t)buffers;
    k->part = sd_arena_array(k->arena, plan_part, 3 * d->digits);
    for (int i = 0; i < d->digits; i++) {
        bool last = i == d->digits - 1;

        to = (d->digits - i) % 2 ? other : PLAN_WORK_0;
        plan_part_add(k, count_digits(d, from, i));
        plan_part_add(k, sum_digits(d));
        plan_part_add(k, move_elements(d, from, to, i, last));
        from = to;
    }
}

bool plan_sort_by_digits(plan_parts *p)
{
    digits d = {.p = p, .bits = MOST_BITS};

    if (!p->k->sort->keys)
        return false;
    choose_bits(&d);
    if (d.bits < LEAST_BITS)
        return false;
    share_bits(&d);
    if (!choose_shape(&d) || !is_quicker(&d))
        return false;
    add_parts(&d);
    return true;
}

bool plan_sort_by_digit(plan_kernel *k, int bits, int from,
                        const device_desc *dev)
{
    plan_parts p = {.k = k, .dev = dev};
    digits d = {.p = &p, .bits = bits, .digits = 1, .from = from};

    plan_tile_begin(k, dev);
    choose_bits(&d);
    if (d.bits < bits || !choose_shape(&d))
        return false;
    add_parts(&d);
    return true;
}
