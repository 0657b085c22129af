/* Reductions: REDUCE, windows, and the contractions that no library takes. */
#include "plan_lower.h"

#include <assert.h>

typedef const plan_expr *const *index_in;

/* The inner axes of in: the space's row where it fits, new ones otherwise. */
static void inner_axes(plan_lowering *lw, const hlo_inst *in, index_in index,
                       const plan_expr **axis, uint64_t *over)
{
    int64_t extent[SD_MAX_RANK];
    int n = plan_inner_extents(in, extent);
    const sd_shape *s = hlo_result_shape(in, 0);
    const plan_expr *at = plan_px_linear(lw->px, s->rank, s->dim, index);
    bool row = in->op == HLO_REDUCE && n == 1 && lw->space.full &&
               extent[0] == lw->space.row && at->hi < sd_shape_count(s) &&
               at == plan_space_outer(lw->px, &lw->space);

    *over = 0;
    for (int i = 0; i < n; i++) {
        axis[i] =
            row ? lw->row : plan_axis_add(lw, extent[i], PLAN_REDUCE, false);
        *over |= axis[i]->varies;
    }
}

/* A reduction over the row runs over all of it for each of its positions: what
 * is asked of the position says nothing about what is reduced.  There is one
 * for each row, so no read needs such a guard. */
static plan_guards guards_around(plan_lowering *lw, plan_guards g,
                                 uint64_t over)
{
    plan_guards r = {.g = sd_arena_array(lw->a, plan_guard, g.n)};

    for (int i = 0; i < g.n; i++)
        if (!(g.g[i].e->varies & over))
            r.g[r.n++] = g.g[i];
    return r;
}

static plan_node *view(plan_lowering *lw, const hlo_inst *in, int k,
                       index_in index, const plan_expr **axis, plan_guards g,
                       plan_node *fill)
{
    plan_view *v = sd_arena_new(lw->a, plan_view);
    const plan_expr **was = lw->viewer.axis;
    plan_guards in_bounds;
    plan_node *x;

    lw->viewer.axis = axis;
    lw->guards = g;
    plan_view_of(&lw->viewer, in, k, 0, index, v);
    lw->viewer.axis = was;
    in_bounds = plan_guards_join(lw->a, g, v->guard, v->nguard);
    x = plan_value(lw, in->arg[k], 0, v->index, in_bounds);
    return plan_node_filled(lw, x, v->guard, v->nguard, g, fill);
}

static plan_node *make_reduce(plan_lowering *lw, const hlo_inst *in, int out,
                              int nout, plan_node **arg, plan_body *body,
                              uint64_t over, int lanes)
{
    plan_node n = {.kind = PN_REDUCE,
                   .in = in,
                   .dtype = arg[0]->dtype,
                   .narg = 2 * nout,
                   .nout = nout,
                   .body = body,
                   .over = over,
                   .order = {.lanes = lanes}};
    plan_node *red;

    if (over == 0) { /* one element */
        plan_node **param = sd_arena_array(lw->a, plan_node *, 2 * nout);

        for (int i = 0; i < nout; i++) {
            param[i] = arg[nout + i];
            param[nout + i] = arg[i];
        }
        return plan_body_inline(lw, body, out, param);
    }
    n.arg = arg;
    red = plan_node_new(lw, n);
    if (red->varies & ~lw->outer)
        return plan_lower_fail(lw,
                               sd_error(SD_INTERNAL,
                                        "%s: a reduction inside another's loop",
                                        in->name),
                               red->dtype);
    if (nout == 1)
        return red;
    return plan_node_new(
        lw, (plan_node){.kind = PN_PICK,
                        .in = in,
                        .dtype = arg[out]->dtype,
                        .narg = 1,
                        .arg = sd_arena_copy(lw->a, &red, sizeof red),
                        .out = out});
}

/* All results of one reduction are one node: found again for each of them. */
static plan_node *same_reduce(plan_lowering *lw, const hlo_inst *in, int nout,
                              plan_node **arg, uint64_t over)
{
    for (int i = 0; i < lw->node.n; i++) {
        plan_node *n = lw->node.at[i];

        if (n->kind == PN_REDUCE && n->in == in && n->over == over &&
            memcmp(n->arg, arg, sizeof *arg * (size_t)nout * 2) == 0)
            return n;
    }
    return NULL;
}

/* Kernels in strands have no loop inside (plan_small.c). */
static bool is_loop_in_strands(const plan_lowering *lw, const hlo_inst *in)
{
    return lw->strands.all > 1 && in->op == HLO_REDUCE && in->dims.n == 1 &&
           in->arg[0]->shape->dim[in->dims.at[0]] > 1;
}

/* In the order in which a loop adds: from the first term on, the start last. */
static plan_node *lower_terms(plan_lowering *lw, const hlo_inst *in,
                              index_in index, plan_guards g, plan_body *body)
{
    int64_t n = in->arg[0]->shape->dim[in->dims.at[0]];
    plan_node *start = plan_value(lw, in->arg[1], 0, NULL, g), *param[2];

    for (int64_t i = 0; i < n; i++) {
        const plan_expr *at = plan_px_const(lw->px, i);
        plan_node *x = view(lw, in, 0, index, &at, g, start);

        param[1] = x;
        param[0] = i ? plan_body_inline(lw, body, 0, param) : x;
    }
    param[1] = start;
    return plan_body_inline(lw, body, 0, param);
}

/* Strided lanes of a sum of so many elements (plan_order); minor: they are
 * neighbours in memory. */
static int order_lanes(int64_t extent, bool minor)
{
    if (minor)
        return extent >= 64 ? 64 : 1;
    return extent >= 16 ? 8 : 1;
}

static plan_node *lower_reduce(plan_lowering *lw, const hlo_inst *in, int out,
                               index_in index, plan_guards g)
{
    const plan_expr *axis[SD_MAX_RANK];
    int nout = in->narg / 2, lanes = 1;
    plan_node **arg = sd_arena_array(lw->a, plan_node *, in->narg), *red;
    plan_body *body = plan_body_of(lw->a, in->comp[0], &lw->st);
    uint64_t over;

    if (!body)
        return plan_node_const(lw, in->arg[out]->shape->dtype, 0);
    if (is_loop_in_strands(lw, in))
        return lower_terms(lw, in, index, g, body);
    inner_axes(lw, in, index, axis, &over);
    g = guards_around(lw, g, over);
    for (int i = 0; i < nout; i++)
        arg[nout + i] = plan_value(lw, in->arg[nout + i], 0, NULL, g);
    for (int i = 0; i < nout; i++)
        arg[i] = view(lw, in, i, index, axis, g, arg[nout + i]);
    if (in->op == HLO_REDUCE && in->dims.n == 1) {
        const sd_shape *s = in->arg[0]->shape;
        bool minor = true;

        for (int d = (int)in->dims.at[0] + 1; d < s->rank; d++)
            minor &= s->dim[d] == 1;
        if (s->dim[in->dims.at[0]] == 0)
            return arg[nout + out];
        lanes = order_lanes(s->dim[in->dims.at[0]], minor);
    }
    red = nout > 1 ? same_reduce(lw, in, nout, arg, over) : NULL;
    if (red)
        return plan_node_new(
            lw, (plan_node){.kind = PN_PICK,
                            .in = in,
                            .dtype = arg[out]->dtype,
                            .narg = 1,
                            .out = out,
                            .arg = sd_arena_copy(lw->a, &red, sizeof red)});
    return make_reduce(lw, in, out, nout, arg, body, over, lanes);
}

bool plan_body_any_order(const plan_body *body, sd_dtype t)
{
    sd_kind kind = sd_dtype_kind(t);
    bool whole = kind != SD_K_FLOAT && kind != SD_K_COMPLEX;
    int op = body->op;

    return body->nroot == 1 &&
           (op == HLO_MAXIMUM || op == HLO_MINIMUM || op == HLO_AND ||
            op == HLO_OR || op == HLO_XOR ||
            (whole && (op == HLO_ADD || op == HLO_MULTIPLY)));
}

bool plan_any_order(const plan_node *n)
{
    return n->nout == 1 && plan_body_any_order(n->body, n->arg[0]->dtype);
}

/* ---- contractions ---- */

static sd_dtype accumulator(sd_dtype t)
{
    return sd_is_float(t) && sd_dtype_table[t].bits < 32 ? SD_F32 : t;
}

/* One product needs no loop; zero is added as to a sum's first. */
static plan_node *one_product(plan_lowering *lw, sd_dtype t, plan_node **side)
{
    plan_node *sum[2];

    sum[0] = plan_node_elt(lw, HLO_MULTIPLY, t, NULL, 2, side);
    sum[1] = plan_node_const(lw, t, 0);
    return plan_node_elt(lw, HLO_ADD, t, NULL, 2, sum);
}

/* Are products of floats rounded before they are added?  So they are where the
 * terms are so few that mostly a REDUCE adds them (hlo_lower_dot.c), as the
 * bits follow neither from the device nor from what else is computed.  Products
 * of narrow operands are exact. */
static bool is_apart(const hlo_inst *in, sd_dtype t)
{
    int64_t extent[SD_MAX_RANK], terms = 1;

    for (int i = plan_inner_extents(in, extent) - 1; i >= 0; i--)
        terms *= extent[i];
    return in->op == HLO_DOT && terms <= HLO_FEW_TERMS && sd_is_float(t) &&
           sd_dtype_table[in->arg[0]->shape->dtype].bits >= 32;
}

static plan_node *contract(plan_lowering *lw, const hlo_inst *in, sd_dtype t,
                           plan_node **side, uint64_t over)
{
    plan_node *n;

    if (over == 0)
        return one_product(lw, t, side);
    n = plan_node_new(
        lw, (plan_node){.kind = PN_CONTRACT,
                        .in = in,
                        .dtype = t,
                        .narg = 2,
                        .arg = sd_arena_copy(lw->a, side, 2 * sizeof *side),
                        .over = over,
                        .nout = 1,
                        .apart = is_apart(in, t),
                        .order = {.lanes = 1}});
    if (n->varies & ~lw->outer)
        return plan_lower_fail(lw,
                               sd_error(SD_INTERNAL,
                                        "%s: a product inside another's loop",
                                        in->name),
                               t);
    return n;
}

static plan_node *lower_contraction(plan_lowering *lw, const hlo_inst *in,
                                    index_in index, plan_guards g)
{
    const plan_expr *axis[SD_MAX_RANK];
    int64_t extent[SD_MAX_RANK];
    sd_dtype acc = accumulator(in->shape->dtype);
    plan_node *side[2];
    uint64_t over;

    for (int i = plan_inner_extents(in, extent) - 1; i >= 0; i--)
        if (extent[i] == 0)
            return plan_node_const(lw, in->shape->dtype, 0);
    inner_axes(lw, in, index, axis, &over);
    for (int k = 0; k < 2; k++) {
        sd_dtype t = in->arg[k]->shape->dtype;

        side[k] = view(lw, in, k, index, axis, g, plan_node_const(lw, t, 0));
        side[k] = plan_node_convert(lw, acc, side[k]);
    }
    return plan_node_convert(lw, in->shape->dtype,
                             contract(lw, in, acc, side, over));
}

plan_node *plan_lower_reducing(plan_lowering *lw, const hlo_inst *in, int out,
                               index_in index, plan_guards g)
{
    if (in->op == HLO_DOT || in->op == HLO_CONVOLUTION)
        return lower_contraction(lw, in, index, g);
    return lower_reduce(lw, in, out, index, g);
}
