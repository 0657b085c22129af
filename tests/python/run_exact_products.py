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
          (96, 80, 130), (4096, 64, 4096), (768, 640, 8192), (1024, 768, 5057), (2048, 2057, 512), (8, 1024, 4096),
          (1024, 3, 4096), (15, 2, 1000)]


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


def deep_convolution(kind, c=1280):
    """Few results of long sums; twice each row and column of a smaller image."""
    x, y = numbers(kind, 2, 8, 8, c), numbers(kind, 3, 3, c, 256)
    wide = np.pad(x.repeat(2, 1).repeat(2, 2), ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(wide[:, i:i + 16, j:j + 16] @ y[i, j] for i in range(3) for j in range(3))
    return [x, y], lambda a, b: jax.lax.conv_general_dilated(
        jnp.broadcast_to(a[:, :, None, :, None], (2, 8, 2, 8, 2, c)).reshape(2, 16, 16, c), b, (1, 1), "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"), preferred_element_type=TYPES[kind][1]), want


# what makes an operand of [2048, 1024] in NumPy and JAX alike, and of what shapes
PUT_TOGETHER = {
    "parts of K": (lambda np, x, y: np.concatenate([x, y[:, 256:], y[:, :256]], 1), (2048, 256), (2048, 768)),
    "parts of M": (lambda np, x, y: np.concatenate([x, y]), (1024, 1024), (1024, 1024)),
    "padded": (lambda np, x, y: np.pad(x, ((0, 9), (5, 0))), (2039, 1019), (1, 1)),
    "rows picked": (lambda np, x, y: x[np.arange(2048) * 7 % 999], (999, 1024), (1, 1)),
    "turned in parts": (lambda np, x, y: x.transpose(0, 2, 1).reshape(2048, 1024), (4, 1024, 512), (1, 1)),
    "K turned in parts": (lambda np, x, y: x.transpose(1, 0, 2).reshape(2048, 1024), (4, 2048, 256), (1, 1)),
    "reversed": (lambda np, x, y: x[::-1, ::-1], (2048, 1024), (1, 1)),
    "every second": (lambda np, x, y: x[::2, ::2], (4096, 2048), (1, 1)),
}


def put_together(kind, how, turned):
    """Two products want the same operand."""
    make, *shapes = PUT_TOGETHER[how]
    args, w = [numbers(kind, *s) for s in shapes], numbers(kind, 1024 if turned == "n" else 2048, 1152)
    narrow, wide = TYPES[kind]

    def f(x, y, w):
        a = make(jnp, x, y).astype(narrow)
        a, w = a if turned == "n" else a.T, w.astype(narrow)
        return jax.lax.dot(a, w, preferred_element_type=wide) + 2 * jax.lax.dot(a, 4 - w, preferred_element_type=wide)
    a = make(np, *args)
    return args + [w], f, (a if turned == "n" else a.T) @ (8 - w)


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
        yield f"{kind} deep convolution", lambda k=kind: (k, deep_convolution(k))
        yield f"{kind} epilogue", lambda k=kind: (k, with_epilogue(k))
        for how in PUT_TOGETHER:
            for turned in "nt":
                yield (f"{kind} {how} {turned}", lambda k=kind, h=how, t=turned: (k, put_together(k, h, t)))
        for turned in "nt":
            yield (f"{kind} of f32 {turned}", lambda k=kind, t=turned: ("f32", put_together(k, "parts of M", t)))
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
