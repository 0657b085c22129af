"""examples/stable_diffusion.py at its smallest size in one process, because
each import of its libraries takes seconds.  Prints `ok NAME` for each check.

usage: run_stable_diffusion.py FOLDER [NAME...]      without names: all but pndm
"""
import contextlib
import io
import json
import os
import re
import sys

FOLDER = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples"))
import stable_diffusion  # noqa: E402

CHECKS = []
SHARED = {}


def check(fn):
    CHECKS.append(fn)
    return fn


def share_models():
    """Runs with the same seeded models take the same compiled stages, as the
    repeats of one run do.  What comes from a folder is loaded anew."""
    from sd import models
    load = models.from_seed

    def shared(*a):
        if a not in SHARED:
            SHARED[a] = load(*a)
        return SHARED[a]
    models.from_seed = shared


def run(*words, fails=False):
    """What the example says, and its error, given these words."""
    out, said = io.StringIO(), ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            stable_diffusion.main(["--size", "tiny", "--steps", "2", *words])
        except SystemExit as e:
            said = str(e)
    assert bool(said) == fails, out.getvalue() + said
    return out.getvalue() + said


def at(name):
    return os.path.join(FOLDER, name)


def pixels(name):
    import numpy as np
    from PIL import Image
    return np.asarray(Image.open(at(name))).astype(int)


def stages(said):
    return re.findall(r"^(text|step \d+|decoder) +\d", said, re.M)


@check
def f32():
    said = run("--compare", "--out", at("img.png"), "--json", at("f32.json"))
    assert stages(said)[:4] == ["text", "step 1", "step 2", "decoder"]
    with open(at("f32.json")) as f:
        found = json.load(f)
    assert found["good"] and list(found["off"]) == ["text", "steps", "decoder"]
    assert "weights from a seed" in said and "toy tokenizer" in said
    image = pixels("img.png")
    assert image.shape == (32, 32, 3) and image.std() > 5


@check
def bf16():
    """Held against the stages in f32 that the check before has compiled."""
    said = run("--compare", "--dtype", "bf16", "--out", at("img.png"))
    assert "CPU off by" in said and "step 2" in stages(said)


@check
def pndm():
    run("--compare", "--scheduler", "pndm", "--out", at("img.png"))


@check
def a_stage_that_is_off_fails_the_run():
    from sd import compare
    assert compare.differ([1.0, -2.0], [1.0, -2.0]) == 0
    assert compare.differ([1.0, -2.0], [1.0, -2.5]) == 0.2
    assert not compare.differ([float("nan")], [1.0]) <= 1
    bounds, compare.BOUNDS = compare.BOUNDS, {"f32": -1.0}
    said = run("--compare", "--out", at("img.png"), fails=True)
    compare.BOUNDS = bounds
    assert "TOO LARGE" in said and "by more than its bound" in said


@check
def a_saved_folder_gives_the_same_picture():
    run("--out", at("seed.png"))
    for form in ("safetensors", "msgpack"):
        run("--save", at(form), "--save-as", form)
        said = run("--weights", at(form), "--out", at(f"{form}.png"))
        assert f"unet from {at(form)}" in said and f".{form}" in said
        assert (pixels(f"{form}.png") == pixels("seed.png")).all()


@check
def files_are_as_diffusers_reads_them():
    """diffusers' own reader of PyTorch's files, given ours."""
    import numpy as np
    from diffusers.models import modeling_flax_pytorch_utils as utils
    from flax.traverse_util import flatten_dict
    from safetensors.numpy import load_file
    from sd import models

    class Given:
        def __init__(self, **names):
            self.__dict__.update(names)
    m = models.from_seed("tiny", "f32", "dpm", 0)
    run("--save", at("layout"))
    for name in ("unet", "vae"):
        file = at(f"layout/{name}/diffusion_pytorch_model.safetensors")
        got = flatten_dict(utils.convert_pytorch_state_dict_to_flax(
            {k: Given(numpy=lambda w=w: w) for k, w in load_file(file).items()},
            Given(init_weights=lambda key: m.params[name])))
        want = flatten_dict(m.params[name])
        assert got.keys() == want.keys(), got.keys() ^ want.keys()
        for k, w in want.items():
            assert np.array_equal(got[k], w), k


def damage(file, data):
    """What is said of a folder whose file has other bytes, or none."""
    with open(at(file), "rb") as f:
        was = f.read()
    os.remove(at(file))
    if data is not None:
        with open(at(file), "wb") as f:
            f.write(data)
    said = run("--weights", at(file.split("/")[0]), fails=True)
    with open(at(file), "wb") as f:
        f.write(was)
    return said


@check
def a_folder_that_is_no_checkpoint_says_why():
    """The folders are those that were saved above."""
    text, vae = (f"safetensors/{x}" for x in (
        "text_encoder/model.safetensors",
        "vae/diffusion_pytorch_model.safetensors"))
    msgpack = "msgpack/vae/diffusion_flax_model.msgpack"
    with open(at(text), "rb") as f:
        other = f.read()
    assert f"{at(msgpack)}: no weight for" in damage(msgpack, b"\x80")
    assert f"{at(msgpack)}: not read" in damage(msgpack, b"\x81\xa1")
    assert f"{at(vae)}: not read" in damage(vae, other[:1000])
    assert f"{at(vae)}: no weight for" in damage(vae, other)
    assert "no file like *flax_model.msgpack" in damage(vae, None)
    config = "msgpack/unet/config.json"
    assert f"{at(config)}: No such file" in damage(config, None)
    assert f"{at(config)}: not JSON" in damage(config, b"{")
    assert "nowhere: no such folder" in run("--weights", "nowhere", fails=True)


@check
def words_that_make_no_sense_are_answered_before_the_work():
    for words, answer in (
            ("--steps 0", "--steps: 0: at least 1"),
            ("--steps many", "--steps: invalid whole number value: 'many'"),
            ("--steps 1001", "--steps 1001: at most 1000"),
            ("--seed -1", "--seed: -1: at least 0"),
            ("--scheduler euler", "choose from"),
            ("--height 30", "--height 30, --width 32: multiples of 4"),
            ("--whole --compare", "--whole has no stages"),
            ("--whole --batch 3", "--batch 3: not a multiple of 2 devices"),
            ("--json x.json", "--json goes with --compare"),
            ("--out nowhere/x.png", "--out nowhere/x.png: no folder nowhere"),
            ("--out x.nothing", "no picture's file name"),
            (f"--out {FOLDER}.png/", "no picture's file name")):
        said = run(*words.split(), fails=True)
        assert answer in said, (words, said)


@check
def pictures_do_not_depend_on_how_many_devices():
    import jax
    run("--batch", "3", "--out", at("many.png"))
    assert len(jax.devices("xpu")) == 2
    run("--out", at("one.png"))
    assert abs(pixels("many-1.png") - pixels("one.png")).max() <= 1
    assert abs(pixels("many-1.png") - pixels("many-3.png")).max() > 5


@check
def the_pipeline_of_diffusers_runs_unchanged():
    """Replicated and sharded as its documentation has it, in one program."""
    ddim = "--whole", "--scheduler", "ddim"
    said = run(*ddim, "--warmup", "1", "--repeat", "2", "--out", at("x.png"))
    assert re.search(r"^latency: [\d.]+ s an image, 2 steps, mean of 2 after 1",
                     said, re.M)
    run(*ddim, "--platform", "cpu", "--out", at("c.png"))
    assert abs(pixels("x.png") - pixels("c.png")).max() <= 1


if __name__ == "__main__":
    share_models()
    for fn in CHECKS:
        if fn.__name__ in sys.argv[2:] or not sys.argv[2:] and fn != pndm:
            fn()
            print("ok", fn.__name__, flush=True)
