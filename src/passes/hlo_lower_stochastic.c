/* stochastic-convert into arithmetic: the representable number next to x
 * towards zero or, with the probability of the part of the way that x is on,
 * the one after it.  All is exact in `wide`: the two are a power of 2 apart,
 * so neither the difference nor the quotient rounds. */
#include "passes_priv.h"

#include <math.h>

typedef struct {
    hlo_at p;
    sd_dtype to, wide;
    hlo_inst *x;    /* wide */
    hlo_inst *less; /* than zero? */
} rounding;

static hlo_inst *bin(const rounding *r, hlo_op op, hlo_inst *x, hlo_inst *y)
{
    return hlo_make_binary(r->p, op, x, y);
}

static hlo_inst *fill(const rounding *r, hlo_inst *like, int64_t v)
{
    return pass_fill_s64(r->p, like->shape, pass_dtype(like), v);
}

static hlo_inst *size_of(const rounding *r, hlo_inst *x)
{
    return hlo_make_unary(r->p, HLO_ABS, x);
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
    sd_dtype word = bits == 8 ? SD_U8 : bits == 16 ? SD_U16 : SD_U32;
    int64_t sign = INT64_C(1) << (bits - 1);
    hlo_inst *b = hlo_make_bitcast_convert(r->p, word, near), *up;
    hlo_inst *one = fill(r, b, 1);
    hlo_inst *beyond = hlo_make_compare(
        r->p, HLO_GT, size_of(r, widened(r, near)), size_of(r, r->x));

    b = hlo_make_select(r->p, beyond, bin(r, HLO_SUBTRACT, b, one), b);
    up = bin(r, HLO_ADD, bin(r, HLO_AND, b, fill(r, b, sign - 1)), one);
    up = hlo_make_select(r->p, r->less, bin(r, HLO_OR, up, fill(r, up, sign)),
                         up);
    *low = hlo_make_bitcast_convert(r->p, r->to, b);
    *high = hlo_make_bitcast_convert(r->p, r->to, up);
}

static void whole_ends(const rounding *r, hlo_inst *near, hlo_inst **low,
                       hlo_inst **high)
{
    hlo_inst *one = fill(r, near, 1);

    *low = near;
    *high = hlo_make_select(r->p, r->less, bin(r, HLO_SUBTRACT, near, one),
                            bin(r, HLO_ADD, near, one));
}

/* Is there a number after the last? */
static hlo_inst *has_next(const rounding *r, hlo_inst *low, hlo_inst *high)
{
    hlo_inst *is = hlo_make_unary(r->p, HLO_IS_FINITE, r->x), *next;

    if (sd_is_float(r->to))
        next = hlo_make_unary(r->p, HLO_IS_FINITE, widened(r, high));
    else
        next = hlo_make_select(r->p, r->less,
                               hlo_make_compare(r->p, HLO_LT, high, low),
                               hlo_make_compare(r->p, HLO_GT, high, low));
    return bin(r, HLO_AND, is, next);
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
    r.less =
        hlo_make_compare(r.p, HLO_LT, r.x, hlo_make_fill(r.p, r.x->shape, 0));
    near = hlo_make_convert(r.p, r.to, x);
    (sd_is_float(r.to) ? float_ends : whole_ends)(&r, near, &low, &high);
    way = size_of(&r, bin(&r, HLO_SUBTRACT, r.x, widened(&r, low)));
    if (sd_is_float(r.to)) {
        y = bin(&r, HLO_SUBTRACT, widened(&r, high), widened(&r, low));
        way = bin(&r, HLO_DIVIDE, way, size_of(&r, y));
    }
    way = bin(&r, HLO_MULTIPLY, way,
              hlo_make_fill(r.p, way->shape,
                            ldexp(1, sd_dtype_table[pass_dtype(bits)].bits)));
    way = hlo_make_convert(r.p, SD_U64, way);
    y = hlo_make_compare(r.p, HLO_LT, hlo_make_convert(r.p, SD_U64, bits), way);
    y = hlo_make_select(r.p, y, high, low);
    return hlo_make_select(r.p, has_next(&r, low, high), y, near);
}
