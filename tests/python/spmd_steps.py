"""Training steps over eight devices, as StableHLO: spmd_steps.py DIR."""
import os
import sys
from functools import partial

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


def conv_loss(w, x, y):
    for k in w["convs"]:
        x = jnp.tanh(lax.conv_general_dilated(
            x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=x.shape[-1] // k.shape[2]))
    return jnp.mean((x.mean((1, 2)) @ w["out"] - y) ** 2)


@step
def conv_space():
    """Rows of an image lie over devices: forward of a small network."""
    def f(x, k1, k2):
        dims = ("NHWC", "HWIO", "NHWC")
        x = jnp.tanh(lax.conv_general_dilated(x, k1, (1, 1), "SAME",
                                              dimension_numbers=dims))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1),
                              "VALID")
        return lax.conv_general_dilated(x, k2, (2, 2), "SAME",
                                        dimension_numbers=dims)
    return jax.jit(f).lower(arg(line, P(None, "d"), 2, 64, 16, 3),
                            arg(line, P(), 3, 3, 3, 8),
                            arg(line, P(), 5, 5, 8, 4))


@step
def across():
    """Slices, pads, windows and convolutions across rows that are cut."""
    def f(x, k):
        wide = x[None, :, :, None]
        conv = partial(lax.conv_general_dilated, wide, k[:, :, None, None],
                       dimension_numbers=("NHWC", "HWIO", "NHWC"))
        lo, hi = jnp.float32(2), jnp.float32(0)
        return (x[:32], x[32:], x[::2], x[1::4], x[16:48:2],
                lax.pad(x, lo, ((3, 5, 0), (1, 0, 0))),
                lax.pad(x, hi, ((0, 1, 1), (0, 0, 0))),
                lax.pad(x, lo, ((0, 1, 1), (0, 0, 1))),
                lax.pad(x, lo, ((-7, -1, 0), (0, 0, 0))),
                lax.pad(x, hi, ((64, 0, 0), (0, 0, 0))),
                lax.reduce_window(x, -jnp.inf, lax.max, (3, 1), (1, 1), "SAME"),
                lax.reduce_window(x, 0., lax.add, (4, 2), (2, 1), "SAME"),
                lax.reduce_window(x, 1., lax.mul, (5, 1), (1, 1), "SAME",
                                  window_dilation=(3, 1)),
                conv(window_strides=(1, 1), padding="SAME"),
                conv(window_strides=(4, 1), padding="SAME"),
                conv(window_strides=(1, 1), padding=((20, 20), (0, 0)),
                     rhs_dilation=(20, 1)),
                conv(window_strides=(1, 1), padding=((1, 2), (1, 1)),
                     lhs_dilation=(2, 1)),
                x.cumsum(0))
    return jax.jit(f).lower(arg(line, P("d"), 64, 6), arg(line, P(), 3, 3))


# ---- parts that are not equal, and arrays put beside and into others ----

def of_rows(f, rows=64, spec=P("d")):
    return jax.jit(f).lower(arg(line, spec, rows, 6))


@step
def rolled():
    return of_rows(lambda x: jnp.roll(x, 1, 0) + jnp.roll(x, -3, 0))


@step
def shifted():
    return of_rows(lambda x: jnp.concatenate([jnp.ones((1, 6)), x[:-1]]) - x)


@step
def joined():
    return of_rows(lambda x: jnp.concatenate([x, x * 2]))


@step
def differences():
    return of_rows(lambda x: jnp.square(x[1:] - x[:-1]).mean())


@step
def ends():
    return of_rows(lambda x: jnp.tanh(x - x[0] * x[-2:, :1].sum()))


@step
def heat():
    def f(u):
        mid, up, down = u[1:-1, 1:-1], u[:-2, 1:-1], u[2:, 1:-1]
        return u.at[1:-1, 1:-1].set(mid + .1 * (up + down - 2 * mid))
    return of_rows(lambda u: lax.fori_loop(0, 10, lambda i, u: f(u), u))


@step
def uneven():
    def f(x, w):
        x = lax.with_sharding_constraint(x, NamedSharding(line, P("d")))
        h = jnp.exp(x @ w)
        return h.T @ (x - h), h.max(0), h.prod(0)
    return jax.jit(f).lower(arg(line, P(), 67, 6), arg(line, P(), 6, 6))


# ---- along lines that are cut, and at places that are known when it runs ----

def of_lines(f, *rest, shape=(64, 16), dtype=jnp.float32):
    x = jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(
        line, P("d")))
    return jax.jit(f).lower(x, *rest)


@step
def running():
    return of_lines(lambda x: (
        jnp.cumsum(x, 0), lax.cumprod(x, 0), lax.cummax(x, 0, reverse=True),
        jnp.cumsum(x[1:] * x[:-1], 0).max(0),
        jnp.cumsum(x.astype(jnp.int32), 0),
        lax.cummin(x[1:] - x[:-1], 0, reverse=True).max(0)))


@step
def ordered():
    return of_lines(lambda x: (jnp.sort(x, 0), jnp.argsort(-x, 0),
                               lax.top_k(x.T, 4)))


@step
def spectrum():
    return of_lines(lambda x: jnp.fft.ifft(jnp.fft.fft(x, axis=0) * 2, axis=0))


@step
def spectrum_2d():
    return of_lines(lambda x: jnp.fft.fft2(x))


@step
def solved():
    return jax.jit(lambda a, b: lax.linalg.triangular_solve(
        jnp.tril(a) + 8 * jnp.eye(8), b, left_side=True, lower=True)).trace(
            arg(line, P(), 8, 8), arg(line, P(None, "d"), 8, 64)).lower(
                lowering_platforms=("tpu",))  # as an operation


@step
def greatest():
    return of_lines(lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 0)))


@step
def looked_up():
    ids = jax.ShapeDtypeStruct((12,), jnp.int32,
                               sharding=NamedSharding(line, P()))
    return of_lines(lambda t, i: t[i], ids)


@step
def added_to_rows():
    ids = jax.ShapeDtypeStruct((12,), jnp.int32,
                               sharding=NamedSharding(line, P()))
    return of_lines(lambda t, i: t.at[i].add(1.), ids)


@step
def cache():
    def f(x, at, row):
        x = lax.dynamic_update_slice(x, row, (at, 0))
        return x, lax.dynamic_slice(x, (at - 3, 0), (2, 16))
    return of_lines(f, jax.ShapeDtypeStruct((), jnp.int32),
                    arg(line, P(), 4, 16))


@step
def conv_dp():
    w = {"convs": [arg(line, P(), 3, 3, 3, 16), arg(line, P(), 3, 3, 16, 24),
                   arg(line, P(), 3, 3, 1, 24)],
         "out": arg(line, P(), 24, 10)}
    return jax.jit(lambda w, x, y: sgd(conv_loss, w, x, y)).lower(
        w, arg(line, P("d"), 32, 16, 16, 3), arg(line, P("d"), 32, 10))


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


@step
def accumulated():
    """Gradients of four parts of a batch, one after the other."""
    def f(w, xs):
        def part(acc, x):
            loss, g = jax.value_and_grad(
                lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)
            return (acc[0] + loss, acc[1] + g), None
        acc, _ = lax.scan(part, (jnp.float32(0), jnp.zeros_like(w)), xs)
        return acc[0], w - 0.1 * acc[1]
    return jax.jit(f).lower(arg(line, P(), 32, 16),
                            arg(line, P(None, "d"), 4, 64, 32))


# ---- a small transformer by Adam ----

L, D, H, K, F, V, B, T = 3, 32, 4, 8, 64, 40, 16, 8
SHAPES = {"q": (D, H, K), "k": (D, H, K), "v": (D, H, K), "o": (H, K, D),
          "up": (D, F), "down": (F, D), "g": (D,)}
HALVES = {"q": P(None, "y"), "k": P(None, "y"), "v": P(None, "y"),
          "o": P("y"), "up": P(None, "y"), "down": P("y"), "g": P()}


def norm(x, g):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-2) * g


def layer(p, x):
    h = norm(x, p["g"])
    q, k, v = [jnp.einsum("btd,dhk->bthk", h, p[n]) for n in "qkv"]
    s = jnp.einsum("bthk,bshk->bhts", q, k) / K
    s = jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e9)
    a = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(s, axis=-1), v)
    x = x + jnp.einsum("bthk,hkd->btd", a, p["o"])
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def transformer_loss(p, ids):
    x = p["embed"][ids]
    for w in p["layers"]:
        x = layer(w, x)
    logits = jax.nn.log_softmax(x @ p["embed"].T / D)
    return -jnp.mean(jnp.take_along_axis(logits[:, :-1], ids[:, 1:, None], -1))


def adam(p, m, v, ids):
    loss, g = jax.value_and_grad(transformer_loss)(p, ids)
    m = jax.tree.map(lambda m, a: .9 * m + .1 * a, m, g)
    v = jax.tree.map(lambda v, a: .99 * v * v + .01 * a * a, v, g)
    p = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1), p, m, v)
    return loss, p, m, v


def transformer(mesh, embed, weights, ids):
    p = {"embed": arg(mesh, embed, V, D),
         "layers": [{n: arg(mesh, weights(n), *s) for n, s in SHAPES.items()}
                    for _ in range(L)]}
    out = jax.tree.map(lambda a: a.sharding, p)
    return jax.jit(adam, donate_argnums=(0, 1, 2), out_shardings=(
        NamedSharding(mesh, P()), out, out, out)).lower(
        p, p, p, jax.ShapeDtypeStruct((B, T), jnp.int32,
                                      sharding=NamedSharding(mesh, ids)))


@step
def transformer_dp():
    return transformer(line, P(), lambda n: P(), P("d"))


@step
def transformer_fsdp():
    return transformer(line, P("d"), lambda n: P(None, "d") if len(
        SHAPES[n]) == 2 else P("d") if n != "o" else P(None, None, "d"), P("d"))


@step
def transformer_tp():
    return transformer(grid, P(), HALVES.get, P("x"))


# ---- a mixture of experts: 16 experts of 32 x 64, two a device ----

EXPERTS, GROUPS, TOKENS, ROOM = 16, 8, 32, 4


def moe_loss(p, x, y):
    def on(a, *spec):
        return lax.with_sharding_constraint(a, NamedSharding(line, P(*spec)))
    gates = jax.nn.softmax(x @ p["router"])
    best = jax.nn.one_hot(jnp.argmax(gates, -1), EXPERTS)
    at = jnp.cumsum(best, 1) * best - 1
    where = best[..., None] * jax.nn.one_hot(at.astype(jnp.int32), ROOM)
    sent = on(jnp.einsum("gsec,gsd->egcd", where, x), None, "d")
    h = jax.nn.relu(jnp.einsum("egcd,edf->egcf", on(sent, "d"), p["in"]))
    h = on(jnp.einsum("egcf,efd->egcd", h, p["out"]), "d")
    back = on(h, None, "d")
    out = jnp.einsum("gsec,gse,egcd->gsd", where, gates, back)
    return jnp.mean((out - y) ** 2)


@step
def moe():
    p = {"router": arg(line, P(), 32, EXPERTS),
         "in": arg(line, P("d"), EXPERTS, 32, 64),
         "out": arg(line, P("d"), EXPERTS, 64, 32)}
    x = arg(line, P("d"), GROUPS, TOKENS, 32)
    out = jax.tree.map(lambda a: a.sharding, p)
    return jax.jit(lambda p, x, y: sgd(moe_loss, p, x, y), out_shardings=(
        NamedSharding(line, P()), out)).lower(p, x, x)


@step
def manual_fsdp():
    """What gathers weights and scatters gradients along x says so itself; y, of
    tensor parallelism, is left automatic."""
    def loss(p, x, y):
        w1 = lax.all_gather(p["w1"], "x", axis=0, tiled=True)
        w2 = lax.all_gather(p["w2"], "x", axis=1, tiled=True)
        return jnp.sum((jnp.tanh(x @ w1) @ w2 - y) ** 2)

    def body(p, x, y):
        return jax.tree.map(lambda w, g: w - 0.1 * g, p,
                            jax.grad(loss)(p, x, y))
    specs = {"w1": P("x"), "w2": P(None, "x")}
    p = {"w1": arg(grid, P("x", "y"), 32, 64),
         "w2": arg(grid, P("y", "x"), 64, 16)}
    f = jax.shard_map(body, mesh=grid, in_specs=(specs, P("x"), P("x")),
                      out_specs=specs, axis_names={"x"}, check_vma=False)
    return jax.jit(f).lower(p, arg(grid, P("x"), 64, 32),
                            arg(grid, P("x"), 64, 16))


@step
def moved_parts():
    """One array from each of these to the other, [64, 16, 8] over 4 x 2."""
    pairs = [(P("x", "y"), P(None, "x")), (P("x", None, "y"), P(None, "y", "x")),
             (P(("x", "y")), P(("y", "x"))), (P("y"), P(None, "x")),
             (P("x"), P(None, ("y", "x")))]

    def f(*a):
        return [x * 2 for x in a]
    return jax.jit(f, out_shardings=[NamedSharding(grid, to) for _, to in pairs]
                   ).lower(*[arg(grid, s, 64, 16, 8) for s, _ in pairs])


def main(out):
    for name, lower in STEPS.items():
        with open(os.path.join(out, name + ".mlir"), "w") as f:
            f.write(lower().as_text())


if __name__ == "__main__":
    main(*sys.argv[1:])
