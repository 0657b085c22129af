"""Ours against JAX's CPU, in alternating processes on the same cores.

usage: bench.py [--only REGEX] [--pairs N] [--seconds S] [--json FILE]

Each pair runs JAX's CPU, then ours, then JAX's CPU again; the ratio of the two
CPU runs is the noise (A/A).  A ratio is CPU time over our time: above 1 we are
faster.  dispatch entries run against XLA's CPU back end behind the same C API
(PyPI: lammps-jax-pjrt-cpu) when it is installed; JAX's built-in CPU client is
printed beside it.  Every result is compared; a wrong one is an error.
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = "lammps_jax_pjrt_cpu"


def environment(which):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("JAX_", "XLA_", "PJRT_"))}
    env.update(PYTHONPATH=HERE, JAX_PLATFORMS="cpu")
    if which == "xpu":
        env.update(JAX_PLATFORMS="xpu,cpu")
        plugins = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "")
        if plugins.startswith("xpu:"):  # a build that is not installed
            env.update(PJRT_NAMES_AND_LIBRARY_PATHS=plugins)
    elif which == "xcpu":
        import importlib.util
        spec = importlib.util.find_spec(PEER)
        path = os.path.join(spec.submodule_search_locations[0],
                            "pjrt_c_api_cpu_plugin.so")
        env.update(JAX_PLATFORMS="xcpu,cpu", SUNDOG_PRIORITY="-1",
                   PJRT_NAMES_AND_LIBRARY_PATHS=f"xcpu:{path}")
    return env


def run(which, names, seconds, folder, tag):
    out = os.path.join(folder, f"{tag}.npz")
    r = subprocess.run([sys.executable, os.path.join(HERE, "worker.py"), which,
                        str(seconds), out, *names], env=environment(which),
                       capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"bench: {which} failed\n{r.stderr[-3000:]}")
    times = {}
    for line in r.stdout.splitlines():
        if line.startswith("{"):
            d = json.loads(line)
            times[d["name"]] = d["seconds"]
    return times, np.load(out)


def compare(e, ours, theirs):
    for key in ours.files:
        if key.rsplit(".", 1)[0] != e.name:
            continue
        a, b = ours[key], theirs[key]
        if not np.array_equal(np.isnan(a), np.isnan(b)):
            sys.exit(f"bench: {key}: NaN in other places")
        a, b = (x[~np.isnan(x)] for x in (a, b))
        scale = max(float(np.max(np.abs(b), initial=0)), 1e-30)
        worst = float(np.max(np.abs(a - b), initial=0)) / scale
        if not worst <= e.tol:
            sys.exit(f"bench: {key}: wrong by {worst:.1e} of its magnitude")


def has_peer():
    import importlib.util
    return importlib.util.find_spec(PEER) is not None


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--only", default=".*")
    ap.add_argument("--pairs", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=0.3)
    ap.add_argument("--json")
    a = ap.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.insert(0, HERE)
    import entries
    todo = [e for e in entries.ENTRIES if re.search(a.only, e.name)]
    names = [e.name for e in todo]
    dispatch = [e.name for e in todo if e.kind == "dispatch"]
    ratio = {n: [] for n in names}
    noise = {n: [] for n in names}
    ours, theirs, peer = ({n: [] for n in names} for _ in range(3))
    with tempfile.TemporaryDirectory() as folder:
        for k in range(a.pairs):
            print(f"pair {k + 1} of {a.pairs} ...", file=sys.stderr)
            c1, want = run("cpu", names, a.seconds, folder, "c1")
            x, got = run("xpu", names, a.seconds, folder, "x")
            c2, _ = run("cpu", names, a.seconds, folder, "c2")
            p = (run("xcpu", dispatch, a.seconds, folder, "p")[0]
                 if dispatch and has_peer() else {})
            for e in todo:
                compare(e, got, want)
                n = e.name
                cpu = (c1[n] + c2[n]) / 2
                noise[n].append(c1[n] / c2[n])
                ours[n].append(x[n])
                theirs[n].append(cpu)
                peer[n].append(p.get(n, float("nan")))
                ratio[n].append(p.get(n, cpu) / x[n])
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} "
          f"cores, {a.pairs} pairs; milliseconds, medians")
    print(f"{'entry':22}{'JAX CPU':>10}{'peer':>10}{'ours':>10}{'ratio':>8}"
          f"{'A/A':>14}{'bar':>6}{'GB/s':>8}{'GF/s':>8}")
    below = []
    for e in todo:
        n, m = e.name, float(np.median(ratio[e.name]))
        t = float(np.median(ours[n]))
        ok = e.bar is None or m >= e.bar
        below += [] if ok else [n]
        print(f"{n:22}{np.median(theirs[n]) * 1e3:10.3f}"
              f"{np.median(peer[n]) * 1e3:10.3f}{t * 1e3:10.3f}{m:8.2f}"
              f"{min(noise[n]):7.2f}{max(noise[n]):7.2f}"
              f"{e.bar if e.bar is not None else '-':>6}"
              f"{e.bytes / t / 1e9:8.1f}{e.flops / t / 1e9:8.1f}"
              f"{'' if ok else '  below the bar'}")
    print(f"{len(todo) - len(below)} of {len(todo)} at or above their bars"
          + (f"; below: {', '.join(below)}" if below else ""))
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"ratio": ratio, "ours": ours, "cpu": theirs,
                       "peer": peer}, f)


if __name__ == "__main__":
    main()
