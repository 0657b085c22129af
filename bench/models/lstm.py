"""A tagger of sentences: embedding, an LSTM each way, a class a word."""
import jax
import jax.numpy as jnp
from jax import lax

from net import Scope, adam, adam_step, cross_entropy, dense, weights
from program import Program, ints

V, D, H, TAGS = 10000, 128, 256, 17


def lstm(s, x, reverse):
    """x: time, batch, features."""
    w, u = s("w", x.shape[-1], 4 * H), s("u", H, 4 * H)
    b = s("b", 4 * H, init=0)

    def cell(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x + h @ u, 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h
    zero = jnp.zeros((x.shape[1], H))
    return lax.scan(cell, (zero, zero), x @ w + b, reverse=reverse)[1]


def tag(s, ids):
    x = s("words", V, D, init=1.0)[ids].swapaxes(0, 1)
    x = jnp.concatenate([lstm(s("on"), x, False), lstm(s("back"), x, True)], -1)
    return dense(s("tags"), x, TAGS).swapaxes(0, 1)


def train(batch=32, length=64):
    def loss(params, ids, tags):
        return cross_entropy(tag(Scope(params), ids), tags)
    ids = ints(0, V, batch, length)
    return Program(adam_step(loss), (), adam(weights(tag, ids)),
                   (ids, ids % TAGS), trains=True)
