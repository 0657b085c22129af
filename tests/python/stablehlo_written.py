"""StableHLO that is written by hand: serialized by jaxlib, read by our frontend,
computed by the evaluator; element types by their names, and values of each."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import ml_dtypes  # noqa: E402
import numpy as np  # noqa: E402

import oracle  # noqa: E402

f32, f64, i32 = np.float32, np.float64, np.int32

# Names as MLIR spells them -> as NumPy does.
NARROW_FLOATS = {"f4E2M1FN": "float4_e2m1fn",
                 "f6E2M3FN": "float6_e2m3fn", "f6E3M2FN": "float6_e3m2fn",
                 "f8E3M4": "float8_e3m4",
                 "f8E4M3": "float8_e4m3", "f8E4M3FN": "float8_e4m3fn",
                 "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
                 "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2": "float8_e5m2",
                 "f8E5M2FNUZ": "float8_e5m2fnuz",
                 "f8E8M0FNU": "float8_e8m0fnu"}
NARROW_INTS = {"i2": "int2", "i4": "int4", "ui2": "uint2", "ui4": "uint4"}
NARROW = {**NARROW_FLOATS, **NARROW_INTS}
PLAIN = {"i1": "bool", "i8": "int8", "ui8": "uint8", "i16": "int16",
         "ui16": "uint16", "i32": "int32", "ui32": "uint32", "i64": "int64",
         "ui64": "uint64", "bf16": "bfloat16", "f16": "float16",
         "f32": "float32", "f64": "float64", "complex<f32>": "complex64",
         "complex<f64>": "complex128"}
ALL = {**NARROW, **PLAIN}


def numpy_type(name):
    return np.dtype(getattr(ml_dtypes, ALL[name], ALL[name]))


def serialize(text):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        return stablehlo.serialize_portable_artifact(
            module, stablehlo.get_current_version())


def run(text, *args):
    return oracle.Program(serialize(text))(*args)


def main(params, result, body):
    """A module with one function; params: "%a: tensor<f32>, ..."."""
    return f"func.func @main({params}) -> {result} {{\n{body}\n}}"


def same(got, want):
    """Bit by bit, but for what kind of NaN it is."""
    want = np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if got.dtype.name in NARROW_INTS.values():  # the bits above say nothing
        np.testing.assert_array_equal(got.astype(i32), want.astype(i32))
    elif got.dtype.name in NARROW_FLOATS.values():
        nan = np.isnan(got.astype(f32)) & np.isnan(want.astype(f32))
        bits = got.view(np.uint8), want.view(np.uint8)
        np.testing.assert_array_equal(np.where(nan, 0, bits[0]),
                                      np.where(nan, 0, bits[1]))
    else:
        np.testing.assert_array_equal(got, want)


def values_of(name, shape, seed=0):
    """Values that the type has, NaN and infinities left out."""
    t = numpy_type(name)
    r = np.random.RandomState(seed)
    if t.kind == "c":
        return (r.randn(*shape) + 1j * r.randn(*shape)).astype(t)
    if name == "f8E8M0FNU":
        return (2.0 ** r.randint(-3, 4, shape)).astype(t)
    if name in NARROW_FLOATS or t.kind == "f" or name == "bf16":
        return r.randint(-4, 5, shape).astype(f32).astype(t)
    return r.randint(0 if name.startswith("u") else -2, 2,
                     shape).astype(np.int64).astype(t)
