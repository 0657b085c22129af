"""What JAX reaches of the PJRT surface beyond running programs, for
test_pjrt.py: each check on the present devices; says ok for each."""
import gc
import glob
import sys
import tempfile

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.experimental import serialize_executable, topologies
from jax.experimental.layout import Format, Layout
from jax.sharding import SingleDeviceSharding

XPU = jax.devices("xpu")
CPU = jax.devices("cpu")[0]
KINDS = ("device", "pinned_host", "unpinned_host")
KIND = XPU[0].device_kind.split(":")[0]
A = np.arange(6, dtype=np.float32).reshape(2, 3)


def on(device, kind="device"):
    return SingleDeviceSharding(device, memory_kind=kind)


def raises(kind, words, f, *args):
    try:
        f(*args)
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"no {kind.__name__}: {words}")


def donation():
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(A, XPU[0])
    at = x.unsafe_buffer_pointer()
    y = f(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() == at
    np.testing.assert_array_equal(y, A + 1)
    raises(RuntimeError, "deleted", np.asarray, x)
    g = jax.jit(lambda a, b: a + b, donate_argnums=(0, 1))
    raises(Exception, "donate", g, y, y)


def memory_kinds():
    """Every memory of every device to every other, and through programs."""
    assert [m.kind for m in XPU[0].addressable_memories()] == list(KINDS)
    assert XPU[0].default_memory().kind == "device"
    there = [on(d, k) for d in XPU for k in KINDS]
    for first in there:
        x = jax.device_put(A, first)
        assert x.sharding == first
        for then in there:
            y = jax.device_put(x, then)
            assert y.sharding == then
            np.testing.assert_array_equal(y, A)
    for kind in KINDS:
        f = jax.jit(lambda x: x * 2, out_shardings=on(XPU[0], kind))
        y = f(jax.device_put(A, on(XPU[0], kind)))
        assert y.sharding.memory_kind == kind
        np.testing.assert_array_equal(y, A * 2)


def devices():
    """Arrays and results stay where they are put."""
    for d in XPU:
        x = jax.device_put(A, d)
        assert x.devices() == {d}
        y = jax.jit(lambda x: x @ x.T)(x)
        assert y.devices() == {d}
        np.testing.assert_array_equal(y, A @ A.T)
        np.testing.assert_array_equal(jax.device_put(y, CPU), A @ A.T)
        np.testing.assert_array_equal(
            jax.device_put(jax.device_put(A, CPU), d), A)


def dlpack():
    x = jax.device_put(A, XPU[0])
    there = np.from_dlpack(x)
    np.testing.assert_array_equal(there, A)
    assert jnp.from_dlpack(x).devices() == {XPU[0]}
    assert jax.dlpack.from_dlpack(x, copy=True) is not x
    assert jnp.from_dlpack(x, device=CPU).devices() == {CPU}
    half = jax.device_put(A.astype(ml_dtypes.bfloat16), XPU[0])
    np.testing.assert_array_equal(jnp.from_dlpack(half), half)
    back = jnp.from_dlpack(A, device=XPU[0])
    assert back.devices() == {XPU[0]}
    np.testing.assert_array_equal(back, A)
    back = jax.device_put(jnp.from_dlpack(np.asfortranarray(A)), XPU[0])
    np.testing.assert_array_equal(back, A)
    if KIND == "host":
        shared_on_host()
    else:
        raises(BufferError, "copy=False", lambda: x.__dlpack__(copy=False))
    x.delete()
    gc.collect()
    np.testing.assert_array_equal(there, A)  # a copy, or it keeps the memory
    raises(BufferError, "not on DLPack device (2, 0)",
           lambda: jax.device_put(A, XPU[0]).__dlpack__(dl_device=(2, 0)))


def aligned(a):
    room = np.empty(a.nbytes + 64, np.uint8)
    at = -room.ctypes.data % 64
    room[at:at + a.nbytes] = np.frombuffer(a.tobytes(), np.uint8)
    return room[at:at + a.nbytes].view(a.dtype).reshape(a.shape)


def shared_on_host():
    x = jax.device_put(A, XPU[0])
    there = np.from_dlpack(x)
    assert there.ctypes.data == x.unsafe_buffer_pointer()
    assert not there.flags.writeable
    x.__dlpack__(copy=False)  # a capsule that nobody takes
    copied = jax.dlpack.from_dlpack(x, copy=True)
    assert copied.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    at = x.unsafe_buffer_pointer()
    y = f(x)
    assert x.is_deleted() and y.unsafe_buffer_pointer() != at
    np.testing.assert_array_equal(there, A)
    np.testing.assert_array_equal(y, A + 1)
    for t in ("bool", "int8", "uint16", "float16", "complex64"):
        a = np.ones((3, 5)).astype(t)
        np.testing.assert_array_equal(
            np.from_dlpack(jax.device_put(a, XPU[0])), a)
    # in
    a = aligned(A)
    x = jax.dlpack.from_dlpack(a, device=XPU[0])
    assert x.unsafe_buffer_pointer() == a.ctypes.data
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(x), A * 2)
    x = jax.dlpack.from_dlpack(a, device=XPU[0], copy=True)
    assert x.unsafe_buffer_pointer() != a.ctypes.data
    for bad in (a.T, a.reshape(-1)[1:]):
        x = jax.dlpack.from_dlpack(bad, device=XPU[0])
        np.testing.assert_array_equal(x, bad)
        raises(ValueError, "cannot be an array on xpu",
               lambda: jax.dlpack.from_dlpack(bad, device=XPU[0], copy=False))


def narrow_types():
    for t in ("int4", "uint4", "int2", "uint2", "float4_e2m1fn"):
        x = np.array([1, 0, 1, 0, 1], np.int8).astype(getattr(ml_dtypes, t))
        y = jax.device_put(x, XPU[0])
        assert y.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(y).astype(np.float32),
                                      x.astype(np.float32))
    for t in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz",
              "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
              "float8_e4m3", "float8_e8m0fnu"):
        x = np.array([0.5, 1, 2, 4], np.float32).astype(getattr(ml_dtypes, t))
        y = jax.device_put(x, XPU[-1])
        assert np.asarray(y).tobytes() == x.tobytes()
        z = jax.jit(lambda a: a.astype(jnp.float32) * 2)(y)
        np.testing.assert_array_equal(z, x.astype(np.float32) * 2)


def strided_and_empty():
    big = np.arange(240, dtype=np.int16).reshape(4, 5, 12)
    for view in (big[:, ::2, 1:7], big[::-1], big.transpose(2, 0, 1),
                 big[:, 1, ::-3], big[:0], np.float64(7), np.zeros((0, 3))):
        x = jax.device_put(view, XPU[0])
        np.testing.assert_array_equal(x, np.asarray(view).astype(x.dtype))


def layouts():
    x = jax.device_put(A, XPU[0])
    assert x.format.layout.major_to_minor == (0, 1)
    auto = Format(Layout.AUTO)
    c = jax.jit(lambda x: x.T, in_shardings=auto, out_shardings=auto).lower(
        jax.ShapeDtypeStruct((2, 3), np.float32)).compile()
    (format,), _ = c.input_formats
    assert format.layout.major_to_minor == (0, 1)
    assert c.output_formats.layout.major_to_minor == (1, 0)  # nothing moves
    np.testing.assert_array_equal(c(x), A.T)
    by_columns = Format(Layout((1, 0)), x.sharding)
    y = jax.device_put(x, by_columns)
    assert y.format.layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(y, A)
    for d in [on(XPU[0], k) for k in KINDS] + [on(d) for d in XPU]:
        z = jax.device_put(y, d)
        np.testing.assert_array_equal(z, A)
    f = jax.jit(lambda y, z: (y @ z.T, y, z - y),
                in_shardings=(by_columns, x.sharding),
                out_shardings=(x.sharding, by_columns, by_columns))
    p, q, r = f(y, x)
    assert p.format.layout.major_to_minor == (0, 1)
    assert q.format.layout == r.format.layout == y.format.layout
    np.testing.assert_array_equal(p, A @ A.T)
    np.testing.assert_array_equal(q, A)
    np.testing.assert_array_equal(r, A * 0)
    np.testing.assert_array_equal(jax.jit(lambda y: y[:, 1] + 1)(y),
                                  A[:, 1] + 1)
    # Kept with a saved executable.
    c = f.lower(y, x).compile()
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(c), execution_devices=XPU[:1])
    assert again.output_formats[1].layout.major_to_minor == (1, 0)
    np.testing.assert_array_equal(again(y, x)[1], A)
    big = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    z = jax.device_put(big, Format(Layout((2, 0, 1)), on(XPU[0])))
    np.testing.assert_array_equal(z, big)
    np.testing.assert_array_equal(jax.jit(lambda z: z.sum(0))(z), big.sum(0))


def topology():
    t = topologies.get_topology_desc("host:v4 x 2", platform="xpu")
    assert [d.id for d in t.devices] == [0, 1]
    assert t.devices[0].device_kind == "host:v4"
    raises(Exception, "no device is described as 'moon'",
           lambda: topologies.get_topology_desc("moon", platform="xpu"))
    gpu = on(topologies.get_topology_desc("cl:pvc", platform="xpu").devices[0])
    c = jax.jit(lambda x: x + 1, in_shardings=gpu, out_shardings=gpu).lower(
        jax.ShapeDtypeStruct((4,), np.float32, sharding=gpu)).compile()
    assert "f32[4]" in c.as_text()


def executables():
    x = jax.device_put(A, XPU[0])
    c = jax.jit(lambda x: x + 1).lower(x).compile()
    m, cost = c.memory_analysis(), c.cost_analysis()
    assert m.argument_size_in_bytes == m.output_size_in_bytes == 24
    assert cost["flops"] == 6 and cost["bytes accessed"] == 48
    assert "HloModule" in c.as_text()
    again = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(c), execution_devices=XPU[:1])
    np.testing.assert_array_equal(again(x), A + 1)


def memory_stats():
    gc.collect()
    before = XPU[0].memory_stats()["bytes_in_use"]
    x = jax.device_put(np.zeros(1 << 20, np.float32), XPU[0])
    x.block_until_ready()
    stats = XPU[0].memory_stats()
    assert set(stats) >= {
        "num_allocs", "bytes_in_use", "peak_bytes_in_use", "bytes_limit",
        "largest_alloc_size", "bytes_reserved", "peak_bytes_reserved",
        "largest_free_block_bytes", "pool_bytes", "peak_pool_bytes"}, stats
    assert stats["bytes_in_use"] <= stats["pool_bytes"] <= stats[
        "peak_pool_bytes"] <= stats["bytes_limit"]
    assert stats["bytes_in_use"] - before == 4 << 20
    assert stats["bytes_limit"] > stats["peak_bytes_in_use"] >= 4 << 20
    x.delete()
    assert XPU[0].memory_stats()["bytes_in_use"] == before


def life():
    x = jax.device_put(A, XPU[0])
    x.copy_to_host_async()
    assert any(y is x for y in jax.live_arrays("xpu"))
    np.testing.assert_array_equal(x, A)
    y = x + 1
    x.delete()
    assert x.is_deleted() and not any(y is x for y in jax.live_arrays("xpu"))
    raises(RuntimeError, "deleted", lambda: x + 1)
    np.testing.assert_array_equal(y, A + 1)


def traces():
    x = jax.device_put(A, XPU[0])
    f = jax.jit(lambda x: x * 3)
    f(x).block_until_ready()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(3):
                f(x).block_until_ready()
            f(x + 1).block_until_ready()
        path, = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
        planes = {p.name: p for p in
                  jax.profiler.ProfileData.from_file(path).planes}
        runs, steps = planes["/device:CUSTOM:xpu"].lines
        assert runs.name == "xpu(id=0)" and steps.name == "xpu(id=0) steps"
        names = [e.name for e in runs.events]
        assert names.count("jit__lambda") >= 3, names
        inside = [e for e in steps.events if any(
            r.name == "jit__lambda" and r.start_ns <= e.start_ns
            and e.end_ns <= r.end_ns for r in runs.events)]
        assert len(inside) >= 3, (len(inside), names)
        for line in runs, steps:
            assert all(e.duration_ns > 0 for e in line.events)


CHECKS = (donation, memory_kinds, devices, dlpack, narrow_types,
          strided_and_empty, layouts, topology, executables, memory_stats,
          life, traces)

if __name__ == "__main__":
    assert len(XPU) == int(sys.argv[1]), XPU
    for check in CHECKS:
        check()
        print("ok", check.__name__)
