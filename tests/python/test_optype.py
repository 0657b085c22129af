"""Every op of the table on every type, one shape each: tests/optype."""
import os
import subprocess
import sys

import environment

OPTYPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "optype", "optype.py")


def test_every_op_on_every_type():
    # JAX's CPU rounds to some 8-bit types wrongly when it is cheap.
    r = subprocess.run([sys.executable, OPTYPE, "--thin"],
                       env=environment.bare(XLA_FLAGS=None), text=True,
                       capture_output=True, timeout=900)
    assert r.returncode == 0, r.stdout[-6000:] + r.stderr[-2000:]
