"""ViT-B/16 at 224 pixels: inference."""
import jax
import jax.numpy as jnp

from net import Scope, attention, conv, dense, layer_norm, weights
from program import Program, pictures

L, D, H = 12, 768, 12


def classify(s, x):
    x = conv(s("patch"), x, D, 16, 16, "VALID")
    x = x.reshape(x.shape[0], -1, D)
    first = jnp.broadcast_to(s("class", 1, 1, D, init=0.02), (x.shape[0], 1, D))
    x = jnp.concatenate([first, x], 1)
    x = x + s("places", 1, x.shape[1], D, init=0.02)
    for i in range(L):
        b = s(f"layer{i}")
        x = x + attention(b("attention"), layer_norm(b("ln1"), x), H)
        h = jax.nn.gelu(dense(b("up"), layer_norm(b("ln2"), x), 4 * D), False)
        x = x + dense(b("down"), h, D)
    return dense(s("head"), layer_norm(s("ln"), x)[:, 0], 1000)


def infer(batch=1, side=224):
    x, _ = pictures(0, batch, side, 10)
    return Program(lambda p, _, x: ((), classify(Scope(p), x)),
                   weights(classify, x), (), (x,))
