"""Arrays of others come in by one capsule, of a producer that is asked once."""

IN = """
import numpy as np, jax
D = jax.devices("xpu")[0]

class Producer:
    def __init__(self, x):
        self.x, self.asked = x, 0
    def __dlpack_device__(self):
        return self.x.__dlpack_device__()
    def __dlpack__(self, **k):
        self.asked += 1
        return self.x.__dlpack__(**k)

room = np.zeros(1024, np.float32)
at = -room.ctypes.data % 64 // 4
dense = room[at:at + 64].reshape(8, 8)
dense[...] = np.arange(64).reshape(8, 8)
p = Producer(dense)
x = jax.dlpack.from_dlpack(p, device=D)
print(p.asked, x.devices() == {D}, x.unsafe_buffer_pointer() == dense.ctypes.data)
print((np.asarray(x) == dense).all(), float(x.sum()))
for odd in dense.T, room[at + 1:at + 9]:  # not as we have arrays: copied
    y = jax.dlpack.from_dlpack(odd, device=D)
    print(y.devices() == {D}, (np.asarray(y) == odd).all())
    try:
        jax.dlpack.from_dlpack(odd, device=D, copy=False)
    except ValueError as e:
        print("in place" in str(e))
"""


def test_a_producer_is_asked_once(python):
    out = python(IN, env={"SUNDOG_DEVICE": "host"}).split()
    assert out == "1 True True True 2016.0".split() + ["True"] * 6


OUT = """
import jax, jax.numpy as jnp, numpy as np
x = jnp.arange(64, dtype=jnp.bfloat16)  # NumPy reads no bf16
for consumer in np.from_dlpack, lambda x: x.__dlpack__().missing:
    try:
        consumer(x)
    except (BufferError, RuntimeError, AttributeError):  # as NumPy 1 and 2 say
        print("refused")
at = x.unsafe_buffer_pointer()
y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
print(y.unsafe_buffer_pointer() == at)  # nothing of x is lent any more
"""


def test_a_tensor_that_is_refused_is_given_back(python):
    out = python(OUT, env={"SUNDOG_DEVICE": "host"}).split()
    assert out == ["refused", "refused", "True"]
