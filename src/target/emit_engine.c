/* Engines of blocks (engines.def): instructions that add several products at
 * once, and the words that they take.  Host only. */
#include "emit.h"

static LLVMValueRef as_type(emit *e, LLVMValueRef v, LLVMTypeRef t)
{
    return LLVMTypeOf(v) == t ? v : emit_as(e, v, t);
}

/* Versions of LLVM differ in whether the operands are words or their parts. */
static LLVMValueRef call(emit *e, const char *name, LLVMValueRef *arg, int n)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef param[3];

    LLVMGetParamTypes(LLVMIntrinsicGetType(e->cx, id, NULL, 0), param);
    for (int i = 0; i < n; i++)
        arg[i] = as_type(e, arg[i], param[i]);
    return emit_intrinsic2(e, name, NULL, 0, arg, n);
}

/* acc, one without signs, one with. */
static LLVMValueRef add_bytes(emit *e, LLVMValueRef acc, LLVMValueRef x,
                              LLVMValueRef y)
{
    const plan_blocks *b = e->k->blocks;
    bool x_signed = (b->x->dtype == SD_S8) != b->flip;
    LLVMValueRef arg[3] = {acc, x_signed ? y : x, x_signed ? x : y};

    return call(e, "llvm.x86.avx512.vpdpbusd.512", arg, 3);
}

static LLVMValueRef add_pairs(emit *e, LLVMValueRef acc, LLVMValueRef x,
                              LLVMValueRef y)
{
    LLVMValueRef arg[2] = {x, y};
    LLVMValueRef two = call(e,
                            e->w == 16 ? "llvm.x86.avx512.pmaddw.d.512"
                                       : "llvm.x86.avx2.pmadd.wd",
                            arg, 2);

    return emit_sum(e, acc, as_type(e, two, LLVMTypeOf(acc)));
}

LLVMValueRef emit_engine_add(emit *e, LLVMValueRef acc, LLVMValueRef x,
                             LLVMValueRef y)
{
    LLVMValueRef arg[3] = {acc, x, y};

    switch (e->k->blocks->engine) {
    case PLAN_ENGINE_VDPBF16PS:
        return call(e, "llvm.x86.avx512bf16.dpbf16ps.512", arg, 3);
    case PLAN_ENGINE_VPDPBUSD:
        return add_bytes(e, acc, x, y);
    default:
        return add_pairs(e, acc, x, y);
    }
}

/* ---- words ---- */

LLVMValueRef emit_panel_place(emit *e, int64_t wide, int64_t panel, int64_t row,
                              LLVMValueRef k, LLVMValueRef n)
{
    LLVMValueRef at = emit_over(e, n, wide);

    n = emit_rest(e, n, wide);
    return emit_mad(e, at, panel, emit_mad(e, k, row, n));
}

static void put_words(emit *e, const emit_words *w, LLVMValueRef k,
                      LLVMValueRef n, LLVMValueRef v)
{
    LLVMValueRef at = emit_panel_place(e, w->wide, w->panel, w->k, k, n);

    emit_mem_write(e, SD_S32, w->to, at, (emit_value){v, NULL});
}

/* Words k of a vector of columns, from rows of parts. */
static LLVMValueRef woven(emit *e, const emit_words *w, LLVMValueRef k,
                          LLVMValueRef n)
{
    const plan_blocks *b = e->k->blocks;
    int depth = plan_engine_table[b->engine].depth;
    LLVMValueRef row[4], at;

    assert(depth <= (int)SD_COUNTOF(row));
    for (int i = 0; i < depth; i++) {
        at = emit_mad(e, k, depth, emit_si(e, i));
        row[i] =
            emit_mem_read(e, b->part, w->from, emit_mad(e, at, w->row, n), e->w)
                .re;
    }
    return as_type(e, emit_weave(e, row, depth), emit_widen(e->i32, e->w));
}

void emit_engine_weave(emit *e, const emit_words *w)
{
    emit_loop k, n;

    emit_loop_open(e, &k, emit_si(e, 0), w->words, 1);
    emit_loop_open(e, &n, emit_si(e, 0), w->columns, e->w);
    put_words(e, w, k.at, n.at, woven(e, w, k.at, n.at));
    emit_loop_close(e, &n);
    emit_loop_close(e, &k);
}

void emit_engine_weave_rows(emit *e, const emit_words *w, int64_t row)
{
    LLVMValueRef v[EMIT_MAX_LANES];
    emit_loop k, m;

    emit_loop_open(e, &m, emit_si(e, 0), w->columns, e->w);
    emit_loop_open(e, &k, emit_si(e, 0), w->words, e->w);
    for (int i = 0; i < e->w; i++)
        v[i] = woven(e, w, emit_add(e, k.at, emit_si(e, i)), m.at);
    emit_turn(e, v, e->w);
    for (int i = 0; i < e->w; i++)
        emit_mem_write(e, SD_S32, w->to,
                       emit_mad(e, emit_add(e, m.at, emit_si(e, i)), row, k.at),
                       (emit_value){v[i], NULL});
    emit_loop_close(e, &k);
    emit_loop_close(e, &m);
}

void emit_engine_turn(emit *e, const emit_words *w)
{
    int64_t row = w->row / plan_engine_table[e->k->blocks->engine].depth;
    LLVMValueRef v[EMIT_MAX_LANES];
    emit_loop k, n;

    emit_loop_open(e, &n, emit_si(e, 0), w->columns, e->w);
    emit_loop_open(e, &k, emit_si(e, 0), w->words, e->w);
    for (int i = 0; i < e->w; i++)
        v[i] =
            emit_mem_read(
                e, SD_S32, w->from,
                emit_mad(e, emit_add(e, n.at, emit_si(e, i)), row, k.at), e->w)
                .re;
    emit_turn(e, v, e->w);
    for (int i = 0; i < e->w; i++)
        put_words(e, w, emit_add(e, k.at, emit_si(e, i)), n.at, v[i]);
    emit_loop_close(e, &k);
    emit_loop_close(e, &n);
}
