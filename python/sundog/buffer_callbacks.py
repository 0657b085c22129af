"""jax.experimental.buffer_callback on `xpu`: a callback that fills the results'
memory.  The memory that it gets is the host's; arguments and results travel as
with every other callback (callbacks.py), so it works on each device, and costs
a copy of each."""
import numpy as np


class Buffer:
    """What jaxlib hands over on its own platforms, as far as it can be asked
    for here."""

    def __init__(self, array, writeable):
        self.array = array.view() if not writeable else array
        self.array.flags.writeable = writeable
        self.shape, self.dtype, self.ndim = (array.shape, array.dtype,
                                             array.ndim)
        self.writeable = writeable

    def unsafe_raw_buffer_pointer(self):
        return self.array.ctypes.data

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype, copy=copy)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Context:
    """Of a run; there are no other stages, and no stream of a GPU's library."""

    def __init__(self):
        from jax.experimental import buffer_callback
        self.stage = buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self):
        from jax.errors import JaxRuntimeError
        raise JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not "
                              "available: a buffer callback on xpu works on "
                              "host memory")


def filled(callback, in_tree, out_tree, aliases, result_avals):
    """callback as one that returns its results."""
    from jax._src import tree_util

    def call(*operands):
        given = [np.asarray(x) for x in operands]
        results = [np.empty(a.shape, a.dtype) for a in result_avals]
        for i, o in aliases.items():  # one memory: what it had is there
            results[o][...] = given[i]
            given[i] = results[o]
        args, options = tree_util.tree_unflatten(
            in_tree, [Buffer(x, False) for x in given])
        into = tree_util.tree_unflatten(
            out_tree, [Buffer(x, True) for x in results])
        if callback(Context(), into, *args, **options) is not None:
            raise ValueError(
                "buffer_callback callback must not return any values.")
        return tuple(results)
    return call


def lowering(ctx, *operands, callback, in_tree, out_tree, has_side_effect,
             input_output_aliases, **_):
    from jax._src import callback as jax_callback
    call = filled(callback, in_tree, out_tree, dict(input_output_aliases),
                  ctx.avals_out)
    results, _, _ = jax_callback.emit_python_callback(
        ctx, call, None, list(operands), ctx.avals_in, ctx.avals_out,
        has_side_effect=has_side_effect, returns_token=False, sharding=None)
    return results


def lowerings():
    from jax._src import buffer_callback
    return ((buffer_callback.buffer_callback_p, lowering),)
