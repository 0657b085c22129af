"""One model on one platform, told what to do by lines on its standard input.

usage: worker.py PLATFORM ROW [nudge]
nudge     weights in f32 are multiplied by 1 + 6e-8 or 1 - 6e-8, by turns of a
          seed: the last place that rounding leaves open
compile   first call after making the model: trace, compile, run
run N     N calls
curve N   losses of N steps from the beginning
save FILE what came out of the first call
memory    peak of the process since the model is there
Each line is answered with a line of JSON.
"""
import gc
import json
import resource
import sys
import time

import jax
import numpy as np

from table import ROWS

clock = time.perf_counter


def cpu_seconds():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def nudged(weights):
    rng = np.random.default_rng(3)

    def one(x):
        x = np.asarray(x)
        if x.dtype != np.float32:
            return x
        return x * (1 + 6e-8 * rng.choice([-1, 1], x.shape)).astype(x.dtype)
    return jax.tree.map(one, weights)


class Jitted:
    """A Program on a device.  Its arrays on the host are let go, so that the
    peak is what a user has whose weights come from a file."""

    def __init__(self, make, device, nudge):
        self.make, self.device, self.nudge = make, device, nudge
        self.begin()

    def begin(self):
        self.constants = self.state = self.inputs = None
        p = self.make()
        self.fn, self.trains = p.fn, p.trains
        weights = p.constants, p.state
        if self.nudge:
            weights = nudged(weights)
        self.constants, self.state, self.inputs = jax.block_until_ready(
            jax.device_put((*weights, p.inputs), self.device))

    def compile(self):
        start = clock()
        lowered = jax.jit(self.fn, donate_argnums=1).lower(
            self.constants, self.state, *self.inputs)
        traced = clock()
        used = cpu_seconds()
        self.call = lowered.compile()
        done = clock()
        return dict(trace=traced - start, compile=done - traced,
                    compile_cpu=cpu_seconds() - used)

    def step(self):
        self.state, out = self.call(self.constants, self.state, *self.inputs)
        return jax.block_until_ready(out)


class Own:
    """A model that compiles by itself, as Keras's do."""

    trains = True

    def __init__(self, make, device, nudge):
        assert not nudge, "its weights are its own"
        self.make = make
        self.begin()

    def begin(self):
        self.p = self.make()

    def compile(self):
        return {}

    def step(self):
        return self.p.step()


class Worker:
    def __init__(self, platform, name, nudge=""):
        row = next(r for r in ROWS if r.name == name)
        device = jax.devices(platform)[0]
        # The first compile loads the compiler: no part of any model's.
        jax.block_until_ready(jax.jit(lambda x: x + 1)(
            jax.device_put(np.ones(3), device)))
        self.model = (Own if row.own else Jitted)(row.make, device,
                                                     nudge == "nudge")
        gc.collect()
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")       # the peak is counted from here on

    def compile(self):
        start = clock()
        found = self.model.compile()
        self.out = jax.tree.map(np.array, self.model.step())
        return dict(found, first=clock() - start)

    def run(self, n):
        used, start = cpu_seconds(), clock()
        for _ in range(int(n)):
            self.model.step()
        return dict(run=(clock() - start) / int(n),
                    cpu=(cpu_seconds() - used) / int(n))

    def curve(self, n):
        if not self.model.trains:
            return dict(curve=[])
        self.model.begin()
        return dict(curve=[float(self.model.step()) for _ in range(int(n))])

    def save(self, file):
        np.savez(file, *[np.asarray(x, np.float32)
                         for x in jax.tree.leaves(self.out)])
        return {}

    def memory(self):
        with open("/proc/self/status") as f:
            line = next(l for l in f if l.startswith("VmHWM"))
        return dict(memory=int(line.split()[1]) * 1024)


def main():
    told, sys.stdout = sys.stdout, sys.stderr     # libraries print, too
    worker = Worker(*sys.argv[1:])
    print(json.dumps(dict(ready=True)), file=told, flush=True)
    for line in sys.stdin:
        verb, *rest = line.rstrip("\n").split(" ", 1)
        print(json.dumps(getattr(worker, verb)(*rest)), file=told, flush=True)


if __name__ == "__main__":
    main()
