"""Programs over several devices, against as many of JAX's CPU."""
import pytest

EIGHT = {"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "8"}


@pytest.mark.parametrize("n", [8, 2])
def test_programs_over_devices(python, n):
    python("run_devices.py", env={**EIGHT, "SUNDOG_HOST_DEVICES": str(n)},
           timeout=300)


FAILS = """
import jax, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices("xpu")), ("x",))
x = np.arange(16, dtype=np.float32).reshape(8, 2)

def over_devices(host):
    def f(a):
        b = jax.pure_callback(host, jax.ShapeDtypeStruct(a.shape, a.dtype), a)
        return lax.psum(b, "x")
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P()))

def says(f, arg, *words):
    try:
        f(arg).block_until_ready()
    except Exception as e:
        assert all(w in str(e) for w in words), e
    else:
        raise AssertionError("no error")

def refuses_large(v):
    if v.max() > 13:
        raise ValueError("too much")
    return np.asarray(v)

f = over_devices(refuses_large)
for _ in range(20):
    says(f, x, "too much", "participant 7 of 8")
    np.testing.assert_allclose(f(x / 2)[0], x.sum(0) / 2)
gone = jax.device_put(x, NamedSharding(mesh, P("x")))
gone.delete()
says(f, gone, "deleted")
inner = over_devices(lambda v: np.asarray(v))
inner(x).block_until_ready()
args = jax.device_put(x, NamedSharding(mesh, P("x")))
says(over_devices(lambda v: np.asarray(inner(args))[:1]), x,
     "it would wait for itself")
np.testing.assert_allclose(f(x / 2)[0], x.sum(0) / 2)
print("all said")
"""


def test_a_member_that_fails_fails_all(python):
    r = python(FAILS, env=EIGHT, check=False, timeout=120)
    assert "all said" in r.stdout, r.stdout[-2000:] + r.stderr[-4000:]
