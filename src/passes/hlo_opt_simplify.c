/* Algebra: each op has a list of rules; a rule looks at one instruction and
 * gives what it may be replaced by, or NULL.  Rules go one way, to fewer or
 * cheaper instructions, and hold for NaN, infinities and signed zeros: x + 0
 * stays for floats (-0 + 0 is 0), x - 0 and x * 1 go. */
#include "simplify.h"

#include <math.h>

static bool is_const(const hlo_inst *in, double want)
{
    double v;

    return hlo_is_scalar_const(in, &v) && v == want &&
           signbit(v) == signbit(want);
}

static bool has_const(const hlo_inst *in)
{
    return hlo_is_scalar_const(in, NULL);
}

static bool is_all_ones(const hlo_inst *in)
{
    int64_t v;
    sd_dtype t = pass_dtype(in);

    if (!pass_int_const(in, &v))
        return false;
    int bits = sd_dtype_table[t].bits;

    return bits == 64
               ? v == -1
               : (v & ((INT64_C(1) << bits) - 1)) == (INT64_C(1) << bits) - 1;
}

static bool is_exact(const hlo_inst *in) /* integers and pred */
{
    sd_dtype t = pass_dtype(in);

    return sd_is_int(t) || t == SD_PRED;
}

static hlo_inst *zero_like(hlo_inst *in)
{
    return hlo_make_fill_s64(pass_at(in), in->shape, pass_dtype(in), 0);
}

static hlo_inst *fill_pred(hlo_inst *in, bool v)
{
    return hlo_make_fill_s64(pass_at(in), in->shape, SD_PRED, v);
}

/* ---- rules for any commutative op ---- */

/* Of complex numbers that compare equal, 0 and -0, extremes give the first. */
static bool first_wins(const hlo_inst *in)
{
    return sd_is_complex(pass_dtype(in)) &&
           (in->op == HLO_MAXIMUM || in->op == HLO_MINIMUM);
}

static hlo_inst *const_to_right(hlo_inst *in)
{
    if (first_wins(in))
        return NULL;
    if (has_const(in->arg[0]) && !has_const(in->arg[1])) {
        hlo_inst *arg[] = {in->arg[1], in->arg[0]};

        return hlo_inst_clone(in->parent, in, in, arg);
    }
    return NULL;
}

/* ---- add, subtract, multiply, divide ---- */

/* A complex constant is known by its real part, and its imaginary 0 is none
 * that could be left out: -0 + 0 is 0, and inf * 0 is NaN. */
static hlo_inst *add_zero(hlo_inst *in)
{
    if (sd_is_complex(pass_dtype(in)))
        return NULL;
    return is_const(in->arg[1], is_exact(in) ? 0.0 : -0.0) ? in->arg[0] : NULL;
}

/* f8e8m0fnu has no sign: what is negated is NaN. */
static bool has_sign(const hlo_inst *in)
{
    return pass_dtype(in) != SD_F8E8M0FNU;
}

static hlo_inst *add_negated(hlo_inst *in)
{
    for (int i = 0; i < 2 && has_sign(in); i++)
        if (in->arg[i]->op == HLO_NEGATE)
            return hlo_make_binary(pass_at(in), HLO_SUBTRACT, in->arg[1 - i],
                                   in->arg[i]->arg[0]);
    return NULL;
}

static hlo_inst *drop_zero(hlo_inst *in)
{
    return is_const(in->arg[1], 0) ? in->arg[0] : NULL;
}

static hlo_inst *subtract_itself(hlo_inst *in)
{
    return in->arg[0] == in->arg[1] && is_exact(in) ? zero_like(in) : NULL;
}

static hlo_inst *multiply_one(hlo_inst *in)
{
    return !sd_is_complex(pass_dtype(in)) && is_const(in->arg[1], 1)
               ? in->arg[0]
               : NULL;
}

static hlo_inst *multiply_zero(hlo_inst *in)
{
    return is_exact(in) && is_const(in->arg[1], 0) ? in->arg[1] : NULL;
}

static hlo_inst *multiply_minus_one(hlo_inst *in)
{
    return sd_is_float(pass_dtype(in)) && is_const(in->arg[1], -1)
               ? hlo_make_unary(pass_at(in), HLO_NEGATE, in->arg[0])
               : NULL;
}

static hlo_inst *divide_one(hlo_inst *in)
{
    return is_const(in->arg[1], 1) ? in->arg[0] : NULL;
}

/* Dividing by a power of two is exact, so is multiplying by its inverse. */
static hlo_inst *divide_power_of_two(hlo_inst *in)
{
    sd_dtype t = pass_dtype(in);
    double v;
    int e;

    if ((t != SD_F32 && t != SD_F64) || !hlo_is_scalar_const(in->arg[1], &v))
        return NULL;
    if (fabs(frexp(v, &e)) != 0.5 || e > 120 || e < -120)
        return NULL;
    return hlo_make_binary(pass_at(in), HLO_MULTIPLY, in->arg[0],
                           hlo_make_fill(pass_at(in), in->shape, 1 / v));
}

/* 1 / (1 + e^y) is logistic(-y), whose quotient is never subnormal (ADR 37).
 * Narrow floats round each step of it. */
static hlo_inst *divide_logistic(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *d = in->arg[1], *e;

    if (!is_const(in->arg[0], 1) || d->op != HLO_ADD || d->nuse != 1 ||
        sd_is_complex(pass_dtype(in)) || pass_is_narrow(pass_dtype(in)))
        return NULL;
    e = d->arg[0]->op == HLO_EXP ? d->arg[0] : d->arg[1];
    if (e->op != HLO_EXP || e->nuse != 1 ||
        !is_const(d->arg[e == d->arg[0]], 1))
        return NULL;
    return hlo_make_unary(p, HLO_LOGISTIC,
                          hlo_make_unary(p, HLO_NEGATE, e->arg[0]));
}

static int log2_of(const hlo_inst *in)
{
    int64_t v;
    int n = 0;

    if (!pass_int_const(in, &v) || v <= 0 || (v & (v - 1)))
        return -1;
    while (v >>= 1)
        n++;
    return n;
}

static hlo_inst *divide_unsigned(hlo_inst *in)
{
    int n = log2_of(in->arg[1]);

    if (sd_dtype_kind(pass_dtype(in)) != SD_K_UINT || n < 0)
        return NULL;
    return hlo_make_binary(
        pass_at(in), HLO_SHR_LOGIC, in->arg[0],
        hlo_make_fill_s64(pass_at(in), in->shape, pass_dtype(in), n));
}

static hlo_inst *remainder_unsigned(hlo_inst *in)
{
    int n = log2_of(in->arg[1]);

    if (sd_dtype_kind(pass_dtype(in)) != SD_K_UINT || n < 0)
        return NULL;
    return hlo_make_binary(pass_at(in), HLO_AND, in->arg[0],
                           hlo_make_fill_s64(pass_at(in), in->shape,
                                             pass_dtype(in),
                                             (INT64_C(1) << n) - 1));
}

static hlo_inst *power_small(hlo_inst *in)
{
    sd_dtype t = pass_dtype(in);
    hlo_inst *x = in->arg[0], *y;
    hlo_at p = pass_at(in);
    double v;

    if (!hlo_is_scalar_const(in->arg[1], &v))
        return NULL;
    if (sd_is_complex(t)) /* infinities have no logarithm to multiply */
        return v == 2 ? hlo_make_binary(p, HLO_MULTIPLY, x, x) : NULL;
    if (v == 0)
        return hlo_make_fill(p, in->shape, 1);
    if (v == 1)
        return x;
    if (v == 2)
        return hlo_make_binary(p, HLO_MULTIPLY, x, x);
    if (v == 3 && !pass_is_narrow(t)) { /* those round the square; f32 later */
        y = hlo_make_binary(p, HLO_MULTIPLY, x, x);
        return hlo_make_binary(p, HLO_MULTIPLY, y, x);
    }
    if (v == -1 && sd_is_float(t))
        return hlo_make_binary(p, HLO_DIVIDE, hlo_make_fill(p, in->shape, 1),
                               x);
    return NULL;
}

static hlo_inst *undo_unary(hlo_inst *in) /* negate, not */
{
    if (!has_sign(in))
        return NULL;
    return in->arg[0]->op == in->op ? in->arg[0]->arg[0] : NULL;
}

static hlo_inst *abs_inner(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];

    if (x->op == HLO_ABS)
        return x;
    if (x->op == HLO_NEGATE && has_sign(in))
        return hlo_make_unary(pass_at(in), HLO_ABS, x->arg[0]);
    return NULL;
}

/* ---- logic, extremes ---- */

static hlo_inst *same_twice(hlo_inst *in) /* and, or, maximum, minimum */
{
    return in->arg[0] == in->arg[1] ? in->arg[0] : NULL;
}

static hlo_inst *and_const(hlo_inst *in)
{
    if (is_all_ones(in->arg[1]))
        return in->arg[0];
    return is_const(in->arg[1], 0) ? in->arg[1] : NULL;
}

static hlo_inst *or_const(hlo_inst *in)
{
    if (is_all_ones(in->arg[1]))
        return in->arg[1];
    return is_const(in->arg[1], 0) ? in->arg[0] : NULL;
}

static hlo_inst *xor_const(hlo_inst *in)
{
    if (in->arg[0] == in->arg[1])
        return zero_like(in);
    return is_const(in->arg[1], 0) ? in->arg[0] : NULL;
}

/* Only =, != of floats: !(x < y) is not x >= y for NaN. */
static hlo_inst *not_compare(hlo_inst *in)
{
    static const hlo_cmp_dir opposite[] = {
        [HLO_EQ] = HLO_NE, [HLO_NE] = HLO_EQ, [HLO_GE] = HLO_LT,
        [HLO_GT] = HLO_LE, [HLO_LE] = HLO_GT, [HLO_LT] = HLO_GE};
    hlo_inst *x = in->arg[0], *y;

    if (x->op != HLO_COMPARE)
        return NULL;
    if (x->u.compare.type == HLO_CMP_FLOAT && x->u.compare.dir != HLO_EQ &&
        x->u.compare.dir != HLO_NE)
        return NULL;
    y = hlo_inst_clone(in->parent, in, x, x->arg);
    y->u.compare.dir = opposite[x->u.compare.dir];
    return y;
}

/* maximum with -inf, minimum with inf: both keep NaN */
static hlo_inst *extreme_neutral(hlo_inst *in)
{
    double v;

    if (!sd_is_float(pass_dtype(in)) || !hlo_is_scalar_const(in->arg[1], &v) ||
        !isinf(v))
        return NULL;
    return signbit(v) == (in->op == HLO_MAXIMUM) ? in->arg[0] : NULL;
}

static hlo_inst *compare_itself(hlo_inst *in)
{
    hlo_cmp_dir d = in->u.compare.dir;

    if (in->arg[0] != in->arg[1] || !is_exact(in->arg[0]))
        return NULL;
    return fill_pred(in, d == HLO_EQ || d == HLO_GE || d == HLO_LE);
}

static hlo_inst *compare_pred(hlo_inst *in)
{
    hlo_cmp_dir d = in->u.compare.dir;
    int64_t v;

    if (pass_dtype(in->arg[0]) != SD_PRED || (d != HLO_EQ && d != HLO_NE) ||
        !pass_int_const(in->arg[1], &v))
        return NULL;
    if ((d == HLO_EQ) == (v != 0))
        return in->arg[0];
    return hlo_make_unary(pass_at(in), HLO_NOT, in->arg[0]);
}

static hlo_inst *compare_unsigned_zero(hlo_inst *in)
{
    hlo_cmp_dir d = in->u.compare.dir;

    if (sd_dtype_kind(pass_dtype(in->arg[0])) != SD_K_UINT ||
        !is_const(in->arg[1], 0) || (d != HLO_LT && d != HLO_GE))
        return NULL;
    return fill_pred(in, d == HLO_GE);
}

static hlo_inst *select_known(hlo_inst *in)
{
    int64_t v;

    if (in->arg[1] == in->arg[2])
        return in->arg[1];
    if (!pass_int_const(in->arg[0], &v))
        return NULL;
    return v ? in->arg[1] : in->arg[2];
}

static hlo_inst *select_not(hlo_inst *in)
{
    if (in->arg[0]->op != HLO_NOT)
        return NULL;
    return hlo_make_select(pass_at(in), in->arg[0]->arg[0], in->arg[2],
                           in->arg[1]);
}

static hlo_inst *select_of_preds(hlo_inst *in)
{
    int64_t t, f;

    if (pass_dtype(in) != SD_PRED || !pass_int_const(in->arg[1], &t) ||
        !pass_int_const(in->arg[2], &f) || t == f ||
        !sd_shape_same_dims(in->arg[0]->shape, in->shape))
        return NULL;
    return t ? in->arg[0] : hlo_make_unary(pass_at(in), HLO_NOT, in->arg[0]);
}

/* A scalar predicate would be one more form to know for everything below. */
static hlo_inst *select_scalar_pred(hlo_inst *in)
{
    if (in->arg[0]->shape->rank == in->shape->rank)
        return NULL;
    return hlo_make_select(pass_at(in),
                           hlo_make_spread(pass_at(in), in->arg[0], in->shape),
                           in->arg[1], in->arg[2]);
}

static hlo_inst *clamp_scalars(hlo_inst *in)
{
    hlo_inst *arg[3] = {in->arg[0], in->arg[1], in->arg[2]};

    if (in->arg[0]->shape->rank == in->shape->rank &&
        in->arg[2]->shape->rank == in->shape->rank)
        return NULL;
    for (int i = 0; i < 3; i += 2)
        if (!arg[i]->shape->rank)
            arg[i] = hlo_make_spread(pass_at(in), arg[i], in->shape);
    return hlo_inst_clone(in->parent, in, in, arg);
}

static hlo_inst *sort_of_one(hlo_inst *in)
{
    const sd_shape *s = in->arg[0]->shape;

    if (s->dim[in->dims.at[0]] > 1)
        return NULL;
    return in->narg == 1 ? in->arg[0]
                         : hlo_make_tuple(pass_at(in), in->narg, in->arg);
}

/* ---- any op ---- */

/* Are its results arrays that come in one tuple, one for each of its inputs? */
static bool is_variadic(const hlo_inst *in)
{
    switch (hlo_info(in)->cls) {
    case HLO_C_SCATTER:
    case HLO_C_REDUCE:
    case HLO_C_WINDOW:
    case HLO_C_SCAN:
    case HLO_C_MAP:
    case HLO_C_SORT:
        return in->op != HLO_TOPK; /* gives values and places */
    default:
        return false;
    }
}

/* The results of a variadic reduce, sort, ... without elements. */
static hlo_inst *empty_tuple(hlo_inst *in)
{
    const sd_shape *s = in->shape;
    hlo_inst **e;

    if (!is_variadic(in))
        return NULL;
    for (int i = 0; i < s->nelem; i++)
        if (!sd_shape_is_array(s->elem[i]) || sd_shape_count(s->elem[i]))
            return NULL;
    e = sd_arena_array(in->parent->module->arena, hlo_inst *, s->nelem);
    for (int i = 0; i < s->nelem; i++)
        e[i] = hlo_make_fill(pass_at(in), s->elem[i], 0);
    return hlo_make_tuple(pass_at(in), s->nelem, e);
}

/* What has no elements has no value. */
static hlo_inst *empty(hlo_inst *in)
{
    if (in->shape->dtype == SD_TUPLE)
        return empty_tuple(in);
    if (!sd_shape_is_array(in->shape) || in->op == HLO_PARAMETER ||
        in->op == HLO_CONSTANT || in->op == HLO_BROADCAST ||
        sd_shape_count(in->shape) != 0)
        return NULL;
    switch (hlo_info(in)->cls) {
    case HLO_C_TUPLE:
    case HLO_C_CONTROL:
    case HLO_C_CUSTOM:
    case HLO_C_TOKENS:
    case HLO_C_COLLECTIVE:
        return NULL;
    default:
        return hlo_make_fill(pass_at(in), in->shape, 0);
    }
}

/* op(broadcast(a), broadcast(b)) of scalars is broadcast(op(a, b)) */
static hlo_inst *op_of_scalars(hlo_inst *in)
{
    hlo_inst *arg[4], *x;

    if (in->narg == 0 || in->narg > 4 || !in->shape->rank ||
        !hlo_is_elementwise(in))
        return NULL;
    for (int i = 0; i < in->narg; i++) {
        if (in->arg[i]->op != HLO_BROADCAST || in->arg[i]->arg[0]->shape->rank)
            return NULL;
        arg[i] = in->arg[i]->arg[0];
    }
    x = hlo_inst_clone(in->parent, in, in, arg);
    x->shape =
        sd_shape_make(in->parent->module->arena, pass_dtype(in), 0, NULL);
    return hlo_make_spread(pass_at(in), x, in->shape);
}

typedef hlo_inst *(*rule)(hlo_inst *in);

#define RULES(...) \
    (const rule[]) \
    { \
        __VA_ARGS__, NULL \
    }
static const rule *const rules[HLO_OP_COUNT] = {
    [HLO_ADD] = RULES(const_to_right, add_zero, add_negated),
    [HLO_SUBTRACT] = RULES(drop_zero, subtract_itself),
    [HLO_MULTIPLY] =
        RULES(const_to_right, multiply_one, multiply_zero, multiply_minus_one),
    [HLO_DIVIDE] = RULES(divide_one, divide_power_of_two, divide_unsigned,
                         divide_logistic, simplify_small_quotient),
    [HLO_REMAINDER] = RULES(remainder_unsigned, simplify_small_quotient),
    [HLO_POWER] = RULES(power_small, simplify_small_power),
    [HLO_SIGN] = RULES(simplify_known_sign),
    [HLO_NEGATE] = RULES(undo_unary),
    [HLO_NOT] = RULES(undo_unary, not_compare),
    [HLO_ABS] = RULES(abs_inner, simplify_known_sign),
    [HLO_AND] =
        RULES(const_to_right, same_twice, and_const, simplify_floor_division),
    [HLO_OR] = RULES(const_to_right, same_twice, or_const),
    [HLO_XOR] = RULES(const_to_right, xor_const),
    [HLO_SHL] = RULES(drop_zero),
    [HLO_SHR_ARITH] = RULES(drop_zero),
    [HLO_SHR_LOGIC] = RULES(drop_zero),
    [HLO_MAXIMUM] = RULES(const_to_right, same_twice, extreme_neutral,
                          simplify_known_extreme),
    [HLO_MINIMUM] = RULES(const_to_right, same_twice, extreme_neutral,
                          simplify_known_extreme),
    [HLO_COMPARE] = RULES(compare_itself, compare_pred, compare_unsigned_zero,
                          simplify_known_compare),
    [HLO_SELECT] =
        RULES(select_scalar_pred, select_known, select_not, select_of_preds),
    [HLO_CLAMP] = RULES(clamp_scalars),
    [HLO_CONVERT] = RULES(simplify_convert),
    [HLO_BITCAST_CONVERT] = RULES(simplify_bitcast_convert),
    [HLO_REAL] = RULES(simplify_part_of_complex),
    [HLO_IMAG] = RULES(simplify_part_of_complex),
    [HLO_COMPLEX] = RULES(simplify_complex),
    [HLO_SORT] = RULES(sort_of_one),
    [HLO_CONSTANT] = RULES(simplify_constant),
    [HLO_BROADCAST] = RULES(simplify_broadcast),
    [HLO_RESHAPE] = RULES(simplify_reshape),
    [HLO_BITCAST] = RULES(simplify_bitcast),
    [HLO_TRANSPOSE] = RULES(simplify_transpose),
    [HLO_REVERSE] = RULES(simplify_reverse),
    [HLO_SLICE] = RULES(simplify_slice),
    [HLO_PAD] = RULES(simplify_pad),
    [HLO_CONCATENATE] = RULES(simplify_concatenate),
    [HLO_COPY] = RULES(simplify_copy),
    [HLO_DYNAMIC_SLICE] = RULES(simplify_dynamic_slice),
    [HLO_DYNAMIC_UPDATE_SLICE] = RULES(simplify_dynamic_update_slice),
    [HLO_SCATTER] = RULES(simplify_scatter),
    [HLO_DOT] = RULES(simplify_dot),
    [HLO_CONVOLUTION] = RULES(simplify_convolution),
};

hlo_inst *hlo_opt_simplify(hlo_inst *in)
{
    const rule *r = rules[in->op];
    hlo_inst *to;

    if (in->nuse == 0 && in != in->parent->root)
        return NULL; /* dead code, not worth a rule */
    if (!(to = empty(in)))
        to = op_of_scalars(in);
    for (; !to && r && *r; r++)
        to = (*r)(in);
    return to;
}
