"""JAX's shipped primitive programs on our device against JAX's CPU.

usage: conform.py [--only REGEX] [--x64] [--every N [--first K]] [--jobs N]
SUNDOG_DEVICE says where; `eval` is no device but the reference evaluator.
Results go to build/conform/DEVICE.tsv, with --x64 to DEVICE-x64.tsv (name,
status, seconds, worst error or message, MB that it took on the device, on JAX's
CPU); rows of programs that did not run stay.  Memory is the peak of the process
while the program is compiled and run, beyond what the process held before.  DEVICE.tsv beside this file lists known failures, patterns of names with
the reason; exit status 1 says that something else failed.  A program that ends
its process, or does not end, is a "crash"; the rest still runs.
"""
import argparse
import ctypes
import fnmatch
import multiprocessing.connection
import os
import re
import sys
import time
import zlib

DEVICE = os.environ.get("SUNDOG_DEVICE", "host")
os.environ.setdefault("JAX_PLATFORMS", "cpu" if DEVICE == "eval" else "xpu,cpu")
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
sys.path.append(os.path.join(HERE, "..", "jax"))
HANG = 120   # seconds a program may take
BAD = ("fail", "crash")

# Multiples of JAX's default tolerance where 2 is not enough, by group and type
# of the result: what the worst program needs on host, with libraries and
# without, rounded up.  What the evaluator needs, which is exact but for the last
# rounding, is JAX's CPU's own share of it.
TOLERANCE = {
    # sums of 60 and more products up to 100 that cancel, added in the type:
    # 26.2, 28.6, 13.5 and 7.6, of which the CPU's 13.1, 12.5, 10.1 and 7.4; the
    # first is 13.8 of ours and 7.5 of the CPU's, to either side of the true sum
    "conv_general_dilated": {"float32": 27, "float64": 32, "complex64": 16,
                             "complex128": 10},
    # running sums that the CPU rounds at each step, we at the end: 2.3 and 3.6,
    # all the CPU's
    "cumsum": {"bfloat16": 3, "float16": 4},
    # sums of updates that the CPU rounds after each, we at the end: 2.8
    "scatter_add": {"float16": 3},
    # exp(y log x) magnifies the logarithm's error: 3.5, of which the CPU's 2.5
    "pow": {"complex128": 4},
    # 4.4, all the CPU's, up to 4.4e-15 from the true value
    "log1p": {"float64": 5},
}


def prepare(x64):
    import jax
    jax.config.update("jax_enable_x64", x64)
    jax.config.update("jax_default_matmul_precision", "highest")  # on cuda f32 is tf32 below it
    from jax._src.internal_test_util import test_harnesses
    return test_harnesses.all_harnesses


def settle_ties(harness, args, leaves):
    """Equal elements may come in any order from an unstable sort, and any of
    them from a top-k: results with such ties put into one order.  What the
    keys must be is compared before."""
    import numpy as np
    if harness.group_name == "sort":
        axis = harness.params["dimension"]
        order = np.lexsort(leaves[::-1], axis=axis)
        return [np.take_along_axis(x, order, axis) for x in leaves]
    value, index = leaves
    np.testing.assert_array_equal(
        np.take_along_axis(np.asarray(args[0]), index, -1), value)
    for row in index.reshape(-1, index.shape[-1]):
        assert len(set(row)) == len(row)
    return [value]


def tied_keys(harness):
    """How many results are the same whatever the order of ties; None: all."""
    if harness.group_name == "sort" and not harness.params["is_stable"]:
        return harness.params["num_keys"]
    return 1 if harness.group_name == "approx_top_k" else None


def make_args(harness):
    """Seeded by the program's name."""
    import jax
    import numpy as np
    rng = np.random.RandomState(zlib.crc32(harness.fullname.encode())
                                & 0x7fffffff)
    with jax.default_device(jax.devices("cpu")[0]):
        return harness.dyn_args_maker(rng)


def widened(harness, args):
    """JAX's CPU sums c64 in c64 even where c128 is asked for: as a reference
    it gets the operands in the type of the result, which changes no value."""
    import numpy as np
    to = harness.params.get("preferred_element_type")
    if to is None:
        return args
    return [x.astype(to) if x.dtype.kind == np.dtype(to).kind and
            x.dtype.itemsize < np.dtype(to).itemsize else x for x in args]


def run_on(device, harness, args):
    """The results on a device of JAX; device None: by the evaluator."""
    import jax

    import oracle
    if device is None:
        return oracle.evaluate(harness.dyn_fun, *args)
    with jax.default_device(device):
        got = jax.tree.leaves(jax.block_until_ready(
            jax.jit(harness.dyn_fun)(*jax.device_put(args, device))))
    assert all(x.devices() == {device} for x in got)
    return [plain(x) for x in got]


def plain(x):
    """As an array of numpy's; keys of random numbers are their bits."""
    import jax
    import numpy as np
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)


def measured(mb, *call):
    """The results; appends to mb by how many the process grew for them.  What
    it has freed before goes back to the system, or nothing would grow."""
    import peak
    ctypes.CDLL(None).malloc_trim(0)
    peak.begin()
    before = peak.megabytes("VmRSS")
    got = run_on(*call)
    mb.append(max(0, peak.megabytes("VmHWM") - before))
    return got


def run_one(harness, mb):
    import jax
    import compare
    import properties
    by_property = harness.group_name in properties.GROUPS
    args = make_args(harness)
    try:
        want = measured(mb, jax.devices("cpu")[0], harness,
                        widened(harness, args))
    except Exception as error:
        if not by_property:
            return "skip", f"JAX's CPU: {str(error)[:150]}"
        want = jax.tree.leaves(jax.eval_shape(harness.dyn_fun, *args))
    got = measured(mb, None if DEVICE == "eval" else jax.devices("xpu")[0],
                   harness, args)
    assert len(got) == len(want)
    if by_property:
        worst = properties.check(harness, args, got, want)
        return "ok", f"{worst:.3g} n eps"
    keys = tied_keys(harness)
    worst = [0.0]
    if keys and keys < len(got):
        for g, w in zip(got[:keys], want[:keys]):
            worst.append(compare.check(g, w))
        got, want = (settle_ties(harness, args, x) for x in (got, want))
    tol = TOLERANCE.get(harness.group_name, {})
    for g, w in zip(got, want):
        worst.append(compare.check(g, w, tol.get(str(g.dtype), 2)))
    return "ok", f"{max(worst):.3g} tolerances"


def worker(k, first, a, pipe):
    """Runs the programs of residue k from number `first` on; says which one
    it is at before each, so that the parent knows what a crash is due to."""
    harnesses = prepare(a.x64)
    chosen = [h for h in harnesses if re.search(a.only, h.fullname)][a.first::a.every]
    for i in range(first, len(chosen), a.jobs):
        h, start, mb = chosen[i], time.perf_counter(), []
        pipe.send((i, h.fullname))
        try:
            status, note = run_one(h, mb)
        except Exception as error:
            status = "fail"
            note = f"{type(error).__name__}: {error}"
        pipe.send((h.fullname, status, f"{time.perf_counter() - start:.3f}",
                   " ".join(note.split())[:300],
                   *(map(str, mb[::-1]) if len(mb) == 2 else ("", ""))))
    pipe.send(None)


class Worker:
    """A process that runs a share of the programs; after a crash or a hang
    another one goes on behind the program that did it."""

    def __init__(self, k, a):
        self.k, self.a = k, a
        self.ctx = multiprocessing.get_context("spawn")
        self.start(k)

    def start(self, first):
        self.next, self.name, self.since = first, None, time.monotonic()
        self.pipe, end = self.ctx.Pipe(duplex=False)
        self.process = self.ctx.Process(
            target=worker, args=(self.k, first, self.a, end))
        self.process.start()
        end.close()

    def step(self, ready):
        """A row, None when nothing is to be told, or False at the end."""
        if ready:
            try:
                got = self.pipe.recv()
            except EOFError:
                return self.crashed("exit status {}")
            self.since = time.monotonic()
            if got is None:
                self.process.join()
                return False
            if len(got) == 6:
                self.name = None
                return got
            self.next, self.name = got
        elif time.monotonic() - self.since > HANG:
            self.process.kill()
            return self.crashed(f"no end after {HANG} s")
        return None

    def crashed(self, why):
        self.process.join()
        if self.name is None:
            raise SystemExit("conform: a worker died outside programs, "
                             f"exit status {self.process.exitcode}")
        row = (self.name, "crash", f"{time.monotonic() - self.since:.3f}",
               why.format(self.process.exitcode), "", "")
        self.start(self.next + self.a.jobs)
        return row


def read_known():
    """Names, or patterns of names, with the reason why they fail."""
    path = os.path.join(HERE, f"{DEVICE}.tsv")
    if not os.path.exists(path):
        return {}
    return dict(l.rstrip("\n").split("\t", 1) for l in open(path)
                if l.strip() and not l.startswith("#"))


def known_as(known, name):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in known)


def write_table(name, rows):
    """What ran replaces its rows of the table; the rest stays."""
    folder = os.path.join(HERE, "..", "..", "build", "conform")
    path = os.path.join(folder, name + ".tsv")
    os.makedirs(folder, exist_ok=True)
    table = {}
    if os.path.exists(path):
        table = {l.split("\t", 1)[0]: l for l in open(path)}
    table.update((r[0], "\t".join(r) + "\n") for r in rows)
    with open(path, "w") as f:
        f.writelines(table[k] for k in sorted(table))


def print_peaks(rows):
    """The ten programs that take the most memory beside JAX's CPU."""
    mb = sorted(((int(r[4]), int(r[5]), r[0]) for r in rows if r[4]),
                key=lambda m: m[0] - 2 * m[1], reverse=True)
    over = sum(here > 2 * theirs + 200 for here, theirs, _ in mb)
    print(f"memory: {over} of {len(mb)} take more than twice JAX's CPU and "
          "200 MB; the most, MB here and there:")
    for here, theirs, name in mb[:10]:
        print(f"  {here:5d} {theirs:5d}  {name}")


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--only", default=".*")
    ap.add_argument("--x64", action="store_true")
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--first", type=int, default=0)
    ap.add_argument("--jobs", type=int, default=2)
    a = ap.parse_args()
    known = read_known()
    workers = [Worker(k, a) for k in range(a.jobs)]
    rows = []
    while workers:
        ready = multiprocessing.connection.wait([w.pipe for w in workers], 5)
        for w in list(workers):
            row = w.step(w.pipe in ready)
            if row is False:
                workers.remove(w)
            elif row:
                rows.append(row)
                if row[1] in BAD and not known_as(known, row[0]):
                    print("\t".join(row), flush=True)
    write_table(DEVICE + ("-x64" if a.x64 else ""), rows)
    print_peaks(rows)
    count = {s: sum(r[1] == s for r in rows)
             for s in ("ok", "fail", "crash", "skip")}
    new = sum(r[1] in BAD and not known_as(known, r[0]) for r in rows)
    for pattern in known:
        now = [r[1] for r in rows if fnmatch.fnmatchcase(r[0], pattern)]
        if now and not set(now) & set(BAD):
            print(f"{pattern}\tpasses now: take it from {DEVICE}.tsv")
    print(f"{count['ok']} passed, {count['fail']} failed, "
          f"{count['crash']} crashed ({new} not known), "
          f"{count['skip']} skipped")
    sys.exit(new != 0)


if __name__ == "__main__":
    main()
