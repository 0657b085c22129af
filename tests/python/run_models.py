"""The networks of bench/models, made small, on `xpu` and on JAX's CPU in one
process: what they compute first, and the losses of a few training steps.

usage: run_models.py FOLDER [NAME...]

What JAX's CPU computed is kept in FOLDER and taken from there: it is the same
for every device.
"""
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench", "models"))

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import bert  # noqa: E402
import gpt2  # noqa: E402
import llama  # noqa: E402
import lstm  # noqa: E402
import resnet  # noqa: E402
import sd  # noqa: E402
import t5  # noqa: E402
import vit  # noqa: E402
from run import off  # noqa: E402

SMALL = {
    gpt2: dict(L=2, D=64, H=4, V=100, LONGEST=32),
    llama: dict(L=2, D=64, FF=96, H=4, KV=2, V=100, DEPTH=16),
    bert: dict(L=1, D=64, H=4, V=100), vit: dict(L=1, D=64, H=4),
    t5: dict(L=1, D=64, FF=96, H=4, V=100), lstm: dict(V=50, D=16, H=32),
    resnet: dict(STAGES=((16, 1, 1), (32, 1, 2))),
    sd: dict(LAYERS=1, D=64, V=100, WIDTHS=(32, 64), DECODER=(32, 32), EACH=1)}
CASES = [
    ("gpt2 train", lambda: gpt2.train(2, 9), 1e-4),
    ("gpt2 decode", lambda: gpt2.decode(2, 16), 1e-4),
    ("llama", lambda: llama.decode(2, 16, jnp.float32), 1e-4),
    ("llama bf16", lambda: llama.decode(2, 16), 5e-2),
    ("bert", lambda: bert.infer(2, 12), 1e-4),
    ("resnet", lambda: resnet.infer(1, 40), 1e-4),
    ("resnet train", lambda: resnet.train(2, 40), 1e-3),
    ("vit", lambda: vit.infer(1, 48), 1e-4),
    ("t5 train", lambda: t5.train(2, 9, 7), 1e-4),
    ("lstm train", lambda: lstm.train(3, 7), 1e-4),
    ("sd", lambda: sd.infer(16, 2), 1e-4)]


def computed(make, device):
    """What comes out first, or the losses of some steps."""
    p = make()
    constants, state, inputs = jax.device_put(
        (p.constants, p.state, p.inputs), device)
    call = jax.jit(p.fn, donate_argnums=1)
    out = []
    for _ in range(4 if p.trains else 1):
        state, y = call(constants, state, *inputs)
        out.append(y)
    return [np.asarray(x, np.float64) for x in jax.tree.leaves(out)]


def known(folder, name, make):
    """What JAX's CPU computes."""
    file = os.path.join(folder, f"{name}.npz")
    if not os.path.exists(file):
        np.savez(file, *computed(make, jax.devices("cpu")[0]))
    with np.load(file) as found:
        return [found[k] for k in found.files]


def main():
    folder, *names = sys.argv[1:]
    for family, sizes in SMALL.items():
        for name, value in sizes.items():
            assert hasattr(family, name), name
            setattr(family, name, value)
    failed = 0
    for name, make, tol in CASES:
        if names and name not in names:
            continue
        wrong = off(computed(make, jax.devices("xpu")[0]),
                    known(folder, name, make))
        good = wrong <= tol
        failed += not good
        print(f"{'ok' if good else 'FAIL'} {name} {wrong:.1e}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
