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

/* ---- steps of chains ---- */

/* Along axis k the last chain may have fewer positions than the others: it has
 * as many steps as they take. */

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

/* ---- areas, and writing to them ---- */

bool emit_is_deep(const emit_tile *g, const emit_operand *o)
{
    return g->b->node->over >> o->along & 1;
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
                         .trimmed = b->x_trimmed, .plain = b->x_plain,
                         .loose = b->x_loose},
                   .y = {b->y, b->n, b->n_in, n0, b->nt, 0, b->y_along,
                         b->y_wide, b->y_n, b->y_k, b->y_panel, b->y_at,
                         b->buffer, .per = 1, .trimmed = b->y_trimmed,
                         .plain = b->y_plain, .loose = b->y_loose},
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
        emit_find_starts(&g, &g.x);
    }
    if (!b->direct) {
        emit_share_out(&g, &g.y);
        emit_find_starts(&g, &g.y);
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
