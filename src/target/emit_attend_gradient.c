/* Attention's gradient by a group of work items, as the plan lays it out.  A
 * group of rows makes that of q, one of keys those of k and v; both have two
 * arrays, x and y, and go through blocks of two others, z and w:
 *
 *                            x  y  z  w
 *   rows                     q  o  k  v     (o: the result's cotangent)
 *   keys                     k  v  q  o
 *
 *   for each block:
 *       wait for it, begin to copy the next
 *       begin the scores' products, x * z, and the weights' gradients, y * w
 *       begin to add the block's before products' gradients times its z
 *       make weights of the scores; of keys: begin to add them times w
 *       make the products' gradients
 *   add the last block's
 *
 * so that there are products to be made while items compute.  Weights are as
 * they were: each row's largest score and 1 / its sum of exponentials are
 * given.  Of a block of z and w, rows and keys that are not there add nothing,
 * whatever stands in their places.
 *
 * Gradients of f32 go to the engine in two parts of bf16, which together are as
 * good as 16 bits: tf32, in which such products are made else, has 11. */
#include <math.h>

#include "emit_attend.h"

typedef struct {
    attending *t;
    int own, other; /* axes: of the group, of the blocks */
    attend_copied *x, *y, *z, *w;
    int n;          /* scores of an item */
    LLVMValueRef *row[3]; /* m, r and c of halves, or of a block's columns */
    LLVMValueRef *word[2]; /* variables: a block's dx, in two parts of f32 */
} gradient;

static bool of_keys(const gradient *g)
{
    return g->own == HLO_ATTEND_K;
}

/* ---- numbers of rows ---- */

/* Of row + plus, which is read also where there is no such row. */
static LLVMValueRef number_of(gradient *g, int array, LLVMValueRef row,
                              int plus)
{
    attending *t = g->t;
    emit *e = t->e;
    int64_t n = t->a->of.extent[HLO_ATTEND_Q],
            by = t->a->of.stride[array][HLO_ATTEND_Q];
    LLVMValueRef p;

    if (n % t->a->rows) {
        row = emit_smaller(e, emit_plus(e, row, plus), emit_si(e, n - 1));
        plus = 0;
    }
    p = emit_element(e, SD_F32, t->base[array], emit_times(e, row, by));
    return emit_mem_read(e, SD_F32, p, emit_si(e, plus * by), 1).re;
}

/* The first position that an item has along the blocks' axis, and how far
 * behind it score i is. */
static LLVMValueRef other_from(gradient *g, LLVMValueRef block)
{
    return emit_mad(g->t->e, block, g->z->rows, g->t->column);
}
static int behind_of(int i)
{
    return i / 4 * EIGHT + i % 2;
}

/* Which of a block's columns of an item score i is in. */
static int column_of(int i)
{
    return i / 4 * 2 + i % 2;
}

static void read_halves(gradient *g)
{
    for (int i = 0; i < 3; i++)
        for (int h = 0; h < HALVES; h++)
            g->row[i][h] = number_of(g, OF_M + i, attend_row(g->t, h), 0);
}

static void read_columns(gradient *g, int array, LLVMValueRef block)
{
    LLVMValueRef from = other_from(g, block);

    for (int j = 0; j < g->n; j++)
        if (j / 2 % HALVES == 0)
            g->row[array - OF_M][column_of(j)] =
                number_of(g, array, from, behind_of(j));
}

static LLVMValueRef row_number(gradient *g, int array, int i)
{
    return g->row[array - OF_M][of_keys(g) ? column_of(i) : i / 2 % HALVES];
}

/* ---- a block ---- */

typedef struct {
    LLVMValueRef other, row, key;
} point;

static point point_of(gradient *g, LLVMValueRef block, int i)
{
    LLVMValueRef own = attend_row(g->t, i / 2 % HALVES),
                 other = emit_plus(g->t->e, other_from(g, block), behind_of(i));

    return of_keys(g) ? (point){other, other, own} : (point){other, own, other};
}

static LLVMValueRef weight_of(gradient *g, LLVMValueRef product,
                              const point *at, int i)
{
    emit *e = g->t->e;
    LLVMValueRef p = attend_score(g->t, product, at->row, at->key);

    p = attend_exp(e, p, row_number(g, OF_M, i));
    p = LLVMBuildFMul(e->b, p, row_number(g, OF_R, i), "");
    return attend_where(g->t, g->other, at->other, p, 0);
}

static LLVMValueRef slope_of(gradient *g, LLVMValueRef product, LLVMValueRef p,
                             LLVMValueRef slope, const point *at, int i)
{
    emit *e = g->t->e;
    LLVMValueRef ds = LLVMBuildFSub(e->b, slope, row_number(g, OF_C, i), "");

    ds = LLVMBuildFMul(e->b, p, ds, "");
    return attend_where(g->t, g->other, at->other,
                        attend_slope(g->t, product, ds, at->row, at->key), 0);
}

/* Words of v for the engine. */
static LLVMValueRef *packed(gradient *g, LLVMValueRef *v)
{
    emit *e = g->t->e;
    LLVMValueRef *word = sd_arena_array(e->a, LLVMValueRef, g->n / 2);

    for (int i = 0; i < g->n / 2; i++)
        word[i] = e->abi->attend->pack(e, e->k->slot[0].dtype, v[2 * i],
                                       v[2 * i + 1]);
    return word;
}

/* v becomes what the words of bf16 leave of it. */
static void take_rest(gradient *g, LLVMValueRef *v, LLVMValueRef *word)
{
    emit *e = g->t->e;

    for (int i = 0; i < g->n; i++) {
        LLVMValueRef w = word[i / 2];

        w = i % 2 ? LLVMBuildAnd(e->b, w, LLVMConstInt(e->i32, 0xffff0000u, 0),
                                 "")
                  : LLVMBuildShl(e->b, w, LLVMConstInt(e->i32, 16, 0), "");
        v[i] = LLVMBuildFSub(e->b, v[i], LLVMBuildBitCast(e->b, w, e->f32, ""),
                             "");
    }
}

/* How many products add to sums of dx: see the top. */
static int parts_of(const gradient *g)
{
    return g->t->a->slope->root[0]->dtype == SD_F32 ? 2 : 1;
}

static void keep_slopes(gradient *g, LLVMValueRef *v)
{
    emit *e = g->t->e;

    for (int part = 0; part < parts_of(g); part++) {
        LLVMValueRef *word = packed(g, v);

        for (int i = 0; i < g->n / 2; i++)
            LLVMBuildStore(e->b, word[i], g->word[part][i]);
        take_rest(g, v, word);
    }
}

static void add_slopes(gradient *g, LLVMValueRef block)
{
    emit *e = g->t->e;
    LLVMValueRef *word = sd_arena_array(e->a, LLVMValueRef, g->n / 2);

    for (int part = 0; part < parts_of(g); part++) {
        for (int i = 0; i < g->n / 2; i++)
            word[i] = LLVMBuildLoad2(e->b, e->i32, g->word[part][i], "");
        attend_add(g->t, "sum", word, g->z, block);
    }
}

/* Waits for all products, not before v is there: see emit_attend_abi. */
static void wait_behind(gradient *g, LLVMValueRef v)
{
    emit *e = g->t->e;
    LLVMValueRef mark =
        emit_mad(e, e->lid, sizeof(float), emit_si(e, (int64_t)g->t->a->marks));

    e->abi->attend->wait_behind(e, emit_local(e, mark), v);
}

/* The block's products go on, and `behind` them more.  Of keys the sums of the
 * block before have to come to their end before there are further words.
 *
 * Products end in the order in which they began, each a group for the engine:
 * of keys the last block's "other"; "score", "slope", those behind. */
static void take_block(gradient *g, LLVMValueRef block, int behind)
{
    attending *t = g->t;
    emit *e = t->e;
    LLVMValueRef *s = sd_arena_array(e->a, LLVMValueRef, 3 * g->n),
                 *p = s + g->n, *v = p + g->n;
    point *at = sd_arena_array(e->a, point, g->n);

    if (of_keys(g)) {
        read_columns(g, OF_M, block);
        read_columns(g, OF_R, block);
    }
    e->abi->wait(e, behind + 1); /* left: "slope" and those behind */
    e->abi->attend->take(e, "score", s, g->n);
    for (int i = 0; i < g->n; i++) {
        at[i] = point_of(g, block, i);
        p[i] = weight_of(g, s[i], &at[i], i);
    }
    if (of_keys(g)) {
        read_columns(g, OF_C, block); /* no register had room for them before */
        wait_behind(g, p[g->n - 1]); /* left: none */
        attend_add(t, "other", packed(g, p), g->w, block);
    } else {
        e->abi->wait(e, behind); /* left: those behind */
    }
    e->abi->attend->take(e, "slope", v, g->n);
    for (int i = 0; i < g->n; i++)
        v[i] = slope_of(g, s[i], p[i], v[i], &at[i], i);
    if (!of_keys(g) && behind)
        wait_behind(g, v[g->n - 1]); /* left: none */
    keep_slopes(g, v);
}

static void copy_block(gradient *g, LLVMValueRef block)
{
    attend_copy_block(g->t, g->z, block);
    attend_copy_block(g->t, g->w, block);
    g->t->e->abi->close_copies(g->t->e);
}

static void begin_block(gradient *g, LLVMValueRef block)
{
    attend_meet(g->t, 0);
    copy_block(g, emit_plus(g->t->e, block, 1));
    attend_multiply(g->t, "score", g->x, g->z, block);
    attend_multiply(g->t, "slope", g->y, g->w, block);
}

static void run_some(gradient *g, LLVMValueRef from, LLVMValueRef to, bool seen)
{
    attending *t = g->t;
    emit *e = t->e;
    emit_loop l;

    t->is_seen = seen;
    emit_loop_open(e, &l, from, to, 1);
    begin_block(g, l.at);
    add_slopes(g, emit_plus(e, l.at, -1));
    take_block(g, l.at, parts_of(g));
    emit_loop_close(e, &l);
    t->is_seen = false;
}

/* What is not told by row and key is the same in all blocks. */
static void run_blocks(gradient *g)
{
    attending *t = g->t;
    emit *e = t->e;
    LLVMValueRef from = emit_get(e, t->from), to = emit_get(e, t->to),
                 next = emit_plus(e, from, 1), other = next;

    attend_copy(t, g->x, t->first, emit_si(e, 0));
    attend_copy(t, g->y, t->first, emit_si(e, 0));
    copy_block(g, from);
    begin_block(g, from);
    take_block(g, from, 0);
    if (t->a->cut_alone) {
        other =
            emit_smaller(e, emit_larger(e, attend_first_other(t), next), to);
        run_some(g, next, other, !of_keys(g));
    }
    run_some(g, other, to, t->a->cut_alone && of_keys(g));
    add_slopes(g, emit_plus(e, to, -1));
    e->abi->await_copies(e, 0);
    e->abi->wait(e, 0);
}

/* ---- which blocks ---- */

/* Is one of the group's rows near to what is masked? */
static LLVMValueRef is_row_near(gradient *g)
{
    attending *t = g->t;
    emit *e = t->e;
    LLVMValueRef any = LLVMConstInt(e->i1, 0, 0);

    for (int h = 0; h < HALVES; h++)
        any = LLVMBuildOr(e->b, any, attend_is_near(t, g->row[0][h]), "");
    return e->abi->attend->any(e, any);
}

/* Is one of the first `blocks` blocks of rows? */
static LLVMValueRef is_block_near(gradient *g, LLVMValueRef blocks)
{
    attending *t = g->t;
    emit *e = t->e;
    LLVMValueRef any = emit_variable(e, emit_si(e, 0)), near;
    emit_loop l;

    emit_loop_open(e, &l, e->lid, emit_times(e, blocks, g->z->rows),
                   e->k->group);
    near = attend_is_near(t, number_of(g, OF_M, l.at, 0));
    near = emit_select(e, near, emit_si(e, 1), emit_get(e, any));
    LLVMBuildStore(e->b, near, any);
    emit_loop_close(e, &l);
    return e->abi->attend->any(e,
                               emit_below(e, emit_si(e, 0), emit_get(e, any)));
}

/* Blocks of rows without one that sees a key of the group. */
static LLVMValueRef unseen_blocks(gradient *g, int64_t all)
{
    emit *e = g->t->e;
    LLVMValueRef first = emit_plus(e, g->t->first, -g->t->a->beyond);

    first = emit_larger(e, first, emit_si(e, 0));
    return emit_smaller(e, emit_over(e, first, g->z->rows),
                        emit_si(e, all - 1));
}

static void find_blocks(gradient *g)
{
    attending *t = g->t;
    emit *e = t->e;
    int64_t all = (g->z->limit + g->z->rows - 1) / g->z->rows;
    LLVMValueRef from = emit_si(e, 0), to = emit_si(e, all);

    if (t->a->is_cut && t->a->masked != INFINITY) {
        if (of_keys(g)) {
            LLVMValueRef first = unseen_blocks(g, all);

            from = emit_select(e, is_block_near(g, first), from, first);
        } else {
            to = emit_select(e, is_row_near(g), to, attend_seen_blocks(t, all));
        }
    }
    t->from = emit_variable(e, from);
    t->to = emit_variable(e, to);
}

/* ---- all ---- */

static void open_gradient(gradient *g)
{
    static const int8_t array[2][4] = {{OF_Q, OF_O, OF_K, OF_V},
                                       {OF_K, OF_V, OF_Q, OF_O}};
    attending *t = g->t;
    const int8_t *of;

    g->own = plan_attend_axis(t->a, false);
    g->other = plan_attend_axis(t->a, true);
    of = array[of_keys(g)];
    for (int i = 0; i < PLAN_ATTEND_COPIED; i++)
        attend_open(t, i, true);
    g->x = &t->in[of[0]];
    g->y = &t->in[of[1]];
    g->z = &t->in[of[2]];
    g->w = &t->in[of[3]];
    g->n = (int)g->z->rows / 2;
    for (int i = 0; i < 3; i++)
        g->row[i] = sd_arena_array(t->e->a, LLVMValueRef, g->n + HALVES);
    for (int part = 0; part < parts_of(g); part++) {
        g->word[part] = sd_arena_array(t->e->a, LLVMValueRef, g->n / 2);
        for (int i = 0; i < g->n / 2; i++)
            g->word[part][i] = emit_alloca(t->e, t->e->i32);
    }
}

static void write_sums(gradient *g, const char *sums, int array,
                       int64_t columns)
{
    emit *e = g->t->e;
    int n = (int)columns / 2;
    LLVMValueRef *v = sd_arena_array(e->a, LLVMValueRef, n);

    e->abi->attend->take(e, sums, v, n);
    attend_write(g->t, array, v, n);
}

void emit_attend_gradient(attending *t)
{
    emit *e = t->e;
    const emit_attend_abi *abi = e->abi->attend;
    gradient g = {.t = t};
    int first = hlo_attend_result(&t->a->of);

    open_gradient(&g);
    abi->open(e, "sum", (int)g.z->depth / 2, true);
    if (of_keys(&g))
        abi->open(e, "other", (int)g.w->depth / 2, true);
    else
        read_halves(&g);
    abi->open(e, "score", g.n, false);
    abi->open(e, "slope", g.n, false);
    find_blocks(&g);
    run_blocks(&g);
    write_sums(&g, "sum", first, g.z->depth);
    if (of_keys(&g))
        write_sums(&g, "other", first + 1, g.w->depth);
}
