"""Twenty seconds of what `make soak` does for ten minutes."""


def test_eight_threads_at_random(python):
    out = python("soak.py", "20", env={"SUNDOG_DEVICE": "host",
                                       "SUNDOG_HOST_DEVICES": "2"})
    assert "device memory in use [0, 0]" in out
    assert "resident memory after the warm-up: " in out


def test_eight_threads_at_random_on_cl(python):
    out = python("soak.py", "10", env={"SUNDOG_DEVICE": "cl",
                                       "SUNDOG_CL_SPLIT": "2"})
    assert "device memory in use [0, 0]" in out
