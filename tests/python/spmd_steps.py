"""Training steps over eight devices, as StableHLO: spmd_steps.py DIR."""
import os
import sys

os.environ.update(XLA_FLAGS="--xla_force_host_platform_device_count=8",
                  JAX_PLATFORMS="cpu")
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P  # noqa: E402

AUTO = AxisType.Auto
line = jax.make_mesh((8,), ("d",), axis_types=(AUTO,))
grid = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AUTO,) * 2)
STEPS = {}


def step(fn):
    STEPS[fn.__name__] = fn
    return fn


def arg(mesh, spec, *shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32,
                                sharding=NamedSharding(mesh, spec))


def mlp_loss(p, x, y):
    h = jnp.tanh(x @ p["w1"] + p["b1"])
    return jnp.mean((h @ p["w2"] + p["b2"] - y) ** 2)


def sgd(loss, p, *data):
    value, grad = jax.value_and_grad(loss)(p, *data)
    return value, jax.tree.map(lambda a, g: a - 0.1 * g, p, grad)


@step
def fsdp():
    p = mlp(line, P("d"), P("d"), P("d"), P("d"))
    out = (NamedSharding(line, P()), jax.tree.map(lambda w: w.sharding, p))
    return jax.jit(lambda p, x, y: sgd(mlp_loss, p, x, y),
                   out_shardings=out).lower(
        p, arg(line, P("d"), 64, 32), arg(line, P("d"), 64, 16))


@step
def tp():
    p = mlp(grid, P(None, "y"), P("y"), P("y"), P())
    return jax.jit(lambda p, x, y: sgd(mlp_loss, p, x, y)).lower(
        p, arg(grid, P("x"), 64, 32), arg(grid, P("x"), 64, 16))


def mlp(mesh, w1, b1, w2, b2):
    return {"w1": arg(mesh, w1, 32, 64), "b1": arg(mesh, b1, 64),
            "w2": arg(mesh, w2, 64, 16), "b2": arg(mesh, b2, 16)}


@step
def dp():
    p = mlp(line, P(), P(), P(), P())
    return jax.jit(lambda p, x, y: sgd(mlp_loss, p, x, y)).lower(
        p, arg(line, P("d"), 64, 32), arg(line, P("d"), 64, 16))


# ---- layers in a scan: residual blocks x + tanh(x @ a) @ b, all alike ----

def scanned_loss(p, x, y):
    def layer(h, w):
        return h + jnp.tanh(h @ w["a"] / 8) @ w["b"] / 8, None
    return jnp.mean((lax.scan(layer, x, p)[0] - y) ** 2)


def scanned(mesh, a, b, x):
    p = {"a": arg(mesh, a, 6, 32, 64), "b": arg(mesh, b, 6, 64, 32)}
    data = arg(mesh, x, 64, 32)
    out = (NamedSharding(mesh, P()), jax.tree.map(lambda w: w.sharding, p))
    return jax.jit(lambda p, x, y: sgd(scanned_loss, p, x, y),
                   out_shardings=out).lower(p, data, data)


@step
def scan_dp():
    return scanned(line, P(), P(), P("d"))


@step
def scan_fsdp():
    return scanned(line, P(None, "d"), P(None, "d"), P("d"))


@step
def scan_tp():
    return scanned(grid, P(None, None, "y"), P(None, "y"), P("x"))


def main(out):
    for name, lower in STEPS.items():
        with open(os.path.join(out, name + ".mlir"), "w") as f:
            f.write(lower().as_text())


if __name__ == "__main__":
    main(*sys.argv[1:])
