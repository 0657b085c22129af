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

#include "emit_attend_blocks.h"

enum { HALF = ATTEND_HALF };

typedef struct {
    attending t;
    int keys, columns; /* of a block, of e, in squares */
    attend_own q;
    attend_reading k, v;
    emit_own_sum *sum; /* halves of columns of the result; and behind these */
    emit_own_sum *part; /* halves of the rows' sums of what the item has */
    LLVMValueRef most; /* variable: the largest score of the item's row */
} reader;

/* `run` and `near` are given what is the first thing of a reader. */
static reader *reader_of(attending *t)
{
    return (reader *)t;
}

/* ---- a block ---- */

/* Products become scores, of each row those of the item's keys; returns the
 * rows' largest of these. */
static LLVMValueRef mask_scores(reader *d, LLVMValueRef block,
                                const LLVMValueRef *product,
                                LLVMValueRef *score)
{
    emit *e = d->t.e;
    LLVMValueRef key = emit_mad(e, block, d->t.a->keys, d->t.mate),
                 most = LLVMGetPoison(LLVMVectorType(e->f32, PLAN_SQUARE));

    for (int r = 0; r < PLAN_SQUARE; r++) {
        LLVMValueRef row = emit_plus(e, d->t.first, r), m = NULL;

        for (int i = 0; i < d->keys; i++, score++) {
            *score =
                attend_of_vector(e, product[HALVES * i + r / HALF], r % HALF);
            *score = attend_score(&d->t, *score, row,
                                  emit_plus(e, key, i * PLAN_SQUARE));
            m = m ? attend_larger(e, m, *score) : *score;
        }
        most = attend_in_vector(e, most, m, r);
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
    LLVMValueRef sums = LLVMGetPoison(attend_rows_type(e));

    for (int r = 0; r < HALF; r++) {
        LLVMValueRef *s = score + (h * HALF + r) * d->keys, sum = NULL,
                     most = e->abi->attend->of_item(e, from, h * HALF + r);

        for (int i = 0; i < d->keys; i++) {
            s[i] = attend_exp(e, s[i], most);
            sum = sum ? LLVMBuildFAdd(e->b, sum, s[i], "") : s[i];
        }
        sums = attend_in_vector(e, sums, sum, r);
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
    LLVMValueRef v = LLVMGetPoison(attend_rows_type(e));

    for (int r = 0; r < HALF; r++)
        v = attend_in_vector(e, v, score[(h * HALF + r) * d->keys + i], r);
    return e->abi->attend->narrow(e, v);
}

/* Adds the product of the block's weights and its v. */
static void multiply_values(reader *d, LLVMValueRef block,
                            const LLVMValueRef *score)
{
    emit *e = d->t.e;
    LLVMValueRef key = emit_times(e, block, d->t.a->keys), w[HALVES],
                 told = attend_told_of(&d->t, &d->v, key);

    for (int i = 0; i < d->keys; i++) {
        for (int h = 0; h < HALVES; h++)
            w[h] = weights_of(d, score, i, h);
        attend_add_columns(&d->t, d->sum, d->columns, w, &d->v, told);
        told = attend_moved(e, told, d->v.down);
    }
}

static void run_block(attending *t, LLVMValueRef block)
{
    emit *e = t->e;
    reader *d = reader_of(t);
    LLVMValueRef *product =
        sd_arena_array(e->a, LLVMValueRef, HALVES * d->keys);
    LLVMValueRef *score =
        sd_arena_array(e->a, LLVMValueRef, PLAN_SQUARE * d->keys);

    attend_multiply_own(&d->t, &d->q, &d->k, emit_times(e, block, d->t.a->keys),
                        d->keys, product);
    take_scores(d, mask_scores(d, block, product, score), score);
    multiply_values(d, block, score);
}

/* ---- all blocks ---- */

static void run_blocks(attending *t)
{
    attend_run_blocks(t, run_block);
}

/* Is the item's row one to whose sums masked scores may add? */
static LLVMValueRef is_near(attending *t)
{
    emit *e = t->e;
    const reader *d = reader_of(t);
    LLVMValueRef row = emit_add(e, t->first, d->t.mate);

    return e->abi->attend->any(
        e,
        LLVMBuildAnd(
            e->b, attend_is_near(t, attend_get(e, d->most)),
            emit_below(e, row, emit_si(e, t->a->of.extent[HLO_ATTEND_Q])), ""));
}

/* ---- the result ---- */

/* 1 / the sum of the item's row. */
static LLVMValueRef quotient(reader *d)
{
    emit *e = d->t.e;
    LLVMValueRef all = LLVMGetPoison(LLVMVectorType(e->f32, PLAN_SQUARE));

    for (int h = 0; h < HALVES; h++) {
        LLVMValueRef part = attend_take_sum(&d->t, &d->part[h]);

        for (int r = 0; r < HALF; r++)
            all = attend_in_vector(e, all, attend_of_vector(e, part, r),
                                   h * HALF + r);
    }
    return LLVMBuildFDiv(e->b, attend_f32(e, 1),
                         e->abi->attend->of_rows(e, all, true), "");
}

/* For a gradient: the largest score of the item's row, and 1 / its sum. */
static void write_row(reader *d, LLVMValueRef by)
{
    attending *t = &d->t;
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    LLVMValueRef row = emit_add(e, t->first, t->mate),
                 v[2] = {attend_get(e, d->most), by};
    LLVMBasicBlockRef no =
        emit_when(e, emit_below(e, row, emit_si(e, of->extent[HLO_ATTEND_Q])));

    for (int i = 0; i < 2; i++) {
        int array = hlo_attend_result(of) + 1 + i;
        LLVMValueRef at = emit_times(e, row, of->stride[array][HLO_ATTEND_Q]);

        LLVMBuildStore(e->b, v[i], emit_element(e, SD_F32, t->base[array], at));
    }
    emit_when_end(e, no);
}

static void write_all(reader *d)
{
    attending *t = &d->t;
    LLVMValueRef by = quotient(d);

    for (int i = 0; i < HALVES * d->columns; i++) {
        t->e->abi->attend->sum_scale(t->e, &d->sum[i], by, i % HALVES * HALF);
        attend_write_columns(t, hlo_attend_result(&t->a->of), i / HALVES,
                             i % HALVES, attend_take_sum(t, &d->sum[i]));
    }
    if (t->a->of.nresult > 1)
        write_row(d, by);
}

/* ---- the sub-group ---- */

static void begin(reader *d)
{
    emit *e = d->t.e;

    d->keys = d->t.a->keys / PLAN_SQUARE;
    d->columns = attend_squares(d->t.a->of.extent[HLO_ATTEND_E]);
    d->sum = attend_open_sums(&d->t, 0, d->columns + 1);
    d->part = d->sum + HALVES * d->columns;
    d->most = emit_alloca(e, e->f32);
    LLVMBuildStore(e->b, attend_f32(e, -INFINITY), d->most);
}

void emit_attend_read(emit *e)
{
    reader d = {.t = {.e = e, .a = e->k->attend}};
    attending *t = &d.t;
    LLVMBasicBlockRef no;

    begin(&d);
    attend_find_rows(t);
    no = emit_when(
        e, emit_below(e, t->first, emit_si(e, t->a->of.extent[HLO_ATTEND_Q])));
    d.q = attend_find_own(t, OF_Q, HLO_ATTEND_Q, HLO_ATTEND_D);
    d.k = attend_find_reading(t, OF_K, HLO_ATTEND_K, HLO_ATTEND_D,
                              EMIT_BLOCK_TURNED);
    d.v = attend_find_reading(t, OF_V, HLO_ATTEND_K, HLO_ATTEND_E,
                              EMIT_BLOCK_PAIRS);
    attend_run_all(t, run_blocks, is_near);
    write_all(&d);
    emit_when_end(e, no);
}
