/* Where passes end.  A long sum is cut into pieces of one length, of which the
 * last is filled up with what changes no sum (hlo_split_reduce.c), so that all
 * have one loop; but then each position is asked whether it is there, and reads
 * are masked: a sum of 1,000,003 numbers took twice the time of 1,048,576.  The
 * loop of a pass all of whose sums are filled from one position on ends there,
 * and asks nothing before. */
#include "plan_mapping.h"

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
    const plan_node *x, *init;

    if (n->kind != PN_REDUCE || n->nout != 1 || !is_neutral(n, n->arg[1]))
        return false;
    x = n->arg[0];
    init = n->arg[1];
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
    plan_for_each_axis(a, e->varies)
        if (a != axis && (!k->axis[a].outer || k->axis[a].place == PLAN_LANE ||
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

bool plan_repeats_end(const plan_kernel *k)
{
    return k->cls == PLAN_LOOP && k->naxis == k->nouter && k->lanes > 1 &&
           plan_may_repeat(k);
}
