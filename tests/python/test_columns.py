"""Sums of columns whose rows are a CUDA group's strided lanes: tests/ptx/simulate.py
runs what a GPU would, and the sums have the bits of their order: 8 lanes, each in
order, joined by halving."""
import os
import subprocess
import sys

import numpy as np
import pytest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOL = os.path.join(TOP, "build/release/tools/sundog")
sys.path.insert(0, os.path.join(TOP, "tests/ptx"))
import simulate  # noqa: E402

PROGRAM = """HloModule sums

add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}}

ENTRY e {{
  x = {t}[{rows},{columns}] parameter(0)
  c = f32[{rows},{columns}] convert(x)
  zero = f32[] constant(0)
  ROOT y = f32[{columns}] reduce(c, zero), dimensions={{0}}, to_apply=add
}}
"""


def sums_of(x):
    lanes = np.zeros((8, x.shape[1]), np.float32)
    for i, row in enumerate(x):
        lanes[i % 8] = row if i < 8 else lanes[i % 8] + row
    while len(lanes) > 1:
        lanes = lanes[:len(lanes) // 2] + lanes[len(lanes) // 2:]
    return lanes[0] + np.float32(0)


@pytest.mark.parametrize("t, rows, columns, vector, group", [
    ("bf16", 70, 8458, 2, 128), ("bf16", 128, 8448, 2, 128), ("bf16", 70, 4096, 1, 256),
    ("bf16", 70, 8459, 1, 256), ("f32", 65, 8450, 1, 256), ("bf16", 70, 36864, 4, 256)])
def test_columns_have_the_bits_of_their_order(t, rows, columns, vector, group, tmp_path):
    program = tmp_path / "sums.hlo"
    program.write_text(PROGRAM.format(t=t, rows=rows, columns=columns))
    target = "--target=cuda:sm_90"
    plan = subprocess.run([TOOL, "opt", "--plan", target, program], check=True, capture_output=True, text=True).stdout
    step = plan.splitlines()[-1]
    assert plan.count("\nkernel ") == 1 and f"group={group} " in step and "8 lanes items" in plan, plan
    assert (f"by {vector} @0" in plan) == (vector > 1), plan
    subprocess.run([TOOL, "compile", target, f"--out={tmp_path}", program], check=True, capture_output=True)

    x = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)
    x[3, 5], x[9, 33] = np.nan, np.inf
    if t == "bf16":
        given = (x.view(np.uint32) >> 16).astype(np.uint16)
        x = (given.astype(np.uint32) << 16).view(np.float32)
    else:
        given = x.copy()
    tiles = int(step.split("tiles=")[1].split()[0])
    out, want = np.zeros(columns, np.float32), sums_of(x)
    tile = group // 8 * vector
    groups = (0, 1, tiles - 1)
    simulate.run(next(tmp_path.glob("*.ptx")).read_text(), [given, out], groups, 1 << 14)
    for g in groups:
        at = slice(g * tile, (g + 1) * tile)
        assert np.array_equal(out[at], want[at], equal_nan=True), (g, out[at], want[at])
