"""Fourier transforms beside those of JAX's CPU, both against NumPy's in long
double: the error is no larger, and what is exactly zero there is zero here."""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.fft

CPU = jax.devices("cpu")[0]
# every length up to 4,096 takes minutes: SUNDOG_TEST_LONG=1
SOME = [*range(1, 33), 36, 45, 49, 60, 61, 64, 77, 96, 97, 101, 113, 121, 125, 127, 128, 131, 210, 243, 256, 257,
        343, 509, 512, 777, 1000, 1009, 1024, 1536, 2021, 2048, 2187, 3125, 4080, 4093, 4096]
LENGTHS = range(1, 4097) if os.environ.get("SUNDOG_TEST_LONG") else SOME
TYPES = [(np.complex64, np.float32), (np.complex128, np.float64)]


def on(device, f, x):
    with jax.enable_x64():
        return np.asarray(jax.jit(f)(jax.device_put(x, device)))


def error_on(device, f, exact, x):
    """Relative, as one number."""
    size = np.linalg.norm(exact.ravel())
    off = np.linalg.norm((on(device, f, x) - exact).ravel())
    return float(off / size) if size else float(off)


def our_error(f, exact, x):
    return error_on(jax.devices()[0], f, exact, x)


def both_errors(f, exact, x):
    """Of xpu and of JAX's CPU."""
    return our_error(f, exact, x), error_on(CPU, f, exact, x)


def numbers(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_error_is_no_larger(kind):
    rng = np.random.default_rng(4)
    dtype = TYPES[kind][0]
    wrong = {}
    for n in LENGTHS:
        x = numbers(rng, (max(2, 8192 // n), n), dtype)
        ours, theirs = both_errors(jnp.fft.fft, scipy.fft.fft(x.astype(np.clongdouble), axis=-1), x)
        # a few percent are the luck of these numbers
        if ours > 1.06 * theirs + 1e-9 * np.finfo(dtype).eps:
            wrong[n] = (ours, theirs)
    assert not wrong


def largest_prime(n):
    return max(p for p in range(1, n + 1) if n % p == 0 and all(p % q for q in range(2, p)))


@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_error_of_real_lines_is_no_larger(kind):
    rng = np.random.default_rng(8)
    wrong = {}
    for n in LENGTHS:
        x = numbers(rng, (max(2, 16384 // n), n), TYPES[kind][1])
        half = scipy.fft.rfft(x.astype(np.longdouble), axis=-1).astype(TYPES[kind][0])
        there = both_errors(jnp.fft.rfft, scipy.fft.rfft(x.astype(np.longdouble), axis=-1), x)
        back = both_errors(lambda v, n=n: jnp.fft.irfft(v, n=n), scipy.fft.irfft(half.astype(np.clongdouble), n=n, axis=-1), half)
        for way, (ours, theirs) in (("there", there), ("back", back)):
            # back by a chirp theirs is better than there (docs/accuracy.md)
            most = 1.15 if way == "back" and largest_prime(n) > 131 else 1.1 if n < 32 else 1.08
            if ours > most * theirs + 1e-9 * np.finfo(x.dtype).eps:
                wrong[n, way] = (ours, theirs)
    assert not wrong


@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_ones_give_zeros_where_they_do_on_cpu(kind):
    dtype = TYPES[kind][0]
    for n in LENGTHS:
        x = np.ones(n, dtype)
        ours, theirs = (on(d, jnp.fft.fft, x) for d in (jax.devices()[0], CPU))
        assert ours[0] == n
        assert not np.any(ours[theirs == 0]), n


@pytest.mark.parametrize("shape", [(3, 40, 50, 60), (2, 7, 11, 13), (1, 64, 64, 64), (1, 97, 5, 101)])
@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_volumes(shape, kind):
    x = numbers(np.random.default_rng(5), shape, TYPES[kind][0])
    axes = (1, 2, 3)
    for f, g in ((jnp.fft.fftn, scipy.fft.fftn), (jnp.fft.ifftn, scipy.fft.ifftn)):
        ours, theirs = both_errors(lambda v, f=f: f(v, axes=axes), g(x.astype(np.clongdouble), axes=axes), x)
        assert ours <= 1.05 * theirs


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 30, 31, 64, 97, 100, 127, 256, 1000, 1009, 1024, 4096, 20000, 32768, 65536, 100003, 131070])
@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_real_lines(n, kind):
    rng = np.random.default_rng(6)
    x = numbers(rng, (max(1, min(37, 8192 // n)), n), TYPES[kind][1])
    far = 6 * np.finfo(x.dtype).eps
    exact = scipy.fft.rfft(x.astype(np.longdouble), axis=-1)
    assert our_error(jnp.fft.rfft, exact, x) <= far
    half = exact.astype(TYPES[kind][0])
    exact = scipy.fft.irfft(half.astype(np.clongdouble), n=n, axis=-1)
    assert our_error(lambda v: jnp.fft.irfft(v, n=n), exact, half) <= far


# real lines of every kind, some at once: a stage of 131, of 15, of 4; few odd
# lines, many; halves with a chirp; matrices of odd columns and of chirps
@pytest.mark.parametrize("shape", [(3, 131), (2, 45), (5, 105), (3, 64), (1, 256), (37, 2187), (20, 4095), (17, 1002), (5, 4456), (3, 28125),
                                   (5, 32769), (18, 20000), (2, 3 * 37 * 521)])
@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_real_lines_there_and_back(shape, kind):
    x = numbers(np.random.default_rng(9), shape, TYPES[kind][1])
    exact = scipy.fft.rfft(x.astype(np.longdouble), axis=-1)
    assert our_error(jnp.fft.rfft, exact, x) <= 6 * np.finfo(x.dtype).eps
    half = exact.astype(TYPES[kind][0])
    exact = scipy.fft.irfft(half.astype(np.clongdouble), n=shape[1], axis=-1)
    assert our_error(lambda v: jnp.fft.irfft(v, n=shape[1]), exact, half) <= 6 * np.finfo(x.dtype).eps


@pytest.mark.parametrize("n", [12, 64, 331, 1125, 2228, 20000])
def test_back_from_ones_gives_zeros(n):
    y = on(jax.devices()[0], lambda v: jnp.fft.irfft(v, n=n), np.ones((2, n // 2 + 1), np.complex64))
    assert np.all(y[:, 0] == 1)
    theirs = on(CPU, lambda v: jnp.fft.irfft(v, n=n), np.ones((2, n // 2 + 1), np.complex64))
    assert not np.any(y[theirs == 0])


# of what is its own conjugate the imaginary part is not read, nor does a line
# that is not finite spoil another
@pytest.mark.parametrize("n", [4, 64, 45, 331, 1000, 2228, 20000, 28125])
def test_a_real_line_stays_by_itself(n):
    rng = np.random.default_rng(10)
    half = numbers(rng, (20, n // 2 + 1), np.complex64)
    odd = half.copy()
    odd.imag[:, 0] = np.nan
    if n % 2 == 0:
        odd.imag[:, -1] = np.nan
    back = lambda v: jnp.fft.irfft(v, n=n)
    y = on(jax.devices()[0], back, odd)
    np.testing.assert_array_equal(y, on(jax.devices()[0], back, half))
    odd[3, 1] = np.inf
    y = on(jax.devices()[0], back, odd)
    assert not np.any(np.isfinite(y[3])) and np.all(np.isfinite(np.delete(y, 3, 0)))
    x = numbers(rng, (20, n), np.float32)
    x[7, n // 2] = np.nan
    y = on(jax.devices()[0], jnp.fft.rfft, x)
    assert np.all(np.isnan(y[7])) and np.all(np.isfinite(np.delete(y, 7, 0)))


def test_back_to_real_does_not_read_what_a_real_line_has_not():
    x = np.array([1 + 5j, 2 + 1j, 3 + 7j], np.complex64)
    y = on(jax.devices()[0], lambda v: jnp.fft.irfft(v, n=4), x)
    np.testing.assert_allclose(y, np.fft.irfft(x.real + 1j * np.array([0, 1, 0]), n=4), rtol=1e-6, atol=1e-6)


# lines of every kind: blocks that are not full, columns, a long line as columns
# of 5, a matrix, a matrix whose rows take a chirp, a chirp of matrices
@pytest.mark.parametrize("shape, axis", [((5, 64, 3), 1), ((3, 100, 17), 1), ((1, 33), 0), ((40, 3), 0), ((5, 3125), 1), ((5, 9375), 1),
                                         ((2, 1 << 15), 1), ((2, 3 << 13, 3), 1), ((60000,), 0), ((2 * 32749,), 0), ((100003,), 0)])
@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_lines(shape, axis, kind):
    x = numbers(np.random.default_rng(7), shape, TYPES[kind][0])
    for f, g in ((jnp.fft.fft, scipy.fft.fft), (jnp.fft.ifft, scipy.fft.ifft)):
        exact = g(x.astype(np.clongdouble), axis=axis)
        assert our_error(lambda v, f=f: f(v, axis=axis), exact, x) <= 6 * np.finfo(x.real.dtype).eps


# Each in one call, where few would be matrices.
@pytest.mark.parametrize("n", [20000, 32768, 40000, 65536, 131072])
@pytest.mark.parametrize("kind", [0, 1], ids=["f32", "f64"])
def test_many_long_lines(n, kind):
    rng = np.random.default_rng(9)
    x = numbers(rng, (9, n), TYPES[kind][1])
    z = numbers(rng, (9, n), TYPES[kind][0])
    half = scipy.fft.rfft(x.astype(np.longdouble)).astype(z.dtype)
    for f, g, v in ((jnp.fft.rfft, scipy.fft.rfft, x), (lambda v: jnp.fft.irfft(v, n=n), lambda v: scipy.fft.irfft(v, n=n), half),
                    (jnp.fft.fft, scipy.fft.fft, z), (jnp.fft.ifft, scipy.fft.ifft, z)):
        ours, theirs = both_errors(f, g(v.astype(np.longdouble if v is x else np.clongdouble)), v)
        assert ours <= 1.1 * theirs


def test_a_line_that_is_not_finite_spoils_no_other():
    x = np.ones((20, 48), np.complex64)
    x[3, 5] = np.nan
    y = on(jax.devices()[0], jnp.fft.fft, x)
    assert np.all(np.isnan(y[3])) and not np.any(np.isnan(np.delete(y, 3, 0)))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
