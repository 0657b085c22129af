"""Whole programs over eight devices, with what JAX's users write: each on one
device too, and twice.  Arguments: names (none: all).  One line a program: `ok
NAME`, or what is wrong.  Those of examples/ check themselves."""
import importlib
import os
import sys
import traceback

os.environ.setdefault("SUNDOG_HOST_DEVICES", "8")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

PROGRAMS = {}
N = len(jax.devices())
MESH = Mesh(np.array(jax.devices()), ("x",))


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def floats(seed, *shape):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape).astype(np.float32)


def held(one, over, args, specs, bound):
    """over(*args), with args laid out by specs, is one(*args) to so much of the
    largest number of each result; text of the program over all devices."""
    put = [jax.device_put(x, NamedSharding(MESH, s))
           for x, s in zip(args, specs)]
    compiled = jax.jit(over).lower(*put).compile()
    want = jax.tree.leaves(jax.jit(one)(*args))
    got, again = (jax.tree.leaves(compiled(*put)) for _ in range(2))
    for w, g, a in zip(want, got, again):
        w, g = np.asarray(w), np.asarray(g)
        off = np.abs(w - g).max() / np.abs(w).max()
        assert off <= bound, f"off by {off}"
        np.testing.assert_array_equal(g, np.asarray(a))
    return compiled.as_text()


def example(name):
    def run():
        assert importlib.import_module(name).main() == 0
    PROGRAMS[name] = run


for name in ("sharded_training", "pipeline", "ring_attention"):
    example(name)


@program
def experts():
    """Tokens go to the device of their expert and back, and so do gradients.
    Of one device's program each group of tokens is a device's."""
    tokens, width, places = 16, 12, 4

    def route(x, router):
        """[token, expert, place]: who goes where, and how much it counts."""
        p = jax.nn.softmax(x @ router)
        best = p.argmax(-1)
        chosen = jax.nn.one_hot(best, N)
        place = (jnp.cumsum(chosen, 0) - 1) * chosen
        goes = chosen[..., None] * jax.nn.one_hot(place, places)
        return goes, goes * p.max(-1)[:, None, None]

    def expert(w, x):
        return jnp.tanh(x @ w)

    def here(x, router, w):
        goes, counts = route(x, router)
        sent = jnp.einsum("tep,td->epd", goes, x)
        came = lax.all_to_all(sent, "x", 0, 0, tiled=True)
        back = lax.all_to_all(expert(w[0], came), "x", 0, 0, tiled=True)
        return jnp.einsum("tep,epd->td", counts, back)

    def over(x, router, w):
        f = jax.shard_map(here, mesh=MESH, in_specs=(P("x"), P(), P("x")),
                          out_specs=P("x"))
        return (f(x, router, w) ** 2).mean()

    def one(x, router, w):
        def group(x):
            goes, counts = route(x, router)
            y = jax.vmap(expert)(w, jnp.einsum("tep,td->epd", goes, x))
            return jnp.einsum("tep,epd->td", counts, y)
        return (jax.vmap(group)(x.reshape(N, tokens, width)) ** 2).mean()

    args = floats(0, N * tokens, width), floats(1, width, N), floats(
        2, N, width, width)
    text = held(jax.value_and_grad(one, (0, 1, 2)),
                jax.value_and_grad(over, (0, 1, 2)), args,
                (P("x"), P(), P("x")), 1e-5)
    assert " all-to-all(" in text


@program
def solve_in_batches():
    """Each device has its own matrices: nothing moves."""
    def f(a, b):
        a = a @ a.mT + 8 * jnp.eye(a.shape[-1])
        return jax.scipy.linalg.solve_triangular(
            jnp.linalg.cholesky(a), b, lower=True), jax.vmap(
            lambda a, b: jax.scipy.linalg.solve(a, b, assume_a="pos"))(a, b)
    text = held(f, f, (floats(0, 2 * N, 9, 9), floats(1, 2 * N, 9, 3)),
                (P("x"), P("x")), 1e-5)
    assert " all-" not in text


@program
def fourier():
    """A transform of lines over devices: each does its rows, then its columns,
    and gives them back as rows."""
    def here(x):
        x = lax.all_to_all(jnp.fft.fft(x), "x", 1, 0, tiled=True)
        return lax.all_to_all(jnp.fft.fft(x, axis=0), "x", 0, 1, tiled=True)

    def over(x):
        return jax.shard_map(here, mesh=MESH, in_specs=P("x"),
                             out_specs=P("x"))(x)
    x = floats(0, 4 * N, 5 * N) + 1j * floats(1, 4 * N, 5 * N)
    text = held(jnp.fft.fft2, over, (x.astype(np.complex64),), (P("x"),), 1e-6)
    assert text.count(" all-to-all(") == 2


def main(names):
    bad = 0
    for name in names or PROGRAMS:
        try:
            PROGRAMS[name]()
            print("ok", name, flush=True)
        except Exception:
            bad += 1
            print("WRONG", name, traceback.format_exc(), flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
