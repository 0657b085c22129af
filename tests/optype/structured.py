"""The rows that move, sum, sort, factor and call, each with its meaning."""
import itertools
import math

import numpy as np

import values
from programs import EXACT, ZEROS, summed
from values import any_values, finite_values, index_values, kind, part, \
    rounded, sparse_values, wide


def ranked(s, least):
    return (1,) * (least - len(s)) + tuple(s)


def braces(x):
    return "{" + ",".join(map(str, x)) + "}"


def adds(t):
    """What sums: e8m0 has no zero, so its programs take the larger."""
    return "maximum" if t == "f8e8m0fnu" else "add"


def no_sum(t):
    return values.lowest(t) if t == "f8e8m0fnu" else \
        np.zeros((), values.numpy_type(t))[()]


def start_of(c, t):
    return c.param(lambda rng: np.array(no_sum(t)), t, ())


def total(t, x, axis=None):
    if t == "pred":
        return np.any(x, axis)
    if t == "f8e8m0fnu":
        lowest = wide(np.array(no_sum(t)))
        return rounded(t, np.max(wide(x), axis, initial=lowest))
    return rounded(t, np.sum(wide(x), axis))


# ---- leaves and movement ----

def parameter(c, t, s):
    x = c.param(any_values, t, s)
    c.results.append((x, (t, s), EXACT))
    return lambda x: x


def literal(t, x):
    """An array as HLO text."""
    if x.ndim:
        return "{" + ", ".join(literal(t, y) for y in x) + "}"
    if kind(t) == "cplx":
        return f"({literal(part(t), x.real)}, {literal(part(t), x.imag)})"
    return repr(float(x)) if kind(t) == "float" else str(int(x))


def constant(c, t, s):
    n = int(np.prod(s, dtype=np.int64))
    x = values.fill(any_values, t, s, np.random.default_rng(n + len(t)))
    c.lines.append(f"k = {c.shaped(t, s)} constant({literal(t, x)})")
    c.results.append(("k", (t, s), EXACT))
    return lambda: x


def iota(c, t, s):
    s = ranked(s, 1)
    for d in range(len(s)):
        c.give("iota", (t, s), more=f"iota_dimension={d}")

    def meaning():
        out = []
        for d in range(len(s)):
            ix = np.arange(s[d]).reshape([-1 if i == d else 1
                                          for i in range(len(s))])
            ix = np.broadcast_to(ix, s)
            out.append(rounded(t, ix.astype(np.clongdouble) if kind(t) == "cplx"
                               else ix.astype(np.longdouble)
                               if kind(t) == "float" else ix))
        return out
    return meaning


def broadcast(c, t, s):
    x = c.param(any_values, t, s)
    to = (2,) + s + (3,)
    c.give("broadcast", (t, to), x,
           more=f"dimensions={braces(range(1, len(s) + 1))}")
    return lambda x: np.broadcast_to(x[None, ..., None], to)


def reshape(c, t, s):
    n = int(np.prod(s, dtype=np.int64))
    x = c.param(any_values, t, s)
    c.give("reshape", (t, (1, n)), x)
    return lambda x: x.reshape(1, n)


def bitcast(c, t, s):
    """To one dimension; of a permuted array that is its elements as stored."""
    n = int(np.prod(s, dtype=np.int64))
    x = c.param(any_values, t, s)
    c.give("bitcast", (t, (n,)), x)
    return lambda x: (x.T if c.shape == "permuted" else x).reshape(n)


def transpose(c, t, s):
    x = c.param(any_values, t, s)
    p = list(range(len(s)))[::-1]
    c.give("transpose", (t, s[::-1]), x, more=f"dimensions={braces(p)}")
    return lambda x: x.T


def reverse(c, t, s):
    x = c.param(any_values, t, s)
    c.give("reverse", (t, s), x, more=f"dimensions={braces(range(len(s)))}")
    return lambda x: np.flip(x)


def slice_of(c, t, s):
    """Every other element, from the second on where there is one."""
    at = tuple(slice(min(1, n), n, 2) for n in s)
    to = np.empty(s)[at].shape
    x = c.param(any_values, t, s)
    text = ", ".join(f"[{a.start}:{a.stop}:{a.step}]" for a in at)
    c.give("slice", (t, to), x, more="slice={" + text + "}")
    return lambda x: x[at]


def pad(c, t, s):
    """In turn: more before than after; less than nothing; between, too."""
    s = ranked(s, 1)
    config = [((2, 1, 0), (-1, 3, 0), (1, 0, 2))[i % 3] if n > 1 else (1, 2, 0)
              for i, n in enumerate(s)]
    to = tuple(lo + hi + n + max(n - 1, 0) * mid
               for n, (lo, hi, mid) in zip(s, config))
    x, v = c.param(any_values, t, s), c.param(any_values, t, ())
    text = "x".join(f"{lo}_{hi}_{mid}" for lo, hi, mid in config)
    c.give("pad", (t, to), x, v, more=f"padding={text}")

    def meaning(x, v):
        out = np.full(to, v)
        for at in itertools.product(*map(range, s)):
            where = tuple(lo + i * (mid + 1)
                          for i, (lo, _, mid) in zip(at, config))
            if all(0 <= w < n for w, n in zip(where, to)):
                out[where] = x[at]
        return out
    return meaning


def concatenate(c, t, s):
    s = ranked(s, 1)
    other = s[:-1] + (3,)
    x, y = c.param(any_values, t, s), c.param(any_values, t, other)
    to = s[:-1] + (2 * s[-1] + 3,)
    c.give("concatenate", (t, to), x, y, x,
           more=f"dimensions={braces([len(s) - 1])}")
    return lambda x, y: np.concatenate([x, y, x], -1)


def copy(c, t, s):
    x = c.param(any_values, t, s)
    c.give("copy", (t, s), x)
    return lambda x: x


def clamped(at, s, size):
    return tuple(slice(b, b + k) for b, k in (
        (max(0, min(int(i), n - k)), k) for i, n, k in zip(at, s, size)))


INDEX_TYPES = ["s32", "s64", "u8", "s8", "u32", "s16", "u64", "u16"]


def dynamic_slice(c, t, s):
    s = ranked(s, 1)
    size = tuple((n + 1) // 2 for n in s)
    x = c.param(any_values, t, s)
    it = INDEX_TYPES[len(c.name) % 8]
    at = [c.param(index_values, it, ()) for _ in s]
    c.give("dynamic-slice", (t, size), x, *at,
           more=f"dynamic_slice_sizes={braces(size)}")
    return lambda x, *at: x[clamped(at, s, size)]


def dynamic_update_slice(c, t, s):
    size = tuple((n + 1) // 2 for n in s)
    x, u = c.param(any_values, t, s), c.param(any_values, t, size)
    it = INDEX_TYPES[len(c.name) % 8]
    at = [c.param(index_values, it, ()) for _ in s]
    c.give("dynamic-update-slice", (t, s), x, u, *at)

    def meaning(x, u, *at):
        x = x.copy()
        x[clamped(at, s, size)] = u
        return x
    return meaning


def gather(c, t, s):
    """Rows, by indices that are clamped."""
    s = ranked(s, 1)
    rest = s[1:]
    it = INDEX_TYPES[len(c.name) % 8]
    x, ix = c.param(any_values, t, s), c.param(index_values, it, (4,))
    c.give("gather", (t, (4,) + rest), x, ix,
           more=f"offset_dims={braces(range(1, len(s)))}, "
           "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
           f"slice_sizes={braces((1,) + rest)}")
    return lambda x, ix: x[[max(0, min(int(i), s[0] - 1)) for i in ix]]


def scatter(c, t, s):
    """Rows added, those out of bounds left out."""
    s = ranked(s, 1)
    rest = s[1:]
    it = INDEX_TYPES[len(c.name) % 8]
    x, ix, u = (c.param(sparse_values, t, s), c.param(index_values, it, (4,)),
                c.param(sparse_values, t, (4,) + rest))
    c.give("scatter", (t, s), x, ix, u,
           more=f"update_window_dims={braces(range(1, len(s)))}, "
           "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
           "index_vector_dim=1, to_apply=" + c.binary_region(adds(t), t))

    def meaning(x, ix, u):
        x = x.copy()
        for i, row in zip(ix, u):
            if 0 <= int(i) < s[0]:
                x[int(i)] = total(t, np.stack([x[int(i)], row]), 0)
        return x
    return meaning


# ---- reductions and windows ----

def reduce(c, t, s):
    """A sum over the last dimension, a maximum over all; what they start from
    changes nothing, as XLA takes for granted."""
    x, y, b = (c.param(sparse_values, t, s), c.param(any_values, t, s),
               start_of(c, t))
    low = c.param(lambda rng: np.array(values.lowest(t)), t, ())
    last = [len(s) - 1] if s else []
    c.give("reduce", (t, s[:-1]), x, b, more=f"dimensions={braces(last)}, "
           "to_apply=" + c.binary_region(adds(t), t))
    if kind(t) != "cplx":
        c.give("reduce", (t, ()), y, low, rule=ZEROS,
               more=f"dimensions={braces(range(len(s)))}, to_apply="
               + c.binary_region("maximum", t))

    def meaning(x, y, b, low):
        out = [total(t, x, -1) if s else x]
        if kind(t) != "cplx":
            out.append(rounded(t, np.max(wide(y), initial=wide(low)[()])))
        return out
    return meaning


def windows(x, size, step, low, high, fill):
    """Of every window its elements, on a last axis."""
    x = np.pad(x, list(zip(low, high)), constant_values=fill)
    ends = [n - k + 1 for n, k in zip(x.shape, size)]
    return np.stack([x[tuple(slice(i, i + n, st) for i, n, st in
                             zip(at, ends, step))]
                     for at in itertools.product(*map(range, size))], -1)


def window_of(s):
    size = [min(n, 2) or 1 for n in s]
    step = [2 if i % 2 else 1 for i in range(len(s))]
    low, high = [n - 1 for n in size], [1] * len(s)
    text = "x".join(f"{lo}_{hi}" for lo, hi in zip(low, high))
    return size, step, low, high, (
        f"window={{size={'x'.join(map(str, size))} "
        f"stride={'x'.join(map(str, step))} pad={text}}}, ")


def reduce_window(c, t, s):
    s = ranked(s, 1)
    size, step, low, high, text = window_of(s)
    x, b = c.param(sparse_values, t, s), start_of(c, t)
    to = tuple((n + lo + hi - k) // st + 1 for n, k, st, lo, hi in
               zip(s, size, step, low, high))
    c.give("reduce-window", (t, to), x, b,
           more=text + "to_apply=" + c.binary_region(adds(t), t))

    def meaning(x, b):
        return total(t, windows(x, size, step, low, high, b), -1)
    return meaning


def select_and_scatter(c, t, s):
    """The sources go where their window's first largest element is."""
    s = ranked(s, 1)
    size, step, low, high, text = window_of(s)
    to = tuple((n + lo + hi - k) // st + 1 for n, k, st, lo, hi in
               zip(s, size, step, low, high))
    x, u, b = (c.param(finite_values, t, s), c.param(sparse_values, t, to),
               start_of(c, t))
    ge = c.region(["ROOT r = pred[] compare(p0, p1), direction=GE"],
                  (t, ()), (t, ()))
    c.give("select-and-scatter", (t, s), x, u, b, more=text + f"select={ge}, "
           "scatter=" + c.binary_region(adds(t), t))

    def meaning(x, u, b):
        out, w = np.full(s, b), wide(x)
        for at in itertools.product(*map(range, to)):
            best = None
            for k in itertools.product(*map(range, size)):
                p = tuple(i * st + j - lo for i, st, j, lo in
                          zip(at, step, k, low))
                if all(0 <= q < n for q, n in zip(p, s)) and (
                        best is None or not w[best] >= w[p]):
                    best = p
            if best is not None:
                out[best] = total(t, np.stack([out[best], u[at]]), 0)
        return out
    return meaning


def scan(c, t, s):
    """Running sums from either end, with and without the element itself."""
    s = ranked(s, 1)
    x, b = c.param(sparse_values, t, s), start_of(c, t)
    last = len(s) - 1
    for more in ("", ", reverse=true", ", exclusive=true"):
        c.give("scan", (t, s), x, b, more=f"dimensions={braces([last])}"
               + more + ", to_apply=" + c.binary_region(adds(t), t))

    def running(x, b):
        steps = [total(t, x[..., :k], -1) for k in range(s[-1] + 1)]
        return np.stack(steps, -1) if s[-1] else None

    def meaning(x, b):
        if x.size == 0:
            return [x, x, x]
        back = np.flip(running(np.flip(x, -1), b), -1)
        ahead = running(x, b)
        return [ahead[..., 1:], back[..., :-1], ahead[..., :-1]]
    return meaning


def map_of(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    f = c.region(["s = pred[] compare(p0, p1), direction=NE",
                  f"ROOT r = {t}[] select(s, p1, p0)"], (t, ()), (t, ()))
    c.give("map", (t, s), x, y, more=f"dimensions={braces(range(len(s)))}, "
           f"to_apply={f}")
    return lambda x, y: np.where(wide(x) != wide(y), y, x)


def sort(c, t, s):
    """A stable sort of the last dimension, places along with the keys; complex
    numbers by their real part."""
    s = ranked(s, 1)
    x = c.param(finite_values if kind(t) == "cplx" else any_values, t, s)
    last = len(s) - 1
    ix = c.do("iota", ("s32", s), more=f"iota_dimension={last}")
    body = ["ROOT r = pred[] compare(p0, p1), direction=LT"]
    if kind(t) == "float":
        body[0] += ", type=TOTALORDER"
    if kind(t) == "cplx":
        body = [f"x = {part(t)}[] real(p0)", f"y = {part(t)}[] real(p1)",
                "ROOT r = pred[] compare(x, y), direction=LT"]
    less = c.region(body, (t, ()), (t, ()), ("s32", ()), ("s32", ()))
    c.give("sort", [(t, s), ("s32", s)], x, ix, more=f"dimensions={{{last}}}, "
           f"is_stable=true, to_apply={less}")

    def meaning(x):
        from elementwise import order_key
        key = order_key(t, x) if kind(t) == "float" else wide(x).real
        order = np.argsort(key, -1, kind="stable")
        return [np.take_along_axis(x, order, -1), order]
    return meaning


def topk(c, t, s):
    s = ranked(s, 1)
    k = min(s[-1], 3)
    x = c.param(finite_values, t, s)
    to = s[:-1] + (k,)
    c.give("topk", [(t, to), ("s32", to)], x, more=f"k={k}, largest=true")

    def meaning(x):
        order = np.argsort(-wide(x).astype(np.longdouble), -1, kind="stable")
        order = order[..., :k]
        return [np.take_along_axis(x, order, -1), order]
    return meaning


# ---- contractions ----

def product_sum(t, a, b, spec):
    """Of wide arrays."""
    if kind(t) == "cplx":
        re = np.einsum(spec, a.real, b.real) - np.einsum(spec, a.imag, b.imag)
        im = np.einsum(spec, a.real, b.imag) + np.einsum(spec, a.imag, b.real)
        return rounded(t, re + 1j * im)
    out = np.einsum(spec, a, b)
    return out > 0 if t == "pred" else rounded(t, out)


def dot(c, t, s):
    """Rows by a matrix; with a batch dimension when there are three."""
    if len(s) == 3:
        other = (s[0], s[2], 3)
        more = ("lhs_batch_dims={0}, lhs_contracting_dims={2}, "
                "rhs_batch_dims={0}, rhs_contracting_dims={1}")
        to, spec = (s[0], s[1], 3), "bij,bjk->bik"
    elif s:
        other = (s[-1], 3)
        more = (f"lhs_contracting_dims={{{len(s) - 1}}}, "
                "rhs_contracting_dims={0}")
        letters = "abcdefgh"[:len(s)]
        to = s[:-1] + (3,)
        spec = f"{letters},{letters[-1]}z->{letters[:-1]}z"
    else:
        other, to, spec = (), (), ",->"
        more = "lhs_contracting_dims={}, rhs_contracting_dims={}"
    x, y = c.param(sparse_values, t, s), c.param(sparse_values, t, other)
    c.give("dot", (t, to), x, y, more=more, rule=ZEROS)
    return lambda x, y: product_sum(t, wide(x), wide(y), spec)


def convolution(c, t, s):
    """A batch of features along the other dimensions: b, 0, 1, ..., f."""
    s = ranked(s, 3)
    n, f = len(s) - 2, s[-1]
    size = [min(2, d) or 1 for d in s[1:-1]]
    x = c.param(sparse_values, t, s)
    k = c.param(sparse_values, t, tuple(size) + (f, 2))
    d = "".join(map(str, range(n)))
    to = (s[0],) + tuple(m + 1 + 1 - w for m, w in zip(s[1:-1], size)) + (2,)
    c.give("convolution", (t, to), x, k, rule=ZEROS,
           more=f"window={{size={'x'.join(map(str, size))} "
           f"pad={'x'.join(['1_0'] * n)}}}, dim_labels=b{d}f_{d}io->b{d}f")

    def meaning(x, k):
        k = wide(k)
        w = windows(wide(x), [1, *size, 1], [1] * (n + 2), [0] + [1] * n + [0],
                    [0] * (n + 2), 0)
        a = "stuvwx"[:n]
        return product_sum(t, w, k.reshape((math.prod(size),) + k.shape[n:]),
                           f"y{a}fg,gfo->y{a}o")
    return meaning


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
    c.give("triangular-solve", (t, m), a, b, rule=summed(8), more="left_side=true"
           ", lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE")

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


# ---- tuples, calls and control ----

def tuple_of(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    c.give("tuple", [(t, s), (t, s)], y, x)
    return lambda x, y: [y, x]


def get_tuple_element(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    pair = c.do("tuple", [(t, s), (t, s)], x, y)
    c.give("get-tuple-element", (t, s), pair, more="index=1")
    return lambda x, y: y


def opt_barrier(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    pair = c.do("tuple", [(t, s), (t, s)], x, y)
    c.give("opt-barrier", [(t, s), (t, s)], pair)
    return lambda x, y: [x, y]


def called(c, t, s):
    return c.region([f"ROOT r = {c.shaped(t, s)} reshape(p1)"], (t, s), (t, s))


def call(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    c.give("call", (t, s), x, y, more=f"to_apply={called(c, t, s)}")
    return lambda x, y: y


def fusion(c, t, s):
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    c.give("fusion", (t, s), x, y, more=f"kind=kLoop, calls={called(c, t, s)}")
    return lambda x, y: y


def while_of(c, t, s):
    """Three times: the two change places."""
    state = [("s32", ()), (t, s), (t, s)]
    text = c.shape_text(state)
    take = [f"i = s32[] get-tuple-element(p), index=0",
            f"x = {c.shaped(t, s)} get-tuple-element(p), index=1",
            f"y = {c.shaped(t, s)} get-tuple-element(p), index=2"]
    cond = c.region([f"p = {text} parameter(0)", take[0],
                     "n = s32[] constant(3)",
                     "ROOT r = pred[] compare(i, n), direction=LT"])
    body = c.region([f"p = {text} parameter(0)", *take,
                     "one = s32[] constant(1)", "j = s32[] add(i, one)",
                     f"ROOT r = {text} tuple(j, y, x)"])
    i = c.param(index_values, "s32", ())
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    start = c.do("tuple", state, i, x, y)
    c.give("while", state, start, more=f"condition={cond}, body={body}")

    def meaning(i, x, y):
        while i < 3:
            i, x, y = i + 1, y, x
        return [i, x, y]
    return meaning


def conditional(c, t, s):
    """The last branch is taken for an index out of range."""
    i, p = c.param(index_values, "s32", ()), c.param(any_values, "pred", ())
    x, y = c.param(any_values, t, s), c.param(any_values, t, s)
    f = c.region([f"ROOT r = {c.shaped(t, s)} reshape(p0)"], (t, s))
    c.give("conditional", (t, s), i, x, y, x,
           more=f"branch_computations={{{f}, {f}, {f}}}")
    c.give("conditional", (t, s), p, x, y,
           more=f"true_computation={f}, false_computation={f}")
    return lambda i, p, x, y: [y if i == 1 else x, x if p else y]


def custom_call(c, t, s):
    """One that any platform takes: it gives its operand."""
    x = c.param(any_values, t, s)
    c.give("custom-call", (t, s), x, more='custom_call_target="Sharding", '
           "sharding={replicated}")
    return lambda x: x


# ---- dimensions and devices ----

def get_dimension_size(c, t, s):
    s = ranked(s, 1)
    x = c.param(any_values, t, s)
    for d in range(len(s)):
        c.give("get-dimension-size", ("s32", ()), x, more=f"dimensions={{{d}}}")
    return lambda x: list(s)


def set_dimension_size(c, t, s):
    """To all that there is."""
    s = ranked(s, 1)
    x = c.param(any_values, t, s)
    c.lines.append(f"n = s32[] constant({s[-1]})")
    c.give("set-dimension-size", (t, s), x, "n",
           more=f"dimensions={{{len(s) - 1}}}")
    return lambda x: x


def own_number(c, t, s):
    c.give(c.op, ("u32", ()))
    return lambda: np.uint32(0)


def collective(c, t, s):
    """Among one device."""
    s = ranked(s, 1)
    x = c.param(sparse_values, t, s)
    more = {"collective-permute": "source_target_pairs={{0,0}}"}.get(
        c.op, "replica_groups={{0}}")
    if c.op in ("all-gather", "all-to-all", "reduce-scatter"):
        more += ", dimensions={0}"
    if c.op in ("all-reduce", "reduce-scatter"):
        more += ", to_apply=" + c.binary_region(adds(t), t)
    c.give(c.op, (t, s), x, more=more)
    return lambda x: x
