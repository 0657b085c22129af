"""JAX on the PJRT surface beyond running programs: donation, memories, copies
between devices, DLPack, narrow types, layouts, topologies, saved executables,
statistics, deletion, traces."""
import pytest

KINDS = {"host": {"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "2"},
         "cl": {"SUNDOG_DEVICE": "cl", "SUNDOG_CL_SPLIT": "2"}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_surface(python, kind):
    out = python("pjrt_surface.py", "2", env=KINDS[kind])
    assert out.count("ok ") == 12
