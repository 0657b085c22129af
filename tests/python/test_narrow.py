"""Every operation's result is rounded to its type, whether operations share a
kernel or not; conversions give what they give by themselves."""
import pytest

DEVICES = pytest.mark.parametrize("device", ["host", "cl"])

CHAINS = """
import numpy as np, jax, jax.numpy as jnp
def both(f, x):
    x = jnp.asarray(x)
    y, z = np.asarray(jax.jit(f)(x)), np.asarray(f(x))
    assert np.array_equal(y, z), (y, z)
    return y.tolist()
f32, i8, u8, u16, i32 = jnp.float32, jnp.int8, jnp.uint8, jnp.uint16, jnp.int32
print(both(lambda x: x.astype(f32).astype(i8), np.uint8([200, 5])))
print(both(lambda x: x.astype(f32).astype(u8), np.int8([-56, 5])))
print(both(lambda x: x.astype(f32).astype(u8), np.uint16([300, 65535])))
print(both(lambda x: x.astype(f32).astype(f32).astype(u16), np.int16([-1])))
print(both(lambda x: x.astype(jnp.float16).astype(f32), np.float32([1e5])))
"""


@DEVICES
def test_conversions_through_floats_are_held_at_the_ends(python, device):
    assert python(CHAINS, env={"SUNDOG_DEVICE": device}).split("\n")[:5] == [
        "[127, 5]", "[0, 5]", "[255, 255]", "[0]", "[inf]"]


SEEN = """
import numpy as np, jax, jax.numpy as jnp
x = jnp.full(1, 300, jnp.float16)
y, finite = jax.jit(lambda a: (a * a, jnp.isfinite(a * a)))(x)
print(y[0], finite[0])
big, one = jnp.full(1, 256, jnp.bfloat16), jnp.full(1, 1, jnp.bfloat16)
print(jax.jit(lambda a, b: (a + b) == a)(big, one)[0])
a = jnp.asarray([256, 256, 0], jnp.bfloat16)
b = jnp.asarray([0, 1, 0], jnp.bfloat16)
print(jax.jit(lambda a, b: jnp.argmax(a + b))(a, b))
"""


@DEVICES
def test_comparisons_see_what_would_be_stored(python, device):
    assert python(SEEN, env={"SUNDOG_DEVICE": device}).split("\n")[:3] == [
        "inf False", "True", "0"]


EXCESS = """
import sys, numpy as np, jax, jax.numpy as jnp
def f(a, b):
    return (a + b) - a
def of(t, **options):
    a, b = jnp.full(1, 256, t), jnp.full(1, 1, t)
    g = jax.jit(f).lower(a, b).compile(compiler_options=options or None)
    return float(g(a, b)[0])
bf16, f16 = jnp.bfloat16, jnp.float16
on = dict(xla_allow_excess_precision=True)
off = dict(xla_allow_excess_precision=False)
print(of(bf16), of(bf16, **off), of(bf16, **on))
a, b = jnp.full(1, 2048, f16), jnp.full(1, 1, f16)
print(float(jax.jit(f).lower(a, b).compile(compiler_options=on)(a, b)[0]))
"""


def test_excess_precision_is_for_bf16_and_only_when_asked_for(python):
    assert python(EXCESS).split("\n")[:2] == ["0.0 0.0 1.0", "0.0"]
    flags = {"XLA_FLAGS": "--xla_allow_excess_precision=true"}
    assert python(EXCESS, env=flags).split("\n")[:2] == ["1.0 0.0 1.0", "0.0"]
    flags = {"XLA_FLAGS": "--xla_allow_excess_precision=false"}
    assert python(EXCESS, env=flags).split("\n")[:2] == ["0.0 0.0 1.0", "0.0"]


ALONE = """
import numpy as np, jax, jax.numpy as jnp
def norm(x):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * jax.lax.rsqrt(v + jnp.asarray(1e-5, x.dtype))
def chain(x):
    return jnp.tanh(x * 1.5 + 0.25) * x - jnp.sqrt(jnp.abs(x)) / (x * x + 1)
for f in (jax.nn.softmax, jax.nn.gelu, norm, chain, jax.nn.silu,
          jax.nn.log_softmax, jax.grad(lambda x: jax.nn.gelu(x).sum())):
    for t in (jnp.bfloat16, jnp.float16):
        for shape in ((3, 7), (64, 200), (5, 1025)):
            x = np.random.RandomState(1).standard_normal(shape) * 3
            x = jnp.asarray(x, t)
            y = np.asarray(jax.jit(f)(x))
            with jax.disable_jit():
                z = np.asarray(f(x))
            same = y.view(np.uint16) == z.view(np.uint16)
            print("ok" if same.all() else f"{f} {t} {shape}: {(~same).sum()}")
"""


@DEVICES
def test_programs_have_the_bits_of_their_operations_alone(python, device):
    lines = python(ALONE, env={"SUNDOG_DEVICE": device}).split()
    assert lines == ["ok"] * 42


MASK = """
import numpy as np, jax, jax.numpy as jnp
x = jnp.asarray([np.inf, np.nan, -2.0], jnp.float32)
p = jnp.asarray([False, False, False])
print(jax.jit(lambda x, p: x * p)(x, p))
print(jax.jit(lambda x, p: jnp.where(p, x, 0))(x, p))
"""


@DEVICES
def test_a_number_times_a_predicate_is_ieee_s_product(python, device):
    assert python(MASK, env={"SUNDOG_DEVICE": device}).split("\n")[:2] == [
        "[nan nan -0.]", "[0. 0. 0.]"]


SPECIAL = """
import numpy as np, jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
np.seterr(all="ignore")
part = [0.0, -0.0, 1.0, -2.0, np.inf, -np.inf, np.nan]
z = np.array([complex(a, b) for a in part for b in part])
angle = z[z.imag != 0]  # without one NumPy gives NaN for inf + 0i, C gives inf
def same(x, y):
    x, y = x.view(x.real.dtype), y.view(y.real.dtype)
    return np.all((np.isnan(x) & np.isnan(y)) |
                  ((x == y) & (np.signbit(x) == np.signbit(y))))
def infinite(x):
    return np.isinf(x.real) | np.isinf(x.imag)
def nans(x):
    return np.isnan(x.view(x.real.dtype))
for t in (np.complex64, np.complex128):
    a, b = [np.ascontiguousarray(v.ravel(), t) for v in np.meshgrid(z, z)]
    print(same(np.asarray(jax.jit(jnp.multiply)(a, b)), a * b),
          same(np.asarray(jax.jit(jnp.square)(z.astype(t))), z.astype(t)**2),
          (nans(np.asarray(jnp.expm1(angle.astype(t)))) == nans(np.expm1(angle.astype(t)))).all())
    q = np.asarray(jax.jit(jnp.divide)(a, b))
    fin = np.isfinite(b)
    print(infinite(q[infinite(a) & fin]).all(),
          (q[np.isfinite(a) & infinite(b)] == 0).all(),
          infinite(q[np.isfinite(a) & (a != 0) & (b == 0)]).all())
    w = np.array([np.inf + 1j], t)
    for f in (lambda x: x * x, lambda x: x**2, lambda x: jnp.power(x, 2 + 0j),
              lambda x: jnp.prod(jnp.concatenate([x, x])),
              lambda x: x[:, None] @ x[None]):
        print(np.asarray(jax.jit(f)(w)).ravel())
    print(np.asarray(jnp.abs(w)), np.asarray(jnp.sqrt(w)))
"""


@DEVICES
def test_complex_infinities_are_numpy_s(python, device):
    once = (["True True True", "True True True"] + ["[inf+infj]"] * 5 +
            ["[inf] [inf+0.j]"])
    assert python(SPECIAL, env={"SUNDOG_DEVICE": device}).splitlines() == (
        once * 2)


PICKING = """
import numpy as np, jax, jax.numpy as jnp
r = np.random.default_rng(0)
for t in "float32", "float16", "bfloat16":
    for shape, axis in ((50, 64), 1), ((7, 1000), 1), ((1000, 7), 0), ((99999,), 0):
        for some in 0, .02, .3, 1:
            x = r.integers(-9, 9, shape).astype(np.float32)
            x[r.random(shape) < some] = np.nan
            for f in "argmin", "argmax":
                y = jax.jit(lambda x: getattr(jnp, f)(x, axis))(jnp.asarray(x, t))
                z = getattr(np, f)(x, axis)
                assert (np.asarray(y) == z).all(), (t, shape, axis, some, f)
"""


@DEVICES
def test_the_first_of_several_nans_is_picked(python, device):
    assert python(PICKING, env={"SUNDOG_DEVICE": device}) == ""
