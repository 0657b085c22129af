/* A CONTRACT in blocks on a GPU, as plan_blocks says.  A step of a chain is
 * copied to one pair of areas while the items multiply out of the other:
 *
 *   read step 0
 *   for each chain, for each of its steps:
 *       write what was read to the areas whose turn it is; barrier
 *       read the next step
 *       multiply
 *
 * One barrier a step is enough: areas are written again two steps later, when
 * all have passed the barrier that follows their last reading of them.
 *
 * Operands in panels have a loop of their own (emit_panel.c). */
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
            valid = LLVMBuildICmp(e->b, LLVMIntSGE, flat, emit_si(e, 0), "");
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

/* ---- copies of the operands ---- */

bool emit_is_deep(const emit_tile *g, const emit_operand *o)
{
    return g->b->node->over >> o->along & 1;
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
static void find_starts(emit_tile *g, emit_operand *o)
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

/* ---- steps of chains ---- */

/* Along axis k the last chain may have fewer positions than the others: it has
 * as many steps as they take. */

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

/* The number of chain c's step s among all. */
static LLVMValueRef step_number(const emit_tile *g, LLVMValueRef c,
                                LLVMValueRef s)
{
    emit *e = g->e;
    LLVMValueRef before = emit_times(e, emit_over(e, c, g->each), g->row);

    if (g->last == g->steps)
        return emit_mad(e, c, g->steps, s);
    return emit_add(e, before,
                    emit_mad(e, emit_rest(e, c, g->each), g->steps, s));
}

static LLVMValueRef steps_of(const emit_tile *g, LLVMValueRef c)
{
    emit *e = g->e;
    LLVMValueRef is_last;

    if (g->last == g->steps)
        return emit_si(e, g->steps);
    is_last = LLVMBuildICmp(e->b, LLVMIntEQ, emit_rest(e, c, g->each),
                            emit_si(e, g->each - 1), "");
    return emit_select(e, is_last, emit_si(e, g->last), emit_si(e, g->steps));
}

/* ---- reading and writing ---- */

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
        LLVMBuildStore(e->b, v, o->v[i]);
        emit_level_loop_close(e, &once);
        emit_close_axes(e, axes);
    }
    e->lane = lane;
}

LLVMValueRef emit_tile_area(emit_tile *g, size_t at, LLVMValueRef turn,
                            LLVMTypeRef t, LLVMValueRef index)
{
    emit *e = g->e;
    LLVMValueRef off =
        emit_mad(e, turn, (int64_t)g->b->buffer, emit_si(e, (int64_t)at));

    return emit_behind(e, t, emit_local(e, off), index);
}

LLVMValueRef emit_operand_area(emit_tile *g, const emit_operand *o,
                               LLVMValueRef turn, LLVMValueRef by)
{
    emit *e = g->e;
    LLVMValueRef off =
        emit_mad(e, turn, (int64_t)o->apart, emit_si(e, (int64_t)o->at));

    return emit_behind(e, e->i8, emit_local(e, off), by);
}

LLVMValueRef emit_tile_vector(emit_tile *g, const emit_operand *o, int i)
{
    emit *e = g->e;
    LLVMTypeRef t = emit_widen(emit_mem_type(e, o->node->dtype), o->wide);
    LLVMValueRef v = LLVMBuildLoad2(e->b, t, o->v[i], "");

    if (!g->matrix || g->b->part != SD_F32 || o->trimmed)
        return v;
    if (o->wide == 1)
        return e->abi->trim(e, v);
    for (int c = 0; c < o->wide; c++)
        v = emit_insert(e, v, e->abi->trim(e, emit_extract(e, v, c, 1)), c);
    return v;
}

void emit_tile_put(LLVMValueRef p, LLVMValueRef v, emit *e, size_t bytes)
{
    LLVMSetAlignment(LLVMBuildStore(e->b, v, p), (unsigned)bytes);
}

/* By how many elements item's vectors are turned round: eight neighbours write
 * at once, whose lines must be eight different ones (modulo eight) to lie in
 * all banks, but a vector's first lines are not. */
static LLVMValueRef turned_by(emit_tile *g, const emit_operand *o, int i)
{
    emit *e = g->e;

    return emit_rest(e, emit_over(e, o->m[i], PLAN_LINES), o->wide);
}

LLVMValueRef emit_tile_line(emit_tile *g, const emit_operand *o, int i, int c)
{
    emit *e = g->e;
    LLVMValueRef at = emit_add(e, turned_by(g, o, i), emit_si(e, c));

    return emit_add(e, o->m[i], emit_rest(e, at, o->wide));
}

void emit_tile_turned(emit_tile *g, const emit_operand *o, int i,
                      LLVMValueRef *line)
{
    emit *e = g->e;
    LLVMValueRef by = turned_by(g, o, i), old[EMIT_TURNED];

    assert(o->wide <= EMIT_TURNED && !(o->wide & (o->wide - 1)));
    for (int c = 0; c < o->wide; c++)
        line[c] = LLVMGetPoison(emit_widen(e->f32, o->per));
    for (int j = 0; j < o->per; j++) {
        LLVMValueRef v = emit_tile_vector(g, o, i + j);

        for (int c = 0; c < o->wide; c++)
            line[c] = emit_insert(e, line[c], emit_extract(e, v, c, 1), j);
    }
    for (int s = 1; s < o->wide; s *= 2) {
        LLVMValueRef bit = LLVMBuildAnd(e->b, by, emit_si(e, s), "");

        bit = LLVMBuildICmp(e->b, LLVMIntNE, bit, emit_si(e, 0), "");
        memcpy(old, line, sizeof old);
        for (int c = 0; c < o->wide; c++)
            line[c] =
                LLVMBuildSelect(e->b, bit, old[(c + s) % o->wide], old[c], "");
    }
}

/* Writes numbers of f32 that lie across K. */
static void write_turned(emit_tile *g, emit_operand *o, LLVMValueRef turn)
{
    emit *e = g->e;
    LLVMValueRef line[EMIT_TURNED];

    for (int i = 0; i < o->n; i += o->per) {
        LLVMValueRef k = emit_times(e, o->k[i], o->deep), at;

        emit_tile_turned(g, o, i, line);
        for (int c = 0; c < o->wide; c++) {
            at = emit_mad(e, emit_tile_line(g, o, i, c), o->side, k);
            emit_tile_put(emit_tile_area(g, o->at, turn, e->f32, at), line[c],
                          e, PLAN_LINE_PART);
        }
    }
}

/* Writes it to the areas of `turn`. */
static void write_operand(emit_tile *g, emit_operand *o, LLVMValueRef turn)
{
    emit *e = g->e;
    size_t bytes = sd_dtype_bytes(o->node->dtype);
    LLVMTypeRef t = emit_mem_type(e, o->node->dtype);
    int64_t apart = emit_is_deep(g, o) ? o->deep : o->side;

    if (o->per > 1) {
        write_turned(g, o, turn);
        return;
    }

    for (int i = 0; i < o->n; i++) {
        LLVMValueRef index =
            emit_mad(e, o->m[i], o->side, emit_times(e, o->k[i], o->deep));
        LLVMValueRef p = emit_tile_area(g, o->at, turn, t, index), at, one;
        LLVMValueRef v = emit_tile_vector(g, o, i);

        if (apart == 1) {
            emit_tile_put(p, v, e, bytes * (size_t)o->wide);
            continue;
        }
        for (int c = 0; c < o->wide; c++) {
            at = emit_si(e, c * apart);
            one = emit_extract(e, v, c, 1);
            emit_tile_put(emit_behind(e, t, p, at), one, e, bytes);
        }
    }
}

/* ---- chains ---- */

static emit_value get(emit_tile *g, LLVMValueRef p)
{
    return (emit_value){LLVMBuildLoad2(g->e->b, g->type, p, ""), NULL};
}

static void multiply(emit_tile *g, LLVMValueRef turn)
{
    if (g->matrix)
        emit_multiply_squares(g, turn, 0, g->b->step);
    else
        emit_multiply_items(g, turn);
}

/* The chain's end. */
static void add_chain(emit_tile *g)
{
    emit *e = g->e;
    sd_dtype t[2] = {g->b->node->dtype, g->b->node->dtype};

    if (g->chains == 1)
        return;
    if (g->b->early)
        emit_take_early(g);
    for (int i = 0; i < g->nacc; i++) {
        emit_value v[2] = {get(g, g->sum[i]), get(g, g->acc[i])};

        LLVMBuildStore(e->b, emit_elt(e, HLO_ADD, NULL, t[0], 2, v, t).re,
                       g->sum[i]);
        LLVMBuildStore(e->b, LLVMConstNull(g->type), g->acc[i]);
    }
}

static void start(emit_tile *g)
{
    emit *e = g->e;
    int n = g->b->rows * g->b->vectors;

    g->slot = g->type;
    if (g->matrix) {
        n /= e->k->subgroup * e->abi->pack;
        g->slot = emit_widen(g->type, e->abi->pack);
    }
    g->nacc = n;
    g->acc = sd_arena_array(e->a, LLVMValueRef, n);
    g->sum = g->acc;
    if (g->chains > 1)
        g->sum = sd_arena_array(e->a, LLVMValueRef, n);
    for (int i = 0; i < n; i++) {
        g->acc[i] = emit_alloca(e, g->slot);
        LLVMBuildStore(e->b, LLVMConstNull(g->slot), g->acc[i]);
        if (g->chains == 1)
            continue;
        g->sum[i] = emit_alloca(e, g->slot);
        LLVMBuildStore(e->b, LLVMConstNull(g->slot), g->sum[i]);
    }
}

void emit_write_step(emit_tile *g, LLVMValueRef turn)
{
    write_operand(g, &g->x, turn);
    write_operand(g, &g->y, turn);
    emit_barrier(g->e);
}

/* Step `s` of chain `c`, of which the operands do not lie in panels. */
static void run_step(emit_tile *g, LLVMValueRef c, LLVMValueRef s)
{
    emit *e = g->e;
    LLVMValueRef at = step_number(g, c, s), next, turn;
    int64_t last = g->chains / g->each * g->row - 1;

    turn = LLVMBuildAnd(e->b, at, emit_si(e, 1), "");
    if (!g->b->early)
        emit_write_step(g, turn);
    next =
        LLVMBuildSelect(e->b, emit_below(e, at, emit_si(e, last)),
                        emit_add(e, at, emit_si(e, 1)), emit_si(e, last), "");
    emit_tile_read(g, &g->x, next);
    emit_tile_read(g, &g->y, next);
    if (g->b->early)
        emit_multiply_early(g, turn,
                            LLVMBuildXor(e->b, turn, emit_si(e, 1), ""));
    else
        multiply(g, turn);
}

static void run_chains(emit_tile *g)
{
    emit *e = g->e;
    emit_loop c, s;

    emit_tile_read(g, &g->x, emit_si(e, 0));
    emit_tile_read(g, &g->y, emit_si(e, 0));
    if (g->b->early) {
        emit_write_step(g, emit_si(e, 0));
        emit_begin_early(g);
    }
    emit_level_loop_open(e, &c, emit_si(e, 0), emit_si(e, g->chains), 1);
    emit_level_loop_open(e, &s, emit_si(e, 0), steps_of(g, c.at), 1);
    run_step(g, c.at, s.at);
    emit_level_loop_close(e, &s);
    add_chain(g);
    emit_level_loop_close(e, &c);
    if (g->b->early && g->chains == 1)
        emit_take_early(g);
}

/* ---- a tile ---- */

void emit_group_blocks(emit *e, LLVMValueRef m0, LLVMValueRef n0)
{
    const plan_blocks *b = e->k->blocks;
    int64_t outside = 1, extent = e->k->axis[b->k].extent;
    int64_t halo = plan_slides_in_area(b) ? plan_slide_halo(e->k, b) : 0;
    emit_tile g = {.e = e,
                   .b = b,
                   .x = {b->x, b->m, b->m_in, m0, b->mt + halo, halo,
                         b->x_along, b->x_wide, b->x_m, b->x_k, b->x_panel,
                         b->x_at, halo ? b->y_at / 2 : b->buffer, .per = 1,
                         .trimmed = b->x_trimmed, .plain = b->x_plain},
                   .y = {b->y, b->n, b->n_in, n0, b->nt, 0, b->y_along,
                         b->y_wide, b->y_n, b->y_k, b->y_panel, b->y_at,
                         b->buffer, .per = 1, .trimmed = b->y_trimmed,
                         .plain = b->y_plain},
                   .type = emit_type(e, b->node->dtype),
                   .matrix = plan_has_matrices(b),
                   .wide = plan_is_wide(b)};

    for (int a = 0; a < b->k; a++)
        if (b->node->over >> a & 1)
            outside *= e->k->axis[a].extent;
    g.chunk = b->node->order.chunk && !g.matrix ? b->node->order.chunk : extent;
    g.each = (extent + g.chunk - 1) / g.chunk;
    g.chains = outside * g.each;
    g.steps = g.last = (b->kt + b->step - 1) / b->step;
    if (extent % g.chunk)
        g.last = (extent % g.chunk * plan_extent(e->k, b->k_in) + b->step - 1) /
                 b->step;
    g.row = (g.each - 1) * g.steps + g.last;
    emit_find_items(&g);
    if (g.matrix)
        emit_own_squares(&g);
    if (!b->direct && !b->window) {
        emit_share_out(&g, &g.x);
        find_starts(&g, &g.x);
    }
    if (!b->direct) {
        emit_share_out(&g, &g.y);
        find_starts(&g, &g.y);
    }
    start(&g);
    if (b->direct)
        emit_run_direct(&g);
    else if (b->window)
        emit_run_window(&g);
    else if (g.wide)
        emit_wide_run(&g);
    else if (g.x.panel)
        emit_run_panels(&g);
    else
        run_chains(&g);
    emit_use_sums(&g);
}
