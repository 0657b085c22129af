#!/usr/bin/env python3
"""Products by Intel's matrix engine, run where there is none: `test_engines` with
its functions over broadcasts, on Intel's OpenCL runtime for CPUs, against the
evaluator.

usage: engines.py [--set conform|random] [--chips pvc,dg2-g10] [--count N]
                  [--shard I/N] [--again]
First JAX's shipped programs of products and convolutions, as they are and grown
until the engine is taken where their types have one, with random arguments; then
random products, convolutions and attentions, until N of each chip have run that
take it.  Rows go to build/engines/CHIP-SET.tsv as they are made, and what is
there is not run again, so a run that was ended goes on where it was, and shards
may run beside each other; --again begins anew.  Exit 1: something was wrong.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIT = os.path.join(TOP, "build/release/tests/unit")
OUT = os.path.join(TOP, "build/engines")
EACH = 20  # programs of a process
SAID = re.compile(r"(\d+) right \((\d+) products, (\d+) convolutions, (\d+) of attention\), (\d+) wrong, (\d+) without")
WORDS = "right", "products", "convolutions", "of attention", "wrong", "without an engine"
SHIPPED = "dot_general", "conv_general_dilated"  # groups of JAX's programs
GROWN = 16
os.environ["JAX_PLATFORMS"] = "cpu"
sys.path.insert(0, os.path.join(TOP, "tests/conform"))
import conform  # noqa: E402


def path_of(chip, set_):
    return os.path.join(OUT, f"{chip}-{set_}.tsv")


def rows(chip, set_):
    """Of each row what follows its first field, by that."""
    path = path_of(chip, set_)
    if not os.path.exists(path):
        return {}
    found = (line.rstrip("\n").split("\t") for line in open(path))
    return {r[0]: r[1:] for r in found}


def add_row(chip, set_, *row):
    with open(path_of(chip, set_), "a") as f:
        f.write("\t".join(map(str, row)) + "\n")


def run_test(chip, *what):
    env = {**os.environ, "VIRTUAL_ENV": os.environ.get("VIRTUAL_ENV", os.path.join(TOP, ".venv"))}
    done = subprocess.run([os.path.join(UNIT, "test_engines"), os.path.join(UNIT, "dpas.spv"), "cl:" + chip, *what], capture_output=True, text=True, env=env)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.stdout + done.stderr


# ---- JAX's programs ----

def grown(h):
    """Its arguments' shapes with matrices and features GROWN times as large: as
    they are, of three or four rows, columns and terms, none takes the engine."""
    from jax import lax
    x, y = h.params["lhs_shape"], h.params["rhs_shape"]
    if h.group_name == "dot_general":
        _, (x_same, y_same) = h.params["dimension_numbers"]
        grow = [set(range(len(x))) - set(x_same), set(range(len(y))) - set(y_same)]
    else:
        of = lax.conv_dimension_numbers(x, y, h.params["dimension_numbers"])
        grow = [{of.lhs_spec[1]}, set(of.rhs_spec[:2])]
    return [tuple(n * GROWN if i in g else n for i, n in enumerate(shape)) for shape, g in zip((x, y), grow)]


def lowered(h, grow):
    import jax
    args = list(conform.make_args(h))
    if grow:
        for i, shape in enumerate(grown(h)):
            args[i] = jax.ShapeDtypeStruct(shape, args[i].dtype)
    return jax.jit(h.dyn_fun).trace(*args).lower(lowering_platforms=("xpu",)).as_text()


def shipped(part, parts):
    """Files of HLO, by name."""
    from jax._src.internal_test_util import test_harnesses
    folder = os.path.join(OUT, "programs")
    os.makedirs(folder, exist_ok=True)
    chosen = [(h, grow) for h in test_harnesses.all_harnesses if h.group_name in SHIPPED for grow in (False, True)]
    found = {}
    for i in range(part - 1, len(chosen), parts):
        h, base = chosen[i][0], os.path.join(folder, str(i))
        found[h.fullname + (", grown" if chosen[i][1] else "")] = base + ".hlo"
        if os.path.exists(base + ".hlo"):
            continue
        open(base + ".mlir", "w").write(lowered(*chosen[i]))
        text = subprocess.run([os.path.join(TOP, "build/release/tools/sundog"), "dump", base + ".mlir"], capture_output=True, text=True, check=True)
        open(base + ".hlo", "w").write(text.stdout)
    return found


def run_shipped(chip, programs):
    """Rows of these: engine, plain (right without it), wrong or crash.  A test
    that ends early ended in the program after those that it told of."""
    left = [n for n in programs if n not in rows(chip, "conform")]
    while left:
        some = left[:EACH]
        said = dict(re.findall(r"^(\S+\.hlo): (\w+)$", run_test(chip, *(programs[n] for n in some)), re.M))
        for name in some:
            add_row(chip, "conform", name, said.get(programs[name], "crash"))
            left.remove(name)
            if programs[name] not in said:
                break
    status = [s for n, (s,) in rows(chip, "conform").items() if n in programs]
    right = status.count("engine") + status.count("plain")
    print(f"{chip}: {right} of {len(programs)} of JAX's programs right, {status.count('engine')} of them by the engine", flush=True)
    return len(programs) - right


# ---- random programs ----

def run_random(chip, count, shard, shards):
    def numbers():
        return {int(first): list(map(int, r)) for first, r in rows(chip, "random").items()}
    bad = 0
    for n in range(shard - 1, 10 * count // EACH + shards, shards):
        had, first = numbers(), 1 + n * EACH
        if sum(r[0] + r[4] for r in had.values()) >= count:
            break
        if first in had:
            continue
        said = SAID.search(run_test(chip, str(first), str(EACH)))
        if not said:
            bad += 1
            break
        add_row(chip, "random", first, *said.groups())
    total = [sum(c) for c in zip(*numbers().values())] or [0] * len(WORDS)
    print(f"{chip}: {total[0]} of {total[0] + total[4]} random programs right: " + ", ".join(f"{n} {w}" for n, w in zip(total[1:], WORDS[1:])), flush=True)
    return bad + total[4]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--set", choices=("conform", "random"))
    ap.add_argument("--chips", default="pvc,dg2-g10")
    ap.add_argument("--count", type=int, default=1000)
    ap.add_argument("--shard", default="1/1")
    ap.add_argument("--again", action="store_true")
    a = ap.parse_args()
    if not shutil.which("spirv-link"):
        sys.exit("engines: no spirv-link: apt-get install spirv-tools")
    shard, shards = map(int, a.shard.split("/"))
    os.makedirs(OUT, exist_ok=True)
    if a.again:
        for chip in a.chips.split(","):
            for set_ in a.set.split() if a.set else ("conform", "random"):
                if os.path.exists(path_of(chip, set_)):
                    os.remove(path_of(chip, set_))
    programs = shipped(shard, shards) if a.set != "random" else {}
    bad = 0
    for chip in a.chips.split(","):
        if a.set != "random":
            bad += run_shipped(chip, programs)
        if a.set != "conform":
            bad += run_random(chip, a.count, shard, shards)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
