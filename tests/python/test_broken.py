"""Machines with something missing or broken: each ends in one clear message,
or goes on.  Every test is a process of its own."""
import os
import re
import shutil
import subprocess

import pytest

import sundog

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
FAULTS = os.path.join(TOP, "build/release/tests/faults")
FAKE_CL = os.path.join(FAULTS, "libfakecl.so")
NO_LIBRARY = os.path.join(FAULTS, "libnolibrary.so")

# Prints the platform, a result, or the one line of the error.
RUN = """
import jax, numpy as np
try:
    d = jax.devices('xpu')
    print(d[0].device_kind, jax.jit(lambda x: x + 1)(np.arange(3.0)))
except RuntimeError as e:
    print(e)
"""
RESULT = "[1. 2. 3.]"
NO_BACKEND = "Unable to initialize backend 'xpu': NOT_FOUND: starting sundog: "
NO_DEVICE = (NO_BACKEND + "no OpenCL device; a driver that takes SPIR-V is "
             "wanted, and SUNDOG_DEVICE=host needs none: ")
NO_DRIVER = ("libOpenCL.so.1: no OpenCL driver (the loader opens those that "
             "*.icd files in /etc/OpenCL/vendors or OCL_ICD_VENDORS name)")
NO_FILE = "cannot open shared object file: No such file or directory"
AND_INTEL = f"; Intel's runtime for CPUs: /nowhere/libintelocl.so: {NO_FILE}"
JAX_ADDS = (" (set JAX_PLATFORMS='' to automatically choose an available "
            "backend)")


@pytest.fixture
def said(python):
    """What a run prints and warns of; its error is its output."""
    def run(code=RUN, **env):
        # No driver but the one that a test names: Intel's, which lies in the
        # tests' own environment, is looked for in a folder that is not there.
        r = python(code, check=False, timeout=300,
                   env={"LD_PRELOAD": NO_LIBRARY, "NO_LIBRARY": "libintelocl.so",
                        "VIRTUAL_ENV": "/nowhere"} | env)
        assert r.returncode == 0, r.stderr[-3000:]
        warnings = [l for l in r.stderr.splitlines() if l.startswith("sundog")]
        return r.stdout.strip().removesuffix(JAX_ADDS), warnings
    return run


# ---- OpenCL ----

@pytest.fixture
def vendors(tmp_path):
    """A folder of .icd files with these lines."""
    def make(*lines):
        for i, line in enumerate(lines):
            (tmp_path / f"{i}.icd").write_text(line + "\n")
        return f"{tmp_path}/"
    return make


def test_no_icd_loader(said):
    out, warnings = said(SUNDOG_DEVICE="cl",
                         NO_LIBRARY="libOpenCL.so.1:libintelocl.so")
    assert out == f"{NO_DEVICE}/nowhere/libOpenCL.so.1: {NO_FILE}{AND_INTEL}"
    assert warnings == []


def test_auto_needs_no_icd_loader(said):
    out, warnings = said(NO_LIBRARY="libOpenCL.so.1")
    assert out.startswith("host:v") and out.endswith(RESULT)
    assert warnings == []


def test_no_driver(said, vendors):
    out, _ = said(SUNDOG_DEVICE="cl", OCL_ICD_VENDORS=vendors())
    assert out == NO_DEVICE + NO_DRIVER + AND_INTEL


@pytest.mark.parametrize("line", [
    "/nowhere/libdriver.so", "libm.so.6", "/dev/null", ""],
    ids=["not there", "no driver", "no library", "empty"])
def test_a_broken_icd_file(said, vendors, line):
    out, _ = said(SUNDOG_DEVICE="cl", OCL_ICD_VENDORS=vendors(line))
    assert out == NO_DEVICE + NO_DRIVER + AND_INTEL


def test_the_icd_loader_leads_to_the_driver(said, vendors):
    out, _ = said(SUNDOG_DEVICE="cl", OCL_ICD_VENDORS=vendors(FAKE_CL),
                  FAKE_CL="kernels=any")
    assert out == "cl:cpu [0. 0. 0.]"  # its kernels compute nothing


def test_a_device_without_spirv(said, vendors):
    out, _ = said(SUNDOG_DEVICE="cl", OCL_ICD_VENDORS=vendors(FAKE_CL),
                  FAKE_CL="il=0")
    assert out == (NO_DEVICE + 'libOpenCL.so.1: the OpenCL device "Fake '
                   'device" takes no IL (SPIR-V), and no other does' + AND_INTEL)


@pytest.mark.parametrize("library, why", [
    ("/nowhere/libx.so", f"/nowhere/libx.so: {NO_FILE}"),
    ("libm.so.6", "libm.so.6 is no OpenCL library: it has no "
     "clGetExtensionFunctionAddressForPlatform")])
def test_a_named_library_that_is_none(said, library, why):
    out, _ = said(SUNDOG_DEVICE="cl", SUNDOG_CL_LIBRARY=library)
    assert out == f"{NO_BACKEND}SUNDOG_CL_LIBRARY: {why}"


@pytest.mark.parametrize("setting, kind, why, more", [
    ("SUNDOG_CL_LIBRARY", "OpenCL GPU", "", ""),
    ("SUNDOG_CUDA_LIBRARY", "CUDA GPU", "no CUDA driver: ",
     "; NVIDIA's driver brings one, and SUNDOG_DEVICE=host needs none")])
def test_a_named_library_that_is_missing_is_told_though_the_host_runs(
        said, setting, kind, why, more):
    out, warnings = said(**{setting: "/nowhere/libx.so"})
    assert out.endswith(RESULT) and out.startswith("host:v")
    assert warnings == [
        f"sundog warn: no {kind}, another device is used: {setting}: {why}"
        f"/nowhere/libx.so: {NO_FILE}{more}; name the library of one, or unset "
        f"{setting}"]


def test_a_gpu_that_fails_leaves_the_host(said):
    out, warnings = said(SUNDOG_CL_LIBRARY=FAKE_CL, FAKE_CL="gpu=1,lose=20")
    assert out.endswith(RESULT) and out.startswith("host:v")
    assert len(warnings) == 1 and warnings[0].startswith(
        "sundog warn: the OpenCL GPU is left alone, another device is used: "
        "OpenCL, ")


@pytest.mark.parametrize("gpu, setting, kind, used", [
    (1, "SUNDOG_HOST_DEVICES", "host", "OpenCL GPU"), (0, "SUNDOG_CL_SPLIT", "cl", "host")])
def test_a_number_of_devices_of_another_kind_than_is_used(said, gpu, setting, kind, used):
    out, warnings = said("import jax; print(len(jax.devices('xpu')))",
                         SUNDOG_CL_LIBRARY=FAKE_CL, FAKE_CL=f"gpu={gpu},kernels=any",
                         **{setting: "4"})
    assert out == "1"
    assert warnings[-1:] == [f"sundog warn: {setting}=4 is for {kind} devices: the {used} is "
                             f"used; SUNDOG_DEVICE={kind} asks for them"]


@pytest.mark.parametrize("device, setting, kind", [
    ("cl", "SUNDOG_HOST_DEVICES", "host"), ("host", "SUNDOG_CL_SPLIT", "cl")])
def test_a_number_of_devices_of_another_kind_than_is_named(said, device, setting, kind):
    out, warnings = said("import jax; print(len(jax.devices('xpu')))",
                         SUNDOG_DEVICE=device, SUNDOG_CL_LIBRARY=FAKE_CL,
                         FAKE_CL="kernels=any", **{setting: "4"})
    assert out == "1"
    assert warnings == [f"sundog warn: {setting}=4 is for {kind} devices: "
                        f"SUNDOG_DEVICE={device} takes none of them"]


@pytest.mark.parametrize("setting, value", [
    ("SUNDOG_CL_SPLIT", "0"), ("SUNDOG_CL_SPLIT", "-1"), ("SUNDOG_HOST_DEVICES", "4")])
def test_a_number_of_devices_that_asks_for_nothing_more(said, setting, value):
    _, warnings = said(SUNDOG_DEVICE="host", **{setting: value})
    assert warnings == []


@pytest.mark.parametrize("env", [
    {"SUNDOG_DUMP_PASSES": "."},
    {"XLA_FLAGS": "--xla_dump_hlo_pass_re=."}])
def test_a_dump_without_a_folder_is_told_once(said, env):
    out, warnings = said(SUNDOG_DEVICE="host", **env)
    assert out.endswith(RESULT)
    assert warnings == ["sundog warn: SUNDOG_DUMP_PASSES: nothing is dumped "
                        "without SUNDOG_DUMP_TO, the folder to dump to"]


def test_a_dump_whose_folder_xla_flags_name_is_told_nothing(said, tmp_path):
    _, warnings = said(SUNDOG_DEVICE="host", SUNDOG_DUMP_PASSES=".",
                       XLA_FLAGS=f"--xla_dump_to={tmp_path}")
    assert warnings == [] and any(tmp_path.iterdir())


def test_a_map_of_perf_that_cannot_be_written_is_told_once(said):
    made = "import os; path = f'/tmp/perf-{os.getpid()}.map'; os.mkdir(path)"
    out, warnings = said(f"{made}{RUN}os.rmdir(path)", SUNDOG_DEVICE="host",
                         SUNDOG_PERF_MAP="1")
    assert out.endswith(RESULT) and len(warnings) == 1
    assert re.fullmatch("sundog warn: SUNDOG_PERF_MAP: no map is written: "
                        r"/tmp/perf-\d+.map: Is a directory", warnings[0])


LATER = """
import jax, numpy as np
x = jax.device_put(np.arange(3.0, dtype=np.float32), jax.devices('xpu')[0])
f = jax.jit(lambda x: x + 1)
for i in range(40):
    try:
        np.asarray(f(x))
    except jax.errors.JaxRuntimeError as e:
        print(e)
        break
print(jax.jit(lambda x: x + 1, backend='cpu')(np.arange(3.0)))
"""


@pytest.mark.parametrize("number, code, name", [
    (-2, "UNAVAILABLE", "CL_DEVICE_NOT_AVAILABLE"),
    (-5, "RESOURCE_EXHAUSTED", "CL_OUT_OF_RESOURCES")])
def test_a_device_that_is_lost_while_running(said, number, code, name):
    out, _ = said(LATER, SUNDOG_DEVICE="cl", SUNDOG_CL_LIBRARY=FAKE_CL,
                  FAKE_CL=f"kernels=any,lose=100,error={number}")
    error, last = out.splitlines()
    assert re.fullmatch(  # which call it meets is the driver's business
        rf"{code}: (running jit__lambda: (fusion .*, 1 groups of \d+: )?)?"
        rf"OpenCL, [a-z ]+: {name} \({number}\)", error)
    assert last == RESULT  # JAX's own platform goes on


# ---- the compiler ----

@pytest.fixture
def installed(tmp_path):
    """A copy of our two libraries, the compiler's bytes changed or gone."""
    def make(change):
        shutil.copy(sundog.library(), tmp_path)
        if change:
            at = os.path.dirname(os.path.realpath(sundog.library()))
            with open(os.path.join(at, "libsundog-compiler.so"), "rb") as f:
                data = f.read()
            new = change(data)
            assert new != data and len(new) == len(data)
            (tmp_path / "libsundog-compiler.so").write_bytes(new)
        return str(tmp_path / "libsundog.so")
    return make


NOT_OPENED = "NOT_FOUND: the compiler cannot be opened: "
REMEDY = ("; libsundog-compiler.so belongs beside libsundog.so; only a developers' "
          "build needs LLVM 22 (Debian's package libllvm22); programs that are "
          "compiled already still run")


def test_no_compiler(said, installed):
    lib = installed(None)
    out, _ = said(SUNDOG_DEVICE="host", SUNDOG_LIBRARY=lib)
    compiler = lib.replace("libsundog.so", "libsundog-compiler.so")
    assert out == f"{NOT_OPENED}{compiler}: {NO_FILE}{REMEDY}"


def test_another_llvm(said, tmp_path):
    """The wheel holds LLVM: one of that name in the way is not opened."""
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o",
                    tmp_path / "libLLVM.so.22.1"], check=True)
    out, _ = said(SUNDOG_DEVICE="host", LD_LIBRARY_PATH=str(tmp_path))
    assert out.endswith("[1. 2. 3.]")


def test_a_compiler_of_another_build(said, installed):
    build = re.compile(rb"0\.1\.0-[0-9a-f]{12}\0")
    lib = installed(lambda b: build.sub(b"0.0.9-000000000000\0", b))
    with open(lib, "rb") as f:
        ours = build.search(f.read()).group()[:-1].decode()
    out, _ = said(SUNDOG_DEVICE="host", SUNDOG_LIBRARY=lib)
    compiler = lib.replace("libsundog.so", "libsundog-compiler.so")
    assert out == (f"FAILED_PRECONDITION: {compiler} is of build "
                   f"0.0.9-000000000000, libsundog.so of build {ours}: install "
                   "both from one build")


# ---- disks and folders ----

FIRST_DUMP = "module_0000.jit__lambda.before_optimizations.txt"
NO_MORE = "nothing more of this module is dumped"


# A file system of this process alone, mounted before JAX starts threads.
OWN_DISK = """
import ctypes, os
ids, libc = (os.getuid(), os.getgid()), ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x10020000) == 0, os.strerror(ctypes.get_errno())
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {ids[0]} 1"),
                   ("gid_map", f"0 {ids[1]} 1")):
    with open(f"/proc/self/{name}", "w") as f:
        f.write(text)
assert libc.mount(b"none", b"FOLDER", b"tmpfs", 0, b"SIZE") == 0
"""


@pytest.mark.parametrize("size, says", [
    ("size=8k", rf"dump: writing \S+: No space left on device; {NO_MORE}"),
    ("nr_inodes=1", r"cannot dump to \S+: No space left on device")])
def test_a_dump_on_a_full_disk(said, tmp_path, size, says):
    may = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "-o", size,
                          "none", tmp_path], capture_output=True, text=True)
    if may.returncode:
        pytest.skip("no file systems of our own here: " + may.stderr)
    own = OWN_DISK.replace("FOLDER", str(tmp_path)).replace("SIZE", size)
    out, warnings = said(own + RUN, SUNDOG_DEVICE="host",
                         XLA_FLAGS=f"--xla_dump_to={tmp_path}")
    assert out.endswith(RESULT)
    assert len(warnings) == 1
    assert re.fullmatch("sundog warn: " + says, warnings[0])


def test_a_dump_over_the_limit_of_files(said, tmp_path):
    code = ("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, "
            "(64, 64))\n" + RUN)
    out, warnings = said(code, SUNDOG_DEVICE="host",
                         XLA_FLAGS=f"--xla_dump_to={tmp_path}/d")
    assert out.endswith(RESULT)
    assert warnings == [f"sundog warn: dump: writing {tmp_path}/d/{FIRST_DUMP}:"
                        f" File too large; {NO_MORE}"]


@pytest.mark.parametrize("folder, why", [
    ("/dev/full", "Not a directory"),
    ("/proc/sundog", "No such file or directory"),
])
def test_a_dump_to_no_folder(said, folder, why):
    out, warnings = said(SUNDOG_DEVICE="host",
                         XLA_FLAGS=f"--xla_dump_to={folder}")
    assert out.endswith(RESULT)
    assert warnings == [f"sundog warn: cannot dump to {folder}: {why}"]


@pytest.mark.parametrize("home", ["/proc", None])
def test_a_home_that_cannot_be_written(said, home):
    code = "import os; os.chdir('/proc')\n" + RUN
    out, warnings = said(code, SUNDOG_DEVICE="host", HOME=home, TMPDIR="/proc")
    assert out.endswith(RESULT) and warnings == []


# ---- signals while compiling ----

SIGNALS = """
import os, signal, time, jax, numpy as np
seen = {signal.SIGALRM: 0, signal.SIGCHLD: 0}
def note(number, frame):
    seen[number] += 1
signal.signal(signal.SIGALRM, note)
signal.siginterrupt(signal.SIGALRM, True)  # no SA_RESTART: EINTR
CHILDREN
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
x = np.arange(6.0, dtype=np.float32)
for n in range(10):
    f = jax.jit(lambda x: jax.numpy.sort(x * n)[::-1] + jax.nn.softmax(x))
    want = np.sort(x * n)[::-1] + np.exp(x - 5) / np.exp(x - 5).sum()
    assert np.allclose(f(x), want, rtol=1e-5), (n, f(x), want)
signal.setitimer(signal.ITIMER_REAL, 0)
assert seen[signal.SIGALRM] > 20
print('right')
"""


REAP = """
def reap(number, frame):
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass  # sundog was first
signal.signal(signal.SIGCHLD, reap)
"""


@pytest.mark.parametrize("children", [
    "", "signal.signal(signal.SIGCHLD, signal.SIG_IGN)", REAP],
    ids=["default", "ignored", "reaped"])
@pytest.mark.parametrize("device", ["host", "cl"])
def test_signals_while_compiling(said, device, children):
    """On cl, code is made by a child: the program may be told of its end, or
    may have waited for it."""
    if device == "host" and children:
        pytest.skip("host compiles without a child")
    out, warnings = said(SIGNALS.replace("CHILDREN", children),
                         SUNDOG_DEVICE=device, LD_PRELOAD=None,
                         VIRTUAL_ENV=os.environ.get("VIRTUAL_ENV"))
    assert out == "right" and warnings == []


# ---- JAX goes on without us, and says why ----

LEFT = """
import jax
for i in range(2):
    print(jax.devices())
"""


@pytest.mark.parametrize("env, why", [
    ({"SUNDOG_DEVICE": "tpu"},
     "INVALID_ARGUMENT: starting sundog: SUNDOG_DEVICE=tpu: one of auto, "
     "host, cl, cuda is wanted"),
    ({"SUNDOG_DEVICE": "cuda", "NO_LIBRARY": "libcuda.so.1"},
     "NOT_FOUND: starting sundog: no CUDA driver: "),
    ({"SUNDOG_DEVICE": "cl", "NO_LIBRARY": "libOpenCL.so:libintelocl.so"},
     "NOT_FOUND: starting sundog: no OpenCL device"),
])
def test_a_device_that_is_not_there_is_missed_once(said, env, why):
    """Without JAX_PLATFORMS, JAX takes the CPU and keeps the reason."""
    out, warnings = said(LEFT, JAX_PLATFORMS=None, **env)
    assert out.splitlines() == ["[CpuDevice(id=0)]"] * 2
    assert len(warnings) == 1
    assert warnings[0].startswith(f"sundog: there is no xpu: {why}")


def test_a_device_that_is_demanded_fails_once(said):
    out, warnings = said(SUNDOG_DEVICE="tpu")
    assert "SUNDOG_DEVICE=tpu" in out and warnings == []


def test_settings_of_other_clients_are_named_once(said):
    out, warnings = said(SUNDOG_DEVICE="host",
                         XLA_PYTHON_CLIENT_PREALLOCATE="false",
                         XLA_PYTHON_CLIENT_MEM_FRACTION=".5",
                         XLA_PYTHON_CLIENT_ALLOCATOR="platform")
    assert out.endswith(RESULT)
    assert [w.split(":")[1] for w in warnings] == [
        " XLA_PYTHON_CLIENT_MEM_FRACTION=.5 has no effect on xpu",
        " XLA_PYTHON_CLIENT_ALLOCATOR=platform has no effect on xpu"]
