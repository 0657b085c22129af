/* GPU: stable sorting by one digit of the codes (Merrill and Grimshaw, "High
 * Performance and Scalable Radix Sorting", 2011), in three kernels: count, sum,
 * move.  See PLAN_SORT_COUNT and plan_digits.c.
 *
 * A piece is cut into stretches, one a team of items, which has a counter of
 * each digit.  A team takes its stretch `team` elements at a time.  Its items
 * vote on each bit of their digits, so that each knows who has the same: it
 * stands behind what the counter says and behind those with smaller numbers,
 * and the first of them adds to the counter.  A team of one item just counts.
 *
 * To move, elements are first put in order in local memory, operand by operand,
 * so that neighbours are written to neighbouring places where they can be. */
#include "emit_sort.h"

enum { MOST_EACH = 64 };

typedef struct {
    emit_sorter s;
    emit *e;
    const plan_sort *p;
    plan_digit_areas at;
    int digits;               /* that there are: 1 << bits */
    LLVMValueRef row, piece;  /* of the group */
    LLVMValueRef first, count; /* its first element in the row, how many */
    LLVMValueRef numbers;     /* a slot */
    LLVMValueRef shift;
    LLVMValueRef team, member; /* of the item */
    /* i32 of each of the item's elements: its digit; how many of the team's
     * with that digit are before it, then where it is in the piece in order */
    LLVMValueRef digit, before;
    int result; /* that is being written */
} digits;

/* Elements j .. j + n of the item's. */
typedef void (*some)(digits *d, LLVMValueRef j, int n);

/* All of them: at once where teams vote, so that they are in registers, else
 * one after the other, since compilers for processors would take seconds. */
static void for_all(digits *d, some f)
{
    emit *e = d->e;
    emit_loop l;

    if (d->p->team > 1) {
        f(d, emit_si(e, 0), d->p->each);
        return;
    }
    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, d->p->each), 1);
    f(d, l.at, 1);
    emit_loop_close(e, &l);
}

/* ---- memory: u32 and u64 by index ---- */

static LLVMValueRef get(digits *d, sd_dtype t, LLVMValueRef p, LLVMValueRef i)
{
    return emit_mem_read(d->e, t, p, i, 1).re;
}

static void put(digits *d, sd_dtype t, LLVMValueRef p, LLVMValueRef i,
                LLVMValueRef v)
{
    emit_mem_write(d->e, t, p, i, (emit_value){v, NULL});
}

static LLVMValueRef to_position(digits *d, LLVMValueRef v) /* of u32 */
{
    return LLVMBuildIntCast2(d->e->b, v, d->e->si, false, "");
}

static LLVMValueRef i32(digits *d, LLVMValueRef v)
{
    return LLVMBuildIntCast2(d->e->b, v, d->e->i32, false, "");
}

/* Where the number of a digit and piece is. */
static LLVMValueRef number_at(digits *d, LLVMValueRef digit, LLVMValueRef piece)
{
    emit *e = d->e;
    LLVMValueRef at = emit_mad(e, d->row, d->digits, digit);

    return emit_mad(e, at, plan_sort_pieces(d->p) + 1, piece);
}

/* The counter of a team. */
static LLVMValueRef counter_at(digits *d, LLVMValueRef team, LLVMValueRef digit)
{
    return emit_mad(d->e, team, d->digits, digit);
}

/* ---- sums over the items of a group ---- */

/* Of v, an i64, of the items of the sub-group up to this one. */
static LLVMValueRef sum_together(emit *e, LLVMValueRef v, LLVMValueRef member)
{
    for (int by = 1; by < e->abi->together; by *= 2) {
        LLVMValueRef from = emit_plus(e, member, -by), x, is_there;

        is_there = emit_not(e, emit_below(e, from, emit_int_like(from, 0)));
        from = emit_and(e, from, emit_int_like(from, e->abi->together - 1));
        from = LLVMBuildIntCast2(e->b, from, e->i32, false, "");
        x = emit_from_item(e, (emit_value){v, NULL}, from).re;
        x = emit_select(e, is_there, x, emit_int_like(x, 0));
        v = emit_sum(e, v, x);
    }
    return v;
}

/* v, an i64, of all items before this one. */
static LLVMValueRef sum_before(digits *d, LLVMValueRef own)
{
    emit *e = d->e;
    LLVMValueRef p = emit_local_at(d->e, d->at.sums), v = own, x,
                 zero = emit_i64(e, 0);
    int by = 1, group = e->k->group, near = e->abi->together;

    if (near && d->p->team > 1) {
        LLVMValueRef which = emit_over(e, e->lid, near);
        LLVMValueRef member = emit_rest(e, e->lid, near);
        LLVMBasicBlockRef no;

        v = sum_together(e, v, member);
        no = emit_when(e, emit_equal(e, member, emit_si(e, near - 1)));
        put(d, SD_U64, p, which, v);
        emit_when_end(e, no);
        emit_barrier(e);
        for (int i = 0; i < group / near - 1; i++) {
            x = get(d, SD_U64, p, emit_si(e, i));
            x = emit_select(e, emit_below(e, emit_si(e, i), which), x, zero);
            v = emit_sum(e, v, x);
        }
        return emit_minus(e, v, own);
    }
    put(d, SD_U64, p, e->lid, v);
    for (; by < group; by *= 2) {
        LLVMValueRef from = emit_plus(e, e->lid, -by), is_there;

        is_there = emit_not(e, emit_below(e, from, emit_si(e, 0)));
        from = emit_select(e, is_there, from, e->lid);
        emit_barrier(e);
        x = emit_select(e, is_there, get(d, SD_U64, p, from), zero);
        v = emit_sum(e, v, x);
        emit_barrier(e);
        put(d, SD_U64, p, e->lid, v);
    }
    return emit_minus(e, v, own);
}

/* ---- digits ---- */

static LLVMValueRef is_inside(digits *d, LLVMValueRef i)
{
    return emit_below(d->e, i, d->count);
}

/* Where element j + n of the item is, in the piece. */
static LLVMValueRef element(digits *d, LLVMValueRef j, int n)
{
    int64_t all = (int64_t)d->p->each * d->p->team;
    LLVMValueRef i = emit_mad(d->e, d->team, all, d->member);

    i = emit_plus(d->e, i, (int64_t)n * d->p->team);
    return emit_add(d->e, i, emit_times(d->e, j, d->p->team));
}

/* The number that element j + n of the item has in a list. */
static LLVMValueRef noted(digits *d, LLVMValueRef list, LLVMValueRef j, int n)
{
    return get(d, SD_U32, list, emit_plus(d->e, j, n));
}

static void note(digits *d, LLVMValueRef list, LLVMValueRef j, int n,
                 LLVMValueRef v)
{
    put(d, SD_U32, list, emit_plus(d->e, j, n), v);
}

/* Operand o of an element; where there is none, of the last. */
static emit_value operand(digits *d, int o, LLVMValueRef i)
{
    emit *e = d->e;
    const plan_sort *p = d->p;

    i = emit_smaller(e, emit_sum(e, d->first, i), emit_si(e, p->n - 1));
    if (p->in[o] < 0)
        return emit_place(e, p->type[o], i);
    i = emit_product(e, i, emit_si(e, p->inner));
    i = emit_sum(e, d->s.in.base, i);
    return emit_mem_read(e, p->type[o], e->slot[p->in[o]], i, 1);
}

/* As a position; the last digit where there is no element. */
static LLVMValueRef digit_of(digits *d, LLVMValueRef i)
{
    emit *e = d->e;
    const plan_body *keys = d->p->keys;
    emit_value *arg = emit_values(e, keys->nparam);
    LLVMTypeRef type = d->p->code_bits <= 32 ? e->i32 : e->i64;
    LLVMValueRef c;

    plan_for_each_node(x, keys)
        if (x->kind == PN_PARAM)
            arg[x->out] = operand(d, x->out / 2, i);
    c = emit_sort_code(e, d->p, arg, type, 1);
    c = emit_shr(e, c, LLVMBuildIntCast2(e->b, d->shift, type, false, ""));
    c = emit_and(e, c, emit_int_like(c, d->digits - 1));
    return emit_select(e, is_inside(d, i), i32(d, c),
                       LLVMConstInt(e->i32, (unsigned)d->digits - 1, 0));
}

static void clear_counters(digits *d)
{
    emit *e = d->e;
    int n = e->k->group / d->p->team * d->digits;
    LLVMValueRef p = emit_local_at(d->e, d->at.counters);
    emit_loop l;

    emit_loop_open(e, &l, e->lid, emit_si(e, n), e->k->group);
    put(d, SD_U32, p, l.at, LLVMConstInt(e->i32, 0, 0));
    emit_loop_close(e, &l);
    emit_barrier(e);
}

/* Which items of the team have that digit. */
static LLVMValueRef find_same(digits *d, LLVMValueRef digit)
{
    emit *e = d->e;
    LLVMValueRef same = LLVMConstAllOnes(e->i32), one, v;

    for (int i = 0; i < d->p->bits; i++) {
        one = emit_shr(e, digit, emit_int_like(digit, i));
        one = emit_trunc(e, one, e->i1);
        v = e->abi->vote(e, one);
        v = emit_xor(e, v, LLVMBuildSExt(e->b, emit_not(e, one), e->i32, ""));
        same = emit_and(e, same, v);
    }
    return same;
}

static LLVMValueRef count_ones(emit *e, LLVMValueRef v)
{
    return emit_intrinsic(e, "llvm.ctpop", e->i32, &v, 1);
}

/* An element with that digit is counted: how many of the team's came before, or
 * NULL: where nobody asks, items need not vote. */
static LLVMValueRef tally(digits *d, LLVMValueRef digit)
{
    emit *e = d->e;
    LLVMValueRef p = emit_local_at(d->e, d->at.counters), at, v, same, less,
                 behind;
    LLVMBasicBlockRef no;

    at = counter_at(d, d->team, to_position(d, digit));
    if (d->p->team == 1) {
        v = get(d, SD_U32, p, at);
        put(d, SD_U32, p, at, emit_sum(e, v, emit_int_like(v, 1)));
        return v;
    }
    if (d->p->step == PLAN_SORT_COUNT) {
        LLVMBuildAtomicRMW(
            e->b, LLVMAtomicRMWBinOpAdd, emit_element(e, SD_U32, p, at),
            LLVMConstInt(e->i32, 1, 0), LLVMAtomicOrderingMonotonic, 0);
        return NULL;
    }
    same = find_same(d, digit);
    less = emit_shl(e, LLVMConstInt(e->i32, 1, 0), i32(d, d->member));
    less = emit_minus(e, less, emit_int_like(less, 1));
    less = emit_and(e, same, less);
    behind = count_ones(e, less);
    v = get(d, SD_U32, p, at);
    e->abi->meet(e);
    no = emit_when(e, emit_equal(e, less, emit_int_like(less, 0)));
    put(d, SD_U32, p, at, emit_sum(e, v, count_ones(e, same)));
    emit_when_end(e, no);
    e->abi->meet(e);
    return emit_sum(e, v, behind);
}

static void find_digits(digits *d, LLVMValueRef j, int n)
{
    for (int i = 0; i < n; i++)
        note(d, d->digit, j, i, digit_of(d, element(d, j, i)));
}

static void tally_digits(digits *d, LLVMValueRef j, int n)
{
    for (int i = 0; i < n; i++) {
        LLVMValueRef before = tally(d, noted(d, d->digit, j, i));

        if (before)
            note(d, d->before, j, i, before);
    }
}

static void tally_all(digits *d)
{
    LLVMTypeRef list = LLVMArrayType2(d->e->i32, (uint64_t)d->p->each);

    d->digit = emit_alloca(d->e, list);
    d->before = emit_alloca(d->e, list);
    clear_counters(d);
    for_all(d, find_digits);
    for_all(d, tally_digits);
    emit_barrier(d->e);
}

/* How many elements of the piece have a digit, an i32.  then: a counter becomes
 * the sum of those of the teams before. */
static LLVMValueRef count_digit(digits *d, LLVMValueRef digit, bool then)
{
    emit *e = d->e;
    LLVMValueRef p = emit_local_at(d->e, d->at.counters), at, v, was;
    LLVMValueRef sum = emit_alloca(e, e->i32);
    int teams = e->k->group / d->p->team;
    int step = d->p->team > 1 ? teams : 1; /* as for_all */
    emit_loop l;

    emit_put(e, LLVMConstInt(e->i32, 0, 0), sum);
    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, teams), step);
    for (int t = 0; t < step; t++) {
        at = counter_at(d, emit_plus(e, l.at, t), digit);
        v = get(d, SD_U32, p, at);
        was = LLVMBuildLoad2(e->b, e->i32, sum, "");
        if (then)
            put(d, SD_U32, p, at, was);
        emit_put(e, emit_sum(e, was, v), sum);
    }
    emit_loop_close(e, &l);
    return LLVMBuildLoad2(e->b, e->i32, sum, "");
}

/* ---- the kernels ---- */

static void count_piece(digits *d)
{
    emit *e = d->e;
    LLVMValueRef missing, last, v;
    LLVMBasicBlockRef no;

    tally_all(d);
    no = emit_when(e, emit_below(e, e->lid, emit_si(e, d->digits)));
    v = count_digit(d, e->lid, false);
    last = emit_equal(e, e->lid, emit_si(e, d->digits - 1));
    missing = emit_minus(e, emit_si(e, d->p->piece), d->count);
    missing = emit_select(e, last, missing, emit_si(e, 0));
    v = emit_minus(e, v, i32(d, missing));
    put(d, SD_U32, d->numbers, number_at(d, e->lid, d->piece), v);
    emit_when_end(e, no);
}

/* An item has some of the numbers, side by side. */
static void sum_numbers(digits *d)
{
    emit *e = d->e;
    int64_t n = plan_sort_pieces(d->p), each;
    LLVMValueRef base = emit_times(e, e->first, n + 1), from, to, sum, v;
    LLVMBasicBlockRef no;
    emit_loop l;

    each = (n + e->k->group - 1) / e->k->group;
    from = emit_smaller(e, emit_times(e, e->lid, each), emit_si(e, n));
    to = emit_smaller(e, emit_plus(e, from, each), emit_si(e, n));
    sum = emit_alloca(e, e->i32);
    emit_put(e, LLVMConstInt(e->i32, 0, 0), sum);
    emit_loop_open(e, &l, from, to, 1);
    v = get(d, SD_U32, d->numbers, emit_sum(e, base, l.at));
    v = emit_sum(e, v, LLVMBuildLoad2(e->b, e->i32, sum, ""));
    emit_put(e, v, sum);
    emit_loop_close(e, &l);
    v = LLVMBuildLoad2(e->b, e->i32, sum, "");
    v = sum_before(d, emit_zext(e, v, e->i64));
    emit_put(e, i32(d, v), sum);
    emit_loop_open(e, &l, from, to, 1);
    base = emit_sum(e, base, l.at);
    v = get(d, SD_U32, d->numbers, base);
    put(d, SD_U32, d->numbers, base, LLVMBuildLoad2(e->b, e->i32, sum, ""));
    v = emit_sum(e, v, LLVMBuildLoad2(e->b, e->i32, sum, ""));
    emit_put(e, v, sum);
    emit_loop_close(e, &l);
    no = emit_when(e, emit_equal(e, e->lid, emit_si(e, e->k->group - 1)));
    base = emit_plus(e, emit_times(e, e->first, n + 1), n);
    put(d, SD_U32, d->numbers, base, LLVMBuildLoad2(e->b, e->i32, sum, ""));
    emit_when_end(e, no);
}

/* Of each digit, where it begins in the piece once that is in order, and how
 * far from there its elements go: both sums over digits at once, as halves of
 * an i64. */
static void place_digits(digits *d)
{
    emit *e = d->e;
    LLVMValueRef is_digit = emit_below(e, e->lid, emit_si(e, d->digits));
    LLVMValueRef both = emit_alloca(e, e->i64), v, n, all, first, to;
    LLVMBasicBlockRef no;

    emit_put(e, emit_i64(e, 0), both);
    no = emit_when(e, is_digit);
    n = emit_zext(e, count_digit(d, e->lid, true), e->i64);
    all = get(d, SD_U32, d->numbers,
              number_at(d, e->lid, emit_si(e, plan_sort_pieces(d->p))));
    all = emit_zext(e, all, e->i64);
    all = emit_shl(e, all, emit_i64(e, 32));
    emit_put(e, emit_or(e, all, n), both);
    emit_when_end(e, no);
    v = sum_before(d, LLVMBuildLoad2(e->b, e->i64, both, ""));
    no = emit_when(e, is_digit);
    first = i32(d, v);
    to = i32(d, emit_shr(e, v, emit_i64(e, 32)));
    n = get(d, SD_U32, d->numbers, number_at(d, e->lid, d->piece));
    to = emit_minus(e, emit_sum(e, to, n), first);
    put(d, SD_U32, emit_local_at(d->e, d->at.first), e->lid, first);
    put(d, SD_U32, emit_local_at(d->e, d->at.apart), e->lid, to);
    emit_when_end(e, no);
    emit_barrier(e);
}

static void rank(digits *d, LLVMValueRef j, int n)
{
    emit *e = d->e;

    for (int i = 0; i < n; i++) {
        LLVMValueRef digit = to_position(d, noted(d, d->digit, j, i));
        LLVMValueRef v = get(d, SD_U32, emit_local_at(d->e, d->at.counters),
                             counter_at(d, d->team, digit));

        v = emit_sum(e, v, noted(d, d->before, j, i));
        v = emit_sum(e, v,
                     get(d, SD_U32, emit_local_at(d->e, d->at.first), digit));
        note(d, d->before, j, i, v);
    }
}

static void put_digits(digits *d, LLVMValueRef j, int n)
{
    for (int i = 0; i < n; i++) {
        LLVMValueRef digit = noted(d, d->digit, j, i);

        digit = emit_trunc(d->e, digit, d->e->i8);
        put(d, SD_U8, emit_local_at(d->e, d->at.digits),
            to_position(d, noted(d, d->before, j, i)), digit);
    }
}

/* An operand of them, in order in local memory. */
static void put_operand(digits *d, LLVMValueRef j, int n)
{
    emit *e = d->e;
    int o = d->p->out[d->result];
    emit_value x[MOST_EACH];

    for (int i = 0; i < n; i++)
        x[i] = operand(d, o, element(d, j, i));
    for (int i = 0; i < n; i++)
        emit_mem_write(e, d->p->type[o], emit_local_at(d->e, d->at.counters),
                       to_position(d, noted(d, d->before, j, i)), x[i]);
}

/* Where element i of the piece, which is in order, goes in the row. */
static LLVMValueRef destination(digits *d, LLVMValueRef i)
{
    LLVMValueRef v = get(d, SD_U8, emit_local_at(d->e, d->at.digits), i);

    v = emit_zext(d->e, v, d->e->si);
    v = get(d, SD_U32, emit_local_at(d->e, d->at.apart), v);
    return to_position(d, emit_sum(d->e, v, i32(d, i)));
}

/* Of the piece in order, elements j, j + 1 .. of as many as the group has
 * items, to memory. */
static void write_result(digits *d, LLVMValueRef j, int n)
{
    emit *e = d->e;
    const plan_sort *p = d->p;
    sd_dtype t = p->type[p->out[d->result]];
    LLVMValueRef to[MOST_EACH], at[MOST_EACH], base, wanted;
    emit_value x[MOST_EACH];

    base = emit_mad(e, emit_over(e, d->row, p->inner_out),
                    p->keep * p->inner_out, emit_rest(e, d->row, p->inner_out));
    for (int i = 0; i < n; i++) {
        at[i] = emit_mad(e, emit_plus(e, j, i), e->k->group, e->lid);
        x[i] =
            emit_mem_read(e, t, emit_local_at(d->e, d->at.counters), at[i], 1);
        to[i] = destination(d, at[i]);
    }
    for (int i = 0; i < n; i++) {
        LLVMBasicBlockRef no;

        wanted = is_inside(d, at[i]);
        if (p->keep < p->n)
            wanted =
                emit_and(e, wanted, emit_below(e, to[i], emit_si(e, p->keep)));
        no = emit_when(e, wanted);
        emit_mem_write(e, t, e->slot[p->first_out + d->result],
                       emit_add(e, base, emit_times(e, to[i], p->inner_out)),
                       x[i]);
        emit_when_end(e, no);
    }
}

static void move_piece(digits *d)
{
    tally_all(d);
    place_digits(d);
    for_all(d, rank);
    emit_barrier(d->e); /* operands lie where counters did */
    for_all(d, put_digits);
    for (d->result = 0; d->result < d->p->nout; d->result++) {
        if (d->result)
            emit_barrier(d->e);
        for_all(d, put_operand);
        emit_barrier(d->e);
        for_all(d, write_result);
    }
}

static void find_piece(digits *d)
{
    emit *e = d->e;
    const plan_sort *p = d->p;
    int64_t n = plan_sort_pieces(p);
    LLVMValueRef at = e->slot[e->k->nslot - 1];

    d->row = emit_over(e, e->first, n);
    d->piece = emit_rest(e, e->first, n);
    d->first = emit_times(e, d->piece, p->piece);
    d->count = emit_smaller(e, emit_minus(e, emit_si(e, p->n), d->first),
                            emit_si(e, p->piece));
    d->numbers = e->slot[e->k->nslot - 2];
    d->shift = emit_mem_read(e, SD_S64, at, emit_si(e, 0), 1).re;
    d->s.in.base = emit_sort_base(e, d->row, p->n);
    d->team = emit_over(e, e->lid, p->team);
    d->member = emit_rest(e, e->lid, p->team);
}

void emit_digits(emit *e)
{
    const plan_sort *p = e->k->sort;
    digits d = {.e = e, .p = p, .digits = 1 << p->bits};

    assert(p->each <= MOST_EACH && (p->team == 1 || e->abi->vote));
    plan_digit_place(p, &d.at);
    if (p->step == PLAN_SORT_SUM) {
        d.numbers = e->slot[0];
        sum_numbers(&d);
        return;
    }
    find_piece(&d);
    if (p->step == PLAN_SORT_COUNT)
        count_piece(&d);
    else
        move_piece(&d);
}
