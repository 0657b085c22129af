/* GPU: sorting rows, or pieces of rows, that a team of items holds in registers
 * (plan_sort_items), where the comparator is an order by numbers.
 *
 * An element is its code and, of equal codes, its number in the row, so no two
 * are equal and any network sorts stably.  An item puts its few in order by
 * Batcher's merge exchange (Knuth, 5.2.2 M); then runs are merged two by two:
 * items leave theirs in local memory, find by bisection where their share of
 * the two runs begins (Green, McColl and Bader, "GPU Merge Path", 2012), and
 * take as many from there as they hold.  What moves is code and number alone;
 * at last each operand goes through local memory once, in the order of the
 * numbers.
 *
 * Elements are read so that neighbours are read by neighbours.  Behind the last
 * of a row stand codes of ones, whose numbers are larger than any other's. */
#include "emit_sort.h"

enum { MOST_EACH = 16 };

typedef struct { /* an element: its code, and its number in bits of the code
                    below it or (not NULL) apart */
    LLVMValueRef code, number;
} element;

typedef struct {
    emit *e;
    const plan_sort *p;
    plan_item_areas at;
    int64_t all; /* elements of a team */
    int each;
    LLVMTypeRef code;
    LLVMValueRef item, team; /* of the team; in the group */
    LLVMValueRef base; /* the team's first element in local memory */
    LLVMValueRef from, to; /* the row's first operand and result */
    LLVMValueRef first, count; /* of the piece in the row; how many there are */
    LLVMValueRef wanted; /* so many results are written */
    int64_t inner_out;
    LLVMValueRef number[MOST_EACH]; /* in order, of results by neighbours */
} sorter;

/* ---- elements ---- */

static bool is_apart(const sorter *s)
{
    return s->at.number_bytes != 0;
}

static LLVMValueRef is_less(sorter *s, element x, element y)
{
    LLVMBuilderRef b = s->e->b;
    LLVMValueRef less = LLVMBuildICmp(b, LLVMIntULT, x.code, y.code, ""), same;

    if (!is_apart(s))
        return less;
    same = LLVMBuildICmp(b, LLVMIntEQ, x.code, y.code, "");
    same = LLVMBuildAnd(
        b, same, LLVMBuildICmp(b, LLVMIntULT, x.number, y.number, ""), "");
    return LLVMBuildOr(b, less, same, "");
}

static element choose(sorter *s, LLVMValueRef c, element x, element y)
{
    element r = {emit_select(s->e, c, x.code, y.code), NULL};

    if (is_apart(s))
        r.number = emit_select(s->e, c, x.number, y.number);
    return r;
}

/* Where element i of the team lies: an element more after as many as a line of
 * banks has, since items put theirs one behind the other. */
static LLVMValueRef place(sorter *s, LLVMValueRef i)
{
    i = emit_sum(s->e, s->base, i);
    return emit_sum(s->e, i, emit_over(s->e, i, s->at.line));
}

static sd_dtype code_type(const sorter *s)
{
    return s->at.code_bytes == 4 ? SD_U32 : SD_U64;
}

static void put(sorter *s, LLVMValueRef i, element x)
{
    LLVMValueRef at = place(s, i);

    emit_mem_write(s->e, code_type(s), emit_local_at(s->e, 0), at,
                   (emit_value){x.code, NULL});
    if (is_apart(s))
        emit_mem_write(s->e, SD_U32, emit_local_at(s->e, s->at.numbers), at,
                       (emit_value){x.number, NULL});
}

static element get(sorter *s, LLVMValueRef i)
{
    LLVMValueRef at = place(s, i);
    element x = {
        emit_mem_read(s->e, code_type(s), emit_local_at(s->e, 0), at, 1).re,
        NULL};

    if (is_apart(s))
        x.number = emit_mem_read(s->e, SD_U32,
                                 emit_local_at(s->e, s->at.numbers), at, 1)
                       .re;
    return x;
}

static LLVMValueRef number_of(sorter *s, element x)
{
    emit *e = s->e;
    LLVMValueRef v = x.number;

    if (!is_apart(s))
        v = emit_and(
            e, x.code,
            emit_int_like(x.code, ((int64_t)1 << s->at.number_bits) - 1));
    return LLVMBuildIntCast2(e->b, v, e->si, false, "");
}

/* ---- from memory ---- */

/* Operand o of element i, or of the last. */
static emit_value operand(sorter *s, int o, LLVMValueRef i)
{
    emit *e = s->e;
    const plan_sort *p = s->p;

    i = emit_smaller(e, i, emit_plus(e, s->count, -1));
    if (p->in[o] < 0)
        return emit_place(e, p->type[o], emit_add(e, s->first, i));
    i = emit_times(e, i, p->inner);
    return emit_mem_read(e, p->type[o], e->slot[p->in[o]],
                         emit_add(e, s->from, i), 1);
}

static element read(sorter *s, LLVMValueRef i)
{
    emit *e = s->e;
    const plan_body *keys = s->p->keys;
    emit_value *arg = emit_values(e, keys->nparam);
    LLVMValueRef c, n, is_there = emit_below(e, i, s->count);

    plan_for_each_node(x, keys)
        if (x->kind == PN_PARAM)
            arg[x->out] = operand(s, x->out / 2, i);
    c = emit_sort_code(e, s->p, arg, s->code, 1);
    c = emit_select(e, is_there, c, LLVMConstAllOnes(s->code));
    if (is_apart(s))
        return (element){c, LLVMBuildIntCast2(e->b, i, e->i32, false, "")};
    n = LLVMBuildIntCast2(e->b, i, s->code, false, "");
    c = emit_shl(e, c, emit_int_like(c, s->at.number_bits));
    return (element){emit_or(e, c, n), NULL};
}

/* Element number j of those that an item has where neighbours have neighbours.
 */
static LLVMValueRef beside(sorter *s, int j)
{
    return emit_plus(s->e, s->item, (int64_t)j * s->p->team);
}

/* ---- in order ---- */

static void exchange(sorter *s, element *x, int i, int j)
{
    LLVMValueRef c = is_less(s, x[j], x[i]);
    element low = choose(s, c, x[j], x[i]), high = choose(s, c, x[i], x[j]);

    x[i] = low;
    x[j] = high;
}

static void sort_own(sorter *s, element *x, int n)
{
    int top = 1;

    while (2 * top < n)
        top *= 2;
    for (int p = top; n > 1 && p; p /= 2)
        for (int q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
            for (int i = 0; i + d < n; i++)
                if ((i & p) == r)
                    exchange(s, x, i, i + d);
            if (q == p)
                break;
        }
}

typedef struct {
    emit_runs runs;
    LLVMValueRef before; /* of both, so many are others' */
} share;

/* Whose runs, for emit_count_left. */
typedef struct {
    sorter *s;
    const share *r;
} asker;

static LLVMValueRef is_behind(void *ctx, LLVMValueRef left, LLVMValueRef right)
{
    const asker *a = ctx;
    emit *e = a->s->e;
    element x = get(a->s, emit_add(e, a->r->runs.start, left));

    return is_less(a->s, get(a->s, emit_add(e, a->r->runs.mid, right)), x);
}

/* How many of the left run are among those before the item's. */
static LLVMValueRef count_left(sorter *s, const share *r)
{
    asker a = {s, r};

    return emit_count_left(s->e, &r->runs, r->before, is_behind, &a);
}

/* The item's of the two runs, one after the other. */
static void take(sorter *s, const share *r, element *x)
{
    emit *e = s->e;
    LLVMValueRef last = emit_si(e, s->all - 1), n = count_left(s, r), c, one;
    LLVMValueRef i = emit_add(e, r->runs.start, n);
    LLVMValueRef j = emit_add(e, r->runs.mid, emit_minus(e, r->before, n));
    element left = get(s, emit_smaller(e, i, last));
    element right = get(s, emit_smaller(e, j, last)), next;

    for (int k = 0; k < s->each; k++) {
        c = emit_or(e, is_less(s, right, left),
                    emit_not(e, emit_below(e, i, r->runs.mid)));
        c = emit_and(e, c, emit_below(e, j, r->runs.end));
        x[k] = choose(s, c, right, left);
        if (k + 1 == s->each)
            break;
        one = emit_zext(e, c, e->si);
        j = emit_sum(e, j, one);
        i = emit_sum(e, i, emit_minus(e, emit_si(e, 1), one));
        next = get(s, emit_smaller(e, emit_select(e, c, j, i), last));
        left = choose(s, c, left, next);
        right = choose(s, c, next, right);
    }
}

static void merge(sorter *s, LLVMValueRef width, element *x)
{
    emit *e = s->e;
    LLVMValueRef own = emit_times(e, s->item, s->each), all, two;
    share r;

    all = emit_si(e, s->all);
    two = emit_shl(e, width, emit_si(e, 1));
    r.runs.start = emit_and(e, own, LLVMBuildNeg(e->b, two, ""));
    r.runs.mid = emit_smaller(e, emit_add(e, r.runs.start, width), all);
    r.runs.end = emit_smaller(e, emit_add(e, r.runs.start, two), all);
    r.before = emit_minus(e, own, r.runs.start);
    take(s, &r, x);
}

/* Items leave what they have where they would be if the row was in order. */
static void leave(sorter *s, LLVMValueRef const *code,
                  LLVMValueRef const *number)
{
    emit *e = s->e;
    LLVMValueRef own = emit_times(e, s->item, s->each);

    for (int j = 0; j < s->each; j++) {
        element x = {LLVMBuildLoad2(e->b, s->code, code[j], ""), NULL};

        if (is_apart(s))
            x.number = LLVMBuildLoad2(e->b, e->i32, number[j], "");
        put(s, emit_plus(e, own, j), x);
    }
    emit_barrier(e);
}

static void keep(sorter *s, const element *x, LLVMValueRef const *code,
                 LLVMValueRef const *number)
{
    for (int j = 0; j < s->each; j++) {
        emit_put(s->e, x[j].code, code[j]);
        if (is_apart(s))
            emit_put(s->e, x[j].number, number[j]);
    }
}

static void put_in_order(sorter *s)
{
    emit *e = s->e;
    LLVMValueRef code[MOST_EACH], number[MOST_EACH], width;
    element x[MOST_EACH];
    int runs = 0;
    emit_loop l;

    while ((int64_t)s->each << runs < s->all)
        runs++;
    for (int j = 0; j < s->each; j++) {
        x[j] = read(s, beside(s, j));
        code[j] = emit_alloca(e, s->code);
        number[j] = is_apart(s) ? emit_alloca(e, e->i32) : NULL;
    }
    sort_own(s, x, s->each);
    keep(s, x, code, number);
    if (runs) {
        emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, runs), 1);
        leave(s, code, number);
        width = emit_shl(e, emit_si(e, s->each), l.at);
        merge(s, width, x);
        keep(s, x, code, number);
        emit_barrier(e);
        emit_loop_close(e, &l);
    }
    leave(s, code, number);
    for (int j = 0; j < s->each; j++)
        s->number[j] = number_of(s, get(s, beside(s, j)));
}

/* ---- to memory ---- */

static void write(sorter *s, int result, int j, emit_value x)
{
    emit *e = s->e;
    LLVMValueRef i = beside(s, j);
    LLVMBasicBlockRef no = emit_when(e, emit_below(e, i, s->wanted));

    i = emit_add(e, s->to, emit_times(e, i, s->inner_out));
    emit_mem_write(e, s->p->type[s->p->out[result]],
                   e->slot[s->p->first_out + result], i, x);
    emit_when_end(e, no);
}

/* By way of local memory, where an element is read from any place as quickly as
 * from any other. */
static void write_result(sorter *s, int result)
{
    emit *e = s->e;
    int o = s->p->out[result];
    sd_dtype t = s->p->type[o];

    if (s->p->in[o] < 0) {
        for (int j = 0; j < s->each; j++)
            write(s, result, j,
                  emit_place(e, t, emit_add(e, s->first, s->number[j])));
        return;
    }
    emit_barrier(e); /* others read what lies there */
    for (int j = 0; j < s->each; j++)
        emit_mem_write(e, t, emit_local_at(s->e, 0),
                       emit_add(e, s->base, beside(s, j)),
                       operand(s, o, beside(s, j)));
    emit_barrier(e);
    for (int j = 0; j < s->each; j++)
        write(s, result, j,
              emit_mem_read(e, t, emit_local_at(s->e, 0),
                            emit_add(e, s->base, s->number[j]), 1));
}

/* ---- rows ---- */

/* Behind the last row there is nothing to write. */
static void find_row(sorter *s)
{
    emit *e = s->e;
    const plan_sort *p = s->p;
    LLVMValueRef r = emit_mad(e, e->first, plan_sort_abreast(p), s->team);
    LLVMValueRef is_row = emit_below(e, r, emit_si(e, p->rows));

    r = emit_smaller(e, r, emit_si(e, p->rows - 1));
    s->first = emit_si(e, 0);
    s->count = emit_si(e, p->n);
    s->from = emit_sort_base(e, r, p->n);
    s->to = emit_sort_base(e, r, p->keep);
    s->inner_out = p->inner;
    s->wanted = emit_select(e, is_row, emit_si(e, p->keep), emit_si(e, 0));
}

/* The results are rows of what is kept of each piece, side by side. */
static void find_piece(sorter *s)
{
    emit *e = s->e;
    const plan_sort *p = s->p;
    int64_t n = plan_sort_pieces(p), keep = SD_MIN(p->keep, p->piece);
    LLVMValueRef r = emit_over(e, e->first, n), at = emit_rest(e, e->first, n);

    s->first = emit_times(e, at, p->piece);
    s->count = emit_smaller(e, emit_minus(e, emit_si(e, p->n), s->first),
                            emit_si(e, p->piece));
    s->from = emit_add(e, emit_sort_base(e, r, p->n),
                       emit_times(e, s->first, p->inner));
    s->to = emit_mad(e, r, plan_sort_kept(p->n, p->piece, p->keep),
                     emit_times(e, at, keep));
    s->inner_out = 1;
    s->wanted = emit_smaller(e, s->count, emit_si(e, keep));
}

void emit_sort_items(emit *e)
{
    const plan_sort *p = e->k->sort;
    sorter s = {.e = e, .p = p, .each = p->each};

    assert(p->each <= MOST_EACH);
    plan_item_place(p, &s.at);
    s.code = s.at.code_bytes == 4 ? e->i32 : e->i64;
    s.all = (int64_t)p->each * p->team;
    s.team = emit_over(e, e->lid, p->team);
    s.item = emit_rest(e, e->lid, p->team);
    s.base = emit_times(e, s.team, s.all);
    if (p->step == PLAN_SORT_TILES)
        find_piece(&s);
    else
        find_row(&s);
    put_in_order(&s);
    for (int i = 0; i < p->nout; i++)
        write_result(&s, i);
}
