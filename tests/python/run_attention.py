"""Attention and its relatives beside JAX's CPU: forward, masked, several
types, odd sizes, gradients; and that no array of ours has the size of a T x T
one.  Arguments: which parts to run, all if none."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np

import compare

XPU, CPU = jax.devices()[0], jax.devices("cpu")[0]
assert XPU.platform == "xpu"
RNG = np.random.default_rng(5)


def numbers(dtype, *shape):
    return RNG.standard_normal(shape).astype(dtype)


def attention(q, k, v, mask=None):
    s = jnp.einsum("...qd,...kd->...qk", q, k) * (q.shape[-1] ** -0.5)
    if mask is not None:
        s = jnp.where(mask, s, -jnp.inf)
    return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(s, -1), v)


def causal(q, k, v):
    return attention(q, k, v, jnp.tril(jnp.ones((q.shape[-2], k.shape[-2]), bool)))


def biased(q, k, v):
    far = jnp.abs(jnp.arange(q.shape[-2])[:, None] - jnp.arange(k.shape[-2]))
    s = jnp.einsum("...qd,...kd->...qk", q, k) - 0.1 * far.astype(q.dtype)
    return jax.nn.softmax(s, -1) @ v


def loss(f):
    return lambda *x: jnp.sum(jnp.sin(f(*x).astype(jnp.float32)))


def grad(f, n=3):
    return jax.grad(loss(f), tuple(range(n)))


def layers(x, ws):
    b, t, d = x.shape
    for w in ws:
        q, k, v = ((x @ w[i]).reshape(b, t, d // 32, 32) for i in range(3))
        o = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + jnp.tanh(o.reshape(b, t, d) @ w[3])
    return x


def scanned(x, ws):
    step = jax.checkpoint(lambda x, w: layers(x, w[None]))
    return jax.lax.scan(lambda x, w: (step(x, w), None), x, ws)[0]


def cross_entropy(x, w, y):
    s = x @ w
    return jax.nn.logsumexp(s, -1) - jnp.take_along_axis(s, y[:, None], -1)[:, 0]


TURN = 2**20  # elements of the largest array that a turn has, for any T


def check(name, f, *args, tol, most=None):
    """most: elements that every array of the compiled program has at most;
    the programs that name TURN have more than that where they are not cut.
    On cuda f32 is not asked: with `highest` it goes in turns, of which one has
    all that these programs have (`sizes_of` in src/passes/hlo_opt_slices.c)."""
    there = [jax.tree.map(lambda a: jax.device_put(a, XPU), x) for x in args]
    whole = any(x.dtype == np.float32 for x in jax.tree.leaves(there))
    # f32 by default is tf32 on cuda
    with jax.default_matmul_precision("highest" if whole else None):
        c = jax.jit(f).lower(*there).compile()
    got = c(*there)
    with jax.default_device(CPU):
        want = jax.jit(f)(*args)
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        compare.check(g, w, tol, name)
    shapes = [[int(n) for n in x.split(",")] for x in re.findall(r"\b[a-z]+\d+\[([\d,]+)\]", c.as_text())]
    largest = max(shapes, key=np.prod)
    in_turns = not (whole and XPU.device_kind.startswith("cuda"))
    assert most is None or not in_turns or np.prod(largest) <= most, (name, largest)
    print("ok", name, largest)


def forward():
    for h, t, s in ((8, 512, 512), (2, 777, 777), (2, 1000, 1000), (1, 1100, 1300), (2, 1021, 600)):
        q, k, v = numbers(np.float32, 1, h, t, 32), numbers(np.float32, 1, h, s, 32), numbers(np.float32, 1, h, s, 32)
        for f in (attention, causal, biased):
            check(f"{f.__name__} {t} x {s}", f, q, k, v, tol=20, most=TURN)
    for dtype in (np.float16, jnp.bfloat16):
        q, k, v = (numbers(dtype, 3, 640, 64) for _ in range(3))
        check(f"causal {np.dtype(dtype).name}", causal, q, k, v, tol=2, most=TURN)
    q, k, v = (numbers(np.float32, 2, 600, h, 64) for h in (8, 2, 2))
    check("two heads of k and v", jax.nn.dot_product_attention, q, k, v, tol=20, most=TURN)
    # rows that see nothing are NaN, and one NaN of k is everybody's
    q, k, v = (numbers(np.float32, 1, 1100, 32) for _ in range(3))
    seen = np.ones(1100, bool)
    seen[100:300] = False
    check("rows that see nothing", lambda q, k, v, m: attention(q, k, v, m[:, None]), q, k, v, seen, tol=20,
          most=TURN)
    k[0, 700, 3] = np.nan
    check("NaN", causal, q, k, v, tol=20, most=TURN)


def gradients():
    for h, t in ((8, 512), (2, 777), (2, 1021)):
        q, k, v = (numbers(np.float32, 1, h, t, 32) for _ in range(3))
        check(f"gradient {t}", grad(causal), q, k, v, tol=60, most=TURN)
    q, k, v = (numbers(np.float32, 1101, 32) for _ in range(3))
    check("gradient of one head", grad(attention), q, k, v, tol=60, most=TURN)
    q, k, v = (numbers(jnp.bfloat16, 1101, 64) for _ in range(3))
    check("gradient bf16", grad(attention), q, k, v, tol=8, most=TURN)
    x, ws = numbers(np.float32, 2, 768, 128), numbers(np.float32, 3, 4, 128, 128) / 12
    check("layers", layers, x, ws, tol=100, most=TURN)
    check("gradient of layers", grad(layers, 2), x, ws, tol=1000, most=TURN)
    check("gradient of a scan of layers", grad(scanned, 2), x, ws, tol=1000, most=TURN)


def relatives():
    n, d, v = 1200, 32, 4000
    x, w, y = numbers(np.float32, n, d), numbers(np.float32, d, v), RNG.integers(0, v, n)
    check("cross entropy", cross_entropy, x, w, y, tol=40)
    check("its gradient", lambda x, w: grad(lambda x, w: cross_entropy(x, w, y), 2)(x, w), x, w, tol=200)
    x, y = numbers(np.float32, 1500, 16), numbers(np.float32, 2500, 16)
    far = lambda x, y: jnp.sum(x * x, 1)[:, None] + jnp.sum(y * y, 1) - 2 * x @ y.T
    most = 1500 * 2500 - 1
    check("nearest", lambda x, y: jnp.argmin(far(x, y), 1), x, y, tol=1, most=most)
    check("kernel matrix", lambda x, y: jnp.exp(-far(x, y) / 16) @ y, x, y, tol=100, most=most)


PARTS = {"forward": forward, "gradients": gradients, "relatives": relatives}
for part in sys.argv[1:] or PARTS:
    PARTS[part]()
