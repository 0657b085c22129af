"""Attention in slices: run_attention.py, and the same bits everywhere."""
import pytest


@pytest.mark.parametrize("part", ["forward", "gradients", "relatives"])
def test_attention_on_the_host(python, part):
    assert "ok" in python("run_attention.py", part, env={"SUNDOG_DEVICE": "host"})


BITS = """
import hashlib, jax, jax.numpy as jnp, numpy as np
rng = np.random.default_rng(2)
q, k, v = (rng.standard_normal((1, 523, 16)).astype(np.float32) for _ in range(3))
def f(q, k, v):
    s = jnp.einsum("bqd,bkd->bqk", q, k)
    s = jnp.where(jnp.tril(jnp.ones((523, 523), bool)), s, -jnp.inf)
    return jnp.sum(jnp.sin(jax.nn.softmax(s, -1) @ v))
for x in jax.jit(jax.grad(f, (0, 1, 2)))(q, k, v):
    print(hashlib.sha256(np.asarray(x).tobytes()).hexdigest())
"""


def test_same_bits_on_both_devices_and_any_number_of_threads(python):
    def bits(**env):
        return python(BITS, env={"SUNDOG_LIBRARIES": "0", **env})

    want = bits(SUNDOG_DEVICE="host")
    assert bits(SUNDOG_DEVICE="host", SUNDOG_THREADS="1", SUNDOG_CPU_LEVEL="v3") == want
    assert bits(SUNDOG_DEVICE="cl") == want
