/* Makers of loops, branches, calls, tuples, and what one participant does. */
#include "random.h"

#include <math.h>

static const random_need anything = {INFINITY, false, false};
static const random_need exact = {INFINITY, true, false};

enum { MOST_DEPTH = 2, MOST_STATE = 5 };

/* A computation inside: its values are its own. */
static random_gen inside(const random_gen *g, const char *name)
{
    random_gen r = *g;

    r.c = hlo_comp_create(g->m, name);
    r.npool = 0;
    r.depth++;
    return r;
}

/* What stays true of a loop's value however often it turns. */
static random_need steady(sd_dtype t)
{
    if (!random_is_float(t))
        return anything;
    return (random_need){random_type_of(t).small, true, true};
}

static random_fact steady_fact(sd_dtype t)
{
    if (!random_is_float(t))
        return random_exact_int(t);
    return (random_fact){random_type_of(t).small, 0, true, false};
}

static hlo_inst *tuple_param(random_gen *r, const sd_shape *s)
{
    hlo_inst *p = hlo_make_param(r->c, s, "state");

    for (int i = 0; i < s->nelem; i++)
        random_keep(r, hlo_make_gte(random_at(r), p, i),
                    steady_fact(s->elem[i]->dtype));
    return p;
}

/* i < trips, and now and then something about the other values. */
static hlo_comp *condition(random_gen *g, const sd_shape *s, int64_t trips)
{
    random_gen r = inside(g, "cond");
    hlo_at at = random_at(&r);
    hlo_inst *i, *go;

    tuple_param(&r, s);
    i = r.pool[0];
    go =
        hlo_make_compare(at, HLO_LT, i, hlo_make_scalar_s64(at, SD_S32, trips));
    if (random_chance(&r, 30))
        go = hlo_make_binary(
            at, HLO_AND, go,
            random_want(&r, random_dims(&r, SD_PRED, 0, NULL), exact));
    hlo_set_root(r.c, go);
    g->state = r.state;
    return r.c;
}

static hlo_comp *loop_body(random_gen *g, const sd_shape *s)
{
    random_gen r = inside(g, "body");
    hlo_at at = random_at(&r);
    hlo_inst *out[MOST_STATE + 1], *i;

    tuple_param(&r, s);
    i = r.pool[0];
    random_steps(&r, 1 + (int)random_below(&r, 6));
    out[0] =
        hlo_make_binary(at, HLO_ADD, i, hlo_make_scalar_s64(at, SD_S32, 1));
    for (int k = 1; k < s->nelem; k++)
        out[k] = random_want(&r, s->elem[k], steady(s->elem[k]->dtype));
    hlo_set_root(r.c, hlo_make_tuple(at, s->nelem, out));
    g->state = r.state;
    return r.c;
}

void random_make_loop(random_gen *g)
{
    hlo_at at = random_at(g);
    hlo_inst *init[MOST_STATE + 1], *in;
    int n = 1 + (int)random_below(g, MOST_STATE);
    int64_t trips = random_below(g, g->depth ? 4 : 7);
    hlo_comp *c[2];

    if (g->depth >= MOST_DEPTH)
        return;
    init[0] = hlo_make_scalar_s64(at, SD_S32, random_below(g, 3) - 1);
    if (random_chance(g, 30)) /* a trip count that is not known */
        init[0] = random_want(g, random_dims(g, SD_S32, 0, NULL),
                              (random_need){4, true, true});
    for (int i = 1; i <= n; i++) {
        sd_dtype t = random_dtype(g, HLO_T_ANY);

        init[i] = random_want(g, random_shape(g, t), steady(t));
    }
    in = hlo_make_tuple(at, n + 1, init);
    c[0] = condition(g, in->shape, trips);
    c[1] = loop_body(g, in->shape);
    in = random_inst(g, HLO_WHILE, in->shape, 1, &in);
    hlo_set_comps(in, 2, c);
    random_infer(g, in);
    for (int i = 0; i <= n; i++)
        random_keep(g, hlo_make_gte(at, in, i),
                    steady_fact(in->shape->elem[i]->dtype));
}

/* A branch takes one operand, an array or a tuple. */
static hlo_comp *branch(random_gen *g, hlo_inst *x, int n,
                        const sd_shape *const *out, random_fact *f)
{
    random_gen r = inside(g, "branch");
    hlo_inst *p = hlo_make_param(r.c, x->shape, "x"), *root[4];

    if (x->shape->dtype == SD_TUPLE)
        for (int i = 0; i < x->narg; i++)
            random_keep(&r, hlo_make_gte(random_at(&r), p, i),
                        *random_fact_of(x->arg[i]));
    else
        random_keep(&r, p, *random_fact_of(x));
    random_steps(&r, (int)random_below(&r, 5));
    for (int i = 0; i < n; i++) {
        random_fact o;

        root[i] = random_want(&r, out[i], anything);
        o = *random_fact_of(root[i]);
        f[i].bound = fmax(f[i].bound, o.bound);
        f[i].error = fmax(f[i].error, o.error);
        f[i].whole = f[i].whole && o.whole;
        f[i].bits = f[i].bits && o.bits;
    }
    hlo_set_root(r.c,
                 n == 1 ? root[0] : hlo_make_tuple(random_at(&r), n, root));
    g->state = r.state;
    return r.c;
}

static hlo_inst *branch_operand(random_gen *g)
{
    hlo_inst *x[3];
    int n = 1 + (int)random_below(g, 3);

    for (int i = 0; i < n; i++)
        x[i] = random_pick(g, HLO_T_ANY, anything);
    return n == 1 ? x[0] : hlo_make_tuple(random_at(g), n, x);
}

void random_make_branch(random_gen *g)
{
    bool pred = random_chance(g, 50);
    int nbranch = pred ? 2 : 1 + (int)random_below(g, 4);
    int nout = 1 + (int)random_below(g, 2);
    const sd_shape *out[2];
    random_fact f[2] = {{0, 0, true, true}, {0, 0, true, true}};
    hlo_inst *arg[5], *in;
    hlo_comp *c[4];

    if (g->depth >= MOST_DEPTH)
        return;
    for (int i = 0; i < nout; i++)
        out[i] = random_shape(g, random_dtype(g, HLO_T_ANY));
    arg[0] = pred ? random_want(g, random_dims(g, SD_PRED, 0, NULL), exact)
                  : random_index(g, SD_S32, nbranch);
    for (int i = 0; i < nbranch; i++) {
        arg[1 + i] = branch_operand(g);
        c[i] = branch(g, arg[1 + i], nout, out, f);
    }
    in = random_inst(g, HLO_CONDITIONAL, NULL, 1 + nbranch, arg);
    hlo_set_comps(in, nbranch, c);
    random_infer(g, in);
    for (int i = 0; i < nout; i++)
        random_keep(g, nout == 1 ? in : hlo_make_gte(random_at(g), in, i),
                    f[i]);
}

void random_make_call(random_gen *g)
{
    random_gen r;
    hlo_inst *arg[3], *in;
    int n = 1 + (int)random_below(g, 3);

    if (g->depth >= MOST_DEPTH)
        return;
    r = inside(g, "callee");
    for (int i = 0; i < n; i++)
        arg[i] = random_pick(g, HLO_T_ANY, anything);
    r.state = g->state;
    for (int i = 0; i < n; i++)
        random_keep(&r, hlo_make_param(r.c, arg[i]->shape, "a"),
                    *random_fact_of(arg[i]));
    random_steps(&r, 1 + (int)random_below(&r, 6));
    hlo_set_root(r.c, r.pool[r.npool - 1]);
    g->state = r.state;
    in = random_inst(g, HLO_CALL, NULL, n, arg);
    hlo_set_comps(in, 1, &r.c);
    random_infer(g, in);
    random_keep(g, in, *random_fact_of(r.c->root));
}

/* Tuples in tuples, and one of them out again. */
void random_make_tuple(random_gen *g)
{
    hlo_at at = random_at(g);
    hlo_inst *x[3], *in;
    int64_t k = random_below(g, 3);

    for (int i = 0; i < 3; i++)
        x[i] = random_pick(g, HLO_T_ANY, anything);
    in = hlo_make_tuple(at, 3, x);
    if (random_chance(g, 40)) {
        hlo_inst *outer[2] = {in, x[0]};

        in = hlo_make_gte(at, hlo_make_tuple(at, 2, outer), 0);
    }
    if (random_chance(g, 40)) {
        in = random_inst(g, HLO_OPT_BARRIER, in->shape, 1, &in);
        random_infer(g, in);
    }
    random_keep(g, hlo_make_gte(at, in, k), *random_fact_of(x[k]));
}

void random_make_barrier(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY, anything), *in;

    in = random_inst(g, random_chance(g, 50) ? HLO_OPT_BARRIER : HLO_COPY,
                     x->shape, 1, &x);
    random_infer(g, in);
    random_keep(g, in, *random_fact_of(x));
}

/* Of one participant: what goes in comes out. */
void random_make_collective(random_gen *g)
{
    static const hlo_op ops[] = {HLO_ALL_REDUCE,     HLO_ALL_GATHER,
                                 HLO_REDUCE_SCATTER, HLO_ALL_TO_ALL,
                                 HLO_PARTITION_ID,   HLO_REPLICA_ID};
    static const int64_t only[] = {0};
    hlo_op op = ops[random_below(g, SD_COUNTOF(ops))];
    bool id = op == HLO_PARTITION_ID || op == HLO_REPLICA_ID;
    hlo_collective *k = sd_arena_new(g->a, hlo_collective);
    hlo_inst *x = random_pick(g, HLO_T_ANY & ~HLO_T_CPLX, anything), *in;
    const sd_shape *s = x->shape;
    int64_t d = 0;
    hlo_comp *c;

    if (!id && op != HLO_ALL_REDUCE && s->rank == 0)
        return;
    in = random_inst(g, op, NULL, id ? 0 : 1, &x);
    if (!id) {
        k->channel = random_chance(g, 50) ? 1 : 0;
        k->groups = only;
        k->ngroup = k->group_size = 1;
        if (op != HLO_ALL_REDUCE) {
            d = random_below(g, s->rank);
            in->dims = hlo_dims_copy(g->a, &d, 1);
            k->dim = d;
        }
        if (op == HLO_ALL_TO_ALL)
            k->split_count = 1;
        in->u.coll = k;
    }
    if (hlo_op_table[op].props & HLO_P_REGION) {
        c = random_scalar_body(g, s->dtype, HLO_MAXIMUM);
        hlo_set_comps(in, 1, &c);
    }
    random_infer(g, in);
    random_keep(g, in,
                id ? (random_fact){0, 0, true, true} : *random_fact_of(x));
}

void random_make_dimension(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY, anything), *in;
    int64_t d;

    if (x->shape->rank == 0)
        return;
    d = random_below(g, x->shape->rank);
    in = random_inst(g, HLO_GET_DIMENSION_SIZE, NULL, 1, &x);
    in->dims = hlo_dims_copy(g->a, &d, 1);
    random_infer(g, in);
    random_keep(g, in, random_exact_int(SD_S32));
}
