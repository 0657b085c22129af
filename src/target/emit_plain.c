/* Operands that are read as they lie, as the plan has it: where each
 * vector begins, and at which positions of a window its guards fail, is found
 * before the loop over steps (ADR 25). */
#include "emit_group.h"

/* ---- before the loop ---- */

/* A bit for each position along K at which guard n fails, from bit `first` on,
 * of the copy of vector i that is open.  x that slides is copied at the first
 * position of that axis alone. */
static LLVMValueRef failing(emit_tile *g, const emit_operand *o,
                            const plan_guard *n, int first, int copy)
{
    emit *e = g->e;
    uint64_t axes = n->e->varies & g->b->node->over;
    int slides = o->halo ? plan_slide_axis(g->b) : -1;
    LLVMValueRef start = emit_expr(e, n->e, copy, false), all = emit_si(e, 0);

    for (int64_t p = 0; p < plan_guard_places(g->e->k, n); p++) {
        int64_t left = p, by = -n->lo, s;
        LLVMValueRef fails;
        bool asked = true;

        for (int a = e->k->naxis - 1; a >= 0; a--)
            if (axes >> a & 1 && plan_expr_stride(n->e, a, &s)) {
                int64_t at = left % e->k->axis[a].extent;

                asked = asked && (a != slides || at == 0);
                by += at * s;
                left /= e->k->axis[a].extent;
            }
        if (!asked)
            continue;
        fails =
            LLVMBuildICmp(e->b, LLVMIntUGE, emit_add(e, start, emit_si(e, by)),
                          emit_si(e, SD_MAX(n->hi - n->lo, 0)), "");
        all = LLVMBuildOr(e->b, all,
                          emit_select(e, fails,
                                      emit_si(e, (int64_t)1 << (first + p)),
                                      emit_si(e, 0)),
                          "");
    }
    return all;
}

/* Of a loose vector across K, which is open: what is read of one that the
 * tile's axis ends in ends there, too, so that its first elements lie further
 * up. */
static LLVMValueRef bits_before(emit_tile *g, const emit_operand *o, int i)
{
    emit *e = g->e;
    int64_t bits = 8 * (int64_t)sd_dtype_bytes(o->node->dtype);
    LLVMValueRef at = emit_add(e, o->from, o->m[i]),
                 most = emit_si(e, plan_word(g->b) - 1);

    at = LLVMBuildSub(e->b, at, e->axis[o->axis].at, "");
    at = emit_times(e, emit_smaller(e, at, most), bits);
    return LLVMBuildIntCast2(e->b, at, e->i32, true, "");
}

/* Where each access of vector i goes at position 0 of K, and where it may not.
 */
static void note_vector(emit_tile *g, emit_operand *o, int i)
{
    emit *e = g->e;
    const plan_node *n = o->node;
    emit_loop once;

    emit_once_open(e, &once);
    emit_open_vector(g, o, i);
    o->begin[i] = emit_expr(e, n->off, 0, false);
    if (o->low)
        o->low[i] = bits_before(g, o, i);
    for (int c = 0; c < o->wide && o->not; c += n->wide) {
        int copy = emit_canon(e, c * e->axis[o->along].stride, n->varies);
        LLVMValueRef *to = &o->not[i * o->wide + c];
        int first = 0;

        *to = emit_si(e, 0);
        for (int j = 0; j < n->nguard; j++) {
            *to = LLVMBuildOr(e->b, *to,
                              failing(g, o, &n->guard[j], first, copy), "");
            first += (int)plan_guard_places(g->e->k, &n->guard[j]);
        }
    }
    emit_level_loop_close(e, &once);
    emit_close_vector(g, o);
}

/* Where positions of the tile are one axis's and none is beyond its end, what
 * is between the vectors is a number: then one address serves them all. */
static void find_beyond(emit_tile *g, emit_operand *o)
{
    emit *e = g->e;
    const plan_axis *of = &e->k->axis[o->axis];
    int64_t m, k;

    if (!o->after || o->in || of->extent % of->tile ||
        of->tile < o->extent - o->halo ||
        !plan_expr_stride(o->node->off, o->axis, &m) ||
        !plan_expr_stride(o->node->off, plan_last_axis(g->b->node->over), &k))
        return;
    o->beyond = sd_arena_array(e->a, int64_t, o->n);
    for (int i = 0; i < o->n; i++)
        o->beyond[i] = o->after[2 * i] * m + o->after[2 * i + 1] * k;
}

void emit_find_plain(emit_tile *g, emit_operand *o)
{
    emit *e = g->e;
    int lane = e->lane;

    o->begin = sd_arena_array(e->a, LLVMValueRef, o->n);
    if (o->node->nguard)
        o->not = sd_arena_array(e->a, LLVMValueRef, o->n * o->wide);
    if (o->loose && !emit_is_deep(g, o) &&
        e->k->axis[o->along].extent % o->wide)
        o->low = sd_arena_array(e->a, LLVMValueRef, o->n);
    find_beyond(g, o);
    e->lane = o->along;
    for (int i = 0; i < o->n; i++)
        note_vector(g, o, i);
    e->lane = lane;
}

/* ---- in the loop ---- */

/* Which positions of K a step begins at: of each axis the number of its
 * position in all of those outside of it. */
typedef struct {
    LLVMValueRef all[EMIT_AXES]; /* of the last one K's positions before it */
} depth;

/* The axis of K that is next outside of a; -1. */
static int outside_of(const emit_tile *g, int a)
{
    uint64_t rest = g->b->node->over & (((uint64_t)1 << a) - 1);

    return rest ? plan_last_axis(rest) : -1;
}

static depth find_depth(emit_tile *g, LLVMValueRef flat)
{
    emit *e = g->e;
    depth d;

    for (int a = plan_last_axis(g->b->node->over); a >= 0;
         a = outside_of(g, a)) {
        d.all[a] = flat;
        flat = emit_over(e, flat, e->k->axis[a].extent);
    }
    return d;
}

static LLVMValueRef place_on(emit_tile *g, const depth *d, int a)
{
    emit *e = g->e;
    int out = outside_of(g, a);

    return out < 0 ? d->all[a]
                   : emit_mad(e, d->all[out], -e->k->axis[a].extent, d->all[a]);
}

/* What these positions add to an operand's places.  An axis adds its stride
 * less what the one within it has added already: of neighbours nothing. */
static LLVMValueRef find_by(emit_tile *g, const plan_node *n, const depth *d)
{
    emit *e = g->e;
    LLVMValueRef by = emit_si(e, 0);
    int64_t within = 0, s = 0;

    for (int a = plan_last_axis(g->b->node->over); a >= 0;
         a = outside_of(g, a)) {
        plan_expr_stride(n->off, a, &s);
        if (s != within)
            by = emit_mad(e, d->all[a], s - within, by);
        within = s * e->k->axis[a].extent;
    }
    return by;
}

/* The bits of the guards' positions among those of K's axes. */
static LLVMValueRef bits_of(emit_tile *g, const plan_node *n, const depth *d)
{
    emit *e = g->e;
    LLVMValueRef bits = emit_si(e, 0);
    int first = 0;

    for (int i = 0; i < n->nguard; i++) {
        uint64_t axes = n->guard[i].e->varies & g->b->node->over;
        LLVMValueRef p = emit_si(e, 0);

        plan_for_each_axis(a, axes)
            p = emit_add(e, emit_times(e, p, e->k->axis[a].extent),
                         place_on(g, d, a));
        p = LLVMBuildShl(e->b, emit_si(e, (int64_t)1 << first), p, "");
        bits = LLVMBuildOr(e->b, bits, p, "");
        first += (int)plan_guard_places(e->k, &n->guard[i]);
    }
    return bits;
}

/* What step `at` adds to the places that are read, and the bits of its
 * positions; of the first one the zeros that lead are not taken off. */
static LLVMValueRef find_step(emit_tile *g, emit_operand *o, LLVMValueRef at,
                              LLVMValueRef *bits)
{
    emit *e = g->e;
    int64_t lead = LLVMIsNull(at) ? 0 : g->b->lead;
    depth d = find_depth(
        g, emit_add(e, emit_times(e, at, g->b->step), emit_si(e, -lead)));

    *bits = bits_of(g, o->node, &d);
    /* as one number, which a test takes at once */
    if (o->not && e->abi->uniform)
        *bits = e->abi->uniform(e, *bits);
    return find_by(g, o->node, &d);
}

/* Do the guards of access c of vector i fail at these positions? */
static LLVMValueRef fails(emit_tile *g, const emit_operand *o, int i, int c,
                          LLVMValueRef bits)
{
    emit *e = g->e;
    LLVMValueRef hit = LLVMBuildAnd(
        e->b, o->not[i * o->wide + c / o->node->wide * o->node->wide], bits,
        "");

    return LLVMBuildICmp(e->b, LLVMIntNE, hit, emit_si(e, 0), "");
}

/* Of the first step: what lies before K goes to its position 0.  Returns what
 * the access to position k of the step adds to its place, and where it has
 * something. */
static LLVMValueRef skip_lead(emit_tile *g, const emit_operand *o,
                              LLVMValueRef k, LLVMValueRef *has)
{
    emit *e = g->e;
    int64_t s;

    plan_expr_stride(o->node->off, plan_last_axis(g->b->node->over), &s);
    *has = LLVMBuildICmp(e->b, LLVMIntSGE, k, emit_si(e, g->b->lead), "");
    return emit_select(e, *has, emit_si(e, -g->b->lead * s),
                       emit_times(e, k, -s));
}

/* No step, nor what a vector has, goes back from where the operand begins. */
static bool only_grows(const emit_tile *g, const emit_operand *o)
{
    uint64_t axes = g->b->node->over | (uint64_t)1 << o->along;
    int64_t s = 0;

    for (int a = 0; a < g->e->k->naxis && s >= 0; a++)
        if (axes >> a & 1)
            plan_expr_stride(o->node->off, a, &s);
    return s >= 0;
}

/* Where access c of vector i is, if no guard fails.  Guarded ones need a whole
 * address: on chips that add such numbers in parts all that steps leave alone
 * of it is found before them; CUDA's multiply and add the rest at once. */
static LLVMValueRef access_at(emit_tile *g, const emit_operand *o, int i, int c,
                              LLVMValueRef by, LLVMValueRef moved)
{
    emit *e = g->e;
    const plan_node *n = o->node;
    LLVMValueRef from = o->begin[i], p;
    bool follows = o->beyond && !moved, early = o->not && e->abi->uniform;
    int64_t s;

    if (follows)
        from = o->begin[0];
    plan_expr_stride(n->off, o->along, &s);
    if (moved)
        from = emit_add(e, from, moved);
    if (!follows)
        by = emit_add(e, by, emit_si(e, c * s));
    if (early && only_grows(g, o))
        by = LLVMBuildZExtOrBitCast(e->b, by, e->i64, "");
    p = emit_element(e, n->dtype, e->slot[n->slot], early ? from : by);
    p = emit_element(e, n->dtype, p, early ? by : from);
    if (follows)
        p = emit_element(e, n->dtype, p, emit_si(e, c * s + o->beyond[i]));
    return p;
}

/* Reads from p on what one access gives of a vector, from its element c on, of
 * which it has `all` so far. */
static LLVMValueRef add_access(emit *e, const emit_operand *o, LLVMValueRef all,
                               int c, LLVMValueRef p)
{
    const plan_node *n = o->node;
    LLVMValueRef v = LLVMBuildLoad2(
        e->b, emit_widen(emit_mem_type(e, n->dtype), n->wide), p, "");

    LLVMSetAlignment(v, (unsigned)n->wide * (unsigned)sd_dtype_bytes(n->dtype));
    if (n->wide == o->wide)
        return v;
    for (int j = 0; j < n->wide; j++)
        all = emit_insert(e, all, emit_extract(e, v, j, 1), c + j);
    return all;
}

static LLVMValueRef no_elements(emit *e, const emit_operand *o)
{
    return LLVMGetPoison(emit_widen(emit_mem_type(e, o->node->dtype), o->wide));
}

LLVMValueRef emit_plain_vector(emit *e, const emit_operand *o, LLVMValueRef p)
{
    const plan_node *n = o->node;
    LLVMValueRef all = no_elements(e, o);

    for (int c = 0; c < o->wide; c += n->wide)
        all = add_access(e, o, all, c,
                         emit_element(e, n->dtype, p, emit_si(e, c)));
    return all;
}

static LLVMValueRef read_vector(emit_tile *g, const emit_operand *o, int i,
                                LLVMValueRef by, LLVMValueRef bits,
                                LLVMValueRef moved)
{
    emit *e = g->e;
    LLVMValueRef all = no_elements(e, o);

    for (int c = 0; c < o->wide; c += o->node->wide) {
        LLVMValueRef p = access_at(g, o, i, c, by, moved);

        if (o->not)
            p = emit_select(e, fails(g, o, i, c, bits), e->slot[g->b->zeros],
                            p);
        all = add_access(e, o, all, c, p);
    }
    return all;
}

/* ---- loose vectors ---- */

/* Words of vector i from its element c on. */
static LLVMValueRef read_words(emit_tile *g, const emit_operand *o, int i,
                               int c, int words, LLVMValueRef by,
                               LLVMValueRef moved)
{
    emit *e = g->e;
    LLVMValueRef p = access_at(g, o, i, c, by, moved);
    LLVMValueRef v = LLVMBuildLoad2(e->b, emit_widen(e->i32, words), p, "");

    LLVMSetAlignment(v, words > 1 ? (unsigned)PLAN_BLOCK_WORD
                                  : (unsigned)sd_dtype_bytes(o->node->dtype));
    return v;
}

/* A word of the first step, from element c on: along K its first elements may
 * be zeros that lead. */
static LLVMValueRef read_first_word(emit_tile *g, const emit_operand *o, int i,
                                    int c, LLVMValueRef by)
{
    emit *e = g->e;
    int word = plan_word(g->b);
    bool deep = emit_is_deep(g, o);
    int64_t bits = 8 * (int64_t)sd_dtype_bytes(o->node->dtype);
    LLVMValueRef k = deep ? emit_add(e, o->k[i], emit_si(e, c)) : o->k[i], has;
    LLVMValueRef moved = skip_lead(g, o, k, &has);
    LLVMValueRef v = read_words(g, o, i, c, 1, by, moved), lead, none;

    none = LLVMConstNull(e->i32);
    if (!deep || g->b->lead % word == 0)
        return emit_select(e, has, v, none);
    lead = LLVMBuildSub(e->b, emit_si(e, g->b->lead), k, "");
    lead = emit_select(e, has, emit_si(e, 0), lead);
    none = LLVMBuildICmp(e->b, LLVMIntSGE, lead, emit_si(e, word), "");
    lead = emit_times(e, emit_smaller(e, lead, emit_si(e, word - 1)), bits);
    lead = LLVMBuildIntCast2(e->b, lead, e->i32, true, "");
    return emit_select(e, none, LLVMConstNull(e->i32),
                       LLVMBuildShl(e->b, v, lead, ""));
}

static LLVMValueRef read_loose(emit_tile *g, const emit_operand *o, int i,
                               LLVMValueRef by, bool first)
{
    emit *e = g->e;
    int word = plan_word(g->b), n = o->wide / word,
        each = first ? 1 : o->node->wide / word;
    LLVMTypeRef t = emit_widen(emit_mem_type(e, o->node->dtype), o->wide);
    LLVMValueRef all = LLVMGetPoison(emit_widen(e->i32, n)), v;

    for (int w = 0; w < n; w += each) {
        v = first ? read_first_word(g, o, i, w * word, by)
                  : read_words(g, o, i, w * word, each, by, NULL);
        for (int j = 0; j < each && n > 1; j++)
            all = emit_insert(e, all, emit_extract(e, v, j, 1), w + j);
        if (n == 1)
            all = v;
    }
    if (o->low)
        all = LLVMBuildLShr(e->b, all, o->low[i], "");
    return LLVMBuildBitCast(e->b, all, t, "");
}

/* ---- a step ---- */

void emit_plain_read(emit_tile *g, emit_operand *o, LLVMValueRef at)
{
    emit *e = g->e;
    bool first = LLVMIsNull(at) && g->b->lead;
    LLVMValueRef bits, by = find_step(g, o, at, &bits);

    for (int i = 0; i < o->n; i++) {
        LLVMValueRef has = NULL, moved, v;

        if (o->loose) {
            v = read_loose(g, o, i, by, first);
        } else {
            moved = first ? skip_lead(g, o, o->k[i], &has) : NULL;
            v = read_vector(g, o, i, by, bits, moved);
        }
        if (has)
            v = emit_select(e, has, v, LLVMConstNull(LLVMTypeOf(v)));
        LLVMBuildStore(e->b, v, o->v[i]);
    }
}

void emit_plain_read_at(emit_tile *g, emit_operand *o, LLVMValueRef by)
{
    for (int i = 0; i < o->n; i++)
        LLVMBuildStore(g->e->b, read_vector(g, o, i, by, NULL, NULL), o->v[i]);
}

/* Of rows that are no whole number of vectors for all items the first ones have
 * one more; NULL: all have vector i. */
static LLVMValueRef has_vector(const emit_tile *g, const emit_operand *o, int i)
{
    emit *e = g->e;
    int64_t left = o->extent * g->b->step / o->wide - (int64_t)i * e->k->group;

    return left < e->k->group ? emit_below(e, e->lid, emit_si(e, left)) : NULL;
}

void emit_plain_copy(emit_tile *g, emit_operand *o, LLVMValueRef at,
                     LLVMValueRef turn)
{
    emit *e = g->e;
    LLVMValueRef bits, by = find_step(g, o, at, &bits);

    for (int i = 0; i < o->n; i++) {
        LLVMBasicBlockRef no = emit_when(e, has_vector(g, o, i));

        e->abi->copy(e, emit_operand_area(g, o, turn, o->place[i]),
                     access_at(g, o, i, 0, by, NULL),
                     o->not ? fails(g, o, i, 0, bits) : NULL);
        emit_when_end(e, no);
    }
}

void emit_plain_round(emit_tile *g, const emit_operand *o, LLVMValueRef turn)
{
    emit *e = g->e;
    LLVMTypeRef t = emit_widen(e->f32, o->wide);

    for (int i = 0; i < o->n; i++) {
        LLVMBasicBlockRef no = emit_when(e, has_vector(g, o, i));
        LLVMValueRef p = emit_operand_area(g, o, turn, o->place[i]);
        LLVMValueRef v = LLVMBuildLoad2(e->b, t, p, "");

        LLVMSetAlignment(v, PLAN_LINE_PART);
        for (int c = 0; c < o->wide; c++)
            v = emit_insert(e, v, e->abi->trim(e, emit_extract(e, v, c, 1)), c);
        emit_tile_put(p, v, e, PLAN_LINE_PART);
        emit_when_end(e, no);
    }
}
