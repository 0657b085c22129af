"""Own products and convolutions, without libraries: errors against f64 (exact
for integers) and a digest of each result's bits, which is the same on every
device, x86 level and number of threads.  Arguments: parts of names to run."""

import hashlib
import sys

import jax
import jax.numpy as jnp
import numpy as np

XPU, CPU = jax.devices()[0], jax.devices("cpu")[0]
assert XPU.platform == "xpu"
jax.config.update("jax_enable_x64", True)
RNG = np.random.default_rng(11)
# relative to the sum of the products' sizes: half a step of the result's type,
# and of chains of 256 f32 terms what their roundings add up to at random
BOUND = {"float32": 3e-6, "float64": 5e-15, "float16": 1e-3, "bfloat16": 8e-3}
SIZES = [(16, 16, 16), (37, 45, 300), (130, 290, 70), (513, 65, 700), (8, 600, 64), (600, 9, 65), (6, 17, 2000)]


def numbers(dtype, *shape):
    if np.issubdtype(dtype, np.integer):
        return RNG.integers(-100, 100, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


def check(name, f, *args):
    """f is linear in its operands: of their sizes it gives the sum of sizes."""
    if len(sys.argv) > 1 and not any(part in name for part in sys.argv[1:]):
        return
    got = np.asarray(jax.jit(f)(*[jax.device_put(x, XPU) for x in args]))
    bound = BOUND.get(str(got.dtype), 0)
    wide = [x.astype(np.int64 if bound == 0 else np.float64) for x in args]
    with jax.default_device(CPU):
        exact = np.asarray(jax.jit(f)(*wide))
        size = np.asarray(jax.jit(f)(*[np.abs(x) for x in wide]))
    error = np.abs(got.astype(exact.dtype) - exact)
    assert (error <= bound * np.abs(size)).all(), (name, (error / np.maximum(size, 1e-300)).max())
    print(name, hashlib.sha256(got.tobytes()).hexdigest()[:16])


def dots():
    for m, n, k in SIZES:
        for turned in range(4):
            x = numbers(np.float32, *((k, m) if turned & 1 else (m, k)))
            y = numbers(np.float32, *((n, k) if turned & 2 else (k, n)))
            check(f"dot {m}x{n}x{k} turned {turned}",
                  lambda x, y: (x.T if turned & 1 else x) @ (y.T if turned & 2 else y), x, y)
        for dtype in (np.float64, np.float16, jnp.bfloat16, np.int32, np.int64):
            x, y = numbers(dtype, m, k), numbers(dtype, k, n)
            check(f"dot {m}x{n}x{k} {np.dtype(dtype).name}", jnp.matmul, x, y)
    x, y = numbers(np.int8, 70, 130), numbers(np.int8, 130, 50)
    check("dot s8", lambda x, y: jax.lax.dot(x, y, preferred_element_type=jnp.promote_types(x.dtype, np.int32)), x, y)
    x, y = numbers(np.float32, 5, 40, 33), numbers(np.float32, 5, 33, 48)
    check("dot batch", jnp.matmul, x, y)
    check("dot heads", lambda x, y: jnp.einsum("bmk,bkn->mbn", x, y), x, y)
    check("dot scaled", lambda x, y: 2 * ((x * 0.5) @ y), x, y)


def convolutions():
    last, first = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
    cases = [(1, 28, 28, 64, 64, 3, 1, 1, 1, 1), (3, 15, 17, 3, 20, 3, 2, 1, 1, 1), (2, 9, 9, 40, 33, 1, 1, 1, 1, 1),
             (2, 12, 13, 130, 24, 3, 1, 1, 2, 1), (2, 8, 8, 16, 12, 4, 1, 2, 1, 1), (1, 7, 7, 400, 40, 3, 1, 1, 1, 1),
             (2, 16, 16, 8, 16, 3, 1, 1, 1, 2)]
    for n, h, w, c, f, k, stride, dilated, apart, groups in cases:
        for dims in (last, first):
            x = numbers(np.float32, *[{"N": n, "H": h, "W": w, "C": c}[d] for d in dims[0]])
            y = numbers(np.float32, *[{"H": k, "W": k, "I": c // groups, "O": f}[d] for d in dims[1]])

            def conv(x, y):
                return jax.lax.conv_general_dilated(
                    x, y, (stride, stride), ((k // 2, k // 2),) * 2, (dilated,) * 2, (apart,) * 2, dims,
                    feature_group_count=groups)
            name = f"conv {dims[0]} {n}x{h}x{w}x{c}->{f} {k} {stride}{dilated}{apart}{groups}"
            check(name, conv, x, y)
            out = numbers(np.float32, *jax.eval_shape(conv, x, y).shape)
            check(name + " dx", lambda g, y: jax.vjp(lambda x: conv(x, y), jnp.zeros(x.shape, y.dtype))[1](g)[0], out, y)
            check(name + " dy", lambda g, x: jax.vjp(lambda y: conv(x, y), jnp.zeros(y.shape, x.dtype))[1](g)[0], out, x)


dots()
convolutions()
