"""Runs the skeleton programs on `xpu` and on JAX's CPU in one process and
compares; prints one line a case, exits 1 when one fails.  Several devices take
the cases in turn, with --x64 the other ones.

usage: run_programs.py [--x64] [--only REGEX]     SUNDOG_DEVICE says where
"""
import argparse
import os
import re
import sys
import time
import traceback

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")

import jax  # noqa: E402
import numpy as np  # noqa: E402

import compare  # noqa: E402
import programs  # noqa: E402


def run(p, args, device):
    dynamic = [i for i in range(len(args)) if i not in p.static]
    placed = list(args)
    for i in dynamic:
        placed[i] = jax.device_put(args[i], device)
    with jax.default_device(device):
        f = p.fn if p.eager else jax.jit(p.fn, static_argnums=p.static)
        out = jax.block_until_ready(f(*placed))
    for leaf in jax.tree.leaves(out):
        assert leaf.devices() == {device}, f"result on {leaf.devices()}"
    return out


def check(p, label, x64, device, cpu):
    args = p.args(label, x64)
    got, want = run(p, args, device), run(p, args, cpu)
    got, tree = jax.tree.flatten(got)
    want, want_tree = jax.tree.flatten(want)
    assert tree == want_tree
    for i, (g, w) in enumerate(zip(got, want)):
        compare.check(g, w, p.tolerance(label, x64), f"{p.name} {label} result {i}")


def train(x64, device, cpu):
    got = programs.mlp_train(device, x64=x64)
    want = programs.mlp_train(cpu, x64=x64)
    np.testing.assert_allclose(got, want, rtol=1e-4)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--x64", action="store_true")
    ap.add_argument("--only", default=".*")
    a = ap.parse_args()
    jax.config.update("jax_enable_x64", a.x64)
    jax.config.update("jax_default_matmul_precision", "highest")  # on cuda f32 is tf32 below it
    cpu, failed, n = jax.devices("cpu")[0], 0, 0
    cases = [(f"{p.name} {label}", check, (p, label))
             for p in programs.PROGRAMS.values() for label in p.specs]
    cases.append(("mlp_train 100 steps", train, ()))
    devices = jax.devices("xpu")
    for turn, (name, fn, spec) in enumerate(cases):
        device = devices[(turn + a.x64) % len(devices)]
        if not re.search(a.only, name):
            continue
        start, n = time.perf_counter(), n + 1
        try:
            fn(*spec, a.x64, device, cpu)
            status, text = "ok", ""
        except Exception as error:
            failed += 1
            status = "FAIL"
            text = "".join(traceback.format_exception_only(error))
        print(f"{status} {device!r} {name} "
              f"{time.perf_counter() - start:.2f}s", flush=True)
        if text:
            print("    " + text.strip().replace("\n", "\n    ")[:2000])
    print(f"{n - failed} passed, {failed} failed")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
