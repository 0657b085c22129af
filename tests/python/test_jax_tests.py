"""The runner of JAX's own tests, on tests that pass, fail, skip, crash, hang."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(HERE, "..", "jax")
TESTS = '''
import multiprocessing, os, signal, sys, time
import jax
from absl.testing import absltest
from jax._src import test_util as jtu
jax.config.parse_flags_with_absl()
jtu.request_cpu_devices(4)
ours = jax.default_backend() == "xpu"

def child():
  pass

class Tiny(jtu.JaxTestCase):
  def test_passes(self):
    self.assertAllClose(jax.jit(lambda x: x + 1)(1), 2, check_dtypes=False)
    self.assertLen(jax.devices("cpu"), 1)

  def test_fails_everywhere(self):
    self.assertEqual(1, 2)

  def test_fails_on_ours(self):
    self.assertFalse(ours, "because it is ours")

  @jtu.run_on_devices("cpu")
  def test_skips_on_ours(self):
    pass

  @jtu.run_on_devices("cpu")
  def test_skips_on_ours_and_fails(self):
    self.assertFalse(ours)

  def test_crashes_on_ours(self):
    if ours: os.kill(os.getpid(), signal.SIGSEGV)

  def test_hangs_on_ours(self):
    if ours: time.sleep(1000)

  def test_skips_on_ours_and_leaves_a_mess(self):
    jax.config.update("jax_log_compiles", ours)
    if ours: self.skipTest("before it could clean up")

  def test_that_finds_no_mess(self):
    self.assertFalse(jax.config.jax_log_compiles)

  def test_is_alone_in_R(self):
    self.assertEqual(ours, "sundog.jax_plugin" in sys.modules)

  def test_has_a_child(self):
    p = multiprocessing.get_context("spawn").Process(target=child)
    p.start()
    p.join()
    self.assertEqual(p.exitcode, 0)

  if not ours:
    def test_absent_on_ours(self):
      pass
'''


@pytest.fixture
def tool(tmp_path):
    source = tmp_path / "jax"
    (source / "tests").mkdir(parents=True)
    (source / "tests" / "lax_test.py").write_text("")  # what a checkout has
    (source / "tests" / "tiny_test.py").write_text(TESTS)
    (source / "pyproject.toml").write_text(
        "[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n")
    env = dict(os.environ, OUT_OF_JAX_TESTS=str(tmp_path / "out"))

    def run(*args):
        r = subprocess.run(
            [sys.executable, os.path.join(TOOL, args[0]), *args[1:]], env=env,
            text=True, capture_output=True, timeout=600)
        assert r.returncode == 0, r.stdout[-3000:] + r.stderr[-3000:]
        return r.stdout

    def everything(*more):
        run("run.py", "--source", str(source), "--files", "tiny", "--x64", "0",
            "--commit", "c", "--limit", "15", *more)
        sys.path.insert(0, TOOL)
        import results
        results.OUT = str(tmp_path / "out")
        found = {}
        for mode in "RUD":
            where = results.folder_of(mode, 0, "host", "c")
            found[mode] = {
                name.removeprefix("Tiny::test_"): r["status"] for name, r in
                results.Results(where).read("tiny_test")[1].items()}
        return found
    everything.table = lambda: run("table.py", "--commit", "c", "--print")
    return everything


WANT = {
    "R": {"passes": "pass", "fails_everywhere": "fail",
          "fails_on_ours": "pass", "skips_on_ours": "pass",
          "skips_on_ours_and_fails": "pass", "crashes_on_ours": "pass",
          "hangs_on_ours": "pass", "absent_on_ours": "pass",
          "skips_on_ours_and_leaves_a_mess": "pass",
          "that_finds_no_mess": "pass", "has_a_child": "pass",
          "is_alone_in_R": "pass"},
    "U": {"passes": "pass", "that_finds_no_mess": "pass",
          "has_a_child": "pass", "is_alone_in_R": "pass", "skips_on_ours_and_leaves_a_mess": "skip", "fails_on_ours": "fail", "skips_on_ours": "skip",
          "skips_on_ours_and_fails": "skip", "crashes_on_ours": "crash",
          "hangs_on_ours": "timeout", "absent_on_ours": "absent"},
    "D": {"skips_on_ours": "pass", "skips_on_ours_and_fails": "fail",
          "skips_on_ours_and_leaves_a_mess": "skip",
          "absent_on_ours": "absent"}}


def test_each_fate_in_shards_and_parts(tool):
    half = tool("--shard", "1/2")
    assert 0 < len(half["R"]) < len(WANT["R"])
    assert tool("--workers", "2", "--job", "50") == WANT  # goes on
    table = tool.table()
    assert "all tests, part 1/2 of tiny at `jax-v" in table
    assert "all tests of tiny at `jax-v" in table
