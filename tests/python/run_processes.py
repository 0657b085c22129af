"""One process of several under jax.distributed: number (mpi: its rank), count,
port, how it ends.  A case that goes well prints ok."""
import os
import sys
import traceback

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental.layout import Format, Layout
from jax.sharding import (Mesh, NamedSharding, PartitionSpec as P,
                          SingleDeviceSharding)

sys.stdout.reconfigure(line_buffering=True)  # it may end by a signal
ME, PROCESSES, PORT = map(int, (os.environ["PMI_RANK"] if sys.argv[1] == "mpi"
                                else sys.argv[1], *sys.argv[2:4]))
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


def on(device, a):
    """An array of another process's device, or of one here: so JAX has it."""
    mine = device.process_index == ME
    return jax.make_array_from_single_device_arrays(
        a.shape, SingleDeviceSharding(device),
        [jax.device_put(a, device)] if mine else [], dtype=a.dtype)


def first_of(process):
    return next(d for d in jax.devices() if d.process_index == process)


def arrays():
    """What device_put takes from one process to another."""
    rng = np.random.default_rng(1)
    some = {
        "f32": np.arange(12, dtype=np.float32).reshape(3, 4),
        "bf16": np.arange(7).astype(jnp.bfloat16),
        "pred": np.arange(9) % 3 == 0,
        "s4": np.arange(-8, 8).astype(jnp.int4),
        "scalar": np.float32(3.5).reshape(()),
        "empty": np.zeros((0, 5), np.float32),
        "8 MB": rng.standard_normal((1 << 21,)).astype(np.float32),
    }
    for name, a in some.items():  # round all processes, and home again
        x = on(first_of(0), a)
        for i in [*range(1, PROCESSES), 0]:
            x = jax.device_put(x, first_of(i))
            for s in x.addressable_shards:
                assert np.array_equal(np.asarray(s.data), a), (name, i)
    print("ok arrays")
    # many at a time, in a tree; both ways at once
    trees = [{k: on(first_of(i), a + i if a.dtype == np.float32 else a)
              for k, a in some.items()} for i in (0, PROCESSES - 1)]
    there = jax.device_put(trees[0], first_of(PROCESSES - 1))
    back = jax.device_put(trees[1], first_of(0))
    for tree, i in ((there, 0), (back, PROCESSES - 1)):
        for k, x in tree.items():
            a = some[k] + i if some[k].dtype == np.float32 else some[k]
            for s in x.addressable_shards:
                assert np.array_equal(np.asarray(s.data), a), k
    print("ok trees of arrays")


def computed_arrays():
    """Such that are not there yet, deleted at once, or lie otherwise."""
    a = np.arange(2048 * 1024, dtype=np.float32).reshape(2048, 1024)
    last = PROCESSES - 1
    f = jax.jit(lambda v: (v @ v.T)[:64, :64].cumsum(0))
    x = on(first_of(0), a)
    y = on(first_of(0), np.zeros((64, 64), np.float32))
    if ME == 0:
        y = f(x.addressable_data(0))
        y = jax.device_put(y, first_of(0))
    z = jax.device_put(y, first_of(last))
    y.delete()
    if ME == last:
        want = f(jax.device_put(a, first_of(last)))
        assert np.array_equal(np.asarray(z.addressable_data(0)), want)
    both = jax.jit(lambda v: v * 2)  # of what may not have come yet
    w = on(first_of(0), a)
    w = jax.device_put(w, first_of(last))
    if ME == last:
        assert np.array_equal(np.asarray(both(w.addressable_data(0))), 2 * a)
    rows, columns = Layout(major_to_minor=(0, 1)), Layout(major_to_minor=(1, 0))
    u = on(first_of(0), a[:3, :5])
    if ME == 0:
        u = jax.device_put(u, Format(columns, SingleDeviceSharding(
            first_of(0))))
        assert u.format.layout.major_to_minor == (1, 0), u.format
    u = jax.device_put(u, first_of(last))
    if ME == last:
        assert np.array_equal(np.asarray(u.addressable_data(0)), a[:3, :5])
    print("ok computed arrays")


def meshes():
    """Shardings over devices of several processes, of which some stay."""
    by = [[d for d in jax.devices() if d.process_index == i]
          for i in range(PROCESSES)]
    one, other = (Mesh(np.array(d), ("x",)) for d in (by[0], by[-1]))
    a = np.arange(len(by[0]) * 6, dtype=np.float32).reshape(-1, 3)
    x = spread(a, P("x"), one)
    check("to another mesh", jax.device_put(x, NamedSharding(other, P("x"))),
          a)
    x = jax.device_put(spread(a, P(), one), NamedSharding(other, P()))
    check("there and back", jax.device_put(x, NamedSharding(one, P())), a)
    if PROCESSES < 3:
        return
    b = np.arange(8, dtype=np.float32)
    first, *then = (Mesh(np.array([by[i][0] for i in k]), ("x",))
                    for k in ((0, 1), (1, 2), (0, 2)))
    for name, to in zip(("to the next", "half of it stays"), then):
        x = jax.device_put(spread(b, P("x"), first),
                           NamedSharding(to, P("x")))
        check(name, x, b)


def arrays_that_fail():
    """An error of what is sent is the receiver's; so are other sizes."""
    last = PROCESSES - 1

    def host(v):
        raise ValueError("not today")

    x = on(first_of(0), np.zeros(4, np.float32))
    if ME == 0:
        bad = jax.jit(lambda v: jax.pure_callback(
            host, jax.ShapeDtypeStruct(v.shape, v.dtype), v))
        x = jax.device_put(bad(x), first_of(0))
    y = jax.device_put(x, first_of(last))
    if ME == last:
        fails(lambda v: v, y.addressable_data(0), f"process 0 of {PROCESSES}")
        fails(jax.jit(lambda v: v + 1), y.addressable_data(0), "not today")
    z = on(first_of(0), np.zeros(5 if ME == last else 4, np.float32))
    z = jax.device_put(z, first_of(last))
    if ME == last:
        fails(lambda v: v, z.addressable_data(0),
              "must move the same arrays in one order")
    w = on(first_of(0), np.zeros(4, np.int32 if ME == last else np.float32))
    w = jax.device_put(w, first_of(last))
    if ME == last:
        fails(lambda v: v, w.addressable_data(0),
              "must move the same arrays in one order")
    v = jax.device_put(on(first_of(0), np.ones(3, np.float32)), first_of(last))
    if ME == last:  # the next one is not touched
        assert np.asarray(v.addressable_data(0)).tolist() == [1, 1, 1]
    print("ok arrays that fail")


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
    if ENDS == "well":
        jax.distributed.shutdown()
        print("ok ends")
        return
    if LAST and ENDS == "killed":
        os.kill(os.getpid(), 9)
    if LAST:
        os._exit(0)
    y = jax.device_put(on(first_of(PROCESSES - 1), np.ones(3, np.float32)),
                       first_of(0))
    if ME == 0:
        fails(lambda v: v, y.addressable_data(0), f"{who} is gone")
    fails(total, x, f"{who} is gone")
    fails(total, x, f"{who} is gone")
    for _ in range(2):  # sending there is nobody's error
        jax.device_put(on(first_of(0), np.ones(3, np.float32)),
                       first_of(PROCESSES - 1))
    print("ok ends")
    os._exit(0)  # JAX's own service would wait for who is gone


for part in (collectives, shardings, of_some, utilities, arrays,
             computed_arrays, meshes, arrays_that_fail, ends):
    try:
        part()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # or JAX waits for the others, and they for this one
