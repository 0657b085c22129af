"""What is timed: name -> (kind, function, maker of arguments).

kinds  run: seconds of a call; bar: ours must be at least this many times as
fast as JAX's CPU.  compile: seconds of lowered.compile().  dispatch: seconds of
a call of a trivial program of n arguments, against XLA behind the same C API.
"""
import dataclasses
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclasses.dataclass
class Entry:
    name: str
    kind: str
    fn: Callable
    make: Callable
    bar: float | None
    tol: float = 1e-5     # relative to the largest magnitude of the result
    bytes: int = 0        # read and written: what a floor follows from
    flops: int = 0


ENTRIES = []


def add(name, fn, make, bar=1.0, kind="run", **kw):
    ENTRIES.append(Entry(name, kind, fn, make, bar, **kw))


def f32(rng, *shape):
    return rng.standard_normal(shape, dtype=np.float32)


def bf16(rng, *shape):
    return f32(rng, *shape).astype(jnp.bfloat16)


N = 1 << 24
R, C = 2048, 4096
MiB = 1 << 20

add("ew_exp_f32", lambda a: jnp.exp(a), lambda r: (f32(r, N),), bytes=8 * N)
add("ew_chain_f32", lambda a, b: jax.nn.gelu(a * 1.5 + b) * b - jnp.tanh(a),
    lambda r: (f32(r, N), f32(r, N)), bytes=12 * N)
add("ew_add_bf16", lambda a, b: a + b, lambda r: (bf16(r, N), bf16(r, N)),
    bytes=6 * N, tol=1e-2)
add("abs_sqrt_1M", lambda a: jnp.abs(jnp.sqrt(a)),
    lambda r: (np.abs(f32(r, MiB)),), bytes=8 * MiB)
add("bcast_bias_relu", lambda a, b: jax.nn.relu(a + b),
    lambda r: (f32(r, R, C), f32(r, C)), bytes=8 * R * C)
add("softmax_f32", lambda a: jax.nn.softmax(a, -1), lambda r: (f32(r, R, C),),
    bytes=8 * R * C)
add("softmax_bf16", lambda a: jax.nn.softmax(a, -1), lambda r: (bf16(r, R, C),),
    bytes=4 * R * C, tol=2e-2)
add("softmax_axis0", lambda a: jax.nn.softmax(a, 0), lambda r: (f32(r, R, C),),
    bytes=8 * R * C)


def layer_norm(x, g, b):
    m = jnp.mean(x, -1, keepdims=True)
    v = jnp.var(x, -1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * g + b


def rms_norm(x, g):
    h = x.astype(jnp.float32)
    h = h * lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + 1e-6)
    return h.astype(x.dtype) * g


add("layernorm_f32", layer_norm,
    lambda r: (f32(r, R, C), f32(r, C), f32(r, C)), bytes=8 * R * C)
add("layernorm_grad_f32",
    lambda x, g, b, dy: jax.vjp(layer_norm, x, g, b)[1](dy),
    lambda r: (f32(r, R, C), f32(r, C), f32(r, C), f32(r, R, C)),
    bytes=12 * R * C, tol=1e-4)
add("rmsnorm_bf16", rms_norm, lambda r: (bf16(r, R, C), bf16(r, C)),
    bytes=4 * R * C, tol=2e-2)
for name, fn in (("row", lambda a: jnp.sum(a, 1)),
                 ("col", lambda a: jnp.sum(a, 0)),
                 ("all", lambda a: jnp.sum(a * a)),
                 ("argmax", lambda a: jnp.argmax(a, 1))):
    add(f"reduce_{name}", fn, lambda r: (f32(r, R, C),), bytes=4 * R * C,
        tol=1e-4)
add("reduce_mid", lambda a: jnp.max(a, 1), lambda r: (f32(r, 64, 256, 512),),
    bytes=4 * 64 * 256 * 512)
add("matmul_512_f32", lambda a, b: a @ b,
    lambda r: (f32(r, 512, 512), f32(r, 512, 512)), bar=0.9, flops=2 * 512**3)
add("transpose2d", lambda a: a.T + 0, lambda r: (f32(r, R, C),), bar=None,
    bytes=8 * R * C)
add("embed_gather", lambda t, i: t[i],
    lambda r: (f32(r, 32000, 768),
               r.integers(0, 32000, (8192,)).astype(np.int32)), bar=None,
    bytes=8 * 8192 * 768)
add("sort_1M", lambda a: jnp.sort(a), lambda r: (f32(r, MiB),), bar=None,
    bytes=8 * MiB)
add("sort_rows", lambda a: jnp.sort(a, 1), lambda r: (f32(r, 1024, 1024),),
    bar=1.0, bytes=8 * MiB)
add("argsort_columns", lambda a: jnp.argsort(a, 0),
    lambda r: (f32(r, 2048, 300),), bar=1.0, bytes=8 * 2048 * 300)
add("median_1M", lambda a: jnp.median(a), lambda r: (f32(r, MiB),), bar=1.0,
    bytes=4 * MiB)
add("topk_1M", lambda a: lax.top_k(a, 1000), lambda r: (f32(r, MiB),), bar=1.0,
    bytes=4 * MiB)
add("topk_rows", lambda a: lax.top_k(a, 50), lambda r: (f32(r, 64, 50000),),
    bar=1.0, bytes=4 * 64 * 50000)
add("segment_sum_rows", lambda d, s: jax.ops.segment_sum(d, s, 500),
    lambda r: (f32(r, 20000, 64), r.integers(0, 500, 20000).astype(np.int32)),
    bar=1.5, bytes=4 * 20000 * 65, tol=1e-4)
add("segment_sum_1M", lambda d, s: jax.ops.segment_sum(d, s, 1000),
    lambda r: (f32(r, MiB), r.integers(0, 1000, MiB).astype(np.int32)),
    bar=1.5, bytes=8 * MiB, tol=1e-4)
add("bincount_1M", lambda s: jnp.bincount(s, length=256),
    lambda r: (r.integers(0, 256, MiB).astype(np.int32),), bar=1.5,
    bytes=4 * MiB)
add("associative_scan_1M", lambda a: lax.associative_scan(jnp.add, a),
    lambda r: (f32(r, MiB),), bar=1.5, bytes=8 * MiB, tol=1e-3)
add("cumsum_rows", lambda a: jnp.cumsum(a, -1), lambda r: (f32(r, R, C),),
    bar=None, bytes=8 * R * C, tol=1e-3)
add("random_normal_2M", lambda k: jax.random.normal(jax.random.wrap_key_data(k),
                                                    (2 * MiB,)),
    lambda r: (np.array([1, 2], np.uint32),), bar=None, bytes=8 * MiB)


def mlp_step(w1, w2, x, y):
    def loss(w1, w2):
        return jnp.mean((jax.nn.relu(x @ w1) @ w2 - y) ** 2)
    g = jax.grad(loss, (0, 1))(w1, w2)
    return w1 - 0.01 * g[0], w2 - 0.01 * g[1]


add("mlp_step", mlp_step,
    lambda r: (f32(r, 256, 512) / 16, f32(r, 512, 64) / 22, f32(r, 128, 256),
               f32(r, 128, 64)), bar=None, tol=1e-4)

# --- compile time of small programs ---
SMALL = (64, 96)
for name, fn, n in (
        ("abs_sqrt", lambda a: jnp.abs(jnp.sqrt(a)), 1),
        ("chain", lambda a, b: jax.nn.gelu(a * 1.5 + b) * b - jnp.tanh(a), 2),
        ("softmax", lambda a: jax.nn.softmax(a, -1), 1),
        ("layernorm", lambda a: layer_norm(a, a[0], a[1]), 1),
        ("sort", lambda a: jnp.sort(a, 0), 1),
        ("top_k", lambda a: lax.top_k(a, 10), 1),
        ("reductions", lambda a: (a.sum(0), a.max(1), jnp.argmax(a, 1)), 1),
        ("mlp_grad", lambda a, b: jax.grad(
            lambda a: jnp.sum(jnp.tanh(a @ b.T) ** 2))(a), 2)):
    add(f"compile_{name}", fn,
        lambda r, n=n: tuple(f32(r, *SMALL) for _ in range(n)), bar=5.0,
        kind="compile")

# --- dispatch ---
for n in (1, 100):
    add(f"dispatch_{n}", lambda *a: tuple(x + 1 for x in a),
        lambda r, n=n: tuple(np.float32(i) for i in range(n)), bar=1.0,
        kind="dispatch")
