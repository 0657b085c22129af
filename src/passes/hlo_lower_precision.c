/* reduce-precision(e, m) on the bits of a float: round the mantissa to m bits,
 * nearest even, by adding half of the last kept bit less one or, where that
 * bit is odd, half; then what is beyond e's range becomes infinite or, below
 * its least normal number, a signed zero.  NaN stays NaN, as XLA documents and
 * its CPU computes, also where m is 0, of which its folding makes infinity. */
#include "terms.h"

typedef struct {
    hlo_at p;
    const sd_shape *s; /* of the bits */
    sd_dtype t;
    int e, m; /* of the type itself */
} bits;

static hlo_inst *word(const bits *b, uint64_t v)
{
    return hlo_make_fill_s64(b->p, b->s, b->t, (int64_t)v);
}

static hlo_inst *with(const bits *b, hlo_op op, hlo_inst *x, uint64_t v)
{
    return t_binary(b->p, op, x, word(b, v));
}

static hlo_inst *round_mantissa(const bits *b, hlo_inst *x, int m)
{
    uint64_t last = UINT64_C(1) << (b->m - m);
    hlo_inst *odd =
        with(b, HLO_AND, with(b, HLO_SHR_LOGIC, x, (uint64_t)(b->m - m)), 1);

    x = t_add(b->p, x, with(b, HLO_ADD, odd, (last >> 1) - 1));
    return with(b, HLO_AND, x, ~(last - 1));
}

static hlo_inst *limit_exponent(const bits *b, hlo_inst *x, int e)
{
    uint64_t sign = UINT64_C(1) << (b->e + b->m);
    uint64_t inf = ((UINT64_C(1) << b->e) - 1) << b->m;
    uint64_t bias = (UINT64_C(1) << (b->e - 1)) - 1;
    uint64_t to = (UINT64_C(1) << (e - 1)) - 1;
    hlo_inst *exponent = with(b, HLO_AND, x, inf);
    hlo_inst *zero = with(b, HLO_AND, x, sign);
    hlo_inst *over = t_is(b->p, HLO_GT, exponent, word(b, (bias + to) << b->m));
    hlo_inst *under =
        t_is(b->p, HLO_LE, exponent, word(b, (bias - to) << b->m));

    x = t_pick(b->p, over, with(b, HLO_OR, zero, inf), x);
    return t_pick(b->p, under, zero, x);
}

static bool layout_of(sd_dtype t, bits *b)
{
    switch (t) {
    case SD_F64:
        *b = (bits){.t = SD_U64, .e = 11, .m = 52};
        return true;
    case SD_F32:
        *b = (bits){.t = SD_U32, .e = 8, .m = 23};
        return true;
    case SD_F16:
        *b = (bits){.t = SD_U16, .e = 5, .m = 10};
        return true;
    case SD_BF16:
        *b = (bits){.t = SD_U16, .e = 8, .m = 7};
        return true;
    default:
        return false;
    }
}

/* f8e5m2 and its kind are taken for f16, so that 5 bits of exponent cut none;
 * other f8 and f4 for f32, by hlo_lower_float. */
static hlo_inst *lower_as_half(hlo_inst *in)
{
    hlo_at p = pass_at(in);
    hlo_inst *x = t_convert(p, SD_F16, in->arg[0]);
    hlo_inst *half = hlo_inst_clone(in->parent, in, in, &x);

    half->shape = x->shape;
    x = hlo_lower_precision(half);
    hlo_remove(half);
    return t_convert(p, pass_dtype(in), x);
}

hlo_inst *hlo_lower_precision(hlo_inst *in)
{
    int e = in->u.precision.exponent, m = in->u.precision.mantissa;
    hlo_inst *x = in->arg[0], *y;
    bits b;

    if (pass_dtype(in) == SD_F8E5M2 || pass_dtype(in) == SD_F8E5M2FNUZ)
        return lower_as_half(in);
    if (!layout_of(pass_dtype(in), &b))
        return NULL;
    b.p = pass_at(in);
    b.s = sd_shape_with(in->parent->module->arena, in->shape, b.t);
    y = t_bitcast(b.p, b.t, x);
    if (m < b.m)
        y = round_mantissa(&b, y, m);
    if (e < b.e)
        y = limit_exponent(&b, y, e);
    y = t_bitcast(b.p, pass_dtype(in), y);
    return t_pick(b.p, t_is(b.p, HLO_NE, in->arg[0], in->arg[0]), x, y);
}
