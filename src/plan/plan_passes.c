/* The passes over a stage's loops: which sinks share one, what it computes for
 * them, and what becomes of the strided lanes of its sums. */
#include "plan_mapping.h"

/* ---- what the index expressions of a node need ---- */

typedef struct {
    sd_arena *a; /* the kernel's */
    sd_map *seen; /* expression -> the node that was looked at last */
    plan_node *n;
    sd_vec(plan_node *) found;
} search;

static void find_nodes(search *s, const plan_expr *x)
{
    if (!x || sd_map_get(s->seen, sd_key(x)) == s->n)
        return;
    sd_map_set(s->seen, sd_key(x), s->n);
    if (x->kind == PX_NODE)
        *sd_push(s->a, &s->found) = x->node;
    find_nodes(s, x->a);
    find_nodes(s, x->b);
}

static void find_indices(plan_kernel *k)
{
    sd_arena *scratch = sd_arena_create();
    sd_map *seen = sd_map_create(scratch);

    plan_for_each_node(n, k) {
        search s = {.a = k->arena, .seen = seen, .n = n};

        find_nodes(&s, n->off);
        for (int g = 0; g < n->nguard; g++)
            find_nodes(&s, n->guard[g].e);
        n->index = s.found.at;
        n->nindex = s.found.n;
    }
    sd_arena_destroy(scratch);
}

/* ---- passes ---- */

typedef struct {
    plan_kernel *k;
    uint64_t nest;
    int lane;
    const device_desc *dev;
    bool host;
    sd_vec(plan_pass) pass;
} passes;

/* A sum whose order shows in its result is eight sums side by side, on every
 * device the same.  A maximum, say, has no such order: the host reads its rows
 * one after the other, as they lie in memory, which is quicker. */
static bool in_any_order(const passes *c, const plan_node *n)
{
    return c->host && n->kind == PN_REDUCE && n->order.lanes == 8 &&
           plan_any_order(n) && !(n->over >> c->lane & 1);
}

static int lanes_of(const passes *c, const plan_node *n)
{
    return in_any_order(c, n) ? 1 : n->order.lanes;
}

static bool is_first(const passes *c, const plan_pass *p)
{
    return p == c->pass.at || p[-1].stage != p->stage;
}

/* The first pass of a stage also writes parked values, if it runs over all axes
 * on which they vary. */
static bool parks(const passes *c, const plan_pass *p, const plan_node *n)
{
    uint64_t axes = c->k->stage[p->stage].axes | c->nest;

    return is_first(c, p) && n->parked && n->pass < 0 && n->stage <= p->stage &&
           !(n->varies & ~axes);
}

/* Marks what pass number `at` computes, from its sinks back to their operands:
 * not what it reads of areas that passes before it wrote, nor other sinks. */
static void mark_needs(passes *c, int at)
{
    const plan_kernel *k = c->k;
    plan_pass *p = &c->pass.at[at];

    p->needs = sd_arena_array(k->arena, bool, k->nnode + 1);
    for (int i = k->nnode - 1; i >= 0; i--) {
        plan_node *n = k->node[i];

        if (parks(c, p, n))
            n->pass = at;
        p->needs[i] = p->needs[i] || n->pass == at;
        if (!p->needs[i] ||
            (n->pass != at && (plan_is_sink(n) || n->pass >= 0)))
            continue;
        for (int j = 0; j < n->narg; j++)
            if (n->kind != PN_REDUCE || j < n->nout)
                p->needs[n->arg[j]->id] = true;
        for (int j = 0; j < n->nindex; j++)
            p->needs[n->index[j]->id] = true;
    }
}

/* About how many instructions a position of the inner axes costs. */
static int weight(const passes *c, const plan_pass *p)
{
    int w = 0;

    for (int i = 0; i < c->k->nnode; i++) {
        const plan_node *n = c->k->node[i];

        if (p->needs[i] && (n->varies & ~c->nest))
            w += n->kind == PN_ELT && (hlo_op_table[n->op].props & HLO_P_HEAVY)
                     ? 16
                     : 1;
    }
    return w;
}

/* Narrow floats that are rounded make chains that are longer than a core looks
 * ahead: their vectors stand side by side with a device function between them
 * too (softmax of 512 x 1024 bf16: 0.38 ms, then 0.34).  AVX2 would
 * take eight, for which it has too few registers. */
enum { COPIED = 10, COPIED_ROUNDING = 48 };

static int most_copied(const passes *c, const plan_pass *p, int rows)
{
    const plan_kernel *k = c->k;
    int most = rows > 1 && k->lanes == 16 ? PLAN_WIDE_ROWS : COPIED;

    for (int i = 0; k->lanes == 16 && i < k->nnode; i++)
        if (p->needs[i] && plan_is_rounding(k->node[i]) &&
            (k->node[i]->varies & ~c->nest))
            return COPIED_ROUNDING;
    return most;
}

/* Rows that are read AHEAD turns of eight later, or AHEAD_ROWS rows where rows
 * are taken one by one, are fetched into the cache: they lie too far apart for
 * the processor to see where it goes. */
enum { AHEAD = 4, AHEAD_ROWS = 16, MOST_COPIED_ROWS = 24, SHIFTED_COPIES = 4 };

/* Does an item of a GPU take several positions of the innermost axis at a time,
 * in order? */
static bool takes_several(const passes *c, uint64_t axes)
{
    return !c->host && axes && c->k->axis[plan_last_axis(axes)].copies > 1;
}

/* Small bodies are copied: vectors side by side keep the units busy.  Large
 * ones have enough to do by themselves, and cost time to compile. */
static void choose_lanes(const passes *c, plan_pass *p)
{
    const plan_kernel *k = c->k;
    uint64_t axes = k->stage[p->stage].axes & ~c->nest;
    bool on_lane = axes >> c->lane & 1;
    int body = weight(c, p), most = k->axis[c->lane].copies, rows = 1;

    for (int i = 0; i < k->nnest; i++) /* that stand side by side */
        rows *= k->nest[i] == c->lane ? 1 : k->axis[k->nest[i]].copies;
    if (on_lane && p->lanes == 64) {
        bool rotate = c->host && body * rows > most_copied(c, p, rows);

        p->how = rotate ? PLAN_LANES_ROTATE : PLAN_LANES_VECTOR;
        p->vectors = rotate ? 1 : most;
    } else if (on_lane && !p->lanes) {
        p->how = PLAN_LANES_VECTOR;
        p->vectors = c->host ? SD_MIN(most, body <= 4    ? 4
                                            : body <= 10 ? 2
                                                         : 1)
                             : most;
    } else if (on_lane) {
        p->how = PLAN_LANES_CHUNK;
    } else if (!c->host && plan_running_axis(k) >= 0 && axes) {
        p->how = PLAN_LANES_COPIES;
    } else if (k->strided && axes) {
        p->how = PLAN_LANES_ITEMS;
    } else if (p->lanes <= 1) {
        p->how = takes_several(c, axes) ? PLAN_LANES_COPIES : PLAN_LANES_ONE;
    } else {
        p->how = p->lanes == 8 && body <= MOST_COPIED_ROWS &&
                         k->axis[__builtin_ctzll(axes)].copies > 1
                     ? PLAN_LANES_COPIES
                     : PLAN_LANES_MAJOR;
    }
    if (c->host && p->how == PLAN_LANES_MAJOR)
        p->ahead = AHEAD * p->lanes;
}

/* The sinks of a stage that are in no pass yet: its stores and scatters, and of
 * its sums those that keep as many lanes as the first.  False: some are left.
 */
static bool take_sinks(passes *c, int at)
{
    plan_pass *p = &c->pass.at[at];
    bool all = true;

    plan_for_each_node(n, c->k) {
        int lanes = plan_is_sum(n) ? lanes_of(c, n) : p->lanes;

        if (!plan_is_sink(n) || n->stage != p->stage || n->pass >= 0)
            continue;
        if (!p->lanes)
            p->lanes = lanes;
        if (lanes != p->lanes) {
            all = false;
            continue;
        }
        n->pass = at;
        if (in_any_order(c, n))
            p->ahead = AHEAD_ROWS;
    }
    return all;
}

static void add_passes(passes *c, int stage)
{
    for (bool done = false; !done;) {
        int at = c->pass.n;

        *sd_push(c->k->arena, &c->pass) =
            (plan_pass){.stage = stage, .vectors = 1};
        done = take_sinks(c, at);
        mark_needs(c, at);
        choose_lanes(c, &c->pass.at[at]);
    }
}

/* Rows are taken as they lie: their strided lanes are copies of the row axis,
 * rows l, l + 8, ... go to lane l. */
static void add_rows(passes *c)
{
    plan_kernel *k = c->k;

    *sd_push(k->arena, &c->pass) =
        (plan_pass){.how = PLAN_LANES_ROWS,
                    .lanes = 8,
                    .vectors = 1,
                    .ahead = plan_rows_compete(k) ? 0 : 8};
    plan_for_each_node(n, k)
        if (n->kind == PN_REDUCE)
            n->pass = 0;
    mark_needs(c, 0);
}

/* Does pass number `pass` make of numbers n, before it multiplies?  What is
 * made of a subnormal number may be none: its logarithm, its quotient by
 * another. Conversions of narrow floats meet none. */
static bool computes(const plan_kernel *k, int pass, const plan_node *n)
{
    if (n->kind != PN_ELT || n->op == HLO_CONVERT || n->op == HLO_SELECT ||
        !k->pass[pass].needs[n->id] || (n->parked && n->pass != pass))
        return false;
    for (int i = 0; i < n->narg; i++)
        if (sd_is_float(sd_dtype_part(n->arg[i]->dtype)))
            return true;
    return false;
}

/* Subnormal numbers count as 0 (base.h) in sums of products that are long,
 * since to change the mode takes time.  A pass that computes or writes
 * something else has them as they are. */
static bool drops_subnormals(const passes *c, int pass)
{
    enum { LEAST = 64 };
    const plan_kernel *k = c->k;
    bool any = false;

    plan_for_each_node(n, k) {
        if (computes(k, pass, n))
            return false;
        if (!plan_is_sink(n) || n->pass != pass)
            continue;
        if (n->kind != PN_CONTRACT || !sd_has_subnormals(n->dtype))
            return false;
        any = true;
    }
    return any && plan_points(k, k->stage[k->pass[pass].stage].axes &
                                     ~c->nest) >= LEAST;
}

/* Rows that are copies have accumulators of their own.  Where these and a value
 * of each copy are more than the registers, what copies compute side by side
 * would go through memory (two sums of columns beside a product of 2,500 x 64:
 * 50 us, one row after the other 17: Zen 4).  Long chains, of functions and of
 * roundings, stand side by side nevertheless: a core does not see their end. */
static bool goes_one_by_one(const passes *c, const plan_pass *p)
{
    enum { WIDE = 32, NARROW = 16 };
    const plan_kernel *k = c->k;
    int sums = 0, copies = 1;

    if (p->how != PLAN_LANES_COPIES)
        return false;
    plan_for_each_node(n, k) {
        if (!p->needs[n->id])
            continue;
        if (n->kind == PN_ELT && (n->varies & ~c->nest) &&
            (plan_is_rounding(n) || (hlo_op_table[n->op].props & HLO_P_HEAVY)))
            return false;
        if (n->kind == PN_REDUCE && k->pass + n->pass == p)
            sums += n->nout;
    }
    plan_for_each_axis(a, k->stage[p->stage].axes | c->nest)
        copies *= k->axis[a].copies;
    return (sums + 1) * copies > (c->dev->lanes == 16 ? WIDE : NARROW);
}

/* A square is as many registers as it has rows: one at a time. */
static void take_squares(plan_kernel *k, int lane)
{
    for (int i = 0; i < k->npass; i++)
        if (k->pass[i].how == PLAN_LANES_ACROSS) {
            k->axis[plan_across_axis(k, &k->pass[i])].copies = k->lanes;
            k->axis[lane].copies = 1;
        } else if (k->pass[i].how == PLAN_LANES_SHIFTED) {
            k->axis[lane].copies = SD_MIN(k->axis[lane].copies, SHIFTED_COPIES);
        }
}

void plan_choose_passes(plan_kernel *k, int lane, const device_desc *dev)
{
    bool host = dev->kind == DEVICE_HOST;
    passes c = {.k = k,
                .nest = plan_nest_axes(k),
                .lane = lane,
                .dev = dev,
                .host = host};

    find_indices(k);
    plan_for_each_node(x, k)
        x->pass = -1;
    for (int i = 0; i < k->nstage; i++)
        if (k->rows && i == 0)
            add_rows(&c);
        else if (!k->blocks || i != k->blocks->node->stage)
            add_passes(&c, i);
    plan_for_each_node(x, k)
        x->parked = x->parked && x->pass >= 0;
    k->pass = c.pass.at;
    k->npass = c.pass.n;
    for (int i = 0; host && i < k->npass; i++)
        k->pass[i].end = plan_find_end(k, i, c.nest);
    for (int i = 0; host && i < k->npass; i++) {
        plan_find_shifted(k, &k->pass[i], lane);
        plan_find_across(k, &k->pass[i], lane);
    }
    for (int i = 0; host && i < k->npass; i++) {
        k->pass[i].drops = drops_subnormals(&c, i);
        k->pass[i].one_by_one = goes_one_by_one(&c, &k->pass[i]);
    }
    take_squares(k, lane);
}
