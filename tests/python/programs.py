"""The skeleton programs: plain JAX functions with makers of their arguments.

Each entry of PROGRAMS is a Program: a function, and cases (label -> arguments)
over shapes (odd, size 1, size 0, one large) and element types.  Arguments are
made from a random state seeded by the program's name and the label, so every
platform and process sees the same ones.  `cases(x64)` gives the f32 set, or the
same programs again in f64.
"""
import dataclasses
import zlib
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclasses.dataclass
class Program:
    name: str
    fn: Callable
    make: Callable            # make(rng, *spec) -> tuple of numpy arguments
    specs: dict               # label -> spec
    static: tuple = ()        # static argument numbers of fn
    donate: tuple = ()
    eager: bool = False
    # Multiple of the type's tolerance: what a long sum or a gradient needs,
    # one number or a function of the case's spec.
    tol: float | Callable = 1.0
    tol64: float | None = None  # the multiple under x64, where it differs

    def tolerance(self, label, x64=False):
        if x64 and self.tol64:
            return self.tol64
        return self.tol(*self.specs[label]) if callable(self.tol) else self.tol

    def args(self, label, x64=False):
        seed = zlib.crc32(f"{self.name}:{label}".encode())
        args = self.make(np.random.RandomState(seed), *self.specs[label])
        if not x64:
            return args
        return tuple(a if i in self.static else widen(a)
                     for i, a in enumerate(args))


PROGRAMS = {}


def widen(a):
    a = np.asarray(a)
    if a.dtype == np.float32:
        return a.astype(np.float64)
    if a.dtype == np.complex64:
        return a.astype(np.complex128)
    return a


def add(name, fn, make, specs, **kw):
    assert name not in PROGRAMS
    PROGRAMS[name] = Program(name, fn, make, specs, **kw)


def normal(rng, shape, dtype=np.float32):
    x = rng.standard_normal(shape)
    if np.issubdtype(np.dtype(dtype), np.integer):
        return rng.randint(-100, 100, size=shape).astype(dtype)
    return x.astype(dtype)


BF16 = jnp.bfloat16
F16 = np.float16


def shapes(*list_, dtypes=(np.float32,)):
    return {f"{'x'.join(map(str, s)) or 'scalar'}-{np.dtype(d).name}": (s, d)
            for s in list_ for d in dtypes}


def one(rng, shape, dtype):
    return (normal(rng, shape, dtype),)


def two(rng, shape, dtype):
    return normal(rng, shape, dtype), normal(rng, shape, dtype)


def roundings(shape, dtype):
    """A bf16 chain rounds once or once a step (excess precision is XLA's
    default too): results are two units in the last place apart."""
    return 2 if dtype == BF16 else 1


SMALL = ((), (1,), (0,), (7,), (3, 5), (1024,))
LARGE = (1000003,)

# 1, 2: elementwise, jitted and eager
add("abs_sqrt", lambda x: jnp.abs(jnp.sqrt(x)), one, shapes(*SMALL, LARGE))
add("eager_square", lambda x: x**2, one,
    shapes(*SMALL, LARGE, dtypes=(np.float32, np.int32, BF16)), eager=True)

# 3: a chain
# Left of -4, gelu's 1 + tanh has lost all digits but the last, and an ulp of
# tanh times |x * b| / 2 is in the result.  From the true value JAX's CPU is up
# to 2.8e-6 away in f32 and 1.0e-14 in f64, we 3.4e-6 and 5.4e-15.
add("gelu_chain", lambda a, b: jax.nn.gelu(a * 1.5 + b) * b - jnp.tanh(a), two,
    shapes(*SMALL, LARGE, (33, 65), dtypes=(np.float32, BF16)),
    tol=lambda shape, dtype: 2 if dtype == BF16 else 4, tol64=10)


# 4, 5: softmax
ROWS = ((1, 1), (3, 7), (5, 64), (7, 1000), (0, 4), (4, 5, 33), (64, 4097))
add("softmax_last", lambda x: jax.nn.softmax(x, axis=-1), one,
    shapes(*ROWS, dtypes=(np.float32, BF16)))


def masked_softmax(x, mask):
    return jax.nn.softmax(jnp.where(mask, x * 0.125, -1e9), axis=0)


def with_mask(rng, shape, dtype):
    mask = rng.rand(*shape) < 0.7
    return normal(rng, shape, dtype), mask


add("softmax_masked_axis0", masked_softmax, with_mask,
    shapes((1, 1), (7, 3), (1000, 7), (33, 65), (4, 0), (513, 1023)))


# 6, 7: layer norm and its gradient
def layer_norm(x, scale, shift):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    var = jnp.var(x, axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + shift


def norm_args(rng, shape, dtype):
    n = shape[-1:]
    return (normal(rng, shape, dtype), normal(rng, n, dtype),
            normal(rng, n, dtype))


NORM = ((1, 2), (3, 7), (5, 64), (7, 1000), (0, 4), (4, 5, 33), (512, 768))
# The shift may cancel the scaled value: an ulp of 8 is 1.8e-15.
add("layer_norm", layer_norm, norm_args, shapes(*NORM), tol64=4)


def layer_norm_grad(x, scale, shift, dy):
    return jax.vjp(layer_norm, x, scale, shift)[1](dy)


add("layer_norm_grad", layer_norm_grad,
    lambda rng, shape, dtype: norm_args(rng, shape, dtype)
    + (normal(rng, shape, dtype),),
    shapes((3, 7), (5, 64), (7, 1000), (4, 5, 33), (512, 768)), tol=30)


# 8: RMS norm times a gate
def rms_gate(x, scale, gate):
    ms = jnp.mean(x * x, axis=-1, keepdims=True)
    return x * lax.rsqrt(ms + 1e-6) * scale * jax.nn.silu(gate)


add("rms_norm_gate", rms_gate,
    lambda rng, shape, dtype: (normal(rng, shape, dtype),
                               normal(rng, shape[-1:], dtype),
                               normal(rng, shape, dtype)),
    shapes((3, 7), (5, 64), (4, 5, 33), (512, 768),
           dtypes=(np.float32, BF16)), tol=roundings)


# 9: reductions over each axis and all axes
def reductions(x):
    out = []
    for axis in (0, 1, 2, None):
        out += [jnp.sum(x, axis=axis), jnp.max(x, axis=axis),
                jnp.argmax(x, axis=axis)]
    return out


add("reductions", reductions, one,
    shapes((1, 1, 1), (3, 5, 7), (8, 16, 64), (5, 130, 67), (33, 65, 129),
           dtypes=(np.float32, BF16, np.int32)), tol=10)
add("sum_empty", lambda x: (jnp.sum(x, 0), jnp.sum(x, 1), jnp.sum(x)), one,
    shapes((0, 4), (4, 0)))


# 10: data movement in one function
def movement(x, y):
    t = jnp.transpose(x, (2, 0, 1))
    r = lax.rev(t, (0, 2))
    p = lax.pad(r, jnp.zeros((), r.dtype), ((-1, 2, 0), (1, -1, 1), (0, 0, 0)))
    c = jnp.concatenate([p, p, jnp.full((p.shape[0], 1, p.shape[2]), 2,
                                        p.dtype)], axis=1)
    return c[::2, 1::3, :], jnp.reshape(y, (-1,))[::-1]


add("movement", movement,
    lambda rng, shape, dtype: (normal(rng, shape, dtype),
                               normal(rng, shape, dtype)),
    shapes((2, 3, 4), (5, 7, 9), (1, 2, 3), (33, 65, 40),
           dtypes=(np.float32, BF16, np.int8)))


# 11: matmul + bias + relu
def matmul(a, b, bias):
    return jax.nn.relu(jnp.matmul(a, b) + bias)


def int_matmul(a, b, bias):
    acc = jnp.matmul(a, b, preferred_element_type=jnp.int32)
    return jax.nn.relu(acc + bias)


def mm_args(rng, dims, dtype):
    *batch, m, k, n = dims
    bias = np.int32 if np.dtype(dtype) == np.int8 else dtype
    return (normal(rng, (*batch, m, k), dtype),
            normal(rng, (*batch, k, n), dtype), normal(rng, (n,), bias))


MM = ((33, 65, 129), (512, 512, 512), (1, 1, 1), (3, 17, 9, 31), (4, 0, 5),
      (0, 3, 5))
add("matmul", matmul, mm_args, shapes(*MM, dtypes=(np.float32, BF16)),
    tol=lambda dims, dtype: max(8, dims[-2] / 16))
add("matmul_s8", int_matmul, mm_args, shapes(*MM, dtypes=(np.int8,)))


# 12: convolution and both gradients
def conv_bias(x, w, b, strides, groups, layout):
    y = lax.conv_general_dilated(
        x, w, strides, "SAME", feature_group_count=groups,
        dimension_numbers=(layout, "OIHW" if layout == "NCHW" else "HWIO",
                           layout))
    return y + (b[:, None, None] if layout == "NCHW" else b)


def conv(*args):
    return jax.nn.relu(conv_bias(*args))


def conv_grads(x, w, b, dy, strides, groups, layout):
    return jax.vjp(lambda x, w: conv(x, w, b, strides, groups, layout),
                   x, w)[1](dy)


def conv_args(rng, n, c, h, w, o, k, strides, groups, layout):
    x = normal(rng, (n, c, h, w) if layout == "NCHW" else (n, h, w, c))
    ker = normal(rng, (o, c // groups, k, k) if layout == "NCHW"
                 else (k, k, c // groups, o))
    return x, ker, normal(rng, (o,)), strides, groups, layout


def conv_grad_args(rng, *spec):
    """Where the sum is so near 0 that rounding decides whether relu lets the
    gradient through, there is none."""
    args = conv_args(rng, *spec)
    x, w, b, strides, groups, layout = args
    with jax.default_device(jax.devices("cpu")[0]):
        y = np.asarray(conv_bias(*args))
    dy = normal(rng, y.shape)
    dy[np.abs(y) < 1e-3] = 0
    return x, w, b, dy, strides, groups, layout


CONV = {f"{l}-{k}": (*v, l) for l in ("NCHW", "NHWC") for k, v in {
    "3x3": (2, 8, 9, 9, 16, 3, (1, 1), 1),
    "odd": (1, 3, 11, 7, 5, 3, (1, 1), 1),
    "strided": (2, 8, 15, 15, 8, 3, (2, 2), 1),
    "grouped": (2, 12, 9, 9, 8, 3, (1, 1), 4),
    "depthwise": (1, 6, 8, 8, 6, 3, (1, 1), 6),
    "1x1": (2, 16, 7, 7, 24, 1, (1, 1), 1),
    "large": (2, 32, 28, 28, 64, 3, (1, 1), 1)}.items()}
add("conv", conv, conv_args, CONV, static=(3, 4, 5),
    tol=lambda n, c, h, w, o, k, *_: max(10, c * k * k / 8))
# A weight's gradient is a sum over all pictures: of "large" JAX's CPU is up to
# 1.4e-4 from the true one, Sundog without a library 3.5e-5.
add("conv_grad", conv_grads, conv_grad_args, CONV, static=(4, 5, 6),
    tol=lambda n, c, h, w, *_: max(50, n * h * w / 8))

# 13, 14: gather, scatter
add("embedding", lambda table, ids: jnp.take(table, ids, axis=0),
    lambda rng, rows, dim, n, dtype: (normal(rng, (rows, dim), dtype),
                                      rng.randint(-rows, rows + 3, size=(n,))
                                      .astype(np.int32)),
    {"small": (5, 3, 7, np.float32), "bf16": (50, 16, 33, BF16),
     "none": (5, 3, 0, np.float32), "large": (1000, 768, 500, np.float32)})
add("scatter_add", lambda table, ids, rows: table.at[ids].add(rows),
    lambda rng, rows, dim, n, dtype: (
        normal(rng, (rows, dim), dtype),
        rng.randint(-1, rows + 2, size=(n,)).astype(np.int32),
        normal(rng, (n, dim), dtype)),
    {"small": (5, 3, 17, np.float32), "wide": (4, 129, 33, np.float32),
     "none": (5, 3, 0, np.float32), "int": (5, 3, 17, np.int32),
     "large": (1000, 256, 3000, np.float32)}, tol=10)


# 15: sort of two operands by key, argsort, top_k
def sorts(key, value):
    k, v = lax.sort((key, value), num_keys=1)
    return k, v, jnp.argsort(key), lax.top_k(key, max(1, key.shape[-1] // 3))


add("sort", sorts,
    lambda rng, shape, dtype: (
        rng.randint(-9, 9, size=shape).astype(dtype) if np.dtype(dtype).kind
        == "i" else np.where(rng.rand(*shape) < 0.1, np.nan,
                             normal(rng, shape)).astype(dtype),
        rng.randint(0, 1000, size=shape).astype(np.int32)),
    shapes((1,), (7,), (1000,), (5, 33), (3, 4, 65), (9001,), (2, 2500),
           dtypes=(np.float32, np.int32)))


# 16: cumsum and cumlogsumexp, forward and backward
def cumulative(x, dy):
    f = lambda x: (lax.cumsum(x, axis=x.ndim - 1),
                   lax.cumlogsumexp(x, axis=0, reverse=True))
    y, vjp = jax.vjp(f, x)
    return y, vjp((dy, dy))


add("cumulative", cumulative, two,
    shapes((1,), (7,), (130,), (5, 33), (33, 5)), tol=30)


# 16a: along long lines, which are scanned in pieces
def cumulative_long(x):
    n = x.ndim - 1
    y = abs(x)  # of both signs, sums near 0 have few digits
    return (lax.cumsum(y, axis=0), lax.cumsum(y, axis=n, reverse=True),
            lax.cummax(x, axis=0, reverse=True), lax.cummin(x * 2, axis=n),
            lax.cumprod(1 + x / 4096, axis=0),
            jnp.cumsum(x > 0, axis=0, dtype=jnp.int8))


add("cumulative_long", cumulative_long,
    lambda rng, shape: (normal(rng, shape),),
    {str(s): (s,) for s in ((4096,), (70001,), (5, 4099), (9000, 3), (65, 1101), (300, 96))}, tol=30)


# 16b: associative scans along short rows, which are one kernel, and long ones
def scanned(x, y):
    def affine(a, b):
        return a[0] * b[0], a[1] * b[0] + b[1]
    axis = x.ndim - 1
    return (lax.associative_scan(jnp.add, x, axis=axis),
            lax.associative_scan(affine, (x, y), axis=axis, reverse=True),
            lax.associative_scan(jnp.maximum, x * 2, axis=axis))


add("scanned", scanned, two,
    shapes((64, 3), (65, 7), (4, 25, 33), (70, 64), (7, 100, 1), (66, 100)),
    tol=30)


# 16c: thousands of small products and sums, which are no loops
def small_products(x, y):
    z = jnp.einsum("...ij,...kj->...ik", x, y)
    return x @ y, z.sum(-2), z.max(-1), (x @ y[0]).swapaxes(-1, -2) * 2


add("small_products", small_products, two,
    shapes((64, 2, 2), (65, 3, 3), (4, 25, 4, 4), (70, 5, 5), (100, 7, 7)),
    tol=30)


# 16d: Fourier transforms: chirps, one line and several, long lines as columns
def transforms(x):
    z = x + 1j * jnp.flip(x, -1)
    half = jnp.fft.rfft(x, norm="ortho")
    return (jnp.fft.fft(z, norm="ortho"), jnp.fft.ifft(z, axis=0, norm="ortho"),
            half, jnp.fft.irfft(half, n=x.shape[-1], norm="ortho"))


add("transforms", transforms, one,
    shapes((1, 1), (5, 1009), (1, 1009), (3, 1000), (33, 64), (2, 4096),
           (96, 7)), tol=10)


# 17: max-pool and its gradient
def max_pool(x, dy):
    f = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1),
                                    (1, 2, 2, 1), "SAME")
    y, vjp = jax.vjp(f, x)
    return y, vjp(dy)


def pool_args(rng, n, h, w, c):
    return (normal(rng, (n, h, w, c)),
            normal(rng, (n, -(-h // 2), -(-w // 2), c)))


add("max_pool", max_pool, pool_args,
    {"small": (1, 4, 4, 1), "odd": (2, 9, 7, 3), "large": (4, 56, 56, 32)})


# 18: a while loop that updates one row a step
def row_loop(x, n):
    def step(c):
        i, x = c
        row = lax.dynamic_slice_in_dim(x, i, 1, 0)
        return i + 1, lax.dynamic_update_slice_in_dim(
            x, row * 2 + i.astype(x.dtype), i, 0)
    return lax.while_loop(lambda c: c[0] < n, step, (jnp.int32(0), x))[1]


add("row_loop", row_loop,
    lambda rng, shape: (normal(rng, shape), np.int32(shape[0])),
    {"1x1": ((1, 1),), "7x5": ((7, 5),), "300x1000": ((300, 1000),)})


# 19: LSTM
def lstm(params, xs, h0):
    w, u, b = params

    def cell(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ w + h @ u + b, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    return lax.scan(cell, (h0, jnp.zeros_like(h0)), xs)


add("lstm", lambda w, u, b, xs, h0: lstm((w, u, b), xs, h0),
    lambda rng, t, n, d, h: (normal(rng, (d, 4 * h)) / 8,
                             normal(rng, (h, 4 * h)) / 8,
                             normal(rng, (4 * h,)), normal(rng, (t, n, d)),
                             normal(rng, (n, h))),
    {"small": (3, 2, 5, 4), "odd": (9, 3, 17, 33), "large": (40, 16, 64, 64)},
    tol=30)


# 20: cond and switch
def branches(x, p, i):
    a = lax.cond(p, lambda x: x * 2, lambda x: jnp.sin(x), x)
    b = lax.switch(i, [lambda x: x + 1, lambda x: jnp.flip(x, 0),
                       lambda x: x * x], x)
    return a, b


add("branches", branches,
    lambda rng, shape, p, i: (normal(rng, shape), np.bool_(p), np.int32(i)),
    {f"{p}-{i}": ((5, 7), p, i) for p in (False, True)
     for i in (-1, 0, 1, 2, 9)})


# 21: random numbers
def random(key, n):
    key = jax.random.wrap_key_data(key)
    a, b = jax.random.split(key)
    return jax.random.bits(a, (n,)), jax.random.normal(b, (n, 3))


add("random", random,
    lambda rng, n: (rng.randint(0, 2**31, size=(2,)).astype(np.uint32), n),
    {"1": (1,), "7": (7,), "100001": (100001,)}, static=(1,), tol=4)

# 22: complex
add("complex", lambda a, b: (a * b, jnp.abs(a), jnp.conj(a) + b),
    lambda rng, shape: tuple((normal(rng, shape) + 1j * normal(rng, shape))
                             .astype(np.complex64) for _ in range(2)),
    {"scalar": ((),), "7": ((7,),), "0": ((0,),), "33x65": ((33, 65),)})


# 23: bits
def bits(a, b):
    s = jnp.abs(b).astype(a.dtype) if a.dtype.kind == "i" else b
    return (a << s, a >> s, lax.shift_right_logical(a, s), a & b, a | b, a ^ b,
            ~a, lax.population_count(a), lax.clz(a))


def bits_args(rng, shape, dtype):
    info = np.iinfo(dtype)
    raw = rng.randint(0, 256, size=(*shape, np.dtype(dtype).itemsize))
    a = raw.astype(np.uint8).view(dtype)[..., 0]
    return a, rng.randint(0, info.bits + 2, size=shape).astype(dtype)


add("bits", bits, bits_args,
    shapes((), (7,), (1000,), dtypes=(np.int8, np.int16, np.int32, np.int64,
                                      np.uint8, np.uint16, np.uint32,
                                      np.uint64)))


# 24: attention
def attention(x, wq, wk, wv, wo, heads):
    n, t, d = x.shape
    q, k, v = ((x @ w).reshape(n, t, heads, -1).transpose(0, 2, 1, 3)
               for w in (wq, wk, wv))
    s = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]).astype(x.dtype)
    s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
    y = (jax.nn.softmax(s, axis=-1) @ v).transpose(0, 2, 1, 3)
    return x + y.reshape(n, t, d) @ wo


add("attention", attention,
    lambda rng, n, t, d, heads, dtype: (
        normal(rng, (n, t, d), dtype),
        *(normal(rng, (d, d)).astype(dtype) / np.array(8, dtype)
          for _ in range(4)), heads),
    {"small": (1, 5, 8, 2, np.float32), "odd": (2, 17, 24, 3, np.float32),
     "large": (2, 128, 256, 4, np.float32), "bf16": (1, 33, 64, 4, BF16),
     "heads": (2, 200, 128, 4, BF16)},
    static=(5,), tol=30)


# 25: nested vmap of grad
def vmap_grad(w, x):
    loss = lambda w, x: jnp.sum(jnp.tanh(x @ w) ** 2)
    return jax.vmap(lambda w: jax.vmap(lambda x: jax.grad(loss)(w, x))(x))(w)


add("vmap_grad", vmap_grad,
    lambda rng, b, n, d: (normal(rng, (b, d)), normal(rng, (n, d))),
    {"small": (2, 3, 4), "odd": (3, 7, 33), "large": (8, 64, 128)}, tol=20)


# Small ones for looking at code: asked for by name in test_inspect.py
add("row_sum", lambda x: jnp.sum(x, 1), one, {"": ((1024, 1024), np.float32)},
    tol=30)
add("column_sum", lambda x: jnp.sum(x, 0), one,
    {"": ((1024, 1024), np.float32)}, tol=30)
add("transpose", lambda x: x.T, one, {"": ((1024, 1000), np.float32)})


# The maximum of each row is a result, and the exponentials are wanted twice
# after it: once for their sum, and once when that is known.
def cross_entropy(x, labels):
    def loss(x):
        y = jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1)
        return -jnp.mean(y)
    return jax.value_and_grad(loss)(x)


add("cross_entropy", cross_entropy,
    lambda rng, n, classes: (normal(rng, (n, classes)),
                             rng.randint(0, classes, size=(n,))
                             .astype(np.int32)),
    {"small": (4, 5), "odd": (3, 100), "large": (64, 1000)}, tol=30)


def drawn_logic(rng, of, steps):
    """What `steps` random ANDs, ORs and NOTs make of the truth values: of two that are ANDed often
    the OR, too, one of them negated or not."""
    of = list(of)
    for _ in range(steps):
        p, q = of[rng.randint(len(of))], of[rng.randint(len(of))]
        of.append(p & q)
        of.append((~p if rng.rand() < 0.5 else p) | (~q if rng.rand() < 0.3 else q))
    return of


def truth(x):
    """Random expressions of the signs of columns: ptxas took some ANDs for ORs."""
    rng = np.random.RandomState(5)
    columns = [x[:, i] < 0 for i in range(x.shape[1])]
    made = [v for _ in range(3) for v in drawn_logic(rng, columns, 10)[-10:]]
    return sum(v.astype(np.int32) << i for i, v in enumerate(made))


add("truth", truth, lambda rng, n: (normal(rng, (n, 6)),), {"": (500,)})
add("gamma_sign", jax.scipy.special.gammasgn,
    lambda rng: (np.concatenate([np.linspace(-6, 6, 97), [np.nan, np.inf, -np.inf, -0.0]]).astype(np.float32),),
    {"": ()})


# 26: training steps of a 3-layer MLP with donated parameters
def mlp_init(rng, sizes):
    return [(normal(rng, (i, o)) / np.float32(np.sqrt(i)),
             np.zeros((o,), np.float32)) for i, o in zip(sizes, sizes[1:])]


def mlp_loss(params, x, y):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return jnp.mean((x @ w + b - y) ** 2)


def mlp_step(params, x, y):
    loss, grads = jax.value_and_grad(mlp_loss)(params, x, y)
    params = jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)
    return params, loss


def mlp_data(x64=False, sizes=(17, 64, 64, 5), n=50):
    rng = np.random.RandomState(7)
    params = mlp_init(rng, sizes)
    x, y = normal(rng, (n, sizes[0])), normal(rng, (n, sizes[-1]))
    if x64:
        return jax.tree.map(widen, (params, x, y))
    return params, x, y


def mlp_train(device, steps=100, x64=False, **kw):
    """Losses of `steps` steps on the device, parameters donated each step."""
    params, x, y = jax.device_put(mlp_data(x64, **kw), device)
    step = jax.jit(mlp_step, donate_argnums=0)
    losses = []
    for _ in range(steps):
        params, loss = step(params, x, y)
        losses.append(loss)
    assert loss.devices() == {device}
    return np.array([float(l) for l in losses])
