"""The rows that move, sum, sort and contract, each with its meaning."""
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
