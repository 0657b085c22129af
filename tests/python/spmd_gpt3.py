"""A step of training of GPT-3's size over 256 devices, 32 by 8, as StableHLO:
spmd_gpt3.py FILE."""
import os
import sys

os.environ.update(XLA_FLAGS="--xla_force_host_platform_device_count=256",
                  JAX_PLATFORMS="cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402

LAYERS, WIDTH, HEADS, WORDS, BATCH, LENGTH = 96, 12288, 96, 50304, 256, 2048
mesh = jax.make_mesh((32, 8), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def arg(dtype, spec, *shape):
    return jax.ShapeDtypeStruct(shape, dtype,
                                sharding=NamedSharding(mesh, spec))


def norm(x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)


def layer(x, w):
    h = norm(x)
    q, k, v = (jnp.einsum("btd,dhk->bthk", h, w[i]) for i in "qkv")
    s = jnp.einsum("bqhk,bshk->bhqs", q, k) / (WIDTH // HEADS) ** 0.5
    s = jnp.where(jnp.tri(LENGTH, dtype=bool), s, -1e30)
    y = jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(s), v)
    x = x + jnp.einsum("bqhk,hkd->bqd", y, w["o"])
    return x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"], None


def loss(p, words):
    x = p["embed"][words[:, :-1]]
    x, _ = lax.scan(jax.checkpoint(layer), x, p["layers"])
    logits = norm(x) @ p["embed"].T
    chosen = jnp.take_along_axis(logits, words[:, 1:, None], -1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, -1) - chosen)


def step(p, m, words):
    value, grad = jax.value_and_grad(loss)(p, words)
    m = jax.tree.map(lambda a, g: 0.9 * a + g, m, grad)
    return jax.tree.map(lambda a, b: a - 1e-4 * b, p, m), m, value


each = WIDTH // HEADS
across = P(None, None, "model")
params = {
    "embed": arg(jnp.float32, P(), WORDS, WIDTH),
    "layers": {**{i: arg(jnp.float32, across, LAYERS, WIDTH, HEADS, each)
                  for i in "qkv"},
               "o": arg(jnp.float32, P(None, "model"), LAYERS, HEADS, each,
                        WIDTH),
               "up": arg(jnp.float32, across, LAYERS, WIDTH, 4 * WIDTH),
               "down": arg(jnp.float32, P(None, "model"), LAYERS, 4 * WIDTH,
                           WIDTH)}}
words = arg(jnp.int32, P("data"), BATCH, LENGTH + 1)
with open(sys.argv[1], "w") as f:
    f.write(jax.jit(step).lower(params, params, words).as_text())
