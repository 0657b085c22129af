"""Programs of symbolic sizes, exported for `xpu` and called at sizes: what they
were before JAX made them static does not show."""
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from compare import check

CPU = jax.devices("cpu")[0]
KEYS = ("threefry2x32", "rbg", "unsafe_rbg")


def draw(impl, f):
    """f with a key beside its argument."""
    data = np.asarray(jax.random.key_data(jax.random.key(3, impl=impl)))
    return lambda x: f(jax.random.wrap_key_data(data, impl=impl), x)


def same(n, k):
    return dict(window_dimensions=(n, k), window_strides=(1, 2),
                padding="SAME")


def images(x):
    numbers = ("NHWC", "HWIO", "NHWC")
    kernel = jnp.ones((3, 3, x.shape[3], 4), x.dtype)
    return (lax.conv_general_dilated(x, kernel, (2, 1), "SAME",
                                     rhs_dilation=(1, 2),
                                     dimension_numbers=numbers),
            lax.conv_transpose(x, kernel, (2, 2), "SAME"))


def wide(x):
    return x @ jnp.swapaxes(x, -1, -2) + 9 * jnp.eye(x.shape[-2])


def spread(x):
    return (jnp.broadcast_to(x[:, None], (x.shape[0], *x.shape)),
            jnp.tile(x, (2, x.shape[0])), jnp.repeat(x, 2, 0),
            jnp.eye(*x.shape), jnp.concatenate([x, x[1:]]))


def sums(x):
    both = lax.reduce_window(
        (x, x), (0.0, -np.inf),
        lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])), **same(2, 2))
    return (lax.reduce_window(x, 0.0, lax.add, **same(x.shape[0], 2)), both,
            jnp.cumsum(x, 0), lax.cummax(x, 1, reverse=True))


# name -> symbolic shape, shape, function, multiple of the tolerance
PROGRAMS = {
    "reshape": ("b, c", (5, 7), lambda x: (x.reshape(-1), x.reshape(x.shape[::-1])), 1),
    "iota": ("b, c", (5, 7), lambda x: jnp.arange(2 * x.shape[0]) + x.shape[1], 1),
    "spread": ("b, c", (5, 7), spread, 1),
    "pad": ("b, c", (5, 7), lambda x: (jnp.pad(x, ((x.shape[1], 1), (2, x.shape[0]))),
                                       lax.pad(x, 0.0, ((1, -1, 0), (0, 0, 2)))), 1),
    "slice": ("b, c", (5, 7), lambda x: (x[x.shape[0] // 2:, :-1], x[::2, 1::3], x[::-1]), 1),
    "dynamic_slice": ("b, c", (5, 7), lambda x: lax.dynamic_slice_in_dim(x, x[0, 0].astype(int), x.shape[0] // 2), 1),
    "gather": ("b, c", (5, 7), lambda x: x[jnp.array([0, 3, -1, 9])], 1),
    "scatter": ("b, c", (5, 7), lambda x: x.at[jnp.array([0, 3, -1, 9])].add(x[0]), 1),
    "windows": ("b, c", (5, 7), sums, 4),
    "convolution": ("b, h, w, 3", (2, 8, 9, 3), images, 20),
    "products": ("b, c", (5, 7), lambda x: x @ x.T, 10),
    "order": ("b, c", (5, 7), lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0), lax.top_k(x, x.shape[1] - 3), jnp.median(x, 0)), 1),
    "approximate": ("b, c", (5, 7), lambda x: (lax.approx_max_k(x, x.shape[1] - 2),
                                               lax.approx_min_k(x, x.shape[0] // 2, reduction_dimension=0)), 1),
    "approximate_whole": ("b, 7", (5, 7), lambda x: lax.approx_max_k(x, 3, aggregate_to_topk=False), 1),
    "loops": ("b, c", (5, 7), lambda x: (lax.fori_loop(0, x.shape[0], lambda i, a: a + x[i], x[0]),
                                         lax.scan(lambda c, r: (c + r, c.max()), x[0], x),
                                         lax.map(jnp.sum, x)), 4),
    "softmax": ("b, c", (5, 7), lambda x: (jax.nn.softmax(x), x.mean(), x.var(0)), 4),
    "functions": ("b, c", (5, 7), lambda x: (lax.erf_inv(x / 9), lax.lgamma(x), jnp.sinh(x), lax.bessel_i1e(x),
                                             lax.reduce_precision(x, 5, 3), jnp.nextafter(x, x + 1)), 40),
    "fft": ("b, 8", (3, 8), jnp.fft.rfft, 4),
    "cholesky": ("b, n, n", (3, 4, 4), lambda x: jnp.linalg.cholesky(wide(x)), 40),
    "solve": ("n, n", (5, 5), lambda x: jnp.linalg.solve(wide(x), x), 100),
    "qr": ("b, 4, 3", (2, 4, 3), lambda x: jnp.abs(jnp.linalg.qr(x)[1]), 40),
    "eigh": ("b, n, n", (3, 4, 4), lambda x: jnp.linalg.eigvalsh(wide(x)), 100),
    "svd": ("b, m, 4", (3, 5, 4), lambda x: jnp.linalg.svd(x, compute_uv=False), 100),
    "det": ("b, n, n", (3, 4, 4), lambda x: jnp.linalg.det(wide(x)), 200),
    "tridiagonal_solve": ("n", (5,), lambda x: lax.linalg.tridiagonal_solve(x, x + 9, x, x[:, None]), 10),
}
for impl in KEYS:
    PROGRAMS["draws_" + impl] = ("b, c", (5, 7), draw(impl, lambda k, x: (
        jax.random.uniform(k, x.shape), jax.random.bits(k, (x.shape[0], 3), "uint8"),
        jax.random.bits(k, x.shape, "uint16"), jax.random.categorical(k, x))), 1)
    PROGRAMS["keys_" + impl] = ("b, c", (5, 7), draw(impl, lambda k, x: (
        jax.random.key_data(jax.random.split(k, x.shape[0])),
        jax.vmap(lambda k: jax.random.bits(k, x.shape[1:]))(jax.random.split(k, x.shape[0])),
        lax.scan(lambda k, r: (jax.random.split(k)[0], jax.random.bits(k, r.shape)), k, x)[1])), 1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_exported(name):
    symbols, shape, f, tol = PROGRAMS[name]
    x = np.random.RandomState(1).randn(*shape).astype(np.float32)
    scope = export.SymbolicScope(
        [c for c in ("b>=2", "c>=4", "m>=4") if c[0] in symbols])
    spec = jax.ShapeDtypeStruct(
        export.symbolic_shape(symbols, scope=scope), x.dtype)
    e = export.export(jax.jit(f), platforms=("xpu",))(spec)
    got = jax.tree.leaves(jax.jit(e.call)(x))
    want = jax.tree.leaves(jax.jit(f)(jax.device_put(x, CPU)))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        check(a, b, tol, name)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
