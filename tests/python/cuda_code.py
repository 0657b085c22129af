"""What a program becomes for a CUDA GPU that need not be there: its plan, and PTX that
ptxas takes and tests/ptx/simulate.py runs."""
import os
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TOOL = os.path.join(TOP, "build/release/tools/sundog")
TARGET = "--target=cuda:sm_90"
sys.path.insert(0, os.path.join(TOP, "tests/ptx"))
import oracle  # noqa: E402,F401
import ptx  # noqa: E402
import simulate  # noqa: E402,F401


def assembled(path, *options, chip="sm_90"):
    """What ptxas says of the PTX at path, which it must take."""
    done = subprocess.run([ptx.find_ptxas(), f"-arch={chip}", *options, "-o", os.devnull, path],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def compiled(tmp, text):
    """The plan, and the path of PTX that ptxas takes."""
    program = tmp / "program.hlo"
    program.write_text(text)
    plan = subprocess.run([TOOL, "opt", "--plan", TARGET, program], check=True, capture_output=True, text=True).stdout
    subprocess.run([TOOL, "compile", TARGET, f"--out={tmp}", program], check=True, capture_output=True)
    path = next(tmp.glob("*.ptx"))
    assembled(path)
    return plan, path
