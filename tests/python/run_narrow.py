"""Functions of all 65,536 values of bf16 and of f16 on a device: do they have the bits of `host`?

usage: run_narrow.py [--only REGEX]     SUNDOG_DEVICE says where

Where a chip's instructions approximate functions of bf16, they are used because each
result is right once it is rounded; that is a fact of the chip, and this is its test.  Any
NaN stands for any other.  Prints what differs and "N of M functions have the bits of
host"; exits 1 when one has not.
"""
import argparse
import json
import os
import re
import subprocess
import sys

os.environ.setdefault("JAX_PLATFORMS", "xpu,cpu")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402



def softmax_of_noise(x):
    """Of f32 up to 16, rounded to x's type: 2^18 numbers in rows of 128 and of 1,024."""
    noise = (jnp.arange(1 << 17, dtype=jnp.uint32) * jnp.uint32(2654435761) >> 8).astype(jnp.float32) / (1 << 20)
    rows = [jax.nn.softmax(noise.reshape(-1, n)).astype(x.dtype) for n in (128, 1024)]
    return jnp.concatenate([r.reshape(-1) for r in rows])


FUNCTIONS = {
    "exp": jnp.exp, "exp2": jnp.exp2, "expm1": jnp.expm1, "log": jnp.log, "log1p": jnp.log1p,
    "logistic": jax.lax.logistic, "tanh": jnp.tanh, "erf": jax.lax.erf, "rsqrt": jax.lax.rsqrt, "cbrt": jnp.cbrt,
    "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "gelu": jax.nn.gelu, "silu": jax.nn.silu,
    "gelu of erf": lambda x: jax.nn.gelu(x, approximate=False), "softplus": jax.nn.softplus,
    "square, times, plus": lambda x: x * x * x + x * 0.75 - 3, "quotients": lambda x: 3 / x + x / 7,
    "softmax of noise": softmax_of_noise,
    "softmax": lambda x: jax.nn.softmax(jnp.where(jnp.isfinite(x), x, 0).reshape(-1, 128)),
}
TYPES = {"bf16": jnp.bfloat16, "f16": jnp.float16}


def compute(only):
    """The bits of each function's results, a line of JSON a function."""
    device = jax.devices("xpu")[0]
    bits = np.arange(65536, dtype=np.uint16)
    for kind, t in TYPES.items():
        x = jax.device_put(jax.lax.bitcast_convert_type(bits, t), device)
        for name, f in FUNCTIONS.items():
            if not re.search(only, f"{name} {kind}"):
                continue
            y = np.asarray(jax.jit(f)(x)).reshape(-1)
            is_nan = np.isnan(y.astype(np.float32))
            y = np.where(is_nan, 0xffff, y.view(np.uint16))
            print(json.dumps([f"{name} {kind}", y.tolist()]), flush=True)


def on(device, only):
    done = subprocess.run([sys.executable, __file__, "--child", "--only", only],
                          env={**os.environ, "SUNDOG_DEVICE": device}, stdout=subprocess.PIPE,
                          text=True, check=True)
    return dict(map(json.loads, done.stdout.splitlines()))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="")
    ap.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.child:
        return compute(a.only)
    want, got, same = on("host", a.only), on(os.environ.get("SUNDOG_DEVICE", "host"), a.only), 0
    for name in want:
        far = [i for i in range(len(want[name])) if want[name][i] != got[name][i]]
        same += not far
        for i in far[:4]:
            print(f"{name} of 0x{i:04x}: 0x{got[name][i]:04x}, not 0x{want[name][i]:04x} ({len(far)} differ)")
    print(f"{same} of {len(want)} functions have the bits of host")
    sys.exit(same != len(want))


if __name__ == "__main__":
    main()
