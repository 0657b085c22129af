"""Programs over several processes of one machine, under jax.distributed."""
import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys

import pytest

import environment

HERE = os.path.dirname(os.path.abspath(__file__))


@contextlib.contextmanager
def port_held():
    """A port for JAX's service, which shares it with whoever lets it: nobody
    else gets it in the seconds until the service is there."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind(("127.0.0.1", 0))
        yield s.getsockname()[1]


def start(me, n, port, ends, settings):
    env = environment.bare(JAX_PLATFORMS="xpu,cpu", **settings)
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "run_processes.py"), str(me),
         str(n), str(port), ends],
        env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        preexec_fn=environment.ends_with_us())


@pytest.mark.parametrize("n, ends, settings", [
    (2, "killed", {"SUNDOG_DEVICE": "host"}),
    (3, "exits", {"SUNDOG_DEVICE": "host", "SUNDOG_HOST_DEVICES": "2"}),
    (2, "exits", {"SUNDOG_DEVICE": "cl", "SUNDOG_CL_SPLIT": "2"}),
], ids=["host-2x1", "host-3x2", "cl-2x2"])
def test_programs_over_processes(n, ends, settings):
    with port_held() as port:
        all_of_them = [start(i, n, port, ends, settings) for i in range(n)]
        try:
            said = [p.communicate(timeout=300)[0] for p in all_of_them]
        finally:
            for p in all_of_them:
                p.kill()
    for i, p in enumerate(all_of_them[:-1]):
        assert p.returncode == 0 and "ok ends" in said[i], said[i][-4000:]
    assert "ok arrays that fail" in said[-1], said[-1][-4000:]


# Process 0 of 2, for whose other nobody cares.
WAITS = """
import test_processes
with test_processes.port_held() as port:
    p = test_processes.start(0, 2, port, "exits", {"SUNDOG_DEVICE": "host"})
    print(p.pid, flush=True)
    p.wait()
"""


def test_who_waits_for_others_ends_with_the_tests_that_started_it():
    tests = subprocess.Popen([sys.executable, "-c", WAITS], cwd=HERE, text=True,
                             env=environment.bare(), stdout=subprocess.PIPE)
    waits = os.pidfd_open(int(tests.stdout.readline()))
    try:
        assert not select.select([waits], [], [], 0)[0]
        tests.kill()
        assert select.select([waits], [], [], 60)[0], "it still runs"
    finally:
        tests.kill()
        tests.wait()
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(waits, signal.SIGKILL)
        os.close(waits)


MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join(
    [os.path.dirname(sys.executable), os.environ.get("PATH", "")]))


@pytest.mark.skipif(not MPIEXEC, reason="no mpiexec (pip install impi-rt)")
def test_programs_by_mpi():
    env = environment.bare(JAX_PLATFORMS="xpu,cpu", SUNDOG_DEVICE="host",
                           SUNDOG_HOST_DEVICES="2", SUNDOG_WIRE="mpi")
    with port_held() as port:
        done = subprocess.run(  # what it starts ends with it
            [MPIEXEC, "-n", "2", sys.executable,
             os.path.join(HERE, "run_processes.py"), "mpi", "2", str(port),
             "well"], env=env, text=True, capture_output=True, timeout=300,
            preexec_fn=environment.ends_with_us())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.count("ok ends") == 2, done.stdout[-4000:]
    assert "SUNDOG_WIRE" not in done.stderr, done.stderr[-2000:]
