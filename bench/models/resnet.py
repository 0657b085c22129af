"""ResNet-50, with batch norm: inference, and training with momentum."""
import jax
import jax.numpy as jnp
from jax import lax
import numpy as np

from net import Scope, conv, cross_entropy, dense, sgd_step, weights
from program import Program, pictures

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def batch_norm(s, x, running, g=1):
    """running: a dictionary that takes new statistics, None at inference."""
    c = x.shape[-1]
    mean, var = s("mean", c, init=0), s("var", c, init=1)
    if running is not None:
        now = x.mean((0, 1, 2)), x.var((0, 1, 2))
        for name, old, new in zip(("mean", "var"), (mean, var), now):
            running[f"{s.path}/{name}"] = 0.9 * old + 0.1 * new
        mean, var = now
    return ((x - mean) * lax.rsqrt(var + 1e-5) * s("g", c, init=g)
            + s("b", c, init=0))


def unit(s, x, width, stride, running):
    def cb(name, x, n, k, stride=1, g=1):
        return batch_norm(s(name)("bn"), conv(s(name), x, n, k, stride,
                                              bias=False), running, g)
    y = jax.nn.relu(cb("a", x, width, 1))
    y = jax.nn.relu(cb("b", y, width, 3, stride))
    # In training a unit begins as its shortcut, as is usual: else gradients of
    # so small a batch in f32 are 2 % from those in f64, on JAX's CPU as here.
    y = cb("c", y, 4 * width, 1, g=1 if running is None else 0)
    if x.shape != y.shape:
        x = cb("shortcut", x, 4 * width, 1, stride)
    return jax.nn.relu(x + y)


def classify(s, x, running=None):
    x = conv(s("stem"), x, 64, 7, 2, bias=False)
    x = jax.nn.relu(batch_norm(s("stem")("bn"), x, running))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1),
                          "SAME")
    for i, (width, n, stride) in enumerate(STAGES):
        for j in range(n):
            x = unit(s(f"unit{i}.{j}"), x, width, stride if j == 0 else 1,
                     running)
    return dense(s("head"), x.mean((1, 2)), 1000, init=0.01)


def infer(batch=1, side=224):
    x, _ = pictures(0, batch, side, 10)
    return Program(lambda p, _, x: ((), classify(Scope(p), x)),
                   weights(classify, x), (), (x,))


def train(batch=4, side=96):
    def loss(params, x, y):
        running = {}
        return cross_entropy(classify(Scope(params), x, running), y), running
    x, y = pictures(0, batch, side, 10)
    params = weights(lambda s, x: classify(s, x, {}), x)
    momentum = {k: np.zeros_like(w) for k, w in params.items()}
    return Program(sgd_step(loss, 0.01), (), (params, momentum), (x, y),
                   trains=True)
