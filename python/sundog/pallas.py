"""Pallas: kernels that it compiles for TPUs and NVIDIA GPUs are refused, with
what to do instead; those that it interprets run."""

WHY = ("pallas_call on xpu: Pallas compiles kernels for TPUs (Mosaic) and "
       "NVIDIA GPUs (Mosaic, Triton) alone. pallas_call(..., interpret=True) "
       "runs this one here, slowly; jax.numpy is compiled")


def refuse(ctx, *operands, **params):
    raise NotImplementedError(WHY)


def pallas_calls(module, platform):
    from jax._src.interpreters import mlir

    def rule(ctx, *operands, **params):
        if params.get("interpret"):
            return module._pallas_call_lowering(ctx, *operands, **params)
        return refuse(ctx)
    mlir.register_lowering(module.pallas_call_p, rule, platform=platform)


def kernels_of_tpus(module, platform):
    from jax._src.interpreters import mlir
    mlir.register_lowering(module.tpu_custom_call_p, refuse,
                           platform=platform)


def install(platform):
    from .later import after_import
    after_import("jax._src.pallas.pallas_call", pallas_calls, platform)
    after_import("jax._src.tpu_custom_call", kernels_of_tpus, platform)
