/* Makers of elementwise operations.  Each says what it knows of its result:
 * whole numbers stay exact through sums and products that fit the type;
 * everything else carries an error of some ulps, and is only used where an
 * error stays small. */
#include "random.h"

#include <math.h>

enum { NUMBERS = HLO_T_NUM, FLOATS = HLO_T_FLOAT };

static const random_need anything = {INFINITY, false, false};
static const random_need exact = {INFINITY, true, false};

static random_need whole_to(double bound)
{
    return (random_need){bound, true, true};
}

/* A result of at most `bound`, which the type holds, each operand off by up
 * to `spread` in the result and the operation by some ulps. */
static random_fact inexact(sd_dtype t, double bound, double spread)
{
    random_type k = random_type_of(t);

    return (random_fact){bound, spread + 4 * (k.ulp * bound + k.tiny), false,
                         false};
}

static random_fact exact_pred(void)
{
    return random_exact_int(SD_PRED);
}

/* ---- one operand ---- */

void random_make_unary(random_gen *g)
{
    static const hlo_op ops[] = {HLO_ABS,        HLO_NEGATE,    HLO_SIGN,
                                 HLO_CEIL,       HLO_FLOOR,     HLO_ROUND_AFZ,
                                 HLO_ROUND_EVEN, HLO_IS_FINITE, HLO_NOT,
                                 HLO_POPCNT,     HLO_CLZ};
    hlo_op op = ops[random_below(g, SD_COUNTOF(ops))];
    bool smooth = op == HLO_ABS || op == HLO_NEGATE;
    int kinds = hlo_op_table[op].types;
    hlo_inst *x =
        random_pick(g, kinds & ~HLO_T_CPLX, smooth ? anything : exact);
    random_fact f = *random_fact_of(x);
    sd_dtype t = x->shape->dtype;

    if (t == SD_F8E8M0FNU && op != HLO_IS_FINITE && op != HLO_ABS)
        return;
    f.bits = f.bits && op == HLO_ABS && f.bound < INFINITY;
    if (op == HLO_IS_FINITE)
        f = exact_pred();
    else if (!random_is_float(t))
        f = random_exact_int(t);
    else if (op == HLO_SIGN)
        f.bound = f.bound < INFINITY ? 1 : f.bound;
    else if (!smooth)
        f.bound = f.bound + 1;
    f.whole = f.whole || (f.bound < INFINITY && !smooth);
    if (f.bound > random_type_of(t).most && op != HLO_IS_FINITE)
        f.bound = INFINITY;
    random_keep(g, hlo_make_unary(random_at(g), op, x), f);
}

/* f with |f'| <= slope and |f| <= most for operands up to bound; positive:
 * defined from 1 on. */
static const struct {
    hlo_op op;
    double bound, slope, most;
    bool positive;
} functions[] = {
    {HLO_EXP, 4, 55, 55, false},       {HLO_EXPM1, 4, 55, 55, false},
    {HLO_LOG, 9, 1, 2.4, true},        {HLO_LOG1P, 9, 0.5, 2.5, true},
    {HLO_LOGISTIC, 9, 0.25, 1, false}, {HLO_SIN, 64, 1, 1, false},
    {HLO_COS, 64, 1, 1, false},        {HLO_TAN, 1, 3.5, 1.6, false},
    {HLO_TANH, 9, 1, 1, false},        {HLO_ERF, 9, 1.2, 1, false},
    {HLO_SQRT, 64, 0.5, 8.1, true},    {HLO_RSQRT, 64, 0.5, 1, true},
    {HLO_CBRT, 64, 0.4, 4.1, true},
};

/* |x| + 1 */
static hlo_inst *positive(random_gen *g, hlo_inst *x)
{
    hlo_at at = random_at(g);
    hlo_inst *one = hlo_make_fill(at, x->shape, 1);
    random_fact f = *random_fact_of(x);

    f.bound += 1;
    if (f.error > 0)
        f = inexact(x->shape->dtype, f.bound, f.error);
    f.bits = false;
    x = hlo_make_unary(at, HLO_ABS, x);
    return random_keep(g, hlo_make_binary(at, HLO_ADD, x, one), f);
}

static void complex_function(random_gen *g)
{
    static const hlo_op ops[] = {HLO_EXP, HLO_SIN, HLO_COS};
    hlo_op op = ops[random_below(g, SD_COUNTOF(ops))];
    hlo_inst *x = random_pick(g, HLO_T_CPLX, whole_to(4));

    random_keep(g, hlo_make_unary(random_at(g), op, x),
                inexact(x->shape->dtype, 55, 0));
}

void random_make_function(random_gen *g)
{
    size_t i = (size_t)random_below(g, SD_COUNTOF(functions));
    hlo_inst *x;
    sd_dtype t;

    if (random_chance(g, 10)) {
        complex_function(g);
        return;
    }
    x = random_pick(g, FLOATS, (random_need){functions[i].bound, false, false});
    t = x->shape->dtype;
    if (functions[i].most * 2 > random_type_of(t).most || t == SD_F8E8M0FNU)
        return;
    if (functions[i].positive)
        x = positive(g, x);
    random_keep(g, hlo_make_unary(random_at(g), functions[i].op, x),
                inexact(t, functions[i].most,
                        functions[i].slope * random_fact_of(x)->error));
}

void random_make_precision(random_gen *g)
{
    hlo_inst *x = random_pick(g, FLOATS, exact), *in;
    random_fact f = *random_fact_of(x);

    if (x->shape->dtype == SD_F8E8M0FNU)
        return;
    in = random_inst(g, HLO_REDUCE_PRECISION, x->shape, 1, &x);
    in->u.precision.exponent = 2 + (int)random_below(g, 9);
    in->u.precision.mantissa = (int)random_below(g, 24);
    f.bound = INFINITY;
    f.bits = f.whole = false;
    random_infer(g, in);
    random_keep(g, in, f);
}

void random_make_complex(random_gen *g)
{
    hlo_at at = random_at(g);
    hlo_inst *x, *y, *arg[2];

    if (random_chance(g, 50)) {
        x = random_pick(g, HLO_T_CPLX, anything);
        random_keep(
            g,
            hlo_make_unary(at, random_chance(g, 50) ? HLO_REAL : HLO_IMAG, x),
            *random_fact_of(x));
        return;
    }
    x = random_want(g, random_shape(g, random_chance(g, 70) ? SD_F32 : SD_F64),
                    anything);
    y = random_want(g, x->shape, anything);
    arg[0] = x;
    arg[1] = y;
    random_keep(g, hlo_make_binary(at, HLO_COMPLEX, x, y),
                random_worst(2, arg));
}

/* ---- two operands ---- */

/* Of add, subtract, multiply on floats and complex numbers. */
static bool arithmetic_fact(hlo_op op, sd_dtype t, random_fact x, random_fact y,
                            random_fact *out)
{
    random_type k = random_type_of(t);
    bool times = op == HLO_MULTIPLY;
    double two = sd_dtype_kind(t) == SD_K_COMPLEX && times ? 2 : 1;
    double bound = two * (times ? x.bound * y.bound : x.bound + y.bound);
    double spread =
        times ? x.error * y.bound + y.error * x.bound : x.error + y.error;

    if (!(bound * 2 < k.most))
        return false;
    if (x.whole && y.whole && x.error == 0 && y.error == 0 && bound <= k.whole)
        *out = (random_fact){bound, 0, true, false};
    else
        *out = inexact(t, bound, two * spread);
    return true;
}

static void arithmetic(random_gen *g)
{
    static const hlo_op ops[] = {HLO_ADD, HLO_SUBTRACT, HLO_MULTIPLY};
    hlo_op op = ops[random_below(g, SD_COUNTOF(ops))];
    sd_dtype t = random_dtype(g, NUMBERS);
    random_need need = {random_is_float(t) ? 64 : INFINITY, false, false};
    const sd_shape *s = random_shape(g, t);
    hlo_inst *x = random_want(g, s, need), *y = random_want(g, s, need);
    random_fact f = random_exact_int(t);

    if (t == SD_F8E8M0FNU)
        return;
    if (random_is_float(t) &&
        !arithmetic_fact(op, t, *random_fact_of(x), *random_fact_of(y), &f))
        return;
    random_keep(g, hlo_make_binary(random_at(g), op, x, y), f);
}

/* The larger, the smaller: not of complex numbers. */
static void extremes(random_gen *g)
{
    hlo_op op = random_chance(g, 50) ? HLO_MAXIMUM : HLO_MINIMUM;
    sd_dtype t = random_dtype(g, HLO_T_ANY & ~HLO_T_CPLX);
    const sd_shape *s = random_shape(g, t);
    hlo_inst *arg[2] = {random_want(g, s, anything),
                        random_want(g, s, anything)};
    random_fact f = random_worst(2, arg);

    f.bits = false; /* of 0 and -0 either */
    random_keep(g, hlo_make_binary(random_at(g), op, arg[0], arg[1]), f);
}

static void integers(random_gen *g)
{
    static const hlo_op ops[] = {HLO_AND,    HLO_OR,        HLO_XOR,
                                 HLO_SHL,    HLO_SHR_ARITH, HLO_SHR_LOGIC,
                                 HLO_DIVIDE, HLO_REMAINDER, HLO_POWER,
                                 HLO_ADD,    HLO_MULTIPLY};
    hlo_op op = ops[random_below(g, SD_COUNTOF(ops))];
    sd_dtype t = random_dtype(g, hlo_op_table[op].types & HLO_T_LOGIC);
    const sd_shape *s = random_shape(g, t);

    random_keep(g,
                hlo_make_binary(random_at(g), op, random_want(g, s, anything),
                                random_want(g, s, anything)),
                random_exact_int(t));
}

void random_make_binary(random_gen *g)
{
    int64_t k = random_below(g, 10);

    if (k < 5)
        arithmetic(g);
    else if (k < 7)
        extremes(g);
    else
        integers(g);
}

/* Quotients, powers and angles of floats, by divisors of 1 and more. */
void random_make_divide(random_gen *g)
{
    static const hlo_op ops[] = {HLO_DIVIDE, HLO_DIVIDE, HLO_POWER, HLO_ATAN2,
                                 HLO_REMAINDER};
    hlo_op op = ops[random_below(g, SD_COUNTOF(ops))];
    sd_dtype t = random_dtype(g, FLOATS);
    const sd_shape *s = random_shape(g, t);
    bool steep = op == HLO_POWER || op == HLO_REMAINDER;
    random_need need = {4, steep, steep};
    hlo_inst *x = random_want(g, s, need);
    hlo_inst *y = random_want(g, s, need);
    double spread, most;

    if (t == SD_F8E8M0FNU || random_type_of(t).whole < 8)
        return;
    if (op == HLO_POWER || op == HLO_ATAN2)
        x = positive(g, x);
    else
        y = positive(g, y);
    most = op == HLO_POWER ? 625 : 5;
    if (most * 2 > random_type_of(t).most)
        return;
    spread = random_fact_of(x)->error + 5 * random_fact_of(y)->error;
    x = hlo_make_binary(random_at(g), op, x, y);
    random_keep(g, x,
                op == HLO_REMAINDER ? (random_fact){5, 0, true, false}
                                    : inexact(t, most, spread));
}

/* Has it a place in the total order?  The one NaN of the types without -0 has
 * that zero's bits, and none of its own. */
bool random_total_order(const hlo_inst *x)
{
    const random_fact *f = random_fact_of(x);
    sd_dtype t = x->shape->dtype;
    bool one_nan =
        t == SD_F8E4M3FNUZ || t == SD_F8E5M2FNUZ || t == SD_F8E4M3B11FNUZ;

    return f->bits && (!one_nan || f->bound < INFINITY);
}

void random_make_compare(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY, exact);
    hlo_inst *y = random_want(g, x->shape, exact), *in;
    hlo_cmp_dir dir = (hlo_cmp_dir)random_below(g, HLO_LT + 1);
    sd_dtype t = x->shape->dtype;

    if (sd_dtype_kind(t) == SD_K_COMPLEX)
        dir = random_chance(g, 50) ? HLO_EQ : HLO_NE;
    in = hlo_make_compare(random_at(g), dir, x, y);
    if (sd_dtype_kind(t) == SD_K_FLOAT && random_total_order(x) &&
        random_total_order(y) && random_chance(g, 30))
        in->u.compare.type = HLO_CMP_TOTAL;
    random_keep(g, in, exact_pred());
}

/* ---- three ---- */

void random_make_select(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY, anything), *in;
    const sd_shape *s = random_dims(g, SD_PRED, x->shape->rank, x->shape->dim);
    hlo_inst *arg[3] = {NULL, x, random_want(g, x->shape, anything)};

    if (random_chance(g, 25))
        s = random_dims(g, SD_PRED, 0, NULL);
    arg[0] = random_want(g, s, exact);
    in = random_inst(
        g, HLO_SELECT,
        random_dims(g, x->shape->dtype, x->shape->rank, x->shape->dim), 3, arg);
    random_keep(g, in, random_worst(2, arg + 1));
}

void random_make_clamp(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY & ~HLO_T_CPLX, whole_to(INFINITY));
    const sd_shape *s = x->shape;
    sd_dtype t = s->dtype;
    const sd_shape *to = random_chance(g, 50) ? random_dims(g, t, 0, NULL) : s;
    hlo_inst *arg[3] = {random_want(g, to, whole_to(INFINITY)), x,
                        random_want(g, to, whole_to(INFINITY))};
    random_fact f = random_worst(3, arg);

    f.bits = false;
    random_keep(
        g,
        random_inst(g, HLO_CLAMP, random_dims(g, t, s->rank, s->dim), 3, arg),
        f);
}

/* ---- types ---- */

static random_fact converted(random_fact f, sd_dtype from, sd_dtype t)
{
    random_type k = random_type_of(t);

    if (!random_is_float(t))
        return random_exact_int(t);
    f.bits = false;
    if (f.error > 0)
        return f.bound * 2 < k.most ? inexact(t, f.bound, f.error)
                                    : (random_fact){-1, 0, false, false};
    if (!random_is_float(from))
        f.whole = true;
    f.whole = f.whole && f.bound <= k.whole && t != SD_F8E8M0FNU;
    if (!(f.bound * 2 < k.most) || t == SD_F8E8M0FNU || from == SD_F8E8M0FNU)
        f.bound = INFINITY;
    return f;
}

void random_make_convert(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY, anything);
    sd_dtype from = x->shape->dtype, t = random_dtype(g, HLO_T_ANY);
    random_fact f = *random_fact_of(x);
    bool complex = sd_dtype_kind(t) == SD_K_COMPLEX;

    if (f.error > 0 && !random_is_float(t))
        return;
    if (sd_dtype_kind(from) == SD_K_COMPLEX && !complex)
        return;
    f = converted(f, from, t);
    if (f.bound >= 0)
        random_keep(g, hlo_make_convert(random_at(g), t, x), f);
}

/* The same bits as another type, of the same width or another. */
void random_make_bits(random_gen *g)
{
    hlo_inst *x = random_pick(g, HLO_T_ANY & ~HLO_T_CPLX, exact);
    const sd_shape *s = x->shape;
    int from = sd_dtype_table[s->dtype].bits, to;
    sd_dtype t = random_dtype(g, HLO_T_ANY & ~HLO_T_CPLX);

    to = sd_dtype_table[t].bits;
    if (!random_fact_of(x)->bits || from == 1 || to == 1 ||
        SD_MAX(from, to) % SD_MIN(from, to) != 0 ||
        (g->scalars && from != to) || (from > to && s->rank > 7))
        return;
    if (from < to && (s->rank == 0 || s->dim[s->rank - 1] != to / from))
        return;
    random_keep(g, hlo_make_bitcast_convert(random_at(g), t, x),
                random_is_float(t) ? (random_fact){INFINITY, 0, false, true}
                                   : random_exact_int(t));
}
