/* Products in blocks by a wide engine: several sub-groups ask for one
 * instruction, which reads both operands from local memory by itself while
 * items go on:
 *
 *   read step 0, write it; read step 1; barrier
 *   for each step:
 *       begin to multiply what lies in the areas whose turn it is
 *       write what was read to the others
 *       read the next but one
 *       wait for the sums; barrier
 *
 * With three pairs of areas the engine need not stop between two products,
 * which wait in a row: what is written is for the next but one, in the areas of
 * the product before, which all have waited for (run_ahead).
 *
 * x of f32 that is still to be rounded an item reads from its lines to
 * registers, from which the engine takes it (plan_holds_x).  While a product
 * does so nobody may write them, so a turn has two steps, each with its own.
 *
 * x that slides has two areas, y four.  A turn has all positions of kx:
 *
 *   for each position of kx, written out:
 *       begin to multiply x, so many rows further on, with y's next step
 *       wait for the product before
 *       copy, at the first one, x's next step; and y's next but two
 *
 * and before the last one ends items round what they have copied of x's next
 * step, if it is of f32.
 *
 * What is read has a whole product's time to arrive.  Operands lie as
 * plan_blocks says, in lines of 128 bytes, so that eight lines' parts of one
 * number lie in all banks. */
#include "emit_group.h"

static int64_t bytes_of(const emit_tile *g)
{
    return (int64_t)sd_dtype_bytes(g->b->part);
}

/* ---- where operands lie ---- */

/* Bytes from an area to (m, k). */
static LLVMValueRef place_of(emit_tile *g, const emit_operand *o,
                             LLVMValueRef m, LLVMValueRef k)
{
    emit *e = g->e;
    int64_t each = bytes_of(g), line = PLAN_LINE / each;
    bool deep = o->deep == 1;
    LLVMValueRef row = deep ? m : k, in, at;

    in = emit_times(e, deep ? k : emit_rest(e, m, line), each);
    in = emit_xor(e, in,
                  emit_times(e, emit_rest(e, row, PLAN_LINES), PLAN_LINE_PART));
    at = emit_mad(e, row, PLAN_LINE, in);
    return deep
               ? at
               : emit_mad(e, emit_over(e, m, line), g->b->step * PLAN_LINE, at);
}

/* Lines from vector 0 to vector i of an item; -1: they are no whole number. */
static int64_t lines_to(const emit_tile *g, const emit_operand *o, int i)
{
    int64_t at = (int64_t)i * g->e->k->group;
    int64_t row = (emit_is_deep(g, o) ? g->b->step : o->extent) / o->wide;

    if (o->per > 1)
        return o->after ? o->after[2 * i] : -1;
    return at % row ? -1 : at / row;
}

/* Of vectors that are whole turns of lines apart only the distance differs. */
void emit_wide_places(emit_tile *g, emit_operand *o)
{
    emit *e = g->e;
    int parts = o->per > 1 ? o->wide : 1;

    if (o->per > 1 && bytes_of(g) == 1)
        return; /* there are too many of them */
    o->place = sd_arena_array(e->a, LLVMValueRef, o->n / o->per * parts);
    for (int i = 0; i < o->n / o->per * parts; i++) {
        int v = i / parts * o->per, c = i % parts;
        int64_t lines = lines_to(g, o, v);

        if (v && lines >= 0 && lines % (PLAN_LINES * parts) == 0)
            o->place[i] =
                emit_add(e, o->place[c], emit_si(e, lines * PLAN_LINE));
        else
            o->place[i] = place_of(
                g, o, o->per > 1 ? emit_tile_line(g, o, v, c) : o->m[v],
                o->k[v]);
    }
}

static void put(emit_tile *g, const emit_operand *o, LLVMValueRef turn,
                LLVMValueRef at, LLVMValueRef v, size_t bytes)
{
    emit *e = g->e;
    LLVMValueRef p = emit_tile_area(g, o->at, turn, e->i8, at);

    emit_tile_put(p, v, e, bytes);
}

/* Words of what the o->per vectors from v on have at the same places. */
static void words_of(emit_tile *g, const emit_operand *o, const LLVMValueRef *v,
                     LLVMValueRef *word)
{
    emit *e = g->e;

    if (o->wide % o->per == 0) {
        emit_weave_words(g, o, v, word);
        return;
    }
    for (int c = 0; c < o->wide; c++) {
        word[c] = LLVMConstInt(e->i32, 0, 0);
        for (int i = 0; i < o->per; i++) {
            LLVMValueRef one =
                emit_zext(e, emit_extract(e, v[i], c, 1), e->i32);

            one = emit_shl(e, one, LLVMConstInt(e->i32, 8 * (unsigned)i, 0));
            word[c] = emit_or(e, word[c], one);
        }
    }
}

/* Bytes that do not lie along K: words of it go to as many lines. */
static void write_lines(emit_tile *g, const emit_operand *o, LLVMValueRef turn,
                        int i, const LLVMValueRef *v)
{
    emit *e = g->e;
    LLVMValueRef word[EMIT_WORDS];

    words_of(g, o, v, word);
    for (int c = 0; c < o->wide; c++)
        put(g, o, turn,
            place_of(g, o, emit_add(e, o->m[i], emit_si(e, c)), o->k[i]),
            word[c], 4);
}

/* Numbers of f32 that do not: a part of as many lines. */
static void write_parts(emit_tile *g, const emit_operand *o, LLVMValueRef turn,
                        int i)
{
    LLVMValueRef line[EMIT_TURNED];

    emit_tile_turned(g, o, i, line);
    for (int c = 0; c < o->wide; c++)
        put(g, o, turn, o->place[i / o->per * o->wide + c], line[c],
            PLAN_LINE_PART);
}

static void write_operand(emit_tile *g, const emit_operand *o,
                          LLVMValueRef turn)
{
    LLVMValueRef v[4];

    assert(o->per <= (int)SD_COUNTOF(v) && o->wide <= EMIT_WORDS);
    for (int i = 0; i < o->n; i += o->per) {
        if (o->per > 1 && bytes_of(g) == 4) {
            write_parts(g, o, turn, i);
            continue;
        }
        for (int c = 0; c < o->per; c++)
            v[c] = emit_tile_vector(g, o, i + c);
        if (o->per > 1)
            write_lines(g, o, turn, i, v);
        else
            put(g, o, turn, o->place[i], v[0], (size_t)(bytes_of(g) * o->wide));
    }
}

/* ---- products ---- */

/* x of a step, of the sub-group's rows, as the engine takes it from registers:
 * what an item reads of a square is what it has of a product. */
static void hold_x(emit_tile *g, LLVMValueRef turn, emit_wide *w)
{
    emit *e = g->e;
    emit_side rows = {.side = PLAN_LINE};

    w->held = sd_arena_array(e->a, LLVMValueRef, w->times * EMIT_PIECES);
    for (int i = 0; i < w->times; i++) {
        LLVMValueRef *v = w->held + (ptrdiff_t)i * EMIT_PIECES;
        LLVMValueRef at = emit_xor(
            e, g->x_own, emit_si(e, (int64_t)i * PLAN_LINE / w->times));

        e->abi->square(e, &rows, emit_operand_area(g, &g->x, turn, at), v);
        for (int k = 0; k < EMIT_PIECES; k++)
            v[k] =
                emit_as(e, e->abi->trim(e, emit_as(e, v[k], e->f32)), e->i32);
    }
}

/* Of areas x and y of these numbers, x `by` rows further on.  The sub-groups
 * that ask together have neighbouring rows. */
static void begin_at(emit_tile *g, LLVMValueRef x, int64_t by, LLVMValueRef y)
{
    emit *e = g->e;
    const plan_engine_info *of = &plan_engine_table[g->b->engine];
    LLVMValueRef rows =
        emit_mad(e, emit_over(e, g->im, of->several),
                 (int64_t)of->m * PLAN_LINE, emit_si(e, by * PLAN_LINE));
    emit_wide w = {.x = emit_operand_area(g, &g->x, x, rows),
                   .y = emit_operand_area(g, &g->y, y, emit_si(e, 0)),
                   .x_deep = g->x.deep == 1,
                   .y_deep = g->y.deep == 1,
                   .columns = g->b->vectors,
                   .times = g->b->step / of->depth};

    if (plan_holds_x(g->b))
        hold_x(g, x, &w);
    e->abi->begin(e, &w);
}

static void begin(emit_tile *g, LLVMValueRef turn)
{
    begin_at(g, turn, 0, turn);
}

static LLVMValueRef at_most(emit *e, LLVMValueRef x, int64_t most)
{
    return emit_smaller(e, x, emit_si(e, most));
}

static void write_step(emit_tile *g, LLVMValueRef turn)
{
    write_operand(g, &g->x, turn);
    write_operand(g, &g->y, turn);
}

static void read_step(emit_tile *g, LLVMValueRef at)
{
    emit_tile_read(g, &g->x, at);
    emit_tile_read(g, &g->y, at);
}

/* Here and not behind the writes, where ptxas 12.9 ends in a fault of its own
 * for operands of bytes. */
static void settle(emit_tile *g)
{
    g->e->abi->settle(g->e);
    emit_barrier(g->e);
}

static void run_step(emit_tile *g, LLVMValueRef at)
{
    emit *e = g->e;
    LLVMValueRef turn = emit_and(e, at, emit_si(e, 1));

    begin(g, turn);
    write_step(g, emit_xor(e, turn, emit_si(e, 1)));
    read_step(g, at_most(e, emit_add(e, at, emit_si(e, 2)), g->steps - 1));
    e->abi->wait(e, 0);
    settle(g);
}

/* Products `at` and before it are under way; what is written for the next but
 * one is seen by all behind the next step's barrier. */
static void run_ahead(emit_tile *g, LLVMValueRef at)
{
    emit *e = g->e;
    LLVMValueRef next = emit_add(e, at, emit_si(e, 2));

    begin(g, emit_rest(e, at, 3));
    e->abi->wait(e, 1);
    settle(g);
    write_step(g, emit_rest(e, next, 3));
    read_step(g, at_most(e, emit_add(e, next, emit_si(e, 1)), g->steps - 1));
}

/* Behind the last step there is nothing to copy. */
static void copy_step(emit_tile *g, LLVMValueRef at)
{
    emit *e = g->e;
    LLVMValueRef turn = emit_rest(e, at, g->b->pairs);
    LLVMBasicBlockRef no =
        emit_when(e, emit_below(e, at, emit_si(e, g->steps)));

    emit_plain_copy(g, &g->x, at, turn);
    emit_plain_copy(g, &g->y, at, turn);
    emit_when_end(e, no);
    e->abi->close_copies(e);
}

/* The same where copies are made by themselves: of `pairs` areas one is read by
 * product `at`, the next has arrived when that begins, and where the product
 * before was the last one's copy begins. */
static void run_by_itself(emit_tile *g, LLVMValueRef at)
{
    emit *e = g->e;
    int pairs = g->b->pairs;

    begin(g, emit_rest(e, at, pairs));
    e->abi->wait(e, 1);
    e->abi->await_copies(e, pairs - 3);
    settle(g);
    copy_step(g, emit_add(e, at, emit_si(e, pairs - 1)));
}

static void fill(emit_tile *g)
{
    emit *e = g->e;

    for (int i = 0; i < g->b->pairs - 1; i++) {
        if (g->b->by_itself) {
            copy_step(g, emit_si(e, i));
            continue;
        }
        read_step(g, emit_si(e, SD_MIN(i, g->steps - 1)));
        write_step(g, emit_si(e, i));
    }
    if (g->b->by_itself)
        e->abi->await_copies(e, g->b->pairs - 2);
    else
        read_step(g, emit_si(e, SD_MIN(g->b->pairs - 1, g->steps - 1)));
    settle(g);
}

/* Where the item's squares of x begin: item i names row i % 16, and of that the
 * first or the second part of a line that a product takes. */
static LLVMValueRef own_rows(emit_tile *g)
{
    emit *e = g->e;
    LLVMValueRef row = emit_add(e, emit_times(e, g->im, PLAN_SQUARE),
                                emit_rest(e, g->mate, PLAN_SQUARE)),
                 part = emit_over(e, g->mate, PLAN_SQUARE);

    return place_of(g, &g->x, row,
                    emit_times(e, part, PLAN_LINE_PART / bytes_of(g)));
}

/* ---- x slides ---- */

typedef struct {
    int n; /* positions of kx, */
    int64_t by; /* rows of x from one to the next */
    int64_t parts; /* steps of K's last axis */
    int64_t steps; /* of x, */
    bool rounds; /* which is rounded in its area */
} slide;

static slide find_slide(emit_tile *g)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    slide s = {.n = (int)e->k->axis[plan_slide_axis(b)].extent,
               .by = plan_slide_step(e->k, b),
               .parts =
                   e->k->axis[plan_last_axis(b->node->over)].extent / b->step};

    s.steps = g->steps / s.n;
    s.rounds = b->part == SD_F32 && !b->x_trimmed;
    return s;
}

/* Which step of K that is. */
static LLVMValueRef step_at(emit *e, const slide *s, LLVMValueRef x, int kx)
{
    LLVMValueRef outer = emit_over(e, x, s->parts);

    outer = emit_mad(e, outer, s->n, emit_si(e, kx));
    return emit_mad(e, outer, s->parts, emit_rest(e, x, s->parts));
}

/* Of y, the step that is `ahead` of step x's first position. */
static void slide_y(emit_tile *g, const slide *s, LLVMValueRef x, int ahead)
{
    emit *e = g->e;
    LLVMValueRef at = emit_mad(e, x, s->n, emit_si(e, ahead));
    LLVMBasicBlockRef no;

    x = emit_add(e, x, emit_si(e, ahead / s->n));
    no = emit_when(e, emit_below(e, x, emit_si(e, s->steps)));
    emit_plain_copy(g, &g->y, step_at(e, s, x, ahead % s->n),
                    emit_rest(e, at, g->b->pairs));
    emit_when_end(e, no);
}

static void slide_x(emit_tile *g, const slide *s, LLVMValueRef x)
{
    emit *e = g->e;
    LLVMBasicBlockRef no = emit_when(e, emit_below(e, x, emit_si(e, s->steps)));

    emit_plain_copy(g, &g->x, step_at(e, s, x, 0), emit_rest(e, x, 2));
    emit_when_end(e, no);
}

static void round_x(emit_tile *g, const slide *s, LLVMValueRef x)
{
    emit *e = g->e;
    LLVMBasicBlockRef no;

    if (!s->rounds)
        return;
    no = emit_when(e, emit_below(e, x, emit_si(e, s->steps)));
    emit_plain_round(g, &g->x, emit_rest(e, x, 2));
    emit_when_end(e, no);
}

static void run_slide(emit_tile *g, const slide *s, LLVMValueRef x)
{
    emit *e = g->e;
    int ahead = g->b->pairs - 1;
    LLVMValueRef next = emit_add(e, x, emit_si(e, 1));

    for (int kx = 0; kx < s->n; kx++) {
        LLVMValueRef at = emit_mad(e, x, s->n, emit_si(e, kx));

        begin_at(g, emit_rest(e, x, 2), kx * s->by,
                 emit_rest(e, at, g->b->pairs));
        e->abi->wait(e, 1);
        e->abi->await_copies(e, ahead - 2);
        if (kx == s->n - 1)
            round_x(g, s, next);
        settle(g);
        if (!kx)
            slide_x(g, s, next);
        slide_y(g, s, x, kx + ahead);
        e->abi->close_copies(e);
    }
}

static void run_all_slides(emit_tile *g)
{
    emit *e = g->e;
    slide s = find_slide(g);
    emit_loop x;

    slide_x(g, &s, emit_si(e, 0));
    for (int i = 0; i < g->b->pairs - 1; i++) {
        slide_y(g, &s, emit_si(e, 0), i);
        e->abi->close_copies(e);
    }
    e->abi->await_copies(e, g->b->pairs - 2);
    round_x(g, &s, emit_si(e, 0));
    settle(g);
    emit_open_turns(e, &x, 0, s.steps, 1);
    run_slide(g, &s, x.at);
    emit_level_loop_close(e, &x);
}

/* ---- all steps ---- */

static void run_steps(emit_tile *g)
{
    emit *e = g->e;
    int held = plan_holds_x(g->b) ? 2 : 1;
    int64_t last = g->steps / held * held;
    emit_loop s;

    if (held > 1)
        g->x_own = own_rows(g);
    fill(g);
    emit_open_turns(e, &s, 0, last, held);
    if (g->b->by_itself)
        for (int i = 0; i < held; i++)
            run_by_itself(g, emit_add(e, s.at, emit_si(e, i)));
    else if (g->b->pairs > 2)
        run_ahead(g, s.at);
    else
        run_step(g, s.at);
    emit_level_loop_close(e, &s);
    if (last < g->steps) {
        e->abi->wait(e, 0); /* ptxas sees only in a loop what goes on */
        run_by_itself(g, emit_si(e, last));
    }
}

void emit_wide_run(emit_tile *g)
{
    emit *e = g->e;
    LLVMValueRef *acc = sd_arena_array(e->a, LLVMValueRef, g->nacc);

    assert(g->chains == 1 && g->b->along_n == 1);
    e->abi->open_sums(e, g->slot, g->nacc);
    if (plan_slides_in_area(g->b))
        run_all_slides(g);
    else
        run_steps(g);
    if (g->b->pairs > 2)
        e->abi->wait(e, 0);
    if (g->b->by_itself)
        e->abi->await_copies(e, 0); /* sums will lie there */
    e->abi->take_sums(e, g->slot, acc, g->nacc);
    for (int i = 0; i < g->nacc; i++)
        LLVMBuildStore(e->b, acc[i], g->acc[i]);
}
