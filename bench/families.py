"""Families of operations, ours against JAX's CPU, in one process.

usage: families.py [--only REGEX] [--shard I/N] [--pairs N] [--seed S] [--cpu-time]
       [--same]

A row is a program.  Each pair times some milliseconds of calls on one platform,
then on the other; the figure is the ratio of the two medians, XLA's time over
ours.  Sizes named in a row are fixed; those behind a tilde are drawn from the
seed, so that nobody tunes for them.  The first results of both are compared by
magnitude, as far as they are unique.
"""
import argparse
import re
import time

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax import lax

ROWS = []  # (name, bar, function, maker of arguments)
CPU_TIME = False  # of all threads, where a machine has other work


def row(name, bar, fn, *make):
    ROWS.append((name, bar, fn, make))


def f32(*shape):
    return lambda r: r.standard_normal(shape, dtype=np.float32)


def below(n, *shape, dtype=np.int32):
    return lambda r: r.integers(0, n, shape).astype(dtype)


def spd(b, n):
    def make(r):
        a = r.standard_normal((b, n, n), dtype=np.float32)
        return a @ a.swapaxes(1, 2) / n + np.eye(n, dtype=np.float32)
    return make


def one(make):
    return lambda r: make(r)[0]


def ranks(i, j, n):
    share = 1 / jnp.maximum(jnp.zeros(n).at[i].add(1.), 1)
    return lax.fori_loop(0, 20, lambda _, r: .15 / n + .85 * jax.ops.segment_sum(
        (r * share)[i], j, n), jnp.full(n, 1 / n))


def scatters(draw):
    bar = 1.5
    n, k, c = draw(10**5, 2 * 10**6), draw(3, 5000), draw(3, 200)
    sums = lambda k: lambda d, s: jax.ops.segment_sum(d, s, k)
    for n, k in ((1 << 20, 10), (1 << 20, 1000), (1 << 20, 10**5),
                 (50000, 1 << 20), (n, k)):
        tilde = "~" * (n not in (50000, 1 << 20))
        row(f"{tilde}segment_sum {n} into {k}", bar, sums(k), f32(n), below(k, n))
    for n, c, k in ((20000, 64, 500), (10**6, 4, 16), (100000, 7, 1000),
                    (3000, 768, 50), (50000, 16, 3000), (200000, 24, 5000),
                    (n // c, c, k)):
        row(f"segment_sum {n}x{c} into {k}", bar, sums(k), f32(n, c), below(k, n))
    row("segment_max 1M into 1000", bar,
        lambda d, s: jax.ops.segment_max(d, s, 1000), f32(1 << 20),
        below(1000, 1 << 20))
    row("5000 set to maxima of 50000", bar,
        lambda x, d, s: x.at[s].max(d), f32(5000), f32(50000), below(5000, 50000))
    for n, k in ((1 << 20, 256), (1 << 20, 5), (n, k)):
        row(f"bincount {n} into {k}", bar,
            lambda s, k=k: jnp.bincount(s, length=k), below(k, n))
    for n, k in ((1 << 20, 64), (n, 100)):
        row(f"histogram {n} into {k}", bar,
            lambda a, k=k: jnp.histogram(a, k, range=(-3, 3))[0], f32(n))
        row(f"histogram weights {n} into {k}", bar, lambda a, w, k=k:
            jnp.histogram(a, k, range=(-3, 3), weights=w)[0], f32(n), f32(n))
    row("scatter_add 500000 into 300x300", bar,
        lambda d, i, j: jnp.zeros((300, 300)).at[i, j].add(d), f32(500000),
        below(300, 500000), below(300, 500000))
    row("scatter_mul int 1M into 7", bar,
        lambda d, s: jnp.ones(7, jnp.int32).at[s].mul(d), below(3, 1 << 20),
        below(7, 1 << 20))
    # XLA rounds each sum to bf16: 0.36 of the magnitude away from the sums in
    # f64, ours 0.002, which is what the note of this row says
    row("scatter_add bf16 1M into 100", bar, lambda d, s:
        jnp.zeros(100, jnp.bfloat16).at[s].add(d.astype(jnp.bfloat16)),
        f32(1 << 20), below(100, 1 << 20))
    row("scatter_add batch 64x20000 into 100", bar, jax.vmap(sums(100)),
        f32(64, 20000), below(100, 64, 20000))
    for e, n in ((20000, 2000), (200000, 5000), (10**6, 10**5)):
        row(f"sparse product {e} into {n}", 1, lambda a, i, j, x, n=n:
            jax.ops.segment_sum(a * x[j], i, n), f32(e), below(n, e),
            below(n, e), f32(n))
        row(f"PageRank {e} edges {n} nodes", 1, lambda i, j, n=n: ranks(
            i, j, n), below(n, e), below(n, e))
    row("embedding grad 8192x128 into 30000", bar, sums(30000), f32(8192, 128),
        below(30000, 8192))


def scans(draw):
    bar, n = 1.5, draw(10**5, 3 * 10**6)
    shapes = [((1 << 20,), 0), ((2048, 4096), 1), ((4096, 2048), 0),
              ((100000, 20), 1), ((20, 100001), 1), ((3, 70001), 0),
              ((64, 128, 96), 1), ((n,), 0), ((n // 777 + 1, 777), 1),
              ((777, n // 777 + 1), 0)]
    for shape, axis in shapes:
        at = "x".join(map(str, shape)) + f" axis {axis}"
        for name in ("cumsum", "cumprod", "cummax", "cumlogsumexp"):
            fn = getattr(lax, name)
            row(f"{name} {at}", bar, lambda a, fn=fn, axis=axis: fn(a, axis),
                f32(*shape))
        row(f"associative_scan add {at}", bar, lambda a, axis=axis:
            lax.associative_scan(jnp.add, a, axis=axis), f32(*shape))
    row("cumsum 4000", bar, lambda a: jnp.cumsum(a), f32(4000))
    row("cumsum int 1M", bar, lambda a: jnp.cumsum(a), below(9, 1 << 20))
    row("cumsum reverse 1M", bar, lambda a: lax.cumsum(a, reverse=True),
        f32(1 << 20))

    def affine(x, y):
        return x[0] * y[0], x[1] * y[0] + y[1]
    for shape in ((100000, 7), (50000, 33), (20000, 64)):
        row(f"associative_scan add {shape}", bar, lambda a:
            lax.associative_scan(jnp.add, a, axis=1), f32(*shape))
    row("associative_scan maximum (50000, 9)", bar, lambda a:
        lax.associative_scan(jnp.maximum, a, axis=1), f32(50000, 9))
    row("associative_scan 2x2 products of 5000", bar, lambda a:
        lax.associative_scan(jnp.matmul, a), f32(5000, 2, 2))
    for shape, axis in (((1 << 20,), 0), ((1024, 512), 0), ((20000, 8), 1)):
        row(f"associative_scan affine {shape}", bar, lambda a, b, axis=axis:
            lax.associative_scan(affine, (a, b), axis=axis), f32(*shape),
            f32(*shape))


def transforms(draw):
    bar = 1 / 1.2
    for k in range(10, 23, 2):
        row(f"fft 2^{k}", bar, lambda a: jnp.fft.fft(a), f32(1 << k))
        row(f"rfft 2^{k}", bar, lambda a: jnp.fft.rfft(a), f32(1 << k))
    shapes = [(512, 1024), (4096, 64), (100, 1000), (16, 65536), (3000, 331),
              (draw(50, 500), draw(100, 3000))]
    for shape in shapes:
        at = "x".join(map(str, shape))
        row(f"fft {at}", bar, lambda a: jnp.fft.fft(a), f32(*shape))
        row(f"rfft {at}", bar, lambda a: jnp.fft.rfft(a), f32(*shape))
        row(f"irfft {at}", bar, lambda a: jnp.fft.irfft(a), f32(*shape))
    for shape in ((512, 512), (768, 768), (1024, 1024),
                  (draw(100, 900), draw(100, 900))):
        at = "x".join(map(str, shape))
        row(f"fft2 {at}", bar, lambda a: jnp.fft.fft2(a), f32(*shape))
        row(f"rfft2 {at}", bar, lambda a: jnp.fft.rfft2(a), f32(*shape))
    for shape in ((64, 64, 64), (128, 96, 100)):
        at = "x".join(map(str, shape))
        row(f"fftn {at}", bar, lambda a: jnp.fft.fftn(a), f32(*shape))
        row(f"rfftn {at}", bar, lambda a: jnp.fft.rfftn(a), f32(*shape))
    for n in (10007, 65537, 1000003, draw(10**4, 10**6)):
        row(f"fft {n}", bar, lambda a: jnp.fft.fft(a), f32(n))


def matrices(draw):
    odd = draw(5, 63)
    for n in (4, 8, 16, 32, 64, odd):
        b = max(1000, min(20000, 2 * 10**6 // n**2))
        for name, fn, *make in (
                ("cholesky", jnp.linalg.cholesky, spd(b, n)),
                ("trsm", lambda a, x: lax.linalg.triangular_solve(
                    a, x, left_side=True, lower=True), spd(b, n), f32(b, n, n)),
                ("trsv", lambda a, x: jsl.solve_triangular(a, x, lower=True),
                 spd(b, n), f32(b, n, 1)),
                ("inv", jnp.linalg.inv, spd(b, n)),
                ("solve", jnp.linalg.solve, spd(b, n), f32(b, n, 1)),
                ("det", jnp.linalg.det, spd(b, n)),
                ("lu", lambda a: jsl.lu_factor(a), f32(b, n, n)),
                ("qr", jnp.linalg.qr, f32(b, n, n)),
                ("eigh", jnp.linalg.eigh, spd(b, n)),
                ("svd", lambda a: jnp.linalg.svd(a)[::-1][1:], f32(b, n, n))):
            row(f"{name} {b}x{n}", 2.0, fn, *make)
    for n in (64, 256, 700, 1024, 2048, draw(64, 1000)):
        for name, fn, make in (
                ("cholesky", jnp.linalg.cholesky, one(spd(1, n))),
                ("lu", lambda a: jsl.lu_factor(a), f32(n, n)),
                ("qr", jnp.linalg.qr, f32(n, n)),
                ("inv", jnp.linalg.inv, one(spd(1, n))),
                ("det", jnp.linalg.det, one(spd(1, n))),
                ("eigh", jnp.linalg.eigh, one(spd(1, n))),
                ("svd", lambda a: jnp.linalg.svd(a)[::-1][1:], f32(n, n))):
            if n < 2048 or name not in ("eigh", "svd"):
                row(f"{name} n={n}", 0.95, fn, make)
        row(f"trsm n={n}", 0.95, lambda a, x: lax.linalg.triangular_solve(
            a, x, left_side=True, lower=True), one(spd(1, n)), f32(n, n))


def orders(draw):
    n, k = draw(10**5, 2 * 10**6), draw(2, 500)
    for shape, k in (((1 << 20,), 1000), ((64, 50000), 50), ((n,), k),
                     ((n // 1001, 1001), 7)):
        at = "x".join(map(str, shape))
        row(f"top_k {k} of {at}", 1.0, lambda a, k=k: lax.top_k(a, k), f32(*shape))
    for shape in ((1 << 20,), (1024, 1024), (n,), (n // 333, 333)):
        at = "x".join(map(str, shape))
        row(f"median {at}", 1.0, lambda a: jnp.median(a, -1), f32(*shape))
        row(f"quantile {at}", 1.0, lambda a: jnp.quantile(
            a, jnp.array([0.1, 0.9]), -1), f32(*shape))
        row(f"sort {at}", 1.0, lambda a: jnp.sort(a), f32(*shape))
        row(f"argsort {at}", 1.0, lambda a: jnp.argsort(a), f32(*shape))
    for shape in ((2048, 300), (n // 500, 500)):
        at = "x".join(map(str, shape))
        row(f"sort columns {at}", 1.0, lambda a: jnp.sort(a, 0), f32(*shape))
        row(f"argsort columns {at}", 1.0, lambda a: jnp.argsort(a, 0), f32(*shape))
    for m in (1 << 20, n):
        row(f"unique {m}", 1.0, lambda a: jnp.unique(a, size=1000),
            below(1000, m))
        for q in (m, 1000):
            row(f"searchsorted {q} in {m}", 1.0, lambda a, v: jnp.searchsorted(
                a, v), lambda r, m=m: np.sort(f32(m)(r)), f32(q))


def typed(dtype, *shape):
    if dtype in ("s8", "s32"):
        np_type = np.int8 if dtype == "s8" else np.int32
        return lambda r: r.integers(-100, 100, shape).astype(np_type)
    if dtype == "c64":
        return lambda r: f32(*shape, 2)(r).view(np.complex64)[..., 0]
    to = {"f32": np.float32, "f64": np.float64, "f16": np.float16,
          "bf16": jnp.bfloat16}[dtype]
    return lambda r: f32(*shape)(r).astype(to)


def product(dtype, spec="mk,kn->mn"):
    wide = jnp.int32 if dtype in ("s8", "s32") else None
    return lambda a, b: jnp.einsum(spec, a, b, preferred_element_type=wide)


def products(draw):
    for dtype in ("f32", "f64", "f16", "bf16", "s8", "s32", "c64"):
        for n in (128, 256, 512, 1024):
            if n < 1024 or dtype not in ("s32", "c64"):
                row(f"dot {dtype} {n}", 1.0, product(dtype), typed(dtype, n, n),
                    typed(dtype, n, n))
    row("dot c64 100x333 by its adjoint", 1.0, lambda a: a @ a.conj().T,
        typed("c64", 100, 333))
    for dtype in ("f32", "bf16", "s8"):
        m, k, n = draw(30, 900), draw(30, 900), draw(30, 900)
        row(f"dot {dtype} ~{m}x{k}x{n}", 1.0, product(dtype),
            typed(dtype, m, k), typed(dtype, k, n))
        row(f"dot {dtype} turned 500x300x700", 1.0, product(dtype, "km,nk->mn"),
            typed(dtype, 300, 500), typed(dtype, 700, 300))
        for m, k, n in ((4096, 64, 64), (64, 64, 4096), (64, 8192, 64),
                        (16, 1024, 1024), (1, 2048, 2048), (2048, 2048, 1)):
            row(f"dot {dtype} {m}x{k}x{n}", 1.0, product(dtype),
                typed(dtype, m, k), typed(dtype, k, n))
    for n in (4, 8, 16, 24, 32, 64, 100):
        row(f"dot f32 batch of {n}", 3.0 if n <= 16 else 1.0,
            product("f32", "bmk,bkn->bmn"), f32(200000 // n**2, n, n),
            f32(200000 // n**2, n, n))
    for m, k, n in ((2, 2, 2), (3, 3, 3), (3, 3, 1), (6, 2, 3), (5, 5, 1)):
        row(f"dot f32 5000 of {m}x{k}x{n}", 1.0, product("f32", "bmk,bkn->bmn"),
            f32(5000, m, k), f32(5000, k, n))
    row("50000 points turned", 1.0, product("f32", "ij,bj->bi"), f32(3, 3),
        f32(50000, 3))
    row("5000 quadratic forms", 1.0, lambda a, x: jnp.einsum(
        "bi,bij,bj->b", x, a, x), f32(5000, 3, 3), f32(5000, 3))


NHWC, NCHW = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")


def convolution(layout, stride=1, groups=1, dilation=1, spread=1, padding="SAME"):
    rank = len(layout[0]) - 2
    each = lambda n: (n,) * rank

    def fn(x, w):
        p = padding
        if spread > 1:
            p = [(1, 2)] * rank
        wide = jnp.int32 if x.dtype == jnp.int8 else None
        return lax.conv_general_dilated(
            x, w, each(stride), p, each(spread), each(dilation), layout,
            groups, preferred_element_type=wide)
    return fn


def images(layout, size, n, c, dtype="f32"):
    at = {"N": n, "C": c}
    return typed(dtype, *(at.get(d, size) for d in layout[0]))


def weights(layout, size, ci, co, dtype="f32"):
    at = {"I": ci, "O": co}
    return typed(dtype, *(at.get(d, size) for d in layout[1]))


def convolutions(draw):
    for name, at in (("NHWC", NHWC), ("NCHW", NCHW)):
        for size, n, c in ((56, 4, 64), (28, 4, 128), (14, 8, 256), (7, 8, 512)):
            for k in (1, 3):
                row(f"conv {name} {k}x{k} {size} {c}", 1.0, convolution(at),
                    images(at, size, n, c), weights(at, k, c, c))
        for label, fn, size, n, ci, co, k in (
                ("stride 2", convolution(at, 2), 56, 4, 64, 128, 3),
                ("first layer", convolution(at, 2), 224, 2, 3, 64, 7),
                ("one channel", convolution(at), 128, 8, 1, 16, 3),
                ("one channel 28", convolution(at, padding="VALID"), 28, 64, 1,
                 32, 5),
                ("dilated", convolution(at, dilation=2), 28, 4, 64, 64, 3),
                ("transposed", convolution(at, spread=2), 28, 4, 64, 64, 3)):
            row(f"conv {name} {label}", 1.0, fn, images(at, size, n, ci),
                weights(at, k, ci, co))
        row(f"conv {name} depthwise", 2.0, convolution(at, groups=128),
            images(at, 28, 4, 128), weights(at, 3, 1, 128))
        row(f"conv {name} grouped", 1.0, convolution(at, groups=8),
            images(at, 28, 4, 128), weights(at, 3, 16, 128))
        row(f"conv {name} int8", 1.0, convolution(at),
            images(at, 28, 4, 64, "s8"), weights(at, 3, 64, 64, "s8"))
        for which in (0, 1):
            for size, n, c in ((28, 4, 64), (14, 8, 128)):
                row(f"conv {name} gradient {'xw'[which]} {size}", 1.0, jax.grad(
                    lambda x, w, at=at: jnp.sum(jnp.square(
                        convolution(at)(x, w))), which),
                    images(at, size, n, c), weights(at, 3, c, c))
    row("conv 1-D", 1.0, convolution(("NWC", "WIO", "NWC")), f32(8, 1000, 64),
        f32(5, 64, 64))
    row("conv 1-D causal, dilated", 1.0, lambda x, w:
        lax.conv_general_dilated(x, w, (1,), [(6, 0)], rhs_dilation=(2,),
                                 dimension_numbers=("NWC", "WIO", "NWC")),
        f32(8, 1001, 64), f32(4, 64, 64))
    row("conv 3-D", 1.0, convolution(("NDHWC", "DHWIO", "NDHWC")),
        f32(1, 20, 20, 20, 32), f32(3, 3, 3, 32, 32))


def distances(x, y):
    d = x[:, None] - y[None]
    return d, (d * d).sum(-1)


def pairs(draw):
    """Of points with a few columns: forces, kernels, the nearest, energies."""
    bar = 2

    def forces(x, m):
        d, r = distances(x, x)
        w = m * lax.rsqrt(r + .01) / (r + .01)
        return (d * w[..., None]).sum(1)

    def kernel(x, y):
        return jnp.exp(-distances(x, y)[1]).sum(1)

    def energy(x):
        i = 1 / (distances(x, x)[1] + jnp.eye(len(x), dtype=x.dtype)) ** 3
        return (i * i - i).sum()

    n = draw(300, 3000)
    for n, c in ((2048, 3), (1000, 4), (n, 2), (n, 5)):
        tilde = "~" * (n not in (2048, 1000))
        row(f"{tilde}forces {n}x{c}", bar, forces, f32(n, c), f32(n))
        row(f"{tilde}kernel {n}x{c}", bar, kernel, f32(n, c), f32(n // 2, c))
        row(f"{tilde}nearest of 32, {20 * n}x{c}", bar, lambda x, y:
            jnp.argmin(distances(x, y)[1], 1), f32(20 * n, c), f32(32, c))
        row(f"{tilde}energy {n}x{c}", bar, energy, f32(n, c))
        row(f"{tilde}energy, gradient {n}x{c}", bar, jax.grad(energy),
            f32(n, c))
    row("sum of an outer product's exp", 1, lambda x, y:
        jnp.exp(x[:, None] * y).sum(), f32(1500), f32(1300))
    row("sum of unit vectors", bar, lambda x:
        (x / jnp.linalg.norm(x, axis=1, keepdims=True)).sum(0), f32(10**6, 3))


def far_apart(w, x, y):
    """Most probabilities are smaller than f32's least normal number."""
    return jax.grad(lambda w: -jax.nn.log_softmax(x @ w)[
        jnp.arange(len(x)), y].mean())(w)


def mean_of_rows(x):
    x = jnp.pad(x, ((1, 1), (0, 0)), mode="edge").astype(jnp.int32)
    return ((x[:-2] + x[1:-1] + x[2:]) // 3).astype(jnp.uint8)


def rows(draw):
    """A few numbers side by side; rows that are put together, or shifted."""
    bar = 1
    n = draw(20000, 200000)
    row("gradient of a cross entropy, logits far apart", bar, far_apart,
        f32(784, 10), f32(512, 784), below(10, 512))
    row("mean of 3 rows of bytes of 512x512", bar, mean_of_rows,
        below(255, 512, 512, dtype=np.uint8))
    for n, c in ((200000, 2), (200000, 3), (200000, 4), (200000, 5),
                 (200000, 7), (200000, 10), (n, 3), (n, 6)):
        tilde = "~" * (n != 200000)
        row(f"{tilde}{n}x{c} less its means", bar, lambda x, m: x - m,
            f32(n, c), f32(c))
        row(f"{tilde}{n}x{c} of 5000 picked", bar, lambda x, i: x[i] * 2,
            f32(5000, c), below(5000, n))
    for n, f in ((5, jnp.tanh), (6, jnp.exp), (7, jnp.sin)):
        row(f"{f.__name__} of products 20000x{n}", bar, lambda x, y, f=f:
            f(x[:, None] * y), f32(20000), f32(n))
    row("vander 20001x6", bar, lambda x: jnp.vander(x, 6), f32(20001))
    row("tanh 500x1000", bar, lambda x: jnp.tanh(x), f32(500, 1000))
    row("remainder by 1 500000", bar, lambda x: x % 1, f32(500000))
    for n, k in (512, 1000), (4096, 10), (256, 50257):
        row(f"loss of a word's logit, gradient {n}x{k}", bar,
            jax.grad(lambda z, w: -jnp.take_along_axis(jax.nn.log_softmax(z), w[:, None], 1).mean()),
            f32(n, k), below(k, n))
    row("maximum's place, gradient 2000x500", bar, jax.grad(
        lambda z: (z * jnp.take_along_axis(z, jnp.argmax(z, 1)[:, None], 1)).sum()), f32(2000, 500))
    for n, k in (100000, 8), (1000, 1000):
        row(f"place of a row, gradient {n}x{k}", bar, jax.grad(
            lambda z, w: (jnp.take_along_axis(z, w[:, None], 1) ** 2).sum()), f32(n, k), below(k, n))
    row("softcap 500x1000", bar, lambda x: 30 * jnp.tanh(x / 30),
        f32(500, 1000))
    for f in (jax.nn.gelu, lax.erf):
        row(f"{f.__name__} 500x1000", bar, lambda x, f=f: f(x), f32(500, 1000))
    row("tanh 8192x64 times a vector", bar, lambda x, w: jnp.tanh(x) @ w,
        f32(8192, 64), f32(64))
    images = f32(8, 224, 224, 3)
    row("channels less their means", bar, lambda x, m, s: (x - m) / s, images,
        f32(3), lambda r: r.random(3, np.float32) + 1)
    row("images turned round", bar, lambda x: x[:, :, ::-1] * 2, images)
    row("channels turned round", bar, lambda x: x[..., ::-1] * 2, images)
    byte = lambda *shape: below(256, *shape, dtype=np.uint8)
    for c in (2, 3, 4, 5):
        row(f"{c} channels of bytes less their means", bar, lambda x, m, s:
            (x.astype(jnp.float32) - m) / s, byte(8, 224, 224, c), f32(c),
            lambda r, c=c: r.random(c, np.float32) + 1)
        row(f"{c} channels, turned", bar, lambda x: x[:, :, ::-1] * 2,
            f32(8, 224, 224, c))
        row(f"{c} channels of bytes, turned", bar, lambda x: x[:, :, ::-1],
            byte(8, 224, 224, c))
        row(f"{c} channels in reverse", bar, lambda x: x[..., ::-1] * 2,
            f32(8, 224, 224, c))
        row(f"{c} channels of bytes in reverse", bar, lambda x: x[..., ::-1],
            byte(8, 224, 224, c))
    row("channels put last", bar, lambda x: x.transpose(0, 2, 3, 1) * 2,
        f32(8, 3, 224, 224))
    row("channels of bytes put apart", bar, lambda x: x.transpose(0, 3, 1, 2),
        byte(8, 224, 224, 3))
    row("images of bytes turned by a quarter", bar, lambda x:
        jnp.rot90(x, 1, (1, 2)), byte(8, 240, 320, 3))
    row("alpha of bytes left out", bar, lambda x: x[..., :3],
        byte(8, 224, 224, 4))
    row("colours of labels", bar, lambda label, colour: colour[label],
        below(21, 4, 256, 256), byte(21, 3))
    row("bytes transposed", bar, lambda x: x.T, byte(1003, 777))
    row("kron 40x40 30x30", bar, jnp.kron, f32(40, 40), f32(30, 30))
    row("Haar step 512x1024", bar, lambda x: jnp.concatenate(
        [(x[:, ::2] + x[:, 1::2]) * .7, (x[:, ::2] - x[:, 1::2]) * .7], 1),
        f32(512, 1024))
    row("eight pieces turned", bar, lambda x: jnp.concatenate(
        [a[::-1] for a in jnp.split(x, 8, 1)], 1), f32(512, 1024))
    row("stack of 8 rolls", bar, lambda x: jnp.stack(
        [jnp.roll(x, i) for i in range(8)]), f32(50000))
    row("stack of 16 slices", bar, lambda x: jnp.stack(
        [x[i:50000 + i] * (i + 1) for i in range(16)]), f32(50016))
    row("rows put around 300x1000", bar, lambda x: jnp.pad(
        x, ((3, 5), (0, 0)), mode="wrap"), f32(300, 1000))
    row("life, 30 turns", bar, lambda b: lax.fori_loop(0, 30, life, b),
        below(2, 256, 256, dtype=np.uint8))


def network(w1, w2, x, y):
    """Twenty steps of Adam for a layer of tanh."""
    def loss(p):
        return jnp.mean((jnp.tanh(x @ p[0]) @ p[1] - y) ** 2)

    def step(_, state):
        new = [adam(*s, g) for s, g in zip(state, jax.grad(loss)(
            [s[0] for s in state]))]
        return new
    zero = jnp.zeros_like
    return lax.fori_loop(0, 20, step, [(w, zero(w), zero(w)) for w in (w1, w2)])


def adam(p, m, v, g):
    m, v = .9 * m + .1 * g, .999 * v + .001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def training(_):
    bar = 1
    for n in (1000, 10**5, 10**6, 10**7):
        row(f"Adam {n}", bar, lambda p, m, v, g: adam(p, m, v * v, g),
            *[f32(n)] * 4)
    row("Adam, 12 of 64x64", bar, lambda p, m, v, g: [
        adam(*x) for x in zip(p, m, v * v, g)], *[f32(12, 64, 64)] * 4)
    for n in (100, 1000, 5000):
        row(f"network of 10x64, {n} at once", bar, network, f32(10, 64),
            f32(64), f32(n, 10), f32(n))


def windows(_):
    """Few operations, and an inside that asks nothing."""
    bar = 1

    def over(f, start, *size):
        return lambda x: lax.reduce_window(x, start, f, size,
                                           (1,) * len(size), "SAME")

    row("window and 3x3 of 512x512 bool", bar, lambda x: over(
        lax.bitwise_and, np.bool_(True), 3, 3)(x > 0), f32(512, 512))
    row("window add 3x3 of 4x56x56x64", bar, over(
        lax.add, np.float32(0), 1, 3, 3, 1), f32(4, 56, 56, 64))
    row("window max 3x3 of 4x16x56x56", bar, over(
        lax.max, np.float32(-np.inf), 1, 1, 3, 3), f32(4, 16, 56, 56))
    row("window add 3x3x3 of 30x31x70", bar, over(
        lax.add, np.float32(0), 3, 3, 3), f32(30, 31, 70))
    row("box of 9 over 50000", bar, lambda x: jnp.convolve(
        x, jnp.ones(9) / 9, mode="same"), f32(50000))


def life(_, b):
    n = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1)
            for j in (-1, 0, 1) if i or j)
    return ((n == 3) | ((n == 2) & (b == 1))).astype(b.dtype)


def calls(fn, batch):
    clock = time.process_time if CPU_TIME else time.perf_counter
    start = clock()
    for _ in range(batch):
        y = fn()
        jax.block_until_ready(y)
    return (clock() - start) / batch


def differ(a, b):
    a, b = (np.abs(np.asarray(jax.tree.leaves(x)[0]).astype(complex))
            for x in (a, b))
    fine = np.isfinite(a) & np.isfinite(b)
    scale = np.max(b[fine], initial=1e-30)
    return np.max(np.abs(a - b)[fine], initial=0) / scale


def measure(fn, make, pairs, platforms):
    rng = np.random.default_rng(0)
    args, jit, runs = [m(rng) for m in make], jax.jit(fn), []
    with jax.enable_x64(bool(args[0].dtype == np.float64)):
        for platform in platforms:
            here = jax.device_put(args, jax.devices(platform)[0])
            runs.append(lambda here=here: jit(*here))
        off = differ(*[run() for run in runs])
        for run in runs:
            calls(run, 2)
        batch = max(1, int(0.01 / max(calls(runs[0], 1), calls(runs[1], 1))))
        times = [[calls(run, batch) for run in runs] for _ in range(pairs)]
    return *np.median(times, 0), off


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--only", default=".*")
    ap.add_argument("--shard", default="1/1", metavar="I/N",
                    help="one row in N from row I on")
    ap.add_argument("--pairs", type=int, default=11)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--cpu-time", action="store_true",
                    help="of all threads, for a machine that has other work")
    ap.add_argument("--same", action="store_true",
                    help="ours against ours: how far a ratio is from 1 by luck")
    a = ap.parse_args()
    global CPU_TIME
    CPU_TIME = a.cpu_time
    rng = np.random.default_rng(a.seed)
    for family in (scatters, scans, transforms, matrices, orders, products,
                   convolutions, pairs, rows, training, windows):
        family(lambda lo, hi: int(np.exp(rng.uniform(np.log(lo), np.log(hi)))))
    at, every = map(int, a.shard.split("/"))
    under = []
    print(f"{'program':44}{'XLA ms':>10}{'ours':>10}{'ratio':>8}{'bar':>6}")
    for name, bar, fn, make in ROWS[at - 1::every]:
        if not re.search(a.only, name):
            continue
        cpu, xpu, off = measure(fn, make, a.pairs,
                                ("xpu" if a.same else "cpu", "xpu"))
        note = "" if cpu / xpu >= bar else "  below"
        under += [name] if note else []
        note += f"  off by {off:.0e}" if off > 1e-3 else ""
        print(f"{name:44}{cpu * 1e3:10.3f}{xpu * 1e3:10.3f}{cpu / xpu:8.2f}"
              f"{bar:6.2f}{note}", flush=True)
    print(f"below their bars: {len(under)}" + "".join(f"\n  {n}" for n in under))


if __name__ == "__main__":
    main()
