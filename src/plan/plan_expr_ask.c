/* Questions about index expressions: how one changes along an axis, how far two
 * are apart, whether neighbours stay neighbours.  plan_expr.c makes them. */
#include <assert.h>

#include "plan_room.h"

/* What axis is multiplied by where it stands by itself. */
static int64_t coefficient(const plan_expr *e, int axis)
{
    while (e) {
        int64_t c;
        const plan_expr *t = plan_px_next_term(&e, &c);

        if (t->kind == PX_AXIS && t->axis == axis)
            return c;
    }
    return 0;
}

bool plan_px_joins(const plan_expr *e, int a, int b, int64_t eb)
{
    if (!(e->varies & (1ull << a | 1ull << b)))
        return true;
    if (coefficient(e, a) != coefficient(e, b) * eb)
        return false;
    while (e) { /* of a node its own expressions are asked */
        int64_t c;
        const plan_expr *t = plan_px_next_term(&e, &c);

        if ((t->kind == PX_DIV || t->kind == PX_MOD) &&
            !plan_px_joins(t->a, a, b, eb))
            return false;
    }
    return true;
}

bool plan_px_names_node(const plan_expr *e)
{
    return e && (e->kind == PX_NODE || plan_px_names_node(e->a) ||
                 plan_px_names_node(e->b));
}

bool plan_expr_stride(const plan_expr *e, int axis, int64_t *stride)
{
    *stride = 0;
    if (!(e->varies >> axis & 1))
        return true;
    for (const plan_expr *rest = e; rest;) {
        int64_t c;
        const plan_expr *t = plan_px_next_term(&rest, &c);

        if (t->kind != PX_AXIS && t->varies >> axis & 1)
            return false;
    }
    *stride = coefficient(e, axis);
    return true;
}

/* A sum has its constant outermost. */
static const plan_expr *without_constant(const plan_expr *e, int64_t *c)
{
    const plan_expr *x =
        e->kind == PX_ADD && e->a->kind == PX_CONST ? e->a : e->b;

    *c = e->kind == PX_CONST ? e->c : 0;
    if (e->kind == PX_CONST)
        return NULL;
    if (e->kind != PX_ADD || x->kind != PX_CONST)
        return e;
    *c = x->c;
    return x == e->a ? e->b : e->a;
}

bool plan_expr_distance(const plan_expr *from, const plan_expr *to,
                        int64_t *distance)
{
    int64_t x, y;

    if (without_constant(from, &x) != without_constant(to, &y))
        return false;
    *distance = y - x;
    return true;
}

/* ---- runs of neighbours ---- */

/* Of x / c or x % c, x a multiple of m that grows by s: does x stay between two
 * multiples of c while n positions pass? */
static bool stays(int64_t s, int64_t m, int64_t c, int64_t n)
{
    return s >= 0 && s * (n - 1) < sd_gcd(m, c);
}

static bool cut_run(const plan_expr *e, int64_t n, int64_t *stride,
                    int64_t *multiple)
{
    int64_t s = *stride, m = *multiple;
    bool inside = stays(s, m, e->c, n), div = e->kind == PX_DIV;

    if (!inside && s % e->c)
        return false;
    if (div)
        *multiple = m % e->c ? 1 : m / e->c;
    else
        *multiple = sd_gcd(m, e->c);
    *stride = inside ? (div ? 0 : s) : (div ? s / e->c : 0);
    return true;
}

bool plan_expr_run(const plan_expr *e, int axis, int64_t n, int64_t *stride,
                   int64_t *multiple)
{
    int64_t s, m;

    *stride = 0;
    *multiple = 1;
    switch (e->kind) {
    case PX_CONST:
        *multiple = e->c < 0 ? -e->c : e->c;
        return true;
    case PX_AXIS:
        *stride = e->axis == axis;
        *multiple = e->axis == axis ? n : 1;
        return true;
    case PX_NODE:
        return !(e->varies >> axis & 1);
    case PX_ADD:
        if (!plan_expr_run(e->a, axis, n, stride, multiple) ||
            !plan_expr_run(e->b, axis, n, &s, &m))
            return false;
        *stride += s;
        *multiple = sd_gcd(*multiple, m);
        return true;
    case PX_MUL:
        if (!plan_expr_run(e->a, axis, n, stride, multiple))
            return false;
        *stride *= e->c;
        *multiple *= e->c < 0 ? -e->c : e->c;
        return true;
    default:
        return plan_expr_run(e->a, axis, n, stride, multiple) &&
               cut_run(e, n, stride, multiple);
    }
}

/* ---- lanes of a vector ---- */

enum { MOST_SIZE = 200 /* terms of what is looked through */ };

/* The quotients or rests of a run that begins with a multiple of c. */
static bool cut_steps(const plan_expr *e, int w, int64_t *step,
                      int64_t *multiple)
{
    bool varies = false;

    for (int i = 0; i < w; i++) {
        varies = varies || step[i];
        if (step[i] < 0)
            return false;
    }
    if (varies && *multiple % e->c)
        return false;
    for (int i = 0; i < w; i++)
        step[i] = e->kind == PX_DIV ? step[i] / e->c : step[i] % e->c;
    if (e->kind == PX_MOD)
        *multiple = sd_gcd(*multiple, e->c);
    else
        *multiple = *multiple % e->c ? 1 : *multiple / e->c;
    return true;
}

/* multiple: of which the axis's position is one, then of which e is one. */
static bool find_steps(const plan_expr *e, int axis, int w, int64_t *step,
                       int64_t *multiple)
{
    int64_t from = *multiple, more[PLAN_LANES], m = from;

    memset(step, 0, sizeof *step * (size_t)w);
    switch (e->kind) {
    case PX_CONST:
        *multiple = e->c < 0 ? -e->c : e->c;
        return true;
    case PX_AXIS:
        for (int i = 0; e->axis == axis && i < w; i++)
            step[i] = i;
        *multiple = e->axis == axis ? from : 1;
        return true;
    case PX_NODE:
        *multiple = 1;
        return !(e->varies >> axis & 1);
    case PX_ADD:
        if (!find_steps(e->a, axis, w, step, multiple) ||
            !find_steps(e->b, axis, w, more, &m))
            return false;
        for (int i = 0; i < w; i++)
            step[i] += more[i];
        *multiple = sd_gcd(*multiple, m);
        return true;
    case PX_MUL:
        if (!find_steps(e->a, axis, w, step, multiple))
            return false;
        for (int i = 0; i < w; i++)
            step[i] *= e->c;
        *multiple *= e->c < 0 ? -e->c : e->c;
        return true;
    default:
        return find_steps(e->a, axis, w, step, multiple) &&
               cut_steps(e, w, step, multiple);
    }
}

bool plan_expr_ordered(const plan_expr *e, int axis, int64_t multiple, int w,
                       plan_ordered *s)
{
    int64_t step[PLAN_LANES], most;

    assert(w <= PLAN_LANES);
    if (e->size > MOST_SIZE || !find_steps(e, axis, w, step, &multiple))
        return false;
    s->first = most = step[0];
    for (int i = 1; i < w; i++) {
        s->first = SD_MIN(s->first, step[i]);
        most = SD_MAX(most, step[i]);
    }
    s->n = most - s->first + 1;
    if (s->n > w || (s->n & (s->n - 1)))
        return false;
    for (int i = 0; i < w; i++)
        s->lane[i] = (int)(step[i] - s->first);
    return true;
}

bool plan_guard_is_even(const plan_guard *g, int axis, int64_t n)
{
    int64_t s, m;

    return plan_expr_run(g->e, axis, n, &s, &m) &&
           (s == 0 ||
            (s == 1 && m % n == 0 && g->lo % n == 0 && g->hi % n == 0));
}

bool plan_asks(const plan_node *n, plan_guard *g)
{
    const plan_node *x, *y;
    int64_t limit;
    int dir;

    if (n->kind != PN_ELT || n->op != HLO_COMPARE)
        return false;
    x = n->arg[0];
    y = n->arg[1];
    dir = n->in->u.compare.dir;
    if ((dir != HLO_LT && dir != HLO_GE) || x->kind != PN_INDEX ||
        y->kind != PN_CONST ||
        (y->dtype != SD_S64 && (y->dtype != SD_S32 || x->off->lo < INT32_MIN ||
                                x->off->hi > INT32_MAX)))
        return false;
    limit = sd_scalar_to_s64(y->dtype, y->value);
    *g = dir == HLO_LT ? (plan_guard){x->off, x->off->lo, limit}
                       : (plan_guard){x->off, limit, x->off->hi + 1};
    return true;
}
