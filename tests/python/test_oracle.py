"""A sample of JAX's primitive programs by the evaluator alone; all of them are
`make conform DEVICE=eval`."""
import os
import re
import subprocess
import sys

import environment

HERE = os.path.dirname(os.path.abspath(__file__))


def test_every_23rd_primitive_program():
    r = subprocess.run(
        [sys.executable, os.path.join(HERE, "..", "conform", "conform.py"),
         "--x64", "--every", "23"], env=environment.bare(SUNDOG_DEVICE="eval"),
        text=True, capture_output=True, timeout=900)
    assert r.returncode == 0, r.stdout[-4000:] + r.stderr[-4000:]
    assert int(re.search(r"(\d+) passed", r.stdout)[1]) > 300, r.stdout
