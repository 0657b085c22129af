"""BERT base: an encoder's hidden states and the pooled one."""
import jax
import jax.numpy as jnp

from net import Scope, attention, dense, layer_norm, weights
from program import Program, ints

L, D, H, V = 12, 768, 12, 30522


def encode(s, ids, kinds, lengths):
    x = (s("words", V, D, init=1.0)[ids] + s("places", 512, D,
                                             init=1.0)[:ids.shape[1]]
         + s("kinds", 2, D, init=1.0)[kinds])
    x = layer_norm(s("ln"), x)
    mask = (jnp.arange(ids.shape[1]) < lengths[:, None])[:, None, None]
    for i in range(L):
        b = s(f"layer{i}")
        x = layer_norm(b("ln1"), x + attention(b("attention"), x, H, mask=mask))
        h = jax.nn.gelu(dense(b("up"), x, 4 * D), approximate=False)
        x = layer_norm(b("ln2"), x + dense(b("down"), h, D))
    return x, jnp.tanh(dense(s("pool"), x[:, 0], D))


def infer(batch=4, length=128):
    inputs = (ints(0, V, batch, length), ints(1, 2, batch, length),
              ints(2, length, batch) + 1)
    return Program(lambda p, _, *x: ((), encode(Scope(p), *x)),
                   weights(encode, *inputs), (), inputs)
