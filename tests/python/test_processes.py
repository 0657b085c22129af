"""Programs over several processes of one machine, under jax.distributed."""
import os
import shutil
import socket
import subprocess
import sys

import pytest

import environment

HERE = os.path.dirname(os.path.abspath(__file__))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(me, n, port, ends, settings):
    env = environment.bare(JAX_PLATFORMS="xpu,cpu", **settings)
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "run_processes.py"), str(me),
         str(n), str(port), ends],
        env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("n, ends, settings", [
    (2, "killed", {"SUNDOG_DEVICE": "host"}),
    (3, "exits", {"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "2"}),
    (2, "exits", {"SUNDOG_DEVICE": "cl", "SUNDOG_CL_SPLIT": "2"}),
], ids=["host-2x1", "host-3x2", "cl-2x2"])
def test_programs_over_processes(n, ends, settings):
    port = free_port()
    all_of_them = [start(i, n, port, ends, settings) for i in range(n)]
    try:
        said = [p.communicate(timeout=300)[0] for p in all_of_them]
    finally:
        for p in all_of_them:
            p.kill()
    for i, p in enumerate(all_of_them[:-1]):
        assert p.returncode == 0 and "ok ends" in said[i], said[i][-4000:]
    assert "ok arrays that fail" in said[-1], said[-1][-4000:]


MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join(
    [os.path.dirname(sys.executable), os.environ.get("PATH", "")]))


@pytest.mark.skipif(not MPIEXEC, reason="no mpiexec (pip install impi-rt)")
def test_programs_by_mpi():
    env = environment.bare(JAX_PLATFORMS="xpu,cpu", SUNDOG_DEVICE="host",
                           SUNDOG_HOST_DEVICES="2", SUNDOG_WIRE="mpi")
    done = subprocess.run(
        [MPIEXEC, "-n", "2", sys.executable,
         os.path.join(HERE, "run_processes.py"), "mpi", "2", str(free_port()),
         "well"], env=env, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.count("ok ends") == 2, done.stdout[-4000:]
    assert "SUNDOG_WIRE" not in done.stderr, done.stderr[-2000:]
