"""The environment of the processes that the tests start."""
import ctypes
import os
import signal

import jaxlib.version

HERE = os.path.dirname(os.path.abspath(__file__))
# JAX's CPU only says what is right: it compiles in half the time so, and what
# it compiles is slow.  Ours does not read these.
CHEAP_CPU = ("--xla_backend_optimization_level=0 "
             "--xla_llvm_disable_expensive_passes=true")
# Half of what is left are emitters that later jaxlibs cannot do without.
if jaxlib.version.__version_info__ < (0, 11):
    CHEAP_CPU += " --xla_cpu_use_fusion_emitters=false"


def cpu_devices(n):
    """XLA_FLAGS that give JAX's CPU n devices."""
    return f"--xla_force_host_platform_device_count={n} {CHEAP_CPU}"


def bare(**settings):
    """This process's environment without what a user has set for JAX and for
    us, JAX's CPU cheap, and with the settings; one that is None is left out."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("JAX_", "XLA_", "SUNDOG_", "PJRT_"))}
    env.update({"PYTHONPATH": HERE, "XLA_FLAGS": CHEAP_CPU, **settings})
    return {k: v for k, v in env.items() if v is not None}


PR_SET_PDEATHSIG = 1


def ends_with_us():
    """For preexec_fn: a process that waits for others, and so may wait for
    ever, is killed when this one ends, however that ends."""
    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def before():
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)
    return before
