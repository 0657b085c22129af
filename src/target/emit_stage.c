/* Stages: loops over inner axes around the nodes that vary on them.
 *
 * The reductions of a stage may want different strided lanes; those of one
 * kind share a pass over the loops, other kinds get a pass each. */
#include "emit.h"

typedef struct {
    emit *e;
    int stage, naxis, axis[EMIT_AXES];
    int lanes;        /* of its reductions; 0: it has none */
    emit_reduce_how how;
    int vectors;      /* of LANE in a step, when it is one of the axes */
    bool first;       /* of its stage: stores and parks */
    bool any_order;   /* its reductions could keep lanes, and need not */
    bool rows;        /* LANE is innermost, over a range */
    LLVMValueRef from, to;
    bool *sink;       /* [node] */
    emit_reduction **reduction;
    int nreduction;
} pass;

static void loops(pass *p, int i);

static bool is_sink(const plan_node *n)
{
    return n->kind == PN_STORE || n->kind == PN_SCATTER || plan_is_sum(n);
}

/* ---- what a pass needs ---- */

/* A stage of a row's results comes between others without a loop over its
 * elements: nothing that varies on these is parked there. */
static bool parks_here(const pass *p, const plan_node *n)
{
    uint64_t axes = p->e->k->stage[p->stage].axes | p->e->outer;

    return p->first && n->parked && !p->e->parked[n->id] &&
           n->stage <= p->stage && !(n->varies & ~axes);
}

static void mark_needed(pass *p)
{
    emit *e = p->e;
    const plan_kernel *k = e->k;

    for (int i = k->nnode - 1; i >= 0; i--) {
        const plan_node *n = k->node[i];

        if (p->sink[i] || parks_here(p, n))
            e->needed[i] = true;
        if (!e->needed[i] || e->parked[i] || (is_sink(n) && !p->sink[i]))
            continue;
        for (int j = 0; j < n->narg; j++)
            if (n->kind != PN_REDUCE || j < n->nout)
                e->needed[n->arg[j]->id] = true;
        for (int j = 0; j < e->uses[i].n; j++)
            e->needed[e->uses[i].at[j]->id] = true;
    }
}

/* ---- the innermost code ---- */

static uint64_t all_vary(const plan_node *n)
{
    uint64_t v = n->varies | emit_guards_vary(n->guard, n->nguard);

    if (n->off)
        v |= n->off->varies;
    if (n->kind == PN_STORE || n->kind == PN_SCATTER)
        v |= n->arg[0]->varies;
    if (plan_is_sum(n))
        v |= n->over;
    return v;
}

static void emit_sink(pass *p, const plan_node *n, int copy)
{
    emit *e = p->e;

    if (n->kind == PN_STORE)
        emit_store(e, n, copy);
    else if (n->kind == PN_SCATTER && emit_takes_turns(e, n))
        emit_scatter_in_turns(e, n, copy);
    else if (n->kind == PN_SCATTER)
        emit_scatter(e, n, copy);
    for (int i = 0; plan_is_sum(n) && i < p->nreduction; i++)
        if (emit_reduction_node(p->reduction[i]) == n)
            emit_reduce_step(e, p->reduction[i], copy);
}

static void innermost(pass *p)
{
    emit *e = p->e;

    for (int i = 0; i < e->k->nnode; i++) {
        const plan_node *n = e->k->node[i];
        uint64_t varies = all_vary(n);
        bool parks = parks_here(p, n);

        if (!e->needed[i] || (is_sink(n) && !p->sink[i]))
            continue;
        for (int c = 0; c < e->ncopy; c++) {
            if (!is_sink(n) && emit_is_copy(e, c, n->varies)) {
                emit_node_value(e, n, c);
                if (parks)
                    emit_park_write(e, n, c);
            } else if (is_sink(n) && emit_is_copy(e, c, varies)) {
                emit_sink(p, n, c);
            }
        }
    }
}

static void row_start(emit *e, void *ctx)
{
    pass *p = ctx;

    for (int i = 0; i < p->nreduction; i++) {
        emit_reduce_restart(e, p->reduction[i]);
        emit_reduce_put(e, p->reduction[i]);
    }
}

static void row_step(emit *e, void *ctx)
{
    pass *p = ctx;

    for (int i = 0; i < p->nreduction; i++)
        emit_reduce_get(e, p->reduction[i]);
    innermost(p);
    for (int i = 0; i < p->nreduction; i++)
        emit_reduce_put(e, p->reduction[i]);
}

/* ---- loops ---- */

static void open_at(emit *e, int a, LLVMBasicBlockRef pre, LLVMValueRef at)
{
    emit_level_open(e, pre);
    e->axis[a].level = e->depth;
    e->axis[a].at = at;
    e->axis[a].first =
        LLVMBuildICmp(e->b, LLVMIntEQ, at, emit_int_like(at, 0), "");
}

static void close_axis(emit *e, int a)
{
    emit_axis *x = &e->axis[a];

    emit_level_close(e);
    x->level = 0;
    x->n = 1;
    x->first = NULL;
    memset(x->mask, 0, sizeof x->mask);
}

/* Positions from .. to in steps. */
static void run(pass *p, int i, int64_t from, int64_t to, int64_t step)
{
    emit *e = p->e;
    int a = p->axis[i];
    LLVMBasicBlockRef pre = LLVMGetInsertBlock(e->b);
    emit_loop l;

    emit_loop_open(e, &l, emit_si(e, from), emit_si(e, to), step);
    open_at(e, a, pre, l.at);
    loops(p, i + 1);
    emit_loop_close(e, &l);
    close_axis(e, a);
}

/* n copies a step, `each` positions a copy; the last step has fewer. */
static void run_copies(pass *p, int i, int n, int64_t each)
{
    emit *e = p->e;
    emit_axis *x = &e->axis[p->axis[i]];
    int64_t extent = e->k->axis[p->axis[i]].extent, step = n * each;
    int64_t full = extent / step * step, rest = extent - full;

    x->step = each;
    if (full) {
        x->n = n;
        run(p, i, 0, full, step);
    }
    if (!rest)
        return;
    x->n = (int)((rest + each - 1) / each);
    if (rest % each) { /* only on LANE: the last vector is not full */
        LLVMValueRef on[EMIT_MAX_LANES];

        for (int j = 0; j < (int)each; j++)
            on[j] = emit_bool(e, j < rest % each);
        x->mask[x->n - 1] = LLVMConstVector(on, (unsigned)each);
    }
    run(p, i, full, extent, step);
}

static int64_t chain_of(const pass *p, int axis)
{
    const plan_node *n;

    if (!p->nreduction)
        return 0;
    n = emit_reduction_node(p->reduction[0]);
    return n->kind == PN_CONTRACT && n->order.cut == axis ? n->order.chunk : 0;
}

/* The axis at which the chains of a CONTRACT begin and end: what a stage's sums
 * run over is the same. */
static void run_chains(pass *p, int i, int64_t chunk)
{
    emit *e = p->e;
    int64_t n = e->k->axis[p->axis[i]].extent;
    LLVMBasicBlockRef pre = LLVMGetInsertBlock(e->b);
    LLVMValueRef end;
    emit_loop chain, l;

    emit_loop_open(e, &chain, emit_si(e, 0), emit_si(e, n), chunk);
    emit_level_open(e, pre);
    end = LLVMBuildNSWAdd(e->b, chain.at, emit_int_like(chain.at, chunk), "");
    if (n % chunk)
        end = LLVMBuildSelect(
            e->b, LLVMBuildICmp(e->b, LLVMIntSLT, end, emit_si(e, n), ""), end,
            emit_si(e, n), "");
    pre = LLVMGetInsertBlock(e->b);
    emit_loop_open(e, &l, chain.at, end, 1);
    open_at(e, p->axis[i], pre, l.at);
    loops(p, i + 1);
    emit_loop_close(e, &l);
    close_axis(e, p->axis[i]);
    for (int r = 0; r < p->nreduction; r++)
        emit_reduce_chain(e, p->reduction[r]);
    emit_loop_close(e, &chain);
    emit_level_close(e);
}

/* Rows that are read this many steps later: they lie too far apart for the
 * processor to see where it goes. */
enum { AHEAD = 4, AHEAD_ROWS = 16 };

/* Row after row into the same accumulators. */
static void run_rows(pass *p, int i)
{
    p->e->ahead_axis = p->axis[i];
    p->e->ahead = AHEAD_ROWS;
    run(p, i, 0, p->e->k->axis[p->axis[i]].extent, 1);
    p->e->ahead = 0;
}

/* One strided lane after the other: bodies too large to be copied. */
static void run_major(pass *p, int i)
{
    emit *e = p->e;
    int a = p->axis[i];
    int64_t n = e->k->axis[a].extent;
    LLVMBasicBlockRef pre = LLVMGetInsertBlock(e->b);
    emit_loop lane, l;

    emit_loop_open(e, &lane, emit_si(e, 0),
                   emit_si(e, SD_MIN(n, (int64_t)p->lanes)), 1);
    emit_level_open(e, pre);
    for (int r = 0; r < p->nreduction; r++)
        emit_reduce_restart(e, p->reduction[r]);
    pre = LLVMGetInsertBlock(e->b);
    emit_loop_open(e, &l, lane.at, emit_si(e, n), p->lanes);
    open_at(e, a, pre, l.at);
    e->axis[a].first = LLVMBuildICmp(e->b, LLVMIntEQ, l.at, lane.at, "");
    e->ahead_axis = a;
    e->ahead = AHEAD * p->lanes;
    loops(p, i + 1);
    e->ahead = 0;
    emit_loop_close(e, &l);
    close_axis(e, a);
    for (int r = 0; r < p->nreduction; r++)
        emit_reduce_lane(e, p->reduction[r], lane.at);
    emit_loop_close(e, &lane);
    emit_level_close(e);
}

/* Work item l takes l, l + group, ...  Reductions that join after each chunk
 * hold barriers, so there all items go round together, under a mask. */
static void run_items(pass *p, int i)
{
    emit *e = p->e;
    int a = p->axis[i];
    int64_t n = e->k->axis[a].extent, group = e->dev->group;
    bool together = p->how == EMIT_R_CHUNK && p->nreduction;
    LLVMBasicBlockRef pre = LLVMGetInsertBlock(e->b);
    LLVMValueRef at;
    emit_loop l;

    emit_loop_open(e, &l, together ? emit_si(e, 0) : e->lid, emit_si(e, n),
                   group);
    at = together ? LLVMBuildAdd(e->b, l.at, e->lid, "") : l.at;
    open_at(e, a, pre, at);
    e->axis[a].first = LLVMBuildICmp(e->b, LLVMIntEQ, l.at,
                                     together ? emit_si(e, 0) : e->lid, "");
    if (together)
        e->axis[a].mask[0] =
            LLVMBuildICmp(e->b, LLVMIntSLT, at, emit_si(e, n), "");
    loops(p, i + 1);
    emit_loop_close(e, &l);
    close_axis(e, a);
}

static void loops(pass *p, int i)
{
    emit *e = p->e;
    const plan_axis *x;

    if (i == p->naxis) {
        if (p->rows)
            emit_lane_loops(e, p->from, p->to, 1, row_step, p);
        else
            innermost(p);
        return;
    }
    x = &e->k->axis[p->axis[i]];
    if (x->extent == 0)
        return;
    e->axis[p->axis[i]].opening++;
    if (p->axis[i] == e->lane) {
        if (e->gpu)
            run_items(p, i);
        else
            run_copies(p, i, p->vectors, e->w);
    } else if (chain_of(p, p->axis[i])) {
        run_chains(p, i, chain_of(p, p->axis[i]));
    } else if (p->how == EMIT_R_MAJOR) {
        run_major(p, i);
    } else if (p->how == EMIT_R_COPIES) {
        run_copies(p, i, p->lanes, 1);
    } else if (x->place == PLAN_UNROLL && x->extent <= 16) {
        for (int64_t j = 0; j < x->extent; j++)
            run(p, i, j, j + 1, 1);
    } else if (p->any_order && i == p->naxis - 1) {
        run_rows(p, i);
    } else {
        run(p, i, 0, x->extent, 1);
    }
}

/* ---- passes ---- */

/* About how many instructions a position of the inner axes costs. */
static int weight(const pass *p)
{
    const emit *e = p->e;
    int w = 0;

    for (int i = 0; i < e->k->nnode; i++) {
        const plan_node *n = e->k->node[i];

        if (!e->needed[i] || !(n->varies & ~e->outer))
            continue;
        w += n->kind == PN_ELT && (hlo_op_table[n->op].props & HLO_P_HEAVY) ? 16
                                                                            : 1;
    }
    return w;
}

/* Narrow floats that are rounded make chains that are longer than a core looks
 * ahead: their vectors stand side by side with a device function between them
 * too (softmax of 512 x 1024 bf16: 0.38 ms, then 0.34).  AVX2 would
 * take eight, for which it has too few registers. */
enum { COPIED = 10, COPIED_ROUNDING = 48 };

static int most_copied(const pass *p)
{
    const emit *e = p->e;

    for (int i = 0; e->w == 16 && i < e->k->nnode; i++)
        if (e->needed[i] && plan_is_rounding(e->k->node[i]) &&
            (e->k->node[i]->varies & ~e->outer))
            return COPIED_ROUNDING;
    return COPIED;
}

/* Small bodies are copied: vectors side by side keep the units busy.  Large
 * ones have enough to do by themselves, and cost time to compile. */
static void decide(pass *p)
{
    const emit *e = p->e;
    int body = weight(p);
    bool on_lane = false;

    for (int i = 0; i < p->naxis; i++)
        on_lane = on_lane || p->axis[i] == e->lane;
    p->vectors = 1;
    if (on_lane && p->lanes == 64) {
        p->how =
            !e->gpu && body > most_copied(p) ? EMIT_R_ROTATE : EMIT_R_VECTOR;
        if (p->how == EMIT_R_VECTOR)
            p->vectors = e->axis[e->lane].radix;
    } else if (on_lane && !p->lanes) {
        p->how = EMIT_R_VECTOR;
        p->vectors = SD_MIN(e->axis[e->lane].radix, body <= 4    ? 4
                                                    : body <= 10 ? 2
                                                                 : 1);
    } else if (on_lane) {
        p->how = EMIT_R_CHUNK;
    } else if (p->lanes <= 1) {
        p->how = EMIT_R_PLAIN;
    } else {
        p->how = p->lanes == 8 && body <= 24 && e->axis[p->axis[0]].stride
                     ? EMIT_R_COPIES
                     : EMIT_R_MAJOR;
    }
}

static void open_pass(pass *p, uint64_t axes)
{
    emit *e = p->e;
    const plan_kernel *k = e->k;

    p->naxis = 0;
    for (int i = 0; i < k->naxis; i++)
        if (axes >> i & 1)
            p->axis[p->naxis++] = i;
    memset(e->needed, 0, (size_t)k->nnode * sizeof *e->needed);
    mark_needed(p);
    p->reduction = sd_arena_array(e->a, emit_reduction *, k->nnode + 1);
    p->nreduction = 0;
}

static void run_pass(pass *p, uint64_t axes)
{
    emit *e = p->e;

    open_pass(p, axes);
    decide(p);
    for (int i = 0; i < e->k->nnode; i++)
        if (p->sink[i] && plan_is_sum(e->k->node[i]))
            p->reduction[p->nreduction++] =
                emit_reduce_begin(e, e->k->node[i], p->how);
    loops(p, 0);
    for (int i = 0; i < p->nreduction; i++)
        emit_reduce_end(e, p->reduction[i]);
}

/* A sum whose order shows in its result is eight sums side by side, on every
 * device the same.  A maximum, say, has no such order: the host reads its rows
 * one after the other, as they lie in memory, which is quicker. */
static bool any_order(const emit *e, const plan_node *n)
{
    return !e->gpu && n->order.lanes == 8 && plan_any_order(n) &&
           !(e->lane >= 0 && n->over >> e->lane & 1);
}

static int lanes_of(const emit *e, const plan_node *n)
{
    return any_order(e, n) ? 1 : n->order.lanes;
}

/* Strided lanes are copies of the row axis: rows l, l + 8, ... go to lane l. */
void emit_rows(emit *e, LLVMValueRef from, LLVMValueRef to)
{
    pass p = {.e = e,
              .rows = true,
              .from = from,
              .to = to,
              .how = EMIT_R_COPIES,
              .lanes = 8};

    e->row_from = from;
    e->outer_depth = e->depth;
    p.sink = sd_arena_array(e->a, bool, e->k->nnode + 1);
    for (int i = 0; i < e->k->nnode; i++)
        p.sink[i] = e->k->node[i]->kind == PN_REDUCE;
    open_pass(&p, e->k->stage[0].axes);
    for (int i = 0; i < e->k->nnode; i++)
        if (p.sink[i])
            p.reduction[p.nreduction++] = emit_reduce_begin(
                e, e->k->node[i],
                any_order(e, e->k->node[i]) ? EMIT_R_PLAIN : EMIT_R_COPIES);
    emit_lane_loops(e, from, to, 1, row_start, &p);
    e->ahead_axis = p.axis[0];
    e->ahead = p.lanes;
    loops(&p, 0);
    e->ahead = 0;
    e->row = p.reduction;
    e->nrow = p.nreduction;
}

static void end_rows(emit *e)
{
    for (int i = 0; i < e->nrow; i++) {
        emit_reduce_get(e, e->row[i]);
        emit_reduce_end(e, e->row[i]);
    }
}

static void emit_stage(emit *e, int stage)
{
    const plan_kernel *k = e->k;
    pass p = {.e = e, .stage = stage, .first = true};
    bool *done = sd_arena_array(e->a, bool, k->nnode + 1), more = true;

    while (more) {
        more = false;
        p.sink = sd_arena_array(e->a, bool, k->nnode + 1);
        p.lanes = 0;
        p.any_order = false;
        for (int i = 0; i < k->nnode; i++) {
            const plan_node *n = k->node[i];
            int lanes = plan_is_sum(n) ? lanes_of(e, n) : p.lanes;

            if (!is_sink(n) || n->stage != stage || done[i])
                continue;
            if (!p.lanes)
                p.lanes = lanes;
            more = more || lanes != p.lanes;
            if (lanes != p.lanes)
                continue;
            p.sink[i] = done[i] = true;
            p.any_order =
                p.any_order || (n->kind == PN_REDUCE && any_order(e, n));
        }
        run_pass(&p, k->stage[stage].axes & ~e->outer);
        for (int i = 0; p.first && i < k->nnode; i++)
            e->parked[i] = e->parked[i] || (k->node[i]->parked && e->needed[i]);
        p.first = false;
    }
}

void emit_stages(emit *e)
{
    memset(e->parked, 0, (size_t)e->k->nnode * sizeof *e->parked);
    if (e->k->rows)
        end_rows(e);
    for (int i = e->k->rows; i < e->k->nstage; i++)
        if (!e->k->blocks || i != e->k->blocks->node->stage)
            emit_stage(e, i);
}
