/* Programs of narrow floats, of which nothing is known but that each operation
 * is rounded to its type: they are run as they are and with every operation
 * kept apart, and both must have the same bits.  Any value goes with any
 * operation, NaN and infinity too. */
#include "random.h"

enum { MOST_VALUES = 64, MOST_DIM = 70 };

typedef struct {
    random_gen g;
    hlo_inst *v[MOST_VALUES]; /* all of the same dimensions */
    int n;
    int64_t dim[2];
} narrow;

static sd_dtype float_type(narrow *w)
{
    static const sd_dtype usual[] = {SD_BF16, SD_BF16, SD_BF16, SD_F16,
                                     SD_F16,  SD_F16,  SD_F32};
    /* not f4: what a NaN becomes there shows the NaN's sign, which nothing
     * gives */
    static const sd_dtype rare[] = {SD_F8E4M3FN, SD_F8E5M2, SD_F8E3M4,
                                    SD_F8E4M3B11FNUZ, SD_F8E4M3FNUZ};

    if (random_chance(&w->g, 12))
        return rare[random_below(&w->g, SD_COUNTOF(rare))];
    return usual[random_below(&w->g, SD_COUNTOF(usual))];
}

static const sd_shape *full(narrow *w, sd_dtype t)
{
    return random_dims(&w->g, t, 2, w->dim);
}

static void keep(narrow *w, hlo_inst *x)
{
    if (w->n < MOST_VALUES)
        w->v[w->n++] = x;
}

static hlo_inst *constant_of(narrow *w, sd_dtype t)
{
    static const double some[] = {1,    -1,    0.5,  2,     3,    0,   -0.0,
                                  0.75, 1e-5,  1e30, 0.044, 0.1,  100, 1e-30,
                                  300,  -0.37, 6e4,  1e-8,  0.999};

    return hlo_make_fill(random_at(&w->g), full(w, t),
                         some[random_below(&w->g, SD_COUNTOF(some))]);
}

/* A value of type t: one that is there, mostly a late one; one converted, or a
 * constant. */
static hlo_inst *some_value(narrow *w, sd_dtype t)
{
    hlo_inst *x;

    if (random_chance(&w->g, 12))
        return constant_of(w, t);
    for (int i = 0; i < 8; i++) {
        int64_t back = random_below(&w->g, random_chance(&w->g, 60) ? 4 : w->n);

        x = w->v[SD_MAX(w->n - 1 - (int)back, 0)];
        if (x->shape->dtype == t)
            return x;
    }
    x = w->v[random_below(&w->g, w->n)];
    if (x->shape->dtype == t)
        return x;
    x = hlo_make_convert(random_at(&w->g), t, x);
    keep(w, x);
    return x;
}

static hlo_inst *some_pred(narrow *w)
{
    sd_dtype t = float_type(w);

    if (random_chance(&w->g, 30))
        return hlo_make_unary(random_at(&w->g), HLO_IS_FINITE,
                              some_value(w, t));
    return hlo_make_compare(random_at(&w->g),
                            (hlo_cmp_dir)random_below(&w->g, HLO_LT + 1),
                            some_value(w, t), some_value(w, t));
}

/* ---- operations ---- */

static hlo_inst *one_operand(narrow *w, sd_dtype t)
{
    static const hlo_op ops[] = {
        HLO_ABS,  HLO_NEGATE, HLO_SIGN,     HLO_CEIL,  HLO_FLOOR,
        HLO_SQRT, HLO_RSQRT,  HLO_EXP,      HLO_TANH,  HLO_LOG,
        HLO_SIN,  HLO_EXPM1,  HLO_LOGISTIC, HLO_LOG1P, HLO_ROUND_EVEN,
        HLO_ERF,  HLO_CBRT};

    return hlo_make_unary(random_at(&w->g),
                          ops[random_below(&w->g, SD_COUNTOF(ops))],
                          some_value(w, t));
}

static hlo_inst *two_operands(narrow *w, sd_dtype t)
{
    static const hlo_op ops[] = {HLO_ADD,      HLO_ADD,      HLO_SUBTRACT,
                                 HLO_MULTIPLY, HLO_MULTIPLY, HLO_DIVIDE,
                                 HLO_MAXIMUM,  HLO_MINIMUM,  HLO_ATAN2,
                                 HLO_POWER,    HLO_REMAINDER};
    hlo_op op = ops[random_below(&w->g, SD_COUNTOF(ops))];
    hlo_inst *x = some_value(w, t), *y = some_value(w, t);

    /* x^2 is x * x where the 2 is seen, which is behind no barrier */
    if (op == HLO_POWER)
        y = hlo_make_convert(random_at(&w->g), t, w->v[0]);
    return hlo_make_binary(random_at(&w->g), op, x, y);
}

static hlo_inst *chosen(narrow *w, sd_dtype t)
{
    hlo_inst *arg[3] = {some_value(w, t), some_value(w, t), some_value(w, t)};
    hlo_inst *in;

    if (random_chance(&w->g, 70))
        return hlo_make_select(random_at(&w->g), some_pred(w), arg[0], arg[1]);
    in = random_inst(&w->g, HLO_CLAMP, full(w, t), 3, arg);
    return in;
}

/* As jnp.sum(x, axis, keepdims=True) * 0 + x would have it: back to full. */
static hlo_inst *reduced(narrow *w, sd_dtype t)
{
    static const hlo_op ops[] = {HLO_ADD, HLO_ADD, HLO_MAXIMUM, HLO_MINIMUM};
    static const double init[] = {0, 0, -1e4, 1e4};
    int64_t k = random_below(&w->g, SD_COUNTOF(ops)), d;
    int64_t other;
    hlo_at at = random_at(&w->g);
    hlo_inst *x = some_value(w, t);

    d = random_below(&w->g, 2);
    other = 1 - d;
    x = hlo_make_reduce(at, x, hlo_make_scalar(at, t, init[k]), &d, 1,
                        random_scalar_body(&w->g, t, ops[k]));
    return hlo_make_broadcast(at, x, full(w, t), &other, 1);
}

static hlo_inst *moved(narrow *w, sd_dtype t)
{
    hlo_at at = random_at(&w->g);
    hlo_inst *x = some_value(w, t);
    int64_t dims[2] = {0, 1}, turned[2] = {1, 0};

    if (random_chance(&w->g, 40))
        return hlo_make_reverse(at, x, dims, 1 + (int)random_below(&w->g, 2));
    x = hlo_make_transpose(at, x, turned);
    if (random_chance(&w->g, 50))
        x = hlo_make_unary(at, HLO_NEGATE, x);
    return hlo_make_transpose(at, x, turned);
}

static hlo_inst *product(narrow *w, sd_dtype t)
{
    hlo_at at = random_at(&w->g);
    hlo_dot *d = sd_arena_new(w->g.a, hlo_dot);
    int64_t zero = 0, one = 1;
    hlo_inst *x;

    /* [r, c] x [r, c] -> [r, r] x [r, c] -> [r, c] */
    d->lhs_contract = d->rhs_contract = hlo_dims_copy(w->g.a, &one, 1);
    x = hlo_make_dot(at, some_value(w, t), some_value(w, t), t, d);
    d = sd_arena_new(w->g.a, hlo_dot);
    d->lhs_contract = hlo_dims_copy(w->g.a, &one, 1);
    d->rhs_contract = hlo_dims_copy(w->g.a, &zero, 1);
    return hlo_make_dot(at, x, some_value(w, t), t, d);
}

static hlo_inst *converted(narrow *w)
{
    sd_dtype from = float_type(w), to = float_type(w);

    return hlo_make_convert(random_at(&w->g),
                            random_chance(&w->g, 15)
                                ? (random_chance(&w->g, 50) ? SD_S32 : SD_S8)
                                : to,
                            some_value(w, from));
}

static hlo_inst *precise(narrow *w, sd_dtype t)
{
    hlo_inst *x = some_value(w, t);
    hlo_inst *in = random_inst(&w->g, HLO_REDUCE_PRECISION, x->shape, 1, &x);

    in->u.precision.exponent = 3 + (int)random_below(&w->g, 6);
    in->u.precision.mantissa = 1 + (int)random_below(&w->g, 12);
    return in;
}

static hlo_inst *step(narrow *w)
{
    sd_dtype t = float_type(w);
    int64_t k = random_below(&w->g, 100);

    if (k < 20)
        return one_operand(w, t);
    if (k < 64)
        return two_operands(w, t);
    if (k < 74)
        return chosen(w, t);
    if (k < 82)
        return reduced(w, t);
    if (k < 86)
        return moved(w, t);
    if (k < 97)
        return converted(w);
    return k < 99 ? precise(w, t) : product(w, t);
}

hlo_module *random_narrow(sd_arena *a, uint64_t seed, sd_buf *text)
{
    narrow w = {.g = {.state = seed ^ 0x6e6172726f77u, .a = a}};
    hlo_inst *out[8];
    int n = 0;

    w.g.m = hlo_module_create(a, "narrow");
    w.g.c = w.g.m->entry = hlo_comp_create(w.g.m, "main");
    w.dim[0] = 1 + random_below(&w.g, MOST_DIM);
    w.dim[1] = 1 + random_below(&w.g, MOST_DIM);
    for (int i = 2 + (int)random_below(&w.g, 2); i > 0; i--)
        keep(&w, hlo_make_param(w.g.c, full(&w, float_type(&w)),
                                random_chance(&w.g, 60) ? "wild" : "small"));
    for (int i = 3 + (int)random_below(&w.g, 30); i > 0; i--)
        keep(&w, step(&w));
    for (int i = w.n - 1; i >= 0 && n < (int)SD_COUNTOF(out); i--)
        if (w.v[i]->op != HLO_PARAMETER &&
            (w.v[i]->nuse == 0 || random_chance(&w.g, 5)))
            out[n++] = w.v[i];
    if (!n)
        out[n++] = w.v[w.n - 1];
    hlo_set_root(w.g.c, hlo_make_tuple(random_at(&w.g), n, out));
    hlo_print(text, w.g.m);
    return w.g.m;
}
