"""One process of a pair: times entries on one platform, one JSON line each.

usage: worker.py PLATFORM SECONDS OUT.npz NAME...
The results of each entry go to OUT.npz, so that the pair can be compared.
"""
import json
import sys
import time

import jax
import numpy as np

import entries


def time_calls(fn, seconds):
    """Median seconds of a call over batches sized to some milliseconds."""
    fn()
    start = time.perf_counter()
    fn()
    once = max(time.perf_counter() - start, 1e-6)
    batch = max(1, int(0.02 / once))
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 200):
        start = time.perf_counter()
        for _ in range(batch):
            fn()
        times.append((time.perf_counter() - start) / batch)
    return float(np.median(times))


def time_compiles(fn, args, seconds):
    times, end, i = [], time.perf_counter() + seconds, 0
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 15):
        i += 1  # a constant of its own, so that nothing is cached
        lowered = jax.jit(lambda *a, i=i: jax.tree.map(
            lambda x: x + np.asarray(i, x.dtype), fn(*a))).lower(*args)
        start = time.perf_counter()
        compiled = lowered.compile()
        times.append(time.perf_counter() - start)
    # The first compile of a process also loads the compiler: reported apart.
    return float(np.median(times[1:])), compiled


def main():
    platform, seconds, out = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    device, results = jax.devices(platform)[0], {}
    todo = {e.name: e for e in entries.ENTRIES}
    for name in sys.argv[4:]:
        e = todo[name]
        rng = np.random.default_rng(0)
        args = jax.device_put(e.make(rng), device)
        if e.kind == "compile":
            value, run = time_compiles(e.fn, args, seconds)
            y = jax.jit(e.fn)(*args)
        else:
            f = jax.jit(e.fn)
            y = jax.block_until_ready(f(*args))
            value = time_calls(lambda: jax.block_until_ready(f(*args)), seconds)
        for i, leaf in enumerate(jax.tree.leaves(y)[:4]):
            results[f"{name}.{i}"] = np.asarray(leaf).astype(np.float64)
        print(json.dumps({"name": name, "seconds": value}), flush=True)
    np.savez(out, **results)


if __name__ == "__main__":
    main()
