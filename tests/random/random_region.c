/* Makers of what has a region: reductions, windows, sorts, maps. */
#include "random.h"

#include <math.h>

static const random_need anything = {INFINITY, false, false};
static const random_need exact = {INFINITY, true, false};

static hlo_inst *scalar(random_gen *g, sd_dtype t, random_need need)
{
    return random_want(g, random_dims(g, t, 0, NULL), need);
}

/* A reducer of n values and the operand it takes: sums of floats are of whole
 * numbers that the type adds exactly, so that their order does not matter. */
static hlo_inst *reducible(random_gen *g, int64_t n, hlo_op *op, random_fact *f,
                           const sd_shape *s)
{
    static const hlo_op ops[] = {HLO_ADD,     HLO_ADD,      HLO_MAXIMUM,
                                 HLO_MINIMUM, HLO_MULTIPLY, HLO_AND,
                                 HLO_OR,      HLO_XOR};
    sd_dtype t = s->dtype;
    random_type k = random_type_of(t);
    double most = floor(k.whole / (double)(n + 1));
    random_need need = anything;
    hlo_inst *x;

    *op = ops[random_below(g, random_is_float(t) ? 4 : 8)];
    if (sd_dtype_kind(t) == SD_K_COMPLEX)
        *op = HLO_ADD;
    if (random_is_float(t) && *op == HLO_ADD) {
        if (most < 1 || t == SD_F8E8M0FNU)
            return NULL;
        need = (random_need){SD_MIN(most, 64), true, true};
    }
    x = random_want(g, s, need);
    *f = *random_fact_of(x);
    f->bits = false;
    if (random_is_float(t) && *op == HLO_ADD)
        f->bound = (f->bound + 1) * (double)(n + 1);
    if (sd_is_int(t) && *op != HLO_MAXIMUM && *op != HLO_MINIMUM)
        *f = random_exact_int(t); /* it may wrap */
    return x;
}

/* An initial value that goes with it: the operation takes it once, or once
 * more for each element that is not there. */
static hlo_inst *start_of(random_gen *g, hlo_op op, sd_dtype t, random_fact *f)
{
    random_need need = anything;
    hlo_inst *x;

    if (random_is_float(t) && op == HLO_ADD)
        need = (random_need){random_chance(g, 60) ? 0 : 1, true, true};
    x = scalar(g, t, need);
    f->bound = fmax(f->bound, random_fact_of(x)->bound);
    f->error = fmax(f->error, random_fact_of(x)->error);
    f->whole = f->whole && random_fact_of(x)->whole;
    return x;
}

/* The narrow type's sum as one of f32 between converts, as frameworks write
 * it. */
static hlo_comp *wide_body(random_gen *g, sd_dtype t, hlo_op op)
{
    hlo_comp *c = hlo_comp_create(g->m, "wide");
    const sd_shape *s = random_dims(g, t, 0, NULL);
    hlo_at at = {.c = c};
    hlo_inst *x = hlo_make_param(c, s, "x"), *y = hlo_make_param(c, s, "y");

    x = hlo_make_convert(at, SD_F32, x);
    y = hlo_make_convert(at, SD_F32, y);
    hlo_set_root(c, hlo_make_convert(at, t, hlo_make_binary(at, op, x, y)));
    return c;
}

static hlo_comp *body_of(random_gen *g, sd_dtype t, hlo_op op)
{
    bool narrow = random_is_float(t) && sd_dtype_table[t].bits <= 16;

    return narrow && random_chance(g, 40) ? wide_body(g, t, op)
                                          : random_scalar_body(g, t, op);
}

static int some_dims(random_gen *g, const sd_shape *s, int64_t *dims,
                     int64_t *n)
{
    int k = 0;

    *n = 1;
    for (int i = 0; i < s->rank; i++)
        if (random_chance(g, 50)) {
            dims[k++] = i;
            *n *= s->dim[i];
        }
    return k;
}

void random_make_reduce(random_gen *g)
{
    const sd_shape *s = random_shape(g, random_dtype(g, HLO_T_ANY));
    int64_t dims[SD_MAX_RANK], n;
    int k = some_dims(g, s, dims, &n);
    random_fact f;
    hlo_op op;
    hlo_inst *x = reducible(g, n, &op, &f, s), *init;

    if (!x)
        return;
    init = start_of(g, op, s->dtype, &f);
    random_keep(g,
                hlo_make_reduce(random_at(g), x, init, dims, k,
                                body_of(g, s->dtype, op)),
                f);
}

static hlo_inst *op2(hlo_at at, hlo_op op, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(at, op, x, y);
}

/* The greatest (least) value and the lowest index that has it. */
static hlo_comp *arg_body(random_gen *g, sd_dtype t, sd_dtype it, bool max)
{
    hlo_comp *c = hlo_comp_create(g->m, "pick");
    hlo_at at = {.c = c};
    const sd_shape *s = random_dims(g, t, 0, NULL);
    const sd_shape *is = random_dims(g, it, 0, NULL);
    hlo_inst *v = hlo_make_param(c, s, "v"), *i = hlo_make_param(c, is, "i");
    hlo_inst *w = hlo_make_param(c, s, "w"), *j = hlo_make_param(c, is, "j");
    hlo_inst *better = hlo_make_compare(at, max ? HLO_GT : HLO_LT, v, w);
    hlo_inst *tie = op2(at, HLO_AND, hlo_make_compare(at, HLO_EQ, v, w),
                        hlo_make_compare(at, HLO_LT, i, j));
    hlo_inst *take = op2(at, HLO_OR, better, tie), *out[2];

    out[0] = hlo_make_select(at, take, v, w);
    out[1] = hlo_make_select(at, take, i, j);
    hlo_set_root(c, hlo_make_tuple(at, 2, out));
    return c;
}

/* Two reductions in one: independent ones, or value and index. */
static hlo_comp *pair_body(random_gen *g, sd_dtype t, sd_dtype u)
{
    hlo_comp *c = hlo_comp_create(g->m, "both");
    hlo_at at = {.c = c};
    const sd_shape *s = random_dims(g, t, 0, NULL);
    const sd_shape *us = random_dims(g, u, 0, NULL);
    hlo_inst *a = hlo_make_param(c, s, "a"), *b = hlo_make_param(c, us, "b");
    hlo_inst *x = hlo_make_param(c, s, "x"), *y = hlo_make_param(c, us, "y");
    hlo_inst *out[2] = {
        op2(at, random_chance(g, 50) ? HLO_MAXIMUM : HLO_MINIMUM, a, x),
        op2(at, random_chance(g, 50) ? HLO_ADD : HLO_MAXIMUM, b, y)};

    hlo_set_root(c, hlo_make_tuple(at, 2, out));
    return c;
}

void random_make_reduce_pair(random_gen *g)
{
    sd_dtype t = random_dtype(g, HLO_T_ANY & ~HLO_T_CPLX & ~HLO_T_PRED);
    sd_dtype u = random_dtype(g, HLO_T_INT);
    const sd_shape *s = random_shape(g, t), *shapes[2];
    bool pick = random_chance(g, 50);
    random_need need = {INFINITY, true, true}; /* no NaN: ties are clear */
    hlo_inst *arg[4], *in;
    int64_t dims[SD_MAX_RANK], n;
    int k = some_dims(g, s, dims, &n);
    hlo_comp *c =
        pick ? arg_body(g, t, u, random_chance(g, 50)) : pair_body(g, t, u);

    arg[0] = random_want(g, s, need);
    arg[1] = random_want(g, random_dims(g, u, s->rank, s->dim), exact);
    arg[2] = scalar(g, t, need);
    arg[3] = scalar(g, u, exact);
    in = random_inst(g, HLO_REDUCE, NULL, 4, arg);
    in->dims = hlo_dims_copy(g->a, dims, k);
    hlo_set_comps(in, 1, &c);
    random_infer(g, in);
    (void)shapes;
    for (int i = 0; i < 2; i++) {
        random_fact f = random_worst(2, (hlo_inst *[]){arg[i], arg[2 + i]});

        f.bits = false;
        random_keep(g, hlo_make_gte(random_at(g), in, i),
                    i ? random_exact_int(u) : f);
    }
}

/* ---- windows ---- */

void random_even_out(random_gen *g, hlo_window_dim *w, int64_t extent)
{
    int64_t dilated = (extent - 1) * w->base_dilation + 1;
    int64_t out = extent * w->base_dilation / w->stride;

    if (g->even && extent > 0 && out > 0 && random_chance(g, 60))
        w->pad_high = (out - 1) * w->stride +
                      (w->size - 1) * w->window_dilation + 1 - w->pad_low -
                      dilated;
}

static hlo_window_dim *some_window(random_gen *g, const sd_shape *s, bool plain,
                                   int64_t *n)
{
    hlo_window_dim *w = sd_arena_array(g->a, hlo_window_dim, s->rank + 1);

    *n = 1;
    for (int i = 0; i < s->rank; i++) {
        w[i] = (hlo_window_dim){1, 1, 0, 0, 1, 1, false};
        if (random_chance(g, 40))
            continue;
        w[i].size = 1 + random_below(g, 4);
        w[i].stride = 1 + random_below(g, 3);
        if (g->even && random_chance(g, 30) && s->dim[i] > 0) {
            bool back = random_chance(g, 50); /* from the end, or on */

            w[i] = (hlo_window_dim){.size = s->dim[i],
                                    .stride = 1,
                                    .base_dilation = 1,
                                    .window_dilation = 1};
            *(back ? &w[i].pad_high : &w[i].pad_low) = w[i].size - 1;
            *n *= w[i].size;
            continue;
        }
        if (random_chance(g, 10) && s->dim[i] <= 64 && s->dim[i] > 0) {
            w[i].size = s->dim[i]; /* as cumulative sums are written */
            w[i].stride = 1;
            w[i].pad_low = w[i].size - 1;
            *n *= w[i].size;
            continue;
        }
        w[i].pad_low = random_below(g, 5) - 1;
        w[i].pad_high = random_below(g, 5) - 1;
        if (!plain && random_chance(g, 20))
            w[i].base_dilation = 1 + random_below(g, 3);
        if (!plain && random_chance(g, 20))
            w[i].window_dilation = 1 + random_below(g, 3);
        random_even_out(g, &w[i], s->dim[i]);
        *n *= w[i].size;
    }
    return w;
}

/* Not too many elements to compute. */
static bool too_much(const sd_shape *s, int64_t n)
{
    return (double)sd_shape_count(s) * (double)n > 60000;
}

void random_make_window(random_gen *g)
{
    const sd_shape *s = random_shape(g, random_dtype(g, HLO_T_ANY));
    int64_t n;
    hlo_window_dim *w = some_window(g, s, false, &n);
    hlo_inst *arg[2], *in;
    random_fact f;
    hlo_comp *c;
    hlo_op op;

    if (n > 300 || !(arg[0] = reducible(g, 2 * n, &op, &f, s)))
        return;
    arg[1] = start_of(g, op, s->dtype, &f);
    in = random_inst(g, HLO_REDUCE_WINDOW, NULL, 2, arg);
    in->u.window.dim = w;
    in->u.window.n = s->rank;
    c = body_of(g, s->dtype, op);
    hlo_set_comps(in, 1, &c);
    random_infer(g, in);
    if (too_much(in->shape, n)) {
        hlo_remove(in);
        return;
    }
    random_keep(g, in, f);
}

/* "The last that is not 0": it has an identity, and its operands do not
 * commute. */
static hlo_comp *last_body(random_gen *g, sd_dtype t)
{
    hlo_comp *c = hlo_comp_create(g->m, "last");
    hlo_at at = {.c = c};
    const sd_shape *s = random_dims(g, t, 0, NULL);
    hlo_inst *x = hlo_make_param(c, s, "x"), *y = hlo_make_param(c, s, "y");
    hlo_inst *is =
        hlo_make_compare(at, HLO_NE, y, hlo_make_scalar_s64(at, t, 0));

    hlo_set_root(c, hlo_make_select(at, is, y, x));
    return c;
}

/* A running window along one dimension, or any window. */
static hlo_window_dim *line_window(random_gen *g, const sd_shape *s, int64_t *n)
{
    int d = (int)random_below(g, SD_MAX(s->rank, 1));
    hlo_window_dim *w = some_window(g, s, false, n);

    if (!s->rank || !s->dim[d] || random_chance(g, 40))
        return w;
    for (int i = 0; i < s->rank; i++)
        w[i] = (hlo_window_dim){1, 1, 0, 0, 1, 1, false};
    *n = w[d].size = s->dim[d];
    *(random_chance(g, 50) ? &w[d].pad_high : &w[d].pad_low) = w[d].size - 1;
    return w;
}

static hlo_inst *last_of_window(random_gen *g, hlo_inst *const *arg)
{
    hlo_inst *in = random_inst(g, HLO_REDUCE_WINDOW, NULL, 2, arg);
    hlo_comp *c = last_body(g, arg[0]->shape->dtype);
    int64_t n;

    in->u.window.dim = line_window(g, arg[0]->shape, &n);
    in->u.window.n = arg[0]->shape->rank;
    hlo_set_comps(in, 1, &c);
    random_infer(g, in);
    if (!too_much(in->shape, n))
        return in;
    hlo_remove(in);
    return NULL;
}

void random_make_ordered(random_gen *g)
{
    sd_dtype t = random_dtype(g, HLO_T_LOGIC);
    hlo_inst *arg[2], *y;
    int64_t dims[SD_MAX_RANK], n;
    int k;

    arg[0] = random_want(g, random_shape(g, t), anything);
    arg[1] = hlo_make_scalar_s64(random_at(g), t, 0);
    k = some_dims(g, arg[0]->shape, dims, &n);
    if (random_chance(g, 50))
        y = hlo_make_reduce(random_at(g), arg[0], arg[1], dims, k,
                            last_body(g, t));
    else
        y = last_of_window(g, arg);
    if (y)
        random_keep(g, y, *random_fact_of(arg[0]));
}

void random_make_select_scatter(random_gen *g)
{
    sd_dtype t = random_dtype(g, HLO_T_ANY & ~HLO_T_CPLX);
    const sd_shape *s = random_shape(g, t);
    random_type k = random_type_of(t);
    int64_t n, dim[SD_MAX_RANK];
    hlo_window_dim *w = some_window(g, s, true, &n);
    hlo_inst *arg[3], *in;
    hlo_comp *c[2];
    double most;

    for (int i = 0; i < s->rank; i++) {
        int64_t span = s->dim[i] + w[i].pad_low + w[i].pad_high - w[i].size;

        dim[i] = span < 0 ? 0 : span / w[i].stride + 1;
    }
    most = random_is_float(t) ? floor(k.whole / (double)(4 * n + 2)) : INFINITY;
    if (t == SD_F8E8M0FNU || most < 1 || too_much(s, n))
        return;
    arg[0] = random_want(g, s, (random_need){INFINITY, true, true});
    arg[1] = random_want(g, random_dims(g, t, s->rank, dim),
                         (random_need){SD_MIN(most, 64), true, true});
    arg[2] = scalar(g, t, (random_need){SD_MIN(most, 64), true, true});
    c[0] = hlo_comp_create(g->m, "ge");
    hlo_inst *x = hlo_make_param(c[0], random_dims(g, t, 0, NULL), "x");
    hlo_inst *y = hlo_make_param(c[0], random_dims(g, t, 0, NULL), "y");

    hlo_set_root(c[0], hlo_make_compare((hlo_at){.c = c[0]}, HLO_GE, x, y));
    c[1] = random_scalar_body(g, t, HLO_ADD);
    in = random_inst(g, HLO_SELECT_AND_SCATTER, NULL, 3, arg);
    in->u.window.dim = w;
    in->u.window.n = s->rank;
    hlo_set_comps(in, 2, c);
    random_infer(g, in);
    random_keep(g, in, (random_fact){k.whole, 0, true, false});
}

/* ---- sorts and maps ---- */

/* By the first key, by both, or by the bits. */
static hlo_comp *order_of(random_gen *g, int n, hlo_inst *const *arg)
{
    hlo_comp *c = hlo_comp_create(g->m, "order");
    hlo_at at = {.c = c};
    bool down = random_chance(g, 40);
    hlo_inst *p[8], *r;

    for (int i = 0; i < 2 * n; i++)
        p[i] = hlo_make_param(
            c, random_dims(g, arg[i / 2]->shape->dtype, 0, NULL), "k");
    r = hlo_make_compare(at, down ? HLO_GT : HLO_LT, p[0], p[1]);
    if (sd_dtype_kind(p[0]->shape->dtype) == SD_K_FLOAT)
        r->u.compare.type = HLO_CMP_TOTAL;
    if (n > 1 && random_chance(g, 40) &&
        sd_dtype_kind(p[2]->shape->dtype) != SD_K_COMPLEX &&
        random_fact_of(arg[1])->error == 0) {
        hlo_inst *eq = hlo_make_compare(at, HLO_EQ, p[0], p[1]);
        hlo_inst *second = hlo_make_compare(at, HLO_LT, p[2], p[3]);

        if (sd_dtype_kind(p[0]->shape->dtype) == SD_K_FLOAT)
            eq->u.compare.type = HLO_CMP_TOTAL;
        if (sd_dtype_kind(p[2]->shape->dtype) == SD_K_FLOAT)
            second->u.compare.type = HLO_CMP_TOTAL;
        r = op2(at, HLO_OR, r, op2(at, HLO_AND, eq, second));
    }
    hlo_set_root(c, r);
    return c;
}

void random_make_sort(random_gen *g)
{
    hlo_inst *arg[3], *in;
    int n = 1 + (int)random_below(g, 3);
    int64_t d;
    const sd_shape *s;
    hlo_comp *c;

    if (g->even && random_chance(g, 30)) {
        random_make_fft(g);
        return;
    }
    arg[0] = random_pick(g, HLO_T_ANY & ~HLO_T_CPLX, exact);
    s = arg[0]->shape;
    if (s->rank == 0 || !random_total_order(arg[0]))
        return;
    d = random_below(g, s->rank);
    for (int i = 1; i < n; i++) {
        arg[i] = random_want(
            g, random_dims(g, random_dtype(g, HLO_T_ANY), s->rank, s->dim),
            exact);
        if (!random_total_order(arg[i]))
            return;
    }
    in = random_inst(g, HLO_SORT, NULL, n, arg);
    in->dims = hlo_dims_copy(g->a, &d, 1);
    in->u.sort.stable = true; /* else equal keys have no order */
    c = order_of(g, n, arg);
    hlo_set_comps(in, 1, &c);
    random_infer(g, in);
    for (int i = 0; i < n; i++)
        random_keep(g, n == 1 ? in : hlo_make_gte(random_at(g), in, i),
                    *random_fact_of(arg[i]));
}

void random_make_topk(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY & ~HLO_T_CPLX,
                              (random_need){INFINITY, true, true});
    const sd_shape *s = x->shape;
    hlo_inst *in;
    int64_t k;

    if (s->rank == 0 || s->dtype == SD_PRED)
        return;
    k = random_below(g, s->dim[s->rank - 1] + 1);
    in = random_inst(g, HLO_TOPK, NULL, 1, &x);
    in->dims = hlo_dims_copy(g->a, &k, 1);
    random_infer(g, in);
    random_keep(g, hlo_make_gte(random_at(g), in, 0), *random_fact_of(x));
    random_keep(g, hlo_make_gte(random_at(g), in, 1), random_exact_int(SD_S32));
}

/* A region of elementwise operations, made by the same makers. */
void random_make_map(random_gen *g)
{
    hlo_inst *arg[2] = {random_pick(g, HLO_T_ANY, anything), NULL}, *in;
    const sd_shape *s = arg[0]->shape;
    int64_t dims[SD_MAX_RANK];
    random_gen r = *g;

    if (g->scalars)
        return;
    arg[1] = random_want(
        g, random_dims(g, random_dtype(g, HLO_T_ANY), s->rank, s->dim),
        anything);
    r = *g;
    r.c = hlo_comp_create(g->m, "element");
    r.npool = 0;
    r.scalars = true;
    for (int i = 0; i < 2; i++)
        random_keep(
            &r,
            hlo_make_param(r.c, random_dims(g, arg[i]->shape->dtype, 0, NULL),
                           "e"),
            *random_fact_of(arg[i]));
    random_steps(&r, 2 + (int)random_below(g, 5));
    hlo_set_root(r.c, r.pool[r.npool - 1]);
    g->state = r.state;
    in = random_inst(g, HLO_MAP, NULL, 2, arg);
    for (int i = 0; i < s->rank; i++)
        dims[i] = i;
    in->dims = hlo_dims_copy(g->a, dims, s->rank);
    hlo_set_comps(in, 1, &r.c);
    random_infer(g, in);
    random_keep(g, in, *random_fact_of(r.c->root));
}
