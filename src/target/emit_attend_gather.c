/* Attention by sub-groups of 8 items that bring q, k and v themselves, where no
 * message reads a block of a matrix (plan_attend.h).  A sub-group has 8 or 16
 * rows, as eights; of a product its item i has column i of every eight: a key's
 * scores, or a column of the result.
 *
 *   q      eights of rows in local memory, for each step of the depth those
 *          words that an instruction takes, of which a message reads a block
 *   k      an item reads a key's part of a step, 32 bytes: a right operand
 *   v      lies turned, keys last: an item reads a column's part of a step
 *
 * Behind the last column of q and k there are zeros up to a whole step; in
 * place of a key that is not there the last one again, of which nobody takes a
 * score, and v has zeros for it.
 *
 * Scores are taken as in emit_attend_read.c: numbers of rows are a row an item,
 * of each eight its own, and the scores of two eights of keys, rounded, are a
 * left operand as they lie. */
#include <math.h>

#include "emit_attend_blocks.h"

enum {
    ROWS = ATTEND_HALF,
    BYTES = 32, /* of a row or a column, that an instruction takes */
    WORD = 4,
    STEP = BYTES / 2, /* numbers that these are */
    BLOCK = ROWS * BYTES
};

typedef struct {
    attending t;
    int halves; /* eights of rows */
    int keys, turns,
        columns; /* of a block, in eights; steps of d; eights of e */
    LLVMValueRef q; /* byte of local memory where its rows begin */
    LLVMValueRef k, v; /* where the item's part of the first eight is */
    emit_own_sum *sum; /* halves of columns of the result */
    emit_own_sum *part; /* halves of the rows' sums of what the item has */
    LLVMValueRef most[HALVES]; /* variables: the largest score of its row */
} gatherer;

/* `run` and `near` are given what is the first thing of a gatherer. */
static gatherer *gatherer_of(attending *t)
{
    return (gatherer *)t;
}

/* ---- operands ---- */

static LLVMValueRef row_of(gatherer *d, int h, int r)
{
    return emit_plus(d->t.e, d->t.first, h * ROWS + r);
}

/* Columns that a step has of q and k. */
static int columns_in(const gatherer *d, int turn)
{
    return SD_MIN(STEP, (int)d->t.a->of.extent[HLO_ATTEND_D] - turn * STEP);
}

/* Does a row of q have the item's word of a step?  NULL: it has all. */
static LLVMValueRef has_word(gatherer *d, int turn)
{
    emit *e = d->t.e;
    int n = columns_in(d, turn);

    return n < STEP ? emit_below(e, d->t.mate, emit_si(e, n / 2)) : NULL;
}

/* Copies the sub-group's rows of q; in place of those that are not there the
 * last one again. */
static void copy_q(gatherer *d)
{
    attending *t = &d->t;
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    emit_loop l;
    LLVMValueRef at, to;

    emit_loop_open(e, &l, emit_si(e, 0), emit_si(e, d->halves * ROWS), 1);
    at = emit_smaller(e, emit_add(e, t->first, l.at),
                      emit_si(e, of->extent[HLO_ATTEND_Q] - 1));
    at = emit_mad(e, at, of->stride[OF_Q][HLO_ATTEND_Q],
                  emit_times(e, t->mate, 2));
    to = emit_mad(e, t->mate, WORD, emit_mad(e, l.at, BYTES, d->q));
    for (int turn = 0; turn < d->turns; turn++) {
        LLVMValueRef there = has_word(d, turn), from, v;

        from = emit_plus(e, at, turn * STEP);
        if (there)
            from = emit_select(e, there, from, at);
        v = LLVMBuildLoad2(e->b, e->i32,
                           emit_element(e, SD_BF16, t->base[OF_Q], from), "");
        LLVMSetAlignment(v, WORD);
        if (there)
            v = emit_select(e, there, v, LLVMConstNull(e->i32));
        LLVMBuildStore(
            e->b, v, emit_local(e, emit_plus(e, to, turn * d->halves * BLOCK)));
    }
    emit_loop_close(e, &l);
    emit_barrier(e);
}

static LLVMValueRef read_q(gatherer *d, int turn, int h)
{
    emit *e = d->t.e;
    LLVMValueRef at = emit_plus(e, d->q, (turn * d->halves + h) * BLOCK);

    return e->abi->attend->local_rows(e, emit_local(e, at));
}

/* What the item reads of an eight of keys or columns, of which a step has so
 * many numbers, and zeros behind them. */
static LLVMValueRef read_words(gatherer *d, LLVMValueRef p, int64_t elements,
                               int numbers)
{
    emit *e = d->t.e;
    int lane[ROWS], n = numbers / 2;
    LLVMValueRef v;

    p = emit_behind(e, e->i8, p,
                    emit_si(e, elements * (int64_t)sizeof(uint16_t)));
    v = LLVMBuildLoad2(e->b, LLVMVectorType(e->i32, (unsigned)n), p, "");
    LLVMSetAlignment(v, WORD);
    for (int i = 0; i < ROWS; i++)
        lane[i] = SD_MIN(i, n);
    return n == ROWS
               ? v
               : emit_shuffle(e, v, LLVMConstNull(LLVMTypeOf(v)), lane, ROWS);
}

static LLVMValueRef item_base(gatherer *d, int array, int axis)
{
    emit *e = d->t.e;

    return emit_element(
        e, SD_BF16, d->t.base[array],
        emit_times(e, d->t.mate, d->t.a->of.stride[array][axis]));
}

static LLVMValueRef base_of_block(gatherer *d, LLVMValueRef item, int array,
                                  LLVMValueRef block)
{
    emit *e = d->t.e;

    return emit_element(
        e, SD_BF16, item,
        emit_times(e, block,
                   d->t.a->keys * d->t.a->of.stride[array][HLO_ATTEND_K]));
}

/* ---- a block ---- */

/* Where the item's key of each of the block's eights lies: in place of one that
 * is not there the last one. */
static void find_keys(gatherer *d, LLVMValueRef block, LLVMValueRef *base)
{
    emit *e = d->t.e;
    const plan_attend *a = d->t.a;
    int64_t n = a->of.extent[HLO_ATTEND_K],
            pitch = a->of.stride[OF_K][HLO_ATTEND_K];
    LLVMValueRef at, key = emit_mad(e, block, a->keys, d->t.mate);

    base[0] = base_of_block(d, d->k, OF_K, block);
    for (int i = 0; i < d->keys; i++) {
        if (n % a->keys == 0) {
            base[i] =
                emit_element(e, SD_BF16, base[0], emit_si(e, i * ROWS * pitch));
            continue;
        }
        at = emit_smaller(e, emit_plus(e, key, i * ROWS), emit_si(e, n - 1));
        base[i] =
            emit_element(e, SD_BF16, d->t.base[OF_K], emit_times(e, at, pitch));
    }
}

/* Products of q's rows and the block's keys: s[halves * i + h] is of the keys'
 * eight number i. */
static void multiply_keys(gatherer *d, LLVMValueRef block, LLVMValueRef *s)
{
    emit *e = d->t.e;
    LLVMValueRef from[ATTEND_TOGETHER];

    find_keys(d, block, from);
    for (int i = 0; i < d->halves * d->keys; i++)
        s[i] = LLVMConstNull(attend_rows_type(e));
    for (int turn = 0; turn < d->turns; turn++) {
        LLVMValueRef q[HALVES], y[ATTEND_TOGETHER];

        for (int i = 0; i < d->keys; i++)
            y[i] = read_words(d, from[i], turn * STEP, columns_in(d, turn));
        for (int h = 0; h < d->halves; h++)
            q[h] = read_q(d, turn, h);
        for (int i = 0; i < d->halves * d->keys; i++)
            s[i] = e->abi->attend->product(e, q[i % d->halves],
                                           y[i / d->halves], s[i]);
    }
}

/* Products become scores; returns of half h the largest of each row that the
 * item has. */
static LLVMValueRef mask_scores(gatherer *d, LLVMValueRef block, int h,
                                LLVMValueRef *s)
{
    emit *e = d->t.e;
    LLVMValueRef key = emit_mad(e, block, d->t.a->keys, d->t.mate),
                 most = LLVMGetPoison(attend_rows_type(e));

    for (int r = 0; r < ROWS; r++) {
        LLVMValueRef row = row_of(d, h, r), m = NULL;

        for (int i = 0; i < d->keys; i++) {
            LLVMValueRef *v = &s[d->halves * i + h], one;

            one = attend_score(&d->t, attend_of_vector(e, *v, r), row,
                               emit_plus(e, key, i * ROWS));
            *v = attend_in_vector(e, *v, one, r);
            m = m ? attend_larger(e, m, one) : one;
        }
        most = attend_in_vector(e, most, m, r);
    }
    return most;
}

/* The largest score so far of the item's row of half h; *by: what the row's
 * sums shrink by.  Returns what scores are taken from (see emit_attend.c). */
static LLVMValueRef take_most(gatherer *d, int h, LLVMValueRef most,
                              LLVMValueRef *by)
{
    emit *e = d->t.e;
    LLVMValueRef before = attend_get(e, d->most[h]), from;

    most = attend_larger(e, before, e->abi->attend->of_rows(e, most, false));
    LLVMBuildStore(e->b, most, d->most[h]);
    from = emit_select(
        e, LLVMBuildFCmp(e->b, LLVMRealOEQ, most, attend_f32(e, -INFINITY), ""),
        attend_f32(e, 0), most);
    *by = attend_exp(e, before, from);
    return from;
}

/* Most sums stay as they are: see emit_attend_read.c. */
static void shrink_sums(gatherer *d, const LLVMValueRef *by)
{
    emit *e = d->t.e;
    const emit_attend_abi *abi = e->abi->attend;
    LLVMValueRef any = LLVMConstInt(e->i1, 0, 0);
    LLVMBasicBlockRef no;

    for (int h = 0; h < d->halves; h++)
        any = LLVMBuildOr(
            e->b, any,
            LLVMBuildFCmp(e->b, LLVMRealUNE, by[h], attend_f32(e, 1), ""), "");
    no = emit_when(e, abi->any(e, any));
    for (int i = 0; i < d->halves * d->columns; i++)
        abi->sum_scale(e, &d->sum[i], by[i % d->halves], 0);
    emit_when_end(e, no);
}

/* Scores of half h become exponentials of what they are less than `from`. */
static void take_half(gatherer *d, int h, LLVMValueRef from, LLVMValueRef by,
                      LLVMValueRef *s)
{
    emit *e = d->t.e;
    LLVMValueRef sums = LLVMGetPoison(attend_rows_type(e));

    for (int r = 0; r < ROWS; r++) {
        LLVMValueRef sum = NULL, most = e->abi->attend->of_item(e, from, r);

        for (int i = 0; i < d->keys; i++) {
            LLVMValueRef *v = &s[d->halves * i + h],
                         one = attend_exp(e, attend_of_vector(e, *v, r), most);

            *v = attend_in_vector(e, *v, one, r);
            sum = sum ? LLVMBuildFAdd(e->b, sum, one, "") : one;
        }
        sums = attend_in_vector(e, sums, sum, r);
    }
    e->abi->attend->sum_fold(e, &d->part[h], sums, by, 0);
}

/* Adds the product of the block's weights and its v. */
static void multiply_values(gatherer *d, LLVMValueRef block,
                            const LLVMValueRef *s)
{
    emit *e = d->t.e;
    LLVMValueRef from = base_of_block(d, d->v, OF_V, block);
    int64_t pitch = d->t.a->of.stride[OF_V][HLO_ATTEND_E];

    for (int i = 0; i < d->keys; i += STEP / ROWS) {
        LLVMValueRef w[HALVES], y[ATTEND_TOGETHER];

        for (int h = 0; h < d->halves; h++)
            w[h] = e->abi->attend->join(e, s[d->halves * i + h],
                                        s[d->halves * (i + 1) + h]);
        for (int c = 0; c < d->columns; c++) {
            if (c % ATTEND_TOGETHER == 0)
                for (int j = c; j < SD_MIN(c + ATTEND_TOGETHER, d->columns);
                     j++)
                    y[j - c] =
                        read_words(d, from, j * ROWS * pitch + i * ROWS, STEP);
            for (int h = 0; h < d->halves; h++)
                e->abi->attend->sum_product(e, &d->sum[d->halves * c + h], w[h],
                                            y[c % ATTEND_TOGETHER]);
        }
    }
}

static void run_block(attending *t, LLVMValueRef block)
{
    emit *e = t->e;
    gatherer *d = gatherer_of(t);
    LLVMValueRef *s = sd_arena_array(e->a, LLVMValueRef, d->halves * d->keys);
    LLVMValueRef from[HALVES], by[HALVES];

    multiply_keys(d, block, s);
    for (int h = 0; h < d->halves; h++)
        from[h] = take_most(d, h, mask_scores(d, block, h, s), &by[h]);
    shrink_sums(d, by);
    for (int h = 0; h < d->halves; h++)
        take_half(d, h, from[h], by[h], s);
    multiply_values(d, block, s);
}

/* ---- all blocks ---- */

static void run_blocks(attending *t)
{
    attend_run_blocks(t, run_block);
}

/* Has the sub-group a row to whose sums masked scores may add? */
static LLVMValueRef is_near(attending *t)
{
    emit *e = t->e;
    const gatherer *d = gatherer_of(t);
    LLVMValueRef any = LLVMConstInt(e->i1, 0, 0);

    for (int h = 0; h < d->halves; h++) {
        LLVMValueRef row =
                         emit_plus(e, emit_add(e, t->first, t->mate), h * ROWS),
                     is = LLVMBuildAnd(
                         e->b, attend_is_near(t, attend_get(e, d->most[h])),
                         emit_below(e, row,
                                    emit_si(e, t->a->of.extent[HLO_ATTEND_Q])),
                         "");

        any = LLVMBuildOr(e->b, any, is, "");
    }
    return e->abi->attend->any(e, any);
}

/* ---- the result ---- */

/* A sum's rows that there are; e is whole eights. */
static void write_sum(gatherer *d, int c, int h, LLVMValueRef v)
{
    attending *t = &d->t;
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    int array = hlo_attend_result(of);
    sd_dtype type = e->k->slot[array].dtype;

    for (int r = 0; r < ROWS; r++) {
        LLVMValueRef row = row_of(d, h, r), at;
        emit_value one = {NULL, NULL};
        LLVMBasicBlockRef no = emit_when(
            e, emit_below(e, row, emit_si(e, of->extent[HLO_ATTEND_Q])));

        at = emit_mad(e, row, of->stride[array][HLO_ATTEND_Q],
                      emit_plus(e, t->mate, c * ROWS));
        one.re = attend_of_vector(e, v, r);
        emit_mem_write(e, type, t->base[array], at,
                       emit_convert(e, one, SD_F32, type));
        emit_when_end(e, no);
    }
}

static void write_all(gatherer *d)
{
    attending *t = &d->t;
    emit *e = t->e;
    const emit_attend_abi *abi = e->abi->attend;
    LLVMValueRef by[HALVES];

    for (int h = 0; h < d->halves; h++)
        by[h] = LLVMBuildFDiv(
            e->b, attend_f32(e, 1),
            abi->of_rows(e, attend_take_sum(t, &d->part[h]), true), "");
    for (int i = 0; i < d->halves * d->columns; i++) {
        abi->sum_scale(e, &d->sum[i], by[i % d->halves], 0);
        write_sum(d, i / d->halves, i % d->halves,
                  attend_take_sum(t, &d->sum[i]));
    }
}

/* ---- the sub-group ---- */

static void begin(gatherer *d)
{
    attending *t = &d->t;
    emit *e = t->e;
    const int64_t *extent = t->a->of.extent;
    int n;

    d->keys = t->a->keys / ROWS;
    d->turns = ((int)extent[HLO_ATTEND_D] + STEP - 1) / STEP;
    d->columns = (int)extent[HLO_ATTEND_E] / ROWS;
    d->halves = t->a->rows / (e->k->group / e->k->subgroup) / ROWS;
    n = d->halves * (d->columns + 1);
    d->sum = sd_arena_array(e->a, emit_own_sum, n);
    d->part = d->sum + d->halves * d->columns;
    for (int i = 0; i < n; i++) {
        d->sum[i] = (emit_own_sum){emit_alloca(e, attend_rows_type(e)), i};
        e->abi->begin_sum(e, d->sum[i].slot, i);
    }
    for (int h = 0; h < d->halves; h++) {
        d->most[h] = emit_alloca(e, e->f32);
        LLVMBuildStore(e->b, attend_f32(e, -INFINITY), d->most[h]);
    }
}

static void find_rows(gatherer *d)
{
    attending *t = &d->t;
    emit *e = t->e;
    int items = e->k->subgroup;
    LLVMValueRef number = e->abi->uniform(e, emit_over(e, e->lid, items));

    attend_find_point(t);
    t->rows = d->halves * ROWS;
    t->first = emit_mad(e, number, t->rows, t->first);
    t->mate = emit_rest(e, e->lid, items);
    d->q = emit_times(e, number, (int64_t)t->rows * d->turns * BYTES);
}

void emit_attend_gather(emit *e)
{
    gatherer d = {.t = {.e = e, .a = e->k->attend}};
    attending *t = &d.t;
    LLVMBasicBlockRef no;

    begin(&d);
    find_rows(&d);
    copy_q(&d);
    no = emit_when(
        e, emit_below(e, t->first, emit_si(e, t->a->of.extent[HLO_ATTEND_Q])));
    d.k = item_base(&d, OF_K, HLO_ATTEND_K);
    d.v = item_base(&d, OF_V, HLO_ATTEND_E);
    attend_run_all(t, run_blocks, is_near);
    write_all(&d);
    emit_when_end(e, no);
}
