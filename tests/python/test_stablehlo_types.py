"""Element types that no program of JAX's has, in StableHLO written by hand: each
held against NumPy's statement of the same thing."""
import ml_dtypes
import numpy as np
import pytest

import compare
from stablehlo_written import (f32, f64, i32, NARROW_FLOATS, NARROW_INTS,
                               NARROW, ALL, numpy_type, run, main, same,
                               values_of)

RNG = np.random.RandomState(0)


@pytest.mark.parametrize("name", NARROW)
def test_narrow_type_converts(name):
    """All its values to f32, and what lies between them back."""
    t = numpy_type(name)
    bits = 256 if t.itemsize == 1 and name.startswith("f8") else \
        4 if name.endswith("i2") else 16
    every = np.arange(bits, dtype=np.uint8).view(t)
    got, = run(main(f"%x: tensor<{bits}x{name}>", f"tensor<{bits}xf32>", f"""
      %r = stablehlo.convert %x : (tensor<{bits}x{name}>) -> tensor<{bits}xf32>
      return %r : tensor<{bits}xf32>"""), every)
    same(got, every.astype(f32))
    exact = np.unique(got[np.isfinite(got)])
    between = np.concatenate([exact, (exact[1:] + exact[:-1]) / 2,
                              exact * f32(1.01)]).astype(f32)
    if name in NARROW_INTS:  # truncated
        between = np.clip(between, exact.min(), exact.max())
    elif name == "f8E8M0FNU":
        between = between[(between > 2.0**-120) & (between < 2.0**120)]
    n = len(between)
    back, = run(main(f"%x: tensor<{n}xf32>", f"tensor<{n}x{name}>", f"""
      %r = stablehlo.convert %x : (tensor<{n}xf32>) -> tensor<{n}x{name}>
      return %r : tensor<{n}x{name}>"""), between)
    want = np.trunc(between) if name in NARROW_INTS else between
    same(back, want.astype(t))


@pytest.mark.parametrize("name", NARROW_FLOATS)
@pytest.mark.parametrize("e,m", [(8, 23), (3, 1), (2, 0), (4, 2)])
def test_reduce_precision_of_narrow_type(name, e, m):
    """Of every value as in f32, but e5m2 has f16's exponents, which stay."""
    t = numpy_type(name)
    x = np.arange(256 if name.startswith("f8") else 16, dtype=np.uint8).view(t)
    n, w = len(x), "f16" if name.startswith("f8E5M2") else "f32"
    got, want = run(main(
        f"%x: tensor<{n}x{name}>, %y: tensor<{n}x{w}>",
        f"(tensor<{n}x{name}>, tensor<{n}x{w}>)", f"""
      %a = stablehlo.reduce_precision %x, format = e{e}m{m}
          : tensor<{n}x{name}>
      %b = stablehlo.reduce_precision %y, format = e{e}m{m} : tensor<{n}x{w}>
      return %a, %b : tensor<{n}x{name}>, tensor<{n}x{w}>"""), x,
                    x.astype(numpy_type(w)))
    same(got, want.astype(t))


MOVES = {
    "transpose": ("stablehlo.transpose %x, dims = [1, 0]", (3, 2),
                  lambda x: x.T),
    "reverse": ("stablehlo.reverse %x, dims = [1]", (2, 3),
                lambda x: x[:, ::-1]),
    "reshape": ("stablehlo.reshape %x", (3, 1, 2),
                lambda x: x.reshape(3, 1, 2)),
    "slice": ("stablehlo.slice %x [1:2, 0:3:2]", (1, 2),
              lambda x: x[1:2, ::2]),
    "broadcast_in_dim": ("stablehlo.broadcast_in_dim %x, dims = [0, 2]",
                         (2, 2, 3), lambda x: np.stack([x, x], 1)),
    "concatenate": ("stablehlo.concatenate %x, %x, dim = 1", (2, 6),
                    lambda x: np.concatenate([x, x], 1)),
}


@pytest.mark.parametrize("op", MOVES)
def test_moving_every_type(op):
    form, shape, what = MOVES[op]
    x, params, results, body, want = [], [], [], "", []
    for i, name in enumerate(ALL):
        a, r = f"tensor<2x3x{name}>", "x".join(map(str, shape))
        x.append(values_of(name, (2, 3), i))
        params.append(f"%x{i}: {a}")
        results.append(f"tensor<{r}x{name}>")
        operands = ", ".join([a] * form.count("%x"))
        kind = results[-1] if op != "reverse" else ""
        kind = f"({operands}) -> {kind}" if kind else a
        body += f"%r{i} = {form.replace('%x', f'%x{i}')} : {kind}\n"
        want.append(what(x[-1]))
    names = ", ".join(f"%r{i}" for i in range(len(ALL)))
    got = run(main(", ".join(params), f"({', '.join(results)})",
                   f"{body} return {names} : {', '.join(results)}"), *x)
    for g, w in zip(got, want):
        same(g, w)


@pytest.mark.parametrize("name", [n for n in ALL if n != "i1"])
def test_structured_ops_of_every_type(name):
    """reduce, reduce_window, dot, gather, scatter, dynamic slices, pad, sort:
    sums of what the type represents.  (Sums of bool are in JAX's programs.)"""
    t = numpy_type(name)
    wide = np.complex128 if t.kind == "c" else f64
    x = values_of(name, (3, 4))
    if name in NARROW:  # so that sums stay exact
        x = (x.astype(f32) != 0).astype(t) if name != "f8E8M0FNU" else x
    v, e = f"tensor<3x4x{name}>", f"tensor<{name}>"
    add = f"""({{
        ^bb0(%a: {e}, %b: {e}):
          %c = stablehlo.add %a, %b : {e}
          stablehlo.return %c : {e}
      }})"""
    zero = t.type(0) if name != "f8E8M0FNU" else np.float32(0).astype(t)
    got = run(main(f"%x: {v}, %z: {e}",
                   f"(tensor<3x{name}>, tensor<3x2x{name}>, "
                   f"tensor<3x3x{name}>, tensor<2x4x{name}>, {v}, "
                   f"tensor<2x2x{name}>, {v}, tensor<3x9x{name}>)", f"""
      %r = "stablehlo.reduce"(%x, %z) {add} {{dimensions = array<i64: 1>}}
          : ({v}, {e}) -> tensor<3x{name}>
      %w = "stablehlo.reduce_window"(%x, %z) {add} {{
          window_dimensions = array<i64: 1, 2>,
          window_strides = array<i64: 1, 2>}} : ({v}, {e}) -> tensor<3x2x{name}>
      %d = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1]
          : ({v}, {v}) -> tensor<3x3x{name}>
      %i = stablehlo.constant dense<[[2], [0]]> : tensor<2x1xi32>
      %g = "stablehlo.gather"(%x, %i) {{
          dimension_numbers = #stablehlo.gather<offset_dims = [1],
          collapsed_slice_dims = [0], start_index_map = [0],
          index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}}
          : ({v}, tensor<2x1xi32>) -> tensor<2x4x{name}>
      %s = "stablehlo.scatter"(%x, %i, %g) {add} {{
          scatter_dimension_numbers = #stablehlo.scatter<
          update_window_dims = [1], inserted_window_dims = [0],
          scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
          : ({v}, tensor<2x1xi32>, tensor<2x4x{name}>) -> {v}
      %one = stablehlo.constant dense<1> : tensor<ui8>
      %far = stablehlo.constant dense<200> : tensor<ui8>
      %ds = stablehlo.dynamic_slice %x, %one, %far, sizes = [2, 2]
          : ({v}, tensor<ui8>, tensor<ui8>) -> tensor<2x2x{name}>
      %du = stablehlo.dynamic_update_slice %x, %ds, %one, %one
          : ({v}, tensor<2x2x{name}>, tensor<ui8>, tensor<ui8>) -> {v}
      %p = stablehlo.pad %x, %z, low = [0, 1], high = [0, 1],
          interior = [0, 1] : ({v}, {e}) -> tensor<3x9x{name}>
      return %r, %w, %d, %g, %s, %ds, %du, %p : tensor<3x{name}>,
          tensor<3x2x{name}>, tensor<3x3x{name}>, tensor<2x4x{name}>, {v},
          tensor<2x2x{name}>, {v}, tensor<3x9x{name}>"""), x, zero)

    def back(a):
        a = np.asarray(a)
        if t.kind in "biu" or name in NARROW_INTS:
            a = a.astype(np.int64)
        return a.astype(t)

    y = x.astype(wide)
    z = zero.astype(wide)
    scattered, updated = y.copy(), x.copy()
    scattered[[2, 0]] += y[[2, 0]]
    updated[1:3, 1:3] = x[1:3, 2:4]
    padded = np.full((3, 9), zero, t)
    padded[:, 1:8:2] = x
    want = [back(z + y.sum(1)),
            back(z + y.reshape(3, 2, 2).sum(-1)), back(y @ y.T), x[[2, 0]],
            back(scattered), x[1:3, 2:4], updated, padded]
    exact = t.kind != "c" and name not in ("f32", "f64", "f16", "bf16")
    for g, w in zip(got, want):
        same(g, w) if exact else compare.check(g, w)


@pytest.mark.parametrize("name", [n for n in ALL if "complex" not in n])
def test_sort_and_order(name):
    t = numpy_type(name)
    if name in NARROW_FLOATS:
        bits = np.arange(256 if name.startswith("f8") else 16, dtype=np.uint8)
        x = RNG.permutation(bits).view(t)
        x = x[~np.isnan(x.astype(f32))]
        if name != "f8E8M0FNU":
            x = x[x.astype(f32) != 0]  # -0 and 0 are equal: any order
    else:
        x = RNG.permutation(values_of(name, (40,)))
    n = len(x)
    got = run(main(f"%x: tensor<{n}x{name}>, %i: tensor<{n}xi32>",
                   f"(tensor<{n}x{name}>, tensor<{n}xi32>)", f"""
      %r:2 = "stablehlo.sort"(%x, %i) ({{
        ^bb0(%a: tensor<{name}>, %b: tensor<{name}>, %c: tensor<i32>,
             %d: tensor<i32>):
          %l = stablehlo.compare GT, %a, %b
              : (tensor<{name}>, tensor<{name}>) -> tensor<i1>
          stablehlo.return %l : tensor<i1>
      }}) {{dimension = 0 : i64, is_stable = true}}
          : (tensor<{n}x{name}>, tensor<{n}xi32>)
          -> (tensor<{n}x{name}>, tensor<{n}xi32>)
      return %r#0, %r#1 : tensor<{n}x{name}>, tensor<{n}xi32>"""),
              x, np.arange(n, dtype=i32))
    order = np.argsort(-x.astype(f64), kind="stable")
    same(got[0], x[order])
    same(got[1], order.astype(i32))


def test_bitcasts_of_parts_of_a_byte():
    x = np.array([0x1e, 0xf3], np.uint8)
    got = run(main("%x: tensor<2xui8>", "(tensor<2x2xi4>, tensor<2x4xui2>, "
                   "tensor<2x2xf4E2M1FN>, tensor<2xui8>)", """
      %a = stablehlo.bitcast_convert %x : (tensor<2xui8>) -> tensor<2x2xi4>
      %b = stablehlo.bitcast_convert %x : (tensor<2xui8>) -> tensor<2x4xui2>
      %c = stablehlo.bitcast_convert %a : (tensor<2x2xi4>)
          -> tensor<2x2xf4E2M1FN>
      %d = stablehlo.bitcast_convert %b : (tensor<2x4xui2>) -> tensor<2xui8>
      return %a, %b, %c, %d : tensor<2x2xi4>, tensor<2x4xui2>,
          tensor<2x2xf4E2M1FN>, tensor<2xui8>"""), x)
    same(got[0], np.array([[-2, 1], [3, -1]], np.int8).astype(ml_dtypes.int4))
    same(got[1], np.array([[2, 3, 1, 0], [3, 0, 3, 3]],
                          np.uint8).astype(ml_dtypes.uint2))
    same(got[2], np.array([[0xe, 0x1], [0x3, 0xf]],
                          np.uint8).view(ml_dtypes.float4_e2m1fn))
    same(got[3], x)


@pytest.mark.parametrize("left,right,result", [
    ("f8E4M3FN", "f8E5M2", "f32"), ("f8E4M3FN", "f8E4M3FN", "bf16"),
    ("f4E2M1FN", "f8E8M0FNU", "f32"), ("i4", "i4", "i32"),
    ("ui4", "i8", "i32"), ("i8", "bf16", "f32"), ("i2", "ui2", "i8"),
    ("bf16", "bf16", "f64"),
    # XLA sums these in the operands' type and converts the sum.
    ("f32", "f32", "i32"), ("f16", "f16", "i8"), ("bf16", "i8", "i32"),
    ("i8", "i8", "complex<f32>"), ("f32", "f32", "complex<f32>"),
    ("complex<f32>", "f32", "f32"), ("complex<f32>", "complex<f32>", "i32")])
def test_dot_of_mixed_types(left, right, result):
    x, y = values_of(left, (3, 4), 1), values_of(right, (4, 2), 2)
    got, = run(main(f"%x: tensor<3x4x{left}>, %y: tensor<4x2x{right}>",
                    f"tensor<3x2x{result}>", f"""
      %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
          : (tensor<3x4x{left}>, tensor<4x2x{right}>) -> tensor<3x2x{result}>
      return %r : tensor<3x2x{result}>"""), x, y)
    exact = np.complex128 if "complex" in left else f64
    want = (x.astype(exact) @ y.astype(exact)).real
    same(got.real.astype(f64), want.astype(numpy_type(result)).real.astype(f64))
