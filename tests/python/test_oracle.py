"""A sample of JAX's primitive programs by the evaluator alone; all of them are
`make conform DEVICE=eval`."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def test_every_23rd_primitive_program():
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("JAX_", "XLA_", "SUNDOG_DEVICE", "PJRT_"))}
    r = subprocess.run(
        [sys.executable, os.path.join(HERE, "..", "conform", "conform.py"),
         "--x64", "--every", "23"], env=dict(env, SUNDOG_DEVICE="eval"),
        text=True, capture_output=True, timeout=900)
    assert r.returncode == 0, r.stdout[-4000:] + r.stderr[-4000:]
    assert int(re.search(r"(\d+) passed", r.stdout)[1]) > 300, r.stdout
