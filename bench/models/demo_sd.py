"""What `make demo-sd` runs, on each device and in each type, its figures kept.

usage: demo_sd.py [DEVICE...]

Results go to bench/results/demo-sd.json, those of a device and type in place of
what was there; pages.py makes a table of docs/stable-diffusion.md of them.
"""
import json
import os
import subprocess
import sys
import tempfile

from run import HERE, keep, where

ROOT = os.path.join(HERE, "..", "..")
EXAMPLE = os.path.join(ROOT, "examples", "stable_diffusion.py")
DTYPES, DEVICES = ("f32", "bf16"), ("host", "cl")


def measure(device, dtype, folder):
    """Figures of one run, or its exit status where that is not 0."""
    machine, figures = where(), os.path.join(folder, "figures.json")
    r = subprocess.run(
        [sys.executable, EXAMPLE, "--size", "small", "--dtype", dtype,
         "--compare", "--out", os.path.join(folder, "img.png"),
         "--json", figures], env=dict(os.environ, SUNDOG_DEVICE=device))
    if r.returncode:
        return r.returncode
    with open(figures) as f:
        return dict(json.load(f), name=f"{device} {dtype}", device=device,
                    **machine)


def main():
    os.environ.pop("JAX_PLATFORMS", None)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for device in sys.argv[1:] or DEVICES:
            for dtype in DTYPES:
                r = measure(device, dtype, folder)
                if isinstance(r, int):
                    failed.append(f"{device} {dtype}")
                    continue
                keep(os.path.join(ROOT, "bench", "results", "demo-sd.json"), r,
                     [f"{d} {t}" for d in DEVICES for t in DTYPES])
    if failed:
        sys.exit(f"demo_sd: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
