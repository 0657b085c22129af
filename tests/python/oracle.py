"""The reference evaluator from Python: programs as JAX sends them, or as text,
computed by tools/ref alone.  No device, no plugin: a library of the tests."""
import ctypes
import os
import re

import ml_dtypes
import numpy as np

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIBRARY = os.environ.get("SUNDOG_ORACLE", os.path.join(
    TOP, "build", "release", "tests", "oracle", "oracle.so"))

# Names as HLO spells them; what stands here numpy or ml_dtypes spells so.
NUMPY = {"pred": "bool", "s2": "int2", "s4": "int4", "s8": "int8",
         "s16": "int16", "s32": "int32", "s64": "int64", "u2": "uint2",
         "u4": "uint4", "u8": "uint8", "u16": "uint16", "u32": "uint32",
         "u64": "uint64", "bf16": "bfloat16", "f16": "float16",
         "f32": "float32", "f64": "float64", "c64": "complex64",
         "c128": "complex128", "f4e2m1fn": "float4_e2m1fn",
         "f6e2m3fn": "float6_e2m3fn", "f6e3m2fn": "float6_e3m2fn",
         "f8e3m4": "float8_e3m4", "f8e4m3": "float8_e4m3",
         "f8e4m3fn": "float8_e4m3fn", "f8e4m3b11fnuz": "float8_e4m3b11fnuz",
         "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
         "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu"}


def dtype(name):
    return np.dtype(getattr(ml_dtypes, NUMPY[name], NUMPY[name]))


def load():
    lib = ctypes.CDLL(LIBRARY)
    text, p, i = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
    for name, result, args in (
            ("create", p, ()), ("destroy", None, (p,)), ("message", text, (p,)),
            ("code", i, (p,)), ("text", text, (p,)),
            ("read", ctypes.c_bool, (p, text, p, ctypes.c_size_t)),
            ("run", ctypes.c_bool, (p, ctypes.POINTER(p), i)),
            ("nparam", i, (p,)), ("nresult", i, (p,)), ("param", text, (p, i)),
            ("result", text, (p, i)), ("data", p, (p, i))):
        f = getattr(lib, "oracle_" + name)
        f.restype, f.argtypes = result, args
    return lib


class OracleError(Exception):
    """What the frontend or the evaluator says; code as PJRT numbers it."""

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


class Program:
    """One module.  Called with arrays it gives the list of its results, the
    leaves of a tuple one after the other; a token is None."""
    lib = None

    def __init__(self, program, format="mlir"):
        Program.lib = Program.lib or load()
        self.o = self.lib.oracle_create()
        if isinstance(program, str):
            program = program.encode()
        self.check(self.lib.oracle_read(self.o, format.encode(), program,
                                        len(program)))
        self.params = [self.shape(self.lib.oracle_param(self.o, i))
                       for i in range(self.lib.oracle_nparam(self.o))]
        self.results = [self.shape(self.lib.oracle_result(self.o, i))
                        for i in range(self.lib.oracle_nresult(self.o))]

    def __del__(self):
        if getattr(self, "o", None):
            self.lib.oracle_destroy(self.o)

    def check(self, good):
        if not good:
            raise OracleError(self.lib.oracle_message(self.o).decode(),
                              self.lib.oracle_code(self.o))

    @staticmethod
    def shape(text):
        """None for a token, else the element type and the dimensions."""
        name, dims = re.fullmatch(r"(\w+)\[?(.*?)\]?", text.decode()).groups()
        if name == "token":
            return None
        return dtype(name), tuple(int(d) for d in dims.split(",") if d)

    def text(self):
        return self.lib.oracle_text(self.o).decode()

    def __call__(self, *args):
        assert len(args) == len(self.params), "number of arguments"
        dense = []
        for x, want in zip(args, self.params):
            x = np.zeros(()) if want is None else np.asarray(x, order="C")
            assert want is None or (x.dtype, x.shape) == want, \
                f"argument {x.dtype}{x.shape}, parameter {want}"
            dense.append(x)
        pointers = (ctypes.c_void_p * (len(dense) + 1))(
            *[x.ctypes.data for x in dense])
        self.check(self.lib.oracle_run(self.o, pointers, len(dense)))
        return [self.array(i, s) for i, s in enumerate(self.results)]

    def array(self, i, shape):
        if shape is None:
            return None
        t, dims = shape
        size = t.itemsize * int(np.prod(dims, dtype=np.int64))
        data = ctypes.string_at(self.lib.oracle_data(self.o, i), size)
        return np.frombuffer(data, t).reshape(dims)


def lower(fun, *args):
    """What jax.jit sends for fun to a platform that JAX does not know."""
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax
    from jaxlib.mlir.dialects import stablehlo

    lowered = jax.jit(fun, keep_unused=True).trace(*args).lower(
        lowering_platforms=("xpu",))
    return _jax.mlir.serialize_portable_artifact(
        mlir.module_to_bytecode(lowered.compiler_ir("stablehlo")),
        stablehlo.get_current_version())


def evaluate(fun, *args):
    """The leaves of fun(*args), computed by the evaluator."""
    import jax
    flat = [jax.random.key_data(x) if jax.dtypes.issubdtype(
        getattr(x, "dtype", None), jax.dtypes.prng_key)
        else jax.numpy.asarray(x) for x in jax.tree.leaves(args)]
    return Program(lower(fun, *args))(*[np.asarray(x) for x in flat])
