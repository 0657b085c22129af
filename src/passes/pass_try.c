/* What a function of two scalars, or of two tuples of them, is asked by trying
 * it on numbers: whether its operands may change places, and whether it is
 * associative.
 *
 * A function like "the last that is above 100" is another one above 100 than
 * below, so its own constants and what lies around them are among the numbers,
 * and so are numbers of every size: "the last whose root is above 100" is
 * another one above 10000, and no constant says so.
 * One that compares two keys passes a third part on when both are equal, so
 * tuples are tried that differ in one part alone, by all pairs of numbers. */
#include "passes_priv.h"

#include <math.h>

enum {
    ROUNDS = 40,
    WIDE = 16,      /* real numbers of a tuple */
    CONSTANTS = 32, /* of a function; further ones are not looked at */
    NEAR = 4,       /* of them, those that are tried with every number */
    AROUND = 2      /* numbers on each side of a constant */
};
static const double some[] = {0, 1.5, -2, 3, 0.625, -40, 71};
/* Two at least above any bound, in integers of any width too; no two that
 * cancel each other. */
static const double rungs[] = {3e4,  5e8,  3e9,   7e13,  1.2e19, 2e30, 5e33,
                               -2e4, -3e8, -4e13, -2e18, -3e30,  -7e33};
/* Sums with a larger one lose what is tried beside it, or are infinite. */
static const double LARGEST = 1e15;

typedef struct {
    sd_arena *a; /* of one try */
    const hlo_comp *c;
    int n, nreal; /* parts of an operand, and real numbers in them */
    double number[SD_COUNTOF(some) + NEAR * (2 * AROUND + 1)];
    int nnumber;
    /* These are tried beside their neighbours and few others. */
    double far[SD_COUNTOF(rungs) + CONSTANTS * (2 * AROUND + 1)];
    int nfar;
    double constant[CONSTANTS];
    int nconstant;
    uint32_t drawn;
} trial;

/* ---- numbers ---- */

static bool is_taken(const trial *t, double v)
{
    for (int i = 0; i < t->nconstant; i++)
        if (t->constant[i] == v)
            return true;
    return t->nconstant == CONSTANTS;
}

/* What lies around a fraction is as small as it; around infinity there is
 * nothing but the other one. */
static void take_constant(trial *t, double v)
{
    double step = fabs(v) < 1 ? v / 2 : fmax(1, fabs(v) / 8);
    bool near = t->nconstant < NEAR && fabs(v) <= LARGEST;

    if (isnan(v) || is_taken(t, v))
        return;
    t->constant[t->nconstant++] = v;
    for (int i = -AROUND; i <= AROUND; i++) {
        double at = isinf(v) ? copysign(v, i) : v + i * step;

        if (near)
            t->number[t->nnumber++] = at;
        else
            t->far[t->nfar++] = at;
    }
}

static void take_constants(trial *t, const hlo_comp *c)
{
    hlo_for_each_inst(in, c) {
        double v;

        if (hlo_is_scalar_const(in, &v) && v != 0)
            take_constant(t, v);
        for (int i = 0; i < in->ncomp; i++)
            take_constants(t, in->comp[i]);
    }
}

static trial open_trial(const hlo_comp *c)
{
    trial t = {.c = c, .n = c->nparam / 2, .drawn = 1};

    for (int i = 0; i < t.n; i++)
        t.nreal += sd_is_complex(c->param[i]->shape->dtype) ? 2 : 1;
    memcpy(t.number, some, sizeof some);
    t.nnumber = SD_COUNTOF(some);
    memcpy(t.far, rungs, sizeof rungs);
    t.nfar = SD_COUNTOF(rungs);
    take_constants(&t, c);
    return t;
}

/* The multiplier is Knuth's; the low bits of its products have short turns. */
static double draw(trial *t)
{
    t->drawn = t->drawn * UINT32_C(1664525) + UINT32_C(1013904223);
    return t->number[(t->drawn >> 16) % (uint32_t)t->nnumber];
}

static double *draw_tuple(trial *t)
{
    double *x = sd_arena_array(t->a, double, t->nreal);

    for (int i = 0; i < t->nreal; i++)
        x[i] = draw(t);
    return x;
}

/* 0 where the type has no number of such a size. */
static void store(sd_dtype t, double v, uint8_t *at)
{
    sd_scalar_of_f64(t, v, at);
    if (isfinite(v) && !isfinite(sd_scalar_to_f64(t, at)))
        sd_scalar_of_f64(t, 0, at);
}

/* The operand of these real numbers. */
static hlo_value *operand(trial *t, const double *x)
{
    hlo_value *v = sd_arena_array(t->a, hlo_value, t->n);

    for (int i = 0; i < t->n; i++) {
        const sd_shape *s = t->c->param[i]->shape;
        sd_dtype part = sd_dtype_part(s->dtype);
        size_t bytes = sd_dtype_bytes(part);

        v[i] = hlo_value_make(t->a, s);
        for (size_t at = 0; at < sd_dtype_bytes(s->dtype); at += bytes)
            store(part, *x++, (uint8_t *)v[i].data + at);
    }
    return v;
}

/* ---- results ---- */

/* Floats are rounded in the order in which they are added. */
static bool is_near(sd_dtype t, double x, double y)
{
    return x == y || (isnan(x) && isnan(y)) ||
           (sd_is_float(t) && isfinite(x) &&
            fabs(x - y) <= 0.02 * (1 + fabs(x)));
}

static bool same_value(const hlo_value *x, const hlo_value *y)
{
    const sd_shape *s = x->shape;
    sd_dtype part;

    if (!s || !y->shape)
        return false; /* it cannot be evaluated: nothing is known */
    for (int i = 0; i < s->nelem; i++)
        if (!same_value(&x->elem[i], &y->elem[i]))
            return false;
    if (!x->data)
        return true;
    part = sd_dtype_part(s->dtype);
    for (size_t at = 0; at < sd_dtype_bytes(s->dtype);
         at += sd_dtype_bytes(part))
        if (!is_near(part, sd_scalar_to_f64(part, (uint8_t *)x->data + at),
                     sd_scalar_to_f64(part, (uint8_t *)y->data + at)))
            return false;
    return true;
}

/* What the function makes of the tuples x and y. */
static hlo_value combined(trial *t, const hlo_value *x, const hlo_value *y)
{
    hlo_value *arg = sd_arena_array(t->a, hlo_value, 2 * t->n), out = {0};
    sd_status st;

    memcpy(arg, x, sizeof *x * (size_t)t->n);
    memcpy(arg + t->n, y, sizeof *y * (size_t)t->n);
    if ((st = hlo_eval(t->a, t->c, arg, &out))) {
        sd_status_free(st);
        out.shape = NULL;
    }
    return out;
}

/* ---- do the operands commute? ---- */

/* x and y are drawn; at >= 0: they differ in number `at` alone, which is i of x
 * and k of y. */
static bool commute(trial *t, int at, double i, double k)
{
    double *x, *y;
    hlo_value xy, yx;
    bool same;

    t->a = sd_arena_create();
    x = draw_tuple(t);
    y = at < 0 ? draw_tuple(t)
               : sd_arena_copy(t->a, x, sizeof *x * (size_t)t->nreal);
    if (at >= 0) {
        x[at] = i;
        y[at] = k;
    }
    xy = combined(t, operand(t, x), operand(t, y));
    yx = combined(t, operand(t, y), operand(t, x));
    same = same_value(&xy, &yx);
    sd_arena_destroy(t->a);
    return same;
}

/* Of far numbers one and the next, and a positive and a negative one. */
static bool commute_far_from(trial *t, int at)
{
    for (int i = 0; i < t->nfar; i++)
        if (!commute(t, at, t->far[i], t->far[(i + 1) % t->nfar]) ||
            !commute(t, at, t->far[i], some[1]) ||
            !commute(t, at, t->far[i], some[2]))
            return false;
    return true;
}

/* All pairs of numbers; in a wide tuple, whose functions take long, one. */
static bool commute_apart_from(trial *t, int at)
{
    bool wide = t->nreal > WIDE;
    int n = wide ? 2 : t->nnumber;

    for (int i = 1; i < n; i++)
        for (int k = 0; k < i; k++)
            if (!commute(t, at, t->number[i], t->number[k]))
                return false;
    return wide || commute_far_from(t, at);
}

bool pass_commutes(const hlo_comp *c)
{
    bool does = true;
    hlo_op op;
    trial t;

    if (hlo_comp_is_binary(c, &op) && (hlo_op_table[op].props & HLO_P_COMM))
        return true;
    t = open_trial(c);
    for (int i = 0; i < t.nreal && does; i++)
        does = commute_apart_from(&t, i);
    for (int i = 0; t.nreal > 1 && i < ROUNDS && does; i++)
        does = commute(&t, -1, 0, 0);
    return does;
}

/* ---- is it associative, and does nothing change what it starts from? ---- */

static bool is_exactly(const hlo_value *x, const hlo_value *y)
{
    sd_dtype t = y->shape->dtype;

    return x->shape &&
           sd_scalar_to_f64(t, x->data) == sd_scalar_to_f64(t, y->data);
}

static bool is_identity_of(trial *t, const hlo_value *e, const hlo_value *x)
{
    hlo_value ex = combined(t, e, x), xe = combined(t, x, e);

    return is_exactly(&ex, x) && is_exactly(&xe, x);
}

static bool associates_once(trial *t, const hlo_value *x)
{
    hlo_value xy = combined(t, &x[0], &x[1]), yz = combined(t, &x[1], &x[2]);
    hlo_value left, right;

    if (!xy.shape || !yz.shape)
        return false;
    left = combined(t, &xy, &x[2]);
    right = combined(t, &x[0], &yz);
    return left.shape && right.shape && same_value(&left, &right);
}

/* Of numbers that differ in sign and size all triples are tried, since one of
 * them may be what tells; of others some. */
bool pass_is_monoid(const hlo_comp *c, const hlo_inst *init)
{
    static const double apart[] = {-40, -1.5, 0.625, 71};
    enum { N = SD_COUNTOF(apart) };
    hlo_value e = {.shape = init->shape}, x[3];
    trial t = open_trial(c);
    bool is = true;

    e.data = (void *)(uintptr_t)init->u.literal.data; /* only read */
    t.a = sd_arena_create();
    for (int i = 0; i < N * N * N + ROUNDS && is; i++) {
        int at[] = {i / N / N, i / N % N, i % N};

        for (int k = 0; k < 3; k++) {
            double v = i < N * N * N ? apart[at[k]] : draw(&t);

            x[k] = *operand(&t, &v);
        }
        is = is_identity_of(&t, &e, &x[0]) && associates_once(&t, x);
    }
    sd_arena_destroy(t.a);
    return is;
}
