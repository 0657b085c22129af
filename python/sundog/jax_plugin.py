"""What JAX calls at its first use: registers the platform `xpu` and everything
that JAX keeps per platform.  Each step stands alone, so that a JAX that moved
one private name costs that step and not the platform; and nothing here may
break `import jax` or programs that use other platforms.
"""
import dataclasses
import logging
import os

from . import library

PLATFORM = "xpu"
log = logging.getLogger("sundog")


def initialize():
    for step in (quiet, register, donation, fail_quietly, lowerings):
        try:
            step()
        except Exception as error:  # a step lost is a feature lost, said once
            log.warning("sundog: %s failed: %s", step.__name__, error)


def named_by_environment():
    """PJRT_NAMES_AND_LIBRARY_PATHS names us: JAX loads that library itself,
    and a second registration of the name would be an error."""
    paths = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "")
    return any(item.split(":")[0].strip().lower() == PLATFORM
               for item in paths.split(","))


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
        raise FileNotFoundError(f"{path} is missing: reinstall sundog, or set "
                                "SUNDOG_LIBRARY to libsundog.so")
    xla_bridge.register_plugin(
        PLATFORM, library_path=path, options={},
        priority=int(os.environ.get("SUNDOG_PRIORITY", "400")))


def fail_quietly():
    """A machine without a device of ours keeps its other platforms.  Asked
    for by name (JAX_PLATFORMS=xpu), a failure is still an error."""
    from jax._src import xla_bridge
    factories = xla_bridge._backend_factories
    if PLATFORM in factories:
        factories[PLATFORM] = dataclasses.replace(factories[PLATFORM],
                                                  fail_quietly=True)


def donation():
    from jax._src.interpreters import mlir
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)


def lowerings():
    """Primitives without a rule for platforms that JAX does not know."""
    from jax._src import checkify
    from jax._src.interpreters import mlir
    mlir.register_lowering(checkify.check_p,
                           checkify.check_lowering_rule_unsupported,
                           platform=PLATFORM)
