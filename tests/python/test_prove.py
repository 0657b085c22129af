"""Steps are kept, left where there is no time, and say what they ran."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def prove(*more):
    return subprocess.run([sys.executable, os.path.join(HERE, "prove.py"), "host", *more],
                          capture_output=True, text=True)


def test_steps_are_taken_up_again(tmp_path):
    what = ["--out", str(tmp_path), "--only", "selftest,random"]
    none = prove(*what, "--seconds", "10")
    assert none.returncode == 2 and none.stdout == "selftest: left\nrandom: left\n", none
    (tmp_path / "random.txt").write_text("commit of another time\nended with 0 after 1 seconds\n")
    some = prove(*what, "--seconds", "100")
    assert "selftest: right (now)\nrandom: left\n" == some.stdout, some
    text = (tmp_path / "selftest.txt").read_text()
    assert text.startswith("commit ") and "verdict: right on host" in text, text[-2000:]
    again = prove(*what, "--seconds", "100")
    assert again.returncode == 2 and "selftest: right (before)\nrandom: left\n" == again.stdout, again
