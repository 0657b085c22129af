/* Stages: loops over inner axes around the nodes that vary on them, pass by
 * pass as the plan has it (plan_pass). */
#include "emit.h"

typedef struct {
    emit *e;
    const plan_pass *plan;
    int naxis, axis[EMIT_AXES]; /* its loops, the outermost first */
    LLVMValueRef from, to;      /* by rows: the range of the loop over LANE */
    emit_reduction **reduction; /* the accumulators of its sums */
    int nreduction;
} pass;

static void loops(pass *p, int i);

/* ---- the innermost code ---- */

/* The axes on which what n does varies: a store into a column varies on its
 * rows even if the value that it stores does not. */
static uint64_t all_vary(const plan_node *n)
{
    uint64_t v = n->varies | emit_guards_vary(n->guard, n->nguard);

    if (n->off)
        v |= n->off->varies;
    if (plan_is_write(n))
        v |= n->arg[0]->varies;
    if (plan_is_sum(n))
        v |= n->over;
    return v;
}

static emit_reduction *reduction_of(const pass *p, const plan_node *n)
{
    int i = 0;

    while (emit_reduction_node(p->reduction[i]) != n)
        i++;
    return p->reduction[i];
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
    else if (plan_is_sum(n))
        emit_reduce_step(e, reduction_of(p, n), copy);
}

/* Copies from .. to of node number i, where the pass needs them. */
static void copies_of(pass *p, int i, int from, int to)
{
    emit *e = p->e;
    const plan_node *n = e->k->node[i];
    bool sinks = plan_is_sink(n);
    uint64_t varies = sinks ? all_vary(n) : n->varies;

    if (!p->plan->needs[i] || !e->wanted[i] || (sinks && n->pass != e->pass))
        return;
    if (e->k->teams && plan_is_sum(n)) {
        emit_team_sum(e, reduction_of(p, n), varies);
        return;
    }
    for (int c = from; c < to; c++) {
        if (!emit_is_copy(e, c, varies))
            continue;
        if (sinks) {
            emit_sink(p, n, c);
            continue;
        }
        emit_node_value(e, n, c);
        if (n->parked && n->pass == e->pass)
            emit_park_write(e, n, c);
    }
}

/* What the pass needs of each node, in the order of the list, copy by copy, or
 * all nodes of one copy after the other. */
static void innermost(pass *p)
{
    const emit *e = p->e;
    int each = p->plan->one_by_one ? 1 : e->ncopy;

    for (int c = 0; c < e->ncopy; c += each)
        for (int i = 0; i < e->k->nnode; i++)
            copies_of(p, i, c, c + each);
}

/* By rows: begins the accumulators of a vector of LANE. */
static void row_start(emit *e, void *ctx)
{
    pass *p = ctx;

    for (int i = 0; i < p->nreduction; i++) {
        emit_reduce_restart(e, p->reduction[i]);
        emit_reduce_put(e, p->reduction[i]);
    }
}

/* By rows: adds to the accumulators of a vector of LANE what rows have there.
 */
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

/* Axis a is at `at` in this level. */
static void put_at(emit *e, int a, LLVMValueRef at)
{
    e->axis[a].level = e->depth;
    e->axis[a].at = at;
    e->axis[a].first = emit_equal(e, at, emit_int_like(at, 0));
}

static void open_axis(emit *e, int a, emit_loop *l, LLVMValueRef from,
                      LLVMValueRef to, int64_t step)
{
    emit_level_loop_open(e, l, from, to, step);
    put_at(e, a, l->at);
}

static void take_from(emit *e, int a)
{
    emit_axis *x = &e->axis[a];

    x->level = 0;
    x->n = 1;
    x->first = NULL;
    memset(x->mask, 0, sizeof x->mask);
}

static void close_axis(emit *e, int a, emit_loop *l)
{
    emit_level_loop_close(e, l);
    take_from(e, a);
}

/* Positions from .. to in steps. */
static void run(pass *p, int i, LLVMValueRef from, LLVMValueRef to,
                int64_t step)
{
    emit *e = p->e;
    int a = p->axis[i];
    emit_loop l;

    open_axis(e, a, &l, from, to, step);
    loops(p, i + 1);
    close_axis(e, a, &l);
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
        run(p, i, emit_si(e, 0), emit_si(e, full), step);
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
    run(p, i, emit_si(e, full), emit_si(e, extent), step);
}

/* Position 0 of axis a alone, without a loop. */
static void open_start(emit *e, int a, const char *name)
{
    LLVMBasicBlockRef pre = LLVMGetInsertBlock(e->b);
    LLVMBasicBlockRef here = emit_block(e, name);

    LLVMBuildBr(e->b, here);
    LLVMPositionBuilderAtEnd(e->b, here);
    emit_level_open(e, pre);
    put_at(e, a, emit_si(e, 0));
}

static void close_start(emit *e, int a)
{
    emit_level_close(e);
    take_from(e, a);
}

/* So many positions the pass takes where it ends early. */
static LLVMValueRef count_to_end(const pass *p)
{
    emit *e = p->e;
    const plan_guard *g = &p->plan->end->guard;
    LLVMValueRef all = emit_si(e, e->k->axis[p->plan->end->axis].extent), n;

    open_start(e, p->plan->end->axis, "count");
    n = LLVMBuildNSWSub(e->b, emit_si(e, g->hi), emit_expr(e, g->e, 0, false),
                        "");
    close_start(e, p->plan->end->axis);
    n = emit_smaller(e, n, all);
    return emit_larger(e, n, emit_si(e, 0));
}

/* n copies a step, `each` positions a copy, a power of two in all; the last
 * step, whose copies have a mask, may have fewer. */
static void run_copies_to(pass *p, int i, int n, int64_t each, LLVMValueRef to)
{
    emit *e = p->e;
    int a = p->axis[i];
    emit_axis *x = &e->axis[a];
    LLVMValueRef full = emit_and(e, to, emit_si(e, -n * each));
    LLVMValueRef end;
    emit_loop l;

    x->step = each;
    x->n = n;
    run(p, i, emit_si(e, 0), full, n * each);
    open_axis(e, a, &l, full, to, n * each);
    x->n = n;
    end = each > 1 && e->vi != e->si ? emit_trunc(e, to, e->vi) : to;
    for (int c = 0; c < n; c++)
        x->mask[c] = emit_below(e, emit_position(e, a, c * x->stride, each > 1),
                                emit_splat(e, end, (int)each));
    loops(p, i + 1);
    close_axis(e, a, &l);
}

static int64_t chain_of(const pass *p, int axis)
{
    const plan_node *n;

    if (!p->nreduction)
        return 0;
    n = emit_reduction_node(p->reduction[0]);
    return n->kind == PN_CONTRACT && n->order.cut == axis ? n->order.chunk : 0;
}

/* Positions from .. to in steps of n copies, which they are a multiple of or
 * fewer than. */
static void chain_steps(pass *p, int i, LLVMValueRef from, LLVMValueRef to,
                        int n)
{
    p->e->axis[p->axis[i]].step = 1;
    p->e->axis[p->axis[i]].n = n;
    run(p, i, from, to, n);
}

static void end_chain(pass *p)
{
    for (int r = 0; r < p->nreduction; r++)
        emit_reduce_chain(p->e, p->reduction[r]);
}

/* The last chain, which is shorter than others, and whose end may be less than
 * a step. */
static void last_chain(pass *p, int i, int64_t from, int n)
{
    emit *e = p->e;
    int64_t extent = e->k->axis[p->axis[i]].extent;
    int64_t steps = from + (extent - from) / n * n;

    if (steps > from)
        chain_steps(p, i, emit_si(e, from), emit_si(e, steps), n);
    if (extent > steps)
        chain_steps(p, i, emit_si(e, steps), emit_si(e, extent),
                    (int)(extent - steps));
    end_chain(p);
}

/* The axis at which the chains of a CONTRACT begin and end: what a stage's sums
 * run over is the same. */
static void run_chains(pass *p, int i, int64_t chunk)
{
    emit *e = p->e;
    const plan_axis *x = &e->k->axis[p->axis[i]];
    int64_t whole = x->extent / chunk * chunk;
    int n = p->plan->how == PLAN_LANES_COPIES ? x->copies : 1;
    LLVMValueRef end;
    emit_loop chain;

    emit_level_loop_open(e, &chain, emit_si(e, 0), emit_si(e, whole), chunk);
    end = emit_plus(e, chain.at, chunk);
    chain_steps(p, i, chain.at, end, n);
    end_chain(p);
    emit_level_loop_close(e, &chain);
    if (whole < x->extent)
        last_chain(p, i, whole, n);
}

/* What is loaded in this loop is also prefetched, if the pass says so. */
static void look_ahead(pass *p, int i)
{
    p->e->ahead_axis = p->axis[i];
    p->e->ahead = p->plan->ahead;
}

/* One strided lane after the other: bodies too large to be copied. */
static void run_major(pass *p, int i, LLVMValueRef to)
{
    emit *e = p->e;
    int a = p->axis[i];
    int64_t n = e->k->axis[a].extent;
    emit_loop lane, l;

    emit_level_loop_open(e, &lane, emit_si(e, 0),
                         emit_si(e, SD_MIN(n, (int64_t)p->plan->lanes)), 1);
    for (int r = 0; r < p->nreduction; r++)
        emit_reduce_restart(e, p->reduction[r]);
    open_axis(e, a, &l, lane.at, to, p->plan->lanes);
    e->axis[a].first = emit_equal(e, l.at, lane.at);
    look_ahead(p, i);
    loops(p, i + 1);
    e->ahead = 0;
    close_axis(e, a, &l);
    for (int r = 0; r < p->nreduction; r++)
        emit_reduce_lane(e, p->reduction[r], lane.at);
    emit_level_loop_close(e, &lane);
}

/* Item i takes `n` copies a step: its vector, and the ones that lie a group's
 * items further. */
static void item_steps(pass *p, int i, int n, int64_t from, int64_t to)
{
    emit *e = p->e;
    int a = p->axis[i];
    int64_t each = (int64_t)e->k->items * e->k->vector;
    LLVMValueRef own = emit_item_start(e), start = emit_si(e, from);
    bool whole = !e->k->masks_steps && (to - from) % each == 0;
    emit_loop l;

    if (e->k->teams) /* each begins where its part does */
        own = emit_mad(e, e->team, to, own);
    if (!whole)
        start = from ? emit_add(e, start, own) : own;
    e->axis[a].n = n;
    e->axis[a].step = each;
    emit_level_loop_open(e, &l, start, emit_si(e, to), n / e->k->vector * each);
    put_at(e, a, whole ? emit_add(e, l.at, own) : l.at);
    e->axis[a].first = emit_equal(e, e->axis[a].at, own);
    loops(p, i + 1);
    close_axis(e, a, &l);
}

/* A row of a group takes every so many-th position, from its own number on: n
 * of them in a step, which it adds in order. */
static void strided_steps(pass *p, int i, int n, int64_t from, int64_t to)
{
    emit *e = p->e;
    int a = p->axis[i];
    int64_t each = e->k->group / e->k->items;
    LLVMValueRef start = emit_plus(e, e->row, from);
    emit_loop l;

    e->axis[a].n = n;
    e->axis[a].step = each;
    open_axis(e, a, &l, start, emit_si(e, to), n * each);
    e->axis[a].first = emit_equal(e, l.at, e->row);
    loops(p, i + 1);
    close_axis(e, a, &l);
}

static void run_strided(pass *p, int i)
{
    const plan_kernel *k = p->e->k;
    const plan_axis *x = &k->axis[p->axis[i]];
    int64_t step = (int64_t)x->copies * (k->group / k->items);
    int64_t full = x->extent / step * step;

    if (full)
        strided_steps(p, i, x->copies, 0, full);
    if (full < x->extent)
        strided_steps(p, i, 1, full, x->extent);
}

/* Reductions that join after each chunk hold barriers, so there all items go
 * round together, under a mask. */
static void run_together(pass *p, int i)
{
    emit *e = p->e;
    int a = p->axis[i];
    int64_t n = e->k->axis[a].extent;
    LLVMValueRef at;
    emit_loop l;

    emit_level_loop_open(e, &l, emit_si(e, 0), emit_si(e, n), e->k->group);
    at = emit_sum(e, l.at, e->lid);
    put_at(e, a, at);
    e->axis[a].mask[0] = emit_below(e, at, emit_si(e, n));
    loops(p, i + 1);
    close_axis(e, a, &l);
}

static void run_items(pass *p, int i)
{
    const plan_kernel *k = p->e->k;
    int vectors = SD_MAX(p->plan->vectors, k->vector);
    int64_t n = k->axis[p->axis[i]].extent / SD_MAX(k->teams, 1);
    int64_t step = (int64_t)vectors * k->items;
    int64_t each = (int64_t)k->vector * k->items, full = n / step * step;
    int64_t rest = (n - full) / each * each;

    if (p->plan->how == PLAN_LANES_CHUNK && p->nreduction) {
        run_together(p, i);
        return;
    }
    if (full)
        item_steps(p, i, vectors, 0, full);
    if (rest)
        item_steps(p, i, (int)(rest / k->items), full, full + rest);
    if (full + rest < n)
        item_steps(p, i, k->vector, full + rest, n);
}

static void innermost_loop(pass *p)
{
    if (p->plan->how == PLAN_LANES_ROWS)
        emit_lane_loops(p->e, p->from, p->to, 1, row_step, p);
    else
        innermost(p);
}

static void run_one(pass *p, int i, LLVMValueRef to)
{
    if (i == p->naxis - 1)
        look_ahead(p, i);
    run(p, i, emit_si(p->e, 0), to, 1);
    p->e->ahead = 0;
}

/* The loop of a pass that ends early. */
static void run_to_end(pass *p, int i)
{
    emit *e = p->e;
    LLVMValueRef to = count_to_end(p);

    e->end = p->plan->end;
    if (p->axis[i] == e->lane)
        run_copies_to(p, i, p->plan->vectors, e->w, to);
    else if (p->plan->how == PLAN_LANES_MAJOR)
        run_major(p, i, to);
    else if (p->plan->how == PLAN_LANES_ONE)
        run_one(p, i, to);
    else
        run_copies_to(p, i, e->k->axis[p->axis[i]].copies, 1, to);
    e->end = NULL;
}

static void loops(pass *p, int i)
{
    emit *e = p->e;
    const plan_axis *x;

    if (i == p->naxis) {
        innermost_loop(p);
        return;
    }
    x = &e->k->axis[p->axis[i]];
    if (x->extent == 0)
        return;
    e->axis[p->axis[i]].opening++;
    if (p->plan->end) {
        run_to_end(p, i);
    } else if (p->axis[i] == e->lane) {
        if (e->gpu)
            run_items(p, i);
        else
            run_copies(p, i, p->plan->vectors, e->w);
    } else if (chain_of(p, p->axis[i])) {
        run_chains(p, i, chain_of(p, p->axis[i]));
    } else if (p->plan->how == PLAN_LANES_MAJOR) {
        run_major(p, i, emit_si(e, x->extent));
    } else if (p->plan->how == PLAN_LANES_ITEMS) {
        run_strided(p, i);
    } else if (p->plan->how == PLAN_LANES_ACROSS && i == p->naxis - 1 &&
               !e->axis[e->lane].mask[0]) {
        run_copies(p, i, x->copies, 1);
    } else if (p->plan->how == PLAN_LANES_COPIES ||
               p->plan->how == PLAN_LANES_ROWS) {
        run_copies(p, i, x->copies, 1);
    } else {
        run_one(p, i, emit_si(e, x->extent));
    }
}

/* ---- passes ---- */

static pass begin_pass(emit *e, int number)
{
    const plan_kernel *k = e->k;
    pass p = {.e = e, .plan = &k->pass[number]};
    uint64_t axes = k->stage[p.plan->stage].axes & ~e->outer;

    e->pass = number;
    plan_for_each_axis(i, axes)
        p.axis[p.naxis++] = i;
    p.reduction = sd_arena_array(e->a, emit_reduction *, k->nnode + 1);
    return p;
}

static void begin_sum(pass *p, const plan_node *n, plan_lanes how)
{
    if (plan_is_sum(n) && n->pass == p->e->pass)
        p->reduction[p->nreduction++] = emit_reduce_begin(p->e, n, how);
}

/* Rows that lie one after the other: no loop. */
static void run_shifted(emit *e, int number)
{
    pass p = begin_pass(e, number);

    open_start(e, p.axis[0], "rows");
    plan_for_each_node(n, e->k)
        if (n->pass == number)
            emit_shifted(e, n);
    close_start(e, p.axis[0]);
}

static bool is_shifted(const emit *e, int number)
{
    return e->k->pass[number].how == PLAN_LANES_SHIFTED &&
           !e->axis[e->lane].mask[0];
}

static void run_pass(emit *e, int number)
{
    pass p = begin_pass(e, number);
    LLVMValueRef mode = NULL;

    plan_for_each_node(n, e->k)
        begin_sum(&p, n, p.plan->how);
    if (p.plan->drops)
        mode = emit_drop_subnormals(e);
    loops(&p, 0);
    if (mode)
        emit_restore_mode(e, mode);
    for (int i = 0; i < p.nreduction; i++)
        emit_reduce_end(e, p.reduction[i]);
}

/* Strided lanes are copies of the row axis: rows l, l + 8, ... go to lane l.
 * Sums that have no order need no lanes. */
void emit_rows(emit *e, LLVMValueRef from, LLVMValueRef to)
{
    pass p = begin_pass(e, 0);

    p.from = e->row_from = from;
    p.to = to;
    e->outer_depth = e->depth;
    plan_for_each_node(n, e->k)
        if (n->kind == PN_REDUCE)
            begin_sum(&p, n,
                      plan_any_order(n) ? PLAN_LANES_ONE : PLAN_LANES_COPIES);
    emit_lane_loops(e, from, to, 1, row_start, &p);
    look_ahead(&p, 0);
    loops(&p, 0);
    e->ahead = 0;
    e->sum = p.reduction;
    e->nsum = p.nreduction;
}

static void end_rows(emit *e)
{
    for (int i = 0; i < e->nsum; i++) {
        emit_reduce_get(e, e->sum[i]);
        emit_reduce_end(e, e->sum[i]);
    }
}

void emit_stages(emit *e)
{
    for (int i = 0; i < e->k->npass; i++)
        if (e->k->pass[i].how == PLAN_LANES_ROWS)
            end_rows(e);
        else if (is_shifted(e, i))
            run_shifted(e, i);
        else
            run_pass(e, i);
}
