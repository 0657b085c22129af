"""What factorizations and transforms must satisfy.  They have several right
answers (signs, phases, bases of equal eigenvalues), so residual, orthogonality
and order are asked for, each in units of n * eps * norm as LAPACK's own tests
do, instead of equality with one library's answer."""
import numpy as np

LIMIT = 5  # of those units; LAPACK's tests allow 30, and stay below 2.2 here


def wide(x):
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def epsilon(x):
    import ml_dtypes
    t = np.asarray(x).dtype
    if t.kind == "c":
        t = np.zeros(0, t).real.dtype
    return float(ml_dtypes.finfo(t).eps)


def matrices(x):
    """As a stack of matrices, in double precision."""
    return rows(x, 2)


def rows(x, rank=1):
    """As a stack of arrays of this rank, in double precision."""
    x = wide(x)
    n = int(np.prod(x.shape[:x.ndim - rank]))
    return x.reshape((n,) + x.shape[x.ndim - rank:])


def small(what, error, scale, n, eps):
    """|error| in units of n * eps * |scale|; returns it."""
    if error.size == 0:
        return 0.0
    assert np.isfinite(error).all(), f"{what} is not finite"
    unit = max(n, 1) * eps * max(np.linalg.norm(scale), np.finfo(float).tiny)
    worst = float(np.linalg.norm(error) / unit)
    assert worst <= LIMIT, f"{what} is {worst:.3g} n eps, more than {LIMIT}"
    return worst


def orthogonal(what, q, eps):
    """The columns of q, a stack."""
    return max([small(f"{what}^H {what} - 1", x.conj().T @ x -
                      np.eye(x.shape[1]), np.eye(x.shape[1]), max(x.shape), eps)
                for x in q] or [0.0])


def residual(what, a, b, eps):
    """Of two stacks, relative to the first."""
    return max([small(what, x - y, x, max(x.shape), eps)
                for x, y in zip(a, b)] or [0.0])


def qr(params, args, got):
    q, r = map(matrices, got)
    eps = epsilon(args[0])
    assert (np.tril(r, -1) == 0).all(), "R is not triangular"
    return max(orthogonal("Q", q, eps),
               residual("A - QR", matrices(args[0]), q @ r, eps))


def svd(params, args, got):
    a, eps = matrices(args[0]), epsilon(args[0])
    s = rows(got[0])
    k = s.shape[-1]
    assert (s >= 0).all() and (np.diff(s) <= 0).all(), "order of the values"
    true = np.linalg.svd(a, compute_uv=False) if a.size else s
    worst = residual("singular values", true[:, None], s[:, None], eps)
    if len(got) == 1:
        return worst
    u, v = map(matrices, got[1:])
    return max(worst, orthogonal("U", u, eps),
               orthogonal("V", v.conj().swapaxes(-1, -2), eps),
               residual("A - USV", a, u[..., :k] * s[:, None] @ v[:, :k], eps))


def eigh(params, args, got):
    a, eps = matrices(args[0]), epsilon(args[0])
    v, w = matrices(got[0]), rows(got[1])
    half = np.tril(a) if params["lower"] else np.triu(a)
    a = half + (half - half * np.eye(a.shape[-1])).conj().swapaxes(-1, -2)
    assert (np.diff(w) >= 0).all(), "order of the values"
    return max(orthogonal("V", v, eps),
               residual("A - VWV^H", a,
                        v * w[:, None] @ v.conj().swapaxes(-1, -2), eps))


def eig(params, args, got):
    """Each value makes A - w singular, and all of them together are the
    spectrum: their sum and the sum of their squares are traces."""
    a, eps = matrices(args[0]).astype(np.complex128), epsilon(args[0])
    w = rows(got[0])
    n, one, worst = a.shape[-1], np.eye(a.shape[-1]), 0.0
    for x, e in zip(a, w):
        lowest = [np.linalg.svd(x - v * one, compute_uv=False)[-1:] for v in e]
        worst = max([worst] + [small("smallest of A - w", v, x, n, eps)
                               for v in lowest])
        for p in (1, 2):
            power = np.linalg.matrix_power(x, p)
            small(f"sum of w^{p} - trace", np.sum(e**p) - np.trace(power),
                  power, n * n, eps)
    rest = [matrices(x) for x in got[1:]]
    if params["compute_left_eigenvectors"]:
        left = rest.pop(0)
        worst = max(worst, eigenvectors("VL", a.conj().swapaxes(-1, -2), left,
                                        w.conj(), eps))
    if params["compute_right_eigenvectors"]:
        worst = max(worst, eigenvectors("VR", a, rest.pop(0), w, eps))
    return worst


def eigenvectors(what, a, v, w, eps):
    worst = 0.0
    for x, y, e in zip(a, v, w):
        n = x.shape[-1]
        if n:
            length = np.linalg.norm(y, axis=0)
            small(f"length of {what} - 1", length - 1, length, n, eps)
        worst = max(worst, small(f"A {what} - {what} w", x @ y - y * e, x,
                                 n, eps))
    return worst


def lu(params, args, got):
    a, eps = matrices(args[0]), epsilon(args[0])
    packed = matrices(got[0])
    pivots, order = rows(got[1]).astype(int), rows(got[2]).astype(int)
    m, n = a.shape[-2:]
    k, worst = min(m, n), 0.0
    for x, p, row, o in zip(a, packed, pivots, order):
        swapped = np.arange(m)
        for i, j in enumerate(row):
            swapped[[i, j]] = swapped[[j, i]]
        assert (swapped == o).all(), "pivots and permutation differ"
        low = np.tril(p, -1)[:, :k] + np.eye(m, k)
        # a complex pivot is the largest by |re| + |im|
        assert (abs(low) <= 2 ** 0.5 * (1 + eps)).all(), "no partial pivoting"
        worst = max(worst, small("PA - LU", x[o] - low @ np.triu(p)[:k], x,
                                 max(m, n), eps))
    return worst


def cholesky(params, args, got):
    """Only the lower triangles count: of the operand, and of the result,
    where some libraries leave the operand above it."""
    a, low = matrices(args[0]), np.tril(matrices(got[0]))
    a = np.tril(a) + np.tril(a, -1).conj().swapaxes(-1, -2)
    return residual("A - LL^H", a, low @ low.conj().swapaxes(-1, -2),
                    epsilon(args[0]))


def fft(params, args, got):
    """Against NumPy's in double precision: an element's error comes from all
    elements, so it is measured by their norm."""
    name = params["fft_type"].name.lower()
    sizes = params["fft_lengths"]
    f = {"fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn,
         "irfft": np.fft.irfftn}[name]
    axes = tuple(range(-len(sizes), 0))
    x = wide(args[0])
    true = f(x, sizes, axes) if x.size else wide(got[0])
    return small("error", wide(got[0]) - true, true,
                 np.log2(max(2, np.prod(sizes))), epsilon(args[0]))


GROUPS = {f.__name__: f for f in (qr, svd, eigh, eig, lu, cholesky, fft)}


def check(harness, args, got, want):
    """got has the types and shapes of want (arrays, or what jax.eval_shape
    says) and the group's properties; returns the worst error, in units of
    n * eps * norm."""
    got = [np.asarray(g) for g in got]
    for g, w in zip(got, want):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), \
            f"{g.dtype}{g.shape}, want {w.dtype}{w.shape}"
    args = [np.asarray(x) for x in args]
    return GROUPS[harness.group_name](harness.params, args, got)
