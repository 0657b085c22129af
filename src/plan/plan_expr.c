/* Index expressions.  Every expression is a sum of constants times atoms
 * (axis, node, quotient, remainder), atoms in rising id, so that equal sums
 * are one pointer; the rules of the ADR are rules about such sums. */
#include "plan_room.h"

#include <assert.h>

enum { MAX_TERMS = 96 };

struct plan_px {
    sd_arena *a;
    sd_map *map; /* hash -> chain */
    uint32_t next_id;
};
typedef struct chain {
    plan_expr e;
    struct chain *next;
} chain;

typedef struct { /* k0 + sum of c[i] * t[i] */
    int n;
    const plan_expr *t[MAX_TERMS];
    int64_t c[MAX_TERMS];
    int64_t k0;
} sum;

plan_px *plan_px_create(sd_arena *a)
{
    plan_px *p = sd_arena_new(a, plan_px);

    p->a = a;
    p->map = sd_map_create(a);
    return p;
}

static int64_t sat_mul(int64_t a, int64_t b)
{
    int64_t r;

    if (!__builtin_mul_overflow(a, b, &r))
        return r;
    return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t sat_add(int64_t a, int64_t b)
{
    int64_t r;

    if (!__builtin_add_overflow(a, b, &r))
        return r;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

/* a + b * c as devices compute it: an index that is out of bounds, which is
 * tested before it is used, may be any number. */
static int64_t wrap_mad(int64_t a, int64_t b, int64_t c)
{
    return (int64_t)((uint64_t)a + (uint64_t)b * (uint64_t)c);
}

static int64_t floor_div(int64_t a, int64_t k)
{
    int64_t q = a / k;

    return a % k < 0 ? q - 1 : q;
}

static bool same(const plan_expr *x, const plan_expr *y)
{
    return x->kind == y->kind && x->axis == y->axis && x->c == y->c &&
           x->a == y->a && x->b == y->b && x->node == y->node &&
           x->lo == y->lo && x->hi == y->hi;
}

static const plan_expr *intern(plan_px *p, plan_expr e)
{
    uint64_t key[8] = {e.kind,         (uint64_t)e.axis, (uint64_t)e.c,
                       sd_key(e.a),    sd_key(e.b),      sd_key(e.node),
                       (uint64_t)e.lo, (uint64_t)e.hi};
    uint64_t h = sd_hash(key, sizeof key, 0);
    chain *first = sd_map_get(p->map, h), *c;

    for (c = first; c; c = c->next)
        if (same(&c->e, &e))
            return &c->e;
    c = sd_arena_new(p->a, chain);
    c->e = e;
    c->e.id = p->next_id++;
    c->next = first;
    sd_map_set(p->map, h, c);
    return &c->e;
}

const plan_expr *plan_px_const(plan_px *p, int64_t c)
{
    return intern(p, (plan_expr){.kind = PX_CONST, .c = c, .lo = c, .hi = c});
}

const plan_expr *plan_px_axis(plan_px *p, int axis, int64_t extent)
{
    assert(axis >= 0 && axis < 64);
    if (extent <= 1)
        return plan_px_const(p, 0);
    return intern(p, (plan_expr){.kind = PX_AXIS,
                                 .axis = axis,
                                 .hi = extent - 1,
                                 .varies = 1ull << axis});
}

const plan_expr *plan_px_node(plan_px *p, plan_node *n, int64_t lo, int64_t hi)
{
    if (lo == hi)
        return plan_px_const(p, lo);
    return intern(p, (plan_expr){.kind = PX_NODE,
                                 .node = n,
                                 .lo = lo,
                                 .hi = hi,
                                 .varies = n->varies});
}

/* ---- sums ---- */

static void sum_add(sum *s, const plan_expr *e, int64_t c)
{
    switch (e->kind) {
    case PX_CONST:
        s->k0 = wrap_mad(s->k0, c, e->c);
        return;
    case PX_ADD:
        sum_add(s, e->a, c);
        sum_add(s, e->b, c);
        return;
    case PX_MUL:
        sum_add(s, e->a, wrap_mad(0, c, e->c));
        return;
    default:
        break;
    }
    for (int i = 0; i < s->n; i++)
        if (s->t[i] == e) {
            s->c[i] = wrap_mad(s->c[i], c, 1);
            if (s->c[i] == 0) {
                s->n--;
                s->t[i] = s->t[s->n];
                s->c[i] = s->c[s->n];
            }
            return;
        }
    assert(s->n < MAX_TERMS);
    s->t[s->n] = e;
    s->c[s->n++] = c;
}

static int find_term(const sum *s, const plan_expr *e, int64_t c)
{
    for (int i = 0; i < s->n; i++)
        if (s->t[i] == e && s->c[i] == c)
            return i;
    return -1;
}

static void drop_terms(sum *s, int i, int j)
{
    int hi = SD_MAX(i, j), lo = SD_MIN(i, j);

    s->n--;
    s->t[hi] = s->t[s->n];
    s->c[hi] = s->c[s->n];
    s->n--;
    s->t[lo] = s->t[s->n];
    s->c[lo] = s->c[s->n];
}

/* (y % k) * c + (y / k) * c * k = y * c */
static bool rejoin(plan_px *p, sum *s)
{
    for (int i = 0; i < s->n; i++) {
        const plan_expr *r = s->t[i], *q;
        int64_t c = s->c[i];
        int j;

        if (r->kind != PX_MOD)
            continue;
        q = plan_px_div(p, r->a, r->c);
        if (q->kind == PX_ADD || q->kind == PX_MUL || q->kind == PX_CONST)
            continue;
        j = find_term(s, q, wrap_mad(0, c, r->c));
        if (j < 0)
            continue;
        drop_terms(s, i, j);
        sum_add(s, r->a, c);
        return true;
    }
    return false;
}

static const plan_expr *scaled(plan_px *p, const plan_expr *t, int64_t c)
{
    int64_t x = sat_mul(t->lo, c), y = sat_mul(t->hi, c);

    if (c == 1)
        return t;
    return intern(p, (plan_expr){.kind = PX_MUL,
                                 .c = c,
                                 .a = t,
                                 .lo = SD_MIN(x, y),
                                 .hi = SD_MAX(x, y),
                                 .varies = t->varies});
}

static const plan_expr *sum_expr(plan_px *p, sum *s)
{
    const plan_expr *e = NULL;

    while (rejoin(p, s))
        ;
    for (int i = 1; i < s->n; i++) /* few terms: insertion by id */
        for (int j = i; j > 0 && s->t[j]->id < s->t[j - 1]->id; j--) {
            const plan_expr *t = s->t[j];
            int64_t c = s->c[j];

            s->t[j] = s->t[j - 1];
            s->c[j] = s->c[j - 1];
            s->t[j - 1] = t;
            s->c[j - 1] = c;
        }
    for (int i = 0; i <= s->n; i++) {
        const plan_expr *t, *x, *y;

        if (i == s->n && s->k0 == 0 && e)
            break;
        t = i < s->n ? scaled(p, s->t[i], s->c[i]) : plan_px_const(p, s->k0);
        if (!e) {
            e = t;
            continue;
        }
        x = e->id < t->id ? e : t;
        y = e->id < t->id ? t : e;
        e = intern(p, (plan_expr){.kind = PX_ADD,
                                  .a = x,
                                  .b = y,
                                  .lo = sat_add(e->lo, t->lo),
                                  .hi = sat_add(e->hi, t->hi),
                                  .varies = e->varies | t->varies});
    }
    return e;
}

const plan_expr *plan_px_mad(plan_px *p, const plan_expr *a, int64_t c,
                             const plan_expr *b)
{
    sum s = {0};

    sum_add(&s, a, 1);
    if (c)
        sum_add(&s, b, c);
    return sum_expr(p, &s);
}

const plan_expr *plan_px_add(plan_px *p, const plan_expr *a, const plan_expr *b)
{
    return plan_px_mad(p, a, 1, b);
}

const plan_expr *plan_px_mul(plan_px *p, const plan_expr *a, int64_t c)
{
    sum s = {0};

    if (c)
        sum_add(&s, a, c);
    return sum_expr(p, &s);
}

/* ---- quotient and remainder ---- */

/* e = q * k + r, r with all coefficients that k does not divide and the
 * constant reduced to [0, k). */
static void split(plan_px *p, const plan_expr *e, int64_t k,
                  const plan_expr **q, const plan_expr **r)
{
    sum s = {0}, sq = {0}, sr = {0};

    sum_add(&s, e, 1);
    for (int i = 0; i < s.n; i++)
        if (s.c[i] % k == 0)
            sum_add(&sq, s.t[i], s.c[i] / k);
        else
            sum_add(&sr, s.t[i], s.c[i]);
    sq.k0 = floor_div(s.k0, k);
    sr.k0 = wrap_mad(s.k0, sq.k0, -k);
    *q = sum_expr(p, &sq);
    *r = sum_expr(p, &sr);
}

/* The greatest g that divides k and all coefficients; *rest the constant. */
static int64_t common(const plan_expr *e, int64_t k, int64_t *rest)
{
    sum s = {0};

    sum_add(&s, e, 1);
    *rest = s.k0;
    for (int i = 0; i < s.n; i++) {
        int64_t a = k, b = s.c[i] < 0 ? -s.c[i] : s.c[i];

        while (b) {
            int64_t t = a % b;

            a = b;
            b = t;
        }
        k = a;
    }
    return k;
}

static const plan_expr *shrink(plan_px *p, const plan_expr *e, int64_t g)
{
    sum s = {0}, d = {0};

    sum_add(&s, e, 1);
    for (int i = 0; i < s.n; i++)
        sum_add(&d, s.t[i], s.c[i] / g);
    d.k0 = floor_div(s.k0, g);
    return sum_expr(p, &d);
}

/* (s + t / m) / k = (m s + t) / (m k): one division, and one form for what a
 * reshape may reach in several ways. */
static const plan_expr *flatten_div(plan_px *p, const plan_expr *e, int64_t *m)
{
    sum s = {0}, d = {0};
    int at = -1;

    sum_add(&s, e, 1);
    for (int i = 0; i < s.n; i++)
        if (s.t[i]->kind == PX_DIV && s.c[i] == 1)
            at = i;
    if (at < 0 || s.n < 2)
        return NULL;
    *m = s.t[at]->c;
    for (int i = 0; i < s.n; i++)
        if (i != at)
            sum_add(&d, s.t[i], s.c[i] * *m);
    d.k0 = wrap_mad(d.k0, s.k0, *m);
    sum_add(&d, s.t[at]->a, 1);
    return sum_expr(p, &d);
}

static const plan_expr *quotient(plan_px *p, const plan_expr *e, int64_t k)
{
    const plan_expr *flat;
    int64_t g, rest;

    if (k == 1)
        return e;
    if (e->lo >= 0 && e->hi < k)
        return plan_px_const(p, 0);
    if (e->kind == PX_DIV)
        return quotient(p, e->a, e->c * k);
    if (e->kind == PX_MOD && e->c % k == 0) /* (x % m) / k */
        return plan_px_mod(p, plan_px_div(p, e->a, k), e->c / k);
    flat = flatten_div(p, e, &g);
    if (flat)
        return plan_px_div(p, flat, g * k);
    g = common(e, k, &rest);
    if (g > 1)
        return quotient(p, shrink(p, e, g), k / g);
    return intern(p, (plan_expr){.kind = PX_DIV,
                                 .c = k,
                                 .a = e,
                                 .lo = floor_div(e->lo, k),
                                 .hi = floor_div(e->hi, k),
                                 .varies = e->varies});
}

const plan_expr *plan_px_div(plan_px *p, const plan_expr *a, int64_t k)
{
    const plan_expr *q, *r;

    assert(k > 0);
    if (k == 1)
        return a;
    split(p, a, k, &q, &r);
    if (r->lo < 0) /* the parts could be negative where the whole is not */
        return quotient(p, a, k);
    return plan_px_add(p, q, quotient(p, r, k));
}

static const plan_expr *remainder_of(plan_px *p, const plan_expr *e, int64_t k)
{
    int64_t g, rest;

    if (e->lo >= 0 && e->hi < k)
        return e;
    if (e->kind == PX_MOD && e->c % k == 0)
        return remainder_of(p, e->a, k);
    g = common(e, k, &rest);
    if (g > 1) { /* (g x + rest) % k = g (x' % (k / g)) + rest % g */
        const plan_expr *x = shrink(p, e, g);

        rest -= floor_div(rest, g) * g;
        return plan_px_mad(p, plan_px_const(p, rest), g,
                           plan_px_mod(p, x, k / g));
    }
    return intern(
        p,
        (plan_expr){
            .kind = PX_MOD, .c = k, .a = e, .hi = k - 1, .varies = e->varies});
}

const plan_expr *plan_px_mod(plan_px *p, const plan_expr *a, int64_t k)
{
    const plan_expr *q, *r;

    assert(k > 0);
    if (k == 1)
        return plan_px_const(p, 0);
    split(p, a, k, &q, &r);
    return remainder_of(p, r->lo < 0 ? a : r, k);
}

/* ---- arrays ---- */

const plan_expr *plan_px_linear(plan_px *p, int rank, const int64_t *dim,
                                const plan_expr *const *index)
{
    sum s = {0};
    int64_t stride = 1;

    for (int i = rank - 1; i >= 0; i--) {
        if (dim[i] != 1) /* the only index there is 0 */
            sum_add(&s, index[i], stride);
        stride *= dim[i];
    }
    return sum_expr(p, &s);
}

void plan_px_delinear(plan_px *p, const plan_expr *e, int rank,
                      const int64_t *dim, const plan_expr **index)
{
    int64_t stride = 1;

    for (int i = rank - 1; i >= 0; i--) {
        const plan_expr *q;

        if (dim[i] <= 1) {
            index[i] = plan_px_const(p, 0);
            continue;
        }
        q = plan_px_div(p, e, stride);
        stride *= dim[i];
        /* the first dimension holds what is left */
        index[i] = q->lo >= 0 && q->hi < dim[i] ? q : plan_px_mod(p, q, dim[i]);
    }
}

void plan_px_reshape(plan_px *p, const sd_shape *from,
                     const plan_expr *const *index, const sd_shape *to,
                     const plan_expr **out)
{
    int i = 0, j = 0;

    if (sd_shape_count(from) == 0) {
        for (int k = 0; k < to->rank; k++)
            out[k] = plan_px_const(p, 0);
        return;
    }
    while (i < from->rank || j < to->rank) {
        int i0 = i, j0 = j;
        int64_t x = i < from->rank ? from->dim[i++] : 1;
        int64_t y = j < to->rank ? to->dim[j++] : 1;

        while (x != y)
            if (x < y)
                x *= from->dim[i++];
            else
                y *= to->dim[j++];
        plan_px_delinear(p,
                         plan_px_linear(p, i - i0, from->dim + i0, index + i0),
                         j - j0, to->dim + j0, out + j0);
    }
}

/* ---- substitution and questions ---- */

const plan_expr *plan_px_subst(plan_px *p, const plan_expr *e,
                               const plan_expr *const *with)
{
    switch (e->kind) {
    case PX_CONST:
        return plan_px_const(p, e->c);
    case PX_NODE:
        return plan_px_node(p, e->node, e->lo, e->hi);
    case PX_AXIS:
        return with[e->axis];
    case PX_ADD:
        return plan_px_add(p, plan_px_subst(p, e->a, with),
                           plan_px_subst(p, e->b, with));
    case PX_MUL:
        return plan_px_mul(p, plan_px_subst(p, e->a, with), e->c);
    case PX_DIV:
        return plan_px_div(p, plan_px_subst(p, e->a, with), e->c);
    case PX_MOD:
        return plan_px_mod(p, plan_px_subst(p, e->a, with), e->c);
    }
    return e;
}

static int64_t coefficient(const sum *s, int axis)
{
    for (int i = 0; i < s->n; i++)
        if (s->t[i]->kind == PX_AXIS && s->t[i]->axis == axis)
            return s->c[i];
    return 0;
}

bool plan_px_joins(const plan_expr *e, int a, int b, int64_t eb)
{
    sum s = {0};

    if (!(e->varies & (1ull << a | 1ull << b)))
        return true;
    sum_add(&s, e, 1);
    if (coefficient(&s, a) != coefficient(&s, b) * eb)
        return false;
    for (int i = 0; i < s.n; i++) {
        const plan_expr *t = s.t[i];

        if (t->kind == PX_NODE) { /* the node's own expressions are asked */
            continue;
        }
        if ((t->kind == PX_DIV || t->kind == PX_MOD) &&
            !plan_px_joins(t->a, a, b, eb))
            return false;
    }
    return true;
}

bool plan_expr_stride(const plan_expr *e, int axis, int64_t *stride)
{
    sum s = {0};

    *stride = 0;
    if (!(e->varies >> axis & 1))
        return true;
    sum_add(&s, e, 1);
    for (int i = 0; i < s.n; i++)
        if (s.t[i]->kind != PX_AXIS && s.t[i]->varies >> axis & 1)
            return false;
    *stride = coefficient(&s, axis);
    return true;
}
