"""Lowerings of JAX's primitives of linear algebra: each sends one custom-call
of ours, `sundog.<name>`, with its parameters as integers.  Nothing is computed
here; what the calls take and give is in src/hlo/hlo_linalg.def.
"""
import numpy as np

from .later import after_import

NAMES = ("eigh", "svd", "eig", "schur", "hessenberg", "tridiagonal",
         "tridiagonal_solve", "geqp3", "lu", "ormqr", "spsolve")


def refuse(what):
    raise NotImplementedError(f"{what} on xpu")


def call(name, convert=lambda ctx, params: {}):
    """A rule that sends sundog.<name> with the integers convert gives."""
    from jax._src import ffi
    lower = ffi.ffi_lowering(f"sundog.{name}")

    def rule(ctx, *operands, **params):
        given = {key: np.int64(value)
                 for key, value in convert(ctx, params).items()}
        return lower(ctx, *operands, **given)
    return rule


def whole(ctx, params):
    """A part of the values is for nobody but TPUs."""
    subset = params.get("subset_by_index")
    shape = ctx.avals_in[0].shape
    if subset is not None and tuple(subset) != (0, min(shape[-2:])):
        refuse("subset_by_index")


def eigh(ctx, params):
    whole(ctx, params)
    return {"lower": params["lower"]}


def svd(ctx, params):
    whole(ctx, params)
    return {"full_matrices": params["full_matrices"],
            "compute_uv": params["compute_uv"]}


def eig(ctx, params):
    return {"left": params["compute_left_eigenvectors"],
            "right": params["compute_right_eigenvectors"]}


def schur(ctx, params):
    if params["sort_eig_vals"]:
        refuse("Schur's form with sorted eigenvalues")
    return {"vectors": params["compute_schur_vectors"]}


def tridiagonal(ctx, params):
    return {"lower": params["lower"]}


def tridiagonal_solve(ctx, params):
    return {"perturb": params.get("perturb_singular", False)}


def ormqr(ctx, params):
    return {"left": params["left"], "transpose": params["transpose"]}


def spsolve_rule():
    """Indices of any integer type, as s32."""
    from jax._src.interpreters import mlir
    send = call("spsolve")

    def rule(ctx, data, indices, indptr, b, **params):
        def s32(x, aval):
            to = aval.update(dtype=np.dtype(np.int32))
            return (x if aval.dtype == np.int32 else
                    mlir.hlo.convert(mlir.aval_to_ir_type(to), x)), to
        avals = list(ctx.avals_in)
        indices, avals[1] = s32(indices, avals[1])
        indptr, avals[2] = s32(indptr, avals[2])
        return send(ctx.replace(avals_in=avals), data, indices, indptr, b)
    return rule


def rules():
    """Primitive's name in jax._src.lax.linalg, its rule."""
    return (("eigh_p", call("eigh", eigh)),
            ("svd_p", call("svd", svd)),
            ("eig_p", call("eig", eig)),
            ("schur_p", call("schur", schur)),
            ("hessenberg_p", call("hessenberg")),
            ("tridiagonal_p", call("tridiagonal", tridiagonal)),
            ("tridiagonal_solve_p", call("tridiagonal_solve",
                                         tridiagonal_solve)),
            ("geqp3_p", call("geqp3")),
            ("lu_p", call("lu")),
            ("ormqr_p", call("ormqr", ormqr)))


def exported(module):
    """Our calls mean in ten years what they mean today, as jax.export asks of
    those that it writes."""
    module._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.update(
        f"sundog.{name}" for name in NAMES)


def install(platform):
    """A JAX without one of the primitives keeps the others."""
    from jax._src.interpreters import mlir
    from jax._src.lax import linalg

    def register(module, name, rule):
        primitive = getattr(module, name, None)
        if primitive is not None:
            mlir.register_lowering(primitive, rule, platform=platform)

    def sparse(module):
        register(module, "spsolve_p", spsolve_rule())

    for name, rule in rules():
        register(linalg, name, rule)
    after_import("jax.experimental.sparse.linalg", sparse)
    after_import("jax._src.export._export", exported)
