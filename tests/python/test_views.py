"""Arrays on `host` are read in place: views of NumPy and of Python's buffer
protocol are the array's memory, hold it, and never see it change."""
import pytest

HEAD = """
import gc, pickle, threading
import numpy as np, jax, jax.numpy as jnp
D = jax.devices("xpu")[0]
add = jax.jit(lambda x: x + 1, donate_argnums=0)

def at(view):
    return np.asarray(view).ctypes.data

def made(n=1000):
    return jax.block_until_ready(jnp.arange(n, dtype=jnp.float32) * 1)

def is_same(view, n=1000):
    return (np.asarray(view) == np.arange(n, dtype=np.float32)).all()
"""

TYPES = HEAD + """
from jax.experimental.layout import Format, Layout
for t in ("bool int8 uint16 int32 uint64 float16 float32 float64 complex64 "
          "complex128 bfloat16 float8_e4m3fn float8_e5m2 int4 uint2 "
          "float4_e2m1fn").split():
    for shape in (), (5,), (3, 7), (0,), (4, 0, 2):
        x = jax.device_put(np.ones(shape, jnp.dtype(t)), D)
        v = np.asarray(x)
        assert v.shape == shape and v.dtype == t and (v == 1).all(), (t, shape)
        assert not v.flags.writeable
        assert (np.asarray(pickle.loads(pickle.dumps(x))) == v).all()
        below_a_byte = t in ("int4", "uint2", "float4_e2m1fn")
        assert (at(v) == x.unsafe_buffer_pointer()) != below_a_byte, (t, shape)
        try:
            m = memoryview(x)
            assert m.shape == shape and m.readonly and m.tobytes() == v.tobytes()
            assert t.startswith(("bool", "int", "uint", "float", "complex"))
        except BufferError as e:
            assert "not supported by the Python buffer protocol" in str(e), e
            assert below_a_byte or "8_" in t or t == "bfloat16", t
columns = Format(Layout(major_to_minor=(1, 0)), jax.sharding.SingleDeviceSharding(D))
n = np.arange(15, dtype=np.int16).reshape(3, 5)
x = jax.jit(lambda x: x * 1, out_shardings=columns)(n)
v = np.asarray(x)  # jaxlib copies what is not row-major
assert (v == n).all() and pickle.loads(pickle.dumps(x)).tolist() == n.tolist()
try:
    assert memoryview(x).tolist() == n.tolist()
except BufferError as e:
    assert "layout" in str(e), e
"""


def test_every_type_is_read_in_place(python):
    python(TYPES, env={"SUNDOG_DEVICE": "host", "JAX_ENABLE_X64": "1"})


LIFE = HEAD + """
for view in np.asarray, memoryview:
    x = made()
    p, v = x.unsafe_buffer_pointer(), view(x)
    assert at(v) == p
    x.delete()
    others = [made() + i for i in range(50)]
    assert is_same(v) and all(o.unsafe_buffer_pointer() != p for o in others)
    x = made()
    v = view(x)
    del x
    gc.collect()
    others += [made() + i for i in range(50)]
    assert is_same(v)

    # Donation copies while there is a view, and not after it.
    x = made()
    p, v = x.unsafe_buffer_pointer(), view(x)
    y = add(add(x))
    assert x.is_deleted() and is_same(v) and is_same(y - 2)
    assert y.unsafe_buffer_pointer() != p
    x = made()
    p, v = x.unsafe_buffer_pointer(), view(x)
    del v
    y = add(x)
    assert y.unsafe_buffer_pointer() == p and is_same(y - 1)
    float(y[3]), str(y), y.tolist()  # keep no view
    assert add(y).unsafe_buffer_pointer() == p

# A view of what is not there yet waits; one of what fails raises.
x = made(1 << 16)
f = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda i, x: jnp.sin(x) + 1, x))
slow = f(x)
v = np.asarray(slow)
assert at(v) == slow.unsafe_buffer_pointer()
assert (v == np.array(jax.block_until_ready(f(x)))).all()

def fail(x):
    raise ValueError("spilt milk")

bad = jax.jit(lambda x: jax.pure_callback(fail, x, x))
for view in np.asarray, memoryview:
    try:
        view(bad(x))
    except Exception as e:
        assert "spilt milk" in str(e), e
    else:
        raise AssertionError("no error")

# A copy that may be written is none of x's memory.
class Copied:
    def __init__(self, x):
        self.x = x
    def __dlpack_device__(self):
        return self.x.__dlpack_device__()
    def __dlpack__(self, **k):
        return self.x.__dlpack__(**{**k, "copy": True})

x = made()
assert at(np.from_dlpack(Copied(x))) != x.unsafe_buffer_pointer()
assert at(np.array(x)) != x.unsafe_buffer_pointer()
"""


def test_a_view_keeps_its_memory_and_its_values(python):
    python(LIFE, env={"SUNDOG_DEVICE": "host"})


DEVICES = HEAD + """
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), "i", devices=jax.devices("xpu")[:2])
put = lambda: jax.device_put(np.arange(1000, dtype=np.float32), NamedSharding(mesh, P("i")))
x = put()
parts = [s.data for s in x.addressable_shards]
views = [np.asarray(p) for p in parts]
assert [at(v) for v in views] == [p.unsafe_buffer_pointer() for p in parts]
whole = np.asarray(x)
y = add(x)
assert is_same(np.concatenate(views)) and is_same(whole) and is_same(np.asarray(y) - 1)

# Reading while others take the memory: a view is of whole values or an error.
def read(x, out):
    try:
        out.append(np.asarray(x))
    except RuntimeError as e:
        assert "delete" in str(e), e

for i in range(200):
    x, seen = made(), []
    t = [threading.Thread(target=read, args=(x, seen)) for k in range(3)]
    for k in t:
        k.start()
    y = add(x)
    for k in t:
        k.join()
    y = add(y)
    assert all(is_same(v) for v in seen) and is_same(y - 2)
"""


def test_views_of_shards_and_from_threads(python):
    python(DEVICES, env={"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "2"})


GUARD = HEAD + """
x = made()
with jax.transfer_guard_device_to_host("disallow"):
    try:
        print(at(np.asarray(x)) == x.unsafe_buffer_pointer())
    except Exception as e:
        print("Disallowed" in str(e))
try:
    print(memoryview(x).nbytes)
except BufferError as e:
    print("only defined for CPU" in str(e))
"""


@pytest.mark.parametrize("device, said", [("host", ["True", "4000"]),
                                          ("cl", ["True", "True"])])
def test_what_is_read_in_place_is_no_transfer(python, device, said):
    assert python(GUARD, env={"SUNDOG_DEVICE": device}).split() == said
