"""The skeleton programs against JAX's CPU: host and cl, f32 and x64.  The two
`cl` devices take them in turn, so each program runs on both."""
import pytest

DEVICES = {"host": {"SUNDOG_DEVICE": "host"},
           "cl": {"SUNDOG_DEVICE": "cl", "SUNDOG_CL_SPLIT": "2"}}


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("device", DEVICES)
def test_programs(python, device, x64):
    out = python("run_programs.py", *(["--x64"] if x64 else []),
                 env=DEVICES[device])
    devices = {line.split()[1] for line in out.splitlines()
               if line.startswith("ok ")}
    assert devices == ({"xpu(id=0)"} if device == "host"
                       else {"xpu(id=0)", "xpu(id=1)"})
