"""What CUDA GPUs would get: assembled, never run here."""
import os
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def test_ptxas_takes_what_programs_become():
    done = subprocess.run(
        [sys.executable, os.path.join(TOP, "tests/ptx/ptx.py"), "--every=8"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-4000:]
    for chip in "sm_80", "sm_90", "sm_100":
        assert f"{chip}: " in done.stdout
    assert done.stdout.count(" kernels, 0 with spills") == 3, done.stdout
