/* Where nothing is asked, or no longer.
 *
 * Where passes end.  A long sum is cut into pieces of one length, of which the
 * last is filled up with what changes no sum (hlo_split_reduce.c), so that all
 * have one loop; but then each position is asked whether it is there, and reads
 * are masked: a sum of 1,000,003 numbers took twice the time of 1,048,576.  The
 * loop of a pass all of whose sums are filled from one position on ends there,
 * and asks nothing before.
 *
 * Where LANE is cut.  What is shifted, rolled, padded or put together along
 * LANE asks which part a position is in, and has one answer from one edge to
 * the next. */
#include "plan_room.h"

/* Does taking `init` once more, from which it starts, leave the sum n as it is?
 */
static bool is_neutral(const plan_node *n, const plan_node *init)
{
    sd_dtype t = init->dtype;

    if (init->kind != PN_CONST || sd_is_complex(t) ||
        (sd_is_float(t) && sd_dtype_bytes(t) < 4))
        return false;
    switch (n->body->op) {
    case HLO_ADD:
        return sd_scalar_to_f64(t, init->value) == 0;
    case HLO_MULTIPLY:
        return sd_scalar_to_f64(t, init->value) == 1;
    case HLO_MAXIMUM:
    case HLO_MINIMUM:
    case HLO_AND:
    case HLO_OR:
        return true;
    default:
        return false;
    }
}

/* The guard where which fails the sum n takes its initial value. */
static bool filled_from(const plan_node *n, plan_guard *out)
{
    const plan_node *x = n->arg[0], *init = n->arg[1];

    if (n->kind != PN_REDUCE || n->nout != 1 || !is_neutral(n, init))
        return false;
    if (x->kind == PN_ELT && x->op == HLO_SELECT && x->arg[2] == init)
        return plan_asks(x->arg[0], out) && out->lo <= out->e->lo;
    if (x->kind != PN_LOAD || x->nguard != 1 || !x->narg || x->arg[0] != init)
        return false;
    *out = x->guard[0];
    return out->lo <= out->e->lo;
}

/* Do all positions that stand side by side end at one position of `axis`? */
static bool is_even(const plan_kernel *k, const plan_expr *e, int axis)
{
    int64_t step;

    if (!plan_expr_stride(e, axis, &step) || step != 1)
        return false;
    for (int a = 0; a < k->naxis; a++)
        if (a != axis && e->varies >> a & 1 &&
            (!k->axis[a].outer || k->axis[a].place == PLAN_LANE ||
             k->axis[a].copies > 1))
            return false;
    return true;
}

const plan_end *plan_find_end(const plan_kernel *k, int pass, uint64_t nest)
{
    uint64_t axes = k->stage[k->pass[pass].stage].axes & ~nest;
    plan_end *end = sd_arena_new(k->arena, plan_end);
    plan_guard g;

    if (!axes || axes & (axes - 1) || k->pass[pass].how == PLAN_LANES_CHUNK)
        return NULL;
    end->axis = __builtin_ctzll(axes);
    plan_for_each_node(n, k) {
        if (n->pass != pass)
            continue;
        if (!filled_from(n, &g) ||
            (end->guard.e && (g.e != end->guard.e || g.hi != end->guard.hi)))
            return NULL;
        end->guard = g;
    }
    if (!end->guard.e || !is_even(k, end->guard.e, end->axis))
        return NULL;
    end->holds = sd_arena_array(k->arena, bool, k->nnode);
    plan_for_each_node(n, k)
        end->holds[n->id] = plan_asks(n, &g) && g.lo <= g.e->lo &&
                            g.e == end->guard.e && g.hi == end->guard.hi;
    return end;
}

/* ---- where positions are computed twice ---- */

bool plan_may_repeat(const plan_kernel *k)
{
    for (int i = 0; i < k->nslot; i++)
        if (!k->slot[i].noalias ||
            k->slot[i].access == (PLAN_READ | PLAN_WRITE))
            return false;
    return true;
}

bool plan_ends_early(const plan_kernel *k)
{
    return k->cls == PLAN_LOOP && k->naxis == k->nouter && k->lanes > 1 &&
           plan_may_repeat(k);
}

/* ---- stretches of LANE ---- */

enum {
    LEAST_KNOWN = 4, /* steps of LANE's copies, of the longest stretch */
    MOST_STRETCHES = 8, /* if more, the longest alone is known */
    MOST_AGAIN = 600, /* nodes of all stretches */
    MOST_EDGES = 64
};

typedef struct {
    int lane, n;
    int64_t at[MOST_EDGES]; /* positions at which an answer changes */
    int64_t cut[MOST_EDGES + 2]; /* where stretches begin, and the end */
    int ncut;
} edges;

/* Where g begins to hold, or no longer does. */
static bool add_edges(edges *x, const plan_guard *g)
{
    int64_t step, first, by;

    if (!(g->e->varies >> x->lane & 1) ||
        (g->lo <= g->e->lo && g->hi > g->e->hi))
        return true;
    if (x->n + 2 > MOST_EDGES)
        return false;
    if (!plan_expr_alone(g->e, x->lane, 0, &step, &first) ||
        (step != 1 && step != -1))
        return true; /* asked at every position */
    by = step < 0 ? 1 : 0;
    x->at[x->n++] = step * (g->lo - first) + by;
    x->at[x->n++] = step * (g->hi - first) + by;
    return true;
}

static bool find_edges(const plan_kernel *k, edges *x)
{
    plan_guard g;

    plan_for_each_node(n, k) {
        for (int i = 0; i < n->nguard; i++)
            if (!add_edges(x, &n->guard[i]))
                return false;
        if (plan_asks(n, &g) && !add_edges(x, &g))
            return false;
    }
    return x->n > 0;
}

/* The edges inside of LANE, sorted, each once, behind 0 and before its end. */
static void sort_edges(edges *x, int64_t extent)
{
    int n = 1;

    for (int i = 0; i < x->n; i++)
        for (int j = i; j > 0 && x->at[j] < x->at[j - 1]; j--) {
            int64_t t = x->at[j];

            x->at[j] = x->at[j - 1];
            x->at[j - 1] = t;
        }
    for (int i = 0; i < x->n; i++)
        if (x->at[i] > 0 && x->at[i] < extent &&
            (n == 1 || x->cut[n - 1] < x->at[i]))
            x->cut[n++] = x->at[i];
    x->cut[n] = extent;
    x->ncut = n;
}

void plan_find_stretches(plan_kernel *k, int lane)
{
    const plan_axis *l = &k->axis[lane];
    edges x = {.lane = lane};
    plan_stretch *s;
    int longest = 0, n;

    if (!l->outer || k->lanes == 1 || k->cls == PLAN_SCATTERING || k->blocks ||
        k->rows || !find_edges(k, &x))
        return;
    sort_edges(&x, l->extent);
    for (int i = 0; i < x.ncut; i++)
        if (x.cut[i + 1] - x.cut[i] > x.cut[longest + 1] - x.cut[longest])
            longest = i;
    if (x.cut[longest + 1] - x.cut[longest] <
        (int64_t)LEAST_KNOWN * l->copies * k->lanes)
        return;
    s = sd_arena_array(k->arena, plan_stretch, x.ncut + 1);
    if (x.ncut <= MOST_STRETCHES) {
        for (n = 0; n < x.ncut; n++)
            s[n] = (plan_stretch){x.cut[n], true};
    } else {
        n = 0;
        if (longest > 0)
            s[n++] = (plan_stretch){0, false};
        s[n++] = (plan_stretch){x.cut[longest], true};
        if (longest + 1 < x.ncut)
            s[n++] = (plan_stretch){x.cut[longest + 1], false};
    }
    if (n * k->nnode > MOST_AGAIN)
        return;
    k->stretch = s;
    k->nstretch = n;
}
