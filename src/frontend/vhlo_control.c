/* Control flow, calls and the computations of regions.  MLIR's regions use
 * what is around them; HLO's computations use their parameters alone.  So a
 * region's captures are found first.  Small constants are made again inside
 * (a loop's bound stays visible); the rest becomes elements of the tuple
 * that a loop carries or a branch takes.  Computations on scalars can only
 * have what can be made again. */
#include "vhlo_import.h"

enum { SMALL_CONSTANT = 256, MAX_CLONED = 64 };

typedef struct {
    mlir_value *v;
    hlo_inst *outer;
    int slot;
} capture;
/* A region's, and what was being made when its computation was begun. */
typedef struct {
    capture *at;
    int n, cap, nslot;
    hlo_comp *outer;
    mlir_where where;
} captures;

/* ---- captures ---- */

static void look_for(vhlo_import *im, mlir_region *g, int lo, int hi,
                     captures *out)
{
    for (int i = 0; i < g->nblock; i++)
        for (mlir_op *op = g->block[i]->first; op; op = op->next) {
            for (int k = 0; k < op->noperand; k++) {
                mlir_value *v = op->operand[k];

                if (v->stamp == im->stamp ||
                    (v->region >= lo && v->region <= hi))
                    continue;
                v->stamp = im->stamp;
                *sd_push(im->r->a, out) = (capture){v, v->inst, -1};
            }
            for (int k = 0; k < op->nregion; k++)
                look_for(im, op->region[k], lo, hi, out);
        }
}

static bool is_small(const hlo_inst *in)
{
    if (in->op == HLO_BROADCAST)
        in = in->arg[0];
    return in->op == HLO_CONSTANT && in->u.literal.bytes <= SMALL_CONSTANT;
}

/* What regions [from, from + n) of op use from outside; those that must be
 * carried get a slot.  False after an error. */
static bool find_captures(vhlo_import *im, mlir_op *op, int from, int n,
                          captures *out)
{
    *out = (captures){0};
    im->stamp++;
    for (int i = from; i < from + n; i++)
        look_for(im, op->region[i], op->region[from]->id,
                 op->region[from + n - 1]->last, out);
    for (int i = 0; i < out->n; i++) {
        hlo_inst *in = out->at[i].outer;

        if (out->at[i].v->is_lost) {
            vhlo_fail_lost(im);
            return false;
        }
        if (!in || in->parent != im->c) {
            vhlo_fail(im, op, SD_INVALID,
                      "its region uses a value that is not defined there");
            return false;
        }
        if (!is_small(in))
            out->at[i].slot = out->nslot++;
    }
    return true;
}

static void put_slots(const captures *cs, hlo_inst **to)
{
    for (int i = 0; i < cs->n; i++)
        if (cs->at[i].slot >= 0)
            to[cs->at[i].slot] = cs->at[i].outer;
}

static hlo_inst *clone_small(vhlo_import *im, hlo_inst *in)
{
    hlo_inst *x =
        in->narg ? hlo_inst_clone(im->c, NULL, in->arg[0], NULL) : NULL;

    return hlo_inst_clone(im->c, NULL, in, &x);
}

/* Inside: carried ones are elements of the parameter, from `base` on. */
static void enter(vhlo_import *im, const captures *cs, hlo_inst *param,
                  int base)
{
    for (int i = 0; i < cs->n; i++)
        cs->at[i].v->inst = cs->at[i].slot < 0
                                ? clone_small(im, cs->at[i].outer)
                                : vhlo_gte(im, param, base + cs->at[i].slot);
}

static hlo_comp *begin(vhlo_import *im, captures *cs, const char *name)
{
    cs->outer = im->c;
    cs->where = im->where;
    return im->c = hlo_comp_create(im->m, name);
}

/* The computation; NULL after an error. */
static hlo_comp *end(vhlo_import *im, const captures *cs, hlo_inst *root)
{
    hlo_comp *c = im->c;

    if (!im->r->st)
        hlo_set_root(c, root);
    for (int i = 0; i < cs->n; i++)
        cs->at[i].v->inst = cs->at[i].outer;
    im->where = cs->where;
    im->c = cs->outer;
    return im->r->st ? NULL : c;
}

/* The same with n results. */
static hlo_comp *end_of(vhlo_import *im, const captures *cs, int n,
                        hlo_inst **out)
{
    im->where = cs->where;
    return end(im, cs, im->r->st ? NULL : vhlo_one_or_tuple(im, n, out));
}

/* The block's arguments are parameters. */
static void make_params(vhlo_import *im, mlir_block *b)
{
    for (int i = 0; i < b->narg && !im->r->st; i++) {
        const sd_shape *s = mlir_shape(im->r, b->arg[i].type);

        if (s)
            b->arg[i].inst =
                hlo_make_param(im->c, s, sd_arena_fmt(im->a, "x%d", i));
    }
}

/* ---- while ---- */

/* One of the loop's two computations of the state's tuple. */
static hlo_comp *loop_part(vhlo_import *im, mlir_op *op, int k, captures *cs,
                           const sd_shape *state)
{
    int n = op->noperand;
    mlir_block *b = vhlo_entry(im, op, k, n);
    hlo_inst *param, **out, **all;

    if (!b)
        return NULL;
    param =
        hlo_make_param(begin(im, cs, k ? "body" : "condition"), state, "state");
    for (int i = 0; i < n; i++)
        b->arg[i].inst = vhlo_gte(im, param, i);
    enter(im, cs, param, n);
    out = vhlo_block(im, op, k, k ? n : 1);
    if (!k || im->r->st)
        return end(im, cs, out ? out[0] : NULL);
    all = sd_arena_array(im->r->a, hlo_inst *, n + cs->nslot + 1);
    if (n)
        memcpy(all, out, sizeof *all * (size_t)n);
    for (int i = 0; i < cs->n; i++)
        if (cs->at[i].slot >= 0)
            all[n + cs->at[i].slot] = cs->at[i].v->inst;
    im->where = cs->where;
    return end(im, cs, vhlo_tuple(im, n + cs->nslot, all));
}

void op_while(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int n = op->noperand;
    hlo_comp *c[2];
    captures cs;
    hlo_inst **all, *init, *in;

    if (!vhlo_as_many(im, op))
        return;
    if (!find_captures(im, op, 0, 2, &cs))
        return;
    all = sd_arena_array(im->r->a, hlo_inst *, n + cs.nslot + 1);
    if (n)
        memcpy(all, arg, sizeof *all * (size_t)n);
    put_slots(&cs, all + n);
    init = vhlo_tuple(im, n + cs.nslot, all);
    for (int k = 0; k < 2; k++)
        if (!(c[k] = loop_part(im, op, k, &cs, init->shape)))
            return;
    in = vhlo_emit(im, HLO_WHILE, init->shape, 1, &init);
    hlo_set_comps(in, 2, c);
    if (!vhlo_check(im, in))
        return;
    for (int i = 0; i < n; i++)
        op->result[i].inst = vhlo_gte(im, in, i);
}

/* ---- case, if ---- */

static hlo_comp *branch(vhlo_import *im, mlir_op *op, int k, hlo_inst **arg)
{
    hlo_inst *param, **lifted;
    captures cs;

    if (!vhlo_entry(im, op, k, 0) || !find_captures(im, op, k, 1, &cs))
        return NULL;
    lifted = sd_arena_array(im->r->a, hlo_inst *, cs.nslot + 1);
    put_slots(&cs, lifted);
    *arg = vhlo_tuple(im, cs.nslot, lifted);
    param = hlo_make_param(begin(im, &cs, "branch"), (*arg)->shape, "captured");
    enter(im, &cs, param, 0);
    return end_of(im, &cs, op->nresult, vhlo_block(im, op, k, op->nresult));
}

/* case has an index, if a predicate; HLO's conditional takes either. */
void op_case(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    int n = op->nregion;
    hlo_comp **c = sd_arena_array(im->r->a, hlo_comp *, n + 1);
    hlo_inst **all = sd_arena_array(im->r->a, hlo_inst *, n + 1), *in;
    const sd_shape *s = vhlo_shape(im, op);

    if (!n)
        vhlo_fail(im, op, SD_INVALID,
                  "no regions, where one a branch should be");
    if (im->r->st)
        return;
    all[0] = arg[0];
    for (int k = 0; k < n; k++)
        if (!(c[k] = branch(im, op, k, &all[1 + k])))
            return;
    in = vhlo_emit(im, HLO_CONDITIONAL, s, 1 + n, all);
    hlo_set_comps(in, n, c);
    vhlo_bind(im, op, in);
}

/* ---- computations on scalars ---- */

/* Makes in again in the current computation when it depends on constants
 * alone; NULL when it does not. */
static hlo_inst *clone_chain(vhlo_import *im, hlo_inst *in, int *budget)
{
    hlo_inst *arg[3] = {0};
    uint8_t cls = hlo_info(in)->cls;
    bool pure = in->op == HLO_CONSTANT || in->op == HLO_IOTA ||
                cls <= HLO_C_BITCAST || cls == HLO_C_SHAPE;

    if (!pure || in->narg > 3 || --*budget < 0)
        return NULL;
    for (int i = 0; i < in->narg; i++)
        if (!(arg[i] = clone_chain(im, in->arg[i], budget)))
            return NULL;
    return hlo_inst_clone(im->c, NULL, in, arg);
}

static void enter_reducer(vhlo_import *im, mlir_op *op, const captures *cs)
{
    for (int i = 0; i < cs->n; i++) {
        int budget = MAX_CLONED;
        hlo_inst *x = clone_chain(im, cs->at[i].outer, &budget);

        if (!x) {
            vhlo_fail(im, op, SD_UNIMPLEMENTED,
                      "its computation uses a value from outside: only "
                      "constants can be made again inside");
            return;
        }
        cs->at[i].v->inst = x;
    }
}

hlo_comp *vhlo_reducer(vhlo_import *im, mlir_op *op, int k, const char *name)
{
    mlir_block *b;
    captures cs;
    hlo_inst **out;

    if (im->r->st || !(b = vhlo_entry(im, op, k, -1)) ||
        !find_captures(im, op, k, 1, &cs))
        return NULL;
    begin(im, &cs, name);
    make_params(im, b);
    enter_reducer(im, op, &cs);
    out = im->r->st ? NULL : vhlo_block(im, op, k, -1);
    return end_of(im, &cs, out ? b->last->noperand : 0, out);
}

/* ---- a region that is called ---- */

hlo_comp *vhlo_body(vhlo_import *im, mlir_op *op, int k, const char *name,
                    hlo_inst *const *arg, hlo_inst ***all, int *nall)
{
    int n = op->noperand;
    mlir_block *b = vhlo_entry(im, op, k, n);
    captures cs;
    hlo_comp *c;

    if (!b || !find_captures(im, op, k, 1, &cs))
        return NULL;
    *nall = n + cs.nslot;
    *all = sd_arena_array(im->r->a, hlo_inst *, *nall + 1);
    if (n)
        memcpy(*all, arg, sizeof **all * (size_t)n);
    put_slots(&cs, *all + n);
    c = begin(im, &cs, name);
    make_params(im, b);
    for (int i = 0; i < cs.n && !im->r->st; i++)
        cs.at[i].v->inst =
            cs.at[i].slot < 0
                ? clone_small(im, cs.at[i].outer)
                : hlo_make_param(c, cs.at[i].outer->shape, "captured");
    return end_of(im, &cs, op->nresult,
                  im->r->st ? NULL : vhlo_block(im, op, k, op->nresult));
}

/* ---- calls ---- */

static void call(vhlo_import *im, mlir_op *op, hlo_inst **arg, const char *name)
{
    hlo_comp *c = name ? vhlo_func_comp(im, op, name) : NULL;
    const sd_shape *s = vhlo_shape(im, op);
    hlo_inst *in;

    if (!c || !s || im->r->st)
        return;
    in = vhlo_emit(im, HLO_CALL, s, op->noperand, arg);
    hlo_set_comps(in, 1, &c);
    vhlo_bind(im, op, in);
}

void op_call(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    call(im, op, arg, vhlo_string(im, op, "callee"));
}

/* erf is an operation of ours; the others have their decompositions. */
void op_composite(vhlo_import *im, mlir_op *op, hlo_inst **arg)
{
    const sd_shape *s = vhlo_shape(im, op);

    if (!s || im->r->st)
        return;
    if (mlir_is_string(im->r, vhlo_attr(im, op, "name"), "chlo.erf") &&
        op->noperand == 1 && op->nresult == 1) {
        vhlo_bind(im, op, vhlo_emit(im, HLO_ERF, s, 1, arg));
        return;
    }
    call(im, op, arg, vhlo_string(im, op, "decomposition"));
}
