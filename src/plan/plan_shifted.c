/* Short rows side by side, on the host.  Sums of rows of two to eight numbers
 * are made in order, LANE is the rows:
 *
 *     load s0[a0*4 + a1], LANE is a0, a1 is summed
 *
 * To read every fourth number of memory takes shuffles, for each of the four
 * positions anew.  Instead each number of memory becomes the sum of the four
 * from it on: four reads of whole vectors, one number further each, added in
 * the same order.  Every fourth of these sums is a row's, and is taken out by
 * the shuffles of one position (emit_shifted.c).  What is added besides costs
 * less, as long as it is one instruction. */
#include "plan_mapping.h"

/* Numbers of a row, by their bytes: longer ones are turned in registers as
 * quickly (plan_across.c), and eight bytes are no faster so. */
static const int most_row[9] = {[1] = 8, [2] = 6, [4] = 5};

/* Of t, do vectors take one instruction for it? */
static bool is_quick(hlo_op op, sd_dtype t)
{
    switch (op) {
    case HLO_AND:
    case HLO_OR:
        return true;
    case HLO_ADD:
        return t != SD_PRED;
    case HLO_MAXIMUM:
    case HLO_MINIMUM:
    case HLO_XOR:
        return t != SD_PRED && !sd_is_float(t);
    default:
        return false;
    }
}

static bool has_bytes(sd_dtype t)
{
    return t == SD_PRED || t == SD_F32 ||
           (!sd_is_float(t) && !sd_is_complex(t) &&
            sd_dtype_table[t].bits >= 8);
}

/* Has x the numbers of LANE's rows, which follow one another? */
static bool reads_rows(const plan_kernel *k, const plan_node *x, int lane,
                       int axis)
{
    int64_t along, apart, row = k->axis[axis].extent;
    size_t bytes = sd_dtype_bytes(x->dtype);

    return has_bytes(x->dtype) && bytes < SD_COUNTOF(most_row) &&
           row <= most_row[bytes] && x->kind == PN_LOAD && !x->nguard &&
           !x->parked && plan_expr_stride(x->off, axis, &along) && along == 1 &&
           plan_expr_stride(x->off, lane, &apart) && apart == row;
}

static bool sums_rows(const plan_kernel *k, const plan_node *n, int lane,
                      int axis)
{
    return n->kind == PN_REDUCE && n->nout == 1 && n->over == 1ull << axis &&
           n->body->op >= 0 &&
           is_quick((hlo_op)n->body->op, n->arg[0]->dtype) &&
           reads_rows(k, n->arg[0], lane, axis);
}

void plan_find_shifted(const plan_kernel *k, plan_pass *p, int lane)
{
    uint64_t inner = k->stage[p->stage].axes & ~plan_nest_axes(k);
    int axis = inner ? plan_last_axis(inner) : -1;
    bool any = false;

    if (axis < 0 || inner != 1ull << axis || p->how != PLAN_LANES_ONE ||
        p->end || !k->axis[lane].outer || k->axis[axis].extent < 2)
        return;
    for (int i = 0; i < k->nouter; i++)
        if (k->axis[i].place == PLAN_UNROLL)
            return;
    plan_for_each_node(n, k) {
        if (n->pass != p - k->pass)
            continue;
        if (!sums_rows(k, n, lane, axis))
            return;
        any = true;
    }
    if (any) {
        p->how = PLAN_LANES_SHIFTED;
        p->ahead = 0;
    }
}
