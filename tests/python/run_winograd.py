"""3 x 3 convolutions of f32 and bf16, which oneDNN's engine does by Winograd's
products, against NumPy in double: borders of every kind, what comes after,
gradients, and numbers that are not finite, which one tile must not hand to its
neighbours.  The last line is a digest of the bits of some results."""

import hashlib

import sys

import jax
import numpy as np
import pytest

assert jax.devices()[0].platform == "xpu"
SHAPES = [  # images, rows, columns, channels, features, padding
    (2, 16, 16, 64, 32, ((1, 1), (1, 1))),
    (1, 13, 17, 72, 40, ((1, 1), (1, 1))),
    (3, 12, 11, 32, 64, ((0, 0), (0, 0))),
    (1, 19, 14, 40, 96, ((0, 1), (2, 0))),
    (1, 16, 16, 32, 32, ((2, 2), (2, 2))),
    (1, 13, 11, 128, 32, ((0, 1), (2, 0))),   # from here on tiles of 4 x 4
    (2, 7, 7, 160, 136, ((1, 1), (1, 1))),
    (2, 4, 4, 200, 80, ((1, 1), (1, 1))),     # the kernel's turn in pieces
    (3, 24, 40, 136, 104, ((1, 1), (1, 1))),  # and turned before, whole
]
TYPES = [jax.numpy.float32, jax.numpy.bfloat16]


def conv(x, w, pad):
    return jax.lax.conv_general_dilated(
        x, w, (1, 1), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def direct(x, w, pad):
    x = np.pad(x.astype(np.float64), ((0, 0), *pad, (0, 0)))
    n, rows, columns, _ = x.shape
    out = np.zeros((n, rows - 2, columns - 2, w.shape[3]))
    for i in range(3):
        for j in range(3):
            out += x[:, i:i + rows - 2, j:j + columns - 2] @ w[i, j].astype(
                np.float64)
    return out


def numbers(shape, dtype=np.float32):
    n, rows, columns, channels, features, pad = shape
    rng = np.random.default_rng(1)

    def draw(*s):
        return rng.standard_normal(s).astype(dtype)
    x, w = draw(n, rows, columns, channels), draw(3, 3, channels, features)
    want = direct(x, w, pad)
    return x, w, draw(features), draw(*want.shape), want


def rms(x):
    return np.sqrt(np.mean(np.square(x, dtype=np.float64)))


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0,
                               atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("shape", SHAPES)
def test_what_comes_after(shape):
    x, w, b, r, want = numbers(shape)
    pad = shape[-1]
    close(jax.jit(lambda x, w: conv(x, w, pad))(x, w), want)
    close(jax.jit(lambda x, w, b: jax.nn.relu(conv(x, w, pad) + b))(
        x, w, b), np.maximum(want + b, 0))
    close(jax.jit(lambda x, w, b, r: conv(x, w, pad) + b + r)(
        x, w, b, r), want + b + r)
    # the sum's other operand is in the memory of the result
    close(jax.jit(lambda x, w, r: conv(x, w, pad) + 2 * jax.numpy.tanh(r))(
        x, w, r), want + 2 * np.tanh(r.astype(np.float64)))


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape):
    x, w, _, r, _ = numbers(shape)
    pad = shape[-1]
    back = tuple((2 - low, 2 - high) for low, high in pad)
    dx = jax.jit(lambda x, w, r: jax.vjp(
        lambda x: conv(x, w, pad), x)[1](r)[0])(x, w, r)
    close(dx, direct(r, w[::-1, ::-1].swapaxes(2, 3), back))


@pytest.mark.parametrize("shape", SHAPES)
def test_narrow(shape):
    """What is between a sum and its rounding: half a place in the last bit."""
    x, w, b, r, want = numbers(shape, TYPES[1])
    pad = shape[-1]

    def near(got, want):
        off = np.abs(np.asarray(got, np.float64) - want)
        assert (off <= 2**-8 * np.abs(want) + 2e-6 * np.abs(want).max()).all()
    near(jax.jit(lambda x, w: conv(x, w, pad))(x, w), want)
    near(jax.jit(lambda x, w: jax.nn.relu(conv(x, w, pad)))(x, w),
         np.maximum(want, 0))
    back = tuple((2 - low, 2 - high) for low, high in pad)
    near(jax.jit(lambda x, w, r: jax.vjp(
        lambda x: conv(x, w, pad), x)[1](r)[0])(x, w, r),
        direct(r, w[::-1, ::-1].swapaxes(2, 3), back))


@pytest.mark.parametrize("channels", [64, 96, 128, 320, 640])
@pytest.mark.parametrize("draw", ["standard_normal", "random"])
def test_errors(channels, draw):
    """Not above those of one chain of products in f32, as they were measured:
    they grow with the root of its length."""
    rng = np.random.default_rng(2)
    x = getattr(rng, draw)((1, 16, 16, channels)).astype(np.float32)
    w = rng.standard_normal((3, 3, channels, 64)).astype(np.float32)
    pad = ((1, 1), (1, 1))
    want = direct(x, w, pad)
    got = np.asarray(jax.jit(lambda x, w: conv(x, w, pad))(x, w), np.float64)
    assert rms(got - want) <= 5.3e-8 * channels**0.5 * rms(want)


@pytest.mark.parametrize("scale", [1e38, 1e30, 1e-28])
def test_magnitudes(scale):
    """A turn may overflow where no sum does.  What a turn makes subnormal is 0: sums of
    numbers of 1e-33 are right to some 2^-126 (docs/numerics.md)."""
    x, w, _, _, want = numbers(SHAPES[-1])
    pad = SHAPES[-1][-1]
    x = (x / 5 * np.float32(scale)).astype(np.float32)
    w = w * np.float32(1e-3)
    got = jax.jit(lambda x, w: conv(x, w, pad))(x, w)
    close(np.asarray(got, np.float64) / scale, want / 5e3)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[-1]])
def test_not_finite(bad, dtype, shape):
    x, w, _, r, _ = numbers(shape, dtype)
    x[0, 5, 6, 3] = bad
    with np.errstate(invalid="ignore"):
        want = direct(x, w, shape[-1])
    assert np.isfinite(want).sum() == want.size - 9 * want.shape[-1]
    for got, add in [
            (jax.jit(lambda x, w: conv(x, w, "SAME"))(x, w), 0),
            (jax.jit(lambda x, w, r: conv(x, w, "SAME")
                     + 2 * jax.numpy.tanh(r))(x, w, r), 2 * np.tanh(r))]:
        got = np.asarray(got, np.float64)
        fine = np.isfinite(want)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(got[~fine], want[~fine])
        if dtype == np.float32:
            close(got[fine], (want + add)[fine])
        else:  # rounded three times
            np.testing.assert_allclose(got[fine], (want + add)[fine],
                                       rtol=2**-7, atol=0.3)


def digest():
    found = hashlib.sha256()
    for dtype in TYPES:
        for shape in SHAPES[1], *SHAPES[-4:]:
            x, w, _, _, _ = numbers(shape, dtype)
            y = jax.jit(lambda x, w: conv(x, w, "SAME"))(x, w)
            found.update(np.asarray(y).tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    failed = pytest.main([__file__, "-q", "-p", "no:cacheprovider", *sys.argv[1:]])
    print(digest())
    sys.exit(failed)
