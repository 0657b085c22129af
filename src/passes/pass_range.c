/* Between which integers all elements of an array lie, as far as its operands
 * say so: bytes are 0 to 255, positions less than their dimension, and what is
 * computed of them is bounded, too.  Only a few operations are looked at, from
 * the result on, so that asking costs little. */
#include "passes_priv.h"

enum { MOST_STEPS = 48, MOST_LITERAL = 64, EXACT_F32 = 1 << 24 };

#define FAR_OFF (INT64_C(1) << 40)

typedef struct {
    int steps; /* left */
} search;

static bool find(search *s, const hlo_inst *in, pass_range *r);

/* What the type holds; floats have no such range. */
static bool of_type(sd_dtype t, pass_range *r)
{
    int bits = sd_dtype_table[t].bits;

    if (t == SD_PRED) {
        *r = (pass_range){0, 1};
        return true;
    }
    if (!sd_is_int(t) || bits > 32)
        return false;
    if (sd_is_signed(t))
        *r = (pass_range){-(INT64_C(1) << (bits - 1)),
                          (INT64_C(1) << (bits - 1)) - 1};
    else
        *r = (pass_range){0, (INT64_C(1) << bits) - 1};
    return true;
}

/* Does the type hold each integer of the range? */
static bool holds(sd_dtype t, pass_range r)
{
    pass_range most;

    if (of_type(t, &most))
        return r.lo >= most.lo && r.hi <= most.hi;
    if (t == SD_F32)
        return r.lo >= -EXACT_F32 && r.hi <= EXACT_F32;
    if (t == SD_F64 || t == SD_S64)
        return r.lo >= -FAR_OFF && r.hi <= FAR_OFF;
    return t == SD_U64 && r.lo >= 0 && r.hi <= FAR_OFF;
}

static pass_range both(pass_range x, pass_range y)
{
    return (pass_range){SD_MIN(x.lo, y.lo), SD_MAX(x.hi, y.hi)};
}

static bool of_literal(const hlo_inst *in, pass_range *r)
{
    sd_dtype t = in->shape->dtype;
    int64_t n = hlo_is_splat(in) ? 1 : sd_shape_count(in->shape);

    if (n > MOST_LITERAL || !n || (!sd_is_int(t) && t != SD_F32 && t != SD_F64))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const void *at =
            (const uint8_t *)in->u.literal.data + (size_t)i * sd_dtype_bytes(t);
        pass_range one;

        if (sd_is_int(t)) {
            one.lo = one.hi = sd_scalar_to_s64(t, at);
        } else {
            double v = sd_scalar_to_f64(t, at);

            if (!(v > -(double)EXACT_F32 && v < (double)EXACT_F32) ||
                v != (double)(int64_t)v)
                return false;
            one.lo = one.hi = (int64_t)v;
        }
        *r = i ? both(*r, one) : one;
    }
    return holds(t, *r);
}

/* Of factors that are small enough. */
static bool product(pass_range x, pass_range y, pass_range *r)
{
    const int64_t most = INT64_C(1) << 31;
    pass_range a, b;

    if (x.lo < -most || x.hi > most || y.lo < -most || y.hi > most)
        return false;
    a = (pass_range){x.lo * y.lo, x.hi * y.hi};
    b = (pass_range){x.lo * y.hi, x.hi * y.lo};
    if (a.lo > a.hi)
        a = (pass_range){a.hi, a.lo};
    if (b.lo > b.hi)
        b = (pass_range){b.hi, b.lo};
    *r = both(a, b);
    return true;
}

/* All ones from the highest bit of v on. */
static int64_t ones_above(int64_t v)
{
    return v > 0 ? (int64_t)(UINT64_MAX >> __builtin_clzll((uint64_t)v)) : 0;
}

/* Of two operands that are not negative, whose bits say more. */
static bool of_bits(hlo_op op, pass_range x, pass_range y, pass_range *r)
{
    switch (op) {
    case HLO_AND:
        *r = (pass_range){0, SD_MIN(x.hi, y.hi)};
        return true;
    case HLO_OR:
    case HLO_XOR:
        *r = (pass_range){0, ones_above(x.hi | y.hi)};
        return true;
    case HLO_SHR_LOGIC:
    case HLO_SHR_ARITH:
        *r = (pass_range){y.hi < 31 ? x.lo >> y.hi : 0,
                          x.hi >> SD_MIN(y.lo, 62)};
        return true;
    case HLO_SHL:
        if (y.hi > 16)
            return false;
        *r = (pass_range){x.lo << y.lo, x.hi << y.hi};
        return true;
    case HLO_DIVIDE:
        if (y.lo < 1)
            return false;
        *r = (pass_range){x.lo / y.hi, x.hi / y.lo};
        return true;
    case HLO_REMAINDER:
        if (y.lo < 1)
            return false;
        *r = (pass_range){0, SD_MIN(x.hi, y.hi - 1)};
        return true;
    default:
        return false;
    }
}

static bool of_two(search *s, const hlo_inst *in, pass_range *r)
{
    pass_range x, y;

    if (!find(s, in->arg[0], &x) || !find(s, in->arg[1], &y))
        return false;
    switch (in->op) {
    case HLO_ADD:
        *r = (pass_range){x.lo + y.lo, x.hi + y.hi};
        return true;
    case HLO_SUBTRACT:
        *r = (pass_range){x.lo - y.hi, x.hi - y.lo};
        return true;
    case HLO_MULTIPLY:
        return product(x, y, r);
    case HLO_MAXIMUM:
        *r = (pass_range){SD_MAX(x.lo, y.lo), SD_MAX(x.hi, y.hi)};
        return true;
    case HLO_MINIMUM:
        *r = (pass_range){SD_MIN(x.lo, y.lo), SD_MIN(x.hi, y.hi)};
        return true;
    default: /* quotients of floats are none of integers */
        return sd_is_int(in->shape->dtype) && x.lo >= 0 && y.lo >= 0 &&
               of_bits(in->op, x, y, r);
    }
}

static bool of_one(search *s, const hlo_inst *in, pass_range *r)
{
    pass_range x;

    if (!find(s, in->arg[0], &x))
        return false;
    switch (in->op) {
    case HLO_NEGATE:
        *r = (pass_range){-x.hi, -x.lo};
        return true;
    case HLO_ABS:
        *r = (pass_range){x.lo > 0   ? x.lo
                          : x.hi < 0 ? -x.hi
                                     : 0,
                          SD_MAX(x.hi, -x.lo)};
        return true;
    case HLO_SIGN:
        *r = (pass_range){x.lo < 0 ? -1 : x.lo > 0, x.hi < 0 ? -1 : x.hi > 0};
        return true;
    case HLO_CONVERT:
        *r = x;
        return true;
    default:
        return false;
    }
}

/* All elements are some of those of operands [from, to). */
static bool of_some(search *s, const hlo_inst *in, int from, int to,
                    pass_range *r)
{
    for (int i = from; i < to; i++) {
        pass_range x;

        if (!find(s, in->arg[i], &x))
            return false;
        *r = i > from ? both(*r, x) : x;
    }
    return true;
}

static bool of_op(search *s, const hlo_inst *in, pass_range *r)
{
    switch (in->op) {
    case HLO_CONSTANT:
        return of_literal(in, r);
    case HLO_IOTA:
        *r = (pass_range){0, SD_MAX(in->shape->dim[in->dims.at[0]], 1) - 1};
        return r->hi <= EXACT_F32;
    case HLO_BROADCAST:
    case HLO_RESHAPE:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_SLICE:
    case HLO_COPY:
    case HLO_DYNAMIC_SLICE:
        return of_some(s, in, 0, 1, r);
    case HLO_CONCATENATE:
    case HLO_PAD:
        return of_some(s, in, 0, in->narg, r);
    case HLO_SELECT:
        return of_some(s, in, 1, 3, r);
    case HLO_POPCNT:
    case HLO_CLZ:
        *r = (pass_range){0, sd_dtype_table[in->shape->dtype].bits};
        return true;
    default:
        if (hlo_info(in)->cls == HLO_C_BINARY)
            return of_two(s, in, r);
        return (hlo_info(in)->cls == HLO_C_UNARY || in->op == HLO_CONVERT) &&
               of_one(s, in, r);
    }
}

/* What wraps around, or is rounded, may be anything of its type. */
static bool find(search *s, const hlo_inst *in, pass_range *r)
{
    sd_dtype t = in->shape->dtype;

    if (!sd_shape_is_array(in->shape))
        return false;
    if (s->steps-- > 0 && t != SD_PRED && of_op(s, in, r) && holds(t, *r))
        return true;
    return of_type(t, r);
}

bool pass_range_of(const hlo_inst *in, pass_range *r)
{
    search s = {MOST_STEPS};

    return find(&s, in, r);
}
