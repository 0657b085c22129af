"""Writes the seeds of fuzz_bytecode: small programs of JAX, for several
target versions (0.9 to 1.17 are bytecode versions 0, 1, 3, 4 and 6).

usage: make_bytecode.py OUT_DIR
"""
import sys

import jax
import jax.numpy as jnp
from jax import lax
from jaxlib.mlir.dialects import stablehlo

f32, i32 = jnp.float32, jnp.int32
x = jax.ShapeDtypeStruct((4, 6), f32)
v = jax.ShapeDtypeStruct((5,), i32)
n = jax.ShapeDtypeStruct((), i32)


def loop(n, a):
    """The bound and `a` are used inside, not carried."""
    return lax.while_loop(lambda s: s[0] < n,
                          lambda s: (s[0] + 1, s[1] * a + s[0]),
                          (jnp.int32(0), jnp.int32(1)))[1]


def choose(i, a, b):
    return lax.switch(i, [lambda a, b: a + b, lambda a, b: a * b,
                          lambda a, b: a], a, b)


def conv(a, k):
    return lax.conv_general_dilated(a, k, (2, 1), "SAME")


# Locations as JAX writes them, without the names of this machine's files.
SQUARE = """
module @jit_square attributes {mhlo.num_partitions = 1 : i32,
                               mhlo.num_replicas = 1 : i32} {
  func.func public @main(
      %x: tensor<4x6xf32> {tf.aliasing_output = 0 : i32})
      -> (tensor<4x6xf32> {jax.result_info = "result"}) {
    %y = stablehlo.multiply %x, %x : tensor<4x6xf32>
        loc("jit(square)/mul"(callsite("square"("model.py":12:3) at
                                       "main"("run.py":3:1))))
    return %y : tensor<4x6xf32>
  }
}
"""

programs = {
    "square": None,
    "loop": (loop, n, n),
    "choose": (choose, n, n, n),
    "sort": (lambda x: lax.sort((x, x * 2), dimension=0), x),
    "scatter": (lambda x, v: x.at[v].add(1.0), x, v),
    "gather": (lambda x, v: x[v], x, v),
    "pool": (jax.grad(lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID").sum()), x),
    "conv": (conv, jax.ShapeDtypeStruct((1, 2, 5, 5), f32),
             jax.ShapeDtypeStruct((3, 2, 3, 3), f32)),
    "dot": (lambda x: jnp.einsum("ab,cb->ac", x, x), x),
    "fft": (lambda x: jnp.fft.rfft(x).imag, x),
    "call": (lambda x: jax.nn.softmax(jax.nn.relu(x)), x),
    "mask": (lambda x: jnp.where(jnp.arange(24).reshape(4, 6) % 3 == 0, x, 0),
             x),
}

def text_of(program):
    if program is None:
        return SQUARE
    f, *args = program
    low = jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",))
    return low.compiler_ir("stablehlo").operation.get_asm()


for name, program in programs.items():
    text = text_of(program)
    for version in ("0.9.0", "0.12.0", "0.14.0", "1.0.0", "1.17.0"):
        if version not in ("1.0.0", "1.17.0") and name not in (
                "square", "loop", "sort", "conv"):
            continue
        if version == "1.0.0" and name != "scatter":
            continue
        b = stablehlo.serialize_portable_artifact_str(text, version)
        with open(f"{sys.argv[1]}/{name}.{version}.mlirbc", "wb") as out:
            out.write(b)
