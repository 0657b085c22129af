"""Residuals of every factorization and eigenproblem, beside LAPACK's.

usage: linalg_residuals.py [--sizes N,N,...] [--types f32,f64,c64,c128]
                           [--only REGEX]
SUNDOG_DEVICE says where.  For each kind of matrix, size and type: how far the
factors are from what they must be, as a multiple of what the same operation on
JAX's CPU (LAPACK) leaves, or of one rounding of the operand where that is more.
Where one matrix gives more than 10, both sides are measured on RELATIVES of it
as well, and the worst of one side is divided by the worst of the other: what
LAPACK leaves of the matrix of ones, say, is anything from 1 to 48 roundings,
depending on where the operand lies and on the factor before it.
Prints the worst of each operation; exit status 1 says that one is above 10, or
that a NaN in the operand did not come back as one.
"""
import argparse
import itertools
import re
import sys

import numpy as np

LIMIT = 10
TYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64,
         "c128": np.complex128}


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def error(x):
    return float(np.linalg.norm(wide(x))) if np.asarray(x).size else 0.0


def random(rng, t, *shape):
    x = rng.standard_normal(shape)
    if np.dtype(t).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(t)


def orthogonal(rng, t, n):
    return np.linalg.qr(wide(random(rng, t, n, n)))[0]


def matrices(rng, t, m, n):
    """Names and matrices, m x n: well and badly conditioned, with repeated
    values, rank deficient, scaled."""
    k = min(m, n)
    u, v = orthogonal(rng, t, m)[:, :k], orthogonal(rng, t, n)[:k]
    yield "random", random(rng, t, m, n)
    yield "zero", np.zeros((m, n), t)
    yield "ones", np.ones((m, n), t)
    for name, s in (("ill conditioned", np.logspace(0, -10, k)),
                    ("repeated values", 1 + np.arange(k) // 3),
                    ("one small value", np.where(np.arange(k) < k - 1, 1,
                                                 1e-12))):
        yield name, ((u * s) @ v).astype(t)
    big = 1e30 if np.finfo(t).bits == 32 else 1e250
    yield "large", (random(rng, t, m, n) * big).astype(t)
    yield "tiny", (random(rng, t, m, n) / big).astype(t)
    if m == n:
        yield "Jordan's block", np.eye(n, k=1).astype(t) + 2 * np.eye(n).astype(t)
        yield "a cycle", np.roll(np.eye(n), 1, 0).astype(t)


def eigh(lax, a):
    a = a / 2 + adjoint(a) / 2
    v, w = map(wide, lax.eigh(a, symmetrize_input=False))
    return a, {"A V - V w": wide(a) @ v - v * w, "V^H V - 1": one(v)}


def one(q):
    return (adjoint(q) @ q - np.eye(q.shape[1]), np.eye(q.shape[1]))


def svd(lax, a, full):
    u, s, v = map(wide, lax.svd(a, full_matrices=full))
    k = len(s)
    return a, {"A - U s V": u[:, :k] * s @ v[:k] - wide(a), "U^H U - 1": one(u),
               "V V^H - 1": one(adjoint(v))}


def eig(lax, a):
    w, vl, vr = map(wide, lax.eig(a))
    return a, {"A V - V w": wide(a) @ vr - vr * w,
               "V^H A - w V^H": adjoint(wide(a)) @ vl - vl * w.conj()}


def schur(lax, a):
    t, z = map(wide, lax.schur(a))
    return a, {"A - Z T Z^H": z @ t @ adjoint(z) - wide(a), "Z^H Z - 1": one(z)}


def hessenberg(lax, a):
    n = a.shape[0]
    if n == 0:  # JAX itself fails, making reflectors of a negative number
        return a, {}
    h, tau = lax.hessenberg(a)
    q = np.eye(n, dtype=wide(a).dtype)
    q[1:, 1:] = np.asarray(lax.householder_product(
        np.asarray(h)[1:, :-1], tau)) if n > 1 else q[1:, 1:]
    return a, {"A - Q H Q^H": q @ np.triu(wide(h), -1) @ adjoint(q) - wide(a),
               "Q^H Q - 1": one(q)}


def lu(lax, a):
    packed, _, order = lax.lu(a)
    packed, k = wide(packed), min(a.shape)
    low = np.tril(packed, -1)[:, :k] + np.eye(a.shape[0], k)
    return a, {"P A - L U": low @ np.triu(packed)[:k] - wide(a)[order]}


def qr(lax, a):
    q, r = map(wide, lax.qr(a, full_matrices=False))
    return a, {"A - Q R": q @ r - wide(a), "Q^H Q - 1": one(q)}


def pivoted(lax, a):
    q, r, p = lax.qr(a, pivoting=True, full_matrices=False)
    q, r = wide(q), wide(r)
    return a, {"A P - Q R": q @ r - wide(a)[:, p], "Q^H Q - 1": one(q)}


def cholesky(lax, a):
    scale = float(np.abs(a).max(initial=0)) or 1.0
    a = a / np.asarray(scale, a.real.dtype)
    a = a @ adjoint(a)
    a = a + np.eye(len(a), dtype=a.dtype) * np.asarray(
        np.trace(a).real / max(len(a), 1) / 10 + 1e-3, a.real.dtype)
    low = wide(lax.cholesky(a, symmetrize_input=False))
    return a, {"A - L L^H": low @ adjoint(low) - wide(a)}


SQUARE = {"eigh": eigh, "eig": eig, "schur": schur, "hessenberg": hessenberg,
          "cholesky": cholesky}
ANY = {"svd": lambda lax, a: svd(lax, a, False),
       "svd, full": lambda lax, a: svd(lax, a, True), "lu": lu, "qr": qr,
       "qr, pivoted": pivoted}


def measure(f, jax, device, a):
    with jax.default_device(device):
        return f(jax.lax.linalg, a)


def residuals(f, jax, device, a):
    """What is left, in units of the operand's size, by name; and one rounding
    in the same units, below which nothing is told apart."""
    of, left = measure(f, jax, device, a)
    out = {}
    for what, x in left.items():
        x, unit = x if isinstance(x, tuple) else (x, of)
        most = float(np.abs(wide(unit)).max(initial=0)) or 1.0
        rounding = np.finfo(a.dtype).eps * max(error(wide(unit) / most), 1e-300)
        out[what] = error(x / most), float(rounding)
    return out


def compare_all(jax, f, matrices, ours, cpu):
    """The worst ratio of our worst residual to LAPACK's, and of what."""
    mine = [residuals(f, jax, ours, a) for a in matrices]
    theirs = [residuals(f, jax, cpu, a) for a in matrices]
    worst = (0.0, "")
    for what in mine[0]:
        us = np.max([left[what][0] for left in mine])
        them = np.max([left[what] for left in theirs])
        if not np.isfinite(us) and np.isfinite(them):
            return float("inf"), what
        if us > 0 and np.isfinite(them):
            worst = max(worst, (float(us / them), what))
    return worst


RELATIVES = (1, 1.1, 1.2, 1.3, 1.4, 1.6, 1.7, 1.9)  # factors


def compare(jax, f, a, ours, cpu):
    """The worst ratio, and of what."""
    ratio, what = compare_all(jax, f, [a], ours, cpu)
    if LIMIT < ratio < float("inf"):
        ratio, what = compare_all(
            jax, f, [(a * k).astype(a.dtype) for k in RELATIVES], ours, cpu)
        what += ", worst of relatives"
    return ratio, what


def nan_stays(jax, f, t, ours, bad):
    """All floating results of a matrix with a NaN are NaN."""
    a = np.eye(5, dtype=t)
    a[3, 1] = a[1, 3] = bad
    with jax.default_device(ours):
        return all(np.isnan(x).all() for x in map(np.asarray, f(jax.lax.linalg,
                                                                a)))


def reads_half(jax, t, n, lower, ours):
    """Of a symmetric matrix one triangle counts, whatever is in the other."""
    a = np.random.default_rng(3).standard_normal((n, n)).astype(t)
    other = np.triu(np.full((n, n), np.nan, t), 1)
    a += other if lower else other.T
    with jax.default_device(ours):
        v, w = map(np.asarray, jax.lax.linalg.eigh(
            a, lower=lower, symmetrize_input=False))
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    full = half + half.conj().T + np.diag(np.diag(a).real)
    return np.allclose((v * w) @ v.conj().T, full, atol=1e-4)


STRICT = {"eigh": lambda lax, a: lax.eigh(a, symmetrize_input=False),
          "svd": lambda lax, a: lax.svd(a),
          "svd, values": lambda lax, a: [lax.svd(a, compute_uv=False)],
          "eig": lambda lax, a: lax.eig(a),
          "schur": lambda lax, a: lax.schur(a)}


def shapes(n):
    yield n, n
    if n > 1:
        yield n, max(1, n // 3)
        yield max(1, n // 3), n


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="0,1,2,3,5,8,17,33,64,100,200")
    parser.add_argument("--types", default="f32,f64,c64,c128")
    parser.add_argument("--only", default="", help="operations")
    options = parser.parse_args()
    import jax
    jax.config.update("jax_enable_x64", True)
    ours, cpu = jax.devices("xpu")[0], jax.devices("cpu")[0]
    worst, failed = {}, False
    for name in options.types.split(","):
        t = TYPES[name]
        rng = np.random.default_rng(7)
        for n in map(int, options.sizes.split(",")):
            for shape in shapes(n):
                for kind, a in matrices(rng, t, *shape):
                    some = dict(ANY, **SQUARE) if a.shape[0] == a.shape[1] \
                        else ANY
                    for op, f in some.items():
                        if not re.search(options.only, op):
                            continue
                        ratio, what = compare(jax, f, a, ours, cpu)
                        worst[op, name] = max(
                            worst.get((op, name), (-1.0,)),
                            (ratio, what, kind, shape))
        for n, lower in itertools.product((5, 64), (False, True)):
            if not reads_half(jax, t, n, lower, ours):
                print(f"fail eigh of {name}: the other triangle is read")
                failed = True
        for op, f in STRICT.items():
            for bad in (np.nan, np.inf):
                if not nan_stays(jax, f, t, ours, bad):
                    print(f"fail {op} of {name}: {bad} gives numbers")
                    failed = True
    for (op, name), (ratio, *where) in sorted(worst.items()):
        good = ratio <= LIMIT
        failed |= not good
        print("ok" if good else "fail", op, name, f"{ratio:.3g} times LAPACK's",
              *where)
    sys.exit(failed)


if __name__ == "__main__":
    main()
