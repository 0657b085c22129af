/* Element types, and one scalar of each to and from doubles.  All narrow
 * floats go through one description of their bits; from a double there is one
 * rounding, to nearest even. */
#include "base.h"

#include <math.h>

const sd_dtype_info sd_dtype_table[SD_DTYPE_COUNT] = {
#define DTYPE(id, n, nbits, k, p, x) \
    [SD_##id] = {.name = n, \
                 .bits = nbits, \
                 .bytes = (nbits + 7) / 8, \
                 .kind = k, \
                 .pjrt = p, \
                 .xla = x},
#include "dtype.def"
#undef DTYPE
};

bool sd_dtype_of_name(const char *s, size_t len, sd_dtype *out)
{
    for (int i = 0; i < SD_DTYPE_COUNT; i++) {
        const char *n = sd_dtype_table[i].name;

        if (strlen(n) == len && !memcmp(n, s, len)) {
            *out = (sd_dtype)i;
            return true;
        }
    }
    return false;
}

bool sd_dtype_of_pjrt(int code, sd_dtype *out)
{
    for (int i = 0; code > 0 && i < SD_DTYPE_COUNT; i++)
        if (sd_dtype_table[i].pjrt == code) {
            *out = (sd_dtype)i;
            return true;
        }
    return false;
}

bool sd_dtype_of_xla(int code, sd_dtype *out)
{
    for (int i = 0; code > 0 && i < SD_DTYPE_COUNT; i++)
        if (sd_dtype_table[i].xla == code) {
            *out = (sd_dtype)i;
            return true;
        }
    return false;
}

sd_dtype sd_dtype_part(sd_dtype t)
{
    return t == SD_C64 ? SD_F32 : t == SD_C128 ? SD_F64 : t;
}

sd_dtype sd_dtype_complex(sd_dtype t)
{
    return t == SD_F32 ? SD_C64 : t == SD_F64 ? SD_C128 : t;
}

sd_dtype sd_dtype_unsigned(int bits)
{
    sd_dtype t = SD_U2; /* the first of them, in the order of their bits */

    while (t < SD_U64 && sd_dtype_table[t].bits < bits)
        t++;
    return t;
}

/* ---- narrow floats ---- */

/* What the largest exponent means: IEEE has infinities and NaNs there; FN
 * only all ones is NaN; FNUZ only minus zero is NaN; FINITE has neither. */
typedef enum { IEEE, FN, FNUZ, FINITE } special;
typedef struct {
    uint8_t exp, man; /* bits */
    uint8_t special;
    int16_t bias;
} format;

static const format formats[SD_DTYPE_COUNT] = {
    [SD_F4E2M1FN] = {2, 1, FINITE, 1},     [SD_F6E2M3FN] = {2, 3, FINITE, 1},
    [SD_F6E3M2FN] = {3, 2, FINITE, 3},     [SD_F8E3M4] = {3, 4, IEEE, 3},
    [SD_F8E4M3] = {4, 3, IEEE, 7},         [SD_F8E4M3FN] = {4, 3, FN, 7},
    [SD_F8E4M3B11FNUZ] = {4, 3, FNUZ, 11}, [SD_F8E4M3FNUZ] = {4, 3, FNUZ, 8},
    [SD_F8E5M2] = {5, 2, IEEE, 15},        [SD_F8E5M2FNUZ] = {5, 2, FNUZ, 16},
    [SD_BF16] = {8, 7, IEEE, 127},         [SD_F16] = {5, 10, IEEE, 15},
};

static double narrow_to_f64(const format *f, uint32_t bits)
{
    uint32_t sign = bits >> (f->exp + f->man) & 1;
    uint32_t e = bits >> f->man & ((1u << f->exp) - 1);
    uint32_t m = bits & ((1u << f->man) - 1);
    uint32_t top = (1u << f->exp) - 1;
    double v;

    if (f->special == FNUZ && sign && !e && !m)
        return NAN;
    if (f->special == IEEE && e == top)
        v = m ? NAN : INFINITY;
    else if (f->special == FN && e == top && m == (1u << f->man) - 1)
        v = NAN;
    else if (e)
        v = ldexp((double)(m | 1u << f->man), (int)e - f->bias - f->man);
    else
        v = ldexp((double)m, 1 - f->bias - f->man);
    return sign ? -v : v;
}

/* The largest finite value's bits. */
static uint32_t narrow_max(const format *f)
{
    uint32_t all = (1u << (f->exp + f->man)) - 1;

    if (f->special == IEEE)
        return (((1u << f->exp) - 1) << f->man) - 1;
    return f->special == FN ? all - 1 : all;
}

static uint32_t narrow_nan(const format *f, uint32_t sign)
{
    uint32_t all = (1u << (f->exp + f->man)) - 1;
    uint32_t s = sign << (f->exp + f->man);

    switch (f->special) {
    case IEEE:
        return s | ((1u << f->exp) - 1) << f->man | 1u << (f->man - 1);
    case FN:
        return s | all;
    case FNUZ:
        return 1u << (f->exp + f->man);
    default: /* no NaN: minus zero, as ml_dtypes has it */
        return 1u << (f->exp + f->man);
    }
}

static uint32_t narrow_of_f64(const format *f, double v)
{
    uint32_t sign = signbit(v) ? 1 : 0, s = sign << (f->exp + f->man);
    uint32_t bits, max = narrow_max(f);
    double a = fabs(v), q;
    int e;

    if (isnan(v))
        return narrow_nan(f, sign);
    if (a == 0)
        return f->special == FNUZ ? 0 : s;
    if (isinf(v))
        goto over;
    frexp(a, &e);
    e = SD_MAX(e - 1, 1 - f->bias); /* exponent of the unit in the last place */
    if (e > 1 - f->bias + (1 << f->exp))
        goto over;
    q = rint(ldexp(a, f->man - e)); /* exact scaling, then nearest even */
    if (q == 0)
        return f->special == FNUZ ? 0 : s;
    /* A mantissa that rounded up to 2^(man+1) carries into the exponent. */
    bits = ((uint32_t)(e + f->bias - 1) << f->man) + (uint32_t)q;
    if (bits > max)
        goto over;
    return s | bits;
over:
    if (f->special == IEEE)
        return s | (max + 1);
    return f->special == FINITE ? s | max : narrow_nan(f, sign);
}

/* Powers of two from 2^-127 to 2^127, 0xff is NaN; no sign and no zero. */
static double e8m0_to_f64(uint8_t b)
{
    return b == 0xff ? NAN : ldexp(1, (int)b - 127);
}

static uint8_t e8m0_of_f64(double v)
{
    int e;
    double m;

    if (!(v > 0) || isinf(v))
        return 0xff;
    m = frexp(v, &e); /* v = m 2^e, m in [0.5, 1) */
    e -= 1;
    if (m >= 0.75) /* ties go up: there is no mantissa bit to be even */
        e++;
    if (e < -127)
        return 0;
    return e > 127 ? 0xff : (uint8_t)(e + 127);
}

/* ---- scalars ---- */

static int64_t load_int(sd_dtype t, const void *p)
{
    unsigned bits = sd_dtype_table[t].bits, drop = 64 - bits;
    uint64_t u = 0;

    memcpy(&u, p, sd_dtype_bytes(t));
    if (t == SD_PRED)
        return u != 0;
    if (sd_is_signed(t))
        return (int64_t)(u << drop) >> drop;
    return (int64_t)(u << drop >> drop);
}

int64_t sd_scalar_to_s64(sd_dtype t, const void *p)
{
    return load_int(t, p);
}

/* Signed sub-byte values are stored sign-extended over their byte, unsigned
 * ones with zeros above, as JAX's host types have them. */
void sd_scalar_of_s64(sd_dtype t, int64_t v, void *p)
{
    unsigned drop = 64 - sd_dtype_table[t].bits;
    uint64_t u = (uint64_t)v;

    if (t == SD_PRED)
        u = v != 0;
    else if (sd_is_signed(t))
        u = (uint64_t)((int64_t)(u << drop) >> drop);
    else
        u = u << drop >> drop;
    memcpy(p, &u, sd_dtype_bytes(t));
}

static double load_float(sd_dtype t, const void *p)
{
    uint32_t bits = 0;
    uint8_t byte;
    float f;
    double d;

    switch (t) {
    case SD_F64:
        memcpy(&d, p, 8);
        return d;
    case SD_F32:
        memcpy(&f, p, 4);
        return (double)f;
    case SD_F8E8M0FNU:
        memcpy(&byte, p, 1);
        return e8m0_to_f64(byte);
    default:
        memcpy(&bits, p, sd_dtype_bytes(t));
        return narrow_to_f64(&formats[t], bits);
    }
}

static void store_float(sd_dtype t, double v, void *p)
{
    uint32_t bits;
    uint8_t byte;
    float f;

    switch (t) {
    case SD_F64:
        memcpy(p, &v, 8);
        return;
    case SD_F32:
        f = (float)v;
        memcpy(p, &f, 4);
        return;
    case SD_F8E8M0FNU:
        byte = e8m0_of_f64(v);
        memcpy(p, &byte, 1);
        return;
    default:
        bits = narrow_of_f64(&formats[t], v);
        memcpy(p, &bits, sd_dtype_bytes(t));
    }
}

double sd_scalar_to_f64(sd_dtype t, const void *p)
{
    switch (sd_dtype_kind(t)) {
    case SD_K_FLOAT:
        return load_float(t, p);
    case SD_K_COMPLEX:
        return load_float(sd_dtype_part(t), p);
    case SD_K_UINT:
        return (double)(uint64_t)load_int(t, p);
    case SD_K_PRED:
    case SD_K_SINT:
        return (double)load_int(t, p);
    default:
        return 0;
    }
}

/* To an integer: towards zero, clamped to the range, NaN is 0. */
static void store_int(sd_dtype t, double v, void *p)
{
    unsigned bits = sd_dtype_table[t].bits;
    bool is_signed = sd_is_signed(t);
    double top = ldexp(1, (int)bits - (is_signed ? 1 : 0)); /* first too big */
    uint64_t max = ~UINT64_C(0) >> (64 - bits + (is_signed ? 1 : 0));

    if (isnan(v))
        sd_scalar_of_s64(t, 0, p);
    else if (v >= top)
        sd_scalar_of_s64(t, (int64_t)max, p);
    else if (is_signed)
        sd_scalar_of_s64(t, v <= -top ? -(int64_t)max - 1 : (int64_t)v, p);
    else
        sd_scalar_of_s64(t, v <= 0 ? 0 : (int64_t)(uint64_t)v, p);
}

void sd_scalar_of_f64(sd_dtype t, double v, void *p)
{
    size_t part;

    switch (sd_dtype_kind(t)) {
    case SD_K_FLOAT:
        store_float(t, v, p);
        break;
    case SD_K_COMPLEX:
        part = sd_dtype_bytes(t) / 2;
        store_float(sd_dtype_part(t), v, p);
        memset((uint8_t *)p + part, 0, part);
        break;
    case SD_K_PRED:
        sd_scalar_of_s64(t, v != 0, p);
        break;
    case SD_K_SINT:
    case SD_K_UINT:
        store_int(t, v, p);
        break;
    default:
        break;
    }
}
