"""Runs programs on `cuda` under NVIDIA's compute-sanitizer.

usage: compute_sanitizer.py SUNDOG [--sanitizer PATH] [--tools memcheck,...] [--jobs N] FILE...

SUNDOG is the command-line tool; each program of a file (HLO text may hold several)
runs on random arguments in a process of its own (`sundog run`).  Prints what a tool found, and for each tool "N of M
programs are clean"; what Sundog refuses with a message of its own counts apart, what ends otherwise is not clean.
Exits 1 when one is not clean or none ran.  compute-sanitizer comes with CUDA, and in PyPI's
`nvidia-cuda-sanitizer-api`.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

TOOLS = "memcheck,racecheck,synccheck"
FOUND = 99
REFUSED = re.compile(r"^sundog run: (?!.*CUDA_ERROR)", re.M)


def apart(files, folder):
    """The programs of these files, a file each."""
    for n, file in enumerate(files):
        with open(file) as f:
            text = f.read()
        programs = text.split("\nHloModule ")
        for i, program in enumerate(programs):
            path = os.path.join(folder, f"{n}-{i}-{os.path.basename(file)}")
            with open(path, "w") as f:
                f.write(program if i == 0 else "HloModule " + program)
            if len(programs) == 1 or "HloModule" in program or i:
                yield path


def run(a, tool, file):
    """What the tool found (None: nothing), and whether the program ran."""
    command = [a.sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), a.sundog, "run", file]
    try:
        done = subprocess.run(command, env={**os.environ, "SUNDOG_DEVICE": "cuda"}, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=a.limit)
    except subprocess.TimeoutExpired:
        return f"took more than {a.limit} seconds", True
    if done.returncode == FOUND:
        return "found\n" + done.stdout[:3000] + done.stderr[:1000], True
    if done.returncode == 1 and REFUSED.search(done.stderr):
        return None, False
    if done.returncode:
        return f"ended with {done.returncode}\n" + done.stdout[:1000] + done.stderr[:2000], True
    return None, True


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("sundog")
    ap.add_argument("file", nargs="+")
    ap.add_argument("--sanitizer", default="compute-sanitizer")
    ap.add_argument("--tools", default=TOOLS)
    ap.add_argument("--jobs", type=int, default=os.cpu_count())
    ap.add_argument("--limit", type=int, default=120, help="seconds a program")
    a = ap.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        programs = list(apart(a.file, folder))
        for tool in a.tools.split(","):
            said = list(pool.map(lambda f: run(a, tool, f), programs))
            for file, (found, _) in zip(programs, said):
                if found:
                    failed = True
                    print(f"{tool} {os.path.basename(file)}:\n{found}", flush=True)
            ran = sum(r for _, r in said)
            failed |= not ran
            clean = sum(r and not found for found, r in said)
            print(f"{tool}: {clean} of {ran} programs are clean, {len(said) - ran} were refused", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
