/* Attention's gradient, as it is asked for beside the result.  Of o, the
 * result's cotangent, JAX makes
 *
 *   dv = p * o, summed over rows
 *   g  = o * v, summed over v's own dimension: the weights' cotangent
 *   ds = (g / l + c) * e, c = -sum over keys of g * (1 / (l * l)) * e
 *   dx = a function of ds and the score, element by element
 *   dq = dx * k, summed over keys;  dk = dx * q, summed over rows
 *
 * with e the exponentials and l their sum; or ds = p * (g - sum of p * g),
 * which is the same: the parts are *monomials* in g, e and l, and what is asked
 * is whether they multiply to p * (g - sum of p * g), whatever their order.
 *
 * It is found from the exponentials on: what is made of them has their view,
 * and ends in products over keys or rows.  See attend.h. */
#include "attend.h"

enum { PLACED = 96 /* values looked at: a product of another is not found */ };

/* ---- parts of softmax's gradient ---- */

typedef struct {
    int g, e, l; /* exponents */
    bool minus, summed, ok; /* summed: over keys */
} monomial;

static const monomial none;

static monomial monomial_of(attend_gradient *g, hlo_inst *x, attend_view v);

/* A sum is once a factor, and divides nothing. */
static monomial times(monomial x, monomial y, int sign)
{
    bool one_sum = !y.summed || (sign > 0 && !x.summed);

    return (monomial){x.g + sign * y.g,     x.e + sign * y.e,
                      x.l + sign * y.l,     x.minus != y.minus,
                      x.summed || y.summed, x.ok && y.ok && one_sum};
}

/* Over nothing, or over keys: there of one g and one e, since a monomial does
 * not say which of its factors are inside the sum.  l is the same of all keys.
 */
static monomial sum_of(attend_gradient *g, hlo_inst *x, const attend_view *v)
{
    attend_pattern *p = g->p;
    const sd_shape *s = x->narg == 2 ? x->arg[0]->shape : NULL;
    attend_view o = {0};
    hlo_op op;
    int at = 0, keys = 0;
    double zero;
    monomial m;

    if (!s || !hlo_comp_is_binary(x->comp[0], &op) || op != HLO_ADD ||
        !hlo_is_scalar_const(x->arg[1], &zero) || zero != 0)
        return none;
    for (int i = 0; i < s->rank; i++) {
        if (!hlo_dims_hold(x->dims, i)) {
            attend_take_axes(&o, i, v, at++);
        } else if (s->dim[i] > 1) {
            attend_add_axis(&o, i, p->key);
            keys++;
            if (s->dim[i] != p->extent[p->key])
                return none;
        }
    }
    if (keys > 1 || (keys && attend_view_has(v, x->shape->rank, p->key)))
        return none;
    m = monomial_of(g, x->arg[0], o);
    if (keys && (m.summed || m.g != 1 || m.e != 1))
        return none;
    m.summed = m.summed || keys;
    return m;
}

/* The weights' cotangent: another product of rows and keys. */
static monomial slope_of(attend_gradient *g, hlo_inst *x, const attend_view *v)
{
    int rank = x->shape->rank;

    if (x == g->p->dot || !attend_view_has(v, rank, g->p->key) ||
        !attend_view_has(v, rank, g->p->row) ||
        (g->slope && (x != g->slope || !attend_same_view(v, &g->slope_view))))
        return none;
    g->slope = x;
    g->slope_view = *v;
    return (monomial){.g = 1, .ok = true};
}

static monomial monomial_of(attend_gradient *g, hlo_inst *x, attend_view v)
{
    attend_pattern *p = g->p;
    double one;
    monomial m;

    x = attend_strip(p, x, &v);
    if (x == p->exp)
        return (monomial){.e = 1, .ok = attend_same_view(&v, &p->exp_view)};
    if (x == p->total)
        return (monomial){.l = 1, .ok = attend_same_view(&v, &p->total_view)};
    if (hlo_is_scalar_const(x, &one))
        return (monomial){.minus = one < 0, .ok = one == 1 || one == -1};
    if (!attend_see(p, x))
        return none;
    switch (x->op) {
    case HLO_DOT:
        return slope_of(g, x, &v);
    case HLO_REDUCE:
        return sum_of(g, x, &v);
    case HLO_NEGATE:
        m = monomial_of(g, x->arg[0], v);
        m.minus = !m.minus;
        return m;
    case HLO_MULTIPLY:
    case HLO_DIVIDE:
        m = monomial_of(g, x->arg[0], v);
        return m.ok ? times(m, monomial_of(g, x->arg[1], v),
                            x->op == HLO_MULTIPLY ? 1 : -1)
                    : none;
    default:
        return none;
    }
}

static bool is(monomial m, int g, int e, int l, bool minus, bool summed)
{
    return m.ok && m.g == g && m.e == e && m.l == l && m.minus == minus &&
           m.summed == summed;
}

/* p * (g - sum of p * g) = a * (y + z), p = e / l. */
static bool is_gradient(attend_gradient *g, monomial a, hlo_inst *sum,
                        attend_view v)
{
    sum = attend_strip(g->p, sum, &v);
    if (!a.ok || (sum->op != HLO_ADD && sum->op != HLO_SUBTRACT) ||
        !attend_see(g->p, sum))
        return false;
    for (int k = 0; k < 2; k++) {
        monomial b = times(a, monomial_of(g, sum->arg[k], v), 1),
                 c = times(a, monomial_of(g, sum->arg[1 - k], v), 1);

        if (sum->op == HLO_SUBTRACT) {
            b.minus = b.minus != (k == 1);
            c.minus = c.minus != (k == 0);
        }
        if (is(b, 1, 1, -1, false, false) && is(c, 1, 2, -2, true, true))
            return true;
    }
    return false;
}

/* Of x, of view v: a is its one factor, or 1. */
static bool is_ds(attend_gradient *g, hlo_inst *x, const attend_view *v)
{
    if (x->op == HLO_ADD || x->op == HLO_SUBTRACT)
        return is_gradient(g, (monomial){.ok = true}, x, *v);
    for (int k = 0; x->op == HLO_MULTIPLY && k < 2; k++)
        if (is_gradient(g, monomial_of(g, x->arg[k], *v), x->arg[1 - k], *v))
            return true;
    return false;
}

/* Among what x is made of, element by element. */
static bool find_ds(attend_gradient *g, hlo_inst *x, attend_view v)
{
    attend_view o;

    if (x == g->p->exp || x == g->p->dot || !attend_see(g->p, x))
        return false;
    if (attend_moved_view(g->p, x, &v, &o))
        return find_ds(g, x->arg[0], o);
    if (is_ds(g, x, &v)) {
        g->ds = x;
        g->ds_view = v;
        return true;
    }
    if (!hlo_is_elementwise(x))
        return false;
    for (int i = 0; i < x->narg; i++)
        if (x->arg[i]->shape->rank && attend_is_whole(g->p, x->arg[i]) &&
            find_ds(g, x->arg[i], v))
            return true;
    return false;
}

/* ---- products ---- */

/* x without what moves it, and what makes f32 of it where the kernel takes its
 * type as it is. */
static hlo_inst *bare(const attend_pattern *p, hlo_inst *x, attend_view *v)
{
    attend_view o;

    for (;; x = x->arg[0]) {
        if (attend_moved_view(p, x, v, &o))
            *v = o;
        else if (x->op != HLO_CONVERT || pass_dtype(x) != SD_F32 ||
                 pass_dtype(x->arg[0]) != pass_dtype(p->value))
            return x;
    }
}

static bool same_array(const attend_pattern *p, hlo_inst *x, attend_view v,
                       hlo_inst *y, attend_view w)
{
    return bare(p, x, &v) == bare(p, y, &w) && attend_same_view(&v, &w);
}

/* The axes of dimensions of a view, as bits. */
static unsigned axes_of(const attend_view *v, const hlo_dims *d)
{
    unsigned axes = 0;

    for (int i = 0; i < d->n; i++)
        for (int j = 0; j < v->n[d->at[i]]; j++)
            axes |= 1u << v->axis[d->at[i]][j];
    return axes;
}

/* The axes of operand k of a product, of which operand 1 - k has v, and the
 * result's; own: of the operand's own dimension.  False: it has several, or the
 * product sums over others than `over`, as bits. */
static bool view_product(hlo_inst *dot, int k, const attend_view *v,
                         unsigned over, int own, attend_view *operand,
                         attend_view *result)
{
    const hlo_dot *d = dot->u.dot;
    const hlo_dims *c = attend_contract(d, 1 - k), *b = attend_batch(d, 1 - k);
    bool has = false;

    *operand = *result = (attend_view){0};
    for (int i = 0; i < c->n; i++)
        attend_take_axes(operand, (int)attend_contract(d, k)->at[i], v,
                         c->at[i]);
    for (int i = 0; i < b->n; i++)
        attend_take_axes(operand, (int)attend_batch(d, k)->at[i], v, b->at[i]);
    for (int i = 0; i < dot->arg[1 - k]->shape->rank; i++)
        if (attend_result_dim(dot, 1 - k, i) >= 0)
            attend_take_axes(result, attend_result_dim(dot, 1 - k, i), v, i);
    for (int i = 0; i < dot->arg[k]->shape->rank; i++) {
        if (hlo_dims_hold(*attend_contract(d, k), i) ||
            hlo_dims_hold(*attend_batch(d, k), i) ||
            dot->arg[k]->shape->dim[i] == 1)
            continue;
        if (has)
            return false;
        has = true;
        attend_add_axis(operand, i, own);
        attend_add_axis(result, attend_result_dim(dot, k, i), own);
    }
    return has && axes_of(v, c) == over;
}

/* The result's cotangent times v: which operand is the cotangent? */
static bool find_cotangent(attend_gradient *g)
{
    attend_pattern *p = g->p;
    hlo_inst *dot = g->slope;

    if (dot->u.dot->lhs_contract.n != 1)
        return false;
    for (int k = 0; k < 2; k++) {
        attend_view o = attend_operand_view(dot, k, &g->slope_view, ATTEND_E),
                    v = attend_operand_view(dot, 1 - k, &g->slope_view,
                                            ATTEND_E);

        if (attend_view_has(&v, dot->arg[1 - k]->shape->rank, p->key) &&
            same_array(p, dot->arg[1 - k], v, p->value, attend_value_view(p))) {
            g->o_view = o;
            g->o = bare(p, dot->arg[k], &g->o_view);
            return true;
        }
    }
    return false;
}

/* x of view v, operand 1 - k of dot: is that the product dv, dq or dk? */
static void take_product(attend_gradient *g, hlo_inst *dot, int k,
                         const attend_view *v)
{
    attend_pattern *p = g->p;
    hlo_inst *x = dot->arg[1 - k], *from;
    unsigned rows = 1u << p->row | g->shared;
    attend_view operand, result, w = *v;

    if (dot == p->last || dot == p->dot)
        return;
    if (view_product(dot, k, v, rows, ATTEND_E, &operand, &result) &&
        is(monomial_of(g, x, *v), 0, 1, -1, false, false)) {
        if (g->o && !g->dv.dot &&
            same_array(p, dot->arg[k], operand, g->o, g->o_view))
            g->dv = (attend_product){dot, result};
        return;
    }
    from = x;
    while (attend_moved_view(p, from, &w, &operand)) {
        w = operand;
        from = from->arg[0];
    }
    for (int side = 0; side < 2; side++) { /* of q, of k */
        attend_product *to = side ? &g->dk : &g->dq;
        int with = side ? p->q : 1 - p->q;

        if (!view_product(dot, k, v, side ? rows : 1u << p->key, ATTEND_D,
                          &operand, &result) ||
            to->dot ||
            (g->dx && (g->dx != from || !attend_same_view(&w, &g->dx_view))) ||
            !same_array(
                p, dot->arg[k], operand, p->dot->arg[with],
                attend_operand_view(p->dot, with, &p->dot_view, ATTEND_D)))
            continue;
        g->dx = from;
        g->dx_view = w;
        *to = (attend_product){dot, result};
    }
}

typedef struct {
    attend_leaf at[PLACED];
    int n;
} placed;

static void place(placed *l, hlo_inst *in, const attend_view *v)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].in == in)
            return;
    if (l->n < PLACED)
        l->at[l->n++] = (attend_leaf){in, *v};
}

/* What is made of the exponentials, as large as these. */
static void place_users(attend_pattern *p, placed *l)
{
    place(l, p->exp, &p->exp_view);
    for (int i = 0; i < l->n; i++) {
        hlo_inst *x = l->at[i].in;

        for (int j = 0; j < x->nuse; j++) {
            hlo_inst *u = x->user[j];
            attend_view v = l->at[i].v, w;

            if (attend_user_view(p, x, &v, u, &w))
                place(l, u, &w);
            else if (hlo_is_elementwise(u))
                place(l, u, &v);
        }
    }
}

/* The cotangent is known once ds is; ds is what dx is made of. */
static bool find_products(attend_gradient *g, const placed *l)
{
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < l->n; i++) {
            hlo_inst *x = l->at[i].in;

            for (int j = 0; j < x->nuse; j++)
                for (int k = 0; k < 2 && x->user[j]->op == HLO_DOT; k++)
                    if (x->user[j]->arg[1 - k] == x && (turn == 0 || g->o))
                        take_product(g, x->user[j], k, &l->at[i].v);
            if (turn == 0 && g->dx && !g->ds &&
                (!find_ds(g, g->dx, g->dx_view) || !find_cotangent(g)))
                return false;
        }
    return g->ds && g->dq.dot && g->dk.dot && g->dv.dot;
}

/* ---- what kernels take ---- */

/* As bits, the axes of scores that x has. */
static unsigned axes_in(const attend_pattern *p, const hlo_inst *x,
                        const attend_view *v)
{
    unsigned axes = 0;

    for (int i = 0; i < p->naxis; i++)
        if (attend_view_has(v, x->shape->rank, i))
            axes |= 1u << i;
    return axes;
}

static unsigned axes_in_operand(const attend_pattern *p, int k)
{
    attend_view v = attend_operand_view(p->dot, k, &p->dot_view, ATTEND_D);

    return axes_in(p, p->dot->arg[k], &v);
}

/* q has all of the batch; k and v have the same of it. */
static bool find_shared(attend_gradient *g)
{
    const attend_pattern *p = g->p;
    attend_view v = attend_value_view(p);
    unsigned all = (1u << p->naxis) - 1, row = 1u << p->row;
    unsigned keys = axes_in_operand(p, 1 - p->q);

    g->shared = all & ~row & ~keys;
    return axes_in_operand(p, p->q) == (all & ~(1u << p->key)) &&
           axes_in(p, p->value, &v) == keys;
}

/* An f32 dx goes to the engine in two parts of bf16, which is no less than tf32
 * has; or where messages bring operands in three, which is all of it. */
static bool fits_product(const attend_gradient *g, const hlo_inst *dot,
                         sd_dtype t)
{
    sd_dtype of = pass_dtype(dot->arg[0]);

    return pass_dtype(dot->arg[1]) == of &&
           (of == t ||
            (of == SD_F32 && t == SD_BF16 && !dot->u.dot->algorithm &&
             (pass_attends_matrices(g->dev) || pass_may_round(g->dev, dot))));
}

/* Kernels write a result as q is, or as f32. */
static bool fits_result(const attend_product *x, sd_dtype t)
{
    return pass_dtype(x->dot) == t || pass_dtype(x->dot) == SD_F32;
}

/* Sums of keys have all of the batch. */
static bool fits_sums(const attend_pattern *p)
{
    double n = (double)SD_MAX(p->extent[ATTEND_D], p->extent[ATTEND_E]);

    for (int i = 0; i < p->naxis; i++)
        n *= i == p->row ? 1 : (double)p->extent[i];
    return n < INT32_MAX;
}

static bool fits(const attend_gradient *g)
{
    const attend_pattern *p = g->p;
    sd_dtype t = pass_dtype(p->value);

    return pass_dtype(g->o) == t &&
           axes_in(p, g->o, &g->o_view) ==
               (((1u << p->naxis) - 1) & ~(1u << p->key)) &&
           p->extent[ATTEND_D] <= HLO_ATTEND_MOST_GRADIENT &&
           p->extent[ATTEND_E] <= HLO_ATTEND_MOST_GRADIENT &&
           sd_shape_count(g->o->shape) < INT32_MAX && fits_sums(p) &&
           fits_product(g, g->dq.dot, t) && fits_product(g, g->dk.dot, t) &&
           fits_result(&g->dq, t) && fits_result(&g->dk, t) &&
           fits_result(&g->dv, t) && pass_dtype(g->dv.dot->arg[0]) == t &&
           pass_dtype(g->dv.dot->arg[1]) == t &&
           pass_dtype(g->slope->arg[0]) == t &&
           pass_dtype(g->slope->arg[1]) == t;
}

bool attend_find_gradient(attend_gradient *g)
{
    placed l = {0};

    if (!find_shared(g))
        return false;
    place_users(g->p, &l);
    return find_products(g, &l) && fits(g) && attend_make_slope(g);
}
