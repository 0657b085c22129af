"""Rows of updates that go to places, sorted by these, in what a CUDA GPU would run: ptxas
takes it, and tests/ptx/simulate.py runs the kernel that adds them, in their order."""
import re

import numpy as np
import pytest

from cuda_code import compiled, simulate

PROGRAM = """HloModule sums

join {{
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] {op}(x, y)
}}

ENTRY e {{
  x = f32[{places},{width}] parameter(0)
  i = s32[{n},1] parameter(1)
  u = f32[{n},{width}] parameter(2)
  ROOT y = f32[{places},{width}] scatter(x, i, u), update_window_dims={{1}}, inserted_window_dims={{0}},
      scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=join
}}
"""


@pytest.mark.parametrize("op, width, n, places, keys", [
    ("add", 20, 30000, 8000, 6000),        # runs of five
    ("add", 33, 30000, 90000, 90000),      # most are alone
    ("multiply", 40, 30000, 8000, 200),    # of 150
    ("add", 70, 8000, 3000, 3000),         # an item has two neighbours of a row,
    ("add", 132, 3000, 1000, 900),         # four,
    ("multiply", 520, 3000, 1000, 20)])    # of tiles that the row is no multiple of
def test_a_group_adds_the_rows_of_its_runs_in_order(op, width, n, places, keys, tmp_path):
    rng = np.random.default_rng(3)
    plan, path = compiled(tmp_path, PROGRAM.format(op=op, places=places, width=width, n=n))
    assert "}*" not in plan.split("_places\n")[1].split("\nkernel ")[0]  # the list has numbers of rows
    each = int(re.findall(r"outer map seq tile (\d+)", plan)[-1])
    kernel = plan.split("\nkernel ")[-1]
    name, tiles = kernel.split()[0], int(kernel.split(" tiles")[0].split()[-1])
    entry = path.read_text().split(f".visible .entry {name}(")[1].split("\n}\n")[0]

    place = rng.integers(-1, keys + 1, (n, 1)).astype(np.int32)
    update = (1 + rng.standard_normal((n, width)) / 64).astype(np.float32)
    update[rng.integers(0, n, 9)] = np.nan
    key = np.where((place >= 0) & (place < places), place, -1)[:, 0].astype(np.uint32)
    order = np.argsort(key, kind="stable").astype(np.int32)
    key = key[order]
    array = rng.standard_normal((places, width)).astype(np.float32)
    want, join = array.copy(), {"add": np.add, "multiply": np.multiply}[op]
    stretches = -(-n // each)  # of the list, for each part of a row
    groups = (0, 1, stretches // 2, stretches // 2 + 1, stretches - 2, stretches - 1)
    begins = np.append(True, key[1:] != key[:-1])
    for g in groups:
        for at in range(g * each, min(g * each + each, n)):
            if begins[at] and key[at] < places:
                while True:
                    want[key[at]] = join(want[key[at]], update[order[at]])
                    at += 1
                    if at == n or begins[at]:
                        break
    simulate.run(f".visible .entry {name}({entry}\n}}\n", [update, array, place, array, key, order],
                 [g + part for part in range(0, tiles, stretches) for g in groups], 1 << 16)
    assert np.array_equal(array.view(np.int32), want.view(np.int32))
