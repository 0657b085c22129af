"""Models that people run, ours against JAX's CPU, in alternating turns.

usage: run.py [--only REGEX] [--pairs N] [--curve N] [--big] [--device D]
              [--out FOLDER] [--check]

Each model gets a process on JAX's CPU and one on ours, which take turns, so
that a busy machine meets both.  What the first call computes and the losses of
training are compared; a wrong one fails the run.  Raw results go to FOLDER
(bench/results) as JSON, a model's in place of those it had; plot.py draws them.
--check: right or not, no times.
"""
import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import bench  # noqa: E402


class Process:
    def __init__(self, which, name, device):
        env = bench.environment(which)
        env.update(PYTHONPATH=HERE, SUNDOG_DEVICE=device)
        self.which, self.errors = which, tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "worker.py"), which, name],
            env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors)
        self.answer()

    def answer(self):
        line = self.p.stdout.readline()
        if not line:
            self.errors.seek(0)
            sys.exit(f"{self.which}: {self.errors.read()[-3000:]}")
        return json.loads(line)

    def __call__(self, *words):
        print(*words, file=self.p.stdin, flush=True)
        return self.answer()

    def end(self):
        self.p.stdin.close()
        self.p.wait()


def off(a, b):
    """Largest difference, of the largest magnitude; NaN where one is, or where
    all results are alike, which would show nothing."""
    if any(y.size > 1 and np.ptp(y) == 0 for y in b):
        return float("nan")
    return float(np.max([np.max(np.abs(x - y)) / np.max(np.abs(y))
                         for x, y in zip(a, b)]))


def results(process, folder):
    file = os.path.join(folder, f"{process.which}.npz")
    process("save", file)
    with np.load(file) as found:
        return [found[k] for k in found.files]


def measure(row, a, folder):
    """One model's raw results."""
    both = [Process(which, row.name, a.device) for which in ("cpu", "xpu")]
    raw = {p.which: dict(p("compile"), run=[], cpu=[]) for p in both}
    wrong = off(*(results(p, folder) for p in reversed(both)))
    calls = 0 if a.check else a.pairs
    once = sum(p("run", 1)["run"] for p in both) if calls else 0
    each = max(1, int(0.2 / max(once, 1e-6)))
    calls = max(1, min(calls, int(90 / max(once, 1e-6)))) if calls else 0
    for _ in range(calls):
        for p in both:
            found = p("run", each)
            for k in ("run", "cpu"):
                raw[p.which][k].append(found[k])
    for p in both:
        raw[p.which].update(p("memory"), **p("curve", a.curve))
        p.end()
    curves = [raw[w]["curve"] for w in ("xpu", "cpu")]
    if curves[0]:
        x, y = (np.array(c) for c in curves)
        wrong = float(np.max([wrong, np.max(np.abs(x - y) / np.abs(y))]))
    return dict(name=row.name, off=wrong, tol=row.tol, **raw)


def ratios(r):
    """JAX's CPU over ours: wall time and CPU time of a call, compile, first
    call, peak memory; None where unknown."""
    c, x = r["cpu"], r["xpu"]
    of = lambda f: f(c) / f(x) if f(c) and f(x) else None
    median = lambda k: of(lambda d: float(np.median(d[k] or [0])))
    return dict(time=median("run"), cpu=median("cpu"),
                compile=of(lambda d: d.get("compile")),
                first=of(lambda d: d["first"]),
                memory=of(lambda d: d["memory"]))


HEAD = (f"{'model':22}{'off by':>9}{'JAX CPU ms':>12}{'xpu ms':>10}{'time':>7}"
        f"{'CPU':>7}{'compile':>9}{'first':>7}{'memory':>8}{'xpu MiB':>9}")


def line(r):
    q = ratios(r)
    ms = [1e3 * np.median(r[w]["run"] or [0]) for w in ("cpu", "xpu")]
    cells = [f"{q[k]:{n}.2f}" if q[k] else f"{'-':>{n}}"
             for k, n in (("time", 7), ("cpu", 7), ("compile", 9), ("first", 7),
                          ("memory", 8))]
    return (f"{r['name']:22}{r['off']:9.1e}{ms[0]:12.2f}{ms[1]:10.2f}"
            f"{''.join(cells)}{r['xpu']['memory'] / 2**20:9.0f}"
            + ("" if r["off"] <= r["tol"] else f"  WRONG: tol {r['tol']:.0e}"))


def summary(rows):
    for k in ("time", "cpu", "compile", "first", "memory"):
        found = [ratios(r)[k] for r in rows if ratios(r)[k]]
        if found:
            yield k, float(np.exp(np.mean(np.log(found)))), min(found)


def where():
    """Machine, date and commit that raw results belong to."""
    with open("/proc/cpuinfo") as f:
        cpu = next((l.split(":")[1].strip() for l in f
                    if l.startswith("model name")), platform.machine())
    git = lambda *words: subprocess.run(["git", "-C", HERE, *words], text=True,
                                        capture_output=True).stdout.strip()
    import jax
    return dict(machine=cpu, cores=os.cpu_count(), jax=jax.__version__,
                date=datetime.date.today().isoformat(),
                load=os.getloadavg()[0], commit=git("rev-parse", "--short",
                                                    "HEAD"))


def keep(file, result, order):
    """Adds a model's result to those of a file, which has a line for each."""
    kept = [result]
    if os.path.exists(file):
        with open(file) as f:
            kept += [r for r in json.load(f) if r["name"] in order
                     and r["name"] != result["name"]]
    kept.sort(key=lambda r: order.index(r["name"]))
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "w") as f:
        f.write("[" + ",\n".join(map(json.dumps, kept)) + "]\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--only", default=".*")
    ap.add_argument("--pairs", type=int, default=11)
    ap.add_argument("--curve", type=int, default=50)
    ap.add_argument("--big", action="store_true")
    ap.add_argument("--check", action="store_true")
    ap.add_argument("--device", default=os.environ.get("SUNDOG_DEVICE", "host"))
    ap.add_argument("--out", default=os.path.join(HERE, "..", "results"))
    a = ap.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    from table import ROWS
    todo = [r for r in ROWS if re.search(a.only, r.name)
            and (a.big or not r.big)]
    found, machine = [], dict(where(), device=a.device)
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for row in todo:
            found.append(dict(measure(row, a, folder), **machine))
            print(line(found[-1]), flush=True)
            if not a.check:
                keep(os.path.join(a.out, f"models-{a.device}.json"), found[-1],
                     [r.name for r in ROWS])
    for k, mean, least in summary(found):
        print(f"{k}: geometric mean {mean:.2f}, least {least:.2f}")
    wrong = [r["name"] for r in found if not r["off"] <= r["tol"]]
    if wrong:
        sys.exit(f"bench-models: wrong: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
