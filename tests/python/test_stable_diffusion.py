"""examples/stable_diffusion.py at its smallest size: what `make demo-sd` shows,
and a folder of the user's."""
import importlib.util

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("diffusers") is None,
    reason="diffusers is not here: tools/setup.sh sd installs it")


def test_on_host(python, tmp_path):
    ok = python("run_stable_diffusion.py", str(tmp_path),
                env={"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "2"})
    assert len(ok.splitlines()) == 9, ok


def test_on_cl(python, tmp_path):
    ok = python("run_stable_diffusion.py", str(tmp_path), "pndm",
                env={"SUNDOG_DEVICE": "cl"})
    assert ok == "ok pndm\n"
