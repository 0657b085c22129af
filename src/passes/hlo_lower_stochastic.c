/* stochastic-convert into arithmetic: the representable number next to x
 * towards zero or, with the probability of the part of the way that x is on,
 * the one after it.  All is exact in `wide`: the two are a power of 2 apart,
 * so neither the difference nor the quotient rounds. */
#include "terms.h"

#include <math.h>

typedef struct {
    hlo_at p;
    sd_dtype to, wide;
    hlo_inst *x;    /* wide */
    hlo_inst *less; /* than zero? */
} rounding;

static hlo_inst *fill(const rounding *r, hlo_inst *like, int64_t v)
{
    return hlo_make_fill_s64(r->p, like->shape, pass_dtype(like), v);
}

static hlo_inst *widened(const rounding *r, hlo_inst *x)
{
    return pass_convert(r->p, r->wide, x);
}

/* Bits of a float are in the order of its magnitudes. */
static void float_ends(const rounding *r, hlo_inst *near, hlo_inst **low,
                       hlo_inst **high)
{
    int bits = sd_dtype_table[r->to].bits;
    sd_dtype word = sd_dtype_unsigned(bits);
    int64_t sign = INT64_C(1) << (bits - 1);
    hlo_inst *b = t_bitcast(r->p, word, near), *up;
    hlo_inst *one = fill(r, b, 1);
    hlo_inst *beyond =
        t_is(r->p, HLO_GT, t_abs(r->p, widened(r, near)), t_abs(r->p, r->x));

    b = t_pick(r->p, beyond, t_sub(r->p, b, one), b);
    up = t_add(r->p, t_and(r->p, b, fill(r, b, sign - 1)), one);
    up = t_pick(r->p, r->less, t_or(r->p, up, fill(r, up, sign)), up);
    *low = t_bitcast(r->p, r->to, b);
    *high = t_bitcast(r->p, r->to, up);
}

static void whole_ends(const rounding *r, hlo_inst *near, hlo_inst **low,
                       hlo_inst **high)
{
    hlo_inst *one = fill(r, near, 1);

    *low = near;
    *high =
        t_pick(r->p, r->less, t_sub(r->p, near, one), t_add(r->p, near, one));
}

/* Is there a number after the last? */
static hlo_inst *has_next(const rounding *r, hlo_inst *low, hlo_inst *high)
{
    hlo_inst *is = t_unary(r->p, HLO_IS_FINITE, r->x), *next;

    if (sd_is_float(r->to))
        next = t_unary(r->p, HLO_IS_FINITE, widened(r, high));
    else
        next = t_pick(r->p, r->less, t_is(r->p, HLO_LT, high, low),
                      t_is(r->p, HLO_GT, high, low));
    return t_and(r->p, is, next);
}

static bool can_round(sd_dtype from, sd_dtype to)
{
    bool is_float =
        from == SD_F16 || from == SD_BF16 || from == SD_F32 || from == SD_F64;

    if (sd_is_float(to))
        return is_float && to != SD_F64 && to != SD_F8E8M0FNU &&
               sd_dtype_table[to].bits >= 8;
    return is_float && sd_is_int(to) && sd_dtype_table[to].bits >= 8;
}

hlo_inst *hlo_lower_stochastic(hlo_inst *in)
{
    rounding r = {.p = pass_at(in), .to = pass_dtype(in), .wide = SD_F32};
    hlo_inst *x = in->arg[0], *bits = in->arg[1], *near, *low, *high, *way, *y;

    if (!can_round(pass_dtype(x), r.to))
        return NULL;
    if (pass_dtype(x) == SD_F64)
        r.wide = SD_F64;
    r.x = widened(&r, x);
    r.less = t_is(r.p, HLO_LT, r.x, t_fill(r.p, r.x, 0));
    near = t_convert(r.p, r.to, x);
    (sd_is_float(r.to) ? float_ends : whole_ends)(&r, near, &low, &high);
    way = t_abs(r.p, t_sub(r.p, r.x, widened(&r, low)));
    if (sd_is_float(r.to)) {
        y = t_sub(r.p, widened(&r, high), widened(&r, low));
        way = t_div(r.p, way, t_abs(r.p, y));
    }
    way = t_mul(
        r.p, way,
        t_fill(r.p, way, ldexp(1, sd_dtype_table[pass_dtype(bits)].bits)));
    way = t_convert(r.p, SD_U64, way);
    y = t_is(r.p, HLO_LT, t_convert(r.p, SD_U64, bits), way);
    y = t_pick(r.p, y, high, low);
    return t_pick(r.p, has_next(&r, low, high), y, near);
}
