/* The gradient of a window by a group of work items, as the plan lays it out
 * (plan_places.h):
 *
 *   read the first steps
 *   for each step:
 *       begin to multiply what lies in the areas whose turn it is
 *       wait for the product before, and for the next step's copies
 *       begin to copy the step after those that are under way
 *   write the sums
 */
#include "emit.h"

enum {
    PARTS = PLAN_LINE / PLAN_LINE_PART, /* copies of a line */
    COPIES = HLO_PLACES_BESIDE * PARTS, /* and of a unit */
    PART = PLAN_LINE_PART / 2,          /* features */
    QUAD = 4,  /* items that have one row of a product */
    EIGHT = 8, /* columns of which an item has two, and rows apart of these */
    IN_EIGHT = 4 /* sums of an item of eight columns */
};

typedef struct {
    emit *e;
    const plan_places *p;
    LLVMValueRef piece, x_block, y_block; /* the group's */
    LLVMValueRef beside, part,
        unit; /* of the copies of an item: which of eight
                 positions; of the line; the first unit */
    LLVMValueRef first, n; /* steps of the piece */
} placing;

/* One operand, as it is copied. */
typedef struct {
    int slot;
    int64_t units, row;    /* of a step; units of a row of it */
    int64_t size[2], low[2]; /* of the array; where a step's first unit is */
    int64_t features, at;  /* at: bytes of an area before it */
    LLVMValueRef block;
} copied;

static void find_group(placing *t)
{
    emit *e = t->e;
    const plan_places *p = t->p;
    LLVMValueRef rest = e->first, to;

    t->x_block = emit_rest(e, rest, p->x_blocks);
    rest = emit_over(e, rest, p->x_blocks);
    t->y_block = emit_rest(e, rest, p->y_blocks);
    t->piece = emit_over(e, rest, p->y_blocks);
    t->first =
        emit_over(e, emit_times(e, t->piece, p->step.steps), p->of.pieces);
    to = emit_over(e, emit_times(e, emit_plus(e, t->piece, 1), p->step.steps),
                   p->of.pieces);
    t->n = LLVMBuildSub(e->b, to, t->first, "");
    t->part = emit_rest(e, e->lid, PARTS);
    t->beside = emit_rest(e, emit_over(e, e->lid, PARTS), HLO_PLACES_BESIDE);
    t->unit = emit_over(e, e->lid, COPIES);
}

/* Where a step begins: in the image, and the row and column of y. */
typedef struct {
    LLVMValueRef image, row, column;
} position;

static position find_step(placing *t, LLVMValueRef at)
{
    emit *e = t->e;
    const hlo_places_step *s = &t->p->step;
    int64_t columns = t->p->of.of[1] / s->columns,
            band = t->p->of.of[0] / s->bands;
    LLVMValueRef rest = emit_over(e, at, columns), row, of;
    position p;

    p.column = emit_times(e, emit_rest(e, at, columns), s->columns);
    row = emit_times(e, emit_rest(e, rest, band / s->rows), s->rows);
    of = emit_mad(e, emit_over(e, rest, band / s->rows), HLO_PLACES_BESIDE,
                  t->beside);
    p.image = emit_over(e, of, s->bands);
    p.row = emit_mad(e, emit_rest(e, of, s->bands), band, row);
    return p;
}

static LLVMValueRef is_outside(emit *e, LLVMValueRef at, int64_t n)
{
    return LLVMBuildICmp(e->b, LLVMIntUGE, at, emit_si(e, n), "");
}

/* The item's copy of a unit, which lies in the row and column of the array;
 * zeros where there is none, and in place of features that are not there. */
static void copy_unit(placing *t, const copied *c, LLVMValueRef image,
                      LLVMValueRef row, LLVMValueRef column, LLVMValueRef to)
{
    emit *e = t->e;
    LLVMTypeRef each = emit_mem_type(e, e->k->slot[c->slot].dtype);
    LLVMValueRef feature = emit_mad(e, c->block, HLO_PLACES_FEATURES,
                                    emit_times(e, t->part, PART));
    LLVMValueRef at =
        emit_mad(e, emit_mad(e, image, c->size[0], row), c->size[1], column);
    LLVMValueRef not = LLVMBuildOr(e->b, is_outside(e, row, c->size[0]),
                                   is_outside(e, column, c->size[1]), "");

    if (c->features % HLO_PLACES_FEATURES)
        not = LLVMBuildOr(e->b, not, is_outside(e, feature, c->features), "");
    at = LLVMBuildSExtOrBitCast(e->b, emit_mad(e, at, c->features, feature),
                                e->i64, "");
    e->abi->copy(e, emit_local(e, to),
                 LLVMBuildGEP2(e->b, each, e->slot[c->slot], &at, 1, ""), not);
}

/* What only some items copy comes first, so that all of them end together. */
static void copy_operand(placing *t, const copied *c, const position *p,
                         LLVMValueRef area)
{
    emit *e = t->e;
    int64_t units = e->k->group / COPIES;
    LLVMValueRef in = LLVMBuildXor(e->b, t->part, t->beside, ""), to;

    to = emit_mad(e, t->beside, PLAN_LINE, emit_times(e, in, PLAN_LINE_PART));
    to = emit_add(e, to, emit_plus(e, area, c->at));
    for (int64_t i = (c->units - 1) / units * units; i >= 0; i -= units) {
        LLVMValueRef unit = emit_plus(e, t->unit, i), row, column;
        LLVMBasicBlockRef no = emit_when(
            e, i + units > c->units ? emit_below(e, unit, emit_si(e, c->units))
                                    : NULL);

        row = emit_plus(e, emit_add(e, p->row, emit_over(e, unit, c->row)),
                        -c->low[0]);
        column = emit_plus(
            e, emit_add(e, p->column, emit_rest(e, unit, c->row)), -c->low[1]);
        copy_unit(t, c, p->image, row, column,
                  emit_mad(e, unit, HLO_PLACES_UNIT, to));
        emit_when_end(e, no);
    }
}

static LLVMValueRef area_of(placing *t, LLVMValueRef at)
{
    return emit_times(t->e, emit_rest(t->e, at, t->p->step.pairs),
                      (int64_t)plan_places_area(t->p));
}

/* Step `at` of the piece; behind the last one there is nothing to copy. */
static void copy_step(placing *t, LLVMValueRef at)
{
    emit *e = t->e;
    const hlo_places *w = &t->p->of;
    const hlo_places_step *s = &t->p->step;
    copied x = {0,
                s->x_units,
                s->columns + w->place[1] - 1,
                {w->size[0], w->size[1]},
                {w->low[0], w->low[1]},
                w->features,
                0,
                t->x_block};
    copied y = {1,
                s->y_units,
                s->columns,
                {w->of[0], w->of[1]},
                {0, 0},
                w->own,
                s->x_units * HLO_PLACES_UNIT,
                t->y_block};
    LLVMBasicBlockRef no = emit_when(e, emit_below(e, at, t->n));
    position p = find_step(t, emit_add(e, t->first, at));

    copy_operand(t, &x, &p, area_of(t, at));
    copy_operand(t, &y, &p, area_of(t, at));
    emit_when_end(e, no);
    e->abi->close_copies(e);
}

/* The sub-groups that ask together have a row of the window. */
static LLVMValueRef window_row(placing *t)
{
    const plan_engine_info *of = &plan_engine_table[t->p->engine];

    return emit_over(t->e, t->e->lid, (int64_t)of->several * of->items);
}

static void begin(placing *t, LLVMValueRef at)
{
    emit *e = t->e;
    const hlo_places_step *s = &t->p->step;
    LLVMValueRef area = area_of(t, at);
    int64_t row = s->columns + t->p->of.place[1] - 1;
    emit_positions p = {.rows = s->rows,
                        .columns = s->columns,
                        .places = (int)t->p->of.place[1]};

    p.x =
        emit_local(e, emit_mad(e, window_row(t), row * HLO_PLACES_UNIT, area));
    p.y = emit_local(e, emit_plus(e, area, s->x_units * HLO_PLACES_UNIT));
    e->abi->begin_places(e, &p);
}

static void settle(placing *t, int left)
{
    t->e->abi->await_copies(t->e, left);
    t->e->abi->settle(t->e);
    emit_barrier(t->e);
}

static void run(placing *t)
{
    emit *e = t->e;
    int pairs = t->p->step.pairs;
    emit_loop l;

    for (int i = 0; i < pairs - 1; i++)
        copy_step(t, emit_si(e, i));
    settle(t, pairs - 2);
    emit_loop_open(e, &l, emit_si(e, 0), t->n, 1);
    begin(t, l.at);
    e->abi->wait(e, 1);
    settle(t, pairs - 3);
    copy_step(t, emit_plus(e, l.at, pairs - 1));
    emit_loop_close(e, &l);
    e->abi->wait(e, 0);
    e->abi->await_copies(e, 0);
}

/* Sum i of an item is of place i / (sums of a place), and there of the column
 * i / 4 * 8 + i % 2 behind its first one, and of one of its two rows. */
static void write(placing *t, LLVMValueRef *sum, int n)
{
    emit *e = t->e;
    const hlo_places *w = &t->p->of;
    int each = n / (int)w->place[1];
    const plan_engine_info *of = &plan_engine_table[t->p->engine];
    LLVMValueRef mate = emit_rest(e, e->lid, of->items), x, y, place;

    y = emit_rest(e, emit_over(e, e->lid, of->items), of->several);
    y = emit_mad(e, y, PLAN_SQUARE, emit_over(e, mate, QUAD));
    y = emit_mad(e, t->y_block, HLO_PLACES_FEATURES, y);
    x = emit_times(e, emit_rest(e, mate, QUAD), 2);
    x = emit_mad(e, t->x_block, HLO_PLACES_FEATURES, x);
    place = emit_times(e, emit_mad(e, t->piece, w->place[0], window_row(t)),
                       w->place[1]);
    for (int i = 0; i < n; i++) {
        LLVMValueRef row = emit_plus(e, y, i / 2 % 2 * EIGHT), at,
                     column =
                         emit_plus(e, x, i % each / IN_EIGHT * EIGHT + i % 2);
        LLVMBasicBlockRef no = emit_when(
            e, w->features % HLO_PLACES_FEATURES || w->own % HLO_PLACES_FEATURES
                   ? LLVMBuildAnd(
                         e->b, emit_below(e, row, emit_si(e, w->own)),
                         emit_below(e, column, emit_si(e, w->features)), "")
                   : NULL);

        at = emit_mad(e, emit_plus(e, place, i / each), w->features, column);
        at = emit_mad(e, at, w->own, row);
        LLVMBuildStore(e->b, sum[i], emit_element(e, SD_F32, e->slot[2], at));
        emit_when_end(e, no);
    }
}

void emit_places(emit *e)
{
    placing t = {.e = e, .p = e->k->places};
    int n = (int)t.p->of.place[1] * HLO_PLACES_FEATURES / 2;
    LLVMValueRef *sum = sd_arena_array(e->a, LLVMValueRef, n);

    find_group(&t);
    e->abi->open_sums(e, e->f32, n);
    run(&t);
    e->abi->take_sums(e, e->f32, sum, n);
    write(&t, sum, n);
}
