"""Programs over several devices, against as many of JAX's CPU."""
import pytest


@pytest.mark.parametrize("n", [8, 2])
def test_programs_over_devices(python, n):
    python("run_devices.py", env={"SUNDOG_DEVICE": "host",
                                  "SUNDOG_HOST_DEVICES": str(n)}, timeout=300)
