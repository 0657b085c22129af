"""Python callbacks, on `host` and on two `cl` devices.  All parts of a device
run in one process, one after the other (starting JAX takes longer than most of
them); a part prints "ok NAME" for what holds and ends at what does not."""
import os

import parts
import pytest

DEVICES = {"host": {"SUNDOG_DEVICE": "host"},
           "cl": {"SUNDOG_DEVICE": "cl", "SUNDOG_CL_SPLIT": "2"}}

HEAD = """
import sys, jax, jax.numpy as jnp, numpy as np
from jax.experimental import io_callback
D = jax.devices("xpu")
assert D[0].platform == "xpu", D
def like(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)
def same(got, want, name):
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype, (name, got.dtype, want.dtype)
    np.testing.assert_array_equal(got, want, err_msg=name)
    print("ok", name)
def on(x, d=D[0]):
    return jax.device_put(x, d)
"""


PURE = """
def host_sin(x):
    assert isinstance(x, jax.Array) and x.devices() == set(jax.devices("cpu"))
    return np.sin(np.asarray(x))
def psin(x, **k):
    return jax.pure_callback(host_sin, like(x), x, **k)
x = on(np.linspace(-2, 2, 7).astype(np.float32))
n = np.asarray(x)
same(jax.jit(psin)(x), np.sin(n), "jit")
same(psin(x), np.sin(n), "eager")
same(jax.jit(lambda x: psin(x * 2) + psin(x))(x), np.sin(n * 2) + np.sin(n),
     "two")
m = on(np.arange(12, dtype=np.float32).reshape(3, 4))
for how in ("sequential", "expand_dims", "broadcast_all"):
    same(jax.jit(jax.vmap(lambda v: psin(v, vmap_method=how)))(m),
         np.sin(np.asarray(m)), "vmap-" + how)

@jax.custom_vjp
def f(x):
    return psin(x)
f.defvjp(lambda x: (psin(x), x), lambda x, g: (
    g * jax.pure_callback(lambda v: np.cos(np.asarray(v)), like(x), x),))
same(jax.jit(jax.grad(lambda x: f(x).sum()))(x), np.cos(n), "grad")

def step(c, i):
    y = jax.pure_callback(lambda c, i: np.asarray(c) + np.asarray(i) ** 2,
                          like(c), c, i)
    return y, y
want = np.cumsum(np.arange(9.0) ** 2).astype(np.float32)
same(jax.jit(lambda i: jax.lax.scan(step, np.float32(0), i))(
    on(np.arange(9, dtype=np.float32)))[1], want, "scan")
same(jax.jit(lambda x: jax.lax.while_loop(
    lambda s: jax.pure_callback(lambda s: np.asarray(s) < 100,
                                jax.ShapeDtypeStruct((), np.bool_), s),
    lambda s: jax.pure_callback(lambda s: np.asarray(s) * 3, like(s), s),
    x))(on(np.int32(1))), np.int32(243), "while")
g = jax.jit(lambda p, x: jax.lax.cond(
    p, lambda x: jax.pure_callback(lambda x: np.asarray(x) + 1, like(x), x),
    lambda x: jax.pure_callback(lambda x: np.asarray(x) - 1, like(x), x), x))
same(g(on(np.bool_(True)), x), n + 1, "cond-true")
same(g(on(np.bool_(False)), x), n - 1, "cond-false")

for t in (np.bool_, np.int8, np.uint16, np.int32, np.float16, jnp.bfloat16,
          np.float32, np.complex64, jnp.int4, jnp.float8_e4m3fn):
    v = on(jnp.asarray(np.array([[0, 1, 2], [3, 4, 5]])).astype(t))
    seen = []
    def flip(v):
        seen.append(np.asarray(v))
        return np.asarray(v)[::-1]
    same(jax.jit(lambda v: jax.pure_callback(flip, like(v), v))(v),
         np.asarray(v)[::-1], "type-" + np.dtype(t).name)
    same(seen[0], np.asarray(v), "sent-" + np.dtype(t).name)

e = on(np.zeros((0, 3), np.float32))
same(jax.jit(lambda e: jax.pure_callback(
    lambda e: np.asarray(e) + 1, like(e), e))(e), np.zeros((0, 3), np.float32),
    "empty")
same(jax.jit(lambda: jax.pure_callback(
    lambda: np.int32(7), jax.ShapeDtypeStruct((), np.int32)))(), np.int32(7),
    "no-argument")
a, b = jax.jit(lambda x: jax.pure_callback(
    lambda x: {"a": np.asarray(x)[:2], "b": np.float32(np.sum(x))},
    {"a": jax.ShapeDtypeStruct((2,), np.float32),
     "b": jax.ShapeDtypeStruct((), np.float32)}, x))(x).values()
same(a, n[:2], "tree-a")
same(b, np.float32(np.sum(n)), "tree-b")
big = on(np.arange(1 << 20, dtype=np.float32))
same(jax.jit(lambda x: psin(x) * 2)(big), np.sin(np.asarray(big)) * 2, "big")
for d in D:
    same(jax.jit(lambda x: psin(x) + 1)(on(x, d)), np.sin(n) + 1,
         "device-" + str(d.id))
"""


IO = """
log = []
def note(tag):
    def f(x):
        log.append((tag, int(x)))
        return np.int32(x + 1)
    return f
I = jax.ShapeDtypeStruct((), np.int32)

@jax.jit
def ordered(x):
    a = io_callback(note("a"), I, x, ordered=True)
    b = io_callback(note("b"), I, x * 10, ordered=True)
    jax.debug.callback(lambda v: log.append(("c", int(v))), a + b, ordered=True)
    def body(c, i):
        return io_callback(note("d"), I, c, ordered=True), i
    c, _ = jax.lax.scan(body, a, None, length=3)
    c = jax.lax.cond(x > 2, lambda c: io_callback(note("e"), I, c, ordered=True),
                     lambda c: io_callback(note("f"), I, c, ordered=True), c)
    io_callback(note("g"), I, c, ordered=True)
    return c
want = []
for x in (1, 5):
    got = ordered(on(np.int32(x)))
    a, b = x + 1, 10 * x + 1
    c = a + 3
    want += [("a", x), ("b", 10 * x), ("c", a + b), ("d", a), ("d", a + 1),
             ("d", a + 2), ("e" if x > 2 else "f", c), ("g", c + 1)]
    same(got, np.int32(c + 1), f"ordered-{x}")
jax.effects_barrier()
assert log == want, (log, want)
print("ok order")

log.clear()
f = jax.jit(lambda x: io_callback(lambda x: log.append(("u", int(x))), None, x))
for i in range(50):
    f(on(np.int32(i)))
jax.effects_barrier()
assert sorted(log) == [("u", i) for i in range(50)], log
print("ok unordered")

log.clear()
same(jax.jit(jax.vmap(lambda x: io_callback(note("v"), I, x)))(
    on(np.arange(4, dtype=np.int32))), np.arange(1, 5, dtype=np.int32), "vmap")
jax.effects_barrier()
assert sorted(log) == [("v", i) for i in range(4)], log

log.clear()
def loop(x):
    def body(i, x):
        jax.debug.callback(lambda i, x: log.append((int(i), float(x))), i, x)
        return x * 2
    return jax.lax.fori_loop(0, 5, body, x)
same(jax.jit(loop)(on(np.float32(1))), np.float32(32), "loop")
jax.effects_barrier()
assert log == [(i, 2.0 ** i) for i in range(5)], log
log.clear()
def loop2(x):
    jax.debug.callback(lambda x: log.append(float(x)), x)
    return jnp.sin(x)
same(jax.jit(jax.grad(loop2))(on(np.float32(0))), np.float32(1), "grad")
jax.effects_barrier()
assert log == [0.0], log
"""


PRINT = """
@jax.jit
def f(x):
    jax.debug.print("x = {x}, sum = {}", x.sum(), x=x)
    for i in range(3):
        jax.debug.print("line {}", i, ordered=True)
    return x
f(on(np.arange(3.0, dtype=np.float32)))
jax.effects_barrier()
"""


ERRORS = """
import logging
logging.disable(logging.CRITICAL)
def bad(x):
    raise ValueError(f"the sum is {float(np.sum(x))}")
def fails(f, *texts):
    try:
        f()
    except Exception as e:
        for t in texts:
            assert t in str(e), (t, str(e))
        return
    raise AssertionError("no error")
x = on(np.arange(3, dtype=np.float32))
f = jax.jit(lambda x: jax.pure_callback(bad, like(x), x) + 1)
for i in range(3):
    fails(lambda: jax.block_until_ready(f(x)), "ValueError: the sum is 3.0")
print("ok raised")
y = f(x)              # in error: so is what is made of it
fails(lambda: np.asarray(jax.jit(lambda y: y * 2)(y)), "the sum is 3.0")
print("ok poison")
same(jax.jit(lambda x: x + 1)(x), np.arange(1, 4, dtype=np.float32), "lives")
fails(lambda: np.asarray(jax.jit(lambda x: jax.pure_callback(
    lambda x: np.zeros(4, np.float32), like(x), x))(x)),
    "Incorrect output shape", "(3,)", "(4,)")
fails(lambda: np.asarray(jax.jit(lambda x: jax.pure_callback(
    lambda x: np.zeros(3, np.int8), like(x), x))(x)),
    "Incorrect output dtype", "float32", "int8")
fails(lambda: np.asarray(jax.jit(lambda x: jax.pure_callback(
    lambda x: (np.zeros(3), np.zeros(3)), like(x), x))(x)),
    "Mismatched number of outputs")
print("ok shapes")
jax.jit(lambda x: io_callback(bad, None, x, ordered=True))(x)
fails(jax.effects_barrier, "the sum is 3.0")
print("ok effects")
"""


CHECKS = """
from jax.experimental import checkify
x = on(np.array([1, 2, 0], np.float32))
def f(x, i):
    checkify.check(jnp.all(x > 0), "must be positive: {x}", x=x)
    return jnp.log(x)[i] / x[1]
err, out = jax.jit(checkify.checkify(f, errors=checkify.all_checks))(
    x, on(np.int32(1)))
assert "must be positive: [1. 2. 0.]" in str(err.get()), err.get()
err, out = jax.jit(checkify.checkify(f, errors=checkify.index_checks))(
    x, on(np.int32(9)))
assert "out-of-bounds" in str(err.get()), err.get()
err, out = jax.jit(checkify.checkify(f))(x + 1, on(np.int32(1)))
assert err.get() is None
print("ok checkify")
try:
    jax.jit(lambda x: f(x, 0))(x)
    raise AssertionError
except ValueError as e:
    assert "not functionalized" in str(e)
print("ok unfunctionalized")
jax.config.update("jax_debug_nans", True)
try:
    jax.jit(lambda x: x / x)(x)
    raise AssertionError
except FloatingPointError as e:
    assert "invalid value (nan)" in str(e)
same(jax.jit(lambda x: x / x)(x + 1), np.ones(3, np.float32), "no-nan")
"""


FLAT = """
# sys.argv[1] calls, three a run
def more(x):
    return jax.pure_callback(lambda x: np.asarray(x) + 1, like(x), x)
f = jax.jit(lambda x: more(jax.lax.fori_loop(0, 2, lambda i, x: more(x), x)))
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
x = on(np.zeros(100, np.float32))
n = int(sys.argv[1]) // 3
for i in range(n):
    x = f(x)
    if i == n // 10:
        jax.block_until_ready(x)
        start = rss()
same(x, np.full(100, 3 * n, np.float32), "sum")
assert rss() - start < 8 << 20, rss() - start
print("ok flat")
"""


NESTED = """
# a callback runs programs on the device that waits for it
def inner(v):
    w = on(np.asarray(v), D[0])
    return np.asarray(jax.jit(lambda w: jax.pure_callback(
        lambda w: np.asarray(w) * 2, like(w), w) + 1)(w) * 3)
x = on(np.arange(4, dtype=np.float32))
for i in range(3):
    same(jax.jit(lambda x: jax.pure_callback(inner, like(x), x))(x),
         (np.arange(4, dtype=np.float32) * 2 + 1) * 3, "nested")

import threading
def work(k):
    f = jax.jit(lambda x: jax.pure_callback(
        lambda v: np.asarray(v) + k, like(x), x))
    for i in range(50):
        y = f(x)
    results[k] = np.asarray(y)
results = {}
threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
for k in range(8):
    same(results[k], np.arange(4, dtype=np.float32) + k, "threads")
"""


# Primitives that have no rule for platforms unknown to JAX, but from our shim.
RULES = """
from jax.sharding import Mesh, PartitionSpec as P
mesh = Mesh(np.array(D[:1]), ("i",))
same(jax.jit(jax.shard_map(
    lambda x: jax.lax.pbroadcast(x, "i", 0), mesh=mesh, in_specs=P("i"),
    out_specs=P("i"), check_vma=False))(np.arange(4.0, dtype=np.float32)),
    np.arange(4, dtype=np.float32),
    "pbroadcast")
"""


PARTS = {"pure": PURE, "io": IO, "print": PRINT, "errors": ERRORS,
         "nested": NESTED, "flat": FLAT, "rules": RULES, "checks": CHECKS}


@pytest.fixture(scope="module", params=DEVICES)
def device(request, python):
    calls = os.environ.get("SUNDOG_TEST_CALLBACKS", "10000")
    return request.param, parts.run(python, HEAD, PARTS, calls,
                                    env=DEVICES[request.param])


def test_pure_callback(device):
    name, out = device
    assert len(out.oks("pure")) == {"host": 37, "cl": 38}[name]


def test_io_callback_keeps_its_order(device):
    assert out_of(device, "io") == [
        "ordered-1", "ordered-5", "order", "unordered", "vmap", "loop", "grad"]


def test_debug_print(device):
    lines = device[1].lines("print")
    assert "x = [0. 1. 2.], sum = 3.0" in lines
    assert [l for l in lines if l.startswith("line")] == [
        "line 0", "line 1", "line 2"]


def test_an_exception_is_the_executions_error(device):
    assert out_of(device, "errors") == [
        "raised", "poison", "lives", "shapes", "effects"]


def test_callbacks_run_programs_and_many_threads_call(device):
    assert out_of(device, "nested") == ["nested"] * 3 + ["threads"] * 8


def test_checkify_and_debug_nans(device):
    assert out_of(device, "checks") == [
        "checkify", "unfunctionalized", "no-nan"]


def test_rules_that_the_shim_gives(device):
    assert out_of(device, "rules") == ["pbroadcast"]


def test_memory_is_flat(device):
    assert out_of(device, "flat") == ["sum", "flat"]


def out_of(device, part):
    return device[1].oks(part)


PENDING = HEAD + """
import time
def slow(v):
    time.sleep(0.3)
    return np.asarray(v)
x = on(np.zeros(3, np.float32))
y = jax.jit(lambda x: jax.pure_callback(slow, like(x), x))(x)
print("leaving")
"""


def test_a_process_ends_with_callbacks_under_way(python):
    assert python(PENDING, env=DEVICES["host"], timeout=60) == "leaving\n"


ALONE = """
import jax, numpy as np
try:
    jax.jit(lambda x: jax.pure_callback(np.sin, x, x))(np.float32(1))
except RuntimeError as e:
    print(e)
"""


def test_without_a_cpu_platform_one_message_says_so(python):
    r = python(ALONE, env={"JAX_PLATFORMS": "xpu"}, check=False)
    assert r.returncode == 0, r.stderr
    assert r.stdout.splitlines()[0] == (
        "Python callbacks get their arguments on JAX's CPU platform, which "
        "JAX_PLATFORMS leaves out: set JAX_PLATFORMS=xpu,cpu")


# Results are filled where they lie; one that shares an argument's memory has
# what that had.
BUFFERS = HEAD + """
from jax.experimental import buffer_callback as bc
def add(ctx, out, x, y, *, by):
    assert ctx.stage == bc.ExecutionStage.EXECUTE and out.writeable
    assert not x.writeable and (x.shape, x.dtype) == (out.shape, out.dtype)
    np.asarray(out)[...] = np.from_dlpack(x) + np.asarray(y) * by
x = on(np.arange(6, dtype=np.float32).reshape(2, 3))
same(jax.jit(lambda x: bc.buffer_callback(
    lambda ctx, out, a: np.asarray(out).__setitem__(..., np.asarray(a) * 2),
    like(x))(x) + 1)(x), np.asarray(x) * 2 + 1, "jit")
def grow(ctx, out, a):
    np.asarray(out)[0] += 5
want = np.asarray(x).copy()
want[0] += 5
same(bc.buffer_callback(grow, like(x), input_output_aliases={0: 0})(x), want,
     "alias")
same(bc.buffer_callback(add, like(x))(x, x, by=np.float32(3)),
     np.asarray(x) * 4, "keywords")
try:
    bc.buffer_callback(lambda ctx, out: 1, like(x))().block_until_ready()
except jax.errors.JaxRuntimeError as e:
    assert "must not return any values" in str(e), e
    print("ok returns")
"""


@pytest.mark.parametrize("device", DEVICES)
def test_a_buffer_callback_fills_its_results(python, device):
    out = python(BUFFERS, env=DEVICES[device], timeout=300)
    assert out.split("\n")[:-1] == ["ok jit", "ok alias", "ok keywords",
                                    "ok returns"]
