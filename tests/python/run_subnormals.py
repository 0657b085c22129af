"""Subnormal numbers on host: long sums of products take them for 0 (a core
needs 150 cycles for each), and nothing else does, in the same kernel or after
it, unless SUNDOG_SUBNORMALS is 0 (docs/numerics.md)."""

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

assert jax.devices()[0].platform == "xpu"
SUBNORMAL = np.float32(1e-39)
KEPT = os.environ.get("SUNDOG_SUBNORMALS") != "0"


def ones(*shape):
    return np.ones(shape, np.float32)


def image(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


PRODUCTS = {
    "in blocks": (jnp.matmul, (128, 256), (256, 192)),
    "few rows": (jnp.matmul, (4, 3000), (3000, 64)),
    "few columns": (jnp.matmul, (3000, 64), (64, 4)),
    "batch": (jnp.matmul, (5, 40, 300), (5, 300, 48)),
    "3 x 3": (image, (2, 32, 32, 64), (3, 3, 64, 64)),
    "1 x 1": (image, (2, 32, 32, 64), (1, 1, 64, 64)),
}

for name, (product, x, y) in PRODUCTS.items():
    f = jax.jit(lambda x, y: product(x, y))
    assert (np.asarray(f(ones(*x) * SUBNORMAL, ones(*y))) == 0).all(), name
    assert (np.asarray(f(ones(*x), ones(*y) * SUBNORMAL)) == 0).all(), name
    # products of 2^-140 of operands that are not subnormal
    small = np.asarray(f(ones(*x) * np.float32(2.0**-60), ones(*y) * np.float32(2.0**-80)))
    assert (small == 0).all(), name
    # what uses the product has it with each of its digits, or as 0
    after = jax.jit(lambda x, y: (product(x, y) > 0) * SUBNORMAL)
    assert (np.asarray(after(ones(*x), ones(*y))) == (SUBNORMAL if KEPT else 0)).all(), name

x = ones(1000) * SUBNORMAL
for name, f in {
    "a multiple": lambda x: x * np.float32(0.5),
    "a quotient": lambda x: x / np.float32(3),
    "a sum": lambda x: x + x,
    "a decayed moment": lambda x: np.float32(0.9) * x + np.float32(0.1) * (x * x),
}.items():
    assert (np.asarray(jax.jit(f)(x)) == (f(x) if KEPT else 0)).all(), name
# numbers of ordinary size are as ever, and so is what is only moved
assert (np.asarray(jax.jit(lambda x: x + 1)(x)) == 1).all()
assert (np.asarray(jax.jit(lambda x: x.reshape(50, 20).T)(x)) == SUBNORMAL).all()

# What is made of subnormal numbers before they are multiplied has them, too.
MADE = {
    "comparison": lambda x: (x > 0).astype(jnp.float32),
    "quotient": lambda x: x / SUBNORMAL,
    "logarithm": lambda x: jnp.log(x) / np.log(SUBNORMAL),
    "product": lambda x: x * np.float32(2.0**100) * np.float32(1 / (SUBNORMAL * 2.0**100)),
}
for x, y in ((4, 64), (64, 4)), ((4, 3000), (3000, 64)), ((128, 256), (256, 192)):
    for name, f in MADE.items() if KEPT else ():
        got = np.asarray(jax.jit(lambda x, y: f(x) @ y)(ones(*x) * SUBNORMAL, ones(*y)))
        np.testing.assert_allclose(got, x[1], rtol=1e-5, err_msg=name)
print("subnormals: ok")
