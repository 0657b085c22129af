"""DLPack for arrays on `xpu`.  JAX exports arrays of the platforms that it
knows by name, and DLPack has no device type that is ours; so what leaves is a
copy in host memory, which every consumer can read.  Arrays come in as JAX does
it: in host memory first, then by device_put.  One that never left JAX stays
where it is."""
import functools

import jax
import jax.dlpack
import numpy as np

PLATFORM = "xpu"


def host_copy(x):
    """On JAX's CPU, which exports every type; in NumPy where there is none."""
    try:
        cpu = jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return np.array(x)
    return jax.device_put(x, cpu)


def is_ours(x):
    return len(x.sharding.device_set) == 1 and x.platform() == PLATFORM


def staying(theirs):
    """from_dlpack, where arrays of ours keep their device."""
    from jax._src.array import ArrayImpl

    @functools.wraps(theirs)
    def from_dlpack(external_array, device=None, copy=None):
        x = external_array
        if (isinstance(x, ArrayImpl) and is_ours(x) and
                (device is None or {device} == x.sharding.device_set)):
            return jax.numpy.array(x, copy=True) if copy else x
        return theirs(x, device=device, copy=copy)
    return from_dlpack


def install():
    from jax._src import dlpack
    from jax._src.array import ArrayImpl
    from jax._src.dlpack import DLDeviceType
    theirs, their_device = ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__
    here = (DLDeviceType.kDLCPU, 0)

    def device(self):
        return here if is_ours(self) else their_device(self)

    def export(self, *, stream=None, max_version=None, dl_device=None,
               copy=None):
        if not is_ours(self):
            return theirs(self, stream=stream, max_version=max_version,
                          dl_device=dl_device, copy=copy)
        if copy is False:
            raise BufferError("an array on xpu leaves as a copy in host "
                              "memory: copy=False cannot be met")
        if dl_device is not None and tuple(dl_device) != here:
            raise BufferError(f"an array on xpu leaves in host memory, not on "
                              f"DLPack device {tuple(dl_device)}")
        return host_copy(self).__dlpack__(max_version=max_version)

    jax.dlpack.from_dlpack = dlpack.from_dlpack = staying(dlpack.from_dlpack)
    ArrayImpl.__dlpack__ = export
    ArrayImpl.__dlpack_device__ = device
