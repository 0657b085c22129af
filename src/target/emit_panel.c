/* Operands of engines that read local memory by blocks, in panels: K in pieces
 * of what one instruction takes, of y in words as the engine wants them
 * (ADR 25).  The loop over steps is turned: it ends with the writing of the
 * next step and the barrier.  What was read then lives in one turn alone;
 * Intel's compiler copies every register that a loop hands on. */
#include "emit_group.h"

/* n in each element of what has v's type: i32, or a vector of it. */
static LLVMValueRef number_like(emit *e, LLVMValueRef v, uint32_t n)
{
    bool vector = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;

    return emit_splat(e, LLVMConstInt(e->i32, n, 0),
                      vector ? (int)LLVMGetVectorSize(LLVMTypeOf(v)) : 1);
}

/* What v has where `mask` has ones, and w elsewhere. */
static LLVMValueRef blend(emit *e, LLVMValueRef v, LLVMValueRef w,
                          uint32_t mask)
{
    LLVMValueRef yes = number_like(e, v, mask), no = number_like(e, v, ~mask);

    return emit_or(e, emit_and(e, v, yes), emit_and(e, w, no));
}

/* Words v and w, in parts of `bits`: *lo gets the even parts of both in turn,
 * *hi the odd ones. */
static void zip(emit *e, LLVMValueRef v, LLVMValueRef w, unsigned bits,
                LLVMValueRef *lo, LLVMValueRef *hi)
{
    uint32_t even = bits == 16 ? 0xffff : 0x00ff00ff;
    LLVMValueRef by = number_like(e, v, bits);

    *lo = blend(e, v, emit_shl(e, w, by), even);
    *hi = blend(e, emit_shr(e, v, by), w, even);
}

void emit_weave_words(emit_tile *g, const emit_operand *o,
                      const LLVMValueRef *v, LLVMValueRef *word)
{
    emit *e = g->e;
    int few = o->wide / o->per;
    unsigned bits = 32 / (unsigned)o->per;
    LLVMValueRef in[4], out[4], at;

    for (int i = 0; i < o->per; i++)
        in[i] = emit_as(e, v[i], emit_widen(e->i32, few));
    if (o->per == 2) {
        zip(e, in[0], in[1], bits, &out[0], &out[1]);
    } else {
        zip(e, in[0], in[1], bits, &out[0], &out[1]);
        zip(e, in[2], in[3], bits, &out[2], &out[3]);
        zip(e, out[0], out[2], 16, &in[0], &in[2]);
        zip(e, out[1], out[3], 16, &in[1], &in[3]);
        memcpy(out, in, sizeof out);
    }
    for (int n = 0; n < o->wide; n++) {
        at = LLVMConstInt(e->i32, (unsigned)(n / o->per), 0);
        word[n] = few > 1
                      ? LLVMBuildExtractElement(e->b, out[n % o->per], at, "")
                      : out[n % o->per];
    }
}

/* Elements from the beginning of the area to (m, k) of vector i. */
static LLVMValueRef panel_at(emit_tile *g, const emit_operand *o, int i)
{
    emit *e = g->e;
    const plan_engine_info *of = &plan_engine_table[g->b->engine];
    int word = plan_word(g->b);
    LLVMValueRef k = emit_rest(e, o->k[i], of->depth), m = o->m[i], at;

    at = emit_times(e, emit_over(e, o->k[i], of->depth), o->panel);
    if (o == &g->x)
        return emit_add(e, at, emit_mad(e, m, of->depth, k));
    at = emit_add(e, at,
                  emit_times(e, emit_over(e, m, of->items),
                             (int64_t)of->depth * of->items));
    at = emit_add(e, at, emit_times(e, emit_rest(e, m, of->items), o->side));
    at = emit_add(e, at, emit_times(e, emit_over(e, k, word), o->deep));
    return emit_add(e, at, emit_rest(e, k, word));
}

static LLVMValueRef word_behind(emit_tile *g, LLVMValueRef p, int64_t elements)
{
    emit *e = g->e;

    return emit_behind(e, e->i8, p, emit_si(e, elements * 4 / plan_word(g->b)));
}

/* Words from place `at` on, `apart` elements from one to the next: four at a
 * time where they are neighbours. */
static void put_words(emit_tile *g, LLVMValueRef p, const LLVMValueRef *word,
                      int n, int64_t apart)
{
    emit *e = g->e;
    int each = apart == plan_word(g->b) ? SD_MIN(n, 4) : 1;

    for (int i = 0; i < n; i += each) {
        LLVMValueRef v = LLVMGetPoison(emit_widen(e->i32, each));

        for (int c = 0; each > 1 && c < each; c++)
            v = emit_insert(e, v, word[i + c], c);
        emit_tile_put(word_behind(g, p, i * apart), each > 1 ? v : word[i], e,
                      4 * (size_t)each);
    }
}

/* Vector i, of less than a word or cut within one. */
static void put_parts(emit_tile *g, const emit_operand *o, LLVMValueRef p,
                      LLVMValueRef v)
{
    emit *e = g->e;
    size_t bytes = sd_dtype_bytes(o->node->dtype);
    int64_t apart = emit_is_deep(g, o) ? 1 : o->side;

    for (int c = 0; c < o->wide; c++)
        emit_tile_put(
            emit_behind(e, e->i8, p, emit_si(e, c * apart * (int64_t)bytes)),
            emit_extract(e, v, c, 1), e, bytes);
}

/* Whether vector i lies behind vector 0 by so many elements for all items. */
static bool panel_after(const emit_tile *g, const emit_operand *o, int i,
                        int64_t *elements)
{
    const plan_engine_info *of = &plan_engine_table[g->b->engine];
    int64_t m = o->after ? o->after[2 * i] : 0,
            k = o->after ? o->after[2 * i + 1] : 0;

    *elements = k / of->depth * o->panel + m * of->depth;
    return i && o->after && k % of->depth == 0 &&
           (o == &g->x || m % of->items == 0);
}

void emit_place_panels(emit_tile *g, emit_operand *o)
{
    emit *e = g->e;
    int64_t bytes = (int64_t)sd_dtype_bytes(o->node->dtype), beyond;

    o->to = sd_arena_array(e->a, LLVMValueRef, o->n);
    for (int i = 0; i < o->n; i++)
        o->to[i] = panel_after(g, o, i, &beyond)
                       ? emit_add(e, o->to[0], emit_si(e, beyond * bytes))
                       : emit_mad(e, panel_at(g, o, i), bytes,
                                  emit_si(e, (int64_t)o->at));
}

/* The n words of each of so many lists, of which those with the same number are
 * neighbours, and the next ones `apart` elements further. */
static void put_sides(emit_tile *g, LLVMValueRef p,
                      LLVMValueRef word[][EMIT_WORDS], int lists, int n,
                      int64_t apart)
{
    LLVMValueRef side[EMIT_SIDES];

    if (lists == 1) {
        put_words(g, p, word[0], n, apart);
        return;
    }
    for (int i = 0; i < n; i++) {
        for (int w = 0; w < lists; w++)
            side[w] = word[w][i];
        put_words(g, word_behind(g, p, i * apart), side, lists,
                  plan_word(g->b));
    }
}

/* What the vectors from i on have, which lie along K, or are woven. */
static void put_whole(emit_tile *g, const emit_operand *o, LLVMValueRef p,
                      int i)
{
    emit *e = g->e;
    LLVMTypeRef t = emit_widen(emit_mem_type(e, o->node->dtype), o->wide);
    LLVMValueRef v[4], word[EMIT_SIDES][EMIT_WORDS];
    int per = plan_word(g->b), n = o->wide / per;

    for (int w = 0; w < o->each / o->per; w++) {
        for (int c = 0; c < o->per; c++)
            v[c] = LLVMBuildLoad2(e->b, t, o->v[i + w * o->per + c], "");
        if (!emit_is_deep(g, o)) {
            emit_weave_words(g, o, v, word[w]);
            continue;
        }
        v[0] = emit_as(e, v[0], emit_widen(e->i32, n));
        for (int c = 0; c < n; c++)
            word[w][c] = emit_extract(e, v[0], c, 1);
    }
    if (!emit_is_deep(g, o))
        put_sides(g, p, word, o->each / o->per, o->wide, o->side);
    else
        put_sides(g, p, word, o->each, n, o == &g->x ? per : o->deep);
}

void emit_write_panels(emit_tile *g, emit_operand *o, LLVMValueRef turn)
{
    emit *e = g->e;
    LLVMTypeRef t = emit_widen(emit_mem_type(e, o->node->dtype), o->wide);
    int per = plan_word(g->b);
    bool whole = o->wide % per == 0 && (emit_is_deep(g, o) || o->per == per);
    LLVMValueRef pair = emit_tile_area(g, 0, turn, e->i8, emit_si(e, 0));

    for (int i = 0; i < o->n; i += whole ? o->each : 1) {
        LLVMValueRef p = emit_behind(e, e->i8, pair, o->to[i]);

        if (!whole)
            put_parts(g, o, p, LLVMBuildLoad2(e->b, t, o->v[i], ""));
        else
            put_whole(g, o, p, i);
    }
}

/* ---- the loop over steps ---- */

/* Reads step `next`, multiplies what is in the areas of `turn`, and writes the
 * other ones: y in the second half, so that registers hold one operand. */
static void run_panels(emit_tile *g, LLVMValueRef next, int turn)
{
    LLVMValueRef now = emit_si(g->e, turn), other = emit_si(g->e, 1 - turn);
    int depth = plan_engine_table[g->b->engine].depth, step = g->b->step;
    int half = step / depth / 2 * depth;

    emit_tile_read(g, &g->x, next);
    if (half)
        emit_multiply_squares(g, now, 0, half);
    if (half)
        emit_write_panels(g, &g->x, other);
    emit_tile_read(g, &g->y, next);
    emit_multiply_squares(g, now, half, step);
    if (!half)
        emit_write_panels(g, &g->x, other);
    emit_write_panels(g, &g->y, other);
    emit_barrier(g->e);
}

/* The last pair of an even number of steps reads its last one again. */
static LLVMValueRef after_pair(emit_tile *g, LLVMValueRef first)
{
    emit *e = g->e;
    LLVMValueRef next = emit_add(e, first, emit_si(e, 1));
    int64_t last = g->steps - 1;

    return last % 2 == 0 ? next : emit_smaller(e, next, emit_si(e, last));
}

/* Two steps a turn of the loop, so that which areas they have is no question in
 * it.  With the number of turns in view Intel's compiler unrolls the loop,
 * keeps the addresses of all its steps in registers, and runs out of them. */
static void run_pairs(emit_tile *g, int64_t pairs)
{
    emit *e = g->e;
    emit_loop s;

    emit_open_turns(e, &s, 1, 2 * pairs, 2);
    run_panels(g, s.at, 0);
    run_panels(g, after_pair(g, s.at), 1);
    emit_level_loop_close(e, &s);
}

void emit_run_panels(emit_tile *g)
{
    emit *e = g->e;

    emit_tile_read(g, &g->x, emit_si(e, 0));
    emit_tile_read(g, &g->y, emit_si(e, 0));
    emit_write_panels(g, &g->x, emit_si(e, 0));
    emit_write_panels(g, &g->y, emit_si(e, 0));
    emit_barrier(e);
    if (g->steps > 1)
        run_pairs(g, g->steps / 2);
    if (g->steps % 2)
        emit_multiply_squares(g, emit_si(e, 0), 0, g->b->step);
}
