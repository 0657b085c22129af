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
#include <string.h>

#include "emit.h"

enum {
    PARTS = PLAN_LINE / PLAN_LINE_PART, /* of a line */
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
    int64_t unit_bytes, parts, copies,
        each; /* a unit; copies of a position, and
                 of a unit; features of a copy */
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
    t->n = emit_minus(e, to, t->first);
    t->unit_bytes = hlo_places_unit(&p->of);
    t->each = PLAN_LINE_PART / p->of.each;
    t->parts = HLO_PLACES_FEATURES / t->each;
    t->copies = t->parts * HLO_PLACES_BESIDE;
    t->part = emit_rest(e, e->lid, t->parts);
    t->beside = emit_rest(e, emit_over(e, e->lid, t->parts), HLO_PLACES_BESIDE);
    t->unit = emit_over(e, e->lid, t->copies);
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
    return emit_uge(e, at, emit_si(e, n));
}

/* The item's copy of a unit, which lies in the row and column of the array;
 * zeros where there is none, and in place of features that are not there. */
static void copy_unit(placing *t, const copied *c, LLVMValueRef image,
                      LLVMValueRef row, LLVMValueRef column, LLVMValueRef to)
{
    emit *e = t->e;
    LLVMTypeRef each = emit_mem_type(e, e->k->slot[c->slot].dtype);
    LLVMValueRef feature = emit_mad(e, c->block, HLO_PLACES_FEATURES,
                                    emit_times(e, t->part, t->each));
    LLVMValueRef at =
        emit_mad(e, emit_mad(e, image, c->size[0], row), c->size[1], column);
    LLVMValueRef not = emit_or(e, is_outside(e, row, c->size[0]),
                               is_outside(e, column, c->size[1]));

    if (c->features % HLO_PLACES_FEATURES)
        not = emit_or(e, not, is_outside(e, feature, c->features));
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
    int64_t units = e->k->group / t->copies;
    LLVMValueRef in = emit_xor(e, emit_rest(e, t->part, PARTS), t->beside), to;

    to = emit_mad(e, t->beside, PLAN_LINE, emit_times(e, in, PLAN_LINE_PART));
    to = emit_mad(e, emit_over(e, t->part, PARTS), HLO_PLACES_LINES, to);
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
                  emit_mad(e, unit, t->unit_bytes, to));
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
                s->x_units * t->unit_bytes,
                t->y_block};
    LLVMBasicBlockRef no = emit_when(e, emit_below(e, at, t->n));
    position p = find_step(t, emit_add(e, t->first, at));

    copy_operand(t, &x, &p, area_of(t, at));
    copy_operand(t, &y, &p, area_of(t, at));
    emit_when_end(e, no);
    e->abi->close_copies(e);
}

/* A team has a row of the window. */
static LLVMValueRef window_row(placing *t)
{
    return emit_over(t->e, t->e->lid, PLAN_PLACES_TEAM);
}

/* Where the team's units of x begin, and y's. */
static void find_areas(placing *t, LLVMValueRef at, LLVMValueRef *x,
                       LLVMValueRef *y)
{
    emit *e = t->e;
    const hlo_places_step *s = &t->p->step;
    int64_t row = s->columns + t->p->of.place[1] - 1;
    LLVMValueRef area = area_of(t, at);

    *x = emit_mad(e, window_row(t), row * t->unit_bytes, area);
    *y = emit_plus(e, area, s->x_units * t->unit_bytes);
}

static void settle(placing *t, int left)
{
    t->e->abi->await_copies(t->e, left);
    t->e->abi->settle(t->e);
    emit_barrier(t->e);
}

/* ---- by a wide engine ---- */

static void begin(placing *t, LLVMValueRef at)
{
    emit *e = t->e;
    emit_positions p = {.rows = t->p->step.rows,
                        .columns = t->p->step.columns,
                        .places = (int)t->p->of.place[1]};

    find_areas(t, at, &p.x, &p.y);
    p.x = emit_local(e, p.x);
    p.y = emit_local(e, p.y);
    e->abi->begin_places(e, &p);
}

static void run_wide_step(placing *t, LLVMValueRef at)
{
    int pairs = t->p->step.pairs;

    begin(t, at);
    t->e->abi->wait(t->e, 1);
    settle(t, pairs - 3);
    copy_step(t, emit_plus(t->e, at, pairs - 1));
}

/* ---- by an engine that takes registers ---- */

/* Bytes from half a unit to the numbers that an item reads of it: of each eight
 * features one, at two positions.  The first of 4 items that have a feature has
 * positions 0 and 1: so a sub-group's reads lie in all banks. */
static void find_numbers(placing *t, LLVMValueRef *off)
{
    emit *e = t->e;
    LLVMValueRef mate = emit_rest(e, e->lid, QUAD * EIGHT),
                 feature = emit_over(e, mate, QUAD),
                 first = emit_times(e, emit_rest(e, mate, QUAD), 2);

    for (int i = 0; i < EMIT_OF_UNIT; i++) {
        LLVMValueRef line = emit_plus(e, first, i % 2), part;

        part = emit_plus(e, emit_over(e, feature, 4), i / 2 * 2);
        part = emit_xor(e, part, line);
        off[i] =
            emit_mad(e, line, PLAN_LINE, emit_times(e, part, PLAN_LINE_PART));
        off[i] = emit_mad(e, emit_rest(e, feature, 4), sizeof(float), off[i]);
    }
}

/* Rounded, of the unit that begins so many bytes behind `at`. */
static LLVMValueRef *numbers_of(placing *t, const LLVMValueRef *at,
                                int64_t bytes)
{
    emit *e = t->e;
    LLVMValueRef *v = sd_arena_array(e->a, LLVMValueRef, EMIT_OF_UNIT);

    for (int i = 0; i < EMIT_OF_UNIT; i++) {
        v[i] = LLVMBuildLoad2(e->b, e->f32,
                              emit_local(e, emit_plus(e, at[i], bytes)), "");
        v[i] = emit_as(e, e->abi->trim(e, v[i]), e->i32);
    }
    return v;
}

/* Of y an instruction takes 16 features: both eights at a position, then at the
 * next. */
static void in_rows(LLVMValueRef *v)
{
    for (int i = 0; i < EMIT_OF_UNIT; i += 4) {
        LLVMValueRef second = v[i + 1];

        v[i + 1] = v[i + 2];
        v[i + 2] = second;
    }
}

static void add_row(placing *t, int64_t row, const LLVMValueRef *x_at,
                    const LLVMValueRef *y_at)
{
    int64_t columns = t->p->step.columns;
    int places = (int)t->p->of.place[1];
    LLVMValueRef *x[HLO_PLACES_SIDE] = {0}, *y;
    int64_t first = row * (columns + places - 1);

    for (int i = 1; i < places; i++)
        x[i] = numbers_of(t, x_at, (first + i - 1) * t->unit_bytes);
    for (int64_t c = 0; c < columns; c++) {
        memmove(x, x + 1, (size_t)(places - 1) * sizeof *x);
        x[places - 1] =
            numbers_of(t, x_at, (first + c + places - 1) * t->unit_bytes);
        y = numbers_of(t, y_at, (row * columns + c) * t->unit_bytes);
        in_rows(y);
        t->e->abi->add_unit(t->e, y, x, places);
    }
}

/* Which half of y's features a sub-group has, and of x's. */
static void find_halves(placing *t, LLVMValueRef *x, LLVMValueRef *y)
{
    emit *e = t->e;
    LLVMValueRef group = emit_over(e, e->lid, QUAD * EIGHT);

    *y = emit_rest(e, group, 2);
    *x = emit_rest(e, emit_over(e, group, 2), 2);
}

static void run_step(placing *t, LLVMValueRef at)
{
    emit *e = t->e;
    LLVMValueRef off[EMIT_OF_UNIT], x_at[EMIT_OF_UNIT], y_at[EMIT_OF_UNIT], x,
        y, half_x, half_y;

    settle(t, t->p->step.pairs - 2);
    copy_step(t, emit_plus(e, at, t->p->step.pairs - 1));
    find_numbers(t, off);
    find_areas(t, at, &x, &y);
    find_halves(t, &half_x, &half_y);
    x = emit_mad(e, half_x, HLO_PLACES_LINES, x);
    y = emit_mad(e, half_y, HLO_PLACES_LINES, y);
    for (int i = 0; i < EMIT_OF_UNIT; i++) {
        x_at[i] = emit_add(e, x, off[i]);
        y_at[i] = emit_add(e, y, off[i]);
    }
    for (int64_t r = 0; r < t->p->step.rows; r++)
        add_row(t, r, x_at, y_at);
}

/* ---- all of it ---- */

static bool is_wide(const placing *t)
{
    return plan_engine_table[t->p->engine].several;
}

static void run(placing *t)
{
    emit *e = t->e;
    int pairs = t->p->step.pairs;
    emit_loop l;

    for (int i = 0; i < pairs - 1; i++)
        copy_step(t, emit_si(e, i));
    if (is_wide(t))
        settle(t, pairs - 2);
    emit_loop_open(e, &l, emit_si(e, 0), t->n, 1);
    if (is_wide(t))
        run_wide_step(t, l.at);
    else
        run_step(t, l.at);
    emit_loop_close(e, &l);
    if (is_wide(t))
        e->abi->wait(e, 0);
    e->abi->await_copies(e, 0);
}

/* The first feature of y and of x of an item, and those of its sum i of a
 * place. */
static void find_sums(placing *t, LLVMValueRef *x, LLVMValueRef *y)
{
    emit *e = t->e;
    LLVMValueRef mate = emit_rest(e, e->lid, QUAD * EIGHT), half_x, half_y,
                 group = emit_rest(e, emit_over(e, e->lid, QUAD * EIGHT), 4);

    *y = emit_over(e, mate, QUAD);
    *x = emit_times(e, emit_rest(e, mate, QUAD), 2);
    if (is_wide(t)) {
        *y = emit_mad(e, group, PLAN_SQUARE, *y);
    } else {
        find_halves(t, &half_x, &half_y);
        *y = emit_mad(e, half_y, HLO_PLACES_FEATURES / 2, *y);
        *x = emit_mad(e, half_x, HLO_PLACES_FEATURES / 2, *x);
    }
    *y = emit_mad(e, t->y_block, HLO_PLACES_FEATURES, *y);
    *x = emit_mad(e, t->x_block, HLO_PLACES_FEATURES, *x);
}

/* Sums are in the order places, squares of rows, eights of columns; of an eight
 * an item has two neighbours, in two rows.  Sums are those that do not wrap:
 * with these an item's results share an address (target_near.c). */
static void write(placing *t, LLVMValueRef *sum, int n)
{
    emit *e = t->e;
    const hlo_places *w = &t->p->of;
    int each = n / (int)w->place[1], square = is_wide(t) ? each : each / 2;
    LLVMValueRef x, y, place;

    find_sums(t, &x, &y);
    place = emit_times(e, emit_mad(e, t->piece, w->place[0], window_row(t)),
                       w->place[1]);
    for (int i = 0; i < n; i++) {
        int down = i % each / square * PLAN_SQUARE + i / 2 % 2 * EIGHT,
            along = i % square / IN_EIGHT * EIGHT + i % 2;
        LLVMValueRef row = emit_add(e, y, emit_si(e, down)), at,
                     column = emit_add(e, x, emit_si(e, along));
        LLVMBasicBlockRef no = emit_when(
            e, w->features % HLO_PLACES_FEATURES || w->own % HLO_PLACES_FEATURES
                   ? emit_and(e, emit_below(e, row, emit_si(e, w->own)),
                              emit_below(e, column, emit_si(e, w->features)))
                   : NULL);

        at = emit_mad(e, emit_add(e, place, emit_si(e, i / each)), w->features,
                      column);
        at = emit_mad(e, at, w->own, row);
        emit_put(e, sum[i], emit_element(e, SD_F32, e->slot[2], at));
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
