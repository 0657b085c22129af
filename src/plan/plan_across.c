/* Rows that lie across LANE on the host.  Short rows are summed in order, a row
 * an element of a vector, so that what a vector has lies a row apart:
 *
 *     load s0[a0*20 + a1], LANE is a0
 *
 * Such a gather goes to memory once an element.  Instead as many positions of
 * the row as a vector has elements are taken at a time, copies of the row's
 * axis: whole vectors of as many rows are read along the row, and the square is
 * turned in registers (emit_across.c).  The same, the other way round, writes
 * them.  Sums keep their order, since copies follow one another. */
#include "plan_mapping.h"

enum {
    LEAST_ROW = 4, /* elements */
    LEAST_APART = 6, /* elements, from row to row of what is read */
    LEAST_LANES = 8,
    LEAST_READ = 1 << 13, /* elements in one run: a square is a millisecond of
                             compile time, and spares a nanosecond for 16 */
    MOST_WEIGHT = 12, /* instructions of a position, which is copied, with 16
                         lanes; AVX2 has half the registers, and gathers as
                         fast */
    MUCH_READ = 1 << 17, /* elements in one run, from which on a position may
                            weigh MOST_OF_MUCH: compiling takes up to twice as
                            long, argmax a third to a tenth */
    MOST_OF_MUCH = 20,
    HEAVY = 24 /* instructions of a device function */
};

int plan_across_axis(const plan_kernel *k, const plan_pass *p)
{
    return plan_last_axis(k->stage[p->stage].axes & ~plan_nest_axes(k));
}

/* Is what n reads or writes a row, on `axis`, of LANE's lines?  What lies few
 * elements apart is read in whole vectors as it is (emit_strided.c). */
static bool is_across(const plan_node *n, int lane, int axis)
{
    int64_t along, apart;

    if ((n->kind != PN_LOAD && n->kind != PN_STORE) || n->nguard ||
        sd_is_complex(n->dtype) || !plan_expr_stride(n->off, axis, &along) ||
        along != 1 || !plan_expr_stride(n->off, lane, &apart))
        return false;
    return apart < 0 || apart >= (n->kind == PN_LOAD ? LEAST_APART : 2);
}

/* By all turns of the loops around it. */
static double reads_of(const plan_kernel *k, int axis)
{
    uint64_t axes = (1ull << k->nouter) - 1;

    return k->turns * plan_points(k, axes | 1ull << axis);
}

/* Are there enough rows, and are they long enough?  Where copies of an outer
 * axis share what they read, squares of each would be too many registers, and
 * what is parked would need a place for each. */
static bool is_worth_it(const plan_kernel *k, int lane, int axis)
{
    for (int i = 0; i < k->nouter; i++)
        if (k->axis[i].place == PLAN_UNROLL)
            return false;
    return k->lanes >= LEAST_LANES && k->axis[lane].extent >= k->lanes &&
           k->axis[axis].extent >= LEAST_ROW && reads_of(k, axis) >= LEAST_READ;
}

bool plan_has_rows_across(const plan_kernel *k, int lane, int axis)
{
    if (!is_worth_it(k, lane, axis))
        return false;
    plan_for_each_node(n, k)
        if (is_across(n, lane, axis))
            return true;
    return false;
}

int plan_parked_lanes(const plan_kernel *k)
{
    int lane = plan_lane_of(k);

    return lane >= 0 && k->axis[lane].outer ? k->lanes : 1;
}

/* Is n, which pass p needs, computed or read there, not parked before? */
static bool is_made(const plan_kernel *k, const plan_pass *p,
                    const plan_node *n)
{
    return p->needs[n->id] && (!n->parked || &k->pass[n->pass] == p);
}

/* About how many instructions a position on `axis` takes. */
static int weigh(const plan_kernel *k, const plan_pass *p, int axis)
{
    int all = 0;

    plan_for_each_node(n, k)
        if (n->kind == PN_REDUCE && n->over >> axis & 1 && p->needs[n->id])
            all += n->body->nnode - n->body->nparam;
        else if (n->varies >> axis & 1 && p->needs[n->id])
            all += n->kind == PN_ELT && is_made(k, p, n) &&
                           hlo_op_table[n->op].props & HLO_P_HEAVY
                       ? HEAVY
                       : 1;
    return all;
}

static int most_weight(const plan_kernel *k, int axis)
{
    return k->lanes == 16 && reads_of(k, axis) >= MUCH_READ
               ? MOST_OF_MUCH
               : MOST_WEIGHT * k->lanes / 16;
}

/* Could pass p take copies of its last axis?  A pass has sinks of one stage; a
 * CONTRACT that is cut into chains has loops of its own. */
static bool takes_copies(const plan_kernel *k, const plan_pass *p, int axis)
{
    if (p->how != PLAN_LANES_ONE || p->end || k->axis[axis].copies > 1 ||
        weigh(k, p, axis) > most_weight(k, axis))
        return false;
    plan_for_each_node(n, k)
        if (p->needs[n->id] && (n->kind == PN_SCAN || n->kind == PN_SCATTER ||
                                (n->kind == PN_CONTRACT && n->order.chunk)))
            return false;
    return true;
}

static bool find_rows(plan_kernel *k, const plan_pass *p, int lane, int axis)
{
    bool any = false;

    plan_for_each_node(n, k)
        if (is_made(k, p, n) && is_across(n, lane, axis))
            any = k->node[n->id]->across = true;
    return any;
}

void plan_find_across(plan_kernel *k, plan_pass *p, int lane)
{
    uint64_t inner = k->stage[p->stage].axes & ~plan_nest_axes(k);
    int axis = inner ? plan_last_axis(inner) : -1;

    if (axis >= 0 && k->axis[lane].outer && is_worth_it(k, lane, axis) &&
        takes_copies(k, p, axis) && find_rows(k, p, lane, axis))
        p->how = PLAN_LANES_ACROSS;
}
