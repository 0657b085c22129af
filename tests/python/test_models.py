"""The networks that `make bench-models` times are right at small sizes."""


def test_on_host(python):
    ok = python("run_models.py", env={"SUNDOG_DEVICE": "host"})
    assert len(ok.splitlines()) == 11


def test_on_cl(python):
    ok = python("run_models.py", "gpt2 train", "llama bf16", "lstm train",
                env={"SUNDOG_DEVICE": "cl"})
    assert len(ok.splitlines()) == 3
