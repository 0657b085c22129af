"""Shape polymorphism: run_export.py on each device."""
import pytest


@pytest.mark.parametrize("device", ["host", "cl"])
def test_programs_of_symbolic_sizes(python, device):
    python("run_export.py", env={"SUNDOG_DEVICE": device})
