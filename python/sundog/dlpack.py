"""DLPack for arrays on `xpu`: docs/ffi.md says what is shared and what copied.

JAX exports arrays of the platforms that it knows by name.  So what leaves is a
tensor of our own making (plugin/pjrt_sundog.h) around the array's memory on
`host` and `cuda`, and elsewhere a copy in host memory, which every consumer can
read.  What comes in from a CUDA device of ours is a view, by jaxlib's own
function; the rest comes as JAX does it: in host memory first, then by device_put.
An array that never left JAX stays where it is."""
import ctypes
import functools

import jax
import jax.dlpack
import numpy as np

PLATFORM = "xpu"
CPU, CUDA = 1, 2  # DLPack's devices
LEGACY = 1  # CUDA's default stream, as DLPack and its driver write it
ALIGN = 64


def host_copy(x):
    """On JAX's CPU, which exports every type; in NumPy where there is none.
    Whoever gets it may write: no view of x's memory, nor of the values of it
    that JAX keeps."""
    try:
        cpu = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return np.array(x)
    return jax.device_put(x, cpu, may_alias=False)


def is_ours(x):
    return len(x.sharding.device_set) == 1 and x.platform() == PLATFORM


def kind_of(device):
    return device.device_kind.split(":")[0]


# ---- what leaves ----

SHARED = {"host": CPU, "cuda": CUDA}
TYPES = frozenset(np.dtype(t) for t in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "float16", "float32", "float64", "complex64", "complex128",
    jax.numpy.bfloat16))


def is_shared(x):
    """DLPack has words for it, and other libraries can read its memory."""
    device, = x.sharding.device_set
    return (kind_of(device) in SHARED and x.dtype in TYPES and x.size > 0 and
            x.sharding.memory_kind in (None, "device"))


def place_of(x):
    """(device type, device id) of what __dlpack__ gives."""
    device, = x.sharding.device_set
    if is_shared(x) and kind_of(device) == "cuda":
        return CUDA, device.local_hardware_id
    return CPU, 0


class Share(ctypes.Structure):  # pjrt_sundog_tensor
    _fields_ = [("struct_size", ctypes.c_size_t), ("pointer", ctypes.c_void_p),
                ("stream", ctypes.c_void_p), ("wait", ctypes.c_bool),
                ("tensor", ctypes.c_void_p)]


class Capsule(ctypes.Structure):  # pjrt_sundog_capsule
    _fields_ = [("struct_size", ctypes.c_size_t), ("is_valid", ctypes.c_void_p),
                ("pointer", ctypes.c_void_p), ("destructor", ctypes.c_void_p)]


NAME = b"dltensor"
python = ctypes.pythonapi


@functools.cache
def destructor(plugin):
    """What deletes the tensor of a capsule that nobody took."""
    at = lambda f: ctypes.cast(f, ctypes.c_void_p).value
    args = Capsule(ctypes.sizeof(Capsule), at(python.PyCapsule_IsValid),
                   at(python.PyCapsule_GetPointer))
    plugin.call(plugin.own().capsule, args)
    return args.destructor


def share(plugin, x, stream):
    """A capsule over x's own memory."""
    # None stands for the default stream, -1 for "do not wait".
    args = Share(ctypes.sizeof(Share), x.unsafe_buffer_pointer(),
                 LEGACY if stream is None else max(int(stream), 0), stream != -1)
    plugin.call(plugin.own().share, args)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                            ctypes.c_void_p)(("PyCapsule_New", python))
    return new(args.tensor, NAME, destructor(plugin))


def exporting(plugin, theirs):
    """__dlpack__"""
    def export(self, *, stream=None, max_version=None, dl_device=None,
               copy=None):
        if not is_ours(self):
            return theirs(self, stream=stream, max_version=max_version,
                          dl_device=dl_device, copy=copy)
        here = place_of(self)
        to = here if dl_device is None else tuple(map(int, dl_device))
        if to not in (here, (CPU, 0)):
            raise BufferError(f"an array on {self.device} leaves in host memory"
                              f"{' or where it is' if here[0] == CUDA else ''}, "
                              f"not on DLPack device {to}")
        if is_shared(self) and to == here and not copy:
            return share(plugin, self, stream)
        if copy is False:
            raise BufferError(f"an array of {self.dtype} on {self.device} "
                              f"leaves as a copy in host memory: copy=False "
                              f"cannot be met")
        if to == here and here[0] == CUDA:
            return share(plugin, jax.numpy.array(self, copy=True), stream)
        return host_copy(self).__dlpack__(max_version=max_version)
    return export


# ---- what comes in ----

def is_for_jax_cuda(device):
    """JAX's own platform is in the process, too, and asked for."""
    if device is not None:
        return device.platform == "gpu"
    return jax.default_backend() == "gpu"


def landing(where, device):
    """The device of ours whose memory that is, or None."""
    try:
        ours = jax.local_devices(backend=PLATFORM)
    except RuntimeError:
        return None
    type, id = int(where[0]), int(where[1])
    if type == CUDA and not is_for_jax_cuda(device):
        return next((d for d in ours if kind_of(d) == "cuda" and
                     d.local_hardware_id == id), None)
    if type == CPU and device in ours and kind_of(device) == "host":
        return device
    return None


def view(capsule, where, stream, device):
    """A tensor's memory as an array on device; it stays until the array goes."""
    from jax._src.lib import _jax, jaxlib_extension_version
    more = (None, int(where[0])) if jaxlib_extension_version >= 467 else (None,)
    x = _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, *more)
    return jax.numpy.asarray(x)


class Tensor(ctypes.Structure):  # DLTensor
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int32),
                ("id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("offset", ctypes.c_uint64)]


def why_not(capsule):
    """What keeps a tensor from being an array of ours in place, or None."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python))
    t = Tensor.from_address(get(capsule, NAME))
    if ((t.data or 0) + t.offset) % ALIGN:
        return f"it does not begin at a multiple of {ALIGN} bytes"
    dense = 1
    for i in reversed(range(t.ndim)):
        if t.strides and t.shape[i] != 1 and t.strides[i] != dense:
            return "it is not dense and row-major"
        dense *= t.shape[i]
    return None


def staying(theirs):
    """from_dlpack, where arrays of ours keep their device."""
    from jax._src.array import ArrayImpl

    @functools.wraps(theirs)
    def from_dlpack(external_array, device=None, copy=None):
        x, at = external_array, device
        if isinstance(at, jax.sharding.Sharding) and len(at.device_set) == 1:
            at, = at.device_set
        if (isinstance(x, ArrayImpl) and is_ours(x) and
                (at is None or {at} == x.sharding.device_set)):
            return jax.numpy.array(x, copy=True) if copy else x
        if not hasattr(x, "__dlpack_device__"):
            return theirs(x, device=device, copy=copy)
        where = x.__dlpack_device__()
        here = landing(where, at)
        if here is None:
            return theirs(x, device=device, copy=copy)
        stream = LEGACY if int(where[0]) == CUDA else None
        capsule = x.__dlpack__(stream=stream)
        why = why_not(capsule)
        if why and (int(where[0]) == CUDA or copy is False):
            # begins as JAX's own refusal does, which programs look for
            raise ValueError(f"Specified input which requires a copy: it cannot be an "
                             f"array on {here} in place, since {why}; make a dense "
                             f"copy of it first")
        if why:
            del capsule
            return theirs(x, device=device, copy=copy)
        if copy is False and at not in (None, here):
            raise ValueError(f"Specified input on {here} which requires a copy on "
                             f"{at}: copy=False cannot be met")
        y = view(capsule, where, stream, here)
        y = jax.numpy.array(y, copy=True) if copy else y
        return y if at in (None, here) else jax.device_put(y, at)
    return from_dlpack


def install(plugin):
    from jax._src import dlpack
    from jax._src.array import ArrayImpl
    from jax._src.dlpack import DLDeviceType
    their_device = ArrayImpl.__dlpack_device__

    def device(self):
        if not is_ours(self):
            return their_device(self)
        type, id = place_of(self)
        return DLDeviceType(type), id

    jax.dlpack.from_dlpack = dlpack.from_dlpack = staying(dlpack.from_dlpack)
    ArrayImpl.__dlpack__ = exporting(plugin, ArrayImpl.__dlpack__)
    ArrayImpl.__dlpack_device__ = device
