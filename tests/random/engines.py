#!/usr/bin/env python3
"""Products by Intel's matrix engine, run where there is none: `test_engines` with
its functions over broadcasts, on Intel's OpenCL runtime for CPUs, against the
evaluator.

usage: engines.py [--chips pvc,dg2-g10] [--count N] [--shard I/N] [--again]
Random products, convolutions and attentions, until N of each chip have run that
take the engine.  Rows (20 programs each) go to build/engines/CHIP.tsv as they are
made, and what is there is not run again, so a run that was ended goes on where it
was, and shards may run beside each other; --again begins anew.  Exit 1: something
was wrong.
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
EACH = 20  # programs of a row
SAID = re.compile(r"(\d+) right \((\d+) products, (\d+) convolutions, (\d+) of attention\), (\d+) wrong, (\d+) without")
WORDS = "right", "products", "convolutions", "of attention", "wrong", "without an engine"


def rows(chip):
    """Of each row its six numbers, by the first program's."""
    path = os.path.join(OUT, chip + ".tsv")
    if not os.path.exists(path):
        return {}
    found = (tuple(map(int, line.split("\t"))) for line in open(path))
    return {r[0]: r[1:] for r in found}


def run(chip, first):
    """Writes one row; False: the test said none, which is an error."""
    env = {**os.environ, "VIRTUAL_ENV": os.environ.get("VIRTUAL_ENV", os.path.join(TOP, ".venv"))}
    done = subprocess.run([os.path.join(UNIT, "test_engines"), os.path.join(UNIT, "dpas.spv"), "cl:" + chip, str(first), str(EACH)], capture_output=True, text=True, env=env)
    said = SAID.search(done.stdout + done.stderr)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    if said:
        with open(os.path.join(OUT, chip + ".tsv"), "a") as f:
            f.write("\t".join([str(first), *said.groups()]) + "\n")
    return bool(said)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--chips", default="pvc,dg2-g10")
    ap.add_argument("--count", type=int, default=1000)
    ap.add_argument("--shard", default="1/1")
    ap.add_argument("--again", action="store_true")
    a = ap.parse_args()
    if not shutil.which("spirv-link"):
        sys.exit("engines: no spirv-link: apt-get install spirv-tools")
    shard, shards = map(int, a.shard.split("/"))
    os.makedirs(OUT, exist_ok=True)
    bad = 0
    for chip in a.chips.split(","):
        if a.again and os.path.exists(os.path.join(OUT, chip + ".tsv")):
            os.remove(os.path.join(OUT, chip + ".tsv"))
        for n in range(shard - 1, 10 * a.count // EACH + shards, shards):
            had = rows(chip)
            if sum(r[0] + r[4] for r in had.values()) >= a.count:
                break
            if 1 + n * EACH not in had and not run(chip, 1 + n * EACH):
                bad += 1
                break
        total = [sum(c) for c in zip(*rows(chip).values())] or [0] * len(WORDS)
        print(f"{chip}: " + ", ".join(f"{n} {w}" for n, w in zip(total, WORDS)), flush=True)
        bad += total[4]
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
