/* One element at a time.  Functions are computed in long double and rounded
 * once to the type; sums, products, quotients and roots in double, which for
 * f64 is the type itself and for narrower ones is wide enough that the second
 * rounding changes nothing (53 >= 2 * 24 + 2). */
#include "hlo_scalar.h"

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
    if (sd_dtype_kind(t) != SD_K_COMPLEX)
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
    if (t == SD_F64) {
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
    if (sd_dtype_kind(t) != SD_K_COMPLEX) {
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

/* ---- integers ---- */

static int64_t power_int(int64_t base, int64_t e, bool is_signed)
{
    uint64_t r = 1, b = (uint64_t)base, n = (uint64_t)e;

    if (is_signed && e < 0) {
        if (base == 1)
            return 1;
        if (base == -1)
            return e % 2 ? -1 : 1;
        return 0;
    }
    for (; n; n >>= 1) {
        if (n & 1)
            r *= b;
        b *= b;
    }
    return (int64_t)r;
}

/* The amount is unsigned in the element's type; all bits may be shifted out */
static uint64_t shift_amount(int64_t b, int bits)
{
    return bits == 64 ? (uint64_t)b : (uint64_t)b & ((UINT64_C(1) << bits) - 1);
}

static int64_t shift(hlo_op op, int64_t a, int64_t b, int bits)
{
    uint64_t n = shift_amount(b, bits), u = shift_amount(a, bits);
    bool top = u >> (bits - 1) & 1;

    if (op == HLO_SHR_ARITH) {
        if (n >= (uint64_t)bits)
            return top ? -1 : 0;
        /* sign bits in, also for unsigned types */
        return (int64_t)(top ? ~(~(u | ~(UINT64_MAX >> (64 - bits))) >> n)
                             : u >> n);
    }
    if (n >= (uint64_t)bits)
        return 0;
    return (int64_t)(op == HLO_SHL ? u << n : u >> n);
}

static int64_t divide_int(int64_t a, int64_t b, bool is_signed)
{
    if (b == 0)
        return -1;
    if (!is_signed)
        return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_int(int64_t a, int64_t b, bool is_signed)
{
    if (b == 0)
        return a;
    if (!is_signed)
        return (int64_t)((uint64_t)a % (uint64_t)b);
    return b == -1 ? 0 : a % b;
}

static bool less_int(int64_t a, int64_t b, bool is_signed)
{
    return is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

static int64_t int_op(hlo_op op, sd_dtype t, int64_t a, int64_t b)
{
    bool sg = sd_dtype_kind(t) == SD_K_SINT;
    int bits = sd_dtype_table[t].bits;
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    uint64_t low = shift_amount(a, bits);

    switch (op) {
    case HLO_ABS:
        return a < 0 ? (int64_t)(0 - ua) : a;
    case HLO_NEGATE:
        return (int64_t)(0 - ua);
    case HLO_SIGN:
        return (a > 0) - (a < 0);
    case HLO_NOT:
        return ~a;
    case HLO_POPCNT:
        return __builtin_popcountll(low);
    case HLO_CLZ:
        return low ? __builtin_clzll(low) - (64 - bits) : bits;
    case HLO_ADD:
        return (int64_t)(ua + ub);
    case HLO_SUBTRACT:
        return (int64_t)(ua - ub);
    case HLO_MULTIPLY:
        return (int64_t)(ua * ub);
    case HLO_DIVIDE:
        return divide_int(a, b, sg);
    case HLO_REMAINDER:
        return remainder_int(a, b, sg);
    case HLO_MAXIMUM:
        return less_int(a, b, sg) ? b : a;
    case HLO_MINIMUM:
        return less_int(b, a, sg) ? b : a;
    case HLO_POWER:
        return power_int(a, b, sg);
    case HLO_AND:
        return a & b;
    case HLO_OR:
        return a | b;
    case HLO_XOR:
        return a ^ b;
    case HLO_SHL:
    case HLO_SHR_ARITH:
    case HLO_SHR_LOGIC:
        return shift(op, a, b, bits);
    default:
        assert(!"no integer op");
        return 0;
    }
}

static bool pred_op(hlo_op op, bool a, bool b)
{
    switch (op) {
    case HLO_NOT:
        return !a;
    case HLO_ADD:
    case HLO_OR:
    case HLO_MAXIMUM:
        return a || b;
    case HLO_XOR:
        return a != b;
    default: /* multiply, and, minimum */
        return a && b;
    }
}

/* ---- floats ---- */

static double max_float(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? a : b;
    if (a == b) /* +0 over -0 */
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

static double min_float(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? a : b;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

/* What double gives right for f64, and for less after one more rounding. */
static bool plain_float_op(hlo_op op, double a, double b, double *out)
{
    switch (op) {
    case HLO_ABS:
        *out = fabs(a);
        return true;
    case HLO_NEGATE:
        *out = -a;
        return true;
    case HLO_SIGN:
        *out = isnan(a) || a == 0 ? a : copysign(1, a);
        return true;
    case HLO_CEIL:
        *out = ceil(a);
        return true;
    case HLO_FLOOR:
        *out = floor(a);
        return true;
    case HLO_ROUND_AFZ:
        *out = round(a);
        return true;
    case HLO_ROUND_EVEN:
        *out = nearbyint(a);
        return true;
    case HLO_REAL:
        *out = a;
        return true;
    case HLO_IMAG:
        *out = 0;
        return true;
    case HLO_SQRT:
        *out = sqrt(a);
        return true;
    case HLO_ADD:
        *out = a + b;
        return true;
    case HLO_SUBTRACT:
        *out = a - b;
        return true;
    case HLO_MULTIPLY:
        *out = a * b;
        return true;
    case HLO_DIVIDE:
        *out = a / b;
        return true;
    case HLO_REMAINDER:
        *out = fmod(a, b);
        return true;
    case HLO_MAXIMUM:
        *out = max_float(a, b);
        return true;
    case HLO_MINIMUM:
        *out = min_float(a, b);
        return true;
    default:
        return false;
    }
}

static long double float_function(hlo_op op, long double a, long double b)
{
    switch (op) {
    case HLO_RSQRT:
        return 1 / sqrtl(a);
    case HLO_CBRT:
        return cbrtl(a);
    case HLO_EXP:
        return expl(a);
    case HLO_EXPM1:
        return expm1l(a);
    case HLO_LOG:
        return logl(a);
    case HLO_LOG1P:
        return log1pl(a);
    case HLO_LOGISTIC:
        return 1 / (1 + expl(-a));
    case HLO_SIN:
        return sinl(a);
    case HLO_COS:
        return cosl(a);
    case HLO_TAN:
        return tanl(a);
    case HLO_TANH:
        return tanhl(a);
    case HLO_ERF:
        return erfl(a);
    case HLO_POWER:
        return powl(a, b);
    case HLO_ATAN2:
        return atan2l(a, b);
    default:
        assert(!"no float op");
        return 0;
    }
}

static void float_op(hlo_op op, sd_dtype t, const void *pa, const void *pb,
                     void *out)
{
    double a = sd_scalar_to_f64(t, pa), b = pb ? sd_scalar_to_f64(t, pb) : 0;
    double v;

    if (op == HLO_IS_FINITE)
        *(char *)out = isfinite(a) != 0;
    else if (plain_float_op(op, a, b, &v))
        sd_scalar_of_f64(t, v, out);
    else
        store_real(t, float_function(op, a, b), out);
}

/* ---- complex numbers ---- */

/* the plain formula: no repair of inf * NaN as C's own product makes */
static hlo_wide multiply_complex(hlo_wide a, hlo_wide b)
{
    long double ar = creall(a), ai = cimagl(a), br = creall(b), bi = cimagl(b);

    return CMPLXL(ar * br - ai * bi, ar * bi + ai * br);
}

static hlo_wide expm1_complex(hlo_wide a)
{
    long double x = creall(a), y = cimagl(a), s = sinl(y / 2);

    return CMPLXL(expm1l(x) * cosl(y) - 2 * s * s, expl(x) * sinl(y));
}

static hlo_wide log1p_complex(hlo_wide a)
{
    long double x = creall(a), y = cimagl(a);
    long double small = x * (2 + x) + y * y;

    if (!(fabsl(small) < 0.5L))
        return clogl(CMPLXL(1 + x, y));
    return CMPLXL(log1pl(small) / 2, atan2l(y, 1 + x));
}

static hlo_wide power_complex(hlo_wide a, hlo_wide b)
{
    if (creall(a) == 0 && cimagl(a) == 0) {
        if (creall(b) == 0 && cimagl(b) == 0)
            return 1;
        if (creall(b) > 0)
            return 0;
    }
    return cpowl(a, b);
}

static bool less_complex(hlo_wide a, hlo_wide b)
{
    return creall(a) != creall(b) ? creall(a) < creall(b)
                                  : cimagl(a) < cimagl(b);
}

static hlo_wide max_complex(hlo_wide a, hlo_wide b, bool want_less)
{
    bool nan = isnan(creall(a)) || isnan(cimagl(a));

    if (nan || isnan(creall(b)) || isnan(cimagl(b)))
        return nan ? a : b;
    return less_complex(a, b) == want_less ? a : b;
}

static hlo_wide complex_function(hlo_op op, hlo_wide a, hlo_wide b)
{
    long double size;

    switch (op) {
    case HLO_NEGATE:
        return CMPLXL(-creall(a), -cimagl(a));
    case HLO_SIGN:
        size = cabsl(a);
        return size == 0 || isnan(size)
                   ? a
                   : CMPLXL(creall(a) / size, cimagl(a) / size);
    case HLO_SQRT:
        return csqrtl(a);
    case HLO_RSQRT:
        return 1 / csqrtl(a);
    case HLO_EXP:
        return cexpl(a);
    case HLO_EXPM1:
        return expm1_complex(a);
    case HLO_LOG:
        return clogl(a);
    case HLO_LOG1P:
        return log1p_complex(a);
    case HLO_LOGISTIC:
        return 1 / (1 + cexpl(CMPLXL(-creall(a), -cimagl(a))));
    case HLO_SIN:
        return csinl(a);
    case HLO_COS:
        return ccosl(a);
    case HLO_TAN:
        return ctanl(a);
    case HLO_TANH:
        return ctanhl(a);
    case HLO_ADD:
        return CMPLXL(creall(a) + creall(b), cimagl(a) + cimagl(b));
    case HLO_SUBTRACT:
        return CMPLXL(creall(a) - creall(b), cimagl(a) - cimagl(b));
    case HLO_MULTIPLY:
        return multiply_complex(a, b);
    case HLO_DIVIDE:
        return a / b;
    case HLO_POWER:
        return power_complex(a, b);
    case HLO_MAXIMUM:
        return max_complex(a, b, false);
    case HLO_MINIMUM:
        return max_complex(a, b, true);
    case HLO_ATAN2: /* -i log((b + ia) / sqrt(a^2 + b^2)) */
        return -I * clogl((b + I * a) / csqrtl(a * a + b * b));
    default:
        assert(!"no complex op");
        return 0;
    }
}

static void complex_op(hlo_op op, sd_dtype t, const void *pa, const void *pb,
                       void *out)
{
    hlo_wide a = hlo_wide_load(t, pa), b = pb ? hlo_wide_load(t, pb) : 0;
    sd_dtype part = sd_dtype_part(t);

    if (op == HLO_ABS)
        store_real(part, hypotl(creall(a), cimagl(a)), out);
    else if (op == HLO_REAL)
        store_real(part, creall(a), out);
    else if (op == HLO_IMAG)
        store_real(part, cimagl(a), out);
    else
        hlo_wide_store(t, complex_function(op, a, b), out);
}

void hlo_scalar_op(hlo_op op, sd_dtype t, const void *a, const void *b,
                   void *out)
{
    size_t n = sd_dtype_bytes(t);

    if (op == HLO_COMPLEX) {
        memcpy(out, a, n);
        memcpy((char *)out + n, b, n);
        return;
    }
    switch (sd_dtype_kind(t)) {
    case SD_K_PRED:
        *(char *)out = pred_op(op, *(const char *)a, b && *(const char *)b);
        break;
    case SD_K_SINT:
    case SD_K_UINT:
        sd_scalar_of_s64(t,
                         int_op(op, t, sd_scalar_to_s64(t, a),
                                b ? sd_scalar_to_s64(t, b) : 0),
                         out);
        break;
    case SD_K_FLOAT:
        float_op(op, t, a, b, out);
        break;
    case SD_K_COMPLEX:
        complex_op(op, t, a, b, out);
        break;
    case SD_K_NONE:
        break;
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
        bool ordered = !isnan(creall(x)) && !isnan(creall(y)) &&
                       !isnan(cimagl(x)) && !isnan(cimagl(y));

        return by_order(dir, ordered && less_complex(x, y),
                        creall(x) == creall(y) && cimagl(x) == cimagl(y),
                        ordered);
    }
    if (k == SD_K_FLOAT && type != HLO_CMP_TOTAL) {
        double x = sd_scalar_to_f64(t, a), y = sd_scalar_to_f64(t, b);

        return by_order(dir, x < y, x == y, !isnan(x) && !isnan(y));
    }
    if (k == SD_K_FLOAT) {
        int64_t x = total_order(t, a), y = total_order(t, b);

        return by_order(dir, x < y, x == y, true);
    }
    int64_t x = sd_scalar_to_s64(t, a), y = sd_scalar_to_s64(t, b);

    return by_order(dir, less_int(x, y, k == SD_K_SINT), x == y, true);
}

/* ---- convert ---- */

/* Truncated, saturated, NaN is 0. */
static int64_t int_of_float(sd_dtype to, double v)
{
    bool sg = sd_dtype_kind(to) == SD_K_SINT;
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
    if (x > inf) { /* a NaN; without a fraction it cannot be one */
        x = mantissa > 0 ? x : inf;
    } else {
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
