"""Runs JAX's tests of one file in this process and tells each result at once.

usage: worker.py REQUEST_FILE FOLDER FILE DESCRIPTOR   (run.py starts it)

The request is JSON: `only` (the ids to run, null: all of `cut`), `dut` (what
the tests shall think they run on, or null), `plugins` (that JAX may load: "none",
"ours" or "all"; JAX's for CUDA takes 300 MB, which the first test of each
process would be charged with) and `most_mb`.  What is told goes to the
descriptor, a JSON object a line: {"ids": [...]} once, then {"start": id} and
{"id": ..., "status": ...} for each test, {"end": code} last.  A process that
dies or hangs has said by then which test it was in.
"""
import json
import os
import sys

import pytest

import peak
import results as known

WORST = ["pass", "skip", "fail"]
told = []  # the file that results go to; a child of a test has none


def tell(**what):
    told[0].write(json.dumps(what) + "\n")


def name_of(nodeid):
    return nodeid.split("::", 1)[1]


def cause_of(report):
    """One line: the exception, without its traceback."""
    lines = [line[1:].strip() for line in report.longreprtext.splitlines()
             if line.startswith("E ")]
    lines = [line for line in lines if line] or [report.longreprtext[-200:]]
    text = lines[0]
    if "Not equal to tolerance" in report.longreprtext:
        worst = [line for line in lines if line.startswith("Max absolute")]
        text = "values differ: " + (worst[0] if worst else text)
    return text[:300]


class Teller:
    def __init__(self, request, file):
        self.file = file
        self.only, self.cut = request["only"], request["cut"]
        self.most_mb = request["most_mb"]
        self.result = None

    def pytest_sessionstart(self, session):
        self.session = session

    def pytest_collection_modifyitems(self, config, items):
        tell(ids=[name_of(i.nodeid) for i in items])
        only = set(n for n in (name_of(i.nodeid) for i in items)
                   if known.chosen(self.file, n, self.cut)
                   ) if self.only is None else set(self.only)
        items[:] = [i for i in items if name_of(i.nodeid) in only]

    def pytest_runtest_logstart(self, nodeid, location):
        self.result = {"status": "pass", "cause": "", "seconds": 0.0}
        peak.begin()
        self.held = peak.megabytes("VmRSS")  # earlier tests' programs are in it
        tell(start=name_of(nodeid))

    # A test has reports of its setup, call and teardown, and of subtests.
    def pytest_runtest_logreport(self, report):
        status = {"passed": "pass", "skipped": "skip"}.get(report.outcome,
                                                           "fail")
        r = self.result
        r["seconds"] += report.duration
        if status == "fail" and report.when == "teardown":
            # What a test left behind is not the next one's to meet, and one
            # that skipped halfway may not have cleaned up: it is still a skip.
            self.session.shouldstop = "a fresh process goes on"
            if r["status"] == "skip":
                return
        if WORST.index(status) > WORST.index(r["status"]):
            r["status"] = status
            r["cause"] = (cause_of(report) if status == "fail" else
                          str(report.longrepr[2] if isinstance(
                              report.longrepr, tuple) else "")[:200])

    def pytest_runtest_logfinish(self, nodeid, location):
        tell(id=name_of(nodeid), **self.result, mb=peak.megabytes("VmHWM"),
             held=self.held)
        if peak.megabytes("VmRSS") > self.most_mb:
            self.session.shouldstop = "a fresh process goes on"

    def pytest_collectreport(self, report):
        if report.failed:
            tell(broken=cause_of(report))


def ours():
    import sundog.jax_plugin
    sundog.jax_plugin.initialize()


def main(request, folder, file, descriptor):
    told.append(os.fdopen(int(descriptor), "w", buffering=1))
    with open(request) as f:
        request = json.load(f)
    sys.path.insert(0, folder)  # a test's child imports its file, too
    # JAX's tests read their flags from here.
    sys.argv = [file] + (["--jax_test_dut=" + request["dut"]]
                         if request["dut"] else [])
    import jax._src.test_util as jtu
    jtu.request_cpu_devices = lambda n: None  # as many as on ours
    from jax._src import xla_bridge
    if request["plugins"] != "all":
        xla_bridge.discover_pjrt_plugins = (
            ours if request["plugins"] == "ours" else lambda: None)
    code = pytest.main(
        ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir",
         folder, "-c", os.path.join(folder, "pyproject.toml"),
         os.path.join(folder, "tests", file + ".py")],
        plugins=[Teller(request, file)])
    tell(end=int(code))
    # What is left needs no destructors; one that hangs would cost minutes.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
