/* Sorting rows of elements that move together.  Here: by any comparator, with
 * bottom-up merge sort, which is stable; the host sorts by keys where it can
 * (emit_sort_keys.c).  Two buffers take turns, the row's work space and the
 * result, or a second work space where the result has not all of the operands
 * or not all of the row.  The number of passes is known here, so it is known
 * which of them comes last.
 *
 * Host: a row a tile; runs of 8 by insertion, then merging without branches on
 * data.  GPU: a row a work group; an element's place in a merged run is its
 * own number in its run plus how many of the other run come before it,
 * found by bisection, so all items work in each pass.
 *
 * A work space holds n elements of each operand, the widest type first: on the
 * host `scratch`; on a GPU the last slot (rows * scratch bytes) where the plan
 * gives one, else local memory. */
#include "emit_sort.h"

enum { RUN = 8 };

/* ---- items ---- */

static LLVMValueRef place_of(emit_sorter *s, const emit_sort_row *r,
                             LLVMValueRef i)
{
    emit *e = s->e;

    if (r->stride != 1)
        i = emit_product(e, i, emit_si(e, r->stride));
    return r->base ? emit_sum(e, r->base, i) : i;
}

emit_value emit_place(emit *e, sd_dtype t, LLVMValueRef i)
{
    LLVMTypeRef want = emit_widen(e->i64, emit_width(i));

    i = LLVMBuildIntCast2(e->b, i, want, true, "");
    return emit_convert(e, (emit_value){i, NULL}, SD_S64, t);
}

emit_item emit_sort_read(emit_sorter *s, const emit_sort_row *r, LLVMValueRef i)
{
    LLVMValueRef at = place_of(s, r, i);
    emit_item x = emit_values(s->e, s->s->nop);

    if (r->first)
        i = emit_sum(s->e, r->first, i);
    for (int o = 0; o < s->s->nop; o++)
        x[o] = r->p[o] ? emit_mem_read(s->e, s->type[o], r->p[o], at, 1)
                       : emit_place(s->e, s->type[o], i);
    return x;
}

static void write_item(emit_sorter *s, const emit_sort_row *r, LLVMValueRef i,
                       emit_item x)
{
    LLVMValueRef at = place_of(s, r, i);

    for (int o = 0; o < s->s->nop; o++)
        emit_mem_write(s->e, s->type[o], r->p[o], at, x[o]);
}

emit_item emit_sort_choose(emit_sorter *s, LLVMValueRef c, emit_item x,
                           emit_item y)
{
    emit_item r = emit_values(s->e, s->s->nop);

    for (int o = 0; o < s->s->nop; o++)
        r[o] = emit_select_value(s->e, c, x[o], y[o]);
    return r;
}

LLVMValueRef emit_sort_less(emit_sorter *s, emit_item x, emit_item y)
{
    emit_value *arg = emit_values(s->e, 2 * s->s->nop), root[1];

    for (int o = 0; o < s->s->nop; o++) {
        arg[2 * o] = x[o];
        arg[2 * o + 1] = y[o];
    }
    emit_body(s->e, s->s->less, arg, root);
    return root[0].re;
}

/* ---- host ---- */

/* to[start, end) = from[start, end) in order. */
static void insert_run(emit_sorter *s, const emit_sort_row *from,
                       const emit_sort_row *to, LLVMValueRef start,
                       LLVMValueRef end)
{
    emit *e = s->e;
    LLVMBasicBlockRef look;
    LLVMValueRef at, before;
    emit_while w;
    emit_loop l;
    emit_item x, y;

    emit_loop_open(e, &l, start, end, 1);
    x = emit_sort_read(s, from, l.at);
    at = emit_variable(e, l.at);
    w = emit_while_begin(e);
    look = emit_block(e, "look");
    LLVMBuildCondBr(e->b, emit_below(e, start, emit_get(e, at)), look, w.done);
    LLVMPositionBuilderAtEnd(e->b, look);
    before = emit_plus(e, emit_get(e, at), -1);
    y = emit_sort_read(s, to, before);
    emit_while_test(e, &w, emit_sort_less(s, x, y));
    write_item(s, to, emit_get(e, at), y);
    emit_put(e, before, at);
    emit_while_end(e, &w);
    write_item(s, to, emit_get(e, at), x);
    emit_loop_close(e, &l);
}

static void insert_runs(emit_sorter *s, const emit_sort_row *from,
                        const emit_sort_row *to)
{
    emit *e = s->e;
    emit_loop l;

    emit_loop_open(e, &l, emit_si(e, 0), s->count, RUN);
    insert_run(s, from, to, l.at,
               emit_smaller(e, emit_plus(e, l.at, RUN), s->count));
    emit_loop_close(e, &l);
}

static void copy_rest(emit_sorter *s, const emit_sort_row *from,
                      const emit_sort_row *to, LLVMValueRef i, LLVMValueRef end,
                      LLVMValueRef k)
{
    emit *e = s->e;
    emit_while w = emit_while_begin(e);
    emit_item x;

    emit_while_test(e, &w, emit_below(e, emit_get(e, i), end));
    x = emit_sort_read(s, from, emit_get(e, i));
    write_item(s, to, emit_get(e, k), x);
    emit_put(e, emit_plus(e, emit_get(e, i), 1), i);
    emit_put(e, emit_plus(e, emit_get(e, k), 1), k);
    emit_while_end(e, &w);
}

/* from[lo, mid) and from[mid, hi) to to[lo, hi); of equals the left first. */
static void merge_two(emit_sorter *s, const emit_sort_row *from,
                      const emit_sort_row *to, LLVMValueRef lo,
                      LLVMValueRef mid, LLVMValueRef hi)
{
    emit *e = s->e;
    LLVMValueRef i = emit_variable(e, lo), j = emit_variable(e, mid);
    LLVMValueRef k = emit_variable(e, lo), right, left;
    emit_while w = emit_while_begin(e);
    emit_item x, y;

    emit_while_test(e, &w,
                    emit_and(e, emit_below(e, emit_get(e, i), mid),
                             emit_below(e, emit_get(e, j), hi)));
    x = emit_sort_read(s, from, emit_get(e, i));
    y = emit_sort_read(s, from, emit_get(e, j));
    right = emit_sort_less(s, y, x);
    x = emit_sort_choose(s, right, y, x);
    write_item(s, to, emit_get(e, k), x);
    left = emit_zext(e, emit_not(e, right), e->si);
    right = emit_zext(e, right, e->si);
    emit_put(e, emit_sum(e, emit_get(e, i), left), i);
    emit_put(e, emit_sum(e, emit_get(e, j), right), j);
    emit_put(e, emit_plus(e, emit_get(e, k), 1), k);
    emit_while_end(e, &w);
    copy_rest(s, from, to, i, mid, k);
    copy_rest(s, from, to, j, hi, k);
}

static void host_pass(emit_sorter *s, const emit_sort_row *from,
                      const emit_sort_row *to, LLVMValueRef width)
{
    emit *e = s->e;
    LLVMValueRef n = s->count, lo = emit_variable(e, emit_si(e, 0));
    LLVMValueRef start, mid, hi;
    emit_while w = emit_while_begin(e);

    emit_while_test(e, &w, emit_below(e, emit_get(e, lo), n));
    start = emit_get(e, lo);
    mid = emit_smaller(e, emit_sum(e, start, width), n);
    hi = emit_smaller(e, emit_sum(e, mid, width), n);
    merge_two(s, from, to, start, mid, hi);
    emit_put(e, hi, lo);
    emit_while_end(e, &w);
}

/* ---- GPU ---- */

/* How many of from[lo, hi) come before x; x stands to their left? */
static LLVMValueRef count_before(emit_sorter *s, const emit_sort_row *from,
                                 emit_item x, LLVMValueRef is_left,
                                 LLVMValueRef lo, LLVMValueRef hi)
{
    emit *e = s->e;
    LLVMValueRef a = emit_variable(e, lo), b = emit_variable(e, hi), m, c;
    emit_while w = emit_while_begin(e);
    emit_item y, p, q;

    emit_while_test(e, &w, emit_below(e, emit_get(e, a), emit_get(e, b)));
    m = emit_sum(e, emit_get(e, a), emit_get(e, b));
    m = emit_shr(e, m, emit_si(e, 1));
    y = emit_sort_read(s, from, m);
    p = emit_sort_choose(s, is_left, y, x);
    q = emit_sort_choose(s, is_left, x, y);
    /* left: those less than x; right: those that x is not less than */
    c = emit_xor(e, emit_sort_less(s, p, q), emit_not(e, is_left));
    emit_put(e, emit_select(e, c, emit_plus(e, m, 1), emit_get(e, a)), a);
    emit_put(e, emit_select(e, c, emit_get(e, b), m), b);
    emit_while_end(e, &w);
    return emit_minus(e, emit_get(e, a), lo);
}

static void gpu_pass(emit_sorter *s, const emit_sort_row *from,
                     const emit_sort_row *to, LLVMValueRef width)
{
    emit *e = s->e;
    LLVMValueRef n = s->count, run, other, end, pos, is_left, at;
    emit_loop l;
    emit_item x;

    emit_loop_open(e, &l, e->lid, n, e->k->group);
    run = emit_udiv(e, l.at, width);
    pos = emit_minus(e, l.at, emit_product(e, run, width));
    is_left = emit_equal(e, emit_and(e, run, emit_si(e, 1)), emit_si(e, 0));
    other = emit_product(e, emit_xor(e, run, emit_si(e, 1)), width);
    other = emit_smaller(e, other, n);
    end = emit_smaller(e, emit_sum(e, other, width), n);
    x = emit_sort_read(s, from, l.at);
    at = emit_product(e, emit_and(e, run, emit_si(e, -2)), width);
    at = emit_sum(e, at, pos);
    at = emit_sum(e, at, count_before(s, from, x, is_left, other, end));
    write_item(s, to, at, x);
    emit_loop_close(e, &l);
    emit_fence(e, EMIT_LOCAL | EMIT_GLOBAL);
}

/* The first `count` elements, of those operands that are wanted; base: where
 * the results begin, stride: from one to the next. */
static void copy_out(emit_sorter *s, const emit_sort_row *from,
                     LLVMValueRef count, LLVMValueRef base, int64_t stride)
{
    emit *e = s->e;
    const plan_sort *sort = s->s;
    emit_loop l;

    emit_loop_open(e, &l, e->gpu ? e->lid : emit_si(e, 0), count,
                   e->gpu ? e->k->group : 1);
    for (int i = 0; i < sort->nout; i++) {
        int o = sort->out[i];
        LLVMValueRef p = e->slot[sort->first_out + i];
        emit_sort_row to = {.p = &p, .base = base, .stride = stride};
        emit_value x = from->p[o] ? emit_mem_read(e, s->type[o], from->p[o],
                                                  place_of(s, from, l.at), 1)
                                  : emit_place(e, s->type[o], l.at);

        emit_mem_write(e, s->type[o], p, place_of(s, &to, l.at), x);
    }
    emit_loop_close(e, &l);
}

/* ---- passes ---- */

static void one_pass(emit_sorter *s, const emit_sort_row *from,
                     const emit_sort_row *to, LLVMValueRef width)
{
    if (s->e->gpu)
        gpu_pass(s, from, to, width);
    else
        host_pass(s, from, to, width);
}

/* The rest after the first: work to other once where their number is odd,
 * then there and back. */
static void more_passes(emit_sorter *s, int passes, int64_t width)
{
    emit *e = s->e;
    LLVMValueRef w;
    emit_loop l;

    if (passes % 2) {
        one_pass(s, &s->work, &s->other, emit_si(e, width));
        width *= 2;
    }
    if (passes < 2)
        return;
    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, passes / 2 * 2), 2);
    w = emit_shl(e, emit_si(e, width), l.at);
    one_pass(s, &s->other, &s->work, w);
    one_pass(s, &s->work, &s->other, emit_shl(e, w, emit_si(e, 1)));
    emit_loop_close(e, &l);
}

/* result: where the first `keep` of the row's results begin in their slots, and
 * how far it is from one to the next. */
static void sort_row(emit_sorter *s, LLVMValueRef keep, LLVMValueRef result,
                     int64_t stride)
{
    int64_t width = s->e->gpu ? 1 : RUN;
    int passes = 0;

    while (width << passes < s->n)
        passes++;
    if (!s->e->gpu) {
        insert_runs(s, &s->in, passes % 2 ? &s->work : &s->other);
        more_passes(s, passes, RUN);
    } else if (passes == 0) {
        copy_out(s, &s->in, keep, result, stride);
        return;
    } else {
        gpu_pass(s, &s->in, passes % 2 ? &s->other : &s->work,
                 emit_si(s->e, 1));
        more_passes(s, passes - 1, 2);
    }
    if (!s->full)
        copy_out(s, &s->other, keep, result, stride);
}

/* ---- rows ---- */

static size_t work_bytes(const emit_sorter *s)
{
    size_t each = 0;

    for (int o = 0; o < s->s->nop; o++)
        each += sd_dtype_bytes(s->type[o]);
    return (each * (size_t)s->n + 63) & ~(size_t)63;
}

/* Widest types first, so that all are aligned. */
static emit_sort_row place_work(emit_sorter *s, LLVMValueRef p, size_t at)
{
    emit *e = s->e;
    emit_sort_row r = {.p = sd_arena_array(e->a, LLVMValueRef, s->s->nop),
                       .stride = 1};

    for (size_t bytes = 16; bytes; bytes /= 2)
        for (int o = 0; o < s->s->nop; o++) {
            LLVMValueRef off = emit_i64(e, (int64_t)at);

            if (sd_dtype_bytes(s->type[o]) != bytes)
                continue;
            r.p[o] = LLVMBuildGEP2(e->b, e->i8, p, &off, 1, "");
            at += bytes * (size_t)s->n;
        }
    return r;
}

static LLVMValueRef work_space(emit_sorter *s, LLVMValueRef r)
{
    emit *e = s->e;
    int slot = s->s->first_out + s->s->nout;
    LLVMValueRef off;

    if (e->k->nslot <= slot)
        return e->local;
    off = emit_product(e, LLVMBuildZExtOrBitCast(e->b, r, e->i64, ""),
                       emit_i64(e, (int64_t)s->s->scratch));
    return LLVMBuildGEP2(e->b, e->i8, e->slot[slot], &off, 1, "");
}

/* Element 0 of row r in an array of so many elements a row. */
LLVMValueRef emit_sort_base(emit *e, LLVMValueRef r, int64_t n)
{
    LLVMValueRef inner = emit_si(e, e->k->sort->inner), base;

    base = emit_udiv(e, r, inner);
    base = emit_product(e, base, emit_si(e, n * e->k->sort->inner));
    return emit_sum(e, base, emit_urem(e, r, inner));
}

/* Row r as the slots of the operands have it. */
static emit_sort_row operands(emit_sorter *s, LLVMValueRef r)
{
    emit *e = s->e;
    const plan_sort *sort = s->s;
    emit_sort_row in = {.base = emit_sort_base(e, r, sort->n),
                        .stride = sort->inner};

    in.p = sd_arena_array(e->a, LLVMValueRef, sort->nop);
    for (int o = 0; o < sort->nop; o++)
        in.p[o] = sort->in[o] < 0 ? NULL : e->slot[sort->in[o]];
    return in;
}

static void one_row(emit_sorter *s, LLVMValueRef r)
{
    emit *e = s->e;
    const plan_sort *sort = s->s;
    LLVMValueRef work = work_space(s, r);

    s->in = operands(s, r);
    s->count = emit_si(e, s->n);
    s->work = place_work(s, work, 0);
    s->other = (emit_sort_row){.p = e->slot + sort->first_out,
                               .base = s->in.base,
                               .stride = sort->inner};
    if (!s->full)
        s->other = place_work(s, work, work_bytes(s));
    sort_row(s, emit_si(e, sort->keep), emit_sort_base(e, r, sort->keep),
             sort->inner);
}

/* Piece number `at` of all rows; the results are rows side by side. */
static void one_piece(emit_sorter *s, LLVMValueRef at)
{
    emit *e = s->e;
    const plan_sort *sort = s->s;
    int64_t n = (sort->n + sort->piece - 1) / sort->piece;
    int64_t keep = SD_MIN(sort->keep, sort->piece);
    int64_t row = plan_sort_kept(sort->n, sort->piece, sort->keep);
    LLVMValueRef r = emit_udiv(e, at, emit_si(e, n)), first, result;

    at = emit_urem(e, at, emit_si(e, n));
    first = emit_product(e, at, emit_si(e, sort->piece));
    s->n = sort->piece;
    s->count = emit_smaller(e, emit_minus(e, emit_si(e, sort->n), first),
                            emit_si(e, sort->piece));
    s->in = operands(s, r);
    s->in.base = emit_sum(e, s->in.base,
                          emit_product(e, first, emit_si(e, sort->inner)));
    s->in.first = first;
    s->work = place_work(s, e->local, 0);
    s->other = place_work(s, e->local, work_bytes(s));
    result = emit_product(e, r, emit_si(e, row));
    result = emit_sum(e, result, emit_product(e, at, emit_si(e, keep)));
    sort_row(s, emit_smaller(e, s->count, emit_si(e, keep)), result, 1);
}

void emit_sort(emit *e)
{
    const plan_sort *sort = e->k->sort;
    emit_sorter s = {.e = e, .s = sort, .n = sort->n, .type = sort->type};
    size_t bytes = plan_sort_bytes(sort, !e->gpu);
    emit_loop l;

    if (sort->scratch < bytes) {
        emit_fail(e, sd_error(SD_INTERNAL,
                              "a sort needs %zu bytes of work space, the plan "
                              "gives %zu",
                              bytes, sort->scratch));
        return;
    }
    s.full = sort->step == PLAN_SORT_ROWS && plan_sort_is_full(sort);
    if (plan_sort_has_items(sort)) {
        emit_sort_items(e);
        return;
    }
    if (sort->step == PLAN_SORT_TILES) {
        one_piece(&s, e->first);
        return;
    }
    if (sort->step == PLAN_SORT_MERGE) {
        emit_merge(e);
        return;
    }
    if (plan_sort_has_digits(sort)) {
        emit_digits(e);
        return;
    }
    if (e->gpu) {
        one_row(&s, e->first);
        return;
    }
    emit_loop_open(e, &l, e->first, e->last, 1);
    if (sort->keys)
        emit_sort_row_by_keys(e, l.at);
    else
        one_row(&s, l.at);
    emit_loop_close(e, &l);
}
