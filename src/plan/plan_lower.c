/* A fusion's computation -> the nodes of a kernel, by demand: each output asks
 * for its element at its own place, and every instruction asks its operands at
 * the places that plan_view.c says.  Recursion is as deep as the fusion, which
 * plan_fuse bounds. */
#include "plan_lower.h"

#include <assert.h>

typedef const plan_expr *const *index_in;

static plan_node *operand(plan_lowering *lw, const hlo_inst *in, int k,
                          int which, index_in index, plan_guards g)
{
    plan_view *v = sd_arena_new(lw->a, plan_view);

    lw->guards = g;
    plan_view_of(&lw->viewer, in, k, which, index, v);
    return plan_value(lw, in->arg[k], 0, v->index,
                      plan_guards_join(lw->a, g, v->guard, v->nguard));
}

/* ---- places that depend on data ---- */

static const plan_expr *dynamic(plan_viewer *viewer, const hlo_inst *in, int k,
                                index_in index, int64_t hi)
{
    plan_lowering *lw = (plan_lowering *)viewer;
    plan_guards g = lw->guards;
    plan_node *n;
    sd_dtype t;
    int64_t most;

    if (hi == 0)
        return plan_px_const(lw->px, 0);
    n = plan_value(lw, in->arg[k], 0, index, g);
    lw->guards = g;
    t = n->dtype;
    if (n->kind == PN_CONST) {
        int64_t c = sd_scalar_to_s64(t, n->value);

        if (sd_dtype_kind(t) == SD_K_UINT && c < 0)
            c = hi; /* u64 beyond s64 */
        return plan_px_const(lw->px, SD_MIN(SD_MAX(c, 0), hi));
    }
    if (n->kind == PN_INDEX && n->off->lo >= 0 && n->off->hi <= hi)
        return n->off;
    most = sd_dtype_table[t].bits >= 63
               ? INT64_MAX
               : (1ll << (sd_dtype_table[t].bits - sd_is_signed(t))) - 1;
    most = SD_MIN(most, hi);
    if (sd_is_signed(t))
        n = plan_node_elt(lw, HLO_CLAMP, t, in, 3,
                          (plan_node *[]){plan_node_const(lw, t, 0), n,
                                          plan_node_const(lw, t, most)});
    else
        n = plan_node_elt(lw, HLO_MINIMUM, t, in, 2,
                          (plan_node *[]){n, plan_node_const(lw, t, most)});
    /* sign extension must not see an unsigned number as negative */
    if (!sd_is_signed(t))
        n = plan_node_convert(lw, SD_S64, n);
    return plan_px_node(lw->px, n, 0, most);
}

/* ---- data movement ---- */

static int slot_of(plan_lowering *lw, const hlo_inst *param)
{
    int i = (int)param->u.param.index;

    lw->k->slot[i].access |= PLAN_READ;
    return i;
}

static plan_node *lower_load(plan_lowering *lw, const hlo_inst *in,
                             index_in index, plan_guards g)
{
    const plan_expr *off =
        plan_px_linear(lw->px, in->shape->rank, in->shape->dim, index);
    plan_node n = {.kind = PN_LOAD,
                   .in = in,
                   .dtype = in->shape->dtype,
                   .slot = slot_of(lw, in),
                   .off = off};

    /* a guard only keeps the read inside the array */
    if (off->lo < 0 || off->hi >= sd_shape_count(in->shape)) {
        n.guard = g.g;
        n.nguard = g.n;
    }
    return plan_node_new(lw, n);
}

static plan_node *lower_pad(plan_lowering *lw, const hlo_inst *in,
                            index_in index, plan_guards g)
{
    plan_view *v = sd_arena_new(lw->a, plan_view);
    plan_node *fill = plan_value(lw, in->arg[1], 0, NULL, g), *x;

    plan_view_of(&lw->viewer, in, 0, 0, index, v);
    for (int i = 0; i < v->nguard; i++)
        if (v->guard[i].e->hi < v->guard[i].lo ||
            v->guard[i].e->lo >= v->guard[i].hi)
            return fill;
    x = plan_value(lw, in->arg[0], 0, v->index,
                   plan_guards_join(lw->a, g, v->guard, v->nguard));
    return plan_node_filled(lw, x, v->guard, v->nguard, g, fill);
}

static plan_node *lower_concatenate(plan_lowering *lw, const hlo_inst *in,
                                    index_in index, plan_guards g)
{
    int64_t dim = in->dims.at[0], end = in->shape->dim[dim];
    const plan_expr *e = index[dim];
    plan_node *all = NULL;

    for (int k = in->narg - 1; k >= 0; k--) {
        int64_t start = end - in->arg[k]->shape->dim[dim];
        plan_node *x;

        if (start < end && e->hi >= start && e->lo < end) {
            x = operand(lw, in, k, 0, index, g);
            all = all ? plan_node_filled(lw, x, &(plan_guard){e, start, end}, 1,
                                         g, all)
                      : x;
        }
        end = start;
    }
    if (!all) /* in padding only: a guard keeps it from being used */
        all = plan_node_const(lw, in->shape->dtype, 0);
    return all;
}

/* ---- elementwise ---- */

/* What plan_fuse leaves to kernels and memory of its own. */
static plan_node *misplaced(plan_lowering *lw, const hlo_inst *in)
{
    return plan_lower_fail(lw,
                           sd_error(SD_INTERNAL, "%s %s inside a fusion",
                                    hlo_op_table[in->op].name, in->name),
                           in->shape->dtype);
}

static plan_node *lower_constant(plan_lowering *lw, const hlo_inst *in)
{
    if (in->shape->rank > 0 && !hlo_is_splat(in))
        return misplaced(lw, in);
    return plan_node_data(lw, in->shape->dtype, in->u.literal.data);
}

/* Bits of one wide element as several narrow ones, or back: shifts. */
static plan_node *lower_bitcast(plan_lowering *lw, const hlo_inst *in,
                                index_in index, plan_guards g)
{
    sd_dtype to = in->shape->dtype, from = in->arg[0]->shape->dtype;
    int bits_to = sd_dtype_table[to].bits,
        bits_from = sd_dtype_table[from].bits;
    sd_dtype ut = sd_dtype_unsigned(bits_to), uf = sd_dtype_unsigned(bits_from);
    int bits = SD_MIN(bits_to, bits_from);
    int n = plan_view_count(in, 0);
    plan_node *all = NULL, *x;

    if (bits_to == bits_from) {
        x = operand(lw, in, 0, 0, index, g);
        return plan_node_elt(lw, HLO_BITCAST_CONVERT, to, in, 1, &x);
    }
    if (n == 1) { /* one wide element has it */
        x = operand(lw, in, 0, 0, index, g);
        x = plan_node_elt(lw, HLO_BITCAST_CONVERT, uf, NULL, 1, &x);
        all = plan_node_index(
            lw, uf, plan_px_mul(lw->px, index[in->shape->rank - 1], bits));
        x = plan_node_elt(lw, HLO_SHR_LOGIC, uf, NULL, 2,
                          (plan_node *[]){x, all});
        x = plan_node_convert(lw, ut, x);
        return plan_node_elt(lw, HLO_BITCAST_CONVERT, to, NULL, 1, &x);
    }
    for (int i = 0; i < n; i++) {
        x = operand(lw, in, 0, i, index, g);
        x = plan_node_elt(lw, HLO_BITCAST_CONVERT, uf, NULL, 1, &x);
        x = plan_node_convert(lw, ut, x);
        if (i)
            x = plan_node_elt(
                lw, HLO_SHL, ut, NULL, 2,
                (plan_node *[]){x, plan_node_const(lw, ut, i * bits)});
        all = all ? plan_node_elt(lw, HLO_OR, ut, NULL, 2,
                                  (plan_node *[]){all, x})
                  : x;
    }
    return plan_node_elt(lw, HLO_BITCAST_CONVERT, to, NULL, 1, &all);
}

static plan_node *lower_element(plan_lowering *lw, const hlo_inst *in,
                                index_in index, plan_guards g)
{
    plan_node *arg[8];

    assert(in->narg <= 8);
    for (int i = 0; i < in->narg; i++)
        arg[i] = operand(lw, in, i, 0, index, g);
    if (in->op == HLO_CONVERT)
        return plan_node_convert(lw, in->shape->dtype, arg[0]);
    return plan_node_elt(lw, in->op, in->shape->dtype, in, in->narg, arg);
}

/* ---- demand ---- */

static plan_node *lower_value(plan_lowering *lw, const hlo_inst *in, int out,
                              index_in index, plan_guards g)
{
    if (hlo_is_elementwise(in))
        return lower_element(lw, in, index, g);
    switch (in->op) {
    case HLO_PARAMETER:
        return lower_load(lw, in, index, g);
    case HLO_CONSTANT:
        return lower_constant(lw, in);
    case HLO_IOTA:
        return plan_node_index(lw, in->shape->dtype, index[in->dims.at[0]]);
    case HLO_GET_TUPLE_ELEMENT:
        return plan_value(lw, in->arg[0], (int)in->u.tuple.index, index, g);
    case HLO_PAD:
        return lower_pad(lw, in, index, g);
    case HLO_CONCATENATE:
        return lower_concatenate(lw, in, index, g);
    case HLO_BITCAST_CONVERT:
        return lower_bitcast(lw, in, index, g);
    case HLO_REDUCE:
    case HLO_REDUCE_WINDOW:
    case HLO_DOT:
    case HLO_CONVOLUTION:
        return plan_lower_reducing(lw, in, out, index, g);
    case HLO_BROADCAST:
    case HLO_RESHAPE:
    case HLO_BITCAST:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_SLICE:
    case HLO_COPY:
    case HLO_DYNAMIC_SLICE:
    case HLO_GATHER:
    case HLO_OPT_BARRIER:
        return operand(lw, in, 0, 0, index, g);
    default:
        return misplaced(lw, in);
    }
}

typedef struct memo {
    const hlo_inst *in;
    int out, rank;
    const plan_expr **index;
    plan_guards g;
    plan_node *n;
    struct memo *next;
} memo;

static bool same_memo(const memo *m, const memo *o)
{
    if (m->in != o->in || m->out != o->out)
        return false;
    for (int i = 0; i < m->rank; i++)
        if (m->index[i] != o->index[i])
            return false;
    return plan_guards_same(m->g, o->g);
}

plan_node *plan_value(plan_lowering *lw, const hlo_inst *in, int out,
                      index_in index, plan_guards g)
{
    memo *m = sd_arena_new(lw->a, memo), *first;
    uint64_t h;
    size_t bytes;

    m->in = in;
    m->out = out;
    m->g = g;
    m->rank = hlo_result_shape(in, out)->rank;
    bytes = (size_t)m->rank * sizeof *index;
    m->index = bytes ? sd_arena_copy(lw->a, index, bytes) : NULL;
    h = sd_hash(m->index, bytes, sd_key(in) + (uint64_t)out);
    first = sd_map_get(lw->memo, h);
    for (memo *o = first; o; o = o->next)
        if (same_memo(m, o))
            return o->n;
    if (lw->node.n > PLAN_MOST_NODES)
        return plan_lower_fail(
            lw,
            sd_error(SD_UNIMPLEMENTED,
                     "%s: a kernel of more than %d operations; split the "
                     "operation, which may have too many operands",
                     lw->fusion->name, PLAN_MOST_NODES),
            hlo_result_shape(in, out)->dtype);
    m->n = lower_value(lw, in, out, m->index, g);
    m->next = sd_map_get(lw->memo, h);
    sd_map_set(lw->memo, h, m);
    return m->n;
}

/* ---- a kernel ---- */

static const hlo_inst *root_at(const hlo_inst *root, int i, int *out)
{
    const hlo_inst *in = root;

    *out = 0;
    if (root->op == HLO_TUPLE)
        in = root->arg[i];
    else
        *out = i;
    return in;
}

static void add_slots(plan_lowering *lw, const hlo_comp *c)
{
    plan_kernel *k = lw->k;
    const sd_shape *s = c->root->shape;
    int nout = sd_shape_nresult(s);

    k->nslot = c->nparam + nout;
    k->slot = sd_arena_array(lw->a, plan_slot, k->nslot);
    for (int i = 0; i < k->nslot; i++) {
        const sd_shape *t = i < c->nparam ? c->param[i]->shape
                                          : sd_shape_result(s, i - c->nparam);

        k->slot[i] = (plan_slot){.dtype = t->dtype,
                                 .count = sd_shape_count(t),
                                 .align = 16,
                                 .noalias = true};
        if (i >= c->nparam)
            k->slot[i].access = PLAN_WRITE;
    }
}

static const hlo_inst *first_reduce(const hlo_comp *c)
{
    hlo_for_each_inst(in, c)
        if (in->op == HLO_REDUCE && in->dims.n == 1)
            return in;
    return NULL;
}

/* One that is in strands keeps its number, with 1 position too. */
static void add_outer_axis(plan_lowering *lw, int64_t extent)
{
    int i = lw->axis.n, n = lw->strands.all > 1 ? lw->strands.n[i] : 1;

    plan_axis_add(lw, extent, PLAN_MAP, true);
    lw->axis.at[i].extent = lw->axis.at[i].tile = (extent + n - 1) / n;
}

static void begin_space(plan_lowering *lw, const hlo_comp *c)
{
    int out;
    const hlo_inst *root = root_at(c->root, 0, &out);

    /* in strands a sum has no loop */
    plan_space_of(root, lw->strands.all > 1 ? NULL : first_reduce(c),
                  &lw->space);
    for (int i = 0; i < lw->space.outer->rank; i++)
        if (lw->space.outer->dim[i] != 1)
            add_outer_axis(lw, lw->space.outer->dim[i]);
    if (lw->space.full)
        lw->row = plan_axis_add(lw, lw->space.row, PLAN_REDUCE, false);
}

static void lower_outputs(plan_lowering *lw, const hlo_comp *c)
{
    int nout = lw->k->nslot - c->nparam;

    for (int i = 0; i < nout && !lw->st; i++) {
        const plan_expr *index[SD_MAX_RANK];
        int out;
        const hlo_inst *in = root_at(c->root, i, &out);
        const sd_shape *s = hlo_result_shape(in, out);
        plan_node n = {.kind = PN_STORE,
                       .in = in,
                       .dtype = s->dtype,
                       .slot = c->nparam + i,
                       .narg = 1};

        if (!plan_space_index(lw->px, &lw->space, s, index)) {
            lw->st = sd_error(SD_INTERNAL, "%s: output %d is not in its space",
                              lw->fusion->name, i);
            return;
        }
        for (int j = 0; j < lw->strands.all; j++) {
            const plan_expr *at[SD_MAX_RANK];
            plan_guards g = plan_strand(lw, j, s->rank, index, at);

            n.arg = sd_arena_array(lw->a, plan_node *, 1);
            n.arg[0] = plan_value(lw, in, out, at, g);
            n.off = plan_px_linear(lw->px, s->rank, s->dim, at);
            n.guard = g.g;
            n.nguard = g.n;
            plan_node_new(lw, n);
        }
    }
}

/* A fusion with a sort is that, and slices of its results. */
static const hlo_inst *sort_in(const hlo_comp *c)
{
    hlo_for_each_inst(in, c)
        if (in->op == HLO_SORT)
            return in;
    return NULL;
}

static void begin(plan_lowering *lw, sd_arena *a, hlo_inst *fusion,
                  plan_strands strands)
{
    *lw = (plan_lowering){.viewer = {.dynamic = dynamic},
                          .a = a,
                          .fusion = fusion,
                          .strands = strands};
    lw->px = lw->viewer.px = plan_px_create(a);
    lw->memo = sd_map_create(a);
    lw->unique = sd_map_create(a);
    lw->k = sd_arena_new(a, plan_kernel);
    lw->k->name = fusion->name;
    lw->k->arena = a;
    lw->k->turns = 1;
    add_slots(lw, fusion->comp[0]);
}

static void lower_fused(plan_lowering *lw)
{
    begin_space(lw, lw->fusion->comp[0]);
    lower_outputs(lw, lw->fusion->comp[0]);
    if (!lw->st)
        plan_finish_kernel(lw);
}

/* By positions of a row; or once whole, and if it turns out to be woven of
 * several, as these. */
static void lower_woven(plan_lowering *lw)
{
    plan_strands s;

    if (plan_row_strands(lw->fusion->comp[0], &s) ||
        plan_small_strands(lw->fusion->comp[0], &s)) {
        begin(lw, lw->a, lw->fusion, s);
        lower_fused(lw);
        return;
    }
    lower_fused(lw);
    if (!lw->st && plan_find_strands(lw->k, &s)) {
        begin(lw, lw->a, lw->fusion, s);
        lower_fused(lw);
    }
}

sd_status plan_lower_part(sd_arena *a, hlo_inst *fusion, plan_scatter_part part,
                          sd_dtype type, plan_kernel **out)
{
    const hlo_inst *root = fusion->comp[0]->root;
    plan_lowering lw;

    if (root->op == HLO_GET_TUPLE_ELEMENT)
        root = root->arg[0];
    begin(&lw, a, fusion, (plan_strands){.all = 1});
    if (!(lw.st = part(&lw, root, type)))
        plan_finish_kernel(&lw);
    *out = lw.k;
    return sd_note(lw.st, "planning %s", fusion->name);
}

sd_status plan_lower(sd_arena *a, hlo_inst *fusion, plan_kernel **out)
{
    hlo_comp *c = fusion->comp[0];
    plan_lowering lw;
    const hlo_inst *root = c->root;

    if (root->op == HLO_GET_TUPLE_ELEMENT)
        root = root->arg[0];
    if (sort_in(c))
        root = sort_in(c);
    begin(&lw, a, fusion, (plan_strands){.all = 1});
    switch (root->op) {
    case HLO_SORT:
        lw.st = plan_lower_sort(&lw, root);
        break;
    case HLO_CUSTOM_CALL:
        lw.st = hlo_attend_is_named(root)   ? plan_lower_attend(&lw, root)
                : hlo_places_is_named(root) ? plan_lower_placing(&lw, root)
                                            : plan_lower_call(&lw, root);
        break;
    case HLO_SCATTER:
        lw.st = plan_lower_scatter(&lw, root);
        break;
    case HLO_SCAN:
        lw.st = plan_lower_scan(&lw, root);
        break;
    default:
        if (root->op == HLO_DYNAMIC_UPDATE_SLICE &&
            root->arg[0]->op == HLO_PARAMETER) {
            lw.st = plan_lower_update(&lw, root);
            break;
        }
        lower_woven(&lw);
        *out = lw.k;
        return sd_note(lw.st, "planning %s", fusion->name);
    }
    if (!lw.st)
        plan_finish_kernel(&lw);
    *out = lw.k;
    return sd_note(lw.st, "planning %s", fusion->name);
}
