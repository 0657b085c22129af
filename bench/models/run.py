"""Models that people run, ours against JAX's CPU, in alternating turns.

usage: run.py [--only REGEX] [--pairs N] [--seconds S] [--curve N] [--big]
              [--device D] [--out FOLDER] [--check] [--nudge] [--limit S]

Each model gets a process on JAX's CPU and one on ours, which take turns, so
that a busy machine meets both: N turns, or as many as S seconds have.  What the
first call computes and the losses of training are compared.  A model that is
wrong, dies or takes longer than --limit for an answer fails the run at its end;
the other models are measured all the same.  Raw results go to FOLDER
(bench/results) as JSON, a model's in place of those it had, and machines without
AVX-512 have files of their own (-avx2); plot.py draws them.
--check: right or not, no times.  --nudge: the same of JAX's CPU with weights that
differ in their last place, in the place of ours: what a tolerance cannot be
below.
"""
import argparse
import datetime
import json
import os
import platform
import re
import select
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import bench  # noqa: E402


class Failed(Exception):
    """A model's process gave no answer."""


class Process:
    """A worker; its end is the end of the block."""

    def __init__(self, which, name, device, limit, nudge=False):
        on = "cpu" if nudge else which
        env = bench.environment(on)
        env.update(PYTHONPATH=HERE, SUNDOG_DEVICE=device)
        self.which, self.limit = which, limit
        self.errors = tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "worker.py"), on, name,
             *["nudge"] * nudge],
            env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()

    def answer(self):
        if not select.select([self.p.stdout], [], [], self.limit)[0]:
            raise Failed(f"{self.which}: no answer in {self.limit} s")
        line = self.p.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise Failed(f"{self.which} ended with {self.p.wait()}\n"
                         + self.errors.read()[-3000:])
        return json.loads(line)

    def __call__(self, *words):
        try:
            print(*words, file=self.p.stdin, flush=True)
        except BrokenPipeError:
            pass                    # answer() says what it died of
        return self.answer()


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


def turns(both, raw, a):
    """Calls of each in turn, as many as a's pairs and seconds allow."""
    once = sum(p("run", 1)["run"] for p in both)
    each = max(1, int(0.2 / max(once, 1e-6)))
    for _ in range(max(1, min(a.pairs, int(a.seconds / max(once, 1e-6))))):
        for p in both:
            found = p("run", each)
            for k in ("run", "cpu"):
                raw[p.which][k].append(found[k])


def measure(row, a, folder):
    """One model's raw results."""
    begin = lambda which, nudge=False: Process(which, row.name, a.device,
                                               a.limit, nudge)
    with begin("cpu") as cpu, begin("xpu", a.nudge) as xpu:
        both = cpu, xpu
        for p in both:
            p.answer()              # it is there
        raw = {p.which: dict(p("compile"), run=[], cpu=[]) for p in both}
        wrong = off(results(xpu, folder), results(cpu, folder))
        if not a.check:
            turns(both, raw, a)
        for p in both:
            raw[p.which].update(p("memory"), **p("curve", a.curve))
    x, y = (np.array(raw[w]["curve"]) for w in ("xpu", "cpu"))
    if x.size:
        least = np.maximum(np.abs(y), 1e-4 * np.abs(y[0]))
        wrong = float(np.max([wrong, np.max(np.abs(x - y) / least)]))
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


def is_right(r):
    return r["off"] <= r["tol"]      # NaN is not


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
            + ("" if is_right(r) else f"  WRONG: tol {r['tol']:.0e}"))


def summary(rows):
    for k in ("time", "cpu", "compile", "first", "memory"):
        found = [ratios(r)[k] for r in rows if ratios(r)[k]]
        if found:
            yield k, float(np.exp(np.mean(np.log(found)))), min(found)


def cpuinfo(key, default=""):
    with open("/proc/cpuinfo") as f:
        return next((l.split(":")[1].strip() for l in f
                     if l.startswith(key)), default)


def level():
    """What tells machines apart that are called the same, and in the names of
    their files."""
    return "" if "avx512f" in cpuinfo("flags").split() else "-avx2"


def where():
    """Machine, date and commit that raw results belong to."""
    cpu = cpuinfo("model name", platform.machine())
    cpu += " (without AVX-512)" * (level() == "-avx2")
    git = lambda *words: subprocess.run(["git", "-C", HERE, *words], text=True,
                                        capture_output=True).stdout.strip()
    import jax
    return dict(machine=cpu, cores=len(os.sched_getaffinity(0)),
                jax=jax.__version__,
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
    ap.add_argument("--seconds", type=float, default=90)
    ap.add_argument("--curve", type=int, default=50)
    ap.add_argument("--big", action="store_true")
    ap.add_argument("--check", action="store_true")
    ap.add_argument("--nudge", action="store_true")
    ap.add_argument("--limit", type=float, default=600)
    ap.add_argument("--device", default=os.environ.get("SUNDOG_DEVICE", "host"))
    ap.add_argument("--out", default=os.path.join(HERE, "..", "results"))
    a = ap.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    from table import ROWS
    todo = [r for r in ROWS if re.search(a.only, r.name)
            and (a.big or not r.big) and not (a.nudge and r.own)]
    a.check |= a.nudge
    if not todo:
        sys.exit(f"bench-models: no model is called {a.only!r}: "
                 + ", ".join(r.name for r in ROWS))
    found, failed, machine = [], [], dict(where(), device=a.device)
    start = time.perf_counter()
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for row in todo:
            try:
                r = dict(measure(row, a, folder), **machine)
            except Failed as e:
                failed.append(row.name)
                print(f"{row.name:22}FAILED: {e}", flush=True)
                continue
            found.append(r)
            print(line(r), flush=True)
            if not a.check:
                keep(os.path.join(a.out, f"models-{a.device}{level()}.json"), r,
                     [r.name for r in ROWS])
    for k, mean, least in summary(found):
        print(f"{k}: geometric mean {mean:.2f}, least {least:.2f}")
    print(f"{len(todo)} models in {time.perf_counter() - start:.0f} s")
    failed += [r["name"] for r in found if not is_right(r)]
    if failed:
        sys.exit(f"bench-models: wrong or failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
