/* Attention's gradient by sub-groups to which messages bring operands as blocks
 * of matrices (emit_attend_blocks.h).  A sub-group has PLAN_SQUARE rows, of
 * which it makes q's gradient, or so many keys, of which it makes those of k
 * and v; both have two arrays, x and y, of which it reads their own rows, and
 * go through blocks of two others, z and w:
 *
 *                            x  y  z  w
 *   rows                     q  o  k  v     (o: the result's cotangent)
 *   keys                     k  v  q  o
 *
 *   for each block:
 *       scores' products x * z, and the weights' cotangents y * w
 *       for each PLAN_SQUARE of its positions:
 *           make weights, of keys: add these times w
 *           make the products' gradients; add these times z
 *
 * Numbers of rows (m, r, c) are the sub-group's own, a row an item, or of a
 * block, whose columns are items: then an item reads those of its column.
 *
 * Weights are as they were (emit_attend_gradient.c).  Gradients of f32 go to
 * the engine in three parts of bf16, which are all of their bits. */
#include <math.h>

#include "emit_attend_blocks.h"

enum {
    NUMBERS = 3, /* of a row: m, r and c */
    PARTS = 3 /* of an f32 */
};

typedef struct {
    attending t;
    int own, other; /* axes: of the sub-group, of the blocks */
    int squares; /* of a block */
    attend_own x, y;
    attend_reading z, w; /* turned, for the first products, */
    attend_reading z_rows, w_rows; /* and as they lie, for the others */
    emit_own_sum *sum, *weighed; /* of z's columns, of w's; NULL: not now */
    int d, e; /* columns in squares */
    LLVMValueRef number[NUMBERS]; /* of the item's row */
} gradient;

static bool of_keys(const gradient *g)
{
    return g->own == HLO_ATTEND_K;
}

/* ---- numbers of rows ---- */

/* Read also where there is no such row. */
static LLVMValueRef number_of(gradient *g, int array, LLVMValueRef row)
{
    attending *t = &g->t;
    emit *e = t->e;
    int64_t n = t->a->of.extent[HLO_ATTEND_Q];
    LLVMValueRef at = emit_smaller(e, row, emit_si(e, n - 1));

    at = emit_times(e, at, t->a->of.stride[array][HLO_ATTEND_Q]);
    return emit_mem_read(e, SD_F32, t->base[array], at, 1).re;
}

static void read_numbers(gradient *g, LLVMValueRef row)
{
    for (int i = 0; i < NUMBERS; i++)
        g->number[i] = number_of(g, OF_M + i, row);
}

/* Of the sub-group's own row r, or of the column's. */
static LLVMValueRef row_number(gradient *g, int array, int r)
{
    emit *e = g->t.e;
    LLVMValueRef v = g->number[array - OF_M];

    return of_keys(g) ? v : e->abi->attend->of_item(e, v, r);
}

/* ---- a block ---- */

typedef struct {
    LLVMValueRef other, row, key;
} point;

static point point_of(gradient *g, int r, LLVMValueRef other)
{
    LLVMValueRef own = emit_plus(g->t.e, g->t.first, r);

    return of_keys(g) ? (point){other, other, own} : (point){other, own, other};
}

static LLVMValueRef weight_of(gradient *g, LLVMValueRef product,
                              const point *at, int r)
{
    emit *e = g->t.e;
    LLVMValueRef p = attend_score(&g->t, product, at->row, at->key);

    p = attend_exp(e, p, row_number(g, OF_M, r));
    p = LLVMBuildFMul(e->b, p, row_number(g, OF_R, r), "");
    return attend_where(&g->t, g->other, at->other, p, 0);
}

static LLVMValueRef slope_of(gradient *g, LLVMValueRef product, LLVMValueRef p,
                             LLVMValueRef slope, const point *at, int r)
{
    emit *e = g->t.e;
    LLVMValueRef ds = LLVMBuildFSub(e->b, slope, row_number(g, OF_C, r), "");

    ds = LLVMBuildFMul(e->b, p, ds, "");
    return attend_where(&g->t, g->other, at->other,
                        attend_slope(&g->t, product, ds, at->row, at->key), 0);
}

/* Half h of a square's products s and cotangents v become weights and the
 * products' gradients. */
static void take_half(gradient *g, int h, LLVMValueRef other, LLVMValueRef *s,
                      LLVMValueRef *v)
{
    emit *e = g->t.e;
    LLVMValueRef p = LLVMGetPoison(attend_rows_type(e)), dx = p;

    for (int i = 0; i < ATTEND_HALF; i++) {
        int r = h * ATTEND_HALF + i;
        point at = point_of(g, r, other);
        LLVMValueRef product = attend_of_vector(e, *s, i),
                     one = weight_of(g, product, &at, r);

        p = attend_in_vector(e, p, one, i);
        if (!g->sum)
            continue;
        one = slope_of(g, product, one, attend_of_vector(e, *v, i), &at, r);
        dx = attend_in_vector(e, dx, one, i);
    }
    *s = p;
    *v = dx;
}

/* What bf16 leaves of v. */
static LLVMValueRef rest_of(emit *e, LLVMValueRef v, LLVMValueRef narrow)
{
    LLVMTypeRef words = LLVMVectorType(e->i32, ATTEND_HALF);
    LLVMValueRef by[ATTEND_HALF], w;

    for (int i = 0; i < ATTEND_HALF; i++)
        by[i] = LLVMConstInt(e->i32, 16, 0);
    w = LLVMBuildZExt(e->b, narrow, words, "");
    w = LLVMBuildShl(e->b, w, LLVMConstVector(by, ATTEND_HALF), "");
    return LLVMBuildFSub(
        e->b, v, LLVMBuildBitCast(e->b, w, attend_rows_type(e), ""), "");
}

/* What is added at a time: products of two halves and the rows of y. */
typedef struct {
    const emit_own_sum *sum; /* of n squares of columns */
    const attend_reading *y;
    LLVMValueRef told; /* of the next rows of y */
    int n, parts; /* that a number goes to the engine in */
} adding;

static adding begin_adding(gradient *g, const emit_own_sum *sum, int n,
                           const attend_reading *y, LLVMValueRef row, int parts)
{
    return (adding){.sum = sum,
                    .y = y,
                    .told = sum ? attend_told_of(&g->t, y, row) : NULL,
                    .n = n,
                    .parts = parts};
}

static void add(gradient *g, adding *to, LLVMValueRef *v)
{
    emit *e = g->t.e;
    LLVMValueRef w[HALVES];

    for (int part = 0; to->sum && part < to->parts; part++) {
        for (int h = 0; h < HALVES; h++) {
            if (part)
                v[h] = rest_of(e, v[h], w[h]);
            w[h] = e->abi->attend->narrow(e, v[h]);
        }
        attend_add_columns(&g->t, to->sum, to->n, w, to->y, to->told);
    }
    if (to->sum)
        to->told = attend_moved(e, to->told, to->y->down);
}

static void run_block(gradient *g, LLVMValueRef block)
{
    attending *t = &g->t;
    emit *e = t->e;
    LLVMValueRef *s = sd_arena_array(e->a, LLVMValueRef,
                                     2 * HALVES * g->squares),
                 *v = s + HALVES * g->squares;
    LLVMValueRef row = emit_times(e, block, g->squares * PLAN_SQUARE);
    int parts = t->a->slope->root[0]->dtype == SD_F32 ? PARTS : 1;
    adding w = begin_adding(g, g->weighed, g->e, &g->w_rows, row, 1),
           z = begin_adding(g, g->sum, g->d, &g->z_rows, row, parts);

    attend_multiply_own(t, &g->x, &g->z, row, g->squares, s);
    if (g->sum)
        attend_multiply_own(t, &g->y, &g->w, row, g->squares, v);
    for (int i = 0; i < g->squares; i++, s += HALVES, v += HALVES) {
        LLVMValueRef other =
            emit_add(e, emit_plus(e, row, i * PLAN_SQUARE), t->mate);

        if (of_keys(g))
            read_numbers(g, other);
        for (int h = 0; h < HALVES; h++)
            take_half(g, h, other, &s[h], &v[h]);
        add(g, &w, s);
        add(g, &z, v);
    }
}

/* All items go from the same block to the same one: a compiler that does not
 * see it of sums of masks (Intel's for CPUs) refuses the engine's functions in
 * such a loop. */
static void run_some(gradient *g, LLVMValueRef from, LLVMValueRef to, bool seen)
{
    emit *e = g->t.e;
    emit_loop l;

    g->t.is_seen = seen;
    emit_loop_open(e, &l, e->abi->uniform(e, from), e->abi->uniform(e, to), 1);
    run_block(g, l.at);
    emit_loop_close(e, &l);
    g->t.is_seen = false;
}

/* Blocks that are seen whole come first for rows, last for keys. */
static void run_blocks(gradient *g, LLVMValueRef from, LLVMValueRef to)
{
    attending *t = &g->t;
    emit *e = t->e;
    LLVMValueRef other;

    if (!t->a->cut_alone) {
        run_some(g, from, to, false);
        return;
    }
    other = emit_smaller(e, emit_larger(e, attend_first_other(t), from), to);
    run_some(g, from, other, !of_keys(g));
    run_some(g, other, to, of_keys(g));
}

/* ---- which blocks ---- */

/* Has one of the first `rows` rows a score so small that masked ones count? */
static LLVMValueRef is_near(gradient *g, LLVMValueRef rows)
{
    attending *t = &g->t;
    emit *e = t->e;
    LLVMValueRef any = emit_variable(e, emit_si(e, 0)), near;
    emit_loop l;

    emit_loop_open(e, &l, emit_si(e, 0), rows, PLAN_SQUARE);
    near = attend_is_near(t, number_of(g, OF_M, emit_add(e, l.at, t->mate)));
    near = emit_select(e, near, emit_si(e, 1), emit_get(e, any));
    LLVMBuildStore(e->b, near, any);
    emit_loop_close(e, &l);
    return e->abi->attend->any(e,
                               emit_below(e, emit_si(e, 0), emit_get(e, any)));
}

/* Blocks of rows without one that sees a key of the sub-group are not run. */
static LLVMValueRef first_block(gradient *g, int64_t all)
{
    emit *e = g->t.e;
    int block = g->squares * PLAN_SQUARE;
    LLVMValueRef first = emit_plus(e, g->t.first, -g->t.a->beyond);

    first = emit_over(e, emit_larger(e, first, emit_si(e, 0)), block);
    first = emit_smaller(e, first, emit_si(e, all));
    return emit_select(e, is_near(g, emit_times(e, first, block)),
                       emit_si(e, 0), first);
}

static void run_all(gradient *g)
{
    attending *t = &g->t;
    emit *e = t->e;
    int64_t block = g->squares * PLAN_SQUARE,
            all = (t->a->of.extent[g->other] + block - 1) / block;
    LLVMValueRef from = emit_si(e, 0), to = emit_si(e, all);

    if (t->a->is_cut && t->a->masked != INFINITY) {
        if (of_keys(g))
            from = first_block(g, all);
        else
            to = emit_select(
                e, e->abi->attend->any(e, attend_is_near(t, g->number[0])), to,
                attend_seen_blocks(t, all));
    }
    run_blocks(g, from, to);
}

/* ---- the sub-group ---- */

static void begin(gradient *g)
{
    attending *t = &g->t;
    const int64_t *extent = t->a->of.extent;

    g->own = plan_attend_axis(t->a, false);
    g->other = plan_attend_axis(t->a, true);
    g->squares = plan_attend_block(t->a, g->other) / PLAN_SQUARE;
    g->d = attend_squares(extent[HLO_ATTEND_D]);
    g->e = attend_squares(extent[HLO_ATTEND_E]);
}

static void find_operands(gradient *g)
{
    static const int8_t array[2][4] = {{OF_Q, OF_O, OF_K, OF_V},
                                       {OF_K, OF_V, OF_Q, OF_O}};
    attending *t = &g->t;
    const int8_t *of = array[of_keys(g)];

    g->x = attend_find_own(t, of[0], g->own, HLO_ATTEND_D);
    g->y = attend_find_own(t, of[1], g->own, HLO_ATTEND_E);
    g->z = attend_find_reading(t, of[2], g->other, HLO_ATTEND_D,
                               EMIT_BLOCK_TURNED);
    g->w = attend_find_reading(t, of[3], g->other, HLO_ATTEND_E,
                               EMIT_BLOCK_TURNED);
    g->z_rows =
        attend_find_reading(t, of[2], g->other, HLO_ATTEND_D, EMIT_BLOCK_PAIRS);
    if (of_keys(g))
        g->w_rows = attend_find_reading(t, of[3], g->other, HLO_ATTEND_E,
                                        EMIT_BLOCK_PAIRS);
    else
        read_numbers(g, emit_add(t->e, t->first, t->mate));
}

static void write_sums(gradient *g, const emit_own_sum *sum, int n, int i)
{
    int array = hlo_attend_result(&g->t.a->of) + i;

    for (int j = 0; sum && j < HALVES * n; j++)
        attend_write_columns(&g->t, array, j / HALVES, j % HALVES,
                             attend_take_sum(&g->t, &sum[j]));
}

/* Makes one result of keys, or both; or that of rows. */
static void make(gradient *g, bool sum, bool weighed)
{
    g->sum = sum ? attend_open_sums(&g->t, 0, g->d) : NULL;
    g->weighed = weighed ? attend_open_sums(&g->t, g->d, g->e) : NULL;
    run_all(g);
    write_sums(g, g->sum, g->d, 0);
    write_sums(g, g->weighed, g->e, 1);
}

void emit_attend_slope(emit *e)
{
    gradient g = {.t = {.e = e, .a = e->k->attend}};
    attending *t = &g.t;
    LLVMBasicBlockRef no;

    begin(&g);
    attend_find_rows(t);
    no = emit_when(e,
                   emit_below(e, t->first, emit_si(e, t->a->of.extent[g.own])));
    find_operands(&g);
    make(&g, true, of_keys(&g) && !t->a->apart);
    if (t->a->apart)
        make(&g, false, true);
    emit_when_end(e, no);
}
