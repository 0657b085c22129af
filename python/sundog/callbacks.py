"""Python callbacks on `xpu`: pure_callback, io_callback, jax.debug.*, checks.

JAX has two roads.  The one by foreign function calls works for the platforms
that jaxlib knows; the other, by sends to the host and receives from it, for
every plugin that runs these two operations, as ours does.  So the operations
are emitted as for a TPU, by JAX's own code; docs/adr/0009 says why.
"""
import functools

import numpy as np

PLATFORM = "xpu"


def checked(callback, result_avals):
    """callback's results as arrays of the promised shapes and types; empty
    ones stay behind, since they are constants where they are used."""
    from jax._src import dtypes

    def call(*args):
        given = callback(*args)
        if len(given) != len(result_avals):
            raise RuntimeError(
                "Mismatched number of outputs from callback. Expected: "
                f"{len(result_avals)}, Actual: {len(given)}")
        results = []
        for i, (x, aval) in enumerate(zip(given, result_avals)):
            x = dtypes.canonicalize_value(np.asarray(x))
            if x.shape != aval.shape:
                raise RuntimeError(
                    f"Incorrect output shape for return value #{i}: "
                    f"Expected: {aval.shape}, Actual: {x.shape}")
            if x.dtype != aval.dtype:
                raise RuntimeError(
                    f"Incorrect output dtype for return value #{i}: "
                    f"Expected: {aval.dtype}, Actual: {x.dtype}")
            if x.size:
                results.append(x)
        return tuple(results)
    return call


def want_cpu():
    """JAX hands a callback its arguments on the CPU platform."""
    from jax._src import xla_bridge
    try:
        xla_bridge.local_devices(backend="cpu")
    except RuntimeError as error:
        raise RuntimeError(
            "Python callbacks get their arguments on JAX's CPU platform, "
            "which JAX_PLATFORMS leaves out: set JAX_PLATFORMS=xpu,cpu"
        ) from error


def emit(upstream, ctx, callback, token, operands, operand_avals, result_avals,
         **options):
    """jax._src.callback.emit_python_callback, with a road for `xpu`."""
    from jax._src import callback as jax_callback
    from jax._src.interpreters import mlir

    module = ctx.module_context
    if tuple(module.platforms) != (PLATFORM,):
        return upstream(ctx, callback, token, operands, operand_avals,
                        result_avals, **options)
    if options.get("partitioned") and result_avals:
        raise ValueError(
            "Partitioned callback not supported with return values.")
    want_cpu()
    received = [a for a in result_avals if 0 not in a.shape]
    shape = jax_callback._aval_to_xla_shape
    outputs, token = jax_callback._emit_tpu_python_callback(
        module.get_backend(), ctx, checked(callback, result_avals), token,
        operands, operand_avals, [shape(a) for a in operand_avals],
        received, [shape(a) for a in received],
        returns_token=options.get("returns_token", True),
        sharding=options.get("sharding"))
    outputs = iter(outputs)
    return [mlir.ir_constant(np.zeros(a.shape, a.dtype)) if 0 in a.shape
            else next(outputs) for a in result_avals], token, None


def install():
    from jax._src import callback
    callback.emit_python_callback = functools.partial(
        emit, callback.emit_python_callback)


def lowerings():
    """JAX's own rules for what it lowers on platforms it knows."""
    from jax._src import checkify, debugging
    return ((debugging.debug_callback_p, debugging.debug_callback_lowering),
            (debugging.debug_print_p, debugging.debug_print_lowering_rule),
            (checkify.check_p, checkify.check_lowering_rule))
