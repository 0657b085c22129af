"""What programs become for CUDA GPUs, assembled by ptxas: no GPU is needed.

usage: ptx.py [--conform] [--x64] [--only REGEX] [--every N] [--jobs N]
              [--chips sm_80,sm_90]
The programs are those of tests/python, with --conform JAX's shipped ones.  One
is right when it compiles, ptxas takes what it became, and no instruction of it
may round otherwise than the host's: every float operation says `.rn`, none is
approximate or flushes small numbers, but those of functions of bf16 that are written
as such (run_narrow.py); and no two truth values are both ANDed and ORed, of which
ptxas takes the one for the other (target_ptx_logic.c).  build/ptx/SET.tsv gets a row for each
kernel (program, chip, kernel, registers, bytes of stack, of spills, of shared
memory) and build/ptx/SET.failed what went wrong.
"""
import argparse
import collections
import glob
import hashlib
import multiprocessing.queues
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
TOOL = os.path.join(TOP, "build/release/tools/sundog")
CHIPS = "sm_80,sm_90,sm_100"
LOOSE = re.compile(
    r"^\s*(?:@!?%p\d+\s+)?"
    r"((?:add|sub|mul|fma|mad|div|sqrt|rcp)\.(?!rn\b)[\w.]*f(?:16|32|64)\b.*"
    r"|\S*\.(?:approx|ftz|full)\b.*)$", re.M)
NARROW = re.compile(r"// begin inline asm\n\s*(?:ex2|rcp|tanh)\.approx.*\n\s*// end inline asm")
Row = collections.namedtuple(
    "Row", "program chip kernel registers stack spills shared")


def find_ptxas():
    """That of PyPI's nvidia-cuda-nvcc-cu12 (tools/setup.sh), or another."""
    for folder in sys.path:
        at = os.path.join(folder, "nvidia/cuda_nvcc/bin/ptxas")
        if os.access(at, os.X_OK):
            return at
    return shutil.which("ptxas")


# ---- programs, as StableHLO ----

def lowered(fn, args, static=()):
    import jax
    low = jax.jit(fn, static_argnums=static).trace(*args).lower(
        lowering_platforms=("xpu",))
    return low.as_text()


def python_programs(x64):
    sys.path.insert(0, os.path.join(HERE, "..", "python"))
    import programs
    for p in programs.PROGRAMS.values():
        for label in p.specs:
            yield f"{p.name} {label}".strip(), lambda p=p, label=label: lowered(
                p.fn, p.args(label, x64), p.static)


def conform_programs(x64):
    import numpy as np
    from jax._src.internal_test_util import test_harnesses
    for h in test_harnesses.all_harnesses:
        yield h.fullname, lambda h=h: lowered(h.dyn_fun, h.dyn_args_maker(
            np.random.RandomState(zlib.crc32(h.fullname.encode())
                                  & 0x7fffffff)))


# ---- one program ----

def run(cmd):
    return subprocess.run(cmd, capture_output=True, text=True)


def paired_logic(text):
    """An OR of two truth values that are also ANDed, each negated or not: its line, or None."""
    for function in re.split(r"^\s*\.reg \.pred ", text, flags=re.M)[1:]:
        defs = re.findall(r"^\s*(and|or|not|mov)\.pred\s+(%p\d+), ([^;]*);", function, re.M)
        written = collections.Counter(to for _, to, _ in defs)
        source = {to: of for op, to, of in defs if op in ("not", "mov") and written[to] == 1}

        def pair(of):
            found = []
            for r in of.split(", "):
                while r in source:
                    r = source[r]
                found.append(r)
            return tuple(sorted(found))
        ands = {pair(of) for op, _, of in defs if op == "and"}
        for op, to, of in defs:
            if op == "or" and pair(of) in ands:
                return f"or.pred {to}, {of}"
    return None


def assemble(ptxas, chip, path, made):
    """Rows of (kernel, registers, ..), or raises.  made: what is done."""
    text = open(path).read()
    key = hashlib.sha256(text.encode()).digest()
    if key not in made:
        loose = LOOSE.search(NARROW.sub("", text))
        if loose:
            raise ValueError(f"rounds otherwise: {loose.group(1)}")
        paired = paired_logic(text)
        if paired:
            raise ValueError(f"ANDed, too: {paired}")
        r = run([ptxas, f"-arch={chip}", "-v", "-o", os.devnull, path])
        if r.returncode:
            raise ValueError(f"ptxas: {r.stderr[:600]}")
        made[key] = kernels(r.stderr)
    return made[key]


def kernels(report):
    """What `ptxas -v` says of each entry point."""
    rows = []
    for part in report.split("Compiling entry function '")[1:]:
        number = lambda what: sum(map(int, re.findall(what, part)))
        rows.append((part[:part.index("'")],
                     number(r"Used (\d+) registers"),
                     number(r"(\d+) bytes stack frame"),
                     number(r"(\d+) bytes spill"),
                     number(r"(\d+) bytes smem")))
    return rows


def check(a, ptxas, name, mlir, made):
    """Rows of the program; raises when something is wrong."""
    rows = []
    for chip in a.chips.split(","):
        with tempfile.TemporaryDirectory() as tmp:
            source = os.path.join(tmp, "program.mlir")
            open(source, "w").write(mlir)
            r = run([TOOL, "compile", f"--target=cuda:{chip}", f"--out={tmp}",
                     source])
            if r.returncode:
                raise ValueError(f"{chip}: compile: {r.stderr[-600:]}")
            for path in glob.glob(os.path.join(glob.escape(tmp), "*.ptx")):
                rows += [Row(name, chip, *k)
                         for k in assemble(ptxas, chip, path, made)]
    return rows


# ---- all of them ----

def work(a, first, queue):
    os.environ.update(JAX_PLATFORMS="xpu,cpu", SUNDOG_DEVICE="host")
    import jax
    jax.config.update("jax_enable_x64", a.x64)
    jax.devices("xpu")
    ptxas, made = find_ptxas(), {}
    some = (conform_programs if a.conform else python_programs)(a.x64)
    chosen = [p for p in some if re.search(a.only, p[0])][::a.every]
    with jax.default_device(jax.devices("cpu")[0]):
        for name, make in chosen[first::a.jobs]:
            try:
                mlir = make()
            except Exception as error:
                queue.put((name, "skip", f"JAX: {error}"))
                continue
            try:
                queue.put((name, "ok", check(a, ptxas, name, mlir, made)))
            except Exception as error:
                queue.put((name, "fail", f"{type(error).__name__}: {error}"))
    queue.put(None)


def results(a):
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    workers = [spawn.Process(target=work, args=(a, i, queue), daemon=True)
               for i in range(a.jobs)]
    for w in workers:
        w.start()
    left = a.jobs
    while left:
        try:
            row = queue.get(timeout=5)
        except multiprocessing.queues.Empty:
            if any(w.exitcode for w in workers):
                sys.exit("ptx: a worker ended early")
            continue
        if row is None:
            left -= 1
        else:
            yield row
    for w in workers:
        w.join()


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--conform", action="store_true")
    ap.add_argument("--x64", action="store_true")
    ap.add_argument("--only", default=".*")
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--chips", default=CHIPS)
    a = ap.parse_args()
    if not find_ptxas():
        sys.exit("ptx: there is no ptxas; tools/setup.sh test brings one")
    name = ("conform" if a.conform else "python") + ("-x64" if a.x64 else "")
    os.makedirs(os.path.join(TOP, "build/ptx"), exist_ok=True)
    base = os.path.join(TOP, "build/ptx", name)
    count, rows = collections.Counter(), []
    with open(base + ".failed", "w") as failed:
        for program, status, what in results(a):
            count[status] += 1
            if status == "ok":
                rows += what
            else:
                print(f"{status} {program}\n    {what}", file=failed)
            if status == "fail":
                print(f"FAIL {program}\n    {what}", flush=True)
    with open(base + ".tsv", "w") as out:
        print(*Row._fields, sep="\t", file=out)
        for r in sorted(rows):
            print(*r, sep="\t", file=out)
    print(f"{count['ok']} of {count['ok'] + count['fail']} programs assembled "
          f"for {a.chips}, {count['skip']} that JAX does not lower")
    for chip in a.chips.split(","):
        of = [r for r in rows if r.chip == chip]
        most = max(of, key=lambda r: r.registers, default=None)
        print(f"{chip}: {len(of)} kernels, "
              f"{sum(r.spills > 0 for r in of)} with spills, "
              f"{sum(r.stack > 0 for r in of)} with a stack; most registers "
              + (f"{most.registers} ({most.kernel} of {most.program})"
                 if most else "none"))
    sys.exit(count["fail"] != 0 or not count["ok"])


if __name__ == "__main__":
    main()
