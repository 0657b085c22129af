"""CHLO's operations, which JAX's text has and its bytecode has not: each read from
text, computed by the evaluator, and held against NumPy, SciPy or JAX's CPU."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import scipy.special as sp  # noqa: E402

import oracle  # noqa: E402

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16,
         "bf16": ml_dtypes.bfloat16, "complex<f32>": np.complex64,
         "complex<f64>": np.complex128, "i1": np.bool_, "i8": np.int8,
         "ui8": np.uint8, "i16": np.int16, "i32": np.int32, "ui32": np.uint32,
         "i64": np.int64, "ui64": np.uint64}
NAMES = {v: k for k, v in TYPES.items()}
ODD = [0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 0.5, -0.5, 2, -2, 1e-30,
       1e30, -1e30, 1e-5, -3, -4.5]


def tensor(x):
    return f"tensor<{''.join(f'{d}x' for d in x.shape)}{NAMES[x.dtype.type]}>"


def call(op, *args, like=None, attrs=""):
    """like: of the result's type; the first argument's when not given."""
    args = [np.asarray(x) for x in args]
    types, out = [tensor(x) for x in args], tensor(args[0] if like is None
                                                   else like)
    names = [f"%a{i}" for i in range(len(args))]
    takes = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
    return oracle.Program(
        f"func.func @main({takes}) -> {out} {{\n"
        f"  %0 = \"chlo.{op}\"({', '.join(names)}) {attrs} : "
        f"({', '.join(types)}) -> {out}\n  return %0 : {out}\n}}")(*args)[0]


def numbers(t, low, high):
    x = np.random.RandomState(0).uniform(low, high, 400)
    with np.errstate(over="ignore"):
        return np.concatenate([x, ODD]).astype(TYPES[t])


def same(got, want, ulp, scale=None):
    """Within ulp units of the last place; what is not finite is equal."""
    t = got.dtype.type
    want = np.asarray(want)
    with np.errstate(over="ignore"):
        near, wide = want.astype(t), np.longdouble
    odd = ~np.isfinite(near.astype(wide))
    np.testing.assert_array_equal(got[odd].astype(wide), near[odd].astype(wide))
    size = np.abs(near[~odd].astype(wide))
    if scale is not None:
        size = np.maximum(size, scale)
    unit = np.maximum(size * wide(ml_dtypes.finfo(t).eps),
                      wide(ml_dtypes.finfo(t).smallest_subnormal))
    error = np.abs(got[~odd].astype(wide) - want[~odd].astype(wide)) / unit
    assert not error.size or error.max() <= ulp, error.max()


# name -> reference, ends, units in f32 and f64, the least that counts as size
REAL = {
    "acos": (np.arccos, -1.2, 1.2, 2, 0), "asin": (np.arcsin, -1.2, 1.2, 2, 0),
    "atan": (np.arctan, -9, 9, 1, 0), "acosh": (np.arccosh, 0.9, 50, 2, 0),
    "asinh": (np.arcsinh, -50, 50, 2, 0),
    "atanh": (np.arctanh, -1.2, 1.2, 2, 0), "cosh": (np.cosh, -80, 80, 3, 0),
    "sinh": (np.sinh, -80, 80, 3, 0), "bessel_i1e": (sp.i1e, -40, 40, 12, 0),
    "erf_inv": (sp.erfinv, -0.99, 0.99, 8, 0), "erfc": (sp.erfc, -5, 5, 40, 0),
    "lgamma": (sp.gammaln, 0.1, 40, 24, 1),
    "digamma": (sp.digamma, 0.1, 20, 12, 1),
}


@pytest.mark.parametrize("t", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("op", REAL)
def test_real_functions(op, t):
    f, low, high, ulp, scale = REAL[op]
    x = numbers(t, low, high)
    if op in ("lgamma", "digamma"):  # left of 1/2 there are zeros and poles
        x = x[np.isfinite(x.astype(float)) & (x.astype(float) > 0)]
    wide = np.float64 if f in (sp.i1e, sp.erfinv, sp.erfc, sp.gammaln,
                               sp.digamma) else np.longdouble
    with np.errstate(all="ignore"):
        want = f(x.astype(wide))
    same(call(op, x), want, ulp if t in ("f32", "f64") else 1, scale)


def test_gamma_left_of_zero():
    x = np.array([-0.5, -1.5, -2.25, -7.1, -1, -2, 0, np.inf], np.float64)
    same(call("lgamma", x), sp.gammaln(x), 40, 1)
    want = sp.digamma(x[:4])
    same(call("digamma", x[:4]), want, 80, 1)
    assert np.isnan(call("digamma", x[4:7])).all()


COMPLEX = {"acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin,
           "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
           "cosh": np.cosh, "sinh": np.sinh}


@pytest.mark.parametrize("t", ["complex<f32>", "complex<f64>"])
@pytest.mark.parametrize("op", COMPLEX)
def test_complex_functions(op, t):
    rng = np.random.RandomState(1)
    size = np.exp(rng.uniform(-20, 3 if "h" == op[-1] and op[0] in "cs" else 20,
                              500))
    z = size * np.exp(1j * rng.uniform(-np.pi, np.pi, 500))
    z = np.concatenate([z, [0, 1j / 2, -1j / 3, 0.5, complex(2, 0.0),
                            complex(2, -0.0), complex(-2, -0.0), 2j, -2j,
                            complex(1e25, 1e-3) if op[0] == "a" else 0,
                            1e-25 + 1e-25j]]).astype(TYPES[t])
    got, want = call(op, z), COMPLEX[op](z.astype(np.clongdouble))
    same(got.real, want.real, 5)
    same(got.imag, want.imag, 5)


@pytest.mark.parametrize("t", ["f32", "f64"])
def test_zeta_and_polygamma(t):
    from jax import enable_x64, lax
    rng = np.random.RandomState(2)
    x = rng.uniform(1.1, 12, 300).astype(TYPES[t])
    q = rng.uniform(0.1, 20, 300).astype(TYPES[t])
    x[:7] = [1, 0.5, 2, 3, 2.5, 4, 3]
    q[:7] = [1, 1, -1, 0, -1.5, -2, -1.5]
    n = rng.randint(0, 6, 300).astype(TYPES[t])
    n[:3] = [1.5, -1, 0]
    with enable_x64():
        same(call("zeta", x, q), np.asarray(lax.zeta(x, q)), 16)
        same(call("polygamma", n, q), np.asarray(lax.polygamma(n, q)), 32, 1)
    same(call("broadcast_zeta", x, q[-1:], like=x), sp.zeta(x, q[-1]), 16)


@pytest.mark.parametrize("t", ["f32", "f64", "f16", "bf16"])
def test_neighbours_and_infinities(t):
    x = numbers(t, -3, 3)
    y = np.roll(x, 3)
    np.testing.assert_array_equal(call("next_after", x, y).astype(np.float64),
                                  np.nextafter(x, y).astype(np.float64))
    wide, out = x.astype(np.float64), np.zeros(x.shape, bool)
    for op, want in (("is_inf", np.isinf(wide)), ("is_pos_inf", wide == np.inf),
                     ("is_neg_inf", wide == -np.inf)):
        np.testing.assert_array_equal(call(op, x, like=out), want)


@pytest.mark.parametrize("t", ["i8", "ui8", "i16", "i32", "ui32", "i64", "ui64"])
def test_high_halves(t):
    ends = np.iinfo(TYPES[t])
    x = [*map(int, np.random.RandomState(3).randint(
        ends.min, ends.max, 200, dtype=TYPES[t])), ends.min, ends.max, 0, 1]
    for turn in (0, 1, 7):
        y = x[turn:] + x[:turn]
        want = [a * b >> ends.bits for a, b in zip(x, y)]
        np.testing.assert_array_equal(
            call("mulhi", np.array(x, TYPES[t]), np.array(y, TYPES[t])), want)


def test_broadcasts():
    rng = np.random.RandomState(4)
    a, v = rng.randn(4, 3).astype(np.float32), rng.randn(3).astype(np.float32)
    i, j = rng.randint(1, 9, (4, 3), np.int32), np.array([1, 2, 3], np.int32)
    one = np.float32(2.5)
    floats = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply,
              "divide": np.divide, "maximum": np.maximum,
              "minimum": np.minimum, "atan2": np.arctan2,
              "remainder": np.fmod, "next_after": np.nextafter}
    for op, f in floats.items():
        for x, y in ((a, v), (v, a), (a, one), (a, a), (a, a[:1]), (a[:, :1], v)):
            want = f(x, y)
            same(call("broadcast_" + op, x, y, like=want), want, 2)
    for op, f in (("and", np.bitwise_and), ("or", np.bitwise_or),
                  ("xor", np.bitwise_xor), ("shift_left", np.left_shift),
                  ("shift_right_arithmetic", np.right_shift),
                  ("shift_right_logical", np.right_shift)):
        np.testing.assert_array_equal(call("broadcast_" + op, i, j), f(i, j))
    w = np.arange(4, dtype=np.float32)
    first = "{broadcast_dimensions = array<i64: 0>}"
    same(call("broadcast_add", a, w, attrs=first), a + w[:, None], 0)
    same(call("broadcast_power", abs(a), v), abs(a) ** v, 2)
    z = call("broadcast_complex", a, v, like=np.zeros((4, 3), np.complex64))
    np.testing.assert_array_equal(z, a + 1j * v)
    less = "{comparison_direction = #chlo<comparison_direction LT>}"
    np.testing.assert_array_equal(
        call("broadcast_compare", a, v, like=a > 0, attrs=less), a < v)
    for p in (np.array(True), a > 0, np.array([True, False, True])):
        np.testing.assert_array_equal(
            call("broadcast_select", p, a, v, like=a), np.where(p, a, v))


def test_constants_like():
    a, i = np.ones((2, 3), np.float32), np.ones((2, 3), np.int8)
    np.testing.assert_array_equal(
        call("constant_like", a, attrs="{value = 1.5 : f32}"), 1.5 * a)
    np.testing.assert_array_equal(
        call("constant_like", i, attrs="{value = -7 : i8}"), -7 * i)


def ragged(x, y, sizes, want, **dims):
    """chlo.ragged_dot with its dimensions, against what it should give."""
    names = ", ".join(f"{k}_dimensions = {v}" for k, v in dims.items())
    got = call("ragged_dot", x, y, np.asarray(sizes, np.int32), like=want,
               attrs="{ragged_dot_dimension_numbers = "
               f"#chlo.ragged_dot<{names}>}}")
    np.testing.assert_array_equal(got, want)


def rows_of(sizes, n):
    """The group of each of n entries; -1: of none."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return np.concatenate([group, np.full(n, -1)])[:n]


def whole(rng, *shape):
    return rng.randint(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("sizes", [[2, 3, 3], [0, 8, 0], [1, 0, 2], [0, 0, 0],
                                   [5, 5, 5]])
def test_ragged_dot(sizes):
    rng = np.random.RandomState(5)
    group = rows_of(sizes, 8)
    mine = (group == np.arange(3)[:, None]).astype(np.float32)
    # free rows: each with the rhs of its group, or with none
    x, y = whole(rng, 8, 4), whole(rng, 3, 4, 6)
    ragged(x, y, sizes, np.einsum("gm,mk,gkn->mn", mine, x, y),
           lhs_contracting=[1], rhs_contracting=[1], lhs_ragged=[0],
           rhs_group=[0])
    y = whole(rng, 4, 6, 3)
    ragged(x, y, sizes, np.einsum("gm,mk,kng->mn", mine, x, y),
           lhs_contracting=[1], rhs_contracting=[0], lhs_ragged=[0],
           rhs_group=[2])
    # contracted rows: a product for each group
    x, y = whole(rng, 2, 8, 4), whole(rng, 8, 5, 2)
    ragged(x, y, sizes, np.einsum("gk,bkm,knb->gbmn", mine, x, y),
           lhs_batching=[0], rhs_batching=[2], lhs_contracting=[1],
           rhs_contracting=[0], lhs_ragged=[1])
    # batches: whatever the groups are
    x, y = whole(rng, 8, 3, 4), whole(rng, 8, 4, 5)
    ragged(x, y, sizes, x @ y, lhs_batching=[0], rhs_batching=[0],
           lhs_contracting=[2], rhs_contracting=[1], lhs_ragged=[0])


def test_ragged_dot_of_other_sizes_in_each_batch():
    rng = np.random.RandomState(6)
    sizes = [[2, 3, 3], [8, 0, 0]]
    mine = np.stack([rows_of(s, 8) == np.arange(3)[:, None] for s in sizes])
    mine = mine.astype(np.float32)
    x, y = whole(rng, 8, 2, 4), whole(rng, 2, 3, 4, 6)
    ragged(x, y, sizes, np.einsum("bgm,mbk,bgkn->bmn", mine, x, y),
           lhs_batching=[1], rhs_batching=[0], lhs_contracting=[2],
           rhs_contracting=[2], lhs_ragged=[0], rhs_group=[1])
    # two contracted dimensions, the second cut: sizes for each of the first
    x, y = whole(rng, 2, 8, 4), whole(rng, 5, 8, 2)
    ragged(x, y, sizes, np.einsum("agk,akm,nka->gmn", mine, x, y),
           lhs_contracting=[0, 1], rhs_contracting=[2, 1], lhs_ragged=[1])
