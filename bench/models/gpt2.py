"""GPT-2, 124 M parameters: a training step, and one token with a cache."""
import jax
import jax.numpy as jnp
from jax import lax

from net import (Scope, adam, adam_step, attend, causal, cross_entropy, dense,
                 heads, layer_norm, weights)
from program import Program, floats, ints

L, D, H, V, LONGEST = 12, 768, 12, 50257, 1024


def block(s, x, attention):
    h = dense(s("qkv"), layer_norm(s("ln1"), x), 3 * D)
    q, k, v = (heads(z, H) for z in jnp.split(h, 3, -1))
    x = x + dense(s("o"), attention(q, k, v), D)
    h = jax.nn.gelu(dense(s("up"), layer_norm(s("ln2"), x), 4 * D))
    return x + dense(s("down"), h, D)


def ends(s):
    return (s("wte", V, D, init=0.02), s("wpe", LONGEST, D, init=0.01))


def logits(s, ids):
    t = ids.shape[1]
    wte, wpe = ends(s)
    x = wte[ids] + wpe[:t]
    for i in range(L):
        x = block(s(f"block{i}"), x,
                  lambda q, k, v: attend(q, k, v, causal(t)))
    return layer_norm(s("ln"), x) @ wte.T


def train(batch=1, length=32):
    def loss(params, ids):
        return cross_entropy(logits(Scope(params), ids[:, :-1]), ids[:, 1:])
    ids = ints(0, V, batch, length + 1)
    return Program(adam_step(loss, 1e-4), (), adam(weights(logits, ids)),
                   (ids,), trains=True)


def one(s, cache, token, at):
    """The token after `at` others, whose keys and values are in the cache."""
    wte, wpe = ends(s)
    x, new = wte[token][:, None] + wpe[at], []
    for i, (keys, values) in enumerate(cache):
        def attention(q, k, v):
            ks, vs = (lax.dynamic_update_slice_in_dim(c, n, at, 1)
                      for c, n in ((keys, k), (values, v)))
            new.append((ks, vs))
            return attend(q, ks, vs, jnp.arange(ks.shape[1]) <= at)
        x = block(s(f"block{i}"), x, attention)
    return tuple(new), layer_norm(s("ln"), x)[:, 0] @ wte.T


def decode(batch=1, length=256):
    cache = tuple((floats(i, batch, length, H, D // H),
                   floats(i + L, batch, length, H, D // H)) for i in range(L))
    inputs = ints(0, V, batch), ints(1, length, 1)[0]
    return Program(lambda p, *a: one(Scope(p), *a),
                   weights(one, cache, *inputs), cache, inputs)
