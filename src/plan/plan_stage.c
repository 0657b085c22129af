/* From a list of nodes to a kernel: what nobody needs goes, REDUCEs and STOREs
 * are given stages, and the figures are counted. */
#include "plan_lower.h"

/* ---- dead nodes ---- */

static void mark(plan_node *n);

static void mark_expr(const plan_expr *e)
{
    if (!e)
        return;
    if (e->kind == PX_NODE)
        mark(e->node);
    mark_expr(e->a);
    mark_expr(e->b);
}

static void mark(plan_node *n)
{
    if (n->stage < 0)
        return;
    n->stage = -1;
    for (int i = 0; i < n->narg; i++)
        mark(n->arg[i]);
    mark_expr(n->off);
    for (int i = 0; i < n->nguard; i++)
        mark_expr(n->guard[i].e);
}

static void drop_dead(plan_lowering *lw)
{
    int n = 0;

    for (int i = 0; i < lw->node.n; i++)
        if (plan_is_write(lw->node.at[i]))
            mark(lw->node.at[i]);
    for (int i = 0; i < lw->node.n; i++) {
        plan_node *p = lw->node.at[i];

        if (p->stage >= 0)
            continue;
        p->stage = 0;
        p->id = n;
        lw->node.at[n++] = p;
    }
    lw->node.n = n;
    lw->k->node = lw->node.at;
    lw->k->nnode = n;
}

/* ---- stages ---- */

static int level_after(const plan_node *n)
{
    return n->stage + plan_is_sum(n);
}

static int expr_level(const plan_expr *e)
{
    int l = 0;

    if (!e)
        return 0;
    if (e->kind == PX_NODE)
        l = level_after(e->node);
    l = SD_MAX(l, expr_level(e->a));
    return SD_MAX(l, expr_level(e->b));
}

static int level_of(const plan_node *n)
{
    int l = expr_level(n->off);

    for (int i = 0; i < n->narg; i++)
        l = SD_MAX(l, level_after(n->arg[i]));
    for (int i = 0; i < n->nguard; i++)
        l = SD_MAX(l, expr_level(n->guard[i].e));
    return l;
}

static uint64_t inner_of(const plan_lowering *lw, const plan_node *n)
{
    return (n->varies | n->over) & ~lw->outer;
}

/* Sinks of one level and the same inner axes share a stage; levels go up, and
 * within a level stages come in the order of their first sink. */
static void make_stages(plan_lowering *lw)
{
    plan_kernel *k = lw->k;
    int nlevel = 0;
    int *level = sd_arena_array(lw->a, int, k->nnode + 1);
    sd_vec(plan_stage) stage = {0};

    for (int i = 0; i < k->nnode; i++) {
        k->node[i]->stage = level[i] = level_of(k->node[i]);
        nlevel = SD_MAX(nlevel, level[i] + 1);
    }
    for (int l = 0, first = 0; l < nlevel; l++, first = stage.n)
        for (int i = 0; i < k->nnode; i++) {
            uint64_t in = inner_of(lw, k->node[i]);
            int s = first;

            if (level[i] != l || !plan_is_sink(k->node[i]))
                continue;
            while (s < stage.n && stage.at[s].axes != in)
                s++;
            if (s == stage.n)
                *sd_push(lw->a, &stage) = (plan_stage){in};
            level[i] = l; /* the stage's number is set below */
            k->node[i]->stage = s;
        }
    plan_for_each_node(x, k)
        if (!plan_is_sink(x))
            x->stage = level_of(x);
    k->stage = stage.at;
    k->nstage = stage.n;
}

/* ---- figures ---- */

double plan_points(const plan_kernel *k, uint64_t axes)
{
    double n = 1;

    plan_for_each_axis(i, axes)
        n *= (double)k->axis[i].extent;
    return n;
}

int64_t plan_extent(const plan_kernel *k, uint64_t axes)
{
    return (int64_t)plan_points(k, axes);
}

static double node_cost(const plan_node *n)
{
    if (plan_is_sum(n))
        return n->kind == PN_CONTRACT ? 2 : 1;
    if (n->kind != PN_ELT)
        return 0;
    return hlo_op_table[n->op].props & HLO_P_HEAVY ? 16 : 1;
}

static void count(plan_lowering *lw)
{
    plan_kernel *k = lw->k;
    double *moved = sd_arena_array(lw->a, double, k->nslot + 1);

    k->bytes = 0;
    if (k->sort || k->call || k->attend || k->places) {
        for (int i = 0; i < k->nslot; i++)
            k->bytes += (double)k->slot[i].count *
                        (double)sd_dtype_bytes(k->slot[i].dtype);
        return;
    }
    k->flops = 0;
    plan_for_each_node(n, k) {
        k->flops += node_cost(n) * plan_points(k, n->varies | n->over);
        if (n->kind == PN_LOAD || plan_is_write(n))
            moved[n->slot] = SD_MIN(moved[n->slot] + plan_points(k, n->varies),
                                    (double)k->slot[n->slot].count);
        if (n->kind == PN_SCATTER && n->narg > 1)
            moved[n->slot] = (double)k->slot[n->slot].count;
    }
    for (int i = 0; i < k->nslot; i++)
        k->bytes += moved[i] * (double)sd_dtype_bytes(k->slot[i].dtype);
}

static plan_kernel_class class_of(const plan_lowering *lw)
{
    if (lw->axis.n == lw->k->nouter)
        return PLAN_LOOP;
    return lw->space.full && lw->space.post == 1 ? PLAN_ROW : PLAN_COLUMN;
}

void plan_finish_kernel(plan_lowering *lw)
{
    plan_kernel *k = lw->k;

    k->axis = lw->axis.at;
    k->naxis = lw->axis.n;
    k->nouter = __builtin_popcountll(lw->outer);
    drop_dead(lw);
    make_stages(lw);
    count(lw);
    if (k->cls == PLAN_LOOP)
        k->cls = class_of(lw);
}
