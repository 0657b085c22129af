#!/usr/bin/env python3
"""JAX's own test files on `xpu`, from a checkout of JAX at the release that is
installed.  The files are not part of this project.

    SUNDOG_DEVICE=host jax_tests.py CHECKOUT python_callback_test ffi_test...

The tests ask what device they run on and skip what they do not know; they are
told `cpu` (JAX's own flag jax_test_dut), so that they all run.  What fails must
stand in jax_DEVICE.tsv with its cause, and what stands there must fail.  Each
file is a process of its own.  --all prints each test."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


class Report:
    """A pytest plugin: one line of JSON a test."""

    def __init__(self, path):
        self.file = open(path, "w")

    def pytest_runtest_logreport(self, report):
        if report.when != "call" and report.passed:
            return
        name = report.nodeid.split("/")[-1].replace(".py::", "::")
        why = str(report.longrepr or "")
        if report.skipped and isinstance(report.longrepr, tuple):
            why = report.longrepr[2]
        lines = [l for l in why.splitlines() if l.startswith("E ")] or \
            why.splitlines()[-1:]
        self.file.write(json.dumps(
            [name, report.outcome, " ".join(lines[0].split()) if lines else ""]
        ) + "\n")
        self.file.flush()


def child(path, report, only):
    import jax
    import pytest
    from jax._src import test_util  # noqa: F401  it defines the flag
    jax.config.update("jax_test_dut", "cpu")
    assert jax.devices()[0].platform == "xpu", jax.devices()
    options = ["-k", only] if only else []
    # JAX captures the standard output by itself, from where it was imported
    return pytest.main(["-q", "-s", "-p", "no:cacheprovider", "--tb=short",
                        "--rootdir", os.path.dirname(path), path] + options,
                       plugins=[Report(report)])


def run(path, only):
    """[name, outcome, reason] of each test of a file."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("JAX_", "XLA_"))}
    env["JAX_PLATFORMS"] = "xpu,cpu"
    with tempfile.NamedTemporaryFile("r", suffix=".json") as f:
        p = subprocess.run([sys.executable, __file__, "--child", path, f.name,
                            only], env=env, capture_output=True, text=True,
                           timeout=3600, cwd=os.path.dirname(path))
        rows = [json.loads(l) for l in f]
    if p.returncode not in (0, 1):
        name = os.path.basename(path)[:-3]
        rows.append([f"{name}::process", "failed",
                     f"ended with {p.returncode}: "
                     + (p.stdout + p.stderr)[-300:].replace("\n", " ")])
    return rows


def known_failures(device):
    path = os.path.join(HERE, f"jax_{device}.tsv")
    with open(path) as f:
        return dict(l.rstrip("\n").split("\t", 1) for l in f
                    if l.strip() and not l.startswith("#"))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("checkout")
    a.add_argument("files", nargs="+")
    a.add_argument("--only", default="")
    a.add_argument("--all", action="store_true")
    o = a.parse_args()
    device = os.environ.get("SUNDOG_DEVICE", "host")
    if device == "cl":
        os.environ.setdefault("SUNDOG_CL_SPLIT", "2")
    known, bad = known_failures(device), 0
    for file in o.files:
        path = os.path.abspath(os.path.join(o.checkout, "tests", file + ".py"))
        rows = run(path, o.only)
        count = {"passed": 0, "failed": 0, "skipped": 0}
        for name, outcome, why in rows:
            count[outcome] += 1
            listed = name in known
            if o.all or outcome == "failed" and not listed:
                print(f"{outcome}\t{name}\t{why}")
            if outcome == "passed" and listed:
                print(f"passes now\t{name}\t{known[name]}")
            bad += (outcome == "failed") != listed and outcome != "skipped"
        seen = {r[0] for r in rows}
        gone = [n for n in known
                if n.startswith(file + "::") and n not in seen and not o.only]
        for name in gone:
            print(f"no such test\t{name}")
        bad += len(gone)
        print(f"{file} on {device}: {count['passed']} passed, "
              f"{count['failed']} failed, {count['skipped']} skipped",
              flush=True)
    return bad != 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(*sys.argv[2:5]))
    sys.exit(main())
