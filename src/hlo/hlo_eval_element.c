/* Evaluating the elementwise classes: one element after the other through
 * hlo_scalar, and what looks at bits. */
#include "hlo_eval.h"

#include <math.h>

/* ---- rounding by random bits ---- */

/* The neighbour of the representable number p, farther from zero and on the
 * side of `negative`; false when there is none. */
static bool step_away(sd_dtype t, const void *p, bool negative, void *out)
{
    uint64_t bits = 0, sign = UINT64_C(1) << (sd_dtype_table[t].bits - 1);
    int64_t v;

    if (!sd_is_float(t)) {
        v = sd_scalar_to_s64(t, p);
        sd_scalar_of_s64(t, negative ? v - 1 : v + 1, out);
        return sd_scalar_to_s64(t, out) == (negative ? v - 1 : v + 1);
    }
    memcpy(&bits, p, sd_dtype_bytes(t));
    if (t == SD_F8E8M0FNU) /* has no sign */
        sign = 0;
    bits = (sign ? bits & (sign - 1) : bits) + 1;
    bits |= negative ? sign : 0;
    memcpy(out, &bits, sd_dtype_bytes(t));
    return isfinite(sd_scalar_to_f64(t, out));
}

/* The representable number that is v or next to it towards zero. */
static void step_below(sd_dtype from, const void *x, sd_dtype to, void *out)
{
    uint64_t bits = 0;

    hlo_scalar_convert(from, x, to, out);
    if (!sd_is_float(to) ||
        !(fabs(sd_scalar_to_f64(to, out)) > fabs(sd_scalar_to_f64(from, x))))
        return;
    memcpy(&bits, out, sd_dtype_bytes(to));
    bits--; /* of a number that is not zero: its magnitude */
    memcpy(out, &bits, sd_dtype_bytes(to));
}

/* Away from zero when the random bits, as a fraction of 1, are less than the
 * part of the way that x is on; beyond the last number as convert. */
static void round_randomly(sd_dtype from, const void *x, sd_dtype random,
                           const void *r, sd_dtype to, void *out)
{
    char low[16] = {0}, high[16] = {0};
    long double v = creall(hlo_wide_load(from, x)), a, b, way;
    uint64_t bits = (uint64_t)sd_scalar_to_s64(random, r);

    hlo_scalar_convert(from, x, to, out);
    if (!isfinite(v))
        return;
    step_below(from, x, to, low);
    a = creall(hlo_wide_load(to, low));
    if (a == v || !step_away(to, low, v < 0, high))
        return;
    b = creall(hlo_wide_load(to, high));
    way = floorl(ldexpl((v - a) / (b - a), sd_dtype_table[random].bits));
    memcpy(out, (long double)bits < way ? high : low, sd_dtype_bytes(to));
}

static sd_status eval_stochastic(const hlo_value *arg, hlo_value *out)
{
    int64_t n = sd_shape_count(out->shape);

    for (int64_t i = 0; i < n; i++)
        round_randomly(arg[0].shape->dtype, hlo_at_elem(&arg[0], i),
                       arg[1].shape->dtype, hlo_at_elem(&arg[1], i),
                       out->shape->dtype, hlo_at_elem(out, i));
    return NULL;
}

/* ---- elementwise ---- */

/* A type of a byte or less is widened as XLA's CPU widens it; converting back
 * rounds nothing but its own subnormals. */
static void reduce_precision(const hlo_inst *in, sd_dtype t, const void *a,
                             void *out)
{
    int exponent = in->u.precision.exponent,
        mantissa = in->u.precision.mantissa;
    bool e5m2 = t == SD_F8E5M2 || t == SD_F8E5M2FNUZ;
    sd_dtype wide = e5m2 ? SD_F16 : SD_F32;
    char x[4], y[4];

    if (hlo_scalar_precision(t, exponent, mantissa, a, out))
        return;
    hlo_scalar_convert(t, a, wide, x);
    hlo_scalar_precision(wide, exponent, mantissa, x, y);
    hlo_scalar_convert(wide, y, t, out);
}

sd_status hlo_eval_unary_or_binary(hlo_ev *e, const hlo_inst *in,
                                   const hlo_value *arg, hlo_value *out)
{
    int64_t n = sd_shape_count(out->shape);
    sd_dtype t = arg[0].shape->dtype;

    (void)e;
    if (in->op == HLO_STOCHASTIC_CONVERT)
        return eval_stochastic(arg, out);
    for (int64_t i = 0; i < n; i++) {
        const char *a = hlo_at_elem(&arg[0], i);
        const char *b = in->narg > 1 ? hlo_at_elem(&arg[1], i) : NULL;
        char *to = hlo_at_elem(out, i);

        if (in->op != HLO_REDUCE_PRECISION)
            hlo_scalar_op(in->op, t, a, b, to);
        else
            reduce_precision(in, t, a, to);
    }
    return NULL;
}

/* Operand k at element i, when it may be a scalar for all. */
static const char *spread(const hlo_value *v, int64_t i)
{
    return hlo_at_elem(v, v->shape->rank ? i : 0);
}

sd_status hlo_eval_ternary(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                           hlo_value *out)
{
    int64_t n = sd_shape_count(out->shape);
    sd_dtype t = out->shape->dtype;
    size_t size = sd_dtype_bytes(t);

    (void)e;
    for (int64_t i = 0; i < n; i++) {
        const char *a = spread(&arg[0], i), *b = hlo_at_elem(&arg[1], i);
        const char *c = spread(&arg[2], i);
        char bounded[16];

        if (in->op == HLO_SELECT) {
            memcpy(hlo_at_elem(out, i), *a ? b : c, size);
        } else { /* min(max(low, x), high) */
            hlo_scalar_op(HLO_MAXIMUM, t, a, b, bounded);
            hlo_scalar_op(HLO_MINIMUM, t, bounded, c, hlo_at_elem(out, i));
        }
    }
    return NULL;
}

sd_status hlo_eval_compare(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                           hlo_value *out)
{
    int64_t n = sd_shape_count(out->shape);

    (void)e;
    for (int64_t i = 0; i < n; i++)
        *hlo_at_elem(out, i) = hlo_scalar_compare(
            in->u.compare.dir, in->u.compare.type, arg[0].shape->dtype,
            hlo_at_elem(&arg[0], i), hlo_at_elem(&arg[1], i));
    return NULL;
}

sd_status hlo_eval_convert(hlo_ev *e, const hlo_inst *in, const hlo_value *arg,
                           hlo_value *out)
{
    int64_t n = sd_shape_count(out->shape);

    (void)e;
    (void)in;
    for (int64_t i = 0; i < n; i++)
        hlo_scalar_convert(arg[0].shape->dtype, hlo_at_elem(&arg[0], i),
                           out->shape->dtype, hlo_at_elem(out, i));
    return NULL;
}

/* ---- the bits of elements ---- */

/* Bit i of a dense array whose elements count `bits` each, low bits first. */
static bool get_bit(const hlo_value *v, int bits, int64_t i)
{
    const char *p = hlo_at_elem(v, i / bits);
    int k = (int)(i % bits);

    return p[k / 8] >> (k % 8) & 1;
}

/* Elements of less than a byte as they are kept: extended by their sign, or
 * by zeros. */
static void extend(hlo_value *v)
{
    sd_dtype t = v->shape->dtype;
    int64_t n = sd_shape_count(v->shape);

    if (sd_dtype_table[t].bits >= 8 || t == SD_PRED)
        return;
    for (int64_t i = 0; i < n; i++) {
        uint8_t *p = (uint8_t *)hlo_at_elem(v, i);

        if (sd_is_float(t))
            *p &= (uint8_t)((1 << sd_dtype_table[t].bits) - 1);
        else
            sd_scalar_of_s64(t, *p, p);
    }
}

sd_status hlo_eval_bitcast_convert(hlo_ev *e, const hlo_inst *in,
                                   const hlo_value *arg, hlo_value *out)
{
    int from = sd_dtype_table[arg[0].shape->dtype].bits;
    int to = sd_dtype_table[out->shape->dtype].bits;
    int64_t n = sd_shape_count(out->shape);

    (void)e;
    (void)in;
    if (sd_shape_same_dims(arg[0].shape, out->shape)) { /* pred as a byte */
        memcpy(out->data, arg[0].data, sd_shape_bytes(out->shape));
        extend(out);
        return NULL;
    }
    for (int64_t i = 0; i < n * to; i++)
        if (get_bit(&arg[0], from, i)) {
            char *p = hlo_at_elem(out, i / to);
            int k = (int)(i % to);

            p[k / 8] = (char)(p[k / 8] | 1 << (k % 8));
        }
    extend(out);
    return NULL;
}
