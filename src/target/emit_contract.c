/* A CONTRACT in blocks, as plan_blocks says: copies of both operands in the
 * order of the innermost loop, and the multiplication of these, which is in
 * emit_registers.c and emit_tiles.c.  Host only.
 *
 * What an operand is made of is computed while it is copied; what uses the sum
 * runs afterwards over the tile, like any stage, and reads it from its area. */
#include "emit.h"

typedef struct {
    emit *e;
    const plan_blocks *b;
    LLVMValueRef m0, m1, n0, n1; /* the tile */
    LLVMValueRef k0, k1;         /* the chain, on axis k */
    LLVMValueRef first;          /* i1: no chain was before it */
    int lane;                    /* the kernel's LANE axis */
    LLVMValueRef rows, columns;  /* of the tile */
    LLVMValueRef words;          /* of the chain: elements of k, if fma's */
    LLVMValueRef depth;          /* positions of k */
} block;

/* A byte of local memory, found before all loops, for emit_go. */
static LLVMValueRef area_from_start(emit *e, size_t at)
{
    emit_mark mark = emit_go_to(e, 0);
    LLVMValueRef p = emit_local_at(e, at);

    emit_back(e, mark);
    return p;
}

static LLVMValueRef sub(emit *e, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildNSWSub(e->b, x, y, "");
}

/* Where `axis` and those of `in` stand, from `from` on, as one number. */
static LLVMValueRef local(emit *e, int axis, uint64_t in, LLVMValueRef from)
{
    LLVMValueRef at = sub(e, emit_position(e, axis, 0, false), from);

    for (int a = axis + 1; a < e->k->naxis; a++)
        if (in >> a & 1)
            at = emit_mad(e, at, e->k->axis[a].extent,
                          emit_position(e, a, 0, false));
    return at;
}

/* `by` times the same, as terms of a place. */
static void add_local(emit *e, emit_terms *s, int axis, uint64_t in,
                      LLVMValueRef from, int64_t by, int copy)
{
    LLVMValueRef v;
    emit_mark mark;

    for (int a = e->k->naxis - 1; a >= axis; a--) {
        const emit_axis *x = &e->axis[a];

        if (a != axis && !(in >> a & 1))
            continue;
        mark = emit_go_to(e, x->level);
        v = LLVMBuildNSWMul(e->b, x->at, emit_si(e, by), "");
        emit_back(e, mark);
        emit_add_term(s, v, x->level);
        s->plus += by * emit_distance(e, a, copy);
        if (a != axis)
            by *= e->k->axis[a].extent;
    }
    mark = emit_go_to(e, SD_MAX(e->axis[axis].level - 1, 0));
    v = LLVMBuildNSWMul(e->b, from, emit_si(e, -by), "");
    emit_add_term(s, v, e->standing);
    emit_back(e, mark);
}

static LLVMValueRef local_n(emit *e, const block *t)
{
    return local(e, t->b->n, t->b->n_in, t->n0);
}

static LLVMValueRef local_k(emit *e, const block *t)
{
    return local(e, t->b->k, t->b->k_in, t->k0);
}

/* ---- copies of the operands ---- */

static bool by_words(const block *t)
{
    return t->b->engine != PLAN_ENGINE_FMA;
}

static bool has_tiles(const block *t)
{
    return plan_engine_table[t->b->engine].tiles;
}

static void put_at(emit *e, const block *t, const plan_node *n, LLVMValueRef p,
                   LLVMValueRef at)
{
    emit_value v = emit_splat_value(e, emit_node_value(e, n, 0), e->w);
    sd_dtype type = n->dtype;

    if (by_words(t) && t->b->part == SD_S16) {
        v = emit_convert(e, v, type, SD_S16);
        type = SD_S16;
    }
    if (t->b->flip && n == t->b->x)
        v.re = emit_xor(e, v.re, emit_int_like(v.re, 0x80));
    emit_mem_write(e, type, p, at, v);
}

/* An element of an operand, `by` from one position of its side to the next and
 * k_by from one of K. */
static void put_side(emit *e, const block *t, const plan_node *n,
                     size_t area_at, int64_t by, int64_t k_by)
{
    const plan_blocks *b = t->b;
    bool x = n == b->x;
    emit_terms s = {.n = 0};
    LLVMValueRef p, at;

    add_local(e, &s, x ? b->m : b->n, x ? b->m_in : b->n_in, x ? t->m0 : t->n0,
              by, 0);
    add_local(e, &s, b->k, b->k_in, t->k0, k_by, 0);
    p = area_from_start(e, area_at);
    emit_go(e, &s, by_words(t) ? b->part : sd_dtype_part(n->dtype), &p, &at);
    put_at(e, t, n, p, at);
}

static void put_x(emit *e, void *ctx)
{
    const block *t = ctx;
    const plan_blocks *b = t->b;

    if (!by_words(t))
        put_side(e, t, b->x, b->x_at, b->x_m, b->x_k);
    else if (b->node->over >> b->x_along & 1)
        put_side(e, t, b->x, b->x_at, b->x_row, 1);
    else
        put_side(e, t, b->x, b->stage_at, 1, b->x_row);
}

/* The place in y's panels of row k and column n. */
static LLVMValueRef place_y(emit *e, const plan_blocks *b, LLVMValueRef k,
                            LLVMValueRef n)
{
    return emit_panel_place(e, b->vectors * e->w, b->y_panel, b->y_k, k, n);
}

static void put_y(emit *e, void *ctx)
{
    const block *t = ctx;
    const plan_blocks *b = t->b;

    if (!by_words(t))
        put_at(e, t, b->y, emit_local_at(e, b->y_at),
               place_y(e, b, local_k(e, t), local_n(e, t)));
    else if (b->y_along == t->lane)
        put_side(e, t, b->y, b->stage_at, 1, b->y_row);
    else
        put_side(e, t, b->y, b->stage_at, b->y_row, 1);
}

/* Blocks of half the size change places, and so on down.  Code generation would
 * look for one shuffle that does what two after each other do, at each of them,
 * and there is none. */
void emit_turn(emit *e, LLVMValueRef *v, int w)
{
    for (int s = w / 2; s; s /= 2) {
        for (int i = 0; i < w; i++) {
            int low[EMIT_MAX_LANES], high[EMIT_MAX_LANES];
            LLVMValueRef x = v[i];

            if (i & s)
                continue;
            for (int j = 0; j < w; j++) {
                low[j] = j & s ? w + j - s : j;
                high[j] = j & s ? w + j : j + s;
            }
            v[i] = emit_shuffle(e, x, v[i + s], low, w);
            v[i + s] = emit_shuffle(e, x, v[i + s], high, w);
        }
        for (int i = 0; s > 1 && i < w; i++)
            v[i] = emit_hide_value(e, (emit_value){v[i], NULL}).re;
    }
}

/* A square of y: its vectors lie along k, one a copy of n. */
static void put_y_turned(emit *e, void *ctx)
{
    const block *t = ctx;
    const plan_blocks *b = t->b;
    LLVMValueRef v[EMIT_MAX_LANES];
    LLVMValueRef k = local_k(e, t), n = local_n(e, t), at;

    for (int c = 0; c < e->w; c++) {
        int copy = emit_canon(e, c * e->axis[t->lane].stride, b->y->varies);

        v[c] = emit_splat(e, emit_node_value(e, b->y, copy).re, e->w);
    }
    emit_turn(e, v, e->w);
    for (int i = 0; i < e->w; i++) {
        at = emit_add(e, k, emit_si(e, i));
        emit_mem_write(e, b->y->dtype, emit_local_at(e, b->y_at),
                       place_y(e, b, at, n), (emit_value){v[i], NULL});
    }
}

static LLVMValueRef start_of(const block *t, int axis)
{
    return axis == t->b->m   ? t->m0
           : axis == t->b->n ? t->n0
           : axis == t->b->k ? t->k0
                             : emit_si(t->e, 0);
}

static LLVMValueRef end_of(const block *t, int axis)
{
    return axis == t->b->m   ? t->m1
           : axis == t->b->n ? t->n1
           : axis == t->b->k ? t->k1
                             : emit_si(t->e, t->e->k->axis[axis].extent);
}

static void look_ahead(const block *t, int axis)
{
    t->e->ahead_axis = axis;
    t->e->ahead = t->b->ahead;
}

/* `body` for vectors along the last of n axes, which is LANE meanwhile, inside
 * loops over the others. */
static void run_along(block *t, const int *axis, int n, emit_lane_body body)
{
    emit *e = t->e;
    int lane = e->lane;
    LLVMValueRef from = start_of(t, *axis), to = end_of(t, *axis);
    emit_loop l;

    if (n > 1) {
        emit_axis_open(e, *axis, &l, from, to, 1);
        if (!e->ahead)
            look_ahead(t, *axis);
        run_along(t, axis + 1, n - 1, body);
        e->ahead = 0;
        emit_axis_close(e, *axis, &l);
        return;
    }
    e->lane = *axis;
    emit_lane_loops(e, from, to, 1, body, t);
    e->lane = lane;
}

static int add_axes(int *axis, int n, uint64_t set)
{
    plan_for_each_axis(a, set)
        axis[n++] = a;
    return n;
}

/* What a vector writes beyond its end is written again after it: the axis of
 * the vectors is the last of its kind, and goes up. */
static void copy_x(block *t)
{
    bool along_m = plan_block_rows(t->b) >> t->b->x_along & 1;
    int axis[EMIT_AXES];
    int n = add_axes(axis, 0,
                     along_m ? plan_block_chain(t->b) : plan_block_rows(t->b)),
        w = t->e->w;

    n = add_axes(axis, n,
                 along_m ? plan_block_rows(t->b) : plan_block_chain(t->b));
    t->e->w = SD_MAX(w, t->b->x_wide);
    run_along(t, axis, n, put_x);
    t->e->w = w;
}

/* Squares of y, inside loops over the last n axes of N, of which the last is
 * LANE. */
static void turn_along(block *t, const int *axis, int n)
{
    emit *e = t->e;
    emit_axis *x = &e->axis[*axis];
    LLVMValueRef to = end_of(t, *axis);
    int chain[EMIT_AXES];
    emit_loop l;

    emit_axis_open(e, *axis, &l, start_of(t, *axis), to, n > 1 ? 1 : e->w);
    if (n > 1) {
        turn_along(t, axis + 1, n - 1);
        emit_axis_close(e, *axis, &l);
        return;
    }
    x->n = e->w;
    x->step = 1;
    for (int c = 1; c < e->w; c++)
        x->mask[c] =
            emit_below(e, emit_position(e, *axis, c * x->stride, false), to);
    run_along(t, chain, add_axes(chain, 0, plan_block_chain(t->b)),
              put_y_turned);
    emit_axis_close(e, *axis, &l);
}

/* Words of y, from as many rows, which are copies of K's last axis. */
static void put_y_woven(emit *e, void *ctx)
{
    const block *t = ctx;
    const plan_blocks *b = t->b;
    int depth = plan_engine_table[b->engine].depth;
    int stride = e->axis[plan_last_axis(plan_block_chain(t->b))].stride;
    LLVMValueRef row[EMIT_WORD], v;

    for (int c = 0; c < depth; c++) {
        int copy = emit_canon(e, c * stride, b->y->varies);

        row[c] = emit_splat(e, emit_node_value(e, b->y, copy).re, e->w);
    }
    v = emit_as(e, emit_weave(e, row, depth), emit_widen(e->i32, e->w));
    emit_mem_write(
        e, SD_S32, emit_local_at(e, b->y_at),
        place_y(e, b, emit_over(e, local_k(e, t), depth), local_n(e, t)),
        (emit_value){v, NULL});
}

/* Inside loops over the last n axes of a chain. */
static void weave_along(block *t, const int *axis, int n)
{
    emit *e = t->e;
    emit_axis *x = &e->axis[*axis];
    int depth = plan_engine_table[t->b->engine].depth, column[EMIT_AXES];
    emit_loop l;

    emit_axis_open(e, *axis, &l, start_of(t, *axis), end_of(t, *axis),
                   n > 1 ? 1 : depth);
    if (n > 1) {
        weave_along(t, axis + 1, n - 1);
    } else {
        x->n = depth;
        x->step = 1;
        for (int c = 1; c < depth; c++)
            x->mask[c] = NULL;
        run_along(t, column, add_axes(column, 0, plan_block_columns(t->b)),
                  put_y_woven);
    }
    emit_axis_close(e, *axis, &l);
}

static void copy_y(block *t)
{
    int axis[EMIT_AXES], n = 0;

    if (t->b->weaves) {
        weave_along(t, axis, add_axes(axis, 0, plan_block_chain(t->b)));
    } else if (t->b->y_along == t->lane) {
        n = add_axes(axis, 0, plan_block_chain(t->b));
        run_along(t, axis, add_axes(axis, n, plan_block_columns(t->b)), put_y);
    } else if (by_words(t)) {
        n = add_axes(axis, 0, plan_block_columns(t->b));
        run_along(t, axis, add_axes(axis, n, plan_block_chain(t->b)), put_y);
    } else {
        turn_along(t, axis, add_axes(axis, 0, plan_block_columns(t->b)));
    }
}

/* ---- words of an engine ---- */

/* Are the words of each chain full? */
static bool has_whole_words(const block *t)
{
    const plan_blocks *b = t->b;
    int64_t all = t->e->k->axis[b->k].extent;
    int64_t each = plan_extent(t->e->k, b->k_in);
    int64_t unit = plan_chain_words(b, 1) * plan_engine_table[b->engine].depth;

    return b->kt % unit == 0 && all % b->chunk * each % unit == 0;
}

/* What fills the last words of `n` rows or columns is 0.  They lie along k, or
 * their neighbours side by side. */
static void pad_words(block *t, LLVMValueRef to, LLVMValueRef count, bool along,
                      int64_t row)
{
    const plan_blocks *b = t->b;
    emit *e = t->e;
    emit_value zero = {LLVMConstNull(emit_widen(emit_type(e, b->part), e->w)),
                       NULL};
    LLVMValueRef end = LLVMBuildNSWMul(
        e->b, t->words, emit_si(e, plan_engine_table[b->engine].depth), "");
    emit_loop n, k;

    if (has_whole_words(t))
        return;
    emit_loop_open(e, &n, emit_si(e, 0), count, along ? 1 : e->w);
    emit_loop_open(e, &k, t->depth, end, along ? e->w : 1);
    emit_mem_write(e, b->part, to,
                   along ? emit_mad(e, n.at, row, k.at)
                         : emit_mad(e, k.at, row, n.at),
                   zero);
    emit_loop_close(e, &k);
    emit_loop_close(e, &n);
}

/* The same of words that were put together at once. */
static void pad_woven(block *t)
{
    emit *e = t->e;
    emit_value zero = {LLVMConstNull(emit_widen(e->i32, e->w)), NULL};
    emit_loop n, k;

    if (has_whole_words(t))
        return;
    emit_loop_open(e, &n, emit_si(e, 0), t->columns, e->w);
    emit_loop_open(
        e, &k, emit_over(e, t->depth, plan_engine_table[t->b->engine].depth),
        t->words, 1);
    emit_mem_write(e, SD_S32, emit_local_at(e, t->b->y_at),
                   place_y(e, t->b, k.at, n.at), zero);
    emit_loop_close(e, &k);
    emit_loop_close(e, &n);
}

static void weave_y(block *t)
{
    const plan_blocks *b = t->b;
    emit *e = t->e;
    emit_words w = {.from = emit_local_at(e, b->stage_at),
                    .to = emit_local_at(e, b->y_at),
                    .words = t->words,
                    .columns = t->columns,
                    .row = b->y_row,
                    .wide = b->vectors * e->w,
                    .panel = b->y_panel,
                    .k = b->y_k};

    if (b->weaves) {
        pad_woven(t);
        return;
    }
    pad_words(t, w.from, t->columns, b->y_along != t->lane, b->y_row);
    if (b->y_along == t->lane)
        emit_engine_weave(e, &w);
    else
        emit_engine_turn(e, &w);
}

static void weave_x(block *t)
{
    const plan_blocks *b = t->b;
    emit *e = t->e;
    emit_words w = {.from = emit_local_at(e, b->stage_at),
                    .to = emit_local_at(e, b->x_at),
                    .words = t->words,
                    .columns = t->rows,
                    .row = b->x_row,
                    .wide = e->w,
                    .panel = e->w,
                    .k = b->x_k};
    bool along = b->node->over >> b->x_along & 1;

    if (has_tiles(t) || sd_dtype_kind(b->part) == SD_K_FLOAT)
        /* y's zeros make none of what is no number */
        pad_words(t, along ? w.to : w.from, t->rows, along, b->x_row);
    if (along)
        return;
    if (has_tiles(t))
        emit_engine_weave_rows(e, &w, b->x_m);
    else
        emit_engine_weave(e, &w);
}

/* ---- a tile ---- */

static void multiply(block *t)
{
    emit *e = t->e;
    const plan_blocks *b = t->b;
    emit_chain c = {.x = emit_local_at(e, b->x_at),
                    .y = emit_local_at(e, b->y_at),
                    .sum = emit_local_at(e, b->sum_at),
                    .rows = t->rows,
                    .columns = t->columns,
                    .words = t->words,
                    .first = t->first};
    LLVMValueRef mode = NULL;

    if (has_tiles(t)) {
        emit_chain_by_tiles(e, &c);
        return;
    }
    if (plan_drops_subnormals(b))
        mode = emit_drop_subnormals(e);
    emit_chain_by_registers(e, &c);
    if (mode)
        emit_restore_mode(e, mode);
}

/* The loop over chains on axis k, and what is done for one. */
static void run_chains(block *t)
{
    emit *e = t->e;
    const plan_blocks *b = t->b;
    int64_t all = e->k->axis[b->k].extent, chunk = b->chunk;
    int64_t depth = plan_engine_table[b->engine].depth;
    int64_t unit = plan_chain_words(b, 1);
    LLVMValueRef end = emit_si(e, all), is_first;
    emit_loop l;

    emit_level_loop_open(e, &l, emit_si(e, 0), end, chunk);
    t->k0 = l.at;
    t->k1 = emit_add(e, l.at, emit_si(e, chunk));
    if (all % chunk)
        t->k1 = emit_smaller(e, t->k1, end);
    is_first = emit_equal(e, l.at, emit_si(e, 0));
    t->first = t->first ? emit_and(e, t->first, is_first) : is_first;
    t->depth = LLVMBuildNSWMul(e->b, sub(e, t->k1, t->k0),
                               emit_si(e, plan_extent(e->k, b->k_in)), "");
    t->words = emit_udiv(e, emit_add(e, t->depth, emit_si(e, unit * depth - 1)),
                         emit_si(e, unit * depth));
    t->words = LLVMBuildNSWMul(e->b, t->words, emit_si(e, unit), "");
    copy_y(t);
    if (by_words(t))
        weave_y(t);
    copy_x(t);
    if (by_words(t))
        weave_x(t);
    multiply(t);
    emit_level_loop_close(e, &l);
}

/* Axes of the sum that are outside of the chains. */
static void run_depth(block *t, uint64_t axes)
{
    emit *e = t->e;
    int a = axes ? __builtin_ctzll(axes) : 0;
    LLVMValueRef is_first;
    emit_loop l;

    if (!axes) {
        run_chains(t);
        return;
    }
    emit_axis_open(e, a, &l, emit_si(e, 0), emit_si(e, e->k->axis[a].extent),
                   1);
    is_first = emit_equal(e, l.at, emit_si(e, 0));
    t->first = t->first ? emit_and(e, t->first, is_first) : is_first;
    run_depth(t, axes & (axes - 1));
    emit_axis_close(e, a, &l);
}

void emit_blocks(emit *e, LLVMValueRef m0, LLVMValueRef m1, LLVMValueRef n0,
                 LLVMValueRef n1)
{
    block t = {.e = e,
               .b = e->k->blocks,
               .m0 = m0,
               .m1 = m1,
               .n0 = n0,
               .n1 = n1,
               .lane = e->lane};

    t.rows = LLVMBuildNSWMul(e->b, sub(e, m1, m0),
                             emit_si(e, plan_extent(e->k, t.b->m_in)), "");
    t.columns = LLVMBuildNSWMul(e->b, sub(e, n1, n0),
                                emit_si(e, plan_extent(e->k, t.b->n_in)), "");

    run_depth(&t, t.b->node->over & ~plan_block_chain(t.b));
    e->block_m = m0;
    e->block_n = n0;
}

emit_value emit_block_sum(emit *e, const plan_node *n, int copy)
{
    const plan_blocks *b = e->k->blocks;
    LLVMValueRef p = area_from_start(e, b->sum_at), at;
    emit_terms s = {.n = 0};

    add_local(e, &s, b->m, b->m_in, e->block_m, b->sum_m, copy);
    add_local(e, &s, b->n, b->n_in, e->block_n, 1, copy);
    emit_go(e, &s, sd_dtype_part(n->dtype), &p, &at);
    return emit_mem_read(e, n->dtype, p, at, e->w);
}
