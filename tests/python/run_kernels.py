"""Foreign calls and DLPack on a CUDA card, for a machine that has one:
    run_kernels.py [HANDLERS.so]
kernels from PTX (and a cubin, where there is an nvcc), handlers (of
handlers_cuda.c, compiled), and arrays shared with PyTorch and CuPy, where they
are installed.  Prints "ok NAME" for each, what failed and what was skipped; exits 1
unless all that was not skipped passed, and something was."""
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import traceback

import jax
import jax.numpy as jnp
import numpy as np

import sundog.ffi

jax.config.update("jax_enable_x64", True)
class Skipped(Exception):
    pass


D = jax.devices("xpu")[0]
F = np.float32
CALL = jax.ffi.ffi_call
N = np.arange(1 << 20, dtype=F)
PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .u64 px, .param .u64 py, .param .u64 po, .param .f32 pa, .param .u32 pn)
{
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<5>; .reg .b64 %d<8>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r5, [pn];
  setp.ge.u32 %p1, %r4, %r5;
  @%p1 bra DONE;
  ld.param.u64 %d1, [px]; ld.param.u64 %d2, [py]; ld.param.u64 %d3, [po]; ld.param.f32 %f1, [pa];
  mul.wide.u32 %d4, %r4, 4;
  add.s64 %d5, %d1, %d4; add.s64 %d6, %d2, %d4; add.s64 %d7, %d3, %d4;
  ld.global.f32 %f2, [%d5]; ld.global.f32 %f3, [%d6];
  fma.rn.f32 %f4, %f1, %f2, %f3;
  st.global.f32 [%d7], %f4;
DONE:
  ret;
}
.visible .entry places(.param .u64 px, .param .u64 po, .param .u64 pp)
{
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [px]; ld.param.u64 %d2, [po]; ld.param.u64 %d3, [pp];
  st.global.u64 [%d3], %d1; st.global.u64 [%d3+8], %d2; st.global.u64 [%d3+16], %d3;
  ret;
}
"""
CUDA_C = """
extern "C" __global__ void sums(const float *x, float *out)
{
    extern __shared__ float part[];
    part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        float s = 0;
        for (int k = 0; k < blockDim.x; k++)
            s += part[k];
        out[blockIdx.x] = s;
    }
}
"""


def out(shape, t=F):
    return jax.ShapeDtypeStruct(shape, t)


def on(x):
    return jax.device_put(x, D)


def same(got, want, name):
    np.testing.assert_array_equal(np.asarray(got), want, err_msg=name)
    print("ok", name, flush=True)


def fails(f, *texts):
    try:
        jax.block_until_ready(f())
    except Exception as e:
        for t in texts:
            assert t in str(e), (t, str(e))
        print("ok refused:", str(e).replace("\n", " ")[:240], flush=True)
        return
    raise AssertionError("no error")


# ---- kernels ----

def saxpy(x, y, a=F(2)):
    return CALL("saxpy", out(x.shape), vmap_method="sequential")(
        x, y, a=a, n=np.int32(x.size))


def kernels():
    sundog.ffi.register_kernel(
        "saxpy", PTX, form="ptx", grid=lambda x, *_: -(-x.size // 128),
        block=128, scalars=("a", "n"))
    sundog.ffi.register_kernel("places", PTX, form="ptx", grid=1, block=1)
    x, y = on(N), on(N * 3)
    same(jax.jit(saxpy)(x, y), 5 * N, "elementwise")
    same(jax.jit(lambda x, y: saxpy(x * 2, y + 1) + 1)(x, y), 7 * N + 2,
         "between our kernels")
    s = on(N % 1024)
    same(jax.jit(lambda x: jax.lax.while_loop(
        lambda c: c[0] < 300, lambda c: (c[0] + 1, saxpy(c[1], x, F(1))),
        (0, x))[1])(s), N % 1024 * 301, "while")
    same(jax.jit(lambda x: jax.lax.fori_loop(
        0, 10, lambda i, c: saxpy(c, x, F(1)), x))(x), 11 * N, "fori")
    same(jax.jit(jax.vmap(saxpy))(x.reshape(16, -1), y.reshape(16, -1)),
         (5 * N).reshape(16, -1), "vmap")
    r, at = jax.jit(lambda x: CALL("places", [out(x.shape), out(
        (3,), np.uint64)])(x))(x)
    same(at, [b.unsafe_buffer_pointer() for b in (x, r, at)], "addresses")


def made_by_nvcc():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise Skipped("no nvcc: no cubin")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/k.cu", "w") as f:
            f.write(CUDA_C)
        subprocess.run([nvcc, "-arch=native", "-cubin", "-o", f"{folder}/k.cubin",
                        f"{folder}/k.cu"], check=True)
        with open(f"{folder}/k.cubin", "rb") as f:
            code = f.read()
    for name, block in (("sums", 64), ("sums_large", 1024)):
        sundog.ffi.register_kernel(
            name, code, form="cubin", entry="sums", grid=lambda x, o: o.size,
            block=block, local=60000 if block == 1024 else block * 4)
        x = on(N % 7)
        same(jax.jit(lambda x: CALL(name, out((x.size // block,)))(x))(x),
             (N % 7).reshape(-1, block).sum(1), f"cubin, blocks of {block}")


def refused():
    def call(name, **k):
        return jax.jit(lambda x: CALL(name, out(x.shape))(x, **k))(on(N))
    sundog.ffi.register_kernel("typo", PTX.replace("fma.rn.f32", "fma.rn.f33"),
                               form="ptx", grid=1, block=1)
    fails(lambda: call("typo"), "kernel typo", "cuModuleLoadDataEx", "f33")
    sundog.ffi.register_kernel("nowhere", PTX, form="ptx", grid=1, block=1)
    fails(lambda: call("nowhere"), "cuModuleGetFunction", "NOT_FOUND")
    sundog.ffi.register_kernel("few", PTX, entry="saxpy", form="ptx", grid=1,
                               block=1)
    fails(lambda: call("few"), "kernel few")
    sundog.ffi.register_kernel("large", PTX, entry="places", form="ptx", grid=1,
                               block=2048)
    fails(lambda: jax.jit(lambda x: CALL("large", [out((1,)), out(
        (3,), np.uint32)])(x))(on(N)), "kernel large", "2048", "INVALID")
    sundog.ffi.register_kernel("other", "", form="opencl_c", grid=1, block=1)
    fails(lambda: call("other"), "source for cl, and this device is cuda")
    same(jax.jit(saxpy)(on(N), on(N)), 3 * N, "afterwards")


# ---- handlers ----

def handlers():
    if len(sys.argv) < 2:
        raise Skipped("no library of handlers")
    lib = ctypes.CDLL(sys.argv[1])
    for h in ("queue_copy", "scratch_copy", "fail"):
        jax.ffi.register_ffi_target(h, jax.ffi.pycapsule(getattr(lib, h)),
                                    platform="xpu:cuda")
    x = on(N)

    def copy(x, name="queue_copy"):
        return CALL(name, out(x.shape), vmap_method="sequential")(x)
    same(jax.jit(lambda x: copy(x * 2) + 1)(x), N * 2 + 1, "handler, order")
    same(jax.jit(lambda x: copy(x * 2, "scratch_copy") + 1)(x), N * 2 + 1,
         "handler, memory")
    same(jax.jit(lambda x: jax.lax.while_loop(
        lambda c: c[0] < 300, lambda c: (c[0] + 1, copy(copy(
            c[1], "scratch_copy") + 1)), (0, x))[1])(x), on(N) + 300,
         "handler, loop")
    f = jax.jit(lambda x: CALL("fail", out(x.shape))(x * 2, text="it is gone"))
    fails(lambda: f(x), "DATA_LOSS", "it is gone", "custom-call fail")
    same(jax.jit(copy)(x), N, "handler, afterwards")


# ---- DLPack ----

def slow(x):
    return jax.lax.fori_loop(0, 200, lambda i, x: jnp.sin(x) + x, x)


def shared_with(name, to, back, pointer, busy):
    """to: an array of ours as theirs; back: theirs in NumPy; pointer: where it
    is; busy: one that is still being computed."""
    f = jax.jit(slow)
    x = on(N)
    want = np.asarray(f(x))
    for i in range(5):  # nobody waits: their stream does
        y = f(x)
        t = to(y)
        assert pointer(t) == y.unsafe_buffer_pointer()
        same(back(t * 2), want * 2, f"{name} reads ours in place")
    del t
    t = to(y)
    y.delete()
    del y
    gc.collect()
    for i in range(50):
        jax.device_put(N * 0, D)
    same(back(t), want, f"{name} keeps it")
    z = on(N)
    t = to(z)
    at = z.unsafe_buffer_pointer()
    w = jax.jit(lambda x: x + 1, donate_argnums=0)(z)
    assert z.is_deleted() and w.unsafe_buffer_pointer() != at
    same(back(t), N, f"{name} keeps what is donated")
    del t
    g = jax.jit(lambda x: x * 2)
    for i in range(5):  # theirs is still being computed
        t = busy()
        x = jax.dlpack.from_dlpack(t)
        assert x.devices() == {D} and x.unsafe_buffer_pointer() == pointer(t)
        y = g(x)
        h = np.asarray(x)
        same(y, back(t) * 2, f"ours reads {name} in place")
        np.testing.assert_array_equal(h, back(t))
    del t
    gc.collect()
    busy()
    same(x * 2, y, f"ours keeps what is of {name}")


def torch():
    try:
        import torch
    except ImportError:
        raise Skipped("no torch")

    def busy():
        t = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
        for _ in range(200):
            t = torch.sin(t) + t
        return t
    with torch.cuda.stream(torch.cuda.Stream()):
        shared_with("torch", torch.from_dlpack, lambda t: t.cpu().numpy(),
                    lambda t: t.data_ptr(), busy)
    for t in (torch.bfloat16, torch.bool, torch.int64, torch.complex64):
        a = torch.ones((3, 5), device="cuda").to(t)
        x = jax.dlpack.from_dlpack(a)
        assert x.shape == (3, 5) and (torch.from_dlpack(x) == a).all(), t
    a = torch.ones((4, 6), device="cuda")
    fails(lambda: jax.dlpack.from_dlpack(a.T), "not dense")
    fails(lambda: jax.dlpack.from_dlpack(a.reshape(-1)[1:]), "multiple of 64")
    x = jax.dlpack.from_dlpack(a, device=jax.devices("cpu")[0])
    assert x.devices() == {jax.devices("cpu")[0]}
    print("ok torch, types and refusals")


def cupy():
    try:
        import cupy
    except ImportError:
        raise Skipped("no cupy")
    def busy():
        t = cupy.arange(1 << 20, dtype=F)
        for _ in range(200):
            t = cupy.sin(t) + t
        return t
    with cupy.cuda.Stream(non_blocking=True):
        shared_with("cupy", cupy.from_dlpack, cupy.asnumpy,
                    lambda t: t.data.ptr, busy)


print(D, jax.__version__)
PARTS = kernels, made_by_nvcc, refused, handlers, torch, cupy
bad, skipped = 0, 0
for part in PARTS:
    try:
        part()
    except Skipped as e:
        skipped += 1
        print("skipped", part.__name__ + ":", e)
    except Exception:
        bad += 1
        print("FAILED", part.__name__)
        traceback.print_exc(file=sys.stdout)
print(f"{len(PARTS) - bad - skipped} of {len(PARTS)} parts passed, "
      f"{bad} failed, {skipped} were skipped")
sys.exit(bad > 0 or skipped == len(PARTS))
