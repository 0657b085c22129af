"""Element types, what arrays of them hold, and arithmetic that rounds once.

Integers are computed in 64 bits and cut, floats in long double (64 bits of
fraction) and rounded here, by the type's own figures, to nearest even."""
import ml_dtypes
import numpy as np

import oracle

TYPES = list(oracle.NUMPY)
NOT_IN_JAX = ("f6e2m3fn", "f6e3m2fn")   # 0.10.2's: NumPy judges alone
WITHOUT_NAN = ("f4e2m1fn",) + NOT_IN_JAX
numpy_type = oracle.dtype


def kind(t):
    return {"p": "pred", "s": "sint", "u": "uint", "c": "cplx"}.get(t[0],
                                                                   "float")


def bits(t):
    return 1 if t == "pred" else int("".join(
        c for c in t.split("e")[0] if c.isdigit()))


def part(t):
    return {"c64": "f32", "c128": "f64"}.get(t, t)


def of_kinds(*kinds):
    return [t for t in TYPES if kind(t) in kinds]


# ---- rounding ----

def wide(x):
    """An array as 64-bit integers, long doubles, or complex ones."""
    k = kind(name_of(x.dtype))
    if k == "float":   # which ml_dtypes' types become by way of doubles
        x = x.astype(np.float64)
    return x.astype({"uint": np.uint64, "float": np.longdouble,
                     "cplx": np.clongdouble}.get(k, np.int64))


def name_of(dtype):
    return next(t for t in TYPES if numpy_type(t) == dtype)


def cut(t, x):
    """The low bits of integers, as t."""
    x = np.asarray(x)
    x = x.view(np.uint64) if x.dtype == np.int64 else x.astype(np.uint64)
    if t == "pred":
        return (x & np.uint64(1)).astype(bool)
    n = bits(t)
    if n < 64:
        x = x & np.uint64((1 << n) - 1)
    x = x.astype(np.int64)
    if kind(t) == "sint" and n < 64:
        x = np.where(x >> (n - 1) & 1, x - (1 << n), x)
    return x.astype(numpy_type(t))


def round_float(t, x):
    """Long doubles to t."""
    d = numpy_type(t)
    x = np.asarray(x, np.longdouble)
    with np.errstate(all="ignore"):
        if t == "f64":
            return x.astype(np.float64)
        info = ml_dtypes.finfo(d)
        if t == "f8e8m0fnu":   # ties go up, the least is 2^-127; no zero
            m, e = np.frexp(np.where(np.isfinite(x) & (x > 0), x, 1))
            e = np.maximum(e - (m < 0.75), -127)
            x = np.where(np.isfinite(x) & (x > 0) & (e < 128),
                         np.ldexp(np.longdouble(1), e), np.nan)
        else:
            _, e = np.frexp(np.where(np.isfinite(x), x, 1))
            last = np.maximum(e - 1, info.minexp) - info.nmant
            x = np.where(np.isfinite(x), np.ldexp(np.rint(
                np.ldexp(x, -last)), last), x)
        return x.astype(np.float64).astype(np.float32).astype(d)


def rounded(t, x):
    """What was computed wide, as t."""
    k, x = kind(t), np.asarray(x)
    if k == "cplx":
        r = np.empty(x.shape, numpy_type(t))
        r.real, r.imag = round_float(part(t), x.real), round_float(
            part(t), x.imag)
        return r
    return round_float(t, x) if k == "float" else cut(t, x)


# ---- what arrays hold ----

def special_floats(t):
    d = numpy_type(t)
    info = ml_dtypes.finfo(d)
    some = [0.0, -0.0, np.inf, -np.inf, np.nan, float(info.max),
            -float(info.max), float(info.smallest_normal), 1, -1, 0.5, -0.5,
            1.5, 2.5, -2.5, 3, -7, 0.49999997, 8388609.5, 1e30, -1e-30, 31.25]
    with np.errstate(all="ignore"):
        return np.array(some, np.float64).astype(d)


def special_ints(t):
    n = bits(t)
    some = [0, 1, -1, 2, 3, -(1 << n - 1), (1 << n - 1) - 1, (1 << n) - 1, 7,
            1 << n // 2, n, n + 1]
    return cut(t, np.array([v & (1 << 64) - 1 for v in some], np.uint64))


def random_bits(t, n, rng):
    d = numpy_type(t)
    raw = rng.integers(0, 256, n * d.itemsize, np.uint8)
    if bits(t) < 8:
        return (cut(t, raw.astype(np.int64)) if kind(t) != "float"
                else (raw & 15).view(d))
    return raw.view(d)


def no_subnormals(t, x):
    """JAX's CPU takes subnormal operands of f32 and f64 for zeros."""
    if t not in ("f32", "f64", "bf16"):
        return x
    tiny = ml_dtypes.finfo(x.dtype).smallest_normal
    with np.errstate(all="ignore"):
        return np.where(np.abs(x) < tiny, np.copysign(0, x).astype(x.dtype), x)


def any_values(t, n, rng):
    """A third special, a third any bits, a third of ordinary size."""
    if kind(t) == "cplx":
        r = np.empty(n, numpy_type(t))
        r.real, r.imag = (any_values(part(t), n, rng) for _ in range(2))
        return r
    if t == "pred":
        return rng.integers(0, 2, n).astype(bool)
    special = special_floats(t) if kind(t) == "float" else special_ints(t)
    third = rng.integers(0, 3, n)
    with np.errstate(all="ignore"):
        ordinary = rounded(t, rng.uniform(-16, 16, n) if kind(t) == "float"
                           else rng.integers(-9, 10, n))
        x = np.where(third == 0, special[rng.integers(0, len(special), n)],
                     np.where(third == 1, random_bits(t, n, rng), ordinary))
    return no_subnormals(t, x.astype(numpy_type(t)))


def finite_values(t, n, rng):
    """Of ordinary size."""
    if kind(t) == "cplx":
        return rounded(t, rng.uniform(-4, 4, n) + 1j * rng.uniform(-4, 4, n))
    if kind(t) == "float":
        x = rng.uniform(-4, 4, n)
        return rounded(t, np.abs(x) + 1 if t == "f8e8m0fnu" else x)
    return any_values(t, n, rng)


def sparse_values(t, n, rng):
    """Mostly zeros, so that sums are exact in any order: four ones at most in
    floats of few digits.  e8m0 has no zero."""
    if t == "f8e8m0fnu":
        return np.ones(n, numpy_type(t))
    if t == "pred":
        return rng.integers(0, 8, n) == 0
    x = rng.choice([0, 0, 0, 0, 0, 1, -1, 1], n)
    if kind(t) == "cplx":
        return rounded(t, x + 1j * rng.choice([0, 0, 0, 1, -1], n))
    if kind(t) == "float":
        if bits(t) <= 8:
            x[np.cumsum(x != 0) > 4] = 0
        x = x.astype(np.longdouble)
    return rounded(t, x)


def lowest(t):
    """What a maximum starts from."""
    d = numpy_type(t)
    if kind(t) == "float":
        with np.errstate(all="ignore"):
            low = np.array(-np.inf).astype(d)[()]
        info = ml_dtypes.finfo(d)
        return info.min if np.isnan(low) or t == "f4e2m1fn" else low
    return special_ints(t)[5 if kind(t) == "sint" else 0]


def index_values(t, n, rng):
    """Mostly places of small arrays, some before and past them."""
    lowest = 0 if t[0] == "u" else -2
    return cut(t, rng.integers(lowest, 6 if bits(t) > 2 else 2, n))


def fill(how, t, dims, rng):
    n = int(np.prod(dims, dtype=np.int64))
    return np.asarray(how(t, n, rng)).reshape(dims)
