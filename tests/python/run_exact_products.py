"""Products whose sums are exact on a device, whatever order it adds them in: small
integers, turned or not, with tails, in batches, and as convolutions; and f32 times the
identity, which is the number rounded as the precision says: on cuda to tf32 below highest,
unless NVIDIA_TF32_OVERRIDE or SUNDOG_ENGINES is 0.

usage: run_exact_products.py [--only REGEX]     SUNDOG_DEVICE and SUNDOG_WGMMA say where and how

Prints what differs from numpy's, and "N of M products are exact"; exits 1 when one is not.
"""
import argparse
import os
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

TYPES = {"bf16": (jnp.bfloat16, jnp.float32), "f16": (jnp.float16, jnp.float32),
         "s8": (jnp.int8, jnp.int32), "u8": (jnp.uint8, jnp.int32), "f32": (jnp.float32, jnp.float32)}
SHAPES = [(2048, 2048, 512), (1160, 1000, 200), (1159, 1001, 77), (2304, 2048, 136), (1160, 1000, 24),
          (96, 80, 130), (4096, 64, 4096)]


def numbers(kind, *shape):
    """The same for each shape; sums of 4,096 products are exact in f32."""
    low = 0 if kind == "u8" else -4
    return np.random.RandomState(len(shape)).randint(low, 5, shape).astype(np.float32)


def dot(kind, shape, turned):
    m, n, k = shape
    x, y = numbers(kind, m, k), numbers(kind, k, n)
    args = [x.T if turned[0] == "t" else x, y.T if turned[1] == "t" else y]
    dims = (((int(turned[0] == "n"),), (int(turned[1] == "t"),)), ((), ()))
    return args, lambda a, b: jax.lax.dot_general(
        a, b, dims, preferred_element_type=TYPES[kind][1]), x @ y


def batch(kind):
    x, y = numbers(kind, 9, 384, 72), numbers(kind, 9, 72, 320)
    return [x, y], lambda a, b: jnp.einsum(
        "bmk,bkn->bmn", a, b, preferred_element_type=TYPES[kind][1]), np.einsum("bmk,bkn->bmn", x, y)


def convolution(kind):
    x, y = numbers(kind, 8, 28, 28, 24), numbers(kind, 3, 3, 24, 192)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(wide[:, i:i + 28, j:j + 28] @ y[i, j] for i in range(3) for j in range(3))
    return [x, y], lambda a, b: jax.lax.conv_general_dilated(
        a, b, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
        preferred_element_type=TYPES[kind][1]), want


def with_epilogue(kind):
    args, f, want = dot(kind, SHAPES[1], "nn")
    b = numbers(kind, 1000)
    return args + [b], lambda x, y, z: jnp.maximum(f(x * 2, y) + z.astype(TYPES[kind][1]), 0), \
        np.maximum(2 * want + b, 0)


def rounded(x):
    """To tf32, ties away from zero."""
    return (x.view(np.uint32) + np.uint32(0x1000) & np.uint32(0xffffe000)).view(np.float32)


def times_one(precision, which, tf32, m=2304, k=512):
    """Numbers of all sizes, which are one operand or the other of a product or a convolution."""
    random = np.random.RandomState(k)
    x = np.ldexp(random.standard_normal((m, k)), random.randint(-40, 40, (m, k))).astype(np.float32)
    x[0, :4] = 2049, 2051, -2049, 2049.5
    one = np.eye(k, dtype=np.float32)
    want = rounded(x) if tf32 else x
    if which == "image":
        shape, one = (9, 16, 16, k), np.pad(one[None, None], ((1, 1), (0, 0), (0, 0), (0, 0)))
        return [x.reshape(shape), one], lambda a, b: jax.lax.conv_general_dilated(
            a, b, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            precision=precision), want.reshape(shape)
    args, dims = {"x": ([x, one], ((1,), (0,))), "x turned": ([x.T, one], ((0,), (0,))),
                  "y": ([one, x.T], ((1,), (0,))), "y turned": ([one, x], ((1,), (1,)))}[which]
    return args, lambda a, b: jax.lax.dot_general(a, b, (dims, ((), ())), precision=precision), \
        want if which[0] == "x" else want.T


def programs(has_tf32):
    for kind in TYPES:
        for shape in SHAPES:
            for turned in ("nn", "nt", "tn", "tt"):
                yield (f"{kind} {' x '.join(map(str, shape))} {turned}",
                       lambda k=kind, s=shape, t=turned: (k, dot(k, s, t)))
        yield f"{kind} batch", lambda k=kind: (k, batch(k))
        yield f"{kind} convolution", lambda k=kind: (k, convolution(k))
        yield f"{kind} epilogue", lambda k=kind: (k, with_epilogue(k))
    for precision in None, "high", "highest":
        for which in "x", "x turned", "y", "y turned", "image":
            yield (f"f32 {precision} times one, {which}", lambda p=precision, w=which: (
                "f32", times_one(p, w, has_tf32 and p != "highest")))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default=".*")
    only, right, n = ap.parse_args().only, 0, 0
    device, off = jax.devices("xpu")[0], [os.environ.get(n) for n in ("NVIDIA_TF32_OVERRIDE", "SUNDOG_ENGINES")]
    for name, make in programs(os.environ.get("SUNDOG_DEVICE") == "cuda" and "0" not in off):
        if not re.search(only, name):
            continue
        kind, (args, f, want) = make()
        placed = [jax.device_put(a.astype(TYPES[kind][0]), device) for a in args]
        wrong = int((np.asarray(jax.jit(f)(*placed)).astype(np.float64) != want).sum())
        n, right = n + 1, right + (not wrong)
        if wrong:
            print(f"{name}: {wrong} of {want.size} sums are wrong", flush=True)
    print(f"{right} of {n} products are exact")
    return 0 if n and right == n else 1


if __name__ == "__main__":
    sys.exit(main())
