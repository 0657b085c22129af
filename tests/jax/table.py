#!/usr/bin/env python3
"""docs/conformance.md from what run.py has found; prints a summary.  The page's
last part, of tests/conform, is kept as it stands.

usage: table.py [--commit C] [--devices host,cl] [--jaxlib V] [--print]
                [--judge cuda] [--strict]
--strict ends with 1 where a test fails that failures.tsv does not list.
"""
import argparse
import collections
import fnmatch
import os
import re
import sys

import results as known
from results import HERE, OUT, TOP, Results

DOC = os.path.join(TOP, "docs", "conformance.md")
KEPT = "\n## JAX's programs of single operations\n"
HEAD = """# JAX's own tests on Sundog

`make jax-tests DEVICE=host JAX_SOURCE=/path/to/jax` runs JAX's test files that one device can run, as they stand in JAX's repository at the tag of the installed wheel, with 64-bit
types off and on. This page is what it found (`tests/jax/table.py` writes it).

* **R** is a run on JAX's CPU (`JAX_PLATFORMS=cpu`) with exactly one device; **P** are the tests that pass there. Nothing is subtracted from P.
* **U** is P with `JAX_PLATFORMS=xpu,cpu`, our wheel and one device. Some tests name the platforms that they run on, and skip on one that they do not know:
* **D** is those of P that skip in U, once more, told that they are on a CPU (`jax_test_dut=cpu`).

A test passes if it passes in U, or skips in U and passes in D. One that ends its process, or takes more than the limit of time, fails. `run` is how many of P have a result.

## Running them
All of it are 51,000 tests. R takes about 5 hours of one process and is kept for each jaxlib (`build/jax-tests/R`), U and D take 1.5 hours of `host`, most of both in starting processes and
tracing; on `cl` each kernel is compiled by the driver, which is several times as slow. So most runs are samples.

| to | say |
|---|---|
| take one test of N, the same ones each time | `SAMPLE=N` |
| take some files, or one of the tiers of `tests/jax/files.tsv` | `FILES=lax,linalg`, `FILES=A` |
| split the tests over machines; the result files of all go into one folder | `SHARD=2/8` |
| use more processes, two cores each | `WORKERS=8` |
| take one width | `X64=1` |
| stop, and go on | end it; the same command goes on where it was, `tests/jax/run.py --seconds N` ends itself |
| run those of several devices (tier M), R on as many of JAX's CPU | `DEVICES=8` |
| ask another judge than JAX's CPU for R: `cuda`, JAX's own on the same card | `JUDGE=cuda` |
| run U first, and R only on what does not pass there | `LEAN=1` |
| keep results elsewhere | `OUT_OF_JAX_TESTS=folder` |

Results are JSON lines, a file for each test file, by jaxlib and commit. `tests/jax/nightly.sh` takes a fixed sample of 15 minutes and fails where a test fails that
`tests/jax/failures.tsv` does not list.
"""


def known_failures(device):
    """[(pattern of file::Class::test, cause)]"""
    with open(os.path.join(HERE, "failures.tsv")) as f:
        rows = [line.rstrip("\n").split("\t") for line in f
                if not line.startswith("#")]
    return [(pattern, cause) for d, pattern, cause in rows
            if d in ("*", device)]


def words(cause):
    """A cause without what differs from test to test."""
    cause = re.sub(r"0x[0-9a-f]+", "0x..", cause)
    cause = re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?", "N", cause)
    return re.sub(r"\s+", " ", cause)[:150]


def added(r):
    """MB that a test took at most beside what its process held when it began:
    one that has run more tests holds more of their programs."""
    return r["mb"] - r["held"]


class File:
    """What P, U and D say about one file."""

    def __init__(self, file, x64, device, commit):
        def read(mode):
            return Results(known.folder_of(mode, x64, device,
                                           commit)).read(file)
        in_u, u = read("U")
        d = read("D")[1]
        in_r, r = read("R")
        ids = in_r or in_u
        self.tests, self.in_r = len(ids or ()), len(r)
        self.p = {n for n, r in r.items() if r["status"] == "pass"}
        # With run.py --lean R is not asked what passes in U.
        self.p |= {n for n in u if u[n]["status"] == "pass" and n not in r}
        self.memory = [(added(mine[n]), added(r[n]), f"{file}::{n}", x64)
                       for mine in (u, d) for n in mine
                       if n in self.p & set(r) and mine[n]["status"] == "pass"
                       and "held" in mine[n] and "held" in r[n]]
        self.run, self.passed, self.by_d, self.failed = 0, 0, 0, []
        for name in sorted(self.p & set(u)):
            r = u[name]
            if r["status"] in ("skip", "absent"):
                if name not in d:
                    continue
                r = d[name]
                self.by_d += r["status"] == "pass"
            self.run += 1
            if r["status"] == "pass":
                self.passed += 1
            else:
                self.failed.append((f"{file}::{name}", r))


def share(passed, run):
    if not run:
        return ""
    return f"{int(1e4 * passed / run) / 100:.2f}"  # never rounded up


def table(device, commit, failed):
    """The lines of a device; adds its failures, those that are listed with
    the cause that is listed."""
    total = collections.Counter()
    listed = known_failures(device)
    memory = []
    yield (f"| {device} | tier | P | run | passed | of them by D | % | "
           "P, x64 | run | passed | of them by D | % |")
    yield "|---" * 12 + "|"
    for tier, file, _ in known.files(known.tiers(device)):
        row = [file, tier]
        for x64 in (0, 1):
            f = File(file, x64, device, commit)
            for name, r in f.failed:
                why = [c for pattern, c in listed
                       if fnmatch.fnmatchcase(name, pattern)]
                failed.append((name, x64, why[0] if why else "", r))
            row += [len(f.p), f.run, f.passed, f.by_d,
                    share(f.passed, f.run)]
            memory += f.memory
            for key, n in (("p", len(f.p)), ("run", f.run),
                           ("passed", f.passed), ("d", f.by_d),
                           ("tests", f.tests), ("in R", f.in_r)):
                total[tier, key, x64] += n
        if row[3] or row[8]:
            yield "| " + " | ".join(map(str, row)) + " |"
    for tier in known.tiers(device).split(","):
        row = [f"**all of {tier}**", tier]
        for x64 in (0, 1):
            p, run, passed, d = (total[tier, key, x64]
                                 for key in ("p", "run", "passed", "d"))
            row += [p, run, passed, d, share(passed, run)]
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""
    def of(key):
        return sum(n for (_, k, _), n in total.items() if k == key)
    run = of("run")
    passed = run - len(failed)
    yield (f"Of {run} tests of P that were run on `{device}`, {passed} pass: "
           f"{share(passed, run)} %. The files hold {of('tests')} tests, both "
           f"widths counted; R has results of {of('in R')}.")
    yield ""
    yield from causes(failed)
    yield from peaks(memory)


def runs(device, commit):
    """What was run, when and where, as the runs noted it."""
    for r in Results(known.folder_of("U", 0, device, commit)).notes():
        one = f"one test of {r['sample']}" if r["sample"] > 1 else "all tests"
        if r["shard"] != "1/1":
            one += f", part {r['shard']}"
        bits = " and ".join(("off", "on")[x] for x in r["x64"])
        yield (f"{r['date']}: {one} of {r['files'] or 'all files'} at "
               f"`{r['tag']}`, 64-bit types {bits}, on {r['cores']} cores"
               + (f", {r['minutes']} minutes." if "minutes" in r else "."))
        yield ""


def peaks(memory):
    """The ten whose memory is worst beside R's."""
    memory.sort(key=lambda m: 2 * m[1] - m[0])
    over = sum(ours > 2 * theirs + 200 for ours, theirs, *_ in memory)
    if memory:
        yield ("Peak memory of the process while a test runs, less what it held "
               f"before, in MB: {over} of {len(memory)} tests that pass take "
               "more than twice R's and 200. The ten with the most beside R:")
        yield ""
        yield "| here | R | test |"
        yield "|---|---|---|"
    for ours, theirs, name, x64 in memory[:10]:
        yield f"| {ours} | {theirs} | `{name}{' (x64)' if x64 else ''}` |"
    if memory:
        yield ""


def causes(failed):
    """Failures, the most frequent cause first, with an example."""
    groups = collections.defaultdict(list)
    for name, x64, why, r in failed:
        cause = r["cause"] if r["status"] == "fail" else (
            f"{r['status']}: {r['cause']}")
        groups[why or words(cause)].append(name + (" (x64)" if x64 else ""))
    if groups:
        yield "| failures | cause | for example |"
        yield "|---|---|---|"
    for cause, names in sorted(groups.items(), key=lambda g: -len(g[1])):
        text = cause.replace("|", "\\|").replace("<", "&lt;")
        yield f"| {len(names)} | {text} | `{names[0]}` |"
    if groups:
        yield ""


def commits(device, jaxlib):
    """What was run on a device, the newest first."""
    folder = os.path.join(OUT, device)
    names = [n for n in (os.listdir(folder) if os.path.isdir(folder) else [])
             if n.startswith(jaxlib + "-")]
    names.sort(key=lambda n: -os.path.getmtime(os.path.join(folder, n)))
    return [n.removeprefix(jaxlib + "-") for n in names]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--commit", default="")
    p.add_argument("--devices", default="host,cl,host-8")
    p.add_argument("--jaxlib", default=None)
    p.add_argument("--judge", default="cpu", help="as run.py had it")
    p.add_argument("--print", action="store_true")
    p.add_argument("--strict", action="store_true")
    args = p.parse_args()
    known.JAXLIB, known.JUDGE = args.jaxlib, args.judge
    lines, failed = [HEAD], []
    for device in args.devices.split(","):
        found = commits(device, known.jaxlib_version())
        if args.commit in found or (found and not args.commit):
            commit = args.commit or found[0]
            here = []
            lines += [f"## `{device}`, JAX {known.jaxlib_version()}, commit "
                      f"{commit}", "", *runs(device, commit),
                      *table(device, commit, here)]
            failed += here
    if len(lines) == 1:
        lines.append("No run of this version is recorded here yet.")
    text = "\n".join(lines).rstrip() + "\n"
    if args.print:
        print(text)
    else:
        with open(DOC) as f:
            kept = f.read().partition(KEPT)
        with open(DOC, "w") as f:
            f.write(text + kept[1] + kept[2])
    if args.strict and not all(why for _, _, why, _ in failed):
        sys.exit("jax-tests: a test fails that tests/jax/failures.tsv does "
                 "not list")


if __name__ == "__main__":
    main()
