"""The rows of random numbers, transforms, factorizations and norms."""
import numpy as np

import values
from programs import summed
from structured import ranked
from values import any_values, finite_values, kind, rounded, sparse_values, \
    wide


# ---- random numbers ----

def rng(c, t, s):
    """Any values, but between the bounds, or finite."""
    bounds = (1, 4) if kind(t) == "float" else (0, 5 if values.bits(t) > 2
                                                else 1)
    low, high = (c.param(lambda rng, v=v: np.array(v).astype(
        values.numpy_type(t)), t, ()) for v in bounds)
    x = c.do("rng", (t, s), low, high, more="distribution=rng_uniform")
    for bound, side in ((low, "GE"), (high, "LE")):
        b = c.do("broadcast", (t, s), bound, more="dimensions={}")
        c.give("compare", ("pred", s), x, b, more=f"direction={side}")
    if t in ("f32", "f64"):
        x = c.do("rng", (t, s), low, high, more="distribution=rng_normal")
        c.give("is-finite", ("pred", s), x)
    return lambda low, high: [np.ones(s, bool)] * len(c.results)


def rng_bit_generator(c, t, s):
    """No plain meaning: the algorithms' published words are tested in
    tests/unit/test_hlo.c, here JAX is asked."""
    state = c.param(any_values, "u64", (2,))
    for algorithm in ("rng_three_fry", "rng_philox"):
        words = c.param(any_values, "u64",
                        (3,)) if algorithm == "rng_philox" else state
        n = 3 if algorithm == "rng_philox" else 2
        c.give("rng-bit-generator", [("u64", (n,)), (t, s)], words,
               more=f"algorithm={algorithm}")
    return None


# ---- transforms and factorizations ----

def fft(c, t, s):
    s = ranked(s, 1)
    n = s[-1]
    x = c.param(finite_values, t, s)
    if kind(t) == "float":
        wide_t = "c64" if t == "f32" else "c128"
        to = s[:-1] + (n // 2 + 1 if n else 0,)
        c.give("fft", (wide_t, to), x, rule=summed(16),
               more=f"fft_type=RFFT, fft_length={{{n}}}")
        return lambda x: np.fft.rfft(wide(x)) if n else np.zeros(to)
    for which in ("FFT", "IFFT"):
        c.give("fft", (t, s), x, rule=summed(16),
               more=f"fft_type={which}, fft_length={{{n}}}")
    return lambda x: ([np.fft.fft(wide(x)), np.fft.ifft(wide(x))] if n
                      else [x, x])


def matrices(t, s, rng):
    """Of small whole numbers whose product with the transpose is exact."""
    s = square(t, s)
    n = s[-1]
    low = np.tril(rng.integers(-1, 2, s)) * 1.0
    i = np.arange(n)
    low[..., i, i] = 1
    if kind(t) == "cplx":
        low = low + 1j * np.tril(rng.integers(-1, 2, s), -1)
    return low


def square(t, s):
    """e8m0 has no zero to stand beside a diagonal."""
    n = 1 if t == "f8e8m0fnu" else min(s[-1], 5) if s else 2
    return tuple(s[:-2]) + (n, n)


def cholesky(c, t, s):
    """Of L L*: the part that is defined is L again."""
    def fill(rng):
        low = matrices(t, s, rng)
        return rounded(t, low @ np.conj(np.swapaxes(low, -1, -2)))
    m = square(t, s)
    a = c.param(fill, t, m)
    v = c.do("cholesky", (t, m), a, more="lower=true")
    mask = c.do("iota", ("s32", m), more=f"iota_dimension={len(m) - 1}")
    row = c.do("iota", ("s32", m), more=f"iota_dimension={len(m) - 2}")
    keep = c.do("compare", ("pred", m), row, mask, more="direction=GE")
    zero = c.param(lambda rng: np.zeros((), values.numpy_type(t)), t, ())
    zeros = c.do("broadcast", (t, m), zero, more="dimensions={}")
    c.give("select", (t, m), keep, v, zeros, rule=summed(4))
    return lambda a, zero: factor(t, wide(a))


def factor(t, a):
    n, out = a.shape[-1], np.zeros_like(a)
    for j in range(n):
        for i in range(j, n):
            rest = a[..., i, j] - np.sum(
                out[..., i, :j] * np.conj(out[..., j, :j]), -1)
            out[..., i, j] = np.sqrt(rest.real) if i == j else \
                rest / out[..., j, j]
    return rounded(t, out)


def triangular_solve(c, t, s):
    m = square(t, s)
    b = c.param(sparse_values, t, m)
    a = c.param(lambda rng: rounded(t, matrices(t, s, rng)), t, m)
    c.give("triangular-solve", (t, m), a, b, rule=summed(8),
           more="left_side=true, lower=true, unit_diagonal=false, "
           "transpose_a=NO_TRANSPOSE")

    def meaning(b, a):
        a, out = wide(a), wide(b).copy()
        for i in range(m[-1]):
            out[..., i, :] -= np.einsum("...k,...kj->...j", a[..., i, :i],
                                        out[..., :i, :])
            out[..., i, :] /= a[..., i, i][..., None]
        return rounded(t, out)
    return meaning


# ---- norms ----

def vectors(c, t, n, count):
    return [c.param(finite_values, t, (n,)) for _ in range(count)]


def positive(x):
    return np.abs(x) + 1


def batch_norm_inference(c, t, s):
    s = ranked(s, 1)
    x = c.param(finite_values, t, s)
    scale, offset, mean = vectors(c, t, s[-1], 3)
    var = c.param(lambda rng: rounded(t, positive(
        rng.uniform(0, 2, s[-1]))), t, (s[-1],))
    c.give("batch-norm-inference", (t, s), x, scale, offset, mean, var,
           rule=summed(16), more=f"epsilon=0.5, feature_index={len(s) - 1}")

    def meaning(x, scale, offset, mean, var):
        x, scale, offset, mean, var = map(wide, (x, scale, offset, mean, var))
        return rounded(t, scale * (x - mean) / np.sqrt(var + 0.5) + offset)
    return meaning


def batch_norm_training(c, t, s):
    s = ranked(s, 1)
    x = c.param(finite_values, t, s)
    scale, offset = vectors(c, t, s[-1], 2)
    one = (t, (s[-1],))
    c.give("batch-norm-training", [(t, s), one, one], x, scale, offset,
           rule=summed(32), more=f"epsilon=0.5, feature_index={len(s) - 1}")

    def meaning(x, scale, offset):
        x, scale, offset = map(wide, (x, scale, offset))
        over = tuple(range(len(s) - 1))
        mean, var = np.mean(x, over), np.var(x, over)
        return [rounded(t, y) for y in (
            scale * (x - mean) / np.sqrt(var + 0.5) + offset, mean, var)]
    return meaning


def batch_norm_grad(c, t, s):
    s = ranked(s, 1)
    x = c.param(finite_values, t, s)
    scale, mean = vectors(c, t, s[-1], 2)
    var = c.param(lambda rng: rounded(t, positive(
        rng.uniform(0, 2, s[-1]))), t, (s[-1],))
    g = c.param(finite_values, t, s)
    one = (t, (s[-1],))
    c.give("batch-norm-grad", [(t, s), one, one], x, scale, mean, var, g,
           rule=summed(64), more=f"epsilon=0.5, feature_index={len(s) - 1}")

    def meaning(x, scale, mean, var, g):
        x, scale, mean, var, g = map(wide, (x, scale, mean, var, g))
        over = tuple(range(len(s) - 1))
        n = int(np.prod(s[:-1], dtype=np.int64))
        r = 1 / np.sqrt(var + 0.5)
        d_scale = np.sum(g * (x - mean), over) * r
        d_offset = np.sum(g, over)
        d_x = scale * r / n * (n * g - d_offset - (x - mean) * r * d_scale)
        return [rounded(t, y) for y in (d_x, d_scale, d_offset)]
    return meaning
