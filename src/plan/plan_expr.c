/* Index expressions.  Every expression is a sum of constants times atoms
 * (axis, node, quotient, remainder), atoms in rising id, so that equal sums
 * are one pointer; the rules of the ADR are rules about such sums. */
#include "plan_room.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

typedef struct {
    const plan_expr *e; /* an atom: neither ADD, MUL nor CONST */
    int64_t c;
} term;

/* k0 + the sum of c * e over its terms, while it is being made.  A sum is
 * opened and closed in turn, innermost first, so that the memory of one serves
 * the next: see sum_open. */
typedef struct {
    plan_px *p;
    sd_vec(term) t;
    int64_t k0;
} sum;

struct plan_px {
    sd_arena *a;
    sd_map *map;      /* hash -> chain */
    sd_map *division; /* hash -> division */
    uint32_t next_id;
    sd_vec(sum *) room; /* the first `nopen` are in use */
    int nopen;
};
typedef struct chain {
    plan_expr e;
    struct chain *next;
} chain;

/* A quotient or remainder that has been simplified before.  Sums ask for the
 * quotients of their remainders each time they are made, and what those stand
 * on does the same: without this the work doubles with every level. */
typedef struct division {
    const plan_expr *e, *of;
    plan_expr_kind kind;
    int64_t k;
    struct division *next;
} division;

plan_px *plan_px_create(sd_arena *a)
{
    plan_px *p = sd_arena_new(a, plan_px);

    p->a = a;
    p->map = sd_map_create(a);
    p->division = sd_map_create(a);
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
    c->e.size = (int)SD_MIN(1ll + (e.a ? e.a->size : 0) + (e.b ? e.b->size : 0),
                            INT_MAX);
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

static sum *sum_open(plan_px *p)
{
    sum *s;

    if (p->nopen == p->room.n)
        *sd_push(p->a, &p->room) = sd_arena_new(p->a, sum);
    s = p->room.at[p->nopen++];
    s->p = p;
    s->t.n = 0;
    s->k0 = 0;
    return s;
}

/* An ADD has at most one ADD below it, so this takes as many steps as there are
 * terms, and no stack. */
const plan_expr *plan_px_next_term(const plan_expr **rest, int64_t *c)
{
    const plan_expr *e = *rest, *t = e;

    *rest = NULL;
    if (e->kind == PX_ADD) {
        *rest = e->b->kind == PX_ADD ? e->b : e->a;
        t = *rest == e->a ? e->b : e->a;
    }
    *c = t->kind == PX_MUL || t->kind == PX_CONST ? t->c : 1;
    return t->kind == PX_MUL ? t->a : t;
}

static void add_atom(sum *s, const plan_expr *e, int64_t c)
{
    for (int i = 0; i < s->t.n; i++) {
        term *t = &s->t.at[i];

        if (t->e != e)
            continue;
        t->c = wrap_mad(t->c, c, 1);
        if (t->c == 0)
            *t = s->t.at[--s->t.n];
        return;
    }
    *sd_push(s->p->a, &s->t) = (term){e, c};
}

static void sum_add(sum *s, const plan_expr *e, int64_t c)
{
    while (e) {
        int64_t k;
        const plan_expr *t = plan_px_next_term(&e, &k);

        if (t->kind == PX_CONST)
            s->k0 = wrap_mad(s->k0, c, k);
        else
            add_atom(s, t, wrap_mad(0, c, k));
    }
}

static int find_term(const sum *s, const plan_expr *e, int64_t c)
{
    for (int i = 0; i < s->t.n; i++)
        if (s->t.at[i].e == e && s->t.at[i].c == c)
            return i;
    return -1;
}

static void drop_terms(sum *s, int i, int j)
{
    s->t.at[SD_MAX(i, j)] = s->t.at[--s->t.n];
    s->t.at[SD_MIN(i, j)] = s->t.at[--s->t.n];
}

/* (y % k) * c + (y / k) * c * k = y * c */
static bool rejoin(plan_px *p, sum *s)
{
    for (int i = 0; i < s->t.n; i++) {
        const plan_expr *r = s->t.at[i].e, *q;
        int64_t c = s->t.at[i].c;
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

static int by_id(const void *a, const void *b)
{
    const term *x = a, *y = b;

    return (x->e->id > y->e->id) - (x->e->id < y->e->id);
}

static const plan_expr *added(plan_px *p, const plan_expr *x,
                              const plan_expr *y)
{
    return intern(p, (plan_expr){.kind = PX_ADD,
                                 .a = x->id < y->id ? x : y,
                                 .b = x->id < y->id ? y : x,
                                 .lo = sat_add(x->lo, y->lo),
                                 .hi = sat_add(x->hi, y->hi),
                                 .varies = x->varies | y->varies});
}

/* The expression of a sum, which is not used afterwards.  s is the one that
 * was opened last. */
static const plan_expr *sum_close(sum *s)
{
    plan_px *p = s->p;
    const plan_expr *e = NULL;

    while (rejoin(p, s))
        ;
    if (s->t.n > 1)
        qsort(s->t.at, (size_t)s->t.n, sizeof *s->t.at, by_id);
    for (int i = 0; i < s->t.n; i++) {
        const plan_expr *t = scaled(p, s->t.at[i].e, s->t.at[i].c);

        e = e ? added(p, e, t) : t;
    }
    if (!e)
        e = plan_px_const(p, s->k0);
    else if (s->k0)
        e = added(p, e, plan_px_const(p, s->k0));
    p->nopen--;
    assert(p->room.at[p->nopen] == s);
    return e;
}

const plan_expr *plan_px_mad(plan_px *p, const plan_expr *a, int64_t c,
                             const plan_expr *b)
{
    sum *s = sum_open(p);

    sum_add(s, a, 1);
    if (c)
        sum_add(s, b, c);
    return sum_close(s);
}

const plan_expr *plan_px_add(plan_px *p, const plan_expr *a, const plan_expr *b)
{
    return plan_px_mad(p, a, 1, b);
}

const plan_expr *plan_px_mul(plan_px *p, const plan_expr *a, int64_t c)
{
    sum *s = sum_open(p);

    if (c)
        sum_add(s, a, c);
    return sum_close(s);
}

/* ---- quotient and remainder ---- */

/* The terms of e that k divides (`divided`: by k), or the others; and of the
 * constant what is left of it below k, or (divided) how often k is in it. */
static const plan_expr *part_of(plan_px *p, const plan_expr *e, int64_t k,
                                bool divided)
{
    sum *s = sum_open(p);

    while (e) {
        int64_t c;
        const plan_expr *t = plan_px_next_term(&e, &c);

        if (t->kind == PX_CONST)
            s->k0 =
                divided ? floor_div(c, k) : wrap_mad(c, floor_div(c, k), -k);
        else if ((c % k == 0) == divided)
            add_atom(s, t, divided ? c / k : c);
    }
    return sum_close(s);
}

/* e = q * k + r, r with all coefficients that k does not divide and the
 * constant reduced to [0, k). */
static void split(plan_px *p, const plan_expr *e, int64_t k,
                  const plan_expr **q, const plan_expr **r)
{
    *q = part_of(p, e, k, true);
    *r = part_of(p, e, k, false);
}

/* The greatest g that divides k and all coefficients; *rest the constant. */
static int64_t common(const plan_expr *e, int64_t k, int64_t *rest)
{
    *rest = 0;
    while (e) {
        int64_t c;
        const plan_expr *t = plan_px_next_term(&e, &c);

        if (t->kind == PX_CONST)
            *rest = c;
        else
            k = sd_gcd(k, c < 0 ? -c : c);
    }
    return k;
}

/* Is m times any value of e still a number, and what stands beside it? */
static bool can_scale(const plan_expr *e, int64_t m)
{
    int64_t lo, hi;

    return !__builtin_mul_overflow(SD_MIN(e->lo, 0), m, &lo) &&
           !__builtin_mul_overflow(SD_MAX(e->hi, 0), m, &hi) &&
           lo > INT64_MIN / 4 && hi < INT64_MAX / 4;
}

/* (s + t / m) / k = (m s + t) / (m k): one division, and one form for what a
 * reshape may reach in several ways. */
static const plan_expr *flatten_div(plan_px *p, const plan_expr *e, int64_t k,
                                    int64_t *m)
{
    const plan_expr *rest = e, *div = NULL, *t;
    sum *s;
    int64_t c;
    int n = 0;

    while (rest) {
        t = plan_px_next_term(&rest, &c);
        n += t->kind != PX_CONST;
        if (t->kind == PX_DIV && c == 1)
            div = t;
    }
    if (!div || n < 2 || !can_scale(e, div->c) ||
        __builtin_mul_overflow(div->c, k, m))
        return NULL;
    *m = div->c;
    s = sum_open(p);
    for (rest = e; rest;) {
        t = plan_px_next_term(&rest, &c);
        if (t != div)
            sum_add(s, t, t->kind == PX_CONST ? *m : wrap_mad(0, c, *m));
    }
    sum_add(s, div->a, 1);
    return sum_close(s);
}

static const plan_expr *quotient(plan_px *p, const plan_expr *e, int64_t k)
{
    const plan_expr *flat;
    int64_t g, rest;

    if (k == 1)
        return e;
    if (e->lo >= 0 && e->hi < k)
        return plan_px_const(p, 0);
    if (e->kind == PX_DIV && !__builtin_mul_overflow(e->c, k, &g))
        return quotient(p, e->a, g);
    if (e->kind == PX_MOD && e->c % k == 0) /* (x % m) / k */
        return plan_px_mod(p, plan_px_div(p, e->a, k), e->c / k);
    flat = flatten_div(p, e, k, &g);
    if (flat)
        return plan_px_div(p, flat, g * k);
    g = common(e, k, &rest);
    if (g > 1)
        return quotient(p, part_of(p, e, g, true), k / g);
    return intern(p, (plan_expr){.kind = PX_DIV,
                                 .c = k,
                                 .a = e,
                                 .lo = floor_div(e->lo, k),
                                 .hi = floor_div(e->hi, k),
                                 .varies = e->varies});
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
        const plan_expr *x = part_of(p, e, g, true);

        rest -= floor_div(rest, g) * g;
        return plan_px_mad(p, plan_px_const(p, rest), g,
                           plan_px_mod(p, x, k / g));
    }
    return intern(
        p,
        (plan_expr){
            .kind = PX_MOD, .c = k, .a = e, .hi = k - 1, .varies = e->varies});
}

/* The same with all coefficients of r below k, if r then is in [0, k): of rows
 * that are read as longer ones, which begin further on each time. */
static bool split_wholly(plan_px *p, const plan_expr *e, int64_t k,
                         const plan_expr **q, const plan_expr **r)
{
    const plan_expr *rest = e, *t;
    sum *sum_q = sum_open(p), *sum_r = sum_open(p);
    int64_t c;

    while (rest) {
        t = plan_px_next_term(&rest, &c);
        if (t->kind == PX_CONST) {
            sum_q->k0 = floor_div(c, k);
            sum_r->k0 = c - floor_div(c, k) * k;
            continue;
        }
        if (floor_div(c, k))
            add_atom(sum_q, t, floor_div(c, k));
        if (c % k)
            add_atom(sum_r, t, c - floor_div(c, k) * k);
    }
    *r = sum_close(sum_r); /* the last one opened first */
    *q = sum_close(sum_q);
    return (*r)->lo >= 0 && (*r)->hi < k;
}

static const plan_expr *make_div(plan_px *p, const plan_expr *a, int64_t k)
{
    const plan_expr *q, *r;

    if (split_wholly(p, a, k, &q, &r))
        return q;
    split(p, a, k, &q, &r);
    if (r->lo < 0) /* the parts could be negative where the whole is not */
        return quotient(p, a, k);
    return plan_px_add(p, q, quotient(p, r, k));
}

static const plan_expr *make_mod(plan_px *p, const plan_expr *a, int64_t k)
{
    const plan_expr *q, *r;

    if (split_wholly(p, a, k, &q, &r))
        return r;
    split(p, a, k, &q, &r);
    return remainder_of(p, r->lo < 0 ? a : r, k);
}

static const plan_expr *divide(plan_px *p, plan_expr_kind kind,
                               const plan_expr *of, int64_t k)
{
    uint64_t key[3] = {kind, sd_key(of), (uint64_t)k};
    uint64_t h = sd_hash(key, sizeof key, 0);
    division *d;

    assert(k > 0);
    for (d = sd_map_get(p->division, h); d; d = d->next)
        if (d->kind == kind && d->of == of && d->k == k)
            return d->e;
    d = sd_arena_new(p->a, division);
    *d = (division){.of = of, .kind = kind, .k = k};
    d->e = kind == PX_DIV ? make_div(p, of, k) : make_mod(p, of, k);
    d->next = sd_map_get(p->division, h);
    sd_map_set(p->division, h, d);
    return d->e;
}

const plan_expr *plan_px_div(plan_px *p, const plan_expr *a, int64_t k)
{
    return k == 1 ? a : divide(p, PX_DIV, a, k);
}

const plan_expr *plan_px_mod(plan_px *p, const plan_expr *a, int64_t k)
{
    return k == 1 ? plan_px_const(p, 0) : divide(p, PX_MOD, a, k);
}

/* ---- arrays ---- */

const plan_expr *plan_px_linear(plan_px *p, int rank, const int64_t *dim,
                                const plan_expr *const *index)
{
    sum *s = sum_open(p);
    int64_t stride = 1;

    for (int i = rank - 1; i >= 0; i--) {
        if (dim[i] != 1) /* the only index there is 0 */
            sum_add(s, index[i], stride);
        stride *= dim[i];
    }
    return sum_close(s);
}
