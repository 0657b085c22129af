"""Saved executables in another process, where neither libsundog-compiler.so nor
LLVM is; and those that must be refused."""
import pickle
import shutil

import pytest

import sundog

SAVE = """
import pickle, sys, jax, numpy as np
from jax.experimental import serialize_executable
d = jax.devices('xpu')[0]
x = jax.device_put(np.arange(12, dtype=np.float32).reshape(3, 4), d)
f = jax.jit(lambda x: (jax.nn.softmax(x) @ x.T, jax.numpy.sort(-x, 0)))
f = f.lower(x).compile()
with open(sys.argv[1], 'wb') as out:
    pickle.dump(serialize_executable.serialize(f), out)
print([np.asarray(y).tobytes().hex() for y in f(x)])
"""
LOAD = """
import pickle, sys, jax, numpy as np
from jax.experimental import serialize_executable
d = jax.devices('xpu')[0]
x = jax.device_put(np.arange(12, dtype=np.float32).reshape(3, 4), d)
with open(sys.argv[1], 'rb') as f:
    saved = pickle.load(f)
try:
    f = serialize_executable.deserialize_and_load(*saved)
    print([np.asarray(y).tobytes().hex() for y in f(x)])
    print(f.cost_analysis()['flops'] > 0)
except jax.errors.JaxRuntimeError as e:
    print(e)
with open('/proc/self/maps') as maps:
    text = maps.read()
print('LLVM' in text or 'sundog-compiler' in text)
"""


@pytest.fixture
def moved_away(tmp_path):
    """libsundog.so alone in a folder."""
    shutil.copy(sundog.library(), tmp_path)
    return str(tmp_path / "libsundog.so")


@pytest.mark.parametrize("device", ["host", "cl"])
def test_runs_without_compiler_and_llvm(python, moved_away, tmp_path, device):
    saved = str(tmp_path / "saved")
    env = {"SUNDOG_DEVICE": device}
    want = python(SAVE, saved, env=env).strip()
    # What the environment's wheels bring is found by where jaxlib lies.
    got = python(LOAD, saved, env=env | {"SUNDOG_LIBRARY": moved_away,
                                         "VIRTUAL_ENV": "/nowhere"})
    assert got.splitlines() == [want, "True", "False"]


def damage(path, change):
    """The executable's bytes, inside of JAX's pickle, changed."""
    with open(path, "rb") as f:
        payload, *trees = pickle.load(f)
    magic = payload.index(b"SDEXECUT")
    new = payload[:magic] + change(payload[magic:])
    assert len(new) == len(payload) and new != payload
    out = path + ".damaged"
    with open(out, "wb") as f:
        pickle.dump((new, *trees), f)
    return out


def test_refused_with_the_reason(python, tmp_path):
    saved = str(tmp_path / "saved")
    host = {"SUNDOG_DEVICE": "host", "SUNDOG_CPU_LEVEL": "v3"}
    python(SAVE, saved, env=host)

    def said(path, **env):
        return python(LOAD, path, env=host | env).splitlines()[0]

    def damaged_code(b):
        i = b.index(b"\x7fELF") + 90
        return b[:i] + bytes([b[i] ^ 4]) + b[i + 1:]

    assert said(damage(saved, damaged_code)).endswith(
        " bytes is damaged: checksum")
    assert said(damage(saved, lambda b: b[:8] + b"\x63" + b[9:])).startswith(
        "INVALID_ARGUMENT: an executable of version 99, this library reads ")
    assert said(saved, SUNDOG_DEVICE="cl") == (
        "FAILED_PRECONDITION: loading jit__lambda on device 0 (cl:cpu): built "
        "for host:v3, loaded on cl:cpu: compile it for this one")


def test_another_cpu_level(python, tmp_path):
    saved = str(tmp_path / "saved")
    with open("/proc/cpuinfo") as f:
        if "avx512vl" not in f.read():
            pytest.skip("a processor without AVX-512 makes no such program")
    python(SAVE, saved, env={"SUNDOG_DEVICE": "host"})
    out = python(LOAD, saved, env={"SUNDOG_DEVICE": "host",
                                   "SUNDOG_CPU_LEVEL": "v3"})
    assert out.splitlines()[0] == (
        "FAILED_PRECONDITION: loading jit__lambda on device 0 (host:v3): built "
        "for host:v4, loaded on host:v3, which has no AVX-512: compile it "
        "here, or with SUNDOG_CPU_LEVEL=v3 for both")


CACHED = """
import sys, jax
jax.config.update('jax_compilation_cache_dir', sys.argv[1])
jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)
jax.config.update('jax_raise_persistent_cache_errors', True)
hits = []
jax.monitoring.register_event_listener(
    lambda name, **_: hits.append(name) if name.endswith('cache_hits') else 0)
x = jax.device_put(3., jax.devices('xpu')[0])
print(jax.jit(lambda x: x * 2 + 1)(x), len(hits))
jax.jit(lambda x: jax.debug.print('seen {}', x))(x)
jax.effects_barrier()
"""


@pytest.mark.parametrize("device", ["host", "cl"])
def test_jax_compilation_cache(python, tmp_path, device):
    """One process compiles, the next one loads, and one with a setting that
    changes code compiles again.  Callbacks live in their process alone."""
    env = {"SUNDOG_DEVICE": device}
    cache = str(tmp_path / "cache")
    for more, hits in (({}, 0), ({}, 1), ({"SUNDOG_LIBRARIES": "0"}, 0)):
        out = python(CACHED, cache, env=env | more)
        assert out.splitlines() == [f"7.0 {hits}", "seen 3.0"]
