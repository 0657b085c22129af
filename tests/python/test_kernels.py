"""Kernels that come as source (sundog.ffi.register_kernel): on `cl` end to end, on
Intel's runtime for CPUs; `cuda` has them in tests/faults and on a card
(tests/python/run_kernels.py)."""
import parts

HEAD = """
import jax, jax.numpy as jnp, numpy as np
import sundog.ffi
jax.config.update("jax_enable_x64", True)
D = jax.devices("xpu")[0]
F = np.float32
CALL = jax.ffi.ffi_call
def out(shape, t=F):
    return jax.ShapeDtypeStruct(shape, t)
def on(x):
    return jax.device_put(x, D)
def same(got, want, name):
    np.testing.assert_array_equal(np.asarray(got), want, err_msg=name)
    print("ok", name)
def fails(f, *texts):
    try:
        jax.block_until_ready(f())
    except Exception as e:
        for t in texts:
            assert t in str(e), (t, str(e))
        return
    raise AssertionError("no error")
SOURCE = '''
#ifndef SCALE
#define SCALE 0
#endif
__kernel void saxpy(__global const float *x, __global const float *y,
                    __global float *out, float a, int n)
{
    size_t i = get_global_id(0);   /* "quotes", \\\\ and tabs:\\t */
    if (i < (size_t)n)
        out[i] = a * x[i] + y[i];
}
__kernel void places(__global const float *x, __global float *square,
                     __global ulong *at)
{
    size_t i = get_global_id(0);
    square[i] = x[i] * x[i];
    if (i == 0) {
        at[0] = (ulong)x; at[1] = (ulong)square; at[2] = (ulong)at;
    }
}
__kernel void sums(__global const float *x, __global float *out,
                   __local float *part)
{
    size_t l = get_local_id(0);
    part[l] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l == 0) {
        float s = 0;
        for (size_t k = 0; k < get_local_size(0); k++)
            s += part[k];
        out[get_group_id(0)] = s;
    }
}
__kernel void where_am_i(__global uint *out)
{
    size_t g = get_group_id(0) + get_num_groups(0) *
        (get_group_id(1) + get_num_groups(1) * get_group_id(2));
    size_t l = get_local_id(0) + get_local_size(0) *
        (get_local_id(1) + get_local_size(1) * get_local_id(2));
    out[g * get_local_size(0) * get_local_size(1) * get_local_size(2) + l] =
        SCALE * (get_global_id(0) + 100 * get_global_id(1)
                 + 10000 * get_global_id(2));
}
__kernel void add(__global float *x, __global float *same_x)
{
    same_x[get_global_id(0)] += 1;
}
'''
def register(name, **k):
    sundog.ffi.register_kernel(name, SOURCE, **{
        "form": "opencl_c", "grid": lambda x, *_: -(-x.size // 64),
        "block": 64, **k})
"""

VALUES = """
register("saxpy", scalars=("a", "n"))
def saxpy(x, y, a=F(2)):
    return CALL("saxpy", out(x.shape), vmap_method="sequential")(
        x, y, a=a, n=np.int32(x.size))
n = np.arange(1000, dtype=F)
x, y = on(n), on(n * 3)
f = jax.jit(saxpy)
same(f(x, y), 5 * n, "elementwise")
same(saxpy(x, y), 5 * n, "eager")
same(jax.jit(lambda x, y: saxpy(x, y, F(-1)))(x, y), 2 * n, "scalar")
same(jax.jit(lambda x, y: saxpy(x * 2, y + 1) + 1)(x, y), 7 * n + 2, "fused")
same(jax.jit(lambda x: jax.lax.while_loop(
    lambda c: c[0] < 300, lambda c: (c[0] + 1, saxpy(c[1], x, F(1))),
    (0, x))[1])(x), 301 * n, "while")
same(jax.jit(lambda x: jax.lax.fori_loop(
    0, 10, lambda i, c: saxpy(c, x, F(1)), x))(x), 11 * n, "fori")
same(jax.jit(jax.vmap(saxpy))(x.reshape(10, 100), y.reshape(10, 100)),
     (5 * n).reshape(10, 100), "vmap")
same(jax.jit(lambda p, x: jax.lax.cond(p, lambda x: saxpy(x, x), lambda x: x,
                                       x))(on(np.bool_(True)), x), 3 * n, "cond")
z = on(np.zeros((0,), F))
assert jax.jit(saxpy)(z, z).shape == (0,)
print("ok empty")

# several results, at our own addresses
register("places", grid=1000, block=1)
f = jax.jit(lambda x: CALL("places", [out((1000,)), out((3,), np.uint64)])(x))
r, at = f(x)
same(r, n * n, "several")
same(at, [b.unsafe_buffer_pointer() for b in (x, r, at)], "addresses")

register("sums", grid=lambda x, o: o.size, block=lambda x, o: x.size // o.size,
         local=lambda x, o: x.size // o.size * 4)
same(jax.jit(lambda x: CALL("sums", out((40,)))(x))(x),
     n.reshape(40, 25).sum(1), "local")

register("where", entry="where_am_i", grid=(2, 3, 1), block=(4, 1, 2),
         options="-DSCALE=1u")
w = np.asarray(jax.jit(lambda: CALL("where", out((48,), np.uint32))())())
i = [x + 100 * y + 10000 * z for y in range(3) for gx in range(2)
     for z in range(2) for x in range(4 * gx, 4 * gx + 4)]
same(w, i, "three-dimensions")

register("add", grid=1000, block=1)
add = lambda x: CALL("add", out(x.shape), input_output_aliases={0: 0})(x)
w, v = jax.jit(lambda x: (add(x), x * 2))(x)
same(w, n + 1, "alias")
same(v, n * 2, "alias-kept")
same(x, n, "alias-argument")
d = on(n)
at = d.unsafe_buffer_pointer()
e = jax.jit(add, donate_argnums=0)(d)
same(e, n + 1, "alias-donated")
assert e.unsafe_buffer_pointer() == at and d.is_deleted()

# a program carries its kernels: none is registered where it is loaded
s = jax.export.export(jax.jit(saxpy), platforms=["xpu"], disabled_checks=[
    jax.export.DisabledSafetyCheck.custom_call("sundog_kernel")])(x, y)
s = s.serialize()
sundog.ffi.KERNELS.clear()
same(jax.jit(jax.export.deserialize(s).call)(x, y), 5 * n, "exported")
"""

REFUSED = """
def call(name, *a, **k):
    return jax.jit(lambda x: CALL(name, out(x.shape))(x, *a, **k))(
        on(np.ones(64, F)))
sundog.ffi.register_kernel("typo", "__kernel void typo(__global float *x) "
                           "{ x[0] = zzz; }", form="opencl_c", grid=1, block=1)
fails(lambda: call("typo"), "INVALID_ARGUMENT", "kernel typo",
      "CL_BUILD_PROGRAM_FAILURE", "undeclared identifier 'zzz'")
register("nowhere")
fails(lambda: call("nowhere"), "nowhere: OpenCL, finding a kernel")
register("few", entry="saxpy")
fails(lambda: call("few"), "kernel few", "saxpy has 5 parameters, and the call "
      "gives 2")
register("large", entry="add", block=1 << 20)
fails(lambda: call("large"), "kernel large", "1 x 1 x 1 groups of 1048576",
      "CL_INVALID_WORK_GROUP_SIZE")
sundog.ffi.register_kernel("text", ".version 8.0", form="ptx", grid=1, block=1)
fails(lambda: call("text"), "UNIMPLEMENTED", "kernel text: it has source for "
      "cuda, and this device is cl")
sundog.ffi.register_kernel("noise", b"nothing", form="spirv", grid=1, block=1)
fails(lambda: call("noise"), "kernel noise", "OpenCL, reading its source")
print("ok built")

register("saxpy", scalars=("a", "n"))
fails(lambda: call("saxpy", a=F(1)), "kernel saxpy takes the attributes "
      "['a', 'n'], and the call gives ['a']")
register("negative", grid=-1)
fails(lambda: call("negative"), "kernel negative: its grid is -1")
register("flat", block=0)
fails(lambda: call("flat"), "kernel flat", "a block of 0 x 1 x 1 items")
def raises(*avals):
    raise KeyError("my own")
register("mine", grid=raises)
fails(lambda: call("mine"), "my own")
print("ok called")

register("saxpy", scalars=("a", "n"))
fails(lambda: register("saxpy", scalars=("a", "n"), block=32),
      "kernel saxpy has another source or other bounds on cl already")
fails(lambda: sundog.ffi.register_kernel("c", "", form="cuda_c", grid=1,
                                         block=1), "form 'cuda_c' is none of")
fails(lambda: sundog.ffi.register_kernel("c", "", form="cubin", grid=1,
                                         block=1), "cubin is bytes, not text")
print("ok registered")
"""

HOST = """
register("add")
fails(lambda: jax.jit(lambda x: CALL("add", out(x.shape))(x))(on(np.ones(64, F))),
      "UNIMPLEMENTED", "sundog_kernel", "a kernel by source", "runs on cl and cuda")
print("ok host")
"""


def test_kernels_on_cl(python):
    out = parts.run(python, HEAD, {"values": VALUES, "refused": REFUSED},
                    env={"SUNDOG_DEVICE": "cl"})
    assert out.oks("values") == [
        "elementwise", "eager", "scalar", "fused", "while", "fori", "vmap",
        "cond", "empty", "several", "addresses", "local", "three-dimensions",
        "alias", "alias-kept", "alias-argument", "alias-donated", "exported"]
    assert out.oks("refused") == ["built", "called", "registered"]


def test_kernels_on_host_are_refused(python):
    out = parts.run(python, HEAD, {"host": HOST}, env={"SUNDOG_DEVICE": "host"})
    assert out.oks("host") == ["host"]
