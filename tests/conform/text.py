"""Our StableHLO text of JAX's shipped primitive programs, judged by jaxlib.

usage: text.py [--tool PATH] [--every N] [--jobs N] [--artifacts DIR]
Every program is lowered by JAX and serialized by jaxlib at its newest version
of VHLO and at the oldest that can hold it (0.9.0 for most).  `sundog mlir`
writes each artifact as text; jaxlib parses that text, and its generic print,
locations included, must be jaxlib's generic print of the artifact itself, byte
for byte.  The same is asked of the texts that jaxlib makes of the newest one, as
JAX prints it and in generic form, which `sundog mlir` reads.  Counts are by
reason, misses in build/conform/text.tsv; artifacts are kept in
build/conform/artifacts.  Exit status 1 says that something missed.
"""
import argparse
import collections
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
# Where VHLO's forms changed: tried in order for what the oldest cannot hold.
VERSIONS = ("0.9.0", "0.17.0", "0.20.0", "1.0.0", "1.1.0", "1.3.0", "1.4.0",
            "1.6.0", "1.9.0", "1.10.0", "1.14.0")
PLATFORMS = ("cpu", "tpu", "cuda")   # the first that JAX can lower for
KINDS = ("new", "old", "pretty", "generic")


def lower(harness):
    import jax
    import numpy as np
    seed = zlib.crc32(harness.fullname.encode()) & 0x7fffffff
    args = harness.dyn_args_maker(np.random.RandomState(seed))
    traced = jax.jit(harness.dyn_fun).trace(*args)
    first = None
    for platform in PLATFORMS:
        try:
            return traced.lower(lowering_platforms=(platform,)).compiler_ir()
        except Exception as error:
            first = first or error
    raise first


def oldest(module, newest):
    """The artifact of the oldest version that can hold the module."""
    from jaxlib import _jax
    for version in VERSIONS + (newest,):
        try:
            return version, _jax.mlir.serialize_portable_artifact(
                module, version, False)
        except Exception:
            if version == newest:
                raise


def make(harness, stem):
    """Writes the artifacts and texts of one program; says which old version,
    or why there is none."""
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo
    newest = stablehlo.get_current_version()
    try:
        module = lower(harness)
    except Exception as error:
        return f"JAX: {type(error).__name__}: {' '.join(str(error).split())}"
    new = _jax.mlir.serialize_portable_artifact(module, newest, False)
    version, old = oldest(module, newest)
    for kind, data in (("new", new), ("old", old)):
        with open(f"{stem}.{kind}", "wb") as f:
            f.write(data)
    return version


def artifacts(a, k):
    """(stem, version or reason) of each program of this process; what is not
    there yet is made, and an index says so at the end."""
    import jax
    jax.config.update("jax_enable_x64", True)
    from jax._src.internal_test_util import test_harnesses
    chosen = list(enumerate(test_harnesses.all_harnesses))[::a.every][k::a.jobs]
    result = []
    for i, harness in chosen:
        name = hashlib.sha1(harness.fullname.encode()).hexdigest()[:12]
        stem = os.path.join(a.artifacts, f"{i}-{name}")
        note = stem + ".note"
        if not os.path.exists(note):
            text = make(harness, stem)
            with open(note, "w") as f:
                f.write(text)
        with open(note) as f:
            result.append((stem, harness.fullname, f.read()))
    return result


def printed(module, generic=True):
    return module.operation.get_asm(print_generic_op_form=generic,
                                    enable_debug_info=True)


def write_all(tool, files, out):
    """`sundog mlir` over all files; its complaint by file."""
    complaint = {}
    for at in range(0, len(files), 500):
        p = subprocess.run([tool, "mlir", f"--out={out}"] + files[at:at + 500],
                           capture_output=True, text=True, errors="replace")
        for line in p.stderr.splitlines():
            file, _, why = line.partition(": ")
            complaint[file] = why
        if p.returncode not in (0, 1):
            raise RuntimeError(f"{tool} ended with {p.returncode}: "
                               f"{p.stderr[-2000:]}")
    return complaint


def judge(context, want, path, why):
    """"ok", or what is wrong with the text at path."""
    from jaxlib.mlir import ir
    if why:
        return f"sundog: {why}"
    with open(path) as f:
        text = f.read()
    try:
        got = printed(ir.Module.parse(text, context))
    except Exception as error:
        found = re.search(r"error: (.*)", str(error))
        return f"jaxlib: {found.group(1) if found else error}"[:200]
    return "ok" if got == want else "the print differs"


def originals(context, stem, scratch):
    """jaxlib's generic print of each input, and the inputs' paths."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    base = os.path.join(scratch, os.path.basename(stem))
    want, path = {}, {}
    for kind in ("new", "old"):
        path[kind] = f"{stem}.{kind}"
        with open(path[kind], "rb") as f:
            module = stablehlo.deserialize_portable_artifact(context, f.read())
        want[kind] = printed(module)
        for form in ("pretty", "generic") if kind == "new" else ():
            text = printed(module, form == "generic")
            path[form] = f"{base}.{form}"
            with open(path[form], "w") as f:
                f.write(text)
            # a loop's arguments have no place in the pretty form
            want[form] = printed(ir.Module.parse(text, context))
    return want, path


def work(a, k, pipe):
    from jax._src.interpreters import mlir
    scratch = tempfile.mkdtemp(prefix="sundog-text-")
    count, misses = collections.Counter(), []
    try:
        todo = artifacts(a, k)
        for at in range(0, len(todo), 400):
            context = mlir.make_ir_context()
            batch = []
            for stem, name, note in todo[at:at + 400]:
                if note.startswith("JAX: "):
                    count[("JAX lowers it nowhere", "")] += 1
                    continue
                count[("oldest version", note)] += 1
                batch.append((name, *originals(context, stem, scratch)))
            files = [path[kind] for _, _, path in batch for kind in KINDS]
            complaint = write_all(a.tool, files, scratch)
            for name, want, path in batch:
                for kind in KINDS:
                    file = path[kind]
                    text = os.path.join(scratch,
                                        os.path.basename(file) + ".mlir")
                    verdict = judge(context, want[kind], text,
                                    complaint.get(file))
                    count[(kind, verdict)] += 1
                    if verdict != "ok":
                        misses.append(f"{name}\t{kind}\t{verdict}\t{file}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    pipe.send((count, misses))


def run(a, work=work):
    """work in each process; counts by reason, and the misses."""
    import multiprocessing
    context = multiprocessing.get_context("spawn")
    os.environ["JAX_PLATFORMS"] = "cpu"   # of the workers
    os.makedirs(a.artifacts, exist_ok=True)
    workers = []
    for k in range(a.jobs):
        here, there = context.Pipe(False)
        p = context.Process(target=work, args=(a, k, there))
        p.start()
        there.close()
        workers.append((p, here))
    count, misses = collections.Counter(), []
    for p, pipe in workers:
        try:
            c, m = pipe.recv()
        except EOFError:
            raise RuntimeError("a worker ended without its counts") from None
        count += c
        misses += m
        p.join()
    return count, misses


def arguments(argv=None):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    build = os.path.join(ROOT, "build")
    p.add_argument("--tool", default=f"{build}/release/tools/sundog")
    p.add_argument("--artifacts", default=f"{build}/conform/artifacts")
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    return p.parse_args(argv)


def report(count):
    return [f"{n:6} {what}{': ' if verdict else ''}{verdict}"
            for (what, verdict), n in sorted(count.items())]


def main():
    a = arguments()
    count, misses = run(a)
    print("\n".join(report(count)))
    with open(os.path.join(os.path.dirname(a.artifacts), "text.tsv"), "w") as f:
        f.writelines(m + "\n" for m in misses)
    print(f"{len(misses)} missed")
    sys.exit(1 if misses else 0)


if __name__ == "__main__":
    main()
