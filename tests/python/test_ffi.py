"""Typed foreign calls: handlers in C (handlers.c), compiled by these tests with
the header that tools/gen_ffi.py makes, registered by jax.ffi."""
import os
import subprocess
import sys

import parts
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    def make(minor=4, source="handlers.c"):
        folder = tmp_path_factory.mktemp("ffi")
        subprocess.run([sys.executable, f"{TOP}/tools/gen_ffi.py",
                        f"{TOP}/abi/ffi.tsv", f"{folder}/ffi_abi.h"],
                       check=True)
        subprocess.run(["gcc", "-O1", "-g", "-Wall", "-shared", "-fPIC",
                        "-pthread", f"-I{folder}", f"-DMINOR={minor}",
                        "-o", f"{folder}/h-{minor}.so", f"{HERE}/{source}"],
                       check=True)
        return f"{folder}/h-{minor}.so"
    return make


HEAD = """
import ctypes, sys, jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
lib = ctypes.CDLL(sys.argv[1])
for f in ("states_alive",):
    getattr(lib, f).restype = ctypes.c_int64
for f in ("state_type_id", "run_type_id", "state_type_info"):
    getattr(lib, f).restype = ctypes.c_void_p
D = jax.devices("xpu")[0]
def register(name, handler=None, **k):
    jax.ffi.register_ffi_target(
        name, handler or jax.ffi.pycapsule(getattr(lib, name)),
        platform="xpu", **k)
def out(shape, t=np.float32):
    return jax.ShapeDtypeStruct(shape, t)
def on(x):
    return jax.device_put(x, D)
def same(got, want, name):
    np.testing.assert_array_equal(np.asarray(got), want, err_msg=name)
    print("ok", name)
def capsule(address):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)
def fails(f, *texts):
    try:
        jax.block_until_ready(f())
    except Exception as e:
        for t in texts:
            assert t in str(e), (t, str(e))
        return
    raise AssertionError("no error")
"""


VALUES = """
for h in ("number", "addresses", "add_one", "fail"):
    register(h)
x = on(np.arange(6, dtype=np.float32).reshape(2, 3) + 1)
n = np.asarray(x)
one = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
number = lambda x, **k: jax.ffi.ffi_call("number", out(x.shape), **k)(x)
same(jax.jit(number)(x), n * one, "jit")
same(number(x), n * one, "eager")
same(jax.jit(lambda x: number(number(x * 2) + 1))(x),
     ((n * 2) * one + 1) * one, "fused")
same(jax.jit(jax.vmap(lambda v: number(v, vmap_method="sequential")))(x),
     n * np.arange(1, 4, dtype=np.float32), "vmap")
same(jax.jit(lambda x: jax.lax.fori_loop(
    0, 3, lambda i, x: number(x), x))(x), n * one ** 3, "loop")
same(jax.jit(lambda p, x: jax.lax.cond(p, number, lambda x: x, x))(
    on(np.bool_(True)), x), n * one, "cond")

# column-major bytes in, row-major out, and both
t = lambda a: np.ascontiguousarray(a.T)
same(jax.jit(lambda x: number(x, input_layouts=[(1, 0)]))(x),
     t(n).reshape(2, 3) * one, "layout-in")
same(jax.jit(lambda x: number(x, output_layouts=(1, 0)))(x),
     (n * one).reshape(3, 2).T, "layout-out")
same(jax.jit(lambda x: number(x, input_layouts=[(1, 0)],
                              output_layouts=(1, 0)))(x),
     (t(n) * one.reshape(3, 2)).T, "layout-both")
z = on(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
same(jax.jit(lambda z: number(z, input_layouts=[(2, 0, 1)]))(z),
     np.asarray(z).transpose(2, 0, 1).reshape(2, 3, 4)
     * np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4), "layout-3d")

# our buffers at their own addresses
f = jax.jit(lambda a, b: jax.ffi.ffi_call(
    "addresses", [out((5,)), out((4,), np.uint64)])(a, b))
y = on(np.ones(100, np.float32))
r, at = f(x, y)
same(at, [a.unsafe_buffer_pointer() for a in (x, y, r, at)], "addresses")

# in place: the argument keeps its value, a donated one its memory
add = lambda x: jax.ffi.ffi_call("add_one", out(x.shape),
                                 input_output_aliases={0: 0})(x)
w, v = jax.jit(lambda x: (add(x), x * 2))(x)
same(w, n + 1, "alias")
same(v, n * 2, "alias-kept")
same(x, n, "alias-argument")
d = on(np.zeros(1000, np.float32))
at = d.unsafe_buffer_pointer()
e = jax.jit(add, donate_argnums=0)(d)
same(e, np.ones(1000, np.float32), "alias-donated")
assert e.unsafe_buffer_pointer() == at and d.is_deleted()

f = jax.jit(lambda x: jax.ffi.ffi_call("fail", out(x.shape))(
    x, text="the disk is gone"))
fails(lambda: f(x), "DATA_LOSS", "the disk is gone", "custom-call fail")
fails(lambda: jax.jit(lambda y: y * 2)(f(x)), "the disk is gone")
print("ok error")
"""


ATTRIBUTES = """
register("describe")
register("bytes")
x = on(np.zeros((2, 3), jnp.bfloat16))
def describe(*args, **k):
    r = jax.jit(lambda *a: jax.ffi.ffi_call("describe", out((4096,), np.uint8))(
        *a, **k))(*args)
    return bytes(np.asarray(r)).rstrip(b"\\0").decode()
assert describe(x) == "16(2,3,)", describe(x)
assert describe(on(np.int8(1)), on(np.zeros((0, 2), np.complex64))) == \\
    "2()15(0,2,)"
assert describe(s="a\\"b\\\\\\n", b=True, i=3, f=1.5, n=np.int8(3),
                a=np.arange(3.0), c=np.zeros((2, 2), np.uint16)) == \\
    "a=12[3];b=1;c=7[4];f=12;i=5;n=2;s='a\\"b\\\\\\n';"
print("ok describe")
def check(v):
    want = np.asarray(v)
    r = jax.jit(lambda: jax.ffi.ffi_call("bytes", out((want.nbytes,), np.uint8))(
        x=v))()
    assert bytes(np.asarray(r)) == want.tobytes(), (v, bytes(np.asarray(r)))
rng = np.random.RandomState(1)
for t in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
          np.uint64, np.float16, np.float32, np.float64, jnp.bfloat16,
          np.complex64, np.complex128, jnp.float8_e4m3fn):
    t = np.dtype(t)
    for n in (1, 7, 3000):
        raw = np.frombuffer(rng.bytes(n * t.itemsize), t)
        if t.kind in "fcV":
            raw = np.frombuffer(rng.randn(4 * n).tobytes(), t)[:n]
            raw = np.nan_to_num(raw.astype(np.complex128 if t.kind == "c" else
                                           np.float64), posinf=1, neginf=-1
                                ).astype(t)
        check(raw)
    if t.kind in "if" or t.kind == "u" and t.itemsize < 8:
        check(raw[0])  # JAX cannot say a u64 of the upper half
check(np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308]))
check(np.array([np.inf, 1e-45, 3.4028235e38, 0.1], np.float32))
check(np.array([True, False, True]))
check(np.full(100000, 7, np.int32))
print("ok bytes")
fails(lambda: jax.jit(lambda: jax.ffi.ffi_call("describe", out((1,)))(
    l=(1, 2)))(), "describe", "attribute l", "lists")
print("ok list")
"""


STAGES = """
for name, id in (("state", lib.state_type_id()), ("run", lib.run_type_id())):
    jax.ffi.register_ffi_type(name, {
        "type_id": capsule(id), "type_info": capsule(lib.state_type_info())},
        platform="xpu")
register("stages", {
    "instantiate": jax.ffi.pycapsule(lib.instantiate),
    "prepare": jax.ffi.pycapsule(lib.prepare),
    "initialize": jax.ffi.pycapsule(lib.initialize),
    "execute": jax.ffi.pycapsule(lib.stages)})
call = lambda k: jax.ffi.ffi_call("stages", out((4,), np.int64),
                                  has_side_effect=True)(factor=k)
f = jax.jit(lambda: (call(3), call(4)))
for i in range(1, 4):
    a, b = f()
    same(a, [i, 3, 10, 100], f"first-{i}")
    same(b, [i, 4, 10, 100], f"second-{i}")
assert lib.states_alive() == 2, lib.states_alive()  # of the two sites
g = jax.jit(lambda: jax.lax.fori_loop(0, 5, lambda i, x: call(9), call(9)))
same(g(), [5, 9, 14, 100], "loop")
fails(jax.jit(lambda: call(-1)), "factor below 0", "custom-call stages")
print("ok instantiate")
assert lib.states_alive() == 4, lib.states_alive()
del f, g
jax.clear_caches()
import gc; gc.collect()
assert lib.states_alive() == 0, lib.states_alive()
print("ok deleted")

register("tasks")
register("later")
register("stream")
f = jax.jit(lambda: jax.ffi.ffi_call("tasks", [out((64,)),
                                               out((3,), np.int64)])())
runs = set()
for i in range(20):
    a, b = f()
    same(a, np.arange(64), "tasks")
    threads, run, device = np.asarray(b)
    assert threads >= 1 and device == 0
    runs.add(int(run))
assert len(runs) == 20
same(jax.jit(lambda: jax.ffi.ffi_call("later", out(()))())(), 42, "future")
fails(jax.jit(lambda: jax.ffi.ffi_call("later", out(()))(bad=1)),
      "ABORTED", "broken promise")
fails(jax.jit(lambda: jax.ffi.ffi_call("stream", out(()))()), "no stream")
print("ok context")
"""


REFUSED = """
x = on(np.zeros(3, np.float32))
call = lambda name, **k: jax.jit(
    lambda x: jax.ffi.ffi_call(name, out(x.shape), **k)(x)).lower(x).compile()
register("number")
fails(lambda: call("nobody"), "NOT_FOUND", "nobody", "dce_sink", "number",
      "register_ffi_target")
fails(lambda: jax.jit(lambda x: (
    jax.ffi.ffi_call("one", out((3,)))(x),
    jax.ffi.ffi_call("two", out((3,)))(x))).lower(x).compile(), "one", "two")
for version in (1, 2, 3):
    fails(lambda: call("number", custom_call_api_version=version),
          "UNIMPLEMENTED", "number", "typed FFI (4)")
fails(lambda: jax.jit(lambda x: jax.ffi.ffi_call("number", out((3,)))(x)).lower(
    on(np.zeros(3, jnp.int4))).compile(), "less than a byte")
print("ok compile")
try:
    register("number", jax.ffi.pycapsule(lib.describe))
    raise AssertionError
except ValueError as e:
    assert "number has another handler already" in str(e), e
register("number")  # the same once more
try:
    register("old", jax.ffi.pycapsule(lib.number), api_version=0)
    raise AssertionError
except ValueError as e:
    assert "old has API version 0" in str(e), e
print("ok register")
jax.jit(lambda x: jax.lax.dce_sink(x * 2))(x)
y = jax.jit(lambda x: (jax.lax.dce_sink(x * 2), x + 1)[1])(x)
same(y, np.ones(3, np.float32), "sink")
"""


# On `cl` a handler gets the queue, and the device's pointers.
CL = """
register("number")
x = on(np.arange(1000, dtype=np.float32))
n = np.asarray(x)
fails(lambda: jax.jit(lambda x: jax.ffi.ffi_call("number", out((3,)))(x))(x),
      "NOT_FOUND", "number on host", "xpu:cl")
print("ok refused")
y = jax.jit(lambda x: (jax.lax.dce_sink(x * 2), x + 1)[1])(x)
same(y, n + 1, "sink")

for h in ("queue_copy", "scratch_copy", "fail"):
    jax.ffi.register_ffi_target(h, jax.ffi.pycapsule(getattr(lib, h)),
                                platform="xpu:cl")
copy = lambda x, name="queue_copy": jax.ffi.ffi_call(
    name, out(x.shape), vmap_method="sequential")(x)
same(jax.jit(lambda x: copy(x * 2) + 1)(x), n * 2 + 1, "order")
same(jax.jit(lambda x: copy(x * 2, "scratch_copy") + 1)(x), n * 2 + 1,
     "scratch")
f = jax.jit(lambda x: jax.lax.while_loop(
    lambda c: c[0] < 300, lambda c: (c[0] + 1, copy(
        copy(c[1], "scratch_copy") + 1)), (0, x))[1])
same(f(x), n + 300, "loop")
same(jax.jit(jax.vmap(copy))(x.reshape(10, 100)), n.reshape(10, 100), "vmap")
d = on(np.zeros(1000, np.float32))
at = d.unsafe_buffer_pointer()
e = jax.jit(lambda x: jax.ffi.ffi_call("queue_copy", out(x.shape),
                                       input_output_aliases={0: 0})(x + 1),
            donate_argnums=0)(d)
same(e, np.ones(1000, np.float32), "donated")
assert e.unsafe_buffer_pointer() == at and d.is_deleted()
g = jax.jit(lambda x: jax.ffi.ffi_call("fail", out(x.shape))(
    x * 2, text="the queue is gone"))
fails(lambda: g(x), "DATA_LOSS", "the queue is gone", "custom-call fail")
fails(lambda: jax.jit(lambda y: y * 2)(g(x)), "the queue is gone")
same(jax.jit(copy)(x), n, "afterwards")
jax.ffi.register_ffi_target("stages", {
    "instantiate": jax.ffi.pycapsule(lib.instantiate),
    "prepare": jax.ffi.pycapsule(lib.prepare),
    "initialize": jax.ffi.pycapsule(lib.initialize),
    "execute": jax.ffi.pycapsule(lib.staged_fill)}, platform="xpu:cl")
for name, id in (("state", lib.state_type_id()), ("run", lib.run_type_id())):
    jax.ffi.register_ffi_type(name, {
        "type_id": capsule(id), "type_info": capsule(lib.state_type_info())},
        platform="xpu:cl")
fill = lambda k: jax.ffi.ffi_call("stages", out((4,), np.int64))(factor=k)
same(jax.jit(lambda: (fill(3), fill(4)))()[1], [1, 4, 10, 100], "stages")
"""


# Each library says that it was compiled for another version.
VERSIONS = """
for path in sys.argv[2:]:
    lib = ctypes.CDLL(path)
    name = "minor" + path.split("-")[-1][:1]
    try:
        register(name, jax.ffi.pycapsule(lib.number))
        x = jax.jit(lambda x: jax.ffi.ffi_call(name, out((3,)))(x))(
            on(np.ones(3, np.float32)))
        same(x, np.float32([1, 2, 3]), name)
    except ValueError as e:
        assert f"{name} was compiled for FFI 0.{name[-1]}" in str(e), e
        assert "0.3 to 0.4" in str(e), e
        print("ok refused")
"""
PARTS = {"values": VALUES, "attributes": ATTRIBUTES, "stages": STAGES,
         "refused": REFUSED, "versions": VERSIONS}


@pytest.fixture(scope="module")
def host(python, library):
    versions = [library(minor) for minor in (2, 3, 4, 5)]
    return parts.run(python, HEAD, PARTS, library(), *versions,
                     env={"SUNDOG_DEVICE": "host"})


def test_handlers_see_our_buffers(host):
    assert host.oks("values") == [
        "jit", "eager", "fused", "vmap", "loop", "cond", "layout-in",
        "layout-out", "layout-both", "layout-3d", "addresses", "alias",
        "alias-kept", "alias-argument", "alias-donated", "error"]


def test_attributes_arrive_to_the_bit(host):
    assert host.oks("attributes") == ["describe", "bytes", "list"]


def test_stages_and_context(host):
    assert len(host.oks("stages")) == 31


def test_what_is_refused_is_named(host):
    assert host.oks("refused") == ["compile", "register", "sink"]


def test_the_handshake_tells_versions_apart(host):
    assert host.oks("versions") == ["refused", "minor3", "minor4", "refused"]


def test_handlers_on_cl_get_the_queue(python, library):
    out = parts.run(python, HEAD, {"cl": CL}, library(source="handlers_cl.c"),
                    env={"SUNDOG_DEVICE": "cl"})
    assert out.oks("cl") == [
        "refused", "sink", "order", "scratch", "loop", "vmap", "donated",
        "afterwards", "stages"]
