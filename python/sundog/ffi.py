"""Handlers that jax.ffi registers for platform "xpu" go to the plugin, through
the extensions of its PJRT API: a list of structs, of which the first words are
read here.  abi/pjrt.tsv has the layouts."""
import ctypes

HANDLERS, TYPES = 0, 5  # extensions: the stages of a handler; FFI
STAGES = ("instantiate", "prepare", "initialize", "execute")
Pointer, Size, Number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


class Api(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("extensions", Pointer)]


class Extension(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("type", Number), ("next", Pointer),
                ("function", Pointer)]


class RegisterHandler(ctypes.Structure):
    _fields_ = [("struct_size", Size), ("name", ctypes.c_char_p),
                ("name_size", Size), ("api_version", Number)] + [
                    (stage, Pointer) for stage in STAGES] + [
                    ("traits", ctypes.c_uint32)]


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
        del platform
        stages = fn if isinstance(fn, dict) else {"execute": fn}
        unknown = set(stages) - set(STAGES)
        if unknown:
            raise ValueError(f"custom-call target {name}: no such stage: "
                             f"{', '.join(sorted(unknown))}")
        text = name.encode() if isinstance(name, str) else name
        self.call(self.function(HANDLERS), RegisterHandler(
            end(RegisterHandler, "traits"), text, len(text), api_version,
            *(pointer(stages[s]) if s in stages else None for s in STAGES),
            int(traits)))

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


def install(c_api, platform):
    from jax._src.lib import xla_client
    plugin = Plugin(c_api)
    xla_client.register_custom_type_handler(platform, plugin.register_type)
    xla_client.register_custom_call_handler(platform, plugin.register_handler)
