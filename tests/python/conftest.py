"""The end-to-end tests.  A process holds one kind of device of ours, so each
test runs Python in fresh processes through `python` below."""
import os
import signal
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import environment  # noqa: E402

# Who is started in the background by a shell inherits that SIGINT is ignored,
# and would hand that on to the processes whose interrupts are tested.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def python():
    def run(code, *args, env=None, check=True, timeout=900):
        """Runs code (a script's path when it ends in .py) with JAX on `xpu`
        and CPU; returns its standard output, or the whole result."""
        full = environment.bare(**{"JAX_PLATFORMS": "xpu,cpu", **(env or {})})
        cmd = [sys.executable] + ([os.path.join(HERE, code)]
                                  if code.endswith(".py") else ["-c", code])
        r = subprocess.run(cmd + list(args), env=full, text=True,
                           capture_output=True, timeout=timeout)
        if not check:
            return r
        bad = [l for l in r.stdout.splitlines() if not l.startswith("ok ")]
        assert r.returncode == 0, "\n".join(bad)[-6000:] + r.stderr[-4000:]
        return r.stdout
    return run
