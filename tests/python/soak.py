"""Eight threads compile, execute, transfer and delete at random: every result
is checked, and the process's memory must be flat after a warm-up.  usage:
soak.py SECONDS [SEED]   (on the device that SUNDOG_DEVICE names)"""
import gc
import queue
import random
import resource
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np

THREADS = 8
XPU = jax.devices("xpu")
# Seconds until memory has its level, and what a heap's grain may add then:
# with Intel's OpenCL runtime the first 500 programs take some hundred MiB.
WARM, FLAT = (5, 24 << 20) if "host" in XPU[0].device_kind else (240, 32 << 20)


def program(kind, n):
    """A function never seen before, and the same in NumPy (f64 inside)."""
    if kind == 0:
        return (lambda x: jnp.tanh(x) * n + 1,
                lambda x: np.tanh(x) * n + 1)
    if kind == 1:
        return (lambda x: jax.nn.softmax(x * n, axis=-1),
                lambda x: softmax(x * np.float32(n)))
    if kind == 2:
        return (lambda x: jnp.sort(x, axis=0) + n,
                lambda x: np.sort(x, axis=0) + n)
    return (lambda x: (x @ x.T) / n, lambda x: (x @ x.T) / n)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Worker(threading.Thread):
    def __init__(self, seed, shared):
        super().__init__()
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.shared = shared  # arrays and functions that threads hand around
        self.stop = threading.Event()
        self.counts = dict.fromkeys(
            ("compiled", "executed", "moved", "deleted"), 0)
        self.error = None

    def run(self):
        try:
            while not self.stop.is_set():
                self.random.choice((self.compile, self.execute, self.execute,
                                    self.transfer, self.delete))()
        except BaseException as e:  # told by the main thread
            self.error = e

    def data(self):
        shape = self.random.choice(((8, 16), (64, 48), (3, 5), (256, 300)))
        return self.numbers.standard_normal(shape, np.float32)

    def check(self, got, want):
        np.testing.assert_allclose(np.asarray(got), want, rtol=2e-4, atol=2e-4)

    def compile(self):
        n = self.random.randint(1, 1 << 30) / (1 << 20)
        f, want = program(self.random.randrange(4), n)
        x = self.data().astype(np.float32)
        device = self.random.choice(XPU)
        compiled = jax.jit(f).lower(jax.device_put(x, device)).compile()
        self.check(compiled(jax.device_put(x, device)),
                   want(x.astype(np.float64)))
        self.give((compiled, x.shape, want, device))
        self.counts["compiled"] += 1

    def execute(self):
        item = self.take()
        if not item:
            return
        compiled, shape, want, device = item
        x = self.numbers.standard_normal(shape, np.float32)
        y = [compiled(jax.device_put(x, device))
             for _ in range(self.random.randint(1, 5))]
        for v in y:
            self.check(v, want(x.astype(np.float64)))
        self.give(item)
        self.counts["executed"] += len(y)

    def transfer(self):
        x = self.data()
        y = jax.device_put(x, self.random.choice(XPU))
        z = jax.device_put(y, self.random.choice(XPU))
        if y.devices() != z.devices():  # else they are one
            y.delete()
        assert np.array_equal(np.asarray(z), x)
        self.counts["moved"] += 1

    def delete(self):
        x = jax.device_put(self.data(), self.random.choice(XPU))
        y = x + 1  # may still run when its argument goes
        x.delete()
        try:
            np.asarray(x)
        except RuntimeError as e:
            assert "deleted" in str(e), e
        else:
            raise AssertionError("a deleted array was read")
        if self.random.random() < 0.5:
            y.delete()
        self.counts["deleted"] += 1

    def give(self, item):
        try:
            self.shared.put_nowait(item)
        except queue.Full:
            pass  # dropped: the program goes

    def take(self):
        try:
            return self.shared.get_nowait()
        except queue.Empty:
            return None


def resident():
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def settled(seconds=60):
    """Bytes in use on each device, once what is still in flight has ended:
    nobody waits for the last `x + 1` of Worker.delete."""
    end = time.monotonic() + seconds
    while True:
        used = [d.memory_stats()["bytes_in_use"] for d in XPU]
        if not any(used) or time.monotonic() > end:
            return used
        time.sleep(0.01)


def main():
    seconds = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() % 1000000
    print("seed", seed, flush=True)
    shared = queue.Queue(32)
    workers = [Worker(seed * THREADS + i, shared) for i in range(THREADS)]
    start = time.monotonic()
    for w in workers:
        w.start()
    times, sizes = [], []
    while time.monotonic() - start < seconds and not any(
            w.error for w in workers):
        time.sleep(min(1, seconds / 40))
        times.append(time.monotonic() - start)
        sizes.append(resident())
    for w in workers:
        w.stop.set()
    for w in workers:
        w.join()
    for w in workers:
        if w.error:
            raise w.error
    total = {k: sum(w.counts[k] for w in workers) for k in workers[0].counts}
    stats = settled()
    print(", ".join(f"{v} {k}" for k, v in total.items()),
          f"from {THREADS} threads in {seconds:.0f} s, device memory in use "
          f"{stats}, resident {max(sizes) >> 20} MiB")
    assert not any(stats)
    warm = [s for t, s in zip(times, sizes) if t > WARM]
    if len(warm) < 12:
        print("too short to judge memory")
        return
    # What grows, grows between the first and the last third of it.
    n = len(warm) // 3
    grown = max(warm[-n:]) - max(warm[:n])
    print(f"resident memory after the warm-up: {grown / 1048576:+.1f} MiB")
    assert grown < FLAT, sizes


if __name__ == "__main__":
    main()
