"""Handlers that jax.ffi registers for platform "xpu", "xpu:cl" or "xpu:cuda" go
to the plugin, through the extensions of its PJRT API: a list of structs, of
which the first words are read here.  abi/pjrt.tsv has the layouts, and
plugin/pjrt_sundog.h that of our own.

register_kernel() names a kernel that comes as source, so that jax.ffi.ffi_call
of that name launches it: docs/ffi.md."""
import ctypes
import dataclasses

import numpy as np

OWN, TYPES = 0x53444f47, 5  # extensions: of our own; FFI
STAGES = ("instantiate", "prepare", "initialize", "execute")
Pointer, Size, Number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


class Api(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("extensions", Pointer)]


class Extension(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("type", Number), ("next", Pointer),
                ("function", Pointer)]


class Own(ctypes.Structure):  # pjrt_sundog_extension
    _fields_ = [("struct_size", Size), ("type", Number), ("next", Pointer),
                ("register_handler", Pointer), ("share", Pointer),
                ("capsule", Pointer)]


class RegisterHandler(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("name", ctypes.c_char_p),
                ("platform", ctypes.c_char_p), ("name_size", Size),
                ("platform_size", Size)] + [
                    (stage, Pointer) for stage in STAGES]


class TypeInfo(ctypes.Structure):  # PJRT's; XLA's has its deleter at 16
    _fields_ = [("deleter", Pointer), ("serialize", Pointer),
                ("deserialize", Pointer)]


class RegisterType(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("extensions", Pointer),
                ("name", ctypes.c_char_p), ("name_size", Size),
                ("type_id", ctypes.c_int64),
                ("type_info", ctypes.POINTER(TypeInfo))]


class Message(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("extensions", Pointer),
                ("error", Pointer), ("message", Pointer), ("size", Size)]


def end(struct, field):
    """struct_size as C callers say it: to the end of the last field."""
    at = getattr(struct, field)
    return at.offset + at.size


def pointer(capsule):
    """What a PyCapsule of any name holds."""
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = Pointer
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return python.PyCapsule_GetPointer(capsule,
                                       python.PyCapsule_GetName(capsule))


class Plugin:
    """The PJRT API of a capsule that JAX has."""
    DESTROY, MESSAGE = 40, 48  # PJRT_Error_Destroy, _Message in the API

    def __init__(self, c_api):
        self.api = pointer(c_api)

    def function(self, extension):
        """The first function of an extension."""
        at = Api.from_address(self.api).extensions
        while at:
            e = Extension.from_address(at)
            if e.type == extension:
                return e.function
            at = e.next
        raise LookupError(f"the plugin has no extension {extension}")

    def own(self):
        at = Api.from_address(self.api).extensions
        while at:
            e = Own.from_address(at)
            if e.type == OWN:
                return e
            at = e.next
        raise LookupError("the plugin has no extension of Sundog's")

    def slot(self, offset):
        f = Pointer.from_address(self.api + offset).value
        return ctypes.CFUNCTYPE(Pointer, Pointer)(f)

    def call(self, function, args):
        error = ctypes.CFUNCTYPE(Pointer, Pointer)(function)(
            ctypes.addressof(args))
        if not error:
            return
        m = Message(end(Message, "size"), None, error)
        self.slot(self.MESSAGE)(ctypes.addressof(m))
        text = ctypes.string_at(m.message, m.size).decode(errors="replace")
        self.slot(self.DESTROY)(ctypes.addressof(
            Message(end(Message, "error"), None, error)))
        raise ValueError(text)

    def register_handler(self, name, fn, platform, api_version=0, traits=0):
        """What xla_client calls for each target, with a capsule of a handler
        or a dict of capsules by stage."""
        del traits
        if api_version != 1:
            raise ValueError(f"custom-call target {name} has API version "
                             f"{api_version}: handlers are called by typed FFI "
                             f"only (api_version=1)")
        stages = fn if isinstance(fn, dict) else {"execute": fn}
        unknown = set(stages) - set(STAGES)
        if unknown:
            raise ValueError(f"custom-call target {name}: no such stage: "
                             f"{', '.join(sorted(unknown))}")
        text, where = (x.encode() if isinstance(x, str) else x
                       for x in (name, platform))
        self.call(self.own().register_handler, RegisterHandler(
            ctypes.sizeof(RegisterHandler), text, where, len(text), len(where),
            *(pointer(stages[s]) if s in stages else None for s in STAGES)))

    def register_type(self, name, given):
        """{"type_id": capsule, "type_info": capsule}, the latter optional."""
        text = name.encode() if isinstance(name, str) else name
        id = ctypes.c_int64.from_address(pointer(given["type_id"]))
        info = None
        if given.get("type_info") is not None:
            deleter = Pointer.from_address(pointer(given["type_info"]) + 16)
            info = ctypes.pointer(TypeInfo(deleter.value))
        args = RegisterType(end(RegisterType, "type_info"), None, text,
                            len(text), id.value, info)
        self.call(self.function(TYPES), args)
        id.value = args.type_id


# ---- kernels that come as source ----

FORMS = {"opencl_c": "cl", "spirv": "cl", "ptx": "cuda", "cubin": "cuda"}
KERNELS = {}  # (name, kind of device): Kernel


@dataclasses.dataclass(frozen=True)
class Kernel:
    name: str
    source: object
    form: str
    entry: str
    grid: object
    block: object
    local: object
    scalars: tuple
    options: str


def register_kernel(name, source, *, form, grid, block, entry=None, local=0,
                    scalars=(), options=""):
    """Makes jax.ffi.ffi_call(name, ...) launch a kernel.

    source: its text, or bytes; form: what it is, "opencl_c" or "spirv" (which
    `cl` takes), "ptx" or "cubin" (`cuda`).  A name may have one source for each
    of the two.  entry: the kernel's name in it, if it is another.
    grid, block: how many groups, and items in one: a number, or up to three.
    local: bytes of local (in CUDA's words dynamic shared) memory of a group.
    Each of the three may be a function that gets what has shape and dtype of
    each operand, then of each result.
    scalars: names of the call's attributes that the kernel gets by value.
    options: for OpenCL's compiler.

    The kernel's parameters are a pointer for each operand, one for each result,
    the scalars in that order, and in OpenCL, where local is not 0, a pointer to
    local memory."""
    if form not in FORMS:
        raise ValueError(f"kernel {name}: form {form!r} is none of "
                         f"{', '.join(FORMS)}")
    if not isinstance(source, str):
        source = bytes(source)
    elif form in ("spirv", "cubin"):
        raise TypeError(f"kernel {name}: {form} is bytes, not text")
    kernel = Kernel(name, source, form, entry or name, grid, block, local,
                    tuple(scalars), options)
    known = KERNELS.setdefault((name, FORMS[form]), kernel)
    if written(known) != written(kernel):
        raise ValueError(f"kernel {name} has another source or other bounds on "
                         f"{FORMS[form]} already")


def written(kernel):
    """Equal for what was written alike: a cell of a notebook that is run again
    makes its functions anew."""
    def of(x):
        if not hasattr(x, "__code__"):
            return x
        return (x.__code__, x.__defaults__,
                [c.cell_contents for c in x.__closure__ or ()])
    return [of(getattr(kernel, f.name)) for f in dataclasses.fields(kernel)]


def three(kernel, what, value):
    """A grid or block as three numbers."""
    try:
        n = tuple(int(x) for x in np.atleast_1d(value))
    except (TypeError, ValueError):
        n = ()
    if not 1 <= len(n) <= 3 or min(n) < 0:
        raise ValueError(f"kernel {kernel.name}: its {what} is {value!r}: one to "
                         f"three numbers are wanted, or a function that returns "
                         f"them")
    return n + (1,) * (3 - len(n))


def launch(kernel, avals):
    """What the plugin is told of one source: src/xpu/xpu_ffi_kernel.c."""
    from jax._src.lib.mlir import ir
    bounds = {w: f(*avals) if callable(f) else f
              for w, f in (("grid", kernel.grid), ("block", kernel.block),
                           ("local", kernel.local))}
    code = kernel.source
    return ir.DictAttr.get({
        "form": ir.StringAttr.get(kernel.form),
        "code": ir.StringAttr.get(code) if isinstance(code, str) else
                ir.DenseElementsAttr.get(np.frombuffer(code, np.uint8),
                                         type=ir.IntegerType.get_unsigned(8)),
        "entry": ir.StringAttr.get(kernel.entry),
        "options": ir.StringAttr.get(kernel.options),
        "local": ir.IntegerAttr.get(ir.IntegerType.get_signless(64),
                                    int(bounds["local"])),
        **{w: ir.DenseI64ArrayAttr.get(three(kernel, w, bounds[w]))
           for w in ("grid", "block")}})


def scalars(kernel, given):
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir
    if set(given) != set(kernel.scalars):
        raise TypeError(f"kernel {kernel.name} takes the attributes "
                        f"{sorted(kernel.scalars)}, and the call gives "
                        f"{sorted(given)}")
    return ir.DictAttr.get({f"{i:03}": mlir.ir_attribute(given[s])
                            for i, s in enumerate(kernel.scalars)})


def lowering(ctx, *operands, target_name, attributes, **params):
    """Of ffi_call: JAX's own, but for our kernels."""
    from jax._src import ffi
    from jax._src.lib.mlir import ir
    found = [k for (name, _), k in KERNELS.items() if name == target_name]
    if not found:
        return ffi.ffi_call_lowering(ctx, *operands, target_name=target_name,
                                     attributes=attributes, **params)
    given = ffi._unwrap_kwargs_hashable(attributes)
    avals = (*ctx.avals_in, *ctx.avals_out)
    config = {"name": ir.StringAttr.get(target_name),
              "scalars": scalars(found[0], given),
              **{FORMS[k.form]: launch(k, avals) for k in found}}
    rule = ffi.ffi_lowering(
        "sundog_kernel", has_side_effect=params["has_side_effect"],
        operand_layouts=params["input_layouts"],
        result_layouts=params["output_layouts"],
        operand_output_aliases=dict(params["input_output_aliases"]),
        backend_config=config)
    return rule(ctx, *operands)


def install(c_api, platform):
    from jax._src import ffi
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    plugin = Plugin(c_api)
    for kind in ("", ":host", ":cl", ":cuda"):
        xla_client.register_custom_type_handler(platform + kind,
                                                plugin.register_type)
        xla_client.register_custom_call_handler(platform + kind,
                                                plugin.register_handler)
    mlir.register_lowering(ffi.ffi_call_p, lowering, platform=platform)
