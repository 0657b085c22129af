/* Simplification by what operands can be (pass_range.c): JAX asks for the signs
 * of what has none where it divides, wraps indices around or takes remainders,
 * and bytes are divided as 32-bit numbers. */
#include "simplify.h"

static bool is_int(const hlo_inst *in)
{
    return sd_is_int(pass_dtype(in));
}

static bool ranges_of(const hlo_inst *in, pass_range *x, pass_range *y)
{
    return pass_range_of(in->arg[0], x) && pass_range_of(in->arg[1], y);
}

/* x < y, as far as it is known: 1 or 0, else -1. */
static int less(pass_range x, pass_range y)
{
    return x.hi < y.lo ? 1 : x.lo >= y.hi ? 0 : -1;
}

/* x == y, likewise. */
static int equal(pass_range x, pass_range y)
{
    return x.hi < y.lo || y.hi < x.lo ? 0 : -1;
}

hlo_inst *simplify_known_compare(hlo_inst *in)
{
    hlo_cmp_dir d = in->u.compare.dir;
    pass_range x, y;
    int v;

    if (!is_int(in->arg[0]) || !ranges_of(in, &x, &y))
        return NULL;
    v = d == HLO_EQ || d == HLO_NE   ? equal(x, y)
        : d == HLO_LT || d == HLO_GE ? less(x, y)
                                     : less(y, x);
    if (v < 0)
        return NULL;
    if (d == HLO_NE || d == HLO_GE || d == HLO_LE)
        v = !v;
    return hlo_make_fill_s64(pass_at(in), in->shape, SD_PRED, v);
}

/* Is it `of(..) != number`? */
static const hlo_inst *differs_from(const hlo_inst *in, hlo_op of,
                                    int64_t number)
{
    int64_t v;

    return in->op == HLO_COMPARE && in->u.compare.dir == HLO_NE &&
                   in->arg[0]->op == of && pass_int_const(in->arg[1], &v) &&
                   v == number
               ? in->arg[0]
               : NULL;
}

/* Of floor(x / y) by a quotient that goes towards 0: signs differ and there is
 * a rest.  Where y > 0 and no x is less than 0 the signs differ for x = 0
 * alone, of which there is none. */
hlo_inst *simplify_floor_division(hlo_inst *in)
{
    for (int i = 0; i < 2; i++) {
        const hlo_inst *sign = differs_from(in->arg[i], HLO_SIGN, 1);
        const hlo_inst *rest = differs_from(in->arg[1 - i], HLO_REMAINDER, 0);
        pass_range x, y;

        if (sign && rest && sign->arg[0] == rest->arg[0] && is_int(sign) &&
            ranges_of(rest, &x, &y) && x.lo >= 0 && y.lo > 0)
            return hlo_make_fill_s64(pass_at(in), in->shape, SD_PRED, 0);
    }
    return NULL;
}

/* Is it a remainder of which that may be asked? */
static bool may_be_of_floor(const hlo_inst *in)
{
    const hlo_inst *asked = in->nuse == 1 ? in->user[0] : NULL;

    return in->op == HLO_REMAINDER && asked && asked->op == HLO_COMPARE &&
           asked->nuse == 1 && asked->user[0]->op == HLO_AND;
}

static hlo_inst *number(hlo_inst *in, int64_t v)
{
    return hlo_make_fill_s64(pass_at(in), in->shape, pass_dtype(in), v);
}

/* x / by of 0 <= x <= most as x * m >> s, where the product fits 31 bits: with
 * m = 2^s / by + e / by and e from 1 to `by` the quotient is right as long as
 * x * e < 2^s. */
static bool multiplier(int64_t most, int64_t by, int64_t *m, int *s)
{
    for (*s = 1; *s < 31; ++*s) {
        int64_t e;

        *m = (INT64_C(1) << *s) / by + 1;
        e = *m * by - (INT64_C(1) << *s);
        if (most * *m >> 31)
            return false;
        if (most * e < INT64_C(1) << *s)
            return true;
    }
    return false;
}

static hlo_inst *shifted(hlo_inst *in, hlo_inst *x, int s)
{
    return hlo_make_binary(pass_at(in), HLO_SHR_LOGIC, x, number(in, s));
}

/* Of numbers that are not negative, by a constant: a shift or a mask where it
 * is a power of two, else a product with its inverse where that fits. */
hlo_inst *simplify_small_quotient(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    bool rest = in->op == HLO_REMAINDER;
    hlo_inst *x = in->arg[0], *q;
    pass_range r;
    int64_t by, m;
    int s;

    if (!is_int(in) || may_be_of_floor(in) ||
        !pass_int_const(in->arg[1], &by) || by < 2 || !pass_range_of(x, &r) ||
        r.lo < 0)
        return NULL;
    if (r.hi < by)
        return rest ? x : number(in, 0);
    if ((by & (by - 1)) == 0)
        return rest ? hlo_make_binary(p, HLO_AND, x, number(in, by - 1))
                    : shifted(in, x, __builtin_ctzll((uint64_t)by));
    if (sd_dtype_bytes(pass_dtype(in)) != 4 || !multiplier(r.hi, by, &m, &s))
        return NULL;
    q = shifted(in, hlo_make_binary(p, HLO_MULTIPLY, x, number(in, m)), s);
    if (!rest)
        return q;
    return hlo_make_binary(p, HLO_SUBTRACT, x,
                           hlo_make_binary(p, HLO_MULTIPLY, q, in->arg[1]));
}

hlo_inst *simplify_known_sign(hlo_inst *in)
{
    hlo_inst *x = in->arg[0];
    pass_range r;

    if (!is_int(in) || !pass_range_of(x, &r))
        return NULL;
    if (in->op == HLO_ABS)
        return r.lo >= 0 ? x : NULL;
    if (r.lo > 0 || r.hi < 0)
        return number(in, r.lo > 0 ? 1 : -1);
    return NULL;
}

hlo_inst *simplify_known_extreme(hlo_inst *in)
{
    bool max = in->op == HLO_MAXIMUM;
    pass_range x, y;

    if (!is_int(in) || !ranges_of(in, &x, &y))
        return NULL;
    if (max ? x.lo >= y.hi : x.hi <= y.lo)
        return in->arg[0];
    return (max ? y.lo >= x.hi : y.hi <= x.lo) ? in->arg[1] : NULL;
}

/* x^y where each y is 0, 1, 2 or 3 (polynomials' terms): products, as of one
 * exponent alone.  Narrow floats, which would round the square, come as f32. */
hlo_inst *simplify_small_power(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = in->arg[0], *y = in->arg[1], *of[4], *to;
    pass_range r;

    if (sd_is_complex(pass_dtype(in)) || !pass_range_of(y, &r) || r.lo < 0 ||
        r.hi > 3)
        return NULL;
    of[0] = hlo_make_fill(p, in->shape, 1);
    of[1] = x;
    of[2] = hlo_make_binary(p, HLO_MULTIPLY, x, x);
    of[3] = hlo_make_binary(p, HLO_MULTIPLY, of[2], x);
    to = of[r.hi];
    for (int64_t i = r.hi - 1; i >= r.lo; i--)
        to = hlo_make_select(p, pass_compare_num(p, HLO_EQ, y, (double)i),
                             of[i], to);
    return to;
}
