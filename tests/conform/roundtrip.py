"""Our HLO text and protobuf of JAX's shipped primitive programs, judged by
jaxlib, and jaxlib's judged by us.

usage: roundtrip.py [--tool PATH] [--every N] [--jobs N] [--artifacts DIR]
Of every program (artifacts are text.py's), as read and after our passes:
  print, parse, print is the identity, also through protobuf   (roundtrip.c)
  jaxlib reads our text and our protobuf, and prints the same of both
jaxlib's own module of the program, as protobuf and as text in long, plain,
short and canonical form, goes the same way through us, and what we print of
the first three forms is the same.  Exit status 1 says that one missed.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import text  # noqa: E402

FORMS = ("pb", "long.hlo", "plain.hlo", "short.hlo", "canonical.hlo")
WITH_NAMES = FORMS[:3]   # short drops metadata, canonical the names


def print_options(form):
    from jaxlib import _hlo
    if form == "short":
        return _hlo.HloPrintOptions.short_parsable()
    if form == "canonical":
        return _hlo.HloPrintOptions.canonical()
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_operand_shape = form == "long"
    options.print_percent = form == "long"
    return options


def printed(module):
    """jaxlib's print.  Its parser makes nan + nan i of (nan, x): the judge's
    own slip, put into both."""
    return re.sub(r"\(nan, [^)]*\)", "(nan, nan)",
                  module.to_string(print_options("long")))


def module_of(with_config):
    """The HloModuleProto, field 1, in our HloModuleProtoWithConfig."""
    assert with_config[0] == 0x0a
    size = shift = 0
    at = 1
    while True:
        byte = with_config[at]
        size |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return with_config[at:at + size]


def judge(path):
    """What jaxlib says of our text PATH.hlo and our protobuf PATH.pbc."""
    from jaxlib import _hlo
    with open(path + ".hlo") as f:
        hlo = f.read()
    with open(path + ".pbc", "rb") as f:
        proto = module_of(f.read())
    try:
        a = printed(_hlo.hlo_module_from_text(hlo))
        b = printed(_hlo.HloModule.from_serialized_hlo_module_proto(proto))
    except Exception as error:
        return "jaxlib: " + " ".join(str(error).split())[:200]
    return "ok" if a == b else "jaxlib prints text and protobuf differently"


def write_theirs(context, artifact, base):
    """jaxlib's module of the program in each form; the files."""
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo
    with open(artifact, "rb") as f:
        mlir = str(stablehlo.deserialize_portable_artifact(context, f.read()))
    module = _jax.mlir.mlir_module_to_xla_computation(
        mlir, use_tuple_args=False, return_tuple=False).get_hlo_module()
    for form in FORMS:
        with open(f"{base}.{form}", "wb") as f:
            f.write(module.as_serialized_hlo_module_proto() if form == "pb"
                    else module.to_string(
                        print_options(form.split(".")[0])).encode())
    return [f"{base}.{form}" for form in FORMS]


def run_tool(tool, files, out):
    """roundtrip over all files; its complaint by file, and its last line."""
    p = subprocess.run([tool, f"--judge={out}"] + files, capture_output=True,
                       text=True, errors="replace")
    if p.returncode not in (0, 1):
        sys.exit(f"{tool} ended with {p.returncode}: {p.stderr[-2000:]}")
    *lines, last = p.stdout.splitlines()
    complaint, file = {}, None
    for line in lines:
        known, _, why = line.partition(": ")
        if os.path.exists(known):
            file = known
            complaint[file] = why
        elif file:
            complaint[file] += " " + line
    return complaint, [int(n) for n in re.findall(r"\d+", last)]


def same_of_all(out, files):
    texts = set()
    for path in files[:len(WITH_NAMES)]:
        with open(os.path.join(out, os.path.basename(path) +
                               ".before.hlo")) as f:
            texts.add(f.read())
    return "ok" if len(texts) == 1 else "its forms are not one module to us"


def check(a, context, batch, count, misses):
    scratch = tempfile.mkdtemp(prefix="sundog-roundtrip-")
    out = os.path.join(scratch, "out")
    os.mkdir(out)
    ours, theirs = [], []
    for stem, name in batch:
        base = os.path.join(scratch, os.path.basename(stem))
        ours += [(name, f"{stem}.new"), (name, f"{stem}.old")]
        theirs.append((name, write_theirs(context, f"{stem}.new", base)))
    files = [f for _, f in ours] + [f for _, fs in theirs for f in fs]
    complaint, numbers = run_tool(a.tool, files, out)
    for what, n in zip(("programs through text and protobuf",
                        "the same before passes", "the same after passes",
                        "hold what does not run, said by name", "not the same"),
                       numbers):
        count[what] += n
    verdicts = [(name, f, complaint.get(f, "ok")) for name, f in ours]
    for name, f in ours:
        for when in "before", "after":
            path = os.path.join(out, f"{os.path.basename(f)}.{when}")
            if os.path.exists(path + ".hlo"):
                verdict = judge(path)
                verdicts.append((name, f"{f} {when}", verdict))
                count[f"ours {when} passes, jaxlib: "
                      f"{'ok' if verdict == 'ok' else 'missed'}"] += 1
    for name, fs in theirs:
        bad = [complaint[f] for f in fs if f in complaint]
        verdict = bad[0] if bad else same_of_all(out, fs)
        verdicts.append((name, fs[0], verdict))
        count[f"jaxlib's, by us: {'ok' if verdict == 'ok' else 'missed'}"] += 1
    misses += [f"{n}\t{f}\t{v}" for n, f, v in verdicts if v != "ok"]
    shutil.rmtree(scratch)


def work(a, k, pipe):
    from jax._src.interpreters import mlir
    count, misses = collections.Counter(), []
    todo = [(stem, name) for stem, name, note in text.artifacts(a, k)
            if not note.startswith("JAX: ")]
    for at in range(0, len(todo), 400):
        check(a, mlir.make_ir_context(), todo[at:at + 400], count, misses)
    pipe.send((count, misses))


def arguments(argv=None):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--tool", default=os.path.join(
        ROOT, "build/release/tests/conform/roundtrip"))
    p.add_argument("--artifacts", default=os.path.join(
        ROOT, "build/conform/artifacts"))
    p.add_argument("--every", type=int, default=1)
    p.add_argument("--jobs", type=int, default=2)
    return p.parse_args(argv)


def main(argv=None):
    os.environ["JAX_PLATFORMS"] = "cpu"
    a = arguments(argv)
    count, misses = text.run(a, work)
    for what, n in sorted(count.items()):
        print(f"{n:6} {what}")
    with open(os.path.join(os.path.dirname(a.artifacts),
                           "roundtrip.tsv"), "w") as f:
        f.writelines(m + "\n" for m in misses)
    for m in misses[:10]:
        print(m[:1000])
    print(f"{len(misses)} missed")
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
