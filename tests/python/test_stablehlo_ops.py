"""StableHLO ops that no program of JAX's has: each written by
hand, serialized by jaxlib, read by our frontend, computed by the evaluator, and
held against NumPy's statement of the same thing."""
import ml_dtypes
import numpy as np
import pytest

import compare
import oracle
from stablehlo_written import (f32, f64, i32, ALL, numpy_type, run, main, same,
                               values_of)

RNG = np.random.RandomState(0)


# ---- control ----

@pytest.mark.parametrize("index,branch", [(0, 0), (1, 1), (2, 2), (3, 2),
                                          (-1, 2), (-2**31, 2)])
def test_case_out_of_range_takes_the_last(index, branch):
    got, = run(main("%i: tensor<i32>, %x: tensor<3xf32>", "tensor<3xf32>", """
      %r = "stablehlo.case"(%i) ({
        stablehlo.return %x : tensor<3xf32>
      }, {
        %a = stablehlo.add %x, %x : tensor<3xf32>
        stablehlo.return %a : tensor<3xf32>
      }, {
        %a = stablehlo.negate %x : tensor<3xf32>
        stablehlo.return %a : tensor<3xf32>
      }) : (tensor<i32>) -> tensor<3xf32>
      return %r : tensor<3xf32>"""), i32(index), np.arange(3, dtype=f32))
    same(got, np.arange(3, dtype=f32) * f32([1, 2, -1][branch]))


@pytest.mark.parametrize("p", [False, True])
def test_if(p):
    got = run(main("%p: tensor<i1>, %x: tensor<i32>",
                   "(tensor<i32>, tensor<i32>)", """
      %r:2 = "stablehlo.if"(%p) ({
        stablehlo.return %x, %x : tensor<i32>, tensor<i32>
      }, {
        %a = stablehlo.not %x : tensor<i32>
        stablehlo.return %a, %x : tensor<i32>, tensor<i32>
      }) : (tensor<i1>) -> (tensor<i32>, tensor<i32>)
      return %r#0, %r#1 : tensor<i32>, tensor<i32>"""), np.bool_(p), i32(5))
    assert [int(x) for x in got] == [5 if p else ~5, 5]


def test_barrier_tuple_and_tokens():
    got, = run(main("%x: tensor<2xf8E4M3FN>", "tensor<2xf8E4M3FN>", """
      %t = stablehlo.create_token : !stablehlo.token
      %u = stablehlo.after_all %t, %t : !stablehlo.token
      %b:2 = stablehlo.optimization_barrier %x, %u
          : tensor<2xf8E4M3FN>, !stablehlo.token
      %p = stablehlo.tuple %b#0, %b#1
          : tuple<tensor<2xf8E4M3FN>, !stablehlo.token>
      %y = stablehlo.get_tuple_element %p[0]
          : (tuple<tensor<2xf8E4M3FN>, !stablehlo.token>) -> tensor<2xf8E4M3FN>
      return %y : tensor<2xf8E4M3FN>"""), values_of("f8E4M3FN", (2,)))
    same(got, values_of("f8E4M3FN", (2,)))


def test_composite_falls_back_to_its_decomposition():
    got, = run("""
      func.func @main(%x: tensor<3xi4>) -> tensor<3xi4> {
        %r = stablehlo.composite "nobody.knows" %x {decomposition = @twice,
            version = 7 : i32} : (tensor<3xi4>) -> tensor<3xi4>
        return %r : tensor<3xi4>
      }
      func.func private @twice(%x: tensor<3xi4>) -> tensor<3xi4> {
        %r = stablehlo.add %x, %x : tensor<3xi4>
        return %r : tensor<3xi4>
      }""", np.array([1, 5, -8], np.int8).astype(ml_dtypes.int4))
    same(got, np.array([2, -6, 0], np.int8).astype(ml_dtypes.int4))


def test_map():
    got, = run(main("%x: tensor<2x2xf32>, %y: tensor<2x2xf32>",
                    "tensor<2x2xi1>", """
      %r = "stablehlo.map"(%x, %y) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>)
              -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) {dimensions = array<i64: 0, 1>}
          : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>
      return %r : tensor<2x2xi1>"""),
               *(x := [RNG.randn(2, 2).astype(f32) for _ in range(2)]))
    same(got, x[0] < x[1])


# ---- functions of one element ----

@pytest.mark.parametrize("name", ["f64", "f32", "f16", "bf16", "f8E4M3FN"])
def test_atan2_logistic_and_round_even(name):
    t = numpy_type(name)
    x, y = (RNG.randn(50) * 4 for _ in range(2))
    x[:6], y[:6] = [0, -0.0, 0, -0.0, 2.5, -0.5], [1, 1, -1, -1, 0.0, -0.0]
    x, y = x.astype(t), y.astype(t)
    v = f"tensor<50x{name}>"
    got = run(main(f"%x: {v}, %y: {v}", f"({v}, {v}, {v})", f"""
      %a = stablehlo.atan2 %x, %y : {v}
      %b = stablehlo.logistic %x : {v}
      %c = stablehlo.round_nearest_even %x : {v}
      return %a, %b, %c : {v}, {v}, {v}"""), x, y)
    wide = x.astype(np.longdouble), y.astype(np.longdouble)
    want = [np.arctan2(*wide), 1 / (1 + np.exp(-wide[0])), np.rint(wide[0])]
    for g, w in zip(got, want):
        same(g, w.astype(f64).astype(t))


@pytest.mark.parametrize("name", [n for n in ALL if n.startswith(("i", "ui"))
                                  and n != "i1"])
def test_counts_of_bits(name):
    t = numpy_type(name)
    bits = int(name.lstrip("ui"))
    x = np.array([-(1 << (bits - 1)), -1, 0, 1] if name[0] == "i" else
                 [(1 << bits) - 1, 1 << (bits - 1), 0, 1],
                 np.int64 if name[0] == "i" else np.uint64).astype(t)
    v = f"tensor<4x{name}>"
    got = run(main(f"%x: {v}", f"({v}, {v})", f"""
      %a = stablehlo.popcnt %x : {v}
      %b = stablehlo.count_leading_zeros %x : {v}
      return %a, %b : {v}, {v}"""), x)
    digits = [f"{int(e) & ((1 << bits) - 1):0{bits}b}" for e in x]
    same(got[0], np.array([d.count("1") for d in digits]).astype(t))
    same(got[1], np.array([bits - len(d.lstrip("0"))
                           for d in digits]).astype(t))


# ---- random numbers ----

@pytest.mark.parametrize("name", ["f32", "bf16", "f64", "f16", "i32", "ui8"])
def test_rng_uniform(name):
    t = numpy_type(name)
    got, = run(main(f"%a: tensor<{name}>, %b: tensor<{name}>",
                    f"tensor<40x100x{name}>", f"""
      %s = stablehlo.constant dense<[40, 100]> : tensor<2xi64>
      %r = stablehlo.rng %a, %b, %s, distribution = UNIFORM : (tensor<{name}>,
          tensor<{name}>, tensor<2xi64>) -> tensor<40x100x{name}>
      return %r : tensor<40x100x{name}>"""), t.type(2), t.type(10))
    x = got.astype(f64)
    assert x.min() >= 2 and x.max() < 10
    middle = 6 if t.kind == "f" or name == "bf16" else 5.5
    assert abs(x.mean() - middle) < 0.2 and abs(x.std() - 2.3) < 0.1


def test_rng_normal():
    got, = run(main("", "tensor<5000xf32>", """
      %a = stablehlo.constant dense<3.0> : tensor<f32>
      %b = stablehlo.constant dense<2.0> : tensor<f32>
      %s = stablehlo.constant dense<[5000]> : tensor<1xi64>
      %r = stablehlo.rng %a, %b, %s, distribution = NORMAL
          : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<5000xf32>
      return %r : tensor<5000xf32>"""))
    x = (got.astype(f64) - 3) / 2
    assert abs(x.mean()) < 0.05 and abs(x.std() - 1) < 0.05
    assert abs((x**4).mean() - 3) < 0.5 and len(set(got)) > 4900


# ---- norms ----

@pytest.mark.parametrize("name", ["f32", "f64", "f16", "bf16", "f8E5M2"])
@pytest.mark.parametrize("feature", [0, 1, 2])
def test_batch_norm(name, feature):
    t, shape = numpy_type(name), (3, 4, 2)
    n = shape[feature]
    v, c = f"tensor<3x4x2x{name}>", f"tensor<{n}x{name}>"
    x, dy = (RNG.randn(*shape).astype(t) for _ in range(2))
    scale, offset, mean = (RNG.randn(n).astype(t) for _ in range(3))
    var = (RNG.rand(n) + 0.5).astype(t)
    attrs = f"epsilon = 0.25 : f32, feature_index = {feature} : i64"
    got = run(main(f"%x: {v}, %s: {c}, %o: {c}, %m: {c}, %v: {c}, %dy: {v}",
                   f"({v}, {c}, {c}, {v}, {v}, {c}, {c})", f"""
      %t:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {{{attrs}}}
          : ({v}, {c}, {c}) -> ({v}, {c}, {c})
      %i = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {{{attrs}}}
          : ({v}, {c}, {c}, {c}, {c}) -> {v}
      %g:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %dy) {{{attrs}}}
          : ({v}, {c}, {c}, {c}, {v}) -> ({v}, {c}, {c})
      return %t#0, %t#1, %t#2, %i, %g#0, %g#1, %g#2
          : {v}, {c}, {c}, {v}, {v}, {c}, {c}"""),
              x, scale, offset, mean, var, dy)
    axes = tuple(d for d in range(3) if d != feature)
    at = [1, 1, 1]
    at[feature] = n

    def wide(a):
        a = a.astype(f64)
        return a.reshape(at) if a.ndim == 1 else a

    x, scale, offset, mean, var, dy = map(wide, (x, scale, offset, mean, var,
                                                 dy))
    m, s2 = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    count = 24 / n
    d = x - mean
    sums = dy.sum(axes, keepdims=True), (dy * d).sum(axes, keepdims=True)
    want = [scale * (x - m) / np.sqrt(s2 + 0.25) + offset, m, s2,
            scale * d / np.sqrt(var + 0.25) + offset,
            scale / np.sqrt(var + 0.25) / count *
            (count * dy - sums[0] - d * sums[1] / (var + 0.25)),
            sums[1] / np.sqrt(var + 0.25), sums[0]]
    for g, w in zip(got, want):
        same(g, w.astype(t).reshape(g.shape)) if t.itemsize == 1 else \
            compare.check(g, w.astype(t).reshape(g.shape))


# ---- one participant ----

ALONE = {
    "all_gather": '''"stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64,
        replica_groups = dense<0> : tensor<1x1xi64>}''',
    "all_to_all": '''"stablehlo.all_to_all"(%x) {split_dimension = 0 : i64,
        concat_dimension = 1 : i64, split_count = 1 : i64,
        replica_groups = dense<0> : tensor<1x1xi64>}''',
    "collective_permute": '''"stablehlo.collective_permute"(%x) {
        source_target_pairs = dense<0> : tensor<1x2xi64>}''',
    "collective_broadcast": '''"stablehlo.collective_broadcast"(%x) {
        replica_groups = dense<0> : tensor<1x1xi64>}''',
    "cross-replica-sum": '''"stablehlo.cross-replica-sum"(%x) {
        replica_groups = dense<0> : tensor<1x1xi64>}''',
    "all_reduce": '''"stablehlo.all_reduce"(%x) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
        }) {replica_groups = dense<0> : tensor<1x1xi64>}''',
    "reduce_scatter": '''"stablehlo.reduce_scatter"(%x) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.multiply %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
        }) {scatter_dimension = 1 : i64,
        replica_groups = dense<0> : tensor<1x1xi64>}''',
}


@pytest.mark.parametrize("op", ALONE)
def test_collective_of_one(op):
    x = RNG.randn(2, 3).astype(f32)
    got, = run(main("%x: tensor<2x3xf32>", "tensor<2x3xf32>", f"""
      %r = {ALONE[op]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %r : tensor<2x3xf32>"""), x)
    same(got, x)


def test_permute_to_nobody_leaves_zeros():
    got, = run(main("%x: tensor<2xf32>", "tensor<2xf32>", """
      %r = "stablehlo.collective_permute"(%x) {
          source_target_pairs = dense<> : tensor<0x2xi64>}
          : (tensor<2xf32>) -> tensor<2xf32>
      return %r : tensor<2xf32>"""), np.ones(2, f32))
    same(got, np.zeros(2, f32))


def test_ids():
    got = run(main("", "(tensor<ui32>, tensor<ui32>)", """
      %p = stablehlo.partition_id : tensor<ui32>
      %r = stablehlo.replica_id : tensor<ui32>
      return %p, %r : tensor<ui32>, tensor<ui32>"""))
    assert [int(x) for x in got] == [0, 0]


# ---- dynamic ops whose shapes are constants, and legacy forms ----

X23 = np.arange(6, dtype=f32).reshape(2, 3)
X4 = np.arange(4, dtype=f32)
STATIC = {
    "dynamic_broadcast_in_dim": ("tensor<2x3xf32>", """
      %s = stablehlo.constant dense<[4, 3, 2]> : tensor<3xi32>
      %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [2, 1]
          : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<4x3x2xf32>
      return %r : tensor<4x3x2xf32>""", "tensor<4x3x2xf32>", X23,
                                 np.broadcast_to(X23.T, (4, 3, 2))),
    "dynamic_reshape": ("tensor<2x3xf32>", """
      %s = stablehlo.constant dense<[3, 2]> : tensor<2xi64>
      %r = stablehlo.dynamic_reshape %x, %s
          : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<3x2xf32>
      return %r : tensor<3x2xf32>""", "tensor<3x2xf32>", X23,
                        X23.reshape(3, 2)),
    "dynamic_pad": ("tensor<4xf32>", """
      %z = stablehlo.constant dense<9.0> : tensor<f32>
      %l = stablehlo.constant dense<[1]> : tensor<1xi32>
      %h = stablehlo.constant dense<[-1]> : tensor<1xi32>
      %i = stablehlo.constant dense<[1]> : tensor<1xi32>
      %r = stablehlo.dynamic_pad %x, %z, %l, %h, %i : (tensor<4xf32>,
          tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>)
          -> tensor<7xf32>
      return %r : tensor<7xf32>""", "tensor<7xf32>", X4,
                    f32([9, 0, 9, 1, 9, 2, 9])),
    "real_dynamic_slice": ("tensor<4xf32>", """
      %a = stablehlo.constant dense<[1]> : tensor<1xi64>
      %b = stablehlo.constant dense<[4]> : tensor<1xi64>
      %c = stablehlo.constant dense<[2]> : tensor<1xi64>
      %r = stablehlo.real_dynamic_slice %x, %a, %b, %c : (tensor<4xf32>,
          tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
      return %r : tensor<2xf32>""", "tensor<2xf32>", X4, f32([1, 3])),
    "dynamic_iota": ("tensor<4xf32>", """
      %s = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
      %r = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi64>)
          -> tensor<2x3xf32>
      return %r : tensor<2x3xf32>""", "tensor<2x3xf32>", X4,
                     np.broadcast_to(np.arange(3, dtype=f32), (2, 3))),
    "dynamic_gather": ("tensor<2x3xf32>", """
      %i = stablehlo.constant dense<[[1], [0], [1]]> : tensor<3x1xi32>
      %s = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
      %r = "stablehlo.dynamic_gather"(%x, %i, %s) {
          dimension_numbers = #stablehlo.gather<offset_dims = [1],
          collapsed_slice_dims = [0], start_index_map = [0],
          index_vector_dim = 1>} : (tensor<2x3xf32>, tensor<3x1xi32>,
          tensor<2xi32>) -> tensor<3x3xf32>
      return %r : tensor<3x3xf32>""", "tensor<3x3xf32>", X23, X23[[1, 0, 1]]),
    "dynamic_conv": ("tensor<4xf32>", """
      %a = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<1x4x1xf32>
      %k = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>
      %p = stablehlo.constant dense<[[1, 0]]> : tensor<1x2xi64>
      %c = "stablehlo.dynamic_conv"(%a, %k, %p) {
          dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
          feature_group_count = 1 : i64, batch_group_count = 1 : i64}
          : (tensor<1x4x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi64>)
          -> tensor<1x4x1xf32>
      %r = stablehlo.reshape %c : (tensor<1x4x1xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>""", "tensor<4xf32>", X4, f32([0, 10, 21, 32])),
    "broadcast": ("tensor<4xf32>", """
      %r = "stablehlo.broadcast"(%x) {broadcast_sizes = array<i64: 2, 1>}
          : (tensor<4xf32>) -> tensor<2x1x4xf32>
      return %r : tensor<2x1x4xf32>""", "tensor<2x1x4xf32>", X4,
                  np.broadcast_to(X4, (2, 1, 4))),
    "dot": ("tensor<2x3xf32>", """
      %v = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
      %r = stablehlo.dot %x, %v : (tensor<2x3xf32>, tensor<3xf32>)
          -> tensor<2xf32>
      return %r : tensor<2xf32>""", "tensor<2xf32>", X23, X23 @ f32([1, 2, 3])),
    "set_dimension_size": ("tensor<4xf32>", """
      %s = stablehlo.constant dense<4> : tensor<i32>
      %r = stablehlo.set_dimension_size %x, %s, dim = 0
          : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
      return %r : tensor<4xf32>""", "tensor<4xf32>", X4, X4),
    "get_dimension_size": ("tensor<2x3xf32>", """
      %r = stablehlo.get_dimension_size %x, dim = 1
          : (tensor<2x3xf32>) -> tensor<i32>
      return %r : tensor<i32>""", "tensor<i32>", X23, i32(3)),
    "einsum": ("tensor<2x3xf32>", """
      %y = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]>
          : tensor<3x2xf32>
      %r = stablehlo.einsum %x, %y, config = "ij,jk->ki"
          : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
      return %r : tensor<2x2xf32>""", "tensor<2x2xf32>", X23,
               (X23 @ f32([[1, 2], [3, 4], [5, 6]])).T),
    "unary_einsum": ("tensor<2x3xf32>", """
      %r = "stablehlo.unary_einsum"(%x) {einsum_config = "ij->j"}
          : (tensor<2x3xf32>) -> tensor<3xf32>
      return %r : tensor<3xf32>""", "tensor<3xf32>", X23, X23.sum(0)),
    "torch_index_select": ("tensor<2x3xf32>", """
      %i = stablehlo.constant dense<[2, 0, 0, 1]> : tensor<4xi32>
      %r = "stablehlo.torch_index_select"(%x, %i) {dim = 1 : i64,
          batch_dims = 0 : i64} : (tensor<2x3xf32>, tensor<4xi32>)
          -> tensor<2x4xf32>
      return %r : tensor<2x4xf32>""", "tensor<2x4xf32>", X23,
                           X23[:, [2, 0, 0, 1]]),
}


@pytest.mark.parametrize("op", STATIC)
def test_static_form_of(op):
    param, body, result, x, want = STATIC[op]
    same(run(main(f"%x: {param}", result, body), x)[0], want)


@pytest.mark.parametrize("config,shapes", [
    ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))), ("ij,kl->ijkl", ((2, 3), (4, 5))),
    ("ijb,kbj->ik", ((2, 3, 4), (5, 4, 3))), ("ij,k->jk", ((2, 3), (4,))),
    ("i,i->", ((3,), (3,))), ("abc,c->ba", ((2, 3, 4), (4,)))])
def test_einsum(config, shapes):
    x = [RNG.randn(*s).astype(f32) for s in shapes]
    want = np.einsum(config, *[a.astype(f64) for a in x]).astype(f32)
    t = ["tensor<" + "".join(f"{d}x" for d in s) + "f32>"
         for s in (*shapes, want.shape)]
    got, = run(main(f"%x: {t[0]}, %y: {t[1]}", t[2], f"""
      %r = stablehlo.einsum %x, %y, config = "{config}"
          : ({t[0]}, {t[1]}) -> {t[2]}
      return %r : {t[2]}"""), *x)
    compare.check(got, want)


def test_torch_index_select_with_batches():
    x = RNG.randn(2, 3, 4, 5).astype(f32)
    i = RNG.randint(0, 4, (2, 6)).astype(i32)
    got, = run(main("%x: tensor<2x3x4x5xf32>, %i: tensor<2x6xi32>",
                    "tensor<2x3x6x5xf32>", """
      %r = "stablehlo.torch_index_select"(%x, %i) {dim = 2 : i64,
          batch_dims = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<2x6xi32>)
          -> tensor<2x3x6x5xf32>
      return %r : tensor<2x3x6x5xf32>"""), x, i)
    same(got, np.stack([x[b][:, i[b]] for b in range(2)]))


# ---- windows ----

def test_window_with_every_kind_of_dilation():
    """Taps and holes by their definition; padding that crops."""
    x = RNG.randn(5, 6).astype(f32)
    got, = run(main("%x: tensor<5x6xf32>, %z: tensor<f32>", "tensor<3x4xf32>",
                    """
      %r = "stablehlo.reduce_window"(%x, %z) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.maximum %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
      }) {window_dimensions = array<i64: 2, 3>,
          window_strides = array<i64: 2, 2>,
          base_dilations = array<i64: 2, 1>,
          window_dilations = array<i64: 3, 2>,
          padding = dense<[[1, -2], [3, 2]]> : tensor<2x2xi64>}
          : (tensor<5x6xf32>, tensor<f32>) -> tensor<3x4xf32>
      return %r : tensor<3x4xf32>"""), x, f32(-9))
    spread = np.full((9 + 1 - 2, 6 + 5), -9, f32)
    full = np.full((10, 11), -9, f32)
    full[1::2, 3:9] = x
    spread = full[:8]
    want = np.array([[max(spread[2 * i + 3 * a, 2 * j + 2 * b]
                          for a in range(2) for b in range(3))
                      for j in range(4)] for i in range(3)], f32)
    same(got, want)


def test_select_and_scatter_of_overlapping_windows():
    x = RNG.permutation(20).reshape(4, 5).astype(f32)
    src = RNG.randn(3, 3).astype(f32)
    got, = run(main("%x: tensor<4x5xf32>, %s: tensor<3x3xf32>, %z: tensor<f32>",
                    "tensor<4x5xf32>", """
      %r = "stablehlo.select_and_scatter"(%x, %s, %z) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare LE, %a, %b : (tensor<f32>, tensor<f32>)
              -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }, {
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.subtract %a, %b : tensor<f32>
          stablehlo.return %c : tensor<f32>
      }) {window_dimensions = array<i64: 2, 3>,
          window_strides = array<i64: 1, 2>,
          padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}
          : (tensor<4x5xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<4x5xf32>
      return %r : tensor<4x5xf32>"""), x, src, f32(0.5))
    want = np.full((4, 5), 0.5, f32)
    for i in range(3):
        for j in range(3):
            places = [(i + a, 2 * j + b - 1) for a in range(2)
                      for b in range(3) if 0 <= 2 * j + b - 1 < 5]
            want[min(places, key=lambda p: x[p])] -= src[i, j]
    compare.check(got, want)


# ---- factorizations and transforms ----

@pytest.mark.parametrize("name", ["f32", "f64", "complex<f32>", "complex<f64>"])
@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky(name, lower):
    t = numpy_type(name)
    a = values_of(name, (2, 4, 4))
    a = a @ a.conj().swapaxes(-1, -2) + 3 * np.eye(4, dtype=t)
    got, = run(main(f"%a: tensor<2x4x4x{name}>", f"tensor<2x4x4x{name}>", f"""
      %r = "stablehlo.cholesky"(%a) {{lower = {lower}}}
          : (tensor<2x4x4x{name}>) -> tensor<2x4x4x{name}>
      return %r : tensor<2x4x4x{name}>"""), a.astype(t))
    want = np.linalg.cholesky(a.astype(t).astype(
        np.complex128 if t.kind == "c" else f64))
    if lower == "false":
        want = want.conj().swapaxes(-1, -2)
    compare.check(got, want.astype(t), 4)


@pytest.mark.parametrize("name", ["f32", "complex<f64>"])
@pytest.mark.parametrize("trans", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("left", ["true", "false"])
@pytest.mark.parametrize("lower", ["true", "false"])
@pytest.mark.parametrize("unit", ["true", "false"])
def test_triangular_solve(name, trans, left, lower, unit):
    t = numpy_type(name)
    a = values_of(name, (2, 3, 3), 1) / 4 + 2 * np.eye(3, dtype=t)
    a = a.astype(t)
    n, m = (3, 2) if left == "true" else (2, 3)
    b = values_of(name, (2, n, m), 2)
    r = f"tensor<2x{n}x{m}x{name}>"
    got, = run(main(f"%a: tensor<2x3x3x{name}>, %b: {r}", r, f"""
      %r = "stablehlo.triangular_solve"(%a, %b) {{left_side = {left},
          lower = {lower}, unit_diagonal = {unit},
          transpose_a = #stablehlo<transpose {trans}>}}
          : (tensor<2x3x3x{name}>, {r}) -> {r}
      return %r : {r}"""), a, b)
    o = np.tril(a) if lower == "true" else np.triu(a)
    if unit == "true":
        o = o - o * np.eye(3, dtype=t) + np.eye(3, dtype=t)
    if trans != "NO_TRANSPOSE":
        o = o.swapaxes(-1, -2)
    if trans == "ADJOINT":
        o = o.conj()
    compare.check(o @ got if left == "true" else got @ o, b, 8)


@pytest.mark.parametrize("kind,n,axes", [
    ("FFT", 5, 1), ("IFFT", 6, 2), ("RFFT", 7, 1), ("RFFT", 6, 3),
    ("IRFFT", 7, 1), ("IRFFT", 8, 2)])
def test_fft(kind, n, axes):
    sizes = [2, 3, n][-axes:]
    half = n // 2 + 1
    last = half if kind == "IRFFT" else n
    x = RNG.randn(2, 3, last) + 1j * RNG.randn(2, 3, last)
    x = x.real.astype(f32) if kind == "RFFT" else x.astype(np.complex64)
    to = half if kind == "RFFT" else n
    i = "f32" if kind == "RFFT" else "complex<f32>"
    o = "f32" if kind == "IRFFT" else "complex<f32>"
    got, = run(main(f"%x: tensor<2x3x{last}x{i}>", f"tensor<2x3x{to}x{o}>", f"""
      %r = stablehlo.fft %x, type = {kind}, length = {sizes}
          : (tensor<2x3x{last}x{i}>) -> tensor<2x3x{to}x{o}>
      return %r : tensor<2x3x{to}x{o}>"""), x)
    f = getattr(np.fft, kind.lower() + "n")
    compare.check(got, f(x.astype(np.complex128) if x.dtype.kind == "c" else
                         x.astype(f64), sizes,
                         range(-axes, 0)).astype(got.dtype), 2)


# ---- what is refused, by name ----

REFUSED = {
    "send": """
      %t = stablehlo.create_token : !stablehlo.token
      %u = "stablehlo.send"(%x, %t) {channel_handle =
          #stablehlo.channel_handle<handle = 5, type = 2>,
          is_host_transfer = true} : (tensor<4xf32>, !stablehlo.token)
          -> !stablehlo.token
      return %x : tensor<4xf32>""",
    "infeed": """
      %t = stablehlo.create_token : !stablehlo.token
      %r:2 = "stablehlo.infeed"(%t) {infeed_config = ""}
          : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
      return %r#0 : tensor<4xf32>""",
    "outfeed": """
      %t = stablehlo.create_token : !stablehlo.token
      %r = "stablehlo.outfeed"(%x, %t) {outfeed_config = ""}
          : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
      return %x : tensor<4xf32>""",
    "recv": """
      %t = stablehlo.create_token : !stablehlo.token
      %r:2 = "stablehlo.recv"(%t) {channel_handle =
          #stablehlo.channel_handle<handle = 5, type = 3>,
          is_host_transfer = true} : (!stablehlo.token)
          -> (tensor<4xf32>, !stablehlo.token)
      return %r#0 : tensor<4xf32>""",
    "dynamic": """
      %i = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi32>
      %s = stablehlo.slice %i [1:2] : (tensor<4xi32>) -> tensor<1xi32>
      %r = stablehlo.dynamic_reshape %x, %s
          : (tensor<4xf32>, tensor<1xi32>) -> tensor<?xf32>
      %c = stablehlo.dynamic_reshape %r, %s
          : (tensor<?xf32>, tensor<1xi32>) -> tensor<4xf32>
      return %c : tensor<4xf32>""",
    "strange_target": """
      %r = stablehlo.custom_call @strange_target(%x)
          : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>""",
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_name(what):
    with pytest.raises(oracle.OracleError, match=what) as error:
        run(main("%x: tensor<4xf32>", "tensor<4xf32>", REFUSED[what]), X4)
    assert error.value.code == 12  # UNIMPLEMENTED
