/* Neighbouring axes that every offset and guard runs through as if they were
 * one become one: longer vectors, fewer loops.  And an axis of features becomes
 * two where a convolution has groups of them. */
#include "plan_mapping.h"

enum { SHORT_ROW = 64 };

typedef struct {
    plan_kernel *k;
    plan_px *px;
    int group[64]; /* old axis -> new axis */
    const plan_expr *as[64];
} collapser;

/* Is n read before the loops inside run?  A division is little there, and short
 * rows would leave lanes idle in all turns (the variance of groups of ten
 * channels reads a mean each group). */
static bool is_read_before(const plan_kernel *k, const plan_node *n,
                           int64_t row)
{
    uint64_t inner = ~0ull << k->nouter;

    return n->kind == PN_LOAD && k->nouter < k->naxis && row < SHORT_ROW &&
           !(n->varies & inner) && !n->nguard;
}

static bool every_expr_joins(const plan_kernel *k, int a, int b)
{
    int64_t eb = k->axis[b].extent;

    plan_for_each_node(n, k) {
        if (is_read_before(k, n, eb))
            continue;
        if (n->off && !plan_px_joins(n->off, a, b, eb))
            return false;
        for (int j = 0; j < n->nguard; j++)
            if (!plan_px_joins(n->guard[j].e, a, b, eb))
                return false;
    }
    return true;
}

static bool together(uint64_t set, int a, int b)
{
    return (set >> a & 1) == (set >> b & 1);
}

static bool can_join(const plan_kernel *k, int a, int b)
{
    if (k->axis[a].outer != k->axis[b].outer ||
        k->axis[a].role != k->axis[b].role || k->axis[a].role == PLAN_SCAN)
        return false;
    for (int i = 0; i < k->nstage; i++)
        if (!together(k->stage[i].axes, a, b))
            return false;
    plan_for_each_node(n, k)
        if (!together(n->over, a, b) ||
            (n->order.lanes > 1 && n->over >> a & 1))
            return false;
    return every_expr_joins(k, a, b);
}

static uint64_t map_axes(const collapser *c, uint64_t set)
{
    uint64_t out = 0;

    plan_for_each_axis(i, set)
        out |= 1ull << c->group[i];
    return out;
}

void plan_place_node(plan_kernel *k, plan_px *px, plan_node *n,
                     const plan_expr *const *with)
{
    if (n->off)
        n->off = plan_px_subst(px, n->off, with);
    if (n->nguard)
        n->guard =
            sd_arena_copy(k->arena, n->guard, n->nguard * sizeof *n->guard);
    for (int i = 0; i < n->nguard; i++)
        n->guard[i].e = plan_px_subst(px, n->guard[i].e, with);
}

static void rebuild_node(collapser *c, plan_node *n)
{
    n->over = map_axes(c, n->over);
    n->varies = 0;
    for (int i = 0; i < n->narg; i++)
        n->varies |= n->arg[i]->varies;
    n->varies &= ~n->over;
    if (n->kind == PN_SCAN)
        n->varies |= n->over;
    plan_place_node(c->k, c->px, n, c->as);
    if (n->off)
        n->varies |= n->off->varies;
    for (int i = 0; i < n->nguard; i++)
        n->varies |= n->guard[i].e->varies;
}

/* Old axes of one group in terms of the new one, last fastest. */
static void fill_exprs(collapser *c, const plan_axis *axis)
{
    int64_t below = 1;

    for (int i = c->k->naxis - 1; i >= 0; i--) {
        int g = c->group[i];
        const plan_expr *e = plan_px_axis(c->px, g, axis[g].extent);

        if (i + 1 == c->k->naxis || c->group[i + 1] != g)
            below = 1;
        e = plan_px_div(c->px, e, below);
        below *= c->k->axis[i].extent;
        c->as[i] = e->hi < c->k->axis[i].extent
                       ? e
                       : plan_px_mod(c->px, e, c->k->axis[i].extent);
    }
}

static void rebuild(collapser *c, plan_axis *axis, int n, int nouter)
{
    plan_kernel *k = c->k;

    plan_for_each_node(x, k)
        rebuild_node(c, x);
    for (int i = 0; i < k->nstage; i++)
        k->stage[i].axes = map_axes(c, k->stage[i].axes);
    k->axis = axis;
    k->naxis = n;
    k->nouter = nouter;
}

/* ---- groups of features ---- */

/* By what e divides the position on an outer axis, which is *axis; or 0. */
static int64_t divisor_in(const plan_kernel *k, const plan_expr *e, int *axis)
{
    int64_t c;

    if (e->kind == PX_DIV && e->a->kind == PX_AXIS && e->a->axis < k->nouter &&
        k->axis[e->a->axis].extent % e->c == 0) {
        *axis = e->a->axis;
        return e->c;
    }
    c = e->a ? divisor_in(k, e->a, axis) : 0;
    return c || !e->b ? c : divisor_in(k, e->b, axis);
}

/* The features of a group, of the axis *axis of all, where one operand of a
 * CONTRACT is the same for all of a group; or 0. */
static int64_t find_group(const plan_kernel *k, int *axis)
{
    uint64_t over = 0;
    int64_t c = 0;

    plan_for_each_node(n, k)
        if (n->kind == PN_CONTRACT)
            over |= n->over;
    for (int i = 0; i < k->nnode && !c; i++)
        if (k->node[i]->kind == PN_LOAD && (k->node[i]->varies & over))
            c = divisor_in(k, k->node[i]->off, axis);
    return c;
}

void plan_split_groups(plan_kernel *k, int64_t least)
{
    collapser c = {.k = k, .px = plan_px_create(k->arena)};
    plan_axis *axis = sd_arena_array(k->arena, plan_axis, k->naxis + 2);
    int a = 0;
    int64_t each = find_group(k, &a);

    if (each < least)
        return;
    for (int i = 0; i < k->naxis; i++) {
        c.group[i] = i + (i > a);
        axis[c.group[i]] = k->axis[i];
        c.as[i] = plan_px_axis(c.px, c.group[i], k->axis[i].extent);
    }
    axis[a + 1] = axis[a];
    axis[a].extent = axis[a].tile = k->axis[a].extent / each;
    axis[a + 1].extent = axis[a + 1].tile = each;
    c.as[a] = plan_px_mad(c.px, plan_px_axis(c.px, a + 1, each), each,
                          plan_px_axis(c.px, a, axis[a].extent));
    rebuild(&c, axis, k->naxis + 1, k->nouter + 1);
}

/* ---- ranges of places ---- */

/* Axis 0 becomes one of ranges of start, of which guard `which` of the scatter
 * n is: each position of it takes the updates that go to its range. */
void plan_split_places(plan_kernel *k, plan_node *n, int which, int64_t ranges)
{
    collapser c = {.k = k, .px = plan_px_create(k->arena)};
    plan_axis *axis = sd_arena_array(k->arena, plan_axis, k->naxis + 1);
    plan_guard *g = sd_arena_array(k->arena, plan_guard, n->nguard + 1);
    int64_t each = (n->guard[which].hi + ranges - 1) / ranges;
    const plan_expr *range = plan_px_axis(c.px, 0, ranges);

    for (int i = 0; i < k->naxis; i++) {
        c.group[i] = i + 1;
        axis[i + 1] = k->axis[i];
        c.as[i] = plan_px_axis(c.px, i + 1, k->axis[i].extent);
    }
    axis[0] = (plan_axis){.extent = ranges,
                          .tile = ranges,
                          .role = PLAN_MAP,
                          .place = PLAN_SEQ,
                          .outer = true};
    rebuild(&c, axis, k->naxis + 1, k->nouter + 1);
    memcpy(g, n->guard, (size_t)n->nguard * sizeof *g);
    g[n->nguard] = (plan_guard){
        plan_px_mad(c.px, n->guard[which].e, -each, range), 0, each};
    n->guard = g;
    n->nguard++;
    n->varies |= 1;
    k->ranges = true;
}

/* ---- neighbours ---- */

const plan_node *plan_scatter_of(const plan_kernel *k)
{
    plan_for_each_node(n, k)
        if (n->kind == PN_SCATTER)
            return n;
    return NULL;
}

/* All outer axes, if there are any, are a scatter's batches. */
static bool lacks_window(const plan_kernel *k)
{
    const plan_node *scatter = plan_scatter_of(k);
    int64_t s;

    for (int i = 0; i < k->nouter; i++)
        if (!scatter || plan_expr_stride(scatter->off, i, &s))
            return false;
    return true;
}

void plan_collapse(plan_kernel *k)
{
    collapser c = {.k = k, .px = plan_px_create(k->arena)};
    /* one more: a kernel without an axis for LANE gets one of extent 1 */
    plan_axis *axis = sd_arena_array(k->arena, plan_axis, k->naxis + 1);
    int n = 0, nouter = 0;

    if (lacks_window(k)) {
        axis[n++] = (plan_axis){.extent = 1,
                                .tile = 1,
                                .role = PLAN_MAP,
                                .place = PLAN_SEQ,
                                .outer = true};
        nouter = 1;
    }
    for (int i = 0; i < k->naxis; i++) {
        if (i > 0 && can_join(k, i - 1, i)) {
            axis[n - 1].extent *= k->axis[i].extent;
            axis[n - 1].tile = axis[n - 1].extent;
        } else {
            axis[n++] = k->axis[i];
            nouter += k->axis[i].outer;
        }
        c.group[i] = n - 1;
    }
    fill_exprs(&c, axis);
    rebuild(&c, axis, n, nouter);
}
