#!/usr/bin/env python3
"""What programs become for Intel's GPUs, by Intel's own compiler: no GPU is needed.

usage: isa.py [--set standard|conform] [--only REGEX] [--every N] [--shard I/N]
              [--chips pvc,dg2-g10] [--page] [--x64] [--again] [--out FOLDER]
The standard set is the classes of programs that people run; conform are JAX's
shipped ones.  Rows go to FOLDER/SET-CHIP.tsv (build/isa) as they are made, and what is
there already is not made again, so a run that was ended goes on where it was;
--again begins anew.  A shard has its own file.  --page writes docs/isa.md and
bench/results/isa-CHIP.tsv of the standard set.  Exit 1: a program does not
build, or one of the standard set needs scratch memory.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys
import tempfile
import zlib

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = os.path.join(TOP, "build/release/tools/sundog")
PAGE = os.path.join(TOP, "docs/isa.md")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import intel_isa  # noqa: E402

CHIPS = {"pvc": "Data Center GPU Max (`cl:pvc`)", "dg2-g10": "Arc A770 (`cl:dg2-g10`)"}
ROW = ("program status kernel simd grf scratch slm barriers instructions loop dpas block wide narrow local_block "
       "local_wide local_narrow flops bytes")
Row = collections.namedtuple("Row", ROW)
NONE = ["-", *[0] * (len(Row._fields) - 3)]


# ---- programs ----

def standard():
    """Name, function, shapes and types of its arguments."""
    import jax
    import jax.numpy as jnp
    f32, bf16, f16, s8, s32 = jnp.float32, jnp.bfloat16, jnp.float16, jnp.int8, jnp.int32
    of = jax.ShapeDtypeStruct

    def norm(x, g):
        y = x.astype(f32)
        m, v = y.mean(-1, keepdims=True), y.var(-1, keepdims=True)
        return ((y - m) * jax.lax.rsqrt(v + 1e-5) * g).astype(x.dtype)

    def softmax(x):
        return jax.nn.softmax(x.astype(f32), -1).astype(x.dtype)

    def dot(x, y):
        return jax.lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type=s32 if x.dtype == s8 else None)

    def dot_turned(x, y):
        return jax.lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=s32 if x.dtype == s8 else None)

    def dense(x, y, b):
        return jax.nn.relu(dot(x, y) + b)

    def conv(stride=1, rows="NHWC", groups=1, window="HWIO"):
        def run(x, k):
            return jax.lax.conv_general_dilated(x, k, (stride, stride), "SAME", dimension_numbers=(rows, window, rows), feature_group_count=groups,
                                                preferred_element_type=s32 if x.dtype == s8 else None)
        return run

    def attention(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    def attention_gradient(q, k, v, o):
        y, back = jax.vjp(attention, q, k, v)
        return y, back(o)

    for t, name in ((f32, "f32"), (bf16, "bf16")):
        yield f"elementwise {name}", lambda x, y: x * y + x, [of((4096, 4096), t)] * 2
        yield f"gelu {name}", jax.nn.gelu, [of((4096, 4096), t)]
        for width in (128, 1024, 32768):
            yield f"softmax {name} {width}", softmax, [of((1 << 24 >> width.bit_length(), width), t)]
        for width in (768, 4096):
            yield f"layer norm {name} {width}", norm, [of((8192, width), t), of((width,), f32)]
        yield f"transpose {name}", lambda x: x.T + 0, [of((4096, 4096), t)]
        yield f"row sum {name}", lambda x: x.sum(-1), [of((4096, 4096), t)]
        yield f"column sum {name}", lambda x: x.sum(0), [of((65536, 1024), t)]
    yield "elementwise s8", lambda x, y: x * y + x, [of((4096, 4096), s8)] * 2
    yield "sum of all f32", lambda x: x.sum(), [of((1 << 24,), f32)]
    yield "argmax f32", lambda x: x.argmax(-1), [of((4096, 4096), f32)]
    yield "layer norm gradient f32", jax.grad(lambda x, g: (norm(x, g) ** 2).sum(), (0, 1)), [of((8192, 768), f32), of((768,), f32)]
    for t, name in ((f32, "f32"), (bf16, "bf16"), (f16, "f16"), (s8, "s8")):
        yield f"product {name} 4096", dot, [of((4096, 4096), t)] * 2
        yield f"product {name} 4096, y turned", dot_turned, [of((4096, 4096), t)] * 2
        yield f"product {name} 500 x 300 x 700", dot, [of((500, 700), t), of((700, 300), t)]
        yield f"convolution 3 x 3 {name} 56 x 56 x 64", conv(), [of((32, 56, 56, 64), t), of((3, 3, 64, 64), t)]
    for t, name in ((bf16, "bf16"), (s8, "s8")):
        yield f"product {name} 4095", dot, [of((4095, 4095), t)] * 2
    yield "convolution 7 x 7 bf16, stride 2, of 3 features", conv(2), [of((32, 224, 224, 3), bf16), of((7, 7, 3, 64), bf16)]
    yield "convolution 3 x 3 bf16, stride 2", conv(2), [of((32, 56, 56, 128), bf16), of((3, 3, 128, 128), bf16)]
    yield "convolution 3 x 3 bf16 56 x 56, 4 groups of 32", conv(groups=4), [of((32, 56, 56, 128), bf16), of((3, 3, 32, 128), bf16)]
    image, window = of((32, 28, 28, 128), bf16), of((3, 3, 128, 128), bf16)
    yield "convolution 3 x 3 bf16 28 x 28 x 128", conv(), [image, window]
    yield "its image's gradient", lambda x, k, g: jax.vjp(lambda x: conv()(x, k), x)[1](g), [image, window, image]
    yield "its window's gradient", lambda x, k, g: jax.vjp(lambda k: conv()(x, k), k)[1](g), [image, window, image]
    yield "product bf16 4096 x 1024 x 1024, x turned", lambda x, y: x.T @ y, [of((4096, 1024), bf16)] * 2
    yield "convolution 3 x 3 bf16 NCHW", conv(1, "NCHW"), [of((2, 320, 64, 64), bf16), of((3, 3, 320, 320), bf16)]
    image, window, nchw = of((32, 128, 28, 28), bf16), of((128, 128, 3, 3), bf16), conv(1, "NCHW", 1, "OIHW")
    yield "convolution 3 x 3 bf16 28 x 28 x 128 NCHW, OIHW", nchw, [image, window]
    yield "its image's gradient, NCHW", lambda x, k, g: jax.vjp(lambda x: nchw(x, k), x)[1](g), [image, window, image]
    yield "convolution 1 x 1 bf16", conv(), [of((32, 28, 28, 256), bf16), of((1, 1, 256, 512), bf16)]
    yield "dense layer bf16", dense, [of((4096, 768), bf16), of((768, 3072), bf16), of((3072,), bf16)]
    yield "64 products bf16 512 x 64", lambda x, y: jnp.einsum("bij,bkj->bik", x, y), [of((64, 512, 64), bf16)] * 2
    for t, name in ((f32, "f32"), (bf16, "bf16")):
        yield f"attention {name}, causal, 1024", attention, [of((2, 1024, 12, 64), t)] * 3
    for t, name, d in ((bf16, "bf16", 128), (f16, "f16", 40)):
        yield f"attention {name}, 4096 x {d}", jax.nn.dot_product_attention, [of((2, 4096, 8, d), t)] * 3
    for t, name, d in ((bf16, "bf16", 64), (f16, "f16", 128)):
        yield f"attention's gradient {name}, causal, 1024 x {d}", attention_gradient, [of((2, 1024, 12, d), t)] * 4
    yield "gather of rows f32", lambda x, i: x[i], [of((50257, 768), f32), of((8192,), s32)]
    yield "cumulative sum f32", lambda x: jnp.cumsum(x, -1), [of((4096, 1024), f32)]
    yield "sort f32", lambda x: jnp.sort(x, -1), [of((4096, 256), f32)]


def conform():
    import numpy as np
    from jax._src.internal_test_util import test_harnesses
    for h in test_harnesses.all_harnesses:
        yield h.fullname, h.dyn_fun, lambda h=h: h.dyn_args_maker(np.random.RandomState(zlib.crc32(h.fullname.encode()) & 0x7fffffff))


def lowered(fn, args):
    import jax
    return jax.jit(fn).trace(*(args() if callable(args) else args)).lower(lowering_platforms=("xpu",)).as_text()


# ---- one program ----

def widths(lines, space):
    """Messages of a loop: by blocks, of 16 bytes an item, narrower."""
    count = [0, 0, 0]
    for line in lines:
        if not intel_isa.is_message(line) or "bti[255]" in line:  # the arguments
            continue
        m = re.search(rf"\b(?:load|store)(?:_\w+)?\.{space}\.d(\d+)(?:u\d+)?(?:x(\d+))?(t?)", line)
        if m:
            bits = int(m.group(1)) * int(m.group(2) or 1)
            count[0 if m.group(3) or "block" in line else 1 if bits >= 128 else 2] += 1
        elif space == "ugm" and re.search(r"load_block2d|store_block2d", line):
            count[0] += 1
    return count


def work_of(out):
    """Flops and bytes of each kernel, by the plan."""
    plan, = glob.glob(os.path.join(glob.escape(out), "*.plan.txt"))
    found = re.findall(r"^kernel (\S+)\n.*?(\d+) flops, (\d+) bytes", open(plan).read(), re.M)
    return {name: (int(flops), int(moved)) for name, flops, moved in found}


def build(name, chip, mlir):
    """Rows of its kernels, or one that says why there is none."""
    with tempfile.TemporaryDirectory() as tmp:
        source = os.path.join(tmp, "program.mlir")
        open(source, "w").write(mlir)
        r = subprocess.run([TOOL, "compile", f"--target=cl:{chip}", f"--out={tmp}", source], capture_output=True, text=True)
        if r.returncode:
            refused = "f64" in r.stderr or "64-bit float" in r.stderr
            yield Row(name, "refused f64" if refused else "fails: " + said(r.stderr), *NONE)
            return
        work, any_ = work_of(tmp), False
        for path in glob.glob(os.path.join(glob.escape(tmp), "*.spv")):
            try:
                for k, lines in intel_isa.kernels(intel_isa.compiled(path, chip), chip):
                    loop, any_ = intel_isa.inner_loop(lines), True
                    yield Row(name, "builds", k.name, k.simd, k.grf, k.scratch, k.slm, k.barriers, k.instructions, k.loop, k.loop_dpas,
                              *widths(loop, "ugm"), *widths(loop, "slm"), *work.get(k.name, (0, 0)))
            except intel_isa.DoesNotBuild as error:
                yield Row(name, "fails: " + said(str(error)), *NONE)
                return
        if not any_:
            yield Row(name, "no kernel", *NONE)


def said(text):
    return " ".join(text.split())[-160:] or "nothing said"


# ---- all of them ----

def read_rows(path):
    try:
        lines = open(path).read().split("\n")[1:-1]
    except OSError:
        return []
    return [Row(*[int(v) if v.isdigit() else v for v in l.split("\t")]) for l in lines if l.count("\t") == len(Row._fields) - 1]


def run(a, chip, programs):
    base = a.set + ("-x64" if a.x64 else "") + f"-{chip}" + (f"-{a.shard.replace('/', 'of')}" if a.shard != "1/1" else "")
    path = os.path.join(a.out, base + ".tsv")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = [] if a.again else read_rows(path)
    done = {r.program for r in rows}
    part, parts = map(int, a.shard.split("/"))
    with open(path, "w") as out:
        print(*Row._fields, sep="\t", file=out)
        for r in rows:
            print(*r, sep="\t", file=out)
        out.flush()
        for name, fn, args in programs[part - 1::parts]:
            name = re.sub(r"\s", " ", name)
            if name in done:
                continue
            try:
                made = list(build(name, chip, lowered(fn, args)))
            except Exception as error:
                made = [Row(name, "JAX: " + said(str(error)), *NONE)]
            for r in made:
                print(*r, sep="\t", file=out)
            out.flush()
            rows += made
    wanted = {re.sub(r"\s", " ", name) for name, _, _ in programs[part - 1::parts]}
    return [r for r in rows if r.program in wanted]


def count_line(rows, chip):
    status = {}
    for r in rows:
        status.setdefault(r.program, r.status)
    of = collections.Counter(s.split(":")[0] for s in status.values())
    builds = of["builds"] + of["no kernel"]
    text = f"{builds} of {builds + of['fails']} programs build for {chip}"
    if of["refused f64"]:
        text += f", {of['refused f64']} more are f64, which the chip does not have"
    if of["JAX"]:
        text += f", {of['JAX']} more JAX does not lower"
    kernels = [r for r in rows if r.status == "builds"]
    return text + f"; {len(kernels)} kernels, {sum(r.scratch > 0 for r in kernels)} with scratch memory"


# ---- the page ----

HEAD = """# What Intel's GPU compiler makes of our kernels

Generated by `make isa`; raw rows in `bench/results/isa-*.tsv`. Intel's own compiler (Debian's `ocloc`) builds what Sundog hands to its OpenCL driver, and the machine code is read: no GPU is needed,
and nothing here says how fast a kernel is. "Scratch" is memory for what does not fit into registers. The loop is the smallest one that has matrix instructions (`dpas`); of a kernel that has them outside of loops
all from the first to the last of them; else the innermost loop with the most messages, else the whole kernel. Messages are those of that loop: by blocks / of 16 bytes an item / narrower. Bytes a flop are the plan's: what a kernel must move, once.
"""


def table(rows):
    yield "| program | kernel | SIMD | registers | scratch | instructions | in the loop | `dpas` in it | one in | memory | local memory | bytes a flop |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for r in rows:
        if r.status != "builds":
            yield f"| {r.program} | {r.status} |" + " |" * 10
            continue
        share = f"{r.loop / r.dpas:.1f}" if r.dpas else ""
        flop = f"{r.bytes / r.flops:.3g}" if r.flops else ""
        yield (f"| {r.program} | `{r.kernel}` | {r.simd} | {r.grf} | {r.scratch or ''} | {r.instructions} | {r.loop} | {r.dpas or ''} | {share} | "
               f"{r.block} / {r.wide} / {r.narrow} | {r.local_block} / {r.local_wide} / {r.local_narrow} | {flop} |")


def write_page(found):
    with open(PAGE, "w") as page:
        print(HEAD, file=page)
        for chip, rows in found.items():
            print(f"## {CHIPS.get(chip, chip)}\n\n{count_line(rows, chip)}.\n", file=page)
            print("\n".join(table(rows)) + "\n", file=page)
    for chip, rows in found.items():
        with open(os.path.join(TOP, f"bench/results/isa-{chip}.tsv"), "w") as out:
            print(*Row._fields, sep="\t", file=out)
            for r in rows:
                print(*r, sep="\t", file=out)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--set", choices=("standard", "conform"), default="standard")
    ap.add_argument("--only", default=".*")
    ap.add_argument("--every", type=int, default=1)
    ap.add_argument("--shard", default="1/1")
    ap.add_argument("--chips", default=",".join(CHIPS))
    ap.add_argument("--page", action="store_true")
    ap.add_argument("--x64", action="store_true")
    ap.add_argument("--again", action="store_true")
    ap.add_argument("--out", default=os.path.join(TOP, "build/isa"))
    a = ap.parse_args()
    if intel_isa.missing():
        sys.exit(f"isa: {intel_isa.missing()}")
    if not os.path.exists(TOOL):
        sys.exit(f"isa: there is no {os.path.relpath(TOOL, TOP)}: `make build` makes it")
    os.environ.update(JAX_PLATFORMS="xpu,cpu", SUNDOG_DEVICE="host")
    import jax
    jax.config.update("jax_enable_x64", a.x64)
    jax.devices("xpu")
    chosen = [p for p in (standard if a.set == "standard" else conform)() if re.search(a.only, p[0])][::a.every]
    found = {}
    with jax.default_device(jax.devices("cpu")[0]):
        for chip in a.chips.split(","):
            found[chip] = run(a, chip, chosen)
            print(count_line(found[chip], chip), flush=True)
    for rows in found.values():
        for r in rows:
            if r.status.startswith("fails"):
                print(f"{r.program}: {r.status}")
            elif a.set == "standard" and r.scratch:
                print(f"{r.program}: {r.kernel} needs {r.scratch} bytes of scratch memory")
    if a.page:
        write_page(found)
    sys.exit(any(r.status.startswith("fails") or (a.set == "standard" and r.scratch) for rows in found.values() for r in rows))


if __name__ == "__main__":
    main()
