"""Long sorts and scatters on a device against numpy, bit by bit: every width, stable,
both directions, NaN and -0, several operands and keys, rows, columns, few of many, and
many rows, of 1 element to 9,000.

usage: run_sorts.py [--only REGEX] [--elements N]     SUNDOG_DEVICE says where

Prints what differs, and "N of M are right"; exits 1 when one is not.
"""
import argparse
import os
import re
import sys

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float16", "float32", "float64")


def numbers(rng, kind, n):
    t = np.dtype(kind)
    if t.kind != "f":
        return rng.integers(np.iinfo(t).min, np.iinfo(t).max, n, dtype=t, endpoint=True)
    x = (rng.standard_normal(n) * 4).astype(t)
    for step, value in (7, np.nan), (11, -0.0), (13, 0.0), (17, np.inf), (31, -np.inf):
        x[step - 2::step] = value
    return x


def order(x, axis=-1):
    return np.argsort(x, axis, kind="stable")


def by(i, *xs):
    return tuple(np.take_along_axis(x, i, -1) for x in xs)


def sums(x, i, n):
    r = np.zeros(n, x.dtype)
    np.add.at(r, i[(i >= 0) & (i < n)], x[(i >= 0) & (i < n)])
    return r


def last(x, i):
    r = x.copy()
    r[i] = np.arange(len(i), dtype=x.dtype)
    return r


def cases(n):
    """Name, function, what numpy says, arguments."""
    rng = np.random.default_rng(0)
    for kind in TYPES:
        x = numbers(rng, kind, n)
        yield f"argsort {kind}", jnp.argsort, lambda x: order(x), [x]
        yield f"sort {kind}", jnp.sort, lambda x: x[order(x)], [x]
    x, y = rng.integers(0, 1000, (5, n // 5), dtype=np.int32), rng.standard_normal((5, n // 5))
    z = rng.integers(-9, 9, (5, n // 5), dtype=np.int8)
    yield "sort same", jnp.sort, np.sort, [np.full(n, 7, np.int32)]
    yield "sort down", lambda x: jnp.sort(x, descending=True), lambda x: -np.sort(-x), [x]
    yield "argsort down", lambda x: jnp.argsort(x, descending=True), lambda x: order(-x), [x]
    yield ("payloads", lambda x, y, z: lax.sort((x, y, z, y + 1j * y), num_keys=1),
           lambda x, y, z: by(order(x), x, y, z, y + 1j * y), [x, y, z])
    yield ("two keys", lambda x, z: lax.sort((z, x), num_keys=2),
           lambda x, z: by(np.stack([np.lexsort(p) for p in zip(x, z)]), z, x), [x, z])
    yield ("many of more", lambda x: lax.top_k(x, n // 15),
           lambda x: (by(order(-x), x)[0][:, :n // 15], order(-x)[:, :n // 15]), [x])
    x = x.reshape(-1)[:x.size // 6 * 6].reshape(3, -1, 2)
    yield "sort columns", lambda x: jnp.sort(x, 1), lambda x: np.sort(x, 1), [x]
    yield "argsort columns", lambda x: jnp.argsort(x, 1), lambda x: order(x, 1), [x]
    # whole numbers: exact in any order
    v, i = rng.integers(-99, 99, n).astype("f4"), rng.integers(-n // 64, n // 16, n).astype("i4")
    yield ("sums", lambda v, i: jax.ops.segment_sum(v, i, n // 17), lambda v, i: sums(v, i, n // 17), [v, i])
    yield ("set", lambda v, i: v.at[i].set(jnp.arange(len(i), dtype="f4")), last, [v, np.abs(i[:n // 2])])


def row_sums(x, i, n):
    r = np.zeros((n, *x.shape[1:]), x.dtype)
    for k, row in zip(i, x):
        if 0 <= k < n:
            r[k] += row
    return r


def updates(n):
    """Rows of several widths that go to one place or another, some to none."""
    rng = np.random.default_rng(2)
    for width, kind in (1, "c8"), (3, "f4"), (64, "f4"), (100, "f2"), (700, "f8"):
        m = max(40, n // width)
        for places in (2, m // 9, 4 * m):
            x = rng.integers(-9, 9, (m, width)).astype(kind)
            i = rng.integers(-2, places + 2, m).astype("i4")
            yield (f"rows of {width} {kind} to {places}",
                   lambda x, i, p=places: jax.ops.segment_sum(x * 2, i, p),
                   lambda x, i, p=places: row_sums(x * 2, i, p), [x, i])
        yield (f"rows of {width} {kind} set", lambda x, i: x.at[i].set(x[::-1]),
               lambda x, i: last_rows(x, i), [x, np.abs(i) % (m // 2)])


def last_rows(x, i):
    r = x.copy()
    for k, row in zip(i, x[::-1]):
        r[k] = row
    return r


ROWS = (1, 2, 3, 7, 8, 9, 63, 64, 100, 255, 257, 768, 1000, 2048, 2049, 4100, 8192, 9000)


def rows(n):
    """Many rows, shorter than what a group of work items holds and longer."""
    rng = np.random.default_rng(1)
    for m in ROWS:
        r = max(3, min(n // m, 1000) | 1)
        x, z = numbers(rng, "float32", r * m).reshape(r, m), rng.integers(-9, 9, (r, m), dtype=np.int32)
        k = max(1, m // 3)
        yield f"rows of {m}", lambda x: jnp.sort(x, 1), lambda x: by(order(x), x), [x]
        yield f"argsort rows of {m}", lambda z: jnp.argsort(z, 1), lambda z: order(z), [z]
        yield (f"argsort rows of {m} float16", lambda x: jnp.argsort(x, 1), lambda x: order(x),
               [x.astype(np.float16)])
        yield (f"two keys rows of {m}", lambda x, z, y: lax.sort((z, x, y), num_keys=2),
               lambda x, z, y: by(np.stack([np.lexsort(p) for p in zip(x, z)]), z, x, y),
               [np.nan_to_num(x) + 0, z, (x + 1j * z).astype(np.complex64)])
        yield (f"wide rows of {m}", lambda z: lax.sort((z, z + 1), num_keys=1), lambda z: by(order(z), z, z + 1),
               [z.astype(np.int64) << 40])
        yield (f"few of rows of {m}", lambda z, k=k: lax.top_k(z, k),
               lambda z, k=k: (by(order(-z), z)[0][:, :k], order(-z)[:, :k]), [z])


def same(x, y):
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind == "i" and y.dtype.kind == "i":
        y = y.astype(x.dtype)  # numpy's places are of 64 bits
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == np.ascontiguousarray(y).tobytes()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="")
    p.add_argument("--elements", type=int, default=1000003)
    a = p.parse_args()
    jax.config.update("jax_enable_x64", True)
    right = count = 0
    for name, f, want, args in (*cases(a.elements), *updates(a.elements), *rows(a.elements)):
        if not re.search(a.only, name):
            continue
        got, expected = jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(want(*args))
        ok = len(got) == len(expected) and all(map(same, got, expected))
        count, right = count + 1, right + ok
        if not ok:
            print(f"{name} differs")
    print(f"{right} of {count} are right")
    sys.exit(right != count or not count)


if __name__ == "__main__":
    main()
