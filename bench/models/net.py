"""Networks as plain functions of a scope, and what they share.

A network asks its scope for each weight by name and shape.  Called once without
weights it tells which there are (`weights`), and these come from a seed; called
with them it computes.
"""
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


class Scope:
    """Names of weights are paths: scope("a")("b")("w", 3, 4) is a/b/w."""

    def __init__(self, found, path="", dtype=jnp.float32):
        self.found, self.path, self.dtype = found, path, dtype

    def __call__(self, name, *shape, init=None):
        path = f"{self.path}/{name}"
        if not shape:
            return Scope(self.found, path, self.dtype)
        if path in self.found and not isinstance(self.found[path], tuple):
            return self.found[path]
        self.found[path] = (shape, init)      # telling, not computing
        return jnp.zeros(shape, self.dtype)


def weights(network, *inputs, dtype=jnp.float32, seed=0):
    """The weights that a network asks for, as numpy arrays by path."""
    found = {}
    jax.eval_shape(lambda *x: network(Scope(found, dtype=dtype), *x), *inputs)
    return {path: draw(path, *spec, seed).astype(dtype)
            for path, spec in found.items()}


def draw(path, shape, init, seed):
    if isinstance(init, int):      # all alike; a float is a deviation
        return np.full(shape, init, np.float32)
    rng = np.random.default_rng([seed, zlib.crc32(path.encode())])
    scale = init or 1 / np.sqrt(np.prod(shape[:-1]))
    return rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)


def dense(s, x, n, bias=True, init=None):
    y = x @ s("w", x.shape[-1], n, init=init)
    return y + s("b", n, init=0) if bias else y


def layer_norm(s, x, eps=1e-5):
    h = x.astype(jnp.float32)
    m = h.mean(-1, keepdims=True)
    v = jnp.square(h - m).mean(-1, keepdims=True)
    h = ((h - m) * lax.rsqrt(v + eps)).astype(x.dtype)
    return h * s("g", x.shape[-1], init=1) + s("b", x.shape[-1], init=0)


def rms_norm(s, x, eps=1e-6):
    h = x.astype(jnp.float32)
    h = h * lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + eps)
    return h.astype(x.dtype) * s("g", x.shape[-1], init=1)


def group_norm(s, x, groups=32, eps=1e-5):
    n, h, w, c = x.shape
    y = x.astype(jnp.float32).reshape(n, h * w, groups, c // groups)
    m = y.mean((1, 3), keepdims=True)
    v = jnp.square(y - m).mean((1, 3), keepdims=True)
    y = ((y - m) * lax.rsqrt(v + eps)).reshape(x.shape).astype(x.dtype)
    return y * s("g", c, init=1) + s("b", c, init=0)


def conv(s, x, n, k=3, stride=1, pad="SAME", bias=True):
    y = lax.conv_general_dilated(
        x, s("w", k, k, x.shape[-1], n), (stride, stride), pad,
        dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return y + s("b", n, init=0) if bias else y


def heads(x, n):
    return x.reshape(*x.shape[:-1], n, x.shape[-1] // n)


def attend(q, k, v, mask=None, bias=0.0, scale=None):
    """q, k, v: batch, time, heads, depth."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    a = jnp.einsum("bthd,bshd->bhts", q, k,
                   preferred_element_type=jnp.float32) * scale + bias
    if mask is not None:
        a = jnp.where(mask, a, -1e30)
    a = jax.nn.softmax(a, -1).astype(v.dtype)
    y = jnp.einsum("bhts,bshd->bthd", a, v)
    return y.reshape(*y.shape[:2], -1)


def causal(t):
    return jnp.tril(jnp.ones((t, t), bool))


def attention(s, x, n, kv=None, mask=None, bias=0.0, use_bias=True, scale=None,
              width=None):
    kv = x if kv is None else kv
    width = width or x.shape[-1]
    q, k, v = (heads(dense(s(name), y, width, use_bias), n)
               for name, y in (("q", x), ("k", kv), ("v", kv)))
    y = attend(q, k, v, mask, bias, scale)
    return dense(s("o"), y, x.shape[-1], use_bias)


def cross_entropy(logits, labels):
    logits = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(logits, labels[..., None], -1).mean()


def adam(params):
    zero = jax.tree.map(np.zeros_like, params)
    return params, zero, jax.tree.map(np.copy, zero), np.float32(0)


def adam_step(loss, rate=1e-3):
    """(state, *batch) -> (state, loss), as a user of optax would write it."""
    def step(_, state, *batch):
        params, m, v, t = state
        value, g = jax.value_and_grad(loss)(params, *batch)
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        params = jax.tree.map(
            lambda p, m, v: p - rate * m / (1 - 0.9**t) /
            (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), params, m, v)
        return (params, m, v, t), value
    return step


def sgd_step(loss, rate=0.05):
    """Momentum; loss gives what else it computes (statistics) beside."""
    def step(_, state, *batch):
        params, m = state
        (value, more), g = jax.value_and_grad(loss, has_aux=True)(params,
                                                                  *batch)
        m = jax.tree.map(lambda m, g: 0.9 * m + g, m, g)
        params = jax.tree.map(lambda p, m: p - rate * m, params, m)
        return ({**params, **more}, m), value
    return step
