"""Sums of updates that come by buckets of places, in what a CUDA GPU would run: ptxas
takes it, and tests/ptx/simulate.py runs the kernel that adds them, in their order."""

import numpy as np
import pytest

from cuda_code import compiled, simulate

PROGRAM = """HloModule sums

join {{
  x = {t}[] parameter(0)
  y = {t}[] parameter(1)
  ROOT z = {t}[] {op}(x, y)
}}

ENTRY e {{
  x = {t}[{places}] parameter(0)
  i = s32[{n},1] parameter(1)
  u = {t}[{n}] parameter(2)
  ROOT y = {t}[{places}] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}},
      scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=join
}}
"""
GROUPS = (0, 1, 77, 127, 255)


def bucket_of(place, bits, near):
    return np.where(place < 0, (1 << bits) - 1, place >> near & (1 << bits) - 1)


@pytest.mark.parametrize("op, places, keys", [
    ("add", 30000, "all"), ("multiply", 30001, "all"), ("add", 40000, "few"), ("add", 30000, "one")])
def test_a_group_adds_the_updates_of_its_bucket_in_order(op, places, keys, tmp_path):
    n, rng = 33000, np.random.default_rng(3)
    plan, path = compiled(tmp_path, PROGRAM.format(t="f32", op=op, places=places, n=n))
    assert f"updates to {places} places, 256 buckets of 8 neighbours" in plan
    name = [line.split()[1] for line in plan.splitlines() if line.startswith("kernel ")][-1]
    entry = path.read_text().split(f".visible .entry {name}(")[1].split("\n}\n")[0]

    place = rng.integers(-1, {"all": places, "few": 3000, "one": 1}[keys], n).astype(np.int32)
    update = (1 + rng.standard_normal(n) / 64).astype(np.float32)
    order = np.argsort(bucket_of(place, 8, 3), kind="stable")
    place, update = place[order], update[order]
    pieces = -(-n // 5120)
    numbers = np.zeros((256, pieces + 1), np.uint32)
    numbers[:, pieces] = np.bincount(bucket_of(place, 8, 3), minlength=256)
    array = rng.standard_normal(places).astype(np.float32)
    want, join = array.copy(), {"add": np.add, "multiply": np.multiply}[op]
    for p, u in zip(place, update):
        if p >= 0 and bucket_of(p, 8, 3) in GROUPS:
            want[p] = join(want[p], u)
    simulate.run(f".visible .entry {name}({entry}\n}}\n", [place, update, array, numbers], GROUPS, 1 << 14)
    assert np.array_equal(array.view(np.int32), want.view(np.int32))
