"""What JAX calls at its first use: registers the platform `xpu` and everything
that JAX keeps per platform.  Each step stands alone, so that a JAX that moved
one private name costs that step and not the platform; and nothing here may
break `import jax` or programs that use other platforms.
"""
import atexit
import dataclasses
import functools
import logging
import os
import sys
import types

from . import library

PLATFORM = "xpu"
OLDEST_JAX = (0, 7, 2)  # that was tried; 0.6 ends the process in jaxlib
log = logging.getLogger("sundog")


def initialize():
    from jax import version
    if version.__version_info__ < OLDEST_JAX:
        log.warning("sundog: there is no xpu: JAX %s is here, and %s or newer "
                    "is wanted (Python 3.11 has it)", version.__version__,
                    ".".join(map(str, OLDEST_JAX)))
        return
    for step in (quiet, register, client_settings, donation, fail_quietly,
                 compilation_cache, python_callbacks,
                 when_plugins_are_known, outlive_arrays):
        attempt(step)


def attempt(step, *args):
    try:
        step(*args)
    except Exception as error:  # a step lost is a feature lost, said once
        name = getattr(step, "__name__", step)
        log.warning("sundog: %s failed: %s", name, error)


def named_by_environment():
    """PJRT_NAMES_AND_LIBRARY_PATHS names us: JAX loads that library itself,
    and a second registration of the name would be an error."""
    paths = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "")
    return any(item.split(":")[0].strip().lower() == PLATFORM
               for item in paths.split(","))


def outlive_arrays():
    """A NumPy array that shares a device's memory knows jaxlib's client by its
    address alone.  JAX lets go of the client at exit, before a script's globals
    go, so those would read what is freed (~PjRtCApiExternalReference)."""
    atexit.register(keep_client)


def keep_client():
    """`sys` is emptied after all other modules."""
    from jax._src import xla_bridge
    sys.sundog_client = xla_bridge._backends.get(PLATFORM)


def quiet():
    """No warning that the platform is experimental."""
    from jax._src import xla_bridge
    xla_bridge._nonexperimental_plugins.add(PLATFORM)


def register():
    from jax._src import xla_bridge
    if named_by_environment():
        return
    path = library()
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"SUNDOG_LIBRARY={path}: there is no such file"
            if "SUNDOG_LIBRARY" in os.environ else
            f"{path} is missing: reinstall sundog")
    xla_bridge.register_plugin(PLATFORM, library_path=path, options={},
                               priority=priority())


def priority():
    """xpu's rank among JAX's platforms."""
    text = os.environ.get("SUNDOG_PRIORITY", "400")
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"SUNDOG_PRIORITY={text}: a whole number is wanted")


# What JAX's GPU users set, and the values that say what is done here anyway.
CLIENT_SETTINGS = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": (
        ("false", "0"), "memory is taken when it is needed"),
    "XLA_PYTHON_CLIENT_MEM_FRACTION": (
        (), "memory is taken when it is needed, up to all there is"),
    "XLA_PYTHON_CLIENT_ALLOCATOR": (
        ("default", "bfc"), "there is one allocator, which keeps what was "
        "lately in use")}


def client_settings():
    """Settings of other platforms' clients that have no effect on ours are
    named, once."""
    for name, (fits, why) in CLIENT_SETTINGS.items():
        value = os.environ.get(name, "")
        if value and value.lower() not in fits:
            log.warning("sundog: %s=%s has no effect on xpu: %s", name, value,
                        why)


def fail_quietly():
    """A machine without a device of ours keeps its other platforms, and is
    told once why there is no `xpu`: JAX keeps that to itself.  Asked for by
    name (JAX_PLATFORMS=xpu), a failure is still an error."""
    from jax._src import xla_bridge
    factories = xla_bridge._backend_factories
    if PLATFORM in factories:
        known = factories[PLATFORM]
        factories[PLATFORM] = dataclasses.replace(
            known, factory=saying_why(known.factory), fail_quietly=True)


def saying_why(factory):
    from jax._src import config
    said = []

    def make():
        try:
            return factory()
        except Exception as error:
            if not said and not config.jax_platforms.value:
                said.append(True)
                log.warning("sundog: there is no xpu: %s", error)
            raise
    return make


def donation():
    from jax._src.interpreters import mlir
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)


def compilation_cache():
    """JAX keeps compiled programs on disk (jax_compilation_cache_dir) for
    platforms that it lists by name.  Ours serialize and load as theirs do, so
    to the one question that reads the list a platform on it is named."""
    from jax._src import compilation_cache
    known = compilation_cache.is_cache_used

    @functools.wraps(known)
    def is_cache_used(backend):
        if backend.platform == PLATFORM:
            backend = types.SimpleNamespace(
                platform="cpu", supports_executable_serialization=getattr(
                    backend, "supports_executable_serialization", True))
        return known(backend)

    compilation_cache.is_cache_used = is_cache_used


def python_callbacks():
    from . import callbacks
    callbacks.install()


def when_plugins_are_known():
    """Lowerings need a platform that JAX knows, and one that the environment
    names is known only after this module: JAX calls back then, for each
    plugin."""
    from jax._src import xla_bridge
    done = []

    def known(c_api):
        factory = xla_bridge._backend_factories.get(PLATFORM)
        if factory is None or factory.c_api is not c_api or done:
            return
        done.append(True)
        attempt(lowerings)
        attempt(buffer_callbacks)
        attempt(linear_algebra)
        attempt(kernels)
        attempt(foreign_calls, c_api)
        attempt(dlpack, c_api)
        attempt(partitioning, c_api)

    xla_bridge.register_plugin_callbacks(known)


def lowerings():
    """JAX's own rules for primitives that have none for platforms unknown to
    it, and need nothing that such a platform lacks."""
    from jax._src.interpreters import mlir
    from jax._src.lax import parallel

    from . import callbacks
    mlir.register_lowering(parallel.pbroadcast_p, parallel._pbroadcast_lowering,
                           platform=PLATFORM)
    for primitive, rule in callbacks.lowerings():
        # Channels are numbered by module: no lowering is used twice.
        mlir.register_lowering(primitive, rule, platform=PLATFORM,
                               cacheable=False)


def linear_algebra():
    from . import linalg
    linalg.install(PLATFORM)


def kernels():
    from . import pallas
    pallas.install(PLATFORM)


def buffer_callbacks():
    from jax._src.interpreters import mlir

    from . import buffer_callbacks
    for primitive, rule in buffer_callbacks.lowerings():
        mlir.register_lowering(primitive, rule, platform=PLATFORM,
                               cacheable=False)


def foreign_calls(c_api):
    from . import ffi
    ffi.install(c_api, PLATFORM)


def dlpack(c_api):
    from . import dlpack, ffi
    dlpack.install(ffi.Plugin(c_api))


def partitioning(c_api):
    from jax._src.interpreters import mlir

    from . import partitioning
    partitioning.install(c_api)
    for primitive, rule in partitioning.lowerings():
        mlir.register_lowering(primitive, rule, platform=PLATFORM,
                               cacheable=False)
