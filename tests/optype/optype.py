"""Every row of the op table on every type that it takes, on ten shapes.

usage: optype.py [--only REGEX] [--thin] [--device eval|host|cl] [--jobs N]

The evaluator (or a device, through PJRT) runs the generated programs and is
held against JAX's CPU and against the same said in NumPy; jax.tsv lists what
JAX cannot say or says otherwise (op, types, why).  host.tsv and cl.tsv list
known refusals and failures by op and types with their reason.  Anything else
that fails, a program that JAX cannot say and that is not listed, a listed one
of a device that no longer fails, a row of the table without programs, and a
type beyond a row's that is not refused make the exit status 1.  --thin takes
one shape for each op and type, another one for each type."""
import argparse
import json
import os
import re
import select
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "python")]
HANG = 300   # seconds a group of programs may take


def known(name):
    """Rows (op regex, types regex, reason) of a .tsv beside this file."""
    path = os.path.join(HERE, name + ".tsv")
    if not os.path.exists(path):
        return []
    rows = [l.rstrip("\n").split("\t") for l in open(path)
            if l.strip() and not l.startswith("#")]
    assert all(len(r) == 3 for r in rows), path
    return rows


def listed(rows, op, t):
    return next((r[2] for r in rows if re.fullmatch(r[0], op)
                 and re.fullmatch(r[1], t)), None)


# ---- comparing ----

def ulp_of(dtype, x):
    import ml_dtypes
    import numpy as np
    info = ml_dtypes.finfo(dtype)
    _, e = np.frexp(np.where(np.isfinite(x) & (x != 0), x, 0))
    return np.ldexp(np.longdouble(1), np.maximum(e - 1, info.minexp)
                    - info.nmant)


def worst_place(bad):
    import numpy as np
    return tuple(int(i) for i in np.argwhere(bad)[0])


def differs_float(got, want, scale, rule, flush):
    """Where two arrays of floats differ by more than the rule allows."""
    import ml_dtypes
    import numpy as np
    how, ulps = rule[:2]
    g, w = got.astype(np.longdouble), want.astype(np.longdouble)
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    if how == "exact":
        same &= (np.signbit(g) == np.signbit(w)) | np.isnan(g) | (g != 0)
    if how in ("near", "summed"):
        finite = np.isfinite(g) & np.isfinite(w)
        off = np.abs(np.where(finite, g, 0) - np.where(finite, w, 0))
        same |= finite & (off <= ulps * ulp_of(got.dtype, scale))
    if flush:
        tiny = np.longdouble(ml_dtypes.finfo(got.dtype).smallest_normal)
        same |= (np.abs(g) <= tiny) & (np.abs(w) <= tiny)
    return ~same


def difference(got, want, rule, flush):
    """None, or what is wrong with the first bad element."""
    import numpy as np

    import values
    if got.dtype != want.dtype or got.shape != want.shape:
        return (f"{got.dtype}{list(got.shape)}, "
                f"want {want.dtype}{list(want.shape)}")
    k = values.kind(values.name_of(got.dtype))
    if k == "cplx":
        size = np.maximum(np.abs(want.real), np.abs(want.imag))
        if rule[0] == "summed":
            size = np.broadcast_to(np.max(size, initial=0), size.shape)
        bad = differs_float(got.real, want.real, size, rule, flush) | \
            differs_float(got.imag, want.imag, size, rule, flush)
    elif k == "float":
        size = want.astype(np.longdouble)
        if rule[0] == "summed":
            fin = np.abs(np.where(np.isfinite(size), size, 0))
            size = np.broadcast_to(np.max(fin, initial=0), size.shape)
        bad = differs_float(got, want, size, rule, flush)
    else:
        bad = got != want
    if "plainly" in rule:
        bad &= np.isfinite(want)
    if not bad.any():
        return None
    at = worst_place(bad)
    return (f"{int(bad.sum())} differ, at {list(at)} {got[at]!r}, "
            f"want {want[at]!r}")


# ---- running ----

class Platform:
    """A PJRT client of JAX's: HLO text in, arrays in and out."""

    def __init__(self, name):
        import jax
        jax.config.update("jax_enable_x64", True)
        self.device = jax.devices(name)[0]

    def run(self, text, args):
        import jax
        import numpy as np
        from jaxlib import _hlo, _jax, xla_client
        proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        mlir = _jax.mlir.xla_computation_to_mlir_module(
            _hlo.XlaComputation(proto))
        program = self.device.client.compile_and_load(
            mlir, _jax.DeviceList((self.device,)), xla_client.CompileOptions())
        out = program.execute_sharded(
            [jax.device_put(a, self.device) for a in args])
        return [np.asarray(x[0])
                for x in out.disassemble_into_single_device_arrays()]


class Evaluator:
    def run(self, text, args):
        import oracle
        return oracle.Program(text, "hlo_text")(*args)


def run_group(platform, group, args):
    """Results of each program, or its error: all in one module if possible."""
    import programs
    flat = [a for p in group for a in args[p.name]]
    try:
        out = platform.run(programs.module(group), flat)
    except Exception as error:
        if len(group) == 1:
            return {group[0].name: error}
        return {p.name: run_group(platform, [p], args)[p.name] for p in group}
    results, at = {}, 0
    for p in group:
        results[p.name] = out[at:at + len(p.results)]
        at += len(p.results)
    return results


# How much further from the truth XLA's functions are.
JAX_SLACK = {"c128": 16}


def first_difference(p, got, want, by, slack):
    """None, or what is wrong with the first bad result.  slack: how much more
    than its rule a result may be off, and subnormals be zeros; 0: nothing."""
    for i, (g, w, (_, _, rule)) in enumerate(zip(got, want, p.results)):
        if slack and "plainly" in rule:
            continue
        how = (rule[0], rule[1] * slack) if slack else rule
        wrong = difference(g, w, how, slack > 0)
        if wrong:
            return f"{by}, result {i}: {wrong}"
    return None


def judge(p, args, got, jax_said, is_listed, exact):
    """(status, note).  jax_said: JAX's results, its error, None: not asked.
    exact: got is the evaluator's, nearer to the truth than a device's."""
    if isinstance(got, Exception):
        return "refused", " ".join(str(got).split())
    said = isinstance(jax_said, list)
    slack = JAX_SLACK.get(p.type, 4)
    if not said and not p.plain:
        return "fail", f"nobody says it: {jax_said}"
    wrong = (said and first_difference(p, got, jax_said, "JAX", slack)) or (
        p.plain and first_difference(p, got, p.expected(args), "NumPy",
                                     0 if exact else slack))
    if wrong:
        return "fail", wrong
    if said or is_listed:
        return "ok", ""
    return "unsaid", " ".join(str(jax_said).split())


def check_group(group, subject, jax_cpu, unsaid):
    """A row (name, op, type, status, note) for each program."""
    exact = isinstance(subject, Evaluator)
    rows = [(p.name, p.op, p.type, "known", p.unsayable) for p in group
            if p.unsayable and not exact]
    group = [p for p in group if exact or not p.unsayable]
    args = {p.name: p.arguments() for p in group}
    mine = run_group(subject, group, args) if group else {}
    asked = [p for p in group if jax_cpu and not p.unsayable
             and not listed(unsaid, p.op, p.type)]
    theirs = run_group(jax_cpu, asked, args) if asked else {}
    for p in group:
        excused = p.unsayable or listed(unsaid, p.op, p.type)
        status, note = judge(p, args[p.name], mine[p.name], theirs.get(p.name),
                             bool(excused), exact)
        rows.append((p.name, p.op, p.type, status, note[:400]))
    return rows


def unrefused(only):
    """Elementwise rows on types that they do not take: each must be refused by
    the op's and the type's name.  The rows that are not."""
    import oracle
    import programs
    import values
    out = []
    for row in programs.table():
        n = {"UNARY": 1, "BINARY": 2}.get(row.cls, 0)
        for t in values.TYPES if n and re.search(only, row.name) else []:
            if t in row.types:
                continue
            p = programs.Program(row.name, t, "odd")
            args = [p.param(values.any_values, t, (7,)) for _ in range(n)]
            p.give(row.name, (t, (7,)), *args)
            try:
                oracle.Program(programs.module([p]), "hlo_text")
            except oracle.OracleError as error:
                if f"{row.name} does not take {t}" in str(error):
                    continue
            out.append(f"{row.name} of {t}")
    return out


# ---- all programs, by workers that may die ----

def groups(only, thin):
    """Lists of (op, type, shape) that make one module."""
    import programs
    import rows
    shapes, out = list(programs.SHAPES), []
    for row in programs.table():
        if row.name not in rows.FUNCTIONS or not re.search(only, row.name):
            continue
        types = rows.types_of(row)
        if thin:
            turn = sum(map(ord, row.name))
            out.append([(row.name, t, shapes[(turn + i) % len(shapes)])
                        for i, t in enumerate(types)])
        else:
            out += [[(row.name, t, s) for s in shapes] for t in types]
    return out


def work(a):
    """A worker: a JSON line before and after each group."""
    import rows
    device = a.device
    jax_cpu = Platform("cpu")
    subject = Evaluator() if device == "eval" else Platform("xpu")
    unsaid = known("jax")
    skip = set(filter(None, a.skip_jax.split(",")))
    for i, group in enumerate(groups(a.only, a.thin)):
        if i % a.jobs != a.worker or i < a.first:
            continue
        print(json.dumps(["start", i]), flush=True)
        made = [rows.make(*g) for g in group]
        try:
            got = check_group(made, subject,
                              None if str(i) in skip else jax_cpu, unsaid)
        except Exception as error:
            got = [(made[0].name, made[0].op, made[0].type, "fail",
                    f"{type(error).__name__}: {error}")]
        print(json.dumps(["rows", got]), flush=True)


class Worker:
    """A process for every jobs-th group.  One that dies is started again at the
    group that it died of, without JAX, which may be who ended it; at the second
    time behind that group."""

    def __init__(self, k, a, sink):
        self.k, self.a, self.sink, self.without_jax = k, a, sink, []
        self.start(0)

    def start(self, first):
        self.group, self.since = None, time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker", str(self.k),
             "--first", str(first), "--skip-jax",
             ",".join(map(str, self.without_jax)), "--only", self.a.only,
             "--device", self.a.device, "--jobs", str(self.a.jobs)]
            + (["--thin"] if self.a.thin else []), stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)

    def step(self):
        """Takes a line; False when all is done."""
        line = self.process.stdout.readline()
        if line:
            what, value = json.loads(line)
            self.since = time.monotonic()
            self.group = value if what == "start" else None
            if what == "rows":
                self.sink(value)
            return True
        status = self.process.wait()
        if self.group is None:
            if status:
                raise SystemExit(f"a worker ended with {status}")
            return False
        name, why = f"group {self.group}", f"the process ended with {status}"
        if self.group in self.without_jax:
            self.sink([(name, "?", "?", "crash", why)])
            self.start(self.group + 1)
        else:
            self.sink([(name, "?", "?", "unsaid", why)])
            self.without_jax.append(self.group)
            self.start(self.group)
        return True


def run_all(a, sink):
    workers = [Worker(k, a, sink) for k in range(a.jobs)]
    while workers:
        pipes = {w.process.stdout: w for w in workers}
        for pipe in select.select(list(pipes), [], [], 5)[0]:
            if not pipes[pipe].step():
                workers.remove(pipes[pipe])
        for w in workers:
            if time.monotonic() - w.since > HANG:
                w.process.kill()


def arguments():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--only", default=".*")
    ap.add_argument("--thin", action="store_true")
    ap.add_argument("--device", default="eval", choices=["eval", "host", "cl"])
    ap.add_argument("--jobs", type=int, default=2)
    for hidden in ("--worker", "--first"):
        ap.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    ap.add_argument("--skip-jax", default="", help=argparse.SUPPRESS)
    return ap.parse_args()


def main():
    a = arguments()
    os.environ["JAX_PLATFORMS"] = "cpu" if a.device == "eval" else "xpu,cpu"
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    if a.device != "eval":
        os.environ["SUNDOG_DEVICE"] = a.device
    if a.worker is not None:
        return work(a)
    import rows
    refusals, count, start = known(a.device), {}, time.monotonic()
    unused = [] if a.thin or a.only != ".*" else refusals[:]
    missing = rows.missing()
    for name in missing:
        print(f"{name}: a row of the op table without programs")
    taken = unrefused(a.only) if a.device == "eval" else []
    for name in taken:
        print(f"{name}: not refused by name, though the table has it not")

    def sink(got):
        for name, op, t, status, note in got:
            row = listed(refusals, op, t)
            if status in ("refused", "fail") and row:
                status = "known"
                unused[:] = [r for r in unused if r[2] != row]
            count[status] = count.get(status, 0) + 1
            if status not in ("ok", "known"):
                print("\t".join((status, name, note)), flush=True)

    run_all(a, sink)
    print(", ".join(f"{n} {s}" for s, n in sorted(count.items())),
          f"in {time.monotonic() - start:.0f} s")
    for op, types, why in unused:
        print(f"{a.device}.tsv: nothing fails as {op} {types} ({why})")
    bad = sum(n for s, n in count.items() if s not in ("ok", "known"))
    return 1 if bad or missing or taken or unused else 0


if __name__ == "__main__":
    sys.exit(main())
