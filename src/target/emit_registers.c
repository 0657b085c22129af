/* Blocks of a CONTRACT multiplied by instructions on vectors: `rows` x
 * `vectors` accumulators of a tile stay in registers while k runs.  Host only.
 */
#include "emit.h"

typedef struct {
    emit *e;
    const plan_blocks *b;
    const emit_chain *t;
    LLVMTypeRef part, vec;
    LLVMValueRef *acc; /* [row * vectors + vector], stack slots */
    LLVMValueRef *start; /* [vector], what they begin with; NULL: zero */
    LLVMValueRef x, y, sum; /* where the tile's operands and sums begin */
} registers;

static LLVMValueRef at_element(registers *r, LLVMValueRef p, int64_t i)
{
    return emit_behind(r->e, r->part, p, emit_i64(r->e, i));
}

static LLVMValueRef sum_place(registers *r, int i)
{
    const plan_blocks *b = r->b;

    return at_element(r, r->sum,
                      i / b->vectors * b->sum_m + i % b->vectors * r->e->w);
}

static LLVMValueRef load(registers *r, LLVMTypeRef t, LLVMValueRef p)
{
    LLVMValueRef v = LLVMBuildLoad2(r->e->b, t, p, "");

    LLVMSetAlignment(v, (unsigned)sd_dtype_bytes(r->b->node->dtype));
    return v;
}

static void put_sum(registers *r, int i, LLVMValueRef v)
{
    LLVMValueRef s = LLVMBuildStore(r->e->b, v, sum_place(r, i));

    LLVMSetAlignment(s, (unsigned)sd_dtype_bytes(r->b->node->dtype));
}

/* One position of k, `at` rows of y and elements of x from the block's start.
 */
static void step(registers *r, LLVMValueRef at)
{
    const plan_blocks *b = r->b;
    emit *e = r->e;
    LLVMValueRef y = LLVMBuildNSWMul(e->b, at, emit_si(e, b->y_k), "");
    LLVMValueRef x = LLVMBuildNSWMul(e->b, at, emit_si(e, b->x_k), "");
    LLVMValueRef row[8];

    y = emit_behind(e, r->part, r->y, y);
    x = emit_behind(e, r->part, r->x, x);
    for (int v = 0; v < b->vectors; v++)
        row[v] = load(r, r->vec, at_element(r, y, v * e->w));
    for (int m = 0; m < b->rows; m++) {
        emit_value one = {
            emit_splat(e, load(r, r->part, at_element(r, x, m * b->x_m)), e->w),
            NULL};

        for (int v = 0; v < b->vectors; v++) {
            LLVMValueRef to = r->acc[m * b->vectors + v];
            emit_value acc = {LLVMBuildLoad2(e->b, r->vec, to, ""), NULL};

            if (b->engine != PLAN_ENGINE_FMA)
                acc.re = emit_engine_add(e, acc.re, one.re, row[v]);
            else
                acc = emit_multiply_add(e, b->node, one,
                                        (emit_value){row[v], NULL}, acc);
            emit_put(e, acc.re, to);
        }
    }
}

/* The chain is added to those of the blocks before. */
static void finish(registers *r)
{
    const plan_blocks *b = r->b;
    emit *e = r->e;
    sd_dtype t[2] = {b->node->dtype, b->node->dtype};
    LLVMBasicBlockRef first, later, done;
    int n = b->rows * b->vectors;

    first = emit_block(e, "first");
    later = emit_block(e, "later");
    done = emit_block(e, "added");
    LLVMBuildCondBr(e->b, r->t->first, first, later);
    LLVMPositionBuilderAtEnd(e->b, first);
    for (int i = 0; i < n; i++)
        put_sum(r, i, LLVMBuildLoad2(e->b, r->vec, r->acc[i], ""));
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, later);
    for (int i = 0; i < n; i++) {
        emit_value v[2] = {{load(r, r->vec, sum_place(r, i)), NULL},
                           {LLVMBuildLoad2(e->b, r->vec, r->acc[i], ""), NULL}};

        put_sum(r, i, emit_elt(e, HLO_ADD, NULL, t[0], 2, v, t).re);
    }
    LLVMBuildBr(e->b, done);
    LLVMPositionBuilderAtEnd(e->b, done);
}

/* x ^ 0x80 is x + 128 without a sign, or x - 128 with one: what is too much is
 * the product of 0x80 and y, by the same instruction. */
static void start_flipped(registers *r)
{
    const plan_blocks *b = r->b;
    emit *e = r->e;
    LLVMValueRef x = emit_splat(e, LLVMConstInt(e->i32, 0x80808080, 0), e->w);
    LLVMValueRef y, sum;
    emit_loop k;

    for (int v = 0; v < b->vectors; v++)
        LLVMBuildStore(e->b, LLVMConstNull(r->vec), r->start[v]);
    emit_loop_open(e, &k, emit_si(e, 0), r->t->words, 1);
    y = LLVMBuildNSWMul(e->b, k.at, emit_si(e, b->y_k), "");
    y = emit_behind(e, r->part, r->y, y);
    for (int v = 0; v < b->vectors; v++) {
        sum = LLVMBuildLoad2(e->b, r->vec, r->start[v], "");
        sum = emit_engine_add(e, sum, x,
                              load(r, r->vec, at_element(r, y, v * e->w)));
        emit_put(e, sum, r->start[v]);
    }
    emit_loop_close(e, &k);
    for (int v = 0; v < b->vectors; v++) {
        sum = LLVMBuildLoad2(e->b, r->vec, r->start[v], "");
        emit_put(e, LLVMBuildNeg(e->b, sum, ""), r->start[v]);
    }
}

static void start(registers *r)
{
    const plan_blocks *b = r->b;
    emit *e = r->e;

    for (int i = 0; i < b->rows * b->vectors; i++)
        LLVMBuildStore(
            e->b,
            b->flip ? LLVMBuildLoad2(e->b, r->vec, r->start[i % b->vectors], "")
                    : LLVMConstNull(r->vec),
            r->acc[i]);
}

/* A panel of y stays in the first level of cache while all rows of x pass. */
void emit_chain_by_registers(emit *e, const emit_chain *t)
{
    const plan_blocks *b = e->k->blocks;
    int64_t wide = b->vectors * e->w;
    sd_dtype type = b->node->dtype;
    registers r = {.e = e,
                   .b = b,
                   .t = t,
                   .part = emit_type(e, type),
                   .vec = emit_widen(emit_type(e, type), e->w)};
    LLVMValueRef off;
    emit_loop n, m, k;

    r.start = sd_arena_array(e->a, LLVMValueRef, b->vectors);
    for (int i = 0; i < b->vectors; i++)
        r.start[i] = emit_alloca(e, r.vec);
    r.acc = sd_arena_array(e->a, LLVMValueRef, b->rows * b->vectors);
    for (int i = 0; i < b->rows * b->vectors; i++)
        r.acc[i] = emit_alloca(e, r.vec);
    emit_loop_open(e, &n, emit_si(e, 0), t->columns, wide);
    off = emit_udiv(e, n.at, emit_si(e, wide));
    off = LLVMBuildNSWMul(e->b, off, emit_si(e, b->y_panel), "");
    r.y = emit_behind(e, r.part, t->y, off);
    if (b->flip)
        start_flipped(&r);
    emit_loop_open(e, &m, emit_si(e, 0), t->rows, b->rows);
    off = LLVMBuildNSWMul(e->b, m.at, emit_si(e, b->x_m), "");
    r.x = emit_behind(e, r.part, t->x, off);
    off = emit_mad(e, m.at, b->sum_m, n.at);
    r.sum = emit_behind(e, r.part, t->sum, off);
    start(&r);
    emit_loop_open(e, &k, emit_si(e, 0), t->words, 1);
    step(&r, k.at);
    emit_loop_close(e, &k);
    finish(&r);
    emit_loop_close(e, &m);
    emit_loop_close(e, &n);
}
