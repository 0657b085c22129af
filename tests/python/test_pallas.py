"""Pallas: what it compiles is refused with what to do; what it interprets runs."""


def test_kernels_are_refused_or_interpreted(python):
    python("""
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import pallas as pl
x = jnp.arange(64.0).reshape(8, 8)

def plus_one(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1

def add(x, **how):
    return pl.pallas_call(plus_one, out_shape=x, **how)(x)

assert list(x.devices())[0].platform == "xpu"
np.testing.assert_array_equal(jax.jit(lambda x: add(x, interpret=True))(x), x + 1)
try:
    jax.jit(add)(x)
    raise SystemExit("it ran")
except NotImplementedError as error:
    assert "interpret=True" in str(error), error
""", env={"SUNDOG_DEVICE": "host"})
