/* Making nodes.  Equal nodes are one node: what two instructions compute from
 * the same operands is computed once. */
#include "plan_lower.h"

#include <stdlib.h>

/* Outer ones, and those of one window: plan_fuse puts no two in a kernel. */
enum { MOST_AXES = 2 * SD_MAX_RANK };

typedef struct entry {
    plan_node *n;
    struct entry *next;
} entry;

bool plan_guards_same(plan_guards x, plan_guards y)
{
    if (x.n != y.n)
        return false;
    for (int i = 0; i < x.n; i++)
        if (x.g[i].e != y.g[i].e || x.g[i].lo != y.g[i].lo ||
            x.g[i].hi != y.g[i].hi)
            return false;
    return true;
}

uint64_t plan_node_attributes(const plan_node *n)
{
    if (n->kind != PN_ELT || !n->in)
        return 0;
    if (n->op == HLO_COMPARE)
        return 1 + (uint64_t)n->in->u.compare.dir * 8 +
               (uint64_t)n->in->u.compare.type;
    if (n->op == HLO_REDUCE_PRECISION)
        return 1 + (uint64_t)n->in->u.precision.exponent * 4096 +
               (uint64_t)n->in->u.precision.mantissa;
    return 0;
}

static bool same(const plan_node *x, const plan_node *y)
{
    if (x->kind != y->kind || x->op != y->op || x->dtype != y->dtype ||
        x->narg != y->narg || x->slot != y->slot || x->off != y->off ||
        x->over != y->over || x->out != y->out || x->nout != y->nout ||
        memcmp(x->value, y->value, sizeof x->value) != 0 ||
        plan_node_attributes(x) != plan_node_attributes(y) ||
        !plan_guards_same((plan_guards){x->guard, x->nguard},
                          (plan_guards){y->guard, y->nguard}))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (x->arg[i] != y->arg[i])
            return false;
    return true;
}

static bool is_shared(const plan_node *n)
{
    return n->kind == PN_LOAD || n->kind == PN_CONST || n->kind == PN_INDEX ||
           n->kind == PN_ELT || n->kind == PN_PICK;
}

static uint64_t hash_of(const plan_node *n)
{
    uint64_t h = sd_hash(n->value, sizeof n->value,
                         (uint64_t)n->kind + plan_node_attributes(n) * 64);
    uint64_t key[6] = {(uint64_t)n->op, n->dtype,         (uint64_t)n->slot,
                       sd_key(n->off),  (uint64_t)n->out, (uint64_t)n->nguard};

    h = sd_hash(key, sizeof key, h);
    for (int i = 0; i < n->narg; i++) {
        uint64_t a = sd_key(n->arg[i]);

        h = sd_hash(&a, sizeof a, h);
    }
    return h;
}

plan_node *plan_node_new(plan_lowering *lw, plan_node n)
{
    uint64_t h = 0;
    entry *e;
    plan_node *p;

    for (int i = 0; i < n.narg; i++)
        n.varies |= n.arg[i]->varies;
    n.varies &= ~n.over;
    if (n.kind == PN_SCAN)
        n.varies |= n.over;
    if (n.off)
        n.varies |= n.off->varies;
    for (int i = 0; i < n.nguard; i++)
        n.varies |= n.guard[i].e->varies;
    if (is_shared(&n)) {
        h = hash_of(&n);
        for (e = sd_map_get(lw->unique, h); e; e = e->next)
            if (same(e->n, &n))
                return e->n;
    }
    p = sd_arena_copy(lw->a, &n, sizeof n);
    p->id = lw->node.n;
    *sd_push(lw->a, &lw->node) = p;
    if (is_shared(&n)) {
        e = sd_arena_new(lw->a, entry);
        e->n = p;
        e->next = sd_map_get(lw->unique, h);
        sd_map_set(lw->unique, h, e);
    }
    return p;
}

plan_node *plan_lower_fail(plan_lowering *lw, sd_status st, sd_dtype t)
{
    if (!lw->st)
        lw->st = st;
    else
        sd_status_free(st);
    return plan_node_const(lw, t, 0);
}

plan_node *plan_node_data(plan_lowering *lw, sd_dtype t, const void *data)
{
    plan_node n = {.kind = PN_CONST, .dtype = t};

    memcpy(n.value, data, sd_dtype_bytes(t));
    return plan_node_new(lw, n);
}

plan_node *plan_node_const(plan_lowering *lw, sd_dtype t, int64_t v)
{
    uint8_t data[16] = {0};

    if (sd_is_complex(t) || sd_is_float(t))
        sd_scalar_of_f64(t, (double)v, data);
    else
        sd_scalar_of_s64(t, v, data);
    return plan_node_data(lw, t, data);
}

plan_node *plan_node_index(plan_lowering *lw, sd_dtype t, const plan_expr *e)
{
    if (e->kind == PX_CONST)
        return plan_node_const(lw, t, e->c);
    if (sd_is_complex(t))
        return plan_node_convert(lw, t,
                                 plan_node_index(lw, sd_dtype_part(t), e));
    return plan_node_new(lw,
                         (plan_node){.kind = PN_INDEX, .dtype = t, .off = e});
}

plan_node *plan_node_elt(plan_lowering *lw, int op, sd_dtype t,
                         const hlo_inst *in, int narg, plan_node *const *arg)
{
    plan_node n = {
        .kind = PN_ELT, .op = op, .dtype = t, .in = in, .narg = narg};

    n.arg = sd_arena_copy(lw->a, arg, (size_t)narg * sizeof(plan_node *));
    return plan_node_new(lw, n);
}

/* The instruction of an ELT carries its attributes; one that no HLO asked for
 * gets an instruction that is in no computation. */
hlo_inst *plan_compare_inst(sd_arena *a, hlo_cmp_dir dir, sd_dtype t)
{
    hlo_inst *in = sd_arena_new(a, hlo_inst);
    sd_kind k = sd_dtype_kind(t);

    in->op = HLO_COMPARE;
    in->name = "bound";
    in->shape = sd_shape_make(a, SD_PRED, 0, NULL);
    in->u.compare.dir = dir;
    in->u.compare.type = k == SD_K_SINT    ? HLO_CMP_SIGNED
                         : k == SD_K_FLOAT ? HLO_CMP_FLOAT
                                           : HLO_CMP_UNSIGNED;
    return in;
}

static plan_node *compare(plan_lowering *lw, hlo_cmp_dir dir, plan_node *x,
                          plan_node *y)
{
    return plan_node_elt(lw, HLO_COMPARE, SD_PRED,
                         plan_compare_inst(lw->a, dir, x->dtype), 2,
                         (plan_node *[]){x, y});
}

plan_node *plan_node_convert(plan_lowering *lw, sd_dtype t, plan_node *x)
{
    if (x->dtype == t)
        return x;
    return plan_node_elt(lw, HLO_CONVERT, t, NULL, 1, &x);
}

static plan_node *bound(plan_lowering *lw, const plan_expr *e, hlo_cmp_dir dir,
                        int64_t limit)
{
    sd_dtype t = e->lo >= INT32_MIN && e->hi <= INT32_MAX &&
                         limit >= INT32_MIN && limit <= INT32_MAX
                     ? SD_S32
                     : SD_S64;

    return compare(lw, dir, plan_node_index(lw, t, e),
                   plan_node_const(lw, t, limit));
}

plan_node *plan_node_holds(plan_lowering *lw, const plan_guard *g, int n)
{
    plan_node *all = NULL;

    for (int i = 0; i < n; i++)
        for (int side = 0; side < 2; side++) {
            plan_node *p;

            if (side ? g[i].e->hi < g[i].hi : g[i].e->lo >= g[i].lo)
                continue;
            p = side ? bound(lw, g[i].e, HLO_LT, g[i].hi)
                     : bound(lw, g[i].e, HLO_GE, g[i].lo);
            all = all ? plan_node_elt(lw, HLO_AND, SD_PRED, NULL, 2,
                                      (plan_node *[]){all, p})
                      : p;
        }
    return all;
}

plan_guards plan_guards_join(sd_arena *a, plan_guards x, const plan_guard *g,
                             int n)
{
    plan_guards r = {.n = x.n};

    if (n == 0)
        return x;
    r.g = sd_arena_array(a, plan_guard, x.n + n);
    if (x.n)
        memcpy(r.g, x.g, (size_t)x.n * sizeof *x.g);
    for (int i = 0; i < n; i++) {
        bool there = false;

        for (int j = 0; j < r.n; j++)
            there |= r.g[j].e == g[i].e && r.g[j].lo == g[i].lo &&
                     r.g[j].hi == g[i].hi;
        if (!there)
            r.g[r.n++] = g[i];
    }
    return r;
}

const plan_expr *plan_axis_add(plan_lowering *lw, int64_t extent,
                               plan_role role, bool outer)
{
    int n = lw->axis.n;

    if (extent == 1)
        return plan_px_const(lw->px, 0);
    if (n >= MOST_AXES) {
        plan_lower_fail(lw,
                        sd_error(SD_INTERNAL, "%s: more than %d axes",
                                 lw->fusion->name, MOST_AXES),
                        SD_S32);
        return plan_px_const(lw->px, 0);
    }
    *sd_push(lw->a, &lw->axis) = (plan_axis){.extent = extent,
                                             .tile = extent,
                                             .role = (uint8_t)role,
                                             .place = PLAN_SEQ,
                                             .outer = outer};
    if (outer)
        lw->outer |= 1ull << n;
    return plan_px_axis(lw->px, n, extent);
}

/* ---- scalar functions ---- */

typedef struct {
    sd_arena *a;
    plan_body *b;
    sd_vec(plan_node *) node;
    sd_map *of; /* instruction -> node */
    sd_status st;
} body_maker;

static plan_node *body_push(body_maker *k, const hlo_inst *in, plan_node n)
{
    plan_node *p = sd_arena_copy(k->a, &n, sizeof n);

    p->id = k->node.n;
    *sd_push(k->a, &k->node) = p;
    sd_map_set(k->of, sd_key(in), p);
    return p;
}

static void body_inst(body_maker *k, const hlo_inst *in)
{
    plan_node n = {.in = in, .op = in->op, .dtype = in->shape->dtype};

    if (in->op == HLO_TUPLE)
        return;
    if (in->op == HLO_PARAMETER) {
        n.kind = PN_PARAM;
        n.out = (int)in->u.param.index;
        body_push(k, in, n);
    } else if (in->op == HLO_CONSTANT) {
        n.kind = PN_CONST;
        memcpy(n.value, in->u.literal.data, sd_dtype_bytes(n.dtype));
        body_push(k, in, n);
    } else if (in->op == HLO_RESHAPE || in->op == HLO_BROADCAST ||
               in->op == HLO_COPY || in->op == HLO_BITCAST) {
        sd_map_set(k->of, sd_key(in), sd_map_get(k->of, sd_key(in->arg[0])));
    } else if (hlo_is_elementwise(in) || hlo_info(in)->cls == HLO_C_BITCAST) {
        n.kind = PN_ELT;
        n.narg = in->narg;
        n.arg = sd_arena_array(k->a, plan_node *, in->narg);
        for (int i = 0; i < in->narg; i++)
            n.arg[i] = sd_map_get(k->of, sd_key(in->arg[i]));
        body_push(k, in, n);
    } else if (!k->st) {
        k->st = sd_error(SD_UNIMPLEMENTED,
                         "%s in %s: a function of elements (of a reduction, "
                         "scatter, scan or sort) is made of operations on "
                         "single elements and conditionals",
                         hlo_op_table[in->op].name, in->parent->name);
    }
}

plan_body *plan_body_of(sd_arena *a, const hlo_comp *c, sd_status *st)
{
    body_maker k = {
        .a = a, .b = sd_arena_new(a, plan_body), .of = sd_map_create(a)};
    hlo_op op;
    const hlo_inst *root = c->root;

    hlo_for_each_inst(in, c)
        if (!k.st)
            body_inst(&k, in);
    if (k.st) {
        *st = k.st;
        return NULL;
    }
    k.b->node = k.node.at;
    k.b->nnode = k.node.n;
    k.b->nparam = c->nparam;
    k.b->nroot = root->op == HLO_TUPLE ? root->narg : 1;
    k.b->root = sd_arena_array(a, plan_node *, k.b->nroot);
    for (int i = 0; i < k.b->nroot; i++)
        k.b->root[i] = sd_map_get(
            k.of, sd_key(root->op == HLO_TUPLE ? root->arg[i] : root));
    k.b->op = hlo_comp_is_binary(c, &op) ? (int)op : -1;
    return k.b;
}

plan_node *plan_body_inline(plan_lowering *lw, const plan_body *b, int root,
                            plan_node *const *param)
{
    plan_node **as = sd_arena_array(lw->a, plan_node *, b->nnode);
    plan_node *arg[8];

    for (int i = 0; i < b->nnode; i++) {
        const plan_node *n = b->node[i];

        if (n->kind == PN_PARAM) {
            as[i] = param[n->out];
        } else if (n->kind == PN_CONST) {
            as[i] = plan_node_data(lw, n->dtype, n->value);
        } else {
            for (int j = 0; j < n->narg; j++)
                arg[j] = as[n->arg[j]->id];
            as[i] = plan_node_elt(lw, n->op, n->dtype, n->in, n->narg, arg);
        }
    }
    return as[b->root[root]->id];
}

plan_node *plan_node_filled(plan_lowering *lw, plan_node *x,
                            const plan_guard *g, int n, plan_guards outside,
                            plan_node *fill)
{
    plan_node *p;

    if (n == 0)
        return x;
    if (x->kind == PN_LOAD && x->narg == 0) {
        plan_node l = *x;
        plan_guards all = plan_guards_join(
            lw->a, x->nguard ? outside : (plan_guards){0}, g, n);

        l.guard = all.g;
        l.nguard = all.n;
        l.narg = 1;
        l.arg = sd_arena_array(lw->a, plan_node *, 1);
        l.arg[0] = fill;
        return plan_node_new(lw, l);
    }
    p = plan_node_holds(lw, g, n);
    if (!p)
        return x;
    return plan_node_elt(lw, HLO_SELECT, x->dtype, NULL, 3,
                         (plan_node *[]){p, x, fill});
}
