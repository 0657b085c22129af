/* Attention by a group of work items, as the plan lays it out (plan_attend.h).
 * Four sub-groups, a team, have 64 rows, of which an item has two, eight apart:
 * of a product's columns it has of every eight two neighbours.
 *
 *   read q, and the first blocks of k and v
 *   multiply with the first block of keys; take its scores
 *   for each block but the last:
 *       wait for its values and the next block's keys
 *       begin to copy those after
 *       begin the next block's scores
 *       begin to add the product of its weights with its values
 *       take the next block's scores
 *       wait for the sums; scale them
 *   add the last block's; divide the sums by the rows' sums of exponentials
 *
 * Taking scores is masking them, finding the rows' largest so far, and
 * exponentials of the differences, the weights.
 *
 * Maxima, exponentials and their sums are of f32; exponentials are rounded to
 * the operands' type for the product, as weights are. */
#include <math.h>

#include "emit_attend.h"

/* ---- scores ---- */

/* Score i of an item is of half i / 2 % 2, and key i / 4 * 8 + i % 2 behind its
 * first one. */
static void mask_scores(attending *t, LLVMValueRef block, LLVMValueRef *s)
{
    emit *e = t->e;
    LLVMValueRef key = emit_mad(e, block, t->a->keys, t->column);

    for (int i = 0; i < t->nscore; i++)
        s[i] = attend_score(t, s[i], attend_row(t, i / 2 % HALVES),
                            emit_plus(e, key, i / 4 * EIGHT + i % 2));
}

/* f of the numbers of the four items that have the row. */
static LLVMValueRef of_quad(attending *t, LLVMValueRef v, bool is_sum)
{
    emit *e = t->e;

    for (int apart = 1; apart < QUAD; apart *= 2) {
        LLVMValueRef from = LLVMBuildXor(
            e->b, LLVMBuildTruncOrBitCast(e->b, e->lid, e->i32, ""),
            LLVMConstInt(e->i32, (unsigned)apart, 0), "");
        LLVMValueRef other;

        from = LLVMBuildAnd(
            e->b, from, LLVMConstInt(e->i32, (unsigned)e->abi->together - 1, 0),
            "");
        other = emit_from_item(e, (emit_value){v, NULL}, from).re;
        v = is_sum ? LLVMBuildFAdd(e->b, v, other, "")
                   : attend_larger(e, v, other);
    }
    return v;
}

/* Scores of half h become exponentials; returns what the row's sums shrink by.
 * Of a row without a score yet the largest is -inf, and its differences would
 * be NaN: they are taken from 0. */
static LLVMValueRef take_half(attending *t, LLVMValueRef *s, int h)
{
    emit *e = t->e;
    LLVMValueRef before = attend_get(e, t->most[h]), most = NULL, from, by, sum;

    for (int i = 0; i < t->nscore; i++)
        if (i / 2 % HALVES == h)
            most = most ? attend_larger(e, most, s[i]) : s[i];
    most = attend_larger(e, before, of_quad(t, most, false));
    LLVMBuildStore(e->b, most, t->most[h]);
    from = emit_select(
        e, LLVMBuildFCmp(e->b, LLVMRealOEQ, most, attend_f32(e, -INFINITY), ""),
        attend_f32(e, 0), most);
    by = attend_exp(e, before, from);
    sum = LLVMBuildFMul(e->b, attend_get(e, t->sum[h]), by, "");
    for (int i = 0; i < t->nscore; i++)
        if (i / 2 % HALVES == h) {
            s[i] = attend_exp(e, s[i], from);
            sum = LLVMBuildFAdd(e->b, sum, s[i], "");
        }
    LLVMBuildStore(e->b, sum, t->sum[h]);
    return by;
}

/* ---- the loop ---- */

static void begin_scores(attending *t, LLVMValueRef block)
{
    attend_multiply(t, "score", &t->in[OF_Q], &t->in[OF_K], block);
}

static void begin_sums(attending *t, LLVMValueRef block)
{
    emit *e = t->e;
    LLVMValueRef *word = sd_arena_array(e->a, LLVMValueRef, t->nscore / 2);

    for (int i = 0; i < t->nscore / 2; i++)
        word[i] = LLVMBuildLoad2(e->b, e->i32, t->word[i], "");
    attend_add(t, "sum", word, &t->in[OF_V], block);
}

/* The block's scores become weights, as words for the engine, and the sums are
 * brought to the rows' new largest scores once nothing adds to them. */
static void take_block(attending *t, LLVMValueRef block)
{
    emit *e = t->e;
    const emit_attend_abi *abi = e->abi->attend;
    LLVMValueRef *s = sd_arena_array(e->a, LLVMValueRef, t->nscore), by[HALVES],
                 mark;

    abi->take(e, "score", s, t->nscore);
    mask_scores(t, block, s);
    for (int h = 0; h < HALVES; h++)
        by[h] = take_half(t, s, h);
    mark = emit_mad(e, e->lid, sizeof(float), emit_si(e, (int64_t)t->a->marks));
    abi->wait_behind(e, emit_local(e, mark),
                     LLVMBuildFAdd(e->b, attend_get(e, t->sum[0]),
                                   attend_get(e, t->sum[1]), ""));
    abi->scale(e, "sum", by, t->nsum);
    for (int i = 0; i < t->nscore / 2; i++)
        LLVMBuildStore(
            e->b, abi->pack(e, e->k->slot[0].dtype, s[2 * i], s[2 * i + 1]),
            t->word[i]);
}

static void run_block(attending *t, LLVMValueRef at)
{
    emit *e = t->e;
    LLVMValueRef next = emit_plus(e, at, 1);

    attend_meet(t, 0);
    attend_copy_block(t, &t->in[OF_K], emit_plus(e, at, 2));
    attend_copy_block(t, &t->in[OF_V], next);
    e->abi->close_copies(e);
    begin_scores(t, next);
    begin_sums(t, at);
    e->abi->wait(e, 1);
    take_block(t, next);
}

/* Those of which the scores that come next are of a block that is seen whole.
 */
static LLVMValueRef run_seen(attending *t, LLVMValueRef from, LLVMValueRef last)
{
    emit *e = t->e;
    LLVMValueRef to = emit_plus(e, attend_first_other(t), -1);

    to = emit_smaller(e, emit_larger(e, to, from), last);
    attend_run_some(t, run_block, from, to, true);
    return to;
}

/* All blocks of keys from t->from to t->to. */
static void run_blocks(attending *t)
{
    emit *e = t->e;
    LLVMValueRef from = emit_get(e, t->from), last;

    last = emit_plus(e, emit_get(e, t->to), -1);
    emit_barrier(e);
    attend_copy_block(t, &t->in[OF_K], from);
    e->abi->close_copies(e);
    attend_copy_block(t, &t->in[OF_K], emit_plus(e, from, 1));
    attend_copy_block(t, &t->in[OF_V], from);
    e->abi->close_copies(e);
    attend_meet(t, 1);
    begin_scores(t, from);
    e->abi->wait(e, 0);
    take_block(t, from);
    if (t->a->cut_alone)
        from = run_seen(t, from, last);
    attend_run_some(t, run_block, from, last, false);
    attend_meet(t, 0);
    begin_sums(t, last);
    e->abi->wait(e, 0);
}

/* Is there a row to whose sums masked scores may add? */
static LLVMValueRef is_near(attending *t)
{
    emit *e = t->e;
    LLVMValueRef any = LLVMConstInt(e->i1, 0, 0);

    for (int h = 0; h < HALVES; h++) {
        LLVMValueRef c = attend_is_near(t, attend_get(e, t->most[h]));

        c = LLVMBuildAnd(e->b, c,
                         emit_below(e, attend_row(t, h),
                                    emit_si(e, t->a->of.extent[HLO_ATTEND_Q])),
                         "");
        any = LLVMBuildOr(e->b, any, c, "");
    }
    return e->abi->attend->any(e, any);
}

/* ---- the result ---- */

/* For a gradient: the row's largest score, and 1 / its sum. */
static void write_row(attending *t, LLVMValueRef by, int h)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    LLVMValueRef row = attend_row(t, h), v[2] = {attend_get(e, t->most[h]), by};
    LLVMValueRef one = LLVMBuildAnd(
        e->b, emit_below(e, row, emit_si(e, of->extent[HLO_ATTEND_Q])),
        emit_below(e, t->column, emit_si(e, 1)), "");
    LLVMBasicBlockRef no = emit_when(e, one);

    for (int i = 0; i < 2; i++) {
        int array = hlo_attend_result(of) + 1 + i;
        LLVMValueRef at = emit_times(e, row, of->stride[array][HLO_ATTEND_Q]);

        LLVMBuildStore(e->b, v[i], emit_element(e, SD_F32, t->base[array], at));
    }
    emit_when_end(e, no);
}

static void write_all(attending *t)
{
    emit *e = t->e;
    LLVMValueRef *v = sd_arena_array(e->a, LLVMValueRef, t->nsum);

    e->abi->attend->take(e, "sum", v, t->nsum);
    for (int h = 0; h < HALVES; h++) {
        LLVMValueRef sum = of_quad(t, attend_get(e, t->sum[h]), true);
        LLVMValueRef by = LLVMBuildFDiv(e->b, attend_f32(e, 1), sum, "");

        for (int i = 0; i < t->nsum; i++)
            if (i / 2 % HALVES == h)
                v[i] = LLVMBuildFMul(e->b, v[i], by, "");
        if (t->a->of.nresult > 1)
            write_row(t, by, h);
    }
    attend_write(t, hlo_attend_result(&t->a->of), v, t->nsum);
}

static void attend(attending *t)
{
    emit *e = t->e;

    t->nscore = t->a->keys / 2;
    t->nsum = (int)t->a->of.extent[HLO_ATTEND_E] / 2;
    attend_open(t, OF_Q, true);
    attend_open(t, OF_K, true);
    attend_open(t, OF_V, false);
    for (int h = 0; h < HALVES; h++) {
        t->most[h] = emit_alloca(e, e->f32);
        t->sum[h] = emit_alloca(e, e->f32);
        LLVMBuildStore(e->b, attend_f32(e, -INFINITY), t->most[h]);
        LLVMBuildStore(e->b, attend_f32(e, 0), t->sum[h]);
    }
    t->word = sd_arena_array(e->a, LLVMValueRef, t->nscore / 2);
    for (int i = 0; i < t->nscore / 2; i++)
        t->word[i] = emit_alloca(e, e->i32);
    e->abi->attend->open(e, "sum", t->nsum, true);
    e->abi->attend->open(e, "score", t->nscore, false);
    attend_copy(t, &t->in[OF_Q], t->first, emit_si(e, 0));
    attend_run_all(t, run_blocks, is_near);
    write_all(t);
}

void emit_attend(emit *e)
{
    attending t = {.e = e, .a = e->k->attend};

    if (plan_attend_reads(t.a)) {
        if (t.a->slope)
            emit_attend_slope(e);
        else if (plan_attend_gathers(t.a))
            emit_attend_gather(e);
        else
            emit_attend_read(e);
        return;
    }
    attend_find_point(&t);
    attend_find_item(&t);
    if (t.a->slope)
        emit_attend_gradient(&t);
    else
        attend(&t);
}
