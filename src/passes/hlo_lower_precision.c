/* reduce-precision(e, m) on the bits of a float: round the mantissa to m bits,
 * nearest even, by adding half of the last kept bit less one or, where that
 * bit is odd, half; then what is beyond e's range becomes infinite or, below
 * its least normal number, a signed zero.  NaN stays NaN, as XLA documents and
 * its CPU computes, also where m is 0, of which its folding makes infinity. */
#include "passes_priv.h"

typedef struct {
    hlo_at p;
    const sd_shape *s; /* of the bits */
    sd_dtype t;
    int e, m; /* of the type itself */
} bits;

static hlo_inst *word(const bits *b, uint64_t v)
{
    return pass_fill_s64(b->p, b->s, b->t, (int64_t)v);
}

static hlo_inst *bin(const bits *b, hlo_op op, hlo_inst *x, uint64_t v)
{
    return hlo_make_binary(b->p, op, x, word(b, v));
}

static hlo_inst *round_mantissa(const bits *b, hlo_inst *x, int m)
{
    uint64_t last = UINT64_C(1) << (b->m - m);
    hlo_inst *odd =
        bin(b, HLO_AND, bin(b, HLO_SHR_LOGIC, x, (uint64_t)(b->m - m)), 1);

    x = hlo_make_binary(b->p, HLO_ADD, x,
                        bin(b, HLO_ADD, odd, (last >> 1) - 1));
    return bin(b, HLO_AND, x, ~(last - 1));
}

static hlo_inst *limit_exponent(const bits *b, hlo_inst *x, int e)
{
    uint64_t sign = UINT64_C(1) << (b->e + b->m);
    uint64_t inf = ((UINT64_C(1) << b->e) - 1) << b->m;
    uint64_t bias = (UINT64_C(1) << (b->e - 1)) - 1;
    uint64_t to = (UINT64_C(1) << (e - 1)) - 1;
    hlo_inst *exponent = bin(b, HLO_AND, x, inf);
    hlo_inst *zero = bin(b, HLO_AND, x, sign);
    hlo_inst *over =
        hlo_make_compare(b->p, HLO_GT, exponent, word(b, (bias + to) << b->m));
    hlo_inst *under =
        hlo_make_compare(b->p, HLO_LE, exponent, word(b, (bias - to) << b->m));

    x = hlo_make_select(b->p, over, bin(b, HLO_OR, zero, inf), x);
    return hlo_make_select(b->p, under, zero, x);
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
    hlo_inst *x = hlo_make_convert(p, SD_F16, in->arg[0]);
    hlo_inst *half = hlo_inst_clone(in->parent, in, in, &x);

    half->shape = x->shape;
    x = hlo_lower_precision(half);
    hlo_remove(half);
    return hlo_make_convert(p, pass_dtype(in), x);
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
    y = hlo_make_bitcast_convert(b.p, b.t, x);
    if (m < b.m)
        y = round_mantissa(&b, y, m);
    if (e < b.e)
        y = limit_exponent(&b, y, e);
    y = hlo_make_bitcast_convert(b.p, pass_dtype(in), y);
    return hlo_make_select(
        b.p, hlo_make_compare(b.p, HLO_NE, in->arg[0], in->arg[0]), x, y);
}
