"""Where a compile for CUDA spends its time; no GPU is asked.

usage: cuda_parts.py [--target NAME] [--threads N] [--repeats N] [--tool PATH]
                     [--linker PATH] [--out FILE] [--only REGEX] [PROGRAM ...]

Programs are files of StableHLO or HLO; without any, those of entries.py are lowered.
Milliseconds of processor time, the smallest of N repeats: front, HLO's passes and the
plan; LLVM, of each batch of kernels; nvJitLink, NVIDIA's compiler, of the text of each
kernel alone.  The last two are what the busiest of --threads threads has when batches
are handed out in order, the longest texts first, as target_build.c does.
"""
import argparse
import ctypes
import glob
import os
import re
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NVJITLINK_INPUT_PTX = 2
DEBUG = {"SUNDOG_LOG": "debug"}


def lowered(only, folder):
    """Files of the entries whose names match."""
    import jax
    import numpy as np

    import entries
    for e in entries.ENTRIES:
        if not re.search(only, e.name):
            continue
        like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype),
                            e.make(np.random.default_rng(0)))
        path = os.path.join(folder, e.name + ".mlir")
        with open(path, "w") as f:
            f.write(jax.jit(e.fn).lower(*like).as_text())
        yield path


class Linker:
    def __init__(self, path, target):
        self.lib = ctypes.CDLL(path)
        self.target = target

    def ms(self, text):
        """Of one text to machine code."""
        wide = f".target {self.target}a" in text
        arch = f"-arch={self.target}{'a' if wide else ''}".encode()
        options = (ctypes.c_char_p * 1)(arch)
        data, handle = text.encode() + b"\0", ctypes.c_void_p()
        start = time.process_time()
        bad = self.lib.nvJitLinkCreate(ctypes.byref(handle), 1, options)
        bad = bad or self.lib.nvJitLinkAddData(handle, NVJITLINK_INPUT_PTX, data,
                                               ctypes.c_size_t(len(data)), b"kernel")
        bad = bad or self.lib.nvJitLinkComplete(handle)
        took = time.process_time() - start
        self.lib.nvJitLinkDestroy(ctypes.byref(handle))
        if bad:
            raise RuntimeError(f"nvJitLink: error {bad}")
        return took * 1e3


def texts(ptx):
    """A text for each kernel: what stands outside of kernels is in each."""
    kernels = list(re.finditer(r"^\.visible \.entry.*?^}\n", ptx, re.M | re.S))
    rest, at = "", 0
    for k in kernels:
        rest += ptx[at:k.start()]
        at = k.end()
    return [rest + ptx[at:] + k.group() for k in kernels]


def busiest(parts, threads):
    has = [0.0] * threads
    for p in parts:
        has[has.index(min(has))] += p
    return max(has)


def compile_times(tool, target, path):
    """ms of the front, and of LLVM for each batch."""
    said = subprocess.run([tool, "compile", f"--target={target}", "--time", path],
                          env=os.environ | DEBUG, capture_output=True, text=True,
                          check=True)
    batch = r" more, \w+: IR ([\d.]+) ms, passes ([\d.]+) ms, machine code ([\d.]+) ms"
    front = re.search(r"passes ([\d.]+) ms, plan ([\d.]+) ms", said.stderr + said.stdout)
    llvm = re.findall(batch, said.stderr + said.stdout)
    return sum(map(float, front.groups())), [sum(map(float, b)) for b in llvm]


def measure(args, linker, path, folder):
    dump = os.path.join(folder, "dump")
    subprocess.run([args.tool, "compile", f"--target={args.target}", f"--out={dump}", path],
                   capture_output=True, check=True)
    each = []
    for name in glob.glob(os.path.join(dump, "*.ptx")):
        with open(name) as f:
            each += texts(f.read())
    for name in glob.glob(os.path.join(dump, "*")):
        os.remove(name)
    runs = [compile_times(args.tool, args.target, path) for _ in range(args.repeats)]
    linked = sorted((min(linker.ms(t) for _ in range(args.repeats)) for t in each),
                    reverse=True)
    return (len(each), min(front for front, _ in runs),
            min(busiest(llvm, args.threads) for _, llvm in runs),
            busiest(linked, args.threads), sum(linked))


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--target", default="cuda:sm_90")
    p.add_argument("--threads", type=int, default=16)
    p.add_argument("--repeats", type=int, default=2)
    p.add_argument("--tool",
                   default=os.path.join(HERE, "../build/release/tools/sundog"))
    p.add_argument("--linker", default="libnvJitLink.so.13")
    p.add_argument("--out")
    p.add_argument("--only", default="")
    p.add_argument("program", nargs="*")
    args = p.parse_args()
    linker = Linker(args.linker, args.target.split(":")[1])
    rows = [f"{'program':24} {'kernels':>7} {'front':>8} {'LLVM':>8} {'nvJitLink':>9} "
            f"{'of all texts':>12}"]
    with tempfile.TemporaryDirectory() as folder:
        for path in args.program or lowered(args.only, folder):
            name = os.path.splitext(os.path.basename(path))[0]
            n, front, llvm, linked, total = measure(args, linker, path, folder)
            rows.append(f"{name:24} {n:7} {front:8.1f} {llvm:8.1f} {linked:9.1f} "
                        f"{total:12.1f}")
            print(rows[-1], flush=True)
    if args.out:
        with open(args.out, "w") as f:
            f.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
