/* Merging runs of rows, two by two, on a GPU.  Each item makes a few results
 * that are neighbours.  How many elements of the left run are among those
 * before its first result is found by bisection (Green, McColl and Bader, "GPU
 * Merge Path", 2012), and so where in both runs it begins; from there it takes
 * the smaller one of two elements after the other, of equals the left one. */
#include "emit_sort.h"

typedef struct {
    emit_sorter s;
    emit_sort_row from;         /* the row, as the operands have it */
    emit_runs runs;             /* in the row */
    LLVMValueRef first;         /* result of the item, in the row */
} merger;

static LLVMValueRef run_length(emit *e)
{
    const plan_sort *s = e->k->sort;
    LLVMValueRef p = e->slot[s->first_out + s->nout];

    return LLVMBuildIntCast2(e->b,
                             emit_mem_read(e, SD_S64, p, emit_si(e, 0), 1).re,
                             e->si, true, "");
}

static void find_runs(merger *m)
{
    emit *e = m->s.e;
    LLVMValueRef n = emit_si(e, m->s.n), width = run_length(e), two;

    two = emit_sum(e, width, width);
    m->runs.start = emit_udiv(e, m->first, two);
    m->runs.start = emit_product(e, m->runs.start, two);
    m->runs.mid = emit_smaller(e, emit_sum(e, m->runs.start, width), n);
    m->runs.end = emit_smaller(e, emit_sum(e, m->runs.start, two), n);
}

LLVMValueRef emit_count_left(emit *e, const emit_runs *r, LLVMValueRef before,
                             emit_is_behind is_behind, void *ctx)
{
    LLVMValueRef left = emit_minus(e, r->mid, r->start);
    LLVMValueRef right = emit_minus(e, r->end, r->mid);
    LLVMValueRef a, b, at, other, c;
    emit_while w;

    a = emit_variable(
        e, emit_larger(e, emit_minus(e, before, right), emit_si(e, 0)));
    b = emit_variable(e, emit_smaller(e, before, left));
    w = emit_while_begin(e);
    emit_while_test(e, &w, emit_below(e, emit_get(e, a), emit_get(e, b)));
    at = emit_sum(e, emit_get(e, a), emit_get(e, b));
    at = emit_shr(e, at, emit_si(e, 1));
    other = emit_minus(e, emit_plus(e, before, -1), at);
    c = is_behind(ctx, at, other);
    emit_put(e, emit_select(e, c, emit_get(e, a), emit_plus(e, at, 1)), a);
    emit_put(e, emit_select(e, c, at, emit_get(e, b)), b);
    emit_while_end(e, &w);
    return emit_get(e, a);
}

static LLVMValueRef is_behind(void *ctx, LLVMValueRef left, LLVMValueRef right)
{
    merger *m = ctx;
    emit *e = m->s.e;
    emit_item x =
        emit_sort_read(&m->s, &m->from, emit_sum(e, m->runs.start, left));
    emit_item y =
        emit_sort_read(&m->s, &m->from, emit_sum(e, m->runs.mid, right));

    return emit_sort_less(&m->s, y, x);
}

/* Variables of an item. */
static emit_value *keep_item(emit_sorter *s, emit_item x)
{
    emit_value *at = emit_values(s->e, s->s->nop);

    for (int o = 0; o < s->s->nop; o++)
        at[o] = emit_value_variable(s->e, x[o]);
    return at;
}

static void set_item(emit_sorter *s, const emit_value *at, emit_item x)
{
    for (int o = 0; o < s->s->nop; o++)
        emit_value_set(s->e, at[o], NULL, x[o]);
}

static emit_item get_item(emit_sorter *s, const emit_value *at)
{
    emit_item x = emit_values(s->e, s->s->nop);

    for (int o = 0; o < s->s->nop; o++)
        x[o] =
            emit_value_get(s->e, LLVMGetAllocatedType(at[o].re), at[o], NULL);
    return x;
}

/* What of x is wanted, as result number i of the row. */
static void put_result(merger *m, LLVMValueRef base, LLVMValueRef i,
                       emit_item x)
{
    emit *e = m->s.e;
    const plan_sort *s = m->s.s;

    i = emit_product(e, i, emit_si(e, s->inner));
    i = emit_sum(e, base, i);
    for (int k = 0; k < s->nout; k++)
        emit_mem_write(e, m->s.type[s->out[k]], e->slot[s->first_out + k], i,
                       x[s->out[k]]);
}

/* Element i of the row; where a run ends any will do. */
static emit_item read_inside(merger *m, LLVMValueRef i)
{
    emit *e = m->s.e;

    return emit_sort_read(&m->s, &m->from,
                          emit_smaller(e, i, emit_si(e, m->s.n - 1)));
}

/* Results first .. last of the row, from element i of the left run and j of the
 * right one on: one element is read for each that is written. */
static void merge(merger *m, LLVMValueRef base, LLVMValueRef i, LLVMValueRef j,
                  LLVMValueRef last)
{
    emit *e = m->s.e;
    emit_value *left = keep_item(&m->s, read_inside(m, i));
    emit_value *right = keep_item(&m->s, read_inside(m, j));
    LLVMValueRef next, c, one;
    emit_item x, y, z;
    emit_loop l;

    i = emit_variable(e, i);
    j = emit_variable(e, j);
    emit_loop_open(e, &l, m->first, last, 1);
    x = get_item(&m->s, left);
    y = get_item(&m->s, right);
    /* the right one, if it is less or there is no left one */
    c = emit_or(e, emit_sort_less(&m->s, y, x),
                emit_not(e, emit_below(e, emit_get(e, i), m->runs.mid)));
    c = emit_and(e, c, emit_below(e, emit_get(e, j), m->runs.end));
    put_result(m, base, l.at, emit_sort_choose(&m->s, c, y, x));
    one = emit_zext(e, c, e->si);
    emit_put(e, emit_sum(e, emit_get(e, j), one), j);
    one = emit_minus(e, emit_si(e, 1), one);
    emit_put(e, emit_sum(e, emit_get(e, i), one), i);
    next = emit_select(e, c, emit_get(e, j), emit_get(e, i));
    z = read_inside(m, next);
    set_item(&m->s, left, emit_sort_choose(&m->s, c, x, z));
    set_item(&m->s, right, emit_sort_choose(&m->s, c, z, y));
    emit_loop_close(e, &l);
}

void emit_merge(emit *e)
{
    const plan_sort *s = e->k->sort;
    int64_t each = (int64_t)e->k->group * s->each;
    LLVMValueRef tiles = emit_si(e, (s->keep + each - 1) / each), r, i, before;
    merger m = {.s = {.e = e, .s = s, .n = s->n, .type = s->type}};
    LLVMValueRef last;

    r = emit_udiv(e, e->first, tiles);
    m.first = emit_product(e, emit_urem(e, e->first, tiles), emit_si(e, each));
    m.first =
        emit_sum(e, m.first, emit_product(e, e->lid, emit_si(e, s->each)));
    m.first = emit_smaller(e, m.first, emit_si(e, s->keep));
    last = emit_smaller(e, emit_plus(e, m.first, s->each), emit_si(e, s->keep));
    m.from = (emit_sort_row){.p = e->slot,
                             .base = emit_product(e, r, emit_si(e, s->n)),
                             .stride = 1};
    find_runs(&m);
    before = emit_minus(e, m.first, m.runs.start);
    i = emit_count_left(e, &m.runs, before, is_behind, &m);
    before = emit_minus(e, before, i);
    merge(&m, emit_sort_base(e, r, s->keep), emit_sum(e, m.runs.start, i),
          emit_sum(e, m.runs.mid, before), last);
}
