"""Programs over several devices: each on SUNDOG_HOST_DEVICES devices of `xpu`
(SUNDOG_CL_SPLIT of cl; as many cuda devices) and on as many of JAX's CPU, whose results it must equal.  Arguments: names of
programs (none: all).  One line a program: `ok NAME`, or what is wrong."""
import os
import re
import sys
import traceback
from functools import partial

from environment import cpu_devices

N = int(os.environ["SUNDOG_CL_SPLIT"]
        if os.environ.get("SUNDOG_DEVICE") == "cl" else
        os.environ.setdefault("SUNDOG_HOST_DEVICES", "8"))
os.environ["XLA_FLAGS"] = cpu_devices(N)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax._src.lax import parallel  # noqa: E402
from jax.experimental import io_callback  # noqa: E402
from jax.experimental.custom_partitioning import (  # noqa: E402
    custom_partitioning)
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

PROGRAMS = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def line(devices):
    return Mesh(np.array(devices), ("x",))


def grid(devices):
    return Mesh(np.array(devices).reshape(-1, 2), ("x", "y"))


def whole(n, k):
    return np.arange(n * k, dtype=np.float32).reshape(n, k) % 97


def mapped(mesh, f, *args, out=P("x"), spec=P("x")):
    fn = jax.shard_map(f, mesh=mesh, in_specs=(spec,) * len(args),
                       out_specs=out)
    return jax.jit(fn)(*args)


# ---- collectives by hand ----

@program
def psum(devices):
    return mapped(line(devices), lambda a: lax.psum(a, "x"), whole(N, 6),
                  out=P())


@program
def psum_large(devices):
    return mapped(line(devices), lambda a: lax.psum(a, "x"),
                  whole(N, 100003), out=P())


@program
def pmean_pmax_pmin(devices):
    def f(a):
        return lax.pmean(a, "x"), lax.pmax(a, "x"), lax.pmin(a, "x")
    return mapped(line(devices), f, whole(N, 5), out=P())


@program
def started_and_done(devices):
    """JAX 0.10 sends operations, 0.11 custom calls."""
    n = len(devices)
    ring = [(i, (i + 1) % n) for i in range(n)]

    def f(a):
        started = [parallel.psum_start(a, "x"),
                   parallel.all_gather_start(a, "x", tiled=True),
                   parallel.psum_scatter_start(a, "x", tiled=True),
                   parallel.all_to_all_start(a, "x", 0, 0, tiled=True),
                   parallel.ppermute_start(a, "x", ring)]
        return (jnp.tanh(a), *(s.done() for s in started))
    return mapped(line(devices), f, whole(n * n, 6))


@program
def psum_of_types(devices):
    out = []
    for t in (np.int8, np.uint32, np.int32, np.float16, jnp.bfloat16,
              np.complex64):
        out.append(mapped(line(devices), lambda a: lax.psum(a, "x"),
                          (whole(N, 5) % 7).astype(t), out=P()))
    return out


@program
def psum_of_axes(devices):
    m = grid(devices)
    x = whole(N, 8)
    return [mapped(m, lambda a: lax.psum(a, "y"), x, spec=P("x", "y"),
                   out=P("x")),
            mapped(m, lambda a: lax.psum(a, "x"), x, spec=P("x", "y"),
                   out=P(None, "y")),
            mapped(m, lambda a: lax.psum(a, ("x", "y")), x, spec=P("x", "y"),
                   out=P())]


@program
def psum_of_a_tree(devices):
    def f(a):
        return lax.psum({"a": a, "b": [a * 2, (a > 3).astype(jnp.int32)]}, "x")
    return mapped(line(devices), f, whole(N, 5), out=P())


@program
def all_gather(devices):
    def f(a):
        return (lax.all_gather(a, "x"), lax.all_gather(a, "x", tiled=True),
                lax.all_gather(a, "x", axis=1, tiled=True))
    return mapped(line(devices), f, whole(N, 6), out=P("x"))


@program
def psum_scatter(devices):
    def f(a):
        return (lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True),
                lax.psum_scatter(a.reshape(N, -1), "x"))
    return mapped(line(devices), f, whole(N, 16), out=P("x"))


@program
def all_to_all(devices):
    def f(a):
        b = a.reshape(N, -1)
        return (lax.all_to_all(b, "x", 0, 0, tiled=True),
                lax.all_to_all(b, "x", 0, 1, tiled=True),
                lax.all_to_all(b.T, "x", 1, 0, tiled=True))
    return mapped(line(devices), f, whole(N, 8 * 24), out=P("x"))


@program
def ppermute(devices):
    def f(a):
        ring = [(i, (i + 1) % N) for i in range(N)]
        return (lax.ppermute(a, "x", ring), lax.ppermute(a, "x", ring[:-2]),
                lax.pshuffle(a, "x", [(3 * i) % N for i in range(N)]))
    return mapped(line(devices), f, whole(N, 5), out=P("x"))


@program
def axis_index(devices):
    m = grid(devices)

    def f(a):
        return a + 10 * lax.axis_index("x") + 1000 * lax.axis_index("y")
    return mapped(m, f, whole(N, 4), spec=P("x", "y"), out=P("x", "y"))


@program
def in_a_loop(devices):
    def f(a):
        def turn(i, x):
            return x + lax.psum(x, "x") / (i + 2.0)
        return lax.fori_loop(0, 5, turn, a)
    return mapped(line(devices), f, whole(N, 5))


@program
def in_a_scan(devices):
    def f(a):
        def turn(x, _):
            x = lax.ppermute(x, "x", [(i, (i + 1) % N) for i in range(N)])
            return x, lax.psum(x, "x")
        x, ys = lax.scan(turn, a, None, length=3)
        return x, ys[None]
    return mapped(line(devices), f, whole(N, 5))


@program
def beside_a_loop(devices):
    """The loop is one kernel, and its steps' kernels go; the sum's stays."""
    def f(a):
        x = lax.psum(a, "x")
        ys = lax.scan(lambda c, y: (c * 0.5 + y, c), x[0], x)[1]
        return ys + lax.psum(ys * a, "x")
    return mapped(line(devices), f, whole(4 * N, 5), out=P())


@program
def scanned_into_parts(devices):
    """A position of the results a device: each turn is one device's."""
    m = line(devices)

    def f(x):
        return lax.scan(lambda c, y: (c + y, c), jnp.zeros(3), x)[1]
    return jax.jit(f, out_shardings=NamedSharding(m, P("x")))(
        put(whole(N, 3), m, P()))


@program
def in_a_branch(devices):
    def f(a):
        some = lax.psum(a.sum(), "x") > 10
        return lax.cond(some, lambda x: lax.psum(x, "x"),
                        lambda x: lax.pmax(x, "x"), a)
    return mapped(line(devices), f, whole(N, 5), out=P())


@program
def gradient(devices):
    def loss(w, x):
        y = jnp.tanh(x @ w)
        return lax.pmean((y * y).sum(), "x")

    def f(w, x):
        return jax.grad(loss)(w, x)
    m = line(devices)
    fn = jax.shard_map(f, mesh=m, in_specs=(P(), P("x")), out_specs=P())
    return jax.jit(fn)(whole(4, 3) / 50, whole(N, 4) / 90)


@program
def ring_of_products(devices):
    def f(a, b):
        def turn(i, s):
            b, y = s
            y = y + a @ b
            return lax.ppermute(b, "x", [(j, (j + 1) % N)
                                         for j in range(N)]), y
        zero = lax.pcast(jnp.zeros((4, 4)), "x", to="varying") \
            if hasattr(lax, "pcast") else jnp.zeros((4, 4)) + 0 * a[:, :4]
        return lax.fori_loop(0, N, turn, (b, zero))[1]
    return mapped(line(devices), f, whole(4 * N, 4) / 9, whole(4 * N, 4) / 9)


@program
def callback(devices):
    def f(a):
        b = jax.pure_callback(lambda v: np.asarray(v) * 2,
                              jax.ShapeDtypeStruct(a.shape, a.dtype), a)
        return lax.psum(b, "x")
    return mapped(line(devices), f, whole(N, 5), out=P())


# ---- pmap ----

@program
def pmap_psum(devices):
    f = jax.pmap(lambda a: lax.psum(a, "i"), "i", devices=devices)
    return f(whole(N, 5))


@program
def pmap_train(devices):
    @partial(jax.pmap, axis_name="i", devices=devices)
    def step(w, x):
        g = jax.grad(lambda w: ((x @ w) ** 2).mean())(w)
        return w - 0.01 * lax.pmean(g, "i")
    w = np.broadcast_to(whole(3, 2) / 9, (N, 3, 2))
    for _ in range(3):
        w = step(w, whole(N * 4, 3).reshape(N, 4, 3) / 97)
    return w


@program
def pmap_rng(devices):
    f = jax.pmap(lambda k: jax.random.uniform(k, (4,)), devices=devices)
    return f(jax.random.split(jax.random.key(3), N))


# ---- shardings, which the compiler cuts by ----

def put(x, mesh, spec):
    return jax.device_put(x, NamedSharding(mesh, spec))


@program
def elementwise_sharded(devices):
    x = put(whole(N, 6), line(devices), P("x"))
    return jax.jit(lambda a: jnp.sin(a) * 2 + a)(x)


@program
def resharded(devices):
    m = grid(devices)
    x = put(whole(N, 8), m, P("x", "y"))
    out = NamedSharding(m, P("y", "x"))
    return jax.jit(lambda a: a + 1, out_shardings=out)(x)


@program
def replicated_and_sharded(devices):
    m = line(devices)
    x, w = put(whole(2 * N, 8), m, P("x")), put(whole(8, 5), m, P())
    return jax.jit(lambda a, b: (a @ b, (a @ b).sum(0)))(x, w)


@program
def constrained(devices):
    m = grid(devices)

    def f(a):
        b = lax.with_sharding_constraint(a * 2, NamedSharding(m, P(None, "y")))
        return b.sum(1), b.T
    return jax.jit(f)(put(whole(N, 8), m, P("x", "y")))


@program
def constrained_types(devices):
    """What Shardy's operations read and give has types of MLIR's own dialect."""
    m = line(devices)
    names = ["bool", "int2", "uint4", "int8", "uint64", "float16", "bfloat16",
             "float64", "complex64", "float8_e3m4", "float8_e4m3",
             "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
             "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
             "float4_e2m1fn"]

    def f(a):
        a = lax.with_sharding_constraint(a, NamedSharding(m, P(None, "x")))
        return jnp.flip(a, 0)
    x = whole(N, N) % 2 + 1
    return [jax.jit(f)(put(x.astype(getattr(jnp, t)), m, P("x")))
            .astype(jnp.float32) for t in names]


@program
def unreduced(devices):
    """What is left to be summed stays apart: each device's part is looked at."""
    types = (jax.sharding.AxisType.Explicit,)
    m = Mesh(np.array(devices), ("x",), axis_types=types)
    sums = NamedSharding(m, P(None, None, unreduced={"x"}))

    def product(a, b):
        return jnp.einsum("ab,bc->ac", a, b, out_sharding=sums)

    def same(a):
        return jax.shard_map(lambda a: lax.pcast(a, "x", to="unreduced"),
                             mesh=m, in_specs=P("x"),
                             out_specs=P(unreduced={"x"}))(a)
    with jax.set_mesh(m):
        x = put(whole(N, 6), m, P("x"))
        parts = [jax.jit(same)(x), jax.jit(lambda a: a, out_shardings=sums)(x),
                 jax.jit(product)(put(whole(6, N), m, P(None, "x")), x)]
        sums = [jax.jit(lambda a: jax.sharding.reshard(a, P()))(a)
                for a in parts]
        return [s.data for a in parts for s in a.addressable_shards] + sums


def in_parts(devices, f, *args):
    """f of args in parts along their first dimension: nothing is gathered."""
    args = [put(a, line(devices), P("x")) for a in args]
    fn = jax.jit(f)
    if devices[0].platform == "xpu":
        assert "all-" not in fn.lower(*args).compile().as_text()
    return fn(*args)


def matrices(n, k):
    rng = np.random.default_rng(n)
    return rng.standard_normal((2 * N, n, k), np.float32)


@program
def matrices_by_themselves(devices):
    linalg = lax.linalg

    def f(a, b):
        c = a @ a.mT + jnp.eye(5)
        x, y = linalg.cholesky(c), linalg.eigh(c)[1]
        q, r = linalg.qr(a, full_matrices=False)
        lu, pivots, perm = linalg.lu(a)
        s = linalg.svd(a, full_matrices=False)[1]
        z = linalg.triangular_solve(x, b, left_side=True, lower=True)
        return (x, y, jnp.abs(q), jnp.abs(r), lu, pivots, perm, s, z,
                jnp.fft.fft2(a), jnp.fft.rfft(b))
    return in_parts(devices, f, matrices(5, 5), matrices(5, 4))


@program
def rows_by_themselves(devices):
    def f(a):
        i = jnp.argsort(a, axis=1)
        values, where = lax.top_k(a, 3)
        keys = lax.sort((jnp.floor(a), a), num_keys=2, dimension=1)
        return i, jnp.take_along_axis(a, i, 1), values, where, *keys
    return in_parts(devices, f, matrices(7, 4))


@program
def places_by_themselves(devices):
    def f(a, i):
        b = jax.vmap(lambda x, k: x.at[k].add(2.0))(a, i)
        return (b, jax.vmap(lambda x, k: x[k])(a, i), a[:, 1:3],
                a.at[:, jnp.array([3, 1])].set(0), jnp.arange(9.0)[i])
    i = np.arange(N * 6, dtype=np.int32).reshape(2 * N, 3) % 7
    return in_parts(devices, f, matrices(7, 4), i)


@program
def made_anew(devices):
    """Nothing of the whole's shape is left of what is made on the way."""
    shape = (6 * N, 37)

    def f(x):
        key = jax.random.key(jnp.uint32(7))
        with jax.threefry_partitionable(True):
            y = jax.random.bits(key, shape)
        at = lax.broadcasted_iota(jnp.bfloat16, shape, 0)
        more = jnp.arange(6 * N, dtype=jnp.uint8)[:, None] * 3
        return x + y.astype(jnp.float32), x + at, x + more, x.T + y.T
    x = put(whole(*shape), line(devices), P("x"))
    fn = jax.jit(f)
    if devices[0].platform == "xpu" and N > 1:
        text = fn.lower(x).compile().as_text()
        assert f"[{shape[0]},{shape[1]}]" not in text, text
        assert "all-" not in text
    return fn(x)


@program
def data_parallel(devices):
    m = line(devices)

    def loss(p, x, y):
        h = jnp.tanh(x @ p["a"] + p["b"])
        return ((h @ p["c"] - y) ** 2).mean()

    @jax.jit
    def step(p, x, y):
        l, g = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda a, b: a - 0.1 * b, p, g), l
    p = {"a": whole(6, 8) / 97, "b": np.zeros(8, np.float32),
         "c": whole(8, 2) / 97}
    p = jax.tree.map(lambda a: put(a, m, P()), p)
    x, y = (put(whole(4 * N, k) / 97, m, P("x")) for k in (6, 2))
    for _ in range(3):
        p, l = step(p, x, y)
    return p, l


@program
def donated(devices):
    m = line(devices)
    f = jax.jit(lambda a: a * 2 + 1, donate_argnums=0)
    x = put(whole(N, 6), m, P("x"))
    for _ in range(3):
        x = f(x)
    return x


@program
def donated_in_vain(devices):
    """No result is as large as the argument: it stays."""
    x = put(whole(N, 6), line(devices), P("x"))
    return jax.jit(lambda a: a @ a.T, donate_argnums=0)(x), x


@program
def some_of_the_devices(devices):
    m = Mesh(np.array(devices)[::-1][:N // 2], ("x",))
    return mapped(m, lambda a: lax.psum(a, "x") + lax.axis_index("x"),
                  whole(N, 6))


@program
def many_in_flight(devices):
    f = jax.jit(jax.shard_map(lambda a: lax.psum(a, "x") / N + a,
                              mesh=line(devices), in_specs=P("x"),
                              out_specs=P("x")))
    g = jax.jit(lambda a: a * 0.5)
    x = whole(N, 6)
    for _ in range(30):
        x = g(f(x))
        if devices[0].platform == "cpu":  # which has threads for few at once
            x.block_until_ready()
    return x


@program
def layouts(devices):
    """Of an array that lies by columns each device has its part so."""
    from jax.experimental.layout import Format, Layout
    s = NamedSharding(grid(devices), P("x", "y"))
    by_columns = Format(Layout((1, 0)), s)
    a = jax.device_put(whole(4 * N, 6), by_columns)
    b = jax.device_put(whole(4 * N, 6), s)
    assert a.format.layout.major_to_minor == (1, 0), a.format
    y, z = jax.jit(lambda a, b: (a + 1, a - b[::-1]),
                   out_shardings=(by_columns, s))(a, b)
    assert y.format.layout.major_to_minor == (1, 0), y.format
    auto = jax.jit(lambda b: b.T, out_shardings=Format(Layout.AUTO))
    t = auto.lower(b).compile()(b)
    assert t.format.layout.major_to_minor == (1, 0), t.format
    return a, y, z, t


@program
def turned_round(devices):
    """Along dimensions that are cut: parts change places."""
    m = grid(devices)
    a = jax.device_put(whole(4 * N, 2 * N), NamedSharding(m, P("x", "y")))
    b = jax.device_put(whole(6, 4 * N), NamedSharding(m, P(None, ("y", "x"))))
    return jax.jit(lambda a, b: (a[::-1], a[:, ::-1] * 2, a[::-1, ::-1],
                                 b[::-1, ::-1] + 1))(a, b)


@program
def automatic_axes(devices):
    """What a manual computation leaves automatic stays in parts through it."""
    m = Mesh(np.array(devices).reshape(2, -1), ("x", "y"))
    a = jax.device_put(whole(4 * N, 2 * N), NamedSharding(m, P("x", "y")))

    def local(a):
        def turn(c, k):
            return jnp.tanh(c) + k * lax.axis_index("x"), c.sum()
        return lax.scan(turn, a, jnp.arange(3.))

    f = jax.shard_map(local, mesh=m, in_specs=P("x"), out_specs=(P("x"), P()),
                      axis_names={"x"}, check_vma=False)
    g = jax.shard_map(lambda a: lax.psum(a * 2, "x"), mesh=m, in_specs=P("x"),
                      out_specs=P(), axis_names={"x"})
    y, sums = jax.jit(f)(a)
    z = jax.jit(g)(a)
    assert y.sharding.spec == P("x", "y"), y.sharding.spec
    return y, z, jax.jit(jax.grad(lambda a: (g(a) ** 2).sum()))(a)


@custom_partitioning
def centered(x, w):
    """Rows less their mean, times w; summed."""
    y = (x - x.mean(1, keepdims=True)) @ w
    return y, y.sum(0)


def centered_in_parts(mesh, args, results):
    x, w = args
    axes = x.sharding.spec[0]

    def parts(x, w):
        y = (x - x.mean(1, keepdims=True)) @ w
        return y, lax.psum(y.sum(0), axes) if axes else y.sum(0)
    rows = NamedSharding(mesh, P(axes, None))
    everywhere = NamedSharding(mesh, P())
    return mesh, parts, (rows, everywhere), (rows, everywhere)


centered.def_partition(centered_in_parts, sharding_rule="i j, j k -> i k, k",
                       need_replication_factors=("j", "k"))


@program
def partitioned_by_hand(devices):
    """An operation whose parts its author computes, with a collective."""
    m = line(devices)
    x, w = whole(4 * N, 8), whole(8, 8)
    f = jax.jit(centered)
    if devices[0].platform == "cpu":  # which cannot
        return [jax.jit(centered.fun)(x, w)] * 3
    y = f(put(x, m, P("x")), put(w, m, P(None, "x")))
    assert y[0].sharding.is_equivalent_to(NamedSharding(m, P("x")), 2)
    return y, f(put(x, m, P()), put(w, m, P())), f(put(x, m, P("x")),
                                                   put(w, m, P("x")))


@program
def shardings_inside(devices):
    m = line(devices)
    seen = []

    @jax.jit
    def f(a):
        b = a * 2
        jax.debug.inspect_array_sharding(b, callback=seen.append)
        c = b.sum(0)
        jax.debug.inspect_array_sharding(c, callback=seen.append)
        return c
    with jax.set_mesh(m):
        c = f(put(whole(4 * N, 6), m, P("x")))
    assert [s.spec for s in seen] == [P("x"), P()], seen
    return c


@program
def alike(devices):
    try:
        from jax.experimental.shard_alike import shard_alike
    except ImportError:  # JAX 0.11 has none
        return []
    m = grid(devices)
    s = NamedSharding(m, P("x", "y"))
    a = put(whole(4 * N, 6), m, P("x", "y"))

    @jax.jit
    def f(a):
        b = jnp.cumsum(jnp.ones(a.shape), 1)  # which nothing else would cut
        c, d = shard_alike(a * 2, b)
        return c + d, shard_alike(d, jnp.flip(a, 0))
    out = f(a)
    assert all(y.sharding.is_equivalent_to(s, 2) for y in jax.tree.leaves(out))
    return out


@program
def ordered_callbacks(devices):
    m = line(devices)
    seen = []

    def f(a):
        io_callback(lambda a: seen.append(a.sum()), (), a, ordered=True)
        return a + 1
    y = mapped(m, f, whole(N, 6))
    jax.effects_barrier()
    assert len(seen) == N, seen
    return y


@program
def sums_are_named(devices):
    """A program's text has its collectives, not what they are made of."""
    x = put(whole(4 * N, 6), line(devices), P("x"))
    f = jax.jit(lambda a: (jnp.tanh(a).sum(), a.max(0)))
    text = f.lower(x).compile().as_text()
    assert len(re.findall(r"all-reduce(-start)?\(", text)) == 2, text
    return f(x)


@program
def open_arguments(devices):
    """Arguments that say nothing of their sharding come as all who read them
    want them."""
    x = whole(4 * N, 6)
    f = jax.jit(lambda a, b, c, d: (a + b, c @ a, d * 2, (a @ d, d.sum())))
    args = (put(x, line(devices), P("x")), x, x.T / 9, whole(6, 5))
    came = [str(s.spec)
            for s in f.lower(*args).compile().input_shardings[0]]
    assert came == ["P('x',)", "P('x',)", "P(None, 'x')", "P()"], came
    return f(*args)


# ---- held against JAX's CPU ----

def leaves(out):
    return [np.asarray(a) for a in jax.tree.leaves(out)]


def shardings(out):
    return [str(a.sharding.spec) if hasattr(a.sharding, "spec") else ""
            for a in jax.tree.leaves(out)]


def differs(name):
    with jax.default_device(jax.devices("xpu")[0]):
        ours = PROGRAMS[name](jax.devices("xpu")[:N])
        got, specs = leaves(ours), shardings(ours)
    with jax.default_device(jax.devices("cpu")[0]):
        theirs = PROGRAMS[name](jax.devices("cpu")[:N])
        want = leaves(theirs)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{i}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        if a.dtype.kind in "biu":
            if not np.array_equal(a, b):
                return f"{i}: {a.ravel()[:8]}, not {b.ravel()[:8]}"
            continue
        a, b = (x.astype(np.complex64 if x.dtype.kind == "c" else np.float64)
                for x in (a, b))
        if not np.allclose(a, b, rtol=2e-5, atol=1e-5):
            return f"{i}: {a.ravel()[:8]}, not {b.ravel()[:8]}"
    if specs != shardings(theirs):
        print(f"note {name}: {specs}, JAX's CPU {shardings(theirs)}")
    return None


def main():
    assert len(jax.devices("xpu")) == N, jax.devices("xpu")
    bad = 0
    for name in sys.argv[1:] or PROGRAMS:
        try:
            wrong = differs(name)
        except Exception:  # noqa: BLE001
            wrong = traceback.format_exc(limit=-4)[-1500:]
        print(f"{name}: {wrong}" if wrong else f"ok {name}", flush=True)
        bad += wrong is not None
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
