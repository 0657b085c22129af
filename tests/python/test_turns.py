"""A loop of small steps, or a branch, that one group of a CUDA GPU runs: tests/ptx/simulate.py runs
it, which no item may leave a barrier out for, and `host` runs the steps one by one."""
import os
import re
import subprocess

import numpy as np
import pytest

from cuda_code import TARGET, TOOL, assembled, simulate

# What carries `turns`, s32[], and more; `step` is what is done beside counting.
PROGRAM = """HloModule turns
add {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}}
maximum {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] maximum(x, y)
}}
{more}
cond {{
  t = ({types}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant({turns})
  ROOT c = pred[] compare(i, n), direction=LT
}}
body {{
  t = ({types}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
{step}
}}
ENTRY e {{
{entry}
  t = ({types}) tuple({names})
  ROOT w = ({types}) while(t), condition=cond, body=body
}}
"""
SCALARS = (["s32[]", "f32[]", "f32[]"], 40, "", """
  x = f32[] get-tuple-element(t), index=1
  y = f32[] get-tuple-element(t), index=2
  f = f32[] convert(i)
  c = f32[] constant(0.75)
  z = f32[] multiply(x, c)
  v = f32[] add(z, f)
  ROOT r = (s32[], f32[], f32[]) tuple(j, y, v)""")
# Sums of a group, whose items are fewer than the loop's; a branch; a product; elements
# that go into an array one after the other.
MIXED = (["s32[]", "f32[700]", "f32[3,3]", "f32[9]"], 9, """
half {
  x = f32[700] parameter(0)
  c = f32[] constant(0.5)
  b = f32[700] broadcast(c), dimensions={}
  ROOT y = f32[700] multiply(x, b)
}
grow {
  x = f32[700] parameter(0)
  c = f32[] constant(3)
  b = f32[700] broadcast(c), dimensions={}
  ROOT y = f32[700] add(x, b)
}
""", """
  x = f32[700] get-tuple-element(t), index=1
  m = f32[3,3] get-tuple-element(t), index=2
  o = f32[9] get-tuple-element(t), index=3
  zero = f32[] constant(0)
  s = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  limit = f32[] constant(2000)
  p = pred[] compare(s, limit), direction=GT
  y = f32[700] conditional(p, x, x), true_computation=half, false_computation=grow
  mm = f32[3,3] dot(m, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  low = f32[] constant(-9)
  top = f32[] reduce(mm, low), dimensions={0,1}, to_apply=maximum
  tops = f32[3,3] broadcast(top), dimensions={}
  k = f32[3,3] divide(mm, tops)
  s1 = f32[1] reshape(s)
  q = f32[9] dynamic-update-slice(o, s1, i)
  ROOT r = (s32[], f32[700], f32[3,3], f32[9]) tuple(j, y, k, q)""")
# Loops in a loop, the inner one's turns by what the outer one computed.
NESTED = (["s32[]", "s32[]", "f32[200]"], 6, """
in_cond {
  t = (s32[], s32[], f32[200]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  ROOT c = pred[] compare(i, n), direction=LT
}
in_body {
  t = (s32[], s32[], f32[200]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  x = f32[200] get-tuple-element(t), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[200] reverse(x), dimensions={0}
  f = f32[] convert(i)
  b = f32[200] broadcast(f), dimensions={}
  y = f32[200] subtract(v, b)
  ROOT r = (s32[], s32[], f32[200]) tuple(j, n, y)
}
""", """
  n = s32[] get-tuple-element(t), index=1
  x = f32[200] get-tuple-element(t), index=2
  two = s32[] constant(2)
  k = s32[] remainder(i, two)
  u = (s32[], s32[], f32[200]) tuple(k, j, x)
  w = (s32[], s32[], f32[200]) while(u), condition=in_cond, body=in_body
  y = f32[200] get-tuple-element(w), index=2
  a = s32[] get-tuple-element(w), index=0
  l = s32[] add(n, a)
  ROOT r = (s32[], s32[], f32[200]) tuple(j, l, y)""")


def program(types, turns, more, step):
    names = [f"p{i}" for i in range(len(types))]
    entry = "\n".join(f"  {p} = {t} parameter({i})" for i, (p, t) in enumerate(zip(names, types)))
    return PROGRAM.format(types=", ".join(types), turns=turns, more=more, step=step, entry=entry,
                          names=", ".join(names))


def arguments(types):
    r = np.random.default_rng(5)
    for t in types:
        dims = [int(d) for d in re.findall(r"\d+", t[t.index("["):])]
        yield np.zeros(dims, np.int32) if t[0] == "s" else r.random(dims, np.float32)


def compiled(text, tmp):
    """PTX, the steps as lists of a kind and its slices, the sizes of buffers."""
    path = tmp / "turns.hlo"
    path.write_text(text)
    subprocess.run([TOOL, "compile", TARGET, f"--out={tmp}", path], check=True, capture_output=True)
    lines = next(tmp.glob("*thunk_sequence.txt")).read_text().splitlines()
    steps = [(m[1], re.findall(r"b(\d+)(?:\[(\d+) \+\d+\])?", m[2]))
             for m in (re.match(r"\d+: (\w+) .*\((.*)\)$", line) for line in lines) if m]
    sizes = [int(line.split()[-2]) for line in lines if re.match(r"buffer \d+:", line)]
    return next(tmp.glob("*.ptx")), steps, sizes, lines


def simulated(text, args, tmp, stop=0, edit=lambda code: code):
    path, steps, sizes, lines = compiled(text, tmp)
    assembled(path)
    of = {m[2] + m[3]: int(m[1]) for m in (re.match(r"buffer (\d+): (param|output) (\d+)", line) for line in lines)
          if m}
    memory = [np.zeros(n, np.uint8) for n in sizes]
    for i, x in enumerate(args):
        memory[of[f"param{i}"]][:] = np.frombuffer(x.tobytes(), np.uint8)
    assert [kind for kind, _ in steps].count("kernel") == 1
    for kind, slices in steps:
        at = [memory[int(b)][int(o or 0):] for b, o in slices]
        if kind == "copy":
            n = min(len(a) for a in at)
            at[1][:n] = at[0][:n]
        else:
            simulate.run(edit(path.read_text()), [*at, np.frombuffer(np.int32(stop).tobytes(), np.uint8)], range(1), 1 << 15)
    return [memory[of[f"output{i}"]].view(x.dtype).reshape(x.shape) for i, x in enumerate(args)]


def by_steps(text, args, tmp):
    path = tmp / "turns.hlo"
    path.write_text(text)
    files = []
    for i, x in enumerate(args):
        np.save(tmp / f"arg{i}.npy", x)
        files.append(tmp / f"arg{i}.npy")
    subprocess.run([TOOL, "run", f"--out={tmp}/out", path, *files], check=True, capture_output=True,
                   env={**os.environ, "SUNDOG_DEVICE": "host", "SUNDOG_FUSE": "0", "SUNDOG_LIBRARIES": "0"})
    return [np.load(tmp / f"out{i}.npy") for i in range(len(args))]


@pytest.mark.parametrize("of", [SCALARS, MIXED, NESTED], ids=["scalars", "mixed", "nested"])
def test_a_group_does_the_steps(of, tmp_path):
    text, args = program(*of), list(arguments(of[0]))
    for got, want in zip(simulated(text, args, tmp_path), by_steps(text, args, tmp_path)):
        assert np.array_equal(got.view(np.int32), want.view(np.int32))


BRANCHES = """HloModule branches
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}
scaled {
  x = f32[300] parameter(0)
  c = f32[] constant(0.5)
  b = f32[300] broadcast(c), dimensions={}
  ROOT y = f32[300] multiply(x, b)
}
turned {
  x = f32[300] parameter(0)
  zero = f32[] constant(0)
  s = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  b = f32[300] broadcast(s), dimensions={}
  v = f32[300] reverse(x), dimensions={0}
  ROOT y = f32[300] add(v, b)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[300] parameter(1)
  y = f32[300] conditional(i, x, x), branch_computations={scaled, turned}
  ROOT r = (s32[], f32[300]) tuple(i, y)
}
"""


@pytest.mark.parametrize("index", [0, 1, 2, -1])
def test_a_group_takes_a_branch(index, tmp_path):
    args = [np.int32(index), *arguments(["f32[300]"])]
    for got, want in zip(simulated(BRANCHES, args, tmp_path), by_steps(BRANCHES, args, tmp_path)):
        assert np.array_equal(got.view(np.int32), want.view(np.int32))


def test_barriers_that_are_left_out_are_found(tmp_path):
    text, args = program(*MIXED), list(arguments(MIXED[0]))
    with pytest.raises(ValueError, match="no barrier"):
        simulated(text, args, tmp_path, edit=lambda code: re.sub(r"bar\.sync\s+0;", "", code))


def test_a_word_ends_it(tmp_path):
    types, _, more, step = SCALARS
    turns = simulated(program(types, 1000, more, step), list(arguments(types)), tmp_path, stop=1)[0]
    assert 0 < turns < 1000


def test_a_part_of_a_warp_does_not_meet(tmp_path):
    """Two rows, whose 8 items each join a sum in memory, keep the loop's steps."""
    step = """
  x = bf16[2,128] get-tuple-element(t), index=1
  f = f32[2,128] convert(x)
  low = f32[] constant(-9)
  top = f32[2] reduce(f, low), dimensions={1}, to_apply=maximum
  tops = f32[2,128] broadcast(top), dimensions={0}
  e = f32[2,128] subtract(f, tops)
  zero = f32[] constant(0)
  s = f32[2] reduce(e, zero), dimensions={1}, to_apply=add
  ss = f32[2,128] broadcast(s), dimensions={0}
  y = f32[2,128] divide(e, ss)
  z = bf16[2,128] convert(y)
  ROOT r = (s32[], bf16[2,128]) tuple(j, z)"""
    _, steps, _, lines = compiled(program(["s32[]", "bf16[2,128]"], 100, "", step), tmp_path)
    assert any("group=16 local" in line for line in lines)
    assert "while" in [kind for kind, _ in steps]


def test_large_steps_are_launched(tmp_path):
    types, turns, more, step = NESTED
    large = [text.replace("f32[200]", "f32[20000]") for text in (*types, more, step)]
    _, steps, *_ = compiled(program(large[:3], turns, *large[3:]), tmp_path)
    kinds = [kind for kind, _ in steps]
    assert "while" in kinds and "kernel" not in kinds
