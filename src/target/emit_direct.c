/* Products of panels whose operands go from memory to registers, by messages of
 * a sub-group that read blocks of a matrix, 2-D (ADR 25; plan_reads).  A step
 * adds to one word of what a message is told (emit_message.h).
 *
 *   for each position of K's axes but the last, or but the last two:
 *       say where the matrices begin
 *       for each position of the last but one, if x slides along it, or for
 *       each row of x that the last one has:
 *           for each step along the last one:
 *               read each block, and move it on; multiply
 *           move x on
 */
#include "emit_group.h"
#include "emit_message.h"

enum {
    DEEP = 2, /* times what the engine takes of K, of deep blocks */
    MOST = 16, /* messages of one operand */
    BEYOND = 1 << 24 /* a row that no matrix has */
};

/* One operand: its messages, and where each is in its work. */
typedef struct {
    emit_operand *o;
    const plan_reads *r;
    emit_reads block;
    int each; /* rows, or columns, of a message, */
    int deep; /* and how many times what the engine takes of K */
    int n, apart; /* messages; a square has so many */
    int64_t along; /* sub-groups that stand along it */
    LLVMValueRef at[MOST]; /* stack slots: what each is told */
} reading;

typedef struct {
    emit_tile *g;
    reading x, y;
    LLVMValueRef im, in; /* of the sub-group, as numbers of all its items */
    emit_words_told words;
    int rows; /* of one instruction's sums */
    int64_t turns; /* steps along the last axis of K */
} direct;

/* ---- what a message is told ---- */

static LLVMValueRef put(direct *d, LLVMValueRef all, int word, LLVMValueRef v)
{
    return emit_put_word(d->g->e, &d->words, all, word, v);
}

/* x / by, rounded up, of what may be negative. */
static LLVMValueRef over_up(emit *e, LLVMValueRef x, int64_t by)
{
    if (by == 1)
        return x;
    x = emit_add(e, x, emit_si(e, by - 1 + by * BEYOND));
    return emit_add(e, emit_over(e, x, by), emit_si(e, -BEYOND));
}

/* How far message i is from the sub-group's first along the side. */
static int64_t behind(const reading *w, int i)
{
    return i / w->apart * w->along * PLAN_SQUARE + i % w->apart * w->each;
}

/* Opens the side's axes at the first row of message i, where rows are one
 * axis's at position 0 of that; where all are, at position 0 of all.  Returns
 * the row, or the column. */
static LLVMValueRef open_side(direct *d, const reading *w, int i)
{
    emit *e = d->g->e;
    emit_operand *o = w->o;
    uint64_t axes = o->in | (uint64_t)1 << o->axis;
    int row = plan_last_axis(axes);
    LLVMValueRef at = emit_mad(e, w == &d->y ? d->in : d->im, PLAN_SQUARE,
                               emit_si(e, behind(w, i)));

    if (w->r->flat) {
        plan_for_each_axis(a, axes)
            emit_open_axis(e, a, emit_si(e, 0), 1);
        return emit_mad(e, o->from, plan_extent(e->k, o->in), at);
    }
    emit_open_side(e, o, at);
    at = e->axis[row].at;
    emit_open_axis(e, row, emit_si(e, 0), 1);
    return at;
}

/* Of a matrix: its first element, how many rows it has, whether it has any
 * (NULL: it has). */
typedef struct {
    LLVMValueRef first, rows, any;
} matrix;

/* Takes off the rows at which a guard fails that grows along them. */
static void cut_rows(direct *d, const reading *w, const plan_guard *g,
                     matrix *m, LLVMValueRef *row)
{
    emit *e = d->g->e;
    uint64_t axes = w->o->in | (uint64_t)1 << w->o->axis;
    LLVMValueRef v = emit_expr(e, g->e, 0, false), from, to;
    int64_t s;

    plan_expr_stride(g->e, plan_last_axis(axes), &s);
    v = LLVMBuildNeg(e->b, v, "");
    from = over_up(e, emit_add(e, v, emit_si(e, g->lo)), s);
    to = over_up(e, emit_add(e, v, emit_si(e, g->hi)), s);
    m->rows = emit_minus(e, to, from);
    m->first = emit_mad(e, from, w->r->pitch, m->first);
    m->any = emit_and(
        e, m->any, LLVMBuildICmp(e->b, LLVMIntSGT, m->rows, emit_si(e, 0), ""));
    *row = emit_minus(e, *row, from);
}

/* The rows at which no guard fails, the side and K being open. */
static matrix find_matrix(direct *d, const reading *w, LLVMValueRef *row)
{
    emit *e = d->g->e;
    const plan_node *n = w->o->node;
    matrix m = {emit_expr(e, n->off, 0, false), emit_si(e, w->r->rows), NULL};

    for (int i = 0; i < n->nguard; i++) {
        const plan_guard *g = &n->guard[i];
        LLVMValueRef v;

        if (i == w->r->guard) {
            cut_rows(d, w, g, &m, row);
            continue;
        }
        v = emit_add(e, emit_expr(e, g->e, 0, false), emit_si(e, -g->lo));
        v = emit_ult(e, v, emit_si(e, SD_MAX(g->hi - g->lo, 0)));
        m.any = emit_and(e, m.any, v);
    }
    if (!m.any)
        return m;
    m.first = emit_select(e, m.any, m.first, emit_si(e, 0));
    m.rows = emit_select(e, m.any, m.rows, emit_si(e, 1));
    *row = emit_select(e, m.any, *row, emit_si(e, BEYOND));
    return m;
}

static emit_told find_told(direct *d, const reading *w, int i)
{
    emit *e = d->g->e;
    const plan_node *n = w->o->node;
    int64_t bytes = (int64_t)sd_dtype_bytes(n->dtype);
    LLVMValueRef at = open_side(d, w, i), row = at, base;
    emit_told t;
    matrix m;

    if (w->r->across)
        row = emit_si(e, 0);
    m = find_matrix(d, w, &row);
    base = LLVMBuildIntCast2(e->b, m.first, e->i64, true, "");
    base = emit_product(e, base, LLVMConstInt(e->i64, (unsigned)bytes, 0));
    base = emit_sum(e, LLVMBuildPtrToInt(e->b, e->slot[n->slot], e->i64, ""),
                    base);
    t.column = emit_tell_base(e, &t, base, w->r->columns * bytes, w->block);
    t.rows = emit_told_word(e, m.rows);
    t.row = emit_told_word(e, row);
    if (w->r->across)
        t.column = emit_sum(e, t.column, emit_told_word(e, at));
    emit_close_vector(d->g, w->o);
    return t;
}

static LLVMValueRef pack(direct *d, const reading *w, const emit_told *t)
{
    return emit_pack_told(
        d->g->e, &d->words, t,
        w->r->pitch * (int64_t)sd_dtype_bytes(w->o->node->dtype), w->block);
}

/* ---- in the loops ---- */

/* Does x slide along the last axis but one? */
static bool slides_before(const emit_tile *g)
{
    return g->b->slides && !plan_slides_within(g->e->k, g->b);
}

/* The axes of K at position `window` of all but the inner ones, and 0 of those:
 * the last, and the one before it where x slides. */
static void open_window(direct *d, LLVMValueRef window)
{
    emit *e = d->g->e;
    uint64_t rest = d->g->b->node->over;

    for (int inner = 0; inner <= slides_before(d->g); inner++) {
        int a = plan_last_axis(rest);

        emit_open_axis(e, a, emit_si(e, 0), 1);
        rest &= ~(1ull << a);
    }
    for (int a = 63; a >= 0; a--)
        if (rest >> a & 1) {
            emit_open_axis(e, a, emit_rest(e, window, e->k->axis[a].extent), 1);
            window = emit_over(e, window, e->k->axis[a].extent);
        }
}

/* Message i, of which the side and K are opened in a level of their own. */
static LLVMValueRef open_and_find(direct *d, reading *w, int i,
                                  LLVMValueRef window)
{
    emit *e = d->g->e;
    LLVMValueRef all;
    emit_loop once;
    emit_told t;

    emit_once_open(e, &once);
    open_window(d, window);
    t = find_told(d, w, i);
    all = pack(d, w, &t);
    emit_level_loop_close(e, &once);
    return all;
}

/* Of one matrix all messages are the first one, moved. */
static void tell_all(direct *d, reading *w, LLVMValueRef window)
{
    emit *e = d->g->e;
    int along = w->r->across ? MESSAGE_COLUMN : MESSAGE_ROW;
    LLVMValueRef first = NULL, all;

    for (int i = 0; i < w->n; i++) {
        if (first && w->r->flat)
            all = emit_sum(
                e, first,
                put(d, NULL, along, emit_told_number(e, behind(w, i))));
        else
            all = open_and_find(d, w, i, window);
        first = first ? first : all;
        emit_put(e, all, w->at[i]);
    }
}

/* Reads block i, and moves it on by what it has of K. */
static LLVMValueRef read_block(direct *d, reading *w, int i)
{
    emit *e = d->g->e;
    int depth = w->deep * plan_engine_table[d->g->b->engine].depth;
    int64_t bytes = (int64_t)sd_dtype_bytes(w->o->node->dtype);
    LLVMValueRef at = LLVMBuildLoad2(e->b, e->i32, w->at[i], ""), by;

    if (w->r->across)
        by = put(d, NULL, MESSAGE_ROW, emit_told_number(e, depth));
    else
        by = put(
            d, NULL, MESSAGE_COLUMN,
            emit_told_number(e, depth * bytes / e->abi->block_unit(w->block)));
    emit_put(e, emit_sum(e, at, by), w->at[i]);
    return e->abi->read_block(e, w->block, at);
}

static void multiply_panel(direct *d)
{
    emit_tile *g = d->g;
    LLVMValueRef x[MOST], y[MOST];

    for (int i = 0; i < d->y.n; i++)
        y[i] = read_block(d, &d->y, i);
    for (int i = 0; i < d->x.n; i++)
        x[i] = read_block(d, &d->x, i);
    for (int c = 0; c < g->b->vectors / PLAN_SQUARE; c++)
        for (int r = 0; r < g->b->rows / PLAN_SQUARE; r++)
            emit_multiply_square(g, r, c, &x[r * d->x.apart],
                                 &y[c * d->y.apart]);
}

/* What the engine takes at once of a step whose blocks are deep: y[k] is what
 * was read for that part of K. */
static void multiply_half(direct *d, const LLVMValueRef *x,
                          const LLVMValueRef *y, bool second)
{
    emit_tile *g = d->g;
    int columns = g->b->vectors / PLAN_SQUARE, halves = g->b->rows / d->rows;

    for (int c = 0; c < columns; c++)
        for (int h = 0; h < halves; h++) {
            int sum = (h / 2 * columns + c) * 2 + h % 2;
            emit_parts p = {.slot = g->acc[sum],
                            .sum = sum,
                            .x = x[h / 2],
                            .y = y[c],
                            .lower = h % 2,
                            .second = second,
                            .deep_y = d->y.deep > 1};

            g->e->abi->add_parts(g->e, &p);
        }
}

static void multiply_deep(direct *d)
{
    LLVMValueRef x[MOST], y[2][MOST];

    for (int i = 0; i < d->y.n; i++)
        y[0][i] = y[1][i] = read_block(d, &d->y, i);
    for (int i = 0; i < d->x.n; i++)
        x[i] = read_block(d, &d->x, i);
    for (int i = 0; d->y.deep == 1 && i < d->y.n; i++)
        y[1][i] = read_block(d, &d->y, i);
    multiply_half(d, x, y[0], false);
    multiply_half(d, x, y[1], true);
}

/* All steps along the last axis of K. */
static void multiply_all(direct *d)
{
    emit *e = d->g->e;
    const plan_blocks *b = d->g->b;
    int depth = plan_engine_table[b->engine].depth * (b->deep ? DEEP : 1);
    emit_loop step;

    if (d->turns > 1)
        emit_open_turns(e, &step, 0, d->turns, 1);
    for (int k = 0; k < b->step; k += depth)
        if (b->deep)
            multiply_deep(d);
        else
            multiply_panel(d);
    if (d->turns > 1)
        emit_level_loop_close(e, &step);
}

/* From the columns where the steps have ended to the first ones, of rows that
 * are further on, in one number; y goes on. */
static LLVMValueRef find_slide(direct *d)
{
    emit *e = d->g->e;
    const plan_blocks *b = d->g->b;
    int64_t columns = d->turns * b->step * (int64_t)sd_dtype_bytes(b->part) /
                      e->abi->block_unit(d->x.block);

    return emit_or(
        e, put(d, NULL, MESSAGE_ROW, emit_told_number(e, b->x_reads.slide)),
        put(d, NULL, MESSAGE_COLUMN, emit_told_number(e, -columns)));
}

static void slide(direct *d, LLVMValueRef by)
{
    emit *e = d->g->e;

    for (int i = 0; i < d->x.n; i++)
        LLVMBuildStore(
            e->b, emit_sum(e, LLVMBuildLoad2(e->b, e->i32, d->x.at[i], ""), by),
            d->x.at[i]);
}

static emit_reads kind_of(const plan_blocks *b, const plan_reads *r, bool y)
{
    bool bytes = sd_dtype_bytes(b->part) == 1;

    if (!y)
        return b->deep ? EMIT_BLOCK_DEEP_ROWS : EMIT_BLOCK_ROWS;
    return !r->across ? EMIT_BLOCK_TURNED
           : bytes    ? EMIT_BLOCK_FOURS
           : b->deep  ? EMIT_BLOCK_DEEP_PAIRS
                      : EMIT_BLOCK_PAIRS;
}

static void find_reading(direct *d, reading *w, emit_operand *o,
                         const plan_reads *r)
{
    emit *e = d->g->e;
    const plan_blocks *b = d->g->b;
    const plan_engine_info *of = &plan_engine_table[b->engine];
    bool y = w == &d->y;

    w->o = o;
    w->r = r;
    w->each = y ? of->n : b->deep ? PLAN_SQUARE : of->m;
    w->along = y ? b->along_n : b->along_m;
    w->block = kind_of(b, r, y);
    w->deep = w->block >= EMIT_BLOCK_DEEP_ROWS ? DEEP : 1;
    w->n = (y ? b->vectors : b->rows) / w->each;
    w->apart = PLAN_SQUARE / w->each;
    assert(w->n <= MOST);
    for (int i = 0; i < w->n; i++)
        w->at[i] = emit_alloca(e, e->i32);
}

void emit_run_direct(emit_tile *g)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    uint64_t over = b->node->over;
    int last = plan_last_axis(over);
    int64_t row = b->x_reads.columns, slides = 1;
    direct d = {.g = g};
    emit_loop window, kx;
    LLVMValueRef by;

    d.turns = (row + b->step - 1) / b->step;
    if (slides_before(g))
        slides = e->k->axis[plan_last_axis(over & ~(1ull << last))].extent;
    else if (b->slides)
        slides = e->k->axis[last].extent / row;
    d.im = e->abi->uniform(e, g->im);
    d.in = e->abi->uniform(e, g->in);
    d.rows = plan_engine_table[b->engine].m;
    emit_find_words(e, &d.words, g->mate);
    find_reading(&d, &d.x, &g->x, &b->x_reads);
    find_reading(&d, &d.y, &g->y, &b->y_reads);
    by = find_slide(&d);
    for (int i = 0; b->deep && i < g->nacc; i++)
        e->abi->begin_sum(e, g->acc[i], i);
    emit_open_turns(e, &window, 0, b->kt / row / slides, 1);
    tell_all(&d, &d.x, window.at);
    tell_all(&d, &d.y, window.at);
    if (b->slides)
        emit_open_turns(e, &kx, 0, slides, 1);
    multiply_all(&d);
    if (b->slides) {
        slide(&d, by);
        emit_level_loop_close(e, &kx);
    }
    emit_level_loop_close(e, &window);
    for (int i = 0; b->deep && i < g->nacc; i++)
        e->abi->take_sum(e, g->acc[i], i);
}
