"""Bytes of temporaries that a program takes, ours beside XLA:CPU's.

usage: memory.py [--only REGEX] [--suite FILE] [--models] [--over RATIO]

Programs are those of entries.py; with --models those of models/table.py, too,
their state given away as a training loop does; with --suite those of a script
that registers them in a list E of (.., name, maker, ..), as a performance suite
may, whose makers return a function and its arguments first.  Each is compiled
for both, and none is run.  What both keep below FLOOR is no matter.
"""
import argparse
import os
import re
import runpy
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "models")]
os.environ["JAX_PLATFORMS"] = "cpu,xpu"

import jax
import numpy as np
from jax.sharding import SingleDeviceSharding

FLOOR = 1 << 16


def temporaries(fn, args, platform, **kw):
    where = SingleDeviceSharding(jax.devices(platform)[0])
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(
        np.shape(x), jax.dtypes.canonicalize_dtype(x.dtype)
        if not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else x.dtype,
        sharding=where), jax.tree.map(as_array, args))
    compiled = jax.jit(fn, **kw).lower(*shapes).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def as_array(x):
    return x if hasattr(x, "dtype") else np.asarray(x)


def entries():
    import entries
    for e in entries.ENTRIES:
        if e.kind != "dispatch":
            yield e.name, lambda e=e: (e.fn, e.make(np.random.default_rng(0)), {})


def models():
    import table
    for row in table.ROWS:
        if not row.own:
            def make(row=row):
                p = row.make()
                return p.fn, (p.constants, p.state, *p.inputs), dict(
                    donate_argnums=1)
            yield row.name, make


def suite(file):
    sys.argv = [file, "--only", "$^"]  # its own runner finds nothing to do
    found = runpy.run_path(file)
    for _, name, make, *_ in found["E"]:
        yield name, lambda make=make: (*make()[:2], {})


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--only", default=".*")
    ap.add_argument("--suite")
    ap.add_argument("--models", action="store_true")
    ap.add_argument("--over", type=float, default=1.1)
    a = ap.parse_args()
    programs = list(suite(a.suite) if a.suite else entries())
    programs += models() if a.models else []
    over, count = [], 0
    print(f"{'program':28}{'XLA MB':>10}{'ours':>10}{'ratio':>8}")
    for name, make in programs:
        if not re.search(a.only, name):
            continue
        fn, args, kw = make()
        theirs, ours = (temporaries(fn, args, p, **kw) for p in ("cpu", "xpu"))
        ratio = max(ours, FLOOR) / max(theirs, FLOOR)
        count += 1
        over += [name] if ratio > a.over else []
        print(f"{name:28}{theirs / 1e6:10.2f}{ours / 1e6:10.2f}{ratio:8.2f}",
              flush=True)
    print(f"{count - len(over)} of {count} within {a.over} of XLA:CPU's"
          + (f"; above: {', '.join(over)}" if over else ""))


if __name__ == "__main__":
    main()
