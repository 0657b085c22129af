/* One element at a time, as the op table's last column says.  Functions are
 * computed in long double and rounded once to the type; sums, products,
 * quotients and roots in double, which for f64 is the type itself and for
 * narrower ones is wide enough that the second rounding changes nothing
 * (53 >= 2 * 24 + 2). */
#include "hlo_scalar.h"

#include "hlo_complex.h"

#include <assert.h>
#include <math.h>

/* ---- in and out of wide values ---- */

static long double load_real(sd_dtype t, const void *p)
{
    switch (sd_dtype_kind(t)) {
    case SD_K_UINT:
        return (long double)(uint64_t)sd_scalar_to_s64(t, p);
    case SD_K_SINT:
    case SD_K_PRED:
        return (long double)sd_scalar_to_s64(t, p);
    default:
        return (long double)sd_scalar_to_f64(t, p);
    }
}

hlo_wide hlo_wide_load(sd_dtype t, const void *p)
{
    if (!sd_is_complex(t))
        return load_real(t, p);
    sd_dtype part = sd_dtype_part(t);

    return CMPLXL(load_real(part, p),
                  load_real(part, (const char *)p + sd_dtype_bytes(part)));
}

/* To a double that rounds to any narrower float as v itself would: when v is
 * between two doubles, the one whose last bit is 1 (round to odd). */
static double odd_double(long double v)
{
    double d = (double)v;
    uint64_t bits;

    if (isnan(v) || isinf(d) || (long double)d == v)
        return d;
    memcpy(&bits, &d, sizeof bits);
    if (bits & 1)
        return d;
    return nextafter(d, (long double)d < v ? INFINITY : -INFINITY);
}

static void store_real(sd_dtype t, long double v, void *p)
{
    if (t == SD_PRED) {
        *(char *)p = v != 0;
    } else if (t == SD_F64) {
        double d = (double)v;

        memcpy(p, &d, sizeof d);
    } else if (t == SD_F32) {
        float f = (float)v;

        memcpy(p, &f, sizeof f);
    } else {
        sd_scalar_of_f64(t, odd_double(v), p);
    }
}

void hlo_wide_store(sd_dtype t, hlo_wide v, void *p)
{
    if (!sd_is_complex(t)) {
        store_real(t, creall(v), p);
        return;
    }
    sd_dtype part = sd_dtype_part(t);

    store_real(part, creall(v), p);
    store_real(part, cimagl(v), (char *)p + sd_dtype_bytes(part));
}

int64_t hlo_index_load(sd_dtype t, const void *p)
{
    int64_t v = sd_scalar_to_s64(t, p);

    return sd_dtype_kind(t) == SD_K_UINT && v < 0 ? INT64_MAX : v;
}

/* ---- integers and preds: sign-extended where the type has a sign ---- */

/* the element's own bits, no copies of its sign */
static uint64_t own_bits(sd_dtype t, uint64_t a)
{
    return a & UINT64_MAX >> (64 - sd_dtype_table[t].bits);
}

static uint64_t abs_int(uint64_t a)
{
    return a >> 63 ? -a : a;
}

static uint64_t sign_int(uint64_t a)
{
    return a >> 63 ? UINT64_MAX : a != 0;
}

static uint64_t popcnt(sd_dtype t, uint64_t a)
{
    return (uint64_t)__builtin_popcountll(own_bits(t, a));
}

static uint64_t clz(sd_dtype t, uint64_t a)
{
    uint64_t own = own_bits(t, a);
    int bits = sd_dtype_table[t].bits;

    return (uint64_t)(own ? __builtin_clzll(own) - (64 - bits) : bits);
}

static uint64_t add(sd_dtype t, uint64_t a, uint64_t b)
{
    return t == SD_PRED ? a | b : a + b;
}

/* by zero: all ones; the least by -1 wraps */
static uint64_t divide(sd_dtype t, uint64_t a, uint64_t b)
{
    if (b == 0)
        return UINT64_MAX;
    if (!sd_is_signed(t))
        return a / b;
    return b == UINT64_MAX ? -a : (uint64_t)((int64_t)a / (int64_t)b);
}

/* by zero: the dividend */
static uint64_t remain(sd_dtype t, uint64_t a, uint64_t b)
{
    if (b == 0)
        return a;
    if (!sd_is_signed(t))
        return a % b;
    return b == UINT64_MAX ? 0 : (uint64_t)((int64_t)a % (int64_t)b);
}

static bool less_int(sd_dtype t, uint64_t a, uint64_t b)
{
    return sd_is_signed(t) ? (int64_t)a < (int64_t)b : a < b;
}

static uint64_t larger(sd_dtype t, uint64_t a, uint64_t b)
{
    return less_int(t, a, b) ? b : a;
}

static uint64_t smaller(sd_dtype t, uint64_t a, uint64_t b)
{
    return less_int(t, b, a) ? b : a;
}

/* Negative powers: of 1 and -1 only there is an integer other than 0. */
static uint64_t power(sd_dtype t, uint64_t base, uint64_t e)
{
    uint64_t r = 1;

    if (sd_is_signed(t) && e >> 63) {
        if (base == UINT64_MAX)
            return e & 1 ? base : 1;
        return base == 1;
    }
    for (; e; e >>= 1) {
        if (e & 1)
            r *= base;
        base *= base;
    }
    return r;
}

/* The amount is unsigned in the element's type; all bits may be shifted out */
static bool shifts_all(sd_dtype t, uint64_t b)
{
    return own_bits(t, b) >= sd_dtype_table[t].bits;
}

static uint64_t shift_left(sd_dtype t, uint64_t a, uint64_t b)
{
    return shifts_all(t, b) ? 0 : a << own_bits(t, b);
}

static uint64_t shift_logic(sd_dtype t, uint64_t a, uint64_t b)
{
    return shifts_all(t, b) ? 0 : own_bits(t, a) >> own_bits(t, b);
}

/* sign bits in, also for unsigned types */
static uint64_t shift_arith(sd_dtype t, uint64_t a, uint64_t b)
{
    uint64_t n = shifts_all(t, b) ? 63 : own_bits(t, b);
    bool top = own_bits(t, a) >> (sd_dtype_table[t].bits - 1);

    return top ? ~(own_bits(t, ~a) >> n) : own_bits(t, a) >> n;
}

/* ---- floats ---- */

static double sign(double a)
{
    return isnan(a) || a == 0 ? a : copysign(1, a);
}

static double maximum(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? a : b;
    if (a == b) /* +0 over -0 */
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

static double minimum(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? a : b;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

/* ---- the op table's last column, once for each kind of element ---- */

/* infer has seen to it that no op gets here with a type that it has not */
static int no_element(void)
{
    assert(false);
    return 0;
}

#define OP(id, name, cls, types, props, ulp, fn, element) \
    case HLO_##id: \
        return element;
#define NONE no_element()

static uint64_t int_element(hlo_op op, sd_dtype t, uint64_t a, uint64_t b)
{
    switch (op) {
#define E(of_int, of_float, of_cplx) of_int
#include "hlo_ops.def"
#undef E
    default:
        return 0;
    }
}

static long double float_element(hlo_op op, double a, double b)
{
    switch (op) {
#define E(of_int, of_float, of_cplx) of_float
#include "hlo_ops.def"
#undef E
    default:
        return 0;
    }
}
#undef NONE

#define NONE (no_element(), a)

static hlo_cplx cplx_element(hlo_op op, hlo_cplx a, hlo_cplx b)
{
    switch (op) {
#define E(of_int, of_float, of_cplx) of_cplx
#include "hlo_ops.def"
#undef E
    default:
        return a;
    }
}
#undef NONE
#undef OP

static void int_op(hlo_op op, sd_dtype t, const void *a, const void *b,
                   void *out)
{
    uint64_t v = int_element(op, t, (uint64_t)sd_scalar_to_s64(t, a),
                             b ? (uint64_t)sd_scalar_to_s64(t, b) : 0);

    sd_scalar_of_s64(t, (int64_t)own_bits(t, v), out);
}

static void float_op(hlo_op op, sd_dtype t, const void *a, const void *b,
                     void *out)
{
    long double v = float_element(op, sd_scalar_to_f64(t, a),
                                  b ? sd_scalar_to_f64(t, b) : 0);

    store_real(op == HLO_IS_FINITE ? SD_PRED : t, v, out);
}

static void cplx_op(hlo_op op, sd_dtype t, const void *a, const void *b,
                    void *out)
{
    hlo_cplx v =
        cplx_element(op, hlo_cplx_load(t, a), hlo_cplx_load(t, b ? b : a));

    if (op == HLO_ABS || op == HLO_REAL || op == HLO_IMAG)
        hlo_quad_store(sd_dtype_part(t), v.re, out);
    else
        hlo_cplx_store(t, v, out);
}

void hlo_scalar_op(hlo_op op, sd_dtype t, const void *a, const void *b,
                   void *out)
{
    size_t n = sd_dtype_bytes(t);

    if (op == HLO_COMPLEX) {
        memcpy(out, a, n);
        memcpy((char *)out + n, b, n);
    } else if (sd_is_complex(t)) {
        cplx_op(op, t, a, b, out);
    } else if (sd_is_float(t)) {
        float_op(op, t, a, b, out);
    } else {
        int_op(op, t, a, b, out);
    }
}

/* ---- compare ---- */

/* Sign and magnitude as one integer: -NaN < -inf < -0 < +0 < inf < NaN. */
static int64_t total_order(sd_dtype t, const void *p)
{
    int bits = sd_dtype_table[t].bits;
    uint64_t v = 0, sign = UINT64_C(1) << (bits - 1);

    memcpy(&v, p, sd_dtype_bytes(t));
    if (t == SD_F8E8M0FNU) /* has no sign */
        return (int64_t)v;
    if (v == sign && isnan(sd_scalar_to_f64(t, p)))
        return INT64_MIN; /* what would be -0 is a NaN with that sign */
    return v & sign ? ~(int64_t)(v & (sign - 1)) : (int64_t)v;
}

static bool by_order(hlo_cmp_dir dir, bool less, bool equal, bool ordered)
{
    switch (dir) {
    case HLO_EQ:
        return equal;
    case HLO_NE:
        return !equal;
    case HLO_GE:
        return ordered && !less;
    case HLO_GT:
        return ordered && !less && !equal;
    case HLO_LE:
        return less || equal;
    case HLO_LT:
        return less;
    }
    return false;
}

bool hlo_scalar_compare(hlo_cmp_dir dir, hlo_cmp_type type, sd_dtype t,
                        const void *a, const void *b)
{
    sd_kind k = sd_dtype_kind(t);

    if (k == SD_K_COMPLEX) {
        hlo_wide x = hlo_wide_load(t, a), y = hlo_wide_load(t, b);
        bool same = creall(x) == creall(y), ordered = x == x && y == y;

        return by_order(
            dir,
            ordered && (same ? cimagl(x) < cimagl(y) : creall(x) < creall(y)),
            same && cimagl(x) == cimagl(y), ordered);
    }
    if (k == SD_K_FLOAT && type != HLO_CMP_TOTAL) {
        double x = sd_scalar_to_f64(t, a), y = sd_scalar_to_f64(t, b);

        return by_order(dir, x < y, x == y, !isnan(x) && !isnan(y));
    }
    if (k == SD_K_FLOAT) {
        int64_t x = total_order(t, a), y = total_order(t, b);

        return by_order(dir, x < y, x == y, true);
    }
    uint64_t x = (uint64_t)sd_scalar_to_s64(t, a);
    uint64_t y = (uint64_t)sd_scalar_to_s64(t, b);

    return by_order(dir, less_int(t, x, y), x == y, true);
}

/* ---- convert ---- */

/* Truncated, saturated, NaN is 0. */
static int64_t int_of_float(sd_dtype to, double v)
{
    bool sg = sd_is_signed(to);
    int bits = sd_dtype_table[to].bits - sg;
    double top = ldexp(1, bits); /* one beyond the largest */

    if (isnan(v))
        return 0;
    v = trunc(v);
    if (v >= top)
        return (int64_t)(UINT64_MAX >> (64 - bits));
    if (!sg)
        return v <= 0 ? 0 : (int64_t)(uint64_t)v;
    return v < -top ? -(int64_t)(UINT64_MAX >> (64 - bits)) - 1 : (int64_t)v;
}

static bool is_nonzero(sd_dtype t, const void *p)
{
    hlo_wide v = hlo_wide_load(t, p);

    return creall(v) != 0 || cimagl(v) != 0; /* of a NaN too */
}

void hlo_scalar_convert(sd_dtype from, const void *a, sd_dtype to, void *out)
{
    sd_kind kf = sd_dtype_kind(from), kt = sd_dtype_kind(to);

    if (from == to) {
        memcpy(out, a, sd_dtype_bytes(to));
        return;
    }
    if (kt == SD_K_PRED) {
        *(char *)out = is_nonzero(from, a);
        return;
    }
    if (kf == SD_K_COMPLEX && kt != SD_K_COMPLEX) {
        hlo_scalar_convert(sd_dtype_part(from), a, to, out);
        return;
    }
    if (kt == SD_K_COMPLEX) {
        hlo_wide_store(to, hlo_wide_load(from, a), out);
        return;
    }
    if (kt == SD_K_FLOAT && kf == SD_K_FLOAT)
        sd_scalar_of_f64(to, sd_scalar_to_f64(from, a), out);
    else if (kt == SD_K_FLOAT) /* 64 bits fit a long double */
        store_real(to, load_real(from, a), out);
    else if (kf == SD_K_FLOAT)
        sd_scalar_of_s64(to, int_of_float(to, sd_scalar_to_f64(from, a)), out);
    else
        sd_scalar_of_s64(to, sd_scalar_to_s64(from, a), out);
}

/* ---- reduce-precision ---- */

/* On the bits: the fraction is rounded where it stands, so a subnormal keeps
 * its scale; exponents out of range become zero or infinity. */
bool hlo_scalar_precision(sd_dtype t, int exponent, int mantissa, const void *a,
                          void *out)
{
    int eb = t == SD_F64 ? 11 : t == SD_F16 ? 5 : 8;
    int mb = t == SD_F64 ? 52 : t == SD_F32 ? 23 : t == SD_F16 ? 10 : 7;
    uint64_t v = 0, sign, inf, x;

    if (t != SD_F64 && t != SD_F32 && t != SD_F16 && t != SD_BF16)
        return false;
    memcpy(&v, a, sd_dtype_bytes(t));
    sign = v & UINT64_C(1) << (eb + mb);
    inf = ((UINT64_C(1) << eb) - 1) << mb;
    x = v ^ sign;
    if (x <= inf) { /* a NaN stays, even where no mantissa is left */
        if (mantissa < mb) {
            uint64_t last = UINT64_C(1) << (mb - mantissa);

            x += (last >> 1) - 1 + (x & last ? 1 : 0);
            x &= ~(last - 1);
        }
        if (exponent < eb) {
            uint64_t bias = (UINT64_C(1) << (eb - 1)) - 1;
            uint64_t reduced = (UINT64_C(1) << (exponent - 1)) - 1;

            if ((x & inf) > (bias + reduced) << mb)
                x = inf;
            else if ((x & inf) <= (bias - reduced) << mb)
                x = 0;
        }
    }
    v = sign | x;
    memcpy(out, &v, sd_dtype_bytes(t));
    return true;
}
