"""Writes the seeds of fuzz_bytecode: small programs of JAX, for several
target versions (0.9 to 1.17 are bytecode versions 0, 1, 3, 4 and 6); and those
of fuzz_mlir_text: the same as jaxlib prints them, in both forms.

usage: make_bytecode.py BYTECODE_DIR TEXT_DIR
"""
import os
import sys

import jax
import jax.numpy as jnp
from jax import lax
from jax._src.interpreters.mlir import make_ir_context
from jaxlib._jax import mlir
from jaxlib.mlir import ir

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

# A typed custom call: its configuration is a dictionary.
CUSTOM = r"""
module @jit_custom {
  func.func public @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %y:2 = stablehlo.custom_call @target(%x) {
        mhlo.backend_config = {
          a = -1 : i64, b = true, c = 2.5 : f32, d = array<i64: 1, -2>,
          e = ["q\\22", 76 : ui8], f = dense<[1, 2]> : tensor<2xi32>},
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>,
                          dense<0> : tensor<1xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<
            output_tuple_indices = [0], operand_index = 0,
            operand_tuple_indices = []>],
        has_side_effect = true
      } : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<3xi32>)
    return %y#0 : tensor<4x6xf32>
  }
}
"""

# Shardy's ops on one device, as shard_map of a sum sends them.
SHARDY = """
module @jit_shardy {
  sdy.mesh @mesh = <["i"=1]>
  func.func public @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %s = sdy.sharding_constraint %x <@mesh, [{"i"}, {}]> : tensor<4x6xf32>
    %y = sdy.manual_computation(%s) in_shardings=[<@mesh, [{"i"}, {}]>]
        out_shardings=[<@mesh, [{}, {}]>] manual_axes={"i"}
        (%a: tensor<4x6xf32>) {
      %t = "stablehlo.all_reduce"(%a) <{
          replica_groups = dense<0> : tensor<1x1xi64>}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %p = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %p : tensor<f32>
      }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
      sdy.return %t : tensor<4x6xf32>
    } : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}
"""

# A value sent to the host and another received.
HOST = """
module @jit_host {
  func.func public @main(%x: tensor<4x6xf32>) -> tensor<f32> {
    %t = stablehlo.create_token : !stablehlo.token
    %u = "stablehlo.send"(%x, %t) <{
        channel_handle = #stablehlo.channel_handle<handle = 2, type = 2>,
        is_host_transfer = true}> {mhlo.frontend_attributes = {
          _xla_host_transfer_handler_name = "pjrt_rendezvous"}}
      : (tensor<4x6xf32>, !stablehlo.token) -> !stablehlo.token
    %r:2 = "stablehlo.recv"(%u) <{
        channel_handle = #stablehlo.channel_handle<handle = 3, type = 3>,
        is_host_transfer = true}>
      : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
    return %r#0 : tensor<f32>
  }
}
"""

# What no program of JAX has: odd types, every shape of attribute, resources.
HERE = os.path.dirname(os.path.abspath(__file__))
ODD = open(os.path.join(HERE, "corpus/mlir_text/odd.source.mlir")).read()

programs = {
    "square": SQUARE,
    "custom": CUSTOM,
    "shardy": SHARDY,
    "host": HOST,
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
    if isinstance(program, str):
        return program
    f, *args = program
    low = jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",))
    return low.compiler_ir("stablehlo").operation.get_asm()


def write_texts(name, text):
    op = ir.Module.parse(text, make_ir_context()).operation
    own = not isinstance(programs.get(name, ""), str)  # has this file's places
    for form in ("generic", "pretty"):
        with open(f"{sys.argv[2]}/{name}.{form}.mlir", "w") as out:
            out.write(op.get_asm(print_generic_op_form=form == "generic",
                                 enable_debug_info=not own))


write_texts("odd", ODD)
for name, program in programs.items():
    text = text_of(program)
    write_texts(name, text)
    for version in ("0.9.0", "0.12.0", "0.14.0", "1.0.0", "1.17.0"):
        if version not in ("1.0.0", "1.17.0") and name not in (
                "square", "loop", "sort", "conv"):
            continue
        if version == "1.0.0" and name != "scatter":
            continue
        # the mixed form, which a plugin gets, keeps Shardy's ops
        b = mlir.serialize_portable_artifact(text, version,
                                             version >= "1.11.0")
        with open(f"{sys.argv[1]}/{name}.{version}.mlirbc", "wb") as out:
            out.write(b)
