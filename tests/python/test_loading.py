"""How JAX comes to our library: by variable, by wheel, by both; what loading
costs and opens; what a missing library does."""
import ctypes
import os
import shutil
import subprocess
import sys

import sundog

FIND = "import jax; print(jax.devices('xpu'), jax.numpy.arange(3) ** 2)"
WANT = "[xpu(id=0)] [0 1 4]"
VARIABLE = f"xpu:{sundog.library()}"


def test_by_wheel(python):
    assert python(FIND).strip() == WANT


def test_by_wheel_without_any_variable(python):
    assert python(FIND, env={"JAX_PLATFORMS": None}).strip() == WANT


def test_by_variable_without_our_package(python, tmp_path):
    # An interpreter that sees JAX but no sundog package or entry point.
    site = tmp_path / "site"
    site.mkdir()
    real = os.path.dirname(os.path.dirname(sundog.__file__))
    for name in os.listdir(real):
        if not name.lower().startswith("sundog"):
            os.symlink(os.path.join(real, name), site / name)
    code = (f"import sys; sys.path.insert(0, {str(site)!r}); "
            "assert not any(p == %r for p in sys.path); " % real + FIND)
    r = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True,
        env={"PATH": os.environ["PATH"], "JAX_PLATFORMS": "xpu,cpu",
             "PJRT_NAMES_AND_LIBRARY_PATHS": VARIABLE})
    assert r.returncode == 0, r.stderr[-3000:]
    assert r.stdout.strip() == WANT


def test_by_both(python):
    out = python(FIND, env={"PJRT_NAMES_AND_LIBRARY_PATHS": VARIABLE})
    assert out.strip() == WANT


def test_libraries_of_wheels_are_found_from_elsewhere(python, tmp_path):
    """Where jaxlib lies, SciPy does: two copies of OpenBLAS in a process spin
    against each other."""
    for name in ("libsundog.so", "libsundog-compiler.so"):
        shutil.copy(os.path.join(os.path.dirname(sundog.library()), name),
                    tmp_path)
    out = python("import jax.numpy as jnp; jnp.linalg.qr(jnp.ones((64, 64)));"
                 "print(open('/proc/self/maps').read())",
                 env={"SUNDOG_LIBRARY": str(tmp_path / "libsundog.so"),
                      "SUNDOG_DEVICE": "host", "VIRTUAL_ENV": "/nowhere"})
    assert "/scipy.libs/libscipy_openblas-" in out


def test_missing_library_leaves_jax_alone(python):
    r = python("import jax; print(jax.devices())", check=False,
               env={"SUNDOG_LIBRARY": "/nowhere/libsundog.so",
                    "JAX_PLATFORMS": None})
    assert r.returncode == 0, r.stderr[-3000:]
    assert "Cpu" in r.stdout or "CPU" in r.stdout
    assert ("SUNDOG_LIBRARY=/nowhere/libsundog.so: there is no such file"
            in r.stderr)


def test_a_jax_that_is_too_old_is_left_alone(python):
    """On Python 3.10 pip has JAX 0.6, whose jaxlib ends the process."""
    r = python("import jax, jax.version as v; v.__version_info__ = (0, 6, 2); "
               "v.__version__ = '0.6.2'; print(jax.devices())", check=False,
               env={"JAX_PLATFORMS": None})
    assert r.returncode == 0 and "Cpu" in r.stdout, r.stderr[-3000:]
    assert ("sundog: there is no xpu: JAX 0.6.2 is here, and 0.7.2 or newer is "
            "wanted" in r.stderr)


def test_priority_variable(python):
    out = python("import jax; print(jax.default_backend())",
                 env={"SUNDOG_PRIORITY": "-1", "JAX_PLATFORMS": None})
    assert out.strip() == "cpu"


def test_priority_that_is_no_number_leaves_jax_alone(python):
    r = python("import jax; print(jax.devices())", check=False,
               env={"SUNDOG_PRIORITY": "high", "JAX_PLATFORMS": None})
    assert r.stdout.strip() == "[CpuDevice(id=0)]", r.stderr[-3000:]
    assert "SUNDOG_PRIORITY=high: a whole number is wanted" in r.stderr


def test_exports_and_needs():
    lib = sundog.library()
    names = subprocess.run(["nm", "-D", "--defined-only", lib], check=True,
                           capture_output=True, text=True).stdout.split("\n")
    assert [n.split()[-1] for n in names if n] == ["GetPjrtApi"]
    needs = subprocess.run(["readelf", "-d", lib], check=True,
                           capture_output=True, text=True).stdout
    needs = {l.split("[")[1].rstrip("]") for l in needs.split("\n")
             if "(NEEDED)" in l}
    # all of them glibc's; the first two held threads and dlopen before 2.34
    assert needs <= {"libpthread.so.0", "libdl.so.2", "libc.so.6",
                     "libm.so.6", "ld-linux-x86-64.so.2"}


def test_loading_opens_no_llvm(python):
    out = python("import jax, sundog; jax.devices('xpu'); "
                 "print(open('/proc/self/maps').read())")
    assert "libsundog.so" in out
    assert "LLVM" not in out and "sundog-compiler" not in out


def test_library_path_is_there():
    assert os.path.isfile(sundog.library())
    ctypes.CDLL(sundog.library())


def test_arrays_may_be_there_at_exit(python):
    """Freed memory is written over, so that what reads it fails each time."""
    code = "import jax, numpy as np\nkept = jax.device_get(jax.jit(lambda x: x + 1)(np.ones(1000)))\nprint(kept[0])"
    assert python(code, env={"SUNDOG_DEVICE": "host", "MALLOC_PERTURB_": "165"}) == "2.0\n"
