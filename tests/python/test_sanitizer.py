"""What compute_sanitizer.py makes of exit codes: a stand-in for the sanitizer runs
a stand-in for `sundog`, whose programs say how they end."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
SANITIZER = "#!/bin/sh\nshift 4\nexec \"$@\"\n"
SUNDOG = "#!/bin/sh\n. \"$2\"\n"
REFUSED = "echo 'sundog run: infeed is not implemented' >&2; exit 1\n"


def judge(folder, *programs):
    paths = []
    for name, text in [("sanitizer", SANITIZER), ("sundog", SUNDOG),
                       *((f"p{i}", p) for i, p in enumerate(programs))]:
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
        paths.append(str(path))
    return subprocess.run(
        [sys.executable, os.path.join(HERE, "compute_sanitizer.py"), paths[1],
         *paths[2:], "--sanitizer", paths[0], "--tools", "memcheck"],
        text=True, capture_output=True)


@pytest.mark.parametrize("ends, code, said", [
    (["exit 0\n"], 0, "1 of 1 programs are clean, 0 were refused"),
    (["exit 0\n", REFUSED], 0, "1 of 1 programs are clean, 1 were refused"),
    (["exit 0\n", "exit 99\n"], 1, "1 of 2 programs are clean, 0"),
    (["exit 0\n", "kill -SEGV $$\n"], 1, "1 of 2 programs are clean, 0"),
    (["exit 0\n", "exit 3\n"], 1, "ended with 3"),
    (["exit 0\n", "echo 'sundog run: CUDA_ERROR_UNKNOWN' >&2; exit 1\n"], 1,
     "ended with 1"),
    ([REFUSED], 1, "0 of 0 programs are clean, 1 were refused")])
def test_only_messages_of_our_own_are_refusals(tmp_path, ends, code, said):
    # each program is a shell script that begins as HLO text does
    done = judge(tmp_path, *(": HloModule\n" + e for e in ends))
    assert done.returncode == code and said in done.stdout, done.stdout
