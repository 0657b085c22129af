/* What items read of the operands of products in blocks on a GPU, a step at a
 * time: which positions of the axes a step has, what is known of the places
 * before the steps begin, and the reading itself (emit_group.c has the steps).
 */
#include "emit_group.h"

/* ---- positions ---- */

void emit_open_axis(emit *e, int a, LLVMValueRef at, int copies)
{
    emit_axis *x = &e->axis[a];

    x->at = at;
    x->level = e->depth;
    x->n = x->near = copies;
    x->step = copies;
}

void emit_close_axes(emit *e, uint64_t axes)
{
    plan_for_each_axis(a, axes) {
        e->axis[a].level = 0;
        e->axis[a].n = 1;
        memset(e->axis[a].mask, 0, sizeof e->axis[a].mask);
    }
}

void emit_open_axes(emit *e, int axis, uint64_t in, LLVMValueRef from,
                    LLVMValueRef flat, int along, int copies)
{
    for (int a = e->k->naxis - 1; a > axis; a--) {
        int64_t n = plan_tile_extent(e->k, e->k->blocks, a);

        if (!(in >> a & 1))
            continue;
        emit_open_axis(e, a, emit_rest(e, flat, n), a == along ? copies : 1);
        flat = emit_over(e, flat, n);
    }
    emit_open_axis(e, axis, emit_add(e, from, flat),
                   axis == along ? copies : 1);
}

LLVMValueRef emit_limit_axis(emit *e, int axis, LLVMValueRef valid)
{
    emit_axis *x = &e->axis[axis];
    const plan_axis *of = &e->k->axis[axis];

    if (of->outer && of->extent % of->tile)
        valid =
            emit_and(e, valid, emit_below(e, x->at, emit_si(e, of->extent)));
    for (int c = 0; c < x->n; c++)
        x->mask[c] = valid;
    return valid;
}

/* The open positions of a step's row or column number `flat`.  What lies beyond
 * the end is never used, so the last ones are read instead, which nobody needs
 * to ask for in a step. */
void emit_open_side(emit *e, const emit_operand *o, LLVMValueRef flat)
{
    const plan_axis *of = &e->k->axis[o->axis];
    emit_axis *x = &e->axis[o->axis];
    int64_t last = of->extent - (o->along == o->axis ? o->wide : 1);

    if (!o->in)
        last += o->halo;

    emit_open_axes(e, o->axis, o->in, o->from, flat, o->along, o->wide);
    if (of->extent % of->tile ||
        of->tile * plan_tile_points(e->k, e->k->blocks, o->in) <
            o->extent - o->halo ||
        (o->in && o->halo))
        x->at = emit_select(e, emit_below(e, x->at, emit_si(e, last)), x->at,
                            emit_si(e, last));
}

/* The last axis of K, if a step of panels never ends behind its end; -1. */
static int even_axis(const emit_tile *g)
{
    const plan_blocks *b = g->b;
    int last = plan_last_axis((uint64_t)1 << b->k | b->k_in);

    return plan_engine_table[b->engine].panels &&
                   g->e->k->axis[last].extent % b->step == 0
               ? last
               : -1;
}

/* Position k of step `step` of chain number `chain`; whether it has that many,
 * or NULL: all have.  Where steps are even, where one begins is the same for
 * all items and all that they copy.  Of those with zeros that lead only the
 * first, which is read before the loop, lacks something. */
static LLVMValueRef open_depth(emit_tile *g, const emit_operand *o,
                               LLVMValueRef chain, LLVMValueRef step,
                               LLVMValueRef k)
{
    emit *e = g->e;
    const plan_blocks *b = g->b;
    int even = even_axis(g);
    LLVMValueRef start = emit_times(e, step, b->step);
    LLVMValueRef flat = emit_add(e, start, k);
    LLVMValueRef before = emit_over(e, chain, g->each), valid = NULL;
    LLVMValueRef from = emit_times(e, emit_rest(e, chain, g->each), g->chunk);

    for (int a = b->k - 1; a >= 0; a--)
        if (b->node->over >> a & 1) {
            emit_open_axis(e, a, emit_rest(e, before, e->k->axis[a].extent), 1);
            before = emit_over(e, before, e->k->axis[a].extent);
        }
    if (b->lead) {
        flat = emit_add(e, flat, emit_si(e, -b->lead));
        if (LLVMIsNull(step)) {
            valid = emit_not_below(e, flat, emit_si(e, 0));
            flat = emit_select(e, valid, flat, emit_si(e, 0));
        }
    } else if (b->kt % b->step) {
        valid = emit_below(e, flat, emit_si(e, b->kt));
    }
    emit_open_axes(e, b->k, b->k_in, from, even < 0 ? flat : start, o->along,
                   o->wide);
    if (even >= 0)
        e->axis[even].at = emit_add(e, e->axis[even].at, k);
    if (e->k->axis[b->k].extent % g->chunk)
        valid = emit_and(e, valid,
                         emit_below(e, e->axis[b->k].at,
                                    emit_si(e, e->k->axis[b->k].extent)));
    return emit_limit_axis(e, b->k, valid);
}

/* ---- where an operand is read ---- */

/* Axes of K of which all items have the same position in a step, but for what
 * they have of the last one. */
static bool steps_alike(const emit_tile *g)
{
    return g->x.panel && g->chains == 1 && (even_axis(g) >= 0 || !g->b->k_in) &&
           g->b->k == __builtin_ctzll(g->b->node->over);
}

/* Marks the loads that n is made of; false: one of them goes where no steps
 * lead, or takes several accesses, or something asks for positions of K. */
static bool mark_loads(const emit_tile *g, const emit_operand *o,
                       const plan_node *n, bool *of)
{
    uint64_t over = g->b->node->over;
    bool good = n->kind != PN_INDEX || !(n->off->varies & over);

    if (n->kind == PN_LOAD && n->varies & over) {
        good = !(n->varies >> o->along & 1) || n->wide == o->wide;
        for (int a = 0; a < g->e->k->naxis && good; a++) {
            int64_t s;

            good = !(over >> a & 1) || plan_expr_stride(n->off, a, &s);
        }
        of[n->id] = good;
    }
    for (int i = 0; i < n->narg && good; i++)
        good = mark_loads(g, o, n->arg[i], of);
    return good;
}

void emit_open_vector(emit_tile *g, const emit_operand *o, int i)
{
    emit *e = g->e;
    uint64_t over = g->b->node->over;
    int last = plan_last_axis(over);

    emit_open_side(e, o, o->m[i]);
    plan_for_each_axis(a, over)
        emit_open_axis(e, a, a == last ? o->k[i] : emit_si(e, 0),
                       a == o->along ? o->wide : 1);
}

void emit_close_vector(emit_tile *g, const emit_operand *o)
{
    emit_close_axes(g->e, g->b->node->over | o->in | (uint64_t)1 << o->axis);
}

/* Where vector i is read in step 0, which is left open for it. */
static void note_start(emit_tile *g, emit_operand *o, int i, const bool *of)
{
    emit *e = g->e;
    int nnode = e->k->nnode;
    emit_known *to = &o->from_start[i];
    emit_loop once;

    to->at = sd_arena_array(e->a, LLVMValueRef, nnode + 1);
    to->by = sd_arena_array(e->a, LLVMValueRef, nnode + 1);
    emit_once_open(e, &once);
    emit_open_vector(g, o, i);
    for (int n = 0; n < nnode; n++)
        if (of[n])
            to->at[n] = emit_expr(e, e->k->node[n]->off, 0, false);
    emit_level_loop_close(e, &once);
    emit_close_vector(g, o);
}

/* What steps change of the places that an operand is read at is the same for
 * all items, where it is a sum of positions: then all else is found before
 * them. */
void emit_find_starts(emit_tile *g, emit_operand *o)
{
    emit *e = g->e;
    bool *of = sd_arena_array(e->a, bool, e->k->nnode + 1);
    int lane = e->lane;

    if (o->plain)
        emit_find_plain(g, o);
    if (o->plain || !steps_alike(g) || !mark_loads(g, o, o->node, of))
        return;
    o->from_start = sd_arena_array(e->a, emit_known, o->n);
    e->lane = o->along;
    for (int i = 0; i < o->n; i++)
        note_start(g, o, i, of);
    e->lane = lane;
}

/* What step number `at` adds to the places of all that is read of o. */
static void find_steps(emit_tile *g, emit_operand *o, LLVMValueRef at)
{
    emit *e = g->e;
    uint64_t over = g->b->node->over;
    LLVMValueRef flat = emit_times(e, at, g->b->step), by[EMIT_AXES];

    flat = emit_add(e, flat, emit_si(e, -g->b->lead));

    for (int a = e->k->naxis - 1; a >= 0; a--)
        if (over >> a & 1) {
            by[a] =
                a == g->b->k ? flat : emit_rest(e, flat, e->k->axis[a].extent);
            flat = emit_over(e, flat, e->k->axis[a].extent);
        }
    for (int n = 0; n < e->k->nnode; n++) {
        LLVMValueRef sum = emit_si(e, 0);
        int64_t s;

        if (!o->from_start[0].at[n])
            continue;
        plan_for_each_axis(a, over)
            if (plan_expr_stride(e->k->node[n]->off, a, &s))
                sum = emit_mad(e, by[a], s, sum);
        for (int i = 0; i < o->n; i++)
            o->from_start[i].by[n] = sum;
    }
}

/* ---- reading ---- */

/* The chain that has step number `at` of all, and which of its steps that is.
 */
static LLVMValueRef find_chain(const emit_tile *g, LLVMValueRef at,
                               LLVMValueRef *step)
{
    emit *e = g->e;
    LLVMValueRef in = at, before = emit_si(e, 0);

    if (g->last != g->steps) {
        in = emit_rest(e, at, g->row);
        before = emit_times(e, emit_over(e, at, g->row), g->each);
    }
    *step = g->chains == 1 ? in : emit_rest(e, in, g->steps);
    return emit_add(e, before, emit_over(e, in, g->steps));
}

static LLVMValueRef computed(emit *e, const emit_operand *o)
{
    LLVMTypeRef t = emit_widen(emit_mem_type(e, o->node->dtype), o->wide);
    LLVMValueRef v = LLVMGetPoison(t), one;

    for (int i = 0; i < o->wide; i++) {
        int copy = emit_canon(e, i * e->axis[o->along].stride, o->node->varies);

        one = emit_node_value(e, o->node, copy).re;
        if (o->wide == 1)
            return one;
        v = emit_insert(e, v, one, i);
    }
    return v;
}

/* Reads what the item has of step number `at`, and keeps it in registers.  What
 * a chain lacks of its last step is 0. */
void emit_tile_read(emit_tile *g, emit_operand *o, LLVMValueRef at)
{
    emit *e = g->e;
    int lane = e->lane;
    uint64_t axes = g->b->node->over | o->in | (uint64_t)1 << o->axis;

    if (o->plain) {
        emit_plain_read(g, o, at);
        return;
    }
    if (o->from_start)
        find_steps(g, o, at);
    e->lane = o->along;
    for (int i = 0; i < o->n; i++) {
        LLVMValueRef step, chain, valid, v;
        emit_loop once;

        emit_once_open(e, &once);
        chain = find_chain(g, at, &step);
        emit_open_side(e, o, o->m[i]);
        valid = open_depth(g, o, chain, step, o->k[i]);
        e->known = o->from_start ? &o->from_start[i] : NULL;
        v = computed(e, o);
        e->known = NULL;
        if (valid)
            v = emit_select(e, valid, v, LLVMConstNull(LLVMTypeOf(v)));
        emit_put(e, v, o->v[i]);
        emit_level_loop_close(e, &once);
        emit_close_axes(e, axes);
    }
    e->lane = lane;
}
