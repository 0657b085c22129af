/* What an item of a group copies of an operand in a step (ADR 25): its vectors,
 * and their places in the tile and in the step. */
#include "emit_group.h"

enum { SECTOR = 32 }; /* bytes of memory that are read at once */

static bool is_woven(const emit_operand *o)
{
    return !o->panel && o->per > 1;
}

/* Vectors that neighbouring items have before they go on along K: of bytes a
 * sector of memory, so that words of one line follow, which lie in different
 * banks; of f32 a line, of which a quarter of a warp reads all at once. */
static int64_t near_of(const emit_tile *g, const emit_operand *o)
{
    int64_t bytes = (int64_t)sd_dtype_bytes(g->b->part);
    int64_t near = (bytes == 1 ? SECTOR : PLAN_LINE) / (o->wide * bytes);

    return SD_MIN(o->extent / o->wide, SD_MAX(near, 1));
}

static void share_woven(emit_tile *g, const emit_operand *o, LLVMValueRef at,
                        LLVMValueRef *first, LLVMValueRef *second)
{
    emit *e = g->e;
    int64_t near = near_of(g, o), words = g->b->step / o->per;

    assert(o->extent / o->wide % near == 0);
    *first = emit_mad(e, emit_over(e, at, near * words), near,
                      emit_rest(e, at, near));
    *first = emit_times(e, *first, o->wide);
    *second = emit_rest(e, emit_over(e, at, near), words);
}

/* Vector number `at` of an operand, of which `row` are neighbours along what it
 * lies along: its position there, and across. */
static void place_vector(emit_tile *g, const emit_operand *o, int64_t row,
                         int i, LLVMValueRef at)
{
    emit *e = g->e;
    LLVMValueRef first = emit_times(e, emit_rest(e, at, row), o->wide),
                 second = emit_over(e, at, row);

    if (is_woven(o))
        share_woven(g, o, at, &first, &second);
    second = emit_mad(e, second, o->each, emit_si(e, i % o->each));
    o->k[i] = emit_is_deep(g, o) ? first : second;
    o->m[i] = emit_is_deep(g, o) ? second : first;
}

/* Is what lies between an item's vectors the same for all items? */
static bool is_alike(const emit_tile *g, const emit_operand *o, int64_t row)
{
    int64_t group = g->e->k->group;

    if (!is_woven(o))
        return (o->panel || o->plain) && (group % row == 0 || row % group == 0);
    return sd_dtype_bytes(g->b->part) == 4 &&
           group % (near_of(g, o) * (g->b->step / o->per)) == 0;
}

/* Where a group's items take whole rows of vectors, or part of one, what lies
 * between an item's vectors is the same for all. */
static void place_after(emit_tile *g, emit_operand *o, int64_t row)
{
    emit *e = g->e;
    int64_t group = e->k->group;

    if (!is_alike(g, o, row))
        return;
    o->after = sd_arena_array(e->a, int64_t, 2 * o->n);
    for (int i = 0; i < o->n; i++) {
        int64_t at = i / o->each * group;
        int64_t first = at % row * o->wide,
                second = at / row * o->each + i % o->each;

        if (is_woven(o)) {
            first = at / (g->b->step / o->per) * o->wide;
            second = i % o->per;
        }
        bool deep = emit_is_deep(g, o);

        o->after[2 * i] = deep ? second : first;
        o->after[2 * i + 1] = deep ? first : second;
        if (!i)
            continue;
        o->m[i] = emit_add(e, o->m[0], emit_si(e, o->after[2 * i]));
        o->k[i] = emit_add(e, o->k[0], emit_si(e, o->after[2 * i + 1]));
    }
}

/* Words along K that an item weaves side by side: in panels of rows these are
 * neighbours, so that one access of up to 16 bytes writes them. */
static int words_of(const emit_tile *g, const emit_operand *o)
{
    int n = o == &g->x && o->panel && o->per > 1 ? EMIT_SIDES : 1;

    while (n > 1 && (o->n % (n * o->per) || g->b->step % (n * o->per)))
        n /= 2;
    return n;
}

/* Items that are neighbours copy neighbours. */
void emit_share_out(emit_tile *g, emit_operand *o)
{
    emit *e = g->e;
    int64_t step = g->b->step, all = o->extent * step / o->wide;
    int64_t row = (emit_is_deep(g, o) ? step : o->extent) / o->wide;
    LLVMTypeRef t = emit_widen(emit_mem_type(e, o->node->dtype), o->wide);

    o->per = plan_woven_rows(g->b, o->along);
    o->n = (int)((all + e->k->group - 1) / e->k->group);
    o->each = o->per * words_of(g, o);
    o->m = sd_arena_array(e->a, LLVMValueRef, o->n);
    o->k = sd_arena_array(e->a, LLVMValueRef, o->n);
    o->v = sd_arena_array(e->a, LLVMValueRef, o->n);
    for (int i = 0; i < o->n; i++) {
        place_vector(
            g, o, row, i,
            emit_add(e, e->lid,
                     emit_si(e, (int64_t)(i / o->each) * e->k->group)));
        o->v[i] = emit_alloca(e, t);
    }
    place_after(g, o, row);
    if (g->wide)
        emit_wide_places(g, o);
    if (o->panel)
        emit_place_panels(g, o);
}
