"""Programs over several devices, against as many of JAX's CPU."""
import pytest

EIGHT = {"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "8"}
TWO = {"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "2"}
TWO_OF_CL = {"SUNDOG_DEVICE": "cl", "SUNDOG_CL_SPLIT": "2"}


@pytest.mark.parametrize("env", [EIGHT, TWO, TWO_OF_CL],
                         ids=["host-8", "host-2", "cl-2"])
def test_programs_over_devices(python, env):
    python("run_devices.py", env=env, timeout=300)


FAILS = """
import jax, numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices("xpu")), ("x",))
N = mesh.size
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
total = (x / 2).reshape(N, -1, 2).sum(0)
for _ in range(20):
    says(f, x, "too much", f"participant {N - 1} of {N}")
    np.testing.assert_allclose(f(x / 2), total)
gone = jax.device_put(x, NamedSharding(mesh, P("x")))
gone.delete()
says(f, gone, "deleted")
inner = over_devices(lambda v: np.asarray(v))
inner(x).block_until_ready()
args = jax.device_put(x, NamedSharding(mesh, P("x")))
says(over_devices(lambda v: np.asarray(inner(args))), x,
     "it would wait for itself")
np.testing.assert_allclose(f(x / 2), total)
print("all said")
"""


@pytest.mark.parametrize("env", [EIGHT, TWO_OF_CL], ids=["host-8", "cl-2"])
def test_a_member_that_fails_fails_all(python, env):
    r = python(FAILS, env=env, check=False, timeout=120)
    assert "all said" in r.stdout, r.stdout[-2000:] + r.stderr[-4000:]


def test_whole_programs(python):
    """Examples of several devices, and experts, factorizations and Fourier
    transforms as users write them: one device's results, the same bits twice."""
    python("run_sharded.py", env=EIGHT, timeout=600)
