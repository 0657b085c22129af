"""Custom calls that JAX partitions itself (`custom_partitioning`), and values
whose sharding is asked for inside a program (`inspect_array_sharding`)."""
import weakref

CALLBACK = "sundog_inspect_sharding"
told = weakref.WeakValueDictionary()  # key -> what is told of a value


def portable(module):
    """As programs are sent: in a form that does not change with versions."""
    from jax._src.lib import _jax
    from jax._src.lib.mlir.dialects import hlo
    version = hlo.get_version_from_compatibility_requirement(
        hlo.StablehloCompatibilityRequirement.WEEK_4)
    return _jax.mlir.serialize_portable_artifact(module, version, True)


def install(c_api):
    """After JAX's own registration: of one name the newest counts."""
    from jax._src import custom_partitioning as theirs
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    def partition(*args):
        code, operands, results = theirs._custom_partitioning_partition(*args)
        with mlir.make_ir_context():
            return portable(ir.Module.parse(code)), operands, results

    xla_client.register_custom_call_partitioner(
        theirs._CUSTOM_PARTITIONING_CALL_NAME,
        theirs._custom_partitioning_propagate_user_sharding, partition,
        theirs._custom_partitioning_infer_sharding_from_operands,
        can_side_effecting_have_replicated_sharding=True, c_api=c_api)
    xla_client.register_custom_call_partitioner(
        CALLBACK, lambda sharding, *_: sharding, tell,
        lambda shapes, shardings, *_: shardings[0],
        can_side_effecting_have_replicated_sharding=True, c_api=c_api)


def tell(shapes, shardings, shape, sharding, key):
    """Partitions nothing: each participant keeps its part."""
    import jax
    told[key](shardings[0])
    part = jax.ShapeDtypeStruct(shardings[0].tile(shapes[0]).dimensions(),
                                shapes[0].numpy_dtype())
    lowered = jax.jit(lambda x: x).trace(part).lower()
    return portable(lowered.compiler_ir()), shardings, shardings[0]


def lowerings():
    """(primitive, rule): JAX's own, whose call, which has the address of a
    function of XLA's, becomes one that is partitioned as above."""
    from jax._src import debugging
    from jax._src.interpreters import mlir

    def inspect(ctx, value, *, callback):
        kept = len(ctx.module_context.keepalives)
        out = debugging._inspect_sharding_lowering_rule(ctx, value,
                                                        callback=callback)
        for use in list(value.uses):
            named = use.owner.attributes
            if ("call_target_name" in named and
                    named["call_target_name"].value ==
                    debugging._INSPECT_SHARDING_CALL_NAME):
                use.owner.erase()
        for tells in ctx.module_context.keepalives[kept:]:
            key = str(id(tells)).encode()
            told[key] = tells
            mlir.custom_call(CALLBACK, result_types=[value.type],
                             operands=[value], backend_config=key,
                             has_side_effect=True)
        return out

    yield debugging.inspect_sharding_p, inspect
