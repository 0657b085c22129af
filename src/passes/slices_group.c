/* An axis followed through a graph: from a large value to what it is made from
 * and to what is made from it, as long as the elements along the axis stay
 * apart.  See hlo_opt_slices.c. */
#include "slices.h"

enum {
    MOST_AGAIN = 24, /* cheap operations between small arrays and a mask */
    FEW = 16,        /* a small array has so many times fewer elements */
    MOST_CHAIN = 64, /* instructions that lead back into the group */
};

/* ---- one instruction ---- */

/* Dimension of operand x of a reshape that is dimension dim of its result: as
 * many elements before it, and of the same extent. */
static int reshaped_dim(const sd_shape *to, const sd_shape *from, int dim)
{
    int64_t before = 1, n = 1;

    for (int i = 0; i < dim; i++)
        before *= to->dim[i];
    for (int i = 0; i < from->rank; i++) {
        if (n == before && from->dim[i] == to->dim[dim])
            return i;
        n *= from->dim[i];
    }
    return SLICE_NOT;
}

static bool is_free(const hlo_dot *d, int k, int64_t i)
{
    return !hlo_dims_hold(k ? d->rhs_batch : d->lhs_batch, i) &&
           !hlo_dims_hold(k ? d->rhs_contract : d->lhs_contract, i);
}

/* A dot's result has the batch dimensions, then the free ones of each side. */
static int dot_dim(const hlo_inst *in, int k, int dim)
{
    const hlo_dot *d = in->u.dot;
    int at = d->lhs_batch.n;

    if (dim < at)
        return (int)(k ? d->rhs_batch : d->lhs_batch).at[dim];
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < in->arg[s]->shape->rank; i++)
            if (is_free(d, s, i) && at++ == dim)
                return s == k ? i : SLICE_WHOLE;
    return SLICE_NOT;
}

static int reduce_dim(const hlo_inst *in, int k, int dim)
{
    int at = 0;

    if (k >= in->narg / 2)
        return SLICE_WHOLE;
    for (int i = 0; i < in->arg[k]->shape->rank; i++)
        if (!hlo_dims_hold(in->dims, i) && at++ == dim)
            return i;
    return SLICE_NOT;
}

static int broadcast_dim(const hlo_inst *in, int dim)
{
    int i = hlo_dims_find(in->dims, dim);

    return i < 0 ? SLICE_WHOLE : i;
}

/* Which of the dimensions that are not in `but` dim is; and back. */
static int place_without(hlo_dims but, int dim)
{
    int n = 0;

    for (int i = 0; i < dim; i++)
        n += !hlo_dims_hold(but, i);
    return n;
}

static int dim_without(hlo_dims but, int place)
{
    int dim = 0;

    while (hlo_dims_hold(but, dim) || place-- > 0)
        dim++;
    return dim;
}

static int partner(hlo_dims of, hlo_dims with, int64_t dim)
{
    int i = hlo_dims_find(of, dim);

    return i < 0 ? SLICE_WHOLE : (int)with.at[i];
}

/* Along the dimensions of its indices: a batch's are the operand's too. */
static int gather_dim(const hlo_inst *in, int k, int dim)
{
    const hlo_gather *g = in->u.gather;
    hlo_dims vector = {&g->index_vector_dim, 1};

    if (hlo_dims_hold(g->offset_dims, dim))
        return SLICE_NOT;
    dim = dim_without(vector, place_without(g->offset_dims, dim));
    return k ? dim : partner(g->indices_batch, g->operand_batch, dim);
}

/* Along batch dimensions. */
static int scatter_dim(const hlo_inst *in, int k, int dim)
{
    const hlo_gather *g = in->u.gather;
    hlo_dims vector = {&g->index_vector_dim, 1};
    int at = partner(g->operand_batch, g->indices_batch, dim);

    if (in->narg != 3 || at < 0)
        return SLICE_NOT;
    if (k < 2)
        return k ? at : dim;
    return dim_without(g->offset_dims, place_without(vector, at));
}

static bool is_all_of(const hlo_inst *slice, int dim)
{
    return slice->u.slice.start[dim] == 0 && slice->u.slice.stride[dim] == 1 &&
           slice->u.slice.limit[dim] == slice->arg[0]->shape->dim[dim];
}

static int moved_dim(const hlo_inst *in, int k, int dim)
{
    switch (in->op) {
    case HLO_BROADCAST:
        return broadcast_dim(in, dim);
    case HLO_RESHAPE:
    case HLO_BITCAST:
        return reshaped_dim(in->shape, in->arg[0]->shape, dim);
    case HLO_TRANSPOSE:
        return (int)in->dims.at[dim];
    case HLO_REVERSE:
    case HLO_CONCATENATE:
        return hlo_dims_hold(in->dims, dim) ? SLICE_NOT : dim;
    case HLO_SLICE:
        return is_all_of(in, dim) ? dim : SLICE_NOT;
    case HLO_PAD:
        if (k == 1)
            return SLICE_WHOLE;
        return in->u.pad.low[dim] || in->u.pad.high[dim] ||
                       in->u.pad.interior[dim]
                   ? SLICE_NOT
                   : dim;
    case HLO_COPY:
        return dim;
    default:
        return SLICE_NOT;
    }
}

int slice_operand_dim(const hlo_inst *in, int k, int dim)
{
    switch (hlo_info(in)->cls) {
    case HLO_C_UNARY:
    case HLO_C_BINARY:
    case HLO_C_TERNARY:
    case HLO_C_COMPARE:
    case HLO_C_CONVERT:
        return in->arg[k]->shape->rank ? dim : SLICE_WHOLE;
    case HLO_C_BITCAST:
        return in->arg[k]->shape->rank == in->shape->rank ? dim : SLICE_NOT;
    case HLO_C_SHAPE:
        return moved_dim(in, k, dim);
    case HLO_C_REDUCE:
        return reduce_dim(in, k, dim);
    case HLO_C_DOT:
        return dot_dim(in, k, dim);
    case HLO_C_INDEXED:
        return in->op == HLO_GATHER ? gather_dim(in, k, dim) : SLICE_NOT;
    case HLO_C_SCATTER:
        return scatter_dim(in, k, dim);
    case HLO_C_SORT:
        return in->op == HLO_SORT && in->dims.at[0] != dim ? dim : SLICE_NOT;
    default:
        return SLICE_NOT;
    }
}

static bool is_several(const hlo_inst *in)
{
    return in->op == HLO_REDUCE || in->op == HLO_SORT;
}

bool slice_can_cut(const hlo_inst *in, int dim)
{
    if (dim < 0)
        return false;
    if (in->op == HLO_GET_TUPLE_ELEMENT)
        return is_several(in->arg[0]) && slice_can_cut(in->arg[0], dim);
    if (in->op == HLO_IOTA)
        return true;
    if (in->narg == 0 ||
        (in->shape->dtype == SD_TUPLE ? !is_several(in)
                                      : !sd_shape_is_array(in->shape)))
        return false;
    for (int k = 0; k < in->narg; k++)
        if (slice_operand_dim(in, k, dim) == SLICE_NOT)
            return false;
    return true;
}

int slice_edge(const slice_node *x, int k)
{
    const hlo_inst *in = x->in;

    if (in->op == HLO_GET_TUPLE_ELEMENT)
        return x->dim;
    if (x->dim != SLICE_SUM)
        return slice_operand_dim(in, k, x->dim);
    if (in->op == HLO_REDUCE)
        return k < in->narg / 2 ? x->over : SLICE_WHOLE;
    return (int)(k ? in->u.dot->rhs_contract : in->u.dot->lhs_contract)
        .at[x->over];
}

/* ---- what is looked at once ---- */

static bool is_cheap(const hlo_inst *in)
{
    switch (hlo_info(in)->cls) {
    case HLO_C_UNARY:
    case HLO_C_BINARY:
    case HLO_C_TERNARY:
    case HLO_C_COMPARE:
    case HLO_C_CONVERT:
        return (hlo_info(in)->props & HLO_P_CHEAP) != 0;
    default:
        return in->op == HLO_IOTA || in->op == HLO_BROADCAST ||
               in->op == HLO_RESHAPE || in->op == HLO_TRANSPOSE;
    }
}

/* A causal mask, say: no product is in it, and no array that is nearly as
 * large. */
static int length_again(const slice_group *g, const slice_node *x)
{
    int longest = 0;

    if (x->from_product || !is_cheap(x->in) || !sd_shape_is_array(x->in->shape))
        return 0;
    for (int k = 0; k < x->in->narg; k++) {
        const slice_node *y = slice_node_of(g, x->in->arg[k]);

        if (!y->remake_depth && y->count * FEW > x->count &&
            !slice_is_scalar_constant(y->in))
            return 0;
        longest = SD_MAX(longest, y->remake_depth);
    }
    return longest < MOST_AGAIN ? longest + 1 : 0;
}

void slice_group_open(slice_group *g, sd_arena *a, hlo_inst *seed)
{
    int n = 0;

    *g = (slice_group){.a = a, .c = seed->parent, .seed = seed};
    g->n = hlo_comp_count(g->c);
    g->node = sd_arena_array(a, slice_node, g->n);
    g->large = sd_shape_count(seed->shape) / 2 + 1;
    hlo_for_each_inst(in, g->c) {
        slice_node *x = &g->node[n];
        const sd_shape *s = slice_shape(in);

        in->mark = n++;
        x->in = in;
        x->count = sd_shape_is_array(s) ? sd_shape_count(s) : 0;
        x->from_product = in->op == HLO_DOT && slice_is_large(g, x);
        for (int k = 0; k < in->narg; k++)
            x->from_product |= slice_node_of(g, in->arg[k])->from_product;
        x->remake_depth = (int8_t)length_again(g, x);
    }
}

/* ---- growing ---- */

static void join(slice_group *g, hlo_inst *in, int dim, int over)
{
    slice_node *x = slice_node_of(g, in);

    if (x->member) {
        g->bad |= x->dim != dim || (dim == SLICE_SUM && x->over != over);
        return;
    }
    x->member = true;
    x->dim = dim;
    x->over = over;
    *sd_push(g->a, &g->member) = x;
    if (in->shape->dtype != SD_TUPLE)
        return;
    hlo_for_each_user(u, in)
        if (u->op == HLO_GET_TUPLE_ELEMENT)
            join(g, u, dim, over);
        else
            g->bad = true;
}

/* No operand of in is a member with the axis elsewhere? */
static bool agrees(const slice_group *g, const slice_node *as)
{
    for (int k = 0; k < as->in->narg; k++) {
        const slice_node *y = slice_node_of(g, as->in->arg[k]);

        if (y->member && y->dim != slice_edge(as, k))
            return false;
    }
    return true;
}

static bool can_sum(const hlo_inst *in)
{
    sd_dtype t = slice_shape(in)->dtype;
    hlo_op op;

    if (in->op == HLO_DOT)
        return sd_is_float(t) || sd_is_complex(t) ||
               (sd_is_int(t) && sd_dtype_table[t].bits >= 32);
    return in->op == HLO_REDUCE && in->narg == 2 &&
           hlo_comp_is_binary(in->comp[0], &op) &&
           pass_has_identity(op, pass_sum_type(t));
}

/* The user of a member's dimension dim, as its operand k. */
static void join_sum(slice_group *g, hlo_inst *u, int k, int dim)
{
    slice_node as = {.in = u, .dim = SLICE_SUM, .over = SLICE_NOT};

    if (!can_sum(u))
        return;
    if (u->op == HLO_REDUCE && k == 0 && hlo_dims_hold(u->dims, dim))
        as.over = dim;
    if (u->op == HLO_DOT) {
        hlo_dims d = k ? u->u.dot->rhs_contract : u->u.dot->lhs_contract;

        for (int i = 0; i < d.n; i++)
            if (d.at[i] == dim)
                as.over = i;
    }
    if (as.over != SLICE_NOT && agrees(g, &as))
        join(g, u, SLICE_SUM, as.over);
}

static void join_user(slice_group *g, hlo_inst *u, int k, int dim)
{
    const sd_shape *s = slice_shape(u);
    slice_node as = {.in = u};

    if (!sd_shape_is_array(s) || slice_node_of(g, u)->remake_depth)
        return;
    if (u->op == HLO_REDUCE || u->op == HLO_DOT || u->op == HLO_GATHER ||
        slice_is_large(g, slice_node_of(g, u)))
        for (as.dim = 0; as.dim < s->rank; as.dim++)
            if (slice_operand_dim(u, k, as.dim) == dim &&
                slice_can_cut(u, as.dim)) {
                if (agrees(g, &as))
                    join(g, u, as.dim, SLICE_NOT);
                return;
            }
    join_sum(g, u, k, dim);
}

static void grow_from(slice_group *g, slice_node *x)
{
    for (int k = 0; k < x->in->narg; k++) {
        slice_node *y = slice_node_of(g, x->in->arg[k]);
        int dim = slice_edge(x, k);

        if (dim >= 0 && slice_is_large(g, y) && !y->remake_depth &&
            slice_can_cut(y->in, dim))
            join(g, y->in, dim, SLICE_NOT);
    }
    if (!slice_is_large(g, x) || x->dim == SLICE_SUM)
        return;
    hlo_for_each_user(u, x->in) {
        for (int k = 0; k < u->narg; k++)
            if (u->arg[k] == x->in)
                join_user(g, u, k, x->dim);
    }
}

/* ---- small arrays that lead back into the group ---- */

static void find_below(slice_group *g)
{
    for (int i = 0; i < g->n; i++) {
        const hlo_inst *in = g->node[i].in;
        bool below = false;

        for (int k = 0; k < in->narg && !below; k++) {
            const slice_node *y = slice_node_of(g, in->arg[k]);

            below = y->member || y->from_member;
        }
        g->node[i].from_member = below;
    }
}

typedef struct {
    slice_node *node;
    int dim;
} link;
typedef struct {
    link at[MOST_CHAIN];
    int n;
} chain;

/* Adds what in's dimension dim is made from, up to members and to what no
 * member is in; products there are no small matter. */
static bool follow(const slice_group *g, hlo_inst *in, int dim, chain *c)
{
    slice_node *x = slice_node_of(g, in);

    if (x->member)
        return x->dim == dim;
    if (!x->from_member)
        return true;
    for (int i = 0; i < c->n; i++)
        if (c->at[i].node == x)
            return c->at[i].dim == dim;
    if (c->n == MOST_CHAIN || in->op == HLO_DOT || !slice_can_cut(in, dim) ||
        in->shape->dtype == SD_TUPLE)
        return false;
    c->at[c->n++] = (link){x, dim};
    for (int k = 0; k < in->narg; k++)
        if (!follow(g, in->arg[k], slice_operand_dim(in, k, dim), c))
            return false;
    return true;
}

/* The largest element of a row, made finite, and back to the row. */
static void join_chains(slice_group *g)
{
    int n = g->member.n;

    find_below(g);
    for (int i = 0; i < n; i++) {
        slice_node *x = g->member.at[i];

        for (int k = 0; k < x->in->narg; k++) {
            chain c = {.n = 0};

            if (slice_node_of(g, x->in->arg[k])->from_member &&
                follow(g, x->in->arg[k], slice_edge(x, k), &c))
                for (int j = 0; j < c.n; j++)
                    join(g, c.at[j].node->in, c.at[j].dim, SLICE_NOT);
        }
    }
}

/* ---- levels ---- */

/* What leaves the group and comes back, or is whole only when a loop has
 * ended, is for the next loop. */
static void find_levels(slice_group *g)
{
    g->nlevel = 0;
    for (int i = 0; i < g->n; i++) {
        slice_node *x = &g->node[i];

        x->level = 0;
        for (int k = 0; k < x->in->narg; k++) {
            const slice_node *y = slice_node_of(g, x->in->arg[k]);
            bool inside =
                x->member && y->dim >= 0 && y->dim == slice_edge(x, k);

            g->bad |= y->member && x->member && !inside && y->dim >= 0 &&
                      slice_is_large(g, y);
            x->level = SD_MAX(x->level, y->level + (y->member && !inside));
        }
        if (x->member)
            g->nlevel = SD_MAX(g->nlevel, x->level + 1);
    }
}

/* A tuple's results are its own loop's. */
static bool has_broken_tuple(const slice_group *g)
{
    for (int i = 0; i < g->member.n; i++) {
        const slice_node *x = g->member.at[i];

        if (x->in->op == HLO_GET_TUPLE_ELEMENT &&
            !slice_node_of(g, x->in->arg[0])->member)
            return true;
        if (x->in->shape->dtype == SD_TUPLE &&
            (x->in == g->c->root || x->dim == SLICE_SUM))
            return true;
    }
    return false;
}

static void sort_members(slice_group *g)
{
    int n = 0;

    for (int i = 0; i < g->n; i++)
        if (g->node[i].member)
            g->member.at[n++] = &g->node[i];
}

bool slice_group_grow(slice_group *g, int axis)
{
    for (int i = 0; i < g->n; i++) {
        g->node[i].member = g->node[i].leaves_loop = g->node[i].is_computed =
            false;
        g->node[i].in_turn = g->node[i].result = NULL;
    }
    g->member.n = 0;
    g->bad = false;
    g->extent = g->seed->shape->dim[axis];
    if (g->extent < 2 || !slice_can_cut(g->seed, axis))
        return false;
    join(g, g->seed, axis, SLICE_NOT);
    for (int i = 0; i < g->member.n && !g->bad; i++)
        grow_from(g, g->member.at[i]);
    if (g->bad)
        return false;
    join_chains(g);
    sort_members(g);
    find_levels(g);
    return !g->bad && !has_broken_tuple(g);
}
