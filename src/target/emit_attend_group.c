/* What groups of kernels of attention have: which rows, what they copy to local
 * memory, the products of that, scores, and how results are written.  See
 * emit_attend.h. */
#include <math.h>

#include "emit_attend.h"

enum { PART = PLAN_LINE_PART / 2 };

static int64_t stride_of(const attending *t, int array, int axis)
{
    return t->a->of.stride[array][axis];
}

/* ---- where things are ---- */

/* Bytes from a slot to the group's point of the batch, and its first row: the
 * longest rows of a mask begin first. */
void attend_find_point(attending *t)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    int own = plan_attend_axis(t->a, false);
    LLVMValueRef rest = e->first, block = emit_rest(e, rest, t->a->blocks);
    LLVMValueRef off[HLO_ATTEND_ARRAYS];
    int n = hlo_attend_result(of) + of->nresult;

    rest = emit_over(e, rest, t->a->blocks);
    if (t->a->is_cut && own == HLO_ATTEND_Q)
        block = LLVMBuildSub(e->b, emit_si(e, t->a->blocks - 1), block, "");
    t->rows = t->a->rows;
    t->keys = t->a->keys;
    t->first = emit_times(e, block, plan_attend_block(t->a, own));
    for (int i = 0; i < n; i++)
        off[i] = emit_i64(e, 0);
    for (int axis = HLO_ATTEND_BATCH - 1; axis >= 0; axis--) {
        LLVMValueRef at = emit_rest(e, rest, of->extent[axis]);

        rest = emit_over(e, rest, of->extent[axis]);
        t->point[axis] = at;
        at = LLVMBuildZExtOrBitCast(e->b, at, e->i64, "");
        for (int i = 0; i < n; i++) {
            int64_t by = of->stride[i][axis] *
                         (int64_t)sd_dtype_bytes(e->k->slot[i].dtype);

            off[i] = LLVMBuildAdd(
                e->b, off[i], LLVMBuildMul(e->b, at, emit_i64(e, by), ""), "");
        }
    }
    for (int i = 0; i < n; i++)
        t->base[i] = emit_behind(e, e->i8, e->slot[i], off[i]);
}

void attend_find_item(attending *t)
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
static void find_parts(attending *t, attend_copied *c)
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

void attend_open(attending *t, int array, bool deep)
{
    const plan_attend *a = t->a;
    int depth = plan_engine_table[a->engine].depth;
    int axis = stride_of(t, array, HLO_ATTEND_K) ? HLO_ATTEND_K : HLO_ATTEND_Q,
        along = stride_of(t, array, HLO_ATTEND_D) ? HLO_ATTEND_D : HLO_ATTEND_E;
    attend_copied *c = &t->in[array];

    *c = (attend_copied){.array = array,
                         .axis = axis,
                         .rows = plan_attend_block(a, axis),
                         .limit = a->of.extent[axis],
                         .depth = a->of.extent[along],
                         .at = a->at[array],
                         .bytes = a->bytes[array]};
    c->parts = deep ? (c->depth + depth - 1) / depth * (depth / PART)
                    : c->depth / PART;
    find_parts(t, c);
}

static LLVMValueRef local_at(attending *t, LLVMValueRef byte)
{
    return emit_local(t->e, byte);
}

void attend_copy(attending *t, const attend_copied *c, LLVMValueRef first,
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
                     emit_behind(e, each, t->base[c->array], at), not);
        emit_when_end(e, has);
    }
}

static LLVMValueRef turn_of(attending *t, LLVMValueRef block)
{
    return emit_rest(t->e, block, t->a->pairs);
}

void attend_copy_block(attending *t, const attend_copied *c, LLVMValueRef block)
{
    emit *e = t->e;
    LLVMValueRef last = emit_plus(e, emit_get(e, t->to), -1);
    LLVMValueRef at = emit_smaller(e, block, last);

    attend_copy(t, c, emit_times(e, at, c->rows), turn_of(t, block));
}

void attend_meet(attending *t, int left)
{
    t->e->abi->await_copies(t->e, left);
    t->e->abi->settle(t->e);
    emit_barrier(t->e);
}

/* ---- products ---- */

static LLVMValueRef area_of(attending *t, const attend_copied *c,
                            LLVMValueRef block)
{
    emit *e = t->e;

    return local_at(t, emit_mad(e, turn_of(t, block), (int64_t)c->bytes,
                                emit_si(e, (int64_t)c->at)));
}

static LLVMValueRef team_area(attending *t, const attend_copied *c)
{
    emit *e = t->e;
    const plan_engine_info *of = &plan_engine_table[t->a->engine];

    return local_at(t, emit_mad(e, t->team, (int64_t)of->m * PLAN_LINE,
                                emit_si(e, (int64_t)c->at)));
}

void attend_multiply(attending *t, const char *sums, const attend_copied *x,
                     const attend_copied *y, LLVMValueRef block)
{
    int depth = plan_engine_table[t->a->engine].depth;
    emit_turn_product p = {.sums = sums,
                           .x = team_area(t, x),
                           .y = area_of(t, y, block),
                           .x_rows = x->rows,
                           .y_rows = y->rows,
                           .columns = (int)y->rows,
                           .times = (int)(x->parts * PART / depth)};

    t->e->abi->attend->multiply(t->e, &p);
}

void attend_add(attending *t, const char *sums, LLVMValueRef *word,
                const attend_copied *y, LLVMValueRef block)
{
    int depth = plan_engine_table[t->a->engine].depth;
    emit_turn_product p = {.sums = sums,
                           .word = word,
                           .y = area_of(t, y, block),
                           .y_rows = y->rows,
                           .columns = (int)y->depth,
                           .times = (int)(y->rows / depth)};

    t->e->abi->attend->add(t->e, &p);
}

/* ---- scores ---- */

LLVMValueRef attend_row(attending *t, int half)
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

/* x has the first n parameters, the product as f32; the result is an f32. */
static LLVMValueRef function_of(attending *t, const plan_body *f, emit_value *x,
                                int n, LLVMValueRef row, LLVMValueRef key)
{
    emit *e = t->e;
    const hlo_attend *of = &t->a->of;
    emit_value root[1];

    x[0] = emit_convert(e, x[0], SD_F32, of->score->param[0]->shape->dtype);
    x[1] = emit_place(e, SD_S32, t->is_seen ? emit_si(e, 0) : row);
    x[2] = emit_place(e, SD_S32, t->is_seen ? emit_si(e, t->a->beyond) : key);
    for (int i = 0; i < of->nmore; i++)
        x[n + i] = element_of(t, of->nown + i, row, key);
    emit_body(e, f, x, root);
    return emit_convert(e, root[0], f->root[0]->dtype, SD_F32).re;
}

/* Is there position `at` of an axis?  NULL: there are all of its blocks. */
static LLVMValueRef is_there(attending *t, int axis, LLVMValueRef at)
{
    int64_t n = t->a->of.extent[axis];

    return n % plan_attend_block(t->a, axis)
               ? emit_below(t->e, at, emit_si(t->e, n))
               : NULL;
}

LLVMValueRef attend_where(attending *t, int axis, LLVMValueRef at,
                          LLVMValueRef v, double other)
{
    LLVMValueRef there = is_there(t, axis, at);

    return there ? emit_select(t->e, there, v, attend_f32(t->e, other)) : v;
}

LLVMValueRef attend_score(attending *t, LLVMValueRef product, LLVMValueRef row,
                          LLVMValueRef key)
{
    emit_value x[HLO_ATTEND_FIRST + HLO_ATTEND_MORE] = {{product, NULL}};

    return attend_where(
        t, HLO_ATTEND_K, key,
        function_of(t, t->a->score, x, HLO_ATTEND_FIRST, row, key), -INFINITY);
}

LLVMValueRef attend_slope(attending *t, LLVMValueRef product, LLVMValueRef ds,
                          LLVMValueRef row, LLVMValueRef key)
{
    emit_value x[HLO_ATTEND_FIRST + 1 + HLO_ATTEND_MORE] = {{product, NULL}};

    x[HLO_ATTEND_FIRST] =
        emit_convert(t->e, (emit_value){ds, NULL}, SD_F32,
                     t->a->of.slope->param[HLO_ATTEND_FIRST]->shape->dtype);
    return function_of(t, t->a->slope, x, HLO_ATTEND_FIRST + 1, row, key);
}

LLVMValueRef attend_larger(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef arg[2] = {x, y};

    return emit_intrinsic(e, "llvm.maxnum", e->f32, arg, 2);
}

LLVMValueRef attend_exp(emit *e, LLVMValueRef x, LLVMValueRef most)
{
    x = LLVMBuildFSub(e->b, x, most, "");
    x = LLVMBuildFMul(e->b, x, attend_f32(e, 1.4426950408889634), "");
    return e->abi->attend->exp2(e, x);
}

/* ---- masks that are told by row and key ---- */

LLVMValueRef attend_seen_blocks(attending *t, int64_t all)
{
    emit *e = t->e;
    LLVMValueRef last = emit_plus(e, t->first, t->rows - 1 + t->a->beyond);

    last = emit_larger(e, last, emit_si(e, 0));
    return emit_smaller(e, emit_plus(e, emit_over(e, last, t->a->keys), 1),
                        emit_si(e, all));
}

LLVMValueRef attend_first_other(attending *t)
{
    emit *e = t->e;
    const plan_attend *a = t->a;
    bool keys = plan_attend_axis(a, false) == HLO_ATTEND_K;
    int64_t block = plan_attend_block(a, plan_attend_axis(a, true)),
            n = keys ? t->keys - 1 - a->beyond : a->beyond + 1;
    LLVMValueRef at = emit_larger(e, emit_plus(e, t->first, n), emit_si(e, 0));

    return emit_over(e, keys ? emit_plus(e, at, block - 1) : at, block);
}

LLVMValueRef attend_is_near(attending *t, LLVMValueRef m)
{
    return LLVMBuildFCmp(t->e->b, LLVMRealULE, m,
                         attend_f32(t->e, t->a->masked + ATTEND_FAR), "");
}

void attend_run_some(attending *t, attend_block_fn *run, LLVMValueRef from,
                     LLVMValueRef to, bool seen)
{
    emit_loop l;

    t->is_seen = seen;
    emit_loop_open(t->e, &l, from, to, 1);
    run(t, l.at);
    emit_loop_close(t->e, &l);
    t->is_seen = false;
}

void attend_run_all(attending *t, void (*run)(attending *t),
                    LLVMValueRef (*near)(attending *t))
{
    emit *e = t->e;
    int64_t all = (t->a->of.extent[HLO_ATTEND_K] + t->a->keys - 1) / t->a->keys;
    bool cut = t->a->is_cut && t->a->masked != INFINITY;
    LLVMBasicBlockRef again;
    LLVMBasicBlockRef done;
    LLVMValueRef to, more;

    t->from = emit_variable(e, emit_si(e, 0));
    t->to =
        emit_variable(e, cut ? attend_seen_blocks(t, all) : emit_si(e, all));
    if (!cut) {
        run(t);
        return;
    }
    again = emit_block(e, "again");
    done = emit_block(e, "done");
    LLVMBuildBr(e->b, again);
    LLVMPositionBuilderAtEnd(e->b, again);
    run(t);
    to = emit_get(e, t->to);
    LLVMBuildStore(e->b, to, t->from);
    LLVMBuildStore(e->b, emit_si(e, all), t->to);
    more = LLVMBuildAnd(e->b, near(t), emit_below(e, to, emit_si(e, all)), "");
    LLVMBuildCondBr(e->b, more, again, done);
    LLVMPositionBuilderAtEnd(e->b, done);
}

/* ---- results ---- */

static void write_two(attending *t, int array, LLVMValueRef at, LLVMValueRef *v)
{
    emit *e = t->e;
    sd_dtype type = e->k->slot[array].dtype;
    LLVMValueRef p = emit_element(e, type, t->base[array], at), x;

    if (type == SD_F32) {
        x = LLVMGetPoison(LLVMVectorType(e->f32, 2));
        for (unsigned i = 0; i < 2; i++)
            x = emit_insert(e, x, v[i], i);
    } else {
        x = e->abi->attend->pack(e, type, v[0], v[1]);
    }
    LLVMSetAlignment(LLVMBuildStore(e->b, x, p),
                     2 * (unsigned)sd_dtype_bytes(type));
}

void attend_write(attending *t, int array, LLVMValueRef *v, int n)
{
    emit *e = t->e;
    int axis = plan_attend_axis(t->a, false);

    for (int h = 0; h < HALVES; h++) {
        LLVMValueRef row = attend_row(t, h),
                     at =
                         emit_mad(e, row, stride_of(t, array, axis), t->column);
        LLVMBasicBlockRef no =
            emit_when(e, emit_below(e, row, emit_si(e, t->a->of.extent[axis])));

        for (int i = 0; i < n; i += 2)
            if (i / 2 % HALVES == h)
                write_two(t, array, emit_plus(e, at, i / 4 * EIGHT), v + i);
        emit_when_end(e, no);
    }
}
