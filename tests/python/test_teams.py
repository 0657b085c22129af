"""Rows that teams of items share, in what a CUDA GPU would run: ptxas takes it, and
tests/ptx/simulate.py runs it, which no item may leave a barrier out for."""

import ml_dtypes
import numpy as np
import pytest

from cuda_code import compiled, simulate

ROWS = 3
PROGRAM = """HloModule rows

join {{
  x = {t}[] parameter(0)
  y = {t}[] parameter(1)
  ROOT z = {t}[] {op}(x, y)
}}

ENTRY e {{
  x = {t}[{rows},{n}] parameter(0)
  z = {t}[] constant({z})
  s = {t}[{rows}] reduce(x, z), dimensions={{1}}, to_apply=join
  b = {t}[{rows},{n}] broadcast(s), dimensions={{0}}
  ROOT y = {t}[{rows},{n}] subtract(x, b)
}}
"""
START = {"add": 0, "maximum": -2000000, "minimum": 2000000}


def joined(row, op):
    """64 strided lanes, each in order, and then by halving."""
    f = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}[op]
    lanes = row.reshape(-1, 64)
    s = lanes[0].copy()
    for more in lanes[1:]:
        s = f(s, more)
    while len(s) > 1:
        s = f(s[:len(s) // 2], s[len(s) // 2:])
    return s[0]


@pytest.mark.parametrize("op, dtype, n, teams", [
    ("add", "f32", 4096, 2), ("add", "f32", 8192, 4), ("add", "f32", 16384, 8),
    ("maximum", "f32", 8192, 4), ("minimum", "f32", 4096, 2), ("add", "s32", 8192, 4)])
def test_teams_add_as_one_would(op, dtype, n, teams, tmp_path):
    plan, path = compiled(tmp_path, PROGRAM.format(t=dtype, op=op, rows=ROWS, n=n, z=START[op]))
    assert f"kept by {teams} teams" in plan and f"tiles={ROWS} group={64 * teams} " in plan
    x = (np.random.default_rng(7).standard_normal((ROWS, n)) * 1000).astype({"f32": np.float32, "s32": np.int32}[dtype])
    out = np.zeros_like(x)
    simulate.run(path.read_text(), [x.copy(), out], range(ROWS), 1 << 15)
    want = x - np.array([joined(r, op) for r in x])[:, None]
    assert np.array_equal(out.view(np.int32), want.view(np.int32))


def test_the_largest_of_bf16_is_not_that_of_their_bits(tmp_path):
    """The simulator took bf16 for whole numbers, of which those with a sign are the larger."""
    _, path = compiled(tmp_path, PROGRAM.format(t="bf16", op="maximum", rows=3, n=999, z=START["maximum"]))
    text = path.read_text()
    assert "max.NaN.bf16" in text
    x = np.random.default_rng(7).standard_normal((3, 999)).astype(ml_dtypes.bfloat16)
    x[1] -= 9
    x[2, 5] = np.nan
    out = np.zeros_like(x)
    simulate.run(text, [x.copy(), out], range(3), 1 << 15)
    want = (x.astype(np.float32) - x.max(1, keepdims=True).astype(np.float32)).astype(x.dtype)
    assert np.array_equal(out, want, equal_nan=True)


def test_a_field_of_s32_has_a_sign():
    """The simulator took it for one of u32: 0 and 1 where a GPU has 0 and -1."""
    text = """.visible .entry k(.param .u64 k_param_0)
.reqntid 32
{
\tld.param.b64 %rd1, [k_param_0];
\tmov.u32 %r1, %tid.x;
\tbfe.s32 %r2, %r1, 2, 2;
\tmul.wide.u32 %rd2, %r1, 4;
\tadd.s64 %rd3, %rd1, %rd2;
\tst.global.b32 [%rd3], %r2;
\tret;
}
"""
    out = np.zeros(32, np.int32)
    simulate.run(text, [out], [0], 0)
    assert out.tolist() == 2 * [n for n in (0, 1, -2, -1) for _ in range(4)]
