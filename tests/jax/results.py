"""What is known of JAX's tests: their files, and the results so far, which lie
in build/jax-tests: R/<jaxlib>/x64-N/ (R.cuda/ where CUDA judges) and <device>/<jaxlib>-<commit>/U-x64-N/,
a file of JSON lines for each test file.  Of several devices they lie in
R-<n>/ and <device>-<n>/."""
import json
import os
import subprocess
import threading
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
OUT = os.environ.get("OUT_OF_JAX_TESTS",
                     os.path.join(TOP, "build", "jax-tests"))


def label(device, n):
    """What n devices of a kind are called; one is called as its kind."""
    return f"{device}-{n}" if n > 1 else device


def tiers(device):
    """Of the files that a device of this label runs when none are named."""
    return "M" if "-" in device else "A,B"


def files(spec):
    """(tier, file, tests) of the list; spec: tiers or names, by comma."""
    with open(os.path.join(HERE, "files.tsv")) as f:
        rows = [line.split() for line in f if not line.startswith("#")]
    rows = [(tier, name, int(n)) for tier, name, n in rows]
    by_name = {name: (tier, name, n) for tier, name, n in rows}
    chosen = []
    for word in spec.split(","):
        name = os.path.basename(word).removesuffix(".py")
        name = name if name.endswith("_test") else name + "_test"
        of_tier = [r for r in rows if r[0] == word]
        chosen += of_tier or [by_name.get(name, ("-", name, 100))]
    return chosen


def chosen(file, name, cut):
    """Whether a test is in a cut, a list of (one, of): the same tests always,
    whatever else the file has."""
    n = zlib.crc32(f"{file}::{name}".encode())
    for one, of in cut:
        if n % of != one:
            return False
        n //= of
    return True


JAXLIB = None  # whose results are read, if not the installed one's
JUDGE = "cpu"  # JAX's platform that R runs on


def jaxlib_version():
    from importlib.metadata import version
    return JAXLIB or version("jaxlib")


def our_commit():
    r = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=TOP,
                       capture_output=True, text=True)
    return r.stdout.strip() or "unknown"


def checkout(source, tag):
    """A folder with JAX's tests: source itself, or a bare repository's tag."""
    if os.path.isfile(os.path.join(source, "tests", "lax_test.py")):
        return os.path.abspath(source)
    folder = os.path.join(OUT, "source-" + tag)
    if not os.path.isdir(folder):
        new = f"{folder}.{os.getpid()}"
        os.makedirs(new)
        archive = subprocess.run(
            ["git", "-C", source, "archive", tag, "tests", "conftest.py",
             "pyproject.toml"], check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x", "-C", new], input=archive, check=True)
        os.rename(new, folder)
    return folder


def folder_of(mode, x64, device, commit):
    if mode == "R":
        _, several, n = device.partition("-")
        of = "" if JUDGE == "cpu" else "." + JUDGE
        return os.path.join(OUT, "R" + of + several + n, jaxlib_version(),
                            f"x64-{x64}")
    return os.path.join(OUT, device, f"{jaxlib_version()}-{commit}",
                        f"{mode}-x64-{x64}")


class Results:
    """Of one mode, device and width."""

    def __init__(self, folder):
        self.folder, self.lock = folder, threading.Lock()

    def path(self, file):
        return os.path.join(self.folder, file + ".jsonl")

    def read(self, file):
        """(all ids or None, {id: result}); a test's last line counts."""
        ids, results = None, {}
        try:
            with open(self.path(file)) as f:
                lines = f.readlines()
        except FileNotFoundError:
            return None, {}
        for line in lines:
            try:
                r = json.loads(line)
            except ValueError:  # cut off when the run was
                continue
            if "ids" in r:
                ids = r["ids"]
            else:
                results[r["id"]] = r
        return ids, results

    def passed(self, file):
        return {name for name, r in self.read(file)[1].items()
                if r["status"] == "pass"}

    def add(self, file, **record):
        with self.lock:
            os.makedirs(self.folder, exist_ok=True)
            with open(self.path(file), "a") as f:
                f.write(json.dumps(record) + "\n")

    def note(self, **run):
        """One line for each run that came to its end."""
        folder = os.path.dirname(self.folder)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "runs.jsonl"), "a") as f:
            f.write(json.dumps(run) + "\n")

    def notes(self):
        try:
            with open(os.path.join(os.path.dirname(self.folder),
                                   "runs.jsonl")) as f:
                return [json.loads(line) for line in f]
        except FileNotFoundError:
            return []
