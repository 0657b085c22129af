/* Attention's operands as blocks of matrices, 2-D, which messages bring to
 * registers (emit_message.h), products of these, and how results are written.
 * An array is one matrix, a position along q or k a row of it.  A sub-group has
 * PLAN_SQUARE rows of its own, in two halves, as an instruction has them; of a
 * product its item i has column i of every PLAN_SQUARE. */
#include "emit_attend_blocks.h"

/* ---- the sub-group ---- */

void attend_find_rows(attending *t)
{
    emit *e = t->e;
    int items = e->k->subgroup;
    LLVMValueRef number = e->abi->uniform(e, emit_over(e, e->lid, items));

    attend_find_point(t);
    if (plan_attend_axis(t->a, false) == HLO_ATTEND_Q)
        t->rows = PLAN_SQUARE;
    else
        t->keys = PLAN_SQUARE;
    t->first = emit_mad(e, number, PLAN_SQUARE, t->first);
    t->mate = emit_rest(e, e->lid, items);
    emit_find_words(e, &t->words, t->mate);
}

/* ---- messages ---- */

static LLVMValueRef put(attending *t, int word, LLVMValueRef v)
{
    return emit_put_word(t->e, &t->words, NULL, word, v);
}

static LLVMValueRef put_number(attending *t, int word, int64_t n)
{
    return put(t, word, emit_told_number(t->e, n));
}

/* Where the point of the batch begins in the matrix that the array is: axes of
 * the batch are steps of whole rows, or within one. */
static void find_begin(attending *t, int array, int64_t pitch,
                       LLVMValueRef *row, LLVMValueRef *column)
{
    emit *e = t->e;

    *row = *column = emit_si(e, 0);
    for (int i = 0; i < HLO_ATTEND_BATCH; i++) {
        int64_t by = t->a->of.stride[array][i];

        if (by >= pitch)
            *row = emit_mad(e, t->point[i], by / pitch, *row);
        else if (by)
            *column = emit_mad(e, t->point[i], by, *column);
    }
}

attend_reading attend_find_reading(attending *t, int array, int axis, int along,
                                   emit_reads what)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    int64_t pitch = of->stride[array][axis], each = sizeof(uint16_t);
    int unit = e->abi->block_unit(what),
        rows = what == EMIT_BLOCK_ROWS ? ATTEND_HALF : PLAN_SQUARE;
    LLVMValueRef row, column, base;
    emit_told m;

    find_begin(t, array, pitch, &row, &column);
    base = LLVMBuildPtrToInt(e->b, e->slot[array], e->i64, "");
    m.column = emit_tell_base(e, &m, base, of->extent[along] * each, what);
    column = emit_told_word(e, emit_times(e, column, each));
    m.width = LLVMBuildAdd(e->b, m.width, column, "");
    column = LLVMBuildUDiv(e->b, column, emit_told_number(e, unit), "");
    m.column = LLVMBuildAdd(e->b, m.column, column, "");
    m.rows = emit_told_word(e, emit_plus(e, row, of->extent[axis]));
    if (axis == plan_attend_axis(t->a, false))
        row = emit_add(e, row, t->first);
    m.row = emit_told_word(e, row);
    return (attend_reading){
        .array = array,
        .what = what,
        .told = emit_pack_told(e, &t->words, &m, pitch * each, what),
        .down = put_number(t, MESSAGE_ROW, rows),
        .along = put_number(t, MESSAGE_COLUMN, PLAN_SQUARE * each / unit)};
}

attend_own attend_find_own(attending *t, int array, int axis, int along)
{
    emit *e = t->e;
    attend_own x = {
        .of = attend_find_reading(t, array, axis, along, EMIT_BLOCK_ROWS),
        .at = emit_alloca(e, e->i32),
        .parts = attend_squares(t->a->of.extent[along])};
    int unit = e->abi->block_unit(x.of.what);

    LLVMBuildStore(e->b, x.of.told, x.at);
    x.back = put_number(t, MESSAGE_COLUMN,
                        -x.parts * PLAN_SQUARE * (int)sizeof(uint16_t) / unit);
    return x;
}

LLVMValueRef attend_told_of(attending *t, const attend_reading *r,
                            LLVMValueRef row)
{
    return attend_moved(t->e, r->told, put(t, MESSAGE_ROW, row));
}

static LLVMValueRef read_block(attending *t, const attend_reading *r,
                               LLVMValueRef told)
{
    return t->e->abi->read_block(t->e, r->what, told);
}

/* ---- products ---- */

void attend_multiply_own(attending *t, const attend_own *x,
                         const attend_reading *y, LLVMValueRef row, int n,
                         LLVMValueRef *s)
{
    emit *e = t->e;
    LLVMValueRef of_x = LLVMBuildLoad2(e->b, e->i32, x->at, ""),
                 of_y = attend_told_of(t, y, row);

    assert(n <= ATTEND_TOGETHER);
    for (int i = 0; i < HALVES * n; i++)
        s[i] = LLVMConstNull(attend_rows_type(e));
    for (int turn = 0; turn < x->parts; turn++) {
        LLVMValueRef own[HALVES], other[ATTEND_TOGETHER], part = of_y;

        own[0] = read_block(t, &x->of, of_x);
        own[1] = read_block(t, &x->of, attend_moved(t->e, of_x, x->of.down));
        for (int i = 0; i < n; i++) {
            other[i] = read_block(t, y, part);
            part = attend_moved(t->e, part, y->down);
        }
        for (int i = 0; i < HALVES * n; i++)
            s[i] = e->abi->attend->product(e, own[i % HALVES],
                                           other[i / HALVES], s[i]);
        of_y = attend_moved(t->e, of_y, y->along);
        of_x = attend_moved(t->e, of_x, x->of.along);
    }
    LLVMBuildStore(e->b, attend_moved(t->e, of_x, x->back), x->at);
}

void attend_run_blocks(attending *t, attend_block_fn *run)
{
    emit *e = t->e;
    LLVMValueRef from = emit_get(e, t->from), to = emit_get(e, t->to), other;

    if (t->a->cut_alone) {
        other =
            emit_smaller(e, emit_larger(e, attend_first_other(t), from), to);
        attend_run_some(t, run, from, other, true);
        from = other;
    }
    attend_run_some(t, run, from, to, false);
}

emit_own_sum *attend_open_sums(attending *t, int from, int n)
{
    emit *e = t->e;
    emit_own_sum *s = sd_arena_array(e->a, emit_own_sum, HALVES * n);

    for (int i = 0; i < HALVES * n; i++) {
        s[i] = (emit_own_sum){emit_alloca(e, attend_rows_type(e)),
                              HALVES * from + i};
        e->abi->begin_sum(e, s[i].slot, s[i].number);
    }
    return s;
}

/* Of n squares, which are read before the first is multiplied; returns what is
 * told of the next. */
static LLVMValueRef add_some(attending *t, const emit_own_sum *sum, int n,
                             const LLVMValueRef *w, const attend_reading *y,
                             LLVMValueRef told)
{
    emit *e = t->e;
    LLVMValueRef block[ATTEND_TOGETHER];

    for (int i = 0; i < n; i++) {
        block[i] = read_block(t, y, told);
        told = attend_moved(t->e, told, y->along);
    }
    for (int i = 0; i < HALVES * n; i++)
        e->abi->attend->sum_product(e, &sum[i], w[i % HALVES],
                                    block[i / HALVES]);
    return told;
}

void attend_add_columns(attending *t, const emit_own_sum *sum, int n,
                        const LLVMValueRef *w, const attend_reading *y,
                        LLVMValueRef told)
{
    for (int c = 0; c < n; c += ATTEND_TOGETHER)
        told = add_some(t, sum + HALVES * c, SD_MIN(n - c, ATTEND_TOGETHER), w,
                        y, told);
}

/* ---- results ---- */

LLVMValueRef attend_take_sum(attending *t, const emit_own_sum *s)
{
    emit *e = t->e;

    e->abi->take_sum(e, s->slot, s->number);
    return LLVMBuildLoad2(e->b, attend_rows_type(e), s->slot, "");
}

void attend_write_columns(attending *t, int array, int square, int h,
                          LLVMValueRef v)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    int own = plan_attend_axis(t->a, false),
        along = of->stride[array][HLO_ATTEND_D] ? HLO_ATTEND_D : HLO_ATTEND_E;
    sd_dtype type = e->k->slot[array].dtype;
    LLVMValueRef at = emit_plus(e, t->mate, square * PLAN_SQUARE);
    bool ragged = (square + 1) * PLAN_SQUARE > of->extent[along];
    LLVMBasicBlockRef no = emit_when(
        e, ragged ? emit_below(e, at, emit_si(e, of->extent[along])) : NULL);

    if (type != SD_F32)
        v = e->abi->attend->narrow(e, v);
    for (int r = 0; r < ATTEND_HALF; r++) {
        LLVMValueRef row = emit_plus(e, t->first, h * ATTEND_HALF + r), p;
        LLVMBasicBlockRef not =
            emit_when(e, emit_below(e, row, emit_si(e, of->extent[own])));

        p = emit_mad(e, row, of->stride[array][own], at);
        LLVMBuildStore(e->b, attend_of_vector(e, v, r),
                       emit_element(e, type, t->base[array], p));
        emit_when_end(e, not);
    }
    emit_when_end(e, no);
}
