/* Products of panels whose x lies in local memory once for all positions of a
 * window (ADR 25; plan_window.c).  Rows of x are positions of the tile with
 * what the window reaches beyond them, and at a position of the window a
 * sub-group finds its rows so many further on.  What an axis of K but the last
 * has is one step; the last one's are cut.
 *
 *   read the first part of x, and y's first step; write both; barrier
 *   for each part of the last axis of K:
 *       read the next part of x
 *       for each position of the window's axes but the last one:
 *           for each position of that one, written out:
 *               read y's next step; multiply; write y; barrier
 *       write x; barrier
 *
 * y has as many areas as the last loop has steps, so which one a step has is
 * known. */
#include "emit_group.h"

typedef struct {
    emit_tile *g;
    int last, inner; /* axes of K: the last one, and the one before it */
    uint64_t axes, outer; /* the window's; of these but the last */
    int64_t turns;   /* positions of these */
    int64_t parts;   /* of the last axis */
    int64_t rows;    /* of x's area, */
    int64_t apart;   /* from one of an item's vectors to the next */
    int n; /* vectors of x that an item copies, */
    LLVMValueRef *begin, *v; /* the element that each begins with, or one before
                                all where a guard fails; a stack slot */
    LLVMValueRef to; /* bytes to where the first one goes */
} window;

/* ---- x ---- */

/* Opens axis a of M at a position, or at the last one that the window reaches
 * in this phase. */
static void open_side(window *w, int a, LLVMValueRef at,
                      const LLVMValueRef *phase)
{
    emit *e = w->g->e;
    const plan_blocks *b = w->g->b;
    LLVMValueRef end =
        emit_si(e, e->k->axis[a].extent + plan_window_halo(e->k, b, a) - 1);

    for (int i = 0; i < e->k->naxis; i++) {
        plan_pace p = plan_window_pace(e->k, b, i);
        LLVMValueRef no;

        if (!(w->axes >> i & 1) || p.axis != a || p.of == 1)
            continue;
        no = emit_below(e, emit_si(e, (e->k->axis[i].extent - 1) % p.of),
                        phase[i]);
        end = emit_minus(e, end, emit_zext(e, no, LLVMTypeOf(end)));
    }
    emit_open_axis(e, a, emit_smaller(e, at, end), 1);
}

/* Opens the position that row `row` of x is: a phase of the window's axes, and
 * positions of M.  What is beyond their ends nobody uses. */
static void open_row(window *w, LLVMValueRef row, LLVMValueRef k)
{
    emit *e = w->g->e;
    const plan_blocks *b = w->g->b;
    const emit_operand *o = &w->g->x;
    int64_t plane = plan_window_plane(e->k, b),
            planes = plan_window_planes(e->k, b, 0);
    LLVMValueRef phase[EMIT_AXES], left = emit_si(e, 0);

    if (planes > 1) {
        row = emit_smaller(e, row, emit_si(e, planes * plane - 1));
        left = emit_over(e, row, plane);
        row = emit_rest(e, row, plane);
    }
    for (int a = e->k->naxis - 1; a >= 0; a--)
        if (w->axes >> a & 1) {
            int64_t n = plan_window_pace(e->k, b, a).of;

            phase[a] = emit_rest(e, left, n);
            left = emit_over(e, left, n);
            emit_open_axis(e, a, phase[a], 1);
        }
    emit_open_axis(e, w->last, k, o->wide);
    for (int a = e->k->naxis - 1; a > o->axis; a--) {
        int64_t n = plan_tile_extent(e->k, b, a);

        if (!(o->in >> a & 1))
            continue;
        open_side(w, a, emit_rest(e, row, n), phase);
        row = emit_over(e, row, n);
    }
    open_side(w, o->axis, emit_add(e, o->from, row), phase);
}

static LLVMValueRef find_begin(window *w, LLVMValueRef row, LLVMValueRef k)
{
    emit *e = w->g->e;
    const plan_node *n = w->g->x.node;
    LLVMValueRef at, has = NULL;
    emit_loop once;

    emit_once_open(e, &once);
    open_row(w, row, k);
    at = emit_expr(e, n->off, 0, false);
    for (int i = 0; i < n->nguard; i++) {
        const plan_guard *of = &n->guard[i];
        LLVMValueRef v =
            emit_add(e, emit_expr(e, of->e, 0, false), emit_si(e, -of->lo));

        has = emit_and(e, has,
                       emit_ult(e, v, emit_si(e, SD_MAX(of->hi - of->lo, 0))));
    }
    if (has)
        at = emit_select(e, has, at, emit_si(e, INT32_MIN));
    emit_level_loop_close(e, &once);
    emit_close_vector(w->g, &w->g->x);
    return at;
}

/* Items that are neighbours copy neighbours of a row. */
static void share_rows(window *w)
{
    emit_tile *g = w->g;
    emit *e = g->e;
    emit_operand *o = &g->x;
    int depth = plan_engine_table[g->b->engine].depth, lane = e->lane;
    int64_t bytes = (int64_t)sd_dtype_bytes(g->b->part);
    int64_t each = g->b->step / o->wide;
    LLVMValueRef row = emit_over(e, e->lid, each),
                 k = emit_times(e, emit_rest(e, e->lid, each), o->wide);

    w->rows = plan_window_rows(e->k, g->b);
    w->n = (int)(w->rows * each / e->k->group);
    w->apart = e->k->group / each;
    assert(w->rows * each % e->k->group == 0 && e->k->group % each == 0);
    w->begin = sd_arena_array(e->a, LLVMValueRef, w->n);
    w->v = sd_arena_array(e->a, LLVMValueRef, w->n);
    e->lane = w->last;
    for (int i = 0; i < w->n; i++) {
        w->begin[i] =
            find_begin(w, emit_add(e, row, emit_si(e, i * w->apart)), k);
        w->v[i] = emit_alloca(
            e, emit_widen(emit_mem_type(e, o->node->dtype), o->wide));
    }
    e->lane = lane;
    w->to = emit_mad(e, row, depth, emit_rest(e, k, depth));
    w->to = emit_mad(e, emit_over(e, k, depth), o->panel, w->to);
    w->to = emit_mad(e, w->to, bytes, emit_si(e, (int64_t)o->at));
}

/* A row's features from `part` steps on.  Whether a guard fails is asked of
 * what a part changes, or Intel's compiler keeps the answers in registers. */
static void read_rows(window *w, LLVMValueRef part)
{
    emit_tile *g = w->g;
    emit *e = g->e;
    const emit_operand *o = &g->x;
    const plan_node *n = o->node;
    LLVMValueRef by = emit_times(e, part, g->b->step);

    for (int i = 0; i < w->n; i++) {
        LLVMValueRef at = emit_add(e, w->begin[i], by), p;

        p = emit_element(e, n->dtype, e->slot[n->slot],
                         LLVMBuildZExtOrBitCast(e->b, at, e->i64, ""));
        if (n->nguard)
            p = emit_select(e, emit_below(e, at, emit_si(e, 0)),
                            e->slot[g->b->zeros], p);
        emit_put(e, emit_plain_vector(e, o, p), w->v[i]);
    }
}

static void write_rows(window *w)
{
    emit *e = w->g->e;
    const emit_operand *o = &w->g->x;
    int depth = plan_engine_table[w->g->b->engine].depth;
    int64_t bytes = (int64_t)sd_dtype_bytes(o->node->dtype);
    LLVMTypeRef t = emit_widen(emit_mem_type(e, o->node->dtype), o->wide);
    LLVMValueRef to = emit_local(e, w->to);

    for (int i = 0; i < w->n; i++) {
        LLVMValueRef by = emit_si(e, i * w->apart * depth * bytes);

        emit_tile_put(LLVMBuildGEP2(e->b, e->i8, to, &by, 1, ""),
                      LLVMBuildLoad2(e->b, t, w->v[i], ""), e,
                      (size_t)(o->wide * bytes));
    }
}

/* Bytes from the rows of a window's first position to those where its axes but
 * the last are at position `turn`. */
static LLVMValueRef find_shift(window *w, LLVMValueRef turn)
{
    emit *e = w->g->e;
    const plan_blocks *b = w->g->b;
    LLVMValueRef rows = emit_si(e, 0);

    for (int a = e->k->naxis - 1; a >= 0; a--) {
        int64_t n = e->k->axis[a].extent, of = plan_window_pace(e->k, b, a).of;
        LLVMValueRef at = turn;

        if (!(w->outer >> a & 1))
            continue;
        if (w->outer & ((1ull << a) - 1))
            at = emit_rest(e, turn, n);
        turn = emit_over(e, turn, n);
        if (of > 1)
            rows = emit_mad(e, emit_rest(e, at, of),
                            plan_window_shift(e->k, b, a, 1), rows);
        rows = emit_mad(e, emit_over(e, at, of),
                        plan_window_shift(e->k, b, a, of), rows);
    }
    return emit_times(e, rows,
                      plan_engine_table[w->g->b->engine].depth *
                          (int64_t)sd_dtype_bytes(w->g->b->part));
}

/* ---- y ---- */

static int64_t stride_of(const window *w, int a)
{
    int64_t s = 0;

    plan_expr_stride(w->g->y.node->off, a, &s);
    return s;
}

/* Elements of y from its first step to that of this part and turn. */
static LLVMValueRef find_y(window *w, LLVMValueRef part, LLVMValueRef turn)
{
    emit *e = w->g->e;
    LLVMValueRef at =
        emit_times(e, part, w->g->b->step * stride_of(w, w->last));

    return w->outer
               ? emit_mad(e, turn, stride_of(w, plan_last_axis(w->outer)), at)
               : at;
}

/* ---- the loops ---- */

/* Steps of a turn: at the window's last axis's position i y is in area i, and
 * what follows goes to the next one. */
static void run_turn(window *w, LLVMValueRef part, LLVMValueRef turn)
{
    emit_tile *g = w->g;
    emit *e = g->e;
    int64_t n = e->k->axis[w->inner].extent;
    int64_t row = plan_engine_table[g->b->engine].depth *
                  (int64_t)sd_dtype_bytes(g->b->part);
    LLVMValueRef own = g->x_own, y = find_y(w, part, turn), next_part, next;

    next = emit_add(e, turn, emit_si(e, 1));
    next_part = emit_smaller(e, emit_add(e, part, emit_si(e, 1)),
                             emit_si(e, w->parts - 1));
    next = w->turns > 1
               ? emit_select(e, emit_below(e, next, emit_si(e, w->turns)),
                             find_y(w, part, next),
                             find_y(w, next_part, emit_si(e, 0)))
               : find_y(w, next_part, emit_si(e, 0));
    g->x_own = emit_add(e, own, find_shift(w, turn));
    for (int64_t i = 0; i < n; i++) {
        emit_plain_read_at(
            g, &g->y,
            i + 1 < n
                ? emit_add(e, y, emit_si(e, (i + 1) * stride_of(w, w->inner)))
                : next);
        g->x.shift = plan_window_shift(e->k, g->b, w->inner, i) * row;
        emit_multiply_squares(g, emit_si(e, i), 0, g->b->step);
        emit_write_panels(g, &g->y, emit_si(e, (i + 1) % n));
        emit_barrier(e);
    }
    g->x_own = own;
}

void emit_run_window(emit_tile *g)
{
    emit *e = g->e;
    window w = {.g = g, .last = plan_last_axis(g->b->node->over)};
    emit_loop part, turn;

    w.axes = plan_window_axes(g->b);
    w.inner = plan_last_axis(w.axes);
    w.outer = w.axes & ~(1ull << w.inner);
    w.turns = plan_extent(e->k, w.outer);
    w.parts = e->k->axis[w.last].extent / g->b->step;
    share_rows(&w);
    read_rows(&w, emit_si(e, 0));
    emit_plain_read_at(g, &g->y, emit_si(e, 0));
    write_rows(&w);
    emit_write_panels(g, &g->y, emit_si(e, 0));
    emit_barrier(e);
    emit_open_turns(e, &part, 0, w.parts, 1);
    if (w.parts > 1)
        read_rows(&w, emit_smaller(e, emit_add(e, part.at, emit_si(e, 1)),
                                   emit_si(e, w.parts - 1)));
    emit_open_turns(e, &turn, 0, w.turns, 1);
    run_turn(&w, part.at, turn.at);
    emit_level_loop_close(e, &turn);
    if (w.parts > 1) {
        write_rows(&w);
        emit_barrier(e);
    }
    emit_level_loop_close(e, &part);
}
