"""The networks that `make bench-models` times are right at small sizes."""
import pytest


@pytest.fixture(scope="module")
def models(python, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("models"))

    def run(device, *names):
        return python("run_models.py", folder, *names,
                      env={"SUNDOG_DEVICE": device})
    return run


def test_on_host(models):
    assert len(models("host").splitlines()) == 11


def test_on_cl(models):
    ok = models("cl", "gpt2 train", "llama bf16", "lstm train")
    assert len(ok.splitlines()) == 3
