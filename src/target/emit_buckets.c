/* GPU: updates of one word that go to places of a bucket, which lies in local
 * memory meanwhile: plan_buckets.  A group is a sub-group.  Its items take an
 * update each, in a turn; of those whose updates go to one place the first adds
 * all of them in their order, which it gets from the others without memory. */
#include "emit.h"

enum {
    AHEAD =
        8, /* turns whose updates are on their way while as many are added */
    HALF = AHEAD / 2,
    AT_ONCE = PLAN_BUCKET_AT_ONCE,
    SHOWN = 8, /* values that are shown to all at once */
    /* With more that have lost their marks all ask each other who has the same
     * (match.any), which takes as long as there are different ones; of a place
     * that has more updates than one and these, values are shown to all. */
    FEW_LOST = 3,
    FEW_MORE = 3
};
static_assert(HALF % PLAN_BUCKET_MARKS == 0, "whole sets of marks");

typedef struct {
    emit *e;
    const plan_buckets *b;
    int group;
    sd_dtype type; /* of an update and of a place */
    LLVMValueRef bucket, updates; /* its number; the first of the batch's */
    LLVMValueRef array; /* the batch's first place */
    LLVMValueRef at, end; /* of the bucket's updates in the batch */
    LLVMValueRef key[AHEAD], value[AHEAD]; /* variables: of the next turns */
    LLVMTypeRef word; /* of a value */
} buckets;

enum { PLACES, UPDATES, ARRAY, NUMBERS };

typedef struct { /* of an item */
    LLVMValueRef is_there; /* an i1: has it an update? */
    LLVMValueRef position, value; /* of that; in the bucket */
    LLVMValueRef mark, lost; /* what is at its place; it is not its own */
} turn;

static LLVMValueRef read_slot(const buckets *g, int slot, LLVMValueRef i)
{
    emit *e = g->e;

    return emit_mem_read(e, e->k->slot[slot].dtype, e->slot[slot], i, 1).re;
}

static LLVMValueRef shift_left(emit *e, LLVMValueRef v, int by)
{
    return LLVMBuildShl(e->b, v, emit_int_like(v, by), "");
}

static LLVMValueRef shift_right(emit *e, LLVMValueRef v, int by)
{
    return LLVMBuildLShr(e->b, v, emit_int_like(v, by), "");
}

static LLVMValueRef low_bits(emit *e, LLVMValueRef v, int n)
{
    return LLVMBuildAnd(e->b, v, emit_int_like(v, ((int64_t)1 << n) - 1), "");
}

/* The place at a position of the bucket, and the other way round. */
static LLVMValueRef place_of(const buckets *g, LLVMValueRef position)
{
    emit *e = g->e;
    const plan_buckets *b = g->b;
    LLVMValueRef far = shift_right(e, position, b->near);

    far = LLVMBuildOr(e->b, shift_left(e, far, b->bits), g->bucket, "");
    return LLVMBuildOr(e->b, shift_left(e, far, b->near),
                       low_bits(e, position, b->near), "");
}

static LLVMValueRef position_of(const buckets *g, LLVMValueRef place)
{
    emit *e = g->e;
    const plan_buckets *b = g->b;
    LLVMValueRef far = shift_right(e, place, b->bits + b->near);

    return LLVMBuildOr(e->b, shift_left(e, far, b->near),
                       low_bits(e, place, b->near), "");
}

/* ---- which updates ---- */

/* Of v, an i32, of all items. */
static LLVMValueRef sum_of_all(emit *e, LLVMValueRef v)
{
    LLVMValueRef item = LLVMBuildIntCast2(e->b, e->lid, e->i32, false, "");

    for (int by = 1; by < e->abi->together; by *= 2) {
        LLVMValueRef from =
            LLVMBuildXor(e->b, item, emit_int_like(item, by), "");
        LLVMValueRef x = emit_from_item(e, (emit_value){v, NULL}, from).re;

        v = LLVMBuildAdd(e->b, v, x, "");
    }
    return v;
}

/* Digits' numbers of elements are those of buckets: g->at is what those before
 * it have. */
static void find_updates(buckets *g, LLVMValueRef batch)
{
    emit *e = g->e;
    const plan_buckets *b = g->b;
    int n = 1 << b->bits;
    LLVMValueRef before = LLVMConstInt(e->i32, 0, 0), own = before, zero = own;

    for (int i = 0; i < n; i += g->group) {
        LLVMValueRef which = emit_plus(e, e->lid, i), v;
        LLVMValueRef look = emit_smaller(e, which, emit_si(e, n - 1));

        look = emit_mad(e, batch, n, look);
        look = emit_plus(e, emit_times(e, look, b->pieces + 1), b->pieces);
        v = read_slot(g, NUMBERS, look);
        before = LLVMBuildAdd(
            e->b, before,
            LLVMBuildSelect(e->b, emit_below(e, which, g->bucket), v, zero, ""),
            "");
        v = LLVMBuildSelect(
            e->b, LLVMBuildICmp(e->b, LLVMIntEQ, which, g->bucket, ""), v, zero,
            "");
        own = LLVMBuildAdd(e->b, own, v, "");
    }
    before = sum_of_all(e, before);
    own = LLVMBuildAdd(e->b, before, sum_of_all(e, own), "");
    g->at = LLVMBuildIntCast2(e->b, before, e->si, false, "");
    g->end = LLVMBuildIntCast2(e->b, own, e->si, false, "");
}

/* ---- the bucket ---- */

static LLVMValueRef local_table(const buckets *g)
{
    return emit_local(g->e, emit_i64(g->e, 0));
}

/* to: from local memory to the array, else the other way.  What lies beyond the
 * places is read at the last, and written nowhere. */
static void copy_bucket(const buckets *g, bool to)
{
    emit *e = g->e;
    LLVMValueRef v[AT_ONCE], position[AT_ONCE], place[AT_ONCE];
    LLVMValueRef last = emit_si(e, g->b->places - 1), from;
    emit_loop l;

    emit_loop_open(e, &l, emit_si(e, 0),
                   emit_si(e, plan_bucket_room(g->b, g->group)),
                   (int64_t)g->group * AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++) {
        position[i] = LLVMBuildAdd(e->b, l.at, e->lid, "");
        position[i] = emit_plus(e, position[i], (int64_t)i * g->group);
        place[i] = place_of(g, position[i]);
        from = emit_smaller(e, place[i], last);
        v[i] = to ? emit_mem_read(e, g->type, local_table(g), position[i], 1).re
                  : read_slot(g, ARRAY, LLVMBuildAdd(e->b, g->array, from, ""));
    }
    for (int i = 0; i < AT_ONCE; i++) {
        LLVMBasicBlockRef no = NULL;

        if (to)
            no = emit_when(e, emit_below(e, place[i], emit_plus(e, last, 1)));
        emit_mem_write(e, g->type, to ? e->slot[ARRAY] : local_table(g),
                       to ? LLVMBuildAdd(e->b, g->array, place[i], "")
                          : position[i],
                       (emit_value){v[i], NULL});
        if (to)
            emit_when_end(e, no);
    }
    emit_loop_close(e, &l);
    e->abi->meet(e);
}

/* ---- turns ---- */

/* The updates of the turns that begin there; beyond the end of the last. */
static void read_turns(buckets *g, LLVMValueRef from)
{
    emit *e = g->e;
    LLVMValueRef last = emit_plus(e, g->end, -1);

    for (int i = 0; i < AHEAD; i++) {
        LLVMValueRef at = LLVMBuildAdd(e->b, from, e->lid, ""), k, v;

        at = emit_smaller(e, emit_plus(e, at, (int64_t)i * g->group), last);
        at = LLVMBuildAdd(e->b, g->updates, at, "");
        k = read_slot(g, PLACES, at);
        v = read_slot(g, UPDATES, at);
        if (!g->key[i]) {
            g->key[i] = emit_alloca(e, LLVMTypeOf(k));
            g->value[i] = emit_alloca(e, g->word = LLVMTypeOf(v));
        }
        LLVMBuildStore(e->b, k, g->key[i]);
        LLVMBuildStore(e->b, v, g->value[i]);
    }
}

/* An i1: is v, the same for all items, not 0? */
static LLVMValueRef is_some(emit *e, LLVMValueRef v)
{
    return LLVMBuildICmp(e->b, LLVMIntNE, v, emit_int_like(v, 0), "");
}

/* Number of the lowest bit that is set; of 0: any. */
static LLVMValueRef lowest(emit *e, LLVMValueRef v)
{
    LLVMValueRef arg[2] = {v, emit_bool(e, false)};

    return low_bits(e, emit_intrinsic(e, "llvm.cttz", e->i32, arg, 2), 5);
}

static LLVMValueRef without_lowest(emit *e, LLVMValueRef v)
{
    return LLVMBuildAnd(e->b, v, LLVMBuildSub(e->b, v, emit_int_like(v, 1), ""),
                        "");
}

static LLVMValueRef item_number(emit *e)
{
    return LLVMBuildIntCast2(e->b, e->lid, e->i32, false, "");
}

static LLVMValueRef combined(const buckets *g, LLVMValueRef old,
                             LLVMValueRef by)
{
    emit_value v[2] = {{old, NULL}, {by, NULL}}, out[1];

    emit_body(g->e, g->b->body, v, out);
    return out[0].re;
}

static LLVMValueRef value_of_item(emit *e, LLVMValueRef v, LLVMValueRef item)
{
    return emit_from_item(e, (emit_value){v, NULL}, item).re;
}

/* *sum and the updates of the items in `rest`, a set, from the first on.  All
 * items go round as long as any has some. */
static void add_few(const buckets *g, LLVMValueRef sum, LLVMValueRef rest,
                    LLVMValueRef value)
{
    emit *e = g->e;
    LLVMValueRef left = emit_variable(e, rest), some, old, new;
    emit_while w = emit_while_begin(e);

    rest = LLVMBuildLoad2(e->b, e->i32, left, "");
    some = is_some(e, rest);
    emit_while_test(e, &w, is_some(e, e->abi->vote(e, some)));
    old = LLVMBuildLoad2(e->b, g->word, sum, "");
    new = combined(g, old, value_of_item(e, value, lowest(e, rest)));
    LLVMBuildStore(e->b, LLVMBuildSelect(e->b, some, new, old, ""), sum);
    LLVMBuildStore(e->b, without_lowest(e, rest), left);
    emit_while_end(e, &w);
}

/* The same where an item has many: each value is shown to all.  Eight in a row
 * hide what a shuffle takes; all of them, in each of the turns, would be half
 * of the kernel's text, for which ptxas takes 30 ms. */
static void add_many(const buckets *g, LLVMValueRef sum, LLVMValueRef rest,
                     LLVMValueRef value)
{
    emit *e = g->e;
    LLVMValueRef item[SHOWN], of[SHOWN], v, new;
    LLVMValueRef first = LLVMConstInt(e->i32, 0, 0);
    emit_loop l;

    assert(g->group % SHOWN == 0);
    emit_loop_open(e, &l, first, emit_int_like(first, g->group), SHOWN);
    l.rolled = true;
    v = LLVMBuildLoad2(e->b, g->word, sum, "");
    for (int i = 0; i < SHOWN; i++) { /* none waits for another */
        item[i] = emit_plus(e, l.at, i);
        of[i] = value_of_item(e, value, item[i]);
    }
    for (int i = 0; i < SHOWN; i++) {
        LLVMValueRef bit = LLVMBuildLShr(e->b, rest, item[i], "");

        new = combined(g, v, of[i]);
        v = LLVMBuildSelect(e->b, is_some(e, low_bits(e, bit, 1)), new, v, "");
    }
    LLVMBuildStore(e->b, v, sum);
    emit_loop_close(e, &l);
}

/* Which items have the place of this one, if few lost their marks, a set, which
 * is not the same for all. */
static void find_few(const buckets *g, const turn *t, LLVMValueRef lost,
                     LLVMValueRef same)
{
    emit *e = g->e;
    LLVMValueRef left = emit_variable(e, lost), mark, is_one, set, own;
    emit_while w = emit_while_begin(e);

    lost = LLVMBuildLoad2(e->b, e->i32, left, "");
    emit_while_test(e, &w, is_some(e, lost));
    mark = value_of_item(e, t->mark, lowest(e, lost));
    is_one =
        LLVMBuildAnd(e->b, t->is_there,
                     LLVMBuildICmp(e->b, LLVMIntEQ, t->mark, mark, ""), "");
    set = e->abi->vote(e, is_one);
    own = LLVMBuildLoad2(e->b, e->i32, same, "");
    LLVMBuildStore(e->b, LLVMBuildSelect(e->b, is_one, set, own, ""), same);
    set = LLVMBuildAnd(e->b, lost, LLVMBuildNot(e->b, set, ""), "");
    LLVMBuildStore(e->b, set, left);
    emit_while_end(e, &w);
}

static LLVMValueRef is_more(emit *e, LLVMValueRef set, int n)
{
    LLVMValueRef count = emit_intrinsic(e, "llvm.ctpop", e->i32, &set, 1);

    return emit_below(e, emit_int_like(count, n), count);
}

/* Which items have the place of this one; of one without an update it means
 * nothing. */
static LLVMValueRef find_same(const buckets *g, const turn *t)
{
    emit *e = g->e;
    LLVMValueRef one = LLVMConstInt(e->i32, 1, 0), lost, many, same, mark;
    LLVMBasicBlockRef no;

    same = emit_variable(e, LLVMBuildShl(e->b, one, item_number(e), ""));
    lost = e->abi->vote(e, t->lost);
    many = is_more(e, lost, FEW_LOST);
    no = emit_when(e, many);
    mark = LLVMBuildSelect(e->b, t->is_there, t->mark,
                           emit_int_like(t->mark, g->group), "");
    LLVMBuildStore(e->b, e->abi->same(e, mark), same);
    emit_when_end(e, no);
    no = emit_when(e, LLVMBuildNot(e->b, many, ""));
    find_few(g, t, lost, same);
    emit_when_end(e, no);
    return LLVMBuildLoad2(e->b, e->i32, same, "");
}

static LLVMValueRef read_sum(const buckets *g, const turn *t)
{
    return emit_mem_read(g->e, g->type, local_table(g), t->position, 1).re;
}

static void write_sum(const buckets *g, const turn *t, LLVMValueRef is_one,
                      LLVMValueRef v)
{
    emit *e = g->e;
    LLVMBasicBlockRef no = emit_when(e, is_one);

    emit_mem_write(e, g->type, local_table(g), t->position,
                   (emit_value){v, NULL});
    emit_when_end(e, no);
}

/* Some of a turn's updates have the same place: the first adds them all. */
static void take_together(const buckets *g, const turn *t)
{
    emit *e = g->e;
    LLVMValueRef same = find_same(g, t), none = LLVMConstInt(e->i32, 0, 0);
    LLVMValueRef is_first, rest, sum, many;
    LLVMBasicBlockRef no;

    is_first =
        LLVMBuildICmp(e->b, LLVMIntEQ, lowest(e, same), item_number(e), "");
    is_first = LLVMBuildAnd(e->b, is_first, t->is_there, "");
    rest = LLVMBuildSelect(e->b, is_first, without_lowest(e, same), none, "");
    sum = emit_variable(e, combined(g, read_sum(g, t), t->value));
    many = is_some(e, e->abi->vote(e, is_more(e, rest, FEW_MORE)));
    no = emit_when(e, many);
    add_many(g, sum, rest, t->value);
    emit_when_end(e, no);
    no = emit_when(e, LLVMBuildNot(e->b, many, ""));
    add_few(g, sum, rest, t->value);
    emit_when_end(e, no);
    write_sum(g, t, is_first, LLVMBuildLoad2(e->b, g->word, sum, ""));
}

static LLVMValueRef marks(const buckets *g, int i)
{
    return emit_local(g->e,
                      emit_i64(g->e, plan_bucket_room(g->b, g->group) *
                                         ((int64_t)sizeof(uint32_t) + i)));
}

/* Each item marks its place with its number.  Of those that mark the same one
 * the last to write is seen by all. */
static void mark_places(const buckets *g, turn *t)
{
    emit *e = g->e;
    LLVMValueRef own = LLVMBuildTrunc(e->b, e->lid, e->i8, "");

    for (int i = 0; i < PLAN_BUCKET_MARKS; i++) {
        LLVMBasicBlockRef no = emit_when(e, t[i].is_there);

        emit_mem_write(e, SD_U8, marks(g, i), t[i].position,
                       (emit_value){own, NULL});
        emit_when_end(e, no);
    }
    e->abi->meet(e);
    for (int i = 0; i < PLAN_BUCKET_MARKS; i++) {
        LLVMValueRef v =
            emit_mem_read(e, SD_U8, marks(g, i), t[i].position, 1).re;

        t[i].mark = LLVMBuildZExt(e->b, v, e->i32, "");
        t[i].lost =
            LLVMBuildICmp(e->b, LLVMIntNE, t[i].mark, item_number(e), "");
        t[i].lost = LLVMBuildAnd(e->b, t[i].lost, t[i].is_there, "");
    }
    e->abi->meet(e);
}

static void take_turn(const buckets *g, const turn *t)
{
    emit *e = g->e;
    LLVMValueRef some = is_some(e, e->abi->vote(e, t->lost));
    LLVMBasicBlockRef no = emit_when(e, some);

    take_together(g, t);
    emit_when_end(e, no);
    no = emit_when(e, LLVMBuildNot(e->b, some, ""));
    write_sum(g, t, t->is_there, combined(g, read_sum(g, t), t->value));
    emit_when_end(e, no);
    e->abi->meet(e);
}

/* The turn whose updates are known, `at` of this item. */
static turn begin_turn(const buckets *g, int i, LLVMValueRef at)
{
    emit *e = g->e;
    LLVMValueRef key = LLVMBuildLoad2(e->b, e->i32, g->key[i], "");
    turn t = {.value = LLVMBuildLoad2(e->b, g->word, g->value[i], "")};

    t.is_there = LLVMBuildAnd(
        e->b, emit_below(e, at, g->end),
        LLVMBuildICmp(e->b, LLVMIntNE, key, LLVMConstAllOnes(e->i32), ""), "");
    t.position = LLVMBuildSelect(e->b, t.is_there, position_of(g, key),
                                 emit_int_like(key, 0), "");
    t.position = LLVMBuildIntCast2(e->b, t.position, e->si, false, "");
    return t;
}

/* One of two turns. */
static turn either(emit *e, LLVMValueRef c, const turn *x, const turn *y)
{
    return (turn){
        .is_there = LLVMBuildSelect(e->b, c, x->is_there, y->is_there, ""),
        .position = LLVMBuildSelect(e->b, c, x->position, y->position, ""),
        .value = LLVMBuildSelect(e->b, c, x->value, y->value, "")};
}

/* A half of the turns and then the other, by one text: it is long, and ptxas
 * would take twice as long for both. */
static void take_halves(const buckets *g, const turn t[AHEAD])
{
    emit *e = g->e;
    LLVMValueRef zero = LLVMConstInt(e->i32, 0, 0), first;
    turn half[HALF];
    emit_loop l;

    emit_loop_open(e, &l, zero, emit_int_like(zero, 2), 1);
    l.rolled = true;
    first = LLVMBuildICmp(e->b, LLVMIntEQ, l.at, zero, "");
    for (int i = 0; i < HALF; i++)
        half[i] = either(e, first, &t[i], &t[HALF + i]);
    for (int i = 0; i < HALF; i += PLAN_BUCKET_MARKS)
        mark_places(g, &half[i]);
    for (int i = 0; i < HALF; i++)
        take_turn(g, &half[i]);
    emit_loop_close(e, &l);
}

static void take_updates(buckets *g)
{
    emit *e = g->e;
    turn t[AHEAD];
    emit_loop l;

    read_turns(g, g->at);
    emit_loop_open(e, &l, g->at, g->end, (int64_t)AHEAD * g->group);
    for (int i = 0; i < AHEAD; i++)
        t[i] = begin_turn(g, i,
                          emit_plus(e, LLVMBuildAdd(e->b, l.at, e->lid, ""),
                                    (int64_t)i * g->group));
    read_turns(g, emit_plus(e, l.at, (int64_t)AHEAD * g->group));
    take_halves(g, t);
    emit_loop_close(e, &l);
}

void emit_buckets(emit *e)
{
    const plan_buckets *b = e->k->buckets;
    buckets g = {
        .e = e, .b = b, .group = e->k->group, .type = e->k->slot[ARRAY].dtype};
    LLVMValueRef batch = emit_over(e, e->first, (int64_t)1 << b->bits);
    LLVMBasicBlockRef no;

    assert(g.group == e->abi->together && e->abi->same);
    g.bucket = emit_rest(e, e->first, (int64_t)1 << b->bits);
    g.updates = emit_times(e, batch, b->n);
    g.array = emit_times(e, batch, b->places);
    find_updates(&g, batch);
    no = emit_when(e, emit_below(e, g.at, g.end));
    copy_bucket(&g, false);
    take_updates(&g);
    copy_bucket(&g, true);
    emit_when_end(e, no);
}
