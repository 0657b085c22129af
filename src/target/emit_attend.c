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

enum {
    HALVES = 2, /* rows of an item, */
    APART = 8,  /* so far apart */
    EIGHT = 8,  /* columns of which an item has two */
    QUAD = 4,   /* items that have one row */
    CHUNK = PLAN_LINE / 2, /* numbers of a line */
    PART = PLAN_LINE_PART / 2
};

typedef struct { /* an operand, of which blocks of rows are copied */
    int array, axis;    /* its slot; along which its rows lie */
    int64_t rows, depth, limit; /* of a block; columns; rows that there are */
    int64_t parts;      /* of a row, those of zeros counted */
    size_t at, bytes;   /* the areas, and one of them */
    int n;              /* parts that an item copies */
    LLVMValueRef *row, *from, *to, *zero, *has; /* has: NULL: it is there */
} copied;

typedef struct {
    emit *e;
    const plan_attend *a;
    LLVMValueRef base[HLO_ATTEND_ARRAYS]; /* of the point of the batch */
    LLVMValueRef first;                   /* row of the group */
    LLVMValueRef team, row, column; /* the item's: team; its first row; where in
                                       eight columns its two are */
    copied q, k, v;
    int nscore, nsum;
    LLVMValueRef most[HALVES], sum[HALVES]; /* variables */
    LLVMValueRef *word; /* variables: weights of a block */
    LLVMValueRef from, to; /* variables: blocks of keys */
} attending;

static int64_t stride_of(const attending *t, int array, int axis)
{
    return t->a->of.stride[array][axis];
}

static LLVMValueRef f32_of(emit *e, double v)
{
    return LLVMConstReal(e->f32, v);
}

static LLVMValueRef get_f32(emit *e, LLVMValueRef p)
{
    return LLVMBuildLoad2(e->b, e->f32, p, "");
}

/* ---- where things are ---- */

/* Bytes from a slot to the group's point of the batch, and its first row: the
 * longest rows of a mask begin first. */
static void find_point(attending *t)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    LLVMValueRef rest = e->first, block = emit_rest(e, rest, t->a->blocks);
    LLVMValueRef off[HLO_ATTEND_ARRAYS];
    int n = 4 + of->nmore;

    rest = emit_over(e, rest, t->a->blocks);
    if (t->a->is_cut)
        block = LLVMBuildSub(e->b, emit_si(e, t->a->blocks - 1), block, "");
    t->first = emit_times(e, block, t->a->rows);
    for (int i = 0; i < n; i++)
        off[i] = emit_i64(e, 0);
    for (int axis = HLO_ATTEND_BATCH - 1; axis >= 0; axis--) {
        LLVMValueRef at = emit_rest(e, rest, of->extent[axis]);

        rest = emit_over(e, rest, of->extent[axis]);
        at = LLVMBuildZExtOrBitCast(e->b, at, e->i64, "");
        for (int i = 0; i < n; i++) {
            int64_t by = of->stride[i][axis] *
                         (int64_t)sd_dtype_bytes(e->k->slot[i].dtype);

            off[i] = LLVMBuildAdd(
                e->b, off[i], LLVMBuildMul(e->b, at, emit_i64(e, by), ""), "");
        }
    }
    for (int i = 0; i < n; i++)
        t->base[i] = LLVMBuildGEP2(e->b, e->i8, e->slot[i], &off[i], 1, "");
}

static void find_item(attending *t)
{
    emit *e = t->e;
    const plan_engine_info *of = &plan_engine_table[t->a->engine];
    LLVMValueRef group = emit_over(e, e->lid, of->items),
                 mate = emit_rest(e, e->lid, of->items);

    t->team = emit_over(e, group, of->several);
    t->row = emit_mad(e, group, PLAN_SQUARE, emit_over(e, mate, QUAD));
    t->column = emit_times(e, emit_rest(e, mate, QUAD), 2);
}

/* Where the item's parts of a block are, in memory and in local memory. */
static void find_parts(attending *t, copied *c)
{
    emit *e = t->e;
    int64_t all = c->rows * c->parts, group = e->k->group;

    c->n = (int)((all + group - 1) / group);
    c->row = sd_arena_array(e->a, LLVMValueRef, 5 * c->n);
    c->from = c->row + c->n;
    c->to = c->from + c->n;
    c->zero = c->to + c->n;
    c->has = c->zero + c->n;
    for (int i = 0; i < c->n; i++) {
        LLVMValueRef at = emit_plus(e, e->lid, i * group), part, in;

        if ((i + 1) * group > all)
            c->has[i] = emit_below(e, at, emit_si(e, all));
        c->row[i] = emit_over(e, at, c->parts);
        part = emit_rest(e, at, c->parts);
        c->from[i] = emit_mad(e, c->row[i], stride_of(t, c->array, c->axis),
                              emit_times(e, part, PART));
        in = LLVMBuildXor(e->b, emit_rest(e, part, PLAN_LINES),
                          emit_rest(e, c->row[i], PLAN_LINES), "");
        c->to[i] =
            emit_mad(e, emit_over(e, part, PLAN_LINES), c->rows * PLAN_LINE,
                     emit_mad(e, c->row[i], PLAN_LINE,
                              emit_times(e, in, PLAN_LINE_PART)));
        if (c->parts * PART > c->depth)
            c->zero[i] = LLVMBuildICmp(e->b, LLVMIntUGE, part,
                                       emit_si(e, c->depth / PART), "");
    }
}

static void open_operand(attending *t, copied *c, int array, int axis,
                         int64_t rows, size_t at, size_t bytes)
{
    int depth = plan_engine_table[t->a->engine].depth;
    bool deep =
        array < 2; /* the engine takes whole steps of what it sums over */

    *c = (copied){.array = array,
                  .axis = axis,
                  .rows = rows,
                  .limit = t->a->of.extent[axis],
                  .depth = t->a->of.extent[deep ? HLO_ATTEND_D : HLO_ATTEND_E],
                  .at = at,
                  .bytes = bytes};
    c->parts = deep ? (c->depth + depth - 1) / depth * (depth / PART)
                    : c->depth / PART;
    find_parts(t, c);
}

static LLVMValueRef local_at(attending *t, LLVMValueRef byte)
{
    return emit_local(t->e, byte);
}

/* Rows first, first + 1, .. of it begin to go to its area number `turn`. */
static void copy(attending *t, const copied *c, LLVMValueRef first,
                 LLVMValueRef turn)
{
    emit *e = t->e;
    LLVMTypeRef each = emit_mem_type(e, e->k->slot[c->array].dtype);
    LLVMValueRef area =
        emit_mad(e, turn, (int64_t)c->bytes, emit_si(e, (int64_t)c->at));
    LLVMValueRef begin = emit_times(e, first, stride_of(t, c->array, c->axis));

    for (int i = 0; i < c->n; i++) {
        LLVMValueRef at = emit_add(e, begin, c->from[i]), not = c->zero[i];
        LLVMBasicBlockRef has;

        at = LLVMBuildZExtOrBitCast(e->b, at, e->i64, "");
        if (c->limit % c->rows) {
            LLVMValueRef beyond =
                LLVMBuildICmp(e->b, LLVMIntUGE, emit_add(e, first, c->row[i]),
                              emit_si(e, c->limit), "");

            not = not ? LLVMBuildOr(e->b, not, beyond, "") : beyond;
        }
        has = emit_when(e, c->has[i]);
        e->abi->copy(e, local_at(t, emit_add(e, area, c->to[i])),
                     LLVMBuildGEP2(e->b, each, t->base[c->array], &at, 1, ""),
                     not);
        emit_when_end(e, has);
    }
}

static LLVMValueRef turn_of(attending *t, LLVMValueRef block)
{
    return emit_rest(t->e, block, t->a->pairs);
}

/* Blocks beyond the last are the last one again. */
static void copy_block(attending *t, const copied *c, LLVMValueRef block)
{
    emit *e = t->e;
    LLVMValueRef last = emit_plus(e, emit_get(e, t->to), -1);
    LLVMValueRef at = emit_smaller(e, block, last);

    copy(t, c, emit_times(e, at, t->a->keys), turn_of(t, block));
}

/* ---- products ---- */

static LLVMValueRef area_of(attending *t, const copied *c, LLVMValueRef block)
{
    emit *e = t->e;

    return local_at(t, emit_mad(e, turn_of(t, block), (int64_t)c->bytes,
                                emit_si(e, (int64_t)c->at)));
}

static void begin_scores(attending *t, LLVMValueRef block)
{
    emit *e = t->e;
    const plan_engine_info *of = &plan_engine_table[t->a->engine];
    emit_turn_product p = {
        .x = local_at(t, emit_mad(e, t->team, (int64_t)of->m * PLAN_LINE,
                                  emit_si(e, (int64_t)t->q.at))),
        .y = area_of(t, &t->k, block),
        .columns = t->a->keys,
        .times = (int)(t->q.parts * PART / of->depth)};

    e->abi->attend->score(e, &p);
}

static void begin_sums(attending *t, LLVMValueRef block)
{
    emit *e = t->e;
    LLVMValueRef *word = sd_arena_array(e->a, LLVMValueRef, t->nscore / 2);
    emit_turn_product p = {.word = word,
                           .y = area_of(t, &t->v, block),
                           .columns = (int)t->v.depth,
                           .times = t->a->keys /
                                    plan_engine_table[t->a->engine].depth};

    for (int i = 0; i < t->nscore / 2; i++)
        word[i] = LLVMBuildLoad2(e->b, e->i32, t->word[i], "");
    e->abi->attend->sum(e, &p);
}

/* ---- scores ---- */

static LLVMValueRef row_at(attending *t, int half)
{
    emit *e = t->e;

    return emit_plus(e, emit_add(e, t->first, t->row), half * APART);
}

/* An element of array i, which is read also where there is no such row or
 * key. */
static emit_value element_of(attending *t, int i, LLVMValueRef row,
                             LLVMValueRef key)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    LLVMValueRef at = emit_si(e, 0);

    if (of->extent[HLO_ATTEND_Q] % t->a->rows)
        row = emit_smaller(e, row, emit_si(e, of->extent[HLO_ATTEND_Q] - 1));
    if (of->extent[HLO_ATTEND_K] % t->a->keys)
        key = emit_smaller(e, key, emit_si(e, of->extent[HLO_ATTEND_K] - 1));
    at = emit_mad(e, row, of->stride[i][HLO_ATTEND_Q], at);
    at = emit_mad(e, key, of->stride[i][HLO_ATTEND_K], at);
    return emit_mem_read(e, e->k->slot[i].dtype, t->base[i], at, 1);
}

/* As f32; -inf where there is no such key. */
static LLVMValueRef score_of(attending *t, LLVMValueRef product,
                             LLVMValueRef row, LLVMValueRef key)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    emit_value x[HLO_ATTEND_FIRST + HLO_ATTEND_MORE], root[1];
    LLVMValueRef s;

    x[0] = emit_convert(e, (emit_value){product, NULL}, SD_F32,
                        of->score->param[0]->shape->dtype);
    x[1] = emit_place(e, SD_S32, row);
    x[2] = emit_place(e, SD_S32, key);
    for (int i = 0; i < of->nmore; i++)
        x[HLO_ATTEND_FIRST + i] = element_of(t, 3 + i, row, key);
    emit_body(e, t->a->score, x, root);
    s = emit_convert(e, root[0], t->a->score->root[0]->dtype, SD_F32).re;
    if (of->extent[HLO_ATTEND_K] % t->a->keys)
        s = emit_select(
            e, emit_below(e, key, emit_si(e, of->extent[HLO_ATTEND_K])), s,
            f32_of(e, -INFINITY));
    return s;
}

/* Score i of an item is of half i / 2 % 2, and key i / 4 * 8 + i % 2 behind its
 * first one. */
static void mask_scores(attending *t, LLVMValueRef block, LLVMValueRef *s)
{
    emit *e = t->e;
    LLVMValueRef key = emit_mad(e, block, t->a->keys, t->column);

    for (int i = 0; i < t->nscore; i++)
        s[i] = score_of(t, s[i], row_at(t, i / 2 % HALVES),
                        emit_plus(e, key, i / 4 * EIGHT + i % 2));
}

static LLVMValueRef larger(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef arg[2] = {x, y};

    return emit_intrinsic(e, "llvm.maxnum", e->f32, arg, 2);
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
        v = is_sum ? LLVMBuildFAdd(e->b, v, other, "") : larger(e, v, other);
    }
    return v;
}

static LLVMValueRef exponential(emit *e, LLVMValueRef x, LLVMValueRef most)
{
    x = LLVMBuildFSub(e->b, x, most, "");
    x = LLVMBuildFMul(e->b, x, f32_of(e, 1.4426950408889634), "");
    return e->abi->attend->exp2(e, x);
}

/* Scores of half h become exponentials; returns what the row's sums shrink by.
 * Of a row without a score yet the largest is -inf, and its differences would
 * be NaN: they are taken from 0. */
static LLVMValueRef take_half(attending *t, LLVMValueRef *s, int h)
{
    emit *e = t->e;
    LLVMValueRef before = get_f32(e, t->most[h]), most = NULL, from, by, sum;

    for (int i = 0; i < t->nscore; i++)
        if (i / 2 % HALVES == h)
            most = most ? larger(e, most, s[i]) : s[i];
    most = larger(e, before, of_quad(t, most, false));
    LLVMBuildStore(e->b, most, t->most[h]);
    from = emit_select(
        e, LLVMBuildFCmp(e->b, LLVMRealOEQ, most, f32_of(e, -INFINITY), ""),
        f32_of(e, 0), most);
    by = exponential(e, before, from);
    sum = LLVMBuildFMul(e->b, get_f32(e, t->sum[h]), by, "");
    for (int i = 0; i < t->nscore; i++)
        if (i / 2 % HALVES == h) {
            s[i] = exponential(e, s[i], from);
            sum = LLVMBuildFAdd(e->b, sum, s[i], "");
        }
    LLVMBuildStore(e->b, sum, t->sum[h]);
    return by;
}

/* ---- the loop ---- */

static void meet(attending *t, int left)
{
    t->e->abi->await_copies(t->e, left);
    t->e->abi->settle(t->e);
    emit_barrier(t->e);
}

/* The block's scores become weights, as words for the engine, and the sums are
 * brought to the rows' new largest scores once nothing adds to them. */
static void take_block(attending *t, LLVMValueRef block)
{
    emit *e = t->e;
    const emit_attend_abi *abi = e->abi->attend;
    LLVMValueRef *s = sd_arena_array(e->a, LLVMValueRef, t->nscore), by[HALVES],
                 mark;

    abi->take(e, s, t->nscore);
    mask_scores(t, block, s);
    for (int h = 0; h < HALVES; h++)
        by[h] = take_half(t, s, h);
    mark = emit_mad(e, e->lid, sizeof(float),
                    emit_si(e, (int64_t)plan_attend_marks(t->a)));
    abi->wait_behind(
        e, local_at(t, mark),
        LLVMBuildFAdd(e->b, get_f32(e, t->sum[0]), get_f32(e, t->sum[1]), ""));
    abi->scale(e, by, t->nsum);
    for (int i = 0; i < t->nscore / 2; i++)
        LLVMBuildStore(
            e->b, abi->pack(e, e->k->slot[0].dtype, s[2 * i], s[2 * i + 1]),
            t->word[i]);
}

static void run_block(attending *t, LLVMValueRef at)
{
    emit *e = t->e;
    LLVMValueRef next = emit_plus(e, at, 1);

    meet(t, 0);
    copy_block(t, &t->k, emit_plus(e, at, 2));
    copy_block(t, &t->v, next);
    e->abi->close_copies(e);
    begin_scores(t, next);
    begin_sums(t, at);
    e->abi->wait(e, 1);
    take_block(t, next);
}

/* All blocks of keys from t->from to t->to. */
static void run_blocks(attending *t)
{
    emit *e = t->e;
    LLVMValueRef from = emit_get(e, t->from), last;
    emit_loop l;

    last = emit_plus(e, emit_get(e, t->to), -1);
    emit_barrier(e);
    copy_block(t, &t->k, from);
    e->abi->close_copies(e);
    copy_block(t, &t->k, emit_plus(e, from, 1));
    copy_block(t, &t->v, from);
    e->abi->close_copies(e);
    meet(t, 1);
    begin_scores(t, from);
    e->abi->wait(e, 0);
    take_block(t, from);
    emit_loop_open(e, &l, from, last, 1);
    run_block(t, l.at);
    emit_loop_close(e, &l);
    meet(t, 0);
    begin_sums(t, last);
    e->abi->wait(e, 0);
}

/* How many blocks have a key that some row of the group sees. */
static LLVMValueRef seen_blocks(attending *t, int64_t all)
{
    emit *e = t->e;
    LLVMValueRef last = emit_plus(e, t->first, t->a->rows - 1 + t->a->beyond);

    last = emit_larger(e, last, emit_si(e, 0));
    return emit_smaller(e, emit_plus(e, emit_over(e, last, t->a->keys), 1),
                        emit_si(e, all));
}

enum { FAR = 120 }; /* exp(-FAR) is less than any number of f32 */

/* Is there a row to whose sums masked scores may add? */
static LLVMValueRef is_near(attending *t)
{
    emit *e = t->e;
    LLVMValueRef any = LLVMConstInt(e->i1, 0, 0);

    for (int h = 0; h < HALVES; h++) {
        LLVMValueRef c =
            LLVMBuildFCmp(e->b, LLVMRealULE, get_f32(e, t->most[h]),
                          f32_of(e, t->a->masked + FAR), "");

        c = LLVMBuildAnd(e->b, c,
                         emit_below(e, row_at(t, h),
                                    emit_si(e, t->a->of.extent[HLO_ATTEND_Q])),
                         "");
        any = LLVMBuildOr(e->b, any, c, "");
    }
    return e->abi->attend->any(e, any);
}

static void run_all(attending *t)
{
    emit *e = t->e;
    int64_t all = (t->a->of.extent[HLO_ATTEND_K] + t->a->keys - 1) / t->a->keys;
    bool cut = t->a->is_cut && t->a->masked != INFINITY;
    LLVMBasicBlockRef again;
    LLVMBasicBlockRef done;
    LLVMValueRef to, more;

    t->from = emit_variable(e, emit_si(e, 0));
    t->to = emit_variable(e, cut ? seen_blocks(t, all) : emit_si(e, all));
    if (!cut) {
        run_blocks(t);
        return;
    }
    again = emit_block(e, "again");
    done = emit_block(e, "done");
    LLVMBuildBr(e->b, again);
    LLVMPositionBuilderAtEnd(e->b, again);
    run_blocks(t);
    to = emit_get(e, t->to);
    LLVMBuildStore(e->b, to, t->from);
    LLVMBuildStore(e->b, emit_si(e, all), t->to);
    more =
        LLVMBuildAnd(e->b, is_near(t), emit_below(e, to, emit_si(e, all)), "");
    LLVMBuildCondBr(e->b, more, again, done);
    LLVMPositionBuilderAtEnd(e->b, done);
}

/* ---- the result ---- */

static void write_two(attending *t, LLVMValueRef at, LLVMValueRef *v)
{
    emit *e = t->e;
    int array = 3 + t->a->of.nmore;
    sd_dtype type = e->k->slot[array].dtype;
    LLVMValueRef p = emit_element(e, type, t->base[array], at), x;

    if (type == SD_F32) {
        x = LLVMGetPoison(LLVMVectorType(e->f32, 2));
        for (unsigned i = 0; i < 2; i++)
            x = LLVMBuildInsertElement(e->b, x, v[i],
                                       LLVMConstInt(e->i32, i, 0), "");
    } else {
        x = e->abi->attend->pack(e, type, v[0], v[1]);
    }
    LLVMSetAlignment(LLVMBuildStore(e->b, x, p),
                     2 * (unsigned)sd_dtype_bytes(type));
}

static void write_half(attending *t, LLVMValueRef *v, int h)
{
    emit *e = t->e;
    int array = 3 + t->a->of.nmore;
    LLVMValueRef sum = of_quad(t, get_f32(e, t->sum[h]), true);
    LLVMValueRef by = LLVMBuildFDiv(e->b, f32_of(e, 1), sum, "");
    LLVMValueRef row = row_at(t, h), at;
    LLVMBasicBlockRef no = emit_when(
        e, emit_below(e, row, emit_si(e, t->a->of.extent[HLO_ATTEND_Q])));

    at = emit_mad(e, row, stride_of(t, array, HLO_ATTEND_Q), t->column);
    for (int i = 0; i < t->nsum; i += 2)
        if (i / 2 % HALVES == h) {
            LLVMValueRef two[2] = {LLVMBuildFMul(e->b, v[i], by, ""),
                                   LLVMBuildFMul(e->b, v[i + 1], by, "")};

            write_two(t, emit_plus(e, at, i / 4 * EIGHT), two);
        }
    emit_when_end(e, no);
}

void emit_attend(emit *e)
{
    const plan_attend *a = e->k->attend;
    attending t = {.e = e,
                   .a = a,
                   .nscore = a->keys / 2,
                   .nsum = (int)a->of.extent[HLO_ATTEND_E] / 2};
    LLVMValueRef *v = sd_arena_array(e->a, LLVMValueRef, t.nsum);

    find_point(&t);
    find_item(&t);
    open_operand(&t, &t.q, 0, HLO_ATTEND_Q, a->rows, 0, a->q_bytes);
    open_operand(&t, &t.k, 1, HLO_ATTEND_K, a->keys, plan_attend_k(a),
                 a->k_bytes);
    open_operand(&t, &t.v, 2, HLO_ATTEND_K, a->keys, plan_attend_v(a),
                 a->v_bytes);
    for (int h = 0; h < HALVES; h++) {
        t.most[h] = emit_alloca(e, e->f32);
        t.sum[h] = emit_alloca(e, e->f32);
        LLVMBuildStore(e->b, f32_of(e, -INFINITY), t.most[h]);
        LLVMBuildStore(e->b, f32_of(e, 0), t.sum[h]);
    }
    t.word = sd_arena_array(e->a, LLVMValueRef, t.nscore / 2);
    for (int i = 0; i < t.nscore / 2; i++)
        t.word[i] = emit_alloca(e, e->i32);
    e->abi->open_sums(e, e->f32, t.nsum);
    e->abi->attend->open(e, t.nscore);
    copy(&t, &t.q, t.first, emit_si(e, 0));
    run_all(&t);
    e->abi->take_sums(e, e->f32, v, t.nsum);
    for (int h = 0; h < HALVES; h++)
        write_half(&t, v, h);
}
