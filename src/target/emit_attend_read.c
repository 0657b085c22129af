/* Attention by sub-groups to which messages bring q, k and v as blocks of
 * matrices, 2-D (plan_attend.h; emit_message.h).  A sub-group has PLAN_SQUARE
 * rows, in two halves, as an instruction has them; of a product its item i has
 * column i of every PLAN_SQUARE: a key's scores, or a column of the result.
 *
 *   for each block of keys:
 *       for each part of the depth: read it of q and k; multiply
 *       take the scores
 *       for each PLAN_SQUARE keys: read v of these; multiply with their weights
 *   divide the sums by the rows' sums of exponentials
 *
 * Scores are taken as in emit_attend.c.  Rounded they are what the engine wants
 * as a left operand as they lie, so weights go nowhere.  Numbers of rows are a
 * row an item: maximum, exponential and quotient of 16 rows are one
 * instruction.  Exponentials each item adds up of its own keys; they meet at
 * the end.  q, which is small beside a block of k and v and lies in the cache,
 * is read anew for each block: held in registers it leaves no room for masks.
 */
#include <math.h>

#include "emit_attend.h"
#include "emit_message.h"

enum {
    HALF = PLAN_SQUARE / HALVES,
    TOGETHER = 4 /* blocks of k or v that are on their way at a time */
};

/* How messages read an operand. */
typedef struct {
    emit_reads what;
    LLVMValueRef told; /* of the first block */
    LLVMValueRef down, along; /* adds rows of a block, adds columns */
} reading;

typedef struct {
    attending t;
    emit_words_told words;
    LLVMValueRef mate; /* the item's number in its sub-group */
    int keys, turns, columns; /* of a block, of d, of e, in squares */
    reading in[3];
    LLVMValueRef of_q; /* variable: what is told of q's next part.  As numbers
                          that are the same in each block the compiler would
                          keep all of them in registers */
    LLVMValueRef back; /* from q's last part to its first */
    emit_own_sum *sum; /* halves of columns of the result; and behind these */
    emit_own_sum *part; /* halves of the rows' sums of what the item has */
    LLVMValueRef most; /* variable: the largest score of the item's row */
} reader;

/* `run` and `near` are given what is the first thing of a reader. */
static reader *reader_of(attending *t)
{
    return (reader *)t;
}

static LLVMValueRef at_index(emit *e, int i)
{
    return LLVMConstInt(e->i32, (unsigned)i, 0);
}

static LLVMTypeRef rows_type(emit *e)
{
    return LLVMVectorType(e->f32, HALF);
}

/* ---- messages ---- */

static LLVMValueRef put(reader *d, int word, LLVMValueRef v)
{
    return emit_put_word(d->t.e, &d->words, NULL, word, v);
}

static LLVMValueRef put_number(reader *d, int word, int64_t n)
{
    return put(d, word, emit_told_number(d->t.e, n));
}

/* Where the point of the batch begins in the matrix that the array is: axes of
 * the batch are steps of whole rows, or within one. */
static void find_begin(reader *d, int array, int64_t pitch, LLVMValueRef *row,
                       LLVMValueRef *column)
{
    emit *e = d->t.e;

    *row = *column = emit_si(e, 0);
    for (int i = 0; i < HLO_ATTEND_BATCH; i++) {
        int64_t by = d->t.a->of.stride[array][i];

        if (by >= pitch)
            *row = emit_mad(e, d->t.point[i], by / pitch, *row);
        else if (by)
            *column = emit_mad(e, d->t.point[i], by, *column);
    }
}

/* Rows and columns beyond those of the point are 0. */
static void find_reading(reader *d, int array, int axis, int along,
                         emit_reads what)
{
    emit *e = d->t.e;
    const hlo_attend *of = &d->t.a->of;
    int64_t pitch = of->stride[array][axis], each = sizeof(uint16_t);
    int unit = e->abi->block_unit(what),
        rows = what == EMIT_BLOCK_ROWS ? HALF : PLAN_SQUARE;
    LLVMValueRef row, column, base;
    emit_told t;

    find_begin(d, array, pitch, &row, &column);
    base = LLVMBuildPtrToInt(e->b, e->slot[array], e->i64, "");
    t.column = emit_tell_base(e, &t, base, of->extent[along] * each, what);
    column = emit_told_word(e, emit_times(e, column, each));
    t.width = LLVMBuildAdd(e->b, t.width, column, "");
    column = LLVMBuildUDiv(e->b, column, emit_told_number(e, unit), "");
    t.column = LLVMBuildAdd(e->b, t.column, column, "");
    t.rows = emit_told_word(e, emit_plus(e, row, of->extent[axis]));
    if (axis == HLO_ATTEND_Q)
        row = emit_add(e, row, d->t.first);
    t.row = emit_told_word(e, row);
    d->in[array] = (reading){
        .what = what,
        .told = emit_pack_told(e, &d->words, &t, pitch * each, what),
        .down = put_number(d, MESSAGE_ROW, rows),
        .along = put_number(d, MESSAGE_COLUMN, PLAN_SQUARE * each / unit)};
}

static LLVMValueRef moved(reader *d, LLVMValueRef told, LLVMValueRef by)
{
    return LLVMBuildAdd(d->t.e->b, told, by, "");
}

static void find_q(reader *d)
{
    emit *e = d->t.e;
    int unit = e->abi->block_unit(d->in[OF_Q].what);

    d->of_q = emit_alloca(e, e->i32);
    LLVMBuildStore(e->b, d->in[OF_Q].told, d->of_q);
    d->back =
        put_number(d, MESSAGE_COLUMN,
                   -d->turns * PLAN_SQUARE * (int)sizeof(uint16_t) / unit);
}

static LLVMValueRef read_block(reader *d, int array, LLVMValueRef told)
{
    emit *e = d->t.e;

    return e->abi->read_block(e, d->in[array].what, told);
}

/* What is told of the first keys of a block. */
static LLVMValueRef told_of_block(reader *d, int array, LLVMValueRef block)
{
    LLVMValueRef row = emit_times(d->t.e, block, d->t.a->keys);

    return moved(d, d->in[array].told, put(d, MESSAGE_ROW, row));
}

/* Both halves of a part of q. */
static void read_q(reader *d, LLVMValueRef told, LLVMValueRef *q)
{
    q[0] = read_block(d, OF_Q, told);
    q[1] = read_block(d, OF_Q, moved(d, told, d->in[OF_Q].down));
}

/* ---- a block ---- */

/* Products of q's rows and the block's keys: s[HALVES * i + half] is of the
 * keys' square number i. */
static void multiply_keys(reader *d, LLVMValueRef block, LLVMValueRef *s)
{
    emit *e = d->t.e;
    LLVMValueRef of_q = LLVMBuildLoad2(e->b, e->i32, d->of_q, ""), part,
                 row = told_of_block(d, OF_K, block);

    for (int i = 0; i < HALVES * d->keys; i++)
        s[i] = LLVMConstNull(rows_type(e));
    for (int turn = 0; turn < d->turns; turn++) {
        LLVMValueRef q[HALVES], y[TOGETHER];

        read_q(d, of_q, q);
        part = row;
        for (int i = 0; i < d->keys; i++) {
            y[i] = read_block(d, OF_K, part);
            part = moved(d, part, d->in[OF_K].down);
        }
        for (int i = 0; i < HALVES * d->keys; i++)
            s[i] =
                e->abi->attend->product(e, q[i % HALVES], y[i / HALVES], s[i]);
        row = moved(d, row, d->in[OF_K].along);
        of_q = moved(d, of_q, d->in[OF_Q].along);
    }
    LLVMBuildStore(e->b, moved(d, of_q, d->back), d->of_q);
}

/* Products become scores, of each row those of the item's keys; returns the
 * rows' largest of these. */
static LLVMValueRef mask_scores(reader *d, LLVMValueRef block,
                                const LLVMValueRef *product,
                                LLVMValueRef *score)
{
    emit *e = d->t.e;
    LLVMValueRef key = emit_mad(e, block, d->t.a->keys, d->mate),
                 most = LLVMGetPoison(LLVMVectorType(e->f32, PLAN_SQUARE));

    for (int r = 0; r < PLAN_SQUARE; r++) {
        LLVMValueRef row = emit_plus(e, d->t.first, r), m = NULL;

        for (int i = 0; i < d->keys; i++, score++) {
            *score =
                LLVMBuildExtractElement(e->b, product[HALVES * i + r / HALF],
                                        at_index(e, r % HALF), "");
            *score = attend_score(&d->t, *score, row,
                                  emit_plus(e, key, i * PLAN_SQUARE));
            m = m ? attend_larger(e, m, *score) : *score;
        }
        most = LLVMBuildInsertElement(e->b, most, m, at_index(e, r), "");
    }
    return most;
}

/* Scores of half h become exponentials of what they are less than their row's
 * largest, which the row's item has in `from`; the rows' sums shrink by `by`.
 */
static void take_half(reader *d, LLVMValueRef *score, int h, LLVMValueRef from,
                      LLVMValueRef by)
{
    emit *e = d->t.e;
    LLVMValueRef sums = LLVMGetPoison(rows_type(e));

    for (int r = 0; r < HALF; r++) {
        LLVMValueRef *s = score + (h * HALF + r) * d->keys, sum = NULL,
                     most = e->abi->attend->of_item(e, from, h * HALF + r);

        for (int i = 0; i < d->keys; i++) {
            s[i] = attend_exp(e, s[i], most);
            sum = sum ? LLVMBuildFAdd(e->b, sum, s[i], "") : s[i];
        }
        sums = LLVMBuildInsertElement(e->b, sums, sum, at_index(e, r), "");
    }
    e->abi->attend->sum_fold(e, &d->part[h], sums, by, h * HALF);
}

/* The further on a block is, the more seldom it has a row's largest score: most
 * sums stay as they are, and to ask is less than to multiply by 1.  Asked
 * before the exponentials, behind which messages that bring v can then wait. */
static void shrink_sums(reader *d, LLVMValueRef by)
{
    emit *e = d->t.e;
    const emit_attend_abi *abi = e->abi->attend;
    LLVMBasicBlockRef no =
        emit_when(e, abi->any(e, LLVMBuildFCmp(e->b, LLVMRealUNE, by,
                                               attend_f32(e, 1), "")));

    for (int i = 0; i < HALVES * d->columns; i++)
        abi->sum_scale(e, &d->sum[i], by, i % HALVES * HALF);
    emit_when_end(e, no);
}

/* As in emit_attend.c, of a row an item. */
static void take_scores(reader *d, LLVMValueRef most, LLVMValueRef *score)
{
    emit *e = d->t.e;
    LLVMValueRef before = attend_get(e, d->most), from, by;

    most = attend_larger(e, before, e->abi->attend->of_rows(e, most, false));
    LLVMBuildStore(e->b, most, d->most);
    from = emit_select(
        e, LLVMBuildFCmp(e->b, LLVMRealOEQ, most, attend_f32(e, -INFINITY), ""),
        attend_f32(e, 0), most);
    by = attend_exp(e, before, from);
    shrink_sums(d, by);
    for (int h = 0; h < HALVES; h++)
        take_half(d, score, h, from, by);
}

/* The keys' square number i of half h, as the engine takes it. */
static LLVMValueRef weights_of(reader *d, const LLVMValueRef *score, int i,
                               int h)
{
    emit *e = d->t.e;
    LLVMValueRef v = LLVMGetPoison(rows_type(e));

    for (int r = 0; r < HALF; r++)
        v = LLVMBuildInsertElement(e->b, v, score[(h * HALF + r) * d->keys + i],
                                   at_index(e, r), "");
    return e->abi->attend->narrow(e, v);
}

/* The same of some columns from c on; returns what is told of the next. */
static LLVMValueRef multiply_columns(reader *d, int c, LLVMValueRef told,
                                     const LLVMValueRef *w)
{
    emit *e = d->t.e;
    int n = SD_MIN(d->columns - c, TOGETHER);
    LLVMValueRef y[TOGETHER];

    for (int i = 0; i < n; i++) {
        y[i] = read_block(d, OF_V, told);
        told = moved(d, told, d->in[OF_V].along);
    }
    for (int i = 0; i < HALVES * n; i++)
        e->abi->attend->sum_product(e, &d->sum[HALVES * c + i], w[i % HALVES],
                                    y[i / HALVES]);
    return told;
}

/* Adds the product of the block's weights and its v. */
static void multiply_values(reader *d, LLVMValueRef block,
                            const LLVMValueRef *score)
{
    LLVMValueRef row = told_of_block(d, OF_V, block), part, w[HALVES];

    for (int i = 0; i < d->keys; i++) {
        part = row;
        for (int h = 0; h < HALVES; h++)
            w[h] = weights_of(d, score, i, h);
        for (int c = 0; c < d->columns; c += TOGETHER)
            part = multiply_columns(d, c, part, w);
        row = moved(d, row, d->in[OF_V].down);
    }
}

static void run_block(reader *d, LLVMValueRef block)
{
    emit *e = d->t.e;
    LLVMValueRef *product =
        sd_arena_array(e->a, LLVMValueRef, HALVES * d->keys);
    LLVMValueRef *score =
        sd_arena_array(e->a, LLVMValueRef, PLAN_SQUARE * d->keys);

    multiply_keys(d, block, product);
    take_scores(d, mask_scores(d, block, product, score), score);
    multiply_values(d, block, score);
}

/* ---- all blocks ---- */

static void run_some(reader *d, LLVMValueRef from, LLVMValueRef to, bool seen)
{
    emit_loop l;

    d->t.is_seen = seen;
    emit_loop_open(d->t.e, &l, from, to, 1);
    run_block(d, l.at);
    emit_loop_close(d->t.e, &l);
    d->t.is_seen = false;
}

static void run_blocks(attending *t)
{
    emit *e = t->e;
    LLVMValueRef from = emit_get(e, t->from), to = emit_get(e, t->to), other;

    if (t->a->cut_alone) {
        other =
            emit_smaller(e, emit_larger(e, attend_first_other(t), from), to);
        run_some(reader_of(t), from, other, true);
        from = other;
    }
    run_some(reader_of(t), from, to, false);
}

/* Is the item's row one to whose sums masked scores may add? */
static LLVMValueRef is_near(attending *t)
{
    emit *e = t->e;
    const reader *d = reader_of(t);
    LLVMValueRef row = emit_add(e, t->first, d->mate);

    return e->abi->attend->any(
        e,
        LLVMBuildAnd(
            e->b, attend_is_near(t, attend_get(e, d->most)),
            emit_below(e, row, emit_si(e, t->a->of.extent[HLO_ATTEND_Q])), ""));
}

/* ---- the result ---- */

/* A column of the result in half h, of rows that there are. */
static void write_column(reader *d, int column, int h, LLVMValueRef v)
{
    attending *t = &d->t;
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    int array = hlo_attend_result(of);
    LLVMValueRef at = emit_plus(e, d->mate, column * PLAN_SQUARE);
    bool ragged = (column + 1) * PLAN_SQUARE > of->extent[HLO_ATTEND_E];
    LLVMBasicBlockRef no = emit_when(
        e, ragged ? emit_below(e, at, emit_si(e, of->extent[HLO_ATTEND_E]))
                  : NULL);

    for (int r = 0; r < HALF; r++) {
        LLVMValueRef row = emit_plus(e, t->first, h * HALF + r), p, x;
        LLVMBasicBlockRef not = emit_when(
            e, emit_below(e, row, emit_si(e, of->extent[HLO_ATTEND_Q])));

        p = emit_mad(e, row, of->stride[array][HLO_ATTEND_Q], at);
        x = LLVMBuildExtractElement(e->b, v, at_index(e, r), "");
        LLVMBuildStore(
            e->b, x,
            emit_element(e, e->k->slot[array].dtype, t->base[array], p));
        emit_when_end(e, not);
    }
    emit_when_end(e, no);
}

static LLVMValueRef take(reader *d, const emit_own_sum *s)
{
    emit *e = d->t.e;

    e->abi->take_sum(e, s->slot, s->number);
    return LLVMBuildLoad2(e->b, rows_type(e), s->slot, "");
}

/* 1 / the sum of the item's row. */
static LLVMValueRef quotient(reader *d)
{
    emit *e = d->t.e;
    LLVMValueRef all = LLVMGetPoison(LLVMVectorType(e->f32, PLAN_SQUARE));

    for (int h = 0; h < HALVES; h++) {
        LLVMValueRef part = take(d, &d->part[h]);

        for (int r = 0; r < HALF; r++)
            all = LLVMBuildInsertElement(
                e->b, all,
                LLVMBuildExtractElement(e->b, part, at_index(e, r), ""),
                at_index(e, h * HALF + r), "");
    }
    return LLVMBuildFDiv(e->b, attend_f32(e, 1),
                         e->abi->attend->of_rows(e, all, true), "");
}

static void write_all(reader *d)
{
    emit *e = d->t.e;
    const emit_attend_abi *abi = e->abi->attend;
    LLVMValueRef by = quotient(d);
    bool wide = e->k->slot[hlo_attend_result(&d->t.a->of)].dtype == SD_F32;

    for (int i = 0; i < HALVES * d->columns; i++) {
        LLVMValueRef v;

        abi->sum_scale(e, &d->sum[i], by, i % HALVES * HALF);
        v = take(d, &d->sum[i]);
        write_column(d, i / HALVES, i % HALVES, wide ? v : abi->narrow(e, v));
    }
}

/* ---- the sub-group ---- */

static void begin(reader *d)
{
    emit *e = d->t.e;
    const int64_t *extent = d->t.a->of.extent;
    int n;

    d->keys = d->t.a->keys / PLAN_SQUARE;
    assert(d->keys <= TOGETHER);
    d->turns = (int)(extent[HLO_ATTEND_D] + PLAN_SQUARE - 1) / PLAN_SQUARE;
    d->columns = (int)(extent[HLO_ATTEND_E] + PLAN_SQUARE - 1) / PLAN_SQUARE;
    n = HALVES * (d->columns + 1);
    d->sum = sd_arena_array(e->a, emit_own_sum, n);
    d->part = d->sum + HALVES * d->columns;
    for (int i = 0; i < n; i++) {
        d->sum[i] = (emit_own_sum){emit_alloca(e, rows_type(e)), i};
        e->abi->begin_sum(e, d->sum[i].slot, i);
    }
    d->most = emit_alloca(e, e->f32);
    LLVMBuildStore(e->b, attend_f32(e, -INFINITY), d->most);
}

static void find_rows(reader *d)
{
    attending *t = &d->t;
    emit *e = t->e;
    int items = e->k->subgroup;
    LLVMValueRef number = e->abi->uniform(e, emit_over(e, e->lid, items));

    attend_find_point(t);
    t->rows = PLAN_SQUARE;
    t->first = emit_mad(e, number, PLAN_SQUARE, t->first);
    d->mate = emit_rest(e, e->lid, items);
}

void emit_attend_read(emit *e)
{
    reader d = {.t = {.e = e, .a = e->k->attend}};
    LLVMBasicBlockRef no;

    begin(&d);
    find_rows(&d);
    no = emit_when(e, emit_below(e, d.t.first,
                                 emit_si(e, d.t.a->of.extent[HLO_ATTEND_Q])));
    emit_find_words(e, &d.words, d.mate);
    find_reading(&d, OF_Q, HLO_ATTEND_Q, HLO_ATTEND_D, EMIT_BLOCK_ROWS);
    find_reading(&d, OF_K, HLO_ATTEND_K, HLO_ATTEND_D, EMIT_BLOCK_TURNED);
    find_reading(&d, OF_V, HLO_ATTEND_K, HLO_ATTEND_E, EMIT_BLOCK_PAIRS);
    find_q(&d);
    attend_run_all(&d.t, run_blocks, is_near);
    write_all(&d);
    emit_when_end(e, no);
}
