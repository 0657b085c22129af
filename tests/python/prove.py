"""All that a device is held against, in steps that can be taken up again.

usage: prove.py DEVICE --out FOLDER [--only STEP,...] [--seconds N] [--sanitizer PATH]

Each step writes FOLDER/STEP.txt: the commit, the command, what it printed and how it
ended.  A step that has ended at this commit is not done again; none begins that is not
likely to end within N seconds (600), so that a machine can be had for a short time,
again and again.  Prints a line a step; exits 1 when one failed, 2 when some are left.
"""
import argparse
import glob
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
BUILD = os.path.join(TOP, "build/release")
PY, ON, NARROW = sys.executable, {}, {"SUNDOG_WGMMA": "0"}


def steps(device, sanitizer):
    """Name, seconds that it may take on a card, environment, command; the short and
    telling ones first."""
    def of(name):
        return os.path.join(HERE, name)
    random = os.path.join(BUILD, "tests/random/test_random")
    plans = sorted(glob.glob(os.path.join(TOP, "tests/plan/*.hlo")))
    cases = sorted(glob.glob(os.path.join(TOP, "tests/random/cases/*.hlo")))
    gpu = [PY, os.path.join(TOP, "bench/gpu.py"), "--rounds", "1", "--only"]
    yield "selftest", 60, ON, [os.path.join(BUILD, "tools/sundog"), "selftest", device]
    yield "sorts", 60, ON, [PY, of("run_sorts.py")]
    yield "narrow", 60, ON, [PY, of("run_narrow.py")]
    yield "products", 60, ON, [PY, of("run_exact_products.py")]
    yield "products_mma", 60, NARROW, [PY, of("run_exact_products.py")]
    yield "products_f32", 60, {"NVIDIA_TF32_OVERRIDE": "0"}, [PY, of("run_exact_products.py"), "--only", "f32"]
    yield "speed_products", 60, ON, gpu + ["product"]
    yield "speed_products_mma", 60, NARROW, gpu + ["product"]
    yield "speed_calls", 90, ON, gpu + ["call"]
    yield "same_bits", 120, ON, [PY, of("same_bits.py"), device]
    yield "programs", 120, ON, [PY, of("run_programs.py")]
    yield "programs_x64", 120, ON, [PY, of("run_programs.py"), "--x64"]
    # tensors on the card would be those of JAX's own platform, if it were there
    yield "kernels", 60, {"JAX_PLATFORMS": "xpu,cpu"}, [PY, of("run_kernels.py")]
    yield "random", 120, ON, [random, device, "run", "1", "2000"]
    yield "conform", 300, ON, [PY, os.path.join(TOP, "tests/conform/conform.py"), "--x64",
                               "--every", "8", "--jobs", "8"]
    if sanitizer:
        for tool in "memcheck", "racecheck", "synccheck":
            yield tool, 240, ON, [PY, of("compute_sanitizer.py"), os.path.join(BUILD, "tools/sundog"),
                                  "--sanitizer", sanitizer, "--tools", tool, *plans, *cases]
    yield "speed", 300, ON, gpu + [""]


def commit():
    """As git has it, or the file `commit` beside this tree's top says."""
    done = subprocess.run(["git", "-C", TOP, "rev-parse", "--short", "HEAD"], capture_output=True,
                          text=True)
    if done.returncode == 0:
        return done.stdout.strip()
    with open(os.path.join(TOP, "commit")) as f:
        return f.read().strip()


def ended(path, head):
    """How the step ended at this commit; None."""
    if not os.path.exists(path):
        return None
    lines = open(path).read().splitlines()
    if not lines or lines[0] != head or not lines[-1].startswith("ended with "):
        return None
    return int(lines[-1].split()[2])


def do(path, head, env, command, limit):
    begun = time.time()
    with open(path, "w") as f:
        print(head, *command, sep="\n", file=f, flush=True)
        try:
            code = subprocess.run(command, env=env, stdout=f, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            print(f"\nnot done in {limit:.0f} seconds", file=f)
            return 1
        print(f"\nended with {code} after {time.time() - begun:.0f} seconds", file=f)
    return code


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("device")
    ap.add_argument("--out", required=True)
    ap.add_argument("--only", default="")
    ap.add_argument("--seconds", type=float, default=600)
    ap.add_argument("--sanitizer", default="")
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    head, end, failed, left = f"commit {commit()}", time.time() + a.seconds, 0, 0
    for name, seconds, more, command in steps(a.device, a.sanitizer):
        if a.only and name not in a.only.split(","):
            continue
        path = os.path.join(a.out, name + ".txt")
        code, word = ended(path, head), "before"
        if code is None and time.time() + seconds > end:
            left += 1
            print(f"{name}: left", flush=True)
            continue
        if code is None:
            env = {**os.environ, "SUNDOG_DEVICE": a.device, "PYTHONUNBUFFERED": "1", **more}
            code, word = do(path, head, env, command, end - time.time()), "now"
        failed += code != 0
        print(f"{name}: {'right' if code == 0 else 'FAILED'} ({word})", flush=True)
    return 1 if failed else 2 if left else 0


if __name__ == "__main__":
    sys.exit(main())
