"""A decoder shaped like Llama (RMS norm, rotary positions, grouped queries,
gated MLP), bf16: one token with a cache, layers stacked and scanned."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from net import Scope, attend, dense, heads, rms_norm, weights
from program import Program, floats, ints

L, D, FF, H, KV, V = 12, 1024, 2816, 16, 4, 32000
DEPTH = D // H


def rotate(x, at):
    """Rotary positions of batch, 1, heads, depth at one position."""
    half = x.shape[-1] // 2
    angle = at * 10000.0 ** (-jnp.arange(half) / half)
    a, b = jnp.split(x.astype(jnp.float32), 2, -1)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin],
                           -1).astype(x.dtype)


def layer(s, x, keys, values, at):
    h = rms_norm(s("n1"), x)
    q = rotate(heads(dense(s("q"), h, D, False), H), at)
    k = rotate(heads(dense(s("k"), h, KV * DEPTH, False), KV), at)
    v = heads(dense(s("v"), h, KV * DEPTH, False), KV)
    keys = lax.dynamic_update_slice_in_dim(keys, k, at, 1)
    values = lax.dynamic_update_slice_in_dim(values, v, at, 1)
    ks, vs = (jnp.repeat(c, H // KV, 2) for c in (keys, values))
    y = attend(q, ks, vs, jnp.arange(keys.shape[1]) <= at)
    x = x + dense(s("o"), y, D, False)
    h = rms_norm(s("n2"), x)
    gate = jax.nn.silu(dense(s("gate"), h, FF, False))
    h = gate * dense(s("up"), h, FF, False)
    return x + dense(s("down"), h, D, False), keys, values


def step(params, cache, token, at):
    layers, ends = params
    x = ends["embed"][token][:, None]

    def body(x, found):
        w, keys, values = found
        x, keys, values = layer(Scope(w, dtype=x.dtype), x, keys, values, at)
        return x, (keys, values)
    x, cache = lax.scan(body, x, (layers, *cache))
    x = rms_norm(Scope(ends), x)
    return cache, (x[:, 0] @ ends["head"]).astype(jnp.float32)


def decode(batch=1, length=512, dtype=jnp.bfloat16):
    one = jnp.zeros((batch, length, KV, DEPTH), dtype)
    each = [weights(lambda s, x: layer(s, x, one, one, 3),
                    jnp.zeros((batch, 1, D), dtype), dtype=dtype, seed=i)
            for i in range(L)]
    layers = {k: np.stack([w[k] for w in each]) for k in each[0]}
    ends = {"embed": floats(1, V, D).astype(dtype), "/g": np.ones(D, dtype),
            "head": (floats(2, D, V) / 32).astype(dtype)}
    cache = tuple(floats(i, L, batch, length, KV, DEPTH).astype(dtype)
                  for i in (3, 4))
    return Program(step, (layers, ends), cache,
                   (ints(0, V, batch), np.int32(length // 2)))
