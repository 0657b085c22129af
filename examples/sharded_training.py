"""A small transformer of flax.nnx, trained over eight devices: data parallel,
fully sharded (FSDP) and tensor parallel.  Of each the losses of ten steps with
Adam are within 1e-5 of one device's, relatively, and a second run has the same
bits."""
import os
import sys

os.environ.setdefault("SUNDOG_HOST_DEVICES", "8")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from flax import nnx  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P  # noqa: E402

WORDS, WIDTH, HEADS, DEPTH, BATCH, LENGTH, STEPS = 48, 32, 4, 2, 16, 12, 10
BOUND = 1e-5


class Block(nnx.Module):
    def __init__(self, rngs):
        self.before = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(HEADS, WIDTH, decode=False,
                                                rngs=rngs)
        self.after = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.before(x), mask=mask)
        return x + self.down(nnx.gelu(self.up(self.after(x))))


class Transformer(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(WORDS, WIDTH, rngs=rngs)
        self.blocks = nnx.List(Block(rngs) for _ in range(DEPTH))
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

    def __call__(self, words):
        x, mask = self.embed(words), nnx.make_causal_mask(words)
        for block in self.blocks:
            x = block(x, mask)
        return self.embed.attend(self.norm(x))


def tensor_parallel(path, x):
    """Heads and the middle of the MLP go over `model`."""
    path = jax.tree_util.keystr(path)
    if x.ndim == 3:  # query, key, value: [width, head, head's width]; out
        return P("model") if "'out'" in path else P(None, "model")
    if "'attention'" in path and x.ndim == 2 and "'bias'" in path:
        return P("model")
    if "'up'" in path:
        return P(None, "model") if x.ndim == 2 else P("model")
    return P("model") if "'down'" in path and x.ndim == 2 else P()


def fully_sharded(path, x):
    """The first dimension that divides goes over `data`."""
    n = len(jax.devices())
    for d, size in enumerate(x.shape):
        if size % n == 0:
            return P(*[None] * d, "data")
    return P()


WAYS = {"data parallel": ((-1, 1), lambda path, x: P()),
        "fully sharded": ((-1, 1), fully_sharded),
        "tensor parallel": ((-1, 2), tensor_parallel)}


def train(place):
    """The losses; place(tree, batch) puts parameters or a batch where they
    belong."""
    graph, state = nnx.split(Transformer(nnx.Rngs(0)))
    state = place(state, False)
    adam = optax.adam(3e-3)
    opt = adam.init(state)

    @jax.jit
    def step(state, opt, words):
        def loss(state):
            logits = nnx.merge(graph, state)(words[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(
                logits, words[:, 1:]).mean()
        value, grads = jax.value_and_grad(loss)(state)
        updates, opt2 = adam.update(grads, opt, state)
        return optax.apply_updates(state, updates), opt2, value

    rng, losses = np.random.default_rng(0), []
    for _ in range(STEPS):
        first = rng.integers(0, WORDS, (BATCH, 1))
        words = (first + 5 * np.arange(LENGTH + 1)) % WORDS
        state, opt, value = step(state, opt, place(jnp.asarray(words), True))
        losses.append(value)
    return np.array(losses)


def over(mesh, spec):
    def place(tree, batch):
        return jax.tree_util.tree_map_with_path(
            lambda path, x: jax.device_put(x, NamedSharding(
                mesh, P("data") if batch else spec(path, x))), tree)
    return place


def main():
    devices = jax.devices()
    one = train(lambda tree, batch: jax.device_put(tree, devices[0]))
    print(f"one device        {one[0]:.4f} to {one[-1]:.4f}")
    good = one[-1] < one[0]
    for name, (shape, spec) in WAYS.items():
        mesh = jax.sharding.Mesh(np.array(devices).reshape(shape),
                                 ("data", "model"))
        losses = train(over(mesh, spec))
        off = float(np.max(np.abs(losses - one) / one))
        same = np.array_equal(losses, train(over(mesh, spec)))
        good &= off <= BOUND and same
        print(f"{name:16}  {losses[0]:.4f} to {losses[-1]:.4f}, off by {off:.1e}"
              f", a second run {'has the same bits' if same else 'DIFFERS'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
