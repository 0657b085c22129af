#!/usr/bin/env python3
"""JAX's own tests on a device of ours; docs/conformance.md says what counts.

  R  on the judge, JAX's CPU, with as many devices (one); run once and kept
  P  what passes in R
  U  P on `xpu`
  D  of those, what skips in U, told that it is on a CPU

A test passes if it passes in U, or skips in U and passes in D.  With --lean U
runs all tests first, and R only those that do not pass in U: R of all takes
hours, which another judge (--judge=cuda) has no machine for.  Tests run in
processes that are replaced when they die, hang or grow.  Results are appended
as they come: a run that is stopped goes on where it was.
"""
import argparse
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

import results as known
from results import HERE, Results

OURS = ("JAX_", "XLA_", "SUNDOG_", "PJRT_")  # settings that we make
TO_START = 300  # seconds until a process has collected its tests
SPLIT = {"host": "SUNDOG_HOST_DEVICES", "cl": "SUNDOG_CL_SPLIT"}
ONCE_MORE = 2  # times that a file may end its process before a test starts


class Job:
    """A file, or a part of one, in one mode."""

    def __init__(self, run, file, mode, x64, part=0, parts=1):
        self.run, self.file, self.mode, self.x64 = run, file, mode, x64
        self.part, self.parts = part, parts
        self.results = run.results[mode, x64]

    def __str__(self):
        part = f" {self.part + 1}/{self.parts}" if self.parts > 1 else ""
        return f"{self.mode} x64={self.x64} {self.file}{part}"

    def environment(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        env.update(JAX_ENABLE_X64=str(self.x64), JAX_PLATFORMS="cpu",
                   PYTHONFAULTHANDLER="1")
        n = self.run.args.devices
        if n > 1:
            env["JAX_NUM_CPU_DEVICES"] = str(n)
        if self.mode == "R" and known.JUDGE != "cpu":
            env.update(JAX_PLATFORMS=known.JUDGE + ",cpu",
                       XLA_PYTHON_CLIENT_PREALLOCATE="false")
        if self.mode != "R":
            device = self.run.args.device
            env.update(JAX_PLATFORMS="xpu,cpu", SUNDOG_DEVICE=device)
            if n > 1:
                env[SPLIT[device]] = str(n)
        return env

    def plugins(self):
        """Those that JAX may load: a process holds 300 MB more with CUDA's."""
        if self.mode != "R":
            return "ours"
        return "none" if known.JUDGE == "cpu" else "all"

    def cut(self):
        """What of the file is in the sample, the shard and the part."""
        return [(0, self.run.args.sample), self.run.shard,
                (self.part, self.parts)]

    def wanted(self):
        """Ids as far as they are known; None: the file has to say."""
        if self.mode == self.run.stages[0]:
            return self.results.read(self.file)[0]
        u = self.run.results["U", self.x64].read(self.file)[1]
        if self.mode == "R":
            return {n for n in u if u[n]["status"] != "pass"}
        p = self.run.results["R", self.x64].passed(self.file)
        if self.mode == "U":
            return p
        return {n for n in p if u.get(n, {}).get("status") in ("skip",
                                                               "absent")}

    def left(self):
        """Ids to run; None: all that the file has."""
        wanted = self.wanted()
        if wanted is None:
            return None
        done = self.results.read(self.file)[1]
        return [n for n in sorted(wanted)
                if n not in done and known.chosen(self.file, n, self.cut())]


class Worker:
    """A process with tests of a job, from its start to its end."""

    def __init__(self, job, only, cores):
        self.job, self.only = job, only
        self.current, self.said, self.ended = None, 0, False
        self.broken, self.buffer = "", b""
        args = job.run.args
        self.request = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump({"only": only, "cut": job.cut(), "most_mb": args.most_mb,
                   "dut": "cpu" if job.mode == "D" else None,
                   "plugins": job.plugins()}, self.request)
        self.request.flush()
        self.log = tempfile.TemporaryFile()
        self.pipe, write = os.pipe()
        self.process = subprocess.Popen(
            (["taskset", "-c", cores] if cores else []) +
            [sys.executable, os.path.join(HERE, "worker.py"),
             self.request.name, job.run.source, job.file, str(write)],
            env=job.environment(), stdout=self.log, stderr=self.log,
            stdin=subprocess.DEVNULL, cwd=tempfile.gettempdir(),
            start_new_session=True, pass_fds=(write,))
        os.close(write)

    def hear(self):
        """Turns what is told into results, to the end; stops what hangs, and
        everything when the run's time is over."""
        limit, until = self.job.run.args.limit, self.job.run.until
        while True:
            most = limit if self.current else TO_START
            wait = max(0, min(most, until - time.time()))
            ready, _, _ = select.select([self.pipe], [], [], wait)
            data = os.read(self.pipe, 1 << 16) if ready else b""
            if not data:
                break
            self.buffer += data
            *lines, self.buffer = self.buffer.split(b"\n")
            for line in lines:
                self.take(json.loads(line))
        self.stop()
        if not self.current or time.time() >= until:
            return
        self.said += 1
        if ready:
            self.lost("crash", self.last_words())
        else:
            self.lost("timeout", f"no end within {limit} s", limit)

    def lost(self, status, cause, seconds=0):
        self.job.results.add(self.job.file, id=self.current, status=status,
                             cause=cause, seconds=seconds, mb=0)

    def take(self, told):
        results, file = self.job.results, self.job.file
        if "ids" in told:
            if self.only is None:
                results.add(file, ids=told["ids"])
            else:
                for name in set(self.only) - set(told["ids"]):
                    self.said += 1
                    results.add(file, id=name, status="absent", seconds=0,
                                mb=0, cause="not among the file's tests here")
        elif "start" in told:
            self.current = told["start"]
        elif "id" in told:
            self.current = None
            self.said += 1
            results.add(file, **told)
        elif "broken" in told:
            self.broken = told["broken"]
        else:
            self.ended = True

    def last_words(self):
        """What a process that died left: its signal, its last line."""
        code = self.process.returncode
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").splitlines()
        fatal = [l for l in lines if "Fatal" in l or "Check failed" in l]
        how = (f"signal {signal.Signals(-code).name}" if code < 0
               else f"status {code}")
        return f"{how}: {(fatal or lines or [''])[-1][:200]}"

    def stop(self):
        os.close(self.pipe)
        if self.ended:
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                pass
        elif self.process.poll() is None:
            time.sleep(1)  # one that dies is let die, to see of what
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Run:
    def __init__(self, args):
        self.args = args
        self.source = known.checkout(args.source, args.tag)
        i, n = args.shard.split("/")
        self.shard = int(i) - 1, int(n)
        self.stages = "URD" if args.lean else "RUD"
        self.until = time.time() + (args.seconds or float("inf"))
        commit = args.commit or known.our_commit()
        self.results = {
            (mode, x64): Results(known.folder_of(
                mode, x64, known.label(args.device, args.devices), commit))
            for mode in "RUD" for x64 in (0, 1)}
        self.say_lock = threading.Lock()
        self.began = time.time()

    def say(self, text):
        with self.say_lock:
            print(f"{time.time() - self.began:7.0f} s  {text}", flush=True)

    def do(self, job, cores):
        """Processes one after the other until nothing is left."""
        silent = 0
        while time.time() < self.until:
            only = job.left()
            if only is not None and not only:
                return
            w = Worker(job, only, cores)
            w.hear()
            if w.broken:
                return self.say(f"{job}: {w.broken}")
            silent = 0 if w.said else silent + 1
            if silent > ONCE_MORE:
                return self.say(f"{job}: no test ends: {w.last_words()}")

    def jobs_of(self, modes, x64s):
        for x64 in x64s:
            for _, file, n in known.files(self.args.files or known.tiers(
                    known.label(self.args.device, self.args.devices))):
                n //= self.args.sample * self.shard[1]
                parts = n // self.args.job + 1 if self.args.workers > 1 else 1
                for mode in modes:
                    yield [Job(self, file, mode, x64, part, parts)
                           for part in range(parts)]

    def stage(self, modes):
        """All jobs of some modes, on all workers."""
        todo = queue.SimpleQueue()
        for jobs in self.jobs_of(modes, self.args.x64):
            for job in jobs:
                todo.put(job)

        def work(n):
            while True:
                try:
                    job = todo.get_nowait()
                except queue.Empty:
                    return
                if time.time() < self.until:
                    self.do(job, self.cores(n))
                    self.say(str(job))
        threads = [threading.Thread(target=work, args=(n,))
                   for n in range(self.args.workers)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def cores(self, n):
        """Two cores a worker where there are many workers."""
        have = sorted(os.sched_getaffinity(0))
        if self.args.workers < 3 or len(have) < 4:
            return None
        at = 2 * n % (len(have) - 1)
        return f"{have[at]},{have[at + 1]}"


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--device", default="host",
                   help="host, cl, or cpu: JAX's own, R alone")
    p.add_argument("--devices", type=int, default=1,
                   help="so many of it, and of JAX's CPU")
    p.add_argument("--judge", default="cpu", choices=["cpu", "cuda"],
                   help="JAX's own platform that R runs on")
    p.add_argument("--lean", action="store_true",
                   help="U runs all tests, R only those that do not pass in U")
    p.add_argument("--files", default="",
                   help="names or tiers by comma; A,B when not given, M of "
                   "several devices")
    p.add_argument("--x64", default="0,1", type=lambda s: [
        int(x) for x in s.split(",")])
    p.add_argument("--shard", default="1/1", help="I/N")
    p.add_argument("--sample", type=int, default=1, help="one test of N")
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--job", type=int, default=400,
                   help="with several workers: about so many tests a process")
    p.add_argument("--limit", type=int, default=300, help="seconds a test")
    p.add_argument("--seconds", type=int, default=0,
                   help="stops after that, to be gone on with")
    p.add_argument("--most-mb", type=int, default=3000,
                   help="a process that holds more is replaced")
    p.add_argument("--source", required=True,
                   help="JAX's repository: a checkout, or a bare one")
    p.add_argument("--tag", default="jax-v" + known.jaxlib_version())
    p.add_argument("--commit", default="", help="ours, if not the checkout's")
    return p.parse_args()


def main():
    args = arguments()
    known.JUDGE = args.judge
    run = Run(args)
    for mode in "R" if run.args.device == "cpu" else run.stages:
        run.stage(mode)
    if run.args.device != "cpu":
        run.results["U", 0].note(
            tag=run.args.tag, files=run.args.files, x64=run.args.x64,
            sample=run.args.sample, shard=run.args.shard,
            cores=len(os.sched_getaffinity(0)),
            date=time.strftime("%Y-%m-%d"),
            minutes=int((time.time() - run.began) / 60) + 1)


if __name__ == "__main__":
    main()
