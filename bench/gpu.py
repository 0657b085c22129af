"""Programs on a GPU beside XLA's: those that memory bounds, others, and what calls cost.

usage: gpu.py [--only REGEX] [--rounds N] [--elements N] [--out FILE.json]

Ours is what SUNDOG_DEVICE names; JAX's CUDA back end runs beside it where it is
installed, in processes that take turns.  A program is put into the queue 20 times
between two waits, so that a launch's cost hides, and no output is above 128 MiB.
Read the TB/s beside the copy's, which is the roof.  Rows without TB/s are products,
sorts and scatters, and calls that do nothing: one that is waited for, one in a row, a
turn of a loop.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys

BESIDE = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
IN_A_ROW, BEST_OF = 20, 5


def entries(n):
    """Name, function, what makes its arguments, and the bytes that it moves where
    these are not the sum of arguments and results."""
    import jax
    import jax.numpy as jnp
    f32, bf16, s8 = jnp.float32, jnp.bfloat16, jnp.int8

    def made(shape, t):
        x = jnp.arange(int(jnp.prod(jnp.array(shape))), dtype=jnp.int32)
        x = ((x * 1103515245 + 12345) >> 16) % 2003
        return (x.astype(f32) / 1001.5 - 1).reshape(shape).astype(t)

    def rows(width, t):
        return made((n // width, width), t)

    def norm(x, g):
        y = x.astype(f32)
        m = y.mean(-1, keepdims=True)
        v = ((y - m) ** 2).mean(-1, keepdims=True)
        return ((y - m) * jax.lax.rsqrt(v + 1e-5) * g).astype(x.dtype)

    def softmax(x):
        return jax.nn.softmax(x.astype(f32), -1).astype(x.dtype)

    def axpy(x, y):
        return x * y + x

    side = 1 << (n.bit_length() // 2)
    yield "copy f32", lambda x: x + 1, lambda: [made((n,), f32)]
    yield "elementwise f32", axpy, lambda: [made((n,), f32)] * 2
    yield "elementwise bf16", axpy, lambda: [made((2 * n,), bf16)] * 2
    yield "elementwise s8", axpy, lambda: [made((4 * n,), s8)] * 2
    yield "bias bf16 768", lambda x, b: x + b, lambda: [rows(768, bf16), made((768,), bf16)]
    yield "gelu bf16", jax.nn.gelu, lambda: [made((2 * n,), bf16)]
    yield "convert f32 bf16", lambda x: x.astype(bf16), lambda: [made((n,), f32)]
    for t, name in ((f32, "f32"), (bf16, "bf16")):
        for width in (128, 1024, 4096, 32768):
            yield f"softmax {name} {width}", softmax, lambda w=width, t=t: [rows(w, t)]
        for width in (768, 4096):
            yield f"layer norm {name} {width}", norm, lambda w=width, t=t: [rows(w, t), made((w,), f32)]
        yield f"transpose {name}", lambda x: x.T + 0, lambda t=t: [made((side, n // side), t)]
        yield f"row sum {name} 4096", lambda x: x.sum(-1), lambda t=t: [rows(4096, t)]
        for width in (1024, 8192):
            yield f"column sum {name} {width}", lambda x: x.sum(0), lambda w=width, t=t: [rows(w, t)]
        yield f"middle sum {name} 1024", lambda x: x.sum(1), lambda t=t: [rows(1024, t).reshape(64, -1, 1024)]
    yield "all sum f32", lambda x: x.sum(), lambda: [made((n,), f32)]
    yield "argmax f32 4096", lambda x: x.argmax(-1), lambda: [rows(4096, f32)]
    yield ("gather rows f32 768", lambda x, i: x[i],
           lambda: [rows(768, f32), jnp.arange(n // 1024) * 40503 % (n // 768)])
    yield ("concatenate f32", lambda x, y: jnp.concatenate([x, y], -1), lambda: [made((n // 2048, 768), f32)] * 2)
    yield "pad f32", lambda x: jnp.pad(x, ((0, 0), (4, 4))), lambda: [rows(1016, f32)]
    yield ("layer norm grad f32 768", jax.grad(lambda x, g: (norm(x, g) ** 2).sum(), (0, 1)),
           lambda: [rows(768, f32), made((768,), f32)])


def made_of(n, below, seed):
    """Whole numbers that lie anywhere below a bound."""
    import numpy
    return numpy.random.default_rng(seed).integers(0, below, n).astype("i4")


def others(n):
    """Name, function, what makes its arguments: products, sorts, scatters, which memory
    does not bound."""
    import jax
    import jax.numpy as jnp
    numbers = jax.lax.iota(jnp.float32, n) * 0.37 % 1.0

    for t in (jnp.float32, jnp.bfloat16, jnp.float16, jnp.int8):
        wide = jnp.int32 if t == jnp.int8 else None
        for side in (1024, 2048, 4096):
            yield (f"product {jnp.dtype(t).name} {side}",
                   lambda x, wide=wide: jax.lax.dot(x, x, precision="highest", preferred_element_type=wide),
                   lambda t=t, side=side: [jnp.ones((side, side), t)])
    for side in (1024, 2048, 4096, 8192):
        yield (f"product float32 {side}, default", lambda x: jax.lax.dot(x, x),
               lambda side=side: [jnp.ones((side, side), jnp.float32)])
    yield "product int8 8192", lambda x: jax.lax.dot(x, x, preferred_element_type=jnp.int32), lambda: [
        jnp.ones((8192, 8192), jnp.int8)]
    for t, wide in (jnp.float32, None), (jnp.int8, jnp.int32):
        yield (f"product {jnp.dtype(t).name} 4096, x turned", lambda x, y, wide=wide: jax.lax.dot(
            x.T, y, preferred_element_type=wide), lambda t=t: [jnp.ones((4096, 4096), t)] * 2)
    for rows, deep, columns in (512, 4096, 4096), (16384, 512, 4096):
        yield (f"product float32 {rows} x {deep} x {columns}, default", jax.lax.dot,
               lambda m=rows, k=deep, n=columns: [jnp.ones((m, k)), jnp.ones((k, n))])
    yield ("products bf16 64 x 512 x 64", lambda x: jnp.einsum("bij,bkj->bik", x, x),
           lambda: [jnp.ones((64, 512, 64), jnp.bfloat16)])
    # by default f32 is rounded to tf32
    for t, precision in (jnp.float32, "highest"), (jnp.float32, None), (jnp.bfloat16, None):
        for side, c in (56, 64), (28, 128), (14, 256):
            yield (f"conv 3x3 {jnp.dtype(t).name} {side} x {c}{'' if precision or t != jnp.float32 else ', default'}",
                   lambda x, k, precision=precision: jax.lax.conv_general_dilated(
                       x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=precision),
                   lambda t=t, side=side, c=c: [jnp.ones((32, side, side, c), t), jnp.ones((3, 3, c, c), t)])
    for name, side, c, o, dims in (("conv 3x3 float32 112 x 32 to 64, default", 112, 32, 64, "NHWC"),
                                   ("conv 3x3 float32 28 x 128 NCHW, default", 28, 128, 128, "NCHW")):
        yield (name, lambda x, k, dims=dims: jax.lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=(dims, "HWIO", dims)),
               lambda side=side, c=c, o=o, dims=dims: [
                   jnp.ones((32, side, side, c) if dims == "NHWC" else (32, c, side, side)),
                   jnp.ones((3, 3, c, o))])
    for t in (jnp.float32, jnp.bfloat16):
        for name, (images, side, c, o), width, stride in (("first layer", (64, 224, 3, 64), 7, 2),
                                                          ("conv 3x3", (1, 512, 128, 128), 3, 1),
                                                          ("conv 3x3", (32, 112, 64, 96), 3, 1),
                                                          ("conv 3x3", (2, 64, 320, 320), 3, 1)):
            yield (f"{name} {jnp.dtype(t).name} {images} x {side}, {c} to {o}", lambda x, k, stride=stride: jax.lax.conv_general_dilated(
                x, k, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
                   lambda t=t, images=images, side=side, c=c, o=o, width=width: [
                       jnp.ones((images, side, side, c), t), jnp.ones((width, width, c, o), t)])
    for axis, shape in ((0, (n // 2,)), (0, (1 << 20,)), (0, (100003,)), (1, (20, 100001)), (1, (64, 50257)),
                        (1, (8192, 1024)), (0, (8192, 64))):
        yield (f"running sums {' x '.join(map(str, shape))} along {axis}", lambda x, axis=axis: jnp.cumsum(x, axis),
               lambda shape=shape: [jax.random.normal(jax.random.key(0), shape)])
    keys, ids = made_of(n, 1 << 30, 0), made_of(n, n // 16, 1)
    for rows in (1, 32, n // 256, n // 8192):
        yield f"sort {rows} x {n // rows}", lambda x: jnp.sort(x, -1), lambda r=rows: [jnp.asarray(keys).reshape(r, -1)]
    for width in (16, 1024):
        yield (f"sort f32 rows of {width}", lambda x: jnp.sort(x, -1), lambda w=width: [numbers.reshape(-1, w)])
    yield "argsort", jnp.argsort, lambda: [jnp.asarray(keys)]
    yield "sort of columns 1024", lambda x: jnp.sort(x, 0), lambda: [jnp.asarray(keys).reshape(-1, n // 1024)]
    yield "10 largest", lambda x: jax.lax.top_k(x, 10), lambda: [numbers]
    yield "1000 largest of 32 rows", lambda x: jax.lax.top_k(x, 1000), lambda: [numbers.reshape(32, -1)]
    for name, x in (("f32", numbers), ("s32", jnp.asarray(keys))):
        yield (f"sums {name} into {n // 16}", lambda x, i: jax.ops.segment_sum(x, i, n // 16),
               lambda x=x: [x, jnp.asarray(ids)])
    yield "sums f32 into 1000", lambda x, i: jax.ops.segment_sum(x, i, 1000), lambda: [numbers, jnp.asarray(ids % 1000)]
    yield (f"sums of {n // 32} rows of 64 into {n // 320}", lambda x, i: jax.ops.segment_sum(x, i, n // 320),
           lambda: [jnp.resize(numbers, (n // 32, 64)), jnp.asarray(ids[:n // 32] % (n // 320))])
    yield "bincount of 65536", lambda i: jnp.bincount(i, length=65536), lambda: [jnp.asarray(ids % 65536)]
    yield ("embedding's gradient", lambda d, i: jnp.zeros((50257, 768)).at[i].add(d),
           lambda: [jnp.ones((8192, 768)), jnp.asarray(made_of(8192, 50257, 2))])
    yield "set of many", lambda x, i: x.at[i].set(1.0), lambda: [numbers, jnp.asarray(ids[:1 << 20])]
    for name, factor in (("lu", jax.lax.linalg.lu), ("qr", jnp.linalg.qr), ("cholesky", jnp.linalg.cholesky),
                         ("inv", jnp.linalg.inv), ("solve", lambda x: jnp.linalg.solve(x, x[0])),
                         ("eigh", jnp.linalg.eigh), ("svd", lambda x: jnp.linalg.svd(x, full_matrices=False))):
        for side in (64, 100, 200, 400, 1000, 2048):
            if name == "svd" and side > 400:
                continue  # a minute each
            def matrix(side=side, positive=name in ("cholesky", "eigh")):
                x = jax.random.normal(jax.random.key(0), (side, side))
                return [x @ x.T + side * jnp.eye(side) if positive else x]
            yield f"{name} {side}", factor, matrix

    def normal(*shape):
        return lambda: [jax.random.normal(jax.random.key(i), s) for i, s in enumerate(shape)]

    def principal(x):
        x = x - x.mean(0)
        return jnp.linalg.eigh(x.T @ x)[1]

    def step(x, c):
        near = jax.nn.one_hot(((x[:, None] - c) ** 2).sum(-1).argmin(1), len(c))
        return near.T @ x / jnp.maximum(near.sum(0)[:, None], 1)
    yield "principal components of 2000 x 40", principal, normal((2000, 40))
    yield "pinv 60 x 30", jnp.linalg.pinv, normal((60, 30))
    yield "polyfit of 2000, degree 5", lambda x, y: jnp.polyfit(x, y, 5), normal((2000,), (2000,))
    yield "fft 100 x 1000", jnp.fft.fft, normal((100, 1000))
    yield "softmax along 0, 500 x 400", lambda x: jax.nn.softmax(x, 0), normal((500, 400))
    yield "k-means step, 5000 x 8 to 20", step, normal((5000, 8), (20, 8))
    for rows, terms in (64, 65536), (8, 20000):
        yield f"x.T @ y, {rows} x {terms} x {rows}", lambda x, y: x.T @ y, normal((terms, rows), (terms, rows))

    def window(x, g):
        def cost(k):
            return (jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) * g).sum()
        return jax.grad(cost)(jnp.zeros((3, 3, x.shape[-1], g.shape[-1]), x.dtype))
    for images, side, c, o in ((32, 56, 64, 64), (32, 28, 128, 128), (64, 32, 3, 32), (128, 28, 1, 32),
                               (128, 56, 64, 64), (256, 14, 256, 256), (4, 64, 320, 320), (32, 14, 256, 256)):
        make = normal((images, side, side, c), (images, side, side, o))
        yield f"window's gradient {images} x {side}, {c} to {o}", window, make
        yield f"window's gradient {images} x {side}, {c} to {o} bf16", window, lambda make=make: [x.astype(jnp.bfloat16) for x in make()]

    def pairs(*shape):
        return lambda: [jax.lax.complex(*normal(shape, shape)())]

    def convolve(x):
        return jnp.fft.irfft(jnp.fft.rfft(x, 16384) * jnp.fft.rfft(x[:, ::-1], 16384))
    for lines, length in (16384, 4096), (65536, 256), (262144, 64), (16384, 1000), (8192, 1024), (4096, 1009), (1, 1 << 20):
        yield f"fft of pairs {lines} x {length}", jnp.fft.fft, pairs(lines, length)
    yield "fft of pairs along 0, 1024 x 8192", lambda x: jnp.fft.fft(x, axis=0), pairs(1024, 8192)
    yield "fft2 of pairs 4096", jnp.fft.fft2, pairs(4096, 4096)
    yield "fft2 of pairs 64 x 512", jnp.fft.fft2, pairs(64, 512, 512)
    yield "fftn of pairs 256", jnp.fft.fftn, pairs(256, 256, 256)
    yield "rfft 8192 x 8192", jnp.fft.rfft, normal((8192, 8192))
    yield "irfft 4096 x 1025", jnp.fft.irfft, pairs(4096, 1025)
    yield "convolution by rfft 8 x 8000", convolve, normal((8, 8000))


def networks():
    """Name, function, what makes its arguments: attention, a loss over many words, and
    weights that one token reads."""
    import jax
    import jax.numpy as jnp
    bf16 = jnp.bfloat16

    def attend(q, k, v, causal):
        s = jnp.einsum("bthd,bshd->bhts", q, k, preferred_element_type=jnp.float32) / q.shape[-1] ** 0.5
        if causal:
            s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e30)
        return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s).astype(q.dtype), v)

    def gradient(q, k, v, causal):
        return jax.grad(lambda *x: attend(*x, causal).astype(jnp.float32).sum(), (0, 1, 2))(q, k, v)

    def loss(x, w, word):
        logits = jax.nn.log_softmax((x @ w).astype(jnp.float32))
        return -jnp.take_along_axis(logits, word[:, None], 1).mean()
    for images, terms, heads, depth in (4, 4096, 16, 128), (8, 1024, 12, 64), (2, 4096, 8, 40), (1, 16384, 8, 64):
        for name, f in ("attention", attend), ("attention's gradient", gradient):
            for causal in False, True:
                yield (f"{name} {images} x {terms} x {heads} x {depth} bf16{', causal' if causal else ''}",
                       lambda *x, f=f, causal=causal: f(*x, causal),
                       lambda shape=(images, terms, heads, depth): [jnp.ones(shape, bf16) * 0.1] * 3)
    yield ("gradient of a loss, 8192 x 768 to 50257 bf16", jax.grad(loss, (0, 1)), lambda: [
        jnp.ones((8192, 768), bf16) * 0.1, jnp.ones((768, 50257), bf16) * 0.1, jnp.arange(8192, dtype=jnp.int32)])

    def lstm(w, u, x):
        def step(state, x):
            h, c = state
            i, f, o, z = jnp.split(x @ w + h @ u, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(z)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        return jax.lax.scan(step, (x[0] * 0, x[0] * 0), x)[1]

    def layer(x, w, s):
        """Of a network of images, in bf16: two kernels that need what the first has."""
        y = jax.nn.relu(jax.lax.dot(x, w) * s + s)
        return y, jax.lax.dot(y, w.T) + y.sum(-1, keepdims=True)
    yield ("LSTM f32, 256 steps of 64 x 1024", lstm, lambda: [
        jnp.ones((1024, 4096)) * 0.01, jnp.ones((1024, 4096)) * 0.01, jnp.ones((256, 64, 1024))])
    yield ("1 x 1 convolution and back, bf16 200704 x 64 to 256", layer, lambda: [
        jnp.ones((200704, 64), bf16), jnp.ones((64, 256), bf16), jnp.ones((256,), bf16)])
    yield ("conv 3x3 bf16 2 x 16 x 16 x 1280", lambda x, k: jax.lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), lambda: [
            jnp.ones((2, 16, 16, 1280), bf16), jnp.ones((3, 3, 1280, 1280), bf16)])
    yield ("product float32 64 x 4194304 x 64, default", jax.lax.dot, lambda: [
        jnp.ones((64, 1 << 22)), jnp.ones((1 << 22, 64))])
    yield ("gradient of parts, 8192 x 768 to 2304 bf16",
           lambda x, q, k, v: jnp.concatenate([q, k, v], 1).T @ x, lambda: [jnp.ones((8192, 768), bf16)] * 4)
    for t in jnp.float32, bf16:
        for rows in 1, 8:
            for turned in "", ", y turned":
                yield (f"product {rows} x 16384 x 4096 {jnp.dtype(t).name}{turned}",
                       lambda x, y, turned=turned: x @ (y.T if turned else y),
                       lambda rows=rows, t=t, turned=turned: [
                           jnp.ones((rows, 16384), t), jnp.ones((4096, 16384) if turned else (16384, 4096), t)])


def calls():
    """Name, function, how many arguments of 8 numbers, the calls between two waits,
    and the parts of one call that are counted."""
    import jax

    def loop(x):
        return jax.lax.while_loop(lambda s: s[0] < 10000., lambda s: s + 1, x)

    def branches(x):
        return jax.lax.while_loop(lambda s: s[0] < 1000., lambda s: jax.lax.cond(
            s[1] > 500., lambda s: s * 1.0 + 1, lambda s: s + 1, s), x)

    for n in 1, 100:
        for row, name in (1, "waited for"), (500, "in a row"):
            yield f"call of {n}, {name}", lambda *x: sum(x) + 1, n, row, 1
    yield "call, a turn of a while loop", loop, 1, 1, 10000
    yield "call, a turn of a loop with a branch", branches, 1, 1, 1000


def size(tree):
    import jax
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(tree))


def measure(programs, counts, only):
    """One back end: name, seconds, bytes (0: not counted), a line of JSON each."""
    import time
    import jax
    for name, fn, make in programs:
        if not re.search(only, name):
            continue
        given = [jax.device_put(x) for x in make()]
        call = jax.jit(fn).lower(*given).compile()
        out = jax.block_until_ready(call(*given))
        moved = 2 * size(out) if name.startswith("gather") else size(given) + size(out)
        best = float("inf")
        for _ in range(BEST_OF):
            start = time.perf_counter()
            for _ in range(IN_A_ROW):
                out = call(*given)
            jax.block_until_ready(out)
            best = min(best, (time.perf_counter() - start) / IN_A_ROW)
        print(json.dumps([name, best, moved if counts else 0]), flush=True)


def measure_calls(only):
    """The same for what calls cost; no bytes."""
    import time
    import jax
    for name, fn, n, row, parts in calls():
        if not re.search(only, name):
            continue
        given = [jax.device_put(jax.numpy.ones((8,))) for _ in range(n)]
        call, each = jax.jit(fn), []
        jax.block_until_ready(call(*given))
        for _ in range(5 if row * parts > 1 else 300):
            start = time.perf_counter()
            for _ in range(row):
                out = call(*given)
            jax.block_until_ready(out)
            each.append((time.perf_counter() - start) / (row * parts))
        print(json.dumps([name, statistics.median(each), 0]), flush=True)


def child(args, platforms):
    """What `measure` printed in a process on these platforms; empty: there is no such back end."""
    command = [sys.executable, __file__, "--child", "--only", args.only, "--elements", str(args.elements)]
    done = subprocess.run(command, env={**os.environ, **BESIDE, "JAX_PLATFORMS": platforms},
                          capture_output=True, text=True)
    if done.returncode and platforms != "cuda":
        sys.exit(done.stderr)
    return {r[0]: r[1:] for r in map(json.loads, done.stdout.splitlines())}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--elements", type=int, default=1 << 25)
    p.add_argument("--out")
    p.add_argument("--child", action="store_true")
    args = p.parse_args()
    if args.child:
        measure(entries(args.elements), True, args.only)
        measure(others(args.elements), False, args.only)
        measure(networks(), False, args.only)
        return measure_calls(args.only)
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(child(args, "xpu,cpu"))
        theirs.append(child(args, "cuda"))
    print(f"{'':28s} {'us':>9s} {'TB/s':>6s} {'XLA TB/s':>9s} {'times as fast':>14s}")
    table = {}
    for name, (_, moved) in ours[0].items():
        x = statistics.median(r[name][0] for r in ours)
        y = statistics.median(r[name][0] for r in theirs) if theirs[0] else None
        rate = [f"{moved / t / 1e12:.2f}" if t and moved else "" for t in (x, y)]
        print(f"{name:28s} {x * 1e6:9.1f} {rate[0]:>6s} {rate[1]:>9s} {f'{y / x:.2f}' if y else '':>14s}")
        table[name] = {"bytes": moved, "xpu": x, "cuda": y}
    if args.out:
        with open(args.out, "w") as f:
            json.dump(table, f, indent=1)


if __name__ == "__main__":
    main()
