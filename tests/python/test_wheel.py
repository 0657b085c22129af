"""What the installed libraries ask of a machine and show to a process."""
import os
import re
import subprocess

import pytest
import sundog

FOLDER = os.path.dirname(sundog.library())
SHOWN = {"libsundog.so": {"GetPjrtApi"},
         "libsundog-compiler.so": {"sundog_compile", "sundog_interface"}}
OF_GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
            "ld-linux-x86-64.so.2"}


def readelf(name, *flags):
    return subprocess.run(["readelf", "-W", *flags,
                           os.path.join(FOLDER, name)], check=True, text=True,
                          capture_output=True).stdout


def needed(name):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(name, "-d")))


portable = pytest.mark.skipif(
    any("LLVM" in n for n in needed("libsundog-compiler.so")),
    reason="a developers' build (-Dportable=false) needs this machine's LLVM")


@pytest.mark.parametrize("name", SHOWN)
def test_shows_its_entry_points_and_nothing_else(name):
    shown = set()
    for line in readelf(name, "--dyn-syms").splitlines():
        m = re.match(r"\s*\d+: \S+ +\d+ \w+ +(?:GLOBAL|WEAK|UNIQUE) +\w+ +"
                     r"(\w+) (\w+)", line)
        if m and m[1] not in ("UND", "ABS"):
            shown.add(m[2])
    assert shown == SHOWN[name]


@portable
@pytest.mark.parametrize("name", SHOWN)
def test_needs_glibc_2_28_and_nothing_else(name):
    assert needed(name) <= OF_GLIBC
    versions = re.findall(r"Name: GLIBC_([0-9.]+) ", readelf(name, "-V"))
    assert max(tuple(map(int, v.split("."))) for v in versions) <= (2, 28)


@portable
@pytest.mark.parametrize("device", ["host", "cl"])
def test_another_llvm_in_the_process(python, tmp_path, device):
    """TensorFlow's framework exports LLVM's symbols to the whole process;
    here every function that we call ends it."""
    names = ["LLVMContextCreate", "LLVMModuleCreateWithNameInContext",
             "LLVMCreateBuilderInContext", "LLVMRunPasses",
             "LLVMInitializeX86Target", "LLVMTargetMachineEmitToMemoryBuffer",
             "_ZN4llvm11LLVMContextC1Ev", "_ZN4llvm6ModuleD1Ev"]
    source, other = tmp_path / "other.c", tmp_path / "libother.so"
    source.write_text("#include <stdlib.h>\n" + "".join(
        f"void {n}(void) {{ abort(); }}\n" for n in names))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", other, source], check=True)
    out = python(
        f"import ctypes; ctypes.CDLL({str(other)!r}, ctypes.RTLD_GLOBAL)\n"
        "import jax, jax.numpy as jnp\n"
        "print(jax.jit(lambda x: jnp.sin(x) * 0 + x)(jnp.arange(3.0)))",
        env={"SUNDOG_DEVICE": device})
    assert out.strip() == "[0. 1. 2.]"


def test_the_bare_root_has_what_set_up_pins():
    top = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    pins = subprocess.run(
        [os.path.join(top, "tests", "wheel", "bare_root.sh"), "--pins"],
        check=True, text=True, capture_output=True).stdout.split()
    assert [p.split("==")[0] for p in pins] == ["jax", "jaxlib", "numpy"]
