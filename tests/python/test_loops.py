"""A loop of small steps is one kernel; it gives what its steps give one by one.  A
condition that does more than compare is asked each turn, also where it is known how
often the loop turns."""

import pytest

PROGRAMS = """
import zlib, numpy as np, jax, jax.numpy as jnp
from jax import lax
r = np.random.RandomState(0)
f32 = lambda *s: jnp.asarray(r.rand(*s), jnp.float32)

def counted(x, n):
    return lax.fori_loop(0, n, lambda i, s: (s[1], s[0] * 0.75 + i), (x, x + 1))

def converging(x):
    return lax.while_loop(lambda s: jnp.abs(s[0] * s[0] - s[1]).max() > 1e-2,
                          lambda s: (s[0] + 0.1 * (s[1] / s[0] - s[0]), s[1]),
                          (x + 1, x))

def cell(c, x):
    h = jnp.tanh(c[0] @ c[1] + x)
    return (h, c[1]), h.astype(jnp.bfloat16)

def collatz(n):
    def step(s):
        return lax.cond(s[0] % 2 == 0, lambda a: a // 2,
                        lambda a: 3 * a + 1, s[0]), s[1] + 1
    return lax.while_loop(lambda s: s[0] != 1, step, (n, 0))

def nested(x):
    def outer(i, s):
        s = lax.fori_loop(0, i, lambda j, t: t.at[j].add(t[i - j]), s)
        return lax.while_loop(lambda t: t[0] > 2, lambda t: t * 0.5, s)
    return lax.fori_loop(0, 20, outer, x)

def drawing(key):
    def step(i, s):
        key, sub = jax.random.split(s[0])
        return key, s[1] + jax.random.normal(sub, (3,))
    return lax.fori_loop(0, 50, step, (key, jnp.zeros(3)))

def small(x):
    # carries that fill a part of a vector, and pieces of them
    def step(i, s):
        a, m, flags = s
        m = (m @ m * a[:3].astype(jnp.float32).real / 9).at[i % 3].add(i)
        a = jnp.concatenate([a[3:], a[2::-1]]) + m[1, 0].astype(a.dtype)
        a = lax.dynamic_update_slice(a, a[1:3], (i % 5,))
        return a, m / (1 + abs(m).max()), flags ^ (a.real > 2)
    return lax.fori_loop(0, 40, step, (x, f32(3, 3), x.real > 1))

for t in "float32 float64 float16 bfloat16 int8 int32 uint16 complex64".split():
    for n in 6, 7, 13:
        a = small(jnp.arange(n).astype(t))
        print(*[zlib.crc32(np.asarray(y).tobytes()) for y in a])
for f, a in [(counted, (jnp.float32(2), 1000)), (counted, (f32(5), 0)),
             (converging, (f32(70) + 0.5,)),
             (lambda c, w, x: lax.scan(cell, (c, w), x),
              (f32(4), f32(4, 4), f32(300, 4))),
             (collatz, (27,)), (jax.vmap(collatz), (jnp.arange(1, 40),)),
             (nested, (f32(24),)), (drawing, (jax.random.PRNGKey(3),))]:
    print(*[zlib.crc32(np.asarray(y).tobytes())
            for y in jax.tree.leaves(jax.jit(f)(*a))])
"""


@pytest.mark.parametrize("device", ["host", "cl"])
def test_a_loop_gives_what_its_steps_give(python, device):
    whole = python(PROGRAMS, env={"SUNDOG_DEVICE": device})
    steps = python(PROGRAMS, env={"SUNDOG_DEVICE": device, "SUNDOG_FUSE": "0"})
    assert whole == steps and len(whole.split("\n")) >= 32


ENDLESS = """
import os, signal, threading, time
import jax, jax.numpy as jnp
from jax import lax
inner = lambda s: lax.while_loop(lambda t: t[0] < 2, lambda t: (
    t[0] * 0.5 + 0.5, t[1] + 1), s)
f = jax.jit(lambda x: lax.fori_loop(0, 10, lambda i, s: inner(s), (x, 0)))
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    jax.block_until_ready(f(jnp.float32(1)))
except KeyboardInterrupt:
    print('KeyboardInterrupt')
print(jax.jit(lambda x: x + 1)(1))
"""


def test_an_endless_loop_inside_of_a_loop_ends_at_an_interrupt(python):
    out = python(ENDLESS, env={"SUNDOG_DEVICE": "host"}, timeout=120)
    assert out.split() == ["KeyboardInterrupt", "2"]


COUNTED = """
import numpy as np, jax, jax.numpy as jnp
from jax import lax

def turns(t, start, more, step):
    t = jnp.dtype(t)
    def body(s):
        return step(s[0], t.type), jnp.sin(s[1]) + s[1].T, s[2] + 1
    i, x, n = lax.while_loop(lambda s: more(s[0], t.type), body, (
        t.type(start), jnp.ones((40, 40)), jnp.int32(0)))
    return i, n, x

for f in [lambda: turns('int32', 0, lambda i, t: i < t(0), lambda i, t: i + t(1)),
          lambda: turns('int32', 9, lambda i, t: i > t(-4), lambda i, t: i - t(3)),
          lambda: turns('uint8', 245, lambda i, t: i < t(254), lambda i, t: i + t(10)),
          lambda: turns('uint8', 9, lambda i, t: i != t(0), lambda i, t: i - t(1)),
          lambda: turns('int8', 120, lambda i, t: i >= t(0), lambda i, t: i + t(3)),
          lambda: turns('uint8', 200, lambda i, t: t(190) <= i, lambda i, t: i + t(30)),
          lambda: turns('uint32', 0, lambda i, t: t(70) > i, lambda i, t: i + t(1))]:
    i, n, x = jax.jit(f)()
    print(int(i), int(n), float(abs(x).max()) > 0)

asked = []
def more(s):
    jax.debug.callback(lambda i: asked.append(int(i)), s[0])
    return s[0] < 3
print(jax.jit(lambda x: lax.while_loop(
    more, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1])(jnp.float32(1)))
jax.effects_barrier()
print(sorted(asked))
"""
# Their counters' last values, and how often they turn.
COUNTS = ["0 0", "-6 5", "255 1", "0 9", "-127 3", "4 2", "70 70"]


@pytest.mark.parametrize("device", ["host", "cl"])
def test_loops_turn_as_often_as_their_conditions_say(python, device):
    out = python(COUNTED, env={"SUNDOG_DEVICE": device}).strip().split("\n")
    assert out == [f"{c} True" for c in COUNTS] + ["8.0", "[0, 1, 2, 3]"]
