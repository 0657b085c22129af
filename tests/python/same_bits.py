"""Do the skeleton programs have the bits of `host` on another device?

usage: same_bits.py DEVICE [--only REGEX]

Both with SUNDOG_LIBRARIES=0 and SUNDOG_ENGINES=0.

Each device computes in a process of its own, with 64-bit types off and on; any
NaN stands for any other.  Prints the programs that differ and "N of M programs
have the bits of host"; exits 1 when one differs.
"""
import argparse
import hashlib
import json
import os
import re
import subprocess
import sys

import jax
import numpy as np

import programs
import run_programs


def digest(leaf):
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    x = np.array(leaf).reshape(-1)
    if np.issubdtype(x.dtype, np.complexfloating):
        x = x.view(x.real.dtype)
    if jax.dtypes.issubdtype(x.dtype, np.floating):
        x[np.isnan(x)] = np.nan
    return hashlib.sha256(f"{leaf.dtype}{leaf.shape}".encode() + x.tobytes()).hexdigest()


def compute(only):
    """The digests of all results, a line of JSON a program."""
    device = jax.devices("xpu")[0]
    for x64 in (False, True):
        jax.config.update("jax_enable_x64", x64)
        for p in programs.PROGRAMS.values():
            for label in p.specs:
                name = f"{p.name} {label}{' x64' if x64 else ''}"
                if re.search(only, name):
                    out = run_programs.run(p, p.args(label, x64), device)
                    print(json.dumps([name, [digest(x) for x in jax.tree.leaves(out)]]), flush=True)


def on(device, only):
    done = subprocess.run([sys.executable, __file__, device, "--child", "--only", only],
                          env={**os.environ, "SUNDOG_DEVICE": device, "SUNDOG_LIBRARIES": "0",
                               "SUNDOG_ENGINES": "0",
                               "JAX_PLATFORMS": "xpu,cpu"},
                          stdout=subprocess.PIPE, text=True, check=True)
    return dict(map(json.loads, done.stdout.splitlines()))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("device")
    ap.add_argument("--only", default="")
    ap.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.child:
        return compute(a.only)
    want, got = on("host", a.only), on(a.device, a.only)
    same = [name for name in want if got[name] == want[name]]
    for name in sorted(want.keys() - set(same)):
        print("differs:", name)
    print(f"{len(same)} of {len(want)} programs have the bits of host")
    sys.exit(len(same) != len(want))


if __name__ == "__main__":
    main()
