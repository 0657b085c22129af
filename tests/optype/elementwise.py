"""The elementwise rows: what an element becomes, on arrays computed wide."""
import math

import ml_dtypes
import numpy as np

import values
from programs import EXACT, ZEROS, near, plainly
from values import kind, part, rounded, wide


def bit_length(t, x):
    own = x.view(np.uint64) & np.uint64((1 << values.bits(t)) - 1)
    return sum(((own >> np.uint64(k)) != 0).astype(np.int64)
               for k in range(values.bits(t)))


def popcnt(t, x):
    own = x.view(np.uint64) & np.uint64((1 << values.bits(t)) - 1)
    return sum(((own >> np.uint64(k)) & np.uint64(1)).astype(np.int64)
               for k in range(values.bits(t)))


def sign(t, x):
    if kind(t) == "cplx":
        size = np.abs(x)
        return np.where((size == 0) | np.isnan(size), x, x / size)
    if kind(t) == "float":
        return np.where((x == 0) | np.isnan(x), x, np.copysign(1, x))
    return np.sign(x)


def away_from_zero(t, x):
    return np.where(np.isfinite(x), np.copysign(np.trunc(np.abs(x) + 0.5), x),
                    x)


def logistic(t, x):
    return 1 / (1 + np.exp(-x))


def erf(t, x):
    return np.array([math.erf(v) for v in x.reshape(-1).astype(float)],
                    np.longdouble).reshape(x.shape)


def cbrt(t, x):
    return x ** (np.longdouble(1) / 3) if kind(t) == "cplx" else np.cbrt(x)


def plain(fn):
    return lambda t, x: fn(x)


def roots(t, x):
    return 1 / np.sqrt(x)


# name: the function of (type, wide array), how results are compared
UNARY = {
    "abs": (plain(np.abs), EXACT), "negate": (plain(np.negative), EXACT),
    "sign": (sign, EXACT), "ceil": (plain(np.ceil), EXACT),
    "floor": (plain(np.floor), EXACT),
    "round-nearest-afz": (away_from_zero, EXACT),
    "round-nearest-even": (plain(np.rint), EXACT),
    "is-finite": (plain(np.isfinite), EXACT),
    "not": (plain(np.invert), EXACT), "popcnt": (popcnt, EXACT),
    "count-leading-zeros": (
        lambda t, x: values.bits(t) - bit_length(t, x), EXACT),
    "real": (plain(np.real), EXACT), "imag": (plain(np.imag), EXACT),
    "sqrt": (plain(np.sqrt), EXACT), "rsqrt": (roots, near(2)),
    "cbrt": (cbrt, near(2)), "exponential": (plain(np.exp), near(2)),
    "exponential-minus-one": (plain(np.expm1), near(2)),
    "log": (plain(np.log), near(2)), "log-plus-one": (plain(np.log1p), near(2)),
    "logistic": (logistic, near(3)), "sine": (plain(np.sin), near(2)),
    "cosine": (plain(np.cos), near(2)), "tan": (plain(np.tan), near(3)),
    "tanh": (plain(np.tanh), near(3)), "erf": (erf, near(3)),
}


# Complex ones that JAX knows for every value, and exactly.
SIMPLE = ("abs", "negate", "real", "imag", "add", "subtract")


def operands(c, t, s, n):
    """Lists of n operands and how the op's result of them is compared: any
    values; of complex functions, first those of ordinary size."""
    rule = (UNARY | BINARY)[c.op][1]
    if t in values.WITHOUT_NAN and rule == EXACT:   # a zero of any sign for it
        rule = ZEROS
    if kind(t) != "cplx" or c.op in SIMPLE:
        return [([c.param(values.any_values, t, s) for _ in range(n)],
                 near(4) if c.op == "abs" and kind(t) == "cplx" else rule)]
    rule = near(max(rule[1], 4))
    how = [(values.finite_values, rule)]
    if c.op not in ("power", "atan2", "log-plus-one"):   # NumPy's lose digits
        how.append((values.any_values, plainly(rule)))
    return [([c.param(fill, t, s) for _ in range(n)], r) for fill, r in how]


def held(c, x):
    """Wide; doubles as they are where the result is exact, rounded once."""
    if (UNARY | BINARY)[c.op][1] == EXACT and c.type in ("f64", "c128"):
        return x
    return wide(x)


def unary(c, t, s):
    fn = UNARY[c.op][0]
    out = part(t) if c.op in ("abs", "real", "imag") else t
    if c.op == "is-finite":
        out = "pred"
    for args, rule in operands(c, t, s, 1):
        c.give(c.op, (out, s), *args, rule=rule)
    return lambda *x: [rounded(out, fn(t, held(c, a))) for a in x]


# ---- two operands ----

def add(t, a, b):
    return a | b if t == "pred" else a + b


def multiply(t, a, b):
    if kind(t) != "cplx":
        return a * b
    r = np.empty(a.shape, a.dtype)
    r.real = a.real * b.real - a.imag * b.imag
    r.imag = a.real * b.imag + a.imag * b.real
    return r


def divide(t, a, b):
    if kind(t) in ("float", "cplx"):
        return a / b
    if kind(t) == "uint":
        return np.where(b == 0, ~np.uint64(0), a // np.where(b == 0, 1, b))
    safe = np.where((b == 0) | (b == -1), 1, b)
    q = np.trunc(a.astype(np.longdouble) / safe).astype(np.int64)
    return np.where(b == 0, -1, np.where(b == -1, -a, q))


def remainder(t, a, b):
    if kind(t) == "float":
        return np.fmod(a, b)
    safe = np.where((b == 0) | (b.astype(np.int64) == -1 if kind(t) == "sint"
                                else False), 1, b)
    return np.where(b == 0, a, np.fmod(a, safe))


def larger(t, a, b):
    return np.maximum(a, b)


def smaller(t, a, b):
    return np.minimum(a, b)


def power(t, a, b):
    if kind(t) in ("float", "cplx"):
        return np.power(a, b)
    r, base, e = np.ones_like(a), a.copy(), b.view(np.uint64).copy()
    for _ in range(64):
        r = np.where(e & np.uint64(1), r * base, r)
        base, e = base * base, e >> np.uint64(1)
    if kind(t) == "uint":
        return r
    odd = b & 1
    return np.where(b >= 0, r, np.where(a == 1, 1, np.where(
        a == -1, np.where(odd, -1, 1), 0)))


def atan2(t, a, b):
    if kind(t) == "float":
        return np.arctan2(a, b)
    return -1j * np.log((b + 1j * a) / np.sqrt(a * a + b * b))


def amount(t, b):
    n = b.view(np.uint64) & np.uint64((1 << values.bits(t)) - 1)
    return n, n >= values.bits(t)


def own(t, a):
    return a.view(np.uint64) & np.uint64((1 << values.bits(t)) - 1)


def shift_left(t, a, b):
    n, out = amount(t, b)
    return np.where(out, 0, own(t, a) << np.where(out, 0, n))


def shift_logical(t, a, b):
    n, out = amount(t, b)
    return np.where(out, 0, own(t, a) >> np.where(out, 0, n))


def shift_arithmetic(t, a, b):
    n, out = amount(t, b)
    n = np.where(out, values.bits(t) - 1, n).astype(np.int64)
    top = own(t, a) >> np.uint64(values.bits(t) - 1)
    signed = np.where(top == 1, own(t, a) | ~np.uint64(
        (1 << values.bits(t)) - 1), own(t, a)).astype(np.uint64)
    return signed.view(np.int64) >> n


BINARY = {
    "add": (add, EXACT), "subtract": (lambda t, a, b: a - b, EXACT),
    "multiply": (multiply, EXACT), "divide": (divide, EXACT),
    "remainder": (remainder, EXACT), "maximum": (larger, ZEROS),
    "minimum": (smaller, ZEROS), "power": (power, near(2)),
    "atan2": (atan2, near(2)),
    "and": (lambda t, a, b: a & b, EXACT), "or": (lambda t, a, b: a | b, EXACT),
    "xor": (lambda t, a, b: a ^ b, EXACT), "shift-left": (shift_left, EXACT),
    "shift-right-logical": (shift_logical, EXACT),
    "shift-right-arithmetic": (shift_arithmetic, EXACT),
}


def binary(c, t, s):
    fn = BINARY[c.op][0]
    for args, rule in operands(c, t, s, 2):
        c.give(c.op, (t, s), *args, rule=rule)
    return lambda *x: [rounded(t, fn(t, held(c, a), held(c, b)))
                       for a, b in zip(x[::2], x[1::2])]


# ---- the rest ----

def complex_of(c, t, s):
    out = "c64" if t == "f32" else "c128"
    x = c.param(values.any_values, t, s)
    y = c.param(values.any_values, t, s)
    c.give("complex", (out, s), x, y)

    def meaning(x, y):
        r = np.empty(x.shape, values.numpy_type(out))
        r.real, r.imag = x, y
        return r
    return meaning


def order_key(t, x):
    """Of a float's total order: sign and magnitude as one number."""
    size = x.dtype.itemsize
    v = x.view(f"u{size}").astype(np.uint64)
    if t == "f8e8m0fnu":
        return v.astype(np.int64)
    top = np.uint64(1 << (values.bits(t) - 1))
    low = (v & (top - np.uint64(1))).astype(np.int64)
    order = np.where(v & top, ~low, low)
    if t.endswith("fnuz"):   # their NaN is where -0 would be
        order = np.where(v == top, -256, order)
    return order


COMPARE = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less,
           "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}


def compare(c, t, s):
    x = c.param(values.any_values, t, s)
    y = c.param(values.any_values, t, s)
    which = list(COMPARE)[:2] if kind(t) == "cplx" else list(COMPARE)
    total = kind(t) == "float"
    for d in which:
        c.give("compare", ("pred", s), x, y, more=f"direction={d}")
        c.give("compare", ("pred", s), x, x, more=f"direction={d}")
    for d in which if total else []:
        c.give("compare", ("pred", s), x, y,
               more=f"direction={d}, type=TOTALORDER")

    def meaning(x, y):
        a, b = wide(x), wide(y)
        out = [f(*p) for d in which for f, p in
               ((COMPARE[d], (a, b)), (COMPARE[d], (a, a)))]
        return out + [COMPARE[d](order_key(t, x), order_key(t, y))
                      for d in which if total]
    return meaning


def select(c, t, s):
    p = c.param(values.any_values, "pred", s)
    one = c.param(values.any_values, "pred", ())
    x = c.param(values.any_values, t, s)
    y = c.param(values.any_values, t, s)
    c.give("select", (t, s), p, x, y)
    b = c.do("broadcast", ("pred", s), one, more="dimensions={}")
    c.give("select", (t, s), b, x, y)
    return lambda p, one, x, y: [np.where(p, x, y), np.where(one, x, y)]


def clamp(c, t, s):
    """Which of two complex NaNs it gives is anyone's."""
    how = values.finite_values if kind(t) == "cplx" else values.any_values
    low, x, high = (c.param(how, t, s) for _ in range(3))
    c.give("clamp", (t, s), low, x, high, rule=ZEROS)
    return lambda low, x, high: rounded(t, np.minimum(np.maximum(
        wide(x), wide(low)), wide(high)))


def convert(c, t, s):
    """To every type that JAX's CPU has, or that this one is of the kind of;
    where there is no NaN a zero of any sign stands for it."""
    x = c.param(values.any_values, t, s)
    types = [to for to in values.TYPES
             if t in values.NOT_IN_JAX or to not in values.NOT_IN_JAX]
    if kind(t) == "cplx" and c.shape == "rank3":
        c.unsayable = "complex to pred ends the process of JAX's client"
    elif kind(t) == "cplx":
        types = types[1:]
    for to in types:
        c.give("convert", (to, s), x,
               rule=ZEROS if to in values.WITHOUT_NAN else EXACT)
    return lambda x: [converted(t, x, to) for to in types]


def converted(t, x, to):
    x = wide(x)
    if to == "pred":
        return x != 0
    if kind(t) == "cplx" and kind(to) != "cplx":
        x = x.real
    if kind(to) == "cplx":
        return rounded(to, x.astype(np.clongdouble))
    if kind(to) == "float":
        return rounded(to, x.astype(np.longdouble))
    if kind(t) not in ("float", "cplx"):
        return values.cut(to, x)
    n = values.bits(to)
    low, high = (0, 2 ** n - 1) if kind(to) == "uint" else (
        -2 ** (n - 1), 2 ** (n - 1) - 1)
    flat = [0 if np.isnan(v) else low if v <= low else high if v >= high
            else int(v) for v in x.reshape(-1)]
    return np.array(flat, np.int64 if low else np.uint64).astype(
        values.numpy_type(to)).reshape(x.shape)


def bitcast_convert(c, t, s):
    """To every type of as many bits and of half as many, but not between real
    and complex ones."""
    n = values.bits(t)
    x = c.param(values.any_values, t, s)
    like = [to for to in values.TYPES
            if (kind(to) == "cplx") == (kind(t) == "cplx") and to != "pred"]
    same = [to for to in like if values.bits(to) == n and t != "pred"]
    half = [to for to in like if values.bits(to) * 2 == n >= 16]
    for to in same:
        c.give("bitcast-convert", (to, s), x)
    for to in half:
        c.give("bitcast-convert", (to, s + (2,)), x)
    if t == "pred":
        c.give("bitcast-convert", (t, s), x)

    def meaning(x):
        return ([x.view(values.numpy_type(to)) for to in same]
                + [x.reshape(s + (1,)).view(values.numpy_type(to))
                   for to in half]
                + ([x] if t == "pred" else []))
    return meaning


def reduce_precision(c, t, s):
    """To fewer digits or a smaller range, both as those of a type."""
    x = c.param(values.any_values, t, s)
    formats = [(5, 10), (8, 7), (4, 3), (11, 52), (5, 2), (3, 4), (2, 1), (5, 0)]
    for e, m in formats:
        c.give("reduce-precision", (t, s), x,
               more=f"exponent_bits={e}, mantissa_bits={m}")
    return lambda x: [reduced(t, x, e, m) for e, m in formats]


def reduced(t, x, e, m):
    """Rounded to m bits of fraction, then what is past an exponent of e bits is
    infinite, and what is below it zero.  Types of 8 bits and less are taken for
    f32, e5m2 for f16; subnormals are rounded where their bits stand.  A tie goes
    to the even fraction or, where no fraction is left, to the even exponent as
    it is stored: biased by an odd number in each of the types."""
    as_of = t if values.bits(t) >= 16 else "f16" if "e5m2" in t else "f32"
    own = {"f64": 11, "f32": 8, "f16": 5, "bf16": 8}[as_of]
    info = ml_dtypes.finfo(values.numpy_type(as_of))
    x = wide(x)
    finite = np.where(np.isfinite(x) & (x != 0), x, 1)
    _, at = np.frexp(finite)
    at = np.maximum(at - 1, info.minexp)
    last = at - min(m, info.nmant)
    r = np.rint(np.ldexp(finite, -last))
    if m == 0:
        r -= np.where((np.abs(np.ldexp(finite, -last)) == 1.5) & (at % 2 == 1),
                      np.copysign(1, finite), 0)
    r = np.ldexp(r, last)
    bias = 2 ** (e - 1) - 1 if e < own else 10000   # its own range: as it is
    _, at = np.frexp(np.where(r == 0, 1, r))
    r = np.where(at - 1 > bias, np.copysign(np.inf, r),
                 np.where((at - 1 < 1 - bias) | (r == 0), np.copysign(0, r), r))
    return rounded(t, np.where(np.isfinite(x) & (x != 0), r, x))


def stochastic_convert(c, t, s):
    """To narrower floats: away from zero when the random bits, as a fraction of
    1, are less than the part of the way that the value is on."""
    x = c.param(values.finite_values, t, s)
    r = c.param(values.any_values, f"u{max(values.bits(t), 8)}", s)
    types = [to for to in values.of_kinds("float")
             if values.bits(to) < values.bits(t) and to != "f8e8m0fnu"]
    for to in types:
        c.give("stochastic-convert", (to, s), x, r)
    return lambda x, r: [randomly(to, wide(x), r) for to in types]


def randomly(t, x, r):
    info = ml_dtypes.finfo(values.numpy_type(t))
    _, e = np.frexp(x)
    step = np.ldexp(np.longdouble(1), np.maximum(e - 1, info.minexp)
                    - info.nmant)
    low = np.trunc(x / step) * step
    way = np.floor(np.ldexp(np.abs(x - low) / step, r.itemsize * 8))
    away = (r.astype(np.longdouble) < way) & (np.abs(low) + step <= info.max)
    return rounded(t, np.copysign(np.where(away, np.abs(low) + step,
                                           np.minimum(np.abs(low), info.max)),
                                  x))
