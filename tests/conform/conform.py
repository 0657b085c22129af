"""JAX's shipped primitive programs on our device against JAX's CPU.

usage: conform.py [--only REGEX] [--x64] [--every N] [--jobs N]
SUNDOG_DEVICE says where.  Results go to build/conform/DEVICE.tsv (name, status,
seconds, worst ulp or error); DEVICE.tsv beside this file lists known failures
with reasons, and exit status 1 says that something else failed.
"""
import argparse
import multiprocessing
import os
import re
import sys
import time
import zlib

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))

# What several right answers have: compared by what they must satisfy (later).
BY_PROPERTY = ("qr", "svd", "eig", "eigh", "schur", "hessenberg", "lu",
               "householder", "tridiagonal")
# Multiples of JAX's default tolerance, where sums or steep functions need it.
TOLERANCE = {"conv_general_dilated": 50, "dot_general": 20, "cumsum": 30,
             "cumprod": 30, "cumlogsumexp": 30, "reduce_window_add": 10,
             "integer_pow": 10, "pow": 10, "lgamma": 30, "digamma": 30,
             "erf_inv": 30, "igamma": 100, "random_gamma": 100, "logistic": 4}


def prepare(x64):
    import jax
    jax.config.update("jax_enable_x64", x64)
    from jax._src.internal_test_util import test_harnesses
    return test_harnesses.all_harnesses


def run_one(harness):
    import jax
    import numpy as np

    import compare
    if harness.group_name.startswith(BY_PROPERTY):
        return "skip", "compared by property, not here yet"
    device, cpu = jax.devices("xpu")[0], jax.devices("cpu")[0]
    rng = lambda: np.random.RandomState(zlib.crc32(
        harness.fullname.encode()) & 0x7fffffff)
    out = []
    for d in (cpu, device):
        with jax.default_device(d):
            args = jax.device_put(harness.dyn_args_maker(rng()), d)
            try:
                out.append(jax.tree.leaves(jax.block_until_ready(
                    jax.jit(harness.dyn_fun)(*args))))
            except Exception as error:
                if d is cpu:
                    return "skip", f"JAX's CPU: {str(error)[:150]}"
                raise
    want, got = out
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.devices() == {device}
        if jax.dtypes.issubdtype(g.dtype, jax.dtypes.prng_key):
            g, w = jax.random.key_data(g), jax.random.key_data(w)
        g, w = np.asarray(g), np.asarray(w)
        if harness.group_name == "cholesky":
            g, w = np.tril(g), np.tril(w)
        compare.check(g, w, TOLERANCE.get(harness.group_name, 2))
    return "ok", ""


def worker(k, jobs, a, queue):
    harnesses = prepare(a.x64)
    for i, h in enumerate(h for h in harnesses if re.search(a.only, h.fullname)):
        if i % a.every or (i // a.every) % jobs != k:
            continue
        start = time.perf_counter()
        try:
            status, note = run_one(h)
        except Exception as error:
            status = "fail"
            note = f"{type(error).__name__}: {error}"
        queue.put((h.fullname, status, f"{time.perf_counter() - start:.3f}",
                   " ".join(note.split())[:300]))
    queue.put(None)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--only", default=".*")
    ap.add_argument("--x64", action="store_true")
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=2)
    a = ap.parse_args()
    device = os.environ.get("SUNDOG_DEVICE", "host")
    known = {}
    path = os.path.join(HERE, f"{device}.tsv")
    if os.path.exists(path):
        known = dict(l.rstrip("\n").split("\t", 1) for l in open(path)
                     if l.strip() and not l.startswith("#"))
    ctx = multiprocessing.get_context("spawn")
    queue = ctx.Queue()
    procs = [ctx.Process(target=worker, args=(k, a.jobs, a, queue))
             for k in range(a.jobs)]
    for p in procs:
        p.start()
    rows, left = [], a.jobs
    while left:
        try:
            row = queue.get(timeout=300)
        except Exception:
            print("conform: a worker died", [p.exitcode for p in procs])
            break
        if row is None:
            left -= 1
            continue
        rows.append(row)
        if row[1] == "fail" and row[0] not in known:
            print("\t".join(row), flush=True)
    out = os.path.join(HERE, "..", "..", "build", "conform")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, f"{device}.tsv"), "w") as f:
        f.writelines("\t".join(r) + "\n" for r in sorted(rows))
    count = {s: sum(r[1] == s for r in rows) for s in ("ok", "fail", "skip")}
    new = sum(r[1] == "fail" and r[0] not in known for r in rows)
    print(f"{count['ok']} passed, {count['fail']} failed ({new} not known), "
          f"{count['skip']} skipped")
    for p in procs:
        p.terminate() if left else p.join()
    sys.exit(1 if new or left else 0)


if __name__ == "__main__":
    main()
