"""T5 small (relative positions, RMS norm, no biases): a training step."""
import jax
import jax.numpy as jnp

from net import (Scope, adam, adam_step, attention, causal, cross_entropy,
                 dense, rms_norm, weights)
from program import Program, ints

L, D, FF, H, V = 6, 512, 2048, 8, 32128


def distance(q, k, both, buckets=32, longest=128):
    """T5's table of buckets for the distances between q and k places."""
    d = jnp.arange(k)[None] - jnp.arange(q)[:, None]
    base = 0
    if both:
        buckets //= 2
        base, d = jnp.where(d > 0, buckets, 0), jnp.abs(d)
    else:
        d = jnp.maximum(-d, 0)
    near = buckets // 2
    far = near + (jnp.log(jnp.maximum(d, 1) / near) / jnp.log(longest / near)
                  * (buckets - near)).astype(jnp.int32)
    return base + jnp.where(d < near, d, jnp.minimum(far, buckets - 1))


def stack(s, x, memory=None):
    t, decodes = x.shape[1], memory is not None
    table = s("distances", 32, H, init=0.1)
    bias = table[distance(t, t, not decodes)].transpose(2, 0, 1)[None]
    mask = causal(t) if decodes else None
    for i in range(L):
        b, plain = s(f"layer{i}"), dict(use_bias=False, scale=1 / 8)
        x = x + attention(b("self"), rms_norm(b("n1"), x), H, mask=mask,
                          bias=bias, **plain)
        if decodes:
            x = x + attention(b("cross"), rms_norm(b("n2"), x), H, kv=memory,
                              **plain)
        h = jax.nn.relu(dense(b("up"), rms_norm(b("n3"), x), FF, False))
        x = x + dense(b("down"), h, D, False)
    return rms_norm(s("n"), x)


def logits(s, source, target):
    embed = s("embed", V, D, init=1.0)
    memory = stack(s("encoder"), embed[source])
    return stack(s("decoder"), embed[target], memory) @ embed.T * D**-0.5


def train(batch=2, source=64, target=32):
    def loss(params, a, b):
        return cross_entropy(logits(Scope(params), a, b[:, :-1]), b[:, 1:])
    a, b = ints(0, V, batch, source), ints(1, V, batch, target + 1)
    return Program(adam_step(loss, 1e-5), (), adam(weights(logits, a, b)),
                   (a, b), trains=True)
