"""What is known of bytes and other bounded numbers (src/passes/pass_range.c) changes no
result: all bytes and 16-bit numbers, divided as 32-bit numbers and otherwise."""
import pytest

DEVICES = pytest.mark.parametrize("device", ["host", "cl"])

QUOTIENTS = """
import numpy as np, jax, jax.numpy as jnp
from jax import lax
by = [2, 3, 5, 7, 8, 10, 16, 51, 100, 127, 128, 129, 251, 255, 256, 300, 4096, 65535, 70000, -1, -3, -8, -300]
for t in (np.uint8, np.int8, np.uint16, np.int16):
    x = np.arange(np.iinfo(t).min, np.iinfo(t).max + 1).astype(t)
    wide = x.astype(np.int32)
    for n in by:
        q, r, c, d = jax.jit(lambda x: (
            x.astype(jnp.int32) // n, x.astype(jnp.int32) % n, lax.div(x.astype(jnp.int32), n),
            lax.rem(x.astype(jnp.int32) * 3 + 1, n)))(x)
        towards_0 = np.trunc(wide / n).astype(np.int32)
        assert np.array_equal(q, wide // n) and np.array_equal(r, wide % n), (t, n)
        assert np.array_equal(c, towards_0), (t, n)
        assert np.array_equal(d, np.fmod(wide * 3 + 1, n)), (t, n)
print("same")
"""


@DEVICES
def test_quotients_of_bounded_numbers(python, device):
    assert python(QUOTIENTS, env={"SUNDOG_DEVICE": device}).split("\n")[0] == "same"


POWERS = """
import numpy as np, jax, jax.numpy as jnp
x = np.float32([0, -0., 1, -1, 1.5, -3.25, 1e-30, 1e30, np.inf, -np.inf, np.nan] * 7)
for t in (np.float32, np.int32):
    y = np.trunc(np.nan_to_num(x, posinf=9, neginf=-9)).clip(-40, 40).astype(t) if t == np.int32 else x
    for n in range(1, 5):
        for up in (False, True):
            got = jax.jit(lambda x: jnp.vander(x, n, increasing=up))(y)
            with np.errstate(over="ignore", invalid="ignore"):
                of = [np.ones_like(y), y, y * y, y * y * y][:n]
            want = np.stack(of if up else of[::-1], 1)
            assert np.array_equal(got, want, equal_nan=True), (t, n, up)
b = jnp.asarray(x, jnp.bfloat16)
got = jax.jit(lambda x: jnp.vander(x, 4))(b).astype(np.float32)
f = np.asarray(b.astype(np.float32))
with np.errstate(over="ignore", invalid="ignore"):
    want = np.stack([f * f * f, f * f, f, np.ones_like(f)], 1)
assert np.array_equal(got, np.asarray(jnp.asarray(want).astype(jnp.bfloat16).astype(np.float32)), equal_nan=True)
print("same")
"""


@DEVICES
def test_powers_of_few_exponents(python, device):
    assert python(POWERS, env={"SUNDOG_DEVICE": device}).split("\n")[0] == "same"


INDICES = """
import numpy as np, jax, jax.numpy as jnp
for t in (np.uint8, np.int8):
    x = np.arange(np.iinfo(t).min, np.iinfo(t).max + 1).astype(t)
    for n in (100, 128, 256, 300):
        table = np.arange(n, dtype=np.float32)
        got = jax.jit(lambda l, x: l.at[x.astype(jnp.int32)].get(mode="fill", fill_value=-1))(table, x)
        i = x.astype(np.int32)
        i = np.where(i < 0, i + n, i)
        want = np.where((i >= 0) & (i < n), i, -1).astype(np.float32)
        assert np.array_equal(got, want), (t, n)
print("same")
"""


@DEVICES
def test_indices_of_bytes(python, device):
    assert python(INDICES, env={"SUNDOG_DEVICE": device}).split("\n")[0] == "same"


CHANNELS = """
import numpy as np, jax, jax.numpy as jnp
r = np.random.default_rng(5)
for t in (np.uint8, np.int8):
    for n in (2, 3, 4):
        x = r.integers(np.iinfo(t).min, np.iinfo(t).max + 1, (37, 53, n)).astype(t)
        for wide in (np.int32, np.uint32, np.float32):
            for turned in (False, True):
                for left_out in range(n + 1):
                    of = [k for k in range(n) if k != left_out]
                    def f(x):
                        x = x[:, ::-1] if turned else x
                        return sum((x[..., k].astype(wide) * wide(3 + 5 * k) for k in of), wide(0))
                    want = sum((x[..., k].astype(wide) * wide(3 + 5 * k) for k in of), wide(0))
                    want = want[:, ::-1] if turned else want
                    assert np.array_equal(jax.jit(f)(x), want), (t, n, wide, turned, left_out)
print("same")
"""


@DEVICES
def test_channels_of_bytes_are_widened(python, device):
    assert python(CHANNELS, env={"SUNDOG_DEVICE": device}).split("\n")[0] == "same"


LETTERS = """
import numpy as np, jax, jax.numpy as jnp
r = np.random.default_rng(7)
def f(np, t, y, m):
    letter = ((t >= 97) & (t <= 122)) | ((t >= 65) & (t <= 90))
    return letter & m, np.where(letter & m, t ^ y, t // 10), (t << 3) | (t >> 5), ~m
for rows, n in [(1, n) for n in (1, 15, 31, 32, 33, 63, 64, 65, 127, 130, 1000)] + [
        (5, 17), (7, 33), (9, 40), (3, 63), (4, 65), (6, 100), (300, 129), (70, 4)]:
    t = r.integers(0, 256, (rows, n)).astype(np.uint8)
    y = r.integers(0, 256, n).astype(np.uint8)
    m = r.integers(0, 2, (rows, 1)).astype(bool)
    for got, want in zip(jax.jit(lambda *a: f(jnp, *a))(t, y, m), f(np, t, y, m)):
        assert np.array_equal(got, want), (rows, n)
print("same")
"""


@DEVICES
def test_bytes_of_all_lengths(python, device):
    assert python(LETTERS, env={"SUNDOG_DEVICE": device}).split("\n")[0] == "same"


@pytest.mark.parametrize("program", [QUOTIENTS, CHANNELS, LETTERS])
def test_bytes_without_avx512(python, program):
    env = {"SUNDOG_DEVICE": "host", "SUNDOG_CPU_LEVEL": "v3"}
    assert python(program, env=env).split("\n")[0] == "same"
