"""One process of several under jax.distributed: number, count, port, how it
ends.  A case that goes well prints ok."""
import os
import sys

import jax
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

sys.stdout.reconfigure(line_buffering=True)  # it may end by a signal
ME, PROCESSES, PORT = map(int, sys.argv[1:4])
ENDS = sys.argv[4]
LAST = ME == PROCESSES - 1
jax.distributed.initialize(f"127.0.0.1:{PORT}", PROCESSES, ME)
MESH = Mesh(np.array(jax.devices()), ("x",))
N = MESH.size


def spread(a, spec=P("x"), mesh=MESH):
    return jax.make_array_from_callback(a.shape, NamedSharding(mesh, spec),
                                        lambda i: a[i], dtype=a.dtype)


def over(f, out=P("x"), **how):
    return jax.jit(jax.shard_map(f, mesh=MESH, in_specs=P("x"), out_specs=out,
                                 **how))


def check(name, y, want):
    assert y.shape == want.shape, (name, y.shape, want.shape)
    for s in y.addressable_shards:
        np.testing.assert_allclose(np.asarray(s.data), want[s.index],
                                   rtol=1e-5, err_msg=name)
    print("ok", name)


def collectives():
    a = np.arange(N * N * 8, dtype=np.float32).reshape(N * N, 8)
    b, x = a.reshape(N, N, 8), spread(a)
    check("psum", over(lambda v: lax.psum(v, "x"), P())(x), b.sum(0))
    check("pmax", over(lambda v: lax.pmax(v, "x"), P())(x), b.max(0))
    check("all_gather", over(lambda v: lax.all_gather(v, "x", tiled=True), P(),
                             check_vma=False)(x), a)
    check("all_to_all", over(lambda v: lax.all_to_all(v, "x", 0, 0))(x),
          b.transpose(1, 0, 2).reshape(a.shape))
    ring = [(i, (i + 1) % N) for i in range(N)]
    check("ppermute", over(lambda v: lax.ppermute(v, "x", ring))(x),
          np.roll(b, 1, 0).reshape(a.shape))
    check("one pair", over(lambda v: lax.ppermute(v, "x", [(0, N - 1)]))(x),
          np.concatenate([0 * b[:-1], b[:1]]).reshape(a.shape))
    check("psum_scatter", over(lambda v: lax.psum_scatter(v, "x", tiled=True))
          (x), b.sum(0))
    check("axis_index", over(lambda v: v + lax.axis_index("x"))(x),
          (b + np.arange(N, dtype=np.float32)[:, None, None]).reshape(a.shape))


def shardings():
    """What jit makes of shardings, sums and products over processes among it."""
    a = np.arange(N * 16.0, dtype=np.float32).reshape(4 * N, 4) / 7
    x = spread(a)
    check("sum", jax.jit(lambda v: v.sum(0))(x), a.sum(0))
    check("product", jax.jit(lambda v: v.T @ v)(x), a.T @ a)
    whole = NamedSharding(MESH, P())
    check("gathered", jax.jit(lambda v: v * 2, out_shardings=whole)(x), a * 2)
    check("device_put", jax.device_put(x, whole), a)
    two = Mesh(np.array(jax.devices()).reshape(2, -1), ("x", "y"))
    grid = spread(a, P("x", None), two)
    w = spread(a.T.copy(), P(None, "y"), two)
    check("two axes", jax.jit(lambda u, v: (u @ v).sum(1))(grid, w),
          (a @ a.T).sum(1))
    big = np.random.default_rng(0).standard_normal((N * 512, 300))
    big = big.astype(np.float32)
    y = over(lambda v: lax.psum(v, "x"), P())(spread(big))
    want = big.reshape(N, 512, 300)
    total = want[0]
    for part in want[1:]:
        total = total + part
    for s in y.addressable_shards:  # in the order of participants
        assert np.array_equal(np.asarray(s.data), total)
    print("ok same bits")


def of_some():
    """Programs of one process alone run beside those of all."""
    one = jax.jit(lambda v: v + 1)(np.float32(ME))
    assert float(one) == ME + 1
    mine = Mesh(np.array(jax.local_devices()), ("x",))
    a = np.arange(len(jax.local_devices()) * 2.0, dtype=np.float32)
    check("of one process", jax.jit(lambda v: v.sum())(
        jax.device_put(a, NamedSharding(mine, P("x")))), a.sum())
    theirs = Mesh(np.array([d for d in jax.devices()
                            if d.process_index == PROCESSES - 1]), ("x",))
    b = np.arange(theirs.size * 2.0, dtype=np.float32)
    check("of another", jax.jit(lambda v: v * 2)(
        spread(b, P("x"), theirs)), b * 2)


def utilities():
    from jax.experimental import multihost_utils
    got = multihost_utils.process_allgather(np.array([ME, 2 * ME]))
    assert got.tolist() == [[i, 2 * i] for i in range(PROCESSES)], got
    multihost_utils.sync_global_devices("here")
    got = multihost_utils.broadcast_one_to_all(np.arange(3) + ME)
    assert got.tolist() == [0, 1, 2], got
    multihost_utils.assert_equal(np.int32(7), "they differ")
    print("ok utilities")


def fails(f, x, *words):
    try:
        f(x).block_until_ready()
    except Exception as e:
        assert any(w in str(e) for w in words), e
    else:
        raise AssertionError("no error")


def ends():
    x = spread(np.arange(4.0 * N, dtype=np.float32))
    total = over(lambda v: lax.psum(v, "x"), P())
    total(x).block_until_ready()

    def host(v):
        if LAST:
            raise ValueError("too much")
        return np.asarray(v)

    def asks(v):
        v = jax.pure_callback(host, jax.ShapeDtypeStruct(v.shape, v.dtype), v)
        return lax.psum(v, "x")

    who = f"process {PROCESSES - 1} of {PROCESSES}"
    fails(over(asks, P()), x, "too much" if LAST else who)
    total(x).block_until_ready()
    if LAST and ENDS == "killed":
        os.kill(os.getpid(), 9)
    if LAST:
        os._exit(0)
    fails(total, x, f"{who} is gone")
    fails(total, x, f"{who} is gone")
    print("ok ends")
    os._exit(0)  # JAX's own service would wait for who is gone


for part in (collectives, shardings, of_some, utilities, ends):
    part()
