"""Gradients of windows as one kernel of `cuda`: calls of it, taken by ptxas and run by
tests/ptx/simulate.py, against numpy; and convolutions that become calls, or stay what they are."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from test_attend import LOCAL, TYPES, compiled, shape_of, taken

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests/ptx"))
import ptx  # noqa: E402
import simulate  # noqa: E402


def whole(kind, *shape):
    """Small whole numbers, whose sums are exact."""
    return np.random.RandomState(sum(shape)).randint(-3, 4, shape).astype(TYPES[kind])


class Call:
    """The gradient of a window of `place` from x [n, *size, i] and y [n, *of, o], `low` zeros in front."""

    def __init__(self, kind="bf16", n=8, size=(6, 8), of=(6, 8), i=64, o=64, place=(3, 3), low=(1, 1), pieces=1):
        x, y = whole(kind, n, *size, i), whole(kind, n, *of, o)
        self.args = [x, y]
        self.out = np.full((pieces, *place, i, o), 99, np.float32)
        self.text = f"""HloModule m
ENTRY main {{
x = {shape_of(x)} parameter(0)
y = {shape_of(y)} parameter(1)
ROOT r = {shape_of(self.out)} custom-call(x, y), custom_call_target="sundog.window-gradient",
  api_version=API_VERSION_TYPED_FFI, backend_config="{low[0]},{low[1]}"
}}
"""
        self.want = want_of(x, y, place, low)


def want_of(x, y, place, low):
    x, y = x.astype(np.float64), y.astype(np.float64)
    far = [(max(l, 0), max(y.shape[1 + d] + place[d] - l - x.shape[1 + d], 0)) for d, l in enumerate(low)]
    x = np.pad(x, [(0, 0), *far, (0, 0)])
    cut = lambda d, at: slice(at - min(low[d], 0), at - min(low[d], 0) + y.shape[1 + d])
    return np.array([[np.einsum("nhwi,nhwo->io", x[:, cut(0, a), cut(1, b)], y) for b in range(place[1])]
                     for a in range(place[0])])


CALLS = {
    "plain": {},
    "f16": {"kind": "f16"},
    "f32": {"kind": "f32"},
    "f32, features that fill no block": {"kind": "f32", "i": 72, "o": 136, "size": (6, 7), "of": (6, 7)},
    "f32, windows of one row": {"kind": "f32", "place": (1, 3), "low": (0, 1)},
    "f32, windows of two columns": {"kind": "f32", "place": (2, 2), "low": (1, 0), "size": (6, 9)},
    "f32, many steps": {"kind": "f32", "n": 16, "size": (14, 14), "of": (14, 14), "pieces": 3},
    "features that fill no block": {"i": 72, "o": 136},
    "images in bands": {"n": 2, "size": (16, 4), "of": (16, 4)},
    "without zeros around": {"size": (8, 10), "of": (6, 8), "low": (0, 0)},
    "zeros on one side": {"size": (7, 6), "of": (6, 8), "low": (0, 3)},
    "a part of the image": {"size": (9, 12), "of": (6, 8), "low": (-1, -2)},
    "windows of one row": {"place": (1, 3), "low": (0, 1)},
    "windows of two columns": {"place": (2, 2), "low": (1, 0), "size": (6, 9)},
    "windows of one column": {"place": (3, 1), "low": (1, 0)},
    "many steps": {"n": 16, "size": (14, 14), "of": (14, 14), "pieces": 3},
}


def fits_registers(path, kind):
    """Sums of f32 and what is copied beside them fill an item's registers but for a word or two."""
    if kind != "f32":
        taken(path)
        return
    done = subprocess.run([ptx.find_ptxas(), "-arch=sm_90", "-v", "-o", os.devnull, path], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    assert int(re.search(r"(\d+) bytes spill stores", done.stderr)[1]) <= 8, done.stderr


@pytest.mark.parametrize("name", CALLS)
def test_calls(name, tmp_path):
    c = Call(**CALLS[name])
    text, plan, [path] = compiled(tmp_path, c.text)
    assert "  places " in plan and plan.count("\nkernel ") == 1
    fits_registers(path, CALLS[name].get("kind"))
    out = c.out.copy()
    count = int(re.search(r"tiles=(\d+)", plan).group(1))
    simulate.run(text, [*(a.copy() for a in c.args), out], range(count), LOCAL)
    np.testing.assert_array_equal(out.astype(np.float64).sum(0), c.want)
