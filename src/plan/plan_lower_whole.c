/* Kernels of one instruction: updates in place, scatters, scans, sorts. */
#include "plan_lower.h"
#include "plan_whole.h"

typedef const plan_expr *const *index_in;

static plan_node **one(plan_lowering *lw, plan_node *n)
{
    return sd_arena_copy(lw->a, &n, sizeof n);
}

static int first_out(const plan_lowering *lw)
{
    return lw->fusion->comp[0]->nparam;
}

/* The clamped start of a dynamic update: the viewer's own rule. */
static const plan_expr *start_of(plan_lowering *lw, const hlo_inst *in, int d)
{
    int64_t room = in->shape->dim[d] - in->arg[1]->shape->dim[d];

    lw->guards = (plan_guards){0};
    return lw->viewer.dynamic(&lw->viewer, in, 2 + d, NULL, room);
}

/* Only the update is written; the rest of the result is the operand, whose
 * buffer it has. */
sd_status plan_lower_update(plan_lowering *lw, const hlo_inst *in)
{
    const sd_shape *s = in->shape, *u = in->arg[1]->shape;
    const plan_expr *index[SD_MAX_RANK], *at[SD_MAX_RANK];
    plan_node n = {.kind = PN_STORE,
                   .in = in,
                   .dtype = s->dtype,
                   .slot = first_out(lw),
                   .narg = 1};

    for (int d = 0; d < u->rank; d++)
        index[d] = plan_axis_add(lw, u->dim[d], PLAN_MAP, true);
    for (int d = 0; d < u->rank; d++)
        at[d] = plan_px_add(lw->px, index[d], start_of(lw, in, d));
    n.arg = one(lw, plan_value(lw, in->arg[1], 0, index, (plan_guards){0}));
    n.off = plan_px_linear(lw->px, s->rank, s->dim, at);
    plan_node_new(lw, n);
    return lw->st;
}

/* Where component d of the window's place is read: row axis of the indices. */
static const plan_expr *scatter_start(plan_lowering *lw, const hlo_inst *in,
                                      int d, const plan_expr *const *row)
{
    const hlo_gather *g = in->u.gather;
    const hlo_inst *idx = in->arg[hlo_ninput(in)];
    const plan_expr *index[3] = {row[0], row[1]};
    plan_node *n;
    int c = 0;

    while (c < g->index_map.n && g->index_map.at[c] != d)
        c++;
    if (c == g->index_map.n)
        return plan_px_const(lw->px, 0);
    index[g->index_vector_dim] = plan_px_const(lw->px, c);
    n = plan_value(lw, idx, 0, index, (plan_guards){0});
    if (n->kind == PN_CONST)
        return plan_px_const(lw->px, sd_scalar_to_s64(n->dtype, n->value));
    if (n->kind == PN_INDEX)
        return n->off;
    if (n->dtype == SD_S32)
        return plan_px_node(lw->px, n, INT32_MIN, INT32_MAX);
    return plan_px_node(lw->px, n, INT64_MIN / 4, INT64_MAX / 4);
}

static bool has_form(const hlo_inst *in)
{
    const hlo_gather *g = in->u.gather;
    const sd_shape *s = in->arg[0]->shape;
    const sd_shape *idx = in->arg[hlo_ninput(in)]->shape;
    const sd_shape *u = in->arg[hlo_ninput(in) + 1]->shape;
    int batch = g->operand_batch.n;

    return hlo_ninput(in) == 1 && batch <= 1 && idx->rank == 2 + batch &&
           g->index_vector_dim == 1 + batch && g->collapsed.n == 0 &&
           u->rank == s->rank + 1 && g->offset_dims.n == s->rank - batch &&
           (s->rank == batch || g->offset_dims.at[0] == 1 + batch);
}

/* Two windows may meet at different positions of dimension d of the updates:
 * not where windows are one wide, or all that there is, or only one. */
static bool may_overlap(const hlo_inst *in, int d)
{
    const sd_shape *s = in->arg[0]->shape, *u = in->arg[2]->shape;

    return u->dim[in->u.gather->operand_batch.n] > 1 && u->dim[d] > 1 &&
           u->dim[d] < s->dim[d - 1];
}

/* Axes of the updates, [batch, row, window..] or [row, window..]: windows are
 * applied in the order of their indices, so rows are a loop inside a lane;
 * lanes and tiles share batches and the places of a window, as long as no two
 * lanes can come to one place. */
static uint64_t scatter_axes(plan_lowering *lw, const hlo_inst *in,
                             const plan_expr **index)
{
    const sd_shape *u = in->arg[2]->shape;
    int row = in->u.gather->operand_batch.n;
    uint64_t over;

    for (int d = 0; d < u->rank; d++)
        if (d < row || (d > row && !may_overlap(in, d)))
            index[d] = plan_axis_add(lw, u->dim[d], PLAN_MAP, true);
    index[row] = plan_axis_add(lw, u->dim[row], PLAN_REDUCE, false);
    over = index[row]->varies;
    for (int d = row + 1; d < u->rank; d++)
        if (may_overlap(in, d)) {
            index[d] = plan_axis_add(lw, u->dim[d], PLAN_REDUCE, false);
            over |= index[d]->varies;
        }
    return over;
}

sd_status plan_lower_scatter(plan_lowering *lw, const hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;
    const sd_shape *u = in->arg[hlo_ninput(in) + 1]->shape;
    const plan_expr *index[SD_MAX_RANK + 1], *at[SD_MAX_RANK];
    int batch = in->u.gather->operand_batch.n;
    plan_node n = {.kind = PN_SCATTER,
                   .in = in,
                   .dtype = s->dtype,
                   .slot = first_out(lw),
                   .narg = 1};

    if (!has_form(in))
        return sd_error(SD_INTERNAL, "%s: not the form that plans take",
                        in->name);
    lw->k->cls = PLAN_SCATTERING;
    lw->k->slot[n.slot].access = PLAN_READ | PLAN_WRITE;
    n.over = scatter_axes(lw, in, index);
    n.guard = sd_arena_array(lw->a, plan_guard, s->rank + 1);
    for (int d = 0; d < batch; d++)
        at[d] = index[d];
    for (int d = batch; d < s->rank; d++) {
        const plan_expr *start = scatter_start(lw, in, d, index);
        int64_t room = s->dim[d] - u->dim[d + 1] + 1;

        at[d] = plan_px_add(lw->px, start, index[d + 1]);
        if (start->lo < 0 || start->hi >= room)
            n.guard[n.nguard++] = (plan_guard){start, 0, room};
    }
    n.arg = sd_arena_array(lw->a, plan_node *, 2);
    n.arg[0] = plan_value(lw, in->arg[2], 0, index, (plan_guards){0});
    if (in->arg[0]->op == HLO_BROADCAST) /* plan_fill.c */
        n.arg[n.narg++] =
            plan_value(lw, in->arg[0]->arg[0], 0, NULL, (plan_guards){0});
    n.off = plan_px_linear(lw->px, s->rank, s->dim, at);
    n.body = plan_body_of(lw->a, in->comp[0], &lw->st);
    plan_node_new(lw, n);
    return lw->st;
}

/* A list of the updates, an element each, as the kernel's last slot. */
static int add_list(plan_lowering *lw, const hlo_inst *in, sd_dtype type,
                    plan_access access)
{
    const sd_shape *u = in->arg[2]->shape;
    int slot = lw->k->nslot;
    plan_slot *all = sd_arena_array(lw->a, plan_slot, slot + 1);

    memcpy(all, lw->k->slot, (size_t)slot * sizeof *all);
    all[slot] = (plan_slot){
        .dtype = type,
        .count = u->dim[0] * (in->u.gather->operand_batch.n ? u->dim[1] : 1),
        .access = (uint8_t)access,
        .align = 16,
        .noalias = true};
    lw->k->slot = all;
    lw->k->nslot++;
    return slot;
}

/* Axes [batch, row] of the updates; the place in a list. */
static const plan_expr *list_axes(plan_lowering *lw, const hlo_inst *in,
                                  const plan_expr **index)
{
    const sd_shape *u = in->arg[2]->shape;
    int row = in->u.gather->operand_batch.n;

    for (int d = 0; d <= row; d++)
        index[d] = plan_axis_add(lw, u->dim[d], PLAN_MAP, true);
    return plan_px_linear(lw->px, row + 1, u->dim, index);
}

static void store_in_list(plan_lowering *lw, const hlo_inst *in, plan_node *n,
                          const plan_expr *at)
{
    plan_node_new(lw,
                  (plan_node){.kind = PN_STORE,
                              .dtype = n->dtype,
                              .slot = add_list(lw, in, n->dtype, PLAN_WRITE),
                              .off = at,
                              .narg = 1,
                              .arg = one(lw, n)});
}

int64_t plan_place_unit(const hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;
    const hlo_gather *g = in->u.gather;
    int64_t unit = 0;

    for (int i = 0; i < g->index_map.n; i++)
        if (s->dim[g->index_map.at[i]] > 1) {
            int64_t stride = 1;

            for (int64_t d = g->index_map.at[i] + 1; d < s->rank; d++)
                stride *= s->dim[d];
            unit = sd_gcd(unit, stride);
        }
    return SD_MAX(unit, 1);
}

/* In units; all ones where nothing is updated. */
static plan_node *place_of(plan_lowering *lw, const hlo_inst *in, sd_dtype type,
                           const plan_expr *const *index, int64_t unit)
{
    const sd_shape *s = in->arg[0]->shape, *u = in->arg[2]->shape;
    const plan_expr *at[SD_MAX_RANK];
    plan_guard *g = sd_arena_array(lw->a, plan_guard, s->rank + 1);
    plan_node *place, *inside;
    int row = in->u.gather->operand_batch.n, ng = 0;

    at[0] = plan_px_const(lw->px, 0);
    for (int d = row; d < s->rank; d++) {
        int64_t room = s->dim[d] - u->dim[d + 1] + 1;

        at[d] = scatter_start(lw, in, d, index);
        if (at[d]->lo < 0 || at[d]->hi >= room)
            g[ng++] = (plan_guard){at[d], 0, room};
    }
    place = plan_node_index(
        lw, type,
        plan_px_div(lw->px, plan_px_linear(lw->px, s->rank, s->dim, at), unit));
    if ((inside = plan_node_holds(lw, g, ng)))
        place = plan_node_elt(
            lw, HLO_SELECT, type, NULL, 3,
            (plan_node *[]){inside, place, plan_node_const(lw, type, -1)});
    return place;
}

sd_status plan_lower_places(plan_lowering *lw, const hlo_inst *in,
                            sd_dtype type)
{
    const plan_expr *index[2], *at = list_axes(lw, in, index);

    store_in_list(lw, in, place_of(lw, in, type, index, plan_place_unit(in)),
                  at);
    return lw->st;
}

sd_status plan_lower_updates(plan_lowering *lw, const hlo_inst *in,
                             sd_dtype type)
{
    const plan_expr *index[SD_MAX_RANK + 1], *at = list_axes(lw, in, index);

    for (int d = in->u.gather->operand_batch.n + 1; d < in->arg[2]->shape->rank;
         d++)
        index[d] = plan_px_const(lw->px, 0);
    store_in_list(lw, in, place_of(lw, in, type, index, 1), at);
    store_in_list(lw, in,
                  plan_value(lw, in->arg[2], 0, index, (plan_guards){0}), at);
    return lw->st;
}

static plan_node *read_list(plan_lowering *lw, const hlo_inst *in, sd_dtype t,
                            const plan_expr *at)
{
    return plan_node_new(lw, (plan_node){.kind = PN_LOAD,
                                         .dtype = t,
                                         .slot = add_list(lw, in, t, PLAN_READ),
                                         .off = at});
}

sd_status plan_lower_listed(plan_lowering *lw, const hlo_inst *in,
                            sd_dtype type)
{
    const sd_shape *s = in->arg[0]->shape;
    const plan_expr *index[2], *at = list_axes(lw, in, index);
    int batch = in->u.gather->operand_batch.n;
    int64_t places = sd_shape_count(s) / (batch ? s->dim[0] : 1);
    plan_node *key = read_list(lw, in, type, at);
    plan_node n = {.kind = PN_SCATTER,
                   .in = in,
                   .dtype = s->dtype,
                   .slot = first_out(lw),
                   .narg = 1};

    lw->k->cls = PLAN_SCATTERING;
    lw->k->slot[n.slot].access = PLAN_READ | PLAN_WRITE;
    n.arg = one(lw, read_list(lw, in, in->arg[2]->shape->dtype, at));
    n.off = plan_px_node(lw->px, key, 0, places - 1);
    if (batch)
        n.off = plan_px_mad(lw->px, n.off, places, index[0]);
    n.body = plan_body_of(lw->a, in->comp[0], &lw->st);
    plan_node_new(lw, n);
    return lw->st;
}

/* The running axis is a loop of one lane; from the end means that the places,
 * not the loop, go backwards. */
sd_status plan_lower_scan(plan_lowering *lw, const hlo_inst *in)
{
    int nout = in->narg / 2, d = (int)in->u.scan.dim, first = first_out(lw);
    const sd_shape *s = in->arg[0]->shape;
    const plan_expr *index[SD_MAX_RANK], *run;
    plan_node n = {.kind = PN_SCAN,
                   .in = in,
                   .dtype = s->dtype,
                   .narg = in->narg,
                   .nout = nout,
                   .order = {.lanes = 1},
                   .exclusive = in->u.scan.exclusive};
    plan_node *scan;

    for (int i = 0; i < s->rank; i++)
        if (i != d)
            index[i] = plan_axis_add(lw, s->dim[i], PLAN_MAP, true);
    /* a lone element still needs its loop */
    run = plan_axis_add(lw, SD_MAX(s->dim[d], 2), PLAN_SCAN, false);
    lw->axis.at[lw->axis.n - 1].extent = s->dim[d];
    lw->axis.at[lw->axis.n - 1].tile = s->dim[d];
    n.over = run->varies;
    if (s->dim[d] == 1)
        run = plan_px_const(lw->px, 0);
    index[d] =
        in->u.scan.reverse
            ? plan_px_mad(lw->px, plan_px_const(lw->px, s->dim[d] - 1), -1, run)
            : run;
    n.body = plan_body_of(lw->a, in->comp[0], &lw->st);
    if (lw->st)
        return lw->st;
    n.arg = sd_arena_array(lw->a, plan_node *, in->narg);
    for (int i = 0; i < in->narg; i++)
        n.arg[i] = plan_value(lw, in->arg[i], 0, i < nout ? index : NULL,
                              (plan_guards){0});
    scan = plan_node_new(lw, n);
    for (int i = 0; i < nout; i++) {
        plan_node *x = scan;

        if (nout > 1)
            x = plan_node_new(lw, (plan_node){.kind = PN_PICK,
                                              .in = in,
                                              .dtype = n.arg[i]->dtype,
                                              .narg = 1,
                                              .out = i,
                                              .arg = one(lw, scan)});
        plan_node_new(lw, (plan_node){.kind = PN_STORE,
                                      .in = in,
                                      .dtype = x->dtype,
                                      .slot = first + i,
                                      .narg = 1,
                                      .arg = one(lw, x),
                                      .off = plan_px_linear(lw->px, s->rank,
                                                            s->dim, index)});
    }
    return lw->st;
}

/* ---- sorts ---- */

/* Which result of the sort is x, of the fusion's root? */
static int result_of(const hlo_inst *x)
{
    if (x->op == HLO_SLICE)
        x = x->arg[0];
    return x->op == HLO_GET_TUPLE_ELEMENT ? (int)x->u.tuple.index : 0;
}

static void sort_slots(plan_lowering *lw, plan_sort *s, const hlo_inst *in)
{
    const hlo_comp *c = lw->fusion->comp[0];
    const hlo_inst *root = c->root;

    s->in = sd_arena_array(lw->a, int, s->nop);
    s->type = sd_arena_array(lw->a, sd_dtype, s->nop);
    for (int i = 0; i < s->nop; i++) {
        s->type[i] = in->arg[i]->shape->dtype;
        s->in[i] = -1;
        if (in->arg[i]->op != HLO_PARAMETER)
            continue; /* counts the elements of a row */
        s->in[i] = (int)in->arg[i]->u.param.index;
        lw->k->slot[s->in[i]].access = PLAN_READ;
    }
    s->first_out = c->nparam;
    s->nout = lw->k->nslot - c->nparam;
    s->out = sd_arena_array(lw->a, int, s->nout);
    for (int i = 0; i < s->nout; i++)
        s->out[i] = root == in              ? i
                    : root->op == HLO_TUPLE ? result_of(root->arg[i])
                                            : result_of(root);
}

/* Rows are sorted one a tile; slots: the operands that are in memory, then the
 * results that are wanted. */
sd_status plan_lower_sort(plan_lowering *lw, const hlo_inst *in)
{
    plan_sort *s = sd_arena_new(lw->a, plan_sort);
    const sd_shape *t = in->arg[0]->shape;
    int d = (int)in->dims.at[0];
    plan_kernel *k = lw->k;
    double log2n = 1;

    s->nop = in->narg;
    s->n = t->dim[d];
    s->inner = 1;
    for (int i = d + 1; i < t->rank; i++)
        s->inner *= t->dim[i];
    s->rows = sd_shape_count(t) / s->n;
    s->stable = in->u.sort.stable;
    s->less = plan_body_of(lw->a, in->comp[0], &lw->st);
    if (lw->st)
        return lw->st;
    sort_slots(lw, s, in);
    s->keep = k->slot[s->first_out].count / s->rows;
    plan_find_sort_keys(lw->a, s);
    k->cls = PLAN_SORTING;
    k->sort = s;
    while ((int64_t)1 << (int)log2n < s->n)
        log2n++;
    k->flops = (double)s->n * (double)s->rows * log2n * s->nop;
    return lw->st;
}

/* Slots: the operands, then the results. */
sd_status plan_lower_call(plan_lowering *lw, const hlo_inst *in)
{
    plan_kernel *k = lw->k;

    k->call = sd_arena_new(lw->a, hlo_call);
    if (!hlo_device_call(in, k->call))
        return sd_error(SD_INTERNAL, "%s: no call of a device function",
                        in->name);
    for (int i = 0; i < in->narg; i++)
        k->slot[i].access = PLAN_READ;
    k->cls = PLAN_CALLING;
    k->flops = k->call->flops;
    return lw->st;
}
