"""Every op of the table on every type, one shape each: tests/optype."""
import os
import subprocess
import sys

OPTYPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                      "optype", "optype.py")


def test_every_op_on_every_type():
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("JAX_", "XLA_", "SUNDOG_DEVICE", "PJRT_"))}
    r = subprocess.run([sys.executable, OPTYPE, "--thin"], env=env, text=True,
                       capture_output=True, timeout=900)
    assert r.returncode == 0, r.stdout[-6000:] + r.stderr[-2000:]
