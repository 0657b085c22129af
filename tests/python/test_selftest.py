"""`sundog selftest`: right devices are found right, and whatever a device does
wrong is a line of a report that ends with a verdict."""
import json
import os
import re
import subprocess
import sys
import time

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
TOOL = os.path.join(TOP, "build/release/tools/sundog")
FAULTS = os.path.join(TOP, "build/release/tests/faults")
FAKE_CL = os.path.join(FAULTS, "libfakecl.so")
FAKE_CUDA = os.path.join(FAULTS, "libfakecuda.so")


def selftest(*args, **env):
    full = {k: v for k, v in os.environ.items()
            if not k.startswith(("SUNDOG_", "XLA_"))}
    full.update(VIRTUAL_ENV=sys.prefix, **env)
    return subprocess.run([TOOL, "selftest", *args], text=True, env=full,
                          capture_output=True, timeout=170)


def verdict(done):
    return done.stdout.splitlines()[-1]


# What a busy machine has no time for is not run: nothing here waits for that.
def test_host_is_right_in_twenty_seconds():
    start = time.monotonic()
    done = selftest("--quick", "host")
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdict(done).startswith("verdict: right on host:v"), done.stdout
    assert "device host:v" in done.stdout
    assert "plugin: libsundog.so, PJRT C API 0." in done.stdout
    assert len(re.findall(r"^\[ ?\d+/22\] ", done.stdout, re.M)) == 22
    assert time.monotonic() - start < 60


def test_the_report_is_there_as_json(tmp_path):
    path = tmp_path / "report.json"
    done = selftest("--only=sorting,Fourier,dispatch", f"--json={path}", "host")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(path.read_text())
    assert report["verdict"] == verdict(done)
    assert report["device"].startswith("host:v")
    classes = {c["name"]: c for c in report["classes"]}
    assert set(classes) == {"sorting", "Fourier", "dispatch"}
    for c in classes.values():
        assert c["right"] > 0 and c["wrong"] == 0
    figure = classes["dispatch"]["figures"][0]
    assert figure["name"] == "1 arguments, waited for"
    assert figure["unit"] == "us" and figure["value"] > 0


def test_an_opencl_device_is_right():
    done = selftest("--quick", "--only=devices,transfers,movement,sorting,"
                    "donation,out of memory,concurrent runs", "cl")
    assert done.returncode == 0, done.stdout + done.stderr
    assert verdict(done).startswith("verdict: right on cl:cpu: ")
    assert "device cl:cpu, 0: OpenCL" in done.stdout


def test_a_device_that_computes_nothing_is_found_out():
    done = selftest("--only=transfers,reductions,donation", "cl",
                    SUNDOG_CL_LIBRARY=FAKE_CL, FAKE_CL="kernels=any")
    assert done.returncode == 1
    assert re.search(r"transfers +1\d right", done.stdout)
    assert "WRONG rows_f32: cl:cpu: result 0, f32, element 0: " in done.stdout
    assert verdict(done).endswith("wrong are: reductions; donation")


# The device is lost at that call, and it is the next child's again.  A child
# makes 160 calls and more; how many more depends on what has ended when it asks.
@pytest.mark.parametrize("trouble, said", [
    ("crash=150", "the process died, Segmentation fault"),
    ("lose=150", "OpenCL, .*: CL_OUT_OF_RESOURCES"),
    ("lag=100000000", "no answer in time, killed")])
def test_what_befalls_a_child_is_its_line(trouble, said):
    done = selftest("--quick", "--only=transfers,donation,concurrent runs",
                    "cl", SUNDOG_CL_LIBRARY=FAKE_CL,
                    FAKE_CL=f"kernels=any,{trouble}")
    assert done.returncode == 1
    assert re.search(r"^ +WRONG .*" + said, done.stdout, re.M), done.stdout
    assert re.search(r"concurrent runs +0 right, 1 WRONG", done.stdout)
    assert verdict(done).startswith("verdict: WRONG on cl:cpu: ")


def full_pipe():
    """The end to write of a pipe that nobody reads: the next line blocks."""
    out, into = os.pipe()
    os.set_blocking(into, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(into, bytes(1 << 16))
    os.set_blocking(into, True)
    return out, into


# Its end is said in the log, so a log that takes nothing holds the compile.
def test_a_compile_that_takes_too_long_says_nothing_of_the_device():
    out, into = full_pipe()
    env = os.environ | {"SUNDOG_LOG": "info"}
    done = subprocess.run([TOOL, "selftest", "--quick", "--only=sorting",
                           "host"], text=True, env=env, timeout=170,
                          stdout=subprocess.PIPE, stderr=into)
    os.close(out)
    os.close(into)
    assert done.returncode == 0, done.stdout
    assert re.search(r"sorting +0 right, 1 not run for lack of time", done.stdout)
    assert ": this machine was not done compiling it" in done.stdout
    assert "WRONG" not in done.stdout


def test_cuda_is_taken_like_the_others():
    done = selftest("--only=devices,transfers,sorting", "cuda",
                    SUNDOG_CUDA_LIBRARY=FAKE_CUDA, FAKE_CUDA="kernels=any")
    assert done.returncode == 1
    assert "device cuda:sm_90, 0: CUDA 13.0, Fake GPU" in done.stdout
    assert re.search(r"transfers +1\d right", done.stdout)
    assert verdict(done).endswith("wrong are: sorting")


def test_why_there_is_no_device_is_said():
    done = selftest("--quick", "--only=devices,transfers", "cl",
                    SUNDOG_CL_LIBRARY=FAKE_CL, FAKE_CL="il=0")
    assert done.returncode == 1
    assert 'the OpenCL device "Fake device" takes no IL' in done.stdout
    assert verdict(done) == "verdict: NO DEVICE was opened"


def test_a_class_that_there_is_not_is_an_error():
    done = selftest("--only=sorcery", "host")
    assert done.returncode == 1
    assert ("--only: no class is called 'sorcery'; there are devices; transfers; "
            in done.stderr)
    done = selftest("--only=sorting,sorcery", "host")
    assert "no class is called 'sorcery'" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("only, word", [("", ""), (" ", ""), ("sorting,,devices", ""),
                                        ("sorting; random bits", "sorting; random bits")])
def test_a_list_that_names_no_class_gets_no_verdict(only, word):
    done = selftest(f"--only={only}", "host")
    assert done.returncode == 1 and done.stdout == ""
    assert f"no class is called '{word}'" in done.stderr


def test_a_class_is_named_by_a_word_of_its_name():
    done = selftest("--quick", "--only=scatter, sorting", "host")
    assert re.findall(r"^\[ *(\d+)/", done.stdout, re.M) == ["8", "10"]


def test_a_report_that_cannot_be_written_is_known_at_once():
    done = selftest("--json=/nowhere/report.json", "host")
    assert done.returncode == 1 and done.stdout == ""
    assert "cannot create /nowhere/report.json" in done.stderr
